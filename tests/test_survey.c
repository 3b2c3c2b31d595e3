// SPDX-License-Identifier: Apache-2.0
/* What a survey calls a canonical matrix, on the (fake) GPU: kernels that look at it, and the host at what hashing has
 * brought, say the same. */
#include "tests/survey_finder.h"
#include "tests/api_support.h"
#include "tests/session_support.h"

enum { ROWS = 9, COLS = 7, NONZEROS = 12 };

/* Rows without nonzeros first, between and last, and rows that begin where columns go on ascending. */
static const int32_t row_ptr[ROWS + 1] = {0, 0, 3, 4, 4, 7, 8, 11, 12, 12},
                     columns[NONZEROS] = {0, 1, 4, 5, 2, 3, 4, 0, 0, 5, 6, 6};

/* Of the matrix with these numbers, on the device. */
static enum cb_status survey_of(struct cb_session *session, const int32_t *rows, const int32_t *cols, int is_brought,
                                int wide_columns) {
  const size_t row_bytes = (ROWS + 1) * sizeof *rows;
  uint64_t there[] = {app_alloc(0, row_bytes), app_alloc(0, NONZEROS * 8)};
  int64_t wide[NONZEROS];
  for (int i = 0; i < NONZEROS; i++) wide[i] = cols[i];
  assert_true(app_put(there[0], rows, row_bytes));
  assert_true(app_put(there[1], wide_columns ? (const void *)wide : cols, NONZEROS * (wide_columns ? 8 : 4)));
  const struct cb_view view = {.rows = ROWS,
                               .cols = COLS,
                               .nnz = NONZEROS,
                               .row_ptr = (void *)(uintptr_t)there[0],
                               .col_idx = (void *)(uintptr_t)there[1],
                               .col_wide = wide_columns,
                               .value_type = CB_F64,
                               .on_device = 1};
  struct cb_kernel_finder finder = {find_set, session, NULL, 0, {0}};
  struct cb_survey survey;
  struct cb_csr csr;
  struct cb_diag diag = {0};
  if (is_brought) finder.brought = brought_of(session, &view);
  const enum cb_status s = cb_survey_run(&survey, &csr, &finder, &view, CB_SURVEY_NEAR, 0, &diag);
  if (!s) assert_memory_equal(csr.row_ptr, rows, row_bytes);
  if (!s) assert_memory_equal(csr.remote->near->col_idx, cols, NONZEROS * sizeof *cols);
  if (!s && is_brought) assert_true(csr.remote->near->col_idx == (const void *)finder.brought.columns);
  cb_survey_release(&survey);
  cb_csr_release(&csr);
  for (int i = 0; i < 2; i++) app_free(there[i]);
  return s;
}

static void what_is_no_matrix_is_refused(void **state) {
  static const struct {
    int of_columns, at, value;
    enum cb_status is;
  } changes[] = {{1, 0, 0, CB_OK},  /* as it was */
                 {1, 3, 1, CB_OK},
                 {1, 6, 3, CB_ERR_UNSUPPORTED},  /* twice in a row */
                 {1, 1, 4, CB_ERR_UNSUPPORTED},
                 {1, 10, 4, CB_ERR_UNSUPPORTED}, /* out of order */
                 {1, 9, COLS, CB_ERR_UNSUPPORTED},
                 {1, 0, -1, CB_ERR_UNSUPPORTED},
                 {1, 11, COLS, CB_ERR_UNSUPPORTED}, /* alone in its row */
                 {1, 11, INT32_MAX, CB_ERR_UNSUPPORTED},
                 {0, 0, 1, CB_ERR_UNSUPPORTED},
                 {0, ROWS, NONZEROS - 1, CB_ERR_UNSUPPORTED},
                 {0, 4, 3, CB_ERR_UNSUPPORTED},  /* fewer than before */
                 {0, 5, -5, CB_ERR_UNSUPPORTED},
                 {0, 5, NONZEROS + 9, CB_ERR_UNSUPPORTED}};
  struct cb_session *session = open_compiling_session();
  (void)state;
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
    for (int way = 0; way < 4; way++) {
      int32_t rows[ROWS + 1], cols[NONZEROS];
      memcpy(rows, row_ptr, sizeof rows);
      memcpy(cols, columns, sizeof cols);
      (changes[i].of_columns ? cols : rows)[changes[i].at] = changes[i].value;
      if (survey_of(session, rows, cols, way % 2, way / 2) != changes[i].is)
        fail_msg("change %zu, %s, columns of %d bits", i, way % 2 ? "brought" : "by kernels", way / 2 ? 64 : 32);
    }
  close_compiling_session(session);
}

/* Hashing brings what it leaves to the host: a matrix of whole chunks is none of these. */
static void large_ones_are_not_brought(void **state) {
  struct cb_session *session = open_compiling_session();
  const int64_t rows[] = {CB_HASH_ROWS - 1, CB_HASH_ROWS};
  (void)state;
  for (int i = 0; i < 2; i++) {
    char shape[48];
    snprintf(shape, sizeof shape, "diagonal,n=%lld", (long long)rows[i]);
    struct sample sample = sample_of(shape, (struct form){.on_device = 1});
    struct cb_view view;
    struct cb_diag diag = {0};
    assert_ok(cb_view_take_csr(&view, &sample.view, &diag));
    assert_int_equal(brought_of(session, &view).columns != NULL, i == 0);
    sample_release(&sample);
  }
  close_compiling_session(session);
}

/* The caller's, where they are what kernels take, and need not stay. */
static void row_pointers_are_read_where_they_lie(void **state) {
  struct cb_session *session = open_compiling_session();
  (void)state;
  for (int i = 0; i < 16; i++) {
    const int wide = i % 2, base = i / 2 % 2, keeps = i / 4 % 2, is_brought = i / 8;
    const struct form form = {.row_bits = wide ? 64 : 32, .base = base, .on_device = 1};
    struct sample sample = sample_of("random,rows=50,cols=40,per_row=4", form);
    struct cb_kernel_finder finder = {find_set, session, NULL, 0, {0}};
    struct cb_survey survey;
    struct cb_view view;
    struct cb_csr csr;
    struct cb_diag diag = {0};
    assert_ok(cb_view_take_csr(&view, &sample.view, &diag));
    if (is_brought) finder.brought = brought_of(session, &view);
    assert_ok(cb_survey_run(&survey, &csr, &finder, &view, CB_SURVEY_NEAR, keeps, &diag));
    assert_int_equal(survey.starts == (cb_device_ptr)(uintptr_t)view.row_ptr, is_brought && !wide && !base && !keeps);
    cb_survey_release(&survey);
    cb_csr_release(&csr);
    sample_release(&sample);
  }
  close_compiling_session(session);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {TEST(what_is_no_matrix_is_refused), TEST(large_ones_are_not_brought),
                                     TEST(row_pointers_are_read_where_they_lie)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
