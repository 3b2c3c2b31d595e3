// SPDX-License-Identifier: Apache-2.0
#include "codegen/program/methods/methods.h"

/* BiCGSTAB, after van der Vorst, with the preconditioner on the right: y and z are what it makes of p and s:
 * rows do (`of_p`, `of_s`), or steps behind them. */
#define BICGSTAB(given_diagonal, own_diagonal, first, later, made_y, of_p, made_z, of_s, apply_p, apply_s)       \
  {                                                                                                              \
    .name = "bicgstab", .parameters = {"relative", "absolute"}, .given = {"b", "x", given_diagonal},             \
    .work = {"r", "shadow", "p", "y", "v", "s", "z", "t", own_diagonal}, .sections_count = 4,                    \
    .sections = {                                                                                                \
        {.from = "x",                                                                                            \
         .to = "v",                                                                                              \
         .steps = {STEP(ROWS, "in b, v" first "; out r, shadow, p" made_y "; r = b - v; shadow = r; p = r;"      \
                              of_p "rr = dot(r, r); bb = dot(b, b);"),                                           \
                   STEP(SCALARS, LIMIT),                                                                         \
                   STEP(SCALARS, "in rr; out rho; rho = rr;"),                                                   \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL),                                                                             \
                   apply_p},                                                                                     \
         .next = 1},                                                                                             \
        {.from = "y",                                                                                            \
         .to = "v",                                                                                              \
         .sums = "in shadow, v; sv = dot(shadow, v);",                                                           \
         .steps = {STEP(STOP, "in sv; out stop; stop = sv == 0 ? 3 : (sv - sv == 0 ? 0 : 4);"),                  \
                   STEP(SCALARS, "in rho, sv; out alpha; alpha = rho / sv;"),                                    \
                   STEP(ROWS, "in r, v" later "; out s" made_z "; scalar alpha; s = fma(-alpha, v, r);" of_s),   \
                   apply_s},                                                                                     \
         .next = 2},                                                                                             \
        {.from = "z",                                                                                            \
         .to = "t",                                                                                              \
         .sums = "in s, t; ts = dot(t, s); tt = dot(t, t);",                                                     \
         .steps = {STEP(SCALARS, "in ts, tt; out omega; omega = tt > 0 ? ts / tt : tt;"),                        \
                   STEP(ROWS, "in y, z, s, t, shadow; inout x; out r; scalar alpha, omega;"                      \
                              "x = fma(omega, z, fma(alpha, y, x)); r = fma(-omega, t, s);"                      \
                              "next = dot(shadow, r); rr = dot(r, r);"),                                         \
                   STEP(COUNT, NULL),                                                                            \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL),                                                                             \
                   STEP(STOP, "in next, omega; out stop; stop = next == 0 ? 3 : (omega == 0 ? 3 : 0);"),         \
                   STEP(SCALARS, "in next, alpha, omega; inout rho; out beta;"                                   \
                                 "beta = (next / rho) * (alpha / omega); rho = next;"),                          \
                   STEP(ROWS, "in r, v" later "; inout p" made_y "; scalar beta, omega;"                         \
                              "p = fma(beta, fma(-omega, v, p), r);" of_p),                                      \
                   apply_p},                                                                                     \
         .next = 1},                                                                                             \
        LAST("t")}                                                                                               \
  }

#define NO_STEP                                                                                                  \
  { .kind = CB_STEP_END }

const struct cb_program cb_program_bicgstab[] = {
    BICGSTAB(NULL, NULL, "", "", ", y", "y = p;", ", z", "z = s;", NO_STEP, NO_STEP),
    BICGSTAB("diagonal", "d", WITH_DIAGONAL, ", d", ", y", "y = d * p;", ", z", "z = d * s;", NO_STEP, NO_STEP),
    BICGSTAB("inverse", NULL, "", "", "", "", "", "", APPLY_BLOCKS("p", "y"), APPLY_BLOCKS("s", "z")),
    BICGSTAB(NULL, NULL, "", "", "", "", "", "", CALL("p", "y"), CALL("s", "z"))};
