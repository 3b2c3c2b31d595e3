// SPDX-License-Identifier: Apache-2.0
/* Running and timing on a fake driver and a fake cuSPARSE, with the real NVRTC: every array, argument and
 * result goes its way; only the generated kernel does not run, a hook multiplies in its place. */
#include "tests/skips.h"
#include "tests/support.h"

#include "base/real.h"
#include "runtime/measure/bench.h"
#include "tests/fake_cusparse.h"
#include "tests/fake_driver.h"

#include <dlfcn.h>
#include <jansson.h>
#include <math.h>

static struct fake_control *fake;
static struct fake_cusparse *baselines;

/* What the hook needs to stand in for the kernel. */
struct stand_in {
  struct product product;
  int wrong; /* leave y alone */
};

static int arrays_of(const struct cb_region *region) {
  int stored = 0;
  for (int a = 0; a < region->arrays_count; a++) stored += region->arrays[a].storage == CB_STORED;
  return stored;
}

/* What the bench gives is real, whatever the type. */
static double scalar(const void *parameter, enum cb_type of_sum) {
  const enum cb_type type = cb_type_of_part(of_sum);
  return type == CB_F32 ? (double)*(const float *)parameter : *(const double *)parameter;
}

/* Row `row` of complex numbers, whose parts are `type`: both parts of A x. */
static void sum_parts(double sum[2], const struct cb_csr *csr, const void *x, enum cb_type type, int64_t row) {
  sum[0] = sum[1] = 0;
  for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
    const double a = cb_real_round(csr->values[2 * k], type), b = cb_real_round(csr->values[2 * k + 1], type);
    const int64_t at = 2 * (int64_t)csr->col_idx[k];
    const double re = cb_real_get(x, type, at), im = cb_real_get(x, type, at + 1);
    sum[0] += a * re - b * im;
    sum[1] += a * im + b * re;
  }
}

/* The first launch of a product computes all of it. */
static void multiply(void *user, const struct fake_launch *launch) {
  const struct stand_in *stand_in = user;
  const struct cb_plan *plan = stand_in->product.plan;
  const struct cb_csr *csr = stand_in->product.csr;
  const enum cb_type type = plan->vector_type;
  void **parameters = launch->parameters;
  char first[96];
  if (stand_in->wrong || !strncmp(launch->kernel, "cbgen_", 6)) return;
  char symbol[49];
  cb_symbol_from(csr->name, symbol);
  const struct cb_label label = {csr->name, symbol, {0, 0}};
  cb_source_kernel(plan, &label, 0, first, sizeof first);
  if (strcmp(launch->kernel, first)) return;
  for (int r = 0; r < plan->launches[0].regions && !plan->launches[0].body; r++)
    parameters += arrays_of(&plan->regions[r]) > 0;
  const uint64_t x = *(uint64_t *)parameters[0], y = *(uint64_t *)parameters[1];
  const int scaled = plan->form == CB_FORM_AXPBY;
  const double alpha = scaled ? scalar(parameters[2], plan->sum_type) : 1;
  const double beta = scaled ? scalar(parameters[3], plan->sum_type) : plan->form == CB_FORM_ADD;
  const void *from = fake_bytes(x, (size_t)csr->cols * cb_type_size(type));
  void *to = fake_bytes(y, (size_t)csr->rows * cb_type_size(type));
  assert_non_null(from);
  assert_non_null(to);
  for (int64_t row = 0; row < csr->rows && cb_type_is_complex(type); row++) {
    const enum cb_type part = cb_type_of_part(type);
    double sum[2];
    sum_parts(sum, csr, from, part, row);
    for (int64_t i = 2 * row; i < 2 * row + 2; i++)
      cb_real_set(to, part, i, alpha * sum[i % 2] + (beta != 0 ? beta * cb_real_get(to, part, i) : 0));
  }
  for (int64_t row = 0; row < csr->rows && !cb_type_is_complex(type); row++) {
    double sum = 0;
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      sum += cb_real_round(csr->values[k], plan->matrix_type) * cb_real_get(from, type, csr->col_idx[k]);
    cb_real_set(to, type, row, alpha * sum + (beta != 0 ? beta * cb_real_get(to, type, row) : 0));
  }
}

/* `variable` names the stand-in of one version. */
static struct fake_cusparse *open_baselines(const char *variable) {
  const char *path = getenv(variable);
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
  struct fake_cusparse **control = library ? dlsym(library, "fake_cusparse") : NULL;
  if (!control) return NULL;
  **control = (struct fake_cusparse){0};
  return *control;
}

static struct cb_bench_settings settings_of(int with_baselines) {
  struct cb_bench_settings settings;
  cb_bench_settings_default(&settings);
  settings.driver_path = getenv("CBGEN_FAKE_CUDA");
  settings.cusparse_path = getenv("CBGEN_FAKE_CUSPARSE");
  settings.ceilings = 0;
  settings.baselines = with_baselines;
  settings.repetitions = 3;
  settings.batches = 2;
  settings.launches = 2;
  return settings;
}

/* Fresh fakes; skips the test where there is no NVRTC. */
static void set_up(struct stand_in *stand_in, const char *matrix, const char *options) {
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc;
  if (cb_nvrtc_open(&nvrtc, NULL, &diag)) {
    skip_because(diag.message);
  }
  cb_nvrtc_close(nvrtc);
  fake = fake_open();
  baselines = open_baselines("CBGEN_FAKE_CUSPARSE");
  assert_non_null(fake);
  assert_non_null(baselines);
  fake->memory = 64 << 20;
  *stand_in = (struct stand_in){.product = product_of(matrix, options)};
  fake->hook = multiply;
  fake->user = stand_in;
}

/* The stand-in's plan must be the one that the bench makes for the fake device. */
static void plan_for(struct stand_in *stand_in, const struct cb_bench *bench) {
  struct cb_diag diag = {0};
  cb_assignment_free(stand_in->product.assignment);
  cb_plan_free(stand_in->product.plan);
  assert_ok(cb_plan_build(&stand_in->product.plan, &stand_in->product.assignment, stand_in->product.csr,
                          &bench->device->target, &stand_in->product.options, &diag));
}

static void tear_down(struct stand_in *stand_in) {
  product_release(&stand_in->product);
  assert_string_equal(fake->misuse, "");
  assert_string_equal(baselines->misuse, "");
  assert_true(fake_is_clean(fake));
  assert_int_equal(baselines->live, 0);
}

static const struct cb_baseline_result *baseline_named(const struct cb_bench_result *result, const char *name) {
  for (int i = 0; i < result->baselines_count; i++)
    if (!strcmp(result->baselines[i].baseline.name, name)) return &result->baselines[i];
  fail_msg("no baseline '%s'", name);
  return NULL;
}

/* ---- the whole way */

static const struct {
  const char *matrix, *options, *applying; /* baselines that must apply, between spaces; the others must not */
} cases[] = {
    {"block,blocks_r=40,r=3,c=3,per_row=2", "form=ax",
     " csr-alg1 csr-alg2 spmvop-alg1 spmvop-alg2 coo-alg1 coo-alg2 sell-16 sell-32 sell-64 sell-128 bsr-3 bsrmv-3 "},
    {"block,blocks_r=40,r=3,c=3,per_row=2", "form=axpby type=f32",
     " csr-alg1 csr-alg2 spmvop-alg1 spmvop-alg2 coo-alg1 coo-alg2 sell-16 sell-32 sell-64 sell-128 bsr-3 bsrmv-3 "},
    {"dense,rows=49,cols=31", "form=add",
     " csr-alg1 csr-alg2 spmvop-alg1 spmvop-alg2 coo-alg1 coo-alg2 sell-16 sell-32 sell-64 sell-128 "
     "bsr-2 bsrmv-2 bsr-3 bsrmv-3 bsr-4 bsrmv-4 bsr-5 bsrmv-5 bsr-6 bsrmv-6 bsr-8 bsrmv-8 "},
    {"dense_row,n=400", "form=ax type=f32", " csr-alg1 csr-alg2 spmvop-alg1 spmvop-alg2 coo-alg1 coo-alg2 "},
    {"random,rows=90,cols=120,density=0.02", "form=axpby",
     " csr-alg1 csr-alg2 spmvop-alg1 spmvop-alg2 coo-alg1 coo-alg2 sell-16 sell-32 sell-64 sell-128 "},
    {"block,blocks_r=40,r=3,c=3,per_row=2", "form=axpby type=split-f64",
     " csr-alg1 csr-alg2 spmvop-alg1 spmvop-alg2 coo-alg1 coo-alg2 sell-16 sell-32 sell-64 sell-128 bsr-3 bsrmv-3 "},
    {"block,blocks_r=40,r=3,c=3,per_row=2", "form=axpby type=f32-f64",
     " csr-alg1 csr-alg2 coo-alg1 coo-alg2 sell-16 sell-32 sell-64 sell-128 bsr-3 "},
    {"block,blocks_r=40,r=3,c=3,per_row=2", "form=axpby type=f16-f32",
     " csr-alg1 csr-alg2 coo-alg1 coo-alg2 sell-16 sell-32 sell-64 sell-128 bsr-3 "},
    {"block,blocks_r=40,r=3,c=3,per_row=2", "form=add type=bf16-f32",
     " csr-alg1 csr-alg2 coo-alg1 coo-alg2 sell-16 sell-32 sell-64 sell-128 bsr-3 "},
    {"block,blocks_r=40,r=3,c=3,per_row=2", "form=axpby type=f16",
     " csr-alg1 csr-alg2 coo-alg1 coo-alg2 sell-16 sell-32 sell-64 sell-128 bsr-3 "},
    {"block,blocks_r=40,r=3,c=3,per_row=2", "form=add type=bf16",
     " csr-alg1 csr-alg2 coo-alg1 coo-alg2 sell-16 sell-32 sell-64 sell-128 bsr-3 "},
    {"block,blocks_r=40,r=3,c=3,per_row=2", "form=axpby type=c128 recipe=auto",
     " csr-alg1 csr-alg2 coo-alg1 coo-alg2 sell-16 sell-32 sell-64 sell-128 bsr-3 "},
    {"block,blocks_r=40,r=3,c=3,per_row=2", "form=add type=c64 recipe=sell",
     " csr-alg1 csr-alg2 coo-alg1 coo-alg2 sell-16 sell-32 sell-64 sell-128 bsr-3 "},
    {"empty,rows=50,cols=40", "form=ax", " "},
    {"empty,rows=0,cols=4", "form=ax", ""},
};

static void check_baselines(const struct cb_bench_result *result, const char *applying) {
  assert_int_equal(result->baselines_count > 0, *applying != 0);
  for (int i = 0; i < result->baselines_count; i++) {
    const struct cb_baseline_result *one = &result->baselines[i];
    char word[32];
    snprintf(word, sizeof word, " %s ", one->baseline.name);
    if (!one->baseline.applies != !strstr(applying, word))
      fail_msg("%s applies: %d, %s", one->baseline.name, one->baseline.applies, one->baseline.reason);
    assert_int_equal(one->wrong, 0);
    assert_int_equal(!*one->baseline.reason, one->baseline.applies);
    if (one->baseline.applies) assert_true(one->timing.us > 0 && one->timing.least_us <= one->timing.us);
  }
}

static void check_texts(const struct cb_bench *bench, const struct cb_bench_result *result) {
  struct cb_diag diag = {0};
  struct cb_text text = {0};
  json_error_t error;
  assert_ok(cb_bench_json(&text, bench, result, &diag));
  assert_null(strchr(cb_text_string(&text), '\n'));
  json_t *json = json_loads(cb_text_string(&text), 0, &error);
  assert_non_null(json);
  assert_int_equal(json_integer_value(json_object_get(json, "nnz")), result->run.nnz);
  assert_int_equal(json_array_size(json_object_get(json, "baselines")), result->baselines_count);
  assert_int_equal(json_array_size(json_object_get(json, "kernels")), result->run.cubin.count);
  assert_string_equal(json_string_value(json_object_get(json, "plan")), result->run.plan);
  json_decref(json);
  cb_text_release(&text);
  assert_ok(cb_run_json(&text, bench, &result->run, &diag));
  json = json_loads(cb_text_string(&text), 0, &error);
  assert_non_null(json);
  json_decref(json);
  cb_text_release(&text);
  cb_bench_markdown_head(&text, bench);
  cb_bench_markdown_row(&text, result);
  const char *head = strstr(cb_text_string(&text), "| matrix");
  int bars[3] = {0}; /* the head, the line below it, the row */
  assert_non_null(head);
  for (int line = 0; line < 3; line++, head = strchr(head, '\n') + 1)
    for (const char *c = head; *c != '\n'; c++) bars[line] += *c == '|';
  assert_int_equal(bars[0], bars[1]);
  assert_int_equal(bars[0], bars[2]);
  cb_bench_report(&text, bench, result);
  assert_non_null(strstr(cb_text_string(&text), result->run.plan));
  assert_false(text.failed);
  cb_text_release(&text);
}

static void matrices_are_measured(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_diag diag = {0};
    struct stand_in stand_in;
    struct cb_bench *bench;
    struct cb_bench_result result;
    set_up(&stand_in, cases[i].matrix, cases[i].options);
    const struct cb_bench_settings settings = settings_of(1);
    assert_ok(cb_bench_open(&bench, &settings, &diag));
    assert_string_equal(bench->missing, "");
    plan_for(&stand_in, bench);
    assert_ok(cb_bench_matrix(&result, bench, stand_in.product.csr, &stand_in.product.options, &diag));
    assert_int_equal(result.run.check.wrong, 0);
    const int parts = cb_type_parts(stand_in.product.plan->vector_type);
    assert_int_equal(result.run.check.rows, parts * stand_in.product.csr->rows);
    assert_true(result.run.repeatable);
    assert_int_equal(result.run.timing.launches, stand_in.product.csr->rows ? 2 : 0);
    check_baselines(&result, cases[i].applying);
    assert_int_equal(result.best >= 0, strlen(cases[i].applying) > 1);
    check_texts(bench, &result);
    cb_bench_result_release(&result);
    cb_bench_close(bench);
    tear_down(&stand_in);
  }
}

/* What SpMVOp takes has changed twice under the same names; each stand-in has the parameters of its version, and sees
 * those of another as arrays outside of memory. */
static const struct {
  const char *variable, *version, *applying; /* of the two SpMVOp */
  const char *reason;                        /* of spmvop-alg1, in part */
} versions[] = {
    {"CBGEN_FAKE_CUSPARSE_120603", "12.6.3", " ", "cuSPARSE 12.6.3 has no SpMVOp that is known here"},
    {"CBGEN_FAKE_CUSPARSE_120702", "12.7.2", " spmvop-alg2 ", "SpMVOp of cuSPARSE 12.7.2 has one algorithm"},
    {"CBGEN_FAKE_CUSPARSE_120710", "12.7.10", " spmvop-alg2 ", "SpMVOp of cuSPARSE 12.7.10 has one algorithm"},
    {"CBGEN_FAKE_CUSPARSE_120801", "12.8.1", " spmvop-alg1 spmvop-alg2 ", ""},
    {"CBGEN_FAKE_CUSPARSE", "12.9.4", " spmvop-alg1 spmvop-alg2 ", ""},
    {"CBGEN_FAKE_CUSPARSE_121000", "12.10.0", " ", "12.7.2 to 12.9 have"}, /* may have changed again */
    {"CBGEN_FAKE_CUSPARSE_130000", "13.0.0", " ", "pip install nvidia-cusparse"},
};

/* JSON, the table's head and the report, each with the version that was measured against. */
static void check_version(const struct cb_bench *bench, const struct cb_bench_result *result, const char *version) {
  struct cb_diag diag = {0};
  struct cb_text text = {0};
  json_error_t error;
  char named[32];
  snprintf(named, sizeof named, "cuSPARSE %s ", version);
  cb_bench_report(&text, bench, result);
  assert_non_null(strstr(cb_text_string(&text), named));
  named[strlen(named) - 1] = 0;
  cb_text_release(&text);
  cb_bench_markdown_head(&text, bench);
  assert_non_null(strstr(cb_text_string(&text), named));
  cb_text_release(&text);
  assert_ok(cb_bench_json(&text, bench, result, &diag));
  json_t *json = json_loads(cb_text_string(&text), 0, &error);
  assert_non_null(json);
  assert_string_equal(json_string_value(json_object_get(json_object_get(json, "device"), "cusparse")), version);
  json_t *baseline = json_array_get(json_object_get(json, "baselines"), 0);
  assert_true(json_real_value(json_object_get(baseline, "prepare_ms")) > 0);
  json_decref(json);
  cb_text_release(&text);
}

static void check_spmvop(const struct cb_bench_result *result, const char *applying, const char *reason) {
  static const char *const names[] = {"spmvop-alg1", "spmvop-alg2"};
  for (int i = 0; i < 2; i++) {
    const struct cb_baseline_result *one = baseline_named(result, names[i]);
    char word[32];
    snprintf(word, sizeof word, " %s ", names[i]);
    assert_int_equal(one->baseline.applies, !!strstr(applying, word));
    assert_int_equal(one->wrong, 0);
    if (one->baseline.applies) assert_true(one->timing.us > 0 && one->baseline.prepare_seconds > 0);
  }
  assert_non_null(strstr(baseline_named(result, names[0])->baseline.reason, reason));
}

static void every_version_of_spmvop_is_called_its_own_way(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
    struct cb_diag diag = {0};
    struct stand_in stand_in;
    struct cb_bench *bench;
    struct cb_bench_result result;
    set_up(&stand_in, "random,rows=90,cols=120,density=0.05", "form=axpby");
    struct cb_bench_settings settings = settings_of(1);
    settings.cusparse_path = getenv(versions[i].variable);
    baselines = open_baselines(versions[i].variable);
    assert_non_null(baselines);
    assert_ok(cb_bench_open(&bench, &settings, &diag));
    assert_string_equal(bench->missing, "");
    plan_for(&stand_in, bench);
    assert_ok(cb_bench_matrix(&result, bench, stand_in.product.csr, &stand_in.product.options, &diag));
    check_spmvop(&result, versions[i].applying, versions[i].reason);
    check_version(bench, &result, versions[i].version);
    cb_bench_result_release(&result);
    cb_bench_close(bench);
    tear_down(&stand_in);
  }
}

/* Where cuSPARSE has no such product, it multiplies the rounded matrix in f64. */
static void baselines_without_mixed_types_take_f64(void **state) {
  struct cb_diag diag = {0};
  struct stand_in stand_in;
  struct cb_bench *bench;
  struct cb_bench_result result;
  (void)state;
  set_up(&stand_in, "uniform,n=90,per_row=4", "form=ax type=f32-f64");
  baselines->uniform = 1;
  const struct cb_bench_settings settings = settings_of(1);
  assert_ok(cb_bench_open(&bench, &settings, &diag));
  plan_for(&stand_in, bench);
  assert_ok(cb_bench_matrix(&result, bench, stand_in.product.csr, &stand_in.product.options, &diag));
  assert_int_equal(result.run.check.wrong, 0);
  assert_string_equal(result.run.type, "f32-f64");
  assert_non_null(result.baseline_types);
  assert_non_null(strstr(result.baseline_types, "f64"));
  check_baselines(&result,
                  " csr-alg1 csr-alg2 spmvop-alg1 spmvop-alg2 coo-alg1 coo-alg2 sell-16 sell-32 sell-64 sell-128 ");
  check_texts(bench, &result);
  cb_bench_result_release(&result);
  cb_bench_close(bench);
  tear_down(&stand_in);
}

/* A kernel that does nothing leaves NaN everywhere. */
/* Every variant goes through the real NVRTC; the winner is then measured like any other. */
static void tuning_comes_first(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct stand_in stand_in;
  struct cb_bench *bench;
  struct cb_bench_result result;
  struct cb_text text = {0};
  set_up(&stand_in, "fe3,n=3", "form=ax recipe=auto tune=measure");
  struct cb_bench_settings settings = settings_of(0);
  settings.candidates = 1;
  assert_ok(cb_bench_open(&bench, &settings, &diag));
  plan_for(&stand_in, bench);
  assert_ok(cb_bench_matrix(&result, bench, stand_in.product.csr, &stand_in.product.options, &diag));
  const struct cb_tuning *tuning = &result.run.tuning;
  assert_true(tuning->count >= 3);
  for (int i = 0; i < tuning->count; i++) {
    assert_string_equal(tuning->variants[i].reason, "");
    assert_true(tuning->variants[i].measured_ns >= tuning->variants[tuning->winner].measured_ns);
  }
  assert_string_equal(result.run.recipe, tuning->variants[tuning->winner].recipe);
  assert_true(result.run.stages.tune > 0 && result.run.stages.plan == 0);
  assert_int_equal(result.run.check.wrong, 0);
  assert_true(result.run.candidates_count >= 5);
  cb_bench_report(&text, bench, &result);
  assert_non_null(strstr(cb_text_string(&text), "  tuning    "));
  cb_text_release(&text);
  cb_bench_result_release(&result);
  cb_bench_close(bench);
  tear_down(&stand_in);
}

/* The stand-in adds up in another order than the kernel that the emulation executes; a row of one nonzero has none. */
static void other_bits_than_the_emulation_are_seen(void **state) {
  static const struct {
    const char *matrix;
    int differs;
  } kernels[] = {{"dense,rows=70,cols=300", 1}, {"diagonal,n=300", 0}};
  (void)state;
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    struct cb_diag diag = {0};
    struct stand_in stand_in;
    struct cb_bench *bench;
    struct cb_run_result result;
    set_up(&stand_in, kernels[i].matrix, "form=ax");
    struct cb_bench_settings settings = settings_of(0);
    settings.emulate = 1;
    assert_ok(cb_bench_open(&bench, &settings, &diag));
    plan_for(&stand_in, bench);
    assert_ok(cb_run_matrix(&result, bench, stand_in.product.csr, &stand_in.product.options, &diag));
    assert_int_equal(result.check.wrong, 0);
    assert_int_equal(result.emulated, 1);
    assert_int_equal(result.first_other >= 0, kernels[i].differs);
    cb_run_result_release(&result);
    cb_bench_close(bench);
    tear_down(&stand_in);
  }
}

static void a_wrong_kernel_is_seen(void **state) {
  struct cb_diag diag = {0};
  struct stand_in stand_in;
  struct cb_bench *bench;
  struct cb_run_result result;
  (void)state;
  set_up(&stand_in, "fe3,n=3", "form=ax");
  stand_in.wrong = 1;
  const struct cb_bench_settings settings = settings_of(0);
  assert_ok(cb_bench_open(&bench, &settings, &diag));
  assert_ok(cb_run_matrix(&result, bench, stand_in.product.csr, &stand_in.product.options, &diag));
  assert_int_equal(result.check.wrong, stand_in.product.csr->rows);
  cb_run_result_release(&result);
  cb_bench_close(bench);
  tear_down(&stand_in);
}

static void a_wrong_baseline_is_seen(void **state) {
  enum { SELL_ALG1 = 5, OP_ALG2 = 2 };
  struct cb_diag diag = {0};
  struct stand_in stand_in;
  struct cb_bench *bench;
  struct cb_bench_result result;
  (void)state;
  set_up(&stand_in, "fe3,n=3", "form=ax");
  baselines->lie = SELL_ALG1;
  baselines->op_lie = OP_ALG2;
  const struct cb_bench_settings settings = settings_of(1);
  assert_ok(cb_bench_open(&bench, &settings, &diag));
  plan_for(&stand_in, bench);
  assert_ok(cb_bench_matrix(&result, bench, stand_in.product.csr, &stand_in.product.options, &diag));
  assert_int_equal(baseline_named(&result, "sell-32")->wrong, stand_in.product.csr->rows);
  assert_int_equal(baseline_named(&result, "csr-alg2")->wrong, 0);
  assert_int_equal(baseline_named(&result, "spmvop-alg1")->wrong, 0);
  assert_int_equal(baseline_named(&result, "spmvop-alg2")->wrong, stand_in.product.csr->rows);
  assert_true(result.best >= 0);
  assert_null(strstr(result.baselines[result.best].baseline.name, "sell"));
  assert_string_not_equal(result.baselines[result.best].baseline.name, "spmvop-alg2");
  cb_bench_result_release(&result);
  cb_bench_close(bench);
  tear_down(&stand_in);
}

static void ceilings_are_measured(void **state) {
  struct cb_diag diag = {0};
  struct stand_in stand_in;
  struct cb_bench *bench;
  (void)state;
  set_up(&stand_in, "fe3,n=2", "form=ax");
  struct cb_bench_settings settings = settings_of(0);
  settings.ceilings = 1;
  assert_ok(cb_bench_open(&bench, &settings, &diag));
  assert_true(bench->ceilings.bytes > 0);
  assert_true(bench->ceilings.read_gb_per_s > 0 && isfinite(bench->ceilings.read_gb_per_s));
  assert_true(bench->ceilings.copy_gb_per_s > 0 && isfinite(bench->ceilings.copy_gb_per_s));
  assert_true(fabs(bench->ceilings.launch_us - 5) < 0.1); /* the fake clock's launch */
  cb_bench_close(bench);
  tear_down(&stand_in);
}

/* ---- what is missing, and what fails */

static void without_cusparse_it_goes_on(void **state) {
  struct cb_diag diag = {0};
  struct stand_in stand_in;
  struct cb_bench *bench;
  struct cb_bench_result result;
  (void)state;
  set_up(&stand_in, "fe3,n=2", "form=ax");
  struct cb_bench_settings settings = settings_of(1);
  settings.cusparse_path = "/nowhere/libcusparse.so.12";
  assert_ok(cb_bench_open(&bench, &settings, &diag));
  assert_null(bench->cusparse);
  assert_non_null(strstr(bench->missing, "/nowhere/libcusparse.so.12"));
  assert_non_null(strstr(bench->missing, "nvidia-cusparse"));
  plan_for(&stand_in, bench);
  assert_ok(cb_bench_matrix(&result, bench, stand_in.product.csr, &stand_in.product.options, &diag));
  assert_int_equal(result.baselines_count, 0);
  check_texts(bench, &result);
  cb_bench_result_release(&result);
  cb_bench_close(bench);
  tear_down(&stand_in);
}

static void without_nvrtc_it_says_so(void **state) {
  struct cb_diag diag = {0};
  struct stand_in stand_in;
  struct cb_bench *bench;
  (void)state;
  set_up(&stand_in, "fe3,n=2", "form=ax");
  struct cb_bench_settings settings = settings_of(0);
  settings.nvrtc_path = "/nowhere/libnvrtc.so.13";
  assert_int_equal(cb_bench_open(&bench, &settings, &diag), CB_ERR_MISSING);
  assert_null(bench);
  assert_non_null(strstr(diag.message, "nvidia-cuda-nvrtc"));
  tear_down(&stand_in);
}

/* Opens, measures and closes; whatever fails on the way must leave nothing behind. */
static enum cb_status once(struct stand_in *stand_in, const struct cb_bench_settings *settings,
                           struct cb_diag *diag) {
  struct cb_bench *bench;
  struct cb_bench_result result;
  enum cb_status s = cb_bench_open(&bench, settings, diag);
  if (s) return s;
  s = cb_bench_matrix(&result, bench, stand_in->product.csr, &stand_in->product.options, diag);
  cb_bench_result_release(&result);
  cb_bench_close(bench);
  return s;
}

/* A refusal of cuSPARSE takes one baseline out, or all; it is never an error of the whole but while timing. */
static void failing_cusparse_calls_leave_nothing(void **state) {
  struct stand_in stand_in;
  int refused = 0;
  (void)state;
  set_up(&stand_in, "fe3,n=2", "form=ax");
  stand_in.wrong = 1; /* the hook would need the bench's plan; the product does not matter here */
  struct cb_bench_settings settings = settings_of(1);
  settings.repetitions = settings.batches = settings.launches = 1;
  for (long nth = 1;; nth += 23) {
    struct cb_diag diag = {0};
    *baselines = (struct fake_cusparse){.fail_at = nth};
    const enum cb_status s = once(&stand_in, &settings, &diag);
    assert_true(s == CB_OK || s == CB_ERR_DEVICE);
    assert_string_equal(baselines->misuse, "");
    assert_int_equal(baselines->live, 0);
    assert_true(fake_is_clean(fake));
    refused += s != CB_OK;
    if (baselines->calls < nth) break;
  }
  assert_true(refused > 0);
  tear_down(&stand_in);
}

/* Sizing, describing, planning and multiplying: what fails takes out the algorithm that asked, and no other. */
static void a_refusal_by_spmvop_takes_out_one_baseline(void **state) {
  enum { CALLS = 4 }; /* of each algorithm while baselines are opened */
  struct stand_in stand_in;
  struct cb_bench *bench;
  struct cb_diag diag = {0};
  (void)state;
  set_up(&stand_in, "uniform,n=9,per_row=2", "form=ax");
  stand_in.wrong = 1; /* as above */
  struct cb_bench_settings settings = settings_of(1);
  settings.repetitions = settings.batches = settings.launches = 1;
  assert_ok(cb_bench_open(&bench, &settings, &diag));
  for (long nth = 1; nth <= 2 * CALLS; nth++) {
    struct cb_bench_result result;
    baselines->op_calls = 0;
    baselines->op_fail_at = nth;
    assert_ok(cb_bench_matrix(&result, bench, stand_in.product.csr, &stand_in.product.options, &diag));
    const struct cb_baseline *out = &baseline_named(&result, nth <= CALLS ? "spmvop-alg1" : "spmvop-alg2")->baseline;
    const struct cb_baseline *in = &baseline_named(&result, nth <= CALLS ? "spmvop-alg2" : "spmvop-alg1")->baseline;
    assert_false(out->applies);
    assert_non_null(strstr(out->reason, "operation not supported"));
    assert_true(in->applies);
    cb_bench_result_release(&result);
  }
  cb_bench_close(bench);
  tear_down(&stand_in);
}

static void failing_driver_calls_leave_nothing(void **state) {
  struct stand_in stand_in;
  (void)state;
  set_up(&stand_in, "fe3,n=2", "form=ax");
  stand_in.wrong = 1;
  struct cb_bench_settings settings = settings_of(0);
  settings.repetitions = settings.batches = settings.launches = 1;
  for (long nth = 1;; nth += 3) {
    struct cb_diag diag = {0};
    fake->calls = 0;
    fake->fail_at = nth;
    fake->failure = 999;
    const enum cb_status s = once(&stand_in, &settings, &diag);
    if (fake->calls < nth) {
      assert_int_equal(s, CB_OK);
      break;
    }
    if (s) assert_true(strlen(diag.message) > 10);
    assert_string_equal(fake->misuse, "");
    assert_true(fake_is_clean(fake));
  }
  fake->fail_at = 0;
  tear_down(&stand_in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matrices_are_measured),
      cmocka_unit_test(every_version_of_spmvop_is_called_its_own_way),
      cmocka_unit_test(tuning_comes_first),
      cmocka_unit_test(other_bits_than_the_emulation_are_seen),
      cmocka_unit_test(a_wrong_kernel_is_seen),
      cmocka_unit_test(a_wrong_baseline_is_seen),
      cmocka_unit_test(baselines_without_mixed_types_take_f64),
      cmocka_unit_test(ceilings_are_measured),
      cmocka_unit_test(without_cusparse_it_goes_on),
      cmocka_unit_test(without_nvrtc_it_says_so),
      cmocka_unit_test(failing_cusparse_calls_leave_nothing),
      cmocka_unit_test(a_refusal_by_spmvop_takes_out_one_baseline),
      cmocka_unit_test(failing_driver_calls_leave_nothing),
  };
  return exit_code_of(cmocka_run_group_tests(tests, NULL, NULL));
}
