// SPDX-License-Identifier: Apache-2.0
/* cuSPARSE's products with several vectors: see spmm.h. */
#include "runtime/measure/spmm.h"

#include "base/clock.h"
#include "base/memory.h"
#include "runtime/measure/convert.h"

#include <stdio.h>

const char *const cb_dense_order_names[] = {"rows", "columns"};

static const struct kind {
  const char *name;
  unsigned algorithm;
  enum cb_dense_order order;
} kinds[CB_SPMM_KINDS] = {
    {"spmm-alg1", CB_CUSPARSE_MANY_CSR_ALG1, CB_BY_ROW},    {"spmm-alg2", CB_CUSPARSE_MANY_CSR_ALG2, CB_BY_ROW},
    {"spmm-alg3", CB_CUSPARSE_MANY_CSR_ALG3, CB_BY_ROW},    {"spmm-alg1", CB_CUSPARSE_MANY_CSR_ALG1, CB_BY_COLUMN},
    {"spmm-alg2", CB_CUSPARSE_MANY_CSR_ALG2, CB_BY_COLUMN}, {"spmm-alg3", CB_CUSPARSE_MANY_CSR_ALG3, CB_BY_COLUMN},
};

struct entry {
  struct cb_baseline info;
  cb_device_ptr buffer;
  struct cusparseSpMatDescr *matrix; /* its own: preprocessing notes things there */
};

struct cb_spmm {
  struct cb_cusparse *cusparse;
  unsigned matrix_type, x_type, y_type, sum_type;
  int is_single; /* alpha and beta are floats */
  int64_t rows, cols, nnz;
  cb_device_ptr offsets, columns, values;
  struct cusparseDnMatDescr *x[CB_DENSE_ORDERS], *y[CB_DENSE_ORDERS];
  struct entry entries[CB_SPMM_KINDS];
};

struct scalar { /* of complex types both parts */
  double wide[2];
  float narrow[2];
};

static const void *scalar_of(const struct cb_spmm *spmm, const struct scalar *scalar) {
  return spmm->is_single ? (const void *)scalar->narrow : scalar->wide;
}

static unsigned cuda_type(enum cb_type type) {
  static const unsigned types[] = {
      [CB_F64] = CB_CUDA_R_64F, [CB_F32] = CB_CUDA_R_32F, [CB_F16] = CB_CUDA_R_16F, [CB_BF16] = CB_CUDA_R_16BF,
                                   [CB_C128] = CB_CUDA_C_64F, [CB_C64] = CB_CUDA_C_32F};
  return types[type];
}

static void *pointer(cb_device_ptr address) { return (void *)(uintptr_t)address; }

static enum cb_status put(const struct cb_spmm *spmm, cb_device_ptr *address, const void *bytes, size_t length,
                          const char *what, struct cb_diag *diag) {
  const struct cb_device *device = cb_cusparse_device(spmm->cusparse);
  const enum cb_status s = cb_device_alloc(device, address, length, what, diag);
  return s ? s : cb_device_upload(device, *address, bytes, length, what, diag);
}

static enum cb_status put_matrix(struct cb_spmm *spmm, const struct cb_csr *csr, enum cb_type type,
                                 struct cb_diag *diag) {
  void *values = NULL;
  if (csr->nnz > INT32_MAX)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "%lld nonzeros are more than 32-bit row pointers count", (long long)csr->nnz);
  enum cb_status s = cb_convert_values(&values, csr, type, diag);
  if (!s) s = put(spmm, &spmm->offsets, csr->row_ptr, 4 * ((size_t)csr->rows + 1), "row pointers", diag);
  if (!s) s = put(spmm, &spmm->columns, csr->col_idx, 4 * (size_t)csr->nnz, "column indices", diag);
  if (!s) s = put(spmm, &spmm->values, values, cb_type_size(type) * (size_t)csr->nnz, "values", diag);
  cb_free(values);
  return s;
}

static enum cb_status describe(struct cb_spmm *spmm, int vectors, const cb_device_ptr x[CB_DENSE_ORDERS],
                               const cb_device_ptr y[CB_DENSE_ORDERS], struct cb_diag *diag) {
  const struct cb_cusparse_calls *call = cb_cusparse_calls(spmm->cusparse);
  static const unsigned orders[] = {[CB_BY_ROW] = CB_CUSPARSE_ORDER_ROW, [CB_BY_COLUMN] = CB_CUSPARSE_ORDER_COLUMN};
  enum cb_status s = CB_OK;
  if (!call->create_dense || !call->destroy_dense || !call->many_buffer_size || !call->multiply_many)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "this cuSPARSE has no SpMM");
  for (int order = 0; order < CB_DENSE_ORDERS && !s; order++) {
    const int64_t x_leading = order == CB_BY_ROW ? vectors : spmm->cols;
    const int64_t y_leading = order == CB_BY_ROW ? vectors : spmm->rows;
    s = cb_cusparse_check(spmm->cusparse,
                          call->create_dense(&spmm->x[order], spmm->cols, vectors, x_leading, pointer(x[order]),
                                             spmm->x_type, orders[order]),
                          "describe X", diag);
    if (!s)
      s = cb_cusparse_check(spmm->cusparse,
                            call->create_dense(&spmm->y[order], spmm->rows, vectors, y_leading, pointer(y[order]),
                                               spmm->y_type, orders[order]),
                            "describe Y", diag);
  }
  return s;
}

static enum cb_status prepare(struct cb_spmm *spmm, int number, struct cb_diag *diag) {
  const struct kind *kind = &kinds[number];
  const struct cb_cusparse_calls *call = cb_cusparse_calls(spmm->cusparse);
  struct cusparseContext *handle = cb_cusparse_handle(spmm->cusparse);
  const struct cb_device *device = cb_cusparse_device(spmm->cusparse);
  struct entry *entry = &spmm->entries[number];
  const struct scalar one = {{1}, {1}}, zero = {{0}, {0}};
  const void *const alpha = scalar_of(spmm, &one), *const beta = scalar_of(spmm, &zero);
  const unsigned plain = CB_CUSPARSE_NON_TRANSPOSE;
  const double start = cb_seconds();
  size_t bytes = 0;
  enum cb_status s = cb_cusparse_check(
      spmm->cusparse,
      call->create_csr(&entry->matrix, spmm->rows, spmm->cols, spmm->nnz, pointer(spmm->offsets),
                       pointer(spmm->columns), pointer(spmm->values), CB_CUSPARSE_INDEX_32I, CB_CUSPARSE_INDEX_32I,
                       CB_CUSPARSE_BASE_ZERO, spmm->matrix_type),
      "describe the matrix", diag);
  if (!s)
    s = cb_cusparse_check(spmm->cusparse,
                          call->many_buffer_size(handle, plain, plain, alpha, entry->matrix, spmm->x[kind->order], beta,
                                                 spmm->y[kind->order], spmm->sum_type, kind->algorithm, &bytes),
                          "size SpMM's buffer", diag);
  if (!s) s = cb_device_alloc(device, &entry->buffer, bytes + 1, "SpMM's buffer", diag);
  if (!s && call->many_preprocess)
    s = cb_cusparse_check(spmm->cusparse,
                          call->many_preprocess(handle, plain, plain, alpha, entry->matrix, spmm->x[kind->order], beta,
                                                spmm->y[kind->order], spmm->sum_type, kind->algorithm,
                                                pointer(entry->buffer)),
                          "prepare SpMM", diag);
  if (!s) s = cb_device_wait(device, "preparing SpMM", diag);
  entry->info.buffer_bytes = (int64_t)bytes;
  entry->info.prepare_seconds = cb_seconds() - start;
  return s;
}

static void add_entry(struct cb_spmm *spmm, int number) {
  struct cb_baseline *info = &spmm->entries[number].info;
  struct cb_diag refusal = {0};
  snprintf(info->name, sizeof info->name, "%s", kinds[number].name);
  info->applies = !prepare(spmm, number, &refusal);
  if (!info->applies)
    snprintf(info->reason, sizeof info->reason, "%.*s", (int)sizeof info->reason - 1, refusal.message);
}

enum cb_status cb_spmm_open(struct cb_spmm **out, struct cb_cusparse *cusparse, const struct cb_csr *csr,
                            struct cb_baseline_types types, int vectors, const cb_device_ptr x[CB_DENSE_ORDERS],
                            const cb_device_ptr y[CB_DENSE_ORDERS], struct cb_diag *diag) {
  struct cb_spmm *spmm = cb_calloc(1, sizeof *spmm);
  *out = NULL;
  if (!spmm) return cb_fail_memory(diag, "the list of baselines", sizeof *spmm);
  *spmm = (struct cb_spmm){.cusparse = cusparse,
                           .matrix_type = cuda_type(types.matrix),
                           .x_type = cuda_type(types.x),
                           .y_type = cuda_type(types.y),
                           .sum_type = cuda_type(types.sum),
                           .is_single = cb_type_of_part(types.sum) == CB_F32,
                           .rows = csr->rows,
                           .cols = csr->cols,
                           .nnz = csr->nnz};
  enum cb_status s = put_matrix(spmm, csr, types.matrix, diag);
  if (!s) s = describe(spmm, vectors, x, y, diag);
  for (int i = 0; i < CB_SPMM_KINDS && !s; i++) add_entry(spmm, i);
  if (s) cb_spmm_close(spmm);
  else *out = spmm;
  return s;
}

void cb_spmm_close(struct cb_spmm *spmm) {
  if (!spmm) return;
  const struct cb_cusparse_calls *call = cb_cusparse_calls(spmm->cusparse);
  const struct cb_device *device = cb_cusparse_device(spmm->cusparse);
  for (int i = 0; i < CB_SPMM_KINDS; i++) {
    if (spmm->entries[i].matrix) call->destroy_matrix(spmm->entries[i].matrix);
    cb_device_free(device, spmm->entries[i].buffer);
  }
  for (int order = 0; order < CB_DENSE_ORDERS; order++) {
    if (spmm->x[order]) call->destroy_dense(spmm->x[order]);
    if (spmm->y[order]) call->destroy_dense(spmm->y[order]);
  }
  cb_device_free(device, spmm->offsets);
  cb_device_free(device, spmm->columns);
  cb_device_free(device, spmm->values);
  cb_free(spmm);
}

const struct cb_baseline *cb_spmm_get(const struct cb_spmm *spmm, int kind) { return &spmm->entries[kind].info; }
enum cb_dense_order cb_spmm_order(int kind) { return kinds[kind].order; }

enum cb_status cb_spmm_multiply(struct cb_spmm *spmm, int number, double alpha, double beta, struct CUstream_st *stream,
                                struct cb_diag *diag) {
  const struct kind *kind = &kinds[number];
  const struct entry *entry = &spmm->entries[number];
  const struct scalar a = {{alpha}, {(float)alpha}}, b = {{beta}, {(float)beta}};
  const enum cb_status s = cb_cusparse_set_stream(spmm->cusparse, stream, diag);
  if (s) return s;
  return cb_cusparse_check(
      spmm->cusparse,
      cb_cusparse_calls(spmm->cusparse)
          ->multiply_many(cb_cusparse_handle(spmm->cusparse), CB_CUSPARSE_NON_TRANSPOSE, CB_CUSPARSE_NON_TRANSPOSE,
                          scalar_of(spmm, &a), entry->matrix, spmm->x[kind->order], scalar_of(spmm, &b),
                          spmm->y[kind->order], spmm->sum_type, kind->algorithm, pointer(entry->buffer)),
      "multiply", diag);
}
