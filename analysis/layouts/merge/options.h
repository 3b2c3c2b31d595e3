// SPDX-License-Identifier: Apache-2.0
/* What a caller may choose about equal shares of nonzeros. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_MERGE_OPTIONS_H
#define CBGEN_ANALYSIS_LAYOUTS_MERGE_OPTIONS_H

#include "analysis/plan/recipe.h"

/* Rows of the table, and places in builder->settings. */
enum {
  MERGE_ITEMS,
  MERGE_PIECE, /* rows that are longer than a tile */
  MERGE_PAD, /* auto: when that costs little */
  MERGE_OPTIONS
};
_Static_assert((int)MERGE_OPTIONS <= CB_MAX_SETTINGS, "a place for each");

extern const struct cb_option cb_merge_options[MERGE_OPTIONS];
extern const struct cb_recipe cb_merge_recipes[];

#endif
