// SPDX-License-Identifier: Apache-2.0
/* Why a kernel is the one it is: what stands beside its plan in its text. */
#ifndef CBGEN_CODEGEN_BECAUSE_H
#define CBGEN_CODEGEN_BECAUSE_H

#include "analysis/plan.h"
#include "base/text.h"

/* "sell 3.30 us predicted; merge 3.41, cb 4.05; dia: no populated diagonals": the plan's recipe, the others that its
 * search planned, cheapest first, and why the rest was not; without a search that its recipe was named. In lines of 120
 * columns, of which all but the first begin with `indent`; `used` columns of the first are taken. */
void cb_because(struct cb_text *text, const struct cb_plan *plan, const char *indent, int used);

#endif
