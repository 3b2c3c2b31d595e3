// SPDX-License-Identifier: Apache-2.0
/* The built-in programs, and what they share. Scalars that those for A x = b have: rr, the residual's square by the
 * recurrence; limit, the square that it must reach; bb, that of b. `d` is the inverse of the diagonal that the caller
 * gives: 1 where that is 0. A program without it has the residual itself in its place. */
#ifndef CBGEN_CODEGEN_PROGRAM_METHODS_METHODS_H
#define CBGEN_CODEGEN_PROGRAM_METHODS_METHODS_H

#include "codegen/program/program.h"

/* A step of a kind, and what it says. GO goes on with that section. */
#define STEP(of, what)                                                                                           \
  { .kind = CB_STEP_##of, .text = what }
#define GO(what, where)                                                                                          \
  { .kind = CB_STEP_GO, .text = what, .section = where }

#define SWAP(one, other)                                                                                         \
  { .kind = CB_STEP_SWAP, .from = one, .to = other }

/* rr decides, and a residual that is no number, or infinite as its limit may be then, ends everything. */
#define STOP_WHEN_CONVERGED "in rr, limit; out stop; stop = rr - rr == 0 ? (rr <= limit ? 1 : 0) : 4;"
#define LIMIT "in bb, relative, absolute; out limit; limit = max((relative * relative) * bb, absolute * absolute);"

/* The last section: q = A x, and how long b - A x is. */
#define TRUE_RESIDUAL(vector) "in b, " vector "; e = b - " vector "; final = dot(e, e);"
#define LAST(vector)                                                                                             \
  { .from = "x", .to = vector, .sums = TRUE_RESIDUAL(vector) }

/* How the inverse is made, in the first rows. */
#define WITH_DIAGONAL ", diagonal; out d; d = diagonal == 0 ? 1 : 1 / diagonal"
#define WITH_DIAGONAL_ABOVE_0 ", diagonal; out d; d = diagonal == 0 ? 1 : 1 / abs(diagonal)"

/* `to` = the inverses of the blocks times `from`, for all rows. */
#define APPLY_BLOCKS(of, into)                                                                                   \
  { .kind = CB_STEP_TEMPLATE, .text = "blocks", .from = of, .to = into }

/* `to` = what the caller's preconditioner makes of `from`. */
#define CALL(of, into)                                                                                           \
  { .kind = CB_STEP_CALL, .from = of, .to = into }

extern const struct cb_program cb_program_cg[4], cb_program_cg_mixed[4], cb_program_bicgstab[4], cb_program_minres[2],
    cb_program_gmres[2], cb_program_chebyshev[2], cb_program_jacobi[2], cb_program_pagerank[2], cb_program_power[1];

#endif
