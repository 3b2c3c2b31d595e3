// SPDX-License-Identifier: Apache-2.0
/* Statements: a few lines of text that are executed for each row, where its number is known. An epilogue is such a
 * text that a product carries.
 *
 *   text        = { declaration | statement }              blanks and lines are free; "//" begins a comment
 *   declaration = kind [ type ] name { "," name } ";"
 *   kind        = "in" | "out" | "inout"                   vectors of as many entries as there are rows
 *               | "scalar"                                 a number that the caller gives by value
 *               | "device"                                 a number in device memory, read when the kernel runs
 *   type        = "double" | "float"                       else vectors have the product's type, numbers that of sums
 *   statement   = name "=" ( choice | reduction ) ";"
 *   reduction   = "dot" "(" choice "," choice ")" | "sum" "(" choice ")" | "max" "(" choice ")"      over all rows
 *   choice      = relation [ "?" choice ":" choice ]
 *   relation    = addition [ ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) addition ]
 *   addition    = product { ( "+" | "-" ) product }
 *   product     = unary { ( "*" | "/" ) unary }
 *   unary       = "-" unary | "(" choice ")" | number | name | function "(" choice { "," choice } ")"
 *   function    = "abs" | "sqrt" | "min" | "max" | "fma"   of 1, 1, 2, 2 and 3 numbers
 *
 * `row` is the row's number, from 0, as a number of the sums' type; `ax` is the row's entry of A x, where there is one.
 * A name is assigned once: an `out` or `inout` vector, whose entry of this row is written; or a new name, which later
 * statements may read; or, by a reduction, a result, which is known only when all rows are done. An `out` vector may be
 * read once it is assigned, and an `inout` vector holds what was there before until then. Vectors that are read and
 * written may be the same memory only as one `inout`: a row's entries are read before they are written, but rows have
 * no order.
 *
 * All numbers are computed in the sums' type, each operation rounded by itself, so that a text has one meaning:
 * cb_statements_row computes it on the host with the same bits. Numbers and truths are told apart: comparisons give
 * truths, which "?" takes and nothing else.
 *
 * Programs (codegen/program) have complex numbers, too, of which a dot product conjugates its first vector, order is
 * that of real parts, abs is the size, and sqrt takes the real part: roots are those of what is real but for rounding.
 */
#ifndef CBGEN_ANALYSIS_STATEMENTS_STATEMENTS_H
#define CBGEN_ANALYSIS_STATEMENTS_STATEMENTS_H

#include "base/arena.h"
#include "base/status.h"
#include "base/text.h"
#include "base/types.h"

#include <stdint.h>

enum cb_name_kind {
  CB_NAME_IN,
  CB_NAME_OUT,
  CB_NAME_INOUT,
  CB_NAME_SCALAR,
  CB_NAME_DEVICE,
  CB_NAME_RESULT, /* of a reduction: one number, written to device memory */
  CB_NAME_LOCAL,
  CB_NAME_AX,
  CB_NAME_ROW
};

struct cb_name {
  char name[32];
  enum cb_name_kind kind;
  enum cb_type type; /* CB_TYPE_COUNT: the product's */
  int is_truth;      /* of a local */
  int assigned, read; /* by a statement so far */
};

enum cb_operation {
  CB_OP_NUMBER,
  CB_OP_NAME,
  CB_OP_NEGATE,
  CB_OP_ABS,
  CB_OP_SQRT,
  CB_OP_ADD,
  CB_OP_SUBTRACT,
  CB_OP_MULTIPLY,
  CB_OP_INNER, /* a dot product's: the first operand is conjugated */
  CB_OP_DIVIDE,
  CB_OP_MIN,
  CB_OP_MAX,
  CB_OP_LESS,
  CB_OP_LESS_EQUAL,
  CB_OP_GREATER,
  CB_OP_GREATER_EQUAL,
  CB_OP_EQUAL,
  CB_OP_NOT_EQUAL,
  CB_OP_FMA,
  CB_OP_CHOOSE,
  CB_OPERATIONS
};

/* Its operands stand before it in the list. */
struct cb_expression {
  enum cb_operation operation;
  int operands[3];
  int name;      /* CB_OP_NAME */
  double number; /* CB_OP_NUMBER */
  int is_truth;
};

enum cb_reduction { CB_REDUCE_NONE, CB_REDUCE_SUM, CB_REDUCE_MAX };

struct cb_statement {
  int name, expression;         /* a dot product is the sum of a product */
  enum cb_reduction reduction; /* then the name is a CB_NAME_RESULT */
};

enum { CB_MOST_NAMES = 48, CB_MOST_EXPRESSIONS = 512, CB_MOST_STATEMENTS = 64, CB_MOST_RESULTS = 8 };

struct cb_statements {
  int names_count, expressions_count, statements_count;
  struct cb_name names[CB_MOST_NAMES]; /* in the order of their declarations */
  struct cb_expression expressions[CB_MOST_EXPRESSIONS];
  struct cb_statement statements[CB_MOST_STATEMENTS];
};

/* Reads and checks a text. `what` names it in messages, which say line and column: "epilogue:2:7: …". `has_ax`: whether
 * there is a product. On success *statements is the caller's (cb_free); on failure it is NULL. CB_ERR_ARGUMENT: the
 * text is wrong; CB_ERR_LIMIT: too long; CB_ERR_MEMORY. */
enum cb_status cb_statements_parse(struct cb_statements **statements, const char *text, const char *what, int has_ax,
                                   struct cb_diag *diag);

/* The text that all texts of the same meaning have, which differ in blanks, comments and superfluous parentheses. */
void cb_statements_print(struct cb_text *text, const struct cb_statements *statements);

/* An expression as text: fully in parentheses, numbers as literals of `type`, names with `suffix` behind those that
 * the text chose (so that none is a word of CUDA), functions as CUDA has them or, `plain`, as the grammar above. */
struct cb_spelling {
  enum cb_type type; /* complex ones in CUDA alone */
  const char *suffix;
  int plain;
};
void cb_statements_expression(struct cb_text *text, const struct cb_statements *statements, int expression,
                              const struct cb_spelling *spelling);

/* The number of a name; -1: there is none. */
int cb_statements_find(const struct cb_statements *statements, const char *name);

/* Whether the caller gives something for the name: all but locals, ax and row. */
static inline int cb_name_is_given(const struct cb_name *name) { return name->kind <= CB_NAME_RESULT; }
static inline int cb_name_is_vector(const struct cb_name *name) { return name->kind <= CB_NAME_INOUT; }
static inline int cb_name_is_written(const struct cb_name *name) {
  return name->kind == CB_NAME_OUT || name->kind == CB_NAME_INOUT || name->kind == CB_NAME_RESULT;
}

/* Of reductions. */
int cb_statements_results(const struct cb_statements *statements);

/* Executes them for one row in arithmetic of `type`, f64 or f32. values[n]: what name n holds; what they assign is
 * there afterwards, for a reduction the row's term. */
void cb_statements_row(const struct cb_statements *statements, enum cb_type type, double values[CB_MOST_NAMES]);

#endif
