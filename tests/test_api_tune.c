// SPDX-License-Identifier: Apache-2.0
/* cbgen_compile with tune=measure on the fake GPU: the winner multiplies, is remembered, and is not timed
 * again. */
#include "tests/api_support.h"

#include "base/file.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[400];

/* Launches take 30 ms, so that batches are short, and kernels of one recipe longer. The fake says only names;
 * which kernel is whose stands in the log of the compilation. */
static char slow_kernel[64];
static void slow_down(void *user, const struct fake_launch *launch) {
  (void)user;
  fake->clock_ns += 30000000;
  if (*slow_kernel && strstr(launch->kernel, slow_kernel)) fake->clock_ns += 9000000;
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

static int set_up(void **state) {
  if (open_fake(state)) return -1;
  setenv("CBGEN_CALIBRATION", "", 1);
  snprintf(directory, sizeof directory, "%s/cache", getenv("CBGEN_TEST_TMP"));
  empty_directory();
  *slow_kernel = 0;
  fake->hook = slow_down;
  return 0;
}

/* All lines of the log. */
static char log_text[1 << 16];
static void keep_line(void *user, const char *line) {
  (void)user;
  const size_t length = strlen(log_text);
  snprintf(log_text + length, sizeof log_text - length, "%s\n", line);
}

static cbgen_context *tuning_context(const char *cache) {
  cbgen_context *context;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  must(context, cbgen_set(context, "tune", "measure"));
  must(context, cbgen_set(context, "cache", cache));
  must(context, cbgen_set_log(context, keep_line, NULL));
  *log_text = 0;
  return context;
}

/* Compiles, checks a product and frees. */
static cbgen_info compile(cbgen_context *context, const struct sample *sample, const cbgen_request *request) {
  cbgen_operator *op = NULL;
  const long before = fake->launches;
  must(context, cbgen_compile(context, &sample->view, request, &op));
  cbgen_info info = info_of(op);
  info.launches = (int)(fake->launches - before); /* that compiling made */
  check_product(op, &sample->csr);
  cbgen_operator_free(op);
  return info;
}

static const char matrix[] = "fe3,n=3";
static const cbgen_request stored = {.struct_size = sizeof stored, .specialise = CBGEN_SPECIALISE_NOW};

static void the_winner_is_remembered(void **state) {
  (void)state;
  cbgen_context *context = tuning_context(directory);
  struct sample sample = sample_of(matrix, (struct form){0});
  cbgen_info info = compile(context, &sample, &stored);
  assert_int_equal(info.cache, CBGEN_CACHE_MISS);
  assert_true(info.tune_seconds > 0 && info.launches > 10);
  assert_true(info.measured_seconds > 0.0299 && info.measured_seconds < 0.0301);
  assert_non_null(strstr(log_text, "tuning: fastest: "));
  assert_int_equal(entries_in(directory), 2); /* the operator's and the tuning's */
  const double measured = info.measured_seconds;
  for (int again = 0; again < 2; again++) {
    set_values(&sample, 99); /* other values: the same choice */
    sum_up(&sample);
    *log_text = 0;
    info = compile(context, &sample, &stored);
    assert_int_equal(info.cache, CBGEN_CACHE_HIT);
    assert_int_equal(info.launches, 0);
    assert_true(info.tune_seconds == 0);
    assert_true(info.measured_seconds == measured);
    assert_non_null(strstr(log_text, "tuning: known: "));
    cbgen_context_destroy(context);
    context = tuning_context(directory);
  }
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* The recipe that the model prefers is slow on this GPU. */
static void the_winner_is_the_fastest(void **state) {
  (void)state;
  cbgen_context *context = tuning_context("");
  struct sample sample = sample_of(matrix, (struct form){0});
  cbgen_operator *op;
  must(context, cbgen_set(context, "tune", "model"));
  must(context, cbgen_compile(context, &sample.view, NULL, &op));
  snprintf(slow_kernel, sizeof slow_kernel, "%s", cbgen_operator_key(op));
  char models[400];
  snprintf(models, sizeof models, "%s", cbgen_operator_plan(op));
  cbgen_operator_free(op);
  must(context, cbgen_set(context, "tune", "measure"));
  must(context, cbgen_compile(context, &sample.view, NULL, &op));
  assert_string_not_equal(cbgen_operator_plan(op), models);
  assert_true(info_of(op).measured_seconds < 0.0301);
  check_product(op, &sample.csr);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* An entry of the tuning that is there serves an operator's that is not, and is made anew when it is damaged.
 */
static void entries_may_go(void **state) {
  (void)state;
  cbgen_context *context = tuning_context(directory);
  struct sample sample = sample_of(matrix, (struct form){0});
  compile(context, &sample, &stored);
  DIR *stream = opendir(directory);
  assert_non_null(stream);
  for (const struct dirent *row; (row = readdir(stream));) {
    char path[800];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", directory, row->d_name);
    if (strstr(row->d_name, ".entry") && !stat(path, &info) && info.st_size > 8192)
      remove(path); /* the operator's */
  }
  closedir(stream);
  assert_int_equal(entries_in(directory), 1);
  cbgen_info info = compile(context, &sample, &stored);
  assert_int_equal(info.cache, CBGEN_CACHE_MISS);
  assert_int_equal(info.launches, 0);
  assert_true(info.measured_seconds > 0);
  assert_int_equal(entries_in(directory), 2);
  stream = opendir(directory);
  assert_non_null(stream);
  for (const struct dirent *row; (row = readdir(stream));) {
    char path[800];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", directory, row->d_name);
    if (!strstr(row->d_name, ".entry") || stat(path, &found) || found.st_size > 8192) continue;
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, -1, SEEK_END);
    fputc('#', file);
    fclose(file);
  }
  closedir(stream);
  info = compile(context, &sample, &stored);
  assert_int_equal(info.cache, CBGEN_CACHE_HIT);
  assert_true(info.launches > 10 && info.tune_seconds > 0);
  info = compile(context, &sample, &stored);
  assert_int_equal(info.launches, 0);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void few_products_are_not_tuned_for(void **state) {
  (void)state;
  cbgen_context *context = tuning_context(directory);
  struct sample sample = sample_of(matrix, (struct form){0});
  const cbgen_request few = {.struct_size = sizeof few, .expected_products = 10, .specialise = CBGEN_SPECIALISE_NOW};
  cbgen_info info = compile(context, &sample, &few);
  assert_int_equal(info.launches, 0);
  assert_true(info.measured_seconds == 0);
  assert_int_equal(entries_in(directory), 1);
  info = compile(context, &sample, &stored); /* for many they are, then, and the few have it from there */
  assert_true(info.launches > 10);
  info = compile(context, &sample, &few);
  assert_int_equal(info.launches, 0);
  assert_true(info.measured_seconds > 0);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void every_kind_of_request_is_tuned(void **state) {
  (void)state;
  static const struct form forms[] = {
      {.shuffled = 1, .duplicates = 1}, {.on_device = 1}, {.value_type = CBGEN_F32},
      {.value_type = CBGEN_F16},        {.no_values = 1}, {.base = 1, .row_bits = 64}};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    for (int values = CBGEN_VALUES_STORED; values <= CBGEN_VALUES_FIXED; values++) {
      cbgen_context *context = tuning_context(directory);
      struct sample sample = sample_of("random,rows=40,cols=50,density=0.2", forms[i]);
      const cbgen_request request = {.struct_size = sizeof request, .values = (cbgen_values)values,
                                     .specialise = CBGEN_SPECIALISE_NOW};
      compile(context, &sample, &request);
      const cbgen_info info = compile(context, &sample, &request);
      assert_int_equal(info.cache, CBGEN_CACHE_HIT);
      assert_true(info.measured_seconds > 0 && info.tune_seconds == 0);
      cbgen_context_destroy(context);
      sample_release(&sample);
    }
}

static void off_and_model_do_not_time(void **state) {
  (void)state;
  static const char *const words[] = {"off", "model"};
  for (int i = 0; i < 2; i++) {
    cbgen_context *context = tuning_context("");
    struct sample sample = sample_of(matrix, (struct form){0});
    must(context, cbgen_set(context, "tune", words[i]));
    const cbgen_info info = compile(context, &sample, NULL);
    assert_int_equal(info.launches, 0);
    assert_true(info.tune_seconds == 0 && info.measured_seconds == 0);
    assert_int_equal(cbgen_set(context, "tune", "guess"), CBGEN_ERROR_ARGUMENT);
    assert_non_null(strstr(cbgen_message(context), "'guess'"));
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

/* ---- for solvers */

/* Solutions are timed beside products, each candidate's with its own kernel, and what was found is remembered apart
 * from what is found for products. */
static void solvers_have_a_race_of_their_own(void **state) {
  (void)state;
  const cbgen_request for_cg = {.struct_size = sizeof for_cg, .specialise = CBGEN_SPECIALISE_NOW, .solver = "cg"};
  cbgen_context *context = tuning_context(directory);
  struct sample sample = sample_of("tridiagonal,n=70", (struct form){0});
  cbgen_info info = compile(context, &sample, &for_cg);
  assert_true(info.tune_seconds > 0 && info.measured_seconds > 0);
  int timed = 0;
  for (const char *at = log_text; (at = strstr(at, ", an iteration ")); at++) timed++;
  assert_in_range(timed, 2, 4);
  *log_text = 0;
  info = compile(context, &sample, &for_cg);
  assert_int_equal(info.launches, 0);
  assert_non_null(strstr(log_text, "tuning: known: "));
  *log_text = 0;
  compile(context, &sample, &stored);
  assert_null(strstr(log_text, "tuning: known: "));
  assert_null(strstr(log_text, ", an iteration "));
  cbgen_context_destroy(context);
  sample_release(&sample);
}

/* A matrix that is solved at once is tuned by products. */
static void what_is_solved_at_once_is_tuned_by_products(void **state) {
  (void)state;
  const cbgen_request for_cg = {.struct_size = sizeof for_cg, .specialise = CBGEN_SPECIALISE_NOW, .solver = "cg"};
  cbgen_context *context = tuning_context("");
  struct sample sample = sample_of("diagonal,n=30", (struct form){0});
  const cbgen_info info = compile(context, &sample, &for_cg);
  assert_true(info.measured_seconds > 0);
  assert_null(strstr(log_text, ", an iteration "));
  assert_non_null(strstr(log_text, "iterations are too few"));
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void requests_for_solvers_are_checked(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *method, *words;
  } cases[] = {{matrix, "sor", "'sor'"}, {"random,rows=40,cols=50,density=0.2", "cg", "40 rows and 50 columns"}};
  for (int i = 0; i < 2; i++) {
    const cbgen_request request = {.struct_size = sizeof request, .solver = cases[i].method};
    cbgen_context *context = tuning_context("");
    struct sample sample = sample_of(cases[i].matrix, (struct form){0});
    cbgen_operator *op;
    assert_int_equal(cbgen_compile(context, &sample.view, &request, &op), CBGEN_ERROR_ARGUMENT);
    assert_non_null(strstr(cbgen_message(context), cases[i].words));
    cbgen_context_destroy(context);
    sample_release(&sample);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(solvers_have_a_race_of_their_own, set_up, check_fake),
      cmocka_unit_test_setup_teardown(what_is_solved_at_once_is_tuned_by_products, set_up, check_fake),
      cmocka_unit_test_setup_teardown(requests_for_solvers_are_checked, set_up, check_fake),
      cmocka_unit_test_setup_teardown(the_winner_is_remembered, set_up, check_fake),
      cmocka_unit_test_setup_teardown(the_winner_is_the_fastest, set_up, check_fake),
      cmocka_unit_test_setup_teardown(entries_may_go, set_up, check_fake),
      cmocka_unit_test_setup_teardown(few_products_are_not_tuned_for, set_up, check_fake),
      cmocka_unit_test_setup_teardown(every_kind_of_request_is_tuned, set_up, check_fake),
      cmocka_unit_test_setup_teardown(off_and_model_do_not_time, set_up, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
