// SPDX-License-Identifier: Apache-2.0
/* NVRTC without a GPU: what is found, what compiles, what is said when something does not. Tests that need
 * NVRTC are skipped, with the reason, where there is none. */
#include "tests/combinations.h"
#include "tests/layouts.h"
#include "tests/nvrtc_support.h"

#include "analysis/layout.h"
#include "analysis/plan/recipe.h"
#include "analysis/target.h"
#include "runtime/cuda/spills.h"

#include <unistd.h>

static const char axpy[] = "extern \"C\" __global__ void axpy(double a, const double *x, double *y) {\n"
                           "  y[threadIdx.x] += a * x[threadIdx.x];\n"
                           "}\n";

static void compiles_for_every_target(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc = open_nvrtc();
  for (int i = 0; arches[i]; i++) {
    struct cb_compiled compiled;
    struct cb_cubin_stats stats;
    const struct cb_nvrtc_options options = {.arch = arches[i], .ptx = 1};
    assert_true(cb_nvrtc_supports(nvrtc, arches[i]));
    assert_ok(cb_nvrtc_compile(&compiled, nvrtc, axpy, "axpy.cu", &options, &diag));
    assert_string_equal(compiled.arch, arches[i]);
    assert_memory_equal(compiled.cubin, "\177ELF", 4);
    assert_non_null(strstr(compiled.ptx, ".visible .entry axpy("));
    assert_true(compiled.seconds > 0 && compiled.seconds < 60);
    assert_ok(cb_cubin_stats(&stats, compiled.cubin, compiled.cubin_bytes, &diag));
    assert_int_equal(stats.count, 1);
    assert_string_equal(stats.kernels[0].name, "axpy");
    cb_cubin_stats_release(&stats);
    cb_compiled_release(&compiled);
  }
  cb_nvrtc_close(nvrtc);
}

/* Products and sums stay apart unless the text says fma: the emulation rounds as often as the GPU. */
static void nothing_is_contracted(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc = open_nvrtc();
  struct cb_compiled compiled;
  const struct cb_nvrtc_options options = {.arch = "sm_90", .ptx = 1};
  assert_ok(cb_nvrtc_compile(&compiled, nvrtc, axpy, "axpy.cu", &options, &diag));
  assert_null(strstr(compiled.ptx, "fma."));
  assert_non_null(strstr(compiled.ptx, "mul.rn.f64"));
  assert_non_null(strstr(compiled.ptx, "add.rn.f64"));
  cb_compiled_release(&compiled);
  cb_nvrtc_close(nvrtc);
}

/* The text has decimals: NVRTC must read each as the number that it stands for, which the hexadecimal one says. */
static void literals_are_read_bit_for_bit(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_text text = {0};
  struct cb_compiled compiled;
  const struct cb_nvrtc_options options = {.arch = "sm_90"};
  uint64_t seed = 11;
  struct cb_nvrtc *nvrtc = open_nvrtc();
  for (int i = 0; i < 1000; i++) {
    const uint64_t bits = draw(&seed);
    const uint32_t narrow_bits = (uint32_t)(bits >> 7);
    char wide_text[CB_LITERAL], narrow_text[CB_LITERAL];
    double wide;
    float narrow;
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&narrow, &narrow_bits, sizeof narrow);
    if (i % 2) wide = (double)(bits % 100000) / 1000, narrow = (float)wide;
    if (!cb_real_is_finite(wide) || !cb_real_is_finite((double)narrow)) continue;
    cb_literal(wide_text, wide, CB_F64);
    cb_literal(narrow_text, (double)narrow, CB_F32);
    cb_text_add(&text, "static_assert(%s == %a && %s == %af, \"%d\");\n", wide_text, wide, narrow_text, (double)narrow, i);
  }
  assert_ok(cb_nvrtc_compile(&compiled, nvrtc, cb_text_string(&text), "literals.cu", &options, &diag));
  cb_compiled_release(&compiled);
  cb_text_release(&text);
  cb_nvrtc_close(nvrtc);
}

static void says_what_it_is(void **state) {
  (void)state;
  struct cb_nvrtc *nvrtc = open_nvrtc();
  int major = 0, minor = -1, count = 0;
  cb_nvrtc_version(nvrtc, &major, &minor);
  assert_in_range(major, 12, 99);
  assert_true(minor >= 0);
  assert_non_null(strstr(cb_nvrtc_path(nvrtc), "nvrtc"));
  const int *list = cb_nvrtc_arches(nvrtc, &count);
  assert_true(count > 3);
  for (int i = 1; i < count; i++) assert_true(list[i - 1] < list[i]);
  static const char *const wrong[] = {"sm_1", "sm_9", "sm_900", "sm_90x", "sm_", "90", "compute_90", ""};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(cb_nvrtc_supports(nvrtc, wrong[i]));
  cb_nvrtc_close(nvrtc);
}

static void failing_text_brings_the_log(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc = open_nvrtc();
  struct cb_compiled compiled;
  const struct cb_nvrtc_options options = {.arch = "sm_90"};
  const char text[] = "extern \"C\" __global__ void f(int *y) {\n  *y = no_such_thing;\n}\n";
  assert_int_equal(cb_nvrtc_compile(&compiled, nvrtc, text, "broken.cu", &options, &diag), CB_ERR_COMPILE);
  assert_non_null(strstr(diag.message, "broken.cu"));
  assert_non_null(strstr(diag.message, "sm_90"));
  assert_non_null(strstr(diag.message, "no_such_thing"));
  assert_non_null(strstr(diag.message, "(2)")); /* the line */
  assert_non_null(strstr(compiled.log, "no_such_thing"));
  assert_null(compiled.cubin);
  cb_compiled_release(&compiled);
  cb_nvrtc_close(nvrtc);
}

static void strict_turns_warnings_into_errors(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc = open_nvrtc();
  struct cb_compiled compiled;
  const char text[] = "extern \"C\" __global__ void f(int *y) {\n  int idle;\n  *y = 1;\n}\n";
  assert_ok(cb_nvrtc_compile(&compiled, nvrtc, text, "idle.cu", &(struct cb_nvrtc_options){.arch = "sm_90"},
                             &diag));
  assert_non_null(strstr(compiled.log, "idle"));
  cb_compiled_release(&compiled);
  const struct cb_nvrtc_options strict = {.arch = "sm_90", .strict = 1};
  assert_int_equal(cb_nvrtc_compile(&compiled, nvrtc, text, "idle.cu", &strict, &diag), CB_ERR_COMPILE);
  assert_non_null(strstr(diag.message, "idle"));
  cb_compiled_release(&compiled);
  cb_nvrtc_close(nvrtc);
}

static void an_unknown_architecture_is_refused(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc = open_nvrtc();
  struct cb_compiled compiled;
  const struct cb_nvrtc_options options = {.arch = "sm_20"};
  assert_int_equal(cb_nvrtc_compile(&compiled, nvrtc, axpy, "axpy.cu", &options, &diag), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(diag.message, "'sm_20'"));
  cb_compiled_release(&compiled);
  cb_nvrtc_close(nvrtc);
}

/* No warning, no spill, and the kernels that the plan says. */
static void compile_product(const struct cb_nvrtc *nvrtc, const struct product *product, const char *arch,
                            const char *what) {
  struct cb_cubin_stats stats = compile_strictly(nvrtc, product->source.text, arch, what);
  assert_int_equal(stats.count, product->plan->launches_count);
  for (int k = 0; k < stats.count; k++) {
    char name[96];
    cb_source_kernel(product->plan, &(struct cb_label){"test", "test", {0, 0}}, k, name, sizeof name);
    assert_string_equal(stats.kernels[k].name, name);
  }
  cb_cubin_stats_release(&stats);
}

/* One plan's text for every target; or, with a number, for the one whose turn it is. */
enum { EVERY = -1 };
static void compile_for(const struct cb_nvrtc *nvrtc, int number, const char *matrix, const char *settings) {
  struct product product = product_of(matrix, settings);
  char what[400];
  snprintf(what, sizeof what, "%s with %s", matrix, settings);
  for (int i = 0; arches[i]; i++)
    if (number == EVERY || tests_all_combinations() || !strcmp(arches[i], arch_in_turn(number)))
      compile_product(nvrtc, &product, arches[i], what);
  product_release(&product);
}

static void compile_for_all(const struct cb_nvrtc *nvrtc, const char *matrix, const char *settings) {
  compile_for(nvrtc, EVERY, matrix, settings);
}

struct plan_case {
  const char *matrix, *options;
};

/* All of them, with what `recipe` says before their own options: each for sm_100 and one other target. */
static void compile_all(const struct cb_nvrtc *nvrtc, const char *recipe, const struct plan_case *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    char settings[160];
    snprintf(settings, sizeof settings, "%s %s", recipe, cases[i].options);
    compile_for(nvrtc, 2 * (int)i, cases[i].matrix, settings);
    compile_for(nvrtc, 2 * (int)i + 1, cases[i].matrix, settings);
  }
}

static const struct plan_case hot_cases[] = {
    {"rmat,scale=17,edge_factor=2", ""},
    {"rmat,scale=17,edge_factor=2", "type=f32"},
    {"rmat,scale=17,edge_factor=2", "hot-threads=512 hot-batch=8 hot-gather=on"},
    {"rmat,scale=17,edge_factor=2", "hot-batch=2 form=ax"},
    {"rmat,scale=17,edge_factor=2", "type=f32 hot-batch=8 hot-gather=on"},
    {"rmat,scale=17,edge_factor=2", "hot-three-bytes=off"},
    {"rmat,scale=17,edge_factor=2", "type=f16 hot-gather=on"},
    {"rmat,scale=17,edge_factor=2", "type=bf16 hot-gather=off hot-batch=8"},
};
static const struct plan_case phases_cases[] = {
    {"rmat,scale=14,edge_factor=8", ""},
    {"rmat,scale=14,edge_factor=8", "type=f32 phase-batch=8"},
    {"rmat,scale=14,edge_factor=8,values=ones", "values=fixed form=ax phase-batch=8"},
    {"rmat,scale=14,edge_factor=8", "phase-threads=512 phase-batch=8"},
    {"rmat,scale=14,edge_factor=8", "phase-batch=8 phase-threads=512 phase-blocks=2"},
    {"rmat,scale=14,edge_factor=8", "type=bf16-f32 phase-batch=8"},
    {"rmat,scale=14,edge_factor=8", "type=f16"},
};
static const struct plan_case chained_cases[] = {
    {"stencil27,n=12,values=ones", "dia-stride=144"},
    {"stencil27,n=12,values=ones", "dia-stride=144 dia-rows=8 dia-threads=1024"},
    {"stencil7,n=12,values=ones", "dia-stride=144 type=f32 dia-threads=256"},
    {"stencil9,n=24,values=ones", "dia-stride=24 dia-rows=2 form=ax"},
    {"upper,n=60,values=ones", "dia-stride=2 dia-rows=8 dia-fill=0"},
};
static const struct plan_case fused_cases[] = {
    {"long_row,rows=900,cols=9000,per_row=5,long_rows=3,long_length=8000", "recipe=sell-long long-row=99"},
    {"long_row,rows=900,cols=9000,per_row=40,long_rows=3,long_length=8000", "recipe=sell-long type=f32 sell-vary=on"},
    {"long_row,rows=900,cols=9000,per_row=5,long_rows=3,long_length=8000", "recipe=cb-long long-row=99 th1=0"},
    {"block,blocks_r=400,per_row=3,scattered=4", "recipe=tiles"},
    {"block,blocks_r=300,r=4,c=4,per_row=3,scattered=7", "recipe=tiles type=f32 block-lanes=8"},
    {"block,blocks_r=9000,r=2,c=2,per_row=12,scattered=3,fill=0.95", "recipe=tiles"},
    {"stencil27,n=12,extra=0.5", ""},
    {"stencil27,n=12", "symmetric=on symmetric-storage=on dia-stride=144 dia-rows=3"},
    {"stencil27,n=12,extra=0.5", "type=f32 sell-lanes=4"},
    {"stencil27,n=60,extra=0.5", ""},
    {"stencil7,n=12,extra=0.5", "sell-vector=2"},
    {"stencil7,n=12,extra=0.5,values=ones", "values=fixed dia-rows=4 form=ax"},
    {"band,n=3000,half=20,per_row=25", "dia-fill=60"},
};

static void every_recipe_compiles_without_spills(void **state) {
  (void)state;
  static const struct plan_case cases[] = {
      {"stencil7,n=12", ""},
      {"random,rows=300,cols=200,density=0.05", "type=f32 form=ax"},
      {"random,rows=300,cols=200,density=0.3", "form=add"},
      {"fe3,n=8", "type=f32-f64"},
      {"fe3,n=8", "type=f16-f32"},
      {"fe3,n=8", "type=f16"},
      {"random,rows=300,cols=200,density=0.3", "type=bf16 form=add"},
      {"random,rows=300,cols=200,density=0.3", "type=bf16-f32"},
      {"stencil7,n=12,values=ones", "values=fixed"},
      {"fe3,n=8,values=integers", "values=fixed"},
      {"fe3,n=8,values=ones", "values=fixed type=f16-f32"},
      {"random,rows=25,cols=20,density=0.4", "values=fixed"},
      {"random,rows=25,cols=20,density=0.4", "values=fixed bake-limit=0 type=f32"},
  };
  struct cb_nvrtc *nvrtc = open_nvrtc();
  const struct cb_recipe *recipe;
  for (int number = 0; (recipe = cb_recipe_at(number)); number++)
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
      char settings[SETTINGS + 64];
      struct cb_diag diag;
      snprintf(settings, sizeof settings, "recipe=%s %s %s", recipe->name, lenient_settings(), cases[c].options);
      if (recipe->may_refuse && plan_status_of(cases[c].matrix, settings, &diag) == CB_ERR_UNSUPPORTED) continue;
      compile_for(nvrtc, number + (int)c, cases[c].matrix, settings);
    }
  compile_for_all(nvrtc, "random,rows=100,cols=5000,density=0.2", "recipe=cb unit-budget=512");
  compile_for_all(nvrtc, "random,rows=100,cols=5000,density=0.2", "recipe=cb atomics=on balance=heap");
  compile_all(nvrtc, "recipe=hot hot-columns=2000", hot_cases, sizeof hot_cases / sizeof *hot_cases);
  compile_all(nvrtc, "recipe=phases phase-columns=3000", phases_cases, sizeof phases_cases / sizeof *phases_cases);
  compile_all(nvrtc, "recipe=dia values=fixed", chained_cases, sizeof chained_cases / sizeof *chained_cases);
  compile_all(nvrtc, "recipe=dia fuse=on", fused_cases, sizeof fused_cases / sizeof *fused_cases);
  cb_nvrtc_close(nvrtc);
}

/* Shapes whose kernels were found to have one register too few: padded tiles beside long rows, where rows that end in
 * a chunk are looked up early; with empty rows, and rows in segments. */
#define PADDED "recipe=merge merge-items=7 merge-pad=on"
static void merge_beside_long_rows_does_not_spill(void **state) {
  (void)state;
  static const struct plan_case cases[] = {
      {"powerlaw,rows=4000,cols=2898,max=2700,min=0", PADDED},
      {"powerlaw,rows=4000,cols=2898,max=2700,min=0", PADDED " form=ax"},
      {"powerlaw,rows=4000,cols=2898,max=2700,min=0", PADDED " type=f32-f64 form=add"},
      {"powerlaw,rows=1500,cols=9000,max=8000,min=0", PADDED},
      {"long_row,rows=3000,cols=3000,per_row=20,long_rows=20,long_length=2500", PADDED},
  };
  struct cb_nvrtc *nvrtc = open_nvrtc();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) compile_for_all(nvrtc, cases[i].matrix, cases[i].options);
  cb_nvrtc_close(nvrtc);
}

/* What a compiler makes of a text is known afterwards only: registers that do not suffice are found. */
static void a_kernel_that_spills_is_compiled_for_fewer_blocks(void **state) {
  (void)state;
  static const struct {
    const char *bounds;
    int fewer;
  } cases[] = {{"blocks_that_fit(4, kThreads)", 0}, {"blocks_that_fit(6, kThreads)", 1}};
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc = open_nvrtc();
  struct product product =
      product_of("powerlaw,rows=4000,cols=2898,max=2700,min=0", PADDED " type=c128");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct cb_nvrtc_options options = {.arch = "sm_90"};
    struct cb_compiled compiled;
    char *text = replaced(product.source.text, cases[0].bounds, cases[i].bounds, 1);
    assert_non_null(text);
    assert_ok(cb_nvrtc_compile(&compiled, nvrtc, text, "kernel.cu", &options, &diag));
    assert_int_equal(cb_spilled_bytes(&compiled) > 0, i > 0);
    cb_compiled_release(&compiled);
    assert_ok(cb_compile_fitting(&compiled, nvrtc, text, "kernel.cu", &options, &diag));
    assert_int_equal(cb_spilled_bytes(&compiled), 0);
    assert_int_equal(compiled.spilled_bytes, 0);
    assert_int_equal(compiled.fewer_blocks, cases[i].fewer);
    cb_compiled_release(&compiled);
    cb_free(text);
  }
  product_release(&product);
  cb_nvrtc_close(nvrtc);
}

/* Every architecture of the table that this NVRTC knows, with types whose conversions differ between them. */
static void every_architecture_of_the_table_compiles(void **state) {
  (void)state;
  static const char *const types[] = {"type=f64", "type=f32", "type=bf16-f32", "type=f16-f32", "type=bf16", "type=f16"};
  struct cb_nvrtc *nvrtc = open_nvrtc();
  int at = 0;
  for (const struct cb_architecture *row = cb_architecture_table; *row->target.arch; row++, at++) {
    char settings[64];
    if (row->refusal || !cb_nvrtc_supports(nvrtc, row->target.arch)) continue;
    snprintf(settings, sizeof settings, "recipe=cb atomics=%s %s", at % 2 ? "on" : "off", types[at % 6]);
    struct product product = product_of("random,rows=100,cols=5000,density=0.2", settings);
    compile_product(nvrtc, &product, row->target.arch, settings);
    product_release(&product);
  }
  cb_nvrtc_close(nvrtc);
}

/* ---- a missing library: these need none */

static void expect_missing(const char *path, const char *part) {
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc = (struct cb_nvrtc *)1;
  assert_int_equal(cb_nvrtc_open(&nvrtc, path, &diag), CB_ERR_MISSING);
  assert_null(nvrtc);
  assert_non_null(strstr(diag.message, "CBGEN_NVRTC")); /* the remedy */
  assert_non_null(strstr(diag.message, "pip install nvidia-cuda-nvrtc"));
  if (!strstr(diag.message, part)) fail_msg("'%s' lacks '%s'", diag.message, part);
}

static void a_missing_library_names_the_remedy(void **state) {
  (void)state;
  expect_missing("/nonexistent/libnvrtc.so", "/nonexistent/libnvrtc.so");
  expect_missing("/nonexistent", "/nonexistent");
  expect_missing("", "");
}

static void a_file_that_is_no_library_is_told(void **state) {
  (void)state;
  char path[512];
  const char *tmp = getenv("CBGEN_TEST_TMP");
  snprintf(path, sizeof path, "%s/libnvrtc.so.13", tmp ? tmp : "/tmp");
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs("this is text\n", file);
  fclose(file);
  expect_missing(path, "does not open");
  unlink(path);
}

static void a_library_without_the_functions_is_told(void **state) {
  (void)state;
  expect_missing("libm.so.6", "lacks 'nvrtcGetErrorString'");
}

static void the_environment_names_the_library(void **state) {
  (void)state;
  const char *old = getenv("CBGEN_NVRTC");
  char *kept = old ? strdup(old) : NULL;
  setenv("CBGEN_NVRTC", "/nonexistent/by-variable.so", 1);
  expect_missing(NULL, "/nonexistent/by-variable.so");
  if (kept)
    setenv("CBGEN_NVRTC", kept, 1);
  else
    unsetenv("CBGEN_NVRTC");
  free(kept);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(compiles_for_every_target),
      cmocka_unit_test(nothing_is_contracted),
      cmocka_unit_test(literals_are_read_bit_for_bit),
      cmocka_unit_test(says_what_it_is),
      cmocka_unit_test(failing_text_brings_the_log),
      cmocka_unit_test(strict_turns_warnings_into_errors),
      cmocka_unit_test(an_unknown_architecture_is_refused),
      cmocka_unit_test(every_recipe_compiles_without_spills),
      cmocka_unit_test(merge_beside_long_rows_does_not_spill),
      cmocka_unit_test(a_kernel_that_spills_is_compiled_for_fewer_blocks),
      cmocka_unit_test(every_architecture_of_the_table_compiles),
      cmocka_unit_test(a_missing_library_names_the_remedy),
      cmocka_unit_test(a_file_that_is_no_library_is_told),
      cmocka_unit_test(a_library_without_the_functions_is_told),
      cmocka_unit_test(the_environment_names_the_library),
  };
  return exit_code_of(cmocka_run_group_tests(tests, NULL, NULL));
}
