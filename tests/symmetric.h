// SPDX-License-Identifier: Apache-2.0
/* Symmetric and skew-symmetric matrices of every shape. */
#ifndef CBGEN_TESTS_SYMMETRIC_H
#define CBGEN_TESTS_SYMMETRIC_H

#include "tests/support.h"

#include "analysis/plan/symmetry.h"

/* The square part of the matrix and its transpose together: a pattern that is symmetric, with the values of either
 * where both have an entry. `symmetry` ON or SKEW: values that are so; OFF: any. Takes the matrix. */
static inline struct cb_csr symmetrised(struct cb_csr given, enum cb_symmetry_option symmetry) {
  struct cb_diag diag = {0};
  struct cb_csr result = {0};
  const int64_t n = given.rows < given.cols ? given.rows : given.cols;
  const size_t most = 2 * (size_t)given.nnz + 1;
  struct cb_coo coo = {.rows = n, .cols = n};
  coo.row_idx = cb_alloc(most, 4);
  coo.col_idx = cb_alloc(most, 4);
  coo.values = cb_alloc(most, 8);
  for (int64_t row = 0; row < n; row++)
    for (int64_t k = cb_csr_row(&given, row); k < cb_csr_row(&given, row + 1); k++) {
      const int64_t column = given.col_idx[k];
      const int is_twice = column < row && cb_symmetry_partner(&given, row, column) >= 0;
      if (column >= n || is_twice) continue; /* its partner makes both */
      for (int turned = 0; turned <= (column != row); turned++) {
        coo.row_idx[coo.count] = (int32_t)(turned ? column : row);
        coo.col_idx[coo.count] = (int32_t)(turned ? row : column);
        coo.values[coo.count++] = turned ? given.values[k] + 1 : given.values[k];
      }
    }
  assert_ok(cb_csr_from_coo(&result, &coo, &diag));
  cb_csr_release(&given);
  cb_symmetry_mirror_values(result.values, &result, symmetry);
  return result;
}

#endif
