// SPDX-License-Identifier: Apache-2.0
/* How many nonzeros each column and each diagonal has. Both are a count of keys: column + shift, where the
 * shift is 0 for columns and rows - 1 - row for diagonals. Counters of all keys are kept per thread, as many
 * threads as a third of the matrix's memory has room for; when not even one set of counters has, as in a
 * matrix with fewer nonzeros than columns, the keys themselves are sorted. Either way every key that occurs
 * is visited in ascending order, so the figures do not depend on the way. */
#include "analysis/profile/parts.h"

#include "base/memory.h"
#include "base/sort.h"

#include <omp.h>
#include <stdlib.h>

struct keys {
  const struct cb_csr *csr;
  int diagonals;
  int64_t range; /* keys are 0 … range - 1, at most 2^32 - 3 */
};

typedef void visit_key(void *user, int64_t key, int64_t count);

static int64_t shift_of(const struct keys *keys, int64_t row) {
  return keys->diagonals ? keys->csr->rows - 1 - row : 0;
}

/* ---- without counters */

static enum cb_status visit_sorted(const struct keys *keys, visit_key *visit, void *user,
                                   struct cb_diag *diag) {
  const struct cb_csr *csr = keys->csr;
  uint32_t *sorted = cb_alloc((size_t)csr->nnz, sizeof *sorted);
  if (!sorted) return cb_fail_memory(diag, "profile", (unsigned long long)csr->nnz * sizeof *sorted);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t i = cb_csr_row(csr, row); i < cb_csr_row(csr, row + 1); i++)
      sorted[i] = (uint32_t)(csr->col_idx[i] + shift_of(keys, row));
  cb_sort_keys(sorted, csr->nnz);
  for (int64_t i = 0, first = 0; i < csr->nnz; i++) {
    if (i + 1 < csr->nnz && sorted[i + 1] == sorted[first]) continue;
    visit(user, sorted[first], i + 1 - first);
    first = i + 1;
  }
  cb_free(sorted);
  return CB_OK;
}

/* ---- counting */

static void count_rows(const struct keys *keys, uint32_t *counts, struct cb_profile_range rows) {
  const struct cb_csr *csr = keys->csr;
  for (int64_t row = rows.first; row < rows.end; row++) {
    uint32_t *shifted = counts + shift_of(keys, row);
    for (int64_t i = cb_csr_row(csr, row); i < cb_csr_row(csr, row + 1); i++) shifted[csr->col_idx[i]]++;
  }
}

/* Counts of a key fit 32 bits: a column or diagonal has at most one nonzero per row. */
static void count_keys(const struct keys *keys, uint32_t *counts, int sets) {
#pragma omp parallel num_threads(sets)
  {
    const int64_t me = omp_get_thread_num(), all = omp_get_num_threads();
    count_rows(keys, counts + me * keys->range, cb_profile_rows_of(keys->csr, me, all));
#pragma omp barrier
#pragma omp for schedule(static)
    for (int64_t key = 0; key < keys->range; key++)
      for (int64_t set = 1; set < all; set++) counts[key] += counts[set * keys->range + key];
  }
}

static enum cb_status visit_keys(const struct keys *keys, visit_key *visit, void *user,
                                 struct cb_diag *diag) {
  const int sets = cb_profile_sets(keys->csr, keys->range);
  if (!sets) return visit_sorted(keys, visit, user, diag);
  uint32_t *counts = cb_calloc((size_t)keys->range * (size_t)sets, sizeof *counts);
  if (!counts)
    return cb_fail_memory(diag, "profile", (unsigned long long)keys->range * (unsigned)sets * sizeof *counts);
  count_keys(keys, counts, sets);
  for (int64_t key = 0; key < keys->range; key++)
    if (counts[key]) visit(user, key, counts[key]);
  cb_free(counts);
  return CB_OK;
}

/* ---- columns */

static void add_column(void *user, int64_t key, int64_t count) {
  struct cb_profile_columns *out = user;
  out->empty--;
  if (count <= out->longest) return;
  out->longest = count;
  out->longest_column = key;
}

enum cb_status cb_profile_columns(struct cb_profile *profile, const struct cb_csr *csr,
                                  struct cb_diag *diag) {
  const struct keys keys = {.csr = csr, .range = csr->cols};
  profile->column = (struct cb_profile_columns){.empty = csr->cols, .longest_column = -1};
  return visit_keys(&keys, add_column, &profile->column, diag);
}

/* ---- diagonals */

struct diagonals {
  const struct cb_csr *csr;
  struct cb_profile_diagonals *out;
  /* The sum of |i - j| is kept as high × 2^32 + low: 2^31 times 2^33 nonzeros would not fit 64 bits. */
  uint64_t high, low;
};

static int64_t diagonal_length(const struct cb_csr *csr, int64_t offset) {
  const int64_t first = offset < 0 ? -offset : 0; /* row */
  const int64_t end = csr->rows < csr->cols - offset ? csr->rows : csr->cols - offset;
  return end - first;
}

static int fuller(const struct cb_profile_diagonal *a, const struct cb_profile_diagonal *b) {
  if (a->nonzeros != b->nonzeros) return a->nonzeros > b->nonzeros;
  if (llabs(a->offset) != llabs(b->offset)) return llabs(a->offset) < llabs(b->offset);
  return a->offset < b->offset;
}

static void keep_fullest(struct cb_profile_diagonals *out, const struct cb_profile_diagonal *diagonal) {
  int at = out->fullest_count;
  if (at == CB_PROFILE_DIAGONALS && !fuller(diagonal, &out->fullest[at - 1])) return;
  if (at == CB_PROFILE_DIAGONALS)
    at--;
  else
    out->fullest_count++;
  for (; at > 0 && fuller(diagonal, &out->fullest[at - 1]); at--) out->fullest[at] = out->fullest[at - 1];
  out->fullest[at] = *diagonal;
}

static void add_diagonal(void *user, int64_t key, int64_t count) {
  struct diagonals *diagonals = user;
  struct cb_profile_diagonals *out = diagonals->out;
  const int64_t offset = key - (diagonals->csr->rows - 1);
  const struct cb_profile_diagonal diagonal = {offset, count, diagonal_length(diagonals->csr, offset)};
  if (-offset > out->lower) out->lower = -offset;
  if (offset > out->upper) out->upper = offset;
  diagonals->low += (uint64_t)llabs(offset) * (uint64_t)count; /* below 2^62 */
  diagonals->high += diagonals->low >> 32;
  diagonals->low &= UINT32_MAX;
  out->populated++;
  if (!offset) out->main_nonzeros = count;
  if (count * 100 >= diagonal.length * CB_PROFILE_DIAGONAL_FILL) {
    out->filled++;
    out->filled_nonzeros += count;
  }
  keep_fullest(out, &diagonal);
}

enum cb_status cb_profile_diagonals(struct cb_profile *profile, const struct cb_csr *csr,
                                    struct cb_diag *diag) {
  struct cb_profile_diagonals *out = &profile->diagonal;
  const int any = csr->rows && csr->cols;
  const struct keys keys = {.csr = csr, .diagonals = 1, .range = any ? csr->rows + csr->cols - 1 : 0};
  struct diagonals diagonals = {.csr = csr, .out = out};
  const enum cb_status s = visit_keys(&keys, add_diagonal, &diagonals, diag);
  if (s) return s;
  if (csr->nnz)
    out->mean_distance = ((double)diagonals.high * 0x1p32 + (double)diagonals.low) / (double)csr->nnz;
  out->main_full = any && out->main_nonzeros == diagonal_length(csr, 0);
  return CB_OK;
}
