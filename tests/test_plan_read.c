// SPDX-License-Identifier: Apache-2.0
/* A plan's JSON may come from anywhere: each case changes one thing of a good one, and must be refused. */
#include "tests/support.h"

static const struct {
  const char *from, *to;
  int of_array; /* the first place behind "arrays" is meant */
} cases[] = {
    {"\"rows\": 90", "\"rows\": \"90\"", 0},
    {"\"rows\": 90", "\"rows\": 90.0", 0},
    {"\"rows\": 90", "\"rows\": -1", 0},
    {"\"rows\": 90", "\"rows\": 2147483648", 0},
    {"\"rows\": 90", "\"rows\": 90, \"rows\": 90", 0},
    {"\"rows\": 90", "\"lines\": 90", 0},
    {"\"matrix_type\": \"f64\"", "\"matrix_type\": \"f65\"", 0},
    {"\"form\": \"", "\"form\": \"no", 0},
    {"\"values\": \"data\"", "\"values\": \"none\"", 0},
    {"\"storage\": \"", "\"storage\": \"no", 1},
    {"\"role\": \"", "\"role\": \"no", 1},
    {"\"type\": \"", "\"type\": \"no", 1},
    {"\"arrays\": [", "\"arrays\": {}, \"others\": [", 0},
    {"\"launches\": [", "\"launches\": {}, \"others\": [", 0},
};

static char *json_of_plan(void) {
  struct cb_diag diag = {0};
  struct cb_text json = {0};
  struct product product = product_of("random,rows=90,cols=70,density=0.2", "recipe=sell bake-limit=0");
  assert_ok(cb_plan_json(product.plan, &json, &diag));
  product_release(&product);
  return cb_text_detach(&json);
}

static enum cb_status parsed(const char *json) {
  struct cb_diag diag = {0};
  struct cb_plan *plan;
  const enum cb_status s = cb_plan_parse(&plan, json, &diag);
  if (s) assert_string_equal(diag.message, "the plan's JSON is damaged");
  assert_int_equal(s == CB_OK, plan != NULL);
  cb_plan_free(plan);
  return s;
}

static void every_number_and_word_must_be_one(void **state) {
  (void)state;
  char *json = json_of_plan();
  assert_int_equal(parsed(json), CB_OK);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const char *from = cases[c].of_array ? strstr(json, "\"arrays\": [") : json;
    struct cb_text changed = {0};
    char *rest = from ? replaced(from, cases[c].from, cases[c].to, 1) : NULL;
    if (!rest) fail_msg("the plan does not have '%s'", cases[c].from);
    cb_text_add_bytes(&changed, json, (size_t)(from - json));
    cb_text_add_string(&changed, rest);
    if (parsed(cb_text_string(&changed)) != CB_ERR_FORMAT) fail_msg("'%s' is believed", cases[c].to);
    cb_text_release(&changed);
    cb_free(rest);
  }
  cb_free(json);
}

static void lists_are_no_longer_than_plans_have_them(void **state) {
  (void)state;
  char *json = json_of_plan();
  for (int extra = 0; extra <= 1; extra++) {
    struct cb_text launches = {0};
    cb_text_add_string(&launches, "\"launches\": [");
    for (int i = 0; i < 63 + extra; i++)
      cb_text_add_string(&launches, "{\"first_region\": 0, \"regions\": 0, \"blocks\": 1, \"threads\": 32, "
                                    "\"dynamic_shared\": 0}, ");
    char *changed = replaced(json, "\"launches\": [", cb_text_string(&launches), 1);
    assert_non_null(changed);
    assert_int_equal(parsed(changed), extra ? CB_ERR_FORMAT : CB_OK);
    cb_free(changed);
    cb_text_release(&launches);
  }
  cb_free(json);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_number_and_word_must_be_one),
      cmocka_unit_test(lists_are_no_longer_than_plans_have_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
