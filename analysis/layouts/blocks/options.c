// SPDX-License-Identifier: Apache-2.0
/* The options and recipes of layout blocks. */
#include "analysis/layouts/blocks/options.h"

static const char *const sizes[] = {"auto", "1x2", "2x1", "2x2", "3x3", "4x4", "5x5", "6x6", "8x8", NULL};

const struct cb_option cb_blocks_options[BLOCKS_OPTIONS] = {
    [BLOCKS_SIZE] = {.name = "block-size", .words = sizes, .help = "rows x columns of a block"},
    [BLOCKS_FILL] = {.name = "block-fill", .least = 1, .most = 100, .standard = 85,
                     .help = "refused when a smaller percentage of their entries is nonzeros"},
    [BLOCKS_LANES] = {.name = "block-lanes", .numbers = cb_lanes_of_a_row, .tuned_by = "lanes",
                      .help = "lanes that share a block row: 1, 2, 4, 8, 16, 32; 0: by the matrix"},
    [BLOCKS_BATCH] = {.name = "block-batch", .most = 8, .help = "blocks that a lane loads together; 0: by the matrix"},
    [BLOCKS_ONCE] = {.name = "block-once", .words = cb_auto_on_off,
                     .help = "half of a symmetric matrix: each block is read once, and sums meet in shared memory; off: twice"},
};

static const struct cb_node blocks = {.layout = "blocks"};
static const struct cb_node rest = {.layout = "sell"};
static const struct cb_node full_tiles = {.split = &cb_split_tiles, .parts = {&blocks, &rest}, .final = 1};

const struct cb_recipe cb_blocks_recipes[] = {
    {.name = "blocks",
     .summary = "natural dense blocks of 1x2 to 8x8, as finite elements have them",
     .example = "fe3,n=3",
     .lenient = "block-fill=1",
     .root = &blocks, .is_searched = 1, .is_packed = 1, .is_ready = 1, .takes_vectors = 1,
     .suits_programs = 1, .commits_in_order = 1, .may_refuse = 1},
    {.name = "tiles",
     .summary = "dense tiles as blocks, the rest as sell",
     .example = "block,blocks_r=40,per_row=3,scattered=4",
     .root = &full_tiles, .may_refuse = 1},
    {0},
};
