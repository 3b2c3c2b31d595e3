// SPDX-License-Identifier: Apache-2.0
/* The panel walk against a dense picture: every nonzero met once, in the right sub-block, in the right place
 * of it, with and without column aggregation; panels that end early, the right edge, and columns near the
 * largest there can be. */
#include "tests/support.h"

#include "analysis/panels.h"

/* The nonzero at (row, col), or -1. */
static int64_t position(const struct cb_csr *csr, int64_t row, int64_t col) {
  if (row >= csr->rows) return -1;
  for (int64_t i = cb_csr_row(csr, row); i < cb_csr_row(csr, row + 1); i++)
    if (csr->col_idx[i] == col) return i;
  return -1;
}

static uint16_t rows_with(const struct cb_csr *csr, int64_t panel, int64_t col) {
  unsigned rows = 0;
  for (int r = 0; r < 16; r++) rows |= (unsigned)(position(csr, 16 * panel + r, col) >= 0) << r;
  return (uint16_t)rows;
}

/* What every sub-block promises, whichever columns it has: masks, counts, rows, and where its nonzeros begin.
 */
static void assert_consistent(const struct cb_csr *csr, int64_t panel, const struct cb_subblock *block) {
  int nonzeros = 0;
  for (int c = 0; c < 16; c++) {
    assert_int_equal(block->column_rows[c], c < block->width ? rows_with(csr, panel, block->columns[c]) : 0);
    for (int r = 0; r < 16; r++) nonzeros += block->column_rows[c] >> r & 1;
  }
  assert_int_equal(block->nonzeros, nonzeros);
  for (int r = 0; r < 16; r++) {
    const uint16_t bits = cb_subblock_row(block, r);
    int64_t next = block->first[r];
    for (int c = 0; c < 16; c++) {
      assert_int_equal(bits >> c & 1, block->column_rows[c] >> r & 1);
      if (bits >> c & 1) assert_int_equal(next++, position(csr, 16 * panel + r, block->columns[c]));
    }
  }
}

static void assert_plain_panel(const struct cb_csr *csr, int64_t panel) {
  struct cb_panel_walk walk;
  struct cb_subblock block;
  cb_panel_open(&walk, csr, panel);
  for (int64_t left = 0; left < csr->cols; left += 16) {
    unsigned any = 0;
    for (int c = 0; c < 16; c++) any |= rows_with(csr, panel, left + c);
    if (!any) continue;
    assert_true(cb_panel_next(&walk, 0, &block));
    assert_int_equal(block.width, 16);
    for (int c = 0; c < 16; c++) assert_int_equal(block.columns[c], left + c);
    assert_consistent(csr, panel, &block);
  }
  assert_false(cb_panel_next(&walk, 0, &block));
  assert_false(cb_panel_next(&walk, 0, &block)); /* and stays at the end */
}

static void assert_aggregated_panel(const struct cb_csr *csr, int64_t panel) {
  struct cb_panel_walk walk;
  struct cb_subblock block = {0};
  int used = 16;
  cb_panel_open(&walk, csr, panel);
  for (int64_t col = 0; col < csr->cols; col++) {
    if (!rows_with(csr, panel, col)) continue;
    if (used == 16) {
      assert_true(cb_panel_next(&walk, 1, &block));
      assert_consistent(csr, panel, &block);
      used = 0;
    }
    assert_true(used < block.width);
    assert_int_equal(block.columns[used++], col);
    for (int c = used; used == block.width && c < 16; c++) assert_int_equal(block.columns[c], col);
    if (used == block.width) used = block.width < 16 ? 17 : 16; /* 17: nothing may follow */
  }
  assert_true(used >= 16);
  assert_false(cb_panel_next(&walk, 1, &block));
}

static void assert_walks(const struct cb_csr *csr) {
  for (int64_t panel = 0; panel < cb_panel_count(csr->rows); panel++) {
    assert_plain_panel(csr, panel);
    assert_aggregated_panel(csr, panel);
  }
}

static void random_matrices(void **state) {
  (void)state;
  static const unsigned densities[] = {0, 4, 30, 150, 500, 900, 1000};
  uint64_t random = 7;
  for (int i = 0; i < 140; i++) {
    const int64_t rows = (int64_t)(draw(&random) % 60), cols = (int64_t)(draw(&random) % 90);
    struct cb_csr csr = random_matrix(rows, cols, densities[i % 7], draw(&random));
    assert_walks(&csr);
    cb_csr_release(&csr);
  }
}

static void sizes_around_multiples_of_sixteen(void **state) {
  (void)state;
  for (int64_t rows = 15; rows <= 33; rows++)
    for (int64_t cols = 15; cols <= 33; cols += 1 + (cols == 17) * 13) {
      struct cb_csr csr = random_matrix(rows, cols, 600, (uint64_t)(rows * cols));
      assert_int_equal(cb_panel_count(rows), rows <= 16 ? 1 : rows <= 32 ? 2 : 3);
      assert_walks(&csr);
      cb_csr_release(&csr);
    }
}

static void no_rows_no_panels(void **state) {
  (void)state;
  assert_int_equal(cb_panel_count(0), 0);
  assert_int_equal(cb_panel_count(1), 1);
  assert_int_equal(cb_panel_count(INT32_MAX), 134217728);
}

/* A full panel whose columns end at the last one there can be: the sub-block's last column would be 2^31 - 1,
 * which is not one of the matrix's (they end at 2^31 - 2) and stands for "none" inside the walk. */
static void last_columns_of_the_widest_matrix(void **state) {
  (void)state;
  enum { ROWS = 16, COLS = 70 };
  const int32_t shift = INT32_MAX - COLS;
  struct cb_csr csr = random_matrix(ROWS, COLS, 1000, 1);
  csr.cols = INT32_MAX;
  for (int64_t i = 0; i < csr.nnz; i++) csr.col_idx[i] += shift;
  for (int aggregated = 0; aggregated < 2; aggregated++) {
    struct cb_panel_walk walk;
    struct cb_subblock block;
    int64_t nonzeros = 0;
    int32_t last = 0;
    cb_panel_open(&walk, &csr, 0);
    while (cb_panel_next(&walk, aggregated, &block)) {
      assert_consistent(&csr, 0, &block);
      if (!aggregated) assert_int_equal(block.columns[0] % 16, 0);
      assert_true(block.columns[0] > last);
      last = block.columns[block.width - 1];
      nonzeros += block.nonzeros;
    }
    assert_int_equal(nonzeros, ROWS * COLS);
    assert_int_equal(last, aggregated ? INT32_MAX - 1 : INT32_MAX);
  }
  cb_csr_release(&csr);
}

/* 64-bit row pointers give the same walk. */
static void wide_row_pointers(void **state) {
  (void)state;
  struct cb_csr csr = random_matrix(37, 50, 200, 3);
  int64_t *wide = cb_alloc((size_t)csr.rows + 1, sizeof *wide);
  for (int64_t row = 0; row <= csr.rows; row++) wide[row] = cb_csr_row(&csr, row);
  cb_free(csr.row_ptr);
  csr.row_ptr = wide;
  csr.wide = 1;
  assert_walks(&csr);
  cb_csr_release(&csr);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_matrices),   cmocka_unit_test(sizes_around_multiples_of_sixteen),
      cmocka_unit_test(no_rows_no_panels), cmocka_unit_test(last_columns_of_the_widest_matrix),
      cmocka_unit_test(wide_row_pointers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
