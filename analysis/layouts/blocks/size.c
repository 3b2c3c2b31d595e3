// SPDX-License-Identifier: Apache-2.0
/* The size of blocks: see size.h. */
#include "analysis/layouts/blocks/size.h"

#include "analysis/chunks.h"
#include "analysis/layouts/blocks/options.h"
#include "analysis/row_lanes.h"

int cb_blocks_are_full(const struct cb_tile_census *census, struct cb_tile_size size, int64_t percent) {
  return (double)census->nonzeros * 100 >= (double)percent * (double)census->tiles * (double)cb_tile_area(size);
}

/* Blocks of this size, or -1 when they are too empty. Of a large matrix a sample says so; of the size that is chosen
 * all are counted later. */
static int64_t blocks_if_full(const struct cb_csr *csr, struct cb_tile_size size, int64_t percent) {
  enum { STRIDE = 16, ENOUGH = 8 };
  const int64_t rows = cb_tile_rows(csr, size);
  const int large = rows >= CB_TILE_CHUNK * STRIDE * ENOUGH;
  const struct cb_tile_census census = cb_tiles_count(csr, size, 0, large ? STRIDE : 1, NULL);
  if (!cb_blocks_are_full(&census, size, percent)) return -1;
  return large && census.nonzeros ? cb_proportion(csr->nnz, census.tiles, census.nonzeros) : census.tiles;
}

int64_t cb_blocks_presence_bytes(struct cb_tile_size size) {
  const int64_t bits = cb_tile_area(size);
  return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

static int64_t stored_bytes(const struct cb_csr *csr, struct cb_tile_size size, int64_t blocks, int64_t value_bytes) {
  const int64_t presence = blocks * cb_tile_area(size) > csr->nnz ? cb_blocks_presence_bytes(size) : 0;
  return blocks * (cb_tile_area(size) * value_bytes + CB_BLOCKS_INDEX_BYTES + presence);
}

int cb_blocks_may_be_whole(struct cb_tile_size size, const struct cb_region_builder *builder) {
  enum { VALUE_BYTES = 4 };
  return size.rows == CB_TILE_MOST && size.cols == CB_TILE_MOST && cb_mma_takes_vectors(builder, CB_CHUNK_ROWS) &&
         builder->value_bytes >= VALUE_BYTES && !builder->settings[BLOCKS_LANES];
}

/* Sums of several vectors for each row of a block, beside its values, leave few warps of 8 x 8 blocks, or spill: dense
 * blocks, 8 vectors, 42.7 us where 4 x 4 take 40.8; a dense matrix of 4000 rows 121.9 and 89.1. */
static int leaves_room(struct cb_tile_size size, const struct cb_region_builder *builder) {
  enum { MOST_SUMS = 48 }; /* bytes of a vector's */
  return builder->options->vectors == 1 || cb_blocks_may_be_whole(size, builder) ||
         size.rows * (int64_t)cb_type_size(builder->sum_type) <= MOST_SUMS;
}

/* Whether the size is chosen by time. Several vectors share what is stored, half of a symmetric matrix needs blocks
 * with an image, and of a part all tiles are full by the size that it was split by: there fewest bytes decide. */
static int goes_by_time(const struct cb_region_builder *builder) {
  return builder->options->vectors == 1 && !builder->may_be_joined && !cb_promises_symmetry(builder->options);
}

static int64_t size_price(const struct cb_csr *csr, struct cb_tile_size size, int64_t blocks, int by_time,
                          const struct cb_region_builder *builder) {
  const int64_t bytes = stored_bytes(csr, size, blocks, builder->value_bytes);
  if (!by_time) return bytes;
  return cb_tiles_ns(size, cb_tile_rows(csr, size), blocks, builder->value_bytes, bytes, builder->target);
}

int cb_blocks_best_size(const struct cb_csr *csr, const struct cb_region_builder *builder) {
  const int asked = (int)builder->settings[BLOCKS_SIZE] - 1, by_time = goes_by_time(builder);
  int64_t blocks[1 + CB_TILE_SIZES] = {0}, least = INT64_MAX; /* the first: within no other */
  int best = -1;
  for (int i = 0; i < CB_TILE_SIZES; i++) {
    const struct cb_tile_size size = cb_tile_sizes[i];
    blocks[1 + i] = -1;
    if (asked < 0 ? blocks[1 + size.within[0]] < 0 || blocks[1 + size.within[1]] < 0 : asked != i) continue;
    blocks[1 + i] = blocks_if_full(csr, size, builder->settings[BLOCKS_FILL]);
    const int whole = cb_blocks_may_be_whole(size, builder);
    if (blocks[1 + i] < 0) continue;
    if (asked < 0 && !by_time && !whole && !cb_tiles_are_enough(size, blocks[1 + i], builder->target)) continue;
    const int64_t price = size_price(csr, size, blocks[1 + i], by_time, builder);
    if (price >= least && !whole) continue;
    least = price;
    best = i;
  }
  return best < 0 || asked >= 0 || leaves_room(cb_tile_sizes[best], builder) ? best : cb_tile_sizes[best].within[0];
}

enum cb_status cb_blocks_refuse(const int64_t *settings, struct cb_diag *diag) {
  return cb_fail(diag, CB_ERR_UNSUPPORTED,
                 "no natural blocks%s are %lld %% full; use another recipe, or lower 'block-fill'",
                 settings[BLOCKS_SIZE] ? " of that size" : "", (long long)settings[BLOCKS_FILL]);
}
