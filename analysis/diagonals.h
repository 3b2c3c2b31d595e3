// SPDX-License-Identifier: Apache-2.0
/* The diagonals of a matrix. An entry's diagonal is known by its offset, column minus row, and counted under
 * the key offset + rows - 1.
 */
#ifndef CBGEN_ANALYSIS_DIAGONALS_H
#define CBGEN_ANALYSIS_DIAGONALS_H

#include "analysis/options.h"
#include "frontend/csr.h"

/* Places of the diagonal within the matrix. */
int64_t cb_diagonal_length(const struct cb_csr *csr, int64_t offset);

struct cb_diagonal {
  int64_t key, nonzeros;
};

/* All diagonals of at least `least` nonzeros (1 or more), ascending; the caller frees them. In parallel; the same for
 * any number of threads. CB_ERR_MEMORY. */
enum cb_status cb_diagonals_list(struct cb_diagonal **list, int64_t *count, const struct cb_csr *csr, int64_t least,
                                 struct cb_diag *diag);

/* Flags by key, rows + cols bytes that the caller frees: 1 for a diagonal worth storing without indices,
 * which is one that crosses at least half of the rows and has at least options->dia_fill percent of its
 * places occupied; of more than options->dia_most the fullest. CB_ERR_UNSUPPORTED: there is none; CB_ERR_MEMORY. *flags
 * is NULL then. */
enum cb_status cb_diagonals_choose(unsigned char **flags, const struct cb_csr *csr,
                                   const struct cb_options *options, struct cb_diag *diag);

#endif
