// SPDX-License-Identifier: Apache-2.0
/* Tuning's part in a compilation: see compile.h and tune.h. What was found is kept in an entry of the cache
 * of its own, whose section "tuning" is cb_tuning_text: values may change, and the operator's entry may go,
 * and nothing is timed again. */
#include "analysis/plan/recipe.h"
#include "base/memory.h"
#include "base/text.h"
#include "codegen/program/program.h"
#include "runtime/api/compile.h"
#include "runtime/cuda/ranges.h"
#include "runtime/measure/tune.h"

#include <stdio.h>
#include <string.h>

/* From 1 on. */
static int number_of(const char *method) {
  int number = 0;
  while (cb_program_name(number) && strcmp(cb_program_name(number), method) != 0) number++;
  return number + 1;
}

static struct cb_cache_subject subject_of(const struct cb_request *request) {
  struct cb_cache_subject subject = cb_request_subject(request, "tuning");
  subject.extras[subject.extras_count++] = (struct cb_cache_extra){"driver", request->session->driver->version};
  if (request->asked.solver)
    subject.extras[subject.extras_count++] = (struct cb_cache_extra){"solver", number_of(request->asked.solver)};
  return subject;
}

/* The winner's recipe and settings from now on. */
static enum cb_status follow(struct cb_work *work, const struct cb_tuning *tuning, const char *how) {
  const struct cb_variant *winner = &tuning->variants[tuning->winner];
  const enum cb_status s = cb_variant_apply(&work->request.options, winner, work->diag);
  work->request.options.tune = CB_TUNE_MODEL; /* the key of the operator is that of its recipe */
  work->info.measured_seconds = 1e-9 * (double)winner->measured_ns;
  cb_log(work->request.context, "tuning: %s: %s%s%s, %.2f us", how, winner->recipe, *winner->settings ? " " : "",
         winner->settings, 1e-3 * (double)winner->measured_ns);
  return s;
}

/* ---- what was found before */

static int recall(const struct cb_work *work, struct cb_hash key, struct cb_tuning *tuning) {
  struct cb_cache *cache = work->kept.cache;
  struct cb_cache_entry entry;
  struct cb_diag diag = {0};
  if (cb_cache_get(cache, key, &entry, &diag) != CB_CACHE_HIT) {
    if (*diag.message) cb_log(work->request.context, "tuning: %s", diag.message);
    return 0;
  }
  const struct cb_cache_section *section = cb_cache_section(&entry, "tuning");
  const int known = section && !cb_tuning_parse(tuning, section->bytes, (size_t)section->length, &diag);
  cb_cache_entry_release(&entry);
  if (known) return 1;
  cb_log(work->request.context, "tuning: the entry is of no use: %s", diag.message);
  cb_cache_remove(cache, key, NULL);
  return 0;
}

/* A race that was cut short for few products is run anew for more. */
static int is_final(const struct cb_tuning *tuning) {
  return !tuning->cut_short && tuning->variants[tuning->winner].measured_ns > 0;
}

static void remember(const struct cb_work *work, struct cb_hash key, const struct cb_tuned *tuned) {
  char name[80]; /* for lists */
  const struct cb_cache_label label = {name, work->request.session->device->target.model, NULL};
  struct cb_text text = {0}, fields = {0};
  if (!is_final(&tuned->tuning)) return;
  snprintf(name, sizeof name, "%.50s (tuning)", work->request.view.name);
  cb_tuning_text(&text, &tuned->tuning);
  CB_RANGE("cbgen: tune");
  const struct cb_cache_subject subject = subject_of(&work->request);
  const struct cb_cache_section sections[] = {
      cb_subject_section(&fields, &subject),
      {"plan", tuned->made.plan->line, (int64_t)strlen(tuned->made.plan->line)},
      {"tuning", text.bytes, (int64_t)text.length},
  };
  if (!text.failed) cb_cache_put(work->kept.cache, key, &label, sections, 3, NULL);
  cb_text_release(&fields);
  cb_text_release(&text);
}

/* ---- the race */

static void tell(const struct cb_work *work, const struct cb_tuning *tuning) {
  for (int i = 0; i < tuning->count; i++) {
    const struct cb_variant *variant = &tuning->variants[i];
    char whole[48] = "";
    if (variant->whole_ns)
      snprintf(whole, sizeof whole, ", an iteration %.2f us", 1e-3 * (double)variant->whole_ns);
    cb_log(work->request.context, "tuning: %s%s%s: predicted %.2f us, measured %.2f us%s%s%s", variant->recipe,
           *variant->settings ? " " : "", variant->settings, 1e-3 * (double)variant->predicted_ns,
           1e-3 * (double)variant->measured_ns, whole, *variant->reason ? "; " : "", variant->reason);
  }
}

/* Kernels of solvers go where that of the winner will be looked for. */
static enum cb_status time_solver(void *user, double *us, const struct cb_tune_whole *whole, struct cb_diag *diag) {
  const struct cb_work *work = user;
  const struct cb_cache *cache = work->kept.cache;
  struct cb_text directory = {0};
  const int is_on = cb_cache_state(cache) == CB_CACHE_ON;
  if (is_on) cb_text_add_string(&directory, cb_cache_directory(cache));
  const struct cb_kept_at kept = {.directory = is_on ? cb_text_detach(&directory) : NULL,
                                  .limit = is_on ? cb_cache_limit(cache) : 0};
  const enum cb_status s =
      cb_solver_time(us, work->request.asked.solver, whole, work->request.session, &kept, diag);
  cb_free(kept.directory);
  return s;
}

static enum cb_status race(struct cb_work *work, struct cb_hash key) {
  struct cb_tuned tuned = {0};
  const struct cb_nvrtc *nvrtc = NULL;
  enum cb_status s = cb_session_nvrtc(work->request.session, &nvrtc, work->diag);
  if (!s) s = cb_work_canonical(work);
  work->info.analysis_seconds += cb_work_lap(work);
  const struct cb_tune_request request = {
      .csr = &work->matrix.csr,
      .options = &work->request.options,
      .device = work->request.session->device,
      .nvrtc = nvrtc,
      .pattern = work->matrix.pattern,
      .expected_products = work->request.asked.expected_products,
      .time_whole = work->request.asked.solver ? time_solver : NULL,
      .user = work,
  };
  if (!s) s = cb_tune(&tuned, &request, work->diag);
  if (!s) {
    tell(work, &tuned.tuning);
    remember(work, key, &tuned);
    s = follow(work, &tuned.tuning, "fastest");
  }
  if (!s) { /* what cb_work_make would make */
    work->made = tuned.made;
    tuned.made = (struct cb_made){0};
  }
  cb_tuned_release(&tuned);
  work->info.tune_seconds += cb_work_lap(work);
  return s;
}

enum cb_status cb_work_tune(struct cb_work *work) {
  struct cb_options *options = &work->request.options;
  struct cb_tuning tuning;
  if (options->tune == CB_TUNE_OFF && !strcmp(options->recipe, "auto")) options->recipe = cb_recipe_unsearched;
  if (options->tune != CB_TUNE_MEASURE) {
    options->tune = CB_TUNE_MODEL;
    return CB_OK;
  }
  const struct cb_cache_subject subject = subject_of(&work->request);
  const struct cb_hash key = cb_cache_key(&subject);
  struct cb_cache_turn turn = {0};
  int known = recall(work, key, &tuning);
  /* of many processes one races, and the others follow it: the same kernel, the same bits */
  if (!known && cb_cache_turn_begin(work->kept.cache, key, CB_CACHE_PATIENCE, &turn))
    known = recall(work, key, &tuning);
  work->info.lookup_seconds += cb_work_lap(work);
  const enum cb_status s = known ? follow(work, &tuning, "known") : race(work, key);
  if (known || s) cb_cache_turn_end(work->kept.cache, &turn);
  else work->kept.tuning = turn;
  return s;
}
