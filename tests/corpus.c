// SPDX-License-Identifier: Apache-2.0
/* One real matrix through what `cbgen verify` does: as FP64 and as FP32, with the recipe that the search chooses and
 * with CB-SpMV; with narrower values, and with fixed ones. Every kernel is executed on the host, and compiled for GPUs
 * where NVRTC is there to do it. One process does all, so that the matrix's kernels share a host compilation.
 *
 *   corpus MATRIX
 *
 * With CBGEN_TEST_ALL=1 every recipe with every type, form, kind of values and semiring is executed: once, by hand.
 * With CBGEN_TEST_SHARE=I/N beside it, every N-th of these, from the I-th on: N matrices share them
 * (scripts/test-all); with CBGEN_TEST_PLAIN, kernels execute without sanitizers, several times as fast. */
#include "combinations.h"
#include "kernels.h"
#include "nvrtc_support.h"

#include "frontend/read.h"

/* The first is compiled for every GPU, the others for the one whose turn it is, by variant and matrix. */
static const char *const variants[] = {
    "type=f64 recipe=auto",
    "type=f64 recipe=cb",
    "type=f32 recipe=auto",
    "type=f32 recipe=cb",
    "type=f32-f64 values=fixed recipe=auto",
    "type=bf16-f32 recipe=auto",
};

static const char *path;
static struct cb_csr matrix;

static int read_matrix(void **state) {
  struct cb_diag diag = {0};
  (void)state;
  if (cb_matrix_read(&matrix, path, NULL, &diag)) fail_msg("%s", diag.message);
  return 0;
}

static int release_matrix(void **state) {
  (void)state;
  cb_csr_release(&matrix);
  return 0;
}

/* Kernels own their matrix. */
static void set_kernel(struct kernel *kernel, const char *settings, struct cb_options *options) {
  struct cb_diag diag = {0};
  const size_t rows = (size_t)matrix.rows + 1, nnz = (size_t)matrix.nnz;
  snprintf(kernel->name, sizeof kernel->name, "%s", settings);
  if (cb_csr_alloc(&kernel->csr, matrix.rows, matrix.cols, matrix.nnz, &diag)) fail_msg("%s", diag.message);
  memcpy(kernel->csr.row_ptr, matrix.row_ptr, rows * (matrix.wide ? 8 : 4));
  memcpy(kernel->csr.col_idx, matrix.col_idx, nnz * sizeof *matrix.col_idx);
  memcpy(kernel->csr.values, matrix.values, nnz * sizeof *matrix.values);
  kernel->csr.pattern = matrix.pattern;
  cb_options_default(options);
  set_options(options, settings);
}

static void add_one(struct kernel_batch *batch, const char *settings) {
  struct cb_options own;
  set_kernel(next_kernel(batch), settings, &own);
  add_kernel(batch, &own);
}

/* CBGEN_TEST_SHARE, or all. */
static void read_share(int *first, int *step) {
  const char *share = getenv("CBGEN_TEST_SHARE");
  *first = 0, *step = 1;
  if (!share) return;
  assert_int_equal(sscanf(share, "%d/%d", first, step), 2);
  assert_true(*first >= 0 && *first < *step);
}

/* A recipe's kernels are compiled and run together, and let go. */
static void add_all(struct kernel_batch *batch) {
  struct factors factors;
  combination levels = {0};
  char settings[SETTINGS];
  int first, step, number = 0;
  read_share(&first, &step);
  factors_of_kernels(&factors);
  for (; levels[0] < factors.levels[0]; levels[0]++) {
    do {
      if (!combination_is_possible(&factors, levels) || number++ % step != first) continue;
      combination_settings(settings, &factors, levels);
      add_one(batch, settings);
    } while (next_combination(&factors, 1, levels));
    run_batch(batch);
  }
}

static void test_execution(void **state) {
  struct cb_verify_options options;
  struct kernel_batch batch;
  (void)state;
  cb_verify_options_default(&options);
  options.orders = 2;
  options.host.compiler = usual_compiler();
  options.host.job_seconds = 300;
  if (getenv("CBGEN_TEST_PLAIN")) options.host.sanitize = options.host.debug = 0;
  open_batch(&batch, &options);
  for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) add_one(&batch, variants[v]);
  run_batch(&batch);
  assert_int_equal(batch.refused, 0);
  if (tests_all_combinations()) add_all(&batch);
  close_batch(&batch);
  assert_int_equal(batch.failures, 0);
}

static int is_compiled_for(int variant, int arch) {
  return !variant || !strcmp(arches[arch], arch_in_turn(variant + (int)(matrix.nnz % 6)));
}

/* Plans differ from GPU to GPU: one is made for each. */
static void compile_for(const struct cb_nvrtc *nvrtc, int variant, int arch) {
  struct kernel kernel = {0};
  struct cb_options options;
  struct cb_diag diag = {0};
  set_kernel(&kernel, variants[variant], &options);
  if (make_kernel_for(&kernel, arches[arch], &options, &diag)) fail_msg("%s: %s", kernel.name, diag.message);
  struct cb_cubin_stats stats = compile_strictly(nvrtc, kernel.source.text, arches[arch], kernel.name);
  cb_cubin_stats_release(&stats);
  release_kernel(&kernel);
}

static void test_compilation(void **state) {
  struct cb_nvrtc *nvrtc = open_nvrtc();
  (void)state;
  for (size_t v = 0; v < sizeof variants / sizeof *variants; v++)
    for (int arch = 0; arches[arch]; arch++)
      if (is_compiled_for((int)v, arch)) compile_for(nvrtc, (int)v, arch);
  cb_nvrtc_close(nvrtc);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_execution), cmocka_unit_test(test_compilation)};
  if (argc != 2) {
    fprintf(stderr, "corpus MATRIX\n");
    return 2;
  }
  path = argv[1];
  return exit_code_of(cmocka_run_group_tests_name(path, tests, read_matrix, release_matrix));
}
