// SPDX-License-Identifier: Apache-2.0
/* What a caller may choose about diagonals. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_DIA_OPTIONS_H
#define CBGEN_ANALYSIS_LAYOUTS_DIA_OPTIONS_H

#include "analysis/plan/recipe.h"

/* Rows of the table, and places in builder->settings. */
enum {
  DIA_FILL,
  DIA_MOST,
  DIA_ROWS,
  DIA_STRIDE, /* 1: a thread block's width */
  DIA_THREADS,
  DIA_OPTIONS
};
_Static_assert((int)DIA_OPTIONS <= CB_MAX_SETTINGS, "a place for each");

extern const struct cb_option cb_dia_options[DIA_OPTIONS];
extern const struct cb_recipe cb_dia_recipes[];
extern const struct cb_split cb_split_diagonals;
extern const struct cb_layout cb_layout_dia;

#endif
