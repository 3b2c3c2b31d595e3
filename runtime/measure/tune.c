// SPDX-License-Identifier: Apache-2.0
/* Tuning: see tune.h. An attempt is a variant that is being planned, emitted, compiled and timed. A round is the
 * attempts that were planned since the last round. Begin to read at cb_tune, at the end. */
#include "runtime/measure/tune.h"

#include "analysis/plan/blob.h"
#include "analysis/plan/recipe.h"
#include "base/available.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/real.h"
#include "runtime/measure/timer.h"
#include "runtime/verify/oracle.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FACTOR = 2 }; /* variants with a prediction above FACTOR times that of the best are not tried */

struct attempt {
  struct cb_variant variant;
  struct cb_made made; /* empty once the attempt has lost or failed */
  struct cb_hash hash; /* of the plan: where two recipes give the same plan, it is timed once */
  const struct cb_make_request *request; /* the tuner's */
  enum cb_status status;                 /* what came of it */
  struct cb_diag diag;
};

struct tuner {
  const struct cb_tune_request *request;
  struct cb_make_request make; /* of each kernel */
  int count;                   /* attempts, in the order of the tuning's variants */
  struct attempt attempts[CB_TUNE_VARIANTS + 1];
  int candidates_count; /* of the search, for the winner's plan */
  struct cb_candidate candidates[CB_MAX_CANDIDATES];
  const double *values; /* the matrix's, or others in their place */
  double *own_values;
  double preparing; /* most seconds that compiling, packing and loading an attempt has taken; 0: none so far */
  /* on the GPU, whose context is current */
  struct CUstream_st *stream;
  struct cb_timer timer;
  cb_device_ptr x, y, ones; /* ones: where more than products is timed */
  int warm, cut_short;
};

/* ---- variants */

enum cb_status cb_variant_apply(struct cb_options *options, const struct cb_variant *variant,
                                struct cb_diag *diag) {
  const struct cb_recipe *recipe;
  enum cb_status s = cb_recipe_find(&recipe, variant->recipe, diag);
  if (s) return s;
  options->recipe = recipe->name;
  s = cb_options_apply(options, variant->settings, diag);
  return s ? s : cb_options_check(options, diag);
}

void cb_variant_name(struct cb_text *text, const struct cb_variant *variant) {
  cb_text_add(text, "%s%s%s", variant->recipe, *variant->settings ? " " : "", variant->settings);
}

/* ---- attempts */

/* Whether the error concerns this variant alone, so that others may be tried. */
static int is_its_own(enum cb_status s) {
  return s == CB_ERR_COMPILE || s == CB_ERR_LIMIT || s == CB_ERR_UNSUPPORTED || s == CB_ERR_MEMORY;
}

/* On one line. */
static void note_reason(struct attempt *attempt, const char *reason) {
  snprintf(attempt->variant.reason, sizeof attempt->variant.reason, "%.159s", reason);
  for (char *c = attempt->variant.reason; *c; c++)
    if ((unsigned char)*c < ' ') *c = ' ';
}

/* Gives an attempt up. */
static void leave_out(struct attempt *attempt, enum cb_status status, const char *reason) {
  note_reason(attempt, reason);
  attempt->status = status;
  cb_made_release(&attempt->made);
}

/* Plans the variant, as a new attempt behind the last. */
static enum cb_status plan(struct tuner *tuner, const char *recipe, const char *settings,
                           struct cb_diag *diag) {
  const struct cb_tune_request *request = tuner->request;
  struct attempt *attempt = &tuner->attempts[tuner->count];
  struct cb_options options = *request->options;
  *attempt = (struct attempt){.request = &tuner->make};
  snprintf(attempt->variant.recipe, sizeof attempt->variant.recipe, "%s", recipe);
  snprintf(attempt->variant.settings, sizeof attempt->variant.settings, "%s", settings);
  options.tune = CB_TUNE_MODEL;
  enum cb_status s = cb_variant_apply(&options, &attempt->variant, diag);
  if (!s)
    s = cb_plan_build(&attempt->made.plan, &attempt->made.assignment, request->csr, &request->device->target,
                      &options, diag);
  if (s) return s;
  attempt->variant.predicted_ns = attempt->made.plan->cost.ns;
  attempt->hash = attempt->made.plan->hash;
  return CB_OK;
}

/* ---- the first round: the recipes of the search */

static void drop_last(struct tuner *tuner) {
  cb_made_release(&tuner->attempts[--tuner->count].made);
}

/* Moves the new attempt, which is behind the last, to its place by prediction. Of two equal ones the earlier is first,
 * as in the search. */
static void insert(struct tuner *tuner) {
  const struct attempt moved = tuner->attempts[tuner->count];
  int at = tuner->count++;
  for (; at && moved.variant.predicted_ns < tuner->attempts[at - 1].variant.predicted_ns; at--)
    tuner->attempts[at] = tuner->attempts[at - 1];
  tuner->attempts[at] = moved;
  if (tuner->count > CB_TUNE_RECIPES) drop_last(tuner);
}

static void note_candidate(struct tuner *tuner, const char *recipe, const char *refusal) {
  struct cb_candidate *candidate = &tuner->candidates[tuner->candidates_count++];
  if (!refusal) *candidate = cb_plan_candidate(tuner->attempts[tuner->count].made.plan);
  candidate->recipe = recipe;
  if (refusal) snprintf(candidate->refusal, sizeof candidate->refusal, "%.239s", refusal);
}

static enum cb_status plan_recipe(struct tuner *tuner, const char *recipe, struct cb_diag *diag) {
  char reason[sizeof tuner->candidates[0].refusal];
  const struct cb_tune_request *request = tuner->request;
  if (tuner->count && cb_plan_is_pruned(recipe, request->csr, &request->device->target, request->options,
                                        FACTOR * tuner->attempts[0].variant.predicted_ns, reason, sizeof reason)) {
    note_candidate(tuner, recipe, reason);
    return CB_OK;
  }
  const enum cb_status s = plan(tuner, recipe, "", diag);
  const int refused = s == CB_ERR_LIMIT || s == CB_ERR_UNSUPPORTED;
  if (s && !refused) return s;
  note_candidate(tuner, recipe, refused ? diag->message : NULL);
  if (!refused) insert(tuner);
  return CB_OK;
}

static enum cb_status plan_recipes(struct tuner *tuner, struct cb_diag *diag) {
  const int64_t nonzeros = tuner->request->csr->nnz;
  const int vectors = (int)tuner->request->options->vectors;
  const struct cb_recipe *recipe;
  enum cb_status s = CB_OK;
  for (int i = 0; i < CB_MAX_CANDIDATES && (recipe = cb_recipe_searched(i, nonzeros, vectors)) && !s; i++)
    s = plan_recipe(tuner, recipe->name, diag);
  if (s) return s;
  if (!tuner->count) return cb_fail(diag, CB_ERR_LIMIT, "no recipe fits this matrix");
  diag->message[0] = 0; /* of refusals */
  while (tuner->attempts[tuner->count - 1].variant.predicted_ns >
         FACTOR * tuner->attempts[0].variant.predicted_ns)
    drop_last(tuner);
  return CB_OK;
}

static enum cb_status plan_first(struct tuner *tuner, struct cb_diag *diag) {
  const struct cb_recipe *recipe;
  enum cb_status s = cb_recipe_find(&recipe, tuner->request->options->recipe, diag);
  if (s) return s;
  if (!recipe->root) return plan_recipes(tuner, diag);
  s = plan(tuner, recipe->name, "", diag);
  tuner->count += !s;
  return s;
}

/* ---- what pays */

static int fastest(const struct tuner *tuner) {
  int best = -1;
  for (int i = 0; i < tuner->count; i++) {
    const int64_t ns = tuner->attempts[i].variant.measured_ns;
    if (tuner->attempts[i].made.plan && ns && (best < 0 || ns < tuner->attempts[best].variant.measured_ns))
      best = i;
  }
  return best;
}

/* Nanoseconds of a product with the best that is known. */
static int64_t best_ns(const struct tuner *tuner) {
  const int best = fastest(tuner);
  return best < 0 ? tuner->attempts[0].variant.predicted_ns : tuner->attempts[best].variant.measured_ns;
}

/* How many seconds it will take to time an attempt: judged by those before, or by its size. */
static double preparation_seconds(const struct tuner *tuner, const struct attempt *attempt) {
  enum { PRODUCTS = 300 };
  const double compiling = 0.08, bytes_per_second = 1e9;
  const double preparing = tuner->preparing > 0
                               ? tuner->preparing
                               : compiling + (double)cb_plan_bytes(attempt->made.plan) / bytes_per_second;
  return preparing + PRODUCTS * 1e-9 * (double)attempt->variant.predicted_ns;
}

/* Whether the expected products could repay it, if it took half of what is predicted. */
static int can_repay(const struct tuner *tuner, const struct attempt *attempt) {
  const int64_t products = tuner->request->expected_products;
  const double gain = (double)best_ns(tuner) - 0.5 * (double)attempt->variant.predicted_ns;
  return !products || 1e-9 * gain * (double)products > preparation_seconds(tuner, attempt);
}

/* ---- text and compilation: a thread for each */

static void *compile(void *taken) {
  struct attempt *attempt = taken;
  attempt->status = cb_make_binary(&attempt->made, attempt->request, &attempt->diag);
  return NULL;
}

/* Kernels that spill are not chosen, unless there are no others. */
static void leave_out_spilling(struct tuner *tuner) {
  int good = 0;
  for (int i = 0; i < tuner->count; i++)
    good += tuner->attempts[i].variant.measured_ns ||
            (tuner->attempts[i].made.compiled.cubin && !tuner->attempts[i].made.compiled.spilled_bytes);
  for (int i = 0; i < tuner->count && good; i++) {
    struct attempt *attempt = &tuner->attempts[i];
    const int bytes = attempt->made.compiled.spilled_bytes;
    char reason[64];
    snprintf(reason, sizeof reason, "it spills %d bytes per thread", bytes);
    if (attempt->made.plan && bytes) leave_out(attempt, CB_ERR_LIMIT, reason);
  }
}

/* Attempts for which there is no thread are compiled by this one. */
static void compile_all(struct tuner *tuner, int first) {
  pthread_t threads[CB_TUNE_VARIANTS + 1];
  int started[CB_TUNE_VARIANTS + 1] = {0};
  for (int i = first + 1; i < tuner->count; i++)
    if (tuner->attempts[i].made.plan)
      started[i] = !pthread_create(&threads[i], NULL, compile, &tuner->attempts[i]);
  for (int i = first; i < tuner->count; i++)
    if (tuner->attempts[i].made.plan && !started[i]) compile(&tuner->attempts[i]);
  for (int i = first; i < tuner->count; i++)
    if (started[i]) pthread_join(threads[i], NULL);
}

/* Attempts from `first` on. */
static enum cb_status compile_round(struct tuner *tuner, int first, struct cb_diag *diag) {
  const double start = cb_seconds();
  enum cb_status s = CB_OK;
  for (int i = first; i < tuner->count && !s; i++)
    if (tuner->attempts[i].made.plan) s = cb_make_text(&tuner->attempts[i].made, &tuner->make, diag);
  if (s) return s;
  compile_all(tuner, first);
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

/* The first attempt is timed twice: the GPU's clocks may have been low before. */
static enum cb_status time_products(struct tuner *tuner, struct attempt *attempt,
                                    const struct cb_operator *op, struct cb_diag *diag) {
  enum { BATCHES = 7 };
  struct products products = {op, attempt->made.plan->form == CB_FORM_ADD, tuner->x, tuner->y};
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

/* The image refers to what the attempt has made. */
static enum cb_status load(struct cb_operator **op, struct cb_image *image, struct tuner *tuner,
                           struct attempt *attempt, struct cb_diag *diag) {
  const struct cb_tune_request *request = tuner->request;
  const struct cb_made *made = &attempt->made;
  const struct cb_label label = {made->symbol, made->symbol, request->pattern};
  struct cb_blob blob = {0};
  const struct cb_image_parts parts = {.plan = made->plan,
                                       .label = &label,
                                       .blob = &blob,
                                       .source = &made->source,
                                       .cubin = made->compiled.cubin,
                                       .cubin_bytes = made->compiled.cubin_bytes};
  enum cb_status s =
      cb_pack_mapped(&blob, NULL, made->plan, made->assignment, tuner->values, request->pattern, diag);
  if (!s) s = cb_image_from_plan(image, &parts, diag);
  if (!s) s = cb_operator_load(op, request->device, image, 0, diag);
  cb_blob_release(&blob);
  return s;
}

/* Packs, loads, times, frees. */
static enum cb_status time_attempt(struct tuner *tuner, struct attempt *attempt, struct cb_diag *diag) {
  struct cb_operator *op = NULL;
  struct cb_image image = {0};
  const double start = cb_seconds();
  enum cb_status s = load(&op, &image, tuner, attempt, diag);
  const double loading = cb_seconds() - start;
  if (!s) s = time_products(tuner, attempt, op, diag);
  cb_operator_free(op);
  cb_image_release(&image);
  if (loading > tuner->preparing) tuner->preparing = loading;
  if (!s || !is_its_own(s)) return s;
  leave_out(attempt, s, diag->message);
  diag->message[0] = 0;
  return CB_OK;
}

/* Releases attempts as soon as it is known that they are not the fastest. */
static void drop_losers(struct tuner *tuner) {
  const int best = fastest(tuner);
  for (int i = 0; i < tuner->count && best >= 0; i++)
    if (i != best && tuner->attempts[i].variant.measured_ns) cb_made_release(&tuner->attempts[i].made);
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
  for (int i = first; i < tuner->count; i++) paying += i && tuner->attempts[i].made.plan;
  if (!first && !paying && tuner->request->expected_products) return CB_OK; /* nothing to choose from */
  s = compile_round(tuner, first, diag);
  for (int i = first; i < tuner->count && !s; i++) {
    struct attempt *attempt = &tuner->attempts[i];
    if (!attempt->made.plan) continue;
    if (i && fastest(tuner) >= 0 && !can_repay(tuner, attempt))
      leave_unpaid(tuner, attempt);
    else
      s = time_attempt(tuner, attempt, diag);
    drop_losers(tuner);
  }
  return s;
}

/* ---- neighbours of the fastest */

/* The number that the plan's first region says it took for an option; 0: none. */
static int64_t taken(const struct cb_plan *plan, const struct cb_option *option) {
  for (int i = 0; i < plan->regions[0].facts_count; i++)
    if (!strcmp(plan->regions[0].facts[i].key, option->tuned_by)) return atoi(plan->regions[0].facts[i].value);
  return 0;
}

static int is_known(const struct tuner *tuner, const struct attempt *attempt) {
  for (int i = 0; i < tuner->count; i++)
    if (!memcmp(&tuner->attempts[i].hash, &attempt->hash, sizeof attempt->hash)) return 1;
  return 0;
}

/* Tries the recipe of attempt `best` with the option at `value`. */
static enum cb_status plan_neighbour(struct tuner *tuner, int best, const struct cb_option *option, int64_t value,
                                     struct cb_diag *diag) {
  char settings[sizeof tuner->attempts[0].variant.settings];
  if (value == CB_NO_NUMBER || tuner->count >= CB_TUNE_VARIANTS) return CB_OK;
  snprintf(settings, sizeof settings, "%s=%lld", option->name, (long long)value);
  const enum cb_status s = plan(tuner, tuner->attempts[best].variant.recipe, settings, diag);
  if (s == CB_ERR_LIMIT || s == CB_ERR_UNSUPPORTED || s == CB_ERR_ARGUMENT) {
    diag->message[0] = 0; /* no such plan */
    return CB_OK;
  }
  if (s) return s;
  struct attempt *attempt = &tuner->attempts[tuner->count];
  if (is_known(tuner, attempt) || attempt->variant.predicted_ns > FACTOR * best_ns(tuner))
    cb_made_release(&attempt->made);
  else
    tuner->count++;
  return CB_OK;
}

/* The options of the layout of the plan's first region; one that the caller has set stays. */
static enum cb_status plan_neighbours(struct tuner *tuner, int best, struct cb_diag *diag) {
  const struct cb_plan *plan = tuner->attempts[best].made.plan;
  const struct cb_layout *layout = plan->regions_count ? cb_layout_find(plan->regions[0].layout) : NULL;
  enum cb_status s = CB_OK;
  for (int i = 0; layout && i < layout->options_count && !s; i++) {
    const struct cb_option *option = &layout->options[i];
    const int is_free = cb_settings(tuner->request->options, layout)[i] == option->standard;
    const int64_t value = option->tuned_by && is_free ? taken(plan, option) : 0;
    if (!value) continue;
    s = plan_neighbour(tuner, best, option, cb_option_neighbour(option, value, 1), diag);
    if (!s) s = plan_neighbour(tuner, best, option, cb_option_neighbour(option, value, -1), diag);
  }
  return s;
}

/* Goes on as long as a neighbour was faster. */
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

/* ---- what the operator is for, where that is more than products */

/* Of two that are as fast the earlier. */
static int is_before(const struct attempt *one, const struct attempt *other) {
  const int64_t ns = one->variant.measured_ns, than = other->variant.measured_ns;
  return ns != than ? ns < than : one < other;
}

/* The fastest of its recipe, by products. */
static int leads_its_recipe(const struct tuner *tuner, const struct attempt *attempt) {
  for (int i = 0; i < tuner->count; i++) {
    const struct attempt *other = &tuner->attempts[i];
    if (!strcmp(other->variant.recipe, attempt->variant.recipe) && other->variant.measured_ns &&
        is_before(other, attempt))
      return 0;
  }
  return attempt->variant.measured_ns > 0;
}

/* The fastest of those that come behind `before`; NULL: there is none. */
static struct attempt *next_leader(struct tuner *tuner, const struct attempt *before) {
  struct attempt *found = NULL;
  for (int i = 0; i < tuner->count; i++) {
    struct attempt *attempt = &tuner->attempts[i];
    if (leads_its_recipe(tuner, attempt) && (!before || is_before(before, attempt)) &&
        (!found || is_before(attempt, found)))
      found = attempt;
  }
  return found;
}

/* The recipe's own plan, where the leader is a neighbour of it: planned for what the operator is for, it may be the
 * faster one there. NULL: the leader is it. */
static struct attempt *own_plan(struct tuner *tuner, const struct attempt *leads) {
  for (int i = 0; i < tuner->count; i++) {
    struct attempt *attempt = &tuner->attempts[i];
    if (attempt != leads && !*attempt->variant.settings && attempt->variant.measured_ns &&
        !strcmp(attempt->variant.recipe, leads->variant.recipe))
      return attempt;
  }
  return NULL;
}

/* Plan, text and binary of an attempt that was dropped, or only planned. */
static enum cb_status make_again(struct tuner *tuner, struct attempt *attempt, struct cb_diag *diag) {
  const struct cb_tune_request *request = tuner->request;
  struct cb_options options = *request->options;
  enum cb_status s = CB_OK;
  if (attempt->made.compiled.cubin) return CB_OK;
  cb_made_release(&attempt->made);
  options.tune = CB_TUNE_MODEL;
  s = cb_variant_apply(&options, &attempt->variant, diag);
  if (!s)
    s = cb_plan_build(&attempt->made.plan, &attempt->made.assignment, request->csr, &request->device->target, &options,
                      diag);
  if (!s) s = cb_make_text(&attempt->made, &tuner->make, diag);
  return s ? s : cb_make_binary(&attempt->made, &tuner->make, diag);
}

static enum cb_status time_whole(struct tuner *tuner, struct attempt *attempt, struct cb_diag *diag) {
  struct cb_operator *op = NULL;
  struct cb_image image = {0};
  double us = 0;
  enum cb_status s = make_again(tuner, attempt, diag);
  if (!s) s = load(&op, &image, tuner, attempt, diag);
  const struct cb_tune_whole whole = {&image, op, tuner->ones, tuner->x, tuner->y, tuner->stream};
  if (!s) s = tuner->request->time_whole(tuner->request->user, &us, &whole, diag);
  cb_operator_free(op);
  cb_image_release(&image);
  if (!s) attempt->variant.whole_ns = (int64_t)(1e3 * us + 0.5);
  if (!s || !is_its_own(s)) return s;
  note_reason(attempt, diag->message);
  diag->message[0] = 0;
  return CB_OK;
}

static int best_whole(const struct tuner *tuner) {
  int best = -1;
  for (int i = 0; i < tuner->count; i++) {
    const int64_t ns = tuner->attempts[i].variant.whole_ns;
    if (ns && (best < 0 || ns < tuner->attempts[best].variant.whole_ns)) best = i;
  }
  return best;
}

/* Where none can be timed, the fastest by products is there still. */
static enum cb_status race_wholes(struct tuner *tuner, struct cb_diag *diag) {
  enum { LEADERS = 3 };
  struct attempt *runners[2 * LEADERS];
  int count = 0;
  enum cb_status s = CB_OK;
  for (struct attempt *leads = NULL; count < LEADERS && (leads = next_leader(tuner, leads));) runners[count++] = leads;
  for (int i = 0, leaders = count; i < leaders; i++) {
    struct attempt *own = own_plan(tuner, runners[i]);
    if (own) runners[count++] = own;
  }
  for (int i = 0; i < count && !s; i++) {
    s = time_whole(tuner, runners[i], diag);
    const int best = best_whole(tuner);
    for (int k = 0; k < tuner->count && best >= 0; k++)
      if (k != best && (tuner->attempts[k].variant.whole_ns || k == fastest(tuner)))
        cb_made_release(&tuner->attempts[k].made);
  }
  return s;
}

/* ---- the GPU's part */

/* x as products usually have it: numbers, none of them special. y of zeros. */
static enum cb_status make_vectors(struct tuner *tuner, struct cb_diag *diag) {
  const struct cb_device *device = tuner->request->device;
  const struct cb_plan *plan = tuner->attempts[0].made.plan;
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
  for (int64_t i = 0; i < plan->cols; i++) cb_real_set(x, plan->vector_type, i, 1);
  if (!s && tuner->request->time_whole) {
    s = cb_device_alloc(device, &tuner->ones, x_bytes, "ones", diag);
    if (!s) s = cb_device_upload(device, tuner->ones, x, x_bytes, "ones", diag);
  }
  cb_free(x);
  return s;
}

/* A symmetric matrix's are a system that solvers have work with. */
static void make_system(double *values, const struct cb_csr *csr) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      const int64_t others = cb_csr_row(csr, row + 1) - cb_csr_row(csr, row) - 1;
      values[k] = csr->col_idx[k] == row ? 1 + 1.001 * (double)others : -1;
    }
}

/* Stands in for values that are not on the host. */
static enum cb_status make_values(struct tuner *tuner, struct cb_diag *diag) {
  const struct cb_csr *csr = tuner->request->csr;
  const int is_system = tuner->request->time_whole && tuner->request->options->values != CB_VALUES_FIXED &&
                        cb_csr_numbers(csr) == csr->nnz;
  tuner->values = csr->values;
  if (csr->values && !is_system) return CB_OK;
  const int64_t numbers = cb_csr_numbers(csr);
  tuner->values = tuner->own_values = cb_alloc((size_t)numbers, sizeof *tuner->own_values);
  if (!tuner->own_values) return cb_fail_memory(diag, "values", (unsigned long long)numbers * 8);
  if (is_system) {
    make_system(tuner->own_values, csr);
    return CB_OK;
  }
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < numbers; k++) tuner->own_values[k] = 1 + 0.25 * cb_selftest_x((uint64_t)k);
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
  cb_device_free(device, tuner->ones);
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
  if (!s && tuner->request->time_whole) s = race_wholes(tuner, diag);
  close_gpu(tuner);
  cb_device_leave(tuner->request->device);
  return s;
}

/* ---- the whole */

/* The fastest in what the operator is for; if none was timed, the first without an error, which is the cost model's
 * choice. -1: none. */
static int winner_of(const struct tuner *tuner) {
  const int whole = best_whole(tuner), winner = whole >= 0 ? whole : fastest(tuner);
  for (int i = 0; i < tuner->count && winner < 0; i++)
    if (tuner->attempts[i].made.plan) return i;
  return winner;
}

static enum cb_status hand_over(struct cb_tuned *tuned, struct tuner *tuner, struct cb_diag *diag) {
  const int winner = winner_of(tuner);
  tuned->tuning.count = tuner->count;
  tuned->tuning.cut_short = tuner->cut_short;
  for (int i = 0; i < tuner->count; i++) tuned->tuning.variants[i] = tuner->attempts[i].variant;
  if (winner < 0) return cb_fail(diag, tuner->attempts[0].status, "%s", tuner->attempts[0].variant.reason);
  struct attempt *attempt = &tuner->attempts[winner];
  tuned->tuning.winner = winner;
  tuned->options = *tuner->request->options;
  tuned->options.tune = CB_TUNE_MODEL;
  const enum cb_status s = cb_variant_apply(&tuned->options, &attempt->variant, diag);
  if (s) return s;
  tuned->made = attempt->made;
  attempt->made = (struct cb_made){0};
  tuned->made.plan->candidates_count = tuner->candidates_count;
  memcpy(tuned->made.plan->candidates, tuner->candidates, sizeof tuner->candidates);
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
  tuner->make = (struct cb_make_request){
      .nvrtc = request->nvrtc, .pattern = request->pattern, .name = request->name, .symbol = request->symbol};
  enum cb_status s = plan_first(tuner, diag);
  if (!s && tuner->attempts[0].made.plan->launches_count) s = race(tuner, diag);
  if (!s) s = hand_over(tuned, tuner, diag);
  for (int i = 0; i <= CB_TUNE_VARIANTS; i++) cb_made_release(&tuner->attempts[i].made);
  cb_free(tuner->own_values);
  cb_free(tuner);
  tuned->seconds = cb_seconds() - start;
  return s;
}

void cb_tuned_release(struct cb_tuned *tuned) {
  cb_made_release(&tuned->made);
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
