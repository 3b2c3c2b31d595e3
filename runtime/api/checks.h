// SPDX-License-Identifier: Apache-2.0
/* What CBGEN_CHECK asks for, and does to an operator:
 *
 *   CBGEN_CHECK=bounds    its kernels look at every index before they use it (codegen/checked.h)
 *   CBGEN_CHECK=N         every N-th product is compared with a plain CSR product (runtime/operator/comparer.h)
 *   CBGEN_CHECK=bounds,N  both
 *
 * What is found is the status of the next call on the operator, and a line on standard error as CBGEN_LOG asks for it:
 * the context, and with it the application's function for its log, may be gone by then. All handles of an operator
 * share its checks. */
#ifndef CBGEN_RUNTIME_API_CHECKS_H
#define CBGEN_RUNTIME_API_CHECKS_H

#include "cbgen.h"
#include "runtime/api/api.h"

#include <stdint.h>

struct cb_work;
struct cb_checks;

struct cb_checks_asked {
  int bounds;
  int64_t every; /* 0: no products are compared */
};

/* What the variable says. CB_ERR_ARGUMENT names it. */
enum cb_status cb_checks_read(struct cb_checks_asked *asked, struct cb_diag *diag);

/* *checks is NULL when none are asked for. */
enum cb_status cb_checks_create(struct cb_checks **checks, struct cbgen_context *context, struct cb_session *session,
                                struct cb_diag *diag);
/* Before the session is let go of. Any thread; NULL is accepted here and below. */
void cb_checks_free(struct cb_checks *checks);

/* Where kernels with checks leave what they find; 0: they are not asked for. */
uint64_t cb_checks_record(const struct cb_checks *checks);

/* Makes the matrix to compare with, and gives the operator the work's checks. On failure the operator is freed. */
enum cb_status cb_checks_attach(struct cb_work *work, cbgen_operator **op);

/* What was found since the last call: CB_ERR_WRONG, once for each comparison, and for ever for an index. */
enum cb_status cb_checks_outcome(struct cb_checks *checks, struct cb_diag *diag);

/* cb_operator_multiply, compared where its turn has come. The context is current. */
enum cb_status cb_checks_multiply(struct cb_checks *checks, const struct cb_operator *op, const cbgen_product *product,
                                  struct cb_diag *diag);

/* New values, which the operator has been given. The context is current. */
enum cb_status cb_checks_renew(struct cb_checks *checks, const cbgen_update *update, struct cb_diag *diag);

int64_t cb_checks_bytes(struct cb_checks *checks); /* on the device */

#endif
