// SPDX-License-Identifier: Apache-2.0
/* Arguments that make no sense, for every function of cbgen.h: NULL where something must be, sizes of structs that no
 * version has, arrays that are not aligned. Each gives CBGEN_ERROR_ARGUMENT (or nothing at all, where there is no
 * status), and a message where there is a place for it. */
#include "tests/api_support.h"

#include <ctype.h>

static cbgen_context *context;
static cbgen_operator *op;
static cbgen_kernel *kernel;
static struct sample sample;

#define refused(call) assert_int_equal(call, CBGEN_ERROR_ARGUMENT)

/* Refused, and the context says why. */
#define refused_because(words, call)                                                                              \
  do {                                                                                                            \
    refused(call);                                                                                                \
    if (!strstr(cbgen_message(context), words)) fail_msg("%s: '%s'", #call, cbgen_message(context));              \
  } while (0)

static void null_of_every_function_of_a_context(void **state) {
  cbgen_operator *other = op;
  cbgen_kernel *no_kernel = kernel;
  const size_t bytes = 7;
  const cbgen_matrix general = {.struct_size = sizeof general};
  (void)state;
  assert_true(*cbgen_version());
  assert_string_equal(cbgen_status_name((cbgen_status)-1), "unknown");
  assert_string_equal(cbgen_status_name((cbgen_status)1000), "unknown");
  refused(cbgen_context_create(NULL));
  cbgen_context_destroy(NULL);
  cbgen_trim();
  refused(cbgen_set(NULL, "recipe", "sell"));
  refused_because("needs a name", cbgen_set(context, NULL, "sell"));
  refused_because("needs a name", cbgen_set(context, "recipe", NULL));
  assert_string_equal(cbgen_message(NULL), "");
  refused(cbgen_set_log(NULL, NULL, NULL));
  refused(cbgen_set_allocator(NULL, NULL));
  refused_because("needs both functions",
                  cbgen_set_allocator(context, &(cbgen_allocator){.struct_size = sizeof(cbgen_allocator)}));
  refused_because("struct_size", cbgen_set_allocator(context, &(cbgen_allocator){0}));
  refused_because("too late", cbgen_set_allocator(context, NULL));
  refused(cbgen_compile(NULL, &sample.view, NULL, &other));
  assert_null(other);
  refused_because("no place", cbgen_compile(context, &sample.view, NULL, NULL));
  refused_because("cbgen_csr", cbgen_compile(context, NULL, NULL, &other));
  other = op;
  refused(cbgen_compile_matrix(NULL, &general, NULL, &other));
  assert_null(other);
  refused_because("no place", cbgen_compile_matrix(context, &general, NULL, NULL));
  refused_because("cbgen_matrix", cbgen_compile_matrix(context, NULL, NULL, &other));
  refused(cbgen_operator_load(NULL, &bytes, sizeof bytes, &other));
  refused_because("no place", cbgen_operator_load(context, &bytes, sizeof bytes, NULL));
  refused_because("no block", cbgen_operator_load(context, NULL, 100, &other));
  refused(cbgen_generate(NULL, &sample.view, &no_kernel));
  assert_null(no_kernel);
  refused_because("no place", cbgen_generate(context, &sample.view, NULL));
  refused_because("cbgen_csr", cbgen_generate(context, NULL, &no_kernel));
  no_kernel = kernel;
  refused(cbgen_generate_matrix(NULL, &general, &no_kernel));
  assert_null(no_kernel);
  refused_because("no place", cbgen_generate_matrix(context, &general, NULL));
  refused_because("cbgen_matrix", cbgen_generate_matrix(context, NULL, &no_kernel));
}

static void null_of_every_function_of_a_solver(void **state) {
  (void)state;
  refused(cbgen_solver_create(NULL, "cg", NULL, NULL));
  refused(cbgen_solver_create(op, NULL, NULL, NULL));
  refused(cbgen_solver_clone(NULL, NULL, NULL));
  cbgen_solver_free(NULL);
  refused(cbgen_solve(NULL, NULL, NULL, NULL));
  refused(cbgen_solver_outcome(NULL, NULL));
  assert_string_equal(cbgen_solver_message(NULL), "");
  assert_string_equal(cbgen_solver_source(NULL, NULL), "");
  assert_string_equal(cbgen_solver_form(NULL), "");
  refused(cbgen_batch_create(NULL, NULL, "cg", NULL, NULL));
  refused(cbgen_solve_batch(NULL, NULL, NULL, NULL, NULL));
  refused(cbgen_batch_outcomes(NULL, NULL));
  assert_string_equal(cbgen_batch_message(NULL), "");
  cbgen_batch_free(NULL);
  refused(cbgen_lp_create(NULL, op, NULL, NULL));
  refused(cbgen_lp_create(op, NULL, NULL, NULL));
  refused(cbgen_lp_clone(NULL, NULL, NULL));
  refused(cbgen_lp_solve(NULL, NULL, NULL, NULL, NULL));
  refused(cbgen_lp_outcome(NULL, NULL));
  assert_string_equal(cbgen_lp_message(NULL), "");
  assert_string_equal(cbgen_lp_form(NULL), "");
  cbgen_lp_free(NULL);
  refused(cbgen_lp_scales(NULL, NULL, NULL, NULL));
  refused(cbgen_lp_scales(context, NULL, NULL, NULL));
}

static void null_of_every_function_of_an_operator(void **state) {
  double seconds;
  size_t length = 7;
  cbgen_operator *other = op;
  cbgen_info info = {.struct_size = sizeof info};
  const cbgen_product product = {.struct_size = sizeof product, .alpha = 1};
  const cbgen_update update = {sizeof update, NULL, CBGEN_F64, CBGEN_HOST, NULL};
  (void)state;
  refused(cbgen_operator_clone(NULL, &other));
  refused(cbgen_operator_clone(op, NULL));
  refused(cbgen_operator_copy(NULL, NULL, &other));
  refused(cbgen_operator_copy(op, NULL, NULL));
  other = op;
  refused(cbgen_operator_copy(op, &update, &other));
  assert_null(other);
  refused(cbgen_operator_specialise(NULL));
  refused(cbgen_operator_check(NULL, NULL));
  refused(cbgen_operator_check(op, NULL)); /* it has no such checks */
  cbgen_operator_free(NULL);
  refused(cbgen_multiply(NULL, &product));
  refused(cbgen_multiply(op, NULL));
  refused(cbgen_multiply(op, &product));
  refused(cbgen_multiply_many(NULL, NULL));
  refused(cbgen_multiply_many(op, NULL));
  refused(cbgen_multiply_many(op, &(cbgen_products){.struct_size = sizeof(cbgen_products)}));
  cbgen_operator_unbind(NULL);
  refused(cbgen_residual(NULL, NULL, NULL, NULL, NULL));
  refused(cbgen_residual(op, NULL, NULL, NULL, NULL));
  refused(cbgen_diagonal(NULL, NULL, NULL));
  refused(cbgen_block_diagonal(NULL, NULL, 2, NULL));
  refused(cbgen_update_values(NULL, &update));
  refused(cbgen_update_values(op, NULL));
  refused(cbgen_update_values(op, &update));
  assert_string_equal(cbgen_operator_message(NULL), "");
  refused(cbgen_operator_info(NULL, &info));
  refused(cbgen_operator_info(op, NULL));
  refused(cbgen_operator_measure(NULL, &seconds));
  refused(cbgen_operator_permutation(NULL, NULL, NULL));
  assert_string_equal(cbgen_operator_source(NULL, &length), "");
  assert_int_equal(length, 0);
  assert_true(*cbgen_operator_source(op, NULL));
  assert_string_equal(cbgen_operator_plan(NULL), "");
  assert_string_equal(cbgen_operator_plan_json(NULL), "");
  assert_string_equal(cbgen_operator_key(NULL), "");
  refused(cbgen_operator_save(NULL, NULL, 0, &length));
  refused(cbgen_operator_save(op, NULL, 0, NULL));
}

static void null_of_every_function_of_a_kernel(void **state) {
  size_t length = 7;
  (void)state;
  cbgen_kernel_free(NULL);
  assert_string_equal(cbgen_kernel_source(NULL, &length), "");
  assert_int_equal(length, 0);
  assert_null(cbgen_kernel_data(NULL, &length));
  assert_int_equal(cbgen_kernel_embedded(NULL), 0);
  assert_string_equal(cbgen_kernel_symbol(NULL), "");
  assert_string_equal(cbgen_kernel_plan(NULL), "");
  assert_string_equal(cbgen_kernel_plan_json(NULL), "");
  assert_int_equal(cbgen_kernel_stored_bytes(NULL), 0);
}

/* ---- structs */

/* A struct whose size is a lie lies at the end of a block: what reads or writes on is found by the sanitizer. */
static void *lying(const void *from, size_t size, size_t said) {
  void *copy = malloc(size);
  assert_non_null(copy);
  memcpy(copy, from, size);
  memcpy(copy, &said, sizeof said);
  return copy;
}

static const size_t lies[] = {0, 1, 7, 4097, 1 << 20, INT64_MAX, SIZE_MAX};
enum { LIES = sizeof lies / sizeof *lies };

static void sizes_that_no_version_has(void **state) {
  const cbgen_request request = {.struct_size = sizeof request};
  const cbgen_product product = {.struct_size = sizeof product, .alpha = 1, .x = &sample, .y = &sample};
  const cbgen_update update = {sizeof update, sample.given, CBGEN_F64, CBGEN_HOST, NULL};
  const cbgen_info info = {.struct_size = sizeof info};
  (void)state;
  for (int i = 0; i < LIES; i++) {
    cbgen_operator *other;
    cbgen_kernel *no_kernel;
    void *csr = lying(&sample.view, sizeof sample.view, lies[i]), *asked = lying(&request, sizeof request, lies[i]),
         *multiplied = lying(&product, sizeof product, lies[i]), *renewed = lying(&update, sizeof update, lies[i]),
         *filled = lying(&info, sizeof info, lies[i]);
    refused_because("struct_size", cbgen_compile(context, csr, NULL, &other));
    refused_because("struct_size", cbgen_compile(context, &sample.view, asked, &other));
    refused_because("struct_size", cbgen_generate(context, csr, &no_kernel));
    refused(cbgen_multiply(op, multiplied));
    assert_non_null(strstr(cbgen_operator_message(op), "struct_size"));
    refused(cbgen_update_values(op, renewed));
    assert_non_null(strstr(cbgen_operator_message(op), "struct_size"));
    refused(cbgen_operator_info(op, filled));
    free(csr);
    free(asked);
    free(multiplied);
    free(renewed);
    free(filled);
  }
}

/* ---- arrays */

static void *moved(const void *array, size_t by) {
  return (char *)(uintptr_t)array + by;
}

static void arrays_that_are_not_aligned(void **state) {
  cbgen_operator *other;
  cbgen_kernel *no_kernel;
  (void)state;
  for (int on_device = 0; on_device < 2; on_device++)
    for (int array = 0; array < 3; array++)
      for (size_t by = 1; by < 4; by++) {
        cbgen_csr view = sample.view;
        view.memory = on_device ? CBGEN_DEVICE : CBGEN_HOST;
        const void **const arrays[] = {&view.row_ptr, &view.col_idx, &view.values};
        *arrays[array] = moved(*arrays[array], by);
        refused_because("not aligned", cbgen_compile(context, &view, NULL, &other));
        if (!on_device) refused_because("not aligned", cbgen_generate(context, &view, &no_kernel));
      }
  cbgen_csr wide = sample.view;
  wide.row_ptr_bits = 64;
  wide.row_ptr = moved(wide.row_ptr, 4);
  refused_because("'row_ptr' is not aligned to its elements of 8", cbgen_compile(context, &wide, NULL, &other));
  struct vectors vectors = vectors_for(op, 0);
  for (int which = 0; which < 2; which++) {
    cbgen_product product = product_with(&vectors, 1, 0, NULL);
    if (which) product.x = moved(product.x, 4);
    else product.y = moved(product.y, 4);
    refused(cbgen_multiply(op, &product));
    assert_non_null(strstr(cbgen_operator_message(op), "not aligned"));
  }
  vectors_release(&vectors);
  const cbgen_update update = {sizeof update, moved(sample.given, 2), CBGEN_F64, CBGEN_HOST, NULL};
  refused(cbgen_update_values(op, &update));
}

/* ---- that no function was forgotten */

static char *text_of(const char *path) {
  struct cb_text text = {0};
  char bytes[4096];
  size_t got;
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  while ((got = fread(bytes, 1, sizeof bytes, file)) > 0) cb_text_add_bytes(&text, bytes, got);
  fclose(file);
  return cb_text_detach(&text);
}

static void every_function_of_the_header_is_here(void **state) {
  char *header = text_of("include/cbgen.h"), *here = text_of("tests/test_api_arguments.c");
  int functions = 0;
  (void)state;
  for (const char *at = header; (at = strstr(at, "\nCBGEN_API ")); functions++) {
    char call[80];
    const char *end = strchr(++at, '('), *begin = end;
    while (isalnum((unsigned char)begin[-1]) || begin[-1] == '_') begin--;
    snprintf(call, sizeof call, "%.*s(", (int)(end - begin), begin);
    if (!strstr(here, call)) fail_msg("'%s' of cbgen.h is not tried with arguments that make no sense", call);
  }
  assert_true(functions >= 30);
  cb_free(header);
  cb_free(here);
}

static int set_up(void **state) {
  const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE};
  (void)state;
  if (open_app()) return -1;
  sample = sample_of("random,rows=40,cols=30,density=0.2", (struct form){0});
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  must(context, cbgen_set(context, "cache", ""));
  must(context, cbgen_compile(context, &sample.view, &request, &op));
  must(context, cbgen_generate(context, &sample.view, &kernel));
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  cbgen_kernel_free(kernel);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(null_of_every_function_of_a_context),
      cmocka_unit_test(null_of_every_function_of_a_solver),
      cmocka_unit_test(null_of_every_function_of_an_operator),
      cmocka_unit_test(null_of_every_function_of_a_kernel),
      cmocka_unit_test(sizes_that_no_version_has),
      cmocka_unit_test(arrays_that_are_not_aligned),
      cmocka_unit_test(every_function_of_the_header_is_here),
  };
  return cmocka_run_group_tests_name("arguments", tests, set_up, tear_down);
}
