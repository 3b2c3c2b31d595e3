// SPDX-License-Identifier: Apache-2.0
/* NVRTC, the CUDA compiler as a library, opened at run time. It needs no GPU. */
#ifndef CBGEN_RUNTIME_NVRTC_H
#define CBGEN_RUNTIME_NVRTC_H

#include "base/status.h"
#include "base/text.h"

#include <stddef.h>

struct cb_nvrtc;

/* Opens `library` (a file or its directory; NULL: $CBGEN_NVRTC, else where libraries are usually found: see
 * runtime/library.h). CB_ERR_MISSING says what to install; *nvrtc is then NULL. */
enum cb_status cb_nvrtc_open(struct cb_nvrtc **nvrtc, const char *library, struct cb_diag *diag);
void cb_nvrtc_close(struct cb_nvrtc *nvrtc); /* NULL is accepted */

const char *cb_nvrtc_path(const struct cb_nvrtc *nvrtc);
void cb_nvrtc_version(const struct cb_nvrtc *nvrtc, int *major, int *minor);

/* Whether this NVRTC compiles for "sm_90"; appends "sm_75 sm_80 …" to `list` (may be NULL). */
int cb_nvrtc_supports(const struct cb_nvrtc *nvrtc, const char *arch, struct cb_text *list);

/* What came of one text. Zero-initialise; release with cb_compiled_release. */
struct cb_compiled {
  void *cubin; /* owned, for cuModuleLoadData and runtime/cubin.h */
  size_t cubin_length;
  char *ptx;         /* owned, NUL-terminated */
  size_t ptx_length; /* without the NUL */
  char *log;      /* owned; warnings and what the assembler reports about spills; "" when there is nothing */
  double seconds; /* wall clock of the compilation */
};
void cb_compiled_release(struct cb_compiled *compiled);

struct cb_compile_options {
  const char *name;        /* the text's name in messages: "kernel.cu" */
  const char *arch;        /* "sm_90" */
  const char *const *more; /* further options, NULL-terminated; may be NULL */
};

/* Compiles `text`. CB_ERR_COMPILE brings the head of the compiler's log (all of it is in compiled->log, which
 * must be released on failure, too); CB_ERR_UNSUPPORTED: this NVRTC does not know the architecture. Safe to
 * call from several threads. */
enum cb_status cb_nvrtc_compile(struct cb_compiled *compiled, const struct cb_nvrtc *nvrtc, const char *text,
                                const struct cb_compile_options *options, struct cb_diag *diag);

#endif
