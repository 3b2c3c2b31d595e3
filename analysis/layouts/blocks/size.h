// SPDX-License-Identifier: Apache-2.0
/* Which size blocks have: that by which a matrix takes the least time, of those whose blocks are full enough. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_BLOCKS_SIZE_H
#define CBGEN_ANALYSIS_LAYOUTS_BLOCKS_SIZE_H

#include "analysis/layout.h"
#include "analysis/tiles.h"

enum { CB_BLOCKS_INDEX_BYTES = 2 }; /* of a column offset, as a rule */

/* Whether so much of the tiles is nonzeros. */
int cb_blocks_are_full(const struct cb_tile_census *census, struct cb_tile_size size, int64_t percent);

/* Bytes that tell which entries of a block are there. */
int64_t cb_blocks_presence_bytes(struct cb_tile_size size);

/* Whether blocks of this size are whole ones, which tensor cores multiply. */
int cb_blocks_may_be_whole(struct cb_tile_size size, const struct cb_region_builder *builder);

/* The size of least time among those that are full enough (of several vectors, of a part and of half of a symmetric
 * matrix that of fewest bytes), or that of whole blocks, or that within it which leaves room, or the one that is asked
 * for if it is full enough; -1: none. */
int cb_blocks_best_size(const struct cb_csr *csr, const struct cb_region_builder *builder);

/* CB_ERR_UNSUPPORTED, as there is none. */
enum cb_status cb_blocks_refuse(const int64_t *settings, struct cb_diag *diag);

#endif
