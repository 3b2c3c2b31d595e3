// SPDX-License-Identifier: Apache-2.0
/* Conversions between doubles and the narrower types: see real.h. */
#include "base/real.h"

#include "base/split.h"

#include <math.h>
#include <string.h>

static double from_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Sign, exponent, fraction. */
struct format {
  int bits, fraction_bits, bias;
};
static const struct format half = {16, 10, 15}, bfloat = {16, 7, 127}, single = {32, 23, 127};

static uint32_t infinity_of(struct format format) {
  return UINT32_MAX >> (33 - format.bits) >> format.fraction_bits << format.fraction_bits;
}

/* significand / 2^shift, rounded to the nearest, ties to even. */
static uint64_t shift_rounded(uint64_t significand, int shift) {
  if (shift > 60) return 0; /* below half of the smallest number */
  const uint64_t quotient = significand >> shift, rest = significand - (quotient << shift);
  const uint64_t tie = UINT64_C(1) << (shift - 1);
  return quotient + (rest > tie || (rest == tie && (quotient & 1)));
}

static uint32_t narrow(double value, struct format format) {
  const uint64_t bits = cb_real_bits(value), fraction = bits & 0xfffffffffffff;
  const uint32_t sign = (uint32_t)(bits >> 63) << (format.bits - 1), infinity = infinity_of(format);
  const int exponent = (int)(bits >> 52 & 0x7ff), shift = 52 - format.fraction_bits;
  if (exponent == 0x7ff) {
    const uint64_t quiet = fraction ? UINT64_C(1) << (format.fraction_bits - 1) : 0;
    return sign | infinity | (uint32_t)(quiet | fraction >> shift);
  }
  if (!exponent) return sign; /* a subnormal double is far below every format */
  const int own = exponent - 1023 + format.bias;
  const uint64_t significand = fraction | UINT64_C(1) << 52;
  /* A carry out of the fraction raises the exponent, as it should. */
  const uint64_t magnitude =
      own > 0 ? ((uint64_t)(own - 1) << format.fraction_bits) + shift_rounded(significand, shift)
              : shift_rounded(significand, shift + 1 - own);
  return sign | (magnitude < infinity ? (uint32_t)magnitude : infinity);
}

static double widen(uint16_t bits, struct format format) {
  const uint16_t infinity = (uint16_t)infinity_of(format), magnitude = bits & 0x7fff;
  const uint64_t sign = (uint64_t)(bits & 0x8000) << 48;
  const int exponent = magnitude >> format.fraction_bits;
  const uint64_t fraction = magnitude & ((1u << format.fraction_bits) - 1);
  if (magnitude >= infinity)
    return from_bits(sign | UINT64_C(0x7ff) << 52 | fraction << (52 - format.fraction_bits));
  const double size = exponent ? ldexp((double)(fraction | 1u << format.fraction_bits),
                                       exponent - format.bias - format.fraction_bits)
                               : ldexp((double)fraction, 1 - format.bias - format.fraction_bits);
  return from_bits(sign | cb_real_bits(size));
}

double cb_real_get(const void *array, enum cb_type type, int64_t i) {
  switch (type) {
  case CB_F32:
    return (double)((const float *)array)[i];
  case CB_F16:
    return widen(((const uint16_t *)array)[i], half);
  case CB_BF16:
    return widen(((const uint16_t *)array)[i], bfloat);
  case CB_C64:
    return (double)((const float *)array)[2 * i];
  case CB_C128:
    return ((const double *)array)[2 * i];
  case CB_I8:
    return ((const int8_t *)array)[i];
  case CB_I16:
    return ((const int16_t *)array)[i];
  default:
    return ((const double *)array)[i];
  }
}

void cb_real_set(void *array, enum cb_type type, int64_t i, double value) {
  switch (type) {
  case CB_F32:
    ((float *)array)[i] = (float)value;
    break;
  case CB_F16:
    ((uint16_t *)array)[i] = (uint16_t)narrow(value, half);
    break;
  case CB_BF16:
    ((uint16_t *)array)[i] = (uint16_t)narrow(value, bfloat);
    break;
  case CB_C64:
    ((float *)array)[2 * i] = (float)value;
    ((float *)array)[2 * i + 1] = 0;
    break;
  case CB_C128:
    ((double *)array)[2 * i] = value;
    ((double *)array)[2 * i + 1] = 0;
    break;
  case CB_I8:
    ((int8_t *)array)[i] = (int8_t)value;
    break;
  case CB_I16:
    ((int16_t *)array)[i] = (int16_t)value;
    break;
  default:
    ((double *)array)[i] = value;
    break;
  }
}

float cb_real_to_float(double value) {
  const uint32_t bits = narrow(value, single);
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

double cb_real_round(double value, enum cb_type of) {
  const enum cb_type type = cb_type_of_part(of);
  double room;
  if (type == CB_F64 || type == CB_SPLIT) return value;
  cb_real_set(&room, type, 0, value);
  return cb_real_get(&room, type, 0);
}

int cb_real_fits(double value, enum cb_type type) {
  const double largest = type == CB_I8 ? INT8_MAX : INT16_MAX;
  if ((type == CB_I8 || type == CB_I16) && !(value >= -largest - 1 && value <= largest)) return 0;
  return cb_real_bits(cb_real_round(value, type)) == cb_real_bits(value);
}

static uint32_t float_bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* bfloat16 is the upper half of a float. */
static int all_fit_float(const double *values, int64_t count, uint32_t zeros) {
  uint64_t lost = 0;
  for (int64_t i = 0; i < count; i++) {
    const float narrow = (float)values[i];
    lost |= (cb_real_bits(values[i]) ^ cb_real_bits((double)narrow)) | (float_bits_of(narrow) & zeros);
  }
  return !lost;
}

/* Half has 11 significant bits, so 42 of a double's 52 are zero; it ends at 65504, and its subnormals are multiples
 * of 2^-24. Infinity and quiet NaNs need the 42 bits only. */
static int fits_half(double value) {
  const uint64_t bits = cb_real_bits(value), fraction = bits & 0xfffffffffffff;
  if (fraction & ((UINT64_C(1) << 42) - 1)) return 0;
  if (!cb_real_is_finite(value)) return !fraction || fraction >> 51;
  return value >= -65504 && value <= 65504 && (double)(int64_t)(value * 0x1p24) == value * 0x1p24;
}

int cb_real_all_fit(const double *values, int64_t count, enum cb_type type) {
  if (type == CB_F64 || type == CB_SPLIT) return 1;
  if (type == CB_F32) return all_fit_float(values, count, 0);
  if (type == CB_BF16) return all_fit_float(values, count, 0xffff);
  for (int64_t i = 0; i < count; i++)
    if (type == CB_F16 ? !fits_half(values[i]) : !cb_real_fits(values[i], type)) return 0;
  return 1;
}

int cb_real_overflows(double value, enum cb_type type) {
  if (type == CB_SPLIT) return !cb_split_holds(value);
  return isfinite(value) && isinf(cb_real_round(value, type));
}
