// SPDX-License-Identifier: Apache-2.0
/* Counts of columns by kernels: see device_columns.h. */
#include "runtime/operator/device_columns.h"

#include "analysis/columns.h"
#include "base/integers.h"
#include "runtime/operator/device_profile.h"

#include <string.h>

enum { COUNT = 0, MARKED = 2 };               /* kernels of the set: the first of each kind */
enum { WARP = 32, CHUNK = 1024, ALIGN = 256 }; /* CHUNK: nonzeros of a warp, as the template has it */

static int64_t threads_of(const struct cb_view *view) { return cb_divide_up(view->nnz, CHUNK) * WARP; }

static enum cb_status count(struct cb_survey *survey, const struct cb_kernels *kernels, uint32_t *counts,
                            struct cb_diag *diag) {
  const struct cb_view *view = &survey->view;
  const size_t bytes = (size_t)view->cols * sizeof *counts;
  cb_device_ptr columns = (cb_device_ptr)(uintptr_t)view->col_idx, to = 0;
  int64_t base = view->base, nnz = view->nnz;
  void *parameters[] = {&columns, &base, &nnz, &to};
  enum cb_status s = cb_survey_take_work(survey, &to, bytes, diag);
  if (!s) s = cb_survey_clear(survey, to, bytes, diag);
  if (!s) s = cb_kernels_launch(kernels, COUNT + view->col_wide, threads_of(view), NULL, parameters, diag);
  return s ? s : cb_device_download(kernels->device, counts, to, bytes, "counts of columns", diag);
}

enum cb_status cb_columns_count(void *user, uint32_t *counts, struct cb_diag *diag) {
  struct cb_survey *survey = user;
  const struct cb_kernels *kernels;
  const struct cb_csr *near = &survey->near;
  if (near->col_idx) {
    memset(counts, 0, (size_t)near->cols * sizeof *counts);
    for (int64_t k = 0; k < near->nnz; k++) counts[near->col_idx[k]]++;
    return CB_OK;
  }
  enum cb_status s = cb_survey_open(survey, "columns", &kernels, diag);
  if (s) return s;
  s = count(survey, kernels, counts, diag);
  cb_device_leave(kernels->device);
  return s;
}

static enum cb_status count_marked(struct cb_survey *survey, const struct cb_kernels *kernels, const uint64_t *marked,
                                   uint32_t *by_row, struct cb_diag *diag) {
  const struct cb_view *view = &survey->view;
  const size_t words = (size_t)cb_divide_up(view->cols, 64) * sizeof *marked,
               room = (size_t)cb_round_up((int64_t)words, ALIGN), bytes = (size_t)view->rows * sizeof *by_row;
  struct cb_row_starts starts = cb_survey_starts(survey);
  cb_device_ptr columns = (cb_device_ptr)(uintptr_t)view->col_idx, bits = 0, to = 0;
  int64_t base = view->base, rows = view->rows, nnz = view->nnz;
  void *parameters[] = {&starts, &rows, &nnz, &columns, &base, &bits, &to};
  enum cb_status s = cb_survey_take_work(survey, &bits, room + bytes, diag);
  to = bits + room;
  if (!s) s = cb_device_upload(kernels->device, bits, marked, words, "marked columns", diag);
  if (!s) s = cb_survey_clear(survey, to, bytes, diag);
  if (!s) s = cb_kernels_launch(kernels, MARKED + view->col_wide, threads_of(view), NULL, parameters, diag);
  return s ? s : cb_device_download(kernels->device, by_row, to, bytes, "counts of rows", diag);
}

enum cb_status cb_columns_count_marked(void *user, const uint64_t *marked, uint32_t *by_row, struct cb_diag *diag) {
  struct cb_survey *survey = user;
  const struct cb_kernels *kernels;
  if (survey->near.col_idx) {
    cb_count_marked(by_row, &survey->near, marked);
    return CB_OK;
  }
  enum cb_status s = cb_survey_open(survey, "columns", &kernels, diag);
  if (s) return s;
  s = count_marked(survey, kernels, marked, by_row, diag);
  cb_device_leave(kernels->device);
  return s;
}
