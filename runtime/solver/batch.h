// SPDX-License-Identifier: Apache-2.0
/* A batch: a program for many systems of one pattern (codegen/program/batch.h), loaded with its vectors on a GPU. */
#ifndef CBGEN_RUNTIME_SOLVER_BATCH_H
#define CBGEN_RUNTIME_SOLVER_BATCH_H

#include "codegen/program/batch.h"
#include "runtime/cuda/driver.h"

struct cb_batch;

struct cb_batch_parts {
  const struct cb_device *device;
  const struct cb_program *program;
  const void *cubin;
  struct cb_program_shape shape; /* of the text */
  int64_t systems, rows, nnz;
  enum cb_type type;
  const int32_t *row_ptr, *col_idx; /* on the host, from 0; copied */
};

/* As many thread blocks as there are systems, or as the GPU has room for. With the device's context current.
 * CB_ERR_LIMIT: no room for one; CB_ERR_MEMORY; CB_ERR_DEVICE. */
enum cb_status cb_batch_load(struct cb_batch **batch, const struct cb_batch_parts *parts, struct cb_diag *diag);
void cb_batch_free(struct cb_batch *batch); /* makes the context current; NULL is accepted */

struct cb_batch_solve {
  cb_device_ptr values;   /* systems * nnz */
  cb_device_ptr given[4]; /* vectors, as the program lists them: systems * rows each */
  double parameters[4];
  int most;
  cb_device_ptr outcomes; /* of `systems` struct cb_program_outcome; 0: the batch's own */
  struct CUstream_st *stream;
};

/* One launch; with the device's context current. One at a time. */
enum cb_status cb_batch_run(const struct cb_batch *batch, const struct cb_batch_solve *solve, struct cb_diag *diag);

cb_device_ptr cb_batch_outcomes(const struct cb_batch *batch); /* the batch's own */

#endif
