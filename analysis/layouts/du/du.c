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
 *
 * Tensor cores multiply by eight vectors at a time what they would multiply by one: so for four and more they have all
 * blocks, and the warps of a thread block share a unit. Of a block they know the bits and the place of its first value
 * together, in array `tile`, so that none counts what is before it. Sums that are not finite are added up again from
 * what is present. Where a warp has several batches, the thread block brings what is known of its blocks to shared
 * memory before it waits for the kernel before. Few long rows are put in an order in which those of a chunk share
 * columns.
 *
 * Four vectors would leave half of the columns of a factor idle. So one load of a warp brings entries of X for two
 * blocks, a half of the factor each. Each block is multiplied by the whole factor, and the two have sums of their own,
 * of which the half that met its own entries counts.
 */
#include "analysis/layouts/du/options.h"
#include "analysis/cost_figures.h"
#include "base/integers.h"

enum { BATCH = CB_CHUNK_BATCH, MOST_WIDTH = 8 };

struct state {
  struct cb_chunk_state base; /* its steps are blocks */
  uint64_t *first_value;      /* of each chunk, and one more */
  uint64_t *unit_value;       /* of each unit */
  uint32_t *first_column;     /* of each unit */
  uint32_t *column_offset;    /* by block and column; where warps share units by batch, column and block */
  uint32_t *bits;             /* words of a block: as many as 4 go into its width */
  uint32_t *tile;             /* instead, where warps share units: of a block its bits, and its first value from the
                               * unit's first one */
};

static int is_shared(const struct state *state) {
  return state->base.warps > 0;
}
static int64_t column_place(const struct state *state, int64_t block, int64_t k) {
  const int64_t width = state->base.width;
  return is_shared(state) ? (block / BATCH * width + k) * BATCH + block % BATCH : block * width + k;
}
static int words(const struct state *state) {
  return state->base.width * CB_CHUNK_ROWS / 32;
}
static int64_t blocks(const struct state *state) {
  return (int64_t)state->base.first_step[state->base.chunks.count];
}

/* ---- blocks: need the chunks */

static int64_t blocks_of(const struct cb_chunk_state *base, int64_t chunk) {
  struct cb_chunk_walk walk = cb_chunk_walk_of(&base->chunks, chunk);
  struct cb_chunk_column column;
  int64_t columns = 0;
  while (cb_chunk_walk_next(&walk, &column)) columns++;
  return cb_round_up(cb_divide_up(columns, base->width), base->warps ? BATCH : 1);
}

/* The next columns of a chunk, a block of them at most. Returns how many. */
static int next_block(struct cb_chunk_walk *walk, struct cb_chunk_column columns[MOST_WIDTH], int width) {
  int count = 0;
  while (count < width && cb_chunk_walk_next(walk, &columns[count])) count++;
  return count;
}

static void count_values(struct state *state) {
  const struct cb_chunks *chunks = &state->base.chunks;
  for (int64_t chunk = 0; chunk < chunks->count; chunk++) {
    state->first_value[chunk + 1] = state->first_value[chunk];
    for (int64_t i = chunk * CB_CHUNK_ROWS; i < (chunk + 1) * CB_CHUNK_ROWS; i++)
      state->first_value[chunk + 1] += (uint64_t)cb_chunks_length(chunks, i);
  }
}

static void describe_block(struct state *state, int64_t unit, int64_t block, uint64_t value,
                           const struct cb_chunk_column *columns, int count) {
  const int width = state->base.width;
  uint32_t *bits = is_shared(state) ? state->tile + 2 * block : state->bits + block * words(state);
  if (is_shared(state)) bits[1] = (uint32_t)(value - state->unit_value[unit]);
  for (int k = 0; k < width; k++) {
    const struct cb_chunk_column *column = &columns[cb_smaller(k, count - 1)];
    state->column_offset[column_place(state, block, k)] = (uint32_t)column->column - state->first_column[unit];
    for (int row = 0; k < count && row < CB_CHUNK_ROWS; row++)
      if (column->rows >> row & 1)
        bits[(width * row + k) / 32] |= UINT32_C(1) << (width * row + k) % 32;
  }
}

/* Where a unit begins, its first column and value are its first block's. */
static void describe_chunk(struct state *state, int64_t chunk) {
  const struct cb_chunk_state *base = &state->base;
  struct cb_chunk_walk walk = cb_chunk_walk_of(&base->chunks, chunk);
  struct cb_chunk_column columns[MOST_WIDTH];
  uint64_t block = base->first_step[chunk], value = state->first_value[chunk];
  int64_t unit = cb_chunk_unit(base, chunk, 0);
  for (int count; (count = next_block(&walk, columns, base->width)) > 0; block++) {
    if (block > base->first_step[chunk] && block == base->unit_step[unit + 1]) unit++;
    if (block == base->unit_step[unit]) {
      state->first_column[unit] = (uint32_t)columns[0].column;
      state->unit_value[unit] = value;
    }
    describe_block(state, unit, (int64_t)block, value, columns, count);
    for (int k = 0; k < count; k++) value += (uint64_t)__builtin_popcount(columns[k].rows);
  }
}

static int describe_blocks(struct state *state) {
  struct cb_arena *arena = &state->base.arena;
  const size_t all = (size_t)blocks(state), units = (size_t)state->base.units;
  const size_t chunks = (size_t)state->base.chunks.count;
  state->first_value = cb_arena_alloc(arena, chunks + 1, sizeof *state->first_value);
  state->unit_value = cb_arena_alloc(arena, units, sizeof *state->unit_value);
  state->first_column = cb_arena_alloc(arena, units, sizeof *state->first_column);
  state->column_offset = cb_arena_alloc(arena, all * (size_t)state->base.width, sizeof *state->column_offset);
  if (is_shared(state)) state->tile = cb_arena_alloc(arena, 2 * all, sizeof *state->tile);
  else state->bits = cb_arena_alloc(arena, all * (size_t)words(state), sizeof *state->bits);
  if (arena->failed) return 0;
  count_values(state);
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t chunk = 0; chunk < state->base.chunks.count; chunk++) describe_chunk(state, chunk);
  return 1;
}

/* ---- the region */

static void build_bits(struct cb_region_builder *builder, const struct state *state) {
  const char *const meaning = "per block: a bit for each place, row by row";
  if (!is_shared(state)) {
    cb_region_list(builder, "bits", meaning, blocks(state) * words(state), state->bits);
    if (words(state) > 1) cb_region_section(builder, "wide");
    return;
  }
  cb_region_list(builder, "tile", "per block: a bit for each place, row by row; its first value, from the unit's",
                 2 * blocks(state), state->tile);
  cb_region_streamed(builder);
  if (blocks(state) * state->base.width * CB_CHUNK_ROWS > builder->work.part.csr->nnz)
    cb_region_section(builder, "absent");
}

static void build_region(struct cb_region_builder *builder, const struct state *state) {
  const int64_t units = state->base.units, columns = blocks(state) * state->base.width;
  cb_chunks_build(builder, "first_block", "blocks before a chunk, or a segment of one");
  cb_region_list(builder, "first_value", "values before it", units, state->unit_value);
  cb_region_list(builder, "first_column", "its least column", units, state->first_column);
  cb_region_list(builder, "column_offset",
                 is_shared(state) ? "per 4 blocks: first columns, then second ones …, from that one"
                                  : "per block: its columns, from that one",
                 columns, state->column_offset);
  if (is_shared(state)) cb_region_streamed(builder);
  build_bits(builder, state);
  cb_region_values(builder, "values", "per block, in the order of the bits", builder->work.part.csr->nnz);
  if (!is_shared(state)) cb_region_structure(builder, "kWidth", state->base.width, "plan: columns of a block");
  cb_region_structure(builder, "kBatch", BATCH, "plan: blocks whose loads are in flight together");
}

/* ---- prediction */

static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const struct state *state = user;
  const int64_t width = state->base.width, of_block = is_shared(state) ? 1 : CB_CHUNK_WARPS;
  const int64_t end = cb_smaller((thread_block + 1) * of_block, state->base.units);
  for (int64_t unit = thread_block * of_block; unit < end; unit++)
    for (uint64_t block = state->base.unit_step[unit]; block < state->base.unit_step[unit + 1]; block++) {
      cb_sector_load(sink);
      for (int64_t k = 0; k < width; k++)
        cb_sector_ask(sink, (int64_t)state->first_column[unit] +
                                state->column_offset[column_place(state, (int64_t)block, k)]);
    }
}

/* A chunk's batches follow one another: values are where the bits of all blocks before say. */
static enum cb_status predict(struct cb_region_builder *builder, const struct state *state, struct cb_diag *diag) {
  const int64_t ps = state->base.mma == CB_MMA_NONE ? CB_COST_DU_BLOCK_PS : CB_COST_DU_MMA_PS;
  builder->region.cost.work_ns = blocks(state) * ps * words(state) / builder->target->multiprocessors / 1000;
  return cb_chunks_predict(builder, BATCH, visit_sectors, diag);
}

/* Whether blocks of neighbouring rows have fewer nonzeros than `enough`, from a sample. */
static int are_too_empty(const struct cb_csr *csr, int enough) {
  enum { SAMPLES = 256, WIDTH = 4, TOGETHER = BATCH * WIDTH };
  const struct cb_chunks chunks = {.csr = csr};
  const int64_t all = csr->rows / CB_CHUNK_ROWS, some = cb_smaller(all, SAMPLES);
  int64_t nonzeros = 0, places = 0;
  for (int64_t i = 0; i < some; i++) {
    struct cb_chunk_walk walk = cb_chunk_walk_of(&chunks, i * all / some);
    struct cb_chunk_column column;
    int64_t columns = 0;
    for (; cb_chunk_walk_next(&walk, &column); columns++) nonzeros += __builtin_popcount(column.rows);
    places += cb_round_up(columns, TOGETHER);
  }
  return nonzeros * WIDTH < enough * places;
}

/* No search need look at blocks that are too empty, unless the matrix is small, and so is the search. By eight vectors
 * large ones win with 10 nonzeros in a block and more (wathen100, stiffness matrices); others lose with 5 and less
 * (R-MAT 14, pace21_ce_heur185, road_USA-NY), but where rows are so long that another order may fill blocks
 * (lp_osa_14). */
const char *cb_du_against(const struct cb_csr *csr) {
  enum { SOME = 1 << 18, OF_SOME = 5, LARGE = 1 << 20, OF_LARGE = 8 }; /* nonzeros of a matrix, and of a block */
  enum { LONG = 64 /* of a row, in the mean */ };
  const int is_large = csr->nnz > LARGE;
  if (csr->nnz <= SOME || (!is_large && csr->nnz > LONG * csr->rows)) return NULL;
  if (!are_too_empty(csr, is_large ? OF_LARGE : OF_SOME)) return NULL;
  return "8 neighbouring rows share too few columns";
}

static enum cb_status du_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  const enum cb_status s = cb_chunks_plan(builder, sizeof(struct state), blocks_of, 1, diag);
  struct state *state = builder->work.state;
  if (s) return s;
  if (!describe_blocks(state)) return cb_fail_memory(diag, "blocks", (uint64_t)blocks(state) * sizeof *state->bits);
  build_region(builder, state);
  return predict(builder, state, diag);
}

/* ---- packing */

static void visit_chunk(const struct state *state, int64_t chunk, const struct cb_walk *walk) {
  struct cb_chunk_walk columns_of = cb_chunk_walk_of(&state->base.chunks, chunk);
  struct cb_chunk_column columns[MOST_WIDTH];
  int64_t slot = (int64_t)state->first_value[chunk];
  for (int count; (count = next_block(&columns_of, columns, state->base.width)) > 0;)
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
  return cb_fail(diag, CB_ERR_ARGUMENT,
                 "'crux-rows' %lld exceeds 'crux-cols' %lld: hot rows have their nonzeros in hot columns",
                 (long long)settings[CRUX_ROWS], (long long)settings[CRUX_COLS]);
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
    .most_rows = CB_CHUNK_MOST,
    .minds_own_rows = 1,
};
