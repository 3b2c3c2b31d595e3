// SPDX-License-Identifier: Apache-2.0
/* What of a program's vectors lies in shared memory for the whole solution, in the form "grid" with "+resident".
 *
 * Vectors of the program's own, and x, of which no thread reads what another one has written: they are neither
 * multiplied nor are vectors that are multiplied made of them. The entry of a thread's first row is its entry of slot
 * 0, that of its second row of slot 1, and so on; a vector has as many slots as there is room for, and the rows behind
 * them lie in device memory as without. So a pass over such a vector takes nothing from memory, or less, and needs no
 * fence.
 *
 * A large matrix's product needs little of L1, which this takes from it: 7-point stencil 160^3, 27-point 100^3 and
 * FE 56^3 take the same time with 190 KB less, but the first 8 % longer with 221 KB less. */
#ifndef CBGEN_CODEGEN_PROGRAM_KEPT_H
#define CBGEN_CODEGEN_PROGRAM_KEPT_H

#include "codegen/program/program.h"

struct cb_kept_vector {
  const char *name;
  int64_t first, slots; /* in shared memory: the number of its first slot, and how many it has */
  int is_whole;         /* one for each row */
};

struct cb_kept {
  struct cb_kept_vector vectors[CB_MOST_WORK + 1];
  int count;
  int64_t slots; /* of all: entries for each thread */
};

struct cb_kept_request {
  const struct cb_program *program;
  /* For each section, what the vector is made of that is made in its product, beside itself; NULL: none is. */
  const char *addends[CB_MOST_SECTIONS];
  int unread[CB_MOST_SECTIONS]; /* whether what its product gives is at hand where rows are committed, and not stored */
  int fused;   /* sums behind a product are added up where its rows are committed */
  int aligned; /* that is where the same thread has the same rows in steps */
  int64_t rows, slots; /* of a thread; that there is room for */
};

/* Vectors with the most passes in an iteration come first. Names live as long as the program. CB_ERR_UNSUPPORTED: there
 * is no such vector; CB_ERR_LIMIT: there is no room for a slot. */
enum cb_status cb_kept_plan(struct cb_kept *kept, const struct cb_kept_request *request, struct cb_diag *diag);

/* Bytes for slots in each of so many thread blocks of a multiprocessor, of which one may have `shared` bytes. */
int64_t cb_kept_room(int64_t shared, int64_t thread_blocks);

/* NULL: it is none of them. */
const struct cb_kept_vector *cb_kept_find(const struct cb_kept *kept, const char *name);

#endif
