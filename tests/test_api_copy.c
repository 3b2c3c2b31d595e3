// SPDX-License-Identifier: Apache-2.0
/* Copies of operators (cbgen_operator_copy): a matrix of the same pattern, which shares kernel and indices and has
 * values of its own, whatever the layout, wherever it was packed, and in whatever order the two are specialised,
 * renewed and freed. */
#include "tests/api_support.h"
#include "tests/recipes.h"

/* Two matrices of one pattern. */
struct pair {
  cbgen_context *context;
  struct sample samples[2];
};

static struct pair pair_of(const char *matrix, const char *options, struct form form) {
  struct pair pair = {.samples = {sample_of(matrix, form), sample_of(matrix, form)}};
  assert_int_equal(cbgen_context_create(&pair.context), CBGEN_OK);
  set_all(pair.context, options);
  set_values(&pair.samples[1], 77);
  sum_up(&pair.samples[1]);
  return pair;
}

static void pair_release(struct pair *pair) {
  cbgen_context_destroy(pair->context);
  sample_release(&pair->samples[0]);
  sample_release(&pair->samples[1]);
}

static cbgen_operator *compiled(const struct pair *pair, cbgen_specialise specialise) {
  const cbgen_request request = {
      .struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE, .specialise = specialise};
  cbgen_operator *op = NULL;
  must(pair->context, cbgen_compile(pair->context, &pair->samples[0].view, &request, &op));
  return op;
}

static cbgen_update values_of(const struct sample *sample, cbgen_memory memory) {
  const void *values = memory == CBGEN_DEVICE ? (const void *)(uintptr_t)sample->there[2] : sample->given;
  return (cbgen_update){sizeof(cbgen_update), values, sample->form.value_type, memory, NULL};
}

/* `sample`: whose values it gets; NULL: those of `op`. */
static cbgen_operator *copied(cbgen_operator *op, const struct sample *sample) {
  cbgen_operator *copy = NULL;
  cbgen_update update;
  if (sample) update = values_of(sample, sample->form.on_device ? CBGEN_DEVICE : CBGEN_HOST);
  must_operator(op, cbgen_operator_copy(op, sample ? &update : NULL, &copy));
  assert_non_null(copy);
  return copy;
}

static void renew(cbgen_operator *op, const struct sample *sample) {
  const cbgen_update update = values_of(sample, CBGEN_HOST);
  must_operator(op, cbgen_update_values(op, &update));
}

/* ---- values */

static void copy_and_check(const char *matrix, const char *options, struct form form) {
  struct pair pair = pair_of(matrix, options, form);
  const struct cb_csr *a = &pair.samples[0].csr, *b = &pair.samples[1].csr;
  cbgen_operator *op = compiled(&pair, CBGEN_SPECIALISE_NOW);
  const struct fake_control before = *fake;
  cbgen_operator *copy = copied(op, &pair.samples[1]), *same = copied(copy, NULL);
  assert_int_equal(fake->compilations, before.compilations);
  assert_int_equal(fake->modules, before.modules); /* the kernels are not loaded once more */
  const cbgen_info info = info_of(copy), whole = info_of(op);
  assert_true(info.device_bytes <= whole.device_bytes);
  assert_int_equal(info.cache, CBGEN_CACHE_OFF);
  assert_true(info.compile_seconds == 0 && info.analysis_seconds == 0 && info.total_seconds > 0);
  assert_int_equal(info.entries, whole.entries);
  assert_int_equal(info.registers, whole.registers);
  check_product(op, a);
  check_product(copy, b);
  renew(copy, &pair.samples[0]);
  check_product(copy, a);
  check_product(same, b);
  renew(op, &pair.samples[1]);
  check_product(op, b);
  check_product(copy, a);
  cbgen_operator_free(op); /* what the copies share stays */
  renew(same, &pair.samples[0]);
  check_product(same, a);
  cbgen_operator_free(copy);
  check_product(same, a);
  cbgen_operator_free(same);
  pair_release(&pair);
}

static void copies_of_every_recipe(void **state) {
  (void)state;
  static const struct form forms[] = {
      {0}, {.shuffled = 1, .duplicates = 1, .base = 1}, {.value_type = CBGEN_F32, .on_device = 1}};
  const struct cb_recipe *recipe;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++)
    copy_and_check(example_of(recipe), settings_of_recipe(recipe), forms[i % 3]);
  copy_and_check("empty,rows=9,cols=4", "", forms[0]);
  copy_and_check("empty,rows=0,cols=4", "", forms[0]);
}

static void copies_of_what_was_packed_on_the_device(void **state) {
  (void)state;
  copy_and_check("random,rows=300,cols=200,density=0.05", "recipe=sell pack=device", (struct form){.on_device = 1});
  copy_and_check("stencil5,n=20", "recipe=dia pack=device", (struct form){.on_device = 1, .row_bits = 64});
  copy_and_check("powerlaw,rows=300,cols=300,max=90", "recipe=merge pack=device", (struct form){.on_device = 1});
}

/* Handles of a copy are the copy's. */
static void clones_of_a_copy(void **state) {
  (void)state;
  struct pair pair = pair_of("random,rows=40,cols=5000,density=0.2", "recipe=cb unit-budget=512", (struct form){0});
  cbgen_operator *op = compiled(&pair, CBGEN_SPECIALISE_NOW), *copy = copied(op, &pair.samples[1]), *clone;
  assert_true(info_of(copy).has_scratch);
  must_operator(copy, cbgen_operator_clone(copy, &clone));
  check_product(op, &pair.samples[0].csr);
  cbgen_operator_free(op);
  cbgen_operator_free(copy);
  check_product(clone, &pair.samples[1].csr);
  renew(clone, &pair.samples[0]);
  check_product(clone, &pair.samples[0].csr);
  cbgen_operator_free(clone);
  pair_release(&pair);
}

/* ---- tiers */

static void each_is_specialised_for_itself(void **state) {
  (void)state;
  struct pair pair = pair_of("random,rows=300,cols=200,density=0.05", "recipe=sell", (struct form){0});
  const struct cb_csr *a = &pair.samples[0].csr, *b = &pair.samples[1].csr;
  cbgen_operator *op = compiled(&pair, CBGEN_SPECIALISE_NEVER), *early = copied(op, &pair.samples[1]), *late, *last;
  assert_int_equal(info_of(early).tier, CBGEN_TIER_FAMILY);
  must_operator(op, cbgen_operator_specialise(op));
  assert_int_equal(info_of(op).tier, CBGEN_TIER_SPECIALISED);
  assert_int_equal(info_of(early).tier, CBGEN_TIER_FAMILY);
  check_product(early, b);
  late = copied(op, NULL);
  assert_int_equal(info_of(late).tier, CBGEN_TIER_SPECIALISED);
  check_product(late, a);
  must_operator(early, cbgen_operator_specialise(early));
  last = copied(early, NULL);
  cbgen_operator_free(op);
  cbgen_operator_free(early);
  check_product(late, a);
  check_product(last, b);
  assert_int_equal(info_of(last).tier, CBGEN_TIER_SPECIALISED);
  cbgen_operator_free(last);
  cbgen_operator_free(late);
  pair_release(&pair);
}

/* ---- what else operators do */

static void a_copy_tells_saves_and_solves(void **state) {
  (void)state;
  struct pair pair = pair_of("stencil5,n=8", "recipe=sell", (struct form){0});
  cbgen_operator *op = compiled(&pair, CBGEN_SPECIALISE_AUTO), *copy = copied(op, &pair.samples[1]), *back = NULL;
  assert_string_equal(cbgen_operator_source(copy, NULL), cbgen_operator_source(op, NULL));
  assert_string_equal(cbgen_operator_plan_json(copy), cbgen_operator_plan_json(op));
  assert_string_equal(cbgen_operator_plan(copy), cbgen_operator_plan(op));
  assert_string_equal(cbgen_operator_key(copy), cbgen_operator_key(op));
  assert_true(strlen(cbgen_operator_source(copy, NULL)) > 100);
  cbgen_operator_free(op);
  size_t length = 0;
  must_operator(copy, cbgen_operator_save(copy, NULL, 0, &length));
  void *bytes = malloc(length);
  assert_non_null(bytes);
  must_operator(copy, cbgen_operator_save(copy, bytes, length, &length));
  must(pair.context, cbgen_operator_load(pair.context, bytes, length, &back));
  free(bytes);
  check_product(back, &pair.samples[1].csr);
  cbgen_operator *third = copied(back, &pair.samples[0]);
  check_product(third, &pair.samples[0].csr);
  double seconds = 0;
  must_operator(copy, cbgen_operator_measure(copy, &seconds));
  assert_true(seconds > 0);
  cbgen_solver *solver = NULL;
  must_operator(third, cbgen_solver_create(third, "jacobi", NULL, &solver));
  cbgen_solver_free(solver);
  cbgen_operator_free(third);
  cbgen_operator_free(back);
  cbgen_operator_free(copy);
  pair_release(&pair);
}

/* ---- what is refused */

static void refused(cbgen_operator *op, const cbgen_update *values, cbgen_status status, const char *words) {
  cbgen_operator *copy = op;
  assert_int_equal(cbgen_operator_copy(op, values, &copy), status);
  assert_null(copy);
  if (!strstr(cbgen_operator_message(op), words)) fail_msg("%s", cbgen_operator_message(op));
}

static void what_cannot_be_copied(void **state) {
  (void)state;
  struct pair pair = pair_of("stencil5,n=8", "recipe=sell", (struct form){0});
  cbgen_operator *op = compiled(&pair, CBGEN_SPECIALISE_AUTO), *stored = NULL;
  cbgen_update update = values_of(&pair.samples[1], CBGEN_HOST);
  const size_t before = fake->bytes;
  update.value_type = (cbgen_type)9;
  refused(op, &update, CBGEN_ERROR_ARGUMENT, "'value_type' is 9");
  update = values_of(&pair.samples[1], CBGEN_HOST);
  update.values = NULL;
  refused(op, &update, CBGEN_ERROR_ARGUMENT, "'values' of the update is NULL");
  update.struct_size = 3;
  refused(op, &update, CBGEN_ERROR_ARGUMENT, "cbgen_update");
  assert_int_equal(fake->bytes, before);
  must(pair.context, cbgen_compile(pair.context, &pair.samples[0].view, NULL, &stored));
  refused(stored, NULL, CBGEN_ERROR_ARGUMENT, "compile it with mutable values");
  cbgen_operator_free(stored);
  cbgen_operator_free(op);
  setenv("CBGEN_CHECK", "bounds", 1);
  op = compiled(&pair, CBGEN_SPECIALISE_AUTO);
  refused(op, NULL, CBGEN_ERROR_UNSUPPORTED, "CBGEN_CHECK=bounds");
  cbgen_operator_free(op);
  setenv("CBGEN_CHECK", "1", 1);
  op = compiled(&pair, CBGEN_SPECIALISE_AUTO);
  cbgen_operator *copy = copied(op, &pair.samples[1]); /* whose products are not compared with the first's values */
  unsetenv("CBGEN_CHECK");
  check_product(copy, &pair.samples[1].csr);
  check_product(copy, &pair.samples[1].csr);
  cbgen_operator_free(copy);
  cbgen_operator_free(op);
  pair_release(&pair);
}

/* Every call of the driver in turn, and every allocation. */
static void a_copy_that_fails_leaves_nothing(void **state) {
  (void)state;
  static const char *const options[] = {"recipe=sell pack=host", "recipe=sell pack=device"};
  for (int i = 0; i < 2; i++) {
    struct pair pair = pair_of("random,rows=60,cols=50,density=0.1", options[i], (struct form){.on_device = i == 1});
    cbgen_operator *op = compiled(&pair, CBGEN_SPECIALISE_NOW), *copy = op;
    const cbgen_update update = values_of(&pair.samples[1], CBGEN_HOST);
    cbgen_status s = CBGEN_OK;
    int failed = 0;
    for (long nth = 1;; nth++) {
      const size_t bytes = fake->bytes;
      fake->failed[0] = 0;
      fake->failure = 999;
      fake->fail_at = fake->calls + nth;
      s = cbgen_operator_copy(op, &update, &copy);
      fake->fail_at = 0;
      if (!fake->failed[0]) break;
      failed += s != CBGEN_OK;
      assert_true((s == CBGEN_OK) == (copy != NULL));
      if (s) assert_true(strlen(cbgen_operator_message(op)) > 10);
      cbgen_operator_free(copy);
      assert_int_equal(fake->bytes, bytes);
    }
    must_operator(op, s);
    assert_true(failed > 3);
    check_product(copy, &pair.samples[1].csr);
    cbgen_operator_free(copy);
    s = CBGEN_ERROR_MEMORY;
    for (uint64_t nth = 1; s; nth++) {
      cb_memory_fail_at(nth, 0);
      s = cbgen_operator_copy(op, &update, &copy);
      cb_memory_fail_at(0, 0);
      assert_true(s == CBGEN_OK || s == CBGEN_ERROR_MEMORY);
    }
    cbgen_operator_free(copy);
    check_product(op, &pair.samples[0].csr);
    cbgen_operator_free(op);
    pair_release(&pair);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(copies_of_every_recipe),
      TEST(copies_of_what_was_packed_on_the_device),
      TEST(clones_of_a_copy),
      TEST(each_is_specialised_for_itself),
      TEST(a_copy_tells_saves_and_solves),
      TEST(what_cannot_be_copied),
      TEST(a_copy_that_fails_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
