// SPDX-License-Identifier: Apache-2.0
/* Two texts line by line, as a unified diff: the shortest list of lines to remove and to add (E. Myers, "An O(ND)
 * difference algorithm and its variations", 1986). Memory and time are bounded: a comparison ends after
 * CB_LINE_DIFF_MOST differing lines, and says up to where it went. */
#ifndef CBGEN_BASE_LINE_DIFF_H
#define CBGEN_BASE_LINE_DIFF_H

#include "base/status.h"
#include "base/text.h"

#include <stdint.h>

enum { CB_LINE_DIFF_MOST = 2000, CB_LINE_DIFF_CONTEXT = 3, CB_LINE_DIFF_COLUMNS = 400 /* the rest of a line is cut */ };

struct cb_line_diff {
  int64_t removed, added; /* lines */
  int is_cut;             /* there are more differences than these */
};

/* Appends the hunks to `text`, nothing when both have the same lines (a newline at the end is no line). In what is
 * appended, lines longer than CB_LINE_DIFF_COLUMNS are cut, and control characters escaped. CB_ERR_LIMIT: over 2³⁰
 * lines; CB_ERR_MEMORY. */
enum cb_status cb_line_diff(struct cb_text *text, struct cb_line_diff *found, const char *a, size_t a_length,
                            const char *b, size_t b_length, struct cb_diag *diag);

#endif
