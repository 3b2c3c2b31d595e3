// SPDX-License-Identifier: Apache-2.0
/* What verbs share that solve on the GPU: one system, many, or a linear program (solve.c, solve_systems.c, lp.c). */
#ifndef CBGEN_TOOL_SOLVE_H
#define CBGEN_TOOL_SOLVE_H

#include "base/types.h"
#include "cbgen.h"
#include "frontend/csr.h"
#include "runtime/cuda/driver.h"
#include "tool/tool.h"

/* ---- solve_parts.c */

/* A status of the public interface as one of the tool's. */
enum cb_status cb_check_call(cbgen_status status, const char *message, struct cb_diag *diag);

/* A context with the call's options and GPU, whose recipes may be a little slower if solvers gain by them. */
enum cb_status cb_open_context(cbgen_context **context, const struct cb_call *call, struct cb_diag *diag);

/* The matrix as the public interface takes it; *row_ptr is the caller's. CB_ERR_LIMIT: 2^31 nonzeros or more. */
enum cb_status cb_make_view(cbgen_csr *view, int32_t **row_ptr, const struct cb_csr *csr, struct cb_diag *diag);

/* Numbers to the GPU in another type (`from` NULL: zeros), and back. With the device's context current. */
enum cb_status cb_put_numbers(const struct cb_device *device, cb_device_ptr to, enum cb_type type, const double *from,
                              int64_t count, struct cb_diag *diag);
enum cb_status cb_take_numbers(const struct cb_device *device, double *to, enum cb_type type, cb_device_ptr from,
                               int64_t count, struct cb_diag *diag);

/* Frees what lies there (0: nothing), in the device's context. `device` NULL: nothing was allocated. */
void cb_free_numbers(const struct cb_device *device, const cb_device_ptr *there, int count);

/* The median of call->repeat times (1) that `run` takes, behind one that warms up where there are several. With the
 * device's context current. */
enum cb_status cb_time_runs(const struct cb_call *call,
                            enum cb_status (*run)(void *user, double *seconds, struct cb_diag *diag), void *user,
                            double *seconds, struct cb_diag *diag);

/* A line for each number, of so many parts, behind the name of its column (NULL: there are none), to the file that -o
 * names. `type`: of the parts. */
enum cb_status cb_write_numbers(const struct cb_call *call, const char *const *names, const double *numbers,
                                int64_t count, int parts, enum cb_type type, struct cb_diag *diag);

/* ---- solve.c */

/* Real numbers in one of such a system: 2, the real part first, where it is complex. */
int cb_solution_parts(const struct cb_csr *csr);

/* b, a number for each row, and its norm. `rhs`: "ones" (NULL, too), "product" (what x of ones gives), or a file. */
enum cb_status cb_right_side(double *b, double *norm, const struct cb_csr *csr, const char *rhs, struct cb_diag *diag);

/* Of a cbgen_reason. */
const char *cb_reason_words(int reason);

/* ---- solve_systems.c: --systems */

enum cb_status cb_solve_systems(const struct cb_call *call, struct cb_diag *diag);
/* CB_ERR_ARGUMENT: flags that have no effect on many systems, or a method that does not solve them. */
enum cb_status cb_check_systems_call(const struct cb_call *call, struct cb_diag *diag);

#endif
