// SPDX-License-Identifier: Apache-2.0
/* Diagonals: the offsets of all diagonals that occur in the part are constants of the text, and there is no
 * index array. A warp takes a slice of 32 rows, a thread a row:
 *
 *   slot(row, d) = (row / 32 * diagonals + d) * 32 + row % 32
 *
 * so that a warp's loads of values are whole lines, a slice lies in one region of memory, and its loads of x
 * are 32 neighbours. Slices in which every row meets every diagonal within the matrix (inside) need no bounds
 * checks; those near the first and the last row or column (border) have them.
 *
 * A place of a diagonal that holds no nonzero is absent, and stored as 0. Where the matrix has absent places,
 * there are presence bits, one per slot: a row's sum that is not finite is summed again over the present ones
 * alone. A finite sum needs no second look: NaN or Inf times 0 is NaN, and NaN stays.
 */
#include "analysis/layout.h"

#include "analysis/diagonals.h"
#include "base/memory.h"

enum { ROWS = 32, BLOCK_ROWS = 256, MOST_DIAGONALS = 1024, UNROLLED = 64 };

struct state {
  const struct cb_csr *csr;
  int diagonals;
  int32_t offset[MOST_DIAGONALS]; /* ascending */
  int64_t slices;
  int64_t absent;                   /* places within the matrix */
  int64_t first_inside, end_inside; /* slices; none: both 0 */
};

static enum cb_status find_diagonals(struct state *state, struct cb_diag *diag) {
  const struct cb_csr *csr = state->csr;
  int64_t diagonals = 0;
  uint32_t *counts;
  const enum cb_status s = cb_diagonals_count(&counts, csr, diag);
  if (s) return s;
  for (int64_t key = 0; key < csr->rows + csr->cols; key++) {
    if (!counts[key]) continue;
    const int64_t offset = key - (csr->rows - 1);
    if (diagonals < MOST_DIAGONALS) state->offset[diagonals] = (int32_t)offset;
    state->absent += cb_diagonal_length(csr, offset) - counts[key];
    diagonals++;
  }
  cb_free(counts);
  if (diagonals > MOST_DIAGONALS)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld diagonals exceed the dia layout's %d; use another recipe",
                   (long long)diagonals, MOST_DIAGONALS);
  state->diagonals = (int)diagonals;
  return CB_OK;
}

/* A last slice with fewer than 32 rows may be inside: the rows that it lacks are not computed. */
static void find_inside(struct state *state) {
  const struct cb_csr *csr = state->csr;
  const int64_t least = state->offset[0], most = state->offset[state->diagonals - 1];
  const int64_t first_row = least < 0 ? -least : 0;
  const int64_t end_row = csr->rows < csr->cols - most ? csr->rows : csr->cols - most;
  const int64_t first = (first_row + ROWS - 1) / ROWS,
                end = end_row == csr->rows ? state->slices : end_row / ROWS;
  if (first >= end) return;
  state->first_inside = first;
  state->end_inside = end;
}

/* ---- the text */

/* Thread blocks that each multiprocessor gets at a time. When the whole matrix is one wave of few, its time
 * is the time of one thread, and registers are there to have more loads under way: the launch says so, since
 * the compiler spares them otherwise. Streaming wants threads instead. */
static int64_t blocks_in_a_wave(const struct state *state, const struct cb_target *target) {
  const int64_t blocks = (state->csr->rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
  return (blocks + target->multiprocessors - 1) / target->multiprocessors;
}

/* Diagonals whose loads are under way together: what a thread has registers for. */
static int choose_batch(const struct state *state, int64_t wave) {
  const int limit = wave <= 2 ? 32 : wave <= 4 ? 12 : 9;
  const int rounds = (state->diagonals + limit - 1) / limit;
  return (state->diagonals + rounds - 1) / rounds;
}

static void draft_offsets(struct cb_draft *draft, const struct state *state) {
  enum { PER_LINE = 12 };
  struct cb_text text = {0};
  const int lines = state->diagonals > PER_LINE;
  for (int d = 0; d < state->diagonals; d++)
    cb_text_add(&text, "%s%s%d", d ? "," : "",
                lines && d % PER_LINE == 0 ? "\n    "
                : d                        ? " "
                                           : "",
                state->offset[d]);
  if (text.failed)
    draft->failed = 1;
  else
    cb_draft_hole(draft, "offsets", cb_text_string(&text));
  cb_text_release(&text);
}

static void draft_sums(struct cb_draft *draft, const struct state *state) {
  const int some = state->first_inside < state->end_inside;
  const int from_first = state->first_inside == 0, to_last = state->end_inside == state->slices;
  const char *inside = from_first ? "slice < kEndInside"
                       : to_last  ? "slice >= kFirstInside"
                                  : "slice >= kFirstInside && slice < kEndInside";
  const int all = some && from_first && to_last;
  if (some && !from_first)
    cb_draft_constant(draft, "kFirstInside", state->first_inside,
                      "plan: slices before it need bounds checks");
  if (some && !to_last)
    cb_draft_constant(draft, "kEndInside", state->end_inside, "plan: slices from it on need bounds checks");
  if (some) cb_draft_include(draft, "region", "dia/sum_inside.cu.in");
  if (!all) cb_draft_include(draft, "region", "dia/sum_border.cu.in");
  if (state->absent) cb_draft_include(draft, "region", "dia/sum_present.cu.in");
  cb_draft_include(draft, "sum",
                   all    ? "dia/all_inside.cu.in"
                   : some ? "dia/mixed.cu.in"
                          : "dia/all_border.cu.in");
  if (some && !all) cb_draft_hole(draft, "inside", inside);
  cb_draft_include(draft, "again", state->absent ? "dia/again.cu.in" : "");
  cb_draft_hole(draft, "result", state->absent ? "sum_t" : "const sum_t");
}

static void draft_facts(struct cb_draft *draft, const struct state *state) {
  enum { LISTED = 16 };
  struct cb_text text = {0};
  cb_draft_fact(draft, "diagonals", "%d", state->diagonals);
  for (int d = 0; d < state->diagonals && state->diagonals <= LISTED; d++)
    cb_text_add(&text, "%s%d", d ? " " : "", state->offset[d]);
  if (text.failed)
    draft->failed = 1;
  else if (state->diagonals <= LISTED)
    cb_draft_fact(draft, "offsets", "%s", cb_text_string(&text));
  else
    cb_draft_fact(draft, "between", "%d %d", state->offset[0], state->offset[state->diagonals - 1]);
  cb_text_release(&text);
  cb_draft_fact(draft, "inside", "%lld %lld", (long long)(state->end_inside - state->first_inside),
                (long long)state->slices);
  cb_draft_fact(draft, "absent", "%lld", (long long)state->absent);
}

static void draft_region(struct cb_draft *draft, const struct state *state) {
  const int64_t rows = state->csr->rows, slots = state->slices * state->diagonals * ROWS;
  const int64_t wave = blocks_in_a_wave(state, draft->target);
  const int batch = choose_batch(state, wave);
  draft_facts(draft, state);
  cb_draft_constant(draft, "kDiagonals", state->diagonals, "plan: diagonals, and values of a row");
  cb_draft_constant(draft, "kBatch", batch, "plan: diagonals whose loads are under way together");
  cb_draft_values(draft, "values", "per slice, diagonal and row", slots);
  if (state->absent) cb_draft_bytes(draft, "presence", "a bit per slot: it holds a nonzero", slots / 8);
  cb_draft_include(draft, "region", "dia/offsets.cu.in");
  draft_offsets(draft, state);
  draft_sums(draft, state);
  cb_draft_hole(draft, "times", state->diagonals > UNROLLED ? " 1" : "");
  cb_draft_hole(draft, "rest", state->diagonals % batch ? " && first + i < kDiagonals" : "");
  cb_draft_include(draft, "guard", rows % BLOCK_ROWS ? "dia/guard.cu.in" : "");
  cb_draft_include(draft, "region", "dia/multiply.cu.in");
  draft->region.blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
  draft->region.blocks_per_sm = wave <= 4 ? (int)wave : 6; /* 40 registers, as in sell */
  draft->region.commit = draft->commit;
}

/* Sectors of x: what a thread block reads of it once, where diagonals less than a block apart share L1's
 * lines. */
static void predict(struct cb_draft *draft, const struct state *state) {
  int64_t elements = 0, end = INT64_MIN;
  for (int d = 0; d < state->diagonals; d++) {
    const int64_t first = state->offset[d] > end ? state->offset[d] : end;
    end = state->offset[d] + BLOCK_ROWS;
    elements += end - first;
  }
  const int64_t bytes = elements * (int64_t)cb_type_size(draft->vector_type);
  draft->region.cost.sectors = draft->region.blocks * ((bytes + 31) / 32);
  draft->region.cost.stream_percent = 98;
}

static enum cb_status dia_plan(struct cb_draft *draft, struct cb_diag *diag) {
  const struct cb_csr *csr = draft->work.part.csr;
  if (!csr->nnz)
    return cb_fail(
        diag, CB_ERR_UNSUPPORTED,
        "no diagonal crosses half of the rows with %lld %% of its places occupied; lower 'dia-fill' or use "
        "another recipe",
        (long long)draft->options->dia_fill);
  if (csr->rows >
      INT32_MAX - 8192) /* the text counts rows, those of a whole thread block included, in an int */
    return cb_fail(diag, CB_ERR_LIMIT, "%lld rows exceed the dia layout's %d", (long long)csr->rows,
                   INT32_MAX - 8192);
  struct state *state = cb_calloc(1, sizeof *state);
  if (!state) return cb_fail_memory(diag, "dia layout", sizeof *state);
  draft->work.state = state;
  state->csr = csr;
  state->slices = (csr->rows + ROWS - 1) / ROWS;
  const enum cb_status s = find_diagonals(state, diag);
  if (s) return s;
  find_inside(state);
  draft_region(draft, state);
  predict(draft, state);
  return CB_OK;
}

/* ---- packing */

/* Columns and offsets both ascend. */
static void pack_row(const struct state *state, const struct cb_part *part, int64_t row,
                     unsigned char *presence, const struct cb_slot_map *map) {
  const struct cb_csr *csr = state->csr;
  int d = 0;
  for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
    while (row + state->offset[d] != csr->col_idx[k]) d++;
    const int64_t slot = (row / ROWS * state->diagonals + d) * ROWS + row % ROWS;
    cb_slot_set(map, slot, cb_part_origin(part, k));
    if (presence) presence[slot / 8] |= (unsigned char)(1 << slot % 8);
  }
}

static enum cb_status dia_pack(const struct cb_region *region, const struct cb_region_work *work,
                               unsigned char *const *targets, const struct cb_slot_map *map,
                               struct cb_diag *diag) {
  const struct state *state = work->state;
  unsigned char *presence =
      targets && region->arrays_count == 2 ? targets[1] : NULL; /* draft_region's order */
  (void)diag;
#pragma omp parallel for schedule(static)
  for (int64_t slice = 0; slice < state->slices; slice++) /* no byte of presence bits belongs to two slices */
    for (int64_t row = slice * ROWS; row < (slice + 1) * ROWS && row < state->csr->rows; row++)
      pack_row(state, &work->part, row, presence, map);
  return CB_OK;
}

const struct cb_layout cb_layout_dia = {
    .name = "dia",
    .summary = "diagonals with offsets in the text, no indices",
    .source = "-",
    .plan = dia_plan,
    .pack = dia_pack,
};
