// SPDX-License-Identifier: Apache-2.0
/* Kernels that spill, through the public interface on the fake GPU, whose NVRTC says what a test wants it to: they are
 * compiled for fewer thread blocks, and if that does not help give way to the next recipe of the search. */
#include "tests/api_support.h"

#include "analysis/layout.h"

#include <dirent.h>

static char directory[400], log_text[1 << 16];

static void keep_line(void *user, const char *line) {
  (void)user;
  const size_t length = strlen(log_text);
  snprintf(log_text + length, sizeof log_text - length, "%s\n", line);
}

static int set_up(void **state) {
  if (open_fake(state)) return -1;
  setenv("CBGEN_CALIBRATION", "", 1);
  fake->stack_bytes = 8;
  *fake->spilling = 0;
  fake->spare_blocks = 0;
  snprintf(directory, sizeof directory, "%s/cache", getenv("CBGEN_TEST_TMP"));
  return 0;
}

static void empty_directory(void) {
  DIR *stream = opendir(directory);
  for (const struct dirent *row; stream && (row = readdir(stream));) {
    char path[800];
    snprintf(path, sizeof path, "%s/%s", directory, row->d_name);
    if (*row->d_name != '.') remove(path);
  }
  if (stream) closedir(stream);
}

static cbgen_context *context_with_cache(const char *cache) {
  cbgen_context *context;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  must(context, cbgen_set(context, "cache", cache));
  must(context, cbgen_set_log(context, keep_line, NULL));
  *log_text = 0;
  return context;
}

static const char matrix[] = "stencil7,n=9";

/* Compiles, checks a product, and returns what became of it. `plan` (of 240 bytes) may be NULL. */
static cbgen_info compile(cbgen_context *context, char *plan) {
  struct sample sample = sample_of(matrix, (struct form){0});
  cbgen_operator *op = NULL;
  cbgen_info info = {.struct_size = sizeof info};
  const cbgen_request now = {.struct_size = sizeof now, .specialise = CBGEN_SPECIALISE_NOW};
  must(context, cbgen_compile(context, &sample.view, &now, &op));
  must_operator(op, cbgen_operator_info(op, &info));
  if (plan) snprintf(plan, 240, "%s", cbgen_operator_plan(op));
  check_product(op, &sample.csr);
  cbgen_operator_free(op);
  sample_release(&sample);
  return info;
}

static void fewer_blocks_are_asked_for(void **state) {
  (void)state;
  for (int spare = 1; spare <= 7; spare++) {
    cbgen_context *context = context_with_cache("");
    char line[80];
    fake->spare_blocks = spare;
    compile(context, NULL);
    snprintf(line, sizeof line, "compiled for %d thread blocks fewer", spare <= 3 ? spare : 7);
    assert_non_null(strstr(log_text, line));
    assert_null(strstr(log_text, "spills"));
    cbgen_context_destroy(context);
  }
}

/* Texts whose first region has the layout of the plan's first one spill from now on. */
static void let_spill(const char *plan) {
  const char *first = NULL;
  for (int i = 0; cb_layout_table[i]; i++) {
    char node[32];
    snprintf(node, sizeof node, "(%s (", cb_layout_table[i]->name);
    const char *at = strstr(plan, node);
    if (!at || (first && first < at)) continue;
    first = at;
    snprintf(fake->spilling, sizeof fake->spilling, "namespace %s0", cb_layout_table[i]->name);
  }
  assert_non_null(first);
  fake->stack_bytes = 8;
}

/* The choice without spills, then the choice when that spills: the cache keeps it, too. */
static void the_next_recipe_takes_the_place(void **state) {
  (void)state;
  char first[240], second[240], again[240];
  empty_directory();
  fake->stack_bytes = 0;
  cbgen_context *context = context_with_cache("");
  compile(context, first);
  cbgen_context_destroy(context);
  let_spill(first);
  for (int round = 0; round < 2; round++) { /* made, and found; then found without its data */
    context = context_with_cache(directory);
    must(context, cbgen_set(context, "cache-data", round ? "never" : "always"));
    const cbgen_info made = compile(context, second);
    assert_int_equal(made.cache, CBGEN_CACHE_MISS);
    assert_string_not_equal(second, first);
    assert_non_null(strstr(log_text, "spills 8 bytes per thread; the kernel is that of recipe"));
    const cbgen_info found = compile(context, again);
    assert_int_equal(found.cache, CBGEN_CACHE_HIT);
    assert_string_equal(again, second);
    cbgen_context_destroy(context);
    empty_directory();
  }
}

static void where_all_spill_the_first_choice_stays(void **state) {
  (void)state;
  char first[240], plan[240];
  fake->stack_bytes = 0;
  cbgen_context *context = context_with_cache("");
  compile(context, first);
  fake->stack_bytes = 8;
  compile(context, plan);
  assert_string_equal(plan, first);
  assert_non_null(strstr(log_text, "spills 8 bytes per thread; the kernel is that of recipe"));
  assert_null(strstr(log_text, "blocks fewer")); /* they would run at a time, and spill as much */
  cbgen_context_destroy(context);
}

/* A recipe that was asked for stays. */
static void a_named_recipe_stays(void **state) {
  (void)state;
  char plan[240];
  cbgen_context *context = context_with_cache("");
  must(context, cbgen_set(context, "recipe", "sell"));
  snprintf(fake->spilling, sizeof fake->spilling, "namespace sell0");
  compile(context, plan);
  assert_non_null(strstr(plan, "(spmv (sell "));
  assert_non_null(strstr(log_text, "recipe 'sell' spills 8 bytes per thread"));
  cbgen_context_destroy(context);
}

static void tuning_leaves_spilling_kernels_out(void **state) {
  (void)state;
  char first[240], plan[240];
  fake->stack_bytes = 0;
  cbgen_context *context = context_with_cache("");
  must(context, cbgen_set(context, "tune", "measure"));
  compile(context, first);
  let_spill(first);
  compile(context, plan);
  assert_string_not_equal(plan, first);
  assert_non_null(strstr(log_text, "it spills 8 bytes per thread"));
  cbgen_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(fewer_blocks_are_asked_for, set_up, check_fake),
      cmocka_unit_test_setup_teardown(the_next_recipe_takes_the_place, set_up, check_fake),
      cmocka_unit_test_setup_teardown(where_all_spill_the_first_choice_stays, set_up, check_fake),
      cmocka_unit_test_setup_teardown(a_named_recipe_stays, set_up, check_fake),
      cmocka_unit_test_setup_teardown(tuning_leaves_spilling_kernels_out, set_up, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
