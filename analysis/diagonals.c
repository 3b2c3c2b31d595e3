// SPDX-License-Identifier: Apache-2.0
/* Counting diagonals and choosing the populated ones: see diagonals.h. */
#include "analysis/diagonals.h"

#include "base/memory.h"

#include <stdlib.h>

int64_t cb_diagonal_length(const struct cb_csr *csr, int64_t offset) {
  const int64_t first = offset < 0 ? -offset : 0; /* row */
  const int64_t end = csr->rows < csr->cols - offset ? csr->rows : csr->cols - offset;
  return end - first;
}

/* ---- counting */

/* Threads share the counters, and consecutive rows tend to hit the same few: each thread gathers counts in a
 * small table first, where a key that meets another one moves it on. */
enum { TABLE_BITS = 10, TABLE = 1 << TABLE_BITS };
struct gathered {
  uint32_t key, count;
};

static void move_on(uint32_t *counts, const struct gathered *gathered) {
#pragma omp atomic
  counts[gathered->key] += gathered->count;
}

static void gather(uint32_t *counts, struct gathered *table, uint32_t key) {
  struct gathered *place = &table[key * UINT32_C(2654435761) >> (32 - TABLE_BITS)];
  if (place->key != key) {
    if (place->count) move_on(counts, place);
    *place = (struct gathered){key, 0};
  }
  place->count++;
}

enum cb_status cb_diagonals_count(uint32_t **counts, const struct cb_csr *csr, struct cb_diag *diag) {
  const int64_t keys = csr->rows + csr->cols;
  uint32_t *sums = *counts = cb_calloc((size_t)keys, sizeof *sums);
  if (!sums) return cb_fail_memory(diag, "diagonals", (uint64_t)keys * sizeof *sums);
#pragma omp parallel
  {
    struct gathered table[TABLE] = {{0, 0}};
#pragma omp for schedule(static)
    for (int64_t row = 0; row < csr->rows; row++)
      for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
        gather(sums, table, (uint32_t)(csr->col_idx[k] + csr->rows - 1 - row));
    for (int i = 0; i < TABLE; i++)
      if (table[i].count) move_on(sums, &table[i]);
  }
  return CB_OK;
}

/* ---- choosing */

static int is_populated(const struct cb_csr *csr, int64_t key, uint32_t count,
                        const struct cb_options *options) {
  const int64_t length = cb_diagonal_length(csr, key - (csr->rows - 1));
  return count && 2 * length >= csr->rows && 100 * (int64_t)count >= options->dia_fill * length;
}

static int fuller_first(const void *left, const void *right) {
  const struct gathered *a = left, *b = right;
  if (a->count != b->count) return a->count > b->count ? -1 : 1;
  return (a->key > b->key) - (a->key < b->key);
}

enum cb_status cb_diagonals_choose(uint32_t **flags, const struct cb_csr *csr,
                                   const struct cb_options *options, struct cb_diag *diag) {
  const int64_t keys = csr->rows + csr->cols;
  int64_t populated = 0, listed = 0;
  uint32_t *counts = NULL;
  *flags = NULL;
  /* Too few nonzeros for one such diagonal: what has more rows than nonzeros is not counted at all. */
  if (!csr->nnz || 200 * csr->nnz < options->dia_fill * csr->rows) return CB_OK;
  const enum cb_status s = cb_diagonals_count(&counts, csr, diag);
  if (s) return s;
  for (int64_t key = 0; key < keys; key++) populated += is_populated(csr, key, counts[key], options);
  struct gathered *list = cb_alloc((size_t)populated, sizeof *list);
  if (!list) {
    cb_free(counts);
    return cb_fail_memory(diag, "diagonals", (uint64_t)populated * sizeof *list);
  }
  for (int64_t key = 0; key < keys; key++) {
    if (is_populated(csr, key, counts[key], options))
      list[listed++] = (struct gathered){(uint32_t)key, counts[key]};
    counts[key] = 0;
  }
  qsort(list, (size_t)populated, sizeof *list, fuller_first);
  for (int64_t i = 0; i < populated && i < options->dia_most; i++) counts[list[i].key] = 1;
  cb_free(list);
  if (populated)
    *flags = counts;
  else
    cb_free(counts);
  return CB_OK;
}
