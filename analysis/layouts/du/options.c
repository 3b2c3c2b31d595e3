// SPDX-License-Identifier: Apache-2.0
/* The options and recipes of layout du; those named crux and du-form are layout se's, too. */
#include "analysis/layouts/du/options.h"

static const char *const forms[] = {"auto", "mma", "fma", NULL};
static const char *const encodings[] = {"auto", "du", "se", NULL};
static const char *const on_off[] = {"on", "off", NULL};

const struct cb_option cb_du_options[DU_OPTIONS] = {
    [DU_FORM] = {.name = "du-form", .words = forms, .may_refuse = 1,
                 .help = "products by tensor cores, or fused lane by lane; auto: fma, mma by 3 vectors and more"},
    [DU_SEGMENT] = {.name = "du-segment", .most = 65536,
                    .help = "a warp takes so many blocks, or steps, of a chunk at most, or those that share it; 0: 64, "
                            "or by the matrix"},
    [DU_WARPS] = {.name = "du-warps", .numbers = cb_lanes_of_a_row,
                  .help = "warps that share a chunk by 3 vectors and more: 1, 2, 4, 8, 16, 32; 0: by the matrix"},
    [CRUX_COLS] = {.name = "crux-cols", .most = 100,
                   .help = "hot columns have this percentage of the nonzeros; 0: as predicted"},
    [CRUX_ROWS] = {.name = "crux-rows", .most = 100,
                   .help = "hot rows have this percentage of the nonzeros, in hot columns; 0: as predicted"},
    [CRUX_SORT] = {.name = "crux-sort", .words = on_off, .least = CB_ON, .standard = CB_OFF,
                   .help = "order rows of chunks by their nonzeros, as the paper does"},
    [CRUX_ENCODING] = {.name = "crux-encoding", .words = encodings,
                       .help = "hot rows as dense unfolding or sparse encoding; auto: what takes fewer bytes"},
};

static const struct cb_node du = {.layout = "du"}, se = {.layout = "se"};
static const struct cb_node sell = {.layout = "sell"}, merge = {.layout = "merge"}, hot = {.layout = "hot"};
static const struct cb_node *const cold_by[] = {&merge, &sell, &hot, NULL};
static const struct cb_node cold = {.choices = cold_by};
static const struct cb_node hotcold = {.split = &cb_split_crux, .parts = {&du, &se, &cold}};

const struct cb_recipe cb_du_recipes[] = {
    {.name = "hotcold", .summary = "MatXtract: frequent columns and their fullest rows as du or se, the rest as merge, "
                                   "sell or hot",
     .root = &hotcold, .may_refuse = 1, .example = "block,blocks_r=40,per_row=3,scattered=4",
     .lenient = "crux-cols=60 crux-rows=40"},
    {.name = "du", .summary = "chunks of 8 rows without their empty columns, a bit for each place", .root = &du,
     .searched_from = CB_CHUNK_VECTORS, .searched_to = 1 << 23, .against = cb_du_against, .example = "fe3,n=3"},
    {0},
};
