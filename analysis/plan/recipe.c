// SPDX-License-Identifier: Apache-2.0
/* The tables of splits and recipes, and cutting a part out of a matrix: see recipe.h. */
#include "analysis/plan/recipe.h"

#include "analysis/diagonals.h"
#include "analysis/frequent.h"
#include "analysis/tiles.h"
#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

/* ---- splits */

/* Part 0: rows of at most options->long_row nonzeros; part 1: longer ones. */
static enum cb_status divide_long_rows(const struct cb_part *part, const struct cb_options *options,
                                       const struct cb_target *target, unsigned char *part_of, struct cb_text *facts,
                                       struct cb_diag *diag) {
  const struct cb_csr *csr = part->csr;
  (void)target;
  (void)diag;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < csr->rows; row++) {
    const int64_t begin = cb_csr_row(csr, row), end = cb_csr_row(csr, row + 1);
    memset(part_of + begin, end - begin > options->long_row, (size_t)(end - begin));
  }
  cb_text_add(facts, " (longer %lld)", (long long)options->long_row);
  return CB_OK;
}

/* Part 0: nonzeros on populated diagonals; part 1: the others. */
static enum cb_status divide_diagonals(const struct cb_part *part, const struct cb_options *options,
                                       const struct cb_target *target, unsigned char *part_of, struct cb_text *facts,
                                       struct cb_diag *diag) {
  const struct cb_csr *csr = part->csr;
  (void)target;
  struct cb_diagonal_set chosen;
  const enum cb_status s = cb_diagonals_choose(&chosen, csr, options, diag);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < (s ? 0 : csr->rows); row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      part_of[k] = !cb_diagonal_set_has(&chosen, csr->col_idx[k] + csr->rows - 1 - row);
  cb_diagonal_set_release(&chosen);
  if (!s) cb_text_add(facts, " (fill %lld)", (long long)options->dia_fill);
  return s;
}

/* Part 0: the others; part 1: nonzeros in frequent columns and in rows that have several of them. */
static enum cb_status divide_hot_columns(const struct cb_part *part, const struct cb_options *options,
                                         const struct cb_target *target, unsigned char *part_of, struct cb_text *facts,
                                         struct cb_diag *diag) {
  const struct cb_csr *csr = part->csr;
  struct cb_frequent frequent;
  const enum cb_status s = cb_frequent_choose(&frequent, csr, target, options, diag);
#pragma omp parallel for schedule(dynamic, 4096)
  for (int64_t row = 0; row < (s ? 0 : csr->rows); row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      part_of[k] = frequent.row[row] && frequent.column[csr->col_idx[k]];
  if (!s)
    cb_text_add(facts, " (share %lld)", (long long)(csr->nnz ? frequent.nonzeros * 100 / csr->nnz : 0));
  cb_frequent_release(&frequent);
  return s;
}

/* Part 0: nonzeros in tiles that are full enough to be stored whole; part 1: the others. */
static enum cb_status divide_tiles(const struct cb_part *part, const struct cb_options *options,
                                   const struct cb_target *target, unsigned char *part_of, struct cb_text *facts,
                                   struct cb_diag *diag) {
  const int chosen = cb_tiles_choose(part->csr, target, options);
  if (chosen < 0)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "too few nonzeros are in aligned tiles%s that are %lld %% full; use another recipe, or lower "
                   "'block-fill'",
                   options->block_size ? " of that size" : "", (long long)options->block_fill);
  cb_tiles_divide(part->csr, cb_tile_sizes[chosen], options, part_of);
  cb_text_add(facts, " (size %d %d) (fill %lld)", cb_tile_sizes[chosen].rows, cb_tile_sizes[chosen].cols,
              (long long)options->block_fill);
  return CB_OK;
}

static const struct cb_split split_long_rows = {"long-rows", 2, 1, divide_long_rows};
static const struct cb_split split_tiles = {"tiles", 2, 0, divide_tiles};
static const struct cb_split split_diagonals = {"diagonals", 2, 0, divide_diagonals};
static const struct cb_split split_hot_columns = {"hot-columns", 2, 0, divide_hot_columns};

/* ---- recipes */

static const struct cb_node node_cb = {.layout = "cb"};
static const struct cb_node node_sell = {.layout = "sell"};
static const struct cb_node node_merge = {.layout = "merge"};
static const struct cb_node node_hot = {.layout = "hot"};
static const struct cb_node node_blocks = {.layout = "blocks"};
static const struct cb_node node_cb_long = {.split = &split_long_rows, .parts = {&node_cb, &node_cb}};
static const struct cb_node node_sell_long = {.split = &split_long_rows, .parts = {&node_sell, &node_merge}};
static const struct cb_node node_tiles = {.split = &split_tiles, .parts = {&node_blocks, &node_sell}};
static const struct cb_node node_dia_layout = {.layout = "dia"};
static const struct cb_node node_dia = {.split = &split_diagonals, .parts = {&node_dia_layout, &node_sell}};

static const struct cb_node node_phases_layout = {.layout = "phases"};
static const struct cb_node node_phases = {.split = &split_hot_columns, .parts = {&node_merge, &node_phases_layout}};

static const char *const searched[] = {"dia", "blocks", "sell", "merge", "hot", "phases", "cb", NULL};

const char cb_recipe_unsearched[] = "sell";

const struct cb_recipe cb_recipe_table[] = {
    {"auto", "the cheapest of the others, as the cost model predicts", NULL, searched},
    {"cb", "CB-SpMV: 16x16 sub-blocks, columns aggregated, COO/CSR/Dense per sub-block", &node_cb, NULL},
    {"cb-long", "CB-SpMV, with rows longer than --long-row in a region of their own", &node_cb_long, NULL},
    {"sell", "sliced ELL with narrow column offsets", &node_sell, NULL},
    {"sell-long", "sell, with rows longer than --long-row as merge", &node_sell_long, NULL},
    {"blocks", "natural dense blocks of 1x2 to 8x8, as finite elements have them", &node_blocks, NULL},
    {"tiles", "dense tiles as blocks, the rest as sell", &node_tiles, NULL},
    {"dia", "populated diagonals without indices, the rest as sell", &node_dia, NULL},
    {"merge", "equal shares of nonzeros, wherever rows end", &node_merge, NULL},
    {"hot", "entries of x for the hottest columns resident in shared memory", &node_hot, NULL},
    {"phases", "entries of x for frequent columns in shared memory, a set at a time; the rest as merge", &node_phases,
     NULL},
    {NULL, NULL, NULL, NULL},
};

/* Recipes that were removed because another one was at least as fast wherever they were measured. */
static const struct {
  const char *name, *substitute;
} removed_recipes[] = {{"panel", "sell"}, {"dia-panel", "dia"}};

enum cb_status cb_recipe_find(const struct cb_recipe **found, const char *name, struct cb_diag *diag) {
  for (size_t i = 0; i < sizeof removed_recipes / sizeof *removed_recipes; i++)
    if (!strcmp(removed_recipes[i].name, name))
      return cb_fail(diag, CB_ERR_ARGUMENT, "recipe '%s' was removed; use '%s'", name, removed_recipes[i].substitute);
  struct cb_text names = {0};
  for (const struct cb_recipe *recipe = cb_recipe_table; recipe->name; recipe++) {
    if (!strcmp(recipe->name, name)) {
      cb_text_release(&names);
      *found = recipe;
      return CB_OK;
    }
    cb_text_add(&names, "%s'%s'", recipe == cb_recipe_table ? "" : ", ", recipe->name);
  }
  cb_fail(diag, CB_ERR_ARGUMENT, "unknown recipe '%s'; there are %s", name, cb_text_string(&names));
  cb_text_release(&names);
  return CB_ERR_ARGUMENT;
}

/* ---- parts */

static enum cb_status alloc_part(struct cb_region_work *work, const struct cb_csr *csr, int64_t nonzeros,
                                 int wide_origin, struct cb_diag *diag) {
  work->part_csr = cb_calloc(1, sizeof *work->part_csr);
  if (!work->part_csr) return cb_fail_memory(diag, "part", sizeof *work->part_csr);
  struct cb_csr *part = work->part_csr;
  *part = (struct cb_csr){.rows = csr->rows, .cols = csr->cols, .nnz = nonzeros, .wide = csr->wide};
  const size_t count = (size_t)nonzeros;
  part->row_ptr = cb_alloc((size_t)csr->rows + 1, csr->wide ? 8 : 4);
  part->col_idx = cb_alloc(count, sizeof *part->col_idx);
  if (wide_origin) work->part_origin64 = cb_alloc(count, sizeof *work->part_origin64);
  else work->part_origin = cb_alloc(count, sizeof *work->part_origin);
  if (!part->row_ptr || !part->col_idx || (!work->part_origin && !work->part_origin64))
    return cb_fail_memory(diag, "part", count * 12);
  work->part = (struct cb_part){part, work->part_origin, work->part_origin64};
  return CB_OK;
}

static void set_row(struct cb_csr *csr, int64_t row, int64_t value) {
  if (csr->wide) ((int64_t *)csr->row_ptr)[row] = value;
  else ((int32_t *)csr->row_ptr)[row] = (int32_t)value;
}

/* Rows are counted and copied in ranges, each by one thread. */
enum { RANGE = 4096 };

/* kept[i + 1]: what the part keeps of range i's nonzeros. Returns their sum. */
static int64_t count_kept(const struct cb_csr *csr, const unsigned char *part_of, int number, int64_t *kept,
                          int64_t ranges) {
  int64_t sum = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : sum)
  for (int64_t range = 0; range < ranges; range++) {
    const int64_t end = cb_csr_row(csr, cb_smaller((range + 1) * RANGE, csr->rows));
    int64_t count = 0;
    for (int64_t k = cb_csr_row(csr, range * RANGE); k < end; k++) count += part_of[k] == number;
    kept[range + 1] = count;
    sum += count;
  }
  return sum;
}

/* The rows of a range, whose nonzeros begin at `kept` in the part. */
static void copy_range(struct cb_region_work *work, const struct cb_part *part, const unsigned char *part_of,
                       int number, int64_t range, int64_t kept) {
  const struct cb_csr *csr = part->csr;
  const int64_t end = cb_smaller((range + 1) * RANGE, csr->rows);
  for (int64_t row = range * RANGE; row < end; row++) {
    set_row(work->part_csr, row, kept);
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      if (part_of[k] != number) continue;
      work->part_csr->col_idx[kept] = csr->col_idx[k];
      if (work->part_origin64) work->part_origin64[kept] = cb_part_origin(part, k);
      else work->part_origin[kept] = (uint32_t)cb_part_origin(part, k);
      kept++;
    }
  }
}

enum cb_status cb_part_select(struct cb_region_work *work, const struct cb_part *part,
                              const unsigned char *part_of, int number, int wide, struct cb_diag *diag) {
  const struct cb_csr *csr = part->csr;
  const int64_t ranges = cb_divide_up(csr->rows, RANGE);
  int64_t *kept = cb_calloc((size_t)ranges + 1, sizeof *kept);
  if (!kept) return cb_fail_memory(diag, "part", (uint64_t)ranges * sizeof *kept);
  const int64_t nonzeros = count_kept(csr, part_of, number, kept, ranges);
  const int whole = nonzeros == csr->nnz && !part->origin && !part->origin64;
  enum cb_status s = CB_OK;
  if (whole) work->part = *part;
  else s = alloc_part(work, csr, nonzeros, wide, diag);
  if (!s && !whole) {
    for (int64_t range = 0; range < ranges; range++) kept[range + 1] += kept[range];
#pragma omp parallel for schedule(dynamic, 16)
    for (int64_t range = 0; range < ranges; range++) copy_range(work, part, part_of, number, range, kept[range]);
    set_row(work->part_csr, csr->rows, nonzeros);
  }
  cb_free(kept);
  return s;
}
