// SPDX-License-Identifier: Apache-2.0
/* The hot part of a matrix: see chunks.h. */
#include "analysis/chunks.h"

#include "analysis/columns.h"
#include "analysis/histogram.h"
#include "base/integers.h"
#include "base/memory.h"

#include <stdlib.h>

void cb_crux_release(struct cb_crux *crux) {
  cb_free(crux->hot_column);
  cb_free(crux->hot_row);
  cb_free(crux->row_count);
  *crux = (struct cb_crux){0};
}

/* Sets `taken` for as few as add up to `wanted`, the largest counts first and ties ascending. Returns how many; -1: no
 * memory. */
static int64_t take_largest(unsigned char *taken, const uint32_t *counts, int64_t count, int64_t wanted) {
  struct cb_histogram histogram;
  struct cb_fewest fewest = {.all = -1};
  if (cb_histogram_open(&histogram, counts, count)) {
    fewest = cb_histogram_fewest(&histogram, wanted);
    int64_t left = fewest.in_last;
    for (int64_t i = 0; i < count; i++)
      taken[i] = counts[i] > fewest.size || (counts[i] == fewest.size && fewest.size > 0 && left-- > 0);
  }
  cb_histogram_close(&histogram);
  return fewest.all;
}

/* ---- columns, then rows */

static void count_rows(struct cb_crux *crux, const struct cb_csr *csr) {
#pragma omp parallel for schedule(static, 1024)
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      crux->row_count[row] += crux->hot_column[csr->col_idx[k]];
}

static void count_nonzeros(struct cb_crux *crux, const struct cb_csr *csr) {
  int64_t nonzeros = 0;
#pragma omp parallel for schedule(static) reduction(+ : nonzeros)
  for (int64_t row = 0; row < csr->rows; row++) nonzeros += crux->hot_row[row] ? crux->row_count[row] : 0;
  crux->nonzeros = nonzeros;
}

static int allocate(struct cb_crux *crux, const struct cb_csr *csr) {
  crux->hot_column = cb_calloc((size_t)csr->cols, 1);
  crux->hot_row = cb_calloc((size_t)csr->rows, 1);
  crux->row_count = cb_calloc((size_t)csr->rows, sizeof *crux->row_count);
  return crux->hot_column && crux->hot_row && crux->row_count;
}

enum cb_status cb_crux_find(struct cb_crux *crux, const struct cb_csr *csr, int cols_percent, int rows_percent,
                            struct cb_diag *diag) {
  uint32_t *counts;
  *crux = (struct cb_crux){.cols = -1, .rows = -1};
  const enum cb_status s = cb_columns_counted(&counts, csr, diag);
  if (s) return s;
  if (allocate(crux, csr))
    crux->cols = take_largest(crux->hot_column, counts, csr->cols, cb_percent_of(csr->nnz, cols_percent));
  cb_free(counts);
  if (crux->cols >= 0) {
    count_rows(crux, csr);
    crux->rows = take_largest(crux->hot_row, crux->row_count, csr->rows, cb_percent_of(csr->nnz, rows_percent));
  }
  if (crux->rows < 0) {
    cb_crux_release(crux);
    return cb_fail_memory(diag, "hot columns", (uint64_t)csr->cols * sizeof(uint32_t));
  }
  count_nonzeros(crux, csr);
  return CB_OK;
}

/* ---- the order of rows */

struct row_key {
  uint32_t count;
  int32_t row;
};

static int compare_keys(const void *a, const void *b) {
  const struct row_key *one = a, *other = b;
  if (one->count != other->count) return one->count < other->count ? 1 : -1;
  return one->row < other->row ? -1 : one->row > other->row;
}

static int sort_rows(struct cb_row_order *order, const uint32_t *counts) {
  struct row_key *keys = cb_alloc((size_t)order->count, sizeof *keys);
  if (!keys) return 0;
  for (int64_t i = 0; i < order->count; i++) keys[i] = (struct row_key){counts[order->row[i]], order->row[i]};
  qsort(keys, (size_t)order->count, sizeof *keys, compare_keys);
  for (int64_t i = 0; i < order->count; i++) order->row[i] = keys[i].row;
  cb_free(keys);
  return 1;
}

struct cb_row_order *cb_crux_order(const struct cb_crux *crux, int64_t rows, int sorted) {
  struct cb_row_order *order = cb_calloc(1, sizeof *order);
  if (!order) return NULL;
  order->row = cb_alloc((size_t)crux->rows, sizeof *order->row);
  for (int64_t row = 0; order->row && row < rows; row++)
    if (crux->hot_row[row]) order->row[order->count++] = (int32_t)row;
  if (order->row && (!sorted || sort_rows(order, crux->row_count))) return order;
  cb_row_order_release(order);
  return NULL;
}

void cb_row_order_release(void *order) {
  if (order) cb_free(((struct cb_row_order *)order)->row);
  cb_free(order);
}
