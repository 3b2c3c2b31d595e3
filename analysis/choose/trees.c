// SPDX-License-Identifier: Apache-2.0
/* Evaluating trees: see predictor.h. */
#include "analysis/choose/predictor.h"

#include "base/integers.h"

#include <string.h>

static int is_leaf(const struct cb_choice_node *node) {
  return node->feature < 0;
}

/* Nodes lead to later ones, so that every way ends. */
static int check_tree(const struct cb_choice_table *table, const struct cb_choice_tree *tree) {
  if (tree->recipe < -1 || tree->recipe >= CB_CHOICE_RECIPES || tree->nodes < 1) return 0;
  if (tree->first < 0 || tree->first > table->nodes_count - tree->nodes) return 0;
  for (int i = 0; i < tree->nodes; i++) {
    const struct cb_choice_node *node = &table->nodes[tree->first + i];
    if (is_leaf(node)) continue;
    if (node->feature >= CB_CHOICE_FEATURES || node->next <= i || node->next + 1 >= tree->nodes) return 0;
  }
  return 1;
}

int cb_choice_table_check(const struct cb_choice_table *table) {
  for (int i = 0; i < table->trees_count; i++)
    if (!check_tree(table, &table->trees[i])) return 0;
  return table->trees_count > 0;
}

const struct cb_choice_table *cb_choice_table_find(const char *model) {
  for (const struct cb_choice_table *table = cb_choice_tables; table->model; table++)
    if (!strcmp(table->model, model)) return cb_choice_table_check(table) ? table : NULL;
  return NULL;
}

static int leaf_of(const struct cb_choice_table *table, const struct cb_choice_tree *tree,
                   const struct cb_choice_features *features) {
  const struct cb_choice_node *nodes = table->nodes + tree->first, *node = nodes;
  while (!is_leaf(node)) node = nodes + node->next + (features->of[node->feature] > node->value);
  return node->value;
}

void cb_choice_score(struct cb_choice_scores *scores, const struct cb_choice_table *table,
                     const struct cb_choice_features *features, const struct cb_choice_times *model) {
  int64_t of_all = 0, least = INT64_MAX, base[CB_CHOICE_RECIPES];
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) {
    base[i] = cb_choice_log2(model->ns[i]);
    if (model->ns[i]) least = cb_smaller(least, base[i]);
  }
  for (int i = 0; table && i < table->trees_count; i++) /* what recipes with trees of their own begin with */
    if (table->trees[i].recipe >= 0) base[table->trees[i].recipe] = least < INT64_MAX ? least : 0;
  for (int i = 0; table && i < table->trees_count; i++) {
    const struct cb_choice_tree *tree = &table->trees[i];
    *(tree->recipe < 0 ? &of_all : &base[tree->recipe]) += leaf_of(table, tree, features);
  }
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) scores->of[i] = model->ns[i] ? base[i] + of_all : 0;
}
