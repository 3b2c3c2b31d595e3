/* SPDX-License-Identifier: Apache-2.0 */
/* The shortest use of cbgen: compile a matrix, multiply by it, look at the result, free everything.
 *
 *   minimal [MATRIX]      a Matrix Market file, or a shape: see open_matrix in common/common.h
 *
 * `compile` and `multiply` are what an application needs; the rest is a matrix, a check on the host and a
 * table. */
#include "common/common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* NULL and a message when it fails; nothing is left behind then. */
static cbgen_operator *compile(const struct matrix *matrix) {
  cbgen_context *context = NULL;
  cbgen_operator *op = NULL;
  cbgen_csr csr = {.struct_size =
                       sizeof csr}; /* the rest is zero: 32-bit indices from 0, doubles, host memory */
  csr.rows = matrix->rows;
  csr.cols = matrix->cols;
  csr.nnz = matrix->nnz;
  csr.row_ptr = matrix->row_ptr;
  csr.col_idx = matrix->col_idx;
  csr.values = matrix->values;
  if (cbgen_context_create(&context))
    fprintf(stderr, "cbgen: out of memory\n");
  else if (cbgen_compile(context, &csr, NULL, &op))
    fprintf(stderr, "cbgen: %s\n", cbgen_message(context));
  cbgen_context_destroy(context); /* operators outlive it */
  return op;
}

/* y = A x on the stream; x and y are on the device. */
static void multiply(void *op, const double *x, double *y, cudaStream_t stream) {
  const cbgen_product product = {.struct_size = sizeof product, .alpha = 1, .x = x, .y = y, .stream = stream};
  if (cbgen_multiply(op, &product)) fail("cbgen: %s", cbgen_operator_message(op));
}

/* The largest error of y = A x in units of its bound: a sum of k products, in any order and computed both
 * here and there, is off by at most 2 (k + 1) roundings of the sum of their sizes. */
static double largest_error(const struct matrix *A, const double *x, const double *y) {
  double largest = 0;
  for (int64_t row = 0; row < A->rows; row++) {
    double sum = 0, size = 0;
    for (int32_t k = A->row_ptr[row]; k < A->row_ptr[row + 1]; k++) {
      sum += A->values[k] * x[A->col_idx[k]];
      size += fabs(A->values[k] * x[A->col_idx[k]]);
    }
    const double bound = 2 * (A->row_ptr[row + 1] - A->row_ptr[row] + 1) * 1.2e-16 * size;
    const double error = y[row] == sum ? 0 : fabs(y[row] - sum) / bound;
    if (!(error <= largest)) largest = error; /* NaN, too, and then it stays */
  }
  return largest;
}

/* Many products, as a solver would have them. */
static void repeat(struct contender *contender, const double *x, double *y, cudaStream_t stream) {
  const struct stopwatch watch = start_watch(stream);
  for (contender->iterations = 0; contender->iterations < 1000; contender->iterations++)
    contender->apply(contender->user, x, y, stream);
  contender->loop = stop_watch(watch, stream);
}

int main(int argc, char **argv) {
  struct matrix A;
  struct baseline baseline;
  cudaStream_t stream;
  open_matrix(&A, argc > 1 ? argv[1] : "elasticity:32");
  CUDA(cudaStreamCreate(&stream)); /* the first CUDA call: the GPU's context is there when the clocks start */
  double *x = host_vector(A.cols), *y = host_vector(A.rows);
  for (int64_t i = 0; i < A.cols; i++) x[i] = 1 + (double)(i % 7) / 3;
  double *device_x = on_device((size_t)A.cols * sizeof *x), *device_y = on_device((size_t)A.rows * sizeof *y);
  CUDA(cudaMemcpy(device_x, x, (size_t)A.cols * sizeof *x, cudaMemcpyHostToDevice));

  struct contender table[2] = {
      create_baseline(&baseline, &A, CUSPARSE_OPERATION_NON_TRANSPOSE, device_x, device_y, stream)};
  repeat(&table[0], device_x, device_y, stream);

  const double start = now();
  cbgen_operator *op = compile(&A);
  if (!op) return 2;
  table[1] = (struct contender){.name = "cbgen", .apply = multiply, .user = op};
  end_setup(&table[1], start, device_x, device_y, stream);
  CUDA(cudaMemset(device_y, 0xff, (size_t)A.rows * sizeof *y)); /* NaN: rows that are not written show */
  repeat(&table[1], device_x, device_y, stream);
  copy_to_host(y, device_y, A.rows);

  print_table("minimal", &A, table, 2);
  print_break_even(&table[0], &table[1]);
  print_setup(op);
  const int passed = print_check("largest error of a row, in units of its bound", largest_error(&A, x, y), 1);
  cbgen_operator_free(op);
  free_baseline(&baseline);
  CUDA(cudaFree(device_x));
  CUDA(cudaFree(device_y));
  CUDA(cudaStreamDestroy(stream));
  free_matrix(&A);
  free(x);
  free(y);
  return passed ? 0 : 1;
}
