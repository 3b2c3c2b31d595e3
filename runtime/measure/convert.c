// SPDX-License-Identifier: Apache-2.0
/* Conversions for baselines: see convert.h. All are parallel over rows, slices or block rows. Each of these fills its
 * own part of the result, which therefore does not depend on the number of threads. */
#include "runtime/measure/convert.h"

#include "base/integers.h"
#include "base/memory.h"
#include "base/real.h"

#include <stdlib.h>
#include <string.h>

/* Nonzero k of the matrix to place `at`; -1: zero. */
static void put(void *values, enum cb_type type, int64_t at, const struct cb_csr *csr, int64_t k) {
  const int parts = cb_type_parts(type);
  for (int part = 0; part < parts; part++)
    cb_real_set(values, cb_type_of_part(type), parts * at + part, k < 0 ? 0 : csr->values[parts * k + part]);
}

enum cb_status cb_convert_values(void **values, const struct cb_csr *csr, enum cb_type type,
                                 struct cb_diag *diag) {
  *values = cb_alloc((size_t)csr->nnz, cb_type_size(type));
  if (!*values) return cb_fail_memory(diag, "converted values", (uint64_t)csr->nnz * cb_type_size(type));
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < csr->nnz; k++) put(*values, type, k, csr, k);
  return CB_OK;
}

enum cb_status cb_convert_row_indices(int32_t **rows, const struct cb_csr *csr, struct cb_diag *diag) {
  int32_t *const result = cb_alloc((size_t)csr->nnz, sizeof *result);
  *rows = result;
  if (!result) return cb_fail_memory(diag, "row indices", (uint64_t)csr->nnz * sizeof *result);
#pragma omp parallel for schedule(dynamic, 1024)
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) result[k] = (int32_t)row;
  return CB_OK;
}

/* ---- sliced ELL */

static int64_t slice_width(const struct cb_csr *csr, int64_t slice, int64_t number) {
  const int64_t first = slice * number, end = first + slice < csr->rows ? first + slice : csr->rows;
  int64_t width = 0;
  for (int64_t row = first; row < end; row++)
    if (cb_csr_row_length(csr, row) > width) width = cb_csr_row_length(csr, row);
  return width;
}

int64_t cb_sell_slots(const struct cb_csr *csr, int64_t slice) {
  const int64_t slices = cb_divide_up(csr->rows, slice);
  int64_t slots = 0;
#pragma omp parallel for schedule(static) reduction(+ : slots)
  for (int64_t i = 0; i < slices; i++) slots += slice * slice_width(csr, slice, i);
  return slots;
}

static void fill_slice(const struct cb_sell *sell, const struct cb_csr *csr, enum cb_type type,
                       int64_t number) {
  const int64_t first_slot = sell->offsets[number], slice = sell->slice;
  const int64_t width = (sell->offsets[number + 1] - first_slot) / slice;
  for (int64_t lane = 0; lane < slice; lane++) {
    const int64_t row = slice * number + lane;
    const int64_t first = row < csr->rows ? cb_csr_row(csr, row) : 0;
    const int64_t length = row < csr->rows ? cb_csr_row_length(csr, row) : 0;
    for (int64_t j = 0; j < width; j++) {
      const int64_t slot = first_slot + slice * j + lane;
      sell->columns[slot] = j < length ? csr->col_idx[first + j] : -1;
      put(sell->values, type, slot, csr, j < length ? first + j : -1);
    }
  }
}

enum cb_status cb_sell_build(struct cb_sell *sell, const struct cb_csr *csr, int64_t slice, enum cb_type type,
                             struct cb_diag *diag) {
  const int64_t slots = cb_sell_slots(csr, slice);
  *sell = (struct cb_sell){.slice = slice, .slices = cb_divide_up(csr->rows, slice), .slots = slots};
  if (slots > INT32_MAX)
    return cb_fail(diag, CB_ERR_LIMIT, "sliced ELL would have %lld slots, more than 32-bit offsets reach",
                   (long long)slots);
  sell->offsets = cb_alloc((size_t)sell->slices + 1, sizeof *sell->offsets);
  sell->columns = cb_alloc((size_t)slots, sizeof *sell->columns);
  sell->values = cb_alloc((size_t)slots, cb_type_size(type));
  if (!sell->offsets || !sell->columns || !sell->values) {
    cb_sell_release(sell);
    return cb_fail_memory(diag, "sliced ELL", (uint64_t)slots * (sizeof(int32_t) + cb_type_size(type)));
  }
  sell->offsets[0] = 0;
  for (int64_t i = 0; i < sell->slices; i++)
    sell->offsets[i + 1] = (int32_t)(sell->offsets[i] + slice * slice_width(csr, slice, i));
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t i = 0; i < sell->slices; i++) fill_slice(sell, csr, type, i);
  return CB_OK;
}

void cb_sell_release(struct cb_sell *sell) {
  cb_free(sell->offsets);
  cb_free(sell->columns);
  cb_free(sell->values);
  *sell = (struct cb_sell){0};
}

/* ---- block CSR */

/* The block columns of one block row. `seen[c]` is 1 + the last block row that had column c: a table for each
 * thread, so that it needs clearing only once. */
struct collector {
  const struct cb_csr *csr;
  int64_t block;
  int32_t *seen;
};

static int64_t collect(const struct collector *collector, int64_t block_row, int32_t *columns) {
  const struct cb_csr *csr = collector->csr;
  const int64_t first = collector->block * block_row;
  const int64_t end = first + collector->block < csr->rows ? first + collector->block : csr->rows;
  int64_t count = 0;
  for (int64_t k = cb_csr_row(csr, first); k < cb_csr_row(csr, end); k++) {
    const int64_t column = csr->col_idx[k] / collector->block;
    if (collector->seen[column] == block_row + 1) continue;
    collector->seen[column] = (int32_t)(block_row + 1);
    if (columns) columns[count] = (int32_t)column;
    count++;
  }
  return count;
}

static int ascending(const void *a, const void *b) {
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* Columns of all block rows (already counted in row_ptr), then the values. `place[c]` is the block of column
 * c. */
static void fill_blocks(const struct cb_bsr *bsr, const struct collector *collector, int32_t *place,
                        enum cb_type type, int64_t block_row) {
  const struct cb_csr *csr = collector->csr;
  const int64_t block = bsr->block, first = bsr->row_ptr[block_row];
  const int64_t count = collect(collector, block_row, bsr->columns + first);
  qsort(bsr->columns + first, (size_t)count, sizeof *bsr->columns, ascending);
  for (int64_t i = first; i < first + count; i++) place[bsr->columns[i]] = (int32_t)i;
  for (int64_t row = block * block_row; row < block * (block_row + 1) && row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      const int64_t column = csr->col_idx[k];
      const int64_t at = block * place[column / block] + row % block;
      put(bsr->values, type, at * block + column % block, csr, k);
    }
}

/* Returns how many blocks there are; writes how many each block row has to counts[1 …] unless that is NULL. -1: out of
 * memory. */
static int64_t count_blocks(const struct cb_csr *csr, int64_t block, int32_t *counts) {
  const int64_t rows = cb_divide_up(csr->rows, block), cols = cb_divide_up(csr->cols, block);
  int64_t total = 0;
  int failed = 0;
#pragma omp parallel reduction(+ : total) reduction(| : failed)
  {
    struct collector collector = {csr, block, cb_calloc((size_t)cols, sizeof(int32_t))};
    failed |= !collector.seen;
#pragma omp for schedule(dynamic, 256)
    for (int64_t i = 0; i < rows; i++) {
      const int64_t count = failed ? 0 : collect(&collector, i, NULL);
      if (counts) counts[i + 1] = (int32_t)count;
      total += count;
    }
    cb_free(collector.seen);
  }
  return failed ? -1 : total;
}

enum cb_status cb_bsr_count(int64_t *blocks, const struct cb_csr *csr, int64_t block, struct cb_diag *diag) {
  *blocks = count_blocks(csr, block, NULL);
  if (*blocks >= 0) return CB_OK;
  return cb_fail_memory(diag, "counting blocks", (uint64_t)csr->cols / (uint64_t)block * sizeof(int32_t));
}

static int fill_all(const struct cb_bsr *bsr, const struct cb_csr *csr, enum cb_type type) {
  int failed = 0;
#pragma omp parallel reduction(| : failed)
  {
    struct collector collector = {csr, bsr->block, cb_calloc((size_t)bsr->block_cols, sizeof(int32_t))};
    int32_t *place = cb_alloc((size_t)bsr->block_cols, sizeof *place);
    failed |= !collector.seen || !place;
#pragma omp for schedule(dynamic, 256)
    for (int64_t i = 0; i < bsr->block_rows; i++)
      if (!failed) fill_blocks(bsr, &collector, place, type, i);
    cb_free(collector.seen);
    cb_free(place);
  }
  return !failed;
}

enum cb_status cb_bsr_build(struct cb_bsr *bsr, const struct cb_csr *csr, int64_t block, enum cb_type type,
                            struct cb_diag *diag) {
  *bsr = (struct cb_bsr){.block = block,
                         .block_rows = cb_divide_up(csr->rows, block),
                         .block_cols = cb_divide_up(csr->cols, block)};
  bsr->row_ptr = cb_calloc((size_t)bsr->block_rows + 1, sizeof *bsr->row_ptr);
  bsr->blocks = bsr->row_ptr ? count_blocks(csr, block, bsr->row_ptr) : -1;
  if (bsr->blocks > INT32_MAX) {
    const long long blocks = bsr->blocks;
    cb_bsr_release(bsr);
    return cb_fail(diag, CB_ERR_LIMIT, "block CSR would have %lld blocks, more than 32-bit offsets reach",
                   blocks);
  }
  if (bsr->blocks >= 0) {
    for (int64_t i = 0; i < bsr->block_rows; i++) bsr->row_ptr[i + 1] += bsr->row_ptr[i];
    bsr->columns = cb_alloc((size_t)bsr->blocks, sizeof *bsr->columns);
    bsr->values = cb_calloc((size_t)(bsr->blocks * block * block), cb_type_size(type));
  }
  if (bsr->columns && bsr->values && fill_all(bsr, csr, type)) return CB_OK;
  cb_bsr_release(bsr);
  return cb_fail_memory(diag, "block CSR", 0);
}

void cb_bsr_release(struct cb_bsr *bsr) {
  cb_free(bsr->row_ptr);
  cb_free(bsr->columns);
  cb_free(bsr->values);
  *bsr = (struct cb_bsr){0};
}
