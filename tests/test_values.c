// SPDX-License-Identifier: Apache-2.0
/* Values on their way into the slots: rounding to each type by brute force, and what is refused. */
#include "support.h"

#include "analysis/assignment.h"
#include "base/real.h"

#include <float.h>
#include <math.h>

/* ---- rounding */

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

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
    if (narrowed(value, type) != own) fail_msg("%s: 0x%04x becomes 0x%04x", cb_type_short(type), own, narrowed(value, type));
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
    assert_true(bits_of(cb_real_round(-0.0, type)) == bits_of(-0.0));
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

static enum cb_status pack_row(const double *values, int64_t count, const char *settings, struct cb_diag *refusal) {
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
    if (cases[i].part && !strstr(diag.message, cases[i].part)) fail_msg("'%s' lacks '%s'", diag.message, cases[i].part);
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
  assert_int_equal(cb_pack_values(&product.blob, product.plan, product.assignment, values, &diag), CB_ERR_LIMIT);
  assert_non_null(strstr(diag.message, "nonzero 7 "));
  free(values);
  product_release(&product);
}

/* The slots hold the rounded values, of the type's size, in every layout. */
static void slots_hold_rounded_values(void **state) {
  static const char *const recipes[] = {"recipe=sell", "recipe=cb", "recipe=cb intra=off", "recipe=dia dia-fill=0",
                                        "recipe=blocks block-fill=1"};
  (void)state;
  for (int precision = 0; precision < CB_PRECISION_COUNT; precision++)
    for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++) {
      struct cb_diag diag = {0};
      char settings[96];
      snprintf(settings, sizeof settings, "%s type=%s", recipes[r], cb_precision_names[precision]);
      struct product product = product_of("fe3,n=3", settings);
      const struct cb_types types = cb_precision_types((enum cb_precision)precision);
      int64_t found = 0;
      assert_string_equal(cb_plan_types_name(product.plan), cb_precision_names[precision]);
      for (int r0 = 0; r0 < product.plan->regions_count; r0++) {
        const struct cb_region *region = &product.plan->regions[r0];
        struct cb_slot_map map;
        int holder = 0;
        while (region->arrays[holder].role != CB_ROLE_VALUES && region->arrays[holder].role != CB_ROLE_MIXED) holder++;
        assert_int_equal(region->value_type, types.matrix);
        assert_ok(cb_slot_map_build(&map, product.plan, product.assignment, r0, NULL, &diag));
        const unsigned char *slots = product.blob.bytes + cb_blob_offset(product.plan, r0, holder);
        for (int64_t slot = 0; slot < map.count; slot++) {
          const uint64_t k = cb_slot_get(&map, slot);
          if (k == CB_NO_NONZERO) continue;
          assert_true(cb_real_get(slots, types.matrix, slot) == cb_real_round(product.csr->values[k], types.matrix));
          found++;
        }
        cb_slot_map_release(&map);
      }
      assert_int_equal(found, product.csr->nnz);
      product_release(&product);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sixteen_bits_round_to_nearest_even),
      cmocka_unit_test(ends_of_the_ranges),
      cmocka_unit_test(values_beyond_the_range_are_refused),
      cmocka_unit_test(new_values_are_checked_too),
      cmocka_unit_test(slots_hold_rounded_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
