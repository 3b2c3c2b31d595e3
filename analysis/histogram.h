// SPDX-License-Identifier: Apache-2.0
/* How many of a list of counts have each size: what is asked of their sorted list, without sorting it. */
#ifndef CBGEN_ANALYSIS_HISTOGRAM_H
#define CBGEN_ANALYSIS_HISTOGRAM_H

#include <stdint.h>

struct cb_histogram {
  int64_t largest;  /* of the counts; 0 without any */
  int64_t *of_size; /* [s], s <= largest: how many counts are s */
};

/* 0: no memory. Close it in any case. */
int cb_histogram_open(struct cb_histogram *histogram, const uint32_t *counts, int64_t count);
void cb_histogram_close(struct cb_histogram *histogram);

/* As few of the largest counts as add up to `wanted`, which all of them do: those above `size`, and `in_last` of those
 * that have this size. */
struct cb_fewest {
  int64_t all, size, in_last;
};
struct cb_fewest cb_histogram_fewest(const struct cb_histogram *histogram, int64_t wanted);

#endif
