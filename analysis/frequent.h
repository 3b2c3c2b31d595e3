// SPDX-License-Identifier: Apache-2.0
/* Frequent columns, and the rows that have several nonzeros in them: what the split hot-columns sends to a layout that
 * keeps entries of x in shared memory a set at a time (layouts/phases.c). */
#ifndef CBGEN_ANALYSIS_FREQUENT_H
#define CBGEN_ANALYSIS_FREQUENT_H

#include "analysis/options.h"
#include "analysis/target.h"
#include "frontend/csr.h"

#include <stdint.h>

struct cb_frequent {
  unsigned char *column, *row; /* whether it is frequent: by column, by row; owned */
  int64_t columns, rows, nonzeros; /* nonzeros in both a frequent column and such a row */
};

/* Chooses by what a column's copies into shared memory cost and its nonzeros gain, or as the options say.
 * CB_ERR_UNSUPPORTED: too few nonzeros, or so few columns that they fit all at once; CB_ERR_MEMORY. Release the result
 * also after a failure. The same for any number of threads. */
enum cb_status cb_frequent_choose(struct cb_frequent *frequent, const struct cb_csr *csr,
                                  const struct cb_target *target, const struct cb_options *options,
                                  struct cb_diag *diag);
void cb_frequent_release(struct cb_frequent *frequent);

/* Whether tables over all columns are in proportion to the matrix. Where columns are far more than nonzeros and rows,
 * such tables would take many times its memory: then CB_ERR_UNSUPPORTED. */
enum cb_status cb_check_column_tables(const struct cb_csr *csr, struct cb_diag *diag);

/* Nonzeros by column, owned by the caller; NULL: no memory. */
uint32_t *cb_count_columns(const struct cb_csr *csr);

/* How many columns have so many nonzeros, by key: CB_COUNT_KEYS elements, owned by the caller; NULL: no memory. */
enum { CB_COUNT_KEYS = 1 << 16 }; /* nonzeros of a column, as far as they order columns */
static inline int64_t cb_count_key(uint32_t count) { return count < CB_COUNT_KEYS ? count : CB_COUNT_KEYS - 1; }
int64_t *cb_columns_with(const uint32_t *counts, int64_t cols);

/* The shape of a launch whose thread blocks keep sums and entries of x in shared memory, as options and target say. */
struct cb_phase_shape {
  int64_t panels;    /* thread blocks that the GPU runs at once */
  int64_t per_sm;    /* of them on a multiprocessor */
  int64_t room;      /* elements of shared memory that each has */
  int64_t element;   /* bytes of one */
  int threads;
};
struct cb_phase_shape cb_phase_shape(const struct cb_target *target, const struct cb_options *options);

#endif
