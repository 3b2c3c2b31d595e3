// SPDX-License-Identifier: Apache-2.0
/* The frame of a plan: what stands before the walk over the recipe's tree, and behind it launches, scratch, cost, the
 * line and the hash. The plan's self-check closes the build. See builder.h.
 */
#include "analysis/plan/builder.h"

#include "analysis/plan/assignment.h"
#include "analysis/plan/cost.h"
#include "base/memory.h"

/* What of the options holds for the whole plan. */
static void note_options(struct cb_plan *plan, const struct cb_options *options) {
  const struct cb_types types = cb_precision_types((enum cb_precision)options->type);
  plan->matrix_type = types.matrix;
  plan->vector_type = types.vector;
  plan->sum_type = types.sum;
  plan->form = (enum cb_form)options->form;
  plan->semiring = (enum cb_semiring)options->semiring;
  plan->conjugated = options->conjugate == CB_ON && cb_type_is_complex(types.matrix);
  plan->atomics = options->atomics == CB_ON;
  plan->commits_once = options->commit == CB_COMMITS_ONCE || cb_rounds_y(types.vector, types.sum);
  plan->symmetry = (int)options->symmetric;
  plan->values_fixed = options->values == CB_VALUES_FIXED;
  plan->index_limit = options->index_limit;
  plan->vectors = cb_options_vectors(options);
}

/* The epilogue, in the form that is part of the plan. It takes the place of y, once for each row. */
static enum cb_status note_epilogue(struct cb_plan *plan, const struct cb_options *options, struct cb_diag *diag) {
  struct cb_statements *statements;
  struct cb_text text = {0};
  if (!options->epilogue || !*options->epilogue) return CB_OK;
  enum cb_status s = cb_statements_parse(&statements, options->epilogue, "epilogue", 1, diag);
  if (s) return s;
  cb_statements_print(&text, statements);
  if (!text.failed) plan->epilogue = cb_arena_string(&plan->arena, cb_text_string(&text));
  plan->statements = cb_arena_copy(&plan->arena, statements, 1, sizeof *statements);
  plan->form = CB_FORM_AX;
  plan->commits_once = 1;
  if (plan->vectors > 1 && plan->epilogue)
    s = cb_fail(diag, CB_ERR_ARGUMENT, "an epilogue takes one vector: option 'vectors' must be 1");
  if (!s && plan->matrix_type == CB_SPLIT && plan->epilogue)
    s = cb_fail(diag, CB_ERR_UNSUPPORTED, "an epilogue takes values in one part: option 'type' cannot be split-f64");
  cb_text_release(&text);
  cb_free(statements);
  if (s) return s;
  return plan->epilogue && plan->statements ? CB_OK : cb_fail_memory(diag, "epilogue", sizeof *statements);
}

static struct cb_assignment *make_assignment(const struct cb_csr *csr, const struct cb_options *options) {
  struct cb_assignment *assignment = cb_calloc(1, sizeof *assignment);
  if (!assignment) return NULL;
  assignment->nonzeros = csr->nnz;
  assignment->csr = csr;
  assignment->wide = csr->nnz >= UINT32_MAX || (csr->nnz > options->index_limit && csr->nnz <= INT32_MAX);
  assignment->regions = cb_calloc(CB_MAX_REGIONS, sizeof *assignment->regions);
  assignment->layouts = cb_calloc(CB_MAX_REGIONS, sizeof *assignment->layouts);
  if (assignment->regions && assignment->layouts) return assignment;
  cb_assignment_free(assignment);
  return NULL;
}

static enum cb_status start(struct cb_builder *builder, const struct cb_csr *csr, const struct cb_recipe *recipe,
                            const struct cb_target *target, const struct cb_options *options, struct cb_diag *diag) {
  struct cb_plan *plan = builder->plan = cb_calloc(1, sizeof *plan);
  builder->assignment = make_assignment(csr, options);
  if (plan) plan->regions = cb_arena_alloc(&plan->arena, CB_MAX_REGIONS, sizeof *plan->regions);
  if (!plan || !builder->assignment || plan->arena.failed) return cb_fail_memory(diag, "plan", sizeof *plan);
  plan->recipe = recipe->name;
  plan->rows = csr->rows;
  plan->cols = csr->cols;
  plan->nnz = csr->nnz;
  plan->target = *target;
  note_options(plan, options);
  return note_epilogue(plan, options, diag);
}

static enum cb_status finish(struct cb_builder *builder, const struct cb_options *options, struct cb_diag *diag) {
  struct cb_plan *plan = builder->plan;
  struct cb_text json = {0};
  cb_text_add(&builder->line, ")");
  if (!builder->line.failed) plan->line = cb_arena_string(&plan->arena, cb_text_string(&builder->line));
  if (!plan->line) return cb_fail_memory(diag, "plan line", 0);
  enum cb_status s = cb_build_launches(plan, diag);
  if (!s) cb_share_vectors(plan, options);
  if (!s) cb_cost_plan(plan);
  if (!s) cb_plan_residency(plan, options);
  if (!s) s = cb_plan_json(plan, &json, diag);
  if (!s) plan->hash = cb_hash_bytes(cb_text_string(&json), json.length);
  cb_text_release(&json);
  if (!s) s = cb_plan_check(plan, diag);
  return s;
}

/* The recipe's tree, for the whole matrix. */
static enum cb_status build_tree(struct cb_builder *builder, const struct cb_csr *csr, const struct cb_recipe *recipe,
                                 const struct cb_options *options, struct cb_diag *diag) {
  const struct cb_subtree whole = {.options = options, .commit = CB_COMMIT_FINAL};
  struct cb_region_work work = {.part = {.csr = csr}};
  cb_text_add(&builder->line, "(spmv");
  if (options->semiring != CB_PLUS_TIMES)
    cb_text_add(&builder->line, " (semiring %s)", cb_semiring_names[options->semiring]);
  if (builder->plan->conjugated) cb_text_add_string(&builder->line, " (conjugate on)");
  if (builder->plan->vectors > 1) cb_text_add(&builder->line, " (vectors %d)", builder->plan->vectors);
  if (!csr->rows) {
    cb_text_add(&builder->line, " (empty)");
    return CB_OK;
  }
  const enum cb_status s = cb_build_node(builder, recipe->root, &whole, &work, diag);
  cb_region_work_release(&work);
  if (s || builder->taken || !builder->refusal.status) return s;
  *diag = builder->refusal;
  return diag->status;
}

enum cb_status cb_build_recipe(struct cb_plan **plan, struct cb_assignment **assignment,
                               const struct cb_recipe *recipe, const struct cb_csr *csr,
                               const struct cb_target *target, const struct cb_options *options, struct cb_diag *diag) {
  struct cb_builder builder = {.values = csr->values};
  enum cb_status s = start(&builder, csr, recipe, target, options, diag);
  if (!s) s = build_tree(&builder, csr, recipe, options, diag);
  if (!s) s = finish(&builder, options, diag);
  cb_text_release(&builder.line);
  if (s) {
    cb_assignment_free(builder.assignment);
    cb_plan_free(builder.plan);
    return s;
  }
  *plan = builder.plan;
  *assignment = builder.assignment;
  return CB_OK;
}
