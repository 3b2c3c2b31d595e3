// SPDX-License-Identifier: Apache-2.0
/* What a search looked at, for `cbgen analyze`: a table, its parts as JSON, and one sentence on why the
 * winner won. */
#ifndef CBGEN_TOOL_CANDIDATES_H
#define CBGEN_TOOL_CANDIDATES_H

#include "analysis/plan.h"
#include "base/json.h"
#include "base/text.h"

/* The candidates of the plan's search, or the plan alone when its recipe was named. */
void cb_candidates_table(struct cb_text *text, const struct cb_plan *plan);
/* An array of objects in the order tried; sets *failed when memory runs out. */
json_t *cb_candidates_json(const struct cb_plan *plan, int *failed);
/* "sell is predicted to be 12 % faster than merge: …", without an end of line. */
void cb_candidates_why(struct cb_text *text, const struct cb_plan *plan);

#endif
