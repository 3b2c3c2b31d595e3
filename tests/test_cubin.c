// SPDX-License-Identifier: Apache-2.0
/* Reading cubins: against what is known of the kernels, against the assembler's own words where ptxas is
 * installed, and with damaged files. */
#include "tests/skips.h"
#include "tests/support.h"

#include "runtime/cuda/cubin.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/verify/process.h"

#include <unistd.h>

static const char text[] =
    "extern \"C\" __global__ void __launch_bounds__(256) a_copy(const double *x, double *y) {\n"
    "  y[threadIdx.x] = x[threadIdx.x];\n"
    "}\n"
    /* an array that is indexed by data lies in local memory */
    "extern \"C\" __global__ void b_stack(int *y, int k) {\n"
    "  int a[64];\n"
    "  for (int i = 0; i < 64; i++) a[i] = y[i] * k;\n"
    "  for (int i = 0; i < 64; i++) y[i + 64] = a[y[i] & 63];\n"
    "}\n"
    "extern \"C\" __global__ void c_shared(int *y) {\n"
    "  __shared__ int s[500];\n"
    "  s[threadIdx.x] = y[threadIdx.x];\n"
    "  __syncthreads();\n"
    "  y[threadIdx.x] = s[499 - threadIdx.x];\n"
    "}\n"
    /* 1024 threads leave at most 64 registers to each, and 40 doubles are alive: they spill */
    "extern \"C\" __global__ void __launch_bounds__(1024) d_spill(double *y) {\n"
    "  double v[40];\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < 40; i++) v[i] = y[i * 1024 + threadIdx.x];\n"
    "  __syncthreads();\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < 40; i++) {\n"
    "    double s = 0;\n"
    "#pragma unroll\n"
    "    for (int j = 0; j < 40; j++) s += v[j] * v[(i + j) % 40];\n"
    "    y[i * 1024 + threadIdx.x] = s;\n"
    "  }\n"
    "}\n";
enum { COPY, STACK, SHARED, SPILL, KERNELS };

static const char *const arches[] = {"sm_80", "sm_89", "sm_90", "sm_100", NULL};

static void compile_or_skip(struct cb_compiled *compiled, const char *arch) {
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc = NULL;
  if (cb_nvrtc_open(&nvrtc, NULL, &diag) == CB_ERR_MISSING) {
    skip_because(diag.message);
  }
  const struct cb_nvrtc_options options = {.arch = arch, .ptx = 1};
  assert_ok(cb_nvrtc_compile(compiled, nvrtc, text, "known.cu", &options, &diag));
  cb_nvrtc_close(nvrtc);
}

static void known_kernels(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  for (int i = 0; arches[i]; i++) {
    struct cb_compiled compiled;
    struct cb_cubin_stats stats;
    compile_or_skip(&compiled, arches[i]);
    assert_ok(cb_cubin_stats(&stats, compiled.cubin, compiled.cubin_bytes, &diag));
    assert_int_equal(stats.count, KERNELS);
    const struct cb_kernel_stats *kernel = stats.kernels;
    static const char *const names[] = {"a_copy", "b_stack", "c_shared", "d_spill"};
    for (int k = 0; k < KERNELS; k++) {
      assert_string_equal(kernel[k].name, names[k]);
      assert_in_range(kernel[k].registers, 4, 255);
      assert_true(kernel[k].code_bytes > 0);
      assert_true(kernel[k].constant_bytes > 0);
      assert_int_equal(kernel[k].static_shared, k == SHARED ? 2000 : 0);
    }
    assert_int_equal(kernel[COPY].stack_bytes, 0);
    assert_int_equal(kernel[STACK].stack_bytes, 256);
    assert_int_equal(kernel[SHARED].stack_bytes, 0);
    assert_in_range(kernel[SPILL].registers, 24, 64);
    assert_true(kernel[SPILL].stack_bytes > 40);
    const struct cb_kernel_stats worst = cb_cubin_stats_worst(&stats);
    assert_int_equal(worst.static_shared, 2000);
    assert_true(worst.registers >= kernel[SPILL].registers);
    assert_true(worst.stack_bytes >= 256);
    cb_cubin_stats_release(&stats);
    cb_compiled_release(&compiled);
  }
}

/* The number in front of `what` after `kernel`'s line in the assembler's report, or -1. */
static int reported(const char *report, const char *kernel, const char *what) {
  char head[160];
  snprintf(head, sizeof head, "Function properties for %s\n", kernel);
  const char *at = strstr(report, head);
  const char *next = at ? strstr(at + 1, "Compiling entry function") : NULL;
  const char *found = at ? strstr(at, what) : NULL;
  if (!found || (next && found > next)) return -1;
  while (found > at && (found[-1] == ' ' || (found[-1] >= '0' && found[-1] <= '9'))) found--;
  return (int)strtol(found, NULL, 10);
}

static char *slurp(const char *path) {
  static char bytes[1 << 16];
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  bytes[fread(bytes, 1, sizeof bytes - 1, file)] = 0;
  fclose(file);
  return bytes;
}

/* Assembles the PTX with ptxas -v; 0 when there is no ptxas. */
static int assemble(const char *ptx, const char *arch, char report[512]) {
  char source[512], arch_option[32];
  const char *tmp = getenv("CBGEN_TEST_TMP");
  snprintf(source, sizeof source, "%s/known.ptx", tmp ? tmp : "/tmp");
  snprintf(report, 512, "%s/known.log", tmp ? tmp : "/tmp");
  snprintf(arch_option, sizeof arch_option, "-arch=%s", arch);
  FILE *file = fopen(source, "w");
  assert_non_null(file);
  fputs(ptx, file);
  fclose(file);
  static const char *const places[] = {"ptxas", "/usr/local/cuda/bin/ptxas"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    struct cb_diag diag = {0};
    const char *const argv[] = {places[i], "-v", arch_option, "-o", "/dev/null", source, NULL};
    struct cb_process process = {.argv = argv, .output = report, .seconds = 600};
    assert_ok(cb_process_run(&process, &diag));
    if (process.found && process.exit_code == 0) return 1;
  }
  return 0;
}

static void agrees_with_the_assembler(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  for (int i = 0; arches[i]; i++) {
    struct cb_compiled compiled;
    struct cb_cubin_stats stats;
    char path[512];
    compile_or_skip(&compiled, arches[i]);
    if (!assemble(compiled.ptx, arches[i], path)) {
      cb_compiled_release(&compiled);
      skip_because("no ptxas that takes this PTX; install the CUDA toolkit");
    }
    const char *report = slurp(path);
    assert_ok(cb_cubin_stats(&stats, compiled.cubin, compiled.cubin_bytes, &diag));
    for (int k = 0; k < stats.count; k++) {
      const struct cb_kernel_stats *kernel = &stats.kernels[k];
      const int shared = reported(report, kernel->name, " bytes smem");
      assert_int_equal(kernel->stack_bytes, reported(report, kernel->name, " bytes stack frame"));
      assert_int_equal(kernel->static_shared, shared < 0 ? 0 : shared);
      assert_int_equal(kernel->registers, reported(report, kernel->name, " registers"));
    }
    cb_cubin_stats_release(&stats);
    cb_compiled_release(&compiled);
  }
}

static void other_bytes_are_refused(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_cubin_stats stats;
  char self[1 << 12] = {0};
  assert_int_equal(cb_cubin_stats(&stats, "", 0, &diag), CB_ERR_FORMAT);
  assert_int_equal(cb_cubin_stats(&stats,
                                  "text that is longer than a header of an ELF file, which is 64 bytes long",
                                  70, &diag),
                   CB_ERR_FORMAT);
  FILE *file = fopen("/proc/self/exe", "rb"); /* an ELF file, but for the host */
  assert_non_null(file);
  const size_t length = fread(self, 1, sizeof self, file);
  fclose(file);
  assert_int_equal(cb_cubin_stats(&stats, self, length, &diag), CB_ERR_FORMAT);
}

/* Cut anywhere, or with any byte of its tables changed, a cubin gives stats or a refusal, never a crash. The
 * bytes are copied to a block of their exact length, so that a sanitizer sees a read beyond. */
static void damage_never_crashes(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_compiled compiled;
  struct cb_cubin_stats stats;
  compile_or_skip(&compiled, "sm_90");
  const size_t length = compiled.cubin_bytes, step = length / 100 + 1;
  int refused = 0;
  for (size_t cut = 0; cut < length; cut += cut < 80 ? 1 : step) {
    unsigned char *copy = malloc(cut ? cut : 1);
    assert_non_null(copy);
    memcpy(copy, compiled.cubin, cut);
    const enum cb_status s = cb_cubin_stats(&stats, copy, cut, &diag);
    refused += s == CB_ERR_FORMAT;
    if (!s) cb_cubin_stats_release(&stats);
    free(copy);
  }
  assert_true(refused > 80);
  uint64_t seed = 1;
  for (int round = 0; round < 800; round++) {
    unsigned char *copy = malloc(length);
    assert_non_null(copy);
    memcpy(copy, compiled.cubin, length);
    /* in the header and in the section table, where offsets are */
    uint64_t table;
    memcpy(&table, copy + 40, sizeof table);
    const uint64_t random = draw(&seed);
    const size_t at = random % 4 ? table + (random >> 8) % (length - table) : (random >> 8) % 64;
    copy[at] = (unsigned char)(random >> 56);
    if (!cb_cubin_stats(&stats, copy, length, &diag)) cb_cubin_stats_release(&stats);
    free(copy);
  }
  cb_compiled_release(&compiled);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_kernels),
      cmocka_unit_test(agrees_with_the_assembler),
      cmocka_unit_test(other_bytes_are_refused),
      cmocka_unit_test(damage_never_crashes),
  };
  return exit_code_of(cmocka_run_group_tests(tests, NULL, NULL));
}
