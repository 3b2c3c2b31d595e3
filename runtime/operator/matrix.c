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
SAME(CBGEN_C64, CB_C64);
SAME(CBGEN_C128, CB_C128);

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

enum { MOST_BLOCK = 64 };

static enum cb_status take_width(int *wide, int bits, const char *what, struct cb_diag *diag) {
  *wide = bits == 64;
  if (!bits || bits == 32 || bits == 64) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' is %d; it is 32 or 64", what, bits);
}

static const struct cb_view_words
    csr_words = {"row_ptr", "col_idx", "row_ptr_bits", "col_idx_bits", "row", "columns"},
    words_of_format[] = {[CBGEN_CSR] = {"pointers", "indices", "pointer_bits", "index_bits", "row", "columns"},
                         [CBGEN_CSC] = {"pointers", "indices", "pointer_bits", "index_bits", "column", "rows"},
                         [CBGEN_COO] = {"pointers", "indices", "pointer_bits", "index_bits", "entry", "columns"},
                         [CBGEN_BSR] = {"pointers", "indices", "pointer_bits", "index_bits", "block row", "columns"}};

static enum cb_status check_words(const cbgen_matrix *matrix, struct cb_diag *diag) {
  if ((int)matrix->format < 0 || matrix->format > CBGEN_BSR)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'format' is %d; it is one of cbgen_format", (int)matrix->format);
  if (matrix->index_base != 0 && matrix->index_base != 1)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'index_base' is %d; it is 0 or 1", matrix->index_base);
  if ((int)matrix->value_type < 0 || matrix->value_type > CBGEN_C128)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'value_type' is %d; it is one of cbgen_type", (int)matrix->value_type);
  if (matrix->memory != CBGEN_HOST && matrix->memory != CBGEN_DEVICE)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'memory' is %d; it is one of cbgen_memory", (int)matrix->memory);
  return CB_OK;
}

static enum cb_status check_shape(const cbgen_matrix *matrix, const struct cb_view_words *words, struct cb_diag *diag) {
  if (matrix->rows < 0 || matrix->cols < 0 || matrix->nnz < 0)
    return cb_fail(diag, CB_ERR_ARGUMENT, "a matrix of %lld x %lld with %lld nonzeros: none may be negative",
                   (long long)matrix->rows, (long long)matrix->cols, (long long)matrix->nnz);
  if (matrix->rows > CB_MAX_DIMENSION || matrix->cols > CB_MAX_DIMENSION)
    return cb_fail(diag, CB_ERR_LIMIT, "a matrix of %lld x %lld: at most %d rows and columns", (long long)matrix->rows,
                   (long long)matrix->cols, (int)CB_MAX_DIMENSION);
  if (matrix->nnz > INT64_MAX / 16 / (MOST_BLOCK * MOST_BLOCK))
    return cb_fail(diag, CB_ERR_LIMIT, "%lld nonzeros do not fit any memory", (long long)matrix->nnz);
  const int has_pointers = matrix->format != CBGEN_COO || matrix->nnz;
  if ((has_pointers && !matrix->pointers) || (matrix->nnz && !matrix->indices))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' or '%s' is NULL", words->pointers, words->indices);
  return CB_OK;
}

static enum cb_status check_blocks(const cbgen_matrix *matrix, struct cb_diag *diag) {
  const int rows = matrix->block_rows, cols = matrix->block_cols, by_column = matrix->blocks_by_column;
  if (matrix->format != CBGEN_BSR) {
    if (!rows && !cols && !by_column) return CB_OK;
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "'block_rows', 'block_cols' and 'blocks_by_column' are for format CBGEN_BSR; leave them 0");
  }
  if (rows < 1 || rows > MOST_BLOCK || cols < 1 || cols > MOST_BLOCK)
    return cb_fail(diag, CB_ERR_ARGUMENT, "blocks of %d x %d; 'block_rows' and 'block_cols' are 1 to %d", rows, cols,
                   MOST_BLOCK);
  if (by_column != 0 && by_column != 1)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'blocks_by_column' is %d; it is 0 or 1", by_column);
  if (matrix->rows % rows == 0 && matrix->cols % cols == 0) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "a matrix of %lld x %lld is not made of blocks of %d x %d",
                 (long long)matrix->rows, (long long)matrix->cols, rows, cols);
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

static enum cb_status matrix_from_csr(cbgen_matrix *matrix, const void *given, struct cb_diag *diag) {
  cbgen_csr csr;
  const enum cb_status s = cb_take_struct(&csr, sizeof csr, sizeof csr, given, "cbgen_csr", diag);
  *matrix = (cbgen_matrix){0};
  if (s) return s;
  *matrix = (cbgen_matrix){.struct_size = sizeof *matrix,
                           .rows = csr.rows,
                           .cols = csr.cols,
                           .nnz = csr.nnz,
                           .pointers = csr.row_ptr,
                           .indices = csr.col_idx,
                           .values = csr.values,
                           .pointer_bits = csr.row_ptr_bits,
                           .index_bits = csr.col_idx_bits,
                           .index_base = csr.index_base,
                           .value_type = csr.value_type,
                           .memory = csr.memory,
                           .stream = csr.stream,
                           .name = csr.name};
  return CB_OK;
}

/* Widths, shape and pointers of what was given. */
static enum cb_status check_matrix(struct cb_view *view, const cbgen_matrix *matrix, struct cb_diag *diag) {
  const struct cb_view_words *words = view->words;
  enum cb_status s = take_width(&view->row_wide, matrix->pointer_bits, words->pointer_bits, diag);
  if (!s) s = take_width(&view->col_wide, matrix->index_bits, words->index_bits, diag);
  if (!s) s = check_shape(matrix, words, diag);
  if (!s) s = check_blocks(matrix, diag);
  if (!s) s = check_aligned(matrix->pointers, view->row_wide ? 8 : 4, words->pointers, diag);
  if (!s) s = check_aligned(matrix->indices, view->col_wide ? 8 : 4, words->indices, diag);
  if (!s) s = check_aligned(matrix->values, cb_type_size((enum cb_type)matrix->value_type), "values", diag);
  return s;
}

static void fill_view(struct cb_view *view, const cbgen_matrix *matrix) {
  const int turned = matrix->format == CBGEN_CSC, blocked = matrix->format == CBGEN_BSR;
  view->format = turned ? CBGEN_CSR : matrix->format;
  view->turned = turned;
  view->block_rows = matrix->block_rows;
  view->block_cols = matrix->block_cols;
  view->blocks_by_column = matrix->blocks_by_column;
  view->blocks = matrix->nnz;
  view->rows = turned ? matrix->cols : matrix->rows;
  view->cols = turned ? matrix->rows : matrix->cols;
  view->nnz = matrix->nnz * (blocked ? matrix->block_rows * matrix->block_cols : 1);
  view->row_ptr = matrix->pointers;
  view->col_idx = matrix->indices;
  view->values = matrix->values;
  view->base = matrix->index_base;
  view->value_type = (enum cb_type)matrix->value_type;
  view->is_complex = cb_type_is_complex(view->value_type);
  view->on_device = matrix->memory == CBGEN_DEVICE;
  view->stream = matrix->stream;
  take_name(view->name, sizeof view->name, matrix->name);
}

/* `words` NULL: those of the format. */
static enum cb_status take_view(struct cb_view *view, const cbgen_matrix *matrix, const struct cb_view_words *words,
                                struct cb_diag *diag) {
  *view = (struct cb_view){0};
  enum cb_status s = check_words(matrix, diag);
  if (s) return s;
  view->words = words ? words : &words_of_format[matrix->format];
  s = check_matrix(view, matrix, diag);
  if (!s) fill_view(view, matrix);
  return s;
}

enum cb_status cb_view_take_csr(struct cb_view *view, const void *given, struct cb_diag *diag) {
  cbgen_matrix matrix;
  const enum cb_status s = matrix_from_csr(&matrix, given, diag);
  return s ? s : take_view(view, &matrix, &csr_words, diag);
}

enum cb_status cb_view_take(struct cb_view *view, const void *given, struct cb_diag *diag) {
  cbgen_matrix matrix;
  const enum cb_status s = cb_take_struct(&matrix, sizeof matrix, sizeof matrix, given, "cbgen_matrix", diag);
  return s ? s : take_view(view, &matrix, NULL, diag);
}

int64_t cb_view_pointers(const struct cb_view *view) {
  if (view->format == CBGEN_COO) return view->nnz;
  return (view->format == CBGEN_BSR ? view->rows / view->block_rows : view->rows) + 1;
}

int64_t cb_view_indices(const struct cb_view *view) {
  return view->format == CBGEN_BSR ? view->blocks : view->nnz;
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
    return cb_fail(diag, CB_ERR_ARGUMENT, "'%s[%lld]' is %lld after %lld; it never decreases, up to %s = %lld",
                   view->words->pointers, (long long)row + 1, (long long)(end + base), (long long)(begin + base),
                   base ? "nnz + 1" : "nnz", (long long)(view->nnz + base));
  for (int64_t k = begin; k < end; k++) {
    const int64_t col = cb_view_col(view, k);
    if (col < 0 || col >= view->cols)
      return cb_fail(diag, CB_ERR_ARGUMENT, "'%s[%lld]' is %lld in %s %lld; %s go from %lld to %lld",
                     view->words->indices, (long long)k, (long long)(col + base), view->words->line, (long long)row,
                     view->words->across, (long long)base, (long long)(view->cols - 1 + base));
  }
  return cb_fail(diag, CB_ERR_ARGUMENT, "the matrix changed while it was read (%s %lld)", view->words->line,
                 (long long)row);
}

enum cb_status cb_view_check(const struct cb_view *view, int *canonical, struct cb_diag *diag) {
  const int64_t rows = view->rows, first = cb_view_row(view, 0), last = cb_view_row(view, rows);
  int64_t bad = rows;
  int ascending = 1;
  *canonical = 0;
  if (first || last != view->nnz)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' goes from %lld to %lld; it goes from %d to %s = %lld",
                   view->words->pointers, (long long)(first + view->base), (long long)(last + view->base), view->base,
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
  if (view->entries) {
    const struct cb_hash entries = cb_hash_array(view->entries, (size_t)view->nnz, view->entries_wide ? 8 : 4);
    cb_hash_field(&hash, "entries", &entries, sizeof entries);
  }
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
