// SPDX-License-Identifier: Apache-2.0
/* What a caller may choose about sliced ELL. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_SELL_OPTIONS_H
#define CBGEN_ANALYSIS_LAYOUTS_SELL_OPTIONS_H

#include "analysis/plan/recipe.h"

/* Rows of the table, and places in builder->settings. */
enum {
  SELL_LANES,
  SELL_VECTOR,
  SELL_SORT, /* auto: where that is predicted to be faster */
  SELL_WINDOW, /* auto: the smallest that leaves few slots empty */
  SELL_VARY, /* auto: for skewed matrices */
  SELL_CUT,  /* auto: for several vectors of large scattered matrices */
  SELL_OPTIONS
};
_Static_assert((int)SELL_OPTIONS <= CB_MAX_SETTINGS, "a place for each");

extern const struct cb_option cb_sell_options[SELL_OPTIONS];
extern const struct cb_recipe cb_sell_recipes[];

#endif
