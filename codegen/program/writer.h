// SPDX-License-Identifier: Apache-2.0
/* What the texts of programs have in common, be they one kernel (text.c) or several (stages.c): statements of steps
 * become CUDA over scalars that are variables. */
#ifndef CBGEN_CODEGEN_PROGRAM_WRITER_H
#define CBGEN_CODEGEN_PROGRAM_WRITER_H

#include "base/arena.h"
#include "codegen/expand.h"
#include "codegen/program/program.h"
#include "codegen/statements/emit.h"

enum { CB_MOST_SCALARS = 64 };

/* Zeros but for the program, the types and the message's place. The first failure stays in `status`. */
struct cb_writer {
  const struct cb_program *program;
  enum cb_type vector, sum;
  struct cb_arena arena;
  const char *scalars[CB_MOST_SCALARS]; /* that steps have named so far, parameters apart */
  int scalars_count;
  struct cb_diag *diag;
  enum cb_status status;
};

/* Texts that live as long as the arena; the first takes its text over. */
const char *cb_writer_keep(struct cb_writer *writer, struct cb_text *text);
const char *cb_writer_number(struct cb_writer *writer, int64_t value);

/* The caller's: cb_free. NULL: they are none, as `status` says. */
struct cb_statements *cb_writer_parse(struct cb_writer *writer, const char *text);

void cb_writer_add_scalar(struct cb_writer *writer, const char *name);

/* How many sums the statements make; NULL: none. */
int cb_writer_sums(const struct cb_statements *statements);

/* How a step's rows are written: terms go to the array `sums`. */
struct cb_row_text cb_writer_row(const struct cb_statement_types *types);

/* "      rz_ = sums[0];" for each result, which is a scalar from here on. */
const char *cb_writer_results(struct cb_writer *writer, const struct cb_statements *statements, const char *indent,
                              const char *array);

/* Statements whose vectors are scalars. */
void cb_writer_scalars(struct cb_writer *writer, struct cb_text *text, const char *of_step);

/* "  vector_t *b_;" and so on: the program's vectors, as members of a struct. */
const char *cb_writer_vectors(struct cb_writer *writer);

/* Whether the name is among those, which NULL ends. */
int cb_writer_has(const char *const *names, const char *name);

/* Of complex numbers what stands behind one whose real part is meant: ".re"; else nothing. */
static inline const char *cb_writer_real(const struct cb_writer *writer) {
  return cb_type_is_complex(writer->sum) ? ".re" : "";
}

/* What definitions need to know of numbers: section `complex`, and how a real one is called. */
void cb_writer_add_part(const struct cb_writer *writer, struct cb_scope *scope);
/* The most sums that any step of the program has; `of_products`: behind products alone. */
int cb_writer_most_sums(struct cb_writer *writer, int of_products);

/* Two vectors change places. */
void cb_writer_swap(struct cb_text *text, const struct cb_step *step);

/* The lines of `body` behind a condition. */
void cb_writer_under(struct cb_text *text, const char *condition, const char *body);

/* Drops arithmetic that only the product's own `commit` used. */
void cb_writer_drop_unused(struct cb_text *text);

/* Takes the last line's end away. */
void cb_writer_cut(struct cb_text *text);

#endif
