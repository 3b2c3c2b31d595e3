// SPDX-License-Identifier: Apache-2.0
/* Where a row's nonzeros are stored, as reports say it, against where the layouts put them. */
#include "tests/layouts.h"

#include "analysis/plan/locate.h"
#include "tests/recipes.h"

static void expect_place(const struct product *product, int64_t row, const char *wanted) {
  struct cb_text text = {0};
  cb_locate_row(&text, product->plan, product->assignment, product->csr, row);
  if (strcmp(cb_text_string(&text), wanted))
    fail_msg("%s, row %d: '%s' instead of '%s'", product->plan->line, (int)row, cb_text_string(&text), wanted);
  cb_text_release(&text);
}

/* Slots of row r, one lane for each row: those of lane r % 32 in the steps of slice r / 32. */
static void a_row_of_one_region(void **state) {
  (void)state;
  struct product product =
      product_of("staircase,n=300", "recipe=sell sell-lanes=1 sell-vector=1 sell-sort=off sell-vary=off");
  for (int64_t row = 0; row < product.csr->rows; row++) {
    char wanted[160] = "";
    const int64_t first = 32 * element(&product, "first_step", row / 32) + row % 32;
    const int64_t length = cb_csr_row_length(product.csr, row);
    if (length == 1)
      snprintf(wanted, sizeof wanted, "1 in sell0 (layout sell, its slice %d, slot %d, thread block %d of the launch)",
               (int)(row / 32), (int)first, (int)(row / 256));
    if (length > 1)
      snprintf(wanted, sizeof wanted, "%d in sell0 (layout sell, its slice %d, slots %d to %d, thread block %d of the launch)",
               (int)length, (int)(row / 32), (int)first, (int)(first + 32 * (length - 1)), (int)(row / 256));
    expect_place(&product, row, wanted);
  }
  product_release(&product);
}

/* A diagonal, and a column behind one full row. */
static void a_row_of_two_regions(void **state) {
  char wanted[200];
  (void)state;
  struct product product = product_of("arrow,n=600,width=1", "recipe=dia fuse=on sell-lanes=1");
  assert_int_equal(product.plan->regions_count, 2);
  product.region = 1;
  snprintf(wanted, sizeof wanted,
           "1 in dia0 (layout dia, its slice 9, slot 300, thread block 1 of the launch), "
           "1 in sell1 (layout sell, its slice 9, slot %d, thread block 1 of the launch)",
           (int)(32 * element(&product, "first_step", 300 / 32) + 300 % 32));
  expect_place(&product, 300, wanted);
  product_release(&product);
}

/* Long rows have the first thread blocks of the launch, and merge numbers none by rows. */
static void thread_blocks_are_those_of_the_launch(void **state) {
  char wanted[160];
  (void)state;
  struct product product = product_of("long_row,rows=1000,cols=9000,per_row=6,long_rows=1,long_length=5000",
                                      "recipe=sell-long long-row=400 sell-lanes=1 sell-sort=off sell-vary=off");
  const struct cb_csr *csr = product.csr;
  const int64_t row = cb_csr_row_length(csr, 999) == 6 ? 999 : 998, before = product.plan->regions[1].blocks;
  assert_true(before > 0 && cb_csr_row_length(csr, row) == 6);
  const int64_t first = 32 * element(&product, "first_step", row / 32) + row % 32;
  snprintf(wanted, sizeof wanted, "6 in sell0 (layout sell, its slice %d, slots %d to %d, thread block %d of the launch)",
           (int)(row / 32), (int)first, (int)(first + 5 * 32), (int)(before + row / 256));
  expect_place(&product, row, wanted);
  product_release(&product);
}

/* Rows that are in an order of their own tell no thread block; empty rows are in no region. */
static void what_does_not_follow_from_the_row_is_not_told(void **state) {
  (void)state;
  struct product sorted = product_of("one_row,cols=3", "recipe=sell sell-sort=on");
  expect_place(&sorted, 0, "3 in sell0 (layout sell, its slice 0, slots 0 to 64)");
  struct product empty = product_of("empty,rows=5,cols=5", "recipe=sell");
  expect_place(&empty, 4, "");
  product_release(&sorted);
  product_release(&empty);
}

/* 5000 nonzeros in segments of 512, a slice each. */
static void a_row_in_segments_has_several_units(void **state) {
  (void)state;
  struct product product = product_of("one_row,cols=5000", "recipe=sell sell-vary=on");
  expect_place(&product, 0, "5000 in sell0 (layout sell, its slices 0 to 9, slots 0 to 4999)");
  product_release(&product);
}

/* Whatever the layout: what the regions hold of a row is the row, and their units are the layout's. */
static void every_layout_says_what_holds_a_row(void **state) {
  char unit[64];
  (void)state;
  for (int number = 0; cb_recipe_at(number); number++) {
    if (!layout_of_recipe(cb_recipe_at(number))) continue;
    const char *settings = settings_of_recipe(cb_recipe_at(number));
    struct product product = product_of(example_of(cb_recipe_at(number)), settings);
    for (int64_t row = 0; row < product.csr->rows; row++) {
      struct cb_text text = {0};
      int64_t held = 0;
      cb_locate_row(&text, product.plan, product.assignment, product.csr, row);
      for (int r = 0; r < product.plan->regions_count; r++) {
        const struct cb_region *region = &product.plan->regions[r];
        snprintf(unit, sizeof unit, " in %s (layout %s, its %s", region->name, region->layout,
                 cb_layout_find(region->layout)->unit);
        const char *at = strstr(cb_text_string(&text), unit), *begin = at;
        while (at && begin > cb_text_string(&text) && begin[-1] != ' ') begin--;
        if (at) held += strtol(begin, NULL, 10);
      }
      if (held != cb_csr_row_length(product.csr, row)) fail_msg("%s, row %d: %s", settings, (int)row, text.bytes);
      cb_text_release(&text);
    }
    product_release(&product);
  }
}

static void without_memory_regions_are_left_out(void **state) {
  (void)state;
  struct product product = product_of("one_row,cols=3", "recipe=sell");
  struct cb_text text = {0};
  cb_memory_fail_at(1, 0);
  cb_locate_row(&text, product.plan, product.assignment, product.csr, 0);
  assert_int_equal(cb_memory_fail_at(0, 0), 1);
  assert_string_equal(cb_text_string(&text), "");
  cb_text_release(&text);
  product_release(&product);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_row_of_one_region),
      cmocka_unit_test(a_row_of_two_regions),
      cmocka_unit_test(thread_blocks_are_those_of_the_launch),
      cmocka_unit_test(what_does_not_follow_from_the_row_is_not_told),
      cmocka_unit_test(a_row_in_segments_has_several_units),
      cmocka_unit_test(every_layout_says_what_holds_a_row),
      cmocka_unit_test(without_memory_regions_are_left_out),
  };
  return cmocka_run_group_tests_name("locate", tests, NULL, NULL);
}
