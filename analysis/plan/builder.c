// SPDX-License-Identifier: Apache-2.0
/* Building a plan: walk the recipe's tree, let each leaf's layout plan its part, then lay out launches, scratch,
 * cost, the line and the hash. The plan's self-check closes the build. See builder.h.
 */
#include "analysis/plan/builder.h"

#include "analysis/plan/assignment.h"
#include "analysis/plan/cost.h"
#include "analysis/values.h"
#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

enum { MAX_REGIONS = 16 };

/* ---- leaves */

static void add_facts(struct cb_text *line, const struct cb_region *region) {
  cb_text_add(line, " (%s", region->layout);
  for (int i = 0; i < region->facts_count; i++)
    cb_text_add(line, " (%s %s)", region->facts[i].key, region->facts[i].value);
  cb_text_add(line, ")");
}

/* Fixed values are summed up before a layout plans, so that it knows the size of a slot. */
static enum cb_status choose_values(const struct cb_builder *builder, struct cb_draft *draft, struct cb_diag *diag) {
  if (builder->plan->values_fixed && !builder->values && builder->plan->nnz)
    return cb_fail(diag, CB_ERR_ARGUMENT, "fixed values must be there when the matrix is analysed");
  if (builder->plan->values_fixed) {
    draft->matrix_values = builder->values;
    draft->values = cb_alloc(1, sizeof *draft->values);
    if (!draft->values) return cb_fail_memory(diag, "values", sizeof *draft->values);
    cb_values_summarise(draft->values, &draft->work.part, builder->values, draft->matrix_type);
  }
  cb_draft_choose_values(draft, 0);
  return CB_OK;
}

/* What the next region may join, and whether another may join it. */
static void offer_joining(const struct cb_builder *builder, struct cb_draft *draft) {
  const struct cb_plan *plan = builder->plan;
  const struct cb_region *before = &plan->regions[plan->regions_count - 1];
  draft->may_be_joined = builder->may_be_joined && !builder->own_rows && builder->options->fuse != CB_OFF;
  if (!builder->joins || builder->own_rows || builder->options->fuse == CB_OFF || !before->block_rows) return;
  draft->joins_rows = before->block_rows;
  draft->apart_ns = plan->target.launch_ns + cb_cost_stream_ns(cb_cost_vector_bytes(plan), &plan->target);
}

/* Plans one leaf; `work` brings its part and is taken over. */
static enum cb_status build_leaf(struct cb_builder *builder, const char *layout_name, struct cb_region_work *work,
                                 struct cb_diag *diag) {
  struct cb_plan *plan = builder->plan;
  const struct cb_layout *layout = cb_layout_find(layout_name);
  const int number = plan->regions_count;
  enum cb_status s = CB_OK;
  struct cb_draft draft = {.options = builder->options,
                           .target = &plan->target,
                           .matrix_type = plan->matrix_type,
                           .vector_type = plan->vector_type,
                           .sum_type = plan->sum_type,
                           .commit = !number ? CB_COMMIT_FINAL : builder->own_rows ? CB_COMMIT_OWN : CB_COMMIT_ADD,
                           .own_rows = builder->own_rows,
                           .arena = &plan->arena,
                           .work = *work};
  *work = (struct cb_region_work){0};
  if (!layout) s = cb_fail(diag, CB_ERR_INTERNAL, "recipe '%s' names no layout '%s'", plan->recipe, layout_name);
  else if (number == MAX_REGIONS)
    s = cb_fail(diag, CB_ERR_INTERNAL, "recipe '%s' has more than %d regions", plan->recipe, MAX_REGIONS);
  if (!s) {
    struct cb_region *region = &draft.region;
    memcpy(region->name, layout->name, strlen(layout->name) + 1); /* the plan check bounds names */
    region->name[strlen(layout->name)] = (char)('0' + number % 10);
    region->layout = layout->name;
    region->nonzeros = draft.work.part.csr->nnz;
    offer_joining(builder, &draft);
    s = choose_values(builder, &draft, diag);
    if (!s) s = layout->plan(&draft, diag);
  }
  if (!s && draft.failed) s = cb_fail_memory(diag, "region", 0);
  cb_free(draft.values);
  if (s) {
    cb_region_work_release(&draft.work, layout);
    return s;
  }
  builder->assignment->layouts[number] = layout;
  builder->assignment->regions[number] = draft.work;
  plan->regions[number] = draft.region;
  builder->assignment->regions_count = ++plan->regions_count;
  cb_cost_region(plan, &plan->regions[number]);
  add_facts(&builder->line, &plan->regions[number]);
  return CB_OK;
}

/* ---- splits */

/* Whether each part shall write its own rows, instead of one all and the others adding to them: then no part need wait
 * for another. */
static int parts_own_rows(const struct cb_builder *builder, const struct cb_node *node, const struct cb_csr *csr,
                          const unsigned char *part_of) {
  if (!node->split->by_rows || builder->plan->regions_count || builder->options->fuse == CB_OFF ||
      builder->plan->atomics || !csr->nnz)
    return 0;
  for (int i = 0; i < node->split->parts; i++) {
    const struct cb_layout *layout = node->parts[i]->layout ? cb_layout_find(node->parts[i]->layout) : NULL;
    if (!layout || !layout->minds_own_rows) return 0;
  }
  for (int64_t k = 0; k < csr->nnz; k++)
    if (part_of[k]) return 1;
  return 0;
}

/* A bit for each row of the part. */
static void find_own_rows(uint32_t *own, const struct cb_csr *csr, const unsigned char *part_of, int part) {
#pragma omp parallel for schedule(static)
  for (int64_t word = 0; word < cb_divide_up(csr->rows, 32); word++) {
    own[word] = 0;
    for (int64_t row = 32 * word; row < cb_smaller(32 * word + 32, csr->rows); row++) {
      const int of_row = cb_csr_row_length(csr, row) ? part_of[cb_csr_row(csr, row)] : 0;
      if (of_row == part) own[word] |= UINT32_C(1) << row % 32;
    }
  }
}

static enum cb_status build_node(struct cb_builder *builder, const struct cb_node *node, struct cb_region_work *work,
                                 struct cb_diag *diag);

static enum cb_status build_split(struct cb_builder *builder, const struct cb_node *node,
                                  const struct cb_part *part, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  const struct cb_split *split = node->split;
  const int first = builder->plan->regions_count;
  size_t facts_end = 0;
  uint32_t *own = NULL;
  unsigned char *part_of = cb_alloc((size_t)part->csr->nnz, 1);
  if (!part_of) return cb_fail_memory(diag, "split", (uint64_t)part->csr->nnz);
  cb_text_add(&builder->line, " (split %s", split->name);
  s = split->divide(part, builder->options, &builder->plan->target, part_of, &builder->line, diag);
  facts_end = builder->line.length;
  if (!s && parts_own_rows(builder, node, part->csr, part_of)) {
    own = cb_alloc((size_t)cb_divide_up(part->csr->rows, 32), sizeof *own);
    if (!own) s = cb_fail_memory(diag, "rows of a split", (uint64_t)part->csr->rows / 8);
  }
  for (int i = 0; i < split->parts && !s; i++) {
    struct cb_region_work work = {0};
    s = cb_part_select(&work, part, part_of, i, builder->assignment->wide, diag);
    /* An empty part needs no region, unless it is the one that writes y. */
    if (!s && (work.part.csr->nnz || !builder->plan->regions_count)) {
      if (own) find_own_rows(own, part->csr, part_of, i);
      builder->own_rows = own;
      builder->joins = node->parts[i]->layout && builder->plan->regions_count == first + 1;
      builder->may_be_joined = builder->plan->regions_count == first && work.part.csr->nnz < part->csr->nnz;
      s = build_node(builder, node->parts[i], &work, diag);
    }
    cb_region_work_release(&work, NULL);
  }
  builder->own_rows = NULL;
  cb_free(own);
  if (!s && builder->plan->regions_count == first + 2)
    cb_build_joining(builder, first, facts_end);
  cb_text_add(&builder->line, ")");
  cb_free(part_of);
  return s;
}

static enum cb_status build_node(struct cb_builder *builder, const struct cb_node *node, struct cb_region_work *work,
                                 struct cb_diag *diag) {
  if (node->layout) return build_leaf(builder, node->layout, work, diag);
  return build_split(builder, node, &work->part, diag);
}

/* ---- the whole */

static enum cb_status start(struct cb_builder *builder, const struct cb_csr *csr, const struct cb_recipe *recipe,
                            const struct cb_target *target, struct cb_diag *diag) {
  struct cb_plan *plan = builder->plan = cb_calloc(1, sizeof *plan);
  struct cb_assignment *assignment = builder->assignment = cb_calloc(1, sizeof *assignment);
  if (assignment) {
    assignment->nonzeros = csr->nnz;
    assignment->wide = csr->nnz >= UINT32_MAX || (csr->nnz > builder->options->index_limit && csr->nnz <= INT32_MAX);
    assignment->regions = cb_calloc(MAX_REGIONS, sizeof *assignment->regions);
    assignment->layouts = cb_calloc(MAX_REGIONS, sizeof *assignment->layouts);
  }
  if (plan) {
    plan->regions = cb_arena_alloc(&plan->arena, MAX_REGIONS, sizeof *plan->regions);
    plan->recipe = recipe->name;
  }
  if (!plan || !assignment || !assignment->regions || !assignment->layouts || plan->arena.failed)
    return cb_fail_memory(diag, "plan", sizeof *plan);
  plan->rows = csr->rows;
  plan->cols = csr->cols;
  plan->nnz = csr->nnz;
  const struct cb_types types = cb_precision_types((enum cb_precision)builder->options->type);
  plan->matrix_type = types.matrix;
  plan->vector_type = types.vector;
  plan->sum_type = types.sum;
  plan->form = (enum cb_form)builder->options->form;
  plan->atomics = builder->options->atomics == CB_ON;
  plan->values_fixed = builder->options->values == CB_VALUES_FIXED;
  plan->index_limit = builder->options->index_limit;
  plan->target = *target;
  return CB_OK;
}

static enum cb_status finish(struct cb_builder *builder, struct cb_diag *diag) {
  struct cb_plan *plan = builder->plan;
  struct cb_text json = {0};
  cb_text_add(&builder->line, ")");
  if (!builder->line.failed) plan->line = cb_arena_string(&plan->arena, cb_text_string(&builder->line));
  if (!plan->line) return cb_fail_memory(diag, "plan line", 0);
  enum cb_status s = cb_build_launches(plan, diag);
  if (!s) cb_cost_plan(plan);
  if (!s) s = cb_plan_json(plan, &json, diag);
  if (!s) plan->hash = cb_hash_bytes(cb_text_string(&json), json.length);
  cb_text_release(&json);
  if (!s) s = cb_plan_check(plan, diag);
  return s;
}

enum cb_status cb_build_recipe(struct cb_plan **plan, struct cb_assignment **assignment,
                               const struct cb_recipe *recipe, const struct cb_csr *csr,
                               const struct cb_target *target, const struct cb_options *options, struct cb_diag *diag) {
  struct cb_builder builder = {.options = options, .values = csr->values};
  struct cb_region_work whole = {.part = {.csr = csr}};
  enum cb_status s = start(&builder, csr, recipe, target, diag);
  cb_text_add(&builder.line, "(spmv");
  if (!s && csr->rows) s = build_node(&builder, recipe->root, &whole, diag);
  if (!s && !csr->rows) cb_text_add(&builder.line, " (empty)");
  if (!s) s = finish(&builder, diag);
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
