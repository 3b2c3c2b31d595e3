// SPDX-License-Identifier: Apache-2.0
/* Timing on the device: batches of products between two events, and the ceilings that a device sets.
 *
 * A measurement is the median of several batches, after one that is not counted. The number of products in a
 * batch follows from how long one takes, see cb_timer_launches. It may be captured and launched as a graph, so that the
 * host's pace does not count. */
#ifndef CBGEN_RUNTIME_MEASURE_TIMER_H
#define CBGEN_RUNTIME_MEASURE_TIMER_H

#include "base/status.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nvrtc.h"

struct cb_timer {
  const struct cb_device *device;
  struct CUstream_st *stream;
  struct CUevent_st *start, *end;
  int in_graphs; /* 1: a batch is one launch of a graph that captured its products */
};

/* The device's context must be current from here on. */
enum cb_status cb_timer_open(struct cb_timer *timer, const struct cb_device *device,
                             struct CUstream_st *stream, struct cb_diag *diag);
void cb_timer_close(struct cb_timer *timer); /* zero-initialised is fine */

/* Puts one product on the stream. */
typedef enum cb_status cb_enqueue(void *user, struct CUstream_st *stream, struct cb_diag *diag);

/* Products to a batch: 100, 20 when one takes over 100 µs, fewer when 20 would take over 50 ms; at least 2.
 * Measured with a short batch. */
enum cb_status cb_timer_launches(int *launches, struct cb_timer *timer, cb_enqueue *enqueue, void *user,
                                 struct cb_diag *diag);

/* Microseconds of one product: the median of `batches` (at most 64) batches of `launches`. */
enum cb_status cb_timer_measure(double *us, struct cb_timer *timer, cb_enqueue *enqueue, void *user,
                                int launches, int batches, struct cb_diag *diag);

/* One product, to be checked: captured, if batches are. Ends with the product. */
enum cb_status cb_timer_once(const struct cb_timer *timer, cb_enqueue *enqueue, void *user, struct cb_diag *diag);

/* The median of `count` numbers, which are sorted in place. */
double cb_median(double *numbers, int count);

struct cb_ceilings {
  double copy_gb_per_s; /* device memory to device memory, bytes read and written */
  double read_gb_per_s; /* read-only stream */
  double launch_us;     /* an empty kernel, back to back */
  int64_t bytes;        /* that copy and read worked on */
};

/* The best of several grids each, and of the driver's own copy. */
enum cb_status cb_ceilings_measure(struct cb_ceilings *ceilings, struct cb_timer *timer,
                                   const struct cb_nvrtc *nvrtc, struct cb_diag *diag);

#endif
