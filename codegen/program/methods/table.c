// SPDX-License-Identifier: Apache-2.0
/* The built-in programs by name. */
#include "codegen/program/methods/methods.h"

#include "base/integers.h"

#include <stddef.h>
#include <string.h>

/* By preconditioning; a method has the first `count` of them. */
static const struct {
  const struct cb_program *programs;
  int count;
} methods[] = {{cb_program_cg, 4},        {cb_program_bicgstab, 4}, {cb_program_minres, 2},
               {cb_program_gmres, 2},     {cb_program_chebyshev, 2}, {cb_program_jacobi, 2},
               {cb_program_power, 1},     {cb_program_pagerank, 2}, {cb_program_cg_mixed, 4}};

enum { METHODS = sizeof methods / sizeof *methods };

const struct cb_program *cb_program_find(const char *name, enum cb_preconditioning preconditioning) {
  for (int i = 0; i < METHODS; i++)
    if (!strcmp(name, methods[i].programs->name))
      return (int)preconditioning < methods[i].count ? &methods[i].programs[preconditioning] : NULL;
  return NULL;
}

enum cb_status cb_program_in_form(const struct cb_program **out, const struct cb_program *program,
                                  const struct cb_program_form *form, struct cb_diag *diag) {
  *out = form->pipelined ? program->pipelined : program;
  if (*out) return CB_OK;
  return cb_fail(diag, CB_ERR_UNSUPPORTED,
                 "method '%s' has no program form with '+pipelined', or not with this preconditioner", program->name);
}

int cb_program_has_heads(const struct cb_program *program) {
  for (int i = 0; i < program->sections_count; i++)
    if (program->sections[i].heads) return 1;
  return 0;
}

int cb_program_count(const char *const *names) {
  int count = 0;
  while (names[count]) count++;
  return count;
}

const char *cb_program_name(int number) {
  return number >= 0 && number < METHODS ? methods[number].programs->name : NULL;
}

int64_t cb_program_stride(int64_t rows) { return cb_round_up(rows, 32); }
