// SPDX-License-Identifier: Apache-2.0
/* The walk over a recipe's tree: see builder.h. A leaf's layout plans a region; a split divides its part's nonzeros and
 * hands each share on. Who writes which rows is decided on the way down:
 *
 *   FINAL with all rows    the root; and of a split whose parts share rows, one part: the others ADD to them
 *   FINAL with own rows    the first part of a split by rows, which has the rows without nonzeros, too
 *   OWN                    the others of its parts: all of their rows have nonzeros there
 */
#include "analysis/plan/builder.h"

#include "analysis/plan/assignment.h"
#include "analysis/plan/cost.h"
#include "analysis/values.h"
#include "base/integers.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* ---- the line */

void cb_build_settings_fact(struct cb_text *line, const struct cb_node *node) {
  if (node->settings) cb_text_add(line, " (with %s)", node->settings);
}

void cb_build_cut_line(struct cb_text *line, size_t length) {
  if (line->failed || line->length <= length) return;
  line->length = length;
  line->bytes[length] = 0;
}

static void insert(struct cb_text *text, size_t at, const char *inserted) {
  const size_t length = strlen(inserted);
  cb_text_add_string(text, inserted);
  if (text->failed) return;
  memmove(text->bytes + at + length, text->bytes + at, text->length - length - at);
  memcpy(text->bytes + at, inserted, length);
}

static void add_facts(struct cb_text *line, const struct cb_node *node, const struct cb_region *region) {
  cb_text_add(line, " (%s", region->layout);
  cb_build_settings_fact(line, node);
  for (int i = 0; i < region->facts_count; i++)
    cb_text_add(line, " (%s %s)", region->facts[i].key, region->facts[i].value);
  cb_text_add(line, ")");
}

/* ---- leaves */

/* Fixed values are summed up before a layout plans, so that it knows the size of a slot. */
static enum cb_status choose_values(const struct cb_builder *builder, struct cb_region_builder *region_builder,
                                    struct cb_diag *diag) {
  if (builder->plan->values_fixed && !builder->values && builder->plan->nnz)
    return cb_fail(diag, CB_ERR_ARGUMENT, "fixed values must be there when the matrix is analysed");
  const int is_one_real = region_builder->matrix_type != CB_SPLIT && !cb_plan_is_complex(builder->plan);
  if (builder->plan->values_fixed && is_one_real) { /* of two parts nothing becomes text */
    region_builder->matrix_values = builder->values;
    region_builder->values = cb_alloc(1, sizeof *region_builder->values);
    if (!region_builder->values) return cb_fail_memory(diag, "values", sizeof *region_builder->values);
    cb_values_summarise(region_builder->values, &region_builder->work.part, builder->values,
                        region_builder->matrix_type);
  }
  cb_region_choose_values(region_builder, 0);
  return CB_OK;
}

/* What the region may join, and whether another may join it: not one that writes only some rows, since the next one
 * would find no sums of the others. */
static void offer_joining(const struct cb_builder *builder, const struct cb_subtree *subtree,
                          struct cb_region_builder *region_builder) {
  const struct cb_plan *plan = builder->plan;
  region_builder->may_be_joined = subtree->more_follow && !region_builder->own_rows && subtree->options->fuse != CB_OFF;
  region_builder->joins_rows = cb_build_joinable_rows(builder, subtree);
  if (!region_builder->joins_rows) return;
  region_builder->separate_launch_ns =
      plan->target.launch_ns + cb_cost_stream_ns(cb_cost_vector_bytes(plan), &plan->target);
}

static struct cb_region_builder start_region(const struct cb_builder *builder, const struct cb_subtree *subtree) {
  struct cb_plan *plan = builder->plan;
  return (struct cb_region_builder){.options = subtree->options,
                                    .target = &plan->target,
                                    .matrix_type = plan->matrix_type,
                                    .vector_type = plan->vector_type,
                                    .sum_type = plan->sum_type,
                                    .commit = subtree->commit,
                                    .own_rows = subtree->commit == CB_COMMIT_ADD ? NULL : subtree->own_rows,
                                    .arena = &plan->arena};
}

/* The layout's own work, in the region builder's frame. */
static enum cb_status plan_region(const struct cb_builder *builder, const struct cb_subtree *subtree,
                                  const struct cb_layout *layout, struct cb_region_builder *region_builder,
                                  struct cb_diag *diag) {
  struct cb_region *region = &region_builder->region;
  snprintf(region->name, sizeof region->name, "%.12s%d", layout->name, builder->plan->regions_count);
  region->layout = layout->name;
  region->nonzeros = region_builder->work.part.csr->nnz;
  region->owns_rows = region_builder->own_rows != NULL;
  offer_joining(builder, subtree, region_builder);
  region_builder->settings = cb_settings(subtree->options, layout);
  const struct cb_csr *csr = region_builder->work.part.csr;
  enum cb_status s = choose_values(builder, region_builder, diag);
  if (!s && csr->remote && !csr->row_ptr && !layout->ignores_rows) s = csr->remote->rows(csr->remote->user, diag);
  if (!s) s = layout->plan(region_builder, diag);
  if (!s && region_builder->failed) s = cb_fail_memory(diag, "region", 0);
  if (!s && region_builder->needs_columns)
    s = cb_fail(diag, CB_ERR_UNSUPPORTED, "the %s layout needs all columns of this matrix on the host", layout->name);
  cb_free(region_builder->values);
  return s;
}

static enum cb_status find_layout(const struct cb_layout **layout, const struct cb_builder *builder, const char *name,
                                  struct cb_diag *diag) {
  const struct cb_plan *plan = builder->plan;
  *layout = cb_layout_find(name);
  if (!*layout) return cb_fail(diag, CB_ERR_INTERNAL, "recipe '%s' names no layout '%s'", plan->recipe, name);
  if (plan->regions_count < CB_MAX_REGIONS) return CB_OK;
  return cb_fail(diag, CB_ERR_INTERNAL, "recipe '%s' has more than %d regions", plan->recipe, CB_MAX_REGIONS);
}

/* Plans one leaf; `work` brings its part and is taken over. */
static enum cb_status build_leaf(struct cb_builder *builder, const struct cb_node *node,
                                 const struct cb_subtree *subtree, struct cb_region_work *work, struct cb_diag *diag) {
  struct cb_plan *plan = builder->plan;
  const int number = plan->regions_count;
  const struct cb_layout *layout;
  struct cb_region_builder region_builder = start_region(builder, subtree);
  region_builder.work = *work;
  *work = (struct cb_region_work){0};
  enum cb_status s = find_layout(&layout, builder, node->layout, diag);
  if (!s) s = plan_region(builder, subtree, layout, &region_builder, diag);
  if (s) {
    cb_region_work_release(&region_builder.work);
    return s;
  }
  builder->assignment->layouts[number] = layout;
  builder->assignment->regions[number] = region_builder.work;
  plan->regions[number] = region_builder.region;
  builder->rows_of[number] = subtree->rows;
  builder->assignment->regions_count = ++plan->regions_count;
  cb_cost_region(plan, &plan->regions[number]);
  cb_build_joining(builder, subtree);
  add_facts(&builder->line, node, &plan->regions[number]);
  return CB_OK;
}

/* ---- rows of their own */

/* Whether the region of a node that writes y can leave rows to others. */
static int minds_own_rows(const struct cb_node *node) {
  const struct cb_layout *layout = node->layout ? cb_layout_find(node->layout) : NULL;
  if (node->layout) return layout && layout->minds_own_rows;
  for (int i = 0; node->choices && node->choices[i]; i++)
    if (!minds_own_rows(node->choices[i])) return 0;
  if (!node->split) return 1;
  if (!node->split->by_rows) return minds_own_rows(node->parts[(node->final ? node->final : node->split->parts) - 1]);
  for (int i = 0; i < node->split->parts; i++)
    if (!minds_own_rows(node->parts[i])) return 0;
  return 1;
}

/* A bit for each row of the part: those of `outer` whose nonzeros went to the part. */
static void find_own_rows(uint32_t *own, const uint32_t *outer, const struct cb_csr *csr, const unsigned char *part_of,
                          int part) {
#pragma omp parallel for schedule(static)
  for (int64_t word = 0; word < cb_divide_up(csr->rows, 32); word++) {
    own[word] = 0;
    for (int64_t row = 32 * word; row < cb_smaller(32 * word + 32, csr->rows); row++) {
      const int of_row = cb_csr_row_length(csr, row) ? part_of[cb_csr_row(csr, row)] : 0;
      if (of_row == part) own[word] |= UINT32_C(1) << row % 32;
    }
    if (outer) own[word] &= outer[word];
  }
}

/* ---- splits */

/* A split of a part's nonzeros. */
struct dividing {
  const struct cb_node *node;
  const struct cb_subtree *subtree;
  const struct cb_part *part;
  struct cb_division division;
  int64_t nonzeros[CB_MAX_PARTS];
  int last;      /* part */
  int final;     /* the part that writes y, if one of them does; the others add to it */
  uint32_t *own; /* room for the rows that a part writes; NULL: parts share their rows */
  size_t line_at, facts_end;       /* the plan's line before the split, and behind its facts */
  int first_region[CB_MAX_PARTS + 1]; /* of each part */
};

static void release_division(struct cb_division *division) {
  for (int i = 0; i < CB_MAX_PARTS; i++)
    if (division->found[i].release) division->found[i].release(division->found[i].data);
  cb_free(division->part_of);
  *division = (struct cb_division){0};
}

static void count_parts(struct dividing *dividing) {
  const unsigned char *part_of = dividing->division.part_of;
  const int64_t nonzeros = dividing->part->csr->nnz;
  int64_t count[CB_MAX_PARTS] = {0};
  if (dividing->division.whole) dividing->nonzeros[dividing->division.whole - 1] = nonzeros;
  if (!part_of) return;
#pragma omp parallel for schedule(static) reduction(+ : count)
  for (int64_t k = 0; k < nonzeros; k++) count[part_of[k]]++;
  memcpy(dividing->nonzeros, count, sizeof count);
}

/* Unless the node says it: the last part that has nonzeros. Only the last one, whatever it has, is known to mind rows
 * of their own (minds_own_rows). */
static int choose_final(const struct dividing *dividing) {
  const struct cb_node *node = dividing->node;
  int final = dividing->last;
  if (node->final) return node->final - 1;
  if (dividing->subtree->own_rows && !node->split->by_rows) return final;
  while (final && !dividing->nonzeros[final]) final--;
  return dividing->nonzeros[final] ? final : dividing->last;
}

/* Asks the split, and counts what it did. */
static enum cb_status divide(struct cb_builder *builder, struct dividing *dividing, struct cb_diag *diag) {
  const struct cb_split *split = dividing->node->split;
  const int64_t nonzeros = dividing->part->csr->nnz;
  dividing->last = split->parts - 1;
  dividing->line_at = builder->line.length;
  const int remote = dividing->part->csr->remote != NULL;
  dividing->division.part_of = remote ? NULL : cb_alloc((size_t)nonzeros, 1);
  if (!remote && !dividing->division.part_of) return cb_fail_memory(diag, "split", (uint64_t)nonzeros);
  cb_text_add(&builder->line, " (split %s", split->name);
  cb_build_settings_fact(&builder->line, dividing->node);
  const enum cb_status s = split->divide(dividing->part, dividing->subtree->options, &builder->plan->target,
                                         &dividing->division, &builder->line, diag);
  if (s) return s;
  dividing->facts_end = builder->line.length;
  count_parts(dividing);
  dividing->final = choose_final(dividing);
  builder->taken |= dividing->nonzeros[dividing->last] < nonzeros;
  return CB_OK;
}

static int has_split(const struct cb_node *node) {
  for (int i = 0; node->choices && node->choices[i]; i++)
    if (has_split(node->choices[i])) return 1;
  return node->split != NULL;
}

/* A split that refuses takes nothing. That is the recipe's refusal when nothing was taken before and nothing can be
 * taken behind it: what it has left would be the plan of another recipe. */
static enum cb_status note_refusal(struct cb_builder *builder, const struct dividing *dividing, enum cb_status s,
                                   struct cb_diag *diag) {
  if (s != CB_ERR_UNSUPPORTED) return s;
  if (!builder->refusal.status) builder->refusal = *diag;
  if (!builder->taken && !has_split(dividing->node->parts[dividing->last])) {
    *diag = builder->refusal;
    return builder->refusal.status;
  }
  *diag = (struct cb_diag){0};
  return CB_OK;
}

/* Whether each part shall write its own rows, instead of one all and the others adding to them: then no part need wait
 * for another. */
static int parts_own_rows(const struct cb_builder *builder, const struct dividing *dividing) {
  const struct cb_node *node = dividing->node;
  return node->split->by_rows && dividing->subtree->commit != CB_COMMIT_ADD &&
         dividing->subtree->options->fuse != CB_OFF && !builder->plan->atomics &&
         dividing->nonzeros[0] < dividing->part->csr->nnz && minds_own_rows(node);
}

static enum cb_status make_own_rows(const struct cb_builder *builder, struct dividing *dividing, struct cb_diag *diag) {
  const int64_t rows = dividing->part->csr->rows;
  if (!parts_own_rows(builder, dividing)) return CB_OK;
  dividing->own = cb_alloc((size_t)cb_divide_up(rows, 32), sizeof *dividing->own);
  return dividing->own ? CB_OK : cb_fail_memory(diag, "rows of a split", (uint64_t)rows / 8);
}

static int has_nonzeros_behind(const struct dividing *dividing, int part) {
  for (int i = part + 1; i <= dividing->last; i++)
    if (dividing->nonzeros[i]) return 1;
  return 0;
}

/* What part `i` is told. */
static struct cb_subtree subtree_of(struct cb_builder *builder, const struct dividing *dividing, int i) {
  struct cb_subtree subtree = *dividing->subtree;
  if (dividing->own) {
    find_own_rows(dividing->own, dividing->subtree->own_rows, dividing->part->csr, dividing->division.part_of, i);
    subtree.own_rows = dividing->own;
    subtree.rows = ++builder->last_rows;
    subtree.more_follow = 0;
    if (i) subtree.commit = CB_COMMIT_OWN;
    return subtree;
  }
  subtree.more_follow |= has_nonzeros_behind(dividing, i);
  if (subtree.commit != CB_COMMIT_ADD) subtree.commit = i == dividing->final ? CB_COMMIT_FINAL : CB_COMMIT_ADD;
  return subtree;
}

/* An empty part needs no region, unless it is the one that writes y. */
static int needs_region(const struct dividing *dividing, int part) {
  const int writer = dividing->own ? 0 : dividing->final;
  return dividing->nonzeros[part] || (part == writer && dividing->subtree->commit != CB_COMMIT_ADD);
}

static enum cb_status build_part(struct cb_builder *builder, struct dividing *dividing, int part,
                                 struct cb_diag *diag) {
  struct cb_region_work work = {0};
  struct cb_found *found = &dividing->division.found[part];
  enum cb_status s = CB_OK;
  if (dividing->division.whole) work.part.csr = dividing->part->csr;
  else s = cb_part_select(&work, dividing->part, dividing->division.part_of, part, builder->assignment->wide, diag);
  if (!s) {
    const struct cb_subtree subtree = subtree_of(builder, dividing, part);
    work.part.found = work.part_found = *found;
    *found = (struct cb_found){0};
    s = cb_build_node(builder, dividing->node->parts[part], &subtree, &work, diag);
  }
  cb_region_work_release(&work);
  return s;
}

/* How neighbouring parts share launches, if they do. */
static void add_fused_fact(struct cb_builder *builder, const struct dividing *dividing) {
  static const char *const words[] = {[CB_SEPARATE] = "separate", [CB_IN_TURN] = "in-turn", [CB_BESIDE] = "beside"};
  const struct cb_plan *plan = builder->plan;
  const int *first = dividing->first_region;
  struct cb_text fact = {0};
  int fused = 0;
  cb_text_add_string(&fact, " (fused");
  for (int i = 1; i <= dividing->last; i++) {
    if (first[i] == first[0] || first[i] == first[i + 1]) continue; /* no part before it, or no such part */
    const enum cb_joining joining = plan->regions[first[i]].joining;
    cb_text_add(&fact, " %s", words[joining]);
    fused |= joining != CB_SEPARATE;
  }
  cb_text_add_string(&fact, ")");
  if (fused) insert(&builder->line, dividing->facts_end, cb_text_string(&fact));
  builder->line.failed |= fact.failed;
  cb_text_release(&fact);
}

static enum cb_status build_parts(struct cb_builder *builder, struct dividing *dividing, struct cb_diag *diag) {
  enum cb_status s = make_own_rows(builder, dividing, diag);
  for (int i = 0; i <= dividing->last && !s; i++) {
    dividing->first_region[i] = builder->plan->regions_count;
    if (needs_region(dividing, i)) s = build_part(builder, dividing, i, diag);
    dividing->first_region[i + 1] = builder->plan->regions_count;
  }
  if (!s) add_fused_fact(builder, dividing);
  cb_text_add_string(&builder->line, ")");
  cb_free(dividing->own);
  return s;
}

/* Whether all nonzeros are the last part's, which is then built in the node's place. */
static int takes_nothing(const struct dividing *dividing) {
  return dividing->nonzeros[dividing->last] == dividing->part->csr->nnz &&
         (dividing->final == dividing->last || dividing->subtree->commit == CB_COMMIT_ADD);
}

static enum cb_status build_split(struct cb_builder *builder, const struct cb_node *node,
                                  const struct cb_subtree *subtree, struct cb_region_work *work,
                                  struct cb_diag *diag) {
  struct dividing dividing = {.node = node, .subtree = subtree, .part = &work->part};
  enum cb_status s = divide(builder, &dividing, diag);
  const int refused = s != CB_OK;
  if (refused) s = note_refusal(builder, &dividing, s, diag);
  if (!s && !refused && !takes_nothing(&dividing)) {
    s = build_parts(builder, &dividing, diag);
    release_division(&dividing.division);
    return s;
  }
  release_division(&dividing.division);
  cb_build_cut_line(&builder->line, dividing.line_at);
  return s ? s : cb_build_node(builder, node->parts[node->split->parts - 1], subtree, work, diag);
}

/* ---- nodes */

/* What concerns the whole plan cannot be otherwise in a part of it. */
static int is_of_the_plan(const struct cb_options *own, const struct cb_options *all) {
  return own->type == all->type && own->form == all->form && own->semiring == all->semiring &&
         own->values == all->values && own->symmetric == all->symmetric && own->atomics == all->atomics &&
         own->index_limit == all->index_limit && own->recipe == all->recipe;
}

static enum cb_status apply_settings(struct cb_options *own, const struct cb_builder *builder,
                                     const struct cb_node *node, const struct cb_options *all, struct cb_diag *diag) {
  *own = *all;
  enum cb_status s = cb_options_apply(own, node->settings, diag);
  if (!s) s = cb_options_check(own, diag);
  if (s || is_of_the_plan(own, all)) return s;
  return cb_fail(diag, CB_ERR_INTERNAL, "recipe '%s' sets '%s' for a part of the matrix", builder->plan->recipe,
                 node->settings);
}

static enum cb_status build_any(struct cb_builder *builder, const struct cb_node *node,
                                const struct cb_subtree *subtree, struct cb_region_work *work, struct cb_diag *diag) {
  if (node->layout) return build_leaf(builder, node, subtree, work, diag);
  if (node->choices) return cb_build_choice(builder, node, subtree, work, diag);
  return build_split(builder, node, subtree, work, diag);
}

enum cb_status cb_build_node(struct cb_builder *builder, const struct cb_node *node, const struct cb_subtree *subtree,
                             struct cb_region_work *work, struct cb_diag *diag) {
  struct cb_options own;
  struct cb_subtree with = *subtree;
  if (!node->settings) return build_any(builder, node, subtree, work, diag);
  const enum cb_status s = apply_settings(&own, builder, node, subtree->options, diag);
  with.options = &own;
  return s ? s : build_any(builder, node, &with, work, diag);
}
