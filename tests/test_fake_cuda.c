// SPDX-License-Identifier: Apache-2.0
/* The fake CUDA itself: generated kernels go through its NVRTC and its driver and multiply; graphs replay,
 * GPUs and threads work side by side; misuse, traps and failing calls are noticed. */
#include "tests/support.h"

#include "runtime/cubin.h"
#include "runtime/nvrtc.h"
#include "runtime/operator.h"
#include "runtime/oracle.h"
#include "tests/fake_driver.h"

#include <math.h>
#include <pthread.h>

static struct fake_control *fake;

/* The functions of the application's side. */
static uint64_t (*app_alloc)(int device, size_t bytes);
static void (*app_free)(uint64_t address);
static int (*app_put)(uint64_t to, const void *from, size_t bytes);
static int (*app_take)(void *to, uint64_t from, size_t bytes);
static void (*app_set_current)(int device);
static void *(*app_stream)(int device, unsigned flags);
static void (*app_stream_free)(void *stream);
static void (*app_trap_taken)(void);

static void bind(void *function, const char *name) {
  void *symbol = fake_symbol(name);
  assert_non_null(symbol);
  memcpy(function, &symbol, sizeof symbol);
}

/* One matrix, compiled and loaded on one GPU. */
struct bed {
  struct product product;
  struct cb_label label;
  struct cb_driver *driver;
  struct cb_device *device;
  struct cb_operator *op;
};

static int open_fake(void **state) {
  (void)state;
  fake = fake_open();
  if (!fake) return -1;
  bind(&app_alloc, "fake_alloc");
  bind(&app_free, "fake_free");
  bind(&app_put, "fake_put");
  bind(&app_take, "fake_take");
  bind(&app_set_current, "fake_set_current");
  bind(&app_stream, "fake_stream");
  bind(&app_stream_free, "fake_stream_free");
  bind(&app_trap_taken, "fake_trap_taken");
  return 0;
}

static int check_fake(void **state) {
  (void)state;
  if (*fake->misuse) print_error("%s\n", fake->misuse);
  return !fake_is_clean(fake);
}

static enum cb_status compile(struct cb_compiled *compiled, const struct product *product,
                              struct cb_diag *diag) {
  struct cb_nvrtc *nvrtc;
  enum cb_status s = cb_nvrtc_open(&nvrtc, getenv("CBGEN_FAKE_CUDA"), diag);
  const struct cb_nvrtc_options options = {.arch = product->target.arch};
  if (!s) s = cb_nvrtc_compile(compiled, nvrtc, product->source.text, "kernel.cu", &options, diag);
  cb_nvrtc_close(nvrtc);
  return s;
}

/* NVRTC, driver, device, operator. Release the bed in any case. */
static enum cb_status load(struct bed *bed, int device, struct cb_diag *diag) {
  struct cb_compiled compiled = {0};
  struct cb_image image = {0};
  bed->label = (struct cb_label){"test", "test", cb_csr_pattern_hash(bed->product.csr)};
  enum cb_status s = cb_driver_open(&bed->driver, getenv("CBGEN_FAKE_CUDA"), diag);
  if (!s) s = cb_device_open(&bed->device, bed->driver, device, diag);
  if (!s) s = compile(&compiled, &bed->product, diag);
  const struct cb_image_parts parts = {.plan = bed->product.plan,
                                       .label = &bed->label,
                                       .blob = &bed->product.blob,
                                       .source = &bed->product.source,
                                       .cubin = compiled.cubin,
                                       .cubin_bytes = compiled.cubin_bytes};
  if (!s) s = cb_image_from_plan(&image, &parts, diag);
  if (!s) s = cb_operator_load(&bed->op, bed->device, &image, 0, diag);
  cb_image_release(&image);
  cb_compiled_release(&compiled);
  return s;
}

static void unload(struct bed *bed) {
  cb_operator_free(bed->op);
  cb_device_close(bed->device);
  cb_driver_close(bed->driver);
  bed->op = NULL, bed->device = NULL, bed->driver = NULL;
}

static struct bed bed_of(const char *matrix, const char *options, int device) {
  struct cb_diag diag = {0};
  struct bed bed = {.product = product_of(matrix, options)};
  assert_ok(load(&bed, device, &diag));
  return bed;
}

static void release(struct bed *bed) {
  unload(bed);
  product_release(&bed->product);
}

/* ---- vectors of the application on a GPU, and products with them */

struct vectors {
  double *x, *y; /* the host's copies; y before the product */
  uint64_t x_there, y_there;
  int64_t rows, cols;
  enum cb_type type;
};

static void fill(struct vectors *vectors, uint64_t seed) {
  const size_t size = cb_type_size(vectors->type);
  char *bytes = calloc((size_t)(vectors->rows + vectors->cols + 1), size);
  assert_non_null(bytes);
  for (int64_t i = 0; i < vectors->cols; i++) {
    vectors->x[i] = cb_oracle_round((double)(draw(&seed) >> 12) * 0x1p-51 - 1, vectors->type);
    cb_oracle_set(bytes, vectors->type, i, vectors->x[i]);
  }
  if (vectors->cols) assert_true(app_put(vectors->x_there, bytes, (size_t)vectors->cols * size));
  for (int64_t i = 0; i < vectors->rows; i++) {
    vectors->y[i] = cb_oracle_round((double)(draw(&seed) >> 12) * 0x1p-51 - 1, vectors->type);
    cb_oracle_set(bytes, vectors->type, i, vectors->y[i]);
  }
  if (vectors->rows) assert_true(app_put(vectors->y_there, bytes, (size_t)vectors->rows * size));
  free(bytes);
}

static struct vectors vectors_for(const struct bed *bed, int device, uint64_t seed) {
  const struct cb_csr *csr = bed->product.csr;
  struct vectors vectors = {.rows = csr->rows, .cols = csr->cols, .type = bed->product.plan->vector_type};
  vectors.x = calloc((size_t)csr->cols + 1, sizeof *vectors.x);
  vectors.y = calloc((size_t)csr->rows + 1, sizeof *vectors.y);
  vectors.x_there = app_alloc(device, (size_t)csr->cols * cb_type_size(vectors.type) + 1);
  vectors.y_there = app_alloc(device, (size_t)csr->rows * cb_type_size(vectors.type) + 1);
  assert_true(vectors.x && vectors.y && vectors.x_there && vectors.y_there);
  fill(&vectors, seed);
  return vectors;
}

static void release_vectors(struct vectors *vectors) {
  free(vectors->x);
  free(vectors->y);
  app_free(vectors->x_there);
  app_free(vectors->y_there);
}

/* Whether y on the GPU is what the product of the host's copies gives. */
static void check_result(const struct bed *bed, const struct vectors *vectors, double alpha, double beta) {
  struct cb_diag diag = {0};
  struct cb_expected expected = {0};
  struct cb_comparison comparison;
  const struct cb_product product = {.types = cb_oracle_types_of(bed->product.plan),
                                     .x = vectors->x,
                                     .y = vectors->y,
                                     .alpha = alpha,
                                     .beta = beta};
  const size_t bytes = (size_t)vectors->rows * cb_type_size(vectors->type);
  void *y = calloc(bytes + 1, 1);
  assert_non_null(y);
  if (bytes) assert_true(app_take(y, vectors->y_there, bytes));
  assert_ok(cb_oracle_multiply(&expected, bed->product.csr, &product, &diag));
  cb_oracle_compare(&comparison, &expected, y, vectors->type);
  assert_int_equal(comparison.rows, vectors->rows);
  if (comparison.wrong)
    fail_msg("%lld rows are wrong, first %lld: %g instead of %Lg", (long long)comparison.wrong,
             (long long)comparison.first_wrong, comparison.got, comparison.expected);
  cb_expected_release(&expected);
  free(y);
}

static enum cb_status multiply(const struct bed *bed, const struct vectors *vectors, double alpha,
                               double beta, void *stream, struct cb_diag *diag) {
  enum cb_status s = cb_device_enter(bed->device, diag);
  if (s) return s;
  s = cb_operator_multiply(bed->op, alpha, vectors->x_there, beta, vectors->y_there, stream, diag);
  cb_device_leave(bed->device);
  return s;
}

/* ---- kernels are executed */

static const struct {
  const char *matrix, *options;
} cases[] = {
    {"random,rows=300,cols=200,density=0.05", "recipe=cb form=axpby"},
    {"random,rows=300,cols=200,density=0.05", "recipe=cb form=axpby type=f32 bake-limit=0"},
    {"random,rows=100,cols=5000,density=0.2", "recipe=cb unit-budget=512 form=axpby"}, /* carries */
    {"random,rows=300,cols=200,density=0.3", "recipe=cb atomics=on balance=heap form=axpby"},
    {"random,rows=300,cols=200,density=0.05", "recipe=sell form=axpby"},
    {"stencil5,n=20", "recipe=dia form=axpby"},
    {"fe3,n=4", "recipe=blocks form=axpby"},
    {"empty,rows=50,cols=40", "form=axpby"},
    {"empty,rows=0,cols=9", "form=axpby"},
};
enum { CASES = sizeof cases / sizeof *cases, CARRIES = 2 };

static void kernels_multiply(void **state) {
  (void)state;
  long executed = 0;
  int with_carry = 0;
  for (int c = 0; c < CASES; c++) {
    struct cb_diag diag = {0};
    struct bed bed = bed_of(cases[c].matrix, cases[c].options, 0);
    struct vectors vectors = vectors_for(&bed, 0, (uint64_t)c);
    for (int i = 0; i < 3; i++) {
      fill(&vectors, (uint64_t)(10 * c + i));
      assert_ok(multiply(&bed, &vectors, 1.25, i ? -0.5 : 0, NULL, &diag));
      check_result(&bed, &vectors, 1.25, i ? -0.5 : 0);
    }
    executed += 3 * cb_operator_info(bed.op)->launches;
    assert_int_equal(fake->executed, executed);
    with_carry += cb_operator_info(bed.op)->has_carry;
    release_vectors(&vectors);
    release(&bed);
  }
  assert_int_equal(with_carry, 1);
}

/* ---- NVRTC */

static void an_image_reads_as_a_cubin(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_compiled first, second;
  struct cb_cubin_stats stats;
  char name[96];
  struct product product = product_of(cases[CARRIES].matrix, cases[CARRIES].options);
  const struct cb_label label = {"test", "test", cb_csr_pattern_hash(product.csr)};
  fake->registers = 55;
  fake->stack_bytes = 16;
  assert_ok(compile(&first, &product, &diag));
  assert_ok(compile(&second, &product, &diag));
  assert_int_equal(fake->compilations, 2);
  assert_int_equal(first.cubin_bytes, second.cubin_bytes);
  assert_memory_equal(first.cubin, second.cubin, first.cubin_bytes);
  assert_ok(cb_cubin_stats(&stats, first.cubin, first.cubin_bytes, &diag));
  assert_int_equal(stats.count, product.plan->launches_count);
  cb_source_kernel(product.plan, &label, 0, name, sizeof name);
  assert_string_equal(stats.kernels[0].name, name);
  assert_int_equal(stats.kernels[0].registers, 55);
  assert_int_equal(stats.kernels[0].stack_bytes, 16);
  assert_int_equal(stats.kernels[0].static_shared, 0);
  assert_true(stats.kernels[0].code_bytes > 0);
  cb_cubin_stats_release(&stats);
  cb_compiled_release(&first);
  cb_compiled_release(&second);
  product_release(&product);
}

static void nvrtc_refuses_what_it_is_told(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc;
  struct cb_compiled compiled;
  struct cb_nvrtc_options options = {.arch = "sm_90"};
  int major, minor;
  fake->nvrtc_major = 12, fake->nvrtc_minor = 9;
  assert_ok(cb_nvrtc_open(&nvrtc, getenv("CBGEN_FAKE_CUDA"), &diag));
  cb_nvrtc_version(nvrtc, &major, &minor);
  assert_int_equal(100 * major + minor, 1209);
  assert_true(cb_nvrtc_supports(nvrtc, "sm_100") && cb_nvrtc_supports(nvrtc, "sm_80"));
  assert_false(cb_nvrtc_supports(nvrtc, "sm_75"));
  assert_int_equal(
      cb_nvrtc_compile(&compiled, nvrtc, "one\n" FAKE_COMPILE_ERROR "\n", "k.cu", &options, &diag),
      CB_ERR_COMPILE);
  assert_non_null(strstr(diag.message, "k.cu(2): error"));
  cb_compiled_release(&compiled);
  assert_ok(cb_nvrtc_compile(&compiled, nvrtc, FAKE_COMPILE_WARNING, "k.cu", &options, &diag));
  assert_non_null(strstr(compiled.log, "k.cu(1): warning"));
  cb_compiled_release(&compiled);
  options.strict = 1;
  assert_int_equal(cb_nvrtc_compile(&compiled, nvrtc, FAKE_COMPILE_WARNING, "k.cu", &options, &diag),
                   CB_ERR_COMPILE);
  cb_compiled_release(&compiled);
  cb_nvrtc_close(nvrtc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(kernels_multiply, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(an_image_reads_as_a_cubin, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(nvrtc_refuses_what_it_is_told, open_fake, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
