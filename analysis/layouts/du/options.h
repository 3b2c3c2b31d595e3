// SPDX-License-Identifier: Apache-2.0
/* What a caller may choose about chunks of 8 rows, of layouts du and se, and the split that finds hot ones. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_DU_OPTIONS_H
#define CBGEN_ANALYSIS_LAYOUTS_DU_OPTIONS_H

#include "analysis/plan/recipe.h"

/* Rows of the table, and places in builder->settings. */
enum {
  DU_FORM,       /* enum cb_mma_form */
  CRUX_COLS,     /* percent; 0: by the model */
  CRUX_ROWS,     /* likewise */
  CRUX_SORT,     /* enum cb_switch */
  CRUX_ENCODING, /* enum crux_encoding */
  DU_OPTIONS
};
_Static_assert((int)DU_OPTIONS <= CB_MAX_SETTINGS, "a place for each");
enum crux_encoding { CRUX_AUTO, CRUX_DU, CRUX_SE };

extern const struct cb_option cb_du_options[DU_OPTIONS];
extern const struct cb_recipe cb_du_recipes[];
extern const struct cb_split cb_split_crux;
extern const struct cb_layout cb_layout_du;

#endif
