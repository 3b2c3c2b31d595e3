// SPDX-License-Identifier: Apache-2.0
/* Which tiles there are, and the format of each: see census.h. */
#include "analysis/layouts/tile/census.h"

#include "base/memory.h"

const char *const cb_tile_format_names[CB_TILE_FORMATS] = {"dns", "dnsrow", "dnscol", "ell", "hyb", "csr", "coo"};

/* ---- what a tile looks like */

void cb_tile_lengths(const struct cb_subblock *block, unsigned char lengths[CB_TILE_SIDE]) {
  for (int row = 0; row < CB_TILE_SIDE; row++) lengths[row] = 0;
  for (int column = 0; column < CB_TILE_SIDE; column++)
    for (unsigned left = block->column_rows[column]; left; left &= left - 1) lengths[__builtin_ctz(left)]++;
}

int cb_tile_held(const unsigned char lengths[CB_TILE_SIDE], int width) {
  int held = 0;
  for (int row = 0; row < CB_TILE_SIDE; row++) held += lengths[row] < width ? lengths[row] : width;
  return held;
}

unsigned cb_tile_full_rows(const struct cb_subblock *block) {
  unsigned full = 0xffff;
  for (int column = 0; column < CB_TILE_SIDE; column++) full &= block->column_rows[column];
  return full;
}

unsigned cb_tile_full_columns(const struct cb_subblock *block) {
  unsigned full = 0;
  for (int column = 0; column < CB_TILE_SIDE; column++)
    full |= (unsigned)(block->column_rows[column] == 0xffff) << column;
  return full;
}

/* ---- the format of a tile */

static int longest(const unsigned char lengths[CB_TILE_SIDE]) {
  int most = 0;
  for (int row = 0; row < CB_TILE_SIDE; row++) most = lengths[row] > most ? lengths[row] : most;
  return most;
}

/* Whether the variation of 16 lengths is above so many percent: (sigma / mean)² = 16 · Σ length² / n² - 1. */
static int varies(const unsigned char lengths[CB_TILE_SIDE], int64_t nonzeros, int64_t percent) {
  int64_t squares = 0;
  for (int row = 0; row < CB_TILE_SIDE; row++) squares += (int64_t)lengths[row] * lengths[row];
  return (CB_TILE_SIDE * squares - nonzeros * nonzeros) * 100 * 100 > percent * percent * nonzeros * nonzeros;
}

/* Halves of bytes of a HYB tile: a place of ELL has half a byte beside its value, a nonzero behind it a whole one. */
static int64_t hyb_halves(const unsigned char lengths[CB_TILE_SIDE], int width, int64_t nonzeros, int64_t value_bytes) {
  const int64_t behind = nonzeros - cb_tile_held(lengths, width);
  return CB_TILE_SIDE * width * (2 * value_bytes + 1) + behind * (2 * value_bytes + 2);
}

/* From the longest row down, while that takes fewer bytes. */
static int hyb_width(const unsigned char lengths[CB_TILE_SIDE], int64_t nonzeros, int64_t value_bytes) {
  int width = longest(lengths);
  while (width && hyb_halves(lengths, width - 1, nonzeros, value_bytes) <
                      hyb_halves(lengths, width, nonzeros, value_bytes))
    width--;
  return width;
}

static struct cb_tile_info with(struct cb_tile_info tile, enum cb_tile_format format, int width) {
  tile.format = (unsigned char)format;
  tile.width = (unsigned char)width;
  return tile;
}

static struct cb_tile_info by_variation(struct cb_tile_info tile, const unsigned char lengths[CB_TILE_SIDE],
                                        const struct cb_tile_wish *wish) {
  const int nonzeros = cb_tile_nonzeros(&tile);
  if (!varies(lengths, nonzeros, wish->te)) return with(tile, CB_TILE_ELL, longest(lengths));
  if (!varies(lengths, nonzeros, wish->th)) return with(tile, CB_TILE_CSR, 0);
  const int width = hyb_width(lengths, nonzeros, wish->value_bytes);
  if (!width) return with(tile, CB_TILE_COO, 0);
  tile.over = (unsigned char)(tile.last + 1 - cb_tile_held(lengths, width));
  return with(tile, tile.over ? CB_TILE_HYB : CB_TILE_ELL, width);
}

static struct cb_tile_info describe(const struct cb_subblock *block, const struct cb_tile_wish *wish) {
  const struct cb_tile_info tile = {.column = block->columns[0] / CB_TILE_SIDE,
                                    .last = (unsigned char)(block->nonzeros - 1)};
  const int nonzeros = block->nonzeros;
  const int full_rows = __builtin_popcount(cb_tile_full_rows(block));
  const int full_columns = __builtin_popcount(cb_tile_full_columns(block));
  unsigned char lengths[CB_TILE_SIDE];
  if (wish->only_csr) return with(tile, CB_TILE_CSR, 0);
  cb_tile_lengths(block, lengths);
  if (nonzeros < wish->coo && varies(lengths, nonzeros, wish->te)) return with(tile, CB_TILE_COO, 0);
  if (full_rows * CB_TILE_SIDE == nonzeros) return with(tile, CB_TILE_DNSROW, full_rows);
  if (full_columns * CB_TILE_SIDE == nonzeros) return with(tile, CB_TILE_DNSCOL, full_columns);
  if (nonzeros >= wish->dense) return with(tile, CB_TILE_DNS, 0);
  return by_variation(tile, lengths, wish);
}

/* ---- all tiles */

static int64_t count_tiles(const struct cb_csr *csr, int64_t panel) {
  struct cb_panel_walk walk;
  struct cb_subblock block;
  int64_t tiles = 0;
  cb_panel_open(&walk, csr, panel);
  while (cb_panel_next(&walk, 0, &block)) tiles++;
  return tiles;
}

static void describe_panel(struct cb_tile_census *census, const struct cb_csr *csr, const struct cb_tile_wish *wish,
                           int64_t panel) {
  struct cb_panel_walk walk;
  struct cb_subblock block;
  struct cb_tile_info *tile = census->tile + census->first_tile[panel];
  cb_panel_open(&walk, csr, panel);
  while (cb_panel_next(&walk, 0, &block)) *tile++ = describe(&block, wish);
}

static void count_formats(struct cb_tile_census *census) {
  for (int format = 0; format < CB_TILE_FORMATS; format++) census->tiles_of[format] = census->nonzeros_of[format] = 0;
  for (int64_t t = 0; t < census->tiles; t++) {
    census->tiles_of[census->tile[t].format]++;
    census->nonzeros_of[census->tile[t].format] += cb_tile_nonzeros(&census->tile[t]);
  }
}

/* Where each panel's tiles begin. */
static enum cb_status number_tiles(struct cb_tile_census *census, const struct cb_csr *csr, struct cb_diag *diag) {
  census->first_tile = cb_calloc((size_t)census->panels + 1, sizeof *census->first_tile);
  if (!census->first_tile) return cb_fail_memory(diag, "tiles", (uint64_t)census->panels * sizeof *census->first_tile);
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t panel = 0; panel < census->panels; panel++) census->first_tile[panel + 1] = count_tiles(csr, panel);
  for (int64_t panel = 0; panel < census->panels; panel++) census->first_tile[panel + 1] += census->first_tile[panel];
  census->tiles = census->first_tile[census->panels];
  if (census->tiles > INT32_MAX / CB_TILE_SIDE)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld tiles of 16 x 16 exceed %d", (long long)census->tiles,
                   INT32_MAX / CB_TILE_SIDE);
  census->tile = cb_calloc((size_t)census->tiles + 1, sizeof *census->tile);
  return census->tile ? CB_OK : cb_fail_memory(diag, "tiles", (uint64_t)census->tiles * sizeof *census->tile);
}

enum cb_status cb_tile_census_find(struct cb_tile_census *census, const struct cb_csr *csr,
                                   const struct cb_tile_wish *wish, struct cb_diag *diag) {
  *census = (struct cb_tile_census){.panels = cb_panel_count(csr->rows)};
  enum cb_status s = cb_check_panels(csr, diag);
  if (!s) s = number_tiles(census, csr, diag);
  if (s) {
    cb_tile_census_release(census);
    return s;
  }
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t panel = 0; panel < census->panels; panel++) describe_panel(census, csr, wish, panel);
  count_formats(census);
  return CB_OK;
}

void cb_tile_census_release(struct cb_tile_census *census) {
  cb_free(census->first_tile);
  cb_free(census->tile);
  *census = (struct cb_tile_census){0};
}

/* ---- what is deferred */

/* Marks a tile's nonzeros behind the first `width` of each row. */
static void mark(const struct cb_subblock *block, int width, unsigned char *part_of) {
  unsigned char lengths[CB_TILE_SIDE];
  cb_tile_lengths(block, lengths);
  for (int row = 0; row < CB_TILE_SIDE; row++)
    for (int k = width; k < lengths[row]; k++) part_of[block->first[row] + k] = 1;
}

static void defer_panel(struct cb_tile_census *census, const struct cb_csr *csr, int64_t panel,
                        unsigned char *part_of) {
  struct cb_panel_walk walk;
  struct cb_subblock block;
  struct cb_tile_info *tile = census->tile + census->first_tile[panel];
  cb_panel_open(&walk, csr, panel);
  for (; cb_panel_next(&walk, 0, &block); tile++) {
    if (tile->format == CB_TILE_COO) mark(&block, 0, part_of);
    if (tile->format != CB_TILE_HYB) continue;
    mark(&block, tile->width, part_of);
    tile->last = (unsigned char)(tile->last - tile->over);
    tile->over = 0;
    tile->format = CB_TILE_ELL;
  }
}

static void drop_deferred(struct cb_tile_census *census) {
  int64_t kept = 0, first = 0;
  for (int64_t panel = 0; panel < census->panels; panel++) {
    const int64_t end = census->first_tile[panel + 1];
    for (int64_t t = first; t < end; t++)
      if (census->tile[t].format != CB_TILE_COO) census->tile[kept++] = census->tile[t];
    first = end;
    census->first_tile[panel + 1] = kept;
  }
  census->tiles = kept;
}

void cb_tile_census_defer(struct cb_tile_census *census, const struct cb_csr *csr, unsigned char *part_of) {
  for (int64_t k = 0; k < csr->nnz; k++) part_of[k] = 0;
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t panel = 0; panel < census->panels; panel++) defer_panel(census, csr, panel, part_of);
  drop_deferred(census);
  count_formats(census);
}
