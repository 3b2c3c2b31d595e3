// SPDX-License-Identifier: Apache-2.0
/* What warps take of a matrix in tiles, and where each tile is stored.
 *
 * A unit is what one warp multiplies: up to `balance` tiles of one panel. Tiles are stored format by format; those of
 * one format in the order of units, and of a panel from left to right. So a unit has of each format a range of tiles,
 * and of the format's slots the range that these fill: each format has constant ranges of both.
 *
 *   even      each panel has `per_panel` units, a power of two that divides 8
 *   others    panels of more than 8 units first: each has `pieces` thread blocks of its own, whose sums meet in carry
 *             slots. Then the others, of which none is cut by a thread block's end; what is left over is padding
 */
#ifndef CBGEN_ANALYSIS_LAYOUTS_TILE_UNITS_H
#define CBGEN_ANALYSIS_LAYOUTS_TILE_UNITS_H

#include "analysis/layouts/tile/census.h"
#include "base/arena.h"

enum { CB_TILE_WARPS = 8 /* of a thread block, each with a unit */ };

/* Where the nonzeros of a format are; HYB has two such places: places of its ELL part lie behind those of ELL tiles,
 * and what is over behind COO's. */
enum cb_tile_store { CB_STORE_DNS, CB_STORE_DNSROW, CB_STORE_DNSCOL, CB_STORE_ELL, CB_STORE_CSR, CB_STORE_COO,
                     CB_TILE_STORES };

struct cb_tile_units {
  struct cb_arena *arena;
  const struct cb_tile_census *census;
  int64_t balance, units;
  int64_t per_panel;        /* even: units of a panel, else 0 */
  int64_t pieces;           /* thread blocks of panels that have several; they come first */
  uint32_t *piece_number;   /* of each, within its panel */
  uint32_t *panel;          /* of each unit; NULL when even */
  unsigned char *together;  /* units that the first one of a panel in a thread block adds up, else 0; likewise */
  int most_together;
  /* by format, then unit: its first tile there, and that tile's first slot within the store; units + 1 */
  uint32_t *first_tile[CB_TILE_FORMATS];
  uint64_t *first_slot[CB_TILE_FORMATS];
  uint64_t *first_over;     /* HYB: the same of what is over */
  /* by tile of the census */
  uint32_t *place;          /* among those of its format */
  uint64_t *slot, *over;    /* over: of HYB tiles, else NULL */
  /* by format and place */
  uint32_t *order[CB_TILE_FORMATS]; /* tile of the census */
  int64_t slots[CB_TILE_STORES], first[CB_TILE_STORES]; /* of each store, and where it begins */
  int64_t all_slots;
};

/* Needs arena, census, balance. 0: no memory. */
int cb_tile_units_make(struct cb_tile_units *units);

/* Slots of a tile in its format's store, what is over apart. */
int64_t cb_tile_slots(const struct cb_tile_info *tile);

enum cb_tile_store cb_tile_store_of(enum cb_tile_format format);

#endif
