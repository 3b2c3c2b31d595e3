// SPDX-License-Identifier: Apache-2.0
/* Products compared on the device with plain CSR products (templates/compare.cu.in), for an operator whose results are
 * to be watched. The comparer has a copy of the matrix of its own.
 *
 *   cb_comparer_create        the matrix onto the device, kernels compiled
 *   cb_comparer_values        new values, as the operator gets them
 *   cb_comparer_begin, _end   before and after a product, on its stream: no allocation, no synchronisation
 *
 * A row is right within the oracle's bound (runtime/verify/oracle.h), but for two things that make it cheaper: rows
 * whose sums are exact are given the bound, too, and bounds are a millionth larger, for they are summed in double. What
 * a row must be is summed in two doubles. Other semirings than plus-times must match exactly.
 *
 * The device's context must be current everywhere. */
#ifndef CBGEN_RUNTIME_OPERATOR_COMPARER_H
#define CBGEN_RUNTIME_OPERATOR_COMPARER_H

#include "base/status.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/operator/checks.h"
#include "runtime/operator/operator.h"
#include "runtime/operator/packer.h"
#include "runtime/operator/update.h"

#include <stdint.h>

struct cb_comparer;

/* What it is made from: as long as the call, but for the device, the packer and the records. */
struct cb_comparing {
  const struct cb_device *device;
  const struct cb_nvrtc *nvrtc;
  const struct cb_packer *packer; /* of the stored type; NULL: values lie on the host, and will not be renewed */
  const struct cb_operator_info *operator_info;
  const struct cb_csr *csr; /* canonical; its values are not looked at */
  const struct cb_order *order;
  const struct cb_view *view; /* that has the values */
  struct cb_records *records;
};

enum cb_status cb_comparer_create(struct cb_comparer **comparer, const struct cb_comparing *from, struct cb_diag *diag);
void cb_comparer_free(struct cb_comparer *comparer); /* NULL is accepted */
void cb_comparer_forget(struct cb_comparer *comparer); /* instead, when the context is gone */

int64_t cb_comparer_bytes(struct cb_comparer *comparer); /* on the device */

/* Puts the renewal on the stream: `values` of the caller's type, on the device or on the host. */
enum cb_status cb_comparer_values(struct cb_comparer *comparer, enum cb_type given, const void *values, int on_device,
                                  struct CUstream_st *stream, struct cb_diag *diag);

/* A product that is compared. Between begin and end of one no other may begin. */
struct cb_compared {
  cb_device_ptr x, y;
  double alpha, beta;
  int64_t product; /* its number, for the message */
  struct CUstream_st *stream;
};
enum cb_status cb_comparer_begin(struct cb_comparer *comparer, const struct cb_compared *compared,
                                 struct cb_diag *diag);
enum cb_status cb_comparer_end(struct cb_comparer *comparer, const struct cb_compared *compared, struct cb_diag *diag);

/* The text of its kernels; `wide`: row pointers have 64 bits. Release it in any case. */
enum cb_status cb_comparer_text(struct cb_text *text, const struct cb_operator_info *info, int wide,
                                struct cb_diag *diag);

#endif
