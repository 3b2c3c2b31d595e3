// SPDX-License-Identifier: Apache-2.0
/* Row lengths. Lengths below SHORT are counted one by one, the few longer ones are kept and sorted: both
 * together list all lengths in ascending order, from which every figure follows. */
#include "analysis/profile/parts.h"

#include "base/memory.h"
#include "base/sort.h"

#include <math.h>

enum { SHORT = 4096 };

struct lengths {
  int64_t counts[SHORT]; /* rows by length */
  uint32_t *longer;      /* lengths from SHORT on, ascending */
  int64_t longer_count;
};

/* A length that `count` rows have; visited in ascending order (a length from SHORT on may come more than
 * once). */
typedef void visit_length(void *user, int64_t length, int64_t count);

static void visit_lengths(const struct lengths *lengths, visit_length *visit, void *user) {
  for (int64_t length = 0; length < SHORT; length++)
    if (lengths->counts[length]) visit(user, length, lengths->counts[length]);
  for (int64_t i = 0; i < lengths->longer_count; i++) visit(user, lengths->longer[i], 1);
}

static enum cb_status collect(struct lengths *lengths, const struct cb_csr *csr, struct cb_diag *diag) {
  int64_t *counts = lengths->counts, longer_count = 0, filled = 0;
#pragma omp parallel for schedule(static) reduction(+ : counts[:SHORT], longer_count)
  for (int64_t row = 0; row < csr->rows; row++) {
    const int64_t length = cb_csr_row_length(csr, row);
    if (length < SHORT)
      counts[length]++;
    else
      longer_count++;
  }
  lengths->longer_count = longer_count;
  lengths->longer = cb_alloc((size_t)longer_count, sizeof *lengths->longer);
  if (!lengths->longer) return cb_fail_memory(diag, "row lengths", (unsigned long long)longer_count * 4);
  for (int64_t row = 0; row < csr->rows && filled < longer_count; row++)
    if (cb_csr_row_length(csr, row) >= SHORT)
      lengths->longer[filled++] = (uint32_t)cb_csr_row_length(csr, row);
  cb_sort_keys(lengths->longer, longer_count);
  return CB_OK;
}

static int64_t first_row_of(const struct cb_csr *csr, int64_t length) {
  int64_t first = csr->rows;
#pragma omp parallel for schedule(static) reduction(min : first)
  for (int64_t row = 0; row < csr->rows; row++)
    if (row < first && cb_csr_row_length(csr, row) == length) first = row;
  return first < csr->rows ? first : -1;
}

struct figures {
  struct cb_profile_rows *out;
  int64_t rows, seen;
  double squares;
};

/* The nearest rank of quantile `percent` among `count`, from 1. The product is split so as not to overflow.
 */
static int64_t rank_of(int percent, int64_t count) {
  return count / 100 * percent + (count % 100 * percent + 99) / 100;
}

static int bin_of(int64_t length) {
  return length ? 64 - __builtin_clzll((unsigned long long)length) : 0;
}

static void add_length(void *user, int64_t length, int64_t count) {
  struct figures *figures = user;
  struct cb_profile_rows *out = figures->out;
  const int64_t before = figures->seen, after = before + count;
  if (!before) out->shortest = length;
  if (!length) out->empty = count;
  out->longest = length;
  out->bins[bin_of(length)] += count;
  if (before < rank_of(50, figures->rows) && rank_of(50, figures->rows) <= after) out->median = length;
  if (before < rank_of(90, figures->rows) && rank_of(90, figures->rows) <= after) out->p90 = length;
  if (before < rank_of(99, figures->rows) && rank_of(99, figures->rows) <= after) out->p99 = length;
  figures->squares += (double)count * ((double)length - out->mean) * ((double)length - out->mean);
  figures->seen = after;
}

enum cb_status cb_profile_rows(struct cb_profile *profile, const struct cb_csr *csr, struct cb_diag *diag) {
  struct cb_profile_rows *out = &profile->row;
  struct figures figures = {.out = out, .rows = csr->rows};
  struct lengths *lengths = cb_calloc(1, sizeof *lengths);
  if (!lengths) return cb_fail_memory(diag, "row lengths", sizeof *lengths);
  const enum cb_status s = collect(lengths, csr, diag);
  if (s) goto out;
  out->mean = cb_profile_share(csr->nnz, csr->rows);
  visit_lengths(lengths, add_length, &figures);
  out->deviation = csr->rows ? sqrt(figures.squares / (double)csr->rows) : 0;
  out->longest_row = first_row_of(csr, out->longest);
out:
  cb_free(lengths->longer);
  cb_free(lengths);
  return s;
}
