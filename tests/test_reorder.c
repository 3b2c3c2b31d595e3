// SPDX-License-Identifier: Apache-2.0
/* Orders of rows and columns: that they are orders, what they are worth, and that a matrix in one of them is the
 * matrix. */
#include "analysis/reorder.h"
#include "base/memory.h"
#include "tests/support.h"

#include <omp.h>
#include <stdlib.h>

static void check_order(const int32_t *order, int64_t count) {
  char *seen = calloc((size_t)count + 1, 1);
  assert_non_null(seen);
  for (int64_t i = 0; i < count; i++) {
    assert_in_range(order[i], 0, count - 1);
    assert_int_equal(seen[order[i]], 0);
    seen[order[i]] = 1;
  }
  free(seen);
}

static struct cb_reordering order_of(const struct cb_csr *csr, enum cb_reorder kind) {
  struct cb_reordering reordering;
  struct cb_diag diag = {0};
  const struct cb_indices indices = cb_csr_indices(csr);
  assert_ok(cb_reordering_find(&reordering, &indices, kind, &diag));
  assert_int_equal(reordering.method == CB_ORDER_GIVEN, !reordering.rows);
  assert_int_equal(!reordering.columns, !reordering.rows);
  if (reordering.rows) check_order(reordering.rows, csr->rows);
  if (reordering.columns) check_order(reordering.columns, csr->cols);
  if (reordering.rows) assert_true(reordering.sectors < reordering.given_sectors);
  return reordering;
}

/* The matrix with its rows and columns, which are as many, in an order that has nothing to do with it. */
static struct cb_csr shuffled(const struct cb_csr *csr) {
  int32_t *order = calloc((size_t)csr->rows + 1, sizeof *order);
  struct cb_diag diag = {0};
  struct cb_csr moved = {0};
  uint64_t seed = 3;
  struct cb_coo coo = {.rows = csr->rows, .cols = csr->cols, .count = csr->nnz};
  coo.row_idx = cb_alloc((size_t)csr->nnz, 4);
  coo.col_idx = cb_alloc((size_t)csr->nnz, 4);
  coo.values = cb_alloc((size_t)csr->nnz, 8);
  for (int64_t i = 0; i < csr->rows; i++) order[i] = (int32_t)i;
  for (int64_t i = csr->rows - 1; i > 0; i--) {
    const int64_t j = (int64_t)(draw(&seed) % (uint64_t)(i + 1));
    const int32_t kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      coo.row_idx[k] = order[row];
      coo.col_idx[k] = order[csr->col_idx[k]];
      coo.values[k] = csr->values[k];
    }
  free(order);
  assert_ok(cb_csr_from_coo(&moved, &coo, &diag));
  return moved;
}

static struct cb_csr shuffled_shape(const char *specification) {
  struct cb_csr csr = matrix_of(specification);
  struct cb_csr moved = shuffled(&csr);
  cb_csr_release(&csr);
  return moved;
}

/* What shapes are given as, and what is found for them. */
static void test_methods(void **state) {
  static const struct {
    const char *shape;
    int shuffle;
    enum cb_reorder kind;
    enum cb_order_method method;
  } cases[] = {
      {"stencil7,n=12", 0, CB_REORDER_SYMMETRIC, CB_ORDER_GIVEN},
      {"stencil7,n=12", 1, CB_REORDER_SYMMETRIC, CB_ORDER_BAND},
      {"fe3,n=7", 1, CB_REORDER_UNSYMMETRIC, CB_ORDER_BAND},
      {"road,n=40,keep=0.3", 1, CB_REORDER_SYMMETRIC, CB_ORDER_BAND}, /* many components, and single nodes */
      {"rmat,scale=11,edge_factor=12", 0, CB_REORDER_SYMMETRIC, CB_ORDER_BY_LENGTH},
      {"rmat,scale=11,edge_factor=12", 0, CB_REORDER_UNSYMMETRIC, CB_ORDER_BY_LENGTH},
      {"dense,rows=40,cols=40", 0, CB_REORDER_SYMMETRIC, CB_ORDER_GIVEN},
      {"uniform,n=400,per_row=6", 0, CB_REORDER_SYMMETRIC, CB_ORDER_GIVEN}, /* a band would save an eighth */
      {"empty,rows=50,cols=50", 0, CB_REORDER_SYMMETRIC, CB_ORDER_GIVEN},
      {"empty,rows=0,cols=0", 0, CB_REORDER_SYMMETRIC, CB_ORDER_GIVEN},
      {"empty,rows=0,cols=9", 0, CB_REORDER_UNSYMMETRIC, CB_ORDER_GIVEN},
      {"empty,rows=9,cols=0", 0, CB_REORDER_UNSYMMETRIC, CB_ORDER_GIVEN},
      {"rmat,scale=11,edge_factor=12", 0, CB_REORDER_NONE, CB_ORDER_GIVEN},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_csr csr = cases[i].shuffle ? shuffled_shape(cases[i].shape) : matrix_of(cases[i].shape);
    struct cb_reordering reordering = order_of(&csr, cases[i].kind);
    if (reordering.method != cases[i].method)
      fail_msg("%s: method %d, %.3f sectors instead of %.3f", cases[i].shape, (int)reordering.method,
               reordering.sectors, reordering.given_sectors);
    if (cases[i].kind == CB_REORDER_SYMMETRIC && reordering.rows)
      assert_memory_equal(reordering.rows, reordering.columns, (size_t)csr.rows * sizeof *reordering.rows);
    cb_reordering_release(&reordering);
    cb_csr_release(&csr);
  }
}

/* In the order that is found, entries are at most `most` from the diagonal. */
static void assert_band(struct cb_csr *csr, int64_t most) {
  struct cb_reordering reordering = order_of(csr, CB_REORDER_SYMMETRIC);
  struct cb_diag diag = {0};
  assert_int_equal(reordering.method, CB_ORDER_BAND);
  assert_ok(cb_csr_reorder(csr, &reordering, &diag));
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      assert_in_range(csr->col_idx[k] - row + most, 0, 2 * most);
  cb_reordering_release(&reordering);
}

/* Reverse Cuthill-McKee gives a shuffled band back: of a path, which has two ends, its own. */
static void test_band(void **state) {
  struct cb_csr path = shuffled_shape("tridiagonal,n=500");
  (void)state;
  assert_band(&path, 1);
  cb_csr_release(&path);
}

static void connect(struct cb_coo *coo, int32_t a, int32_t b) {
  for (int i = 0; i < 2; i++) {
    coo->row_idx[coo->count] = i ? b : a;
    coo->col_idx[coo->count] = i ? a : b;
    coo->values[coo->count++] = 1;
  }
}

/* A ladder, and a node that hangs at its middle: that has the least degree, but an order that begins there has both
 * halves of the ladder side by side. */
static void test_begins_at_an_end(void **state) {
  enum { RUNGS = 250, NODES = 2 * RUNGS + 1, ENTRIES = 2 * (3 * RUNGS - 2 + 1) };
  struct cb_coo coo = {.rows = NODES, .cols = NODES};
  struct cb_csr ladder = {0};
  struct cb_diag diag = {0};
  (void)state;
  coo.row_idx = cb_alloc(ENTRIES, 4);
  coo.col_idx = cb_alloc(ENTRIES, 4);
  coo.values = cb_alloc(ENTRIES, 8);
  for (int i = 0; i < RUNGS; i++) {
    connect(&coo, 2 * i, 2 * i + 1);
    if (i + 1 < RUNGS) connect(&coo, 2 * i, 2 * i + 2);
    if (i + 1 < RUNGS) connect(&coo, 2 * i + 1, 2 * i + 3);
  }
  connect(&coo, NODES - 1, RUNGS);
  assert_int_equal(coo.count, ENTRIES);
  assert_ok(cb_csr_from_coo(&ladder, &coo, &diag));
  struct cb_csr moved = shuffled(&ladder);
  assert_band(&moved, 3);
  cb_csr_release(&moved);
  cb_csr_release(&ladder);
}

/* P A Q, entry by entry. */
static void test_reorder(void **state) {
  static const char *const shapes[] = {"rmat,scale=9,edge_factor=6", "rmat,scale=11,edge_factor=12"};
  struct cb_diag diag = {0};
  int by_length = 0;
  (void)state;
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int kind = CB_REORDER_SYMMETRIC; kind <= CB_REORDER_UNSYMMETRIC; kind++) {
      struct cb_csr csr = matrix_of(shapes[s]), moved = matrix_of(shapes[s]);
      struct cb_reordering reordering = order_of(&csr, (enum cb_reorder)kind);
      double *row_of = calloc((size_t)csr.cols, sizeof *row_of);
      assert_non_null(row_of);
      assert_non_null(reordering.rows);
      assert_ok(cb_csr_reorder(&moved, &reordering, &diag));
      assert_ok(cb_csr_check(&moved, &diag));
      assert_int_equal(moved.nnz, csr.nnz);
      assert_string_equal(moved.name, csr.name);
      for (int64_t row = 0; row < csr.rows; row++) {
        const int64_t from = reordering.rows[row];
        for (int64_t k = cb_csr_row(&csr, from); k < cb_csr_row(&csr, from + 1); k++)
          row_of[csr.col_idx[k]] = csr.values[k];
        assert_int_equal(cb_csr_row_length(&moved, row), cb_csr_row_length(&csr, from));
        for (int64_t k = cb_csr_row(&moved, row); k < cb_csr_row(&moved, row + 1); k++)
          assert_true(moved.values[k] == row_of[reordering.columns[moved.col_idx[k]]]);
      }
      if (reordering.method == CB_ORDER_BY_LENGTH && kind == CB_REORDER_UNSYMMETRIC) {
        for (int64_t row = 1; row < csr.rows; row++)
          assert_true(cb_csr_row_length(&moved, row) <= cb_csr_row_length(&moved, row - 1));
        by_length++;
      }
      free(row_of);
      cb_reordering_release(&reordering);
      cb_csr_release(&csr);
      cb_csr_release(&moved);
    }
  assert_true(by_length > 0);
}

static void test_any_number_of_threads_finds_the_same(void **state) {
  const int threads = omp_get_max_threads();
  struct cb_csr csr = matrix_of("rmat,scale=11,edge_factor=12");
  struct cb_reordering one, many;
  (void)state;
  omp_set_num_threads(1);
  one = order_of(&csr, CB_REORDER_UNSYMMETRIC);
  omp_set_num_threads(5);
  many = order_of(&csr, CB_REORDER_UNSYMMETRIC);
  omp_set_num_threads(threads);
  assert_true(one.sectors == many.sectors && one.given_sectors == many.given_sectors);
  assert_memory_equal(one.rows, many.rows, (size_t)csr.rows * sizeof *one.rows);
  assert_memory_equal(one.columns, many.columns, (size_t)csr.cols * sizeof *one.columns);
  cb_reordering_release(&one);
  cb_reordering_release(&many);
  cb_csr_release(&csr);
}

static void test_one_order_for_both_needs_a_square(void **state) {
  struct cb_csr csr = matrix_of("random,rows=50,cols=40,density=0.1");
  struct cb_reordering reordering;
  struct cb_diag diag = {0};
  const struct cb_indices indices = cb_csr_indices(&csr);
  (void)state;
  assert_int_equal(cb_reordering_find(&reordering, &indices, CB_REORDER_SYMMETRIC, &diag), CB_ERR_ARGUMENT);
  assert_non_null(strstr(diag.message, "50 rows and 40 columns"));
  cb_reordering_release(&reordering);
  cb_csr_release(&csr);
}

/* Each allocation fails once. */
static void test_memory(void **state) {
  const struct {
    const char *shape;
    int shuffle;
  } cases[] = {{"rmat,scale=8,edge_factor=12", 0}, {"stencil7,n=8", 1}};
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct cb_csr csr = cases[c].shuffle ? shuffled_shape(cases[c].shape) : matrix_of(cases[c].shape);
    const struct cb_indices indices = cb_csr_indices(&csr);
    const int threads = omp_get_max_threads();
    enum cb_status s = CB_ERR_MEMORY;
    omp_set_num_threads(1);
    for (uint64_t nth = 1; s; nth++) {
      struct cb_reordering reordering;
      struct cb_diag diag = {0};
      cb_memory_fail_at(nth, 0);
      s = cb_reordering_find(&reordering, &indices, CB_REORDER_UNSYMMETRIC, &diag);
      if (!s) s = cb_csr_reorder(&csr, &reordering, &diag);
      const uint64_t used = cb_memory_fail_at(0, 0);
      if (used < nth) assert_ok(s);
      else assert_int_equal(s, CB_ERR_MEMORY);
      cb_reordering_release(&reordering);
    }
    omp_set_num_threads(threads);
    cb_csr_release(&csr);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_methods),
      cmocka_unit_test(test_band),
      cmocka_unit_test(test_begins_at_an_end),
      cmocka_unit_test(test_reorder),
      cmocka_unit_test(test_any_number_of_threads_finds_the_same),
      cmocka_unit_test(test_one_order_for_both_needs_a_square),
      cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
