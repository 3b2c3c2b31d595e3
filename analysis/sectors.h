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
struct cb_sector_sink;

/* A new load of a warp: what was asked for before is not shared with it. */
void cb_sector_load(struct cb_sector_sink *sink);
void cb_sector_ask(struct cb_sector_sink *sink, int64_t column);

/* The columns of the stretch of nonzeros from `begin` on, which has that number among those of its thread block. */
const int32_t *cb_sector_columns(const struct cb_sector_sink *sink, int64_t number, int64_t begin);

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
