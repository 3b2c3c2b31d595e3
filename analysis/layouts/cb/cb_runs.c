// SPDX-License-Identifier: Apache-2.0
/* Cutting for the cb layout: cb_runs_cut and cb_runs_place call the passes in order. Each states what it
 * needs and adds. */
#include "analysis/layouts/cb/cb_runs.h"

#include "base/integers.h"
#include "base/memory.h"

enum {
  DENSE_ALIGN = 16,
  MOST_BLOCKS = 16,  /* of a run: 256 columns, which a byte names */
  COO_BLOCKS = 8,    /* the same where COO occurs: its partial sums want the shared memory */
  FEW_WARPS = 32,    /* that a multiprocessor holds whatever their registers */
  BLOCK_WEIGHT = 8,  /* staging x of a block costs about as much as 8 products */
  COO_OVERHEAD = 160 /* clearing and adding up the partial sums of a COO run, in products */
};

void cb_runs_release(void *memory) {
  struct cb_runs *state = memory;
  if (!state) return;
  void *const blocks[] = {state->panel_block, state->nonzeros,    state->first_column, state->format,
                          state->place,       state->run_of,      state->order,        state->runs.at,
                          state->values,      state->coordinates, state->row_lengths};
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cb_free(blocks[i]);
  cb_free(state);
}
/* ---- counting: needs the part; adds aggregated, panel_block, blocks */

/* Blocks per panel into panel_block[panel + 1]; returns how many blocks have fewer than `super_sparse`
 * nonzeros. */
static int64_t count_blocks(struct cb_runs *state, const struct cb_csr *csr, int aggregated,
                            int super_sparse) {
  int64_t sparse = 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : sparse)
  for (int64_t panel = 0; panel < state->panels; panel++) {
    struct cb_panel_walk walk;
    struct cb_subblock block;
    int64_t blocks = 0;
    cb_panel_open(&walk, csr, panel);
    for (; cb_panel_next(&walk, aggregated, &block); blocks++) sparse += block.nonzeros < super_sparse;
    state->panel_block[panel + 1] = blocks;
  }
  for (int64_t panel = 0; panel < state->panels; panel++)
    state->panel_block[panel + 1] += state->panel_block[panel];
  state->blocks = state->panel_block[state->panels];
  return sparse;
}

static enum cb_status decide_aggregation(struct cb_runs *state, const struct cb_csr *csr,
                                         const struct cb_options *options, struct cb_diag *diag) {
  state->panel_block = cb_calloc((size_t)state->panels + 1, sizeof *state->panel_block);
  if (!state->panel_block) return cb_fail_memory(diag, "panels", (uint64_t)state->panels * 8);
  state->aggregated = options->aggregate == CB_ON;
  const int64_t sparse = count_blocks(state, csr, state->aggregated, (int)options->super_sparse);
  if (options->aggregate == CB_AUTO && sparse * 100 > options->th0_percent * state->blocks) {
    state->aggregated = 1;
    count_blocks(state, csr, 1, (int)options->super_sparse);
  }
  if (state->blocks > INT32_MAX)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld sub-blocks exceed the cb layout's 2147483647",
                   (long long)state->blocks);
  return CB_OK;
}

void cb_runs_visit_blocks(const struct cb_runs *runs, const struct cb_csr *csr, cb_runs_visit *visit, void *user) {
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t panel = 0; panel < runs->panels; panel++) {
    struct cb_panel_walk walk;
    struct cb_subblock block;
    int64_t b = runs->panel_block[panel];
    cb_panel_open(&walk, csr, panel);
    for (; cb_panel_next(&walk, runs->aggregated, &block); b++) visit(user, b, &block);
  }
}

/* ---- describing: needs panel_block; adds nonzeros and first_column of each block */

static void describe_block(void *user, int64_t b, const struct cb_subblock *block) {
  const struct cb_runs *state = user;
  state->nonzeros[b] = (uint16_t)block->nonzeros;
  state->first_column[b] = (uint32_t)block->columns[0];
}

static enum cb_status describe_blocks(struct cb_runs *state, const struct cb_csr *csr, struct cb_diag *diag) {
  state->nonzeros = cb_alloc((size_t)state->blocks, sizeof *state->nonzeros);
  state->first_column = cb_alloc((size_t)state->blocks, sizeof *state->first_column);
  if (!state->nonzeros || !state->first_column)
    return cb_fail_memory(diag, "sub-blocks", (uint64_t)state->blocks * 6);
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

static enum cb_status choose_formats(struct cb_runs *state, const struct cb_csr *csr, int64_t coo_gain,
                                     struct cb_diag *diag) {
  state->format = cb_alloc((size_t)state->blocks, 1);
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
  return CB_OK;
}

/* ---- cutting: needs formats; adds order and runs, panel by panel */

static int add_run(struct cb_run_list *runs, struct cb_run run) {
  if (runs->count == runs->capacity) {
    const int64_t capacity = runs->capacity ? runs->capacity * 2 : 1024;
    struct cb_run *at = cb_realloc(runs->at, (size_t)capacity, sizeof *at);
    if (!at) return 0;
    runs->at = at;
    runs->capacity = capacity;
  }
  runs->at[runs->count++] = run;
  return 1;
}

/* Nothing to multiply. Of a format that occurs. */
static struct cb_run empty_run(const struct cb_runs *state, int64_t panel) {
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
static int cut_format(struct cb_runs *state, int64_t panel, enum cb_block_format format, int64_t budget,
                      int64_t team, int64_t *position) {
  const int64_t begin = state->panel_block[panel], end = state->panel_block[panel + 1];
  const int64_t most = state->format_blocks[CB_COO] ? COO_BLOCKS : MOST_BLOCKS;
  int64_t weight = 0, left = 0, done = 0, part = 1;
  for (int64_t b = begin; b < end; b++) {
    if (state->format[b] != format) continue;
    weight += weight_of(state, b);
    left++;
  }
  const int64_t parts = left ? choose_parts(weight, left, most, budget, team) : 0;
  struct cb_run run = {
      .panel = (uint32_t)panel, .first = (uint32_t)*position, .format = (unsigned char)format};
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
    if (!add_run(&state->runs, run)) return 0;
    do part++;
    while (part < parts && done * parts >= weight * part);
    run.first = (uint32_t)*position;
    run.count = run.nonzeros = 0;
  }
  return 1;
}

/* Weight of a run: little enough that a small matrix fills the multiprocessors with warps, but not less than
 * what a warp loads at once; and a bound for what one warp works off alone. */
static int64_t choose_budget(const struct cb_runs *state, const struct cb_csr *csr,
                             const struct cb_options *options, const struct cb_target *target) {
  enum { LEAST = 320, MOST = 2048, WARPS_WANTED = 24 };
  if (options->unit_budget) return options->unit_budget;
  const int64_t weight = csr->nnz + BLOCK_WEIGHT * state->blocks;
  const int64_t share = weight / (WARPS_WANTED * (int64_t)target->multiprocessors);
  return options->team || share > MOST ? MOST : share < LEAST ? LEAST : share;
}

static enum cb_status cut_panels(struct cb_runs *state, const struct cb_draft *draft, struct cb_diag *diag) {
  const int every_panel = draft->commit == CB_COMMIT_FINAL; /* empty panels, too: their rows are written */
  const int64_t budget = choose_budget(state, draft->work.part.csr, draft->options, draft->target);
  int64_t position = 0;
  state->order = cb_alloc((size_t)state->blocks, sizeof *state->order);
  int good = state->order != NULL;
  for (int64_t panel = 0; panel < state->panels && good; panel++) {
    for (enum cb_block_format format = CB_COO; format < CB_FORMATS && good; format++)
      good = cut_format(state, panel, format, budget, draft->options->team, &position);
    const int empty = state->panel_block[panel] == state->panel_block[panel + 1];
    if (empty && every_panel && good) good = add_run(&state->runs, empty_run(state, panel));
  }
  return good ? CB_OK
              : cb_fail_memory(diag, "runs of sub-blocks", (uint64_t)state->blocks * sizeof(struct cb_run));
}

/* ---- balancing: needs runs panel by panel; deals them to thread blocks; adds row_lanes, together */

/* Half a warp for a run when every panel is one short run and there are more of them than warps at a time:
 * twice the loads under way. Long ones, too, where whole warps would leave a half idle in the last step. */
static int choose_row_lanes(const struct cb_runs *state, const struct cb_csr *csr,
                            const struct cb_options *options, const struct cb_target *target) {
  enum { FEW = 192, FEW_BLOCKS = 12, WARPS_AT_A_TIME = 64 };
  if (options->balance == CB_BALANCE_HEAP || state->format_blocks[CB_COO] || state->format_blocks[CB_DENSE])
    return 2;
  int64_t most = 0;
  for (int64_t u = 0; u < state->runs.count; u++) {
    if (u && state->runs.at[u].panel == state->runs.at[u - 1].panel) return 2;
    most = cb_larger(most, state->runs.at[u].count);
  }
  const int many = state->runs.count >= WARPS_AT_A_TIME * (int64_t)target->multiprocessors;
  const int odd = (csr->nnz / csr->rows + 1) % 2 == 1; /* means lie a little below what inner rows have */
  return many && most <= FEW_BLOCKS && (csr->nnz <= FEW * state->runs.count || odd) ? 1 : 2;
}

int64_t cb_runs_per_block(const struct cb_runs *state) {
  return CB_RUN_WARPS * 2 / state->row_lanes;
}

/* Padding lies behind the last panel, where no row is. */
static int pad(const struct cb_runs *state, struct cb_run_list *runs, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (!add_run(runs, empty_run(state, state->panels + i))) return 0; /* so that panels may follow a rule */
  return 1;
}

/* How many runs from number `first` on belong to its panel, `most` at most. */
int64_t cb_runs_of_panel(const struct cb_run_list *runs, int64_t first, int64_t most) {
  int64_t count = 1;
  while (count < most && first + count < runs->count &&
         runs->at[first + count].panel == runs->at[first].panel)
    count++;
  return count;
}

/* Contiguous: runs in order. A panel that fits into a thread block is not spread over two. */
static int balance_contiguous(struct cb_runs *state, struct cb_run_list *dealt) {
  const int64_t per_block = cb_runs_per_block(state);
  for (int64_t u = 0, count; u < state->runs.count; u += count) {
    count = cb_runs_of_panel(&state->runs, u, INT64_MAX);
    const int64_t used = dealt->count % per_block;
    if (used && used + count > per_block && !pad(state, dealt, per_block - used)) return 0;
    for (int64_t i = 0; i < count; i++)
      if (!add_run(dealt, state->runs.at[u + i])) return 0;
    state->together |= count > 1;
  }
  return 1;
}

/* A binary min-heap of thread blocks by (load, number). */
struct load {
  int64_t load;
  uint32_t block, slots;
};

static int lighter(const struct load *a, const struct load *b) {
  return a->load != b->load ? a->load < b->load : a->block < b->block;
}

static void sift_down(struct load *heap, int64_t count, int64_t at) {
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) return;
    if (child + 1 < count && lighter(&heap[child + 1], &heap[child])) child++;
    if (!lighter(&heap[child], &heap[at])) return;
    const struct load swap = heap[at];
    heap[at] = heap[child];
    heap[child] = swap;
    at = child;
  }
}

/* Run numbers by descending nonzeros, stable: counting sort. */
static int sort_by_nonzeros(const struct cb_run_list *runs, uint32_t *sorted) {
  enum { MOST = MOST_BLOCKS * CB_BLOCK_SIZE };
  int64_t *start = cb_calloc(MOST + 2, sizeof *start);
  if (!start) return 0;
  for (int64_t u = 0; u < runs->count; u++) start[MOST - runs->at[u].nonzeros + 1]++;
  for (int key = 0; key <= MOST; key++) start[key + 1] += start[key];
  for (int64_t u = 0; u < runs->count; u++) sorted[start[MOST - runs->at[u].nonzeros]++] = (uint32_t)u;
  cb_free(start);
  return 1;
}

/* Deals the sorted runs to thread blocks: each to the lightest that has one of its 8 slots free (Alg. 2 of
 * the paper). Thread block t's runs are dealt->at[8 t …], which holds padding at first. */
static void deal(const struct cb_run_list *runs, const uint32_t *sorted, struct load *heap,
                 struct cb_run_list *dealt) {
  int64_t open = dealt->count / CB_RUN_WARPS;
  for (int64_t t = 0; t < open; t++) heap[t] = (struct load){0, (uint32_t)t, 0};
  for (int64_t i = 0; i < runs->count; i++) {
    struct load *least = &heap[0];
    dealt->at[(int64_t)least->block * CB_RUN_WARPS + least->slots++] = runs->at[sorted[i]];
    least->load += runs->at[sorted[i]].nonzeros;
    if (least->slots == CB_RUN_WARPS) *least = heap[--open];
    sift_down(heap, open, 0);
  }
}

static int balance_heap(struct cb_runs *state, struct cb_run_list *dealt) {
  const int64_t thread_blocks = (state->runs.count + CB_RUN_WARPS - 1) / CB_RUN_WARPS;
  uint32_t *sorted = cb_alloc((size_t)state->runs.count, sizeof *sorted);
  struct load *heap = cb_alloc((size_t)thread_blocks, sizeof *heap);
  const int good = sorted && heap && pad(state, dealt, thread_blocks * CB_RUN_WARPS) &&
                   sort_by_nonzeros(&state->runs, sorted);
  if (good) deal(&state->runs, sorted, heap, dealt);
  cb_free(sorted);
  cb_free(heap);
  return good;
}

/* Lets positions follow the runs. */
static int reorder(struct cb_runs *state) {
  uint32_t *order = cb_alloc((size_t)state->blocks, sizeof *order);
  int64_t position = 0;
  for (int64_t u = 0; order && u < state->runs.count; u++) {
    struct cb_run *run = &state->runs.at[u];
    for (uint32_t i = 0; i < run->count; i++) order[position + i] = state->order[run->first + i];
    run->first = (uint32_t)position;
    position += run->count;
  }
  if (!order) return 0;
  cb_free(state->order);
  state->order = order;
  return 1;
}

static enum cb_status balance(struct cb_runs *state, const struct cb_draft *draft, struct cb_diag *diag) {
  const struct cb_options *options = draft->options;
  struct cb_run_list dealt = {0};
  state->row_lanes = choose_row_lanes(state, draft->work.part.csr, options, draft->target);
  int good =
      options->balance == CB_BALANCE_HEAP ? balance_heap(state, &dealt) : balance_contiguous(state, &dealt);
  if (good) good = pad(state, &dealt, cb_round_up(dealt.count, cb_runs_per_block(state)) - dealt.count);
  cb_free(state->runs.at);
  state->runs = dealt;
  if (good) good = reorder(state);
  if (!good)
    return cb_fail_memory(diag, "runs of sub-blocks", (uint64_t)state->blocks * sizeof(struct cb_run));
  if (state->runs.count > INT32_MAX)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld runs of sub-blocks exceed the cb layout's 2147483647",
                   (long long)state->runs.count);
  state->few = state->runs.count <= FEW_WARPS * (int64_t)draft->target->multiprocessors;
  return CB_OK;
}

enum cb_status cb_runs_cut(struct cb_runs *state, const struct cb_draft *draft, struct cb_diag *diag) {
  const struct cb_csr *csr = draft->work.part.csr;
  enum cb_status s = decide_aggregation(state, csr, draft->options, diag);
  if (!s) s = describe_blocks(state, csr, diag);
  if (!s) s = choose_formats(state, csr, draft->options->coo_gain, diag);
  if (!s) s = cut_panels(state, draft, diag);
  return s ? s : balance(state, draft, diag);
}

/* ---- placing: needs runs; adds place, run_of, row_lengths, and where each run's coordinates and values
 * start */

int64_t cb_runs_coordinate_bytes(const struct cb_runs *state, const struct cb_run *run) {
  if (run->format == CB_COO) return run->slots + (run->slots + 1) / 2;
  if (run->format == CB_CSR)
    return run->slots + !state->fixed_steps; /* what lanes without a nonzero may meet */
  return state->full_dense ? 0 : (int64_t)CB_DENSE_PRESENCE * run->count;
}

/* Appends one run's data; the ends move on. */
static void place_data(struct cb_runs *state, int64_t number) {
  const struct cb_run *run = &state->runs.at[number];
  const int64_t value_bytes = state->value_bytes;
  const int64_t coordinates = cb_runs_coordinate_bytes(state, run);
  const int64_t slots =
      run->format == CB_DENSE ? (int64_t)CB_BLOCK_SIZE * run->count : run->slots + state->code_after;
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

/* A run's first position. */
int64_t cb_runs_position(const struct cb_runs *state, int64_t number) {
  return state->fixed_blocks ? number * state->fixed_blocks : state->runs.at[number].first;
}

int64_t cb_runs_positions(const struct cb_runs *state) {
  return state->fixed_blocks ? state->runs.count * state->fixed_blocks : state->blocks;
}

enum cb_status cb_runs_place(struct cb_runs *state, const struct cb_csr *csr, const struct cb_target *target,
                             struct cb_diag *diag) {
  const size_t blocks = (size_t)state->blocks, runs = (size_t)state->runs.count;
  state->place = cb_alloc(blocks, sizeof *state->place);
  state->run_of = cb_alloc(blocks, sizeof *state->run_of);
  state->coordinates = cb_alloc(runs, sizeof *state->coordinates);
  state->values = state->intra ? NULL : cb_alloc(runs, sizeof *state->values);
  state->row_lengths = cb_calloc(runs * CB_PANEL_ROWS, sizeof *state->row_lengths);
  if (!state->place || !state->run_of || !state->coordinates || !state->row_lengths ||
      (!state->intra && !state->values))
    return cb_fail_memory(diag, "sub-blocks", blocks * 20);
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
