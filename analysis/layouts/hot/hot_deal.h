// SPDX-License-Identifier: Apache-2.0
/* Which warp works on which slice of layout hot: see hot.c. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_HOT_DEAL_H
#define CBGEN_ANALYSIS_LAYOUTS_HOT_DEAL_H

#include "base/arena.h"

#include <stdint.h>

enum {
  CB_HOT_COSTS = 256,   /* a slice costs less */
  CB_HOT_MOST_MET = 256 /* segments that meet in a thread block: kMostMet of templates/hot.cu.in */
};

/* Slices, of which the first are segments, those of a row one behind the other. */
struct cb_hot_slices {
  int64_t count, segments;
  const uint32_t *segment_number; /* by segment: which of its row */
  const uint8_t *cost;            /* by slice */
  int64_t blocks, warps;          /* thread blocks, and warps of one */
  int64_t most_met;               /* segments that meet in a thread block */
};

/* Thread blocks have equal costs, as nearly as the longest come first to whoever has least, and so have the warps of
 * each. The segments of a row are dealt to one thread block, where they meet, unless the row costs more than a thread
 * block's share or finds no room there: it is carried then, each segment dealt by itself. */
struct cb_hot_deal {
  int32_t *slice;        /* by place: warp by warp, the costliest first */
  int32_t *order;        /* places, as they were dealt: about as warps come to them */
  uint32_t *first_place; /* by warp; + 1 */
  int64_t carried, met;  /* segments */
  int32_t *segment;      /* by new number: carried ones as they were, then those that meet, by thread block */
  int64_t groups;        /* rows whose segments meet */
  uint32_t *first_group; /* by thread block; + 1 */
  uint32_t *group_first; /* by group, the number of its first segment; + 1 */
};

/* The result lies in the arena. 0: no memory. The same for any number of threads. */
int cb_hot_deal(struct cb_hot_deal *deal, struct cb_arena *arena, const struct cb_hot_slices *slices);

#endif
