// SPDX-License-Identifier: Apache-2.0
#include "codegen/program/methods/methods.h"

/* Conjugate gradients, after Hestenes and Stiefel. A pᵀA p that is not positive says that A is not positive definite.
 * `first`: what the first rows need for z, `later`: others; `z`: the preconditioned residual. */
#define CG(given_diagonal, own_diagonal, first, later, z)                                                        \
  {                                                                                                              \
    .name = "cg", .parameters = {"relative", "absolute"}, .given = {"b", "x", given_diagonal},                   \
    .work = {"r", "p", "q", own_diagonal}, .sections_count = 3,                                                  \
    .sections = {                                                                                                \
        {.from = "x",                                                                                            \
         .to = "q",                                                                                              \
         .steps = {{CB_STEP_ROWS, "in b, q" first "; out r, p; r = b - q; p = " z ";"                            \
                                  "rz = dot(r, p); rr = dot(r, r); bb = dot(b, b);"},                            \
                   {CB_STEP_SCALARS, LIMIT},                                                                     \
                   {CB_STEP_NOTE, "rr"},                                                                         \
                   {CB_STEP_STOP, STOP_WHEN_CONVERGED},                                                          \
                   {CB_STEP_MOST, NULL}},                                                                        \
         .next = 1},                                                                                             \
        {.from = "p",                                                                                            \
         .to = "q",                                                                                              \
         .sums = "in p, q; pq = dot(p, q);",                                                                     \
         .steps = {{CB_STEP_STOP, "in pq; out stop; stop = pq > 0 ? 0 : (pq - pq == 0 ? 3 : 4);"},               \
                   {CB_STEP_SCALARS, "in rz, pq; out alpha, before; alpha = rz / pq; before = rz;"},             \
                   {CB_STEP_ROWS, "in p, q" later "; inout x, r; scalar alpha; x = fma(alpha, p, x);"            \
                                  "r = fma(-alpha, q, r); rz = dot(r, " z "); rr = dot(r, r);"},                 \
                   {CB_STEP_COUNT, NULL},                                                                        \
                   {CB_STEP_NOTE, "rr"},                                                                         \
                   {CB_STEP_STOP, STOP_WHEN_CONVERGED},                                                          \
                   {CB_STEP_MOST, NULL},                                                                         \
                   {CB_STEP_SCALARS, "in rz, before; out beta; beta = rz / before;"},                            \
                   {CB_STEP_ROWS, "in r" later "; inout p; scalar beta; p = fma(beta, p, " z ");"}},             \
         .next = 1},                                                                                             \
        LAST("q")}                                                                                               \
  }

const struct cb_program cb_program_cg[] = {CG(NULL, NULL, "", "", "r"),
                                            CG("diagonal", "d", WITH_DIAGONAL, ", d", "d * r")};
