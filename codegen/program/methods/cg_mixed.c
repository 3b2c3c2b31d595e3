// SPDX-License-Identifier: Apache-2.0
#include "codegen/program/methods/methods.h"

/* Conjugate gradients (cg.c) in mixed precision: an iteration multiplies with heads of split values, as if the matrix
 * were one of floats, but for its diagonal: what rows of heads lack of the sums of whole ones (`rest`) is added there.
 * So a constant vector, and about what is smooth, is multiplied as by the whole matrix; and where rows have sums of
 * about 0, as those of differential equations have, what heads are off by is small beside the residual, and not as
 * large as the smallest eigenvalue is small. Without that, iterations have to find again late what they had found
 * early, and are an eighth more. (Modified incomplete factorisations keep sums of rows likewise: Gustafsson,
 * BIT 18, 1978.)
 *
 * The residual is computed anew, from x and whole values, when it is 316 times shorter than the longest one since that
 * was done last, and where it is small enough to end: reliable updates, after Sleijpen and van der Vorst (Computing
 * 56, 1996) and, in mixed precision, Clark et al. (Computer Physics Communications 181, 2010). To 1e-10 these are four
 * whole products. Ten, when it is ten times shorter, spare no iteration; but three, when it is a thousand times
 * shorter, may cost a tenth of them more (conductors by diagonals, tests/test_api_mixed.c). Directions go on from it.
 * All vectors, sums and updates are those of "cg", and what ends it is the residual of the whole matrix. */

/* Behind the first section, which leaves ones in p: `rest`, from a product with either kind of values. */
#define REST                                                                                                     \
  {.from = "p", .to = "rest", .next = 2},                                                                        \
  {.from = "p",                                                                                                  \
   .heads = 1,                                                                                                   \
   .to = "q",                                                                                                    \
   .steps = {STEP(ROWS, "in q; inout rest; out p; rest = rest - q; p = 0;")},                                    \
   .next = 3}

#define MULTIPLY_HEADS "in p, rest; inout q; q = fma(rest, p, q); pq = dot(p, q);"

#define REPLACE_WHEN_SHORT                                                                                       \
  "in rr, limit; inout peak; out go; peak = max(peak, rr);"                                                      \
  "go = rr <= limit ? 1 : (rr < peak / 100000 ? 1 : 0);"
#define MIXED(given_diagonal, own_diagonal, own_z, first, first_z, later, later_z, z)                            \
  {                                                                                                              \
    .name = "cg-mixed", .parameters = {"relative", "absolute"}, .given = {"b", "x", given_diagonal},             \
    .work = {"r", "p", "before", "q", "rest", own_diagonal, own_z}, .sections_count = 6, .inner = 3,             \
    .sections = {                                                                                                \
        {.from = "x",                                                                                            \
         .to = "q",                                                                                              \
         .steps = {STEP(ROWS, "in b, q" first "; out r, p; r = b - q; p = 1;" first_z                            \
                              "rz = dot(r, " z "); rr = dot(r, r); bb = dot(b, b);"),                            \
                   STEP(SCALARS, LIMIT),                                                                         \
                   STEP(SCALARS, "in rr; out beta, pending, peak; beta = 0; pending = 0; peak = rr;"),           \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL)},                                                                            \
         .next = 1},                                                                                             \
        REST,                                                                                                    \
        {.from = "p",                                                                                            \
         .heads = 1,                                                                                             \
         .old = "before",                                                                                        \
         .before = "in " z "; inout x, p; scalar beta, pending; x = fma(pending, p, x); p = fma(beta, p, " z ");", \
         .to = "q",                                                                                              \
         .sums = MULTIPLY_HEADS,                                                                                 \
         .steps = {STEP(SCALARS, "out pending; pending = 0;"),                                                   \
                   STEP(STOP, "in pq; out stop; stop = pq > 0 ? 0 : (pq - pq == 0 ? 3 : 4);"),                   \
                   STEP(SCALARS, "in rz, pq; out alpha, pending, last; alpha = rz / pq;"                         \
                                 "pending = alpha; last = rz;"),                                                 \
                   STEP(ROWS, "in q" later "; inout r; scalar alpha; r = fma(-alpha, q, r);" later_z             \
                              "rz = dot(r, " z "); rr = dot(r, r);"),                                            \
                   STEP(COUNT, NULL),                                                                            \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, "in rr; out stop; stop = rr - rr == 0 ? 0 : 4;"),                                  \
                   GO(REPLACE_WHEN_SHORT, 4),                                                                    \
                   STEP(MOST, NULL),                                                                             \
                   STEP(SCALARS, "in rz, last; out beta; beta = rz / last;")},                                   \
         .next = 3},                                                                                             \
        {.from = "x",                                                                                            \
         .before = "in p; inout x; scalar pending; x = fma(pending, p, x);",                                     \
         .to = "q",                                                                                              \
         .steps = {STEP(ROWS, "in b, q" later "; out r; r = b - q;" later_z                                      \
                              "rz = dot(r, " z "); rr = dot(r, r);"),                                            \
                   STEP(SCALARS, "in rr, rz, last; out beta, pending, peak; beta = rz / last; pending = 0;"      \
                                 "peak = rr;"),                                                                  \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL)},                                                                            \
         .next = 3},                                                                                             \
        {.from = "x",                                                                                            \
         .before = "in p; inout x; scalar pending; x = fma(pending, p, x);",                                     \
         .to = "q",                                                                                              \
         .sums = TRUE_RESIDUAL("q")}}                                                                            \
  }

#define MIXED_APART(given_inverse, apply)                                                                        \
  {                                                                                                              \
    .name = "cg-mixed", .parameters = {"relative", "absolute"}, .given = {"b", "x", given_inverse},              \
    .work = {"r", "p", "before", "q", "rest", "z"}, .sections_count = 6, .inner = 3,                             \
    .sections = {                                                                                                \
        {.from = "x",                                                                                            \
         .to = "q",                                                                                              \
         .steps = {STEP(ROWS, "in b, q; out r, p; r = b - q; p = 1; bb = dot(b, b);"),                           \
                   apply("r", "z"),                                                                              \
                   STEP(ROWS, "in r, z; rz = dot(r, z); rr = dot(r, r);"),                                       \
                   STEP(SCALARS, LIMIT),                                                                         \
                   STEP(SCALARS, "in rr; out beta, pending, peak; beta = 0; pending = 0; peak = rr;"),           \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL)},                                                                            \
         .next = 1},                                                                                             \
        REST,                                                                                                    \
        {.from = "p",                                                                                            \
         .heads = 1,                                                                                             \
         .old = "before",                                                                                        \
         .before = "in z; inout x, p; scalar beta, pending; x = fma(pending, p, x); p = fma(beta, p, z);",       \
         .to = "q",                                                                                              \
         .sums = MULTIPLY_HEADS,                                                                                 \
         .steps = {STEP(SCALARS, "out pending; pending = 0;"),                                                   \
                   STEP(STOP, "in pq; out stop; stop = pq > 0 ? 0 : (pq - pq == 0 ? 3 : 4);"),                   \
                   STEP(SCALARS, "in rz, pq; out alpha, pending, last; alpha = rz / pq; pending = alpha;"        \
                                 "last = rz;"),                                                                  \
                   STEP(ROWS, "in q; inout r; scalar alpha; r = fma(-alpha, q, r); rr = dot(r, r);"),            \
                   STEP(COUNT, NULL),                                                                            \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, "in rr; out stop; stop = rr - rr == 0 ? 0 : 4;"),                                  \
                   GO(REPLACE_WHEN_SHORT, 4),                                                                    \
                   STEP(MOST, NULL),                                                                             \
                   apply("r", "z"),                                                                              \
                   STEP(ROWS, "in r, z; rz = dot(r, z);"),                                                       \
                   STEP(SCALARS, "in rz, last; out beta; beta = rz / last;")},                                   \
         .next = 3},                                                                                             \
        {.from = "x",                                                                                            \
         .before = "in p; inout x; scalar pending; x = fma(pending, p, x);",                                     \
         .to = "q",                                                                                              \
         .steps = {STEP(ROWS, "in b, q; out r; r = b - q; rr = dot(r, r);"),                                     \
                   STEP(SCALARS, "in rr; out pending, peak; pending = 0; peak = rr;"),                           \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL),                                                                             \
                   apply("r", "z"),                                                                              \
                   STEP(ROWS, "in r, z; rz = dot(r, z);"),                                                       \
                   STEP(SCALARS, "in rz, last; out beta; beta = rz / last;")},                                   \
         .next = 3},                                                                                             \
        {.from = "x",                                                                                            \
         .before = "in p; inout x; scalar pending; x = fma(pending, p, x);",                                     \
         .to = "q",                                                                                              \
         .sums = TRUE_RESIDUAL("q")}}                                                                            \
  }

const struct cb_program cb_program_cg_mixed[] = {
    MIXED(NULL, NULL, NULL, "", "", "", "", "r"),
    MIXED("diagonal", "d", "z", WITH_DIAGONAL "; out z", "z = d * r;", ", d; out z", "z = d * r;", "z"),
    MIXED_APART("inverse", APPLY_BLOCKS), MIXED_APART(NULL, CALL)};
