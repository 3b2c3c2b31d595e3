// SPDX-License-Identifier: Apache-2.0
/* cbgen solve: what one system and many share. */
#ifndef CBGEN_TOOL_SOLVE_H
#define CBGEN_TOOL_SOLVE_H

#include "frontend/csr.h"
#include "tool/tool.h"

/* b, a number for each row, and its norm. `rhs`: "ones" (NULL, too), "product" (what x of ones gives), or a file. */
enum cb_status cb_right_side(double *b, double *norm, const struct cb_csr *csr, const char *rhs, struct cb_diag *diag);

/* Of a cbgen_reason. */
const char *cb_reason_words(int reason);

/* solve_systems.c: --systems. */
enum cb_status cb_solve_systems(const struct cb_call *call, struct cb_diag *diag);
/* CB_ERR_ARGUMENT: flags that have no effect on many systems, or a method that does not solve them. */
enum cb_status cb_check_systems_call(const struct cb_call *call, struct cb_diag *diag);

#endif
