// SPDX-License-Identifier: Apache-2.0
/* The built-in programs. Scalars that all of them share: rr, the residual's square by the recurrence; limit, the square
 * that it must reach; bb, that of b. `d` is the inverse of the diagonal that the caller gives: 1 where that is 0. A
 * program without it has the residual itself in its place. */
#include "codegen/program/program.h"

#include <string.h>

/* rr decides, and a residual that is no number ends everything. */
#define STOP_WHEN_CONVERGED "in rr, limit; out stop; stop = rr <= limit ? 1 : (rr - rr == 0 ? 0 : 4);"
#define LIMIT "in bb, relative, absolute; out limit; limit = max((relative * relative) * bb, absolute * absolute);"
/* The last section: q = A x, and how long b - A x is. */
#define TRUE_RESIDUAL(vector) "in b, " vector "; e = b - " vector "; final = dot(e, e);"
#define LAST(vector)                                                                                             \
  { .from = "x", .to = vector, .sums = TRUE_RESIDUAL(vector) }

/* How the inverse is made, in the first rows. */
#define WITH_DIAGONAL ", diagonal; out d; d = diagonal == 0 ? 1 : 1 / diagonal"

/* Conjugate gradients, after Hestenes and Stiefel. A pᵀA p that is not positive says that A is not positive definite.
 * `z`, the preconditioned residual: a vector, the residual itself where there is no preconditioner. Directions are made
 * in the product: the first from p = 0. An iteration's step is added to x (`pending`) where the next direction is made,
 * as that reads p anyway, or at the end. `first`, `later`: what rows need to make z, and how they keep it. */
#define CG(given_diagonal, own_diagonal, own_z, first, first_z, later, later_z, z)                               \
  {                                                                                                              \
    .name = "cg", .parameters = {"relative", "absolute"}, .given = {"b", "x", given_diagonal},                   \
    .work = {"r", "p", "before", "q", own_diagonal, own_z}, .sections_count = 3,                                 \
    .sections = {                                                                                                \
        {.from = "x",                                                                                            \
         .to = "q",                                                                                              \
         .steps = {{CB_STEP_ROWS, "in b, q" first "; out r, p; r = b - q; p = 0;" first_z                         \
                                  "rz = dot(r, " z "); rr = dot(r, r); bb = dot(b, b);"},                        \
                   {CB_STEP_SCALARS, LIMIT},                                                                     \
                   {CB_STEP_SCALARS, "out beta, pending; beta = 0; pending = 0;"},                               \
                   {CB_STEP_NOTE, "rr"},                                                                         \
                   {CB_STEP_STOP, STOP_WHEN_CONVERGED},                                                          \
                   {CB_STEP_MOST, NULL}},                                                                        \
         .next = 1},                                                                                             \
        {.from = "p",                                                                                            \
         .old = "before",                                                                                        \
         .before = "in " z "; inout x, p; scalar beta, pending; x = fma(pending, p, x); p = fma(beta, p, " z ");", \
         .to = "q",                                                                                              \
         .sums = "in p, q; pq = dot(p, q);",                                                                     \
         .steps = {{CB_STEP_SCALARS, "out pending; pending = 0;"},                                               \
                   {CB_STEP_STOP, "in pq; out stop; stop = pq > 0 ? 0 : (pq - pq == 0 ? 3 : 4);"},               \
                   {CB_STEP_SCALARS, "in rz, pq; out alpha, pending, last; alpha = rz / pq; pending = alpha; last = rz;"}, \
                   {CB_STEP_ROWS, "in q" later "; inout r; scalar alpha; r = fma(-alpha, q, r);" later_z         \
                                  "rz = dot(r, " z "); rr = dot(r, r);"},                                        \
                   {CB_STEP_COUNT, NULL},                                                                        \
                   {CB_STEP_NOTE, "rr"},                                                                         \
                   {CB_STEP_STOP, STOP_WHEN_CONVERGED},                                                          \
                   {CB_STEP_MOST, NULL},                                                                         \
                   {CB_STEP_SCALARS, "in rz, last; out beta; beta = rz / last;"}},                               \
         .next = 1},                                                                                             \
        {.from = "x",                                                                                            \
         .before = "in p; inout x; scalar pending; x = fma(pending, p, x);",                                     \
         .to = "q",                                                                                              \
         .sums = TRUE_RESIDUAL("q")}}                                                                            \
  }

static const struct cb_program cg = CG(NULL, NULL, NULL, "", "", "", "", "r");
static const struct cb_program cg_diagonal =
    CG("diagonal", "d", "z", WITH_DIAGONAL "; out z", "z = d * r;", ", d; out z", "z = d * r;", "z");

/* BiCGSTAB, after van der Vorst, with the preconditioner on the right: y and z are what it makes of p and s. */
#define BICGSTAB(given_diagonal, own_diagonal, first, later, of_p, of_s)                                         \
  {                                                                                                              \
    .name = "bicgstab", .parameters = {"relative", "absolute"}, .given = {"b", "x", given_diagonal},             \
    .work = {"r", "shadow", "p", "y", "v", "s", "z", "t", own_diagonal}, .sections_count = 4,                    \
    .sections = {                                                                                                \
        {.from = "x",                                                                                            \
         .to = "v",                                                                                              \
         .steps = {{CB_STEP_ROWS, "in b, v" first "; out r, shadow, p, y; r = b - v; shadow = r; p = r;"         \
                                  "y = " of_p "; rr = dot(r, r); bb = dot(b, b);"},                              \
                   {CB_STEP_SCALARS, LIMIT},                                                                     \
                   {CB_STEP_SCALARS, "in rr; out rho; rho = rr;"},                                               \
                   {CB_STEP_NOTE, "rr"},                                                                         \
                   {CB_STEP_STOP, STOP_WHEN_CONVERGED},                                                          \
                   {CB_STEP_MOST, NULL}},                                                                        \
         .next = 1},                                                                                             \
        {.from = "y",                                                                                            \
         .to = "v",                                                                                              \
         .sums = "in shadow, v; sv = dot(shadow, v);",                                                           \
         .steps = {{CB_STEP_STOP, "in sv; out stop; stop = sv == 0 ? 3 : (sv - sv == 0 ? 0 : 4);"},              \
                   {CB_STEP_SCALARS, "in rho, sv; out alpha; alpha = rho / sv;"},                                \
                   {CB_STEP_ROWS, "in r, v" later "; out s, z; scalar alpha; s = fma(-alpha, v, r);"             \
                                  "z = " of_s ";"}},                                                             \
         .next = 2},                                                                                             \
        {.from = "z",                                                                                            \
         .to = "t",                                                                                              \
         .sums = "in s, t; ts = dot(t, s); tt = dot(t, t);",                                                     \
         .steps = {{CB_STEP_SCALARS, "in ts, tt; out omega; omega = tt > 0 ? ts / tt : tt;"},                    \
                   {CB_STEP_ROWS, "in y, z, s, t, shadow; inout x; out r; scalar alpha, omega;"                  \
                                  "x = fma(omega, z, fma(alpha, y, x)); r = fma(-omega, t, s);"                  \
                                  "next = dot(shadow, r); rr = dot(r, r);"},                                     \
                   {CB_STEP_COUNT, NULL},                                                                        \
                   {CB_STEP_NOTE, "rr"},                                                                         \
                   {CB_STEP_STOP, STOP_WHEN_CONVERGED},                                                          \
                   {CB_STEP_MOST, NULL},                                                                         \
                   {CB_STEP_STOP, "in next, omega; out stop; stop = next == 0 ? 3 : (omega == 0 ? 3 : 0);"},     \
                   {CB_STEP_SCALARS, "in next, alpha, omega; inout rho; out beta;"                               \
                                     "beta = (next / rho) * (alpha / omega); rho = next;"},                      \
                   {CB_STEP_ROWS, "in r, v" later "; inout p; out y; scalar beta, omega;"                        \
                                  "p = fma(beta, fma(-omega, v, p), r); y = " of_p ";"}},                        \
         .next = 1},                                                                                             \
        LAST("t")}                                                                                               \
  }

static const struct cb_program bicgstab = BICGSTAB(NULL, NULL, "", "", "p", "s");
static const struct cb_program bicgstab_diagonal =
    BICGSTAB("diagonal", "d", WITH_DIAGONAL, ", d", "d * p", "d * s");

const struct cb_program *cb_program_find(const char *name, int with_diagonal) {
  if (!strcmp(name, cg.name)) return with_diagonal ? &cg_diagonal : &cg;
  if (!strcmp(name, bicgstab.name)) return with_diagonal ? &bicgstab_diagonal : &bicgstab;
  return NULL;
}
