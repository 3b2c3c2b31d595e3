// SPDX-License-Identifier: Apache-2.0
/* See columns.h. */
#include "analysis/columns.h"

#include "analysis/ordering.h"
#include "base/memory.h"

#include <omp.h>

/* Each thread counts in bytes of its own, which are a quarter of the counters and nobody else's: columns that all rows
 * have would keep threads waiting for each other. A byte that is full moves on. */
static void count_apart(uint32_t *counts, const struct cb_csr *csr, unsigned char *bytes) {
#pragma omp parallel
  {
    const int64_t me = omp_get_thread_num(), all = omp_get_num_threads();
    unsigned char *own = bytes + me * csr->cols;
#pragma omp for schedule(static)
    for (int64_t k = 0; k < csr->nnz; k++) {
      if (++own[csr->col_idx[k]]) continue;
#pragma omp atomic
      counts[csr->col_idx[k]] += 256;
    }
#pragma omp for schedule(static)
    for (int64_t column = 0; column < csr->cols; column++)
      for (int64_t thread = 0; thread < all; thread++) counts[column] += bytes[thread * csr->cols + column];
  }
}

static void count_shared(uint32_t *counts, const struct cb_csr *csr) {
#pragma omp parallel for schedule(static)
  for (int64_t k = 0; k < csr->nnz; k++) {
#pragma omp atomic
    counts[csr->col_idx[k]]++;
  }
}

/* Bytes for all threads are too many for a matrix with few nonzeros per column; nor do threads meet there. */
static int count_nonzeros(uint32_t *counts, const struct cb_csr *csr) {
  if (csr->remote) return !csr->remote->count_columns(csr->remote->user, counts, NULL);
  const int64_t bytes = csr->cols * omp_get_max_threads();
  if (bytes > 4 * csr->nnz) {
    count_shared(counts, csr);
    return 1;
  }
  unsigned char *own = cb_calloc((size_t)bytes, 1);
  if (own) count_apart(counts, csr, own);
  cb_free(own);
  return own != NULL;
}

enum cb_status cb_check_column_tables(const struct cb_csr *csr, struct cb_diag *diag) {
  enum { TABLE_BYTES = 8, PLENTY = 16 << 20 }; /* of a column: how often it occurs, and its place */
  if (csr->cols * TABLE_BYTES <= cb_csr_bytes(csr) + PLENTY) return CB_OK;
  return cb_fail(diag, CB_ERR_UNSUPPORTED,
                 "%lld columns for %lld nonzeros are too many to look for hot ones; use another recipe, or leave out "
                 "empty columns",
                 (long long)csr->cols, (long long)csr->nnz);
}

static int count_keys(struct cb_column_counts *counts) {
  uint32_t *own = cb_calloc((size_t)omp_get_max_threads() * CB_COUNT_KEYS, sizeof *own); /* each thread counts apart */
  if (!own) return 0;
#pragma omp parallel
  {
    const int64_t me = omp_get_thread_num(), all = omp_get_num_threads();
#pragma omp for schedule(static)
    for (int64_t column = 0; column < counts->cols; column++) own[me * CB_COUNT_KEYS + cb_column_key(counts, column)]++;
#pragma omp for schedule(static)
    for (int64_t key = 0; key < CB_COUNT_KEYS; key++)
      for (int64_t thread = 0; thread < all; thread++) counts->with[key] += own[thread * CB_COUNT_KEYS + key];
  }
  cb_free(own);
  counts->occupied = counts->cols - counts->with[0];
  return 1;
}

void cb_count_marked(uint32_t *by_row, const struct cb_csr *csr, const uint64_t *marked) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < csr->rows; row++) {
    uint32_t count = 0;
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      count += (uint32_t)(marked[csr->col_idx[k] >> 6] >> (csr->col_idx[k] & 63) & 1);
    by_row[row] = count;
  }
}

enum cb_status cb_columns_counted(uint32_t **counts, const struct cb_csr *csr, struct cb_diag *diag) {
  *counts = NULL;
  const enum cb_status s = cb_check_column_tables(csr, diag);
  if (s) return s;
  *counts = cb_calloc((size_t)csr->cols, sizeof **counts);
  if (*counts && count_nonzeros(*counts, csr)) return CB_OK;
  cb_free(*counts);
  *counts = NULL;
  return cb_fail_memory(diag, "counts of columns", (uint64_t)csr->cols * sizeof **counts);
}

int cb_count_columns(struct cb_column_counts *counts, struct cb_arena *arena, const struct cb_csr *csr) {
  counts->cols = csr->cols;
  counts->of = cb_arena_alloc(arena, (size_t)csr->cols, sizeof *counts->of);
  counts->with = cb_arena_alloc(arena, CB_COUNT_KEYS, sizeof *counts->with);
  return counts->of && counts->with && count_nonzeros(counts->of, csr) && count_keys(counts);
}

/* ---- the most frequent ones */

struct tie {
  const struct cb_column_counts *counts;
  int64_t key;
};

static int is_tie(const void *user, int64_t column) {
  const struct tie *tie = user;
  return cb_column_key(tie->counts, column) == tie->key;
}

struct cb_column_cut cb_cut_columns(const struct cb_column_counts *counts, int64_t number, struct cb_arena *arena) {
  struct tie tie = {counts, CB_COUNT_KEYS - 1};
  int64_t above = 0, ties = 0;
  while (tie.key > 1 && above + counts->with[tie.key] < number) above += counts->with[tie.key--];
  const int32_t *columns = cb_rows_where(arena, counts->cols, is_tie, &tie, &ties);
  return (struct cb_column_cut){tie.key, columns && number - above < ties ? columns[number - above] : counts->cols};
}
