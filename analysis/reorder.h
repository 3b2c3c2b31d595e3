// SPDX-License-Identifier: Apache-2.0
/* An order of rows and columns in which a product finds what it needs of x nearer together.
 *
 * Two orders are tried beside the given one, and that in which the least sectors of x belong to 32 rows on average is
 * taken, if they are a fifth less than those of the given order:
 *
 *   by length   columns by falling number of nonzeros, rows likewise: frequently used entries of x are neighbours then
 *               (graphs with hubs)
 *   band        reverse Cuthill-McKee on the pattern of A + Aᵀ: neighbours in the graph have near numbers (meshes whose
 *               numbers are shuffled). E. Cuthill and J. McKee, "Reducing the bandwidth of sparse symmetric matrices",
 *               ACM '69; A. George and J. Liu, "Computer Solution of Large Sparse Positive Definite Systems", 1981, for
 *               where it begins. Square matrices only
 *
 * The orders are the same for any number of threads.
 */
#ifndef CBGEN_ANALYSIS_REORDER_H
#define CBGEN_ANALYSIS_REORDER_H

#include "base/status.h"
#include "frontend/csr.h"

#include <stdint.h>

enum cb_reorder {
  CB_REORDER_NONE,
  CB_REORDER_SYMMETRIC,   /* P A Pᵀ of a square matrix: x and y have one order, as solvers need it */
  CB_REORDER_UNSYMMETRIC, /* P A Q */
};

enum cb_order_method { CB_ORDER_GIVEN, CB_ORDER_BY_LENGTH, CB_ORDER_BAND };

/* A pattern as it was given: widths and base are its caller's. Columns of a row may have any order, and be there
 * twice. */
struct cb_indices {
  int64_t rows, cols;
  const void *row_ptr, *col_idx;
  int row_wide, col_wide; /* 1: int64_t, 0: int32_t */
  int base;
};

static inline int64_t cb_indices_row(const struct cb_indices *indices, int64_t row) {
  const void *const row_ptr = indices->row_ptr;
  return (indices->row_wide ? ((const int64_t *)row_ptr)[row] : ((const int32_t *)row_ptr)[row]) - indices->base;
}

static inline int64_t cb_indices_col(const struct cb_indices *indices, int64_t k) {
  const void *const col_idx = indices->col_idx;
  return (indices->col_wide ? ((const int64_t *)col_idx)[k] : ((const int32_t *)col_idx)[k]) - indices->base;
}

struct cb_indices cb_csr_indices(const struct cb_csr *csr);

struct cb_reordering {
  enum cb_order_method method;
  int32_t *rows, *columns;       /* at each place, the number that is there in the given order; CB_ORDER_GIVEN: NULL */
  double given_sectors, sectors; /* of x, of 32 bytes with doubles, for each nonzero: before and after */
};

/* Takes valid indices. CB_ERR_ARGUMENT: the matrix is not square, and the order shall be symmetric; CB_ERR_MEMORY.
 * Release it in any case. */
enum cb_status cb_reordering_find(struct cb_reordering *reordering, const struct cb_indices *indices,
                                  enum cb_reorder kind, struct cb_diag *diag);
void cb_reordering_release(struct cb_reordering *reordering);

/* places[order[i]] = i. NULL: no memory. The caller frees it. */
int32_t *cb_order_inverse(const int32_t *order, int64_t count);

/* The matrix in that order, in the place of what was there. CB_ERR_MEMORY: it stays as it was. */
enum cb_status cb_csr_reorder(struct cb_csr *csr, const struct cb_reordering *reordering, struct cb_diag *diag);

#endif
