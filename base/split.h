// SPDX-License-Identifier: Apache-2.0
/* Doubles in two parts (CB_SPLIT): a head, which is the nearest float, and what is missing to the number: the
 * difference of its bits and those of its head as a double, taken as integers. Both together are the number bit for
 * bit, with rounding into the next power of 2, too, as bits of doubles of one sign ascend like their sizes. A kernel
 * may read heads alone, which are half of the bytes.
 *
 * What there is: zeros of both signs, infinities, a NaN (whose payload is not kept), and all numbers whose head is a
 * normal float, from 2^-126 to about 3.4e38. Then the difference is at most 2^29. Others have no split form.
 *
 *   array = f32 head[n] i32 rest[n]                 n: a multiple of CB_SPLIT_WHOLE
 */
#ifndef CBGEN_BASE_SPLIT_H
#define CBGEN_BASE_SPLIT_H

#include <stdint.h>

enum { CB_SPLIT_WHOLE = 64 }; /* numbers: 256 bytes of heads, so that rests are aligned as arrays are */

struct cb_split_value {
  float head;
  int32_t rest;
};

/* Whether the number has a split form. */
int cb_split_holds(double value);

/* Its parts. A number without a split form becomes NaN, so that nothing that it reaches looks right. */
struct cb_split_value cb_split_of(double value);
double cb_split_join(struct cb_split_value parts);

/* Number i of an array of n. */
double cb_split_get(const void *array, int64_t n, int64_t i);
void cb_split_set(void *array, int64_t n, int64_t i, double value);

#endif
