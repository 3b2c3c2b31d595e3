// SPDX-License-Identifier: Apache-2.0
/* The caller's matrix: see matrix.h. Taking and checking a view, and its hash; how it becomes canonical is in
 * matrix_order.c. */
#include "runtime/operator/matrix.h"

#include "base/memory.h"
#include "runtime/operator/matrix_parts.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define SAME(public_name, own) _Static_assert((int)(public_name) == (int)(own), "types are numbered alike")
SAME(CBGEN_F64, CB_F64);
SAME(CBGEN_F32, CB_F32);
SAME(CBGEN_F16, CB_F16);
SAME(CBGEN_BF16, CB_BF16);

enum cb_status cb_take_struct(void *to, size_t size, size_t least, const void *from, const char *what,
                              struct cb_diag *diag) {
  enum { MOST = 4096 }; /* no version's struct is that long; nothing behind it is read */
  size_t given = 0;
  if (!from) return cb_fail(diag, CB_ERR_ARGUMENT, "no '%s' was given", what);
  memcpy(&given, from, sizeof given);
  if (given < least || given > MOST)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'struct_size' of the %s is %zu; set it to sizeof(%s)", what, given,
                   what);
  const unsigned char *bytes = from;
  for (size_t i = size; i < given; i++)
    if (bytes[i])
      return cb_fail(diag, CB_ERR_UNSUPPORTED,
                     "a '%s' of %zu bytes sets members that this version does not know (it has %zu bytes)",
                     what, given, size);
  memset(to, 0, size);
  memcpy(to, from, given < size ? given : size);
  return CB_OK;
}

/* ---- shape */

static enum cb_status take_width(int *wide, int bits, const char *what, struct cb_diag *diag) {
  *wide = bits == 64;
  if (!bits || bits == 32 || bits == 64) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' is %d; it is 32 or 64", what, bits);
}

static enum cb_status check_shape(const cbgen_csr *csr, struct cb_diag *diag) {
  if (csr->index_base != 0 && csr->index_base != 1)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'index_base' is %d; it is 0 or 1", csr->index_base);
  if ((int)csr->value_type < 0 || csr->value_type > CBGEN_BF16)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'value_type' is %d; it is one of cbgen_type",
                   (int)csr->value_type);
  if (csr->memory != CBGEN_HOST && csr->memory != CBGEN_DEVICE)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'memory' is %d; it is one of cbgen_memory", (int)csr->memory);
  if (csr->rows < 0 || csr->cols < 0 || csr->nnz < 0)
    return cb_fail(diag, CB_ERR_ARGUMENT, "a matrix of %lld x %lld with %lld nonzeros: none may be negative",
                   (long long)csr->rows, (long long)csr->cols, (long long)csr->nnz);
  if (csr->rows > CB_MAX_DIMENSION || csr->cols > CB_MAX_DIMENSION)
    return cb_fail(diag, CB_ERR_LIMIT, "a matrix of %lld x %lld: at most %d rows and columns",
                   (long long)csr->rows, (long long)csr->cols, (int)CB_MAX_DIMENSION);
  if (csr->nnz > INT64_MAX / 16)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld nonzeros do not fit any memory", (long long)csr->nnz);
  if (!csr->row_ptr || (csr->nnz && !csr->col_idx))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'row_ptr' or 'col_idx' is NULL");
  return CB_OK;
}

static enum cb_status check_aligned(const void *array, size_t size, const char *what, struct cb_diag *diag) {
  if ((uintptr_t)array % size == 0) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' is not aligned to its elements of %zu bytes", what, size);
}

/* Names go into a comment and an identifier: anything else than printable ASCII becomes '_'. */
static void take_name(char *name, size_t size, const char *given) {
  snprintf(name, size, "%.60s", given && *given ? given : "matrix");
  for (char *c = name; *c; c++)
    if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\') *c = '_';
}

enum cb_status cb_view_take(struct cb_view *view, const cbgen_csr *given, struct cb_diag *diag) {
  cbgen_csr csr;
  enum cb_status s = cb_take_struct(&csr, sizeof csr, sizeof csr, given, "cbgen_csr", diag);
  *view = (struct cb_view){0};
  if (!s) s = take_width(&view->row_wide, csr.row_ptr_bits, "row_ptr_bits", diag);
  if (!s) s = take_width(&view->col_wide, csr.col_idx_bits, "col_idx_bits", diag);
  if (!s) s = check_shape(&csr, diag);
  if (!s) s = check_aligned(csr.row_ptr, view->row_wide ? 8 : 4, "row_ptr", diag);
  if (!s) s = check_aligned(csr.col_idx, view->col_wide ? 8 : 4, "col_idx", diag);
  if (!s) s = check_aligned(csr.values, cb_type_size((enum cb_type)csr.value_type), "values", diag);
  if (s) return s;
  view->rows = csr.rows;
  view->cols = csr.cols;
  view->nnz = csr.nnz;
  view->row_ptr = csr.row_ptr;
  view->col_idx = csr.col_idx;
  view->values = csr.values;
  view->base = csr.index_base;
  view->value_type = (enum cb_type)csr.value_type;
  view->on_device = csr.memory == CBGEN_DEVICE;
  view->stream = csr.stream;
  take_name(view->name, sizeof view->name, csr.name);
  return CB_OK;
}

/* ---- entries */

/* Says what is wrong with a row: it starts behind its end, is not within the arrays, or has a column that the matrix
 * has not. */
static int row_is_good(const struct cb_view *view, int64_t row, int *ascending) {
  const int64_t begin = cb_view_row(view, row), end = cb_view_row(view, row + 1);
  int64_t previous = -1;
  if (begin < 0 || end < begin || end > view->nnz) return 0;
  for (int64_t k = begin; k < end; k++) {
    const int64_t col = cb_view_col(view, k);
    if (col < 0 || col >= view->cols) return 0;
    if (col <= previous) *ascending = 0;
    previous = col;
  }
  return 1;
}

static enum cb_status fail_row(const struct cb_view *view, int64_t row, struct cb_diag *diag) {
  const int64_t base = view->base, begin = cb_view_row(view, row), end = cb_view_row(view, row + 1);
  if (begin < 0 || end < begin || end > view->nnz)
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "'row_ptr[%lld]' is %lld after %lld; it never decreases, up to %s = %lld",
                   (long long)row + 1, (long long)(end + base), (long long)(begin + base),
                   base ? "nnz + 1" : "nnz", (long long)(view->nnz + base));
  for (int64_t k = begin; k < end; k++) {
    const int64_t col = cb_view_col(view, k);
    if (col < 0 || col >= view->cols)
      return cb_fail(diag, CB_ERR_ARGUMENT,
                     "'col_idx[%lld]' is %lld in row %lld; columns go from %lld to %lld", (long long)k,
                     (long long)(col + base), (long long)row, (long long)base,
                     (long long)(view->cols - 1 + base));
  }
  return cb_fail(diag, CB_ERR_ARGUMENT, "the matrix changed while it was read (row %lld)", (long long)row);
}

enum cb_status cb_view_check(const struct cb_view *view, int *canonical, struct cb_diag *diag) {
  const int64_t rows = view->rows, first = cb_view_row(view, 0), last = cb_view_row(view, rows);
  int64_t bad = rows;
  int ascending = 1;
  *canonical = 0;
  if (first || last != view->nnz)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'row_ptr' goes from %lld to %lld; it goes from %d to %s = %lld",
                   (long long)(first + view->base), (long long)(last + view->base), view->base,
                   view->base ? "nnz + 1" : "nnz", (long long)(view->nnz + view->base));
#pragma omp parallel for schedule(static) reduction(min : bad) reduction(& : ascending)
  for (int64_t row = 0; row < rows; row++)
    if (!row_is_good(view, row, &ascending) && row < bad) bad = row;
  if (bad < rows) return fail_row(view, bad, diag);
  *canonical = ascending;
  return CB_OK;
}

/* ---- hash */

struct hashed {
  const struct cb_view *view;
  atomic_int bad; /* a number beyond what its normal form holds */
};

static void fill_columns(void *user, size_t first, size_t count, void *to) {
  struct hashed *hashed = user;
  int32_t *columns = to;
  int bad = 0;
  for (size_t i = 0; i < count; i++) {
    const int64_t col = cb_view_col(hashed->view, (int64_t)(first + i));
    bad |= col < 0 || col > INT32_MAX;
    columns[i] = (int32_t)(uint32_t)(uint64_t)col;
  }
  if (bad) atomic_store_explicit(&hashed->bad, 1, memory_order_relaxed);
}

static struct cb_hash hash_columns(struct hashed *hashed) {
  const struct cb_view *view = hashed->view;
  if (!view->col_wide && !view->base) return cb_hash_array(view->col_idx, (size_t)view->nnz, sizeof(int32_t));
  return cb_hash_array_by(fill_columns, hashed, (size_t)view->nnz, sizeof(int32_t));
}

static struct cb_hash hash_lengths(struct hashed *hashed, int64_t first) {
  int32_t lengths[CB_HASH_ROWS];
  const struct cb_view *view = hashed->view;
  const int64_t left = view->rows - first, count = left < CB_HASH_ROWS ? left : CB_HASH_ROWS;
  int bad = 0;
  int64_t begin = cb_view_row(view, first);
  for (int64_t i = 0; i < count; i++) {
    const int64_t end = cb_view_row(view, first + i + 1);
    const uint64_t length = (uint64_t)end - (uint64_t)begin; /* whatever the caller wrote: no overflow */
    bad |= length > INT32_MAX;
    lengths[i] = (int32_t)(uint32_t)length;
    begin = end;
  }
  if (bad) atomic_store_explicit(&hashed->bad, 1, memory_order_relaxed);
  return cb_hash_bytes(lengths, (size_t)count * sizeof *lengths);
}

static struct cb_hash start_hash(const struct cb_view *view) {
  struct cb_hash hash = {0, 0};
  cb_hash_number(&hash, "rows", (uint64_t)view->rows);
  cb_hash_number(&hash, "cols", (uint64_t)view->cols);
  cb_hash_number(&hash, "nnz", (uint64_t)view->nnz);
  return hash;
}

static void end_hash(struct cb_hash *hash, struct cb_hash columns, int consistent) {
  cb_hash_field(hash, "columns", &columns, sizeof columns);
  if (!consistent) cb_hash_number(hash, "inconsistent", 1);
}

struct cb_hash cb_view_hash(const struct cb_view *view) {
  struct cb_hash hash = start_hash(view), digests[CB_HASH_BATCH];
  struct hashed hashed = {.view = view};
  const int64_t chunks = (view->rows + CB_HASH_ROWS - 1) / CB_HASH_ROWS;
  for (int64_t first = 0; first < chunks; first += CB_HASH_BATCH) {
    const int64_t batch = chunks - first < CB_HASH_BATCH ? chunks - first : CB_HASH_BATCH;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < batch; i++) digests[i] = hash_lengths(&hashed, (first + i) * CB_HASH_ROWS);
    cb_hash_field(&hash, "row lengths", digests, (size_t)batch * sizeof *digests);
  }
  const struct cb_hash columns = hash_columns(&hashed);
  end_hash(&hash, columns,
           !cb_view_row(view, 0) && cb_view_row(view, view->rows) == view->nnz && !atomic_load(&hashed.bad));
  return hash;
}

struct cb_hash cb_view_hash_from(const struct cb_view *view, const struct cb_hash *rows,
                                 const struct cb_hash *columns, int consistent) {
  struct cb_hash hash = start_hash(view);
  const int64_t chunks = (view->rows + CB_HASH_ROWS - 1) / CB_HASH_ROWS;
  for (int64_t first = 0; first < chunks; first += CB_HASH_BATCH) {
    const int64_t batch = chunks - first < CB_HASH_BATCH ? chunks - first : CB_HASH_BATCH;
    cb_hash_field(&hash, "row lengths", rows + first, (size_t)batch * sizeof *rows);
  }
  end_hash(&hash, cb_hash_digests(columns, (size_t)view->nnz), consistent);
  return hash;
}
