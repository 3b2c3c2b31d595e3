// SPDX-License-Identifier: Apache-2.0
/* Linear programs from MPS files (IBM, Mathematical Programming System, 1969, as solvers read them today): minimise or
 * maximise cost . x + constant where row_lower <= A x <= row_upper and lower <= x <= upper.
 *
 *   NAME, OBJSENSE (MIN, MAX), ROWS (N, L, G, E), COLUMNS, RHS, RANGES, BOUNDS, ENDATA
 *
 * Free form (words between blanks) and fixed form (names at columns 5, 15 and 40, which may have blanks): a file that
 * makes no sense as the first is read as the second. The first N row is the objective; others are left out. The
 * objective's right side is minus the constant. RANGES widen a row by |R|: below an L row, above a G row, and above or
 * below an E row, as R's sign says. BOUNDS are LO, UP, FX, FR, MI, PL, BV, LI and UI; without any, x is from 0 on. An
 * upper one below 0, where no lower one was given, takes the lower one away. Sizes from 1e20 on are infinite. Columns
 * between INTORG and INTEND markers, and those with BV, LI or UI, are counted as integers, and read as numbers between
 * their bounds; between markers and without bounds these are 0 and 1. */
#ifndef CBGEN_FRONTEND_MPS_H
#define CBGEN_FRONTEND_MPS_H

#include "base/status.h"
#include "frontend/csr.h"
#include "frontend/read.h"

#include <stddef.h>

/* Release it. Names live as long as it does. */
struct cb_linear {
  struct cb_csr csr;                       /* rows without the objective's, in the file's order */
  double *cost, *lower, *upper;            /* of columns; bounds may be infinite */
  double *row_lower, *row_upper;           /* of rows */
  const char **row_names, **column_names;
  double constant;
  int maximise;
  int64_t integers;                        /* columns that the file wants to be integers */
  char *text;                              /* what names point into */
};

/* From a file, plain or packed as .gz, .zst, .xz or .bz2; "-": standard input. Errors read "file:line: what is wrong;
 * remedy". CB_ERR_FORMAT; CB_ERR_UNSUPPORTED: sections for programs that are not linear, several sets of bounds or right
 * sides; CB_ERR_LIMIT, CB_ERR_MEMORY, CB_ERR_IO. */
enum cb_status cb_linear_read(struct cb_linear *linear, const char *path, const struct cb_progress *progress,
                              struct cb_diag *diag);

/* The same from memory, for tests and fuzzing; `name` stands for the file. */
enum cb_status cb_linear_read_bytes(struct cb_linear *linear, const char *name, const char *bytes, size_t length,
                                    struct cb_diag *diag);
void cb_linear_release(struct cb_linear *linear);

#endif
