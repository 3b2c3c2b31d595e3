// SPDX-License-Identifier: Apache-2.0
/* The options and recipes of layout dia. */
#include "analysis/layouts/dia/options.h"

const struct cb_option cb_dia_options[DIA_OPTIONS] = {
    [DIA_FILL] = {.name = "dia-fill", .most = 100, .standard = 50,
                  .help = "percentage of a diagonal's places that must be occupied"},
    [DIA_MOST] = {.name = "dia-most", .least = 1, .most = 1024, .standard = 64,
                  .help = "largest number of diagonals: the fullest"},
    [DIA_ROWS] = {.name = "dia-rows", .most = 32,
                  .help = "rows of a thread where fixed values leave nothing to load, or that are a stride apart; 0: by the matrix"},
    [DIA_STRIDE] = {.name = "dia-stride", .most = INT32_MAX,
                    .help = "what these rows, or those of a thread where half of a symmetric matrix is stored, are apart, "
                            "where diagonals so far apart suit it; 1: no stride; 0: by the matrix"},
    [DIA_THREADS] = {.name = "dia-threads", .numbers = cb_threads_of_a_block,
                     .help = "threads of a thread block, with a stride or symmetric: 256, 512, 1024; 0: by the matrix"},
};

static const struct cb_node diagonals = {.layout = "dia"};
static const struct cb_node rest = {.layout = "sell"};
static const struct cb_node node = {.split = &cb_split_diagonals, .parts = {&diagonals, &rest}, .final = 1};

const struct cb_recipe cb_dia_recipes[] = {
    {.name = "dia",
     .summary = "populated diagonals without indices, the rest as sell",
     .example = "stencil5,n=12,extra=0.5",
     .lenient = "dia-fill=0",
     .root = &node, .is_searched = 1, .is_packed = 1, .is_ready = 1, .takes_vectors = 1,
     .suits_programs = 1, .commits_in_order = 1, .may_refuse = 1},
    {0},
};
