// SPDX-License-Identifier: Apache-2.0
/* Plans of CB-SpMV: formats against a brute-force count, aggregation, both balances, carries and atomics. */
#include "tests/layouts.h"

#include "analysis/plan/assignment.h"

static long count_fact(const struct product *product, const char *key) {
  return strtol(fact(product, key), NULL, 10); /* "none" is 0 */
}

/* Formats of all sub-blocks, counted from a dense picture. */
static void brute_force(const struct cb_csr *csr, int aggregated, int th1, int th2, long formats[3]) {
  unsigned char *picture = calloc((size_t)(csr->rows * csr->cols + 1), 1);
  for (int64_t i = 0; i < csr->rows; i++)
    for (int64_t k = cb_csr_row(csr, i); k < cb_csr_row(csr, i + 1); k++)
      picture[i * csr->cols + csr->col_idx[k]] = 1;
  for (int64_t top = 0; top < csr->rows; top += 16) {
    int64_t kept = 0;
    int nonzeros = 0;
    for (int64_t j = 0; j <= csr->cols; j++) {
      int column = 0;
      for (int64_t i = top; j < csr->cols && i < top + 16 && i < csr->rows; i++)
        column += picture[i * csr->cols + j];
      const int64_t place = aggregated ? kept : j;
      const int boundary = j == csr->cols || (place % 16 == 0 && (!aggregated || column));
      if (boundary && nonzeros) {
        formats[nonzeros < th1 ? 0 : nonzeros > th2 ? 2 : 1]++;
        nonzeros = 0;
      }
      nonzeros += column;
      kept += column > 0;
    }
  }
  free(picture);
}

static void formats_match_a_count(void **state) {
  (void)state;
  static const int thresholds[][2] = {{32, 128}, {0, 0}, {0, 256}, {257, 256}, {9, 40}, {1, 1}};
  for (uint64_t seed = 0; seed < 60; seed++)
    for (int aggregated = 0; aggregated < 2; aggregated++) {
      uint64_t random = seed;
      const int64_t rows = 1 + (int64_t)(draw(&random) % 70), cols = 1 + (int64_t)(draw(&random) % 90);
      const int *threshold = thresholds[seed % 6];
      char settings[96];
      long formats[3] = {0};
      snprintf(settings, sizeof settings, "aggregate=%s th1=%d th2=%d coo-gain=0", aggregated ? "on" : "off", threshold[0],
               threshold[1]);
      struct product product =
          product_of_matrix(random_matrix(rows, cols, (unsigned)(draw(&random) % 700), seed), settings);
      brute_force(product.csr, aggregated, threshold[0], threshold[1], formats);
      assert_int_equal(count_fact(&product, "coo"), formats[0]);
      assert_int_equal(count_fact(&product, "csr"), formats[1]);
      assert_int_equal(count_fact(&product, "dense"), formats[2]);
      product_release(&product);
    }
}

static void coo_is_for_uneven_rows(void **state) {
  (void)state;
  /* One row of 320 nonzeros and 15 of 1: as CSR, 16 lanes take 320 steps, 5120 slots for 335 nonzeros. COO saves these,
   * but for what adding up its partial sums costs (160): 4625, or 90.3 %. */
  for (int percent = 0; percent <= 100; percent++) {
    struct cb_diag diag = {0};
    struct cb_coo coo = {.rows = 16, .cols = 320};
    struct cb_csr csr = {0};
    char settings[64];
    coo.row_idx = cb_alloc(400, 4);
    coo.col_idx = cb_alloc(400, 4);
    for (int k = 0; k < 335; k++) {
      coo.row_idx[coo.count] = k < 320 ? 0 : k - 319;
      coo.col_idx[coo.count++] = k < 320 ? k : k - 320;
    }
    assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
    snprintf(settings, sizeof settings, "th1=31 coo-gain=%d", percent);
    struct product product = product_of_matrix(csr, settings);
    assert_int_equal(count_fact(&product, "coo"), percent <= 90 ? 19 : 0); /* the first has 31 */
    assert_int_equal(count_fact(&product, "csr"), percent <= 90 ? 1 : 20);
    product_release(&product);
  }
}

/* Runs of one shape need no array that says where they are. */
static void equal_runs_have_no_pointers(void **state) {
  static const char *const names[] = {"first_block", "nnz_per_run", "vp_per_run", "row_length", "run_panel"};
  (void)state;
  struct cb_diag diag = {0};
  enum { ROWS = 1024, PER_ROW = 5 };
  struct cb_coo coo = {.rows = ROWS, .cols = ROWS};
  struct cb_csr csr = {0};
  coo.row_idx = cb_alloc(ROWS * PER_ROW, 4);
  coo.col_idx = cb_alloc(ROWS * PER_ROW, 4);
  for (int k = 0; k < ROWS * PER_ROW; k++) {
    coo.row_idx[coo.count] = k / PER_ROW;
    coo.col_idx[coo.count++] = (k / PER_ROW + 37 * (k % PER_ROW)) % ROWS;
  }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  struct product product = product_of_matrix(csr, "bake-limit=0");
  const struct cb_region *region = &product.plan->regions[0];
  assert_string_not_equal(fact(&product, "shape"), "none");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    int found = 0;
    for (int a = 0; a < region->arrays_count; a++) {
      if (strcmp(region->arrays[a].name, names[i])) continue;
      assert_int_equal(region->arrays[a].storage, CB_AFFINE);
      found++;
    }
    assert_true(found <= 1);
  }
  product_release(&product);
}

static void aggregation_asks_th0(void **state) {
  (void)state;
  /* Eight aligned sub-blocks, k of them with one nonzero, the others full: a share of k / 8. */
  for (int sparse = 0; sparse <= 8; sparse++) {
    struct cb_diag diag = {0};
    struct cb_coo coo = {.rows = 16, .cols = 128};
    struct cb_csr csr = {0};
    coo.row_idx = cb_alloc(2048, 4);
    coo.col_idx = cb_alloc(2048, 4);
    for (int block = 0; block < 8; block++)
      for (int k = 0; k < (block < sparse ? 1 : 256); k++) {
        coo.row_idx[coo.count] = k / 16;
        coo.col_idx[coo.count++] = 16 * block + k % 16;
      }
    assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
    for (int th0 = 0; th0 <= 100; th0 += 25) {
      char settings[32];
      snprintf(settings, sizeof settings, "th0=%d", th0);
      struct product product = {0};
      set_options(&product.options, settings);
      assert_ok(cb_target_find(&product.target, "sm_90", &diag));
      assert_ok(cb_plan_build(&product.plan, &product.assignment, &csr, &product.target, &product.options, &diag));
      assert_string_equal(fact(&product, "aggregated"), sparse * 100 > th0 * 8 ? "yes" : "no");
      cb_assignment_free(product.assignment);
      cb_plan_free(product.plan);
    }
    cb_csr_release(&csr);
  }
}

/* Alg. 2 gives no thread block more than 8 runs, and no two loads differ by more than the largest run. */
static void heap_balances(void **state) {
  (void)state;
  struct product product = product_of_matrix(random_matrix(640, 640, 120, 3), "balance=heap aggregate=off unit-budget=200");
  const struct cb_plan *plan = product.plan;
  const struct cb_region *region = &plan->regions[0];
  const unsigned char *nonzeros = NULL;
  for (int a = 0; a < region->arrays_count; a++) {
    if (strcmp(region->arrays[a].name, "nnz_per_run")) continue;
    assert_int_equal(region->arrays[a].type, CB_U8);
    nonzeros = product.blob.bytes + cb_blob_offset(plan, 0, a);
  }
  assert_non_null(nonzeros);
  int64_t least = INT64_MAX, most = 0, largest = 0, sum = 0;
  for (int64_t block = 0; block < region->blocks; block++) {
    int64_t load = 0;
    for (int64_t warp = 0; warp < 8; warp++) { /* run w · T + t is warp w's of thread block t */
      const unsigned char of_run = nonzeros[warp * region->blocks + block];
      load += of_run;
      if (of_run > largest) largest = of_run;
    }
    if (load < least) least = load;
    if (load > most) most = load;
    sum += load;
  }
  assert_int_equal(sum, product.csr->nnz);
  assert_true(most - least <= largest);
  product_release(&product);
}

static void panels_are_shared_only_when_planned(void **state) {
  (void)state;
  /* 2048 columns of a panel fit one thread block: 8 runs of 256. */
  struct product whole = product_of_matrix(random_matrix(64, 2048, 300, 5), "team=1 unit-budget=1000000");
  assert_int_equal(whole.plan->carry_sums, 0);
  assert_null(strstr(whole.source.text + whole.source.body, "carry"));
  struct product split = product_of_matrix(random_matrix(64, 4000, 300, 5), "team=1 unit-budget=1000");
  assert_true(split.plan->carry_counters == 4);
  assert_true(split.plan->carry_sums >= 16 * 8);
  assert_null(strstr(split.source.text + split.source.body, "atomicAdd(vectors.y"));
  struct product atomic = product_of_matrix(random_matrix(64, 4000, 300, 5), "team=1 unit-budget=1000 atomics=on");
  assert_int_equal(atomic.plan->carry_sums, 0);
  assert_int_equal(atomic.plan->launches_count, 2); /* y is scaled first */
  assert_non_null(strstr(atomic.source.text + atomic.source.body, "atomicAdd(vectors.y"));
  struct product unshared = product_of_matrix(random_matrix(64, 64, 300, 5), "atomics=on");
  assert_int_equal(unshared.plan->launches_count, 1); /* permitted, not needed */
  product_release(&whole);
  product_release(&split);
  product_release(&atomic);
  product_release(&unshared);
}

/* Every allocation from analysis to text fails once, where these settings take another way. */
static void every_allocation_may_fail(void **state) {
  static const char *const sets[] = {"unit-budget=16", "balance=heap", "recipe=cb-long long-row=4 bake-limit=0"};
  (void)state;
  for (int set = 0; set < 3; set++) assert_true(check_allocations(random_matrix(60, 60, 250, 9), sets[set]) > 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(formats_match_a_count),
      cmocka_unit_test(coo_is_for_uneven_rows),
      cmocka_unit_test(equal_runs_have_no_pointers),
      cmocka_unit_test(aggregation_asks_th0),
      cmocka_unit_test(heap_balances),
      cmocka_unit_test(panels_are_shared_only_when_planned),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
