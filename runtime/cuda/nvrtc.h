// SPDX-License-Identifier: Apache-2.0
/* NVRTC, CUDA's compiler as a library, opened at run time: CUDA text → cubin for one architecture. No GPU and
 * no driver are needed.
 *
 *   cb_nvrtc_open(&nvrtc, NULL, diag)
 *   cb_nvrtc_compile(&compiled, nvrtc, text, "kernel.cu", &(struct cb_nvrtc_options){.arch = "sm_90"}, diag)
 *   cb_cubin_stats(&stats, compiled.cubin, compiled.cubin_bytes, diag)             runtime/cuda/cubin.h
 */
#ifndef CBGEN_RUNTIME_CUDA_NVRTC_H
#define CBGEN_RUNTIME_CUDA_NVRTC_H

#include "base/status.h"

#include <stddef.h>

struct cb_nvrtc;

/* NVRTC's functions with the prototypes of nvrtc.h (nvrtcResult is an unsigned int to gcc and clang). */
struct _nvrtcProgram;
enum { CB_NVRTC_COMPILATION = 6 };
struct cb_nvrtc_calls {
  const char *(*error_string)(unsigned result);
  unsigned (*version)(int *major, int *minor);
  unsigned (*arches_count)(int *count);
  unsigned (*arches)(int *arches);
  unsigned (*create)(struct _nvrtcProgram **program, const char *text, const char *name, int headers,
                     const char *const *header_texts, const char *const *header_names);
  unsigned (*destroy)(struct _nvrtcProgram **program);
  unsigned (*compile)(struct _nvrtcProgram *program, int options, const char *const *option_texts);
  unsigned (*log_size)(struct _nvrtcProgram *program, size_t *bytes);
  unsigned (*log)(struct _nvrtcProgram *program, char *log);
  unsigned (*cubin_size)(struct _nvrtcProgram *program, size_t *bytes);
  unsigned (*cubin)(struct _nvrtcProgram *program, char *cubin);
  unsigned (*ptx_size)(struct _nvrtcProgram *program, size_t *bytes);
  unsigned (*ptx)(struct _nvrtcProgram *program, char *ptx);
};

/* `path` NULL: $CBGEN_NVRTC (a file or a directory), else libnvrtc.so.13, .12, … where the loader, a CUDA
 * toolkit or the PyPI wheel nvidia-cuda-nvrtc has it. CB_ERR_MISSING says how to get it. */
enum cb_status cb_nvrtc_open(struct cb_nvrtc **nvrtc, const char *path, struct cb_diag *diag);
void cb_nvrtc_close(struct cb_nvrtc *nvrtc); /* NULL is accepted */

void cb_nvrtc_version(const struct cb_nvrtc *nvrtc, int *major, int *minor);
const char *cb_nvrtc_path(const struct cb_nvrtc *nvrtc);

/* Whether it compiles for "sm_90". */
int cb_nvrtc_supports(const struct cb_nvrtc *nvrtc, const char *arch);
/* All of them, as numbers (90 for sm_90), ascending. */
const int *cb_nvrtc_arches(const struct cb_nvrtc *nvrtc, int *count);

struct cb_nvrtc_options {
  const char *arch;  /* "sm_90" */
  int line_info;     /* -lineinfo, for profilers and compute-sanitizer */
  int ptx;           /* keep the PTX as well */
  int strict;        /* warnings, unused variables among them, are errors */
  int max_registers; /* per thread; 0: as __launch_bounds__ says */
  int fewer_blocks;  /* on a multiprocessor than the text's __launch_bounds__ ask for: see spills.h */
};

struct cb_compiled {
  char arch[16];
  unsigned char *cubin;
  size_t cubin_bytes;
  char *ptx;      /* NUL-terminated; NULL unless asked for */
  char *log;      /* the compiler's, "" when it said nothing; also after CB_ERR_COMPILE; may be NULL */
  double seconds; /* wall clock, all of NVRTC */
  int fewer_blocks;  /* as in the options that it was compiled with */
  int spilled_bytes; /* per thread, of the kernel that spills most: found by cb_compile_fitting */
};

/* Compiles `text`, which messages call `name`. Where NVRTC does not know the architecture, it is compiled for an older
 * one whose binaries run there, if there is one (compiled->arch). CB_ERR_COMPILE brings the log's first errors in the
 * message. Release `compiled` in any case. NVRTC may be used from several threads. */
enum cb_status cb_nvrtc_compile(struct cb_compiled *compiled, const struct cb_nvrtc *nvrtc, const char *text,
                                const char *name, const struct cb_nvrtc_options *options,
                                struct cb_diag *diag);
void cb_compiled_release(struct cb_compiled *compiled);

#endif
