// SPDX-License-Identifier: Apache-2.0
/* COO and BSR as rows of entries: see cb_view_expand in matrix.h. Of COO whose rows ascend, row pointers are made and
 * nothing else; in another order its entries are counted into their rows. Of BSR every place of a block is an entry. */
#include "base/memory.h"
#include "runtime/operator/matrix.h"
#include "runtime/operator/matrix_parts.h"

#include <string.h>

void cb_expansion_release(struct cb_expansion *expansion) {
  cb_free(expansion->row_ptr);
  cb_free(expansion->col_idx);
  cb_free(expansion->entries);
  *expansion = (struct cb_expansion){0};
}

/* Row pointers of zeros and, when wanted, room for columns and entries. */
static enum cb_status alloc_rows(struct cb_expansion *expansion, const struct cb_view *view, int all,
                                 struct cb_diag *diag) {
  const size_t entries = (size_t)view->nnz, width = cb_needs_wide(view->nnz) ? 8 : 4;
  expansion->row_ptr = cb_calloc((size_t)view->rows + 2, sizeof *expansion->row_ptr);
  if (all) expansion->col_idx = cb_alloc(entries, sizeof *expansion->col_idx);
  if (all) expansion->entries = cb_alloc(entries, width);
  if (expansion->row_ptr && (!all || (expansion->col_idx && expansion->entries))) return CB_OK;
  return cb_fail_memory(diag, "the rows of the matrix", (uint64_t)view->rows * 8 + entries * (4 + width));
}

void cb_view_use_rows(struct cb_view *view, const struct cb_expansion *expansion) {
  view->format = CBGEN_CSR;
  view->row_ptr = expansion->row_ptr;
  view->row_wide = 1;
  if (!expansion->entries) return;
  view->col_idx = expansion->col_idx;
  view->col_wide = 0;
  view->base = 0;
  view->entries = expansion->entries;
  view->entries_wide = cb_needs_wide(view->nnz);
}

/* ---- COO */

static enum cb_status fail_entry(const struct cb_view *view, int64_t k, struct cb_diag *diag) {
  const int64_t row = cb_view_row(view, k), col = cb_view_col(view, k), base = view->base;
  if (row < 0 || row >= view->rows)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'%s[%lld]' is %lld; rows go from %lld to %lld", view->words->pointers,
                   (long long)k, (long long)(row + base), (long long)base, (long long)(view->rows - 1 + base));
  return cb_fail(diag, CB_ERR_ARGUMENT, "'%s[%lld]' is %lld; columns go from %lld to %lld", view->words->indices,
                 (long long)k, (long long)(col + base), (long long)base, (long long)(view->cols - 1 + base));
}

static enum cb_status check_coo(const struct cb_view *view, int *ascending, struct cb_diag *diag) {
  int64_t bad = view->nnz;
  int ordered = 1;
#pragma omp parallel for schedule(static) reduction(min : bad) reduction(& : ordered)
  for (int64_t k = 0; k < view->nnz; k++) {
    const int64_t row = cb_view_row(view, k), col = cb_view_col(view, k);
    if ((row < 0 || row >= view->rows || col < 0 || col >= view->cols) && k < bad) bad = k;
    if (k && row < cb_view_row(view, k - 1)) ordered = 0;
  }
  *ascending = ordered;
  return bad < view->nnz ? fail_entry(view, bad, diag) : CB_OK;
}

/* row_ptr[r + 1]: entries up to row r, the last one's number plus 1. */
static void count_rows(struct cb_expansion *expansion, const struct cb_view *view) {
  int64_t *const row_ptr = expansion->row_ptr;
  for (int64_t k = 0; k < view->nnz; k++) row_ptr[cb_view_row(view, k) + 1]++;
  for (int64_t row = 0; row < view->rows; row++) row_ptr[row + 1] += row_ptr[row];
}

/* Entries into their rows, in the order given. row_ptr[r] moves from where row r begins to where it ends, which is
 * where the next one begins: so all move back by one place then. */
static void move_entries(struct cb_expansion *expansion, const struct cb_view *view) {
  int64_t *const row_ptr = expansion->row_ptr;
  const int wide = cb_needs_wide(view->nnz);
  for (int64_t k = 0; k < view->nnz; k++) {
    const int64_t place = row_ptr[cb_view_row(view, k)]++;
    expansion->col_idx[place] = (int32_t)cb_view_col(view, k);
    cb_set_number(expansion->entries, wide, place, k);
  }
  memmove(row_ptr + 1, row_ptr, (size_t)view->rows * sizeof *row_ptr);
  row_ptr[0] = 0;
}

static enum cb_status expand_coo(struct cb_expansion *expansion, struct cb_view *view, struct cb_diag *diag) {
  int ascending;
  enum cb_status s = check_coo(view, &ascending, diag);
  if (!s) s = alloc_rows(expansion, view, !ascending, diag);
  if (s) return s;
  count_rows(expansion, view);
  if (!ascending) move_entries(expansion, view);
  for (int64_t row = 0; row <= view->rows && ascending; row++) expansion->row_ptr[row] += view->base; /* as columns */
  cb_view_use_rows(view, expansion);
  return CB_OK;
}

/* ---- BSR */

static enum cb_status check_bsr(const struct cb_view *view, struct cb_diag *diag) {
  struct cb_view blocks = *view; /* the matrix of blocks, in CSR */
  int canonical;
  blocks.rows = view->rows / view->block_rows;
  blocks.cols = view->cols / view->block_cols;
  blocks.nnz = view->blocks;
  return cb_view_check(&blocks, &canonical, diag);
}

/* A row of block row `of`: a row of each of its blocks, one after the other. */
static void expand_row(struct cb_expansion *expansion, const struct cb_view *view, int64_t of, int row) {
  const int rows = view->block_rows, cols = view->block_cols, wide = cb_needs_wide(view->nnz);
  const int64_t begin = cb_view_row(view, of), end = cb_view_row(view, of + 1);
  int64_t place = (begin * rows + row * (end - begin)) * cols;
  expansion->row_ptr[of * rows + row] = place;
  for (int64_t block = begin; block < end; block++)
    for (int col = 0; col < cols; col++, place++) {
      const int within = view->blocks_by_column ? col * rows + row : row * cols + col;
      expansion->col_idx[place] = (int32_t)(cb_view_col(view, block) * cols + col);
      cb_set_number(expansion->entries, wide, place, block * rows * cols + within);
    }
}

static enum cb_status expand_bsr(struct cb_expansion *expansion, struct cb_view *view, struct cb_diag *diag) {
  enum cb_status s = check_bsr(view, diag);
  if (!s) s = alloc_rows(expansion, view, 1, diag);
  if (s) return s;
#pragma omp parallel for schedule(dynamic, 256)
  for (int64_t of = 0; of < view->rows / view->block_rows; of++)
    for (int row = 0; row < view->block_rows; row++) expand_row(expansion, view, of, row);
  expansion->row_ptr[view->rows] = view->nnz;
  cb_view_use_rows(view, expansion);
  return CB_OK;
}

enum cb_status cb_view_expand(struct cb_expansion *expansion, struct cb_view *view, struct cb_diag *diag) {
  if (view->format == CBGEN_COO) return expand_coo(expansion, view, diag);
  return view->format == CBGEN_BSR ? expand_bsr(expansion, view, diag) : CB_OK;
}
