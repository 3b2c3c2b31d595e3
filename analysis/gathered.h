// SPDX-License-Identifier: Apache-2.0
/* Entries of x that lie side by side: what layouts share whose text includes `gather` (templates/shared.cu.in). */
#ifndef CBGEN_ANALYSIS_GATHERED_H
#define CBGEN_ANALYSIS_GATHERED_H

#include "analysis/layout.h"

/* Adds a launch before the region's own. It copies `entries` entries of x, of the columns that the region's array
 * hot_column lists, side by side into the operator's scratch, behind `before` carry slots. The text reads them at
 * gathered(vectors). */
void cb_region_gather(struct cb_region_builder *builder, int64_t before, int64_t entries);

#endif
