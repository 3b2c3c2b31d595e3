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
 * diagonal A's entries are divided by that of their column.
 *
 * What is missing is known behind the product alone, and a second pass over vectors would begin there. So A multiplies
 * not x but what pages are handed, y = A x: with c = b / sum(b) and lost = 1 - damping sum(y), the next x is damping y
 * + lost c, and what that hands on, the next y, is damping A y + lost A c, of which A c is known from the beginning
 * (w). So x is made at the end alone, and what an iteration does beside the product is done where the product commits a
 * row: it reads that of A c and of the y before, and sums two numbers.
 *
 * rr is the square of a bound of what an iteration changes, entry by entry, at most twice that: damping (|y - old y| +
 * |sum(y) - sum(old y)| sum|c|); the first one is of the change itself. So it may take some iterations more than that
 * would.
 *
 * y and z (with a diagonal their shares, which are multiplied) take turns; `turn` is above 0 where z is the last y, and
 * below where there is none. `apart`: of the first x from c. Where that is 0, A c is the first y. */
#define HANDED "in y; handed = sum(y);"
#define BOUND                                                                                                    \
  "in handed, moved, damping, spread; inout lost; out rr; now = fma(-damping, handed, 1);"                       \
  "change = fma(damping, moved, abs(now - lost) * spread); rr = change * change; lost = now;"
#define ONE_PASS(own_from, own_to, own_sums, other, own_turn)                                                    \
  {                                                                                                              \
    .from = own_from, .to = own_to, .sums = own_sums,                                                            \
    .steps = {STEP(SCALARS, BOUND),                                                                              \
              STEP(SCALARS, "out turn; turn = " own_turn ";"),                                                   \
              STEP(NOTE, "rr"),                                                                                  \
              STEP(STOP, STOP_WHEN_CONVERGED),                                                                   \
              STEP(MOST, NULL),                                                                                  \
              STEP(COUNT, NULL)},                                                                                \
    .next = other                                                                                                \
  }
#define PAGERANK(given_diagonal, first, later, of_x, of_c, of_y, x_from, c_from, one, another, last, ...)        \
  {                                                                                                              \
    .name = "pagerank", .parameters = {"relative", "absolute", "damping"}, .given = {"b", "x", given_diagonal},  \
    .work = {"y", "z", "w", __VA_ARGS__}, .is_real = 1, .blocks_per_sm = FEW_REGISTERS,                          \
    .sections_count = 6,                                                                                         \
    .sections = {                                                                                                \
        {.steps = {STEP(SCALARS, "out turn; turn = -1;"),                                                        \
                   STEP(ROWS, "in b, x" first "; bs = sum(b); xs = sum(x); ba = sum(abs(b));"),                   \
                   STEP(STOP, "in bs, xs; out stop; both = bs * xs;"                                             \
                              "stop = both - both == 0 ? (bs > 0 ? (xs > 0 ? 0 : 3) : 3) : 4;"),                 \
                   STEP(SCALARS, "in bs, ba, xs, relative, absolute; out jump, spread, scale, limit; jump = 1 / bs;" \
                                 "spread = jump * ba; scale = 1 / xs;"                                           \
                                 "limit = max(relative * relative, absolute * absolute);"),                      \
                   STEP(ROWS, "in b; inout x" later "; out z; scalar scale, jump; x = scale * x; c = jump * b;"  \
                              of_x of_c "apart = sum(abs(x - c));")},                                            \
         .next = 1},                                                                                             \
        {.from = x_from,                                                                                         \
         .to = "y",                                                                                              \
         .sums = HANDED,                                                                                         \
         .steps = {STEP(SCALARS, "in handed, damping; out lost, turn; lost = fma(-damping, handed, 1); turn = 0;"), \
                   STEP(ROWS, "in x, y, b" later "; out w; scalar damping, lost, jump;"                          \
                              "t = fma(damping, y, lost * (jump * b)); change = sum(abs(t - x)); w = y; " of_y), \
                   STEP(SCALARS, "in change; out rr; rr = change * change;"),                                    \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL),                                                                             \
                   STEP(COUNT, NULL),                                                                            \
                   GO("in apart; out go; go = apart > 0 ? 0 : 1;", 3)},                                          \
         .next = 2},                                                                                             \
        {.from = c_from, .to = "w", .next = 3},                                                                  \
        one,                                                                                                     \
        another,                                                                                                 \
        {.from = x_from,                                                                                         \
         .to = "y",                                                                                              \
         .before = last,                                                                                         \
         .sums = HANDED,                                                                                         \
         .steps = {STEP(SCALARS, "in handed, damping, jump; out lost; lost = jump * fma(-damping, handed, 1);"), \
                   STEP(ROWS, "in x, y, b; scalar damping, lost;"                                                \
                              "t = fma(damping, y, lost * b); change = sum(abs(t - x));"),                       \
                   STEP(SCALARS, "in change; out final; final = change * change;")}}}                            \
  }

#define OF_Y(from, to)                                                                                           \
  "in " from ", w; inout " to "; scalar damping, lost; " to " = fma(damping, " to ", lost * w);"                 \
  "moved = sum(abs(" to " - " from ")); handed = sum(" to ");"
#define OF_SHARES(to)                                                                                            \
  "in q, w, d; inout y; out " to "; scalar damping, lost; t = fma(damping, q, lost * w); moved = sum(abs(t - y));" \
  "handed = sum(t); y = t; " to " = d * t;"
#define X_OF(y)                                                                                                  \
  "scalar damping, lost, jump, turn; x = turn < 0 ? x : fma(damping, " y ", lost * (jump * b));"

const struct cb_program cb_program_pagerank[] = {
    PAGERANK(NULL, "", "", "", "z = c;", "", "x", "z", ONE_PASS("y", "z", OF_Y("y", "z"), 4, "1"),
             ONE_PASS("z", "y", OF_Y("z", "y"), 3, "0"), "in y, z, b; inout x;" X_OF("(turn > 0 ? z : y)"), NULL),
    PAGERANK("diagonal", WITH_DIAGONAL, "; in d; out share", "share = d * x;", "z = d * c;", "share = d * y;", "share",
             "z", ONE_PASS("share", "q", OF_SHARES("z"), 4, "1"), ONE_PASS("z", "q", OF_SHARES("share"), 3, "0"),
             "in y, b, d; inout x, share;" X_OF("y") "share = d * x;", "q", "d", "share")};
