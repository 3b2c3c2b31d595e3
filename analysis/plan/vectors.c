// SPDX-License-Identifier: Apache-2.0
/* How kernels for several vectors deal them out: see struct cb_vector_share, and builder.h. */
#include "analysis/plan/builder.h"
#include "base/integers.h"

enum {
  LANES = 32,
  LOAD_BYTES = 16,   /* the widest load */
  SUM_BYTES = 64,    /* of a thread's sums for a row: registers */
  STRIDED_EACH = 4   /* vectors of a thread whose entries are loaded one by one */
};

/* Lanes that work on a row at most; 0: threads cannot share vectors. Regions in turn hand over sums in shared memory,
 * by rows of a thread block. */
static int most_lanes(const struct cb_plan *plan) {
  int most = 1;
  for (int i = 0; i < plan->regions_count; i++) {
    const struct cb_region *region = &plan->regions[i];
    if (!region->most_lanes || region->commit >= CB_COMMIT_KEEP || region->carry_slots) return 0;
    if (region->most_lanes > most) most = region->most_lanes;
  }
  return plan->row_sums ? 0 : most;
}

static int takes_one(const struct cb_plan *plan) {
  for (int i = 0; i < plan->regions_count; i++)
    if (!plan->regions[i].takes_vectors) return 1;
  return 0;
}

/* A thread has `least` vectors, or more where lanes that share a row leave no other threads for them. */
static struct cb_vector_share share_of(const struct cb_plan *plan, int lanes, int64_t least) {
  const int64_t most = SUM_BYTES / (int64_t)cb_type_size(plan->sum_type);
  const int64_t room = lanes ? LANES / lanes : 1; /* for threads that share a row's vectors */
  const int64_t wanted = plan->vectors < least ? 1 : plan->vectors / least;
  const int64_t parts = cb_smaller(wanted, room);
  return (struct cb_vector_share){(int)cb_smaller(plan->vectors / parts, most), (int)parts};
}

void cb_share_vectors(struct cb_plan *plan) {
  if (plan->vectors == 1) return;
  const int lanes = most_lanes(plan);
  if (takes_one(plan)) {
    plan->shares[CB_VECTORS_STRIDED] = (struct cb_vector_share){1, 1};
    return;
  }
  plan->shares[CB_VECTORS_PACKED] = share_of(plan, lanes, LOAD_BYTES / (int64_t)cb_type_size(plan->vector_type));
  plan->shares[CB_VECTORS_STRIDED] = share_of(plan, lanes, STRIDED_EACH);
}
