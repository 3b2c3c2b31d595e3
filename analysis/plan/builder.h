// SPDX-License-Identifier: Apache-2.0
/* What the files that build a plan share; nothing else includes it. They run in this order:
 *
 *   search.c    which recipes are built, and which of their plans is kept
 *   builder.c   walks a recipe's tree: splits divide the nonzeros, and each leaf's layout plans a region of its part
 *   joining.c   which regions of a split share a launch
 *   launches.c  the launches, and the scratch that regions need
 *   cost.c      what the plan is predicted to take
 *   check.c     whether all of it holds together */
#ifndef CBGEN_ANALYSIS_PLAN_BUILDER_H
#define CBGEN_ANALYSIS_PLAN_BUILDER_H

#include "analysis/plan/recipe.h"

enum { CB_PLAIN_THREADS = 256 }; /* of a thread block, where a region asks for nothing else */

/* What the walk over the recipe carries along. */
struct cb_builder {
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  const struct cb_options *options;
  const double *values; /* of the matrix */
  int joins;            /* the next region comes from the same split as the one before it */
  int may_be_joined;    /* and so will the one behind it */
  const uint32_t *own_rows; /* of the next region; NULL: all */
  struct cb_text line;
};

static inline int64_t cb_region_threads(const struct cb_region *region) {
  return region->threads ? region->threads : CB_PLAIN_THREADS;
}

/* Builds the plan of one recipe that has a tree. On failure both are as they were. */
enum cb_status cb_build_recipe(struct cb_plan **plan, struct cb_assignment **assignment,
                               const struct cb_recipe *recipe, const struct cb_csr *csr,
                               const struct cb_target *target, const struct cb_options *options, struct cb_diag *diag);

/* Decides whether region `first` and the next one, the parts of a split, share a launch, and joins them. The decision
 * goes into the plan's line at `at`, behind the split's facts. */
void cb_build_joining(struct cb_builder *builder, int first, size_t at);

/* Adds the launches of all regions, and places their scratch. */
enum cb_status cb_build_launches(struct cb_plan *plan, struct cb_diag *diag);

#endif
