// SPDX-License-Identifier: Apache-2.0
/* Which regions share a launch: see builder.h. It is decided region by region, in the order in which they are planned:
 * the last one joins the launch of the one before it where it can and the cost model gains by it, or has its own. */
#include "analysis/plan/builder.h"
#include "analysis/plan/cost.h"
#include "base/integers.h"

/* The launch that ends with the last region but one. */
struct group {
  int first, regions;
  enum cb_joining joining; /* of its regions */
  int64_t rows;            /* of a thread block, when they are in turn or a single one; 0: it is not that simple */
};

/* Of the `count` regions that stand first. */
static struct group last_group(const struct cb_plan *plan, int count) {
  struct group group = {.first = count - 1, .regions = 1};
  while (group.first && plan->regions[group.first].joining != CB_SEPARATE) group.first--;
  group.regions = count - group.first;
  if (group.regions > 1) group.joining = plan->regions[count - 1].joining;
  for (int r = group.first; r < count && group.joining != CB_BESIDE; r++)
    group.rows = cb_larger(group.rows, plan->regions[r].block_rows);
  return group;
}

/* What one region asks of its launch would have to suit the others. */
static int is_plain(const struct cb_region *region) {
  return !region->dynamic_shared && !region->prepare_blocks && !region->finish_blocks;
}

static int writes(const struct cb_region *region) {
  return region->commit == CB_COMMIT_FINAL || region->commit == CB_COMMIT_OWN;
}

/* Whether another region could go on with the sums of the last one of the group: it has those of all its rows. */
static int may_keep(const struct cb_plan *plan, const struct group *group) {
  const struct cb_region *last = &plan->regions[group->first + group->regions - 1];
  if (group->joining == CB_BESIDE || !last->block_rows || last->owns_rows) return 0;
  return last->commit != CB_COMMIT_ATOMIC && is_plain(last);
}

int64_t cb_build_joinable_rows(const struct cb_builder *builder, const struct cb_subtree *subtree) {
  const struct cb_plan *plan = builder->plan;
  const int count = plan->regions_count;
  if (!count || subtree->options->fuse == CB_OFF || builder->rows_of[count - 1] != subtree->rows) return 0;
  const struct group group = last_group(plan, count);
  return may_keep(plan, &group) ? group.rows : 0;
}

/* Whether the rows of thread blocks fit together, so that sums can go from one region to the other in shared memory. */
static int rows_fit(const struct group *group, const struct cb_region *region) {
  enum { MOST_ROWS = 2048 };
  const int64_t rows = cb_larger(group->rows, region->block_rows);
  return region->block_rows && rows <= MOST_ROWS && rows % group->rows == 0 && rows % region->block_rows == 0;
}

/* Of the sums that regions in turn keep. */
static int64_t kept_bytes(const struct cb_plan *plan, int64_t rows) {
  return rows * (int64_t)cb_type_size(plan->sum_type);
}

static int64_t static_shared(const struct cb_plan *plan, const struct group *group) {
  int64_t bytes = 0;
  for (int r = group->first; r < group->first + group->regions; r++) bytes += plan->regions[r].static_shared;
  return bytes;
}

static int can_follow(const struct cb_builder *builder, const struct group *group, const struct cb_region *region) {
  const struct cb_plan *plan = builder->plan;
  const int number = (int)(region - plan->regions);
  if (builder->rows_of[number] != builder->rows_of[number - 1] || !may_keep(plan, group)) return 0;
  if (!writes(region) && region->commit != CB_COMMIT_ADD) return 0;
  if (!rows_fit(group, region)) return 0;
  const int64_t rows = cb_larger(group->rows, region->block_rows);
  const int64_t kept = group->joining == CB_IN_TURN ? kept_bytes(plan, group->rows) : 0;
  return static_shared(plan, group) - kept + kept_bytes(plan, rows) + region->static_shared <= CB_STATIC_SHARED;
}

static int can_stand_beside(const struct cb_plan *plan, const struct group *group, const struct cb_region *region) {
  const struct cb_region *last = region - 1;
  if (group->joining == CB_IN_TURN || !last->owns_rows || !region->owns_rows) return 0;
  return writes(last) && writes(region) && static_shared(plan, group) + region->static_shared <= CB_STATIC_SHARED;
}

/* How the last region could share the group's launch. */
static enum cb_joining can_join(const struct cb_builder *builder, const struct group *group,
                                const struct cb_region *region) {
  if (cb_region_threads(&region[-1]) != cb_region_threads(region) || !is_plain(&region[-1]) || !is_plain(region))
    return CB_SEPARATE;
  if (can_stand_beside(builder->plan, group, region)) return CB_BESIDE;
  return can_follow(builder, group, region) ? CB_IN_TURN : CB_SEPARATE;
}

static int64_t launched_ns(const struct cb_plan *plan) {
  return cb_cost_launched_ns(plan, cb_cost_launches(plan), cb_cost_so_far(plan).gpu_ns);
}

static enum cb_joining choose_joining(const struct cb_builder *builder, const struct cb_options *options,
                                      const struct group *group) {
  struct cb_plan *plan = builder->plan;
  struct cb_region *region = &plan->regions[group->first + group->regions];
  const enum cb_joining joining = can_join(builder, group, region);
  if (options->fuse == CB_OFF || joining == CB_SEPARATE) return CB_SEPARATE;
  if (options->fuse == CB_ON) return joining;
  const int64_t separate = launched_ns(plan);
  region->joining = joining;
  const int64_t together = launched_ns(plan);
  region->joining = CB_SEPARATE;
  return together <= separate ? joining : CB_SEPARATE;
}

/* In turn: the first one keeps sums for all of them, the last one writes y or adds to it. */
static void follow(struct cb_plan *plan, const struct group *group, struct cb_region *region) {
  struct cb_region *first = &plan->regions[group->first], *last = region - 1;
  const int chained = group->regions > 1;
  const int final = writes(region) || writes(last) || last->commit == CB_COMMIT_KEPT;
  if (chained) first->static_shared -= kept_bytes(plan, group->rows);
  first->static_shared += kept_bytes(plan, cb_larger(group->rows, region->block_rows));
  last->commit = chained ? CB_COMMIT_KEPT_KEEP : CB_COMMIT_KEEP;
  region->commit = final ? CB_COMMIT_KEPT : CB_COMMIT_KEPT_ADD;
}

/* A later region has the thread blocks before: what is split off takes longer. */
static void stand_beside(struct cb_plan *plan, const struct group *group, const struct cb_region *region) {
  for (int r = group->first; r < group->first + group->regions; r++) plan->regions[r].first_block += region->blocks;
}

void cb_build_joining(struct cb_builder *builder, const struct cb_subtree *subtree) {
  struct cb_plan *plan = builder->plan;
  if (plan->regions_count < 2) return;
  const struct group group = last_group(plan, plan->regions_count - 1);
  struct cb_region *region = &plan->regions[plan->regions_count - 1];
  region->joining = choose_joining(builder, subtree->options, &group);
  if (region->joining == CB_IN_TURN) follow(plan, &group, region);
  if (region->joining == CB_BESIDE) stand_beside(plan, &group, region);
}
