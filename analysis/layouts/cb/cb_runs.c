// SPDX-License-Identifier: Apache-2.0
/* Cutting for the cb layout: cb_runs_cut and cb_runs_place call the passes in order. Each states what it
 * needs and adds. */
#include "analysis/layouts/cb/cb_runs.h"

#include "analysis/ordering.h"
#include "base/integers.h"

enum {
  DENSE_ALIGN = 16,
  COO_BLOCKS = 8,    /* the same where COO occurs: its partial sums want the shared memory */
  BLOCK_WEIGHT = 8,  /* staging x of a block costs about as much as 8 products */
  COO_OVERHEAD = 160 /* clearing and adding up the partial sums of a COO run, in products */
};

/* ---- counting: needs the part; adds aggregated, panel_block, blocks */

int cb_runs_aggregates(const struct cb_runs *state, int64_t panel) {
  return state->aggregated && !(state->plain && state->plain[panel]);
}

/* Sub-blocks of a panel; those with fewer than `super_sparse` nonzeros are counted in *sparse. */
static int64_t count_panel(const struct cb_csr *csr, int64_t panel, int aggregated, int super_sparse, int64_t *sparse) {
  struct cb_panel_walk walk;
  struct cb_subblock block;
  int64_t blocks = 0;
  *sparse = 0;
  cb_panel_open(&walk, csr, panel);
  for (; cb_panel_next(&walk, aggregated, &block); blocks++) *sparse += block.nonzeros < super_sparse;
  return blocks;
}

/* Blocks per panel into panel_block[panel + 1]; returns how many blocks have fewer than `super_sparse`
 * nonzeros. */
static int64_t count_blocks(struct cb_runs *state, const struct cb_csr *csr, int super_sparse) {
  int64_t sparse = 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : sparse)
  for (int64_t panel = 0; panel < state->panels; panel++) {
    int64_t of_panel;
    state->panel_block[panel + 1] = count_panel(csr, panel, cb_runs_aggregates(state, panel), super_sparse, &of_panel);
    sparse += of_panel;
  }
  for (int64_t panel = 0; panel < state->panels; panel++) state->panel_block[panel + 1] += state->panel_block[panel];
  state->blocks = state->panel_block[state->panels];
  return sparse;
}

static enum cb_status check_blocks(const struct cb_runs *state, struct cb_diag *diag) {
  if (state->blocks <= INT32_MAX) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT, "%lld sub-blocks exceed the cb layout's 2147483647", (long long)state->blocks);
}

/* The same test for each panel. Without a panel that fails it nothing differs from aggregate=on, and without one that
 * passes it nothing from off. */
static enum cb_status decide_by_panel(struct cb_runs *state, const struct cb_csr *csr, const int64_t *settings,
                                      struct cb_diag *diag) {
  const int super_sparse = (int)settings[CB_SPMV_SUPER_SPARSE];
  int64_t aggregated = 0;
  state->plain = cb_arena_alloc(&state->arena, (size_t)state->panels + 1, 1);
  if (!state->plain) return cb_fail_memory(diag, "panels", (uint64_t)state->panels);
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : aggregated)
  for (int64_t panel = 0; panel < state->panels; panel++) {
    int64_t sparse;
    const int64_t blocks = count_panel(csr, panel, 0, super_sparse, &sparse);
    state->plain[panel] = sparse * 100 <= settings[CB_SPMV_TH0] * blocks;
    aggregated += !state->plain[panel];
  }
  state->aggregated = aggregated > 0;
  count_blocks(state, csr, super_sparse);
  return check_blocks(state, diag);
}

static enum cb_status decide_aggregation(struct cb_runs *state, const struct cb_csr *csr, const int64_t *settings,
                                         struct cb_diag *diag) {
  state->panel_block = cb_arena_alloc(&state->arena, (size_t)state->panels + 1, sizeof *state->panel_block);
  if (!state->panel_block) return cb_fail_memory(diag, "panels", (uint64_t)state->panels * 8);
  if (settings[CB_SPMV_AGGREGATE] == CB_AGGREGATE_PANEL) return decide_by_panel(state, csr, settings, diag);
  state->aggregated = settings[CB_SPMV_AGGREGATE] == CB_ON;
  const int64_t sparse = count_blocks(state, csr, (int)settings[CB_SPMV_SUPER_SPARSE]);
  if (settings[CB_SPMV_AGGREGATE] == CB_AUTO && sparse * 100 > settings[CB_SPMV_TH0] * state->blocks) {
    state->aggregated = 1;
    count_blocks(state, csr, (int)settings[CB_SPMV_SUPER_SPARSE]);
  }
  return check_blocks(state, diag);
}

void cb_runs_visit_blocks(const struct cb_runs *runs, const struct cb_csr *csr, cb_runs_visit *visit, void *user) {
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t panel = 0; panel < runs->panels; panel++) {
    struct cb_panel_walk walk;
    struct cb_subblock block;
    int64_t b = runs->panel_block[panel];
    cb_panel_open(&walk, csr, panel);
    for (; cb_panel_next(&walk, cb_runs_aggregates(runs, panel), &block); b++) visit(user, b, &block);
  }
}

/* ---- describing: needs panel_block; adds nonzeros and first_column of each block */

static void describe_block(void *user, int64_t b, const struct cb_subblock *block) {
  const struct cb_runs *state = user;
  state->nonzeros[b] = (uint16_t)block->nonzeros;
  state->first_column[b] = (uint32_t)block->columns[0];
}

static enum cb_status describe_blocks(struct cb_runs *state, const struct cb_csr *csr, struct cb_diag *diag) {
  state->nonzeros = cb_arena_alloc(&state->arena, (size_t)state->blocks, sizeof *state->nonzeros);
  state->first_column = cb_arena_alloc(&state->arena, (size_t)state->blocks, sizeof *state->first_column);
  if (!state->nonzeros || !state->first_column) return cb_fail_memory(diag, "sub-blocks", (uint64_t)state->blocks * 6);
  cb_runs_visit_blocks(state, csr, describe_block, state);
  return CB_OK;
}

/* ---- choosing formats: needs nonzeros; adds format, format_blocks, full_dense */

/* Steps of a warp that COO saves in a panel: as CSR, it would take as many as its longest row asks for, while
 * the other rows' lanes wait. 0 when it is less than `percent` of them. */
static int64_t steps_saved(const struct cb_csr *csr, int64_t panel, int64_t percent) {
  int64_t longest = 0, nonzeros = 0;
  for (int64_t row = panel * CB_PANEL_ROWS; row < (panel + 1) * CB_PANEL_ROWS && row < csr->rows; row++) {
    const int64_t length = cb_csr_row_length(csr, row);
    nonzeros += length;
    longest = cb_larger(longest, length);
  }
  const int64_t by_rows = longest * CB_PANEL_ROWS, saved = by_rows - nonzeros - COO_OVERHEAD;
  return saved > 0 && saved * 100 >= by_rows * percent ? saved / CB_RUN_LANES : 0;
}

/* Whether COO is worth the shared memory and registers that its text costs every thread block: it saves a
 * share of all steps, or a long wait in one panel. */
static int coo_pays(const struct cb_runs *state, const struct cb_csr *csr, int64_t percent) {
  enum { LONG_WAIT = 32, LEAST_PERCENT = 10 };
  int64_t saved = 0, most = 0;
#pragma omp parallel for schedule(static) reduction(+ : saved) reduction(max : most)
  for (int64_t panel = 0; panel < state->panels; panel++) {
    const int64_t of_panel = steps_saved(csr, panel, percent);
    saved += of_panel;
    most = cb_larger(most, of_panel);
  }
  return most >= LONG_WAIT || saved * CB_RUN_LANES * 100 >= csr->nnz * LEAST_PERCENT;
}

/* COO runs have a sum for each lane and row in shared memory, for which those of 16 bytes leave no room. */
static int has_room_for_coo(const struct cb_region_builder *builder) {
  return (int64_t)cb_type_size(builder->sum_type) * CB_RUN_WARPS * CB_PANEL_ROWS * CB_RUN_LANES <= CB_STATIC_SHARED;
}

static enum cb_status choose_formats(struct cb_runs *state, const struct cb_csr *csr, int64_t coo_gain,
                                     struct cb_diag *diag) {
  state->format = cb_arena_alloc(&state->arena, (size_t)state->blocks, 1);
  if (!state->format) return cb_fail_memory(diag, "sub-blocks", (uint64_t)state->blocks);
  const int coo = !coo_gain || coo_pays(state, csr, coo_gain);
  for (int64_t panel = 0; panel < state->panels; panel++) {
    const int uneven = coo && (!coo_gain || steps_saved(csr, panel, coo_gain));
    for (int64_t b = state->panel_block[panel]; b < state->panel_block[panel + 1]; b++) {
      const int nonzeros = state->nonzeros[b];
      const enum cb_block_format format = nonzeros > state->th2             ? CB_DENSE
                                          : uneven && nonzeros < state->th1 ? CB_COO
                                                                            : CB_CSR;
      state->format[b] = (unsigned char)format;
      state->format_blocks[format]++;
      if (format == CB_DENSE && nonzeros < CB_BLOCK_SIZE) state->full_dense = 0;
    }
  }
  for (enum cb_block_format format = CB_COO; format < CB_FORMATS; format++)
    state->formats += state->format_blocks[format] > 0;
  return CB_OK;
}

/* ---- cutting: needs formats; adds order and runs, panel by panel */

void cb_runs_add(struct cb_run_list *runs, struct cb_run run) {
  struct cb_run *added = cb_arena_append(runs->arena, &runs->at, &runs->count, sizeof run);
  if (added) *added = run;
}

struct cb_run cb_runs_empty(const struct cb_runs *state, int64_t panel) {
  enum cb_block_format format = CB_COO;
  while (format < CB_DENSE && !state->format_blocks[format]) format++;
  return (struct cb_run){.panel = (uint32_t)panel, .format = (unsigned char)format};
}

/* Work of a block, in nonzeros. */
static int64_t weight_of(const struct cb_runs *state, int64_t block) {
  return state->nonzeros[block] + BLOCK_WEIGHT;
}

/* Into how many runs a panel's blocks of one format are cut: `team`, or what the budget and the bound of a
 * run ask for (up to 8 a power of two, so that panels fill thread blocks), but no more than there are blocks.
 */
static int64_t choose_parts(int64_t weight, int64_t blocks, int64_t most, int64_t budget, int64_t team) {
  const int64_t by_weight = cb_divide_up(weight, budget), by_blocks = cb_divide_up(blocks, most);
  const int64_t wanted = cb_larger(by_weight, by_blocks);
  int64_t parts = 1;
  while (parts < wanted || parts < team) parts *= 2;
  if (parts > CB_RUN_WARPS) parts = wanted;
  return cb_smaller(parts, blocks);
}

/* Cuts a panel's blocks of one format into runs of about equal weight; `position` moves on. */
static void cut_format(struct cb_runs *state, int64_t panel, enum cb_block_format format, int64_t budget, int64_t team,
                       int64_t *position) {
  const int64_t begin = state->panel_block[panel], end = state->panel_block[panel + 1];
  const int64_t most = state->run_blocks              ? state->run_blocks
                       : state->format_blocks[CB_COO] ? COO_BLOCKS
                                                      : CB_RUN_MOST_BLOCKS;
  int64_t weight = 0, left = 0, done = 0, part = 1;
  for (int64_t b = begin; b < end; b++) {
    if (state->format[b] != format) continue;
    weight += weight_of(state, b);
    left++;
  }
  const int64_t parts = left ? choose_parts(weight, left, most, budget, team) : 0;
  struct cb_run run = {.panel = (uint32_t)panel, .first = (uint32_t)*position, .format = (unsigned char)format};
  for (int64_t b = begin; b < end; b++) {
    if (state->format[b] != format) continue;
    state->order[(*position)++] = (uint32_t)b;
    run.count++;
    run.nonzeros = (uint16_t)(run.nonzeros + state->nonzeros[b]);
    done += weight_of(state, b);
    left--;
    const int early =
        done * parts < weight * part || left > (parts - part) * most; /* the others have no room for more */
    if (left && run.count < most && early) continue;
    cb_runs_add(&state->runs, run);
    do part++;
    while (part < parts && done * parts >= weight * part);
    run.first = (uint32_t)*position;
    run.count = run.nonzeros = 0;
  }
}

/* Weight of a run: little enough that a small matrix fills the multiprocessors with warps, but not less than
 * what a warp loads at once; and a bound for what one warp works off alone. */
static int64_t choose_budget(const struct cb_runs *state, const struct cb_csr *csr, const int64_t *settings,
                             const struct cb_target *target) {
  enum { LEAST = 320, MOST = 2048, WARPS_WANTED = 24 };
  if (settings[CB_SPMV_UNIT_BUDGET]) return settings[CB_SPMV_UNIT_BUDGET];
  const int64_t weight = csr->nnz + BLOCK_WEIGHT * state->blocks;
  const int64_t share = weight / (WARPS_WANTED * (int64_t)target->multiprocessors);
  return settings[CB_SPMV_TEAM] || share > MOST ? MOST : share < LEAST ? LEAST : share;
}

static void cut_panels(struct cb_runs *state, const struct cb_region_builder *builder) {
  const int every_panel = builder->commit == CB_COMMIT_FINAL; /* empty panels, too: their rows are written */
  const int64_t budget = choose_budget(state, builder->work.part.csr, builder->settings, builder->target);
  int64_t position = 0;
  for (int64_t panel = 0; panel < state->panels; panel++) {
    for (enum cb_block_format format = CB_COO; format < CB_FORMATS; format++)
      cut_format(state, panel, format, budget, builder->settings[CB_SPMV_TEAM], &position);
    const int empty = state->panel_block[panel] == state->panel_block[panel + 1];
    if (empty && every_panel) cb_runs_add(&state->runs, cb_runs_empty(state, panel));
  }
}

/* Runs panel by panel, and their order, are needed until they are distributed. */
static enum cb_status cut_runs(struct cb_runs *state, const struct cb_region_builder *builder, struct cb_diag *diag) {
  struct cb_arena scratch = {0};
  state->runs.arena = &scratch;
  state->order = cb_arena_alloc(&scratch, (size_t)state->blocks, sizeof *state->order);
  if (state->order) cut_panels(state, builder);
  const int good = !scratch.failed;
  if (good) cb_runs_balance(state, builder);
  cb_arena_release(&scratch);
  if (!good || state->arena.failed)
    return cb_fail_memory(diag, "runs of sub-blocks", (uint64_t)state->blocks * sizeof(struct cb_run));
  if (state->runs.count > INT32_MAX)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld runs of sub-blocks exceed the cb layout's 2147483647",
                   (long long)state->runs.count);
  return CB_OK;
}

enum cb_status cb_runs_cut(struct cb_runs *state, const struct cb_region_builder *builder, struct cb_diag *diag) {
  const struct cb_csr *csr = builder->work.part.csr;
  enum cb_status s = decide_aggregation(state, csr, builder->settings, diag);
  if (!s) s = describe_blocks(state, csr, diag);
  if (!has_room_for_coo(builder)) state->th1 = 0; /* sub-blocks with fewer nonzeros would be COO */
  if (!s) s = choose_formats(state, csr, builder->settings[CB_SPMV_COO_GAIN], diag);
  return s ? s : cut_runs(state, builder, diag);
}

/* ---- placing: needs runs; adds place, run_of, row_lengths, and where each run's coordinates and values
 * start */

int64_t cb_runs_coordinate_bytes(const struct cb_runs *state, const struct cb_run *run) {
  if (run->format == CB_COO) return state->run_blocks == 1 ? run->slots : run->slots + (run->slots + 1) / 2;
  if (run->format == CB_CSR) return run->slots + !state->fixed_steps; /* what lanes without a nonzero may meet */
  return state->full_dense ? 0 : (int64_t)CB_DENSE_PRESENCE * run->count;
}

int64_t cb_runs_first_slot(const struct cb_runs *state, int64_t number) {
  const int64_t value_bytes = state->value_bytes;
  if (!state->intra) return (int64_t)state->values[number];
  const int64_t behind = cb_round_up(cb_runs_coordinate_bytes(state, &state->runs.at[number]), value_bytes);
  return (int64_t)state->coordinates[number] + behind / value_bytes;
}

/* Appends one run's data; the ends move on. */
static void place_data(struct cb_runs *state, int64_t number) {
  const struct cb_run *run = &state->runs.at[number];
  const int64_t value_bytes = state->value_bytes;
  const int64_t coordinates = cb_runs_coordinate_bytes(state, run);
  const int64_t slots = run->format == CB_DENSE ? (int64_t)CB_BLOCK_SIZE * run->count : run->slots + state->code_after;
  const int64_t align = run->format == CB_DENSE ? DENSE_ALIGN : value_bytes;
  if (state->intra) { /* one running end, in bytes */
    const int64_t start = cb_round_up(state->coordinates_end, align);
    state->coordinates[number] = (uint64_t)(start / value_bytes);
    state->coordinates_end = start + cb_round_up(coordinates, value_bytes) + slots * value_bytes;
  } else {
    const int64_t first = cb_round_up(state->values_end * value_bytes, align) / value_bytes;
    state->coordinates[number] = (uint64_t)state->coordinates_end;
    state->values[number] = (uint64_t)first;
    state->coordinates_end += coordinates;
    state->values_end = first + slots;
  }
}

/* A run's blocks are of one panel, and so one thread's. */
static void count_rows(void *user, int64_t b, const struct cb_subblock *block) {
  const struct cb_runs *state = user;
  uint16_t *lengths = state->row_lengths + (int64_t)state->run_of[b] * CB_PANEL_ROWS;
  for (int c = 0; c < block->width; c++)
    for (unsigned left = block->column_rows[c]; left; left &= left - 1) lengths[__builtin_ctz(left)]++;
}

int64_t cb_runs_steps(const struct cb_runs *state, int64_t number) {
  int64_t longest = 0;
  for (int r = 0; r < CB_PANEL_ROWS; r++) {
    const int64_t length = state->row_lengths[number * CB_PANEL_ROWS + r];
    longest = cb_larger(longest, length);
  }
  return cb_divide_up(longest, state->row_lanes);
}

static int64_t cb_runs_step_slots(const struct cb_runs *state) {
  return (int64_t)CB_PANEL_ROWS * state->row_lanes;
}

/* One shape for all runs, that of the largest, when padding costs little: all places are arithmetic then, and
 * nothing is to be looked up before the data. Bytes that stay in L2 are cheap. */
static void choose_shape(struct cb_runs *state, const struct cb_target *target) {
  enum { STREAMED_PERCENT = 8, CACHED_PERCENT = 20, COLUMN_BYTES = 2 };
  int64_t steps = 0, blocks = 0, nonzeros = 0;
  for (int64_t u = 0; u < state->runs.count; u++) {
    struct cb_run *run = &state->runs.at[u];
    const int64_t of_run = cb_runs_steps(state, u);
    steps = cb_larger(steps, of_run);
    blocks = cb_larger(blocks, run->count);
    nonzeros += run->nonzeros;
    run->slots = run->nonzeros;
  }
  if (!state->blocks || state->format_blocks[CB_COO] || state->format_blocks[CB_DENSE]) return;
  blocks = cb_round_up(blocks, state->row_lanes);
  const int64_t tight = nonzeros * (state->value_bytes + 1) + state->blocks * CB_BLOCK_COLS * COLUMN_BYTES;
  const int64_t padded = state->runs.count * (steps * cb_runs_step_slots(state) * (state->value_bytes + 1) +
                                              blocks * CB_BLOCK_COLS * COLUMN_BYTES);
  const int64_t percent = padded < target->l2_bytes / 2 ? CACHED_PERCENT : STREAMED_PERCENT;
  if (padded > INT32_MAX && state->runs.count * blocks > INT32_MAX) return;
  if ((padded - tight) * 100 > tight * percent) return;
  state->fixed_steps = steps;
  state->fixed_blocks = blocks;
  for (int64_t u = 0; u < state->runs.count; u++)
    state->runs.at[u].slots = (uint16_t)(steps * cb_runs_step_slots(state));
}

int cb_runs_single(const struct cb_runs *state) {
  return state->run_blocks == 1 && state->strided && !state->fixed_blocks;
}

/* A run's first position. */
int64_t cb_runs_position(const struct cb_runs *state, int64_t number) {
  return state->fixed_blocks ? number * state->fixed_blocks : state->runs.at[number].first;
}

int64_t cb_runs_positions(const struct cb_runs *state) {
  return state->fixed_blocks ? state->runs.count * state->fixed_blocks : state->blocks;
}

static int alloc_places(struct cb_runs *state) {
  const size_t blocks = (size_t)state->blocks, runs = (size_t)state->runs.count;
  struct cb_arena *arena = &state->arena;
  state->place = cb_arena_alloc(arena, blocks, sizeof *state->place);
  state->run_of = cb_arena_alloc(arena, blocks, sizeof *state->run_of);
  state->coordinates = cb_arena_alloc(arena, runs, sizeof *state->coordinates);
  if (!state->intra) state->values = cb_arena_alloc(arena, runs, sizeof *state->values);
  state->row_lengths = cb_arena_alloc(arena, runs * CB_PANEL_ROWS, sizeof *state->row_lengths);
  return !arena->failed;
}

enum cb_status cb_runs_place(struct cb_runs *state, const struct cb_csr *csr, const struct cb_target *target,
                             struct cb_diag *diag) {
  if (!alloc_places(state)) return cb_fail_memory(diag, "sub-blocks", (uint64_t)state->blocks * 20);
  for (int64_t u = 0; u < state->runs.count; u++) {
    const struct cb_run *run = &state->runs.at[u];
    for (uint32_t i = 0; i < run->count; i++) state->run_of[state->order[run->first + i]] = (uint32_t)u;
  }
  cb_runs_visit_blocks(state, csr, count_rows, state);
  choose_shape(state, target);
  for (int64_t u = 0; u < state->runs.count; u++) {
    const struct cb_run *run = &state->runs.at[u];
    for (uint32_t i = 0; i < run->count; i++)
      state->place[state->order[run->first + i]] = (uint32_t)(cb_runs_position(state, u) + i);
    place_data(state, u);
  }
  return CB_OK;
}
