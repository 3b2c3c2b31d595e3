// SPDX-License-Identifier: Apache-2.0
/* Blocks of one shape that are full enough to be stored without a column for each nonzero: the step that the format
 * FBCSR calls SplitOnce.
 *
 * A block of a shape at row r and column c has the places (r + i, c + stride * i + k), i < height, k < width. It lies
 * within the matrix, unless blocks may reach over its edges. Blocks of one first row are a slice; slices share no row,
 * and blocks of a slice no place. Of all such choices the one with the most nonzeros is found:
 *
 *   gain[r] = most nonzeros of blocks at row r that share no place (weighted intervals over their columns)
 *   best[r] = max(best[r + 1], gain[r] + best[r + height])
 *
 * where a block counts that is filled to `percent`. Aligned slices begin at multiples of the height only.
 *
 * How blocks are counted: those at row r and column c lie on line c - stride * r. While r ascends, a row that comes
 * in adds 1 to the counters of `width` lines for each nonzero, and a row that goes out takes it away: O(nnz * width)
 * steps for all rows, and each nonzero counts in `height * width` blocks at most.
 */
#ifndef CBGEN_ANALYSIS_FILL_H
#define CBGEN_ANALYSIS_FILL_H

#include "base/arena.h"
#include "base/status.h"
#include "frontend/csr.h"

struct cb_fill_shape {
  const char *name;
  int height, width, stride;
};

enum { CB_FILL_ROWS = 32 }; /* of a slice, unless the shape is one row high */

extern const struct cb_fill_shape cb_fill_shapes[]; /* ends with a NULL name; the widest saving first */
const struct cb_fill_shape *cb_fill_shape_find(const char *name); /* NULL: there is none */

/* Slices ascend, and so do a slice's blocks by column. */
struct cb_fill {
  const struct cb_fill_shape *shape;
  int64_t slices, blocks;
  int32_t *first_row;   /* of each slice */
  int64_t *first_block; /* of each slice, and one more */
  int32_t *column;      /* of each block: of its place in the first row, the leftmost one; negative over an edge */
  int64_t nonzeros;     /* in blocks: fewer than entries when some are absent */
};

/* What a split that chose blocks found (struct cb_found): struct cb_fill, which holds all nonzeros of its part. */
#define CB_FOUND_FILL "fill"

/* How blocks may lie. Over edges only aligned ones do. */
enum cb_fill_places { CB_FILL_ANYWHERE, CB_FILL_ALIGNED, CB_FILL_OVER_EDGES };

/* The best choice of blocks with at least `percent` (1 to 100) of their places filled; no slice when there is none.
 * Nor is there one in a matrix of so many columns, several for each nonzero and row, that counters of its lines would
 * take more memory than the matrix: there x is what a product reads.
 * Deterministic for any number of threads. CB_ERR_MEMORY. */
enum cb_status cb_fill_find(struct cb_fill *fill, const struct cb_csr *csr, const struct cb_fill_shape *shape,
                            int percent, enum cb_fill_places places, struct cb_diag *diag);
void cb_fill_release(struct cb_fill *fill);

/* A copy in an arena, which nobody releases. 0: no memory. */
int cb_fill_keep(struct cb_fill *kept, const struct cb_fill *fill, struct cb_arena *arena);

static inline int64_t cb_fill_count(const struct cb_fill *fill) {
  return fill->blocks * fill->shape->height * fill->shape->width;
}

/* Rows of the matrix in a slice: fewer than its height only over an edge. */
static inline int64_t cb_fill_rows(const struct cb_fill *fill, const struct cb_csr *csr, int64_t slice) {
  const int64_t rows = csr->rows - fill->first_row[slice];
  return rows < fill->shape->height ? rows : fill->shape->height;
}

/* The block of a slice that has a place in column `col` of the slice's row i, or -1. *block is a cursor for ascending
 * columns of one row: it begins at the slice's first block. */
static inline int64_t cb_fill_block(const struct cb_fill *fill, int64_t slice, int64_t i, int32_t col,
                                    int64_t *block) {
  const int64_t end = fill->first_block[slice + 1], on_first = col - fill->shape->stride * i;
  while (*block < end && fill->column[*block] + fill->shape->width <= on_first) ++*block;
  return *block < end && fill->column[*block] <= on_first ? *block : -1;
}

/* Sets part_of[k] to 0 for nonzeros in blocks, to 1 for the others. */
void cb_fill_divide(const struct cb_fill *fill, const struct cb_csr *csr, unsigned char *part_of);

#endif
