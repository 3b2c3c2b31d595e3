// SPDX-License-Identifier: Apache-2.0
/* The oracle: bounds computed by hand, classes of non-finite results, exact rows, and planted errors, which a
 * check that is too generous would let pass. */
#include "base/memory.h"
#include "base/real.h"
#include "codegen/source.h"
#include "frontend/generate.h"
#include "runtime/verify/oracle.h"

#include <float.h>
#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct cb_oracle_types doubles = {CB_F64, CB_F64, CB_F64, CB_PLUS_TIMES},
                                    floats = {CB_F32, CB_F32, CB_F32, CB_PLUS_TIMES};

/* Rows (0.5 0.25 −), (− 4 −2), (− − −), (1 1 1), with columns as they stand. */
static int32_t small_rows[] = {0, 2, 4, 4, 7}, small_cols[] = {0, 1, 1, 2, 0, 1, 2};
static double small_values[] = {0.5, 0.25, 4, -2, 1, 1, 1};
static const struct cb_csr small = {
    .rows = 4, .cols = 3, .nnz = 7, .row_ptr = small_rows, .col_idx = small_cols, .values = small_values};

static struct cb_expected multiply(const struct cb_csr *csr, struct cb_product product) {
  struct cb_expected expected;
  struct cb_diag diag = {0};
  if (cb_oracle_multiply(&expected, csr, &product, &diag)) fail_msg("%s", diag.message);
  return expected;
}

static struct cb_comparison compare(const struct cb_expected *expected, const double *y) {
  struct cb_comparison comparison;
  cb_oracle_compare(&comparison, expected, y, CB_F64);
  return comparison;
}

/* Equal but for the last few bits of the tolerance's own computation. */
static void assert_close(double got, double wanted) {
  if (fabs(got - wanted) > wanted * 1e-3) fail_msg("%.9g is not %.9g", got, wanted);
}

static void test_product(void **state) {
  const double x[] = {3, 0.1, -7}, y[] = {1, 2, 3, 4};
  struct cb_expected plain = multiply(&small, (struct cb_product){.types = doubles, .x = x, .alpha = 1});
  struct cb_expected scaled =
      multiply(&small, (struct cb_product){.types = doubles, .x = x, .y = y, .alpha = -2, .beta = 0.5});
  (void)state;
  assert_true(plain.rows == 4 && plain.y[0] == 1.5L + 0.25L * 0.1 && plain.y[1] == 4 * (long double)0.1 + 14);
  assert_true(plain.y[2] == 0 && plain.tolerance[2] == 0);
  assert_true(scaled.y[2] == 1.5L && scaled.y[0] == -2 * plain.y[0] + 0.5L);
  cb_expected_release(&plain);
  cb_expected_release(&scaled);
}

/* By hand: row 0 has n = 2, so k = 6; |A||x| = 0.5·1.5 + 0.25·2.5 = 1.375; with α = −2, β = 3, y₀ = 0.3 the
 * sum of magnitudes is 2·1.375 + 0.9 = 3.65. u = 2⁻⁵³ = 1.1102230e-16: 6 u · 1.375 = 9.1593400e-16. */
static void test_bound(void **state) {
  const double x[] = {1.5, -2.5, 1}, y[] = {0.3, 0, 0, 0};
  struct cb_expected plain = multiply(&small, (struct cb_product){.types = doubles, .x = x, .alpha = 1});
  struct cb_expected scaled =
      multiply(&small, (struct cb_product){.types = doubles, .x = x, .y = y, .alpha = -2, .beta = 3});
  struct cb_expected narrow = multiply(&small, (struct cb_product){.types = floats, .x = x, .alpha = 1});
  const struct cb_oracle_types mixed_types = {CB_F32, CB_F32, CB_F64, CB_PLUS_TIMES};
  struct cb_expected mixed = multiply(&small, (struct cb_product){.types = mixed_types, .x = x, .alpha = 1});
  (void)state;
  assert_close(plain.tolerance[0], 9.15934e-16);
  assert_close(scaled.tolerance[0], 6 * 0x1p-53 * 3.65);
  assert_close(narrow.tolerance[0], 6 * 0x1p-24 * 1.375);          /* 4.917e-7 */
  assert_close(mixed.tolerance[0], 0x1p-24 * 0.125 + 9.15934e-16); /* y = 0.125, rounded to a float */
  cb_expected_release(&plain);
  cb_expected_release(&scaled);
  cb_expected_release(&narrow);
  cb_expected_release(&mixed);
}

static void test_planted_errors(void **state) {
  const double x[] = {1.1, -2.3, 0.7};
  struct cb_expected expected = multiply(&small, (struct cb_product){.types = doubles, .x = x, .alpha = 1});
  (void)state;
  for (int row = 0; row < 4; row++) {
    if (row == 2) continue;
    for (int sign = -1; sign <= 1; sign += 2) {
      double y[4];
      for (int i = 0; i < 4; i++) y[i] = (double)expected.y[i];
      y[row] = (double)(expected.y[row] + sign * 0.5L * expected.tolerance[row]);
      struct cb_comparison c = compare(&expected, y);
      assert_true(c.wrong == 0 && c.first_wrong == -1 && c.worst_ratio < 1);
      y[row] = (double)(expected.y[row] + sign * 2 * expected.tolerance[row]);
      c = compare(&expected, y);
      assert_true(c.wrong == 1 && c.first_wrong == row && c.worst_row == row);
      assert_true(c.worst_ratio > 1.5 && c.worst_ratio < 2.5);
      assert_true(c.got == y[row] && c.expected == expected.y[row] && c.tolerance == expected.tolerance[row]);
    }
  }
  const double wrong_empty[] = {(double)expected.y[0], (double)expected.y[1], 5e-324, (double)expected.y[3]};
  assert_int_equal(compare(&expected, wrong_empty).first_wrong, 2);
  cb_expected_release(&expected);
}

static void test_exact(void **state) {
  const double integers[] = {3, -5, 7}, values[] = {2, 3, 4, -2, 1, 1, 0x1p53};
  const struct cb_product product = {.types = doubles, .values = values, .x = integers, .alpha = 1};
  struct cb_expected expected = multiply(&small, product);
  (void)state;
  assert_true(expected.tolerance[0] == 0 && expected.tolerance[1] == 0);
  assert_true(expected.tolerance[3] > 0); /* 7·2⁵³ may have been rounded */
  double y[] = {-9, -34, 0, (double)expected.y[3]};
  struct cb_comparison c = compare(&expected, y);
  assert_true(c.wrong == 0 && c.exact == 3 && c.rows == 4);
  y[0] = nextafter(-9, 0);
  c = compare(&expected, y);
  assert_true(c.wrong == 1 && c.first_wrong == 0 && isinf(c.worst_ratio));
  cb_expected_release(&expected);
}

static void test_exact_floats(void **state) {
  const double x[] = {0x1p12, 1, 1}, values[] = {0x1p11, 1, 0x1p24, 1, 1, 1, 1};
  const struct cb_product product = {.types = floats, .values = values, .x = x, .alpha = 1};
  struct cb_expected expected = multiply(&small, product);
  (void)state;
  assert_true(expected.tolerance[0] == 0); /* 2²³ + 1 */
  assert_true(expected.tolerance[1] > 0);  /* 2²⁴ + 1 is no float */
  cb_expected_release(&expected);
}

static void test_rounds_values_to_their_type(void **state) {
  const double x[] = {1, 1, 1}, values[] = {0.1, 0.2, 0, 0, 0, 0, 0};
  struct cb_expected expected =
      multiply(&small, (struct cb_product){.types = floats, .values = values, .x = x, .alpha = 1});
  (void)state;
  assert_true(expected.y[0] == (long double)0.1f + 0.2f);
  cb_expected_release(&expected);
}

/* Row 0 sees x₀ and x₁, row 1 x₁ and x₂, row 3 all; row 2 nothing. */
static void check_classes(const double *x, const double *right, int wrong_row, double wrong) {
  struct cb_expected expected = multiply(&small, (struct cb_product){.types = doubles, .x = x, .alpha = 1});
  double y[4];
  memcpy(y, right, sizeof y);
  const struct cb_comparison good = compare(&expected, y);
  if (good.wrong) fail_msg("row %d of a right result is refused", (int)good.first_wrong);
  y[wrong_row] = wrong;
  assert_int_equal(compare(&expected, y).first_wrong, wrong_row);
  cb_expected_release(&expected);
}

static void test_classes(void **state) {
  (void)state;
  const double infinity[] = {INFINITY, 1, 1}, nan_first[] = {NAN, 1, 1}, both[] = {INFINITY, 1, -INFINITY};
  check_classes(infinity, (double[]){INFINITY, 2, 0, INFINITY}, 0, -INFINITY);
  check_classes(infinity, (double[]){INFINITY, 2, 0, INFINITY}, 0, NAN);
  check_classes(infinity, (double[]){INFINITY, 2, 0, INFINITY}, 0, 1e300);
  check_classes(infinity, (double[]){INFINITY, 2, 0, INFINITY}, 1, INFINITY);
  check_classes(nan_first, (double[]){NAN, 2, 0, -NAN}, 0, 1);
  check_classes(nan_first, (double[]){NAN, 2, 0, NAN}, 3, INFINITY);
  check_classes(nan_first, (double[]){NAN, 2, 0, NAN}, 1, NAN);
  check_classes(nan_first, (double[]){NAN, 2, 0, NAN}, 2, NAN);
  check_classes(both, (double[]){INFINITY, INFINITY, 0, NAN}, 3, INFINITY);
}

static void test_explicit_zero_times_infinity(void **state) {
  const double x[] = {INFINITY, 1, 1}, values[] = {0, 1, 1, 1, 1, 1, 1};
  struct cb_expected expected =
      multiply(&small, (struct cb_product){.types = doubles, .values = values, .x = x, .alpha = 1});
  (void)state;
  assert_int_equal(compare(&expected, (double[]){1, 2, 0, INFINITY}).first_wrong, 0);
  assert_int_equal(compare(&expected, (double[]){NAN, 2, 0, INFINITY}).wrong, 0);
  cb_expected_release(&expected);
}

/* 1e308 + 1e308 − 1.5e308 fits, but its first sum does not. */
static void test_overflow(void **state) {
  const double x[] = {1e308, 1e308, -1.5e308}, nan_too[] = {NAN, 1e308, 1e308};
  struct cb_expected expected = multiply(&small, (struct cb_product){.types = doubles, .x = x, .alpha = 1});
  struct cb_expected with_nan = multiply(&small, (struct cb_product){.types = doubles, .x = nan_too, .alpha = 1});
  (void)state;
  assert_true(isinf(expected.tolerance[3]) && isfinite(expected.tolerance[0]));
  double y[] = {7.5e307, INFINITY, 0, 5e307};
  struct cb_comparison c = compare(&expected, y);
  assert_true(c.wrong == 0 && c.unbounded == 2);
  y[3] = INFINITY;
  assert_int_equal(compare(&expected, y).wrong, 0);
  y[0] = INFINITY;
  assert_int_equal(compare(&expected, y).first_wrong, 0);
  assert_int_equal(compare(&with_nan, (double[]){NAN, INFINITY, 0, 1}).first_wrong, 3);
  cb_expected_release(&expected);
  cb_expected_release(&with_nan);
}

static void test_underflow(void **state) {
  const double x[] = {1e-320, 1e-320, 1};
  struct cb_expected expected = multiply(&small, (struct cb_product){.types = doubles, .x = x, .alpha = 1});
  (void)state;
  assert_int_equal(compare(&expected, (double[]){0x1.8p-1 * 1e-320, -2, 0, 1}).wrong, 0);
  assert_int_equal(compare(&expected, (double[]){0.75e-320 + 100 * 5e-324, -2, 0, 1}).first_wrong, 0);
  cb_expected_release(&expected);
}

/* Products of 2^-1 and 1e-320 are rounded to multiples of 2^-1074: each may lose half of one, and the sum nothing. */
static void test_underflow_is_allowed_for(void **state) {
  static int32_t rows[] = {0, 3}, cols[] = {0, 1, 2};
  static double values[] = {0x1p-1, 0x1p-1, 0x1p-1};
  const struct cb_csr csr = {.rows = 1, .cols = 3, .nnz = 3, .row_ptr = rows, .col_idx = cols, .values = values};
  const double x[] = {0x3p-1074, 0x3p-1074, 0x3p-1074}; /* 4.5 of the smallest; three times 1.5 becomes 6 */
  struct cb_expected expected = multiply(&csr, (struct cb_product){.types = doubles, .x = x, .alpha = 1});
  (void)state;
  assert_int_equal(compare(&expected, (double[]){0x6p-1074}).wrong, 0);
  assert_int_equal(compare(&expected, (double[]){0xcp-1074}).wrong, 1);
  cb_expected_release(&expected);
}

/* Of a row so long that the bound of its type means nothing: 2^24 for f32. */
static void test_bound_of_a_row_that_is_too_long(void **state) {
  const int64_t count = (int64_t)1 << 24;
  int32_t rows[] = {0, (int32_t)count}, *cols = calloc((size_t)count, sizeof *cols);
  double *values = calloc((size_t)count, sizeof *values); /* zeros: pages that take no memory */
  (void)state;
  assert_true(cols && values);
  values[0] = 0.5;
  const struct cb_csr csr = {.rows = 1, .cols = 1, .nnz = count, .row_ptr = rows, .col_idx = cols, .values = values};
  const struct cb_product product = {.types = floats, .x = (double[]){1}, .alpha = 1};
  struct cb_expected expected = multiply(&csr, product);
  assert_true(isinf(expected.tolerance[0]));
  cb_expected_release(&expected);
  free(cols);
  free(values);
}

/* The error is above the tolerance by less than their quotient shows. */
static void test_barely_too_large_is_wrong(void **state) {
  long double y[] = {-0x1p-60L, 0};
  double tolerance[] = {1, 1};
  const struct cb_expected expected = {.rows = 2, .y = y, .tolerance = tolerance};
  (void)state;
  const struct cb_comparison c = compare(&expected, (double[]){1, 1});
  assert_true(c.wrong == 1 && c.first_wrong == 0 && c.worst_ratio > 1);
  assert_int_equal(compare(&expected, (double[]){0, 1.25}).first_wrong, 1);
}

/* Whatever thread finds it. */
static void test_first_wrong_row_of_all_threads(void **state) {
  enum { ROWS = 4000 };
  static long double y[ROWS];
  static double tolerance[ROWS], got[ROWS];
  const struct cb_expected expected = {.rows = ROWS, .y = y, .tolerance = tolerance};
  const int threads = omp_get_max_threads();
  (void)state;
  omp_set_num_threads(4);
  for (int64_t i = 100; i < ROWS; i += 100) got[i] = 1;
  for (int again = 0; again < 20; again++) {
    const struct cb_comparison c = compare(&expected, got);
    assert_true(c.first_wrong == 100 && c.wrong == ROWS / 100 - 1 && c.worst_row == 100);
  }
  omp_set_num_threads(threads);
}

/* Sums of random rows in three orders, in both types: all must be accepted, and none is near the bound by
 * luck of a bound that is far too wide (worst ratio above 1e-4). */
static float sum_floats(const struct cb_csr *csr, const double *x, int64_t i, int order) {
  const int64_t first = cb_csr_row(csr, i), count = cb_csr_row_length(csr, i);
  float sum[32] = {0};
  for (int64_t k = 0; k < count; k++) {
    const int64_t at = first + (order == 1 ? count - 1 - k : k);
    sum[order == 2 ? k % 32 : 0] += (float)csr->values[at] * (float)x[csr->col_idx[at]];
  }
  for (int step = 16; step > 0; step /= 2)
    for (int lane = 0; lane < step; lane++) sum[lane] += sum[lane + step];
  return sum[0];
}

static void test_any_order_is_accepted(void **state) {
  struct cb_csr csr;
  struct cb_diag diag = {0};
  (void)state;
  if (cb_matrix_generate(&csr, "random,rows=300,cols=400,density=0.2,values=signed,seed=5", &diag))
    fail_msg("%s", diag.message);
  double *x = cb_alloc((size_t)csr.cols, sizeof *x);
  float *y = cb_alloc((size_t)csr.rows, sizeof *y);
  for (int64_t i = 0; i < csr.cols; i++) x[i] = cb_real_round(sin((double)i), CB_F32);
  struct cb_expected expected = multiply(&csr, (struct cb_product){.types = floats, .x = x, .alpha = 1});
  for (int order = 0; order < 3; order++) {
    struct cb_comparison c;
    for (int64_t i = 0; i < csr.rows; i++) y[i] = sum_floats(&csr, x, i, order);
    cb_oracle_compare(&c, &expected, y, CB_F32);
    assert_true(c.wrong == 0 && c.worst_ratio > 1e-4 && c.rows == csr.rows);
    y[17] += 2 * (float)expected.tolerance[17];
    cb_oracle_compare(&c, &expected, y, CB_F32);
    assert_true(c.wrong == 1 && c.first_wrong == 17);
  }
  cb_expected_release(&expected);
  cb_free(x);
  cb_free(y);
  cb_csr_release(&csr);
}

static const struct cb_oracle_types halves = {CB_F16, CB_F16, CB_F32, CB_PLUS_TIMES},
                                    bfloats = {CB_BF16, CB_BF16, CB_F32, CB_PLUS_TIMES};

/* Row 0: y = 0.125, the sum's bound as with floats. Then the sum is rounded: by u_y of what it may be, at least by the
 * least number. */
static void test_bound_where_y_is_narrower(void **state) {
  const double x[] = {1.5, -2.5, 1}, tiny[] = {0x1p-24, 0, 0}, y[] = {0.25, 0, 0, 0};
  struct cb_expected half = multiply(&small, (struct cb_product){.types = halves, .x = x, .alpha = 1});
  struct cb_expected bfloat = multiply(&small, (struct cb_product){.types = bfloats, .x = x, .alpha = 1});
  struct cb_expected subnormal = multiply(&small, (struct cb_product){.types = halves, .x = tiny, .alpha = 1});
  struct cb_expected added =
      multiply(&small, (struct cb_product){.types = halves, .x = x, .y = y, .alpha = 1, .beta = 0.5});
  (void)state;
  const double sum = 6 * 0x1p-24 * 1.375;
  assert_close(half.tolerance[0], sum + 0x1p-11 * (0.125 + sum) + 0x1p-24);
  assert_close(bfloat.tolerance[0], sum + 0x1p-8 * (0.125 + sum) + 0x1p-133);
  assert_close(subnormal.tolerance[0], 0x1p-24 + 0x1p-36); /* half of 2^-24, which becomes 0 */
  assert_close(added.tolerance[0], 6 * 0x1p-24 * 1.5 + 0x1p-11 * 0.25 + 0x1p-24);
  assert_int_equal(compare(&half, (double[]){0.125 + 0x1p-13, -12, 0, 0}).first_wrong, 0); /* two halves beside it */
  assert_int_equal(compare(&bfloat, (double[]){0.125 + 0x1p-10, -12, 0, 0}).wrong, 1);
  cb_expected_release(&half);
  cb_expected_release(&bfloat);
  cb_expected_release(&subnormal);
  cb_expected_release(&added);
}

/* A sum of integers that floats hold is exact, and y its rounding: 2049 becomes 2048, 2051 2052. */
static void test_exact_sums_are_rounded_once(void **state) {
  const double x[] = {1, 1, 1}, values[] = {2048, 1, 2048, 3, 30000, 30000, 5520};
  const struct cb_product half = {.types = halves, .values = values, .x = x, .alpha = 1};
  const struct cb_product negative = {.types = halves, .values = values, .x = x, .alpha = -1};
  struct cb_expected expected = multiply(&small, half), other = multiply(&small, negative);
  (void)state;
  const struct cb_comparison c = compare(&expected, (double[]){2048, 2052, 0, INFINITY});
  assert_true(c.wrong == 0 && c.exact == 3);
  assert_int_equal(compare(&expected, (double[]){2050, 2052, 0, INFINITY}).first_wrong, 0);
  assert_int_equal(compare(&expected, (double[]){2048, 2050, 0, INFINITY}).first_wrong, 1);
  assert_int_equal(compare(&expected, (double[]){2048, 2052, 0, 65504}).first_wrong, 3);
  assert_int_equal(compare(&other, (double[]){-2048, -2052, 0, INFINITY}).first_wrong, 3);
  assert_int_equal(compare(&other, (double[]){-2048, -2052, 0, -INFINITY}).wrong, 0);
  cb_expected_release(&expected);
  cb_expected_release(&other);
}

/* Where a sum ends as infinity: far beyond 65520 certainly, below it not, and where its bound reaches to both sides,
 * either is right. In bf16 the same sums are far from that. */
static void test_y_overflows(void **state) {
  const double x[] = {0.1, 0.2, 0.3}, beyond[] = {60000, 60000, 600000, 60000, 60000, 60000, 60000},
               values[] = {0.5, 0.25, 60000, 6000, 60160, 60160, 60160};
  const struct cb_product far = {.types = halves, .values = beyond, .x = x, .alpha = 8};
  struct cb_expected expected = multiply(&small, far);
  const struct cb_product at = {.types = halves, .values = values, .x = (double[]){1, 1, 0.0894775390625}, .alpha = 1};
  struct cb_expected near = multiply(&small, at);
  const struct cb_product wide = {.types = bfloats, .values = beyond, .x = x, .alpha = 8};
  struct cb_expected bfloat = multiply(&small, wide);
  (void)state;
  assert_true(isinf(expected.y[0]) && expected.tolerance[0] == 0 && isinf(expected.y[3]));
  assert_int_equal(compare(&expected, (double[]){65504, INFINITY, 0, INFINITY}).first_wrong, 0);
  assert_int_equal(compare(&expected, (double[]){INFINITY, INFINITY, 0, INFINITY}).wrong, 0);
  assert_true(isfinite(near.y[0]) && isfinite(near.tolerance[0]));
  assert_true(isfinite(bfloat.y[0]) && isfinite(bfloat.tolerance[0]) && bfloat.tolerance[0] > 0);
  for (int side = -1; side <= 1; side++) {
    const double edge = 65520 + side * (side ? 1024 : 0), one[] = {edge / 2 + 1 / 3.0, edge / 2 - 1 / 3.0};
    static int32_t rows[] = {0, 2}, cols[] = {0, 1};
    const struct cb_csr csr = {1, 2, 2, .row_ptr = rows, .col_idx = cols, .values = (double *)one};
    const struct cb_oracle_types narrow_y = {CB_F32, CB_F16, CB_F32, CB_PLUS_TIMES};
    struct cb_expected of = multiply(&csr, (struct cb_product){.types = narrow_y, .x = (double[]){1, 1}, .alpha = 1});
    assert_int_equal(compare(&of, (double[]){INFINITY}).wrong, side < 0);
    assert_int_equal(compare(&of, (double[]){side < 0 ? 64512 : 65504}).wrong, side > 0);
    cb_expected_release(&of);
  }
  cb_expected_release(&expected);
  cb_expected_release(&near);
  cb_expected_release(&bfloat);
}

static void test_empty(void **state) {
  int32_t none = 0;
  const struct cb_csr empty = {.cols = 5, .row_ptr = &none};
  const double x[5] = {0};
  struct cb_expected expected = multiply(&empty, (struct cb_product){.types = doubles, .x = x, .alpha = 1});
  (void)state;
  assert_int_equal(compare(&expected, x).rows, 0);
  cb_expected_release(&expected);
}

static void test_selftest(void **state) {
  const struct cb_plan plan = {.matrix_type = CB_F32, .vector_type = CB_F32, .sum_type = CB_F32};
  double expected[4], tolerance[4];
  (void)state;
  cb_oracle_selftest(&small, &plan, expected, tolerance);
  const float x[] = {(float)cb_selftest_x(0), (float)cb_selftest_x(1), (float)cb_selftest_x(2)};
  const float y[] = {0.5f * x[0] + 0.25f * x[1], 4 * x[1] - 2 * x[2], 0, x[0] + x[1] + x[2]};
  for (int i = 0; i < 4; i++) {
    assert_true(fabs((double)y[i] - expected[i]) <= tolerance[i]);
    assert_true(i == 2 ? tolerance[i] == 0 : tolerance[i] > 0 && tolerance[i] < 1e-5);
  }
}

/* Neither tighter, so that a right kernel passes, nor wider, so that a wrong one fails: the oracle's bound, and what is
 * lost when the expected sum is rounded to a double. */
static void test_selftest_tolerance_is_the_oracles(void **state) {
  static const enum cb_type types[] = {CB_F64, CB_F32, CB_F16, CB_BF16};
  struct cb_csr csr;
  struct cb_diag diag = {0};
  (void)state;
  if (cb_matrix_generate(&csr, "random,rows=90,cols=80,density=0.2,values=signed,seed=3", &diag))
    fail_msg("%s", diag.message);
  double *x = cb_alloc((size_t)csr.cols, sizeof *x), expected[90], tolerance[90];
  int rounded = 0;
  for (int t = 0; t < 4; t++) {
    const enum cb_type sum = t < 1 ? CB_F64 : CB_F32;
    const struct cb_plan plan = {.matrix_type = types[t], .vector_type = types[t], .sum_type = sum};
    for (int64_t i = 0; i < csr.cols; i++) x[i] = cb_real_round(cb_selftest_x((uint64_t)i), types[t]);
    struct cb_expected exact =
        multiply(&csr, (struct cb_product){.types = cb_oracle_types_of(&plan), .x = x, .alpha = 1});
    cb_oracle_selftest(&csr, &plan, expected, tolerance);
    for (int64_t i = 0; i < csr.rows; i++) {
      const long double lost = fabsl(exact.y[i] - (long double)(double)exact.y[i]);
      const double wanted = (double)(exact.tolerance[i] + lost);
      assert_true(expected[i] == (double)exact.y[i]);
      assert_true((long double)tolerance[i] >= exact.tolerance[i] + lost);
      assert_true(tolerance[i] <= nextafter(wanted, INFINITY));
      rounded += (double)(exact.tolerance[i] + lost) > exact.tolerance[i];
    }
    cb_expected_release(&exact);
  }
  assert_true(rounded > 50);
  cb_free(x);
  cb_csr_release(&csr);
}

/* The small matrix over the other semirings, by hand; row 2 has no nonzeros. */
static void test_semirings(void **state) {
  static const struct {
    enum cb_semiring semiring;
    double x[3], y[4], plain[4], with_y[4];
  } cases[] = {
      {CB_MIN_PLUS, {1.5, -2.5, NAN}, {-3, 9, 7, NAN}, {-2.25, 1.5, INFINITY, -1.5}, {-3, 1.5, 7, -1.5}},
      {CB_MIN_PLUS,
       {INFINITY, -INFINITY, 0},
       {0, 0, 0, 0},
       {-INFINITY, -INFINITY, INFINITY, -INFINITY},
       {-INFINITY, -INFINITY, 0, -INFINITY}},
      {CB_MAX_TIMES, {1.5, -2.5, NAN}, {-3, -11, 7, NAN}, {0.75, -10, -INFINITY, 1.5}, {0.75, -10, 7, 1.5}},
      {CB_OR_AND, {0, 0, 3}, {0, 0, -2, 0}, {0, 1, 0, 1}, {0, 1, 1, 1}},
      {CB_OR_AND, {NAN, 0, 0}, {0, 5, 0, 0}, {1, 0, 0, 1}, {1, 1, 0, 1}},
  };
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (int beta = 0; beta < 2; beta++) {
      const struct cb_oracle_types types = {CB_F64, CB_F64, CB_F64, cases[c].semiring};
      struct cb_expected expected = multiply(
          &small, (struct cb_product){.types = types, .x = cases[c].x, .y = cases[c].y, .alpha = 1, .beta = beta});
      for (int row = 0; row < 4; row++) {
        assert_true(expected.y[row] == (long double)(beta ? cases[c].with_y : cases[c].plain)[row]);
        assert_true(expected.tolerance[row] == 0);
      }
      cb_expected_release(&expected);
    }
}

/* Products are rounded once, as the sums' type does it; a number beside that is wrong. */
static void test_semirings_round_once(void **state) {
  static const double value = 0.1f, x[] = {0.7f};
  static int32_t row_ptr[] = {0, 1}, column[] = {0};
  const struct cb_csr one = {
      .rows = 1, .cols = 1, .nnz = 1, .row_ptr = row_ptr, .col_idx = column, .values = (double *)&value};
  (void)state;
  for (int narrow = 0; narrow < 2; narrow++)
    for (int times = 0; times < 2; times++) {
      struct cb_oracle_types types = narrow ? floats : doubles;
      types.semiring = times ? CB_MAX_TIMES : CB_MIN_PLUS;
      struct cb_expected expected = multiply(&one, (struct cb_product){.types = types, .x = x, .alpha = 1});
      const double exact = times ? value * x[0] : value + x[0]; /* of floats: exact as a double */
      assert_true((double)expected.y[0] == (narrow ? (double)(float)exact : exact));
      double got = nextafter((double)expected.y[0], 9);
      assert_int_equal(compare(&expected, &got).wrong, 1);
      cb_expected_release(&expected);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_product),
      cmocka_unit_test(test_bound),
      cmocka_unit_test(test_semirings),
      cmocka_unit_test(test_semirings_round_once),
      cmocka_unit_test(test_planted_errors),
      cmocka_unit_test(test_exact),
      cmocka_unit_test(test_exact_floats),
      cmocka_unit_test(test_rounds_values_to_their_type),
      cmocka_unit_test(test_classes),
      cmocka_unit_test(test_explicit_zero_times_infinity),
      cmocka_unit_test(test_overflow),
      cmocka_unit_test(test_underflow),
      cmocka_unit_test(test_underflow_is_allowed_for),
      cmocka_unit_test(test_bound_of_a_row_that_is_too_long),
      cmocka_unit_test(test_barely_too_large_is_wrong),
      cmocka_unit_test(test_first_wrong_row_of_all_threads),
      cmocka_unit_test(test_any_order_is_accepted),
      cmocka_unit_test(test_bound_where_y_is_narrower),
      cmocka_unit_test(test_exact_sums_are_rounded_once),
      cmocka_unit_test(test_y_overflows),
      cmocka_unit_test(test_empty),
      cmocka_unit_test(test_selftest),
      cmocka_unit_test(test_selftest_tolerance_is_the_oracles),
  };
  return cmocka_run_group_tests_name("oracle", tests, NULL, NULL);
}
