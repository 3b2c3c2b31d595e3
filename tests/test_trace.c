// SPDX-License-Identifier: Apache-2.0
/* Traces of rows: traced products have the bits of plain ones, for every recipe and every row, and nothing is found wrong
 * with right kernels; planted faults are found and named. CBGEN_TEST_ALL=1: every recipe with every type and semiring. */
#include "kernels.h"
#include "layouts.h"
#include "recipes.h"

#include "base/real.h"
#include "runtime/verify/trace.h"
#include "tests/combinations.h"

#include <math.h>

/* A product with its vectors, as the self-test has them. */
struct traced {
  struct product product;
  struct cb_verify_case one;
  struct cb_trace_product given;
  void *x, *y;
  struct cb_trace *trace;
};

static struct cb_host *tracing, *plain;

static int open_hosts(void **state) {
  struct cb_host_options options;
  (void)state;
  cb_trace_host_options(&options);
  options.compiler = fast_compiler();
  options.sanitize = options.debug = options.optimize = 0;
  tracing = open_kernel_host(&options);
  options.trace = 0;
  plain = open_kernel_host(&options);
  return 0;
}

static int close_hosts(void **state) {
  (void)state;
  cb_host_close(tracing);
  cb_host_close(plain);
  return 0;
}

static void make_vectors(struct traced *traced) {
  const struct cb_plan *plan = traced->product.plan;
  const struct cb_csr *csr = traced->product.csr;
  const size_t size = cb_type_size(plan->vector_type);
  traced->x = calloc((size_t)csr->cols + 1, size);
  traced->y = calloc((size_t)csr->rows + 1, size);
  for (int64_t i = 0; i < csr->cols; i++) cb_real_set(traced->x, plan->vector_type, i, cb_selftest_x((uint64_t)i));
  for (int64_t i = 0; i < csr->rows; i++) cb_real_set(traced->y, plan->vector_type, i, 0.5);
  traced->given = (struct cb_trace_product){.x = traced->x, .y = traced->y, .alpha = 1, .blob = &traced->product.blob};
  if (plan->form == CB_FORM_AXPBY && plan->semiring == CB_PLUS_TIMES) traced->given.alpha = -1.625;
  if (plan->form != CB_FORM_AX) traced->given.beta = 1;
}

/* The text is changed before it is traced, where `change` is given. */
static struct traced make(struct cb_csr csr, const char *settings) {
  struct traced traced = {.product = product_of_matrix(csr, settings)};
  make_vectors(&traced);
  return traced;
}

static enum cb_status run(struct traced *traced, struct cb_diag *diag) {
  struct product *product = &traced->product;
  traced->one = (struct cb_verify_case){product->csr,     product->plan,  product->assignment,
                                        &product->source, &product->blob, "test"};
  traced->given.blob = &product->blob;
  return cb_trace_run(&traced->trace, tracing, &traced->one, &traced->given, diag);
}

static void release(struct traced *traced) {
  cb_trace_free(traced->trace);
  free(traced->x);
  free(traced->y);
  product_release(&traced->product);
}

/* ---- bits */

static void check_bits(const struct traced *traced, const char *settings) {
  const struct product *product = &traced->product;
  const size_t size = cb_type_size(product->plan->vector_type), bytes = (size_t)product->csr->rows * size;
  struct cb_diag diag = {0};
  struct cb_host_program *program;
  void *result = malloc(bytes + 1);
  const struct cb_host_kernel kernel = {.text = product->source.text + product->source.body,
                                        .symbol = "test",
                                        .vector_type = product->plan->vector_type,
                                        .form = product->plan->form};
  struct cb_host_job job = {.data = product->blob.bytes, .data_bytes = product->blob.length,
                            .x = traced->x, .x_bytes = product->csr->cols * (int64_t)size,
                            .y = traced->y, .y_bytes = (int64_t)bytes,
                            .alpha = traced->given.alpha, .beta = traced->given.beta,
                            .products = 1, .result = result};
  assert_ok(cb_host_build(&program, plain, &kernel, 1, &diag));
  assert_ok(cb_host_run(program, &job, 1, &diag));
  cb_host_program_free(program);
  if (job.outcome) fail_msg("%s: %s", settings, job.message);
  if (memcmp(result, cb_trace_y(traced->trace), bytes)) fail_msg("%s: traced sums have other bits", settings);
  free(result);
}

/* Of a right kernel. Returns the products that were seen, which are the matrix's nonzeros where each is added once. */
static int64_t check_rows(const struct traced *traced, const char *settings) {
  struct cb_diag diag = {0};
  int64_t terms = 0;
  for (int64_t i = 0; i < traced->product.csr->rows; i++) {
    struct cb_trace_row row;
    assert_ok(cb_trace_row(&row, traced->trace, i, &diag));
    if (!row.is_right || row.findings_count)
      fail_msg("%s, row %d: %s", settings, (int)i, row.findings_count ? row.findings[0] : "wrong, and nothing is found");
    for (int64_t k = 0; k < row.steps_count; k++) terms += row.steps[k].is_term && row.steps[k].nonzero >= 0;
    cb_trace_row_release(&row);
  }
  return terms;
}

static void check_right(const struct cb_recipe *recipe, const char *type, const char *semiring, const char *form) {
  char settings[SETTINGS + 64];
  struct cb_diag diag = {0};
  snprintf(settings, sizeof settings, "%s type=%s form=%s semiring=%s", settings_of_recipe(recipe), type, form, semiring);
  struct traced traced = make(matrix_of(example_of(recipe)), settings);
  const enum cb_status s = run(&traced, &diag);
  if (s && (s != CB_ERR_UNSUPPORTED || !strstr(diag.message, "tensor cores"))) fail_msg("%s: %s", settings, diag.message);
  if (!s) {
    check_bits(&traced, settings);
    const int64_t terms = check_rows(&traced, settings);
    if (strcmp(semiring, "or-and") && terms != traced.product.csr->nnz)
      fail_msg("%s: %d of %d nonzeros are seen", settings, (int)terms, (int)traced.product.csr->nnz);
  }
  release(&traced);
}

static void traced_products_have_the_bits_of_plain_ones(void **state) {
  static const char *const types[] = {"f64", "f32", "f16", "f16-f32", "bf16"};
  static const char *const semirings[] = {"plus-times", "plus-times", "min-plus", "plus-times", "or-and", "max-times"};
  static const char *const forms[] = {"ax", "axpby", "add"};
  const struct cb_recipe *recipe;
  (void)state;
  for (int r = 0; (recipe = cb_recipe_at(r)); r++)
    for (int i = 0; i < (tests_all_combinations() ? 30 : 1); i++)
      check_right(recipe, types[(r + i) % 5], semirings[(r + i) % 6], forms[(r + i / 2) % 3]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(traced_products_have_the_bits_of_plain_ones),
  };
  return cmocka_run_group_tests_name("trace", tests, open_hosts, close_hosts);
}
