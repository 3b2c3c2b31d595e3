// SPDX-License-Identifier: Apache-2.0
/* Tiles that are full enough to be stored whole: see tiles.h. */
#include "analysis/tiles.h"

#include <string.h>

const struct cb_tile_size cb_tile_sizes[CB_TILE_SIZES] = {
    {1, 2, {-1, -1}}, {2, 1, {-1, -1}}, {2, 2, {0, 1}}, {3, 3, {-1, -1}},
    {4, 4, {2, 2}},   {5, 5, {-1, -1}}, {6, 6, {3, 2}}, {8, 8, {4, 4}}};

static int64_t entries_of(const struct cb_tile_walk *walk, const struct cb_tile *tile) {
  int64_t entries = 0;
  for (int i = 0; i < walk->rows; i++) entries += tile->end[i] - tile->first[i];
  return entries;
}

static int is_full(int64_t entries, struct cb_tile_size size, int64_t fill) {
  return entries * 100 >= fill * cb_tile_area(size);
}

static struct cb_tile_census count_row(const struct cb_csr *csr, struct cb_tile_size size, int64_t fill,
                                       int64_t tile_row) {
  struct cb_tile_census census = {0};
  struct cb_tile_walk walk = cb_tile_walk_open(csr, size, tile_row);
  struct cb_tile tile;
  while (cb_tile_walk_next(&walk, &tile)) {
    const int64_t entries = entries_of(&walk, &tile);
    const int full = is_full(entries, size, fill);
    census.tiles++;
    census.full += full;
    census.inside += full ? entries : 0;
    census.nonzeros += entries;
  }
  return census;
}

struct cb_tile_census cb_tiles_count(const struct cb_csr *csr, struct cb_tile_size size, int64_t fill, int64_t stride,
                                     uint32_t *by_row) {
  struct cb_tile_census census = {.tiles = CB_TILES_UNKNOWN};
  if (csr->remote && csr->remote->tiles(csr->remote->user, &size, fill, stride, by_row, &census, NULL))
    census = (struct cb_tile_census){.tiles = CB_TILES_UNKNOWN};
  if (csr->remote) return census;
  const int64_t tile_rows = cb_tile_rows(csr, size);
  int64_t tiles = 0, full = 0, inside = 0, nonzeros = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : tiles, full, inside, nonzeros)
  for (int64_t chunk = 0; chunk < tile_rows; chunk += CB_TILE_CHUNK * stride)
    for (int64_t tile_row = chunk; tile_row < cb_smaller(chunk + CB_TILE_CHUNK, tile_rows); tile_row++) {
      const struct cb_tile_census census = count_row(csr, size, fill, tile_row);
      if (by_row) by_row[tile_row] = (uint32_t)census.tiles;
      tiles += census.tiles;
      full += census.full;
      inside += census.inside;
      nonzeros += census.nonzeros;
    }
  return (struct cb_tile_census){tiles, full, inside, nonzeros};
}

int cb_tiles_choose(const struct cb_csr *csr, const struct cb_target *target, enum cb_type type, int64_t asked,
                    int64_t fill) {
  enum {
    SAMPLED = 1 << 17, /* rows from which on a sample will do */
    STRIDE = 16,
    OF_TILE = 2, /* bytes of indices, about */
    OF_NONZERO = 3
  };
  const int64_t stride = csr->rows < SAMPLED ? 1 : STRIDE;
  const double value = (double)cb_type_size(type);
  double least = 0.95;
  int best = -1;
  for (int i = 0; i < CB_TILE_SIZES; i++) {
    const struct cb_tile_size size = cb_tile_sizes[i];
    if (asked && asked != i + 1) continue;
    const struct cb_tile_census census = cb_tiles_count(csr, size, fill, stride, NULL);
    if (!asked && !cb_tiles_are_enough(size, census.full * stride, target)) continue;
    const double whole = (double)census.nonzeros * (value + OF_NONZERO);
    const double tiled = (double)census.full * ((double)cb_tile_area(size) * value + OF_TILE) +
                         (double)(census.nonzeros - census.inside) * (value + OF_NONZERO);
    if (tiled >= least * whole) continue;
    least = tiled / whole;
    best = i;
  }
  return best;
}

void cb_tiles_divide(const struct cb_csr *csr, struct cb_tile_size size, int64_t fill, unsigned char *part_of) {
#pragma omp parallel for schedule(dynamic, 256)
  for (int64_t tile_row = 0; tile_row < cb_tile_rows(csr, size); tile_row++) {
    struct cb_tile_walk walk = cb_tile_walk_open(csr, size, tile_row);
    struct cb_tile tile;
    while (cb_tile_walk_next(&walk, &tile)) {
      const int part = !is_full(entries_of(&walk, &tile), size, fill);
      for (int i = 0; i < walk.rows; i++)
        memset(part_of + tile.first[i], part, (size_t)(tile.end[i] - tile.first[i]));
    }
  }
}
