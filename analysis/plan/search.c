// SPDX-License-Identifier: Apache-2.0
/* The search over recipes, and the entry to all of it: see plan.h. */
#include "analysis/plan/builder.h"
#include "analysis/plan/cost.h"
#include "analysis/plan/symmetry.h"

#include "analysis/choose/choose.h"
#include "base/integers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Every nonzero goes to one of the node's layouts: none is cheaper than the cheapest of them. */
int64_t cb_node_least_ns(const struct cb_node *node, const struct cb_csr *csr, const struct cb_target *target,
                         struct cb_types types) {
  const struct cb_layout *layout = node->layout ? cb_layout_find(node->layout) : NULL;
  if (layout) return cb_layout_least_ns(layout, csr, target, types);
  int64_t least = INT64_MAX;
  for (int i = 0; node->split && i < node->split->parts; i++)
    least = cb_smaller(least, cb_node_least_ns(node->parts[i], csr, target, types));
  for (int i = 0; node->choices && node->choices[i]; i++)
    least = cb_smaller(least, cb_node_least_ns(node->choices[i], csr, target, types));
  return least;
}

/* Fixed values may take less than any bound knows. */
int cb_search_may_prune(const struct cb_options *options) {
  return options->search != CB_SEARCH_ALL && options->values != CB_VALUES_FIXED;
}

int cb_plan_is_pruned(const char *name, const struct cb_csr *csr, const struct cb_target *target,
                      const struct cb_options *options, int64_t limit_ns, char *refusal, size_t size) {
  const struct cb_recipe *recipe;
  if (cb_recipe_find(&recipe, name, NULL)) return 0;
  if (!cb_search_may_prune(options) || recipe->is_always_planned || !recipe->root || !csr->rows) return 0;
  const struct cb_types types = cb_precision_types((enum cb_precision)options->type);
  const int64_t least = cb_node_least_ns(recipe->root, csr, target, types);
  if (least < limit_ns) return 0;
  snprintf(refusal, size, "not tried: it would take %.2f us at least, and only what may take less than %.2f us is planned",
           1e-3 * (double)least, 1e-3 * (double)limit_ns);
  return 1;
}

/* Whether the recipe itself says that it cannot win. */
static int is_in_vain(const struct cb_recipe *recipe, const struct cb_csr *csr, const struct cb_options *options,
                      char *refusal, size_t size) {
  const int asks = recipe->against && !csr->remote && options->search != CB_SEARCH_ALL;
  const char *reason = asks ? recipe->against(csr) : NULL;
  if (reason) snprintf(refusal, size, "not tried: %s", reason);
  return reason != NULL;
}

/* The faster one. Of two that take about as long, where the launch hides most of the work, the one that stores less. */
int cb_search_is_better(const struct cb_cost *cost, int64_t bytes, const struct cb_cost *best, int64_t best_bytes) {
  enum { ABOUT = 32, CLEARLY = 8 }; /* these parts of the time, and of the bytes */
  const int64_t apart = cost->ns - best->ns, gpu_apart = cost->gpu_ns - best->gpu_ns;
  const int alike = llabs(apart) < best->ns / ABOUT && llabs(gpu_apart) < best->gpu_ns / CLEARLY;
  if (alike && bytes + bytes / CLEARLY < best_bytes) return 1;
  if (alike && best_bytes + best_bytes / CLEARLY < bytes) return 0;
  return apart < 0;
}

/* Of matrices that are not square linear programs are made, of others solvers. */
static int recipe_suits(const struct cb_recipe *recipe, const struct cb_options *options, int64_t rows, int64_t cols) {
  if (rows != cols) return recipe->commits_in_order;
  return recipe->suits_programs || (options->one_meeting == CB_ON && recipe->commits_in_order);
}

/* How much slower what suits may be than a product of so many ns. Linear programs of small products gain nothing: there
 * the chain of a row's commit counts, which is longest in `merge` (5000 x 20000 6.8 us an iteration for 6.0 by `sell`,
 * 2400 x 55000, 4 us a product, 9.3 for 9.6, 20000 x 80000, 7.8 us, 17.4 for 20.4). */
static int64_t loss_of(const struct cb_options *options, int64_t rows, int64_t cols, int64_t ns) {
  enum { LEAST = 5000 };
  return rows == cols || ns >= LEAST ? options->program_loss : 0;
}

static int suits_programs(const char *name, const struct cb_options *options, int64_t rows, int64_t cols) {
  const struct cb_recipe *recipe;
  return !cb_recipe_find(&recipe, name, NULL) && recipe_suits(recipe, options, rows, cols);
}

/* Whether neighbouring threads commit neighbouring rows: not where these lie in the order of their lengths. */
static int commits_in_order(const struct cb_plan *plan) {
  for (int i = 0; i < plan->regions_count; i++)
    for (int k = 0; k < plan->regions[i].facts_count; k++)
      if (!strcmp(plan->regions[i].facts[k].key, "sorted")) return 0;
  return 1;
}

/* The recipe does, unless this matrix takes several launches; or, for solvers, has rows of which several threads bring
 * segments. With one meeting in an iteration, seven vectors and more are read and written where the product commits
 * rows: cg of four real matrices takes 5.6 to 9.1 us an iteration by merge for 6.8 to 10.5 by sorted sell; bicgstab and
 * minres are faster by sell. Of large systems, which meet twice, vectors in shared memory are worth more. */
static int plan_suits(const struct cb_plan *plan, const struct cb_options *options) {
  enum { SMALL = 32 << 20 };
  const struct cb_recipe *recipe;
  const int is_square = plan->rows == plan->cols;
  if (cb_recipe_find(&recipe, plan->recipe, NULL) || plan->launches_count != 1 || (is_square && plan->carry_sums))
    return 0;
  if (!is_square || options->one_meeting != CB_ON) return recipe_suits(recipe, options, plan->rows, plan->cols);
  return cb_plan_bytes(plan) <= SMALL ? commits_in_order(plan) && recipe_suits(recipe, options, 1, 1)
                                      : recipe->suits_programs;
}

/* Several vectors are more than what is stored, and no launch hides them: road-like 2000^2 with 16 of them takes 342 us
 * as patterns, which are predicted to take 3 % longer than diagonals and store a third less, and 307 as diagonals. */
static int64_t bytes_with_vectors(const struct cb_plan *plan) {
  return cb_plan_bytes(plan) + (plan->vectors - 1) * cb_cost_vector_bytes(plan);
}

static int is_better(const struct cb_plan *plan, const struct cb_plan *best, const struct cb_options *options) {
  const int plan_does = plan_suits(plan, options), best_does = plan_suits(best, options);
  const int64_t loss = loss_of(options, plan->rows, plan->cols, best->cost.ns);
  if (loss && plan_does != best_does) return plan->cost.ns - plan_does * loss < best->cost.ns - best_does * loss;
  return cb_search_is_better(&plan->cost, bytes_with_vectors(plan), &best->cost, bytes_with_vectors(best));
}

/* The recipe's plan, unless it takes columns that are not on the host. */
static enum cb_status build(struct cb_plan **plan, struct cb_assignment **assignment, const struct cb_recipe *recipe,
                            const struct cb_csr *csr, const struct cb_target *target, const struct cb_options *options,
                            struct cb_diag *diag) {
  if (csr->remote && !recipe->is_packed)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "recipe '%s' takes columns on the host", recipe->name);
  return cb_build_recipe(plan, assignment, recipe, csr, target, options, diag);
}

static enum cb_status search(struct cb_plan **best, struct cb_assignment **best_assignment, const struct cb_csr *csr,
                             const struct cb_target *target, const struct cb_options *options,
                             struct cb_diag *diag) {
  struct cb_candidate candidates[CB_MAX_CANDIDATES] = {0};
  const struct cb_recipe *tried;
  const int vectors = cb_options_vectors(options);
  int count = 0;
  enum cb_status s = CB_OK;
  for (; count < CB_MAX_CANDIDATES && (tried = cb_recipe_searched(count, csr->nnz, vectors)) && !s; count++) {
    struct cb_candidate *candidate = &candidates[count];
    struct cb_plan *plan = NULL;
    struct cb_assignment *assignment = NULL;
    candidate->recipe = tried->name;
    const int may_lose = *best && !csr->remote; /* bounds look at columns */
    const int suits = recipe_suits(tried, options, csr->rows, csr->cols);
    const int64_t best_ns = may_lose ? (*best)->cost.ns : 0;
    const int64_t limit_ns = best_ns + (may_lose && suits ? loss_of(options, csr->rows, csr->cols, best_ns) : 0);
    if (may_lose && cb_plan_is_pruned(tried->name, csr, target, options, limit_ns, candidate->refusal,
                                      sizeof candidate->refusal))
      continue;
    if (is_in_vain(tried, csr, options, candidate->refusal, sizeof candidate->refusal)) continue;
    s = build(&plan, &assignment, tried, csr, target, options, diag);
    if (!s) *candidate = cb_plan_candidate(plan);
    if (cb_is_refusal(s)) {
      snprintf(candidate->refusal, sizeof candidate->refusal, "%.239s", diag->message);
      diag->message[0] = 0; /* no failure of the search */
      s = CB_OK;
      continue;
    }
    if (s) break;
    const int better = !*best || is_better(plan, *best, options);
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

/* ---- by a profile */

/* Whether a profile knows what recipes take: values are data, and nothing but the matrix shapes the layouts. */
int cb_search_is_by_profile(const struct cb_options *options) {
  struct cb_options usual;
  cb_options_default(&usual);
  const int asked = options->search == CB_SEARCH_PROFILE || options->search == CB_SEARCH_READY;
  const int promised = cb_promises_symmetry(options);
  return asked && !promised && options->type != CB_PRECISION_SPLIT_F64 && !cb_precision_is_complex(options->type) &&
         options->values == usual.values &&
         options->semiring == usual.semiring && options->atomics == usual.atomics && options->commit == usual.commit &&
         options->fuse == usual.fuse && options->long_row == usual.long_row &&
         !memcmp(options->settings, usual.settings, sizeof usual.settings);
}

static void list_ranks(struct cb_candidate *candidates, const struct cb_choice *choice) {
  memset(candidates, 0, CB_CHOICE_RECIPES * sizeof *candidates);
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) {
    const struct cb_choice_rank *rank = &choice->ranks[i];
    candidates[i].recipe = rank->recipe;
    candidates[i].cost.ns = candidates[i].cost.gpu_ns = rank->ns;
    if (rank->against)
      snprintf(candidates[i].refusal, sizeof candidates[i].refusal, "not tried: %s, by the profile", rank->against);
  }
}

/* A profile's ranks, of which one becomes the plan. */
struct ranked {
  struct cb_choice choice;
  struct cb_candidate candidates[CB_CHOICE_RECIPES];
  const struct cb_choice_rank *passed; /* the fastest that may not be taken; NULL: none was passed over */
};

/* The profile's times are those of one vector. Several take one pass and what X and Y are more, or as many products; of
 * equal times those that were the faster ones by one vector come first. */
static enum cb_status rank_for_vectors(struct cb_choice *choice, const struct cb_csr *csr,
                                       const struct cb_target *target, const struct cb_options *options,
                                       struct cb_diag *diag) {
  const struct cb_types types = cb_precision_types((enum cb_precision)options->type);
  const int64_t bytes = (csr->rows + csr->cols) * (int64_t)cb_type_size(types.vector);
  const int64_t more_ns = cb_cost_stream_ns((options->vectors - 1) * bytes, target);
  enum cb_status s = CB_OK;
  for (int i = 0; i < choice->count && !s; i++) {
    const struct cb_recipe *recipe;
    struct cb_choice_rank rank = choice->ranks[i];
    s = cb_recipe_find(&recipe, rank.recipe, diag);
    if (s) return s;
    rank.ns = recipe->takes_vectors ? rank.ns + more_ns : rank.ns * options->vectors;
    int at = i;
    for (; at > 0 && choice->ranks[at - 1].ns > rank.ns; at--) choice->ranks[at] = choice->ranks[at - 1];
    choice->ranks[at] = rank;
  }
  return s;
}

/* Whether the rank suits programs, and is not slower than the fastest by more than it may be. */
static int may_suit(const struct cb_choice *choice, int at, const struct cb_csr *csr,
                    const struct cb_options *options) {
  const int64_t least = choice->ranks[0].ns, loss = loss_of(options, csr->rows, csr->cols, least);
  return loss && suits_programs(choice->ranks[at].recipe, options, csr->rows, csr->cols) &&
         choice->ranks[at].ns - least <= loss;
}

/* Which ranks may be taken. */
enum fitness { ANY, PACKED, READY };

static int is_fit(const struct cb_choice *choice, const struct cb_choice_rank *rank, enum fitness fitness) {
  const struct cb_recipe *recipe;
  if (fitness == ANY) return 1;
  if (cb_recipe_find(&recipe, rank->recipe, NULL)) return 0;
  if (fitness != READY) return recipe->is_packed;
  return recipe->is_ready && !(choice->has_long_order && recipe->orders_rows);
}

static enum cb_status try_rank(struct cb_plan **plan, struct cb_assignment **assignment, struct ranked *ranked, int at,
                               const struct cb_csr *csr, const struct cb_target *target,
                               const struct cb_options *options, struct cb_diag *diag) {
  struct cb_candidate *candidate = &ranked->candidates[at];
  const struct cb_recipe *recipe;
  enum cb_status s = cb_recipe_find(&recipe, ranked->choice.ranks[at].recipe, diag);
  if (!s) s = build(plan, assignment, recipe, csr, target, options, diag);
  if (!cb_is_refusal(s)) return s;
  if (csr->remote && s == CB_ERR_UNSUPPORTED && !ranked->passed) ranked->passed = &ranked->choice.ranks[at];
  snprintf(candidate->refusal, sizeof candidate->refusal, "%.239s", diag->message);
  diag->message[0] = 0; /* no failure of the choice */
  return CB_OK;
}

/* The first of the ranks that does not refuse the matrix is planned: the first of those that are fit, as long as it is
 * slower by no more than the loss that is permitted than one that is not; else none, and *plan stays NULL. */
static enum cb_status try_ranks(struct cb_plan **plan, struct cb_assignment **assignment, struct ranked *ranked,
                                enum fitness fitness, const struct cb_csr *csr, const struct cb_target *target,
                                const struct cb_options *options, struct cb_diag *diag) {
  const int64_t loss = options->search == CB_SEARCH_READY ? options->ready_loss : 0;
  enum cb_status s = CB_OK;
  ranked->passed = NULL;
  list_ranks(ranked->candidates, &ranked->choice);
  for (int i = 0; i < ranked->choice.count && !s && !*plan; i++) {
    const struct cb_choice_rank *rank = &ranked->choice.ranks[i];
    if (fitness != ANY && ranked->passed && rank->ns - ranked->passed->ns > loss) break;
    if (is_fit(&ranked->choice, rank, fitness)) {
      s = try_rank(plan, assignment, ranked, i, csr, target, options, diag);
      continue;
    }
    if (!ranked->passed) ranked->passed = rank;
    snprintf(ranked->candidates[i].refusal, sizeof ranked->candidates[i].refusal, "not tried: it takes longer to set up");
  }
  return s;
}

/* Whether neighbouring rows are neighbouring threads' by that rank, at a loss that is small in any case. */
static int keeps_order(const struct cb_choice *choice, int at) {
  enum { LOSS = 250 };
  const struct cb_recipe *recipe;
  return !cb_recipe_find(&recipe, choice->ranks[at].recipe, NULL) && recipe->commits_in_order &&
         choice->ranks[at].ns - choice->ranks[0].ns <= LOSS;
}

/* A plan of the fastest rank that suits programs; *plan stays NULL where none does, or all lose too much. Of square
 * matrices first those that keep the order of rows: by them vectors of a small system stay where they are used. */
static enum cb_status try_suited(struct cb_plan **plan, struct cb_assignment **assignment, struct ranked *ranked,
                                 const struct cb_csr *csr, const struct cb_target *target,
                                 const struct cb_options *options, struct cb_diag *diag) {
  const int count = ranked->choice.count, first = csr->rows == csr->cols ? 0 : count;
  enum cb_status s = CB_OK;
  list_ranks(ranked->candidates, &ranked->choice);
  for (int turn = first; turn < 2 * count && !s && !*plan && options->program_loss; turn++) {
    const int i = turn % count;
    if (!may_suit(&ranked->choice, i, csr, options) || (turn < count && !keeps_order(&ranked->choice, i))) continue;
    s = try_rank(plan, assignment, ranked, i, csr, target, options, diag);
    if (s || !*plan || plan_suits(*plan, options)) continue;
    cb_plan_free(*plan);
    cb_assignment_free(*assignment);
    *plan = NULL;
    *assignment = NULL;
  }
  return s;
}

/* One of the ranks is planned, and no other. Where all that are ready lose too much, one that is packed on the device
 * all the same comes before what takes columns on the host. CB_ERR_UNSUPPORTED, where columns are remote: the host
 * shall plan. */
static enum cb_status plan_ranked(struct cb_plan **best, struct cb_assignment **assignment, const struct cb_csr *csr,
                                  const struct cb_target *target, const struct cb_options *options,
                                  struct cb_diag *diag) {
  struct ranked ranked = {.passed = NULL};
  const struct cb_choice *choice = &ranked.choice;
  const int ready = csr->remote || options->search == CB_SEARCH_READY;
  enum cb_status s =
      cb_choose(&ranked.choice, csr, target, cb_precision_types((enum cb_precision)options->type), diag);
  if (!s && options->vectors > 1) s = rank_for_vectors(&ranked.choice, csr, target, options, diag);
  if (!s) s = try_suited(best, assignment, &ranked, csr, target, options, diag);
  if (!s && !*best && ready) s = try_ranks(best, assignment, &ranked, READY, csr, target, options, diag);
  if (!s && !*best && csr->remote) s = try_ranks(best, assignment, &ranked, PACKED, csr, target, options, diag);
  if (!s && !*best && csr->remote)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "recipe '%s' takes columns on the host",
                   ranked.passed ? ranked.passed->recipe : "auto");
  if (!s && !*best) s = try_ranks(best, assignment, &ranked, ANY, csr, target, options, diag);
  if (s || !*best) return s ? s : cb_fail(diag, CB_ERR_LIMIT, "no recipe fits this matrix; use a named one");
  for (int i = 0; i < choice->count; i++) {
    if (strcmp(ranked.candidates[i].recipe, (*best)->recipe)) continue;
    ranked.candidates[i] = cb_plan_candidate(*best);
    ranked.candidates[i].cost.ns = choice->ranks[i].ns;
  }
  (*best)->is_chosen_by_profile = 1;
  (*best)->candidates_count = CB_CHOICE_RECIPES;
  memcpy((*best)->candidates, ranked.candidates, sizeof ranked.candidates);
  return CB_OK;
}

/* With options that know whether half of the matrix may be stored. */
static enum cb_status build_any(struct cb_plan **plan, struct cb_assignment **assignment, const struct cb_csr *csr,
                                const struct cb_target *target, const struct cb_options *options,
                                struct cb_diag *diag) {
  const struct cb_recipe *recipe = NULL;
  enum cb_status s = cb_recipe_find(&recipe, options->recipe, diag);
  if (!s && !recipe->root && options->tune == CB_TUNE_OFF)
    s = cb_recipe_find(&recipe, cb_recipe_unsearched, diag);
  if (!s && recipe->root) return build(plan, assignment, recipe, csr, target, options, diag);
  const int ranked = !s && cb_search_is_by_profile(options);
  return s ? s : (ranked ? plan_ranked : search)(plan, assignment, csr, target, options, diag);
}

/* The matrix's values, if it has any, are complex when the types are. */
static enum cb_status check_values(const struct cb_csr *csr, const struct cb_options *options, struct cb_diag *diag) {
  const int wanted = cb_precision_is_complex(options->type);
  if (!csr->values || csr->is_complex == wanted) return CB_OK;
  if (wanted) return cb_fail(diag, CB_ERR_INTERNAL, "values of a real matrix were not made complex");
  return cb_fail(diag, CB_ERR_ARGUMENT, "the matrix has complex values: 'type' is %s; choose c128 or c64",
                 cb_precision_names[options->type]);
}

enum cb_status cb_plan_build(struct cb_plan **plan, struct cb_assignment **assignment, const struct cb_csr *csr,
                             const struct cb_target *target, const struct cb_options *options,
                             struct cb_diag *diag) {
  struct cb_diag own = {0}; /* a search reads messages */
  struct cb_options resolved = *options;
  enum cb_symmetry_option symmetry;
  *plan = NULL;
  *assignment = NULL;
  if (!diag) diag = &own;
  enum cb_status s = cb_options_check(options, diag);
  if (!s) s = check_values(csr, options, diag);
  if (!s) s = cb_symmetry_resolve(&symmetry, csr, target, options, diag);
  if (!s) resolved.symmetric = symmetry;
  if (!s) s = build_any(plan, assignment, csr, target, &resolved, diag);
  if (s) {
    cb_assignment_free(*assignment);
    cb_plan_free(*plan);
    *plan = NULL;
    *assignment = NULL;
  }
  return s;
}
