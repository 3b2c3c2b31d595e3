// SPDX-License-Identifier: Apache-2.0
/* How long each thread block of a product takes on a GPU, and when it starts: the kernel's text with a clock for each
 * warp (cb_source_emit_clocked), run several times. A thread block lasts from the beginning of its first warp to the
 * end of its last one; its figures are medians over the runs. Caches are warm, as in bench. */
#ifndef CBGEN_RUNTIME_MEASURE_CLOCKED_H
#define CBGEN_RUNTIME_MEASURE_CLOCKED_H

#include "analysis/plan.h"
#include "codegen/source.h"
#include "runtime/measure/bench.h"
#include "runtime/measure/timeline.h"

struct cb_block_time {
  double start_us, us; /* start: since the first one of the launch */
};

struct cb_clocked {
  int runs;
  double plain_us, clocked_us; /* a product without clocks and with them, back to back */
  int plain_registers, clocked_registers;
  double cycle_ns; /* of a multiprocessor, by both clocks; 0: not found out */
  int launches_count;
  struct cb_launch_time *launches; /* of the plan; zeros where no region multiplies */
  int64_t count;
  struct cb_block_time *blocks; /* as in analysis/plan/thread_blocks.h */
};

struct cb_clocked_request {
  const struct cb_bench *bench; /* open; its device is the plan's target */
  const struct cb_csr *csr;
  const struct cb_plan *plan; /* with launches */
  const struct cb_assignment *assignment;
  const struct cb_label *label;
  int runs; /* at least 1 */
};

/* Release with cb_clocked_release in any case. CB_ERR_WRONG: with clocks the product has other bits. */
enum cb_status cb_clocked_measure(struct cb_clocked *clocked, const struct cb_clocked_request *request,
                                  struct cb_diag *diag);
void cb_clocked_release(struct cb_clocked *clocked);

#endif
