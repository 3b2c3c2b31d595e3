// SPDX-License-Identifier: Apache-2.0
/* What of a program lies in shared memory: see resident.h. */
#include "codegen/program/resident.h"

#include "analysis/statements/statements.h"
#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

enum {
  ALIGN = 16,
  OTHERS = 8 << 10, /* bytes that the kernel has beside: sums of warps and thread blocks */
  MOST_ROWS = 1 << 16
};

static int is_among(const char *const *names, const char *name) {
  for (; *names; names++)
    if (!strcmp(*names, name)) return 1;
  return 0;
}

/* -1: it is none of them. */
static int find(const struct cb_resident *resident, const char *name) {
  int i = resident->count - 1;
  while (i >= 0 && strcmp(resident->vectors[i].name, name) != 0) i--;
  return i;
}

int cb_resident_is_whole(const struct cb_resident *resident, const char *vector) {
  const int i = find(resident, vector);
  return i >= 0 && resident->vectors[i].is_whole;
}

static void mark_whole(struct cb_resident *resident, const char *name) {
  const int i = find(resident, name);
  if (i >= 0) resident->vectors[i].is_whole = 1;
}

/* What a vector that is made in the product is made of. */
static enum cb_status mark_parts(struct cb_resident *resident, const struct cb_program *program,
                                 const struct cb_section *section, struct cb_diag *diag) {
  struct cb_statements *statements = NULL;
  const enum cb_status s = cb_statements_parse(&statements, section->before, program->name, 0, diag);
  for (int i = 0; !s && i < statements->names_count; i++)
    if (statements->names[i].kind == CB_NAME_IN) mark_whole(resident, statements->names[i].name);
  mark_whole(resident, section->old);
  cb_free(statements);
  return s;
}

/* What changes places with a whole vector is whole. */
static void mark_swaps(struct cb_resident *resident, const struct cb_section *section) {
  for (int k = 0; k < CB_MOST_STEPS && section->steps[k].kind; k++)
    if (section->steps[k].kind == CB_STEP_SWAP) {
      mark_whole(resident, section->steps[k].from);
      mark_whole(resident, section->steps[k].to);
    }
}

static enum cb_status fail_section(const struct cb_program *program, struct cb_diag *diag) {
  return cb_fail(diag, CB_ERR_UNSUPPORTED, "method '%s' has no program form with '+resident'", program->name);
}

static int has_other_steps(const struct cb_section *section) {
  for (int k = 0; k < CB_MOST_STEPS && section->steps[k].kind; k++) {
    const struct cb_step *step = &section->steps[k];
    if (step->kind == CB_STEP_TEMPLATE || (step->kind == CB_STEP_GO && !step->section)) return 1;
  }
  return 0;
}

/* The sections between the first and the last multiply vectors of the program's own alone. */
static enum cb_status mark_sections(struct cb_resident *resident, const struct cb_program *program, int in_product,
                                    struct cb_diag *diag) {
  const int last = program->sections_count - 1;
  if (program->basis || last < 1) return fail_section(program, diag);
  for (int i = 0; i <= last; i++) {
    const struct cb_section *section = &program->sections[i];
    const int is_inner = i > 0 && i < last;
    if (!section->from || has_other_steps(section) || (!is_inner && strcmp(section->from, CB_RESIDENT_X) != 0) ||
        (is_inner && !is_among(program->work, section->from)) || (i < last && section->next < 1))
      return fail_section(program, diag);
    if (is_inner) mark_whole(resident, section->from);
    mark_swaps(resident, section);
    const int makes = is_inner && section->old && in_product;
    const enum cb_status s = makes ? mark_parts(resident, program, section, diag) : CB_OK;
    if (s) return s;
  }
  for (int i = 0; i <= last; i++)
    if (cb_resident_is_whole(resident, program->sections[i].to)) return fail_section(program, diag);
  return CB_OK;
}

static int64_t take(struct cb_resident *resident, int64_t bytes) {
  const int64_t at = resident->bytes;
  resident->bytes += cb_round_up(bytes, ALIGN);
  return at;
}

static void place_whole(struct cb_resident *resident, int64_t bytes) {
  for (int i = 0; i < resident->count; i++)
    if (resident->vectors[i].is_whole) resident->vectors[i].at = take(resident, bytes);
}

/* What is left is shared by the others; at the end, where it may be left out. */
static void place_own(struct cb_resident *resident, int64_t rows, int64_t room, int64_t size) {
  int own = 0;
  for (int i = 0; i < resident->count; i++) own += !resident->vectors[i].is_whole;
  const int64_t most = own && room > resident->bytes ? (room - resident->bytes) / own / ALIGN * ALIGN / size : 0;
  resident->room = rows < most ? rows : most;
  for (int i = 0; i < resident->count; i++)
    if (!resident->vectors[i].is_whole) resident->vectors[i].at = take(resident, resident->room * size);
}

enum cb_status cb_resident_plan(struct cb_resident *resident, const struct cb_program_request *request, int64_t rows,
                                int in_product, struct cb_diag *diag) {
  const struct cb_program *program = request->program;
  const int64_t size = (int64_t)cb_type_size(request->vector), room = request->form.room - OTHERS;
  const int is_cluster = request->form.kind == CB_PROGRAM_CLUSTER;
  *resident = (struct cb_resident){0};
  for (const char *const *at = program->work; *at; at++) resident->vectors[resident->count++].name = *at;
  if (request->form.kind != CB_PROGRAM_BATCH) resident->vectors[resident->count++].name = CB_RESIDENT_X;
  const enum cb_status s = mark_sections(resident, program, in_product, diag);
  if (s) return s;
  for (int i = 0; i < resident->count && !is_cluster; i++) resident->vectors[i].is_whole = 1;
  place_whole(resident, request->rows * size);
  if (is_cluster) {
    resident->reads = take(resident, request->rows);
    resident->commits = take(resident, request->rows);
    resident->readers = take(resident, 2 * request->rows);
    resident->own_rows = take(resident, 2 * request->rows);
  }
  if (resident->bytes > room || request->rows > MOST_ROWS)
    return cb_fail(diag, CB_ERR_LIMIT,
                   "the vectors of method '%s' take %lld bytes of shared memory, and a thread block has %lld: choose a "
                   "program form without '+resident'", program->name, (long long)resident->bytes,
                   (long long)cb_larger(room, (int64_t)0));
  if (is_cluster) place_own(resident, rows, room, size);
  return CB_OK;
}
