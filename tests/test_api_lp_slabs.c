// SPDX-License-Identifier: Apache-2.0
/* Linear programs whose iterations have the matrix in shared memory: what products of the operators make, to rounding;
 * where they are declined; and that nobody waits for what does not come. Whole solutions on the emulation. */
#include "tests/lp_support.h"

enum { ITERATIONS = 150 }; /* with two checks on the way */

static cbgen_csr matrix_view(struct lp_bed *bed, int32_t **pointers) { return view_of(&bed->csr, pointers); }

static cbgen_lp *solver_with(struct lp_bed *bed, int scaled, const cbgen_csr *matrix, int iterations) {
  cbgen_lp_options options = lp_options_of(bed, scaled, 1e-12);
  options.max_iterations = iterations;
  options.matrix = matrix;
  return lp_solver_of(bed, &options);
}

static double *copy_of(const struct lp_bed *bed, int vector) {
  const size_t bytes = (size_t)entries_of(bed, vector) * sizeof(double);
  return memcpy(malloc(bytes), bed->host[vector], bytes);
}

/* The largest difference between entries, against the largest of them. */
static double apart(const struct lp_bed *bed, int vector, const double *other) {
  double most = 0, size = 1;
  for (int64_t i = 0; i < entries_of(bed, vector); i++) {
    most = fmax(most, fabs(bed->host[vector][i] - other[i]));
    size = fmax(size, fabs(other[i]));
  }
  return most / size;
}

static int is_same(const struct lp_bed *bed, int vector, const double *other) {
  return !memcmp(bed->host[vector], other, (size_t)entries_of(bed, vector) * sizeof *other);
}

static void check_shape(const char *shape, const char *settings, int scaled) {
  struct lp_bed bed = lp_bed_with(matrix_of(shape), settings, "", 5, CBGEN_SPECIALISE_NOW, CBGEN_SPECIALISE_NOW);
  const double near = bed.type == CB_F64 ? 1e-11 : 2e-3;
  int32_t *pointers;
  const cbgen_csr view = matrix_view(&bed, &pointers);
  for (int iterations = 1; iterations <= ITERATIONS; iterations += iterations == 1 ? 9 : ITERATIONS - 10) {
    cbgen_lp *apart_of = solver_with(&bed, scaled, NULL, iterations);
    assert_string_equal(cbgen_lp_form(apart_of), "graph");
    const long first = fake->executed;
    const cbgen_lp_result expected = lp_solved(&bed, apart_of);
    double *x = copy_of(&bed, PRIMAL), *y = copy_of(&bed, DUAL);
    cbgen_lp *lp = solver_with(&bed, scaled, &view, iterations);
    assert_string_equal(cbgen_lp_form(lp), "graph+matrix");
    const long before = fake->executed;
    cbgen_lp_result result = lp_solved(&bed, lp);
    const long spared = before - first - (fake->executed - before); /* 63 of 64 iterations are one kernel */
    assert_int_equal(result.iterations, expected.iterations);
    assert_in_range(spared, 125 * ((iterations + 63) / 64), 400 * ((iterations + 63) / 64));
    if (!(apart(&bed, PRIMAL, x) <= near && apart(&bed, DUAL, y) <= near))
      fail_msg("%s, %s, %d iterations: x is %g apart, y %g", shape, settings, iterations, apart(&bed, PRIMAL, x),
               apart(&bed, DUAL, y));
    free(x);
    free(y);
    x = copy_of(&bed, PRIMAL);
    y = copy_of(&bed, DUAL);
    cbgen_lp *clone;
    assert_int_equal(cbgen_lp_clone(lp, NULL, &clone), CBGEN_OK);
    assert_string_equal(cbgen_lp_form(clone), "graph+matrix");
    for (int again = 0; again < 3; again++) { /* what others have left in shared places says nothing */
      result = lp_solved(&bed, again % 2 ? clone : lp);
      assert_true(is_same(&bed, PRIMAL, x) && is_same(&bed, DUAL, y));
    }
    cbgen_lp_free(clone);
    cbgen_lp_free(lp);
    cbgen_lp_free(apart_of);
    free(x);
    free(y);
  }
  free(pointers);
  release_lp(&bed);
}

/* Wide and tall ones, of one row, with more and with fewer lines than thread blocks, with empty lines and long ones. */
static void iterations_are_those_of_products(void **state) {
  (void)state;
  check_shape("random,rows=60,cols=100,density=0.03", "recipe=merge", 1);
  check_shape("random,rows=300,cols=40,density=0.05", "recipe=sell type=f32", 1);
  check_shape("random,rows=3,cols=900,density=0.9", "recipe=sell", 0);
  check_shape("random,rows=400,cols=2,density=0.4", "recipe=sell", 0);
  check_shape("long_row,rows=12,cols=600,per_row=3,long_rows=1,long_length=580", "recipe=sell", 0);
}

static void check_declined(const char *shape, const char *settings, cbgen_values values) {
  struct lp_bed bed = {.context = new_context(settings), .csr = matrix_of(shape)};
  cbgen_request request = {.struct_size = sizeof request, .values = values};
  const cbgen_lp_options plain = {.struct_size = sizeof plain, .max_iterations = 10};
  cbgen_lp_options options = plain;
  cbgen_lp *lp;
  int32_t *pointers;
  const cbgen_csr view = matrix_view(&bed, &pointers);
  options.matrix = &view;
  must(bed.context, cbgen_compile(bed.context, &view, &request, &bed.a));
  request.transpose = 1;
  must(bed.context, cbgen_compile(bed.context, &view, &request, &bed.transposed));
  must_operator(bed.a, cbgen_lp_create(bed.a, bed.transposed, &options, &lp));
  assert_string_equal(cbgen_lp_form(lp), "graph");
  cbgen_lp_free(lp);
  cbgen_operator_free(bed.a);
  cbgen_operator_free(bed.transposed);
  cbgen_context_destroy(bed.context);
  cb_csr_release(&bed.csr);
  free(pointers);
}

/* Where nobody has a copy of what he gathers, values may change, or types differ. */
static void what_does_not_pay_declines(void **state) {
  (void)state;
  check_declined("random,rows=300,cols=400,density=0.002", "recipe=sell", CBGEN_VALUES_STORED);
  check_declined("random,rows=7,cols=9000,density=0.4", "recipe=sell", CBGEN_VALUES_STORED);
  check_declined("random,rows=30,cols=40,density=0.2", "recipe=sell", CBGEN_VALUES_MUTABLE);
  check_declined("random,rows=30,cols=40,density=0.2", "recipe=sell type=f32-f64", CBGEN_VALUES_STORED);
}

static void what_has_no_room_declines(void **state) {
  int32_t *pointers;
  struct lp_bed bed = lp_bed_of(matrix_of("random,rows=1400,cols=1800,density=0.08"), "recipe=sell", "", 3);
  cbgen_csr view = matrix_view(&bed, &pointers);
  (void)state;
  cbgen_lp *lp = solver_with(&bed, 1, &view, 10);
  assert_string_equal(cbgen_lp_form(lp), "graph");
  cbgen_lp_free(lp);
  cbgen_lp_options options = lp_options_of(&bed, 0, 1e-6);
  options.matrix = &view;
  view.rows--;
  assert_int_equal(cbgen_lp_create(bed.a, bed.transposed, &options, &lp), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_operator_message(bed.a), "'matrix' is not the operator's"));
  free(pointers);
  release_lp(&bed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(iterations_are_those_of_products, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(what_does_not_pay_declines, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(what_has_no_room_declines, open_fake, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
