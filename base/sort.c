// SPDX-License-Identifier: Apache-2.0
/* American flag sort (P. McIlroy, K. Bostic, M. D. McIlroy, "Engineering radix sort", 1993): see sort.h. */
#include "base/sort.h"

#include <string.h>

enum { RADIX_BITS = 8, RADIX = 1 << RADIX_BITS, FEW_KEYS = 48 };

static void insert_sort(uint32_t *keys, int64_t count) {
  for (int64_t i = 1; i < count; i++) {
    const uint32_t key = keys[i];
    int64_t j = i;
    for (; j > 0 && keys[j - 1] > key; j--) keys[j] = keys[j - 1];
    keys[j] = key;
  }
}

/* Brings keys with equal bits shift … shift + 7 together, in order of these bits; bucket b begins at
 * begin[b]. */
static void distribute(uint32_t *keys, int64_t count, int shift, int64_t begin[RADIX + 1]) {
  int64_t next[RADIX];
  memset(begin, 0, (RADIX + 1) * sizeof *begin);
  for (int64_t i = 0; i < count; i++) begin[(keys[i] >> shift & (RADIX - 1)) + 1]++;
  for (int b = 0; b < RADIX; b++) begin[b + 1] += begin[b];
  memcpy(next, begin, sizeof next);
  for (int b = 0; b < RADIX; b++) {
    while (next[b] < begin[b + 1]) {
      uint32_t key = keys[next[b]];
      for (unsigned to; (to = key >> shift & (RADIX - 1)) != (unsigned)b;) {
        const uint32_t evicted = keys[next[to]];
        keys[next[to]++] = key;
        key = evicted;
      }
      keys[next[b]++] = key;
    }
  }
}

/* Sorts keys that are equal but for their lowest `bits` bits. */
static void sort_bits(uint32_t *keys, int64_t count, int bits) {
  if (count <= FEW_KEYS) insert_sort(keys, count);
  if (count <= FEW_KEYS || !bits) return;
  const int shift = bits > RADIX_BITS ? bits - RADIX_BITS : 0;
  int64_t begin[RADIX + 1];
  distribute(keys, count, shift, begin);
  for (int b = 0; b < RADIX; b++) sort_bits(keys + begin[b], begin[b + 1] - begin[b], shift);
}

void cb_sort_keys(uint32_t *keys, int64_t count) {
  uint32_t all = 0;
  if (count <= FEW_KEYS) {
    insert_sort(keys, count);
    return;
  }
  for (int64_t i = 0; i < count; i++) all |= keys[i];
  const int bits = all ? 32 - __builtin_clz(all) : 0, shift = bits > RADIX_BITS ? bits - RADIX_BITS : 0;
  int64_t begin[RADIX + 1];
  distribute(keys, count, shift, begin);
#pragma omp parallel for schedule(dynamic, 1)
  for (int b = 0; b < RADIX; b++) sort_bits(keys + begin[b], begin[b + 1] - begin[b], shift);
}
