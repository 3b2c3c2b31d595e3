// SPDX-License-Identifier: Apache-2.0
/* The forms of cusparseSpMVOp: see spmvop.h. */
#include "runtime/measure/spmvop.h"

enum cb_spmvop_form cb_spmvop_form(const struct cb_cusparse_calls *call, int version) {
  enum { WITH_ALGORITHM = 120800, UNKNOWN = 121000 };
  if (!call->op_create.plain || !call->op_destroy || !call->op_create_plan || !call->op_destroy_plan ||
      !call->op_multiply || version >= UNKNOWN)
    return CB_SPMVOP_NONE;
  if (!call->op_buffer_size.buffer) return CB_SPMVOP_PLAIN;
  return version < WITH_ALGORITHM ? CB_SPMVOP_BUFFER : CB_SPMVOP_ALGORITHM;
}

unsigned cb_spmvop_buffer_size(const struct cb_cusparse_calls *call, enum cb_spmvop_form form,
                               struct cusparseContext *handle, const struct cb_spmvop *op, size_t *bytes) {
  const unsigned as_it_is = CB_CUSPARSE_NON_TRANSPOSE;
  *bytes = 0;
  if (form == CB_SPMVOP_ALGORITHM)
    return call->op_buffer_size.algorithm(handle, as_it_is, op->matrix, op->x, op->y, op->y, op->type,
                                          op->algorithm, bytes);
  if (form == CB_SPMVOP_BUFFER)
    return call->op_buffer_size.buffer(handle, as_it_is, op->matrix, op->x, op->y, op->y, op->type, bytes);
  return 0;
}

static unsigned describe(const struct cb_cusparse_calls *call, enum cb_spmvop_form form,
                         struct cusparseContext *handle, struct cb_spmvop *op, void *buffer) {
  const unsigned as_it_is = CB_CUSPARSE_NON_TRANSPOSE;
  if (form == CB_SPMVOP_ALGORITHM)
    return call->op_create.algorithm(handle, &op->descriptor, as_it_is, op->matrix, op->x, op->y, op->y, op->type,
                                     op->algorithm, buffer);
  if (form == CB_SPMVOP_BUFFER)
    return call->op_create.buffer(handle, &op->descriptor, as_it_is, op->matrix, op->x, op->y, op->y, op->type,
                                  buffer);
  return call->op_create.plain(handle, &op->descriptor, as_it_is, op->matrix, op->x, op->y, op->y, op->type);
}

unsigned cb_spmvop_prepare(const struct cb_cusparse_calls *call, enum cb_spmvop_form form,
                           struct cusparseContext *handle, struct cb_spmvop *op, void *buffer) {
  const unsigned result = describe(call, form, handle, op, buffer);
  return result ? result : call->op_create_plan(handle, op->descriptor, &op->plan, NULL, 0);
}

void cb_spmvop_release(const struct cb_cusparse_calls *call, struct cb_spmvop *op) {
  if (op->plan) call->op_destroy_plan(op->plan);
  if (op->descriptor) call->op_destroy(op->descriptor);
  op->plan = NULL;
  op->descriptor = NULL;
}
