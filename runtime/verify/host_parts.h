// SPDX-License-Identifier: Apache-2.0
/* What the files of the host execution share.
 *
 *   host.c            the work directory, messages out of a child's output, the compiler, opening and closing
 *   host_program.c    many kernels: translation units, their executables, files of jobs
 *   host_selftest.c   one kernel.cu
 */
#ifndef CBGEN_RUNTIME_VERIFY_HOST_PARTS_H
#define CBGEN_RUNTIME_VERIFY_HOST_PARTS_H

#include "runtime/verify/host.h"

enum { PATH_SIZE = 4400, MAX_WORDS = 16 };

struct cb_host {
  struct cb_host_options options;
  char directory[4096];
  int lock;                         /* on the directory */
  char compiler[1024];              /* its words, separated by NULs */
  const char *words[MAX_WORDS + 1]; /* into `compiler`; NULL-terminated */
  int programs;                     /* built so far, for names of files */
};

/* ---- files of the work directory */

void cb_host_path(const struct cb_host *host, const char *name, const char *suffix, char path[PATH_SIZE]);
enum cb_status cb_host_write(const char *path, const char *bytes, size_t length, struct cb_diag *diag);
/* The first `size - 1` bytes of a file; "" when it cannot be read. */
void cb_host_read_head(const char *path, char *bytes, size_t size);
/* The lines of a child's output that tell something, as many as fit. */
void cb_host_summarise(const char *path, char *message, size_t size);

/* ---- compiling */

struct cb_host_command {
  const char *words[64];
  int count;
};

void cb_host_add_word(struct cb_host_command *command, const char *word);
void cb_host_add_words(struct cb_host_command *command, const char *const *words);
/* The compiler, and how kernels are compiled. */
void cb_host_add_kernel_flags(const struct cb_host *host, struct cb_host_command *command);
/* Runs a compiler command in the work directory. `log` names the file of its output. */
enum cb_status cb_host_compile(const struct cb_host *host, const struct cb_host_command *command, const char *log,
                               struct cb_diag *diag);

/* What sanitizers are told, in the environment of a compiled kernel: two variables. */
extern const char *const cb_host_sanitizer_environment[];

#endif
