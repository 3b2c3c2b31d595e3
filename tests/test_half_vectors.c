// SPDX-License-Identifier: Apache-2.0
/* Types f16 and bf16 throughout: x and y of 16 bits, sums of 32. Every recipe multiplies its example so; a row of y is
 * rounded once, however many regions add to it; sums beyond the range are infinite; and verification would see kernels
 * that do otherwise. */
#include "tests/layouts.h"
#include "tests/recipes.h"

#include "base/real.h"
#include "runtime/verify/oracle.h"

#include <math.h>

static const char *const types[] = {"f16", "bf16"}, *const forms[] = {"ax", "add", "axpby"};

/* Each recipe's example in both types; forms, and values as data or fixed ones, take turns. */
static void every_recipe_multiplies(void **state) {
  struct gathered gathered = {0};
  const struct cb_recipe *recipe;
  (void)state;
  for (int number = 0; (recipe = cb_recipe_at(number)); number++)
    for (int i = 0; i < 2; i++) {
      char settings[SETTINGS + 64];
      snprintf(settings, sizeof settings, "%s type=%s form=%s values=%s", settings_of_recipe(recipe), types[i],
               forms[(number + i) % 3], (number / 3 + i) % 2 ? "fixed" : "data");
      gather(&gathered, example_of(recipe), settings);
    }
  verify_gathered(&gathered);
}

/* The options of each recipe's layout crossed, in both types; what is refused then is left out. */
static void options_multiply(void **state) {
  struct gathered gathered = {0};
  const struct cb_recipe *recipe;
  int refused = 0;
  (void)state;
  for (int number = 0; (recipe = cb_recipe_at(number)); number++)
    for (int i = 1; i <= 2 && layout_of_recipe(recipe); i++) {
      char crossed[SETTINGS], settings[SETTINGS + 64];
      struct cb_diag diag;
      cross_settings(crossed, recipe, i);
      snprintf(settings, sizeof settings, "%s type=%s form=%s", crossed, types[(number + i) % 2], forms[i % 3]);
      if (plan_status_of(example_of(recipe), settings, &diag))
        refused++;
      else
        gather(&gathered, example_of(recipe), settings);
    }
  assert_true(gathered.count > 4 * refused);
  verify_gathered(&gathered);
}

/* Matrices with nothing to multiply, or nothing to write. */
static void empty_matrices_multiply(void **state) {
  static const char *const matrices[] = {"empty,rows=0,cols=4", "empty,rows=9,cols=0", "empty,rows=300,cols=9",
                                         "one_row,cols=1"};
  struct gathered gathered = {0};
  (void)state;
  for (size_t i = 0; i < 3 * sizeof matrices / sizeof *matrices; i++) {
    char settings[64];
    snprintf(settings, sizeof settings, "type=%s form=%s", types[i % 2], forms[i / 4]);
    gather(&gathered, matrices[i % 4], settings);
  }
  verify_gathered(&gathered);
}

/* Where several regions add to a row, sums wait for a last launch: y itself is never added to. */
static void a_row_is_rounded_once(void **state) {
  static const char *const settings[] = {"recipe=dia fuse=off", "recipe=cb atomics=on unit-budget=512 balance=heap"};
  static const char *const matrices[] = {"stencil7,n=8,extra=0.5", "dense_row,n=3000,row=7"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    char narrow[256], wide[256];
    snprintf(narrow, sizeof narrow, "%s type=f16", settings[i]);
    snprintf(wide, sizeof wide, "%s type=f16-f32", settings[i]);
    struct product one = product_of(matrices[i], narrow), other = product_of(matrices[i], wide);
    assert_true(one.plan->commits_once && one.plan->row_sums && !other.plan->row_sums);
    assert_true(!has(&one, "commit_more") && !has(&one, "commit_atomic"));
    assert_true(has(&other, "commit_more") || has(&other, "commit_atomic"));
    assert_true(has(&one, "store_l2(vectors.carry_sums"));
    product_release(&one);
    product_release(&other);
  }
}

/* A text says nothing of this where x and y are as wide as sums. */
static void only_these_texts_have_entries(void **state) {
  static const char *const words[] = {"half_entry_t", "bfloat16_entry_t", "kFraction"};
  (void)state;
  for (int i = 0; i < CB_PRECISION_COUNT; i++) {
    char settings[64];
    snprintf(settings, sizeof settings, "recipe=sell type=%s", cb_precision_names[i]);
    struct product product = product_of("stencil5,n=8", settings);
    assert_int_equal(has_anywhere(&product, words[0]), i == CB_PRECISION_F16);
    assert_int_equal(has_anywhere(&product, words[1]), i == CB_PRECISION_BF16);
    assert_int_equal(has_anywhere(&product, words[2]), i == CB_PRECISION_F16 || i == CB_PRECISION_BF16);
    product_release(&product);
  }
}

/* Entries of 2 bytes: sixteen to a sector, and half of the traffic of floats. */
static void the_cost_model_counts_two_bytes(void **state) {
  (void)state;
  struct product narrow = product_of("uniform,n=9000,per_row=9", "recipe=sell type=f16"),
                 wide = product_of("uniform,n=9000,per_row=9", "recipe=sell type=f16-f32");
  assert_int_equal(wide.plan->cost.bytes - narrow.plan->cost.bytes, 2 * (9000 + 9000));
  assert_true(narrow.plan->cost.sectors > 0 && narrow.plan->cost.sectors < wide.plan->cost.sectors);
  product_release(&narrow);
  product_release(&wide);
}

/* Nonzeros of 60000: most sums are beyond f16, some are not. */
static void sums_beyond_the_range_are_infinite(void **state) {
  static const int lengths[] = {1, 2, 5, 30};
  struct gathered gathered = {0};
  (void)state;
  for (int i = 0; i < 3; i++) {
    struct cb_csr csr = rows_of_lengths(400, 90, 3, lengths, 4);
    for (int64_t k = 0; k < csr.nnz; k++) csr.values[k] = k % 3 ? 60000 : -59968;
    char settings[64];
    snprintf(settings, sizeof settings, "recipe=%s type=f16 form=%s", i == 1 ? "merge" : "sell", forms[i]);
    if (!i) {
      const struct cb_oracle_types halves = {CB_F16, CB_F16, CB_F32, CB_PLUS_TIMES};
      const struct cb_product product = {.types = halves, .alpha = 1};
      struct cb_expected expected;
      struct cb_diag diag = {0};
      int infinite = 0;
      if (cb_oracle_multiply(&expected, &csr, &product, &diag)) fail_msg("%s", diag.message);
      for (int row = 0; row < 400; row++) infinite += isinf(expected.y[row]) && expected.tolerance[row] == 0;
      assert_in_range(infinite, 20, 380);
      cb_expected_release(&expected);
    }
    gather_matrix(&gathered, csr, "60000", settings);
  }
  verify_gathered(&gathered);
}

static void threads_change_nothing(void **state) {
  (void)state;
  check_threads("band,n=9000,half=30,per_row=5", "recipe=sell type=f16");
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  assert_true(check_allocations(matrix_of("stencil5,n=12,extra=0.5"), "recipe=dia type=bf16 fuse=off") > 10);
}

/* What the kernel cannot do without: verify sees each of these changes. */
static void verify_sees_what_is_wrong(void **state) {
  static const struct change changes[] = {
      /* y not rounded to the nearest */
      {"uniform,n=300,per_row=5", "type=f16 form=ax", "= vector_t(sum)", "= vector_t(sum * 0.9995f)"},
      {"uniform,n=300,per_row=5", "type=bf16 form=ax", "= vector_t(sum)", "= vector_t(sum * 0.996f)"},
      /* rounded twice: by way of the entries that are added */
      {"uniform,n=300,per_row=5", "type=f16 form=add", "add(sum_t(vectors.y[row]), sum)",
       "sum_t(vector_t(sum)) + sum_t(vector_t(sum_t(vectors.y[row]) * 1.001f))"},
      {"uniform,n=300,per_row=5", "type=bf16 form=axpby",
       "vectors.beta == 0 ? scaled :", "vectors.beta == 1 ? scaled :"},
      /* sums of sixteen bits */
      {"uniform,n=300,per_row=90", "type=f16 form=ax", "fma(value, x, sum)", "sum_t(vector_t(fma(value, x, sum)))"},
      {"uniform,n=300,per_row=90", "type=bf16 form=ax", "fma(value, x, sum)", "sum_t(vector_t(fma(value, x, sum)))"},
  };
  (void)state;
  check_changes_are_seen(changes, sizeof changes / sizeof *changes, "sell");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_recipe_multiplies),
      cmocka_unit_test(options_multiply),
      cmocka_unit_test(empty_matrices_multiply),
      cmocka_unit_test(a_row_is_rounded_once),
      cmocka_unit_test(only_these_texts_have_entries),
      cmocka_unit_test(the_cost_model_counts_two_bytes),
      cmocka_unit_test(sums_beyond_the_range_are_infinite),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(verify_sees_what_is_wrong),
  };
  return cmocka_run_group_tests_name("half vectors", tests, NULL, NULL);
}
