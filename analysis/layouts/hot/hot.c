// SPDX-License-Identifier: Apache-2.0
/* Hot columns: on graphs a few columns hold most of the nonzeros, and what bounds the product is gathering x. The
 * entries of x that the hottest columns ask for lie in shared memory, of which each multiprocessor has one copy (or
 * three, where that is all of x and small); a thread block stays on its multiprocessor, copies them once and works
 * through its share of the rows.
 *
 * Rows are stored as sliced ELL (see sell.c): a warp takes a slice of 32 lanes, 1 to 32 lanes share a row, rows of
 * more than `segment` nonzeros are cut into segments that a slice each takes. A slice stores its hot nonzeros and its
 * cold ones apart, each with steps of their own: the hot with the place of their column among the hot (16 bits), the
 * cold with the column. Rows are ordered by what they hold of both, so slots stay empty only where a row ends; lanes
 * never go there, so neither NaN nor Inf in x reaches a row through padding. Slices are dealt to warps by their cost
 * (hot_deal.h), and segments of a row to one thread block: their sums meet in shared memory, in its end. Rows that are
 * too long for that are carried.
 *
 * A hot column saves a gather for each of its nonzeros and costs each thread block a copy. With `gather` a launch of
 * its own lays the entries side by side first, and thread blocks copy them as a stream: four f64 to a sector. Where all
 * of x fits and each column has a nonzero, places are columns: thread blocks copy x as it lies.
 *
 * That launch may lay the next columns by frequency side by side too: the packed columns. Where a product streams much
 * more than L2 holds, an entry stays there only if its sector is asked for often enough. In x, frequent entries share
 * sectors with rare ones; side by side they stay. A cold nonzero then has an index instead of its column: below the
 * number of packed entries one of those, from there on the column plus that number.
 *
 * For several vectors shared memory has the entries of all that a pass takes, so fewer columns are hot; threads that
 * share the vectors take a slice's lanes in turns.
 *
 * How to read it: hot_plan near the end calls the passes in order.
 */
#include "analysis/layouts/hot/options.h"

#include "analysis/columns.h"
#include "analysis/cost_figures.h"
#include "analysis/gathered.h"
#include "analysis/layouts/hot/hot_columns.h"
#include "analysis/layouts/hot/hot_deal.h"
#include "analysis/ordering.h"
#include "analysis/slices.h"

enum {
  LANES = CB_LANES,
  MOST_AIM = 16,                     /* steps per lane that lanes are chosen for, hot and cold together */
  STEP_KEYS = 2 * MOST_AIM + 2,      /* steps of a slice, as far as they order rows */
  MOST_HOT = 1 << 16,                /* places have 16 bits */
  ALIGNED = 16,                      /* sums before the gathered entries: whole lines */
  PARTS = 4,                         /* threads that share several vectors, a piece each: registers */
  USUAL_BATCH = 4                    /* steps whose loads are in flight together */
};

enum kind { HOT, COLD, KINDS };

/* Nonzeros of a row by kind, or what a segment or a lane has of them. */
struct share {
  int64_t of[KINDS];
};

struct state {
  struct cb_arena arena;
  const struct cb_csr *csr;
  int64_t vector_bytes, hot_bytes; /* of an entry of x, and of a hot column's in shared memory: of several vectors */
  enum cb_switch gather;           /* whether a launch before may lay entries side by side */
  int threads, three_bytes;
  int batch, cold_batch; /* steps whose loads are in flight together, hot and cold */
  int per_sm;     /* thread blocks of a multiprocessor */
  int64_t blocks; /* all of them */
  /* columns */
  struct cb_hot_columns at;
  uint64_t *is_hot;     /* a bit for each column: what is asked most is small enough for a cache */
  uint32_t *hot_in_row; /* nonzeros, by row */
  int64_t hot_nonzeros;
  /* slices */
  int64_t aim, segment;
  int64_t slices, segments; /* slices of whole rows, and of one segment each */
  struct cb_slices by_slice;
  int32_t *row; /* by local row, of which segments are the first; that behind the last: none */
  int64_t local_rows;
  uint32_t *segment_number; /* by segment: which of its row */
  uint32_t *slice_of;       /* by segment */
  struct cb_hot_deal deal;
  int64_t *first_step[KINDS]; /* steps before a slice */
  int64_t slots[KINDS];       /* hot slots lie in front of cold ones */
  uint32_t *where;            /* by row, for packing on the device: LANES times its first slice, and its number there */
};

/* ---- rows: needs the columns; adds is_hot, hot_in_row, hot_nonzeros */

static int is_hot(const struct state *state, int64_t column) {
  return state->is_hot[column >> 6] >> (column & 63) & 1;
}

static int is_hot_place(const struct state *state, int32_t place) {
  return (uint32_t)place < (uint32_t)state->at.hot; /* CB_COLD is large then */
}

static int mark_columns(struct state *state) {
  const int64_t cols = state->csr->cols, words = cb_divide_up(cols, 64);
  state->is_hot = cb_arena_alloc(&state->arena, (size_t)words, sizeof *state->is_hot);
  if (!state->is_hot) return 0;
#pragma omp parallel for schedule(static)
  for (int64_t word = 0; word < words; word++) {
    uint64_t bits = 0;
    for (int64_t column = 64 * word; column < cb_smaller(64 * word + 64, cols); column++)
      bits |= (uint64_t)is_hot_place(state, state->at.place_of[column]) << (column & 63);
    state->is_hot[word] = bits;
  }
  return 1;
}

static int count_rows(struct state *state) {
  const struct cb_csr *csr = state->csr;
  const struct cb_remote_columns *remote = csr->remote;
  int64_t nonzeros = 0;
  state->hot_in_row = cb_arena_alloc(&state->arena, (size_t)csr->rows, sizeof *state->hot_in_row);
  if (!state->hot_in_row) return 0;
  if (!remote) cb_count_marked(state->hot_in_row, csr, state->is_hot);
  else if (remote->count_marked(remote->user, state->is_hot, state->hot_in_row, NULL)) return 0;
#pragma omp parallel for schedule(static) reduction(+ : nonzeros)
  for (int64_t row = 0; row < csr->rows; row++) nonzeros += state->hot_in_row[row];
  state->hot_nonzeros = nonzeros;
  return 1;
}

static struct share row_share(const struct state *state, int64_t row) {
  const int64_t hot = state->hot_in_row[row];
  return (struct share){{hot, cb_csr_row_length(state->csr, row) - hot}};
}

static int64_t segments_of(const struct state *state, int64_t row) {
  return cb_larger(1, cb_divide_up(cb_csr_row_length(state->csr, row), state->segment));
}

/* What one segment of a row takes at most: whole steps of 32 lanes, unless the row is its only segment. */
static struct share chunk_of(const struct state *state, int64_t row) {
  struct share chunk = row_share(state, row);
  const int64_t segments = segments_of(state, row);
  for (enum kind kind = HOT; kind < KINDS; kind++)
    chunk.of[kind] = segments == 1 ? chunk.of[kind] + 1
                                   : cb_larger(1, cb_divide_up(chunk.of[kind], segments * LANES)) * LANES;
  return chunk;
}

/* ---- slices: needs the rows' shares; adds all about slices and local rows but the steps */

static int lanes_for(const struct state *state, struct share share) {
  const int64_t hot = share.of[HOT], cold = share.of[COLD];
  int log2 = 0;
  while (log2 < CB_LANES_LOG2 && cb_divide_up(hot, 1 << log2) + cb_divide_up(cold, 1 << log2) > state->aim) log2++;
  return log2;
}

enum { LANES_KEYS = STEP_KEYS * STEP_KEYS, KEYS = 6 * LANES_KEYS };

/* Rows of one key fill slices without padding. Most lanes first, then longest first; rows in segments have no key. */
static uint32_t row_key(const struct state *state, int64_t row) {
  if (segments_of(state, row) > 1) return KEYS;
  const struct share share = row_share(state, row);
  const int log2 = lanes_for(state, share);
  const int64_t hot = cb_smaller(cb_divide_up(share.of[HOT], 1 << log2), STEP_KEYS - 1);
  const int64_t cold = cb_smaller(cb_divide_up(share.of[COLD], 1 << log2), STEP_KEYS - 1);
  return (uint32_t)(((5 - log2) * STEP_KEYS + STEP_KEYS - 1 - cold) * STEP_KEYS + STEP_KEYS - 1 - hot);
}

/* Rows over `segment` nonzeros: a slice for each segment, a row's segments in order. */
static void add_segments(struct state *state, const int32_t *cut, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    for (int64_t segment = 0; segment < segments_of(state, cut[i]); segment++) {
      state->segment_number[state->slices] = (uint32_t)segment;
      cb_slices_set(&state->by_slice, state->slices++, CB_LANES_LOG2, state->local_rows);
      state->row[state->local_rows++] = cut[i];
    }
  state->segments = state->slices;
}

/* The other rows, `count` of them, stand behind the segments, sorted by key: lanes by the first row of each slice. What
 * no row fills of the last one has none. */
static void add_rows(struct state *state, const uint32_t *key, int64_t count) {
  const int64_t end = state->local_rows + count;
  while (state->local_rows < end) {
    const int log2 = CB_LANES_LOG2 - (int)(key[state->row[state->local_rows]] / LANES_KEYS);
    cb_slices_set(&state->by_slice, state->slices++, log2, state->local_rows);
    state->local_rows += LANES >> log2;
  }
  for (int64_t i = end; i < state->local_rows; i++) state->row[i] = (int32_t)state->csr->rows;
}

/* Room for `segments`, and for rows in slices, of which the last may not be full. */
static int alloc_slices(struct state *state, int64_t segments) {
  const int64_t local_rows = segments + state->csr->rows + LANES;
  state->segment_number = cb_arena_alloc(&state->arena, (size_t)segments, sizeof *state->segment_number);
  state->row = cb_arena_alloc(&state->arena, (size_t)local_rows, sizeof *state->row);
  return cb_slices_alloc(&state->by_slice, &state->arena, local_rows);
}

static int is_cut(const void *state, int64_t row) { return segments_of(state, row) > 1; }

static int make_slices(struct state *state, struct cb_arena *scratch) {
  const int64_t rows = state->csr->rows;
  int64_t segments = 0, count = 0;
  const int32_t *cut = cb_rows_where(scratch, rows, is_cut, state, &count);
  uint32_t *key = cb_arena_alloc(scratch, (size_t)rows, sizeof *key);
  if (!cut || !key) return 0;
  for (int64_t i = 0; i < count; i++) segments += segments_of(state, cut[i]);
  if (!alloc_slices(state, segments)) return 0;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; row++) key[row] = row_key(state, row);
  const int64_t sorted = cb_sort_by_key(state->row + segments, key, rows, KEYS);
  if (sorted < 0) return 0;
  add_segments(state, cut, count);
  add_rows(state, key, sorted);
  return 1;
}

static int cut_slices(struct state *state) {
  const int64_t nonzeros = state->csr->nnz, warps = state->blocks * state->threads / LANES;
  struct cb_arena scratch = {0};
  for (state->aim = 4; state->aim < MOST_AIM && state->aim * LANES * warps < nonzeros;) state->aim *= 2;
  state->segment = 2 * state->aim * LANES;
  const int good = make_slices(state, &scratch);
  cb_arena_release(&scratch);
  return good;
}

static int is_segment(const struct state *state, int64_t slice) {
  return (int64_t)state->by_slice.first_local_row[slice] < state->segments;
}

/* What the local row `in_slice` of a slice holds. */
static struct share local_row_share(const struct state *state, int64_t slice, int64_t in_slice) {
  const int64_t row = state->row[state->by_slice.first_local_row[slice] + in_slice];
  if (row == state->csr->rows) return (struct share){{0, 0}};
  struct share share = row_share(state, row);
  if (!is_segment(state, slice)) return share;
  const struct share chunk = chunk_of(state, row);
  for (enum kind kind = HOT; kind < KINDS; kind++) {
    const int64_t before = state->segment_number[state->by_slice.first_local_row[slice]] * chunk.of[kind];
    share.of[kind] = cb_smaller(cb_larger(share.of[kind] - before, 0), chunk.of[kind]);
  }
  return share;
}

static struct share slice_steps(const struct state *state, int64_t slice) {
  struct share steps = {{0, 0}};
  const int log2 = state->by_slice.lanes_log2[slice];
  for (int64_t i = 0; i < LANES >> log2; i++) {
    const struct share share = local_row_share(state, slice, i);
    for (enum kind kind = HOT; kind < KINDS; kind++)
      steps.of[kind] = cb_larger(steps.of[kind], cb_divide_up(share.of[kind], 1 << log2));
  }
  return steps;
}

/* ---- dealing: needs slices; puts them and segments in their order, and adds the steps before each */

/* In half steps. A cold step costs more than a hot one, and a slice has a beginning and an end. */
static uint8_t slice_cost(const struct state *state, int64_t slice) {
  enum { HOT_STEP = 2, COLD_STEP = 3, SLICE = 6 };
  const struct share steps = slice_steps(state, slice);
  return (uint8_t)cb_smaller(SLICE + HOT_STEP * steps.of[HOT] + COLD_STEP * steps.of[COLD], CB_HOT_COSTS - 1);
}

/* Segments get new numbers, slices new places. */
static int reorder(struct state *state, struct cb_arena *scratch) {
  const struct cb_hot_deal *deal = &state->deal;
  const size_t slices = (size_t)state->slices, segments = (size_t)state->segments;
  const unsigned char *log2 = cb_arena_copy(scratch, state->by_slice.lanes_log2, slices, 1);
  const uint32_t *local_row = cb_arena_copy(scratch, state->by_slice.first_local_row, slices, sizeof *local_row);
  const uint32_t *segment_number = cb_arena_copy(scratch, state->segment_number, segments, sizeof *segment_number);
  const int32_t *row = cb_arena_copy(scratch, state->row, segments, sizeof *row);
  uint32_t *number = cb_arena_alloc(scratch, segments, sizeof *number);
  state->slice_of = cb_arena_alloc(&state->arena, segments, sizeof *state->slice_of);
  if (scratch->failed || state->arena.failed) return 0;
  for (int64_t segment = 0; segment < state->segments; segment++) {
    const int32_t before = deal->segment[segment];
    number[before] = (uint32_t)segment;
    state->row[segment] = row[before];
    state->segment_number[segment] = segment_number[before];
  }
#pragma omp parallel for schedule(static)
  for (int64_t place = 0; place < state->slices; place++) {
    const int32_t slice = deal->slice[place];
    const int is_segment = slice < state->segments;
    cb_slices_set(&state->by_slice, place, log2[slice], is_segment ? number[slice] : local_row[slice]);
    if (is_segment) state->slice_of[number[slice]] = (uint32_t)place;
  }
  return 1;
}

static int deal_slices(struct state *state) {
  struct cb_arena scratch = {0};
  uint8_t *cost = cb_arena_alloc(&scratch, (size_t)state->slices, sizeof *cost);
#pragma omp parallel for schedule(static)
  for (int64_t slice = 0; slice < (cost ? state->slices : 0); slice++) cost[slice] = slice_cost(state, slice);
  const struct cb_hot_slices slices = {.count = state->slices,
                                       .segments = state->segments,
                                       .segment_number = state->segment_number,
                                       .cost = cost,
                                       .blocks = state->blocks,
                                       .warps = state->threads / LANES,
                                       .most_met = CB_HOT_MOST_MET};
  const int good = cost && cb_hot_deal(&state->deal, &state->arena, &slices) && reorder(state, &scratch);
  cb_arena_release(&scratch);
  return good;
}

/* Slots in the order in which slices were dealt: what warps read at a time lies near each other in memory. */
static int count_steps(struct state *state) {
  const int64_t slices = state->slices;
  for (enum kind kind = HOT; kind < KINDS; kind++)
    state->first_step[kind] = cb_arena_alloc(&state->arena, (size_t)slices, sizeof *state->first_step[kind]);
  if (state->arena.failed) return 0;
#pragma omp parallel for schedule(static)
  for (int64_t slice = 0; slice < slices; slice++) {
    const struct share steps = slice_steps(state, slice);
    for (enum kind kind = HOT; kind < KINDS; kind++) state->first_step[kind][slice] = steps.of[kind];
  }
  for (enum kind kind = HOT; kind < KINDS; kind++) {
    int64_t before = 0;
    for (int64_t i = 0; i < slices; i++) {
      int64_t *first = &state->first_step[kind][state->deal.order[i]];
      const int64_t steps = *first;
      *first = before;
      before += steps;
    }
    state->slots[kind] = before * LANES;
  }
  return 1;
}

/* Where hot steps are more than four times as many as cold ones, batches of as many of both are half empty: R-MAT
 * 17 x 80 takes 30.7 us for 32.3, 16 x 100 20.5 for 21.1; 15 x 60, with twice as many, 9.3 for 8.6. */
static void choose_batches(struct state *state, const int64_t *settings) {
  enum { TIMES = 4, HOT_ONES = 5, COLD_ONES = 2 };
  state->cold_batch = state->batch;
  if (settings[HOT_BATCH] || state->batch != USUAL_BATCH || state->vector_bytes != 8 || state->hot_bytes != 8) return;
  if (!state->slots[COLD] || state->slots[HOT] < TIMES * state->slots[COLD]) return;
  state->batch = HOT_ONES;
  state->cold_batch = COLD_ONES;
}

/* ---- rows' slices: need the steps' order; add where, for packing on the device */

/* Of a row in segments, the number of the first: the others follow. */
static int find_rows(struct state *state) {
  const int64_t rows = state->csr->rows;
  if (!state->csr->remote) return 1;
  state->where = cb_arena_alloc(&state->arena, (size_t)rows, sizeof *state->where);
  if (!state->where) return 0;
#pragma omp parallel for schedule(static)
  for (int64_t slice = 0; slice < state->slices; slice++)
    for (int64_t i = 0; i < LANES >> state->by_slice.lanes_log2[slice]; i++) {
      const int64_t row = state->row[state->by_slice.first_local_row[slice] + i];
      const int64_t segment = state->by_slice.first_local_row[slice];
      if (!is_segment(state, slice) && row < rows) state->where[row] = (uint32_t)(slice * LANES + i);
      if (is_segment(state, slice) && !state->segment_number[segment]) state->where[row] = (uint32_t)(segment * LANES);
    }
  return 1;
}

/* ---- the region: needs all of the above; adds arrays and sections */

/* Where the nonzeros of one row go, met in order. */
struct cursor {
  int64_t slice, in_slice;
  int64_t segment; /* the first one's number, if the row is in segments */
  struct share chunk, met;
};

static int64_t next_slot(const struct state *state, struct cursor *at, enum kind kind) {
  const int64_t number = at->met.of[kind]++, chunk = at->chunk.of[kind];
  const int64_t segment = number < chunk ? 0 : number / chunk; /* nearly all rows have one */
  const int64_t slice = segment ? state->slice_of[at->segment + segment] : at->slice, k = number - segment * chunk;
  const int log2 = state->by_slice.lanes_log2[slice];
  const int64_t slot = cb_slice_slot(state->first_step[kind][slice], log2, at->in_slice, k);
  return kind == HOT ? slot : state->slots[HOT] + slot;
}

/* Nonzeros of one row. The places of several columns are looked up together, since the table is larger than a cache.
 * For a slot map alone it is enough to know which columns are hot. */
static void visit_row(const struct state *state, struct cursor *at, int64_t row, const struct cb_walk *walk) {
  enum { TOGETHER = 64 };
  const int64_t end = cb_csr_row(state->csr, row + 1);
  const int32_t *column = state->csr->col_idx;
  int32_t place[TOGETHER];
  for (int64_t first = cb_csr_row(state->csr, row); first < end; first += TOGETHER) {
    const int64_t count = cb_smaller(end - first, TOGETHER);
    for (int64_t i = 0; i < count && !walk->fields; i++) place[i] = is_hot(state, column[first + i]) ? 0 : CB_COLD;
    for (int64_t i = 0; i < count && walk->fields; i++) place[i] = state->at.place_of[column[first + i]];
    for (int64_t i = 0; i < count; i++) {
      const int64_t k = first + i;
      if (is_hot_place(state, place[i])) cb_emit(walk, next_slot(state, at, HOT), k, (uint32_t)place[i]);
      else cb_emit(walk, next_slot(state, at, COLD), k, cb_hot_index(&state->at, column[k], place[i]));
    }
  }
}

/* All segments of a row are met where its first one is. */
static int hot_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *walk) {
  const struct state *state = user;
  for (int64_t slice = first; slice < end; slice++)
    for (int64_t i = 0; i < LANES >> state->by_slice.lanes_log2[slice]; i++) {
      const int64_t row = state->row[state->by_slice.first_local_row[slice] + i];
      const int64_t local_row = state->by_slice.first_local_row[slice];
      if (row == state->csr->rows || (is_segment(state, slice) && state->segment_number[local_row])) continue;
      struct cursor at = {slice, i, local_row, chunk_of(state, row), {{0, 0}}};
      visit_row(state, &at, row, walk);
    }
  return 1;
}

static struct cb_slot_elements cold_elements(const struct state *state, const struct cb_hot_range *range, int shift,
                                             int bits) {
  return (struct cb_slot_elements){.first = state->slots[HOT],
                                   .count = state->slots[COLD],
                                   .least = range->least,
                                   .largest = range->most,
                                   .shift = shift,
                                   .bits = bits};
}

/* Columns in three bytes are two arrays. */
static void build_cold_columns(struct cb_region_builder *builder, const struct state *state) {
  static const char name[] = "cold_index";
  if (!state->three_bytes) {
    cb_region_by_slot(builder, name, "where the entry of a cold slot is", cold_elements(state, &state->at.index, 0, 0));
    cb_region_streamed(builder);
    return;
  }
  cb_region_by_slot(builder, name, "where the entry of a cold slot is: lower 16 bits",
                    cold_elements(state, &state->at.low, 0, 16));
  cb_region_streamed(builder);
  cb_region_by_slot(builder, "cold_index_high", "the bits above", cold_elements(state, &state->at.high, 16, 0));
  cb_region_streamed(builder);
  cb_region_section(builder, "three_bytes");
}

/* Every hot column has a nonzero. */
static void build_indices(struct cb_region_builder *builder, const struct state *state) {
  const int64_t slots = state->slots[HOT] + state->slots[COLD];
  cb_region_by_slot(builder, "hot_place", "place of a hot slot's column among the hot ones",
                    (struct cb_slot_elements){.count = state->slots[HOT], .largest = state->at.hot - 1});
  cb_region_streamed(builder);
  if (state->slots[COLD]) build_cold_columns(builder, state);
  cb_region_values(builder, "values", "hot slots, then cold ones; per slice, step and lane", slots);
  if (state->slots[COLD])
    cb_region_size(builder, "kHotSlots", state->slots[HOT], "plan: slots of hot nonzeros, 32 to a step");
}

/* What each lane of a slice has of its local row's share. */
static void fill_lanes(const struct state *state, int64_t slice, uint32_t *const lane_has[KINDS]) {
  const int log2 = state->by_slice.lanes_log2[slice], lanes = 1 << log2;
  for (int64_t lane = 0; lane < LANES; lane++) {
    const struct share share = local_row_share(state, slice, lane >> log2);
    for (enum kind kind = HOT; kind < KINDS; kind++)
      lane_has[kind][LANES * slice + lane] = (uint32_t)((share.of[kind] + lanes - 1 - lane % lanes) >> log2);
  }
}

static void build_lanes(struct cb_region_builder *builder, struct state *state) {
  static const char *const names[] = {"lane_hot", "lane_cold"};
  static const char *const meanings[] = {"hot nonzeros of a lane", "cold nonzeros of a lane"};
  const int64_t lanes = state->slices * LANES;
  uint32_t *lane_has[KINDS];
  for (enum kind kind = HOT; kind < KINDS; kind++)
    lane_has[kind] = cb_arena_alloc(&state->arena, (size_t)lanes, sizeof *lane_has[kind]);
#pragma omp parallel for schedule(static)
  for (int64_t slice = 0; slice < (state->arena.failed ? 0 : state->slices); slice++)
    fill_lanes(state, slice, lane_has);
  for (enum kind kind = HOT; kind < (state->slots[COLD] ? KINDS : COLD); kind++) {
    cb_region_list(builder, names[kind], meanings[kind], lanes, lane_has[kind]);
    cb_region_streamed(builder);
  }
}

static void build_slices(struct cb_region_builder *builder, struct state *state) {
  const int64_t slices = state->slices;
  cb_region_slices(builder, &state->by_slice, slices, "a row of a slice");
  cb_region_list(builder, "first_hot", "hot steps before a slice's, 32 slots each", slices, state->first_step[HOT]);
  if (state->slots[COLD])
    cb_region_list(builder, "first_cold", "cold steps before a slice's", slices, state->first_step[COLD]);
  build_lanes(builder, state);
  cb_region_list(builder, "row_of", "row of a local row; kRows: none", state->local_rows, state->row);
  cb_region_streamed(builder);
  cb_region_list(builder, "first_slice", "a warp's first slice; warps + 1", state->blocks * state->threads / LANES + 1,
                 state->deal.first_place);
}

/* Rows that are too long for one thread block have carry slots. */
static void build_segments(struct cb_region_builder *builder, const struct state *state) {
  const struct cb_hot_deal *deal = &state->deal;
  cb_region_carries(builder, "carry", deal->carried, state->segment_number,
                    "plan: local rows that are segments of the longest rows, and carried");
  if (!deal->met) return;
  cb_region_section(builder, "met");
  cb_region_fact(builder, "met", "%lld %lld", (long long)deal->groups, (long long)deal->met);
  cb_region_list(builder, "first_group", "a thread block's first group: the segments of one row; thread blocks + 1",
                 state->blocks + 1, deal->first_group);
  cb_region_list(builder, "group_first", "a group's first local row; groups + 1", deal->groups + 1, deal->group_first);
  cb_region_size(builder, "kMetEnd", state->segments, "plan: local rows that are segments");
}

static void build_columns(struct cb_region_builder *builder, const struct state *state) {
  if (state->at.whole) {
    cb_region_section(builder, "whole");
    return;
  }
  const char *meaning =
      state->at.packed ? "the hot columns in order, then the packed ones" : "the hot columns, in order";
  cb_region_list(builder, "hot_column", meaning, state->at.hot + state->at.packed, state->at.column);
}

/* Where thread blocks copy the hot entries from: x, or what a first launch has gathered (behind the carry slots). */
static void build_entries(struct cb_region_builder *builder, const struct state *state) {
  if (!state->at.gather) return;
  cb_region_fact(builder, "gather", "first");
  cb_region_section(builder, "gather");
  cb_region_gather(builder, cb_round_up(state->deal.carried, ALIGNED), state->at.hot + state->at.packed);
}

/* Where the entry of a cold nonzero is: in x, among the packed ones, or in either. */
static void build_cold(struct cb_region_builder *builder, const struct state *state) {
  if (!state->at.packed) return;
  cb_region_fact(builder, "packed", "%lld", (long long)state->at.packed);
  cb_region_section(builder, "packed");
  if (state->at.rest) cb_region_section(builder, "packed_some");
  if (state->at.rest)
    cb_region_size(builder, "kPacked", state->at.packed, "plan: packed columns; larger indices are of x");
}

static void build_facts(struct cb_region_builder *builder, const struct state *state) {
  cb_region_fact(builder, "columns", "%lld", (long long)state->at.hot);
  cb_region_fact(builder, "share", "%lld", (long long)(state->hot_nonzeros * 100 / state->csr->nnz));
  cb_region_fact(builder, "slices", "%lld", (long long)state->slices);
  cb_region_fact(builder, "steps", "%lld %lld", (long long)state->slots[HOT] / LANES,
                 (long long)state->slots[COLD] / LANES);
}

static void build_constants(struct cb_region_builder *builder, const struct state *state) {
  cb_region_size(builder, "kHot", state->at.hot, "plan: hot columns, whose entries of x lie in shared memory");
  cb_region_size(builder, "kSlices", state->slices, "plan: slices of 32 lanes");
  cb_region_structure(builder, "kThreads", state->threads, "plan: threads of a thread block");
  cb_region_structure(builder, "kBatch", state->batch, "plan: steps whose loads are in flight together");
  if (state->slots[COLD]) cb_region_structure(builder, "kColdBatch", state->cold_batch, "plan: likewise, cold ones");
  if (state->cold_batch == state->batch) return;
  cb_region_family_structure(builder, "kBatch", USUAL_BATCH, "plan: steps whose loads are in flight together");
  cb_region_family_structure(builder, "kColdBatch", USUAL_BATCH, "plan: likewise, cold ones");
}

/* One text with long rows and without, and for packed columns whether they are all that are not hot or some. */
static void build_family(struct cb_region_builder *builder, const struct state *state) {
  cb_region_family_with(builder, "carry");
  cb_region_family_size(builder, "kSegments", 0);
  cb_region_family_sequence(builder, "carry_group", 0, 0);
  cb_region_family_sequence(builder, "carry_first", 0, 0);
  cb_region_family_with(builder, "met");
  cb_region_family_size(builder, "kMetEnd", 0);
  cb_region_family_sequence(builder, "first_group", 0, 0);
  cb_region_family_sequence(builder, "group_first", 0, 0);
  if (!state->at.packed || !state->slots[COLD]) return;
  cb_region_family_with(builder, "packed_some");
  cb_region_family_size(builder, "kPacked", state->at.packed);
}

/* Sums of segments in shared memory, for one vector. */
static int64_t met_bytes(const struct cb_region_builder *builder) {
  return CB_HOT_MOST_MET * (int64_t)cb_type_size(builder->sum_type);
}

static void build_region(struct cb_region_builder *builder, struct state *state) {
  build_facts(builder, state);
  build_indices(builder, state);
  build_slices(builder, state);
  build_columns(builder, state);
  build_segments(builder, state);
  build_entries(builder, state);
  if (state->slots[COLD]) {
    cb_region_section(builder, "cold");
    build_cold(builder, state);
  }
  build_constants(builder, state);
  build_family(builder, state);
  builder->region.blocks = state->blocks;
  builder->region.threads = state->threads;
  builder->region.blocks_per_sm = state->per_sm;
  builder->region.dynamic_shared = state->at.hot * state->hot_bytes;
  builder->region.static_shared = met_bytes(builder);
  builder->region.keeps_indices = 1;
  builder->region.takes_vectors = !state->at.gather;
  builder->region.sharing = CB_SHARING_TURNS;
  builder->region.staged_parts = PARTS;
}

/* Each turn of a slice waits for loads that depend on each other, beside those of the other warps. */
static void predict_several(struct cb_region_builder *builder, const struct state *state) {
  const int64_t warps = state->blocks * state->threads / LANES, vectors = state->hot_bytes / state->vector_bytes;
  builder->region.further_ns = vectors > 1 ? state->slices * PARTS * CB_COST_SELL_WAVE_NS / warps / (vectors - 1) : 0;
  builder->region.row_sectors =
      builder->region.cost.sectors * cb_divide_up(builder->options->vectors * state->vector_bytes, 32);
}

/* Gathers that leave the multiprocessor share the way from L2 with the stream, of which more is felt where numbers of
 * two doubles leave registers for half as many loads in flight (R-MAT 18: 36.6 us). Where nothing but the stream is
 * left, what a warp's slices begin and end with is felt. */
static void predict(struct cb_region_builder *builder, const struct state *state) {
  struct cb_cost *cost = &builder->region.cost;
  const int side_by_side = state->at.gather || state->at.whole;
  const int64_t copied = side_by_side ? cb_divide_up(state->at.hot * state->vector_bytes, 32) : state->at.hot;
  cost->sectors = state->csr->nnz - state->hot_nonzeros + state->blocks * copied;
  const int64_t felt = builder->region.bytes * (cb_region_is_wide(builder) ? 8 : 6) / 10;
  cost->work_ns = cb_plan_gather_ns(cost->sectors, builder->target) + felt / builder->target->read_gb_per_s +
                  state->at.miss_ns;
  if (builder->options->vectors > 1) predict_several(builder, state);
  const int64_t warps = state->blocks * state->threads / LANES;
  const int is_hidden = state->slots[COLD] || state->per_sm > 1;
  const int64_t slices_ns = is_hidden ? 0 : state->slices * CB_COST_HOT_SLICE_NS / warps;
  cost->tail_ns = CB_COST_HOT_BEGIN_NS + slices_ns + (state->at.gather ? CB_COST_HOT_PREPARE_NS : 0) +
                  state->at.prepare_ns;
}

/* ---- the layout */

static void choose_shape(struct state *state, const int64_t *settings, const struct cb_target *target) {
  const int64_t slots = state->csr->nnz + state->csr->rows;
  const int is_for_several = state->hot_bytes > state->vector_bytes;
  const int is_large = is_for_several || state->vector_bytes > 8; /* which takes twice as many registers */
  state->threads = settings[HOT_THREADS] ? (int)settings[HOT_THREADS] : is_for_several ? 512 : 1024;
  state->batch = settings[HOT_BATCH] ? (int)settings[HOT_BATCH] : is_large && state->threads > 512 ? 2 : USUAL_BATCH;
  state->per_sm = 1;
  state->blocks = cb_smaller(target->multiprocessors, cb_divide_up(slots, 4 * state->threads));
}

/* Where all that there is to wait for are streams, more warps wait for more: 508349 x 762 takes 17.3 us for 18.0 by
 * three thread blocks with tables of their own, if these are small, there is enough for each warp, and rows are not so
 * short that a slice ends as it has begun (500000 x 500, 5 in a row: sell 9.8 us, hot 11.8 this way or that). */
static void choose_blocks_per_sm(struct state *state, const int64_t *settings, const struct cb_target *target) {
  enum { BLOCKS = 3, THREADS = 512, TABLE = 40 << 10, NONZEROS = 20, SHORT = 10 }; /* of a thread; of a row */
  const int64_t blocks = BLOCKS * (int64_t)target->multiprocessors;
  if (settings[HOT_THREADS] || !state->at.whole || state->vector_bytes != 8 || state->hot_bytes != 8) return;
  if (state->at.hot * state->hot_bytes > TABLE || state->csr->nnz < NONZEROS * THREADS * blocks) return;
  if (state->csr->nnz < SHORT * state->csr->rows) return;
  state->per_sm = BLOCKS;
  state->threads = THREADS;
  state->blocks = blocks;
}

/* Several vectors take one pass where no launch before gathers entries, so that it must be asked for. Shared memory has
 * those of all vectors of a pass. */
static void choose_entries(struct state *state, const struct cb_region_builder *builder) {
  const int64_t *settings = builder->settings, wanted = builder->options->vectors;
  const int64_t most = PARTS * CB_PIECE_BYTES / (int64_t)cb_type_size(builder->sum_type);
  int64_t vectors = 1;
  state->vector_bytes = (int64_t)cb_type_size(builder->vector_type);
  state->gather = (enum cb_switch)settings[HOT_GATHER];
  if (wanted > 1 && state->gather == CB_AUTO && !settings[HOT_PACKED]) state->gather = CB_OFF;
  while (state->gather == CB_OFF && vectors < wanted && vectors < most) vectors *= 2;
  state->hot_bytes = vectors * state->vector_bytes;
}

static enum cb_status choose_columns(struct state *state, const struct cb_region_builder *builder,
                                     struct cb_diag *diag) {
  const struct cb_hot_shape shape = {.csr = state->csr,
                                     .settings = builder->settings,
                                     .target = builder->target,
                                     .value_bytes = (int64_t)cb_type_size(builder->value_type),
                                     .vector_bytes = state->vector_bytes,
                                     .hot_bytes = state->hot_bytes,
                                     .met_bytes = met_bytes(builder) * state->hot_bytes / state->vector_bytes,
                                     .gather = state->gather,
                                     .blocks = state->blocks};
  const enum cb_status s = cb_hot_columns_choose(&state->at, &state->arena, &shape, diag);
  const int64_t indices = state->at.packed + (state->at.rest ? state->csr->cols : 0);
  state->three_bytes = builder->settings[HOT_THREE_BYTES] != CB_OFF && indices > 1 << 16 && indices <= 1 << 24;
  return s;
}

static enum cb_status hot_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  const struct cb_csr *csr = builder->work.part.csr;
  if (csr->rows > INT32_MAX / 2 || csr->nnz / 4 > INT32_MAX) /* the text counts lanes in an int */
    return cb_fail(diag, CB_ERR_LIMIT, "%lld rows with %lld nonzeros exceed the hot layout's slices",
                   (long long)csr->rows, (long long)csr->nnz);
  if (!csr->nnz) return cb_fail(diag, CB_ERR_UNSUPPORTED, "no column is hot: there are no nonzeros; use another recipe");
  enum cb_status s = cb_region_state(builder, sizeof(struct state), diag);
  struct state *state = builder->work.state;
  if (s) return s;
  state->csr = csr;
  choose_entries(state, builder);
  choose_shape(state, builder->settings, builder->target);
  s = choose_columns(state, builder, diag);
  if (s) return s;
  choose_blocks_per_sm(state, builder->settings, builder->target);
  if (!mark_columns(state) || !count_rows(state) || !cut_slices(state) || !deal_slices(state) ||
      !count_steps(state) || !find_rows(state))
    return cb_fail_memory(diag, "slices", (uint64_t)csr->rows * 16);
  choose_batches(state, builder->settings);
  if (state->slices > INT32_MAX / LANES - state->blocks * state->threads)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld slices exceed the hot layout's int", (long long)state->slices);
  builder->work.units = state->slices;
  build_region(builder, state);
  predict(builder, state);
  return CB_OK;
}

/* ---- packing on the device: templates/pack_hot.cu.in has the same numbers and lists */

static void describe(const void *user, struct cb_pack_lists *lists) {
  enum { ROWS, NONZEROS, HOT_ONES, PACKED, HOT_SLOTS, SEGMENT };
  enum { PLACE_OF, WHERE, FIRST_HOT, FIRST_COLD, LANES_LOG2, SLICE_OF };
  enum { CHUNK = 1024, WORD = 32 }; /* nonzeros of a warp, and of a word of the shape */
  const struct state *state = user;
  const struct cb_csr *csr = state->csr;
  const int64_t steps_bytes = state->slices * (int64_t)sizeof *state->first_step[HOT];
  *lists = (struct cb_pack_lists){
      .numbers = {[ROWS] = csr->rows, [NONZEROS] = csr->nnz, [HOT_ONES] = state->at.hot, [PACKED] = state->at.packed,
                  [HOT_SLOTS] = state->slots[HOT], [SEGMENT] = state->segment},
      .lists = {[PLACE_OF] = {state->at.place_of, csr->cols * (int64_t)sizeof *state->at.place_of},
                [WHERE] = {state->where, csr->rows * (int64_t)sizeof *state->where},
                [FIRST_HOT] = {state->first_step[HOT], steps_bytes},
                [FIRST_COLD] = {state->first_step[COLD], steps_bytes},
                [LANES_LOG2] = {state->by_slice.lanes_log2, state->slices},
                [SLICE_OF] = {state->slice_of, state->segments * (int64_t)sizeof *state->slice_of}},
      .warps = cb_divide_up(csr->nnz, CHUNK),
      .shape_bytes = cb_divide_up(csr->nnz, WORD) * (int64_t)sizeof(uint32_t),
  };
}

/* The last of `count` counts, ascending, that is at most `value`. */
static int64_t last_at_most(const uint32_t *of, int64_t count, int64_t value) {
  int64_t first = 0, end = count;
  while (end - first > 1) {
    const int64_t middle = first + (end - first) / 2;
    if ((int64_t)of[middle] <= value) first = middle;
    else end = middle;
  }
  return first;
}

/* For reports. All of a row in segments is met in the first one's slice: the slot tells which slice it is in. */
static int64_t block_of(const void *user, struct cb_met met) {
  const struct state *state = user;
  int64_t slice = met.unit;
  if (is_segment(state, slice)) {
    const enum kind kind = met.slot < state->slots[HOT] ? HOT : COLD;
    const int64_t step = (met.slot - (kind == COLD ? state->slots[HOT] : 0)) / LANES;
    const int64_t first = state->by_slice.first_local_row[slice];
    for (int64_t segment = first; segment < state->segments; segment++) {
      slice = state->slice_of[segment];
      const int64_t in_slice = step - state->first_step[kind][slice];
      if (in_slice >= 0 && in_slice < slice_steps(state, slice).of[kind]) break;
    }
  }
  return last_at_most(state->deal.first_place, state->blocks * state->threads / LANES, slice) /
         (state->threads / LANES);
}

const struct cb_layout cb_layout_hot = {
    .name = "hot",
    .summary = "entries of x for the hottest columns in shared memory, rows as sliced ELL",
    .source = "-",
    .options = cb_hot_options,
    .options_count = HOT_OPTIONS,
    .check = cb_hot_check,
    .recipes = cb_hot_recipes,
    .plan = hot_plan,
    .has_family = 1,
    .visit = hot_visit,
    .unit = "slice",
    .block_of = block_of,
    .describe = describe,
    .least = {.bytes = 2, .percent = 100, .ns = CB_COST_HOT_BEGIN_NS},
};
