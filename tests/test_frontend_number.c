// SPDX-License-Identifier: Apache-2.0
/* Decimal to double against strtod, bit by bit, and the forms that strtod does not know. */
#include "test_frontend.h"

#include "frontend/number.h"
#include "tests/locale_support.h"
#include "tests/skips.h"

#include <math.h>

static uint64_t state = 0x9e3779b97f4a7c15;

static uint64_t next_random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

/* Parses `text`, which is copied to a block that ends right after its terminator, so that a sanitizer sees
 * any read beyond the limit. */
static void check_text(const char *text) {
  const size_t length = strlen(text);
  char *copy = malloc(length + 1), *end;
  assert_non_null(copy);
  memcpy(copy, text, length);
  copy[length] = '\n';
  const double expected = strtod(text, &end);
  double value = -1;
  const char *after = cb_parse_double(copy, copy + length + 1, &value);
  if (!after || after - copy != end - text || memcmp(&value, &expected, sizeof value))
    fail_msg("'%s': %a is not %a (%td of %td characters)", text, value, expected, after ? after - copy : -1,
             end - text);
  free(copy);
}

static void doubles_of_any_bits_in_any_length(void **unused) {
  (void)unused;
  char text[512];
  for (int i = 0; i < 600000; i++) {
    const uint64_t bits = next_random();
    double value;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value)) continue;
    snprintf(text, sizeof text, "%.*e", i % 3 ? 16 : (int)(next_random() % 40), value);
    check_text(text);
  }
}

static void decimals_of_any_digits(void **unused) {
  (void)unused;
  char text[512];
  for (int i = 0; i < 600000; i++) {
    const unsigned long long a = next_random() >> next_random() % 64, b = next_random() >> next_random() % 64;
    if (i % 3 == 0)
      snprintf(text, sizeof text, "%llu.%llue%d", a, b, (int)(next_random() % 700) - 350);
    else if (i % 3 == 1)
      snprintf(text, sizeof text, "-%llu.%0*llu", a % 1000, (int)(b % 30), b);
    else
      snprintf(text, sizeof text, "0.%0*llu%llu", (int)(b % 60) + 1, a, b);
    check_text(text);
  }
}

/* The exact decimal expansion of the midpoint of two neighbours (up to 767 digits), and that with its last
 * digit one lower or higher. */
static void halfway_cases(void **unused) {
  (void)unused;
  char text[1200];
  for (int i = 0; i < 20000; i++) {
    const uint64_t bits = next_random() >> 1;
    double value, above;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value) || !isfinite(above = nextafter(value, INFINITY))) continue;
    const long double middle = ((long double)value + (long double)above) / 2; /* 64 bits hold it */
    const int length = snprintf(text, sizeof text, "%.*Le", i % 2 ? 770 : 40, middle);
    assert_in_range(length, 1, sizeof text - 1);
    check_text(text);
    char *last = strchr(text, 'e') - 1;
    *last = *last == '9' ? '8' : (char)(*last + 1);
    check_text(text);
  }
}

static const char *const nasty[] = {
    "0",
    "-0",
    "0.0",
    "-0.0e5",
    "00000000000000000000000000000",
    "1",
    "-1",
    "+1",
    "1.",
    ".5",
    "-.5",
    "5.e3",
    "1e0",
    "1E+2",
    "1e-2",
    "1e22",
    "1e23",
    "1e-22",
    "1e-23",
    "9007199254740992",
    "9007199254740993",
    "9007199254740993.00000000000000000000000000000000000000000001",
    "9007199254740992.999999999999999999999",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1.7976931348623157e308",
    "1.7976931348623158e308",
    "1.7976931348623159e308",
    "1e309",
    "-1e309",
    "1e400",
    "1e99999",
    "1e-99999",
    "1e999999999999999999999",
    "1e-999999999999999999999",
    "0e999999999999999999999",
    "4.9e-324",
    "4.94065645841246544e-324",
    "2.4703282292062327e-324",
    "2.4703282292062328e-324",
    "2.47e-324",
    "2.2250738585072014e-308",
    "2.2250738585072011e-308",
    "2.225073858507201136057409796709131975934819546351645648023426e-308",
    "2.2250738585072012e-308",
    "8.5e-323",
    "1e-323",
    "0.1",
    "0.3",
    "123456789012345678",
    "1234567890123456789",
    "12345678901234567890",
    "123456789012345678901234567890",
    "0.000000000000000000000000000000000000001",
    "1.00000000000000011102230246251565404236316680908203125",
    "1.00000000000000011102230246251565404236316680908203124",
    "1.00000000000000011102230246251565404236316680908203126",
    "6929495644600919.5",
    "3.2378839133029012895883524125015321748630094e-319",
    "1.5e+5",
    "7.2057594037927933e+16",
    "10000000000000000000000000000000000000000e-40",
    "0.00000000000000000000000000000000000000001e40",
    "inf",
    "-inf",
    "+Inf",
    "INFINITY",
    "infinity",
    "0x1p3",
    "-0X1.8p-2",
    "0x.8",
    "nan",
    "NAN",
    "nan(12)",
};

static void nasty_texts(void **unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof nasty / sizeof *nasty; i++) check_text(nasty[i]);
}

static void long_mantissas(void **unused) {
  (void)unused;
  char long_text[3000];
  for (int digits = 3; digits < 1200; digits += 7) { /* both sides of the point */
    memset(long_text, '3', sizeof long_text);
    long_text[digits] = 0;
    check_text(long_text);
    long_text[digits / 2] = '.';
    check_text(long_text);
    memset(long_text, '0', (size_t)digits);
    long_text[1] = '.';
    long_text[digits] = '7';
    long_text[digits + 1] = 0;
    check_text(long_text);
    snprintf(long_text + digits + 1, 32, "e%d", digits);
    check_text(long_text);
  }
}

static double parsed(const char *text, const char *rest) {
  char copy[64];
  double value = NAN;
  snprintf(copy, sizeof copy, "%s\n", text);
  const char *after = cb_parse_double(copy, copy + strlen(copy), &value);
  assert_non_null(after);
  char left[64];
  snprintf(left, sizeof left, "%s\n", rest);
  assert_string_equal(after, left);
  return value;
}

static void fortran_exponents(void **unused) {
  (void)unused;
  assert_true(parsed("1.5d2", "") == 150);
  assert_true(parsed("1.5D+02", "") == 150);
  assert_true(parsed("-2D-1", "") == -0.2);
  assert_true(parsed("1.25q1", "") == 12.5);
  assert_true(parsed("1.5-300", "") == 1.5e-300);
  assert_true(parsed("0.15+101", "") == 0.15e101);
  assert_true(parsed("15-3", "-3") == 15); /* without a point this is no Fortran number */
}

static void what_is_no_number(void **unused) {
  (void)unused;
  static const char *const texts[] = {"\n",   "x\n",   "-\n",   "+\n", ".\n", "-.\n",
                                      "e5\n", "--1\n", "+-1\n", "%\n", "na\n"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    double value;
    if (cb_parse_double(texts[i], texts[i] + strlen(texts[i]), &value))
      fail_msg("'%s' passes for a number", texts[i]);
  }
  assert_true(parsed("1e", "e") == 1);
  assert_true(parsed("1e+", "e+") == 1);
  assert_true(parsed("1.5.2", ".2") == 1.5);
  assert_true(parsed("7f", "f") == 7);
}

static void whole_numbers(void **unused) {
  (void)unused;
  static const struct {
    const char *text, *rest;
    int64_t value;
  } cases[] = {
      {"0 ", " ", 0},
      {"7\n", "\n", 7},
      {"+12,", ",", 12},
      {"000000000000000000000000042 ", " ", 42},
      {"999999999999999999 ", " ", 999999999999999999},
      {"9223372036854775807 ", " ", INT64_MAX},
      {"1000000000000000001 ", " ", 1000000000000000001},
      {"9223372036854775806 ", " ", INT64_MAX - 1},
      {"9223372036854775808 ", " ", INT64_MAX},
      {"99999999999999999999999999999999 ", " ", INT64_MAX},
      {"18446744073709551617 ", " ", INT64_MAX},
      {"1.5 ", ".5 ", 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t value;
    assert_string_equal(cb_parse_index(cases[i].text, &value), cases[i].rest);
    assert_int_equal(value, cases[i].value);
  }
  int64_t value;
  const char *none[] = {"-1 ", "x", "+ ", " 1", "\n"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    assert_ptr_equal(cb_parse_index(none[i], &value), none[i]);
}

/* With a decimal comma set, and the slow path taken. */
static void decimal_comma_in_the_locale(void **unused) {
  (void)unused;
  make_comma_locale();
  set_comma(1);
  assert_true(parsed("2.2250738585072011e-308", "") > 2.2e-308);
  assert_true(parsed("0x1.8p1", "") == 3);
  set_comma(0);
}

static void finite_numbers_beyond_the_range_are_told_from_infinity(void **unused) {
  (void)unused;
  static const char *const beyond[] = {"1e309", "-1e309", "1.7976931348623159e308", "+2d308", ".18e310", "0x1p1024",
                                       "1e99999999999999999999", "17976931348623158079372897140530341507993413272e262"};
  static const char *const within[] = {"inf",   "-Infinity", "+inf", "nan", "1.7976931348623158e308", "0x1.fffffffffffffp1023",
                                       "1e308", "1e-400",    "0e999"};
  for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++)
    if (!cb_overflows(beyond[i], parsed(beyond[i], ""))) fail_msg("'%s' is not noticed", beyond[i]);
  for (size_t i = 0; i < sizeof within / sizeof *within; i++)
    if (cb_overflows(within[i], parsed(within[i], ""))) fail_msg("'%s' is refused", within[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(doubles_of_any_bits_in_any_length),
      cmocka_unit_test(decimals_of_any_digits),
      cmocka_unit_test(halfway_cases),
      cmocka_unit_test(nasty_texts),
      cmocka_unit_test(long_mantissas),
      cmocka_unit_test(fortran_exponents),
      cmocka_unit_test(what_is_no_number),
      cmocka_unit_test(whole_numbers),
      cmocka_unit_test(decimal_comma_in_the_locale),
      cmocka_unit_test(finite_numbers_beyond_the_range_are_told_from_infinity),
  };
  return exit_code_of(cmocka_run_group_tests_name("numbers in text", tests, NULL, NULL));
}
