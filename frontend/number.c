// SPDX-License-Identifier: Apache-2.0
/* Decimal to double, correctly rounded, in three steps of rising cost:
 *   1. a mantissa of at most 2^53 and a power of ten of at most 10^22 are both exact: one multiplication or
 *      division rounds once (W. D. Clinger, "How to read floating point numbers accurately", 1990);
 *   2. up to 19 digits are multiplied by a 128-bit power of five, and the product's error bound tells whether the
 *      rounding is certain (D. Lemire, "Number parsing at a gigabyte per second", 2021, after M. Eisel);
 *   3. what remains (ties, subnormals, overflow, very long mantissas) goes to the C library's strtod.
 * Special values and hexadecimal numbers take the third way at once. */
#include "frontend/number.h"

#include "frontend/powers.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 uint128;

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "eight_digit_value wants the first digit lowest");

/* A decimal as it stands in the text: `mantissa` × 10^exponent, where `mantissa` holds the first 19
 * significant digits and `more` says whether nonzero digits follow them. */
struct decimal {
  uint64_t mantissa;
  int64_t exponent;
  int more;
  int negative;
  const char *digits, *digits_end; /* all digits, perhaps with a point among them */
};

enum { KEPT_DIGITS = 19, EXACT_POWER = 22, LAST_EXACT_POWER_OF_FIVE = 55 };

static inline int is_digit(char c) {
  return (unsigned char)c - (unsigned)'0' < 10;
}

/* Rounds `mantissa` × 10^power; returns 0 when the 128-bit product does not decide the rounding. */
static int round_product(uint64_t mantissa, int64_t power, double *value) {
  if (power < CB_POWERS_FIRST || power > CB_POWERS_LAST) return 0;
  const uint64_t *five = cb_powers_of_five[power - CB_POWERS_FIRST];
  const int shift = __builtin_clzll(mantissa);
  const uint128 low_part = (uint128)(mantissa << shift) * five[1];
  /* The leading 128 of 192 bits. The true product lies in [product, product + 2): the cut bits of the power
   * make less than one unit, the lower 64 bits less than another. */
  const uint128 product = (uint128)(mantissa << shift) * five[0] + (uint64_t)(low_part >> 64);
  const int top = 126 + (int)(product >> 127), dropped = top - 52;
  const uint64_t kept = (uint64_t)(product >> dropped);
  const uint128 rest = product & (((uint128)1 << dropped) - 1), half = (uint128)1 << (dropped - 1);
  const int64_t log_of_ten = (217706 * power) >> 16; /* floor(log2(10^power)), exact for |power| < 400 */
  const int64_t exponent = log_of_ten + top - 63 - shift;
  if (exponent < -1022 || exponent > 1023) return 0;
  int up;
  if (power >= 0 && power <= LAST_EXACT_POWER_OF_FIVE) {
    const int tie = rest == half && !(uint64_t)low_part;
    up = tie ? (int)(kept & 1) : rest >= half;
  } else {
    if (rest == half - 1) return 0;
    up = rest >= half;
  }
  const uint64_t bits = ((uint64_t)(exponent + 1023) << 52) + (kept - ((uint64_t)1 << 52)) + (uint64_t)up;
  memcpy(value, &bits, sizeof bits);
  return 1;
}

static int convert_fast(const struct decimal *decimal, double *value) {
  static const double tens[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                               1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                               1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const int64_t power = decimal->exponent;
  double next;
  if (!decimal->mantissa) {
    *value = 0;
    return 1;
  }
  if (decimal->mantissa <= (uint64_t)1 << 53 && !decimal->more && power >= -EXACT_POWER &&
      power <= EXACT_POWER) {
    const double mantissa = (double)decimal->mantissa;
    *value = power < 0 ? mantissa / tens[-power] : mantissa * tens[power];
    return 1;
  }
  if (!round_product(decimal->mantissa, power, value)) return 0;
  if (!decimal->more) return 1;
  /* The digits that were left out lie between this mantissa and the next: both must round alike. */
  return round_product(decimal->mantissa + 1, power, &next) && *value == next;
}

/* Hands the decimal to strtod with at most 800 digits: a double and its neighbours' midpoints have fewer than
 * 770, so a last '1' may stand for all the rest. */
static double convert_slow(const struct decimal *decimal) {
  enum { MOST_DIGITS = 800 };
  char text[MOST_DIGITS + 32];
  int length = 0;
  int64_t significant = 0, more = 0;
  for (const char *at = decimal->digits; at < decimal->digits_end; at++) {
    if (*at == '.' || (!significant && *at == '0')) continue;
    significant++;
    if (length < MOST_DIGITS)
      text[length++] = *at;
    else
      more |= *at != '0';
  }
  const int64_t kept = significant < KEPT_DIGITS ? significant : KEPT_DIGITS;
  int64_t exponent = decimal->exponent + kept - length; /* decimal->exponent counts from KEPT_DIGITS digits */
  if (more) {
    text[length++] = '1';
    exponent--;
  }
  if (exponent > 99999) exponent = 99999;
  if (exponent < -99999) exponent = -99999;
  snprintf(text + length, sizeof text - (size_t)length, "e%d", (int)exponent);
  const locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!locale) return strtod(text, NULL);
  const double value = strtod_l(text, NULL, locale);
  freelocale(locale);
  return value;
}

/* "inf", "nan" and hexadecimal numbers. They are short; a longer token is none of them. */
static const char *parse_special(const char *text, double *value) {
  char copy[128];
  size_t length = 0;
  while (length < sizeof copy - 1 && text[length] > ' ' && text[length] != ',') {
    copy[length] = text[length];
    length++;
  }
  copy[length] = 0;
  char *end = copy;
  const locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  *value = locale ? strtod_l(copy, &end, locale) : strtod(copy, &end);
  if (locale) freelocale(locale);
  return end == copy ? NULL : text + (end - copy);
}

static inline int eight_digits(uint64_t bytes) {
  const uint64_t sixes = 0x0606060606060606, high = 0xf0f0f0f0f0f0f0f0, threes = 0x3030303030303030;
  return (bytes & high) == threes && ((bytes + sixes) & high) == threes;
}

/* Eight digits, the first in the lowest byte: neighbours are joined to pairs, fours and eights. */
static inline uint64_t eight_digit_value(uint64_t bytes) {
  bytes = (bytes & 0x0f0f0f0f0f0f0f0f) * (1 + (10 << 8)) >> 8;
  bytes = (bytes & 0x00ff00ff00ff00ff) * (1 + ((uint64_t)100 << 16)) >> 16;
  return (bytes & 0x0000ffff0000ffff) * (1 + ((uint64_t)10000 << 32)) >> 32;
}

static inline const char *parse_digits(const char *next, const char *limit, uint64_t *mantissa) {
  uint64_t bytes;
  while (limit - next >= 8) {
    memcpy(&bytes, next, sizeof bytes);
    if (!eight_digits(bytes)) break;
    *mantissa = *mantissa * 100000000 + eight_digit_value(bytes);
    next += 8;
  }
  for (; is_digit(*next); next++) *mantissa = *mantissa * 10 + (uint64_t)(*next - '0');
  return next;
}

/* More than 19 digits: the mantissa is gathered anew, leading zeros do not count. */
static void gather_long_mantissa(struct decimal *decimal) {
  int kept = 0, after_point = 0;
  int64_t exponent = decimal->exponent, dropped = 0, fraction = 0;
  decimal->mantissa = 0;
  for (const char *at = decimal->digits; at < decimal->digits_end; at++) {
    if (*at == '.') {
      after_point = 1;
      continue;
    }
    fraction += after_point;
    if (kept == KEPT_DIGITS) {
      dropped++;
      decimal->more |= *at != '0';
    } else if (kept || *at != '0') {
      decimal->mantissa = decimal->mantissa * 10 + (uint64_t)(*at - '0');
      kept++;
    }
  }
  decimal->exponent = exponent - fraction + dropped;
}

static const char *parse_exponent(const char *text, int has_point, int64_t *exponent) {
  const char letter = (char)(*text | 32);
  const int marked = letter == 'e' || letter == 'd' || letter == 'q';
  if (!marked && !(has_point && (*text == '+' || *text == '-'))) return text;
  const char *next = text + marked;
  const int negative = *next == '-';
  if (*next == '+' || *next == '-') next++;
  if (!is_digit(*next)) return text;
  int64_t number = 0;
  for (; is_digit(*next); next++)
    if (number < INT64_C(1000000000000)) number = number * 10 + (*next - '0');
  *exponent += negative ? -number : number;
  return next;
}

const char *cb_parse_double(const char *text, const char *limit, double *value) {
  struct decimal decimal = {.negative = *text == '-'};
  const char *next = text + (*text == '-' || *text == '+');
  decimal.digits = next;
  next = parse_digits(next, limit, &decimal.mantissa);
  int64_t digits = next - decimal.digits, fraction = 0;
  const int has_point = *next == '.';
  if (has_point) {
    const char *point = next;
    next = parse_digits(next + 1, limit, &decimal.mantissa);
    fraction = next - point - 1;
    digits += fraction;
  }
  if (!digits || (*next | 32) == 'x') return parse_special(text, value);
  decimal.digits_end = next;
  next = parse_exponent(next, has_point, &decimal.exponent);
  if (digits <= KEPT_DIGITS)
    decimal.exponent -= fraction;
  else
    gather_long_mantissa(&decimal);
  double magnitude;
  if (!convert_fast(&decimal, &magnitude)) magnitude = convert_slow(&decimal);
  *value = decimal.negative ? -magnitude : magnitude;
  return next;
}
