// SPDX-License-Identifier: Apache-2.0
/* Which columns of a part are hot, and which are packed: see hot.c. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_HOT_COLUMNS_H
#define CBGEN_ANALYSIS_LAYOUTS_HOT_COLUMNS_H

#include "analysis/layout.h"
#include "frontend/csr.h"

#include <stdint.h>

enum { CB_COLD = -1 };

/* The least and the most of some numbers that occur; most < least: none does. */
struct cb_hot_range {
  int64_t least, most;
};

struct cb_hot_columns {
  int64_t hot, packed, rest; /* occupied columns: hot ones, packed ones, others */
  int whole;  /* all columns that there are are hot, and copied as they lie */
  int gather; /* a launch before lays hot and packed entries side by side */
  int32_t *place_of; /* by column: [0, hot) in the order of columns, [hot, hot + packed) by frequency; or CB_COLD */
  int32_t *column;   /* by place */
  struct cb_hot_range index, low, high; /* of nonzeros that are not hot: cb_hot_index, its 16 lower bits, those above */
  int64_t prepare_ns;                   /* predicted: laying packed entries side by side */
  int64_t miss_ns;    /* predicted: entries that L2 has lost, read from memory */
};

/* Where the entry of x for a nonzero that is not hot lies: among the packed ones, or behind them at its column. */
static inline uint32_t cb_hot_index(const struct cb_hot_columns *columns, int64_t column, int32_t place) {
  return (uint32_t)(place == CB_COLD ? column + columns->packed : place - columns->hot);
}

/* What shapes the choice. */
struct cb_hot_shape {
  const struct cb_csr *csr;
  const int64_t *settings; /* of layout hot */
  const struct cb_target *target;
  int64_t value_bytes, vector_bytes; /* of a nonzero's value, and of an element of x */
  int64_t hot_bytes;                 /* of a hot column's entries in shared memory, for all vectors at once */
  int64_t met_bytes;                 /* of the sums there of segments, likewise */
  enum cb_switch gather;             /* whether a launch before may lay entries side by side */
  int64_t blocks;                    /* thread blocks that copy the hot entries */
};

/* CB_ERR_LIMIT: more hot columns asked for than shared memory holds; CB_ERR_UNSUPPORTED: too little gained;
 * CB_ERR_MEMORY. The result lies in the arena. The same for any number of threads. */
enum cb_status cb_hot_columns_choose(struct cb_hot_columns *columns, struct cb_arena *arena,
                                     const struct cb_hot_shape *shape, struct cb_diag *diag);

#endif
