// SPDX-License-Identifier: Apache-2.0
/* Dense unfolding: rows in chunks of 8 (analysis/chunks.h), of each chunk the columns that have nonzeros, and of these
 * `width` together a block. A block stores
 *
 *   bits           bit width * row + k: the chunk's row has a nonzero in the block's column k
 *   column_offset  of each of its columns, from the chunk's first one
 *   values         of its nonzeros alone, in the order of the bits
 *
 * A warp takes a chunk, lane 4 row + t the columns t, t + 4, … of each block. It finds its values by counting bits. The
 * columns that a chunk's last block lacks repeat its last one, without bits. After MatXtract.
 *
 * Lanes multiply what they hold, where there is a bit: padding is never multiplied. Or tensor cores multiply whole
 * blocks: then each element of x meets all 8 rows, as a product with 0 where there is no bit. So the warp votes whether
 * all of x is finite, and lanes multiply the block themselves if not.
 */
#include "analysis/chunks.h"
#include "analysis/layouts/du/options.h"
#include "analysis/plan/cost_figures.h"
#include "analysis/sectors.h"
#include "base/integers.h"

enum { WARPS = 8, BATCH = 4, MOST_WIDTH = 8, MOST = INT32_MAX - 8192 };

struct state {
  struct cb_arena arena;
  struct cb_chunks chunks;
  enum cb_mma mma;
  int width;
  uint64_t *first_block, *first_value; /* of each chunk, and one more */
  uint32_t *first_column;              /* of each chunk */
  uint32_t *column_offset;             /* by block and column */
  uint32_t *bits;                      /* words of a block: as many as 4 go into its width */
  int64_t longest;                     /* blocks of a chunk at most */
};

static int words(const struct state *state) { return state->width * CB_CHUNK_ROWS / 32; }
static int64_t blocks(const struct state *state) { return (int64_t)state->first_block[state->chunks.count]; }

/* ---- blocks: need the chunks */

/* The next columns of a chunk, a block of them at most. Returns how many. */
static int next_block(struct cb_chunk_walk *walk, struct cb_chunk_column columns[MOST_WIDTH], int width) {
  int count = 0;
  while (count < width && cb_chunk_walk_next(walk, &columns[count])) count++;
  return count;
}

static void count_chunk(struct state *state, int64_t chunk) {
  struct cb_chunk_walk walk = cb_chunk_walk_of(&state->chunks, chunk);
  struct cb_chunk_column columns[MOST_WIDTH];
  int64_t count = 0, nonzeros = 0;
  for (int i; (i = next_block(&walk, columns, state->width)) > 0; count++) {
    if (!count) state->first_column[chunk] = (uint32_t)columns[0].column;
    while (i-- > 0) nonzeros += __builtin_popcount(columns[i].rows);
  }
  state->first_block[chunk + 1] = (uint64_t)count;
  state->first_value[chunk + 1] = (uint64_t)nonzeros;
}

static int count_blocks(struct state *state) {
  const int64_t chunks = state->chunks.count;
  state->first_block = cb_arena_alloc(&state->arena, (size_t)chunks + 1, sizeof *state->first_block);
  state->first_value = cb_arena_alloc(&state->arena, (size_t)chunks + 1, sizeof *state->first_value);
  state->first_column = cb_arena_alloc(&state->arena, (size_t)chunks, sizeof *state->first_column);
  if (state->arena.failed) return 0;
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t chunk = 0; chunk < chunks; chunk++) count_chunk(state, chunk);
  for (int64_t chunk = 0; chunk < chunks; chunk++) {
    state->longest = cb_larger(state->longest, (int64_t)state->first_block[chunk + 1]);
    state->first_block[chunk + 1] += state->first_block[chunk];
    state->first_value[chunk + 1] += state->first_value[chunk];
  }
  return 1;
}

static void describe_block(struct state *state, int64_t chunk, int64_t block, const struct cb_chunk_column *columns,
                           int count) {
  const int width = state->width;
  for (int k = 0; k < width; k++) {
    const struct cb_chunk_column *column = &columns[cb_smaller(k, count - 1)];
    state->column_offset[block * width + k] = (uint32_t)column->column - state->first_column[chunk];
    for (int row = 0; k < count && row < CB_CHUNK_ROWS; row++)
      if (column->rows >> row & 1)
        state->bits[block * words(state) + (width * row + k) / 32] |= UINT32_C(1) << (width * row + k) % 32;
  }
}

static int describe_blocks(struct state *state) {
  const size_t all = (size_t)blocks(state);
  state->column_offset = cb_arena_alloc(&state->arena, all * (size_t)state->width, sizeof *state->column_offset);
  state->bits = cb_arena_alloc(&state->arena, all * (size_t)words(state), sizeof *state->bits);
  if (state->arena.failed) return 0;
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t chunk = 0; chunk < state->chunks.count; chunk++) {
    struct cb_chunk_walk walk = cb_chunk_walk_of(&state->chunks, chunk);
    struct cb_chunk_column columns[MOST_WIDTH];
    int64_t block = (int64_t)state->first_block[chunk];
    for (int count; (count = next_block(&walk, columns, state->width)) > 0; block++)
      describe_block(state, chunk, block, columns, count);
  }
  return 1;
}

/* ---- the region */

static uint64_t row_at(const void *user, int64_t local_row) {
  const struct state *state = user;
  return (uint64_t)(state->chunks.row ? state->chunks.row[local_row] : local_row);
}

static void build_arrays(struct cb_region_builder *builder, const struct state *state) {
  const int64_t chunks = state->chunks.count;
  cb_region_computed(builder, "row_of", "row of a local row", chunks * CB_CHUNK_ROWS, row_at);
  cb_region_list(builder, "first_block", "blocks before a chunk", chunks + 1, state->first_block);
  cb_region_list(builder, "first_value", "values before a chunk", chunks, state->first_value);
  cb_region_list(builder, "first_column", "least column of a chunk", chunks, state->first_column);
  cb_region_list(builder, "column_offset", "per block: its columns, from the chunk's first", blocks(state) * state->width,
                 state->column_offset);
  cb_region_list(builder, "bits", "per block: a bit for each place, row by row", blocks(state) * words(state), state->bits);
  cb_region_values(builder, "values", "per block, in the order of the bits", builder->work.part.csr->nnz);
}

static void build_region(struct cb_region_builder *builder, const struct state *state) {
  static const char *const forms[] = {[CB_MMA_NONE] = "fma", [CB_MMA_F64] = "mma-f64", [CB_MMA_TF32] = "mma-tf32"};
  const int64_t chunks = state->chunks.count;
  cb_region_fact(builder, "chunks", "%lld", (long long)chunks);
  cb_region_fact(builder, "blocks", "%lld", (long long)blocks(state));
  cb_region_fact(builder, "form", "%s", forms[state->mma]);
  build_arrays(builder, state);
  cb_region_structure(builder, "kWidth", state->width, "plan: columns of a block");
  cb_region_structure(builder, "kBatch", BATCH, "plan: blocks whose loads are in flight together");
  if (state->mma != CB_MMA_NONE) cb_region_section(builder, "mma");
  if (state->mma == CB_MMA_TF32) cb_region_section(builder, "tf32");
  if (state->width > 4) cb_region_section(builder, "wide");
  if (chunks * CB_CHUNK_ROWS > builder->work.part.csr->rows || state->chunks.row) cb_region_section(builder, "guarded");
  if (chunks % WARPS) {
    cb_region_section(builder, "partial");
    cb_region_size(builder, "kChunks", chunks, "plan: chunks of 8 rows");
  }
  builder->region.blocks = cb_divide_up(chunks, WARPS);
  builder->region.blocks_per_sm = 5;
  if (state->chunks.row) return;
  builder->region.block_rows = WARPS * CB_CHUNK_ROWS;
  builder->region.row_threads = 4;
}

/* ---- prediction */

static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const struct state *state = user;
  const int64_t end = cb_smaller((thread_block + 1) * WARPS, state->chunks.count);
  for (int64_t chunk = thread_block * WARPS; chunk < end; chunk++)
    for (uint64_t block = state->first_block[chunk]; block < state->first_block[chunk + 1]; block++) {
      cb_sector_load(sink);
      for (int k = 0; k < state->width; k++)
        cb_sector_ask(sink, (int64_t)state->first_column[chunk] + state->column_offset[(int64_t)block * state->width + k]);
    }
}

/* A chunk's batches follow one another: values are where the bits of all blocks before say. */
static enum cb_status predict(struct cb_region_builder *builder, const struct state *state, struct cb_diag *diag) {
  const int64_t ps = state->mma == CB_MMA_NONE ? CB_COST_DU_BLOCK_PS : CB_COST_DU_MMA_PS;
  builder->region.cost.chain_ns = (1 + cb_divide_up(state->longest, BATCH)) * CB_COST_BATCH_NS;
  builder->region.cost.work_ns = blocks(state) * ps * state->width / 4 / builder->target->multiprocessors / 1000;
  builder->region.cost.stream_percent = CB_COST_SELL_PERCENT;
  return cb_sectors_predict(builder, state, visit_sectors, diag);
}

static enum cb_status du_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  enum cb_status s = cb_region_state(builder, sizeof(struct state), diag);
  struct state *state = builder->work.state;
  if (s) return s;
  s = cb_mma_choose(&state->mma, builder, builder->settings[DU_FORM], diag);
  if (s) return s;
  state->width = cb_chunk_width((struct cb_types){builder->matrix_type, builder->vector_type, builder->sum_type});
  if (!cb_chunks_make(&state->chunks, &state->arena, builder, builder->settings[CRUX_SORT] == CB_ON) ||
      !count_blocks(state) || !describe_blocks(state))
    return cb_fail_memory(diag, "chunks", (uint64_t)builder->work.part.csr->nnz * sizeof *state->column_offset);
  builder->work.units = state->chunks.count;
  build_region(builder, state);
  return predict(builder, state, diag);
}

/* ---- packing */

static void visit_chunk(const struct state *state, int64_t chunk, const struct cb_walk *walk) {
  struct cb_chunk_walk columns_of = cb_chunk_walk_of(&state->chunks, chunk);
  struct cb_chunk_column columns[MOST_WIDTH];
  int64_t slot = (int64_t)state->first_value[chunk];
  for (int count; (count = next_block(&columns_of, columns, state->width)) > 0;)
    for (int row = 0; row < CB_CHUNK_ROWS; row++)
      for (int k = 0; k < count; k++)
        if (columns[k].rows >> row & 1) cb_emit_nonzero(walk, slot++, columns[k].nonzero[row]);
}

static int du_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *walk) {
  for (int64_t chunk = first; chunk < end; chunk++) visit_chunk(user, chunk, walk);
  return 1;
}

/* Hot rows are among those with nonzeros in hot columns. */
static enum cb_status du_check(const int64_t *settings, struct cb_diag *diag) {
  if (!settings[CRUX_COLS] || settings[CRUX_ROWS] <= settings[CRUX_COLS]) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "'crux-rows' %lld exceeds 'crux-cols' %lld: hot rows have their nonzeros in hot "
                                        "columns", (long long)settings[CRUX_ROWS], (long long)settings[CRUX_COLS]);
}

const struct cb_layout cb_layout_du = {
    .name = "du",
    .summary = "dense unfolding: chunks of 8 rows without their empty columns, by tensor cores or lanes",
    .source = "MatXtract",
    .options = cb_du_options,
    .options_count = DU_OPTIONS,
    .check = du_check,
    .recipes = cb_du_recipes,
    .plan = du_plan,
    .visit = du_visit,
    .unit = "chunk",
    .most_rows = MOST,
};
