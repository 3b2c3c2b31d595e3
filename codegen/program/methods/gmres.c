// SPDX-License-Identifier: Apache-2.0
#include "codegen/program/methods/methods.h"

/* GMRES(m), after Saad and Schultz, with the preconditioner on the right, so that its residual is that of A x = b. v:
 * the basis' newest vector, preconditioned; w: A v. A round begins with the true residual. */
#define GMRES(given_diagonal, own_diagonal, first)                                                               \
  {                                                                                                              \
    .name = "gmres", .parameters = {"relative", "absolute"}, .given = {"b", "x", given_diagonal},                \
    .work = {"r", "v", "w", own_diagonal}, .basis = "basis", .scalars = {"column", "more", "pivot"},             \
    .sections_count = 3,                                                                                         \
    .sections = {                                                                                                \
        {.from = "x",                                                                                            \
         .to = "w",                                                                                              \
         .steps = {STEP(ROWS, "in b, w" first "; out r; r = b - w; rr = dot(r, r); bb = dot(b, b);"),            \
                   STEP(SCALARS, LIMIT),                                                                         \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL),                                                                             \
                   STEP(TEMPLATE, "basis_begin")},                                                               \
         .next = 1},                                                                                             \
        {.from = "v",                                                                                            \
         .to = "w",                                                                                              \
         .steps = {STEP(TEMPLATE, "basis_grow"),                                                                 \
                   STEP(COUNT, NULL),                                                                            \
                   STEP(NOTE, "rr"),                                                                             \
                   GO("in more; out go; go = more;", 1),                                                         \
                   STEP(TEMPLATE, "basis_end"),                                                                  \
                   STEP(STOP, "in pivot, rr, limit; out stop; stop = pivot == 0 ? (rr <= limit ? 0 : 3) : 0;")}, \
         .next = 0},                                                                                             \
        LAST("w")}                                                                                               \
  }

const struct cb_program cb_program_gmres[] = {GMRES(NULL, NULL, ""), GMRES("diagonal", "d", WITH_DIAGONAL)};
