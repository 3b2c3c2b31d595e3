// SPDX-License-Identifier: Apache-2.0
/* The split that gives populated diagonals to layout dia. */
#include "analysis/layouts/dia/options.h"

#include "analysis/diagonals.h"
#include "analysis/stretches.h"
#include "base/integers.h"
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

/* Whether a few rows in the middle are on more diagonals than may be chosen: then not all nonzeros are on chosen ones.
 * Only where row pointers are here, and so all columns near. */
static enum cb_status look_at_few(const struct cb_csr *csr, int64_t most, struct cb_diag *diag) {
  enum { FEW = 1 << 10, MOST = 64 };
  int32_t columns[FEW];
  int64_t seen[MOST], count = 0, row = csr->rows / 2;
  if (!csr->row_ptr || most > MOST || cb_csr_row(csr, row) == csr->nnz) return CB_OK;
  const int64_t first = cb_csr_row(csr, row), length = cb_smaller(FEW, csr->nnz - first);
  const struct cb_stretch stretch = {first, length};
  const enum cb_status s = csr->remote->fetch(csr->remote->user, &stretch, 1, columns, diag);
  for (int64_t k = 0; k < length && !s; k++) {
    int64_t at = 0;
    while (first + k >= cb_csr_row(csr, row + 1)) row++;
    while (at < count && seen[at] != columns[k] - row) at++;
    if (at < count) continue;
    if (count == most)
      return cb_fail(diag, CB_ERR_LIMIT,
                     "its nonzeros are on more than %lld diagonals, and the others' columns are not on the host",
                     (long long)most);
    seen[count++] = columns[k] - row;
  }
  return s;
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
  enum cb_status s = csr->remote ? look_at_few(csr, settings[DIA_MOST], diag) : CB_OK;
  if (!s) s = cb_diagonals_choose(chosen, csr, settings[DIA_FILL], settings[DIA_MOST], diag);
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
