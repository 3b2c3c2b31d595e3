// SPDX-License-Identifier: Apache-2.0
/* cbgen bench with several vectors, on a fake driver that executes kernels and a fake cuSPARSE: the kernel's own
 * products are right in both orders, and wrong ones of cuSPARSE's are found. */
#include "tests/support.h"

#include "runtime/measure/many.h"
#include "tests/fake_cusparse.h"
#include "tests/fake_driver.h"

#include <dlfcn.h>
#include <jansson.h>

static struct fake_cusparse *open_baselines(void) {
  const char *path = getenv("CBGEN_FAKE_CUSPARSE");
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
  struct fake_cusparse **control = library ? dlsym(library, "fake_cusparse") : NULL;
  assert_non_null(control);
  **control = (struct fake_cusparse){0};
  return *control;
}

static struct cb_bench_settings settings_of(int with_baselines) {
  struct cb_bench_settings settings;
  cb_bench_settings_default(&settings);
  settings.driver_path = settings.nvrtc_path = getenv("CBGEN_FAKE_CUDA");
  settings.cusparse_path = getenv("CBGEN_FAKE_CUSPARSE");
  settings.ceilings = 0;
  settings.baselines = with_baselines;
  settings.repetitions = 2;
  settings.batches = settings.launches = 1;
  return settings;
}

static const struct {
  const char *matrix, *options;
} cases[] = {
    {"stencil7,n=6", "recipe=auto vectors=8"},
    {"fe3,n=4", "recipe=auto vectors=4 type=f32"},
    {"powerlaw,rows=400,max=300", "recipe=sell vectors=8"},
    {"road,n=20,keep=0.6", "recipe=sell vectors=32 form=ax"},
    {"powerlaw,rows=400,max=300", "recipe=merge vectors=3 form=add"},
    {"band,n=300,half=20,per_row=6", "recipe=auto vectors=2 type=bf16"},
    {"powerlaw,rows=300,max=100", "recipe=merge vectors=4 type=c64 conjugate=on"},
};

static void open_case(struct cb_bench **bench, struct cb_csr *csr, struct cb_options *options, size_t number,
                      int with_baselines) {
  const struct cb_bench_settings settings = settings_of(with_baselines);
  struct cb_diag diag = {0};
  cb_options_default(options);
  set_options(options, cases[number].options);
  assert_ok(cb_matrix_generate(csr, cases[number].matrix, &diag));
  if (cb_precision_is_complex(options->type)) assert_ok(cb_csr_make_complex(csr, &diag));
  if (cb_bench_open(bench, &settings, &diag)) fail_msg("%s", diag.message);
}

static void test_right(void **state) {
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct cb_many_result result;
    struct cb_options options;
    struct cb_bench *bench;
    struct cb_csr csr;
    struct cb_text text = {0};
    struct cb_diag diag = {0};
    struct fake_control *fake = fake_open();
    fake->memory = 64 << 20;
    open_case(&bench, &csr, &options, c, 0);
    if (cb_bench_many(&result, bench, &csr, &options, &diag)) fail_msg("%s: %s", cases[c].matrix, diag.message);
    assert_int_equal(result.checked, options.vectors);
    for (int i = 0; i < CB_MANY_BASELINES; i++) {
      if (result.entries[i].wrong) print_error("%s %s: entry %d\n", cases[c].matrix, cases[c].options, i);
      assert_int_equal(result.entries[i].wrong, 0);
      assert_true(result.entries[i].timing.us > 0);
    }
    for (int i = CB_MANY_BASELINES; i < CB_MANY_ENTRIES; i++)
      assert_false(result.entries[i].baseline.applies);
    cb_many_report(&text, bench, &result);
    assert_non_null(strstr(cb_text_string(&text), "does not apply"));
    cb_text_release(&text);
    cb_many_result_release(&result);
    cb_bench_close(bench);
    cb_csr_release(&csr);
    assert_string_equal(fake->misuse, "");
    assert_true(fake_is_clean(fake));
  }
}

/* cuSPARSE's are listed by algorithm and order, those that do not apply with their reason; wrong ones do not count. */
static void test_baselines(void **state) {
  struct cb_many_result result;
  struct cb_options options;
  struct cb_bench *bench;
  struct cb_csr csr;
  struct cb_text text = {0};
  struct cb_diag diag = {0};
  (void)state;
  struct fake_control *fake = fake_open();
  struct fake_cusparse *baselines = open_baselines();
  fake->memory = 64 << 20;
  baselines->no_alg3 = 1;
  baselines->lie = CB_CUSPARSE_MANY_CSR_ALG2;
  open_case(&bench, &csr, &options, 0, 1);
  if (cb_bench_many(&result, bench, &csr, &options, &diag)) fail_msg("%s", diag.message);
  for (int i = 0; i < CB_SPMM_KINDS; i++) {
    const struct cb_many_entry *entry = &result.entries[CB_MANY_BASELINES + i];
    assert_int_equal(entry->order, i / 3);
    assert_int_equal(entry->baseline.applies, i % 3 != 2);
    assert_int_equal(entry->wrong != 0, i % 3 == 1);
    assert_int_equal(entry->baseline.reason[0] != 0, i % 3 == 2);
  }
  assert_true(result.speed_up[CB_BY_ROW] > 0 && result.speed_up[CB_BY_COLUMN] > 0);
  assert_ok(cb_many_json(&text, bench, &result, &diag));
  json_t *root = json_loads(cb_text_string(&text), 0, NULL);
  assert_non_null(root);
  assert_int_equal(json_integer_value(json_object_get(root, "vectors")), 8);
  assert_int_equal(json_array_size(json_object_get(root, "products")), CB_MANY_ENTRIES);
  json_decref(root);
  cb_text_release(&text);
  cb_many_result_release(&result);
  cb_bench_close(bench);
  cb_csr_release(&csr);
  assert_string_equal(fake->misuse, "");
  assert_string_equal(baselines->misuse, "");
  assert_true(fake_is_clean(fake));
  assert_int_equal(baselines->live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_right), cmocka_unit_test(test_baselines)};
  return cmocka_run_group_tests_name("many", tests, NULL, NULL);
}
