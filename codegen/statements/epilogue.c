// SPDX-License-Identifier: Apache-2.0
/* A plan's epilogue in the text: see epilogue.h. */
#include "codegen/statements/epilogue.h"

#include "codegen/statements/emit.h"

static struct cb_statement_types types_of(const struct emitter *emitter) {
  return (struct cb_statement_types){emitter->plan->vector_type, emitter->plan->sum_type};
}

static int has_pointers(const struct emitter *emitter) {
  const struct cb_statement_types types = types_of(emitter);
  struct cb_text text = {0};
  const int count = cb_emit_pointers(&text, emitter->plan->statements, &types);
  cb_text_release(&text);
  return count > 0;
}

static void add_item(struct cb_text *list, const char *format, const char *name) {
  if (list->length) cb_text_add_string(list, ", ");
  cb_text_add(list, "%s", format);
  if (name) cb_text_add(list, "%s_", name);
}

void cb_epilogue_parameters(struct emitter *emitter, struct cb_text *parameters, struct cb_text *vectors) {
  const struct cb_statements *statements = emitter->plan->statements;
  if (!statements) return;
  if (has_pointers(emitter)) {
    add_item(parameters, "const Attached attached", NULL);
    add_item(vectors, "attached", NULL);
  }
  for (int i = 0; i < statements->names_count; i++) {
    if (statements->names[i].kind != CB_NAME_SCALAR) continue;
    add_item(parameters, "sum_t ", statements->names[i].name);
    add_item(vectors, "", statements->names[i].name);
  }
}

const char *cb_epilogue_arguments(struct emitter *emitter) {
  struct cb_text parameters = {0}, arguments = {0};
  if (!emitter->plan->statements) return "";
  cb_epilogue_parameters(emitter, &parameters, &arguments);
  cb_text_release(&parameters);
  const char *list = keep(emitter, &arguments);
  return *list ? cb_arena_format(&emitter->arena, ", %s", list) : "";
}

/* ---- commit */

static int64_t term_at(const struct cb_plan *plan, int number) { return plan->first_term + number * plan->rows; }

/* A row's term goes to the scratch: which thread commits a row is not the same in every product. */
static void add_term(struct cb_text *text, const struct cb_row_text *row, const struct cb_statement *statement,
                     int number, const char *term) {
  (void)statement;
  cb_text_add(text, "%sstore_l2(vectors.carry_sums + (%lld + int64_t(row)), %s);\n", row->indent,
              (long long)term_at(row->user, number), term);
}

static const char *statements_text(struct emitter *emitter) {
  const struct cb_statement_types types = types_of(emitter);
  const struct cb_row_text row = {.types = &types,
                                  .indent = "  ",
                                  .pointers = "vectors.attached.",
                                  .scalars = "vectors.",
                                  .load = "load_input",
                                  .add_term = add_term,
                                  .user = emitter->plan};
  struct cb_text text = {0};
  cb_emit_row(&text, emitter->plan->statements, &row);
  if (text.length) text.bytes[--text.length] = 0; /* the template ends the line */
  return keep(emitter, &text);
}

/* The epilogue as it was asked for, line by line. */
static const char *comment_text(struct emitter *emitter) {
  struct cb_text text = {0};
  const char *line = emitter->plan->epilogue;
  while (*line) {
    const char *end = line;
    while (*end && *end != '\n') end++;
    cb_text_add(&text, "%s//   %.*s", text.length ? "\n" : "", (int)(end - line), line);
    line = *end ? end + 1 : end;
  }
  return keep(emitter, &text);
}

static const char *scalars_text(struct emitter *emitter) {
  const struct cb_statements *statements = emitter->plan->statements;
  struct cb_text text = {0};
  for (int i = 0; i < statements->names_count; i++)
    if (statements->names[i].kind == CB_NAME_SCALAR)
      cb_text_add(&text, "%s  sum_t %s_;", text.length ? "\n" : "", statements->names[i].name);
  return keep(emitter, &text);
}

enum cb_status cb_epilogue_scope(struct emitter *emitter, struct cb_scope *scope) {
  const struct cb_plan *plan = emitter->plan;
  const struct cb_statement_types types = types_of(emitter);
  struct cb_text members = {0}, functions = {0}, users = {0};
  if (!plan->statements) return CB_OK;
  const char *body = statements_text(emitter), *scalars = scalars_text(emitter);
  cb_text_add(&users, "%s\n%s", body, cb_text_string(&emitter->kernels));
  enum cb_status s = users.failed ? cb_fail_memory(emitter->diag, "generated text", 0) : CB_OK;
  if (!s) s = cb_emit_statement_functions(&functions, cb_text_string(&users), plan->sum_type, emitter->diag);
  cb_text_release(&users);
  cb_scope_section(scope, "epilogue");
  if (cb_emit_pointers(&members, plan->statements, &types)) {
    cb_scope_section(scope, "attached");
    cb_scope_optional(scope, "attached_members", keep(emitter, &members));
  }
  if (*scalars) {
    cb_scope_section(scope, "scalars");
    cb_scope_optional(scope, "scalars_members", scalars);
  }
  cb_scope_optional(scope, "statements", body);
  cb_scope_optional(scope, "statements_comment", comment_text(emitter));
  if (functions.length) cb_scope_section(scope, "calls_functions");
  cb_scope_optional(scope, "functions", keep(emitter, &functions));
  if (cb_statements_read_ax(plan->statements)) cb_scope_optional_section(scope, "reads_ax");
  return s;
}

/* ---- results */

const char *cb_epilogue_reduces(struct emitter *emitter, const struct cb_launch *launch) {
  const struct cb_plan *plan = emitter->plan;
  const struct cb_statements *statements = plan->statements;
  const long long blocks = (long long)launch->blocks, rows = (long long)plan->rows;
  const int results = cb_statements_results(statements);
  struct cb_text each = {0}, all = {0};
  for (int i = 0, number = 0; i < statements->statements_count; i++) {
    const struct cb_statement *statement = &statements->statements[i];
    if (!statement->reduction) continue;
    const char *kind = statement->reduction == CB_REDUCE_MAX ? "Largest" : "Sum";
    const struct cb_name *name = &statements->names[statement->name];
    const char *type = name->type == CB_TYPE_COUNT ? "sum_t" : cb_type_c_name(name->type);
    const long long partials = plan->first_term + results * plan->rows + number * launch->blocks;
    cb_text_add(&each, "  of_rows<%s, %d>(vectors.carry_sums + %lld, %lld, vectors.carry_sums + %lld);\n", kind,
                launch->threads, (long long)term_at(plan, number), rows, partials);
    cb_text_add(&all,
                "  const sum_t %s_ = of_partials<%s, %d>(vectors.carry_sums + %lld, %lld);\n"
                "  if (threadIdx.x == 0) *vectors.attached.%s_ = %s(%s_);\n",
                name->name, kind, launch->threads, partials, blocks, name->name, type, name->name);
    number++;
  }
  cb_text_add(&each, "  if (!is_last_block(vectors.carry_counters + %lld, %lld)) return;\n",
              (long long)plan->reduce_counter, blocks);
  cb_text_add_string(&each, cb_text_string(&all));
  each.failed |= all.failed;
  cb_text_release(&all);
  if (each.length) each.bytes[--each.length] = 0; /* the kernel's template ends the line */
  return keep(emitter, &each);
}
