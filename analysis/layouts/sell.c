// SPDX-License-Identifier: Apache-2.0
/* Sliced ELL: a warp takes a slice of 32 lanes, 1 to 32 lanes share a row, and the slots of one step lie side by
 * side, so that values and column offsets stream. Columns are offsets from the slice's first column, which the
 * narrowest type holds. After SELL-C-σ (Kreutzer, Hager, Wellein, Fehske, Bishop), with C = 32 lanes; with sorting,
 * rows are ordered by length within windows.
 *
 * A row's length is stored, and no lane goes past it: padding is never multiplied, so neither NaN nor Inf in x
 * reaches a row through it. Equal lengths become a constant.
 */
#include "analysis/layout.h"

#include "base/memory.h"

#include <string.h>

enum { WARPS = 8, LANES = 32, WINDOW = 4096 };

struct state {
  int64_t rows, slices;    /* slices: whole thread blocks, so the last ones may have no rows */
  int lanes;               /* per row */
  int64_t slice_rows;      /* rows of a slice */
  int64_t equal;           /* length of every row, or -1. Places behind the last row have it, too */
  uint32_t *row_at;        /* sorted: place → row; else NULL */
  uint64_t *first_step;    /* by slice: steps before it; slices + 1 */
};

static void state_release(void *memory) {
  struct state *state = memory;
  if (!state) return;
  cb_free(state->row_at);
  cb_free(state->first_step);
  cb_free(state);
}

/* Row at `place`, or -1 behind the last. */
static int64_t row_at(const struct state *state, int64_t place) {
  if (place >= state->rows) return -1;
  return state->row_at ? (int64_t)state->row_at[place] : place;
}

static int64_t length_at(const struct state *state, const struct cb_csr *csr, int64_t place) {
  const int64_t row = row_at(state, place);
  if (row < 0) return state->equal < 0 ? 0 : state->equal;
  return cb_csr_row_length(csr, row);
}

static int64_t equal_length(const struct cb_csr *csr) {
  const int64_t length = csr->nnz / csr->rows;
  for (int64_t row = 0; row < csr->rows; row++)
    if (cb_csr_row_length(csr, row) != length) return -1;
  return length;
}

/* Lanes per row: as many as it takes to give each multiprocessor 1024 threads, but two nonzeros for each at least;
 * more for long rows, whose lanes would walk far apart otherwise. */
static int choose_lanes(const struct cb_csr *csr, const struct cb_options *options, const struct cb_target *target) {
  if (options->sell_lanes) return (int)options->sell_lanes;
  const int64_t mean = csr->rows ? csr->nnz / csr->rows : 0;
  int lanes = 1;
  while (lanes < LANES && csr->rows * lanes < 1024 * (int64_t)target->multiprocessors && mean >= 4 * lanes) lanes *= 2;
  while (lanes < LANES && mean >= 128 * lanes) lanes *= 2;
  return lanes;
}

/* ---- sorting: needs the part; adds row_at */

/* Longest first within a window, ties in the order of rows: counting sort by length, lengths above 255 alike. */
static void sort_window(const struct cb_csr *csr, int64_t first, int64_t end, uint32_t *sorted) {
  int32_t start[257] = {0};
  for (int64_t row = first; row < end; row++) {
    const int64_t length = cb_csr_row_length(csr, row);
    start[256 - (length < 255 ? length : 255)]++;
  }
  for (int key = 1; key <= 256; key++) start[key] += start[key - 1];
  for (int64_t row = first; row < end; row++) {
    const int64_t length = cb_csr_row_length(csr, row);
    sorted[start[255 - (length < 255 ? length : 255)]++] = (uint32_t)row;
  }
}

/* Steps that the order so far takes; of each slice in first_step[slice + 1]. */
static int64_t count_steps(const struct state *state, const struct cb_csr *csr) {
  int64_t steps = 0;
#pragma omp parallel for schedule(static) reduction(+ : steps)
  for (int64_t slice = 0; slice < state->slices; slice++) {
    int64_t longest = 0;
    for (int64_t place = slice * state->slice_rows; place < (slice + 1) * state->slice_rows; place++) {
      const int64_t length = length_at(state, csr, place);
      longest = length > longest ? length : longest;
    }
    state->first_step[slice + 1] = (uint64_t)((longest + state->lanes - 1) / state->lanes);
    steps += (longest + state->lanes - 1) / state->lanes;
  }
  return steps;
}

/* Sorting must save more than the row numbers and the scattered y cost: a tenth of the slots. */
static enum cb_status decide_order(struct state *state, const struct cb_csr *csr, const struct cb_options *options,
                                   struct cb_diag *diag) {
  const int64_t natural = count_steps(state, csr);
  if (options->sell_sort == CB_OFF) return CB_OK;
  state->row_at = cb_alloc((size_t)csr->rows, sizeof *state->row_at);
  if (!state->row_at) return cb_fail_memory(diag, "row order", (uint64_t)csr->rows * 4);
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < csr->rows; first += WINDOW) {
    const int64_t end = first + WINDOW < csr->rows ? first + WINDOW : csr->rows;
    sort_window(csr, first, end, state->row_at + first);
  }
  const int64_t sorted = count_steps(state, csr);
  if (options->sell_sort == CB_ON || 10 * sorted < 9 * natural) return CB_OK;
  cb_free(state->row_at);
  state->row_at = NULL;
  count_steps(state, csr);
  return CB_OK;
}

/* ---- the region: needs row_at and first_step; adds arrays and pieces */

/* Slot of nonzero k of a slice's row number `in_slice`. */
static int64_t slot_of(const struct state *state, int64_t slice, int64_t in_slice, int64_t k) {
  const int64_t step = (int64_t)state->first_step[slice] + k / state->lanes;
  return step * LANES + in_slice * state->lanes + k % state->lanes;
}

static int32_t first_column(const struct state *state, const struct cb_csr *csr, int64_t slice) {
  int32_t least = INT32_MAX;
  for (int64_t place = slice * state->slice_rows; place < (slice + 1) * state->slice_rows; place++) {
    const int64_t row = row_at(state, place);
    if (row < 0 || !cb_csr_row_length(csr, row)) continue;
    const int32_t column = csr->col_idx[cb_csr_row(csr, row)];
    least = column < least ? column : least;
  }
  return least == INT32_MAX ? 0 : least;
}

static void draft_columns(struct cb_draft *draft, const struct state *state) {
  const struct cb_csr *csr = draft->work.part.csr;
  const int64_t slots = (int64_t)state->first_step[state->slices] * LANES;
  uint32_t *first = cb_alloc((size_t)state->slices, sizeof *first);
  uint32_t *offsets = cb_calloc((size_t)slots, sizeof *offsets);
  if (first && offsets) {
#pragma omp parallel for schedule(static)
    for (int64_t slice = 0; slice < state->slices; slice++) {
      first[slice] = (uint32_t)first_column(state, csr, slice);
      for (int64_t i = 0; i < state->slice_rows; i++) {
        const int64_t row = row_at(state, slice * state->slice_rows + i);
        const int64_t begin = row < 0 ? 0 : cb_csr_row(csr, row), end = row < 0 ? 0 : cb_csr_row(csr, row + 1);
        for (int64_t k = begin; k < end; k++)
          offsets[slot_of(state, slice, i, k - begin)] = (uint32_t)csr->col_idx[k] - first[slice];
      }
    }
  }
  cb_draft_index(draft, "first_column", "least column of a slice", first, 0, state->slices);
  cb_draft_index(draft, "column_offset", "column of a slot, from its slice's first", offsets, 0, slots);
}

/* Sectors of x, from every 16th slice: neighbouring lanes of a step that ask for the same one share it. */
static int64_t estimate_sectors(const struct state *state, const struct cb_csr *csr, int64_t value_bytes) {
  enum { STRIDE = 16 };
  const int64_t per_sector = 32 / value_bytes;
  int64_t sectors = 0;
#pragma omp parallel for schedule(static) reduction(+ : sectors)
  for (int64_t slice = 0; slice < state->slices; slice += STRIDE) {
    const int64_t steps = (int64_t)(state->first_step[slice + 1] - state->first_step[slice]);
    for (int64_t step = 0; step < steps; step++) {
      int64_t previous = -1;
      for (int64_t lane = 0; lane < LANES; lane++) {
        const int64_t row = row_at(state, slice * state->slice_rows + lane / state->lanes);
        const int64_t k = step * state->lanes + lane % state->lanes;
        if (row < 0 || k >= cb_csr_row_length(csr, row)) continue;
        const int64_t sector = csr->col_idx[cb_csr_row(csr, row) + k] / per_sector;
        sectors += sector != previous;
        previous = sector;
      }
    }
  }
  return sectors * STRIDE;
}

static void draft_rows(struct cb_draft *draft, const struct state *state) {
  const struct cb_csr *csr = draft->work.part.csr;
  const int64_t places = state->slices * state->slice_rows;
  uint32_t *lengths = cb_alloc((size_t)places, sizeof *lengths);
  for (int64_t place = 0; lengths && place < places; place++)
    lengths[place] = (uint32_t)length_at(state, csr, place);
  cb_draft_index(draft, "row_length", "nonzeros of the row at a place", lengths, 0, places);
  if (!state->row_at) {
    cb_draft_hole(draft, "row", "place");
    return;
  }
  uint32_t *rows = cb_alloc((size_t)places, sizeof *rows);
  for (int64_t place = 0; rows && place < places; place++)
    rows[place] = place < state->rows ? state->row_at[place] : (uint32_t)state->rows;
  cb_draft_index(draft, "row_at", "row at a place; kRows behind the last", rows, 0, places);
  cb_draft_hole(draft, "row", "row_at(arrays, place)");
}

/* Steps whose loads are under way together: what a lane has on average, 2 to 8. */
static int64_t choose_batch(const struct state *state) {
  const int64_t steps = (int64_t)state->first_step[state->slices];
  const int64_t mean = (steps + state->slices - 1) / state->slices;
  return mean > 8 ? 8 : mean < 2 ? 2 : mean;
}

static void draft_region(struct cb_draft *draft, const struct state *state) {
  const struct cb_csr *csr = draft->work.part.csr;
  const int64_t steps = (int64_t)state->first_step[state->slices];
  uint64_t *first_step = cb_alloc((size_t)state->slices + 1, sizeof *first_step);
  if (first_step) memcpy(first_step, state->first_step, (size_t)(state->slices + 1) * sizeof *first_step);
  cb_draft_index(draft, "first_step", "steps before a slice, 32 slots each", first_step, 1, state->slices + 1);
  draft_columns(draft, state);
  cb_draft_values(draft, "values", "per slice, step and lane", steps * LANES);
  draft_rows(draft, state);
  const int guarded = state->slices * state->slice_rows > csr->rows;
  cb_draft_constant(draft, "kLanes", state->lanes, "plan: lanes that share a row");
  cb_draft_constant(draft, "kBatch", choose_batch(state), "plan: steps whose loads are under way together");
  cb_draft_hole(draft, "row_exists",
                guarded ? (state->lanes > 1 ? "lane % kLanes == 0 && row < kRows" : "row < kRows")
                        : (state->lanes > 1 ? "lane % kLanes == 0" : "true"));
  cb_draft_include(draft, "reduce", state->lanes > 1 ? "sell/reduce.cu.in" : "");
  cb_draft_include(draft, "region", "sell/multiply.cu.in");
  cb_draft_fact(draft, "slices", "%lld", (long long)state->slices);
  cb_draft_fact(draft, "steps", "%lld", (long long)steps);
  cb_draft_fact(draft, "lanes", "%d", state->lanes);
  cb_draft_fact(draft, "sorted", "%s", state->row_at ? "yes" : "no");
  draft->region.blocks = state->slices / WARPS;
  draft->region.commit = draft->commit;
  draft->region.cost.sectors = estimate_sectors(state, csr, (int64_t)cb_type_size(draft->value_type));
}

static enum cb_status sell_plan(struct cb_draft *draft, struct cb_diag *diag) {
  const struct cb_csr *csr = draft->work.part.csr;
  if (csr->rows > INT32_MAX - 8192) /* the text counts places, padding included, in an int */
    return cb_fail(diag, CB_ERR_LIMIT, "%lld rows exceed the sell layout's %d", (long long)csr->rows,
                   INT32_MAX - 8192);
  struct state *state = cb_calloc(1, sizeof *state);
  if (!state) return cb_fail_memory(diag, "sell layout", sizeof *state);
  draft->work.state = state;
  state->rows = csr->rows;
  state->equal = equal_length(csr);
  state->lanes = choose_lanes(csr, draft->options, draft->target);
  state->slice_rows = LANES / state->lanes;
  const int64_t block_rows = WARPS * state->slice_rows;
  state->slices = (csr->rows + block_rows - 1) / block_rows * WARPS;
  state->first_step = cb_calloc((size_t)state->slices + 1, sizeof *state->first_step);
  if (!state->first_step) return cb_fail_memory(diag, "slices", (uint64_t)state->slices * 8);
  const enum cb_status s = decide_order(state, csr, draft->options, diag);
  if (s) return s;
  for (int64_t slice = 0; slice < state->slices; slice++)
    state->first_step[slice + 1] += state->first_step[slice];
  if (state->first_step[state->slices] * LANES > INT64_C(64) * (uint64_t)(csr->nnz + csr->rows + 65536))
    return cb_fail(diag, CB_ERR_LIMIT, "sliced ELL would pad %lld nonzeros to %llu slots; use another recipe",
                   (long long)csr->nnz, (unsigned long long)state->first_step[state->slices] * LANES);
  draft_region(draft, state);
  return CB_OK;
}

static enum cb_status sell_pack(const struct cb_region *region, const struct cb_region_work *work,
                                unsigned char *const *targets, const struct cb_slot_map *map, struct cb_diag *diag) {
  const struct state *state = work->state;
  const struct cb_csr *csr = work->part.csr;
  (void)region;
  (void)targets;
  (void)diag;
#pragma omp parallel for schedule(static)
  for (int64_t slice = 0; slice < state->slices; slice++)
    for (int64_t i = 0; i < state->slice_rows; i++) {
      const int64_t row = row_at(state, slice * state->slice_rows + i);
      if (row < 0) continue;
      const int64_t begin = cb_csr_row(csr, row), end = cb_csr_row(csr, row + 1);
      for (int64_t k = begin; k < end; k++)
        cb_slot_set(map, slot_of(state, slice, i, k - begin), cb_part_origin(&work->part, k));
    }
  return CB_OK;
}

const struct cb_layout cb_layout_sell = {
    .name = "sell",
    .summary = "sliced ELL, narrow column offsets, lanes per row by the matrix",
    .source = "SELL-C-sigma: Kreutzer et al., SIAM J. Sci. Comput. 36 (2014)",
    .plan = sell_plan,
    .pack = sell_pack,
    .release = state_release,
};
