// SPDX-License-Identifier: Apache-2.0
/* Where a row's nonzeros are stored, and who multiplies them: for reports of what went wrong. */
#ifndef CBGEN_ANALYSIS_PLAN_LOCATE_H
#define CBGEN_ANALYSIS_PLAN_LOCATE_H

#include "analysis/plan.h"

/* Adds the regions that hold nonzeros of the row, each with its layout, the first and the last of the row's value
 * slots, the layout's units that these are in, and the thread block of its launch that commits the row, where that
 * follows from the row's number:
 * "9 in dia0 (layout dia, its slice 3, slots 96 to 865, thread block 0 of the launch), 3 in merge1 (layout merge, …)".
 * Adds nothing for a row without nonzeros, and leaves out what it has no memory to find. */
void cb_locate_row(struct cb_text *text, const struct cb_plan *plan, const struct cb_assignment *assignment,
                   const struct cb_csr *csr, int64_t row);

#endif
