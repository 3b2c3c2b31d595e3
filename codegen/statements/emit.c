// SPDX-License-Identifier: Apache-2.0
/* From statements to CUDA text: see emit.h. */
#include "codegen/statements/emit.h"

#include "codegen/expand.h"

#include <stdio.h>
#include <string.h>

static const char suffix[] = "_";

static enum cb_type type_of(const struct cb_name *name, const struct cb_statement_types *types) {
  if (name->type != CB_TYPE_COUNT) return name->type;
  return cb_name_is_vector(name) ? types->vector : types->sum;
}

/* A conversion to the name's type as the text spells it. */
static const char *type_text(const struct cb_name *name) {
  if (name->type != CB_TYPE_COUNT) return cb_type_c_name(name->type);
  return cb_name_is_vector(name) ? "vector_t" : "sum_t";
}

int cb_emit_pointers(struct cb_text *text, const struct cb_statements *statements,
                     const struct cb_statement_types *types) {
  static const char *const meanings[] = {[CB_NAME_IN] = "read, an entry for each row",
                                         [CB_NAME_OUT] = "written, an entry for each row",
                                         [CB_NAME_INOUT] = "read and written, an entry for each row",
                                         [CB_NAME_DEVICE] = "a number",
                                         [CB_NAME_RESULT] = "a result, one number"};
  int count = 0;
  for (int i = 0; i < statements->names_count; i++) {
    const struct cb_name *name = &statements->names[i];
    if (!cb_name_is_given(name) || name->kind == CB_NAME_SCALAR) continue;
    cb_text_add(text, "%s  %s%s *%s%s;  // %s", count++ ? "\n" : "", cb_name_is_written(name) ? "" : "const ",
                cb_type_entry_name(type_of(name, types)), name->name, suffix, meanings[name->kind]);
  }
  return count;
}

/* ---- a row */

/* A call of `function`, or its like for vectors with slots, with the row's entry of the vector; it is left open. */
static void add_call(struct cb_text *text, const char *function, const char *kept_function, const char *name,
                     const struct cb_row_text *row) {
  const int is_kept = row->kept && cb_has_word(row->kept, name);
  cb_text_add(text, "%s(%s%s%s + row", is_kept ? kept_function : function, row->pointers, name, suffix);
  if (is_kept) cb_text_add(text, ", %s_kept, %s", name, row->slot);
}

static void add_loads(struct cb_text *text, const struct cb_statements *statements, const struct cb_row_text *row) {
  for (int i = 0; i < statements->names_count; i++) {
    const struct cb_name *name = &statements->names[i];
    const int is_vector = name->kind == CB_NAME_IN || name->kind == CB_NAME_INOUT;
    if (!name->read || (!is_vector && name->kind != CB_NAME_SCALAR && name->kind != CB_NAME_DEVICE)) continue;
    if (name->kind == CB_NAME_SCALAR && !row->scalars) continue;
    if (row->at_hand && cb_has_word(row->at_hand, name->name)) continue;
    const int changes = name->kind == CB_NAME_INOUT && name->assigned;
    cb_text_add(text, "%s%ssum_t %s%s = ", row->indent, changes ? "" : "const ", name->name, suffix);
    if (name->kind == CB_NAME_SCALAR) {
      cb_text_add(text, "%s%s%s;\n", row->scalars, name->name, suffix);
      continue;
    }
    cb_text_add_string(text, "sum_t(");
    if (is_vector) add_call(text, row->load, "load_kept", name->name, row);
    else cb_text_add(text, "%s(%s%s%s", row->load, row->pointers, name->name, suffix);
    cb_text_add_string(text, "));\n");
  }
}

static void add_store(struct cb_text *text, const struct cb_name *name, const struct cb_row_text *row) {
  const char *type = type_text(name);
  if (row->store) {
    cb_text_add_string(text, row->indent);
    add_call(text, row->store, "store_kept", name->name, row);
    cb_text_add(text, ", %s(%s%s));\n", type, name->name, suffix);
  } else {
    cb_text_add(text, "%s%s%s%s[row] = %s(%s%s);\n", row->indent, row->pointers, name->name, suffix, type, name->name,
                suffix);
  }
}

static void add_statement(struct cb_text *text, const struct cb_statements *statements,
                          const struct cb_statement *statement, const struct cb_row_text *row) {
  const struct cb_spelling spelling = {.type = row->types->sum, .suffix = suffix};
  const struct cb_name *name = &statements->names[statement->name];
  const int loaded = name->kind == CB_NAME_INOUT && name->read;
  const char *kind = loaded ? "" : name->is_truth ? "const bool " : "const sum_t ";
  cb_text_add(text, "%s%s%s%s = ", row->indent, kind, name->name, suffix);
  cb_statements_expression(text, statements, statement->expression, &spelling);
  cb_text_add_string(text, ";\n");
  if (name->kind != CB_NAME_LOCAL) add_store(text, name, row);
}

/* The number of a result among the results. */
static int result_number(const struct cb_statements *statements, int name) {
  int number = 0;
  for (int i = 0; i < name; i++) number += statements->names[i].kind == CB_NAME_RESULT;
  return number;
}

void cb_emit_row(struct cb_text *text, const struct cb_statements *statements, const struct cb_row_text *row) {
  const struct cb_spelling spelling = {.type = row->types->sum, .suffix = suffix};
  add_loads(text, statements, row);
  for (int i = 0; i < statements->statements_count; i++) {
    const struct cb_statement *statement = &statements->statements[i];
    struct cb_text term = {0};
    if (!statement->reduction) {
      add_statement(text, statements, statement, row);
      continue;
    }
    cb_statements_expression(&term, statements, statement->expression, &spelling);
    row->add_term(text, row, statement, result_number(statements, statement->name), cb_text_string(&term));
    text->failed |= term.failed;
    cb_text_release(&term);
  }
}

int cb_statements_read_ax(const struct cb_statements *statements) {
  const int ax = cb_statements_find(statements, "ax");
  return ax >= 0 && statements->names[ax].kind == CB_NAME_AX && statements->names[ax].read;
}

/* ---- functions */

/* The sections of the template; others of it call those before. */
static const char *const functions[] = {"magnitude", "square_root", "smaller", "larger",        "Sum",
                                        "Largest",   "of_block",    "of_rows", "is_last_block", "of_partials"};

enum cb_status cb_emit_statement_functions(struct cb_text *text, const char *users, enum cb_type sum,
                                           struct cb_diag *diag) {
  if (cb_type_is_complex(sum)) return cb_expand_used(text, "complex", users, diag);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (cb_has_word(users, functions[i])) return cb_expand_used(text, "statements", users, diag);
  return CB_OK;
}
