// SPDX-License-Identifier: Apache-2.0
/* The diagonal of a matrix as its caller has it, for preconditioners: see cbgen_diagonal. */
#include "runtime/api/compile.h"

#include "base/memory.h"

static int64_t index_at(const void *array, int wide, int64_t i) {
  return wide ? ((const int64_t *)array)[i] : ((const int32_t *)array)[i];
}

/* Entries of one place are summed in the order given. */
static void gather(const struct cb_view *view, enum cb_type type, void *diagonal) {
  const int64_t least = view->rows < view->cols ? view->rows : view->cols;
  for (int64_t row = 0; row < least; row++) {
    double sum = 0;
    const int64_t end = index_at(view->row_ptr, view->row_wide, row + 1) - view->base;
    for (int64_t k = index_at(view->row_ptr, view->row_wide, row) - view->base; k < end; k++)
      if (index_at(view->col_idx, view->col_wide, k) - view->base == row)
        sum += view->values ? cb_view_value(view, k) : 1;
    cb_real_set(diagonal, type, row, cb_real_round(sum, type));
  }
}

/* With the session's context current. */
static enum cb_status deliver(const struct cb_session *session, const void *diagonal, size_t bytes, void *to,
                              struct cb_diag *diag) {
  return bytes ? cb_device_copy_in(session->device, (cb_device_ptr)(uintptr_t)to, diagonal, bytes, "the diagonal", diag)
               : CB_OK;
}

static enum cb_status take_diagonal(struct cb_request *request, void *to, struct cb_diag *diag) {
  const struct cb_view *view = &request->host;
  const struct cb_types types = cb_precision_types((enum cb_precision)request->options.type);
  const enum cb_type type = types.vector == CB_F64 ? CB_F64 : CB_F32;
  int canonical;
  enum cb_status s = cb_request_host(request, diag);
  if (!s) s = cb_view_check(view, &canonical, diag);
  if (s) return s;
  const int64_t least = view->rows < view->cols ? view->rows : view->cols;
  const size_t bytes = (size_t)least * cb_type_size(type);
  void *diagonal = cb_alloc((size_t)least + 1, cb_type_size(type));
  if (!diagonal) return cb_fail_memory(diag, "a diagonal", bytes);
  gather(view, type, diagonal);
  s = cb_device_enter(request->session->device, diag);
  if (!s) {
    s = deliver(request->session, diagonal, bytes, to, diag);
    cb_device_leave(request->session->device);
  }
  cb_free(diagonal);
  return s;
}

cbgen_status cbgen_diagonal(cbgen_context *context, const cbgen_csr *matrix, void *diagonal) {
  CB_STANDARD_NUMERICS;
  const cbgen_request fixed = {.struct_size = sizeof fixed, .values = CBGEN_VALUES_FIXED}; /* values come to the host */
  if (!context) return CBGEN_ERROR_ARGUMENT;
  struct cb_diag *diag = &context->diag;
  if (!diagonal) return (cbgen_status)cb_fail(diag, CB_ERR_ARGUMENT, "no place for the diagonal was given");
  struct cb_request *request = cb_calloc(1, sizeof *request);
  if (!request) return (cbgen_status)cb_fail_memory(diag, "a diagonal", sizeof *request);
  request->context = context;
  enum cb_status s = cb_view_take_csr(&request->view, matrix, diag);
  if (!s) s = cb_request_take(request, &fixed, diag);
  if (!s) s = take_diagonal(request, diagonal, diag);
  cb_request_release(request);
  cb_free(request);
  return (cbgen_status)s;
}

cbgen_status cbgen_residual(cbgen_operator *op, const void *b, const void *x, void *r, void *stream) {
  const cbgen_product product = {.struct_size = sizeof product,
                                 .alpha = -1,
                                 .beta = 1,
                                 .x = x,
                                 .y = (void *)(uintptr_t)b,
                                 .z = r,
                                 .stream = stream};
  struct cb_diag diag = {0};
  if (!op) return CBGEN_ERROR_ARGUMENT;
  if (r) return cbgen_multiply(op, &product);
  return cb_operator_report(op, cb_fail(&diag, CB_ERR_ARGUMENT, "no place for the residual was given"), &diag);
}
