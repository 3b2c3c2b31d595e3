// SPDX-License-Identifier: Apache-2.0
/* Value maps: see values.h. */
#include "runtime/values.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static uint64_t number_at(const void *numbers, int wide, int64_t i) {
  return wide ? ((const uint64_t *)numbers)[i] : ((const uint32_t *)numbers)[i];
}

static void set_number(void *numbers, int wide, int64_t i, uint64_t number) {
  if (wide)
    ((uint64_t *)numbers)[i] = number;
  else
    ((uint32_t *)numbers)[i] = (uint32_t)number;
}

static uint64_t list_flag(int wide) {
  return wide ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
}

static uint64_t no_entry(int wide) {
  return wide ? UINT64_MAX : UINT32_MAX;
}

void cb_value_map_release(struct cb_value_map *map) {
  for (int i = 0; i < 3; i++) cb_free(map->owned[i]);
  *map = (struct cb_value_map){0};
}

int64_t cb_value_map_bytes(const struct cb_value_map *map) {
  return map->count * (map->wide ? 8 : 4);
}

int64_t cb_value_map_list_bytes(const struct cb_value_map *map) {
  if (!map->lists) return 0;
  const int64_t entries = (int64_t)number_at(map->list_starts, map->wide, map->lists);
  return (map->lists + 1 + entries) * (map->wide ? 8 : 4);
}

/* ---- building */

/* The nonzeros that are sums, ascending, and their entries behind each other. */
struct lists {
  int64_t count, entries;
  int64_t *nonzeros;
  void *starts, *numbers;
};

static int64_t length_of(const struct cb_order *order, int64_t k) {
  return (int64_t)(cb_order_get(order, order->starts, k + 1) - cb_order_get(order, order->starts, k));
}

static enum cb_status make_lists(struct lists *lists, const struct cb_order *order, int64_t nonzeros,
                                 struct cb_diag *diag) {
  const size_t width = order->wide ? 8 : 4;
  *lists = (struct lists){0};
  for (int64_t k = 0; order->starts && k < nonzeros; k++) {
    const int64_t length = length_of(order, k);
    lists->count += length > 1;
    lists->entries += length > 1 ? length : 0;
  }
  if (!lists->count) return CB_OK;
  lists->nonzeros = cb_alloc((size_t)lists->count, sizeof *lists->nonzeros);
  lists->starts = cb_alloc((size_t)lists->count + 1, width);
  lists->numbers = cb_alloc((size_t)lists->entries, width);
  if (!lists->nonzeros || !lists->starts || !lists->numbers)
    return cb_fail_memory(diag, "lists of duplicates", (unsigned long long)lists->entries * width);
  int64_t list = 0, at = 0;
  for (int64_t k = 0; k < nonzeros; k++) {
    const int64_t length = length_of(order, k), first = (int64_t)cb_order_get(order, order->starts, k);
    if (length < 2) continue;
    lists->nonzeros[list] = k;
    set_number(lists->starts, order->wide, list++, (uint64_t)at);
    for (int64_t i = 0; i < length; i++)
      set_number(lists->numbers, order->wide, at++, cb_order_get(order, order->entries, first + i));
  }
  set_number(lists->starts, order->wide, list, (uint64_t)at);
  return CB_OK;
}

/* The number of the list of nonzero `k`, which has one. */
static int64_t find_list(const struct lists *lists, int64_t k) {
  int64_t low = 0, high = lists->count - 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (lists->nonzeros[middle] < k)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* What stands in the map for a slot with nonzero `k`. */
static uint64_t entry_of(const struct cb_order *order, const struct lists *lists, uint64_t k) {
  if (k == CB_NO_NONZERO) return no_entry(order->wide);
  if (!order->entries) return k;
  if (!order->starts) return cb_order_get(order, order->entries, (int64_t)k);
  if (length_of(order, (int64_t)k) > 1)
    return list_flag(order->wide) | (uint64_t)find_list(lists, (int64_t)k);
  return cb_order_get(order, order->entries, (int64_t)cb_order_get(order, order->starts, (int64_t)k));
}

static void compose(void *entries, int64_t first, const struct cb_slot_map *slots,
                    const struct cb_order *order, const struct lists *lists) {
#pragma omp parallel for schedule(static)
  for (int64_t slot = 0; slot < slots->count; slot++)
    set_number(entries, order->wide, first + slot, entry_of(order, lists, cb_slot_get(slots, slot)));
}

enum cb_status cb_value_map_build(struct cb_value_map *map, const struct cb_slot_map *maps, int regions,
                                  const struct cb_order *order, int64_t nonzeros, struct cb_diag *diag) {
  struct lists lists;
  *map = (struct cb_value_map){.wide = order->wide};
  enum cb_status s = make_lists(&lists, order, nonzeros, diag);
  for (int i = 0; i < regions; i++) map->count += maps[i].count;
  void *entries = s ? NULL : cb_alloc((size_t)map->count, map->wide ? 8 : 4);
  if (!s && !entries) s = cb_fail_memory(diag, "a value map", (unsigned long long)cb_value_map_bytes(map));
  int64_t first = 0;
  for (int i = 0; i < regions && !s; i++) {
    compose(entries, first, &maps[i], order, &lists);
    first += maps[i].count;
  }
  map->entries = map->owned[0] = entries;
  map->list_starts = map->owned[1] = lists.starts;
  map->list_entries = map->owned[2] = lists.numbers;
  map->lists = s ? 0 : lists.count;
  cb_free(lists.nonzeros);
  return s;
}

/* ---- maps from outside */

static int lists_are_sound(const struct cb_value_map *map, int64_t values) {
  uint64_t previous = 0;
  if (!map->lists) return 1;
  if (number_at(map->list_starts, map->wide, 0)) return 0;
  for (int64_t i = 1; i <= map->lists; i++) {
    const uint64_t start = number_at(map->list_starts, map->wide, i);
    if (start < previous || start - previous < 2) return 0;
    previous = start;
  }
  for (int64_t i = 0; i < (int64_t)previous; i++)
    if (number_at(map->list_entries, map->wide, i) >= (uint64_t)values) return 0;
  return 1;
}

int cb_value_map_is_sound(const struct cb_value_map *map, int64_t values) {
  const uint64_t flag = list_flag(map->wide), none = no_entry(map->wide);
  int sound = lists_are_sound(map, values);
#pragma omp parallel for schedule(static) reduction(& : sound)
  for (int64_t i = 0; i < map->count; i++) {
    const uint64_t entry = number_at(map->entries, map->wide, i);
    const uint64_t limit = entry & flag ? (uint64_t)map->lists : (uint64_t)values;
    sound &= entry == none || (entry & ~flag) < limit;
  }
  return sound;
}

/* ---- gathering */

static double sum_of(const struct cb_value_map *map, const struct cb_view *view, int64_t list) {
  const int64_t first = (int64_t)number_at(map->list_starts, map->wide, list);
  const int64_t end = (int64_t)number_at(map->list_starts, map->wide, list + 1);
  double sum = 0;
  for (int64_t i = first; i < end; i++) {
    const double value = cb_view_value(view, (int64_t)number_at(map->list_entries, map->wide, i));
    sum = i == first ? value : sum + value;
  }
  return sum;
}

static void store(void *slots, enum cb_type stored, int64_t slot, double value) {
  if (stored == CB_F32)
    ((float *)slots)[slot] = (float)value;
  else
    ((double *)slots)[slot] = value;
}

/* One slot, whatever the types. */
static void gather_one(const struct cb_value_map *map, uint64_t entry, const struct cb_view *view,
                       enum cb_type stored, void *slots, int64_t slot) {
  const uint64_t flag = list_flag(map->wide);
  if (entry == no_entry(map->wide)) return;
  store(slots, stored, slot,
        entry & flag ? sum_of(map, view, (int64_t)(entry & ~flag)) : cb_view_value(view, (int64_t)entry));
}

/* The usual case, values of the stored type and no lists: bits are copied. */
#define DEFINE_COPY(element, number)                                                                         \
  static void copy_##element##_##number(const number *entries, int64_t count, const element *values,         \
                                        element *slots) {                                                    \
    _Pragma("omp parallel for schedule(static)") for (int64_t slot = 0; slot < count;                        \
                                                      slot++) if (entries[slot] != (number)-1) slots[slot] = \
        values[entries[slot]];                                                                               \
  }
DEFINE_COPY(uint64_t, uint32_t)
DEFINE_COPY(uint32_t, uint32_t)
DEFINE_COPY(uint16_t, uint32_t)
#undef DEFINE_COPY

void cb_values_gather(const struct cb_value_map *map, int64_t first, int64_t count,
                      const struct cb_view *view, enum cb_type stored, void *slots) {
  const uint32_t *narrow = map->wide ? NULL : (const uint32_t *)map->entries + first;
  const int plain = narrow && !map->lists && view->values && view->value_type == stored;
  if (plain && stored == CB_F64) {
    copy_uint64_t_uint32_t(narrow, count, view->values, slots);
  } else if (plain && stored == CB_F32) {
    copy_uint32_t_uint32_t(narrow, count, view->values, slots);
  } else if (plain) {
    copy_uint16_t_uint32_t(narrow, count, view->values, slots);
  } else {
#pragma omp parallel for schedule(static)
    for (int64_t slot = 0; slot < count; slot++)
      gather_one(map, number_at(map->entries, map->wide, first + slot), view, stored, slots, slot);
  }
}
