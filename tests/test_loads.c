// SPDX-License-Identifier: Apache-2.0
/* Nonzeros by thread block: by hand where it is plain who multiplies what, and of every recipe that they are the
 * matrix's, all of them. */
#include "tests/layouts.h"
#include "tests/recipes.h"

#include "analysis/plan/assignment.h"
#include "analysis/plan/loads.h"

#include <math.h>

static struct cb_loads loads_of(const struct product *product) {
  struct cb_loads loads;
  struct cb_diag diag = {0};
  assert_ok(cb_loads_count(&loads, product->plan, product->assignment, &diag));
  return loads;
}

static int64_t thread_blocks(const struct cb_plan *plan) {
  int64_t blocks = 0;
  for (int l = 0; l < plan->launches_count; l++)
    if (!plan->launches[l].body && !plan->launches[l].prepares) blocks += plan->launches[l].blocks;
  return blocks;
}

/* Lists of what each thread block has. */
static void check_counts(const char *matrix, const char *settings, const int64_t *counts, int count) {
  struct product product = product_of(matrix, settings);
  const struct cb_loads loads = loads_of(&product);
  double sum = 0, squares = 0;
  int64_t least = counts[0], most = counts[0];
  for (int i = 0; i < count; i++) {
    sum += (double)counts[i];
    least = counts[i] < least ? counts[i] : least;
    most = counts[i] > most ? counts[i] : most;
  }
  for (int i = 0; i < count; i++) squares += ((double)counts[i] - sum / count) * ((double)counts[i] - sum / count);
  assert_int_equal(loads.blocks, count);
  assert_int_equal(loads.least, least);
  assert_int_equal(loads.most, most);
  assert_float_equal(loads.mean, sum / count, 1e-9);
  assert_float_equal(loads.variation, sqrt(squares / count) / (sum / count), 1e-9);
  product_release(&product);
}

/* A thread block of sell has eight warps: with one lane for each row 256 rows, with four 64. */
static void rows_of_a_thread_block(void **state) {
  static const int64_t by_row[] = {1792, 1792, 1316},
                       by_four[] = {448, 448, 448, 448, 448, 448, 448, 448, 448, 448, 420};
  (void)state;
  check_counts("uniform,n=700,per_row=7", "recipe=sell sell-lanes=1", by_row, 3);
  check_counts("uniform,n=700,per_row=7", "recipe=sell sell-lanes=4", by_four, 11);
}

/* The same rows by two regions in one launch: block rows are those of the launch. */
static void regions_in_turn_share_thread_blocks(void **state) {
  (void)state;
  struct product product = product_of("multiblock,blocks=4,n=8", "recipe=slices fill-rate=60 fuse=on sell-lanes=4");
  const struct cb_plan *plan = product.plan;
  assert_true(plan->regions_count == 2 && plan->launches_count == 1 && plan->launches[0].block_rows > 0);
  assert_true(plan->regions[0].block_rows != plan->regions[1].block_rows);
  const struct cb_loads loads = loads_of(&product);
  int64_t most = 0;
  for (int64_t first = 0; first < product.csr->rows; first += plan->launches[0].block_rows) {
    const int64_t end = first + plan->launches[0].block_rows;
    const int64_t own =
        cb_csr_row(product.csr, end < product.csr->rows ? end : product.csr->rows) - cb_csr_row(product.csr, first);
    most = own > most ? own : most;
  }
  assert_int_equal(loads.blocks, plan->launches[0].blocks);
  assert_int_equal(loads.most, most);
  assert_float_equal(loads.mean * (double)loads.blocks, (double)product.csr->nnz, 1e-6);
  product_release(&product);
}

/* Three rows of 2900 nonzeros have thread blocks of their own, in the same launch and in another. No thread block is
 * left empty, as some would be if one region's were counted as another's. */
static void regions_have_thread_blocks_of_their_own(void **state) {
  static const char *const settings[] = {"recipe=sell-long long-row=100 fuse=on",
                                         "recipe=sell-long long-row=100 fuse=off"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    struct product product = product_of("long_row,rows=3000,per_row=4,long_rows=3,long_length=2900", settings[i]);
    const struct cb_loads loads = loads_of(&product);
    assert_int_equal(product.plan->launches_count, 1 + i);
    assert_int_equal(loads.blocks, 3 + region_of(&product)->blocks);
    assert_int_equal(loads.most, 2900);
    assert_in_range(loads.least, 500, 1024);
    product_release(&product);
  }
}

static void every_recipe_accounts_for_all_nonzeros(void **state) {
  int counted = 0, unknown = 0;
  char settings[SETTINGS];
  (void)state;
  for (int number = 0; next_settings(settings, number, 3); number++) {
    char name[32];
    const struct cb_recipe *recipe;
    struct cb_diag diag = {0};
    assert_int_equal(sscanf(settings, "recipe=%31s", name), 1);
    if (cb_recipe_find(&recipe, name, &diag) || plan_status_of(example_of(recipe), settings, &diag)) continue;
    struct product product = product_of(example_of(recipe), settings);
    const struct cb_loads loads = loads_of(&product);
    if (loads.blocks) {
      assert_int_equal(loads.blocks, thread_blocks(product.plan));
      assert_float_equal(loads.mean * (double)loads.blocks, (double)product.csr->nnz, 1e-6);
      assert_true(loads.least >= 0 && (double)loads.least <= loads.mean + 1e-9 &&
                  loads.mean <= (double)loads.most + 1e-9);
    }
    counted += loads.blocks > 0;
    unknown += !loads.blocks;
    product_release(&product);
  }
  print_message("%d plans counted, %d unknown\n", counted, unknown);
  assert_true(counted > 3 * unknown);
}

/* Of 35 sub-blocks with 40 nonzeros each, eight go to a thread block, and the last one has three. */
static void without_balancing_a_thread_block_has_eight_sub_blocks(void **state) {
  (void)state;
  struct cb_loads loads;
  struct cb_diag diag = {0};
  struct product product = product_of("random_exact,blocks_r=7,blocks_c=5,block_nnz=40", "recipe=cb aggregate=off");
  assert_ok(cb_loads_count_unbalanced(&loads, product.assignment, &diag));
  assert_int_equal(loads.blocks, 5);
  assert_int_equal(loads.most, 320);
  assert_int_equal(loads.least, 120);
  product_release(&product);
  product = product_of("random_exact,blocks_r=7,blocks_c=5,block_nnz=40", "recipe=sell");
  assert_ok(cb_loads_count_unbalanced(&loads, product.assignment, &diag));
  assert_int_equal(loads.blocks, 0);
  product_release(&product);
}

static void nothing_to_multiply(void **state) {
  (void)state;
  struct product product = product_of("empty,rows=7,cols=0", "recipe=sell");
  const struct cb_loads loads = loads_of(&product);
  assert_true(loads.least == 0 && loads.most == 0 && loads.mean == 0 && loads.variation == 0);
  product_release(&product);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_of_a_thread_block),
      cmocka_unit_test(regions_in_turn_share_thread_blocks),
      cmocka_unit_test(regions_have_thread_blocks_of_their_own),
      cmocka_unit_test(every_recipe_accounts_for_all_nonzeros),
      cmocka_unit_test(without_balancing_a_thread_block_has_eight_sub_blocks),
      cmocka_unit_test(nothing_to_multiply),
  };
  return cmocka_run_group_tests_name("loads", tests, NULL, NULL);
}
