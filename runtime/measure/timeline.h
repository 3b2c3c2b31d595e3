// SPDX-License-Identifier: Apache-2.0
/* One time for the warps of all multiprocessors.
 *
 * A GPU has two clocks. %globaltimer is the same everywhere, but goes in steps that may be as long as a small kernel;
 * %clock64 counts cycles, but each multiprocessor has its own, which start at different times. A warp reads both when
 * it begins and when it ends (templates/prelude.cu.in). A reading of %globaltimer is never later than it is, so that
 * on one multiprocessor
 *
 *   time of cycle 0  >=  nanoseconds read  -  cycles read · nanoseconds of a cycle
 *
 * for all readings of a run, and the greatest of these bounds was read just behind a step: it is taken. What a cycle
 * lasts follows from readings that are far apart, of several runs.
 */
#ifndef CBGEN_RUNTIME_MEASURE_TIMELINE_H
#define CBGEN_RUNTIME_MEASURE_TIMELINE_H

#include "base/status.h"

#include <stdint.h>

/* struct WarpClock of the text. */
struct cb_warp_clock {
  uint64_t begin_ns, begin_cycle, end_ns, end_cycle, multiprocessor;
};

/* The earliest and the latest reading on one multiprocessor. Zero-initialise it. */
struct cb_pace {
  int is_known;
  uint64_t multiprocessor, first_ns, first_cycle, last_ns, last_cycle;
};
void cb_pace_note(struct cb_pace *pace, const struct cb_warp_clock *clocks, int64_t count); /* of a later run */
double cb_pace_ns(const struct cb_pace *pace);                                              /* of a cycle; 0: unknown */

struct cb_span {
  double begin, end; /* ns since the first reading of the run */
};

/* The clocks of one run. `cycle_ns` 0: %globaltimer alone. CB_ERR_MEMORY; CB_ERR_DEVICE: they are no readings. */
enum cb_status cb_timeline_place(struct cb_span *spans, const struct cb_warp_clock *clocks, int64_t count,
                                 double cycle_ns, struct cb_diag *diag);

/* How a launch filled the GPU. */
struct cb_launch_time {
  double us;       /* from its first thread block's start to its last one's end */
  int64_t at_once; /* the most thread blocks that ran at a time */
  double tail_us;  /* at its end, behind the last start, while at most half as many did */
};

/* Of `count` thread blocks, at least one. Sorts starts and ends, in microseconds. */
struct cb_launch_time cb_launch_time_of(double *starts, double *ends, int64_t count);

#endif
