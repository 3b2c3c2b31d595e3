// SPDX-License-Identifier: Apache-2.0
/* Sliced ELL: a warp takes a slice of 32 lanes, 1 to 32 lanes share a row, and the slots of one step lie side by
 * side, so that values and column offsets stream. Columns are offsets from the slice's first column, which the
 * narrowest type holds. After SELL-C-σ (Kreutzer, Hager, Wellein, Fehske, Bishop), with C = 32 lanes.
 *
 * Three degrees, each only where the matrix asks for it:
 *   natural  rows in order, the same number of lanes for each
 *   sorted   rows ordered by length within windows: fewer empty slots
 *   varied   sorted, lanes per row chosen per slice, and rows of more than `piece` nonzeros cut into pieces that a
 *            slice each takes; the last piece to arrive adds up (carry slots)
 *
 * A place is what a group of lanes multiplies: a row, a piece of one, or nothing (padding). Its length is stored,
 * and no lane goes past it: padding is never multiplied, so neither NaN nor Inf in x reaches a row through it.
 * Equal lengths become a constant.
 *
 * How to read it: sell_plan near the end calls the passes in order.
 */
#include "analysis/layout.h"
#include "analysis/ordering.h"
#include "analysis/plan/cost_figures.h"
#include "analysis/sectors.h"

#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

enum {
  WARPS = 8,
  LANES = 32,
  WINDOW = 4096, /* rows that are sorted together */
  LONGEST_PIECE = 2048,
  MOST_BATCH = 8,
  SMALL_BATCH = 4,
  NO_ROW = -1
};

struct state {
  const struct cb_csr *csr;
  int64_t equal;      /* length of every row, or -1. Padding has it, too */
  int sorted, varied;
  int lanes;          /* per row, unless varied */
  int vector;         /* neighbouring nonzeros of a row that a lane loads at once */
  int64_t slot_bytes; /* of a value and its column, about */
  int64_t target;     /* varied: steps per lane that are aimed at */
  int64_t piece;      /* varied: nonzeros of a piece */
  int64_t slices;
  int64_t *first_step; /* by slice: steps before it; slices + 1 */
  /* by place; NULL: places are rows in order */
  int32_t *row;        /* NO_ROW: padding */
  int64_t places;
  /* varied, by slice */
  unsigned char *lanes_log2;
  uint32_t *first_place;
  int64_t split_slices; /* the first slices: one piece each */
  uint32_t *piece_first; /* by split slice: the piece's first nonzero in its row */
};

static void state_clear(struct state *state) {
  cb_free(state->first_step);
  cb_free(state->row);
  cb_free(state->lanes_log2);
  cb_free(state->first_place);
  cb_free(state->piece_first);
}

static void state_release(void *memory) {
  if (memory) state_clear(memory);
  cb_free(memory);
}

/* What a place holds: nonzeros begin … end - 1 of the part, of `row`. */
struct place {
  int64_t row, begin, length;
};

static struct place place_at(const struct state *state, int64_t number) {
  const struct cb_csr *csr = state->csr;
  const int64_t row = state->row ? state->row[number] : number < csr->rows ? number : NO_ROW;
  if (row == NO_ROW) return (struct place){NO_ROW, 0, state->equal < 0 ? 0 : state->equal};
  struct place place = {row, cb_csr_row(csr, row), cb_csr_row_length(csr, row)};
  if (number < state->split_slices) { /* split slices hold one place each */
    place.begin += state->piece_first[number];
    place.length -= state->piece_first[number];
    if (place.length > state->piece) place.length = state->piece;
  }
  return place;
}

static int64_t slice_lanes(const struct state *state, int64_t slice) {
  return state->varied ? INT64_C(1) << state->lanes_log2[slice] : state->lanes;
}

static int64_t slice_places(const struct state *state, int64_t slice) { return LANES / slice_lanes(state, slice); }

static int64_t slice_first(const struct state *state, int64_t slice) {
  return state->varied ? (int64_t)state->first_place[slice] : slice * (LANES / state->lanes);
}

/* Places of a thread block, unless varied. */
static int64_t block_rows(const struct state *state) { return WARPS * LANES / state->lanes; }

/* Steps of a slice whose longest place has `length` nonzeros: whole vectors. */
static int64_t slice_steps(const struct state *state, int64_t length, int64_t lanes) {
  return cb_divide_up(length, lanes * state->vector) * state->vector;
}

/* Which nonzero of its place a lane (of the place's `lanes`) meets in a step. */
static int64_t nonzero_at(const struct state *state, int64_t step, int64_t lane, int64_t lanes) {
  const int64_t vector = state->vector;
  return (step / vector * lanes + lane) * vector + step % vector;
}

static int64_t equal_length(const struct cb_csr *csr) {
  const int64_t length = csr->nnz / csr->rows;
  int other = 0;
#pragma omp parallel for schedule(static) reduction(| : other)
  for (int64_t row = 0; row < csr->rows; row++) other |= cb_csr_row_length(csr, row) != length;
  return other ? -1 : length;
}

/* Lanes per row: as many as it takes to give each multiprocessor 1024 threads, but two nonzeros for each at least;
 * more for long rows, whose lanes would walk far apart otherwise. */
static int choose_lanes(const struct cb_csr *csr, const struct cb_options *options, const struct cb_target *target) {
  if (options->sell_lanes) return (int)options->sell_lanes;
  const int64_t mean = csr->nnz / csr->rows;
  int lanes = 1;
  while (lanes < LANES && csr->rows * lanes < 1024 * (int64_t)target->multiprocessors && mean >= 4 * lanes) lanes *= 2;
  while (lanes < LANES && mean >= 128 * lanes) lanes *= 2;
  return lanes;
}

/* Two where rows are long enough that padding them costs little: half the loads. */
static int choose_vector(const struct state *state, const struct cb_options *options) {
  enum { LONG = 12 };
  if (options->sell_vector) return (int)options->sell_vector;
  return state->csr->nnz / state->csr->rows >= (int64_t)LONG * state->lanes ? 2 : 1;
}

/* ---- order: needs the part; adds row (places in order of length) */

/* Longest first within a window, ties in the order of rows: counting sort, lengths over the longest piece alike. */
static void sort_window(const struct cb_csr *csr, int64_t first, int64_t end, int32_t *sorted) {
  int32_t start[LONGEST_PIECE + 2] = {0};
  for (int64_t row = first; row < end; row++) {
    const int64_t length = cb_csr_row_length(csr, row);
    start[LONGEST_PIECE - (length < LONGEST_PIECE ? length : LONGEST_PIECE) + 1]++;
  }
  for (int key = 1; key <= LONGEST_PIECE; key++) start[key] += start[key - 1];
  for (int64_t row = first; row < end; row++) {
    const int64_t length = cb_csr_row_length(csr, row);
    sorted[start[LONGEST_PIECE - (length < LONGEST_PIECE ? length : LONGEST_PIECE)]++] = (int32_t)row;
  }
}

static int32_t *sorted_rows(const struct cb_csr *csr, int64_t room) {
  int32_t *rows = cb_alloc((size_t)room, sizeof *rows);
  if (!rows) return NULL;
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < csr->rows; first += WINDOW)
    sort_window(csr, first, first + WINDOW < csr->rows ? first + WINDOW : csr->rows, rows + first);
  for (int64_t place = csr->rows; place < room; place++) rows[place] = NO_ROW;
  return rows;
}

/* ---- uniform slices: needs lanes and the order; adds slices and first_step (not yet summed up) */

/* Returns the steps of all slices; the longest slice's in *longest. */
static int64_t count_steps(struct state *state, int64_t *longest) {
  int64_t steps = 0, most = 0;
#pragma omp parallel for schedule(static) reduction(+ : steps) reduction(max : most)
  for (int64_t slice = 0; slice < state->slices; slice++) {
    int64_t length = 0;
    const int64_t first = slice_first(state, slice);
    for (int64_t i = 0; i < slice_places(state, slice); i++) {
      const int64_t of_place = place_at(state, first + i).length;
      length = of_place > length ? of_place : length;
    }
    state->first_step[slice + 1] = slice_steps(state, length, slice_lanes(state, slice));
    steps += state->first_step[slice + 1];
    most = state->first_step[slice + 1] > most ? state->first_step[slice + 1] : most;
  }
  *longest = most;
  return steps;
}

/* ---- varied slices: needs sorted rows; adds slices, lanes, pieces */

static int is_split(const void *state, int64_t row) {
  const struct state *varied = state;
  return cb_csr_row_length(varied->csr, row) > varied->piece;
}

static void add_slice(struct state *state, int64_t slice, int log2, int64_t first_place) {
  state->lanes_log2[slice] = (unsigned char)log2;
  state->first_place[slice] = (uint32_t)first_place;
}

/* Rows over `piece` nonzeros: a slice for each piece. */
static void add_pieces(struct state *state, const int32_t *rows, int64_t count) {
  int64_t at = 0;
  for (int64_t i = 0; i < count; i++)
    for (int64_t first = 0; first < cb_csr_row_length(state->csr, rows[i]); first += state->piece) {
      state->piece_first[at] = (uint32_t)first;
      state->row[at] = rows[i];
      add_slice(state, at, 5, at);
      at++;
    }
  state->split_slices = state->slices = state->places = at;
}

/* What a window's rows come to: where its slices and places begin, or how many it has. */
struct extent {
  int64_t slices, places;
};

/* Slices of a window's rows, longest first: lanes by the first row of each. Rows in pieces come first, and are there
 * already. A slice ends with its window: the next one begins with long rows. Adds to `at`; only counts while there are
 * no slices. */
static void walk_window(struct state *state, const int32_t *sorted, int64_t window, struct extent *at) {
  const struct cb_csr *csr = state->csr;
  const int64_t end = cb_smaller((window + 1) * WINDOW, csr->rows);
  int64_t next = window * WINDOW;
  while (next < end && is_split(state, sorted[next])) next++;
  while (next < end) {
    const int64_t length = cb_csr_row_length(csr, sorted[next]);
    int log2 = 0;
    while (log2 < 5 && cb_divide_up(length, INT64_C(1) << log2) > state->target) log2++;
    const int64_t places = LANES >> log2;
    if (state->lanes_log2) {
      add_slice(state, at->slices, log2, at->places);
      for (int64_t i = 0; i < places; i++) state->row[at->places + i] = next + i < end ? sorted[next + i] : NO_ROW;
    }
    at->slices++;
    at->places += places;
    next += places;
  }
}

/* Places and slices for everything: those of pieces, of windows, and empty ones that make thread blocks whole. */
static int alloc_slices(struct state *state, struct extent all) {
  const size_t slices = (size_t)(all.slices + WARPS), places = (size_t)(all.places + WARPS);
  state->lanes_log2 = cb_alloc(slices, 1);
  state->first_place = cb_alloc(slices, sizeof *state->first_place);
  state->row = cb_alloc(places, sizeof *state->row);
  return state->lanes_log2 && state->first_place && state->row;
}

/* `at` has one place more than there are windows. */
static int add_slices(struct state *state, const int32_t *sorted, const int32_t *split, int64_t split_count,
                      struct extent *at) {
  const int64_t windows = cb_divide_up(state->csr->rows, WINDOW);
  int64_t pieces = 0;
  for (int64_t i = 0; i < split_count; i++)
    pieces += cb_divide_up(cb_csr_row_length(state->csr, split[i]), state->piece);
  at[0] = (struct extent){pieces, pieces};
#pragma omp parallel for schedule(static)
  for (int64_t window = 0; window < windows; window++) walk_window(state, sorted, window, &at[window + 1]);
  for (int64_t window = 0; window < windows; window++) {
    at[window + 1].slices += at[window].slices;
    at[window + 1].places += at[window].places;
  }
  state->piece_first = cb_alloc((size_t)pieces, sizeof *state->piece_first);
  if (!state->piece_first || !alloc_slices(state, at[windows])) return 0;
  add_pieces(state, split, split_count);
#pragma omp parallel for schedule(static)
  for (int64_t window = 0; window < windows; window++) {
    struct extent mine = at[window];
    walk_window(state, sorted, window, &mine);
  }
  state->slices = at[windows].slices;
  state->places = at[windows].places;
  while (state->slices % WARPS) { /* whole thread blocks */
    state->row[state->places] = NO_ROW;
    add_slice(state, state->slices++, 5, state->places++);
  }
  return 1;
}

static int make_slices(struct state *state) {
  const int64_t rows = state->csr->rows;
  int64_t count = 0;
  int32_t *sorted = sorted_rows(state->csr, rows), *split = cb_rows_where(rows, is_split, state, &count);
  struct extent *at = cb_calloc((size_t)cb_divide_up(rows, WINDOW) + 1, sizeof *at);
  const int good = sorted && split && at && add_slices(state, sorted, split, count, at);
  cb_free(sorted);
  cb_free(split);
  cb_free(at);
  return good;
}

static int vary(struct state *state, const struct cb_target *target) {
  const struct cb_csr *csr = state->csr;
  const int64_t share = csr->nnz / (16 * LANES * (int64_t)target->multiprocessors);
  state->varied = state->sorted = 1;
  state->equal = -1;
  for (state->target = MOST_BATCH; state->target < 2 * MOST_BATCH && state->target < share;) state->target *= 2;
  state->piece = state->target * 2 * LANES;
  if (!make_slices(state)) return 0;
  state->first_step = cb_alloc((size_t)state->slices + 1, sizeof *state->first_step);
  return state->first_step != NULL;
}

/* ---- choice of the order: needs nothing; leaves the cheapest order's slices */

/* Predicted time of the slices as they are: bytes, then the longest slice's batches, one after the other. An order
 * costs row numbers, a scattered y and one more dependent load; pieces wait for their last. */
static int64_t predict_ns(const struct state *state, const struct cb_target *target, int64_t steps,
                          int64_t longest) {
  enum { ORDER_BYTES = 12 };
  const int64_t order = state->sorted ? state->csr->rows * ORDER_BYTES : 0;
  return (steps * LANES * state->slot_bytes + order) / target->read_gb_per_s +
         cb_divide_up(longest, MOST_BATCH) * CB_COST_BATCH_NS + (state->sorted ? CB_COST_SELL_ORDER_NS : 0) +
         (state->split_slices ? CB_COST_SELL_CARRY_NS : 0);
}

/* Sorts within windows and keeps it if it is cheaper than `*least`, which it then lowers. */
static enum cb_status try_sorted(struct state *state, const struct cb_target *target, int force, int64_t *least,
                                 struct cb_diag *diag) {
  int64_t longest;
  state->row = sorted_rows(state->csr, state->slices * slice_places(state, 0));
  if (!state->row) return cb_fail_memory(diag, "row order", (uint64_t)state->csr->rows * 4);
  state->sorted = 1;
  const int64_t steps = count_steps(state, &longest);
  const int64_t ns = predict_ns(state, target, steps, longest);
  if (force || ns < *least) {
    *least = ns;
    return CB_OK;
  }
  cb_free(state->row);
  state->row = NULL;
  state->sorted = 0;
  count_steps(state, &longest);
  return CB_OK;
}

/* The same with varied lanes, in a state of its own that takes the other's place if it is cheaper. */
static enum cb_status try_varied(struct state *state, const struct cb_target *target, int force, int64_t least,
                                 struct cb_diag *diag) {
  struct state varied = {.csr = state->csr,
                         .equal = -1,
                         .lanes = state->lanes,
                         .vector = state->vector,
                         .slot_bytes = state->slot_bytes};
  int64_t longest;
  if (!vary(&varied, target)) {
    state_clear(&varied);
    return cb_fail_memory(diag, "slices", (uint64_t)state->csr->rows * 8);
  }
  const int64_t steps = count_steps(&varied, &longest);
  if (force || predict_ns(&varied, target, steps, longest) < least) {
    const struct state given_up = *state;
    *state = varied;
    varied = given_up;
  }
  state_clear(&varied);
  return CB_OK;
}

/* Natural, sorted or varied: what is predicted to be fastest, or what the options say. Equal rows need no order. */
static enum cb_status decide_order(struct state *state, const struct cb_options *options,
                                   const struct cb_target *target, struct cb_diag *diag) {
  int64_t longest;
  const int64_t steps = count_steps(state, &longest);
  int64_t least = predict_ns(state, target, steps, longest);
  enum cb_status s = CB_OK;
  if (options->sell_sort == CB_ON || (options->sell_sort == CB_AUTO && state->equal < 0))
    s = try_sorted(state, target, options->sell_sort == CB_ON, &least, diag);
  if (!s && (options->sell_vary == CB_ON || (options->sell_vary == CB_AUTO && !options->sell_lanes)))
    s = try_varied(state, target, options->sell_vary == CB_ON, least, diag);
  if (s) return s;
  state->first_step[0] = 0;
  for (int64_t slice = 0; slice < state->slices; slice++) state->first_step[slice + 1] += state->first_step[slice];
  return CB_OK;
}

static int64_t longest_slice(const struct state *state) {
  int64_t longest = 0;
  for (int64_t slice = 0; slice < state->slices; slice++) {
    const int64_t steps = state->first_step[slice + 1] - state->first_step[slice];
    longest = steps > longest ? steps : longest;
  }
  return longest;
}

/* ---- slices: needs the part; adds lanes and vector, then all of the above */

static enum cb_status cut_slices(struct state *state, const struct cb_draft *draft, const struct cb_options *options,
                                 struct cb_diag *diag) {
  enum { COLUMN_BYTES = 3 };
  const struct cb_csr *csr = state->csr = draft->work.part.csr;
  state->slot_bytes = draft->value_bytes + COLUMN_BYTES;
  state->equal = equal_length(csr);
  state->lanes = choose_lanes(csr, options, draft->target);
  state->vector = choose_vector(state, options);
  state->slices = cb_divide_up(csr->rows, block_rows(state)) * WARPS;
  state->first_step = cb_calloc((size_t)state->slices + 1, sizeof *state->first_step);
  if (!state->first_step) return cb_fail_memory(diag, "slices", (uint64_t)state->slices * 8);
  return decide_order(state, options, draft->target, diag);
}

static int64_t slices_ns(const struct state *state, const struct cb_target *target) {
  return predict_ns(state, target, state->first_step[state->slices], longest_slice(state));
}

/* Joins the thread blocks of the region before, if that may be and is cheaper: rows in order, as few lanes for each as
 * fit. */
static enum cb_status try_joining(struct state *state, const struct cb_draft *draft, struct cb_diag *diag) {
  struct cb_options natural = *draft->options;
  struct state joined = {0};
  if (!draft->joins_rows || natural.sell_sort == CB_ON || natural.sell_vary == CB_ON) return CB_OK;
  natural.sell_sort = natural.sell_vary = CB_OFF;
  const int chosen = natural.sell_lanes != 0;
  if (!chosen) natural.sell_lanes = 1;
  while (!chosen && natural.sell_lanes < LANES && !cb_draft_may_join(draft, WARPS * LANES / natural.sell_lanes))
    natural.sell_lanes *= 2;
  if (!cb_draft_may_join(draft, WARPS * LANES / natural.sell_lanes)) return CB_OK;
  const enum cb_status s = cut_slices(&joined, draft, &natural, diag);
  if (!s && (natural.fuse == CB_ON ||
             slices_ns(&joined, draft->target) <= slices_ns(state, draft->target) + draft->apart_ns)) {
    const struct state given_up = *state;
    *state = joined;
    joined = given_up;
  }
  state_clear(&joined);
  return s;
}

/* ---- the region: needs the slices; adds arrays and pieces of text */

/* Slot of nonzero k of the place number `in_slice` of a slice. */
static int64_t slot_of(const struct state *state, int64_t slice, int64_t in_slice, int64_t k) {
  const int64_t lanes = slice_lanes(state, slice), vector = state->vector;
  const int64_t group = state->first_step[slice] / vector + k / vector / lanes;
  const int64_t lane = in_slice * lanes + k / vector % lanes;
  return (group * LANES + lane) * vector + k % vector;
}

static int32_t first_column(const struct state *state, int64_t slice) {
  int32_t least = INT32_MAX;
  for (int64_t i = 0; i < slice_places(state, slice); i++) {
    const struct place place = place_at(state, slice_first(state, slice) + i);
    if (place.row == NO_ROW || !place.length) continue;
    const int32_t column = state->csr->col_idx[place.begin];
    least = column < least ? column : least;
  }
  return least == INT32_MAX ? 0 : least;
}

/* What to do with every nonzero: any may be NULL. */
struct targets {
  struct cb_late offsets; /* of its column from its slice's first, by slot */
  const struct cb_slot_map *map;
  const struct cb_part *part;
};

static void visit_slice(const struct state *state, int64_t slice, const struct targets *targets) {
  const int32_t *column = state->csr->col_idx, first = first_column(state, slice);
  for (int64_t i = 0; i < slice_places(state, slice); i++) {
    const struct place place = place_at(state, slice_first(state, slice) + i);
    for (int64_t k = 0; place.row != NO_ROW && k < place.length; k++) {
      const int64_t slot = slot_of(state, slice, i, k), nonzero = place.begin + k;
      if (targets->offsets.bytes) cb_late_set(&targets->offsets, slot, (uint32_t)(column[nonzero] - first));
      if (targets->map) cb_slot_set(targets->map, slot, cb_part_origin(targets->part, nonzero));
    }
  }
}

static void visit_nonzeros(const struct state *state, const struct targets *targets) {
#pragma omp parallel for schedule(static)
  for (int64_t slice = 0; slice < state->slices; slice++) visit_slice(state, slice, targets);
}

/* Fills in the slices' first columns; returns the largest offset from one. Rows are sorted. */
static int64_t measure_columns(const struct state *state, uint32_t *first) {
  int64_t largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest)
  for (int64_t slice = 0; slice < state->slices; slice++) {
    first[slice] = (uint32_t)first_column(state, slice);
    for (int64_t i = 0; i < slice_places(state, slice); i++) {
      const struct place place = place_at(state, slice_first(state, slice) + i);
      if (place.row == NO_ROW || !place.length) continue;
      largest = cb_larger(largest, state->csr->col_idx[place.begin + place.length - 1] - (int64_t)first[slice]);
    }
  }
  return largest;
}

static const char offset_name[] = "column_offset";

static void draft_columns(struct cb_draft *draft, const struct state *state) {
  static const char meaning[] = "column of a slot, from its slice's first";
  const int64_t slots = state->first_step[state->slices] * LANES;
  uint32_t *first = cb_alloc((size_t)state->slices, sizeof *first);
  const int64_t largest = first ? measure_columns(state, first) : 0;
  cb_draft_index(draft, "first_column", "least column of a slice", first, 0, state->slices);
  if (cb_draft_may_be_late(draft, slots, 0, largest)) {
    cb_draft_late(draft, offset_name, meaning, slots, largest);
  } else {
    uint32_t *offsets = cb_calloc((size_t)slots, sizeof *offsets);
    const struct targets targets = {.offsets = cb_late_at_once(offsets)};
    if (offsets) visit_nonzeros(state, &targets);
    cb_draft_index(draft, offset_name, meaning, offsets, 0, slots);
  }
  if (state->vector > 1) cb_draft_section(draft, "vectors");
}

static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const struct state *state = user;
  for (int64_t slice = thread_block * WARPS; slice < (thread_block + 1) * WARPS; slice++) {
    const int64_t lanes = slice_lanes(state, slice), first = slice_first(state, slice);
    for (int64_t step = 0; step < state->first_step[slice + 1] - state->first_step[slice]; step++) {
      cb_sector_load(sink);
      for (int64_t lane = 0; lane < LANES; lane++) {
        const struct place place = place_at(state, first + lane / lanes);
        const int64_t k = nonzero_at(state, step, lane % lanes, lanes);
        if (place.row != NO_ROW && k < place.length) cb_sector_ask(sink, state->csr->col_idx[place.begin + k]);
      }
    }
  }
}

static void draft_places(struct cb_draft *draft, const struct state *state) {
  const int64_t places = state->varied ? state->places : state->slices * (LANES / state->lanes);
  uint32_t *lengths = cb_alloc((size_t)places, sizeof *lengths);
  uint32_t *rows = cb_alloc((size_t)places, sizeof *rows);
  if (lengths && rows) {
#pragma omp parallel for schedule(static)
    for (int64_t number = 0; number < places; number++) {
      const struct place place = place_at(state, number);
      lengths[number] = (uint32_t)place.length;
      const int none = place.row == NO_ROW || !cb_owns(draft->own_rows, place.row);
      rows[number] = (uint32_t)(none ? state->csr->rows : place.row);
    }
  }
  cb_draft_index(draft, "place_length", "nonzeros of the row (or piece of a row) at a place", lengths, 0, places);
  if (state->row) {
    cb_draft_index(draft, "place_row", "row at a place; kRows: none", rows, 0, places);
    cb_draft_section(draft, "sorted");
  } else {
    if (!rows) draft->failed = 1;
    cb_free(rows);
  }
}

/* Lanes per row: a constant, or by slice. */
static void draft_lanes(struct cb_draft *draft, const struct state *state) {
  if (!state->varied) {
    cb_draft_constant(draft, "kLanes", state->lanes, "plan: lanes that share a row");
    if (state->lanes > 1) cb_draft_section(draft, "shared");
    return;
  }
  uint32_t *log2 = cb_alloc((size_t)state->slices, sizeof *log2);
  uint32_t *first = cb_alloc((size_t)state->slices, sizeof *first);
  for (int64_t slice = 0; log2 && first && slice < state->slices; slice++) {
    log2[slice] = state->lanes_log2[slice];
    first[slice] = state->first_place[slice];
  }
  cb_draft_index(draft, "lanes_log2", "logarithm of the lanes that share a row of a slice", log2, 0, state->slices);
  cb_draft_index(draft, "first_place", "a slice's first place", first, 0, state->slices);
  cb_draft_section(draft, "varied");
  cb_draft_section(draft, "shared");
}

static int is_first_piece(const void *state, int64_t slice) {
  return !((const struct state *)state)->piece_first[slice];
}

/* Pieces of one row are a group of carry slots, numbered like their slices. */
static void draft_carries(struct cb_draft *draft, const struct state *state) {
  if (!state->split_slices) return;
  cb_draft_section(draft, "carry");
  cb_draft_carries(draft, state->split_slices, is_first_piece, state, "plan: slices that hold a piece of a long row");
}

/* Steps whose loads are under way together: all of a slice's if that is at most 8, else what a slice has on average,
 * 2 to 8. */
static int64_t choose_batch(const struct state *state, int64_t longest) {
  const int64_t steps = state->first_step[state->slices];
  const int64_t mean = cb_divide_up(steps, state->slices);
  if (longest <= MOST_BATCH) return longest > state->vector ? longest : state->vector;
  const int64_t batch = mean > MOST_BATCH ? MOST_BATCH : mean < 2 ? 2 : mean;
  return cb_round_up(batch, state->vector);
}

static void draft_region(struct cb_draft *draft, const struct state *state) {
  const int64_t steps = state->first_step[state->slices];
  uint64_t *first_step = cb_alloc((size_t)state->slices + 1, sizeof *first_step);
  if (first_step) memcpy(first_step, state->first_step, (size_t)(state->slices + 1) * sizeof *first_step);
  cb_draft_fact(draft, "slices", "%lld", (long long)state->slices);
  cb_draft_fact(draft, "steps", "%lld", (long long)steps);
  if (state->varied) cb_draft_fact(draft, "lanes", "varied");
  else cb_draft_fact(draft, "lanes", "%d", state->lanes);
  if (state->vector > 1) cb_draft_fact(draft, "vector", "%d", state->vector);
  if (state->sorted) cb_draft_fact(draft, "sorted", "yes");
  cb_draft_index(draft, "first_step", "steps before a slice, 32 slots each", first_step, 1, state->slices + 1);
  draft_columns(draft, state);
  cb_draft_values(draft, "values", "per slice, step and lane", steps * LANES);
  draft_places(draft, state);
  draft_lanes(draft, state);
  draft_carries(draft, state);
  const int guarded = state->varied || draft->own_rows || state->slices * (LANES / state->lanes) > state->csr->rows;
  const int asks = draft->own_rows && !state->row; /* places in an order of their own leave rows out */
  if (asks) cb_draft_own_rows(draft);
  if (guarded) cb_draft_section(draft, "guarded");
  const int64_t longest = longest_slice(state), batch = choose_batch(state, longest);
  cb_draft_constant(draft, "kBatch", batch, "plan: steps whose loads are under way together");
  if (state->vector > 1)
    cb_draft_constant(draft, "kVector", state->vector, "plan: neighbouring nonzeros of a row that a lane loads at once");
  if (longest > batch) cb_draft_section(draft, "more");
  draft->region.blocks = state->slices / WARPS;
  draft->region.block_rows = state->sorted || state->varied ? 0 : block_rows(state);
  draft->region.row_threads = state->sorted || state->varied ? 0 : state->lanes;
  /* 32 or 40 registers: enough for a batch's loads; full multiprocessors where 32 are */
  draft->region.blocks_per_sm = batch <= SMALL_BATCH ? 8 : 6;
  draft->region.commit = draft->commit;
}

/* A slice's batches follow one another, and pieces wait for their last. */
static enum cb_status predict(struct cb_draft *draft, const struct state *state, struct cb_diag *diag) {
  const int64_t longest = longest_slice(state);
  draft->region.cost.chain_ns = cb_divide_up(longest, choose_batch(state, longest)) * CB_COST_BATCH_NS;
  draft->region.cost.tail_ns = state->split_slices ? CB_COST_CARRY_NS : 0;
  draft->region.cost.stream_percent = CB_COST_SELL_PERCENT;
  return cb_sectors_predict(draft, state, visit_sectors, diag);
}

static enum cb_status sell_plan(struct cb_draft *draft, struct cb_diag *diag) {
  const struct cb_csr *csr = draft->work.part.csr;
  if (csr->rows > INT32_MAX - 8192) /* the text counts places, padding included, in an int */
    return cb_fail(diag, CB_ERR_LIMIT, "%lld rows exceed the sell layout's %d", (long long)csr->rows,
                   INT32_MAX - 8192);
  struct state *state = cb_calloc(1, sizeof *state);
  if (!state) return cb_fail_memory(diag, "sell layout", sizeof *state);
  draft->work.state = state;
  enum cb_status s = cut_slices(state, draft, draft->options, diag);
  if (!s) s = try_joining(state, draft, diag);
  if (s) return s;
  const int64_t slots = state->first_step[state->slices] * LANES;
  if (slots / 64 > csr->nnz + csr->rows + 65536 || state->slices > INT32_MAX)
    return cb_fail(diag, CB_ERR_LIMIT, "sliced ELL would pad %lld nonzeros to %lld slots; use another recipe",
                   (long long)csr->nnz, (long long)slots);
  draft_region(draft, state);
  return predict(draft, state, diag);
}

static enum cb_status sell_pack(const struct cb_region *region, const struct cb_region_work *work,
                                unsigned char *const *targets, const struct cb_slot_map *map, struct cb_diag *diag) {
  const struct targets wanted = {
      .offsets = cb_late_find(region, targets, offset_name), .map = map, .part = &work->part};
  (void)diag;
  visit_nonzeros(work->state, &wanted);
  return CB_OK;
}

/* Values and a byte of offset each. */
static int64_t sell_least_ns(const struct cb_csr *csr, const struct cb_target *target, struct cb_types types) {
  return cb_plan_stream_ns(csr, target, types, (int64_t)cb_type_size(types.matrix) + 1, CB_COST_SELL_PERCENT);
}

const struct cb_layout cb_layout_sell = {
    .name = "sell",
    .summary = "sliced ELL, narrow column offsets, lanes per row by the matrix",
    .source = "SELL-C-sigma: Kreutzer et al., SIAM J. Sci. Comput. 36 (2014)",
    .plan = sell_plan,
    .pack = sell_pack,
    .release = state_release,
    .least_ns = sell_least_ns,
    .minds_own_rows = 1,
};
