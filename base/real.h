// SPDX-License-Identifier: Apache-2.0
/* Numbers of the stored types, as doubles: every f64, f32, f16 and bf16 is one, and small integers are.
 * Narrowing rounds to the nearest, ties to even, in one step; NaN stays NaN with the upper bits of its
 * payload, and infinity stays infinity. A finite number beyond the type's range becomes infinity:
 * cb_real_overflows tells.
 */
#ifndef CBGEN_BASE_REAL_H
#define CBGEN_BASE_REAL_H

#include "base/types.h"

/* Element i of an array of `type` (a float, i8 or i16), and storing one; an integer type must hold it
 * exactly. */
double cb_real_get(const void *array, enum cb_type type, int64_t i);
void cb_real_set(void *array, enum cb_type type, int64_t i, double value);

/* A double rounded to `type`. */
double cb_real_round(double value, enum cb_type type);

/* Whether `type` holds the number bit for bit: -0 is no integer, and NaN none either. */
int cb_real_fits(double value, enum cb_type type);

/* Whether a finite number has no finite counterpart in `type`. */
int cb_real_overflows(double value, enum cb_type type);

#endif
