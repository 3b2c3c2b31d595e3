// SPDX-License-Identifier: Apache-2.0
/* Epilogues on the host's emulation, as `cbgen verify --epilogue` has them: what is right passes, and what is
 * wrong is found and named. */
#include "tests/recipes.h"
#include "tests/support.h"

#include "runtime/verify/epilogue.h"

static struct product product_with(const char *matrix, const char *settings, const char *epilogue) {
  struct cb_diag diag = {0};
  struct product product = {.csr = malloc(sizeof *product.csr)};
  assert_non_null(product.csr);
  *product.csr = matrix_of(matrix);
  set_options(&product.options, settings);
  product.options.epilogue = epilogue;
  product.options.form = CB_FORM_AX;
  product.options.commit = CB_COMMITS_ONCE;
  assert_ok(cb_target_find(&product.target, "sm_90", &diag));
  assert_ok(cb_plan_build(&product.plan, &product.assignment, product.csr, &product.target, &product.options, &diag));
  const struct cb_hash pattern = cb_csr_pattern_hash(product.csr);
  const struct cb_label label = {"test", "test", pattern};
  assert_ok(cb_pack(&product.blob, product.plan, product.assignment, product.csr, pattern, &diag));
  assert_ok(cb_source_emit(&product.source, product.plan, &label, &product.blob, CB_EMBED_NEVER, &diag));
  return product;
}

static struct cb_verify_case case_of(const struct product *product) {
  return (struct cb_verify_case){product->csr,     product->plan,  product->assignment,
                                 &product->source, &product->blob, "test"};
}

/* The text of `with`, checked against the statements of `meant` (NULL: its own). */
static enum cb_status verified(const char *matrix, const char *settings, const char *epilogue, const char *meant,
                               struct cb_epilogue_report *report, struct cb_diag *diag) {
  struct product plain = product_with(matrix, settings, NULL), with = product_with(matrix, settings, epilogue);
  struct product other = product_with(matrix, settings, meant ? meant : epilogue);
  struct cb_verify_case of_plain = case_of(&plain), of_with = case_of(&with);
  struct cb_verify_options options;
  cb_verify_options_default(&options);
  options.host.sanitize = 0;
  of_with.plan = other.plan;
  const enum cb_status s = cb_verify_epilogue(&of_plain, &of_with, &options, report, diag);
  product_release(&plain);
  product_release(&with);
  product_release(&other);
  return s;
}

static const char epilogue[] = "in b; in float d; inout acc; out r; scalar w; device h; r = b - ax * h;"
                               "acc = acc * w + r / d; rr = dot(r, r); m = max(abs(r));";

/* One recipe in four: all of them run in test_api_epilogue, on the fake GPU. */
static void what_is_right_passes(void **state) {
  const struct cb_recipe *recipe;
  (void)state;
  for (int i = 0; (recipe = cb_recipe_at(i)); i += 4) {
    struct cb_epilogue_report report;
    struct cb_diag diag = {0};
    const char *example = example_of(recipe);
    if (!example) example = "random,rows=1300,cols=200,density=0.02";
    if (verified(example, settings_of_recipe(recipe), epilogue, NULL, &report, &diag))
      fail_msg("%s: %s", recipe->name, diag.message);
    assert_int_equal(report.vectors, 2);
    assert_int_equal(report.results, 2);
    assert_true(report.rows > 0);
  }
}

static void check_wrong(const char *text, const char *meant, const char *words) {
  struct cb_epilogue_report report;
  struct cb_diag diag = {0};
  const enum cb_status s =
      verified("random,rows=90,cols=60,density=0.1", "recipe=sell", text, meant, &report, &diag);
  assert_int_equal(s, CB_ERR_WRONG);
  if (!strstr(diag.message, words)) fail_msg("%s", diag.message);
}

static void what_is_wrong_is_named(void **state) {
  (void)state;
  check_wrong("in b; out r; r = b - ax;", "in b; out r; r = ax - b;", "'r' of row 0 is ");
  check_wrong("in b; out r; r = b; s = sum(ax);", "in b; out r; r = b; s = sum(ax * 2);", "result 's' is ");
  check_wrong("in b; out r; r = row < 77 ? b : ax;", "in b; out r; r = row < 76 ? b : ax;", "'r' of row 76 is ");
  check_wrong("in b; out r; r = ax; m = max(b);", "in b; out r; r = ax; m = sum(b);", "result 'm' is ");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_right_passes),
                                     cmocka_unit_test(what_is_wrong_is_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
