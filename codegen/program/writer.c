// SPDX-License-Identifier: Apache-2.0
/* Parts of programs' texts: see writer.h. */
#include "codegen/program/writer.h"

#include "base/memory.h"
#include "codegen/constants.h"
#include "codegen/expand.h"

#include <string.h>

const char *cb_writer_keep(struct cb_writer *writer, struct cb_text *text) {
  const char *kept = text->failed ? NULL : cb_arena_string(&writer->arena, cb_text_string(text));
  if (!kept) writer->arena.failed = 1;
  cb_text_release(text);
  return kept ? kept : "";
}

const char *cb_writer_number(struct cb_writer *writer, int64_t value) {
  return cb_arena_format(&writer->arena, "%lld", (long long)value);
}

struct cb_statements *cb_writer_parse(struct cb_writer *writer, const char *text) {
  struct cb_statements *statements = NULL;
  const enum cb_status s = cb_statements_parse(&statements, text, writer->program->name, 0, writer->diag);
  if (s && !writer->status) writer->status = s;
  return statements;
}

static int is_parameter(const struct cb_writer *writer, const char *name) {
  for (const char *const *at = writer->program->parameters; *at; at++)
    if (!strcmp(*at, name)) return 1;
  return 0;
}

void cb_writer_add_scalar(struct cb_writer *writer, const char *name) {
  for (int i = 0; i < writer->scalars_count; i++)
    if (!strcmp(writer->scalars[i], name)) return;
  if (is_parameter(writer, name) || writer->scalars_count == CB_MOST_SCALARS) return;
  const char *copy = cb_arena_string(&writer->arena, name);
  if (copy) writer->scalars[writer->scalars_count++] = copy;
}

static void add_term(struct cb_text *text, const struct cb_row_text *row, const struct cb_statement *statement,
                     int number_of_sum, const char *term) {
  (void)statement;
  cb_text_add(text, "%s%s[%d] += %s;\n", row->indent, (const char *)row->user, number_of_sum, term);
}

int cb_writer_sums(const struct cb_statements *statements) {
  return statements ? cb_statements_results(statements) : 0;
}

struct cb_row_text cb_writer_row(const struct cb_statement_types *types) {
  return (struct cb_row_text){.types = types,
                              .indent = "          ",
                              .pointers = "pointers.",
                              .load = "load_vector",
                              .store = "store_vector",
                              .add_term = add_term,
                              .user = "sums"};
}

void cb_writer_cut(struct cb_text *text) {
  if (text->length && text->bytes[text->length - 1] == '\n') text->bytes[--text->length] = 0;
}

const char *cb_writer_results(struct cb_writer *writer, const struct cb_statements *statements, const char *indent,
                                const char *array) {
  struct cb_text text = {0};
  int count = 0;
  for (int i = 0; i < statements->names_count; i++) {
    if (statements->names[i].kind != CB_NAME_RESULT) continue;
    cb_writer_add_scalar(writer, statements->names[i].name);
    cb_text_add(&text, "%s%s_ = %s[%d];\n", indent, statements->names[i].name, array, count++);
  }
  cb_writer_cut(&text);
  return cb_writer_keep(writer, &text);
}

int cb_writer_has(const char *const *names, const char *name) {
  for (; *names; names++)
    if (!strcmp(*names, name)) return 1;
  return 0;
}

void cb_writer_scalars(struct cb_writer *writer, struct cb_text *text, const char *of_step) {
  const struct cb_spelling spelling = {.type = writer->sum, .suffix = "_"};
  struct cb_statements *statements = cb_writer_parse(writer, of_step);
  if (!statements) return;
  for (int i = 0; i < statements->names_count; i++)
    if (cb_name_is_vector(&statements->names[i])) cb_writer_add_scalar(writer, statements->names[i].name);
  for (int i = 0; i < statements->statements_count; i++) {
    const struct cb_statement *statement = &statements->statements[i];
    const struct cb_name *name = &statements->names[statement->name];
    cb_text_add(text, "      %s%s_ = ", name->kind == CB_NAME_LOCAL ? "const sum_t " : "", name->name);
    cb_statements_expression(text, statements, statement->expression, &spelling);
    cb_text_add_string(text, ";\n");
  }
  cb_free(statements);
}

void cb_writer_add_part(const struct cb_writer *writer, struct cb_scope *scope) {
  const int is_complex = cb_type_is_complex(writer->sum);
  if (is_complex) cb_scope_optional_section(scope, "complex");
  cb_scope_optional(scope, "part", is_complex ? "part_t" : "sum_t");
}

const char *cb_writer_vectors(struct cb_writer *writer) {
  const struct cb_program *program = writer->program;
  struct cb_text text = {0};
  for (const char *const *at = program->given; *at; at++) cb_text_add(&text, "  vector_t *%s_;  // the caller's\n", *at);
  for (const char *const *at = program->work; *at; at++) cb_text_add(&text, "  vector_t *%s_;\n", *at);
  if (program->basis) cb_text_add(&text, "  vector_t *%s_;  // several, kStride apart\n", program->basis);
  cb_writer_cut(&text);
  return cb_writer_keep(writer, &text);
}

void cb_writer_swap(struct cb_text *text, const struct cb_step *step) {
  cb_text_add(text,
              "      {\n"
              "        vector_t *const made = pointers.%s_;\n"
              "        pointers.%s_ = pointers.%s_;\n"
              "        pointers.%s_ = made;\n"
              "      }\n",
              step->to, step->to, step->from, step->from);
}

int cb_writer_most_sums(struct cb_writer *writer, int of_products) {
  const struct cb_program *program = writer->program;
  int most = program->basis && !of_products ? CB_MOST_RESULTS : 1;
  for (int i = 0; i < program->sections_count; i++)
    for (int k = -1; k < (of_products ? 0 : CB_MOST_STEPS); k++) {
      const struct cb_section *section = &program->sections[i];
      const int is_rows = k < 0 || section->steps[k].kind == CB_STEP_ROWS;
      const char *text = k < 0 ? section->sums : section->steps[k].text;
      if (!is_rows || !text) continue;
      struct cb_statements *statements = cb_writer_parse(writer, text);
      if (cb_writer_sums(statements) > most) most = cb_writer_sums(statements);
      cb_free(statements);
    }
  return most;
}

void cb_writer_under(struct cb_text *text, const char *condition, const char *body) {
  cb_text_add(text, "    if (%s) {\n", condition);
  for (const char *end; *body; body = end) {
    end = body + strcspn(body, "\n");
    end += *end == '\n';
    cb_text_add(text, "  %.*s", (int)(end - body), body);
  }
  cb_text_add_string(text, "    }\n");
}

/* Behind the definition of a function that begins at `at`. */
static const char *behind_function(const char *at) {
  const char *end = strchr(at, '\n');
  if (!end || end[-1] != '{') return end ? end + 1 : NULL;
  end = strstr(end, "\n}\n");
  return end ? end + 3 : NULL;
}

/* What others call stands behind them. */
void cb_writer_drop_unused(struct cb_text *text) {
  static const char *const names[] = {"add_scaled", "scale", "product", "add_product", "total", "add"};
  for (size_t i = 0; i < sizeof names / sizeof *names && !text->failed; i++) {
    struct cb_text head = {0}, rest = {0};
    cb_text_add(&head, "CBGEN_DEVICE sum_t %s(", names[i]);
    const char *whole = cb_text_string(text), *at = strstr(whole, cb_text_string(&head));
    const char *end = at ? behind_function(at) : NULL;
    if (end) {
      cb_text_add_bytes(&rest, whole, (size_t)(at - whole));
      cb_text_add_string(&rest, end);
    }
    if (end && !rest.failed && !cb_has_word(cb_text_string(&rest), names[i])) {
      cb_text_release(text);
      *text = rest;
      rest = (struct cb_text){0};
    }
    text->failed |= head.failed | rest.failed;
    cb_text_release(&head);
    cb_text_release(&rest);
  }
}
