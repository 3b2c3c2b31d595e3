// SPDX-License-Identifier: Apache-2.0
/* Complex matrices through the library: every form of view, the conjugate transpose, alpha and beta, several products,
 * saved operators, and what is declined. */
#include "tests/api_support.h"

static const char *const shapes[] = {"random,rows=90,cols=70,density=0.1", "stencil5,n=9",
                                     "block,blocks_r=20,r=3,c=3,per_row=3"};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static cbgen_operator *compiled(cbgen_context *context, const struct sample *sample, const cbgen_request *request) {
  cbgen_operator *op;
  must(context, cbgen_compile(context, &sample->view, request, &op));
  return op;
}

static void transposed_and_conjugated(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  for (int i = 0; i < 16; i++) {
    const struct form form = {.value_type = i % 2 ? CBGEN_C64 : CBGEN_C128, .on_device = i / 2 % 2,
                              .shuffled = i / 4 % 2, .duplicates = i / 8 % 2, .base = i % 2};
    struct sample sample = sample_of(shapes[i % SHAPES], form);
    struct cb_csr turned = transposed(&sample.csr);
    for (int way = 0; way < 4; way++) {
      const cbgen_request request = {.struct_size = sizeof request, .transpose = way % 2, .conjugate = way / 2,
                                     .values = i % 3 ? CBGEN_VALUES_MUTABLE : CBGEN_VALUES_FIXED};
      cbgen_operator *op = compiled(context, &sample, &request);
      const cbgen_info info = info_of(op);
      assert_int_equal(info.matrix_type, form.value_type);
      assert_int_equal(info.tier, CBGEN_TIER_SPECIALISED);
      assert_int_equal(strstr(cbgen_operator_plan(op), "(conjugate on)") != NULL, way / 2);
      check_product(op, way % 2 ? &turned : &sample.csr);
      cbgen_operator_free(op);
    }
    cb_csr_release(&turned);
    sample_release(&sample);
  }
  cbgen_context_destroy(context);
}

/* Of a real matrix nothing is conjugated; with complex vectors it is as if. */
static void real_values(void **state) {
  (void)state;
  static const char *const types[] = {"auto", "c64", "c128"};
  for (int t = 0; t < 3; t++) {
    cbgen_context *context = new_context("");
    must(context, cbgen_set(context, "type", types[t]));
    struct sample sample = sample_of(shapes[0], (struct form){.value_type = CBGEN_F32, .no_values = t == 2});
    const cbgen_request request = {.struct_size = sizeof request, .conjugate = 1};
    cbgen_operator *op = compiled(context, &sample, &request);
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    sample_release(&sample);
    cbgen_context_destroy(context);
  }
}

static void scalars(void **state) {
  (void)state;
  static const double cases[][4] = {{1, 0, 0, 0}, {0, 0, 1, 0},      {0, 1, 0, 0},
                                    {0, 0, 0, 1}, {2, -1, 0.5, 3}, {-1, 0, 1, 0}};
  cbgen_context *context = new_context("recipe=sell");
  struct sample sample = sample_of(shapes[1], (struct form){.value_type = CBGEN_C128});
  cbgen_operator *op = compiled(context, &sample, NULL);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct vectors vectors = vectors_for(op, 0);
    cbgen_product product = product_with(&vectors, cases[c][0], cases[c][2], NULL);
    product.alpha_imag = cases[c][1];
    product.beta_imag = cases[c][3];
    must_operator(op, cbgen_multiply(op, &product));
    check_scaled(op, &sample.csr, &vectors, cases[c][0], cases[c][2], cases[c][1], cases[c][3]);
    vectors_release(&vectors);
  }
  /* z: y is copied where beta has a part that is not 0 */
  struct vectors vectors = vectors_for(op, 0), other = vectors_for(op, 0);
  cbgen_product product = product_with(&vectors, 1, 0, NULL);
  product.beta_imag = 2;
  fill_vectors(&other, 99); /* what z holds before is not y */
  product.z = (void *)(uintptr_t)other.y_there;
  must_operator(op, cbgen_multiply(op, &product));
  const uint64_t y_there = vectors.y_there;
  vectors.y_there = other.y_there;
  check_scaled(op, &sample.csr, &vectors, 1, 0, 0, 2);
  vectors.y_there = y_there;
  /* cbgen_multiply_many: one after the other, by columns */
  cbgen_products many = {.struct_size = sizeof many, .vectors = 1, .order = CBGEN_BY_COLUMN, .alpha = 1,
                         .x = product.x, .y = product.z, .alpha_imag = -2};
  must_operator(op, cbgen_multiply_many(op, &many));
  vectors.y_there = other.y_there;
  check_scaled(op, &sample.csr, &vectors, 1, 0, -2, 0);
  vectors.y_there = y_there;
  vectors_release(&vectors);
  vectors_release(&other);
  cbgen_operator_free(op);
  sample_release(&sample);
  cbgen_context_destroy(context);
}

static void saved_and_copied(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  struct sample sample = sample_of(shapes[2], (struct form){.value_type = CBGEN_C64});
  const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE, .conjugate = 1};
  cbgen_operator *op = compiled(context, &sample, &request), *again, *copy;
  size_t length;
  must_operator(op, cbgen_operator_save(op, NULL, 0, &length));
  void *bytes = malloc(length);
  assert_non_null(bytes);
  must_operator(op, cbgen_operator_save(op, bytes, length, &length));
  must(context, cbgen_operator_load(context, bytes, length, &again));
  check_product(again, &sample.csr);
  must_operator(op, cbgen_operator_copy(op, NULL, &copy));
  set_values(&sample, 99);
  const struct cb_csr before = sample.csr;
  sample.csr = (struct cb_csr){0};
  sum_up(&sample);
  const cbgen_update update = {sizeof update, sample.given, CBGEN_C64, CBGEN_HOST, NULL};
  must_operator(copy, cbgen_update_values(copy, &update));
  check_product(copy, &sample.csr);
  check_product(op, &before);
  struct cb_csr old = before;
  cb_csr_release(&old);
  cbgen_operator_free(copy);
  cbgen_operator_free(again);
  cbgen_operator_free(op);
  free(bytes);
  sample_release(&sample);
  cbgen_context_destroy(context);
}

#define REFUSED(status, words, call)                                                                                  \
  do {                                                                                                                \
    assert_int_equal(call, status);                                                                                   \
    if (!strstr(cbgen_message(context), words)) fail_msg("'%s' says not '%s'", cbgen_message(context), words);        \
  } while (0)

static void what_is_declined(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  struct sample sample = sample_of("stencil5,n=9", (struct form){.value_type = CBGEN_C128});
  cbgen_operator *op = compiled(context, &sample, NULL), *none;
  cbgen_batch *batch;
  const cbgen_batch_options of_batch = {.struct_size = sizeof of_batch, .systems = 1};
  cbgen_request request = {.struct_size = sizeof request, .conjugate = 2};
  double room[16];
  REFUSED(CBGEN_ERROR_ARGUMENT, "'conjugate' is 2", cbgen_compile(context, &sample.view, &request, &none));
  request = (cbgen_request){.struct_size = sizeof request, .epilogue = "out r; r = ax;"};
  REFUSED(CBGEN_ERROR_UNSUPPORTED, "an epilogue", cbgen_compile(context, &sample.view, &request, &none));
  request = (cbgen_request){.struct_size = sizeof request, .device_scalars = 1};
  REFUSED(CBGEN_ERROR_UNSUPPORTED, "scalars in device memory", cbgen_compile(context, &sample.view, &request, &none));
  request = (cbgen_request){.struct_size = sizeof request, .split = 1};
  REFUSED(CBGEN_ERROR_ARGUMENT, "split values are doubles", cbgen_compile(context, &sample.view, &request, &none));
  REFUSED(CBGEN_ERROR_UNSUPPORTED, "those of real matrices", cbgen_lp_scales(context, &sample.view, room, room));
  REFUSED(CBGEN_ERROR_UNSUPPORTED, "f64 or f32", cbgen_batch_create(context, &sample.view, "cg", &of_batch, &batch));
  must(context, cbgen_set(context, "type", "f64"));
  REFUSED(CBGEN_ERROR_ARGUMENT, "choose c128 or c64", cbgen_compile(context, &sample.view, NULL, &none));
  struct vectors vectors = vectors_for(op, 0);
  cbgen_product product = product_with(&vectors, 1, 0, NULL);
  product.x = (const char *)product.x + 8; /* half of an element */
  assert_int_equal(cbgen_multiply(op, &product), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_operator_message(op), "not aligned"));
  vectors_release(&vectors);
  cbgen_operator_free(op);
  sample_release(&sample);
  cbgen_context_destroy(context);
}

/* Imaginary parts, and complex values, of an operator of real numbers. */
static void real_operators_take_real_numbers(void **state) {
  (void)state;
  cbgen_context *context = new_context("");
  struct sample sample = sample_of("stencil5,n=9", (struct form){0});
  const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE};
  cbgen_operator *op = compiled(context, &sample, &request);
  struct vectors vectors = vectors_for(op, 0);
  for (int i = 0; i < 2; i++) {
    cbgen_product product = product_with(&vectors, 1, 0, NULL);
    *(i ? &product.beta_imag : &product.alpha_imag) = 1;
    assert_int_equal(cbgen_multiply(op, &product), CBGEN_ERROR_ARGUMENT);
    assert_non_null(strstr(cbgen_operator_message(op), "vectors are real"));
  }
  const cbgen_products many = {.struct_size = sizeof many, .vectors = 1, .order = CBGEN_BY_COLUMN, .alpha_imag = 1,
                               .x = (void *)(uintptr_t)vectors.x_there, .y = (void *)(uintptr_t)vectors.y_there};
  assert_int_equal(cbgen_multiply_many(op, &many), CBGEN_ERROR_ARGUMENT);
  const cbgen_update update = {sizeof update, sample.given, CBGEN_C64, CBGEN_HOST, NULL};
  assert_int_equal(cbgen_update_values(op, &update), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_operator_message(op), "complex values"));
  vectors_release(&vectors);
  cbgen_operator_free(op);
  sample_release(&sample);
  cbgen_context_destroy(context);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(transposed_and_conjugated), TEST(real_values),      TEST(scalars),
      TEST(saved_and_copied), TEST(what_is_declined), TEST(real_operators_take_real_numbers),
  };
  return cmocka_run_group_tests_name("api-complex", tests, NULL, NULL);
}
