// SPDX-License-Identifier: Apache-2.0
/* Verification must notice what goes wrong. A right kernel is verified first; then its text or its data is
 * damaged in one place, as a bug in a template or in packing would, and the report must say what it should.
 *
 * A mutation replaces text that the generator writes. When templates change and the text is gone, the test
 * says so: choose the like of it in the new text. */
#include "kernels.h"

#include "base/file.h"
#include "runtime/verify/oracle.h"

#include <glob.h>

struct mutation {
  const char *name;
  const char *matrix, *options;
  const char *from, *to;
  int count;        /* how many occurrences to replace */
  const char *said; /* part of the report's message */
};

/* All three formats, in panels that are shared by several units. */
#define MIXED "block,r=16,c=16,per_row=3,fill=0.2,blocks_r=4", "th1=40 th2=60 coo-gain=0 balance=heap unit-budget=64 form=ax"
#define COO "random,rows=70,cols=90,density=0.05", "th1=257 th2=256 coo-gain=0 team=1 form=ax"
#define DENSE "block,r=16,c=16,per_row=2,fill=0.6,blocks_r=6", "th1=0 th2=0 aggregate=off form=ax"
#define SCALED "random,rows=70,cols=90,density=0.05", "form=axpby"

static const struct mutation mutations[] = {
    {"a row is left out", COO, "row < kRows)", "row < kRows - 1)", 1, "is never written"},
    {"a sum is halved", COO, "sum = add(sum, shuffle_xor(sum, 16))",
     "sum = add(sum, 0 * shuffle_xor(sum, 16))", 1, "rows are wrong"},
    {"memory is not ordered", COO, "  __syncwarp();\n  sum_t sum = zero();", "  sum_t sum = zero();", 1, "shared race"},
    {"shared memory is not cleared", COO, "] = zero();\n", "] += zero();\n", 1, "before it is written"},
    {"a store beyond y", COO, "row < kRows)", "row <= kRows)", 1, "heap-buffer-overflow"},
    {"lanes that stay away", COO, "  __syncwarp();\n", "  if (lane < 31) __syncwarp();\n", 1, "__syncwarp"},
    {"NaN leaks through absent entries", DENSE, "is_finite(x)", "is_finite(x - x == 0 ? x : x)||true", 1,
     "'non-finite"},
    {"beta zero reads y", SCALED, "vectors.beta == 0 ?", "vectors.beta == 7 ?", 1, "'beta zero'"},
    {"alpha is forgotten", SCALED, "= product(vectors.alpha, sum)", "= product(1, sum)", 1, "rows are wrong"},
    {"the carry's fence is missing", MIXED, "  __threadfence();\n  __syncwarp();\n", "  __syncwarp();\n", 1,
     "global race"},
    {"the counter is not reset", MIXED, "store_l2(counter, uint32_t(0))", "store_l2(counter, uint32_t(1))", 1,
     "global race"},
    {"the load function forgets to free", COO, "cudaFree(matrix->memory)", "(void)0", 1, "leaves device memory"},
    {"one array's end is inside the allocation", COO, "16) * block + ", "16) * block + 400 + ", 1,
     "heap-buffer-overflow"},
    {"a launch that cannot be", COO, "error = launch(m_spmv, ", "error = launch(m_spmv, 0 * ", 1,
     "invalid configuration"},
};

static void make(struct kernel *kernel, const char *matrix, const char *options) {
  struct cb_options chosen;
  struct cb_diag diag = {0};
  cb_options_default(&chosen);
  set_options(&chosen, options);
  *kernel = (struct kernel){0};
  if (cb_matrix_generate(&kernel->csr, matrix, &diag)) fail_msg("%s", diag.message);
  if (make_kernel(kernel, &chosen, &diag)) fail_msg("%s", diag.message);
}

static struct cb_verify_case case_of(const struct kernel *kernel) {
  return (struct cb_verify_case){&kernel->csr,    kernel->plan,  kernel->assignment,
                                 &kernel->source, &kernel->blob, "m"};
}

static int open_host(void **state) {
  struct cb_verify_options options;
  struct cb_diag diag = {0};
  cb_verify_options_default(&options);
  if (cb_host_open((struct cb_host **)state, &options.host, &diag)) fail_msg("%s", diag.message);
  return 0;
}

static int close_host(void **state) {
  cb_host_close(*state);
  return 0;
}

/* Every kernel as it is, and every mutation of it, in one batch. */
static void test_mutations(void **state) {
  enum { COUNT = sizeof mutations / sizeof *mutations };
  struct kernel kernels[2 * COUNT];
  struct cb_verify_case cases[2 * COUNT];
  struct cb_verify_report *reports = cb_calloc(2 * COUNT, sizeof *reports);
  struct cb_verify_options options;
  struct cb_diag diag = {0};
  int failures = 0;
  cb_verify_options_default(&options);
  for (int m = 0; m < COUNT; m++) {
    struct kernel *good = &kernels[2 * m], *bad = &kernels[2 * m + 1];
    make(good, mutations[m].matrix, mutations[m].options);
    make(bad, mutations[m].matrix, mutations[m].options);
    char *text =
        replaced(bad->source.text + bad->source.body, mutations[m].from, mutations[m].to, mutations[m].count);
    if (!text) fail_msg("%s: the text '%s' is gone", mutations[m].name, mutations[m].from);
    cb_source_release(&bad->source);
    bad->source = (struct cb_source){.text = text, .length = (int64_t)strlen(text)};
    cases[2 * m] = case_of(good);
    cases[2 * m + 1] = case_of(bad);
  }
  if (cb_verify_batch(*state, cases, 2 * COUNT, &options, reports, &diag)) fail_msg("%s", diag.message);
  for (int m = 0; m < COUNT; m++) {
    const struct cb_verify_report *good = &reports[2 * m], *bad = &reports[2 * m + 1];
    if (good->status) print_error("%s: before: %s\n", mutations[m].name, good->message);
    if (!bad->status || !strstr(bad->message, mutations[m].said))
      print_error("%s: wanted '%s', got '%s'\n", mutations[m].name, mutations[m].said, bad->message);
    failures +=
        good->status != CB_OK || bad->status != CB_ERR_WRONG || !strstr(bad->message, mutations[m].said);
  }
  for (int k = 0; k < 2 * COUNT; k++) release_kernel(&kernels[k]);
  cb_free(reports);
  assert_int_equal(failures, 0);
}

static struct cb_verify_report verify(struct cb_host *host, const struct kernel *kernel) {
  struct cb_verify_report report;
  struct cb_verify_options options;
  struct cb_diag diag = {0};
  const struct cb_verify_case one = case_of(kernel);
  cb_verify_options_default(&options);
  if (cb_verify_batch(host, &one, 1, &options, &report, &diag)) fail_msg("%s", diag.message);
  return report;
}

static void test_report(void **state) {
  struct kernel kernel;
  make(&kernel, "random,rows=200,cols=100,density=0.1", "form=axpby");
  const struct cb_verify_report report = verify(*state, &kernel);
  assert_int_equal(report.status, CB_OK);
  assert_int_equal(report.products, 6);
  assert_int_equal(report.runs, 30);
  assert_int_equal(report.rows, 1200);
  assert_true(report.exact_rows >= 200 && report.unbounded_rows == 0);
  assert_true(report.worst_ratio > 0 && report.worst_ratio < 1);
  assert_true(report.row == -1 && report.compile_seconds > 0 && report.run_seconds > 0);
  release_kernel(&kernel);
}

/* One value changes by one part in 10⁹: one row of one product kind is wrong, and the report finds it. */
static void test_wrong_value(void **state) {
  struct kernel kernel;
  struct cb_diag diag = {0};
  make(&kernel, "random,rows=200,cols=100,density=0.1", "form=ax");
  const int64_t k = kernel.csr.nnz / 2;
  int64_t row = 0;
  while (cb_csr_row(&kernel.csr, row + 1) <= k) row++;
  kernel.csr.values[k] *= 1 + 1e-9;
  if (cb_pack_values(&kernel.blob, kernel.plan, kernel.assignment, kernel.csr.values, &diag))
    fail_msg("%s", diag.message);
  kernel.csr.values[k] /= 1 + 1e-9;
  const struct cb_verify_report report = verify(*state, &kernel);
  assert_int_equal(report.status, CB_ERR_WRONG);
  assert_string_equal(report.product, "random");
  assert_true(report.row == row && report.wrong_rows == 1);
  assert_true(report.columns_count > 0 &&
              report.columns[0] == kernel.csr.col_idx[cb_csr_row(&kernel.csr, row)]);
  assert_true(report.worst_ratio > 1 && report.got != report.expected && report.tolerance > 0);
  assert_non_null(strstr(report.message, " nonzeros, in columns "));
  assert_non_null(strstr(report.message, " in cb0 (layout cb, "));
  release_kernel(&kernel);
}

static void test_damaged_data(void **state) {
  struct kernel kernel;
  make(&kernel, "random,rows=200,cols=100,density=0.1", "form=ax");
  kernel.blob.bytes[kernel.blob.length / 2] ^= 4;
  struct cb_verify_report report = verify(*state, &kernel);
  /* The integers' copy has a new checksum; the others must be refused. */
  assert_int_equal(report.status, CB_ERR_WRONG);
  assert_non_null(strstr(report.message, "checksum"));
  release_kernel(&kernel);
}

static void test_text_that_does_not_compile(void **state) {
  struct kernel kernel;
  struct cb_verify_report report;
  struct cb_verify_options options;
  struct cb_diag diag = {0};
  (void)state;
  make(&kernel, "diagonal,n=20", "form=ax");
  char *text =
      replaced(kernel.source.text + kernel.source.body, "constexpr int ", "constexpr int kNobody = 3, ", 1);
  assert_non_null(text);
  cb_source_release(&kernel.source);
  kernel.source = (struct cb_source){.text = text, .length = (int64_t)strlen(text)};
  const struct cb_verify_case one = case_of(&kernel);
  cb_verify_options_default(&options);
  assert_int_equal(cb_verify(&one, &options, &report, &diag), CB_ERR_COMPILE);
  assert_non_null(strstr(diag.message, "kNobody"));
  release_kernel(&kernel);
}

/* ---- files */

/* `shift`: by how many tolerances the self-test expects too much of every row. */
static void write_kernel_expecting(const char *name, struct kernel *kernel, enum cb_embed embed, double shift) {
  char path[4096];
  struct cb_diag diag = {0};
  const struct cb_label label = {"test", "m", cb_csr_pattern_hash(&kernel->csr)};
  const int64_t rows = kernel->csr.rows;
  double *expected = cb_alloc((size_t)rows, sizeof *expected),
         *tolerance = cb_alloc((size_t)rows, sizeof *tolerance);
  enum cb_status s = CB_OK;
  if (!kernel->blob.selftest) {
    cb_oracle_selftest(&kernel->csr, kernel->plan, expected, tolerance);
    for (int64_t i = 0; i < rows; i++) expected[i] += shift * tolerance[i];
    s = cb_blob_add_selftest(&kernel->blob, expected, tolerance, rows, &diag);
  }
  cb_source_release(&kernel->source);
  if (!s) s = cb_source_emit(&kernel->source, kernel->plan, &label, &kernel->blob, embed, &diag);
  snprintf(path, sizeof path, "%s/%s.cu", getenv("CBGEN_TEST_TMP"), name);
  if (!s) s = cb_file_put(path, kernel->source.text, (size_t)kernel->source.length, &diag);
  snprintf(path, sizeof path, "%s/%s.cbd", getenv("CBGEN_TEST_TMP"), name);
  if (!s && embed == CB_EMBED_NEVER)
    s = cb_file_put(path, kernel->blob.bytes, (size_t)kernel->blob.length, &diag);
  if (s) fail_msg("%s", diag.message);
  cb_free(expected);
  cb_free(tolerance);
}

static void write_kernel(const char *name, struct kernel *kernel, enum cb_embed embed) {
  write_kernel_expecting(name, kernel, embed, 0);
}

static enum cb_status verify_file(const char *name, struct cb_verify_file_report *report,
                                  struct cb_diag *diag) {
  char path[4096];
  struct cb_verify_options options;
  cb_verify_options_default(&options);
  snprintf(path, sizeof path, "%s/%s.cu", getenv("CBGEN_TEST_TMP"), name);
  return cb_verify_file(path, &options, report, diag);
}

static void test_files(void **state) {
  struct cb_verify_file_report report;
  struct cb_diag diag = {0};
  struct kernel kernel;
  (void)state;
  make(&kernel, "random,rows=300,cols=200,density=0.1", "type=f32");
  write_kernel("embedded", &kernel, CB_EMBED_ALWAYS);
  if (verify_file("embedded", &report, &diag)) fail_msg("%s", diag.message);
  assert_non_null(strstr(report.output, "ok"));
  assert_true(report.runs == 2 && report.compile_seconds > 0 && report.run_seconds > 0);
  write_kernel("beside", &kernel, CB_EMBED_NEVER);
  if (verify_file("beside", &report, &diag)) fail_msg("%s", diag.message);
  assert_non_null(strstr(report.output, "ok"));
  release_kernel(&kernel);
}

/* Half a tolerance is more than a right kernel needs here; two are left when three are too much. */
static void test_selftest_accepts_its_tolerance_and_no_more(void **state) {
  static const double shifts[] = {0.5, -3};
  struct cb_verify_file_report report;
  struct cb_diag diag = {0};
  (void)state;
  for (int i = 0; i < 2; i++) {
    struct kernel kernel;
    make(&kernel, "uniform,n=40,per_row=9,values=signed", "type=f64");
    write_kernel_expecting("shifted", &kernel, CB_EMBED_ALWAYS, shifts[i]);
    assert_int_equal(verify_file("shifted", &report, &diag), i ? CB_ERR_WRONG : CB_OK);
    if (!strstr(report.output, i ? "WRONG: 40 of 40 rows" : "ok: 40 rows")) fail_msg("%s", report.output);
    release_kernel(&kernel);
  }
}

static void test_wrong_file(void **state) {
  struct cb_verify_file_report report;
  struct cb_diag diag = {0};
  struct kernel kernel;
  (void)state;
  make(&kernel, "random,rows=300,cols=200,density=0.1", "type=f64");
  write_kernel("wrong", &kernel, CB_EMBED_NEVER);
  kernel.csr.values[17] += 1e-6;
  if (cb_pack_values(&kernel.blob, kernel.plan, kernel.assignment, kernel.csr.values, &diag))
    fail_msg("%s", diag.message);
  write_kernel("wrong", &kernel, CB_EMBED_NEVER);
  assert_int_equal(verify_file("wrong", &report, &diag), CB_ERR_WRONG);
  assert_non_null(strstr(report.output, "WRONG: 1 of 300 rows"));
  kernel.blob.bytes[300] ^= 1;
  write_kernel("wrong", &kernel, CB_EMBED_NEVER);
  assert_int_equal(verify_file("wrong", &report, &diag), CB_ERR_WRONG);
  assert_non_null(strstr(report.output, "checksum"));
  assert_int_equal(verify_file("no-such-kernel", &report, &diag), CB_ERR_IO);
  release_kernel(&kernel);
}

/* What the text's own check says of its data with every bit flipped alone, and with the signs of every two words
 * flipped together: a program made of the text and this. */
static const char flips[] =
    "static bool refused(char *data, long bytes) { return m_check((const unsigned char *)data, bytes); }\n"
    "static const char *flip_all(char *data, long bytes) {\n"
    "  long passed = 0, words = bytes / 8;\n"
    "  for (long bit = 0; bit < 8 * bytes; bit++) {\n"
    "    data[bit / 8] ^= 1 << bit % 8;\n"
    "    passed += !refused(data, bytes);\n"
    "    data[bit / 8] ^= 1 << bit % 8;\n"
    "  }\n"
    "  for (long one = 0; one < words; one++)\n"
    "    for (long two = 0; two < one; two++) {\n"
    "      data[8 * one + 7] ^= 0x80, data[8 * two + 7] ^= 0x80;\n"
    "      passed += !refused(data, bytes);\n"
    "      data[8 * one + 7] ^= 0x80, data[8 * two + 7] ^= 0x80;\n"
    "    }\n"
    "  printf(\"m: %s: %ld of %ld flipped bits and %ld pairs of signs pass\\n\", passed ? \"WRONG\" : \"ok\", passed, 8 * bytes,\n"
    "         words * (words - 1) / 2);\n"
    "  return passed ? \"flips pass\" : NULL;\n"
    "}\n"
    "int main(int count, char **arguments) {";

static void every_flipped_bit_and_pair_of_signs_in_the_data_is_refused(void **state) {
  struct cb_verify_file_report report;
  struct cb_diag diag = {0};
  struct kernel kernel;
  static const char check[] = "m_selftest(data, bytes) ? \"whole data are refused\" : flip_all(data, bytes)";
  char path[4096];
  (void)state;
  make(&kernel, "random,rows=20,cols=20,density=0.2", "form=ax");
  write_kernel("flips", &kernel, CB_EMBED_NEVER);
  char *with_flips = replaced(kernel.source.text, "int main(int count, char **arguments) {", flips, 1);
  char *text = with_flips ? replaced(with_flips, "m_selftest(data, bytes)", check, 1) : NULL;
  if (!text) fail_msg("the self-test's main function is another one");
  snprintf(path, sizeof path, "%s/flips.cu", getenv("CBGEN_TEST_TMP"));
  if (cb_file_put(path, text, strlen(text), &diag)) fail_msg("%s", diag.message);
  if (verify_file("flips", &report, &diag)) fail_msg("%s: %s", diag.message, report.output);
  assert_non_null(strstr(report.output, "ok: 0 of "));
  cb_free(text);
  cb_free(with_flips);
  release_kernel(&kernel);
}

static void data_of_an_older_format_are_refused_as_such(void **state) {
  struct cb_verify_file_report report;
  struct cb_diag diag = {0};
  struct kernel kernel;
  (void)state;
  make(&kernel, "random,rows=20,cols=20,density=0.2", "form=ax");
  write_kernel("older", &kernel, CB_EMBED_NEVER);
  kernel.blob.bytes[8] = 1;
  write_kernel("older", &kernel, CB_EMBED_NEVER);
  assert_int_equal(verify_file("older", &report, &diag), CB_ERR_WRONG);
  assert_non_null(strstr(report.output, "another version of the format; generate both files anew"));
  release_kernel(&kernel);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_mutations),
      cmocka_unit_test(test_report),
      cmocka_unit_test(test_wrong_value),
      cmocka_unit_test(test_damaged_data),
      cmocka_unit_test(test_text_that_does_not_compile),
      cmocka_unit_test(test_files),
      cmocka_unit_test(test_selftest_accepts_its_tolerance_and_no_more),
      cmocka_unit_test(test_wrong_file),
      cmocka_unit_test(every_flipped_bit_and_pair_of_signs_in_the_data_is_refused),
      cmocka_unit_test(data_of_an_older_format_are_refused_as_such),
  };
  return cmocka_run_group_tests_name("verify", tests, open_host, close_host);
}
