// SPDX-License-Identifier: Apache-2.0
/* Choices: see builder.h. The alternatives of a node are built one after the other for the same part, each behind the
 * regions that stand. The cheapest is moved aside and put back in the end. The others are released; what they have in
 * the plan's arena stays there. */
#include "analysis/plan/builder.h"

#include "analysis/plan/assignment.h"
#include "analysis/plan/cost.h"
#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

/* What building one alternative changes: all regions (the one before may have been joined), and the works, the numbers
 * of rows and the line from the first of its own on. */
struct built {
  int regions_count;
  struct cb_region regions[CB_MAX_REGIONS];
  struct cb_region_work works[CB_MAX_REGIONS];
  const struct cb_layout *layouts[CB_MAX_REGIONS];
  int rows_of[CB_MAX_REGIONS];
  int taken;
  struct cb_diag refusal;
  char *line; /* its end, from the node's place on */
  struct cb_cost cost;
  int64_t bytes;
};

struct choosing {
  struct cb_builder *builder;
  const struct cb_subtree *subtree;
  const struct cb_region_work *work;
  size_t line_at;
  struct built before, best; /* best.regions_count 0: there is none */
};

static void release_works(struct built *built, int from) {
  for (int r = from; r < built->regions_count; r++) cb_region_work_release(&built->works[r]);
  cb_free(built->line);
  *built = (struct built){0};
}

/* Takes a copy of the builder's state; the works from `from` on and the line are moved out of it. */
static void move_out(struct choosing *choosing, struct built *built, int from) {
  struct cb_builder *builder = choosing->builder;
  const struct cb_plan *plan = builder->plan;
  const int count = plan->regions_count;
  built->regions_count = count;
  memcpy(built->regions, plan->regions, sizeof built->regions);
  memcpy(built->rows_of, builder->rows_of, sizeof built->rows_of);
  for (int r = from; r < count; r++) {
    built->works[r] = builder->assignment->regions[r];
    built->layouts[r] = builder->assignment->layouts[r];
    builder->assignment->regions[r] = (struct cb_region_work){0};
  }
  built->taken = builder->taken;
  built->refusal = builder->refusal;
  built->cost = cb_cost_so_far(plan);
  built->bytes = cb_plan_bytes(plan);
}

/* The builder's state is that one again, but for its line. */
static void put_back(struct choosing *choosing, const struct built *built, int from) {
  struct cb_builder *builder = choosing->builder;
  builder->plan->regions_count = builder->assignment->regions_count = built->regions_count;
  memcpy(builder->plan->regions, built->regions, sizeof built->regions);
  memcpy(builder->rows_of, built->rows_of, sizeof built->rows_of);
  for (int r = from; r < built->regions_count; r++) {
    builder->assignment->regions[r] = built->works[r];
    builder->assignment->layouts[r] = built->layouts[r];
  }
  builder->taken = built->taken;
  builder->refusal = built->refusal;
}

static void drop_attempt(struct choosing *choosing) {
  struct built attempt = {0};
  move_out(choosing, &attempt, choosing->before.regions_count);
  release_works(&attempt, choosing->before.regions_count);
}

/* The least that the plan can take with this alternative: regions that share a launch take no less than each of them,
 * those that do not take the sum. */
static int is_pruned(const struct choosing *choosing, const struct cb_node *node) {
  const struct cb_plan *plan = choosing->builder->plan;
  const int64_t before_ns = choosing->before.cost.gpu_ns;
  if (!choosing->best.regions_count || !cb_search_may_prune(choosing->subtree->options)) return 0;
  const struct cb_types types = {plan->matrix_type, plan->vector_type, plan->sum_type};
  const int64_t least = cb_node_least_ns(node, choosing->work->part.csr, &plan->target, types);
  const int may_join = choosing->subtree->options->fuse != CB_OFF;
  return (may_join ? cb_larger(before_ns, least) : before_ns + least) >= choosing->best.cost.ns;
}

/* The alternative that stands becomes the best one, or goes. */
static enum cb_status judge(struct choosing *choosing, struct cb_diag *diag) {
  const int from = choosing->before.regions_count;
  struct cb_text *line = &choosing->builder->line;
  struct built attempt = {0};
  move_out(choosing, &attempt, from);
  const struct built *best = &choosing->best;
  if (best->regions_count && !cb_search_is_better(&attempt.cost, attempt.bytes, &best->cost, best->bytes)) {
    release_works(&attempt, from);
    return CB_OK;
  }
  release_works(&choosing->best, from);
  choosing->best = attempt;
  if (line->failed) return cb_fail_memory(diag, "plan line", 0);
  struct cb_text end = {0};
  cb_text_add_string(&end, cb_text_string(line) + choosing->line_at);
  choosing->best.line = cb_text_detach(&end);
  return choosing->best.line ? CB_OK : cb_fail_memory(diag, "plan line", 0);
}

static enum cb_status try_alternative(struct choosing *choosing, const struct cb_node *node, struct cb_diag *diag) {
  struct cb_builder *builder = choosing->builder;
  struct cb_region_work borrowed = {.part = choosing->work->part};
  enum cb_status s = cb_build_node(builder, node, choosing->subtree, &borrowed, diag);
  cb_region_work_release(&borrowed);
  if (s) drop_attempt(choosing);
  else s = judge(choosing, diag);
  put_back(choosing, &choosing->before, choosing->before.regions_count);
  cb_build_cut_line(&builder->line, choosing->line_at);
  return s;
}

static enum cb_status try_all(struct choosing *choosing, const struct cb_node *node, struct cb_diag *diag) {
  enum cb_status s = CB_OK, refused = CB_ERR_UNSUPPORTED;
  for (int i = 0; node->choices[i] && !s; i++) {
    if (is_pruned(choosing, node->choices[i])) continue;
    s = try_alternative(choosing, node->choices[i], diag);
    if (!cb_is_refusal(s)) continue;
    refused = s;
    s = CB_OK;
  }
  if (!s && !choosing->best.regions_count) return refused; /* with what the last one said */
  if (!s) *diag = (struct cb_diag){0};
  return s;
}

/* Whether the region was planned for the part itself, and so needs what the part owns: its matrix, unless that is the
 * whole one, or what a split found out about it. */
static int needs_part(const struct cb_region_work *region, const struct cb_region_work *work) {
  if (work->part_csr) return region->part.csr == work->part_csr;
  return work->part_found.data && region->part.found.data == work->part_found.data;
}

/* What a region multiplies, it keeps alive. */
static void hand_over(struct cb_builder *builder, int from, struct cb_region_work *work) {
  for (int r = from; r < builder->plan->regions_count; r++) {
    struct cb_region_work *region = &builder->assignment->regions[r];
    if (!needs_part(region, work)) continue;
    region->part_csr = work->part_csr;
    region->part_origin = work->part_origin;
    region->part_origin64 = work->part_origin64;
    region->part_found = work->part_found;
    *work = (struct cb_region_work){0};
  }
}

static void add_names(struct cb_text *line, const struct cb_node *node) {
  cb_text_add_string(line, " (from");
  for (int i = 0; node->choices[i]; i++) {
    const struct cb_node *choice = node->choices[i];
    cb_text_add(line, " %s", choice->layout ? choice->layout : choice->split ? choice->split->name : "choose");
  }
  cb_text_add_string(line, ")");
}

enum cb_status cb_build_choice(struct cb_builder *builder, const struct cb_node *node,
                               const struct cb_subtree *subtree, struct cb_region_work *work, struct cb_diag *diag) {
  struct choosing *choosing = cb_calloc(1, sizeof *choosing);
  if (!choosing) return cb_fail_memory(diag, "choices", sizeof *choosing);
  *choosing = (struct choosing){.builder = builder, .subtree = subtree, .work = work};
  const int from = builder->plan->regions_count;
  cb_text_add_string(&builder->line, " (choose");
  cb_build_settings_fact(&builder->line, node);
  add_names(&builder->line, node);
  choosing->line_at = builder->line.length;
  move_out(choosing, &choosing->before, from);
  const enum cb_status s = try_all(choosing, node, diag);
  if (!s) {
    put_back(choosing, &choosing->best, from);
    cb_text_add(&builder->line, "%s)", choosing->best.line);
    hand_over(builder, from, work);
    choosing->best.regions_count = from; /* the builder has its works now */
  }
  release_works(&choosing->best, from);
  cb_free(choosing);
  return s;
}
