// SPDX-License-Identifier: Apache-2.0
/* Hot columns: on graphs a few columns hold most of the nonzeros, and what bounds the product is gathering x. The
 * entries of x that the hottest columns ask for lie in shared memory, of which each multiprocessor has one copy; a
 * thread block stays on its multiprocessor, copies them once and works through its share of the rows.
 *
 * Rows are stored as sliced ELL (see sell.c): a warp takes a slice of 32 lanes, 1 to 32 lanes share a row, rows of
 * more than `piece` nonzeros are cut into pieces that a slice each takes. A slice stores its hot nonzeros and its
 * cold ones apart, each with steps of their own: the hot with the place of their column among the hot (16 bits), the
 * cold with the column. Rows are ordered by what they hold of both, so slots stay empty only where a row ends; lanes
 * never go there, so neither NaN nor Inf in x reaches a row through padding. Slices are dealt to warps from the
 * heaviest to the lightest, back and forth.
 *
 * A hot column saves a gather for each of its nonzeros and costs each thread block a copy. With `gather` a launch of
 * its own lays the entries side by side first, and thread blocks copy them as a stream: four f64 to a sector.
 *
 * That launch may lay the next columns by frequency side by side too, the warm ones. Where a product streams much more
 * than L2 holds, an entry stays there only if its sector is asked for often enough. In x, frequent entries share
 * sectors with rare ones; side by side they stay. A cold nonzero then has an index instead of its column: below the
 * number of warm entries one of those, from there on the column plus that number.
 *
 * How to read it: hot_plan near the end calls the passes in order.
 */
#include "analysis/layout.h"

#include "analysis/hot_columns.h"
#include "analysis/plan/cost_figures.h"
#include "analysis/ordering.h"
#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

enum {
  LANES = 32,
  NO_ROW = -1,
  MOST_AIM = 16,                     /* steps per lane that lanes are chosen for, hot and cold together */
  STEP_KEYS = 2 * MOST_AIM + 2,      /* steps of a slice, as far as they order rows */
  MOST_HOT = 1 << 16,                /* places have 16 bits */
  ALIGNED = 16                       /* sums before the gathered entries: whole lines */
};

/* Nonzeros of a row, or what a piece or a lane has of them. */
struct share {
  int64_t hot, cold;
};

struct state {
  const struct cb_csr *csr;
  int64_t vector_bytes;
  int threads, batch, three_bytes;
  int64_t blocks; /* thread blocks, one to a multiprocessor */
  /* columns */
  struct cb_hot_columns at;
  uint64_t *is_hot;     /* a bit for each column: what is asked most is small enough for a cache */
  uint32_t *hot_in_row; /* nonzeros, by row */
  int64_t hot_nonzeros;
  /* slices */
  int64_t aim, piece;
  int64_t slices, split_slices; /* the split ones come first: one piece each */
  unsigned char *lanes_log2;
  uint32_t *first_place;
  int32_t *row; /* by place; NO_ROW: none */
  int64_t places;
  uint32_t *piece_number; /* by split slice: which of its row */
  int64_t *first_hot, *first_cold; /* steps before a slice; slices + 1 */
};

static void state_release(void *memory) {
  struct state *state = memory;
  if (!state) return;
  cb_hot_columns_release(&state->at);
  cb_free(state->is_hot);
  cb_free(state->hot_in_row);
  cb_free(state->lanes_log2);
  cb_free(state->first_place);
  cb_free(state->row);
  cb_free(state->piece_number);
  cb_free(state->first_hot);
  cb_free(state->first_cold);
  cb_free(state);
}


/* ---- rows: needs the columns; adds is_hot, hot_in_row, hot_nonzeros */

static int is_hot(const struct state *state, int64_t column) {
  return state->is_hot[column >> 6] >> (column & 63) & 1;
}

static int is_hot_place(const struct state *state, int32_t place) {
  return (uint32_t)place < (uint32_t)state->at.hot; /* CB_COLD is large then */
}

static int mark_columns(struct state *state) {
  const int64_t cols = state->csr->cols, words = cb_divide_up(cols, 64);
  state->is_hot = cb_alloc((size_t)words, sizeof *state->is_hot);
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
  int64_t nonzeros = 0;
  state->hot_in_row = cb_alloc((size_t)csr->rows, sizeof *state->hot_in_row);
  if (!state->hot_in_row) return 0;
#pragma omp parallel for schedule(static) reduction(+ : nonzeros)
  for (int64_t row = 0; row < csr->rows; row++) {
    uint32_t hot = 0;
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      hot += (uint32_t)is_hot(state, csr->col_idx[k]);
    state->hot_in_row[row] = hot;
    nonzeros += hot;
  }
  state->hot_nonzeros = nonzeros;
  return 1;
}

static struct share row_share(const struct state *state, int64_t row) {
  const int64_t hot = state->hot_in_row[row];
  return (struct share){hot, cb_csr_row_length(state->csr, row) - hot};
}

static int64_t pieces_of(const struct state *state, int64_t row) {
  const int64_t pieces = cb_divide_up(cb_csr_row_length(state->csr, row), state->piece);
  return pieces > 1 ? pieces : 1;
}

/* What one piece of a row takes at most: whole steps of 32 lanes, unless the row is its only piece. */
static struct share chunk_of(const struct state *state, int64_t row) {
  const struct share whole = row_share(state, row);
  const int64_t pieces = pieces_of(state, row);
  if (pieces == 1) return (struct share){whole.hot + 1, whole.cold + 1};
  return (struct share){(cb_divide_up(whole.hot, pieces * LANES) + !whole.hot) * LANES,
                        (cb_divide_up(whole.cold, pieces * LANES) + !whole.cold) * LANES};
}

/* ---- slices: needs the rows' shares; adds all about slices and places but the steps */

static int lanes_for(const struct state *state, struct share share) {
  int log2 = 0;
  while (log2 < 5 && cb_divide_up(share.hot, 1 << log2) + cb_divide_up(share.cold, 1 << log2) > state->aim) log2++;
  return log2;
}

enum { LANES_KEYS = STEP_KEYS * STEP_KEYS, KEYS = 6 * LANES_KEYS };

/* Rows of one key fill slices without holes. Most lanes first, then longest first; rows in pieces have no key. */
static uint32_t row_key(const struct state *state, int64_t row) {
  if (pieces_of(state, row) > 1) return KEYS;
  const struct share share = row_share(state, row);
  const int log2 = lanes_for(state, share);
  const int64_t hot = cb_smaller(cb_divide_up(share.hot, 1 << log2), STEP_KEYS - 1);
  const int64_t cold = cb_smaller(cb_divide_up(share.cold, 1 << log2), STEP_KEYS - 1);
  return (uint32_t)(((5 - log2) * STEP_KEYS + STEP_KEYS - 1 - cold) * STEP_KEYS + STEP_KEYS - 1 - hot);
}

/* Rows over `piece` nonzeros: a slice for each piece, a row's pieces in order. */
static void add_pieces(struct state *state, const int32_t *cut, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    for (int64_t piece = 0; piece < pieces_of(state, cut[i]); piece++) {
      state->piece_number[state->slices] = (uint32_t)piece;
      state->lanes_log2[state->slices] = 5;
      state->first_place[state->slices++] = (uint32_t)state->places;
      state->row[state->places++] = cut[i];
    }
  state->split_slices = state->slices;
}

/* The other rows, `count` of them, stand behind the pieces, sorted by key: lanes by the first row of each slice. What
 * no row fills of the last one has none. */
static void add_rows(struct state *state, const uint32_t *key, int64_t count) {
  const int64_t pieces = state->places;
  int32_t *sorted = state->row + pieces;
  int64_t next = 0;
  for (int log2 = 5; log2 >= 0; log2--) {
    int64_t low = next, high = count; /* where rows of fewer lanes begin */
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (key[sorted[middle]] < (uint32_t)(6 - log2) * LANES_KEYS) low = middle + 1;
      else high = middle;
    }
    const int64_t first = state->slices, places = LANES >> log2, slices = cb_divide_up(low - next, places);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < slices; i++) {
      state->lanes_log2[first + i] = (unsigned char)log2;
      state->first_place[first + i] = (uint32_t)(pieces + next + i * places);
    }
    state->slices += slices;
    next += slices * places;
  }
  state->places += next;
  for (int64_t i = count; i < next; i++) sorted[i] = NO_ROW;
}

/* Room for `pieces`, and for rows in slices, of which the last may not be full. */
static int alloc_slices(struct state *state, int64_t pieces) {
  const size_t places = (size_t)(pieces + state->csr->rows + LANES);
  state->piece_number = cb_alloc((size_t)pieces, sizeof *state->piece_number);
  state->lanes_log2 = cb_alloc(places, 1);
  state->first_place = cb_alloc(places, sizeof *state->first_place);
  state->row = cb_alloc(places, sizeof *state->row);
  return state->piece_number && state->lanes_log2 && state->first_place && state->row;
}

static int is_cut(const void *state, int64_t row) { return pieces_of(state, row) > 1; }

static int make_slices(struct state *state, uint32_t *key, const int32_t *cut, int64_t cut_count) {
  const int64_t rows = state->csr->rows;
  int64_t pieces = 0;
  for (int64_t i = 0; i < cut_count; i++) pieces += pieces_of(state, cut[i]);
  if (!alloc_slices(state, pieces)) return 0;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; row++) key[row] = row_key(state, row);
  const int64_t sorted = cb_sort_by_key(state->row + pieces, key, rows, KEYS);
  if (sorted < 0) return 0;
  add_pieces(state, cut, cut_count);
  add_rows(state, key, sorted);
  return 1;
}

static int cut_slices(struct state *state) {
  const int64_t nonzeros = state->csr->nnz, warps = state->blocks * state->threads / LANES;
  for (state->aim = 4; state->aim < MOST_AIM && state->aim * LANES * warps < nonzeros;) state->aim *= 2;
  state->piece = 2 * state->aim * LANES;
  int64_t count = 0;
  int32_t *cut = cb_rows_where(state->csr->rows, is_cut, state, &count);
  uint32_t *key = cb_alloc((size_t)state->csr->rows, sizeof *key);
  const int good = cut && key && make_slices(state, key, cut, count);
  cb_free(cut);
  cb_free(key);
  return good;
}

/* What place `in_slice` of a slice holds. */
static struct share place_share(const struct state *state, int64_t slice, int64_t in_slice) {
  const int64_t row = state->row[state->first_place[slice] + in_slice];
  if (row == NO_ROW) return (struct share){0, 0};
  struct share share = row_share(state, row);
  if (slice >= state->split_slices) return share;
  const struct share chunk = chunk_of(state, row);
  const int64_t piece = state->piece_number[slice];
  share.hot = cb_smaller(share.hot - cb_smaller(share.hot, piece * chunk.hot), chunk.hot);
  share.cold = cb_smaller(share.cold - cb_smaller(share.cold, piece * chunk.cold), chunk.cold);
  return share;
}

static struct share slice_steps(const struct state *state, int64_t slice) {
  struct share steps = {0, 0};
  const int log2 = state->lanes_log2[slice];
  for (int64_t i = 0; i < LANES >> log2; i++) {
    const struct share share = place_share(state, slice, i);
    const int64_t hot = cb_divide_up(share.hot, 1 << log2), cold = cb_divide_up(share.cold, 1 << log2);
    steps.hot = hot > steps.hot ? hot : steps.hot;
    steps.cold = cold > steps.cold ? cold : steps.cold;
  }
  return steps;
}

/* ---- dealing: needs slices; orders those of whole rows and adds the steps before each */

enum { WEIGHTS = 4 * STEP_KEYS };

/* Where the slice of a rank goes: warps take every `warps`-th, so the order turns in every other round. */
static int64_t dealt(int64_t rank, int64_t warps, int64_t first, int64_t end) {
  const int64_t round = rank / warps, begin = round * warps;
  if (round % 2 == 0 || begin < first || begin + warps > end) return rank;
  return begin + warps - 1 - rank % warps;
}

/* Heaviest first: order[rank] is the slice of a rank, counted from the first whole one. */
static int rank_slices(const struct state *state, int32_t *order, uint32_t *key, int64_t count) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; i++) {
    const struct share steps = slice_steps(state, state->split_slices + i);
    key[i] = (uint32_t)(WEIGHTS - 1 - cb_smaller(steps.hot + 2 * steps.cold, WEIGHTS - 1));
  }
  return cb_sort_by_key(order, key, count, WEIGHTS) >= 0;
}

static void deal(const struct state *state, const int32_t *order, unsigned char *log2, uint32_t *place) {
  const int64_t first = state->split_slices, end = state->slices, warps = state->blocks * state->threads / LANES;
  memcpy(log2, state->lanes_log2, (size_t)first);
  memcpy(place, state->first_place, (size_t)first * sizeof *place);
#pragma omp parallel for schedule(static)
  for (int64_t rank = first; rank < end; rank++) {
    const int64_t at = dealt(rank, warps, first, end), slice = first + order[rank - first];
    log2[at] = state->lanes_log2[slice];
    place[at] = state->first_place[slice];
  }
}

static int deal_slices(struct state *state) {
  const int64_t slices = state->slices, whole = slices - state->split_slices;
  unsigned char *log2 = cb_alloc((size_t)slices, 1);
  uint32_t *place = cb_alloc((size_t)slices, sizeof *place), *key = cb_alloc((size_t)whole, sizeof *key);
  int32_t *order = cb_alloc((size_t)whole, sizeof *order);
  const int good = log2 && place && key && order && rank_slices(state, order, key, whole);
  if (good) deal(state, order, log2, place);
  cb_free(good ? state->lanes_log2 : log2);
  cb_free(good ? state->first_place : place);
  cb_free(key);
  cb_free(order);
  if (!good) return 0;
  state->lanes_log2 = log2;
  state->first_place = place;
  return 1;
}

static int count_steps(struct state *state) {
  const int64_t slices = state->slices;
  state->first_hot = cb_alloc((size_t)slices + 1, sizeof *state->first_hot);
  state->first_cold = cb_alloc((size_t)slices + 1, sizeof *state->first_cold);
  if (!state->first_hot || !state->first_cold) return 0;
#pragma omp parallel for schedule(static)
  for (int64_t slice = 0; slice < slices; slice++) {
    const struct share steps = slice_steps(state, slice);
    state->first_hot[slice + 1] = steps.hot;
    state->first_cold[slice + 1] = steps.cold;
  }
  state->first_hot[0] = state->first_cold[0] = 0;
  for (int64_t slice = 0; slice < slices; slice++) {
    state->first_hot[slice + 1] += state->first_hot[slice];
    state->first_cold[slice + 1] += state->first_cold[slice];
  }
  return 1;
}

/* ---- the region: needs all of the above; adds arrays and pieces of text */

/* Where the nonzeros of one row go, met in order. */
struct walk {
  int64_t slice, in_slice;
  struct share chunk, met;
};

static int64_t slot_in(const struct state *state, const int64_t *first, const struct walk *walk, int64_t number,
                       int64_t chunk) {
  const int64_t piece = number < chunk ? 0 : number / chunk; /* nearly all rows have one */
  const int64_t slice = walk->slice + piece, k = number - piece * chunk;
  const int log2 = state->lanes_log2[slice];
  return ((first[slice] + (k >> log2)) * LANES) + (walk->in_slice << log2) + (k & ((1 << log2) - 1));
}

static int64_t next_hot(const struct state *state, struct walk *walk) {
  return slot_in(state, state->first_hot, walk, walk->met.hot++, walk->chunk.hot);
}
static int64_t next_cold(const struct state *state, struct walk *walk) {
  return slot_in(state, state->first_cold, walk, walk->met.cold++, walk->chunk.cold);
}

/* The row whose nonzeros begin at a place, or NO_ROW; then *walk is ready. */
static int64_t row_at(const struct state *state, int64_t slice, int64_t in_slice, struct walk *walk) {
  const int64_t row = state->row[state->first_place[slice] + in_slice];
  if (row == NO_ROW || (slice < state->split_slices && state->piece_number[slice])) return NO_ROW;
  *walk = (struct walk){slice, in_slice, chunk_of(state, row), {0, 0}};
  return row;
}

/* What to do with every nonzero: any may be NULL. */
struct targets {
  struct cb_late places, columns, high; /* by hot slot, by cold slot; of three bytes, the lower two and the one above */
  const struct cb_slot_map *map;
  const struct cb_part *part;
};

static void set_hot(const struct targets *targets, int64_t slot, int32_t place, int64_t k) {
  if (targets->places.bytes) cb_late_set(&targets->places, slot, (uint32_t)place);
  if (targets->map) cb_slot_set(targets->map, slot, cb_part_origin(targets->part, k));
}

static void set_cold(const struct state *state, const struct targets *targets, int64_t slot, int32_t place, int64_t k) {
  const uint32_t index = cb_hot_index(&state->at, state->csr->col_idx[k], place);
  if (targets->columns.bytes) cb_late_set(&targets->columns, slot, state->three_bytes ? index & 0xffff : index);
  if (targets->high.bytes) cb_late_set(&targets->high, slot, index >> 16);
  if (targets->map)
    cb_slot_set(targets->map, state->first_hot[state->slices] * LANES + slot, cb_part_origin(targets->part, k));
}

/* Nonzeros of one row. Their places are looked up together, side by side: the table is larger than a cache. A map alone
 * asks only whether columns are hot. */
static void visit_row(const struct state *state, struct walk *walk, int64_t row, const struct targets *targets) {
  enum { TOGETHER = 64 };
  const int only_map = !targets->places.bytes && !targets->columns.bytes;
  const int64_t end = cb_csr_row(state->csr, row + 1);
  const int32_t *column = state->csr->col_idx;
  int32_t place[TOGETHER];
  for (int64_t first = cb_csr_row(state->csr, row); first < end; first += TOGETHER) {
    const int64_t count = cb_smaller(end - first, TOGETHER);
    for (int64_t i = 0; i < count && only_map; i++) place[i] = is_hot(state, column[first + i]) ? 0 : CB_COLD;
    for (int64_t i = 0; i < count && !only_map; i++) place[i] = state->at.place_of[column[first + i]];
    for (int64_t i = 0; i < count; i++) {
      if (is_hot_place(state, place[i])) set_hot(targets, next_hot(state, walk), place[i], first + i);
      else set_cold(state, targets, next_cold(state, walk), place[i], first + i);
    }
  }
}

static void visit_nonzeros(const struct state *state, const struct targets *targets) {
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t slice = 0; slice < state->slices; slice++)
    for (int64_t i = 0; i < LANES >> state->lanes_log2[slice]; i++) {
      struct walk walk;
      const int64_t row = row_at(state, slice, i, &walk);
      if (row != NO_ROW) visit_row(state, &walk, row, targets);
    }
}

/* Names and meanings of what draft_indices makes, at once or late. */
static const char place_name[] = "hot_place", place_meaning[] = "place of a hot slot's column among the hot ones";
static const char index_name[] = "cold_index", index_meaning[] = "where the entry of a cold slot is";
static const char low_meaning[] = "where the entry of a cold slot is: lower 16 bits";
static const char high_name[] = "cold_index_high", high_meaning[] = "the bits above";

static int may_be_late(const struct cb_draft *draft, int64_t count, const struct cb_hot_range *range) {
  return cb_draft_may_be_late(draft, count, range->least, range->most);
}

/* Every hot column has a nonzero. */
static int may_places_be_late(const struct cb_draft *draft, const struct state *state, int64_t slots) {
  return cb_draft_may_be_late(draft, slots, 0, state->at.hot - 1);
}

static int may_columns_be_late(const struct cb_draft *draft, const struct state *state, int64_t slots) {
  if (!state->three_bytes) return may_be_late(draft, slots, &state->at.index);
  return may_be_late(draft, slots, &state->at.low) && may_be_late(draft, slots, &state->at.high);
}

/* An array whose elements are there, or a late one up to `largest`. */
static void draft_either(struct cb_draft *draft, const char *name, const char *meaning, uint32_t *elements,
                         int64_t slots, int64_t largest) {
  if (elements) cb_draft_streamed(draft, name, meaning, elements, 0, slots);
  else cb_draft_late_streamed(draft, name, meaning, slots, largest);
}

/* Columns in three bytes are two arrays. */
static void draft_cold_columns(struct cb_draft *draft, const struct state *state, uint32_t *columns, uint32_t *high,
                               int64_t slots) {
  if (!state->three_bytes) {
    draft_either(draft, index_name, index_meaning, columns, slots, state->at.index.most);
    return;
  }
  draft_either(draft, index_name, low_meaning, columns, slots, state->at.low.most);
  draft_either(draft, high_name, high_meaning, high, slots, state->at.high.most);
  cb_draft_section(draft, "three_bytes");
}

/* Room for an array that is not late. */
static uint32_t *room(struct cb_draft *draft, int late, int64_t slots) {
  uint32_t *elements = late ? NULL : cb_calloc((size_t)slots, sizeof *elements);
  draft->failed |= !late && !elements;
  return elements;
}

static void draft_indices(struct cb_draft *draft, const struct state *state) {
  const int64_t hot_slots = state->first_hot[state->slices] * LANES, slots = state->first_cold[state->slices] * LANES;
  const int late_places = may_places_be_late(draft, state, hot_slots);
  const int late_columns = !slots || may_columns_be_late(draft, state, slots);
  uint32_t *places = room(draft, late_places, hot_slots), *columns = room(draft, late_columns, slots);
  uint32_t *high = room(draft, late_columns || !state->three_bytes, slots);
  if (draft->failed) {
    cb_free(places);
    cb_free(columns);
    cb_free(high);
    return;
  }
  const struct targets targets = {
      .places = cb_late_at_once(places), .columns = cb_late_at_once(columns), .high = cb_late_at_once(high)};
  if (!late_places || !late_columns) visit_nonzeros(state, &targets);
  draft_either(draft, place_name, place_meaning, places, hot_slots, state->at.hot - 1);
  if (slots) draft_cold_columns(draft, state, columns, high, slots);
  cb_draft_values(draft, "values", "hot slots, then cold ones; per slice, step and lane", hot_slots + slots);
  if (slots) cb_draft_constant(draft, "kHotSlots", hot_slots, "plan: slots of hot nonzeros, 32 to a step");
}

static void fill_lanes(const struct state *state, int64_t slice, uint32_t *hot, uint32_t *cold) {
  const int log2 = state->lanes_log2[slice], lanes = 1 << log2;
  for (int64_t lane = 0; lane < LANES; lane++) {
    const int64_t i = lane >> log2, turn = lane % lanes, at = LANES * slice + lane;
    const struct share share = place_share(state, slice, i);
    hot[at] = (uint32_t)(cb_divide_up(share.hot + lanes - turn, lanes) - 1);
    cold[at] = (uint32_t)(cb_divide_up(share.cold + lanes - turn, lanes) - 1);
  }
}

static void draft_lanes(struct cb_draft *draft, const struct state *state, int any_cold) {
  const int64_t lanes = state->slices * LANES;
  uint32_t *hot = cb_alloc((size_t)lanes, sizeof *hot);
  uint32_t *cold = cb_alloc((size_t)lanes, sizeof *cold);
  if (hot && cold) {
#pragma omp parallel for schedule(static)
    for (int64_t slice = 0; slice < state->slices; slice++) fill_lanes(state, slice, hot, cold);
  } else {
    draft->failed = 1;
  }
  cb_draft_streamed(draft, "lane_hot", "hot nonzeros of a lane", hot, 0, lanes);
  if (any_cold) cb_draft_streamed(draft, "lane_cold", "cold nonzeros of a lane", cold, 0, lanes);
  else cb_free(cold);
}

static void draft_rows(struct cb_draft *draft, const struct state *state) {
  uint32_t *rows = cb_alloc((size_t)state->places, sizeof *rows);
#pragma omp parallel for schedule(static)
  for (int64_t place = 0; place < state->places; place++)
    if (rows) rows[place] = (uint32_t)(state->row[place] == NO_ROW ? state->csr->rows : state->row[place]);
  cb_draft_streamed(draft, "place_row", "row (or the row of the piece) at a place; kRows: none", rows, 0, state->places);
}

static void draft_slices(struct cb_draft *draft, const struct state *state, int any_cold) {
  const size_t slices = (size_t)state->slices;
  uint32_t *log2 = cb_alloc(slices, sizeof *log2);
  uint32_t *place = cb_alloc(slices, sizeof *place);
  uint64_t *hot = cb_alloc(slices, sizeof *hot), *cold = cb_alloc(slices, sizeof *cold);
  if (log2 && place && hot && cold) {
    for (size_t slice = 0; slice < slices; slice++) log2[slice] = state->lanes_log2[slice];
    memcpy(place, state->first_place, slices * sizeof *place);
    memcpy(hot, state->first_hot, slices * sizeof *hot);
    memcpy(cold, state->first_cold, slices * sizeof *cold);
  } else {
    draft->failed = 1;
  }
  cb_draft_index(draft, "lanes_log2", "logarithm of the lanes that share a row of a slice", log2, 0, state->slices);
  cb_draft_index(draft, "first_place", "a slice's first place", place, 0, state->slices);
  cb_draft_index(draft, "first_hot", "hot steps before a slice, 32 slots each", hot, 1, state->slices);
  if (any_cold) cb_draft_index(draft, "first_cold", "cold steps before a slice", cold, 1, state->slices);
  else cb_free(cold);
}

static void draft_columns(struct cb_draft *draft, const struct state *state) {
  const int64_t count = state->at.hot + state->at.warm;
  uint32_t *columns = cb_alloc((size_t)count, sizeof *columns);
#pragma omp parallel for schedule(static)
  for (int64_t column = 0; column < state->csr->cols; column++)
    if (columns && state->at.place_of[column] != CB_COLD) columns[state->at.place_of[column]] = (uint32_t)column;
  const char *meaning = state->at.warm ? "the hot columns in order, then the warm ones" : "the hot columns, in order";
  cb_draft_index(draft, "hot_column", meaning, columns, 0, count);
}

static int is_first_piece(const void *state, int64_t slice) {
  return !((const struct state *)state)->piece_number[slice];
}

/* Pieces of one row are a group of carry slots, numbered like their slices. */
static void draft_carries(struct cb_draft *draft, const struct state *state) {
  if (!state->split_slices) return;
  cb_draft_section(draft, "carry");
  cb_draft_carries(draft, state->split_slices, is_first_piece, state, "plan: slices that hold a piece of a long row");
}

/* Where thread blocks copy the hot entries from: x, or what a first launch has gathered (behind the carry slots). */
static void draft_entries(struct cb_draft *draft, const struct state *state) {
  if (!state->at.gather) return;
  cb_draft_fact(draft, "gather", "first");
  cb_draft_section(draft, "gather");
  cb_hot_draft_gather(draft, cb_round_up(state->split_slices, ALIGNED), state->at.hot + state->at.warm);
}

/* Where the entry of a cold nonzero is: in x, among the warm ones, or in either. */
static void draft_cold(struct cb_draft *draft, const struct state *state) {
  if (!state->at.warm) return;
  cb_draft_fact(draft, "warm", "%lld", (long long)state->at.warm);
  cb_draft_section(draft, "warm");
  if (state->at.rest) cb_draft_section(draft, "warm_some");
  if (state->at.rest) cb_draft_constant(draft, "kWarm", state->at.warm, "plan: warm columns; larger indices are of x");
}

static void draft_region(struct cb_draft *draft, const struct state *state) {
  const int any_cold = state->first_cold[state->slices] > 0;
  const int64_t nonzeros = state->csr->nnz;
  cb_draft_fact(draft, "columns", "%lld", (long long)state->at.hot);
  cb_draft_fact(draft, "share", "%lld", (long long)(state->hot_nonzeros * 100 / nonzeros));
  cb_draft_fact(draft, "slices", "%lld", (long long)state->slices);
  cb_draft_fact(draft, "steps", "%lld %lld", (long long)state->first_hot[state->slices],
                (long long)state->first_cold[state->slices]);
  draft_indices(draft, state);
  draft_slices(draft, state, any_cold);
  draft_lanes(draft, state, any_cold);
  draft_rows(draft, state);
  draft_columns(draft, state);
  draft_carries(draft, state);
  draft_entries(draft, state);
  if (any_cold) {
    cb_draft_section(draft, "cold");
    draft_cold(draft, state);
  }
  cb_draft_constant(draft, "kHot", state->at.hot, "plan: hot columns, whose entries of x lie in shared memory");
  cb_draft_constant(draft, "kSlices", state->slices, "plan: slices of 32 lanes");
  cb_draft_constant(draft, "kBatch", state->batch, "plan: steps whose loads are under way together");
  cb_draft_constant(draft, "kThreads", state->threads, "plan: threads of a thread block");
  cb_draft_constant(draft, "kBlocks", state->blocks, "target: thread blocks, one to a multiprocessor at most");
  cb_draft_constant(draft, "kWarps", state->blocks * state->threads / LANES, "their warps");
  draft->region.blocks = state->blocks;
  draft->region.threads = state->threads;
  draft->region.blocks_per_sm = 1;
  draft->region.dynamic_shared = state->at.hot * state->vector_bytes;
  draft->region.commit = draft->commit;
}

/* Gathers that leave the multiprocessor share the way from L2 with the stream. */
static void predict(struct cb_draft *draft, const struct state *state) {
  struct cb_cost *cost = &draft->region.cost;
  const int64_t copied = state->at.gather ? cb_divide_up(state->at.hot * state->vector_bytes, 32) : state->at.hot;
  cost->sectors = state->csr->nnz - state->hot_nonzeros + state->blocks * copied;
  cost->work_ns = cb_plan_gather_ns(cost->sectors, draft->target) +
                  draft->region.bytes * 6 / 10 / draft->target->read_gb_per_s + state->at.miss_ns;
  cost->tail_ns = CB_COST_HOT_WORTH_NS + (state->at.gather ? CB_COST_HOT_PREPARE_NS : 0) + state->at.prepare_ns;
}

/* ---- the layout */

static void choose_shape(struct state *state, const struct cb_options *options, const struct cb_target *target) {
  const int64_t slots = state->csr->nnz + state->csr->rows;
  state->threads = options->hot_threads ? (int)options->hot_threads : 1024;
  state->batch = options->hot_batch ? (int)options->hot_batch : 4;
  state->blocks = cb_smaller(target->multiprocessors, cb_divide_up(slots, 4 * state->threads));
}

static enum cb_status choose_columns(struct state *state, const struct cb_draft *draft, struct cb_diag *diag) {
  const struct cb_hot_shape shape = {.csr = state->csr,
                                     .options = draft->options,
                                     .target = draft->target,
                                     .value_bytes = (int64_t)cb_type_size(draft->value_type),
                                     .vector_bytes = state->vector_bytes,
                                     .blocks = state->blocks};
  const enum cb_status s = cb_hot_columns_choose(&state->at, &shape, diag);
  const int64_t indices = state->at.warm + (state->at.rest ? state->csr->cols : 0);
  state->three_bytes = draft->options->hot_three_bytes != CB_OFF && indices > 1 << 16 && indices <= 1 << 24;
  return s;
}

static enum cb_status hot_plan(struct cb_draft *draft, struct cb_diag *diag) {
  const struct cb_csr *csr = draft->work.part.csr;
  if (csr->rows > INT32_MAX / 2 || csr->nnz / 4 > INT32_MAX) /* the text counts lanes in an int */
    return cb_fail(diag, CB_ERR_LIMIT, "%lld rows with %lld nonzeros exceed the hot layout's slices",
                   (long long)csr->rows, (long long)csr->nnz);
  if (!csr->nnz) return cb_fail(diag, CB_ERR_UNSUPPORTED, "no column is hot: there are no nonzeros; use another recipe");
  struct state *state = cb_calloc(1, sizeof *state);
  if (!state) return cb_fail_memory(diag, "hot layout", sizeof *state);
  draft->work.state = state;
  state->csr = csr;
  state->vector_bytes = (int64_t)cb_type_size(draft->vector_type);
  choose_shape(state, draft->options, draft->target);
  const enum cb_status s = choose_columns(state, draft, diag);
  if (s) return s;
  if (!mark_columns(state) || !count_rows(state) || !cut_slices(state) || !deal_slices(state) || !count_steps(state))
    return cb_fail_memory(diag, "slices", (uint64_t)csr->rows * 16);
  if (state->slices > INT32_MAX / LANES - state->blocks * state->threads)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld slices exceed the hot layout's int", (long long)state->slices);
  draft_region(draft, state);
  predict(draft, state);
  return CB_OK;
}

static enum cb_status hot_pack(const struct cb_region *region, const struct cb_region_work *work,
                               unsigned char *const *targets, const struct cb_slot_map *map, struct cb_diag *diag) {
  const struct state *state = work->state;
  const struct targets wanted = {.places = cb_late_find(region, targets, place_name),
                                 .columns = cb_late_find(region, targets, index_name),
                                 .high = cb_late_find(region, targets, high_name),
                                 .map = map,
                                 .part = &work->part};
  (void)diag;
  visit_nonzeros(state, &wanted);
  return CB_OK;
}

/* Values and two bytes of place or column. */
static int64_t hot_least_ns(const struct cb_csr *csr, const struct cb_target *target, struct cb_types types) {
  return cb_plan_stream_ns(csr, target, types, (int64_t)cb_type_size(types.matrix) + 2, 100) + CB_COST_HOT_WORTH_NS;
}

const struct cb_layout cb_layout_hot = {
    .name = "hot",
    .summary = "entries of x for the hottest columns in shared memory, rows as sliced ELL",
    .source = "-",
    .plan = hot_plan,
    .pack = hot_pack,
    .release = state_release,
    .least_ns = hot_least_ns,
};
