// SPDX-License-Identifier: Apache-2.0
/* Whether the matrices of examples/common are what its header says. Exit status 1 and a line when one is not.
 */
#include "examples/common/common.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void expect(int condition, const char *spec, const char *what) {
  if (condition) return;
  printf("%s: %s\n", spec, what);
  exit(1);
}

/* Sorted rows without duplicates, columns in range, row_ptr that counts. */
static void expect_order(const struct matrix *A) {
  expect(A->row_ptr[0] == 0 && A->row_ptr[A->rows] == A->nnz, A->name, "row_ptr does not hold all entries");
  for (int64_t row = 0; row < A->rows; row++)
    for (int32_t k = A->row_ptr[row]; k < A->row_ptr[row + 1]; k++) {
      expect(A->col_idx[k] >= 0 && A->col_idx[k] < A->cols, A->name, "a column out of range");
      expect(k == A->row_ptr[row] || A->col_idx[k - 1] < A->col_idx[k], A->name, "a row that is not sorted");
    }
}

static double at(const struct matrix *A, int32_t row, int32_t col) {
  for (int32_t k = A->row_ptr[row]; k < A->row_ptr[row + 1]; k++)
    if (A->col_idx[k] == col) return A->values[k];
  return 0;
}

static int is_symmetric(const struct matrix *A) {
  for (int32_t row = 0; row < A->rows; row++)
    for (int32_t k = A->row_ptr[row]; k < A->row_ptr[row + 1]; k++)
      if (fabs(A->values[k] - at(A, A->col_idx[k], row)) > 1e-14) return 0;
  return 1;
}

/* The largest sum of a row, and the least excess of a diagonal over the rest of its row. */
static void sum_rows(const struct matrix *A, double *sum, double *excess) {
  *sum = 0;
  *excess = INFINITY;
  for (int32_t row = 0; row < A->rows; row++) {
    double all = 0, rest = 0;
    for (int32_t k = A->row_ptr[row]; k < A->row_ptr[row + 1]; k++) {
      all += A->values[k];
      rest += A->col_idx[k] == row ? 0 : fabs(A->values[k]);
    }
    *sum = fmax(*sum, fabs(all));
    *excess = fmin(*excess, at(A, row, row) - rest);
  }
}

/* Cholesky's factorisation succeeds. */
static int is_definite(const struct matrix *A) {
  const int64_t n = A->rows;
  double *L = host_vector(n * n), least = 1;
  for (int64_t row = 0; row < n && least > 0; row++)
    for (int64_t col = 0; col <= row && least > 0; col++) {
      double sum = at(A, (int32_t)row, (int32_t)col);
      for (int64_t k = 0; k < col; k++) sum -= L[row * n + k] * L[col * n + k];
      if (row == col) least = fmin(least, sum);
      L[row * n + col] = row == col ? sqrt(fmax(sum, 0)) : sum / L[col * n + col];
    }
  free(L);
  return least > 1e-6;
}

int main(void) {
  struct matrix A;
  double sum, excess;
  open_matrix(&A, "elasticity:4");
  expect_order(&A);
  expect(A.rows == 192 && A.nnz == 9000, A.name, "another size");
  expect(is_symmetric(&A) && is_definite(&A), A.name, "not symmetric positive definite");
  free_matrix(&A);

  open_matrix(&A, "diffusion:5");
  expect_order(&A);
  sum_rows(&A, &sum, &excess);
  expect(A.rows == 125 && A.nnz == 7 * 125 - 6 * 25, A.name, "another size");
  expect(is_symmetric(&A) && sum < 1e-14 && excess > -1e-14, A.name,
         "rows do not sum to 0, or not symmetric");
  free_matrix(&A);

  open_matrix(&A, "convection:5");
  expect_order(&A);
  sum_rows(&A, &sum, &excess);
  expect(!is_symmetric(&A) && excess > -1e-14 && sum > 0.1, A.name,
         "symmetric, or not dominated by the diagonal");
  free_matrix(&A);

  open_matrix(&A, "web:8");
  expect_order(&A);
  int64_t dangling = 0;
  for (int64_t row = 0; row < A.rows; row++) dangling += A.row_ptr[row] == A.row_ptr[row + 1];
  expect(A.rows == 256 && A.nnz <= 16 * 256 && A.nnz > 8 * 256, A.name, "another size");
  expect(dangling > 0 && dangling < A.rows / 2, A.name, "no page without links, or most of them");
  for (int64_t k = 0; k < A.nnz; k++) expect(A.values[k] == 1, A.name, "a link that does not count once");
  free_matrix(&A);
  return 0;
}
