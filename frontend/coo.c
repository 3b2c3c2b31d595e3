// SPDX-License-Identifier: Apache-2.0
/* Coordinates to canonical CSR. Entries that come row by row already are taken over where they lie; others
 * are moved by a counting sort over rows, in which each thread owns a run of entries and has its own cursor
 * for every row, so that the result does not depend on the number of threads. Then every row is sorted by
 * column and its duplicates are summed in the order given.
 *
 * Memory: the columns move first and the values second, with the old arrays freed in between, so the peak is
 * 24 bytes per entry (2 times the CSR) and the cursors, whose number is bounded (see choose_parts). */
#include "frontend/coo.h"

#include "base/memory.h"
#include "base/real.h"

#include <omp.h>
#include <string.h>

enum { ROWS_AT_ONCE = 256, SHORT_ROW = 48 };

void cb_coo_release(struct cb_coo *coo) {
  cb_free(coo->row_idx);
  cb_free(coo->col_idx);
  cb_free(coo->values);
  cb_free(coo->imaginary);
  *coo = (struct cb_coo){0};
}

enum cb_status cb_coo_alloc(struct cb_coo *coo, int64_t count, int pattern, struct cb_diag *diag) {
  *coo = (struct cb_coo){.count = count};
  coo->row_idx = cb_alloc((size_t)count, sizeof *coo->row_idx);
  coo->col_idx = cb_alloc((size_t)count, sizeof *coo->col_idx);
  if (!pattern) coo->values = cb_alloc((size_t)count, sizeof *coo->values);
  if (coo->row_idx && coo->col_idx && (pattern || coo->values)) return CB_OK;
  cb_coo_release(coo);
  return cb_fail_memory(diag, "entries", (unsigned long long)count * (pattern ? 8 : 16));
}

enum cb_status cb_coo_make_complex(struct cb_coo *coo, struct cb_diag *diag) {
  const unsigned long long bytes = 8ull * (unsigned long long)coo->count;
  coo->imaginary = cb_alloc((size_t)coo->count, sizeof *coo->imaginary);
  if (coo->imaginary) return CB_OK;
  cb_coo_release(coo);
  return cb_fail_memory(diag, "imaginary parts", bytes);
}

enum cb_status cb_check_rows(const char *subject, int64_t rows, int64_t entries, struct cb_diag *diag) {
  enum { MANY_ROWS = 1 << 24, SPARSEST = 1024 };
  if (rows <= MANY_ROWS || rows / SPARSEST <= entries) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT,
                 "%s: %lld rows for %lld entries would store little but row pointers; renumber the rows "
                 "without gaps",
                 subject, (long long)rows, (long long)entries);
}

static void set_row(struct cb_csr *csr, int64_t row, int64_t value) {
  if (csr->wide)
    ((int64_t *)csr->row_ptr)[row] = value;
  else
    ((int32_t *)csr->row_ptr)[row] = (int32_t)value;
}

static enum cb_status alloc_rows(struct cb_csr *csr, struct cb_diag *diag) {
  csr->row_ptr = cb_alloc((size_t)csr->rows + 1, csr->wide ? sizeof(int64_t) : sizeof(int32_t));
  return csr->row_ptr ? CB_OK : cb_fail_memory(diag, "row pointers", ((unsigned long long)csr->rows + 1) * 4);
}

/* ---- entries that are in row order already */

static int rows_ascend(const struct cb_coo *coo) {
  int ascend = 1;
#pragma omp parallel for schedule(static) reduction(& : ascend)
  for (int64_t i = 1; i < coo->count; i++) ascend &= coo->row_idx[i - 1] <= coo->row_idx[i];
  return ascend;
}

static void fill_rows_from_ascending(struct cb_csr *csr, const int32_t *row_idx) {
  const int64_t count = csr->nnz;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; i++)
    for (int64_t row = i ? (int64_t)row_idx[i - 1] + 1 : 0; row <= row_idx[i]; row++) set_row(csr, row, i);
  for (int64_t row = count ? (int64_t)row_idx[count - 1] + 1 : 0; row <= csr->rows; row++)
    set_row(csr, row, count);
}

static enum cb_status adopt(struct cb_csr *csr, struct cb_coo *coo, struct cb_diag *diag) {
  csr->nnz = coo->count;
  csr->wide = csr->nnz > INT32_MAX;
  const enum cb_status s = alloc_rows(csr, diag);
  if (s) return s;
  fill_rows_from_ascending(csr, coo->row_idx);
  cb_free(coo->row_idx);
  csr->col_idx = coo->col_idx;
  csr->values = coo->values;
  *coo = (struct cb_coo){0};
  return CB_OK;
}

/* ---- entries in any order: the counting sort */

struct sorter {
  struct cb_csr *csr;
  struct cb_coo *coo;
  enum cb_mirror mirror;
  int parts;     /* runs of entries, each with its own cursors */
  void *cursors; /* [part][row]: counts at first, then the next place to write; as wide as the row pointers */
};

static inline int64_t *cursor64(const struct sorter *sorter, int part) {
  return (int64_t *)sorter->cursors + (int64_t)part * sorter->csr->rows;
}

static inline int32_t *cursor32(const struct sorter *sorter, int part) {
  return (int32_t *)sorter->cursors + (int64_t)part * sorter->csr->rows;
}

static int64_t part_begin(const struct sorter *sorter, int part) {
  const int64_t count = sorter->coo->count, parts = sorter->parts;
  return count / parts * part + count % parts * part / parts;
}

/* As many parts as there are threads, as long as all cursors take no more than 5 bytes per nonzero and per
 * row. */
static int choose_parts(const struct cb_csr *csr) {
  const int64_t allowed = 5 * (csr->nnz + csr->rows), each = csr->rows * (csr->wide ? 8 : 4);
  const int64_t most = each ? allowed / each : 1, threads = omp_get_max_threads();
  return (int)(most < 1 ? 1 : most < threads ? most : threads);
}

static int64_t mirrored_count(const struct cb_coo *coo) {
  int64_t off_diagonal = 0;
#pragma omp parallel for schedule(static) reduction(+ : off_diagonal)
  for (int64_t i = 0; i < coo->count; i++) off_diagonal += coo->row_idx[i] != coo->col_idx[i];
  return coo->count + off_diagonal;
}

/* The loops over entries, once for each width of cursor: `cursor` is one part's row of cursors. */
#define DEFINE_ENTRY_LOOPS(integer, suffix)                                                                  \
  static void count_part_##suffix(const struct sorter *sorter, int part) {                                   \
    integer *cursor = cursor##suffix(sorter, part);                                                          \
    const struct cb_coo *coo = sorter->coo;                                                                  \
    const int64_t end = part_begin(sorter, part + 1);                                                        \
    for (int64_t i = part_begin(sorter, part); i < end; i++) {                                               \
      cursor[coo->row_idx[i]]++;                                                                             \
      if (sorter->mirror && coo->row_idx[i] != coo->col_idx[i]) cursor[coo->col_idx[i]]++;                   \
    }                                                                                                        \
  }                                                                                                          \
  static void move_columns_##suffix(const struct sorter *sorter, int part) {                                 \
    integer *cursor = cursor##suffix(sorter, part);                                                          \
    const struct cb_coo *coo = sorter->coo;                                                                  \
    const int64_t end = part_begin(sorter, part + 1);                                                        \
    for (int64_t i = part_begin(sorter, part); i < end; i++)                                                 \
      sorter->csr->col_idx[cursor[coo->row_idx[i]]++] = coo->col_idx[i];                                     \
  }                                                                                                          \
  /* Runs backwards, so that the cursors that move_columns left behind lead to the same places. */           \
  static void move_values_##suffix(const struct sorter *sorter, int part) {                                  \
    integer *cursor = cursor##suffix(sorter, part);                                                          \
    const struct cb_coo *coo = sorter->coo;                                                                  \
    const int64_t begin = part_begin(sorter, part);                                                          \
    for (int64_t i = part_begin(sorter, part + 1) - 1; i >= begin; i--)                                      \
      sorter->csr->values[--cursor[coo->row_idx[i]]] = coo->values[i];                                       \
  }                                                                                                          \
  static void move_mirrored_##suffix(const struct sorter *sorter, int part) {                                \
    integer *cursor = cursor##suffix(sorter, part);                                                          \
    const struct cb_coo *coo = sorter->coo;                                                                  \
    const int64_t end = part_begin(sorter, part + 1);                                                        \
    for (int64_t i = part_begin(sorter, part); i < end; i++) {                                               \
      const int32_t row = coo->row_idx[i], col = coo->col_idx[i];                                            \
      const double value = coo->values ? coo->values[i] : 1;                                                 \
      const int64_t place = cursor[row]++;                                                                   \
      sorter->csr->col_idx[place] = col;                                                                     \
      sorter->csr->values[place] = value;                                                                    \
      if (row == col) continue;                                                                              \
      const int64_t image = cursor[col]++;                                                                   \
      sorter->csr->col_idx[image] = row;                                                                     \
      sorter->csr->values[image] = sorter->mirror == CB_MIRROR_NEGATED ? -value : value;                     \
    }                                                                                                        \
  }                                                                                                          \
  static int64_t sum_rows_##suffix(const struct sorter *sorter, int64_t begin, int64_t end) {                \
    int64_t sum = 0;                                                                                         \
    for (int part = 0; part < sorter->parts; part++)                                                         \
      for (int64_t row = begin; row < end; row++) sum += cursor##suffix(sorter, part)[row];                  \
    return sum;                                                                                              \
  }                                                                                                          \
  static void place_rows_##suffix(const struct sorter *sorter, int64_t begin, int64_t end, int64_t next) {   \
    for (int64_t row = begin; row < end; row++) {                                                            \
      set_row(sorter->csr, row, next);                                                                       \
      for (int part = 0; part < sorter->parts; part++) {                                                     \
        integer *cursor = cursor##suffix(sorter, part) + row;                                                \
        const int64_t count = *cursor;                                                                       \
        *cursor = (integer)next;                                                                             \
        next += count;                                                                                       \
      }                                                                                                      \
    }                                                                                                        \
  }
DEFINE_ENTRY_LOOPS(int32_t, 32)
DEFINE_ENTRY_LOOPS(int64_t, 64)
#undef DEFINE_ENTRY_LOOPS

enum step { COUNT, MOVE_COLUMNS, MOVE_VALUES, MOVE_MIRRORED };

static void run_step(const struct sorter *sorter, enum step step) {
  static void (*const loops[][2])(const struct sorter *, int) = {
      [COUNT] = {count_part_32, count_part_64},
      [MOVE_COLUMNS] = {move_columns_32, move_columns_64},
      [MOVE_VALUES] = {move_values_32, move_values_64},
      [MOVE_MIRRORED] = {move_mirrored_32, move_mirrored_64},
  };
#pragma omp parallel for schedule(static, 1) num_threads(sorter->parts)
  for (int part = 0; part < sorter->parts; part++) loops[step][sorter->csr->wide](sorter, part);
}

/* Counts become places: row by row, and within a row part by part. Fixed chunks of rows are summed first. */
static void place_rows(const struct sorter *sorter) {
  enum { CHUNKS = 256 };
  const struct cb_csr *csr = sorter->csr;
  int64_t starts[CHUNKS + 1] = {0};
#pragma omp parallel for schedule(static)
  for (int i = 0; i < CHUNKS; i++) {
    const int64_t begin = csr->rows * i / CHUNKS, end = csr->rows * (i + 1) / CHUNKS;
    starts[i + 1] = csr->wide ? sum_rows_64(sorter, begin, end) : sum_rows_32(sorter, begin, end);
  }
  for (int i = 0; i < CHUNKS; i++) starts[i + 1] += starts[i];
#pragma omp parallel for schedule(static)
  for (int i = 0; i < CHUNKS; i++) {
    const int64_t begin = csr->rows * i / CHUNKS, end = csr->rows * (i + 1) / CHUNKS;
    if (csr->wide)
      place_rows_64(sorter, begin, end, starts[i]);
    else
      place_rows_32(sorter, begin, end, starts[i]);
  }
  set_row(sorter->csr, csr->rows, csr->nnz);
}

static enum cb_status move_apart(struct sorter *sorter, struct cb_diag *diag) {
  struct cb_csr *csr = sorter->csr;
  const unsigned long long entries = (unsigned long long)csr->nnz;
  csr->col_idx = cb_alloc((size_t)csr->nnz, sizeof *csr->col_idx);
  if (!csr->col_idx) return cb_fail_memory(diag, "column indices", entries * sizeof *csr->col_idx);
  run_step(sorter, MOVE_COLUMNS);
  cb_free(sorter->coo->col_idx);
  sorter->coo->col_idx = NULL;
  if (!sorter->coo->values) return CB_OK;
  csr->values = cb_alloc((size_t)csr->nnz, sizeof *csr->values);
  if (!csr->values) return cb_fail_memory(diag, "values", entries * sizeof *csr->values);
  run_step(sorter, MOVE_VALUES);
  return CB_OK;
}

static enum cb_status move_both(struct sorter *sorter, struct cb_diag *diag) {
  struct cb_csr *csr = sorter->csr;
  csr->col_idx = cb_alloc((size_t)csr->nnz, sizeof *csr->col_idx);
  csr->values = cb_alloc((size_t)csr->nnz, sizeof *csr->values);
  if (!csr->col_idx || !csr->values)
    return cb_fail_memory(diag, "nonzeros", (unsigned long long)csr->nnz * 12);
  run_step(sorter, MOVE_MIRRORED);
  return CB_OK;
}

static enum cb_status sort_by_row(struct cb_csr *csr, struct cb_coo *coo, enum cb_mirror mirror,
                                  struct cb_diag *diag) {
  csr->nnz = mirror ? mirrored_count(coo) : coo->count;
  csr->wide = csr->nnz > INT32_MAX;
  struct sorter sorter = {.csr = csr, .coo = coo, .mirror = mirror, .parts = choose_parts(csr)};
  const size_t cursors = (size_t)csr->rows * (size_t)sorter.parts, width = csr->wide ? 8 : 4;
  enum cb_status s = alloc_rows(csr, diag);
  if (s) return s;
  sorter.cursors = cb_calloc(cursors, width);
  if (!sorter.cursors) return cb_fail_memory(diag, "row cursors", (unsigned long long)cursors * width);
  run_step(&sorter, COUNT);
  place_rows(&sorter);
  s = mirror ? move_both(&sorter, diag) : move_apart(&sorter, diag);
  cb_free(sorter.cursors);
  cb_coo_release(coo);
  return s;
}

/* ---- order within rows */

static void sort_short_row(int32_t *cols, double *values, int64_t length) {
  for (int64_t i = 1; i < length; i++) {
    const int32_t col = cols[i];
    const double value = values[i];
    int64_t hole = i;
    for (; hole > 0 && cols[hole - 1] > col; hole--) {
      cols[hole] = cols[hole - 1];
      values[hole] = values[hole - 1];
    }
    cols[hole] = col;
    values[hole] = value;
  }
}

struct keyed { /* one entry of a long row while it is sorted: its column, and where its value lies */
  uint32_t col, place;
};

/* One pass of a radix sort; returns 0 (and moves nothing) when all digits are equal. */
static int radix_pass(const struct keyed *from, struct keyed *to, int64_t length, int shift) {
  int64_t next[256] = {0}, sum = 0;
  for (int64_t i = 0; i < length; i++) next[from[i].col >> shift & 255]++;
  if (next[from[0].col >> shift & 255] == length) return 0;
  for (int digit = 0; digit < 256; digit++) {
    const int64_t count = next[digit];
    next[digit] = sum;
    sum += count;
  }
  for (int64_t i = 0; i < length; i++) to[next[from[i].col >> shift & 255]++] = from[i];
  return 1;
}

/* Stable. Takes 16 bytes per entry while it runs; returns 0 when there is no memory. */
static int sort_long_row(int32_t *cols, double *values, int64_t length) {
  struct keyed *from = cb_alloc((size_t)length, sizeof *from);
  struct keyed *to = cb_alloc((size_t)length, sizeof *to);
  const int ready = from && to;
  if (ready) {
    for (int64_t i = 0; i < length; i++) from[i] = (struct keyed){(uint32_t)cols[i], (uint32_t)i};
    for (int shift = 0; shift < 32; shift += 8) {
      if (!radix_pass(from, to, length, shift)) continue;
      struct keyed *swap = from;
      from = to;
      to = swap;
    }
    double *sorted = (double *)to;
    for (int64_t i = 0; i < length; i++) {
      cols[i] = (int32_t)from[i].col;
      sorted[i] = values[from[i].place];
    }
    memcpy(values, sorted, (size_t)length * sizeof *values);
  }
  cb_free(from);
  cb_free(to);
  return ready;
}

/* What finish_row says of a row that it cannot finish. */
enum { NO_MEMORY = -1, OVERFLOW = -2 };

/* Returns how many entries remain, or OVERFLOW when finite ones have a sum that is not. */
static int64_t sum_duplicates(int32_t *cols, double *values, int64_t length) {
  int64_t kept = 0;
  for (int64_t i = 1; i < length; i++) {
    if (cols[i] == cols[kept]) {
      const double sum = values[kept] + values[i];
      if (!cb_real_is_finite(sum) && cb_real_is_finite(values[kept]) && cb_real_is_finite(values[i])) return OVERFLOW;
      values[kept] = sum;
    } else {
      cols[++kept] = cols[i];
      values[kept] = values[i];
    }
  }
  return kept + 1;
}

/* Sorts one row and sums its duplicates in place; marks the free places at its end with column -1. Returns
 * how many there are, or NO_MEMORY or OVERFLOW. */
static int64_t finish_row(struct cb_csr *csr, int64_t row) {
  int32_t *cols = csr->col_idx + cb_csr_row(csr, row);
  double *values = csr->values + cb_csr_row(csr, row);
  const int64_t length = cb_csr_row_length(csr, row);
  int sorted = 1, strict = 1;
  for (int64_t i = 1; i < length; i++) {
    sorted &= cols[i - 1] <= cols[i];
    strict &= cols[i - 1] != cols[i];
  }
  if (sorted && strict) return 0;
  if (!sorted && length > UINT32_MAX) return NO_MEMORY;
  if (!sorted && length <= SHORT_ROW)
    sort_short_row(cols, values, length);
  else if (!sorted && !sort_long_row(cols, values, length))
    return NO_MEMORY;
  const int64_t kept = sum_duplicates(cols, values, length);
  if (kept == OVERFLOW) return OVERFLOW;
  for (int64_t i = kept; i < length; i++) cols[i] = -1;
  return length - kept;
}

/* Closes the gaps that summed duplicates left. */
static void close_gaps(struct cb_csr *csr) {
  int64_t next = 0, begin = 0;
  for (int64_t row = 0; row < csr->rows; row++) {
    const int64_t end = cb_csr_row(csr, row + 1);
    for (int64_t i = begin; i < end && csr->col_idx[i] >= 0; i++, next++) {
      csr->col_idx[next] = csr->col_idx[i];
      csr->values[next] = csr->values[i];
    }
    begin = end;
    set_row(csr, row + 1, next);
  }
}

/* A block that cannot be made shorter stays as it is. */
static void *shrink(void *block, int64_t count, size_t size) {
  void *shorter = cb_realloc(block, (size_t)count, size);
  return shorter ? shorter : block;
}

static void drop_duplicates(struct cb_csr *csr, int64_t duplicates) {
  close_gaps(csr);
  csr->nnz -= duplicates;
  csr->col_idx = shrink(csr->col_idx, csr->nnz, sizeof *csr->col_idx);
  csr->values = shrink(csr->values, csr->nnz, sizeof *csr->values);
  csr->pattern = 0; /* a sum of ones is a value */
  if (csr->wide && csr->nnz <= INT32_MAX) {
    const int64_t *wide = csr->row_ptr;
    int32_t *narrow = csr->row_ptr; /* in place: each entry is read before it is overwritten */
    for (int64_t row = 0; row <= csr->rows; row++) {
      const int32_t value = (int32_t)wide[row];
      memcpy(narrow + row, &value, sizeof value);
    }
    csr->wide = 0;
    csr->row_ptr = shrink(csr->row_ptr, csr->rows + 1, sizeof *narrow);
  }
}

/* `path`: of the file, or NULL. */
static enum cb_status finish_rows(struct cb_csr *csr, const char *path, struct cb_diag *diag) {
  int64_t duplicates = 0, beyond = csr->rows;
  int failed = 0;
#pragma omp parallel for schedule(dynamic, ROWS_AT_ONCE) reduction(+ : duplicates) reduction(| : failed) \
    reduction(min : beyond)
  for (int64_t row = 0; row < csr->rows; row++) {
    const int64_t gaps = finish_row(csr, row);
    failed |= gaps == NO_MEMORY;
    if (gaps == OVERFLOW && row < beyond) beyond = row;
    if (gaps > 0) duplicates += gaps;
  }
  if (failed) return cb_fail_memory(diag, "sorting rows", 16ull * (unsigned long long)csr->nnz);
  if (beyond < csr->rows)
    return cb_fail(diag, CB_ERR_LIMIT,
                   "%s%sduplicates in row %lld (counted from 0) sum up to a number beyond the range of double; scale the "
                   "matrix",
                   path ? path : "", path ? ": " : "", (long long)beyond);
  if (duplicates) drop_duplicates(csr, duplicates);
  return CB_OK;
}

static enum cb_status fill_with_ones(struct cb_csr *csr, struct cb_diag *diag) {
  csr->pattern = 1;
  if (csr->values) return CB_OK;
  csr->values = cb_alloc((size_t)csr->nnz, sizeof *csr->values);
  if (!csr->values) return cb_fail_memory(diag, "values", 8ull * (unsigned long long)csr->nnz);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < csr->nnz; i++) csr->values[i] = 1;
  return CB_OK;
}

/* Of real values, or of a complex matrix's parts. */
static enum cb_status make_real(struct cb_csr *csr, struct cb_coo *coo, enum cb_mirror mirror, struct cb_diag *diag) {
  *csr = (struct cb_csr){.rows = coo->rows, .cols = coo->cols, .name = "matrix"};
  const int pattern = !coo->values;
  const char *path = coo->path;
  csr->symmetric_file = mirror != CB_MIRROR_NONE;
  enum cb_status s = cb_check_sizes(coo->rows, coo->cols, diag);
  if (!s && !mirror && rows_ascend(coo))
    s = adopt(csr, coo, diag);
  else if (!s)
    s = sort_by_row(csr, coo, mirror, diag);
  if (!s && pattern) s = fill_with_ones(csr, diag);
  if (!s) s = finish_rows(csr, path, diag);
  cb_coo_release(coo);
  if (s) cb_csr_release(csr);
  return s;
}

/* ---- complex values: each part is a matrix of its own, whose entries end in the same places */

static enum cb_status copy_coo(struct cb_coo *copy, const struct cb_coo *coo, struct cb_diag *diag) {
  const size_t count = (size_t)coo->count;
  const enum cb_status s = cb_coo_alloc(copy, coo->count, 1, diag);
  copy->rows = coo->rows;
  copy->cols = coo->cols;
  copy->path = coo->path;
  if (s || !count) return s;
  memcpy(copy->row_idx, coo->row_idx, count * sizeof *coo->row_idx);
  memcpy(copy->col_idx, coo->col_idx, count * sizeof *coo->col_idx);
  return CB_OK;
}

static enum cb_status join_parts(struct cb_csr *csr, const struct cb_csr *imaginary, struct cb_diag *diag) {
  const enum cb_status s = cb_csr_make_complex(csr, diag);
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < (s ? 0 : csr->nnz); k++) csr->values[2 * k + 1] = imaginary->values[k];
  return s;
}

static enum cb_status make_complex(struct cb_csr *csr, struct cb_coo *coo, enum cb_mirror mirror,
                                   struct cb_diag *diag) {
  const enum cb_mirror of_real = mirror == CB_MIRROR_CONJUGATED ? CB_MIRROR_SAME : mirror;
  const enum cb_mirror of_imaginary = mirror == CB_MIRROR_CONJUGATED ? CB_MIRROR_NEGATED : mirror;
  struct cb_coo other = {0};
  struct cb_csr imaginary = {0};
  *csr = (struct cb_csr){0};
  enum cb_status s = copy_coo(&other, coo, diag);
  other.values = coo->imaginary;
  coo->imaginary = NULL;
  if (!s) s = make_real(csr, coo, of_real, diag);
  if (!s) s = make_real(&imaginary, &other, of_imaginary, diag);
  if (!s) s = join_parts(csr, &imaginary, diag);
  cb_csr_release(&imaginary);
  cb_coo_release(&other);
  cb_coo_release(coo);
  if (s) cb_csr_release(csr);
  return s;
}

enum cb_status cb_csr_from_mirrored_coo(struct cb_csr *csr, struct cb_coo *coo, enum cb_mirror mirror,
                                        struct cb_diag *diag) {
  if (coo->imaginary) return make_complex(csr, coo, mirror, diag);
  return make_real(csr, coo, mirror == CB_MIRROR_CONJUGATED ? CB_MIRROR_SAME : mirror, diag);
}

enum cb_status cb_csr_from_coo(struct cb_csr *csr, struct cb_coo *coo, struct cb_diag *diag) {
  return cb_csr_from_mirrored_coo(csr, coo, CB_MIRROR_NONE, diag);
}
