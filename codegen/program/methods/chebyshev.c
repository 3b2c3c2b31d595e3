// SPDX-License-Identifier: Apache-2.0
#include "codegen/program/methods/methods.h"

/* Chebyshev's iteration (Saad, Iterative Methods for Sparse Linear Systems, algorithm 12.1) for A symmetric and
 * positive definite, or D⁻¹ A where there is a diagonal, whose eigenvalues are between `lowest` and `highest`.
 *
 * Where `highest` is 0, 20 steps of the power method from the first residual find it, and 1.1 times that is taken. A
 * residual 100 times as long as the shortest says that it was too low: it is raised by half. Where `lowest` is 0, it is
 * `highest` / 30 at first. What lies beneath is what the residual consists of after a while, and 64 iterations make it
 * shorter by f⁶⁴, f = z / (σ + sqrt(σ² - 1)) with σ = θ / δ and (z + 1 / z) / 2 = (θ - λ) / δ for an eigenvalue λ,
 * which gives λ and a new lowest one (as Manteuffel, 1978, finds the ellipse for unsymmetric matrices). Either way the
 * iteration begins anew with the x that it has. One sum an iteration, and only to know when to stop. */
#define RAISE                                                                                                    \
  "in rr; inout least, top; out raise; raise = rr > 10000 * least ? 1 : 0; top = raise == 1 ? 1.5 * top : top;"  \
  "least = raise == 1 ? rr : min(least, rr);"
#define LOWER                                                                                                    \
  "in rr, theta, delta, lowest; inout since, start, low; out lower; now = since + 1; s = theta / delta;"         \
  "f = sqrt(sqrt(sqrt(sqrt(sqrt(sqrt(sqrt(rr / start)))))));"                                                    \
  "z = f * (s + sqrt(fma(s, s, -1))); below = z > 1 ? theta - delta * ((z + 1 / z) / 2) : low;"                  \
  "l = now == 64 ? (lowest == 0 ? (below > 0 ? (below < 0.8 * low ? 1 : 0) : 0) : 0) : 0;"                       \
  "lower = l; low = l == 1 ? below : low; start = now == 64 ? rr : start; since = now == 64 ? 0 : now;"
#define CHEBYSHEV(given_diagonal, own_diagonal, first, later, of_r, of_q)                                        \
  {                                                                                                              \
    .name = "chebyshev", .parameters = {"relative", "absolute", "lowest", "highest"},                            \
    .given = {"b", "x", given_diagonal}, .work = {"r", "p", "q", own_diagonal}, .sections_count = 5,             \
    .sections = {                                                                                                \
        {.from = "x",                                                                                            \
         .to = "q",                                                                                              \
         .steps = {STEP(ROWS, "in b, q" first "; out r, p; r = b - q; p = " of_r ";"                             \
                              "pp = dot(p, p); rr = dot(r, r); bb = dot(b, b);"),                                \
                   STEP(SCALARS, LIMIT),                                                                         \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL),                                                                             \
                   STEP(SCALARS, "in highest, lowest, rr; out top, low, least, steps; top = highest; low = lowest;" \
                                 "least = rr; steps = 0;"),                                                      \
                   GO("in highest; out go; go = highest > 0 ? 1 : 0;", 2)},                                      \
         .next = 1},                                                                                             \
        {.from = "p",                                                                                            \
         .to = "q",                                                                                              \
         .steps = {STEP(ROWS, "in q" later "; t = " of_q "; qq = dot(t, t);"),                                   \
                   STEP(STOP, "in qq; out stop; stop = qq == 0 ? 3 : (qq - qq == 0 ? 0 : 4);"),                  \
                   STEP(SCALARS, "in qq; inout steps, pp; out top, scale; top = 1.1 * sqrt(qq / pp); pp = 1;"    \
                                 "scale = 1 / sqrt(qq); steps = steps + 1;"),                                    \
                   STEP(ROWS, "in q" later "; out p; scalar scale; p = scale * " of_q ";"),                      \
                   GO("in steps; out go; go = steps < 20 ? 1 : 0;", 1)},                                         \
         .next = 2},                                                                                             \
        {.steps = {STEP(SCALARS, "in top, rr; inout low; out theta, delta, rho, since, start;"                   \
                                 "l = low > 0 ? (low < top ? low : top / 30) : top / 30; low = l;"               \
                                 "theta = (top + l) / 2; delta = (top - l) / 2; rho = delta / theta;"            \
                                 "since = 0; start = rr;"),                                                      \
                   STEP(ROWS, "in r" later "; out p; scalar theta; p = " of_r " / theta;")},                     \
         .next = 3},                                                                                             \
        {.from = "p",                                                                                            \
         .to = "q",                                                                                              \
         .steps = {STEP(SCALARS, "in theta, delta; inout rho; out old, share;"                                   \
                                 "next = 1 / (2 * (theta / delta) - rho); old = next * rho;"                     \
                                 "share = 2 * next / delta; rho = next;"),                                       \
                   STEP(ROWS, "in q" later "; inout x, r, p; scalar old, share; x = x + p; r = r - q;"           \
                              "p = fma(old, p, share * " of_r "); rr = dot(r, r);"),                             \
                   STEP(COUNT, NULL),                                                                            \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL),                                                                             \
                   STEP(SCALARS, RAISE),                                                                         \
                   GO("in raise; out go; go = raise;", 2),                                                       \
                   STEP(SCALARS, LOWER),                                                                         \
                   GO("in lower; out go; go = lower;", 2)},                                                      \
         .next = 3},                                                                                             \
        LAST("q")}                                                                                               \
  }

const struct cb_program cb_program_chebyshev[] = {
    CHEBYSHEV(NULL, NULL, "", "", "r", "q"), CHEBYSHEV("diagonal", "d", WITH_DIAGONAL, ", d", "d * r", "d * q")};
