// SPDX-License-Identifier: Apache-2.0
/* Distributing runs to thread blocks, for the cb layout. What a warp multiplies follows from constants, never from an
 * array of formats:
 *
 *   contiguous  thread blocks own whole panels, and their runs are sorted by format. Thread blocks that have as many
 *               warps of each format are a range, whose ends are constants of the text. Panels of several formats
 *               stay together: sums of runs in one thread block are added in shared memory, while carries cost
 *               CB_COST_CARRY_NS. Only where there would be too many ranges each format gets thread blocks of its
 *               own, and panels of several formats leave carries.
 *   heap        run w · T + t is warp w's of thread block t, of T. So formats are ranges of runs, and all thread
 *               blocks have as many of each format, but for one.
 */
#include "analysis/layouts/cb/cb_runs.h"

#include "analysis/loads.h"
#include "analysis/ordering.h"
#include "base/integers.h"

#include <string.h>

enum { FEW_WARPS = 32 /* that a multiprocessor holds whatever their registers */ };

static enum cb_block_format last_format(const struct cb_runs *state) {
  enum cb_block_format format = CB_DENSE;
  while (format > CB_COO && !state->format_blocks[format]) format--;
  return format;
}

/* Padding lies behind the last panel, where no row is, so that panels may follow a rule. */
static void pad(const struct cb_runs *state, struct cb_run_list *runs, int64_t count) {
  for (int64_t i = 0; i < count; i++) cb_runs_add(runs, cb_runs_empty(state, state->panels + i));
}

/* Half a warp for a run when every panel is one short run and there are more of them than warps at a time:
 * twice the loads in flight. Long ones, too, where whole warps would leave a half idle in the last step. */
static int choose_row_lanes(const struct cb_runs *state, const struct cb_csr *csr, const int64_t *settings,
                            const struct cb_target *target) {
  enum { FEW = 192, FEW_BLOCKS = 12, WARPS_AT_A_TIME = 64 };
  if (settings[CB_SPMV_BALANCE] == CB_BALANCE_HEAP || state->format_blocks[CB_COO] || state->format_blocks[CB_DENSE])
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

/* How many runs from number `first` on belong to its panel, `most` at most. */
int64_t cb_runs_of_panel(const struct cb_run_list *runs, int64_t first, int64_t most) {
  int64_t count = 1;
  while (count < most && first + count < runs->count && runs->at[first + count].panel == runs->at[first].panel) count++;
  return count;
}

/* Runs without sub-blocks from number `first` on are multiplied as if they had some of that format. */
static void label_empty(struct cb_run_list *runs, int64_t first, enum cb_block_format format) {
  for (int64_t u = first; u < runs->count; u++)
    if (!runs->at[u].count) runs->at[u].format = (unsigned char)format;
}

/* ---- contiguous: ranges of thread blocks */

/* Runs in order. A panel that fits into a thread block is not spread over two. */
static void add_panels(struct cb_runs *state, const struct cb_run_list *runs, struct cb_run_list *distributed) {
  const int64_t per_block = cb_runs_per_block(state);
  for (int64_t u = 0, count; u < runs->count; u += count) {
    count = cb_runs_of_panel(runs, u, INT64_MAX);
    const int64_t used = distributed->count % per_block;
    if (used && used + count > per_block) pad(state, distributed, per_block - used);
    for (int64_t i = 0; i < count; i++) cb_runs_add(distributed, runs->at[u + i]);
    state->together |= count > 1;
  }
  pad(state, distributed, cb_round_up(distributed->count, per_block) - distributed->count);
}

/* The runs of a thread block, sorted by format. Those without sub-blocks are as good as any, and so like another. */
static void sort_runs(const struct cb_runs *state, const struct cb_run *from, struct cb_run *to) {
  unsigned char of_empty = (unsigned char)last_format(state);
  int sorted = 0;
  for (int i = 0; i < CB_RUN_WARPS; i++)
    if (from[i].count) of_empty = from[i].format;
  for (enum cb_block_format format = CB_COO; format < CB_FORMATS; format++)
    for (int i = 0; i < CB_RUN_WARPS; i++) {
      struct cb_run run = from[i];
      if (!run.count) run.format = of_empty;
      if (run.format == format) to[sorted++] = run;
    }
}

/* What a sorted thread block has, as a number: warps of COO, and warps of COO and CSR. */
enum { SHAPE_ENDS = CB_RUN_WARPS + 1, SHAPES = SHAPE_ENDS * SHAPE_ENDS };
static int shape_of(const struct cb_run *runs) {
  int coo = 0, csr = 0;
  for (int i = 0; i < CB_RUN_WARPS; i++) {
    coo += runs[i].format == CB_COO;
    csr += runs[i].format <= CB_CSR;
  }
  return coo * SHAPE_ENDS + csr;
}

/* Ranges of as many thread blocks as there are of each shape. Returns 0 if these are too many. */
static int count_ranges(struct cb_runs *state, const int64_t blocks[SHAPES], int64_t next[SHAPES]) {
  int64_t first = 0;
  state->ranges_count = 0;
  for (int shape = 0; shape < SHAPES; shape++) {
    if (!blocks[shape]) continue;
    if (state->ranges_count == CB_MOST_RANGES) return 0;
    state->ranges[state->ranges_count++] = (struct cb_format_range){first, shape / SHAPE_ENDS, shape % SHAPE_ENDS};
    next[shape] = first;
    first += blocks[shape];
  }
  return 1;
}

/* Thread blocks in the order of their shapes. Returns 0 where that gives too many ranges. */
static int order_by_shape(struct cb_runs *state, const struct cb_run_list *runs, struct cb_run_list *ordered) {
  int64_t blocks[SHAPES] = {0}, next[SHAPES];
  struct cb_run sorted[CB_RUN_WARPS];
  for (int64_t u = 0; u < runs->count; u += CB_RUN_WARPS) {
    sort_runs(state, &runs->at[u], sorted);
    blocks[shape_of(sorted)]++;
  }
  if (!count_ranges(state, blocks, next)) return 0;
  pad(state, ordered, runs->count);
  for (int64_t u = 0; u < runs->count && !ordered->arena->failed; u += CB_RUN_WARPS) {
    sort_runs(state, &runs->at[u], sorted);
    memcpy(&ordered->at[next[shape_of(sorted)]++ * CB_RUN_WARPS], sorted, sizeof sorted);
  }
  return 1;
}

/* Thread blocks of one format each: a range for each format. */
static void separate_formats(struct cb_runs *state, struct cb_run_list *distributed) {
  state->ranges_count = 0;
  state->together = 0;
  for (enum cb_block_format format = CB_COO; format < CB_FORMATS; format++) {
    struct cb_run_list own = {.arena = state->runs.arena};
    const int64_t first = distributed->count;
    if (!state->format_blocks[format]) continue;
    for (int64_t u = 0; u < state->runs.count; u++)
      if (state->runs.at[u].format == format) cb_runs_add(&own, state->runs.at[u]);
    state->ranges[state->ranges_count++] = (struct cb_format_range){
        first / CB_RUN_WARPS, format == CB_COO ? CB_RUN_WARPS : 0, format <= CB_CSR ? CB_RUN_WARPS : 0};
    add_panels(state, &own, distributed);
    label_empty(distributed, first, format);
  }
}

static void balance_contiguous(struct cb_runs *state, struct cb_run_list *distributed) {
  struct cb_run_list panels = {.arena = state->runs.arena};
  add_panels(state, &state->runs, state->formats > 1 ? &panels : distributed);
  if (panels.arena->failed) return;
  if (state->formats > 1 && !order_by_shape(state, &panels, distributed)) separate_formats(state, distributed);
}

/* ---- heap: ranges of runs */

/* Run numbers by descending nonzeros. NULL: no memory. */
static const int32_t *sort_by_nonzeros(const struct cb_run_list *runs) {
  enum { MOST = CB_RUN_MOST_BLOCKS * CB_BLOCK_SIZE };
  int32_t *sorted = cb_arena_alloc(runs->arena, (size_t)runs->count, sizeof *sorted);
  uint32_t *key = cb_arena_alloc(runs->arena, (size_t)runs->count, sizeof *key);
  if (!sorted || !key) return NULL;
  for (int64_t u = 0; u < runs->count; u++) key[u] = MOST - runs->at[u].nonzeros;
  return cb_sort_by_key(sorted, key, runs->count, MOST + 1) < 0 ? NULL : sorted;
}

/* What a heap is made of. Thread blocks are `blocks`; places first … end - 1 are dealt. */
struct dealing {
  const struct cb_run_list *runs, *distributed;
  const int32_t *sorted;
  int64_t *loads, *next; /* by thread block: so far; where its next run goes */
  struct cb_load *heap;  /* of thread blocks */
  int64_t blocks, first, end;
};

/* Those thread blocks that have a place, in a heap. Returns how many. */
static int64_t open_heap(const struct dealing *dealing) {
  int64_t open = 0;
  for (int64_t t = 0; t < dealing->blocks; t++) {
    const int64_t behind = t - dealing->first % dealing->blocks; /* places behind the first one */
    dealing->next[t] = dealing->first + (behind < 0 ? behind + dealing->blocks : behind);
    if (dealing->next[t] < dealing->end) dealing->heap[open++] = (struct cb_load){dealing->loads[t], t};
  }
  for (int64_t at = open / 2 - 1; at >= 0; at--) cb_loads_settle(dealing->heap, open, at);
  return open;
}

/* Deals the sorted runs of a format: each goes to the lightest thread block that has a place free (Alg. 2 of the
 * paper). Runs without sub-blocks go with CB_FORMATS. */
static void deal(const struct dealing *dealing, enum cb_block_format format) {
  int64_t open = open_heap(dealing);
  for (int64_t i = 0; i < dealing->runs->count; i++) {
    const struct cb_run *run = &dealing->runs->at[dealing->sorted[i]];
    struct cb_load *least = &dealing->heap[0];
    int64_t *next = &dealing->next[least->number];
    if ((run->count ? run->format : CB_FORMATS) != format) continue;
    dealing->distributed->at[*next] = *run;
    dealing->loads[least->number] = least->load += run->nonzeros;
    *next += dealing->blocks;
    if (*next >= dealing->end) *least = dealing->heap[--open];
    cb_loads_settle(dealing->heap, open, 0);
  }
}

/* The heaviest format first. */
static void deal_formats(const struct cb_runs *state, struct dealing *dealing) {
  int64_t end = state->format_runs[CB_COO] + state->format_runs[CB_CSR] + state->format_runs[CB_DENSE];
  const int64_t filled = end;
  for (int format = CB_DENSE; format >= CB_COO; format--) {
    dealing->end = end;
    dealing->first = end -= state->format_runs[format];
    deal(dealing, (enum cb_block_format)format);
  }
  dealing->first = filled;
  dealing->end = dealing->distributed->count;
  deal(dealing, CB_FORMATS);
}

static void balance_heap(struct cb_runs *state, struct cb_run_list *distributed) {
  struct cb_arena *scratch = state->runs.arena;
  const int64_t blocks = cb_divide_up(state->runs.count, CB_RUN_WARPS);
  struct dealing dealing = {.runs = &state->runs,
                            .distributed = distributed,
                            .sorted = sort_by_nonzeros(&state->runs),
                            .loads = cb_arena_alloc(scratch, (size_t)blocks, sizeof *dealing.loads),
                            .next = cb_arena_alloc(scratch, (size_t)blocks, sizeof *dealing.next),
                            .heap = cb_arena_alloc(scratch, (size_t)blocks, sizeof *dealing.heap),
                            .blocks = blocks};
  scratch->failed |= !dealing.sorted;
  pad(state, distributed, blocks * CB_RUN_WARPS);
  if (!scratch->failed && !distributed->arena->failed) deal_formats(state, &dealing);
  label_empty(distributed, 0, last_format(state));
  distributed->arena->failed |= scratch->failed;
  state->strided = 1;
}

int64_t cb_runs_at(const struct cb_runs *state, int64_t thread_block, int64_t warp) {
  const int64_t per_block = cb_runs_per_block(state);
  return state->strided ? warp * (state->runs.count / per_block) + thread_block : thread_block * per_block + warp;
}

/* ---- the whole */

/* Lets positions follow the runs. */
static void reorder(struct cb_runs *state) {
  uint32_t *order = cb_arena_alloc(&state->arena, (size_t)state->blocks, sizeof *order);
  int64_t position = 0;
  for (int64_t u = 0; order && u < state->runs.count; u++) {
    struct cb_run *run = &state->runs.at[u];
    for (uint32_t i = 0; i < run->count; i++) order[position + i] = state->order[run->first + i];
    run->first = (uint32_t)position;
    position += run->count;
  }
  state->order = order;
}

static void count_runs(struct cb_runs *state) {
  for (int64_t u = 0; u < state->runs.count; u++)
    if (state->runs.at[u].count) state->format_runs[state->runs.at[u].format]++;
}

void cb_runs_balance(struct cb_runs *state, const struct cb_region_builder *builder) {
  const int64_t *settings = builder->settings;
  struct cb_run_list distributed = {.arena = &state->arena};
  state->row_lanes = choose_row_lanes(state, builder->work.part.csr, settings, builder->target);
  count_runs(state);
  if (settings[CB_SPMV_BALANCE] == CB_BALANCE_HEAP)
    balance_heap(state, &distributed);
  else
    balance_contiguous(state, &distributed);
  state->runs = distributed;
  reorder(state);
  state->few = state->runs.count <= FEW_WARPS * (int64_t)builder->target->multiprocessors;
}
