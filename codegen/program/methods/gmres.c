// SPDX-License-Identifier: Apache-2.0
#include "codegen/program/methods/methods.h"

#define WHILE_IT_GROWS "in more; out go; go = more;"
#define WHEN_SINGULAR "in pivot, rr, limit; out stop; stop = pivot == 0 ? (rr <= limit ? 0 : 3) : 0;"

/* GMRES(m), after Saad and Schultz, with the preconditioner on the right, so that its residual is that of A x = b. v:
 * the basis' newest vector, preconditioned; w: A v. A round begins with the true residual. */
#define GMRES(number, given_diagonal, own_diagonal, first)                                                       \
  {                                                                                                              \
    .name = "gmres", .parameters = {"relative", "absolute"}, .given = {"b", "x", given_diagonal},                \
    .work = {"r", "v", "w", own_diagonal}, .basis = "basis", .scalars = {"column", "more", "pivot"},             \
    .staged = &staged[number], .sections_count = 3,                                                              \
    .sections = {                                                                                                \
        {.from = "x",                                                                                            \
         .to = "w",                                                                                              \
         .steps = {STEP(ROWS, "in b, w" first "; out r; r = b - w; rr = dot(r, r); bb = dot(b, b);"),            \
                   STEP(SCALARS, LIMIT),                                                                         \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL),                                                                             \
                   STEP(TEMPLATE, "basis_begin")},                                                               \
         .next = 1},                                                                                             \
        {.from = "v",                                                                                            \
         .to = "w",                                                                                              \
         .steps = {STEP(TEMPLATE, "basis_grow"),                                                                 \
                   STEP(COUNT, NULL),                                                                            \
                   STEP(NOTE, "rr"),                                                                             \
                   GO(WHILE_IT_GROWS, 1),                                                                        \
                   STEP(TEMPLATE, "basis_end"),                                                                  \
                   STEP(STOP, WHEN_SINGULAR)},                                                                   \
         .next = 0},                                                                                             \
        LAST("w")}                                                                                               \
  }

/* The same as stages (templates/stages.cu.in has what each of them does). A round multiplies x, too, as v, so that all
 * sections share one product. */
#define STAGED(given_diagonal, own_diagonal, first)                                                              \
  {                                                                                                              \
    .name = "gmres", .parameters = {"relative", "absolute", "restart"}, .given = {"b", "x", given_diagonal},     \
    .work = {"r", "v", "w", own_diagonal}, .basis = "basis",                                                     \
    .scalars = {"column", "more", "pivot", "last", "before"}, .sections_count = 4,                               \
    .sections = {                                                                                                \
        {.steps = {STEP(ROWS, "in x; out v; v = x;")}, .next = 1},                                               \
        {.from = "v",                                                                                            \
         .to = "w",                                                                                              \
         .steps = {STEP(ROWS, "in b, w" first "; out r; r = b - w; rr = dot(r, r); bb = dot(b, b);"),            \
                   STEP(SCALARS, LIMIT),                                                                         \
                   STEP(NOTE, "rr"),                                                                             \
                   STEP(STOP, STOP_WHEN_CONVERGED),                                                              \
                   STEP(MOST, NULL),                                                                             \
                   STEP(TEMPLATE, "basis_begin")},                                                               \
         .next = 2},                                                                                             \
        {.from = "v",                                                                                            \
         .to = "w",                                                                                              \
         .steps = {STEP(TEMPLATE, "basis_project"),                                                              \
                   STEP(TEMPLATE, "basis_subtract"),                                                             \
                   STEP(TEMPLATE, "basis_project_again"),                                                        \
                   STEP(TEMPLATE, "basis_subtract_again"),                                                       \
                   STEP(TEMPLATE, "basis_grow"),                                                                 \
                   STEP(COUNT, NULL),                                                                            \
                   STEP(NOTE, "rr"),                                                                             \
                   GO(WHILE_IT_GROWS, 2),                                                                        \
                   STEP(TEMPLATE, "basis_end"),                                                                  \
                   STEP(STOP, WHEN_SINGULAR)},                                                                   \
         .next = 1},                                                                                             \
        LAST("w")}                                                                                               \
  }

static const struct cb_program staged[] = {STAGED(NULL, NULL, ""), STAGED("diagonal", "d", WITH_DIAGONAL)};

const struct cb_program cb_program_gmres[] = {GMRES(0, NULL, NULL, ""), GMRES(1, "diagonal", "d", WITH_DIAGONAL)};
