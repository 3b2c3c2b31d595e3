// SPDX-License-Identifier: Apache-2.0
/* A solver of several kernels (codegen/program/stages.h) around an operator's products, loaded with its vectors on a
 * GPU. Iterations are the body of a conditional node of a CUDA graph, which the GPU repeats by itself; or, where there
 * can be none (the driver has no such nodes, or the caller's preconditioner cannot be captured), of a loop on the host,
 * which waits for the state after each. */
#ifndef CBGEN_RUNTIME_SOLVER_STAGED_H
#define CBGEN_RUNTIME_SOLVER_STAGED_H

#include "codegen/program/stages.h"
#include "runtime/operator/operator.h"
#include "runtime/solver/fused.h"
#include "runtime/solver/slabs.h"
#include "runtime/solver/solver.h"

struct cb_staged;

/* The caller's preconditioner: puts z = M^-1 r on the stream, vectors in device memory. 0: done. */
typedef int (*cb_preconditioner)(void *user, const void *r, void *z, void *stream);

/* The caller is told of an iteration. Not 0: the solution ends. */
typedef int (*cb_progress)(void *user, int iterations, double residual, const void *x);

struct cb_staged_parts {
  const struct cb_device *device;
  struct cb_operator *op; /* a handle of the solver's own, which outlives it */
  struct cb_operator *transposed; /* likewise, of a program that multiplies with the transposed matrix; else NULL */
  const struct cb_program *program;
  const struct cb_stages_plan *plan;
  const void *cubin;      /* of the plan's text */
  struct cb_fused *fused[CB_MOST_FUSIONS]; /* of the plan's fusions; NULL: product and stage are two. The solver's, even
                                            * if it is not loaded */
  struct cb_slabs *slabs; /* one kernel for the plan's group `group` (cb_slabs_find), or NULL; likewise */
  int group;
  enum cb_type vector, sum;
  int most;               /* iterations; 0: not known */
  cb_device_ptr given;    /* the third vector that the program is given, if there is one */
  cb_preconditioner precondition;
  void *user;
  cb_progress progress; /* NULL: he is not; else there is no graph */
  void *progress_user;
};

/* Makes the device's context current for the time of the call, and builds the graph, for which it calls the
 * preconditioner once, on a stream under capture. CB_ERR_MEMORY, CB_ERR_DEVICE. */
enum cb_status cb_staged_load(struct cb_staged **staged, const struct cb_staged_parts *parts, struct cb_diag *diag);

/* Another one with the same kernels, and vectors of its own. `given`, the most iterations and the caller's functions of
 * the parts count. */
enum cb_status cb_staged_clone(struct cb_staged **clone, const struct cb_staged *staged,
                               const struct cb_staged_parts *parts, struct cb_diag *diag);
void cb_staged_free(struct cb_staged *staged); /* NULL is accepted */

/* With the device's context current; `given` of the solve: b and x, or the vectors that the program
 * copies, 0 for those that the caller has not. Under capture the nodes go to the graph that is
 * captured, as the preconditioner does. CB_ERR_ARGUMENT: the stream is captured, and the solution needs the host;
 * CB_ERR_DEVICE: the preconditioner failed. */
enum cb_status cb_staged_run(struct cb_staged *staged, const struct cb_solve *solve, struct cb_diag *diag);

cb_device_ptr cb_staged_outcome(const struct cb_staged *staged);
int cb_staged_is_graph(const struct cb_staged *staged); /* or a loop on the host */
int cb_staged_has_slabs(const struct cb_staged *staged);
struct cb_solver_info cb_staged_info(const struct cb_staged *staged);

#endif
