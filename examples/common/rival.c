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

/* The transpose in the arrays' place: cuSPARSE multiplies by it much faster than by
 * CUSPARSE_OPERATION_TRANSPOSE. */
static void transpose(struct rival *rival, const struct matrix *matrix) {
  const int rows = (int)matrix->rows, cols = (int)matrix->cols, nnz = (int)matrix->nnz;
  void *row_ptr = allocate(((size_t)cols + 1) * sizeof(int32_t)),
       *col_idx = allocate((size_t)nnz * sizeof(int32_t));
  double *values = allocate((size_t)nnz * sizeof *values);
  size_t bytes;
  SPARSE(cusparseCsr2cscEx2_bufferSize(
      rival->handle, rows, cols, nnz, rival->values, rival->row_ptr, rival->col_idx, values, row_ptr, col_idx,
      CUDA_R_64F, CUSPARSE_ACTION_NUMERIC, CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG_DEFAULT, &bytes));
  void *buffer = allocate(bytes);
  SPARSE(cusparseCsr2cscEx2(rival->handle, rows, cols, nnz, rival->values, rival->row_ptr, rival->col_idx,
                            values, row_ptr, col_idx, CUDA_R_64F, CUSPARSE_ACTION_NUMERIC,
                            CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG_DEFAULT, buffer));
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaFree(buffer));
  CUDA(cudaFree(rival->row_ptr));
  CUDA(cudaFree(rival->col_idx));
  CUDA(cudaFree(rival->values));
  rival->row_ptr = row_ptr;
  rival->col_idx = col_idx;
  rival->values = values;
}

void rival_apply(void *user, const double *x, double *y, cudaStream_t stream) {
  struct rival *rival = user;
  SPARSE(cusparseSetStream(rival->handle, stream));
  SPARSE(cusparseDnVecSetValues(rival->x, (void *)(uintptr_t)x));
  SPARSE(cusparseDnVecSetValues(rival->y, y));
  SPARSE(cusparseSpMV(rival->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &rival->alpha, rival->matrix, rival->x,
                      &rival->beta, rival->y, CUDA_R_64F, rival->algorithm, rival->buffer));
}

/* A descriptor of its own, since one remembers what was found for its algorithm. */
static struct contender try_algorithm(struct rival *rival, int64_t rows, int64_t cols, int64_t nnz,
                                      double spent, double *x, double *y, cudaStream_t stream) {
  struct contender contender = {.apply = rival_apply, .user = rival};
  const double start = now();
  size_t bytes;
  SPARSE(cusparseCreateCsr(&rival->matrix, rows, cols, nnz, rival->row_ptr, rival->col_idx, rival->values,
                           CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  SPARSE(cusparseCreateDnVec(&rival->x, cols, x, CUDA_R_64F));
  SPARSE(cusparseCreateDnVec(&rival->y, rows, y, CUDA_R_64F));
  SPARSE(cusparseSpMV_bufferSize(rival->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &rival->alpha,
                                 rival->matrix, rival->x, &rival->beta, rival->y, CUDA_R_64F,
                                 rival->algorithm, &bytes));
  rival->buffer = allocate(bytes);
  SPARSE(cusparseSpMV_preprocess(rival->handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &rival->alpha,
                                 rival->matrix, rival->x, &rival->beta, rival->y, CUDA_R_64F,
                                 rival->algorithm, rival->buffer));
  end_setup(&contender, start - spent, x, y, stream);
  return contender;
}

static void drop_algorithm(struct rival *rival) {
  SPARSE(cusparseDestroySpMat(rival->matrix));
  SPARSE(cusparseDestroyDnVec(rival->x));
  SPARSE(cusparseDestroyDnVec(rival->y));
  CUDA(cudaFree(rival->buffer));
}

struct contender create_rival(struct rival *rival, const struct matrix *matrix, cusparseOperation_t operation,
                              double *x, double *y, cudaStream_t stream) {
  const double start = now();
  const int transposed = operation == CUSPARSE_OPERATION_TRANSPOSE;
  const int64_t rows = transposed ? matrix->cols : matrix->rows,
                cols = transposed ? matrix->rows : matrix->cols;
  *rival = (struct rival){.alpha = 1, .beta = 0};
  SPARSE(cusparseCreate(&rival->handle));
  SPARSE(cusparseSetStream(rival->handle, stream));
  rival->row_ptr = upload(matrix->row_ptr, ((size_t)matrix->rows + 1) * sizeof(int32_t));
  rival->col_idx = upload(matrix->col_idx, (size_t)matrix->nnz * sizeof(int32_t));
  rival->values = upload(matrix->values, (size_t)matrix->nnz * sizeof(double));
  if (transposed) transpose(rival, matrix);
  CUDA(cudaDeviceSynchronize());
  const double spent = now() - start;
  struct rival other = *rival;
  rival->algorithm = CUSPARSE_SPMV_CSR_ALG1;
  other.algorithm = CUSPARSE_SPMV_CSR_ALG2;
  struct contender first = try_algorithm(rival, rows, cols, matrix->nnz, spent, x, y, stream);
  struct contender second = try_algorithm(&other, rows, cols, matrix->nnz, spent, x, y, stream);
  first.name = "cuSPARSE CSR ALG1";
  second.name = "cuSPARSE CSR ALG2";
  if (first.product <= second.product) {
    drop_algorithm(&other);
    return first;
  }
  drop_algorithm(rival);
  *rival = other;
  second.user = rival;
  return second;
}

void free_rival(struct rival *rival) {
  drop_algorithm(rival);
  SPARSE(cusparseDestroy(rival->handle));
  CUDA(cudaFree(rival->row_ptr));
  CUDA(cudaFree(rival->col_idx));
  CUDA(cudaFree(rival->values));
}
