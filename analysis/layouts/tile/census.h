// SPDX-License-Identifier: Apache-2.0
/* The tiles of a matrix and the format of each (TileSpMV): 16 × 16 entries with a nonzero, panel by panel, from left
 * to right. The split `defer` and the layout share what is found here.
 *
 * How a format is chosen, n being a tile's nonzeros, and its variation the standard deviation of its 16 rows' lengths
 * by their mean. Rows below the matrix count as empty, so that the last panel's tiles are not padded:
 *
 *   1. COO when n is below `coo` and the variation above `te` percent
 *   2. DnsRow when all rows that have a nonzero are full, then DnsCol, likewise
 *   3. Dns when n is `dense` or more
 *   4. by variation: ELL up to `te` percent, HYB above `th`, else CSR
 *
 * HYB has a width from the longest row down, while that takes fewer bytes; at 0 the tile is COO, and ELL where nothing
 * is over. The paper leaves open whether 2 or 3 comes first. In this order tiles of many full rows are not padded:
 * where the orders differ, it takes 0.02 to 1.6 bytes per nonzero less (5 of 76 real matrices), and nowhere more.
 */
#ifndef CBGEN_ANALYSIS_LAYOUTS_TILE_CENSUS_H
#define CBGEN_ANALYSIS_LAYOUTS_TILE_CENSUS_H

#include "analysis/panels.h"
#include "base/status.h"

/* In the order in which a panel's tiles are stored. */
enum cb_tile_format { CB_TILE_DNS, CB_TILE_DNSROW, CB_TILE_DNSCOL, CB_TILE_ELL, CB_TILE_HYB, CB_TILE_CSR, CB_TILE_COO,
                      CB_TILE_FORMATS };
extern const char *const cb_tile_format_names[CB_TILE_FORMATS];

enum { CB_TILE_SIDE = CB_PANEL_ROWS, CB_TILE_PLACES = CB_BLOCK_SIZE };

struct cb_tile_wish {
  int only_csr;
  int64_t coo, dense; /* nonzeros */
  int64_t te, th;     /* percent */
  int64_t value_bytes;
};

struct cb_tile_info {
  int32_t column;       /* of tiles */
  unsigned char last;   /* nonzeros - 1 */
  unsigned char format; /* enum cb_tile_format */
  unsigned char width;  /* of ELL and HYB; rows of DnsRow, columns of DnsCol */
  unsigned char over;   /* HYB: nonzeros behind its width */
};

static inline int cb_tile_nonzeros(const struct cb_tile_info *tile) { return tile->last + 1; }

struct cb_tile_census {
  int64_t panels, tiles;
  int64_t *first_tile;       /* of each panel, and one more */
  struct cb_tile_info *tile;
  int64_t tiles_of[CB_TILE_FORMATS], nonzeros_of[CB_TILE_FORMATS];
};

/* What a split found (struct cb_found): a struct cb_tile_census of its part. */
#define CB_FOUND_TILES "tiles"

/* CB_ERR_MEMORY; CB_ERR_UNSUPPORTED: too many panels for the nonzeros; CB_ERR_LIMIT: too many tiles. After a failure
 * there is nothing to release. The same for any number of threads. */
enum cb_status cb_tile_census_find(struct cb_tile_census *census, const struct cb_csr *csr,
                                   const struct cb_tile_wish *wish, struct cb_diag *diag);
void cb_tile_census_release(struct cb_tile_census *census);

/* Sets part_of to 1 for nonzeros of COO tiles and for those of HYB tiles behind their width, to 0 for others, and makes
 * the census that of part 0: HYB tiles are ELL tiles there. */
void cb_tile_census_defer(struct cb_tile_census *census, const struct cb_csr *csr, unsigned char *part_of);

/* Nonzeros of each of a tile's rows, and how many of these its first `width` columns of ELL or HYB hold in all. */
void cb_tile_lengths(const struct cb_subblock *block, unsigned char lengths[CB_TILE_SIDE]);
int cb_tile_held(const unsigned char lengths[CB_TILE_SIDE], int width);

/* Rows or columns of a tile that have 16 nonzeros, as bits. */
unsigned cb_tile_full_rows(const struct cb_subblock *block);
unsigned cb_tile_full_columns(const struct cb_subblock *block);

#endif
