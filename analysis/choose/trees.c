// SPDX-License-Identifier: Apache-2.0
/* The scores of recipes: see predictor.h. */
#include "analysis/choose/predictor.h"

#include "base/integers.h"

#include <string.h>

const struct cb_choice_table *cb_choice_table_find(const char *model) {
  for (const struct cb_choice_table *table = cb_choice_tables; table->model; table++)
    if (!strcmp(table->model, model)) return table;
  return NULL;
}

/* Where the model has a recipe far behind, its own time stands: of such recipes trees have seen too few that were fast
 * all the same, and without them the worst choice for families that are left out of training takes 3 to 6 times as long
 * as the fastest, with them 2.6 times. But cb takes from 0.4 to 1.1 of its time in the model. */
enum { FAR = 900 /* a factor of 1.85, in steps of a logarithm */, CB = 7 };

static void add_leaves(int64_t *of_all, int64_t *own, const int *is_near, const struct cb_forest *forest,
                       const struct cb_choice_features *features) {
  for (int i = 0; i < forest->trees_count; i++) {
    const struct cb_tree *tree = &forest->trees[i];
    if (tree->output >= 0 && !is_near[tree->output]) continue;
    *(tree->output < 0 ? of_all : &own[tree->output]) += cb_forest_leaf(forest, tree, features->of);
  }
}

void cb_choice_score(struct cb_choice_scores *scores, const struct cb_choice_table *table,
                     const struct cb_choice_features *features, const struct cb_choice_times *model) {
  int64_t of_all = 0, least = INT64_MAX, own[CB_CHOICE_RECIPES];
  int is_near[CB_CHOICE_RECIPES];
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) {
    own[i] = cb_choice_log2(model->ns[i]);
    if (model->ns[i]) least = cb_smaller(least, own[i]);
  }
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) is_near[i] = model->ns[i] && (i == CB || own[i] <= least + FAR);
  const struct cb_forest *forest = table ? &table->forest : NULL;
  for (int i = 0; forest && i < forest->trees_count; i++) { /* what recipes with trees of their own begin with */
    const int recipe = forest->trees[i].output;
    if (recipe >= 0 && is_near[recipe]) own[recipe] = least;
  }
  if (forest) add_leaves(&of_all, own, is_near, forest, features);
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) scores->of[i] = model->ns[i] ? own[i] + of_all : 0;
}
