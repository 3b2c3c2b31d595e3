// SPDX-License-Identifier: Apache-2.0
/* The fake cuSPARSE: see fake_cusparse.h. The numbers are those of cusparse.h 12.6, for SpMVOp those of 12.7.2, 12.7.3,
 * 12.8.1 and 12.9.4, written down a second time. */
#include "fake_cusparse.h"

#include <complex.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "fake_driver.h"

#define EXPORT __attribute__((visibility("default")))

#ifndef FAKE_CUSPARSE_VERSION
#define FAKE_CUSPARSE_VERSION 120904
#endif

enum { OK = 0, INVALID_VALUE = 3, NOT_SUPPORTED = 10 };
enum { REAL_32 = 0, REAL_64 = 1, REAL_16 = 2, COMPLEX_32 = 4, COMPLEX_64 = 5, REAL_B16 = 14 };
enum { INDEX_32 = 2, ORDER_ROW = 2 };
enum format { CSR = 1, COO = 3, BSR = 6, SELL = 7 };

static struct fake_cusparse state;
EXPORT struct fake_cusparse *const fake_cusparse = &state;

struct matrix {
  enum format format;
  int64_t rows, cols, entries, size; /* rows and cols in blocks for BSR; entries: slots for SELL */
  uint64_t offsets, columns, values;
  unsigned type;
};

struct vector {
  int64_t size;
  uint64_t values;
  unsigned type;
};

/* As fake_bytes, but looks for the function only once: products ask for every element. */
static void *bytes_at(uint64_t address, size_t count) {
  static void *(*function)(uint64_t, size_t);
  void *symbol = function ? NULL : fake_symbol("fake_host");
  if (symbol) memcpy(&function, &symbol, sizeof function);
  return function(address, count);
}

static unsigned misuse(const char *what) {
  if (!state.misuses++) snprintf(state.misuse, sizeof state.misuse, "%s", what);
  return INVALID_VALUE;
}

#define ENTER                                                                                                \
  if (++state.calls == state.fail_at) return NOT_SUPPORTED
#define EXPECT(condition)                                                                                    \
  if (!(condition)) return misuse(#condition)

static void *new_thing(size_t bytes) {
  state.live++;
  return calloc(1, bytes);
}

static unsigned drop(void *thing) {
  state.live--;
  free(thing);
  return OK;
}

/* ---- handles and descriptors. Destroying works even when the call is made to fail. */

struct handle {
  void *stream;
};

EXPORT unsigned cusparseCreate(struct handle **handle) {
  ENTER;
  *handle = new_thing(sizeof **handle);
  return OK;
}
EXPORT unsigned cusparseDestroy(struct handle *handle) {
  return drop(handle);
}
EXPORT unsigned cusparseGetProperty(unsigned property, int *value) {
  ENTER;
  EXPECT(property < 3);
  *value = FAKE_CUSPARSE_VERSION / (property == 0 ? 10000 : property == 1 ? 100 : 1) % 100;
  return OK;
}
EXPORT unsigned cusparseSetStream(struct handle *handle, void *stream) {
  ENTER;
  EXPECT(handle && stream);
  handle->stream = stream;
  return OK;
}
EXPORT const char *cusparseGetErrorString(unsigned status) {
  return status == NOT_SUPPORTED ? "operation not supported" : "invalid value";
}
EXPORT unsigned cusparseCreateMatDescr(void **descriptor) {
  ENTER;
  *descriptor = new_thing(8);
  return OK;
}
EXPORT unsigned cusparseDestroyMatDescr(void *descriptor) {
  return drop(descriptor);
}

static size_t width(unsigned type) {
  if (type == COMPLEX_32 || type == COMPLEX_64) return type == COMPLEX_32 ? 8 : 16;
  return type == REAL_32 ? 4 : type == REAL_64 ? 8 : 2;
}

EXPORT unsigned cusparseCreateDnVec(struct vector **vector, int64_t size, void *values, unsigned type) {
  ENTER;
  EXPECT(type == REAL_32 || type == REAL_64 || type == REAL_16 || type == REAL_B16 || type == COMPLEX_32 ||
         type == COMPLEX_64);
  EXPECT(bytes_at((uintptr_t)values, (size_t)size * width(type)));
  *vector = new_thing(sizeof **vector);
  **vector = (struct vector){size, (uintptr_t)values, type};
  return OK;
}
EXPORT unsigned cusparseDestroyDnVec(struct vector *vector) {
  return drop(vector);
}
EXPORT unsigned cusparseDestroySpMat(struct matrix *matrix) {
  return drop(matrix);
}

static unsigned make(struct matrix **out, struct matrix matrix, int64_t offsets, int64_t values) {
  EXPECT(matrix.rows > 0 && matrix.cols > 0 && matrix.entries > 0);
  EXPECT(bytes_at(matrix.offsets, (size_t)offsets * 4));
  EXPECT(bytes_at(matrix.columns, (size_t)matrix.entries * 4));
  EXPECT(bytes_at(matrix.values, (size_t)values * width(matrix.type)));
  *out = new_thing(sizeof **out);
  **out = matrix;
  return OK;
}

EXPORT unsigned cusparseCreateCsr(struct matrix **matrix, int64_t rows, int64_t cols, int64_t nnz,
                                  void *offsets, void *columns, void *values, unsigned offsets_type,
                                  unsigned columns_type, unsigned base, unsigned type) {
  ENTER;
  EXPECT(offsets_type == INDEX_32 && columns_type == INDEX_32 && base == 0);
  return make(matrix,
              (struct matrix){CSR, rows, cols, nnz, 0, (uintptr_t)offsets, (uintptr_t)columns,
                              (uintptr_t)values, type},
              rows + 1, nnz);
}

EXPORT unsigned cusparseCreateCoo(struct matrix **matrix, int64_t rows, int64_t cols, int64_t nnz,
                                  void *row_indices, void *columns, void *values, unsigned index_type,
                                  unsigned base, unsigned type) {
  ENTER;
  EXPECT(index_type == INDEX_32 && base == 0);
  return make(matrix,
              (struct matrix){COO, rows, cols, nnz, 0, (uintptr_t)row_indices, (uintptr_t)columns,
                              (uintptr_t)values, type},
              nnz, nnz);
}

EXPORT unsigned cusparseCreateSlicedEll(struct matrix **matrix, int64_t rows, int64_t cols, int64_t nnz,
                                        int64_t slots, int64_t slice, void *offsets, void *columns,
                                        void *values, unsigned offsets_type, unsigned columns_type,
                                        unsigned base, unsigned type) {
  ENTER;
  EXPECT(offsets_type == INDEX_32 && columns_type == INDEX_32 && base == 0 && slice > 0 && nnz <= slots);
  return make(matrix,
              (struct matrix){SELL, rows, cols, slots, slice, (uintptr_t)offsets, (uintptr_t)columns,
                              (uintptr_t)values, type},
              (rows + slice - 1) / slice + 1, slots);
}

EXPORT unsigned cusparseCreateBsr(struct matrix **matrix, int64_t rows, int64_t cols, int64_t blocks,
                                  int64_t block_r, int64_t block_c, void *offsets, void *columns,
                                  void *values, unsigned offsets_type, unsigned columns_type, unsigned base,
                                  unsigned type, unsigned order) {
  ENTER;
  EXPECT(offsets_type == INDEX_32 && columns_type == INDEX_32 && base == 0 && block_r == block_c &&
         order == ORDER_ROW);
  return make(matrix,
              (struct matrix){BSR, rows, cols, blocks, block_r, (uintptr_t)offsets, (uintptr_t)columns,
                              (uintptr_t)values, type},
              rows + 1, blocks * block_r * block_c);
}

/* ---- products */

static double complex get_complex(const void *bytes, unsigned type) {
  const float *const single = bytes;
  const double *const wide = bytes;
  return type == COMPLEX_32 ? single[0] + I * single[1] : wide[0] + I * wide[1];
}

static int is_complex(unsigned type) { return type == COMPLEX_32 || type == COMPLEX_64; }

static double complex get(uint64_t address, unsigned type, int64_t at) {
  const void *bytes = bytes_at(address + (uint64_t)at * width(type), width(type));
  if (is_complex(type)) return get_complex(bytes, type);
  if (type == REAL_16 || type == REAL_B16) return cb_real_get(bytes, type == REAL_16 ? CB_F16 : CB_BF16, 0);
  return type == REAL_32 ? (double)*(const float *)bytes : *(const double *)bytes;
}

static int64_t get_index(uint64_t address, int64_t at) {
  return *(const int32_t *)bytes_at(address + 4 * (uint64_t)at, 4);
}

/* Adds row `row`'s products into *sum. */
static void add_row(const struct matrix *matrix, const struct vector *x, int64_t row, double complex *sum) {
  const int64_t size = matrix->size;
  int64_t first = 0, end = matrix->entries;
  if (matrix->format == CSR)
    first = get_index(matrix->offsets, row), end = get_index(matrix->offsets, row + 1);
  if (matrix->format == BSR || matrix->format == SELL) {
    first = get_index(matrix->offsets, row / size);
    end = get_index(matrix->offsets, row / size + 1);
  }
  for (int64_t k = first; k < end; k++) {
    if (matrix->format == COO && get_index(matrix->offsets, k) != row) continue;
    if (matrix->format == SELL && ((k - first) % size != row % size || get_index(matrix->columns, k) < 0))
      continue;
    const int64_t column = get_index(matrix->columns, k);
    if (matrix->format != BSR) *sum += get(matrix->values, matrix->type, k) * get(x->values, x->type, column);
    for (int64_t j = 0; matrix->format == BSR && j < size; j++)
      *sum += get(matrix->values, matrix->type, size * size * k + size * (row % size) + j) *
              get(x->values, x->type, size * column + j);
  }
}

static void put(void *place, unsigned type, double complex sum) {
  if (type == REAL_32 || type == COMPLEX_32) ((float *)place)[0] = (float)creal(sum);
  else ((double *)place)[0] = creal(sum);
  if (type == COMPLEX_32) ((float *)place)[1] = (float)cimag(sum);
  if (type == COMPLEX_64) ((double *)place)[1] = cimag(sum);
}

struct product {
  struct matrix matrix;
  struct vector x, y;
  double complex alpha, beta;
  double slip;
};

static void run_product(const void *data) {
  const struct product *product = data;
  const struct vector *y = &product->y;
  for (int64_t row = 0; row < y->size; row++) {
    void *place = bytes_at(y->values + (uint64_t)row * width(y->type), width(y->type));
    double complex sum = product->slip;
    add_row(&product->matrix, &product->x, row, &sum);
    sum = product->alpha * sum + (product->beta == 0 ? 0 : product->beta * get(y->values, y->type, row));
    if (width(y->type) == 2) cb_real_set(place, y->type == REAL_16 ? CB_F16 : CB_BF16, 0, creal(sum));
    else put(place, y->type, sum);
  }
}

/* On the handle's stream: at once, or in the graph that it captures. */
static unsigned put_product(const struct handle *handle, struct product product) {
  static unsigned (*work)(void *stream, void (*run)(const void *data), const void *data, size_t bytes);
  void *symbol = work ? NULL : fake_symbol("fake_work");
  if (symbol) memcpy(&work, &symbol, sizeof work);
  EXPECT(work && !work(handle->stream, run_product, &product, sizeof product));
  return OK;
}

static double complex scalar(const void *value, unsigned type) {
  if (is_complex(type)) return get_complex(value, type);
  return type == REAL_32 ? (double)*(const float *)value : *(const double *)value;
}

/* What all three calls of one product must agree on. */
static unsigned check(const void *handle, unsigned operation, const struct matrix *matrix,
                      const struct vector *x, const struct vector *y, unsigned type, unsigned algorithm) {
  static const enum format formats[] = {0, COO, CSR, CSR, COO, SELL, BSR}; /* of each algorithm */
  EXPECT(handle && operation == 0);
  EXPECT(algorithm < 7 && formats[algorithm] == matrix->format);
  if (state.uniform && matrix->type == REAL_32 && type == REAL_64) return NOT_SUPPORTED;
  EXPECT(y->type == type || (width(y->type) == 2 && y->type == matrix->type));
  const int narrow = width(matrix->type) == 2, mixed = matrix->type == REAL_32 && type == REAL_64;
  EXPECT(x->type == (narrow ? matrix->type : type));
  EXPECT(narrow ? type == REAL_32 : mixed || matrix->type == type);
  const int64_t unit = matrix->format == BSR ? matrix->size : 1;
  EXPECT(x->size == unit * matrix->cols && y->size == unit * matrix->rows);
  return OK;
}

EXPORT unsigned cusparseSpMV_bufferSize(void *handle, unsigned operation, const void *alpha,
                                        const struct matrix *matrix, const struct vector *x, const void *beta,
                                        struct vector *y, unsigned type, unsigned algorithm, size_t *bytes) {
  ENTER;
  EXPECT(scalar(alpha, type) == 1 && scalar(beta, type) == 0);
  *bytes = 16 * (algorithm + 1);
  return check(handle, operation, matrix, x, y, type, algorithm);
}

EXPORT unsigned cusparseSpMV_preprocess(void *handle, unsigned operation, const void *alpha,
                                        const struct matrix *matrix, const struct vector *x, const void *beta,
                                        struct vector *y, unsigned type, unsigned algorithm, void *buffer) {
  ENTER;
  EXPECT(scalar(alpha, type) == 1 && scalar(beta, type) == 0);
  EXPECT(bytes_at((uintptr_t)buffer, 16 * (algorithm + 1)));
  state.preprocessed++;
  return check(handle, operation, matrix, x, y, type, algorithm);
}

EXPORT unsigned cusparseSpMV(struct handle *handle, unsigned operation, const void *alpha, const struct matrix *matrix,
                             const struct vector *x, const void *beta, struct vector *y, unsigned type,
                             unsigned algorithm, void *buffer) {
  ENTER;
  const unsigned status = check(handle, operation, matrix, x, y, type, algorithm);
  if (status) return status;
  EXPECT(bytes_at((uintptr_t)buffer, 16 * (algorithm + 1)));
  const double slip = state.lie == (int)algorithm ? 1 : 0;
  return put_product(handle, (struct product){*matrix, *x, *y, scalar(alpha, type), scalar(beta, type), slip});
}

/* ---- several vectors: CSR with algorithms 1 to 3 */

enum { ORDER_COLUMN = 1, MANY_ALG1 = 4, MANY_ALG2 = 6, MANY_ALG3 = 12 };

struct dense {
  int64_t rows, cols, leading;
  uint64_t values;
  unsigned type, order;
};

EXPORT unsigned cusparseCreateDnMat(struct dense **dense, int64_t rows, int64_t cols, int64_t leading, void *values,
                                    unsigned type, unsigned order) {
  ENTER;
  EXPECT(rows > 0 && cols > 0 && (order == ORDER_ROW || order == ORDER_COLUMN));
  EXPECT(leading >= (order == ORDER_ROW ? cols : rows));
  EXPECT(bytes_at((uintptr_t)values, (size_t)(leading * (order == ORDER_ROW ? rows : cols)) * width(type)));
  *dense = new_thing(sizeof **dense);
  **dense = (struct dense){rows, cols, leading, (uintptr_t)values, type, order};
  return OK;
}
EXPORT unsigned cusparseDestroyDnMat(struct dense *dense) { return drop(dense); }

static unsigned check_many(const void *handle, unsigned operation, unsigned operation_x, const struct matrix *matrix,
                           const struct dense *x, const struct dense *y, unsigned type, unsigned algorithm) {
  EXPECT(handle && operation == 0 && operation_x == 0 && matrix->format == CSR);
  EXPECT(algorithm == MANY_ALG1 || algorithm == MANY_ALG2 || algorithm == MANY_ALG3);
  EXPECT(matrix->type == type && x->type == type && y->type == type);
  EXPECT(x->rows == matrix->cols && y->rows == matrix->rows && x->cols == y->cols && x->order == y->order);
  return state.no_alg3 && algorithm == MANY_ALG3 ? NOT_SUPPORTED : OK;
}

EXPORT unsigned cusparseSpMM_bufferSize(void *handle, unsigned operation, unsigned operation_x, const void *alpha,
                                        const struct matrix *matrix, const struct dense *x, const void *beta,
                                        struct dense *y, unsigned type, unsigned algorithm, size_t *bytes) {
  ENTER;
  EXPECT(scalar(alpha, type) == 1 && scalar(beta, type) == 0);
  *bytes = 16 * (algorithm + 1);
  return check_many(handle, operation, operation_x, matrix, x, y, type, algorithm);
}

EXPORT unsigned cusparseSpMM_preprocess(void *handle, unsigned operation, unsigned operation_x, const void *alpha,
                                        const struct matrix *matrix, const struct dense *x, const void *beta,
                                        struct dense *y, unsigned type, unsigned algorithm, void *buffer) {
  ENTER;
  EXPECT(scalar(alpha, type) == 1 && scalar(beta, type) == 0);
  EXPECT(bytes_at((uintptr_t)buffer, 16 * (algorithm + 1)));
  state.preprocessed++;
  return check_many(handle, operation, operation_x, matrix, x, y, type, algorithm);
}

static uint64_t place_in(const struct dense *dense, int64_t row, int64_t column) {
  const int64_t at = dense->order == ORDER_ROW ? row * dense->leading + column : column * dense->leading + row;
  return dense->values + (uint64_t)at * width(dense->type);
}

EXPORT unsigned cusparseSpMM(void *handle, unsigned operation, unsigned operation_x, const void *alpha,
                             const struct matrix *matrix, const struct dense *x, const void *beta, struct dense *y,
                             unsigned type, unsigned algorithm, void *buffer) {
  ENTER;
  const unsigned status = check_many(handle, operation, operation_x, matrix, x, y, type, algorithm);
  if (status) return status;
  EXPECT(bytes_at((uintptr_t)buffer, 16 * (algorithm + 1)));
  for (int64_t row = 0; row < y->rows; row++)
    for (int64_t v = 0; v < y->cols; v++) {
      double sum = state.lie == (int)algorithm ? 1 : 0;
      for (int64_t k = get_index(matrix->offsets, row); k < get_index(matrix->offsets, row + 1); k++)
        sum += creal(get(matrix->values, type, k) * get(place_in(x, get_index(matrix->columns, k), v), type, 0));
      void *place = bytes_at(place_in(y, row, v), width(type));
      const double by = creal(scalar(beta, type));
      const double before = by == 0 ? 0 : by * creal(get(place_in(y, row, v), type, 0));
      sum = creal(scalar(alpha, type)) * sum + before;
      if (type == REAL_32) *(float *)place = (float)sum;
      else *(double *)place = sum;
    }
  return OK;
}

static unsigned bsrmv(const struct handle *handle, unsigned direction, unsigned operation, int rows, int cols,
                      int blocks, const void *alpha, const void *descriptor, const void *values,
                      const void *offsets, const void *columns, int block, const void *x, const void *beta,
                      void *y, unsigned type) {
  ENTER;
  EXPECT(handle && descriptor && direction == 0 && operation == 0 && block > 1);
  const struct matrix matrix = {
      BSR, rows, cols, blocks, block, (uintptr_t)offsets, (uintptr_t)columns, (uintptr_t)values, type};
  const struct vector from = {(int64_t)cols * block, (uintptr_t)x, type},
                      to = {(int64_t)rows * block, (uintptr_t)y, type};
  return put_product(handle, (struct product){matrix, from, to, scalar(alpha, type), scalar(beta, type), 0});
}

EXPORT unsigned cusparseSbsrmv(struct handle *handle, unsigned direction, unsigned operation, int rows, int cols,
                               int blocks, const float *alpha, const void *descriptor, const float *values,
                               const int *offsets, const int *columns, int block, const float *x,
                               const float *beta, float *y) {
  return bsrmv(handle, direction, operation, rows, cols, blocks, alpha, descriptor, values, offsets, columns,
               block, x, beta, y, REAL_32);
}

EXPORT unsigned cusparseDbsrmv(struct handle *handle, unsigned direction, unsigned operation, int rows, int cols,
                               int blocks, const double *alpha, const void *descriptor, const double *values,
                               const int *offsets, const int *columns, int block, const double *x,
                               const double *beta, double *y) {
  return bsrmv(handle, direction, operation, rows, cols, blocks, alpha, descriptor, values, offsets, columns,
               block, x, beta, y, REAL_64);
}

/* ---- SpMVOp */

#if FAKE_CUSPARSE_VERSION >= 120702

enum { OP_ALG1 = 1, OP_ALG2 = 2, OP_BUFFER = 48 };

struct op {
  const struct matrix *matrix;
  const struct vector *x, *y;
  unsigned type, algorithm;
};
struct op_plan {
  struct op op;
};

#define ENTER_OP                                                                                             \
  ENTER;                                                                                                     \
  if (++state.op_calls == state.op_fail_at) return NOT_SUPPORTED

/* Before 12.8 there was double precision alone. */
static unsigned check_op(const void *handle, unsigned operation, const struct op *op, const struct vector *z) {
  EXPECT(handle && operation == 0);
  EXPECT(op->algorithm == OP_ALG1 || op->algorithm == OP_ALG2);
  EXPECT(op->matrix->format == CSR);
  EXPECT(op->x->size == op->matrix->cols && op->y->size == op->matrix->rows && z->size == op->matrix->rows);
  EXPECT(z->type == op->y->type && (z->type == op->type || (width(z->type) == 2 && z->type == op->matrix->type)));
  const int wide = op->type == REAL_64, single = op->type == REAL_32 && FAKE_CUSPARSE_VERSION >= 120800;
  if (op->matrix->type != op->type || op->x->type != op->type || !(wide || single)) return NOT_SUPPORTED;
  return OK;
}

static unsigned new_op(const void *handle, struct op **out, unsigned operation, struct op op, const struct vector *z) {
  const unsigned status = check_op(handle, operation, &op, z);
  if (status) return status;
  *out = new_thing(sizeof **out);
  **out = op;
  return OK;
}

#if FAKE_CUSPARSE_VERSION >= 120800
EXPORT unsigned cusparseSpMVOp_bufferSize(void *handle, unsigned operation, const struct matrix *matrix,
                                          const struct vector *x, struct vector *y, struct vector *z,
                                          unsigned type, unsigned algorithm, size_t *bytes) {
  ENTER_OP;
  *bytes = OP_BUFFER * algorithm;
  return check_op(handle, operation, &(struct op){matrix, x, y, type, algorithm}, z);
}
EXPORT unsigned cusparseSpMVOp_createDescr(void *handle, struct op **op, unsigned operation,
                                           const struct matrix *matrix, const struct vector *x, struct vector *y,
                                           struct vector *z, unsigned type, unsigned algorithm, void *buffer) {
  ENTER_OP;
  EXPECT(bytes_at((uintptr_t)buffer, OP_BUFFER * algorithm));
  return new_op(handle, op, operation, (struct op){matrix, x, y, type, algorithm}, z);
}
#elif FAKE_CUSPARSE_VERSION >= 120703
EXPORT unsigned cusparseSpMVOp_bufferSize(void *handle, unsigned operation, const struct matrix *matrix,
                                          const struct vector *x, struct vector *y, struct vector *z,
                                          unsigned type, size_t *bytes) {
  ENTER_OP;
  *bytes = OP_BUFFER;
  return check_op(handle, operation, &(struct op){matrix, x, y, type, OP_ALG2}, z);
}
EXPORT unsigned cusparseSpMVOp_createDescr(void *handle, struct op **op, unsigned operation,
                                           const struct matrix *matrix, const struct vector *x, struct vector *y,
                                           struct vector *z, unsigned type, void *buffer) {
  ENTER_OP;
  EXPECT(bytes_at((uintptr_t)buffer, OP_BUFFER));
  return new_op(handle, op, operation, (struct op){matrix, x, y, type, OP_ALG2}, z);
}
#else
EXPORT unsigned cusparseSpMVOp_createDescr(void *handle, struct op **op, unsigned operation,
                                           const struct matrix *matrix, const struct vector *x, struct vector *y,
                                           struct vector *z, unsigned type) {
  ENTER_OP;
  return new_op(handle, op, operation, (struct op){matrix, x, y, type, OP_ALG2}, z);
}
#endif

EXPORT unsigned cusparseSpMVOp_destroyDescr(struct op *op) {
  return drop(op);
}

EXPORT unsigned cusparseSpMVOp_createPlan(void *handle, struct op *op, struct op_plan **plan, const void *code,
                                          size_t code_bytes) {
  ENTER_OP;
  EXPECT(handle && op && !code && !code_bytes);
  *plan = new_thing(sizeof **plan);
  (*plan)->op = *op;
  return OK;
}

EXPORT unsigned cusparseSpMVOp_destroyPlan(struct op_plan *plan) {
  return drop(plan);
}

EXPORT unsigned cusparseSpMVOp(struct handle *handle, struct op_plan *plan, const void *alpha, const void *beta,
                               const struct vector *x, const struct vector *y, struct vector *z) {
  ENTER_OP;
  EXPECT(handle && plan && x == plan->op.x && y == plan->op.y && z == y);
  const unsigned type = plan->op.type;
  const double slip = state.op_lie == (int)plan->op.algorithm ? 1 : 0;
  return put_product(handle, (struct product){*plan->op.matrix, *x, *z, scalar(alpha, type), scalar(beta, type), slip});
}

#endif
