// SPDX-License-Identifier: Apache-2.0
/* One time for all multiprocessors: see timeline.h. */
#include "runtime/measure/timeline.h"

#include "base/integers.h"
#include "base/memory.h"

#include <stdlib.h>

enum { MOST_MULTIPROCESSORS = 1 << 16 };

void cb_pace_note(struct cb_pace *pace, const struct cb_warp_clock *clocks, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const struct cb_warp_clock *clock = &clocks[i];
    if (!pace->is_known)
      *pace = (struct cb_pace){
          1, clock->multiprocessor, clock->begin_ns, clock->begin_cycle, clock->end_ns, clock->end_cycle};
    if (clock->multiprocessor != pace->multiprocessor) continue;
    if (clock->begin_cycle < pace->first_cycle) {
      pace->first_cycle = clock->begin_cycle;
      pace->first_ns = clock->begin_ns;
    }
    if (clock->end_cycle > pace->last_cycle) {
      pace->last_cycle = clock->end_cycle;
      pace->last_ns = clock->end_ns;
    }
  }
}

double cb_pace_ns(const struct cb_pace *pace) {
  if (pace->last_cycle <= pace->first_cycle || pace->last_ns <= pace->first_ns) return 0;
  return (double)(pace->last_ns - pace->first_ns) / (double)(pace->last_cycle - pace->first_cycle);
}

/* A multiprocessor: a cycle of it that readings are counted from, and when that was. */
struct origin {
  int is_known;
  uint64_t cycle;
  double ns;
};

static double since(uint64_t later, uint64_t earlier) {
  return later >= earlier ? (double)(later - earlier) : -(double)(earlier - later);
}

/* A reading of both clocks: the origin is not earlier than it says. */
static void bound(struct origin *origin, double ns, uint64_t cycle, double cycle_ns) {
  if (!origin->is_known) *origin = (struct origin){1, cycle, ns};
  const double least = ns - since(cycle, origin->cycle) * cycle_ns;
  if (least > origin->ns) origin->ns = least;
}

static double time_of(const struct origin *origin, uint64_t cycle, double cycle_ns) {
  return origin->ns + since(cycle, origin->cycle) * cycle_ns;
}

/* The first reading; CB_ERR_DEVICE: a warp has none. */
static enum cb_status find_start(uint64_t *start, const struct cb_warp_clock *clocks, int64_t count,
                                 struct cb_diag *diag) {
  *start = count ? clocks[0].begin_ns : 0;
  for (int64_t i = 0; i < count; i++) {
    const struct cb_warp_clock *clock = &clocks[i];
    if (clock->begin_ns > clock->end_ns || clock->begin_cycle > clock->end_cycle ||
        clock->multiprocessor >= MOST_MULTIPROCESSORS)
      return cb_fail(diag, CB_ERR_DEVICE, "warp %lld has no clock: the kernel did not run as it was compiled",
                     (long long)i);
    if (clock->begin_ns < *start) *start = clock->begin_ns;
  }
  return CB_OK;
}

enum cb_status cb_timeline_place(struct cb_span *spans, const struct cb_warp_clock *clocks, int64_t count,
                                 double cycle_ns, struct cb_diag *diag) {
  uint64_t start;
  const enum cb_status s = find_start(&start, clocks, count, diag);
  if (s) return s;
  struct origin *origins = cb_calloc(MOST_MULTIPROCESSORS, sizeof *origins);
  if (!origins) return cb_fail_memory(diag, "the clocks of multiprocessors", MOST_MULTIPROCESSORS * sizeof *origins);
  for (int64_t i = 0; i < count && cycle_ns > 0; i++) {
    struct origin *origin = &origins[clocks[i].multiprocessor];
    bound(origin, since(clocks[i].begin_ns, start), clocks[i].begin_cycle, cycle_ns);
    bound(origin, since(clocks[i].end_ns, start), clocks[i].end_cycle, cycle_ns);
  }
  for (int64_t i = 0; i < count; i++) {
    const struct origin *origin = &origins[clocks[i].multiprocessor];
    spans[i] = cycle_ns > 0 ? (struct cb_span){time_of(origin, clocks[i].begin_cycle, cycle_ns),
                                               time_of(origin, clocks[i].end_cycle, cycle_ns)}
                            : (struct cb_span){since(clocks[i].begin_ns, start), since(clocks[i].end_ns, start)};
  }
  cb_free(origins);
  return CB_OK;
}

static int ascending(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

/* Goes through starts and ends in their order; ends first where both are at once. */
static int64_t most_at_once(const double *starts, const double *ends, int64_t count) {
  int64_t running = 0, started = 0, most = 0;
  for (int64_t ended = 0; ended < count; ended++, running--) {
    for (; started < count && starts[started] < ends[ended]; started++) running++;
    most = cb_larger(most, running);
  }
  return most;
}

/* Behind the last start there are ends alone: half as many are left when so many ends are still to come. */
struct cb_launch_time cb_launch_time_of(double *starts, double *ends, int64_t count) {
  qsort(starts, (size_t)count, sizeof *starts, ascending);
  qsort(ends, (size_t)count, sizeof *ends, ascending);
  const int64_t most = most_at_once(starts, ends, count), left = most / 2;
  const double half_left = ends[count - 1 - left], last_start = starts[count - 1], end = ends[count - 1];
  const double since = half_left > last_start ? half_left : last_start;
  return (struct cb_launch_time){end - starts[0], most, left ? end - since : 0};
}
