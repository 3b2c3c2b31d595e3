// SPDX-License-Identifier: Apache-2.0
/* Finding blocks of a shape: see fill.h. Rows are walked in ranges, each by one thread with counters of its own, which
 * are 0 again after each range. */
#include "analysis/fill.h"

#include "base/integers.h"
#include "base/memory.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

const struct cb_fill_shape cb_fill_shapes[] = {
    {"square", CB_FILL_ROWS, 32, 0}, {"diag", CB_FILL_ROWS, 1, 1}, {"anti", CB_FILL_ROWS, 1, -1},
    {"col", CB_FILL_ROWS, 1, 0},     {"row", 1, 32, 0},            {NULL, 0, 0, 0},
};

const struct cb_fill_shape *cb_fill_shape_find(const char *name) {
  for (const struct cb_fill_shape *shape = cb_fill_shapes; shape->name; shape++)
    if (!strcmp(shape->name, name)) return shape;
  return NULL;
}

/* ---- candidates: blocks of one first row that are full enough */

/* A line's counter: nonzeros on it in the rows that are in, and whether it is in the list. */
enum { LISTED = 1 << 15, COUNT = LISTED - 1 };

struct candidate {
  int64_t line;
  int32_t weight; /* nonzeros */
  int taken;
};

/* What one thread walks with. */
struct walk {
  const struct cb_csr *csr;
  const struct cb_fill_shape *shape;
  int limit;          /* nonzeros of a candidate at least */
  int over_edges;
  int64_t first_line; /* counter 0 is of this line */
  uint16_t *counters;
  struct candidate *list; /* ascending by line where find_candidates has returned */
  int64_t listed, capacity;
  int64_t *best; /* as many: most nonzeros from a candidate on */
  int failed;
};

static int64_t first_line(const struct cb_csr *csr, const struct cb_fill_shape *shape) {
  return (shape->stride > 0 ? -(csr->rows - 1) : 0) - (shape->width - 1);
}

static int64_t count_lines(const struct cb_csr *csr, const struct cb_fill_shape *shape) {
  return csr->cols + shape->width + (shape->stride ? csr->rows : 0);
}

static void list_line(struct walk *walk, int64_t line) {
  if (walk->listed == walk->capacity) {
    const int64_t capacity = cb_larger(2 * walk->capacity, 64);
    struct candidate *list = cb_realloc(walk->list, (size_t)capacity, sizeof *list);
    int64_t *best = list ? cb_realloc(walk->best, (size_t)capacity + 1, sizeof *best) : NULL;
    if (list) walk->list = list;
    if (best) walk->best = best;
    walk->failed |= !list || !best;
    if (walk->failed) return;
    walk->capacity = capacity;
  }
  walk->list[walk->listed++].line = line;
}

/* Line of a nonzero as the last one of a block's row; the others of it follow. */
static int64_t line_of(const struct walk *walk, int64_t row, int64_t k) {
  return walk->csr->col_idx[k] - walk->shape->stride * row - (walk->shape->width - 1);
}

static void take_in(struct walk *walk, int64_t row) {
  if (row >= walk->csr->rows) return; /* of blocks that reach over the last row */
  for (int64_t k = cb_csr_row(walk->csr, row); k < cb_csr_row(walk->csr, row + 1); k++) {
    const int64_t first = line_of(walk, row, k);
    for (int64_t line = first; line < first + walk->shape->width; line++) {
      uint16_t *counter = &walk->counters[line - walk->first_line];
      if (++*counter != walk->limit) continue; /* a line that is in the list has LISTED, too */
      *counter |= LISTED;
      list_line(walk, line);
    }
  }
}

static void take_out(struct walk *walk, int64_t row) {
  if (row >= walk->csr->rows) return;
  for (int64_t k = cb_csr_row(walk->csr, row); k < cb_csr_row(walk->csr, row + 1); k++) {
    uint16_t *counter = &walk->counters[line_of(walk, row, k) - walk->first_line];
    for (int i = 0; i < walk->shape->width; i++) counter[i]--;
  }
}

static int by_line(const void *left, const void *right) {
  const int64_t a = ((const struct candidate *)left)->line, b = ((const struct candidate *)right)->line;
  return (a > b) - (a < b);
}

/* Drops lines from the list that are no longer full enough. */
static void drop_lines(struct walk *walk) {
  int64_t kept = 0;
  for (int64_t i = 0; i < walk->listed; i++) {
    uint16_t *counter = &walk->counters[walk->list[i].line - walk->first_line];
    if ((*counter & COUNT) < walk->limit) *counter &= COUNT;
    else walk->list[kept++] = walk->list[i];
  }
  walk->listed = kept;
}

static int is_within(const struct walk *walk, int64_t row, int64_t line) {
  const struct cb_fill_shape *shape = walk->shape;
  const int64_t first = line + shape->stride * row, last = first + shape->stride * (shape->height - 1);
  return walk->over_edges || (cb_smaller(first, last) >= 0 && cb_larger(first, last) + shape->width <= walk->csr->cols);
}

/* Of the candidates at `row` those that share no place and have the most nonzeros, which it returns. Of blocks one
 * column wide no two share a place. */
static int64_t choose_candidates(struct walk *walk, int64_t row) {
  struct candidate *list = walk->list;
  int64_t after = walk->listed; /* first candidate that begins where candidate i ends, or later */
  walk->best[walk->listed] = 0;
  for (int64_t i = walk->listed - 1; i >= 0; i--) {
    while (after > i + 1 && list[after - 1].line >= list[i].line + walk->shape->width) after--;
    list[i].weight = is_within(walk, row, list[i].line) ? walk->counters[list[i].line - walk->first_line] & COUNT : 0;
    const int64_t with = list[i].weight + walk->best[after];
    list[i].taken = list[i].weight && with >= walk->best[i + 1];
    walk->best[i] = list[i].taken ? with : walk->best[i + 1];
  }
  return walk->best[0];
}

/* The rows of blocks at `row` are in. Returns gain[row]. */
static int64_t find_candidates(struct walk *walk, int64_t row) {
  int sorted = 1;
  drop_lines(walk);
  if (!walk->listed || walk->failed) return 0;
  for (int64_t i = 1; i < walk->listed; i++) sorted &= walk->list[i - 1].line < walk->list[i].line;
  if (!sorted) qsort(walk->list, (size_t)walk->listed, sizeof *walk->list, by_line);
  return choose_candidates(walk, row);
}

static int start_walk(struct walk *walk, const struct cb_csr *csr, const struct cb_fill_shape *shape, int limit) {
  *walk = (struct walk){.csr = csr, .shape = shape, .limit = limit, .first_line = first_line(csr, shape)};
  walk->counters = cb_calloc((size_t)count_lines(csr, shape), sizeof *walk->counters);
  return walk->counters != NULL;
}

static void end_walk(struct walk *walk) {
  cb_free(walk->counters);
  cb_free(walk->list);
  cb_free(walk->best);
}

/* ---- first rows of slices */

enum { RANGE = 4096 };

/* gain[row] of rows from `begin` on. */
static void find_gains(struct walk *walk, int64_t begin, int64_t end, int64_t *gain) {
  const int height = walk->shape->height;
  for (int64_t row = begin; row < begin + height - 1; row++) take_in(walk, row);
  for (int64_t row = begin; row < end; row++) {
    take_in(walk, row + height - 1);
    gain[row] = find_candidates(walk, row);
    take_out(walk, row);
  }
  for (int64_t row = end; row < end + height - 1; row++) take_out(walk, row);
  drop_lines(walk);
}

/* Threads whose counters take no more memory than the matrix, about. 0: not even one. */
static int few_threads(const struct cb_csr *csr, const struct cb_fill_shape *shape) {
  enum { PLENTY = 8 << 20 };
  const int64_t room = (PLENTY + cb_csr_bytes(csr)) / (count_lines(csr, shape) * (int64_t)sizeof(uint16_t));
  return (int)cb_smaller(room, omp_get_max_threads());
}

static int find_all_gains(const struct cb_csr *csr, const struct cb_fill_shape *shape, int limit, int64_t *gain) {
  const int64_t starts = csr->rows - shape->height + 1;
  int failed = 0;
#pragma omp parallel num_threads(few_threads(csr, shape)) reduction(| : failed)
  {
    struct walk walk;
    failed = !start_walk(&walk, csr, shape, limit);
#pragma omp for schedule(dynamic)
    for (int64_t begin = 0; begin < starts; begin += RANGE)
      if (!failed && !walk.failed) find_gains(&walk, begin, cb_smaller(begin + RANGE, starts), gain);
    failed |= walk.failed;
    end_walk(&walk);
  }
  return !failed;
}

/* Disjoint ranges of rows with the largest sum of gains, as rows in `first_row`; returns their number. */
static int64_t choose_rows(const int64_t *gain, int64_t starts, int height, int64_t *best, int32_t *first_row) {
  int64_t count = 0;
  memset(best + starts, 0, (size_t)height * sizeof *best);
  for (int64_t row = starts - 1; row >= 0; row--) best[row] = cb_larger(best[row + 1], gain[row] + best[row + height]);
  for (int64_t row = 0; row < starts;) {
    const int taken = gain[row] && best[row] == gain[row] + best[row + height];
    if (taken) first_row[count++] = (int32_t)row;
    row += taken ? height : 1;
  }
  return count;
}

/* Multiples of the height whose rows have nonzeros enough for a block, below `starts`, as rows in `first_row` (NULL:
 * only counts them); returns their number. */
static int64_t list_aligned(const struct cb_csr *csr, int height, int64_t starts, int limit, int32_t *first_row) {
  int64_t count = 0;
  for (int64_t row = 0; row < starts; row += height) {
    if (cb_csr_row(csr, cb_smaller(row + height, csr->rows)) - cb_csr_row(csr, row) < limit) continue;
    if (first_row) first_row[count] = (int32_t)row;
    count++;
  }
  return count;
}

static int choose_first_rows(struct cb_fill *fill, const struct cb_csr *csr, int limit) {
  const int height = fill->shape->height;
  const int64_t starts = csr->rows - height + 1;
  int64_t *gain = cb_alloc((size_t)starts, sizeof *gain), *best = cb_alloc((size_t)csr->rows + 1, sizeof *best);
  fill->first_row = cb_alloc((size_t)cb_divide_up(csr->rows, height), sizeof *fill->first_row);
  const int good = gain && best && fill->first_row && find_all_gains(csr, fill->shape, limit, gain);
  if (good) fill->slices = choose_rows(gain, starts, height, best, fill->first_row);
  cb_free(gain);
  cb_free(best);
  return good;
}

/* Rows where slices may begin, or those that the gains choose. */
static int find_first_rows(struct cb_fill *fill, const struct cb_csr *csr, int limit, enum cb_fill_places places) {
  const int height = fill->shape->height;
  const int64_t starts = places == CB_FILL_OVER_EDGES ? csr->rows : csr->rows - height + 1;
  if (places == CB_FILL_ANYWHERE && height > 1) return choose_first_rows(fill, csr, limit);
  fill->slices = list_aligned(csr, height, starts, limit, NULL);
  fill->first_row = cb_alloc((size_t)fill->slices, sizeof *fill->first_row);
  if (fill->first_row) list_aligned(csr, height, starts, limit, fill->first_row);
  return fill->first_row != NULL;
}

/* ---- blocks of the slices */

/* Blocks of neighbouring slices. */
struct found {
  int32_t *column;
  int64_t count, capacity, nonzeros;
};

static int add_block(struct found *found, int64_t column, int32_t nonzeros) {
  if (found->count == found->capacity) {
    const int64_t capacity = cb_larger(2 * found->capacity, 256);
    int32_t *larger = cb_realloc(found->column, (size_t)capacity, sizeof *larger);
    if (!larger) return 0;
    found->column = larger;
    found->capacity = capacity;
  }
  found->column[found->count++] = (int32_t)column;
  found->nonzeros += nonzeros;
  return 1;
}

/* Blocks of a slice; returns their number. */
static int64_t find_slice(struct walk *walk, int64_t first_row, struct found *found) {
  const int64_t before = found->count, end = first_row + walk->shape->height;
  for (int64_t row = first_row; row < end; row++) take_in(walk, row);
  const int some = find_candidates(walk, first_row) > 0;
  for (int64_t i = 0, free = INT64_MIN; some && i < walk->listed; i++) {
    const struct candidate *candidate = &walk->list[i];
    if (!candidate->taken || candidate->line < free) continue;
    free = candidate->line + walk->shape->width;
    walk->failed |= !add_block(found, candidate->line + walk->shape->stride * first_row, candidate->weight);
  }
  for (int64_t row = first_row; row < end; row++) take_out(walk, row);
  drop_lines(walk);
  return found->count - before;
}

/* first_block[s + 1]: the number of slice s's blocks. */
static int find_ranges(struct cb_fill *fill, const struct cb_csr *csr, int limit, int over_edges, struct found *found) {
  int failed = 0;
#pragma omp parallel num_threads(few_threads(csr, fill->shape)) reduction(| : failed)
  {
    struct walk walk;
    failed = !start_walk(&walk, csr, fill->shape, limit);
    walk.over_edges = over_edges;
#pragma omp for schedule(dynamic)
    for (int64_t range = 0; range < cb_divide_up(fill->slices, RANGE); range++)
      for (int64_t s = range * RANGE; s < cb_smaller((range + 1) * RANGE, fill->slices); s++)
        if (!failed && !walk.failed) fill->first_block[s + 1] = find_slice(&walk, fill->first_row[s], &found[range]);
    failed |= walk.failed;
    end_walk(&walk);
  }
  return !failed;
}

/* Slices without a block go. */
static void drop_empty(struct cb_fill *fill) {
  int64_t kept = 0;
  for (int64_t s = 0; s < fill->slices; s++) {
    const int64_t blocks = fill->first_block[s + 1];
    if (!blocks) continue;
    fill->first_row[kept] = fill->first_row[s];
    fill->first_block[kept + 1] = fill->first_block[kept] + blocks;
    kept++;
  }
  fill->slices = kept;
}

static int gather_blocks(struct cb_fill *fill, const struct found *found, int64_t ranges) {
  for (int64_t range = 0; range < ranges; range++) fill->blocks += found[range].count;
  fill->column = cb_alloc((size_t)fill->blocks, sizeof *fill->column);
  if (!fill->column) return 0;
  for (int64_t range = 0, at = 0; range < ranges; at += found[range++].count) {
    const size_t bytes = (size_t)found[range].count * sizeof *fill->column;
    if (bytes) memcpy(fill->column + at, found[range].column, bytes);
    fill->nonzeros += found[range].nonzeros;
  }
  drop_empty(fill);
  return 1;
}

static int find_blocks(struct cb_fill *fill, const struct cb_csr *csr, int limit, int over_edges) {
  const int64_t ranges = cb_divide_up(fill->slices, RANGE);
  struct found *found = cb_calloc((size_t)ranges, sizeof *found);
  fill->first_block = cb_calloc((size_t)fill->slices + 1, sizeof *fill->first_block);
  const int good = found && fill->first_block && find_ranges(fill, csr, limit, over_edges, found) &&
                   gather_blocks(fill, found, ranges);
  for (int64_t range = 0; found && range < ranges; range++) cb_free(found[range].column);
  cb_free(found);
  return good;
}

/* ---- the whole */

enum cb_status cb_fill_find(struct cb_fill *fill, const struct cb_csr *csr, const struct cb_fill_shape *shape,
                            int percent, enum cb_fill_places places, struct cb_diag *diag) {
  const int limit = (int)cb_larger(1, cb_divide_up((int64_t)shape->height * shape->width * percent, 100));
  const int over = places == CB_FILL_OVER_EDGES;
  *fill = (struct cb_fill){.shape = shape};
  if (csr->nnz < limit || (!over && (csr->rows < shape->height || csr->cols < shape->width))) return CB_OK;
  if (!few_threads(csr, shape)) return CB_OK;
  if (find_first_rows(fill, csr, limit, places) && find_blocks(fill, csr, limit, over)) return CB_OK;
  cb_fill_release(fill);
  return cb_fail_memory(diag, "blocks", (uint64_t)count_lines(csr, shape) * sizeof(uint16_t));
}

void cb_fill_release(struct cb_fill *fill) {
  cb_free(fill->first_row);
  cb_free(fill->first_block);
  cb_free(fill->column);
  *fill = (struct cb_fill){.shape = fill->shape};
}

int cb_fill_keep(struct cb_fill *kept, const struct cb_fill *fill, struct cb_arena *arena) {
  static const int64_t none[] = {0}; /* fill->first_block is NULL where there are no slices */
  const int64_t *first = fill->first_block ? fill->first_block : none;
  *kept = *fill;
  kept->first_row = cb_arena_copy(arena, fill->first_row, (size_t)fill->slices, sizeof *fill->first_row);
  kept->first_block = cb_arena_copy(arena, first, (size_t)fill->slices + 1, sizeof *first);
  kept->column = cb_arena_copy(arena, fill->column, (size_t)fill->blocks, sizeof *fill->column);
  return kept->first_row && kept->first_block && kept->column;
}

void cb_fill_divide(const struct cb_fill *fill, const struct cb_csr *csr, unsigned char *part_of) {
  memset(part_of, 1, (size_t)csr->nnz);
#pragma omp parallel for schedule(dynamic, 256)
  for (int64_t slice = 0; slice < fill->slices; slice++)
    for (int64_t i = 0; i < cb_fill_rows(fill, csr, slice); i++) {
      const int64_t row = fill->first_row[slice] + i, end = cb_csr_row(csr, row + 1);
      int64_t block = fill->first_block[slice];
      for (int64_t k = cb_csr_row(csr, row); k < end; k++)
        part_of[k] = cb_fill_block(fill, slice, i, csr->col_idx[k], &block) < 0;
    }
}
