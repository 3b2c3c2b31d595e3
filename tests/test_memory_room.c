// SPDX-License-Identifier: Apache-2.0
/* Vectors that do not fit into the machine's memory, or the GPU's, are refused before anything is allocated for them.
 * The matrix has one nonzero and two billion columns: it takes some bytes, its x 16 GB. */
#include "tests/api_support.h"
#include "tests/failing_malloc.h"

#include "base/available.h"
#include "runtime/measure/bench.h"
#include "runtime/verify/verify.h"

#include <omp.h>
#include <unistd.h>

static const char text[] = "%%MatrixMarket matrix coordinate real general\n1 2000000000 1\n1 2000000000 1\n";
#define GIGABYTE ((size_t)1 << 30)

static struct cb_csr wide_matrix(void) {
  struct cb_csr csr;
  struct cb_diag diag = {0};
  assert_ok(cb_matrix_read_bytes(&csr, "wide.mtx", text, strlen(text), &diag));
  return csr;
}

static void expect_refusal(enum cb_status s, const struct cb_diag *diag, const char *what) {
  assert_int_equal(s, CB_ERR_MEMORY);
  if (!strstr(diag->message, what) || !strstr(diag->message, " MB"))
    fail_msg("'%s' is not in '%s'", what, diag->message);
  const long peak = peak_of_malloc();
  if (peak > 64L << 20) fail_msg("%ld MB were allocated at a time", peak >> 20);
}

static void verify_needs_room_for_its_vectors(void **state) {
  (void)state;
  struct product product = product_of_matrix(wide_matrix(), "");
  struct cb_diag diag = {0};
  struct cb_verify_options options;
  struct cb_verify_report report;
  const struct cb_verify_case one = {product.csr,     product.plan,  product.assignment,
                                     &product.source, &product.blob, "test"};
  cb_verify_options_default(&options);
  cb_available_limit(GIGABYTE);
  peak_of_malloc();
  expect_refusal(cb_verify(&one, &options, &report, &diag), &diag, "1024 MB are available");
  assert_true(report.compile_seconds == 0); /* so that it takes no time either */
  product_release(&product);
}

/* The file's self-test would allocate x in a child. */
static void verify_of_a_kernel_needs_room_for_its_vectors(void **state) {
  (void)state;
  struct cb_csr csr = wide_matrix();
  struct cb_diag diag = {0};
  struct cb_verify_options options;
  struct cb_verify_file_report report;
  const cbgen_csr view = {.struct_size = sizeof view, .rows = csr.rows, .cols = csr.cols, .nnz = csr.nnz,
                          .row_ptr = csr.row_ptr, .row_ptr_bits = csr.wide ? 64 : 32, .col_idx = csr.col_idx,
                          .values = csr.values, .name = "wide"};
  char path[512];
  cbgen_context *context;
  cbgen_kernel *kernel;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  must(context, cbgen_generate(context, &view, &kernel));
  snprintf(path, sizeof path, "%s/wide.cu", getenv("CBGEN_TEST_TMP"));
  FILE *file = fopen(path, "w");
  assert_true(file && fputs(cbgen_kernel_source(kernel, NULL), file) >= 0 && !fclose(file));
  cb_verify_options_default(&options);
  cb_available_limit(GIGABYTE);
  peak_of_malloc();
  expect_refusal(cb_verify_file(path, &options, &report, &diag), &diag, "1024 MB are available");
  assert_int_equal(report.runs, 0);
  cbgen_kernel_free(kernel);
  cbgen_context_destroy(context);
  cb_csr_release(&csr);
}

static struct cb_bench *open_bench(void) {
  struct cb_bench *bench;
  struct cb_diag diag = {0};
  struct cb_bench_settings settings;
  cb_bench_settings_default(&settings);
  settings.baselines = settings.ceilings = 0;
  settings.repetitions = settings.batches = settings.launches = 1;
  assert_ok(cb_bench_open(&bench, &settings, &diag));
  return bench;
}

/* `of` names whose memory is short. */
static void refuse_products(const char *of) {
  struct cb_csr csr = wide_matrix();
  struct cb_diag diag = {0};
  struct cb_options options;
  struct cb_run_result run;
  struct cb_bench_result race;
  struct cb_bench *bench = open_bench();
  cb_options_default(&options);
  peak_of_malloc();
  expect_refusal(cb_run_matrix(&run, bench, &csr, &options, &diag), &diag, of);
  expect_refusal(cb_bench_matrix(&race, bench, &csr, &options, &diag), &diag, of);
  assert_int_equal(fake->compilations, 0);
  cb_run_result_release(&run);
  cb_bench_result_release(&race);
  cb_bench_close(bench);
  cb_csr_release(&csr);
}

static void run_and_bench_need_room_on_the_gpu(void **state) {
  (void)state;
  refuse_products("GPU 0");
}

static void run_and_bench_need_room_on_the_machine(void **state) {
  (void)state;
  fake->memory = 64 * GIGABYTE;
  cb_available_limit(GIGABYTE);
  refuse_products("1024 MB are available");
}

/* And what fits is done as ever, up to the last byte. */
static void what_fits_is_done(void **state) {
  (void)state;
  struct cb_csr csr = matrix_of("random,rows=20,cols=15,density=0.2");
  struct cb_diag diag = {0};
  struct cb_options options;
  struct cb_run_result run;
  struct cb_bench *bench = open_bench();
  const uint64_t needed = 8 * (15 + 3 * 20) + 24 * 20;
  cb_options_default(&options);
  cb_available_limit(needed);
  assert_ok(cb_run_matrix(&run, bench, &csr, &options, &diag));
  assert_int_equal(run.check.wrong, 0);
  cb_run_result_release(&run);
  cb_available_limit(needed - 1);
  expect_refusal(cb_run_matrix(&run, bench, &csr, &options, &diag), &diag, "0 MB are available");
  cb_run_result_release(&run);
  cb_bench_close(bench);
  cb_csr_release(&csr);
}

static void tuning_needs_room_for_its_vectors(void **state) {
  struct cb_csr csr = wide_matrix();
  const cbgen_csr view = {.struct_size = sizeof view, .rows = csr.rows, .cols = csr.cols, .nnz = csr.nnz,
                          .row_ptr = csr.row_ptr, .row_ptr_bits = csr.wide ? 64 : 32, .col_idx = csr.col_idx,
                          .values = csr.values};
  for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
    struct cb_diag diag = {0};
    cbgen_context *context;
    cbgen_operator *op;
    open_fake(state);
    if (!on_gpu) fake->memory = 64 * GIGABYTE;
    cb_available_limit(on_gpu ? 0 : GIGABYTE);
    assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
    must(context, cbgen_set(context, "tune", "measure"));
    peak_of_malloc();
    const cbgen_status s = cbgen_compile(context, &view, NULL, &op);
    cb_fail(&diag, (enum cb_status)s, "%s", cbgen_message(context));
    expect_refusal((enum cb_status)s, &diag, on_gpu ? "GPU 0" : "1024 MB are available");
    assert_null(op);
    cbgen_context_destroy(context);
  }
  cb_csr_release(&csr);
}

static int forget_limit(void **state) {
  cb_available_limit(0);
  return check_fake(state);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, forget_limit)
  const struct CMUnitTest tests[] = {
      TEST(verify_needs_room_for_its_vectors),  TEST(verify_of_a_kernel_needs_room_for_its_vectors),
      TEST(run_and_bench_need_room_on_the_gpu), TEST(run_and_bench_need_room_on_the_machine),
      TEST(what_fits_is_done),                  TEST(tuning_needs_room_for_its_vectors),
  };
  omp_set_num_threads(1);
  return cmocka_run_group_tests_name("vectors that do not fit", tests, NULL, NULL);
}
