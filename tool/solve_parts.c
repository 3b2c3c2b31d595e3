// SPDX-License-Identifier: Apache-2.0
/* See solve.h. */
#include "tool/solve.h"

#include "base/memory.h"
#include "base/real.h"
#include "runtime/api/api.h"
#include "runtime/measure/timer.h"

#include <stdio.h>

enum { MOST_REPEATS = 100 };

enum cb_status cb_check_call(cbgen_status status, const char *message, struct cb_diag *diag) {
  return status ? cb_fail(diag, (enum cb_status)status, "%s", message) : CB_OK;
}

enum cb_status cb_open_context(cbgen_context **context, const struct cb_call *call, struct cb_diag *diag) {
  char device[24];
  const enum cb_status s = cb_check_call(cbgen_context_create(context), "no context", diag);
  if (s) return s;
  (*context)->options = call->options;
  (*context)->has_type = (*context)->has_search = 1;
  snprintf(device, sizeof device, "%lld", (long long)call->device);
  return cb_check_call(cbgen_set(*context, "device", device), cbgen_message(*context), diag);
}

enum cb_status cb_make_view(cbgen_csr *view, int32_t **row_ptr, const struct cb_csr *csr, struct cb_diag *diag) {
  if (csr->nnz > INT32_MAX) return cb_fail(diag, CB_ERR_LIMIT, "more than 2^31 nonzeros");
  *row_ptr = cb_alloc((size_t)csr->rows + 1, sizeof **row_ptr);
  if (!*row_ptr) return cb_fail_memory(diag, "row pointers", (uint64_t)csr->rows);
  for (int64_t i = 0; i <= csr->rows; i++) (*row_ptr)[i] = (int32_t)cb_csr_row(csr, i);
  *view = (cbgen_csr){.struct_size = sizeof *view, .rows = csr->rows, .cols = csr->cols, .nnz = csr->nnz,
                      .row_ptr = *row_ptr, .col_idx = csr->col_idx, .values = csr->values,
                      .value_type = csr->is_complex ? CBGEN_C128 : CBGEN_F64};
  return CB_OK;
}

/* ---- numbers */

enum cb_status cb_put_numbers(const struct cb_device *device, cb_device_ptr to, enum cb_type type, const double *from,
                              int64_t count, struct cb_diag *diag) {
  const size_t size = cb_type_size(type);
  char *bytes = cb_calloc((size_t)count + 1, size);
  if (!bytes) return cb_fail_memory(diag, "numbers", (uint64_t)count * size);
  for (int64_t i = 0; i < count && from; i++) cb_real_set(bytes, type, i, cb_real_round(from[i], type));
  const enum cb_status s = cb_device_upload(device, to, bytes, (size_t)count * size, "numbers", diag);
  cb_free(bytes);
  return s;
}

enum cb_status cb_take_numbers(const struct cb_device *device, double *to, enum cb_type type, cb_device_ptr from,
                               int64_t count, struct cb_diag *diag) {
  const size_t size = cb_type_size(type);
  char *bytes = cb_calloc((size_t)count + 1, size);
  if (!bytes) return cb_fail_memory(diag, "numbers", (uint64_t)count * size);
  const enum cb_status s = cb_device_download(device, bytes, from, (size_t)count * size, "numbers", diag);
  for (int64_t i = 0; i < count && !s; i++) to[i] = cb_real_get(bytes, type, i);
  cb_free(bytes);
  return s;
}

void cb_free_numbers(const struct cb_device *device, const cb_device_ptr *there, int count) {
  if (!device || cb_device_enter(device, NULL)) return;
  for (int i = 0; i < count; i++) cb_device_free(device, there[i]);
  cb_device_leave(device);
}

enum cb_status cb_time_runs(const struct cb_call *call,
                            enum cb_status (*run)(void *user, double *seconds, struct cb_diag *diag), void *user,
                            double *seconds, struct cb_diag *diag) {
  const int repeats = call->repeat > MOST_REPEATS ? MOST_REPEATS : call->repeat ? (int)call->repeat : 1;
  double times[MOST_REPEATS], unused;
  enum cb_status s = repeats > 1 ? run(user, &unused, diag) : CB_OK;
  for (int i = 0; i < repeats && !s; i++) s = run(user, &times[i], diag);
  if (!s) *seconds = cb_median(times, repeats);
  return s;
}

enum cb_status cb_write_numbers(const struct cb_call *call, const char *const *names, const double *numbers,
                                int64_t count, int parts, enum cb_type type, struct cb_diag *diag) {
  struct cb_text text = {0};
  struct cb_outputs outputs = {.input = call->file};
  for (int64_t i = 0; i < parts * count; i++) {
    char number[CB_REAL_TEXT] = "nan";
    if (cb_real_is_finite(numbers[i])) cb_real_text(number, numbers[i], type);
    cb_text_add(&text, "%s%s%s%s", names ? names[i] : "", names ? " " : "", number, (i + 1) % parts ? " " : "\n");
  }
  enum cb_status s = text.failed ? cb_fail_memory(diag, "x", text.length)
                                 : cb_outputs_add(&outputs, call->output, text.bytes, text.length, diag);
  if (!s) s = cb_outputs_commit(&outputs, diag);
  cb_outputs_abandon(&outputs);
  cb_text_release(&text);
  return s;
}
