// SPDX-License-Identifier: Apache-2.0
#include "codegen/program/methods/methods.h"

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
         .steps = {STEP(ROWS, "in b, q" first "; out r, p; r = b - q; p = 0;" first_z                            \
                              "rz = dot(r, " z "); rr = dot(r, r); bb = dot(b, b);"),                            \
                   STEP(SCALARS, LIMIT),                                                                         \
                   STEP(SCALARS, "out beta, pending; beta = 0; pending = 0;"),                                   \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL)},                                                                            \
         .next = 1},                                                                                             \
        {.from = "p",                                                                                            \
         .old = "before",                                                                                        \
         .before = "in " z "; inout x, p; scalar beta, pending; x = fma(pending, p, x); p = fma(beta, p, " z ");", \
         .to = "q",                                                                                              \
         .sums = "in p, q; pq = dot(p, q);",                                                                     \
         .steps = {STEP(SCALARS, "out pending; pending = 0;"),                                                   \
                   STEP(STOP, "in pq; out stop; stop = pq > 0 ? 0 : (pq - pq == 0 ? 3 : 4);"),                   \
                   STEP(SCALARS, "in rz, pq; out alpha, pending, last; alpha = rz / pq;"                         \
                                 "pending = alpha; last = rz;"),                                                 \
                   STEP(ROWS, "in q" later "; inout r; scalar alpha; r = fma(-alpha, q, r);" later_z             \
                              "rz = dot(r, " z "); rr = dot(r, r);"),                                            \
                   STEP(COUNT, NULL),                                                                            \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL),                                                                             \
                   STEP(SCALARS, "in rz, last; out beta; beta = rz / last;")},                                   \
         .next = 1},                                                                                             \
        {.from = "x",                                                                                            \
         .before = "in p; inout x; scalar pending; x = fma(pending, p, x);",                                     \
         .to = "q",                                                                                              \
         .sums = TRUE_RESIDUAL("q")}}                                                                            \
  }

/* With blocks, or the caller's preconditioner (`apply`), z is known where all have written r: a meeting more. */
#define CG_APART(given_inverse, apply)                                                                           \
  {                                                                                                              \
    .name = "cg", .parameters = {"relative", "absolute"}, .given = {"b", "x", given_inverse},                    \
    .work = {"r", "p", "before", "q", "z"}, .sections_count = 3,                                                 \
    .sections = {                                                                                                \
        {.from = "x",                                                                                            \
         .to = "q",                                                                                              \
         .steps = {STEP(ROWS, "in b, q; out r, p; r = b - q; p = 0; bb = dot(b, b);"),                           \
                   apply("r", "z"),                                                                              \
                   STEP(ROWS, "in r, z; rz = dot(r, z); rr = dot(r, r);"),                                       \
                   STEP(SCALARS, LIMIT),                                                                         \
                   STEP(SCALARS, "out beta, pending; beta = 0; pending = 0;"),                                   \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL)},                                                                            \
         .next = 1},                                                                                             \
        {.from = "p",                                                                                            \
         .old = "before",                                                                                        \
         .before = "in z; inout x, p; scalar beta, pending; x = fma(pending, p, x); p = fma(beta, p, z);",       \
         .to = "q",                                                                                              \
         .sums = "in p, q; pq = dot(p, q);",                                                                     \
         .steps = {STEP(SCALARS, "out pending; pending = 0;"),                                                   \
                   STEP(STOP, "in pq; out stop; stop = pq > 0 ? 0 : (pq - pq == 0 ? 3 : 4);"),                   \
                   STEP(SCALARS, "in rz, pq; out alpha, pending, last; alpha = rz / pq; pending = alpha;"        \
                                 "last = rz;"),                                                                  \
                   STEP(ROWS, "in q; inout r; scalar alpha; r = fma(-alpha, q, r);"),                            \
                   apply("r", "z"),                                                                              \
                   STEP(ROWS, "in r, z; rz = dot(r, z); rr = dot(r, r);"),                                       \
                   STEP(COUNT, NULL),                                                                            \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL),                                                                             \
                   STEP(SCALARS, "in rz, last; out beta; beta = rz / last;")},                                   \
         .next = 1},                                                                                             \
        {.from = "x",                                                                                            \
         .before = "in p; inout x; scalar pending; x = fma(pending, p, x);",                                     \
         .to = "q",                                                                                              \
         .sums = TRUE_RESIDUAL("q")}}                                                                            \
  }

const struct cb_program cb_program_cg[] = {CG(NULL, NULL, NULL, "", "", "", "", "r"),
                                           CG("diagonal", "d", "z", WITH_DIAGONAL "; out z", "z = d * r;", ", d; out z",
                                              "z = d * r;", "z"),
                                           CG_APART("inverse", APPLY_BLOCKS), CG_APART(NULL, CALL)};
