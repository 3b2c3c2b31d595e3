// SPDX-License-Identifier: Apache-2.0
/* Entries of x that lie side by side: what layouts share whose text includes `gather` (templates/shared.cu.in). */
#ifndef CBGEN_ANALYSIS_GATHERED_H
#define CBGEN_ANALYSIS_GATHERED_H

#include "analysis/layout.h"

/* A launch before the region's own lays `entries` entries of x side by side, those of the columns that its array
 * hot_column lists, in the operator's scratch behind `before` carry slots; text reads them at gathered(vectors). */
void cb_region_gather(struct cb_region_builder *builder, int64_t before, int64_t entries);

#endif
