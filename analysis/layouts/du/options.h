// SPDX-License-Identifier: Apache-2.0
/* What a caller may choose about chunks of 8 rows is numbered in analysis/chunks.h, for layout se, too; here are the
 * tables, and the split that finds the hot part. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_DU_OPTIONS_H
#define CBGEN_ANALYSIS_LAYOUTS_DU_OPTIONS_H

#include "analysis/chunks.h"
#include "analysis/plan/recipe.h"

_Static_assert((int)DU_OPTIONS <= CB_MAX_SETTINGS, "a place for each");

extern const struct cb_option cb_du_options[DU_OPTIONS];
extern const struct cb_recipe cb_du_recipes[];
extern const struct cb_split cb_split_crux;

/* Why recipe du cannot win, from a sample; NULL: it may. */
const char *cb_du_against(const struct cb_csr *csr);

#endif
