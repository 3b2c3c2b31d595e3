// SPDX-License-Identifier: Apache-2.0
/* Aligned tiles of r × c entries: the sizes, the walk along a row of tiles, and which tiles are full enough
 * to be stored whole. The layout blocks calls them natural blocks.
 */
#ifndef CBGEN_ANALYSIS_TILES_H
#define CBGEN_ANALYSIS_TILES_H

#include "analysis/target.h"
#include "base/integers.h"
#include "base/types.h"
#include "frontend/csr.h"

enum { CB_TILE_SIZES = 8, CB_TILE_MOST = 8 /* rows or columns of a tile */ };

/* In the order of the words of option block-size. `within` are sizes that divide this one (-1: none): where their tiles
 * are too sparse, so are these. */
struct cb_tile_size {
  int rows, cols, within[2];
};
extern const struct cb_tile_size cb_tile_sizes[CB_TILE_SIZES];

static inline int64_t cb_tile_area(struct cb_tile_size size) {
  return (int64_t)size.rows * size.cols;
}

/* Rows of tiles. */
static inline int64_t cb_tile_rows(const struct cb_csr *csr, struct cb_tile_size size) {
  return cb_divide_up(csr->rows, size.rows);
}

/* column / cols, of which a division takes several times as long: exact for columns below 2^31 and up to 8 cols, since
 * what the factor has too much is below 8 / 2^34. Of tiles of one column it is 0. */
static inline uint64_t cb_tile_factor(int cols) { return cols > 1 ? (UINT64_C(1) << 34) / (uint64_t)cols + 1 : 0; }
static inline uint32_t cb_tile_column(int32_t column, uint64_t factor) {
  return factor ? (uint32_t)((uint64_t)column * factor >> 34) : (uint32_t)column;
}

/* ---- the walk over the tiles of a row that have a nonzero, by column */

struct cb_tile_walk {
  const struct cb_csr *csr;
  int rows; /* of the matrix in this row of tiles */
  int cols; /* of a tile */
  const int32_t *columns[CB_TILE_MOST]; /* of each row, from `begin` on */
  int64_t begin[CB_TILE_MOST], next[CB_TILE_MOST], end[CB_TILE_MOST];
};

/* Nonzeros first[i] … end[i] - 1 are those of its row i. */
struct cb_tile {
  int64_t column; /* of tiles */
  int64_t first[CB_TILE_MOST], end[CB_TILE_MOST];
};

static inline struct cb_tile_walk cb_tile_walk_open(const struct cb_csr *csr, struct cb_tile_size size,
                                                    int64_t tile_row) {
  struct cb_tile_walk walk = {.csr = csr, .rows = size.rows, .cols = size.cols};
  const int64_t row = tile_row * size.rows;
  if (csr->rows - row < walk.rows) walk.rows = (int)(csr->rows - row);
  for (int i = 0; i < walk.rows; i++) {
    walk.begin[i] = walk.next[i] = cb_csr_row(csr, row + i);
    walk.end[i] = cb_csr_row(csr, row + i + 1);
    if (!csr->remote) walk.columns[i] = csr->col_idx + walk.begin[i]; /* else the caller says where they are */
  }
  return walk;
}

/* Returns 0 behind the last one. */
static inline int cb_tile_walk_next(struct cb_tile_walk *walk, struct cb_tile *tile) {
  int32_t least = INT32_MAX;
  for (int i = 0; i < walk->rows; i++) {
    const int64_t at = walk->next[i] - walk->begin[i];
    if (walk->next[i] < walk->end[i] && walk->columns[i][at] < least) least = walk->columns[i][at];
  }
  if (least == INT32_MAX) return 0; /* no column has that number: there are at most that many */
  tile->column = least / walk->cols;
  const int64_t limit = (tile->column + 1) * walk->cols;
  for (int i = 0; i < walk->rows; i++) {
    int64_t next = walk->next[i];
    tile->first[i] = next;
    while (next < walk->end[i] && walk->columns[i][next - walk->begin[i]] < limit) next++;
    tile->end[i] = walk->next[i] = next;
  }
  return 1;
}

/* ---- full tiles */

/* Tiles that have a nonzero, those of them that are `fill` percent full, nonzeros in these, and all nonzeros. */
struct cb_tile_census {
  int64_t tiles, full, inside, nonzeros;
};

/* Looks at every `stride`-th chunk of 64 rows of tiles. Tiles of each row go to `by_row` unless NULL. Where columns are
 * remote, counting may fail: then there seem to be so many tiles that none can be full. */
enum { CB_TILE_CHUNK = 64 };
#define CB_TILES_UNKNOWN (INT64_C(1) << 50)
struct cb_tile_census cb_tiles_count(const struct cb_csr *csr, struct cb_tile_size size, int64_t fill, int64_t stride,
                                     uint32_t *by_row);

/* The size that takes the fewest bytes when tiles that are `fill` percent full are stored whole, and all other nonzeros
 * with a column offset each: an index into cb_tile_sizes, or -1 when no size saves a twentieth. `type` is that of a
 * value. `asked`: 1 + the only size to consider, or 0. Large matrices are sampled. */
int cb_tiles_choose(const struct cb_csr *csr, const struct cb_target *target, enum cb_type type, int64_t asked,
                    int64_t fill);

/* Tiles of more than 16 entries keep a lane busy for long, so they need a matrix that occupies the device
 * with fewer of them. */
static inline int cb_tiles_are_enough(struct cb_tile_size size, int64_t tiles,
                                      const struct cb_target *target) {
  enum { LARGE = 16, LARGE_TILES = 512 };
  return cb_tile_area(size) <= LARGE || tiles >= LARGE_TILES * (int64_t)target->multiprocessors;
}

/* Sets part_of to 0 for nonzeros in tiles of this size that are `fill` percent full, to 1 for the others. */
void cb_tiles_divide(const struct cb_csr *csr, struct cb_tile_size size, int64_t fill, unsigned char *part_of);

#endif
