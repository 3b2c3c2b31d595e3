// SPDX-License-Identifier: Apache-2.0
/* Which of the caller's values goes into which slot. The map is made once for a pattern and serves every
 * renewal of the values: it composes the layouts' slot maps (slot → canonical nonzero) with the order in
 * which the caller gave the entries, transposition and duplicates included.
 *
 * Who moves values by it: cb_values_gather on the host, templates/device/pack.cu.in on the device (packer.h).
 * Both give the same bits.
 */
#ifndef CBGEN_RUNTIME_VALUES_H
#define CBGEN_RUNTIME_VALUES_H

#include "analysis/layout.h"
#include "base/status.h"
#include "base/types.h"
#include "runtime/matrix.h"

#include <stdint.h>

/* An entry of the map is the number of one of the caller's values; with the top bit set, the number of a list
 * of them, whose sum in that order belongs there; with all bits set, none: the slot's bytes stay as they are.
 */
struct cb_value_map {
  int64_t count; /* slots: region by region */
  int wide;      /* entries, starts and list entries are uint64_t, else uint32_t */
  const void *entries;
  int64_t lists;            /* how many */
  const void *list_starts;  /* lists + 1 places in list_entries; NULL without lists */
  const void *list_entries; /* numbers of values */
  void *owned[3];           /* blocks of cb_alloc behind them, or NULL */
};

static inline uint64_t cb_value_map_number(const struct cb_value_map *map, const void *numbers, int64_t i) {
  return map->wide ? ((const uint64_t *)numbers)[i] : ((const uint32_t *)numbers)[i];
}

/* Composes the slot maps of all regions with the order. Release the map in any case. */
enum cb_status cb_value_map_build(struct cb_value_map *map, const struct cb_slot_map *maps, int regions,
                                  const struct cb_order *order, int64_t nonzeros, struct cb_diag *diag);
void cb_value_map_release(struct cb_value_map *map);

/* Bytes of the entries; of the list starts and the list entries. */
int64_t cb_value_map_bytes(const struct cb_value_map *map);
int64_t cb_value_map_list_bytes(const struct cb_value_map *map);

/* Whether every entry names one of `values` values, and every list does, in order: for maps that come from
 * outside. */
int cb_value_map_is_sound(const struct cb_value_map *map, int64_t values);

/* Slots first … first + count - 1 of the map, from the view's values to `slots` (whose element 0 is slot
 * `first`), rounded to `stored`. Parallel. */
void cb_values_gather(const struct cb_value_map *map, int64_t first, int64_t count,
                      const struct cb_view *view, enum cb_type stored, void *slots);

#endif
