// SPDX-License-Identifier: Apache-2.0
/* Symmetry: for each nonzero above the diagonal, a binary search for its mirror image in the row of its
 * column. The searches jump all over the matrix, so rows that come up soon are fetched ahead. */
#include "analysis/profile_parts.h"

enum {
  AHEAD_POINTER = 48,
  AHEAD_COLUMNS = 24
}; /* nonzeros: about the latency of memory over the time of one */

/* The position of column `column` in row `row`, or -1. */
static int64_t find(const struct cb_csr *csr, int64_t row, int32_t column) {
  const int64_t begin = cb_csr_row(csr, row);
  const int32_t *base = csr->col_idx + begin;
  int64_t left = cb_csr_row(csr, row + 1) - begin;
  if (!left) return -1;
  while (left > 1) { /* a choice without a branch: nothing would predict it */
    const int64_t half = left / 2;
    base += base[half] <= column ? half : 0;
    left -= half;
  }
  return *base == column ? base - csr->col_idx : -1;
}

static void fetch_ahead(const struct cb_csr *csr, int64_t i) {
  if (i + AHEAD_POINTER >= csr->nnz) return;
  const int64_t far = csr->col_idx[i + AHEAD_POINTER], near = csr->col_idx[i + AHEAD_COLUMNS];
  __builtin_prefetch((const char *)csr->row_ptr + far * (csr->wide ? 8 : 4));
  __builtin_prefetch(csr->col_idx + cb_csr_row(csr, near));
}

static void match_row(const struct cb_csr *csr, int64_t row, int64_t *mirrored, int64_t *equal) {
  for (int64_t i = cb_csr_row(csr, row); i < cb_csr_row(csr, row + 1); i++) {
    fetch_ahead(csr, i);
    const int64_t column = csr->col_idx[i];
    if (column < row) continue;
    const int64_t partner = column == row ? i : find(csr, column, (int32_t)row);
    if (partner < 0) continue;
    const int pair = column == row ? 1 : 2;
    *mirrored += pair;
    if (csr->values[i] == csr->values[partner]) *equal += pair;
  }
}

void cb_profile_symmetry(struct cb_profile *profile, const struct cb_csr *csr) {
  int64_t mirrored = 0, equal = 0;
  profile->symmetry.square = csr->rows == csr->cols;
  if (!profile->symmetry.square) return;
#pragma omp parallel for schedule(dynamic, 256) reduction(+ : mirrored, equal)
  for (int64_t row = 0; row < csr->rows; row++) match_row(csr, row, &mirrored, &equal);
  profile->symmetry.mirrored = mirrored;
  profile->symmetry.mirrored_equal = equal;
}
