// SPDX-License-Identifier: Apache-2.0
/* How many lanes share a row of sliced ELL, whether rows stay in order, and what tiles of each size take: rules by
 * which the layouts sell and blocks plan, and from which the coarse model (choose/model.c) knows what they will plan.
 * Times are nanoseconds, good for comparing such plans with each other; all were measured on one H200 (bench/results).
 */
#ifndef CBGEN_ANALYSIS_ROW_LANES_H
#define CBGEN_ANALYSIS_ROW_LANES_H

#include "analysis/target.h"
#include "analysis/tiles.h"

#include <stdint.h>

/* As many as it takes to give each multiprocessor 1024 threads, but two nonzeros for each at least; more for long rows,
 * whose lanes would walk far apart otherwise. */
int cb_row_lanes(int64_t rows, int64_t nonzeros, const struct cb_target *target);

/* What is stored in slices, and how they wait. */
struct cb_slices_work {
  int64_t blocks;           /* thread blocks of eight slices */
  int64_t mean, longest;    /* batches of a slice */
  int64_t bytes, nonzeros;
  int sorted, varied, split; /* an order of rows; lanes by slice; rows that several slices share */
};

/* Rounds of thread blocks, each of which waits for its batches one by one, the longest slice's in any case; and bytes,
 * which come half as fast again where L2 holds them. Of both the shorter counts nearly half. An order costs a dependent
 * load, and what rows that are neighbours no longer share of x. Of 676 products whose rows had an order what is chosen
 * so takes 1.06 times as long as the best. */
int64_t cb_slices_ns(const struct cb_slices_work *work, const struct cb_target *target);

/* ---- rows that are about as long as each other, of 16 nonzeros and more: no order is better than theirs */

/* Whether they keep the GPU busy: as many lanes as of other rows nearly half of it, or 32 of long rows a quarter. */
int cb_rows_are_many(int64_t rows, int64_t nonzeros, const struct cb_target *target);

/* None is longer by a third than the mean. */
static inline int cb_rows_are_even(int64_t rows, int64_t nonzeros, int64_t longest) {
  return longest * 3 * rows <= nonzeros * 4;
}

/* The most lanes that even rows may have: of matrices of twice L2 four, and one where rows are not long and fill the
 * GPU twice: from there on rows beside each other bring more than lanes that meet (floats, band of 887937 x 22 26.9 us
 * by one, 42.9 by four; of 488386 x 61 42.5 by 1 to 4, 57 by 8). `slot_bytes`: of a value and its column. */
int cb_even_rows_most_lanes(int64_t rows, int64_t nonzeros, int64_t slot_bytes, const struct cb_target *target);

/* What they take by so many lanes: rounds of thread blocks, `room` of which a multiprocessor holds, each of which waits
 * for its batches one by one, and bytes, of which the shorter one still counts a fifth. From half of L2 on bytes take
 * the longer, the fewer lanes meet in a line. Of 88 products of rows that had lanes by slice before what is chosen so
 * takes 1.05 times as long as the best number of lanes, and 0.79 of what it took. */
int64_t cb_even_rows_ns(int64_t bytes, int64_t blocks, int64_t room, int64_t batches, int64_t lanes,
                        const struct cb_target *target);

/* ---- tiles */

enum { CB_TILE_THREADS = 512 /* of a multiprocessor: of fewer each may have more registers */ };

/* Lanes for a row of tiles: as many as it takes for so many threads, but four tiles for each; more for long rows. */
int cb_tile_row_lanes(int64_t tile_rows, int64_t tiles, int64_t threads);

/* Tiles whose loads a lane of so many steps has in flight together. `values`: entries of tiles that its registers shall
 * hold; of finite elements with three unknowns in a node three tiles take 243 us where one takes 250. */
enum { CB_TILE_VALUES = 27, CB_TILE_VALUES_OF_FEW = 36 /* by few threads */ };
int64_t cb_tile_batch(struct cb_tile_size size, int64_t values, int64_t steps);

/* Thread blocks of 256 threads for which a multiprocessor has registers, of which a lane needs so many for a batch's
 * values, and more where entries may be absent. */
int cb_tile_blocks_held(int64_t registers, int some_absent);

/* What a matrix of so many tiles takes: rounds of thread blocks, which wait for a tile's sums, for each batch, and for
 * each load of a lane; and bytes, as above. A tile of many entries leaves room for few thread blocks and few tiles of a
 * batch. Of 730 products the size of least time takes 1.03 times as long as the best one, where that of fewest bytes
 * takes 1.24 times. `bytes`: of all tiles; value_bytes: of an entry. */
int64_t cb_tiles_ns(struct cb_tile_size size, int64_t tile_rows, int64_t tiles, int64_t value_bytes, int64_t bytes,
                    const struct cb_target *target);

#endif
