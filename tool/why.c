// SPDX-License-Identifier: Apache-2.0
/* cbgen why: which thread blocks take longest, what they have to do, what the cost model makes of that, and which
 * option would change it. With a GPU by a clock in each warp, else as predicted. */
#include "tool/why.h"

#include "analysis/layout.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- planning and measuring */

/* Without a GPU, or for another architecture than its own, all is prediction. */
static enum cb_status open_gpu(struct cb_why *why, struct cb_diag *diag) {
  const struct cb_call *call = why->call;
  const char *const arch = call->arches_count ? call->arches[0] : NULL;
  struct cb_bench_settings settings;
  struct cb_diag missing = {0};
  cb_bench_settings_default(&settings);
  settings.device = (int)call->device;
  settings.baselines = settings.ceilings = 0;
  cb_progress_stage("opening the GPU");
  const enum cb_status s = cb_bench_open(&why->bench, &settings, &missing);
  if (s == CB_ERR_MISSING && !cb_call_has(call, "device")) {
    snprintf(why->without, sizeof why->without, "%.*s", (int)sizeof why->without - 1, missing.message);
    return CB_OK;
  }
  if (s) return cb_fail_lines(diag, s, missing.message);
  if (!arch || !strcmp(arch, why->bench->device->target.arch)) return CB_OK;
  snprintf(why->without, sizeof why->without, "'--arch=%s': the GPU is '%s'", arch, why->bench->device->target.arch);
  cb_bench_close(why->bench);
  why->bench = NULL;
  return CB_OK;
}

static enum cb_status check_rows(const struct cb_why *why, struct cb_diag *diag) {
  const struct cb_csr *csr = &why->job.csr;
  const long long row = (long long)why->call->row;
  if (!csr->rows)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' has no rows: its kernel has no thread blocks", why->call->file);
  if (cb_call_has(why->call, "row") && row >= csr->rows)
    return cb_fail(diag, CB_ERR_ARGUMENT, "there is no row %lld: the matrix has %lld, from 0", row,
                   (long long)csr->rows);
  return CB_OK;
}

static enum cb_status plan(struct cb_why *why, struct cb_diag *diag) {
  const struct cb_call *call = why->call;
  if (why->bench) return cb_job_plan_for(&why->job, call, &why->bench->device->target, diag);
  return cb_job_plan(&why->job, call, call->arches_count ? call->arches[0] : NULL, diag);
}

static enum cb_status measure(struct cb_why *why, struct cb_diag *diag) {
  enum { RUNS = 7 };
  const struct cb_job *job = &why->job;
  const struct cb_clocked_request request = {.bench = why->bench,
                                             .csr = &job->csr,
                                             .plan = job->plan,
                                             .assignment = job->assignment,
                                             .label = &job->label,
                                             .runs = why->call->repeat ? (int)why->call->repeat : RUNS};
  if (!why->bench) return CB_OK;
  cb_progress_stage("measuring the thread blocks of '%s'", job->name);
  return cb_clocked_measure(&why->clocked, &request, diag);
}

/* ---- choosing thread blocks */

double cb_why_us(const struct cb_why *why, int64_t number) {
  return why->clocked.blocks ? why->clocked.blocks[number].us : 1e-3 * (double)why->blocks.blocks[number].cost.ns;
}

struct ranked {
  double us;
  int64_t number;
};

static int by_time(const void *left, const void *right) {
  const struct ranked *a = left, *b = right;
  if (a->us != b->us) return a->us < b->us ? 1 : -1;
  return (a->number > b->number) - (a->number < b->number);
}

static int by_number(const void *left, const void *right) {
  const struct cb_thread_block_facts *a = left, *b = right;
  return (a->number > b->number) - (a->number < b->number);
}

static void choose(struct cb_why *why, int64_t number) {
  for (int f = 0; f < why->facts_count; f++)
    if (why->facts[f].number == number) return;
  why->facts[why->facts_count++].number = number;
}

/* The row's, or the slowest; and the one of median time. */
static enum cb_status choose_blocks(struct cb_why *why, int64_t *median, struct cb_diag *diag) {
  const int64_t count = why->blocks.count;
  int64_t numbers[CB_WHY_BLOCKS];
  struct ranked *ranked = cb_alloc((size_t)count + 1, sizeof *ranked);
  if (!ranked) return cb_fail_memory(diag, "thread blocks", (uint64_t)count * sizeof *ranked);
  for (int64_t b = 0; b < count; b++) ranked[b] = (struct ranked){cb_why_us(why, b), b};
  qsort(ranked, (size_t)count, sizeof *ranked, by_time);
  *median = ranked[count / 2].number;
  if (cb_call_has(why->call, "row")) {
    why->row_blocks = cb_thread_blocks_of_row(numbers, CB_WHY_BLOCKS, why->call->row, &why->blocks, why->job.plan,
                                              why->job.assignment, &why->job.csr);
    for (int64_t i = 0; i < why->row_blocks && i < CB_WHY_BLOCKS; i++) choose(why, numbers[i]);
  } else {
    for (int64_t i = 0; i < count && i < CB_WHY_BLOCKS; i++) choose(why, ranked[i].number);
  }
  cb_free(ranked);
  return why->row_blocks < 0 ? cb_fail_memory(diag, "thread blocks", 0) : CB_OK;
}

/* Places in `facts`, the slowest first: what was predicted may have changed with the exact sectors. */
static void order_chosen(struct cb_why *why, const char *is_chosen) {
  struct ranked ranked[CB_WHY_BLOCKS + 1];
  int count = 0;
  for (int f = 0; f < why->facts_count; f++)
    if (is_chosen[f]) ranked[count++] = (struct ranked){cb_why_us(why, why->facts[f].number), f};
  qsort(ranked, (size_t)count, sizeof *ranked, by_time);
  why->chosen = count;
  for (int i = 0; i < count; i++) why->order[i] = (int)ranked[i].number;
}

static enum cb_status look(struct cb_why *why, struct cb_diag *diag) {
  int64_t median = 0;
  char is_chosen[CB_WHY_BLOCKS + 1] = {0};
  enum cb_status s = choose_blocks(why, &median, diag);
  if (s) return s;
  const int chosen = why->facts_count, median_is_chosen = cb_call_has(why->call, "row") || why->blocks.count > chosen;
  int64_t numbers[CB_WHY_BLOCKS];
  for (int i = 0; i < chosen; i++) numbers[i] = why->facts[i].number;
  if (median_is_chosen) choose(why, median);
  qsort(why->facts, (size_t)why->facts_count, sizeof *why->facts, by_number);
  const int64_t row = cb_call_has(why->call, "row") ? why->call->row : -1;
  s = cb_thread_blocks_look(why->facts, why->facts_count, row, &why->blocks, why->job.plan, why->job.assignment,
                            &why->job.csr, diag);
  why->median = -1;
  for (int f = 0; f < why->facts_count; f++) {
    for (int i = 0; i < chosen; i++) is_chosen[f] |= why->facts[f].number == numbers[i];
    if (median_is_chosen && why->facts[f].number == median) why->median = f;
  }
  order_chosen(why, is_chosen);
  return s;
}

/* ---- options */

static int by_prediction(const void *left, const void *right) {
  const struct cb_why_option *a = left, *b = right;
  if (a->ns != b->ns) return a->ns < b->ns ? -1 : 1;
  return (a->advice > b->advice) - (a->advice < b->advice);
}

/* An option of a layout that a search has chosen: of the recipe that it found, since another search may take another.
 * NULL: the call's recipe stays. */
static const char *recipe_for(const struct cb_why *why, const struct cb_advice *advice) {
  const int is_layouts = advice->layout && strcmp(advice->option, "recipe") != 0;
  return is_layouts && !strcmp(why->call->options.recipe, "auto") ? why->job.plan->recipe : NULL;
}

/* What is predicted with it; 0: it is refused, or changes nothing. */
static int64_t predict_with(const struct cb_why *why, const struct cb_advice *advice) {
  struct cb_options options = why->call->options;
  struct cb_plan *other = NULL;
  struct cb_assignment *assignment = NULL;
  struct cb_diag unused = {0};
  int64_t ns = 0;
  if (recipe_for(why, advice)) options.recipe = recipe_for(why, advice);
  if (cb_options_set(&options, advice->option, advice->value, &unused)) return 0;
  if (cb_plan_build(&other, &assignment, &why->job.csr, &why->job.target, &options, &unused)) return 0;
  if (memcmp(&other->hash, &why->job.plan->hash, sizeof other->hash)) ns = other->cost.ns;
  cb_assignment_free(assignment);
  cb_plan_free(other);
  return ns;
}

static void add_options(struct cb_why *why, const struct cb_region *region, enum cb_term term) {
  for (const struct cb_advice *advice = NULL; (advice = cb_advice_next(advice, region->layout, term));) {
    int known = why->options_count == CB_WHY_OPTIONS;
    for (int o = 0; o < why->options_count; o++) {
      const struct cb_advice *other = why->options[o].advice;
      known |= !strcmp(other->option, advice->option) && !strcmp(other->value, advice->value);
    }
    const int64_t ns = known ? 0 : predict_with(why, advice);
    if (ns)
      why->options[why->options_count++] = (struct cb_why_option){advice, region->name, recipe_for(why, advice), ns};
  }
}

/* For what binds the thread blocks that are told, the slowest first, and each region. */
static void find_options(struct cb_why *why) {
  const struct cb_plan *own = why->job.plan;
  cb_progress_stage("planning '%s' with other options", why->job.name);
  for (int i = 0; i < why->chosen; i++) {
    const struct cb_thread_block_facts *facts = &why->facts[why->order[i]];
    if (facts->region >= 0)
      add_options(why, &own->regions[facts->region], cb_cost_binding(&why->blocks.blocks[facts->number].cost));
  }
  for (int r = 0; r < own->regions_count; r++)
    add_options(why, &own->regions[r], cb_cost_binding(&own->regions[r].cost));
  qsort(why->options, (size_t)why->options_count, sizeof *why->options, by_prediction);
}

/* ---- the verb */

static enum cb_status report(const struct cb_why *why, struct cb_diag *diag) {
  struct cb_text text = {0};
  enum cb_status s = CB_OK;
  if (why->call->json)
    s = cb_why_json(&text, why, diag);
  else
    cb_why_text(&text, why);
  if (!s && !(why->call->quiet && !why->call->json)) s = cb_print(&text, diag);
  cb_text_release(&text);
  return s;
}

static enum cb_status run_why(const struct cb_call *call, struct cb_diag *diag) {
  struct cb_why why = {.call = call, .median = -1};
  enum cb_status s = cb_job_read(&why.job, call, diag);
  if (!s) s = check_rows(&why, diag);
  if (!s) s = open_gpu(&why, diag);
  if (!s) s = plan(&why, diag);
  if (!s) s = cb_thread_blocks_count(&why.blocks, why.job.plan, why.job.assignment, &why.job.csr, diag);
  if (!s && !why.blocks.count)
    s = cb_fail(diag, CB_ERR_ARGUMENT, "'%s' has no nonzeros: no thread block multiplies any", call->file);
  if (!s) s = measure(&why, diag);
  if (!s) s = look(&why, diag);
  if (!s) find_options(&why);
  if (!s) s = report(&why, diag);
  cb_clocked_release(&why.clocked);
  cb_thread_blocks_release(&why.blocks);
  cb_bench_close(why.bench);
  cb_job_release(&why.job);
  return s;
}

const struct cb_verb cb_verb_why = {
    .name = "why",
    .arguments = "FILE [--row=R] [OPTION…]",
    .summary = "which thread blocks are slow, and which option would change it",
    .details = "Runs the kernel on the GPU with a clock in each warp and prints the ten slowest thread blocks: when\n"
               "each started, how long it took and was predicted to take, and what binds it: stream (bytes), gather\n"
               "(sectors of x), work (instructions), chain (loads that wait for each other) or tail (what follows\n"
               "the last load); its rows, nonzeros, sectors of x, dependent loads and bytes. Then the options that\n"
               "would change that, with what is predicted with each. With --row=R: the thread blocks of that row,\n"
               "beside the median one. Without a GPU, or with another one's --arch, all of it is predicted.\n",
    .example = "cbgen why matrix.mtx --row=117",
    .takes = CB_TAKES_ARCH | CB_TAKES_JSON | CB_TAKES_GPU | CB_TAKES_WHY,
    .run = run_why,
};
