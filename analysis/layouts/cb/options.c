// SPDX-License-Identifier: Apache-2.0
/* The options and recipes of layout cb. */
#include "analysis/layouts/cb/options.h"

static const char *const balances[] = {"contiguous", "heap", NULL};
static const int64_t teams[] = {0, 1, 2, 4, 8, CB_NO_NUMBER};

const struct cb_option cb_cb_options[CB_SPMV_OPTIONS] = {
    [CB_SPMV_AGGREGATE] = {.name = "aggregate", .words = cb_auto_on_off, .help = "column aggregation; auto asks --th0"},
    [CB_SPMV_TH0] = {.name = "th0", .most = 100, .standard = 15,
                     .help = "aggregate above this percentage of super-sparse sub-blocks"},
    [CB_SPMV_SUPER_SPARSE] = {.name = "super-sparse", .least = 1, .most = 257, .standard = 32,
                              .help = "fewer nonzeros: a super-sparse sub-block"},
    [CB_SPMV_TH1] = {.name = "th1", .most = 257, .standard = 128, .help = "sub-blocks with fewer nonzeros may be COO"},
    [CB_SPMV_TH2] = {.name = "th2", .most = 256, .standard = 208,
                     .help = "sub-blocks with more nonzeros are Dense; between: CSR"},
    [CB_SPMV_COO_GAIN] = {.name = "coo-gain", .most = 100, .standard = 40,
                          .help = "COO only in panels where it takes this percentage fewer steps than CSR; 0: always"},
    [CB_SPMV_INTRA] = {.name = "intra", .words = cb_auto_on_off,
                       .help = "a sub-block's coordinates and values lie together"},
    [CB_SPMV_BALANCE] = {.name = "balance", .words = balances, .standard = CB_BALANCE_CONTIGUOUS,
                         .help = "how sub-blocks are distributed to thread blocks"},
    [CB_SPMV_TEAM] = {.name = "team", .numbers = teams,
                      .help = "warps that share a panel at least: 1, 2, 4, 8; 0: by the matrix"},
    [CB_SPMV_UNIT_BUDGET] = {.name = "unit-budget", .least = 16, .most = INT64_C(1) << 31, .or_zero = 1,
                             .help = "nonzeros above which a panel is split among thread blocks; 0: by the matrix"},
    [CB_SPMV_BAKE_LISTS] = {.name = "bake-lists", .words = cb_auto_on_off,
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

const struct cb_recipe cb_cb_recipes[] = {
    {.name = "cb",
     .summary = "CB-SpMV: 16x16 sub-blocks, columns aggregated, COO/CSR/Dense per sub-block",
     .example = "random,rows=40,cols=5000,density=0.2",
     .root = &cb, .is_searched = 1},
    {.name = "cb-long",
     .summary = "CB-SpMV, with rows longer than --long-row in a region of their own",
     .example = "long_row,rows=300,cols=2000,per_row=5,long_rows=2,long_length=1800",
     .root = &by_length},
    {0},
};
