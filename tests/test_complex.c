// SPDX-License-Identifier: Apache-2.0
/* Complex numbers: files that hold them, the oracle against sums computed otherwise, what products make of numbers that
 * are not finite, conjugation, and what declines them. */
#include "tests/kernels.h"
#include "tests/layouts.h"
#include "tests/recipes.h"

#include "base/real.h"
#include "runtime/verify/oracle.h"

#include <complex.h>
#include <math.h>

/* ---- files */

static struct cb_csr read_text(const char *text) {
  struct cb_csr csr;
  struct cb_diag diag = {0};
  char path[] = "/tmp/test_complex-XXXXXX.mtx";
  const int descriptor = mkstemps(path, 4);
  FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
  assert_non_null(file);
  assert_int_equal(fputs(text, file) < 0, 0);
  fclose(file);
  assert_ok(cb_matrix_read(&csr, path, NULL, &diag));
  remove(path);
  return csr;
}

/* Rows and columns, 0 where there is no entry. */
static double complex entry(const struct cb_csr *csr, int64_t row, int64_t col) {
  for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
    if (csr->col_idx[k] == col) return csr->values[2 * k] + I * csr->values[2 * k + 1];
  return 0;
}

static void files_are_read(void **state) {
  (void)state;
  static const struct {
    const char *words, *entries;
    double complex upper, lower, last; /* (0, 1), (1, 0), (1, 1) */
    int64_t nnz;
  } cases[] = {
      {"coordinate complex general", "2 2 3\n1 2 1 2\n2 1 3 -4\n2 2 5 6\n", 1 + 2 * I, 3 - 4 * I, 5 + 6 * I, 3},
      {"coordinate complex symmetric", "2 2 2\n2 1 3 -4\n2 2 5 6\n", 3 - 4 * I, 3 - 4 * I, 5 + 6 * I, 3},
      {"coordinate complex skew-symmetric", "2 2 1\n2 1 3 -4\n", -3 + 4 * I, 3 - 4 * I, 0, 2},
      {"coordinate complex hermitian", "2 2 2\n2 1 3 -4\n2 2 5 0\n", 3 + 4 * I, 3 - 4 * I, 5, 3},
      {"coordinate complex general", "2 2 4\n2 2 1 1\n2 2 4 5\n1 2 1 2\n2 1 3 -4\n", 1 + 2 * I, 3 - 4 * I, 5 + 6 * I, 3},
      {"array complex general", "2 2\n0 0\n3 -4\n1 2\n5 6\n", 1 + 2 * I, 3 - 4 * I, 5 + 6 * I, 3},
      {"array complex hermitian", "2 2\n0 0\n0 -4\n5 0\n", 4 * I, -4 * I, 5, 3},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char text[256];
    struct cb_diag diag = {0};
    snprintf(text, sizeof text, "%%%%MatrixMarket matrix %s\n%s", cases[c].words, cases[c].entries);
    struct cb_csr csr = read_text(text);
    assert_true(csr.is_complex);
    assert_ok(cb_csr_check(&csr, &diag));
    assert_int_equal(csr.nnz, cases[c].nnz);
    assert_true(entry(&csr, 0, 1) == cases[c].upper);
    assert_true(entry(&csr, 1, 0) == cases[c].lower);
    assert_true(entry(&csr, 1, 1) == cases[c].last);
    cb_csr_release(&csr);
  }
}

static void real_matrices_become_complex(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_csr csr = random_matrix(9, 7, 300, 1), plain = random_matrix(9, 7, 300, 1);
  for (int twice = 0; twice < 2; twice++) assert_ok(cb_csr_make_complex(&csr, &diag));
  assert_int_equal(cb_csr_numbers(&csr), 2 * plain.nnz);
  for (int64_t k = 0; k < plain.nnz; k++)
    assert_true(csr.values[2 * k] == plain.values[k] && csr.values[2 * k + 1] == 0);
  cb_csr_release(&csr);
  cb_csr_release(&plain);
}

/* ---- the oracle */

enum { ROWS = 40, COLS = 30 };

static double uniform(uint64_t *seed) { return (double)(draw(seed) >> 11) * 0x1p-52 - 1; }

/* Every part of y as C's own complex numbers have it, within the bound; and a bound that is not too generous: the
 * numbers of a sum in float are outside of it for doubles. */
static void the_oracle_knows_complex_products(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  uint64_t seed = 3;
  double x[2 * COLS], y[2 * ROWS];
  struct cb_csr csr = random_matrix(ROWS, COLS, 400, 5);
  assert_ok(cb_csr_make_complex(&csr, &diag));
  for (int64_t k = 0; k < 2 * csr.nnz; k++) csr.values[k] = uniform(&seed);
  for (int i = 0; i < 2 * COLS; i++) x[i] = uniform(&seed);
  for (int i = 0; i < 2 * ROWS; i++) y[i] = uniform(&seed);
  for (int conjugated = 0; conjugated < 2; conjugated++) {
    const struct cb_product product = {.types = {CB_C128, CB_C128, CB_C128, CB_PLUS_TIMES}, .x = x, .y = y,
                                       .alpha = 0.5, .alpha_imag = -2, .beta = 3, .beta_imag = 0.25,
                                       .conjugated = conjugated};
    struct cb_expected expected;
    struct cb_comparison comparison;
    double wide[2 * ROWS], narrow[2 * ROWS];
    for (int i = 0; i < ROWS; i++) {
      double complex sum = 0;
      float complex short_sum = 0;
      for (int64_t k = cb_csr_row(&csr, i); k < cb_csr_row(&csr, i + 1); k++) {
        const double complex a = csr.values[2 * k] + I * (conjugated ? -1 : 1) * csr.values[2 * k + 1];
        const double complex term = a * (x[2 * csr.col_idx[k]] + I * x[2 * csr.col_idx[k] + 1]);
        sum += term;
        short_sum += (float complex)term;
      }
      const double complex after = (3 + 0.25 * I) * (y[2 * i] + I * y[2 * i + 1]);
      const double complex all = (0.5 - 2 * I) * sum + after, shorter = (0.5 - 2 * I) * short_sum + after;
      wide[2 * i] = creal(all), wide[2 * i + 1] = cimag(all);
      narrow[2 * i] = creal(shorter), narrow[2 * i + 1] = cimag(shorter);
    }
    assert_ok(cb_oracle_multiply(&expected, &csr, &product, &diag));
    assert_int_equal(expected.rows, 2 * ROWS);
    cb_oracle_compare(&comparison, &expected, wide, CB_C128);
    assert_int_equal(comparison.wrong, 0);
    assert_true(comparison.worst_ratio > 0.001);
    cb_oracle_compare(&comparison, &expected, narrow, CB_C128);
    assert_true(comparison.wrong > ROWS);
    cb_expected_release(&expected);
  }
  cb_csr_release(&csr);
}

/* One row (2 + 3i) times x, with alpha and beta. */
static void expect_one(double re, double im, double alpha, double alpha_imag, double wanted_re, double wanted_im) {
  int32_t rows[] = {0, 1}, cols[] = {0};
  double values[] = {2, 3}, x[] = {re, im};
  struct cb_diag diag = {0};
  struct cb_expected expected;
  const struct cb_csr csr = {
      .rows = 1, .cols = 1, .nnz = 1, .row_ptr = rows, .col_idx = cols, .values = values, .is_complex = 1};
  const struct cb_product product = {
      .types = {CB_C128, CB_C128, CB_C128, CB_PLUS_TIMES}, .x = x, .alpha = alpha, .alpha_imag = alpha_imag};
  assert_ok(cb_oracle_multiply(&expected, &csr, &product, &diag));
  const double wanted[] = {wanted_re, wanted_im};
  for (int part = 0; part < 2; part++) {
    const double got = (double)expected.y[part];
    if (!(got == wanted[part] || (got != got && wanted[part] != wanted[part])))
      fail_msg("(%g, %g) times (%g, %g): part %d is %g, not %g", re, im, alpha, alpha_imag, part, got, wanted[part]);
    assert_true(expected.tolerance[part] == 0);
  }
  cb_expected_release(&expected);
}

static void numbers_that_are_not_finite(void **state) {
  (void)state;
  expect_one(5, 7, 1, 0, 10 - 21, 14 + 15);
  expect_one(INFINITY, 7, 1, 0, INFINITY, INFINITY);
  expect_one(5, INFINITY, 1, 0, -INFINITY, INFINITY);
  expect_one(INFINITY, INFINITY, 1, 0, NAN, INFINITY);
  expect_one(INFINITY, INFINITY, 2, 0, NAN, INFINITY); /* a real alpha keeps parts apart */
  expect_one(INFINITY, INFINITY, 2, 1, NAN, NAN);
  expect_one(INFINITY, 7, 0, 1, NAN, NAN); /* 0 times infinity, in both */
  expect_one(NAN, 7, 1, 0, NAN, NAN);
}

/* ---- kernels */

/* All recipes take complex numbers, some with conjugated values or several vectors here: pairs of types and recipes are
 * in test_combinations, vectors in test_api_many. */
static void recipes_take_them(void **state) {
  (void)state;
  struct cb_verify_options options;
  struct kernel_batch batch;
  fast_options(&options);
  open_batch(&batch, &options);
  for (int number = 0; cb_recipe_at(number); number++) {
    const struct cb_recipe *recipe = cb_recipe_at(number);
    const char *matrix = recipe->example ? recipe->example : "random,rows=300,cols=200,density=0.05";
    struct cb_diag diag = {0};
    struct cb_options chosen;
    char settings[SETTINGS + 64];
    snprintf(settings, sizeof settings, "%s type=%s conjugate=%s form=%s vectors=%d", settings_of_recipe(recipe),
             number % 2 ? "c64" : "c128", number / 2 % 2 ? "on" : "off", number % 4 == 3 ? "axpby" : "ax",
             number % 3 == 1 ? 3 : 1);
    struct kernel *kernel = next_kernel(&batch);
    snprintf(kernel->name, sizeof kernel->name, "%.100s %.150s", matrix, settings);
    set_options(&chosen, settings);
    assert_ok(cb_matrix_generate(&kernel->csr, matrix, &diag));
    add_kernel(&batch, &chosen);
  }
  /* values by neighbours, and through L1; vectors that threads share */
  static const struct {
    const char *matrix, *settings;
  } accessors[] = {{"random,rows=300,cols=200,density=0.05", "recipe=sell sell-vector=2"},
                   {"random,rows=300,cols=200,density=0.05", "recipe=sell sell-vector=4"},
                   {"block,blocks_r=40,r=2,c=2,per_row=4", "recipe=blocks"},
                   {"stencil9,n=20", "recipe=dia"},
                   {"random,rows=300,cols=200,density=0.05", "recipe=sell vectors=4 form=add copy-x=on"},
                   {"block,blocks_r=40,r=2,c=2,per_row=4", "recipe=blocks vectors=4 vector-threads=2"}};
  for (size_t i = 0; i < sizeof accessors / sizeof *accessors; i++) {
    struct cb_diag diag = {0};
    struct cb_options chosen;
    char settings[SETTINGS];
    struct kernel *kernel = next_kernel(&batch);
    snprintf(settings, sizeof settings, "%s type=%s conjugate=on", accessors[i].settings, i % 2 ? "c64" : "c128");
    snprintf(kernel->name, sizeof kernel->name, "%s", settings);
    set_options(&chosen, settings);
    assert_ok(cb_matrix_generate(&kernel->csr, accessors[i].matrix, &diag));
    add_kernel(&batch, &chosen);
  }
  close_batch(&batch);
  assert_int_equal(batch.failures + batch.refused, 0);
}

static void what_is_not_done_is_declined(void **state) {
  (void)state;
  static const struct {
    const char *settings, *words;
  } cases[] = {{"recipe=sell type=c64 semiring=min-plus", "other semirings than plus-times"},
               {"recipe=sell type=c64 atomics=on", "atomics"},
               {"recipe=du type=c64 du-form=mma", "no exact products for type 'c64'"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct cb_diag diag = {0};
    assert_int_equal(plan_status_of("stencil5,n=12", cases[c].settings, &diag), CB_ERR_UNSUPPORTED);
    if (!strstr(diag.message, cases[c].words)) fail_msg("'%s' says not '%s'", diag.message, cases[c].words);
  }
  struct cb_diag diag = {0};
  struct cb_csr csr = matrix_of("stencil5,n=12");
  assert_ok(cb_csr_make_complex(&csr, &diag));
  assert_int_equal(plan_status(&csr, "recipe=sell type=f64", "sm_90", &diag), CB_ERR_ARGUMENT);
  assert_non_null(strstr(diag.message, "choose c128 or c64"));
  cb_csr_release(&csr);
}

/* Values beyond a float's range are refused, whichever part it is. */
static void values_fit_their_type(void **state) {
  (void)state;
  for (int part = 0; part < 2; part++) {
    struct cb_diag diag = {0};
    struct kernel kernel = {.csr = matrix_of("diagonal,n=40")};
    struct cb_options options;
    assert_ok(cb_csr_make_complex(&kernel.csr, &diag));
    kernel.csr.values[2 * 17 + part] = 1e39;
    set_options(&options, "recipe=sell type=c64");
    assert_int_equal(make_kernel(&kernel, &options, &diag), CB_ERR_LIMIT);
    assert_non_null(strstr(diag.message, "nonzero 17 (counted from 0) is ("));
    release_kernel(&kernel);
  }
}

/* A text with a self-test of both parts is right, and one that multiplies otherwise is told. */
static void self_tests_see_both_parts(void **state) {
  (void)state;
  struct product product = product_of("random,rows=60,cols=50,density=0.2", "recipe=sell type=c128");
  const size_t numbers = 2 * (size_t)product.csr->rows;
  double *expected = calloc(2 * numbers, sizeof *expected);
  struct cb_diag diag = {0};
  struct cb_source source;
  const struct cb_label label = {"test", "test", cb_csr_pattern_hash(product.csr)};
  assert_non_null(expected);
  cb_oracle_selftest(product.csr, product.plan, expected, expected + numbers);
  assert_ok(cb_blob_add_selftest(&product.blob, expected, expected + numbers, (int64_t)numbers, &diag));
  assert_ok(cb_source_emit(&source, product.plan, &label, &product.blob, CB_EMBED_ALWAYS, &diag));
  for (int wrong = 0; wrong < 2; wrong++) {
    static const char right[] = "return sum_t(fma(-value.im, x.im, fma(",
                      other[] = "return sum_t(fma(value.im, x.im, fma(";
    char path[] = "/tmp/test_complex-XXXXXX.cu", *text = replaced(source.text, right, wrong ? other : right, 1);
    struct cb_verify_options options;
    struct cb_verify_file_report report;
    const int descriptor = mkstemps(path, 3);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    assert_true(file && text);
    fputs(text, file);
    fclose(file);
    cb_verify_options_default(&options);
    options.host.compiler = fast_compiler();
    options.host.optimize = options.host.debug = options.host.sanitize = 0;
    assert_int_equal(cb_verify_file(path, &options, &report, &diag) != CB_OK, wrong);
    if (wrong) assert_non_null(strstr(report.output, "the real part of row ")); /* by the text itself */
    remove(path);
    free(text);
  }
  free(expected);
  cb_source_release(&source);
  product_release(&product);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_are_read),
      cmocka_unit_test(real_matrices_become_complex),
      cmocka_unit_test(the_oracle_knows_complex_products),
      cmocka_unit_test(numbers_that_are_not_finite),
      cmocka_unit_test(recipes_take_them),
      cmocka_unit_test(what_is_not_done_is_declined),
      cmocka_unit_test(values_fit_their_type),
      cmocka_unit_test(self_tests_see_both_parts),
  };
  return cmocka_run_group_tests_name("complex", tests, NULL, NULL);
}
