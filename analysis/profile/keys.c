// SPDX-License-Identifier: Apache-2.0
/* How many nonzeros each column and each diagonal has. Both are a count of keys: column + shift, where the
 * shift is 0 for columns and rows - 1 - row for diagonals. Counters of all keys are kept per thread, as many
 * threads as a third of the matrix's memory has room for; when not even one set of counters has, as in a
 * matrix with fewer nonzeros than columns, the keys themselves are sorted. Either way every key that occurs
 * is visited in ascending order, so the figures do not depend on the way. */
#include "analysis/profile/parts.h"

#include "base/memory.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

struct keys {
  const struct cb_csr *csr;
  int diagonals;
  int64_t range; /* keys are 0 … range - 1, at most 2^32 - 3 */
};

typedef void visit_key(void *user, int64_t key, int64_t count);

static int64_t shift_of(const struct keys *keys, int64_t row) {
  return keys->diagonals ? keys->csr->rows - 1 - row : 0;
}

/* ---- sorting: American flag sort (P. McIlroy, K. Bostic, M. D. McIlroy, "Engineering radix sort", 1993) */

enum { RADIX_BITS = 8, RADIX = 1 << RADIX_BITS, FEW_KEYS = 48 };

static void insert_sort(uint32_t *keys, int64_t count) {
  for (int64_t i = 1; i < count; i++) {
    const uint32_t key = keys[i];
    int64_t j = i;
    for (; j > 0 && keys[j - 1] > key; j--) keys[j] = keys[j - 1];
    keys[j] = key;
  }
}

/* Brings keys with equal bits shift … shift + 7 together, in order of these bits; bucket b begins at
 * begin[b]. */
static void deal(uint32_t *keys, int64_t count, int shift, int64_t begin[RADIX + 1]) {
  int64_t next[RADIX];
  memset(begin, 0, (RADIX + 1) * sizeof *begin);
  for (int64_t i = 0; i < count; i++) begin[(keys[i] >> shift & (RADIX - 1)) + 1]++;
  for (int b = 0; b < RADIX; b++) begin[b + 1] += begin[b];
  memcpy(next, begin, sizeof next);
  for (int b = 0; b < RADIX; b++) {
    while (next[b] < begin[b + 1]) {
      uint32_t key = keys[next[b]];
      for (unsigned to; (to = key >> shift & (RADIX - 1)) != (unsigned)b;) {
        const uint32_t evicted = keys[next[to]];
        keys[next[to]++] = key;
        key = evicted;
      }
      keys[next[b]++] = key;
    }
  }
}

/* Sorts keys that are equal but for their lowest `bits` bits. */
static void sort_bits(uint32_t *keys, int64_t count, int bits) {
  if (count <= FEW_KEYS) insert_sort(keys, count);
  if (count <= FEW_KEYS || !bits) return;
  const int shift = bits > RADIX_BITS ? bits - RADIX_BITS : 0;
  int64_t begin[RADIX + 1];
  deal(keys, count, shift, begin);
  for (int b = 0; b < RADIX; b++) sort_bits(keys + begin[b], begin[b + 1] - begin[b], shift);
}

void cb_profile_sort(uint32_t *keys, int64_t count) {
  uint32_t all = 0;
  if (count <= FEW_KEYS) {
    insert_sort(keys, count);
    return;
  }
  for (int64_t i = 0; i < count; i++) all |= keys[i];
  const int bits = all ? 32 - __builtin_clz(all) : 0, shift = bits > RADIX_BITS ? bits - RADIX_BITS : 0;
  int64_t begin[RADIX + 1];
  deal(keys, count, shift, begin);
#pragma omp parallel for schedule(dynamic, 1)
  for (int b = 0; b < RADIX; b++) sort_bits(keys + begin[b], begin[b + 1] - begin[b], shift);
}

static enum cb_status visit_sorted(const struct keys *keys, visit_key *visit, void *user,
                                   struct cb_diag *diag) {
  const struct cb_csr *csr = keys->csr;
  uint32_t *sorted = cb_alloc((size_t)csr->nnz, sizeof *sorted);
  if (!sorted) return cb_fail_memory(diag, "profile", (unsigned long long)csr->nnz * sizeof *sorted);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t i = cb_csr_row(csr, row); i < cb_csr_row(csr, row + 1); i++)
      sorted[i] = (uint32_t)(csr->col_idx[i] + shift_of(keys, row));
  cb_profile_sort(sorted, csr->nnz);
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
