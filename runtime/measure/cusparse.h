// SPDX-License-Identifier: Apache-2.0
/* cuSPARSE, opened at run time: every SpMV that it offers for one matrix, as baselines of a generated kernel.
 *
 *   cb_cusparse_open        libcusparse and a handle, in the device's context
 *   cb_baselines_open       converts and uploads the matrix in each format, prepares products, says which apply
 *   cb_baseline_multiply    y = α A x + β y by one of them: no conversion, no allocation
 *
 *   csr-alg1, csr-alg2      CSR, after cusparseSpMV_preprocess
 *   spmvop-alg1, -alg2      CSR by a plan of cusparseSpMVOp without an epilogue, from cuSPARSE 12.7.2 (CUDA 13.1). The
 *                           one algorithm that it had before 12.8 (CUDA 13.3) became the second
 *   coo-alg1, coo-alg2      COO with sorted rows (alg1 is faster, alg2 repeatable)
 *   sell-16, -32, -64, -128 sliced ELL with that many rows to a slice
 *   bsr-2 … bsr-8           block CSR through the generic interface, where padding stays below half of the nonzeros
 *   bsrmv-2 … bsrmv-8       the same through the older cusparse?bsrmv
 *
 * A baseline that does not apply, or that this cuSPARSE refuses, stays in the list with the reason.
 */
#ifndef CBGEN_RUNTIME_MEASURE_CUSPARSE_H
#define CBGEN_RUNTIME_MEASURE_CUSPARSE_H

#include "base/status.h"
#include "base/types.h"
#include "frontend/csr.h"
#include "runtime/cuda/driver.h"

#include <stddef.h>
#include <stdint.h>

struct cb_cusparse;

/* cuSPARSE's functions with the prototypes of cusparse.h; its enumerations are unsigned int with gcc and
 * clang. */
struct cusparseContext;
struct cusparseSpMatDescr;
struct cusparseDnVecDescr;
struct cusparseDnMatDescr;
struct cusparseMatDescr;
struct cusparseSpMVOpDescr;
struct cusparseSpMVOpPlan;

enum { /* cudaDataType */
       CB_CUDA_R_32F = 0,
       CB_CUDA_R_64F = 1,
       CB_CUDA_R_16F = 2,
       CB_CUDA_C_32F = 4,
       CB_CUDA_C_64F = 5,
       CB_CUDA_R_16BF = 14
};
enum { /* cusparseIndexType_t, cusparseIndexBase_t, cusparseOperation_t, cusparseOrder_t, cusparseDirection_t
        */
       CB_CUSPARSE_INDEX_32I = 2,
       CB_CUSPARSE_BASE_ZERO = 0,
       CB_CUSPARSE_NON_TRANSPOSE = 0,
       CB_CUSPARSE_ORDER_COLUMN = 1,
       CB_CUSPARSE_ORDER_ROW = 2,
       CB_CUSPARSE_DIRECTION_ROW = 0
};
enum { /* libraryPropertyType */ CB_CUDA_MAJOR_VERSION = 0, CB_CUDA_MINOR_VERSION = 1, CB_CUDA_PATCH_LEVEL = 2 };
enum { /* cusparseSpMVAlg_t */
       CB_CUSPARSE_COO_ALG1 = 1,
       CB_CUSPARSE_CSR_ALG1 = 2,
       CB_CUSPARSE_CSR_ALG2 = 3,
       CB_CUSPARSE_COO_ALG2 = 4,
       CB_CUSPARSE_SELL_ALG1 = 5,
       CB_CUSPARSE_BSR_ALG1 = 6
};
enum { /* cusparseSpMMAlg_t */
       CB_CUSPARSE_MANY_CSR_ALG1 = 4,
       CB_CUSPARSE_MANY_CSR_ALG2 = 6,
       CB_CUSPARSE_MANY_CSR_ALG3 = 12
};
enum { /* cusparseSpMVOpAlg_t */
       CB_CUSPARSE_OP_ALG1 = 1,
       CB_CUSPARSE_OP_ALG2 = 2
};

struct cb_cusparse_calls {
  unsigned (*create)(struct cusparseContext **handle);
  unsigned (*destroy)(struct cusparseContext *handle);
  unsigned (*property)(unsigned property, int *value);
  unsigned (*set_stream)(struct cusparseContext *handle, struct CUstream_st *stream);
  const char *(*error_string)(unsigned status);
  unsigned (*create_vector)(struct cusparseDnVecDescr **vector, int64_t size, void *values, unsigned type);
  unsigned (*destroy_vector)(const struct cusparseDnVecDescr *vector);
  unsigned (*create_csr)(struct cusparseSpMatDescr **matrix, int64_t rows, int64_t cols, int64_t nnz,
                         void *row_offsets, void *columns, void *values, unsigned offsets_type,
                         unsigned columns_type, unsigned base, unsigned type);
  unsigned (*create_coo)(struct cusparseSpMatDescr **matrix, int64_t rows, int64_t cols, int64_t nnz,
                         void *row_indices, void *columns, void *values, unsigned index_type, unsigned base,
                         unsigned type);
  /* the rest may be missing in older versions: NULL then */
  unsigned (*create_sell)(struct cusparseSpMatDescr **matrix, int64_t rows, int64_t cols, int64_t nnz,
                          int64_t slots, int64_t slice, void *offsets, void *columns, void *values,
                          unsigned offsets_type, unsigned columns_type, unsigned base, unsigned type);
  unsigned (*create_bsr)(struct cusparseSpMatDescr **matrix, int64_t block_rows, int64_t block_cols,
                         int64_t blocks, int64_t rows_of_block, int64_t cols_of_block, void *row_offsets,
                         void *columns, void *values, unsigned offsets_type, unsigned columns_type,
                         unsigned base, unsigned type, unsigned order);
  unsigned (*destroy_matrix)(const struct cusparseSpMatDescr *matrix);
  unsigned (*buffer_size)(struct cusparseContext *handle, unsigned operation, const void *alpha,
                          const struct cusparseSpMatDescr *matrix, const struct cusparseDnVecDescr *x,
                          const void *beta, struct cusparseDnVecDescr *y, unsigned type, unsigned algorithm,
                          size_t *bytes);
  unsigned (*preprocess)(struct cusparseContext *handle, unsigned operation, const void *alpha,
                         const struct cusparseSpMatDescr *matrix, const struct cusparseDnVecDescr *x,
                         const void *beta, struct cusparseDnVecDescr *y, unsigned type, unsigned algorithm,
                         void *buffer);
  unsigned (*multiply)(struct cusparseContext *handle, unsigned operation, const void *alpha,
                       const struct cusparseSpMatDescr *matrix, const struct cusparseDnVecDescr *x,
                       const void *beta, struct cusparseDnVecDescr *y, unsigned type, unsigned algorithm,
                       void *buffer);
  unsigned (*create_legacy)(struct cusparseMatDescr **descriptor);
  unsigned (*destroy_legacy)(struct cusparseMatDescr *descriptor);
  unsigned (*bsrmv_f32)(struct cusparseContext *handle, unsigned direction, unsigned operation,
                        int block_rows, int block_cols, int blocks, const float *alpha,
                        struct cusparseMatDescr *descriptor, const float *values, const int *row_offsets,
                        const int *columns, int block, const float *x, const float *beta, float *y);
  unsigned (*bsrmv_f64)(struct cusparseContext *handle, unsigned direction, unsigned operation,
                        int block_rows, int block_cols, int blocks, const double *alpha,
                        struct cusparseMatDescr *descriptor, const double *values, const int *row_offsets,
                        const int *columns, int block, const double *x, const double *beta, double *y);
  /* SpMVOp: z = α A x + β y. Two functions kept their names while their parameters grew, by a buffer and by an
   * algorithm; the version says which member may be called: see cb_spmvop_form. */
  union {
    unsigned (*buffer)(struct cusparseContext *handle, unsigned operation, const struct cusparseSpMatDescr *matrix,
                       const struct cusparseDnVecDescr *x, struct cusparseDnVecDescr *y,
                       struct cusparseDnVecDescr *z, unsigned type, size_t *bytes);
    unsigned (*algorithm)(struct cusparseContext *handle, unsigned operation, const struct cusparseSpMatDescr *matrix,
                          const struct cusparseDnVecDescr *x, struct cusparseDnVecDescr *y,
                          struct cusparseDnVecDescr *z, unsigned type, unsigned algorithm, size_t *bytes);
  } op_buffer_size;
  union {
    unsigned (*plain)(struct cusparseContext *handle, struct cusparseSpMVOpDescr **descriptor, unsigned operation,
                      const struct cusparseSpMatDescr *matrix, const struct cusparseDnVecDescr *x,
                      struct cusparseDnVecDescr *y, struct cusparseDnVecDescr *z, unsigned type);
    unsigned (*buffer)(struct cusparseContext *handle, struct cusparseSpMVOpDescr **descriptor, unsigned operation,
                       const struct cusparseSpMatDescr *matrix, const struct cusparseDnVecDescr *x,
                       struct cusparseDnVecDescr *y, struct cusparseDnVecDescr *z, unsigned type, void *buffer);
    unsigned (*algorithm)(struct cusparseContext *handle, struct cusparseSpMVOpDescr **descriptor, unsigned operation,
                          const struct cusparseSpMatDescr *matrix, const struct cusparseDnVecDescr *x,
                          struct cusparseDnVecDescr *y, struct cusparseDnVecDescr *z, unsigned type,
                          unsigned algorithm, void *buffer);
  } op_create;
  unsigned (*create_dense)(struct cusparseDnMatDescr **dense, int64_t rows, int64_t cols, int64_t leading, void *values,
                           unsigned type, unsigned order);
  unsigned (*destroy_dense)(const struct cusparseDnMatDescr *dense);
  unsigned (*many_buffer_size)(struct cusparseContext *handle, unsigned operation, unsigned operation_x,
                               const void *alpha, const struct cusparseSpMatDescr *matrix,
                               const struct cusparseDnMatDescr *x, const void *beta, struct cusparseDnMatDescr *y,
                               unsigned type, unsigned algorithm, size_t *bytes);
  unsigned (*many_preprocess)(struct cusparseContext *handle, unsigned operation, unsigned operation_x,
                              const void *alpha, const struct cusparseSpMatDescr *matrix,
                              const struct cusparseDnMatDescr *x, const void *beta, struct cusparseDnMatDescr *y,
                              unsigned type, unsigned algorithm, void *buffer);
  unsigned (*multiply_many)(struct cusparseContext *handle, unsigned operation, unsigned operation_x, const void *alpha,
                            const struct cusparseSpMatDescr *matrix, const struct cusparseDnMatDescr *x,
                            const void *beta, struct cusparseDnMatDescr *y, unsigned type, unsigned algorithm,
                            void *buffer);
  unsigned (*op_destroy)(struct cusparseSpMVOpDescr *descriptor);
  unsigned (*op_create_plan)(struct cusparseContext *handle, struct cusparseSpMVOpDescr *descriptor,
                             struct cusparseSpMVOpPlan **plan, const void *code, size_t code_bytes);
  unsigned (*op_destroy_plan)(struct cusparseSpMVOpPlan *plan);
  unsigned (*op_multiply)(struct cusparseContext *handle, struct cusparseSpMVOpPlan *plan, const void *alpha,
                          const void *beta, const struct cusparseDnVecDescr *x, const struct cusparseDnVecDescr *y,
                          struct cusparseDnVecDescr *z);
};

/* `path` NULL: $CBGEN_CUSPARSE, else libcusparse.so.12 where the loader, a CUDA toolkit or the PyPI wheel
 * nvidia-cusparse has it. The device's context must be current here and in all that follows. */
enum cb_status cb_cusparse_open(struct cb_cusparse **cusparse, const struct cb_device *device,
                                const char *path, struct cb_diag *diag);
void cb_cusparse_close(struct cb_cusparse *cusparse); /* NULL is accepted */
void cb_cusparse_version(const struct cb_cusparse *cusparse, int *major, int *minor, int *patch);

/* For products of other kinds (spmm.h): cuSPARSE's functions, its handle, the device, and a status as this library's,
 * whose message begins "cuSPARSE cannot WHAT". */
const struct cb_cusparse_calls *cb_cusparse_calls(const struct cb_cusparse *cusparse);
struct cusparseContext *cb_cusparse_handle(const struct cb_cusparse *cusparse);
const struct cb_device *cb_cusparse_device(const struct cb_cusparse *cusparse);
enum cb_status cb_cusparse_check(const struct cb_cusparse *cusparse, unsigned result, const char *what,
                                 struct cb_diag *diag);
/* The handle works on this stream from now on. */
enum cb_status cb_cusparse_set_stream(struct cb_cusparse *cusparse, struct CUstream_st *stream, struct cb_diag *diag);

struct cb_baseline {
  char name[24];
  int applies; /* 0: `reason` says why not, and it must not be multiplied */
  char reason[160];
  int64_t stored_bytes;    /* its arrays on the device, padding included */
  int64_t buffer_bytes;    /* its work buffer */
  double convert_seconds;  /* on the host, from CSR; 0 for CSR itself */
  double prepare_seconds;  /* asking for the buffer's size, allocating it, then cusparseSpMV_preprocess, or
                            * descriptor and plan of SpMVOp; until the device is done */
};

struct cb_baselines;

/* The types that cuSPARSE is given for a kernel of these types. They are the same, except where the matrix has 16 bits:
 * then x has its type, too. `sum` is that of alpha, beta and sums. */
struct cb_baseline_types {
  enum cb_type matrix, x, y, sum;
};
struct cb_baseline_types cb_baseline_types(struct cb_types types);

/* `types`: as above, or CB_F64 or CB_F32 throughout. x and y must be allocated with CB_BASELINE_PADDING
 * elements more than the matrix has columns and rows: block formats read and write past them. x's must be
 * zero. They are named here because cuSPARSE binds them when it preprocesses. Uses OpenMP. */
enum { CB_BASELINE_PADDING = 128 };
enum cb_status cb_baselines_open(struct cb_baselines **baselines, struct cb_cusparse *cusparse,
                                 const struct cb_csr *csr, struct cb_baseline_types types, cb_device_ptr x,
                                 cb_device_ptr y, struct cb_diag *diag);
void cb_baselines_close(struct cb_baselines *baselines); /* NULL is accepted */

int cb_baselines_count(const struct cb_baselines *baselines);
const struct cb_baseline *cb_baselines_get(const struct cb_baselines *baselines, int baseline);

/* With the vectors of cb_baselines_open. */
enum cb_status cb_baseline_multiply(struct cb_baselines *baselines, int baseline, double alpha, double beta,
                                    struct CUstream_st *stream, struct cb_diag *diag);

#endif
