// SPDX-License-Identifier: Apache-2.0
/* The oracle: see oracle.h. A row is summed once, together with the sum of magnitudes that its bound needs. */
#include "runtime/verify/oracle.h"

#include "base/memory.h"
#include "base/real.h"
#include "codegen/source.h"

#include <float.h>
#include <math.h>

/* ---- numbers of a type */

struct format {
  long double roundoff; /* u */
  long double smallest; /* η */
  long double largest;
  long double exact;    /* integers up to this are held exactly */
  long double infinite; /* numbers from here on are infinite when they are rounded to it */
};

static struct format format_of(enum cb_type type) {
  static const struct format formats[] = {
      [CB_F64] = {0x1p-53L, 0x1p-1074L, DBL_MAX, 0x1p53L, 0x1.fffffffffffff8p1023L},
      [CB_F32] = {0x1p-24L, 0x1p-149L, FLT_MAX, 0x1p24L, 0x1.ffffffp127L},
      [CB_F16] = {0x1p-11L, 0x1p-24L, 65504, 0x1p11L, 65520},
      [CB_BF16] = {0x1p-8L, 0x1p-133L, 0x1.fep127L, 0x1p8L, 0x1.ffp127L}};
  return formats[type];
}

/* γ(k), infinite where the bound means nothing any more. */
static long double gamma_of(long double k, long double roundoff) {
  return k * roundoff < 1 ? k * roundoff / (1 - k * roundoff) : (long double)INFINITY;
}

struct cb_oracle_types cb_oracle_types_of(const struct cb_plan *plan) {
  return (struct cb_oracle_types){plan->matrix_type, plan->vector_type, plan->sum_type, plan->semiring};
}

/* ---- one row */

struct row {
  int64_t nonzeros;
  long double sum;       /* Σ a x */
  long double magnitude; /* Σ |a x| over the finite products */
  int integers;          /* all operands are */
};

static double x_at(const struct cb_product *product, int64_t column) {
  if (product->x) return product->x[column];
  const double x = cb_real_round(cb_selftest_x((uint64_t)column), product->types.vector);
  return product->types.semiring == CB_OR_AND && x < 0 ? 0 : x;
}

static struct row sum_row(const struct cb_csr *csr, const struct cb_product *product, int64_t i) {
  const double *values = product->values ? product->values : csr->values;
  const int64_t end = cb_csr_row(csr, i + 1);
  struct row row = {cb_csr_row_length(csr, i), 0, 0, 1};
  for (int64_t k = cb_csr_row(csr, i); k < end; k++) {
    const double a = cb_real_round(values[k], product->types.matrix), x = x_at(product, csr->col_idx[k]);
    const long double term = (long double)a * x;
    row.sum += term;
    if (isfinite(term)) row.magnitude += fabsl(term);
    row.integers = row.integers && cb_real_is_integer(a) && cb_real_is_integer(x);
  }
  return row;
}

/* ---- one row, of another semiring */

/* What changes nothing: a NaN, or 0. */
static double nothing(enum cb_semiring semiring) {
  return semiring == CB_OR_AND ? 0 : NAN;
}

/* a ⊗ x, rounded as the sums' type does it: once. */
static double multiplied(const struct cb_oracle_types *types, double a, double x) {
  const int narrow = types->sum == CB_F32;
  switch (types->semiring) {
  case CB_MIN_PLUS:
    return narrow ? (float)a + (float)x : a + x;
  case CB_MAX_TIMES:
    return narrow ? (float)a * (float)x : a * x;
  default:
    return a != 0 && x != 0;
  }
}

/* sum ⊕ term */
static double joined(enum cb_semiring semiring, double sum, double term) {
  switch (semiring) {
  case CB_MIN_PLUS:
    return fmin(sum, term);
  case CB_MAX_TIMES:
    return fmax(sum, term);
  default:
    return sum != 0 || term != 0;
  }
}

/* A row of y: that of a row without nonzeros where nothing else is. `y0`: NULL where y is not read. */
static double join_row(const struct cb_csr *csr, const struct cb_product *product, int64_t i, const double *y0) {
  static const double empty[] = {[CB_MIN_PLUS] = INFINITY, [CB_MAX_TIMES] = -INFINITY, [CB_OR_AND] = 0};
  const struct cb_oracle_types *types = &product->types;
  const double *values = product->values ? product->values : csr->values;
  double sum = nothing(types->semiring);
  for (int64_t k = cb_csr_row(csr, i); k < cb_csr_row(csr, i + 1); k++) {
    const double a = cb_real_round(values[k], types->matrix), x = x_at(product, csr->col_idx[k]);
    sum = joined(types->semiring, sum, multiplied(types, a, x));
  }
  sum = joined(types->semiring, sum, empty[types->semiring]);
  return y0 ? joined(types->semiring, *y0, sum) : sum;
}

static double round_up(long double value) {
  const double nearest = (double)value;
  return nearest >= value ? nearest : nextafter(nearest, INFINITY);
}

/* What a row must give: `y`, up to `tolerance`. */
struct outcome {
  long double y, tolerance;
};

/* How far a sum may be from `y`; `y0` is what β multiplies (0 when β is). */
static long double bound_of(const struct row *row, const struct cb_product *product, long double y, double y0) {
  const struct format sums = format_of(product->types.sum);
  const long double alpha = fabsl((long double)product->alpha);
  const long double added = isfinite(y0) ? fabsl((long double)product->beta * y0) : 0;
  const long double total = alpha * row->magnitude + added, k = (long double)row->nonzeros + CB_ORACLE_EXTRA;
  const long double gamma = gamma_of(k, sums.roundoff);
  if (isnan(y)) return 0;
  if ((1 + gamma) * fmaxl(row->magnitude, total) >= sums.largest) return INFINITY;
  if (!isfinite(y)) return 0;
  if (row->integers && cb_real_is_integer(product->alpha) && cb_real_is_integer(product->beta) &&
      cb_real_is_integer(y0) && fmaxl(row->magnitude, total) <= sums.exact)
    return 0;
  const long double bound = (gamma + gamma_of(k, LDBL_EPSILON / 2)) * total;
  return bound + ((long double)row->nonzeros * alpha + 2) * sums.smallest;
}

static int rounds_y(const struct cb_product *product) {
  return cb_rounds_y(product->types.vector, product->types.sum);
}

/* What becomes of a sum within `bound` of `y` in a narrower type. */
static struct outcome narrowed(long double y, long double bound, enum cb_type type) {
  const struct format format = format_of(type);
  const long double size = fabsl(y);
  if (!isfinite(y) || isinf(bound)) return (struct outcome){y, bound};
  if (size - bound >= format.infinite) return (struct outcome){copysignl(INFINITY, y), 0};
  if (size + bound >= format.infinite) return (struct outcome){y, INFINITY};
  if (bound == 0) return (struct outcome){cb_real_round((double)y, type), 0};
  return (struct outcome){y, bound + format.roundoff * (size + bound) + format.smallest};
}

/* Of a row whose sum with what was in y before is `y`. */
static struct outcome outcome_of(const struct row *row, const struct cb_product *product, long double y, double y0) {
  const long double bound = bound_of(row, product, y, y0);
  return rounds_y(product) ? narrowed(y, bound, product->types.vector) : (struct outcome){y, bound};
}

/* Of a row in another semiring than plus-times. */
static struct outcome joined_outcome(const struct cb_csr *csr, const struct cb_product *product, int64_t i) {
  const double y = join_row(csr, product, i, product->beta != 0 ? &product->y[i] : NULL);
  return rounds_y(product) ? narrowed(y, 0, product->types.vector) : (struct outcome){y, 0};
}

/* ---- one part of a complex row */

/* Both parts of a number. */
struct parts {
  double of[2];
};

static struct parts rounded(const double *pairs, int64_t k, enum cb_type part) {
  return (struct parts){{cb_real_round(pairs[2 * k], part), cb_real_round(pairs[2 * k + 1], part)}};
}

static struct parts x_parts(const struct cb_product *product, int64_t column) {
  const enum cb_type part = cb_type_of_part(product->types.vector);
  if (product->x) return (struct parts){{product->x[2 * column], product->x[2 * column + 1]}};
  const uint64_t first = 2 * (uint64_t)column;
  return (struct parts){{cb_real_round(cb_selftest_x(first), part), cb_real_round(cb_selftest_x(first + 1), part)}};
}

static int are_integers(struct parts number) {
  return cb_real_is_integer(number.of[0]) && cb_real_is_integer(number.of[1]);
}

static void add_term(struct row *row, double a, double x) {
  const long double term = (long double)a * x;
  row->sum += term;
  if (isfinite(term)) row->magnitude += fabsl(term);
}

/* Both parts' sums, as rows with two products for each nonzero. */
static void sum_parts(struct row parts[2], const struct cb_csr *csr, const struct cb_product *product, int64_t i) {
  const double *values = product->values ? product->values : csr->values;
  const enum cb_type type = cb_type_of_part(product->types.matrix);
  for (int p = 0; p < 2; p++) parts[p] = (struct row){2 * cb_csr_row_length(csr, i), 0, 0, 1};
  for (int64_t k = cb_csr_row(csr, i); k < cb_csr_row(csr, i + 1); k++) {
    struct parts a = rounded(values, k, type);
    const struct parts x = x_parts(product, csr->col_idx[k]);
    if (product->conjugated) a.of[1] = -a.of[1];
    add_term(&parts[0], a.of[0], x.of[0]);
    add_term(&parts[0], -a.of[1], x.of[1]);
    add_term(&parts[1], a.of[0], x.of[1]);
    add_term(&parts[1], a.of[1], x.of[0]);
    parts[0].integers = parts[1].integers = parts[0].integers && are_integers(a) && are_integers(x);
  }
}

/* What α and β make of one part: its own number by their real part, the other one's by their imaginary part. */
struct scaled {
  long double y;
  long double magnitude; /* of all products */
  int integers;
};

/* Adds scalar · number, of which `part` is wanted; a real scalar leaves the other part alone. */
static void add_scaled(struct scaled *scaled, double real, double imaginary, const long double number[2],
                       const long double magnitude[2], int part) {
  const double sign = part ? 1 : -1;
  scaled->y += (long double)real * number[part];
  scaled->magnitude += fabsl((long double)real) * magnitude[part];
  if (imaginary == 0) return;
  scaled->y += sign * (long double)imaginary * number[1 - part];
  scaled->magnitude += fabsl((long double)imaginary) * magnitude[1 - part];
}

static long double bound_of_part(const struct row parts[2], const struct cb_product *product,
                                 const struct scaled *scaled) {
  const struct format sums = format_of(cb_type_of_part(product->types.sum));
  const long double scale = fabsl((long double)product->alpha) + fabsl((long double)product->alpha_imag);
  const long double k = (long double)parts[0].nonzeros + CB_ORACLE_EXTRA + 2, gamma = gamma_of(k, sums.roundoff);
  const long double largest = fmaxl(scaled->magnitude, fmaxl(parts[0].magnitude, parts[1].magnitude));
  if (isnan(scaled->y)) return 0;
  if ((1 + gamma) * largest >= sums.largest) return INFINITY;
  if (!isfinite(scaled->y)) return 0;
  if (scaled->integers && largest <= sums.exact) return 0;
  const long double bound = (gamma + gamma_of(k, LDBL_EPSILON / 2)) * scaled->magnitude;
  return bound + ((long double)parts[0].nonzeros * scale + 4) * sums.smallest;
}

/* Both parts of row `i`. */
static void expect_parts(struct outcome outcomes[2], const struct cb_csr *csr, const struct cb_product *product,
                         int64_t i) {
  struct row parts[2];
  const int adds = product->beta != 0 || product->beta_imag != 0;
  sum_parts(parts, csr, product, i);
  const long double sums[] = {parts[0].sum, parts[1].sum}, sizes[] = {parts[0].magnitude, parts[1].magnitude};
  const struct parts y0 = adds ? (struct parts){{product->y[2 * i], product->y[2 * i + 1]}} : (struct parts){{0, 0}};
  const long double before[] = {y0.of[0], y0.of[1]};
  const long double size_before[] = {isfinite(y0.of[0]) ? fabs(y0.of[0]) : 0, isfinite(y0.of[1]) ? fabs(y0.of[1]) : 0};
  const struct parts alpha = {{product->alpha, product->alpha_imag}}, beta = {{product->beta, product->beta_imag}};
  for (int p = 0; p < 2; p++) {
    struct scaled scaled = {
        .integers = parts[0].integers && are_integers(alpha) && are_integers(beta) && are_integers(y0)};
    add_scaled(&scaled, alpha.of[0], alpha.of[1], sums, sizes, p);
    if (adds) add_scaled(&scaled, beta.of[0], beta.of[1], before, size_before, p);
    outcomes[p] = (struct outcome){scaled.y, bound_of_part(parts, product, &scaled)};
  }
}

/* ---- the product */

/* Real numbers of a row of y. */
static int parts_of(const struct cb_product *product) { return cb_type_parts(product->types.sum); }

static struct outcome expect_row(const struct cb_csr *csr, const struct cb_product *product, int64_t i) {
  if (product->types.semiring != CB_PLUS_TIMES) return joined_outcome(csr, product, i);
  const struct row row = sum_row(csr, product, i);
  const double y0 = product->beta != 0 ? product->y[i] : 0;
  long double y = product->alpha * row.sum;
  if (product->beta != 0) y += (long double)product->beta * y0;
  return outcome_of(&row, product, y, y0);
}

/* All numbers of row `i`. */
static void expect(struct outcome outcomes[2], const struct cb_csr *csr, const struct cb_product *product, int64_t i) {
  if (parts_of(product) == 2) expect_parts(outcomes, csr, product, i);
  else outcomes[0] = expect_row(csr, product, i);
}

enum cb_status cb_oracle_multiply(struct cb_expected *expected, const struct cb_csr *csr,
                                  const struct cb_product *product, struct cb_diag *diag) {
  const int parts = parts_of(product);
  const int64_t numbers = parts * csr->rows;
  *expected = (struct cb_expected){.rows = numbers,
                                   .y = cb_alloc((size_t)numbers, sizeof(long double)),
                                   .tolerance = cb_alloc((size_t)numbers, sizeof(double))};
  if (!expected->y || !expected->tolerance) {
    cb_expected_release(expected);
    return cb_fail_memory(diag, "expected result", (unsigned long long)numbers * 24);
  }
#pragma omp parallel for schedule(dynamic, 1024)
  for (int64_t i = 0; i < csr->rows; i++) {
    struct outcome outcomes[2];
    expect(outcomes, csr, product, i);
    for (int p = 0; p < parts; p++) {
      expected->y[parts * i + p] = outcomes[p].y;
      expected->tolerance[parts * i + p] = round_up(outcomes[p].tolerance);
    }
  }
  return CB_OK;
}

void cb_expected_release(struct cb_expected *expected) {
  cb_free(expected->y);
  cb_free(expected->tolerance);
  *expected = (struct cb_expected){0};
}

/* ---- comparing */

/* Error over tolerance: at most 1 when the row is right; 0 for an unbounded row. */
static double error_ratio(long double expected, double tolerance, double got) {
  if (isnan(expected)) return isnan(got) ? 0 : INFINITY;
  if (isinf(tolerance)) return 0;
  if (isinf(expected) || !isfinite(got)) return (long double)got == expected ? 0 : INFINITY;
  const long double error = fabsl(got - expected);
  if (error <= tolerance) return tolerance > 0 ? (double)(error / tolerance) : 0;
  return tolerance > 0 ? fmax((double)(error / tolerance), nextafter(1, 2)) : (double)INFINITY;
}

static void merge(struct cb_comparison *all, const struct cb_comparison *part) {
  all->exact += part->exact;
  all->unbounded += part->unbounded;
  all->wrong += part->wrong;
  if (part->first_wrong >= 0 && (all->first_wrong < 0 || part->first_wrong < all->first_wrong))
    all->first_wrong = part->first_wrong;
  const int worse = part->worst_ratio > all->worst_ratio;
  if (worse ||
      (part->worst_row >= 0 && part->worst_ratio == all->worst_ratio && part->worst_row < all->worst_row)) {
    all->worst_ratio = part->worst_ratio;
    all->worst_row = part->worst_row;
  }
}

static void compare_row(struct cb_comparison *part, const struct cb_expected *expected, int64_t i,
                        double got) {
  const double tolerance = expected->tolerance[i], ratio = error_ratio(expected->y[i], tolerance, got);
  part->exact += tolerance == 0 && isfinite(expected->y[i]);
  part->unbounded += isinf(tolerance) != 0;
  if (ratio > part->worst_ratio) {
    part->worst_ratio = ratio;
    part->worst_row = i;
  }
  if (ratio <= 1) return;
  if (part->first_wrong < 0) part->first_wrong = i;
  part->wrong++;
}

void cb_oracle_compare(struct cb_comparison *comparison, const struct cb_expected *expected, const void *y,
                       enum cb_type of_y) {
  const enum cb_type type = cb_type_of_part(of_y);
  const struct cb_comparison none = {.first_wrong = -1, .worst_row = -1};
  *comparison = none;
  comparison->rows = expected->rows;
#pragma omp parallel
  {
    struct cb_comparison part = none;
#pragma omp for schedule(static)
    for (int64_t i = 0; i < expected->rows; i++) compare_row(&part, expected, i, cb_real_get(y, type, i));
#pragma omp critical(cb_oracle_merge)
    merge(comparison, &part);
  }
  const int64_t first = comparison->first_wrong;
  if (first < 0) return;
  comparison->got = cb_real_get(y, type, first);
  comparison->expected = expected->y[first];
  comparison->tolerance = expected->tolerance[first];
}

/* ---- the self-test of a kernel */

void cb_oracle_selftest(const struct cb_csr *csr, const struct cb_plan *plan, double *expected, double *tolerance) {
  const struct cb_product product = {.types = cb_oracle_types_of(plan), .alpha = 1, .conjugated = plan->conjugated};
#pragma omp parallel for schedule(dynamic, 1024)
  for (int64_t i = 0; i < csr->rows; i++) {
    const int parts = parts_of(&product);
    struct outcome outcomes[2];
    expect(outcomes, csr, &product, i);
    for (int p = 0; p < parts; p++) {
      const long double y = outcomes[p].y, lost = isfinite(y) ? fabsl(y - (long double)(double)y) : 0;
      expected[parts * i + p] = (double)y;
      tolerance[parts * i + p] = round_up(outcomes[p].tolerance + lost);
    }
  }
}
