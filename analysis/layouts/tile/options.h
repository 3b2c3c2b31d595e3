// SPDX-License-Identifier: Apache-2.0
/* What a caller may choose about tiles in seven formats, and the split that defers those of few nonzeros. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_TILE_OPTIONS_H
#define CBGEN_ANALYSIS_LAYOUTS_TILE_OPTIONS_H

#include "analysis/layouts/tile/census.h"
#include "analysis/plan/recipe.h"

/* Rows of the table, and places in builder->settings. */
enum { TILE_FORMATS, TILE_COO, TILE_DENSE, TILE_TE, TILE_TH, TILE_BALANCE, TILE_OPTIONS };
_Static_assert((int)TILE_OPTIONS <= CB_MAX_SETTINGS, "a place for each");

enum { TILE_FORMATS_ADPT, TILE_FORMATS_CSR };

extern const struct cb_option cb_tile_options[TILE_OPTIONS];
extern const struct cb_recipe cb_tile_recipes[];
extern const struct cb_split cb_split_defer;
extern const struct cb_layout cb_layout_tile;

/* What the settings wish for values of that type. */
struct cb_tile_wish cb_tile_wish_of(const int64_t *settings, enum cb_type type);

#endif
