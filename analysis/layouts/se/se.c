// SPDX-License-Identifier: Apache-2.0
/* Sparse encoding: rows in chunks of 8 (analysis/chunks.h), of which each is as long as its longest row, in steps of 4
 * nonzeros of each row. It is sliced ELL with 8 rows, 4 lanes each:
 *
 *   slot(step, row, t) = (first step + step) * 32 + 4 row + t        nonzero 4 step + t of the row
 *
 * Lane 4 row + t is a lane of the row, and also where a tensor core's factors have element (row, t) of the one and
 * (t, row) of the other: so tensor cores multiply each row by its own entries of x, and of all that they add up the
 * diagonal is wanted. No lane goes past its row's end, and no row's sum sees another's x: padding is never multiplied.
 * After MatXtract and DASP.
 */
#include "analysis/chunks.h"
#include "analysis/plan/recipe.h"
#include "base/integers.h"

enum { LANES = 32, ROW_LANES = LANES / CB_CHUNK_ROWS, BATCH = 8 };

struct state {
  struct cb_chunk_state base;
  uint32_t *first_column; /* of each unit: its chunk's least one */
  int64_t widest;         /* offset from it */
};

static int64_t slots(const struct state *state) {
  return (int64_t)state->base.first_step[state->base.chunks.count] * LANES;
}

static int64_t steps_of(const struct cb_chunk_state *base, int64_t chunk) {
  int64_t length = 0;
  for (int64_t i = chunk * CB_CHUNK_ROWS; i < (chunk + 1) * CB_CHUNK_ROWS; i++)
    length = cb_larger(length, cb_chunks_length(&base->chunks, i));
  return cb_divide_up(length, ROW_LANES);
}

/* ---- columns: need units */

static int64_t least_column(const struct cb_chunks *chunks, int64_t chunk) {
  int64_t least = INT32_MAX;
  for (int64_t i = chunk * CB_CHUNK_ROWS; i < (chunk + 1) * CB_CHUNK_ROWS; i++)
    if (cb_chunks_length(chunks, i))
      least = cb_smaller(least, chunks->csr->col_idx[cb_csr_row(chunks->csr, cb_chunks_row(chunks, i))]);
  return least == INT32_MAX ? 0 : least;
}

static int64_t largest_column(const struct cb_chunks *chunks, int64_t chunk) {
  int64_t largest = 0;
  for (int64_t i = chunk * CB_CHUNK_ROWS; i < (chunk + 1) * CB_CHUNK_ROWS; i++)
    if (cb_chunks_length(chunks, i))
      largest = cb_larger(largest, chunks->csr->col_idx[cb_csr_row(chunks->csr, cb_chunks_row(chunks, i) + 1) - 1]);
  return largest;
}

static int find_columns(struct state *state) {
  const struct cb_chunk_state *base = &state->base;
  int64_t widest = 0;
  state->first_column = cb_arena_alloc(&state->base.arena, (size_t)base->units, sizeof *state->first_column);
  if (!state->first_column) return 0;
#pragma omp parallel for schedule(static) reduction(max : widest)
  for (int64_t unit = 0; unit < base->units; unit++) {
    const int64_t least = least_column(&base->chunks, base->unit_chunk[unit]);
    state->first_column[unit] = (uint32_t)least;
    widest = cb_larger(widest, largest_column(&base->chunks, base->unit_chunk[unit]) - least);
  }
  state->widest = widest;
  return 1;
}

/* ---- where nonzeros are */

static int se_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *walk) {
  const struct state *state = user;
  const struct cb_chunks *chunks = &state->base.chunks;
  for (int64_t i = first * CB_CHUNK_ROWS; i < end * CB_CHUNK_ROWS; i++) {
    const int64_t chunk = i / CB_CHUNK_ROWS, row = cb_chunks_row(chunks, i);
    const int64_t begin = (int64_t)state->base.first_step[chunk] * LANES + i % CB_CHUNK_ROWS * ROW_LANES;
    const uint32_t base = state->first_column[cb_chunk_unit(&state->base, chunk, 0)];
    for (int64_t k = 0; k < cb_chunks_length(chunks, i); k++) {
      const int64_t nonzero = cb_csr_row(chunks->csr, row) + k;
      cb_emit(walk, begin + k / ROW_LANES * LANES + k % ROW_LANES, nonzero,
              (uint32_t)chunks->csr->col_idx[nonzero] - base);
    }
  }
  return 1;
}

/* ---- the region */

static uint64_t length_at(const void *user, int64_t local_row) {
  return (uint64_t)cb_chunks_length(&((const struct state *)user)->base.chunks, local_row);
}

static void build_region(struct cb_region_builder *builder, const struct state *state) {
  const struct cb_chunk_state *base = &state->base;
  cb_chunks_build(builder, "first_step", "steps before a chunk, or a segment of one: 32 slots each");
  cb_region_computed(builder, "row_length", "nonzeros of a local row", base->chunks.count * CB_CHUNK_ROWS, length_at);
  cb_region_list(builder, "first_column", "least column of its chunk", base->units, state->first_column);
  cb_region_by_slot(builder, "column_offset", "column of a slot, from that one",
                    (struct cb_slot_elements){.count = slots(state), .largest = state->widest});
  cb_region_streamed(builder);
  cb_region_values(builder, "values", "per step, row and lane", slots(state));
  cb_region_structure(builder, "kBatch", base->mma == CB_MMA_NONE ? BATCH : BATCH / 2,
                      "plan: steps whose loads are in flight together");
  if (base->segments) cb_region_size(builder, "kSegmentSteps", base->segment, "plan: steps of a segment");
}

/* ---- prediction */

static void ask_step(const struct cb_chunks *chunks, int64_t chunk, int64_t step, struct cb_sector_sink *sink) {
  cb_sector_load(sink);
  for (int64_t i = chunk * CB_CHUNK_ROWS; i < (chunk + 1) * CB_CHUNK_ROWS; i++) {
    const int64_t length = cb_chunks_length(chunks, i), row = cb_chunks_row(chunks, i);
    for (int64_t k = step * ROW_LANES; k < cb_smaller((step + 1) * ROW_LANES, length); k++)
      cb_sector_ask(sink, chunks->csr->col_idx[cb_csr_row(chunks->csr, row) + k]);
  }
}

static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const struct cb_chunk_state *base = &((const struct state *)user)->base;
  const int64_t end = cb_smaller((thread_block + 1) * CB_CHUNK_WARPS, base->units);
  for (int64_t unit = thread_block * CB_CHUNK_WARPS; unit < end; unit++)
    for (uint64_t step = base->unit_step[unit]; step < base->unit_step[unit + 1]; step++)
      ask_step(&base->chunks, base->unit_chunk[unit], (int64_t)(step - base->first_step[base->unit_chunk[unit]]), sink);
}

static enum cb_status se_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  const enum cb_status s = cb_chunks_plan(builder, sizeof(struct state), steps_of, 0, diag);
  struct state *state = builder->work.state;
  if (s) return s;
  if (!find_columns(state)) return cb_fail_memory(diag, "chunks", (uint64_t)state->base.units * 4);
  build_region(builder, state);
  return cb_chunks_predict(builder, BATCH, visit_sectors, diag);
}

static const struct cb_node se = {.layout = "se"};

static const struct cb_recipe recipes[] = {
    {.name = "se", .summary = "chunks of 8 rows as sliced ELL, 4 lanes a row", .root = &se, .example = "fe3,n=3"},
    {0},
};

const struct cb_layout cb_layout_se = {
    .name = "se",
    .summary = "sparse encoding: chunks of 8 rows as sliced ELL, by tensor cores or lanes",
    .source = "MatXtract",
    .recipes = recipes,
    .plan = se_plan,
    .visit = se_visit,
    .unit = "chunk",
    .most_rows = CB_CHUNK_MOST,
    .minds_own_rows = 1,
};
