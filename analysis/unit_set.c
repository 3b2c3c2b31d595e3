// SPDX-License-Identifier: Apache-2.0
/* Sets of units in an open hash table, at most half full: see unit_set.h. */
#include "analysis/unit_set.h"

#include "base/memory.h"

int cb_unit_set_init(struct cb_unit_set *set, int64_t most) {
  uint64_t size = 1024;
  while (size < 2 * (uint64_t)most) size *= 2;
  *set = (struct cb_unit_set){.mask = size - 1};
  set->table = cb_calloc(size, sizeof *set->table);
  return set->table != NULL;
}

void cb_unit_set_release(struct cb_unit_set *set) { cb_free(set->table); }
