// SPDX-License-Identifier: Apache-2.0
/* Texts with checks: right kernels of every recipe pass them with the same results; they are the plain text line for
 * line; each kind of check finds a planted fault and tells place and line; compilers for GPUs take all of it.
 * CBGEN_TEST_ALL=1: all types and semirings. */
#include "kernels.h"
#include "nvrtc_support.h"
#include "recipes.h"

#include "codegen/checked.h"
#include "runtime/cuda/spills.h"
#include "runtime/operator/comparer.h"
#include "tests/combinations.h"

static struct kernel_batch batch;

static int open_hosts(void **state) {
  struct cb_verify_options options;
  (void)state;
  cb_verify_options_default(&options);
  options.host.compiler = fast_compiler();
  options.host.sanitize = options.host.debug = options.host.optimize = 0;
  options.checks = options.orders = 1;
  open_batch(&batch, &options);
  return 0;
}

static int close_hosts(void **state) {
  (void)state;
  close_batch(&batch);
  return 0;
}

/* ---- right kernels */

static void add_right(const struct cb_recipe *recipe, const char *type, const char *semiring, const char *form) {
  char settings[SETTINGS + 64];
  struct cb_options options;
  struct kernel *kernel = next_kernel(&batch);
  snprintf(settings, sizeof settings, "%s type=%s form=%s semiring=%s", settings_of_recipe(recipe), type, form,
           semiring);
  snprintf(kernel->name, sizeof kernel->name, "%s %.180s", example_of(recipe), settings);
  set_options(&options, settings);
  kernel->csr = matrix_of(example_of(recipe));
  add_kernel(&batch, &options);
}

static void right_kernels_pass(void **state) {
  static const char *const types[] = {"f64", "f32", "f16", "f16-f32", "bf16"};
  static const char *const semirings[] = {"plus-times", "plus-times", "min-plus", "plus-times", "or-and", "max-times"};
  static const char *const forms[] = {"ax", "axpby", "add"};
  const struct cb_recipe *recipe;
  (void)state;
  for (int r = 0; (recipe = cb_recipe_at(r)); r++)
    for (int i = 0; i < (tests_all_combinations() ? 30 : 1); i++)
      add_right(recipe, types[(r + i) % 5], semirings[(r + i) % 6], forms[(r + i / 2) % 3]);
  const int before = batch.failures;
  run_batch(&batch);
  assert_int_equal(batch.failures, before);
  assert_true(batch.done > 15);
}

/* ---- faults */

static struct cb_verify_report verify(struct product *product, int checks) {
  const struct cb_verify_case one = {product->csr,     product->plan,  product->assignment,
                                     &product->source, &product->blob, "test"};
  struct cb_verify_options options = batch.options;
  struct cb_verify_report report;
  struct cb_diag diag = {0};
  options.checks = checks;
  assert_ok(cb_verify_batch(batch.host, &one, 1, &options, &report, &diag));
  return report;
}

/* In which line of the text `words` stand. */
static int line_of(const char *text, const char *words) {
  int line = 1;
  for (const char *end = strstr(text, words); text < end; text++) line += *text == '\n';
  return line;
}

struct fault {
  const char *matrix, *settings, *words, *instead;
  const char *found; /* "index I of 'WHAT', which has N": without the count, which is the plan's */
};

static const char sell[] = "recipe=sell sell-lanes=1 sell-vector=1 sell-sort=off sell-vary=off form=ax";
static const char band[] = "band,n=64,half=20,per_row=8";
static const char merge[] = "recipe=merge form=ax merge-piece=512";
static const char long_rows[] = "long_row,rows=300,cols=9000,per_row=3,long_rows=2,long_length=3000";

static const struct fault faults[] = {
    {band, sell, "base + column_offset(arrays, slot)", "base + column_offset(arrays, slot + 4096)",
     "of 'sell0: column_offset', which has "},
    {band, sell, "base + column_offset(arrays, slot)", "base + column_offset(arrays, slot - slot - 1)",
     "index -1 of 'sell0: column_offset', which has "},
    {band, sell, "value(arrays, slot) : sum_t(0)", "value(arrays, slot + (1 << 20)) : sum_t(0)",
     "of 'sell0: values', which has "},
    {band, sell, "load_x(vectors, columns[i])", "load_x(vectors, 64 + columns[i])", "of 'x', which has 64"},
    {band, sell, "commit(vectors, row, sum)", "commit(vectors, row - 1, sum)", "index -1 of 'y', which has 64"},
    {band, "recipe=sell sell-lanes=1 sell-vector=2 form=ax", "offsets = column_offset_vector<kVector>(arrays, slot)",
     "offsets = column_offset_vector<kVector>(arrays, slot + 4096)", "of 'sell0: column_offset', which has "},
    {long_rows, merge, "store_l2(sums + ", "store_l2(sums + 900 + ", "of 'carry_sums', which has "},
    {long_rows, merge, "last_to_arrive(vectors.carry_counters + ", "last_to_arrive(vectors.carry_counters + 77 + ",
     "of 'carry_counters', which has "},
    {"stencil7,n=8", "recipe=dia form=ax", "arrays.presence + slot / 8", "arrays.presence + (1 << 20) + slot / 8",
     "of 'dia0: presence', which has "},
    {"stencil7,n=8", "recipe=blocks block-fill=20 form=ax", "arrays.present + 32", "arrays.present + (1 << 20) + 32",
     "of 'blocks0: present', which has "},
};

/* The fault is planted on one line of the text, which the message names; without checks it is something else. */
static void planted_faults_are_found(void **state) {
  (void)state;
  for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
    const struct fault *fault = &faults[f];
    struct product product = product_of(fault->matrix, fault->settings);
    char *text = replaced(product.source.text, fault->words, fault->instead, 1), line[40];
    if (!text) fail_msg("%s: no '%s' in the text", fault->settings, fault->words);
    snprintf(line, sizeof line, "line %d: index ", line_of(product.source.text, fault->words));
    cb_free(product.source.text);
    product.source.text = text;
    product.source.length = (int64_t)strlen(text);
    const struct cb_verify_report report = verify(&product, 1);
    assert_int_equal(report.status, CB_ERR_WRONG);
    if (!strstr(report.message, line) || !strstr(report.message, fault->found))
      fail_msg("'%s' instead of '%s' and '%s'", report.message, line, fault->found);
    product_release(&product);
  }
}

/* ---- the text */

/* The next line behind the device prelude. */
static const char *take_line(const char **at, size_t *length) {
  const char *const line = *at;
  *length = strcspn(line, "\n");
  *at = line + *length + (line[*length] == '\n');
  return line;
}

/* Each line of the plain text is that line of the checked one: with checks, or as it is. */
static void the_lines_are_those_of_the_plain_text(void **state) {
  (void)state;
  struct product product = product_of(band, sell);
  struct cb_source checked;
  struct cb_diag diag = {0};
  char wanted[40];
  size_t plain_length, length;
  int different = 0, line = line_of(product.source.text, "// ---- end of the device prelude") + 1;
  assert_ok(cb_checked_text(&checked, &product.source, product.plan, 0x7f00, &diag));
  const char *plain = product.source.text + product.source.body, *at = checked.text + checked.body;
  assert_true(!strncmp(at, "constexpr unsigned long long kCheckRecord = 0x7f00u;\n", 52));
  take_line(&at, &length);
  snprintf(wanted, sizeof wanted, "#line %d\n", line);
  assert_true(!strncmp(take_line(&at, &length), wanted, strlen(wanted)));
  while (*plain) {
    const char *const of_plain = take_line(&plain, &plain_length), *const of_checked = take_line(&at, &length);
    if (length == plain_length && !memcmp(of_plain, of_checked, length)) continue;
    different++;
    if (!memmem(of_checked, length, "check_index(kCheckRecord, ", 26)) fail_msg("'%.*s'", (int)length, of_checked);
  }
  assert_int_equal(*at, 0);
  assert_true(different >= 5); /* first_step, first_column, column_offset, value, load_x, commit, … */
  cb_source_release(&checked);
  product_release(&product);
}

/* An accessor or function of the tables without a check is a rule that no longer fits the templates. */
static void every_accessor_is_checked(void **state) {
  const struct cb_recipe *recipe;
  (void)state;
  for (int r = 0; (recipe = cb_recipe_at(r)); r++) {
    struct product product = product_of(example_of(recipe), settings_of_recipe(recipe));
    struct cb_source checked;
    struct cb_diag diag = {0};
    assert_ok(cb_checked_text(&checked, &product.source, product.plan, 0, &diag));
    for (int i = 0; i < product.plan->regions_count; i++)
      for (int a = 0; a < product.plan->regions[i].arrays_count; a++) {
        const struct cb_region *region = &product.plan->regions[i];
        const struct cb_array *array = &region->arrays[a];
        char words[100];
        if (array->storage != CB_STORED) continue;
        snprintf(words, sizeof words, "\"%s: %s\", ", region->name, array->name);
        if (!strstr(checked.text, words)) fail_msg("%s: nothing checks %s", recipe->name, words);
      }
    if (!strstr(checked.text, "\"x\", line)") || !strstr(checked.text, ", line)"))
      fail_msg("%s: x or y is not checked", recipe->name);
    cb_source_release(&checked);
    product_release(&product);
  }
}

/* x has as many elements as there are columns, y as there are rows; of a vector all elements are looked at. */
static void counts_are_those_of_the_plan(void **state) {
  static const char *const matrices[] = {"random,rows=40,cols=90,per_row=8", "random,rows=90,cols=40,per_row=8"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    struct product product = product_of(matrices[i], "recipe=sell sell-vector=2 sell-lanes=1 form=ax");
    struct cb_source checked;
    struct cb_diag diag = {0};
    const struct cb_verify_report report = verify(&product, 1);
    if (report.status) fail_msg("%s", report.message);
    assert_ok(cb_checked_text(&checked, &product.source, product.plan, 0, &diag));
    assert_non_null(strstr(checked.text, i ? "column, 1, 40, \"x\", line)" : "column, 1, 90, \"x\", line)"));
    assert_non_null(strstr(checked.text, i ? "row, 1, 90, \"y\", line)" : "row, 1, 40, \"y\", line)"));
    assert_non_null(strstr(checked.text, "check_index(kCheckRecord, slot, n, "));
    cb_source_release(&checked);
    product_release(&product);
  }
}

/* What is loaded at once must be within the array; a pointer into it may point behind it. */
static void places_are_looked_at_as_they_are_used(void **state) {
  (void)state;
  struct product product = product_of("stencil7,n=8", "recipe=dia form=ax");
  struct cb_source checked;
  struct cb_diag diag = {0};
  assert_ok(cb_checked_text(&checked, &product.source, product.plan, 0, &diag));
  assert_non_null(strstr(checked.text, "load(arrays.presence + check_index(kCheckRecord, slot / 8, 1, "));
  cb_source_release(&checked);
  product_release(&product);
  product = product_of("stencil7,n=8", "recipe=cb form=ax");
  assert_ok(cb_checked_text(&checked, &product.source, product.plan, 0, &diag));
  const char *const pointer = strstr(checked.text, "{arrays.mtx_data + check_index(kCheckRecord, ");
  assert_non_null(pointer);
  assert_non_null(memmem(pointer, strcspn(pointer, "\n"), ", 0, ", 5));
  cb_source_release(&checked);
  product_release(&product);
}

static void texts_that_cannot_be_checked_are_refused(void **state) {
  (void)state;
  struct product product = product_of(band, sell);
  struct cb_source checked, other = {.text = (char *)"int x;\n", .length = 7};
  struct cb_diag diag = {0};
  assert_int_equal(cb_checked_text(&checked, &other, product.plan, 0, &diag), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(diag.message, "has no device prelude"));
  other = (struct cb_source){.text = (char *)"// ---- end of the device prelude\nint x;\n", .length = 41, .body = 34};
  assert_int_equal(cb_checked_text(&checked, &other, product.plan, 0, &diag), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(diag.message, "nothing in the kernel's text"));
  assert_null(checked.text);
  product_release(&product);
}

/* ---- for GPUs */

/* Registers may not suffice for all thread blocks, but the compiler takes every text. */
static void texts_compile_for_gpus(void **state) {
  const struct cb_nvrtc_options options = {.arch = "sm_90", .strict = 1};
  const struct cb_recipe *recipe;
  struct cb_nvrtc *nvrtc = open_nvrtc();
  int spilling = 0, count = 0;
  (void)state;
  for (int r = 0; (recipe = cb_recipe_at(r)); r += 5, count++) {
    struct product product = product_of(example_of(recipe), settings_of_recipe(recipe));
    struct cb_source checked;
    struct cb_compiled compiled;
    struct cb_diag diag = {0};
    assert_ok(cb_checked_text(&checked, &product.source, product.plan, 0x7f0000001000, &diag));
    assert_ok(cb_nvrtc_compile(&compiled, nvrtc, checked.text, "kernel.cu", &options, &diag));
    spilling += cb_spilled_bytes(&compiled) > 0;
    cb_compiled_release(&compiled);
    cb_source_release(&checked);
    product_release(&product);
  }
  print_message("%d of %d kernels with checks have a stack\n", spilling, count);
  cb_nvrtc_close(nvrtc);
}

static void comparing_kernels_compile_for_gpus(void **state) {
  static const struct cb_operator_info infos[] = {
      {.matrix_type = CB_F64, .vector_type = CB_F64, .sum_type = CB_F64},
      {.matrix_type = CB_F16, .vector_type = CB_F16, .sum_type = CB_F32},
      {.matrix_type = CB_BF16, .vector_type = CB_F32, .sum_type = CB_F32, .semiring = CB_MIN_PLUS},
      {.matrix_type = CB_F32, .vector_type = CB_BF16, .sum_type = CB_F32, .semiring = CB_OR_AND},
  };
  struct cb_nvrtc *nvrtc = open_nvrtc();
  (void)state;
  for (size_t i = 0; i < sizeof infos / sizeof *infos; i++) {
    struct cb_text text = {0};
    struct cb_diag diag = {0};
    assert_ok(cb_comparer_text(&text, &infos[i], i % 2, &diag));
    struct cb_cubin_stats stats = compile_strictly(nvrtc, cb_text_string(&text), i % 2 ? "sm_100" : "sm_80", "comparing kernels");
    assert_int_equal(stats.count, 2);
    cb_cubin_stats_release(&stats);
    cb_text_release(&text);
  }
  cb_nvrtc_close(nvrtc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(right_kernels_pass),
      cmocka_unit_test(planted_faults_are_found),
      cmocka_unit_test(the_lines_are_those_of_the_plain_text),
      cmocka_unit_test(every_accessor_is_checked),
      cmocka_unit_test(counts_are_those_of_the_plan),
      cmocka_unit_test(places_are_looked_at_as_they_are_used),
      cmocka_unit_test(texts_that_cannot_be_checked_are_refused),
      cmocka_unit_test(texts_compile_for_gpus),
      cmocka_unit_test(comparing_kernels_compile_for_gpus),
  };
  return exit_code_of(cmocka_run_group_tests_name("checks", tests, open_hosts, close_hosts));
}
