// SPDX-License-Identifier: Apache-2.0
/* Times every recipe that a search looks at, for many matrices: what the predictor of analysis/choose is trained with.
 *
 *   bench_candidates LIST OUT [--processes=N] [--types=f64,f32] [--seconds=S] [--repetitions=R] [--folders=A:B:C]
 *                    [--no-gpu | --profile]
 *
 * LIST has one matrix a line: the name of a file NAME.mtx.zst in one of the folders, "generate:SHAPE,…", or one of these
 * with a part of it behind a blank: "rows=K/M" for the K-th of M equal ranges of rows, "square=K/M" for these rows and
 * the columns of the same numbers. OUT gets a line of JSON for each matrix and type.
 *
 * N processes plan, pack and compile side by side; one at a time has the GPU, which it keeps until all recipes of a
 * matrix are timed in turns. After S seconds no further matrix is begun. A matrix that cannot be read is left out, and
 * said. --no-gpu plans only, for sm_90: predictions without times. --profile does not even plan, but prints
 * profiles (analysis/choose/profile.h), whose numbers do not depend on the type.
 */
#include "analysis/choose/profile.h"
#include "analysis/plan/blob.h"
#include "analysis/plan/recipe.h"
#include "base/clock.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/real.h"
#include "codegen/source.h"
#include "frontend/read.h"
#include "runtime/cuda/make.h"
#include "runtime/measure/timer.h"
#include "runtime/operator/operator.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_TYPES = 4, MOST_REPETITIONS = 32, BATCHES = 5, HOPELESS = 6 /* times the best prediction */ };

struct settings {
  const char *list, *out, *folders;
  char types[64];
  int processes, repetitions, gpu, profile;
  double seconds;
};

/* What the processes share. */
struct common {
  int next;
};

struct session {
  const struct settings *settings;
  struct cb_driver *driver;
  struct cb_device *device;
  struct cb_nvrtc *nvrtc;
  struct cb_target target;
  struct CUstream_st *stream;
  struct cb_timer timer;
  int lock; /* of the GPU: a file */
};

struct candidate {
  const char *recipe;
  char refusal[160], line[512];
  struct cb_made made;
  struct cb_blob blob;
  struct cb_image image;
  struct cb_operator *op;
  struct cb_cost cost;
  int64_t bytes;
  double plan_seconds, us[MOST_REPETITIONS], median_us;
  int launches;
};

struct matrix {
  const char *text;
  struct cb_csr csr;
  struct cb_hash pattern;
  const char *type;
  struct cb_options options;
  struct candidate candidates[CB_MAX_CANDIDATES];
  int count;
  struct cb_choice_profile profile;
  double profile_seconds;
  cb_device_ptr x, y;
};

/* ---- matrices */

static void cut(struct cb_csr *part, const struct cb_csr *whole, int64_t first, int64_t end, int square) {
  const int64_t from = square ? first : 0, to = square ? end : whole->cols;
  int64_t at = 0;
  for (int64_t row = first; row < end; row++) {
    for (int64_t k = cb_csr_row(whole, row); k < cb_csr_row(whole, row + 1); k++) {
      const int64_t column = whole->col_idx[k];
      if (column < from || column >= to) continue;
      part->col_idx[at] = (int32_t)(column - from);
      part->values[at++] = whole->values[k];
    }
    if (part->wide)
      ((int64_t *)part->row_ptr)[row - first + 1] = at;
    else
      ((int32_t *)part->row_ptr)[row - first + 1] = (int32_t)at;
  }
  part->nnz = at;
}

/* "rows=K/M" or "square=K/M": csr becomes that part of itself. */
static enum cb_status take_part(struct cb_csr *csr, const char *text, struct cb_diag *diag) {
  struct cb_csr part = {0};
  long long number, parts;
  const int square = !strncmp(text, "square=", 7);
  if (sscanf(text + (square ? 7 : 5), "%lld/%lld", &number, &parts) != 2 || (!square && strncmp(text, "rows=", 5)) ||
      number < 0 || parts < 1 || number >= parts)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' is no part of a matrix; write rows=K/M or square=K/M", text);
  const int64_t rows = square ? cb_smaller(csr->rows, csr->cols) : csr->rows;
  const int64_t first = rows * number / parts, end = rows * (number + 1) / parts;
  enum cb_status s = cb_csr_alloc(&part, end - first, square ? end - first : csr->cols,
                                  cb_csr_row(csr, end) - cb_csr_row(csr, first), diag);
  if (s) return s;
  memcpy(part.name, csr->name, sizeof part.name);
  part.pattern = csr->pattern;
  cut(&part, csr, first, end, square);
  cb_csr_release(csr);
  *csr = part;
  return CB_OK;
}

/* The file of that name in one of the folders; a name that is in none of them is taken as it is. */
static enum cb_status find_file(char *path, size_t size, const char *name, int length, const char *folders,
                                struct cb_diag *diag) {
  const char *end;
  for (const char *folder = folders; *folder; folder = *end ? end + 1 : end) {
    end = folder + strcspn(folder, ":");
    const int written = snprintf(path, size, "%.*s/%.*s.mtx.zst", (int)(end - folder), folder, length, name);
    if (written < (int)size && !access(path, R_OK)) return CB_OK;
  }
  if (snprintf(path, size, "%.*s", length, name) < (int)size) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "the name '%.40s…' is too long; give a shorter one", name);
}

static enum cb_status read_matrix(struct matrix *matrix, const char *text, const char *folders, struct cb_diag *diag) {
  char path[1024];
  const char *blank = strchr(text, ' ');
  const int length = (int)(blank ? (size_t)(blank - text) : strlen(text));
  *matrix = (struct matrix){.text = text};
  enum cb_status s = find_file(path, sizeof path, text, length, folders, diag);
  if (!s) s = cb_matrix_read(&matrix->csr, path, NULL, diag);
  if (!s && blank) s = take_part(&matrix->csr, blank + 1, diag);
  if (!s && !matrix->csr.nnz) s = cb_fail(diag, CB_ERR_ARGUMENT, "'%s' has no nonzeros", text);
  if (!s) matrix->pattern = cb_csr_pattern_hash(&matrix->csr);
  return s;
}

/* ---- planning and compiling: side by side */

static void refuse(struct candidate *candidate, const struct cb_diag *diag) {
  snprintf(candidate->refusal, sizeof candidate->refusal, "%.*s", (int)sizeof candidate->refusal - 1, diag->message);
}

static void plan(struct candidate *candidate, const struct matrix *matrix, const struct cb_target *target) {
  struct cb_options options = matrix->options;
  struct cb_diag diag = {0};
  const double start = cb_seconds();
  options.recipe = candidate->recipe;
  const enum cb_status s =
      cb_plan_build(&candidate->made.plan, &candidate->made.assignment, &matrix->csr, target, &options, &diag);
  candidate->plan_seconds = cb_seconds() - start;
  if (s) {
    refuse(candidate, &diag);
    return;
  }
  candidate->cost = candidate->made.plan->cost;
  candidate->bytes = cb_plan_bytes(candidate->made.plan);
  snprintf(candidate->line, sizeof candidate->line, "%.*s", (int)sizeof candidate->line - 1,
           candidate->made.plan->line);
}

static enum cb_status make(struct candidate *candidate, const struct matrix *matrix, const struct session *session,
                           struct cb_diag *diag) {
  const struct cb_make_request request = {.csr = &matrix->csr,
                                          .options = &matrix->options,
                                          .nvrtc = session->nvrtc,
                                          .pattern = matrix->pattern,
                                          .name = matrix->csr.name};
  struct cb_made *made = &candidate->made;
  enum cb_status s = cb_make_text(made, &request, diag);
  if (!s) s = cb_make_binary(made, &request, diag);
  if (!s && made->compiled.spilled_bytes) s = cb_fail(diag, CB_ERR_UNSUPPORTED, "it spills registers");
  if (!s)
    s = cb_pack_mapped(&candidate->blob, NULL, made->plan, made->assignment, matrix->csr.values, matrix->pattern, diag);
  const struct cb_label label = {matrix->csr.name, made->symbol, matrix->pattern};
  const struct cb_image_parts parts = {.plan = made->plan,
                                       .label = &label,
                                       .blob = &candidate->blob,
                                       .source = &made->source,
                                       .cubin = made->compiled.cubin,
                                       .cubin_bytes = made->compiled.cubin_bytes};
  if (!s) s = cb_image_from_plan(&candidate->image, &parts, diag);
  cb_assignment_free(made->assignment); /* large, and no longer needed */
  cb_plan_free(made->plan);
  made->assignment = NULL;
  made->plan = NULL;
  return s;
}

static void plan_all(struct matrix *matrix, const struct session *session) {
  const struct cb_recipe *recipe;
  int64_t best = INT64_MAX;
  for (matrix->count = 0; (recipe = cb_recipe_searched(matrix->count)); matrix->count++) {
    struct candidate *candidate = &matrix->candidates[matrix->count];
    *candidate = (struct candidate){.recipe = recipe->name};
    plan(candidate, matrix, &session->target);
    if (candidate->made.plan) best = cb_smaller(best, candidate->cost.ns);
  }
  for (int i = 0; i < matrix->count && session->device; i++) {
    struct candidate *candidate = &matrix->candidates[i];
    struct cb_diag diag = {0};
    if (!candidate->made.plan || candidate->cost.ns > HOPELESS * best) continue;
    if (make(candidate, matrix, session, &diag)) refuse(candidate, &diag);
  }
}

/* ---- timing: one process at a time */

static enum cb_status enqueue(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  const void *const *what = user;
  const struct matrix *matrix = what[0];
  const struct candidate *candidate = what[1];
  return cb_operator_multiply(candidate->op, 1, matrix->x, 0, matrix->y, stream, diag);
}

static enum cb_status make_vectors(struct matrix *matrix, const struct session *session, struct cb_diag *diag) {
  const enum cb_type type = cb_precision_types((enum cb_precision)matrix->options.type).vector;
  const size_t width = cb_type_size(type), bytes = width * (size_t)matrix->csr.cols;
  void *x = cb_alloc(bytes + 1, 1);
  if (!x) return cb_fail_memory(diag, "x", bytes);
  for (int64_t i = 0; i < matrix->csr.cols; i++) cb_real_set(x, type, i, 0.5 + (double)(i * 2654435761u % 1024) / 1024);
  enum cb_status s = cb_device_alloc(session->device, &matrix->x, bytes + 64, "x", diag);
  if (!s) s = cb_device_alloc(session->device, &matrix->y, width * (size_t)matrix->csr.rows + 64, "y", diag);
  if (!s) s = cb_device_upload(session->device, matrix->x, x, bytes, "x", diag);
  cb_free(x);
  return s;
}

static void time_once(struct candidate *candidate, struct matrix *matrix, struct session *session, int repetition) {
  const void *what[] = {matrix, candidate};
  struct cb_diag diag = {0};
  enum cb_status s = CB_OK;
  if (!candidate->op) return;
  if (!repetition) s = cb_timer_launches(&candidate->launches, &session->timer, enqueue, what, &diag);
  if (!s)
    s = cb_timer_measure(&candidate->us[repetition], &session->timer, enqueue, what, candidate->launches, BATCHES,
                         &diag);
  if (!s) return;
  refuse(candidate, &diag);
  cb_operator_free(candidate->op);
  candidate->op = NULL;
}

static void time_all(struct matrix *matrix, struct session *session, struct cb_diag *diag) {
  const int repetitions = session->settings->repetitions;
  enum cb_status s = make_vectors(matrix, session, diag);
  for (int i = 0; i < matrix->count && !s; i++) {
    struct candidate *candidate = &matrix->candidates[i];
    struct cb_diag why = {0};
    if (!candidate->image.launches || *candidate->refusal) continue;
    if (cb_operator_load(&candidate->op, session->device, &candidate->image, 0, &why)) refuse(candidate, &why);
  }
  for (int r = 0; r < repetitions && !s; r++)
    for (int i = 0; i < matrix->count; i++) time_once(&matrix->candidates[i], matrix, session, r);
  for (int i = 0; i < matrix->count && !s; i++)
    if (matrix->candidates[i].op) matrix->candidates[i].median_us = cb_median(matrix->candidates[i].us, repetitions);
}

static void release_timed(struct matrix *matrix, const struct session *session) {
  for (int i = 0; i < matrix->count; i++) {
    cb_operator_free(matrix->candidates[i].op);
    matrix->candidates[i].op = NULL;
  }
  cb_device_free(session->device, matrix->x);
  cb_device_free(session->device, matrix->y);
  matrix->x = matrix->y = 0;
}

static void release_candidates(struct matrix *matrix) {
  for (int i = 0; i < matrix->count; i++) {
    struct candidate *candidate = &matrix->candidates[i];
    cb_image_release(&candidate->image);
    cb_blob_release(&candidate->blob);
    cb_made_release(&candidate->made);
  }
  matrix->count = 0;
}

/* ---- one matrix */

static json_t *candidate_json(const struct candidate *candidate) {
  json_t *json = json_pack("{s:s}", "recipe", candidate->recipe);
  if (*candidate->refusal) json_object_set_new(json, "refusal", json_string(candidate->refusal));
  if (!candidate->bytes) return json;
  json_object_update_new(json, json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:s}", "ns", (json_int_t)candidate->cost.ns,
                                         "gpu_ns", (json_int_t)candidate->cost.gpu_ns, "sectors",
                                         (json_int_t)candidate->cost.sectors, "chain_ns",
                                         (json_int_t)candidate->cost.chain_ns, "bytes", (json_int_t)candidate->bytes,
                                         "plan_ms", 1e3 * candidate->plan_seconds, "plan", candidate->line));
  if (candidate->median_us > 0) json_object_set_new(json, "us", json_real(candidate->median_us));
  return json;
}

static enum cb_status profile(struct matrix *matrix, struct cb_diag *diag) {
  const double start = cb_seconds();
  const enum cb_status s = cb_choice_profile(&matrix->profile, &matrix->csr, diag);
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

/* One line, written at once, so that those of several processes do not mix. */
static void write_line(const struct matrix *matrix, const struct session *session, int out) {
  json_t *list = json_array();
  for (int i = 0; i < matrix->count; i++) json_array_append_new(list, candidate_json(&matrix->candidates[i]));
  json_t *json = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:o}", "matrix", matrix->text, "type", matrix->type, "model",
                           session->target.model, "rows", (json_int_t)matrix->csr.rows, "cols",
                           (json_int_t)matrix->csr.cols, "nnz", (json_int_t)matrix->csr.nnz, "recipes", list);
  if (session->settings->profile) add_profile(json, matrix);
  char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(6));
  const size_t length = text ? strlen(text) : 0;
  json_decref(json);
  if (!text) return;
  text[length] = '\n';
  if (write(out, text, length + 1) != (ssize_t)length + 1) perror("writing the results");
  free(text);
}

static void measure_type(struct matrix *matrix, struct session *session, const char *type, int out) {
  struct cb_diag diag = {0};
  matrix->type = type;
  cb_options_default(&matrix->options);
  if (cb_options_set(&matrix->options, "type", type, &diag)) {
    fprintf(stderr, "%s\n", diag.message);
    return;
  }
  if (session->settings->profile)
    profile(matrix, &diag);
  else
    plan_all(matrix, session);
  if (session->device) {
    flock(session->lock, LOCK_EX);
    time_all(matrix, session, &diag);
    release_timed(matrix, session);
    flock(session->lock, LOCK_UN);
  }
  if (*diag.message)
    fprintf(stderr, "%s: %s\n", matrix->text, diag.message);
  else
    write_line(matrix, session, out);
  release_candidates(matrix);
}

static void measure(const char *text, struct session *session, int out) {
  struct matrix *matrix = calloc(1, sizeof *matrix);
  struct cb_diag diag = {0};
  char types[sizeof session->settings->types], *rest = types, *type;
  if (!matrix) return;
  memcpy(types, session->settings->types, sizeof types);
  if (read_matrix(matrix, text, session->settings->folders, &diag))
    fprintf(stderr, "left out: %s\n", diag.message);
  else
    while ((type = strtok_r(rest, ",", &rest))) measure_type(matrix, session, type, out);
  cb_csr_release(&matrix->csr);
  free(matrix);
}

/* ---- processes */

static enum cb_status open_session(struct session *session, struct cb_diag *diag) {
  if (!session->settings->gpu) return cb_target_find(&session->target, "sm_90", diag);
  enum cb_status s = cb_driver_open(&session->driver, NULL, diag);
  if (!s) s = cb_nvrtc_open(&session->nvrtc, NULL, diag);
  if (!s) s = cb_device_open(&session->device, session->driver, 0, diag);
  if (s) return s;
  session->target = session->device->target;
  s = cb_device_enter(session->device, diag);
  if (!s)
    s = cb_driver_check(session->driver,
                        session->driver->call.stream_create(&session->stream, CB_CU_STREAM_NON_BLOCKING), diag,
                        "make a stream");
  return s ? s : cb_timer_open(&session->timer, session->device, session->stream, diag);
}

/* The work of one process, which ends with it: the session is closed by its exit. */
static int work(const struct settings *settings, struct common *common, char **lines, int count, double end) {
  struct session session = {.settings = settings};
  struct cb_diag diag = {0};
  char lock[1024];
  snprintf(lock, sizeof lock, "%s.lock", settings->out);
  session.lock = open(lock, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  const int out = open(settings->out, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (session.lock < 0 || out < 0 || open_session(&session, &diag)) {
    fprintf(stderr, "%s\n", *diag.message ? diag.message : "cannot open the results");
    return 1;
  }
  for (int i; (i = __atomic_fetch_add(&common->next, 1, __ATOMIC_RELAXED)) < count;)
    if (cb_seconds() < end) measure(lines[i], &session, out);
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
    settings->gpu = 0;
  else if (!strcmp(text, "--profile"))
    settings->gpu = 0, settings->profile = 1;
  else
    return 0;
  return 1;
}

int main(int argc, char **argv) {
  struct settings settings = {
      .folders = "", .types = "f64,f32", .processes = 1, .repetitions = 3, .gpu = 1, .seconds = 1e9};
  int count = 0, failed = 0, known = argc > 2;
  for (int i = 3; i < argc; i++) known = known && take_option(&settings, argv[i]);
  if (!known || settings.processes < 1 || settings.repetitions < 1 || settings.repetitions > MOST_REPETITIONS) {
    fprintf(stderr, "usage: bench_candidates LIST OUT [--processes=N] [--types=f64,f32] [--seconds=S] "
                    "[--repetitions=R] [--folders=A:B:C] [--no-gpu | --profile]\n");
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
    if (!child) _exit(work(&settings, common, lines, count, end));
    failed += child < 0;
  }
  for (int status; wait(&status) > 0;) failed += status != 0;
  for (int i = 0; i < count; i++) free(lines[i]);
  free(lines);
  return failed != 0;
}
