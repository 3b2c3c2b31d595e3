// SPDX-License-Identifier: Apache-2.0
/* See reads.h. */
#include "codegen/program/reads.h"

#include "base/memory.h"

#include <string.h>

int cb_products_vary(const struct cb_program *program) {
  for (int i = 1; i < program->sections_count; i++)
    if (!program->sections[0].to || !program->sections[i].to ||
        strcmp(program->sections[0].to, program->sections[i].to) != 0)
      return 1;
  return 0;
}

/* Whether statements of rows have the vector. */
static int have_vector(struct cb_writer *writer, const char *text, const char *vector) {
  struct cb_statements *statements = text ? cb_writer_parse(writer, text) : NULL;
  int has = 0;
  for (int i = 0; statements && i < statements->names_count; i++) has |= !strcmp(statements->names[i].name, vector);
  cb_free(statements);
  return has;
}

static int swaps(const struct cb_step *step, const char *vector) {
  return step->kind == CB_STEP_SWAP && (!strcmp(step->from, vector) || !strcmp(step->to, vector));
}

int cb_product_is_unread(struct cb_writer *writer, const struct cb_section *section) {
  const struct cb_program *program = writer->program;
  if (cb_products_vary(program) || !section->sums) return 0;
  for (int i = 0; i < program->sections_count; i++) {
    const struct cb_section *other = &program->sections[i];
    if (!other->from || !strcmp(other->from, section->to) || have_vector(writer, other->before, section->to)) return 0;
    for (int k = 0; k < CB_MOST_STEPS && other->steps[k].kind; k++)
      if (other->steps[k].kind == CB_STEP_TEMPLATE || swaps(&other->steps[k], section->to)) return 0;
  }
  for (int k = 0; k < CB_MOST_STEPS && section->steps[k].kind; k++)
    if (section->steps[k].kind == CB_STEP_ROWS && have_vector(writer, section->steps[k].text, section->to)) return 0;
  return 1;
}

int cb_product_is_remade(const struct cb_section *section, const struct cb_statements *sums) {
  for (int i = 0; sums && i < sums->names_count; i++)
    if (sums->names[i].kind == CB_NAME_INOUT && !strcmp(sums->names[i].name, section->to)) return 1;
  return 0;
}

int cb_section_reads_others(struct cb_writer *writer, const struct cb_section *section) {
  const struct cb_section *last = &writer->program->sections[writer->program->sections_count - 1];
  if (section != last && !last->before && (!strcmp(section->to, last->from) || section->before)) return 1;
  for (int k = 0; k < CB_MOST_STEPS && section->steps[k].kind; k++) {
    if (section->steps[k].kind == CB_STEP_GO) return 1;
    if (section->steps[k].kind == CB_STEP_TEMPLATE) return 0;
    if (section->steps[k].kind != CB_STEP_ROWS) continue;
    struct cb_statements *statements = cb_writer_parse(writer, section->steps[k].text);
    const int sums = cb_writer_sums(statements);
    cb_free(statements);
    if (sums) return 0;
  }
  return 1;
}
