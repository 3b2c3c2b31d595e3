// SPDX-License-Identifier: Apache-2.0
/* The options and recipes of layout tile. */
#include "analysis/layouts/tile/options.h"

static const char *const formats[] = {"adpt", "csr", NULL};

const struct cb_option cb_tile_options[TILE_OPTIONS] = {
    [TILE_FORMATS] = {.name = "tile-formats", .words = formats,
                      .help = "formats of 16x16 tiles: seven by what the tile holds, or CSR alone"},
    [TILE_COO] = {.name = "tile-coo", .most = 257, .standard = 12, .help = "tiles with fewer nonzeros may be COO"},
    [TILE_DENSE] = {.name = "tile-dense", .most = 257, .standard = 128, .help = "tiles with as many nonzeros may be Dns"},
    [TILE_TE] = {.name = "tile-te", .most = 400, .standard = 20,
                 .help = "percentage of variation of rows' lengths up to which tiles are ELL"},
    [TILE_TH] = {.name = "tile-th", .most = 400, .standard = 100,
                 .help = "percentage of variation of rows' lengths above which tiles are HYB; between: CSR"},
    [TILE_BALANCE] = {.name = "tile-balance", .least = 1, .most = 64, .standard = 8, .help = "tiles of a warp at most"},
};

struct cb_tile_wish cb_tile_wish_of(const int64_t *settings, enum cb_type type) {
  return (struct cb_tile_wish){.only_csr = settings[TILE_FORMATS] == TILE_FORMATS_CSR,
                               .coo = settings[TILE_COO],
                               .dense = settings[TILE_DENSE],
                               .te = settings[TILE_TE],
                               .th = settings[TILE_TH],
                               .value_bytes = (int64_t)cb_type_size(type)};
}

static const struct cb_node tile = {.layout = "tile"};
static const struct cb_node tile_csr = {.layout = "tile", .settings = "tile-formats=csr"};
static const struct cb_node merge = {.layout = "merge"}, sell = {.layout = "sell"}, hot = {.layout = "hot"};
static const struct cb_node *const deferred_by[] = {&merge, &sell, &hot, NULL};
static const struct cb_node deferred = {.choices = deferred_by};
static const struct cb_node defer = {.split = &cb_split_defer, .parts = {&tile, &deferred}};

const struct cb_recipe cb_tile_recipes[] = {
    {.name = "tile", .summary = "TileSpMV: 16x16 tiles, each in one of seven formats", .root = &tile,
     .example = "block,blocks_r=9,r=8,c=8,blocks_c=9,scattered=2"},
    {.name = "tile-csr", .summary = "TileSpMV with tiles in CSR alone", .root = &tile_csr,
     .example = "stencil9,n=20"},
    {.name = "tile-defer", .summary = "TileSpMV, with the nonzeros of COO tiles as merge, sell or hot", .root = &defer,
     .example = "random,rows=60,cols=300,density=0.03", .may_refuse = 1, .lenient = "tile-coo=2 tile-th=400"},
    {0},
};
