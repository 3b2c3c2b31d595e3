// SPDX-License-Identifier: Apache-2.0
/* The caller's matrix made canonical, or transposed: see matrix.h. Rows that ascend strictly are copied as
 * they are. Others are sorted row by row. To transpose, entries are sorted by column with a counting sort: each
 * part of the rows has its own cursor for every column, so that the result does not depend on the number of
 * threads. Either way the entries are in canonical order then, with duplicates side by side, which
 * `join_duplicates` adds up. */
#include "base/memory.h"
#include "base/real.h"
#include "runtime/operator/matrix.h"
#include "runtime/operator/matrix_parts.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* All entries in canonical order: rows of the result, with duplicates. */
struct sorted {
  int64_t rows, cols, count;
  int wide;         /* entries are uint64_t */
  int64_t *row_ptr; /* rows + 1 */
  int32_t *columns;
  void *entries; /* the caller's */
};

double cb_view_value(const struct cb_view *view, int64_t k) {
  if (!view->values) return 1;
  return cb_real_get(view->values, view->value_type, k);
}

double cb_view_part(const struct cb_view *view, int64_t k, int part) {
  if (!view->values || !cb_type_is_complex(view->value_type)) return part ? 0 : cb_view_value(view, k);
  return cb_real_get(view->values, cb_type_of_part(view->value_type), 2 * k + part);
}

/* The number of the caller's entry `k` to place `place` of the matrix, or added to what is there. */
static void put_value(struct cb_csr *csr, int64_t place, const struct cb_view *view, int64_t k, int adds) {
  if (!csr->is_complex) {
    csr->values[place] = cb_view_value(view, k) + (adds ? csr->values[place] : -0.0);
    return;
  }
  for (int part = 0; part < 2; part++)
    csr->values[2 * place + part] = cb_view_part(view, k, part) + (adds ? csr->values[2 * place + part] : -0.0);
}

static enum cb_status alloc_matrix(struct cb_csr *csr, const struct cb_view *view, int64_t rows, int64_t cols,
                                   int64_t nnz, struct cb_diag *diag) {
  const enum cb_status s = cb_csr_alloc(csr, rows, cols, nnz, diag);
  return s || !view->is_complex ? s : cb_csr_make_complex(csr, diag);
}

void cb_order_release(struct cb_order *order) {
  cb_free(order->entries);
  cb_free(order->starts);
  *order = (struct cb_order){0};
}

static void release_sorted(struct sorted *sorted) {
  cb_free(sorted->row_ptr);
  cb_free(sorted->columns);
  cb_free(sorted->entries);
  *sorted = (struct sorted){0};
}

static int64_t get_number(const void *numbers, int wide, int64_t i) {
  return wide ? (int64_t)((const uint64_t *)numbers)[i] : (int64_t)((const uint32_t *)numbers)[i];
}

static void set_row(struct cb_csr *csr, int64_t row, int64_t value) {
  if (csr->wide)
    ((int64_t *)csr->row_ptr)[row] = value;
  else
    ((int32_t *)csr->row_ptr)[row] = (int32_t)value;
}

static enum cb_status alloc_sorted(struct sorted *sorted, int64_t rows, int64_t cols, int64_t count,
                                   struct cb_diag *diag) {
  *sorted = (struct sorted){.rows = rows, .cols = cols, .count = count, .wide = cb_needs_wide(count)};
  sorted->row_ptr = cb_calloc((size_t)rows + 1, sizeof *sorted->row_ptr);
  sorted->columns = cb_alloc((size_t)count, sizeof *sorted->columns);
  sorted->entries = cb_alloc((size_t)count, sorted->wide ? 8 : 4);
  if (sorted->row_ptr && sorted->columns && sorted->entries) return CB_OK;
  return cb_fail_memory(diag, "the sorted matrix", (unsigned long long)count * 8);
}

/* ---- rows as they are */

static enum cb_status copy(struct cb_csr *csr, const struct cb_view *view, struct cb_diag *diag) {
  const enum cb_status s = alloc_matrix(csr, view, view->rows, view->cols, view->nnz, diag);
  if (s) return s;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row <= view->rows; row++) set_row(csr, row, cb_view_row(view, row));
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < view->nnz; k++) {
    csr->col_idx[k] = (int32_t)cb_view_col(view, k);
    put_value(csr, k, view, cb_view_entry(view, k), 0);
  }
  return CB_OK;
}

/* The view's own order of values, for as long as the order lives. */
static enum cb_status copy_entries(struct cb_order *order, const struct cb_view *view, struct cb_diag *diag) {
  if (!view->entries) return CB_OK;
  order->entries = cb_alloc((size_t)view->nnz, order->wide ? 8 : 4);
  if (!order->entries) return cb_fail_memory(diag, "the order of values", (unsigned long long)view->nnz * 4);
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < view->nnz; k++) cb_set_number(order->entries, order->wide, k, cb_view_entry(view, k));
  return CB_OK;
}

/* ---- rows sorted */

static int compare_keys(const void *a, const void *b) {
  const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return (left > right) - (left < right);
}

/* Column in the upper half, place in the row in the lower: the order of keys is the order of columns, and of
 * equal ones that in which they were given. */
static void sort_keys(uint64_t *keys, int64_t count) {
  enum { SHORT = 48 };
  if (count > SHORT) {
    qsort(keys, (size_t)count, sizeof *keys, compare_keys);
    return;
  }
  for (int64_t i = 1; i < count; i++) {
    const uint64_t key = keys[i];
    int64_t at = i;
    for (; at && keys[at - 1] > key; at--) keys[at] = keys[at - 1];
    keys[at] = key;
  }
}

static void sort_row(struct sorted *sorted, uint64_t *keys, const struct cb_view *view, int64_t row) {
  const int64_t begin = cb_view_row(view, row), end = cb_view_row(view, row + 1);
  for (int64_t k = begin; k < end; k++)
    keys[k] = (uint64_t)cb_view_col(view, k) << 32 | (uint64_t)(k - begin);
  sort_keys(keys + begin, end - begin);
  for (int64_t k = begin; k < end; k++) {
    sorted->columns[k] = (int32_t)(keys[k] >> 32);
    cb_set_number(sorted->entries, sorted->wide, k, cb_view_entry(view, begin + (int64_t)(keys[k] & UINT32_MAX)));
  }
  sorted->row_ptr[row + 1] = end;
}

static enum cb_status sort_rows(struct sorted *sorted, const struct cb_view *view, struct cb_diag *diag) {
  int64_t longest = 0;
#pragma omp parallel for schedule(static) reduction(max : longest)
  for (int64_t row = 0; row < view->rows; row++) {
    const int64_t length = cb_view_row(view, row + 1) - cb_view_row(view, row);
    longest = length > longest ? length : longest;
  }
  if (longest > UINT32_MAX)
    return cb_fail(diag, CB_ERR_LIMIT, "a row has %lld entries; unsorted ones may have up to %lld",
                   (long long)longest, (long long)UINT32_MAX);
  enum cb_status s = alloc_sorted(sorted, view->rows, view->cols, view->nnz, diag);
  if (s) return s;
  uint64_t *keys = cb_alloc((size_t)view->nnz, sizeof *keys);
  if (!keys) return cb_fail_memory(diag, "sorting the matrix", (unsigned long long)view->nnz * sizeof *keys);
#pragma omp parallel for schedule(dynamic, 256)
  for (int64_t row = 0; row < view->rows; row++) sort_row(sorted, keys, view, row);
  cb_free(keys);
  return CB_OK;
}

/* ---- transposed */

/* Cursors for every column and part take at most 8 bytes per entry and column. */
static int choose_parts(const struct cb_view *view) {
  const int64_t most = view->cols ? (view->nnz + view->cols) / view->cols : 1,
                threads = omp_get_max_threads();
  return (int)(most < 1 ? 1 : most < threads ? most : threads);
}

/* The first row of a part: parts have about as many entries each. */
static int64_t part_row(const struct cb_view *view, int part, int parts) {
  const int64_t wanted = view->nnz / parts * part + view->nnz % parts * part / parts;
  int64_t low = 0, high = view->rows;
  if (part == parts) return view->rows;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (cb_view_row(view, middle) < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void count_part(const struct cb_view *view, int64_t *cursors, int64_t first, int64_t last) {
  const int64_t end = cb_view_row(view, last);
  for (int64_t k = cb_view_row(view, first); k < end; k++) cursors[cb_view_col(view, k)]++;
}

static void move_part(struct sorted *sorted, const struct cb_view *view, int64_t *cursors, int64_t first,
                      int64_t last) {
  for (int64_t row = first; row < last; row++)
    for (int64_t k = cb_view_row(view, row); k < cb_view_row(view, row + 1); k++) {
      const int64_t place = cursors[cb_view_col(view, k)]++;
      sorted->columns[place] = (int32_t)row;
      cb_set_number(sorted->entries, sorted->wide, place, cb_view_entry(view, k));
    }
}

/* Counts become places: column by column, and within one part by part. */
static void place_columns(struct sorted *sorted, int64_t *cursors, int parts) {
  int64_t next = 0;
  for (int64_t col = 0; col < sorted->rows; col++) {
    for (int part = 0; part < parts; part++) {
      int64_t *cursor = cursors + part * sorted->rows + col;
      const int64_t count = *cursor;
      *cursor = next;
      next += count;
    }
    sorted->row_ptr[col + 1] = next;
  }
}

static enum cb_status sort_columns(struct sorted *sorted, const struct cb_view *view, struct cb_diag *diag) {
  const int parts = choose_parts(view);
  enum cb_status s = alloc_sorted(sorted, view->cols, view->rows, view->nnz, diag);
  if (s) return s;
  int64_t *cursors = cb_calloc((size_t)parts * (size_t)view->cols, sizeof *cursors);
  if (!cursors)
    return cb_fail_memory(diag, "transposing the matrix", (unsigned long long)view->cols * sizeof *cursors);
#pragma omp parallel for schedule(static, 1) num_threads(parts)
  for (int part = 0; part < parts; part++)
    count_part(view, cursors + part * view->cols, part_row(view, part, parts),
               part_row(view, part + 1, parts));
  place_columns(sorted, cursors, parts);
#pragma omp parallel for schedule(static, 1) num_threads(parts)
  for (int part = 0; part < parts; part++)
    move_part(sorted, view, cursors + part * view->cols, part_row(view, part, parts),
              part_row(view, part + 1, parts));
  cb_free(cursors);
  return CB_OK;
}

/* ---- duplicates joined */

static int64_t distinct_in(const struct sorted *sorted, int64_t row) {
  int64_t distinct = 0;
  for (int64_t k = sorted->row_ptr[row]; k < sorted->row_ptr[row + 1]; k++)
    distinct += k == sorted->row_ptr[row] || sorted->columns[k] != sorted->columns[k - 1];
  return distinct;
}

/* The places where the canonical rows begin. */
static enum cb_status count_distinct(int64_t **starts, const struct sorted *sorted, struct cb_diag *diag) {
  *starts = cb_alloc((size_t)sorted->rows + 1, sizeof **starts);
  if (!*starts) return cb_fail_memory(diag, "row pointers", (unsigned long long)sorted->rows * 8);
  int64_t *const first = *starts;
  first[0] = 0;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < sorted->rows; row++) first[row + 1] = distinct_in(sorted, row);
  for (int64_t row = 0; row < sorted->rows; row++) first[row + 1] += first[row];
  return CB_OK;
}

/* One row: columns, sums, and, where there are duplicates anywhere, where each nonzero's entries start. */
static void join_row(struct cb_csr *csr, struct cb_order *order, const struct sorted *sorted,
                     const struct cb_view *view, int64_t row, int64_t place) {
  const int64_t begin = sorted->row_ptr[row], end = sorted->row_ptr[row + 1];
  for (int64_t k = begin; k < end; k++) {
    const int64_t entry = get_number(sorted->entries, sorted->wide, k);
    if (k > begin && sorted->columns[k] == sorted->columns[k - 1]) {
      put_value(csr, place - 1, view, entry, 1);
      continue;
    }
    csr->col_idx[place] = sorted->columns[k];
    put_value(csr, place, view, entry, 0);
    if (order->starts) cb_set_number(order->starts, order->wide, place, k);
    place++;
  }
}

static enum cb_status join_duplicates(struct cb_csr *csr, struct cb_order *order, struct sorted *sorted,
                                      const struct cb_view *view, struct cb_diag *diag) {
  int64_t *starts;
  enum cb_status s = count_distinct(&starts, sorted, diag);
  if (s) return s;
  const int64_t nnz = starts[sorted->rows];
  s = alloc_matrix(csr, view, sorted->rows, sorted->cols, nnz, diag);
  order->wide = sorted->wide;
  if (!s && nnz < sorted->count) {
    order->starts = cb_alloc((size_t)nnz + 1, order->wide ? 8 : 4);
    if (!order->starts) s = cb_fail_memory(diag, "the order of values", (unsigned long long)nnz * 4);
  }
  if (!s) {
#pragma omp parallel for schedule(dynamic, 1024)
    for (int64_t row = 0; row < sorted->rows; row++) {
      set_row(csr, row, starts[row]);
      join_row(csr, order, sorted, view, row, starts[row]);
    }
    set_row(csr, sorted->rows, nnz);
    if (order->starts) cb_set_number(order->starts, order->wide, nnz, sorted->count);
    order->entries = sorted->entries;
    sorted->entries = NULL;
  }
  cb_free(starts);
  return s;
}

/* ---- the whole */

enum cb_status cb_view_canonical(struct cb_csr *csr, struct cb_order *order, const struct cb_view *view,
                                 int canonical, int transpose, struct cb_diag *diag) {
  struct sorted sorted = {0};
  *csr = (struct cb_csr){0};
  *order = (struct cb_order){.wide = cb_needs_wide(view->nnz)};
  enum cb_status s;
  if (canonical && !transpose) {
    s = copy(csr, view, diag);
    if (!s) s = copy_entries(order, view, diag);
  } else {
    s = transpose ? sort_columns(&sorted, view, diag) : sort_rows(&sorted, view, diag);
    if (!s) s = join_duplicates(csr, order, &sorted, view, diag);
    release_sorted(&sorted);
  }
  if (!s) memcpy(csr->name, view->name, sizeof csr->name);
  if (!s) csr->pattern = !view->values && !order->starts; /* a sum of ones is a value */
  return s;
}
