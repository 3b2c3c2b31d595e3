// SPDX-License-Identifier: Apache-2.0
/* How many thread blocks a multiprocessor shall hold, which bounds a kernel's registers: what a plan's launches ask
 * for, and what suits kernels for several vectors. */
#include "codegen/emitter.h"

#include "analysis/plan/room.h"

/* As the launches of a plan have it (analysis/plan/launches.c); families have steps of it. */
static int blocks_per_sm(const struct emitter *emitter, const struct cb_launch *launch) {
  int fewest = launch->blocks_per_sm;
  if (launch->prepares || launch->body || !is_family(emitter)) return fewest;
  for (int i = 0; i < launch->regions; i++) {
    const int own = emitter->plan->regions[launch->first_region + i].family.blocks_per_sm;
    if (own && (own < fewest || launch->regions == 1)) fewest = own;
  }
  return fewest;
}

const char *cb_launch_bounds(struct emitter *emitter, const struct cb_launch *launch, const char *threads) {
  const int asked = blocks_per_sm(emitter, launch);
  const int blocks = emitter->share ? cb_room_blocks(emitter->plan, emitter->share, launch, asked) : asked;
  if (!blocks) return threads;
  if (blocks == 1) return cb_arena_format(&emitter->arena, "%s, 1", threads);
  return cb_arena_format(&emitter->arena, "%s, blocks_that_fit(%d, %s)", threads, blocks, threads);
}
