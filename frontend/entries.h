// SPDX-License-Identifier: Apache-2.0
/* Lines of the form "row column", "row column value" or "row column real-part imaginary-part": the body of Matrix Market
 * coordinate files and edge lists. */
#ifndef CBGEN_FRONTEND_ENTRIES_H
#define CBGEN_FRONTEND_ENTRIES_H

#include "frontend/coo.h"
#include "frontend/lines.h"

struct cb_entry_form {
  int64_t rows, cols;      /* indices must lie below these */
  int base;                /* the number of the first row and column: 1 or 0 */
  int values;              /* columns behind row and column: a value, or both parts of one */
  int commas;              /* a comma separates as a blank does */
  int zero_diagonal;       /* a nonzero on the diagonal is an error (skew-symmetric) */
  int real_diagonal;       /* an imaginary part on the diagonal is one (Hermitian) */
  const char *comments;    /* bytes that start a comment, at the start of a line or after an entry */
  const char *names[4];    /* of the columns, for messages: "row", "column", "value" */
  const char *form;        /* the remedy for a line of another form */
  const char *range_error; /* the remedy for an index out of range */
};

/* Parses all counted lines into `coo` (allocated here, rows and columns set from `form`). `*found` as in
 * cb_lines_parse. */
enum cb_status cb_entries_parse(struct cb_coo *coo, struct cb_lines *lines, const struct cb_entry_form *form,
                                int64_t *found, struct cb_diag *diag);

#endif
