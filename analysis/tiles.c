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

static struct cb_tile_census count_by_walk(const struct cb_csr *csr, struct cb_tile_size size, int64_t fill,
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

/* Nonzeros by tile, of a row of tiles whose columns are not far apart: found without a walk. */
enum { NEAR_TILES = 1 << 13, COUNT_BITS = 7, MOST_ROUNDS = 1 << 25 };
_Static_assert(CB_TILE_MOST * CB_TILE_MOST < 1 << COUNT_BITS, "a tile's nonzeros can be counted");
struct places {
  uint32_t round; /* of the row of tiles; counts of other rounds are of no meaning */
  uint32_t at[NEAR_TILES]; /* a round, and in the lowest bits a count */
};

static void begin_round(struct places *places) {
  if (++places->round < MOST_ROUNDS) return;
  memset(places->at, 0, sizeof places->at);
  places->round = 1;
}

/* `least`: nonzeros from which on a tile is full. */
static void count_nonzeros(struct cb_tile_census *census, struct places *places, const int32_t *at, const int32_t *end,
                           uint32_t first, uint64_t factor, uint32_t least) {
  const uint32_t empty = places->round << COUNT_BITS;
  int32_t tiles = 0, full = 0, more = 0; /* a row has at most that many */
  for (; at < end; at++) {
    uint32_t *place = &places->at[cb_tile_column(*at, factor) - first];
    const int is_new = *place < empty;
    const uint32_t counted = (is_new ? empty : *place) + 1, entries = counted - empty;
    *place = counted;
    tiles += is_new;
    full += entries == least;
    more += entries > least;
  }
  census->tiles += tiles;
  census->full += full;
  census->inside += full * (int64_t)least + more;
}

/* The same where every tile is full. */
static void count_tiles(struct cb_tile_census *census, struct places *places, const int32_t *at, const int32_t *end,
                        uint32_t first, uint64_t factor) {
  const uint32_t round = places->round << COUNT_BITS;
  int32_t tiles = 0;
  census->inside += end - at;
  for (; at < end; at++) {
    uint32_t *place = &places->at[cb_tile_column(*at, factor) - first];
    tiles += *place != round;
    *place = round;
  }
  census->tiles += tiles;
  census->full += tiles;
}

/* 0: columns are too far apart. */
static int count_by_places(struct cb_tile_census *census, const struct cb_csr *csr, struct cb_tile_size size,
                           int64_t fill, int64_t tile_row, struct places *places) {
  const int64_t row = tile_row * size.rows, end = cb_smaller(row + size.rows, csr->rows);
  const int64_t least = cb_larger(1, cb_divide_up(fill * cb_tile_area(size), 100));
  const uint64_t factor = cb_tile_factor(size.cols);
  int32_t first = INT32_MAX, last = 0;
  *census = (struct cb_tile_census){.nonzeros = cb_csr_row(csr, end) - cb_csr_row(csr, row)};
  for (int64_t i = row; i < end; i++) {
    if (cb_csr_row(csr, i) == cb_csr_row(csr, i + 1)) continue;
    first = (int32_t)cb_smaller(first, csr->col_idx[cb_csr_row(csr, i)]);
    last = (int32_t)cb_larger(last, csr->col_idx[cb_csr_row(csr, i + 1) - 1]);
  }
  const uint32_t least_tile = cb_tile_column(first, factor);
  if (first <= last && cb_tile_column(last, factor) - least_tile >= NEAR_TILES) return 0;
  begin_round(places);
  for (int64_t i = row; i < end; i++) {
    const int32_t *columns = csr->col_idx + cb_csr_row(csr, i), *columns_end = csr->col_idx + cb_csr_row(csr, i + 1);
    if (least > 1) count_nonzeros(census, places, columns, columns_end, least_tile, factor, (uint32_t)least);
    else count_tiles(census, places, columns, columns_end, least_tile, factor);
  }
  return 1;
}

static struct cb_tile_census count_row(const struct cb_csr *csr, struct cb_tile_size size, int64_t fill,
                                       int64_t tile_row, struct places *places) {
  struct cb_tile_census census;
  if (!count_by_places(&census, csr, size, fill, tile_row, places)) census = count_by_walk(csr, size, fill, tile_row);
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
#pragma omp parallel reduction(+ : tiles, full, inside, nonzeros)
  {
    struct places places = {0};
#pragma omp for schedule(dynamic, 16)
    for (int64_t chunk = 0; chunk < tile_rows; chunk += CB_TILE_CHUNK * stride)
      for (int64_t tile_row = chunk; tile_row < cb_smaller(chunk + CB_TILE_CHUNK, tile_rows); tile_row++) {
        const struct cb_tile_census census = count_row(csr, size, fill, tile_row, &places);
        if (by_row) by_row[tile_row] = (uint32_t)census.tiles;
        tiles += census.tiles;
        full += census.full;
        inside += census.inside;
        nonzeros += census.nonzeros;
      }
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
