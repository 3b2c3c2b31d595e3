// SPDX-License-Identifier: Apache-2.0
/* See commits.h. */
#include "codegen/program/commits.h"

#include "base/memory.h"

#include <string.h>

static int is_row_step(const struct cb_program *program, const struct cb_section *section, const struct cb_step *step) {
  return step->kind == (program->columns && section->transposed ? CB_STEP_COLUMNS : CB_STEP_ROWS);
}

static int writes(const struct cb_statements *statements, const char *vector) {
  int written = 0;
  for (int i = 0; i < statements->names_count; i++)
    written |= cb_name_is_written(&statements->names[i]) && !strcmp(statements->names[i].name, vector);
  return written;
}

/* A step that the product's commit can execute: of its own rows, without sums, which leaves alone what the product
 * reads. */
static int commits_step(struct cb_writer *writer, const struct cb_section *section, const struct cb_step *step) {
  struct cb_statements *statements =
      is_row_step(writer->program, section, step) ? cb_writer_parse(writer, step->text) : NULL;
  const int good = statements && !cb_writer_sums(statements) && !writes(statements, section->from);
  cb_free(statements);
  return good;
}

int cb_committed_steps(struct cb_writer *writer, const struct cb_section *section) {
  int count = 0;
  while (count < CB_MOST_STEPS && commits_step(writer, section, &section->steps[count])) count++;
  return count;
}

int cb_section_ends_in_scalars(const struct cb_section *section, int first) {
  for (int k = first; k < CB_MOST_STEPS; k++)
    switch (section->steps[k].kind) {
    case CB_STEP_ROWS:
    case CB_STEP_COLUMNS:
    case CB_STEP_TEMPLATE:
    case CB_STEP_CALL:
    case CB_STEP_SWAP: return 0;
    default: break;
    }
  return 1;
}

int cb_committed_sums(struct cb_writer *writer, const struct cb_section *section) {
  struct cb_statements *statements = section->sums ? cb_writer_parse(writer, section->sums) : NULL;
  const int sums = statements && !writes(statements, section->from) ? cb_writer_sums(statements) : 0;
  cb_free(statements);
  return sums;
}

int cb_section_is_fusable(struct cb_writer *writer, const struct cb_section *section) {
  if (!section->from || section->heads || cb_type_is_complex(writer->sum)) return 0;
  if (section->sums) return !writer->program->columns && cb_committed_sums(writer, section) > 0;
  const int first = cb_committed_steps(writer, section);
  return first > 0 && cb_section_ends_in_scalars(section, first);
}
