// SPDX-License-Identifier: Apache-2.0
/* Values in two parts: which have them, that nothing is lost, and that products of both parts have the bits of ordinary
 * ones, whatever the recipe, and those of heads alone are within the bound of a matrix of floats. */
#include "tests/kernels.h"
#include "tests/recipes.h"

#include "base/real.h"
#include "base/split.h"

#include <float.h>
#include <math.h>

/* ---- numbers */

static double from_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* What must hold, by other means: the processor's own conversion, and sizes without their signs. */
static void check_number(double value) {
  const float head = (float)value;
  const int is_special = value != value || isinf(value) || value == 0;
  const int holds = is_special || (fabsf(head) >= FLT_MIN && !isinf(head));
  if (cb_split_holds(value) != holds) fail_msg("%a: has %s split form", value, holds ? "a" : "no");
  assert_int_equal(cb_real_overflows(value, CB_SPLIT), !holds);
  const struct cb_split_value parts = cb_split_of(value);
  const double joined = cb_split_join(parts);
  if (!holds || value != value) {
    assert_true(joined != joined && parts.head != parts.head);
    return;
  }
  if (cb_real_bits((double)parts.head) != cb_real_bits((double)head)) fail_msg("%a: head %a", value, (double)parts.head);
  const int64_t rest = (int64_t)(cb_real_bits(value) & INT64_MAX) - (int64_t)(cb_real_bits((double)head) & INT64_MAX);
  if (rest != parts.rest || rest > 1 << 29 || rest < -(1 << 29)) fail_msg("%a: rest %d", value, (int)parts.rest);
  if (cb_real_bits(joined) != cb_real_bits(value)) fail_msg("%a: becomes %a", value, joined);
}

static void check_both_signs(uint64_t bits) {
  check_number(from_bits(bits));
  check_number(from_bits(bits | UINT64_C(1) << 63));
}

/* All numbers near `bits`, and near half of a float's last place above and below. */
static void check_around(uint64_t bits) {
  for (int64_t i = -40; i <= 40; i++) {
    check_both_signs((bits + (uint64_t)i) & INT64_MAX);
    check_both_signs((bits + (UINT64_C(1) << 28) + (uint64_t)i) & INT64_MAX);
    check_both_signs((bits - (UINT64_C(1) << 28) + (uint64_t)i) & INT64_MAX);
    check_both_signs((bits - (UINT64_C(1) << 27) + (uint64_t)i) & INT64_MAX);
  }
}

static void every_number_comes_back_or_has_no_parts(void **state) {
  (void)state;
  static const double ends[] = {0,       FLT_MIN,  0x1p-127,       0x1p-149, 0x1p-150, 0x1p-1022,    0x1p-1074, FLT_MAX,
                                DBL_MAX, INFINITY, 0x1.ffffffp127, 0x1p128,  1,        0x1.fffffep0, 0.1};
  uint64_t seed = 7;
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) check_around(cb_real_bits(ends[i]));
  for (uint64_t power = 0; power < 2047; power++) check_around(power << 52);          /* rounding carries */
  for (int i = 0; i < 300000; i++) check_number(from_bits(draw(&seed)));              /* all exponents */
  for (int i = 0; i < 300000; i++) check_number(ldexp((double)draw(&seed), (int)(draw(&seed) % 256) - 190));
  check_number(NAN);
  check_number(from_bits(UINT64_C(0x7ff0000000000001)));
  check_number(from_bits(UINT64_C(0xffffffffffffffff)));
}

static void arrays_hold_heads_before_rests(void **state) {
  (void)state;
  enum { COUNT = 3 * CB_SPLIT_WHOLE };
  unsigned char bytes[8 * COUNT + 8];
  uint64_t seed = 3;
  double values[COUNT];
  memset(bytes, 0x5a, sizeof bytes);
  for (int i = 0; i < COUNT; i++) cb_split_set(bytes, COUNT, i, values[i] = (double)(int64_t)draw(&seed) * 0x1p-70);
  for (int i = 0; i < COUNT; i++) {
    float head;
    memcpy(&head, bytes + 4 * i, sizeof head);
    assert_true(head == (float)values[i]);
    assert_true(cb_real_bits(cb_split_get(bytes, COUNT, i)) == cb_real_bits(values[i]));
  }
  for (size_t i = 8 * COUNT; i < sizeof bytes; i++) assert_int_equal(bytes[i], 0x5a);
}

/* ---- plans and data */

/* As many bytes as ordinary values take, but for what makes the number of slots a whole one. */
static void nothing_is_stored_twice(void **state) {
  (void)state;
  struct product split = product_of("stencil27,n=9", "recipe=sell type=split-f64");
  struct product whole = product_of("stencil27,n=9", "recipe=sell");
  assert_string_equal(split.plan->line, whole.plan->line);
  assert_true(cb_plan_has_heads(split.plan) && !cb_plan_has_heads(whole.plan));
  assert_in_range(cb_plan_bytes(split.plan) - cb_plan_bytes(whole.plan), 0, 8 * (CB_SPLIT_WHOLE - 1));
  assert_true(split.plan->hash.low != whole.plan->hash.low);
  assert_non_null(strstr(split.source.text, "test_multiply_heads("));
  assert_null(strstr(whole.source.text, "heads"));
  product_release(&split);
  product_release(&whole);
}

static void what_has_no_parts_is_refused(void **state) {
  (void)state;
  static const double bad[] = {1e-39, 1e39, -4e38, 5e-324, 0x1p-127};
  struct cb_diag diag = {0};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct product product = product_of("random,rows=40,density=0.1", "recipe=sell type=split-f64");
    double *values = cb_alloc((size_t)product.csr->nnz, sizeof *values);
    assert_non_null(values);
    memcpy(values, product.csr->values, (size_t)product.csr->nnz * sizeof *values);
    values[5] = bad[i];
    values[9] = bad[i];
    assert_int_equal(cb_pack_values(&product.blob, product.plan, product.assignment, values, &diag), CB_ERR_LIMIT);
    assert_non_null(strstr(diag.message, "nonzero 5 (counted from 0)"));
    assert_non_null(strstr(diag.message, "no split form"));
    values[5] = INFINITY, values[9] = -0.0;
    assert_ok(cb_pack_values(&product.blob, product.plan, product.assignment, values, &diag));
    cb_free(values);
    product_release(&product);
  }
}

/* ---- kernels */

/* Doubles of all 53 bits. */
static void spread_values(struct cb_csr *csr) {
  uint64_t seed = 5;
  for (int64_t k = 0; k < csr->nnz; k++)
    csr->values[k] = ldexp((double)(int64_t)draw(&seed), (int)(draw(&seed) % 20) - 70);
}

static struct product spread_product(const char *matrix, const char *settings) {
  struct cb_csr csr = matrix_of(matrix);
  spread_values(&csr);
  return product_of_matrix(csr, settings);
}

/* A recipe's example three times: ordinary, split, and ordinary with each value rounded to a float. */
enum { WHOLE, SPLIT, FLOATS, KINDS, RECIPES = 64 };
struct trio {
  struct product products[KINDS];
  double *x, *before, *y[KINDS], *heads;
};

static struct trio trio_of(const struct cb_recipe *recipe) {
  struct trio trio;
  uint64_t seed = 21;
  for (int kind = 0; kind < KINDS; kind++) {
    char settings[SETTINGS + 32];
    struct cb_csr csr = matrix_of(example_of(recipe));
    spread_values(&csr);
    for (int64_t k = 0; k < csr.nnz && kind == FLOATS; k++) csr.values[k] = (double)(float)csr.values[k];
    snprintf(settings, sizeof settings, "%s form=ax%s", settings_of_recipe(recipe), kind == SPLIT ? " type=split-f64" : "");
    trio.products[kind] = product_of_matrix(csr, settings);
    trio.y[kind] = cb_calloc((size_t)csr.rows + 1, sizeof(double));
    assert_non_null(trio.y[kind]);
  }
  const struct cb_csr *csr = trio.products[WHOLE].csr;
  trio.x = cb_calloc((size_t)csr->cols + 1, sizeof(double));
  trio.before = cb_calloc((size_t)csr->rows + 1, sizeof(double));
  trio.heads = cb_calloc((size_t)csr->rows + 1, sizeof(double));
  assert_true(trio.x && trio.before && trio.heads);
  for (int64_t i = 0; i < csr->cols; i++) trio.x[i] = (double)(int64_t)draw(&seed) * 0x1p-60;
  return trio;
}

static void trio_release(struct trio *trio) {
  for (int kind = 0; kind < KINDS; kind++) {
    product_release(&trio->products[kind]);
    cb_free(trio->y[kind]);
  }
  cb_free(trio->x);
  cb_free(trio->before);
  cb_free(trio->heads);
}

static struct cb_host_job job_of(const struct trio *trio, int kernel, int kind, int heads, double *y) {
  const struct cb_csr *csr = trio->products[kind].csr;
  return (struct cb_host_job){.kernel = kernel + kind,
                              .data = trio->products[kind].blob.bytes,
                              .data_bytes = trio->products[kind].blob.length,
                              .x = trio->x,
                              .y = trio->before,
                              .x_bytes = csr->cols * 8,
                              .y_bytes = csr->rows * 8,
                              .heads = heads,
                              .alpha = 1,
                              .products = 1,
                              .result = y};
}

/* y of all of them, and that of the split one's heads. */
static void multiply_all(struct trio *trios, int count) {
  static struct cb_host_kernel kernels[RECIPES * KINDS];
  static struct cb_host_job jobs[RECIPES * (KINDS + 1)];
  struct cb_host_options options;
  struct cb_host_program *program;
  struct cb_diag diag = {0};
  int jobs_count = 0;
  cb_host_options_default(&options);
  options.optimize = options.debug = options.sanitize = 0;
  options.compiler = fast_compiler();
  struct cb_host *host = kernel_host(&options);
  for (int t = 0; t < count; t++) {
    for (int kind = 0; kind < KINDS; kind++) {
      const struct product *product = &trios[t].products[kind];
      kernels[t * KINDS + kind] = (struct cb_host_kernel){.text = product->source.text + product->source.body,
                                                          .symbol = "test",
                                                          .vector_type = CB_F64,
                                                          .heads = kind == SPLIT,
                                                          .form = CB_FORM_AX};
      jobs[jobs_count++] = job_of(&trios[t], t * KINDS, kind, 0, trios[t].y[kind]);
    }
    jobs[jobs_count++] = job_of(&trios[t], t * KINDS, SPLIT, 1, trios[t].heads);
  }
  assert_ok(cb_host_build(&program, host, kernels, count * KINDS, &diag));
  assert_ok(cb_host_run(program, jobs, jobs_count, &diag));
  for (int i = 0; i < jobs_count; i++)
    if (jobs[i].outcome != CB_HOST_DONE) fail_msg("%s", jobs[i].message);
  cb_host_program_free(program);
}

/* Of each recipe's example. (Layout cb adds up in another order where it has to lay values apart.) */
static void products_have_the_bits_of_ordinary_ones(void **state) {
  static struct trio trios[RECIPES];
  const struct cb_recipe *recipe;
  int count = 0, compared = 0;
  (void)state;
  while ((recipe = cb_recipe_at(count))) {
    assert_true(count < RECIPES);
    trios[count++] = trio_of(recipe);
  }
  multiply_all(trios, count);
  for (int t = 0; t < count; t++) {
    const struct product *whole = &trios[t].products[WHOLE], *split = &trios[t].products[SPLIT];
    const size_t bytes = (size_t)whole->csr->rows * sizeof(double);
    if (!strcmp(whole->plan->line, split->plan->line)) {
      compared++;
      if (memcmp(trios[t].y[WHOLE], trios[t].y[SPLIT], bytes)) fail_msg("%s: other bits", whole->plan->line);
      if (memcmp(trios[t].y[FLOATS], trios[t].heads, bytes)) fail_msg("%s: other bits with heads", whole->plan->line);
    }
    trio_release(&trios[t]);
  }
  assert_in_range(compared, count - 8, count);
}

/* Values of all 53 bits, against the oracle. */
static void add_spread(struct kernel_batch *batch, const char *matrix, const char *settings, const char *form) {
  struct kernel *kernel = next_kernel(batch);
  struct cb_options options;
  struct cb_diag diag = {0};
  char text[SETTINGS];
  snprintf(text, sizeof text, "recipe=%s type=split-f64 form=%s", settings, form);
  snprintf(kernel->name, sizeof kernel->name, "%.60s %.120s", matrix, text);
  set_options(&options, text);
  assert_ok(cb_matrix_generate(&kernel->csr, matrix, &diag));
  spread_values(&kernel->csr);
  add_kernel(batch, &options);
}

/* Matrices of a single row and column, and of empty rows; and slots that are read one by one and several at once. */
static void verification_multiplies_with_heads_too(void **state) {
  static const char *const matrices[] = {"empty,rows=5", "one_row,cols=70", "one_column,rows=40",
                                         "long_row,rows=300,long_length=250", "hypersparse,rows=900,keep=0.1"};
  static const char *const forms[] = {"ax", "add", "axpby"};
  static const char *const several[][2] = {{"fe3,n=4", "blocks"},
                                           {"stencil27,n=6", "sell sell-vector=2"},
                                           {"uniform,n=90,per_row=16", "sell sell-vector=4"},
                                           {"stencil27,n=6", "patterns"},
                                           {"fe3,n=4", "cb th1=20 th2=60"}};
  struct cb_verify_options options;
  struct kernel_batch batch;
  (void)state;
  fast_options(&options);
  open_batch(&batch, &options);
  for (int number = 0; number < 15; number++)
    add_spread(&batch, matrices[number / 3], number % 2 ? "sell" : "merge", forms[number % 3]);
  for (int number = 0; number < 5; number++) add_spread(&batch, several[number][0], several[number][1], "ax");
  close_batch(&batch);
  assert_int_equal(batch.failures, 0);
  assert_int_equal(batch.refused, 0);
}

/* A kernel that takes rests for zeros is found by the full product, and one that takes heads for whole numbers by that
 * with heads. */
static void wrong_kernels_are_found(void **state) {
  static const struct {
    const char *from, *to, *message;
  } planted[] = {{"from_parts(load_stream(", "double(load_stream(", "product 'random': row"},
                 {"return sum_t(load_stream((const float *)arrays.values + slot)",
                  "return sum_t(1.00001 * load_stream((const float *)arrays.values + slot)", "with heads: row"}};
  (void)state;
  for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
    struct cb_verify_options options;
    struct cb_verify_report report;
    struct cb_diag diag = {0};
    struct product product = spread_product("random,rows=90,density=0.1",
                                            "recipe=sell sell-lanes=1 sell-vector=1 type=split-f64 stay-in-l2=off");
    cb_verify_options_default(&options);
    options.host.compiler = fast_compiler();
    options.host.sanitize = 0;
    char *text = replaced(product.source.text, planted[i].from, planted[i].to, 1);
    if (i == 0 && text) { /* the rest is then the second operand of a comma */
      char *other = replaced(text, "slot), load_stream((const int32_t *)arrays.values + kRests + slot)))",
                             "slot)) + 0 * load_stream((const int32_t *)arrays.values + kRests + slot))", 1);
      free(text);
      text = other;
    }
    assert_non_null(text);
    free(product.source.text);
    product.source.text = text;
    product.source.length = (int64_t)strlen(text);
    const struct cb_verify_case one = {product.csr, product.plan, product.assignment, &product.source, &product.blob, "test"};
    assert_int_equal(cb_verify(&one, &options, &report, &diag), CB_ERR_WRONG);
    if (!strstr(report.message, planted[i].message)) fail_msg("%s", report.message);
    product_release(&product);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_number_comes_back_or_has_no_parts),
      cmocka_unit_test(arrays_hold_heads_before_rests),
      cmocka_unit_test(nothing_is_stored_twice),
      cmocka_unit_test(what_has_no_parts_is_refused),
      cmocka_unit_test(products_have_the_bits_of_ordinary_ones),
      cmocka_unit_test(verification_multiplies_with_heads_too),
      cmocka_unit_test(wrong_kernels_are_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
