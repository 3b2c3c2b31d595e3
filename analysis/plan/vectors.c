// SPDX-License-Identifier: Apache-2.0
/* How kernels for several vectors deal them out: see struct cb_vector_share, and builder.h. */
#include "analysis/cost_figures.h"
#include "analysis/plan/builder.h"
#include "analysis/plan/cost.h"
#include "base/integers.h"

enum {
  LANES = 32,
  SUM_BYTES = 64,    /* of a thread's sums for a row, half where it adds up those of several threads: registers */
  THREADS = 1024,    /* of a multiprocessor, that are enough */
  MOST_WARPS = 4,    /* that meet: a thread has the sums of all */
  STRIDED_EACH = 4   /* vectors of a thread whose entries are loaded one by one */
};

/* Lanes that work on a row at most; 0: threads cannot share vectors. Regions in turn hand over sums in shared memory,
 * by rows of a thread block; units that share rows arrive warp by warp. */
static int most_lanes(const struct cb_plan *plan) {
  int most = 1;
  for (int i = 0; i < plan->regions_count; i++) {
    const struct cb_region *region = &plan->regions[i];
    const int carries = region->carry_slots && !region->carries_parts;
    if (!region->most_lanes || region->commit >= CB_COMMIT_KEEP || carries) return 0;
    if (region->most_lanes > most) most = region->most_lanes;
  }
  return plan->row_sums ? 0 : most;
}

static int takes_one(const struct cb_plan *plan) {
  for (int i = 0; i < plan->regions_count; i++)
    if (!plan->regions[i].takes_vectors) return 1;
  return 0;
}

/* How threads share vectors where lanes that share rows leave no others to: as all regions can. */
static enum cb_sharing sharing_of(const struct cb_plan *plan) {
  const enum cb_sharing sharing = plan->regions_count ? plan->regions[0].sharing : CB_SHARING_LANES;
  for (int i = 0; i < plan->regions_count; i++)
    if (plan->regions[i].sharing != sharing || plan->regions[i].commit >= CB_COMMIT_KEEP) return CB_SHARING_LANES;
  return plan->row_sums ? CB_SHARING_LANES : sharing;
}

/* So many can. Shared memory has room for a piece of each. */
static int64_t most_threads(const struct cb_plan *plan) {
  int64_t most = CB_MOST_VECTORS;
  for (int i = 0; i < plan->regions_count; i++)
    most = cb_smaller(most, plan->regions[i].staged_parts ? plan->regions[i].staged_parts : MOST_WARPS);
  return most;
}

/* Sums in shared memory, which are as many times larger, leave room for so many: a power of 2, and two in any case. */
static int64_t most_in_shared(const struct cb_plan *plan) {
  int64_t most = CB_MOST_VECTORS;
  for (int first = 0; first < plan->regions_count; first += cb_cost_group(plan, first)) {
    int64_t bytes = 0;
    for (int r = first; r < first + cb_cost_group(plan, first); r++) bytes += plan->regions[r].static_shared;
    while (most > 2 && most * bytes > CB_STATIC_SHARED) most /= 2;
  }
  return most;
}

/* Vectors of a thread at most. */
static int64_t most_each(const struct cb_plan *plan, enum cb_sharing sharing) {
  int64_t bytes = SUM_BYTES / (sharing ? 2 : 1);
  for (int i = 0; i < plan->regions_count; i++)
    if (plan->regions[i].staged_parts) bytes = CB_PIECE_BYTES;
  return cb_smaller(bytes / (int64_t)cb_type_size(plan->sum_type), most_in_shared(plan));
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

/* `wanted` threads share a row's vectors, or fewer where lanes that share it leave no others and have no other way. */
static struct cb_vector_share share_among(const struct cb_plan *plan, int64_t wanted) {
  const int lanes = most_lanes(plan);
  const int64_t room = lanes ? LANES / lanes : 1; /* for threads that share a row's vectors */
  const enum cb_sharing sharing = wanted > room ? sharing_of(plan) : CB_SHARING_LANES;
  const int64_t parts = cb_smaller(wanted, sharing ? most_threads(plan) : room);
  const int64_t each = cb_smaller(plan->vectors / parts, most_each(plan, sharing));
  return (struct cb_vector_share){.each = (int)each, .parts = (int)parts, .sharing = sharing};
}

/* Tensor cores take eight vectors at a time, of which four threads have two each; or four, one each. */
static int takes_tiles(const struct cb_plan *plan) {
  return plan->regions_count == 1 && plan->regions[0].sharing == CB_SHARING_TILES;
}

static struct cb_vector_share share_tiles(const struct cb_plan *plan) {
  enum { PARTS = 4 };
  return (struct cb_vector_share){.each = plan->vectors / PARTS, .parts = PARTS, .sharing = CB_SHARING_TILES};
}

/* So many that a thread has `least` vectors, if it can be. */
static struct cb_vector_share share_of(const struct cb_plan *plan, int64_t least) {
  least = cb_smaller(least, most_each(plan, CB_SHARING_LANES));
  return share_among(plan, plan->vectors < least ? 1 : plan->vectors / least);
}

/* ---- what a product takes, as far as shares change it */

/* Sectors of X that L2 is asked for: entry by entry, or by rows where regions have no other way to share them. */
static int64_t sectors_of(const struct cb_plan *plan, int by_rows) {
  int64_t sectors = 0;
  for (int i = 0; i < plan->regions_count; i++) {
    const struct cb_region *region = &plan->regions[i];
    sectors += by_rows && region->row_sectors ? region->row_sectors : region->cost.sectors * plan->vectors;
  }
  return sectors;
}

static int64_t product_ns(const struct cb_plan *plan, int by_rows) {
  struct cb_cost cost = {.bytes = cb_plan_bytes(plan) + plan->vectors * cb_cost_vector_bytes(plan),
                         .sectors = sectors_of(plan, by_rows)};
  cb_cost_estimate(&cost, &plan->target);
  return cost.gpu_ns;
}

/* A load of 32 lanes that are in different rows of X asks L1 for as many lines, one in each cycle, whatever it takes of
 * them: threads that share a row ask for one of them together. */
static int64_t lines_ns(const struct cb_plan *plan, const struct cb_vector_share *share) {
  const int64_t lines = cb_divide_up(share->each * (int64_t)cb_type_size(plan->vector_type), CB_PIECE_BYTES);
  return plan->nnz * lines / plan->target.multiprocessors * CB_COST_LINE_PS / 1000;
}

/* Turns follow one another, each with a warp's chain of loads, and warps that share vectors each wait for the matrix.
 * Of rows with few nonzeros, which need no meeting, nothing goes on beside that. */
static int64_t shared_ns(const struct cb_plan *plan, const struct cb_vector_share *share) {
  const int64_t once = cb_share_vectors_of(share), l1_ns = lines_ns(plan, share);
  int64_t chain_ns = 0, work_ns = 0, wait_ns = 0;
  for (int i = 0; i < plan->regions_count; i++) {
    chain_ns = cb_larger(chain_ns, plan->regions[i].cost.chain_ns);
    work_ns += plan->regions[i].cost.work_ns * share->parts;
    wait_ns += plan->regions[i].wait_ns * share->parts;
  }
  const int meets = share->sharing == CB_SHARING_WARPS, alone = share->sharing == CB_SHARING_LANES;
  struct cb_cost cost = {.bytes = cb_plan_bytes(plan) + once * cb_cost_vector_bytes(plan),
                         .sectors = sectors_of(plan, 1) / plan->vectors * once,
                         .work_ns = alone ? 0 : cb_larger(l1_ns, meets ? work_ns : 0),
                         .chain_ns = (share->sharing == CB_SHARING_TURNS ? share->parts : 1) * chain_ns,
                         .tail_ns = alone ? l1_ns + wait_ns : 0};
  cb_cost_estimate(&cost, &plan->target);
  return plan->vectors / once * cost.gpu_ns;
}

/* Whether warps that share vectors wait once more each. */
static int waits(const struct cb_plan *plan) {
  for (int i = 0; i < plan->regions_count; i++)
    if (plan->regions[i].wait_ns) return 1;
  return 0;
}

/* Where threads can only share vectors by warps that meet, or in turns, or wait the more, the more of them do: as many
 * as are predicted to be fastest. */
static struct cb_vector_share packed_share(const struct cb_plan *plan, int64_t threads) {
  const int64_t piece = CB_PIECE_BYTES / (int64_t)cb_type_size(plan->vector_type);
  if (takes_tiles(plan)) return share_tiles(plan);
  if (threads) return share_among(plan, cb_smaller(threads, plan->vectors / 2)); /* a thread has two at least */
  struct cb_vector_share best = share_of(plan, piece * pieces_of(plan, piece));
  for (int64_t parts = best.sharing || waits(plan) ? best.parts / 2 : 0; parts >= 1; parts /= 2) {
    const struct cb_vector_share share = share_among(plan, parts);
    if (shared_ns(plan, &share) < shared_ns(plan, &best)) best = share;
  }
  return best;
}

/* ---- X laid out by rows in scratch */

/* Kernels without arrays know nothing of a loaded matrix, and so of no scratch. */
static int can_copy(const struct cb_plan *plan) {
  int stored = plan->carry_sums > 0;
  for (int i = 0; i < plan->regions_count; i++)
    for (int a = 0; a < plan->regions[i].arrays_count; a++)
      stored |= plan->regions[i].arrays[a].storage == CB_STORED;
  return stored && plan->launches_count && plan->cols;
}

/* Whether Y is better written by rows, too: entries of columns whose rows are no neighbours ask memory for a sector
 * each. R-MAT 20 by sell's cut rows, eight vectors by columns: 396 us, 294 by other slices. What is laid out is a plain
 * product. */
static int lays_out_y(const struct cb_plan *plan) {
  return plan->regions_count == 1 && plan->regions[0].scatters_rows && plan->form != CB_FORM_ADD &&
         plan->vector_type == plan->sum_type;
}

/* Whether that takes less time than gathers of single entries, by an eighth at least: predictions are no better. */
static int copying_pays(const struct cb_plan *plan) {
  enum { EIGHTHS = 7 };
  const int64_t entries = plan->vectors * plan->cols;
  struct cb_cost copy = {.bytes = 2 * entries * (int64_t)cb_type_size(plan->vector_type)};
  cb_cost_estimate(&copy, &plan->target);
  return product_ns(plan, 1) + copy.gpu_ns < product_ns(plan, 0) / 8 * EIGHTHS;
}

void cb_share_vectors(struct cb_plan *plan, const struct cb_options *options) {
  if (plan->vectors == 1) return;
  plan->vector_blocks = (int)options->vector_blocks;
  if (takes_one(plan)) {
    plan->shares[CB_VECTORS_STRIDED] = (struct cb_vector_share){.each = 1, .parts = 1};
    return;
  }
  plan->shares[CB_VECTORS_PACKED] = packed_share(plan, options->vector_threads);
  plan->shares[CB_VECTORS_STRIDED] = takes_tiles(plan) ? share_tiles(plan) : share_of(plan, STRIDED_EACH);
  const int y_too = lays_out_y(plan);
  if (!can_copy(plan) || options->copy_x == CB_OFF) return;
  if (options->copy_x == CB_AUTO && !y_too && !copying_pays(plan)) return;
  plan->shares[CB_VECTORS_COPIED] = plan->shares[CB_VECTORS_PACKED];
  plan->shares[CB_VECTORS_COPIED].y_too = y_too;
}
