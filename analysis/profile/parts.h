// SPDX-License-Identifier: Apache-2.0
/* Inside the profile: its passes, one file each. Every pass fills its part of a zeroed profile from the
 * canonical matrix, in parallel, and adds integers only. */
#ifndef CBGEN_ANALYSIS_PROFILE_PARTS_H
#define CBGEN_ANALYSIS_PROFILE_PARTS_H

#include "analysis/profile/profile.h"

/* rows.c: `row` */
enum cb_status cb_profile_rows(struct cb_profile *profile, const struct cb_csr *csr, struct cb_diag *diag);
/* keys.c: `column` and `diagonal` */
enum cb_status cb_profile_columns(struct cb_profile *profile, const struct cb_csr *csr, struct cb_diag *diag);
enum cb_status cb_profile_diagonals(struct cb_profile *profile, const struct cb_csr *csr,
                                    struct cb_diag *diag);
/* symmetry.c: `symmetry` */
enum cb_status cb_profile_symmetry(struct cb_profile *profile, const struct cb_csr *csr,
                                   struct cb_diag *diag);
/* blocks.c: `shapes`, `best_shape`, `plain` and `aggregated` */
enum cb_status cb_profile_blocks(struct cb_profile *profile, const struct cb_csr *csr, struct cb_diag *diag);
/* values.c: `values` */
void cb_profile_values(struct cb_profile *profile, const struct cb_csr *csr);

/* How many threads may each keep `count` 32-bit counters, within a third of the matrix's memory (or a little,
 * for small ones); at most the number of threads, 0 when there is no room for one. */
int cb_profile_sets(const struct cb_csr *csr, int64_t count);

/* The rows of part `part` of `parts`, which have about the same number of nonzeros each. */
struct cb_profile_range {
  int64_t first, end;
};
struct cb_profile_range cb_profile_rows_of(const struct cb_csr *csr, int64_t part, int64_t parts);

#endif
