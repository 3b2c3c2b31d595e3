// SPDX-License-Identifier: Apache-2.0
/* What a caller may choose about patterns of columns. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_PATTERNS_OPTIONS_H
#define CBGEN_ANALYSIS_LAYOUTS_PATTERNS_OPTIONS_H

#include "analysis/plan/recipe.h"

/* Rows of the table, and places in builder->settings. */
enum {
  PATTERNS_SIZE,
  PATTERNS_USES,
  PATTERNS_SHARE,
  PATTERNS_PAD,
  PATTERNS_BATCH,
  PATTERNS_SLICES,
  PATTERNS_STRIDE, /* in slices; 0: by the matrix */
  PATTERNS_OPTIONS
};
_Static_assert((int)PATTERNS_OPTIONS <= CB_MAX_SETTINGS, "a place for each");

extern const struct cb_option cb_patterns_options[PATTERNS_OPTIONS];
extern const struct cb_recipe cb_patterns_recipes[];
extern const struct cb_split cb_split_patterns;
extern const struct cb_layout cb_layout_patterns;

#endif
