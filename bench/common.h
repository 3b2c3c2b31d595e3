// SPDX-License-Identifier: Apache-2.0
/* What programs that measure share: GPU 0 with its context current, a matrix as the public interface takes it, and
 * whether a solution is right. */
#ifndef CBGEN_BENCH_COMMON_H
#define CBGEN_BENCH_COMMON_H

#include "base/memory.h"
#include "cbgen.h"
#include "frontend/csr.h"
#include "runtime/cuda/driver.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Returns whether there is a GPU; if not, stderr says why. */
static inline int bench_open(struct cb_driver **driver, struct cb_device **device) {
  struct cb_diag diag = {0};
  enum cb_status s = cb_driver_open(driver, NULL, &diag);
  if (!s) s = cb_device_open(device, *driver, 0, &diag);
  if (!s) s = cb_device_enter(*device, &diag);
  if (s) fprintf(stderr, "%s\n", diag.message);
  return !s;
}

static inline void bench_close(struct cb_driver *driver, struct cb_device *device) {
  cbgen_trim();
  cb_device_leave(device);
  cb_device_close(device);
  cb_driver_close(driver);
}

/* *row_ptr, which is the caller's, holds the matrix's row pointers as 32-bit integers. */
static inline enum cb_status bench_view(cbgen_csr *view, int32_t **row_ptr, const struct cb_csr *csr,
                                        struct cb_diag *diag) {
  *row_ptr = cb_alloc((size_t)csr->rows + 1, sizeof **row_ptr);
  if (!*row_ptr) return cb_fail_memory(diag, "row pointers", (uint64_t)csr->rows);
  for (int64_t i = 0; i <= csr->rows; i++) (*row_ptr)[i] = (int32_t)cb_csr_row(csr, i);
  *view = (cbgen_csr){.struct_size = sizeof *view, .rows = csr->rows, .cols = csr->cols, .nnz = csr->nnz,
                      .row_ptr = *row_ptr, .col_idx = csr->col_idx, .values = csr->values};
  return CB_OK;
}

/* A block on the device, with these bytes; NULL: with whatever lies there. */
static inline enum cb_status bench_put(const struct cb_device *device, cb_device_ptr *address, const void *bytes,
                                       size_t length, struct cb_diag *diag) {
  enum cb_status s = cb_device_alloc(device, address, length, "a matrix", diag);
  if (!s && bytes) s = cb_device_upload(device, *address, bytes, length, "a matrix", diag);
  return s;
}

/* The matrix on the device: its row pointers, columns and values are `arrays`, which the caller frees in any case. */
static inline enum cb_status bench_put_matrix(cbgen_csr *view, cb_device_ptr arrays[3], const struct cb_device *device,
                                              const struct cb_csr *csr, struct cb_diag *diag) {
  const size_t nonzeros = (size_t)csr->nnz;
  enum cb_status s =
      bench_put(device, &arrays[0], csr->row_ptr, ((size_t)csr->rows + 1) * (csr->wide ? 8 : 4), diag);
  if (!s) s = bench_put(device, &arrays[1], csr->col_idx, nonzeros * sizeof *csr->col_idx, diag);
  if (!s) s = bench_put(device, &arrays[2], csr->values, nonzeros * sizeof *csr->values, diag);
  *view = (cbgen_csr){.struct_size = sizeof *view,
                      .rows = csr->rows,
                      .cols = csr->cols,
                      .nnz = csr->nnz,
                      .row_ptr = (void *)(uintptr_t)arrays[0],
                      .col_idx = (void *)(uintptr_t)arrays[1],
                      .values = (void *)(uintptr_t)arrays[2],
                      .row_ptr_bits = csr->wide ? 64 : 32,
                      .memory = CBGEN_DEVICE,
                      .name = csr->name};
  return s;
}

/* Sets options of the context, "NAME=VALUE" each. */
static inline enum cb_status bench_set_all(cbgen_context *context, const char *const *settings, int count,
                                           struct cb_diag *diag) {
  for (int i = 0; i < count; i++) {
    char name[40];
    const char *value = strchr(settings[i], '=');
    if (!value) return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' is no NAME=VALUE", settings[i]);
    snprintf(name, sizeof name, "%.*s", (int)(value - settings[i]), settings[i]);
    const cbgen_status s = cbgen_set(context, name, value + 1);
    if (s) return cb_fail(diag, (enum cb_status)s, "%s", cbgen_message(context));
  }
  return CB_OK;
}

/* ‖b − A x‖ / ‖b‖, and ‖b‖. */
static inline double bench_residual(const struct cb_csr *csr, const double *b, const double *x, double *norm) {
  double square = 0, of_b = 0;
#pragma omp parallel for reduction(+ : square, of_b)
  for (int64_t row = 0; row < csr->rows; row++) {
    long double r = b[row];
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      r -= (long double)csr->values[k] * x[csr->col_idx[k]];
    square += (double)(r * r);
    of_b += b[row] * b[row];
  }
  *norm = sqrt(of_b);
  return sqrt(square / of_b);
}

#endif
