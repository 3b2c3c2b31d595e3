// SPDX-License-Identifier: Apache-2.0
/* Chains of diagonals, for layout dia: diagonals that lie a stride apart. Where no value is stored, a thread
 * may multiply rows that lie the same stride apart: what one of them reads of x on a diagonal, the next one
 * reads on the chain's diagonal before, so that a chain of n diagonals costs p rows p + n - 1 loads instead
 * of p * n. On a grid, the stride is a line or a plane of points, and neighbours in that direction form a
 * chain.
 *
 * Absent places must be as regular as a grid's: a row has entries on a chain's diagonals, those within the
 * matrix, exactly if its number lies within some bounds modulo some divisors of the stride (conditions). Then
 * they are alike for all rows of a thread, and need no array. */
#ifndef CBGEN_ANALYSIS_LAYOUTS_DIA_CHAINS_H
#define CBGEN_ANALYSIS_LAYOUTS_DIA_CHAINS_H

#include "frontend/csr.h"

#include <stdint.h>

/* At most: diagonals, conditions, rows of a thread, and diagonals of a chain. */
enum { CB_CHAINED = 64, CB_CONDITIONS = 32, CB_CHAIN_ROWS = 8, CB_CHAIN_LENGTH = 12 };

/* Diagonals to look at; those listed hold all nonzeros. */
struct cb_chain_shape {
  const struct cb_csr *csr;
  const int32_t *offset; /* ascending */
  const int64_t *holes;  /* absent places within the matrix, by diagonal */
  int diagonals;
};

/* from <= row % period < to */
struct cb_condition {
  int64_t period, from, to;
};

struct cb_chains {
  int64_t stride; /* 0: there are none */
  int rows;       /* of a thread; at most CB_CHAIN_ROWS */
  int threads;    /* of a thread block */
  int count, longest;
  int begin[CB_CHAINED + 1]; /* by chain: where its diagonals begin in `diagonal` */
  int diagonal[CB_CHAINED];  /* chain by chain, ascending */
  int conditions;
  struct cb_condition condition[CB_CONDITIONS];
  uint32_t needs[CB_CHAINED]; /* by chain: a bit for each of its conditions */
};

/* Elements of x that a thread block reads, each once: threads that read neighbouring ones share L1's lines.
 */
int64_t cb_chains_elements(const struct cb_chains *chains, const struct cb_chain_shape *shape);

/* Loads of x that a chain takes a thread. */
int cb_chain_loads(const struct cb_chains *chains, int chain);

/* What is asked for: rows of a thread, threads of a thread block, and a stride (0: the best one). No stride
 * is taken that needs more of x than `elements` for each `of_rows` rows, unless it is asked for. */
struct cb_chain_wish {
  int64_t stride, elements, of_rows;
  int rows, threads;
};

/* Leaves a stride of 0 where none will do. The same for any number of OpenMP threads. */
void cb_chains_find(struct cb_chains *chains, const struct cb_chain_shape *shape, const struct cb_chain_wish *wish);

#endif
