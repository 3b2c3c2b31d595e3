// SPDX-License-Identifier: Apache-2.0
/* What a caller may choose about hot columns. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_HOT_OPTIONS_H
#define CBGEN_ANALYSIS_LAYOUTS_HOT_OPTIONS_H

#include "analysis/plan/recipe.h"

/* Rows of the table, and places in builder->settings. */
enum {
  HOT_COLUMNS, /* else so many, whatever it gains */
  HOT_SHARE,
  HOT_THREADS,
  HOT_BATCH,
  HOT_GATHER,
  HOT_PACKED,      /* for L2 */
  HOT_THREE_BYTES, /* where they fit */
  HOT_OPTIONS
};
_Static_assert((int)HOT_OPTIONS <= CB_MAX_SETTINGS, "a place for each");

extern const struct cb_option cb_hot_options[HOT_OPTIONS];
extern const struct cb_recipe cb_hot_recipes[];
enum cb_status cb_hot_check(const int64_t *settings, struct cb_diag *diag);

#endif
