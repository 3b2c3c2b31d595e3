// SPDX-License-Identifier: Apache-2.0
/* What the files that build a plan share. They run in this order:
 *
 *   search.c    which recipes are built, and which of their plans is kept
 *   builder.c   the frame of a plan, and its end
 *   tree.c      walks a recipe's tree: splits divide the nonzeros, and each leaf's layout plans a region of its part
 *   choose.c    builds the alternatives of a choice, and keeps the cheapest
 *   joining.c   which regions share a launch
 *   launches.c  the launches, and the scratch that regions need
 *   residency.c what L2 shall keep for the next product
 *   room.c      by several vectors: how many thread blocks a multiprocessor shall hold, and will
 *   cost.c      what the plan is predicted to take
 *   check.c     whether all of it holds together */
#ifndef CBGEN_ANALYSIS_PLAN_BUILDER_H
#define CBGEN_ANALYSIS_PLAN_BUILDER_H

#include "analysis/plan/recipe.h"

enum {
  CB_PLAIN_THREADS = 256, /* of a thread block, where a region asks for nothing else */
  CB_MAX_REGIONS = 16
};

/* What the walk over the recipe carries along. */
struct cb_builder {
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  const double *values; /* of the matrix */
  int rows_of[CB_MAX_REGIONS]; /* cb_subtree.rows of each region's */
  int last_rows;               /* the last such number that was given */
  int taken;              /* a split has taken something for a part other than its last */
  struct cb_diag refusal; /* the first split that refused */
  struct cb_text line;
};

/* What a node of the tree is told by those above it. */
struct cb_subtree {
  const struct cb_options *options;
  enum cb_commit commit;    /* of the one region in it that writes: FINAL or OWN; ADD: none of it does */
  const uint32_t *own_rows; /* that it may write; NULL: all */
  int rows;                 /* these rows' number: sums of one row go on only between regions with the same */
  int more_follow;          /* nonzeros with these rows come behind it, so that another region may join its last one */
};

static inline int64_t cb_region_threads(const struct cb_region *region) {
  return region->threads ? region->threads : CB_PLAIN_THREADS;
}

/* Builds the plan of one recipe that has a tree. On failure both are as they were. */
enum cb_status cb_build_recipe(struct cb_plan **plan, struct cb_assignment **assignment,
                               const struct cb_recipe *recipe, const struct cb_csr *csr,
                               const struct cb_target *target, const struct cb_options *options, struct cb_diag *diag);

/* Builds the regions of a node for the part that `work` brings; what it owns may be taken over. */
enum cb_status cb_build_node(struct cb_builder *builder, const struct cb_node *node, const struct cb_subtree *subtree,
                             struct cb_region_work *work, struct cb_diag *diag);

/* The same for a node with choices. */
enum cb_status cb_build_choice(struct cb_builder *builder, const struct cb_node *node,
                               const struct cb_subtree *subtree, struct cb_region_work *work, struct cb_diag *diag);

/* Sets each region's `stream`. */
void cb_plan_residency(struct cb_plan *plan, const struct cb_options *options);

/* The node's settings as a fact of the plan's line; nothing without any. */
void cb_build_settings_fact(struct cb_text *line, const struct cb_node *node);

/* Cuts the line back to `length`. */
void cb_build_cut_line(struct cb_text *line, size_t length);

/* Rows of a thread block of the launch that ends with the last region, if the next region for the rows of that number
 * may join it in turn; else 0. */
int64_t cb_build_joinable_rows(const struct cb_builder *builder, const struct cb_subtree *subtree);

/* Decides whether the last region joins the launch of the one before it, and how. */
void cb_build_joining(struct cb_builder *builder, const struct cb_subtree *subtree);

/* Adds the launches of all regions, and places their scratch. */
enum cb_status cb_build_launches(struct cb_plan *plan, struct cb_diag *diag);

/* How the kernels for several vectors deal them out, once there are launches. */
void cb_share_vectors(struct cb_plan *plan, const struct cb_options *options);

/* No plan of the node for these nonzeros is predicted to take less; 0: unknown. */
int64_t cb_node_least_ns(const struct cb_node *node, const struct cb_csr *csr, const struct cb_target *target,
                         struct cb_types types);

/* Whether bounds such as that one may save planning what cannot win. */
int cb_search_may_prune(const struct cb_options *options);

/* Whether a plan (or what stands of one) that costs and stores this is better than the best one so far. */
int cb_search_is_better(const struct cb_cost *cost, int64_t bytes, const struct cb_cost *best, int64_t best_bytes);

/* A recipe or a choice may refuse a matrix; any other failure ends the build. */
static inline int cb_is_refusal(enum cb_status s) { return s == CB_ERR_LIMIT || s == CB_ERR_UNSUPPORTED; }

#endif
