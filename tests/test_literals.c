// SPDX-License-Identifier: Apache-2.0
/* Numbers as the generated text spells them: every digit counts. What a compiler reads must be the number, bit for
 * bit, in the type of the sums; no shorter decimal does that; and the text is the same however the thread rounds. */
#include "tests/locale_support.h"
#include "tests/random.h"

#include "analysis/layout.h"
#include "base/types.h"

#include <float.h>
#include <math.h>

static uint64_t state = 0x243f6a8885a308d3;

/* Digits without sign, point, exponent, leading and trailing zeros. */
static int digits_of(const char *text) {
  int digits = 0, zeros = 0;
  for (; *text && *text != 'e' && *text != 'f'; text++) {
    if (*text < '0' || *text > '9' || (!digits && *text == '0')) continue;
    zeros = *text == '0' ? zeros + 1 : 0;
    digits++;
  }
  return digits - zeros;
}

static double read_back(const char *text, enum cb_type type) {
  return type == CB_F32 ? (double)strtof(text, NULL) : strtod(text, NULL);
}

/* The C library knows no shortest decimal, but the nearest of so many digits. */
static int has_shorter(double value, enum cb_type type, int digits) {
  char text[64];
  if (digits < 2) return 0;
  snprintf(text, sizeof text, "%.*e", digits - 2, value);
  return read_back(text, type) == value;
}

static void check_literal(double value, enum cb_type type) {
  char literal[CB_LITERAL];
  memset(literal, '#', sizeof literal);
  cb_literal(literal, value, type);
  const size_t length = strlen(literal);
  const double back = read_back(literal, type);
  if (memcmp(&back, &value, sizeof value)) fail_msg("%a is written as %s, which is %a", value, literal, back);
  if (has_shorter(value, type, digits_of(literal))) fail_msg("%a has a shorter text than %s", value, literal);
  if (!strpbrk(literal, ".e") || (literal[length - 1] == 'f') != (type == CB_F32))
    fail_msg("%s is no literal of %s", literal, cb_type_c_name(type));
}

static double double_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return (double)value;
}

static void every_digit_of_double_literals_counts(void **unused) {
  (void)unused;
  for (int i = 0; i < 5000; i++) {
    const double value = double_of(draw(&state));
    if (isfinite(value)) check_literal(value, CB_F64);
    check_literal((double)(int64_t)(draw(&state) % 2000) / 1000, CB_F64);
    check_literal((double)(draw(&state) >> draw(&state) % 64), CB_F64);
  }
  for (int exponent = -1074; exponent < 1024; exponent++) { /* where the neighbours are at different distances */
    const double power = ldexp(1, exponent);
    check_literal(power, CB_F64);
    check_literal(nextafter(power, 0), CB_F64);
    check_literal(-nextafter(power, 2), CB_F64);
  }
}

static void every_digit_of_float_literals_counts(void **unused) {
  (void)unused;
  for (int i = 0; i < 8000; i++) {
    const double value = float_of((uint32_t)draw(&state));
    if (isfinite(value)) check_literal(value, CB_F32);
    check_literal((double)((float)(draw(&state) % 2000) / 1000), CB_F32);
  }
  for (int exponent = -149; exponent < 128; exponent++) {
    const float power = ldexpf(1, exponent);
    check_literal((double)power, CB_F32);
    check_literal((double)nextafterf(power, 0), CB_F32);
    check_literal(-(double)nextafterf(power, 2), CB_F32);
  }
}

static const struct {
  double value;
  const char *wide, *narrow; /* NULL: no float */
} known[] = {
    {0, "0.0", "0.0f"},
    {-0.0, "-0.0", "-0.0f"},
    {1, "1.0", "1.0f"},
    {-4, "-4.0", "-4.0f"},
    {0.25, "0.25", "0.25f"},
    {0.1, "0.1", NULL},
    {0.30000000000000004, "0.30000000000000004", NULL},
    {(double)0.1f, "0.10000000149011612", "0.1f"},
    {100, "100.0", "100.0f"},
    {1234567, "1234567.0", "1234567.0f"},
    {0x1p53 + 2, "9007199254740994.0", NULL},
    {1e15, "1e+15", NULL},
    {1e22, "1e+22", NULL},
    {1.5e300, "1.5e+300", NULL},
    {0.0001, "0.0001", NULL},
    {0.00001, "1e-05", NULL},
    {DBL_MAX, "1.7976931348623157e+308", NULL},
    {DBL_MIN, "2.2250738585072014e-308", NULL},
    {DBL_TRUE_MIN, "5e-324", NULL},
    {(double)FLT_MAX, "3.4028234663852886e+38", "3.4028235e+38f"},
    {(double)FLT_MIN, "1.1754943508222875e-38", "1.1754944e-38f"},
    {(double)FLT_TRUE_MIN, "1.401298464324817e-45", "1e-45f"},
};

static void known_literals_in_every_rounding_mode(void **unused) {
  (void)unused;
  for (int mode = 0; mode < ROUNDING_MODES; mode++)
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
      char wide[CB_LITERAL], narrow[CB_LITERAL] = "";
      fesetround(rounding_modes[mode]);
      cb_literal(wide, known[i].value, CB_F64);
      if (known[i].narrow) cb_literal(narrow, known[i].value, CB_F32);
      fesetround(FE_TONEAREST);
      assert_string_equal(wide, known[i].wide);
      if (known[i].narrow) assert_string_equal(narrow, known[i].narrow);
    }
}

static void literals_have_no_comma(void **unused) {
  (void)unused;
  char literal[CB_LITERAL];
  make_comma_locale();
  set_comma(1);
  cb_literal(literal, 1234567.25, CB_F64);
  set_comma(0);
  assert_string_equal(literal, "1234567.25");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_digit_of_double_literals_counts),
      cmocka_unit_test(every_digit_of_float_literals_counts),
      cmocka_unit_test(known_literals_in_every_rounding_mode),
      cmocka_unit_test(literals_have_no_comma),
  };
  return cmocka_run_group_tests_name("literals", tests, NULL, NULL);
}
