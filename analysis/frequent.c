// SPDX-License-Identifier: Apache-2.0
/* See frequent.h. */
#include "analysis/frequent.h"

#include "base/integers.h"
#include "base/memory.h"

#include <omp.h>

enum {
  SECTOR_BYTES = 32,
  COUNT_KEYS = CB_COUNT_KEYS,
  MOST_COLUMNS = 1 << 20,
  GAIN_PERCENT = 140,      /* nonzeros of a column for each sector that its copies ask for; measured */
  ROW_LEAST = 4,           /* nonzeros of a row, for the place of its sum; measured */
  BLOCK_RESERVED = 1024,   /* bytes of shared memory that the driver takes of a multiprocessor for a thread block */
  PER_SM = 1,
  THREADS = 1024
};

struct cb_phase_shape cb_phase_shape(const struct cb_target *target, const struct cb_options *options) {
  const struct cb_types types = cb_precision_types((enum cb_precision)options->type);
  struct cb_phase_shape shape = {.per_sm = options->phase_blocks ? options->phase_blocks : PER_SM,
                                 .element = (int64_t)cb_type_size(types.sum),
                                 .threads = options->phase_threads ? (int)options->phase_threads : THREADS};
  const int64_t share = target->shared_per_sm / shape.per_sm - BLOCK_RESERVED;
  shape.room = (share < target->shared_per_block ? share : target->shared_per_block) / shape.element;
  shape.panels = shape.per_sm * target->multiprocessors;
  return shape;
}

/* ---- nonzeros by column */

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

uint32_t *cb_count_columns(const struct cb_csr *csr) {
  uint32_t *counts = cb_calloc((size_t)csr->cols, sizeof *counts);
  if (counts && count_nonzeros(counts, csr)) return counts;
  cb_free(counts);
  return NULL;
}

int64_t *cb_columns_with(const uint32_t *counts, int64_t cols) {
  int64_t *with = cb_alloc(COUNT_KEYS, sizeof *with);
  uint32_t *own = cb_calloc((size_t)omp_get_max_threads() * COUNT_KEYS, sizeof *own); /* each thread counts apart */
  if (!with || !own) {
    cb_free(with);
    cb_free(own);
    return NULL;
  }
#pragma omp parallel
  {
    const int64_t me = omp_get_thread_num(), all = omp_get_num_threads();
#pragma omp for schedule(static)
    for (int64_t column = 0; column < cols; column++) own[me * COUNT_KEYS + cb_count_key(counts[column])]++;
#pragma omp for schedule(static)
    for (int64_t key = 0; key < COUNT_KEYS; key++) {
      with[key] = 0;
      for (int64_t thread = 0; thread < all; thread++) with[key] += own[thread * COUNT_KEYS + key];
    }
  }
  cb_free(own);
  return with;
}

/* ---- columns: by their nonzeros, ties in their order */

static enum cb_status choose_columns(struct cb_frequent *frequent, const uint32_t *counts, const struct cb_csr *csr,
                                     int64_t least, int64_t most) {
  int64_t *with = cb_columns_with(counts, csr->cols);
  if (!with) return CB_ERR_MEMORY;
  int64_t key = COUNT_KEYS, above = 0; /* columns of `key` nonzeros or more */
  while (key > least && above < most) above += with[--key];
  int64_t surplus = cb_larger(above - most, 0); /* the last of those that have just `key` are left out */
  frequent->columns = above - surplus;
#pragma omp parallel for schedule(static)
  for (int64_t column = 0; column < csr->cols; column++) frequent->column[column] = cb_count_key(counts[column]) >= key;
  for (int64_t column = csr->cols - 1; surplus > 0; column--) {
    if (cb_count_key(counts[column]) != key) continue;
    frequent->column[column] = 0;
    surplus--;
  }
  cb_free(with);
  return CB_OK;
}

/* ---- rows: need the columns */

static int64_t row_count(const struct cb_frequent *frequent, const struct cb_csr *csr, int64_t row) {
  int64_t count = 0;
  for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) count += frequent->column[csr->col_idx[k]];
  return count;
}

static void choose_rows(struct cb_frequent *frequent, const struct cb_csr *csr, int64_t least, int64_t most_rows) {
  int64_t rows, nonzeros;
  for (;; least *= 2) {
    rows = nonzeros = 0;
#pragma omp parallel for schedule(dynamic, 4096) reduction(+ : rows, nonzeros)
    for (int64_t row = 0; row < csr->rows; row++) {
      const int64_t count = row_count(frequent, csr, row);
      frequent->row[row] = count >= least;
      rows += count >= least;
      nonzeros += count >= least ? count : 0;
    }
    if (rows <= most_rows) break;
  }
  frequent->rows = rows;
  frequent->nonzeros = nonzeros;
}

/* Why nothing is chosen for phases, as long as the columns alone say so. */
static enum cb_status check_columns(const struct cb_frequent *frequent, int64_t least, int64_t room,
                                    struct cb_diag *diag) {
  if (!frequent->columns)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "no column has the %lld nonzeros that repay reading its entry of x into shared memory; use another "
                   "recipe, or say --phase-columns",
                   (long long)least);
  if (frequent->columns * 2 < room)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "%lld frequent columns take less than half of the %lld entries of x that shared memory holds, so one "
                   "phase would do: recipe 'hot' is for that; use another recipe, or say --phase-columns",
                   (long long)frequent->columns, (long long)room);
  return CB_OK;
}

enum cb_status cb_frequent_choose(struct cb_frequent *frequent, const struct cb_csr *csr,
                                  const struct cb_target *target, const struct cb_options *options,
                                  struct cb_diag *diag) {
  const struct cb_phase_shape shape = cb_phase_shape(target, options);
  const int64_t copies = shape.panels * shape.element / SECTOR_BYTES;
  const int64_t least = options->phase_columns ? 1 : copies * GAIN_PERCENT / 100;
  *frequent = (struct cb_frequent){0};
  enum cb_status s = cb_check_column_tables(csr, diag);
  if (s) return s;
  frequent->column = cb_calloc((size_t)csr->cols, 1);
  frequent->row = cb_calloc((size_t)csr->rows, 1);
  uint32_t *counts = cb_count_columns(csr);
  s = frequent->column && frequent->row && counts ? CB_OK : CB_ERR_MEMORY;
  if (!s)
    s = choose_columns(frequent, counts, csr, least, options->phase_columns ? options->phase_columns : MOST_COLUMNS);
  cb_free(counts);
  if (s) return cb_fail_memory(diag, "frequent columns", (uint64_t)csr->cols * 5);
  if (!options->phase_columns) s = check_columns(frequent, least, shape.room, diag);
  if (s) return s;
  choose_rows(frequent, csr, options->phase_row ? options->phase_row : ROW_LEAST, shape.panels * shape.room / 4 * 3);
  if (!options->phase_columns && frequent->nonzeros * 3 < csr->nnz)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "%lld frequent columns hold %lld of %lld nonzeros in rows that have several, less than a third; use "
                   "another recipe, or say --phase-columns",
                   (long long)frequent->columns, (long long)frequent->nonzeros, (long long)csr->nnz);
  return CB_OK;
}

void cb_frequent_release(struct cb_frequent *frequent) {
  cb_free(frequent->column);
  cb_free(frequent->row);
  *frequent = (struct cb_frequent){0};
}
