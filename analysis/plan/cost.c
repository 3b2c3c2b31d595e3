// SPDX-License-Identifier: Apache-2.0
/* The cost model: see cost.h. */
#include "analysis/plan/cost.h"

#include "analysis/plan/cost_figures.h"
#include "base/integers.h"

int64_t cb_cost_stream_ns(int64_t bytes, const struct cb_target *target) {
  const int64_t fits = target->l2_bytes / 5 * 3, beyond = target->l2_bytes / 5 * 6;
  const int64_t from_l2 = bytes * 100 / (target->l2_gb_per_s * CB_COST_L2_PERCENT);
  const int64_t from_memory = bytes / target->read_gb_per_s;
  if (bytes <= fits) return from_l2;
  if (bytes >= beyond) return from_memory;
  return from_l2 + (from_memory - from_l2) * ((bytes - fits) / 1024) / ((beyond - fits) / 1024);
}

/* Streaming and gathering side by side: the longer of both, a quarter more when both are equal (about the sum of
 * cubes, as measured). */
static int64_t together(int64_t a, int64_t b) {
  const int64_t most = cb_larger(a, b), least = cb_smaller(a, b);
  return most ? most + least * least / most * least / most / 4 : 0;
}

int64_t cb_plan_gather_ns(int64_t sectors, const struct cb_target *target) {
  return sectors * 100 / (target->sectors_g_per_s * CB_COST_GATHER_PERCENT);
}

/* Fills in what the device makes of it as one launch. */
static void estimate(struct cb_cost *cost, const struct cb_target *target) {
  const int64_t percent = cost->stream_percent ? cost->stream_percent : 100;
  cost->stream_ns = cb_cost_stream_ns(cost->bytes, target) * 100 / percent;
  cost->gather_ns = cb_plan_gather_ns(cost->sectors, target);
  int64_t bound = together(cost->stream_ns, cost->gather_ns);
  bound = cost->work_ns > bound ? cost->work_ns : bound;
  bound = cost->chain_ns > bound ? cost->chain_ns : bound;
  cost->ns = cost->gpu_ns = CB_COST_START_NS + bound + cost->tail_ns;
}

int64_t cb_plan_stream_ns(const struct cb_csr *csr, const struct cb_target *target, struct cb_types types,
                          int64_t bytes_per_nonzero, int64_t percent) {
  const int64_t vectors = (csr->rows + csr->cols) * (int64_t)cb_type_size(types.vector);
  return CB_COST_START_NS + cb_cost_stream_ns(csr->nnz * bytes_per_nonzero + vectors, target) * 100 / percent;
}

int64_t cb_cost_vector_bytes(const struct cb_plan *plan) {
  return (plan->cols + plan->rows) * (int64_t)cb_type_size(plan->vector_type);
}

void cb_cost_region(const struct cb_plan *plan, struct cb_region *region) {
  region->cost.bytes = region->bytes + cb_cost_vector_bytes(plan);
  estimate(&region->cost, &plan->target);
}

/* x and y count once, and each region streams at its own rate. In turn, chains follow one another, as often as a region
 * takes its turn. */
struct cb_cost cb_cost_joined(const struct cb_plan *plan, int first, enum cb_joining joining) {
  struct cb_cost joined = {.bytes = cb_cost_vector_bytes(plan)};
  const int64_t rows = cb_larger(plan->regions[first].block_rows, plan->regions[first + 1].block_rows);
  int64_t at_full_rate = joined.bytes;
  for (int r = first; r < first + 2; r++) {
    const struct cb_cost *cost = &plan->regions[r].cost;
    const int64_t turns = joining == CB_IN_TURN ? rows / plan->regions[r].block_rows : 0;
    joined.bytes += plan->regions[r].bytes;
    at_full_rate += plan->regions[r].bytes * 100 / (cost->stream_percent ? cost->stream_percent : 100);
    joined.sectors += cost->sectors;
    joined.work_ns += cost->work_ns;
    joined.chain_ns = turns ? joined.chain_ns + turns * cost->chain_ns : cb_larger(joined.chain_ns, cost->chain_ns);
    joined.tail_ns = turns ? joined.tail_ns + cost->tail_ns : cb_larger(joined.tail_ns, cost->tail_ns);
  }
  joined.stream_percent = at_full_rate ? joined.bytes * 100 / at_full_rate : 0;
  estimate(&joined, &plan->target);
  return joined;
}

int64_t cb_cost_launched_ns(const struct cb_plan *plan, int launches, int64_t gpu_ns) {
  const int64_t launching = launches * plan->target.launch_ns;
  return cb_larger(launching, gpu_ns);
}

/* What a launch of regions costs: known for one of a single region. */
static struct cb_cost launch_cost(const struct cb_plan *plan, const struct cb_launch *launch) {
  const int first = launch->first_region;
  if (launch->regions == 1) return plan->regions[first].cost;
  return cb_cost_joined(plan, first, plan->regions[first + 1].joining);
}

/* Of two plans that reach the host's pace, the one that takes less of the GPU is cheaper. */
void cb_cost_plan(struct cb_plan *plan) {
  for (int i = 0; i < plan->launches_count; i++) {
    if (!plan->launches[i].regions || plan->launches[i].prepares) continue;
    const struct cb_cost cost = launch_cost(plan, &plan->launches[i]);
    plan->cost.stream_ns += cost.stream_ns;
    plan->cost.gather_ns += cost.gather_ns;
    plan->cost.bytes += cost.bytes;
    plan->cost.sectors += cost.sectors;
    plan->cost.work_ns += cost.work_ns;
    plan->cost.chain_ns += cost.chain_ns;
    plan->cost.tail_ns += cost.tail_ns;
    plan->cost.gpu_ns += cost.gpu_ns;
  }
  const int64_t on_gpu = plan->cost.gpu_ns, tie = on_gpu / CB_COST_TIE;
  plan->cost.ns = cb_cost_launched_ns(plan, plan->launches_count, on_gpu - tie) + tie;
}
