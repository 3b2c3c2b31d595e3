// SPDX-License-Identifier: Apache-2.0
/* A libcublas for tests, on the memory and streams of the fake driver: the functions that bench/solve_vendor.c
 * calls, for doubles with steps of 1. Scalars lie where the handle's pointer mode says. With those on the host, dot
 * and asum wait for the stream, as cuBLAS does, which a capture forbids. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fake_driver.h"

#define EXPORT __attribute__((visibility("default")))

enum { OK = 0, INVALID_VALUE = 7, EXECUTION_FAILED = 13 };
enum { ON_HOST = 0, ON_DEVICE = 1, LEFT = 0 };

struct handle {
  void *stream;
  int pointers;
};

/* z = what `run` makes of alpha, x and y. */
struct work {
  int64_t n;
  const void *x, *y, *scalar;
  void *z;
  double alpha; /* where `scalar` is NULL */
  enum { DOT, ASUM, AXPY, SCAL, TIMES } kind;
};

static double *numbers(const void *address, int64_t n) {
  return fake_bytes((uint64_t)(uintptr_t)address, (size_t)n * sizeof(double));
}

static void run(const void *data) {
  const struct work *work = data;
  const double *x = numbers(work->x, work->n), *y = work->y ? numbers(work->y, work->n) : NULL;
  const double alpha = work->scalar ? *numbers(work->scalar, 1) : work->alpha;
  double *z = numbers(work->z, work->kind <= ASUM ? 1 : work->n), sum = 0;
  for (int64_t i = 0; i < work->n; i++) {
    if (work->kind <= ASUM) sum += work->kind == DOT ? x[i] * y[i] : fabs(x[i]);
    if (work->kind == AXPY) z[i] += alpha * x[i];
    if (work->kind == SCAL) z[i] *= alpha;
    if (work->kind == TIMES) z[i] = x[i] * y[i];
  }
  if (work->kind <= ASUM) *z = sum;
}

static int put_work(const struct handle *handle, void (*of)(const void *data), const void *work, size_t bytes) {
  unsigned (*call)(void *stream, void (*run)(const void *data), const void *data, size_t bytes);
  void *symbol = fake_symbol("fake_work");
  memcpy(&call, &symbol, sizeof call);
  if (!symbol || !handle) return INVALID_VALUE;
  return call(handle->stream, of, work, bytes) ? EXECUTION_FAILED : OK;
}

static int put(const struct handle *handle, struct work work) {
  return work.n < 1 ? INVALID_VALUE : put_work(handle, run, &work, sizeof work);
}

/* The scalar is read now, or when the work is done. */
static int put_scaled(const struct handle *handle, struct work work, const double *alpha) {
  if (handle->pointers == ON_DEVICE) work.scalar = alpha;
  else work.alpha = *alpha;
  return put(handle, work);
}

/* Into the device's memory, from where the host takes it. */
static int put_sum(const struct handle *handle, struct work work, double *result) {
  if (handle->pointers == ON_DEVICE) {
    work.z = result;
    return put(handle, work);
  }
  uint64_t place = 0;
  if (FAKE_CALL(cuMemAlloc_v2, (uint64_t *, size_t))(&place, sizeof *result)) return EXECUTION_FAILED;
  work.z = (void *)(uintptr_t)place;
  int status = put(handle, work);
  if (!status && FAKE_CALL(cuStreamSynchronize, (void *))(handle->stream)) status = EXECUTION_FAILED;
  if (!status) *result = *numbers(work.z, 1);
  FAKE_CALL(cuMemFree_v2, (uint64_t))(place);
  return status;
}

EXPORT int cublasCreate_v2(struct handle **handle) {
  *handle = calloc(1, sizeof **handle);
  return *handle ? OK : EXECUTION_FAILED;
}
EXPORT int cublasDestroy_v2(struct handle *handle) {
  free(handle);
  return OK;
}
EXPORT int cublasSetStream_v2(struct handle *handle, void *stream) {
  handle->stream = stream;
  return OK;
}
EXPORT int cublasSetPointerMode_v2(struct handle *handle, int mode) {
  if (mode != ON_HOST && mode != ON_DEVICE) return INVALID_VALUE;
  handle->pointers = mode;
  return OK;
}

EXPORT int cublasDdot_v2(struct handle *handle, int n, const double *x, int x_step, const double *y, int y_step,
                         double *result) {
  if (x_step != 1 || y_step != 1) return INVALID_VALUE;
  return put_sum(handle, (struct work){.n = n, .x = x, .y = y, .kind = DOT}, result);
}
EXPORT int cublasDasum_v2(struct handle *handle, int n, const double *x, int step, double *result) {
  if (step != 1) return INVALID_VALUE;
  return put_sum(handle, (struct work){.n = n, .x = x, .kind = ASUM}, result);
}
EXPORT int cublasDaxpy_v2(struct handle *handle, int n, const double *alpha, const double *x, int x_step, double *y,
                          int y_step) {
  if (x_step != 1 || y_step != 1) return INVALID_VALUE;
  return put_scaled(handle, (struct work){.n = n, .x = x, .z = y, .kind = AXPY}, alpha);
}
EXPORT int cublasDscal_v2(struct handle *handle, int n, const double *alpha, double *x, int step) {
  if (step != 1) return INVALID_VALUE;
  return put_scaled(handle, (struct work){.n = n, .x = x, .z = x, .kind = SCAL}, alpha);
}
/* a: columns of `rows` doubles, one behind the other. */
struct gemv {
  int rows, cols, turned;
  const double *a, *x, *alpha, *beta;
  double *y;
};

static void run_gemv(const void *data) {
  const struct gemv *work = data;
  const int64_t n = work->rows, from = work->turned ? n : work->cols, to = work->turned ? work->cols : n;
  const double *a = numbers(work->a, n * work->cols), *x = numbers(work->x, from), *beta = numbers(work->beta, 1);
  double *y = numbers(work->y, to);
  for (int64_t i = 0; i < to; i++) {
    double sum = 0;
    for (int64_t j = 0; j < from; j++) sum += (work->turned ? a[i * n + j] : a[j * n + i]) * x[j];
    y[i] = *numbers(work->alpha, 1) * sum + (*beta == 0 ? 0 : *beta * y[i]);
  }
}

EXPORT int cublasDgemv_v2(struct handle *handle, int operation, int rows, int cols, const double *alpha,
                          const double *a, int a_step, const double *x, int x_step, const double *beta, double *y,
                          int y_step) {
  const struct gemv work = {rows, cols, operation == 1, a, x, alpha, beta, y};
  if (operation > 1 || rows < 1 || cols < 1 || a_step != rows || x_step != 1 || y_step != 1) return INVALID_VALUE;
  if (handle->pointers != ON_DEVICE) return INVALID_VALUE;
  return put_work(handle, run_gemv, &work, sizeof work);
}
EXPORT int cublasDdgmm(struct handle *handle, int side, int rows, int cols, const double *a, int a_step,
                       const double *x, int x_step, double *c, int c_step) {
  if (side != LEFT || cols != 1 || a_step < rows || c_step < rows || x_step != 1) return INVALID_VALUE;
  return put(handle, (struct work){.n = rows, .x = a, .y = x, .z = c, .kind = TIMES});
}
