// SPDX-License-Identifier: Apache-2.0
/* Value maps: see values.h. */
#include "runtime/operator/values.h"

#include "base/integers.h"
#include "base/memory.h"
#include "base/real.h"
#include "base/split.h"
#include "runtime/operator/value_encode.h"

enum { ENTRY_BITS = 46 }; /* of numbers of values: with lists one more, and references have a sign */

void cb_value_map_release(struct cb_value_map *map) {
  for (int i = 0; i < 3; i++) cb_free(map->owned[i]);
  *map = (struct cb_value_map){0};
}

/* From a multiple of a line's length on, as loads like it. */
int64_t cb_value_map_body_at(const struct cb_value_map *map) {
  enum { LINE = 128 };
  return cb_round_up(map->blocks_count * (int64_t)sizeof *map->blocks, LINE);
}

int64_t cb_value_map_bytes(const struct cb_value_map *map) {
  return cb_value_map_body_at(map) + map->body_bytes;
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

enum cb_status cb_value_map_build(struct cb_value_map *map, struct cb_value_range *ranges,
                                  const struct cb_slot_map *maps, int regions, const struct cb_order *order,
                                  int64_t nonzeros, int64_t values, struct cb_diag *diag) {
  struct composition composition = {.maps = maps, .regions = regions, .order = order, .values = values};
  const struct cb_group_source source = {fill_group, &composition, values};
  struct lists *lists = &composition.lists;
  *map = (struct cb_value_map){.values = values};
  for (int r = 0; r < regions; r++) ranges[r] = (struct cb_value_range){.slots = maps[r].count};
  if (values >> ENTRY_BITS)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld values are too many for a value map", (long long)values);
  enum cb_status s = make_lists(lists, order, nonzeros, diag);
  if (!s) s = cb_map_blocks_build(map, ranges, regions, &source, diag);
  map->list_starts = map->owned[1] = lists->starts;
  map->list_entries = map->owned[2] = lists->numbers;
  map->lists = s ? 0 : lists->count;
  cb_free(lists->nonzeros);
  return s;
}

/* ---- reading */

/* Adds numbers to sums: deltas, or (`step` 16) the residuals of one group, which begin at `first`. */
static void add_numbers(uint32_t sums[CB_GROUP_SLOTS], const unsigned char *bytes, int code, int first, int step) {
#define ADD(type)                                                                                                      \
  for (int i = 0; i < CB_GROUP_SLOTS; i++) sums[i] += ((const type *)(const void *)bytes)[first + i % 8 * step + i / 8]
  if (code == 1) ADD(uint8_t);
  if (code == 2) ADD(uint16_t);
  if (code == 3) ADD(uint32_t);
#undef ADD
}

/* Adds to each slot how many slots before it the groups have, all together. */
static void add_prefix_counts(uint32_t sums[CB_GROUP_SLOTS], const struct cb_map_block *block) {
  uint32_t before = 0;
  for (int i = 0; i < CB_GROUP_SLOTS; i++) {
    sums[i] += before;
    for (int m = 0; m < CB_BLOCK_GROUPS; m++) before += block->present[m] >> i & 1;
  }
}

void cb_value_map_entries(const struct cb_value_map *map, const struct cb_map_block *block, int member,
                          uint64_t entries[CB_GROUP_SLOTS]) {
  const uint32_t control = block->control;
  const int delta_code = control >> CB_DELTA_SHIFT & 7, residual_code = control >> CB_RESIDUAL_SHIFT & 3;
  const unsigned char *deltas = map->body + (int64_t)block->deltas * CB_MAP_UNIT,
                      *residuals = map->body + (int64_t)block->residuals * CB_MAP_UNIT;
  uint32_t sums[CB_GROUP_SLOTS];
  for (int i = 0; i < CB_GROUP_SLOTS; i++) sums[i] = block->offset[member];
  add_numbers(sums, deltas, delta_code, 0, 4);
  add_numbers(sums, residuals, residual_code, 4 * member, 16);
  if (delta_code == CB_PREFIX_COUNTS) add_prefix_counts(sums, block);
  for (int m = 0; m < member && control >> CB_COUNTED_SHIFT & 1; m++)
    for (int i = 0; i < CB_GROUP_SLOTS; i++) sums[i] += block->present[m] >> i & 1;
  for (int i = 0; i < CB_GROUP_SLOTS; i++) entries[i] = cb_map_reference(block) + sums[i];
  for (int i = 0; i < CB_GROUP_SLOTS && delta_code == CB_WIDE_DELTAS; i++)
    entries[i] += ((const uint64_t *)(const void *)deltas)[i % 8 * 4 + i / 8];
}

/* ---- maps from outside */

int cb_value_lists_are_sound(const struct cb_value_map *map) {
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

/* Whether numbers of this code, for `groups` groups, are in the body. */
static int numbers_are_there(const struct cb_value_map *map, uint32_t place, int code, int groups) {
  const int64_t bytes = code ? (int64_t)groups * CB_GROUP_SLOTS << (code - 1) : 0;
  return !code || (int64_t)place * CB_MAP_UNIT + bytes <= map->body_bytes;
}

static int member_is_sound(const struct cb_value_map *map, const struct cb_value_range *range,
                           const struct cb_map_block *block, int number) {
  const uint32_t present = block->present[number];
  const int64_t group = (int64_t)block->group[number] - range->first_group,
                slots = range->slots - group * CB_GROUP_SLOTS;
  uint64_t entries[CB_GROUP_SLOTS];
  if (block->group[number] == CB_NO_GROUP) return !present;
  if (group < 0 || slots < 1 || (slots < CB_GROUP_SLOTS && present >> slots)) return 0;
  const int64_t most = map->values + (block->control >> CB_SUMS_SHIFT & 1 ? map->lists : 0);
  cb_value_map_entries(map, block, number, entries);
  for (int i = 0; i < CB_GROUP_SLOTS; i++)
    if (present >> i & 1 && entries[i] >= (uint64_t)most) return 0;
  return 1;
}

static int block_is_sound(const struct cb_value_map *map, const struct cb_value_range *range,
                          const struct cb_map_block *block) {
  const uint32_t control = block->control;
  const int delta_code = control >> CB_DELTA_SHIFT & 7, residual_code = control >> CB_RESIDUAL_SHIFT & 3;
  int sound = delta_code < CB_DELTA_CODES &&
              numbers_are_there(map, block->deltas, delta_code == CB_PREFIX_COUNTS ? 0 : delta_code, 1) &&
              numbers_are_there(map, block->residuals, residual_code, CB_BLOCK_GROUPS);
  for (int m = 0; m < CB_BLOCK_GROUPS && sound; m++) sound = member_is_sound(map, range, block, m);
  return sound;
}

int cb_value_map_is_sound(const struct cb_value_map *map, const struct cb_value_range *range) {
  const struct cb_map_block *blocks = map->blocks + range->first_block;
  int sound = 1;
#pragma omp parallel for schedule(static) reduction(& : sound)
  for (int64_t b = 0; b < range->blocks; b++) sound &= block_is_sound(map, range, &blocks[b]);
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

/* The same of one part of complex values. */
static double sum_of_part(const struct cb_value_map *map, const struct cb_view *view, int64_t list, int part) {
  double sum = -0.0;
  for (int64_t i = (int64_t)map->list_starts[list]; i < (int64_t)map->list_starts[list + 1]; i++)
    sum += cb_view_part(view, (int64_t)map->list_entries[i], part);
  return sum;
}

static int gather_complex(const struct cb_value_map *map, uint64_t entry, const struct cb_view *view,
                          enum cb_type stored, void *slots, int64_t slot) {
  const enum cb_type type = cb_type_of_part(stored);
  int lost = 0;
  for (int part = 0; part < 2; part++) {
    const double value = entry < (uint64_t)map->values ? cb_view_part(view, (int64_t)entry, part)
                                                       : sum_of_part(map, view, (int64_t)entry - map->values, part);
    cb_real_set(slots, type, 2 * slot + part, value);
    lost |= cb_real_overflows(value, type);
  }
  return lost;
}

/* One slot of `count`, whatever the types. Whether a finite value was lost. */
static int gather_one(const struct cb_value_map *map, uint64_t entry, const struct cb_view *view,
                      enum cb_type stored, void *slots, int64_t count, int64_t slot) {
  if (cb_type_is_complex(stored)) return gather_complex(map, entry, view, stored, slots, slot);
  const double value = entry < (uint64_t)map->values ? cb_view_value(view, (int64_t)entry)
                                                     : sum_of(map, view, (int64_t)entry - map->values);
  if (stored == CB_SPLIT) cb_split_set(slots, count, slot, value);
  else cb_real_set(slots, stored, slot, value);
  return stored != CB_F64 && cb_real_overflows(value, stored);
}

static int gather_group(const struct cb_value_map *map, const uint64_t entries[CB_GROUP_SLOTS], uint32_t present,
                        const struct cb_view *view, enum cb_type stored, void *slots, int64_t count, int64_t first) {
  int lost = 0;
  for (int i = 0; i < CB_GROUP_SLOTS; i++)
    if (present >> i & 1) lost |= gather_one(map, entries[i], view, stored, slots, count, first + i);
  return lost;
}

enum cb_status cb_fail_range(enum cb_type stored, struct cb_diag *diag) {
  if (stored == CB_SPLIT)
    return cb_fail(diag, CB_ERR_LIMIT,
                   "a value has no split form: it is neither 0 nor of a size from 2^-126 to 3.4e38; compile without 'split'");
  return cb_fail(diag, CB_ERR_LIMIT, "a value is beyond the range of %s; choose another 'type'",
                 cb_type_short(stored));
}

/* The usual case, values of the stored type and no lists: bits are copied. */
#define DEFINE_COPY(element)                                                                                 \
  static void copy_##element(const uint64_t entries[CB_GROUP_SLOTS], uint32_t present, const element *values, \
                             element *slots) {                                                               \
    for (int i = 0; i < CB_GROUP_SLOTS; i++)                                                                 \
      if (present >> i & 1) slots[i] = values[entries[i]];                                                   \
  }
DEFINE_COPY(uint64_t)
DEFINE_COPY(uint32_t)
DEFINE_COPY(uint16_t)
#undef DEFINE_COPY

static int gather_member(const struct cb_value_map *map, const struct cb_value_range *range,
                         const struct cb_map_block *block, int number, const struct cb_view *view, enum cb_type stored,
                         void *slots) {
  const int plain = !map->lists && view->values && view->value_type == stored && !cb_type_is_complex(stored);
  const uint32_t present = block->present[number];
  const int64_t slot = ((int64_t)block->group[number] - range->first_group) * CB_GROUP_SLOTS;
  uint64_t entries[CB_GROUP_SLOTS];
  if (!present) return 0;
  cb_value_map_entries(map, block, number, entries);
  if (!plain) return gather_group(map, entries, present, view, stored, slots, range->slots, slot);
  if (stored == CB_F64)
    copy_uint64_t(entries, present, view->values, (uint64_t *)slots + slot);
  else if (stored == CB_F32)
    copy_uint32_t(entries, present, view->values, (uint32_t *)slots + slot);
  else
    copy_uint16_t(entries, present, view->values, (uint16_t *)slots + slot);
  return 0;
}

enum cb_status cb_values_gather(const struct cb_value_map *map, const struct cb_value_range *range,
                                const struct cb_view *view, enum cb_type stored, void *slots,
                                struct cb_diag *diag) {
  const struct cb_map_block *blocks = map->blocks + range->first_block;
  int lost = 0;
#pragma omp parallel for schedule(static) reduction(| : lost)
  for (int64_t b = 0; b < range->blocks; b++)
    for (int m = 0; m < CB_BLOCK_GROUPS; m++) lost |= gather_member(map, range, &blocks[b], m, view, stored, slots);
  return lost ? cb_fail_range(stored, diag) : CB_OK;
}
