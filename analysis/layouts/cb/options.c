// SPDX-License-Identifier: Apache-2.0
/* The options and recipes of layout cb. */
#include "analysis/layouts/cb/options.h"

static const char *const aggregations[] = {"auto", "on", "off", "panel", NULL};
static const char *const balances[] = {"contiguous", "heap", NULL};
static const int64_t teams[] = {0, 1, 2, 4, 8, CB_NO_NUMBER};

const struct cb_option cb_cb_options[CB_SPMV_OPTIONS] = {
    [CB_SPMV_AGGREGATE] = {.name = "aggregate",
                           .words = aggregations,
                           .help = "column aggregation; auto asks --th0, panel asks it for each panel"},
    [CB_SPMV_TH0] = {.name = "th0",
                     .most = 100,
                     .standard = 15,
                     .help = "aggregate above this percentage of super-sparse sub-blocks"},
    [CB_SPMV_SUPER_SPARSE] = {.name = "super-sparse",
                              .least = 1,
                              .most = 257,
                              .standard = 32,
                              .help = "fewer nonzeros: a super-sparse sub-block"},
    [CB_SPMV_TH1] = {.name = "th1", .most = 257, .standard = 128, .help = "sub-blocks with fewer nonzeros may be COO"},
    [CB_SPMV_TH2] = {.name = "th2",
                     .most = 256,
                     .standard = 208,
                     .help = "sub-blocks with more nonzeros are Dense; between: CSR"},
    [CB_SPMV_COO_GAIN] = {.name = "coo-gain",
                          .most = 100,
                          .standard = 40,
                          .help = "COO only in panels where it takes this percentage fewer steps than CSR; 0: always"},
    [CB_SPMV_INTRA] = {.name = "intra",
                       .words = cb_auto_on_off,
                       .help = "a sub-block's coordinates and values lie together"},
    [CB_SPMV_BALANCE] = {.name = "balance",
                         .words = balances,
                         .standard = CB_BALANCE_CONTIGUOUS,
                         .help = "how sub-blocks are distributed to thread blocks"},
    [CB_SPMV_TEAM] = {.name = "team",
                      .numbers = teams,
                      .help = "warps that share a panel at least: 1, 2, 4, 8; 0: by the matrix"},
    [CB_SPMV_UNIT_BUDGET] = {.name = "unit-budget",
                             .least = 16,
                             .most = INT64_C(1) << 31,
                             .or_zero = 1,
                             .help = "nonzeros above which a panel is split among thread blocks; 0: by the matrix"},
    [CB_SPMV_RUN_BLOCKS] = {.name = "run-blocks",
                            .most = 16,
                            .help = "sub-blocks that a warp multiplies at most; 1: one for each; 0: by the matrix"},
    [CB_SPMV_BAKE_LISTS] = {.name = "bake-lists",
                            .words = cb_auto_on_off,
                            .help = "column lists of aggregated sub-blocks that repeat stand in the text; auto: where "
                                    "that saves a quarter of their bytes"},
};

enum cb_status cb_cb_check(const int64_t *settings, struct cb_diag *diag) {
  if (settings[CB_SPMV_TH1] <= settings[CB_SPMV_TH2] + 1) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT,
                 "option 'th1' is %lld but 'th2' is %lld: COO would overlap Dense; th1 may be at most th2 + 1",
                 (long long)settings[CB_SPMV_TH1], (long long)settings[CB_SPMV_TH2]);
}

static const struct cb_node cb = {.layout = "cb"};
static const struct cb_node by_length = {.split = &cb_split_long_rows, .parts = {&cb, &cb}, .final = 1};

/* The paper's thresholds, its warp for each sub-block, and the steps of its ablation (Fig. 11). What all of a plan
 * shares stays the caller's: with atomics=on sums meet in y by atomics as in the paper, else in carry slots. */
#define PAPER "run-blocks=1 coo-gain=0 th0=15 super-sparse=32 bake-lists=off "
static const struct cb_node paper = {.layout = "cb", .settings = PAPER "th1=32 th2=128 balance=heap"};
static const struct cb_node paper_i = {.layout = "cb", .settings = PAPER "aggregate=off th1=257 th2=256"};
static const struct cb_node paper_ii = {.layout = "cb", .settings = PAPER "th1=32 th2=128"};

const struct cb_recipe cb_cb_recipes[] = {
    {.name = "cb",
     .summary = "CB-SpMV: 16x16 sub-blocks, columns aggregated, COO/CSR/Dense per sub-block",
     .example = "random,rows=40,cols=5000,density=0.2",
     .root = &cb,
     .is_searched = 1,
     .is_always_planned = 1},
    {.name = "cb-long",
     .summary = "CB-SpMV, with rows longer than --long-row in a region of their own",
     .example = "long_row,rows=300,cols=2000,per_row=5,long_rows=2,long_length=1800",
     .root = &by_length},
    {.name = "cb-paper",
     .summary = "CB-SpMV as published: a warp per sub-block, its thresholds, min-heap; --atomics=on as there",
     .example = "random,rows=200,cols=400,density=0.2",
     .root = &paper},
    {.name = "cb-i",
     .summary = "step I of CB-SpMV: a sub-block's data lie together, all as COO",
     .example = "random,rows=200,cols=400,density=0.1",
     .root = &paper_i},
    {.name = "cb-ii",
     .summary = "step II of CB-SpMV: columns aggregated, COO/CSR/Dense per sub-block; not balanced",
     .example = "random,rows=200,cols=400,density=0.2",
     .root = &paper_ii},
    {0},
};
