// SPDX-License-Identifier: Apache-2.0
/* The rows that cover all pairs, by looking for each pair in them; how few they are; and the walk over all rows. */
#include "tests/combinations.h"

#include <stdio.h>

static const struct factors cases[] = {
    {2, {3, 4}, {0}, 0, 0}, {3, {2, 2, 2}, {0}, 0, 0}, {4, {3, 3, 3, 3}, {0}, 0, 0}, {4, {20, 8, 3, 2}, {0}, 0, 0},
    {5, {25, 9, 3, 2, 4}, {0}, 0, 0}, {6, {2, 3, 4, 5, 6, 7}, {0}, 0, 0}, {2, {1, 1}, {0}, 0, 0},
    {5, {1, 1, 9, 1, 2}, {0}, 0, 0}, {6, {2, 2, 2, 2, 2, 2}, {0}, 0, 0},
};
enum { CASES = sizeof cases / sizeof *cases };

static int is_in(combination *rows, int count, int f, int a, int g, int b) {
  for (int i = 0; i < count; i++)
    if (rows[i][f] == a && rows[i][g] == b) return 1;
  return 0;
}

static void check_pairs(const struct factors *factors, combination *rows, int count) {
  for (int f = 0; f < factors->count; f++)
    for (int g = f + 1; g < factors->count; g++)
      for (int a = 0; a < factors->levels[f]; a++)
        for (int b = 0; b < factors->levels[g]; b++)
          if (!is_in(rows, count, f, a, g, b)) fail_msg("levels %d of %d and %d of %d do not meet", a, f, b, g);
}

/* No fewer are possible than the product of the two largest numbers of levels. */
static int fewest(const struct factors *factors) {
  int most = 1;
  for (int f = 0; f < factors->count; f++)
    for (int g = f + 1; g < factors->count; g++)
      if (factors->levels[f] * factors->levels[g] > most) most = factors->levels[f] * factors->levels[g];
  return most;
}

static void every_pair_occurs_in_few_rows(void **state) {
  (void)state;
  for (int c = 0; c < CASES; c++) {
    combination *rows;
    const int count = covering_combinations(&cases[c], &rows);
    check_pairs(&cases[c], rows, count);
    for (int i = 0; i < count; i++)
      for (int f = 0; f < cases[c].count; f++) assert_in_range(rows[i][f], 0, cases[c].levels[f] - 1);
    assert_in_range(count, fewest(&cases[c]), 2 * fewest(&cases[c]));
    free(rows);
  }
}

static void pairs_are_counted_once(void **state) {
  (void)state;
  const combination first = {0, 0, 0}, second = {0, 0, 1}, partly = {0, -1, 1};
  struct pairs pairs;
  pairs_init(&pairs, &cases[1]);
  assert_int_equal(pairs.left, 12);
  assert_int_equal(pairs_count_new(&pairs, first), 3);
  pairs_see(&pairs, first);
  pairs_see(&pairs, first);
  assert_int_equal(pairs.left, 9);
  assert_int_equal(pairs_count_new(&pairs, second), 2);
  assert_int_equal(pairs_count_new(&pairs, partly), 1);
  pairs_release(&pairs);
}

static void all_rows_are_walked(void **state) {
  (void)state;
  combination levels = {0};
  int count = 1;
  while (next_combination(&cases[3], 0, levels)) count++;
  assert_int_equal(count, 20 * 8 * 3 * 2);
  levels[0] = 7;
  for (count = 1; next_combination(&cases[3], 1, levels); count++) assert_int_equal(levels[0], 7);
  assert_int_equal(count, 8 * 3 * 2);
  for (int f = 1; f < 4; f++) assert_int_equal(levels[f], 0);
}

static void factors_are_those_of_the_tables(void **state) {
  (void)state;
  struct factors factors;
  factors_of_kernels(&factors);
  assert_true(factors.count >= 4 && factors.levels[0] > 10);
  const combination last = {factors.levels[0] - 1, factors.levels[1] - 1, 0, 1};
  char settings[SETTINGS], start[64];
  combination_settings(settings, &factors, last);
  snprintf(start, sizeof start, "recipe=%s", cb_recipe_at(factors.levels[0] - 1)->name);
  assert_memory_equal(settings, start, strlen(start));
  assert_non_null(strstr(settings, " form=ax values=fixed"));
  assert_non_null(strstr(settings, " type="));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_pair_occurs_in_few_rows),
      cmocka_unit_test(pairs_are_counted_once),
      cmocka_unit_test(all_rows_are_walked),
      cmocka_unit_test(factors_are_those_of_the_tables),
  };
  return cmocka_run_group_tests_name("combinations", tests, NULL, NULL);
}
