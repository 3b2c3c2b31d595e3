// SPDX-License-Identifier: Apache-2.0
/* Which form a program gets: see form.h. */
#include "codegen/program/form.h"

#include "base/integers.h"
#include "codegen/program/kept.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const cb_program_form_names[] = {"grid", "cluster", "block", "graph", NULL};

/* Costs on one H200 (sm_90, CUDA 13), in nanoseconds and bytes per nanosecond; `meeting`: of an exchange of sums and
 * all that goes with it; `latency`: of an iteration's chains of loads and arithmetic, which no number of threads
 * shortens; `rate`: what a multiprocessor takes in from where the form's data lie, L1 or L2. */
struct cost {
  int64_t meeting, latency, rate;
};
static const struct cost costs[CB_PROGRAM_FORMS] = {
    [CB_PROGRAM_GRID] = {900, 3500, 60},
    [CB_PROGRAM_CLUSTER] = {700, 1600, 18},
    [CB_PROGRAM_BLOCK] = {250, 700, 25},
    [CB_PROGRAM_GRAPH] = {2000, 9000, 33}}; /* five nodes and the conditional one: 12 to 13 us of small systems */

/* A cluster whose vectors lie in shared memory: fitted to FE 4^3, 7^3 and 10^3 with 16 thread blocks (2.8, 3.7, 6.7 us
 * of an iteration); 7-point 12^3 and 16^3 take 2.1 and 2.4, which is less than this says. */
static const struct cost resident_cost = {500, 1200, 29};

enum {
  KEPT = 3,        /* vectors of CG that may have slots, if directions are made in steps: x, r and q */
  MEETINGS = 2,    /* in an iteration of CG; other methods have more in all forms */
  PASSES = 10,     /* over vectors, likewise */
  FULL = 1024,     /* threads of a thread block that has a multiprocessor for itself */
  LEAST_CLUSTER = 2,
  LARGE = 64 << 20, /* bytes of a matrix beside which a meeting's time counts for nothing */
  SHORT = 50        /* a vector's bytes in the matrix's: FE with 3 unknowns 86, 27-point 27, 7-point 7 */
};

static const struct {
  const char *word;
  size_t member; /* of a struct cb_program_form, an int */
} words[] = {{"+steps", offsetof(struct cb_program_form, in_steps)},
             {"+resident", offsetof(struct cb_program_form, resident)},
             {"+pipelined", offsetof(struct cb_program_form, pipelined)},
             {"+matrix", offsetof(struct cb_program_form, near)}};
enum { WORDS = sizeof words / sizeof *words };

static int *member_of(struct cb_program_form *form, int word) { return (int *)((char *)form + words[word].member); }

/* "+steps" and so on, each once at most. */
static int take_words(const char *at, struct cb_program_form *form) {
  for (; *at; at++, at += strcspn(at, "+")) {
    const size_t length = 1 + strcspn(at + 1, "+");
    int i = 0;
    while (i < WORDS && (strlen(words[i].word) != length || strncmp(at, words[i].word, length) != 0)) i++;
    if (i == WORDS || *member_of(form, i)) return 0;
    *member_of(form, i) = 1;
  }
  return 1;
}

int cb_program_form_find(struct cb_program_form *form, const char *name) {
  const size_t length = strcspn(name, "+");
  *form = (struct cb_program_form){0};
  if (!take_words(&name[length], form)) return 0;
  for (int i = 0; i < CB_PROGRAM_FORMS; i++) {
    form->kind = (enum cb_form_kind)i;
    if (strlen(cb_program_form_names[i]) == length && !strncmp(name, cb_program_form_names[i], length))
      return i == CB_PROGRAM_GRID || (!form->near && (i != CB_PROGRAM_GRAPH || (!form->resident && !form->pipelined)));
  }
  return 0;
}

void cb_program_form_print(char name[CB_PROGRAM_FORM_NAME], const struct cb_program_form *form) {
  struct cb_program_form copy = *form;
  int length = snprintf(name, CB_PROGRAM_FORM_NAME, "%s", cb_program_form_names[form->kind]);
  for (int i = 0; i < WORDS; i++)
    if (*member_of(&copy, i))
      length += snprintf(name + length, (size_t)(CB_PROGRAM_FORM_NAME - length), "%s", words[i].word);
}

static int64_t virtual_blocks(const struct cb_program_size *size) { return size->blocks > 1 ? size->blocks : 1; }

/* Multiprocessors that a form keeps busy. */
static int most_blocks(enum cb_form_kind kind, const struct cb_program_size *size) {
  if (kind == CB_PROGRAM_BLOCK) return 1;
  const int room = kind == CB_PROGRAM_CLUSTER ? CB_PROGRAM_CLUSTER_BLOCKS : size->target->multiprocessors;
  return (int)cb_smaller(room, virtual_blocks(size));
}

int cb_program_form_exists(enum cb_form_kind kind, const struct cb_target *target) {
  const int capability = (int)strtol(target->arch + strcspn(target->arch, "0123456789"), NULL, 10);
  return kind != CB_PROGRAM_CLUSTER || capability >= 90;
}

static int64_t ns_of(const struct cost *cost, int blocks, const struct cb_program_size *size) {
  const int64_t bytes = size->stored_bytes - size->spared_bytes + PASSES * size->vector_bytes;
  return MEETINGS * cost->meeting + cost->latency + bytes / (cost->rate * blocks);
}

int64_t cb_program_ns(enum cb_form_kind kind, const struct cb_program_size *size) {
  return ns_of(&costs[kind], most_blocks(kind, size), size);
}

/* A cluster's thread blocks: few that have threads enough for all rows at once, but at least two. */
static int cluster_blocks(const struct cb_program_size *size) {
  const int64_t wanted = cb_divide_up(virtual_blocks(size) * size->threads, (int64_t)FULL / 4);
  int blocks = LEAST_CLUSTER;
  while (blocks < wanted && blocks < CB_PROGRAM_CLUSTER_BLOCKS) blocks *= 2;
  return blocks;
}

void cb_program_choose(struct cb_program_form *form, const struct cb_program_size *size) {
  *form = (struct cb_program_form){.kind = CB_PROGRAM_GRID};
  for (int i = 0; i < CB_PROGRAM_FORMS; i++)
    if (cb_program_form_exists(i, size->target) && cb_program_ns(i, size) < cb_program_ns(form->kind, size))
      form->kind = (enum cb_form_kind)i;
  cb_program_complete(form, size);
}

/* Whether directions are made in steps where vectors have slots: that is a meeting more, but a pass of nothing but
 * slots, and the product reads one vector in the place of two. Not if there is no room for all of them. */
static int steps_pay(const struct cb_program_size *size) {
  const struct cost *grid = &costs[CB_PROGRAM_GRID];
  const int64_t multiprocessors = size->target->multiprocessors;
  return size->stored_bytes / (grid->rate * multiprocessors) > grid->meeting &&
         KEPT * size->vector_bytes / multiprocessors <= cb_kept_room(size->target->shared_per_block, 1);
}

int cb_program_try_resident(struct cb_program_form resident[CB_PROGRAM_RESIDENT], const struct cb_program_form *chosen,
                            const struct cb_program_size *size) {
  struct cb_program_form cluster = {.kind = CB_PROGRAM_CLUSTER, .resident = 1};
  int count = 0;
  cb_program_complete(&cluster, size);
  const int busy = (int)cb_smaller(cluster.blocks, virtual_blocks(size));
  if (cb_program_form_exists(cluster.kind, size->target) &&
      ns_of(&resident_cost, busy, size) < cb_program_ns(chosen->kind, size))
    resident[count++] = cluster;
  if (chosen->kind != CB_PROGRAM_GRID) return count;
  resident[count] = *chosen;
  resident[count].resident = 1;
  resident[count++].in_steps |= steps_pay(size);
  return count;
}

int cb_program_pipelining_pays(enum cb_form_kind kind, const struct cb_program_size *size) {
  enum {
    MORE = 6,         /* passes over vectors */
    SAVED = 3500,     /* nanoseconds: 7-point 80^3 (3100) gains a tenth, 100^3 (6100) loses two fifths */
    MOST = 32 << 20   /* bytes of a matrix: FE 20^3 (18 MB) gains an eighth, FE 28^3 (51 MB) loses 1.5 % */
  };
  if (kind == CB_PROGRAM_CLUSTER) return 1; /* whose systems are small */
  return kind == CB_PROGRAM_GRID && size->stored_bytes <= MOST &&
         MORE * size->vector_bytes / (costs[kind].rate * most_blocks(kind, size)) < SAVED;
}

int cb_program_matrix_pays(const struct cb_program_form *form, const struct cb_program_size *size) {
  /* Bytes of the matrix for a thread block: 7-point 32^3 has 14 KB, and an iteration takes 2.4 us instead of 2.6.
   * Noting and copying take about 15 us of a solution. */
  enum { LEAST = 12 << 10 };
  return form->kind == CB_PROGRAM_GRID && size->stored_bytes / most_blocks(form->kind, size) >= LEAST;
}

enum cb_status cb_program_apart(const struct cb_program_request *request, int shares, struct cb_diag *diag) {
  const int64_t apart = request->form.apart;
  const int has_own = shares || request->launches[0].dynamic_shared;
  if (!apart || !has_own || request->program->basis || request->stored_bytes < apart) return CB_OK;
  return cb_fail(diag, CB_ERR_UNSUPPORTED, "a large product with shared memory of its own is faster by itself");
}

void cb_program_complete(struct cb_program_form *form, const struct cb_program_size *size) {
  if (form->kind == CB_PROGRAM_BLOCK) form->blocks = 1;
  if (form->kind == CB_PROGRAM_CLUSTER && !form->blocks) form->blocks = cluster_blocks(size);
  const int64_t share = form->blocks ? form->blocks : size->target->multiprocessors;
  /* Where vectors are short beside the matrix, reading two in the place of one costs more than a pass over them. */
  if (size->stored_bytes > LARGE && size->stored_bytes > SHORT * size->vector_bytes) form->in_steps = 1;
  form->room = size->target->shared_per_block;
  form->multiprocessors = size->target->multiprocessors;
  form->groups = (int)cb_smaller(cb_divide_up(virtual_blocks(size), share), (int64_t)FULL / size->threads);
  if (form->groups < 1) form->groups = 1;
}
