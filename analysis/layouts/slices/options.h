// SPDX-License-Identifier: Apache-2.0
/* What a caller may choose about blocks of 32 rows, and the split that finds them. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_SLICES_OPTIONS_H
#define CBGEN_ANALYSIS_LAYOUTS_SLICES_OPTIONS_H

#include "analysis/fill.h"
#include "analysis/plan/recipe.h"

/* Rows of the table, and places in builder->settings. */
enum {
  FILL_SHAPES, /* a list of numbers in cb_fill_shapes */
  FILL_STEP,
  FILL_RATE,
  FILL_ALIGN, /* enum cb_switch */
  FILL_REPEATS,
  SLICES_OPTIONS
};
_Static_assert((int)SLICES_OPTIONS <= CB_MAX_SETTINGS, "a place for each");

/* The shape that a split takes, or a layout that no split gave one; NULL: its step has none. */
const struct cb_fill_shape *cb_slices_shape(const int64_t *settings);

extern const struct cb_option cb_slices_options[SLICES_OPTIONS];
extern const struct cb_recipe cb_slices_recipes[];
extern const struct cb_split cb_split_fill;
extern const struct cb_layout cb_layout_slices;

#endif
