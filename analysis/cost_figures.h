// SPDX-License-Identifier: Apache-2.0
/* The figures of the cost model that do not belong to a GPU (those are in target.h): what kernels of this kind reach of
 * its rates, and what waits take. All were measured on one H200 (bench/results) and are taken to hold elsewhere. Two of
 * one kind that differ were fitted to different layouts, each to the products that it was chosen for. */
#ifndef CBGEN_ANALYSIS_COST_FIGURES_H
#define CBGEN_ANALYSIS_COST_FIGURES_H

enum {
  /* every kernel */
  CB_COST_L2_PERCENT = 64,     /* of the rate of a plain read from L2 */
  CB_COST_GATHER_PERCENT = 81, /* of the rate of plain gathers */
  CB_COST_FURTHER_PERCENT = 67, /* what a further sector takes of that, of a line that one is taken of already: of a row
                                 * of X. Random 60000 rows of 40, 16 vectors, 54.0 us; R-MAT 18, 81.4 */
  CB_COST_START_NS = 900,      /* from a kernel's start to its first loads, and from its last stores to its end */
  CB_COST_TIE = 16,            /* this part of the time on the GPU still counts where launching takes longer */

  /* share of the device's read rate, in percent */
  CB_COST_SELL_PERCENT = 90,
  CB_COST_BLOCKS_PERCENT = 95,
  CB_COST_DIA_PERCENT = 98,        /* with stored values */
  CB_COST_DIA_COPYING_PERCENT = 87, /* without: half of the traffic is writing, as in a copy */
  CB_COST_SLICES_PERCENT = 93,
  CB_COST_PATTERNS_PERCENT = 96,
  CB_COST_PATTERNS_ROWS_PERCENT = 80, /* single rows, padded: 66 to 90 measured */
  CB_COST_PATTERNS_PACKED_PERCENT = 86, /* rows of few nonzeros: instructions and waits weigh more */
  CB_COST_MERGE_PERCENT = 86,
  CB_COST_PHASES_PERCENT = 72,
  CB_COST_CB_PERCENT = 75,

  /* waits of one warp or thread block, in nanoseconds */
  CB_COST_SLICES_NS = 600,      /* a record before the first batch, where little else is done: measured */
  CB_COST_BATCH_NS = 800,       /* a batch of loads, then the gathers that need them: sell, blocks, dia, merge */
  CB_COST_CARRY_NS = 2500,      /* the last of several sums of a row is waited for: sell, cb */
  CB_COST_CARRY_MERGE_NS = 1500, /* the same in merge, whose row segments are thread blocks that start first */
  CB_COST_SELL_WAVE_NS = 2200,  /* all warps that the GPU holds, from the lengths of rows to what they add up to */
  CB_COST_SELL_RECORD_NS = 1300, /* likewise, where a slice's record says which lanes have which row */
  CB_COST_BLOCKS_SUMS_NS = 100, /* sums of a block's rows, of each lane: small matrices 1.1 us for 0.8 by sell */
  CB_COST_MERGE_ROWS_NS = 900,  /* adding up the rows of a tile */
  CB_COST_MERGE_LOOK_UP_NS = 200, /* where a long row, or a tile that is not padded, begins */
  CB_COST_HOT_PREPARE_NS = 3500, /* a launch before, which lays entries of x side by side */
  CB_COST_HOT_BEGIN_NS = 1000,  /* until a thread block has its entries */
  CB_COST_HOT_SLICE_NS = 750,   /* where a warp's slice begins and ends, unless cold nonzeros take longer */
  CB_COST_HOT_WORTH_NS = 2000,  /* less than this saved is not worth shared memory */
  CB_COST_PHASE_NS = 1500,      /* a phase's start */
  CB_COST_PHASES_COMMIT_NS = 14000, /* the launch before, and sums on their way to y */
  CB_COST_CB_FIRST_NS = 600,    /* cb: the first loads of a run depend on one more than the later ones do */
  CB_COST_CB_BATCH_NS = 700,
  CB_COST_CB_LIST_NS = 100,     /* column lists: one more dependent load, mostly from L1; not measured */
  CB_COST_CB_COO_NS = 600,      /* sums of COO runs, from shared memory */
  CB_COST_CB_TOGETHER_NS = 200, /* sums of a panel's runs */
  CB_COST_CB_STAGED_NS = 700,   /* x on its way through shared memory */

  /* what instructions take, in picoseconds of a multiprocessor */
  CB_COST_DIA_LOAD_PS = 55,     /* a load of x, with 27 points and fixed values */
  CB_COST_PATTERNS_OFFSET_PS = 6000, /* an offset of 32 rows, packed: addresses by votes of the warp */
  CB_COST_PART_FS = 7300,       /* femtoseconds: a sum that a thread block leaves, and one behind reads; of the GPU.
                                 * Symmetric finite elements of 56^3 and 80^3 nodes: 10 us of 54.5, 32 of 163.5 */
  CB_COST_DU_BLOCK_PS = 4400,   /* a block of 8 x 4: finding values by its bits; with 20 of 32 places filled */
  CB_COST_DU_MMA_PS = 4700,     /* the same by tensor cores */
  /* by eight vectors, where warps share chunks: 40 matrices of the source tree, 11 of them by six sharings; a quarter
   * more than by graphs, as the other layouts' predictions for several vectors are */
  CB_COST_TILES_START_NS = 1600, /* from a kernel's start to its end, with a batch of four blocks for each warp */
  CB_COST_TILES_ROUND_NS = 1250, /* thread blocks that wait until others have left: each time that they all change */
  CB_COST_TILES_CHAIN_NS = 250,  /* a warp's further batch */
  CB_COST_TILES_BATCH_NS = 31,   /* a batch, of a multiprocessor */
  CB_COST_TILES_FOUR_NS = 23,    /* the same by four vectors: 10 of the 40, by six sharings */
  CB_COST_TILES_UNIT_NS = 150,   /* a thread block, likewise */
  CB_COST_TILES_CARRY_NS = 1000, /* a launch that adds up segments */
  CB_COST_TILES_SUMS_NS = 125,   /* of 16 segments of a chunk */
  CB_COST_TILES_CHUNK_NS = 4,    /* for each chunk that is cut */
  /* by several vectors, where warps multiply step by step: finite elements and grids by 4, 8, 16 and 32 vectors, a
   * tenth more than measured by graphs, as predictions of du are */
  CB_COST_STEPS_START_NS = 1000,    /* from a kernel's start to its end, without the steps */
  CB_COST_STEPS_CHAIN_PERCENT = 37, /* of what batches wait by one vector */
  CB_COST_STEPS_PERCENT = 110,      /* of what is predicted of products by graphs */
  CB_COST_PHASES_SLOT_PS = 360, /* a slot, whatever it stores */
  CB_COST_LINE_PS = 570,        /* a line of L1 that a load asks for: one in a cycle. R-MAT 20 by sell, 8 vectors to a
                                 * thread, 4 lines for each of 16 M nonzeros: 277 by this, 282 measured */
  CB_COST_INSTRUCTION_PS = 230 /* an instruction of a warp: 2.5 in a cycle of 0.6 ns while warps wait for memory */
};

#endif
