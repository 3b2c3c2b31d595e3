// SPDX-License-Identifier: Apache-2.0
/* What the environment asks of compilations, through the public interface on the fake GPU: kernels written to a folder
 * and taken from one, the log without a function, options over the application's; and wrong values of each. */
#include "tests/api_scratch.h"

#include "tests/fake_driver.h"

#include <sys/stat.h>
#include <unistd.h>

static const char matrix[] = "stencil7,n=5";

/* Nothing of one test is left to the next. */
static int clear(void **state) {
  static const char *const names[] = {"CBGEN_DUMP", "CBGEN_OVERRIDE", "CBGEN_LOG", "CBGEN_OPTIONS"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
  (void)state;
  *log_text = 0;
  return empty_scratch("inspect", "kernels");
}

static cbgen_operator *compile(cbgen_context *context, const struct sample *sample) {
  cbgen_operator *op = NULL;
  must(context, cbgen_compile(context, &sample->view, NULL, &op));
  return op;
}

/* A product that must be right, or twice what is right. */
static void multiply(cbgen_operator *op, const struct sample *sample, double times) {
  struct vectors vectors = vectors_for(op, 0);
  const cbgen_product product = product_with(&vectors, 1.25, 0, NULL);
  must_operator(op, cbgen_multiply(op, &product));
  check_result(op, &sample->csr, &vectors, times * 1.25, 0);
  vectors_release(&vectors);
}

static void assert_says(const char *words) {
  if (!strstr(log_text, words)) fail_msg("the log does not say '%s':\n%s", words, log_text);
}

static void assert_silent_about(const char *words) {
  if (strstr(log_text, words)) fail_msg("the log says '%s':\n%s", words, log_text);
}

static char *read_text(const char *path) {
  FILE *file = fopen(path, "r");
  if (!file) fail_msg("there is no '%s'", path);
  char *text = calloc(1 << 20, 1);
  assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
  assert_int_equal(fclose(file), 0);
  return text;
}

static void write_text(const char *path, const char *text, size_t length) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, length, file), length);
  assert_int_equal(fclose(file), 0);
}

static const char *file_of(const cbgen_operator *op) {
  static char path[700];
  snprintf(path, sizeof path, "%s/%s.cu", place("kernels"), cbgen_operator_key(op));
  return path;
}

/* ---- CBGEN_DUMP */

static void dumped_text_is_what_was_compiled(void **state) {
  (void)state;
  struct sample sample = sample_of(matrix, (struct form){0});
  cbgen_context *context = logged_context("");
  setenv("CBGEN_DUMP", place("kernels"), 1);
  const int before = fake->line_infos;
  cbgen_operator *op = compile(context, &sample);
  char *text = read_text(file_of(op));
  assert_string_equal(text, cbgen_operator_source(op, NULL));
  assert_int_equal(fake->line_infos, before + 1);
  assert_says(file_of(op));
  multiply(op, &sample, 1);
  assert_int_equal(entries(), 0);
  free(text);
  cbgen_operator_free(op);
  unsetenv("CBGEN_DUMP");
  op = compile(context, &sample);
  assert_int_equal(fake->line_infos, before + 1);
  assert_true(entries() > 0);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void folder_that_takes_no_file_costs_a_message(void **state) {
  (void)state;
  static const char *const folders[] = {"nowhere", "file"};
  struct sample sample = sample_of(matrix, (struct form){0});
  write_text(place("file"), "x", 1);
  for (int i = 0; i < 2; i++) {
    cbgen_context *context = logged_context("");
    setenv("CBGEN_DUMP", place(folders[i]), 1);
    cbgen_operator *op = compile(context, &sample);
    assert_says("CBGEN_DUMP: ");
    assert_says(place(folders[i]));
    multiply(op, &sample, 1);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
  }
  sample_release(&sample);
}

/* ---- CBGEN_OVERRIDE */

/* Writes down the kernel, and replaces the first `from` in its file. */
static void edit(const struct sample *sample, const char *from, const char *to) {
  cbgen_context *context = logged_context("");
  setenv("CBGEN_DUMP", place("kernels"), 1);
  cbgen_operator *op = compile(context, sample);
  unsetenv("CBGEN_DUMP");
  char *text = read_text(file_of(op)), *edited = calloc(1, (1 << 20) + 1000), *at = strstr(text, from);
  if (!at) fail_msg("the kernel has no '%s'", from);
  const int length = sprintf(edited, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  write_text(file_of(op), edited, (size_t)length);
  free(edited);
  free(text);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  setenv("CBGEN_OVERRIDE", place("kernels"), 1);
}

static void edited_kernel_runs_and_is_not_kept(void **state) {
  (void)state;
  struct sample sample = sample_of(matrix, (struct form){0});
  edit(&sample, "product(vectors.alpha, sum)", "product(vectors.alpha, sum + sum)");
  cbgen_context *context = logged_context("");
  cbgen_operator *op = compile(context, &sample);
  assert_says("CBGEN_OVERRIDE: kernel ");
  assert_says(file_of(op));
  multiply(op, &sample, 2);
  assert_non_null(strstr(cbgen_operator_source(op, NULL), "sum + sum"));
  assert_int_equal(entries(), 0);
  cbgen_operator_free(op);
  assert_int_equal(mkdir(place("elsewhere"), 0700), 0);
  setenv("CBGEN_DUMP", place("elsewhere"), 1); /* for texts that cbgen wrote alone */
  op = compile(context, &sample);
  multiply(op, &sample, 2);
  assert_int_equal(rmdir(place("elsewhere")), 0);
  cbgen_operator_free(op);
  unsetenv("CBGEN_DUMP");
  unsetenv("CBGEN_OVERRIDE");
  *log_text = 0;
  op = compile(context, &sample);
  assert_silent_about("CBGEN_OVERRIDE");
  multiply(op, &sample, 1);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void refused(const struct sample *sample, cbgen_status status, const char *words) {
  cbgen_context *context = logged_context("");
  cbgen_operator *op = NULL;
  assert_int_equal(cbgen_compile(context, &sample->view, NULL, &op), status);
  assert_null(op);
  if (!strstr(cbgen_message(context), words)) fail_msg("'%s' instead of '%s'", cbgen_message(context), words);
  assert_int_equal(entries(), 0);
  cbgen_context_destroy(context);
}

static void edited_kernel_that_is_wrong_is_refused(void **state) {
  (void)state;
  struct sample sample = sample_of(matrix, (struct form){0});
  edit(&sample, "product(vectors.alpha, sum)", FAKE_COMPILE_ERROR);
  refused(&sample, CBGEN_ERROR_COMPILE, place("kernels"));
  clear(state);
  edit(&sample, "//", "//");
  cbgen_context *context = logged_context("");
  unsetenv("CBGEN_OVERRIDE");
  cbgen_operator *op = compile(context, &sample);
  setenv("CBGEN_OVERRIDE", place("kernels"), 1);
  char command[900];
  snprintf(command, sizeof command, "rm -rf '%s'", place("cache"));
  write_text(file_of(op), "int x;\n", 7);
  assert_int_equal(system(command), 0);
  refused(&sample, CBGEN_ERROR_FORMAT, "does not define kernel");
  write_text(file_of(op), "int\0x;\n", 7);
  refused(&sample, CBGEN_ERROR_FORMAT, "it holds a NUL");
  assert_int_equal(unlink(file_of(op)), 0);
  assert_int_equal(mkdir(file_of(op), 0700), 0);
  refused(&sample, CBGEN_ERROR_IO, "CBGEN_OVERRIDE: ");
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void folder_without_the_kernel_changes_nothing(void **state) {
  (void)state;
  static const char *const folders[] = {"nowhere", "kernels"}, *const words[] = {"is of no use", "there is no"};
  struct sample sample = sample_of(matrix, (struct form){0});
  for (int i = 0; i < 2; i++) {
    cbgen_context *context = logged_context("");
    setenv("CBGEN_OVERRIDE", place(folders[i]), 1);
    cbgen_operator *op = compile(context, &sample);
    assert_says(words[i]);
    multiply(op, &sample, 1);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
  }
  sample_release(&sample);
}

/* ---- CBGEN_LOG */

/* What stands on standard error of a context without a function (with one: `has_function`) that compiles. */
static char *said(const char *level, int has_function) {
  struct sample sample = sample_of(matrix, (struct form){0});
  cbgen_context *context;
  const int kept = dup(2);
  FILE *file = fopen(place("said"), "w+");
  assert_non_null(file);
  if (level)
    setenv("CBGEN_LOG", level, 1);
  else
    unsetenv("CBGEN_LOG");
  fflush(stderr);
  dup2(fileno(file), 2);
  const cbgen_status created = cbgen_context_create(&context);
  if (has_function) cbgen_set_log(context, keep_line, NULL);
  cbgen_operator *op = NULL;
  const cbgen_status compiled = created ? created : cbgen_compile(context, &sample.view, NULL, &op);
  fflush(stderr);
  dup2(kept, 2);
  close(kept);
  assert_int_equal(compiled, CBGEN_OK);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
  char *text = calloc(1 << 16, 1);
  rewind(file);
  assert_true(fread(text, 1, (1 << 16) - 1, file) < (1 << 16) - 1);
  fclose(file);
  return text;
}

static void log_goes_to_standard_error_when_asked(void **state) {
  (void)state;
  static const struct {
    const char *level;
    int has_function;
    const char *shows, *hides; /* NULL: nothing at all is shown; hides NULL: nothing in particular */
  } rows[] = {
      {NULL, 0, NULL, NULL},
      {"", 0, NULL, NULL},
      {"off", 0, NULL, NULL},
      {"warn", 0, "cbgen: CBGEN_DUMP: nothing is written to ", "cbgen: plan: "},
      {"info", 0, "cbgen: plan: (spmv ", "CBGEN_LOG"},
      {"loud\n", 0, "cbgen: CBGEN_LOG does not take 'loud\\x0a'; it takes off, warn or info\n", NULL},
      {"info", 1, NULL, NULL},
  };
  setenv("CBGEN_DUMP", place("nowhere"), 1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char *text = said(rows[i].level, rows[i].has_function);
    if (!rows[i].shows && *text) fail_msg("row %zu says '%s'", i, text);
    if (rows[i].shows && !strstr(text, rows[i].shows)) fail_msg("row %zu says '%s'", i, text);
    if (rows[i].hides && strstr(text, rows[i].hides)) fail_msg("row %zu says '%s'", i, text);
    free(text);
  }
}

/* ---- CBGEN_OPTIONS */

static void options_go_over_the_applications(void **state) {
  (void)state;
  struct sample sample = sample_of(matrix, (struct form){0});
  cbgen_context *context = logged_context("");
  cbgen_kernel *kernel;
  must(context, cbgen_set(context, "recipe", "sell"));
  setenv("CBGEN_OPTIONS", "fill-shapes=diag,col,recipe=merge", 1);
  cbgen_operator *op = compile(context, &sample);
  assert_non_null(strstr(cbgen_operator_plan(op), "(merge "));
  assert_says("CBGEN_OPTIONS: fill-shapes=diag,col,recipe=merge");
  multiply(op, &sample, 1);
  cbgen_operator_free(op);
  must(context, cbgen_generate(context, &sample.view, &kernel));
  assert_non_null(strstr(cbgen_kernel_plan(kernel), "(merge "));
  cbgen_kernel_free(kernel);
  setenv("CBGEN_OPTIONS", "", 1);
  op = compile(context, &sample);
  assert_non_null(strstr(cbgen_operator_plan(op), "(sell "));
  assert_says("cache: the nearest entry of this pattern is ");
  assert_says("option recipe: sell here, merge there");
  assert_says("option fill-shapes: ");
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void options_that_make_no_sense_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *options, *words;
  } rows[] = {
      {"recipe", "CBGEN_OPTIONS: 'recipe' is not NAME=VALUE"},
      {",", "CBGEN_OPTIONS: ',' is not NAME=VALUE"},
      {"recipe=none", "CBGEN_OPTIONS: "},
      {"sell-lanes=3", "CBGEN_OPTIONS: "},
      {"sell-lane=8", "CBGEN_OPTIONS: "},
      {"cache=/tmp", "CBGEN_OPTIONS: "},
      {"recipe=sell,type=f32", "CBGEN_OPTIONS: 'type' is the application's to say"},
      {"values=fixed", "CBGEN_OPTIONS: 'values' is the application's to say"},
  };
  struct sample sample = sample_of(matrix, (struct form){0});
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    setenv("CBGEN_OPTIONS", rows[i].options, 1);
    refused(&sample, CBGEN_ERROR_ARGUMENT, rows[i].words);
  }
  sample_release(&sample);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(dumped_text_is_what_was_compiled, clear),
      cmocka_unit_test_setup(folder_that_takes_no_file_costs_a_message, clear),
      cmocka_unit_test_setup(edited_kernel_runs_and_is_not_kept, clear),
      cmocka_unit_test_setup(edited_kernel_that_is_wrong_is_refused, clear),
      cmocka_unit_test_setup(folder_without_the_kernel_changes_nothing, clear),
      cmocka_unit_test_setup(log_goes_to_standard_error_when_asked, clear),
      cmocka_unit_test_setup(options_go_over_the_applications, clear),
      cmocka_unit_test_setup(options_that_make_no_sense_are_refused, clear),
  };
  return cmocka_run_group_tests_name("inspecting by environment", tests, open_without_calibration, check_fake);
}
