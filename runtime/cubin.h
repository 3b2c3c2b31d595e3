// SPDX-License-Identifier: Apache-2.0
/* What a compiled kernel takes, read from the cubin (an ELF file): registers, stack, shared memory; and the
 * spills, which only the assembler's log tells apart from the rest of the stack. */
#ifndef CBGEN_RUNTIME_CUBIN_H
#define CBGEN_RUNTIME_CUBIN_H

#include "base/status.h"

#include <stddef.h>

struct cb_usage {
  char kernel[128];
  int registers;   /* per thread */
  int stack_bytes; /* per thread, in local memory: spills and arrays that did not fit registers */
  int spill_stores, spill_loads; /* bytes; -1: not known (cb_usage_spills was not called) */
  int shared_bytes;              /* static */
  long code_bytes;
};

/* Fills up to `capacity` rows in the order of the file; *count is how many kernels there are. CB_ERR_FORMAT
 * when it is no cubin. */
enum cb_status cb_cubin_usage(struct cb_usage *usages, int capacity, int *count, const void *cubin,
                              size_t length, struct cb_diag *diag);

/* Takes the spills from the log of a compilation (struct cb_compiled). */
void cb_usage_spills(struct cb_usage *usages, int count, const char *log);

#endif
