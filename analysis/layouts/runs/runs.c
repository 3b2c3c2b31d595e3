// SPDX-License-Identifier: Apache-2.0
/* Runs: all nonzeros of the part lie in runs of 32 neighbouring columns (shape `row` of analysis/fill.h), of which each
 * row may have several. It is sliced ELL with a column for each run instead of one for each nonzero. A warp takes a
 * slice of 32 rows, a lane a row; run r of all of a slice's rows are a group:
 *
 *   slot(group, k, lane) = (group * 32 + k) * 32 + lane        k-th place of the run
 *
 * A place that holds no nonzero, of a run or because a row has fewer runs than another of its slice, is stored as 0.
 * A row multiplies the places of its own runs only; where some of these are absent, presence bits say which, and a sum
 * that is not finite is summed again over the present ones alone, as in layout slices.
 */
#include "analysis/layout.h"

#include "analysis/fill.h"
#include "analysis/cost_figures.h"
#include "analysis/plan/recipe.h"
#include "analysis/sectors.h"
#include "base/integers.h"

enum { LANES = 32, WARPS = 8, BLOCK_ROWS = LANES * WARPS, LENGTH = 32 /* of a run */, BATCH = 8 };

struct state {
  struct cb_arena arena;
  const struct cb_csr *csr;
  const struct cb_fill *fill; /* the split's, or `own`; a slice of it is a row */
  struct cb_fill own;         /* in the arena */
  int64_t slices;
  uint64_t *first_group; /* of each slice, and one more */
  uint32_t *count;       /* runs of each row */
  uint32_t *start;       /* first column by group and lane */
  int64_t longest;       /* runs of a row at most */
};

static int64_t runs_of(const struct cb_fill *fill, int64_t number) {
  return fill->first_block[number + 1] - fill->first_block[number];
}

static int64_t slots(const struct state *state) {
  return (int64_t)state->first_group[state->slices] * LANES * LENGTH;
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

/* A slice has as many groups as its row with the most runs. */
static enum cb_status cut_slices(struct state *state, struct cb_diag *diag) {
  const struct cb_fill *fill = state->fill;
  state->slices = cb_divide_up(state->csr->rows, LANES);
  state->first_group = cb_arena_alloc(&state->arena, (size_t)state->slices + 1, sizeof *state->first_group);
  if (!state->first_group) return cb_fail_memory(diag, "slices", (uint64_t)state->slices * sizeof *state->first_group);
  for (int64_t i = 0; i < fill->slices; i++) {
    uint64_t *groups = &state->first_group[fill->first_row[i] / LANES + 1];
    if ((uint64_t)runs_of(fill, i) > *groups) *groups = (uint64_t)runs_of(fill, i);
    state->longest = cb_larger(state->longest, runs_of(fill, i));
  }
  for (int64_t s = 0; s < state->slices; s++) state->first_group[s + 1] += state->first_group[s];
  if (slots(state) / 64 <= state->csr->nnz + state->csr->rows + 65536) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT, "runs of %d columns would pad %lld nonzeros to %lld slots; use another recipe",
                 LENGTH, (long long)state->csr->nnz, (long long)slots(state));
}

/* ---- the region */

/* Runs of rows, and where they start. */
static int list_runs(struct state *state) {
  const struct cb_fill *fill = state->fill;
  const size_t groups = (size_t)state->first_group[state->slices];
  state->count = cb_arena_alloc(&state->arena, (size_t)state->csr->rows, sizeof *state->count);
  state->start = cb_arena_alloc(&state->arena, groups * LANES, sizeof *state->start);
  if (!state->count || !state->start) return 0;
  for (int64_t i = 0; i < fill->slices; i++) {
    const int64_t row = fill->first_row[i], group = (int64_t)state->first_group[row / LANES];
    state->count[row] = (uint32_t)runs_of(fill, i);
    for (int64_t r = 0; r < runs_of(fill, i); r++)
      state->start[(group + r) * LANES + row % LANES] = (uint32_t)fill->column[fill->first_block[i] + r];
  }
  return 1;
}

static void build_rows(struct cb_region_builder *builder, const struct state *state) {
  const int64_t starts = (int64_t)state->first_group[state->slices] * LANES;
  cb_region_list(builder, "first_group", "groups of runs before a slice", state->slices + 1, state->first_group);
  cb_region_list(builder, "run_count", "runs of a row", state->csr->rows, state->count);
  cb_region_list(builder, "run_start", "first column of a run, per group and lane", starts, state->start);
}

static void build_region(struct cb_region_builder *builder, const struct state *state) {
  cb_region_fact(builder, "runs", "%lld", (long long)state->fill->blocks);
  cb_region_fact(builder, "groups", "%lld", (long long)state->first_group[state->slices]);
  cb_region_fact(builder, "absent", "%lld", (long long)absent(state));
  build_rows(builder, state);
  const int presence = absent(state) && cb_region_needs_presence(builder);
  if (absent(state)) cb_region_zero_slots(builder);
  if (presence) cb_region_section(builder, "absent");
  cb_region_values(builder, "values", "per group, place and row", slots(state));
  if (presence) cb_region_bytes(builder, "presence", "a bit per slot: it holds a nonzero", slots(state) / 8);
  if (state->csr->rows % BLOCK_ROWS) cb_region_section(builder, "guard");
  builder->region.blocks = cb_divide_up(state->slices, WARPS);
  builder->region.block_rows = BLOCK_ROWS;
  builder->region.row_threads = 1;
  builder->region.blocks_per_sm = 6; /* 40 registers: enough for a batch's loads */
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

static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const struct cb_fill *fill = ((const struct state *)user)->fill;
  const int64_t end = number_at(fill, (thread_block + 1) * BLOCK_ROWS);
  for (int64_t i = number_at(fill, thread_block * BLOCK_ROWS); i < end; i++)
    for (int64_t block = fill->first_block[i]; block < fill->first_block[i + 1]; block++) {
      cb_sector_load(sink);
      for (int k = 0; k < LENGTH; k++) cb_sector_ask(sink, fill->column[block] + k);
    }
}

/* A row's batches follow one another. */
static enum cb_status predict(struct cb_region_builder *builder, const struct state *state, struct cb_diag *diag) {
  builder->region.cost.chain_ns = state->longest * (LENGTH / BATCH) * CB_COST_BATCH_NS;
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
  const int64_t group = (int64_t)state->first_group[row / LANES];
  int64_t cursor = first;
  for (int64_t k = cb_csr_row(state->csr, row); k < cb_csr_row(state->csr, row + 1); k++) {
    const int64_t column = state->csr->col_idx[k], run = cb_fill_block(fill, number, 0, (int32_t)column, &cursor);
    const int64_t slot = ((group + run - first) * LENGTH + column - fill->column[run]) * LANES + row % LANES;
    if (presence) presence[slot / 8] |= (unsigned char)(1 << slot % 8);
    cb_emit_nonzero(walk, slot, k);
  }
}

/* A byte of presence bits has the same place of eight rows' runs, all of one slice. */
static int runs_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *walk) {
  const struct state *state = user;
  unsigned char *presence = cb_walk_bytes(walk, "presence");
  const int64_t last = number_at(state->fill, end * LANES);
  for (int64_t i = number_at(state->fill, first * LANES); i < last; i++) visit_row(state, i, presence, walk);
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
