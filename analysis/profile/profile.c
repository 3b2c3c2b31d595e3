// SPDX-License-Identifier: Apache-2.0
/* The profile of a matrix: the order of its passes. See profile.h for what they find. */
#include "analysis/profile/profile.h"

#include "analysis/profile/parts.h"

#include <omp.h>
#include <stdio.h>

enum { ALWAYS_ROOM = 1 << 20 }; /* bytes that any matrix may take */

const struct cb_profile_bin cb_profile_subblock_bins[CB_PROFILE_SUBBLOCK_BINS] = {
    {1, 8}, {9, 16}, {17, 31}, {32, 63}, {64, 128}, {129, 255}, {256, 256},
};

int cb_profile_sets(const struct cb_csr *csr, int64_t count) {
  const int64_t third = cb_csr_bytes(csr) / 3, room = third > ALWAYS_ROOM ? third : ALWAYS_ROOM;
  const int64_t fitting = room / ((count + 1) * (int64_t)sizeof(uint32_t)), most = omp_get_max_threads();
  return (int)(fitting < most ? fitting : most);
}

/* The first row that begins at or after nonzero `index`. */
static int64_t row_at(const struct cb_csr *csr, int64_t index) {
  int64_t low = 0, high = csr->rows;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (cb_csr_row(csr, middle) < index)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

struct cb_profile_range cb_profile_rows_of(const struct cb_csr *csr, int64_t part, int64_t parts) {
  const int64_t share = csr->nnz / parts;
  return (struct cb_profile_range){part ? row_at(csr, part * share) : 0,
                                   part + 1 < parts ? row_at(csr, (part + 1) * share) : csr->rows};
}

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
  if (!s) s = cb_profile_symmetry(profile, csr, diag);
  if (s) return s;
  cb_profile_values(profile, csr);
  return CB_OK;
}

double cb_profile_density(const struct cb_profile *profile) {
  const double positions = (double)profile->rows * (double)profile->cols;
  return positions > 0 ? (double)profile->nnz / positions : 0;
}
