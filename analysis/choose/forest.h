// SPDX-License-Identifier: Apache-2.0
/* Decision trees as tables of integers, which bench/train writes: every machine computes the same. */
#ifndef CBGEN_ANALYSIS_CHOOSE_FOREST_H
#define CBGEN_ANALYSIS_CHOOSE_FOREST_H

#include <stdint.h>

/* A node asks whether feature <= value: then comes node `next`, else the one behind it; both stand behind the node.
 * A leaf has feature -1, and `value` is what it adds. */
struct cb_tree_node {
  int16_t feature, value;
  int16_t next; /* from the tree's first node on */
};
struct cb_tree {
  int16_t output; /* what its leaf is added to; -1: to all */
  int16_t nodes;
  int32_t first;
};
struct cb_forest {
  const struct cb_tree *trees;
  const struct cb_tree_node *nodes;
  int trees_count, nodes_count;
};

/* Whether there is a tree, and every node and every tree leads somewhere: to one of so many features and outputs. */
int cb_forest_check(const struct cb_forest *forest, int features, int outputs);

/* What a tree's leaf adds. Of a forest that was checked. */
int cb_forest_leaf(const struct cb_forest *forest, const struct cb_tree *tree, const int32_t *features);

#endif
