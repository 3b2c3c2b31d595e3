// SPDX-License-Identifier: Apache-2.0
/* Symmetric storage of blocks, each of which is read once: the thread block of its block row also adds it, turned, to
 * the block row of its column. That is one of the thread block's own, or an outer one: another thread block's, for
 * which it leaves what it has added up. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_BLOCKS_OUTER_H
#define CBGEN_ANALYSIS_LAYOUTS_BLOCKS_OUTER_H

#include "analysis/layout.h"

/* Blocks on and below the main diagonal, by block row; columns ascend, the diagonal one comes last. Thread block t has
 * the block rows from t * tile_rows on. */
struct cb_lower_blocks {
  int64_t block_rows, tile_rows;
  int64_t height;         /* rows of a block */
  const int64_t *start;   /* block_rows + 1 */
  const uint32_t *column;
};

struct cb_outer {
  int64_t tiles;      /* thread blocks */
  int64_t *first;     /* by thread block: outer block rows of those before; tiles + 1 */
  uint32_t *row;      /* they: block rows, ascending for each thread block */
  int64_t most;       /* of a thread block */
  uint8_t *turn;      /* by lower block: the step in which its block row takes it */
  int64_t *steps, all_steps; /* by thread block; of all */
  int64_t *part_first; /* by block row: parts of its sum that others leave, before it; block_rows + 1 */
  uint32_t *part;     /* they: places among all sums that thread blocks leave, ascending */
};

/* Finds all of it, in the arena. In no step two block rows of a thread block add to the same one: turns are found for
 * distances from the main diagonal first, which suits meshes, and one by one for the others. 0: no memory, or a block
 * row would take more steps than there are. */
int cb_outer_find(struct cb_outer *outer, struct cb_arena *arena, const struct cb_lower_blocks *lower);

/* Whether shared memory has room for the sums of a thread block, twice, and their numbers suit the text. */
int cb_outer_fits(const struct cb_outer *outer, const struct cb_lower_blocks *lower,
                  const struct cb_region_builder *builder);

/* The place of a block row's sum among those of a thread block: its own come first. */
int64_t cb_outer_place(const struct cb_outer *outer, const struct cb_lower_blocks *lower, int64_t tile,
                       int64_t block_row);

/* Adds arrays, carry slots and shared memory to the region; and, when it has all of its arrays, what is predicted. */
void cb_outer_build(struct cb_region_builder *builder, const struct cb_outer *outer,
                    const struct cb_lower_blocks *lower);
void cb_outer_predict(struct cb_region_builder *builder);

#endif
