// SPDX-License-Identifier: Apache-2.0
/* The emulated GPU, with kernels written by hand: tests/data/emulation/NAME.cu.
 *
 *   good_*     must give the expected y (computed below), the same bits for many orders of warps and blocks
 *   bad_*      must be stopped: "// expect STATUS TEXT" names the exit status and a part of the message under the
 *              sanitizers, "// plain STATUS TEXT" those without them (absent: the same, unless STATUS is 82)
 *   wrong_*    run to their end with a wrong result, which must show
 *   refused_*  cannot be launched
 *   mma_*      tensor cores, which are compared with loops over random and special numbers
 *
 * Each file holds constants kBlocks and kThreads (and, with dynamic shared memory, kSharedBytes of the launch and
 * kAllowedBytes that the kernel asks for) and one kernel; the host functions are added here. All files
 * are compiled in one batch, once with the sanitizers and once without. */
#include "base/file.h"
#include "base/memory.h"
#include "base/real.h"
#include "base/text.h"
#include "runtime/verify/emulation/jobs.h"
#include "runtime/verify/host.h"

#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { INPUTS = 4096, OUTPUTS = 1024, SEEDS = 60 };

struct batch {
  char **names, **texts; /* texts carry the host functions */
  int count;
  struct cb_host *host;
  struct cb_host_program *program;
  double x[INPUTS], y[OUTPUTS];
};

/* ---- the batch */

/* Kernels with grid barriers are launched cooperatively. */
static void add_host_functions(struct cb_text *text, int scratch, int dynamic, int cooperative) {
  cb_text_add(
      text,
      "\nstruct m_matrix { double *carry; unsigned *counter; };\n"
      "static const char *m_load(m_matrix *m, const void *, size_t) {\n"
      "  cudaError_t e = cudaMalloc(&m->carry, kBlocks * sizeof(double));\n"
      "  if (!e) e = cudaMalloc(&m->counter, sizeof(unsigned));\n"
      "  if (!e) e = cudaMemset(m->counter, 0, sizeof(unsigned));\n"
      "%s"
      "  return e ? cudaGetErrorString(e) : nullptr;\n"
      "}\n"
      "static const char *m_multiply(const m_matrix *%s, const double *x, double *y, cudaStream_t s) {\n"
      "  emulated::cooperative = %d;\n"
      "  cudaError_t e = launch_named(\"kernel\", kernel, kBlocks, kThreads, %s, s, x, y%s);\n"
      "  return e ? cudaGetErrorString(e) : nullptr;\n"
      "}\n"
      "static void m_free(m_matrix *m) {\n"
      "  cudaFree(m->carry);\n"
      "  cudaFree(m->counter);\n"
      "}\n",
      dynamic ? "  if (!e && kAllowedBytes)\n"
                "    e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kAllowedBytes);\n"
              : "",
      scratch ? "m" : "", cooperative, dynamic ? "kSharedBytes" : "0", scratch ? ", m->carry, m->counter" : "");
}

static char *read_kernel(const char *path) {
  struct cb_mapping file;
  struct cb_text text = {0};
  cb_text_add(&text, "[[maybe_unused]] constexpr int kInputs = %d, kOutputs = %d;\n#line 1\n", INPUTS,
              OUTPUTS);
  assert_int_equal(cb_file_map(&file, path, NULL), CB_OK);
  cb_text_add_bytes(&text, file.bytes, file.length);
  cb_file_unmap(&file);
  add_host_functions(&text, strstr(text.bytes, "double *carry") != NULL,
                     strstr(text.bytes, "kSharedBytes") != NULL,
                     strstr(text.bytes, "grid_barrier") && !strstr(text.bytes, "// not cooperative"));
  return cb_text_detach(&text);
}

static void read_kernels(struct batch *batch) {
  glob_t found;
  assert_int_equal(glob("tests/data/emulation/*.cu", 0, NULL, &found), 0);
  batch->count = (int)found.gl_pathc;
  batch->names = cb_calloc(found.gl_pathc, sizeof *batch->names);
  batch->texts = cb_calloc(found.gl_pathc, sizeof *batch->texts);
  for (int i = 0; i < batch->count; i++) {
    batch->names[i] = strdup(strrchr(found.gl_pathv[i], '/') + 1);
    batch->texts[i] = read_kernel(found.gl_pathv[i]);
  }
  globfree(&found);
}

static int start(void **state, int sanitize) {
  struct batch *batch = cb_calloc(1, sizeof *batch);
  struct cb_host_options options;
  struct cb_diag diag = {0};
  cb_host_options_default(&options);
  options.sanitize = sanitize;
  options.job_seconds = 3;
  read_kernels(batch);
  for (int i = 0; i < INPUTS; i++) batch->x[i] = (i * 37 % 101 - 50) / 8.0;
  struct cb_host_kernel *kernels = cb_calloc((size_t)batch->count, sizeof *kernels);
  for (int i = 0; i < batch->count; i++)
    kernels[i] = (struct cb_host_kernel){
        .text = batch->texts[i], .first_line = 1, .symbol = "m", .vector_type = CB_F64, .form = CB_FORM_AX};
  if (cb_host_open(&batch->host, &options, &diag)) fail_msg("%s", diag.message);
  if (cb_host_build(&batch->program, batch->host, kernels, batch->count, &diag)) fail_msg("%s", diag.message);
  print_message("%d kernels compiled in %.2f s\n", batch->count, cb_host_build_seconds(batch->program));
  cb_free(kernels);
  *state = batch;
  return 0;
}

static int start_sanitized(void **state) {
  return start(state, 1);
}
static int start_plain(void **state) {
  return start(state, 0);
}

static int finish(void **state) {
  struct batch *batch = *state;
  for (int i = 0; i < batch->count; i++) {
    free(batch->names[i]);
    cb_free(batch->texts[i]);
  }
  cb_free(batch->names);
  cb_free(batch->texts);
  cb_host_program_free(batch->program);
  cb_host_close(batch->host);
  cb_free(batch);
  return 0;
}

static struct cb_host_job job_for(struct batch *batch, int kernel, double *result) {
  return (struct cb_host_job){.kernel = kernel,
                              .data = "",
                              .x = batch->x,
                              .x_bytes = sizeof batch->x,
                              .y = batch->y,
                              .y_bytes = sizeof batch->y,
                              .seed = 1,
                              .products = 1,
                              .repeatable = 1,
                              .result = result};
}

static int find(const struct batch *batch, const char *name) {
  for (int i = 0; i < batch->count; i++)
    if (!strcmp(batch->names[i], name)) return i;
  fail_msg("no test kernel '%s'", name);
  return -1;
}

static struct cb_host_job run_one(struct batch *batch, const char *name, int products, double *result) {
  struct cb_diag diag = {0};
  struct cb_host_job job = job_for(batch, find(batch, name), result);
  job.products = products;
  if (cb_host_run(batch->program, &job, 1, &diag)) fail_msg("%s", diag.message);
  return job;
}

/* ---- what the good ones must compute; rows that they do not own keep what y held */

static void expect_reduce(const double *x, double *y) {
  for (int row = 0; row < 13 * 8; row++) {
    y[row] = 0;
    for (int i = 0; i < 32; i++) y[row] += x[32 * row + i];
  }
}

static void expect_block_reduce(const double *x, double *y) {
  for (int row = 0; row < 9; row++) {
    y[row] = 0;
    for (int i = 0; i < 256; i++) y[row] += x[256 * row + i];
  }
}

static void expect_scan(const double *x, double *y) {
  for (int i = 0; i < 5 * 96; i++) {
    y[i] = 0;
    for (int j = i / 32 * 32; j <= i; j++) y[i] += x[j] + (j < i && x[j] > 0 ? 1000 : 0);
  }
}

static void expect_half_warps(const double *x, double *y) {
  for (int i = 0; i < 4 * 64; i++) {
    double sum = 0;
    for (int j = 0; j < 16; j++) sum += x[i / 16 * 16 + j];
    y[i] = i / 16 % 2 ? 0 : 8 * sum;
  }
}

static void expect_half_warps_shared(const double *x, double *y) {
  for (int i = 0; i < 4 * 64; i++) y[i] = x[i] * 0 + x[i ^ 1] + x[i ^ 16 ^ 1] + 1;
}

static void expect_transpose(const double *x, double *y) {
  for (int i = 0; i < 3 * 256; i++) y[i] = x[i] + 0.5;
}

static void expect_dynamic(const double *x, double *y) {
  for (int i = 0; i < 3 * 256; i++) y[i] = x[i / 256 * 256 + 255 - i % 256];
}

static void expect_neighbours(const double *x, double *y) {
  (void)x;
  for (int block = 0; block < 700; block++) y[block] = 3 * block + 1;
}

static void expect_carry(const double *x, double *y) {
  y[0] = 0;
  for (int i = 0; i < 37 * 64; i++) y[0] += x[i];
}

static void expect_handed_in_block(const double *x, double *y) {
  for (int i = 0; i < 2 * 37; i++) y[i] = x[i % 37];
}

static void expect_vectors(const double *x, double *y) {
  for (int i = 0; i < 64; i++) {
    const int counts = 4 + 3 + 4 + 31 + 64;
    y[i] = x[4 * i] + x[4 * i + 3] + x[2 * i + 1] + counts + (i > 3 ? i : 3) + 1;
  }
}

/* What a product loses by being rounded: not nothing, and the same as here, where no compiler contracts. */
static void expect_fused(const double *x, double *y) {
  int lossy = 0;
  for (int i = 0; i < 64; i++) {
    const double a = x[i] / 3, square = a * a, b = 1 / (3 + square), product = a * b;
    const float s = (float)a, t = (float)b, narrow = s * t;
    y[4 * i] = fma(a, b, -product);
    y[4 * i + 1] = (double)fmaf(s, t, -narrow);
    y[4 * i + 2] = y[4 * i + 3] = 0;
    lossy += y[4 * i] != 0 && y[4 * i + 1] != 0;
  }
  assert_true(lossy > 32);
}

/* As this side rounds, which has its own function for it. */
static void expect_entries(const double *x, double *y) {
  for (int i = 0; i < 128; i++) y[i] = 0;
  for (int i = 0; i < 64; i++)
    for (int k = 0; k < 6; k++) {
      uint16_t half, bfloat;
      float scaled = (float)x[i] / 3;
      for (int j = 0; j < 4 * k; j++) scaled /= 3;
      cb_real_set(&half, CB_F16, 0, (double)scaled);
      cb_real_set(&bfloat, CB_BF16, 0, (double)scaled);
      y[128 + 64 * k + i] = half;
      y[512 + 64 * k + i] = bfloat;
    }
}

static void expect_grid(const double *x, double *y) {
  enum { N = 5 * 64 };
  double sums[N];
  for (int i = 0; i < N; i++) sums[i] = x[i];
  for (int round = 0; round < 3; round++) {
    double next[N];
    for (int i = 0; i < N; i++) next[i] = sums[(i + 64) % N] + 1;
    memcpy(sums, next, sizeof sums);
  }
  for (int i = 0; i < N; i++) y[i] = sums[i];
}

static void expect_grid_unseen(const double *x, double *y) {
  enum { N = 5 * 64 };
  for (int i = 0; i < N; i++) y[i] = x[(i + 64) % N] + 1;
}

static const struct {
  const char *name;
  void (*expect)(const double *x, double *y);
} good[] = {{"good_grid.cu", expect_grid},
            {"good_grid_unseen.cu", expect_grid_unseen},
            {"good_reduce.cu", expect_reduce},
            {"good_block_reduce.cu", expect_block_reduce},
            {"good_scan.cu", expect_scan},
            {"good_half_warps.cu", expect_half_warps},
            {"good_half_warps_shared.cu", expect_half_warps_shared},
            {"good_transpose.cu", expect_transpose},
            {"good_dynamic.cu", expect_dynamic},
            {"good_carry.cu", expect_carry},
            {"good_neighbours.cu", expect_neighbours},
            {"good_handed_in_block.cu", expect_handed_in_block},
            {"good_vectors.cu", expect_vectors},
            {"good_fused.cu", expect_fused},
            {"good_entries.cu", expect_entries}};

static void test_good(void **state) {
  struct batch *batch = *state;
  double expected[OUTPUTS], got[OUTPUTS];
  for (size_t g = 0; g < sizeof good / sizeof *good; g++) {
    memcpy(expected, batch->y, sizeof expected);
    good[g].expect(batch->x, expected);
    const struct cb_host_job job = run_one(batch, good[g].name, SEEDS, got);
    if (job.outcome != CB_HOST_DONE) fail_msg("%s: %s", good[g].name, job.message);
    for (int i = 0; i < OUTPUTS; i++)
      if (got[i] != expected[i]) fail_msg("%s: y[%d] is %g, not %g", good[g].name, i, got[i], expected[i]);
  }
}

/* ---- tensor cores */

static uint64_t draw(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return *seed >> 33;
}

/* A number of any size, or a special one now and then. */
static double draw_number(uint64_t *seed, int range) {
  static const double special[] = {0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 0x1p-126, 0x1p-149};
  if (draw(seed) % 16 == 0) return special[draw(seed) % (sizeof special / sizeof *special)];
  const double fraction = (double)draw(seed) / 0x1p31 + 0.5;
  return ldexp(draw(seed) % 2 ? fraction : -fraction, (int)(draw(seed) % (uint64_t)range) - range / 2);
}

static float half_number(unsigned bits) {
  const int exponent = (int)(bits >> 10 & 31);
  const float fraction = (float)(bits & 1023), sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31) return fraction > 0 ? NAN : sign * INFINITY;
  return sign * (exponent ? ldexpf(1024 + fraction, exponent - 25) : ldexpf(fraction, -24));
}

static float number_of_bits(uint32_t bits) {
  float number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

static float bfloat_number(unsigned bits) { return number_of_bits((uint32_t)bits << 16); }

static float tf32_number(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  return number_of_bits(bits & 0xffffe000u);
}

static void assert_same_number(double got, double expected, const char *name, int i) {
  if (isnan(got) && isnan(expected)) return;
  if (memcmp(&got, &expected, sizeof got)) fail_msg("%s: y[%d] is %a, not %a", name, i, got, expected);
}

static void run_with(struct batch *batch, const char *name, const double *x, double *got) {
  struct cb_diag diag = {0};
  struct cb_host_job job = job_for(batch, find(batch, name), got);
  job.x = x;
  job.products = 3;
  if (cb_host_run(batch->program, &job, 1, &diag)) fail_msg("%s", diag.message);
  if (job.outcome != CB_HOST_DONE) fail_msg("%s: %s", name, job.message);
}

/* Each term is fused, in the order of k. */
static void test_mma_f64(void **state) {
  double x[INPUTS], got[OUTPUTS];
  uint64_t seed = 1;
  int finite = 0;
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < INPUTS; i++) x[i] = draw_number(&seed, 20);
    run_with(*state, "mma_f64.cu", x, got);
    for (int i = 0; i < 8 * 64; i++) {
      const double *a = x + 128 * (i / 64), *b = a + 32;
      double d = b[32 + i % 64];
      for (int k = 0; k < 4; k++) d = fma(a[i % 64 / 8 * 4 + k], b[8 * k + i % 8], d);
      assert_same_number(got[i], d, "mma_f64.cu", i);
      finite += isfinite(d) != 0;
    }
  }
  assert_in_range(finite, 2000, 10000); /* of 10240 */
}

/* x holds bits of numbers of 16 bits, or floats. */
static void check_mma_1688(struct batch *batch, const char *name, float (*number)(double of_x), int bits) {
  double x[INPUTS], got[OUTPUTS];
  uint64_t seed = 2;
  int finite = 0;
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < INPUTS; i++)
      x[i] = bits && i % 320 < 192 ? (double)(draw(&seed) % 65536) : (double)(float)draw_number(&seed, 20);
    run_with(batch, name, x, got);
    for (int i = 0; i < 8 * 128; i++) {
      const double *a = x + 320 * (i / 128), *b = a + 128;
      float d = (float)b[64 + i % 128];
      for (int k = 0; k < 8; k++) d = fmaf(number(a[i % 128 / 8 * 8 + k]), number(b[8 * k + i % 8]), d);
      assert_same_number(got[i], (double)d, name, i);
      finite += isfinite(d) != 0;
    }
  }
  assert_in_range(finite, 2000, 20400); /* of 20480 */
}

static float half_of_x(double x) { return half_number((unsigned)x); }
static float bfloat_of_x(double x) { return bfloat_number((unsigned)x); }
static float tf32_of_x(double x) { return tf32_number((float)x); }

static void test_mma_f32(void **state) {
  check_mma_1688(*state, "mma_f16.cu", half_of_x, 1);
  check_mma_1688(*state, "mma_bf16.cu", bfloat_of_x, 1);
  check_mma_1688(*state, "mma_tf32.cu", tf32_of_x, 0);
}

/* Parts have 11 bits each, none is subnormal, and their sum is the number, exactly. */
static void test_tf32_parts(void **state) {
  double x[INPUTS], got[OUTPUTS];
  uint64_t seed = 3;
  int ordinary = 0;
  for (int i = 0; i < INPUTS; i++) x[i] = (double)(float)draw_number(&seed, 140);
  run_with(*state, "mma_parts.cu", x, got);
  for (int i = 0; i < 256; i++) {
    const double *part = got + 4 * i, size = fabs(x[i]);
    const int expected = size == 0 || (size >= 0x1p-50 && isfinite(x[i]));
    assert_true(part[3] == expected);
    ordinary += expected;
    if (!expected) continue;
    assert_true(part[0] + part[1] + part[2] == x[i]);
    for (int p = 0; p < 3; p++) {
      assert_true((double)tf32_number((float)part[p]) == part[p]);
      assert_true(part[p] == 0 || fabs(part[p]) >= 0x1p-126);
    }
  }
  assert_in_range(ordinary, 100, 250);
}

/* The text behind "// MARK STATUS " on a line of its own, up to its end; 0 when there is none. */
static int expectation(const char *text, const char *mark, int *status, char *part, size_t size) {
  const char *line = strstr(text, mark);
  char *end;
  if (!line) return 0;
  *status = (int)strtol(line + strlen(mark), &end, 10);
  snprintf(part, size, "%.*s", (int)strcspn(end + 1, "\n"), end + 1);
  return 1;
}

static void check_bad(struct batch *batch, int kernel, int status, const char *part) {
  struct cb_host_job jobs[4];
  struct cb_diag diag = {0};
  double result[OUTPUTS];
  for (int j = 0; j < 4; j++) {
    jobs[j] = job_for(batch, kernel, result);
    jobs[j].seed = (uint64_t)j * 17;
    jobs[j].products = 5;
  }
  if (cb_host_run(batch->program, jobs, status == EMULATION_TIME ? 1 : 4, &diag))
    fail_msg("%s", diag.message);
  for (int j = 0; j < (status == EMULATION_TIME ? 1 : 4); j++) {
    if (jobs[j].outcome == CB_HOST_STOPPED && jobs[j].exit_code == status && strstr(jobs[j].message, part))
      continue;
    fail_msg("%s: wanted status %d and '%s', got outcome %d, status %d and '%s'", batch->names[kernel],
             status, part, jobs[j].outcome, jobs[j].exit_code, jobs[j].message);
  }
}

static void test_bad_sanitized(void **state) {
  struct batch *batch = *state;
  char part[200];
  int status = 0, seen = 0;
  for (int k = 0; k < batch->count; k++) {
    if (strncmp(batch->names[k], "bad_", 4)) continue;
    assert_true(expectation(batch->texts[k], "// expect ", &status, part, sizeof part));
    check_bad(batch, k, status, part);
    seen++;
  }
  assert_true(seen >= 37);
}

static void test_bad_plain(void **state) {
  struct batch *batch = *state;
  char part[200];
  int status = -1;
  for (int k = 0; k < batch->count; k++) {
    if (strncmp(batch->names[k], "bad_", 4)) continue;
    if (!expectation(batch->texts[k], "// plain ", &status, part, sizeof part)) {
      assert_true(expectation(batch->texts[k], "// expect ", &status, part, sizeof part));
      if (status == EMULATION_SANITIZER || status == EMULATION_TIME) continue;
    }
    check_bad(batch, k, status, part);
  }
}

static void test_refused(void **state) {
  double got[OUTPUTS];
  const struct cb_host_job job = run_one(*state, "refused_dynamic.cu", 1, got);
  assert_int_equal(job.outcome, CB_HOST_REFUSED);
  assert_non_null(strstr(job.message, "invalid argument"));
  assert_int_equal(run_one(*state, "refused_grid.cu", 1, got).outcome, CB_HOST_REFUSED);
}

static void test_positions(void **state) {
  struct batch *batch = *state;
  double got[OUTPUTS];
  struct cb_host_job job = run_one(batch, "bad_barrier_and_shuffle.cu", 1, got);
  assert_non_null(strstr(job.message, "in kernel kernel (launch 1), block 0, thread "));
  assert_non_null(strstr(job.message, "wait at __shfl_xor_sync(0xffffffff) in line 8"));
  job = run_one(batch, "bad_race_warps.cu", 1, got);
  assert_non_null(strstr(job.message, "in line 7"));
  assert_non_null(strstr(job.message, "in line 9"));
  assert_non_null(strstr(job.message, "block 0, thread "));
}

/* One bad job takes the others of its batch along with it only until they are run again. */
static void test_jobs_after_a_crash(void **state) {
  struct batch *batch = *state;
  struct cb_diag diag = {0};
  struct cb_host_job jobs[9];
  double results[9][OUTPUTS], expected[OUTPUTS];
  memcpy(expected, batch->y, sizeof expected);
  expect_transpose(batch->x, expected);
  for (int j = 0; j < 9; j++)
    jobs[j] = job_for(batch, find(batch, j % 3 == 1 ? "bad_race_warps.cu" : "good_transpose.cu"), results[j]);
  assert_int_equal(cb_host_run(batch->program, jobs, 9, &diag), CB_OK);
  for (int j = 0; j < 9; j++) {
    assert_int_equal(jobs[j].outcome, j % 3 == 1 ? CB_HOST_STOPPED : CB_HOST_DONE);
    if (j % 3 != 1) assert_memory_equal(results[j], expected, sizeof expected);
  }
}

static void test_unwritten(void **state) {
  struct batch *batch = *state;
  double got[OUTPUTS];
  for (int i = 0; i < OUTPUTS; i++) batch->y[i] = -77;
  const struct cb_host_job job = run_one(batch, "wrong_unwritten.cu", 3, got);
  assert_int_equal(job.outcome, CB_HOST_DONE);
  for (int i = 0; i < OUTPUTS; i++) assert_true(got[i] == (i < 32 && i != 5 ? batch->x[i] : -77));
  memset(batch->y, 0, sizeof batch->y);
}

static void test_unrepeatable(void **state) {
  struct batch *batch = *state;
  double got[OUTPUTS];
  const struct cb_host_job job = run_one(batch, "wrong_order.cu", 30, got);
  assert_int_equal(job.outcome, CB_HOST_UNREPEATABLE);
  assert_int_equal(job.row, 0);
}

static void test_bad_text(void **state) {
  struct batch *batch = *state;
  struct cb_diag diag = {0};
  struct cb_host_program *program;
  const char *text = "constexpr int kBlocks = 1, kThreads = 32, kUnused = 3;\n"
                     "CBGEN_KERNEL void kernel(const double *x, double *y) { y[0] = x[0] + no_such_name; }\n";
  const struct cb_host_kernel kernel = {
      .text = text, .first_line = 41, .symbol = "m", .vector_type = CB_F64, .form = CB_FORM_AX};
  assert_int_equal(cb_host_build(&program, batch->host, &kernel, 1, &diag), CB_ERR_COMPILE);
  assert_null(program);
  assert_non_null(strstr(diag.message, "k0.cu:42"));
  assert_non_null(strstr(diag.message, "no_such_name"));
}

static void test_missing_compiler(void **state) {
  struct cb_host_options options;
  struct cb_diag diag = {0};
  struct cb_host *host;
  (void)state;
  cb_host_options_default(&options);
  options.compiler = "no-such-compiler -x";
  assert_int_equal(cb_host_open(&host, &options, &diag), CB_ERR_MISSING);
  assert_null(host);
  assert_non_null(strstr(diag.message, "install g++"));
}

/* ---- work directories, in a TMPDIR of the test's own */

static char *enter_tmpdir(void) {
  char *before = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
  setenv("TMPDIR", getenv("CBGEN_TEST_TMP"), 1);
  return before;
}

static void leave_tmpdir(char *before) {
  if (before)
    setenv("TMPDIR", before, 1);
  else
    unsetenv("TMPDIR");
  free(before);
}

static size_t count_directories(void) {
  glob_t found;
  char pattern[4096];
  snprintf(pattern, sizeof pattern, "%s/cbgen-??????", getenv("CBGEN_TEST_TMP"));
  const size_t count = glob(pattern, 0, NULL, &found) ? 0 : found.gl_pathc;
  globfree(&found);
  return count;
}

static void test_nothing_left_behind(void **state) {
  struct cb_host_options options;
  struct cb_host *first, *second;
  char *before = enter_tmpdir();
  (void)state;
  cb_host_options_default(&options);
  assert_int_equal(cb_host_open(&first, &options, NULL), CB_OK);
  assert_int_equal(count_directories(), 1);
  assert_int_equal(cb_host_open(&second, &options, NULL), CB_OK);
  assert_int_equal(count_directories(), 2); /* the first is in use: nobody sweeps it */
  cb_host_close(first);
  cb_host_close(second);
  options.compiler = "false";
  assert_int_equal(cb_host_open(&first, &options, NULL), CB_ERR_COMPILE);
  assert_int_equal(count_directories(), 0);
  leave_tmpdir(before);
}

static void test_remains_of_the_killed_are_swept(void **state) {
  struct cb_host_options options;
  struct cb_host *host;
  char *before = enter_tmpdir();
  (void)state;
  cb_host_options_default(&options);
  const pid_t child = fork();
  if (!child) {
    const enum cb_status s = cb_host_open(&host, &options, NULL);
    _exit(s ? 1 : 0); /* without closing */
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_int_equal(count_directories(), 1);
  assert_int_equal(cb_host_open(&host, &options, NULL), CB_OK);
  assert_int_equal(count_directories(), 1);
  cb_host_close(host);
  assert_int_equal(count_directories(), 0);
  leave_tmpdir(before);
}

/* Opens and closes hosts, whose compiler does nothing. Returns how many failed. */
static int open_many(int count) {
  struct cb_host_options options;
  struct cb_host *host;
  int failed = 0;
  cb_host_options_default(&options);
  options.compiler = "true";
  for (int i = 0; i < count; i++) {
    failed += cb_host_open(&host, &options, NULL) != CB_OK;
    cb_host_close(host);
  }
  return failed;
}

/* Each sweeps while others make their directories. */
static void test_nobody_sweeps_what_is_being_made(void **state) {
  enum { CHILDREN = 6, HOSTS = 60 };
  pid_t child[CHILDREN];
  int wrong = 0;
  char *before = enter_tmpdir();
  (void)state;
  for (int c = 0; c < CHILDREN; c++)
    if (!(child[c] = fork())) _exit(open_many(HOSTS));
  for (int c = 0; c < CHILDREN; c++) {
    int status = -1;
    wrong += waitpid(child[c], &status, 0) != child[c] || status != 0;
  }
  assert_int_equal(wrong, 0);
  assert_int_equal(count_directories(), 0);
  leave_tmpdir(before);
}

int main(void) {
  const struct CMUnitTest sanitized[] = {
      cmocka_unit_test(test_good),
      cmocka_unit_test(test_bad_sanitized),
      cmocka_unit_test(test_mma_f64),
      cmocka_unit_test(test_mma_f32),
      cmocka_unit_test(test_tf32_parts),
      cmocka_unit_test(test_positions),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_jobs_after_a_crash),
      cmocka_unit_test(test_unwritten),
      cmocka_unit_test(test_unrepeatable),
      cmocka_unit_test(test_bad_text),
      cmocka_unit_test(test_missing_compiler),
      cmocka_unit_test(test_nothing_left_behind),
      cmocka_unit_test(test_remains_of_the_killed_are_swept),
      cmocka_unit_test(test_nobody_sweeps_what_is_being_made),
  };
  const struct CMUnitTest plain[] = {
      cmocka_unit_test(test_good),
      cmocka_unit_test(test_bad_plain),
      cmocka_unit_test(test_jobs_after_a_crash),
  };
  return cmocka_run_group_tests_name("sanitized", sanitized, start_sanitized, finish) +
         cmocka_run_group_tests_name("plain", plain, start_plain, finish);
}
