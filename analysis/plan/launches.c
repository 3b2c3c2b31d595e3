// SPDX-License-Identifier: Apache-2.0
/* The launches of a plan, and its scratch: see builder.h. */
#include "analysis/plan/builder.h"
#include "analysis/plan/cost.h"
#include "base/integers.h"

enum { SCALE_ROWS_PER_BLOCK = CB_REDUCE_ROWS };

static void add_launch(struct cb_plan *plan, struct cb_launch launch) {
  if (launch.blocks) plan->launches[plan->launches_count++] = launch;
}

/* The regions of a launch, which then has registers for the neediest one. */
static struct cb_launch launch_of(const struct cb_plan *plan, int first, int regions) {
  const struct cb_region *one = &plan->regions[first];
  struct cb_launch launch = {.first_region = first,
                             .regions = regions,
                             .threads = (int)cb_region_threads(one),
                             .blocks_per_sm = one->blocks_per_sm,
                             .dynamic_shared = one->dynamic_shared};
  const int in_turn = regions > 1 && one[1].joining == CB_IN_TURN;
  for (int i = 0; i < regions; i++) {
    launch.blocks += one[i].blocks;
    if (in_turn) launch.block_rows = cb_larger(launch.block_rows, one[i].block_rows);
    if (one[i].blocks_per_sm < launch.blocks_per_sm) launch.blocks_per_sm = one[i].blocks_per_sm; /* 0: none asked */
  }
  if (in_turn) launch.blocks = cb_divide_up(plan->rows, launch.block_rows);
  return launch;
}

/* The launch of the regions from `first` on, between its preparing and its finishing one. */
static void add_regions(struct cb_plan *plan, int first) {
  add_launch(plan, (struct cb_launch){.prepares = 1,
                                      .first_region = first,
                                      .regions = 1,
                                      .blocks = plan->regions[first].prepare_blocks,
                                      .threads = CB_PLAIN_THREADS});
  add_launch(plan, launch_of(plan, first, cb_cost_group(plan, first)));
  add_launch(plan, (struct cb_launch){.prepares = 1,
                                      .finishes = 1,
                                      .first_region = first,
                                      .regions = 1,
                                      .blocks = plan->regions[first].finish_blocks,
                                      .threads = CB_PLAIN_THREADS});
}

/* Launches of regions that write, or of the others. */
static void add_groups(struct cb_plan *plan, int writing) {
  for (int first = 0; first < plan->regions_count; first += cb_cost_group(plan, first))
    if (cb_cost_group_writes(plan, first) == writing) add_regions(plan, first);
}

/* Sums of all rows, when several launches add to them and each row shall be written once. */
static void place_row_sums(struct cb_plan *plan) {
  if (!plan->commits_once || cb_plan_single_commit(plan)) return;
  plan->row_sums = 1;
  plan->first_row_sum = plan->carry_sums;
  plan->carry_sums += plan->rows;
  if (!plan->carry_counters) plan->carry_counters = 1;
}

static void place_carries(struct cb_plan *plan) {
  for (int i = 0; i < plan->regions_count; i++) {
    struct cb_region *region = &plan->regions[i];
    region->first_carry_sum = plan->carry_sums;
    region->first_carry_counter = plan->carry_counters;
    plan->carry_sums += region->carry_slots * region->carry_width;
    plan->carry_counters += region->carry_counters;
  }
  if (plan->carry_sums && !plan->carry_counters) plan->carry_counters = 1; /* scratch has both kinds, or none */
}

/* What each row gives to the epilogue's reductions, and what thread blocks make of that. */
static void place_terms(struct cb_plan *plan) {
  const int64_t results = plan->statements ? cb_statements_results(plan->statements) : 0;
  if (!results || !plan->rows) return;
  plan->first_term = plan->carry_sums;
  plan->reduce_counter = plan->carry_counters++;
  plan->carry_sums += results * (plan->rows + cb_divide_up(plan->rows, CB_REDUCE_ROWS));
}

/* A launch that passes over all rows. */
static void add_pass(struct cb_plan *plan, const char *body) {
  add_launch(plan, (struct cb_launch){.body = body,
                                      .blocks = cb_divide_up(plan->rows, SCALE_ROWS_PER_BLOCK),
                                      .threads = CB_PLAIN_THREADS});
}

/* Rows before all else: where nothing writes them, because a region that should do it adds with atomics; and sums,
 * where the product adds to y, since layouts then leave out rows without nonzeros. */
static void add_first_pass(struct cb_plan *plan) {
  const int adds = plan->form == CB_FORM_ADD;
  int writes = 0;
  for (int first = 0; first < plan->regions_count; first += cb_cost_group(plan, first))
    writes |= cb_cost_group_writes(plan, first);
  if (plan->row_sums && (adds || !writes)) add_pass(plan, "clear_sums");
  if (!plan->row_sums && !adds && !writes && plan->regions_count) add_pass(plan, "scale_y");
}

/* First those that write y, then those that add to it. */
enum cb_status cb_build_launches(struct cb_plan *plan, struct cb_diag *diag) {
  plan->launches = cb_arena_alloc(&plan->arena, 3 * (size_t)plan->regions_count + 3, sizeof *plan->launches);
  if (!plan->launches) return cb_fail_memory(diag, "launches", 0);
  place_carries(plan);
  place_row_sums(plan);
  place_terms(plan);
  add_first_pass(plan);
  add_groups(plan, 1);
  add_groups(plan, 0);
  if (plan->row_sums) add_pass(plan, "commit_sums");
  if (plan->statements && cb_statements_results(plan->statements)) add_pass(plan, "reduce_terms");
  return CB_OK;
}
