// SPDX-License-Identifier: Apache-2.0
/* What a plan and its assignment own, and what may be asked of a plan: see plan.h. */
#include "analysis/plan.h"

#include "analysis/plan/assignment.h"
#include "base/memory.h"

void cb_region_work_release(struct cb_region_work *work) {
  if (work->state) cb_arena_release(work->state);
  cb_free(work->state);
  if (work->part_csr) cb_csr_release(work->part_csr);
  cb_free(work->part_csr);
  cb_free(work->part_origin);
  cb_free(work->part_origin64);
  if (work->part_found.release) work->part_found.release(work->part_found.data);
  *work = (struct cb_region_work){0};
}

void cb_assignment_free(struct cb_assignment *assignment) {
  if (!assignment) return;
  for (int i = 0; i < assignment->regions_count; i++)
    cb_region_work_release(&assignment->regions[i]);
  cb_free(assignment->regions);
  cb_free(assignment->layouts);
  cb_free(assignment);
}

void cb_plan_free(struct cb_plan *plan) {
  if (!plan) return;
  struct cb_arena arena = plan->arena;
  cb_arena_release(&arena);
  cb_free(plan);
}

int64_t cb_plan_bytes(const struct cb_plan *plan) {
  int64_t bytes = 0;
  for (int i = 0; i < plan->regions_count; i++) bytes += plan->regions[i].bytes;
  return bytes;
}

int cb_plan_single_commit(const struct cb_plan *plan) {
  for (int i = 0; i < plan->regions_count && !plan->row_sums; i++) {
    const enum cb_commit commit = plan->regions[i].commit;
    if (commit == CB_COMMIT_ADD || commit == CB_COMMIT_ATOMIC || commit == CB_COMMIT_KEPT_ADD) return 0;
  }
  return 1;
}

int cb_plan_values_fixed(const struct cb_plan *plan) { return plan->values_fixed; }

const char *cb_plan_types_name(const struct cb_plan *plan) {
  return cb_types_name((struct cb_types){plan->matrix_type, plan->vector_type, plan->sum_type});
}
