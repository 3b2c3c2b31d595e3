// SPDX-License-Identifier: Apache-2.0
/* What of a grid's vectors lies in shared memory: see kept.h. */
#include "codegen/program/kept.h"

#include "analysis/statements/statements.h"
#include "base/integers.h"
#include "base/memory.h"
#include "codegen/program/resident.h"

#include <string.h>

/* What is known of a vector while sections are looked at. */
struct candidate {
  const char *name;
  int is_read_by_others;
  int is_committed; /* by the thread that has the row in a product */
  int passes;       /* over it, in the sections that are repeated */
};

struct search {
  const struct cb_kept_request *request;
  struct candidate candidates[CB_MOST_WORK + 1];
  int count;
  struct cb_diag *diag;
  enum cb_status status;
};

static struct candidate *find(struct search *search, const char *name) {
  for (int i = 0; name && i < search->count; i++)
    if (!strcmp(search->candidates[i].name, name)) return &search->candidates[i];
  return NULL;
}

static void note_reader(struct search *search, const char *name) {
  struct candidate *candidate = find(search, name);
  if (candidate) candidate->is_read_by_others = 1;
}

static void note_pass(struct search *search, const char *name, int in_commit, int passes) {
  struct candidate *candidate = find(search, name);
  if (!candidate) return;
  candidate->is_committed |= in_commit;
  candidate->passes += passes;
}

/* Statements of rows: in a product's commit, or in a step. `at_hand`: what need not be loaded; NULL: nothing. */
static void note_rows(struct search *search, const char *text, const char *at_hand, int in_commit, int repeats) {
  struct cb_statements *statements = NULL;
  if (!text || search->status) return;
  search->status = cb_statements_parse(&statements, text, search->request->program->name, 0, search->diag);
  for (int i = 0; !search->status && i < statements->names_count; i++) {
    const struct cb_name *name = &statements->names[i];
    const int is_loaded = name->read && name->kind != CB_NAME_OUT;
    const int is_stored = name->assigned && name->kind != CB_NAME_IN;
    if (cb_name_is_vector(name) && (!at_hand || strcmp(at_hand, name->name) != 0))
      note_pass(search, name->name, in_commit, repeats ? is_loaded + is_stored : 0);
  }
  cb_free(statements);
}

static void note_section(struct search *search, int number) {
  const struct cb_program *program = search->request->program;
  const struct cb_section *section = &program->sections[number];
  const int last = program->sections_count - 1, repeats = number > 0 && number < last;
  const char *addend = search->request->addends[number];
  /* x is where the caller has it while the first and the last product read it. */
  if (repeats || !section->from || strcmp(section->from, CB_RESIDENT_X) != 0) note_reader(search, section->from);
  if (addend) {
    note_reader(search, addend);
    note_reader(search, section->old);
  }
  if (section->to) note_pass(search, section->to, 1, repeats && !search->request->unread[number]);
  note_rows(search, section->before, NULL, addend != NULL, repeats);
  note_rows(search, section->sums, search->request->fused ? section->to : NULL, search->request->fused, repeats);
  for (int k = 0; k < CB_MOST_STEPS && section->steps[k].kind; k++) {
    const struct cb_step *step = &section->steps[k];
    if (step->kind == CB_STEP_ROWS) note_rows(search, step->text, NULL, 0, repeats);
    if (step->kind == CB_STEP_SWAP) {
      note_reader(search, step->from);
      note_reader(search, step->to);
    }
  }
}

/* Templates go their own ways to the program's vectors. */
static int has_templates(const struct cb_program *program) {
  for (int i = 0; i < program->sections_count; i++)
    for (int k = 0; k < CB_MOST_STEPS && program->sections[i].steps[k].kind; k++)
      if (program->sections[i].steps[k].kind == CB_STEP_TEMPLATE) return 1;
  return 0;
}

/* The last section multiplies x, which is the caller's again from there on. */
static int ends_with_x(const struct cb_program *program) {
  const struct cb_section *last = &program->sections[program->sections_count - 1];
  return last->from && !strcmp(last->from, CB_RESIDENT_X);
}

static void begin(struct search *search) {
  const struct cb_program *program = search->request->program;
  for (const char *const *at = program->work; *at; at++) search->candidates[search->count++].name = *at;
  if (ends_with_x(program)) search->candidates[search->count++].name = CB_RESIDENT_X;
}

/* In descending order of passes; names keep the order of the program's. */
static void sort(struct search *search) {
  for (int i = 1; i < search->count; i++) {
    const struct candidate moved = search->candidates[i];
    int to = i;
    for (; to > 0 && search->candidates[to - 1].passes < moved.passes; to--)
      search->candidates[to] = search->candidates[to - 1];
    search->candidates[to] = moved;
  }
}

static void place(struct cb_kept *kept, struct search *search) {
  const struct cb_kept_request *request = search->request;
  for (int i = 0; i < search->count; i++) {
    const struct candidate *candidate = &search->candidates[i];
    const int64_t slots = cb_smaller(request->rows, request->slots - kept->slots);
    const int is_elsewhere = candidate->is_read_by_others || (candidate->is_committed && !request->aligned);
    if (is_elsewhere || !candidate->passes || slots < 1) continue;
    kept->vectors[kept->count++] = (struct cb_kept_vector){candidate->name, kept->slots, slots, slots == request->rows};
    kept->slots += slots;
  }
}

enum cb_status cb_kept_plan(struct cb_kept *kept, const struct cb_kept_request *request, struct cb_diag *diag) {
  const struct cb_program *program = request->program;
  struct search search = {.request = request, .diag = diag};
  *kept = (struct cb_kept){0};
  if (request->slots < 1)
    return cb_fail(diag, CB_ERR_LIMIT,
                   "a thread block has no room in shared memory for an entry of each thread: choose a program form "
                   "without '+resident'");
  if (!has_templates(program) && !program->basis) {
    begin(&search);
    for (int i = 0; i < program->sections_count; i++) note_section(&search, i);
    if (search.status) return search.status;
    sort(&search);
    place(kept, &search);
  }
  if (kept->count) return CB_OK;
  return cb_fail(diag, CB_ERR_UNSUPPORTED,
                 "method '%s' has no vector that only the thread of a row reads: choose a program form without "
                 "'+resident'", program->name);
}

int64_t cb_kept_room(int64_t shared, int64_t thread_blocks) {
  enum { CACHE = 32 << 10, OTHERS = 8 << 10, RESERVED = 1 << 10 }; /* bytes: left for L1; of each thread block, the
                                                                     * kernel's own and the driver's */
  return (shared - CACHE + RESERVED) / thread_blocks - RESERVED - OTHERS;
}

const struct cb_kept_vector *cb_kept_find(const struct cb_kept *kept, const char *name) {
  for (int i = 0; i < kept->count; i++)
    if (!strcmp(kept->vectors[i].name, name)) return &kept->vectors[i];
  return NULL;
}
