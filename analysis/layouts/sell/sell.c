// SPDX-License-Identifier: Apache-2.0
/* Sliced ELL: a warp takes a slice of 32 lanes, 1 to 32 lanes share a row, and the slots of one step lie side by
 * side, so that values and column offsets stream. Columns are offsets from the slice's first column, which the
 * narrowest type holds. After SELL-C-σ (Kreutzer, Hager, Wellein, Fehske, Bishop), with C = 32 lanes.
 *
 * Four degrees, each only where the matrix asks for it:
 *   natural  rows in order, the same number of lanes for each
 *   sorted   rows ordered by length within windows: fewer empty slots
 *   varied   sorted, lanes per row chosen per slice, and rows of more than `segment` nonzeros cut into segments that a
 *            slice each takes; the last segment to arrive adds up (carry slots)
 *
 *   cut      for several vectors of large scattered matrices: a lane per row, and rows of more than `segment` nonzeros
 *            cut into segments, which are local rows like others. All are in order of length, the longest first, so
 *            that what takes long begins at once. A second launch adds up the segments' sums
 *
 * A local row is what a group of lanes multiplies: a row, a segment of one, or nothing (padding). Its length is stored,
 * and no lane goes past it: padding is never multiplied, so neither NaN nor Inf in x reaches a row through it.
 * Equal lengths become a constant.
 *
 * How to read it: sell_plan near the end calls the passes in order.
 */
#include "analysis/layouts/sell/options.h"
#include "analysis/cost_figures.h"
#include "analysis/ordering.h"
#include "analysis/row_lanes.h"
#include "analysis/sectors.h"
#include "analysis/slices.h"
#include "analysis/stretches.h"
#include "base/memory.h"

#include <string.h>

enum { WARPS = 8, LANES = CB_LANES, MOST_BATCH = 8, SMALL_BATCH = 4, LARGE_BATCH = 6, LEAST_SEGMENT = 64 };

struct state {
  struct cb_arena arena;
  const struct cb_csr *csr;
  int64_t equal;      /* length of every row, or -1. Padding has it, too */
  int sorted, varied;
  int64_t window;     /* rows that are sorted among themselves: the σ of SELL-C-σ */
  int lanes;          /* per row, unless varied */
  int vector;         /* neighbouring nonzeros of a row that a lane loads at once */
  int64_t slot_bytes; /* of a value and its column, about */
  int64_t target;     /* varied: steps per lane that are aimed at */
  int64_t segment;    /* varied: nonzeros of a segment */
  int64_t slices, local_rows;
  int64_t *first_step;    /* by slice: steps before it; slices + 1 */
  int64_t steps, longest; /* of all slices, and of the longest */
  uint32_t *first_column; /* by slice */
  /* by local row; NULL: local rows are rows in order */
  int32_t *row;        /* that behind the last: padding */
  /* varied, by slice */
  struct cb_slices by_slice;
  int64_t split_slices;    /* the first slices: one segment each */
  uint32_t *segment_first; /* by split slice, or cut segment: the segment's first nonzero in its row */
  /* cut: `row` has, for a segment, how many rows there are, 1, and its number */
  int several;  /* vectors */
  int together; /* loads of several: see loads_together */
  int cut;
  int64_t cut_rows, segments;
  int32_t *cut_row, *first_segment; /* by row that is cut: the row; its first segment, and behind the last */
  int32_t *segment_row;             /* by segment */
};

/* What a local row holds: `length` nonzeros of the part from `begin` on, of `row`; padding has none. */
struct local_row {
  int64_t row, begin, length;
};

/* Of a row that is cut. */
static struct local_row segment_at(const struct state *state, int64_t segment) {
  const int64_t row = state->segment_row[segment], first = state->segment_first[segment];
  const int64_t left = cb_csr_row_length(state->csr, row) - first;
  return (struct local_row){row, cb_csr_row(state->csr, row) + first, cb_smaller(left, state->segment)};
}

static struct local_row local_row_at(const struct state *state, int64_t number) {
  const struct cb_csr *csr = state->csr;
  const int64_t row = state->row ? state->row[number] : cb_smaller(number, csr->rows);
  if (row == csr->rows) return (struct local_row){row, 0, 0};
  if (row > csr->rows) return segment_at(state, row - csr->rows - 1);
  struct local_row local = {row, cb_csr_row(csr, row), cb_csr_row_length(csr, row)};
  if (number < state->split_slices) { /* split slices hold one local row each */
    local.begin += state->segment_first[number];
    local.length -= state->segment_first[number];
    if (local.length > state->segment) local.length = state->segment;
  }
  return local;
}

/* The length that is stored: padding has that of all others, too. */
static int64_t length_at(const struct state *state, int64_t number) {
  const struct local_row local = local_row_at(state, number);
  return local.row == state->csr->rows ? cb_larger(state->equal, 0) : local.length;
}

static int64_t slice_lanes(const struct state *state, int64_t slice) {
  return state->varied ? INT64_C(1) << state->by_slice.lanes_log2[slice] : state->lanes;
}

static int64_t slice_local_rows(const struct state *state, int64_t slice) { return LANES / slice_lanes(state, slice); }

static int64_t slice_first(const struct state *state, int64_t slice) {
  return state->varied ? (int64_t)state->by_slice.first_local_row[slice] : slice * (LANES / state->lanes);
}

/* Rows of a thread block, unless varied. */
static int64_t block_rows(const struct state *state) { return WARPS * LANES / state->lanes; }

/* Whole thread blocks of as many lanes for each row. */
static void set_slices(struct state *state) {
  state->slices = cb_divide_up(state->csr->rows, block_rows(state)) * WARPS;
  state->local_rows = state->slices * (LANES / state->lanes);
}

/* Which nonzero of its local row the first of its `lanes` meets in a step; the next lane meets that which is `vector`
 * further on. */
static int64_t nonzero_at(const struct state *state, int64_t step, int64_t lanes) {
  const int64_t vector = state->vector;
  return step / vector * lanes * vector + step % vector;
}

/* Two where rows are long enough that padding them costs little: half the loads. Complex numbers stay alone: a band of
 * 16 in a row takes 41.6 us, by two 48.6, and of floats 22.6 and 23.6. */
static int choose_vector(const struct state *state, const struct cb_region_builder *builder) {
  enum { LONG = 12 };
  if (builder->settings[SELL_VECTOR]) return (int)builder->settings[SELL_VECTOR];
  if (cb_type_is_complex(builder->sum_type)) return 1;
  return state->csr->nnz / state->csr->rows >= (int64_t)LONG * state->lanes ? 2 : 1;
}

/* ---- order: needs the part; adds row (local rows in order of length) */

static int64_t row_length(const void *state, int64_t row) {
  return cb_csr_row_length(((const struct state *)state)->csr, row);
}

static int32_t *sorted_rows(const struct state *state, struct cb_arena *arena) {
  return cb_sorted_rows(arena, state->csr->rows, state->csr->rows, state->window, CB_MOST_LENGTH, row_length, state);
}

/* These, and padding behind them. */
static void take_order(struct state *state, const int32_t *sorted) {
  const int64_t rows = state->csr->rows;
  state->row = cb_arena_alloc(&state->arena, (size_t)state->local_rows, sizeof *state->row);
  if (!state->row) return;
  memcpy(state->row, sorted, (size_t)rows * sizeof *sorted);
  for (int64_t i = rows; i < state->local_rows; i++) state->row[i] = (int32_t)rows;
}

/* ---- steps: needs slices and the order; adds first_step, steps, longest */

/* The longest of rows in their natural order; those behind the last are as long as all, if all are as long. */
static int64_t longest_of_rows(const struct state *state, int64_t first, int64_t count) {
  const struct cb_csr *csr = state->csr;
  const int64_t end = cb_smaller(first + count, csr->rows);
  int64_t longest = cb_larger(state->equal, 0), begin = first < end ? cb_csr_row(csr, first) : 0;
  for (int64_t row = first; row < end; row++) {
    const int64_t next = cb_csr_row(csr, row + 1);
    longest = cb_larger(longest, next - begin);
    begin = next;
  }
  return longest;
}

/* Those of its longest local row: whole vectors. In order of length that is the first one, unless it is so long that
 * longer ones count alike. */
static int64_t steps_of_slice(const void *user, int64_t slice) {
  const struct state *state = user;
  const int64_t first = slice_first(state, slice), local_rows = slice_local_rows(state, slice);
  int64_t length = state->row ? length_at(state, first) : longest_of_rows(state, first, local_rows);
  const int is_longest = !state->row || (state->sorted && length < CB_MOST_LENGTH);
  for (int64_t i = 1; i < local_rows && !is_longest; i++) length = cb_larger(length, length_at(state, first + i));
  return cb_divide_up(length, slice_lanes(state, slice) * state->vector) * state->vector;
}

static void count_steps(struct state *state) {
  state->first_step = cb_first_steps(&state->arena, state->slices, steps_of_slice, state, &state->longest);
  if (state->first_step) state->steps = state->first_step[state->slices];
}

/* Steps whose loads are in flight together: all of a slice's if that is at most 8, else what a slice has on average,
 * 2 to 8. Where slices are about as long as each other, batches are of five or six if these are no more than those of
 * eight would be: 11 steps take 0.92 of what they take by eight, 9 take 0.9, but 13 by seven 1.14 (118 kernels). */
static int64_t choose_batch(const struct state *state) {
  const int64_t mean = cb_divide_up(state->steps, state->slices);
  if (state->cut) return SMALL_BATCH;
  if (state->together) return MOST_BATCH;
  if (state->longest <= MOST_BATCH) return cb_larger(state->longest, state->vector);
  const int64_t batches = cb_divide_up(state->longest, MOST_BATCH);
  const int is_even = !state->varied && !state->several && mean * 5 >= state->longest * 4;
  if (is_even && cb_divide_up(state->longest, LARGE_BATCH) == batches)
    return cb_round_up(cb_divide_up(state->longest, batches), state->vector);
  const int64_t batch = mean > MOST_BATCH ? MOST_BATCH : mean < 2 ? 2 : mean;
  return cb_round_up(batch, state->vector);
}

/* ---- varied slices: needs sorted rows; adds slices, lanes, segments */

static int is_split(const void *state, int64_t row) {
  return row_length(state, row) > ((const struct state *)state)->segment;
}

/* Rows over `segment` nonzeros: a slice for each segment. */
static void add_segments(struct state *state, const int32_t *rows, int64_t count) {
  int64_t at = 0;
  for (int64_t i = 0; i < count; i++)
    for (int64_t first = 0; first < cb_csr_row_length(state->csr, rows[i]); first += state->segment) {
      state->segment_first[at] = (uint32_t)first;
      state->row[at] = rows[i];
      cb_slices_set(&state->by_slice, at, CB_LANES_LOG2, at);
      at++;
    }
  state->split_slices = state->slices = state->local_rows = at;
}

/* What a window's rows come to: where its slices and local rows begin, or how many it has. */
struct extent {
  int64_t slices, local_rows;
};

/* Slices of a window's rows, longest first: lanes by the first row of each. Rows in segments come first, and are there
 * already. A slice ends with its window: the next one begins with long rows. Adds to `at`; only counts while there are
 * no slices. */
static void walk_window(struct state *state, const int32_t *sorted, int64_t window, struct extent *at) {
  const struct cb_csr *csr = state->csr;
  const int64_t end = cb_smaller((window + 1) * state->window, csr->rows);
  int64_t next = window * state->window;
  while (next < end && is_split(state, sorted[next])) next++;
  while (next < end) {
    const int log2 = cb_lanes_log2(cb_csr_row_length(csr, sorted[next]), state->target);
    const int64_t local_rows = LANES >> log2;
    if (state->by_slice.lanes_log2) {
      cb_slices_set(&state->by_slice, at->slices, log2, at->local_rows);
      for (int64_t i = 0; i < local_rows; i++)
        state->row[at->local_rows + i] = next + i < end ? sorted[next + i] : (int32_t)csr->rows;
    }
    at->slices++;
    at->local_rows += local_rows;
    next += local_rows;
  }
}

/* Places and slices for everything: those of segments, of windows, and empty ones that make thread blocks whole. */
static int alloc_slices(struct state *state, int64_t segments, struct extent all) {
  state->segment_first = cb_arena_alloc(&state->arena, (size_t)segments, sizeof *state->segment_first);
  state->row = cb_arena_alloc(&state->arena, (size_t)(all.local_rows + WARPS), sizeof *state->row);
  return cb_slices_alloc(&state->by_slice, &state->arena, all.slices + WARPS);
}

/* Where each window's slices begin, behind the segments; `at` has one element more than there are windows. */
static void count_windows(struct state *state, const int32_t *sorted, int64_t segments, int64_t windows,
                          struct extent *at) {
  at[0] = (struct extent){segments, segments};
#pragma omp parallel for schedule(static) if (state->csr->rows > CB_PARALLEL_LEAST)
  for (int64_t window = 0; window < windows; window++) walk_window(state, sorted, window, &at[window + 1]);
  for (int64_t window = 0; window < windows; window++) {
    at[window + 1].slices += at[window].slices;
    at[window + 1].local_rows += at[window].local_rows;
  }
}

static void fill_windows(struct state *state, const int32_t *sorted, int64_t windows, const struct extent *at) {
#pragma omp parallel for schedule(static) if (state->csr->rows > CB_PARALLEL_LEAST)
  for (int64_t window = 0; window < windows; window++) {
    struct extent mine = at[window];
    walk_window(state, sorted, window, &mine);
  }
  state->slices = at[windows].slices;
  state->local_rows = at[windows].local_rows;
  while (state->slices % WARPS) { /* whole thread blocks */
    state->row[state->local_rows] = (int32_t)state->csr->rows;
    cb_slices_set(&state->by_slice, state->slices++, CB_LANES_LOG2, state->local_rows++);
  }
}

/* Whether there may be such rows: they come first in their windows. */
static int may_split(const struct state *state, const int32_t *sorted) {
  const int64_t rows = state->csr->rows;
  int may = state->segment >= CB_MOST_LENGTH; /* longer ones come as they are */
  for (int64_t first = 0; first < rows && !may; first += state->window) may = is_split(state, sorted[first]);
  return may;
}

static void make_slices(struct state *state, const int32_t *sorted) {
  const int64_t rows = state->csr->rows, windows = cb_divide_up(rows, state->window);
  struct cb_arena scratch = {0};
  int64_t count = 0, segments = 0;
  const int32_t *split = cb_rows_where(&scratch, may_split(state, sorted) ? rows : 0, is_split, state, &count);
  struct extent *at = cb_arena_alloc(&scratch, (size_t)windows + 1, sizeof *at);
  if (split && at) {
    for (int64_t i = 0; i < count; i++) segments += cb_divide_up(row_length(state, split[i]), state->segment);
    count_windows(state, sorted, segments, windows, at);
    if (alloc_slices(state, segments, at[windows])) {
      add_segments(state, split, count);
      fill_windows(state, sorted, windows, at);
    }
  } else {
    state->arena.failed = 1;
  }
  cb_arena_release(&scratch);
}

/* ---- choice of the order: needs lanes and vector; leaves the cheapest order's slices */

static int64_t slices_ns(const struct state *state, const struct cb_target *target) {
  enum { ORDER_BYTES = 4 };
  const int64_t order_bytes = state->sorted ? state->csr->rows * ORDER_BYTES : 0, batch = choose_batch(state);
  const struct cb_slices_work work = {.blocks = state->slices / WARPS,
                                      .mean = cb_divide_up(cb_divide_up(state->steps, state->slices), batch),
                                      .longest = cb_divide_up(state->longest, batch),
                                      .bytes = state->steps * LANES * state->slot_bytes + order_bytes,
                                      .nonzeros = state->csr->nnz,
                                      .sorted = state->sorted,
                                      .varied = state->varied,
                                      .split = state->split_slices > 0};
  return cb_slices_ns(&work, target);
}

/* The trial, which has an arena of its own, takes the other's place, or is freed. */
static int end_trial(struct state *state, struct state *trial, int better) {
  const int good = !trial->arena.failed;
  if (good && better) {
    const struct state given_up = *state;
    *state = *trial;
    *trial = given_up;
  }
  cb_arena_release(&trial->arena);
  return good;
}

/* None where rows are little longer than a segment: its second batches cost several vectors less than that segments
 * wait for each other (mip_dano3mip, 530 nonzeros and 512 of a segment, 8 vectors: 4.7 and 3.7 us). */
static void spare_segments(struct state *state) {
  int64_t longest = 0;
  for (int64_t row = 0; row < state->csr->rows; row++) longest = cb_larger(longest, row_length(state, row));
  if (2 * longest <= 3 * state->segment) state->segment = cb_larger(state->segment, longest);
}

/* The same rows sorted within windows, perhaps with varied lanes. */
static void sort_trial(struct state *trial, const struct state *state, const struct cb_target *target, int varied,
                       int64_t window) {
  const int64_t share = state->csr->nnz / (16 * LANES * (int64_t)target->multiprocessors);
  struct cb_arena scratch = {0};
  *trial = (struct state){.csr = state->csr,
                          .equal = varied ? -1 : state->equal,
                          .sorted = 1,
                          .varied = varied,
                          .window = window,
                          .lanes = state->lanes,
                          .vector = state->vector,
                          .slot_bytes = state->slot_bytes,
                          .several = state->several,
                          .target = MOST_BATCH};
  while (trial->target < 2 * MOST_BATCH && trial->target < share) trial->target *= 2;
  trial->segment = trial->target * 2 * LANES;
  if (state->several) spare_segments(trial);
  set_slices(trial);
  const int32_t *sorted = sorted_rows(trial, &scratch);
  if (!sorted) trial->arena.failed = 1;
  else if (varied) make_slices(trial, sorted);
  else take_order(trial, sorted);
  count_steps(trial);
  cb_arena_release(&scratch);
}

/* Instead of what the state is. The smallest window that leaves few slots empty, else the largest: rows near each
 * other have more of x and y in common. Of 728 products those of 256 rows take 0.92 of what those of 4096 take where
 * all rows have the same lanes (0.62 to 1.17), and 0.98 where they are by slice. Of small matrices all is near. */
static int try_sorted(struct state *state, const int64_t *settings, const struct cb_target *target, int varied,
                      int force) {
  enum { LEAST = 256, FACTOR = 4, MOST_SLOTS_PERCENT = 130, SMALL = 20000 /* nonzeros */ };
  const int64_t asked = settings[SELL_WINDOW], least = state->csr->nnz < SMALL ? CB_WINDOW : LEAST;
  struct state trial;
  for (int64_t window = asked ? asked : least;; window *= FACTOR) {
    sort_trial(&trial, state, target, varied, window);
    if (asked || window == CB_WINDOW || trial.arena.failed) break;
    if (trial.steps * LANES * 100 <= state->csr->nnz * MOST_SLOTS_PERCENT) break;
    cb_arena_release(&trial.arena);
  }
  return end_trial(state, &trial, force || slices_ns(&trial, target) < slices_ns(state, target));
}

/* Whether rows with the same lanes could take less by length than what the state is, were no slot empty: the longest of
 * `longest` steps stays what it is. Of R-MAT 22 that saves sorting 4 million rows three times. */
static int may_be_sorted(const struct state *state, int64_t longest, const struct cb_target *target) {
  const struct cb_slices_work work = {.mean = 1,
                                      .longest = cb_divide_up(longest, MOST_BATCH),
                                      .bytes = state->csr->nnz * state->slot_bytes,
                                      .nonzeros = state->csr->nnz,
                                      .sorted = 1};
  return cb_slices_ns(&work, target) < slices_ns(state, target);
}

/* ---- cut rows: adds the order of rows and segments */

/* Number of segments of all rows before, by row that is cut, and which row each is of. */
static int number_segments(struct state *state, const int32_t *rows) {
  int64_t segments = 0;
  state->first_segment = cb_arena_alloc(&state->arena, (size_t)state->cut_rows + 1, sizeof *state->first_segment);
  if (!state->first_segment) return 0;
  for (int64_t i = 0; i < state->cut_rows; i++) {
    state->first_segment[i] = (int32_t)segments;
    segments += cb_divide_up(row_length(state, rows[i]), state->segment);
  }
  state->first_segment[state->cut_rows] = (int32_t)segments;
  state->segments = segments;
  state->segment_row = cb_arena_alloc(&state->arena, (size_t)segments, sizeof *state->segment_row);
  state->segment_first = cb_arena_alloc(&state->arena, (size_t)segments, sizeof *state->segment_first);
  if (!state->segment_row || !state->segment_first) return 0;
  for (int64_t i = 0; i < state->cut_rows; i++)
    for (int64_t s = state->first_segment[i]; s < state->first_segment[i + 1]; s++) {
      state->segment_row[s] = rows[i];
      state->segment_first[s] = (uint32_t)((s - state->first_segment[i]) * state->segment);
    }
  return 1;
}

/* Rows that are not cut, and segments, the longest first. Cut rows are longer than all keys say, and have no place. */
static int order_cut(struct state *state) {
  const int64_t rows = state->csr->rows, keys = state->segment + 1, all = rows + state->segments;
  uint32_t *key = cb_alloc((size_t)all + 1, sizeof *key);
  state->slices = cb_round_up(cb_divide_up(all - state->cut_rows, LANES), WARPS);
  state->local_rows = state->slices * LANES;
  state->row = cb_arena_alloc(&state->arena, (size_t)state->local_rows, sizeof *state->row);
  if (!key || !state->row) {
    cb_free(key);
    return 0;
  }
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < all; i++) {
    const int64_t length = i < rows ? row_length(state, i) : segment_at(state, i - rows).length;
    key[i] = (uint32_t)(length > state->segment ? keys : state->segment - length);
  }
  const int64_t kept = cb_sort_by_key(state->row, key, all, keys);
  cb_free(key);
  for (int64_t i = 0; i < kept; i++) state->row[i] += state->row[i] >= rows;
  for (int64_t i = cb_larger(kept, 0); i < state->local_rows; i++) state->row[i] = (int32_t)rows;
  return kept >= 0;
}

static int make_cut(struct state *state) {
  struct cb_arena scratch = {0};
  const int32_t *rows = cb_rows_where(&scratch, state->csr->rows, is_split, state, &state->cut_rows);
  int good = rows && number_segments(state, rows);
  state->cut_row = good ? cb_arena_alloc(&state->arena, (size_t)state->cut_rows, sizeof *state->cut_row) : NULL;
  good = good && state->cut_row;
  if (good) memcpy(state->cut_row, rows, (size_t)state->cut_rows * sizeof *rows);
  cb_arena_release(&scratch);
  return good && order_cut(state);
}

/* Whether rows meet columns of all of the matrix, so that no order of rows is better than another for what L1 and L2
 * find of X: the mean of what a nonzero's row spans. */
static int is_scattered(const struct cb_csr *csr) {
  double span = 0;
  if (!cb_need_row_ends(csr)) return 0;
#pragma omp parallel for schedule(static) reduction(+ : span)
  for (int64_t row = 0; row < csr->rows; row++) {
    const int64_t length = cb_csr_row_length(csr, row);
    if (!length) continue;
    const struct cb_ends ends = cb_row_ends(csr, row);
    span += (double)length * (double)(ends.last - ends.first);
  }
  return span * 2 > (double)csr->nnz * (double)csr->cols;
}

/* R-MAT 20: eight vectors 169 us, 236 as varied; 16 vectors 285 and 353; four 164 and 141, so not there. The longest
 * take 64 us, so the matrix has to be large; segments are the longer, the larger it is. By columns it needs Y to be
 * laid out (plan/vectors.c). */
static int wants_cut(const struct state *state, const struct cb_region_builder *builder, const int64_t *settings) {
  enum { ROW_BYTES = 64, MEAN = 8, ROWS_OF_GPU = 2048 };
  const struct cb_csr *csr = state->csr;
  const int64_t bytes = builder->options->vectors * (int64_t)cb_type_size(builder->vector_type);
  if (builder->joins_rows || builder->may_be_joined || builder->own_rows) return 0;
  if (cb_type_is_complex(builder->sum_type)) return 0;
  if (csr->rows + csr->nnz / LEAST_SEGMENT >= INT32_MAX / 2) return 0; /* they have numbers */
  if (settings[SELL_CUT]) return settings[SELL_CUT] == CB_ON;
  if (builder->options->form == CB_FORM_ADD || builder->vector_type != builder->sum_type) return 0;
  return bytes >= ROW_BYTES && builder->options->copy_x != CB_OFF && state->varied && csr->nnz >= MEAN * csr->rows &&
         csr->rows >= (int64_t)ROWS_OF_GPU * builder->target->multiprocessors && is_scattered(csr);
}

/* Instead of what the state is. Lanes load two neighbouring nonzeros at once: L2 has 85 % of the requests that it can
 * answer, of which that leaves 2 M of 23 M out (R-MAT 20 x 8, 169.5 us; by one 177.5, by four 169.5). */
static int try_cut(struct state *state, const struct cb_region_builder *builder, const int64_t *settings) {
  enum { MOST = 256, SHARE = 1 << 16, VECTOR = 2 };
  struct state trial = {.csr = state->csr, .equal = -1, .sorted = 1, .several = 1, .cut = 1, .lanes = 1,
                        .vector = settings[SELL_VECTOR] ? (int)settings[SELL_VECTOR] : VECTOR,
                        .slot_bytes = state->slot_bytes, .segment = LEAST_SEGMENT};
  if (!wants_cut(state, builder, settings)) return 1;
  while (trial.segment < MOST && 2 * trial.segment * SHARE <= state->csr->nnz * 3 / 2) trial.segment *= 2;
  if (!make_cut(&trial)) trial.arena.failed = 1;
  else count_steps(&trial);
  return end_trial(state, &trial, settings[SELL_CUT] == CB_ON || trial.cut_rows > 0);
}

/* ---- lanes of rows that are about as long as each other: needs the part */

/* Several vectors have sharers of their own. */
static int is_even(const struct state *state, const struct cb_target *target) {
  const struct cb_csr *csr = state->csr;
  int64_t longest = 0;
  if (state->several || !cb_rows_are_many(csr->rows, csr->nnz, target)) return 0;
#pragma omp parallel for schedule(static) reduction(max : longest) if (csr->rows > CB_PARALLEL_LEAST)
  for (int64_t row = 0; row < csr->rows; row++) longest = cb_larger(longest, row_length(state, row));
  return cb_rows_are_even(csr->rows, csr->nnz, longest);
}

static int64_t even_ns(const struct state *state, const struct cb_target *target) {
  enum { BLOCKS = 6, MORE_BLOCKS = 8 /* of a multiprocessor */ };
  const int64_t batch = choose_batch(state), steps = cb_divide_up(state->steps, state->slices);
  return cb_even_rows_ns(state->steps * LANES * (state->slot_bytes - 1), state->slices / WARPS,
                         batch <= SMALL_BATCH ? MORE_BLOCKS : BLOCKS, cb_divide_up(steps, batch), state->lanes, target);
}

/* Lanes for even rows, of which the slices stay: those of the least time. */
static int choose_even_lanes(struct state *state, const struct cb_region_builder *builder) {
  const struct cb_csr *csr = state->csr;
  const int most = cb_even_rows_most_lanes(csr->rows, csr->nnz, state->slot_bytes, builder->target);
  int64_t best = INT64_MAX;
  for (int lanes = 1; lanes <= most; lanes *= 2) {
    struct state trial = {.csr = csr, .equal = state->equal, .slot_bytes = state->slot_bytes, .lanes = lanes};
    trial.vector = choose_vector(&trial, builder);
    set_slices(&trial);
    count_steps(&trial);
    const int64_t ns = trial.arena.failed ? INT64_MAX : even_ns(&trial, builder->target);
    if (!end_trial(state, &trial, ns < best)) return 0;
    best = cb_smaller(best, ns);
  }
  return 1;
}

/* Natural, sorted or varied: what is predicted to be fastest, or what the options say. Equal rows need no order. */
static int cut_slices(struct state *state, const struct cb_region_builder *builder, const int64_t *settings) {
  enum { COLUMN_BYTES = 3 };
  const struct cb_csr *csr = state->csr = builder->work.part.csr;
  const int64_t sort = settings[SELL_SORT], vary = settings[SELL_VARY];
  int good = 1;
  state->slot_bytes = builder->value_bytes + COLUMN_BYTES;
  state->several = builder->options->vectors > 1;
  state->equal = cb_equal_length(csr->rows, row_length, state);
  state->lanes =
      settings[SELL_LANES] ? (int)settings[SELL_LANES] : cb_row_lanes(csr->rows, csr->nnz, builder->target);
  state->vector = choose_vector(state, builder);
  set_slices(state);
  count_steps(state);
  const int even = !settings[SELL_LANES] && is_even(state, builder->target);
  if (even) good = choose_even_lanes(state, builder);
  const int sorts = sort == CB_AUTO && state->equal < 0 && !even && vary != CB_ON;
  const int varies = vary == CB_ON || (vary == CB_AUTO && !settings[SELL_LANES] && !even);
  const int64_t longest = state->longest;
  if (good && sort == CB_ON) good = try_sorted(state, settings, builder->target, 0, 1);
  if (good && varies) good = try_sorted(state, settings, builder->target, 1, vary == CB_ON);
  if (good && sorts && may_be_sorted(state, longest, builder->target))
    good = try_sorted(state, settings, builder->target, 0, 0);
  if (good) good = try_cut(state, builder, settings);
  return good && !state->arena.failed;
}

/* What waits of joined slices take on top: they come behind those of the region before, which nothing hides. Finite
 * elements 19^3 of seven unknowns behind their diagonals 20.4 us as 16 lanes alone, 32.7 joined as one lane; random
 * diagonals of 125069 rows the other way round, 19.5 and 12.1. */
static int64_t joining_ns(const struct state *joined, const struct state *alone) {
  enum { BATCH_NS = 300 };
  const int64_t batches = cb_divide_up(joined->longest, choose_batch(joined)),
                alone_batches = cb_divide_up(alone->longest, choose_batch(alone));
  return BATCH_NS * cb_larger(0, batches - alone_batches);
}

/* Joins the thread blocks of the region before, if that may be and is cheaper: rows in order, as few lanes for each as
 * fit. */
static int try_joining(struct state *state, const struct cb_region_builder *builder) {
  int64_t natural[SELL_OPTIONS]; /* the settings of such slices */
  struct state joined = {.slices = 0};
  memcpy(natural, builder->settings, sizeof natural);
  if (!builder->joins_rows || natural[SELL_SORT] == CB_ON || natural[SELL_VARY] == CB_ON) return 1;
  natural[SELL_SORT] = natural[SELL_VARY] = CB_OFF;
  const int chosen = natural[SELL_LANES] != 0;
  if (!chosen) natural[SELL_LANES] = 1;
  while (!chosen && natural[SELL_LANES] < LANES && !cb_region_may_join(builder, WARPS * LANES / natural[SELL_LANES]))
    natural[SELL_LANES] *= 2;
  if (!cb_region_may_join(builder, WARPS * LANES / natural[SELL_LANES])) return 1;
  if (!cut_slices(&joined, builder, natural)) return end_trial(state, &joined, 0);
  const int64_t joined_ns = slices_ns(&joined, builder->target) + joining_ns(&joined, state),
                alone_ns = slices_ns(state, builder->target) + builder->separate_launch_ns;
  return end_trial(state, &joined, builder->options->fuse == CB_ON || joined_ns <= alone_ns);
}

/* ---- the region: needs the slices; adds arrays and sections */

/* Slot of nonzero k of the local row number `in_slice` of a slice. */
static int64_t slot_of(const struct state *state, int64_t slice, int64_t in_slice, int64_t k) {
  const int64_t lanes = slice_lanes(state, slice), vector = state->vector;
  const int64_t group = state->first_step[slice] / vector + k / vector / lanes;
  const int64_t lane = in_slice * lanes + k / vector % lanes;
  return (group * LANES + lane) * vector + k % vector;
}

static void visit_slice(const struct state *state, int64_t slice, const struct cb_walk *walk) {
  const int32_t *column = cb_walk_columns(walk, state->csr), first = (int32_t)state->first_column[slice];
  for (int64_t i = 0; i < slice_local_rows(state, slice); i++) {
    const struct local_row local = local_row_at(state, slice_first(state, slice) + i);
    for (int64_t k = 0; k < local.length; k++)
      cb_emit(walk, slot_of(state, slice, i, k), local.begin + k, (uint32_t)(column[local.begin + k] - first));
  }
}

static int sell_visit(const void *state, int64_t first, int64_t end, const struct cb_walk *walk) {
  for (int64_t slice = first; slice < end; slice++) visit_slice(state, slice, walk);
  return 1;
}

/* The ends of all segments, which split slices hold one each. NULL: no memory. */
static struct cb_ends *ends_of_segments(const struct state *state) {
  const int64_t count = state->split_slices;
  struct cb_ends *ends = cb_alloc((size_t)count, sizeof *ends);
  struct cb_stretch *segments = cb_alloc((size_t)count, sizeof *segments);
  for (int64_t i = 0; segments && i < count; i++) {
    const struct local_row local = local_row_at(state, i);
    segments[i] = (struct cb_stretch){local.begin, local.length};
  }
  const int good = ends && segments && cb_stretch_ends(ends, state->csr, segments, count);
  cb_free(segments);
  if (good) return ends;
  cb_free(ends);
  return NULL;
}

/* What a slice's columns span: first > last where it has none. */
static struct cb_ends slice_ends(const struct state *state, int64_t slice, const struct cb_ends *of_segments) {
  const int64_t first = slice_first(state, slice), end = first + slice_local_rows(state, slice);
  struct cb_ends all = {INT64_MAX, -1};
  for (int64_t number = first; number < end; number++) {
    const struct local_row local = local_row_at(state, number);
    if (!local.length) continue;
    const struct cb_ends ends = slice < state->split_slices ? of_segments[slice] : cb_row_ends(state->csr, local.row);
    all.first = cb_smaller(all.first, ends.first);
    all.last = cb_larger(all.last, ends.last);
  }
  return all;
}

/* Fills in the slices' first columns; returns the largest offset from one. Rows are sorted. */
static int64_t measure_columns(struct state *state, const struct cb_ends *of_slices,
                               const struct cb_ends *of_segments) {
  int64_t largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest)
  for (int64_t slice = 0; slice < state->slices; slice++) {
    const struct cb_ends ends = of_slices ? of_slices[slice] : slice_ends(state, slice, of_segments);
    state->first_column[slice] = ends.last < 0 ? 0 : (uint32_t)ends.first;
    if (ends.last >= 0) largest = cb_larger(largest, ends.last - ends.first);
  }
  return largest;
}

static void build_columns(struct cb_region_builder *builder, struct state *state) {
  const int64_t each = LANES / state->lanes; /* slices of rows in order are measured where the columns are */
  struct cb_ends *of_slices = state->row ? NULL : cb_row_spans(state->csr, each, state->slices);
  struct cb_ends *of_segments = ends_of_segments(state);
  state->first_column = cb_arena_alloc(&state->arena, (size_t)state->slices, sizeof *state->first_column);
  const int ready = state->first_column && of_segments && (of_slices || cb_need_row_ends(state->csr));
  const int64_t largest = ready ? measure_columns(state, of_slices, of_segments) : 0;
  cb_free(of_slices);
  cb_free(of_segments);
  builder->failed |= !ready;
  cb_region_column_offsets(builder, "column", state->slices, state->first_column,
                           (struct cb_slot_elements){
                               .count = state->steps * LANES, .largest = largest, .of_columns = 1});
  if (state->vector > 1) cb_region_section(builder, "vectors");
}

/* A stretch for each lane's local row, whether there is one or not, so that all thread blocks have as many. */
static int64_t sector_stretches(const void *user, int64_t thread_block, struct cb_stretch *stretches) {
  const struct state *state = user;
  for (int64_t i = 0; stretches && i < WARPS * LANES; i++) {
    const int64_t slice = thread_block * WARPS + i / LANES, in_slice = i % LANES;
    const struct local_row none = {0, 0, 0}, local = in_slice < slice_local_rows(state, slice)
                                                         ? local_row_at(state, slice_first(state, slice) + in_slice)
                                                         : none;
    stretches[i] = (struct cb_stretch){local.begin, local.length};
  }
  return WARPS * LANES;
}

static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const struct state *state = user;
  for (int64_t slice = thread_block * WARPS; slice < (thread_block + 1) * WARPS; slice++) {
    const int64_t lanes = slice_lanes(state, slice), rows = LANES / lanes, first = slice_first(state, slice);
    const int32_t *columns[LANES];
    int64_t length[LANES];
    for (int64_t i = 0; i < rows; i++) {
      const struct local_row local = local_row_at(state, first + i);
      columns[i] = cb_sector_columns(sink, slice % WARPS * LANES + i, local.begin);
      length[i] = local.length;
    }
    for (int64_t step = 0; step < state->first_step[slice + 1] - state->first_step[slice]; step++) {
      cb_sector_load(sink);
      const int64_t first_lane = nonzero_at(state, step, lanes), behind = first_lane + lanes * state->vector;
      for (int64_t i = 0; i < rows; i++)
        for (int64_t k = first_lane; k < cb_smaller(behind, length[i]); k += state->vector)
          cb_sector_ask(sink, columns[i][k]);
    }
  }
}

static uint64_t local_row_length(const void *state, int64_t number) { return (uint64_t)length_at(state, number); }

/* Rows that are others' have no nonzeros here. */
static void leave_out_others(const struct cb_region_builder *builder, struct state *state) {
  const int32_t none = (int32_t)state->csr->rows;
  for (int64_t i = 0; builder->own_rows && i < state->local_rows; i++)
    if (state->row[i] != none && !cb_owns(builder->own_rows, state->row[i])) state->row[i] = none;
}

static void build_local_rows(struct cb_region_builder *builder, struct state *state) {
  cb_region_computed(builder, "local_row_length", "nonzeros of a local row", state->local_rows, local_row_length);
  if (!state->row) return;
  leave_out_others(builder, state);
  cb_region_list(builder, "row_of", "row of a local row; kRows: none", state->local_rows, state->row);
  cb_region_section(builder, "sorted");
}

/* Lanes per row: a constant, or by slice. */
static void build_lanes(struct cb_region_builder *builder, const struct state *state) {
  if (!state->varied) {
    cb_region_structure(builder, "kLanes", state->lanes, "plan: lanes that share a row");
    if (state->lanes > 1) cb_region_section(builder, "shared");
    return;
  }
  cb_region_slices(builder, &state->by_slice, state->slices, "a row of a slice");
  cb_region_section(builder, "varied");
  cb_region_section(builder, "shared");
}

static void build_facts(struct cb_region_builder *builder, const struct state *state) {
  cb_region_fact(builder, "slices", "%lld", (long long)state->slices);
  cb_region_fact(builder, "steps", "%lld", (long long)state->steps);
  if (state->varied) cb_region_fact(builder, "lanes", "varied");
  else cb_region_fact(builder, "lanes", "%d", state->lanes);
  if (state->vector > 1) cb_region_fact(builder, "vector", "%d", state->vector);
  if (state->sorted) cb_region_fact(builder, "sorted", "yes");
  if (state->cut) cb_region_fact(builder, "cut", "%lld %lld", (long long)state->cut_rows, (long long)state->segments);
}

static void build_batches(struct cb_region_builder *builder, const struct state *state) {
  const int64_t batch = choose_batch(state);
  cb_region_structure(builder, "kBatch", batch, "plan: steps whose loads are in flight together");
  if (state->vector > 1)
    cb_region_structure(builder, "kVector", state->vector,
                        "plan: neighbouring nonzeros of a row that a lane loads at once");
  if (state->longest > batch) cb_region_section(builder, "more");
  /* 32 or 40 registers, enough for a batch's loads; full multiprocessors where 32 are. 48 where lanes are by slice, and
   * of two doubles */
  const int is_large = state->varied && batch > LARGE_BATCH && builder->sum_type == CB_F64;
  const int is_wide = cb_region_is_wide(builder);
  builder->region.blocks_per_sm = batch <= SMALL_BATCH && !is_wide && !state->cut ? 8 : is_large || is_wide ? 5 : 6;
}

/* Thread blocks beside which those of many launches behind may wait: one on each multiprocessor. Of 129, fe_sphere
 * takes 0.83 for 1.18 us, maxwell_homog4 1.30 for 1.33, two random columns in a row 1.95 for 1.77. Of more it depends:
 * wang4 (204) 0.94 for 1.25, smallLQCD_A1 (192) 1.49 for 1.21. Where lanes are by slice, some have more to do than
 * others, and must not meet on a multiprocessor while others are idle: of 104 thread blocks (pubmed_cit) 2.75 for 2.0
 * us, of 67 (lpi_gosh) 1.7 for 1.9. */
enum { EARLY_BLOCKS_VARIED = 68 };

/* Where there is room for a few more thread blocks, those of the launch behind that find it are unevenly spread, and
 * random rows feel it: 625 of 792 (40000 rows of 16) take 7.4 us for 5.4, 782 of 1056 4.6 for 4.0. Where there is none
 * they come as others leave: road_USA-NY (1033 for 792) takes 3.3 us for 3.6, finite elements 16^3 (768 of 792) 2.1 for
 * 2.7, random rows (782 of 792) 11.6 for 12.3. But those of one step in order are gone too soon: a diagonal of 873936
 * rows takes 4.6 us for 3.4. */
static int fills_the_gpu(const struct cb_region_builder *builder, const struct state *state) {
  const int64_t room = (int64_t)builder->region.blocks_per_sm * builder->target->multiprocessors;
  const int is_short = !state->sorted && state->steps < 2 * state->slices;
  return !state->varied && !state->cut && !is_short && builder->region.blocks * 20 >= room * 19;
}

static enum cb_next choose_next(const struct cb_region_builder *builder, const struct state *state) {
  const int64_t blocks = builder->region.blocks;
  const int64_t few = state->varied ? EARLY_BLOCKS_VARIED : builder->target->multiprocessors;
  if (blocks <= few || fills_the_gpu(builder, state)) return CB_NEXT_AT_ONCE;
  return blocks <= CB_LATE_BLOCKS ? CB_NEXT_BEHIND : CB_NEXT_AT_END;
}

/* Batches of 4 or 8 steps, in double precision of 6, too, whose registers are those of the batches that they stand for.
 * But 40 registers do not hold the loads of six steps in double precision: the last ones wait for the first, which
 * slices feel that are one batch, those of many lanes. They hold those of five. */
static int64_t family_batch(const struct cb_region_builder *builder, const struct state *state) {
  const int64_t batch = choose_batch(state);
  if (batch <= SMALL_BATCH) return SMALL_BATCH;
  if (builder->sum_type != CB_F64 || batch > LARGE_BATCH) return MOST_BATCH;
  return batch < LARGE_BATCH && !state->varied && state->lanes >= LANES / 2 ? batch : LARGE_BATCH;
}

/* One text for all lengths and ends of rows, and for large ones also for all orders, numbers of batches, and starts of
 * the kernel behind. Short ones feel what asks for that: bcsstk29 takes 2.9 for 2.6 us, wang4 1.45 for 1.35,
 * delaunay_n13 1.2 for 0.9. Where lanes are by slice, 64 registers hold the loads of eight steps. */
static void build_family(struct cb_region_builder *builder, const struct state *state) {
  const int64_t batch = family_batch(builder, state);
  cb_region_family_structure(builder, "kBatch", batch, "family: steps whose loads are in flight together");
  if (builder->sum_type == CB_F64 && state->varied && batch > LARGE_BATCH) builder->region.family.blocks_per_sm = 4;
  cb_region_family_with(builder, "guarded");
  if (!builder->region.next_is_structure) {
    cb_region_family_size(builder, "next_start", builder->region.next);
    cb_region_family_with(builder, "more");
    cb_region_family_with(builder, "sorted");
    cb_region_family_sequence(builder, "row_of", 0, 1);
  }
  if (!state->varied) cb_region_family_with(builder, "settled");
  if (!state->varied) return;
  cb_region_family_with(builder, "carry");
  cb_region_family_size(builder, "kSegments", 0);
  cb_region_family_sequence(builder, "carry_group", 0, 0);
  cb_region_family_sequence(builder, "carry_first", 0, 0);
}

/* Of several vectors, loads hide behind further warps rather than behind larger batches: R-MAT 20, 16 vectors in double
 * precision, 343 for 462 µs by five for two. Where sums are carried 48 registers are too few on some GPUs. */
static int several_blocks(const struct cb_region_builder *builder, const struct state *state) {
  return builder->sum_type != CB_F64 ? 0 : state->split_slices ? 4 : choose_batch(state) <= SMALL_BATCH ? 6 : 0;
}

/* Segments' sums, which a second launch adds up, by eight lanes for a row. */
static void build_cut(struct cb_region_builder *builder, const struct state *state) {
  enum { LANES_OF_ROW = 8, THREADS = 256 };
  if (!state->cut_rows) return;
  cb_region_list(builder, "cut_row", "a row that is cut into segments", state->cut_rows, state->cut_row);
  cb_region_list(builder, "first_segment", "segments of the rows before; cut rows + 1", state->cut_rows + 1,
                 state->first_segment);
  cb_region_size(builder, "kCutRows", state->cut_rows, "plan: rows that are cut into segments");
  cb_region_section(builder, "cut");
  builder->region.carry_slots = state->segments;
  builder->region.carry_width = 1;
  builder->region.finish_blocks = cb_divide_up(state->cut_rows * LANES_OF_ROW, THREADS);
  builder->region.most_lanes = LANES_OF_ROW;
  builder->region.carries_parts = 1;
}

/* How its launch follows another's. What is loaded before the wait shall stay there: bcsstm27 takes 0.80 for 0.94 us,
 * tuma2 0.75 for 0.83, road_USA-NY 3.2 for 3.4, of others most 2 to 8 % less, bcsstk29 2 % more. Where lanes are by
 * slice it makes no difference, or little (pubmed_cit 1.93 for 1.87); pairs of slots were not tried. */
static void build_start(struct cb_region_builder *builder, const struct state *state) {
  enum { SHORT = 8 }; /* thread blocks of a multiprocessor: all that it may hold */
  const int is_short = builder->region.blocks <= SHORT * builder->target->multiprocessors;
  builder->region.late = CB_LATE_ALONE;
  builder->region.next = choose_next(builder, state);
  builder->region.next_is_structure = is_short && builder->region.next != CB_NEXT_AT_END;
  builder->region.may_start_next = 1;
  builder->region.loads_early = !state->varied && state->vector == 1;
}

static void build_region(struct cb_region_builder *builder, struct state *state) {
  build_facts(builder, state);
  cb_region_list(builder, "first_step", "steps before a slice, 32 slots each", state->slices + 1, state->first_step);
  build_columns(builder, state);
  cb_region_values(builder, "values", "per slice, step and lane", state->steps * LANES);
  build_local_rows(builder, state);
  build_lanes(builder, state);
  cb_region_carries(builder, "carry", state->split_slices, state->segment_first,
                    "plan: slices that hold a segment of a long row");
  const int guarded = state->varied || builder->own_rows || state->local_rows > state->csr->rows;
  const int asks = builder->own_rows && !state->row; /* local rows in an order of their own leave rows out */
  if (asks) cb_region_own_rows(builder);
  if (guarded) cb_region_section(builder, "guarded");
  builder->region.blocks = state->slices / WARPS;
  build_batches(builder, state);
  build_start(builder, state);
  build_family(builder, state);
  builder->region.block_rows = state->sorted ? 0 : block_rows(state);
  builder->region.row_threads = state->sorted ? 0 : state->lanes;
  builder->region.takes_vectors = 1;
  builder->region.sharing = state->cut ? CB_SHARING_LANES : CB_SHARING_WARPS;
  builder->region.several_blocks = several_blocks(builder, state);
  builder->region.most_lanes = state->varied ? LANES : state->lanes;
  builder->region.scatters_rows = state->cut;
  builder->region.loads_together = state->together;
  builder->region.steps = (struct cb_steps){.steps = state->steps, .loads = 2, .columns = 1};
  if (state->cut) build_cut(builder, state);
}

/* Where slices are many and short, what a warp waits for is all that it does: its loads depend on each other, and where
 * lanes are by slice, on the slice's record first. */
static int64_t waves_ns(const struct cb_region_builder *builder, const struct state *state) {
  const int64_t resident = (int64_t)WARPS * builder->region.blocks_per_sm * builder->target->multiprocessors;
  const int64_t wave_ns = CB_COST_SELL_WAVE_NS + (state->varied ? CB_COST_SELL_RECORD_NS : 0);
  return state->slices > resident ? state->slices * wave_ns / resident : 0;
}

/* A slice's batches follow one another, and segments wait for their last. */
static enum cb_status predict(struct cb_region_builder *builder, const struct state *state, struct cb_diag *diag) {
  builder->region.cost.work_ns = waves_ns(builder, state);
  if (state->steps <= state->slices * choose_batch(state)) builder->region.wait_ns = builder->region.cost.work_ns;
  const int64_t mean = cb_divide_up(state->steps, state->slices);
  const int64_t chain = state->cut ? mean : state->longest; /* the longest begin first there */
  builder->region.cost.chain_ns = cb_divide_up(chain, choose_batch(state)) * CB_COST_BATCH_NS;
  builder->region.cost.tail_ns = state->split_slices || state->cut_rows ? CB_COST_CARRY_NS : 0;
  builder->region.cost.stream_percent = CB_COST_SELL_PERCENT;
  return cb_sectors_predict_by_stretch(builder, state, visit_sectors, sector_stretches, diag);
}

/* Several vectors whose loads wait more than they queue: of cut rows (R-MAT 20 x 8, 186 us by loads in branches, 177
 * so), and of matrices that the GPU has room for at once while some row waits for batch after batch (mbeacxc 4.2 and
 * 2.8 us). Where rows are short it loads too much: road_USA-NY takes 15.8 for 13.5 us. */
static int loads_together(const struct state *state, const struct cb_region_builder *builder) {
  enum { BLOCKS = 3, WIDE_BLOCKS = 2, WIDE = 64 }; /* of a multiprocessor; bytes of a row's sums */
  enum { PARTS = 4 };                              /* threads that share vectors, at most */
  const int64_t bytes = builder->options->vectors * (int64_t)cb_type_size(builder->sum_type);
  const int64_t blocks = state->slices / WARPS * cb_smaller(builder->options->vectors / 2, PARTS);
  const int64_t most = bytes > WIDE ? WIDE_BLOCKS : BLOCKS; /* two doubles of a batch fit 80 registers */
  if (!state->several || state->cut) return state->cut;
  return state->longest >= 2 * MOST_BATCH && blocks <= most * builder->target->multiprocessors &&
         !cb_type_is_complex(builder->sum_type);
}

static enum cb_status sell_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  const struct cb_csr *csr = builder->work.part.csr;
  const enum cb_status s = cb_region_state(builder, sizeof(struct state), diag);
  struct state *state = builder->work.state;
  if (s) return s;
  if (!cut_slices(state, builder, builder->settings) || !try_joining(state, builder))
    return cb_fail_memory(diag, "slices", (uint64_t)csr->rows * 8);
  const int64_t slots = state->steps * LANES;
  if (slots / 64 > csr->nnz + csr->rows + 65536 || state->slices > INT32_MAX)
    return cb_fail(diag, CB_ERR_LIMIT, "sliced ELL would pad %lld nonzeros to %lld slots; use another recipe",
                   (long long)csr->nnz, (long long)slots);
  state->together = loads_together(state, builder);
  builder->work.units = state->slices;
  builder->needs_columns |= state->cut && csr->remote; /* the host packs it */
  build_region(builder, state);
  return predict(builder, state, diag);
}

/* ---- packing on the device: templates/pack_sell.cu.in has the same numbers and lists */

static void describe(const void *user, struct cb_pack_lists *lists) {
  enum { SLICES, STEPS, ROWS, LANES_LOG2, VECTOR, SEGMENT, SPLIT_SLICES, GROUPS_OF_WARP };
  enum { GROUPS = 8 }; /* of slots, a vector for each lane, that a warp packs one after the other */
  enum { FIRST_STEP, FIRST_COLUMN, ROW, LANES_OF, FIRST_LOCAL_ROW, SEGMENT_FIRST };
  const struct state *state = user;
  const int64_t slices = state->slices, varied = state->varied ? slices : 0;
  int log2 = 0;
  if (state->cut) {
    *lists = (struct cb_pack_lists){.lists = {{NULL, 1}}}; /* none */
    return;
  }
  while (INT64_C(1) << log2 < state->lanes) log2++;
  *lists = (struct cb_pack_lists){
      .numbers = {[SLICES] = slices, [STEPS] = state->steps, [ROWS] = state->csr->rows, [LANES_LOG2] = log2,
                  [VECTOR] = state->vector, [SEGMENT] = state->segment, [SPLIT_SLICES] = state->split_slices,
                  [GROUPS_OF_WARP] = GROUPS},
      .lists = {[FIRST_STEP] = {state->first_step, (slices + 1) * (int64_t)sizeof *state->first_step},
                [FIRST_COLUMN] = {state->first_column, slices * (int64_t)sizeof *state->first_column},
                [ROW] = {state->row, state->row ? state->local_rows * (int64_t)sizeof *state->row : 0},
                [LANES_OF] = {state->by_slice.lanes_log2, varied},
                [FIRST_LOCAL_ROW] = {state->by_slice.first_local_row,
                                     varied * (int64_t)sizeof *state->by_slice.first_local_row},
                [SEGMENT_FIRST] = {state->segment_first,
                                   state->split_slices * (int64_t)sizeof *state->segment_first}},
      .warps = cb_divide_up(state->steps / state->vector, GROUPS),
  };
}

/* For reports. */
static void count_loads(const void *user, int64_t *nonzeros) {
  const struct state *state = user;
  for (int64_t slice = 0; slice < state->slices; slice++)
    for (int64_t i = 0; i < slice_local_rows(state, slice); i++)
      nonzeros[slice / WARPS] += local_row_at(state, slice_first(state, slice) + i).length;
}

/* For reports. */
static int64_t block_of(const void *user, struct cb_met met) {
  (void)user;
  return met.unit / WARPS;
}

const struct cb_layout cb_layout_sell = {
    .name = "sell",
    .summary = "sliced ELL, narrow column offsets, lanes per row by the matrix",
    .source = "SELL-C-sigma: Kreutzer et al., SIAM J. Sci. Comput. 36 (2014)",
    .options = cb_sell_options,
    .options_count = SELL_OPTIONS,
    .recipes = cb_sell_recipes,
    .plan = sell_plan,
    .has_family = 1,
    .visit = sell_visit,
    .unit = "slice",
    .block_of = block_of,
    .count_loads = count_loads,
    .describe = describe,
    .least = {.bytes = 1, .percent = CB_COST_SELL_PERCENT},
    .most_rows = INT32_MAX - 8192,
    .minds_own_rows = 1,
};
