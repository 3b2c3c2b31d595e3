// SPDX-License-Identifier: Apache-2.0
/* Values on their way into the slots: rounding to each type by brute force, and what is refused. */
#include "tests/layouts.h"
#include "tests/recipes.h"

#include "analysis/plan/assignment.h"
#include "base/real.h"
#include "base/split.h"

#include <float.h>
#include <math.h>

/* ---- rounding */

static uint16_t narrowed(double value, enum cb_type type) {
  uint16_t bits;
  cb_real_set(&bits, type, 0, value);
  return bits;
}

/* Every 16-bit number is its own rounding, and so are its neighbours halfway: ties go to the even one. */
static void check_format(enum cb_type type, uint16_t infinity, uint16_t quiet) {
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    const uint16_t own = (uint16_t)bits, magnitude = own & 0x7fff;
    const double value = cb_real_get(&own, type, 0);
    if (magnitude > infinity) { /* NaN; a signalling one becomes quiet */
      assert_true(isnan(value));
      assert_int_equal(narrowed(value, type), own | quiet);
      continue;
    }
    if (narrowed(value, type) != own)
      fail_msg("%s: 0x%04x becomes 0x%04x", cb_type_short(type), own, narrowed(value, type));
    assert_int_equal(signbit(value) != 0, own >> 15);
    assert_int_equal(isinf(value) != 0, magnitude == infinity);
    if (magnitude >= infinity - 1) continue;
    const uint16_t next = (uint16_t)(own + 1), even = own & 1 ? next : own;
    const double above = cb_real_get(&next, type, 0), middle = (value + above) / 2; /* exact */
    assert_true(fabs(above) > fabs(value));
    assert_int_equal(narrowed(middle, type), even);
    assert_int_equal(narrowed(nextafter(middle, value), type), own);
    assert_int_equal(narrowed(nextafter(middle, above), type), next);
  }
}

static void sixteen_bits_round_to_nearest_even(void **state) {
  (void)state;
  check_format(CB_F16, 0x7c00, 0x0200);
  check_format(CB_BF16, 0x7f80, 0x0040);
  /* One rounding, not two: through a float this would be a tie, and round down. */
  assert_int_equal(narrowed(1 + 0x1p-11 + 0x1p-40, CB_F16), 0x3c01);
  assert_int_equal(narrowed(1 + 0x1p-8 + 0x1p-40, CB_BF16), 0x3f81);
  assert_int_equal(narrowed(5e-324, CB_BF16), 0);
  assert_int_equal(narrowed(-5e-324, CB_F16), 0x8000);
}

static void ends_of_the_ranges(void **state) {
  static const struct {
    enum cb_type type;
    double largest, above; /* the least number that rounds to infinity */
  } ends[] = {{CB_F16, 65504, 65520},
              {CB_BF16, 0x1.fep127, 0x1.ffp127},
              {CB_F32, FLT_MAX, 0x1.ffffffp127},
              {CB_F64, DBL_MAX, INFINITY}};
  (void)state;
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    const enum cb_type type = ends[i].type;
    assert_true(cb_real_round(ends[i].largest, type) == ends[i].largest);
    assert_true(cb_real_round(nextafter(ends[i].above, 0), type) == ends[i].largest);
    assert_true(isinf(cb_real_round(-ends[i].above, type)));
    assert_int_equal(cb_real_overflows(-ends[i].above, type), type != CB_F64);
    assert_false(cb_real_overflows(nextafter(-ends[i].above, 0), type));
    assert_false(cb_real_overflows(INFINITY, type) || cb_real_overflows(NAN, type));
    assert_true(isnan(cb_real_round(NAN, type)) && isinf(cb_real_round(-INFINITY, type)));
    assert_true(cb_real_bits(cb_real_round(-0.0, type)) == cb_real_bits(-0.0));
  }
}

/* What holds an array tells the same as what holds each number: near all 16-bit numbers, and with one bit of theirs
 * changed. */
static void arrays_fit_when_their_numbers_do(void **state) {
  static const enum cb_type types[] = {CB_F64, CB_F32, CB_F16, CB_BF16, CB_I8, CB_I16};
  (void)state;
  for (uint32_t number = 0; number < 3 * 0x10000; number++) {
    const uint16_t bits = (uint16_t)number;
    double value = number >> 16 ? cb_real_get(&bits, number >> 17 ? CB_BF16 : CB_F16, 0) : (double)(int16_t)bits;
    for (unsigned bit = 0; bit < 64; bit += 1 + number % 7) {
      const uint64_t changed = cb_real_bits(value) ^ UINT64_C(1) << bit;
      double pair[] = {value, value};
      memcpy(&pair[bit & 1], &changed, sizeof changed);
      for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const int fit = cb_real_fits(pair[0], types[t]) && cb_real_fits(pair[1], types[t]);
        if (cb_real_all_fit(pair, 2, types[t]) != fit)
          fail_msg("%a and %a in %s: %d", pair[0], pair[1], cb_type_short(types[t]), fit);
      }
    }
  }
}

/* ---- packing */

/* 1 × n with these values in the columns 0, 1, …. */
static struct cb_csr row_of(const double *values, int64_t count) {
  struct cb_diag diag = {0};
  struct cb_csr csr = {0};
  assert_ok(cb_csr_alloc(&csr, 1, count, count, &diag));
  ((int32_t *)csr.row_ptr)[0] = 0;
  ((int32_t *)csr.row_ptr)[1] = (int32_t)count;
  for (int64_t k = 0; k < count; k++) {
    csr.col_idx[k] = (int32_t)k;
    csr.values[k] = values[k];
  }
  return csr;
}

static enum cb_status pack_row(const double *values, int64_t count, const char *settings,
                               struct cb_diag *refusal) {
  struct cb_diag diag = {0};
  struct cb_csr csr = row_of(values, count);
  struct cb_options options;
  struct cb_target target;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  struct cb_blob blob = {0};
  set_options(&options, settings);
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  assert_ok(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag));
  const enum cb_status s = cb_pack(&blob, plan, assignment, &csr, cb_csr_pattern_hash(&csr), refusal);
  if (s) assert_null(blob.bytes);
  cb_blob_release(&blob);
  cb_assignment_free(assignment);
  cb_plan_free(plan);
  cb_csr_release(&csr);
  return s;
}

static void values_beyond_the_range_are_refused(void **state) {
  static const struct {
    const char *settings;
    double value;
    const char *part; /* of the message; NULL: it is packed */
  } cases[] = {
      {"recipe=sell type=f16-f32", 65520, "nonzero 2 (counted from 0) is 65520: beyond the range of f16"},
      {"recipe=cb type=f16-f32", -1e300, "nonzero 2"},
      {"recipe=sell type=bf16-f32", 1e39, "of bf16"},
      {"recipe=sell type=f32-f64", 1e39, "of f32"},
      {"recipe=dia dia-fill=0 type=f32", -1e39, "of f32"},
      {"recipe=sell type=f16-f32", 65519, NULL},
      {"recipe=sell type=f16-f32", INFINITY, NULL},
      {"recipe=sell type=bf16-f32", NAN, NULL},
      {"recipe=sell type=f64", 1e308, NULL},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_diag diag = {0};
    const double values[] = {1, -2, cases[i].value, 3, cases[i].value};
    const enum cb_status s = pack_row(values, 5, cases[i].settings, &diag);
    assert_int_equal(s, cases[i].part ? CB_ERR_LIMIT : CB_OK);
    if (cases[i].part && !strstr(diag.message, cases[i].part))
      fail_msg("'%s' lacks '%s'", diag.message, cases[i].part);
  }
}

/* New values are refused like those of the matrix. */
static void new_values_are_checked_too(void **state) {
  struct cb_diag diag = {0};
  struct product product = product_of("tridiagonal,n=50", "recipe=sell type=f16-f32");
  double *values = calloc((size_t)product.csr->nnz, sizeof *values);
  (void)state;
  assert_non_null(values);
  assert_ok(cb_pack_values(&product.blob, product.plan, product.assignment, values, &diag));
  values[7] = 1e5;
  assert_int_equal(cb_pack_values(&product.blob, product.plan, product.assignment, values, &diag),
                   CB_ERR_LIMIT);
  assert_non_null(strstr(diag.message, "nonzero 7 "));
  free(values);
  product_release(&product);
}

/* ---- slots */

static int array_with_role(const struct cb_region *region, enum cb_role role) {
  for (int a = 0; a < region->arrays_count; a++)
    if (region->arrays[a].role == role) return a;
  return -1;
}

static int holder_of(const struct cb_region *region) {
  const int values = array_with_role(region, CB_ROLE_VALUES);
  return values < 0 ? array_with_role(region, CB_ROLE_MIXED) : values;
}

/* The number that the kernel sees in a slot that is stored. */
/* `part` of complex values: 0 or 1. */
static double decode(const struct product *product, int number, int64_t slot, int part) {
  const struct cb_region *region = &product->plan->regions[number];
  const int table = array_with_role(region, CB_ROLE_TABLE);
  if (region->value_storage == CB_VALUES_EQUAL) return region->value_table[0];
  const unsigned char *slots = product->blob.bytes + cb_blob_offset(product->plan, number, holder_of(region));
  if (region->value_type == CB_SPLIT) return cb_split_get(slots, region->value_slots, slot);
  if (cb_type_is_complex(region->value_type))
    return cb_real_get(slots, cb_type_of_part(region->value_type), 2 * slot + part);
  if (region->value_storage == CB_VALUES_PLAIN) return cb_real_get(slots, region->value_type, slot);
  assert_in_range(slots[slot], 0, region->table_count - 1);
  assert_int_equal(table < 0, region->table_baked);
  if (region->table_baked) return region->value_table[slots[slot]];
  const void *numbers = product->blob.bytes + cb_blob_offset(product->plan, number, table);
  return cb_real_get(numbers, region->arrays[table].type, slots[slot]);
}

/* Every nonzero is in a slot that gives its value, rounded to the matrix's type, bit for bit; a slot without
 * one gives 0 in the first region where `zeros`. Slots that a layout made constants of its text are looked at
 * by executing it (test_kernels_…). */
static void check_slots(const struct product *product, int zeros) {
  struct cb_diag diag = {0};
  const enum cb_type type = product->plan->matrix_type;
  const int parts = cb_type_parts(type);
  int64_t found = 0;
  assert_ok(cb_plan_check(product->plan, &diag));
  assert_ok(cb_assignment_check(product->plan, product->assignment, &diag));
  for (int number = 0; number < product->plan->regions_count; number++) {
    const struct cb_region *region = &product->plan->regions[number];
    const int64_t stored = region->value_slots - region->constant_slots;
    const int all = region->value_storage == CB_VALUES_EQUAL;
    const int mixed = array_with_role(region, CB_ROLE_MIXED) >= 0;
    struct cb_slot_map map;
    assert_ok(cb_slot_map_build(&map, product->plan, product->assignment, number, NULL, &diag));
    for (int64_t slot = 0; slot < map.count; slot++) {
      const uint64_t k = cb_slot_get(&map, slot);
      found += k != CB_NO_NONZERO;
      if (slot >= stored && !all) continue;
      for (int part = 0; part < parts; part++)
        if (k != CB_NO_NONZERO)
          assert_true(cb_real_bits(decode(product, number, slot, part)) ==
                      cb_real_bits(cb_real_round(product->csr->values[(uint64_t)parts * k + (uint64_t)part], type)));
        else if (zeros && number == 0 && !all && !mixed)
          assert_true(cb_real_bits(decode(product, number, slot, part)) == 0);
    }
    cb_slot_map_release(&map);
  }
  assert_int_equal(found, product->csr->nnz);
}

static void slots_hold_rounded_values(void **state) {
  (void)state;
  char own[SETTINGS];
  for (int precision = 0; precision < CB_PRECISION_COUNT; precision++)
    for (int number = 0; next_settings(own, number, 0); number++) {
      char settings[SETTINGS + 32];
      struct cb_diag diag;
      snprintf(settings, sizeof settings, "%s type=%s", own, cb_precision_names[precision]);
      if (plan_status_of("fe3,n=3", settings, &diag) == CB_ERR_UNSUPPORTED) continue;
      struct product product = product_of("fe3,n=3", settings);
      assert_string_equal(cb_plan_types_name(product.plan), cb_precision_names[precision]);
      for (int r = 0; r < product.plan->regions_count; r++)
        if (product.plan->regions[r].value_slots)
          assert_int_equal(product.plan->regions[r].value_type, product.plan->matrix_type);
      check_slots(&product, 1);
      product_release(&product);
    }
}

/* ---- what fixed values have in common */

/* Values 0, 1, … of a sequence; those of a matrix, in canonical order, go through it again and again. */
typedef double sequence(int64_t i);
static double ones(int64_t i) {
  return i >= 0;
}
static double zeros(int64_t i) {
  return 0.0 * (double)i;
}
static double tenths(int64_t i) {
  return 0.1 * (double)i + 0.1;
}
static double small_integers(int64_t i) {
  return (double)(i % 256 - 128);
}
static double integers(int64_t i) {
  return (double)(i * 65 - 16000);
} /* more than f16 has exactly */
static double quarters(int64_t i) {
  return (double)i / 4;
}
static double powers(int64_t i) {
  return ldexp(i % 2 ? -1 : 1, (int)(i % 200));
}
static double floats(int64_t i) {
  return (double)((float)i / 3);
}
static double signed_zeros(int64_t i) {
  return i % 2 ? -0.0 : 0.0;
}
static double two_nans(int64_t i) {
  const uint64_t bits = UINT64_C(0x7ff8000000000001) + (uint64_t)(i % 2);
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
static double one_nan(int64_t i) {
  return two_nans(2 * i);
}
static double infinities(int64_t i) {
  return i % 3 ? 0.3 : INFINITY;
}
static double nearly_one(int64_t i) {
  return 1 + 0x1p-40 * (double)(i % 300);
} /* 1 as f32 */

static struct product product_with(const char *matrix, sequence *values, int64_t period,
                                   const char *settings) {
  struct cb_csr csr = matrix_of(matrix);
  for (int64_t k = 0; k < csr.nnz; k++) csr.values[k] = values(k % period);
  return product_of_matrix(csr, settings);
}

static const struct {
  const char *name, *type;
  sequence *values;
  int64_t period;
  enum cb_value_storage storage;
  enum cb_type slot;
  int table;
} commons[] = {
    {"one", "f64", ones, 1, CB_VALUES_EQUAL, CB_I8, 1},
    {"zero", "f64", zeros, 1, CB_VALUES_EQUAL, CB_I8, 1},
    {"a tenth", "f64", tenths, 1, CB_VALUES_EQUAL, CB_F64, 1},
    {"2 tenths", "f64", tenths, 2, CB_VALUES_CODED, CB_U8, 2},
    {"256 tenths", "f64", tenths, 256, CB_VALUES_CODED, CB_U8, 256},
    {"257 tenths", "f64", tenths, 257, CB_VALUES_PLAIN, CB_F64, 0},
    {"257 tenths, f32", "f32", tenths, 257, CB_VALUES_PLAIN, CB_F32, 0},
    {"small integers", "f64", small_integers, 256, CB_VALUES_PLAIN, CB_I8, 0},
    {"integers", "f64", integers, 500, CB_VALUES_PLAIN, CB_I16, 0},
    {"quarters", "f32-f64", quarters, 400, CB_VALUES_PLAIN, CB_F16, 0},
    {"quarters", "bf16-f32", quarters, 1000, CB_VALUES_PLAIN, CB_BF16, 0}, /* rounded, nothing is narrower */
    {"powers", "f64", powers, 400, CB_VALUES_CODED, CB_U8, 200},
    {"floats", "f64", floats, 300, CB_VALUES_PLAIN, CB_F32, 0},
    {"floats", "f16-f32", floats, 20, CB_VALUES_CODED, CB_U8, 20},
    {"zeros of both signs", "f64", signed_zeros, 2, CB_VALUES_CODED, CB_U8, 2},
    {"NaNs", "f64", two_nans, 2, CB_VALUES_CODED, CB_U8, 2},
    {"NaNs, f32", "f32", two_nans, 2, CB_VALUES_CODED, CB_U8, 1}, /* rounding drops what tells them apart */
    {"a NaN", "f64", one_nan, 1, CB_VALUES_CODED, CB_U8, 1},
    {"infinity", "f64", infinities, 3, CB_VALUES_CODED, CB_U8, 2},
    {"nearly one", "f64", nearly_one, 300, CB_VALUES_PLAIN, CB_F64, 0},
    {"nearly one, f32", "f32", nearly_one, 300, CB_VALUES_EQUAL, CB_I8, 1},
};

static int all_finite(const struct cb_region *region) {
  for (int i = 0; i < region->table_count; i++)
    if (!isfinite(region->value_table[i])) return 0;
  return 1;
}

static void what_values_have_in_common_is_found(void **state) {
  (void)state;
  for (size_t c = 0; c < sizeof commons / sizeof *commons; c++)
    for (int bake = 0; bake < 2; bake++) {
      char settings[128], fact[32];
      snprintf(settings, sizeof settings, "recipe=sell values=fixed bake-limit=%d type=%s", bake ? 16384 : 0,
               commons[c].type);
      struct product product =
          product_with("random,rows=60,cols=70,density=0.5", commons[c].values, commons[c].period, settings);
      const struct cb_region *region = &product.plan->regions[0];
      if (region->value_storage != commons[c].storage || region->table_count != commons[c].table ||
          region->value_type != commons[c].slot)
        fail_msg("%s: %s", commons[c].name, product.plan->line);
      assert_true(cb_plan_values_fixed(product.plan));
      assert_int_equal(array_with_role(region, CB_ROLE_VALUES) < 0, commons[c].storage == CB_VALUES_EQUAL);
      const int baked = commons[c].storage == CB_VALUES_EQUAL || (bake && all_finite(region));
      if (commons[c].table) assert_int_equal(region->table_baked, baked);
      assert_int_equal(array_with_role(region, CB_ROLE_TABLE) >= 0, commons[c].table && !baked);
      snprintf(fact, sizeof fact, "(values %s",
               commons[c].storage == CB_VALUES_EQUAL   ? "equal "
               : commons[c].storage == CB_VALUES_CODED ? "coded "
                                                       : cb_type_short(commons[c].slot));
      assert_int_equal(strstr(product.plan->line, fact) != NULL,
                       commons[c].slot != product.plan->matrix_type || commons[c].storage == CB_VALUES_EQUAL);
      check_slots(&product, 0);
      product_release(&product);
    }
}

/* With equal values a matrix of a pattern streams its indices alone. */
static void bytes_shrink(void **state) {
  (void)state;
  char own[SETTINGS];
  for (int number = 0; next_settings(own, number, 0); number++) {
    char settings[SETTINGS + 32];
    struct cb_diag diag;
    int64_t bytes[3];
    if (plan_status_of("fe3,n=4", own, &diag) == CB_ERR_UNSUPPORTED) continue;
    for (int c = 0; c < 3; c++) {
      snprintf(settings, sizeof settings, "%s%s", own, c ? " values=fixed" : "");
      struct product product = product_with("fe3,n=4", c == 1 ? tenths : ones, 100, settings);
      bytes[c] = cb_plan_bytes(product.plan);
      check_slots(&product, 0);
      product_release(&product);
    }
    if (bytes[2] >= bytes[1] || bytes[1] >= bytes[0]) /* equal, coded, as they are */
      fail_msg("%s: %lld, %lld, %lld bytes", own, (long long)bytes[0], (long long)bytes[1],
               (long long)bytes[2]);
  }
}

/* ---- slots without a nonzero that are multiplied all the same */

static void absent_entries_stay_zero(void **state) {
  static const char *const layouts[] = {"recipe=cb th1=0 th2=0 aggregate=off intra=off",
                                        "recipe=cb th1=0 th2=0 intra=off aggregate=on",
                                        "recipe=blocks block-fill=1 block-size=3x3", "recipe=dia dia-fill=0"};
  static const struct {
    sequence *values;
    int64_t period;
    enum cb_value_storage storage; /* in a matrix that has absent entries */
    int table;
  } cases[] = {
      {tenths, 2, CB_VALUES_CODED, 3},                                          /* a zero joins */
      {tenths, 255, CB_VALUES_CODED, 256},   {tenths, 256, CB_VALUES_PLAIN, 0}, /* there is no room for it */
      {one_nan, 1, CB_VALUES_CODED, 2},      {small_integers, 256, CB_VALUES_PLAIN, 0},
      {signed_zeros, 2, CB_VALUES_CODED, 2}, /* 0 is there */
  };
  (void)state;
  for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
      char settings[128];
      snprintf(settings, sizeof settings, "%s values=fixed", layouts[l]);
      struct product product = product_with("diagonals,n=140,count=7,spread=60,fill=0.7", cases[c].values,
                                            cases[c].period, settings);
      const struct cb_region *region = &product.plan->regions[0];
      if (region->value_storage != cases[c].storage || region->table_count != cases[c].table)
        fail_msg("%s: %s", settings, product.plan->line);
      check_slots(&product, 1);
      product_release(&product);
    }
}

/* Layouts that know which entries are present need no zeros. */
static void equal_values_need_no_zeros(void **state) {
  static const char *const layouts[] = {"recipe=cb th1=0 th2=0", "recipe=blocks block-fill=1 block-size=3x3"};
  (void)state;
  for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++) {
    char settings[128];
    snprintf(settings, sizeof settings, "%s values=fixed", layouts[l]);
    struct product product = product_with("random,rows=50,cols=41,density=0.4", tenths, 1, settings);
    assert_int_equal(product.plan->regions[0].value_storage, CB_VALUES_EQUAL);
    assert_int_equal(holder_of(&product.plan->regions[0]), -1);
    assert_non_null(strstr(product.source.text, "constexpr sum_t kValue = 0.1;"));
    check_slots(&product, 0);
    product_release(&product);
  }
}

/* ---- diagonals */

/* A band of five diagonals: the main one of values that differ, its neighbours of 2.5 and -1, of which one
 * has a hole, and outer ones of NaN and of 7 with a hole. */
static struct cb_csr five_diagonals(int64_t n) {
  static const int offsets[] = {-20, -1, 0, 1, 20};
  struct cb_diag diag = {0};
  struct cb_csr csr = {0};
  struct cb_coo coo = {.rows = n, .cols = n};
  coo.row_idx = cb_alloc((size_t)(5 * n), 4);
  coo.col_idx = cb_alloc((size_t)(5 * n), 4);
  coo.values = cb_alloc((size_t)(5 * n), 8);
  for (int64_t row = 0; row < n; row++)
    for (int d = 0; d < 5; d++) {
      const int64_t col = row + offsets[d];
      const double values[] = {NAN, 2.5, (double)row / 7, -1, 7};
      if (col < 0 || col >= n || (d >= 3 && row == n / 2)) continue;
      coo.row_idx[coo.count] = (int32_t)row;
      coo.col_idx[coo.count] = (int32_t)col;
      coo.values[coo.count++] = values[d];
    }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  return csr;
}

static void diagonals_of_equal_values_are_text(void **state) {
  (void)state;
  struct product product = product_of_matrix(five_diagonals(300), "recipe=dia dia-fill=0 values=fixed");
  const struct cb_region *region = &product.plan->regions[0];
  const int64_t slices = (300 + 31) / 32;
  assert_non_null(strstr(product.plan->line, "(even 1) (holed 2)"));
  assert_non_null(strstr(product.source.text, "even_offset[] = {-1, 1, 20};"));
  assert_non_null(strstr(product.source.text, "coefficient[] = {2.5, -1.0, 7.0};"));
  assert_non_null(strstr(product.source.text, "offset[] = {-20, 0};")); /* NaN is no literal */
  assert_int_equal(region->constant_slots, slices * 3 * 32);
  assert_int_equal(region->value_slots, slices * 5 * 32);
  check_slots(&product, 1);
  product_release(&product);
  /* A constant-coefficient stencil on a line: nothing is stored at all. */
  struct product line =
      product_of_matrix(matrix_of("tridiagonal,n=300,values=ones"), "recipe=dia values=fixed");
  assert_int_equal(cb_plan_bytes(line.plan), 0);
  assert_int_equal(line.plan->regions[0].arrays_count, 0);
  check_slots(&line, 0);
  product_release(&line);
}

/* Values of either part are those of the matrix, not of the part's first nonzeros. */
static void parts_have_values_of_their_own(void **state) {
  (void)state;
  struct cb_csr csr = matrix_of("long_row,rows=200,cols=400,per_row=3,long_rows=2,long_length=100");
  for (int64_t row = 0; row < csr.rows; row++)
    for (int64_t k = cb_csr_row(&csr, row); k < cb_csr_row(&csr, row + 1); k++)
      csr.values[k] = cb_csr_row_length(&csr, row) > 20 ? 0.7 : 0.3;
  struct product product = product_of_matrix(csr, "recipe=cb-long long-row=20 values=fixed");
  assert_int_equal(product.plan->regions_count, 2);
  for (int number = 0; number < 2; number++) {
    assert_int_equal(product.plan->regions[number].value_storage, CB_VALUES_EQUAL);
    assert_true(product.plan->regions[number].value_table[0] == (number ? 0.7 : 0.3));
  }
  check_slots(&product, 0);
  product_release(&product);
}

/* ---- plans, and what is refused */

/* Baked values are part of the plan, and so of the id that ties text and data together; stored ones are not.
 */
static void baked_values_change_the_plan(void **state) {
  static const struct {
    const char *settings;
    sequence *values, *others;
    int64_t period;
    int same;
  } cases[] = {
      {"recipe=sell values=fixed", ones, tenths, 1, 0},
      {"recipe=sell values=fixed", tenths, floats, 2, 0},
      {"recipe=dia values=fixed", ones, tenths, 1, 0},
      {"recipe=sell", ones, tenths, 1, 1},
      {"recipe=sell values=fixed", ones, ones, 1, 1},
      {"recipe=dia values=fixed", tenths, tenths, 1, 1},
      {"recipe=sell values=fixed bake-limit=0", tenths, floats, 150, 1},
  };
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product one =
        product_with("tridiagonal,n=200", cases[c].values, cases[c].period, cases[c].settings);
    struct product other =
        product_with("tridiagonal,n=200", cases[c].others, cases[c].period, cases[c].settings);
    const struct cb_hash pattern = cb_csr_pattern_hash(one.csr);
    const struct cb_hash a = cb_blob_id(one.plan, pattern), b = cb_blob_id(other.plan, pattern);
    assert_int_equal(a.low == b.low && a.high == b.high, cases[c].same);
    assert_int_equal(!strcmp(one.source.text, other.source.text), cases[c].same);
    product_release(&one);
    product_release(&other);
  }
}

static void fixed_values_are_not_renewed(void **state) {
  (void)state;
  for (int fixed = 0; fixed < 2; fixed++) {
    struct cb_diag diag = {0};
    struct product product = product_of("uniform,n=50,per_row=4", fixed ? "values=fixed" : "values=data");
    unsigned char *before = malloc((size_t)product.blob.length);
    assert_non_null(before);
    memcpy(before, product.blob.bytes, (size_t)product.blob.length);
    assert_int_equal(cb_plan_values_fixed(product.plan), fixed);
    assert_int_equal(
        cb_pack_values(&product.blob, product.plan, product.assignment, product.csr->values, &diag),
        fixed ? CB_ERR_ARGUMENT : CB_OK);
    if (fixed) assert_non_null(strstr(diag.message, "'values'"));
    assert_memory_equal(before, product.blob.bytes, (size_t)product.blob.length);
    free(before);
    product_release(&product);
  }
}

/* A value that its type cannot hold is refused before it could be baked as infinity. */
static void fixed_values_beyond_the_range_are_refused(void **state) {
  static const char *const settings[] = {"recipe=sell values=fixed type=f16-f32",
                                         "recipe=dia dia-fill=0 values=fixed type=f32"};
  (void)state;
  for (int s = 0; s < 2; s++) {
    struct cb_diag diag = {0};
    const double values[] = {1e39, 1e39, 1e39};
    assert_int_equal(pack_row(values, 3, settings[s], &diag), CB_ERR_LIMIT);
    assert_non_null(strstr(diag.message, "nonzero 0 "));
  }
}

static void fixed_values_must_be_there(void **state) {
  struct cb_diag diag = {0};
  struct cb_csr csr = matrix_of("tridiagonal,n=20");
  struct cb_options options;
  struct cb_target target;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  (void)state;
  double *values = csr.values;
  csr.values = NULL;
  set_options(&options, "recipe=auto values=fixed");
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  assert_int_equal(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag), CB_ERR_ARGUMENT);
  assert_null(plan);
  csr.values = values;
  cb_csr_release(&csr);
}

/* The search knows that fewer bytes are stored. */
static void the_search_counts_what_is_stored(void **state) {
  (void)state;
  int64_t ns[2], bytes[2];
  for (int fixed = 0; fixed < 2; fixed++) {
    struct product product = product_of("uniform,n=200000,per_row=16,values=ones",
                                        fixed ? "recipe=auto values=fixed" : "recipe=auto");
    ns[fixed] = product.plan->cost.ns;
    bytes[fixed] = product.plan->cost.bytes;
    product_release(&product);
  }
  assert_true(bytes[1] < bytes[0] - 20000000 && ns[1] < ns[0]);
}

static void every_allocation_may_fail(void **state) {
  static const char *const settings[] = {
      "recipe=sell values=fixed bake-limit=0", "recipe=sell values=fixed bake-limit=100",
      "recipe=dia dia-fill=0 values=fixed", "recipe=cb th1=0 th2=0 values=fixed"};
  (void)state;
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    struct cb_csr csr = five_diagonals(100);
    for (int64_t k = 0; k < csr.nnz; k++)
      if (i < 2) csr.values[k] = tenths(k % 40);
    assert_true(check_allocations(csr, settings[i]) > 20);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sixteen_bits_round_to_nearest_even),
      cmocka_unit_test(ends_of_the_ranges),
      cmocka_unit_test(arrays_fit_when_their_numbers_do),
      cmocka_unit_test(values_beyond_the_range_are_refused),
      cmocka_unit_test(new_values_are_checked_too),
      cmocka_unit_test(slots_hold_rounded_values),
      cmocka_unit_test(what_values_have_in_common_is_found),
      cmocka_unit_test(bytes_shrink),
      cmocka_unit_test(absent_entries_stay_zero),
      cmocka_unit_test(equal_values_need_no_zeros),
      cmocka_unit_test(diagonals_of_equal_values_are_text),
      cmocka_unit_test(parts_have_values_of_their_own),
      cmocka_unit_test(baked_values_change_the_plan),
      cmocka_unit_test(fixed_values_are_not_renewed),
      cmocka_unit_test(fixed_values_beyond_the_range_are_refused),
      cmocka_unit_test(fixed_values_must_be_there),
      cmocka_unit_test(the_search_counts_what_is_stored),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
