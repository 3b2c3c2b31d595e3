// SPDX-License-Identifier: Apache-2.0
/* For tests that compile kernels for GPUs, where NVRTC is: no warning, and no spill. */
#ifndef CBGEN_TESTS_NVRTC_SUPPORT_H
#define CBGEN_TESTS_NVRTC_SUPPORT_H

#include "runtime/cuda/cubin.h"
#include "runtime/cuda/nvrtc.h"
#include "tests/skips.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* What kernels are compiled for; ends with NULL. */
static const char *const arches[] = {"sm_80", "sm_89", "sm_90", "sm_100", NULL};

/* Compilations that take turns: the one of this number is for sm_100, where registers are scarcest, every second time,
 * else for one of the others. As many as six in a row meet all. */
static inline const char *arch_in_turn(int number) {
  return number % 2 ? arches[number / 2 % 3] : arches[3];
}

/* Skips the test where there is none. */
static inline struct cb_nvrtc *open_nvrtc(void) {
  struct cb_diag diag = {0};
  struct cb_nvrtc *nvrtc = NULL;
  const enum cb_status s = cb_nvrtc_open(&nvrtc, NULL, &diag);
  if (s == CB_ERR_MISSING) skip_because(diag.message);
  else if (s) fail_msg("%s", diag.message);
  return nvrtc;
}

/* Compiles with warnings as errors. `what` names the kernel in messages. Release the stats. */
static inline struct cb_cubin_stats compile_strictly(const struct cb_nvrtc *nvrtc, const char *text, const char *arch,
                                                     const char *what) {
  struct cb_diag diag = {0};
  struct cb_compiled compiled;
  struct cb_cubin_stats stats;
  const struct cb_nvrtc_options options = {.arch = arch, .strict = 1};
  if (cb_nvrtc_compile(&compiled, nvrtc, text, "kernel.cu", &options, &diag)) fail_msg("'%s': %s", what, diag.message);
  if (cb_cubin_stats(&stats, compiled.cubin, compiled.cubin_bytes, &diag)) fail_msg("'%s': %s", what, diag.message);
  cb_compiled_release(&compiled);
  for (int k = 0; k < stats.count; k++) {
    assert_in_range(stats.kernels[k].registers, 1, 255);
    if (stats.kernels[k].stack_bytes)
      fail_msg("'%s' on %s: kernel '%s' has %d bytes of stack", what, arch, stats.kernels[k].name, stats.kernels[k].stack_bytes);
  }
  return stats;
}

#endif
