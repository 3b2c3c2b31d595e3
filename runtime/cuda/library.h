// SPDX-License-Identifier: Apache-2.0
/* Shared libraries that are opened at run time, each described by two tables: where to look, and which
 * functions to bind. CUDA's headers and libraries are needed neither to build nor to start cbgen.
 *
 * Where a library is looked for: the caller's path (a file, or a directory with one of the names) if there is
 * one; else what the environment variable says (likewise), if it is set; else, in this order:
 *   names    as the dynamic loader finds them
 *   CUDA     lib64 and lib of $CUDA_HOME, $CUDA_PATH, /usr/local/cuda
 *   wheels   nvidia/DIRECTORY/lib in Python's package directories ($VIRTUAL_ENV, $CONDA_PREFIX, ~/.local,
 *            /usr/local, /usr)
 *
 * With more rights than its caller's a process believes no variable (base/environment.h), so that only what the loader
 * finds, /usr/local and /usr are left.
 */
#ifndef CBGEN_RUNTIME_CUDA_LIBRARY_H
#define CBGEN_RUNTIME_CUDA_LIBRARY_H

#include "base/status.h"

#include <stddef.h>

struct cb_library_search {
  const char *what;          /* "the CUDA driver", for messages */
  const char *remedy;        /* what to install */
  const char *variable;      /* environment variable, or NULL */
  const char *const *names;  /* file names, best first, NULL-terminated */
  const char *const *wheels; /* directories below site-packages/nvidia, NULL-terminated; NULL: neither
                              * wheels nor CUDA's directories are searched */
};

/* One function: its name in the library and the place of its pointer in the caller's struct. */
struct cb_library_symbol {
  const char *name;
  size_t offset;
  int optional; /* left NULL when the library has none */
};

struct cb_library {
  void *handle;
  char path[512]; /* the file as it was opened */
};

/* Opens the library and binds `symbols` (ends with a NULL name) into `calls`. CB_ERR_MISSING says what to
 * install, and names the functions that an installed one lacks. */
enum cb_status cb_library_open(struct cb_library *library, const struct cb_library_search *search,
                               const char *path, const struct cb_library_symbol *symbols, void *calls,
                               struct cb_diag *diag);
void cb_library_close(struct cb_library *library);

#endif
