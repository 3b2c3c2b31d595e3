// SPDX-License-Identifier: Apache-2.0
/* What a caller may choose about CB-SpMV; th0, th1 and th2 are the paper's names. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_CB_OPTIONS_H
#define CBGEN_ANALYSIS_LAYOUTS_CB_OPTIONS_H

#include "analysis/plan/recipe.h"

/* Values of aggregate, beside those of enum cb_switch: by panel. */
enum { CB_AGGREGATE_PANEL = CB_OFF + 1 };
enum cb_balance { CB_BALANCE_CONTIGUOUS, CB_BALANCE_HEAP };

/* Rows of the table, and places in builder->settings. */
enum {
  CB_SPMV_AGGREGATE,
  CB_SPMV_TH0,
  CB_SPMV_SUPER_SPARSE,
  CB_SPMV_TH1, /* if coo-gain agrees */
  CB_SPMV_TH2,
  CB_SPMV_COO_GAIN,
  CB_SPMV_INTRA,
  CB_SPMV_BALANCE, /* enum cb_balance */
  CB_SPMV_TEAM,
  CB_SPMV_UNIT_BUDGET,
  CB_SPMV_RUN_BLOCKS,
  CB_SPMV_BAKE_LISTS,
  CB_SPMV_OPTIONS
};
_Static_assert((int)CB_SPMV_OPTIONS <= CB_MAX_SETTINGS, "a place for each");

extern const struct cb_option cb_cb_options[CB_SPMV_OPTIONS];
extern const struct cb_recipe cb_cb_recipes[];
enum cb_status cb_cb_check(const int64_t *settings, struct cb_diag *diag);

#endif
