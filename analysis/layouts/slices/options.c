// SPDX-License-Identifier: Apache-2.0
/* The options and recipes of layout slices; recipe fill has layout runs, too. */
#include "analysis/layouts/slices/options.h"

static const char *const shapes[] = {"square", "diag", "anti", "col", "row", NULL}; /* as in cb_fill_shapes */
static const char *const on_off[] = {"on", "off", NULL};
static const int64_t repeats[] = {0, 1, 2, 4, 8, CB_NO_NUMBER};

enum { SHAPES = 5 };

const struct cb_option cb_slices_options[SLICES_OPTIONS] = {
    [FILL_SHAPES] = {.name = "fill-shapes", .words = shapes, .is_list = 1,
                     .help = "places of a block, in the order in which recipe fill takes them; recipe slices takes the "
                             "first; auto: all, and diag"},
    [FILL_STEP] = {.name = "fill-step", .most = SHAPES,
                   .help = "which of fill-shapes a split takes: each one of recipe fill has its own; 0: the first"},
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

/* A split for each of the shapes, and what is left by what suits it. Which layout is for a shape, each of both says. */
static const struct cb_node *const stored_by[] = {&slices, &runs, NULL}, *const left_by[] = {&sell, &merge, NULL};
static const struct cb_node blocks = {.choices = stored_by}, left = {.choices = left_by};
static const struct cb_node fifth = {.split = &cb_split_fill, .parts = {&blocks, &left}, .settings = "fill-step=5"};
static const struct cb_node fourth = {.split = &cb_split_fill, .parts = {&blocks, &fifth}, .settings = "fill-step=4"};
static const struct cb_node third = {.split = &cb_split_fill, .parts = {&blocks, &fourth}, .settings = "fill-step=3"};
static const struct cb_node second = {.split = &cb_split_fill, .parts = {&blocks, &third}, .settings = "fill-step=2"};
static const struct cb_node first = {.split = &cb_split_fill, .parts = {&blocks, &second}, .settings = "fill-step=1"};
static const struct cb_node only_runs = {.split = &cb_split_fill, .parts = {&runs, &sell}, .settings = "fill-shapes=row"};

const struct cb_fill_shape *cb_slices_shape(const int64_t *settings) {
  const int64_t step = settings[FILL_STEP] ? settings[FILL_STEP] - 1 : 0;
  if (!settings[FILL_SHAPES]) return settings[FILL_STEP] ? &cb_fill_shapes[step] : cb_fill_shape_find("diag");
  const int shape = cb_option_word(settings[FILL_SHAPES], (int)step);
  return shape < 0 ? NULL : &cb_fill_shapes[shape];
}

const struct cb_recipe cb_slices_recipes[] = {
    {.name = "slices", .summary = "blocks of 32 rows along diagonals with a column number each, the rest as sell",
     .root = &diagonals, .is_searched = 1, .may_refuse = 1,
     .example = "kkt,n=12,stages=2", .lenient = "fill-rate=10"},
    {.name = "fill", .summary = "FBCSR: full squares, diagonals, antidiagonals, columns and rows of 32, the rest as sell "
                                "or merge",
     .root = &first, .may_refuse = 1, .example = "multiblock,blocks=3,n=7,dof=2", .lenient = "fill-rate=10"},
    {.name = "runs", .summary = "runs of 32 neighbouring columns with a column number each, the rest as sell",
     .root = &only_runs, .may_refuse = 1, .example = "block,blocks_r=60,r=1,c=40,blocks_c=50,scattered=2",
     .lenient = "fill-rate=10"},
    {0},
};
