// SPDX-License-Identifier: Apache-2.0
/* How many nonzeros each thread block of a plan multiplies: whether its work is balanced.
 *
 * A layout counts for its thread blocks (cb_layout.count_loads); for one that does not, they follow from the rows that
 * thread block b commits, where the region says so (block_rows). Regions in turn share their thread blocks, and a
 * thread block's nonzeros are those of all of them. Launches that run no region's multiply do not count.
 */
#ifndef CBGEN_ANALYSIS_LOADS_H
#define CBGEN_ANALYSIS_LOADS_H

#include "analysis/plan.h"

struct cb_loads {
  int64_t blocks; /* 0: it is not known which thread block multiplies what */
  int64_t least, most;
  double mean, variation; /* variation: standard deviation over mean; 0 where the mean is */
};

/* Of the whole plan. CB_ERR_MEMORY. */
enum cb_status cb_loads_count(struct cb_loads *loads, const struct cb_plan *plan,
                              const struct cb_assignment *assignment, struct cb_diag *diag);

/* What it would be without the layout's balancing, of all regions whose layout can say so (cb_layout.count_unbalanced);
 * blocks is 0 when none can. */
enum cb_status cb_loads_count_unbalanced(struct cb_loads *loads, const struct cb_assignment *assignment,
                                         struct cb_diag *diag);

#endif
