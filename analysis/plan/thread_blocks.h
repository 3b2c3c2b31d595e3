// SPDX-License-Identifier: Apache-2.0
/* What each thread block of a plan has to do, and what the cost model makes of that: for reports of slow ones.
 *
 * Thread blocks are numbered launch by launch, as cb_loads counts them: launches that run no region's multiply have
 * none. A thread block's prediction is the model's of its kernel (cost.h), scaled: bytes, sectors and instructions by
 * what it has to do, with thread blocks of mean size beside it on its multiprocessor, which has its share of the GPU's
 * rates; and dependent loads by its longest unit.
 */
#ifndef CBGEN_ANALYSIS_THREAD_BLOCKS_H
#define CBGEN_ANALYSIS_THREAD_BLOCKS_H

#include "analysis/plan.h"

/* The terms of the cost model. */
enum cb_term { CB_TERM_STREAM, CB_TERM_GATHER, CB_TERM_WORK, CB_TERM_CHAIN, CB_TERM_TAIL, CB_TERMS };
extern const char *const cb_term_names[CB_TERMS];

/* The greatest part of a cost. */
enum cb_term cb_cost_binding(const struct cb_cost *cost);

struct cb_thread_block {
  int64_t nonzeros;
  int64_t slots;   /* of its units, padding included */
  int64_t longest; /* of a unit, likewise */
  int64_t stored;  /* bytes that the kernel stores for them */
  int64_t rounds;  /* dependent loads: rounds that a warp waits for one after another, by the cost model; 0: unknown */
  struct cb_cost cost; /* of it: ns leaves the start of the kernel out */
};

struct cb_thread_blocks {
  int is_known; /* which thread block multiplies what; 0: all are empty, and `without` is a layout that does not tell */
  const char *without;
  int launches_count;
  int64_t *first;   /* of each launch of the plan; launches_count + 1 */
  int64_t *at_once; /* of each launch: thread blocks that the target holds at a time, as far as the plan says */
  int64_t count;
  struct cb_thread_block *blocks;
};

/* Release with cb_thread_blocks_release in any case. CB_ERR_MEMORY. */
enum cb_status cb_thread_blocks_count(struct cb_thread_blocks *blocks, const struct cb_plan *plan,
                                      const struct cb_assignment *assignment, const struct cb_csr *csr,
                                      struct cb_diag *diag);
void cb_thread_blocks_release(struct cb_thread_blocks *blocks);

/* The launch of thread block `number`. */
int cb_thread_blocks_launch(const struct cb_thread_blocks *blocks, int64_t number);

/* What a thread block has to do, exactly. */
struct cb_thread_block_facts {
  int64_t number;
  int region;                                /* with the most of its nonzeros; -1: none */
  int64_t rows;                              /* with nonzeros of its */
  int64_t first_row, last_row;               /* -1: none */
  int64_t longest_row, longest_row_nonzeros; /* of those, and how many of its nonzeros are here */
  int64_t sectors, bytes;                    /* of x, each once; of all that it reads and writes */
  int64_t row_nonzeros;                      /* of the row that was asked for */
};

/* Fills in the facts of `count` thread blocks, whose numbers are given, ascending, and with them the exact sectors and
 * bytes in `blocks`, whose costs follow. `row`: see row_nonzeros; -1: none. CB_ERR_MEMORY. */
enum cb_status cb_thread_blocks_look(struct cb_thread_block_facts *facts, int count, int64_t row,
                                     struct cb_thread_blocks *blocks, const struct cb_plan *plan,
                                     const struct cb_assignment *assignment, const struct cb_csr *csr,
                                     struct cb_diag *diag);

/* The thread blocks that multiply nonzeros of a row, or, of a row without, that write it: `most` numbers at most,
 * ascending. Returns how many there are, -1 without memory. */
int64_t cb_thread_blocks_of_row(int64_t *numbers, int64_t most, int64_t row, const struct cb_thread_blocks *blocks,
                                const struct cb_plan *plan, const struct cb_assignment *assignment,
                                const struct cb_csr *csr);

#endif
