// SPDX-License-Identifier: Apache-2.0
/* Equal shares of nonzeros, wherever rows end: for matrices whose row lengths differ much. After MERBIT and merge-based
 * SpMV (Merrill, Garland): a lane takes `items` consecutive nonzeros, and a descriptor of its own says with one bit for
 * each of them whether a row ends there.
 *
 *   tile   what a thread block multiplies: consecutive whole rows, together no more than 256 · items nonzeros. So no
 *          row is shared by thread blocks, and none waits for another
 *   chunk  a warp's share of its tile: 32 · items nonzeros. Rows may cross its borders: warps meet in shared memory
 *   long   rows of more than a tile: a thread block each adds up such a row, without descriptors. Rows much longer
 *          than that are cut into segments, and the last segment to arrive adds up (carry slots)
 *
 * Empty rows are in no tile: all thread blocks write them first, in equal shares, so there is no pass over y.
 *
 * A tile's nonzeros lie in the order of rows. It either fills all its slots (padded: nothing has to be looked up before
 * the first load) or as many steps of 32 slots as it needs. What pads a tile lies behind its last row's end, where
 * sums are dropped; so neither NaN nor Inf in x reaches a row through it.
 *
 * How to read it: merge_plan near the end calls the passes in order.
 */
#include "analysis/layouts/merge/options.h"
#include "analysis/cost_figures.h"
#include "analysis/ordering.h"
#include "analysis/row_ends.h"
#include "analysis/sectors.h"
#include "analysis/stretches.h"
#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

enum {
  WARPS = CB_UNIT_WARPS,
  LANES = 32,
  THREADS = WARPS * LANES,
  LONG_BATCH = 8,                 /* nonzeros of a long row that a thread loads together, as in the text */
  SEGMENT = THREADS * LONG_BATCH, /* a segment is one batch for each thread */
  WHOLE = 3 * SEGMENT,            /* two batches more take less time than a carry */
  ZEROS = 8 * THREADS,            /* empty rows of a thread block */
  NARROW = 1 << 16                /* columns that two bytes tell apart */
};

struct state {
  struct cb_arena arena;
  const struct cb_csr *csr;
  int items; /* nonzeros of a lane; odd */
  int padded;
  struct cb_unit *unit; /* what a thread block multiplies: row segments, then long rows that are whole, then tiles */
  int64_t cut_segments, long_units, units; /* how many there are up to the end of each of the three */
  int64_t long_slots, slots;               /* of segments and long rows; of all */
  uint32_t *first_column;                  /* by unit: from which the columns of its slots are told; or all 0 */
  int64_t least_offset, largest_offset;    /* of a nonzero's column, from there */
  /* row ends of tiles, in the order of tiles */
  uint32_t *descriptor;            /* by lane of a chunk */
  uint32_t *first_row, *row_count; /* by chunk */
  uint32_t *first_end;             /* by chunk: row ends before it; chunks + 1 */
  uint32_t *row_offset;            /* by row end: its row, from its chunk's first row */
  int gaps;                        /* rows that end in a chunk are not consecutive */
  struct cb_row_ends there;        /* instead of descriptor and row_offset: as lists where the matrix is */
  const uint32_t *own_rows;        /* the builder's, while it plans */
  int64_t empty_rows; /* of its own */
  int64_t blocks; /* thread blocks, those that write empty rows alone included */
};

static int64_t tile_size(const struct state *state) {
  return (int64_t)THREADS * state->items;
}

static int64_t chunk_size(const struct state *state) {
  return (int64_t)LANES * state->items;
}

static int64_t tiles(const struct state *state) {
  return state->units - state->long_units;
}

static int64_t chunks(const struct state *state) {
  return WARPS * tiles(state);
}

/* Nonzeros per lane: few while that keeps all multiprocessors busy with several thread blocks each; fewer of two
 * doubles, whose registers cost thread blocks. */
/* Tiles of so many nonzeros, as they are filled below. */
static int64_t count_tiles(const struct cb_csr *csr, int64_t size) {
  int64_t tiles = 0, room = 0;
  for (int64_t row = 0; row < csr->rows; row++) {
    const int64_t length = cb_csr_row(csr, row + 1) - cb_csr_row(csr, row);
    if (length > room) {
      tiles++;
      room = size;
    }
    room -= length;
  }
  return tiles;
}

/* Solvers with one meeting in an iteration have all thread blocks of a product there at once, two on each
 * multiprocessor, or else four of the largest. 0: the matrix is larger, or the operator is for something else. */
static int items_for_solvers(const struct cb_csr *csr, const struct cb_region_builder *builder) {
  enum { LEAST = 3, MOST = 15, MOST_WIDE = 11 };
  const int most = cb_type_size(builder->sum_type) < 16 && builder->options->vectors < 2 ? MOST : MOST_WIDE;
  const int64_t room = 2 * (int64_t)builder->target->multiprocessors;
  const int is_small = csr->nnz <= 2 * room * THREADS * most;
  if (builder->options->one_meeting != CB_ON || csr->rows != csr->cols || !is_small) return 0;
  for (int items = LEAST; items <= most; items += 2)
    if (count_tiles(csr, (int64_t)THREADS * items) <= room) return items;
  return count_tiles(csr, (int64_t)THREADS * most) <= 2 * room ? most : 0;
}

static int choose_items(const struct cb_csr *csr, const struct cb_region_builder *builder) {
  if (builder->settings[MERGE_ITEMS]) return (int)builder->settings[MERGE_ITEMS];
  const int for_solvers = items_for_solvers(csr, builder);
  if (for_solvers) return for_solvers;
  const int64_t share = csr->nnz / (THREADS * (int64_t)builder->target->multiprocessors);
  return share <= 12 ? 3 : share <= 28 || cb_region_is_wide(builder) ? 5 : 7;
}

/* ---- units: needs items; adds them, but not yet where slots of tiles begin */

static int is_long(const struct state *state, int64_t row) {
  return cb_csr_row_length(state->csr, row) > tile_size(state);
}

static int add_unit(struct state *state, int64_t begin, int64_t end, int64_t row) {
  struct cb_unit *unit = cb_arena_append(&state->arena, &state->unit, &state->units, sizeof *unit);
  if (unit) *unit = (struct cb_unit){begin, end, state->long_slots, (int32_t)row};
  return unit != NULL;
}

/* In segments of equal length, up to 31 nonzeros: all but the last end at a multiple of a warp's lanes. */
static void add_long_row(struct state *state, int64_t row, int64_t segments) {
  const int64_t first = cb_csr_row(state->csr, row), length = cb_csr_row_length(state->csr, row);
  for (int64_t i = 0, begin = 0, end; i < segments; i++, begin = end) {
    end = i + 1 < segments ? length * (i + 1) / segments / LANES * LANES : length;
    add_unit(state, first + begin, first + end, row);
    state->long_slots += end - begin;
  }
}

/* The row from `row` on that holds nonzero `k`: steps that double, then halves. */
static int64_t row_of(const struct cb_csr *csr, int64_t row, int64_t k) {
  int64_t step = 1;
  while (row + step < csr->rows && cb_csr_row(csr, row + step) <= k) {
    row += step;
    step *= 2;
  }
  int64_t end = cb_smaller(row + step, csr->rows); /* the row is before it */
  while (end - row > 1) {
    const int64_t middle = (row + end) / 2;
    if (cb_csr_row(csr, middle) <= k) row = middle;
    else end = middle;
  }
  return row;
}

/* Long rows, in order: each has a nonzero whose number is a multiple of a tile's size, so that few rows are looked at.
 * In the arena; NULL: no memory. */
static int32_t *list_long_rows(const struct state *state, struct cb_arena *arena, int64_t *count) {
  enum { RANGE = 64 };
  const struct cb_csr *csr = state->csr;
  const int64_t size = tile_size(state), looked_at = cb_divide_up(csr->nnz, size);
  int32_t *rows = cb_arena_alloc(arena, (size_t)looked_at, sizeof *rows);
  *count = 0;
  if (!rows) return NULL;
#pragma omp parallel for schedule(static) if (looked_at > RANGE)
  for (int64_t first = 0; first < looked_at; first += RANGE)
    for (int64_t i = first, row = 0; i < cb_smaller(first + RANGE, looked_at); i++) {
      row = row_of(csr, row, i * size);
      rows[i] = (int32_t)row;
    }
  for (int64_t i = 0; i < looked_at; i++)
    if (is_long(state, rows[i]) && (!*count || rows[*count - 1] != rows[i])) rows[(*count)++] = rows[i];
  return rows;
}

/* Those that are cut come first. */
static int add_long_rows(struct state *state, const int64_t *settings) {
  const int64_t whole = settings[MERGE_PIECE] ? settings[MERGE_PIECE] : WHOLE;
  const int64_t most = settings[MERGE_PIECE] ? settings[MERGE_PIECE] : SEGMENT;
  struct cb_arena scratch = {0};
  int64_t count = 0;
  const int32_t *rows = list_long_rows(state, &scratch, &count);
  for (int cut = 1; rows && cut >= 0; cut--) {
    for (int64_t i = 0; i < count; i++) {
      const int64_t length = cb_csr_row_length(state->csr, rows[i]);
      if ((length > whole) == cut) add_long_row(state, rows[i], cut ? cb_divide_up(length, most) : 1);
    }
    if (cut) state->cut_segments = state->units;
  }
  state->long_units = state->units;
  cb_arena_release(&scratch);
  return rows && !state->arena.failed;
}

/* Rows in order, as many as fit; a long row ends a tile, so that the nonzeros of one lie side by side. */
static int add_tiles(struct state *state) {
  const struct cb_csr *csr = state->csr;
  const int64_t most = tile_size(state);
  for (int64_t row = 0, begin = 0, end; begin < csr->nnz; begin = end) {
    row = row_of(csr, row, begin); /* begins there, too */
    end = cb_csr_row(csr, row + 1);
    if (is_long(state, row)) continue;
    if (begin + most >= csr->nnz) end = csr->nnz;
    else end = cb_csr_row(csr, row_of(csr, row, begin + most));
    if (!add_unit(state, begin, end, row)) return 0;
  }
  return 1;
}

/* ---- slots: needs units; adds padded, slots, and where those of tiles begin */

/* Padded: when it costs next to nothing, or when the matrix is small and latency counts more than bytes. */
static int choose_padded(const struct state *state, const int64_t *settings) {
  enum { SMALL = 1 << 20 };
  if (settings[MERGE_PAD] != CB_AUTO) return settings[MERGE_PAD] == CB_ON;
  const int64_t nonzeros = state->csr->nnz - state->long_slots;
  const int64_t waste = tiles(state) * tile_size(state) - nonzeros;
  return waste * 32 <= nonzeros || (nonzeros < SMALL && waste * 2 <= nonzeros);
}

static void place_tiles(struct state *state, const int64_t *settings) {
  state->padded = choose_padded(state, settings);
  int64_t step = cb_divide_up(state->long_slots, LANES);
  for (int64_t u = state->long_units; u < state->units; u++) {
    state->unit[u].slot = step * LANES;
    step += cb_divide_up(state->padded ? tile_size(state) : state->unit[u].end - state->unit[u].begin, LANES);
  }
  if (step > INT32_MAX / LANES - tile_size(state))
    step += tile_size(state); /* no index of a guarded load overflows */
  state->slots = step * LANES;
}

/* Slots of the units before one, which may be that behind the last; before tiles there are whole steps. */
static int64_t slots_before(const struct state *state, int64_t u) {
  return u < state->units ? state->unit[u].slot : state->slots;
}

/* ---- columns: needs slots; adds first_column and the range of offsets */

/* Of a unit that holds whole rows, which are sorted. */
static struct cb_ends columns_of(const struct state *state, const struct cb_unit *unit) {
  const struct cb_csr *csr = state->csr;
  struct cb_ends range = {INT64_MAX, -1};
  for (int64_t row = unit->row; row < csr->rows && cb_csr_row(csr, row) < unit->end; row++) {
    if (!cb_csr_row_length(csr, row)) continue;
    const struct cb_ends ends = cb_row_ends(csr, row);
    range.first = cb_smaller(range.first, ends.first);
    range.last = cb_larger(range.last, ends.last);
  }
  return range;
}

/* Of the units from `first` on, which hold whole rows. */
static int find_spans(const struct state *state, int64_t first, struct cb_ends *spans) {
  const struct cb_remote_columns *remote = state->csr->remote;
  const int64_t count = state->units - first;
  if (remote && remote->spans) return !count || !remote->spans(remote->user, state->unit + first, count, spans, NULL);
  if (!cb_need_row_ends(state->csr)) return 0;
#pragma omp parallel for schedule(static)
  for (int64_t u = 0; u < count; u++) spans[u] = columns_of(state, &state->unit[first + u]);
  return 1;
}

static int find_segments(const struct state *state, struct cb_ends *spans) {
  const int64_t count = state->cut_segments;
  struct cb_stretch *segments = cb_alloc((size_t)count, sizeof *segments);
  for (int64_t u = 0; segments && u < count; u++)
    segments[u] = (struct cb_stretch){state->unit[u].begin, state->unit[u].end - state->unit[u].begin};
  const int good = segments && cb_stretch_ends(spans, state->csr, segments, count);
  cb_free(segments);
  return good;
}

/* The first and the last column of each unit. NULL: no memory, or they cannot be had. */
static struct cb_ends *spans_of(const struct state *state) {
  struct cb_ends *spans = cb_alloc((size_t)state->units, sizeof *spans);
  if (spans && find_segments(state, spans) && find_spans(state, state->cut_segments, spans + state->cut_segments))
    return spans;
  cb_free(spans);
  return NULL;
}

/* First columns of units, if they make all offsets fit two bytes, and all columns do not anyway. */
static int choose_bases(struct state *state) {
  int64_t least = INT64_MAX, most = -1, widest = 0;
  state->first_column = cb_arena_alloc(&state->arena, (size_t)state->units, sizeof *state->first_column);
  struct cb_ends *spans = state->first_column ? spans_of(state) : NULL;
  if (!spans) return 0;
  for (int64_t u = 0; u < state->units; u++) {
    state->first_column[u] = (uint32_t)spans[u].first;
    least = cb_smaller(least, spans[u].first);
    most = cb_larger(most, spans[u].last);
    widest = cb_larger(widest, spans[u].last - spans[u].first);
  }
  cb_free(spans);
  state->least_offset = 0;
  state->largest_offset = widest;
  if (state->csr->cols > NARROW && widest < NARROW) return 1;
  state->least_offset = least;
  state->largest_offset = most;
  memset(state->first_column, 0, (size_t)state->units * sizeof *state->first_column);
  return 1;
}

/* What pads a tile repeats its last column. */
static int merge_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *walk) {
  const struct state *state = user;
  const int32_t *column = cb_walk_columns(walk, state->csr);
  for (int64_t u = first; u < end; u++) {
    const struct cb_unit *unit = &state->unit[u];
    const uint32_t from = state->first_column[u];
    int64_t slot = unit->slot;
    for (int64_t k = unit->begin; k < unit->end; k++) cb_emit(walk, slot++, k, (uint32_t)column[k] - from);
    while (u >= state->long_units && slot < slots_before(state, u + 1))
      cb_emit_element(walk, slot++, (uint32_t)column[unit->end - 1] - from);
  }
  return 1;
}

static void build_columns(struct cb_region_builder *builder, struct state *state) {
  builder->failed |= !choose_bases(state);
  if (builder->failed) return;
  if (tiles(state))
    cb_region_list(builder, "first_column", "a tile's first column", tiles(state),
                   state->first_column + state->long_units);
  if (state->long_units)
    cb_region_list(builder, "long_column", "a long row's (or row segment's) first column", state->long_units,
                   state->first_column);
  cb_region_by_slot(
      builder, "column_offset", "column of a slot, from the first of its tile or long row",
      (struct cb_slot_elements){
          .count = state->slots, .least = state->least_offset, .largest = state->largest_offset, .of_columns = 1});
  cb_region_values(builder, "values", "in the order of slots", state->slots);
}

/* ---- rows of tiles: needs tiles; adds their row ends */

/* Flags of a tile's lanes, row ends per chunk and each chunk's first row. */
static void describe_ends(struct state *state, int64_t t) {
  const struct cb_csr *csr = state->csr;
  const struct cb_unit *tile = &state->unit[state->long_units + t];
  const uint32_t items = (uint32_t)state->items, chunk_items = (uint32_t)chunk_size(state);
  uint32_t *flags = state->descriptor + t * THREADS;
  for (int64_t row = tile->row; row < csr->rows && cb_csr_row(csr, row) < tile->end; row++) {
    if (!cb_csr_row_length(csr, row)) continue;
    const uint32_t last = (uint32_t)(cb_csr_row(csr, row + 1) - 1 - tile->begin);
    const int64_t chunk = t * WARPS + last / chunk_items;
    flags[last / items] |= 1u << last % items;
    if (!state->row_count[chunk]++) state->first_row[chunk] = (uint32_t)row;
  }
  for (int warp = 0; warp < WARPS; warp++)
    for (uint32_t lane = 0, before = 0; lane < LANES; lane++) {
      const uint32_t ends = flags[warp * LANES + (int)lane];
      flags[warp * LANES + (int)lane] = before << state->items | ends;
      before += (uint32_t)__builtin_popcount(ends);
    }
}

/* Rows of the tile's row ends; whether some chunk's are not consecutive. */
static int list_rows(struct state *state, int64_t t) {
  const struct cb_csr *csr = state->csr;
  const struct cb_unit *tile = &state->unit[state->long_units + t];
  int64_t chunk = t * WARPS, at = state->first_end[chunk];
  int gaps = 0;
  for (int64_t row = tile->row; row < csr->rows && cb_csr_row(csr, row) < tile->end; row++) {
    if (!cb_csr_row_length(csr, row)) continue;
    while (at == state->first_end[chunk + 1]) chunk++;
    state->row_offset[at] = (uint32_t)row - state->first_row[chunk];
    gaps |= state->row_offset[at] != at - state->first_end[chunk];
    at++;
  }
  return gaps;
}

static int alloc_chunks(struct state *state) {
  const size_t count = (size_t)chunks(state);
  state->first_row = cb_arena_alloc(&state->arena, count, sizeof *state->first_row);
  state->row_count = cb_arena_alloc(&state->arena, count, sizeof *state->row_count);
  state->first_end = cb_arena_alloc(&state->arena, count + 1, sizeof *state->first_end);
  return !state->arena.failed;
}

/* Whether there are gaps; -1: no memory. */
static int fill_rows(struct state *state) {
  const size_t count = (size_t)chunks(state);
  int gaps = 0;
  state->descriptor = cb_arena_alloc(&state->arena, count * LANES, sizeof *state->descriptor);
  if (state->arena.failed) return -1;
#pragma omp parallel for schedule(static)
  for (int64_t t = 0; t < tiles(state); t++) describe_ends(state, t);
  for (size_t c = 0; c < count; c++) state->first_end[c + 1] = state->first_end[c] + state->row_count[c];
  state->row_offset = cb_arena_alloc(&state->arena, state->first_end[count], sizeof *state->row_offset);
  if (!state->row_offset) return -1;
#pragma omp parallel for schedule(static) reduction(| : gaps)
  for (int64_t t = 0; t < tiles(state); t++) gaps |= list_rows(state, t);
  return gaps;
}

/* The same where the matrix is. */
static int fill_rows_there(struct state *state, const struct cb_remote_columns *remote) {
  struct cb_row_ends *there = &state->there;
  *there = (struct cb_row_ends){.units = state->unit + state->long_units,
                                .units_count = tiles(state),
                                .items = state->items,
                                .first_row = state->first_row,
                                .row_count = state->row_count,
                                .first_end = state->first_end};
  return remote->row_ends(remote->user, there, NULL) ? -1 : there->gaps;
}

static void build_rows(struct cb_region_builder *builder, struct state *state) {
  static const char *const names[] = {"descriptor", "row_offset"};
  static const char *const meanings[] = {
      "of a lane: kItems bits, set where rows end; above them, rows that end in earlier lanes",
      "row of a row end, from its chunk's first row"};
  const struct cb_remote_columns *remote = state->csr->remote;
  const int far = remote && remote->row_ends, ready = alloc_chunks(state);
  const int gaps = !ready ? -1 : far ? fill_rows_there(state, remote) : fill_rows(state);
  const int64_t count = chunks(state);
  state->gaps = gaps > 0;
  builder->failed |= gaps < 0;
  if (builder->failed) return;
  if (far) cb_region_remote(builder, names[0], meanings[0], &state->there.descriptor);
  else cb_region_list(builder, names[0], meanings[0], count * LANES, state->descriptor);
  cb_region_list(builder, "row_count", "rows that end in a chunk", count, state->row_count);
  cb_region_list(builder, "first_row", "the first row that ends in a chunk", count, state->first_row);
  if (!gaps) return;
  cb_region_list(builder, "first_end", "row ends before a chunk", count, state->first_end);
  if (far) cb_region_remote(builder, names[1], meanings[1], &state->there.row_offset);
  else cb_region_list(builder, names[1], meanings[1], state->first_end[count], state->row_offset);
  cb_region_section(builder, "gaps");
}

/* ---- the region: needs all of the above; adds arrays and sections */

static uint64_t first_step(const void *user, int64_t t) {
  const struct state *state = user;
  return (uint64_t)slots_before(state, state->long_units + t) / LANES;
}

static void build_tiles(struct cb_region_builder *builder, struct state *state) {
  cb_region_structure(builder, "kItems", state->items, "plan: nonzeros of a lane");
  cb_region_computed(builder, "first_step", "steps of 32 slots before a tile", tiles(state) + !state->padded, first_step);
  build_rows(builder, state);
  cb_region_section(builder, "tiles");
  if (state->padded) cb_region_section(builder, "padded");
  builder->region.static_shared +=
      WARPS * (chunk_size(state) + 1) * (int64_t)cb_type_size(builder->sum_type) + WARPS * 4;
}

static uint64_t long_slot(const void *user, int64_t u) {
  const struct state *state = user;
  return (uint64_t)(u < state->long_units ? state->unit[u].slot : state->long_slots);
}

static uint64_t long_row(const void *state, int64_t u) {
  return (uint64_t)((const struct state *)state)->unit[u].row;
}

static void build_long(struct cb_region_builder *builder, const struct state *state) {
  cb_region_computed(builder, "long_slot", "first slot of a long row (or row segment); one more",
                     state->long_units + 1, long_slot);
  cb_region_computed(builder, "long_row", "a long row", state->long_units, long_row);
  cb_region_carries_by(builder, "cut", state->cut_segments, long_row, "plan: thread blocks that have a row segment");
  cb_region_section(builder, "long");
  builder->region.static_shared += WARPS * (int64_t)cb_type_size(builder->sum_type);
}

/* Of those that are this region's to write. */
static int is_empty(const void *user, int64_t row) {
  const struct state *state = user;
  return !cb_csr_row_length(state->csr, row) && cb_owns(state->own_rows, row);
}

/* Rows without nonzeros are written when the region owes them to y. Adding nothing needs no writing; but a region needs
 * some text, and other semirings than plus-times make of what y holds one of their own numbers. */
static int writes_empty_rows(const struct cb_region_builder *builder, const struct state *state) {
  if (builder->commit != CB_COMMIT_FINAL) return 0;
  return builder->options->form != CB_FORM_ADD || builder->options->semiring != CB_PLUS_TIMES || !state->csr->nnz;
}

/* Their list: here, or where the matrix is. */
static void find_empty(struct cb_region_builder *builder, struct state *state, const int32_t **rows,
                       struct cb_remote_list *there) {
  const struct cb_remote_columns *remote = state->csr->remote;
  *rows = NULL;
  if (!remote || !remote->empty_rows || state->own_rows) {
    *rows = cb_rows_where(&state->arena, state->csr->rows, is_empty, state, &state->empty_rows);
    builder->failed |= !*rows;
    return;
  }
  builder->failed |= remote->empty_rows(remote->user, there, NULL) != CB_OK;
  state->empty_rows = builder->failed ? 0 : there->count;
}

static void build_empty(struct cb_region_builder *builder, struct state *state) {
  static const char name[] = "empty_row", meaning[] = "rows without nonzeros";
  struct cb_remote_list there;
  const int32_t *rows;
  if (!writes_empty_rows(builder, state)) return;
  find_empty(builder, state, &rows, &there);
  if (builder->failed || !state->empty_rows) return;
  cb_region_section(builder, "empty");
  state->blocks = cb_larger(state->blocks, cb_divide_up(state->empty_rows, ZEROS));
  if (rows) cb_region_list(builder, name, meaning, state->empty_rows, rows);
  else cb_region_remote(builder, name, meaning, &there);
  cb_region_size(builder, "kEmptyRows", state->empty_rows, "matrix: rows without nonzeros");
  cb_region_size(builder, "kBlocks", state->blocks, "plan: thread blocks of this region");
  cb_region_fact(builder, "empty", "%lld", (long long)state->empty_rows);
}

/* Who does what: thread blocks of long rows first, then tiles, then those that write empty rows alone. */
static void build_dispatch(struct cb_region_builder *builder, const struct state *state) {
  const int both = state->long_units && tiles(state), idle = state->units && state->blocks > state->units;
  if (both) cb_region_size(builder, "kLongBlocks", state->long_units, "plan: thread blocks of long rows");
  if (idle) cb_region_size(builder, "kBusyBlocks", state->units, "plan: thread blocks that have nonzeros");
  if (both) cb_region_section(builder, "both");
  if (idle) cb_region_section(builder, "idle");
}

/* Beside few tiles the kernel behind has room: 39 thread blocks (Maragal_4) take 1.51 for 1.60 us, 82 1.64 for 1.69,
 * but 113 (mip_dano3mip) 2.35 for 1.97. Long rows keep their multiprocessors, and what comes to these waits: a power
 * law of 30000 rows takes 5.4 us for 3.6. */
static enum cb_next choose_next(const struct state *state) {
  enum { EARLY_BLOCKS = 90 };
  if (!state->long_units && state->blocks <= EARLY_BLOCKS) return CB_NEXT_AT_ONCE;
  return state->blocks <= CB_LATE_BLOCKS ? CB_NEXT_BEHIND : CB_NEXT_AT_END;
}

/* Thread blocks of a multiprocessor that leave 64 registers, and 48. */
enum { WITH_64 = 4, WITH_48 = 5, WITH_40 = 6 };

/* Padded tiles of three items beside long rows, in double precision: 40 registers hold them, but not the loads of long
 * rows. Those of few thread blocks take 16 % less with 64 (mip_air03 1.95 us for 2.31), others with 48 (R-MAT 14, 324
 * of them, 3.5 for 3.6; with 32 edges a row 4.1 for 4.4). */
static int is_short_beside_long(const struct cb_region_builder *builder, const struct state *state) {
  return builder->sum_type == CB_F64 && state->items == 3 && state->padded && state->long_units && tiles(state);
}

/* Whether so many thread blocks on a multiprocessor leave room for as many of the kernel behind. */
static int leave_room(const struct cb_region_builder *builder, const struct state *state, int blocks_per_sm) {
  return 2 * state->blocks <= (int64_t)blocks_per_sm * builder->target->multiprocessors;
}

/* Registers for a lane's loads: 40, 48 or 64. A padded tile's begin before anything is known of the chunk, so what is
 * looked up meanwhile is in registers, too; beside the text of long rows, compilers find none left for it in 40. */
static int choose_blocks_per_sm(const struct cb_region_builder *builder, const struct state *state) {
  enum { LOOK_UP = 3 };
  if (is_short_beside_long(builder, state)) return leave_room(builder, state, WITH_64) ? WITH_64 : WITH_48;
  const int meanwhile = state->padded && state->long_units ? LOOK_UP : 0;
  const int64_t words = state->items * (1 + (int64_t)cb_type_size(builder->sum_type) / 4) + meanwhile;
  return words <= 21 ? WITH_40 : words <= 27 && !cb_region_is_wide(builder) ? WITH_48 : WITH_64;
}

/* A family's registers are structure: where they hang on the number of thread blocks there are two families, of tiles
 * that the library brings both for. */
static int has_two_families(const struct state *state) {
  return tiles(state) && state->padded && !state->gaps && state->largest_offset <= UINT16_MAX;
}

/* Beside five items 64 registers hold what a family looks up for long rows, too: pace21_ce_heur185 takes 4 % less. But
 * thread blocks of the kernel behind, which starts early, may find no room then: mip_nw04, 324 thread blocks, takes
 * 4.90 us with 64 registers and 4.35 with 48; those that do not start it early take 10 % more with 48
 * (pace21_ce_heur185, R-MAT 15). Beside three, mip_air03 takes 2.0 for 2.4 us, and where there are many R-MAT 14 8 %
 * more. 0: as the region's. */
static int family_blocks_per_sm(const struct cb_region_builder *builder, const struct state *state) {
  const int is_tight = has_two_families(state) && !leave_room(builder, state, WITH_64);
  if (is_short_beside_long(builder, state)) return has_two_families(state) && !is_tight ? WITH_64 : WITH_40;
  if (builder->sum_type != CB_F64 || state->items != 5) return 0;
  return is_tight && state->blocks <= CB_LATE_BLOCKS ? WITH_48 : WITH_64;
}

/* A batch of a long row's loads takes registers that complex numbers do not leave, nor families beside tiles in 40
 * (lp_osa_14 takes 6 % more without conditions, bibd_17_8 10 and pace21_ce_heur185 9 % less in 64). */
static void guard_long_rows(struct cb_region_builder *builder, const struct state *state) {
  const int own = builder->region.family.blocks_per_sm;
  const int is_tight = own ? own == WITH_40 : choose_blocks_per_sm(builder, state) > WITH_64;
  if (cb_type_size(builder->sum_type) > sizeof(double)) cb_region_section(builder, "guarded");
  else if (is_tight) cb_region_family_with(builder, "guarded");
}

/* One text for tiles, with or without empty rows; one for tiles beside long rows, cut or not. */
static void build_family(struct cb_region_builder *builder, const struct state *state) {
  cb_region_family_with(builder, "empty");
  cb_region_family_size(builder, "kEmptyRows", 0);
  cb_region_family_size(builder, "kBlocks", state->blocks);
  cb_region_family_sequence(builder, "empty_row", 0, 0);
  cb_region_family_with(builder, "idle");
  cb_region_family_size(builder, "kBusyBlocks", state->units);
  if (!state->long_units) return;
  builder->region.family.blocks_per_sm = family_blocks_per_sm(builder, state);
  guard_long_rows(builder, state);
  cb_region_family_with(builder, "cut");
  cb_region_family_size(builder, "kSegments", 0);
  cb_region_family_sequence(builder, "carry_group", 0, 0);
  cb_region_family_sequence(builder, "carry_first", 0, 0);
}

static void build_region(struct cb_region_builder *builder, struct state *state) {
  state->blocks = state->units;
  cb_region_fact(builder, "tiles", "%lld", (long long)tiles(state));
  if (tiles(state)) cb_region_fact(builder, "items", "%d", state->items);
  if (tiles(state) && state->padded) cb_region_fact(builder, "padded", "yes");
  if (state->long_units) cb_region_fact(builder, "long", "%lld", (long long)state->long_units);
  if (state->units) cb_region_section(builder, "some");
  if (state->csr->nnz) build_columns(builder, state);
  if (tiles(state)) build_tiles(builder, state);
  if (state->long_units) build_long(builder, state);
  build_empty(builder, state);
  build_dispatch(builder, state);
  build_family(builder, state);
  builder->region.blocks = state->blocks;
  builder->region.blocks_per_sm = choose_blocks_per_sm(builder, state);
  builder->region.takes_vectors = 1;
  builder->region.sharing = CB_SHARING_TURNS;
  builder->region.late = state->units ? CB_LATE_ALONE : CB_LATE_NEVER;
  builder->region.next = choose_next(state);
  builder->region.may_start_next = !state->long_units;
  cb_region_family_size(builder, "next_start", builder->region.next);
  builder->region.staged_parts = WARPS;
}

/* ---- cost */

/* Thread blocks take units in their order; lanes of a load take neighbours. */
static struct cb_unit unit_of(const struct state *state, int64_t thread_block) {
  return thread_block < state->units ? state->unit[thread_block] : (struct cb_unit){0};
}

static int64_t sector_stretches(const void *user, int64_t thread_block, struct cb_stretch *stretches) {
  const struct cb_unit unit = unit_of(user, thread_block);
  if (stretches) *stretches = (struct cb_stretch){unit.begin, unit.end - unit.begin};
  return 1;
}

static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const struct cb_unit unit = unit_of(user, thread_block);
  const int32_t *columns = cb_sector_columns(sink, 0, unit.begin);
  for (int64_t k = 0; k < unit.end - unit.begin; k++) {
    if (k % LANES == 0) cb_sector_load(sink);
    cb_sector_ask(sink, columns[k]);
  }
}

/* Of long rows, batches of the longest segment or whole row, one after the other. */
static int64_t long_chain_ns(const struct state *state) {
  int64_t longest = 0;
  for (int64_t u = 0; u < state->long_units; u++)
    longest = cb_larger(longest, state->unit[u].end - state->unit[u].begin);
  return longest ? cb_divide_up(longest, SEGMENT) * CB_COST_BATCH_NS + CB_COST_MERGE_LOOK_UP_NS : 0;
}

/* A tile is one batch of loads, and adding up takes longer than that; long rows are batches one after the other, and
 * their segments wait for the last. Measured on the H200. */
static enum cb_status predict(struct cb_region_builder *builder, const struct state *state, struct cb_diag *diag) {
  struct cb_cost *cost = &builder->region.cost;
  const int64_t tile_ns = tiles(state) ? CB_COST_BATCH_NS + (state->padded ? 0 : CB_COST_MERGE_LOOK_UP_NS) : 0;
  cost->chain_ns = cb_larger(long_chain_ns(state), tile_ns);
  cost->tail_ns = state->cut_segments ? CB_COST_CARRY_MERGE_NS : tiles(state) ? CB_COST_MERGE_ROWS_NS : 0;
  cost->stream_percent = CB_COST_MERGE_PERCENT;
  /* finding the ends of rows and storing them, in picoseconds on 132 multiprocessors; and of each further vector,
   * fitted to eight in double precision: 1.5 M rows with one nonzero each in the median, 1 M with 16, R-MAT 20 */
  const int64_t multiprocessors = builder->target->multiprocessors;
  cost->work_ns = (state->csr->rows * 9 + state->csr->nnz * 3 / 2) * 132 / multiprocessors / 1000;
  builder->region.further_ns = (state->csr->rows * 10 / 3 + state->csr->nnz * 7 / 4) * 132 / multiprocessors / 1000;
  builder->region.turn_ns = cost->tail_ns;
  return cb_sectors_predict_by_stretch(builder, state, visit_sectors, sector_stretches, diag);
}

/* Shared memory has each product of a tile: of several vectors a piece, of 16 bytes as are double complex numbers. */
static enum cb_status check_items(const struct cb_region_builder *builder, struct cb_diag *diag) {
  enum { MOST_ITEMS = 11 };
  const int several = builder->options->vectors > 1;
  if (builder->settings[MERGE_ITEMS] <= MOST_ITEMS || (!several && cb_type_size(builder->sum_type) < 16)) return CB_OK;
  return cb_fail(diag, CB_ERR_UNSUPPORTED,
                 "option 'merge-items' is %lld, but for %s shared memory has room for %d at most",
                 (long long)builder->settings[MERGE_ITEMS], several ? "several vectors" : "double complex numbers", MOST_ITEMS);
}

static enum cb_status merge_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  const struct cb_csr *csr = builder->work.part.csr;
  enum cb_status s = check_items(builder, diag);
  if (!s) s = cb_region_state(builder, sizeof(struct state), diag);
  struct state *state = builder->work.state;
  if (s) return s;
  state->csr = csr;
  state->own_rows = builder->own_rows;
  state->items = choose_items(csr, builder);
  if (!add_long_rows(state, builder->settings) || !add_tiles(state))
    return cb_fail_memory(diag, "tiles", (uint64_t)csr->nnz / (uint64_t)tile_size(state) * sizeof *state->unit);
  place_tiles(state, builder->settings);
  builder->work.units = state->units;
  build_region(builder, state);
  state->own_rows = NULL;
  return predict(builder, state, diag);
}

/* ---- packing on the device: templates/pack_merge.cu.in has the same numbers and lists */

_Static_assert(sizeof(struct cb_unit) == 32, "four words of 64 bits, as the kernels have it (templates/rows.cu.in, too)");

static void describe(const void *user, struct cb_pack_lists *lists) {
  enum { UNITS, LONG_UNITS, SLOTS, STEPS_OF_WARP };
  enum { STEPS = 8 }; /* of 32 slots */
  const struct state *state = user;
  *lists = (struct cb_pack_lists){
      .numbers = {[UNITS] = state->units, [LONG_UNITS] = state->long_units, [SLOTS] = state->slots,
                  [STEPS_OF_WARP] = STEPS},
      .lists = {{state->unit, state->units * (int64_t)sizeof *state->unit},
                {state->first_column, state->units * (int64_t)sizeof *state->first_column}},
      .warps = cb_divide_up(state->slots, STEPS * LANES),
  };
}

/* For reports. */
static void count_loads(const void *user, int64_t *nonzeros) {
  const struct state *state = user;
  for (int64_t u = 0; u < state->units; u++) nonzeros[u] += state->unit[u].end - state->unit[u].begin;
}

/* For reports. */
static int64_t block_of(const void *user, struct cb_met met) {
  (void)user;
  return met.unit;
}

const struct cb_layout cb_layout_merge = {
    .name = "merge",
    .summary = "equal shares of nonzeros for all lanes; a bit for each says where rows end",
    .source = "MERBIT; merge-based SpMV: Merrill, Garland, SC 2016",
    .options = cb_merge_options,
    .options_count = MERGE_OPTIONS,
    .recipes = cb_merge_recipes,
    .plan = merge_plan,
    .has_family = 1,
    .visit = merge_visit,
    .unit = "thread block",
    .block_of = block_of,
    .count_loads = count_loads,
    .describe = describe,
    .least = {.bytes = 2, .percent = CB_COST_MERGE_PERCENT},
    .minds_own_rows = 1,
};
