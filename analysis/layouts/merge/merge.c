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
#include "analysis/ordering.h"
#include "analysis/plan/cost_figures.h"
#include "analysis/sectors.h"
#include "base/integers.h"

#include <string.h>

enum {
  WARPS = 8,
  LANES = 32,
  THREADS = WARPS * LANES,
  LONG_BATCH = 8,                 /* nonzeros of a long row that a thread loads together, as in the text */
  SEGMENT = THREADS * LONG_BATCH, /* a segment is one batch for each thread */
  WHOLE = 3 * SEGMENT,            /* two batches more take less time than a carry */
  ZEROS = 8 * THREADS,            /* empty rows of a thread block */
  NARROW = 1 << 16                /* columns that two bytes tell apart */
};

/* Nonzeros begin … end - 1 of the part. */
struct tile {
  int64_t begin, end;
  int32_t row; /* the first */
};

/* A long row, or a segment of one. Slots of segments follow one another, in front of all tiles. */
struct segment {
  int64_t begin, end;
  int64_t slot; /* of the first */
  int32_t row;
};

struct state {
  struct cb_arena arena;
  const struct cb_csr *csr;
  int items; /* nonzeros of a lane; odd */
  int padded;
  struct tile *tiles;
  int64_t tiles_count;
  struct segment *segments; /* cut rows first */
  uint32_t *segment_number; /* by segment: which of its row */
  int64_t segments_count, cut_segments;
  int64_t *first_step; /* by tile: steps of 32 slots before it; tiles + 1 */
  int64_t long_slots;
  uint32_t *tile_column, *segment_column; /* first columns, from which those of slots are told; or all 0 */
  int64_t least_offset, largest_offset; /* of a nonzero's column, from there */
  /* row ends of tiles, in the order of tiles */
  uint32_t *descriptor;            /* by lane of a chunk */
  uint32_t *first_row, *row_count; /* by chunk */
  uint32_t *first_end;             /* by chunk: row ends before it; chunks + 1 */
  uint32_t *row_offset;            /* by row end: its row, from its chunk's first row */
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

static int64_t chunks(const struct state *state) {
  return WARPS * state->tiles_count;
}

/* Nonzeros per lane: few while that keeps all multiprocessors busy with several thread blocks each. */
static int choose_items(const struct cb_csr *csr, const int64_t *settings,
                        const struct cb_target *target) {
  if (settings[MERGE_ITEMS]) return (int)settings[MERGE_ITEMS];
  const int64_t share = csr->nnz / (THREADS * (int64_t)target->multiprocessors);
  return share <= 12 ? 3 : share <= 28 ? 5 : 7;
}

/* ---- tiles: needs items; adds tiles */

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

/* Rows in order, as many as fit; a long row ends a tile, so that the nonzeros of one lie side by side. */
static int cut_tiles(struct state *state) {
  const struct cb_csr *csr = state->csr;
  const int64_t most = tile_size(state);
  for (int64_t row = 0, begin = 0; begin < csr->nnz;) {
    row = row_of(csr, row, begin); /* begins there, too */
    if (cb_csr_row_length(csr, row) > most) { /* is no tile's */
      begin = cb_csr_row(csr, row + 1);
      continue;
    }
    const int64_t next = begin + most < csr->nnz ? row_of(csr, row, begin + most) : csr->rows;
    state->tiles = cb_arena_grow(&state->arena, state->tiles, state->tiles_count, sizeof *state->tiles);
    if (!state->tiles) return 0;
    state->tiles[state->tiles_count++] = (struct tile){begin, cb_csr_row(csr, next), (int32_t)row};
    begin = cb_csr_row(csr, next);
  }
  return 1;
}

/* Of those that are this region's to write. */
static int is_empty(const void *user, int64_t row) {
  const struct state *state = user;
  return !cb_csr_row_length(state->csr, row) && cb_owns(state->own_rows, row);
}

/* ---- long rows: needs items; adds segments, long_slots */

/* Segments of equal length, up to 31 nonzeros, of one row. */
static int64_t segments_of(int64_t length, int64_t segment) {
  return length > segment ? cb_divide_up(length, segment) : 1;
}

/* All but the last end at a multiple of a warp's lanes. */
static void cut_row(struct state *state, int64_t row, int64_t count, int64_t at) {
  const int64_t begin = cb_csr_row(state->csr, row), length = cb_csr_row_length(state->csr, row);
  for (int64_t i = 0; i < count; i++) {
    const int64_t first = length * i / count / LANES * LANES;
    const int64_t end = i + 1 < count ? length * (i + 1) / count / LANES * LANES : length;
    state->segments[at + i] = (struct segment){begin + first, begin + end, state->long_slots, (int32_t)row};
    state->segment_number[at + i] = (uint32_t)i;
    state->long_slots += end - first;
  }
}

/* Segments of the long rows that are cut, or those that are not; only counts them while there is no list. */
static int64_t add_segments(struct state *state, const int64_t *settings, const int32_t *rows, int64_t count, int cut,
                            int64_t at) {
  const struct cb_csr *csr = state->csr;
  const int64_t whole = settings[MERGE_PIECE] ? settings[MERGE_PIECE] : WHOLE;
  const int64_t most = settings[MERGE_PIECE] ? settings[MERGE_PIECE] : SEGMENT;
  for (int64_t i = 0; i < count; i++) {
    const int64_t length = cb_csr_row_length(csr, rows[i]);
    if ((length > whole) != cut) continue;
    const int64_t segments = cut ? segments_of(length, most) : 1;
    if (state->segments) cut_row(state, rows[i], segments, at);
    at += segments;
  }
  return at;
}

static int is_long(const void *state, int64_t row) {
  return cb_csr_row_length(((const struct state *)state)->csr, row) > tile_size(state);
}

static int cut_long_rows(struct state *state, const int64_t *settings) {
  struct cb_arena scratch = {0};
  int64_t count = 0;
  const int32_t *rows = cb_rows_where(&scratch, state->csr->rows, is_long, state, &count);
  if (rows) {
    state->cut_segments = add_segments(state, settings, rows, count, 1, 0);
    state->segments_count = add_segments(state, settings, rows, count, 0, state->cut_segments);
    state->segment_number = cb_arena_alloc(&state->arena, (size_t)state->segments_count, sizeof *state->segment_number);
    state->segments = cb_arena_alloc(&state->arena, (size_t)state->segments_count, sizeof *state->segments);
  }
  if (state->segments) {
    add_segments(state, settings, rows, count, 1, 0);
    add_segments(state, settings, rows, count, 0, state->cut_segments);
  }
  cb_arena_release(&scratch);
  return state->segments != NULL;
}

/* ---- slots: needs tiles and segments; adds padded, first_step */

/* Padded: when it costs next to nothing, or when the matrix is small and latency counts more than bytes. */
static int choose_padded(const struct state *state, const int64_t *settings) {
  enum { SMALL = 1 << 20 };
  if (settings[MERGE_PAD] != CB_AUTO) return settings[MERGE_PAD] == CB_ON;
  const int64_t nonzeros = state->csr->nnz - state->long_slots;
  const int64_t waste = state->tiles_count * tile_size(state) - nonzeros;
  return waste * 32 <= nonzeros || (nonzeros < SMALL && waste * 2 <= nonzeros);
}

static int place_tiles(struct state *state, const int64_t *settings) {
  state->padded = choose_padded(state, settings);
  state->first_step = cb_arena_alloc(&state->arena, (size_t)state->tiles_count + 1, sizeof *state->first_step);
  if (!state->first_step) return 0;
  int64_t step = cb_divide_up(state->long_slots, LANES);
  for (int64_t t = 0; t < state->tiles_count; t++) {
    state->first_step[t] = step;
    const int64_t slots = state->padded ? tile_size(state) : state->tiles[t].end - state->tiles[t].begin;
    step += cb_divide_up(slots, LANES);
  }
  if (step > INT32_MAX / LANES - tile_size(state))
    step += tile_size(state); /* no index of a guarded load overflows */
  state->first_step[state->tiles_count] = step;
  return 1;
}

static int64_t slots(const struct state *state) {
  return state->first_step[state->tiles_count] * LANES;
}

/* ---- columns: needs slots; adds tile_column, segment_column and the range of offsets */

static int64_t tile_end_row(const struct state *state, int64_t t) {
  int64_t row = state->tiles[t].row;
  while (row < state->csr->rows && cb_csr_row(state->csr, row) < state->tiles[t].end) row++;
  return row;
}

struct columns {
  int64_t least, most;
};

static const struct columns no_columns = {INT64_MAX, -1};

/* Of a tile: rows are sorted. */
static struct columns tile_columns(const struct state *state, int64_t t) {
  const struct cb_csr *csr = state->csr;
  const int64_t end_row = tile_end_row(state, t);
  struct columns range = no_columns;
  for (int64_t row = state->tiles[t].row; row < end_row; row++) {
    if (!cb_csr_row_length(csr, row)) continue;
    range.least = cb_smaller(range.least, csr->col_idx[cb_csr_row(csr, row)]);
    range.most = cb_larger(range.most, csr->col_idx[cb_csr_row(csr, row + 1) - 1]);
  }
  return range;
}

static struct columns segment_columns(const struct state *state, int64_t p) {
  const struct segment *segment = &state->segments[p];
  return (struct columns){state->csr->col_idx[segment->begin], state->csr->col_idx[segment->end - 1]};
}

/* Of all of them; their first columns in `first`. Returns the largest distance of a column from its first. */
static int64_t measure(const struct state *state, struct columns (*columns_of)(const struct state *, int64_t),
                       int64_t count, uint32_t *first, struct columns *all) {
  int64_t least = all->least, most = all->most, widest = 0;
#pragma omp parallel for schedule(static) reduction(min : least) reduction(max : most, widest)
  for (int64_t i = 0; i < count; i++) {
    const struct columns range = columns_of(state, i);
    first[i] = (uint32_t)range.least;
    least = cb_smaller(least, range.least);
    most = cb_larger(most, range.most);
    widest = cb_larger(widest, range.most - range.least);
  }
  *all = (struct columns){least, most};
  return widest;
}

/* First columns of tiles and of segments, if they make all offsets fit two bytes, and all columns do not anyway. */
static int choose_bases(struct state *state) {
  struct columns all = no_columns;
  state->tile_column = cb_arena_alloc(&state->arena, (size_t)state->tiles_count, sizeof *state->tile_column);
  state->segment_column = cb_arena_alloc(&state->arena, (size_t)state->segments_count, sizeof *state->segment_column);
  if (!state->tile_column || !state->segment_column) return 0;
  const int64_t in_tile = measure(state, tile_columns, state->tiles_count, state->tile_column, &all);
  const int64_t in_segment = measure(state, segment_columns, state->segments_count, state->segment_column, &all);
  const int64_t widest = cb_larger(in_tile, in_segment);
  state->least_offset = 0;
  state->largest_offset = widest;
  if (state->csr->cols > NARROW && widest < NARROW) return 1;
  state->least_offset = all.least;
  state->largest_offset = all.most;
  memset(state->tile_column, 0, (size_t)state->tiles_count * sizeof *state->tile_column);
  memset(state->segment_column, 0, (size_t)state->segments_count * sizeof *state->segment_column);
  return 1;
}

static void visit_segment(const struct state *state, int64_t p, const struct cb_walk *walk) {
  const struct segment *segment = &state->segments[p];
  for (int64_t k = segment->begin; k < segment->end; k++)
    cb_emit(walk, segment->slot + k - segment->begin, k, (uint32_t)state->csr->col_idx[k] - state->segment_column[p]);
}

/* Padding repeats the last column. */
static void visit_tile(const struct state *state, int64_t t, const struct cb_walk *walk) {
  const struct tile *tile = &state->tiles[t];
  const int64_t first = state->first_step[t] * LANES, end = state->first_step[t + 1] * LANES;
  const int32_t *column = state->csr->col_idx;
  for (int64_t k = tile->begin; k < tile->end; k++)
    cb_emit(walk, first + k - tile->begin, k, (uint32_t)column[k] - state->tile_column[t]);
  for (int64_t slot = first + tile->end - tile->begin; slot < end; slot++)
    cb_emit_element(walk, slot, (uint32_t)column[tile->end - 1] - state->tile_column[t]);
}

/* Segments, then tiles, as thread blocks take them. */
static int merge_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *walk) {
  const struct state *state = user;
  for (int64_t unit = first; unit < end; unit++) {
    if (unit < state->segments_count) visit_segment(state, unit, walk);
    else visit_tile(state, unit - state->segments_count, walk);
  }
  return 1;
}

static void build_columns(struct cb_region_builder *builder, struct state *state) {
  builder->failed |= !choose_bases(state);
  if (builder->failed) return;
  if (state->tiles_count)
    cb_region_list(builder, "first_column", "a tile's first column", state->tiles_count, state->tile_column);
  if (state->segments_count)
    cb_region_list(builder, "long_column", "a long row's (or row segment's) first column", state->segments_count,
                   state->segment_column);
  cb_region_by_slot(
      builder, "column_offset", "column of a slot, from the first of its tile or long row",
      (struct cb_slot_elements){.count = slots(state), .least = state->least_offset, .largest = state->largest_offset});
  cb_region_values(builder, "values", "in the order of slots", slots(state));
}

/* ---- rows of tiles: needs tiles; adds their row ends */

/* Flags of a tile's lanes, row ends per chunk and each chunk's first row. */
static void describe_ends(struct state *state, int64_t t) {
  const struct tile *tile = &state->tiles[t];
  const int64_t end_row = tile_end_row(state, t);
  uint32_t *flags = state->descriptor + t * THREADS;
  for (int64_t row = tile->row; row < end_row; row++) {
    if (!cb_csr_row_length(state->csr, row)) continue;
    const int64_t last = cb_csr_row(state->csr, row + 1) - 1 - tile->begin;
    const int64_t chunk = t * WARPS + last / chunk_size(state);
    flags[last / state->items] |= 1u << last % state->items;
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
  const int64_t end_row = tile_end_row(state, t);
  int64_t chunk = t * WARPS, at = state->first_end[chunk];
  int gaps = 0;
  for (int64_t row = state->tiles[t].row; row < end_row; row++) {
    if (!cb_csr_row_length(state->csr, row)) continue;
    while (at == state->first_end[chunk + 1]) chunk++;
    state->row_offset[at] = (uint32_t)row - state->first_row[chunk];
    gaps |= state->row_offset[at] != at - state->first_end[chunk];
    at++;
  }
  return gaps;
}

/* Whether there are gaps; -1: no memory. */
static int fill_rows(struct state *state) {
  const size_t count = (size_t)chunks(state);
  int gaps = 0;
  state->descriptor = cb_arena_alloc(&state->arena, count * LANES, sizeof *state->descriptor);
  state->first_row = cb_arena_alloc(&state->arena, count, sizeof *state->first_row);
  state->row_count = cb_arena_alloc(&state->arena, count, sizeof *state->row_count);
  state->first_end = cb_arena_alloc(&state->arena, count + 1, sizeof *state->first_end);
  if (state->arena.failed) return -1;
#pragma omp parallel for schedule(static)
  for (int64_t t = 0; t < state->tiles_count; t++) describe_ends(state, t);
  for (size_t c = 0; c < count; c++) state->first_end[c + 1] = state->first_end[c] + state->row_count[c];
  state->row_offset = cb_arena_alloc(&state->arena, state->first_end[count], sizeof *state->row_offset);
  if (!state->row_offset) return -1;
#pragma omp parallel for schedule(static) reduction(| : gaps)
  for (int64_t t = 0; t < state->tiles_count; t++) gaps |= list_rows(state, t);
  return gaps;
}

static void build_rows(struct cb_region_builder *builder, struct state *state) {
  const int gaps = fill_rows(state);
  const int64_t count = chunks(state);
  builder->failed |= gaps < 0;
  if (builder->failed) return;
  cb_region_list(builder, "descriptor",
                 "of a lane: kItems bits, set where rows end; above them, rows that end in earlier lanes",
                 count * LANES, state->descriptor);
  cb_region_list(builder, "row_count", "rows that end in a chunk", count, state->row_count);
  cb_region_list(builder, "first_row", "the first row that ends in a chunk", count, state->first_row);
  if (!gaps) return;
  cb_region_list(builder, "first_end", "row ends before a chunk", count, state->first_end);
  cb_region_list(builder, "row_offset", "row of a row end, from its chunk's first row", state->first_end[count],
                 state->row_offset);
  cb_region_section(builder, "gaps");
}

/* ---- the region: needs all of the above; adds arrays and sections */

static void build_tiles(struct cb_region_builder *builder, struct state *state) {
  cb_region_structure(builder, "kItems", state->items, "plan: nonzeros of a lane");
  cb_region_list(builder, "first_step", "steps of 32 slots before a tile", state->tiles_count + !state->padded,
                 state->first_step);
  build_rows(builder, state);
  cb_region_section(builder, "tiles");
  if (state->padded) cb_region_section(builder, "padded");
  builder->region.static_shared +=
      WARPS * (chunk_size(state) + 1) * (int64_t)cb_type_size(builder->vector_type) + WARPS * 4;
}

static uint64_t long_slot(const void *user, int64_t p) {
  const struct state *state = user;
  return (uint64_t)(p < state->segments_count ? state->segments[p].slot : state->long_slots);
}

static uint64_t long_row(const void *state, int64_t p) {
  return (uint64_t)((const struct state *)state)->segments[p].row;
}

static void build_long(struct cb_region_builder *builder, const struct state *state) {
  cb_region_computed(builder, "long_slot", "first slot of a long row (or row segment); one more",
                     state->segments_count + 1, long_slot);
  cb_region_computed(builder, "long_row", "a long row", state->segments_count, long_row);
  cb_region_carries(builder, "cut", state->cut_segments, state->segment_number,
                    "plan: thread blocks that have a row segment");
  cb_region_section(builder, "long");
  builder->region.static_shared += WARPS * (int64_t)cb_type_size(builder->vector_type);
}

/* Rows without nonzeros are written when the region owes them to y. Adding nothing needs no writing; but a region needs
 * some text. */
static int writes_empty_rows(const struct cb_region_builder *builder, const struct state *state) {
  if (builder->commit != CB_COMMIT_FINAL) return 0;
  return builder->options->form != CB_FORM_ADD || !state->csr->nnz;
}

static void build_empty(struct cb_region_builder *builder, struct state *state) {
  if (!writes_empty_rows(builder, state)) return;
  const int32_t *rows = cb_rows_where(&state->arena, state->csr->rows, is_empty, state, &state->empty_rows);
  builder->failed |= !rows;
  if (!state->empty_rows) return;
  cb_region_section(builder, "empty");
  state->blocks = cb_larger(state->blocks, cb_divide_up(state->empty_rows, ZEROS));
  cb_region_list(builder, "empty_row", "rows without nonzeros", state->empty_rows, rows);
  cb_region_size(builder, "kEmptyRows", state->empty_rows, "matrix: rows without nonzeros");
  cb_region_size(builder, "kBlocks", state->blocks, "plan: thread blocks of this region");
  cb_region_fact(builder, "empty", "%lld", (long long)state->empty_rows);
}

/* Who does what: thread blocks of long rows first, then tiles, then those that write empty rows alone. */
static void build_dispatch(struct cb_region_builder *builder, const struct state *state) {
  const int64_t work = state->segments_count + state->tiles_count;
  const int both = state->segments_count && state->tiles_count, idle = work && state->blocks > work;
  if (both) cb_region_size(builder, "kLongBlocks", state->segments_count, "plan: thread blocks of long rows");
  if (idle) cb_region_size(builder, "kBusyBlocks", work, "plan: thread blocks that have nonzeros");
  if (both) cb_region_section(builder, "both");
  if (idle) cb_region_section(builder, "idle");
}

/* Registers for a lane's loads: 40, 48 or 64. A padded tile's begin before anything is known of the chunk, so what is
 * looked up meanwhile is in registers, too; beside the text of long rows, compilers find none left for it in 40. */
static int choose_blocks_per_sm(const struct cb_region_builder *builder, const struct state *state) {
  enum { LOOK_UP = 3 };
  const int meanwhile = state->padded && state->segments_count ? LOOK_UP : 0;
  const int64_t words = state->items * (1 + (int64_t)cb_type_size(builder->vector_type) / 4) + meanwhile;
  return words <= 21 ? 6 : words <= 27 ? 5 : 4;
}

static void build_region(struct cb_region_builder *builder, struct state *state) {
  state->blocks = state->segments_count + state->tiles_count;
  cb_region_fact(builder, "tiles", "%lld", (long long)state->tiles_count);
  if (state->tiles_count) cb_region_fact(builder, "items", "%d", state->items);
  if (state->tiles_count && state->padded) cb_region_fact(builder, "padded", "yes");
  if (state->segments_count) cb_region_fact(builder, "long", "%lld", (long long)(state->segments_count));
  if (state->csr->nnz) build_columns(builder, state);
  if (state->tiles_count) build_tiles(builder, state);
  if (state->segments_count) build_long(builder, state);
  build_empty(builder, state);
  build_dispatch(builder, state);
  builder->region.blocks = state->blocks;
  builder->region.blocks_per_sm = choose_blocks_per_sm(builder, state);
}

/* ---- cost */

/* Thread blocks take segments first, then tiles; lanes of a load take neighbours. */
static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const struct state *state = user;
  const int64_t tile = thread_block - state->segments_count;
  int64_t begin = 0, end = 0;
  if (tile < 0) {
    begin = state->segments[thread_block].begin;
    end = state->segments[thread_block].end;
  } else if (tile < state->tiles_count) {
    begin = state->tiles[tile].begin;
    end = state->tiles[tile].end;
  }
  for (int64_t k = begin; k < end; k++) {
    if ((k - begin) % LANES == 0) cb_sector_load(sink);
    cb_sector_ask(sink, state->csr->col_idx[k]);
  }
}

/* Batches of the longest segment or uncut row, one after the other. */
static int64_t longest_chain(const struct state *state, int64_t begin, int64_t end, int64_t batch_ns) {
  int64_t longest = 0;
  for (int64_t p = begin; p < end; p++) {
    const int64_t length = state->segments[p].end - state->segments[p].begin;
    longest = length > longest ? length : longest;
  }
  return cb_divide_up(longest, SEGMENT) * batch_ns;
}

/* A tile is one batch of loads, and adding up takes longer than that; long rows are batches one after the other, and
 * their segments wait for the last. Measured on the H200. */
static enum cb_status predict(struct cb_region_builder *builder, const struct state *state, struct cb_diag *diag) {
  struct cb_cost *cost = &builder->region.cost;
  const int64_t all = state->segments_count;
  const int64_t long_ns = all ? longest_chain(state, 0, all, CB_COST_BATCH_NS) + CB_COST_MERGE_LOOK_UP_NS : 0;
  const int64_t tile_ns = state->tiles_count ? CB_COST_BATCH_NS + (state->padded ? 0 : CB_COST_MERGE_LOOK_UP_NS) : 0;
  cost->chain_ns = long_ns > tile_ns ? long_ns : tile_ns;
  cost->tail_ns = state->cut_segments ? CB_COST_CARRY_MERGE_NS : state->tiles_count ? CB_COST_MERGE_ROWS_NS : 0;
  cost->stream_percent = CB_COST_MERGE_PERCENT;
  /* finding the ends of rows and storing them, in picoseconds on 132 multiprocessors */
  cost->work_ns = (state->csr->rows * 9 + state->csr->nnz * 3 / 2) * 132 / builder->target->multiprocessors / 1000;
  return cb_sectors_predict(builder, state, visit_sectors, diag);
}

static enum cb_status merge_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  const struct cb_csr *csr = builder->work.part.csr;
  const enum cb_status s = cb_region_state(builder, sizeof(struct state), diag);
  struct state *state = builder->work.state;
  if (s) return s;
  state->csr = csr;
  state->own_rows = builder->own_rows;
  state->items = choose_items(csr, builder->settings, builder->target);
  if (!cut_tiles(state) || !cut_long_rows(state, builder->settings) || !place_tiles(state, builder->settings))
    return cb_fail_memory(diag, "tiles",
                          (uint64_t)csr->nnz / (uint64_t)tile_size(state) * sizeof *state->tiles);
  builder->work.units = state->segments_count + state->tiles_count;
  build_region(builder, state);
  state->own_rows = NULL;
  return predict(builder, state, diag);
}

/* For reports. */
static void count_loads(const void *user, int64_t *nonzeros) {
  const struct state *state = user;
  for (int64_t p = 0; p < state->segments_count; p++)
    nonzeros[p] += state->segments[p].end - state->segments[p].begin;
  for (int64_t t = 0; t < state->tiles_count; t++)
    nonzeros[state->segments_count + t] += state->tiles[t].end - state->tiles[t].begin;
}

const struct cb_layout cb_layout_merge = {
    .name = "merge",
    .summary = "equal shares of nonzeros for all lanes; a bit for each says where rows end",
    .source = "MERBIT; merge-based SpMV: Merrill, Garland, SC 2016",
    .options = cb_merge_options,
    .options_count = MERGE_OPTIONS,
    .recipes = cb_merge_recipes,
    .plan = merge_plan,
    .visit = merge_visit,
    .unit = "thread block",
    .count_loads = count_loads,
    .least = {.bytes = 2, .percent = CB_COST_MERGE_PERCENT},
    .minds_own_rows = 1,
};
