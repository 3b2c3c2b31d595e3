// SPDX-License-Identifier: Apache-2.0
/* Thread blocks that a multiprocessor holds by several vectors: see room.h. */
#include "analysis/plan/room.h"

#include "base/integers.h"

struct kernel {
  const struct cb_plan *plan;
  const struct cb_vector_share *share;
  const struct cb_launch *launch;
};

static const struct cb_region *region_of(const struct kernel *kernel, int i) {
  return &kernel->plan->regions[kernel->launch->first_region + i];
}

/* Rows whose sums a thread has at a time. */
static int rows_of_thread(const struct kernel *kernel) {
  int rows = kernel->share->sharing == CB_SHARING_TURNS ? 2 : 1;
  for (int i = 0; i < kernel->launch->regions; i++)
    if (region_of(kernel, i)->thread_rows > rows) rows = region_of(kernel, i)->thread_rows;
  return rows;
}

/* What its regions ask for, all of them, where a thread has few sums; 0: nothing. */
static int several_blocks(const struct kernel *kernel, int sum_bytes) {
  enum { MOST_BYTES = 32 };
  int fewest = 0;
  if (kernel->share == &kernel->plan->shares[CB_VECTORS_STRIDED]) return 0;
  for (int i = 0; i < kernel->launch->regions; i++) {
    const struct cb_region *region = region_of(kernel, i);
    const int is_wide = region->finish_blocks && sum_bytes == MOST_BYTES; /* and lacks registers: sell, cut, k = 16 */
    const int own = is_wide ? region->several_blocks * 2 / 3 : region->several_blocks;
    if (!own || kernel->launch->prepares || kernel->launch->body || sum_bytes > MOST_BYTES) return 0;
    if (region->carry_slots && !region->finish_blocks && sum_bytes < MOST_BYTES) return 0;
    if (!fewest || own < fewest) fewest = own;
  }
  return fewest;
}

/* Whether threads have so few loads that nothing else goes on while they wait. */
static int only_waits(const struct kernel *kernel) {
  for (int i = 0; i < kernel->launch->regions; i++)
    if (!region_of(kernel, i)->wait_ns) return 0;
  return 1;
}

static int is_staged(const struct kernel *kernel) {
  for (int i = 0; i < kernel->launch->regions; i++)
    if (region_of(kernel, i)->staged_parts) return 1;
  return 0;
}

/* 64 registers for a thread, more where it has many sums, or what one vector asks for where that is more; twice as many
 * for entries of X, each of which is for one sum alone. Asked for nothing, the compiler has fewer loads in flight.
 * Where sums meet in shared memory, 80: threads wait for each other, so others shall work. Likewise where rows have few
 * nonzeros: road_USA-NY, k = 8, four vectors of a thread, takes 14.2 us with 64 registers, 21.1 with 92. */
static int wanted(const struct kernel *kernel, int blocks) {
  enum { PIECE = 16, SOME = 96 }; /* bytes */
  const struct cb_plan *plan = kernel->plan;
  const struct cb_launch *launch = kernel->launch;
  if (plan->vector_blocks) return plan->vector_blocks;
  const int rows = rows_of_thread(kernel);
  const int each = kernel->share->each * (int)cb_type_size(plan->sum_type);
  const int asked = several_blocks(kernel, rows * each);
  if (asked) return asked;
  if (kernel->share->sharing == CB_SHARING_TILES) return each <= PIECE ? blocks : blocks / 2;
  const int some = rows > 1 && cb_plan_is_complex(plan) ? PIECE : SOME; /* products take more of them */
  const int least = rows == 1 && only_waits(kernel) ? 2 * PIECE : PIECE;
  const int plain = rows * each <= least ? 1024 : rows * each <= some ? 512 : 256;
  const int resident = is_staged(kernel) ? 768 : plain; /* threads of a multiprocessor */
  if (blocks * launch->threads <= resident) return rows == 1 && each > PIECE && blocks > 1 ? blocks / 2 : blocks;
  return resident > launch->threads ? resident / launch->threads : 1;
}

/* No more than there are, two at least, where regions load together. */
int cb_room_blocks(const struct cb_plan *plan, const struct cb_vector_share *share, const struct cb_launch *launch,
                   int blocks) {
  enum { LEAST = 2 };
  const struct kernel kernel = {plan, share, launch};
  const int most = wanted(&kernel, blocks);
  int together = !launch->prepares && !launch->body && !plan->vector_blocks;
  for (int i = 0; i < launch->regions && together; i++) together = region_of(&kernel, i)->loads_together;
  if (!together) return most;
  const int64_t there = launch->blocks * cb_share_blocks(share);
  return (int)cb_smaller(cb_larger(cb_divide_up(there, plan->target.multiprocessors), LEAST), most);
}

/* Thread blocks whose registers there are, where a thread holds values of a batch, its sums, and `entries` of X for
 * each vector; 0: it is not known. */
static int64_t fitting(const struct kernel *kernel, const struct cb_region *region, int entries) {
  enum { ALL = 65536, MOST = 255, GROUP = 8 };
  const struct cb_steps *steps = &region->steps;
  const int64_t words = (int64_t)cb_type_size(kernel->plan->sum_type) / 4;
  const int64_t sums = cb_larger(1, region->thread_rows) + entries;
  const int64_t wanted = steps->registers + (steps->values + sums * kernel->share->each) * cb_larger(1, words);
  if (!steps->values) return 0;
  return cb_larger(1, ALL / (cb_round_up(cb_smaller(wanted, MOST), GROUP) * kernel->launch->threads));
}

int64_t cb_room_held(const struct cb_plan *plan, const struct cb_vector_share *share, const struct cb_launch *launch) {
  const struct kernel kernel = {plan, share, launch};
  const int64_t asked = cb_larger(1, cb_room_blocks(plan, share, launch, launch->blocks_per_sm));
  int64_t most = INT64_MAX, least = INT64_MAX;
  for (int i = 0; i < launch->regions; i++) {
    const struct cb_region *region = region_of(&kernel, i);
    const int64_t one = fitting(&kernel, region, 1), all = fitting(&kernel, region, region->steps.entries);
    most = cb_smaller(most, one ? one : asked);
    least = cb_smaller(least, all ? all : asked);
  }
  return cb_smaller(cb_larger(asked, least), most);
}
