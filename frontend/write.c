// SPDX-License-Identifier: Apache-2.0
/* Writing Matrix Market text: threads format runs of rows into buffers of their own, which are written in
 * order. */
#include "frontend/read.h"

#include "base/file.h"
#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>

enum { ENTRIES_AT_ONCE = 1 << 15, MOST_DIGITS = 20 };

/* Appends `number` and returns the new end. */
static char *put_integer(char *at, uint64_t number) {
  char digits[MOST_DIGITS];
  int length = 0;
  do digits[length++] = (char)('0' + number % 10);
  while (number /= 10);
  while (length) *at++ = digits[--length];
  return at;
}

/* Whole numbers below 2^53 are exact as such; the rest needs 17 digits. */
static char *put_value(char *at, double value) {
  if (fabs(value) < 0x1p53 && value == (double)(int64_t)value && (value != 0 || !signbit(value))) {
    if (value < 0) *at++ = '-';
    return put_integer(at, (uint64_t)(value < 0 ? -value : value));
  }
  return at + snprintf(at, 32, "%.17g", value);
}

static void format_row(struct cb_text *text, const struct cb_csr *csr, int64_t row) {
  const int64_t end = cb_csr_row(csr, row + 1);
  for (int64_t i = cb_csr_row(csr, row); i < end; i++) {
    char line[2 * MOST_DIGITS + 40], *at = put_integer(line, (uint64_t)row + 1);
    *at++ = ' ';
    at = put_integer(at, (uint64_t)csr->col_idx[i] + 1);
    if (!csr->pattern) {
      *at++ = ' ';
      at = put_value(at, csr->values[i]);
    }
    *at++ = '\n';
    cb_text_add_bytes(text, line, (size_t)(at - line));
  }
}

/* The end of a run of rows from `row` on that holds about ENTRIES_AT_ONCE nonzeros. */
static int64_t run_end(const struct cb_csr *csr, int64_t row) {
  const int64_t first = cb_csr_row(csr, row);
  int64_t end = row + 1;
  while (end < csr->rows && end - row < ENTRIES_AT_ONCE && cb_csr_row(csr, end) - first < ENTRIES_AT_ONCE)
    end++;
  return end;
}

static void format_rows(struct cb_text *text, const struct cb_csr *csr, int64_t begin, int64_t end) {
  const locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  const locale_t before = locale ? uselocale(locale) : (locale_t)0;
  for (int64_t row = begin; row < end; row++) format_row(text, csr, row);
  if (before) uselocale(before);
  if (locale) freelocale(locale);
}

/* Formats up to RUNS runs of rows at a time, then writes them. */
static enum cb_status write_rows(struct cb_outfile *out, const struct cb_csr *csr, struct cb_diag *diag) {
  enum { RUNS = 32 };
  struct cb_text texts[RUNS] = {0};
  int failed = 0;
  for (int64_t row = 0; row < csr->rows && !failed;) {
    int64_t starts[RUNS + 1] = {row};
    int runs = 0;
    for (; runs < RUNS && row < csr->rows; runs++) starts[runs + 1] = row = run_end(csr, row);
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < runs; i++) format_rows(&texts[i], csr, starts[i], starts[i + 1]);
    for (int i = 0; i < runs; i++) {
      failed |= texts[i].failed;
      cb_file_write(out, cb_text_string(&texts[i]), texts[i].length);
      texts[i].length = 0;
    }
  }
  for (int i = 0; i < RUNS; i++) cb_text_release(&texts[i]);
  return failed ? cb_fail_memory(diag, "text of the matrix", ENTRIES_AT_ONCE) : CB_OK;
}

enum cb_status cb_matrix_write(const struct cb_csr *csr, const char *path, struct cb_diag *diag) {
  struct cb_outfile *out;
  char header[128];
  enum cb_status s = cb_file_create(&out, path, diag);
  if (s) return s;
  const int length = snprintf(
      header, sizeof header, "%%%%MatrixMarket matrix coordinate %s general\n%lld %lld %lld\n",
      csr->pattern ? "pattern" : "real", (long long)csr->rows, (long long)csr->cols, (long long)csr->nnz);
  cb_file_write(out, header, (size_t)length);
  s = write_rows(out, csr, diag);
  if (!s) s = cb_file_commit(out, diag);
  cb_file_abandon(out);
  return s;
}
