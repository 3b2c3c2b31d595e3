// SPDX-License-Identifier: Apache-2.0
/* The profile of a matrix: the order of its passes. See profile.h for what they find. */
#include "analysis/profile.h"

#include "analysis/profile_parts.h"

#include <stdio.h>

const struct cb_profile_bin cb_profile_subblock_bins[CB_PROFILE_SUBBLOCK_BINS] = {
    {1, 8}, {9, 16}, {17, 31}, {32, 63}, {64, 128}, {129, 255}, {256, 256},
};

enum cb_status cb_profile_compute(struct cb_profile *profile, const struct cb_csr *csr,
                                  struct cb_diag *diag) {
  *profile = (struct cb_profile){.rows = csr->rows,
                                 .cols = csr->cols,
                                 .nnz = csr->nnz,
                                 .csr_bytes = cb_csr_bytes(csr),
                                 .pattern = csr->pattern,
                                 .symmetric_file = csr->symmetric_file};
  snprintf(profile->name, sizeof profile->name, "%s", csr->name);
  enum cb_status s = cb_profile_rows(profile, csr, diag);
  if (!s) s = cb_profile_columns(profile, csr, diag);
  if (!s) s = cb_profile_diagonals(profile, csr, diag);
  if (!s) s = cb_profile_blocks(profile, csr, diag);
  if (s) return s;
  cb_profile_symmetry(profile, csr);
  cb_profile_values(profile, csr);
  return CB_OK;
}

double cb_profile_density(const struct cb_profile *profile) {
  const double positions = (double)profile->rows * (double)profile->cols;
  return positions > 0 ? (double)profile->nnz / positions : 0;
}
