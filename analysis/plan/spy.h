// SPDX-License-Identifier: Apache-2.0
/* A matrix as a picture of at most some hundred cells a side: for reports. A cell counts the nonzeros of a rectangle of
 * entries, by the region that holds them; every nonzero is counted, whatever the matrix's size. */
#ifndef CBGEN_ANALYSIS_PLAN_SPY_H
#define CBGEN_ANALYSIS_PLAN_SPY_H

#include "analysis/plan.h"

#include <stdint.h>

/* Row r of the matrix is in row r · height / rows of the picture, columns likewise. */
struct cb_spy {
  int64_t rows, cols;     /* of the matrix */
  int height, width;      /* cells; 0 where the matrix has no rows, no columns */
  int regions;
  int64_t *counts;        /* regions × height × width nonzeros; owned */
  int64_t largest;        /* of all regions together, in one cell */
};

/* `most` cells on the longer side; the shorter one has its share, but a quarter of these at least, and no side has more
 * cells than the matrix has rows or columns. CB_ERR_MEMORY. Release with cb_spy_release. */
enum cb_status cb_spy_count(struct cb_spy *spy, const struct cb_plan *plan, const struct cb_assignment *assignment,
                            int most, struct cb_diag *diag);
void cb_spy_release(struct cb_spy *spy);

/* The same picture with cells of `factor` × `factor` of these. */
enum cb_status cb_spy_reduce(struct cb_spy *reduced, const struct cb_spy *spy, int factor, struct cb_diag *diag);

/* Nonzeros of `region` in a cell. */
static inline int64_t cb_spy_at(const struct cb_spy *spy, int region, int row, int col) {
  return spy->counts[((int64_t)region * spy->height + row) * spy->width + col];
}

/* The region with the most nonzeros in a cell, the first of several; -1: the cell is empty. *all: of all regions. */
int cb_spy_owner(const struct cb_spy *spy, int row, int col, int64_t *all);

#endif
