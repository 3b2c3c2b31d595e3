// SPDX-License-Identifier: Apache-2.0
/* The text of a program's kernel: see program.h. cb_program_text at the end lists its parts; their frames stand in
 * templates/program.cu.in. */
#include "base/arena.h"
#include "base/memory.h"
#include "codegen/check.h"
#include "codegen/constants.h"
#include "codegen/expand.h"
#include "codegen/program/product.h"
#include "codegen/program/program.h"
#include "codegen/source.h"
#include "codegen/statements/emit.h"

#include <stdio.h>
#include <string.h>

enum { MOST_SCALARS = 64, MOST_THREADS = 1024, BLOCKS_PER_SM = 4 /* registers for more would not do for a product and the rest */ };

struct writer {
  const struct cb_program_request *request;
  struct cb_product_text product;
  struct cb_arena arena;
  const char *scalars[MOST_SCALARS];
  int scalars_count;
  int fused;   /* sums behind a product are added up in it */
  int blended; /* some section is: see is_blended */
  int aligned; /* steps go through rows as the product does */
  int groups;
  int unmet;   /* a step has written vectors, and thread blocks have not met since */
  struct cb_diag *diag;
  enum cb_status status;
};

static const char *keep(struct writer *writer, struct cb_text *text) {
  const char *kept = text->failed ? NULL : cb_arena_string(&writer->arena, cb_text_string(text));
  if (!kept) writer->arena.failed = 1;
  cb_text_release(text);
  return kept ? kept : "";
}

static const char *number(struct writer *writer, int64_t value) {
  return cb_arena_format(&writer->arena, "%lld", (long long)value);
}

static struct cb_statements *parse(struct writer *writer, const char *text) {
  struct cb_statements *statements = NULL;
  const enum cb_status s = cb_statements_parse(&statements, text, writer->request->program->name, 0, writer->diag);
  if (s && !writer->status) writer->status = s;
  return statements;
}

static int is_parameter(const struct writer *writer, const char *name) {
  for (const char *const *at = writer->request->program->parameters; *at; at++)
    if (!strcmp(*at, name)) return 1;
  return 0;
}

static void add_scalar(struct writer *writer, const char *name) {
  for (int i = 0; i < writer->scalars_count; i++)
    if (!strcmp(writer->scalars[i], name)) return;
  if (is_parameter(writer, name) || writer->scalars_count == MOST_SCALARS) return;
  const char *copy = cb_arena_string(&writer->arena, name);
  if (copy) writer->scalars[writer->scalars_count++] = copy;
}

/* How many sums the statements make. */
static int sums_of(const struct cb_statements *statements) {
  return statements ? cb_statements_results(statements) : 0;
}

/* The most sums that any step has; behind products alone, or of all. */
static int most_sums(struct writer *writer, int of_products) {
  const struct cb_program *program = writer->request->program;
  int most = 1;
  for (int i = 0; i < program->sections_count; i++)
    for (int k = -1; k < (of_products ? 0 : CB_MOST_STEPS); k++) {
      const struct cb_section *section = &program->sections[i];
      const int is_rows = k < 0 || section->steps[k].kind == CB_STEP_ROWS;
      const char *text = k < 0 ? section->sums : section->steps[k].text;
      if (!is_rows || !text) continue;
      struct cb_statements *statements = parse(writer, text);
      if (sums_of(statements) > most) most = sums_of(statements);
      cb_free(statements);
    }
  return most;
}

/* ---- vectors that are made where they are read */

/* What the vector is made of: factor * itself + addend. */
struct blend {
  const char *factor, *addend; /* in `statements` */
};

/* Whether the statement makes `from` in that way. */
static int is_blend(const struct cb_statements *statements, const struct cb_statement *statement, const char *from,
                    struct blend *blend) {
  const struct cb_name *names = statements->names;
  const struct cb_expression *of = statements->expressions, *whole = &of[statement->expression];
  if (strcmp(names[statement->name].name, from) != 0 || whole->operation != CB_OP_FMA) return 0;
  const struct cb_name *parts[3];
  for (int i = 0; i < 3; i++) {
    if (of[whole->operands[i]].operation != CB_OP_NAME) return 0;
    parts[i] = &names[of[whole->operands[i]].name];
  }
  *blend = (struct blend){parts[0]->name, parts[2]->name};
  return parts[0]->kind == CB_NAME_SCALAR && !strcmp(parts[1]->name, from) && parts[2]->kind == CB_NAME_IN;
}

/* Whether the product of the section makes what it multiplies, of *statements, which are the caller's. */
static int is_blended(struct writer *writer, const struct cb_section *section, struct cb_statements **statements,
                      struct blend *blend) {
  *statements = NULL;
  if (!section->old || !writer->fused || writer->request->form.in_steps || !writer->product.load_x.length) return 0;
  *statements = parse(writer, section->before);
  for (int i = 0; *statements && i < (*statements)->statements_count; i++)
    if (is_blend(*statements, &(*statements)->statements[i], section->from, blend)) return 1;
  cb_free(*statements);
  *statements = NULL;
  return 0;
}

static int has_blend(struct writer *writer, const struct cb_section *section) {
  struct cb_statements *statements;
  struct blend blend;
  const int has = is_blended(writer, section, &statements, &blend);
  cb_free(statements);
  return has;
}

/* ---- rows */

static void add_term(struct cb_text *text, const struct cb_row_text *row, const struct cb_statement *statement,
                     int number_of_sum, const char *term) {
  (void)statement;
  cb_text_add(text, "%s%s[%d] += %s;\n", row->indent, (const char *)row->user, number_of_sum, term);
}

static struct cb_row_text row_text(const struct writer *writer, const struct cb_statement_types *types) {
  (void)writer;
  return (struct cb_row_text){.types = types,
                              .indent = "          ",
                              .pointers = "pointers.",
                              .load = "load_vector",
                              .store = "store_vector",
                              .add_term = add_term,
                              .user = "sums"};
}

static void cut_line_end(struct cb_text *text) {
  if (text->length && text->bytes[text->length - 1] == '\n') text->bytes[--text->length] = 0;
}

/* "      rz_ = sums[0];" for each result, which is a scalar from here on. */
static const char *results_text(struct writer *writer, const struct cb_statements *statements, const char *indent,
                                const char *array) {
  struct cb_text text = {0};
  int count = 0;
  for (int i = 0; i < statements->names_count; i++) {
    if (statements->names[i].kind != CB_NAME_RESULT) continue;
    add_scalar(writer, statements->names[i].name);
    cb_text_add(&text, "%s%s_ = %s[%d];\n", indent, statements->names[i].name, array, count++);
  }
  cut_line_end(&text);
  return keep(writer, &text);
}

static void expand(struct writer *writer, struct cb_text *text, const char *definition, struct cb_scope *scope) {
  if (writer->status) return;
  if (writer->arena.failed) writer->status = cb_fail_memory(writer->diag, "a program's text", 0);
  else writer->status = cb_expand_definition(text, "program", definition, scope, writer->diag);
}

static void add_rows(struct writer *writer, struct cb_text *text, const char *of_step) {
  const struct cb_statement_types types = {writer->request->vector, writer->request->sum};
  const struct cb_row_text row = row_text(writer, &types);
  struct cb_statements *statements = parse(writer, of_step);
  struct cb_text body = {0};
  struct cb_scope scope = {0};
  if (!statements) return;
  const int sums = sums_of(statements);
  cb_emit_row(&body, statements, &row);
  cut_line_end(&body);
  cb_scope_placeholder(&scope, "statements", keep(writer, &body));
  if (writer->aligned) cb_scope_section(&scope, "aligned");
  if (writer->aligned) cb_scope_placeholder(&scope, "virtual_blocks", number(writer, writer->request->launches[0].blocks));
  if (sums) {
    cb_scope_section(&scope, "sums");
    cb_scope_placeholder(&scope, "count", number(writer, sums));
    cb_scope_placeholder(&scope, "results", results_text(writer, statements, "        ", "sums"));
  }
  writer->unmet = !sums;
  cb_free(statements);
  expand(writer, text, "rows", &scope);
}

/* ---- scalars */

static void add_scalars(struct writer *writer, struct cb_text *text, const char *of_step) {
  const struct cb_spelling spelling = {.type = writer->request->sum, .suffix = "_"};
  struct cb_statements *statements = parse(writer, of_step);
  if (!statements) return;
  for (int i = 0; i < statements->names_count; i++)
    if (cb_name_is_vector(&statements->names[i])) add_scalar(writer, statements->names[i].name);
  for (int i = 0; i < statements->statements_count; i++) {
    const struct cb_statement *statement = &statements->statements[i];
    const struct cb_name *name = &statements->names[statement->name];
    cb_text_add(text, "      %s%s_ = ", name->kind == CB_NAME_LOCAL ? "const sum_t " : "", name->name);
    cb_statements_expression(text, statements, statement->expression, &spelling);
    cb_text_add_string(text, ";\n");
  }
  cb_free(statements);
}

/* ---- sections */

/* Before a section's product, if it is of what other threads may have written since all have met. */
static void add_meeting(struct writer *writer, struct cb_text *text, const char *indent, const struct cb_section *next) {
  const int makes = next->before && !has_blend(writer, next); /* then all meet behind that */
  if (writer->unmet && !makes) cb_text_add(text, "%smeet_all(pointers, blocks);\n", indent);
}

/* What goes to the last section. */
static void add_leave(struct writer *writer, struct cb_text *text, const char *condition, const char *reason) {
  const int last = writer->request->program->sections_count - 1;
  cb_text_add(text,
              "      if (%s) {\n"
              "        reason = %s;\n"
              "        section = %d;\n",
              condition, reason, last);
  add_meeting(writer, text, "        ", &writer->request->program->sections[last]);
  cb_text_add_string(text, "        continue;\n      }\n");
}

static void add_step(struct writer *writer, struct cb_text *text, const struct cb_step *step) {
  switch (step->kind) {
  case CB_STEP_ROWS: add_rows(writer, text, step->text); break;
  case CB_STEP_SCALARS: add_scalars(writer, text, step->text); break;
  case CB_STEP_STOP:
    add_scalars(writer, text, step->text);
    add_leave(writer, text, "stop_ != 0", "int(stop_)");
    break;
  case CB_STEP_COUNT: cb_text_add_string(text, "      iterations++;\n"); break;
  case CB_STEP_MOST:
    add_leave(writer, text, "iterations >= most", number(writer, CB_REASON_ITERATIONS));
    break;
  case CB_STEP_NOTE:
    cb_text_add(text,
                "      square = %s_;\n"
                "      if (pointers.history && blockIdx.x == 0 && threadIdx.x == 0) pointers.history[iterations] = "
                "double(square);\n",
                step->text);
    break;
  case CB_STEP_END: break;
  }
}

/* Whether the section leads to a product of what has been written up to its own product's end. Not if its steps have
 * sums, behind which all see everything, and if the last section, which may come before them, has a meeting of its own. */
static int reads_others(struct writer *writer, const struct cb_section *section) {
  const struct cb_section *last = &writer->request->program->sections[writer->request->program->sections_count - 1];
  if (section != last && !last->before && (!strcmp(section->to, last->from) || section->before)) return 1;
  for (int k = 0; k < CB_MOST_STEPS && section->steps[k].kind; k++) {
    if (section->steps[k].kind != CB_STEP_ROWS) continue;
    struct cb_statements *statements = parse(writer, section->steps[k].text);
    const int sums = sums_of(statements);
    cb_free(statements);
    if (sums) return 0;
  }
  return 1;
}

/* Behind a product: the sums that its rows have given, or a barrier alone. */
static void add_sums(struct writer *writer, struct cb_text *text, const struct cb_section *section) {
  if (section->sums && writer->fused) {
    struct cb_statements *statements = parse(writer, section->sums);
    if (!statements) return;
    /* Its steps read nothing but what the same thread has written. */
    const int aligned = writer->aligned && !reads_others(writer, section);
    cb_text_add(text, "      add_all<%s>(terms, pointers, meeting, blocks);\n", aligned ? "false" : "true");
    cb_text_add(text, "%s\n", results_text(writer, statements, "      ", "terms"));
    cb_free(statements);
    return;
  }
  cb_text_add_string(text, "      meet_all(pointers, blocks);\n");
  if (section->sums) add_rows(writer, text, section->sums);
}

static const char *sections_text(struct writer *writer) {
  const struct cb_program *program = writer->request->program;
  struct cb_text text = {0};
  for (int i = 0; i < program->sections_count && !writer->status; i++) {
    const struct cb_section *section = &program->sections[i];
    const int last = i + 1 == program->sections_count;
    if (last) cb_text_add_string(&text, "    {\n");
    else cb_text_add(&text, "    if (section == %d) {\n", i);
    writer->unmet = 0;
    add_sums(writer, &text, section);
    for (int k = 0; k < CB_MOST_STEPS && section->steps[k].kind && !writer->status; k++)
      add_step(writer, &text, &section->steps[k]);
    if (last) cb_text_add_string(&text, "      break;\n    }\n");
    else {
      cb_text_add(&text, "      section = %d;\n", section->next);
      add_meeting(writer, &text, "      ", &program->sections[section->next]);
      cb_text_add_string(&text, "      continue;\n    }\n");
    }
  }
  cut_line_end(&text);
  return keep(writer, &text);
}

/* The section's vector is made in its product: the one before changes places with it. */
static void add_blend(struct cb_text *text, const struct cb_section *section, const struct blend *blend) {
  cb_text_add(text,
              "      vector_t *const made = pointers.%s_;\n"
              "      pointers.%s_ = pointers.%s_;\n"
              "      pointers.%s_ = made;\n"
              "      old = pointers.%s_;\n"
              "      factor = %s_;\n"
              "      from = pointers.%s_;\n",
              section->old, section->old, section->from, section->from, section->old, blend->factor, blend->addend);
}

/* Which vectors a section multiplies, and what is done before. */
static const char *choices_text(struct writer *writer) {
  const struct cb_program *program = writer->request->program;
  struct cb_text text = {0};
  for (int i = 1; i < program->sections_count && !writer->status; i++) {
    const struct cb_section *section = &program->sections[i];
    struct cb_statements *statements;
    struct blend blend;
    cb_text_add(&text, "    if (section == %d) {\n", i);
    if (is_blended(writer, section, &statements, &blend)) {
      add_blend(&text, section, &blend);
    } else {
      if (section->before) add_rows(writer, &text, section->before);
      if (section->before) cb_text_add_string(&text, "      meet_all(pointers, blocks);\n");
      cb_text_add(&text, "      from = pointers.%s_;\n", section->from);
    }
    cb_text_add(&text, "      to = pointers.%s_;\n    }\n", section->to);
    cb_free(statements);
  }
  cut_line_end(&text);
  return keep(writer, &text);
}

static const char *products_text(struct writer *writer) {
  const struct cb_program_request *request = writer->request;
  struct cb_text text = {0};
  for (int i = 0; i < request->launches_count; i++) {
    struct cb_scope scope = {0};
    if (i) cb_text_add_string(&text, "    meet_all(pointers, blocks);\n");
    cb_scope_placeholder(&scope, "blocks", number(writer, request->launches[i].blocks));
    cb_scope_placeholder(&scope, "number", number(writer, i));
    cb_scope_placeholder(&scope, "arrays", cb_text_string(&writer->product.arguments[i]));
    if (writer->groups > 1) cb_scope_section(&scope, "groups");
    else if (writer->product.shares) cb_scope_section(&scope, "shares");
    expand(writer, &text, "product", &scope);
  }
  cut_line_end(&text);
  return keep(writer, &text);
}

/* ---- commit */

static void add_commit(struct writer *writer, struct cb_text *text, const struct cb_section *section) {
  const struct cb_statement_types types = {writer->request->vector, writer->request->sum};
  struct cb_row_text row = row_text(writer, &types);
  struct cb_statements *statements = NULL, *sums = section->sums ? parse(writer, section->sums) : NULL;
  struct blend blend;
  const int makes = is_blended(writer, section, &statements, &blend);
  char at_hand[80];
  snprintf(at_hand, sizeof at_hand, "%s %s", section->to, makes ? section->from : "");
  row.indent = "    ";
  row.pointers = "step.pointers->";
  row.scalars = "step.";
  row.at_hand = at_hand;
  row.user = "step.terms";
  if (makes) {
    cb_text_add(text, "    sum_t %s_ = sum_t(load_vector(step.old + row));\n", section->from);
    cb_emit_row(text, statements, &row);
  }
  if (sums) {
    row.indent = makes ? "      " : "    ";
    if (makes) cb_text_add_string(text, "    {\n");
    cb_text_add(text, "%sconst sum_t %s_ = sum;\n", row.indent, section->to);
    cb_emit_row(text, sums, &row);
    if (makes) cb_text_add_string(text, "    }\n");
  }
  cb_free(statements);
  cb_free(sums);
}

/* What is done where a row is committed, by section: its own statements, and what it gives sums. The product's own vector
 * is at hand. */
static const char *commit_sums(struct writer *writer) {
  const struct cb_program *program = writer->request->program;
  struct cb_text text = {0};
  for (int i = 0; i < program->sections_count; i++) {
    const struct cb_section *section = &program->sections[i];
    if (!section->sums && !has_blend(writer, section)) continue;
    cb_text_add(&text, "  if (step.section == %d) {\n", i);
    add_commit(writer, &text, section);
    cb_text_add_string(&text, "  }\n");
  }
  cut_line_end(&text);
  return keep(writer, &text);
}

/* Each scalar that such statements read, with these texts around it. */
static const char *step_scalars(struct writer *writer, const char *before, const char *behind) {
  const struct cb_program *program = writer->request->program;
  struct cb_text text = {0}, seen = {0};
  for (int i = 0; i < program->sections_count; i++) {
    struct cb_statements *statements;
    struct blend blend;
    if (!is_blended(writer, &program->sections[i], &statements, &blend)) continue;
    for (int k = 0; k < statements->names_count; k++) {
      const struct cb_name *name = &statements->names[k];
      if (name->kind != CB_NAME_SCALAR || cb_has_word(cb_text_string(&seen), name->name)) continue;
      cb_text_add(&seen, "%s ", name->name);
      cb_text_add(&text, "%s%s%s", before, name->name, behind);
    }
    cb_free(statements);
  }
  text.failed |= seen.failed;
  cb_text_release(&seen);
  cut_line_end(&text);
  return keep(writer, &text);
}

static const char *vectors_text(struct writer *writer) {
  const struct cb_program *program = writer->request->program;
  struct cb_text text = {0};
  for (const char *const *at = program->given; *at; at++) cb_text_add(&text, "  vector_t *%s_;  // the caller's\n", *at);
  for (const char *const *at = program->work; *at; at++) cb_text_add(&text, "  vector_t *%s_;\n", *at);
  cut_line_end(&text);
  return keep(writer, &text);
}

static void add_before(struct writer *writer, struct cb_text *text) {
  struct cb_scope scope = {0};
  const int threads = writer->request->launches[0].threads;
  cb_scope_placeholder(&scope, "threads", number(writer, writer->groups * threads));
  if (writer->groups > 1 || writer->aligned) {
    cb_scope_section(&scope, "virtual");
    cb_scope_placeholder(&scope, "virtual_threads", number(writer, threads));
  }
  cb_scope_placeholder(&scope, "members", step_scalars(writer, "  sum_t ", "_;\n"));
  if (writer->groups > 1) cb_scope_section(&scope, "groups");
  if (writer->blended) cb_scope_section(&scope, "blended");
  cb_scope_placeholder(&scope, "rows", number(writer, writer->request->rows));
  cb_scope_placeholder(&scope, "vectors", vectors_text(writer));
  if (writer->fused) {
    cb_scope_section(&scope, "fused");
    cb_scope_placeholder(&scope, "commit_sums", commit_sums(writer));
  }
  expand(writer, text, "before_regions", &scope);
}

/* ---- the kernel */

static const char *scalars_text(struct writer *writer) {
  struct cb_text text = {0};
  for (int i = 0; i < writer->scalars_count; i++)
    cb_text_add(&text, "%s%s_ = 0", i ? ", " : "", writer->scalars[i]);
  return keep(writer, &text);
}

static const char *numbers_text(struct writer *writer) {
  struct cb_text text = {0};
  for (const char *const *at = writer->request->program->parameters; *at; at++) cb_text_add(&text, "sum_t %s_, ", *at);
  return keep(writer, &text);
}

static const char *vector(struct writer *writer, const char *name) {
  return cb_arena_format(&writer->arena, "pointers.%s_", name);
}

static void add_kernel(struct writer *writer, struct cb_text *text) {
  const struct cb_program *program = writer->request->program;
  const int own = writer->product.blocks_per_sm, most = own && own < BLOCKS_PER_SM ? own : BLOCKS_PER_SM;
  const int blocks = most > writer->groups && writer->request->form.kind == CB_PROGRAM_GRID ? most / writer->groups : 1;
  struct cb_scope scope = {0};
  cb_scope_placeholder(&scope, "sections", sections_text(writer)); /* first: it finds the scalars */
  cb_scope_placeholder(&scope, "scalars", scalars_text(writer));
  cb_scope_placeholder(&scope, "values", step_scalars(writer, ", ", "_"));
  cb_scope_placeholder(&scope, "blocks_per_sm", number(writer, blocks));
  cb_scope_placeholder(&scope, "kernel", CB_PROGRAM_KERNEL);
  cb_scope_placeholder(&scope, "parameters", cb_text_string(&writer->product.parameters));
  cb_scope_placeholder(&scope, "numbers", numbers_text(writer));
  cb_scope_placeholder(&scope, "first_from", vector(writer, program->sections[0].from));
  cb_scope_placeholder(&scope, "first_to", vector(writer, program->sections[0].to));
  cb_scope_placeholder(&scope, "choices", choices_text(writer));
  cb_scope_placeholder(&scope, "products", products_text(writer));
  cb_scope_optional(&scope, "most_terms", number(writer, most_sums(writer, 1)));
  if (writer->product.is_scaled) cb_scope_section(&scope, "scaled");
  if (writer->product.has_carry) cb_scope_section(&scope, "carry");
  if (writer->fused) cb_scope_section(&scope, "fused");
  if (writer->blended) cb_scope_section(&scope, "blended");
  if (writer->request->form.kind == CB_PROGRAM_GRID) cb_scope_section(&scope, "grid");
  if (writer->request->form.kind == CB_PROGRAM_CLUSTER) cb_scope_section(&scope, "cluster");
  if (writer->request->form.kind == CB_PROGRAM_CLUSTER)
    cb_scope_placeholder(&scope, "most_sums", number(writer, most_sums(writer, 0)));
  if (writer->groups > 1) cb_scope_section(&scope, "groups");
  if (writer->aligned) cb_scope_section(&scope, "aligned");
  expand(writer, text, "kernel", &scope);
}

/* ---- the whole */

static enum cb_status check(const struct cb_program_request *request, struct cb_diag *diag) {
  if (!request->launches_count || request->launches_count > CB_PROGRAM_LAUNCHES)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "a program takes products of 1 to %d launches, not %d", CB_PROGRAM_LAUNCHES,
                   request->launches_count);
  for (int i = 1; i < request->launches_count; i++)
    if (request->launches[i].threads != request->launches[0].threads)
      return cb_fail(diag, CB_ERR_UNSUPPORTED,
                     "the product's launches have %d and %d threads to a thread block, and a program one size: choose "
                     "another recipe", request->launches[0].threads, request->launches[i].threads);
  return CB_OK;
}

/* How many virtual thread blocks go side by side: no more than asked for, than a thread block has threads for, and than
 * the product's kernels want on a multiprocessor. */
static int groups_of(const struct writer *writer) {
  const int threads = writer->request->launches[0].threads, own = writer->product.blocks_per_sm;
  int groups = writer->product.shares || writer->request->form.groups < 1 ? 1 : writer->request->form.groups;
  if (own && groups > own) groups = own;
  while (groups > 1 && groups * threads > MOST_THREADS) groups--;
  return groups;
}

static void choose(struct writer *writer) {
  const struct cb_program_request *request = writer->request;
  const struct cb_program *program = request->program;
  writer->fused = writer->product.commits_once && !request->has_carry;
  writer->groups = groups_of(writer);
  writer->aligned = writer->fused && writer->product.aligned && request->launches_count == 1 &&
                    request->launches[0].blocks * request->launches[0].threads >= request->rows;
  for (int i = 0; i < program->sections_count; i++) writer->blended |= has_blend(writer, &program->sections[i]);
  /* What one thread block reads again and again may stay in its L1. */
  if (request->form.kind == CB_PROGRAM_BLOCK) cb_word_instead(&writer->product.regions, "load_stream", "load");
  if (writer->groups == 1) return;
  cb_word_instead(&writer->product.regions, "threadIdx.x", "virtual_thread()");
  cb_word_instead(&writer->product.functions, "threadIdx.x", "virtual_thread()");
}

static void write(struct writer *writer, struct cb_text *body) {
  struct cb_text kernel = {0};
  struct cb_scope scope = {0};
  choose(writer);
  add_kernel(writer, &kernel);
  cb_text_add_string(body, cb_text_string(&writer->product.vectors));
  if (!writer->blended) cb_text_add_string(body, cb_text_string(&writer->product.load_x));
  add_before(writer, body);
  cb_text_add_string(body, cb_text_string(&writer->product.regions));
  cb_text_add_string(body, cb_text_string(&writer->product.functions));
  cb_scope_placeholder(&scope, "most_sums", number(writer, most_sums(writer, 0)));
  cb_scope_section(&scope, cb_program_form_names[writer->request->form.kind]);
  expand(writer, body, "functions", &scope);
  cb_text_add_string(body, cb_text_string(&kernel));
  body->failed |= kernel.failed;
  cb_text_release(&kernel);
}

/* Arithmetic that only the product's own `commit` used. Its definitions are of one line each. */
static void drop_unused(struct cb_text *text) {
  static const char *const names[] = {"product", "add_product", "total", "add"};
  for (size_t i = 0; i < sizeof names / sizeof *names && !text->failed; i++) {
    struct cb_text head = {0}, rest = {0};
    cb_text_add(&head, "CBGEN_DEVICE sum_t %s(", names[i]);
    const char *whole = cb_text_string(text), *at = strstr(whole, cb_text_string(&head));
    const char *end = at ? strchr(at, '\n') : NULL;
    if (end) {
      cb_text_add_bytes(&rest, whole, (size_t)(at - whole));
      cb_text_add_string(&rest, end + 1);
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

const char *const cb_program_form_names[] = {"grid", "cluster", "block", NULL};

enum cb_status cb_program_text(struct cb_text *text, const struct cb_program_request *request, int *threads,
                               struct cb_diag *diag) {
  struct writer writer = {.request = request, .diag = diag};
  struct cb_text body = {0}, functions = {0}, whole = {0};
  enum cb_status s = check(request, diag);
  if (!s) s = cb_product_take(&writer.product, request, diag);
  if (!s) {
    write(&writer, &body);
    s = writer.status;
    *threads = writer.groups * request->launches[0].threads;
  }
  /* Statements call functions that stand in front of all that uses them. */
  if (!s) s = cb_emit_statement_functions(&functions, cb_text_string(&body), diag);
  const char *structs = s ? NULL : strstr(cb_text_string(&body), "// ---- the program's vectors and steps\n");
  if (structs) {
    cb_text_add_bytes(&whole, body.bytes, (size_t)(structs - body.bytes));
    cb_text_add_string(&whole, cb_text_string(&functions));
    cb_text_add_string(&whole, structs);
    drop_unused(&whole);
  }
  if (!s && (body.failed || functions.failed || whole.failed || writer.arena.failed))
    s = cb_fail_memory(diag, "a program's text", 0);
  if (!s) s = cb_source_with_prelude(text, &whole, diag);
  if (!s && text->failed) s = cb_fail_memory(diag, "a program's text", whole.length);
  cb_text_release(&body);
  cb_text_release(&functions);
  cb_text_release(&whole);
  cb_product_text_release(&writer.product);
  cb_arena_release(&writer.arena);
  return s;
}
