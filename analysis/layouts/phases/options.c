// SPDX-License-Identifier: Apache-2.0
/* The options and recipes of layout phases: column blocking. */
#include "analysis/layouts/phases/options.h"

const struct cb_option cb_phases_options[PHASES_OPTIONS] = {
    [PHASES_COLUMNS] = {.name = "phase-columns", .most = INT64_C(1) << 24,
                        .help = "columns that are split off; 0: by the matrix"},
    [PHASES_ROW] = {.name = "phase-row", .most = 1024,
                    .help = "nonzeros in these columns that a row must have; 0: by the matrix"},
    [PHASES_SET] = {.name = "phase-set", .least = 32, .most = 65536, .or_zero = 1,
                    .help = "entries of x in shared memory at a time, at most; 0: by the GPU"},
    [PHASES_BLOCKS] = {.name = "phase-blocks", .most = 2,
                       .help = "thread blocks of a multiprocessor: 1, 2; 0: by the matrix"},
    [PHASES_THREADS] = {.name = "phase-threads", .numbers = cb_threads_of_a_block,
                        .help = "threads of a thread block: 256, 512, 1024; 0: by the matrix"},
    [PHASES_BATCH] = {.name = "phase-batch", .most = 8, .help = "steps that a lane loads together; 0: by the matrix"},
};

static const struct cb_node rest = {.layout = "merge"};
static const struct cb_node frequent = {.layout = "phases"};
static const struct cb_node node = {.split = &cb_split_hot_columns, .parts = {&rest, &frequent}, .final = 1};

const struct cb_recipe cb_phases_recipes[] = {
    {.name = "phases",
     .summary = "column blocking: x of frequent columns in shared memory, a set at a time; the rest as merge",
     .example = "rmat,scale=9,edge_factor=12",
     .lenient = "phase-columns=50 phase-row=1",
     .root = &node, .is_searched = 1, .may_refuse = 1},
    {0},
};
