// SPDX-License-Identifier: Apache-2.0
/* The split that gives tiles to layout blocks where they are full enough. */
#include "analysis/layouts/blocks/options.h"

#include "analysis/tiles.h"

/* Part 0: nonzeros in tiles that are full enough to be stored whole; part 1: the others. */
static enum cb_status divide_tiles(const struct cb_part *part, const struct cb_options *options,
                                   const struct cb_target *target, struct cb_division *division,
                                   struct cb_text *facts, struct cb_diag *diag) {
  const int64_t *settings = cb_settings(options, &cb_layout_blocks);
  const struct cb_types types = cb_precision_types((enum cb_precision)options->type);
  const int chosen = cb_tiles_choose(part->csr, target, types.matrix, settings[BLOCKS_SIZE], settings[BLOCKS_FILL]);
  if (chosen < 0)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "too few nonzeros are in aligned tiles%s that are %lld %% full; use another recipe, or lower "
                   "'block-fill'",
                   settings[BLOCKS_SIZE] ? " of that size" : "", (long long)settings[BLOCKS_FILL]);
  cb_tiles_divide(part->csr, cb_tile_sizes[chosen], settings[BLOCKS_FILL], division->part_of);
  cb_text_add(facts, " (size %d %d) (fill %lld)", cb_tile_sizes[chosen].rows, cb_tile_sizes[chosen].cols,
              (long long)settings[BLOCKS_FILL]);
  return CB_OK;
}

const struct cb_split cb_split_tiles = {"tiles", 2, 0, divide_tiles};
