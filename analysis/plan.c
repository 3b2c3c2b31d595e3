// SPDX-License-Identifier: Apache-2.0
/* Building a plan: walk the recipe's tree, let each leaf's layout plan its part, then lay out launches, scratch,
 * cost, the line and the hash. The plan's self-check closes the build. See plan.h.
 */
#include "analysis/plan.h"

#include "analysis/assignment.h"
#include "analysis/recipe.h"
#include "analysis/values.h"
#include "base/integers.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REGIONS = 16, THREADS = 256, SCALE_ROWS_PER_BLOCK = 1024 };

/* What the walk over the recipe carries along. */
struct builder {
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  const struct cb_options *options;
  const double *values; /* of the matrix */
  int joins;            /* the next region comes from the same split as the one before it */
  int may_be_joined;    /* and so will the one behind it */
  const uint32_t *own_rows; /* of the next region; NULL: all */
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

/* ---- cost: needs regions that are planned */

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
  const int64_t most = cb_larger(a, b), least = cb_smaller(a, b);
  return most ? most + least * least / most * least / most / 4 : 0;
}

int64_t cb_plan_gather_ns(int64_t sectors, const struct cb_target *target) {
  return sectors * 100 / (target->sectors_g_per_s * GATHER_PERCENT);
}

/* Fills in what the device makes of it as one launch. */
static void price(struct cb_cost *cost, const struct cb_target *target) {
  const int64_t percent = cost->stream_percent ? cost->stream_percent : 100;
  cost->stream_ns = stream_ns(cost->bytes, target) * 100 / percent;
  cost->gather_ns = cb_plan_gather_ns(cost->sectors, target);
  int64_t bound = together(cost->stream_ns, cost->gather_ns);
  bound = cost->work_ns > bound ? cost->work_ns : bound;
  bound = cost->chain_ns > bound ? cost->chain_ns : bound;
  cost->ns = cost->gpu_ns = START_NS + bound + cost->tail_ns;
}

int64_t cb_plan_stream_ns(const struct cb_csr *csr, const struct cb_target *target, struct cb_types types,
                          int64_t bytes_per_nonzero, int64_t percent) {
  const int64_t vectors = (csr->rows + csr->cols) * (int64_t)cb_type_size(types.vector);
  return START_NS + stream_ns(csr->nnz * bytes_per_nonzero + vectors, target) * 100 / percent;
}

static int64_t vector_bytes(const struct cb_plan *plan) {
  return (plan->cols + plan->rows) * (int64_t)cb_type_size(plan->vector_type);
}

static void price_region(const struct cb_plan *plan, struct cb_region *region) {
  region->cost.bytes = region->bytes + vector_bytes(plan);
  price(&region->cost, &plan->target);
}

/* Two regions in one launch: x and y count once, and each streams at its own rate. In turn, chains follow one another,
 * as often as a region takes its turn. */
static struct cb_cost join_costs(const struct cb_plan *plan, int first, enum cb_joining joining) {
  struct cb_cost joined = {.bytes = vector_bytes(plan)};
  const int64_t rows = cb_larger(plan->regions[first].block_rows, plan->regions[first + 1].block_rows);
  int64_t at_full_rate = joined.bytes;
  for (int r = first; r < first + 2; r++) {
    const struct cb_cost *cost = &plan->regions[r].cost;
    const int64_t turns = joining == CB_IN_TURN ? rows / plan->regions[r].block_rows : 0;
    joined.bytes += plan->regions[r].bytes;
    at_full_rate += plan->regions[r].bytes * 100 / (cost->stream_percent ? cost->stream_percent : 100);
    joined.sectors += cost->sectors;
    joined.work_ns += cost->work_ns;
    joined.chain_ns = turns ? joined.chain_ns + turns * cost->chain_ns : cb_larger(joined.chain_ns, cost->chain_ns);
    joined.tail_ns = turns ? joined.tail_ns + cost->tail_ns : cb_larger(joined.tail_ns, cost->tail_ns);
  }
  joined.stream_percent = at_full_rate ? joined.bytes * 100 / at_full_rate : 0;
  price(&joined, &plan->target);
  return joined;
}

/* Launches follow one another at the host's pace at best. */
static int64_t launched_ns(const struct cb_plan *plan, int launches, int64_t gpu_ns) {
  const int64_t launching = launches * plan->target.launch_ns;
  return cb_larger(launching, gpu_ns);
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

/* What the next region may join, and whether another may join it. */
static void offer_joining(const struct builder *builder, struct cb_draft *draft) {
  const struct cb_plan *plan = builder->plan;
  const struct cb_region *before = &plan->regions[plan->regions_count - 1];
  draft->may_be_joined = builder->may_be_joined && !builder->own_rows && builder->options->fuse != CB_OFF;
  if (!builder->joins || builder->own_rows || builder->options->fuse == CB_OFF || !before->block_rows) return;
  draft->joins_rows = before->block_rows;
  draft->apart_ns = plan->target.launch_ns + stream_ns(vector_bytes(plan), &plan->target);
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
  price_region(plan, &plan->regions[number]);
  add_facts(&builder->line, &plan->regions[number]);
  return CB_OK;
}

/* ---- fusing: needs the regions of a split */

static int64_t threads_of(const struct cb_region *region) { return region->threads ? region->threads : THREADS; }

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
  if (threads_of(first) != threads_of(second) || first->commit != CB_COMMIT_FINAL || first->dynamic_shared ||
      second->dynamic_shared || first->prepare_blocks || second->prepare_blocks)
    return CB_APART;
  if (second->commit == CB_COMMIT_OWN) return CB_BESIDE;
  return second->commit == CB_COMMIT_ADD && rows_fit(first, second) ? CB_IN_TURN : CB_APART;
}

static enum cb_joining choose_joining(const struct builder *builder, int first) {
  const struct cb_plan *plan = builder->plan;
  const struct cb_region *regions = plan->regions + first;
  const enum cb_joining joining = can_join(&regions[0], &regions[1]);
  if (builder->options->fuse == CB_OFF || joining == CB_APART) return CB_APART;
  const int64_t together = launched_ns(plan, 1, join_costs(plan, first, joining).ns);
  const int64_t apart = launched_ns(plan, 2, regions[0].cost.ns + regions[1].cost.ns);
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

/* Whether each part shall write its own rows, instead of one all and the others adding to them: then no part need wait
 * for another. */
static int parts_own_rows(const struct builder *builder, const struct cb_node *node, const struct cb_csr *csr,
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

static enum cb_status build_node(struct builder *builder, const struct cb_node *node, struct cb_region_work *work,
                                 struct cb_diag *diag);

static enum cb_status build_split(struct builder *builder, const struct cb_node *node,
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
    insert(&builder->line, facts_end, fuse(builder->plan, first, choose_joining(builder, first)));
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
static enum cb_status build_launches(struct cb_plan *plan, struct cb_diag *diag) {
  plan->launches = cb_arena_alloc(&plan->arena, 2 * (size_t)plan->regions_count + 1, sizeof *plan->launches);
  if (!plan->launches) return cb_fail_memory(diag, "launches", 0);
  for (int i = 0; i < plan->regions_count; i++) {
    struct cb_region *region = &plan->regions[i];
    if (!i && region->commit == CB_COMMIT_ATOMIC && plan->form != CB_FORM_ADD)
      add_launch(plan, (struct cb_launch){.piece = "scale_y",
                                          .blocks = (plan->rows + SCALE_ROWS_PER_BLOCK - 1) / SCALE_ROWS_PER_BLOCK,
                                          .threads = THREADS});
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
                                        .threads = THREADS});
    add_launch(plan, (struct cb_launch){.first_region = i,
                                        .regions = 1,
                                        .blocks = region->blocks,
                                        .threads = (int)threads_of(region),
                                        .blocks_per_sm = region->blocks_per_sm,
                                        .dynamic_shared = region->dynamic_shared});
  }
  return CB_OK;
}

/* What a launch of regions costs: known for one of a single region. */
static struct cb_cost launch_cost(const struct cb_plan *plan, const struct cb_launch *launch) {
  const int first = launch->first_region;
  return launch->regions > 1 ? join_costs(plan, first, plan->regions[first + 1].joining) : plan->regions[first].cost;
}

/* Of two plans that reach the host's pace, the one that takes less of the GPU is cheaper. */
static void predict(struct cb_plan *plan) {
  for (int i = 0; i < plan->launches_count; i++) {
    if (!plan->launches[i].regions || plan->launches[i].prepares) continue;
    const struct cb_cost cost = launch_cost(plan, &plan->launches[i]);
    plan->cost.stream_ns += cost.stream_ns;
    plan->cost.gather_ns += cost.gather_ns;
    plan->cost.bytes += cost.bytes;
    plan->cost.sectors += cost.sectors;
    plan->cost.work_ns += cost.work_ns;
    plan->cost.chain_ns += cost.chain_ns;
    plan->cost.tail_ns += cost.tail_ns;
    plan->cost.gpu_ns += cost.gpu_ns;
  }
  const int64_t on_gpu = plan->cost.gpu_ns, tie = on_gpu / TIE;
  plan->cost.ns = launched_ns(plan, plan->launches_count, on_gpu - tie) + tie;
}

/* ---- the whole */

static enum cb_status start(struct builder *builder, const struct cb_csr *csr, const struct cb_recipe *recipe,
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

/* Dearer, or as dear and later in the list, as a search has it. */
static int comes_after(const struct cb_candidate *one, const struct cb_candidate *other) {
  return one->cost.ns != other->cost.ns ? one->cost.ns > other->cost.ns : one > other;
}

const char *cb_plan_next_recipe(const struct cb_candidate *candidates, int count, const char *than) {
  const struct cb_candidate *before = candidates, *next = NULL, *end = candidates + count;
  while (before < end && strcmp(before->recipe, than)) before++;
  for (const struct cb_candidate *one = candidates; one < end && before < end; one++)
    if (!*one->refusal && comes_after(one, before) && (!next || comes_after(next, one))) next = one;
  return next ? next->recipe : NULL;
}

/* Every nonzero goes to one of the node's layouts: none is cheaper than the cheapest of them. 0: unknown. */
static int64_t node_least_ns(const struct cb_node *node, const struct cb_csr *csr, const struct cb_target *target,
                             struct cb_types types) {
  const struct cb_layout *layout = node->layout ? cb_layout_find(node->layout) : NULL;
  if (layout) return layout->least_ns ? layout->least_ns(csr, target, types) : 0;
  int64_t least = INT64_MAX;
  for (int i = 0; node->split && i < node->split->parts; i++)
    least = cb_smaller(least, node_least_ns(node->parts[i], csr, target, types));
  return least;
}

int cb_plan_is_hopeless(const char *name, const struct cb_csr *csr, const struct cb_target *target,
                        const struct cb_options *options, int64_t limit_ns, char *refusal, size_t size) {
  const struct cb_recipe *recipe;
  if (cb_recipe_find(&recipe, name, NULL)) return 0;
  if (options->search == CB_SEARCH_ALL || options->values == CB_VALUES_FIXED) return 0; /* values may take less */
  if (!recipe->root || !csr->rows) return 0;
  const int64_t least = node_least_ns(recipe->root, csr, target, cb_precision_types((enum cb_precision)options->type));
  if (least < limit_ns) return 0;
  snprintf(refusal, size, "not tried: it would take %.2f us at least, and only what may take less than %.2f us is planned",
           1e-3 * (double)least, 1e-3 * (double)limit_ns);
  return 1;
}

/* The faster one. Of two that take about as long, where the launch hides most of the work, the one that stores less. */
static int is_better(const struct cb_plan *plan, const struct cb_plan *best) {
  enum { ABOUT = 32, CLEARLY = 8 }; /* these parts of the time, and of the bytes */
  const int64_t bytes = cb_plan_bytes(plan), best_bytes = cb_plan_bytes(best);
  const int64_t apart = plan->cost.ns - best->cost.ns, gpu_apart = plan->cost.gpu_ns - best->cost.gpu_ns;
  const int alike = llabs(apart) < best->cost.ns / ABOUT && llabs(gpu_apart) < best->cost.gpu_ns / CLEARLY;
  if (alike && bytes + bytes / CLEARLY < best_bytes) return 1;
  if (alike && best_bytes + best_bytes / CLEARLY < bytes) return 0;
  return apart < 0;
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
      snprintf(candidate->refusal, sizeof candidate->refusal, "%.239s", diag->message);
      diag->message[0] = 0; /* no failure of the search */
      s = CB_OK;
      continue;
    }
    if (s) break;
    const int better = !*best || is_better(plan, *best);
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
