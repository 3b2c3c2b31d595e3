// SPDX-License-Identifier: Apache-2.0
/* See frequent.h. */
#include "analysis/layouts/phases/frequent.h"

#include "analysis/layouts/phases/options.h"
#include "base/integers.h"
#include "base/memory.h"

enum {
  SECTOR_BYTES = 32,
  MOST_COLUMNS = 1 << 20,
  GAIN_PERCENT = 140,      /* nonzeros of a column for each sector that its copies ask for; measured */
  ROW_LEAST = 4,           /* nonzeros of a row, for the place of its sum; measured */
  BLOCK_RESERVED = 1024,   /* bytes of shared memory that the driver takes of a multiprocessor for a thread block */
  PER_SM = 1,
  THREADS = 1024
};

struct cb_phase_shape cb_phase_shape(const struct cb_target *target, const struct cb_options *options) {
  const struct cb_types types = cb_precision_types((enum cb_precision)options->type);
  const int64_t *settings = cb_settings(options, &cb_layout_phases);
  struct cb_phase_shape shape = {.per_sm = settings[PHASES_BLOCKS] ? settings[PHASES_BLOCKS] : PER_SM,
                                 .element = (int64_t)cb_type_size(types.sum),
                                 .threads = settings[PHASES_THREADS] ? (int)settings[PHASES_THREADS] : THREADS};
  const int64_t share = target->shared_per_sm / shape.per_sm - BLOCK_RESERVED;
  shape.room = (share < target->shared_per_block ? share : target->shared_per_block) / shape.element;
  shape.blocks = shape.per_sm * target->multiprocessors;
  return shape;
}

/* ---- columns: by their nonzeros, ties in their order */

static int choose_columns(struct cb_frequent *frequent, struct cb_arena *scratch, const struct cb_csr *csr,
                          int64_t least, int64_t most) {
  struct cb_column_counts counts = {0};
  if (!cb_count_columns(&counts, scratch, csr)) return 0;
  for (int64_t key = CB_COUNT_KEYS - 1; key >= least; key--) frequent->columns += counts.with[key];
  frequent->columns = cb_smaller(frequent->columns, most);
  const struct cb_column_cut cut = cb_cut_columns(&counts, frequent->columns, scratch);
#pragma omp parallel for schedule(static)
  for (int64_t column = 0; column < csr->cols; column++) frequent->column[column] = cb_is_in_cut(cut, &counts, column);
  return !scratch->failed;
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
  const int64_t *settings = cb_settings(options, &cb_layout_phases), asked = settings[PHASES_COLUMNS];
  const int64_t copies = shape.blocks * shape.element / SECTOR_BYTES;
  const int64_t least = asked ? 1 : copies * GAIN_PERCENT / 100;
  *frequent = (struct cb_frequent){0};
  enum cb_status s = cb_check_column_tables(csr, diag);
  if (s) return s;
  frequent->column = cb_calloc((size_t)csr->cols, 1);
  frequent->row = cb_calloc((size_t)csr->rows, 1);
  struct cb_arena scratch = {0};
  const int good = frequent->column && frequent->row &&
                   choose_columns(frequent, &scratch, csr, least, asked ? asked : MOST_COLUMNS);
  cb_arena_release(&scratch);
  if (!good) return cb_fail_memory(diag, "frequent columns", (uint64_t)csr->cols * 5);
  if (!asked) s = check_columns(frequent, least, shape.room, diag);
  if (s) return s;
  const int64_t row_least = settings[PHASES_ROW] ? settings[PHASES_ROW] : ROW_LEAST;
  choose_rows(frequent, csr, row_least, shape.blocks * shape.room / 4 * 3);
  if (!asked && frequent->nonzeros * 3 < csr->nnz)
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
