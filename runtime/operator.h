// SPDX-License-Identifier: Apache-2.0
/* An operator: a compiled kernel with its arrays on a device, ready to multiply.
 *
 * Two parts: the kernels and arrays, which never change but for values and which clones share; and the
 * scratch (carry sums and counters), which belongs to one handle. A handle whose plan has no carry slots may
 * be used on several streams at once; another serves one stream at a time, and cb_operator_clone makes more.
 * All calls may come from any thread and find their way to the driver's context themselves.
 */
#ifndef CBGEN_RUNTIME_OPERATOR_H
#define CBGEN_RUNTIME_OPERATOR_H

#include "analysis/blob.h"
#include "analysis/plan.h"
#include "codegen/source.h"
#include "runtime/driver.h"

struct cb_operator;

/* Loads `cubin` (compiled for the driver's device from the text of `plan` and `label`) and uploads the arrays
 * of `blob`. Nothing of plan, label, cubin and blob is needed afterwards; the driver must outlive the
 * operator. On failure nothing is left behind and *operator is NULL. */
enum cb_status cb_operator_create(struct cb_operator **op, const struct cb_driver *driver,
                                  const struct cb_plan *plan, const struct cb_label *label, const void *cubin,
                                  const struct cb_blob *blob, struct cb_diag *diag);

/* Another handle on the same arrays, with scratch of its own. */
enum cb_status cb_operator_clone(struct cb_operator **copy, const struct cb_operator *op,
                                 struct cb_diag *diag);
void cb_operator_free(struct cb_operator *op); /* the last handle frees the arrays; NULL is accepted */

/* y = αAx + βy as far as the plan's form has them: for y = Ax alpha must be 1 and beta 0, for y += Ax both 1,
 * else CB_ERR_ARGUMENT. x and y are on the device, in the caller's order and of the plan's vector type. One
 * launch per launch of the plan, on `stream` (NULL: the default one), without allocation and without waiting;
 * a plan without launches (no rows) does nothing. */
enum cb_status cb_operator_multiply(const struct cb_operator *op, double alpha, cb_device_ptr x, double beta,
                                    cb_device_ptr y, cb_cuda_stream stream, struct cb_diag *diag);

/* Uploads the arrays again, after cb_pack_values; waits for the copy, not for products under way. */
enum cb_status cb_operator_update(struct cb_operator *op, const struct cb_blob *blob, struct cb_diag *diag);

struct cb_operator_info {
  int64_t rows, cols;
  enum cb_type vector_type, sum_type;
  enum cb_form form;
  int launches;
  int64_t device_bytes; /* arrays and scratch */
  int exclusive;        /* has scratch: one stream at a time */
};
struct cb_operator_info cb_operator_info(const struct cb_operator *op);

#endif
