// SPDX-License-Identifier: Apache-2.0
/* What a caller may choose about frequent columns, a set at a time. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_PHASES_OPTIONS_H
#define CBGEN_ANALYSIS_LAYOUTS_PHASES_OPTIONS_H

#include "analysis/plan/recipe.h"

/* Rows of the table, and places in builder->settings. */
enum {
  PHASES_COLUMNS, /* else so many, whatever it gains */
  PHASES_ROW,
  PHASES_SET,
  PHASES_BLOCKS,
  PHASES_THREADS,
  PHASES_BATCH,
  PHASES_OPTIONS
};
_Static_assert((int)PHASES_OPTIONS <= CB_MAX_SETTINGS, "a place for each");

extern const struct cb_option cb_phases_options[PHASES_OPTIONS];
extern const struct cb_recipe cb_phases_recipes[];
extern const struct cb_split cb_split_hot_columns;
extern const struct cb_layout cb_layout_phases;

#endif
