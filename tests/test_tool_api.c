// SPDX-License-Identifier: Apache-2.0
/* The public C interface: what it accepts, what it refuses and how, and that it gives the same bytes however
 * a matrix is handed over. */
#include "cbgen.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* 3 x 4, a row of it empty:   1 . 2 .  /  . . . .  /  3 4 . 5  */
static const int32_t row_ptr[] = {0, 2, 2, 5};
static const int64_t row_ptr_wide[] = {0, 2, 2, 5};
static const int32_t col_idx[] = {0, 2, 0, 1, 3};
static const double values[] = {1, 2, 3, 4, 5};

static cbgen_csr small(void) {
  return (cbgen_csr){.struct_size = sizeof(cbgen_csr),
                     .rows = 3,
                     .cols = 4,
                     .nnz = 5,
                     .row_ptr_bits = 32,
                     .row_ptr = row_ptr,
                     .col_idx = col_idx,
                     .values = values,
                     .name = "small"};
}

static int setup(void **state) {
  return cbgen_context_create((cbgen_context **)state);
}

static int teardown(void **state) {
  cbgen_context_destroy(*state);
  return 0;
}

static cbgen_kernel *must_generate(cbgen_context *context, const cbgen_csr *matrix) {
  cbgen_kernel *kernel = NULL;
  if (cbgen_generate(context, matrix, &kernel)) fail_msg("%s", cbgen_message(context));
  assert_non_null(kernel);
  return kernel;
}

static void assert_same(const cbgen_kernel *a, const cbgen_kernel *b) {
  size_t a_length, b_length;
  assert_string_equal(cbgen_kernel_source(a, NULL), cbgen_kernel_source(b, NULL));
  const void *a_data = cbgen_kernel_data(a, &a_length), *b_data = cbgen_kernel_data(b, &b_length);
  assert_int_equal(a_length, b_length);
  assert_memory_equal(a_data, b_data, a_length);
}

static void test_generate(void **state) {
  const cbgen_csr matrix = small();
  cbgen_kernel *kernel = must_generate(*state, &matrix);
  size_t length;
  const char *source = cbgen_kernel_source(kernel, &length);
  assert_int_equal(length, strlen(source));
  assert_non_null(strstr(source, "\"small\": 3 × 4, 5 nonzeros, double"));
  assert_non_null(strstr(source, cbgen_kernel_plan(kernel)));
  assert_non_null(strstr(source, "small_load"));
  assert_string_equal(cbgen_kernel_symbol(kernel), "small");
  assert_memory_equal(cbgen_kernel_plan(kernel), "(spmv ", 6);
  assert_int_equal(cbgen_kernel_plan_json(kernel)[0], '{');
  assert_memory_equal(cbgen_kernel_data(kernel, &length), "CBGENDAT", 8);
  assert_true(length >= 64 && length % 256 == 0);
  assert_true(cbgen_kernel_stored_bytes(kernel) >= 5 * 8);
  assert_int_equal(cbgen_kernel_embedded(kernel), 1);
  assert_string_equal(cbgen_message(*state), "");
  cbgen_kernel_free(kernel);
}

static void test_wide_row_pointers_give_the_same(void **state) {
  cbgen_csr matrix = small();
  cbgen_kernel *narrow = must_generate(*state, &matrix);
  matrix.row_ptr_bits = 64;
  matrix.row_ptr = row_ptr_wide;
  cbgen_kernel *wide = must_generate(*state, &matrix);
  assert_same(narrow, wide);
  cbgen_kernel_free(narrow);
  cbgen_kernel_free(wide);
}

static void test_every_form_of_indices_gives_the_same(void **state) {
  for (int form = 0; form < 8; form++) {
    const int base = form & 1;
    int32_t row_narrow[4], col_narrow[5];
    int64_t row_wide[4], col_wide[5];
    for (int i = 0; i < 4; i++) row_wide[i] = row_narrow[i] = row_ptr[i] + base;
    for (int i = 0; i < 5; i++) col_wide[i] = col_narrow[i] = col_idx[i] + base;
    cbgen_csr matrix = small();
    cbgen_kernel *plain = must_generate(*state, &matrix);
    matrix.index_base = base;
    matrix.row_ptr_bits = form & 2 ? 64 : 0;
    matrix.row_ptr = form & 2 ? (void *)row_wide : row_narrow;
    matrix.col_idx_bits = form & 4 ? 64 : 32;
    matrix.col_idx = form & 4 ? (void *)col_wide : col_narrow;
    cbgen_kernel *other = must_generate(*state, &matrix);
    assert_same(plain, other);
    cbgen_kernel_free(plain);
    cbgen_kernel_free(other);
  }
}

static void test_every_form_of_values_gives_the_same(void **state) {
  static const float narrow[] = {1, 2, 3, 4, 5};
  static const double ones[] = {1, 1, 1, 1, 1};
  cbgen_csr matrix = small();
  cbgen_kernel *kernels[4];
  kernels[0] = must_generate(*state, &matrix);
  matrix.values = narrow;
  matrix.value_type = CBGEN_F32;
  kernels[1] = must_generate(*state, &matrix);
  matrix.values = NULL;
  kernels[2] = must_generate(*state, &matrix);
  matrix.values = ones;
  matrix.value_type = CBGEN_F64;
  kernels[3] = must_generate(*state, &matrix);
  assert_same(kernels[0], kernels[1]);
  assert_same(kernels[2], kernels[3]);
  for (int i = 0; i < 4; i++) cbgen_kernel_free(kernels[i]);
}

static void test_later_versions_of_a_struct(void **state) {
  struct {
    cbgen_csr matrix;
    int64_t later;
  } larger = {small(), 0};
  larger.matrix.struct_size = sizeof larger;
  cbgen_kernel_free(must_generate(*state, &larger.matrix));
  larger.later = 1;
  cbgen_kernel *kernel;
  assert_int_equal(cbgen_generate(*state, &larger.matrix, &kernel), CBGEN_ERROR_UNSUPPORTED);
  assert_non_null(strstr(cbgen_message(*state), "members that this version does not know"));
}

static void test_unsorted_and_duplicates_give_the_same(void **state) {
  static const int32_t starts[] = {0, 3, 3, 6}, columns[] = {2, 0, 2, 3, 0, 1};
  static const double parts[] = {0.5, 1, 1.5, 5, 3, 4};
  cbgen_csr matrix = small();
  cbgen_kernel *sorted = must_generate(*state, &matrix);
  matrix.nnz = 6;
  matrix.row_ptr = starts;
  matrix.col_idx = columns;
  matrix.values = parts;
  cbgen_kernel *unsorted = must_generate(*state, &matrix);
  assert_same(sorted, unsorted);
  cbgen_kernel_free(sorted);
  cbgen_kernel_free(unsorted);
}

static void test_kernel_outlives_its_context(void **state) {
  (void)state;
  const cbgen_csr matrix = small();
  cbgen_context *context;
  char recipe[] = "cb";
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  assert_int_equal(cbgen_set(context, "recipe", recipe), CBGEN_OK);
  recipe[0] = '?'; /* the string was copied */
  cbgen_kernel *kernel = must_generate(context, &matrix);
  cbgen_context_destroy(context);
  assert_true(strlen(cbgen_kernel_plan_json(kernel)) > 10 && cbgen_kernel_source(kernel, NULL)[0] == '/');
  cbgen_kernel_free(kernel);
}

static void test_empty_matrices(void **state) {
  static const int32_t zeros[8] = {0};
  for (int64_t rows = 0; rows < 3; rows++) {
    for (int64_t cols = 0; cols < 3; cols++) {
      cbgen_csr matrix = small();
      matrix.rows = rows;
      matrix.cols = cols;
      matrix.nnz = 0;
      matrix.row_ptr = zeros;
      matrix.col_idx = NULL;
      matrix.values = NULL;
      cbgen_kernel_free(must_generate(*state, &matrix));
    }
  }
}

static void test_options(void **state) {
  const cbgen_csr matrix = small();
  assert_int_equal(cbgen_set(*state, "type", "f32"), CBGEN_OK);
  assert_int_equal(cbgen_set(*state, "form", "ax"), CBGEN_OK);
  assert_int_equal(cbgen_set(*state, "embed", "never"), CBGEN_OK);
  assert_int_equal(cbgen_set(*state, "arch", "sm_80"), CBGEN_OK);
  cbgen_kernel *kernel = must_generate(*state, &matrix);
  assert_non_null(strstr(cbgen_kernel_source(kernel, NULL), "nonzeros, float"));
  assert_non_null(strstr(cbgen_kernel_source(kernel, NULL), "sm_80"));
  assert_int_equal(cbgen_kernel_embedded(kernel), 0);
  cbgen_kernel_free(kernel);
}

static void test_refused_options_change_nothing(void **state) {
  static const char *const bad[][2] = {{"type", "f99"},  {"typ", "f64"},   {"th1", "1000"},  {"arch", "sm_1"},
                                       {"embed", "yes"}, {"recipe", "cp"}, {"", "anything"}, {"th1", ""}};
  const cbgen_csr matrix = small();
  cbgen_kernel *before = must_generate(*state, &matrix);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(cbgen_set(*state, bad[i][0], bad[i][1]), CBGEN_ERROR_ARGUMENT);
    assert_string_not_equal(cbgen_message(*state), "");
  }
  assert_int_equal(cbgen_set(*state, NULL, "f64"), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_set(*state, "type", NULL), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_set(NULL, "type", "f64"), CBGEN_ERROR_ARGUMENT);
  cbgen_kernel *after = must_generate(*state, &matrix);
  assert_same(before, after);
  cbgen_kernel_free(before);
  cbgen_kernel_free(after);
}

static void refuse(cbgen_context *context, cbgen_csr matrix, cbgen_status status, const char *message) {
  cbgen_kernel *kernel = (cbgen_kernel *)&matrix;
  assert_int_equal(cbgen_generate(context, &matrix, &kernel), status);
  assert_null(kernel);
  if (!strstr(cbgen_message(context), message))
    fail_msg("'%s' does not contain '%s'", cbgen_message(context), message);
}

#define REFUSE(status, message, ...)                                                                         \
  do {                                                                                                       \
    cbgen_csr matrix = small();                                                                              \
    __VA_ARGS__;                                                                                             \
    refuse(*state, matrix, status, message);                                                                 \
  } while (0)

static void test_bad_views(void **state) {
  static const int32_t starts_at_one[] = {1, 2, 2, 5}, ends_early[] = {0, 2, 2, 4},
                       decreases[] = {0, 4, 2, 5}, overshoots[] = {0, 9, 9, 5}, below[] = {0, 2, 0, -1, 3},
                       beyond[] = {0, 2, 0, 1, 4};
  REFUSE(CBGEN_ERROR_ARGUMENT, "'struct_size'", matrix.struct_size = 0);
  REFUSE(CBGEN_ERROR_ARGUMENT, "'row_ptr_bits' is 16", matrix.row_ptr_bits = 16);
  REFUSE(CBGEN_ERROR_ARGUMENT, "negative", matrix.rows = -1);
  REFUSE(CBGEN_ERROR_ARGUMENT, "negative", matrix.nnz = -5);
  REFUSE(CBGEN_ERROR_LIMIT, "at most 2147483647", matrix.cols = INT64_C(1) << 31);
  REFUSE(CBGEN_ERROR_ARGUMENT, "NULL", matrix.row_ptr = NULL);
  REFUSE(CBGEN_ERROR_ARGUMENT, "NULL", matrix.col_idx = NULL);
  REFUSE(CBGEN_ERROR_ARGUMENT, "'col_idx_bits' is 8", matrix.col_idx_bits = 8);
  REFUSE(CBGEN_ERROR_ARGUMENT, "'index_base' is 2", matrix.index_base = 2);
  REFUSE(CBGEN_ERROR_ARGUMENT, "'value_type' is 6", matrix.value_type = (cbgen_type)6);
  REFUSE(CBGEN_ERROR_ARGUMENT, "choose c128 or c64", matrix.value_type = CBGEN_C64);
  REFUSE(CBGEN_ERROR_ARGUMENT, "'memory' is 7", matrix.memory = (cbgen_memory)7);
  REFUSE(CBGEN_ERROR_ARGUMENT, "from host memory", matrix.memory = CBGEN_DEVICE);
  REFUSE(CBGEN_ERROR_ARGUMENT, "goes from 0 to 5; it goes from 1 to nnz + 1 = 6", matrix.index_base = 1);
  REFUSE(CBGEN_ERROR_ARGUMENT, "goes from 1 to 5", matrix.row_ptr = starts_at_one);
  REFUSE(CBGEN_ERROR_ARGUMENT, "goes from 0 to 4", matrix.row_ptr = ends_early);
  REFUSE(CBGEN_ERROR_ARGUMENT, "'row_ptr[2]' is 2 after 4", matrix.row_ptr = decreases);
  REFUSE(CBGEN_ERROR_ARGUMENT, "'row_ptr[1]' is 9", matrix.row_ptr = overshoots);
  REFUSE(CBGEN_ERROR_ARGUMENT, "'col_idx[3]' is -1 in row 2", matrix.col_idx = below);
  REFUSE(CBGEN_ERROR_ARGUMENT, "'col_idx[4]' is 4 in row 2", matrix.col_idx = beyond);
  assert_int_equal(cbgen_generate(*state, NULL, &(cbgen_kernel *){NULL}), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_generate(*state, &(cbgen_csr){0}, NULL), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_generate(NULL, &(cbgen_csr){0}, &(cbgen_kernel *){NULL}), CBGEN_ERROR_ARGUMENT);
}

static void test_names(void **state) {
  static const char *const given[] = {
      NULL, "", "a \"b\"\\\n*/ c", "2nd",
      "one that is so long that it would not fit a line of the header comment at all"};
  static const char *const symbols[] = {"matrix", "matrix", "a__b______c", "m_2nd", NULL};
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    cbgen_csr matrix = small();
    matrix.name = given[i];
    cbgen_kernel *kernel = must_generate(*state, &matrix);
    if (symbols[i]) assert_string_equal(cbgen_kernel_symbol(kernel), symbols[i]);
    assert_true(strlen(cbgen_kernel_symbol(kernel)) <= 48);
    cbgen_kernel_free(kernel);
  }
}

/* Every allocation fails once: a clean refusal each time, and nothing is left behind (LeakSanitizer). */
static void test_failing_memory(void **state) {
  const cbgen_csr matrix = small();
  cbgen_kernel_free(must_generate(*state, &matrix));
  cb_memory_fail_at(0, 0);
  cbgen_kernel_free(must_generate(*state, &matrix));
  const uint64_t allocations = cb_memory_fail_at(0, 0);
  assert_true(allocations > 10);
  for (uint64_t nth = 1; nth <= allocations; nth++) {
    cbgen_kernel *kernel = NULL;
    cb_memory_fail_at(nth, 1);
    const cbgen_status s = cbgen_generate(*state, &matrix, &kernel);
    cb_memory_fail_at(0, 0);
    if (s != CBGEN_ERROR_MEMORY) fail_msg("allocation %d: status %d", (int)nth, (int)s);
    assert_null(kernel);
  }
  cbgen_kernel_free(must_generate(*state, &matrix));
}

static void test_small_things(void **state) {
  (void)state;
  int major, minor, patch;
  assert_int_equal(sscanf(cbgen_version(), "%d.%d.%d", &major, &minor, &patch), 3);
  assert_string_equal(cbgen_status_name(CBGEN_OK), "ok");
  assert_string_equal(cbgen_status_name(CBGEN_ERROR_INTERNAL), "internal");
  assert_string_equal(cbgen_status_name((cbgen_status)99), "unknown");
  assert_string_equal(cbgen_message(NULL), "");
  assert_int_equal(cbgen_context_create(NULL), CBGEN_ERROR_ARGUMENT);
  cbgen_context_destroy(NULL);
  cbgen_kernel_free(NULL);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_generate),
      TEST(test_wide_row_pointers_give_the_same),
      TEST(test_every_form_of_indices_gives_the_same),
      TEST(test_every_form_of_values_gives_the_same),
      TEST(test_later_versions_of_a_struct),
      TEST(test_unsorted_and_duplicates_give_the_same),
      TEST(test_kernel_outlives_its_context),
      TEST(test_empty_matrices),
      TEST(test_options),
      TEST(test_refused_options_change_nothing),
      TEST(test_bad_views),
      TEST(test_names),
      TEST(test_failing_memory),
      TEST(test_small_things),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
