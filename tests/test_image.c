// SPDX-License-Identifier: Apache-2.0
/* Images from outside: every number of the lists of a saved operator must fit the others. Each case changes one number
 * so that one check alone can see it, and must be refused; the image without a change is taken. And images of both
 * tiers: which arrays their kernels get. */
#include "tests/recipes.h"
#include "tests/support.h"

#include "codegen/family.h"
#include "runtime/operator/image.h"

enum { MOST = 8 };

/* An image of two regions with a value map, and its sections. Arrays have no contents, so that no section's length
 * tells their sizes a second time. */
struct bed {
  struct product product;
  struct cb_image image;
  struct cb_value_map map;
  struct cb_value_range ranges[MOST];
};

static void open_bed(struct bed *bed) {
  struct cb_diag diag = {0};
  const struct cb_label label = {"test", "test", {1, 2}};
  struct cb_slot_map maps[MOST] = {0};
  struct cb_blob blob;
  const struct cb_order order = {0};
  *bed = (struct bed){0};
  bed->product = product_of("long_row,rows=200,cols=4000,per_row=5,long_rows=3,long_length=3901",
                            "recipe=sell-long long-row=99 fuse=off bake-limit=0");
  const int64_t nnz = bed->product.csr->nnz;
  assert_int_equal(bed->product.plan->regions_count, 2);
  assert_ok(cb_pack_mapped(&blob, maps, bed->product.plan, bed->product.assignment, NULL, label.pattern, &diag));
  assert_ok(cb_value_map_build(&bed->map, bed->ranges, maps, 2, &order, nnz, nnz, &diag));
  const struct cb_image_parts parts = {.plan = bed->product.plan, .label = &label, .blob = &blob, .cubin = ""};
  assert_ok(cb_image_from_plan(&bed->image, &parts, &diag));
  for (int i = 0; i < bed->image.arrays_count; i++) bed->image.arrays[i].contents = NULL;
  for (int i = 0; i < bed->image.ranges_count; i++) bed->image.ranges[i].map = bed->ranges[i];
  bed->image.map = bed->map;
  bed->image.entries = nnz;
  bed->image.launches_count = 0; /* then the cubin is not looked at */
  cb_blob_release(&blob);
  for (int i = 0; i < 2; i++) cb_slot_map_release(&maps[i]);
}

static void close_bed(struct bed *bed) {
  bed->image.map = (struct cb_value_map){0};
  cb_image_release(&bed->image);
  cb_value_map_release(&bed->map);
  product_release(&bed->product);
}

/* What parsing says to the numbers of `told` with the other sections of the bed's image. The lists lie in a block of
 * their size, so that the sanitizer sees who reads beyond. */
static enum cb_status parse(const struct bed *bed, const struct cb_image *told, int suspect, const void *lists,
                            int64_t lists_bytes) {
  void *copy = malloc((size_t)lists_bytes + 1);
  assert_non_null(copy);
  if (lists) copy = realloc(copy, (size_t)lists_bytes);
  if (lists) memcpy(copy, lists, (size_t)lists_bytes);
  struct cb_diag diag = {0};
  struct cb_text numbers = {0};
  struct cb_image parsed;
  const struct cb_image *image = &bed->image;
  cb_image_write_numbers(&numbers, told, 1);
  const struct cb_cache_section sections[] = {
      {"operator", numbers.bytes, (int64_t)numbers.length},
      {"plan", image->line, (int64_t)strlen(image->line)},
      {"json", image->json, (int64_t)strlen(image->json)},
      {"source", "", 0},
      {"cubin", "", 0},
      {"map", bed->map.blocks, cb_value_map_bytes(&bed->map)},
      {"lists", copy, lists_bytes},
  };
  const enum cb_status s = cb_image_parse(&parsed, sections, lists ? 7 : 6, suspect, &diag);
  free(copy);
  cb_image_release(&parsed);
  cb_text_release(&numbers);
  return s;
}

/* The lists of an image that may be changed. */
struct lists {
  struct cb_image image;
  struct cb_image_group groups[MOST];
  struct cb_image_array arrays[64];
  struct cb_image_range ranges[MOST];
  int pointers[64];
};

static struct lists *copy_of(struct lists *copy, const struct cb_image *image) {
  copy->image = *image;
  memcpy(copy->groups, image->groups, (size_t)image->groups_count * sizeof *copy->groups);
  memcpy(copy->arrays, image->arrays, (size_t)image->arrays_count * sizeof *copy->arrays);
  memcpy(copy->ranges, image->ranges, (size_t)image->ranges_count * sizeof *copy->ranges);
  memcpy(copy->pointers, image->pointers, (size_t)image->pointers_count * sizeof *copy->pointers);
  copy->image.groups = copy->groups;
  copy->image.pointers = copy->pointers;
  copy->image.arrays = copy->arrays;
  copy->image.ranges = copy->ranges;
  return copy;
}

static void every_number_of_the_lists_must_fit(void **state) {
  (void)state;
  struct bed bed;
  struct lists one;
  open_bed(&bed);
  const struct cb_image *image = &bed.image;
  assert_true(image->groups_count == 2 && image->ranges_count == 2 && image->arrays_count > 4);
  assert_int_equal(parse(&bed, &copy_of(&one, image)->image, 1, NULL, 0), CB_OK);
#define IS_REFUSED(change)                                                                                             \
  do { /* not suspect: what blocks say is not looked at */                                                             \
    copy_of(&one, image);                                                                                              \
    change;                                                                                                            \
    if (parse(&bed, &one.image, 0, NULL, 0) != CB_ERR_FORMAT) fail_msg("taken: %s", #change);                          \
  } while (0)
  IS_REFUSED(one.groups[1].pointers++); /* beyond the arrays */
  IS_REFUSED(one.groups[0].first_pointer = image->pointers_count);
  IS_REFUSED(one.groups[1].first_pointer++);
  IS_REFUSED(one.pointers[0] = one.pointers[1]); /* a region's arrays follow each other */
  IS_REFUSED(for (int i = 0; i < image->pointers_count; i++) one.pointers[i]++); /* beyond the arrays */
  IS_REFUSED(one.arrays[1].offset = one.arrays[0].offset); /* on top of each other */
  IS_REFUSED(one.arrays[0].bytes = one.arrays[1].offset - one.arrays[0].offset + 1);
  IS_REFUSED(one.arrays[image->arrays_count - 1].offset += 1); /* not aligned */
  IS_REFUSED(one.image.packed_bytes = one.arrays[image->arrays_count - 1].offset);
  IS_REFUSED(one.arrays[image->arrays_count - 1].bytes = image->packed_bytes); /* beyond the data */
  IS_REFUSED(one.ranges[0].array = image->arrays_count);
  IS_REFUSED(one.ranges[0].map.slots = one.arrays[one.ranges[0].array].bytes / 8 + 1); /* beyond the array */
  IS_REFUSED(one.arrays[one.ranges[1].array].bytes -= 8);
  IS_REFUSED(one.ranges[0].map.first_group = 1);
  IS_REFUSED(one.ranges[1].map.first_group--); /* groups of the range before */
  IS_REFUSED(one.ranges[1].map.first_block--);
  IS_REFUSED(one.ranges[0].map.blocks--);
  IS_REFUSED(one.ranges[1].map.blocks--);
  IS_REFUSED(one.image.map.groups_count--);
  IS_REFUSED(one.image.map.groups_count++);
  IS_REFUSED(one.image.map.body_bytes++); /* not what the section holds */
  IS_REFUSED(one.image.map.body_bytes--);
  IS_REFUSED(one.image.map.lists = 1); /* and no section of them */
  IS_REFUSED(one.image.entries = image->nnz - 1);
#undef IS_REFUSED
  close_bed(&bed);
}

static void parts_of_the_map_must_be_sound(void **state) {
  (void)state;
  struct bed bed;
  open_bed(&bed);
  struct cb_map_block *blocks = (struct cb_map_block *)bed.map.blocks;
  const int64_t last = bed.map.blocks_count - 1;
  assert_int_equal(parse(&bed, &bed.image, 1, NULL, 0), CB_OK);
#define IS_REFUSED(place, number)                                                                                  \
  do {                                                                                                             \
    const uint32_t kept = place;                                                                                   \
    place = number;                                                                                                \
    if (parse(&bed, &bed.image, 1, NULL, 0) != CB_ERR_FORMAT) fail_msg("taken: " #place " = " #number);            \
    place = kept;                                                                                                  \
  } while (0)
  IS_REFUSED(blocks[0].group[0], (uint32_t)bed.map.groups_count); /* of no range */
  IS_REFUSED(blocks[last].group[0], 0);                           /* of the range before */
  IS_REFUSED(blocks[0].reference, UINT32_MAX);                    /* entries are no values */
#undef IS_REFUSED
  close_bed(&bed);
}

static void lists_of_values_must_fit(void **state) {
  (void)state;
  struct bed bed;
  struct lists one;
  open_bed(&bed);
  const uint64_t values = (uint64_t)bed.image.entries, last = values - 1;
  const struct {
    enum cb_status status;
    int64_t words; /* of the section */
    uint64_t list[9]; /* three starts, then entries */
  } cases[] = {
      {CB_OK, 7, {0, 2, 4, 0, last, 1, 1}},
      {CB_OK, 8, {0, 3, 5, 0, last, 1, 1, 2}},
      {CB_ERR_FORMAT, 7, {1, 2, 4, 0, last, 1, 1}},      /* the first begins behind 0 */
      {CB_ERR_FORMAT, 7, {0, 3, 4, 0, last, 1, 1}},      /* a list of one */
      {CB_ERR_FORMAT, 7, {0, 1, 4, 0, last, 1, 1}},
      {CB_ERR_FORMAT, 7, {0, 6, 4, 0, last, 1, 1}},      /* starts descend */
      {CB_ERR_FORMAT, 8, {0, 2, 4, 0, last, 1, 1, 1}},   /* more entries than the last start says */
      {CB_ERR_FORMAT, 6, {0, 2, 4, 0, last, 1}},         /* fewer */
      {CB_ERR_FORMAT, 2, {0, 2}},                        /* not even all starts */
      {CB_ERR_FORMAT, 7, {0, 2, 4, 0, values, 1, 1}},    /* no such value */
      {CB_ERR_FORMAT, 7, {0, 2, 4, 0, 1, 1, UINT64_MAX}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    copy_of(&one, &bed.image)->image.map.lists = 2;
    const enum cb_status s = parse(&bed, &one.image, 1, cases[i].list, cases[i].words * 8);
    if (s != cases[i].status) fail_msg("case %zu: %s", i, cb_status_name(s));
  }
  copy_of(&one, &bed.image)->image.map.lists = 2;
  assert_int_equal(parse(&bed, &one.image, 1, cases[0].list, 7 * 8 + 4), CB_ERR_FORMAT); /* half an entry more */
  close_bed(&bed);
}

static struct cb_image image_of(const struct product *product, enum cb_tier tier) {
  struct cb_diag diag = {0};
  char symbol[32];
  const struct cb_hash pattern = {1, 2};
  snprintf(symbol, sizeof symbol, "cbgen_%016llx", (unsigned long long)cb_blob_id(product->plan, pattern).high);
  const struct cb_label label = {symbol, tier == CB_TIER_FAMILY ? CB_FAMILY_SYMBOL : symbol, pattern};
  const struct cb_image_parts parts = {
      .plan = product->plan, .label = &label, .blob = &product->blob, .tier = tier, .cubin = ""};
  struct cb_image image;
  assert_ok(cb_image_from_plan(&image, &parts, &diag));
  return image;
}

/* The number of an array among the stored ones of all regions; -1: it follows a rule. */
static int number_of(const struct cb_plan *plan, const struct cb_array *array) {
  int number = 0;
  for (int r = 0; r < plan->regions_count; r++)
    for (int a = 0; a < plan->regions[r].arrays_count; a++) {
      if (&plan->regions[r].arrays[a] == array) return array->storage == CB_STORED ? number : -1;
      number += plan->regions[r].arrays[a].storage == CB_STORED;
    }
  return -1; /* a sequence that the family alone has */
}

struct rules {
  int arrays, before_stored; /* arrays that follow a rule, and groups in which one does before a stored one */
};

static void check_group(const struct product *product, const struct cb_image *image, int number, int region,
                        struct rules *rules) {
  const struct cb_array *arrays[CB_FAMILY_ARRAYS];
  const struct cb_image_group *group = &image->groups[number];
  int without = 0, is_between = 0;
  assert_int_equal(group->pointers, cb_family_arrays(&product->plan->regions[region], arrays));
  for (int a = 0; a < group->pointers; a++) {
    const int array = number_of(product->plan, arrays[a]);
    assert_int_equal(image->pointers[group->first_pointer + a], array);
    without += array < 0;
    is_between |= without && array >= 0;
  }
  rules->arrays += without;
  rules->before_stored += is_between;
}

static void check_family_pointers(const struct product *product, const struct cb_image *image, struct rules *rules) {
  const struct cb_plan *plan = product->plan;
  int group = 0;
  for (int l = 0; l < plan->launches_count; l++)
    for (int r = 0; r < plan->launches[l].regions && !plan->launches[l].body; r++)
      check_group(product, image, group++, plan->launches[l].first_region + r, rules);
  assert_int_equal(image->groups_count, group);
}

static void assert_same_launches(const struct cb_image *one, const struct cb_image *other) {
  assert_int_equal(one->launches_count, other->launches_count);
  for (int i = 0; i < one->launches_count; i++) {
    assert_string_equal(one->launches[i].kernel, other->launches[i].kernel);
    assert_int_equal(one->launches[i].blocks, other->launches[i].blocks);
    assert_int_equal(one->launches[i].first_group, other->launches[i].first_group);
    assert_int_equal(one->launches[i].groups, other->launches[i].groups);
  }
  assert_int_equal(one->groups_count, other->groups_count);
  assert_memory_equal(one->groups, other->groups, (size_t)one->groups_count * sizeof *one->groups);
  assert_int_equal(one->pointers_count, other->pointers_count);
  assert_memory_equal(one->pointers, other->pointers, (size_t)one->pointers_count * sizeof *one->pointers);
}

/* A family's kernel gets every array, NULL for those that follow a rule; the image that its specialised kernels take
 * over with is the one that they would have had from the beginning. */
static void both_tiers_get_the_arrays_of_the_plan(void **state) {
  const struct cb_recipe *recipe;
  struct rules rules = {0};
  int families = 0;
  (void)state;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++) {
    const char *example = example_of(recipe);
    char settings[256];
    struct cb_diag diag = {0};
    snprintf(settings, sizeof settings, "%s bake-limit=0", settings_of_recipe(recipe));
    struct product product = product_of(example ? example : "band,n=600,half=2", settings);
    if (!cb_family_check(product.plan, &diag)) {
      struct cb_image family = image_of(&product, CB_TIER_FAMILY), special = image_of(&product, CB_TIER_SPECIALISED);
      struct cb_image taken;
      check_family_pointers(&product, &family, &rules);
      assert_ok(cb_image_specialise(&taken, &family, &diag));
      assert_same_launches(&taken, &special);
      cb_image_release(&taken);
      assert_ok(cb_image_become_special(&family, &diag));
      assert_same_launches(&family, &special);
      cb_image_release(&family);
      cb_image_release(&special);
      families++;
    }
    product_release(&product);
  }
  assert_true(families > 6 && rules.arrays && rules.before_stored);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_tiers_get_the_arrays_of_the_plan),
      cmocka_unit_test(every_number_of_the_lists_must_fit),
      cmocka_unit_test(parts_of_the_map_must_be_sound),
      cmocka_unit_test(lists_of_values_must_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
