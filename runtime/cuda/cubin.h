// SPDX-License-Identifier: Apache-2.0
/* What a cubin says about its kernels, read from its ELF sections: no tool and no GPU needed. */
#ifndef CBGEN_RUNTIME_CUDA_CUBIN_H
#define CBGEN_RUNTIME_CUDA_CUBIN_H

#include "base/status.h"

#include <stddef.h>

struct cb_kernel_stats {
  char name[128];
  int registers;      /* per thread */
  int stack_bytes;    /* local memory per thread: spilled registers and indexed arrays; must be 0 */
  int static_shared;  /* bytes per thread block, without what the system reserves */
  int constant_bytes; /* parameters and literals (bank 0) */
  int code_bytes;
};

struct cb_cubin_stats {
  int count;
  struct cb_kernel_stats *kernels; /* in alphabetical order */
};

/* CB_ERR_FORMAT when the bytes are no cubin. On success release the stats. */
enum cb_status cb_cubin_stats(struct cb_cubin_stats *stats, const void *cubin, size_t bytes,
                              struct cb_diag *diag);
void cb_cubin_stats_release(struct cb_cubin_stats *stats);

/* The largest registers, stack and shared memory of all kernels, in one row (its name is empty). */
struct cb_kernel_stats cb_cubin_stats_worst(const struct cb_cubin_stats *stats);

#endif
