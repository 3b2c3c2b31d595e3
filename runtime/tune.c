// SPDX-License-Identifier: Apache-2.0
/* Tuning: see tune.h. An attempt is a variant on its way: planned, emitted, compiled, timed. A round is what
 * was planned since the last; cb_tune at the end is the table of contents. */
#include "runtime/tune.h"

#include "analysis/plan/assignment.h"
#include "analysis/plan/blob.h"
#include "analysis/plan/recipe.h"
#include "base/available.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/real.h"
#include "runtime/image.h"
#include "runtime/operator.h"
#include "runtime/oracle.h"
#include "runtime/spills.h"
#include "runtime/timer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FACTOR = 2 }; /* what is predicted to take more than so many times the best's time is not tried */

struct attempt {
  struct cb_variant variant;
  struct cb_plan *plan; /* NULL once the attempt has lost or failed */
  struct cb_assignment *assignment;
  struct cb_hash hash; /* of the plan: what two recipes plan alike is timed once */
  char symbol[64];
  struct cb_source source;
  struct cb_compiled compiled;
  const struct cb_nvrtc *nvrtc;
  enum cb_status status; /* of what became of it */
  struct cb_diag diag;
};

struct tuner {
  const struct cb_tune_request *request;
  int count; /* attempts, in the order of the tuning's variants */
  struct attempt attempts[CB_TUNE_VARIANTS + 1];
  int candidates_count; /* of the search, for the winner's plan */
  struct cb_candidate candidates[CB_MAX_CANDIDATES];
  const double *values; /* the matrix's, or others in their place */
  double *own_values;
  double
      preparing; /* seconds that it took to compile, pack and load one, the longest so far; 0: none so far */
  /* on the GPU, whose context is current */
  struct CUstream_st *stream;
  struct cb_timer timer;
  cb_device_ptr x, y;
  int warm, cut_short;
};

/* ---- variants */

static enum cb_status set_option(struct cb_options *options, char *setting, struct cb_diag *diag) {
  char *value = strchr(setting, '=');
  if (!value) return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' sets no option", setting);
  *value++ = 0;
  for (const struct cb_option *option = cb_option_table; option->name; option++)
    if (option->text && !strcmp(option->name, setting)) /* options keep the string, and this one goes away */
      return cb_fail(diag, CB_ERR_ARGUMENT, "a variant does not set '%s'", setting);
  return cb_options_set(options, setting, value, diag);
}

enum cb_status cb_variant_apply(struct cb_options *options, const struct cb_variant *variant,
                                struct cb_diag *diag) {
  const struct cb_recipe *recipe;
  char settings[sizeof variant->settings], *rest = NULL;
  enum cb_status s = cb_recipe_find(&recipe, variant->recipe, diag);
  if (s) return s;
  options->recipe = recipe->name;
  memcpy(settings, variant->settings, sizeof settings);
  for (char *word = strtok_r(settings, " ", &rest); word && !s; word = strtok_r(NULL, " ", &rest))
    s = set_option(options, word, diag);
  return s ? s : cb_options_check(options, diag);
}

void cb_variant_name(struct cb_text *text, const struct cb_variant *variant) {
  cb_text_add(text, "%s%s%s", variant->recipe, *variant->settings ? " " : "", variant->settings);
}

/* ---- attempts */

static void drop(struct attempt *attempt) {
  cb_compiled_release(&attempt->compiled);
  cb_source_release(&attempt->source);
  cb_assignment_free(attempt->assignment);
  cb_plan_free(attempt->plan);
  attempt->compiled = (struct cb_compiled){0};
  attempt->source = (struct cb_source){0};
  attempt->assignment = NULL;
  attempt->plan = NULL;
}

/* What is wrong with one variant alone; others may do. */
static int is_its_own(enum cb_status s) {
  return s == CB_ERR_COMPILE || s == CB_ERR_LIMIT || s == CB_ERR_UNSUPPORTED || s == CB_ERR_MEMORY;
}

/* Takes an attempt out of the race. */
static void leave_out(struct attempt *attempt, enum cb_status status, const char *reason) {
  snprintf(attempt->variant.reason, sizeof attempt->variant.reason, "%.159s", reason);
  for (char *c = attempt->variant.reason; *c; c++)
    if ((unsigned char)*c < ' ') *c = ' '; /* one line */
  attempt->status = status;
  drop(attempt);
}

/* A plan for the variant, in the place behind the last. */
static enum cb_status plan(struct tuner *tuner, const char *recipe, const char *settings,
                           struct cb_diag *diag) {
  const struct cb_tune_request *request = tuner->request;
  struct attempt *attempt = &tuner->attempts[tuner->count];
  struct cb_options options = *request->options;
  *attempt = (struct attempt){.nvrtc = request->nvrtc};
  snprintf(attempt->variant.recipe, sizeof attempt->variant.recipe, "%s", recipe);
  snprintf(attempt->variant.settings, sizeof attempt->variant.settings, "%s", settings);
  options.tune = CB_TUNE_MODEL;
  enum cb_status s = cb_variant_apply(&options, &attempt->variant, diag);
  if (!s)
    s = cb_plan_build(&attempt->plan, &attempt->assignment, request->csr, &request->device->target, &options,
                      diag);
  if (s) return s;
  attempt->variant.predicted_ns = attempt->plan->cost.ns;
  attempt->hash = attempt->plan->hash;
  return CB_OK;
}

/* ---- the first round: the recipes of the search */

/* Moves the attempt behind the last to its place by prediction; a tie goes to the earlier one, as in the
 * search. */
static void insert(struct tuner *tuner) {
  const struct attempt moved = tuner->attempts[tuner->count];
  int at = tuner->count++;
  for (; at && moved.variant.predicted_ns < tuner->attempts[at - 1].variant.predicted_ns; at--)
    tuner->attempts[at] = tuner->attempts[at - 1];
  tuner->attempts[at] = moved;
  if (tuner->count > CB_TUNE_RECIPES) drop(&tuner->attempts[--tuner->count]);
}

static void note_candidate(struct tuner *tuner, const char *recipe, const char *refusal) {
  struct cb_candidate *candidate = &tuner->candidates[tuner->candidates_count++];
  if (!refusal) *candidate = cb_plan_candidate(tuner->attempts[tuner->count].plan);
  candidate->recipe = recipe;
  if (refusal) snprintf(candidate->refusal, sizeof candidate->refusal, "%.239s", refusal);
}

static enum cb_status plan_recipes(struct tuner *tuner, const struct cb_recipe *recipe,
                                   struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  for (int i = 0; recipe->candidates[i] && i < CB_MAX_CANDIDATES && !s; i++) {
    char hopeless[sizeof tuner->candidates[0].refusal];
    const struct cb_tune_request *request = tuner->request;
    if (tuner->count &&
        cb_plan_is_hopeless(recipe->candidates[i], request->csr, &request->device->target, request->options,
                            FACTOR * tuner->attempts[0].variant.predicted_ns, hopeless, sizeof hopeless)) {
      note_candidate(tuner, recipe->candidates[i], hopeless);
      continue;
    }
    s = plan(tuner, recipe->candidates[i], "", diag);
    const int refused = s == CB_ERR_LIMIT || s == CB_ERR_UNSUPPORTED;
    if (s && !refused) return s;
    note_candidate(tuner, recipe->candidates[i], refused ? diag->message : NULL);
    if (!refused) insert(tuner);
    s = CB_OK;
  }
  if (!tuner->count) return cb_fail(diag, CB_ERR_LIMIT, "no recipe fits this matrix");
  diag->message[0] = 0; /* of refusals */
  while (tuner->attempts[tuner->count - 1].variant.predicted_ns >
         FACTOR * tuner->attempts[0].variant.predicted_ns)
    drop(&tuner->attempts[--tuner->count]);
  return CB_OK;
}

static enum cb_status plan_first(struct tuner *tuner, struct cb_diag *diag) {
  const struct cb_recipe *recipe;
  enum cb_status s = cb_recipe_find(&recipe, tuner->request->options->recipe, diag);
  if (s) return s;
  if (!recipe->root) return plan_recipes(tuner, recipe, diag);
  s = plan(tuner, recipe->name, "", diag);
  tuner->count += !s;
  return s;
}

/* ---- what pays */

static int fastest(const struct tuner *tuner) {
  int best = -1;
  for (int i = 0; i < tuner->count; i++) {
    const int64_t ns = tuner->attempts[i].variant.measured_ns;
    if (tuner->attempts[i].plan && ns && (best < 0 || ns < tuner->attempts[best].variant.measured_ns))
      best = i;
  }
  return best;
}

/* Nanoseconds of a product with the best that is known. */
static int64_t best_ns(const struct tuner *tuner) {
  const int best = fastest(tuner);
  return best < 0 ? tuner->attempts[0].variant.predicted_ns : tuner->attempts[best].variant.measured_ns;
}

/* Seconds until an attempt is timed, from the one before, or from its size. */
static double price(const struct tuner *tuner, const struct attempt *attempt) {
  enum { PRODUCTS = 300 };
  const double compiling = 0.08, bytes_per_second = 1e9;
  const double preparing = tuner->preparing > 0
                               ? tuner->preparing
                               : compiling + (double)cb_plan_bytes(attempt->plan) / bytes_per_second;
  return preparing + PRODUCTS * 1e-9 * (double)attempt->variant.predicted_ns;
}

/* Whether the expected products could repay it, if it took half of what is predicted. */
static int can_repay(const struct tuner *tuner, const struct attempt *attempt) {
  const int64_t products = tuner->request->expected_products;
  const double gain = (double)best_ns(tuner) - 0.5 * (double)attempt->variant.predicted_ns;
  return !products || 1e-9 * gain * (double)products > price(tuner, attempt);
}

/* ---- text and compilation: a thread for each */

static enum cb_status emit(struct tuner *tuner, struct attempt *attempt, struct cb_diag *diag) {
  const struct cb_tune_request *request = tuner->request;
  if (request->symbol)
    snprintf(attempt->symbol, sizeof attempt->symbol, "%s", request->symbol);
  else
    snprintf(attempt->symbol, sizeof attempt->symbol, "cbgen_%016llx",
             (unsigned long long)cb_blob_id(attempt->plan, request->pattern).high);
  const struct cb_label label = {request->name ? request->name : attempt->symbol, attempt->symbol,
                                 request->pattern};
  return cb_source_emit(&attempt->source, attempt->plan, &label, NULL, CB_EMBED_NEVER, diag);
}

static void *compile(void *taken) {
  struct attempt *attempt = taken;
  const struct cb_nvrtc_options options = {.arch = attempt->plan->target.arch};
  attempt->status = cb_compile_fitting(&attempt->compiled, attempt->nvrtc, attempt->source.text, attempt->symbol,
                                       &options, &attempt->diag);
  return NULL;
}

/* Kernels that spill are none to choose, unless there are no others. */
static void leave_out_spilling(struct tuner *tuner) {
  int good = 0;
  for (int i = 0; i < tuner->count; i++)
    good += tuner->attempts[i].variant.measured_ns ||
            (tuner->attempts[i].compiled.cubin && !tuner->attempts[i].compiled.spilled_bytes);
  for (int i = 0; i < tuner->count && good; i++) {
    struct attempt *attempt = &tuner->attempts[i];
    char reason[64];
    snprintf(reason, sizeof reason, "it spills %d bytes per thread", attempt->compiled.spilled_bytes);
    if (attempt->plan && attempt->compiled.spilled_bytes) leave_out(attempt, CB_ERR_LIMIT, reason);
  }
}

/* Attempts from `first` on. What finds no thread is compiled by this one. */
static enum cb_status compile_round(struct tuner *tuner, int first, struct cb_diag *diag) {
  pthread_t threads[CB_TUNE_VARIANTS + 1];
  int started[CB_TUNE_VARIANTS + 1] = {0};
  const double start = cb_seconds();
  enum cb_status s = CB_OK;
  for (int i = first; i < tuner->count && !s; i++)
    if (tuner->attempts[i].plan) s = emit(tuner, &tuner->attempts[i], diag);
  if (s) return s;
  for (int i = first + 1; i < tuner->count; i++)
    if (tuner->attempts[i].plan)
      started[i] = !pthread_create(&threads[i], NULL, compile, &tuner->attempts[i]);
  for (int i = first; i < tuner->count; i++)
    if (tuner->attempts[i].plan && !started[i]) compile(&tuner->attempts[i]);
  for (int i = first; i < tuner->count; i++)
    if (started[i]) pthread_join(threads[i], NULL);
  for (int i = first; i < tuner->count && !s; i++) {
    struct attempt *attempt = &tuner->attempts[i];
    if (!attempt->status) continue;
    if (is_its_own(attempt->status))
      leave_out(attempt, attempt->status, attempt->diag.message);
    else
      s = cb_fail_lines(diag, attempt->status, attempt->diag.message);
  }
  leave_out_spilling(tuner);
  if (cb_seconds() - start > tuner->preparing) tuner->preparing = cb_seconds() - start;
  return s;
}

/* ---- timing */

struct products {
  const struct cb_operator *op;
  double beta;
  cb_device_ptr x, y;
};

static enum cb_status enqueue(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct products *products = user;
  return cb_operator_multiply(products->op, 1, products->x, products->beta, products->y, stream, diag);
}

/* The first that is timed is timed twice: the GPU's clocks may have been down before. */
static enum cb_status time_products(struct tuner *tuner, struct attempt *attempt,
                                    const struct cb_operator *op, struct cb_diag *diag) {
  enum { BATCHES = 7 };
  struct products products = {op, attempt->plan->form == CB_FORM_ADD, tuner->x, tuner->y};
  int launches = 0;
  double us = 0;
  enum cb_status s = cb_timer_launches(&launches, &tuner->timer, enqueue, &products, diag);
  if (!s && !tuner->warm) s = cb_timer_measure(&us, &tuner->timer, enqueue, &products, launches, 1, diag);
  tuner->warm = 1;
  if (!s) s = cb_timer_measure(&us, &tuner->timer, enqueue, &products, launches, BATCHES, diag);
  attempt->variant.measured_ns = s ? 0 : (int64_t)(1e3 * us + 0.5);
  if (!s && attempt->variant.measured_ns < 1) attempt->variant.measured_ns = 1;
  return s;
}

static enum cb_status load(struct cb_operator **op, struct tuner *tuner, struct attempt *attempt,
                           struct cb_diag *diag) {
  const struct cb_tune_request *request = tuner->request;
  const struct cb_label label = {attempt->symbol, attempt->symbol, request->pattern};
  struct cb_blob blob = {0};
  struct cb_image image = {0};
  const struct cb_image_parts parts = {.plan = attempt->plan,
                                       .label = &label,
                                       .blob = &blob,
                                       .source = &attempt->source,
                                       .cubin = attempt->compiled.cubin,
                                       .cubin_bytes = attempt->compiled.cubin_bytes};
  enum cb_status s =
      cb_pack_mapped(&blob, NULL, attempt->plan, attempt->assignment, tuner->values, request->pattern, diag);
  if (!s) s = cb_image_from_plan(&image, &parts, diag);
  if (!s) s = cb_operator_load(op, request->device, &image, 0, diag);
  cb_image_release(&image);
  cb_blob_release(&blob);
  return s;
}

/* Packs, loads, times, frees. */
static enum cb_status time_attempt(struct tuner *tuner, struct attempt *attempt, struct cb_diag *diag) {
  struct cb_operator *op = NULL;
  const double start = cb_seconds();
  enum cb_status s = load(&op, tuner, attempt, diag);
  const double loading = cb_seconds() - start;
  if (!s) s = time_products(tuner, attempt, op, diag);
  cb_operator_free(op);
  if (loading > tuner->preparing) tuner->preparing = loading;
  if (!s || !is_its_own(s)) return s;
  leave_out(attempt, s, diag->message);
  diag->message[0] = 0;
  return CB_OK;
}

/* The attempts that lost are let go of as soon as it is known. */
static void drop_losers(struct tuner *tuner) {
  const int best = fastest(tuner);
  for (int i = 0; i < tuner->count && best >= 0; i++)
    if (i != best && tuner->attempts[i].variant.measured_ns) drop(&tuner->attempts[i]);
}

static void leave_unpaid(struct tuner *tuner, struct attempt *attempt) {
  leave_out(attempt, CB_OK, "the expected products would not repay the time that timing takes");
  tuner->cut_short = 1;
}

/* Compiles and times the attempts from `first` on that pay. */
static enum cb_status run_round(struct tuner *tuner, int first, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  for (int i = first; i < tuner->count; i++)
    if (i && !can_repay(tuner, &tuner->attempts[i])) leave_unpaid(tuner, &tuner->attempts[i]);
  int paying = 0;
  for (int i = first; i < tuner->count; i++) paying += i && tuner->attempts[i].plan;
  if (!first && !paying && tuner->request->expected_products) return CB_OK; /* nothing to choose from */
  s = compile_round(tuner, first, diag);
  for (int i = first; i < tuner->count && !s; i++) {
    struct attempt *attempt = &tuner->attempts[i];
    if (!attempt->plan) continue;
    if (i && fastest(tuner) >= 0 && !can_repay(tuner, attempt))
      leave_unpaid(tuner, attempt);
    else
      s = time_attempt(tuner, attempt, diag);
    drop_losers(tuner);
  }
  return s;
}

/* ---- neighbours of the fastest */

/* A number that a layout says in its plan's line, and the option that sets it. */
static const struct knob {
  const char *layout, *fact, *option;
  int least, most;
  int doubles; /* 1: neighbours are half and twice; 0: two less and two more */
} knob_table[] = {
    {"sell", "lanes", "sell-lanes", 1, 32, 1},
    {"blocks", "lanes", "block-lanes", 1, 32, 1},
    {"merge", "items", "merge-items", 3, 15, 0},
    {NULL, NULL, NULL, 0, 0, 0},
};

/* What the plan's first region says of it; 0: nothing, or no number. */
static int knob_value(const struct knob *knob, const struct cb_plan *plan) {
  const struct cb_region *region = plan->regions;
  if (!plan->regions_count || strcmp(region->layout, knob->layout)) return 0;
  for (int i = 0; i < region->facts_count; i++)
    if (!strcmp(region->facts[i].key, knob->fact)) return atoi(region->facts[i].value);
  return 0;
}

/* The caller's choice stays. */
static int is_free(const struct cb_options *options, const char *name) {
  for (const struct cb_option *option = cb_option_table; option->name; option++)
    if (!strcmp(option->name, name))
      return *(const int64_t *)((const char *)options + option->offset) == option->standard;
  return 0;
}

static int is_known(const struct tuner *tuner, const struct attempt *attempt) {
  for (int i = 0; i < tuner->count; i++)
    if (!memcmp(&tuner->attempts[i].hash, &attempt->hash, sizeof attempt->hash)) return 1;
  return 0;
}

/* Tries the recipe of attempt `best` with the knob at `value`. */
static enum cb_status plan_neighbour(struct tuner *tuner, int best, const struct knob *knob, int value,
                                     struct cb_diag *diag) {
  char settings[sizeof tuner->attempts[0].variant.settings];
  if (value < knob->least || value > knob->most || tuner->count >= CB_TUNE_VARIANTS) return CB_OK;
  snprintf(settings, sizeof settings, "%s=%d", knob->option, value);
  const enum cb_status s = plan(tuner, tuner->attempts[best].variant.recipe, settings, diag);
  if (s == CB_ERR_LIMIT || s == CB_ERR_UNSUPPORTED || s == CB_ERR_ARGUMENT) {
    diag->message[0] = 0; /* no such plan */
    return CB_OK;
  }
  if (s) return s;
  const struct attempt *attempt = &tuner->attempts[tuner->count];
  if (is_known(tuner, attempt) || attempt->variant.predicted_ns > FACTOR * best_ns(tuner))
    drop(&tuner->attempts[tuner->count]);
  else
    tuner->count++;
  return CB_OK;
}

static enum cb_status plan_neighbours(struct tuner *tuner, int best, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  for (const struct knob *knob = knob_table; knob->layout && !s; knob++) {
    const int value = knob_value(knob, tuner->attempts[best].plan);
    if (!value || !is_free(tuner->request->options, knob->option)) continue;
    s = plan_neighbour(tuner, best, knob, knob->doubles ? 2 * value : value + 2, diag);
    if (!s) s = plan_neighbour(tuner, best, knob, knob->doubles ? value / 2 : value - 2, diag);
  }
  return s;
}

/* As long as a neighbour was faster. */
static enum cb_status climb(struct tuner *tuner, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  for (int best = fastest(tuner), before = -1; best >= 0 && best != before && !s; best = fastest(tuner)) {
    const int first = tuner->count;
    before = best;
    s = plan_neighbours(tuner, best, diag);
    if (!s && tuner->count > first) s = run_round(tuner, first, diag);
  }
  return s;
}

/* ---- the GPU's part */

/* x as products usually have it: numbers, none of them special. y of zeros. */
static enum cb_status make_vectors(struct tuner *tuner, struct cb_diag *diag) {
  const struct cb_device *device = tuner->request->device;
  const struct cb_plan *plan = tuner->attempts[0].plan;
  const size_t width = cb_type_size(plan->vector_type);
  const size_t x_bytes = width * (size_t)plan->cols, y_bytes = width * (size_t)plan->rows;
  enum cb_status s = cb_device_check_room(device, x_bytes + y_bytes, "timing products with x and y", diag);
  if (!s) s = cb_available_check(x_bytes, "x of a product", diag);
  if (s) return s;
  void *x = cb_alloc(x_bytes, 1);
  if (!x) return cb_fail_memory(diag, "x", x_bytes);
  for (int64_t i = 0; i < plan->cols; i++) cb_real_set(x, plan->vector_type, i, cb_selftest_x((uint64_t)i));
  s = cb_device_alloc(device, &tuner->x, x_bytes, "x", diag);
  if (!s) s = cb_device_alloc(device, &tuner->y, y_bytes, "y", diag);
  if (!s) s = cb_device_upload(device, tuner->x, x, x_bytes, "x", diag);
  if (!s) s = cb_device_fill(device, tuner->y, 0, y_bytes, diag);
  cb_free(x);
  return s;
}

/* Numbers in place of values that are not on the host. */
static enum cb_status make_values(struct tuner *tuner, struct cb_diag *diag) {
  const struct cb_csr *csr = tuner->request->csr;
  tuner->values = csr->values;
  if (csr->values) return CB_OK;
  tuner->values = tuner->own_values = cb_alloc((size_t)csr->nnz, sizeof *tuner->own_values);
  if (!tuner->own_values) return cb_fail_memory(diag, "values", (unsigned long long)csr->nnz * 8);
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < csr->nnz; k++) tuner->own_values[k] = 1 + 0.25 * cb_selftest_x((uint64_t)k);
  return CB_OK;
}

static enum cb_status open_gpu(struct tuner *tuner, struct cb_diag *diag) {
  const struct cb_device *device = tuner->request->device;
  enum cb_status s = cb_driver_check(
      device->driver, device->driver->call.stream_create(&tuner->stream, CB_CU_STREAM_NON_BLOCKING), diag,
      "make a stream");
  if (s) tuner->stream = NULL;
  if (!s) s = cb_timer_open(&tuner->timer, device, tuner->stream, diag);
  if (!s) s = make_vectors(tuner, diag);
  return s ? s : cb_device_wait(device, "preparing vectors", diag);
}

static void close_gpu(struct tuner *tuner) {
  const struct cb_device *device = tuner->request->device;
  cb_device_free(device, tuner->x);
  cb_device_free(device, tuner->y);
  cb_timer_close(&tuner->timer);
  if (tuner->stream) device->driver->call.stream_destroy(tuner->stream);
}

static enum cb_status race(struct tuner *tuner, struct cb_diag *diag) {
  enum cb_status s = make_values(tuner, diag);
  if (!s) s = cb_device_enter(tuner->request->device, diag);
  if (s) return s;
  s = open_gpu(tuner, diag);
  if (!s) s = run_round(tuner, 0, diag);
  if (!s) s = climb(tuner, diag);
  close_gpu(tuner);
  cb_device_leave(tuner->request->device);
  return s;
}

/* ---- the whole */

/* The fastest; without one, the first that nothing went wrong with: the model's choice. */
static enum cb_status hand_over(struct cb_tuned *tuned, struct tuner *tuner, struct cb_diag *diag) {
  int winner = fastest(tuner);
  tuned->tuning.count = tuner->count;
  tuned->tuning.cut_short = tuner->cut_short;
  for (int i = 0; i < tuner->count; i++) {
    tuned->tuning.variants[i] = tuner->attempts[i].variant;
    if (winner < 0 && tuner->attempts[i].plan) winner = i;
  }
  if (winner < 0) return cb_fail(diag, tuner->attempts[0].status, "%s", tuner->attempts[0].variant.reason);
  struct attempt *attempt = &tuner->attempts[winner];
  tuned->tuning.winner = winner;
  tuned->options = *tuner->request->options;
  tuned->options.tune = CB_TUNE_MODEL;
  const enum cb_status s = cb_variant_apply(&tuned->options, &attempt->variant, diag);
  if (s) return s;
  tuned->plan = attempt->plan;
  tuned->assignment = attempt->assignment;
  tuned->source = attempt->source;
  tuned->compiled = attempt->compiled;
  memcpy(tuned->symbol, attempt->symbol, sizeof tuned->symbol);
  tuned->plan->candidates_count = tuner->candidates_count;
  memcpy(tuned->plan->candidates, tuner->candidates, sizeof tuner->candidates);
  attempt->plan = NULL;
  attempt->assignment = NULL;
  attempt->source = (struct cb_source){0};
  attempt->compiled = (struct cb_compiled){0};
  return CB_OK;
}

enum cb_status cb_tune(struct cb_tuned *tuned, const struct cb_tune_request *request, struct cb_diag *diag) {
  const double start = cb_seconds();
  struct tuner *tuner = cb_calloc(1, sizeof *tuner);
  struct cb_diag own = {0}; /* messages are read here */
  *tuned = (struct cb_tuned){0};
  if (!tuner) return cb_fail_memory(diag, "tuning", sizeof *tuner);
  if (!diag) diag = &own;
  tuner->request = request;
  enum cb_status s = plan_first(tuner, diag);
  if (!s && tuner->attempts[0].plan->launches_count) s = race(tuner, diag);
  if (!s) s = hand_over(tuned, tuner, diag);
  for (int i = 0; i <= CB_TUNE_VARIANTS; i++) drop(&tuner->attempts[i]);
  cb_free(tuner->own_values);
  cb_free(tuner);
  tuned->seconds = cb_seconds() - start;
  return s;
}

void cb_tuned_release(struct cb_tuned *tuned) {
  cb_compiled_release(&tuned->compiled);
  cb_source_release(&tuned->source);
  cb_assignment_free(tuned->assignment);
  cb_plan_free(tuned->plan);
  *tuned = (struct cb_tuned){0};
}

/* ---- as text */

static const char head[] = "cbgen tuning 1\n";

static void add_line(struct cb_text *text, const struct cb_variant *variant) {
  cb_text_add(text, "%s\t%s\t%lld\t%lld\t%s\n", variant->recipe, variant->settings,
              (long long)variant->predicted_ns, (long long)variant->measured_ns, variant->reason);
}

void cb_tuning_text(struct cb_text *text, const struct cb_tuning *tuning) {
  cb_text_add_string(text, head);
  add_line(text, &tuning->variants[tuning->winner]);
  for (int i = 0; i < tuning->count; i++)
    if (i != tuning->winner) add_line(text, &tuning->variants[i]);
}

/* One field up to `end`; returns what follows, NULL when it is not there or too long. */
static const char *take(char *field, size_t size, const char *at, const char *limit, char end) {
  const char *stop = at ? memchr(at, end, (size_t)(limit - at)) : NULL;
  if (!stop || (size_t)(stop - at) >= size || memchr(at, 0, (size_t)(stop - at))) return NULL;
  memcpy(field, at, (size_t)(stop - at));
  field[stop - at] = 0;
  return stop + 1;
}

static const char *take_number(int64_t *number, const char *at, const char *limit) {
  char digits[20], *end = digits;
  at = take(digits, sizeof digits, at, limit, '\t');
  if (at) *number = strtoll(digits, &end, 10);
  return at && end != digits && !*end && *number >= 0 ? at : NULL;
}

enum cb_status cb_tuning_parse(struct cb_tuning *tuning, const char *bytes, size_t length,
                               struct cb_diag *diag) {
  const char *at = bytes, *limit = bytes + length;
  struct cb_options options;
  struct cb_diag why = {0};
  *tuning = (struct cb_tuning){0};
  if (length < sizeof head - 1 || memcmp(bytes, head, sizeof head - 1))
    return cb_fail(diag, CB_ERR_FORMAT, "it is no text of a tuning");
  for (at += sizeof head - 1; at && at < limit && tuning->count < CB_TUNE_VARIANTS; tuning->count++) {
    struct cb_variant *variant = &tuning->variants[tuning->count];
    at = take(variant->recipe, sizeof variant->recipe, at, limit, '\t');
    at = take(variant->settings, sizeof variant->settings, at, limit, '\t');
    at = take_number(&variant->predicted_ns, at, limit);
    at = take_number(&variant->measured_ns, at, limit);
    at = take(variant->reason, sizeof variant->reason, at, limit, '\n');
  }
  if (!tuning->count || at != limit) return cb_fail(diag, CB_ERR_FORMAT, "the text of a tuning is damaged");
  cb_options_default(&options);
  if (!cb_variant_apply(&options, &tuning->variants[0], &why)) return CB_OK;
  return cb_fail_lines(diag, CB_ERR_FORMAT, why.message);
}
