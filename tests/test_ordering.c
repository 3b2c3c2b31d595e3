// SPDX-License-Identifier: Apache-2.0
/* Lists that threads make side by side, against plain loops: chosen rows, orders by key, rows by length within windows,
 * diagonals by fullness, and the parts that a split cuts a matrix into; for one thread and for more threads than there
 * are ranges. */
#include "tests/support.h"

#include "analysis/diagonals.h"
#include "analysis/ordering.h"
#include "analysis/plan/recipe.h"
#include "analysis/slices.h"

#include <omp.h>

static const int thread_counts[] = {1, 3, 8};
#define EACH_THREADS(i) for (size_t i = 0; i < sizeof thread_counts / sizeof *thread_counts; i++)

/* ---- rows */

static int is_multiple(const void *user, int64_t row) { return row % *(const int64_t *)user == 0; }

static void rows_that_are_wanted(void **state) {
  static const int64_t counts[] = {0, 1, 5, 16384, 16385, 100000};
  static const int64_t steps[] = {1, 7, 16384, 1000000};
  (void)state;
  EACH_THREADS(threads) for (int c = 0; c < 6; c++) for (int s = 0; s < 4; s++) {
    int64_t count = -1;
    omp_set_num_threads(thread_counts[threads]);
    struct cb_arena arena = {0};
    int32_t *rows = cb_rows_where(&arena, counts[c], is_multiple, &steps[s], &count);
    assert_non_null(rows);
    assert_int_equal(count, (counts[c] + steps[s] - 1) / steps[s]);
    for (int64_t i = 0; i < count; i++) assert_int_equal(rows[i], i * steps[s]);
    cb_arena_release(&arena);
  }
}

/* ---- keys */

/* Ascending keys, ascending numbers within a key, and each number with a key once. */
static void check_order(const uint32_t *key, int64_t count, int64_t keys) {
  int32_t *sorted = cb_alloc((size_t)count, sizeof *sorted);
  int64_t wanted = 0;
  assert_non_null(sorted);
  for (int64_t i = 0; i < count; i++) wanted += key[i] < keys;
  assert_int_equal(cb_sort_by_key(sorted, key, count, keys), wanted);
  for (int64_t i = 0; i < wanted; i++) {
    assert_true(key[sorted[i]] < keys);
    assert_true(!i || key[sorted[i - 1]] < key[sorted[i]] ||
                (key[sorted[i - 1]] == key[sorted[i]] && sorted[i - 1] < sorted[i]));
  }
  cb_free(sorted);
}

static void numbers_in_the_order_of_keys(void **state) {
  enum { MOST = 2000000 };
  static const int64_t counts[] = {0, 1, 1000, 16384, 16385, MOST};
  uint32_t *key = cb_alloc(MOST, sizeof *key);
  uint64_t seed = 5;
  (void)state;
  assert_non_null(key);
  for (int64_t i = 0; i < MOST; i++) key[i] = (uint32_t)(draw(&seed) % 100);
  EACH_THREADS(threads) for (int c = 0; c < 6; c++) {
    omp_set_num_threads(thread_counts[threads]);
    check_order(key, counts[c], 100);
    check_order(key, counts[c], 50); /* half of them are left out */
    check_order(key, counts[c], 1);
  }
  cb_memory_fail_at(1, 0);
  assert_int_equal(cb_sort_by_key((int32_t *)key, key, 10, 100), -1);
  cb_memory_fail_at(0, 0);
  cb_free(key);
}

/* ---- rows by length */

static int64_t length_of(const void *lengths, int64_t row) { return ((const int64_t *)lengths)[row]; }

/* Each window holds its own rows: longest first as far as `most` tells lengths apart, then in their order. */
static void check_windows(const int64_t *lengths, int64_t rows, int64_t places, int64_t window, int64_t most) {
  struct cb_arena arena = {0};
  const int32_t *sorted = cb_sorted_rows(&arena, rows, places, window, most, length_of, lengths);
  assert_non_null(sorted);
  for (int64_t i = 0; i < rows; i++) {
    assert_int_equal(sorted[i] / window, i / window);
    if (i % window == 0) continue;
    const int64_t before = cb_smaller(lengths[sorted[i - 1]], most), here = cb_smaller(lengths[sorted[i]], most);
    assert_true(before > here || (before == here && sorted[i - 1] < sorted[i]));
  }
  for (int64_t i = rows; i < places; i++) assert_int_equal(sorted[i], rows);
  cb_arena_release(&arena);
}

static void rows_by_length(void **state) {
  enum { ROWS = 3 * CB_WINDOW + 77 };
  int64_t *lengths = cb_alloc(ROWS, sizeof *lengths);
  uint64_t seed = 5;
  (void)state;
  assert_non_null(lengths);
  for (int64_t row = 0; row < ROWS; row++) lengths[row] = (int64_t)(draw(&seed) % 5000);
  EACH_THREADS(threads) {
    omp_set_num_threads(thread_counts[threads]);
    check_windows(lengths, ROWS, ROWS + 200, CB_WINDOW, CB_MOST_LENGTH);
    check_windows(lengths, ROWS, ROWS, CB_WINDOW, 3);
    check_windows(lengths, ROWS, ROWS, 256, CB_MOST_LENGTH);
    check_windows(lengths, 5, 32, 1024, 100);
  }
  cb_free(lengths);
}

static void sums_before_each(void **state) {
  int64_t first[] = {-1, 5, 0, 7};
  (void)state;
  assert_int_equal(cb_sum_up(first, 3), 12);
  assert_int_equal(first[0], 0);
  assert_int_equal(first[1], 5);
  assert_int_equal(first[2], 5);
  assert_int_equal(first[3], 12);
  assert_int_equal(cb_sum_up(first, 0), 0);
}

/* ---- diagonals */

static void check_diagonals(const struct cb_csr *csr, int64_t least) {
  struct cb_diag diag = {0};
  struct cb_diagonal *list;
  int64_t count, at = 0;
  int64_t *counts = cb_calloc((size_t)(csr->rows + csr->cols), sizeof *counts);
  assert_non_null(counts);
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      counts[csr->col_idx[k] + csr->rows - 1 - row]++;
  assert_ok(cb_diagonals_list(&list, &count, csr, least, &diag));
  for (int64_t key = 0; key < csr->rows + csr->cols; key++) {
    if (counts[key] < least) continue;
    assert_true(at < count && list[at].key == key && list[at].nonzeros == counts[key]);
    at++;
  }
  assert_int_equal(at, count);
  cb_free(list);
  cb_free(counts);
}

static void diagonals_by_fullness(void **state) {
  static const char *const shapes[] = {
      "stencil7,n=12",  "band,n=50000",        "random,rows=300,cols=7000",   "dense,rows=40,cols=90",
      "empty",          "dense_column,n=9000", "upper,n=200",                 "random,rows=90000,per_row=1",
      "one_row,cols=3", "arrow,n=20000",       "hypersparse,rows=400000,keep=0.2"};
  (void)state;
  EACH_THREADS(threads) for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    omp_set_num_threads(thread_counts[threads]);
    struct cb_csr csr = matrix_of(shapes[i]);
    check_diagonals(&csr, 1);
    check_diagonals(&csr, 3);
    check_diagonals(&csr, csr.rows / 2 + 1);
    cb_csr_release(&csr);
  }
}

/* ---- parts */

/* The part's nonzeros are those of the number, in their order, with their rows, columns and origins. */
static void check_part(const struct cb_part *whole, const unsigned char *part_of, int number) {
  struct cb_diag diag = {0};
  struct cb_region_work work = {0};
  int64_t at = 0;
  assert_ok(cb_part_select(&work, whole, part_of, number, 0, &diag));
  const struct cb_csr *csr = whole->csr, *part = work.part.csr;
  for (int64_t row = 0; row < csr->rows; row++) {
    assert_int_equal(cb_csr_row(part, row), at);
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      if (part_of[k] != number) continue;
      assert_int_equal(part->col_idx[at], csr->col_idx[k]);
      assert_int_equal(cb_part_origin(&work.part, at), cb_part_origin(whole, k));
      at++;
    }
  }
  assert_int_equal(cb_csr_row(part, csr->rows), at);
  assert_int_equal(part->nnz, at);
  cb_region_work_release(&work);
}

static void parts_of_a_matrix(void **state) {
  static const char *const shapes[] = {"random,rows=20000,per_row=5", "long_row,rows=5000", "empty", "one_column"};
  uint64_t seed = 9;
  (void)state;
  EACH_THREADS(threads) for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    omp_set_num_threads(thread_counts[threads]);
    struct cb_csr csr = matrix_of(shapes[i]);
    unsigned char *part_of = cb_calloc((size_t)csr.nnz, 1);
    struct cb_region_work work = {0};
    struct cb_diag diag = {0};
    assert_non_null(part_of);
    check_part(&(struct cb_part){.csr = &csr}, part_of, 0); /* all, which is not copied */
    check_part(&(struct cb_part){.csr = &csr}, part_of, 1); /* none */
    for (int64_t k = 0; k < csr.nnz; k++) part_of[k] = (unsigned char)(draw(&seed) % 3);
    for (int number = 0; number < 3; number++) check_part(&(struct cb_part){.csr = &csr}, part_of, number);
    assert_ok(cb_part_select(&work, &(struct cb_part){.csr = &csr}, part_of, 1, 0, &diag));
    memset(part_of, 2, (size_t)csr.nnz);
    check_part(&work.part, part_of, 2); /* all of a part, whose origins it keeps */
    cb_region_work_release(&work);
    cb_free(part_of);
    cb_csr_release(&csr);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_that_are_wanted),
      cmocka_unit_test(numbers_in_the_order_of_keys),
      cmocka_unit_test(rows_by_length),
      cmocka_unit_test(sums_before_each),
      cmocka_unit_test(diagonals_by_fullness),
      cmocka_unit_test(parts_of_a_matrix),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
