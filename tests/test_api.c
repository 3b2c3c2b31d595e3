// SPDX-License-Identifier: Apache-2.0
/* The run-time interface on the fake CUDA: every form of matrix and type of value multiplies rightly, new
 * values are as good as a fresh compile, handles keep their promises. */
#include "tests/api_support.h"

#include <pthread.h>

static cbgen_context *new_context(void) {
  cbgen_context *context;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  return context;
}

static cbgen_operator *compile(cbgen_context *context, const struct sample *sample,
                               const cbgen_request *request) {
  cbgen_operator *op = NULL;
  must(context, cbgen_compile(context, &sample->view, request, &op));
  assert_non_null(op);
  return op;
}

static const char *const shapes[] = {
    "random,rows=300,cols=200,density=0.05",
    "random,rows=60,cols=900,density=0.3",
    "stencil5,n=18",
    "fe3,n=4",
    "diagonal,n=100",
    "empty,rows=50,cols=40",
    "empty,rows=0,cols=9",
    "empty,rows=7,cols=0",
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const cbgen_request mutable = {sizeof mutable, 0, CBGEN_VALUES_MUTABLE, 0};

/* ---- matrices */

static void every_shape_multiplies(void **state) {
  (void)state;
  for (int i = 0; i < SHAPES; i++) {
    cbgen_context *context = new_context();
    struct sample sample = sample_of(shapes[i], (struct form){0});
    cbgen_operator *op = compile(context, &sample, NULL);
    check_product(op, &sample.csr);
    cbgen_context_destroy(context); /* operators outlive it */
    check_product(op, &sample.csr);
    cbgen_operator_free(op);
    sample_release(&sample);
  }
}

/* Bits of `number`: one choice each. */
static struct form form_of(int number) {
  return (struct form){.row_bits = number & 1 ? 64 : 0,
                       .col_bits = number & 2 ? 64 : 32,
                       .base = (number & 4) != 0,
                       .value_type = number & 8 ? CBGEN_F32 : CBGEN_F64,
                       .shuffled = (number & 16) != 0,
                       .duplicates = (number & 32) != 0,
                       .on_device = (number & 64) != 0,
                       .no_values = (number & 128) != 0};
}

static void every_form_of_a_matrix_multiplies(void **state) {
  (void)state;
  cbgen_context *context = new_context();
  for (int number = 0; number < 256; number++)
    for (int turned = 0; turned < 2; turned++) {
      const cbgen_request request = {sizeof request, 0, CBGEN_VALUES_STORED, turned};
      struct sample sample = sample_of(shapes[0], form_of(number));
      cbgen_operator *op = compile(context, &sample, &request);
      struct cb_csr csr = turned ? transposed(&sample.csr) : sample.csr;
      check_product(op, &csr);
      if (turned) cb_csr_release(&csr);
      cbgen_operator_free(op);
      sample_release(&sample);
    }
  cbgen_context_destroy(context);
}

/* ---- new values */

static cbgen_update update_with(const struct sample *sample, cbgen_memory memory, void *stream) {
  return (cbgen_update){sizeof(cbgen_update),
                        memory == CBGEN_DEVICE ? (void *)(uintptr_t)sample->there[2] : sample->given,
                        sample->form.value_type, memory, stream};
}

static void new_values_are_a_fresh_compile(void **state) {
  (void)state;
  cbgen_context *context = new_context();
  for (int number = 0; number < 128; number += 4)
    for (int turned = 0; turned < 2; turned++) {
      const cbgen_request request = {sizeof request, 0, CBGEN_VALUES_MUTABLE, turned};
      struct sample sample = sample_of(shapes[number / 4 % 5], form_of(number + 2));
      cbgen_operator *op = compile(context, &sample, &request);
      for (uint64_t seed = 50; seed < 53; seed++) {
        set_values(&sample, seed);
        sum_up(&sample);
        const cbgen_update update =
            update_with(&sample, sample.form.on_device && seed & 1 ? CBGEN_DEVICE : CBGEN_HOST, NULL);
        must_operator(op, cbgen_update_values(op, &update));
        struct cb_csr csr = turned ? transposed(&sample.csr) : sample.csr;
        check_product(op, &csr);
        if (turned) cb_csr_release(&csr);
      }
      /* bit by bit */
      cbgen_operator *fresh = compile(context, &sample, &request);
      struct vectors vectors = vectors_for(op, 0);
      const size_t bytes = (size_t)vectors.rows * cb_type_size(vectors.type);
      void *results[2] = {calloc(bytes + 1, 1), calloc(bytes + 1, 1)};
      cbgen_operator *const both[2] = {op, fresh};
      for (int i = 0; i < 2; i++) {
        const cbgen_product product = product_with(&vectors, 1, 0, NULL);
        must_operator(both[i], cbgen_multiply(both[i], &product));
        assert_true(app_take(results[i], vectors.y_there, bytes));
        cbgen_operator_free(both[i]);
      }
      assert_memory_equal(results[0], results[1], bytes);
      free(results[0]);
      free(results[1]);
      vectors_release(&vectors);
      sample_release(&sample);
    }
  cbgen_context_destroy(context);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(every_shape_multiplies),
      TEST(every_form_of_a_matrix_multiplies),
      TEST(new_values_are_a_fresh_compile),
  };
  (void)mutable;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
