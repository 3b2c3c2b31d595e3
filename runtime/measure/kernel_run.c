// SPDX-License-Identifier: Apache-2.0
/* A kernel.cu on the GPU: see cb_run_kernel in bench.h. cb_run_kernel at the end has the steps in their order. */
#include "runtime/measure/bench.h"

#include "base/available.h"
#include "base/memory.h"
#include "base/real.h"
#include "codegen/source.h"
#include "runtime/cuda/spills.h"
#include "runtime/verify/kernel_file.h"

#include <stdio.h>
#include <string.h>

struct work {
  struct cb_bench *bench;
  struct cb_kernel_file file;
  const char *path;
  struct cb_operator *op;
  cb_device_ptr x, y;
  void *before, *first, *second; /* y before a product, and after each of two */
  size_t x_bytes, y_bytes;
  double beta; /* that the form asks for in y = Ax */
};

/* ---- from the file to an operator */

static enum cb_status note_file(struct cb_run_result *result, const struct work *work, struct cb_diag *diag) {
  const struct cb_kernel_file *file = &work->file;
  const struct cb_image *image = &file->image;
  const int reads_y = image->form == CB_FORM_ADD;
  const size_t length = strlen(image->line);
  snprintf(result->name, sizeof result->name, "%s", file->name);
  snprintf(result->pattern, sizeof result->pattern, "%s", file->pattern);
  result->rows = image->rows;
  result->cols = image->cols;
  result->nnz = image->nnz;
  result->type = cb_types_name((struct cb_types){image->matrix_type, image->vector_type, image->sum_type});
  result->form = image->form;
  result->semiring = image->semiring;
  result->stored_bytes = file->stored_bytes;
  result->moved_bytes = file->stored_bytes + (int64_t)work->x_bytes + (int64_t)work->y_bytes * (1 + reads_y);
  result->predicted_us = file->predicted_us;
  result->recipe = "";
  result->launches = image->launches_count;
  result->is_file = 1;
  result->is_unchecked = !file->expected;
  result->has_atomics = file->has_atomics;
  result->plan = cb_alloc(length + 1, 1);
  if (!result->plan) return cb_fail_memory(diag, "the plan's line", length + 1);
  memcpy(result->plan, image->line, length + 1);
  return CB_OK;
}

static enum cb_status load(struct work *work, struct cb_run_result *result, struct cb_diag *diag) {
  const struct cb_bench *bench = work->bench;
  const struct cb_device *device = bench->device;
  const struct cb_nvrtc_options options = {.arch = device->target.arch, .line_info = bench->settings.debug};
  struct cb_compiled compiled = {0};
  enum cb_status s =
      cb_compile_fitting(&compiled, bench->nvrtc, cb_text_string(&work->file.text), work->path, &options, diag);
  result->stages.compile = compiled.seconds;
  if (!s) s = cb_cubin_stats(&result->cubin, compiled.cubin, compiled.cubin_bytes, diag);
  work->file.image.target = device->target;
  work->file.image.cubin = compiled.cubin;
  work->file.image.cubin_bytes = compiled.cubin_bytes;
  if (!s) s = cb_operator_load(&work->op, device, &work->file.image, bench->settings.debug, diag);
  work->file.image.cubin = NULL;
  cb_compiled_release(&compiled);
  if (s) return s;
  const struct cb_operator_info *info = cb_operator_info(work->op);
  result->stages.load = info->load_seconds;
  result->stages.upload = info->upload_seconds;
  result->device_bytes = info->device_bytes;
  return CB_OK;
}

/* ---- a product */

/* The self-test's x, and y before it. */
static enum cb_status make_vectors(struct work *work, struct cb_diag *diag) {
  const struct cb_device *device = work->bench->device;
  const struct cb_image *image = &work->file.image;
  void *x = cb_alloc(work->x_bytes + 1, 1);
  work->before = cb_alloc(work->y_bytes + 1, 1);
  work->first = cb_alloc(work->y_bytes + 1, 1);
  work->second = cb_alloc(work->y_bytes + 1, 1);
  enum cb_status s = x && work->before && work->first && work->second
                         ? CB_OK
                         : cb_fail_memory(diag, "vectors", work->x_bytes + 3 * work->y_bytes);
  for (int64_t i = 0; !s && i < image->cols; i++) {
    const double element = cb_selftest_x((uint64_t)i);
    cb_real_set(x, image->vector_type, i, work->file.only_positive && element < 0 ? 0 : element);
  }
  if (!s) memset(work->before, work->file.y_before, work->y_bytes);
  if (!s) s = cb_device_alloc(device, &work->x, work->x_bytes + 1, "x", diag);
  if (!s) s = cb_device_alloc(device, &work->y, work->y_bytes + 1, "y", diag);
  if (!s && work->x_bytes) s = cb_device_upload(device, work->x, x, work->x_bytes, "x", diag);
  cb_free(x);
  return s;
}

static enum cb_status enqueue(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct work *work = user;
  return cb_operator_multiply(work->op, 1, work->x, work->beta, work->y, stream, diag);
}

static enum cb_status multiply(struct work *work, void *y, struct cb_diag *diag) {
  const struct cb_device *device = work->bench->device;
  if (!work->y_bytes) return CB_OK;
  enum cb_status s = cb_device_upload(device, work->y, work->before, work->y_bytes, "y", diag);
  if (!s) s = cb_device_wait(device, "preparing y", diag);
  if (!s) s = enqueue(work, work->bench->stream, diag);
  if (!s) s = cb_device_wait(device, "a product", diag);
  return s ? s : cb_device_download(device, y, work->y, work->y_bytes, "y", diag);
}

/* With what the data expect. */
static enum cb_status compare(const struct work *work, struct cb_run_result *result, struct cb_diag *diag) {
  const int64_t rows = work->file.image.rows;
  struct cb_expected expected = {.rows = rows,
                                 .y = cb_alloc((size_t)rows, sizeof(long double)),
                                 .tolerance = cb_alloc((size_t)rows, sizeof(double))};
  enum cb_status s =
      expected.y && expected.tolerance ? CB_OK : cb_fail_memory(diag, "expected result", (uint64_t)rows * 24);
  for (int64_t i = 0; !s && i < rows; i++) {
    expected.y[i] = work->file.expected[i];
    expected.tolerance[i] = work->file.expected[rows + i];
  }
  if (!s) cb_oracle_compare(&result->check, &expected, work->first, work->file.image.vector_type);
  cb_expected_release(&expected);
  return s;
}

static enum cb_status check(struct work *work, struct cb_run_result *result, struct cb_diag *diag) {
  enum cb_status s = multiply(work, work->first, diag);
  if (!s) s = multiply(work, work->second, diag);
  if (!s && work->file.expected) s = compare(work, result, diag);
  if (!s) result->repeatable = !memcmp(work->first, work->second, work->y_bytes);
  return s;
}

/* Repetitions one after the other: there is nothing to take turns with. */
static enum cb_status measure(struct work *work, struct cb_timing *timing, struct cb_diag *diag) {
  struct cb_bench *bench = work->bench;
  const int repetitions = bench->settings.repetitions;
  double us[CB_BENCH_MOST];
  enum cb_status s = CB_OK;
  timing->launches = bench->settings.launches;
  if (!timing->launches) s = cb_timer_launches(&timing->launches, &bench->timer, enqueue, work, diag);
  for (int r = 0; r < repetitions && !s; r++)
    s = cb_timer_measure(&us[r], &bench->timer, enqueue, work, timing->launches, bench->settings.batches, diag);
  if (s) return s;
  timing->us = cb_median(us, repetitions); /* sorts */
  timing->least_us = us[0];
  timing->most_us = us[repetitions - 1];
  return CB_OK;
}

/* ---- the whole */

static void note_sizes(struct work *work) {
  const struct cb_image *image = &work->file.image;
  const size_t width = cb_type_size(image->vector_type);
  work->x_bytes = width * (size_t)image->cols;
  work->y_bytes = width * (size_t)image->rows;
  work->beta = image->form == CB_FORM_ADD;
}

static enum cb_status check_memory(const struct work *work, struct cb_diag *diag) {
  static const char what[] = "a product with vectors of as many numbers as there are columns and rows";
  const enum cb_status s = cb_device_check_room(work->bench->device, work->x_bytes + work->y_bytes, what, diag);
  const uint64_t bytes = work->x_bytes + 3 * work->y_bytes + 24 * (uint64_t)work->file.image.rows;
  return s ? s : cb_available_check(bytes, what, diag);
}

static void release(struct work *work) {
  cb_operator_free(work->op);
  cb_device_free(work->bench->device, work->x);
  cb_device_free(work->bench->device, work->y);
  cb_free(work->before);
  cb_free(work->first);
  cb_free(work->second);
  cb_kernel_file_release(&work->file);
}

enum cb_status cb_run_kernel(struct cb_run_result *result, struct cb_bench *bench, const char *path,
                             struct cb_diag *diag) {
  struct work work = {.bench = bench, .path = path};
  *result = (struct cb_run_result){0};
  enum cb_status s = cb_kernel_file_read(&work.file, path, diag);
  note_sizes(&work);
  if (!s) s = check_memory(&work, diag);
  if (!s) s = note_file(result, &work, diag);
  if (!s) s = load(&work, result, diag);
  if (!s) s = make_vectors(&work, diag);
  if (!s) s = check(&work, result, diag);
  if (!s && result->launches) s = measure(&work, &result->timing, diag);
  release(&work);
  return s;
}

enum cb_status cb_bench_kernel(struct cb_bench_result *result, struct cb_bench *bench, const char *path,
                               struct cb_diag *diag) {
  *result = (struct cb_bench_result){.best = -1};
  const enum cb_status s = cb_run_kernel(&result->run, bench, path, diag);
  if (!s) cb_bench_derive(result, bench);
  return s;
}
