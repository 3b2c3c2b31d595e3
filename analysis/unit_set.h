// SPDX-License-Identifier: Apache-2.0
/* Sets of units: which columns, or groups of neighbouring columns, some rows have, and where each lies in
 * their ascending list. One set is used for one panel of rows after the other, without clearing what it held.
 *
 *   struct cb_unit_set set;
 *   if (!cb_unit_set_init(&set, most)) …                       most: more are never added between two resets
 *   cb_unit_set_reset(&set);
 *   for (…) cb_unit_set_add(&set, unit);                       set.count, set.units in the order of the first
 * adds cb_unit_set_number(&set);                                  now ascending … cb_unit_set_place(&set,
 * unit)                            set.units[place] == unit; the unit was added cb_unit_set_release(&set);
 * also after a failed init
 */
#ifndef CBGEN_ANALYSIS_UNIT_SET_H
#define CBGEN_ANALYSIS_UNIT_SET_H

#include <stdint.h>

struct cb_unit_set {
  uint64_t *table; /* epoch << 32 | unit; entries of earlier epochs are free */
  uint32_t *place; /* beside each entry */
  uint64_t mask, epoch;
  uint32_t *units, *spare;
  int64_t count;
};

/* 0: no memory. */
int cb_unit_set_init(struct cb_unit_set *set, int64_t most);
void cb_unit_set_release(struct cb_unit_set *set);
void cb_unit_set_number(struct cb_unit_set *set);

/* Sorts; *spare is as long, and may change places with *units. */
void cb_units_sort(uint32_t **units, uint32_t **spare, int64_t count);

static inline void cb_unit_set_reset(struct cb_unit_set *set) {
  set->epoch++;
  set->count = 0;
}

/* Where the unit is in the table, or would be. */
static inline uint64_t cb_unit_set_find(const struct cb_unit_set *set, uint32_t unit) {
  const uint64_t wanted = set->epoch << 32 | unit;
  uint64_t at = (unit * UINT64_C(0x9e3779b97f4a7c15) >> 32) & set->mask;
  while (set->table[at] >> 32 == set->epoch && set->table[at] != wanted) at = (at + 1) & set->mask;
  return at;
}

static inline void cb_unit_set_add(struct cb_unit_set *set, uint32_t unit) {
  const uint64_t at = cb_unit_set_find(set, unit);
  if (set->table[at] >> 32 == set->epoch) return;
  set->table[at] = set->epoch << 32 | unit;
  set->units[set->count++] = unit;
}

static inline uint32_t cb_unit_set_place(const struct cb_unit_set *set, uint32_t unit) {
  return set->place[cb_unit_set_find(set, unit)];
}

#endif
