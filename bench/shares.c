// SPDX-License-Identifier: Apache-2.0
/* Times recipe hotcold at shares of hot columns and rows that another program asks for (bench/train/search.py), one matrix
 * after the other.
 *
 *   bench_shares LOCK [--folders=A:B:C] [--repetitions=R] [--no-gpu]
 *
 * Each line of standard input is answered by one line of JSON:
 *
 *   matrix TYPE MATRIX     a matrix as trials.h has it: its size, and its profile (analysis/choose/shares.h) as "counts"
 *   try COLS ROWS          shares in percent: "us", what a product takes, and "base_us", what it takes without a hot part,
 *                          timed in turns; "ns" and "base_ns", what the cost model predicts
 *
 * 0 0 is the matrix without a hot part: what the recipe plans for a cold part, merge, sell or hot, as the cost model
 * chooses. What cannot be done is answered by a "refusal". Several processes that name the same LOCK share the GPU; --no-gpu
 * plans only, for sm_90: answers without times. */
#include "analysis/choose/shares.h"
#include "base/integers.h"
#include "bench/trials.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct worker {
  struct trial_session session;
  const char *folders;
  int repetitions;
  char text[1024];
  struct trial_matrix matrix; /* without nonzeros: there is none */
  struct trial base;
};

static void answer(json_t *json) {
  char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(6));
  printf("%s\n", text ? text : "{\"refusal\":\"no memory\"}");
  fflush(stdout);
  free(text);
  json_decref(json);
}

static void answer_refusal(const char *why) {
  answer(json_pack("{s:s}", "refusal", why));
}

/* ---- a matrix */

static void close_matrix(struct worker *worker) {
  trial_release(&worker->base);
  trial_matrix_release(&worker->matrix);
  worker->matrix = (struct trial_matrix){0};
}

/* The recipe of a cold part that the model expects to be the fastest: of equals the earlier one, as a choice has it. */
static void plan_base(struct worker *worker) {
  static const char *const cold[] = {"merge", "sell", "hot"};
  for (int i = 0; i < 3; i++) {
    struct trial trial = {.recipe = cold[i]};
    trial_plan(&trial, &worker->matrix, &worker->matrix.options, &worker->session.target);
    if (trial.made.plan && (!worker->base.made.plan || trial.cost.ns < worker->base.cost.ns)) {
      const struct trial given_up = worker->base;
      worker->base = trial;
      trial = given_up;
    }
    trial_release(&trial);
  }
}

static json_t *counts_of(const struct cb_shares_profile *profile) {
  const int64_t *counts = (const int64_t *)profile;
  json_t *list = json_array();
  for (size_t i = 0; i < sizeof *profile / sizeof *counts; i++)
    json_array_append_new(list, json_integer((json_int_t)counts[i]));
  return list;
}

static enum cb_status open_matrix(struct worker *worker, const char *type, struct cb_shares_profile *profile,
                                  struct cb_diag *diag) {
  enum cb_status s = trial_matrix_read(&worker->matrix, worker->text, worker->folders, diag);
  if (s) return s;
  cb_options_default(&worker->matrix.options);
  s = cb_options_set(&worker->matrix.options, "type", type, diag);
  if (!s) s = cb_shares_profile(profile, &worker->matrix.csr, diag);
  if (s) return s;
  plan_base(worker);
  if (!worker->base.made.plan) return cb_fail(diag, CB_ERR_UNSUPPORTED, "no plan");
  if (worker->session.device) trial_make(&worker->base, &worker->matrix, &worker->session);
  return *worker->base.refusal ? cb_fail(diag, CB_ERR_UNSUPPORTED, "%s", worker->base.refusal) : CB_OK;
}

static void take_matrix(struct worker *worker, const char *text) {
  char type[16] = "";
  struct cb_shares_profile profile;
  struct cb_diag diag = {0};
  const char *blank = strchr(text, ' ');
  close_matrix(worker);
  if (blank) snprintf(type, sizeof type, "%.*s", (int)(blank - text), text);
  snprintf(worker->text, sizeof worker->text, "%s", blank ? blank + 1 : "");
  if (open_matrix(worker, type, &profile, &diag)) {
    close_matrix(worker);
    answer_refusal(diag.message);
    return;
  }
  const struct cb_csr *csr = &worker->matrix.csr;
  answer(json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:o}", "matrix", worker->text, "type", type, "model",
                   worker->session.target.model, "rows", (json_int_t)csr->rows, "cols", (json_int_t)csr->cols, "nnz",
                   (json_int_t)csr->nnz, "base", worker->base.recipe, "counts", counts_of(&profile)));
}

/* ---- a point */

/* Operators and what planning them took are given back after each point; the base's image stays. */
static enum cb_status time_both(struct worker *worker, struct trial *trial, struct cb_diag *diag) {
  struct trial *const both[] = {&worker->base, trial};
  const int count = trial->recipe ? 2 : 1;
  if (trial->recipe) trial_make(trial, &worker->matrix, &worker->session);
  if (*trial->refusal) return CB_OK;
  return trial_time(both, count, &worker->matrix, &worker->session, worker->repetitions, diag);
}

static void plan_point(struct worker *worker, struct trial *trial, int cols, int rows) {
  struct cb_options options = worker->matrix.options;
  struct cb_diag diag = {0};
  char settings[2][16];
  if (!cols && !rows) return; /* the base itself */
  *trial = (struct trial){.recipe = "hotcold"};
  snprintf(settings[0], sizeof settings[0], "%d", cols);
  snprintf(settings[1], sizeof settings[1], "%d", rows);
  if (cols < 1 || rows < 1)
    snprintf(trial->refusal, sizeof trial->refusal, "a share of 0 is no point but with the other one");
  else if (cb_options_set(&options, "crux-cols", settings[0], &diag) ||
           cb_options_set(&options, "crux-rows", settings[1], &diag))
    snprintf(trial->refusal, sizeof trial->refusal, "%.150s", diag.message);
  else
    trial_plan(trial, &worker->matrix, &options, &worker->session.target);
}

static void take_point(struct worker *worker, const char *text) {
  struct trial trial = {0};
  struct cb_diag diag = {0};
  char *end;
  const int cols = (int)strtol(text, &end, 10), rows = (int)strtol(end, NULL, 10);
  if (!worker->matrix.csr.nnz) {
    answer_refusal("there is no matrix");
    return;
  }
  plan_point(worker, &trial, cols, rows);
  const int64_t ns = trial.recipe ? trial.cost.ns : worker->base.cost.ns;
  if (!*trial.refusal && worker->session.device && time_both(worker, &trial, &diag))
    snprintf(trial.refusal, sizeof trial.refusal, "%.150s", diag.message);
  json_t *json = json_pack("{s:i, s:i, s:I, s:I}", "cols", cols, "rows", rows, "ns", (json_int_t)ns, "base_ns",
                           (json_int_t)worker->base.cost.ns);
  if (*trial.refusal) json_object_set_new(json, "refusal", json_string(trial.refusal));
  if (worker->base.median_us > 0 && !*trial.refusal) {
    json_object_set_new(json, "us", json_real(trial.recipe ? trial.median_us : worker->base.median_us));
    json_object_set_new(json, "base_us", json_real(worker->base.median_us));
  }
  answer(json);
  trial_release(&trial);
}

/* ---- the program */

static int take_option(struct worker *worker, const char *text, int *gpu) {
  if (!strncmp(text, "--folders=", 10))
    worker->folders = text + 10;
  else if (!strncmp(text, "--repetitions=", 14))
    worker->repetitions = atoi(text + 14);
  else if (!strcmp(text, "--no-gpu"))
    *gpu = 0;
  else
    return 0;
  return 1;
}

int main(int argc, char **argv) {
  static struct worker worker = {.folders = "", .repetitions = 3};
  static char line[2048];
  struct cb_diag diag = {0};
  int gpu = 1, known = argc > 1;
  for (int i = 2; i < argc; i++) known = known && take_option(&worker, argv[i], &gpu);
  if (!known || worker.repetitions < 1 || worker.repetitions > TRIAL_REPETITIONS) {
    fprintf(stderr, "usage: bench_shares LOCK [--folders=A:B:C] [--repetitions=R] [--no-gpu]\n");
    return 2;
  }
  if (trial_session_open(&worker.session, argv[1], gpu ? 0 : TRIAL_NO_GPU, &diag)) {
    fprintf(stderr, "%s\n", diag.message);
    return 1;
  }
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "matrix ", 7))
      take_matrix(&worker, line + 7);
    else if (!strncmp(line, "try ", 4))
      take_point(&worker, line + 4);
    else
      answer_refusal("write 'matrix TYPE MATRIX' or 'try COLS ROWS'");
  }
  close_matrix(&worker);
  return 0;
}
