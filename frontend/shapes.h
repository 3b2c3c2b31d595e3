// SPDX-License-Identifier: Apache-2.0
/* The table of shapes that cb_matrix_generate knows. A shape says how large the matrix is and which columns a
 * row has; a row is computed from the keys, the seed and its number alone, so that rows can be made in any
 * order. */
#ifndef CBGEN_FRONTEND_SHAPES_H
#define CBGEN_FRONTEND_SHAPES_H

#include "frontend/csr.h"

#include <stdint.h>

enum { CB_SHAPE_KEYS = 7, CB_AS_FIRST = -2, CB_NOT_GIVEN = -1 };

struct cb_shape_key {
  const char *name;
  double standard; /* when not given; CB_AS_FIRST: the value of the shape's first key */
  double least, most;
  int real; /* fractions are allowed */
};

struct cb_shape_args {
  double value[CB_SHAPE_KEYS]; /* in the order of the shape's keys; whole numbers are exact */
  uint64_t seed;
};

struct cb_shape {
  const char *name, *help;
  struct cb_shape_key keys[CB_SHAPE_KEYS + 1]; /* ends with a NULL name */
  void (*size)(const struct cb_shape_args *args, int64_t *rows, int64_t *cols);

  /* Writes the columns of `row`, ascending, and returns how many there are; with `cols` NULL only counts. */
  int64_t (*row)(const struct cb_shape_args *args, int64_t row, int32_t *cols);

  /* For shapes without a row function: all entries at once; values are not needed, duplicates are dropped. */
  enum cb_status (*entries)(const struct cb_shape_args *args, struct cb_coo *coo, struct cb_diag *diag);

  double centre;     /* nonzero: values=ones gives this on the diagonal and -1 elsewhere */
  int zero_share_at; /* nonzero: this key is the share of values that are an explicit zero */
};

extern const struct cb_shape cb_shapes[]; /* ends with a NULL name */

/* A random number that depends on the seed and two counters only (finaliser of splitmix64, S. Vigna, after
 * G. Steele et al., "Fast splittable pseudorandom number generators", 2014). */
static inline uint64_t cb_mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

static inline uint64_t cb_random(uint64_t seed, uint64_t first, uint64_t second) {
  return cb_mix(cb_mix(seed + first * 0x9e3779b97f4a7c15) + second * 0xd1b54a32d192ed03);
}

static inline double cb_unit(uint64_t random) {
  return (double)(random >> 11) * 0x1p-53;
} /* in [0, 1) */

#endif
