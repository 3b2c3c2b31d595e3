// SPDX-License-Identifier: Apache-2.0
/* A view in another order of rows and columns: see cb_view_reorder in matrix.h. Entries of a row keep their order. */
#include "base/memory.h"
#include "runtime/operator/matrix.h"
#include "runtime/operator/matrix_parts.h"

/* The row pointers, from the lengths of the rows in their order. */
static void place_rows(int64_t *row_ptr, const struct cb_view *view, const int32_t *rows) {
  row_ptr[0] = 0;
  for (int64_t row = 0; row < view->rows; row++)
    row_ptr[row + 1] = row_ptr[row] + cb_view_row(view, rows[row] + INT64_C(1)) - cb_view_row(view, rows[row]);
}

static void move_entries(const struct cb_expansion *to, const struct cb_view *view, const int32_t *rows,
                         const int32_t *places) {
  const int wide = cb_needs_wide(view->nnz);
#pragma omp parallel for schedule(dynamic, 256)
  for (int64_t row = 0; row < view->rows; row++) {
    int64_t from = cb_view_row(view, rows[row]);
    for (int64_t k = to->row_ptr[row]; k < to->row_ptr[row + 1]; k++, from++) {
      to->col_idx[k] = places[cb_view_col(view, from)];
      cb_set_number(to->entries, wide, k, cb_view_entry(view, from));
    }
  }
}

static enum cb_status reorder(struct cb_expansion *to, struct cb_view *view, const struct cb_reordering *reordering,
                              struct cb_diag *diag) {
  const size_t entries = (size_t)view->nnz, width = cb_needs_wide(view->nnz) ? 8 : 4;
  int32_t *places = cb_order_inverse(reordering->columns, view->cols);
  to->row_ptr = cb_alloc((size_t)view->rows + 1, sizeof *to->row_ptr);
  to->col_idx = cb_alloc(entries, sizeof *to->col_idx);
  to->entries = cb_alloc(entries, width);
  const int has_room = places && to->row_ptr && to->col_idx && to->entries;
  if (has_room) {
    place_rows(to->row_ptr, view, reordering->rows);
    move_entries(to, view, reordering->rows, places);
  }
  cb_free(places);
  return has_room ? CB_OK
                  : cb_fail_memory(diag, "the matrix in its order", (uint64_t)view->rows * 8 + entries * (4 + width));
}

enum cb_status cb_view_reorder(struct cb_expansion *expansion, struct cb_reordering *reordering, struct cb_view *view,
                               enum cb_reorder kind, struct cb_diag *diag) {
  const struct cb_indices indices = {.rows = view->rows,
                                     .cols = view->cols,
                                     .row_ptr = view->row_ptr,
                                     .col_idx = view->col_idx,
                                     .row_wide = view->row_wide,
                                     .col_wide = view->col_wide,
                                     .base = view->base};
  struct cb_expansion to = {0};
  int canonical;
  enum cb_status s = cb_view_check(view, &canonical, diag);
  if (!s) s = cb_reordering_find(reordering, &indices, kind, diag);
  if (s || reordering->method == CB_ORDER_GIVEN) return s;
  s = reorder(&to, view, reordering, diag);
  if (s) {
    cb_expansion_release(&to);
    return s;
  }
  cb_expansion_release(expansion);
  *expansion = to;
  cb_view_use_rows(view, expansion);
  return CB_OK;
}
