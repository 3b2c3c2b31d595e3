// SPDX-License-Identifier: Apache-2.0
/* Shortest decimals by exact integer arithmetic, as G. L. Steele and J. L. White describe ("How to print
 * floating-point numbers accurately", 1990): the number and half the distances to its neighbours are integers over
 * one denominator, and digits are made until no neighbour is as close to them as the number is. */
#include "base/real.h"

#include <string.h>

/* A natural number of up to 1280 bits, lowest word first: the smallest double is 2^-1074, the largest below 2^1024,
 * and both are multiplied by 80 at most. */
enum { WORDS = 40 };
struct natural {
  uint32_t words[WORDS];
};

static void multiply(struct natural *a, uint32_t by) {
  uint64_t carry = 0;
  for (int i = 0; i < WORDS; i++) {
    carry += (uint64_t)a->words[i] * by;
    a->words[i] = (uint32_t)carry;
    carry >>= 32;
  }
}

static struct natural sum_of(const struct natural *a, const struct natural *b) {
  struct natural sum;
  uint64_t carry = 0;
  for (int i = 0; i < WORDS; i++) {
    carry += (uint64_t)a->words[i] + b->words[i];
    sum.words[i] = (uint32_t)carry;
    carry >>= 32;
  }
  return sum;
}

static int compare(const struct natural *a, const struct natural *b) {
  for (int i = WORDS; i-- > 0;)
    if (a->words[i] != b->words[i]) return a->words[i] < b->words[i] ? -1 : 1;
  return 0;
}

/* a -= b, which is not larger. */
static void subtract(struct natural *a, const struct natural *b) {
  uint64_t borrow = 0;
  for (int i = 0; i < WORDS; i++) {
    const uint64_t difference = (uint64_t)a->words[i] - b->words[i] - borrow;
    a->words[i] = (uint32_t)difference;
    borrow = difference >> 63;
  }
}

/* number × 2^power */
static struct natural shifted(uint64_t number, int power) {
  struct natural result = {0};
  const int word = power / 32, bits = power % 32;
  const uint64_t low = (number & 0xffffffff) << bits, high = (number >> 32) << bits;
  result.words[word] = (uint32_t)low;
  result.words[word + 1] = (uint32_t)(low >> 32) | (uint32_t)high;
  result.words[word + 2] = (uint32_t)(high >> 32);
  return result;
}

/* significand × 2^exponent, with the significand that the type has: `even` numbers own the middle between them and
 * their neighbours, and below a power of two the neighbour is at half the distance. */
struct parts {
  uint64_t significand;
  int exponent, even, closer_below;
};

static struct parts parts_of(double value, enum cb_type type) {
  const uint64_t bits = cb_real_bits(value), fraction = bits & 0xfffffffffffff;
  const int stored = (int)(bits >> 52 & 0x7ff), narrow = type == CB_F32;
  const int precision = narrow ? 24 : 53, least = narrow ? -149 : -1074;
  struct parts parts = {stored ? fraction | (uint64_t)1 << 52 : fraction, stored ? stored - 1075 : -1074, 0, 0};
  int spare = 53 - precision; /* low bits that the type does not have: they are zero */
  if (parts.exponent + spare < least) spare = least - parts.exponent;
  parts.significand >>= spare;
  parts.exponent += spare;
  parts.even = !(parts.significand & 1);
  parts.closer_below = parts.significand == (uint64_t)1 << (precision - 1) && parts.exponent > least;
  return parts;
}

/* value = number / scale; the neighbours' middles lie `below` and `above` it. */
struct state {
  struct natural number, scale, below, above;
};

static struct state start(const struct parts *parts) {
  const int up = parts->exponent > 0 ? parts->exponent : 0, down = up - parts->exponent, two = 1 + parts->closer_below;
  return (struct state){.number = shifted(parts->significand, up + two),
                        .scale = shifted(1, down + two),
                        .below = shifted(1, up),
                        .above = shifted(1, up + two - 1)};
}

/* Whether a value of `scale` lies within the range of those that read as the number, seen from below. */
static int reaches(const struct state *state, const struct natural *scale, int even) {
  const struct natural top = sum_of(&state->number, &state->above);
  return compare(&top, scale) >= !even;
}

/* Scales until the first digit is next: value = 0.d₁d₂… × 10^result. */
static int scale(struct state *state, int even) {
  int power = 0;
  for (; reaches(state, &state->scale, even); power++) multiply(&state->scale, 10);
  for (;; power--) {
    struct state next = *state;
    multiply(&next.number, 10);
    multiply(&next.below, 10);
    multiply(&next.above, 10);
    if (reaches(&next, &next.scale, even)) return power;
    *state = next;
  }
}

/* Writes the digits and returns how many. */
static int make_digits(char *digits, struct state *state, int even) {
  for (int count = 0;;) {
    int digit = 0;
    multiply(&state->number, 10);
    multiply(&state->below, 10);
    multiply(&state->above, 10);
    for (; compare(&state->number, &state->scale) >= 0; digit++) subtract(&state->number, &state->scale);
    const int low = compare(&state->number, &state->below) < even, high = reaches(state, &state->scale, even);
    if (low || high) {
      const struct natural twice = sum_of(&state->number, &state->number);
      const int up = low && high ? compare(&twice, &state->scale) >= 0 : high;
      digits[count++] = (char)('0' + digit + up);
      return count;
    }
    digits[count++] = (char)('0' + digit);
  }
}

static char *put(char *at, const char *digits, int count) {
  memcpy(at, digits, (size_t)count);
  return at + count;
}

static char *put_zeros(char *at, int count) {
  while (count-- > 0) *at++ = '0';
  return at;
}

/* d.ddde±dd */
static char *put_exponent(char *at, const char *digits, int count, int exponent) {
  const int size = exponent < 0 ? -exponent : exponent;
  *at++ = *digits;
  if (count > 1) {
    *at++ = '.';
    at = put(at, digits + 1, count - 1);
  }
  *at++ = 'e';
  *at++ = exponent < 0 ? '-' : '+';
  if (size > 99) *at++ = (char)('0' + size / 100);
  *at++ = (char)('0' + size / 10 % 10);
  *at++ = (char)('0' + size % 10);
  return at;
}

/* The `count` digits stand behind a point, times 10^power. */
static char *put_decimal(char *at, const char *digits, int count, int power) {
  enum { MOST_ZEROS = 5 }; /* with more, an exponent is shorter to read */
  if (power < -3 || power > count + MOST_ZEROS) return put_exponent(at, digits, count, power - 1);
  if (power <= 0) {
    at = put_zeros(put(at, "0.", 2), -power);
    return put(at, digits, count);
  }
  if (power >= count) return put(put_zeros(put(at, digits, count), power - count), ".0", 2);
  at = put(put(at, digits, power), ".", 1);
  return put(at, digits + power, count - power);
}

void cb_real_text(char text[CB_REAL_TEXT], double value, enum cb_type type) {
  char digits[20];
  if (cb_real_bits(value) >> 63) *text++ = '-';
  if (value == 0) {
    memcpy(text, "0.0", 4);
    return;
  }
  const struct parts parts = parts_of(value, type);
  struct state state = start(&parts);
  const int power = scale(&state, parts.even), count = make_digits(digits, &state, parts.even);
  *put_decimal(text, digits, count, power) = 0;
}
