// SPDX-License-Identifier: Apache-2.0
/* The canonical matrix: allocation, the check of its promises, and its hashes. How one is made from
 * coordinates stands in coo.c. */
#include "frontend/csr.h"

#include "base/memory.h"
#include "frontend/coo.h"

#include <string.h>

int64_t cb_csr_bytes(const struct cb_csr *csr) {
  const int64_t pointer = csr->wide ? 8 : 4;
  return (csr->rows + 1) * pointer + csr->nnz * (int64_t)sizeof *csr->col_idx +
         cb_csr_numbers(csr) * (int64_t)sizeof *csr->values;
}

enum cb_status cb_check_sizes(int64_t rows, int64_t cols, struct cb_diag *diag) {
  if (rows < 0 || cols < 0)
    return cb_fail(diag, CB_ERR_ARGUMENT, "a matrix cannot have %lld rows and %lld columns", (long long)rows,
                   (long long)cols);
  if (rows > CB_MAX_DIMENSION || cols > CB_MAX_DIMENSION)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld x %lld is too large: rows and columns end at %d",
                   (long long)rows, (long long)cols, CB_MAX_DIMENSION);
  return CB_OK;
}

enum cb_status cb_csr_alloc(struct cb_csr *csr, int64_t rows, int64_t cols, int64_t nnz,
                            struct cb_diag *diag) {
  *csr = (struct cb_csr){.rows = rows, .cols = cols, .nnz = nnz, .wide = nnz > INT32_MAX, .name = "matrix"};
  const enum cb_status s = cb_check_sizes(rows, cols, diag);
  if (s) return s;
  if (nnz < 0) return cb_fail(diag, CB_ERR_ARGUMENT, "a matrix cannot have %lld nonzeros", (long long)nnz);
  const size_t pointer = csr->wide ? sizeof(int64_t) : sizeof(int32_t);
  csr->row_ptr = cb_alloc((size_t)rows + 1, pointer);
  csr->col_idx = cb_alloc((size_t)nnz, sizeof *csr->col_idx);
  csr->values = cb_alloc((size_t)nnz, sizeof *csr->values);
  if (!csr->row_ptr || !csr->col_idx || !csr->values) {
    const unsigned long long bytes =
        nnz > INT64_MAX / 16 ? UINT64_MAX : (unsigned long long)cb_csr_bytes(csr);
    cb_csr_release(csr);
    return cb_fail_memory(diag, "matrix", bytes);
  }
  memset(csr->row_ptr, 0, pointer);
  return CB_OK;
}

enum cb_status cb_csr_make_complex(struct cb_csr *csr, struct cb_diag *diag) {
  if (csr->is_complex || !csr->values) return CB_OK;
  double *const pairs = cb_alloc((size_t)csr->nnz, 2 * sizeof *pairs);
  if (!pairs) return cb_fail_memory(diag, "complex values", 16ull * (unsigned long long)csr->nnz);
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < csr->nnz; k++) {
    pairs[2 * k] = csr->values[k];
    pairs[2 * k + 1] = 0;
  }
  cb_free(csr->values);
  csr->values = pairs;
  csr->is_complex = 1;
  return CB_OK;
}

void cb_csr_release(struct cb_csr *csr) {
  cb_free(csr->row_ptr);
  cb_free(csr->col_idx);
  cb_free(csr->values);
  *csr = (struct cb_csr){0};
}

/* Whether row `row` keeps its promises; its row pointers are within [0, nnz] already. */
static int row_is_canonical(const struct cb_csr *csr, int64_t row) {
  int64_t previous = -1;
  const int64_t end = cb_csr_row(csr, row + 1);
  for (int64_t i = cb_csr_row(csr, row); i < end; i++) {
    if (csr->col_idx[i] <= previous || csr->col_idx[i] >= csr->cols) return 0;
    previous = csr->col_idx[i];
  }
  return 1;
}

/* The first row whose pointers or columns are wrong, or rows. */
static int64_t first_bad_row(const struct cb_csr *csr) {
  int64_t bad = csr->rows;
#pragma omp parallel for schedule(static) reduction(min : bad)
  for (int64_t row = 0; row < csr->rows; row++) {
    const int64_t begin = cb_csr_row(csr, row), end = cb_csr_row(csr, row + 1);
    if (begin < 0 || begin > end || end > csr->nnz || !row_is_canonical(csr, row))
      if (row < bad) bad = row;
  }
  return bad;
}

enum cb_status cb_csr_check(const struct cb_csr *csr, struct cb_diag *diag) {
  if (csr->rows < 0 || csr->rows > CB_MAX_DIMENSION || csr->cols < 0 || csr->cols > CB_MAX_DIMENSION)
    return cb_fail(diag, CB_ERR_INTERNAL, "matrix '%s' has impossible sizes %lld x %lld", csr->name,
                   (long long)csr->rows, (long long)csr->cols);
  if (csr->wide != (csr->nnz > INT32_MAX))
    return cb_fail(diag, CB_ERR_INTERNAL, "matrix '%s' has row pointers of the wrong width for %lld nonzeros",
                   csr->name, (long long)csr->nnz);
  if (!csr->row_ptr || !csr->col_idx || !csr->values)
    return cb_fail(diag, CB_ERR_INTERNAL, "matrix '%s' lacks an array", csr->name);
  if (cb_csr_row(csr, 0) != 0 || cb_csr_row(csr, csr->rows) != csr->nnz)
    return cb_fail(diag, CB_ERR_INTERNAL, "row pointers of '%s' do not span its %lld nonzeros", csr->name,
                   (long long)csr->nnz);
  const int64_t bad = first_bad_row(csr);
  if (bad < csr->rows)
    return cb_fail(diag, CB_ERR_INTERNAL,
                   "row %lld of '%s' is not canonical: its columns must ascend strictly and stay below %lld",
                   (long long)bad, csr->name, (long long)csr->cols);
  return CB_OK;
}

/* Row lengths fit 32 bits whatever the width of the row pointers, so their hash does not depend on it. */
static struct cb_hash hash_row_lengths(const struct cb_csr *csr, int64_t first) {
  int32_t lengths[CB_HASH_ROWS];
  const int64_t left = csr->rows - first, count = left < CB_HASH_ROWS ? left : CB_HASH_ROWS;
  for (int64_t i = 0; i < count; i++) lengths[i] = (int32_t)cb_csr_row_length(csr, first + i);
  return cb_hash_bytes(lengths, (size_t)count * sizeof *lengths);
}

struct cb_hash cb_csr_pattern_hash(const struct cb_csr *csr) {
  struct cb_hash hash = {0, 0}, digests[CB_HASH_BATCH];
  cb_hash_number(&hash, "rows", (uint64_t)csr->rows);
  cb_hash_number(&hash, "cols", (uint64_t)csr->cols);
  cb_hash_number(&hash, "nnz", (uint64_t)csr->nnz);
  const int64_t chunks = (csr->rows + CB_HASH_ROWS - 1) / CB_HASH_ROWS;
  for (int64_t first = 0; first < chunks; first += CB_HASH_BATCH) {
    const int64_t batch = chunks - first < CB_HASH_BATCH ? chunks - first : CB_HASH_BATCH;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < batch; i++) digests[i] = hash_row_lengths(csr, (first + i) * CB_HASH_ROWS);
    cb_hash_field(&hash, "row lengths", digests, (size_t)batch * sizeof *digests);
  }
  const struct cb_hash columns = cb_hash_array(csr->col_idx, (size_t)csr->nnz, sizeof *csr->col_idx);
  cb_hash_field(&hash, "columns", &columns, sizeof columns);
  return hash;
}

struct cb_hash cb_csr_values_hash(const struct cb_csr *csr) {
  return cb_hash_array(csr->values, (size_t)cb_csr_numbers(csr), sizeof *csr->values);
}
