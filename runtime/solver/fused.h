// SPDX-License-Identifier: Apache-2.0
/* The kernels of a fusion (codegen/program/fused.h), loaded: an operator's product that goes on as its program does. */
#ifndef CBGEN_RUNTIME_SOLVER_FUSED_H
#define CBGEN_RUNTIME_SOLVER_FUSED_H

#include "codegen/program/fused.h"
#include "runtime/cuda/driver.h"
#include "runtime/operator/image.h"
#include "runtime/operator/operator.h"
#include "runtime/solver/solver.h"

struct cb_fused;

/* `image`: of the operator's specialised kernels, with their text. CB_ERR_UNSUPPORTED: cb_fused_text. */
enum cb_status cb_solver_fused_text(struct cb_text *text, const struct cb_image *image,
                                    const struct cb_program *program, int number, struct cb_diag *diag);

/* `op` has the arrays; `cubin`: of the text for its image and a fusion. With the device's context current. */
enum cb_status cb_fused_load(struct cb_fused **fused, const struct cb_device *device, const struct cb_operator *op,
                             const struct cb_image *image, const void *cubin, struct cb_diag *diag);
void cb_fused_free(struct cb_fused *fused); /* likewise; NULL is accepted */

/* What its kernels get beside the arrays. */
struct cb_fused_call {
  const struct cb_operator *op; /* a handle for its carry slots, with the same arrays */
  const cb_device_ptr *vectors; /* the stages' struct of pointers */
  cb_device_ptr given, from, to;
  int overlaps; /* with the end of the kernel before */
};
enum cb_status cb_fused_launch(const struct cb_fused *fused, const struct cb_fused_call *call,
                               struct CUstream_st *stream, struct cb_diag *diag);

/* Registers and spilled bytes of a thread, the most of all kernels. */
void cb_fused_registers(const struct cb_fused *fused, struct cb_solver_info *info);

#endif
