// SPDX-License-Identifier: Apache-2.0
/* The options and recipes of layout sell. */
#include "analysis/layouts/sell/options.h"

static const int64_t windows[] = {0, 256, 1024, 4096, CB_NO_NUMBER};
static const int64_t vectors[] = {0, 1, 2, 4, CB_NO_NUMBER};

const struct cb_option cb_sell_options[SELL_OPTIONS] = {
    [SELL_LANES] = {.name = "sell-lanes", .numbers = cb_lanes_of_a_row, .tuned_by = "lanes",
                    .help = "lanes that share a row: 1, 2, 4, 8, 16, 32; 0: by the matrix"},
    [SELL_VECTOR] = {.name = "sell-vector", .numbers = vectors,
                     .help = "neighbouring nonzeros of a row that a lane loads at once: 1, 2, 4; 0: by the matrix"},
    [SELL_SORT] = {.name = "sell-sort", .words = cb_auto_on_off, .help = "order rows by length within windows"},
    [SELL_WINDOW] = {.name = "sell-window", .numbers = windows,
                     .help = "rows that are sorted among themselves, the sigma of SELL-C-sigma; 0: by the matrix"},
    [SELL_VARY] = {.name = "sell-vary", .words = cb_auto_on_off,
                   .help = "lanes per row by slice, long rows in segments"},
    [SELL_CUT] = {.name = "sell-cut", .words = cb_auto_on_off,
                  .help = "a lane per row or segment of one, all in order of length"},
};

static const struct cb_node sell = {.layout = "sell"};
static const struct cb_node merge = {.layout = "merge"};
static const struct cb_node by_length = {.split = &cb_split_long_rows, .parts = {&sell, &merge}, .final = 1};

const struct cb_recipe cb_sell_recipes[] = {
    {.name = "sell",
     .summary = "sliced ELL with narrow column offsets",
     .example = "random,rows=300,cols=200,density=0.05",
     .root = &sell, .is_searched = 1, .is_packed = 1, .is_ready = 1, .orders_rows = 1, .takes_vectors = 1,
     .suits_programs = 1},
    {.name = "sell-long",
     .summary = "sell, with rows longer than --long-row as merge",
     .example = "long_row,rows=300,cols=2000,per_row=5,long_rows=2,long_length=1800",
     .root = &by_length},
    {0},
};
