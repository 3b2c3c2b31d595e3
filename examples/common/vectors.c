/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of one length on the device, by cuBLAS: see common.h. */
#include "common.h"

#include <stdlib.h>

void open_space(struct space *space, int64_t n) {
  *space = (struct space){.n = (int)n};
  CUDA(cudaStreamCreate(&space->stream));
  BLAS(cublasCreate(&space->blas));
  BLAS(cublasSetStream(space->blas, space->stream));
}

void close_space(struct space *space) {
  while (space->count) CUDA(cudaFree(space->vectors[--space->count]));
  BLAS(cublasDestroy(space->blas));
  CUDA(cudaStreamDestroy(space->stream));
}

double *new_vector(struct space *space, double value) {
  double *host = host_vector(space->n);
  for (int i = 0; i < space->n; i++) host[i] = value;
  double *vector = vector_from(space, host, space->n);
  free(host);
  return vector;
}

double *vector_from(struct space *space, const double *host, int64_t count) {
  if (space->count == MOST_VECTORS) fail("more than %d vectors", MOST_VECTORS);
  double *vector = on_device((size_t)count * sizeof *vector);
  CUDA(cudaMemcpy(vector, host, (size_t)count * sizeof *vector, cudaMemcpyHostToDevice));
  return space->vectors[space->count++] = vector;
}

double dot(const struct space *space, const double *x, const double *y) {
  double result;
  BLAS(cublasDdot(space->blas, space->n, x, 1, y, 1, &result));
  return result;
}

double norm(const struct space *space, const double *x) {
  double result;
  BLAS(cublasDnrm2(space->blas, space->n, x, 1, &result));
  return result;
}

double sum_of_sizes(const struct space *space, const double *x) {
  double result;
  BLAS(cublasDasum(space->blas, space->n, x, 1, &result));
  return result;
}

void add(const struct space *space, double alpha, const double *x, double *y) {
  BLAS(cublasDaxpy(space->blas, space->n, &alpha, x, 1, y, 1));
}

void scale(const struct space *space, double alpha, double *x) {
  BLAS(cublasDscal(space->blas, space->n, &alpha, x, 1));
}

void clear(const struct space *space, double *x) {
  CUDA(cudaMemsetAsync(x, 0, (size_t)space->n * sizeof *x, space->stream));
}

void copy(const struct space *space, const double *x, double *y) {
  BLAS(cublasDcopy(space->blas, space->n, x, 1, y, 1));
}

void times(const struct space *space, const double *x, const double *y, double *z) {
  const int n = space->n;
  BLAS(cublasDdgmm(space->blas, CUBLAS_SIDE_LEFT, n, 1, x, n, y, 1, z, n));
}
