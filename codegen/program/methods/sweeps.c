// SPDX-License-Identifier: Apache-2.0
/* Methods that repeat one product: weighted Jacobi sweeps, the power iteration, PageRank. */
#include "codegen/program/methods/methods.h"

enum { FEW_REGISTERS = 6 /* thread blocks on a multiprocessor: they do little beside the product */ };

/* x += weight D⁻¹ (b - A x); without a diagonal D is 1, which is Richardson's iteration. */
#define JACOBI(given_diagonal, own_diagonal, first, later, of_e)                                                 \
  {                                                                                                              \
    .name = "jacobi", .parameters = {"relative", "absolute", "weight"}, .given = {"b", "x", given_diagonal},     \
    .work = {"q", own_diagonal}, .blocks_per_sm = FEW_REGISTERS, .sections_count = 3,                            \
    .sections = {                                                                                                \
        {.steps = {STEP(ROWS, "in b" first "; bb = dot(b, b);"), STEP(SCALARS, LIMIT)}, .next = 1},              \
        {.from = "x",                                                                                            \
         .to = "q",                                                                                              \
         .sums = "in b, q; e = b - q; rr = dot(e, e);",                                                          \
         .steps = {STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL),                                                                             \
                   STEP(ROWS, "in b, q" later "; inout x; scalar weight; e = b - q; x = fma(weight, " of_e ", x);"), \
                   STEP(COUNT, NULL)},                                                                           \
         .next = 1},                                                                                             \
        LAST("q")}                                                                                               \
  }

const struct cb_program cb_program_jacobi[] = {JACOBI(NULL, NULL, "", "", "e"),
                                               JACOBI("diagonal", "d", WITH_DIAGONAL, ", d", "d * e")};

/* The power iteration: x, of length 1 behind the first step, and its Rayleigh quotient `value`; the residual is
 * A x - value x. */
#define QUOTIENT "in x, q; top = dot(x, q); qq = dot(q, q); xx = dot(x, x);"
const struct cb_program cb_program_power[] = {
    {.name = "power",
     .parameters = {"relative", "absolute"},
     .given = {"b", "x"},
     .work = {"q"},
     .value = "value",
     .blocks_per_sm = FEW_REGISTERS,
     .sections_count = 2,
     .sections = {
         {.from = "x",
          .to = "q",
          .sums = QUOTIENT,
          .steps = {STEP(STOP, "in qq, xx; out stop;"
                               "stop = qq * xx == 0 ? 3 : (qq - qq == 0 ? (xx - xx == 0 ? 0 : 4) : 4);"),
                    STEP(SCALARS, "in top, qq, xx, relative, absolute; out value, shorter, scale, limit;"
                                  "value = top / xx; shorter = 1 / sqrt(xx); scale = 1 / sqrt(qq);"
                                  "size = abs(value); limit = max((relative * relative) * (size * size), absolute * absolute);"),
                    STEP(ROWS, "in q; inout x; scalar value, shorter, scale;"
                               "e = shorter * fma(-value, x, q); x = scale * q; rr = dot(e, e);"),
                    STEP(NOTE, "rr"),
                    STEP(STOP, STOP_WHEN_CONVERGED),
                    STEP(MOST, NULL),
                    STEP(COUNT, NULL)},
          .next = 0},
         {.from = "x",
          .to = "q",
          .sums = QUOTIENT,
          .steps = {STEP(SCALARS, "in top, xx; out value; value = xx == 0 ? 0 : top / xx;"),
                    STEP(ROWS, "in x, q; scalar value; e = fma(-value, x, q); final = dot(e, e);")}}}}};

/* PageRank: x <- damping A x + (1 - damping sum(A x)) b / sum(b), where sum(x) = 1. Columns of A have sum 1; those that
 * are empty (pages without links) hand nothing on, and what is missing goes where b says, as do all jumps. With a
 * diagonal A's entries are divided by that of their column. rr is the square of what one iteration changes, entry by
 * entry. */
#define HANDED "in y; handed = sum(y);"
#define LOST "in handed, damping, jump; out lost; lost = jump * fma(-damping, handed, 1);"
#define PAGERANK(given_diagonal, own_diagonal, own_share, first, later, from_vector, of_x)                       \
  {                                                                                                              \
    .name = "pagerank", .parameters = {"relative", "absolute", "damping"}, .given = {"b", "x", given_diagonal},  \
    .work = {"y", own_diagonal, own_share}, .is_real = 1, .blocks_per_sm = FEW_REGISTERS, .sections_count = 3,   \
    .sections = {                                                                                                \
        {.steps = {STEP(ROWS, "in b, x" first "; bs = sum(b); xs = sum(x);"),                                    \
                   STEP(STOP, "in bs, xs; out stop; both = bs * xs;"                                             \
                              "stop = both - both == 0 ? (bs > 0 ? (xs > 0 ? 0 : 3) : 3) : 4;"),                 \
                   STEP(SCALARS, "in bs, xs, relative, absolute; out jump, scale, limit; jump = 1 / bs;"         \
                                 "scale = 1 / xs; limit = max(relative * relative, absolute * absolute);"),      \
                   STEP(ROWS, "inout x" later "; scalar scale; x = scale * x; " of_x)},                          \
         .next = 1},                                                                                             \
        {.from = from_vector,                                                                                    \
         .to = "y",                                                                                              \
         .sums = HANDED,                                                                                         \
         .steps = {STEP(SCALARS, LOST),                                                                          \
                   STEP(ROWS, "in y, b; inout x" later "; scalar damping, lost;"                                 \
                              "t = fma(damping, y, lost * b); change = sum(abs(t - x)); x = t; " of_x),          \
                   STEP(SCALARS, "in change; out rr; rr = change * change;"),                                    \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL),                                                                             \
                   STEP(COUNT, NULL)},                                                                           \
         .next = 1},                                                                                             \
        {.from = from_vector,                                                                                    \
         .to = "y",                                                                                              \
         .sums = HANDED,                                                                                         \
         .steps = {STEP(SCALARS, LOST),                                                                          \
                   STEP(ROWS, "in x, y, b; scalar damping, lost; t = fma(damping, y, lost * b);"                 \
                              "change = sum(abs(t - x));"),                                                      \
                   STEP(SCALARS, "in change; out final; final = change * change;")}}}                            \
  }

const struct cb_program cb_program_pagerank[] = {
    PAGERANK(NULL, NULL, NULL, "", "", "x", ""),
    PAGERANK("diagonal", "d", "share", WITH_DIAGONAL, "; in d; out share", "share", "share = d * x;")};
