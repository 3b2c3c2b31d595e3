// SPDX-License-Identifier: Apache-2.0
/* The options and recipes of layout slices; recipe fill has layout runs, too. */
#include "analysis/layouts/slices/options.h"

static const char *const shapes[] = {"square", "diag", "anti", "col", "row", NULL}; /* as in cb_fill_shapes */
static const char *const on_off[] = {"on", "off", NULL};
static const int64_t repeats[] = {0, 1, 2, 4, 8, CB_NO_NUMBER};

enum { DIAG = 1 };

const struct cb_option cb_slices_options[SLICES_OPTIONS] = {
    [FILL_SHAPE] = {.name = "fill-shape", .words = shapes, .standard = DIAG,
                    .help = "places of a block, of which recipes fill and runs have their own"},
    [FILL_RATE] = {.name = "fill-rate", .most = 100,
                   .help = "percentage of a block's places that must be filled; 0: where that saves bytes"},
    [FILL_ALIGN] = {.name = "fill-align", .words = on_off, .least = CB_ON, .standard = CB_ON,
                    .help = "blocks begin at multiples of 32 rows"},
    [FILL_REPEATS] = {.name = "fill-repeats", .numbers = repeats, .tuned_by = "repeats",
                      .help = "slices of 32 rows for each warp: 1, 2, 4, 8; 0: by the matrix"},
};

static const struct cb_node slices = {.layout = "slices"};
static const struct cb_node sell = {.layout = "sell"}, merge = {.layout = "merge"}, runs = {.layout = "runs"};
static const struct cb_node diagonals = {.split = &cb_split_fill, .parts = {&slices, &sell}};

/* The widest saving first, and what is left by what suits it. */
static const struct cb_node *const left_by[] = {&sell, &merge, NULL};
static const struct cb_node left = {.choices = left_by};
static const struct cb_node row = {.split = &cb_split_fill, .parts = {&runs, &left}, .settings = "fill-shape=row"};
static const struct cb_node col = {.split = &cb_split_fill, .parts = {&slices, &row}, .settings = "fill-shape=col"};
static const struct cb_node anti = {.split = &cb_split_fill, .parts = {&slices, &col}, .settings = "fill-shape=anti"};
static const struct cb_node diag = {.split = &cb_split_fill, .parts = {&slices, &anti}, .settings = "fill-shape=diag"};
static const struct cb_node only_runs = {.split = &cb_split_fill, .parts = {&runs, &sell}, .settings = "fill-shape=row"};
static const struct cb_node square = {
    .split = &cb_split_fill, .parts = {&slices, &diag}, .settings = "fill-shape=square"};

const struct cb_recipe cb_slices_recipes[] = {
    {.name = "slices", .summary = "blocks of 32 rows along diagonals with a column number each, the rest as sell",
     .root = &diagonals, .is_searched = 1, .may_refuse = 1,
     .example = "kkt,n=12,stages=2", .lenient = "fill-rate=10"},
    {.name = "fill", .summary = "FBCSR: full squares, diagonals, antidiagonals, columns and rows of 32, the rest as sell "
                                "or merge",
     .root = &square, .may_refuse = 1, .example = "multiblock,blocks=3,n=7,dof=2", .lenient = "fill-rate=10"},
    {.name = "runs", .summary = "runs of 32 neighbouring columns with a column number each, the rest as sell",
     .root = &only_runs, .may_refuse = 1, .example = "block,blocks_r=60,r=1,c=40,blocks_c=50,scattered=2",
     .lenient = "fill-rate=10"},
    {0},
};
