// SPDX-License-Identifier: Apache-2.0
/* The kernel of repeated products (codegen/program/repeated.h), loaded. */
#ifndef CBGEN_RUNTIME_SOLVER_REPEATED_H
#define CBGEN_RUNTIME_SOLVER_REPEATED_H

#include "codegen/program/repeated.h"
#include "runtime/cuda/driver.h"
#include "runtime/operator/image.h"
#include "runtime/operator/operator.h"
#include "runtime/solver/solver.h"

struct cb_repeated;

/* `images`: of the operators' specialised kernels, with their texts, for each of the group's products.
 * CB_ERR_UNSUPPORTED: cb_repeated_text. */
enum cb_status cb_solver_repeated_text(struct cb_text *text, const struct cb_image *const *images, int count,
                                       const struct cb_program *program, int multiprocessors,
                                       struct cb_repeated_shape *shape, struct cb_diag *diag);

struct cb_repeated_parts {
  const struct cb_device *device;
  const struct cb_operator *ops[CB_MOST_FUSIONS]; /* have the arrays */
  const struct cb_image *images[CB_MOST_FUSIONS];
  int count;
  const void *cubin; /* of the text for these images */
  struct cb_repeated_shape shape; /* of the text */
};

/* With the device's context current. CB_ERR_LIMIT: the GPU has no room for a thread block. */
enum cb_status cb_repeated_load(struct cb_repeated **repeated, const struct cb_repeated_parts *parts,
                                struct cb_diag *diag);
void cb_repeated_free(struct cb_repeated *repeated); /* likewise; NULL is accepted */

/* What it gets beside the arrays. */
struct cb_repeated_call {
  const struct cb_operator *ops[CB_MOST_FUSIONS]; /* handles for carry slots, with the same arrays */
  const cb_device_ptr *vectors; /* the stages' struct of pointers */
  cb_device_ptr given, from, to;
  cb_device_ptr words; /* two of 32 bits, zero before the first launch */
};
enum cb_status cb_repeated_launch(const struct cb_repeated *repeated, const struct cb_repeated_call *call,
                                  struct CUstream_st *stream, struct cb_diag *diag);

/* Registers and spilled bytes of a thread, if they are more than before. */
void cb_repeated_registers(const struct cb_repeated *repeated, struct cb_solver_info *info);

#endif
