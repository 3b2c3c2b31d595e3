// SPDX-License-Identifier: Apache-2.0
/* The split `defer`: tiles of few nonzeros, and what HYB tiles hold behind their width, are left to another layout. */
#include "analysis/layouts/tile/options.h"

#include "base/memory.h"

static void release(void *census) {
  cb_tile_census_release(census);
  cb_free(census);
}

/* Part 0: the other tiles, with the formats that were found; part 1: what is deferred. */
static enum cb_status divide_defer(const struct cb_part *part, const struct cb_options *options,
                                   const struct cb_target *target, struct cb_division *division, struct cb_text *facts,
                                   struct cb_diag *diag) {
  const enum cb_type type = cb_precision_types((enum cb_precision)options->type).matrix;
  const struct cb_tile_wish wish = cb_tile_wish_of(cb_settings(options, &cb_layout_tile), type);
  struct cb_tile_census *census = cb_calloc(1, sizeof *census);
  (void)target;
  if (!census) return cb_fail_memory(diag, "tiles", sizeof *census);
  division->found[0] = (struct cb_found){CB_FOUND_TILES, census, release};
  const enum cb_status s = cb_tile_census_find(census, part->csr, &wish, diag);
  if (s) return s;
  const int64_t deferred = census->tiles_of[CB_TILE_COO] + census->tiles_of[CB_TILE_HYB];
  cb_tile_census_defer(census, part->csr, division->part_of);
  if (!census->tiles)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "all tiles have few nonzeros; lower 'tile-coo' or use recipe 'merge' or 'sell'");
  cb_text_add(facts, " (tiles %lld)", (long long)deferred);
  return CB_OK;
}

const struct cb_split cb_split_defer = {.name = "defer", .parts = 2, .divide = divide_defer};
