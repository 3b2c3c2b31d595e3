// SPDX-License-Identifier: Apache-2.0
/* The text of a kernel, changed so that its numbers know where they come from (emulation/traced.h). Line for line. */
#ifndef CBGEN_RUNTIME_VERIFY_TRACE_TEXT_H
#define CBGEN_RUNTIME_VERIFY_TRACE_TEXT_H

#include "analysis/plan.h"
#include "base/text.h"

/* Appends the traced form of `text`, what stands behind the device prelude. All numbers pass through the few functions
 * and types that are changed: sum_t, vector_t, arithmetic, load_x, and the accessors of values.
 * CB_ERR_UNSUPPORTED: the text lets tensor cores multiply numbers that are no sum_t. */
enum cb_status cb_trace_text(struct cb_text *out, const char *text, const struct cb_plan *plan, struct cb_diag *diag);

#endif
