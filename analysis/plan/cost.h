// SPDX-License-Identifier: Apache-2.0
/* The cost model: what the GPU makes of the bytes, sectors and waits that a layout counts for its region. All of it is
 * integer arithmetic, so that plans compare equal everywhere. A kernel takes the longest of four, after a start and
 * before a tail:
 *
 *   stream   its bytes, from L2 where they fit there, and the sectors of x that it gathers, side by side
 *   work     what its layout finds that instructions take at least
 *   chain    the loads of one warp that wait for each other
 *
 * The rates are the target's (target.h). What kernels reach of them is in analysis/cost_figures.h. */
#ifndef CBGEN_ANALYSIS_PLAN_COST_H
#define CBGEN_ANALYSIS_PLAN_COST_H

#include "analysis/plan.h"

/* Bytes of x and y. */
int64_t cb_cost_vector_bytes(const struct cb_plan *plan);

/* Fills in what the device makes of the region's counts, as a launch of its own. */
void cb_cost_region(const struct cb_plan *plan, struct cb_region *region);

/* What `regions` regions, from `first` on, would take in one launch. */
struct cb_cost cb_cost_joined(const struct cb_plan *plan, int first, int regions, enum cb_joining joining);

/* How many regions are in the launch that begins with region `first`. */
int cb_cost_group(const struct cb_plan *plan, int first);

/* Whether a region of that launch writes rows; else all of them add to what stands in y. */
int cb_cost_group_writes(const struct cb_plan *plan, int first);

/* While a plan is built: what its regions take so far, in the launches that they have so far; how many these are. */
struct cb_cost cb_cost_so_far(const struct cb_plan *plan);
int cb_cost_launches(const struct cb_plan *plan);

/* Launches follow one another at the host's pace at best. */
int64_t cb_cost_launched_ns(const struct cb_plan *plan, int launches, int64_t gpu_ns);

/* Fills in the plan's own cost, from its regions and launches. */
void cb_cost_plan(struct cb_plan *plan);

#endif
