// SPDX-License-Identifier: Apache-2.0
/* What of a program lies in shared memory for the whole solution, in the forms "cluster" and "block" with "+resident".
 *
 * Vectors of the program's own, and x. Some are multiplied in a product, or vectors that are multiplied are made of
 * them: of these each thread block of a cluster has room for all entries. It finds out in the first product which it
 * reads, and which rows it commits; whoever makes an entry stores it in the shared memory of all that read it, and the
 * next meeting waits for that. Of other vectors a thread block has the rows that it commits, where there is room for
 * all from the first to the last of them; else they stay in device memory, and so does what the caller gives.
 *
 * A thread block of a batch has all of its system's vectors but x.
 *
 * So an iteration neither writes device memory nor fences it, and what L1 has of the matrix stays there. */
#ifndef CBGEN_CODEGEN_PROGRAM_RESIDENT_H
#define CBGEN_CODEGEN_PROGRAM_RESIDENT_H

#include "codegen/program/program.h"

/* What the caller gives and receives: the first and the last product are of it where he has it. */
#define CB_RESIDENT_X "x"

struct cb_resident_vector {
  const char *name;
  int is_whole; /* all entries; else those of the thread block's rows */
  int64_t at;   /* bytes into shared memory */
};

struct cb_resident {
  struct cb_resident_vector vectors[CB_MOST_WORK + 1];
  int count;
  /* Of a cluster, bytes into shared memory: for each row a byte each, whether the thread block reads it of a vector and
   * whether it commits it; of 2 bytes each, which thread blocks read what it commits; and the rows that it commits. */
  int64_t reads, commits, readers, own_rows;
  int64_t room;  /* entries of a vector of the thread block's rows */
  int64_t bytes; /* of all */
};

/* `rows`: about as many as a thread block of a cluster has. `in_product`: vectors may be made in it. Names live as long
 * as the program. CB_ERR_UNSUPPORTED: the program has steps that read what others have made in other ways, or
 * multiplies x in between; CB_ERR_LIMIT: no room in `form.room` bytes. */
enum cb_status cb_resident_plan(struct cb_resident *resident, const struct cb_program_request *request, int64_t rows,
                                int in_product, struct cb_diag *diag);

/* Whether each thread block of a cluster has all entries of the vector. */
int cb_resident_is_whole(const struct cb_resident *resident, const char *vector);

#endif
