// SPDX-License-Identifier: Apache-2.0
/* Times every recipe that a search looks at, for many matrices: what the predictor of analysis/choose is trained with.
 *
 *   bench_candidates LIST OUT [--processes=N] [--types=f64,f32] [--seconds=S] [--repetitions=R] [--folders=A:B:C]
 *                    [--gpus=N | --no-gpu | --profile] [--variants=FILE]
 *
 * LIST has one matrix a line: the name of a file NAME.mtx.zst in one of the folders, "generate:SHAPE,…", or one of these
 * with a part of it behind a blank: "rows=K/M" for the K-th of M equal ranges of rows, "square=K/M" for these rows and
 * the columns of the same numbers. OUT gets a line of JSON for each matrix and type.
 *
 * N processes plan, pack and compile side by side; one at a time has the GPU, which it keeps until all recipes of a
 * matrix are timed in turns, by graphs. Of several GPUs (--gpus) each times what was compiled once; those behind the
 * first write to OUT.1, OUT.2 and so on. After S seconds no further matrix is begun. A matrix that cannot be read is left
 * out, and said. --no-gpu plans only, for sm_90: predictions without times. --profile does not even plan, but prints
 * profiles (analysis/choose/profile.h), whose numbers do not depend on the type. --variants: what is timed is not what a
 * search looks at, but a recipe with options on each line of FILE, "recipe=blocks block-lanes=4".
 */
#include "analysis/choose/profile.h"
#include "base/clock.h"
#include "base/integers.h"
#include "bench/trials.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HOPELESS = 6 /* times the best prediction */, MOST_GPUS = 8, MOST_TRIALS = 64 };
_Static_assert((int)MOST_TRIALS >= (int)CB_MAX_CANDIDATES, "room for what a search looks at");

struct settings {
  const char *list, *out, *folders;
  char **variants; /* NULL: what a search looks at */
  int variants_count;
  char types[64];
  int processes, repetitions, gpus, profile;
  double seconds;
};

/* What the processes share. */
struct common {
  int next;
};

struct matrix {
  struct trial_matrix base;
  const char *type;
  struct trial candidates[MOST_TRIALS + 1];
  int count;
  struct cb_choice_profile profile;
  double profile_seconds;
};

/* A recipe with options; a refusal, if they are none. */
static void plan_variant(struct trial *candidate, const struct trial_matrix *matrix, const char *variant,
                         const struct trial_session *session) {
  struct cb_options options = matrix->options;
  struct cb_diag diag = {0};
  char text[256], *rest = text, *name;
  snprintf(text, sizeof text, "%s", variant);
  while (!*diag.message && (name = strtok_r(rest, " ", &rest))) {
    char *value = strchr(name, '=');
    if (value) *value++ = 0;
    cb_options_set(&options, name, value ? value : "", &diag);
  }
  *candidate = (struct trial){.recipe = options.recipe, .variant = variant};
  snprintf(candidate->refusal, sizeof candidate->refusal, "%.150s", diag.message);
  if (!*diag.message) trial_plan(candidate, matrix, &options, &session->target);
}

static int plan_next(struct trial *candidate, const struct matrix *matrix, const struct settings *settings,
                     const struct trial_session *session) {
  const int number = matrix->count;
  if (settings->variants) {
    if (number == settings->variants_count) return 0;
    plan_variant(candidate, &matrix->base, settings->variants[number], session);
    return 1;
  }
  const struct cb_recipe *recipe = cb_recipe_searched(number, 0, 1);
  if (!recipe) return 0;
  *candidate = (struct trial){.recipe = recipe->name};
  trial_plan(candidate, &matrix->base, &matrix->base.options, &session->target);
  return 1;
}

static void plan_all(struct matrix *matrix, const struct settings *settings, const struct trial_session *session) {
  int64_t best = INT64_MAX;
  for (matrix->count = 0; plan_next(&matrix->candidates[matrix->count], matrix, settings, session); matrix->count++) {
    const struct trial *candidate = &matrix->candidates[matrix->count];
    if (candidate->made.plan) best = cb_smaller(best, candidate->cost.ns);
  }
  for (int i = 0; i < matrix->count && session->device; i++) {
    struct trial *candidate = &matrix->candidates[i];
    if (candidate->made.plan && candidate->cost.ns <= HOPELESS * best) trial_make(candidate, &matrix->base, session);
  }
}

static enum cb_status time_all(struct matrix *matrix, const struct trial_session *session, int repetitions,
                               struct cb_diag *diag) {
  struct trial *trials[MOST_TRIALS];
  for (int i = 0; i < matrix->count; i++) trials[i] = &matrix->candidates[i];
  return trial_time(trials, matrix->count, &matrix->base, session, repetitions, diag);
}

static void release_candidates(struct matrix *matrix) {
  for (int i = 0; i < matrix->count; i++) trial_release(&matrix->candidates[i]);
  matrix->count = 0;
}

/* ---- one matrix */

static json_t *candidate_json(const struct trial *candidate) {
  json_t *json = json_pack("{s:s}", "recipe", candidate->variant ? candidate->variant : candidate->recipe);
  if (*candidate->refusal) json_object_set_new(json, "refusal", json_string(candidate->refusal));
  if (!candidate->bytes) return json;
  json_object_update_new(json, json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:s}", "ns", (json_int_t)candidate->cost.ns,
                                         "gpu_ns", (json_int_t)candidate->cost.gpu_ns, "sectors",
                                         (json_int_t)candidate->cost.sectors, "chain_ns",
                                         (json_int_t)candidate->cost.chain_ns, "bytes", (json_int_t)candidate->bytes,
                                         "plan_ms", 1e3 * candidate->plan_seconds, "plan", candidate->line));
  if (candidate->median_us <= 0) return json;
  json_object_set_new(json, "us", json_real(candidate->median_us));
  json_object_set_new(json, "halves", json_pack("[f, f]", candidate->halves_us[0], candidate->halves_us[1]));
  return json;
}

static enum cb_status profile(struct matrix *matrix, struct cb_diag *diag) {
  const double start = cb_seconds();
  const enum cb_status s = cb_choice_profile(&matrix->profile, &matrix->base.csr, diag);
  matrix->profile_seconds = cb_seconds() - start;
  return s;
}

static void add_profile(json_t *json, const struct matrix *matrix) {
  const int64_t *counts = (const int64_t *)&matrix->profile;
  json_t *list = json_array();
  for (size_t i = 0; i < sizeof matrix->profile / sizeof *counts; i++)
    json_array_append_new(list, json_integer((json_int_t)counts[i]));
  json_object_set_new(json, "counts", list);
  json_object_set_new(json, "profile_ms", json_real(1e3 * matrix->profile_seconds));
}

/* What one process has of a GPU; without any, the first plans. */
struct place {
  struct trial_session session;
  int out;
};

/* One line, written at once, so that those of several processes do not mix. */
static void write_line(const struct matrix *matrix, const struct place *place) {
  const struct cb_csr *csr = &matrix->base.csr;
  json_t *list = json_array();
  for (int i = 0; i < matrix->count; i++) json_array_append_new(list, candidate_json(&matrix->candidates[i]));
  json_t *json = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:o}", "matrix", matrix->base.text, "type", matrix->type,
                           "model", place->session.target.model, "rows", (json_int_t)csr->rows, "cols", (json_int_t)csr->cols,
                           "nnz", (json_int_t)csr->nnz, "recipes", list);
  if (matrix->profile_seconds > 0) add_profile(json, matrix);
  char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(6));
  const size_t length = text ? strlen(text) : 0;
  json_decref(json);
  if (!text) return;
  text[length] = '\n';
  if (write(place->out, text, length + 1) != (ssize_t)length + 1) perror("writing the results");
  free(text);
}

static void time_at(struct matrix *matrix, struct place *place, int repetitions, struct cb_diag *diag) {
  if (place->session.device) time_all(matrix, &place->session, repetitions, diag);
  if (*diag->message)
    fprintf(stderr, "%s: %s\n", matrix->base.text, diag->message);
  else
    write_line(matrix, place);
}

/* `first`: of the places, which processes begin with in turns. */
static void measure_type(struct matrix *matrix, const struct settings *settings, struct place *places, int first,
                         const char *type) {
  const int count = settings->gpus ? settings->gpus : 1;
  struct cb_diag diag = {0};
  matrix->type = type;
  cb_options_default(&matrix->base.options);
  if (cb_options_set(&matrix->base.options, "type", type, &diag)) {
    fprintf(stderr, "%s\n", diag.message);
    return;
  }
  if (settings->profile)
    profile(matrix, &diag);
  else
    plan_all(matrix, settings, &places->session);
  for (int i = 0; i < count; i++, diag = (struct cb_diag){0})
    time_at(matrix, &places[(first + i) % count], settings->repetitions, &diag);
  release_candidates(matrix);
}

static void measure(const char *text, const struct settings *settings, struct place *places, int first) {
  struct matrix *matrix = calloc(1, sizeof *matrix);
  struct cb_diag diag = {0};
  char types[sizeof settings->types], *rest = types, *type;
  if (!matrix) return;
  memcpy(types, settings->types, sizeof types);
  if (trial_matrix_read(&matrix->base, text, settings->folders, &diag))
    fprintf(stderr, "left out: %s\n", diag.message);
  else
    while ((type = strtok_r(rest, ",", &rest))) measure_type(matrix, settings, places, first, type);
  trial_matrix_release(&matrix->base);
  free(matrix);
}

/* ---- processes */

/* Opens the GPU of that number, or none. */
static int open_place(struct place *place, const struct settings *settings, int number) {
  struct cb_diag diag = {0};
  char out[1024], lock[1040];
  snprintf(out, sizeof out, number ? "%s.%d" : "%s", settings->out, number);
  snprintf(lock, sizeof lock, "%s.lock", out);
  place->out = open(out, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  const int gpu = settings->gpus ? number : TRIAL_NO_GPU;
  if (place->out >= 0 && !trial_session_open(&place->session, lock, gpu, &diag)) return 1;
  fprintf(stderr, "%s\n", *diag.message ? diag.message : "cannot open the results");
  return 0;
}

/* The work of the process of that number, which ends with it: sessions are closed by its exit. */
static int work(const struct settings *settings, struct common *common, int number, char **lines, int count,
                double end) {
  struct place places[MOST_GPUS];
  for (int i = 0; i < settings->gpus || !i; i++)
    if (!open_place(&places[i], settings, i)) return 1;
  for (int i; (i = __atomic_fetch_add(&common->next, 1, __ATOMIC_RELAXED)) < count;)
    if (cb_seconds() < end) measure(lines[i], settings, places, number);
  return 0;
}

static char **read_lines(const char *path, int *count) {
  enum { MOST = 100000 };
  char **lines = calloc(MOST, sizeof *lines), *line = NULL;
  size_t size = 0;
  FILE *file = fopen(path, "r");
  for (ssize_t length; file && lines && *count < MOST && (length = getline(&line, &size, file)) > 0;) {
    if (line[length - 1] == '\n') line[--length] = 0;
    if (length && *line != '#') lines[(*count)++] = strdup(line);
  }
  free(line);
  if (file) fclose(file);
  return file ? lines : NULL;
}

static int take_option(struct settings *settings, const char *text) {
  if (!strncmp(text, "--types=", 8))
    snprintf(settings->types, sizeof settings->types, "%s", text + 8);
  else if (!strncmp(text, "--processes=", 12))
    settings->processes = atoi(text + 12);
  else if (!strncmp(text, "--repetitions=", 14))
    settings->repetitions = atoi(text + 14);
  else if (!strncmp(text, "--seconds=", 10))
    settings->seconds = atof(text + 10);
  else if (!strncmp(text, "--folders=", 10))
    settings->folders = text + 10;
  else if (!strcmp(text, "--no-gpu"))
    settings->gpus = 0;
  else if (!strncmp(text, "--gpus=", 7))
    settings->gpus = atoi(text + 7);
  else if (!strncmp(text, "--variants=", 11))
    return (settings->variants = read_lines(text + 11, &settings->variants_count)) != NULL;
  else if (!strcmp(text, "--profile"))
    settings->gpus = 0, settings->profile = 1;
  else
    return 0;
  return 1;
}

int main(int argc, char **argv) {
  struct settings settings = {
      .folders = "", .types = "f64,f32", .processes = 1, .repetitions = 6, .gpus = 1, .seconds = 1e9};
  int count = 0, failed = 0, known = argc > 2;
  for (int i = 3; i < argc; i++) known = known && take_option(&settings, argv[i]);
  if (!known || settings.processes < 1 || settings.repetitions < 1 || settings.repetitions > TRIAL_REPETITIONS ||
      settings.gpus < 0 || settings.gpus > MOST_GPUS || settings.variants_count > MOST_TRIALS) {
    fprintf(stderr, "usage: bench_candidates LIST OUT [--processes=N] [--types=f64,f32] [--seconds=S] "
                    "[--repetitions=R] [--folders=A:B:C] [--gpus=N | --no-gpu | --profile] [--variants=FILE]\n");
    return 2;
  }
  settings.list = argv[1];
  settings.out = argv[2];
  char **lines = read_lines(settings.list, &count);
  struct common *common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (!lines || common == MAP_FAILED) {
    perror(settings.list);
    return 1;
  }
  const double end = cb_seconds() + settings.seconds;
  for (int i = 0; i < settings.processes; i++) {
    const pid_t child = fork();
    if (!child) _exit(work(&settings, common, i, lines, count, end));
    failed += child < 0;
  }
  for (int status; wait(&status) > 0;) failed += status != 0;
  for (int i = 0; i < count; i++) free(lines[i]);
  free(lines);
  return failed != 0;
}
