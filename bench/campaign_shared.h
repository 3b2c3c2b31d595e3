// SPDX-License-Identifier: Apache-2.0
/* What the campaign (campaign.c) says to its kernels (campaign_kernels.cu): numbers that both make alike from a seed
 * and a place, and what is to be filled and checked. C, and CUDA without any header. */
#ifndef CBGEN_BENCH_CAMPAIGN_SHARED_H
#define CBGEN_BENCH_CAMPAIGN_SHARED_H

#ifdef __CUDACC_RTC__
#define CAMPAIGN_FUNCTION CBGEN_DEVICE
#else
#include <stdint.h>
#define CAMPAIGN_FUNCTION static inline
#endif

/* Types as in cbgen.h. */
enum campaign_type { CAMPAIGN_F64, CAMPAIGN_F32, CAMPAIGN_F16, CAMPAIGN_BF16 };

enum campaign_numbers {
  CAMPAIGN_INTEGERS, /* from -8 to 8: sums are exact */
  CAMPAIGN_REALS,    /* all bits of the fraction drawn, sizes of 1/16 to 1 */
  CAMPAIGN_WIDE,     /* likewise, of very different sizes */
  CAMPAIGN_SPECIALS, /* as the reals, but about one in 60 is infinite or NaN */
  CAMPAIGN_NANS,     /* nothing else */
  CAMPAIGN_NUMBERS
};

/* splitmix64: the i-th number of a seed. */
CAMPAIGN_FUNCTION uint64_t campaign_bits(uint64_t seed, uint64_t i) {
  uint64_t bits = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ull;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebull;
  return bits ^ bits >> 31;
}

struct campaign_format {
  int width, fraction, bias, spread; /* spread: of the exponents of wide numbers */
};
CAMPAIGN_FUNCTION struct campaign_format campaign_format_of(int type) {
  const struct campaign_format f64 = {64, 52, 1023, 60}, f32 = {32, 23, 127, 20}, f16 = {16, 10, 15, 6},
                               bf16 = {16, 7, 127, 20};
  return type == CAMPAIGN_F64 ? f64 : type == CAMPAIGN_F32 ? f32 : type == CAMPAIGN_F16 ? f16 : bf16;
}

/* A number as the type's bits, of random bits h. */
CAMPAIGN_FUNCTION uint64_t campaign_number(int type, int numbers, uint64_t h) {
  const struct campaign_format f = campaign_format_of(type);
  const uint64_t one = 1, sign = (h >> 63) << (f.width - 1), infinity = (uint64_t)(2 * f.bias + 1) << f.fraction;
  const uint64_t nan = infinity | one << (f.fraction - 1);
  if (numbers == CAMPAIGN_NANS) return nan;
  if (numbers == CAMPAIGN_SPECIALS && (h >> 32) % 61 == 0) return h >> 20 & 1 ? sign | infinity : nan;
  if (numbers == CAMPAIGN_INTEGERS) {
    const int size = (int)((h >> 40) % 9), e = size >= 8 ? 3 : size >= 4 ? 2 : size >= 2 ? 1 : 0;
    return size ? sign | (uint64_t)(f.bias + e) << f.fraction | (uint64_t)(size - (1 << e)) << (f.fraction - e) : 0;
  }
  const int spread = numbers == CAMPAIGN_WIDE ? f.spread : 2;
  const int exponent = f.bias - 2 - spread + (int)((h >> 56 & 127) % (uint64_t)(2 * spread + 1));
  return sign | (uint64_t)exponent << f.fraction | (h & ((one << f.fraction) - 1));
}

/* What bits of a type stand for. */
CAMPAIGN_FUNCTION double campaign_value(int type, uint64_t bits) {
  const struct campaign_format f = campaign_format_of(type);
  union {
    uint64_t bits;
    double value;
  } number = {bits};
  if (type == CAMPAIGN_F64) return number.value;
  const uint64_t sign = bits >> (f.width - 1), rest = bits & (((uint64_t)1 << (f.width - 1)) - 1);
  const uint64_t fraction = rest & (((uint64_t)1 << f.fraction) - 1);
  const int exponent = (int)(rest >> f.fraction);
  if (!exponent) { /* zero, and what is below the normal numbers */
    const double least = type == CAMPAIGN_F32 ? 0x1p-149 : type == CAMPAIGN_F16 ? 0x1p-24 : 0x1p-133;
    return (sign ? -least : least) * (double)fraction;
  }
  const uint64_t shifted = exponent == 2 * f.bias + 1 ? 2047 : (uint64_t)(exponent - f.bias + 1023);
  number.bits = sign << 63 | shifted << 52 | fraction << (52 - f.fraction);
  return number.value;
}

/* Elements of a vector: `count` of `type` at the address `to`. */
struct campaign_fill {
  uint64_t to, count, seed;
  int32_t type, numbers;
  uint32_t first_block, pad; /* of the grid */
};

/* One product: y = alpha A x + beta y₀, whose y₀ was filled with y_seed, and CAMPAIGN_GUARD elements behind it, which
 * must stay what they are. With beta 0 all of them are NaN. A is in CSR as it multiplies, from 0, of
 * int32_t; rows may hold a column several times. `same`: 0, or another y that must have the same bits. */
struct campaign_check {
  uint64_t row_ptr, columns, values, x, y, same; /* addresses */
  uint64_t y_seed;
  double alpha, beta;
  int32_t rows;
  int32_t given, stored, vector,
      sum;           /* types: of the values as given, of those that are multiplied, of x and y, of sums */
  int32_t y_numbers; /* of y₀ */
  int32_t integers;  /* 1: all numbers are */
  uint32_t first_block;
};

/* What came of it. */
struct campaign_result {
  uint64_t first;     /* wrong row; `rows`: what lies behind y; all bits set: none */
  uint64_t wrong;     /* rows */
  uint64_t different; /* rows from `same` */
  uint64_t rows;      /* that were looked at */
  uint64_t exact;     /* of them such as must match exactly; likewise such as may be anything */
  uint64_t unbounded;
  uint64_t not_worst; /* the bits of the largest error over its bound, each inverted */
};

/* One row's. */
struct campaign_row {
  double got, expected, tolerance;
};

enum { CAMPAIGN_THREADS = 256, CAMPAIGN_ROWS = CAMPAIGN_THREADS / 32 }; /* of a thread block */
enum { CAMPAIGN_GUARD = 32 };

#endif
