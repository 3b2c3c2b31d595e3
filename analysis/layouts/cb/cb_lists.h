// SPDX-License-Identifier: Apache-2.0
/* Column lists of sub-blocks that repeat. After aggregation a sub-block has 16 columns; their offsets from the first
 * one are its list. The most frequent lists become a table in the text, and a sub-block stores one byte: a number
 * below `count` is a list of the table; number count + k is the k-th list that is stored for the sub-block's run.
 */
#ifndef CBGEN_ANALYSIS_LAYOUTS_CB_LISTS_H
#define CBGEN_ANALYSIS_LAYOUTS_CB_LISTS_H

#include "analysis/panels.h"
#include "base/arena.h"
#include "base/status.h"

enum {
  CB_LIST_COLUMNS = CB_BLOCK_COLS,
  CB_MOST_LISTS = 240 /* what a byte leaves: a run has up to 16 stored ones */
};

struct cb_lists {
  int count;             /* in the table, the most frequent first */
  const uint32_t *table; /* 16 offsets for each */
  unsigned char *number; /* by sub-block */
  uint32_t *stored;      /* 16 offsets for each list that is stored */
  int64_t stored_count;
};

/* Finds the lists of `blocks` sub-blocks, whose offsets are all[16 * i …], in `arena`. Lists that occur once are never
 * in the table. Numbers of stored lists start anew where `run_starts` says so: at a run's first sub-block. */
enum cb_status cb_lists_find(struct cb_lists *lists, struct cb_arena *arena, const uint32_t *all, int64_t blocks,
                             const unsigned char *run_starts, struct cb_diag *diag);

#endif
