// SPDX-License-Identifier: Apache-2.0
/* Long copies from pageable host memory to the device. Several threads fill pinned buffers, and while the GPU copies
 * from these, they fill the next. The driver's own copy does the same with one thread, at a tenth of the bus's rate.
 *
 * A device that has a staging uses it for every long cb_device_upload (driver.h).
 */
#ifndef CBGEN_RUNTIME_CUDA_STAGING_H
#define CBGEN_RUNTIME_CUDA_STAGING_H

#include "base/status.h"
#include "runtime/cuda/driver.h"

#include <stddef.h>

struct cb_staging;

/* How copies are made: by `workers` threads with `buffers` buffers each. A buffer takes a chunk, whose bytes are a
 * multiple of CB_STAGING_BUFFER. The threads share the streams. */
enum { CB_STAGING_BUFFER = 1 << 19, CB_STAGING_WORKERS = 16, CB_STAGING_EACH = 4, CB_STAGING_STREAMS = 4 };
struct cb_staging_shape {
  int workers, buffers, streams; /* from 1 to CB_STAGING_WORKERS, _EACH, _STREAMS */
  size_t chunk;                  /* bytes */
};

/* Takes no pinned memory yet: the first long copy does, since that costs milliseconds. `shape` NULL: what was measured
 * to be fast. CB_ERR_MEMORY. */
enum cb_status cb_staging_create(struct cb_staging **staging, const struct cb_device *device,
                                 const struct cb_staging_shape *shape, struct cb_diag *diag);
void cb_staging_free(struct cb_staging *staging);   /* with the device's context current; NULL is accepted */
void cb_staging_forget(struct cb_staging *staging); /* when the context is gone, with all that was in it; likewise */

/* Takes the pinned memory now. 0: it is refused. With the device's context current. */
int cb_staging_prepare(struct cb_staging *staging);
int cb_staging_was_refused(struct cb_staging *staging);
/* From how many bytes on a copy is long. */
size_t cb_staging_least(struct cb_staging *staging);

/* Addresses that stand for bytes which are elsewhere, in a file: a copy from there fetches them into the pinned buffers
 * by itself. */
struct cb_staging_source {
  const void *begin;
  size_t bytes;
  /* Reads bytes at … at + length - 1 into `room`, which takes CB_STAGING_BUFFER bytes. They lie within one window:
   * windows have CB_STAGING_BUFFER bytes and are counted from the source's beginning. Returns where in `room` they
   * begin; NULL: that failed. Called by several threads, but never at the same time for the same window. */
  const void *(*fetch)(const void *user, size_t at, size_t length, void *room);
  const void *user;
};
enum { CB_STAGING_SOURCES = 4 };

/* Replaces the sources (0: there are none any more). They are copied; CB_STAGING_SOURCES at most. Only once
 * cb_staging_prepare gave 1. */
void cb_staging_set_sources(struct cb_staging *staging, const struct cb_staging_source *sources, int count);

/* Whether a copy should go this way: it is long, and pinned memory was not refused; or it comes from a source. Any
 * thread. */
int cb_staging_wants(struct cb_staging *staging, const void *from, size_t bytes);

/* Copies, and waits until all is there. With the device's context current; any thread, one after the other. Where
 * pinned memory is refused the driver copies by itself. CB_ERR_FORMAT: a source failed. */
enum cb_status cb_staging_upload(struct cb_staging *staging, cb_device_ptr to, const void *from, size_t bytes,
                                 const char *what, struct cb_diag *diag);

#endif
