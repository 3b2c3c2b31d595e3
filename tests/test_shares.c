// SPDX-License-Identifier: Apache-2.0
/* The shares of an extraction: every number of the profile against sorted lists, any number of threads, features at
 * their limits, forests that are added up, damaged or absent, and predictions that stay within what the split takes. */
#include "tests/support.h"

#include "analysis/choose/predictor.h"
#include "analysis/choose/shares.h"
#include "base/memory.h"

#include <omp.h>

static struct cb_shares_profile profile_of(const struct cb_csr *csr) {
  struct cb_shares_profile profile;
  struct cb_diag diag = {0};
  assert_ok(cb_shares_profile(&profile, csr, &diag));
  return profile;
}

/* ---- the slow count: a sorted list, asked element by element */

static int descending(const void *a, const void *b) {
  const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
  return one > other ? -1 : one < other;
}

static int64_t sum_of(const int64_t *sorted, int64_t count) {
  int64_t sum = 0;
  for (int64_t i = 0; i < count; i++) sum += sorted[i];
  return sum;
}

static struct cb_spread slow_spread(int64_t *numbers, int64_t count) {
  static const int tops[] = {1, 2, 3, 4, 5, 10, 50, 100, 200, 300};
  const int64_t nnz = sum_of(numbers, count);
  struct cb_spread spread = {.count = count};
  if (!nnz) return spread;
  qsort(numbers, (size_t)count, sizeof *numbers, descending);
  spread.least = numbers[count - 1];
  spread.most = numbers[0];
  int64_t squares = 0;
  for (int64_t i = 0; i < count; i++) squares += numbers[i] * numbers[i];
  spread.variance = (squares * count - nnz * nnz) * 4096 / (count * count); /* matrices are small enough */
  while (sum_of(numbers, spread.even) * count < nnz * (count - spread.even)) spread.even++;
  for (int i = 0; i < 10; i++) spread.top[i] = sum_of(numbers, tops[i] < count ? tops[i] : count);
  for (int i = 0; i < 9; i++)
    while (10 * sum_of(numbers, spread.within[i]) < (i + 1) * nnz) spread.within[i]++;
  return spread;
}

static void check_profile(const struct cb_csr *csr) {
  int64_t *rows = calloc((size_t)csr->rows + 1, sizeof *rows), *cols = calloc((size_t)csr->cols + 1, sizeof *cols);
  assert_true(rows && cols);
  for (int64_t row = 0; row < csr->rows; row++) rows[row] = cb_csr_row_length(csr, row);
  for (int64_t k = 0; k < csr->nnz; k++) cols[csr->col_idx[k]]++;
  const struct cb_shares_profile slow = {csr->nnz, slow_spread(rows, csr->rows), slow_spread(cols, csr->cols)};
  for (int threads = 1; threads <= 3; threads += 2) {
    omp_set_num_threads(threads);
    const struct cb_shares_profile profile = profile_of(csr);
    const int64_t *got = (const int64_t *)&profile, *wanted = (const int64_t *)&slow;
    for (size_t i = 0; i < sizeof profile / sizeof *got; i++)
      if (got[i] != wanted[i]) fail_msg("number %zu is %lld, not %lld", i, (long long)got[i], (long long)wanted[i]);
  }
  free(rows);
  free(cols);
}

static void every_number_is_that_of_a_sorted_list(void **state) {
  static const char *const matrices[] = {"rmat,scale=9",    "powerlaw,rows=900,cols=700",
                                         "one_row,cols=40", "one_column,rows=40",
                                         "arrow,n=400",     "empty,rows=9,cols=7",
                                         "diagonal,n=500",  "dense,rows=31,cols=350",
                                         "dense_row,n=90",  "long_row,rows=500,per_row=2,long_rows=3,long_length=450"};
  (void)state;
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) {
    struct cb_csr csr = matrix_of(matrices[m]);
    check_profile(&csr);
    cb_csr_release(&csr);
  }
  for (unsigned m = 0; m < 12; m++) {
    struct cb_csr csr = random_matrix(1 + (int64_t)m * 37, 400 - (int64_t)m * 31, 5 + m * 20, m);
    check_profile(&csr);
    cb_csr_release(&csr);
  }
}

/* ---- features */

static struct cb_shares_features features_of(const char *matrix) {
  struct cb_csr csr = matrix_of(matrix);
  const struct cb_shares_profile profile = profile_of(&csr);
  struct cb_shares_features features;
  cb_shares_describe(&features, &profile);
  cb_csr_release(&csr);
  return features;
}

/* 64 rows of 16 nonzeros each, in 16 full columns: places of features are those that shares.h lists. */
static void features_are_logarithms_and_shares(void **state) {
  enum { ROWS = 3, COLS = ROWS + 24, ALL = CB_SHARES_WHOLE };
  const struct cb_shares_features features = features_of("dense,rows=64,cols=16");
  const int32_t *of = features.of;
  (void)state;
  assert_true(of[0] == 6 * 1024 && of[1] == 4 * 1024 && of[2] == 10 * 1024);
  assert_true(of[ROWS] == 10 * 1024 && of[ROWS + 1] == 0 && of[ROWS + 2] == 4 * 1024 && of[ROWS + 3] == 4 * 1024);
  assert_true(of[COLS] == 12 * 1024 && of[COLS + 2] == 6 * 1024);
  assert_int_equal(of[ROWS + 4], ALL / 2);  /* half of equal rows have half of the nonzeros */
  assert_int_equal(of[ROWS + 5], ALL / 64); /* the fullest row */
  assert_int_equal(of[ROWS + 5 + 6], ALL * 50 / 64);
  assert_int_equal(of[ROWS + 5 + 9], ALL);       /* 300 are more than there are */
  assert_int_equal(of[ROWS + 15], ALL * 7 / 64); /* 7 of 64 have 10 percent */
  assert_int_equal(of[COLS + 15], ALL * 2 / 16);
  assert_int_equal(of[COLS + 23], ALL * 15 / 16);
  assert_int_equal(CB_SHARES_FEATURES, COLS + 24);
  struct cb_shares_profile spread = {.rows.variance = 16 * 4096}; /* a deviation of 4 */
  struct cb_shares_features of_spread;
  cb_shares_describe(&of_spread, &spread);
  assert_int_equal(of_spread.of[ROWS + 1], 8 * 1024);
}

/* Thresholds have 16 bits: nothing is larger, whatever the profile holds. */
static void features_fit_thresholds(void **state) {
  struct cb_shares_profile profile;
  struct cb_shares_features features;
  int64_t *counts = (int64_t *)&profile;
  (void)state;
  for (size_t i = 0; i < sizeof profile / sizeof *counts; i++) counts[i] = INT64_C(1) << 45;
  profile.rows.variance = profile.cols.variance = INT64_MAX;
  profile.rows.count = profile.cols.count = 1;
  cb_shares_describe(&features, &profile);
  for (int i = 0; i < CB_SHARES_FEATURES; i++) assert_in_range(features.of[i], 0, INT16_MAX);
  memset(&profile, 0, sizeof profile);
  cb_shares_describe(&features, &profile);
  for (int i = 0; i < CB_SHARES_FEATURES; i++) assert_int_equal(features.of[i], 0);
}

/* One column of 2^31 - 1 nonzeros beside empty ones: squares need more than 64 bits. */
static void variances_do_not_overflow(void **state) {
  struct cb_csr csr = matrix_of("one_column,rows=70000");
  const struct cb_shares_profile profile = profile_of(&csr);
  (void)state;
  assert_int_equal(profile.cols.variance, 0);
  assert_int_equal(profile.cols.even, 1);
  cb_csr_release(&csr);
  csr = matrix_of("dense_column,n=300000");
  const struct cb_shares_profile uneven = profile_of(&csr);
  const long double mean = (long double)uneven.nnz / 300000, most = (long double)uneven.cols.most;
  const long double variance = (most - mean) * (most - mean) / 300000 * 4096; /* but for the other columns */
  assert_true((long double)uneven.cols.variance > 0.99L * variance &&
              (long double)uneven.cols.variance < 1.01L * variance);
  cb_csr_release(&csr);
}

/* ---- forests */

static const struct cb_tree_node some_nodes[] = {{2, 100, 1}, {-1, 6400, 0}, {-1, 3200, 0}, {-1, 20, 0}};

static struct cb_shares predict(int cols, int rows, int gain, int least_gain, int feature) {
  const struct cb_tree_node nodes[] = {
      {2, 100, 1}, {-1, (int16_t)cols, 0}, {-1, 64, 0}, {-1, (int16_t)rows, 0}, {-1, (int16_t)gain, 0}};
  static const struct cb_tree trees[] = {{SHARES_COLS, 3, 0}, {SHARES_ROWS, 1, 3}, {SHARES_GAIN, 1, 4}};
  const struct cb_shares_table table = {"test", 8, least_gain, {trees, nodes, 3, 5}};
  struct cb_shares_features features = {{0}};
  features.of[2] = feature;
  assert_true(cb_shares_table_check(&table));
  return cb_shares_predict(&table, &features);
}

static void check_shares(struct cb_shares shares, int cols, int rows) {
  assert_int_equal(shares.cols, cols);
  assert_int_equal(shares.rows, rows);
}

static void predictions_are_what_the_split_takes(void **state) {
  (void)state;
  check_shares(predict(60 * 64, 40 * 64, 10, 10, 100), 60, 40);
  check_shares(predict(60 * 64, 40 * 64, 10, 10, 101), 1, 1); /* the other leaf; rows are no more than columns */
  check_shares(predict(60 * 64 + 31, 40 * 64 + 32, 10, 10, 0), 60, 41); /* to the nearest */
  check_shares(predict(60 * 64, 70 * 64, 10, 10, 0), 60, 60);
  check_shares(predict(200 * 64, 140 * 64, 10, 10, 0), 100, 100);
  check_shares(predict(60 * 64, 31, 10, 10, 0), 0, 0);
  check_shares(predict(-60 * 64, 40 * 64, 10, 10, 0), 0, 0);
  check_shares(predict(60 * 64, 40 * 64, 9, 10, 0), 0, 0); /* too little to be gained */
  for (int cols = -200; cols < 110 * 64; cols += 97)
    for (int rows = -200; rows < 110 * 64; rows += 89) {
      const struct cb_shares shares = predict(cols, rows, 0, 0, 0);
      assert_in_range(shares.cols, 0, 100);
      assert_in_range(shares.rows, 0, shares.cols);
      assert_int_equal(!shares.cols, !shares.rows);
    }
}

static void several_trees_are_added_up(void **state) {
  static const struct cb_tree trees[] = {{SHARES_COLS, 3, 0}, {SHARES_COLS, 1, 3}, {SHARES_ROWS, 3, 0}};
  const struct cb_shares_table table = {"test", 8, 0, {trees, some_nodes, 3, 4}};
  struct cb_shares_features features = {{0}};
  (void)state;
  features.of[2] = 101;
  check_shares(cb_shares_predict(&table, &features), 50, 50); /* 3220 and 3200 of 64 */
}

static void damaged_tables_are_not_used(void **state) {
  const struct cb_tree outputs[] = {{SHARES_OUTPUTS, 3, 0}}, beyond[] = {{0, 3, 2}}, good[] = {{0, 3, 0}};
  struct cb_tree_node features[3];
  (void)state;
  memcpy(features, some_nodes, sizeof features);
  features[0].feature = CB_SHARES_FEATURES;
  assert_true(cb_shares_table_check(&(struct cb_shares_table){"test", 8, 0, {good, some_nodes, 1, 4}}));
  assert_false(cb_shares_table_check(&(struct cb_shares_table){"test", 8, 0, {outputs, some_nodes, 1, 4}}));
  assert_false(cb_shares_table_check(&(struct cb_shares_table){"test", 8, 0, {beyond, some_nodes, 1, 4}}));
  assert_false(cb_shares_table_check(&(struct cb_shares_table){"test", 8, 0, {good, features, 1, 4}}));
  assert_false(cb_shares_table_check(&(struct cb_shares_table){"test", 8, 0, {good, some_nodes, 0, 4}}));
  assert_null(cb_shares_table_find("no such GPU", 8));
  for (const struct cb_shares_table *table = cb_shares_tables; table->model; table++) {
    const struct cb_forest *forest = &table->forest;
    assert_ptr_equal(cb_shares_table_find(table->model, table->value_bytes), table);
    assert_null(cb_shares_table_find(table->model, 3));
    assert_true(forest->nodes_count * sizeof *forest->nodes + forest->trees_count * sizeof *forest->trees <= 32 << 10);
  }
}

/* ---- memory */

static void failing_allocations_are_told(void **state) {
  struct cb_csr csr = matrix_of("rmat,scale=6");
  struct cb_shares_profile profile;
  enum cb_status s = CB_ERR_MEMORY;
  int failures = 0;
  (void)state;
  omp_set_num_threads(1);
  for (uint64_t nth = 1; s; nth++) {
    struct cb_diag diag = {0};
    cb_memory_fail_at(nth, 0);
    s = cb_shares_profile(&profile, &csr, &diag);
    cb_memory_fail_at(0, 0);
    assert_true(!s || (s == CB_ERR_MEMORY && *diag.message));
    failures += s != CB_OK;
  }
  assert_in_range(failures, 4, 20);
  cb_csr_release(&csr);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_number_is_that_of_a_sorted_list),
      cmocka_unit_test(features_are_logarithms_and_shares),
      cmocka_unit_test(features_fit_thresholds),
      cmocka_unit_test(variances_do_not_overflow),
      cmocka_unit_test(predictions_are_what_the_split_takes),
      cmocka_unit_test(several_trees_are_added_up),
      cmocka_unit_test(damaged_tables_are_not_used),
      cmocka_unit_test(failing_allocations_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
