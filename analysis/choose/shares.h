// SPDX-License-Identifier: Apache-2.0
/* Which part of a matrix is worth an extraction (analysis/chunks.h): shares of hot columns and rows, predicted from how
 * nonzeros are spread over rows and over columns. After MatXtract, whose forests of decision trees were trained on
 * times of products; those here are trained by bench/train/shares.py, for each model of GPU and size of a value.
 *
 * The forest has three outputs, sums of leaves:
 *
 *   SHARES_COLS, SHARES_ROWS   what the best extraction takes, in 1/CB_SHARES_ONE of a percent
 *   SHARES_GAIN                log2 of what a product takes without it over what it takes with it, in 1/CB_CHOICE_ONE
 *
 * Where the gain is less than the table's least one, nothing is extracted. */
#ifndef CBGEN_ANALYSIS_CHOOSE_SHARES_H
#define CBGEN_ANALYSIS_CHOOSE_SHARES_H

#include "analysis/choose/forest.h"
#include "frontend/csr.h"

enum {
  CB_SHARES_TOPS = 10,
  CB_SHARES_PARTS = 9,
  CB_SHARES_FEATURES = 3 + 2 * (5 + CB_SHARES_TOPS + CB_SHARES_PARTS),
  CB_SHARES_WHOLE = 1 << 14, /* of a share, as a feature */
  CB_SHARES_ONE = 64,        /* of a percent, as a leaf */
};
extern const int cb_shares_tops[CB_SHARES_TOPS]; /* 1, 2, 3, 4, 5, 10, 50, 100, 200, 300 */

/* How nonzeros are spread over rows, or over columns: exact counts, the same for any number of threads. Without
 * nonzeros all but `count` are 0. */
struct cb_spread {
  int64_t count;                   /* of rows, or columns */
  int64_t least, most;             /* nonzeros of one */
  int64_t variance;                /* of these numbers, in 1/4096, rounded down; INT64_MAX: or more */
  int64_t even;                    /* the least k such that the k fullest have a share of (count - k) / count */
  int64_t top[CB_SHARES_TOPS];     /* nonzeros of the fullest ones, as many as cb_shares_tops says */
  int64_t within[CB_SHARES_PARTS]; /* how few have 10, 20, … 90 percent of the nonzeros */
};
struct cb_shares_profile {
  int64_t nnz;
  struct cb_spread rows, cols;
};

/* Columns are on the host. CB_ERR_MEMORY; CB_ERR_UNSUPPORTED as cb_check_column_tables has it. */
enum cb_status cb_shares_profile(struct cb_shares_profile *profile, const struct cb_csr *csr, struct cb_diag *diag);

/* What trees ask about: numbers as logarithms (cb_choice_log2), shares in 1/CB_SHARES_WHOLE; rows, columns, nonzeros;
 * then of rows, and of columns, mean and deviation in 1/64, the other numbers of a spread in their order, `top` as a
 * share of the nonzeros, `even` and `within` as shares of all. */
struct cb_shares_features {
  int32_t of[CB_SHARES_FEATURES];
};
void cb_shares_describe(struct cb_shares_features *features, const struct cb_shares_profile *profile);

/* ---- tables */

enum cb_shares_output { SHARES_COLS, SHARES_ROWS, SHARES_GAIN, SHARES_OUTPUTS };

struct cb_shares_table {
  const char *model; /* of the GPU, as the driver names it */
  int value_bytes;
  int least_gain; /* in 1/CB_CHOICE_ONE */
  struct cb_forest forest;
};
extern const struct cb_shares_table cb_shares_tables[]; /* ends with a NULL model */

/* The table for that GPU and values of that size; NULL: there is none, or it is not well formed. */
const struct cb_shares_table *cb_shares_table_find(const char *model, int64_t value_bytes);
int cb_shares_table_check(const struct cb_shares_table *table);

/* The outputs. */
struct cb_shares_sums {
  int64_t of[SHARES_OUTPUTS];
};
struct cb_shares_sums cb_shares_sum(const struct cb_shares_table *table, const struct cb_shares_features *features);

/* Shares of all nonzeros in percent, 1 <= rows <= cols <= 100; or 0 of both: nothing is to be gained. */
struct cb_shares {
  int cols, rows;
};
struct cb_shares cb_shares_predict(const struct cb_shares_table *table, const struct cb_shares_features *features);

#endif
