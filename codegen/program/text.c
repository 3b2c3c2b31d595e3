// SPDX-License-Identifier: Apache-2.0
/* The text of a program's kernel: see program.h. Its parts, in cb_program_text, fit templates/program.cu.in. */
#include "base/integers.h"
#include "base/memory.h"
#include "codegen/check.h"
#include "codegen/constants.h"
#include "codegen/expand.h"
#include "codegen/program/blend.h"
#include "codegen/program/held.h"
#include "codegen/program/kept.h"
#include "codegen/program/near.h"
#include "codegen/program/product.h"
#include "codegen/program/program.h"
#include "codegen/program/reads.h"
#include "codegen/program/resident.h"
#include "codegen/program/stages.h"
#include "codegen/program/writer.h"
#include "codegen/source.h"

#include <stdio.h>
#include <string.h>

enum {
  MOST_THREADS = 1024,
  BLOCKS_PER_SM = 4 /* registers for more would not do for a product and the rest */
};

struct writer {
  struct cb_writer base;
  const struct cb_program_request *request;
  struct cb_product_text product;
  int fused;   /* sums behind a product are added up in it */
  int blended; /* some section is: see is_blended */
  int aligned; /* steps go through rows as the product does */
  int groups;
  int unmet;   /* a step has written vectors, and thread blocks have not met since */
  int spread;  /* vectors lie in the shared memory of a cluster */
  int shared;  /* of which so many have been shared since all have met */
  struct cb_resident resident;
  struct cb_kept kept;
  const char *kept_names;
  int64_t near_bytes; /* of shared memory, for the thread block's part of the matrix, behind slots */
  int held; /* thread blocks of a multiprocessor, each of which holds its tile in registers instead; 0: they do not */
  int least_blocks; /* with which no thread has more rows than slots were planned for; 0: any number will do */
};

/* Of real numbers that the most sums of any step have. */
static const char *most_parts(struct writer *writer) {
  return cb_writer_number(&writer->base, cb_type_parts(writer->request->sum) * cb_writer_most_sums(&writer->base, 0));
}

/* Whether a thread block has neighbouring virtual ones, up to `end_block`. */
static int has_neighbours(const struct writer *writer) {
  return writer->spread || (writer->request->form.near && !writer->held);
}

/* The virtual thread block of a launch before which a thread block's own ones end. */
static const char *end_of_blocks(struct writer *writer, int launch) {
  return has_neighbours(writer) ? "end_block"
                                : cb_writer_number(&writer->base, writer->request->launches[launch].blocks);
}

static int is_batch(const struct writer *writer) { return writer->request->form.kind == CB_PROGRAM_BATCH; }

/* ---- vectors that are made where they are read */

/* Whether the product of the section makes what it multiplies, of *statements, which are the caller's. */
static int is_blended(struct writer *writer, const struct cb_section *section, struct cb_statements **statements,
                      struct cb_blend *blend) {
  *statements = NULL;
  if (!section->old || !writer->fused || writer->request->form.in_steps || !writer->product.load_x.length) return 0;
  *statements = cb_writer_parse(&writer->base, section->before);
  if (*statements && cb_blend_find(blend, *statements, section->from)) return 1;
  cb_free(*statements);
  *statements = NULL;
  return 0;
}

static int has_blend(struct writer *writer, const struct cb_section *section) {
  struct cb_statements *statements;
  const int has = is_blended(writer, section, &statements, &(struct cb_blend){NULL, NULL});
  cb_free(statements);
  return has;
}

/* ---- rows */

static void expand(struct writer *writer, struct cb_text *text, const char *definition, struct cb_scope *scope) {
  if (writer->base.status) return;
  cb_writer_add_part(&writer->base, scope);
  if (writer->base.arena.failed) writer->base.status = cb_fail_memory(writer->base.diag, "a program's text", 0);
  else writer->base.status = cb_expand_definition(text, "program", definition, scope, writer->base.diag);
}

/* What goes to other thread blocks, of vectors that statements write. */
static void add_shares(struct writer *writer, struct cb_text *text, const struct cb_statements *statements,
                       const struct cb_row_text *row, const char *meeting) {
  for (int i = 0; i < statements->names_count && writer->spread; i++) {
    const struct cb_name *name = &statements->names[i];
    if ((name->kind != CB_NAME_OUT && name->kind != CB_NAME_INOUT) ||
        !cb_resident_is_whole(&writer->resident, name->name))
      continue;
    cb_text_add(text, "%sshare(%s%s_ + row, int(row), %s);\n", row->indent, row->pointers, name->name, meeting);
    writer->shared++;
  }
}

/* What the function of a meeting is told: whether all see what any has stored; of a cluster with vectors in shared
 * memory, how many have been shared. */
static const char *seen(struct writer *writer, int all) {
  if (!writer->spread) return all ? "true" : "false";
  const int shared = writer->shared;
  writer->shared = 0;
  return cb_writer_number(&writer->base, shared);
}

/* A meeting without sums. */
static const char *meet(struct writer *writer) {
  return writer->spread ? cb_arena_format(&writer->base.arena, "meet_all<%d>(pointers, meeting, blocks);", writer->shared)
                        : "meet_all(pointers, meeting, blocks);";
}

/* Whether a name's entries lie in slots. */
static int is_kept(const struct writer *writer, const char *name) { return cb_kept_find(&writer->kept, name) != NULL; }

static const char *slot_of_row(const struct writer *writer) { return writer->aligned ? "slot" : "int(slot)"; }

/* How steps' rows are written. */
static struct cb_row_text row_text(const struct writer *writer, const struct cb_statement_types *types) {
  struct cb_row_text row = cb_writer_row(types);
  row.kept = writer->kept_names;
  row.slot = slot_of_row(writer);
  return row;
}

/* A loop over a thread's rows with this body. */
static void add_loop(struct writer *writer, struct cb_text *text, struct cb_text *body, struct cb_scope *scope) {
  cb_writer_cut(body);
  if (cb_has_word(cb_text_string(body), "slot")) cb_scope_section(scope, "kept");
  cb_scope_placeholder(scope, "statements", cb_writer_keep(&writer->base, body));
  if (writer->aligned) {
    cb_scope_section(scope, "aligned");
    if (writer->product.own_rows == CB_ROWS_OF_LANES) cb_scope_section(scope, "of_lanes");
    cb_scope_placeholder(scope, "virtual_blocks", end_of_blocks(writer, 0));
  } else if (writer->spread) {
    cb_scope_section(scope, "listed");
  }
  expand(writer, text, "rows", scope);
}

static void add_rows(struct writer *writer, struct cb_text *text, const char *of_step) {
  const struct cb_statement_types types = {writer->request->vector, writer->request->sum};
  const struct cb_row_text row = row_text(writer, &types);
  struct cb_statements *statements = cb_writer_parse(&writer->base, of_step);
  struct cb_text body = {0};
  struct cb_scope scope = {0};
  if (!statements) return;
  const int sums = cb_writer_sums(statements);
  cb_emit_row(&body, statements, &row);
  add_shares(writer, &body, statements, &row, "meeting");
  if (sums) {
    cb_scope_section(&scope, "sums");
    cb_scope_placeholder(&scope, "count", cb_writer_number(&writer->base, sums));
    cb_scope_placeholder(&scope, "results", cb_writer_results(&writer->base, statements, "        ", "sums"));
    cb_scope_placeholder(&scope, "seen", seen(writer, 1));
  }
  writer->unmet = !sums;
  cb_free(statements);
  add_loop(writer, text, &body, &scope);
}

/* ---- sections */

/* Before a section's product, if it is of what other threads may have written since all have met. */
static void add_meeting(struct writer *writer, struct cb_text *text, const char *indent,
                        const struct cb_section *next) {
  const int makes = next->before && !has_blend(writer, next); /* then all meet behind that */
  if (writer->unmet && (!makes || writer->shared)) cb_text_add(text, "%s%s\n", indent, meet(writer));
}

/* From here on section `next` follows. */
static void add_jump(struct writer *writer, struct cb_text *text, const char *indent, int next) {
  cb_text_add(text, "%ssection = %d;\n", indent, next);
  add_meeting(writer, text, indent, &writer->request->program->sections[next]);
  cb_text_add(text, "%scontinue;\n", indent);
}

/* What goes to the last section. */
static void add_leave(struct writer *writer, struct cb_text *text, const char *condition, const char *reason) {
  cb_text_add(text, "      if (%s) {\n        reason = %s;\n", condition, reason);
  add_jump(writer, text, "        ", writer->request->program->sections_count - 1);
  cb_text_add_string(text, "      }\n");
}

static void add_go(struct writer *writer, struct cb_text *text, const struct cb_step *step) {
  cb_writer_scalars(&writer->base, text, step->text);
  cb_text_add_string(text, "      if (go_ != 0) {\n");
  add_jump(writer, text, "        ", step->section);
  cb_text_add_string(text, "      }\n");
}

/* The same threads as in rows have the same rows: the last virtual thread block has the last row. */
static const char *rows_loop(struct writer *writer) {
  if (!writer->aligned) return "for (int64_t row = first_row; row < kOrder; row += row_step) {";
  return cb_arena_format(&writer->base.arena,
                         "for (int64_t row = kVirtualThreads * int64_t(first_block) + threadIdx.x %% kVirtualThreads; "
                         "row < %s; row += kVirtualThreads * int64_t(block_step)) {",
                         has_neighbours(writer) ? "min(int64_t(kOrder), kVirtualThreads * int64_t(end_block))" : "kOrder");
}

/* Behind one that makes no vector of another all meet. */
static void add_template(struct writer *writer, struct cb_text *text, const struct cb_step *step) {
  struct cb_scope scope = {0};
  const int scaled = cb_writer_has(writer->request->program->work, "d");
  cb_scope_placeholder(&scope, "rows", rows_loop(writer));
  cb_scope_optional(&scope, "order", "kOrder");
  cb_scope_optional_section(&scope, "meets");
  cb_scope_optional(&scope, "scale", scaled ? "load_vector(pointers.d_ + row) * " : "");
  cb_writer_add_part(&writer->base, &scope);
  if (step->from) cb_scope_placeholder(&scope, "from", step->from);
  if (step->to) cb_scope_placeholder(&scope, "to", step->to);
  writer->unmet = step->to != NULL;
  if (!writer->base.status) writer->base.status = cb_expand_definition(text, "steps", step->text, &scope, writer->base.diag);
}

static void add_step(struct writer *writer, struct cb_text *text, const struct cb_step *step) {
  switch (step->kind) {
  case CB_STEP_ROWS: add_rows(writer, text, step->text); break;
  case CB_STEP_SCALARS: cb_writer_scalars(&writer->base, text, step->text); break;
  case CB_STEP_STOP:
    cb_writer_scalars(&writer->base, text, step->text);
    add_leave(writer, text, "stop_ != 0",
              cb_arena_format(&writer->base.arena, "int(stop_%s)", cb_writer_real(&writer->base)));
    break;
  case CB_STEP_GO: add_go(writer, text, step); break;
  case CB_STEP_TEMPLATE: add_template(writer, text, step); break;
  case CB_STEP_SWAP: cb_writer_swap(text, step); break;
  case CB_STEP_COUNT: cb_text_add_string(text, "      iterations++;\n"); break;
  case CB_STEP_MOST:
    add_leave(writer, text, "iterations >= most", cb_writer_number(&writer->base, CB_REASON_ITERATIONS));
    break;
  case CB_STEP_NOTE:
    cb_text_add(text,
                "      square = %s_;\n"
                "      if (pointers.history && blockIdx.x == 0 && threadIdx.x == 0) pointers.history[iterations] = "
                "double(square%s);\n",
                step->text, cb_writer_real(&writer->base));
    break;
  case CB_STEP_COLUMNS: /* of the form "graph": check */
  case CB_STEP_CALL:
  case CB_STEP_END: break;
  }
}

/* Copies own rows of a vector between where the caller has it, or the solver in device memory, and shared memory. */
static void add_copy(struct writer *writer, struct cb_text *text, const char *vector, int back) {
  struct cb_text body = {0};
  struct cb_scope scope = {0};
  cb_text_add(&body, "          store_vector(%s.%s_ + row, load_vector(%s.%s_ + row));\n", back ? "given" : "pointers",
              vector, back ? "pointers" : "given", vector);
  add_loop(writer, text, &body, &scope);
}

/* Copies x between where the caller has it and its slots. */
static void add_kept_copy(struct writer *writer, struct cb_text *text, int back) {
  static const char x[] = "pointers." CB_RESIDENT_X "_ + row", there[] = CB_RESIDENT_X "_kept";
  struct cb_text body = {0};
  struct cb_scope scope = {0};
  const char *slot = slot_of_row(writer);
  if (!is_kept(writer, CB_RESIDENT_X)) return;
  if (back) cb_text_add(&body, "          store_vector(%s, load_kept(%s, %s, %s));\n", x, x, there, slot);
  else cb_text_add(&body, "          store_kept(%s, %s, %s, load_vector(%s));\n", x, there, slot, x);
  add_loop(writer, text, &body, &scope);
}

/* Where resident vectors lie: those that are whole, or the others. */
static const char *places_text(struct writer *writer, int whole, const char *indent) {
  struct cb_text text = {0};
  for (int i = 0; i < writer->resident.count; i++) {
    const struct cb_resident_vector *vector = &writer->resident.vectors[i];
    if (vector->is_whole == whole)
      cb_text_add(&text, "%spointers.%s_ = shared_at<vector_t>(%lld)%s;\n", indent, vector->name, (long long)vector->at,
                  whole ? "" : " - first_own");
  }
  cb_writer_cut(&text);
  return cb_writer_keep(&writer->base, &text);
}

/* Behind the first product of a cluster. */
static void add_own_vectors(struct writer *writer, struct cb_text *text, const struct cb_section *section) {
  struct cb_scope scope = {0};
  struct cb_text copies = {0};
  add_copy(writer, &copies, CB_RESIDENT_X, 0);
  add_copy(writer, &copies, section->to, 0);
  cb_writer_cut(&copies);
  cb_scope_placeholder(&scope, "near", places_text(writer, 0, "        "));
  cb_scope_placeholder(&scope, "copies", cb_writer_keep(&writer->base, &copies));
  expand(writer, text, "own_vectors", &scope);
}

/* What rows that are committed share of the vectors that are made in the product. */
static void count_made(struct writer *writer, const struct cb_section *section, const struct cb_statements *sums) {
  struct cb_statements *statements;
  struct cb_blend blend;
  struct cb_text text = {0};
  const struct cb_row_text row = {.indent = "", .pointers = ""};
  if (is_blended(writer, section, &statements, &blend)) add_shares(writer, &text, statements, &row, "");
  add_shares(writer, &text, sums, &row, "");
  cb_free(statements);
  cb_text_release(&text);
}

/* Behind a product: the sums that its rows have given, or a barrier alone. */
static void add_sums(struct writer *writer, struct cb_text *text, const struct cb_section *section) {
  const int is_first = section == writer->request->program->sections;
  if (!section->from) return;
  if (writer->spread && is_first) add_own_vectors(writer, text, section);
  if (writer->spread && is_first && !section->sums) return;
  if (section->sums && writer->fused) {
    struct cb_statements *statements = cb_writer_parse(&writer->base, section->sums);
    if (!statements) return;
    /* Its steps read nothing but what the same thread has written. */
    const int aligned = writer->aligned && !cb_section_reads_others(&writer->base, section);
    if (writer->spread) count_made(writer, section, statements);
    cb_text_add(text, "      add_all<%s>(terms, pointers, meeting, blocks);\n", seen(writer, !aligned));
    cb_text_add(text, "%s\n", cb_writer_results(&writer->base, statements, "      ", "terms"));
    cb_free(statements);
    return;
  }
  cb_text_add(text, "      %s\n", meet(writer));
  if (section->sums) add_rows(writer, text, section->sums);
}

static const char *sections_text(struct writer *writer) {
  const struct cb_program *program = writer->request->program;
  struct cb_text text = {0};
  for (int i = 0; i < program->sections_count && !writer->base.status; i++) {
    const struct cb_section *section = &program->sections[i];
    const int last = i + 1 == program->sections_count;
    if (last) cb_text_add_string(&text, "    {\n");
    else cb_text_add(&text, "    if (section == %d) {\n", i);
    writer->unmet = writer->shared = 0;
    add_sums(writer, &text, section);
    for (int k = 0; k < CB_MOST_STEPS && section->steps[k].kind && !writer->base.status; k++)
      add_step(writer, &text, &section->steps[k]);
    if (last) cb_text_add_string(&text, "      break;\n    }\n");
    else add_jump(writer, &text, "      ", section->next);
    if (!last) cb_text_add_string(&text, "    }\n");
  }
  cb_writer_cut(&text);
  return cb_writer_keep(&writer->base, &text);
}

/* The section's vector is made in its product: the one before changes places with it. */
static void add_blend(struct cb_text *text, const struct cb_section *section, const struct cb_blend *blend) {
  cb_text_add(text,
              "      vector_t *const made = pointers.%s_;\n"
              "      pointers.%s_ = pointers.%s_;\n"
              "      pointers.%s_ = made;\n"
              "      old = pointers.%s_;\n"
              "      factor = %s_;\n"
              "      from = pointers.%s_;\n",
              section->old, section->old, section->from, section->from, section->old, blend->factor, blend->addend);
}

static const char *vector(struct writer *writer, const char *name) {
  return name ? cb_arena_format(&writer->base.arena, "pointers.%s_", name) : "nullptr";
}

/* The last product is of x where the caller has it. */
static void add_leave_x(struct writer *writer, struct cb_text *text) {
  struct cb_scope scope = {0};
  struct cb_text copy = {0};
  add_copy(writer, &copy, CB_RESIDENT_X, 1);
  cb_writer_cut(&copy);
  cb_scope_placeholder(&scope, "leave", cb_writer_keep(&writer->base, &copy));
  if (writer->spread) cb_scope_section(&scope, "spread");
  expand(writer, text, "leave_x", &scope);
}

/* Whether products commit to slots. */
static int keeps_products(const struct writer *writer) { return writer->kept.count && writer->aligned; }

static const char *kept_text(struct writer *writer, const char *name) {
  return name && is_kept(writer, name) ? cb_arena_format(&writer->base.arena, "%s_kept", name) : "{0, 0, false}";
}

/* Whether pointers to vectors point into shared memory. */
static int has_pointers_there(const struct writer *writer) {
  return writer->request->form.resident && !is_batch(writer) && !writer->kept.count;
}

/* Which vectors a section multiplies, and what is done before. */
static const char *choices_text(struct writer *writer) {
  const struct cb_program *program = writer->request->program;
  struct cb_text text = {0};
  for (int i = 1; i < program->sections_count && !writer->base.status; i++) {
    const struct cb_section *section = &program->sections[i];
    struct cb_statements *statements;
    struct cb_blend blend;
    cb_text_add(&text, "    if (section == %d) {\n", i);
    writer->shared = 0;
    if (is_blended(writer, section, &statements, &blend)) {
      add_blend(&text, section, &blend);
    } else {
      const int is_last = i + 1 == program->sections_count, leaves = has_pointers_there(writer) && is_last;
      if (section->before) add_rows(writer, &text, section->before);
      if (is_last) add_kept_copy(writer, &text, 1);
      if (is_last && !section->before && is_kept(writer, CB_RESIDENT_X)) cb_text_add(&text, "      %s\n", meet(writer));
      if (section->before && (!leaves || writer->shared)) cb_text_add(&text, "      %s\n", meet(writer));
      if (leaves) add_leave_x(writer, &text);
      cb_text_add(&text, "      from = %s;\n", leaves ? "given." CB_RESIDENT_X "_" : vector(writer, section->from));
      if (writer->spread && writer->blended) cb_text_add_string(&text, "      old = from;\n"); /* that there is all of */
    }
    cb_text_add(&text, "      to = %s;\n", vector(writer, section->to));
    if (keeps_products(writer) && cb_products_vary(writer->request->program))
      cb_text_add(&text, "      to_kept = %s;\n", kept_text(writer, section->to));
    cb_text_add_string(&text, "    }\n");
    cb_free(statements);
  }
  cb_writer_cut(&text);
  return cb_writer_keep(&writer->base, &text);
}

static int has_empty_section(const struct cb_program *program) {
  for (int i = 0; i < program->sections_count; i++)
    if (!program->sections[i].from) return 1;
  return 0;
}

/* "section == 1": one whose product is with heads. */
static const char *when_heads(struct writer *writer) {
  const struct cb_program *program = writer->request->program;
  struct cb_text text = {0};
  for (int i = 0; i < program->sections_count; i++)
    if (program->sections[i].heads) cb_text_add(&text, "%ssection == %d", text.length ? " || " : "", i);
  return cb_writer_keep(&writer->base, &text);
}

/* Of the product whose arrays may lie in shared memory, or of the one that notes what it reads. */
static const char *near_arguments(struct writer *writer, int watched) {
  struct cb_text text = {0};
  cb_near_arguments(&text, &writer->product, watched);
  return cb_writer_keep(&writer->base, &text);
}

static const char *products_text(struct writer *writer) {
  const struct cb_program_request *request = writer->request;
  const int has_heads = cb_program_has_heads(request->program);
  struct cb_text text = {0};
  struct cb_scope none = {0};
  if (writer->held) expand(writer, &text, "held_product", &none);
  for (int i = 0; i < request->launches_count && !writer->held; i++) {
    struct cb_scope scope = {0};
    if (i) cb_text_add_string(&text, "    meet_all(pointers, meeting, blocks);\n");
    cb_scope_placeholder(&scope, "blocks", end_of_blocks(writer, i));
    cb_scope_placeholder(&scope, "number", cb_writer_number(&writer->base, i));
    cb_scope_placeholder(&scope, "arrays", request->form.near ? near_arguments(writer, 0)
                                                              : cb_text_string(&writer->product.arguments[i]));
    if (has_heads) cb_scope_section(&scope, "heads");
    if (has_heads) cb_scope_placeholder(&scope, "when_heads", when_heads(writer));
    if (has_heads) cb_scope_placeholder(&scope, "heads_arrays", cb_text_string(&writer->product.heads_arguments[i]));
    if (writer->spread) cb_scope_section(&scope, "spread");
    else if (writer->groups > 1) cb_scope_section(&scope, "groups");
    else if (writer->product.shares) cb_scope_section(&scope, "shares");
    if (keeps_products(writer)) cb_scope_section(&scope, "kept");
    expand(writer, &text, "product", &scope);
  }
  if (has_empty_section(request->program)) {
    struct cb_text bare = text;
    text = (struct cb_text){0};
    cb_writer_under(&text, "from != nullptr", cb_text_string(&bare));
    text.failed |= bare.failed;
    cb_text_release(&bare);
  }
  cb_writer_cut(&text);
  return cb_writer_keep(&writer->base, &text);
}

/* ---- commit */

/* When a row is written as the product has it: "step.section != 3". NULL: always. A section that is left at once has
 * no say. */
static const char *when_stored(struct writer *writer) {
  const struct cb_program *program = writer->request->program;
  struct cb_text text = {0};
  for (int i = 0; i < program->sections_count; i++) {
    const struct cb_section *section = &program->sections[i];
    struct cb_statements *sums = section->sums ? cb_writer_parse(&writer->base, section->sums) : NULL;
    const int is_unread = section->next > 0 && cb_product_is_unread(&writer->base, section);
    if (cb_product_is_remade(section, sums) || is_unread)
      cb_text_add(&text, "%sstep.section != %d", text.length ? " && " : "", i);
    cb_free(sums);
  }
  const int is_any = text.length > 0;
  const char *stored = cb_writer_keep(&writer->base, &text);
  return is_any ? stored : NULL;
}

static void add_commit(struct writer *writer, struct cb_text *text, const struct cb_section *section) {
  const struct cb_statement_types types = {writer->request->vector, writer->request->sum};
  struct cb_row_text row = row_text(writer, &types);
  struct cb_statements *statements = NULL, *sums = section->sums ? cb_writer_parse(&writer->base, section->sums) : NULL;
  struct cb_blend blend;
  const int makes = is_blended(writer, section, &statements, &blend);
  char at_hand[80];
  snprintf(at_hand, sizeof at_hand, "%s %s", section->to, makes ? section->from : "");
  row.indent = "    ";
  row.pointers = "step.pointers->";
  row.scalars = "step.";
  row.at_hand = at_hand;
  row.slot = "step.slot";
  row.user = "step.terms";
  if (makes) {
    cb_text_add(text, "    sum_t %s_ = sum_t(load_vector(step.old + row));\n", section->from);
    cb_emit_row(text, statements, &row);
    add_shares(writer, text, statements, &row, "step.meeting");
  }
  if (sums) {
    row.indent = makes ? "      " : "    ";
    if (makes) cb_text_add_string(text, "    {\n");
    const char *fixed = cb_product_is_remade(section, sums) ? "" : "const ";
    cb_text_add(text, "%s%ssum_t %s_ = sum;\n", row.indent, fixed, section->to);
    cb_emit_row(text, sums, &row);
    add_shares(writer, text, sums, &row, "step.meeting");
    if (makes) cb_text_add_string(text, "    }\n");
  }
  cb_free(statements);
  cb_free(sums);
}

/* What is done where a row is committed, by section: its own statements, and what it gives sums. The product's own
 * vector is at hand. */
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
  cb_writer_cut(&text);
  return cb_writer_keep(&writer->base, &text);
}

static void add_step_scalars(struct cb_text *text, struct cb_text *seen, const struct cb_statements *statements,
                             const char *before, const char *behind) {
  for (int k = 0; statements && k < statements->names_count; k++) {
    const struct cb_name *name = &statements->names[k];
    if (name->kind != CB_NAME_SCALAR || cb_has_word(cb_text_string(seen), name->name)) continue;
    cb_text_add(seen, "%s ", name->name);
    cb_text_add(text, "%s%s%s", before, name->name, behind);
  }
}

/* Each scalar that such statements read, with these texts around it. */
static const char *step_scalars(struct writer *writer, const char *before, const char *behind) {
  const struct cb_program *program = writer->request->program;
  struct cb_text text = {0}, seen = {0};
  for (int i = 0; i < program->sections_count && writer->fused; i++) {
    const struct cb_section *section = &program->sections[i];
    struct cb_statements *statements, *sums = section->sums ? cb_writer_parse(&writer->base, section->sums) : NULL;
    struct cb_blend blend;
    is_blended(writer, section, &statements, &blend);
    add_step_scalars(&text, &seen, statements, before, behind);
    add_step_scalars(&text, &seen, sums, before, behind);
    cb_free(statements);
    cb_free(sums);
  }
  text.failed |= seen.failed;
  cb_text_release(&seen);
  cb_writer_cut(&text);
  return cb_writer_keep(&writer->base, &text);
}

static int has_blocks(const struct cb_program *program) { return cb_writer_has(program->given, "inverse"); }

static void add_spread(struct writer *writer, struct cb_scope *scope) {
  const struct cb_resident *resident = &writer->resident;
  cb_scope_section(scope, "spread");
  cb_scope_placeholder(scope, "cluster_blocks", cb_writer_number(&writer->base, writer->request->form.blocks));
  cb_scope_placeholder(scope, "reads", cb_writer_number(&writer->base, resident->reads));
  cb_scope_placeholder(scope, "commits", cb_writer_number(&writer->base, resident->commits));
  cb_scope_placeholder(scope, "readers", cb_writer_number(&writer->base, resident->readers));
  cb_scope_placeholder(scope, "room", cb_writer_number(&writer->base, resident->room));
  if (writer->aligned) return;
  cb_scope_section(scope, "listed");
  cb_scope_placeholder(scope, "own_rows", cb_writer_number(&writer->base, resident->own_rows));
}

static int64_t slots_bytes(const struct writer *writer) {
  const int64_t threads = writer->groups * writer->request->launches[0].threads;
  return cb_round_up(writer->kept.slots * threads * (int64_t)cb_type_size(writer->request->vector), 16);
}

static void add_kept(struct writer *writer, struct cb_scope *scope) {
  struct cb_text text = {0};
  cb_scope_section(scope, "kept");
  for (int i = 0; i < writer->kept.count; i++) {
    const struct cb_kept_vector *at = &writer->kept.vectors[i];
    cb_text_add(&text, "constexpr Kept %s_kept = {%lld, %lld, %s};\n", at->name, (long long)at->first,
                (long long)at->slots, at->is_whole ? "true" : "false");
  }
  cb_writer_cut(&text);
  cb_scope_placeholder(scope, "kept_vectors", cb_writer_keep(&writer->base, &text));
  if (!keeps_products(writer)) return;
  cb_scope_section(scope, "kept_products");
  const struct cb_program *program = writer->request->program;
  const int varies = cb_products_vary(program);
  if (varies) cb_scope_section(scope, "kept_varies");
  cb_scope_placeholder(scope, "kept_to", varies ? "step.to" : kept_text(writer, program->sections[0].to));
}

/* Behind the slots. */
static void add_near(struct writer *writer, struct cb_scope *scope) {
  const int64_t first = slots_bytes(writer);
  cb_scope_section(scope, "near");
  cb_scope_placeholder(scope, "arrays_count", cb_writer_number(&writer->base, cb_near_count(&writer->product)));
  cb_scope_placeholder(scope, "near_first", cb_writer_number(&writer->base, first));
  cb_scope_placeholder(scope, "near_end", cb_writer_number(&writer->base, first + writer->near_bytes));
}

static void add_before(struct writer *writer, struct cb_text *text) {
  struct cb_scope scope = {0};
  const int threads = writer->request->launches[0].threads;
  cb_scope_placeholder(&scope, "threads", cb_writer_number(&writer->base, writer->groups * threads));
  if (writer->groups > 1 || writer->aligned) {
    cb_scope_section(&scope, "virtual");
    cb_scope_placeholder(&scope, "virtual_threads", cb_writer_number(&writer->base, threads));
  }
  cb_scope_placeholder(&scope, "members", step_scalars(writer, "  sum_t ", "_;\n"));
  if (writer->groups > 1) cb_scope_section(&scope, "groups");
  if (writer->blended) cb_scope_section(&scope, "blended");
  if (writer->blended || writer->spread) cb_scope_section(&scope, "own_x");
  if (writer->spread) add_spread(writer, &scope);
  if (writer->kept.count) add_kept(writer, &scope);
  if (writer->near_bytes) add_near(writer, &scope);
  cb_scope_placeholder(&scope, "rows", cb_writer_number(&writer->base, writer->request->rows));
  cb_scope_placeholder(&scope, "vectors", cb_writer_vectors(&writer->base));
  if (has_blocks(writer->request->program)) {
    cb_scope_section(&scope, "blocks");
    cb_scope_placeholder(&scope, "block", cb_writer_number(&writer->base, writer->request->sizes.block_size));
  }
  if (writer->request->program->basis) {
    cb_scope_section(&scope, "basis");
    cb_scope_placeholder(&scope, "restart", cb_writer_number(&writer->base, writer->request->sizes.restart));
    cb_scope_placeholder(&scope, "stride", cb_writer_number(&writer->base, cb_program_stride(writer->request->rows)));
  }
  if (writer->fused) {
    cb_scope_section(&scope, "fused");
    cb_scope_placeholder(&scope, "commit_sums", commit_sums(writer));
    const char *stored = when_stored(writer);
    if (stored) cb_scope_section(&scope, "remade");
    if (stored) cb_scope_placeholder(&scope, "stored", stored);
  }
  expand(writer, text, "before_regions", &scope);
}

/* ---- the kernel */

static const char *scalars_text(struct writer *writer) {
  struct cb_text text = {0};
  for (const char *const *at = writer->request->program->scalars; *at; at++) cb_writer_add_scalar(&writer->base, *at);
  for (int i = 0; i < writer->base.scalars_count; i++)
    cb_text_add(&text, "%s%s_ = 0", i ? ", " : "", writer->base.scalars[i]);
  return cb_writer_keep(&writer->base, &text);
}

static const char *numbers_text(struct writer *writer) {
  struct cb_text text = {0};
  for (const char *const *at = writer->request->program->parameters; *at; at++) cb_text_add(&text, "sum_t %s_, ", *at);
  return cb_writer_keep(&writer->base, &text);
}

/* Where the system's vectors lie, and the thread block's own. */
static const char *of_system(struct writer *writer) {
  const struct cb_program *program = writer->request->program;
  struct cb_text text = {0};
  for (const char *const *at = program->given; *at; at++)
    cb_text_add(&text, "    pointers.%s_ += kOrder * int64_t(system);\n", *at);
  for (const char *const *at = program->work; *at && !writer->request->form.resident; at++)
    cb_text_add(&text, "    pointers.%s_ += kOrder * int64_t(blockIdx.x);\n", *at);
  cb_writer_cut(&text);
  return cb_writer_keep(&writer->base, &text);
}

static void add_kept_kernel(struct writer *writer, struct cb_scope *scope) {
  struct cb_text take = {0};
  add_kept_copy(writer, &take, 0);
  cb_writer_cut(&take);
  cb_scope_section(scope, "kept");
  cb_scope_placeholder(scope, "take_x", cb_writer_keep(&writer->base, &take));
  if (!keeps_products(writer)) return;
  cb_scope_section(scope, "kept_products");
  if (!cb_products_vary(writer->request->program)) return;
  cb_scope_section(scope, "kept_varies");
  cb_scope_placeholder(scope, "first_kept", kept_text(writer, writer->request->program->sections[0].to));
}

static void add_near_kernel(struct writer *writer, struct cb_scope *scope) {
  struct cb_text notes = {0}, copies = {0};
  cb_near_lines(&notes, &copies, &writer->product);
  cb_writer_cut(&notes);
  cb_writer_cut(&copies);
  cb_scope_section(scope, "near");
  cb_scope_placeholder(scope, "notes", cb_writer_keep(&writer->base, &notes));
  cb_scope_placeholder(scope, "near_copies", cb_writer_keep(&writer->base, &copies));
  cb_scope_placeholder(scope, "watched_arrays", near_arguments(writer, 1));
}

static void add_held_kernel(struct writer *writer, struct cb_scope *scope) {
  const struct cb_held_region region = cb_held_region(&writer->product);
  cb_scope_section(scope, "tile");
  cb_scope_placeholder(scope, "region", cb_arena_format(&writer->base.arena, "%.*s", region.length, region.name));
  cb_scope_placeholder(scope, "tile_arrays", cb_text_string(&writer->product.arguments[0]));
}

static void add_resident(struct writer *writer, struct cb_scope *scope) {
  struct cb_text take = {0};
  cb_scope_section(scope, "resident");
  cb_scope_placeholder(scope, "whole_vectors", places_text(writer, 1, "  "));
  if (writer->spread) {
    cb_scope_section(scope, "spread");
    return;
  }
  if (is_batch(writer)) return;
  add_copy(writer, &take, CB_RESIDENT_X, 0);
  cb_writer_cut(&take);
  cb_scope_placeholder(scope, "take_x", cb_writer_keep(&writer->base, &take));
}

/* How many thread blocks a multiprocessor shall hold. */
static int blocks_per_sm(const struct writer *writer) {
  const struct cb_program *program = writer->request->program;
  if (writer->held) return writer->held;
  if (writer->request->form.near) return 1;
  const int usual = program->blocks_per_sm ? program->blocks_per_sm : BLOCKS_PER_SM;
  const int own = writer->product.blocks_per_sm;
  const int most = own && own < usual ? own : usual;
  const int has_several = is_batch(writer) || writer->request->form.kind == CB_PROGRAM_GRID;
  const int blocks = most > writer->groups && has_several ? most / writer->groups : 1;
  const int asked = writer->request->form.each;
  return asked && asked < blocks ? asked : blocks;
}

static void add_kernel(struct writer *writer, struct cb_text *text) {
  const struct cb_program *program = writer->request->program;
  struct cb_scope scope = {0};
  cb_scope_placeholder(&scope, "sections", sections_text(writer)); /* first: it finds the scalars */
  cb_scope_placeholder(&scope, "scalars", scalars_text(writer));
  cb_scope_placeholder(&scope, "values", step_scalars(writer, ", ", "_"));
  cb_scope_placeholder(&scope, "blocks_per_sm", cb_writer_number(&writer->base, blocks_per_sm(writer)));
  cb_scope_placeholder(&scope, "kernel", CB_PROGRAM_KERNEL);
  cb_scope_placeholder(&scope, "parameters", cb_text_string(&writer->product.parameters));
  cb_scope_placeholder(&scope, "numbers", numbers_text(writer));
  cb_scope_placeholder(&scope, "first_from", vector(writer, program->sections[0].from));
  cb_scope_placeholder(&scope, "first_to", vector(writer, program->sections[0].to));
  cb_scope_placeholder(&scope, "choices", choices_text(writer));
  cb_scope_placeholder(&scope, "value",
                       program->value ? cb_arena_format(&writer->base.arena, "double(%s_%s)", program->value,
                                                        cb_writer_real(&writer->base))
                                      : "0");
  cb_scope_placeholder(&scope, "products", products_text(writer));
  if (cb_program_has_heads(program)) cb_scope_section(&scope, "heads");
  cb_scope_optional(&scope, "most_terms", cb_writer_number(&writer->base, cb_writer_most_sums(&writer->base, 1)));
  if (writer->product.is_scaled) cb_scope_section(&scope, "scaled");
  if (writer->product.has_carry) cb_scope_section(&scope, "carry");
  if (writer->fused) cb_scope_section(&scope, "fused");
  if (writer->blended) cb_scope_section(&scope, "blended");
  if (writer->request->form.kind == CB_PROGRAM_GRID) cb_scope_section(&scope, "grid");
  if (is_batch(writer)) {
    cb_scope_section(&scope, "batch");
    cb_scope_placeholder(&scope, "of_system", of_system(writer));
    cb_scope_placeholder(&scope, "nonzeros", cb_writer_number(&writer->base, writer->request->nnz));
  }
  if (writer->product.holds) cb_scope_section(&scope, "held");
  cb_scope_optional(&scope, "held_arrays", cb_text_string(&writer->product.arguments[0]));
  if (writer->request->form.kind == CB_PROGRAM_CLUSTER && !writer->spread) {
    cb_scope_section(&scope, "cluster");
    cb_scope_placeholder(&scope, "most_sums", most_parts(writer));
  }
  if (has_neighbours(writer)) {
    if (!writer->spread) cb_scope_section(&scope, "neighbours");
    cb_scope_placeholder(&scope, "virtual_blocks", cb_writer_number(&writer->base, writer->request->launches[0].blocks));
  }
  if (writer->near_bytes) add_near_kernel(writer, &scope);
  if (writer->held) add_held_kernel(writer, &scope);
  if (writer->kept.count) add_kept_kernel(writer, &scope);
  else if (writer->request->form.resident) add_resident(writer, &scope);
  if (writer->groups > 1) cb_scope_section(&scope, "groups");
  if (writer->aligned) cb_scope_section(&scope, "aligned");
  expand(writer, text, "kernel", &scope);
}

/* ---- the whole */

static enum cb_status check(const struct cb_program_request *request, struct cb_diag *diag) {
  if (has_blocks(request->program) && (request->sizes.block_size < 2 || request->sizes.block_size > CB_MOST_BLOCK))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'block_size' is %d; it is 2 to %d", request->sizes.block_size, CB_MOST_BLOCK);
  if (request->program->basis && (request->sizes.restart < 1 || request->sizes.restart > CB_MOST_RESTART))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'restart' is %d; it is 1 to %d", request->sizes.restart, CB_MOST_RESTART);
  if (request->program->columns)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "method '%s' needs program form 'graph'", request->program->name);
  if (cb_program_calls(request->program))
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "a preconditioner of the caller's needs program form 'graph'");
  if (!request->launches_count || request->launches_count > CB_PROGRAM_LAUNCHES)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "a program takes products of 1 to %d launches, not %d", CB_PROGRAM_LAUNCHES,
                   request->launches_count);
  if (request->form.resident && request->form.kind == CB_PROGRAM_CLUSTER && request->form.blocks < 1)
    return cb_fail(diag, CB_ERR_ARGUMENT, "a cluster with '+resident' needs a number of thread blocks");
  for (int i = 1; i < request->launches_count; i++)
    if (request->launches[i].threads != request->launches[0].threads)
      return cb_fail(diag, CB_ERR_UNSUPPORTED,
                     "the product's launches have %d and %d threads to a thread block, and a program one size: choose "
                     "another recipe", request->launches[0].threads, request->launches[i].threads);
  return CB_OK;
}

/* How many virtual thread blocks go side by side: no more than asked for, than a thread block has threads for, and than
 * the product's kernels want on a multiprocessor. With fewer meetings beside a matrix in shared memory, where lanes
 * share rows, a thread takes 107 registers and more (cg, sm_90): with 1024 and 768 threads, 64 and 85 of them, it
 * spills, and an iteration takes up to a tenth longer than with 512. */
static int groups_of(const struct writer *writer) {
  enum { WITH_REGISTERS = 512 };
  const struct cb_program_form *form = &writer->request->form;
  const int threads = writer->request->launches[0].threads, own = writer->product.blocks_per_sm;
  const int is_large = form->near && form->pipelined && writer->product.own_rows == CB_ROWS_ANY;
  int groups = writer->product.shares || writer->request->form.groups < 1 ? 1 : writer->request->form.groups;
  if (own && groups > own) groups = own;
  while (groups > 1 && groups * threads > (is_large ? WITH_REGISTERS : MOST_THREADS)) groups--;
  return groups;
}

/* Each row is committed once, all of x is read by load_x, and nothing else lies in shared memory. */
static enum cb_status plan_resident(struct writer *writer) {
  const struct cb_program_request *request = writer->request;
  const int64_t share = cb_divide_up(request->launches[0].blocks, (int64_t)cb_larger(request->form.blocks, 1));
  const int64_t even = cb_divide_up(request->rows, (int64_t)cb_larger(request->form.blocks, 1));
  const int64_t rows = writer->aligned ? share * request->launches[0].threads : 3 * even / 2 + 64;
  if (!writer->fused || request->launches_count > 1 || writer->product.shares || !writer->product.load_x.length)
    return cb_fail(writer->base.diag, CB_ERR_UNSUPPORTED,
                   "vectors cannot lie in shared memory beside this product: choose another recipe, or a program form "
                   "without '+resident'");
  return cb_resident_plan(&writer->resident, request, rows < request->rows ? rows : request->rows, writer->blended,
                          writer->base.diag);
}

/* Bytes of a thread block's shared memory. What the matrix takes of it, too, needs no L1. */
static int64_t room_for_slots(const struct writer *writer) {
  enum { OF_CACHE = 16 << 10 };
  const int64_t room = cb_kept_room(writer->request->form.room, blocks_per_sm(writer));
  return writer->request->form.near ? room + OF_CACHE : room;
}

/* Nothing else lies in shared memory. */
static enum cb_status plan_kept(struct writer *writer) {
  const struct cb_program_request *request = writer->request;
  const struct cb_program *program = request->program;
  const int threads = writer->groups * request->launches[0].threads;
  const int64_t each = blocks_per_sm(writer);
  const int64_t most = request->form.blocks ? request->form.blocks : each * request->form.multiprocessors;
  const int64_t room = room_for_slots(writer) - writer->near_bytes;
  /* Threads of the product that may have a row. */
  const int64_t places = writer->aligned ? request->launches[0].blocks * request->launches[0].threads : request->rows;
  struct cb_kept_request asked = {.program = program,
                                  .fused = writer->fused,
                                  .aligned = writer->aligned,
                                  .rows = cb_divide_up(places, threads * cb_larger(most, (int64_t)1)),
                                  .slots = room / (threads * (int64_t)cb_type_size(request->vector))};
  struct cb_text names = {0};
  if (writer->product.shares || request->launches[0].dynamic_shared)
    return cb_fail(writer->base.diag, CB_ERR_UNSUPPORTED,
                   "vectors cannot lie in shared memory beside this product, which has its own there: choose another "
                   "recipe, or a program form without '+resident'");
  for (int i = 0; i < program->sections_count; i++) {
    struct cb_statements *statements;
    struct cb_blend blend;
    asked.unread[i] = writer->fused && cb_product_is_unread(&writer->base, &program->sections[i]);
    if (is_blended(writer, &program->sections[i], &statements, &blend))
      asked.addends[i] = cb_arena_string(&writer->base.arena, blend.addend);
    cb_free(statements);
  }
  if (writer->base.status) return writer->base.status;
  const enum cb_status s = cb_kept_plan(&writer->kept, &asked, writer->base.diag);
  for (int i = 0; i < writer->kept.count; i++) cb_text_add(&names, "%s ", writer->kept.vectors[i].name);
  if (!s) writer->kept_names = cb_writer_keep(&writer->base, &names);
  if (!s) writer->least_blocks = (int)cb_divide_up(places, threads * asked.rows);
  return s;
}

/* Where lanes share rows, steps would keep some of them idle, which slots repay. */
static int is_aligned(const struct writer *writer) {
  const struct cb_program_form *form = &writer->request->form;
  const enum cb_own_rows own = writer->product.own_rows;
  return own == CB_ROWS_OF_THREADS || (own == CB_ROWS_OF_LANES && form->resident && form->kind == CB_PROGRAM_GRID);
}

static void choose(struct writer *writer) {
  const struct cb_program_request *request = writer->request;
  const struct cb_program *program = request->program;
  writer->fused = writer->product.commits_once && !request->has_carry;
  writer->groups = groups_of(writer);
  writer->aligned = writer->fused && is_aligned(writer) && request->launches_count == 1 &&
                    request->launches[0].blocks * request->launches[0].threads >= request->rows;
  for (int i = 0; i < program->sections_count; i++) writer->blended |= has_blend(writer, &program->sections[i]);
  writer->spread = request->form.resident && request->form.kind == CB_PROGRAM_CLUSTER;
  if (!writer->base.status) writer->base.status = cb_program_apart(request, writer->product.shares, writer->base.diag);
  if (request->form.near && request->form.pipelined && !request->form.resident && writer->fused)
    writer->held = cb_held_blocks(&writer->product, request);
  if (writer->held && !writer->base.status) writer->base.status = cb_held_take(&writer->product, writer->base.diag);
  if (request->form.near && !writer->held && !writer->base.status)
    writer->base.status = cb_near_plan(&writer->near_bytes, &writer->product, request,
                                       room_for_slots(writer), writer->base.diag);
  if (writer->near_bytes) cb_product_watch(&writer->product);
  if (request->form.resident && !writer->base.status)
    writer->base.status = request->form.kind == CB_PROGRAM_GRID ? plan_kept(writer) : plan_resident(writer);
  /* What few thread blocks read again and again may stay in their L1, if no fence empties it. */
  if (request->form.kind == CB_PROGRAM_BLOCK || writer->spread) cb_word_instead(&writer->product.regions, "load_stream", "load");
  if (writer->spread && !writer->base.status)
    writer->base.status = cb_product_template(&writer->product, writer->base.diag);
  if (writer->groups == 1) return;
  cb_word_instead(&writer->product.regions, "threadIdx.x", "virtual_thread()");
  cb_word_instead(&writer->product.functions, "threadIdx.x", "virtual_thread()");
}

static void write(struct writer *writer, struct cb_text *body) {
  struct cb_text kernel = {0};
  struct cb_scope scope = {0}, basis = {0};
  cb_writer_add_part(&writer->base, &basis);
  choose(writer);
  if (writer->base.status) return;
  add_kernel(writer, &kernel);
  cb_text_add_string(body, cb_text_string(&writer->product.vectors));
  if (!writer->blended && !writer->spread) cb_text_add_string(body, cb_text_string(&writer->product.load_x));
  add_before(writer, body);
  cb_text_add_string(body, cb_text_string(&writer->product.regions));
  cb_text_add_string(body, cb_text_string(&writer->product.functions));
  cb_scope_placeholder(&scope, "most_sums", most_parts(writer));
  if (writer->spread && !writer->aligned) cb_scope_section(&scope, "listed");
  cb_scope_section(&scope, writer->spread     ? "spread"
                           : is_batch(writer) ? "block"
                                              : cb_program_form_names[writer->request->form.kind]);
  expand(writer, body, "functions", &scope);
  if (writer->request->program->basis && !writer->base.status)
    writer->base.status = cb_expand_definition(body, "steps", "basis", &basis, writer->base.diag);
  cb_text_add_string(body, cb_text_string(&kernel));
  body->failed |= kernel.failed | writer->product.regions.failed | writer->product.functions.failed;
  cb_text_release(&kernel);
}

/* Of vectors and the matrix. */
static int64_t shared_bytes(const struct writer *writer) {
  const int has_slots = writer->kept.count > 0 || writer->near_bytes > 0;
  return has_slots ? slots_bytes(writer) + writer->near_bytes : writer->resident.bytes;
}

enum cb_status cb_program_text(struct cb_text *text, const struct cb_program_request *request,
                               struct cb_program_shape *shape, struct cb_diag *diag) {
  struct writer writer = {.base = {.program = request->program,
                                   .vector = request->vector,
                                   .sum = request->sum,
                                   .diag = diag},
                          .request = request};
  struct cb_text body = {0}, functions = {0}, whole = {0};
  enum cb_status s = check(request, diag);
  if (!s) s = cb_product_take(&writer.product, request, diag);
  if (!s) {
    write(&writer, &body);
    s = writer.base.status;
    *shape = (struct cb_program_shape){.threads = writer.groups * request->launches[0].threads,
                                       .dynamic_shared = (int)shared_bytes(&writer),
                                       .each = blocks_per_sm(&writer),
                                       .least_blocks = writer.held ? request->launches[0].blocks : writer.least_blocks,
                                       .neighbours = request->form.near && !writer.held,
                                       .holds = writer.held > 0,
                                       .has_passes =
                                           !writer.fused || !request->form.pipelined || request->form.resident};
  }
  /* Statements call functions that stand in front of all that uses them. */
  if (!s) s = cb_emit_statement_functions(&functions, cb_text_string(&body), request->sum, diag);
  const char *structs = s ? NULL : strstr(cb_text_string(&body), "// ---- the program's vectors and steps\n");
  if (structs) {
    cb_text_add_bytes(&whole, body.bytes, (size_t)(structs - body.bytes));
    cb_text_add_string(&whole, cb_text_string(&functions));
    cb_text_add_string(&whole, structs);
    cb_writer_drop_unused(&whole);
  }
  whole.failed |= body.failed | functions.failed | writer.base.arena.failed;
  if (!s) s = cb_source_with_prelude(text, &whole, diag);
  cb_text_release(&body);
  cb_text_release(&functions);
  cb_text_release(&whole);
  cb_product_text_release(&writer.product);
  cb_arena_release(&writer.base.arena);
  return s;
}
