// SPDX-License-Identifier: Apache-2.0
/* Who has least: a binary heap, the least load first, of equal ones the least number. */
#ifndef CBGEN_ANALYSIS_LOADS_H
#define CBGEN_ANALYSIS_LOADS_H

#include <stdint.h>

struct cb_load {
  int64_t load, number;
};

static inline int cb_load_before(const struct cb_load *a, const struct cb_load *b) {
  return a->load != b->load ? a->load < b->load : a->number < b->number;
}

/* Moves what stands at `at` behind those below it that come before. */
static inline void cb_loads_settle(struct cb_load *heap, int64_t count, int64_t at) {
  const struct cb_load moved = heap[at];
  for (int64_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && cb_load_before(&heap[child + 1], &heap[child])) child++;
    if (!cb_load_before(&heap[child], &moved)) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

#endif
