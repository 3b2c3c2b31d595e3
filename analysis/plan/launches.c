// SPDX-License-Identifier: Apache-2.0
/* The launches of a plan, and its scratch: see builder.h. */
#include "analysis/plan/builder.h"
#include "base/integers.h"

enum { SCALE_ROWS_PER_BLOCK = 1024 };

static void add_launch(struct cb_plan *plan, struct cb_launch launch) {
  if (launch.blocks) plan->launches[plan->launches_count++] = launch;
}

/* A region joins the launch of the one before it, which then has registers for the needier one. */
static void join_launch(const struct cb_plan *plan, struct cb_launch *launch, const struct cb_region *region) {
  launch->regions++;
  if (region->joining == CB_IN_TURN) {
    launch->block_rows = cb_larger(region[-1].block_rows, region->block_rows);
    launch->blocks = cb_divide_up(plan->rows, launch->block_rows);
  } else {
    launch->blocks += region->blocks;
  }
  if (region->blocks_per_sm < launch->blocks_per_sm) launch->blocks_per_sm = region->blocks_per_sm; /* 0: none asked */
}

/* One launch per region, after its preparing one, unless the region joins the one before it: the first region writes
 * y, those of later launches add to it. A first region that adds with atomics needs y scaled before. */
enum cb_status cb_build_launches(struct cb_plan *plan, struct cb_diag *diag) {
  plan->launches = cb_arena_alloc(&plan->arena, 2 * (size_t)plan->regions_count + 1, sizeof *plan->launches);
  if (!plan->launches) return cb_fail_memory(diag, "launches", 0);
  for (int i = 0; i < plan->regions_count; i++) {
    struct cb_region *region = &plan->regions[i];
    if (!i && region->commit == CB_COMMIT_ATOMIC && plan->form != CB_FORM_ADD)
      add_launch(plan, (struct cb_launch){.piece = "scale_y",
                                          .blocks = (plan->rows + SCALE_ROWS_PER_BLOCK - 1) / SCALE_ROWS_PER_BLOCK,
                                          .threads = CB_PLAIN_THREADS});
    region->first_carry_sum = plan->carry_sums;
    region->first_carry_counter = plan->carry_counters;
    plan->carry_sums += region->carry_slots * region->carry_width;
    plan->carry_counters += region->carry_counters;
    if (region->joining != CB_APART) {
      join_launch(plan, &plan->launches[plan->launches_count - 1], region);
      continue;
    }
    add_launch(plan, (struct cb_launch){.prepares = 1,
                                        .first_region = i,
                                        .regions = 1,
                                        .blocks = region->prepare_blocks,
                                        .threads = CB_PLAIN_THREADS});
    add_launch(plan, (struct cb_launch){.first_region = i,
                                        .regions = 1,
                                        .blocks = region->blocks,
                                        .threads = (int)cb_region_threads(region),
                                        .blocks_per_sm = region->blocks_per_sm,
                                        .dynamic_shared = region->dynamic_shared});
  }
  return CB_OK;
}
