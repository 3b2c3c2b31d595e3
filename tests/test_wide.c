// SPDX-License-Identifier: Apache-2.0
/* Indices of 64 bits: matrices of more than 2^31 nonzeros have them, which no test can execute. The option index-limit
 * gives them to small ones, so that the text of every layout is executed with them against the oracle and compiled for
 * GPUs; and numbers beyond 2^31 are reached where they cost nothing, in arithmetic. huge_matrix.c plans a huge one. */
#include "tests/layouts.h"
#include "tests/nvrtc_support.h"
#include "tests/recipes.h"
#include "tests/skips.h"

#include "analysis/plan/recipe.h"
#include "runtime/cuda/spills.h"
#include "runtime/verify/verify.h"

/* Each recipe as a matrix that suits it takes it. */
static const struct {
  const char *matrix, *settings;
} cases[] = {
    {"random,rows=90,cols=70,density=0.2", "type=f64"},
    {"random,rows=900,cols=40,density=0.1", "type=f32 form=ax bake-limit=0"},
    {"stencil7,n=5,values=ones", "values=fixed"},
    {"long_row,rows=200,cols=4000,per_row=5,long_rows=2,long_length=3900", "long-row=99 bake-limit=0"},
};

static void settings_of(char settings[256], const char *recipe, size_t number) {
  snprintf(settings, 256, "recipe=%s index-limit=0 %s %s", recipe, lenient_settings(), cases[number].settings);
}

static void wide_texts_multiply_right(void **state) {
  (void)state;
  struct gathered gathered = {0};
  const struct cb_recipe *recipe;
  for (int number = 0; (recipe = cb_recipe_at(number)); number++)
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
      char settings[256];
      struct cb_diag diag;
      settings_of(settings, recipe->name, c);
      if (plan_status_of(cases[c].matrix, settings, &diag) == CB_ERR_UNSUPPORTED) continue; /* no full tiles */
      const struct product *product = gather(&gathered, cases[c].matrix, settings);
      assert_ok(cb_assignment_check(product->plan, product->assignment, &diag));
      assert_true(product->assignment->wide);
      if (!has(product, "int64_t")) fail_msg("%s %s: no index of 64 bits", cases[c].matrix, settings);
    }
  assert_true(gathered.count > 36);
  verify_gathered(&gathered);
}

/* The same bytes for the same slots, however wide the numbers of nonzeros are. */
static void wide_numbers_of_nonzeros_pack_the_same_data(void **state) {
  (void)state;
  const struct cb_recipe *recipe;
  for (int number = 0; (recipe = cb_recipe_at(number)); number++) {
    char settings[256];
    struct cb_diag diag;
    settings_of(settings, recipe->name, 0);
    if (plan_status_of(cases[0].matrix, settings, &diag) == CB_ERR_UNSUPPORTED) continue;
    struct product wide = product_of(cases[0].matrix, settings);
    *strstr(settings, "index-limit=0") = 0; /* the recipe alone stays */
    snprintf(settings + strlen(settings), sizeof settings - strlen(settings), "%s %s", lenient_settings(), cases[0].settings);
    struct product narrow = product_of(cases[0].matrix, settings);
    assert_false(narrow.assignment->wide);
    assert_string_equal(wide.plan->line, narrow.plan->line);
    assert_int_equal(wide.blob.length, narrow.blob.length);
    assert_memory_equal(wide.blob.bytes + 64, narrow.blob.bytes + 64, (size_t)wide.blob.length - 64); /* ids differ */
    product_release(&wide);
    product_release(&narrow);
  }
}

static void wide_row_pointers_give_the_same_kernel(void **state) {
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct cb_csr csr = matrix_of(cases[c].matrix);
    int64_t *row_ptr = cb_alloc((size_t)csr.rows + 1, sizeof *row_ptr);
    assert_non_null(row_ptr);
    for (int64_t row = 0; row <= csr.rows; row++) row_ptr[row] = cb_csr_row(&csr, row);
    cb_free(csr.row_ptr);
    csr.row_ptr = row_ptr;
    csr.wide = 1;
    struct product wide = product_of_matrix(csr, "recipe=auto"), narrow = product_of(cases[c].matrix, "recipe=auto");
    assert_string_equal(wide.source.text, narrow.source.text);
    assert_int_equal(wide.blob.length, narrow.blob.length);
    assert_memory_equal(wide.blob.bytes, narrow.blob.bytes, (size_t)wide.blob.length);
    product_release(&wide);
    product_release(&narrow);
  }
}

/* ---- where an int ends */

static void emit_again(struct product *product) {
  struct cb_diag diag = {0};
  const struct cb_label label = {"test", "test", cb_csr_pattern_hash(product->csr)};
  cb_source_release(&product->source);
  assert_ok(cb_source_emit(&product->source, product->plan, &label, NULL, CB_EMBED_NEVER, &diag));
}

/* Counts and numbers of a plan that is only described: an int as far as it goes, 64 bits from there on. */
static void an_int_holds_what_it_can(void **state) {
  (void)state;
  static const struct {
    int64_t number;
    const char *type;
  } ends[] = {{INT32_MAX, "int"}, {INT64_C(1) << 31, "int64_t"}, {INT64_C(1) << 40, "int64_t"}};
  struct product product = product_of("random,rows=90,cols=70,density=0.2", "recipe=sell sell-lanes=1 sell-vector=1 bake-limit=0");
  struct cb_region *region = &product.plan->regions[0];
  struct cb_array *steps = &region->arrays[array_number(&product, "first_step")];
  struct cb_constant *constant = &region->constants[0];
  const int64_t count = steps->count, largest = steps->largest, slots = region->value_slots, kept = constant->value;
  assert_int_equal(steps->storage, CB_STORED);
  region->next = CB_NEXT_AT_END; /* what is loaded before a wait has places of 64 bits in any case */
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    char accessor[80], value[80], index[80], declaration[80];
    steps->count = ends[i].number;
    emit_again(&product);
    snprintf(accessor, sizeof accessor, "CBGEN_DEVICE int first_step(const Arrays &arrays, %s i)", ends[i].type);
    snprintf(index, sizeof index, "using index_t = %s;", ends[i].type);
    assert_true(has(&product, accessor) && has(&product, index));
    steps->count = count;
    steps->largest = ends[i].number;
    emit_again(&product);
    snprintf(accessor, sizeof accessor, "CBGEN_DEVICE %s first_step(const Arrays &arrays, int i)", ends[i].type);
    assert_true(has(&product, accessor) && has(&product, "using index_t = int;"));
    steps->largest = largest;
    region->value_slots = ends[i].number;
    emit_again(&product);
    snprintf(value, sizeof value, "CBGEN_DEVICE sum_t value(const Arrays &arrays, %s slot)", ends[i].type);
    assert_true(has(&product, value) && has(&product, index));
    region->value_slots = slots;
    constant->value = ends[i].number;
    emit_again(&product);
    snprintf(declaration, sizeof declaration, "constexpr %s %s = ", ends[i].type, constant->name);
    assert_true(has(&product, declaration));
    constant->value = kept;
  }
  product_release(&product);
}

/* Accessors of several neighbours likewise. */
static void vectors_have_wide_indices(void **state) {
  (void)state;
  struct product product = product_of("random,rows=90,cols=70,density=0.2", "recipe=sell sell-vector=2 bake-limit=0");
  struct cb_array *offsets = &product.plan->regions[0].arrays[array_number(&product, "column_offset")];
  assert_true(has(&product, "column_offset_vector(const Arrays &arrays, int i)"));
  offsets->count = INT64_C(1) << 31;
  emit_again(&product);
  assert_true(has(&product, "column_offset_vector(const Arrays &arrays, int64_t i)"));
  product_release(&product);
}

/* An affine sequence whose numbers begin beyond 2^31, and one whose steps lead there: the kernel multiplies right only
 * if they are told exactly. Its text takes away what was put on top. */
static void affine_sequences_go_beyond_an_int(void **state) {
  (void)state;
  static const struct {
    int64_t add, times;
    const char *instead;
  } changes[] = {
      {INT64_C(3) << 33, 1, "(first_step(arrays, slice) - 25769803776)"},
      {0, INT64_C(1) << 29, "(first_step(arrays, slice) >> 29)"},
      {INT64_C(1) << 31, 1, "(first_step(arrays, slice) - 2147483648)"},
  };
  struct gathered gathered = {0};
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    struct product *product = gather(&gathered, "uniform,n=1000,per_row=9", "recipe=sell sell-lanes=1");
    struct cb_array *steps = &product->plan->regions[0].arrays[array_number(product, "first_step")];
    assert_int_equal(steps->storage, CB_AFFINE);
    steps->base = steps->base * changes[i].times + changes[i].add;
    steps->step *= changes[i].times;
    steps->largest = steps->base + steps->step * (steps->count - 1);
    assert_true(steps->largest > INT32_MAX);
    emit_again(product);
    assert_true(has(product, "CBGEN_DEVICE int64_t first_step(") && has(product, "int64_t(i)"));
    char *text =
        replaced(product->source.text + product->source.body, "first_step(arrays, slice)", changes[i].instead, 1);
    assert_non_null(text);
    cb_source_release(&product->source);
    product->source = (struct cb_source){.text = text, .length = (int64_t)strlen(text)};
  }
  verify_gathered(&gathered);
}

/* ---- for GPUs */

static void wide_texts_compile_for_gpus(void **state) {
  (void)state;
  struct cb_nvrtc *nvrtc = open_nvrtc();
  const struct cb_recipe *recipe;
  for (int number = 0; (recipe = cb_recipe_at(number)); number++) {
    char settings[256];
    struct cb_diag diag = {0};
    struct cb_compiled compiled;
    const size_t c = (size_t)number % 4;
    settings_of(settings, recipe->name, c);
    if (plan_status_of(cases[c].matrix, settings, &diag) == CB_ERR_UNSUPPORTED) continue;
    struct product product = product_of(cases[c].matrix, settings);
    const struct cb_nvrtc_options options = {.arch = arches[number % 4], .strict = 1};
    if (cb_compile_fitting(&compiled, nvrtc, product.source.text, settings, &options, &diag)) fail_msg("%s", diag.message);
    if (compiled.spilled_bytes) fail_msg("'%s' spills %d bytes", settings, compiled.spilled_bytes);
    cb_compiled_release(&compiled);
    product_release(&product);
  }
  cb_nvrtc_close(nvrtc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wide_texts_multiply_right),
      cmocka_unit_test(wide_numbers_of_nonzeros_pack_the_same_data),
      cmocka_unit_test(wide_row_pointers_give_the_same_kernel),
      cmocka_unit_test(an_int_holds_what_it_can),
      cmocka_unit_test(vectors_have_wide_indices),
      cmocka_unit_test(affine_sequences_go_beyond_an_int),
      cmocka_unit_test(wide_texts_compile_for_gpus),
  };
  return exit_code_of(cmocka_run_group_tests(tests, NULL, NULL));
}
