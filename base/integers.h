// SPDX-License-Identifier: Apache-2.0
/* Arithmetic of counts and sizes: none is negative, and no sum here may exceed what an int64_t holds. */
#ifndef CBGEN_BASE_INTEGERS_H
#define CBGEN_BASE_INTEGERS_H

#include <stdint.h>

static inline int64_t cb_smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
static inline int64_t cb_larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* Elements of some nanoseconds each from which on a loop is worth a parallel region: to begin one takes longer than
 * fewer. */
enum { CB_PARALLEL_LEAST = 1 << 14 };

/* How many groups of `by` hold `count`, the last one perhaps not full. */
static inline int64_t cb_divide_up(int64_t count, int64_t by) {
  return (count + by - 1) / by;
}

/* The next multiple, or the value itself. */
static inline int64_t cb_round_up(int64_t value, int64_t multiple) {
  return cb_divide_up(value, multiple) * multiple;
}

/* So many percent of a count, rounded up. */
static inline int64_t cb_percent_of(int64_t count, int percent) {
  return count / 100 * percent + cb_divide_up(count % 100 * percent, 100);
}

/* count * of / whole without overflow on the way, rounded down; 0 without a whole. */
static inline int64_t cb_proportion(int64_t count, int64_t of, int64_t whole) {
  __extension__ typedef __int128 wide;
  int64_t product;
  if (!whole) return 0;
  if (!__builtin_mul_overflow(count, of, &product)) return product / whole; /* a division by a function takes longer */
  return (int64_t)((wide)count * of / whole);
}

#endif
