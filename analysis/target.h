// SPDX-License-Identifier: Apache-2.0
/* The GPU that a plan is made for. Plans differ per target: shared memory and multiprocessors shape them. */
#ifndef CBGEN_ANALYSIS_TARGET_H
#define CBGEN_ANALYSIS_TARGET_H

#include "base/status.h"

#include <stdint.h>

struct cb_target {
  char arch[16];              /* "sm_90" */
  char model[64];             /* "NVIDIA H200" */
  int multiprocessors;
  int shared_per_block;       /* bytes a thread block may ask for (opt-in) */
  int shared_per_sm;          /* bytes */
  int64_t l2_bytes;
  int64_t read_gb_per_s;      /* device memory, streaming reads */
  int64_t sectors_g_per_s;    /* 32-byte sectors from L2, 10^9 per second */
  int64_t launch_ns;          /* an empty kernel, back to back */
  int64_t l2_gb_per_s;        /* streaming reads of data that lie in L2 */
  int64_t latency_ns;         /* one load that hits L2 and that the next one depends on */
};

/* One row per architecture that cbgen emits for: sm_80 (A100), sm_89 (RTX 4090), sm_90 (H200), sm_100 (B200).
 * The H200's figures are measured; the others are from data sheets. */
extern const struct cb_target cb_target_table[]; /* ends with an empty arch */

/* The row for "sm_90"; CB_ERR_ARGUMENT lists what there is. */
enum cb_status cb_target_find(struct cb_target *target, const char *arch, struct cb_diag *diag);

#endif
