// SPDX-License-Identifier: Apache-2.0
/* What operators of the public interface tell of themselves, and how long a product takes. */
#include "runtime/api/checks.h"

#include "runtime/measure/timer.h"

#include <math.h>
#include <string.h>

enum cb_status cb_shared_texts(struct cb_shared *shared, struct cb_diag *diag) {
  struct cb_shared *const origin = shared->origin;
  enum cb_status s = origin ? cb_shared_texts(origin, diag) : CB_OK;
  if (s) return s;
  pthread_mutex_lock(&shared->texts);
  if (origin) {
    shared->image.json = origin->image.json;
    shared->image.source = origin->image.source;
  } else {
    s = cb_image_write_texts(&shared->image, diag);
  }
  pthread_mutex_unlock(&shared->texts);
  return s;
}

const char *cbgen_operator_source(const cbgen_operator *op, size_t *length) {
  CB_STANDARD_NUMERICS;
  const char *source = op && !cb_shared_texts(op->shared, NULL) ? op->shared->image.source : "";
  if (length) *length = strlen(source);
  return source;
}

const char *cbgen_operator_plan(const cbgen_operator *op) {
  return op ? op->shared->image.line : "";
}

const char *cbgen_operator_plan_json(const cbgen_operator *op) {
  CB_STANDARD_NUMERICS;
  return op && !cb_shared_texts(op->shared, NULL) ? op->shared->image.json : "";
}

const char *cbgen_operator_key(const cbgen_operator *op) {
  return op ? op->shared->key : "";
}

/* ---- the order of vectors */

static void copy_order(int32_t *to, const int32_t *order, int64_t count) {
  for (int64_t i = 0; i < count && to; i++) to[i] = order ? order[i] : (int32_t)i;
}

cbgen_status cbgen_operator_permutation(const cbgen_operator *op, int32_t *rows, int32_t *columns) {
  if (!op) return CBGEN_ERROR_ARGUMENT;
  const struct cb_shared *shared = op->shared;
  copy_order(rows, shared->order.rows, shared->image.rows);
  copy_order(columns, shared->order.columns, shared->image.cols);
  return CBGEN_OK;
}

/* ---- numbers */

/* Products after which set-up is repaid against a product of cuSPARSE that needs none. */
static double break_even(const cbgen_info *info) {
  const double own = info->measured_seconds > 0 ? info->measured_seconds : info->predicted_seconds;
  const double gain = info->csr_seconds - own;
  return gain > 0 ? ceil(info->total_seconds / gain) : HUGE_VAL;
}

/* All handles' share, and this one's scratch. */
static int64_t device_bytes(const cbgen_operator *op) {
  const struct cb_shared *shared = op->shared;
  int64_t bytes = cb_operator_info(op->op)->device_bytes;
  bytes += cb_operator_info(op->op)->scratch_bytes;
  bytes += cb_checks_bytes(shared->checks);
  bytes += cb_pairs_bytes(shared->pairs);
  return shared->updater ? bytes + cb_updater_bytes(shared->updater) : bytes;
}

static void fill(cbgen_info *info, const cbgen_operator *op) {
  struct cb_shared *shared = op->shared;
  const struct cb_image *image = &shared->image;
  *info = shared->info;
  info->rows = image->rows;
  info->cols = image->cols;
  info->nnz = image->nnz;
  info->entries = image->entries;
  info->matrix_type = (cbgen_type)cb_type_of_number(image->matrix_type);
  info->split = image->matrix_type == CB_SPLIT;
  info->vector_type = (cbgen_type)image->vector_type;
  info->sum_type = (cbgen_type)image->sum_type;
  info->values = (cbgen_values)image->values;
  info->launches = image->launches_count;
  info->has_scratch = cb_operator_info(op->op)->has_scratch;
  info->stored_bytes = image->stored_bytes;
  info->device_bytes = device_bytes(op);
  info->vectors = cb_operator_info(op->op)->vectors;
  info->tier = (cbgen_tier)cb_operator_tier(op->op);
  cb_operator_registers(op->op, &info->registers, &info->spilled_bytes);
  info->bytes_per_nonzero = image->nnz ? (double)image->stored_bytes / (double)image->nnz : 0;
  info->predicted_seconds = 1e-9 * (double)image->plan_ns;
  info->csr_seconds = 1e-9 * (double)image->csr_ns;
  pthread_mutex_lock(&shared->lock);
  info->measured_seconds = shared->measured;
  pthread_mutex_unlock(&shared->lock);
  info->break_even = break_even(info);
}

cbgen_status cbgen_operator_info(const cbgen_operator *op, cbgen_info *info) {
  enum { MOST = 4096 }; /* no version's is that long: not what lies behind it is written */
  CB_STANDARD_NUMERICS;
  cbgen_info filled;
  size_t size = 0;
  if (!op || !info) return CBGEN_ERROR_ARGUMENT;
  memcpy(&size, info, sizeof size);
  if (size < sizeof size || size > MOST) return CBGEN_ERROR_ARGUMENT;
  fill(&filled, op);
  filled.struct_size = size; /* the caller's: an older or a newer version's */
  memcpy(info, &filled, size < sizeof filled ? size : sizeof filled);
  if (size > sizeof filled) memset((char *)info + sizeof filled, 0, size - sizeof filled);
  return CBGEN_OK;
}

/* ---- time */

struct products {
  struct cb_operator *op;
  double beta;
  cb_device_ptr x, y;
};

static enum cb_status enqueue(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct products *products = user;
  return cb_operator_multiply(products->op, 1, products->x, products->beta, products->y, stream, diag);
}

static enum cb_status time_products(double *seconds, const struct cb_device *device,
                                    struct products *products, struct CUstream_st *stream,
                                    struct cb_diag *diag) {
  enum { BATCHES = 7 };
  struct cb_timer timer = {0};
  double us = 0;
  int launches = 0;
  enum cb_status s = cb_timer_open(&timer, device, stream, diag);
  if (!s) s = cb_timer_launches(&launches, &timer, enqueue, products, diag);
  if (!s) s = cb_timer_measure(&us, &timer, enqueue, products, launches, BATCHES, diag);
  cb_timer_close(&timer);
  *seconds = 1e-6 * us;
  return s;
}

/* With the device's context current: vectors of zeros, a stream, a handle with scratch of its own. */
static enum cb_status measure(double *seconds, const struct cb_device *device, const struct cb_operator *op,
                              struct cb_diag *diag) {
  const struct cb_operator_info *info = cb_operator_info(op);
  const size_t width = cb_type_size(info->vector_type);
  const size_t x_bytes = width * (size_t)info->cols, y_bytes = width * (size_t)info->rows;
  struct products products = {.beta = info->form == CB_FORM_ADD};
  struct CUstream_st *stream = NULL;
  enum cb_status s = cb_operator_clone(&products.op, op, diag);
  if (!s) s = cb_device_alloc(device, &products.x, x_bytes, "x", diag);
  if (!s) s = cb_device_alloc(device, &products.y, y_bytes, "y", diag);
  if (!s) s = cb_device_fill(device, products.x, 0, x_bytes, diag);
  if (!s) s = cb_device_fill(device, products.y, 0, y_bytes, diag);
  if (!s)
    s = cb_driver_check(device->driver,
                        device->driver->call.stream_create(&stream, CB_CU_STREAM_NON_BLOCKING), diag,
                        "make a stream");
  if (s) stream = NULL;
  if (!s) s = cb_device_wait(device, "preparing vectors", diag);
  if (!s) s = time_products(seconds, device, &products, stream, diag);
  if (stream) device->driver->call.stream_destroy(stream);
  cb_device_free(device, products.x);
  cb_device_free(device, products.y);
  cb_operator_free(products.op);
  return s;
}

enum cb_status cb_measure(double *seconds, const struct cb_device *device, const struct cb_operator *op,
                          struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  *seconds = 0;
  if (!cb_operator_info(op)->launches) return CB_OK; /* nothing to be done takes no time */
  s = cb_device_enter(device, diag);
  if (s) return s;
  s = measure(seconds, device, op, diag);
  cb_device_leave(device);
  return s;
}

cbgen_status cbgen_operator_measure(cbgen_operator *op, double *seconds) {
  CB_STANDARD_NUMERICS;
  struct cb_diag diag = {0};
  double measured = 0;
  if (!op) return CBGEN_ERROR_ARGUMENT;
  const enum cb_status s = cb_measure(&measured, op->shared->session->device, op->op, &diag);
  if (!s) {
    pthread_mutex_lock(&op->shared->lock);
    op->shared->measured = measured;
    pthread_mutex_unlock(&op->shared->lock);
    if (seconds) *seconds = measured;
  }
  return cb_operator_report(op, s, &diag);
}
