// SPDX-License-Identifier: Apache-2.0
/* Value maps: see values.h. */
#include "runtime/values.h"

#include "base/memory.h"

void cb_value_map_release(struct cb_value_map *map) {
  for (int i = 0; i < 3; i++) cb_free(map->owned[i]);
  *map = (struct cb_value_map){0};
}
