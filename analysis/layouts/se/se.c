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
#include "analysis/layouts/du/options.h"
#include "analysis/plan/cost_figures.h"
#include "analysis/sectors.h"
#include "base/integers.h"

enum { WARPS = 8, LANES = 32, ROW_LANES = 4, BATCH = 8, MOST = INT32_MAX - 8192 };

struct state {
  struct cb_arena arena;
  struct cb_chunks chunks;
  enum cb_mma mma;
  uint64_t *first_step;   /* of each chunk, and one more */
  uint32_t *first_column; /* of each chunk */
  int64_t longest;        /* steps of a chunk at most */
};

static int64_t slots(const struct state *state) { return (int64_t)state->first_step[state->chunks.count] * LANES; }

/* ---- steps: need the chunks */

static void measure_chunk(struct state *state, int64_t chunk) {
  const struct cb_csr *csr = state->chunks.csr;
  int64_t length = 0;
  int32_t least = INT32_MAX;
  for (int64_t i = chunk * CB_CHUNK_ROWS; i < (chunk + 1) * CB_CHUNK_ROWS; i++) {
    const int64_t of_row = cb_chunks_length(&state->chunks, i);
    length = cb_larger(length, of_row);
    if (of_row) least = (int32_t)cb_smaller(least, csr->col_idx[cb_csr_row(csr, cb_chunks_row(&state->chunks, i))]);
  }
  state->first_column[chunk] = length ? (uint32_t)least : 0;
  state->first_step[chunk + 1] = (uint64_t)cb_divide_up(length, ROW_LANES);
}

static int count_steps(struct state *state) {
  const int64_t chunks = state->chunks.count;
  state->first_step = cb_arena_alloc(&state->arena, (size_t)chunks + 1, sizeof *state->first_step);
  state->first_column = cb_arena_alloc(&state->arena, (size_t)chunks, sizeof *state->first_column);
  if (state->arena.failed) return 0;
#pragma omp parallel for schedule(static)
  for (int64_t chunk = 0; chunk < chunks; chunk++) measure_chunk(state, chunk);
  for (int64_t chunk = 0; chunk < chunks; chunk++) {
    state->longest = cb_larger(state->longest, (int64_t)state->first_step[chunk + 1]);
    state->first_step[chunk + 1] += state->first_step[chunk];
  }
  return 1;
}

/* ---- where nonzeros are */

static int se_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *walk) {
  const struct state *state = user;
  const struct cb_csr *csr = state->chunks.csr;
  for (int64_t i = first * CB_CHUNK_ROWS; i < end * CB_CHUNK_ROWS; i++) {
    const int64_t chunk = i / CB_CHUNK_ROWS, row = cb_chunks_row(&state->chunks, i);
    const int64_t begin = (int64_t)state->first_step[chunk] * LANES + i % CB_CHUNK_ROWS * ROW_LANES;
    for (int64_t k = 0; k < cb_chunks_length(&state->chunks, i); k++) {
      const int64_t nonzero = cb_csr_row(csr, row) + k, slot = begin + k / ROW_LANES * LANES + k % ROW_LANES;
      cb_emit(walk, slot, nonzero, (uint32_t)csr->col_idx[nonzero] - state->first_column[chunk]);
    }
  }
  return 1;
}

/* ---- the region */

static uint64_t row_at(const void *user, int64_t local_row) {
  const struct state *state = user;
  return (uint64_t)(state->chunks.row ? state->chunks.row[local_row] : local_row);
}

static uint64_t length_at(const void *user, int64_t local_row) {
  return (uint64_t)cb_chunks_length(&((const struct state *)user)->chunks, local_row);
}

static int64_t widest_offset(const struct state *state) {
  const struct cb_csr *csr = state->chunks.csr;
  int64_t widest = 0;
#pragma omp parallel for schedule(static) reduction(max : widest)
  for (int64_t i = 0; i < state->chunks.count * CB_CHUNK_ROWS; i++) {
    const int64_t row = cb_chunks_row(&state->chunks, i);
    if (cb_chunks_length(&state->chunks, i))
      widest = cb_larger(widest, csr->col_idx[cb_csr_row(csr, row + 1) - 1] -
                                     (int64_t)state->first_column[i / CB_CHUNK_ROWS]);
  }
  return widest;
}

static void build_arrays(struct cb_region_builder *builder, const struct state *state) {
  const int64_t chunks = state->chunks.count;
  cb_region_computed(builder, "row_of", "row of a local row", chunks * CB_CHUNK_ROWS, row_at);
  cb_region_computed(builder, "row_length", "nonzeros of a local row", chunks * CB_CHUNK_ROWS, length_at);
  cb_region_list(builder, "first_step", "steps before a chunk, 32 slots each", chunks + 1, state->first_step);
  cb_region_list(builder, "first_column", "least column of a chunk", chunks, state->first_column);
  cb_region_by_slot(builder, "column_offset", "column of a slot, from its chunk's first",
                   (struct cb_slot_elements){.count = slots(state), .largest = widest_offset(state)});
  cb_region_streamed(builder);
  cb_region_values(builder, "values", "per step, row and lane", slots(state));
}

static void build_region(struct cb_region_builder *builder, const struct state *state) {
  static const char *const forms[] = {[CB_MMA_NONE] = "fma", [CB_MMA_F64] = "mma-f64", [CB_MMA_TF32] = "mma-tf32"};
  const int64_t chunks = state->chunks.count;
  cb_region_fact(builder, "chunks", "%lld", (long long)chunks);
  cb_region_fact(builder, "steps", "%lld", (long long)state->first_step[chunks]);
  cb_region_fact(builder, "form", "%s", forms[state->mma]);
  build_arrays(builder, state);
  cb_region_structure(builder, "kBatch", state->mma == CB_MMA_NONE ? BATCH : BATCH / 2,
                      "plan: steps whose loads are in flight together");
  if (state->mma != CB_MMA_NONE) cb_region_section(builder, "mma");
  if (state->mma == CB_MMA_TF32) cb_region_section(builder, "tf32");
  if (chunks * CB_CHUNK_ROWS > builder->work.part.csr->rows || state->chunks.row) cb_region_section(builder, "guarded");
  if (chunks % WARPS) {
    cb_region_section(builder, "partial");
    cb_region_size(builder, "kChunks", chunks, "plan: chunks of 8 rows");
  }
  builder->region.blocks = cb_divide_up(chunks, WARPS);
  builder->region.blocks_per_sm = 5;
  if (state->chunks.row) return;
  builder->region.block_rows = WARPS * CB_CHUNK_ROWS;
  builder->region.row_threads = ROW_LANES;
}

/* ---- prediction */

static void ask_step(const struct state *state, int64_t chunk, int64_t step, struct cb_sector_sink *sink) {
  const struct cb_csr *csr = state->chunks.csr;
  cb_sector_load(sink);
  for (int64_t i = chunk * CB_CHUNK_ROWS; i < (chunk + 1) * CB_CHUNK_ROWS; i++) {
    const int64_t length = cb_chunks_length(&state->chunks, i), row = cb_chunks_row(&state->chunks, i);
    for (int64_t k = step * ROW_LANES; k < cb_smaller((step + 1) * ROW_LANES, length); k++)
      cb_sector_ask(sink, csr->col_idx[cb_csr_row(csr, row) + k]);
  }
}

static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const struct state *state = user;
  const int64_t end = cb_smaller((thread_block + 1) * WARPS, state->chunks.count);
  for (int64_t chunk = thread_block * WARPS; chunk < end; chunk++)
    for (int64_t step = 0; step < (int64_t)(state->first_step[chunk + 1] - state->first_step[chunk]); step++)
      ask_step(state, chunk, step, sink);
}

static enum cb_status predict(struct cb_region_builder *builder, const struct state *state, struct cb_diag *diag) {
  builder->region.cost.chain_ns = (1 + cb_divide_up(state->longest, BATCH)) * CB_COST_BATCH_NS;
  builder->region.cost.stream_percent = CB_COST_SELL_PERCENT;
  return cb_sectors_predict(builder, state, visit_sectors, diag);
}

static enum cb_status se_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  const int64_t *settings = cb_settings(builder->options, &cb_layout_du);
  enum cb_status s = cb_region_state(builder, sizeof(struct state), diag);
  struct state *state = builder->work.state;
  if (s) return s;
  s = cb_mma_choose(&state->mma, builder, settings[DU_FORM], diag);
  if (s) return s;
  if (!cb_chunks_make(&state->chunks, &state->arena, builder, settings[CRUX_SORT] == CB_ON) || !count_steps(state))
    return cb_fail_memory(diag, "chunks", (uint64_t)builder->work.part.csr->rows * sizeof *state->chunks.row);
  builder->work.units = state->chunks.count;
  build_region(builder, state);
  return predict(builder, state, diag);
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
    .most_rows = MOST,
};
