// SPDX-License-Identifier: Apache-2.0
/* How kernels for several vectors deal them out: see struct cb_vector_share, and builder.h. */
#include "analysis/plan/builder.h"
#include "base/integers.h"

enum {
  LANES = 32,
  SUM_BYTES = 64,    /* of a thread's sums for a row, half where it has those of all turns: registers */
  THREADS = 1024,    /* of a multiprocessor, that are enough */
  MOST_TURNS = 4,    /* a thread keeps the sums of all */
  STRIDED_EACH = 4   /* vectors of a thread whose entries are loaded one by one */
};

/* Lanes that work on a row at most; 0: threads cannot share vectors. Regions in turn hand over sums in shared memory,
 * by rows of a thread block; units that share rows arrive warp by warp. */
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

static int takes_turns(const struct cb_plan *plan) {
  for (int i = 0; i < plan->regions_count; i++)
    if (!plan->regions[i].takes_turns || plan->regions[i].commit >= CB_COMMIT_KEEP) return 0;
  return !plan->row_sums;
}

/* Where a thread adds up several rows with what it has loaded of the matrix, it pays to have twice as many vectors, and
 * half as many threads that load the same: finite elements of three unknowns per node, 8 vectors in double precision,
 * 162 against 147 µs. As long as there are enough threads. */
static int64_t pieces_of(const struct cb_plan *plan, int64_t piece) {
  int64_t threads = 0;
  for (int i = 0; i < plan->regions_count; i++) {
    const struct cb_region *region = &plan->regions[i];
    if (region->thread_rows < 2) return 1;
    threads += region->blocks * cb_region_threads(region);
  }
  const int64_t parts = plan->vectors / (2 * piece);
  return parts >= 1 && threads * parts >= (int64_t)THREADS * plan->target.multiprocessors ? 2 : 1;
}

/* A thread has `least` vectors, or more where lanes that share a row leave no other threads for them, and no turns can
 * be taken. */
static struct cb_vector_share share_of(const struct cb_plan *plan, int64_t least) {
  const int lanes = most_lanes(plan);
  const int64_t room = lanes ? LANES / lanes : 1; /* for threads that share a row's vectors */
  const int64_t wanted = plan->vectors < least ? 1 : plan->vectors / least;
  const int turns = wanted > room && takes_turns(plan);
  const int64_t parts = cb_smaller(wanted, turns ? MOST_TURNS : room);
  const int64_t most = SUM_BYTES / (turns ? 2 : 1) / (int64_t)cb_type_size(plan->sum_type);
  return (struct cb_vector_share){(int)cb_smaller(plan->vectors / parts, most), (int)parts, turns};
}

void cb_share_vectors(struct cb_plan *plan) {
  if (plan->vectors == 1) return;
  if (takes_one(plan)) {
    plan->shares[CB_VECTORS_STRIDED] = (struct cb_vector_share){1, 1, 0};
    return;
  }
  const int64_t piece = CB_PIECE_BYTES / (int64_t)cb_type_size(plan->vector_type);
  plan->shares[CB_VECTORS_PACKED] = share_of(plan, piece * pieces_of(plan, piece));
  plan->shares[CB_VECTORS_STRIDED] = share_of(plan, STRIDED_EACH);
}
