// SPDX-License-Identifier: Apache-2.0
/* The 16-way merge over a panel's rows: see panels.h. */
#include "analysis/panels.h"

static const int32_t none = INT32_MAX; /* no matrix has this column: dimensions end at INT32_MAX */

enum cb_status cb_check_panels(const struct cb_csr *csr, struct cb_diag *diag) {
  enum { PLENTY = 4 << 20 };
  if (csr->rows <= PLENTY + 2 * csr->nnz) return CB_OK;
  return cb_fail(diag, CB_ERR_UNSUPPORTED,
                 "%lld rows for %lld nonzeros are too many for panels of rows; use another recipe, or leave out empty rows",
                 (long long)csr->rows, (long long)csr->nnz);
}

void cb_panel_open(struct cb_panel_walk *walk, const struct cb_csr *csr, int64_t panel) {
  walk->csr = csr;
  for (int r = 0; r < CB_PANEL_ROWS; r++) {
    const int64_t row = panel * CB_PANEL_ROWS + r;
    walk->next[r] = row < csr->rows ? cb_csr_row(csr, row) : 0;
    walk->end[r] = row < csr->rows ? cb_csr_row(csr, row + 1) : 0;
    walk->column[r] = walk->next[r] < walk->end[r] ? csr->col_idx[walk->next[r]] : none;
  }
}

static int32_t smallest(const int32_t column[CB_PANEL_ROWS]) {
  int32_t least = column[0];
  for (int r = 1; r < CB_PANEL_ROWS; r++) least = column[r] < least ? column[r] : least;
  return least;
}

/* Consumes the nonzeros of `column`; returns the rows that have one. */
static uint16_t take_column(struct cb_panel_walk *walk, int32_t column) {
  unsigned rows = 0;
  for (int r = 0; r < CB_PANEL_ROWS; r++) rows |= (unsigned)(walk->column[r] == column) << r;
  for (unsigned left = rows; left; left &= left - 1) {
    const int r = __builtin_ctz(left);
    const int64_t next = ++walk->next[r];
    walk->column[r] = next < walk->end[r] ? walk->csr->col_idx[next] : none;
  }
  return (uint16_t)rows;
}

int cb_panel_next(struct cb_panel_walk *walk, int aggregated, struct cb_subblock *block) {
  int32_t column = smallest(walk->column);
  if (column == none) return 0;
  *block = (struct cb_subblock){0};
  for (int r = 0; r < CB_PANEL_ROWS; r++) block->first[r] = walk->next[r];
  const int32_t left = column / CB_BLOCK_COLS * CB_BLOCK_COLS;
  if (aggregated) {
    while (block->width < CB_BLOCK_COLS && column != none) {
      block->columns[block->width] = column;
      block->column_rows[block->width] = take_column(walk, column);
      block->nonzeros += __builtin_popcount(block->column_rows[block->width++]);
      column = smallest(walk->column);
    }
    for (int c = block->width; c < CB_BLOCK_COLS; c++) block->columns[c] = block->columns[block->width - 1];
    return 1;
  }
  block->width = CB_BLOCK_COLS;
  for (int c = 0; c < CB_BLOCK_COLS; c++) block->columns[c] = left + c;
  while (column != none && column - left < CB_BLOCK_COLS) {
    block->column_rows[column - left] = take_column(walk, column);
    block->nonzeros += __builtin_popcount(block->column_rows[column - left]);
    column = smallest(walk->column);
  }
  return 1;
}

uint16_t cb_subblock_row(const struct cb_subblock *block, int row) {
  unsigned bits = 0;
  for (int c = 0; c < CB_BLOCK_COLS; c++) bits |= (unsigned)(block->column_rows[c] >> row & 1) << c;
  return (uint16_t)bits;
}
