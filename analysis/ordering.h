// SPDX-License-Identifier: Apache-2.0
/* Lists of rows (or of anything that is numbered), made in parallel: chosen ones, and all in the order of a key. What
 * they hold does not depend on the number of threads.
 */
#ifndef CBGEN_ANALYSIS_ORDERING_H
#define CBGEN_ANALYSIS_ORDERING_H

#include "base/arena.h"

/* Whether row `row` is wanted. */
typedef int cb_row_test(const void *user, int64_t row);

/* The wanted ones of the rows 0 … rows - 1, ascending, in the arena. NULL: no memory. */
int32_t *cb_rows_where(struct cb_arena *arena, int64_t rows, cb_row_test *wanted, const void *user, int64_t *count);

/* The numbers 0 … count - 1 by ascending key; those with equal keys keep their order. Those whose key is `keys` or more
 * are left out. Returns how many are in `sorted`, which has room for all; -1: no memory. */
int64_t cb_sort_by_key(int32_t *sorted, const uint32_t *key, int64_t count, int64_t keys);

/* Where `value` is among `count` ascending numbers, of which it is one. */
static inline int64_t cb_place_among(const uint32_t *ascending, int64_t count, int64_t value) {
  int64_t low = 0, high = count - 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (ascending[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

#endif
