// SPDX-License-Identifier: Apache-2.0
/* What a caller may choose about natural blocks. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_BLOCKS_OPTIONS_H
#define CBGEN_ANALYSIS_LAYOUTS_BLOCKS_OPTIONS_H

#include "analysis/plan/recipe.h"

/* Rows of the table, and places in builder->settings. */
enum {
  BLOCKS_SIZE, /* 0: the matrix's best, else 1 + index in the table of sizes (analysis/tiles.h) */
  BLOCKS_FILL,
  BLOCKS_LANES,
  BLOCKS_BATCH,
  BLOCKS_ONCE,
  BLOCKS_OPTIONS
};
_Static_assert((int)BLOCKS_OPTIONS <= CB_MAX_SETTINGS, "a place for each");

extern const struct cb_option cb_blocks_options[BLOCKS_OPTIONS];
extern const struct cb_recipe cb_blocks_recipes[];
extern const struct cb_split cb_split_tiles;
extern const struct cb_layout cb_layout_blocks;

#endif
