// SPDX-License-Identifier: Apache-2.0
/* Walking a matrix by panels of 16 rows and sub-blocks of 16 columns (CB-SpMV), without sorting: a
 * 16-way merge over the panel's rows meets the columns in ascending order.
 *
 *   struct cb_panel_walk walk;
 *   struct cb_subblock block;
 *   cb_panel_open(&walk, csr, panel);
 *   while (cb_panel_next(&walk, aggregated, &block)) …
 *
 * Not aggregated: a sub-block covers the columns 16 c … 16 c + 15 and is met when any of them has a nonzero.
 * Aggregated: empty columns of the panel are dropped and the rest shifted left, so every sub-block but the
 * panel's last has 16 columns, each with at least one nonzero.
 */
#ifndef CBGEN_ANALYSIS_PANELS_H
#define CBGEN_ANALYSIS_PANELS_H

#include "base/integers.h"
#include "frontend/csr.h"

enum { CB_PANEL_ROWS = 16, CB_BLOCK_COLS = 16, CB_BLOCK_SIZE = 256 };

struct cb_panel_walk {
  const struct cb_csr *csr;
  int64_t next[CB_PANEL_ROWS], end[CB_PANEL_ROWS]; /* nonzeros of each row that are still to come */
  int32_t column[CB_PANEL_ROWS];                   /* column of the next one; INT32_MAX when there is none */
};

struct cb_subblock {
  int nonzeros;
  int width;                        /* columns in use: 16, or fewer in a panel's last aggregated sub-block */
  int32_t columns[CB_BLOCK_COLS];   /* of the matrix, ascending; from `width` on the last one repeated. Not
                                     * aggregated: 16 c + i, which may lie beyond the matrix's right edge */
  uint16_t column_rows[CB_BLOCK_COLS]; /* bit r: row r of the panel has a nonzero in this column */
  int64_t first[CB_PANEL_ROWS];     /* first nonzero of the sub-block in each row; consecutive from there */
};

static inline int64_t cb_panel_count(int64_t rows) { return cb_divide_up(rows, CB_PANEL_ROWS); }

/* Refuses a matrix nearly all of whose panels are empty: what is kept for each panel would take many times the memory
 * of the matrix. */
enum cb_status cb_check_panels(const struct cb_csr *csr, struct cb_diag *diag);

void cb_panel_open(struct cb_panel_walk *walk, const struct cb_csr *csr, int64_t panel);
int cb_panel_next(struct cb_panel_walk *walk, int aggregated, struct cb_subblock *block);

/* The columns of row `row` as bits: bit c is column c of the sub-block. */
uint16_t cb_subblock_row(const struct cb_subblock *block, int row);

#endif
