// SPDX-License-Identifier: Apache-2.0
/* Trials: see trials.h. */
#include "bench/trials.h"

#include "base/clock.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/real.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { BATCHES = 3, BATCH_US = 1000, LEAST_LAUNCHES = 10 };

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

enum cb_status trial_matrix_read(struct trial_matrix *matrix, const char *text, const char *folders,
                                 struct cb_diag *diag) {
  char path[1024];
  const char *blank = strchr(text, ' ');
  const int length = (int)(blank ? (size_t)(blank - text) : strlen(text));
  *matrix = (struct trial_matrix){.text = text};
  enum cb_status s = find_file(path, sizeof path, text, length, folders, diag);
  if (!s) s = cb_matrix_read(&matrix->csr, path, NULL, diag);
  if (!s && blank) s = take_part(&matrix->csr, blank + 1, diag);
  if (!s && !matrix->csr.nnz) s = cb_fail(diag, CB_ERR_ARGUMENT, "'%s' has no nonzeros", text);
  if (!s) matrix->pattern = cb_csr_pattern_hash(&matrix->csr);
  return s;
}

void trial_matrix_release(struct trial_matrix *matrix) {
  cb_csr_release(&matrix->csr);
}

/* ---- planning and compiling: side by side */

static void refuse(struct trial *trial, const struct cb_diag *diag) {
  snprintf(trial->refusal, sizeof trial->refusal, "%.*s", (int)sizeof trial->refusal - 1, diag->message);
}

void trial_plan(struct trial *trial, const struct trial_matrix *matrix, const struct cb_options *options,
                const struct cb_target *target) {
  struct cb_options own = *options;
  struct cb_made *made = &trial->made;
  struct cb_diag diag = {0};
  const double start = cb_seconds();
  own.recipe = trial->recipe;
  const enum cb_status s = cb_plan_build(&made->plan, &made->assignment, &matrix->csr, target, &own, &diag);
  trial->plan_seconds = cb_seconds() - start;
  if (s) {
    refuse(trial, &diag);
    return;
  }
  trial->cost = made->plan->cost;
  trial->bytes = cb_plan_bytes(made->plan);
  snprintf(trial->line, sizeof trial->line, "%.*s", (int)sizeof trial->line - 1, made->plan->line);
}

void trial_make(struct trial *trial, const struct trial_matrix *matrix, const struct trial_session *session) {
  const struct cb_make_request request = {.csr = &matrix->csr,
                                          .options = &matrix->options,
                                          .nvrtc = session->nvrtc,
                                          .pattern = matrix->pattern,
                                          .name = matrix->csr.name};
  struct cb_made *made = &trial->made;
  struct cb_diag diag = {0};
  enum cb_status s = cb_make_text(made, &request, &diag);
  if (!s) s = cb_make_binary(made, &request, &diag);
  if (!s && made->compiled.spilled_bytes) s = cb_fail(&diag, CB_ERR_UNSUPPORTED, "it spills registers");
  if (!s)
    s = cb_pack_mapped(&trial->blob, NULL, made->plan, made->assignment, matrix->csr.values, matrix->pattern, &diag);
  const struct cb_label label = {matrix->csr.name, made->symbol, matrix->pattern};
  const struct cb_image_parts parts = {.plan = made->plan,
                                       .label = &label,
                                       .blob = &trial->blob,
                                       .source = &made->source,
                                       .cubin = made->compiled.cubin,
                                       .cubin_bytes = made->compiled.cubin_bytes};
  if (!s) s = cb_image_from_plan(&trial->image, &parts, &diag);
  cb_assignment_free(made->assignment); /* large, and no longer needed */
  cb_plan_free(made->plan);
  made->assignment = NULL;
  made->plan = NULL;
  if (s) refuse(trial, &diag);
}

/* ---- timing: one process at a time */

struct product {
  const struct trial_matrix *matrix;
  const struct trial *trial;
};

static enum cb_status enqueue(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct product *product = user;
  return cb_operator_multiply(product->trial->op, 1, product->matrix->x, 0, product->matrix->y, stream, diag);
}

static enum cb_status make_vectors(struct trial_matrix *matrix, const struct trial_session *session,
                                   struct cb_diag *diag) {
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

static void time_once(struct trial *trial, const struct trial_matrix *matrix, const struct trial_session *session,
                      int repetition) {
  struct product product = {matrix, trial};
  struct cb_timer timer = session->timer;
  struct cb_diag diag = {0};
  enum cb_status s = CB_OK;
  if (!trial->op) return;
  if (!repetition) s = cb_timer_launches(&trial->launches, &timer, enqueue, &product, &diag);
  if (!s) s = cb_timer_measure(&trial->us[repetition], &timer, enqueue, &product, trial->launches, BATCHES, &diag);
  /* long batches say no more than this, and most of a list's time would be theirs */
  if (!s && !repetition && trial->us[0] * trial->launches > BATCH_US)
    trial->launches = (int)cb_smaller(trial->launches, cb_larger(LEAST_LAUNCHES, (int64_t)(BATCH_US / trial->us[0])));
  if (!s) return;
  refuse(trial, &diag);
  cb_operator_free(trial->op);
  trial->op = NULL;
}

/* Two medians that share no measurement: which recipe is the fastest by one of them is no luck of the other. */
static void halve(struct trial *trial, int repetitions) {
  double us[TRIAL_REPETITIONS];
  for (int half = 0; half < 2; half++) {
    int count = 0;
    for (int r = half; r < repetitions; r += 2) us[count++] = trial->us[r];
    trial->halves_us[half] = count ? cb_median(us, count) : 0;
  }
}

static enum cb_status time_alone(struct trial *const *trials, int count, struct trial_matrix *matrix,
                                 const struct trial_session *session, int repetitions, struct cb_diag *diag) {
  const enum cb_status s = make_vectors(matrix, session, diag);
  for (int i = 0; i < count && !s; i++) {
    struct cb_diag why = {0};
    trials[i]->median_us = 0;
    if (!trials[i]->image.launches || *trials[i]->refusal) continue;
    if (cb_operator_load(&trials[i]->op, session->device, &trials[i]->image, 0, &why)) refuse(trials[i], &why);
  }
  for (int r = 0; r < repetitions && !s; r++)
    for (int i = 0; i < count; i++) time_once(trials[i], matrix, session, r);
  for (int i = 0; i < count; i++) {
    if (trials[i]->op) {
      halve(trials[i], repetitions);
      trials[i]->median_us = cb_median(trials[i]->us, repetitions);
    }
    cb_operator_free(trials[i]->op);
    trials[i]->op = NULL;
  }
  cb_device_free(session->device, matrix->x);
  cb_device_free(session->device, matrix->y);
  matrix->x = matrix->y = 0;
  return s;
}

enum cb_status trial_time(struct trial *const *trials, int count, struct trial_matrix *matrix,
                          const struct trial_session *session, int repetitions, struct cb_diag *diag) {
  flock(session->lock, LOCK_EX);
  enum cb_status s = cb_device_enter(session->device, diag);
  if (!s) {
    s = time_alone(trials, count, matrix, session, repetitions, diag);
    cb_device_leave(session->device);
  }
  flock(session->lock, LOCK_UN);
  return s;
}

void trial_release(struct trial *trial) {
  cb_operator_free(trial->op);
  cb_image_release(&trial->image);
  cb_blob_release(&trial->blob);
  cb_made_release(&trial->made);
  *trial = (struct trial){.recipe = trial->recipe};
}

/* ---- a process */

enum cb_status trial_session_open(struct trial_session *session, const char *lock, int gpu, struct cb_diag *diag) {
  *session = (struct trial_session){.lock = open(lock, O_CREAT | O_RDWR | O_CLOEXEC, 0600)};
  if (session->lock < 0) return cb_fail(diag, CB_ERR_IO, "cannot open '%s'", lock);
  if (gpu == TRIAL_NO_GPU) return cb_target_find(&session->target, "sm_90", diag);
  enum cb_status s = cb_driver_open(&session->driver, NULL, diag);
  if (!s) s = cb_nvrtc_open(&session->nvrtc, NULL, diag);
  if (!s) s = cb_device_open(&session->device, session->driver, gpu, diag);
  if (s) return s;
  session->target = session->device->target;
  s = cb_device_enter(session->device, diag);
  if (!s)
    s = cb_driver_check(session->driver,
                        session->driver->call.stream_create(&session->stream, CB_CU_STREAM_NON_BLOCKING), diag,
                        "make a stream");
  if (!s) s = cb_timer_open(&session->timer, session->device, session->stream, diag);
  session->timer.in_graphs = 1;
  return s;
}
