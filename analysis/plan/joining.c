// SPDX-License-Identifier: Apache-2.0
/* Which regions share a launch: see builder.h. */
#include "analysis/plan/builder.h"
#include "analysis/plan/cost.h"
#include "base/integers.h"

#include <string.h>

/* Whether the rows of thread blocks fit together, so that sums can go from one region to the other in shared memory. */
static int rows_fit(const struct cb_region *first, const struct cb_region *second) {
  enum { MOST_ROWS = 2048 };
  const int64_t rows = cb_larger(first->block_rows, second->block_rows);
  return first->block_rows && second->block_rows && rows <= MOST_ROWS && rows % first->block_rows == 0 &&
         rows % second->block_rows == 0;
}

/* How both could share a launch. What a region asks of its launch would have to suit the other one. */
static enum cb_joining can_join(const struct cb_region *first, const struct cb_region *second) {
  enum { STATIC_SHARED = 48 << 10 };
  if (first->static_shared + second->static_shared > STATIC_SHARED) return CB_APART;
  if (cb_region_threads(first) != cb_region_threads(second) || first->commit != CB_COMMIT_FINAL) return CB_APART;
  if (first->dynamic_shared || second->dynamic_shared || first->prepare_blocks || second->prepare_blocks)
    return CB_APART;
  if (second->commit == CB_COMMIT_OWN) return CB_BESIDE;
  return second->commit == CB_COMMIT_ADD && rows_fit(first, second) ? CB_IN_TURN : CB_APART;
}

static enum cb_joining choose_joining(const struct cb_builder *builder, int first) {
  const struct cb_plan *plan = builder->plan;
  const struct cb_region *regions = plan->regions + first;
  const enum cb_joining joining = can_join(&regions[0], &regions[1]);
  if (builder->options->fuse == CB_OFF || joining == CB_APART) return CB_APART;
  const int64_t together = cb_cost_launched_ns(plan, 1, cb_cost_joined(plan, first, joining).ns);
  const int64_t apart = cb_cost_launched_ns(plan, 2, regions[0].cost.ns + regions[1].cost.ns);
  return builder->options->fuse == CB_ON || together <= apart ? joining : CB_APART;
}

/* Returns what the plan's line says of it. */
static const char *fuse(struct cb_plan *plan, int first, enum cb_joining joining) {
  static const char *const facts[] = {
      [CB_APART] = "", [CB_IN_TURN] = " (fused in-turn)", [CB_BESIDE] = " (fused beside)"};
  struct cb_region *one = &plan->regions[first], *other = &plan->regions[first + 1];
  other->joining = joining;
  if (joining == CB_BESIDE) one->first_block = other->blocks;
  if (joining == CB_IN_TURN) {
    one->commit = CB_COMMIT_KEEP;
    one->static_shared += cb_larger(one->block_rows, other->block_rows) * (int64_t)cb_type_size(plan->sum_type);
    other->commit = CB_COMMIT_KEPT;
  }
  return facts[joining];
}

static void insert(struct cb_text *text, size_t at, const char *inserted) {
  const size_t length = strlen(inserted);
  cb_text_add_string(text, inserted);
  if (text->failed) return;
  memmove(text->bytes + at + length, text->bytes + at, text->length - length - at);
  memcpy(text->bytes + at, inserted, length);
}

void cb_build_joining(struct cb_builder *builder, int first, size_t at) {
  insert(&builder->line, at, fuse(builder->plan, first, choose_joining(builder, first)));
}
