// SPDX-License-Identifier: Apache-2.0
/* Arrays of sliced ELL that packing makes, and allocations that fail. */
#include "tests/layouts.h"

static void columns_are_made_by_packing(void **state) {
  (void)state;
  static const struct late_array cases[] = {
      {"rmat,scale=11,edge_factor=8", "recipe=sell", "column_offset", 0, CB_STORED},
      {"one_column,rows=3000", "recipe=sell", "column_offset", 0, CB_AFFINE},
  };
  check_late_arrays(cases, sizeof cases / sizeof *cases);
}

/* Where slices take another way than they do by default. */
static void every_allocation_may_fail(void **state) {
  (void)state;
  assert_true(check_allocations(random_matrix(60, 60, 250, 9), "recipe=sell sell-vary=on") > 40);
  assert_true(check_allocations(random_matrix(60, 60, 250, 9), "recipe=sell sell-sort=on") > 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(columns_are_made_by_packing),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
