// SPDX-License-Identifier: Apache-2.0
/* Statements (analysis/statements) as CUDA text. The names that a text chose have an underscore behind them in CUDA, so
 * that none is a word of the language or of the generated text. */
#ifndef CBGEN_CODEGEN_STATEMENTS_EMIT_H
#define CBGEN_CODEGEN_STATEMENTS_EMIT_H

#include "analysis/statements/statements.h"
#include "base/text.h"
#include "base/types.h"

/* The types that names without one have. */
struct cb_statement_types {
  enum cb_type vector, sum;
};

/* Members of the struct of pointers that a kernel gets, in the order of the names: each vector, device scalar and
 * result. Returns how many there are. */
int cb_emit_pointers(struct cb_text *text, const struct cb_statements *statements,
                     const struct cb_statement_types *types);

/* How the statements of one row reach what they read and write. */
struct cb_row_text {
  const struct cb_statement_types *types;
  const char *indent;
  const char *pointers; /* what stands before a pointer's name: "vectors.attached." */
  const char *scalars;  /* likewise before that of a scalar by value; NULL: they are at hand as variables */
  const char *load;     /* a function of an address */
  const char *at_hand;  /* vectors whose entries are at hand, with blanks between them; NULL: none */
  const char *store;    /* a function of an address and a number; NULL: an assignment */
  /* Vectors with slots, as `at_hand`: NAME_kept says where they are, to functions load_kept and store_kept of an
   * address, that, and the row's slot, an expression. */
  const char *kept, *slot;
  /* The line that takes the term of result `number` (counted among the results), an expression. */
  void (*add_term)(struct cb_text *text, const struct cb_row_text *row, const struct cb_statement *statement,
                   int number, const char *term);
  const void *user;
};

/* Loads, statements and stores of the row `row`; `ax` is at hand where it is read. */
void cb_emit_row(struct cb_text *text, const struct cb_statements *statements, const struct cb_row_text *row);

/* Whether statements read the row's entry of A x. */
int cb_statements_read_ax(const struct cb_statements *statements);

/* Appends the functions of templates/statements.cu.in that `users`, CUDA text, calls; with sums of complex numbers
 * those of templates/complex.cu.in. */
struct cb_diag;
enum cb_status cb_emit_statement_functions(struct cb_text *text, const char *users, enum cb_type sum,
                                           struct cb_diag *diag);

#endif
