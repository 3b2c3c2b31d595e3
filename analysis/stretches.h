// SPDX-License-Identifier: Apache-2.0
/* The first and the last columns of stretches of a row's nonzeros, wherever the matrix has its columns. */
#ifndef CBGEN_ANALYSIS_STRETCHES_H
#define CBGEN_ANALYSIS_STRETCHES_H

#include "frontend/csr.h"

struct cb_ends {
  int64_t first, last;
};

/* To be called before cb_row_ends. 0: the ends of rows cannot be had. */
static inline int cb_need_row_ends(const struct cb_csr *csr) {
  return !csr->remote || csr->remote->first || !csr->remote->ends(csr->remote->user, NULL);
}

/* Of a whole row, which has nonzeros. */
static inline struct cb_ends cb_row_ends(const struct cb_csr *csr, int64_t row) {
  if (csr->remote) return (struct cb_ends){csr->remote->first[row], csr->remote->last[row]};
  return (struct cb_ends){csr->col_idx[cb_csr_row(csr, row)], csr->col_idx[cb_csr_row(csr, row + 1) - 1]};
}

/* The first and the last columns of `count` units of `each` rows, one after the other, found out where the columns are;
 * first > last where they have no nonzeros. The caller frees them. NULL: ask for ends of rows instead. */
struct cb_ends *cb_row_spans(const struct cb_csr *csr, int64_t each, int64_t count);

/* Of `count` stretches, none of which is empty, each within a row. 0: no memory, or they cannot be fetched. */
int cb_stretch_ends(struct cb_ends *ends, const struct cb_csr *csr, const struct cb_stretch *stretches, int64_t count);

#endif
