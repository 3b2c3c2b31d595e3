// SPDX-License-Identifier: Apache-2.0
#include "codegen/program/methods/methods.h"

/* Conjugate gradients, after Hestenes and Stiefel. A pᵀA p that is not positive says that A is not positive definite.
 * `z`, the preconditioned residual: a vector, the residual itself where there is no preconditioner. Directions are made
 * in the product: the first from p = 0. An iteration's step is added to x (`pending`) where the next direction is made,
 * as that reads p anyway, or at the end. `first`, `later`: what rows need to make z, and how they keep it. */
#define CG(given_diagonal, own_diagonal, own_z, first, first_z, later, later_z, z, with_fewer_meetings)          \
  {                                                                                                              \
    .name = "cg", .parameters = {"relative", "absolute"}, .given = {"b", "x", given_diagonal},                   \
    .pipelined = with_fewer_meetings,                                                                            \
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

/* The same with one meeting in an iteration, after Ghysels and Vanroose (Parallel Computing 40, 2014): what the product
 * is of, m, is known before the sums that make the next direction, so that these and m's rows are exchanged together.
 * Beside the directions p, s = A p and v = A (d s) go on by recurrences, and w = A (d r).
 *
 * These drift away from what they stand for, further than those of "cg". So now and then, and where the residual by the
 * recurrence is small enough to end, the true one is computed (section 3). While the difference is small beside it, the
 * iteration goes on as it was. Else it goes on as "cg" does (section 4), from x, its true residual and the direction that
 * there is, so that little of what has been learnt is lost; with a meeting more, as only few iterations are left then.
 *
 * `off`: the square of the difference. `slope`: p^T A p of the next direction. `age`: iterations since the last look.
 * `keep`: 1 if the recurrences go on. `turn`: what of the direction goes on. */
#define LOOK                                                                                                     \
  "in rr, limit, slope; inout age; out go; age = age + 1; go = rr > limit ? (slope > 0 ? (age < 128 ? 0 : 1) : 1) : 1;"
#define END_OR_GO_ON                                                                                             \
  "in rr, limit, slope, actual, off, beta; out stop, keep, turn;"                                                \
  "exact = off <= actual / 100 ? 1 : 0; broken = slope - slope == 0 ? 3 : 4;"                                    \
  "failed = exact == 1 ? (slope > 0 ? 0 : broken) : 0;"                                                          \
  "stop = actual - actual == 0 ? (rr <= limit ? (actual <= 1.21 * limit ? 1 : 0) : failed) : 4;"                 \
  "keep = rr <= limit ? 0 : (slope > 0 ? exact : 0); turn = slope > 0 ? beta : 0;"
#define PIPELINED(given_diagonal, own_diagonal, first, of_d, of_q, of_r, of_w)                                   \
  {                                                                                                              \
    .name = "cg", .parameters = {"relative", "absolute"}, .given = {"b", "x", given_diagonal},                   \
    .work = {"r", "m", "made", "q", "p", "s", "v", "w", own_diagonal}, .is_real = 1, .sections_count = 6,        \
    .sections = {                                                                                                \
        {.from = "x",                                                                                            \
         .to = "q",                                                                                              \
         .steps = {STEP(ROWS, "in b, q" first "; out r, m, p, s, v; r = b - q; m = " of_r "; p = 0; s = 0;"      \
                              "v = 0; rr = dot(r, r); bb = dot(b, b);"),                                         \
                   STEP(SCALARS, LIMIT),                                                                         \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL)},                                                                            \
         .next = 1},                                                                                             \
        {.from = "m",                                                                                            \
         .to = "q",                                                                                              \
         .sums = "in q, r" of_d "; out w, made; w = q; made = " of_q "; gamma = dot(r, " of_r ");"               \
                 "delta = dot(q, " of_r ");",                                                                    \
         .steps = {SWAP("made", "m"),                                                                            \
                   STEP(STOP, "in delta; out stop; stop = delta > 0 ? 0 : (delta - delta == 0 ? 3 : 4);"),       \
                   STEP(SCALARS, "in gamma, delta; out alpha, beta, last, age; alpha = gamma / delta; beta = 0;" \
                                 "last = gamma; age = 0;")},                                                     \
         .next = 2},                                                                                             \
        {.from = "m",                                                                                            \
         .to = "q",                                                                                              \
         .sums = "in q" of_d "; inout p, s, v, w, x, r; out made; scalar alpha, beta; v = fma(beta, v, q);"      \
                 "s = fma(beta, s, w); p = fma(beta, p, " of_r "); x = fma(alpha, p, x); r = fma(-alpha, s, r);" \
                 "w = fma(-alpha, v, w); made = " of_w "; gamma = dot(r, " of_r "); delta = dot(w, " of_r ");"   \
                 "rr = dot(r, r);",                                                                              \
         .steps = {SWAP("made", "m"),                                                                            \
                   STEP(COUNT, NULL),                                                                            \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(SCALARS, "in gamma, delta; inout alpha, last; out beta, slope; beta = gamma / last;"     \
                                 "slope = delta - gamma * (gamma / (last * alpha)); alpha = gamma / slope;"      \
                                 "last = gamma;"),                                                               \
                   GO(LOOK, 3),                                                                                  \
                   STEP(MOST, NULL)},                                                                            \
         .next = 2},                                                                                             \
        {.from = "m",                                                                                            \
         .before = "in x; inout m; m = x;",                                                                      \
         .to = "q",                                                                                              \
         .steps = {STEP(ROWS, "in b, q, r; t = b - q; e = t - r; actual = dot(t, t); off = dot(e, e);"),         \
                   STEP(STOP, END_OR_GO_ON),                                                                     \
                   STEP(MOST, NULL),                                                                             \
                   STEP(SCALARS, "out age; age = 0;"),                                                           \
                   STEP(ROWS, "in b, q, w, p" of_d "; inout r; out m; scalar keep, turn; r = keep > 0 ? r : b - q;" \
                              "m = keep > 0 ? " of_w " : fma(turn, p, " of_r "); gamma = dot(r, " of_r ");"),    \
                   GO("in keep; out go; go = keep;", 2)},                                                        \
         .next = 4},                                                                                             \
        {.from = "m",                                                                                            \
         .to = "q",                                                                                              \
         .sums = "in m, q; pq = dot(m, q);",                                                                     \
         .steps = {STEP(STOP, "in pq; out stop; stop = pq > 0 ? 0 : (pq - pq == 0 ? 3 : 4);"),                   \
                   STEP(SCALARS, "in gamma, pq; out alpha, last; alpha = gamma / pq; last = gamma;"),            \
                   STEP(ROWS, "in q, m" of_d "; inout x, r; scalar alpha; x = fma(alpha, m, x);"                 \
                              "r = fma(-alpha, q, r); gamma = dot(r, " of_r "); rr = dot(r, r);"),               \
                   STEP(COUNT, NULL),                                                                            \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL),                                                                             \
                   STEP(SCALARS, "in gamma, last; out beta; beta = gamma / last;"),                              \
                   STEP(ROWS, "in r" of_d "; inout m; scalar beta; m = fma(beta, m, " of_r ");")},               \
         .next = 4},                                                                                             \
        LAST("q")}                                                                                               \
  }

static const struct cb_program pipelined[] = {PIPELINED(NULL, NULL, "", "", "q", "r", "w"),
                                              PIPELINED("diagonal", "d", WITH_DIAGONAL, ", d", "d * q", "d * r", "d * w")};

const struct cb_program cb_program_cg[] = {CG(NULL, NULL, NULL, "", "", "", "", "r", &pipelined[0]),
                                           CG("diagonal", "d", "z", WITH_DIAGONAL "; out z", "z = d * r;", ", d; out z",
                                              "z = d * r;", "z", &pipelined[1]),
                                           CG_APART("inverse", APPLY_BLOCKS), CG_APART(NULL, CALL)};
