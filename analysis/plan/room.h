// SPDX-License-Identifier: Apache-2.0
/* Thread blocks that a multiprocessor shall hold in kernels for several vectors, which bounds their registers: for the
 * text, and for what it is predicted to take. */
#ifndef CBGEN_ANALYSIS_PLAN_ROOM_H
#define CBGEN_ANALYSIS_PLAN_ROOM_H

#include "analysis/plan.h"

/* `blocks`: what the launch asks for by one vector. 0: nothing is asked for. */
int cb_room_blocks(const struct cb_plan *plan, const struct cb_vector_share *share, const struct cb_launch *launch,
                   int blocks);

/* Those that it is predicted to hold: fewer, where registers do not suffice, so that fewer are asked for in the end
 * (runtime/cuda/spills.h), and more, where a kernel takes fewer registers than it may. One at least. */
int64_t cb_room_held(const struct cb_plan *plan, const struct cb_vector_share *share, const struct cb_launch *launch);

#endif
