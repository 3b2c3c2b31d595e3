// SPDX-License-Identifier: Apache-2.0
/* The kernel of iterations with the matrix in shared memory (codegen/program/slabs.h): which thread block gets which
 * lines, what it gets of the matrix, and loading and launching. */
#ifndef CBGEN_RUNTIME_SOLVER_SLABS_H
#define CBGEN_RUNTIME_SOLVER_SLABS_H

#include "codegen/program/slabs.h"
#include "frontend/csr.h"
#include "runtime/cuda/driver.h"
#include "runtime/solver/solver.h"

struct cb_slabs;

/* Lines of the matrices of both products, dealt to thread blocks. Release in any case. */
struct cb_slab_deal {
  struct cb_slab_shape shape; /* but for bytes */
  const struct cb_csr *matrices[2];
  int64_t *starts[2]; /* of each thread block's lines in the order, and the end */
  int32_t *order[2];  /* lines; each thread block's in descending order of length */
  int64_t steps[2];   /* the most of a warp, one behind the other */
};

/* `matrices`: of the group's products, in their order. CB_ERR_UNSUPPORTED: a matrix without entries, or
 * one with which products are faster. */
enum cb_status cb_slabs_deal(struct cb_slab_deal *deal, const struct cb_csr *const *matrices,
                             const struct cb_target *target, enum cb_type type, struct cb_diag *diag);
void cb_slab_deal_release(struct cb_slab_deal *deal);

/* `cubin`: of the text for the deal, whose shape is whole. With the device's context current. CB_ERR_LIMIT: the GPU has
 * no room for all thread blocks at once. */
enum cb_status cb_slabs_load(struct cb_slabs **slabs, const struct cb_device *device, const struct cb_slab_deal *deal,
                             enum cb_type type, const void *cubin, struct cb_diag *diag);
void cb_slabs_free(struct cb_slabs *slabs); /* likewise; NULL is accepted */

int64_t cb_slabs_bytes(const struct cb_slabs *slabs); /* of a solver's own memory for them; NULL: 0 */

struct cb_slabs_call {
  const cb_device_ptr *vectors; /* the stages' struct of pointers */
  cb_device_ptr given, state;
  cb_device_ptr own; /* cb_slabs_bytes, zero before the first launch */
};
enum cb_status cb_slabs_launch(const struct cb_slabs *slabs, const struct cb_slabs_call *call,
                               struct CUstream_st *stream, struct cb_diag *diag);

/* Registers and spilled bytes of a thread, if they are more than before. */
void cb_slabs_registers(const struct cb_slabs *slabs, struct cb_solver_info *info);

#endif
