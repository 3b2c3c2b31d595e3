// SPDX-License-Identifier: Apache-2.0
/* The kernels that move values into slots, on the fake GPU: the same bits as on the host, whatever a map's blocks look
 * like and whatever the types are; slots of no entry stay as they were or become zero, as asked, and nothing beyond. */
#include "tests/api_support.h"
#include "tests/value_maps.h"

#include "base/real.h"
#include "base/split.h"
#include "runtime/api/session.h"

static const enum cb_type types[] = {CB_F64, CB_F32, CB_F16, CB_BF16, CB_SPLIT}; /* the last of slots only */
enum { GIVEN = 4, STORED = 5 };

/* A map and what is gathered by it, on the device. */
struct bed {
  struct cb_session *session;
  struct slots slots;
  struct cb_value_map map;
  struct cb_value_range ranges[3];
  struct cb_view view;
  cb_device_ptr blocks, lists, values, lost;
};

static cb_device_ptr put(const struct bed *bed, const void *bytes, size_t length) {
  struct cb_diag diag = {0};
  cb_device_ptr address;
  assert_ok(cb_device_alloc(bed->session->device, &address, length, "bytes", &diag));
  assert_ok(cb_device_upload(bed->session->device, address, bytes, length, "bytes", &diag));
  return address;
}

static void build_map(struct bed *bed, const struct cb_order *order, int64_t nonzeros, int64_t values_count) {
  struct cb_diag diag = {0};
  assert_ok(cb_value_map_build(&bed->map, bed->ranges, bed->slots.maps, bed->slots.regions, order, nonzeros,
                               values_count, &diag));
}

/* With as many values as the map says. */
static void open_bed(struct bed *bed, enum cb_type given) {
  struct cb_diag diag = {0};
  const uint32_t none = 0;
  const int64_t values_count = bed->map.values;
  setenv("CBGEN_LIBCUDA", getenv("CBGEN_FAKE_CUDA"), 1);
  setenv("CBGEN_NVRTC", getenv("CBGEN_FAKE_CUDA"), 1);
  assert_ok(cb_session_open(&bed->session, 0, &diag));
  assert_ok(cb_device_enter(bed->session->device, &diag));
  void *values = calloc((size_t)values_count, cb_type_size(given));
  assert_non_null(values);
  for (int64_t i = 0; i < values_count; i++) cb_real_set(values, given, i, (double)(i % 97) / 8 - 3);
  bed->view = (struct cb_view){.nnz = values_count, .values = values, .value_type = given};
  bed->blocks = put(bed, bed->map.blocks, (size_t)cb_value_map_bytes(&bed->map));
  bed->values = put(bed, values, (size_t)values_count * cb_type_size(given));
  bed->lost = put(bed, &none, sizeof none);
  if (!bed->map.lists) return;
  const size_t starts = ((size_t)bed->map.lists + 1) * 8, bytes = (size_t)cb_value_map_list_bytes(&bed->map);
  unsigned char *lists = malloc(bytes);
  assert_non_null(lists);
  memcpy(lists, bed->map.list_starts, starts);
  memcpy(lists + starts, bed->map.list_entries, bytes - starts);
  bed->lists = put(bed, lists, bytes);
  free(lists);
}

static void close_bed(struct bed *bed) {
  const struct cb_device *device = bed->session->device;
  const cb_device_ptr all[] = {bed->blocks, bed->lists, bed->values, bed->lost};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) cb_device_free(device, all[i]);
  cb_device_leave(device);
  cb_session_release(bed->session);
  free((void *)(uintptr_t)bed->view.values);
  cb_value_map_release(&bed->map);
  slots_release(&bed->slots);
}

static void clear_slot(unsigned char *slots, int64_t count, int64_t slot, enum cb_type stored) {
  if (stored == CB_SPLIT) cb_split_set(slots, count, slot, 0);
  else memset(slots + (size_t)slot * cb_type_size(stored), 0, cb_type_size(stored));
}

/* What the host makes of a range: slots that have no entry are `byte`s, or zero. */
static unsigned char *expected_slots(const struct bed *bed, int region, enum cb_type stored, int zeroed, int byte) {
  struct cb_diag diag = {0};
  const struct cb_slot_map *map = &bed->slots.maps[region];
  const size_t size = cb_type_size(stored);
  unsigned char *slots = malloc((size_t)map->count * size + 1);
  assert_non_null(slots);
  memset(slots, byte, (size_t)map->count * size);
  for (int64_t slot = 0; slot < map->count && zeroed; slot++) {
    const int64_t first = slot / CB_GROUP_SLOTS * CB_GROUP_SLOTS;
    int has_any = 0; /* groups without any have no block */
    for (int64_t i = first; i < first + CB_GROUP_SLOTS && i < map->count; i++)
      has_any |= cb_slot_get(map, i) != CB_NO_NONZERO;
    if (has_any) clear_slot(slots, map->count, slot, stored);
  }
  assert_ok(cb_values_gather(&bed->map, &bed->ranges[region], &bed->view, stored, slots, &diag));
  return slots;
}

static void check_region(const struct bed *bed, int region, enum cb_type stored, int zeroed) {
  enum { BYTE = 0x5a, AFTER = 64 };
  struct cb_diag diag = {0};
  const struct cb_device *device = bed->session->device;
  const struct cb_value_range *range = &bed->ranges[region];
  const size_t bytes = (size_t)range->slots * cb_type_size(stored);
  const struct cb_packer *packer;
  unsigned char *expected = expected_slots(bed, region, stored, zeroed, BYTE), *slots = malloc(bytes + AFTER);
  assert_non_null(slots);
  memset(slots, BYTE, bytes + AFTER);
  const cb_device_ptr there = put(bed, slots, bytes + AFTER);
  const struct cb_packing packing = {
      .given = bed->view.value_type,
      .values = bed->values,
      .list_starts = bed->lists,
      .list_entries = bed->lists + ((cb_device_ptr)bed->map.lists + 1) * 8,
      .blocks = bed->blocks + (cb_device_ptr)range->first_block * sizeof(struct cb_map_block),
      .body = bed->blocks + (cb_device_ptr)cb_value_map_body_at(&bed->map),
      .slots = there,
      .values_count = bed->map.values,
      .slots_count = range->slots,
      .blocks_count = range->blocks,
      .first_group = range->first_group,
      .zeroed = zeroed ? range->slots : 0,
      .lost = bed->lost,
  };
  assert_ok(cb_session_packer(bed->session, NULL, stored, &packer, &diag));
  assert_ok(cb_packer_launch(packer, &packing, NULL, &diag));
  assert_ok(cb_device_download(device, slots, there, bytes + AFTER, "slots", &diag));
  assert_memory_equal(slots, expected, bytes);
  for (size_t i = 0; i < AFTER; i++) assert_int_equal(slots[bytes + i], BYTE);
  cb_device_free(device, there);
  free(expected);
  free(slots);
}

/* ---- every likeness */

/* The shape, then a few slots alone, the last of them absent. */
static void shapes_go_where_the_host_puts_them(void **state) {
  (void)state;
  for (int s = 0; s < SHAPES; s++) {
    const struct cb_order order = {0};
    struct bed bed = {0};
    put_shape(&bed.slots, &shapes[s], (uint64_t)s + 1);
    add_region(&bed.slots, 75);
    for (int64_t i = 0; i < 75; i++)
      cb_slot_set(&bed.slots.maps[1], i, i % 5 == 0 || i > 70 ? CB_NO_NONZERO : (uint64_t)(7 * i));
    build_map(&bed, &order, 0, MOST_ENTRIES);
    open_bed(&bed, types[s % 2]);
    for (int region = 0; region < 2; region++)
      for (int zeroed = 0; zeroed < 2; zeroed++) check_region(&bed, region, types[(s + zeroed) % STORED], zeroed);
    close_bed(&bed);
  }
}

/* ---- many thread blocks, the last of which has fewer blocks than warps */

static void an_odd_number_of_blocks_is_taken(void **state) {
  (void)state;
  enum { MANY = 211, FEW = 1, SLOTS = CB_BLOCK_GROUPS * CB_GROUP_SLOTS };
  static const int blocks[] = {MANY, FEW};
  const struct cb_order order = {0};
  struct bed bed = {0};
  for (int region = 0; region < 2; region++) {
    add_region(&bed.slots, blocks[region] * SLOTS);
    for (int64_t i = 0; i < blocks[region] * SLOTS; i++)
      cb_slot_set(&bed.slots.maps[region], i, i % 5 == 0 ? CB_NO_NONZERO : (uint64_t)i);
  }
  build_map(&bed, &order, 0, MANY * SLOTS);
  open_bed(&bed, CB_F64);
  for (int region = 0; region < 2; region++) {
    assert_int_equal(bed.ranges[region].blocks, blocks[region]);
    for (int zeroed = 0; zeroed < 2; zeroed++) check_region(&bed, region, CB_F64, zeroed);
  }
  close_bed(&bed);
}

/* ---- sums, and every pair of types */

static void sums_and_types_are_the_hosts(void **state) {
  (void)state;
  enum { NONZEROS = 900, VALUES = 2 * NONZEROS };
  for (int number = 0; number < GIVEN * STORED; number++) {
    struct bed bed = {0};
    uint32_t *starts = cb_alloc(NONZEROS + 1, sizeof *starts), *entries = cb_alloc(VALUES, sizeof *entries);
    struct cb_order order = {.starts = starts, .entries = entries};
    assert_true(starts && entries);
    for (int k = 0; k <= NONZEROS; k++) starts[k] = (uint32_t)(k / 2 * 4 + k % 2); /* 1, 3, 1, 3, … */
    for (int i = 0; i < VALUES; i++) entries[i] = (uint32_t)(i * 7 % VALUES);
    add_region(&bed.slots, NONZEROS + 40);
    for (int64_t i = 0; i < NONZEROS + 40; i++)
      cb_slot_set(&bed.slots.maps[0], i, i % 13 == 0 || i >= NONZEROS ? CB_NO_NONZERO : (uint64_t)i);
    build_map(&bed, &order, NONZEROS, VALUES);
    open_bed(&bed, types[number % GIVEN]);
    assert_int_equal(bed.map.lists, NONZEROS / 2);
    for (int zeroed = 0; zeroed < 2; zeroed++) check_region(&bed, 0, types[number / GIVEN], zeroed);
    close_bed(&bed);
    cb_order_release(&order);
  }
}

/* Diagonals with absent entries, every entry of which is a sum: prefix counts that number lists. */
static void prefix_counts_of_sums_are_the_hosts(void **state) {
  (void)state;
  enum { NONZEROS = SLICES * STEPS * CB_GROUP_SLOTS, VALUES = 2 * NONZEROS, FEW = 4 };
  struct bed bed = {0};
  uint32_t *starts = cb_alloc(NONZEROS + 1, sizeof *starts), *entries = cb_alloc(VALUES, sizeof *entries);
  struct cb_order order = {.starts = starts, .entries = entries};
  int64_t counts = 0;
  assert_true(starts && entries);
  for (int k = 0; k <= NONZEROS; k++) starts[k] = (uint32_t)(2 * k);
  for (int i = 0; i < VALUES; i++) entries[i] = (uint32_t)((int64_t)i * 7 % VALUES);
  put_shape(&bed.slots, &shapes[FEW], 3);
  build_map(&bed, &order, NONZEROS, VALUES);
  for (int64_t q = 0; q < bed.map.blocks_count; q++)
    counts += (bed.map.blocks[q].control >> CB_DELTA_SHIFT & 7) == CB_PREFIX_COUNTS &&
              bed.map.blocks[q].control >> CB_SUMS_SHIFT & 1;
  assert_int_equal(counts, bed.map.blocks_count);
  open_bed(&bed, CB_F64);
  for (int zeroed = 0; zeroed < 2; zeroed++) check_region(&bed, 0, CB_F64, zeroed);
  close_bed(&bed);
  cb_order_release(&order);
}

/* ---- deltas of 64 bits: slots whose entries are beyond the values of this test are taken out of the map again */

static void wide_deltas_are_read(void **state) {
  (void)state;
  const struct cb_order order = {.wide = 1};
  struct bed bed = {0};
  add_region(&bed.slots, 128);
  for (int64_t i = 0; i < 128; i++)
    cb_slot_set(&bed.slots.maps[0], i, i % 32 < 31 ? (uint64_t)i : (uint64_t)1 << 40);
  build_map(&bed, &order, 0, ((int64_t)1 << 40) + 1);
  assert_int_equal(bed.map.blocks_count, 4);
  for (int64_t q = 0; q < bed.map.blocks_count; q++) {
    struct cb_map_block *block = (void *)(uintptr_t)&bed.map.blocks[q];
    assert_int_equal(block->control >> CB_DELTA_SHIFT & 7, 4);
    block->present[0] &= INT32_MAX;
    cb_slot_set(&bed.slots.maps[0], 32 * q + 31, CB_NO_NONZERO);
  }
  bed.map.values = 128;
  open_bed(&bed, CB_F64);
  for (int zeroed = 0; zeroed < 2; zeroed++) check_region(&bed, 0, CB_F64, zeroed);
  close_bed(&bed);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(shapes_go_where_the_host_puts_them),
      TEST(an_odd_number_of_blocks_is_taken),
      TEST(sums_and_types_are_the_hosts),
      TEST(prefix_counts_of_sums_are_the_hosts),
      TEST(wide_deltas_are_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
