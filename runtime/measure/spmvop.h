// SPDX-License-Identifier: Apache-2.0
/* cusparseSpMVOp in each form that cuSPARSE has given it: a buffer, a descriptor and a plan are made once, then it
 * multiplies. NVIDIA calls the interface experimental, and its parameters changed twice under the same names:
 *
 *   12.7.2 (CUDA 13.1)            the descriptor alone
 *   12.7.3 (CUDA 13.1 update 1)   a buffer, sized first by cusparseSpMVOp_bufferSize
 *   12.8   (CUDA 13.3)            a buffer, and an algorithm
 */
#ifndef CBGEN_RUNTIME_MEASURE_SPMVOP_H
#define CBGEN_RUNTIME_MEASURE_SPMVOP_H

#include "runtime/measure/cusparse.h"

enum cb_spmvop_form { CB_SPMVOP_NONE, CB_SPMVOP_PLAIN, CB_SPMVOP_BUFFER, CB_SPMVOP_ALGORITHM };

/* The form of a library with these functions and this version (major·10000 + minor·100 + patch); CB_SPMVOP_NONE where
 * it is missing, or where a newer version than 12.9 may have changed it again: a call with other parameters crashes. */
enum cb_spmvop_form cb_spmvop_form(const struct cb_cusparse_calls *call, int version);

/* What is multiplied: z is y. */
struct cb_spmvop {
  struct cusparseSpMatDescr *matrix;
  struct cusparseDnVecDescr *x, *y;
  unsigned type, algorithm; /* of the product; CB_CUSPARSE_OP_ALG2 is all that the first two forms have */
  struct cusparseSpMVOpDescr *descriptor;
  struct cusparseSpMVOpPlan *plan;
};

/* Both return cuSPARSE's status. 0 bytes where the form takes no buffer. */
unsigned cb_spmvop_buffer_size(const struct cb_cusparse_calls *call, enum cb_spmvop_form form,
                               struct cusparseContext *handle, const struct cb_spmvop *op, size_t *bytes);
/* Makes descriptor and plan; cb_spmvop_release also after a failure. The buffer must live as long. */
unsigned cb_spmvop_prepare(const struct cb_cusparse_calls *call, enum cb_spmvop_form form,
                           struct cusparseContext *handle, struct cb_spmvop *op, void *buffer);
void cb_spmvop_release(const struct cb_cusparse_calls *call, struct cb_spmvop *op);

#endif
