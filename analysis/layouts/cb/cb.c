// SPDX-License-Identifier: Apache-2.0
/* CB-SpMV: panels of 16 rows cut into 16×16 sub-blocks, with column aggregation, a format per sub-block (COO,
 * CSR, Dense), intra-block data aggregation and load balance. After the CB-SpMV paper, with what a generator
 * adds: formats that do not occur leave no text, and a panel that one thread block owns needs neither atomics
 * nor carries.
 *
 * How to read it: cb_layout_plan at the end calls the passes in order. Each states what it needs and adds.
 *
 * Terms. A block is a sub-block here. Blocks have a natural number (panel by panel, left to right) and a
 * position (the order in which they are stored). A run is what one warp, or half of one, multiplies: up to 16
 * blocks of one panel and one format in consecutive positions, or nothing (padding, and panels without
 * nonzeros). x of a run's columns is gathered once, and a byte names a nonzero's column within its run,
 * whatever the block.
 *
 * Deviations from the paper, in favour of fewer bytes and dependent loads: a run's blocks share one virtual
 * pointer, and their nonzeros are one stream in the order in which lanes take them; restore_cols is stored in
 * the order of positions and padded to 16 columns per block, so that cols_offset is arithmetic; its entries
 * are offsets from the block's first column (blk_col_idx), so that they mostly fit 8 or 16 bits.
 */
#include "analysis/layouts/cb/cb_runs.h"
#include "analysis/plan/cost_figures.h"
#include "analysis/sectors.h"

#include "analysis/unit_set.h"
#include "base/integers.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>


static const char *const format_names[CB_FORMATS] = {"coo", "csr", "dense"};

/* ---- describing the region: needs the runs; adds arrays, constants, facts, pieces */

/* A new index array for cb_draft_index. NULL when memory is short: the draft notices. */
static uint32_t *new_index(int64_t count) {
  return cb_alloc((size_t)count, sizeof(uint32_t));
}

/* Elements by run. */
static void draft_by_run(struct cb_draft *draft, const struct cb_runs *state, const char *name,
                         const char *meaning, uint32_t (*of)(const struct cb_run *)) {
  uint32_t *elements = new_index(state->runs.count);
  for (int64_t u = 0; elements && u < state->runs.count; u++) elements[u] = of(&state->runs.at[u]);
  cb_draft_index(draft, name, meaning, elements, 0, state->runs.count);
}

static uint32_t panel_of(const struct cb_run *run) {
  return run->panel;
}
static uint32_t slots_of(const struct cb_run *run) {
  return run->slots;
}
static uint32_t format_of(const struct cb_run *run) {
  return run->format;
}

static void draft_first_block(struct cb_draft *draft, const struct cb_runs *state) {
  uint32_t *first = new_index(state->runs.count + 1);
  for (int64_t u = 0; first && u < state->runs.count; u++) first[u] = (uint32_t)cb_runs_position(state, u);
  if (first) first[state->runs.count] = (uint32_t)cb_runs_positions(state);
  cb_draft_index(draft, "first_block", "a run's first sub-block; runs + 1", first, 0, state->runs.count + 1);
  if (!state->fixed_blocks) cb_draft_section(draft, "jagged_blocks");
}

static void draft_row_lengths(struct cb_draft *draft, const struct cb_runs *state) {
  const int64_t count = state->runs.count * CB_PANEL_ROWS;
  uint32_t *lengths = new_index(count);
  for (int64_t i = 0; lengths && i < count; i++)
    lengths[i] = state->runs.at[i / CB_PANEL_ROWS].format == CB_CSR ? state->row_lengths[i] : 0;
  cb_draft_index(draft, "row_length", "nonzeros of a run's rows; 16 each", lengths, 0, count);
}

/* Elements by position, `width` to a sub-block, from elements by natural number. Sub-blocks that pad a run
 * repeat its last element. */
static void pad_runs(const struct cb_runs *state, uint32_t *elements, int64_t width) {
  for (int64_t u = 0; state->fixed_blocks && u < state->runs.count; u++) {
    const int64_t begin = cb_runs_position(state, u) * width, end = begin + state->fixed_blocks * width;
    const int64_t filled = begin + state->runs.at[u].count * width;
    for (int64_t i = filled; i < end; i++) elements[i] = filled > begin ? elements[filled - 1] : 0;
  }
}

static void draft_placed(struct cb_draft *draft, const struct cb_runs *state, const char *name,
                         const char *meaning, uint32_t (*of)(const struct cb_runs *, int64_t)) {
  uint32_t *elements = new_index(cb_runs_positions(state));
  if (elements) {
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < state->blocks; b++) elements[state->place[b]] = of(state, b);
    pad_runs(state, elements, 1);
  }
  cb_draft_index(draft, name, meaning, elements, 0, cb_runs_positions(state));
}

static uint32_t column_of(const struct cb_runs *state, int64_t b) {
  return state->first_column[b];
}
/* First column of the run that a block is in. */
static uint32_t run_column(const struct cb_runs *state, int64_t b) {
  return state->first_column[state->order[state->runs.at[state->run_of[b]].first]];
}
static int32_t base_of(const struct cb_runs *state, int64_t b) {
  return (int32_t)(state->run_bases ? run_column(state, b) : state->first_column[b]);
}
static uint32_t block_column_of(const struct cb_runs *state, int64_t b) {
  return state->first_column[b] / CB_BLOCK_COLS;
}

/* Steps of a warp: of 32 nonzeros, of a nonzero per lane, or of a sub-block. */
static int64_t warp_steps(const struct cb_runs *state, int64_t number) {
  const struct cb_run *run = &state->runs.at[number];
  if (run->format == CB_COO) return cb_divide_up(run->nonzeros, CB_RUN_LANES);
  return run->format == CB_DENSE ? run->count : cb_runs_steps(state, number);
}

/* Steps whose loads are under way together: what a run of `format` has on average, so that one batch is
 * mostly enough; or what the longest has, where multiprocessors are not filled and registers to spare. */
static int64_t choose_batch(const struct cb_runs *state, enum cb_block_format format) {
  enum { LEAST = 2, MOST_COO = 6, MOST = 8 };
  int64_t steps = 0, runs = 0, longest = 0;
  for (int64_t u = 0; u < state->runs.count; u++) {
    if (state->runs.at[u].format != format || !state->runs.at[u].count) continue;
    const int64_t of_run = warp_steps(state, u);
    steps += of_run;
    longest = cb_larger(longest, of_run);
    runs++;
  }
  const int64_t wanted = state->few ? longest : runs ? cb_divide_up(steps, runs) : LEAST;
  const int64_t most = format == CB_COO && !state->few ? MOST_COO : MOST; /* a row, too, for each nonzero */
  return wanted < LEAST ? LEAST : wanted > most ? most : wanted;
}

/* As many as leave the registers that loads under way and their addresses want: 3 each, and some more. */
static int choose_blocks_per_sm(const struct cb_runs *state) {
  enum { OF_LOAD = 3, OTHERS = 13 };
  if (state->format_blocks[CB_COO] || state->format_blocks[CB_DENSE]) return state->few ? 3 : 4;
  int64_t most = state->fixed_blocks;
  for (int64_t u = 0; u < state->runs.count; u++) most = cb_larger(most, state->runs.at[u].count);
  const int64_t rounds = cb_divide_up(most, state->row_lanes);
  const int64_t steps = state->fixed_steps ? state->fixed_steps : choose_batch(state, CB_CSR);
  const int64_t registers = OTHERS + OF_LOAD * (cb_smaller(rounds, 8) + cb_smaller(steps, 8));
  return registers <= 32 ? 8 : registers <= 40 ? 6 : registers <= 48 || state->fixed_steps ? 5 : 4;
}

struct gathers {
  const struct cb_runs *state;
  const uint32_t *restore; /* NULL: not aggregated */
  int64_t cols;
};

static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const struct gathers *gathers = user;
  const struct cb_runs *state = gathers->state;
  const int64_t per_block = cb_runs_per_block(state);
  for (int64_t u = thread_block * per_block; u < (thread_block + 1) * per_block; u++) {
    const struct cb_run *run = &state->runs.at[u];
    for (uint32_t i = 0; i < run->count; i++) {
      const int64_t b = state->order[run->first + i];
      const uint32_t *offsets =
          gathers->restore ? gathers->restore + (int64_t)state->place[b] * CB_BLOCK_COLS : NULL;
      if (i % (uint32_t)state->row_lanes == 0) cb_sector_load(sink);
      for (int c = 0; c < CB_BLOCK_COLS; c++) {
        const int64_t column =
            offsets ? base_of(state, b) + (int64_t)offsets[c] : (int64_t)state->first_column[b] + c;
        if (column < gathers->cols) cb_sector_ask(sink, column);
      }
    }
  }
}

static void predict_sectors(struct cb_draft *draft, const struct cb_runs *state, const uint32_t *restore) {
  struct cb_diag diag = {0};
  const struct gathers gathers = {state, restore, draft->work.part.csr->cols};
  draft->region.blocks = state->runs.count / cb_runs_per_block(state);
  draft->region.blocks_per_sm = choose_blocks_per_sm(state);
  if (cb_sectors_predict(draft, &gathers, visit_sectors, &diag)) draft->failed = 1;
}

struct restoring {
  const struct cb_runs *state;
  uint32_t *restore;
};

static void restore_block(void *user, int64_t b, const struct cb_subblock *block) {
  const struct restoring *to = user;
  uint32_t *offsets = to->restore + (int64_t)to->state->place[b] * CB_BLOCK_COLS;
  for (int c = 0; c < CB_BLOCK_COLS; c++) offsets[c] = (uint32_t)(block->columns[c] - base_of(to->state, b));
}

/* Offsets from each block's first column, or from its run's; 16 per position. */
static void draft_restore_columns(struct cb_draft *draft, const struct cb_runs *state, uint32_t *restore) {
  struct restoring to = {state, restore};
  cb_runs_visit_blocks(state, draft->work.part.csr, restore_block, &to);
  pad_runs(state, restore, CB_BLOCK_COLS);
  predict_sectors(draft, state, restore);
  cb_draft_index(draft, "restore_cols",
                 state->run_bases ? "original columns of a sub-block, from its run's first; 16 each"
                                  : "original columns of a sub-block, from its first; 16 each",
                 restore, 0, cb_runs_positions(state) * CB_BLOCK_COLS);
}

/* A run's first column serves all its blocks when offsets from it need no wider type. */
static void choose_bases(struct cb_runs *state, const struct cb_csr *csr) {
  uint32_t of_block = 0, of_run = 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(max : of_block, of_run)
  for (int64_t panel = 0; panel < state->panels; panel++) {
    struct cb_panel_walk walk;
    struct cb_subblock block;
    int64_t b = state->panel_block[panel];
    cb_panel_open(&walk, csr, panel);
    for (; cb_panel_next(&walk, 1, &block); b++) {
      const uint32_t last = (uint32_t)block.columns[CB_BLOCK_COLS - 1];
      of_block = last - state->first_column[b] > of_block ? last - state->first_column[b] : of_block;
      of_run = last - run_column(state, b) > of_run ? last - run_column(state, b) : of_run;
    }
  }
  state->run_bases = cb_type_for(of_run) == cb_type_for(of_block);
}

static void draft_run_columns(struct cb_draft *draft, const struct cb_runs *state) {
  uint32_t *columns = new_index(state->runs.count);
  for (int64_t u = 0; columns && u < state->runs.count; u++) {
    const struct cb_run *run = &state->runs.at[u];
    columns[u] = run->count ? state->first_column[state->order[run->first]] : 0;
  }
  cb_draft_index(draft, "run_col_idx", "first column of a run", columns, 0, state->runs.count);
}

static void draft_columns(struct cb_draft *draft, struct cb_runs *state) {
  const struct cb_csr *csr = draft->work.part.csr;
  if (!state->aggregated) {
    predict_sectors(draft, state, NULL);
    draft_placed(draft, state, "blk_col_idx", "column of a sub-block, in units of 16", block_column_of);
    if (csr->cols % CB_BLOCK_COLS == 0) cb_draft_section(draft, "whole");
    return;
  }
  choose_bases(state, csr);
  cb_draft_section(draft, "aggregated");
  if (state->run_bases) cb_draft_section(draft, "run_bases");
  if (state->run_bases)
    draft_run_columns(draft, state);
  else
    draft_placed(draft, state, "blk_col_idx", "first column of a sub-block", column_of);
  uint32_t *restore = new_index(cb_runs_positions(state) * CB_BLOCK_COLS);
  if (restore)
    draft_restore_columns(draft, state, restore);
  else
    draft->failed = 1;
}

/* Takes the state's 64-bit offsets and hands them over, narrowed if they fit. */
static void draft_offsets(struct cb_draft *draft, const char *name, const char *meaning,
                          const uint64_t *offsets, int64_t count) {
  const int wide = count && offsets[count - 1] > UINT32_MAX;
  void *elements = cb_alloc((size_t)count, wide ? 8 : 4);
  for (int64_t i = 0; elements && i < count; i++) {
    if (wide)
      ((uint64_t *)elements)[i] = offsets[i];
    else
      ((uint32_t *)elements)[i] = (uint32_t)offsets[i];
  }
  cb_draft_index(draft, name, meaning, elements, wide, count);
}

static void draft_data(struct cb_draft *draft, const struct cb_runs *state) {
  if (state->intra) {
    draft_offsets(draft, "vp_per_run", "virtual pointer: a run's place in mtx_data, in values",
                  state->coordinates, state->runs.count);
    cb_draft_mixed(draft, "mtx_data", "per run: coordinates, padding, values",
                   cb_round_up(state->coordinates_end, state->value_bytes) + CB_RUN_END * state->value_bytes);
    cb_draft_section(draft, "together");
    return;
  }
  const int any_data = !state->equal || state->coordinates_end > 0;
  if (any_data)
    draft_offsets(draft, "first_coordinate", "a run's place in coordinates, in bytes", state->coordinates,
                  state->runs.count);
  if (!state->equal)
    draft_offsets(draft, "first_value", "a run's place in values", state->values, state->runs.count);
  if (any_data)
    cb_draft_bytes(draft, "coordinates", "per run: places of its nonzeros",
                   state->coordinates_end + CB_RUN_END);
  cb_draft_values(draft, "values", "per run: values", state->values_end + CB_RUN_END);
  if (any_data)
    cb_draft_section(draft, state->equal ? "coordinates" : "apart");
}

/* Values of a Dense block that a lane loads together: 16 bytes, or all of its eight. */
static int64_t dense_vector(const struct cb_runs *state) {
  const int64_t vector = 16 / state->value_bytes;
  return cb_smaller(vector, CB_BLOCK_SIZE / 32);
}

static int64_t longest_row(const struct cb_runs *state) {
  int64_t longest = 0;
  for (int64_t i = 0; i < state->runs.count * CB_PANEL_ROWS; i++)
    if (state->runs.at[i / CB_PANEL_ROWS].format == CB_CSR && state->row_lengths[i] > longest)
      longest = state->row_lengths[i];
  return longest;
}

/* Room for x of the widest run, in whole batches of sub-blocks whose loads are under way together. */
static void draft_stage(struct cb_draft *draft, const struct cb_runs *state) {
  enum { MOST_BATCH = 8 };
  int64_t most = state->fixed_blocks ? state->fixed_blocks : 1;
  for (int64_t u = 0; u < state->runs.count; u++) {
    const struct cb_run *run = &state->runs.at[u];
    if (run->format != CB_DENSE && run->count > most) most = run->count;
  }
  const int64_t rounds = cb_divide_up(most, state->row_lanes);
  const int64_t batch = rounds < MOST_BATCH || state->fixed_blocks ? rounds : MOST_BATCH;
  const int64_t columns = cb_round_up(rounds, batch) * state->row_lanes * CB_BLOCK_COLS;
  const int64_t staged = cb_runs_per_block(state) * columns;
  cb_draft_constant(draft, "kStage", columns, "plan: columns of the widest run");
  cb_draft_constant(draft, "kStaged", staged, "plan: the same for all runs of a thread block");
  cb_draft_constant(draft, "kStageBatch", batch, "plan: sub-blocks whose x is loaded together");
  cb_draft_section(draft, "staged");
  if (state->fixed_blocks) cb_draft_section(draft, "fixed_blocks");
  draft->region.static_shared += staged * (int64_t)cb_type_size(draft->sum_type);
  if (!state->fixed_blocks && rounds > batch) cb_draft_section(draft, "stage_more");
}

/* Steps of a batch, at most 8: the fewest batches, then the largest first one, whose loads x does not wait
 * for. */
static int64_t choose_fixed_batch(int64_t steps) {
  enum { LEAST = 6, MOST = 8 };
  int64_t best = cb_smaller(steps, MOST);
  for (int64_t batch = best - 1; batch >= LEAST; batch--) {
    const int64_t batches = cb_divide_up(steps, batch), of_best = cb_divide_up(steps, best);
    if (batches == of_best && (steps - 1) % batch > (steps - 1) % best) best = batch;
  }
  return best;
}

static void draft_fixed(struct cb_draft *draft, const struct cb_runs *state) {
  const int64_t steps = state->fixed_steps, batch = choose_fixed_batch(steps);
  cb_draft_constant(draft, "kSteps", steps, "plan: steps of a run");
  cb_draft_constant(draft, "kFirst", (steps - 1) % batch + 1,
                    "plan: steps whose loads are under way while x is gathered");
  if (steps > batch)
    cb_draft_constant(draft, "kBatch", batch, "plan: later steps whose loads are under way together");
  cb_draft_section(draft, "csr_fixed");
  if (steps > batch) cb_draft_section(draft, "csr_more");
}

static void draft_csr(struct cb_draft *draft, const struct cb_runs *state) {
  const int64_t batch = choose_batch(state, CB_CSR);
  const int64_t longest = cb_divide_up(longest_row(state), state->row_lanes);
  draft_row_lengths(draft, state);
  if (state->fixed_steps) {
    draft_fixed(draft, state);
    return;
  }
  cb_draft_constant(draft, "kBatch", batch, "plan: steps whose loads are under way together");
  cb_draft_section(draft, "csr_jagged");
  if (longest > batch) cb_draft_section(draft, "csr_more");
}

static void draft_coo(struct cb_draft *draft, const struct cb_runs *state) {
  cb_draft_constant(draft, "kCooBatch", choose_batch(state, CB_COO), "plan: the same of COO runs");
  cb_draft_section(draft, "coo");
  draft->region.static_shared +=
      CB_RUN_WARPS * CB_PANEL_ROWS * CB_RUN_LANES * (int64_t)cb_type_size(draft->sum_type);
}

static void draft_dense(struct cb_draft *draft, const struct cb_runs *state) {
  if (!state->equal)
    cb_draft_constant(draft, "kVector", dense_vector(state), "plan: values that one load reads");
  cb_draft_section(draft, "dense");
  if (state->full_dense) cb_draft_section(draft, "full");
  if (state->equal) cb_draft_section(draft, "equal");
}

static void draft_formats(struct cb_draft *draft, const struct cb_runs *state) {
  static void (*const draft_format[CB_FORMATS])(struct cb_draft *,
                                                const struct cb_runs *) = {draft_coo, draft_csr, draft_dense};
  static const char *const meanings[CB_FORMATS] = {"0: COO", "1: CSR", "2: Dense"};
  char meaning[64] = "";
  int formats = 0;
  for (enum cb_block_format format = CB_COO; format < CB_FORMATS; format++) {
    if (!state->format_blocks[format]) continue;
    if (formats++) strcat(meaning, ", ");
    strcat(meaning, meanings[format]);
  }
  if (formats > 1) draft_by_run(draft, state, "run_format", meaning, format_of);
  else cb_draft_section(draft, "one_format");
  if (state->format_blocks[CB_COO] || state->format_blocks[CB_CSR])
    draft_stage(draft, state);
  if (state->fixed_steps) {
    draft_csr(draft, state);
    return;
  }
  if (state->format_blocks[CB_COO] || state->format_blocks[CB_CSR])
    draft_by_run(draft, state, "nnz_per_run", "nonzeros of a run", slots_of);
  for (enum cb_block_format format = CB_COO; format < CB_FORMATS; format++)
    if (state->format_blocks[format]) draft_format[format](draft, state);
}

/* Whether a panel's sum in a thread block starts at a run: at the first of the panel's runs there when these
 * are added up, else at each. Padding has none. */
static int is_share(const struct cb_runs *state, int64_t number) {
  const struct cb_run *run = &state->runs.at[number];
  if (run->panel >= state->panels) return 0;
  return !state->together || number % cb_runs_per_block(state) == 0 || run[-1].panel != run->panel;
}

/* Where thread blocks share panels, each leaves its sums in a carry slot: slot numbers per run (0: none), and
 * the groups of slots that make a panel. With atomics nothing of this is needed. Returns whether any panel is
 * shared. */
static int draft_carries(struct cb_draft *draft, const struct cb_runs *state) {
  int64_t slots = 0, groups = 0;
  const size_t panels = (size_t)state->panels;
  uint32_t *shares_of = cb_calloc(panels, sizeof *shares_of);
  uint32_t *group_first = cb_alloc(panels + 1, sizeof *group_first);
  uint32_t *group_of = cb_alloc(panels, sizeof *group_of);
  uint32_t *slot_of = new_index(state->runs.count);
  uint32_t *slot_group = NULL;
  if (!shares_of || !group_first || !group_of || !slot_of) goto fail;
  for (int64_t u = 0; u < state->runs.count; u++)
    if (is_share(state, u)) shares_of[state->runs.at[u].panel]++;
  for (int64_t panel = 0; panel < state->panels; panel++) {
    if (shares_of[panel] < 2) continue;
    group_of[panel] = (uint32_t)groups;
    group_first[groups++] = (uint32_t)slots;
    slots += shares_of[panel];
  }
  group_first[groups] = (uint32_t)slots;
  if (!slots || draft->options->atomics == CB_ON) goto done;
  slot_group = new_index(slots);
  uint32_t *next = shares_of; /* reused: the next free slot of a panel */
  if (!slot_group) goto fail;
  for (int64_t panel = 0; panel < state->panels; panel++)
    next[panel] = next[panel] < 2 ? UINT32_MAX : group_first[group_of[panel]];
  for (int64_t u = 0; u < state->runs.count; u++) {
    const uint32_t panel = state->runs.at[u].panel;
    slot_of[u] = 0;
    if (!is_share(state, u) || next[panel] == UINT32_MAX) continue;
    slot_group[next[panel]] = group_of[panel];
    slot_of[u] = ++next[panel];
  }
  cb_draft_index(draft, "carry_slot", "a run's carry slot, from 1; 0: none", slot_of, 0, state->runs.count);
  cb_draft_index(draft, "carry_group", "a slot's group: the slots of one panel", slot_group, 0, slots);
  cb_draft_index(draft, "carry_first", "a group's first slot; groups + 1", group_first, 0, groups + 1);
  draft->region.carry_slots = slots;
  draft->region.carry_width = CB_PANEL_ROWS;
  draft->region.carry_counters = groups;
  cb_free(shares_of);
  cb_free(group_of);
  return 1;
done:
  cb_free(shares_of);
  cb_free(group_first);
  cb_free(group_of);
  cb_free(slot_of);
  return slots > 0;
fail:
  draft->failed = 1;
  goto done;
}

static void draft_together(struct cb_draft *draft, const struct cb_runs *state) {
  if (!state->together) return;
  uint32_t *runs = new_index(state->runs.count);
  for (int64_t u = 0; runs && u < state->runs.count; u++)
    runs[u] =
        is_share(state, u) ? (uint32_t)cb_runs_of_panel(&state->runs, u, CB_RUN_WARPS - u % CB_RUN_WARPS) : 0;
  cb_draft_index(draft, "runs_together", "runs of a panel in a thread block, at the first of them; else 0",
                 runs, 0, state->runs.count);
  cb_draft_section(draft, "add_runs");
  draft->region.static_shared += CB_RUN_WARPS * CB_PANEL_ROWS * (int64_t)cb_type_size(draft->sum_type);
}

/* The last lines: which lanes have a row to write. */
static void draft_finish(struct cb_draft *draft, const struct cb_runs *state, int guarded) {
  const int halves = state->row_lanes == 2, all = !halves && !guarded && !draft->own_rows;
  if (state->blocks && halves) cb_draft_section(draft, "halves");
  if (!halves) cb_draft_section(draft, "half_runs");
  if (draft->own_rows) cb_draft_own_rows(draft);
  if (draft->region.carry_slots) cb_draft_section(draft, "carry");
  if (all) cb_draft_section(draft, "filled");
  if (guarded || draft->own_rows) cb_draft_section(draft, "guarded");
}

static void draft_runs(struct cb_draft *draft, const struct cb_runs *state) {
  const struct cb_csr *csr = draft->work.part.csr;
  cb_draft_constant(draft, "kRowLanes", state->row_lanes, "plan: lanes that share a row");
  draft_by_run(draft, state, "run_panel", "panel of a run", panel_of);
  draft_together(draft, state);
  const int shared = draft_carries(draft, state);
  draft->region.commit = shared && draft->options->atomics == CB_ON ? CB_COMMIT_ATOMIC : draft->commit;
  int padded = 0; /* where runs are added up, padding is gone by then */
  for (int64_t u = 0; u < state->runs.count && !state->together; u++)
    padded |= state->runs.at[u].panel >= state->panels;
  draft_finish(draft, state, padded || csr->rows % CB_PANEL_ROWS);
  draft->region.blocks = state->runs.count / cb_runs_per_block(state);
}

static void draft_facts(struct cb_draft *draft, const struct cb_runs *state) {
  cb_draft_fact(draft, "panels", "%lld", (long long)state->panels);
  for (enum cb_block_format format = CB_COO; format < CB_FORMATS; format++)
    if (state->format_blocks[format])
      cb_draft_fact(draft, format_names[format], "%lld", (long long)state->format_blocks[format]);
  cb_draft_fact(draft, "aggregated", "%s", state->aggregated ? "yes" : "no");
  if (!state->intra && !state->equal) cb_draft_fact(draft, "intra", "no");
  if (draft->options->balance == CB_BALANCE_HEAP) cb_draft_fact(draft, "balance", "heap");
  cb_draft_fact(draft, "runs", "%lld", (long long)state->runs.count);
  if (state->row_lanes == 1) cb_draft_fact(draft, "halves", "yes");
  if (state->fixed_steps)
    cb_draft_fact(draft, "shape", "%lld %lld", (long long)state->fixed_blocks, (long long)state->fixed_steps);
  if (draft->region.carry_slots)
    cb_draft_fact(draft, "carry", "%lld %lld", (long long)draft->region.carry_counters,
                  (long long)draft->region.carry_slots);
}

/* Instructions of a warp for a run, counted in the generated code. */
enum {
  RUN_INSTRUCTIONS = 60,
  STAGE_INSTRUCTIONS = 11,
  CSR_INSTRUCTIONS = 17,
  COO_INSTRUCTIONS = 22,
  COO_SUM_INSTRUCTIONS = 80,
  DENSE_INSTRUCTIONS = 60
};

static int64_t instructions_of(const struct cb_runs *state, int64_t number) {
  static const int64_t step[CB_FORMATS] = {COO_INSTRUCTIONS, CSR_INSTRUCTIONS, DENSE_INSTRUCTIONS};
  const struct cb_run *run = &state->runs.at[number];
  const int64_t rounds = run->format == CB_DENSE ? 0 : cb_divide_up(run->count, state->row_lanes);
  const int64_t warp = RUN_INSTRUCTIONS + rounds * STAGE_INSTRUCTIONS +
                       warp_steps(state, number) * step[run->format] +
                       (run->format == CB_COO ? COO_SUM_INSTRUCTIONS : 0);
  return warp * state->row_lanes / 2;
}

/* A multiprocessor issues about 2.5 instructions in a cycle of 0.6 ns when warps wait for memory. Gathers wait for
 * columns, and blocks for gathers: on graphs that takes half as long again, as measured. */
static int64_t work_ns(int64_t instructions, int64_t sectors, const struct cb_target *target) {
  const int64_t issued = instructions / target->multiprocessors * CB_COST_CB_INSTRUCTION_PS / 1000;
  return issued + cb_plan_gather_ns(sectors, target) * 3 / 2;
}

/* The first loads of a run depend on one more than the later ones do. */
static void predict(struct cb_draft *draft, const struct cb_runs *state) {
  enum { BATCH = 8 };
  int64_t instructions = 0, longest = 0;
  for (int64_t u = 0; u < state->runs.count; u++) {
    const int64_t steps = warp_steps(state, u) * (state->runs.at[u].format == CB_DENSE ? BATCH / 2 : 1);
    instructions += instructions_of(state, u);
    longest = cb_larger(longest, steps);
  }
  draft->region.cost.work_ns = work_ns(instructions, draft->region.cost.sectors, draft->target);
  draft->region.cost.chain_ns = CB_COST_CB_FIRST_NS + cb_divide_up(longest, BATCH) * CB_COST_CB_BATCH_NS;
  draft->region.cost.tail_ns = CB_COST_CB_STAGED_NS + (state->format_blocks[CB_COO] ? CB_COST_CB_COO_NS : 0) +
                               (state->together ? CB_COST_CB_TOGETHER_NS : 0) +
                               (draft->region.carry_slots ? CB_COST_CARRY_NS : 0);
  draft->region.cost.stream_percent = CB_COST_CB_PERCENT;
}

static void draft_region(struct cb_draft *draft, struct cb_runs *state) {
  if (state->blocks) {
    cb_draft_section(draft, "blocks");
    draft_columns(draft, state);
    draft_data(draft, state);
    draft_first_block(draft, state);
    draft_formats(draft, state);
  }
  draft_runs(draft, state);
  draft->region.blocks_per_sm = choose_blocks_per_sm(state);
  draft_facts(draft, state);
  predict(draft, state);
}

/* Dense blocks with holes multiply the zeros that are stored there, unless all values are equal: then nothing
 * is stored, and the presence bits tell. */
static void size_values(struct cb_runs *state, struct cb_draft *draft) {
  if (state->format_blocks[CB_DENSE] && !state->full_dense && draft->value_bytes) cb_draft_zero_slots(draft);
  state->equal = !draft->value_bytes;
  state->value_bytes = state->equal ? 1 : draft->value_bytes;
  if (state->equal) state->intra = 0;
  state->code_after = draft->value_storage == CB_VALUES_CODED;
}

static enum cb_status cb_layout_plan(struct cb_draft *draft, struct cb_diag *diag) {
  const struct cb_csr *csr = draft->work.part.csr;
  const struct cb_options *options = draft->options;
  if (csr->rows > INT32_MAX - 256) /* the text counts rows of padded thread blocks in an int */
    return cb_fail(diag, CB_ERR_LIMIT, "%lld rows exceed the cb layout's %d", (long long)csr->rows,
                   INT32_MAX - 256);
  enum cb_status s = cb_check_panels(csr, diag);
  if (s) return s;
  struct cb_runs *state = cb_calloc(1, sizeof *state);
  if (!state) return cb_fail_memory(diag, "cb layout", sizeof *state);
  draft->work.state = state;
  *state = (struct cb_runs){.panels = cb_panel_count(csr->rows),
                            .intra = options->intra != CB_OFF,
                            .th1 = (int)options->th1,
                            .th2 = (int)options->th2,
                            .full_dense = 1};
  s = cb_runs_cut(state, draft, diag);
  if (!s) size_values(state, draft);
  if (!s) s = cb_runs_place(state, csr, draft->target, diag);
  if (!s) draft_region(draft, state);
  return s;
}

/* ---- packing */

/* Where lanes meet the nonzeros of a CSR run: which lanes have one in a step, and how many there are before
 * it. */
struct steps {
  int64_t run; /* number; -1: none yet */
  uint32_t lanes[CB_RUN_STEPS];
  int32_t before[CB_RUN_STEPS];
};

static void steps_open(struct steps *steps, const struct cb_runs *state, int64_t run) {
  int32_t before = 0;
  memset(steps->lanes, 0, sizeof steps->lanes);
  for (int lane = 0; lane < CB_PANEL_ROWS * state->row_lanes; lane++) {
    const int length = state->row_lengths[run * CB_PANEL_ROWS + lane % CB_PANEL_ROWS];
    for (int k = lane / CB_PANEL_ROWS; k < length; k += state->row_lanes)
      steps->lanes[k / state->row_lanes] |= 1u << lane;
  }
  for (int step = 0; step < CB_RUN_STEPS && steps->lanes[step]; step++) {
    steps->before[step] = before;
    before += __builtin_popcount(steps->lanes[step]);
  }
  steps->run = run;
}

/* Place of nonzero `k` of a row in the order of steps and lanes. */
static int64_t steps_place(const struct steps *steps, const struct cb_runs *state, int row, int k) {
  const int step = k / state->row_lanes, lane = k % state->row_lanes * CB_PANEL_ROWS + row;
  if (state->fixed_steps) return (int64_t)step * CB_PANEL_ROWS * state->row_lanes + lane;
  return steps->before[step] + __builtin_popcount(steps->lanes[step] & ((1u << lane) - 1));
}

struct destination {
  const struct cb_runs *state;
  const struct cb_slot_map *map;
  const struct cb_part *part;
  uint16_t *filled;     /* by run: nonzeros placed so far, by row for CSR, all in the first for COO */
  unsigned char *bytes; /* all coordinates; NULL: only the map is wanted */
  /* of the block's run */
  unsigned char *coordinates;
  int64_t slot; /* of the run's first value */
};

static void pack_coo(const struct cb_subblock *block, const struct destination *to, const struct cb_run *run,
                     int first_column, uint16_t *filled) {
  for (int r = 0; r < CB_PANEL_ROWS; r++) {
    int64_t nonzero = block->first[r];
    for (unsigned left = cb_subblock_row(block, r); left; left &= left - 1) {
      const int k = (*filled)++;
      if (to->bytes) {
        to->coordinates[k] = (unsigned char)(first_column + __builtin_ctz(left));
        to->coordinates[run->slots + k / 2] |= (unsigned char)(r << 4 * (k % 2));
      }
      cb_slot_set(to->map, to->slot + k, cb_part_origin(to->part, nonzero++));
    }
  }
}

static void pack_csr(const struct cb_subblock *block, const struct destination *to, const struct steps *steps,
                     int first_column, uint16_t *filled) {
  for (int r = 0; r < CB_PANEL_ROWS; r++) {
    int64_t nonzero = block->first[r];
    for (unsigned left = cb_subblock_row(block, r); left; left &= left - 1) {
      const int64_t at = steps_place(steps, to->state, r, filled[r]++);
      if (to->bytes) to->coordinates[at] = (unsigned char)(first_column + __builtin_ctz(left));
      cb_slot_set(to->map, to->slot + at, cb_part_origin(to->part, nonzero++));
    }
  }
}

/* Slot of (row, column) in a Dense block: lane l holds column l % 16 of rows 8 (l / 16) + 0 … 7, and loads
 * its eight values as vectors of 16 bytes. */
static void pack_dense(const struct cb_subblock *block, const struct destination *to, int64_t in_run) {
  const int64_t vector = dense_vector(to->state);
  for (int r = 0; r < CB_PANEL_ROWS; r++) {
    int64_t nonzero = block->first[r];
    for (unsigned left = cb_subblock_row(block, r); left; left &= left - 1) {
      const int lane = r / 8 * 16 + __builtin_ctz(left), own = r % 8;
      const int64_t slot = in_run * CB_BLOCK_SIZE + (own / vector * 32 + lane) * vector + own % vector;
      if (to->bytes && !to->state->full_dense)
        to->coordinates[in_run * CB_DENSE_PRESENCE + lane] |= (unsigned char)(1 << own);
      cb_slot_set(to->map, to->slot + slot, cb_part_origin(to->part, nonzero++));
    }
  }
}

static void pack_block(const struct cb_subblock *block, int64_t b, struct steps *steps,
                       struct destination *to) {
  const struct cb_runs *state = to->state;
  const int64_t number = state->run_of[b], value_bytes = state->value_bytes;
  const struct cb_run *run = &state->runs.at[number];
  const int64_t start = (int64_t)state->coordinates[number] * (state->intra ? value_bytes : 1);
  const int64_t in_run = (int64_t)state->place[b] - cb_runs_position(state, number);
  const int first_column = (int)in_run * CB_BLOCK_COLS;
  uint16_t *filled = to->filled + number * CB_PANEL_ROWS;
  to->coordinates = to->bytes ? to->bytes + start : NULL;
  to->slot = state->intra
                 ? (start + cb_round_up(cb_runs_coordinate_bytes(state, run), value_bytes)) / value_bytes
                 : (int64_t)state->values[number];
  if (run->format == CB_CSR && !state->fixed_steps && steps->run != number) steps_open(steps, state, number);
  if (run->format == CB_COO)
    pack_coo(block, to, run, first_column, filled);
  else if (run->format == CB_CSR)
    pack_csr(block, to, steps, first_column, filled);
  else
    pack_dense(block, to, in_run);
}

static enum cb_status cb_layout_pack(const struct cb_region *region, const struct cb_region_work *work,
                                     unsigned char *const *targets, const struct cb_slot_map *map,
                                     struct cb_diag *diag) {
  const struct cb_runs *state = work->state;
  unsigned char *bytes = NULL; /* mtx_data or coordinates */
  uint16_t *filled = cb_calloc((size_t)state->runs.count * CB_PANEL_ROWS, sizeof *filled);
  if (!filled)
    return cb_fail_memory(diag, "runs of sub-blocks", (uint64_t)state->runs.count * CB_PANEL_ROWS * 2);
  for (int i = 0; targets && i < region->arrays_count; i++)
    if (region->arrays[i].role == CB_ROLE_MIXED || region->arrays[i].role == CB_ROLE_BYTES)
      bytes = targets[i];
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t panel = 0; panel < state->panels; panel++) {
    struct cb_panel_walk walk;
    struct cb_subblock block;
    struct steps steps; /* large: filled when needed */
    steps.run = -1;
    struct destination to = {
        .state = state, .map = map, .part = &work->part, .filled = filled, .bytes = bytes};
    int64_t b = state->panel_block[panel];
    cb_panel_open(&walk, work->part.csr, panel);
    for (; cb_panel_next(&walk, state->aggregated, &block); b++) pack_block(&block, b, &steps, &to);
  }
  cb_free(filled);
  return CB_OK;
}

/* ---- what a plan will be predicted to take at least */

/* Panels that are looked at together, and what a thread block has room for, in runs of half a warp. */
enum { GROUP = 16, ROOM = 2 * CB_RUN_WARPS, RUN_BLOCKS = 16 };

/* What sampled panels come to. Instructions are those of half a warp: two such runs are a warp's. */
struct least {
  int64_t halves, sectors;
};

/* Adds a panel's sectors of x to the set. Returns how many sub-blocks it has: runs as long as can be, and rows of equal
 * length, take the fewest instructions. */
static int64_t add_panel(struct least *least, const struct cb_csr *csr, int64_t panel, int64_t per_sector,
                         struct cb_unit_set *sectors) {
  enum { PER_STEP = 16 };
  struct cb_panel_walk walk;
  struct cb_subblock block;
  int64_t blocks = 0, products = 0;
  cb_panel_open(&walk, csr, panel);
  for (; cb_panel_next(&walk, 1, &block); blocks++) {
    products += cb_smaller(block.nonzeros * CSR_INSTRUCTIONS, 2 * PER_STEP * DENSE_INSTRUCTIONS);
    for (int c = 0; c < block.width; c++) cb_unit_set_add(sectors, (uint32_t)(block.columns[c] / per_sector));
  }
  least->halves +=
      cb_divide_up(blocks, RUN_BLOCKS) * RUN_INSTRUCTIONS + blocks * STAGE_INSTRUCTIONS + products / PER_STEP;
  return blocks;
}

/* Each thread block asks for a sector once. Panels follow one another in it while there is room; one of more than 12
 * sub-blocks takes whole warps (choose_row_lanes). */
static void add_group(struct least *least, const struct cb_csr *csr, int64_t group, int64_t per_sector,
                      struct cb_unit_set *sectors) {
  enum { HALF = 12 };
  const int64_t end = cb_smaller((group + 1) * GROUP, cb_panel_count(csr->rows));
  int64_t taken = 0;
  cb_unit_set_reset(sectors);
  for (int64_t panel = group * GROUP; panel < end; panel++) {
    const int64_t blocks = add_panel(least, csr, panel, per_sector, sectors);
    taken += blocks > HALF ? 2 * cb_divide_up(blocks, RUN_BLOCKS) : 1;
    if (taken < ROOM) continue;
    least->sectors += sectors->count;
    cb_unit_set_reset(sectors);
    taken = 0;
  }
  least->sectors += sectors->count;
}

static int64_t group_nonzeros(const struct cb_csr *csr, int64_t group) {
  const int64_t first = group * GROUP * CB_PANEL_ROWS;
  return cb_csr_row(csr, cb_smaller(first + GROUP * CB_PANEL_ROWS, csr->rows)) - cb_csr_row(csr, first);
}

/* The sum over `samples` of the groups; negative: no memory. */
static struct least sum_groups(const struct cb_csr *csr, int64_t groups, int64_t samples, int64_t per_sector) {
  int64_t most = 0, halves = 0, sectors = 0;
  int failed = 0;
  for (int64_t i = 0; i < samples; i++) most = cb_larger(most, group_nonzeros(csr, i * groups / samples));
  most = cb_smaller(most, csr->cols / per_sector + 1);
#pragma omp parallel reduction(+ : halves, sectors) reduction(| : failed)
  {
    struct cb_unit_set set;
    struct least own = {0, 0};
    failed = !cb_unit_set_init(&set, most);
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < samples; i++)
      if (!failed) add_group(&own, csr, i * groups / samples, per_sector, &set);
    cb_unit_set_release(&set);
    halves += own.halves;
    sectors += own.sectors;
  }
  return failed ? (struct least){-1, -1} : (struct least){halves, sectors};
}

/* A byte beside each value; or the work of a sample of the panels, with a margin for what others may have less. */
static int64_t cb_least_ns(const struct cb_csr *csr, const struct cb_target *target, struct cb_types types) {
  enum { SAMPLES = 256, MARGIN_PERCENT = 85, SECTOR_BYTES = 32 };
  const int64_t groups = cb_divide_up(cb_panel_count(csr->rows), GROUP), samples = cb_smaller(groups, SAMPLES);
  const int64_t stream =
      cb_plan_stream_ns(csr, target, types, (int64_t)cb_type_size(types.matrix) + 1, CB_COST_CB_PERCENT);
  const struct least sum = sum_groups(csr, groups, samples, SECTOR_BYTES / (int64_t)cb_type_size(types.vector));
  if (sum.halves < 0 || !samples) return stream;
  const double all = (double)groups / (double)samples;
  const int64_t work = work_ns((int64_t)((double)sum.halves * all) / 2, (int64_t)((double)sum.sectors * all), target);
  return cb_larger(stream, work * MARGIN_PERCENT / 100);
}

const struct cb_layout cb_layout_cb = {
    .name = "cb",
    .summary = "16x16 sub-blocks in COO, CSR or Dense, columns aggregated per panel",
    .source = "CB-SpMV: a cache-friendly blocked SpMV with data aggregation and load balance",
    .plan = cb_layout_plan,
    .pack = cb_layout_pack,
    .release = cb_runs_release,
    .least_ns = cb_least_ns,
    .minds_own_rows = 1,
};
