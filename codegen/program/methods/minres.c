// SPDX-License-Identifier: Apache-2.0
#include "codegen/program/methods/methods.h"

/* MINRES, after Paige and Saunders: A symmetric, which may be indefinite. The preconditioner is positive definite, so
 * that of a diagonal its entries' sizes count. Lanczos vectors before their division by `beta` are `older` and `newer`,
 * v the preconditioned one behind it; w and `before` are the last two directions. The residual itself follows by
 *
 *   r <- sine² r - phi' cosine newer / beta          (phi': what is left of the residual in the preconditioner's norm)
 *
 * so that the Euclidean norm decides as in the other methods (Choi, Paige and Saunders, 2011). */
#define MINRES(given_diagonal, own_diagonal, first, later, of_r, of_newer)                                       \
  {                                                                                                              \
    .name = "minres", .parameters = {"relative", "absolute"}, .given = {"b", "x", given_diagonal},               \
    .work = {"r", "older", "newer", "v", "q", "w", "before", own_diagonal}, .sections_count = 3,                 \
    .sections = {                                                                                                \
        {.from = "x",                                                                                            \
         .to = "q",                                                                                              \
         .steps = {STEP(ROWS, "in b, q" first "; out r, older, newer, w, before; r = b - q; older = 0;"          \
                              "newer = r; w = 0; before = 0; square = dot(r, " of_r "); rr = dot(r, r);"         \
                              "bb = dot(b, b);"),                                                                \
                   STEP(SCALARS, LIMIT),                                                                         \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL),                                                                             \
                   STEP(SCALARS, "in square; out beta, phi, turn, cosine, sine, bar, epsilon;"                   \
                                 "beta = sqrt(square); phi = beta; turn = 0; cosine = -1; sine = 0; bar = 0;"    \
                                 "epsilon = 0;"),                                                                \
                   STEP(ROWS, "in r" later "; out v; scalar beta; v = " of_r " / beta;")},                       \
         .next = 1},                                                                                             \
        {.from = "v",                                                                                            \
         .to = "q",                                                                                              \
         .sums = "in v, q, older; scalar turn; alpha = dot(v, fma(-turn, older, q));",                           \
         .steps = {STEP(SCALARS, "in alpha, beta; out ratio; ratio = alpha / beta;"),                            \
                   STEP(ROWS, "in q" later "; inout older, newer; scalar ratio, turn;"                           \
                              "t = fma(-ratio, newer, fma(-turn, older, q)); older = newer; newer = t;"          \
                              "square = dot(t, " of_newer ");"),                                                 \
                   STEP(SCALARS, "in square, alpha; inout beta, epsilon, bar, cosine, sine, phi;"                \
                                 "out turn, delta, previous, gamma, step, keep, add, inverse;"                   \
                                 "next = sqrt(square); previous = epsilon;"                                      \
                                 "delta = fma(cosine, bar, sine * alpha);"                                       \
                                 "g = fma(sine, bar, -(cosine * alpha)); turn = next / beta; beta = next;"       \
                                 "epsilon = sine * next; bar = -(cosine * next);"                                \
                                 "gamma = sqrt(fma(g, g, next * next)); c = g / gamma; s = next / gamma;"        \
                                 "cosine = c; sine = s; step = c * phi; p = s * phi; phi = p; keep = s * s;"     \
                                 "inverse = next == 0 ? 0 : 1 / next; add = -(p * c) * inverse;"),               \
                   STEP(STOP, "in gamma; out stop; stop = gamma == 0 ? 3 : (gamma - gamma == 0 ? 0 : 4);"),      \
                   STEP(ROWS, "in newer" later "; inout x, r, w, before, v;"                                     \
                              "scalar previous, delta, gamma, step, keep, add, inverse;"                         \
                              "t = fma(-delta, w, fma(-previous, before, v)) / gamma; before = w; w = t;"        \
                              "x = fma(step, t, x); r = fma(keep, r, add * newer);"                              \
                              "v = inverse * " of_newer "; rr = dot(r, r);"),                                    \
                   STEP(COUNT, NULL),                                                                            \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL)},                                                                            \
         .next = 1},                                                                                             \
        LAST("q")}                                                                                               \
  }

const struct cb_program cb_program_minres[] = {MINRES(NULL, NULL, "", "", "r", "newer"),
                                               MINRES("diagonal", "d", WITH_DIAGONAL_ABOVE_0, ", d", "d * r", "d * newer")};
