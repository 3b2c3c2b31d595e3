// SPDX-License-Identifier: Apache-2.0
/* Building a plan: walk the recipe's tree, let each leaf's layout plan its part, then lay out launches, scratch,
 * cost, the line and the hash. The plan's self-check closes the build. See plan.h.
 */
#include "analysis/plan.h"

#include "analysis/assignment.h"
#include "analysis/recipe.h"
#include "analysis/values.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { MAX_REGIONS = 16, THREADS = 256, SCALE_ROWS_PER_BLOCK = 1024 };

/* What the walk over the recipe carries along. */
struct builder {
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  const struct cb_options *options;
  const double *values; /* of the matrix */
  struct cb_text line;
};

void cb_region_work_release(struct cb_region_work *work, const struct cb_layout *layout) {
  for (int i = 0; i < work->contents_count; i++) cb_free(work->contents[i].elements);
  cb_free(work->contents);
  if (layout && layout->release) layout->release(work->state);
  else cb_free(work->state);
  if (work->part_csr) cb_csr_release(work->part_csr);
  cb_free(work->part_csr);
  cb_free(work->part_origin);
  cb_free(work->part_origin64);
  *work = (struct cb_region_work){0};
}

void cb_assignment_free(struct cb_assignment *assignment) {
  if (!assignment) return;
  for (int i = 0; i < assignment->regions_count; i++)
    cb_region_work_release(&assignment->regions[i], assignment->layouts[i]);
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

int cb_plan_values_fixed(const struct cb_plan *plan) { return plan->values_fixed; }

const char *cb_plan_types_name(const struct cb_plan *plan) {
  return cb_types_name((struct cb_types){plan->matrix_type, plan->vector_type, plan->sum_type});
}

/* ---- regions */

static void add_facts(struct cb_text *line, const struct cb_region *region) {
  cb_text_add(line, " (%s", region->layout);
  for (int i = 0; i < region->facts_count; i++)
    cb_text_add(line, " (%s %s)", region->facts[i].key, region->facts[i].value);
  cb_text_add(line, ")");
}

/* Fixed values are summed up before a layout plans, so that it knows the size of a slot. */
static enum cb_status choose_values(const struct builder *builder, struct cb_draft *draft, struct cb_diag *diag) {
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

/* Plans one leaf; `work` brings its part and is taken over. */
static enum cb_status build_leaf(struct builder *builder, const char *layout_name, struct cb_region_work *work,
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
                           .commit = number ? CB_COMMIT_ADD : CB_COMMIT_FINAL,
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
  add_facts(&builder->line, &plan->regions[number]);
  return CB_OK;
}

static enum cb_status build_node(struct builder *builder, const struct cb_node *node, struct cb_region_work *work,
                                 struct cb_diag *diag);

static enum cb_status build_split(struct builder *builder, const struct cb_node *node,
                                  const struct cb_part *part, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  const struct cb_split *split = node->split;
  unsigned char *part_of = cb_alloc((size_t)part->csr->nnz, 1);
  if (!part_of) return cb_fail_memory(diag, "split", (uint64_t)part->csr->nnz);
  cb_text_add(&builder->line, " (split %s", split->name);
  s = split->divide(part, builder->options, part_of, &builder->line, diag);
  for (int i = 0; i < split->parts && !s; i++) {
    struct cb_region_work work = {0};
    s = cb_part_select(&work, part, part_of, i, diag);
    /* An empty part needs no region, unless it is the one that writes y. */
    if (!s && (work.part.csr->nnz || !builder->plan->regions_count))
      s = build_node(builder, node->parts[i], &work, diag);
    cb_region_work_release(&work, NULL);
  }
  cb_text_add(&builder->line, ")");
  cb_free(part_of);
  return s;
}

static enum cb_status build_node(struct builder *builder, const struct cb_node *node, struct cb_region_work *work,
                                 struct cb_diag *diag) {
  if (node->layout) return build_leaf(builder, node->layout, work, diag);
  return build_split(builder, node, &work->part, diag);
}

/* ---- launches, scratch and cost: need the regions */

static void add_launch(struct cb_plan *plan, struct cb_launch launch) {
  if (launch.blocks) plan->launches[plan->launches_count++] = launch;
}

/* One launch per region, after its preparing one: the first region writes y, later ones add to it. A first region
 * that adds with atomics needs y scaled before. */
static enum cb_status build_launches(struct cb_plan *plan, struct cb_diag *diag) {
  plan->launches = cb_arena_alloc(&plan->arena, 2 * (size_t)plan->regions_count + 1, sizeof *plan->launches);
  if (!plan->launches) return cb_fail_memory(diag, "launches", 0);
  for (int i = 0; i < plan->regions_count; i++) {
    struct cb_region *region = &plan->regions[i];
    if (!i && region->commit == CB_COMMIT_ATOMIC && plan->form != CB_FORM_ADD)
      add_launch(plan, (struct cb_launch){.piece = "common/scale_y.cu.in",
                                          .blocks = (plan->rows + SCALE_ROWS_PER_BLOCK - 1) / SCALE_ROWS_PER_BLOCK,
                                          .threads = THREADS});
    region->first_carry_sum = plan->carry_sums;
    region->first_carry_counter = plan->carry_counters;
    plan->carry_sums += region->carry_slots * region->carry_width;
    plan->carry_counters += region->carry_counters;
    add_launch(plan, (struct cb_launch){.prepares = 1,
                                        .first_region = i,
                                        .regions = 1,
                                        .blocks = region->prepare_blocks,
                                        .threads = THREADS});
    add_launch(plan, (struct cb_launch){.first_region = i,
                                        .regions = 1,
                                        .blocks = region->blocks,
                                        .threads = region->threads ? region->threads : THREADS,
                                        .blocks_per_sm = region->blocks_per_sm,
                                        .dynamic_shared = region->dynamic_shared});
  }
  return CB_OK;
}

enum {
  L2_PERCENT = 64,     /* of the rate of a plain read from L2 that kernels reach */
  GATHER_PERCENT = 81, /* of the rate of plain gathers, likewise */
  START_NS = 900, /* of a kernel on the GPU: from its start to its first loads, and from its last stores to its end */
  TIE = 16        /* this part of the time on the GPU still counts where launching takes longer */
};

/* Bytes from L2 while they fit there, from memory when they are well beyond it, in nanoseconds. */
static int64_t stream_ns(int64_t bytes, const struct cb_target *target) {
  const int64_t fits = target->l2_bytes / 5 * 3, beyond = target->l2_bytes / 5 * 6;
  const int64_t from_l2 = bytes * 100 / (target->l2_gb_per_s * L2_PERCENT), from_memory = bytes / target->read_gb_per_s;
  if (bytes <= fits) return from_l2;
  if (bytes >= beyond) return from_memory;
  return from_l2 + (from_memory - from_l2) * ((bytes - fits) / 1024) / ((beyond - fits) / 1024);
}

/* Streaming and gathering side by side: the longer of both, a quarter more when both are equal (about the sum of
 * cubes, as measured). */
static int64_t together(int64_t a, int64_t b) {
  const int64_t most = a > b ? a : b, least = a > b ? b : a;
  return most ? most + least * least / most * least / most / 4 : 0;
}

int64_t cb_plan_gather_ns(int64_t sectors, const struct cb_target *target) {
  return sectors * 100 / (target->sectors_g_per_s * GATHER_PERCENT);
}

static int64_t region_ns(struct cb_cost *cost, const struct cb_target *target) {
  const int64_t percent = cost->stream_percent ? cost->stream_percent : 100;
  cost->stream_ns = stream_ns(cost->bytes, target) * 100 / percent;
  cost->gather_ns = cb_plan_gather_ns(cost->sectors, target);
  int64_t bound = together(cost->stream_ns, cost->gather_ns);
  bound = cost->work_ns > bound ? cost->work_ns : bound;
  bound = cost->chain_ns > bound ? cost->chain_ns : bound;
  return START_NS + bound + cost->tail_ns;
}

int64_t cb_plan_stream_ns(const struct cb_csr *csr, const struct cb_target *target, struct cb_types types,
                          int64_t bytes_per_nonzero, int64_t percent) {
  const int64_t vectors = (csr->rows + csr->cols) * (int64_t)cb_type_size(types.vector);
  return START_NS + stream_ns(csr->nnz * bytes_per_nonzero + vectors, target) * 100 / percent;
}

/* Each region is a launch. Launches follow one another at the host's pace at best; of two plans that reach it, the one
 * that takes less of the GPU is cheaper. */
static void predict(struct cb_plan *plan) {
  const int64_t element = (int64_t)cb_type_size(plan->vector_type);
  int64_t on_gpu = 0;
  for (int i = 0; i < plan->regions_count; i++) {
    struct cb_cost *cost = &plan->regions[i].cost;
    cost->bytes = plan->regions[i].bytes + (plan->cols + plan->rows) * element;
    cost->ns = cost->gpu_ns = region_ns(cost, &plan->target);
    on_gpu += cost->ns;
    plan->cost.stream_ns += cost->stream_ns;
    plan->cost.gather_ns += cost->gather_ns;
    plan->cost.bytes += cost->bytes;
    plan->cost.sectors += cost->sectors;
    plan->cost.work_ns += cost->work_ns;
    plan->cost.chain_ns += cost->chain_ns;
    plan->cost.tail_ns += cost->tail_ns;
  }
  const int64_t launching = plan->launches_count * plan->target.launch_ns, tie = on_gpu / TIE;
  plan->cost.gpu_ns = on_gpu;
  plan->cost.ns = (launching > on_gpu - tie ? launching : on_gpu - tie) + tie;
}

/* ---- the whole */

static enum cb_status start(struct builder *builder, const struct cb_csr *csr, const struct cb_recipe *recipe,
                            const struct cb_target *target, struct cb_diag *diag) {
  struct cb_plan *plan = builder->plan = cb_calloc(1, sizeof *plan);
  struct cb_assignment *assignment = builder->assignment = cb_calloc(1, sizeof *assignment);
  if (assignment) {
    assignment->nonzeros = csr->nnz;
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
  plan->target = *target;
  return CB_OK;
}

static enum cb_status finish(struct builder *builder, struct cb_diag *diag) {
  struct cb_plan *plan = builder->plan;
  struct cb_text json = {0};
  cb_text_add(&builder->line, ")");
  if (!builder->line.failed) plan->line = cb_arena_string(&plan->arena, cb_text_string(&builder->line));
  if (!plan->line) return cb_fail_memory(diag, "plan line", 0);
  enum cb_status s = build_launches(plan, diag);
  if (!s) predict(plan);
  if (!s) s = cb_plan_json(plan, &json, diag);
  if (!s) plan->hash = cb_hash_bytes(cb_text_string(&json), json.length);
  cb_text_release(&json);
  if (!s) s = cb_plan_check(plan, diag);
  return s;
}

static enum cb_status build_recipe(struct cb_plan **plan, struct cb_assignment **assignment,
                                   const struct cb_recipe *recipe, const struct cb_csr *csr,
                                   const struct cb_target *target, const struct cb_options *options,
                                   struct cb_diag *diag) {
  struct builder builder = {.options = options, .values = csr->values};
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

/* ---- the search */

struct cb_candidate cb_plan_candidate(const struct cb_plan *plan) {
  struct cb_candidate candidate = {.recipe = plan->recipe,
                                   .launches = plan->launches_count,
                                   .bytes = cb_plan_bytes(plan),
                                   .cost = plan->cost};
  snprintf(candidate.line, sizeof candidate.line, "%s", plan->line);
  return candidate;
}

int cb_plan_is_hopeless(const char *name, const struct cb_csr *csr, const struct cb_target *target,
                        const struct cb_options *options, int64_t limit_ns, char *refusal, size_t size) {
  const struct cb_recipe *recipe;
  if (cb_recipe_find(&recipe, name, NULL)) return 0;
  const struct cb_layout *layout = recipe->root && recipe->root->layout ? cb_layout_find(recipe->root->layout) : NULL;
  if (options->search == CB_SEARCH_ALL || options->values == CB_VALUES_FIXED) return 0; /* values may take less */
  if (!layout || !layout->least_ns || !csr->rows) return 0;
  const int64_t least = layout->least_ns(csr, target, cb_precision_types((enum cb_precision)options->type));
  if (least < limit_ns) return 0;
  snprintf(refusal, size, "not tried: it would take %.2f us at least", 1e-3 * (double)least);
  return 1;
}

/* A recipe may refuse a matrix; any other failure ends the search. */
static int is_refusal(enum cb_status s) { return s == CB_ERR_LIMIT || s == CB_ERR_UNSUPPORTED; }

static enum cb_status search(struct cb_plan **best, struct cb_assignment **best_assignment,
                             const struct cb_recipe *recipe, const struct cb_csr *csr,
                             const struct cb_target *target, const struct cb_options *options,
                             struct cb_diag *diag) {
  struct cb_candidate candidates[CB_MAX_CANDIDATES] = {0};
  int count = 0;
  enum cb_status s = CB_OK;
  for (; recipe->candidates[count] && count < CB_MAX_CANDIDATES && !s; count++) {
    const struct cb_recipe *tried = NULL;
    struct cb_candidate *candidate = &candidates[count];
    struct cb_plan *plan = NULL;
    struct cb_assignment *assignment = NULL;
    s = cb_recipe_find(&tried, recipe->candidates[count], diag);
    candidate->recipe = recipe->candidates[count];
    if (!s && *best && cb_plan_is_hopeless(tried->name, csr, target, options, (*best)->cost.ns, candidate->refusal,
                                           sizeof candidate->refusal))
      continue;
    if (!s) s = build_recipe(&plan, &assignment, tried, csr, target, options, diag);
    if (!s) *candidate = cb_plan_candidate(plan);
    if (is_refusal(s)) {
      snprintf(candidate->refusal, sizeof candidate->refusal, "%.159s", diag->message);
      diag->message[0] = 0; /* no failure of the search */
      s = CB_OK;
      continue;
    }
    if (s) break;
    const int better = !*best || plan->cost.ns < (*best)->cost.ns;
    cb_plan_free(better ? *best : plan);
    cb_assignment_free(better ? *best_assignment : assignment);
    if (!better) continue;
    *best = plan;
    *best_assignment = assignment;
  }
  if (!s && !*best) s = cb_fail(diag, CB_ERR_LIMIT, "no recipe fits this matrix; the last said: %s",
                                count ? candidates[count - 1].refusal : "nothing");
  if (!s) {
    (*best)->candidates_count = count;
    memcpy((*best)->candidates, candidates, sizeof candidates);
  }
  return s;
}

enum cb_status cb_plan_build(struct cb_plan **plan, struct cb_assignment **assignment, const struct cb_csr *csr,
                             const struct cb_target *target, const struct cb_options *options,
                             struct cb_diag *diag) {
  struct cb_diag own = {0}; /* a search reads messages */
  const struct cb_recipe *recipe = NULL;
  *plan = NULL;
  *assignment = NULL;
  if (!diag) diag = &own;
  enum cb_status s = cb_options_check(options, diag);
  if (!s) s = cb_recipe_find(&recipe, options->recipe, diag);
  if (!s && !recipe->root && options->tune == CB_TUNE_OFF)
    s = cb_recipe_find(&recipe, cb_recipe_unsearched, diag);
  if (!s && recipe->root) return build_recipe(plan, assignment, recipe, csr, target, options, diag);
  if (!s) s = search(plan, assignment, recipe, csr, target, options, diag);
  if (s) {
    cb_assignment_free(*assignment);
    cb_plan_free(*plan);
    *plan = NULL;
    *assignment = NULL;
  }
  return s;
}
