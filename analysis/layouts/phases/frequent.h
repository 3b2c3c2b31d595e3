// SPDX-License-Identifier: Apache-2.0
/* Frequent columns, and the rows that have several nonzeros in them: what the split hot-columns sends to a layout that
 * keeps entries of x in shared memory a set at a time. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_PHASES_FREQUENT_H
#define CBGEN_ANALYSIS_LAYOUTS_PHASES_FREQUENT_H

#include "analysis/columns.h"
#include "analysis/options.h"
#include "analysis/target.h"

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

/* The shape of a launch whose thread blocks keep sums and entries of x in shared memory, as options and target say. */
struct cb_phase_shape {
  int64_t blocks;    /* thread blocks that the GPU runs at once */
  int64_t per_sm;    /* of them on a multiprocessor */
  int64_t room;      /* elements of shared memory that each has */
  int64_t element;   /* bytes of one */
  int threads;
};
struct cb_phase_shape cb_phase_shape(const struct cb_target *target, const struct cb_options *options);

#endif
