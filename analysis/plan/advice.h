// SPDX-License-Identifier: Apache-2.0
/* Which option could shorten what binds a kernel: for reports of slow ones. What an option would do to a matrix is only
 * known when it is planned with it. */
#ifndef CBGEN_ANALYSIS_ADVICE_H
#define CBGEN_ANALYSIS_ADVICE_H

#include "analysis/plan/thread_blocks.h"

struct cb_advice {
  const char *layout; /* that is bound; NULL: whichever */
  enum cb_term term;
  const char *option, *value, *why;
};

extern const struct cb_advice cb_advice_table[]; /* ends without an option */

/* The next row behind `before` (NULL: the first one) for a layout and a term; NULL: there are no more. */
const struct cb_advice *cb_advice_next(const struct cb_advice *before, const char *layout, enum cb_term term);

#endif
