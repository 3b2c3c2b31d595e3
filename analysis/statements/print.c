// SPDX-License-Identifier: Apache-2.0
/* Checked statements as text again, and as numbers: see statements.h. */
#include "analysis/statements/statements.h"

#include "analysis/layout.h"

#include <math.h>

/* How each operation is spelled: an operator between its operands, or a function of them. */
static const struct operation {
  const char *sign;
  const char *function, *cuda;
  const char *of_complex; /* the function that it is of complex numbers; NULL: as of others */
  int operands;
} operations[CB_OPERATIONS] = {
    [CB_OP_NEGATE] = {.sign = "-", .operands = 1},
    [CB_OP_ABS] = {.function = "abs", .cuda = "magnitude", .operands = 1},
    [CB_OP_SQRT] = {.function = "sqrt", .cuda = "square_root", .operands = 1},
    [CB_OP_ADD] = {.sign = "+", .operands = 2},
    [CB_OP_SUBTRACT] = {.sign = "-", .operands = 2},
    [CB_OP_MULTIPLY] = {.sign = "*", .operands = 2},
    [CB_OP_INNER] = {.sign = "*", .of_complex = "inner", .operands = 2},
    [CB_OP_DIVIDE] = {.sign = "/", .operands = 2},
    [CB_OP_MIN] = {.function = "min", .cuda = "smaller", .operands = 2},
    [CB_OP_MAX] = {.function = "max", .cuda = "larger", .operands = 2},
    [CB_OP_LESS] = {.sign = "<", .operands = 2},
    [CB_OP_LESS_EQUAL] = {.sign = "<=", .operands = 2},
    [CB_OP_GREATER] = {.sign = ">", .operands = 2},
    [CB_OP_GREATER_EQUAL] = {.sign = ">=", .operands = 2},
    [CB_OP_EQUAL] = {.sign = "==", .operands = 2},
    [CB_OP_NOT_EQUAL] = {.sign = "!=", .operands = 2},
    [CB_OP_FMA] = {.function = "fma", .cuda = "fma", .operands = 3},
    [CB_OP_CHOOSE] = {.operands = 3},
};

/* ---- text */

static void add_name(struct cb_text *text, const struct cb_name *name, const struct cb_spelling *spelling) {
  const int is_own = name->kind != CB_NAME_AX && name->kind != CB_NAME_ROW;
  if (name->kind == CB_NAME_ROW && !spelling->plain) cb_text_add_string(text, "sum_t(row)");
  else cb_text_add(text, "%s%s", name->name, is_own ? spelling->suffix : "");
}

static void add_leaf(struct cb_text *text, const struct cb_statements *statements, const struct cb_expression *leaf,
                     const struct cb_spelling *spelling) {
  char literal[CB_LITERAL];
  if (leaf->operation == CB_OP_NAME) {
    add_name(text, &statements->names[leaf->name], spelling);
    return;
  }
  const enum cb_type part = cb_type_of_part(spelling->type);
  const double rounded = cb_real_round(leaf->number, part);
  if (!cb_real_is_finite(rounded)) { /* beyond the type's range */
    cb_text_add_string(text, "infinity<sum_t>()");
    return;
  }
  if (spelling->plain) cb_real_text(literal, leaf->number, CB_F64);
  else cb_literal(literal, rounded, part);
  cb_text_add(text, cb_type_is_complex(spelling->type) ? "sum_t(%s)" : "%s", literal);
}

void cb_statements_expression(struct cb_text *text, const struct cb_statements *statements, int expression,
                              const struct cb_spelling *spelling) {
  const struct cb_expression *one = &statements->expressions[expression];
  const struct operation *operation = &operations[one->operation];
  if (!operation->operands) {
    add_leaf(text, statements, one, spelling);
    return;
  }
  const char *of_complex = cb_type_is_complex(spelling->type) ? operation->of_complex : NULL;
  const char *function = of_complex ? of_complex : spelling->plain ? operation->function : operation->cuda;
  const char *between = function ? "," : operation->sign;
  cb_text_add(text, "%s(", function ? function : "");
  if (operation->operands == 1 && !function) cb_text_add_string(text, operation->sign);
  for (int i = 0; i < operation->operands; i++) {
    if (i && one->operation == CB_OP_CHOOSE) cb_text_add_string(text, i == 1 ? " ? " : " : ");
    else if (i) cb_text_add(text, "%s%s ", function ? "" : " ", between);
    cb_statements_expression(text, statements, one->operands[i], spelling);
  }
  cb_text_add_string(text, ")");
}

void cb_statements_print(struct cb_text *text, const struct cb_statements *statements) {
  static const char *const kinds[] = {"in", "out", "inout", "scalar", "device"};
  static const char *const reductions[] = {"", "sum", "max"};
  const struct cb_spelling spelling = {.type = CB_F64, .suffix = "", .plain = 1};
  for (int i = 0; i < statements->names_count; i++) {
    const struct cb_name *name = &statements->names[i];
    if (name->kind > CB_NAME_DEVICE) continue;
    const char *type = name->type == CB_F64 ? " double" : name->type == CB_F32 ? " float" : "";
    cb_text_add(text, "%s%s %s;\n", kinds[name->kind], type, name->name);
  }
  for (int i = 0; i < statements->statements_count; i++) {
    const struct cb_statement *statement = &statements->statements[i];
    cb_text_add(text, "%s = %s%s", statements->names[statement->name].name, reductions[statement->reduction],
                statement->reduction ? "(" : "");
    cb_statements_expression(text, statements, statement->expression, &spelling);
    cb_text_add_string(text, statement->reduction ? ");\n" : ";\n");
  }
}

/* ---- numbers */

/* Operations on doubles that are rounded to floats afterwards give what floats do: but for fma. */
static double apply(enum cb_operation operation, enum cb_type type, const double a[3]) {
  switch (operation) {
  case CB_OP_NEGATE: return -a[0];
  case CB_OP_ABS: return fabs(a[0]);
  case CB_OP_SQRT: return sqrt(a[0]);
  case CB_OP_ADD: return a[0] + a[1];
  case CB_OP_SUBTRACT: return a[0] - a[1];
  case CB_OP_MULTIPLY:
  case CB_OP_INNER: return a[0] * a[1];
  case CB_OP_DIVIDE: return a[0] / a[1];
  case CB_OP_MIN: return a[1] < a[0] ? a[1] : a[0];
  case CB_OP_MAX: return a[0] < a[1] ? a[1] : a[0];
  case CB_OP_LESS: return a[0] < a[1];
  case CB_OP_LESS_EQUAL: return a[0] <= a[1];
  case CB_OP_GREATER: return a[0] > a[1];
  case CB_OP_GREATER_EQUAL: return a[0] >= a[1];
  case CB_OP_EQUAL: return a[0] == a[1];
  case CB_OP_NOT_EQUAL: return a[0] != a[1];
  case CB_OP_FMA: return type == CB_F32 ? (double)fmaf((float)a[0], (float)a[1], (float)a[2]) : fma(a[0], a[1], a[2]);
  default: return a[0] != 0 ? a[1] : a[2]; /* CB_OP_CHOOSE */
  }
}

static double evaluate(const struct cb_statements *statements, int expression, enum cb_type type,
                       const double values[CB_MOST_NAMES]) {
  const struct cb_expression *one = &statements->expressions[expression];
  double operands[3] = {0};
  if (one->operation == CB_OP_NUMBER) return cb_real_round(one->number, type);
  if (one->operation == CB_OP_NAME) return cb_real_round(values[one->name], type);
  for (int i = 0; i < operations[one->operation].operands; i++)
    operands[i] = evaluate(statements, one->operands[i], type, values);
  return cb_real_round(apply(one->operation, type, operands), type);
}

void cb_statements_row(const struct cb_statements *statements, enum cb_type type, double values[CB_MOST_NAMES]) {
  for (int i = 0; i < statements->statements_count; i++)
    values[statements->statements[i].name] = evaluate(statements, statements->statements[i].expression, type, values);
}
