// SPDX-License-Identifier: Apache-2.0
/* The split that gives populated diagonals to layout dia. */
#include "analysis/layouts/dia/options.h"

#include "analysis/diagonals.h"
#include "base/memory.h"

static void release_diagonals(void *set) {
  cb_diagonal_set_release(set);
  cb_free(set);
}

/* Without columns: they are all on chosen diagonals, or the split is not for such a matrix. */
static enum cb_status divide_remote(const struct cb_csr *csr, const struct cb_diagonal_set *chosen,
                                    struct cb_division *division, struct cb_diag *diag) {
  int64_t nonzeros = 0;
  for (int64_t i = 0; i < chosen->count; i++) nonzeros += chosen->list[i].nonzeros;
  division->whole = 1;
  if (nonzeros == csr->nnz) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT, "only %lld of %lld nonzeros are on populated diagonals, and the others' columns "
                 "are not on the host", (long long)nonzeros, (long long)csr->nnz);
}

/* Part 0: nonzeros on populated diagonals, which are handed to its layout; part 1: the others. */
static enum cb_status divide_diagonals(const struct cb_part *part, const struct cb_options *options,
                                       const struct cb_target *target, struct cb_division *division,
                                       struct cb_text *facts, struct cb_diag *diag) {
  const struct cb_csr *csr = part->csr;
  const int64_t *settings = cb_settings(options, &cb_layout_dia);
  struct cb_diagonal_set *chosen = cb_calloc(1, sizeof *chosen);
  (void)target;
  if (!chosen) return cb_fail_memory(diag, "diagonals", sizeof *chosen);
  division->found[0] = (struct cb_found){CB_FOUND_DIAGONALS, chosen, release_diagonals};
  enum cb_status s = cb_diagonals_choose(chosen, csr, settings[DIA_FILL], settings[DIA_MOST], diag);
  if (!s && csr->remote) s = divide_remote(csr, chosen, division, diag);
  if (s) return s;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < (csr->remote ? 0 : csr->rows); row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      division->part_of[k] = !cb_diagonal_set_has(chosen, csr->col_idx[k] + csr->rows - 1 - row);
  cb_diagonal_set_drop_flags(chosen);
  cb_text_add(facts, " (fill %lld)", (long long)settings[DIA_FILL]);
  return CB_OK;
}

const struct cb_split cb_split_diagonals = {"diagonals", 2, 0, divide_diagonals};
