// SPDX-License-Identifier: Apache-2.0
/* Applications with a decimal comma, with threads that round in some direction, flush subnormals, or trap: texts,
 * plans, data, cache entries and products are the same bytes as elsewhere, and the application's threads have
 * afterwards what they had. */
#include "tests/api_support.h"
#include "tests/locale_support.h"
#include "tests/recipes.h"

#include "base/numerics.h"

#include <unistd.h>

/* What the library gives for one matrix. */
struct result {
  char *texts[6];
  void *data;
  size_t length;
};

static const struct {
  const char *matrix, *options;
  struct form form;
} cases[] = {
    {"stencil7,n=9,values=tenths", "values=fixed", {0}},
    {"random,rows=300,cols=200,density=0.1,values=hundredths", "values=fixed", {0}},
    {"random,rows=300,cols=200,density=0.1", "type=f32", {0}},
    {"random,rows=300,cols=200,density=0.1", "type=f16-f32", {.duplicates = 1, .shuffled = 1}},
    {"fe3,n=3,values=tenths", "values=fixed type=f32", {0}},
    {"rmat,scale=9,edge_factor=12", "arch=sm_80", {.duplicates = 1}},
    {"random,rows=90,cols=900,density=0.3", "type=f32-f64", {0}},
};
enum { CASES = sizeof cases / sizeof *cases };

static char *copy_of(const char *text) {
  char *copy = strdup(text);
  assert_non_null(copy);
  return copy;
}

static struct result generate(const cbgen_csr *matrix, const char *options) {
  struct result result = {0};
  cbgen_context *context;
  cbgen_kernel *kernel = NULL;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  set_all(context, options);
  must(context, cbgen_generate(context, matrix, &kernel));
  result.texts[0] = copy_of(cbgen_kernel_source(kernel, NULL));
  result.texts[1] = copy_of(cbgen_kernel_plan(kernel));
  result.texts[2] = copy_of(cbgen_kernel_plan_json(kernel));
  const void *data = cbgen_kernel_data(kernel, &result.length);
  result.data = malloc(result.length + 1);
  memcpy(result.data, data, result.length);
  cbgen_kernel_free(kernel);
  cbgen_context_destroy(context);
  return result;
}

static void release(struct result *result) {
  for (int i = 0; i < 6; i++) free(result->texts[i]);
  free(result->data);
}

static void assert_same(const struct result *one, const struct result *other, int number, const char *where) {
  for (int i = 0; i < 6; i++)
    if (one->texts[i] && strcmp(one->texts[i], other->texts[i]))
      fail_msg("case %d, %s: text %d is another:\n%s\n---- and\n%s", number, where, i, one->texts[i], other->texts[i]);
  if (one->length != other->length || memcmp(one->data, other->data, one->length))
    fail_msg("case %d, %s: the data are others", number, where);
}

static void sample_for(struct sample *sample, const char *matrix, struct form form) {
  struct cb_csr csr = matrix_of(matrix);
  const int64_t nnz = csr.nnz;
  double *values = malloc((size_t)nnz * sizeof *values);
  memcpy(values, csr.values, (size_t)nnz * sizeof *values);
  *sample = sample_of_matrix(csr, form, 1);
  if (sample->entries == nnz && !form.shuffled)
    memcpy(sample->given, values, (size_t)nnz * sizeof *values);
  free(values);
}

static void check_kernels(int number, const char *matrix, struct form form, const char *options) {
  struct sample sample;
  sample_for(&sample, matrix, form);
  struct result plain = generate(&sample.view, options);
  for (int mode = 0; mode < ROUNDING_MODES; mode++) {
    set_comma(1);
    set_rounding(rounding_modes[mode]);
    struct result other = generate(&sample.view, options);
    const int kept = rounds_as(rounding_modes[mode]);
    set_rounding(FE_TONEAREST);
    set_comma(0);
    assert_same(&plain, &other, number, rounding_names[mode]);
    assert_true(kept);
    release(&other);
  }
  release(&plain);
  sample_release(&sample);
}

/* These cases, and every recipe with values that become text. */
static void kernels_are_the_same_under_every_locale_and_rounding_mode(void **unused) {
  (void)unused;
  const struct cb_recipe *recipe;
  make_comma_locale();
  for (int number = 0; number < CASES; number++)
    check_kernels(number, cases[number].matrix, cases[number].form, cases[number].options);
  for (int number = 0; (recipe = cb_recipe_at(number)); number++) {
    char matrix[96], options[SETTINGS];
    snprintf(matrix, sizeof matrix, "%s,values=tenths", example_of(recipe));
    snprintf(options, sizeof options, "%.200s values=fixed", settings_of_recipe(recipe));
    check_kernels(CASES + number, matrix, (struct form){0}, options);
  }
}

/* ---- operators */

struct heard {
  int lines, rounding, commas;
};

static void hear(void *user, const char *line) {
  struct heard *heard = user;
  char text[8];
  (void)line;
  snprintf(text, sizeof text, "%.1f", 0.5);
  heard->lines++;
  heard->commas += text[1] == ',';
  heard->rounding += fegetround() == FE_UPWARD;
}

static struct result operate(const struct sample *sample, const char *options, cbgen_cache_result expected,
                             struct heard *heard) {
  struct result result = {0};
  const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_FIXED};
  cbgen_info info = {.struct_size = sizeof info};
  cbgen_context *context;
  cbgen_operator *op = NULL, *back = NULL;
  size_t length;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  if (heard) cbgen_set_log(context, hear, heard);
  set_all(context, options);
  must(context, cbgen_compile(context, &sample->view, &request, &op));
  must_operator(op, cbgen_operator_info(op, &info));
  assert_int_equal(info.cache, expected);
  must_operator(op, cbgen_operator_save(op, NULL, 0, &length));
  void *block = malloc(length);
  must_operator(op, cbgen_operator_save(op, block, length, &length));
  must(context, cbgen_operator_load(context, block, length, &back));
  result.texts[0] = copy_of(cbgen_operator_source(back, NULL));
  result.texts[1] = copy_of(cbgen_operator_plan(op));
  result.texts[2] = copy_of(cbgen_operator_plan_json(back));
  result.texts[3] = copy_of(cbgen_operator_key(op));
  struct vectors vectors;
  { /* the same vectors for all */
    CB_STANDARD_NUMERICS;
    vectors = vectors_for(op, 0);
  }
  const cbgen_product product = product_with(&vectors, 0.1, -0.7, NULL);
  result.length = (size_t)vectors.rows * cb_type_size(vectors.type);
  result.data = malloc(result.length + 1);
  must_operator(back, cbgen_multiply(back, &product));
  assert_true(app_take(result.data, vectors.y_there, result.length));
  vectors_release(&vectors);
  free(block);
  cbgen_operator_free(op);
  cbgen_operator_free(back);
  cbgen_context_destroy(context);
  return result;
}

static void empty_cache(void) {
  char folder[512], command[600];
  snprintf(folder, sizeof folder, "%s/cache", getenv("CBGEN_TEST_TMP"));
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  assert_int_equal(system(command), 0);
  setenv("CBGEN_CACHE_DIR", folder, 1);
}

/* What a hostile process made and kept in the cache, a plain one hits, and its product is right. */
static void operators_and_cache_entries_are_the_same_under_every_locale_and_rounding_mode(void **unused) {
  (void)unused;
  make_comma_locale();
  static const int numbers[] = {0, 1, 4};
  for (int i = 0; i < 3; i++) {
    struct sample sample;
    sample_for(&sample, cases[numbers[i]].matrix, cases[numbers[i]].form);
    const char *options = numbers[i] == 4 ? "recipe=blocks type=f32" : numbers[i] ? "" : "recipe=dia";
    empty_cache();
    struct result plain = operate(&sample, options, CBGEN_CACHE_MISS, NULL);
    for (int mode = 0; mode < ROUNDING_MODES; mode++) {
      empty_cache();
      set_comma(1);
      set_rounding(rounding_modes[mode]);
      struct result other = operate(&sample, options, CBGEN_CACHE_MISS, NULL);
      const int kept = rounds_as(rounding_modes[mode]);
      set_rounding(FE_TONEAREST);
      set_comma(0);
      struct result hit = operate(&sample, options, CBGEN_CACHE_HIT, NULL);
      assert_true(kept);
      assert_same(&plain, &other, numbers[i], rounding_names[mode]);
      assert_same(&plain, &hit, numbers[i], "a hit");
      release(&other);
      release(&hit);
    }
    release(&plain);
    sample_release(&sample);
  }
  setenv("CBGEN_CACHE_DIR", "", 1);
}

static void the_log_function_has_what_the_application_has(void **unused) {
  (void)unused;
  make_comma_locale();
  struct sample sample;
  struct heard heard = {0};
  sample_for(&sample, cases[0].matrix, cases[0].form);
  set_comma(1);
  set_rounding(FE_UPWARD);
  struct result result = operate(&sample, "recipe=dia", CBGEN_CACHE_OFF, &heard);
  set_rounding(FE_TONEAREST);
  set_comma(0);
  assert_true(heard.lines > 0);
  assert_int_equal(heard.commas, heard.lines);
  assert_int_equal(heard.rounding, heard.lines);
  release(&result);
  sample_release(&sample);
}

/* cbgen_multiply leaves the thread as it is: α and β become floats without its help. */
/* Whether this thread rounds to the nearest and writes a point. */
static int is_standard(void) {
  char text[8];
  snprintf(text, sizeof text, "%.1f", 0.5);
  return fegetround() == FE_TONEAREST && !strcmp(text, "0.5");
}

static int is_the_applications(void) {
  char text[8];
  snprintf(text, sizeof text, "%.1f", 0.5);
  return fegetround() == FE_UPWARD && !strcmp(text, "0,5");
}

static void a_call_has_its_own_numerics_around_a_pause(void **unused) {
  (void)unused;
  struct cb_numerics before, ours;
  int good = 0;
  make_comma_locale();
  set_comma(1);
  fesetround(FE_UPWARD);
  cb_numerics_enter(&before);
  good += is_standard();
  cb_numerics_pause(&ours);
  good += is_the_applications();
  cb_numerics_resume(&ours);
  good += is_standard();
  cb_numerics_leave(&before);
  good += is_the_applications();
  fesetround(FE_TONEAREST);
  set_comma(0);
  assert_int_equal(good, 4);
}

static void scalars_become_the_nearest_floats_in_every_rounding_mode(void **unused) {
  (void)unused;
  static const double special[] = {
      0,         -0.0,         1,               0.1,        -0.7,      INFINITY,    -INFINITY,
      NAN,       1e300,        -1e39,           0x1p-1074,  0x1p-149,  0x1p-150,    0x1.8p-150,
      0x1p128,   -0x1.8p-149,  0x1.fffffep-127, 0x1.ffffffp-127, 0x1.ffffffp127, 0x1.fffffefp127,
  };
  enum { SPECIAL = sizeof special / sizeof *special, COUNT = 20000 };
  uint64_t seed = 3;
  for (int i = 0; i < COUNT; i++) {
    const uint64_t word = draw(&seed), tie = word & ~(uint64_t)0xfffffff; /* often in the middle of two */
    double value = i < SPECIAL ? special[i] : 0;
    if (i >= SPECIAL) memcpy(&value, i % 2 ? &word : &tie, sizeof value);
    if (i % 3 == 0 && i >= SPECIAL && isnormal(value)) value = ldexp(value, (int)(word % 300) - 160 - ilogb(value));
    const volatile float expected = (float)value;
    for (int mode = 0; mode < ROUNDING_MODES; mode++) {
      fesetround(rounding_modes[mode]);
      const float found = cb_real_to_float(value);
      fesetround(FE_TONEAREST);
      const float kept = expected;
      if (memcmp(&found, &kept, sizeof found))
        fail_msg("%a, %s: %a instead of %a", value, rounding_names[mode], (double)found, (double)kept);
    }
  }
}

/* ---- the rest of a thread's environment */

static void a_threads_own_locale_and_flags_come_back(void **unused) {
  (void)unused;
  make_comma_locale();
  struct sample sample;
  sample_for(&sample, cases[1].matrix, cases[1].form);
  struct result plain = generate(&sample.view, cases[1].options);
  set_comma(1);
  const locale_t own = duplocale(LC_GLOBAL_LOCALE);
  set_comma(0);
  assert_true(own != (locale_t)0);
  uselocale(own);
  feclearexcept(FE_ALL_EXCEPT);
  feraiseexcept(FE_UNDERFLOW);
  struct result other = generate(&sample.view, cases[1].options);
  const int flags = fetestexcept(FE_ALL_EXCEPT);
  const locale_t after = uselocale(LC_GLOBAL_LOCALE);
  freelocale(own);
  feclearexcept(FE_ALL_EXCEPT);
  assert_same(&plain, &other, 1, "a thread's own locale");
  assert_true(after == own);
  assert_int_equal(flags, FE_UNDERFLOW);
  release(&plain);
  release(&other);
  sample_release(&sample);
}

#ifdef __SSE2__
/* Flushing of results and operands, as -ffast-math sets it. */
enum { FLUSH = 0x8040 };
static void set_flush(unsigned flush) {
#pragma omp parallel
  __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~(unsigned)FLUSH) | flush);
}

static void subnormals_stay_where_threads_flush_them(void **unused) {
  (void)unused;
  struct sample sample = sample_of("random,rows=80,cols=70,density=0.1", (struct form){.value_type = CBGEN_F32});
  for (int64_t k = 0; k < sample.entries; k++) ((float *)sample.given)[k] = (float)(k % 7 + 1) * 0x1p-149f;
  static const char *const options[] = {"type=f32", "type=f32 values=fixed", "type=f64 values=fixed"};
  for (int i = 0; i < 3; i++) {
    struct result plain = generate(&sample.view, options[i]);
    set_flush(FLUSH);
    struct result other = generate(&sample.view, options[i]);
    const unsigned kept = __builtin_ia32_stmxcsr() & FLUSH;
    set_flush(0);
    assert_same(&plain, &other, i, "subnormals flushed");
    assert_int_equal(kept, FLUSH);
    release(&plain);
    release(&other);
  }
  sample_release(&sample);
}

static void floating_point_traps_do_not_end_the_application(void **unused) {
  (void)unused;
  struct sample sample;
  sample_for(&sample, cases[1].matrix, cases[1].form);
  struct result plain = generate(&sample.view, cases[1].options);
  feclearexcept(FE_ALL_EXCEPT);
#pragma omp parallel
  feenableexcept(FE_ALL_EXCEPT);
  struct result other = generate(&sample.view, cases[1].options);
  const int enabled = fegetexcept();
#pragma omp parallel
  fedisableexcept(FE_ALL_EXCEPT);
  assert_same(&plain, &other, 1, "traps");
  assert_int_equal(enabled, FE_ALL_EXCEPT);
  release(&plain);
  release(&other);
  sample_release(&sample);
}
#endif

int main(void) {
  omp_set_num_threads(3);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kernels_are_the_same_under_every_locale_and_rounding_mode),
      cmocka_unit_test_setup_teardown(operators_and_cache_entries_are_the_same_under_every_locale_and_rounding_mode,
                                      open_fake, check_fake),
      cmocka_unit_test_setup_teardown(the_log_function_has_what_the_application_has, open_fake, check_fake),
      cmocka_unit_test(a_call_has_its_own_numerics_around_a_pause),
      cmocka_unit_test(scalars_become_the_nearest_floats_in_every_rounding_mode),
      cmocka_unit_test(a_threads_own_locale_and_flags_come_back),
#ifdef __SSE2__
      cmocka_unit_test(subnormals_stay_where_threads_flush_them),
      cmocka_unit_test(floating_point_traps_do_not_end_the_application),
#endif
  };
  return cmocka_run_group_tests_name("numerics", tests, NULL, NULL);
}
