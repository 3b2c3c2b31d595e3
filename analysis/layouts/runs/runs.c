// SPDX-License-Identifier: Apache-2.0
/* Runs: all nonzeros of the part lie in runs of 32 neighbouring columns (shape `row` of analysis/fill.h), of which each
 * row may have several. It is sliced ELL with a column for each run instead of one for each nonzero. A warp takes a
 * slice of 4 rows, and 8 lanes share a row, so that what they load of x lies side by side: with a lane for a row, each
 * load would ask for 32 lines, and L1 looks up one at a time. Run r of all of a slice's rows are a group:
 *
 *   slot(group, step, lane) = (group * 4 + step) * 32 + lane     place 8 * step + lane % 8 of the run of row lane / 8
 *
 * A place that holds no nonzero, of a run or because a row has fewer runs than another of its slice, is stored as 0.
 * A row multiplies the places of its own runs only; where some of these are absent, presence bits say which, and a lane
 * whose sum is not finite sums again over the present ones alone, as in layout slices.
 */
#include "analysis/layout.h"

#include "analysis/fill.h"
#include "analysis/cost_figures.h"
#include "analysis/plan/recipe.h"
#include "analysis/sectors.h"
#include "base/integers.h"

enum {
  LANES = 32,
  WARPS = 8,
  ROW_LANES = 8,
  ROWS = LANES / ROW_LANES, /* of a slice */
  BLOCK_ROWS = ROWS * WARPS,
  LENGTH = 32,              /* of a run */
  GROUP = ROWS * LENGTH,    /* slots */
  MOST_BATCH = 2            /* runs: 8 loads of values and as many of x */
};

struct state {
  struct cb_arena arena;
  const struct cb_csr *csr;
  const struct cb_fill *fill; /* the split's, or `own`; a slice of it is a row */
  struct cb_fill own;         /* in the arena */
  int64_t slices;
  uint64_t *first_group; /* of each slice, and one more */
  uint32_t *count;       /* runs of each row, those of a whole thread block included */
  uint32_t *start;       /* first column by group and row of the slice */
  int64_t longest;       /* runs of a row at most */
  int64_t batch;         /* runs whose loads are in flight together */
};

static int64_t runs_of(const struct cb_fill *fill, int64_t number) {
  return fill->first_block[number + 1] - fill->first_block[number];
}

static int64_t slots(const struct state *state) {
  return (int64_t)state->first_group[state->slices] * GROUP;
}

/* Places of runs without a nonzero. */
static int64_t absent(const struct state *state) {
  return cb_fill_count(state->fill) - state->fill->nonzeros;
}

static enum cb_status find_own(struct state *state, struct cb_diag *diag) {
  const struct cb_csr *csr = state->csr;
  struct cb_fill fill;
  enum cb_status s = cb_fill_find(&fill, csr, cb_fill_shape_find("row"), 1, CB_FILL_ALIGNED, diag);
  if (!s && fill.nonzeros != csr->nnz)
    s = cb_fail(diag, CB_ERR_UNSUPPORTED, "%lld nonzeros are in no run of %d columns; use another recipe",
                (long long)(csr->nnz - fill.nonzeros), LENGTH);
  if (!s && !cb_fill_keep(&state->own, &fill, &state->arena)) s = cb_fail_memory(diag, "runs", (uint64_t)fill.blocks * 4);
  cb_fill_release(&fill);
  state->fill = &state->own;
  return s;
}

/* Those that the split found, else all; they must have all nonzeros. */
static enum cb_status find_runs(struct state *state, const struct cb_part *part, struct cb_diag *diag) {
  state->fill = cb_part_found(part, CB_FOUND_FILL);
  if (!state->fill) return find_own(state, diag);
  if (state->fill->shape->height == 1) return CB_OK;
  return cb_fail(diag, CB_ERR_UNSUPPORTED, "blocks of shape '%s' are no runs; use another recipe", state->fill->shape->name);
}

/* A slice has as many groups as its row with the most runs. The slices fill the thread blocks. */
static enum cb_status cut_slices(struct state *state, struct cb_diag *diag) {
  const struct cb_fill *fill = state->fill;
  state->slices = cb_divide_up(state->csr->rows, BLOCK_ROWS) * WARPS;
  state->first_group = cb_arena_alloc(&state->arena, (size_t)state->slices + 1, sizeof *state->first_group);
  if (!state->first_group) return cb_fail_memory(diag, "slices", (uint64_t)state->slices * sizeof *state->first_group);
  for (int64_t i = 0; i < fill->slices; i++) {
    uint64_t *groups = &state->first_group[fill->first_row[i] / ROWS + 1];
    if ((uint64_t)runs_of(fill, i) > *groups) *groups = (uint64_t)runs_of(fill, i);
    state->longest = cb_larger(state->longest, runs_of(fill, i));
  }
  for (int64_t s = 0; s < state->slices; s++) state->first_group[s + 1] += state->first_group[s];
  state->batch = cb_smaller(cb_larger(state->longest, 1), MOST_BATCH);
  if (slots(state) / 64 <= state->csr->nnz + state->csr->rows + 65536) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT, "runs of %d columns would pad %lld nonzeros to %lld slots; use another recipe",
                 LENGTH, (long long)state->csr->nnz, (long long)slots(state));
}

/* ---- the region */

/* Runs of rows, and where they start. */
static int list_runs(struct state *state) {
  const struct cb_fill *fill = state->fill;
  const size_t groups = (size_t)state->first_group[state->slices];
  state->count = cb_arena_alloc(&state->arena, (size_t)state->slices * ROWS, sizeof *state->count);
  state->start = cb_arena_alloc(&state->arena, groups * ROWS, sizeof *state->start);
  if (!state->count || !state->start) return 0;
  for (int64_t i = 0; i < fill->slices; i++) {
    const int64_t row = fill->first_row[i], group = (int64_t)state->first_group[row / ROWS];
    state->count[row] = (uint32_t)runs_of(fill, i);
    for (int64_t r = 0; r < runs_of(fill, i); r++)
      state->start[(group + r) * ROWS + row % ROWS] = (uint32_t)fill->column[fill->first_block[i] + r];
  }
  return 1;
}

static void build_rows(struct cb_region_builder *builder, const struct state *state) {
  const int64_t starts = (int64_t)state->first_group[state->slices] * ROWS;
  cb_region_list(builder, "first_group", "groups of runs before a slice", state->slices + 1, state->first_group);
  cb_region_list(builder, "run_count", "runs of a row", state->slices * ROWS, state->count);
  cb_region_list(builder, "run_start", "first column of a run, per group and row", starts, state->start);
}

static void build_region(struct cb_region_builder *builder, const struct state *state) {
  cb_region_fact(builder, "runs", "%lld", (long long)state->fill->blocks);
  cb_region_fact(builder, "groups", "%lld", (long long)state->first_group[state->slices]);
  cb_region_fact(builder, "absent", "%lld", (long long)absent(state));
  build_rows(builder, state);
  const int presence = absent(state) && cb_region_needs_presence(builder);
  if (absent(state)) cb_region_zero_slots(builder);
  if (presence) cb_region_section(builder, "absent");
  cb_region_values(builder, "values", "per group, 8 places of each row at a time", slots(state));
  if (presence) cb_region_bytes(builder, "presence", "a bit per slot: it holds a nonzero", slots(state) / 8);
  cb_region_structure(builder, "kBatch", state->batch, "plan: runs whose loads are in flight together");
  if (state->longest > state->batch) cb_region_section(builder, "more");
  if (state->csr->rows % BLOCK_ROWS) cb_region_section(builder, "guard");
  builder->region.blocks = cb_divide_up(state->slices, WARPS);
  builder->region.block_rows = BLOCK_ROWS;
  builder->region.row_threads = ROW_LANES;
  builder->region.blocks_per_sm = cb_region_blocks_for(builder, 6); /* 40 registers: enough for a batch's loads */
}

/* ---- prediction */

/* The first of the rows with runs that is not before `row`. */
static int64_t number_at(const struct cb_fill *fill, int64_t row) {
  int64_t low = 0, high = fill->slices;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (fill->first_row[middle] < row) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* What the lanes ask for at a step of a group: 8 columns for each row that has such a run. */
static void ask_step(const struct state *state, int64_t slice, int64_t group, int step, struct cb_sector_sink *sink) {
  const int64_t run = group - (int64_t)state->first_group[slice];
  cb_sector_load(sink);
  for (int row = 0; row < ROWS; row++)
    for (int lane = 0; lane < ROW_LANES && run < state->count[slice * ROWS + row]; lane++)
      cb_sector_ask(sink, (int64_t)state->start[group * ROWS + row] + step * ROW_LANES + lane);
}

static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const struct state *state = user;
  for (int64_t slice = thread_block * WARPS; slice < (thread_block + 1) * WARPS; slice++)
    for (int64_t group = (int64_t)state->first_group[slice]; group < (int64_t)state->first_group[slice + 1]; group++)
      for (int step = 0; step < LENGTH / ROW_LANES; step++) ask_step(state, slice, group, step, sink);
}

/* A row's batches follow one another. */
static enum cb_status predict(struct cb_region_builder *builder, const struct state *state, struct cb_diag *diag) {
  builder->region.cost.chain_ns = cb_divide_up(state->longest, state->batch) * CB_COST_BATCH_NS;
  builder->region.cost.stream_percent = CB_COST_SELL_PERCENT;
  return cb_sectors_predict(builder, state, visit_sectors, diag);
}

static enum cb_status runs_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  enum cb_status s = cb_region_state(builder, sizeof(struct state), diag);
  struct state *state = builder->work.state;
  if (s) return s;
  state->csr = builder->work.part.csr;
  s = find_runs(state, &builder->work.part, diag);
  if (!s) s = cut_slices(state, diag);
  if (!s && !list_runs(state)) s = cb_fail_memory(diag, "runs", (uint64_t)slots(state) / LENGTH * sizeof *state->start);
  if (s) return s;
  builder->work.units = state->slices;
  build_region(builder, state);
  return predict(builder, state, diag);
}

/* ---- packing */

static void visit_row(const struct state *state, int64_t number, unsigned char *presence, const struct cb_walk *walk) {
  const struct cb_fill *fill = state->fill;
  const int64_t row = fill->first_row[number], first = fill->first_block[number];
  const int64_t group = (int64_t)state->first_group[row / ROWS];
  int64_t cursor = first;
  for (int64_t k = cb_csr_row(state->csr, row); k < cb_csr_row(state->csr, row + 1); k++) {
    const int64_t column = state->csr->col_idx[k], run = cb_fill_block(fill, number, 0, (int32_t)column, &cursor);
    const int64_t place = column - fill->column[run], step = place / ROW_LANES;
    const int64_t slot = (group + run - first) * GROUP + step * LANES + row % ROWS * ROW_LANES + place % ROW_LANES;
    if (presence) presence[slot / 8] |= (unsigned char)(1 << slot % 8);
    cb_emit_nonzero(walk, slot, k);
  }
}

/* A byte of presence bits has eight places of one run. */
static int runs_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *walk) {
  const struct state *state = user;
  unsigned char *presence = cb_walk_bytes(walk, "presence");
  const int64_t last = number_at(state->fill, end * ROWS);
  for (int64_t i = number_at(state->fill, first * ROWS); i < last; i++) visit_row(state, i, presence, walk);
  return 1;
}

/* Its recipes are those of the split that makes its parts, in the folder of layout slices. */
static const struct cb_recipe no_recipes[] = {{0}};

const struct cb_layout cb_layout_runs = {
    .name = "runs",
    .summary = "runs of 32 neighbouring columns with a column number each",
    .source = "FBCSR",
    .recipes = no_recipes,
    .plan = runs_plan,
    .visit = runs_visit,
    .unit = "slice",
    .most_rows = INT32_MAX - 8192, /* those of a whole thread block included */
};
