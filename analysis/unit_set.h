// SPDX-License-Identifier: Apache-2.0
/* Sets of units: which columns, or groups of neighbouring columns, some rows have. One set is used for one group of
 * rows after the other, without clearing what it held.
 *
 *   struct cb_unit_set set;
 *   if (!cb_unit_set_init(&set, most)) …    most: more are never added between two resets
 *   cb_unit_set_reset(&set);
 *   for (…) cb_unit_set_add(&set, unit);    set.count: how many
 *   cb_unit_set_release(&set);              also after a failed init
 */
#ifndef CBGEN_ANALYSIS_UNIT_SET_H
#define CBGEN_ANALYSIS_UNIT_SET_H

#include <stdint.h>

struct cb_unit_set {
  uint64_t *table; /* epoch << 32 | unit; entries of earlier epochs are free */
  uint64_t mask, epoch;
  int64_t count;
};

/* 0: no memory. */
int cb_unit_set_init(struct cb_unit_set *set, int64_t most);
void cb_unit_set_release(struct cb_unit_set *set);

static inline void cb_unit_set_reset(struct cb_unit_set *set) {
  set->epoch++;
  set->count = 0;
}

static inline void cb_unit_set_add(struct cb_unit_set *set, uint32_t unit) {
  const uint64_t wanted = set->epoch << 32 | unit;
  uint64_t at = (unit * UINT64_C(0x9e3779b97f4a7c15) >> 32) & set->mask;
  while (set->table[at] >> 32 == set->epoch && set->table[at] != wanted) at = (at + 1) & set->mask;
  set->count += set->table[at] != wanted;
  set->table[at] = wanted;
}

#endif
