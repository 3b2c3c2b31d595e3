// SPDX-License-Identifier: Apache-2.0
/* Traces of rows: traced products have the bits of plain ones, for every layout and every row, and nothing is found
 * wrong with right kernels; planted faults are found and named. CBGEN_TEST_ALL=1: all recipes, types, semirings. */
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

static struct cb_host *host;

static int open_host(void **state) {
  struct cb_host_options options;
  (void)state;
  cb_host_options_default(&options);
  options.compiler = fast_compiler();
  options.sanitize = options.debug = options.optimize = 0;
  host = kernel_host(&options);
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
  return cb_trace_run(&traced->trace, host, &traced->one, &traced->given, diag);
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
  struct cb_host_job job = {.data = product->blob.bytes,
                            .data_bytes = product->blob.length,
                            .x = traced->x,
                            .x_bytes = product->csr->cols * (int64_t)size,
                            .y = traced->y,
                            .y_bytes = (int64_t)bytes,
                            .alpha = traced->given.alpha,
                            .beta = traced->given.beta,
                            .products = 1,
                            .result = result};
  assert_ok(cb_host_build(&program, host, &kernel, 1, &diag));
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
      fail_msg("%s, row %d: %s", settings, (int)i,
               row.findings_count ? row.findings[0] : "wrong, and nothing is found");
    for (int64_t k = 0; k < row.steps_count; k++) terms += row.steps[k].is_term && row.steps[k].nonzero >= 0;
    cb_trace_row_release(&row);
  }
  return terms;
}

static void check_right(const struct cb_recipe *recipe, const char *type, const char *semiring, const char *form) {
  char settings[SETTINGS + 64];
  struct cb_diag diag = {0};
  snprintf(settings, sizeof settings, "%s type=%s form=%s semiring=%s", settings_of_recipe(recipe), type, form,
           semiring);
  struct traced traced = make(matrix_of(example_of(recipe)), settings);
  const enum cb_status s = run(&traced, &diag);
  if (s && (s != CB_ERR_UNSUPPORTED || !strstr(diag.message, "tensor cores")))
    fail_msg("%s: %s", settings, diag.message);
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
  const struct cb_layout *layout = NULL;
  (void)state;
  for (int r = 0; (recipe = cb_recipe_at(r)); r++) {
    const int is_first = layout_of_recipe(recipe) != layout;
    layout = layout_of_recipe(recipe);
    for (int i = 0; i < (tests_all_combinations() ? 30 : is_first); i++)
      check_right(recipe, types[(r + i) % 5], semirings[(r + i) % 6], forms[(r + i / 2) % 3]);
    if (is_first && r % 4 == 0) check_right(recipe, "split-f64", "plus-times", forms[r % 3]);
  }
}

/* ---- faults */

static void change_text(struct traced *traced, const char *words, const char *instead) {
  struct cb_source *source = &traced->product.source;
  char *text = replaced(source->text + source->body, words, instead, 1);
  if (!text) fail_msg("no '%s' in the text", words);
  cb_source_release(source);
  *source = (struct cb_source){.text = text, .length = (int64_t)strlen(text)};
}

/* Each finding of the row that is asked for, one to a line. */
static void expect_finding(const struct traced *traced, int64_t number, const char *wanted) {
  struct cb_diag diag = {0};
  struct cb_trace_row row;
  int found = 0;
  assert_ok(cb_trace_row(&row, traced->trace, number, &diag));
  for (int i = 0; i < row.findings_count; i++) found |= strstr(row.findings[i], wanted) != NULL;
  if (!found)
    fail_msg("row %d: no '%s'; the first of %d findings is '%s'", (int)number, wanted, row.findings_count,
             row.findings_count ? row.findings[0] : "");
  cb_trace_row_release(&row);
}

struct fault {
  const char *matrix, *settings, *words, *instead;
  int64_t row;
  const char *finding;
};

static const char sell[] = "recipe=sell sell-lanes=1 sell-vector=1 sell-sort=off sell-vary=off form=ax";
static const char merge[] = "recipe=merge form=ax merge-piece=512";

static const struct fault faults[] = {
    {"band,n=64,half=20,per_row=8", sell, "value(arrays, slot) : sum_t(0)", "value(arrays, slot ^ 1) : sum_t(0)", 4,
     "takes the value of nonzero (5, "},
    {"band,n=64,half=20,per_row=8", sell, "step + i < steps) sum = ", "step + i < steps - 1) sum = ", 63,
     "is not in the sum"},
    {"band,n=64,half=20,per_row=8", sell, "load_x(vectors, columns[i])", "load_x(vectors, 63 - columns[i])", 1,
     "where row 1 has no nonzero"},
    {"band,n=64,half=20,per_row=8", sell, "row < kRows) commit", "row < kRows - 1) commit", 63,
     "y[63] is never written"},
    {"band,n=64,half=20,per_row=8", sell, "commit(vectors, row, sum)", "commit(vectors, row, sum + sum)", 9,
     "is in the sum 2 times"},
    {"long_row,rows=300,cols=9000,per_row=3,long_rows=2,long_length=3000", merge, "load_l2(sums + segment)",
     "load_l2(sums + (kSegments - 1 - segment))", -1, "multiplies nonzero ("},
};

/* The longest row, or the one that the fault names. */
static int64_t row_of_fault(const struct fault *fault, const struct cb_csr *csr) {
  int64_t longest = fault->row >= 0 ? fault->row : 0;
  for (int64_t row = 0; row < csr->rows && fault->row < 0; row++)
    if (cb_csr_row_length(csr, row) > cb_csr_row_length(csr, longest)) longest = row;
  return longest;
}

static void planted_faults_are_named(void **state) {
  (void)state;
  for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
    struct cb_diag diag = {0};
    struct traced traced = make(matrix_of(faults[f].matrix), faults[f].settings);
    change_text(&traced, faults[f].words, faults[f].instead);
    assert_ok(run(&traced, &diag));
    expect_finding(&traced, row_of_fault(&faults[f], traced.product.csr), faults[f].finding);
    release(&traced);
  }
}

/* The first nonzero of the row, in the order of the additions, whose x is NaN; rows without one are clean. */
static void the_nonzero_that_brings_in_a_nan_is_named(void **state) {
  struct cb_diag diag = {0};
  char wanted[120];
  (void)state;
  struct traced traced = make(matrix_of("band,n=64,half=20,per_row=8"), sell);
  const struct cb_csr *csr = traced.product.csr;
  const int64_t first = cb_csr_row(csr, 7);
  const int column = csr->col_idx[first + 3];
  cb_real_set(traced.x, CB_F64, column, NAN);
  cb_real_set(traced.x, CB_F64, csr->col_idx[first + 5], INFINITY);
  assert_ok(run(&traced, &diag));
  snprintf(wanted, sizeof wanted, "nonzero (7, %d) = %.9g is the first that brings in nan: x[%d] is nan, line ", column,
           csr->values[first + 3], column);
  expect_finding(&traced, 7, wanted);
  release(&traced);
}

/* ---- what is said of a row */

static void rows_that_are_not_there_are_refused(void **state) {
  struct cb_diag diag = {0};
  struct cb_trace_row row;
  (void)state;
  struct traced traced = make(matrix_of("staircase,n=5"), sell);
  assert_ok(run(&traced, &diag));
  assert_int_equal(cb_trace_row(&row, traced.trace, 5, &diag), CB_ERR_ARGUMENT);
  assert_string_equal(diag.message, "there is no row 5: the matrix has 5, from 0");
  assert_int_equal(cb_trace_row(&row, traced.trace, -1, &diag), CB_ERR_ARGUMENT);
  release(&traced);
}

/* A trace of one row leaves out the thread blocks that do not touch it: their rows stay as they were. */
static void only_what_touches_the_row_is_executed(void **state) {
  static const char *const settings[] = {sell, "recipe=dia form=axpby", "recipe=merge form=axpby"};
  struct cb_diag diag = {0};
  (void)state;
  for (int i = 0; i < 3; i++) {
    struct traced traced = make(matrix_of("tridiagonal,n=1500"), settings[i]);
    struct cb_trace_row row;
    traced.given.is_of_row = 1;
    traced.given.row = 700;
    assert_ok(run(&traced, &diag));
    assert_ok(cb_trace_row(&row, traced.trace, 700, &diag));
    assert_true(row.is_right && !row.findings_count && row.nonzeros == 3 && row.steps_count > 6);
    cb_trace_row_release(&row);
    if (traced.product.plan->regions[0].block_rows) expect_finding(&traced, 10, "y[10] is never written");
    release(&traced);
  }
}

/* Slots and bytes as the arrays have them, the lane and the order of the additions as the text has them. */
static void places_are_those_of_the_arrays(void **state) {
  struct cb_diag diag = {0};
  struct cb_trace_row row;
  int64_t seen = 0;
  (void)state;
  struct traced traced = make(matrix_of("staircase,n=40"), sell);
  const struct product *product = &traced.product;
  assert_ok(run(&traced, &diag));
  assert_ok(cb_trace_row(&row, traced.trace, 33, &diag));
  for (int64_t i = 0; i < row.steps_count; i++) {
    const struct cb_trace_step *step = &row.steps[i];
    if (!step->is_term) continue;
    const int64_t slot = 32 * (element(product, "first_step", 1) + seen) + 1, first = cb_csr_row(product->csr, 33);
    assert_int_equal(step->slot, slot);
    assert_int_equal(step->nonzero, first + seen);
    assert_int_equal(step->column, product->csr->col_idx[first + seen++]);
    assert_int_equal(step->thread, 33);
    assert_true(step->exact == step->exact && fabs((double)step->exact - step->result) < 1e-12);
  }
  assert_int_equal(seen, 33);
  cb_trace_row_release(&row);
  release(&traced);
}

/* Other calls of the tool see the same: verify's report has the trace of its first wrong row. */
static void verify_traces_its_first_wrong_row(void **state) {
  struct cb_diag diag = {0};
  struct cb_verify_options options;
  struct cb_verify_report report;
  (void)state;
  struct traced traced = make(matrix_of(faults[0].matrix), sell);
  struct product *product = &traced.product;
  change_text(&traced, faults[0].words, faults[0].instead);
  const struct cb_verify_case one = {product->csr,     product->plan,  product->assignment,
                                     &product->source, &product->blob, "test"};
  cb_verify_options_default(&options);
  options.trace = options.orders = 1;
  assert_int_equal(cb_verify(&one, &options, &report, &diag), CB_ERR_WRONG);
  if (!strstr(report.trace, "takes the value of nonzero (1, ")) fail_msg("%s: %s", report.message, report.trace);
  release(&traced);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(traced_products_have_the_bits_of_plain_ones),
      cmocka_unit_test(planted_faults_are_named),
      cmocka_unit_test(the_nonzero_that_brings_in_a_nan_is_named),
      cmocka_unit_test(rows_that_are_not_there_are_refused),
      cmocka_unit_test(only_what_touches_the_row_is_executed),
      cmocka_unit_test(places_are_those_of_the_arrays),
      cmocka_unit_test(verify_traces_its_first_wrong_row),
  };
  return cmocka_run_group_tests_name("trace", tests, open_host, NULL);
}
