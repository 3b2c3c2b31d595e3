// SPDX-License-Identifier: Apache-2.0
/* Reading the caller's indices, whatever their width and base, and what the files of matrix.h share. */
#ifndef CBGEN_RUNTIME_OPERATOR_MATRIX_PARTS_H
#define CBGEN_RUNTIME_OPERATOR_MATRIX_PARTS_H

#include "runtime/operator/matrix.h"

/* Counted from 0. Unsigned, so that no value a caller may have written overflows. */
static inline int64_t cb_view_row(const struct cb_view *view, int64_t row) {
  const int64_t given =
      view->row_wide ? ((const int64_t *)view->row_ptr)[row] : ((const int32_t *)view->row_ptr)[row];
  return (int64_t)((uint64_t)given - (uint64_t)view->base);
}

static inline int64_t cb_view_col(const struct cb_view *view, int64_t k) {
  const int64_t given =
      view->col_wide ? ((const int64_t *)view->col_idx)[k] : ((const int32_t *)view->col_idx)[k];
  return (int64_t)((uint64_t)given - (uint64_t)view->base);
}

/* Which of the caller's values entry k of the rows has. */
static inline int64_t cb_view_entry(const struct cb_view *view, int64_t k) {
  if (!view->entries) return k;
  return view->entries_wide ? (int64_t)((const uint64_t *)view->entries)[k] : ((const uint32_t *)view->entries)[k];
}

/* The view has the expansion's arrays from now on. */
void cb_view_use_rows(struct cb_view *view, const struct cb_expansion *expansion);

/* Numbers of entries, and of lists of them, keep the top bit free for the value map's flag. */
static inline int cb_needs_wide(int64_t count) {
  return count >= INT32_MAX;
}

static inline void cb_set_number(void *numbers, int wide, int64_t i, int64_t number) {
  if (wide) ((uint64_t *)numbers)[i] = (uint64_t)number;
  else ((uint32_t *)numbers)[i] = (uint32_t)number;
}

#endif
