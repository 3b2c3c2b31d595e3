// SPDX-License-Identifier: Apache-2.0
/* The canonical matrix: coordinates to CSR against a plain reference, the check, the hashes, and failing
 * memory. */
#include "test_frontend.h"

#include "base/memory.h"
#include "frontend/coo.h"

#include <math.h>
#include <omp.h>

static uint64_t state = 42;

static int64_t random_below(int64_t limit) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((state >> 33) % (uint64_t)limit);
}

static struct cb_coo make_coo(int64_t rows, int64_t cols, int64_t count, int pattern) {
  struct cb_coo coo;
  assert_int_equal(cb_coo_alloc(&coo, count, pattern, NULL), CB_OK);
  coo.rows = rows;
  coo.cols = cols;
  return coo;
}

static struct cb_coo coo_of(int64_t rows, int64_t cols, const struct entry *entries, int64_t count) {
  struct cb_coo coo = make_coo(rows, cols, count, 0);
  for (int64_t i = 0; i < count; i++) {
    coo.row_idx[i] = (int32_t)entries[i].row;
    coo.col_idx[i] = (int32_t)entries[i].col;
    coo.values[i] = entries[i].value;
  }
  return coo;
}

enum order { ANY_ORDER, BY_ROW, BY_COLUMN, SORTED };

struct placed {
  struct entry entry;
  int64_t place; /* keeps the sort stable */
  int by_column, whole;
};

static int compare_placed(const void *a, const void *b) {
  const struct placed *x = a, *y = b;
  const int64_t x1 = x->by_column ? x->entry.col : x->entry.row,
                y1 = x->by_column ? y->entry.col : y->entry.row;
  const int64_t x2 = x->by_column ? x->entry.row : x->entry.col,
                y2 = x->by_column ? y->entry.row : y->entry.col;
  if (x1 != y1) return x1 < y1 ? -1 : 1;
  if (x->whole && x2 != y2) return x2 < y2 ? -1 : 1;
  return x->place < y->place ? -1 : x->place > y->place;
}

static void order_entries(struct entry *entries, int64_t count, enum order order) {
  if (order == ANY_ORDER) return;
  struct placed *placed = malloc((size_t)count * sizeof *placed + 1);
  assert_non_null(placed);
  for (int64_t i = 0; i < count; i++)
    placed[i] = (struct placed){entries[i], i, order == BY_COLUMN, order != BY_ROW};
  qsort(placed, (size_t)count, sizeof *placed, compare_placed);
  for (int64_t i = 0; i < count; i++) entries[i] = placed[i].entry;
  free(placed);
}

/* The reference: a dense array of sums in the order given; NAN-free, with a mark for "present". */
static void check_against_dense(int64_t rows, int64_t cols, int64_t count, enum order order, int threads) {
  struct entry *entries = malloc((size_t)count * sizeof *entries + 1);
  double *sums = calloc((size_t)(rows * cols) + 1, sizeof *sums);
  char *present = calloc((size_t)(rows * cols) + 1, 1);
  assert_true(entries && sums && present);
  for (int64_t i = 0; i < count; i++) /* values of all sizes, so that the order of summing shows */
    entries[i] =
        (struct entry){random_below(rows), random_below(cols), 1.0 / (double)(1 + random_below(1 << 20))};
  order_entries(entries, count, order);
  int64_t distinct = 0;
  for (int64_t i = 0; i < count; i++) {
    const int64_t at = entries[i].row * cols + entries[i].col;
    sums[at] = present[at] ? sums[at] + entries[i].value : entries[i].value;
    distinct += !present[at];
    present[at] = 1;
  }
  struct cb_coo coo = coo_of(rows, cols, entries, count);
  struct cb_csr csr;
  struct cb_diag diag = {0};
  omp_set_num_threads(threads);
  assert_int_equal(cb_csr_from_coo(&csr, &coo, &diag), CB_OK);
  assert_null(coo.row_idx);
  if (cb_csr_check(&csr, &diag)) fail_msg("%s", diag.message);
  assert_int_equal(csr.nnz, distinct);
  assert_false(csr.pattern);
  for (int64_t row = 0; row < rows; row++)
    for (int64_t i = cb_csr_row(&csr, row); i < cb_csr_row(&csr, row + 1); i++) {
      const int64_t at = row * cols + csr.col_idx[i];
      assert_true(present[at]);
      assert_memory_equal(&csr.values[i], &sums[at], sizeof(double));
    }
  cb_csr_release(&csr);
  free(entries);
  free(sums);
  free(present);
}

static void coordinates_of_every_order_and_thread_count(void **unused) {
  (void)unused;
  static const int64_t shapes[][3] = {{1, 1, 0},         {1, 1, 5},    {1, 300, 900}, {300, 1, 900},
                                      {7, 5, 20},        {40, 60, 1},  {50, 50, 200}, {3, 2000, 4000},
                                      {500, 300, 20000}, {2, 100, 30}, {1000, 3, 50}};
  static const int threads[] = {1, 2, 5};
  for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++)
    for (int order = ANY_ORDER; order <= SORTED; order++)
      for (int i = 0; i < 3; i++)
        check_against_dense(shapes[shape][0], shapes[shape][1], shapes[shape][2], (enum order)order,
                            threads[i]);
}

static void threads_do_not_change_a_large_matrix(void **unused) {
  (void)unused;
  struct cb_csr first = {0};
  static const int threads[] = {1, 2, 5};
  for (int i = 0; i < 3; i++) {
    struct cb_coo coo = make_coo(20000, 15000, 300000, 0);
    state = 7;
    for (int64_t at = 0; at < coo.count; at++) {
      coo.row_idx[at] = (int32_t)random_below(at % 4 ? 20000 : 3); /* a few long rows */
      coo.col_idx[at] = (int32_t)random_below(15000);
      coo.values[at] = 1.0 / (double)(1 + random_below(1000));
    }
    omp_set_num_threads(threads[i]);
    struct cb_csr csr;
    assert_int_equal(cb_csr_from_coo(&csr, &coo, NULL), CB_OK);
    assert_int_equal(cb_csr_check(&csr, NULL), CB_OK);
    if (i) assert_true(same_matrix(&csr, &first));
    if (i)
      cb_csr_release(&csr);
    else
      first = csr;
  }
  cb_csr_release(&first);
}

static void matrices_without_rows_or_columns(void **unused) {
  (void)unused;
  static const int64_t shapes[][2] = {{0, 0}, {0, 5}, {5, 0}};
  for (int i = 0; i < 3; i++) {
    struct cb_coo coo = make_coo(shapes[i][0], shapes[i][1], 0, 0);
    struct cb_csr csr;
    assert_int_equal(cb_csr_from_coo(&csr, &coo, NULL), CB_OK);
    assert_entries(&csr, shapes[i][0], shapes[i][1], NULL, 0);
    cb_csr_release(&csr);
  }
}

static void patterns_are_ones_until_entries_repeat(void **unused) {
  (void)unused;
  struct cb_coo coo = make_coo(2, 2, 2, 1);
  memcpy(coo.row_idx, (int32_t[]){1, 0}, 8);
  memcpy(coo.col_idx, (int32_t[]){0, 1}, 8);
  struct cb_csr csr;
  assert_int_equal(cb_csr_from_coo(&csr, &coo, NULL), CB_OK);
  assert_true(csr.pattern);
  assert_entries(&csr, 2, 2, (const struct entry[]){{0, 1, 1}, {1, 0, 1}}, 2);
  cb_csr_release(&csr);
  coo = make_coo(2, 2, 3, 1);
  memcpy(coo.row_idx, (int32_t[]){1, 0, 1}, 12);
  memcpy(coo.col_idx, (int32_t[]){0, 1, 0}, 12);
  assert_int_equal(cb_csr_from_coo(&csr, &coo, NULL), CB_OK);
  assert_false(csr.pattern);
  assert_entries(&csr, 2, 2, (const struct entry[]){{0, 1, 1}, {1, 0, 2}}, 2);
  cb_csr_release(&csr);
}

static void mirrored_entries(void **unused) {
  (void)unused;
  const struct entry lower[] = {{1, 0, 2}, {2, 1, -3}, {2, 2, 5}, {0, 1, 0.5}};
  struct cb_coo coo = coo_of(3, 3, lower, 4);
  struct cb_csr csr;
  assert_int_equal(cb_csr_from_mirrored_coo(&csr, &coo, CB_MIRROR_SAME, NULL), CB_OK);
  assert_true(csr.symmetric_file);
  assert_entries(&csr, 3, 3,
                 (const struct entry[]){{0, 1, 2.5}, {1, 0, 2.5}, {1, 2, -3}, {2, 1, -3}, {2, 2, 5}}, 5);
  cb_csr_release(&csr);
  coo = coo_of(3, 3, lower, 2);
  assert_int_equal(cb_csr_from_mirrored_coo(&csr, &coo, CB_MIRROR_NEGATED, NULL), CB_OK);
  assert_entries(&csr, 3, 3, (const struct entry[]){{0, 1, -2}, {1, 0, 2}, {1, 2, 3}, {2, 1, -3}}, 4);
  cb_csr_release(&csr);
}

/* Infinity that was given is data; one that adding up finite entries makes is not. */
static void a_sum_of_duplicates_that_overflows_is_refused(void **unused) {
  (void)unused;
  static const struct {
    double values[2];
    enum cb_status status;
  } cases[] = {{{1e308, 1e308}, CB_ERR_LIMIT},
               {{-1e308, -1e308}, CB_ERR_LIMIT},
               {{INFINITY, 1}, CB_OK},
               {{1e308, 1}, CB_OK}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const struct entry entries[] = {{0, 0, cases[c].values[0]}, {0, 0, cases[c].values[1]}};
    struct cb_csr csr;
    struct cb_coo coo = coo_of(1, 1, entries, 2);
    assert_int_equal(cb_csr_from_coo(&csr, &coo, NULL), cases[c].status);
    cb_csr_release(&csr);
  }
}

static void sizes_beyond_31_bits_are_refused(void **unused) {
  (void)unused;
  struct cb_csr csr;
  struct cb_diag diag = {0};
  struct cb_coo coo = make_coo((int64_t)INT32_MAX + 1, 1, 0, 0);
  assert_int_equal(cb_csr_from_coo(&csr, &coo, &diag), CB_ERR_LIMIT);
  assert_int_equal(cb_csr_alloc(&csr, 1, (int64_t)INT32_MAX + 1, 0, &diag), CB_ERR_LIMIT);
  assert_int_equal(cb_csr_alloc(&csr, -1, 1, 0, &diag), CB_ERR_ARGUMENT);
  assert_int_equal(cb_csr_alloc(&csr, 1, 1, -1, &diag), CB_ERR_ARGUMENT);
  assert_int_equal(cb_csr_alloc(&csr, 1, 1, INT64_MAX / 2, &diag), CB_ERR_MEMORY);
  assert_null(csr.row_ptr);
}

/* A small matrix to break: 3 x 4 with rows {1, 3}, {}, {0, 2, 3}. */
static void small_matrix(struct cb_csr *csr) {
  assert_int_equal(cb_csr_alloc(csr, 3, 4, 5, NULL), CB_OK);
  memcpy(csr->row_ptr, (int32_t[]){0, 2, 2, 5}, 16);
  memcpy(csr->col_idx, (int32_t[]){1, 3, 0, 2, 3}, 20);
  memcpy(csr->values, (double[]){1, 2, 3, 4, 5}, 40);
}

static void every_violation_is_found(void **unused) {
  (void)unused;
  struct cb_csr csr;
  struct cb_diag diag = {0};
  small_matrix(&csr);
  int32_t *pointers = csr.row_ptr;
  assert_int_equal(cb_csr_check(&csr, &diag), CB_OK);
  struct {
    int32_t *place, wrong;
    const char *message;
  } cases[] = {
      {&csr.col_idx[1], 1, "row 0"},  {&csr.col_idx[1], 0, "row 0"}, {&csr.col_idx[4], 4, "row 2"},
      {&csr.col_idx[2], -1, "row 2"}, {&pointers[0], 1, "span"},     {&pointers[3], 4, "span"},
      {&pointers[1], 3, "row 0"},     {&pointers[1], -1, "row 0"},   {&pointers[2], 6, "row 1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int32_t right = *cases[i].place;
    *cases[i].place = cases[i].wrong;
    assert_int_equal(cb_csr_check(&csr, &diag), CB_ERR_INTERNAL);
    assert_non_null(strstr(diag.message, cases[i].message));
    *cases[i].place = right;
  }
  csr.wide = 1;
  assert_int_equal(cb_csr_check(&csr, &diag), CB_ERR_INTERNAL);
  csr.wide = 0;
  csr.cols = (int64_t)INT32_MAX + 1;
  assert_int_equal(cb_csr_check(&csr, &diag), CB_ERR_INTERNAL);
  csr.cols = 4;
  assert_int_equal(cb_csr_check(&csr, &diag), CB_OK);
  cb_csr_release(&csr);
  assert_int_equal(cb_csr_check(&csr, &diag), CB_ERR_INTERNAL);
}

static void sizes_are_not_negative(void **unused) {
  (void)unused;
  struct cb_diag diag = {0};
  assert_int_equal(cb_check_sizes(0, 0, &diag), CB_OK);
  assert_int_equal(cb_check_sizes(-1, 3, &diag), CB_ERR_ARGUMENT);
  assert_int_equal(cb_check_sizes(3, -1, &diag), CB_ERR_ARGUMENT);
  assert_string_equal(diag.message, "a matrix cannot have 3 rows and -1 columns");
}

static int same_hash(struct cb_hash a, struct cb_hash b) {
  return a.high == b.high && a.low == b.low;
}

static void hashes_see_what_they_should(void **unused) {
  (void)unused;
  struct cb_csr csr, other;
  small_matrix(&csr);
  small_matrix(&other);
  const struct cb_hash pattern = cb_csr_pattern_hash(&csr), values = cb_csr_values_hash(&csr);
  other.values[3] = 9;
  assert_true(same_hash(pattern, cb_csr_pattern_hash(&other)));
  assert_false(same_hash(values, cb_csr_values_hash(&other)));
  other.values[3] = 4;
  assert_true(same_hash(values, cb_csr_values_hash(&other)));
  other.col_idx[0] = 0;
  assert_false(same_hash(pattern, cb_csr_pattern_hash(&other)));
  other.col_idx[0] = 1;
  other.cols = 5;
  assert_false(same_hash(pattern, cb_csr_pattern_hash(&other)));
  other.cols = 4;
  ((int32_t *)other.row_ptr)[1] = 1; /* {1}, {3}, {0, 2, 3} */
  assert_false(same_hash(pattern, cb_csr_pattern_hash(&other)));
  int64_t wide[] = {0, 2, 2, 5};
  cb_free(other.row_ptr);
  other.row_ptr = wide;
  other.wide = 1;
  assert_true(same_hash(pattern, cb_csr_pattern_hash(&other)));
  assert_int_equal(cb_csr_bytes(&csr), 4 * 4 + 5 * 12);
  assert_int_equal(cb_csr_bytes(&other), 4 * 8 + 5 * 12);
  other.row_ptr = NULL;
  cb_csr_release(&other);
  cb_csr_release(&csr);
}

static void hashes_do_not_depend_on_threads(void **unused) {
  (void)unused;
  struct cb_csr csr;
  generate(&csr, "random,rows=50000,per_row=5");
  struct cb_hash hashes[3][2];
  for (int i = 0; i < 3; i++) {
    omp_set_num_threads((int[]){1, 2, 5}[i]);
    hashes[i][0] = cb_csr_pattern_hash(&csr);
    hashes[i][1] = cb_csr_values_hash(&csr);
  }
  for (int i = 1; i < 3; i++)
    for (int k = 0; k < 2; k++) assert_true(same_hash(hashes[i][k], hashes[0][k]));
  cb_csr_release(&csr);
}

/* Every allocation in turn fails: the status says so and nothing stays behind (a leak checker sees that). */
static void memory_runs_out(void **unused) {
  (void)unused;
  omp_set_num_threads(2);
  for (int mirror = CB_MIRROR_NONE; mirror <= CB_MIRROR_SAME; mirror++)
    for (int pattern = 0; pattern < 2; pattern++)
      for (uint64_t nth = 1;; nth++) {
        struct cb_coo coo = make_coo(50, 50, 3000, pattern);
        for (int64_t i = 0; i < coo.count; i++) {
          coo.row_idx[i] = (int32_t)random_below(50);
          coo.col_idx[i] = (int32_t)random_below(50);
          if (!pattern) coo.values[i] = (double)i;
        }
        struct cb_csr csr;
        struct cb_diag diag = {0};
        cb_memory_fail_at(nth, 0);
        const enum cb_status s = cb_csr_from_mirrored_coo(&csr, &coo, (enum cb_mirror)mirror, &diag);
        const uint64_t made = cb_memory_fail_at(0, 0);
        if (!s)
          assert_int_equal(cb_csr_check(&csr, NULL), CB_OK); /* a failed shrinking is no failure */
        else
          assert_int_equal(s, CB_ERR_MEMORY);
        cb_csr_release(&csr);
        if (made < nth) {
          assert_int_equal(s, CB_OK);
          assert_true(nth > 4);
          break;
        }
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(coordinates_of_every_order_and_thread_count),
      cmocka_unit_test(threads_do_not_change_a_large_matrix),
      cmocka_unit_test(matrices_without_rows_or_columns),
      cmocka_unit_test(patterns_are_ones_until_entries_repeat),
      cmocka_unit_test(mirrored_entries),
      cmocka_unit_test(a_sum_of_duplicates_that_overflows_is_refused),
      cmocka_unit_test(sizes_beyond_31_bits_are_refused),
      cmocka_unit_test(every_violation_is_found),
      cmocka_unit_test(sizes_are_not_negative),
      cmocka_unit_test(hashes_see_what_they_should),
      cmocka_unit_test(hashes_do_not_depend_on_threads),
      cmocka_unit_test(memory_runs_out),
  };
  return cmocka_run_group_tests_name("the canonical matrix", tests, NULL, NULL);
}
