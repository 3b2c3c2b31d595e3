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
#include "analysis/cost_figures.h"
#include "analysis/sectors.h"

#include "analysis/unit_set.h"
#include "base/integers.h"

#include <string.h>

static const char *const format_names[CB_FORMATS] = {"coo", "csr", "dense"};

/* ---- describing the region: needs the runs; adds arrays, constants, facts, sections */

static const struct cb_run *run_at(const struct cb_runs *state, int64_t u) {
  return &state->runs.at[u];
}
static uint64_t panel_of(const void *state, int64_t u) {
  return run_at(state, u)->panel;
}
static uint64_t slots_of(const void *state, int64_t u) {
  return run_at(state, u)->slots;
}

static uint64_t first_block_of(const void *user, int64_t u) {
  const struct cb_runs *state = user;
  return (uint64_t)(u < state->runs.count ? cb_runs_position(state, u) : cb_runs_positions(state));
}

static void build_first_block(struct cb_region_builder *builder, const struct cb_runs *state) {
  if (cb_runs_single(state)) {
    cb_region_section(builder, "single");
    cb_region_section(builder, "jagged_blocks");
    cb_region_size(builder, "kBlocks", state->blocks, "plan: sub-blocks, one for each run");
    return;
  }
  cb_region_computed(builder, "first_block", "a run's first sub-block; runs + 1", state->runs.count + 1,
                     first_block_of);
  if (!state->fixed_blocks) cb_region_section(builder, "jagged_blocks");
}

static uint64_t row_length(const void *user, int64_t i) {
  const struct cb_runs *state = user;
  return state->runs.at[i / CB_PANEL_ROWS].format == CB_CSR ? state->row_lengths[i] : 0;
}

/* The block at a position. Those that pad a run repeat its last one; -1: it has none. */
static int64_t block_at(const struct cb_runs *state, int64_t position) {
  if (!state->fixed_blocks) return state->order[position];
  const struct cb_run *run = &state->runs.at[position / state->fixed_blocks];
  const int64_t number = cb_smaller(position % state->fixed_blocks, (int64_t)run->count - 1);
  return number < 0 ? -1 : (int64_t)state->order[run->first + number];
}

static uint64_t column_at(const void *state, int64_t position) {
  const int64_t b = block_at(state, position);
  return b < 0 ? 0 : ((const struct cb_runs *)state)->first_column[b];
}
static uint64_t block_column_at(const void *state, int64_t position) {
  return column_at(state, position) / CB_BLOCK_COLS;
}

/* First column of the run that a block is in. */
static uint32_t run_column(const struct cb_runs *state, int64_t b) {
  return state->first_column[state->order[state->runs.at[state->run_of[b]].first]];
}
static int32_t base_of(const struct cb_runs *state, int64_t b) {
  return (int32_t)(state->run_bases ? run_column(state, b) : state->first_column[b]);
}

/* Steps of a warp: of 32 nonzeros, of a nonzero per lane, or of a sub-block. */
static int64_t warp_steps(const struct cb_runs *state, int64_t number) {
  const struct cb_run *run = &state->runs.at[number];
  if (run->format == CB_COO) return cb_divide_up(run->nonzeros, CB_RUN_LANES);
  return run->format == CB_DENSE ? run->count : cb_runs_steps(state, number);
}

/* Steps whose loads are in flight together: what a run of `format` has on average, so that one batch is
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

/* As many as leave the registers that loads in flight and their addresses want: 3 each, and some more. */
static int choose_blocks_per_sm(const struct cb_runs *state) {
  enum { OF_LOAD = 3, OTHERS = 13 };
  if (state->strided || state->format_blocks[CB_COO] || state->format_blocks[CB_DENSE]) return state->few ? 3 : 4;
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
  for (int64_t warp = 0; warp < per_block; warp++) {
    const struct cb_run *run = &state->runs.at[cb_runs_at(state, thread_block, warp)];
    for (uint32_t i = 0; i < run->count; i++) {
      const int64_t b = state->order[run->first + i];
      const uint32_t *offsets = gathers->restore ? gathers->restore + (int64_t)state->place[b] * CB_BLOCK_COLS : NULL;
      if (i % (uint32_t)state->row_lanes == 0) cb_sector_load(sink);
      for (int c = 0; c < CB_BLOCK_COLS; c++) {
        const int64_t column = offsets ? base_of(state, b) + (int64_t)offsets[c] : (int64_t)state->first_column[b] + c;
        if (column < gathers->cols) cb_sector_ask(sink, column);
      }
    }
  }
}

static void predict_sectors(struct cb_region_builder *builder, const struct cb_runs *state, const uint32_t *restore) {
  struct cb_diag diag = {0};
  const struct gathers gathers = {state, restore, builder->work.part.csr->cols};
  builder->region.blocks = state->runs.count / cb_runs_per_block(state);
  builder->region.blocks_per_sm = cb_region_blocks_for(builder, choose_blocks_per_sm(state));
  if (cb_sectors_predict(builder, &gathers, visit_sectors, &diag)) builder->failed = 1;
}

struct restoring {
  const struct cb_runs *state;
  int32_t cols;
  uint32_t *restore;
};

static void restore_block(void *user, int64_t b, const struct cb_subblock *block) {
  const struct restoring *to = user;
  uint32_t *offsets = to->restore + (int64_t)to->state->place[b] * CB_BLOCK_COLS;
  for (int c = 0; c < CB_BLOCK_COLS; c++) { /* where columns were not aggregated, some may lie beyond the right edge */
    const int32_t column = block->columns[c] < to->cols ? block->columns[c] : to->cols - 1;
    offsets[c] = (uint32_t)column - to->state->first_column[b];
  }
}

/* Sub-blocks that pad a run repeat its last column. */
static void pad_run(const struct cb_runs *state, int64_t u, uint32_t *restore) {
  const int64_t begin = cb_runs_position(state, u) * CB_BLOCK_COLS, end = begin + state->fixed_blocks * CB_BLOCK_COLS;
  const int64_t filled = begin + state->runs.at[u].count * CB_BLOCK_COLS;
  for (int64_t i = filled; i < end && filled > begin; i++) restore[i] = restore[filled - 1];
}

/* Offsets from each block's first column; 16 per position. NULL: no memory. */
static uint32_t *restore_columns(struct cb_runs *state, const struct cb_csr *csr) {
  const int64_t count = cb_runs_positions(state) * CB_BLOCK_COLS;
  struct restoring to = {state, (int32_t)csr->cols, cb_arena_alloc(&state->arena, (size_t)count, sizeof *to.restore)};
  if (!to.restore) return NULL;
  cb_runs_visit_blocks(state, csr, restore_block, &to);
  for (int64_t u = 0; state->fixed_blocks && u < state->runs.count; u++) pad_run(state, u, to.restore);
  return to.restore;
}

/* ---- column lists */

/* By position, whether a run starts there. NULL: no memory. */
static unsigned char *mark_runs(struct cb_runs *state) {
  unsigned char *starts = cb_arena_alloc(&state->arena, (size_t)cb_runs_positions(state) + 1, 1);
  for (int64_t u = 0; starts && u < state->runs.count; u++) starts[cb_runs_position(state, u)] = 1;
  return starts;
}

static int64_t bytes_of(uint64_t largest) {
  return (int64_t)cb_type_size(cb_type_for(largest));
}

static uint32_t largest_offset(const uint32_t *offsets, int64_t lists) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < lists; i++) { /* the last is a list's largest */
    const uint32_t last = offsets[i * CB_BLOCK_COLS + CB_BLOCK_COLS - 1];
    largest = last > largest ? last : largest;
  }
  return largest;
}

/* Whether lists save a quarter of what the columns take otherwise. */
static int lists_pay(const struct cb_runs *state, const struct cb_lists *lists, const uint32_t *restore, int64_t cols) {
  const int64_t positions = cb_runs_positions(state), base = bytes_of((uint64_t)cols);
  const int64_t without = positions * CB_BLOCK_COLS * bytes_of(largest_offset(restore, positions));
  const int64_t table = lists->count * CB_BLOCK_COLS * bytes_of(largest_offset(lists->table, lists->count));
  const int64_t stored =
      lists->stored_count * CB_BLOCK_COLS * bytes_of(largest_offset(lists->stored, lists->stored_count));
  const int64_t starts = lists->stored_count ? state->runs.count * bytes_of((uint64_t)lists->stored_count) : 0;
  return 4 * (positions * (1 + base) + table + stored + starts) <= 3 * (without + state->runs.count * base);
}

/* Stored lists before a run. One without sub-blocks looks at the sub-block before it, and so has what is before that
 * one's run. */
static void build_first_stored(struct cb_region_builder *builder, struct cb_runs *state) {
  const int64_t runs = state->runs.count, positions = cb_runs_positions(state);
  uint32_t *first = cb_arena_alloc(&state->arena, (size_t)runs, sizeof *first), stored = 0;
  int64_t position = 0;
  for (int64_t u = 0; first && u < runs; u++) {
    const int64_t end = u + 1 < runs ? cb_runs_position(state, u + 1) : positions;
    first[u] = position == end && u ? first[u - 1] : stored;
    for (; position < end; position++) stored += state->lists.number[position] >= state->lists.count;
  }
  cb_region_list(builder, "first_stored", "lists that are stored for runs before", runs, first);
}

static void build_table(struct cb_region_builder *builder, const struct cb_lists *lists) {
  struct cb_text text = {0};
  for (int64_t i = 0; i < lists->count * CB_BLOCK_COLS; i++)
    cb_text_add(&text, "%s%u%s", i % CB_BLOCK_COLS ? " " : "\n    ", (unsigned)lists->table[i],
                i + 1 == lists->count * CB_BLOCK_COLS ? "" : ",");
  builder->failed |= text.failed;
  if (!text.failed) cb_region_placeholder(builder, "column_lists", cb_text_string(&text));
  cb_text_release(&text);
  cb_region_placeholder(builder, "list_type", cb_type_c_name(cb_type_for(largest_offset(lists->table, lists->count))));
  cb_region_size(builder, "kLists", lists->count, "plan: column lists in the text");
}

/* Sub-blocks whose list is in the text. */
static int64_t covered_blocks(const struct cb_runs *state) {
  int64_t covered = 0;
  for (int64_t b = 0; b < state->blocks; b++) covered += state->lists.number[state->place[b]] < state->lists.count;
  return covered;
}

static void build_lists(struct cb_region_builder *builder, struct cb_runs *state) {
  const struct cb_lists *lists = &state->lists;
  cb_region_section(builder, "lists");
  build_table(builder, lists);
  cb_region_list(builder, "blk_list", "column list of a sub-block", cb_runs_positions(state), lists->number);
  cb_region_fact(builder, "lists", "%d %lld", lists->count, (long long)covered_blocks(state));
  if (!lists->stored_count) return;
  cb_region_section(builder, "stored_lists");
  build_first_stored(builder, state);
  cb_region_list(builder, "restore_cols",
                 "column lists that are not in the text: original columns, from a sub-block's first; 16 each",
                 lists->stored_count * CB_BLOCK_COLS, lists->stored);
}

/* Finds lists and says whether they are to be used. */
static int choose_lists(struct cb_region_builder *builder, struct cb_runs *state, const uint32_t *restore) {
  struct cb_diag diag = {0};
  struct cb_lists lists;
  const int64_t wanted = builder->settings[CB_SPMV_BAKE_LISTS];
  if (wanted == CB_OFF) return 0;
  const unsigned char *starts = mark_runs(state);
  builder->failed |= !starts || cb_lists_find(&lists, &state->arena, restore, cb_runs_positions(state), starts, &diag);
  if (builder->failed || !lists.count) return 0;
  if (wanted == CB_AUTO && !lists_pay(state, &lists, restore, builder->work.part.csr->cols)) return 0;
  state->lists = lists;
  return 1;
}

/* A run's first column serves all its blocks when offsets from it need no wider type: then they become those. */
static void choose_bases(struct cb_runs *state, uint32_t *restore) {
  const int64_t positions = cb_runs_positions(state);
  uint32_t of_block = 0, of_run = 0;
  for (int64_t position = 0; position < positions; position++) {
    const int64_t b = block_at(state, position);
    if (b < 0) continue;
    const uint32_t last = restore[position * CB_BLOCK_COLS + CB_BLOCK_COLS - 1];
    const uint32_t from_run = last + state->first_column[b] - run_column(state, b);
    of_block = last > of_block ? last : of_block;
    of_run = from_run > of_run ? from_run : of_run;
  }
  state->run_bases = state->run_blocks != 1 && cb_type_for(of_run) == cb_type_for(of_block);
  for (int64_t i = 0; state->run_bases && i < positions * CB_BLOCK_COLS; i++) {
    const int64_t b = block_at(state, i / CB_BLOCK_COLS);
    if (b >= 0) restore[i] += state->first_column[b] - run_column(state, b);
  }
}

static uint64_t run_column_at(const void *user, int64_t u) {
  const struct cb_runs *state = user;
  const struct cb_run *run = &state->runs.at[u];
  return run->count ? state->first_column[state->order[run->first]] : 0;
}

static void build_columns(struct cb_region_builder *builder, struct cb_runs *state) {
  const struct cb_csr *csr = builder->work.part.csr;
  const int64_t runs = state->runs.count, positions = cb_runs_positions(state);
  if (!state->aggregated) {
    predict_sectors(builder, state, NULL);
    cb_region_computed(builder, "blk_col_idx", "column of a sub-block, in units of 16", positions, block_column_at);
    if (csr->cols % CB_BLOCK_COLS == 0) cb_region_section(builder, "whole");
    return;
  }
  cb_region_section(builder, "aggregated");
  uint32_t *restore = restore_columns(state, csr);
  builder->failed |= !restore;
  if (builder->failed) return;
  const int lists = choose_lists(builder, state, restore);
  if (builder->failed) return;
  if (!lists) choose_bases(state, restore);
  if (state->run_bases) {
    cb_region_section(builder, "run_bases");
    cb_region_computed(builder, "run_col_idx", "first column of a run", runs, run_column_at);
  } else {
    cb_region_computed(builder, "blk_col_idx", "first column of a sub-block", positions, column_at);
  }
  predict_sectors(builder, state, restore);
  if (lists)
    build_lists(builder, state);
  else
    cb_region_list(builder, "restore_cols",
                   state->run_bases ? "original columns of a sub-block, from its run's first; 16 each"
                                    : "original columns of a sub-block, from its first; 16 each",
                   positions * CB_BLOCK_COLS, restore);
}

/* Where each run is one sub-block its arrays have the paper's names. Templates ask for `placeholder`. */
static const char *name_array(struct cb_region_builder *builder, const struct cb_runs *state, const char *placeholder,
                              const char *of_run, const char *of_block) {
  const char *name = state->run_blocks == 1 ? of_block : of_run;
  cb_region_placeholder(builder, placeholder, name);
  return name;
}

static void build_data(struct cb_region_builder *builder, const struct cb_runs *state) {
  const int64_t runs = state->runs.count;
  if (state->intra) {
    cb_region_list(builder, name_array(builder, state, "pointers", "vp_per_run", "vp_per_blk"),
                   "virtual pointer: a run's place in mtx_data, in values", runs, state->coordinates);
    cb_region_mixed(builder, "mtx_data", "per run: coordinates, padding, values",
                    cb_round_up(state->coordinates_end, state->value_bytes) + CB_RUN_END * state->value_bytes);
    cb_region_section(builder, "together");
    return;
  }
  const int any_data = !state->equal || state->coordinates_end > 0;
  if (any_data)
    cb_region_list(builder, "first_coordinate", "a run's place in coordinates, in bytes", runs, state->coordinates);
  if (!state->equal) cb_region_list(builder, "first_value", "a run's place in values", runs, state->values);
  if (any_data)
    cb_region_bytes(builder, "coordinates", "per run: places of its nonzeros", state->coordinates_end + CB_RUN_END);
  cb_region_values(builder, "values", "per run: values", state->values_end + CB_RUN_END);
  if (any_data) cb_region_section(builder, state->equal ? "coordinates" : "apart");
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

/* Room for x of the widest run, in whole batches of sub-blocks whose loads are in flight together. */
static void build_stage(struct cb_region_builder *builder, const struct cb_runs *state) {
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
  cb_region_structure(builder, "kStage", columns, "plan: columns of the widest run");
  cb_region_structure(builder, "kStaged", staged, "plan: the same for all runs of a thread block");
  cb_region_structure(builder, "kStageBatch", batch, "plan: sub-blocks whose x is loaded together");
  cb_region_section(builder, "staged");
  if (state->fixed_blocks) cb_region_section(builder, "fixed_blocks");
  builder->region.static_shared += staged * (int64_t)cb_type_size(builder->sum_type);
  if (!state->fixed_blocks && rounds > batch) cb_region_section(builder, "stage_more");
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

static void build_fixed(struct cb_region_builder *builder, const struct cb_runs *state) {
  const int64_t steps = state->fixed_steps, batch = choose_fixed_batch(steps);
  cb_region_size(builder, "kSteps", steps, "plan: steps of a run");
  cb_region_structure(builder, "kFirst", (steps - 1) % batch + 1,
                      "plan: steps whose loads are in flight while x is gathered");
  if (steps > batch)
    cb_region_structure(builder, "kBatch", batch, "plan: later steps whose loads are in flight together");
  cb_region_section(builder, "csr_fixed");
  if (steps > batch) cb_region_section(builder, "csr_more");
}

static void build_csr(struct cb_region_builder *builder, const struct cb_runs *state) {
  const int64_t batch = choose_batch(state, CB_CSR);
  const int64_t longest = cb_divide_up(longest_row(state), state->row_lanes);
  cb_region_computed(builder, "row_length", "nonzeros of a run's rows; 16 each", state->runs.count * CB_PANEL_ROWS,
                     row_length);
  if (state->fixed_steps) {
    build_fixed(builder, state);
    return;
  }
  cb_region_structure(builder, "kBatch", batch, "plan: steps whose loads are in flight together");
  cb_region_section(builder, "csr_jagged");
  if (longest > batch) cb_region_section(builder, "csr_more");
}

static void build_coo(struct cb_region_builder *builder, const struct cb_runs *state) {
  cb_region_structure(builder, "kCooBatch", choose_batch(state, CB_COO), "plan: the same of COO runs");
  cb_region_section(builder, "coo");
  if (state->run_blocks == 1) cb_region_section(builder, "nibbles");
  builder->region.static_shared +=
      CB_RUN_WARPS * CB_PANEL_ROWS * CB_RUN_LANES * (int64_t)cb_type_size(builder->sum_type);
}

static void build_dense(struct cb_region_builder *builder, const struct cb_runs *state) {
  if (!state->equal) cb_region_structure(builder, "kVector", dense_vector(state), "plan: values that one load reads");
  cb_region_section(builder, "dense");
  if (state->full_dense) cb_region_section(builder, "full");
  if (state->equal) cb_region_section(builder, "equal");
}

/* The ranges, as lists of numbers: first thread blocks, and behind which warps COO and CSR end. */
static void build_ranges(struct cb_region_builder *builder, const struct cb_runs *state) {
  struct cb_text first = {0}, coo = {0}, csr = {0};
  for (int i = 0; i < state->ranges_count; i++) {
    const char *separator = i ? ", " : "";
    cb_text_add(&first, "%s%lld", separator, (long long)state->ranges[i].first);
    cb_text_add(&coo, "%s%d", separator, state->ranges[i].coo);
    cb_text_add(&csr, "%s%d", separator, state->ranges[i].csr);
  }
  builder->failed |= first.failed || coo.failed || csr.failed;
  if (!builder->failed) {
    cb_region_structure(builder, "kRanges", state->ranges_count, "plan: ranges of thread blocks with the same formats");
    cb_region_placeholder(builder, "range_first", cb_text_string(&first));
    if (state->format_blocks[CB_COO]) cb_region_placeholder(builder, "range_coo", cb_text_string(&coo));
    if (state->format_blocks[CB_CSR] && state->format_blocks[CB_DENSE])
      cb_region_placeholder(builder, "range_csr", cb_text_string(&csr));
  }
  cb_text_release(&first);
  cb_text_release(&coo);
  cb_text_release(&csr);
}

/* What the plan counted: in the text as constants, beside what must hold of them. */
static void build_counts(struct cb_region_builder *builder, const struct cb_runs *state) {
  static const char *const blocks[CB_FORMATS][2] = {{"kCooBlocks", "plan: COO sub-blocks"},
                                                    {"kCsrBlocks", "plan: CSR sub-blocks"},
                                                    {"kDenseBlocks", "plan: Dense sub-blocks"}};
  static const char *const runs[CB_FORMATS][2] = {
      {"kCooRuns", "plan: runs of these"}, {"kCsrRuns", "plan: runs of these"}, {"kDenseRuns", "plan: runs of these"}};
  cb_region_size(builder, "kPanels", state->panels, "plan: panels of 16 rows");
  for (enum cb_block_format format = CB_COO; format < CB_FORMATS; format++) {
    if (!state->format_blocks[format]) continue;
    cb_region_size(builder, blocks[format][0], state->format_blocks[format], blocks[format][1]);
    cb_region_size(builder, runs[format][0], state->format_runs[format], runs[format][1]);
  }
  if (!state->strided) return;
  cb_region_section(builder, "strided");
  cb_region_size(builder, "kStride", state->runs.count / cb_runs_per_block(state), "plan: thread blocks");
}

static void build_formats(struct cb_region_builder *builder, const struct cb_runs *state) {
  static void (*const build_format[CB_FORMATS])(struct cb_region_builder *,
                                                const struct cb_runs *) = {build_coo, build_csr, build_dense};
  if (state->formats == 1)
    cb_region_section(builder, "one_format");
  else if (!state->strided)
    build_ranges(builder, state);
  if (state->format_blocks[CB_COO] || state->format_blocks[CB_CSR]) build_stage(builder, state);
  if (state->fixed_steps) {
    build_csr(builder, state);
    return;
  }
  if (state->format_blocks[CB_COO] || state->format_blocks[CB_CSR])
    cb_region_computed(builder, name_array(builder, state, "counts", "nnz_per_run", "nnz_per_blk"), "nonzeros of a run",
                       state->runs.count, slots_of);
  for (enum cb_block_format format = CB_COO; format < CB_FORMATS; format++)
    if (state->format_blocks[format]) build_format[format](builder, state);
}

/* Whether a panel's sum in a thread block starts at a run: at the first of the panel's runs there when these
 * are added up, else at each. Padding has none. */
static int is_share(const struct cb_runs *state, int64_t number) {
  const struct cb_run *run = &state->runs.at[number];
  if (run->panel >= state->panels) return 0;
  for (int64_t before = number % cb_runs_per_block(state); state->together && before > 0; before--)
    if (run[-before].panel == run->panel) return 0;
  return 1;
}

/* Shares of panels; those of a panel that has several are a group of carry slots. */
struct shares {
  uint32_t *of_panel, *group_of; /* by panel */
  uint32_t *first;               /* by group: its first slot; groups + 1 */
  int64_t slots, groups;
};

static void group_shares(const struct cb_runs *state, struct shares *shares) {
  for (int64_t u = 0; u < state->runs.count; u++)
    if (is_share(state, u)) shares->of_panel[state->runs.at[u].panel]++;
  for (int64_t panel = 0; panel < state->panels; panel++) {
    if (shares->of_panel[panel] < 2) continue;
    shares->group_of[panel] = (uint32_t)shares->groups;
    shares->first[shares->groups++] = (uint32_t)shares->slots;
    shares->slots += shares->of_panel[panel];
  }
  shares->first[shares->groups] = (uint32_t)shares->slots;
}

/* Slots from 1, by run, and the group of each. */
static void number_shares(const struct cb_runs *state, struct shares *shares, uint32_t *slot_of, uint32_t *slot_group) {
  uint32_t *next = shares->of_panel; /* from here on: the next free slot */
  for (int64_t panel = 0; panel < state->panels; panel++)
    next[panel] = next[panel] < 2 ? UINT32_MAX : shares->first[shares->group_of[panel]];
  for (int64_t u = 0; u < state->runs.count; u++) {
    const uint32_t panel = state->runs.at[u].panel;
    if (!is_share(state, u) || next[panel] == UINT32_MAX) continue;
    slot_group[next[panel]] = shares->group_of[panel];
    slot_of[u] = ++next[panel];
  }
}

static void build_slots(struct cb_region_builder *builder, struct cb_runs *state, struct shares *shares) {
  const int64_t runs = state->runs.count, groups = shares->groups;
  uint32_t *slot_of = cb_arena_alloc(&state->arena, (size_t)runs, sizeof *slot_of);
  uint32_t *slot_group = cb_arena_alloc(&state->arena, (size_t)shares->slots, sizeof *slot_group);
  const uint32_t *first = cb_arena_copy(&state->arena, shares->first, (size_t)groups + 1, sizeof *first);
  if (slot_of && slot_group) number_shares(state, shares, slot_of, slot_group);
  cb_region_list(builder, "carry_slot", "a run's carry slot, from 1; 0: none", runs, slot_of);
  cb_region_list(builder, "carry_group", "a slot's group: the slots of one panel", shares->slots, slot_group);
  cb_region_list(builder, "carry_first", "a group's first slot; groups + 1", groups + 1, first);
  builder->region.carry_slots = shares->slots;
  builder->region.carry_width = CB_PANEL_ROWS;
  builder->region.carry_counters = groups;
}

/* Where thread blocks share panels, each leaves its sums in a carry slot. With atomics nothing of this is needed.
 * Returns whether any panel is shared. */
static int build_carries(struct cb_region_builder *builder, struct cb_runs *state) {
  const size_t panels = (size_t)state->panels;
  struct cb_arena scratch = {0};
  struct shares shares = {.of_panel = cb_arena_alloc(&scratch, panels, sizeof(uint32_t)),
                          .group_of = cb_arena_alloc(&scratch, panels, sizeof(uint32_t)),
                          .first = cb_arena_alloc(&scratch, panels + 1, sizeof(uint32_t))};
  builder->failed |= scratch.failed;
  if (!scratch.failed) group_shares(state, &shares);
  if (shares.slots && builder->options->atomics != CB_ON) build_slots(builder, state, &shares);
  cb_arena_release(&scratch);
  return shares.slots > 0;
}

static uint64_t runs_together(const void *user, int64_t u) {
  const struct cb_runs *state = user;
  return (uint64_t)(is_share(state, u) ? cb_runs_of_panel(&state->runs, u, CB_RUN_WARPS - u % CB_RUN_WARPS) : 0);
}

static uint64_t warps_together(const void *user, int64_t u) {
  const struct cb_runs *state = user;
  const struct cb_run *runs = &state->runs.at[u - u % CB_RUN_WARPS];
  uint64_t warps = 0;
  for (int warp = 0; warp < CB_RUN_WARPS && is_share(state, u); warp++)
    if (runs[warp].panel == state->runs.at[u].panel) warps |= UINT64_C(1) << warp;
  return warps;
}

static void build_together(struct cb_region_builder *builder, const struct cb_runs *state) {
  if (!state->together) return;
  if (state->formats > 1)
    cb_region_computed(builder, "warps_together", "warps with runs of a panel, as bits, at the first of them; else 0",
                       state->runs.count, warps_together);
  else
    cb_region_computed(builder, "runs_together", "runs of a panel in a thread block, at the first of them; else 0",
                       state->runs.count, runs_together);
  cb_region_section(builder, "add_runs");
  if (state->formats > 1) cb_region_section(builder, "add_warps");
  builder->region.static_shared += CB_RUN_WARPS * CB_PANEL_ROWS * (int64_t)cb_type_size(builder->sum_type);
}

/* The last lines: which lanes have a row to write. */
static void build_finish(struct cb_region_builder *builder, const struct cb_runs *state, int guarded) {
  const int halves = state->row_lanes == 2, all = !halves && !guarded && !builder->own_rows;
  if (state->blocks && halves) cb_region_section(builder, "halves");
  if (!halves) cb_region_section(builder, "half_runs");
  if (builder->own_rows) cb_region_own_rows(builder);
  if (builder->region.carry_slots) cb_region_section(builder, "carry");
  if (all) cb_region_section(builder, "filled");
  if (guarded || builder->own_rows) cb_region_section(builder, "guarded");
}

static void build_runs(struct cb_region_builder *builder, struct cb_runs *state) {
  const struct cb_csr *csr = builder->work.part.csr;
  build_counts(builder, state);
  cb_region_structure(builder, "kRowLanes", state->row_lanes, "plan: lanes that share a row");
  cb_region_computed(builder, name_array(builder, state, "panels", "run_panel", "blk_row_idx"), "panel of a run",
                     state->runs.count, panel_of);
  build_together(builder, state);
  const int shared = build_carries(builder, state);
  if (shared && builder->options->atomics == CB_ON) builder->region.commit = CB_COMMIT_ATOMIC;
  int padded = 0; /* where runs are added up, padding is gone by then */
  for (int64_t u = 0; u < state->runs.count && !state->together; u++)
    padded |= state->runs.at[u].panel >= state->panels;
  build_finish(builder, state, padded || csr->rows % CB_PANEL_ROWS);
  builder->region.blocks = state->runs.count / cb_runs_per_block(state);
}

static void build_facts(struct cb_region_builder *builder, const struct cb_runs *state) {
  cb_region_fact(builder, "panels", "%lld", (long long)state->panels);
  for (enum cb_block_format format = CB_COO; format < CB_FORMATS; format++)
    if (state->format_blocks[format])
      cb_region_fact(builder, format_names[format], "%lld", (long long)state->format_blocks[format]);
  cb_region_fact(builder, "aggregated", "%s", state->aggregated ? "yes" : "no");
  if (!state->intra && !state->equal) cb_region_fact(builder, "intra", "no");
  if (state->strided) cb_region_fact(builder, "balance", "heap");
  if (state->ranges_count) cb_region_fact(builder, "ranges", "%d", state->ranges_count);
  cb_region_fact(builder, "runs", "%lld", (long long)state->runs.count);
  if (state->row_lanes == 1) cb_region_fact(builder, "halves", "yes");
  if (state->fixed_steps)
    cb_region_fact(builder, "shape", "%lld %lld", (long long)state->fixed_blocks, (long long)state->fixed_steps);
  if (builder->region.carry_slots)
    cb_region_fact(builder, "carry", "%lld %lld", (long long)builder->region.carry_counters,
                   (long long)builder->region.carry_slots);
}

/* Instructions of a warp for a run, counted in the generated code. */
enum {
  RUN_INSTRUCTIONS = 60,
  STAGE_INSTRUCTIONS = 11,
  CSR_INSTRUCTIONS = 17,
  COO_INSTRUCTIONS = 22,
  COO_SUM_INSTRUCTIONS = 80,
  RANGE_INSTRUCTIONS = 3, /* to compare with a range of thread blocks */
  DENSE_INSTRUCTIONS = 60
};

static int64_t instructions_of(const struct cb_runs *state, int64_t number) {
  static const int64_t step[CB_FORMATS] = {COO_INSTRUCTIONS, CSR_INSTRUCTIONS, DENSE_INSTRUCTIONS};
  const struct cb_run *run = &state->runs.at[number];
  const int64_t rounds = run->format == CB_DENSE ? 0 : cb_divide_up(run->count, state->row_lanes);
  const int64_t warp = RUN_INSTRUCTIONS + state->ranges_count * RANGE_INSTRUCTIONS + rounds * STAGE_INSTRUCTIONS +
                       warp_steps(state, number) * step[run->format] +
                       (run->format == CB_COO ? COO_SUM_INSTRUCTIONS : 0);
  return warp * state->row_lanes / 2;
}

/* A multiprocessor issues about 2.5 instructions in a cycle of 0.6 ns when warps wait for memory. Gathers wait for
 * columns, and blocks for gathers: on graphs that takes half as long again, as measured. */
static int64_t work_ns(int64_t instructions, int64_t sectors, const struct cb_target *target) {
  const int64_t issued = instructions / target->multiprocessors * CB_COST_INSTRUCTION_PS / 1000;
  return issued + cb_plan_gather_ns(sectors, target) * 3 / 2;
}

/* The first loads of a run depend on one more than the later ones do. */
static void predict(struct cb_region_builder *builder, const struct cb_runs *state) {
  enum { BATCH = 8 };
  int64_t instructions = 0, longest = 0;
  for (int64_t u = 0; u < state->runs.count; u++) {
    const int64_t steps = warp_steps(state, u) * (state->runs.at[u].format == CB_DENSE ? BATCH / 2 : 1);
    instructions += instructions_of(state, u);
    longest = cb_larger(longest, steps);
  }
  builder->region.cost.work_ns = work_ns(instructions, builder->region.cost.sectors, builder->target);
  builder->region.further_ns = builder->region.cost.work_ns / 2; /* places are looked up once; not measured */
  builder->region.cost.chain_ns = CB_COST_CB_FIRST_NS + (state->lists.count ? CB_COST_CB_LIST_NS : 0) +
                                  cb_divide_up(longest, BATCH) * CB_COST_CB_BATCH_NS;
  builder->region.cost.tail_ns = CB_COST_CB_STAGED_NS + (state->format_blocks[CB_COO] ? CB_COST_CB_COO_NS : 0) +
                                 (state->together ? CB_COST_CB_TOGETHER_NS : 0) +
                                 (builder->region.carry_slots ? CB_COST_CARRY_NS : 0);
  builder->region.cost.stream_percent = CB_COST_CB_PERCENT;
}

static void build_region(struct cb_region_builder *builder, struct cb_runs *state) {
  if (state->blocks) {
    cb_region_section(builder, "blocks");
    build_columns(builder, state);
    build_data(builder, state);
    build_first_block(builder, state);
    build_formats(builder, state);
  }
  build_runs(builder, state);
  /* Lanes work together, so a thread has all vectors of a pass. COO runs leave no shared memory for a second one. */
  builder->region.takes_vectors = 2 * builder->region.static_shared <= CB_STATIC_SHARED;
  builder->region.thread_rows = state->format_blocks[CB_DENSE] ? CB_PANEL_ROWS / 2 : 0;
  builder->region.blocks_per_sm = cb_region_blocks_for(builder, choose_blocks_per_sm(state));
  build_facts(builder, state);
  predict(builder, state);
}

/* Dense blocks with absent entries multiply the zeros that are stored there, unless all values are equal: then nothing
 * is stored, and the presence bits tell. They do with any other semiring than plus-times, too. */
static void size_values(struct cb_runs *state, struct cb_region_builder *builder) {
  const int absent = state->format_blocks[CB_DENSE] && !state->full_dense;
  if (absent && builder->value_bytes && cb_region_needs_presence(builder)) cb_region_zero_slots(builder);
  state->equal = !builder->value_bytes;
  state->value_bytes = state->equal ? 1 : builder->value_bytes;
  if (state->equal || builder->value_type == CB_SPLIT) state->intra = 0; /* those have two places each */
  state->code_after = builder->value_storage == CB_VALUES_CODED;
}

static enum cb_status cb_layout_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  const struct cb_csr *csr = builder->work.part.csr;
  const int64_t *settings = builder->settings;
  enum cb_status s = cb_region_state(builder, sizeof(struct cb_runs), diag);
  if (!s) s = cb_check_panels(csr, diag);
  if (s) return s;
  struct cb_runs *state = builder->work.state;
  *state = (struct cb_runs){.panels = cb_panel_count(csr->rows),
                            .intra = settings[CB_SPMV_INTRA] != CB_OFF,
                            .run_blocks = (int)settings[CB_SPMV_RUN_BLOCKS],
                            .th1 = (int)settings[CB_SPMV_TH1],
                            .th2 = (int)settings[CB_SPMV_TH2],
                            .full_dense = 1};
  builder->work.units = state->panels;
  s = cb_runs_cut(state, builder, diag);
  if (!s) size_values(state, builder);
  if (!s) s = cb_runs_place(state, csr, builder->target, diag);
  if (!s) build_region(builder, state);
  return s;
}

/* ---- the visit */

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

/* A panel's blocks, met in order. Those of one format fill its runs one after the other, so one of each is open. */
struct cursor {
  const struct cb_runs *state;
  const struct cb_walk *walk;
  unsigned char *bytes;                       /* all coordinates; NULL: only the map is wanted */
  uint16_t filled[CB_FORMATS][CB_PANEL_ROWS]; /* nonzeros of the open runs so far: by row; of COO all in the first */
  struct steps steps;
  /* of the block's run */
  unsigned char *coordinates;
  int64_t slot; /* of the run's first value */
};

/* Slots of a nonzero, counted from its run's first; each writes the nonzero's coordinates, too. `column` is within the
 * run. */
static int64_t place_coo(struct cursor *at, const struct cb_run *run, int row, int column) {
  const int k = at->filled[CB_COO][0]++;
  if (at->bytes && at->state->run_blocks == 1) {
    at->coordinates[k] = (unsigned char)(row << 4 | column);
  } else if (at->bytes) {
    at->coordinates[k] = (unsigned char)column;
    at->coordinates[run->slots + k / 2] |= (unsigned char)(row << 4 * (k % 2));
  }
  return k;
}

static int64_t place_csr(struct cursor *at, const struct cb_run *run, int row, int column) {
  const int64_t place = steps_place(&at->steps, at->state, row, at->filled[CB_CSR][row]++);
  (void)run;
  if (at->bytes) at->coordinates[place] = (unsigned char)column;
  return place;
}

/* Lane l holds column l % 16 of rows 8 (l / 16) + 0 … 7, and loads its eight values as vectors of 16 bytes. */
static int64_t place_dense(struct cursor *at, const struct cb_run *run, int row, int column) {
  const int64_t vector = dense_vector(at->state), in_run = column / CB_BLOCK_COLS;
  const int lane = row / 8 * 16 + column % CB_BLOCK_COLS, own = row % 8;
  (void)run;
  if (at->bytes && !at->state->full_dense)
    at->coordinates[in_run * CB_DENSE_PRESENCE + lane] |= (unsigned char)(1 << own);
  return in_run * CB_BLOCK_SIZE + (own / vector * 32 + lane) * vector + own % vector;
}

/* Where a run's coordinates and values begin. */
static void find_run(struct cursor *at, int64_t number) {
  const struct cb_runs *state = at->state;
  const int64_t start = (int64_t)state->coordinates[number] * (state->intra ? state->value_bytes : 1);
  at->coordinates = at->bytes ? at->bytes + start : NULL;
  at->slot = cb_runs_first_slot(state, number);
}

static void visit_block(const struct cb_subblock *block, int64_t b, struct cursor *at) {
  static int64_t (*const place[CB_FORMATS])(struct cursor *, const struct cb_run *, int row,
                                            int column) = {place_coo, place_csr, place_dense};
  const struct cb_runs *state = at->state;
  const int64_t number = state->run_of[b];
  const struct cb_run *run = &state->runs.at[number];
  const int in_run = (int)((int64_t)state->place[b] - cb_runs_position(state, number));
  find_run(at, number);
  if (!in_run) memset(at->filled[run->format], 0, sizeof at->filled[run->format]);
  if (run->format == CB_CSR && !state->fixed_steps && at->steps.run != number) steps_open(&at->steps, state, number);
  for (int row = 0; row < CB_PANEL_ROWS; row++) {
    int64_t nonzero = block->first[row];
    for (unsigned left = cb_subblock_row(block, row); left; left &= left - 1) {
      const int column = in_run * CB_BLOCK_COLS + __builtin_ctz(left);
      cb_emit_nonzero(at->walk, at->slot + place[run->format](at, run, row, column), nonzero++);
    }
  }
}

static int cb_layout_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *to) {
  const struct cb_runs *state = user;
  struct cursor at;
  at.state = state;
  at.walk = to;
  at.bytes = cb_walk_bytes(to, state->intra ? "mtx_data" : "coordinates");
  at.steps.run = -1;
  for (int64_t panel = first; panel < end; panel++) {
    struct cb_panel_walk walk;
    struct cb_subblock block;
    int64_t b = state->panel_block[panel];
    cb_panel_open(&walk, to->part->csr, panel);
    for (; cb_panel_next(&walk, cb_runs_aggregates(state, panel), &block); b++) visit_block(&block, b, &at);
  }
  return 1;
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

/* The work of a sample of the panels, with a margin for what others may have less. */
static int64_t sampled_ns(const struct cb_csr *csr, const struct cb_target *target, struct cb_types types) {
  enum { SAMPLES = 256, MARGIN_PERCENT = 85, SECTOR_BYTES = 32 };
  const int64_t groups = cb_divide_up(cb_panel_count(csr->rows), GROUP), samples = cb_smaller(groups, SAMPLES);
  const struct least sum = sum_groups(csr, groups, samples, SECTOR_BYTES / (int64_t)cb_type_size(types.vector));
  if (sum.halves < 0 || !samples) return 0;
  const double all = (double)groups / (double)samples;
  const int64_t work = work_ns((int64_t)((double)sum.halves * all) / 2, (int64_t)((double)sum.sectors * all), target);
  return work * MARGIN_PERCENT / 100;
}

/* ---- for reports: nonzeros by thread block */

static void count_loads(const void *user, int64_t *nonzeros) {
  const struct cb_runs *state = user;
  const int64_t per_block = cb_runs_per_block(state);
  for (int64_t i = 0; i < state->runs.count; i++)
    nonzeros[i / per_block] += state->runs.at[cb_runs_at(state, i / per_block, i % per_block)].nonzeros;
}

/* Without balancing a thread block has the next eight sub-blocks, a warp for each, as the paper counts it. */
static int64_t count_unbalanced(const void *user, int64_t *nonzeros) {
  const struct cb_runs *state = user;
  for (int64_t b = 0; b < state->blocks && nonzeros; b++) nonzeros[b / CB_RUN_WARPS] += state->nonzeros[b];
  return cb_divide_up(state->blocks, CB_RUN_WARPS);
}

/* For reports. */
static int64_t block_of(const void *user, struct cb_met met) {
  const struct cb_runs *state = user;
  const int64_t per_block = cb_runs_per_block(state), blocks = state->runs.count / per_block;
  int64_t least = 0, most = state->runs.count;
  while (most - least > 1) {
    const int64_t middle = (least + most) / 2;
    *(cb_runs_first_slot(state, middle) <= met.slot ? &least : &most) = middle;
  }
  return state->strided ? least % blocks : least / per_block;
}

const struct cb_layout cb_layout_cb = {
    .name = "cb",
    .summary = "16x16 sub-blocks in COO, CSR or Dense, columns aggregated per panel",
    .source = "CB-SpMV: a cache-friendly blocked SpMV with data aggregation and load balance",
    .options = cb_cb_options,
    .options_count = CB_SPMV_OPTIONS,
    .check = cb_cb_check,
    .recipes = cb_cb_recipes,
    .plan = cb_layout_plan,
    .visit = cb_layout_visit,
    .unit = "panel",
    .block_of = block_of,
    .count_loads = count_loads,
    .count_unbalanced = count_unbalanced,
    .least = {.bytes = 1, .percent = CB_COST_CB_PERCENT, .sampled_ns = sampled_ns},
    .most_rows = INT32_MAX - 256,
    .minds_own_rows = 1,
};
