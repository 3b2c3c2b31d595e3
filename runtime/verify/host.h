// SPDX-License-Identifier: Apache-2.0
/* Generated kernels on the host: compiled as C++, linked with the emulated GPU of runtime/verify/emulation, run.
 *
 *   cb_host_open      a work directory, a C++ compiler, the emulator compiled
 *   cb_host_build     kernels → executables, many kernels to a translation unit; equal texts are compiled once
 *   cb_host_run       jobs (matrix, x, y, α, β) → y, or what stopped the kernel
 *   cb_host_selftest  a whole kernel.cu → its own self-test
 *
 * Work directories are made in $TMPDIR (else /tmp) and removed on close; those that a killed process left
 * behind are removed by the next one. Kernels run in child processes, so nothing that they do reaches the
 * caller. A host may be used by one thread at a time; it uses several processes itself.
 */
#ifndef CBGEN_RUNTIME_VERIFY_HOST_H
#define CBGEN_RUNTIME_VERIFY_HOST_H

#include "analysis/options.h"
#include "base/status.h"
#include "base/types.h"

#include <stdint.h>

struct cb_host_options {
  const char *compiler; /* NULL: $CXX, else the first of c++, g++, clang++ */
  int sanitize;         /* under AddressSanitizer and UBSan */
  int optimize;         /* -O level */
  int debug;            /* line tables, so that the sanitizers' reports name lines */
  int parallel;         /* processes at a time; 0: one for each processor */
  int batch;            /* kernels per translation unit */
  double job_seconds;   /* processor time that one job may take; 0: no limit */
};
void cb_host_options_default(struct cb_host_options *options);

struct cb_host;

/* CB_ERR_MISSING when there is no C++ compiler (or no sanitizer runtime for it). CB_ERR_UNSUPPORTED in a process with
 * more rights than its caller's (base/environment.h). */
enum cb_status cb_host_open(struct cb_host **host, const struct cb_host_options *options,
                            struct cb_diag *diag);
void cb_host_close(struct cb_host *host); /* removes the work directory; NULL is accepted */

/* The compiler that was found ("g++"). */
const char *cb_host_compiler(const struct cb_host *host);

struct cb_host_kernel {
  const char *text;   /* what stands behind the device prelude (codegen/source.h: text + body) */
  int first_line;     /* of `text` in its kernel.cu, for messages; 0 counts as 1 */
  const char *symbol; /* prefix of its host functions */
  enum cb_type vector_type;
  enum cb_form form;
  const char *arguments; /* of its multiply behind x and y, as C++ with ", " behind each, where `at` is what the job has as
                          * y, and the text's own y is NULL: of an epilogue; NULL: none */
  int vectors;   /* above 1: the text has S_multiply_many, too */
  int heads;     /* the text has S_multiply_heads, too */
  int is_traced; /* `text` is a traced one (trace_text.h): its jobs have a `trace`, and its program is it alone */
};

struct cb_host_program;

/* Compiles `count` kernels. CB_ERR_COMPILE brings the compiler's first messages, as "kNUMBER.cu:LINE: …". The
 * texts are not kept. The program must be freed before its host is closed. */
enum cb_status cb_host_build(struct cb_host_program **program, struct cb_host *host,
                             const struct cb_host_kernel *kernels, int count, struct cb_diag *diag);
void cb_host_program_free(struct cb_host_program *program); /* NULL is accepted */

/* Wall-clock seconds that the build took; how many different texts there were. */
double cb_host_build_seconds(const struct cb_host_program *program);
int cb_host_build_texts(const struct cb_host_program *program);

/* What a traced product was made of: see emulation/jobs.h. */
struct emulation_node;
struct cb_host_trace {
  int64_t nodes_count, rows;
  struct emulation_node *nodes;
  uint64_t *of_row; /* the node that stands in y */
};
void cb_host_trace_release(struct cb_host_trace *trace);

enum cb_host_outcome {
  CB_HOST_DONE,
  CB_HOST_REFUSED,      /* load or multiply returned an error */
  CB_HOST_UNREPEATABLE, /* another order of warps gave other bits, first in `row` */
  CB_HOST_LEAKED,       /* free left device memory behind */
  CB_HOST_STOPPED       /* the emulator or a sanitizer stopped the kernel, or it crashed; see `exit_code` */
};

/* Where several vectors lie: emulation/jobs.h. */
struct cb_host_columns {
  int64_t count, x_entry, x_vector, y_entry, y_vector;
};

struct cb_host_job {
  int kernel;
  const void *data; /* the blob's image */
  int64_t data_bytes;
  const void *x, *y; /* y: what it holds before every product */
  int64_t x_bytes, y_bytes;
  double alpha, beta, alpha_imag, beta_imag;
  struct cb_host_columns columns; /* count 0: one vector */
  int heads;      /* with heads of split values alone */
  uint64_t seed;  /* of the order of warps: product p uses seed + p */
  int products;   /* how often to multiply; at least 1 */
  int repeatable; /* all products must agree bit for bit */
  const int64_t *only; /* to trace: EMULATION_LAUNCHES thread blocks (emulation/jobs.h), or NULL: all run */
  /* results */
  struct cb_host_trace *trace; /* of the first product; of a traced kernel; cb_host_trace_release */
  void *result; /* the caller's; y_bytes: y after the first product */
  enum cb_host_outcome outcome;
  int exit_code; /* CB_HOST_STOPPED: enum emulation_exit of emulation/jobs.h */
  int64_t row;
  double seconds;     /* of all products */
  char message[1024]; /* empty when done */
};

/* Runs all jobs; what becomes of each is in its outcome. An error is one of this side. */
enum cb_status cb_host_run(struct cb_host_program *program, struct cb_host_job *jobs, int count,
                           struct cb_diag *diag);

struct cb_host_selftest {
  char output[1024]; /* the beginning of what the last run printed */
  double compile_seconds, run_seconds; /* wall clock */
  int network; /* 1: the system did not let the program be cut off from the network */
};

/* Compiles the file `path` (a kernel.cu) with CBGEN_SELFTEST and runs it `orders` times in its directory,
 * where it finds its sidecar, each time with another order of warps, drawn from `seed`. This executes the file's code,
 * as a confined child (process.h). CB_ERR_COMPILE, CB_ERR_FORMAT (it is no kernel with a self-test), or CB_ERR_WRONG
 * with what it printed, or with what its y shows (evidence.h). */
enum cb_status cb_host_selftest(struct cb_host *host, const char *path, uint64_t seed, int orders,
                                struct cb_host_selftest *result, struct cb_diag *diag);

#endif
