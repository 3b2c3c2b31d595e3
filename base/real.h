// SPDX-License-Identifier: Apache-2.0
/* Numbers of the stored types, as doubles: every f64, f32, f16 and bf16 is one, and small integers are.
 * Narrowing rounds to the nearest, ties to even, in one step; NaN stays NaN with the upper bits of its
 * payload, and infinity stays infinity. A finite number beyond the type's range becomes infinity:
 * cb_real_overflows tells.
 */
#ifndef CBGEN_BASE_REAL_H
#define CBGEN_BASE_REAL_H

#include "base/types.h"

#include <string.h>

/* Element i of an array of `type` (a float that is not split, i8 or i16), and storing one; an integer type must hold it
 * exactly. Of complex elements the real part, and storing one with the imaginary part 0; what else stands here is of a
 * part. */
double cb_real_get(const void *array, enum cb_type type, int64_t i);
void cb_real_set(void *array, enum cb_type type, int64_t i, double value);

/* To the nearest float whatever the thread's rounding mode, and without raising an exception. */
float cb_real_to_float(double value);

/* A double rounded to `type`; split ones lose nothing. */
double cb_real_round(double value, enum cb_type type);

/* Whether `type` holds the number bit for bit: -0 is no integer, and NaN none either. */
int cb_real_fits(double value, enum cb_type type);

/* Whether it holds all of them: much faster than asking one by one. */
int cb_real_all_fit(const double *values, int64_t count, enum cb_type type);

/* Whether a finite number has no finite counterpart in `type`, or no split form. */
int cb_real_overflows(double value, enum cb_type type);

/* The shortest decimal that a reader who rounds correctly takes for `value`, a finite f64 or f32 (`type`: in which it
 * is read): "0.1", "-4.0", "1e+300". It has a point or an exponent, so that C++ takes it for no integer. Neither the
 * rounding mode nor a locale plays a part. */
enum { CB_REAL_TEXT = 32 };
void cb_real_text(char text[CB_REAL_TEXT], double value, enum cb_type type);

static inline uint64_t cb_real_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Infinity and NaN are no integers. */
static inline int cb_real_is_finite(double value) {
  const uint64_t exponent = UINT64_C(0x7ff) << 52; /* all ones: infinite or NaN */
  return (cb_real_bits(value) & exponent) != exponent;
}
static inline int cb_real_is_integer(double value) {
  if (value >= -0x1p52 && value <= 0x1p52) return (double)(int64_t)value == value;
  return cb_real_is_finite(value); /* larger ones have no bits for fractions */
}

#endif
