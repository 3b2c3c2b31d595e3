// SPDX-License-Identifier: Apache-2.0
/* The cost model: see cost.h. */
#include "analysis/plan/cost.h"

#include "analysis/cost_figures.h"
#include "analysis/plan/room.h"
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

void cb_cost_estimate(struct cb_cost *cost, const struct cb_target *target) {
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
  cb_cost_estimate(&region->cost, &plan->target);
}

/* x and y count once, and each region streams at its own rate. In turn, chains follow one another, as often as a region
 * takes its turn. */
struct cb_cost cb_cost_joined(const struct cb_plan *plan, int first, int regions, enum cb_joining joining) {
  struct cb_cost joined = {.bytes = cb_cost_vector_bytes(plan)};
  int64_t at_full_rate = joined.bytes, rows = 0;
  for (int r = first; r < first + regions; r++) rows = cb_larger(rows, plan->regions[r].block_rows);
  for (int r = first; r < first + regions; r++) {
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
  cb_cost_estimate(&joined, &plan->target);
  return joined;
}

int64_t cb_cost_launched_ns(const struct cb_plan *plan, int launches, int64_t gpu_ns) {
  const int64_t launching = launches * plan->target.launch_ns;
  return cb_larger(launching, gpu_ns);
}

int cb_cost_group(const struct cb_plan *plan, int first) {
  int regions = 1;
  while (first + regions < plan->regions_count && plan->regions[first + regions].joining != CB_SEPARATE) regions++;
  return regions;
}

int cb_cost_group_writes(const struct cb_plan *plan, int first) {
  for (int r = first; r < first + cb_cost_group(plan, first); r++) {
    const enum cb_commit commit = plan->regions[r].commit;
    if (commit == CB_COMMIT_FINAL || commit == CB_COMMIT_OWN || commit == CB_COMMIT_KEPT) return 1;
  }
  return 0;
}

static void add_cost(struct cb_cost *sum, const struct cb_cost *cost) {
  sum->stream_ns += cost->stream_ns;
  sum->gather_ns += cost->gather_ns;
  sum->bytes += cost->bytes;
  sum->sectors += cost->sectors;
  sum->work_ns += cost->work_ns;
  sum->chain_ns += cost->chain_ns;
  sum->tail_ns += cost->tail_ns;
  sum->gpu_ns += cost->gpu_ns;
}

/* Launches that pass over the sums of all rows: the last one, which commits what several have added up, and where the
 * product adds to y, one that clears them. */
static int passes_over_sums(const struct cb_plan *plan) {
  if (!plan->commits_once) return 0;
  for (int first = 0; first < plan->regions_count; first += cb_cost_group(plan, first))
    if (!cb_cost_group_writes(plan, first)) return plan->form == CB_FORM_ADD ? 2 : 1;
  return 0;
}

/* The last one reads the sums and writes y; the first one is taken to be as long. */
static void add_passes(const struct cb_plan *plan, struct cb_cost *sum) {
  const int64_t row = (int64_t)cb_type_size(plan->sum_type) + (int64_t)cb_type_size(plan->vector_type);
  struct cb_cost pass = {.bytes = plan->rows * row};
  cb_cost_estimate(&pass, &plan->target);
  for (int i = passes_over_sums(plan); i > 0; i--) add_cost(sum, &pass);
}

int cb_cost_launches(const struct cb_plan *plan) {
  int launches = passes_over_sums(plan);
  for (int first = 0; first < plan->regions_count; first += cb_cost_group(plan, first))
    launches += 1 + (plan->regions[first].prepare_blocks > 0) + (plan->regions[first].finish_blocks > 0);
  return launches;
}

/* What `regions` in one launch cost: known for a single one. */
static struct cb_cost group_cost(const struct cb_plan *plan, int first, int regions) {
  if (regions == 1) return plan->regions[first].cost;
  return cb_cost_joined(plan, first, regions, plan->regions[first + 1].joining);
}

/* Of two plans that reach the host's pace, the one that takes less of the GPU is cheaper. */
static void add_pace(const struct cb_plan *plan, int launches, struct cb_cost *cost) {
  const int64_t tie = cost->gpu_ns / CB_COST_TIE;
  cost->ns = cb_cost_launched_ns(plan, launches, cost->gpu_ns - tie) + tie;
}

struct cb_cost cb_cost_so_far(const struct cb_plan *plan) {
  struct cb_cost sum = {0};
  for (int first = 0, regions; first < plan->regions_count; first += regions) {
    regions = cb_cost_group(plan, first);
    const struct cb_cost cost = group_cost(plan, first, regions);
    add_cost(&sum, &cost);
  }
  add_passes(plan, &sum);
  add_pace(plan, cb_cost_launches(plan), &sum);
  return sum;
}

/* What regions do for each further vector; and warps that wait as often as those that they share the vectors with. */
static int64_t further_work(const struct cb_plan *plan, const struct cb_vector_share *share) {
  int64_t work_ns = 0;
  for (int i = 0; i < plan->regions_count; i++) {
    work_ns += plan->regions[i].further_ns * (cb_share_vectors_of(share) - 1);
    if (share->sharing == CB_SHARING_WARPS) work_ns += plan->regions[i].cost.work_ns * (share->parts - 1);
  }
  return work_ns;
}

/* Turns follow one another. Else warps of few loads wait while nothing goes on: k = 8, power law 84 µs, road_USA-NY 20
 * by four threads each; 78 and 19 by this, 58 and 10 if gathers went on beside it. */
static void add_parts(const struct cb_plan *plan, const struct cb_vector_share *share, struct cb_cost *rest) {
  const int turns = share->sharing == CB_SHARING_TURNS;
  if (turns) rest->chain_ns = (share->parts - 1) * plan->cost.chain_ns;
  for (int i = 0; i < plan->regions_count; i++) {
    const struct cb_region *region = &plan->regions[i];
    rest->tail_ns += (share->parts - 1) * (turns ? region->turn_ns : region->wait_ns);
  }
}

/* Lines of L1 that a load of a warp asks for, by which each lane takes a piece of a row of X: at least as many as its
 * bytes fill. Rows of neighbouring lanes are side by side where they are neighbours; of others some are, and share a
 * line if they are short. Where warps share vectors, lanes of a row often have neighbouring columns. */
static int64_t lines_of_load(const struct cb_plan *plan, const struct cb_steps *steps,
                             const struct cb_vector_share *share, int64_t piece) {
  enum { LANES = 32, LINE = 128, OF_WARPS = 37 /* percent */ };
  const int64_t size = (int64_t)cb_type_size(plan->vector_type), warps = share->sharing == CB_SHARING_WARPS;
  const int64_t rows = LANES / (warps ? 1 : share->parts), of_row = cb_larger(LINE, cb_share_vectors_of(share) * size);
  const int64_t apart = cb_smaller(LINE, plan->vectors * size);
  const int64_t each = steps->neighbours || warps ? apart : (LINE + 2 * apart) / 3; /* bytes of a line */
  const int64_t lines = warps ? rows * each * OF_WARPS / 100 / LINE : rows * each / LINE * of_row / LINE;
  return cb_larger(lines, LANES * piece / LINE);
}

/* Those of its step: of the matrix, which come from L2 and take as long as several that are there, and of X for each
 * column that a lane multiplies, by as many loads as its vectors take. */
static int64_t lines_of_step(const struct cb_plan *plan, const struct cb_steps *steps,
                             const struct cb_vector_share *share) {
  enum { LOADED = 25 /* tenths */ };
  const int64_t bytes = share->each * (int64_t)cb_type_size(plan->vector_type);
  const int64_t piece = cb_smaller(bytes, CB_PIECE_BYTES);
  return steps->loads * LOADED / 10 + steps->columns * bytes / piece * lines_of_load(plan, steps, share, piece);
}

/* A multiprocessor looks up the lines of a launch's thread blocks one after the other. What they take lies half way
 * between the one that has most of them and the mean. And in as many rounds as it takes until all have found room, each
 * of them waits for its batches. */
static int64_t launch_steps_ns(const struct cb_plan *plan, const struct cb_launch *launch,
                               const struct cb_vector_share *share) {
  const int64_t blocks = launch->blocks * cb_share_blocks(share), processors = plan->target.multiprocessors;
  const int64_t most = cb_divide_up(blocks, processors), all = most * processors + cb_larger(blocks, processors);
  const int64_t rounds = cb_divide_up(most, cb_room_held(plan, share, launch));
  int64_t lines = 0, chain_ns = 0;
  for (int i = 0; i < launch->regions; i++) {
    const struct cb_region *region = &plan->regions[launch->first_region + i];
    lines += region->steps.steps * lines_of_step(plan, &region->steps, share);
    chain_ns = launch->block_rows ? chain_ns + region->cost.chain_ns : cb_larger(chain_ns, region->cost.chain_ns);
  }
  return all * (lines / launch->blocks) / (2 * processors) * CB_COST_LINE_PS / 1000 +
         rounds * chain_ns * CB_COST_STEPS_CHAIN_PERCENT / 100;
}

/* What it takes by lines of L1 and waits, while the matrix and the vectors stream; 0: not known. */
static int64_t steps_ns(const struct cb_plan *plan, const struct cb_vector_share *share) {
  enum { LEAST = 4 }; /* vectors: fewer were not measured */
  const int64_t bytes = cb_plan_bytes(plan) + cb_share_vectors_of(share) * cb_cost_vector_bytes(plan);
  int64_t ns = 0, start_ns = 0;
  if (share->sharing == CB_SHARING_TURNS || plan->vectors < LEAST) return 0;
  for (int i = 0; i < plan->regions_count; i++)
    if (!plan->regions[i].steps.steps) return 0;
  for (int i = 0; i < plan->launches_count; i++) {
    const struct cb_launch *launch = &plan->launches[i];
    if (!launch->regions || launch->prepares) continue;
    start_ns += CB_COST_STEPS_START_NS;
    ns += launch_steps_ns(plan, launch, share);
  }
  return (start_ns + together(ns, cb_cost_stream_ns(bytes, &plan->target))) * CB_COST_STEPS_PERCENT / 100;
}

/* A plan for several vectors at once costs what they take together: as many passes as kernels need, each with X and Y,
 * and wider gathers; or as many products. */
static void add_vectors(struct cb_plan *plan) {
  const struct cb_vector_share *share = &plan->shares[CB_VECTORS_PACKED];
  struct cb_cost *cost = &plan->cost;
  if (!share->each) {
    cost->gpu_ns *= plan->vectors;
    return;
  }
  if (plan->regions_count == 1 && plan->regions[0].several_ns) {
    cost->gpu_ns = plan->regions[0].several_ns;
    return;
  }
  const int64_t size = (int64_t)cb_type_size(plan->vector_type), once = cb_share_vectors_of(share);
  const int64_t sectors = cb_divide_up(once * size, 32); /* of an entry's vectors */
  const int64_t further = share->sharing == CB_SHARING_TURNS ? 100 : CB_COST_FURTHER_PERCENT;
  struct cb_cost rest = {.bytes = (once - 1) * (plan->rows + plan->cols) * size,
                         .sectors = (sectors - 1) * cost->sectors * further / 100,
                         .work_ns = further_work(plan, share)};
  add_parts(plan, share, &rest);
  cb_cost_estimate(&rest, &plan->target);
  cost->gpu_ns = cb_larger(cost->gpu_ns + rest.gpu_ns, steps_ns(plan, share)) * (plan->vectors / once);
}

void cb_cost_plan(struct cb_plan *plan) {
  for (int i = 0; i < plan->launches_count; i++) {
    const struct cb_launch *launch = &plan->launches[i];
    if (!launch->regions || launch->prepares) continue;
    const struct cb_cost cost = group_cost(plan, launch->first_region, launch->regions);
    add_cost(&plan->cost, &cost);
  }
  add_passes(plan, &plan->cost);
  if (plan->vectors > 1) add_vectors(plan);
  add_pace(plan, plan->launches_count, &plan->cost);
}
