// SPDX-License-Identifier: Apache-2.0
/* Value maps: every slot takes the entry that its slot map says, whatever resembles what; layouts' own maps stay short;
 * maps from outside are checked; the kernels that read them compile. */
#include "tests/recipes.h"
#include "tests/skips.h"
#include "tests/value_maps.h"

#include "base/real.h"
#include "runtime/cuda/cubin.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/operator/packer.h"
#include "runtime/operator/values.h"

/* ---- what maps come to one by one */

static uint64_t expected_entry(const struct cb_order *order, const uint64_t *list_of, uint64_t k, int64_t values) {
  if (!order->entries) return k;
  if (!order->starts) return cb_order_get(order, order->entries, (int64_t)k);
  const uint64_t first = cb_order_get(order, order->starts, (int64_t)k),
                 end = cb_order_get(order, order->starts, (int64_t)k + 1);
  return end - first > 1 ? (uint64_t)values + list_of[k] : cb_order_get(order, order->entries, (int64_t)first);
}

static int code_of(const struct cb_map_block *block, int shift, int bits) {
  return (int)(block->control >> shift & ((1u << bits) - 1));
}

/* That every slot has its entry, that each group is in one block or none, and that blocks ascend. */
static void check_map(const struct cb_value_map *map, const struct cb_value_range *ranges, const struct slots *slots,
                      const struct cb_order *order, int64_t nonzeros) {
  uint64_t *list_of = calloc((size_t)nonzeros + 1, sizeof *list_of);
  unsigned char *seen = calloc((size_t)map->groups_count + 1, 1);
  int64_t groups = 0, blocks = 0;
  uint64_t lists = 0;
  assert_true(list_of && seen);
  for (int64_t k = 0; order->starts && k < nonzeros; k++) {
    list_of[k] = lists;
    lists += cb_order_get(order, order->starts, k + 1) - cb_order_get(order, order->starts, k) > 1;
  }
  assert_int_equal(map->lists, lists);
  for (int r = 0; r < slots->regions; r++) {
    const struct cb_slot_map *slot_map = &slots->maps[r];
    int64_t previous = INT64_MIN, present_slots = 0, mapped_slots = 0;
    assert_int_equal(ranges[r].slots, slot_map->count);
    assert_int_equal(ranges[r].first_group, groups);
    assert_int_equal(ranges[r].first_block, blocks);
    for (int64_t b = ranges[r].first_block; b < ranges[r].first_block + ranges[r].blocks; b++) {
      const struct cb_map_block *block = &map->blocks[b];
      assert_true((int64_t)cb_map_reference(block) >= previous);
      previous = (int64_t)cb_map_reference(block);
      for (int m = 0; m < CB_BLOCK_GROUPS; m++) {
        const uint32_t group = block->group[m];
        uint64_t entries[CB_GROUP_SLOTS];
        if (group == CB_NO_GROUP) continue;
        assert_false(seen[group]++);
        cb_value_map_entries(map, block, m, entries);
        for (int64_t i = 0; i < CB_GROUP_SLOTS; i++) {
          const int64_t slot = ((int64_t)group - groups) * CB_GROUP_SLOTS + i;
          const int present = block->present[m] >> i & 1;
          const uint64_t k = slot < slot_map->count ? cb_slot_get(slot_map, slot) : CB_NO_NONZERO;
          assert_int_equal(present, k != CB_NO_NONZERO);
          if (present) assert_int_equal(entries[i], expected_entry(order, list_of, k, map->values));
          mapped_slots += present;
        }
      }
    }
    for (int64_t slot = 0; slot < slot_map->count; slot++)
      present_slots += cb_slot_get(slot_map, slot) != CB_NO_NONZERO;
    assert_int_equal(mapped_slots, present_slots);
    assert_true(cb_value_map_is_sound(map, &ranges[r]));
    groups += cb_groups_of(slot_map->count);
    blocks += ranges[r].blocks;
  }
  assert_int_equal(groups, map->groups_count);
  assert_int_equal(blocks, map->blocks_count);
  assert_true(cb_value_lists_are_sound(map));
  free(list_of);
  free(seen);
}

/* ---- numbers of every width */

static int widest_residual(const struct cb_value_map *map, int *has_wide) {
  int widest = 0;
  for (int64_t b = 0; b < map->blocks_count; b++) {
    const int residuals = code_of(&map->blocks[b], CB_RESIDUAL_SHIFT, 2);
    widest = residuals > widest ? residuals : widest;
    *has_wide |= code_of(&map->blocks[b], CB_DELTA_SHIFT, 3) == 4;
  }
  return widest;
}

/* Slots in a random order of 1 + `spread` times their number, some absent. */
static void widths_are_as_the_differences_need(void **state) {
  (void)state;
  static const struct {
    uint64_t spread;
    int residuals, wide;
  } cases[] = {{1, 1, 0}, {5, 1, 0}, {1500, 2, 0}, {100000, 3, 0}, {(uint64_t)1 << 28, 3, 1}};
  for (size_t s = 0; s < sizeof cases / sizeof *cases; s++) {
    struct cb_diag diag = {0};
    struct slots slots = {0};
    struct cb_value_map map;
    struct cb_value_range ranges[3];
    const struct cb_order order = {.wide = 1};
    uint64_t seed = s + 1;
    int64_t nonzeros = 0;
    int has_wide = 0;
    add_region(&slots, 100003);
    add_region(&slots, 0);
    add_region(&slots, 70);
    for (int r = 0; r < slots.regions; r++)
      for (int64_t i = 0; i < slots.maps[r].count; i++) {
        const int absent = draw(&seed) % 10 == 0 || (r == 0 && i / 64 == 3);
        const uint64_t k = ((uint64_t)nonzeros + draw(&seed) % 8) * cases[s].spread;
        cb_slot_set(&slots.maps[r], i, absent ? CB_NO_NONZERO : k);
        nonzeros++;
      }
    const int64_t most = (int64_t)((uint64_t)(nonzeros + 8) * cases[s].spread);
    assert_ok(cb_value_map_build(&map, ranges, slots.maps, slots.regions, &order, 0, most, &diag));
    check_map(&map, ranges, &slots, &order, 0);
    assert_int_equal(widest_residual(&map, &has_wide), cases[s].residuals);
    assert_int_equal(has_wide, cases[s].wide);
    cb_value_map_release(&map);
    slots_release(&slots);
  }
}

/* ---- what resembles what */

static void likeness_is_found(void **state) {
  (void)state;
  for (size_t s = 0; s < SHAPES; s++) {
    struct cb_diag diag = {0};
    struct slots slots = {0};
    struct cb_value_map map;
    struct cb_value_range ranges[3];
    const struct cb_order order = {0};
    int64_t like = 0;
    put_shape(&slots, &shapes[s], s + 1);
    assert_ok(cb_value_map_build(&map, ranges, slots.maps, 1, &order, 0, MOST_ENTRIES, &diag));
    check_map(&map, ranges, &slots, &order, 0);
    for (int64_t b = 0; b < map.blocks_count; b++)
      like += code_of(&map.blocks[b], CB_DELTA_SHIFT, 3) == shapes[s].delta_code &&
              code_of(&map.blocks[b], CB_RESIDUAL_SHIFT, 2) == shapes[s].residual_code &&
              (!shapes[s].counted || code_of(&map.blocks[b], CB_COUNTED_SHIFT, 1));
    if (like < map.blocks_count * 8 / 10 || map.blocks_count > shapes[s].blocks)
      fail_msg("%s: %lld of %lld blocks are what they should be, at most %d", shapes[s].name, (long long)like,
               (long long)map.blocks_count, shapes[s].blocks);
    cb_value_map_release(&map);
    slots_release(&slots);
  }
}

/* Groups 0 to 3 have four slots, whose differences are stored; 4 to 11 have one slot that none of those has. Its only
 * difference is 0, and takes no room behind those that are stored. */
static void one_slot_a_group_takes_no_differences(void **state) {
  static const int64_t first[] = {0, 100, 37, 950};
  struct cb_diag diag = {0};
  struct slots slots = {0};
  struct cb_value_map map;
  struct cb_value_range ranges[1];
  const struct cb_order order = {0};
  (void)state;
  add_region(&slots, 12 * CB_GROUP_SLOTS);
  for (int64_t i = 0; i < slots.maps[0].count; i++) {
    const int64_t group = i / CB_GROUP_SLOTS, slot = i % CB_GROUP_SLOTS;
    uint64_t k = CB_NO_NONZERO;
    if (group < 4 && slot < 4) k = (uint64_t)(first[slot] + 10 * group);
    if (group >= 4 && slot == 5) k = (uint64_t)(5000 + 7 * group);
    cb_slot_set(&slots.maps[0], i, k);
  }
  assert_ok(cb_value_map_build(&map, ranges, slots.maps, 1, &order, 0, MOST_ENTRIES, &diag));
  check_map(&map, ranges, &slots, &order, 0);
  assert_int_equal(code_of(&map.blocks[0], CB_DELTA_SHIFT, 3), 2);
  assert_int_equal(code_of(&map.blocks[map.blocks_count - 1], CB_DELTA_SHIFT, 3), 0);
  cb_value_map_release(&map);
  slots_release(&slots);
}

/* ---- layouts' own maps */

static const struct {
  const char *matrix, *options;
  double most_bytes; /* of the map, per slot */
} cases[] = {
    {"stencil7,n=24", "recipe=auto", 1},
    {"fe3,n=12", "recipe=auto", 0.9},
    {"band,n=20000,half=300,per_row=32", "recipe=sell", 0.6},
    {"uniform,n=20000,per_row=8", "recipe=merge", 0.6},
    {"rmat,scale=12,edge_factor=8", "recipe=cb", 2},
    {"random,rows=300,cols=200,density=0.05", "recipe=cb intra=on", 3},
    {"road,n=100,keep=0.6", "recipe=auto", 0.6}, /* blocks alone take half a byte */
    {"empty,rows=30,cols=20", "recipe=auto", 0},
    {"dense,rows=40,cols=41", "recipe=auto", 1},
};

static void check_short_map(const char *matrix, const char *options, double most_bytes) {
  struct cb_diag diag = {0};
  struct product product = product_of(matrix, options);
  const int regions = product.plan->regions_count;
  struct slots slots = {.regions = regions};
  struct cb_blob blob;
  struct cb_value_map map;
  struct cb_value_range ranges[MOST_REGIONS];
  const struct cb_order order = {0};
  const struct cb_hash pattern = {1, 2};
  int64_t count = 0;
  assert_in_range(regions, 0, MOST_REGIONS);
  assert_ok(cb_pack_mapped(&blob, slots.maps, product.plan, product.assignment, NULL, pattern, &diag));
  for (int r = 0; r < regions; r++) count += slots.maps[r].count;
  assert_ok(cb_value_map_build(&map, ranges, slots.maps, regions, &order, product.csr->nnz, product.csr->nnz, &diag));
  check_map(&map, ranges, &slots, &order, product.csr->nnz);
  if ((double)cb_value_map_bytes(&map) > most_bytes * (double)count + 2048)
    fail_msg("%s: %lld bytes for %lld slots", matrix, (long long)cb_value_map_bytes(&map),
             (long long)count);
  cb_value_map_release(&map);
  for (int r = 0; r < regions; r++) cb_slot_map_release(&slots.maps[r]);
  cb_blob_release(&blob);
  product_release(&product);
}

static void layouts_have_short_maps(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    check_short_map(cases[i].matrix, cases[i].options, cases[i].most_bytes);
}

/* A slot's nonzero in a number of its own would take 4 bytes. */
static void every_recipe_has_a_short_map(void **state) {
  (void)state;
  enum { MOST_BYTES = 3 };
  const struct cb_recipe *recipe;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++)
    check_short_map(example_of(recipe), settings_of_recipe(recipe), MOST_BYTES);
}

/* ---- orders: entries elsewhere, and sums of several */

struct ordered {
  struct slots slots;
  struct cb_order order;
  int64_t nonzeros, values;
};

/* Nonzero k is the sum of 1 + k % 4 / 3 … values, which lie in a scrambled order. */
static struct ordered make_ordered(int64_t nonzeros, int sums) {
  struct ordered ordered = {.nonzeros = nonzeros, .order = {.wide = 0}};
  uint64_t seed = 5;
  uint32_t *starts = cb_alloc((size_t)nonzeros + 1, sizeof *starts);
  assert_non_null(starts);
  for (int64_t k = 0; k <= nonzeros; k++) {
    starts[k] = (uint32_t)ordered.values;
    ordered.values += k == nonzeros ? 0 : !sums ? 1 : k % 4 == 3 ? 3 : 1;
  }
  uint32_t *entries = cb_alloc((size_t)ordered.values, sizeof *entries);
  assert_non_null(entries);
  for (int64_t i = 0; i < ordered.values; i++) entries[i] = (uint32_t)i;
  for (int64_t i = ordered.values - 1; i > 0; i--) {
    const int64_t j = (int64_t)(draw(&seed) % (uint64_t)(i + 1));
    const uint32_t kept = entries[i];
    entries[i] = entries[j];
    entries[j] = kept;
  }
  ordered.order.entries = entries;
  ordered.order.starts = sums ? starts : NULL;
  if (!sums) cb_free(starts);
  add_region(&ordered.slots, nonzeros + 40);
  for (int64_t i = 0; i < nonzeros + 40; i++)
    cb_slot_set(&ordered.slots.maps[0], i, i < 40 ? CB_NO_NONZERO : (uint64_t)(i - 40));
  return ordered;
}

static void ordered_release(struct ordered *ordered) {
  slots_release(&ordered->slots);
  cb_order_release(&ordered->order);
}

static void orders_and_sums_are_composed(void **state) {
  (void)state;
  for (int sums = 0; sums < 2; sums++) {
    struct cb_diag diag = {0};
    struct ordered ordered = make_ordered(5000, sums);
    struct cb_value_map map;
    struct cb_value_range range;
    assert_ok(cb_value_map_build(&map, &range, ordered.slots.maps, 1, &ordered.order, ordered.nonzeros,
                                 ordered.values, &diag));
    check_map(&map, &range, &ordered.slots, &ordered.order, ordered.nonzeros);
    assert_int_equal(map.lists, sums ? 1250 : 0);
    cb_value_map_release(&map);
    ordered_release(&ordered);
  }
}

/* Values of each type into slots of each type, against sums in double precision. */
static void every_type_is_gathered(void **state) {
  (void)state;
  static const enum cb_type types[] = {CB_F64, CB_F32, CB_F16, CB_BF16};
  for (int number = 0; number < 32; number++) {
    const enum cb_type given = types[number & 3], stored = types[number >> 2 & 3];
    struct cb_diag diag = {0};
    struct ordered ordered = make_ordered(1000, number >> 4);
    struct cb_value_map map;
    struct cb_value_range range;
    const size_t count = (size_t)ordered.nonzeros + 40;
    void *values = calloc((size_t)ordered.values, cb_type_size(given)), *slots = calloc(count, cb_type_size(stored));
    assert_true(values && slots);
    for (int64_t i = 0; i < ordered.values; i++) cb_real_set(values, given, i, (double)(i % 97) / 8 - 3);
    for (size_t i = 0; i < count; i++) cb_real_set(slots, stored, (int64_t)i, 77);
    const struct cb_view view = {.nnz = ordered.values, .values = values, .value_type = given};
    assert_ok(cb_value_map_build(&map, &range, ordered.slots.maps, 1, &ordered.order, ordered.nonzeros,
                                 ordered.values, &diag));
    assert_ok(cb_values_gather(&map, &range, &view, stored, slots, &diag));
    for (int64_t k = -40; k < ordered.nonzeros; k++) {
      const void *const starts = ordered.order.starts;
      double sum = k < 0 ? 77 : 0;
      const int64_t first = k < 0 ? 0 : starts ? (int64_t)cb_order_get(&ordered.order, starts, k) : k,
                    end = k < 0 ? 0 : starts ? (int64_t)cb_order_get(&ordered.order, starts, k + 1) : k + 1;
      for (int64_t i = first; i < end; i++)
        sum += cb_real_get(values, given, (int64_t)cb_order_get(&ordered.order, ordered.order.entries, i));
      assert_true(cb_real_get(slots, stored, k + 40) == cb_real_round(sum, stored));
    }
    cb_value_map_release(&map);
    ordered_release(&ordered);
    free(values);
    free(slots);
  }
}

/* As in the sum of a CSR product: 0 + -0 would be 0. */
static void sums_of_negative_zeros_are_negative(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct ordered ordered = make_ordered(100, 1);
  struct cb_value_map map;
  struct cb_value_range range;
  double values[200], slots[140];
  for (int i = 0; i < 200; i++) values[i] = -0.0;
  for (int i = 0; i < 140; i++) slots[i] = 1;
  const struct cb_view view = {.nnz = ordered.values, .values = values, .value_type = CB_F64};
  assert_ok(cb_value_map_build(&map, &range, ordered.slots.maps, 1, &ordered.order, ordered.nonzeros,
                               ordered.values, &diag));
  assert_true(map.lists == 25);
  assert_ok(cb_values_gather(&map, &range, &view, CB_F64, slots, &diag));
  for (int i = 40; i < 140; i++) assert_true(slots[i] == 0 && cb_real_bits(slots[i]) != 0);
  cb_value_map_release(&map);
  ordered_release(&ordered);
}

static void values_beyond_the_type_are_told(void **state) {
  (void)state;
  static const enum cb_type stored[] = {CB_F32, CB_F16};
  for (int sums = 0; sums < 2; sums++)
    for (int t = 0; t < 2; t++) {
      struct cb_diag diag = {0};
      struct ordered ordered = make_ordered(100, sums);
      struct cb_value_map map;
      struct cb_value_range range;
      double values[200] = {0};
      float slots[140] = {0};
      const struct cb_view view = {.nnz = ordered.values, .values = values, .value_type = CB_F64};
      assert_ok(cb_value_map_build(&map, &range, ordered.slots.maps, 1, &ordered.order, ordered.nonzeros,
                                   ordered.values, &diag));
      assert_ok(cb_values_gather(&map, &range, &view, stored[t], slots, &diag));
      values[7] = t ? 65520 : 1e39;
      assert_int_equal(cb_values_gather(&map, &range, &view, stored[t], slots, &diag), CB_ERR_LIMIT);
      assert_non_null(strstr(diag.message, "a value is beyond the range of"));
      cb_value_map_release(&map);
      ordered_release(&ordered);
    }
}

/* ---- maps from outside */

static void unsound_maps_are_found(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct ordered ordered = make_ordered(300, 1);
  struct cb_value_map map;
  struct cb_value_range range;
  assert_ok(cb_value_map_build(&map, &range, ordered.slots.maps, 1, &ordered.order, ordered.nonzeros, ordered.values,
                               &diag));
  assert_true(cb_value_map_is_sound(&map, &range));
  struct cb_map_block *const blocks = (void *)(uintptr_t)map.blocks, *block = blocks;
  while (block->present[0] != UINT32_MAX) block++;
  const struct cb_map_block before = *block;
#define IS_FOUND(change)                                                                                               \
  do {                                                                                                                 \
    change;                                                                                                            \
    assert_false(cb_value_map_is_sound(&map, &range));                                                                 \
    *block = before;                                                                                                   \
    assert_true(cb_value_map_is_sound(&map, &range));                                                                  \
  } while (0)
  IS_FOUND(block->reference += (uint32_t)(map.values + map.lists));
  IS_FOUND(block->reference -= 1000000);
  IS_FOUND(block->control ^= 1u << 15);
  IS_FOUND(block->offset[0] = UINT32_MAX);
  IS_FOUND(block->group[0] = (uint32_t)cb_groups_of(range.slots));
  IS_FOUND(block->group[0] = (uint32_t)cb_groups_of(range.slots) - 1); /* the last one is not whole */
  IS_FOUND(block->group[0] = CB_NO_GROUP);
  IS_FOUND(block->control |= 7u << CB_DELTA_SHIFT);
  IS_FOUND(block->control &= ~(1u << CB_SUMS_SHIFT)); /* without it the kernels take lists for values */
  for (uint32_t code = 1; code < 5; code++)           /* the kernels read it, whatever is present */
    IS_FOUND(block->control = (block->control & UINT16_MAX) | code << CB_DELTA_SHIFT;
             block->deltas = (uint32_t)(map.body_bytes / CB_MAP_UNIT));
  for (uint32_t code = 1; code < 4; code++)
    IS_FOUND(block->control = (block->control & UINT16_MAX) | code << CB_RESIDUAL_SHIFT;
             for (int m = 0; m < CB_BLOCK_GROUPS; m++) block->present[m] = 0;
             block->residuals = (uint32_t)(map.body_bytes / CB_MAP_UNIT) - (1u << (code - 1)));
  range.first_group += 2; /* another region's */
  assert_false(cb_value_map_is_sound(&map, &range));
  range.first_group -= 2;
  uint64_t *const starts = (void *)(uintptr_t)map.list_starts, *const entries = (void *)(uintptr_t)map.list_entries;
  assert_true(cb_value_lists_are_sound(&map));
  starts[3] = starts[2] + 1;
  assert_false(cb_value_lists_are_sound(&map));
  starts[3] = starts[2] + 3;
  assert_true(cb_value_lists_are_sound(&map));
  entries[7] = (uint64_t)map.values;
  assert_false(cb_value_lists_are_sound(&map));
  cb_value_map_release(&map);
  ordered_release(&ordered);
}

/* Every allocation that fails is said, and residuals nothing. */
static void failing_memory_is_said(void **state) {
  (void)state;
  int failures = 0;
  struct ordered ordered = make_ordered(200000, 1);
  for (uint64_t nth = 1;; nth++) {
    struct cb_diag diag = {0};
    struct cb_value_map map;
    struct cb_value_range range;
    cb_memory_fail_at(nth, 0);
    const enum cb_status s =
        cb_value_map_build(&map, &range, ordered.slots.maps, 1, &ordered.order, ordered.nonzeros,
                                                ordered.values, &diag);
    cb_memory_fail_at(0, 0);
    cb_value_map_release(&map);
    if (!s) break;
    assert_int_equal(s, CB_ERR_MEMORY);
    assert_true(*diag.message);
    failures++;
  }
  assert_true(failures > 6);
  ordered_release(&ordered);
}

/* ---- the real compiler */

static void kernels_compile_for_every_target(void **state) {
  (void)state;
  static const struct {
    const char *arch;
    enum cb_type stored;
  } targets[] = {{"sm_80", CB_F64},  {"sm_89", CB_F32},  {"sm_90", CB_F64}, {"sm_90", CB_F32},
                 {"sm_90", CB_BF16}, {"sm_90", CB_SPLIT}, {"sm_80", CB_SPLIT}, {"sm_100", CB_F64}, {"sm_100", CB_F16}};
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc = NULL;
  if (cb_nvrtc_open(&nvrtc, NULL, &diag) == CB_ERR_MISSING) {
    skip_because(diag.message);
  }
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    struct cb_text text = {0};
    struct cb_compiled compiled;
    struct cb_cubin_stats stats;
    const struct cb_nvrtc_options options = {.arch = targets[i].arch, .strict = 1};
    assert_ok(cb_packer_text(&text, targets[i].stored, &diag));
    assert_ok(cb_nvrtc_compile(&compiled, nvrtc, text.bytes, "pack.cu", &options, &diag));
    assert_ok(cb_cubin_stats(&stats, compiled.cubin, compiled.cubin_bytes, &diag));
    assert_int_equal(stats.count, CB_PACKER_SOURCES);
    for (int k = 0; k < stats.count; k++) {
      assert_int_equal(stats.kernels[k].stack_bytes, 0);
      assert_in_range(stats.kernels[k].registers, 8, 96);
    }
    cb_cubin_stats_release(&stats);
    cb_compiled_release(&compiled);
    cb_text_release(&text);
  }
  cb_nvrtc_close(nvrtc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(widths_are_as_the_differences_need),
      cmocka_unit_test(likeness_is_found),
      cmocka_unit_test(one_slot_a_group_takes_no_differences),
      cmocka_unit_test(layouts_have_short_maps),
      cmocka_unit_test(every_recipe_has_a_short_map),
      cmocka_unit_test(orders_and_sums_are_composed),
      cmocka_unit_test(every_type_is_gathered),
      cmocka_unit_test(sums_of_negative_zeros_are_negative),
      cmocka_unit_test(values_beyond_the_type_are_told),
      cmocka_unit_test(unsound_maps_are_found),
      cmocka_unit_test(failing_memory_is_said),
      cmocka_unit_test(kernels_compile_for_every_target),
  };
  return exit_code_of(cmocka_run_group_tests(tests, NULL, NULL));
}
