// SPDX-License-Identifier: Apache-2.0
/* A small hash set of bit patterns: see distinct.h. */
#include "analysis/distinct.h"

#include "base/real.h"

enum { TOO_MANY = CB_DISTINCT_MOST + 1 };

static void add(struct cb_distinct *set, uint64_t bits) {
  unsigned slot = (unsigned)((bits * 0x9e3779b97f4a7c15) >> 54);
  while (set->used[slot] && set->bits[slot] != bits) slot = (slot + 1) % CB_DISTINCT_SLOTS;
  if (set->used[slot]) return;
  set->used[slot] = 1;
  set->bits[slot] = bits;
  set->count++;
}

void cb_distinct_add(struct cb_distinct *set, const double *values, int64_t count) {
  if (count <= 0) return;
  uint64_t previous = ~cb_real_bits(values[0]);
  for (int64_t i = 0; i < count && set->count < TOO_MANY; i++) {
    const uint64_t bits = cb_real_bits(values[i]);
    if (bits != previous) add(set, bits);
    previous = bits;
  }
}

void cb_distinct_unite(struct cb_distinct *set, const struct cb_distinct *other) {
  for (int slot = 0; slot < CB_DISTINCT_SLOTS && set->count < TOO_MANY; slot++)
    if (other->used[slot]) add(set, other->bits[slot]);
}
