// SPDX-License-Identifier: Apache-2.0
/* How many thread blocks a multiprocessor shall hold, which bounds a kernel's registers: what a plan's launches ask
 * for, and what suits kernels for several vectors. */
#include "codegen/emitter.h"

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

/* Rows whose sums a thread has at a time, in a kernel for several vectors. */
static int rows_of_thread(const struct emitter *emitter, const struct cb_launch *launch) {
  int rows = emitter->share->sharing == CB_SHARING_TURNS ? 2 : 1;
  for (int i = 0; i < launch->regions; i++) {
    const int own = emitter->plan->regions[launch->first_region + i].thread_rows;
    if (own > rows) rows = own;
  }
  return rows;
}

/* What its regions ask for, all of them, where a thread has few sums; 0: nothing. */
static int several_blocks(const struct emitter *emitter, const struct cb_launch *launch, int sum_bytes) {
  enum { MOST_BYTES = 32 };
  int fewest = 0;
  if (emitter->share == &emitter->plan->shares[CB_VECTORS_STRIDED]) return 0;
  for (int i = 0; i < launch->regions; i++) {
    const struct cb_region *region = &emitter->plan->regions[launch->first_region + i];
    const int is_wide = region->finish_blocks && sum_bytes == MOST_BYTES; /* and lacks registers: sell, cut, k = 16 */
    const int own = is_wide ? region->several_blocks * 2 / 3 : region->several_blocks;
    if (!own || launch->prepares || launch->body || sum_bytes > MOST_BYTES) return 0;
    if (region->carry_slots && !region->finish_blocks && sum_bytes < MOST_BYTES) return 0;
    if (!fewest || own < fewest) fewest = own;
  }
  return fewest;
}

/* Whether threads have so few loads that nothing else goes on while they wait. */
static int only_waits(const struct emitter *emitter, const struct cb_launch *launch) {
  for (int i = 0; i < launch->regions; i++)
    if (!emitter->plan->regions[launch->first_region + i].wait_ns) return 0;
  return 1;
}

static int is_staged(const struct emitter *emitter, const struct cb_launch *launch) {
  for (int i = 0; i < launch->regions; i++)
    if (emitter->plan->regions[launch->first_region + i].staged_parts) return 1;
  return 0;
}

/* For several vectors, too: 64 registers for a thread, more where it has many sums, or what one vector asks for where
 * that is more; twice as many for entries of X, each of which is for one sum alone. Asked for nothing, the compiler has
 * fewer loads in flight. Where sums meet in shared memory, 80: threads wait for each other, so others shall work.
 * Likewise where rows have few nonzeros: road_USA-NY, k = 8, four vectors of a thread, takes 14.2 us with 64 registers,
 * 21.1 with 92. */
static int shared_blocks_wanted(const struct emitter *emitter, const struct cb_launch *launch) {
  enum { PIECE = 16, SOME = 96 }; /* bytes */
  const int blocks = blocks_per_sm(emitter, launch);
  if (!emitter->share) return blocks;
  if (emitter->plan->vector_blocks) return emitter->plan->vector_blocks;
  const int rows = rows_of_thread(emitter, launch);
  const int each = emitter->share->each * (int)cb_type_size(emitter->plan->sum_type);
  const int asked = several_blocks(emitter, launch, rows * each);
  if (asked) return asked;
  if (emitter->share->sharing == CB_SHARING_TILES) return each <= PIECE ? blocks : blocks / 2;
  const int some = rows > 1 && cb_plan_is_complex(emitter->plan) ? PIECE : SOME; /* products take more of them */
  const int least = rows == 1 && only_waits(emitter, launch) ? 2 * PIECE : PIECE;
  const int plain = rows * each <= least ? 1024 : rows * each <= some ? 512 : 256;
  const int resident = is_staged(emitter, launch) ? 768 : plain; /* threads of a multiprocessor */
  if (blocks * launch->threads <= resident) return rows == 1 && each > PIECE && blocks > 1 ? blocks / 2 : blocks;
  return resident > launch->threads ? resident / launch->threads : 1;
}

/* No more than there are, two at least, where regions load together. */
static int shared_blocks_per_sm(const struct emitter *emitter, const struct cb_launch *launch) {
  enum { LEAST = 2 };
  const int wanted = shared_blocks_wanted(emitter, launch);
  int together = emitter->share && !launch->prepares && !launch->body && !emitter->plan->vector_blocks;
  for (int i = 0; i < launch->regions && together; i++)
    together = emitter->plan->regions[launch->first_region + i].loads_together;
  if (!together) return wanted;
  const int64_t blocks = launch->blocks * cb_share_blocks(emitter->share);
  const int64_t resident = cb_larger(cb_divide_up(blocks, emitter->plan->target.multiprocessors), LEAST);
  return (int)cb_smaller(resident, wanted);
}

const char *cb_launch_bounds(struct emitter *emitter, const struct cb_launch *launch, const char *threads) {
  const int blocks = shared_blocks_per_sm(emitter, launch);
  if (!blocks) return threads;
  if (blocks == 1) return cb_arena_format(&emitter->arena, "%s, 1", threads);
  return cb_arena_format(&emitter->arena, "%s, blocks_that_fit(%d, %s)", threads, blocks, threads);
}
