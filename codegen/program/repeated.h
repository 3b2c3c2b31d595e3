// SPDX-License-Identifier: Apache-2.0
/* Iterations of the form "graph" that nothing looks at, as one kernel: a group of stages.h all of whose acts are
 * fused products without sums (fused.h), which PDHG's are between two checks. It is launched cooperatively; thread
 * blocks meet behind each product, and every thread computes the scalars for itself. Bits are those of the fused
 * products.
 *
 * The text has both products of the operators' specialised ones, each in a namespace: of_0, of_1, in the group's
 * order. */
#ifndef CBGEN_CODEGEN_PROGRAM_REPEATED_H
#define CBGEN_CODEGEN_PROGRAM_REPEATED_H

#include "codegen/program/stages.h"

#define CB_REPEATED_KERNEL "cbgen_repeated"

struct cb_repeated_shape {
  int threads;            /* of a thread block */
  int64_t work;           /* thread blocks that have something to do */
  int64_t dynamic_shared; /* bytes */
};

/* `requests`: of the program, for each of the group's products the request for its operator; `multiprocessors` of the
 * GPU. Parameters of the kernel: for each product, for each region that reads arrays, the region's struct of pointers;
 * the stages' struct of pointers; what is given; the state's struct to read, and to write, which are one; for each
 * product with carry slots, their sums and counters; two words for meetings, zero before the first launch; thread
 * blocks (int).
 * CB_ERR_UNSUPPORTED: products of several launches, of other sizes of thread blocks, whose rows are not each committed
 * once, or which have no room for their shared memory beside each other. */
enum cb_status cb_repeated_text(struct cb_text *text, const struct cb_program_request *requests, int count,
                                int multiprocessors, struct cb_repeated_shape *shape, struct cb_diag *diag);

#endif
