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

void cb_choice_score(struct cb_choice_scores *scores, const struct cb_choice_table *table,
                     const struct cb_choice_features *features, const struct cb_choice_times *model) {
  int64_t of_all = 0, least = INT64_MAX, base[CB_CHOICE_RECIPES];
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) {
    base[i] = cb_choice_log2(model->ns[i]);
    if (model->ns[i]) least = cb_smaller(least, base[i]);
  }
  const struct cb_forest *forest = table ? &table->forest : NULL;
  for (int i = 0; forest && i < forest->trees_count; i++) /* what recipes with trees of their own begin with */
    if (forest->trees[i].output >= 0) base[forest->trees[i].output] = least < INT64_MAX ? least : 0;
  for (int i = 0; forest && i < forest->trees_count; i++) {
    const struct cb_tree *tree = &forest->trees[i];
    if (tree->output >= 0 && !model->ns[tree->output]) continue; /* of no use: the recipe has no score */
    *(tree->output < 0 ? &of_all : &base[tree->output]) += cb_forest_leaf(forest, tree, features->of);
  }
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) scores->of[i] = model->ns[i] ? base[i] + of_all : 0;
}
