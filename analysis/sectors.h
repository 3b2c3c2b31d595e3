// SPDX-License-Identifier: Apache-2.0
/* How many 32-byte sectors of x a kernel fetches from L2: what gathers cost (cost.h).
 *
 * Lanes of a warp that ask for the same sector in one load share it. Warps of a thread block share what L1 holds:
 * a sector is fetched once while all that the block touches fits into its share of L1; the less of it fits, the more
 * sectors are fetched again. Thread blocks do not share: neighbours run on different multiprocessors.
 *
 *   s = cb_sectors_predict(builder, state, visit_sectors, diag)
 *
 * A layout's visit names the columns in the order in which warps ask for them; only a sample of the thread blocks
 * of a large matrix is visited, evenly spread, in parallel.
 */
#ifndef CBGEN_ANALYSIS_SECTORS_H
#define CBGEN_ANALYSIS_SECTORS_H

#include "analysis/layout.h"

#include <stdint.h>

/* What a visit reports to. */
struct cb_sector_sink {
  int64_t per_sector, previous;
  int shift; /* log2 of per_sector; -1: it is no power of two */
  int64_t asked, distinct;
  int slots_log2;
  uint32_t *slots; /* sector + 1; 0: free */
  uint16_t *used;  /* which are not: the first CB_SECTORS_FULL */
  const int32_t *columns; /* of the matrix; or of the thread block's stretches, which begin at `first` */
  const int64_t *first;
};

enum {
  CB_SECTOR_SLOTS_LOG2 = 15, /* of the set of sectors that a thread block touches, at most */
  CB_SECTORS_FULL = (1 << CB_SECTOR_SLOTS_LOG2) / 4 * 3
};

/* A new load of a warp: what was asked for before is not shared with it. */
static inline void cb_sector_load(struct cb_sector_sink *sink) { sink->previous = -1; }

/* Where so many are touched that none stays in any L1, each counts as if it were new. */
static inline void cb_sector_ask(struct cb_sector_sink *sink, int64_t column) {
  const int64_t sector = sink->shift < 0 ? column / sink->per_sector : column >> sink->shift;
  if (sector == sink->previous) return;
  sink->previous = sector;
  sink->asked++;
  if (sink->distinct >= CB_SECTORS_FULL) {
    sink->distinct++;
    return;
  }
  const uint32_t mask = (UINT32_C(1) << sink->slots_log2) - 1;
  uint32_t slot = (uint32_t)sector * 0x9e3779b1u >> (32 - sink->slots_log2);
  while (sink->slots[slot] && sink->slots[slot] != (uint32_t)sector + 1) slot = (slot + 1) & mask;
  if (sink->slots[slot]) return;
  sink->slots[slot] = (uint32_t)sector + 1;
  sink->used[sink->distinct++] = (uint16_t)slot;
}

/* The columns of the stretch of nonzeros from `begin` on, which has that number among those of its thread block. */
static inline const int32_t *cb_sector_columns(const struct cb_sector_sink *sink, int64_t number, int64_t begin) {
  return sink->columns + (sink->first ? sink->first[number] : begin);
}

typedef void cb_sectors_visit(const void *user, int64_t block, struct cb_sector_sink *sink);

/* Predicts the sectors of a builder whose region's thread blocks are known; for several vectors also those of X by rows
 * (cb_region.row_sectors). CB_ERR_MEMORY. The same for any number of threads. */
enum cb_status cb_sectors_predict(struct cb_region_builder *builder, const void *state, cb_sectors_visit *visit,
                                  struct cb_diag *diag);

/* The stretches of nonzeros that a thread block multiplies; returns their number, which is the same for all thread
 * blocks. Only that while `stretches` is NULL. */
typedef int64_t cb_sectors_stretches(const void *user, int64_t block, struct cb_stretch *stretches);

/* The same for a visit that reads columns through cb_sector_columns, so that they need not be on the host. */
enum cb_status cb_sectors_predict_by_stretch(struct cb_region_builder *builder, const void *state,
                                             cb_sectors_visit *visit, cb_sectors_stretches *stretches,
                                             struct cb_diag *diag);


#endif
