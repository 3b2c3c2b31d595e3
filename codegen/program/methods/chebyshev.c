// SPDX-License-Identifier: Apache-2.0
#include "codegen/program/methods/methods.h"

/* Chebyshev's iteration (Saad, Iterative Methods for Sparse Linear Systems, algorithm 12.1) for A symmetric and
 * positive definite, or D⁻¹ A where there is a diagonal, whose eigenvalues are between `lowest` and `highest`. Where
 * `highest` is 0, 20 steps of the power method from the first residual find it, and 1.1 times that is taken; where
 * `lowest` is 0, it is `highest` / 30, beneath which it converges slowly. A residual 100 times as long as the shortest
 * says that `highest` was too low: it is raised by half, and the iteration begins anew. One sum an iteration, and only
 * to know when to stop. */
#define CHEBYSHEV(given_diagonal, own_diagonal, first, later, of_r, of_q)                                        \
  {                                                                                                              \
    .name = "chebyshev", .parameters = {"relative", "absolute", "lowest", "highest"},                            \
    .given = {"b", "x", given_diagonal}, .work = {"r", "p", "q", own_diagonal}, .sections_count = 5,             \
    .sections = {                                                                                                \
        {.from = "x",                                                                                            \
         .to = "q",                                                                                              \
         .steps = {{CB_STEP_ROWS, "in b, q" first "; out r, p; r = b - q; p = " of_r ";"                         \
                                  "pp = dot(p, p); rr = dot(r, r); bb = dot(b, b);"},                            \
                   {CB_STEP_SCALARS, LIMIT},                                                                     \
                   {CB_STEP_NOTE, "rr"},                                                                         \
                   {CB_STEP_STOP, STOP_WHEN_CONVERGED},                                                          \
                   {CB_STEP_MOST, NULL},                                                                         \
                   {CB_STEP_SCALARS, "in highest, rr; out top, least, steps; top = highest; least = rr; steps = 0;"},\
                   {CB_STEP_GO, "in highest; out go; go = highest > 0 ? 1 : 0;", 2}},                            \
         .next = 1},                                                                                             \
        {.from = "p",                                                                                            \
         .to = "q",                                                                                              \
         .steps = {{CB_STEP_ROWS, "in q" later "; t = " of_q "; qq = dot(t, t);"},                               \
                   {CB_STEP_STOP, "in qq; out stop; stop = qq == 0 ? 3 : (qq - qq == 0 ? 0 : 4);"},              \
                   {CB_STEP_SCALARS, "in qq; inout steps, pp; out top, scale; top = 1.1 * sqrt(qq / pp); pp = 1;"\
                                     "scale = 1 / sqrt(qq); steps = steps + 1;"},                                \
                   {CB_STEP_ROWS, "in q" later "; out p; scalar scale; p = scale * " of_q ";"},                  \
                   {CB_STEP_GO, "in steps; out go; go = steps < 20 ? 1 : 0;", 1}},                               \
         .next = 2},                                                                                             \
        {.steps = {{CB_STEP_SCALARS, "in top, lowest; out theta, delta, rho;"                                    \
                                     "low = lowest > 0 ? lowest : top / 30; theta = (top + low) / 2;"            \
                                     "delta = (top - low) / 2; rho = delta / theta;"},                           \
                   {CB_STEP_ROWS, "in r" later "; out p; scalar theta; p = " of_r " / theta;"}},                 \
         .next = 3},                                                                                             \
        {.from = "p",                                                                                            \
         .to = "q",                                                                                              \
         .steps = {{CB_STEP_SCALARS, "in theta, delta; inout rho; out old, share;"                               \
                                     "next = 1 / (2 * (theta / delta) - rho); old = next * rho;"                 \
                                     "share = 2 * next / delta; rho = next;"},                                   \
                   {CB_STEP_ROWS, "in q" later "; inout x, r, p; scalar old, share; x = x + p; r = r - q;"       \
                                  "p = fma(old, p, share * " of_r "); rr = dot(r, r);"},                         \
                   {CB_STEP_COUNT, NULL},                                                                        \
                   {CB_STEP_NOTE, "rr"},                                                                         \
                   {CB_STEP_STOP, STOP_WHEN_CONVERGED},                                                          \
                   {CB_STEP_MOST, NULL},                                                                         \
                   {CB_STEP_SCALARS, "in rr; inout least, top; out raise; raise = rr > 10000 * least ? 1 : 0;"   \
                                     "top = raise == 1 ? 1.5 * top : top;"                      \
                                     "least = raise == 1 ? rr : min(least, rr);"},                               \
                   {CB_STEP_GO, "in raise; out go; go = raise;", 2}},                                                \
         .next = 3},                                                                                             \
        LAST("q")}                                                                                               \
  }

const struct cb_program cb_program_chebyshev[] = {
    CHEBYSHEV(NULL, NULL, "", "", "r", "q"), CHEBYSHEV("diagonal", "d", WITH_DIAGONAL, ", d", "d * r", "d * q")};
