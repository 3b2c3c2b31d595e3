// SPDX-License-Identifier: Apache-2.0
/* The GPU that a plan is made for. Plans differ per target: shared memory and multiprocessors shape them. */
#ifndef CBGEN_ANALYSIS_TARGET_H
#define CBGEN_ANALYSIS_TARGET_H

#include "base/status.h"
#include "base/text.h"

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

/* What there is of GPU architectures from sm_75 on: the one table that --arch, verify, the device at run time and the
 * documents go by. `target` describes one GPU of the architecture; a device at run time says its own limits. */
struct cb_architecture {
  struct cb_target target; /* if it is refused, only its arch is set */
  const char *nvrtc;       /* the first NVRTC from 12.0 on that compiles for it: "12.8" */
  int measured;            /* the figures are; else they are from data sheets */
  int verified;            /* verify compiles for it by default */
  const char *refusal;     /* why it is not planned for; NULL: it is */
};
extern const struct cb_architecture cb_architecture_table[]; /* by number; ends with an empty arch */

/* The target "sm_90"; CB_ERR_ARGUMENT says why it is refused, and what there is. */
enum cb_status cb_target_find(struct cb_target *target, const char *arch, struct cb_diag *diag);

/* Whose figures serve for a device of architecture `number` (90 for sm_90): its own, else the newest older one's; the
 * oldest for what is older still. */
const struct cb_architecture *cb_architecture_nearest(int number);

/* The table, as it stands in the manual, too. */
void cb_architectures_help(struct cb_text *text);

#endif
