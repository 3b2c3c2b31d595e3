// SPDX-License-Identifier: Apache-2.0
/* Sets of units in an open hash table, at most half full: see unit_set.h. */
#include "analysis/unit_set.h"

#include "base/memory.h"

int cb_unit_set_init(struct cb_unit_set *set, int64_t most) {
  uint64_t size = 1024;
  const size_t units = (size_t)most;
  while (size < 2 * units) size *= 2;
  *set = (struct cb_unit_set){.mask = size - 1};
  set->table = cb_calloc(size, sizeof *set->table);
  set->place = cb_alloc(size, sizeof *set->place);
  set->units = cb_alloc(units, sizeof *set->units);
  set->spare = cb_alloc(units, sizeof *set->spare);
  return set->table && set->place && set->units && set->spare;
}

void cb_unit_set_release(struct cb_unit_set *set) {
  cb_free(set->table);
  cb_free(set->place);
  cb_free(set->units);
  cb_free(set->spare);
}

/* Byte by byte from the lowest; only bytes in which the units differ. */
void cb_units_sort(uint32_t **units, uint32_t **spare, int64_t count) {
  uint32_t differ = 0;
  for (int64_t i = 1; i < count; i++) differ |= (*units)[i] ^ (*units)[0];
  for (int shift = 0; shift < 32; shift += 8) {
    int64_t start[257] = {0};
    if (!(differ >> shift & 255)) continue;
    for (int64_t i = 0; i < count; i++) start[((*units)[i] >> shift & 255) + 1]++;
    for (int key = 1; key <= 256; key++) start[key] += start[key - 1];
    for (int64_t i = 0; i < count; i++) (*spare)[start[(*units)[i] >> shift & 255]++] = (*units)[i];
    uint32_t *const sorted = *spare;
    *spare = *units;
    *units = sorted;
  }
}

void cb_unit_set_number(struct cb_unit_set *set) {
  cb_units_sort(&set->units, &set->spare, set->count);
  for (int64_t i = 0; i < set->count; i++) set->place[cb_unit_set_find(set, set->units[i])] = (uint32_t)i;
}
