// SPDX-License-Identifier: Apache-2.0
/* Split values through the public interface: the bits of ordinary products, heads within the bound of floats, new
 * values from either memory, values that have no such form, operators that were saved, cached, cloned and copied, and
 * what is refused. */
#include "tests/api_support.h"
#include "tests/recipes.h"
#include "tests/scratch.h"

static const cbgen_request split = {.struct_size = sizeof split, .values = CBGEN_VALUES_MUTABLE, .split = 1};
static const cbgen_request whole = {.struct_size = sizeof whole, .values = CBGEN_VALUES_MUTABLE};

static cbgen_operator *compiled(cbgen_context *context, const struct sample *sample, const cbgen_request *request) {
  cbgen_operator *op;
  must(context, cbgen_compile(context, &sample->view, request, &op));
  return op;
}

/* y = 1.25 A x - 0.5 y as it lies on the GPU, with heads alone or not. */
static double *result_of(cbgen_operator *op, int heads) {
  struct vectors vectors = vectors_for(op, 0);
  double *y = calloc((size_t)vectors.rows + 1, sizeof *y);
  cbgen_product product = product_with(&vectors, 1.25, -0.5, NULL);
  product.heads = heads;
  assert_non_null(y);
  must_operator(op, cbgen_multiply(op, &product));
  if (vectors.rows) assert_true(app_take(y, vectors.y_there, (size_t)vectors.rows * sizeof *y));
  vectors_release(&vectors);
  return y;
}

static void check_same(cbgen_operator *op, cbgen_operator *other) {
  double *y = result_of(op, 0), *expected = result_of(other, 0);
  assert_memory_equal(y, expected, (size_t)info_of(op).rows * sizeof *y);
  free(y);
  free(expected);
}

/* Heads against the oracle's matrix of floats. */
static void check_heads(cbgen_operator *op, const struct cb_csr *csr) {
  struct cb_diag diag = {0};
  struct cb_expected expected = {0};
  struct cb_comparison comparison;
  struct vectors vectors = vectors_for(op, 0);
  double *y = result_of(op, 1);
  const struct cb_product product = {
      .types = {CB_F32, CB_F64, CB_F64, CB_PLUS_TIMES}, .x = vectors.x, .y = vectors.y, .alpha = 1.25, .beta = -0.5};
  assert_ok(cb_oracle_multiply(&expected, csr, &product, &diag));
  cb_oracle_compare(&comparison, &expected, y, CB_F64);
  assert_int_equal(comparison.wrong, 0);
  cb_expected_release(&expected);
  vectors_release(&vectors);
  free(y);
}

static cbgen_update update_with(const struct sample *sample) {
  const int there = sample->form.on_device;
  return (cbgen_update){.struct_size = sizeof(cbgen_update),
                        .values = there ? (const void *)(uintptr_t)sample->there[2] : sample->given,
                        .value_type = sample->form.value_type,
                        .memory = there ? CBGEN_DEVICE : CBGEN_HOST};
}

/* The example of each recipe, from either memory, and new values. */
static void products_are_those_of_whole_values(void **state) {
  const struct cb_recipe *recipe;
  (void)state;
  for (int number = 0; (recipe = cb_recipe_at(number)); number++) {
    const struct form form = {.on_device = number % 2, .duplicates = number % 3 == 0, .shuffled = number % 5 == 0};
    struct sample sample = sample_of(example_of(recipe), form);
    cbgen_context *context = new_context(settings_of_recipe(recipe));
    cbgen_operator *op = compiled(context, &sample, &split), *other = compiled(context, &sample, &whole);
    const cbgen_info info = info_of(op);
    assert_true(info.split && !info_of(other).split);
    assert_int_equal(info.matrix_type, CBGEN_F64);
    assert_int_equal(info.tier, CBGEN_TIER_SPECIALISED);
    for (int round = 0; round < 2; round++) {
      if (round) {
        set_values(&sample, 40);
        sum_up(&sample);
        const cbgen_update update = update_with(&sample);
        must_operator(op, cbgen_update_values(op, &update));
        must_operator(other, cbgen_update_values(other, &update));
      }
      if (!strcmp(cbgen_operator_plan(op), cbgen_operator_plan(other))) check_same(op, other);
      check_product(op, &sample.csr);
      check_heads(op, &sample.csr);
      must_operator(op, cbgen_operator_check(op, NULL));
    }
    cbgen_operator_free(other);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

/* They become NaN, and the next check tells, once. */
static void values_without_parts_are_found(void **state) {
  static const double bad[] = {1e-40, -1e39, 1e300, 4.9e-324};
  (void)state;
  for (size_t i = 0; i < 2 * sizeof bad / sizeof *bad; i++) {
    struct sample sample = sample_of("random,rows=60,density=0.1", (struct form){.on_device = i % 2});
    cbgen_context *context = new_context("recipe=sell");
    cbgen_operator *op = compiled(context, &sample, &split), *none;
    ((double *)sample.given)[7] = bad[i / 2];
    if (i % 2) assert_true(app_put(sample.there[2], sample.given, (size_t)sample.entries * 8));
    const cbgen_update update = update_with(&sample);
    must_operator(op, cbgen_update_values(op, &update));
    assert_int_equal(cbgen_operator_check(op, NULL), CBGEN_ERROR_LIMIT);
    assert_non_null(strstr(cbgen_operator_message(op), "no split form"));
    for (int heads = 0; heads < 2; heads++) {
      double *y = result_of(op, heads);
      assert_true(isnan(y[sample.rows_of[7]]));
      free(y);
    }
    must_operator(op, cbgen_operator_check(op, NULL));
    assert_int_equal(cbgen_compile(context, &sample.view, &split, &none), CBGEN_ERROR_LIMIT);
    assert_null(none);
    assert_non_null(strstr(cbgen_message(context), "no split form"));
    if (sample.form.on_device) { /* then nobody waits for the copy's values */
      must_operator(op, cbgen_operator_copy(op, &update, &none));
      assert_int_equal(cbgen_operator_check(none, NULL), CBGEN_ERROR_LIMIT);
      cbgen_operator_free(none);
    } else {
      assert_int_equal(cbgen_operator_copy(op, &update, &none), CBGEN_ERROR_LIMIT);
      assert_null(none);
    }
    set_values(&sample, 3);
    sum_up(&sample);
    must_operator(op, cbgen_update_values(op, &update));
    must_operator(op, cbgen_operator_check(op, NULL));
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

static void others_of_it_multiply_alike(void **state) {
  (void)state;
  struct sample sample = sample_of("powerlaw,rows=300,max=250", (struct form){0});
  cbgen_context *context = new_context("recipe=merge");
  cbgen_operator *op = compiled(context, &sample, &split), *others[3];
  size_t length;
  must_operator(op, cbgen_operator_clone(op, &others[0]));
  must_operator(op, cbgen_operator_copy(op, NULL, &others[1]));
  must_operator(op, cbgen_operator_save(op, NULL, 0, &length));
  void *bytes = malloc(length);
  must_operator(op, cbgen_operator_save(op, bytes, length, &length));
  must(context, cbgen_operator_load(context, bytes, length, &others[2]));
  for (int i = 0; i < 3; i++) {
    assert_true(info_of(others[i]).split);
    check_same(others[i], op);
    check_heads(others[i], &sample.csr);
    cbgen_operator_free(others[i]);
  }
  free(bytes);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* Split or not, and found again. */
static void the_cache_keeps_them_apart(void **state) {
  (void)state;
  struct sample sample = sample_of("fe3,n=4", (struct form){0});
  assert_int_equal(empty_scratch("split", ""), 0);
  for (int round = 0; round < 2; round++) {
    cbgen_context *context = new_context("recipe=blocks");
    must(context, cbgen_set(context, "cache", scratch));
    cbgen_operator *op = compiled(context, &sample, &split), *other = compiled(context, &sample, &whole);
    assert_int_equal(info_of(op).cache, round ? CBGEN_CACHE_HIT : CBGEN_CACHE_MISS);
    assert_string_not_equal(cbgen_operator_key(op), cbgen_operator_key(other));
    check_same(op, other);
    check_heads(op, &sample.csr);
    cbgen_operator_free(other);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
  }
  sample_release(&sample);
}

/* The option "type" says the same; several vectors at once, half of symmetric values, and recipe auto go with it. */
static void it_goes_with_other_options(void **state) {
  (void)state;
  struct sample sample = sample_of("stencil7,n=7", (struct form){0});
  cbgen_context *context = new_context("type=split-f64");
  const cbgen_request many = {.struct_size = sizeof many, .vectors = 4};
  cbgen_operator *op = compiled(context, &sample, &many);
  assert_true(info_of(op).split);
  assert_int_equal(info_of(op).vectors, 4);
  check_product(op, &sample.csr);
  check_heads(op, &sample.csr);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void refusals(void **state) {
  (void)state;
  struct sample sample = sample_of("stencil7,n=4", (struct form){0});
  cbgen_context *context = new_context("recipe=sell");
  cbgen_operator *op = compiled(context, &sample, &whole), *none;
  struct vectors vectors = vectors_for(op, 0);
  cbgen_product product = product_with(&vectors, 1, 0, NULL);
  product.heads = 1;
  assert_int_equal(cbgen_multiply(op, &product), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_operator_message(op), "'split' of the request"));
  product.heads = 2;
  assert_int_equal(cbgen_multiply(op, &product), CBGEN_ERROR_ARGUMENT);
  cbgen_request request = {.struct_size = sizeof request, .split = 2};
  assert_int_equal(cbgen_compile(context, &sample.view, &request, &none), CBGEN_ERROR_ARGUMENT);
  request = (cbgen_request){.struct_size = sizeof request, .split = 1, .epilogue = "out r; r = ax;"};
  assert_int_equal(cbgen_compile(context, &sample.view, &request, &none), CBGEN_ERROR_UNSUPPORTED);
  assert_non_null(strstr(cbgen_message(context), "epilogue"));
  must(context, cbgen_set(context, "type", "f32"));
  assert_int_equal(cbgen_compile(context, &sample.view, &split, &none), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "'type' is f32"));
  vectors_release(&vectors);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(products_are_those_of_whole_values), TEST(values_without_parts_are_found), TEST(others_of_it_multiply_alike),
      TEST(the_cache_keeps_them_apart),         TEST(it_goes_with_other_options),     TEST(refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
