// SPDX-License-Identifier: Apache-2.0
/* The text of stages, and the plan that says when each is executed: see stages.h. Frames stand in
 * templates/stages.cu.in.
 *
 * A section becomes pieces: one ends where sums are handed on, where the caller's preconditioner works, or with the
 * section. Sections that multiply the same two vectors share the product (a slot), and their pieces go side by side
 * into the same stages, since only one of them is the current one. */
#include "codegen/program/stages.h"

#include "base/integers.h"
#include "base/memory.h"
#include "codegen/expand.h"
#include "codegen/program/writer.h"
#include "codegen/source.h"

#include <stdio.h>
#include <string.h>

enum {
  MOST_PIECES = CB_MOST_STEPS + 2,
  NUMBERS = 32 /* of a section: its pieces, and first what is before its product */
};

struct piece {
  struct cb_text text;
  enum { FOLLOWS, APART, CALLS } begins; /* with the stage that is open; in another one; behind the preconditioner */
  const char *from, *to;
  int next; /* piece */
};

struct pieces {
  struct piece list[MOST_PIECES];
  int count;
};

struct slot {
  int sections[CB_MOST_SECTIONS], count;
};

struct writer {
  struct cb_writer base;
  struct cb_stages_plan *plan;
  struct cb_program_sizes sizes;
  struct pieces sections[CB_MOST_SECTIONS], before[CB_MOST_SECTIONS];
  struct cb_text stages; /* all kernels */
  struct cb_text open;   /* the pieces of the one that is being made */
  int arrives;           /* it comes behind a product */
  int open_pieces;       /* how many those are */
  int fused;             /* the section whose product's commit can execute what its only piece does; -1: none */
  int acts, stages_count;
  int state;             /* that the next stage reads */
  int most_sums;
  int basis_board, basis_sums; /* where a basis has its sums, and how many: a length follows */
};

/* ---- numbers of pieces */

static int last_of(const struct cb_program *program) { return program->sections_count - 1; }
static int number_of(int section, int piece) { return NUMBERS * section + 1 + piece; }
static int end_of(const struct cb_program *program) { return NUMBERS * program->sections_count; }

/* What is first of a section. */
static int entry_of(const struct cb_program *program, int section) {
  return program->sections[section].before ? NUMBERS * section : number_of(section, 0);
}

static int has_blocks(const struct cb_program *program) { return cb_writer_has(program->given, "inverse"); }

int cb_program_has_columns(const struct cb_program *program, const char *vector) {
  return program->columns && cb_writer_has(program->columns, vector);
}

int cb_program_calls(const struct cb_program *program) {
  for (int i = 0; i < program->sections_count; i++)
    for (int k = 0; k < CB_MOST_STEPS; k++)
      if (program->sections[i].steps[k].kind == CB_STEP_CALL) return 1;
  return 0;
}

static void expand(struct writer *writer, struct cb_text *text, const char *definition, struct cb_scope *scope) {
  if (writer->base.status) return;
  cb_writer_add_part(&writer->base, scope);
  if (writer->base.arena.failed) writer->base.status = cb_fail_memory(writer->base.diag, "stages' text", 0);
  else writer->base.status = cb_expand_definition(text, "stages", definition, scope, writer->base.diag);
}

/* ---- pieces */

static struct cb_text *current(struct pieces *pieces) { return &pieces->list[pieces->count - 1].text; }

static void begin_piece(struct writer *writer, struct pieces *pieces, const struct piece *piece) {
  if (pieces->count == MOST_PIECES) {
    writer->base.status = cb_fail(writer->base.diag, CB_ERR_INTERNAL, "a section has more than %d pieces", MOST_PIECES);
    pieces->count--; /* which is not used any more */
    cb_text_release(&pieces->list[pieces->count].text);
  }
  pieces->list[pieces->count++] = *piece;
}

/* A new one, which is next. */
static void end_piece(struct writer *writer, struct pieces *pieces, int section, const struct piece *next) {
  pieces->list[pieces->count - 1].next = number_of(section, pieces->count);
  begin_piece(writer, pieces, next);
}

/* What thread blocks leave to each other has its place on the board: `first`. */
static void add_results(struct writer *writer, struct cb_text *text, struct cb_statements *statements, int first) {
  struct cb_scope scope = {0};
  cb_scope_placeholder(&scope, "count", cb_writer_number(&writer->base, cb_writer_sums(statements)));
  cb_scope_placeholder(&scope, "board", cb_writer_number(&writer->base, first));
  cb_scope_placeholder(&scope, "results", cb_writer_results(&writer->base, statements, "        ", "sums"));
  expand(writer, text, "results", &scope);
}

static void add_rows(struct writer *writer, struct pieces *pieces, int section, const char *of_step,
                     const char *many) {
  const struct cb_statement_types types = {writer->base.vector, writer->base.sum};
  const struct cb_row_text row = cb_writer_row(&types);
  struct cb_statements *statements = cb_writer_parse(&writer->base, of_step);
  struct cb_text body = {0};
  struct cb_scope scope = {0};
  if (!statements) return;
  const int sums = cb_writer_sums(statements), first = writer->plan->sums;
  cb_emit_row(&body, statements, &row);
  cb_writer_cut(&body);
  cb_scope_placeholder(&scope, "statements", cb_writer_keep(&writer->base, &body));
  cb_scope_placeholder(&scope, "many", many);
  if (sums) {
    cb_scope_section(&scope, "sums");
    cb_scope_placeholder(&scope, "count", cb_writer_number(&writer->base, sums));
    cb_scope_placeholder(&scope, "board", cb_writer_number(&writer->base, first));
  }
  expand(writer, current(pieces), "rows", &scope);
  if (sums) {
    writer->plan->sums += sums;
    if (sums > writer->most_sums) writer->most_sums = sums;
    end_piece(writer, pieces, section, &(struct piece){.begins = APART});
    add_results(writer, current(pieces), statements, first);
  }
  cb_free(statements);
}

/* Of templates those of blocks, which read what other threads have written. */
/* A definition of a basis. Each reads what others have left behind, so that it begins a piece; one leads around the two
 * that follow it. */
static void add_basis(struct writer *writer, struct pieces *pieces, int section, const struct cb_step *step) {
  struct cb_scope scope = {0};
  const int scaled = cb_writer_has(writer->base.program->work, "d");
  if (current(pieces)->length) end_piece(writer, pieces, section, &(struct piece){.begins = APART});
  cb_scope_optional(&scope, "scale", scaled ? "load_vector(pointers.d_ + row) * " : "");
  cb_scope_optional(&scope, "board", cb_writer_number(&writer->base, writer->basis_board));
  cb_scope_optional(&scope, "length", cb_writer_number(&writer->base, writer->basis_board + writer->basis_sums));
  cb_scope_optional(&scope, "grow", cb_writer_number(&writer->base, number_of(section, pieces->count + 1)));
  expand(writer, current(pieces), step->text, &scope);
}

static void add_template(struct writer *writer, struct pieces *pieces, int section, const struct cb_step *step) {
  struct cb_scope scope = {0};
  if (writer->base.program->basis) {
    add_basis(writer, pieces, section, step);
    return;
  }
  end_piece(writer, pieces, section, &(struct piece){.begins = APART});
  cb_scope_placeholder(&scope, "rows", "for (int64_t row = first_row; row < rows; row += row_step) {");
  cb_scope_placeholder(&scope, "order", "rows");
  cb_scope_placeholder(&scope, "from", step->from);
  cb_scope_placeholder(&scope, "to", step->to);
  if (!writer->base.status)
    writer->base.status = cb_expand_definition(current(pieces), "steps", step->text, &scope, writer->base.diag);
}

static void add_jump(struct cb_text *text, const char *condition, const char *reason, int at) {
  cb_text_add(text, "      if (%s) {\n", condition);
  if (reason) cb_text_add(text, "        reason = %s;\n", reason);
  cb_text_add(text, "        at = %d;\n        break;\n      }\n", at);
}

static void add_step(struct writer *writer, struct pieces *pieces, int section, const struct cb_step *step) {
  const struct cb_program *program = writer->base.program;
  const int last = entry_of(program, last_of(program));
  const char *real = cb_writer_real(&writer->base);
  switch (step->kind) {
  case CB_STEP_ROWS: add_rows(writer, pieces, section, step->text, "rows"); break;
  case CB_STEP_COLUMNS: add_rows(writer, pieces, section, step->text, "columns"); break;
  case CB_STEP_SCALARS: cb_writer_scalars(&writer->base, current(pieces), step->text); break;
  case CB_STEP_STOP:
    cb_writer_scalars(&writer->base, current(pieces), step->text);
    add_jump(current(pieces), "stop_ != 0", cb_arena_format(&writer->base.arena, "int(stop_%s)", real), last);
    break;
  case CB_STEP_GO:
    cb_writer_scalars(&writer->base, current(pieces), step->text);
    add_jump(current(pieces), "go_ != 0", NULL, entry_of(program, step->section));
    break;
  case CB_STEP_TEMPLATE: add_template(writer, pieces, section, step); break;
  case CB_STEP_CALL:
    end_piece(writer, pieces, section, &(struct piece){.begins = CALLS, .from = step->from, .to = step->to});
    break;
  case CB_STEP_SWAP: /* of programs for other forms */
    writer->base.status = cb_fail(writer->base.diag, CB_ERR_INTERNAL, "vectors change places in form 'graph'");
    break;
  case CB_STEP_COUNT: cb_text_add_string(current(pieces), "      iterations++;\n"); break;
  case CB_STEP_MOST:
    add_jump(current(pieces), "iterations >= given->most",
             cb_writer_number(&writer->base, CB_REASON_ITERATIONS), last);
    break;
  case CB_STEP_NOTE:
    cb_text_add(current(pieces),
                "      square = %s_;\n"
                "      if (given->history && blockIdx.x == 0 && threadIdx.x == 0) given->history[iterations] = "
                "double(square%s);\n",
                step->text, real);
    break;
  case CB_STEP_END: break;
  }
}

/* Nothing but the preconditioner's turn, behind another piece. */
static int is_bare(const struct piece *piece) { return piece->begins == CALLS && !piece->text.length; }

static void make_section(struct writer *writer, int number) {
  const struct cb_program *program = writer->base.program;
  const struct cb_section *section = &program->sections[number];
  struct pieces *pieces = &writer->sections[number], *before = &writer->before[number];
  if (section->before) {
    begin_piece(writer, before, &(struct piece){.begins = FOLLOWS});
    add_rows(writer, before, number, section->before, "rows");
    before->list[0].next = number_of(number, 0);
  }
  begin_piece(writer, pieces, &(struct piece){.begins = FOLLOWS});
  if (section->sums) add_rows(writer, pieces, number, section->sums, "rows");
  for (int k = 0; k < CB_MOST_STEPS && section->steps[k].kind && !writer->base.status; k++)
    add_step(writer, pieces, number, &section->steps[k]);
  struct piece *last = &pieces->list[pieces->count - 1];
  last->next = number == last_of(program) ? end_of(program) : entry_of(program, section->next);
  if (is_bare(last)) last[-1].next = last->next;
}

/* ---- acts */

static int vector_number(const struct cb_program *program, const char *name) {
  int number = 0;
  for (const char *const *at = program->given; *at; at++, number++)
    if (!strcmp(*at, name)) return number;
  for (const char *const *at = program->work; *at; at++, number++)
    if (!strcmp(*at, name)) return number;
  return -1;
}

static void add_act(struct writer *writer, enum cb_act_kind kind, int number, int from, int to) {
  if (writer->acts == CB_MOST_ACTS || writer->stages_count == CB_MOST_STAGES) {
    if (!writer->base.status)
      writer->base.status = cb_fail(writer->base.diag, CB_ERR_INTERNAL, "a method has more than %d acts", CB_MOST_ACTS);
    return;
  }
  writer->plan->acts[writer->acts++] = (struct cb_act){kind, number, from, to};
}

static int has_variable(const char *pieces, const char *name) {
  char variable[80];
  snprintf(variable, sizeof variable, "%s_", name);
  return cb_has_word(pieces, variable);
}

/* The program's parameters and the scalars that the stage names, each from its place. */
static const char *loads_text(struct writer *writer, const char *pieces) {
  struct cb_text text = {0};
  for (const char *const *at = writer->base.program->parameters; *at; at++)
    if (has_variable(pieces, *at)) cb_text_add(&text, "  const sum_t %s_ = given->%s_;\n", *at, *at);
  for (int i = 0; i < writer->base.scalars_count; i++) {
    const char *name = writer->base.scalars[i];
    if (has_variable(pieces, name)) cb_text_add(&text, "  sum_t %s_ = from->%s_;\n", name, name);
  }
  cb_writer_cut(&text);
  return cb_writer_keep(&writer->base, &text);
}

/* All scalars; those that the stage does not name stay as they were, and take no registers until then. */
static const char *stores_text(struct writer *writer, const char *pieces) {
  struct cb_text text = {0};
  for (int i = 0; i < writer->base.scalars_count; i++) {
    const char *name = writer->base.scalars[i];
    cb_text_add(&text, ", %s%s_", has_variable(pieces, name) ? "" : "from->", name);
  }
  return cb_writer_keep(&writer->base, &text);
}

/* ---- fusions */

static int is_row_step(const struct cb_program *program, const struct cb_section *section, const struct cb_step *step) {
  return step->kind == (program->columns && section->transposed ? CB_STEP_COLUMNS : CB_STEP_ROWS);
}

/* A step that the product's commit can execute: of its own rows, without sums, which leaves alone what the product
 * reads. */
static int commits_step(struct writer *writer, const struct cb_section *section, const struct cb_step *step) {
  struct cb_statements *statements =
      is_row_step(writer->base.program, section, step) ? cb_writer_parse(&writer->base, step->text) : NULL;
  int good = statements && !cb_writer_sums(statements);
  for (int i = 0; good && i < statements->names_count; i++)
    if (cb_name_is_written(&statements->names[i]) && !strcmp(statements->names[i].name, section->from)) good = 0;
  cb_free(statements);
  return good;
}

/* How many of a section's first steps these are. */
static int committed_steps(struct writer *writer, const struct cb_section *section) {
  int count = 0;
  while (count < CB_MOST_STEPS && commits_step(writer, section, &section->steps[count])) count++;
  return count;
}

/* Whether there is a step for the commit, and all behind it are of scalars. */
static int is_fusable(struct writer *writer, const struct cb_section *section) {
  if (!section->from || section->sums || section->heads || cb_type_is_complex(writer->base.sum)) return 0;
  const int first = committed_steps(writer, section);
  for (int k = first; k < CB_MOST_STEPS; k++)
    switch (section->steps[k].kind) {
    case CB_STEP_ROWS:
    case CB_STEP_COLUMNS:
    case CB_STEP_TEMPLATE:
    case CB_STEP_CALL:
    case CB_STEP_SWAP: return 0;
    default: break;
    }
  return first > 0;
}

/* The stage that closes, and the product before it. */
static void note_fusion(struct writer *writer) {
  const struct cb_program *program = writer->base.program;
  struct cb_stages_plan *plan = writer->plan;
  if (writer->fused < 0 || writer->open_pieces != 1 || plan->fusions_count == CB_MOST_FUSIONS) return;
  for (int i = 0; i < program->sections_count; i++)
    if (program->sections[i].times > program->sections[writer->fused].times) return;
  plan->fusions[plan->fusions_count++] = (struct cb_fusion){writer->acts - 1, writer->fused};
}

/* The stage that is being made, if it has any pieces. It writes a struct of the state that no other does. */
static void close_stage(struct writer *writer) {
  struct cb_scope scope = {0};
  if (!writer->open.length) return;
  const int number = writer->stages_count, to = writer->plan->states++;
  cb_writer_cut(&writer->open);
  note_fusion(writer);
  add_act(writer, CB_ACT_STAGE, number, writer->state, to);
  writer->stages_count++;
  const char *pieces = cb_writer_keep(&writer->base, &writer->open);
  cb_scope_placeholder(&scope, "number", cb_writer_number(&writer->base, number));
  cb_scope_placeholder(&scope, "loads", loads_text(writer, pieces));
  cb_scope_placeholder(&scope, "stores", stores_text(writer, pieces));
  cb_scope_placeholder(&scope, "pieces", pieces);
  if (cb_has_word(pieces, "first_row")) cb_scope_section(&scope, "loops");
  const int has_vectors = cb_has_word(pieces, "pointers");
  if (has_vectors) cb_scope_section(&scope, "vectors");
  if (has_vectors && !writer->base.program->copied) cb_scope_section(&scope, "given");
  if (writer->base.program->columns) cb_scope_section(&scope, "columns");
  if (writer->arrives) cb_scope_section(&scope, "arrives");
  expand(writer, &writer->stages, "stage", &scope);
  writer->state = to;
  writer->arrives = writer->open_pieces = 0;
  writer->fused = -1;
}

/* With `behind_product`, only what led there counts: not what another piece of the stage has just made the next. */
static void add_piece(struct writer *writer, const struct piece *piece, int number, int behind_product) {
  cb_text_add(&writer->open, "  if (%s == %d)\n    do {\n", behind_product ? "entry" : "at", number);
  cb_text_add_string(&writer->open, cb_text_string(&piece->text));
  cb_text_add(&writer->open, "      at = %d;\n    } while (false);\n", piece->next);
  writer->open.failed |= piece->text.failed;
  writer->arrives |= behind_product;
  writer->open_pieces++;
}

static void add_before(struct writer *writer, const struct slot *slot) {
  for (int i = 0; i < slot->count; i++) {
    const int section = slot->sections[i];
    if (writer->before[section].count) add_piece(writer, writer->before[section].list, NUMBERS * section, 0);
  }
}

static enum cb_act_product product_of(const struct cb_section *section) {
  return section->heads ? CB_WITH_HEADS : section->transposed ? CB_OF_TRANSPOSED : CB_OF_MATRIX;
}

static void add_slot(struct writer *writer, const struct slot *slot) {
  const struct cb_program *program = writer->base.program;
  const struct cb_section *first = &program->sections[slot->sections[0]];
  int most = 0;
  for (int i = 0; i < slot->count; i++)
    if (writer->sections[slot->sections[i]].count > most) most = writer->sections[slot->sections[i]].count;
  if (first->from) {
    close_stage(writer);
    add_act(writer, CB_ACT_PRODUCT, product_of(first), vector_number(program, first->from),
            vector_number(program, first->to));
  }
  for (int j = 0; j < most; j++) {
    if (j) close_stage(writer);
    for (int i = 0; i < slot->count; i++) {
      const struct pieces *pieces = &writer->sections[slot->sections[i]];
      if (j >= pieces->count) continue;
      const struct piece *piece = &pieces->list[j];
      if (piece->begins == CALLS)
        add_act(writer, CB_ACT_CALL, 0, vector_number(program, piece->from), vector_number(program, piece->to));
      if (!is_bare(piece)) add_piece(writer, piece, number_of(slot->sections[i], j), !j && first->from);
    }
    if (!j && slot->count == 1 && is_fusable(writer, first)) writer->fused = slot->sections[0];
  }
}

/* ---- parts */

/* Whether both belong to those that are executed so often before others get their turn. */
static int repeat_together(const struct cb_program *program, int a, int b) {
  for (int i = a; i <= b; i++)
    if (program->sections[i].times < 2 || program->sections[i].times != program->sections[a].times) return 0;
  return 1;
}

/* The first section of those that repeat: the first that a later one, or itself, leads to. -1: sections do not follow
 * one another as they are listed. */
static int first_of_body(const struct cb_program *program) {
  int first = last_of(program);
  for (int i = 0; i < last_of(program); i++) {
    const struct cb_section *section = &program->sections[i];
    if (section->next > i + 1) return -1;
    if (section->next <= i && !repeat_together(program, section->next, i))
      first = (int)cb_smaller(first, section->next);
    for (int k = 0; k < CB_MOST_STEPS; k++)
      if (section->steps[k].kind == CB_STEP_GO && section->steps[k].section <= i)
        first = (int)cb_smaller(first, section->steps[k].section);
  }
  return first;
}

static int is_simple(const struct cb_program *program, const struct cb_section *section) {
  for (int k = 0; k < CB_MOST_STEPS; k++)
    if ((section->steps[k].kind == CB_STEP_TEMPLATE && !program->basis) || section->steps[k].kind == CB_STEP_CALL)
      return 0;
  return section->from && !section->before && section->times < 2 && !section->transposed;
}

static int go_together(const struct cb_program *program, const struct cb_section *a, const struct cb_section *b) {
  return is_simple(program, a) && is_simple(program, b) && a->heads == b->heads && !strcmp(a->from, b->from) &&
         !strcmp(a->to, b->to);
}

static int make_slots(struct slot *slots, const struct cb_program *program, int first) {
  int count = 0;
  for (int section = first; section < last_of(program); section++) {
    const struct cb_section *own = &program->sections[section];
    int slot = 0;
    while (slot < count && !go_together(program, &program->sections[slots[slot].sections[0]], own)) slot++;
    if (slot == count) slots[count++] = (struct slot){0};
    slots[slot].sections[slots[slot].count++] = section;
  }
  return count;
}

/* What repeats from a place on: of two stages at least, the last of which writes what the first one reads. */
struct loop {
  int act, stage, state;
};

static struct loop begin_loop(const struct writer *writer) {
  return (struct loop){writer->acts, writer->stages_count, writer->state};
}

static void close_loop(struct writer *writer, const struct loop *loop) {
  close_stage(writer);
  for (int i = writer->acts - 1; i >= loop->act; i--) {
    struct cb_act *act = &writer->plan->acts[i];
    if (act->kind != CB_ACT_STAGE) continue;
    act->to = writer->state = loop->state;
    break;
  }
  const int complete = !writer->open.failed && !writer->base.arena.failed; /* what lacks memory lacks stages */
  if (!writer->base.status && complete && writer->stages_count < loop->stage + 2)
    writer->base.status = cb_fail(writer->base.diag, CB_ERR_INTERNAL, "what repeats of a method has one stage");
}

static void add_group(struct writer *writer, const struct loop *loop, int times) {
  struct cb_stages_plan *plan = writer->plan;
  close_loop(writer, loop);
  if (plan->groups_count < CB_MOST_GROUPS)
    plan->groups[plan->groups_count++] = (struct cb_group){loop->act, writer->acts - loop->act, times};
  else if (!writer->base.status)
    writer->base.status =
        cb_fail(writer->base.diag, CB_ERR_INTERNAL, "a method has more than %d groups", CB_MOST_GROUPS);
}

/* The slots, and what is before the product of that which follows each; behind the last comes `next`. */
static void add_slots(struct writer *writer, const struct slot *slots, int count, const struct slot *next) {
  const struct cb_program *program = writer->base.program;
  struct loop loop = {0};
  for (int i = 0; i < count; i++) {
    const int section = slots[i].sections[0], is_last = i + 1 == count;
    const int begins = program->sections[section].times > 1 &&
                       (!i || !repeat_together(program, slots[i - 1].sections[0], section));
    const int ends = program->sections[section].times > 1 &&
                     (is_last || !repeat_together(program, section, slots[i + 1].sections[0]));
    if (begins) {
      close_stage(writer);
      loop = begin_loop(writer);
    }
    add_slot(writer, &slots[i]);
    if (ends) add_group(writer, &loop, program->sections[section].times);
    add_before(writer, is_last ? next : &slots[i + 1]);
  }
}

static void add_begin(struct writer *writer, int sections, const struct slot *body) {
  struct slot slots[CB_MOST_SECTIONS];
  for (int i = 0; i < sections; i++) slots[i] = (struct slot){{i}, 1};
  add_before(writer, sections ? slots : body);
  add_slots(writer, slots, sections, body);
  close_stage(writer);
  writer->plan->turn = writer->state;
  writer->plan->begin = writer->acts;
}

/* The first slot by itself, which may be followed by itself, or by the next one. How many slots that are. */
static int add_inner(struct writer *writer, const struct slot *slots) {
  const struct cb_program *program = writer->base.program;
  const struct loop loop = begin_loop(writer);
  if (!program->inner) return 0;
  add_slot(writer, &slots[0]);
  add_before(writer, &slots[0]);
  add_before(writer, &slots[1]);
  close_loop(writer, &loop);
  writer->plan->inner = writer->acts - writer->plan->begin;
  writer->plan->again = number_of(program->inner, 0);
  return 1;
}

static void add_body(struct writer *writer, const struct slot *slots, int count) {
  const int first = add_inner(writer, slots);
  const struct loop loop = begin_loop(writer);
  add_slots(writer, slots + first, count - first, slots);
  close_loop(writer, &loop);
  writer->plan->body = writer->acts - writer->plan->begin;
}

/* Vectors that the caller receives, each as long as the rows or the columns. */
static const char *received_text(struct writer *writer) {
  static const struct cb_copied x[] = {{"x", NULL, "x"}, {NULL, NULL, NULL}};
  const struct cb_program *program = writer->base.program;
  struct cb_text text = {0};
  for (const struct cb_copied *at = program->copied ? program->copied : x; at->vector; at++)
    if (at->result)
      cb_text_add(&text,
                  "#pragma unroll 1\n"
                  "    for (int64_t row = first_row; row < %s; row += row_step) store_vector(given->%s + row, "
                  "load_vector(pointers.%s_ + row));\n",
                  cb_program_has_columns(program, at->vector) ? "columns" : "rows", at->vector, at->result);
  cb_writer_cut(&text);
  return cb_writer_keep(&writer->base, &text);
}

/* The outcome's numbers. */
static const char *told_text(struct writer *writer) {
  const struct cb_program *program = writer->base.program;
  const char *real = cb_writer_real(&writer->base);
  struct cb_text text = {0};
  if (!program->told)
    cb_text_add(&text, ", sqrt(double(square%s)), sqrt(double(final_%s)), ", real, real);
  if (!program->told && program->value) cb_text_add(&text, "double(%s_%s)", program->value, real);
  else if (!program->told) cb_text_add_string(&text, "0");
  for (const struct cb_told *at = program->told; at && at->member; at++) cb_text_add(&text, ", double(%s)", at->value);
  return cb_writer_keep(&writer->base, &text);
}

static void add_end(struct writer *writer) {
  const struct cb_program *program = writer->base.program;
  const struct slot slot = {{last_of(program)}, 1};
  struct cb_scope scope = {0};
  add_before(writer, &slot);
  add_slot(writer, &slot);
  cb_scope_placeholder(&scope, "id", cb_writer_number(&writer->base, end_of(program)));
  cb_scope_placeholder(&scope, "received", received_text(writer));
  cb_scope_placeholder(&scope, "told", told_text(writer));
  expand(writer, &writer->open, "end", &scope);
  close_stage(writer);
  writer->plan->end = writer->acts - writer->plan->begin - writer->plan->body;
}

/* ---- what is read behind a product */

static int reads_word(const struct cb_step *step, const char *name) {
  return (step->text && cb_has_word(step->text, name)) || (step->from && !strcmp(step->from, name));
}

/* Whether something reads the vector from a step of the section on, before a product makes it anew. `seen`: sections
 * that have been looked at. */
static int is_read_from(const struct cb_program *program, int section, int step, const char *name, int *seen) {
  const struct cb_section *own = &program->sections[section];
  int next[CB_MOST_STEPS + 2], count = 0;
  for (int k = step; k < CB_MOST_STEPS; k++) {
    if (reads_word(&own->steps[k], name)) return 1;
    if (own->steps[k].kind == CB_STEP_GO) next[count++] = own->steps[k].section;
  }
  if (section == last_of(program)) { /* what the caller receives */
    for (const struct cb_copied *at = program->copied; at && at->vector; at++)
      if (at->result && !strcmp(at->result, name)) return 1;
    return !program->copied && !strcmp(name, "x");
  }
  next[count++] = own->next;
  next[count++] = last_of(program); /* a stop leads there */
  for (int i = 0; i < count; i++) {
    const struct cb_section *to = &program->sections[next[i]];
    if (seen[next[i]]++) continue;
    if ((to->before && cb_has_word(to->before, name)) || (to->from && !strcmp(to->from, name))) return 1;
    if (to->to && !strcmp(to->to, name)) continue;
    if ((to->sums && cb_has_word(to->sums, name)) || is_read_from(program, next[i], 0, name, seen)) return 1;
  }
  return 0;
}

/* Whether nobody reads, once the body is left, what products of its sections, `first` and those behind it, write. */
static int may_repeat(const struct writer *writer, int first) {
  const struct cb_program *program = writer->base.program;
  const struct cb_section *last = &program->sections[last_of(program)];
  if (program->basis || program->inner || writer->plan->groups_count || cb_program_calls(program)) return 0;
  for (int i = first; i < last_of(program); i++) {
    const char *to = program->sections[i].to;
    int seen[CB_MOST_SECTIONS] = {0};
    if (!to || !last->to) continue;
    if (!strcmp(last->from, to) || (last->before && cb_has_word(last->before, to))) return 0;
    if (!strcmp(last->to, to)) continue; /* which is made anew */
    if ((last->sums && cb_has_word(last->sums, to)) || is_read_from(program, last_of(program), 0, to, seen)) return 0;
  }
  return 1;
}

/* ---- the whole */

static const char *parameters_text(struct writer *writer, const char *before, const char *behind) {
  struct cb_text text = {0};
  for (const char *const *at = writer->base.program->parameters; *at; at++)
    cb_text_add(&text, "%s%s_%s", before, *at, behind);
  cb_writer_cut(&text);
  return cb_writer_keep(&writer->base, &text);
}

static const char *scalars_text(struct writer *writer) {
  struct cb_text text = {0};
  for (int i = 0; i < writer->base.scalars_count; i++)
    cb_text_add(&text, "%s%s_", i ? ", " : "  sum_t ", writer->base.scalars[i]);
  cb_text_add_string(&text, ";");
  return cb_writer_keep(&writer->base, &text);
}

/* Texts of all vectors that are copied, each with its name and its place. */
static const char *copied_text(struct writer *writer, const char *(*of)(struct writer *, const struct cb_copied *)) {
  struct cb_text text = {0}; /* where memory lacks, the arena notes it */
  for (const struct cb_copied *at = writer->base.program->copied; at && at->vector; at++)
    cb_text_add(&text, "%s", of(writer, at));
  cb_writer_cut(&text);
  return cb_writer_keep(&writer->base, &text);
}

static const char *given_member(struct writer *writer, const struct cb_copied *copied) {
  return copied->result ? cb_arena_format(&writer->base.arena, "  vector_t *%s;  // receives the solution\n",
                                          copied->vector)
                        : "";
}

static const char *given_value(struct writer *writer, const struct cb_copied *copied) {
  return copied->result ? cb_arena_format(&writer->base.arena, "%s, ", copied->vector) : "";
}

static const char *begin_parameter(struct writer *writer, const struct cb_copied *copied) {
  return cb_arena_format(&writer->base.arena, "%svector_t *%s, ", copied->result ? "" : "const ", copied->vector);
}

static const char *begin_copy(struct writer *writer, const struct cb_copied *copied) {
  const char *name = copied->vector;
  const char *many = cb_program_has_columns(writer->base.program, name) ? "columns" : "rows";
  const char *entry = cb_arena_format(&writer->base.arena, "load_vector(%s + row)", name);
  if (copied->otherwise)
    entry = cb_arena_format(&writer->base.arena, "%s ? %s : vector_t(%s)", name, entry, copied->otherwise);
  return cb_arena_format(&writer->base.arena,
                         "  for (int64_t row = first_row; row < %s; row += row_step) store_vector(pointers.%s_ + row, %s);\n",
                         many, name, entry);
}

static const char *outcome_members(struct writer *writer) {
  struct cb_text text = {0};
  if (!writer->base.program->told) cb_text_add_string(&text, "residual, true_residual, value");
  for (const struct cb_told *at = writer->base.program->told; at && at->member; at++)
    cb_text_add(&text, "%s%s", at == writer->base.program->told ? "" : ", ", at->member);
  return cb_writer_keep(&writer->base, &text);
}

static void add_structs(struct writer *writer, struct cb_text *text) {
  struct cb_scope scope = {0};
  const int copies = writer->base.program->copied != NULL;
  cb_scope_placeholder(&scope, "outcome", outcome_members(writer));
  cb_scope_placeholder(&scope, "given", copies ? copied_text(writer, given_member)
                                               : "  const vector_t *b;\n  vector_t *x;  // receives the solution");
  cb_scope_placeholder(&scope, "parameters", parameters_text(writer, "  sum_t ", ";\n"));
  cb_scope_placeholder(&scope, "scalars", scalars_text(writer));
  cb_scope_placeholder(&scope, "vectors", cb_writer_vectors(&writer->base));
  if (writer->base.program->basis) cb_scope_section(&scope, "basis");
  expand(writer, text, "structs", &scope);
}

static void add_head(struct writer *writer, struct cb_text *text) {
  struct cb_scope scope = {0};
  cb_scope_placeholder(&scope, "vector_type", cb_type_entry_name(writer->base.vector));
  cb_scope_placeholder(&scope, "sum_type", cb_type_entry_name(writer->base.sum));
  cb_scope_placeholder(&scope, "threads", cb_writer_number(&writer->base, CB_STAGE_THREADS));
  if (has_blocks(writer->base.program)) {
    cb_scope_section(&scope, "blocks");
    cb_scope_placeholder(&scope, "block", cb_writer_number(&writer->base, writer->sizes.block_size));
  }
  expand(writer, text, "head", &scope);
  add_structs(writer, text);
}

static void add_rest(struct writer *writer, struct cb_text *text) {
  struct cb_scope functions = {0}, begin = {0};
  const int parts = cb_type_parts(writer->base.sum) * writer->most_sums;
  cb_scope_placeholder(&functions, "most_sums", cb_writer_number(&writer->base, parts));
  expand(writer, text, "functions", &functions);
  if (writer->base.program->basis) {
    struct cb_scope basis = {0};
    cb_scope_placeholder(&basis, "most", cb_writer_number(&writer->base, CB_MOST_RESTART));
    expand(writer, text, "basis", &basis);
  }
  const int copies = writer->base.program->copied != NULL;
  cb_scope_placeholder(&begin, "callers", copies ? copied_text(writer, begin_parameter) : "const vector_t *b, vector_t *x, ");
  cb_scope_placeholder(&begin, "kept", copies ? copied_text(writer, given_value) : "b, x, ");
  cb_scope_placeholder(&begin, "copies",
                       copies ? copied_text(writer, begin_copy)
                              : "  for (int64_t row = first_row; row < rows; row += row_step) "
                                "store_vector(pointers.x_ + row, load_vector(x + row));");
  if (writer->base.program->columns) cb_scope_section(&begin, "columns");
  cb_scope_placeholder(&begin, "numbers", parameters_text(writer, "sum_t ", ", "));
  cb_scope_placeholder(&begin, "values", parameters_text(writer, "", ", "));
  cb_scope_placeholder(&begin, "first", cb_writer_number(&writer->base, entry_of(writer->base.program, 0)));
  expand(writer, text, "begin", &begin);
  cb_text_add_string(text, cb_text_string(&writer->stages));
  text->failed |= writer->stages.failed | writer->open.failed;
}

/* A pass over the basis makes FEW of its sums, and one more. */
static void begin_basis(struct writer *writer) {
  enum { FEW = 7, TRIANGLE = CB_MOST_RESTART * (CB_MOST_RESTART + 1) / 2 };
  writer->basis_board = writer->plan->sums;
  writer->basis_sums = (FEW + 1) * (int)cb_divide_up(CB_MOST_RESTART, FEW);
  writer->plan->sums += writer->basis_sums + 1;
  writer->most_sums = FEW + 1;
  writer->plan->basis = writer->sizes.restart + 1;
  writer->plan->small = TRIANGLE + 4 * CB_MOST_RESTART; /* coefficients, sines, cosines and the right side */
}

/* Sections first, so that all scalars are known. */
static void write(struct writer *writer, struct cb_text *text, int first) {
  const struct cb_program *program = writer->base.program;
  const int64_t most = cb_type_parts(writer->base.sum) * 8; /* bytes of a number */
  struct slot slots[CB_MOST_SECTIONS];
  const int count = make_slots(slots, program, first);
  if (program->basis) begin_basis(writer);
  for (int i = 0; i < program->sections_count && !writer->base.status; i++) make_section(writer, i);
  if (writer->base.status) return;
  for (const char *const *at = program->scalars; *at; at++) cb_writer_add_scalar(&writer->base, *at);
  writer->plan->states = 1;
  add_begin(writer, first, &slots[0]);
  add_body(writer, slots, count);
  add_end(writer);
  writer->plan->done = entry_of(program, last_of(program));
  writer->plan->may_repeat = may_repeat(writer, first);
  writer->plan->state_bytes = cb_round_up(16 + most * (int64_t)(writer->base.scalars_count + 1), 16);
  writer->plan->given_bytes = cb_round_up(4 * 8 + most * (int64_t)(CB_MOST_PARAMETERS + 1), 16);
  add_rest(writer, text);
}

static void release(struct writer *writer) {
  for (int i = 0; i < CB_MOST_SECTIONS; i++)
    for (int k = 0; k < MOST_PIECES; k++) {
      cb_text_release(&writer->sections[i].list[k].text);
      cb_text_release(&writer->before[i].list[k].text);
    }
  cb_text_release(&writer->stages);
  cb_text_release(&writer->open);
  cb_arena_release(&writer->base.arena);
}

/* Statements' functions and what comes behind need types, which stand above. */
static enum cb_status join(struct writer *writer, const struct cb_text *rest, struct cb_text *text) {
  struct cb_text whole = {0}, functions = {0};
  struct cb_diag *diag = writer->base.diag;
  add_head(writer, &whole);
  enum cb_status s = writer->base.status;
  if (!s) s = cb_emit_statement_functions(&functions, cb_text_string(rest), writer->base.sum, diag);
  cb_text_add_string(&whole, cb_text_string(&functions));
  cb_text_add_string(&whole, cb_text_string(rest));
  whole.failed |= functions.failed | rest->failed | writer->base.arena.failed;
  if (!s) s = cb_source_with_prelude(text, &whole, diag);
  cb_text_release(&whole);
  cb_text_release(&functions);
  return s;
}

static void begin_writer(struct writer *writer, const struct cb_program *program, enum cb_type vector, enum cb_type sum,
                         const struct cb_program_sizes *sizes, struct cb_stages_plan *plan, struct cb_diag *diag) {
  *writer = (struct writer){.base = {.program = program, .vector = vector, .sum = sum, .diag = diag},
                            .plan = plan,
                            .sizes = *sizes,
                            .fused = -1};
}

enum cb_status cb_stages_text(struct cb_text *text, struct cb_stages_plan *plan, const struct cb_program *program,
                              enum cb_type vector, enum cb_type sum, const struct cb_program_sizes *sizes,
                              struct cb_diag *diag) {
  struct writer *writer = cb_calloc(1, sizeof *writer);
  struct cb_text rest = {0};
  const int first = first_of_body(program);
  *plan = (struct cb_stages_plan){0};
  if (!writer) return cb_fail_memory(diag, "stages", sizeof *writer);
  begin_writer(writer, program, vector, sum, sizes, plan, diag);
  enum cb_status s = CB_OK;
  if (first < 0)
    s = cb_fail(diag, CB_ERR_UNSUPPORTED, "method '%s' has no program form 'graph'", program->name);
  else if (program->basis && (sizes->restart < 1 || sizes->restart > CB_MOST_RESTART))
    s = cb_fail(diag, CB_ERR_ARGUMENT, "'restart' is %d; it is 1 to %d", sizes->restart, CB_MOST_RESTART);
  else if (has_blocks(program) && (sizes->block_size < 2 || sizes->block_size > CB_MOST_BLOCK))
    s = cb_fail(diag, CB_ERR_ARGUMENT, "'block_size' is %d; it is 2 to %d", sizes->block_size, CB_MOST_BLOCK);
  if (!s) {
    write(writer, &rest, first);
    s = writer->base.status;
  }
  if (!s) s = join(writer, &rest, text);
  cb_text_release(&rest);
  release(writer);
  cb_free(writer);
  return s;
}

/* ---- a fusion */

static void add_fusion_scalars(struct writer *writer, struct cb_fusion_text *fusion,
                               const struct cb_statements *statements) {
  const char *const *parameters = writer->base.program->parameters;
  for (int i = 0; i < statements->names_count; i++) {
    const char *name = statements->names[i].name;
    if (statements->names[i].kind != CB_NAME_SCALAR || has_variable(cb_text_string(&fusion->members), name)) continue;
    cb_text_add(&fusion->members, "  sum_t %s_;\n", name);
    const char *place = cb_writer_has(parameters, name) ? "given" : "from";
    cb_text_add(&fusion->values, ", %s->%s_", place, name);
    cb_text_add(&fusion->begins, "  step.%s_ = step.%s->%s_;\n", name, place, name);
  }
}

static void add_word(struct cb_text *words, const char *word) {
  if (!cb_has_word(cb_text_string(words), word)) cb_text_add(words, "%s ", word);
}

static void add_fusion_vectors(struct cb_fusion_text *fusion, const struct cb_statements *statements) {
  for (int i = 0; i < statements->names_count; i++) {
    const struct cb_name *name = &statements->names[i];
    if (!cb_name_is_vector(name) || !strcmp(name->name, fusion->to)) continue;
    add_word(&fusion->vectors, name->name);
    if (name->read && name->kind != CB_NAME_OUT) add_word(&fusion->needed, name->name);
    if (name->assigned && name->kind != CB_NAME_IN) add_word(&fusion->made, name->name);
  }
}

static void add_fusion_rows(struct writer *writer, struct cb_fusion_text *fusion, const struct cb_step *step,
                            const char *slot) {
  const struct cb_statement_types types = {writer->base.vector, writer->base.sum};
  struct cb_row_text row = cb_writer_row(&types);
  struct cb_statements *statements = cb_writer_parse(&writer->base, step->text);
  if (!statements) return;
  row.indent = "    ";
  row.scalars = "step.";
  row.at_hand = fusion->to;
  if (slot) {
    add_fusion_vectors(fusion, statements);
    row.kept = cb_text_string(&fusion->vectors);
    row.slot = slot;
  }
  const int product = cb_statements_find(statements, fusion->to);
  if (product >= 0 && statements->names[product].read) fusion->reads_product = 1;
  cb_text_add_string(&fusion->statements, "  {\n");
  cb_emit_row(&fusion->statements, statements, &row);
  cb_text_add_string(&fusion->statements, "  }\n");
  add_fusion_scalars(writer, fusion, statements);
  cb_free(statements);
}

/* The statements of rows, then what one thread does. */
static void write_fusion(struct writer *writer, struct cb_fusion_text *fusion, int section, const char *slot) {
  const struct cb_program *program = writer->base.program;
  const struct cb_section *own = &program->sections[section];
  const int rows = committed_steps(writer, own);
  int seen[CB_MOST_SECTIONS] = {0};
  struct pieces tail = {0};
  fusion->from = own->from;
  fusion->to = own->to;
  fusion->entry = number_of(section, 0);
  fusion->next = writer->sections[section].list[0].next;
  fusion->stores_product = is_read_from(program, section, rows, own->to, seen);
  add_structs(writer, &fusion->structs);
  for (int k = 0; k < rows; k++) add_fusion_rows(writer, fusion, &own->steps[k], slot);
  begin_piece(writer, &tail, &(struct piece){.begins = FOLLOWS});
  for (int k = rows; k < CB_MOST_STEPS && own->steps[k].kind; k++) add_step(writer, &tail, section, &own->steps[k]);
  cb_text_add_string(&fusion->tail, cb_text_string(current(&tail)));
  cb_text_add_string(&fusion->loads, loads_text(writer, cb_text_string(&fusion->tail)));
  for (int i = 0; i < writer->base.scalars_count; i++)
    if (has_variable(cb_text_string(&fusion->tail), writer->base.scalars[i]))
      cb_text_add(&fusion->stores, "    to->%s_ = %s_;\n", writer->base.scalars[i], writer->base.scalars[i]);
  fusion->tail.failed |= tail.list[0].text.failed;
  cb_text_release(&tail.list[0].text);
}

enum cb_status cb_stages_fusion(struct cb_fusion_text *fusion, const struct cb_program *program, enum cb_type vector,
                                enum cb_type sum, int number, const char *slot, struct cb_diag *diag) {
  const struct cb_program_sizes sizes = {1, 2}; /* no fusion depends on them */
  struct writer *writer = cb_calloc(1, sizeof *writer);
  struct cb_stages_plan plan = {0};
  struct cb_text rest = {0};
  *fusion = (struct cb_fusion_text){0};
  if (!writer) return cb_fail_memory(diag, "stages", sizeof *writer);
  begin_writer(writer, program, vector, sum, &sizes, &plan, diag);
  write(writer, &rest, first_of_body(program));
  if (!writer->base.status && number < plan.fusions_count) 
    write_fusion(writer, fusion, plan.fusions[number].section, slot);
  enum cb_status s = writer->base.status;
  const int failed = rest.failed | writer->base.arena.failed | fusion->structs.failed | fusion->members.failed |
                     fusion->values.failed | fusion->begins.failed |
                     fusion->statements.failed | fusion->loads.failed | fusion->tail.failed |
                     fusion->stores.failed | fusion->vectors.failed | fusion->needed.failed | fusion->made.failed;
  if (!s && failed) s = cb_fail_memory(diag, "stages' text", 0);
  cb_text_release(&rest);
  release(writer);
  cb_free(writer);
  return s;
}

void cb_fusion_text_release(struct cb_fusion_text *fusion) {
  cb_text_release(&fusion->structs);
  cb_text_release(&fusion->members);
  cb_text_release(&fusion->values);
  cb_text_release(&fusion->begins);
  cb_text_release(&fusion->statements);
  cb_text_release(&fusion->loads);
  cb_text_release(&fusion->tail);
  cb_text_release(&fusion->stores);
  cb_text_release(&fusion->vectors);
  cb_text_release(&fusion->needed);
  cb_text_release(&fusion->made);
}
