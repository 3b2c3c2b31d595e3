// SPDX-License-Identifier: Apache-2.0
/* Programs for many independent systems whose matrices have their nonzeros in the same places: the kernel of one thread
 * block (codegen/program/program.h), which takes one system after the other. The product is of rows as in CSR, so that
 * values are read as the caller has them; once in a solution, where a thread has registers for its rows' nonzeros. */
#ifndef CBGEN_CODEGEN_PROGRAM_BATCH_H
#define CBGEN_CODEGEN_PROGRAM_BATCH_H

#include "codegen/program/program.h"

struct cb_batch_request {
  const struct cb_program *program;
  int64_t rows, nnz; /* of each system; nnz below 2^31 */
  int64_t longest;   /* nonzeros of a row, at most */
  enum cb_type type; /* of values, vectors and sums: CB_F64 or CB_F32 */
  int resident;      /* vectors but x lie in shared memory (resident.h), */
  int64_t room;      /* of which a thread block may have so many bytes */
};

/* How many thread blocks shall share a multiprocessor, of a matrix that stays in registers. 0: it does not. */
int cb_batch_shares(const struct cb_batch_request *request);

/* The text of the kernel CB_PROGRAM_KERNEL. Its parameters, in order: a struct of pointers to row pointers and columns
 * (int32, from 0) and values (of all systems, one behind the other); the struct of pointers of any program, given
 * vectors and outcomes of all systems, own vectors of all thread blocks; the program's parameters; the most iterations,
 * the number of systems, and that of thread blocks, as ints. CB_ERR_LIMIT: rows or
 * nonzeros that an int does not hold. */
enum cb_status cb_batch_text(struct cb_text *text, const struct cb_batch_request *request,
                             struct cb_program_shape *shape, struct cb_diag *diag);

#endif
