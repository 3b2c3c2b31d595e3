// SPDX-License-Identifier: Apache-2.0
/* The split that gives frequent columns to layout phases. */
#include "analysis/layouts/phases/options.h"

#include "analysis/layouts/phases/frequent.h"

/* Part 0: the others; part 1: nonzeros in frequent columns and in rows that have several of them. */
static enum cb_status divide_hot_columns(const struct cb_part *part, const struct cb_options *options,
                                         const struct cb_target *target, struct cb_division *division,
                                         struct cb_text *facts, struct cb_diag *diag) {
  const struct cb_csr *csr = part->csr;
  struct cb_frequent frequent;
  const enum cb_status s = cb_frequent_choose(&frequent, csr, target, options, diag);
#pragma omp parallel for schedule(dynamic, 4096)
  for (int64_t row = 0; row < (s ? 0 : csr->rows); row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      division->part_of[k] = frequent.row[row] && frequent.column[csr->col_idx[k]];
  if (!s)
    cb_text_add(facts, " (share %lld)", (long long)(csr->nnz ? frequent.nonzeros * 100 / csr->nnz : 0));
  cb_frequent_release(&frequent);
  return s;
}

const struct cb_split cb_split_hot_columns = {"hot-columns", 2, 0, divide_hot_columns};
