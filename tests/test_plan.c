// SPDX-License-Identifier: Apache-2.0
/* Plans of every recipe, with the settings that the layouts' tables offer: every nonzero in one slot, the same bytes
 * for any number of threads, new values, no nonzeros at all, and every allocation failing once; and the search. */
#include "tests/layouts.h"
#include "tests/recipes.h"

#include "analysis/plan/assignment.h"
#include "analysis/layout.h"

enum { CROSSINGS = 5 };

/* Plans random_matrix(…) with the next settings that its recipe takes; 0: there are no more. */
static int next_product(struct product *product, int *number, int64_t rows, int64_t cols, unsigned per_mille) {
  char settings[SETTINGS];
  while (next_settings(settings, (*number)++, CROSSINGS)) {
    struct cb_diag diag;
    struct cb_csr csr = random_matrix(rows, cols, per_mille, per_mille);
    const enum cb_status s = plan_status(&csr, settings, "sm_90", &diag);
    if (s == CB_ERR_UNSUPPORTED) {
      cb_csr_release(&csr);
      continue;
    }
    *product = product_of_matrix(csr, settings);
    return 1;
  }
  return 0;
}

/* What tests take for granted of them. */
static void examples_suit_their_recipes(void **state) {
  (void)state;
  const struct cb_recipe *recipe;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++) {
    struct product product = product_of(example_of(recipe), settings_of_recipe(recipe));
    if (recipe->root) assert_string_equal(product.plan->recipe, recipe->name);
    if (recipe->root && recipe->root->split && product.plan->regions_count < 2)
      fail_msg("%s: all but one part of the example are empty: %s", recipe->name, product.plan->line);
    product_release(&product);
  }
}

static void every_nonzero_has_one_slot(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  for (unsigned per_mille = 1; per_mille <= 1000; per_mille = per_mille * 3 + 1) {
    struct product product;
    int planned = 0;
    for (int number = 0; next_product(&product, &number, 83, 70, per_mille); planned++) {
      assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
      assert_ok(cb_plan_check(product.plan, &diag));
      product_release(&product);
    }
    assert_true(planned > 40);
  }
}

/* A check that cannot fail proves nothing: a plan damaged in any of these ways must be refused. */
static void a_damaged_plan_is_refused(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct product product = product_of_matrix(random_matrix(64, 64, 300, 1), "");
  struct cb_plan *plan = product.plan;
  struct cb_region *region = &plan->regions[0];
  int64_t *const numbers[] = {&plan->nnz,          &region->bytes,       &region->blocks,
                              &region->value_slots, &region->first_block, &plan->carry_sums,
                              &plan->launches[0].blocks, &region->nonzeros,    &region->first_carry_sum};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    const int64_t kept = *numbers[i];
    *numbers[i] = i == 3 ? 1 : kept + 1;
    assert_int_equal(cb_plan_check(plan, &diag), CB_ERR_INTERNAL);
    *numbers[i] = kept;
    assert_ok(cb_plan_check(plan, &diag));
  }
  plan->launches[0].threads++;
  assert_int_equal(cb_plan_check(plan, &diag), CB_ERR_INTERNAL);
  plan->launches[0].threads--;
  plan->launches[0].dynamic_shared = plan->target.shared_per_block + 1;
  assert_int_equal(cb_plan_check(plan, &diag), CB_ERR_INTERNAL);
  plan->launches[0].dynamic_shared = 0;
  plan->launches_count--;
  assert_int_equal(cb_plan_check(plan, &diag), CB_ERR_INTERNAL);
  plan->launches_count++;
  const enum cb_constant_kind kind = region->constants[0].kind;
  region->constants[0].kind = 0;
  assert_int_equal(cb_plan_check(plan, &diag), CB_ERR_INTERNAL);
  assert_non_null(strstr(diag.message, "neither structure nor size"));
  region->constants[0].kind = kind;
  const char *const name = region->arrays[1].name;
  region->arrays[1].name = region->arrays[0].name;
  assert_int_equal(cb_plan_check(plan, &diag), CB_ERR_INTERNAL);
  region->arrays[1].name = name;
  assert_ok(cb_plan_check(plan, &diag));
  product.assignment->nonzeros++;
  assert_int_equal(cb_assignment_check(plan, product.assignment, &diag), CB_ERR_INTERNAL);
  product.assignment->nonzeros -= 2;
  assert_int_equal(cb_assignment_check(plan, product.assignment, &diag), CB_ERR_INTERNAL);
  product.assignment->nonzeros++;
  product_release(&product);
}

static const struct cb_layout *visits_right;

/* The last nonzero's slot holds the first one in its place. */
static int visit_twice(const void *state, int64_t first, int64_t end, const struct cb_walk *walk) {
  const int64_t count = walk->part->csr->nnz;
  uint32_t *origin = cb_alloc((size_t)count, sizeof *origin);
  struct cb_part part = {.csr = walk->part->csr, .origin = origin};
  struct cb_walk twice = *walk;
  assert_non_null(origin);
  for (int64_t k = 0; k < count; k++) origin[k] = k + 1 < count ? (uint32_t)k : 0;
  twice.part = &part;
  const int good = visits_right->visit(state, first, end, &twice);
  cb_free(origin);
  return good;
}

static void a_nonzero_in_two_slots_is_refused(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct product product = product_of_matrix(random_matrix(64, 64, 300, 1), "");
  visits_right = product.assignment->layouts[0];
  struct cb_layout twice = *visits_right;
  twice.visit = visit_twice;
  product.assignment->layouts[0] = &twice;
  assert_int_equal(cb_assignment_check(product.plan, product.assignment, &diag), CB_ERR_INTERNAL);
  assert_non_null(strstr(diag.message, "which is in another slot already"));
  product.assignment->layouts[0] = visits_right;
  assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
  product_release(&product);
}

static void data_belongs_to_one_plan_and_pattern(void **state) {
  (void)state;
  struct product product = product_of_matrix(random_matrix(64, 64, 300, 1), "");
  const struct cb_hash pattern = cb_csr_pattern_hash(product.csr), id = cb_blob_id(product.plan, pattern);
  struct cb_hash other = pattern;
  other.low++;
  assert_true(cb_blob_id(product.plan, other).low != id.low);
  product.plan->hash.high++;
  assert_true(cb_blob_id(product.plan, pattern).low != id.low);
  product_release(&product);
}

static void threads_change_nothing(void **state) {
  (void)state;
  static const char matrix[] = "random,rows=700,cols=600,density=0.06,seed=7";
  char settings[SETTINGS];
  for (int number = 0; next_settings(settings, number, 1); number++) {
    struct cb_diag diag;
    if (plan_status_of(matrix, settings, &diag) != CB_ERR_UNSUPPORTED) check_threads(matrix, settings);
  }
}

static void new_values_equal_a_fresh_pack(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct product product;
  for (int number = 0; next_product(&product, &number, 90, 100, 200);) {
    struct cb_blob fresh = {0};
    for (int64_t k = 0; k < product.csr->nnz; k++) product.csr->values[k] = (double)(3 * k) - 7;
    assert_ok(cb_pack_values(&product.blob, product.plan, product.assignment, product.csr->values, &diag));
    assert_ok(cb_pack(&fresh, product.plan, product.assignment, product.csr, cb_csr_pattern_hash(product.csr),
                      &diag));
    assert_int_equal(fresh.length, product.blob.length);
    assert_memory_equal(fresh.bytes, product.blob.bytes, (size_t)fresh.length);
    cb_blob_release(&fresh);
    product_release(&product);
  }
}

static void shapes_without_nonzeros(void **state) {
  (void)state;
  static const int64_t shapes[][2] = {{0, 0}, {0, 7}, {7, 0}, {1, 1}, {16, 16}, {33, 5}, {128, 3}};
  struct product product;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int number = 0; next_product(&product, &number, shapes[i][0], shapes[i][1], 0);) {
      assert_int_equal(product.plan->launches_count, shapes[i][0] > 0);
      assert_int_equal(product.plan->nnz, 0);
      product_release(&product);
    }
}

/* A text without its lines "because", which tell what a search found. */
static char *without_reason(const struct product *product) {
  char *text = replaced(product->source.text, "//   because ", "//   because ", 1);
  assert_non_null(text);
  char *reason = strstr(text, "//   because "), *end = strstr(reason, "//   target ");
  assert_non_null(end);
  memmove(reason, end, strlen(end) + 1);
  return text;
}

static void check_same_text(const struct product *one, const struct product *other) {
  char *text = without_reason(one), *same = without_reason(other);
  assert_string_equal(text, same);
  free(text);
  free(same);
}

/* The search keeps the cheapest, says what it saw, and skips what refuses. */
static void auto_keeps_the_cheapest(void **state) {
  (void)state;
  static const char *const matrices[] = {"stencil7,n=12", "dense,rows=300,cols=300", "rmat,scale=10", "one_row,cols=900"};
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) {
    struct product product = product_of(matrices[m], "recipe=auto");
    const struct cb_plan *plan = product.plan;
    int64_t least = INT64_MAX;
    assert_true(plan->candidates_count >= 2);
    for (int i = 0; i < plan->candidates_count; i++) {
      const struct cb_candidate *candidate = &plan->candidates[i];
      char settings[64];
      if (*candidate->refusal) continue;
      snprintf(settings, sizeof settings, "recipe=%s", candidate->recipe);
      struct product alone = product_of(matrices[m], settings);
      assert_int_equal(alone.plan->cost.ns, candidate->cost.ns);
      assert_int_equal(cb_plan_bytes(alone.plan), candidate->bytes);
      if (candidate->cost.ns < least) least = candidate->cost.ns;
      if (!strcmp(candidate->recipe, plan->recipe)) check_same_text(&alone, &product);
      product_release(&alone);
    }
    assert_int_equal(plan->cost.ns, least);
    product_release(&product);
  }
}

/* Leaving out what cannot win does not change who wins. */
static void a_hopeful_search_finds_the_same(void **state) {
  (void)state;
  static const char *const shapes[] = {
      "fe3,n=7", "stencil7,n=70", "stencil27,n=9", "rmat,scale=11,edge_factor=16", "road,n=50", "uniform,n=1500,per_row=9",
      "block,blocks_r=60,r=4,c=4,per_row=6", "dense,rows=130,cols=150", "powerlaw,rows=2500,max=900", "tridiagonal,n=4000",
      "random_exact,blocks_r=12,blocks_c=12,block_nnz=256", "hypersparse,rows=4000", "long_row,rows=3000,long_length=2500",
  };
  int left_out = 0;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    struct cb_csr csr = {0};
    struct cb_target target;
    struct cb_diag diag = {0};
    struct cb_plan *plans[2];
    assert_ok(cb_matrix_generate(&csr, shapes[i], &diag));
    assert_ok(cb_target_find(&target, "sm_90", &diag));
    for (int all = 0; all < 2; all++) {
      struct cb_options options;
      struct cb_assignment *assignment = NULL;
      set_options(&options, all ? "recipe=auto search=all" : "recipe=auto search=hopeful");
      assert_ok(cb_plan_build(&plans[all], &assignment, &csr, &target, &options, &diag));
      cb_assignment_free(assignment);
    }
    assert_string_equal(plans[0]->line, plans[1]->line);
    for (int c = 0; c < plans[0]->candidates_count; c++) {
      assert_null(strstr(plans[1]->candidates[c].refusal, "not tried"));
      const char *refusal = plans[0]->candidates[c].refusal;
      left_out += strstr(refusal, "not tried") != NULL;
      if (strstr(refusal, "not tried")) assert_non_null(strstr(refusal, "and only what may take less than"));
    }
    for (int all = 0; all < 2; all++) cb_plan_free(plans[all]);
    cb_csr_release(&csr);
  }
  assert_true(left_out > 0);
}

static void too_many_rows_are_refused(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_target target;
  struct cb_options options;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  /* Only the shape is looked at before the refusal. */
  const struct cb_csr csr = {.rows = INT32_MAX, .cols = 1};
  cb_options_default(&options);
  options.recipe = "cb";
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  assert_int_equal(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag), CB_ERR_LIMIT);
  assert_null(plan);
  assert_null(assignment);
  assert_non_null(strstr(diag.message, "2147483647 rows exceed"));
  options.recipe = "none-such";
  assert_int_equal(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag), CB_ERR_ARGUMENT);
  assert_non_null(strstr(diag.message, "'cb'"));
}

/* Every allocation from analysis to text fails once: a clean status each time, and nothing leaks (ASan). */
static void every_allocation_may_fail(void **state) {
  (void)state;
  char settings[SETTINGS];
  const struct cb_recipe *recipe;
  for (int number = 0; (recipe = cb_recipe_at(number)); number++) {
    struct cb_diag diag;
    struct cb_csr csr = random_matrix(60, 60, 250, 9);
    cross_settings(settings, recipe, 0);
    if (plan_status(&csr, settings, "sm_90", &diag) == CB_ERR_UNSUPPORTED) cb_csr_release(&csr);
    else assert_true(check_allocations(csr, settings) > 30);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(examples_suit_their_recipes),
      cmocka_unit_test(every_nonzero_has_one_slot),
      cmocka_unit_test(a_damaged_plan_is_refused),
      cmocka_unit_test(a_nonzero_in_two_slots_is_refused),
      cmocka_unit_test(data_belongs_to_one_plan_and_pattern),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(new_values_equal_a_fresh_pack),
      cmocka_unit_test(shapes_without_nonzeros),
      cmocka_unit_test(auto_keeps_the_cheapest),
      cmocka_unit_test(a_hopeful_search_finds_the_same),
      cmocka_unit_test(too_many_rows_are_refused),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
