// SPDX-License-Identifier: Apache-2.0
/* Conversions for baselines: what a format holds must be the matrix, entry by entry, and nothing else. */
#include "tests/support.h"

#include "runtime/measure/convert.h"

static const char *const matrices[] = {
    "random,rows=100,cols=73,density=0.07",
    "random,rows=33,cols=200,per_row=9",
    "dense_row,n=65",
    "dense_column,n=67",
    "fe3,n=3",
    "block,blocks_r=20,r=4,c=4",
    "empty,rows=10,cols=7",
    "one_row,cols=50",
    "one_column,rows=50",
    "explicit_zeros,rows=64",
    "staircase,n=40",
    "empty,rows=0,cols=5",
};
enum { MATRICES = sizeof matrices / sizeof *matrices };

/* The matrix as a table of rows × cols values and a table of what is present. */
struct table {
  int64_t rows, cols;
  double *values;
  unsigned char *present;
};

static struct table table_of(int64_t rows, int64_t cols) {
  struct table table = {rows, cols, cb_calloc((size_t)(rows * cols), sizeof(double)),
                        cb_calloc((size_t)(rows * cols), 1)};
  assert_non_null(table.values);
  assert_non_null(table.present);
  return table;
}

static void table_release(struct table *table) {
  cb_free(table->values);
  cb_free(table->present);
}

static void put(struct table *table, int64_t row, int64_t col, double value) {
  if (row < 0 || row >= table->rows || col < 0 || col >= table->cols ||
      table->present[row * table->cols + col])
    fail_msg("row %lld, column %lld: outside, or twice", (long long)row, (long long)col);
  table->present[row * table->cols + col] = 1;
  table->values[row * table->cols + col] = value;
}

static struct table expected_table(const struct cb_csr *csr, enum cb_type type) {
  struct table table = table_of(csr->rows, csr->cols);
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      put(&table, row, csr->col_idx[k], type == CB_F32 ? (double)(float)csr->values[k] : csr->values[k]);
  return table;
}

static double value_at(const void *values, enum cb_type type, int64_t at) {
  return type == CB_F32 ? (double)((const float *)values)[at] : ((const double *)values)[at];
}

static void each(void (*test)(const struct cb_csr *csr, enum cb_type type)) {
  for (int i = 0; i < MATRICES; i++)
    for (int narrow = 0; narrow < 2; narrow++) {
      struct cb_csr csr = matrix_of(matrices[i]);
      test(&csr, narrow ? CB_F32 : CB_F64);
      cb_csr_release(&csr);
    }
}

/* ---- sliced ELL */

static void check_sell(const struct cb_csr *csr, enum cb_type type) {
  static const int64_t slices[] = {1, 2, 16, 32, 128};
  for (size_t s = 0; s < sizeof slices / sizeof *slices; s++) {
    struct cb_diag diag = {0};
    struct cb_sell sell;
    struct table expected = expected_table(csr, type), found = table_of(csr->rows, csr->cols);
    assert_ok(cb_sell_build(&sell, csr, slices[s], type, &diag));
    assert_int_equal(sell.slots, cb_sell_slots(csr, slices[s]));
    assert_int_equal(sell.slices, (csr->rows + slices[s] - 1) / slices[s]);
    assert_int_equal(sell.offsets[0], 0);
    assert_int_equal(sell.offsets[sell.slices], sell.slots);
    for (int64_t i = 0; i < sell.slices; i++) {
      int64_t longest = 0;
      assert_int_equal((sell.offsets[i + 1] - sell.offsets[i]) % slices[s], 0);
      for (int64_t slot = sell.offsets[i]; slot < sell.offsets[i + 1]; slot++) {
        const int64_t row = slices[s] * i + (slot - sell.offsets[i]) % slices[s];
        if (sell.columns[slot] < 0) {
          if (sell.columns[slot] != -1 || value_at(sell.values, type, slot) != 0)
            fail_msg("slot %lld is badly padded", (long long)slot);
        } else
          put(&found, row, sell.columns[slot], value_at(sell.values, type, slot));
        if (row < csr->rows && cb_csr_row_length(csr, row) > longest) longest = cb_csr_row_length(csr, row);
      }
      assert_int_equal(sell.offsets[i + 1] - sell.offsets[i], longest * slices[s]);
    }
    assert_memory_equal(found.present, expected.present, (size_t)(csr->rows * csr->cols));
    assert_memory_equal(found.values, expected.values, (size_t)(csr->rows * csr->cols) * sizeof(double));
    cb_sell_release(&sell);
    table_release(&expected);
    table_release(&found);
  }
}

static void sell_holds_the_matrix(void **state) {
  (void)state;
  each(check_sell);
}

/* ---- block CSR */

static void check_bsr(const struct cb_csr *csr, enum cb_type type) {
  for (int64_t block = 1; block <= 8; block++) {
    struct cb_diag diag = {0};
    struct cb_bsr bsr;
    int64_t count = -1;
    struct table expected = expected_table(csr, type);
    assert_ok(cb_bsr_count(&count, csr, block, &diag));
    assert_ok(cb_bsr_build(&bsr, csr, block, type, &diag));
    assert_int_equal(bsr.blocks, count);
    assert_int_equal(bsr.row_ptr[0], 0);
    assert_int_equal(bsr.row_ptr[bsr.block_rows], count);
    for (int64_t i = 0; i < bsr.block_rows; i++)
      for (int64_t k = bsr.row_ptr[i]; k < bsr.row_ptr[i + 1]; k++) {
        int entries = 0;
        assert_in_range(bsr.columns[k], 0, bsr.block_cols - 1);
        if (k > bsr.row_ptr[i]) assert_true(bsr.columns[k] > bsr.columns[k - 1]);
        for (int64_t j = 0; j < block * block; j++) {
          const int64_t row = block * i + j / block, col = block * bsr.columns[k] + j % block;
          const double value = value_at(bsr.values, type, block * block * k + j);
          const int inside = row < csr->rows && col < csr->cols;
          if (value != (inside ? expected.values[row * csr->cols + col] : 0))
            fail_msg("row %lld, column %lld: another value", (long long)row, (long long)col);
          if (!inside) continue;
          entries += expected.present[row * csr->cols + col];
          expected.present[row * csr->cols + col] = 0;
        }
        assert_true(entries > 0); /* no empty blocks */
      }
    for (int64_t j = 0; j < csr->rows * csr->cols; j++)
      if (expected.present[j]) fail_msg("entry %lld is in no block", (long long)j);
    cb_bsr_release(&bsr);
    table_release(&expected);
  }
}

static void bsr_holds_the_matrix(void **state) {
  (void)state;
  each(check_bsr);
}

/* ---- parts of COO */

static void check_coo(const struct cb_csr *csr, enum cb_type type) {
  struct cb_diag diag = {0};
  struct table expected = expected_table(csr, type), found = table_of(csr->rows, csr->cols);
  int32_t *rows;
  void *values;
  assert_ok(cb_convert_row_indices(&rows, csr, &diag));
  assert_ok(cb_convert_values(&values, csr, type, &diag));
  for (int64_t k = 0; k < csr->nnz; k++) put(&found, rows[k], csr->col_idx[k], value_at(values, type, k));
  assert_memory_equal(found.present, expected.present, (size_t)(csr->rows * csr->cols));
  assert_memory_equal(found.values, expected.values, (size_t)(csr->rows * csr->cols) * sizeof(double));
  cb_free(rows);
  cb_free(values);
  table_release(&expected);
  table_release(&found);
}

static void coo_holds_the_matrix(void **state) {
  (void)state;
  each(check_coo);
}

/* ---- memory */

static void failing_allocations_leave_nothing(void **state) {
  struct cb_csr csr = matrix_of("fe3,n=3");
  (void)state;
  for (int which = 0; which < 2; which++)
    for (uint64_t nth = 1;; nth++) {
      struct cb_diag diag = {0};
      struct cb_sell sell = {0};
      struct cb_bsr bsr = {0};
      cb_memory_fail_at(nth, 0);
      const enum cb_status s =
          which ? cb_bsr_build(&bsr, &csr, 3, CB_F64, &diag) : cb_sell_build(&sell, &csr, 32, CB_F64, &diag);
      cb_memory_fail_at(0, 0);
      if (!s) {
        assert_true(nth > 3);
        cb_sell_release(&sell);
        cb_bsr_release(&bsr);
        break;
      }
      assert_int_equal(s, CB_ERR_MEMORY);
      assert_null(which ? bsr.values : sell.values);
    }
  cb_csr_release(&csr);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sell_holds_the_matrix),
      cmocka_unit_test(bsr_holds_the_matrix),
      cmocka_unit_test(coo_holds_the_matrix),
      cmocka_unit_test(failing_allocations_leave_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
