// SPDX-License-Identifier: Apache-2.0
/* What the frontend's tests share: reading from a string, and comparing matrices. */
#ifndef CBGEN_TESTS_TEST_FRONTEND_H
#define CBGEN_TESTS_TEST_FRONTEND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frontend/generate.h"
#include "frontend/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An entry as a person writes it down: 0-based row and column. */
struct entry {
  int64_t row, col;
  double value;
};

/* Fails the test unless `csr` is canonical, has these sizes and exactly these entries, in row order. */
static inline void assert_entries(const struct cb_csr *csr, int64_t rows, int64_t cols,
                                  const struct entry *entries, int64_t count) {
  struct cb_diag diag = {0};
  if (cb_csr_check(csr, &diag)) fail_msg("%s", diag.message);
  assert_int_equal(csr->rows, rows);
  assert_int_equal(csr->cols, cols);
  assert_int_equal(csr->nnz, count);
  for (int64_t row = 0, i = 0; row < rows; row++)
    for (int64_t at = cb_csr_row(csr, row); at < cb_csr_row(csr, row + 1); at++, i++) {
      assert_int_equal(entries[i].row, row);
      assert_int_equal(entries[i].col, csr->col_idx[at]);
      assert_memory_equal(&entries[i].value, &csr->values[at], sizeof(double));
    }
}

static inline int same_bytes(const void *a, const void *b, size_t length) {
  return !length || !memcmp(a, b, length);
}

/* Same sizes, pattern and value bits. */
static inline int same_matrix(const struct cb_csr *a, const struct cb_csr *b) {
  const size_t nnz = (size_t)a->nnz, pointer = a->wide ? 8 : 4;
  return a->rows == b->rows && a->cols == b->cols && a->nnz == b->nnz && a->wide == b->wide &&
         a->pattern == b->pattern && same_bytes(a->row_ptr, b->row_ptr, ((size_t)a->rows + 1) * pointer) &&
         same_bytes(a->col_idx, b->col_idx, nnz * sizeof *a->col_idx) &&
         same_bytes(a->values, b->values, nnz * sizeof *a->values);
}

static inline void generate(struct cb_csr *csr, const char *specification) {
  struct cb_diag diag = {0};
  if (cb_matrix_generate(csr, specification, &diag)) fail_msg("%s: %s", specification, diag.message);
}

/* A path in this test's scratch directory; the text lives until the next call. */
static inline const char *scratch_path(const char *name) {
  static char path[4096];
  const char *directory = getenv("CBGEN_TEST_TMP");
  snprintf(path, sizeof path, "%s/%s", directory ? directory : "/tmp", name);
  return path;
}

/* A whole file in a block of malloc. */
static inline char *load_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("cannot open %s", path);
  fseek(file, 0, SEEK_END);
  *length = (size_t)ftell(file);
  rewind(file);
  char *bytes = malloc(*length + 1);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, *length, file), *length);
  bytes[*length] = 0;
  fclose(file);
  return bytes;
}

#endif
