// SPDX-License-Identifier: Apache-2.0
/* Evaluating trees: see forest.h. */
#include "analysis/choose/forest.h"

static int is_leaf(const struct cb_tree_node *node) {
  return node->feature < 0;
}

/* Nodes lead to later ones, so that every way ends. */
static int check_tree(const struct cb_forest *forest, const struct cb_tree *tree, int features, int outputs) {
  if (tree->output < -1 || tree->output >= outputs || tree->nodes < 1) return 0;
  if (tree->first < 0 || tree->first > forest->nodes_count - tree->nodes) return 0;
  for (int i = 0; i < tree->nodes; i++) {
    const struct cb_tree_node *node = &forest->nodes[tree->first + i];
    if (is_leaf(node)) continue;
    if (node->feature >= features || node->next <= i || node->next + 1 >= tree->nodes) return 0;
  }
  return 1;
}

int cb_forest_check(const struct cb_forest *forest, int features, int outputs) {
  for (int i = 0; i < forest->trees_count; i++)
    if (!check_tree(forest, &forest->trees[i], features, outputs)) return 0;
  return forest->trees_count > 0;
}

int cb_forest_leaf(const struct cb_forest *forest, const struct cb_tree *tree, const int32_t *features) {
  const struct cb_tree_node *nodes = forest->nodes + tree->first, *node = nodes;
  while (!is_leaf(node)) node = nodes + node->next + (features[node->feature] > node->value);
  return node->value;
}
