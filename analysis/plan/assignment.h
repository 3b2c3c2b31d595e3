// SPDX-License-Identifier: Apache-2.0
/* The plan's companion: per region, what packing needs. Codegen does not include this header. */
#ifndef CBGEN_ANALYSIS_ASSIGNMENT_H
#define CBGEN_ANALYSIS_ASSIGNMENT_H

#include "analysis/layout.h"

struct cb_assignment {
  int64_t nonzeros; /* of the matrix */
  const struct cb_csr *csr; /* the matrix itself, not owned, which lives until packing is done */
  int wide;         /* their numbers take 64 bits: 2^32 - 1 or more, or a test wants it (index-limit) */
  int regions_count;
  struct cb_region_work *regions;
  const struct cb_layout **layouts; /* of each region */
};

/* The slot map of one region. What its layout's visit fills beside, it writes to `targets`: one for each array of the
 * region, NULL where none is wanted; or NULL when the map is all. Release with cb_slot_map_release. */
enum cb_status cb_slot_map_build(struct cb_slot_map *map, const struct cb_plan *plan,
                                 const struct cb_assignment *assignment, int region,
                                 unsigned char *const *targets, struct cb_diag *diag);
/* By slot, the nonzero above the main diagonal that is read from it, too (plan/symmetry.h); without slots where the
 * region has no such nonzeros. */
enum cb_status cb_mirror_map_build(struct cb_slot_map *map, const struct cb_plan *plan,
                                   const struct cb_assignment *assignment, int region, struct cb_diag *diag);
void cb_slot_map_release(struct cb_slot_map *map);

void cb_region_work_release(struct cb_region_work *work);

#endif
