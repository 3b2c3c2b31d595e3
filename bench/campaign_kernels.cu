// SPDX-License-Identifier: Apache-2.0
// The campaign's kernels (campaign.c), behind campaign_shared.h: they fill vectors, and compare products with sums in
// two doubles, row by row, by the bound of runtime/verify/oracle.h. They share no text with the kernels that they
// judge.

// ---- vectors

// The last of `count` parts whose first thread block is not behind this one.
template <class Part> CBGEN_DEVICE int part_of(const Part *parts, int count) {
  int first = 0;
  while (count > 1) {
    const int half = count / 2, later = parts[first + half].first_block <= uint32_t(blockIdx.x);
    first += later ? half : 0;
    count = later ? count - half : half;
  }
  return first;
}

CBGEN_DEVICE void put_bits(uint64_t to, int type, uint64_t i, uint64_t bits) {
  if (type == CAMPAIGN_F64) ((uint64_t *)to)[i] = bits;
  else if (type == CAMPAIGN_F32) ((uint32_t *)to)[i] = uint32_t(bits);
  else ((uint16_t *)to)[i] = uint16_t(bits);
}

CBGEN_DEVICE uint64_t bits_at(uint64_t from, int type, uint64_t i) {
  if (type == CAMPAIGN_F64) return ((const uint64_t *)from)[i];
  if (type == CAMPAIGN_F32) return ((const uint32_t *)from)[i];
  return ((const uint16_t *)from)[i];
}

CBGEN_KERNEL void __launch_bounds__(256) campaign_fill_vectors(const campaign_fill *fills, int count) {
  const campaign_fill fill = fills[part_of(fills, count)];
  const uint64_t i = uint64_t(blockIdx.x - fill.first_block) * CAMPAIGN_THREADS + threadIdx.x;
  if (i >= fill.count) return;
  put_bits(fill.to, fill.type, i, campaign_number(fill.type, fill.numbers, campaign_bits(fill.seed, i)));
}

// ---- what a row must be

CBGEN_DEVICE double size_of(double number) { return number < 0 ? -number : number; }
CBGEN_DEVICE double infinite() { return campaign_value(CAMPAIGN_F64, uint64_t(2047) << 52); }

struct Format {
  double roundoff, smallest, largest;
  double exact, infinite;  // integers up to here are exact; numbers from here on are infinite
};
CBGEN_DEVICE Format format_of(int type) {
  const Format f64 = {0x1p-53, 0x1p-1074, 0x1.fffffffffffffp1023, 0x1p53, 0};
  const Format f32 = {0x1p-24, 0x1p-149, 0x1.fffffep127, 0x1p24, 0};
  const Format f16 = {0x1p-11, 0x1p-24, 65504.0, 0x1p11, 65520.0};
  const Format bf16 = {0x1p-8, 0x1p-133, 0x1.fep127, 0x1p8, 0x1.ffp127};
  return type == CAMPAIGN_F64 ? f64 : type == CAMPAIGN_F32 ? f32 : type == CAMPAIGN_F16 ? f16 : bf16;
}

// A number as a sum of two, so that a row's sum is as exact as one in twice the precision.
struct Twofold {
  double high, low;
};
CBGEN_DEVICE Twofold add(Twofold sum, double term) {
  const double high = sum.high + term, part = high - sum.high;
  return {high, sum.low + ((sum.high - (high - part)) + (term - part))};
}
CBGEN_DEVICE Twofold add_product(Twofold sum, double a, double b) {
  const double product = a * b;
  Twofold more = add(sum, product);
  more.low += fma(a, b, -product);
  return more;
}

struct Row {
  Twofold sum;
  double magnitude;  // of the products
  double special;    // the sum of the products with a factor that is not finite
  int specials, entries;
};

// By all lanes of a warp.
CBGEN_DEVICE Row sum_row(const campaign_check &check, int number) {
  const int32_t *starts = (const int32_t *)check.row_ptr, *columns = (const int32_t *)check.columns;
  Row row = {{0, 0}, 0, 0, 0, starts[number + 1] - starts[number]};
  for (int k = starts[number] + int(threadIdx.x) % 32; k < starts[number + 1]; k += 32) {
    const double given = campaign_value(check.given, bits_at(check.values, check.given, uint64_t(k)));
    const double a = check.stored == CAMPAIGN_F32 ? double(float(given)) : given;
    const double x = campaign_value(check.vector, bits_at(check.x, check.vector, uint64_t(columns[k])));
    if (is_finite(a) && is_finite(x)) {
      row.sum = add_product(row.sum, a, x);
      row.magnitude += size_of(a * x);
    } else {
      row.special += a * x;
      row.specials++;
    }
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const double high = shuffle_xor(row.sum.high, step), low = shuffle_xor(row.sum.low, step);
    row.sum = add(row.sum, high);
    row.sum.low += low;
    row.magnitude += shuffle_xor(row.magnitude, step);
    row.special += shuffle_xor(row.special, step);
    row.specials += shuffle_xor(row.specials, step);
  }
  return row;
}

struct Expected {
  double y, rest;    // their sum
  double tolerance;  // infinite: anything is right
  bool is_class;     // NaN or infinite: y is of that class
};

constexpr double kMore = 1 + 1e-6;  // for what these kernels round themselves

// A sum that is rounded to a narrower type of y.
CBGEN_DEVICE Expected narrowed(Expected expected, const Format &format) {
  const double size = size_of(expected.y), bound = expected.tolerance;
  if (expected.is_class || bound == infinite()) return expected;
  if (size - bound >= format.infinite) return {expected.y < 0 ? -infinite() : infinite(), 0, 0, true};
  if (size + bound >= format.infinite) return {expected.y, 0, infinite(), false};
  if (bound == 0 && size <= format.exact) return expected;
  expected.tolerance = bound + format.roundoff * (size + bound) * kMore + format.smallest;
  return expected;
}

CBGEN_DEVICE Expected expect_sum(const campaign_check &check, const Row &row, double y0) {
  const Format sums = format_of(check.sum);
  const double k = row.entries + 4.0, gamma = k * sums.roundoff / (1 - k * sums.roundoff);
  const double total = size_of(check.alpha) * row.magnitude + (is_finite(y0) ? size_of(check.beta * y0) : 0.0);
  const double most = row.magnitude > total ? row.magnitude : total;
  if ((1 + gamma) * kMore * most >= sums.largest) return {row.sum.high, 0, infinite(), false};
  if (row.specials || !is_finite(y0)) {
    const double y = (row.specials ? check.alpha * row.special : 0.0) + check.beta * y0;
    return {y, 0, 0, true};
  }
  Twofold y = add_product({0, 0}, check.alpha, row.sum.high);
  y.low += check.alpha * row.sum.low;
  y = add_product(y, check.beta, y0);
  if (check.integers && most <= sums.exact) return {y.high, y.low, 0, false};
  return {y.high, y.low, gamma * kMore * total + (row.entries * size_of(check.alpha) + 2) * sums.smallest, false};
}

CBGEN_DEVICE Expected expect(const campaign_check &check, int number) {
  const Row row = sum_row(check, number);
  const uint64_t before = campaign_number(check.vector, check.y_numbers, campaign_bits(check.y_seed, uint64_t(number)));
  const double y0 = check.beta == 0 ? 0.0 : campaign_value(check.vector, before);
  const Expected expected = expect_sum(check, row, y0);
  return check.vector > check.sum ? narrowed(expected, format_of(check.vector)) : expected;
}

// The error in units of its bound: above 1 where the row is wrong.
CBGEN_DEVICE double error_of(const Expected &expected, double got) {
  if (expected.is_class) return (expected.y != expected.y ? got != got : got == expected.y) ? 0.0 : infinite();
  if (expected.tolerance == infinite()) return 0.0;
  const double error = size_of((got - expected.y) - expected.rest);
  if (!(error <= expected.tolerance)) return infinite();
  return error > 0 ? error / expected.tolerance : 0.0;
}

// ---- checks

CBGEN_DEVICE uint64_t bits_of(double number) {
  union {
    double number;
    uint64_t bits;
  } both = {number};
  return both.bits;
}

CBGEN_DEVICE void count(uint64_t *counter) { atomicAdd((unsigned long long *)counter, 1ull); }
CBGEN_DEVICE void lower(uint64_t *least, uint64_t value) {
  atomicMin((unsigned long long *)least, (unsigned long long)value);
}

// A NaN is as good as another.
CBGEN_DEVICE bool is_different(const campaign_check &check, uint64_t row, double got) {
  if (!check.same) return false;
  const uint64_t other = bits_at(check.same, check.vector, row);
  const double value = campaign_value(check.vector, other);
  return bits_at(check.y, check.vector, row) != other && !(got != got && value != value);
}

CBGEN_DEVICE void judge(const campaign_check &check, uint64_t row, const Expected &expected, campaign_result *result) {
  const double got = campaign_value(check.vector, bits_at(check.y, check.vector, row)), error = error_of(expected, got);
  const bool different = is_different(check, row, got);
  count(&result->rows);
  if (different) count(&result->different);
  if (!expected.is_class && expected.tolerance == 0) count(&result->exact);
  if (expected.tolerance == infinite()) count(&result->unbounded);
  if (error > 1) count(&result->wrong);
  else lower(&result->not_worst, ~bits_of(error));
  if (error > 1 || different) lower(&result->first, row);
}

// What lies behind y, by the lanes of a warp.
CBGEN_DEVICE void check_guard(const campaign_check &check, campaign_result *result) {
  const uint64_t place = uint64_t(check.rows) + threadIdx.x % 32;
  const int numbers = check.beta == 0 ? int(CAMPAIGN_NANS) : check.y_numbers;
  if (bits_at(check.y, check.vector, place) == campaign_number(check.vector, numbers, campaign_bits(check.y_seed, place)))
    return;
  count(&result->wrong);
  lower(&result->first, uint64_t(check.rows));
}

// A warp to a row, and one to what lies behind them.
CBGEN_KERNEL void __launch_bounds__(256)
campaign_check_rows(const campaign_check *checks, campaign_result *results, int count) {
  const int part = part_of(checks, count);
  const campaign_check check = checks[part];
  const int row = int(blockIdx.x - check.first_block) * CAMPAIGN_ROWS + int(threadIdx.x) / 32;
  if (row == check.rows) check_guard(check, results + part);
  if (row >= check.rows) return;
  const Expected expected = expect(check, row);
  if (threadIdx.x % 32 == 0) judge(check, uint64_t(row), expected, results + part);
}

// What stands in a row, by one warp.
CBGEN_KERNEL void __launch_bounds__(32) campaign_tell_row(const campaign_check *check, int row, campaign_row *told) {
  const campaign_check own = *check;
  const Expected expected = expect(own, row);
  if (threadIdx.x) return;
  told->got = campaign_value(own.vector, bits_at(own.y, own.vector, uint64_t(row)));
  told->expected = expected.y;
  told->tolerance = expected.tolerance;
}
