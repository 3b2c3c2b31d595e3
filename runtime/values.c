// SPDX-License-Identifier: Apache-2.0
/* Value maps: see values.h. */
#include "runtime/values.h"

#include "base/integers.h"
#include "base/memory.h"
#include "base/real.h"
#include "runtime/value_frames.h"

void cb_value_map_release(struct cb_value_map *map) {
  for (int i = 0; i < 3; i++) cb_free(map->owned[i]);
  *map = (struct cb_value_map){0};
}

/* From a multiple of a line's length on, as loads like it. */
int64_t cb_value_map_frames_at(const struct cb_value_map *map) {
  enum { LINE = 128 };
  const int64_t end = map->groups_count * (int64_t)sizeof *map->groups;
  return cb_round_up(end, LINE);
}

int64_t cb_value_map_bytes(const struct cb_value_map *map) {
  return cb_value_map_frames_at(map) + map->frame_bytes;
}

int64_t cb_value_map_list_bytes(const struct cb_value_map *map) {
  if (!map->lists) return 0;
  return (map->lists + 1 + (int64_t)map->list_starts[map->lists]) * (int64_t)sizeof *map->list_starts;
}

/* ---- building */

/* The nonzeros that are sums, ascending, and their entries behind each other. */
struct lists {
  int64_t count, entries;
  int64_t *nonzeros;
  uint64_t *starts, *numbers;
};

static int64_t length_of(const struct cb_order *order, int64_t k) {
  return (int64_t)(cb_order_get(order, order->starts, k + 1) - cb_order_get(order, order->starts, k));
}

static enum cb_status make_lists(struct lists *lists, const struct cb_order *order, int64_t nonzeros,
                                 struct cb_diag *diag) {
  *lists = (struct lists){0};
  for (int64_t k = 0; order->starts && k < nonzeros; k++) {
    const int64_t length = length_of(order, k);
    lists->count += length > 1;
    lists->entries += length > 1 ? length : 0;
  }
  if (!lists->count) return CB_OK;
  lists->nonzeros = cb_alloc((size_t)lists->count, sizeof *lists->nonzeros);
  lists->starts = cb_alloc((size_t)lists->count + 1, sizeof *lists->starts);
  lists->numbers = cb_alloc((size_t)lists->entries, sizeof *lists->numbers);
  if (!lists->nonzeros || !lists->starts || !lists->numbers)
    return cb_fail_memory(diag, "lists of duplicates", (unsigned long long)lists->entries * 8);
  int64_t list = 0, at = 0;
  for (int64_t k = 0; k < nonzeros; k++) {
    const int64_t length = length_of(order, k), first = (int64_t)cb_order_get(order, order->starts, k);
    if (length < 2) continue;
    lists->nonzeros[list] = k;
    lists->starts[list++] = (uint64_t)at;
    for (int64_t i = 0; i < length; i++)
      lists->numbers[at++] = cb_order_get(order, order->entries, first + i);
  }
  lists->starts[list] = (uint64_t)at;
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

struct composition {
  const struct cb_slot_map *maps;
  int regions;
  const struct cb_order *order;
  struct lists lists;
  int64_t values;
};

/* What stands in the map for a slot with nonzero `k`. */
static uint64_t entry_of(const struct composition *composition, uint64_t k) {
  const struct cb_order *order = composition->order;
  if (k == CB_NO_NONZERO) return CB_NO_ENTRY;
  if (!order->entries) return k;
  if (!order->starts) return cb_order_get(order, order->entries, (int64_t)k);
  if (length_of(order, (int64_t)k) > 1)
    return (uint64_t)(composition->values + find_list(&composition->lists, (int64_t)k));
  return cb_order_get(order, order->entries, (int64_t)cb_order_get(order, order->starts, (int64_t)k));
}

static void fill_group(const void *user, int64_t group, uint64_t entries[CB_GROUP_SLOTS]) {
  const struct composition *composition = user;
  const struct cb_slot_map *map = composition->maps;
  for (; group >= cb_groups_of(map->count); map++) group -= cb_groups_of(map->count);
  const int64_t first = group * CB_GROUP_SLOTS, left = map->count - first;
  for (int i = 0; i < CB_GROUP_SLOTS; i++)
    entries[i] = i < left ? entry_of(composition, cb_slot_get(map, first + i)) : CB_NO_ENTRY;
}

enum cb_status cb_value_map_build(struct cb_value_map *map, const struct cb_slot_map *maps, int regions,
                                  const struct cb_order *order, int64_t nonzeros, int64_t values,
                                  struct cb_diag *diag) {
  struct composition composition = {.maps = maps, .regions = regions, .order = order, .values = values};
  struct lists *lists = &composition.lists;
  int64_t groups = 0;
  *map = (struct cb_value_map){.values = values};
  enum cb_status s = make_lists(lists, order, nonzeros, diag);
  for (int i = 0; i < regions; i++) groups += cb_groups_of(maps[i].count);
  if (!s) s = cb_value_frames_build(map, groups, fill_group, &composition, diag);
  map->list_starts = map->owned[1] = lists->starts;
  map->list_entries = map->owned[2] = lists->numbers;
  map->lists = s ? 0 : lists->count;
  cb_free(lists->nonzeros);
  return s;
}

/* ---- reading */

void cb_value_map_entries(const struct cb_value_map *map, const struct cb_value_group *group,
                          uint64_t entries[CB_GROUP_SLOTS]) {
  const unsigned char *frame = map->frames + (int64_t)(group->frame >> 2) * CB_FRAME_UNIT;
  switch (group->frame & 3) {
  case 0:
    for (int i = 0; i < CB_GROUP_SLOTS; i++) entries[i] = group->base + frame[i];
    break;
  case 1:
    for (int i = 0; i < CB_GROUP_SLOTS; i++) entries[i] = group->base + ((const uint16_t *)(const void *)frame)[i];
    break;
  case 2:
    for (int i = 0; i < CB_GROUP_SLOTS; i++) entries[i] = group->base + ((const uint32_t *)(const void *)frame)[i];
    break;
  default:
    for (int i = 0; i < CB_GROUP_SLOTS; i++) entries[i] = group->base + ((const uint64_t *)(const void *)frame)[i];
    break;
  }
}

/* ---- maps from outside */

static int lists_are_sound(const struct cb_value_map *map) {
  uint64_t previous = 0;
  if (!map->lists) return 1;
  if (map->list_starts[0]) return 0;
  for (int64_t i = 1; i <= map->lists; i++) {
    const uint64_t start = map->list_starts[i];
    if (start < previous || start - previous < 2) return 0;
    previous = start;
  }
  for (int64_t i = 0; i < (int64_t)previous; i++)
    if (map->list_entries[i] >= (uint64_t)map->values) return 0;
  return 1;
}

static int group_is_sound(const struct cb_value_map *map, const struct cb_value_group *group) {
  const int64_t end = (int64_t)(group->frame >> 2) * CB_FRAME_UNIT + ((int64_t)CB_GROUP_SLOTS << (group->frame & 3));
  uint64_t entries[CB_GROUP_SLOTS];
  if (end > map->frame_bytes) return 0;
  cb_value_map_entries(map, group, entries);
  for (int i = 0; i < CB_GROUP_SLOTS; i++)
    if (group->present >> i & 1 && entries[i] >= (uint64_t)(map->values + map->lists)) return 0;
  return 1;
}

int cb_value_map_is_sound(const struct cb_value_map *map) {
  int sound = lists_are_sound(map);
#pragma omp parallel for schedule(static) reduction(& : sound)
  for (int64_t i = 0; i < map->groups_count; i++) sound &= group_is_sound(map, &map->groups[i]);
  return sound;
}

/* ---- gathering */

static double sum_of(const struct cb_value_map *map, const struct cb_view *view, int64_t list) {
  const int64_t first = (int64_t)map->list_starts[list], end = (int64_t)map->list_starts[list + 1];
  double sum = 0;
  for (int64_t i = first; i < end; i++) {
    const double value = cb_view_value(view, (int64_t)map->list_entries[i]);
    sum = i == first ? value : sum + value;
  }
  return sum;
}

/* One slot, whatever the types. Whether a finite value was lost. */
static int gather_one(const struct cb_value_map *map, uint64_t entry, const struct cb_view *view,
                      enum cb_type stored, void *slots, int64_t slot) {
  const double value = entry < (uint64_t)map->values ? cb_view_value(view, (int64_t)entry)
                                                     : sum_of(map, view, (int64_t)entry - map->values);
  cb_real_set(slots, stored, slot, value);
  return stored != CB_F64 && cb_real_overflows(value, stored);
}

static int gather_group(const struct cb_value_map *map, const struct cb_value_group *group,
                        const struct cb_view *view, enum cb_type stored, void *slots, int64_t first) {
  uint64_t entries[CB_GROUP_SLOTS];
  int lost = 0;
  cb_value_map_entries(map, group, entries);
  for (int i = 0; i < CB_GROUP_SLOTS; i++)
    if (group->present >> i & 1) lost |= gather_one(map, entries[i], view, stored, slots, first + i);
  return lost;
}

enum cb_status cb_fail_range(enum cb_type stored, struct cb_diag *diag) {
  return cb_fail(diag, CB_ERR_LIMIT, "a value is beyond the range of %s; choose another 'type'",
                 cb_type_short(stored));
}

/* The usual case, values of the stored type and no lists: bits are copied. */
#define DEFINE_COPY(element)                                                                                 \
  static void copy_##element(const struct cb_value_map *map, const struct cb_value_group *group,             \
                             const element *values, element *slots) {                                        \
    uint64_t entries[CB_GROUP_SLOTS];                                                                        \
    cb_value_map_entries(map, group, entries);                                                               \
    for (int i = 0; i < CB_GROUP_SLOTS; i++)                                                                 \
      if (group->present >> i & 1) slots[i] = values[entries[i]];                                            \
  }
DEFINE_COPY(uint64_t)
DEFINE_COPY(uint32_t)
DEFINE_COPY(uint16_t)
#undef DEFINE_COPY

enum cb_status cb_values_gather(const struct cb_value_map *map, int64_t first, int64_t count,
                                const struct cb_view *view, enum cb_type stored, void *slots,
                                struct cb_diag *diag) {
  const int plain = !map->lists && view->values && view->value_type == stored;
  const struct cb_value_group *groups = map->groups + first;
  int lost = 0;
#pragma omp parallel for schedule(static) reduction(| : lost)
  for (int64_t g = 0; g < cb_groups_of(count); g++) {
    const int64_t slot = g * CB_GROUP_SLOTS;
    if (!groups[g].present) continue;
    if (!plain)
      lost |= gather_group(map, &groups[g], view, stored, slots, slot);
    else if (stored == CB_F64)
      copy_uint64_t(map, &groups[g], view->values, (uint64_t *)slots + slot);
    else if (stored == CB_F32)
      copy_uint32_t(map, &groups[g], view->values, (uint32_t *)slots + slot);
    else
      copy_uint16_t(map, &groups[g], view->values, (uint16_t *)slots + slot);
  }
  return lost ? cb_fail_range(stored, diag) : CB_OK;
}
