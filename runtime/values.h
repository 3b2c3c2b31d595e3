// SPDX-License-Identifier: Apache-2.0
/* Which of the caller's values goes into which slot. The map is made once for a pattern and serves every renewal
 * of the values: it composes the layouts' slot maps (slot → canonical nonzero) with the order in which the caller
 * gave the entries, transposition and duplicates included.
 */
#ifndef CBGEN_RUNTIME_VALUES_H
#define CBGEN_RUNTIME_VALUES_H

#include "base/status.h"
#include "base/types.h"

#include <stdint.h>

/* An entry of the map is the number of one of the caller's values; with the top bit set, the number of a list
 * of them, whose sum in that order belongs there; with all bits set, none: the slot's bytes stay as they are. */
struct cb_value_map {
  int64_t count; /* slots */
  int wide;      /* entries, starts and list entries are uint64_t, else uint32_t */
  const void *entries;
  int64_t lists;            /* how many */
  const void *list_starts;  /* lists + 1 places in list_entries */
  const void *list_entries; /* numbers of values */
  void *owned[3];           /* blocks of cb_alloc behind them, or NULL */
};

void cb_value_map_release(struct cb_value_map *map);

#endif
