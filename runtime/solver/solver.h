// SPDX-License-Identifier: Apache-2.0
/* A solver: a program (codegen/program/program.h) made of an operator's product, loaded with its vectors on a GPU.
 *
 *   cb_solver_text    the kernel's text, from the operator's image
 *   cb_solver_load    its binary, and the vectors that are its own
 *   cb_solver_run     one launch; no allocation, no synchronisation
 *
 * A solver works on the operator's arrays where they lie, and with the carry slots of one of its handles. */
#ifndef CBGEN_RUNTIME_SOLVER_SOLVER_H
#define CBGEN_RUNTIME_SOLVER_SOLVER_H

#include "codegen/program/form.h"
#include "codegen/program/program.h"
#include "runtime/cuda/driver.h"
#include "runtime/operator/image.h"
#include "runtime/operator/operator.h"

struct cb_solver;

/* `image`: of the operator's specialised kernels, with their text (cb_image_specialise makes its numbers from a
 * family's).  CB_ERR_UNSUPPORTED: cb_program_text. */
enum cb_status cb_solver_text(struct cb_text *text, const struct cb_image *image, const struct cb_program *program,
                              const struct cb_program_form *form, const struct cb_program_sizes *sizes,
                              struct cb_program_shape *shape, struct cb_diag *diag);

/* A program's request for the product of such an image, but for its form, sizes and what it stores. `launches`: room
 * for all of the image's. */
struct cb_program_request cb_solver_request(const struct cb_image *image, const struct cb_program *program,
                                            struct cb_program_launch *launches);

/* The arrays of each region of each launch, where they lie: `pointers` has room for all of the image's. Region g's
 * begin at starts[g], of which there is room for `most`. Returns how many regions there are; -1: more. */
int cb_solver_arrays(const struct cb_operator *op, const struct cb_image *image, cb_device_ptr *pointers, int *starts,
                     int most);

/* What its form is chosen by. */
struct cb_program_size cb_solver_size(const struct cb_image *image, const struct cb_program *program,
                                      const struct cb_target *target);

/* A number of the sums' type, as kernels take it. */
union cb_solver_number {
  double wide[2];
  float narrow[2];
};
void cb_solver_number(union cb_solver_number *number, enum cb_type sum, double value);

struct cb_solver_parts {
  const struct cb_device *device;
  const struct cb_operator *op; /* outlives the solver */
  const struct cb_image *image;
  const struct cb_program *program;
  struct cb_program_sizes sizes; /* that the text was made for */
  const void *cubin;
  struct cb_program_form form; /* that of the text. Of a grid without `blocks`: as many thread blocks as the product has
                                * work for, and the GPU has room for */
  struct cb_program_shape shape; /* of the text */
};

/* Makes the device's context current for the time of the call. CB_ERR_UNSUPPORTED: the driver or the GPU has no
 * cooperative launches, or no clusters of that size; CB_ERR_LIMIT: the GPU has no room for one thread block, or for
 * `blocks`; CB_ERR_MEMORY;
 * CB_ERR_DEVICE. */
enum cb_status cb_solver_load(struct cb_solver **solver, const struct cb_solver_parts *parts, struct cb_diag *diag);

/* Another one with the same kernel, and vectors of its own. `op`: a handle for its carry slots, with the arrays of the
 * solver's. Any thread. */
enum cb_status cb_solver_clone(struct cb_solver **clone, const struct cb_solver *solver, const struct cb_operator *op,
                               struct cb_diag *diag);
void cb_solver_free(struct cb_solver *solver); /* NULL is accepted */

struct cb_solve {
  cb_device_ptr given[CB_MOST_GIVEN];    /* vectors, as the program lists them */
  double parameters[CB_MOST_PARAMETERS]; /* likewise */
  int most;                 /* iterations */
  cb_device_ptr outcome;    /* of a struct cb_program_outcome; 0: the solver's own */
  cb_device_ptr history;    /* of most + 1 doubles: squares of residuals; 0: none wanted */
  struct CUstream_st *stream;
};

/* With the device's context current. One at a time. */
enum cb_status cb_solver_run(const struct cb_solver *solver, const struct cb_solve *solve, struct cb_diag *diag);

/* The solver's own outcome, in memory of the host: there once the kernel has ended. */
const struct cb_program_outcome *cb_solver_outcome(const struct cb_solver *solver);

/* Its thread blocks; bytes of the device that it has allocated; registers and spilled bytes of a thread. */
struct cb_solver_info {
  enum cb_form_kind form;
  int blocks, threads, registers, local_bytes;
  int64_t device_bytes;
};
struct cb_solver_info cb_solver_info(const struct cb_solver *solver);

#endif
