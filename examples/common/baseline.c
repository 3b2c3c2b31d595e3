/* SPDX-License-Identifier: Apache-2.0 */
/* cuSPARSE's product of a CSR matrix: see common.h. */
#include "common.h"

static void *allocate(size_t bytes) {
  void *device;
  CUDA(cudaMalloc(&device, bytes ? bytes : 1));
  return device;
}

static void *upload(const void *host, size_t bytes) {
  void *device = allocate(bytes);
  CUDA(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
  return device;
}

/* Replaces the arrays by those of the transpose: cuSPARSE multiplies by it much faster than by
 * CUSPARSE_OPERATION_TRANSPOSE. */
static void transpose(struct baseline *baseline, const struct matrix *matrix) {
  const int rows = (int)matrix->rows, cols = (int)matrix->cols, nnz = (int)matrix->nnz;
  void *row_ptr = allocate(((size_t)cols + 1) * sizeof(int32_t)), *col_idx = allocate((size_t)nnz * sizeof(int32_t));
  double *values = allocate((size_t)nnz * sizeof *values);
  size_t bytes;
  SPARSE(cusparseCsr2cscEx2_bufferSize(baseline->handle, rows, cols, nnz, baseline->values, baseline->row_ptr,
                                       baseline->col_idx, values, row_ptr, col_idx, CUDA_R_64F, CUSPARSE_ACTION_NUMERIC,
                                       CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG_DEFAULT, &bytes));
  void *buffer = allocate(bytes);
  SPARSE(cusparseCsr2cscEx2(baseline->handle, rows, cols, nnz, baseline->values, baseline->row_ptr, baseline->col_idx,
                            values, row_ptr, col_idx, CUDA_R_64F, CUSPARSE_ACTION_NUMERIC, CUSPARSE_INDEX_BASE_ZERO,
                            CUSPARSE_CSR2CSC_ALG_DEFAULT, buffer));
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaFree(buffer));
  CUDA(cudaFree(baseline->row_ptr));
  CUDA(cudaFree(baseline->col_idx));
  CUDA(cudaFree(baseline->values));
  baseline->row_ptr = row_ptr;
  baseline->col_idx = col_idx;
  baseline->values = values;
}

void baseline_apply(void *user, const double *x, double *y, cudaStream_t stream) {
  struct baseline *baseline = user;
  SPARSE(cusparseSetStream(baseline->handle, stream));
  SPARSE(cusparseDnVecSetValues(baseline->x, (void *)(uintptr_t)x));
  SPARSE(cusparseDnVecSetValues(baseline->y, y));
  SPARSE(cusparseSpMV(baseline->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &baseline->alpha, baseline->matrix,
                      baseline->x, &baseline->beta, baseline->y, CUDA_R_64F, baseline->algorithm, baseline->buffer));
}

/* Each algorithm has a descriptor of its own, since preprocessing keeps its findings there. */
static struct contender try_algorithm(struct baseline *baseline, int64_t rows, int64_t cols, int64_t nnz, double spent,
                                      double *x, double *y, cudaStream_t stream) {
  struct contender contender = {.apply = baseline_apply, .user = baseline};
  const double start = now();
  size_t bytes;
  SPARSE(cusparseCreateCsr(&baseline->matrix, rows, cols, nnz, baseline->row_ptr, baseline->col_idx, baseline->values,
                           CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  SPARSE(cusparseCreateDnVec(&baseline->x, cols, x, CUDA_R_64F));
  SPARSE(cusparseCreateDnVec(&baseline->y, rows, y, CUDA_R_64F));
  SPARSE(cusparseSpMV_bufferSize(baseline->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &baseline->alpha, baseline->matrix,
                                 baseline->x, &baseline->beta, baseline->y, CUDA_R_64F, baseline->algorithm, &bytes));
  baseline->buffer = allocate(bytes);
  SPARSE(cusparseSpMV_preprocess(baseline->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &baseline->alpha, baseline->matrix,
                                 baseline->x, &baseline->beta, baseline->y, CUDA_R_64F, baseline->algorithm,
                                 baseline->buffer));
  end_setup(&contender, start - spent, x, y, stream);
  return contender;
}

static void drop_algorithm(struct baseline *baseline) {
  SPARSE(cusparseDestroySpMat(baseline->matrix));
  SPARSE(cusparseDestroyDnVec(baseline->x));
  SPARSE(cusparseDestroyDnVec(baseline->y));
  CUDA(cudaFree(baseline->buffer));
}

struct contender create_baseline(struct baseline *baseline, const struct matrix *matrix, cusparseOperation_t operation,
                                 double *x, double *y, cudaStream_t stream) {
  const double start = now();
  const int transposed = operation == CUSPARSE_OPERATION_TRANSPOSE;
  const int64_t rows = transposed ? matrix->cols : matrix->rows, cols = transposed ? matrix->rows : matrix->cols;
  *baseline = (struct baseline){.alpha = 1, .beta = 0};
  SPARSE(cusparseCreate(&baseline->handle));
  SPARSE(cusparseSetStream(baseline->handle, stream));
  baseline->row_ptr = upload(matrix->row_ptr, ((size_t)matrix->rows + 1) * sizeof(int32_t));
  baseline->col_idx = upload(matrix->col_idx, (size_t)matrix->nnz * sizeof(int32_t));
  baseline->values = upload(matrix->values, (size_t)matrix->nnz * sizeof(double));
  if (transposed) transpose(baseline, matrix);
  CUDA(cudaDeviceSynchronize());
  const double spent = now() - start;
  struct baseline other = *baseline;
  baseline->algorithm = CUSPARSE_SPMV_CSR_ALG1;
  other.algorithm = CUSPARSE_SPMV_CSR_ALG2;
  struct contender first = try_algorithm(baseline, rows, cols, matrix->nnz, spent, x, y, stream);
  struct contender second = try_algorithm(&other, rows, cols, matrix->nnz, spent, x, y, stream);
  first.name = "cuSPARSE CSR ALG1";
  second.name = "cuSPARSE CSR ALG2";
  if (first.product <= second.product) {
    drop_algorithm(&other);
    return first;
  }
  drop_algorithm(baseline);
  *baseline = other;
  second.user = baseline;
  return second;
}

void free_baseline(struct baseline *baseline) {
  drop_algorithm(baseline);
  SPARSE(cusparseDestroy(baseline->handle));
  CUDA(cudaFree(baseline->row_ptr));
  CUDA(cudaFree(baseline->col_idx));
  CUDA(cudaFree(baseline->values));
}
