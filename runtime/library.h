// SPDX-License-Identifier: Apache-2.0
/* Libraries that are opened at run time: where they are looked for, and their functions by name.
 *
 * A set of functions is written once as a list, LIST(CALL) with CALL(member, "symbol", (parameters)) rows;
 * the table of pointers and the table of names come from the same list:
 *
 *   struct calls { LIST(CB_CALL_MEMBER) };
 *   static const struct cb_library_row rows[] = {LIST(CB_CALL_ROW)…};
 */
#ifndef CBGEN_RUNTIME_LIBRARY_H
#define CBGEN_RUNTIME_LIBRARY_H

#include "base/status.h"

#include <stddef.h>

struct cb_library {
  void *handle;
  char path[512]; /* as it was opened */
};

struct cb_library_search {
  const char *what;         /* "NVRTC", for messages */
  const char *variable;     /* environment: a file, or the directory it is in */
  const char *const *names; /* file names, best first, NULL-terminated */
  const char *remedy;       /* "install …" */
};

/* Opens the library that `path` names (a file, or the directory it is in; it is that or none); with NULL the
 * one that the environment variable names, else the first that is found by the system's loader, in
 * $CUDA_HOME/lib64, $CUDA_PATH/lib64, /usr/local/cuda/lib64, or in the NVIDIA wheels of Python's usual
 * directories. CB_ERR_MISSING names the remedy. */
enum cb_status cb_library_open(struct cb_library *library, const struct cb_library_search *search,
                               const char *path, struct cb_diag *diag);
void cb_library_close(struct cb_library *library);

struct cb_library_row {
  const char *symbol;
  size_t offset; /* of the pointer in the table of functions */
  int optional;  /* stays NULL when the library does not have it */
};

/* Fills `table`; CB_ERR_MISSING names the first function that an old library lacks. */
enum cb_status cb_library_resolve(const struct cb_library *library, const struct cb_library_row *rows,
                                  size_t count, void *table, struct cb_diag *diag);

#define CB_CALL_MEMBER(member, symbol, parameters) int(*member) parameters;

#endif
