// SPDX-License-Identifier: Apache-2.0
/* Inside the profile: its passes, one file each. Every pass fills its part of a zeroed profile from the
 * canonical matrix, in parallel, and adds integers only. */
#ifndef CBGEN_ANALYSIS_PROFILE_PARTS_H
#define CBGEN_ANALYSIS_PROFILE_PARTS_H

#include "analysis/profile.h"

/* profile_rows.c: `row` */
enum cb_status cb_profile_rows(struct cb_profile *profile, const struct cb_csr *csr, struct cb_diag *diag);
/* profile_keys.c: `column` and `diagonal` */
enum cb_status cb_profile_columns(struct cb_profile *profile, const struct cb_csr *csr, struct cb_diag *diag);
enum cb_status cb_profile_diagonals(struct cb_profile *profile, const struct cb_csr *csr,
                                    struct cb_diag *diag);
/* profile_symmetry.c: `symmetry` */
void cb_profile_symmetry(struct cb_profile *profile, const struct cb_csr *csr);
/* profile_blocks.c: `shapes`, `best_shape`, `plain` and `aggregated` */
enum cb_status cb_profile_blocks(struct cb_profile *profile, const struct cb_csr *csr, struct cb_diag *diag);
/* profile_values.c: `values` */
void cb_profile_values(struct cb_profile *profile, const struct cb_csr *csr);

/* Sorts ascending, in place and in parallel. */
void cb_profile_sort(uint32_t *keys, int64_t count);

#endif
