// SPDX-License-Identifier: Apache-2.0
/* Copies through pinned buffers: see staging.h. A worker fills one of its buffers while the GPU copies from its others.
 * Each worker takes the next chunk that no other has taken. */
#include "runtime/cuda/staging.h"

#include "base/integers.h"
#include "base/memory.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
  WINDOW = CB_STAGING_BUFFER,
  LEAST = 1 << 20, /* bytes from which on a copy goes this way */
  FIRST = 8 << 20  /* the same for the first copy, which has to allocate the pinned memory */
};

/* Measured on an H200: 33 GB/s; 25 with chunks of half the size, 35 with twice the workers. Workers together fill
 * buffers faster than the bus takes them. A chunk is on the bus for some 20 µs, much longer than asking for a copy. */
static const struct cb_staging_shape standard = {.workers = 8, .buffers = 2, .streams = 1, .chunk = 2 * WINDOW};

enum state { UNTRIED, READY, REFUSED };

struct cb_staging {
  const struct cb_device *device;
  pthread_mutex_t lock; /* held by a copy from beginning to end */
  atomic_int state;
  struct cb_staging_shape shape;
  unsigned char *pinned; /* of all workers */
  struct CUstream_st *streams[CB_STAGING_STREAMS];
  struct CUevent_st *events[CB_STAGING_WORKERS][CB_STAGING_EACH]; /* the buffer may be filled again */
  atomic_int sources_count;
  struct cb_staging_source sources[CB_STAGING_SOURCES];
};

/* ---- life */

enum cb_status cb_staging_create(struct cb_staging **out, const struct cb_device *device,
                                 const struct cb_staging_shape *shape, struct cb_diag *diag) {
  struct cb_staging *staging = *out = cb_calloc(1, sizeof *staging);
  if (!staging) return cb_fail_memory(diag, "a staging", sizeof *staging);
  staging->device = device;
  staging->shape = shape ? *shape : standard;
  pthread_mutex_init(&staging->lock, NULL);
  atomic_init(&staging->state, UNTRIED);
  atomic_init(&staging->sources_count, 0);
  return CB_OK;
}

static void release_buffers(struct cb_staging *staging) {
  const struct cb_driver_calls *call = &staging->device->driver->call;
  for (int worker = 0; worker < CB_STAGING_WORKERS; worker++)
    for (int i = 0; i < CB_STAGING_EACH; i++) {
      if (staging->events[worker][i]) call->event_destroy(staging->events[worker][i]);
      staging->events[worker][i] = NULL;
    }
  for (int i = 0; i < CB_STAGING_STREAMS; i++) {
    if (staging->streams[i]) call->stream_destroy(staging->streams[i]);
    staging->streams[i] = NULL;
  }
  if (staging->pinned) call->host_free(staging->pinned);
  staging->pinned = NULL;
}

void cb_staging_forget(struct cb_staging *staging) {
  if (!staging) return;
  pthread_mutex_destroy(&staging->lock);
  cb_free(staging);
}

void cb_staging_free(struct cb_staging *staging) {
  if (staging) release_buffers(staging);
  cb_staging_forget(staging);
}

/* What fails here is not needed. */
static int take_buffers(struct cb_staging *staging) {
  const struct cb_driver_calls *call = &staging->device->driver->call;
  struct cb_staging_shape *shape = &staging->shape;
  void *pinned = NULL;
  if (shape->workers > omp_get_max_threads()) shape->workers = omp_get_max_threads();
  if (call->host_alloc(&pinned, (size_t)shape->workers * (size_t)shape->buffers * shape->chunk, 0)) return 0;
  staging->pinned = pinned;
  for (int i = 0; i < shape->streams; i++)
    if (call->stream_create(&staging->streams[i], CB_CU_STREAM_NON_BLOCKING)) {
      staging->streams[i] = NULL;
      return 0;
    }
  for (int worker = 0; worker < shape->workers; worker++)
    for (int i = 0; i < shape->buffers; i++)
      if (call->event_create(&staging->events[worker][i], CB_CU_EVENT_NO_TIMING)) {
        staging->events[worker][i] = NULL;
        return 0;
      }
  return 1;
}

static void prepare(struct cb_staging *staging) {
  if (atomic_load(&staging->state) != UNTRIED) return;
  const int ready = take_buffers(staging);
  if (!ready) release_buffers(staging);
  atomic_store(&staging->state, ready ? READY : REFUSED);
}

int cb_staging_prepare(struct cb_staging *staging) {
  pthread_mutex_lock(&staging->lock);
  prepare(staging);
  pthread_mutex_unlock(&staging->lock);
  return atomic_load(&staging->state) == READY;
}

int cb_staging_was_refused(struct cb_staging *staging) {
  return atomic_load(&staging->state) == REFUSED;
}

/* ---- which way */

size_t cb_staging_least(struct cb_staging *staging) {
  switch (atomic_load(&staging->state)) {
  case UNTRIED: return FIRST;
  case READY: return LEAST;
  default: return SIZE_MAX;
  }
}

void cb_staging_set_sources(struct cb_staging *staging, const struct cb_staging_source *sources, int count) {
  pthread_mutex_lock(&staging->lock);
  for (int i = 0; i < count; i++) staging->sources[i] = sources[i];
  atomic_store(&staging->sources_count, count);
  pthread_mutex_unlock(&staging->lock);
}

/* The source that the bytes belong to, or NULL. */
static const struct cb_staging_source *find_source(const struct cb_staging *staging, const void *from) {
  for (int i = 0; i < atomic_load(&staging->sources_count); i++) {
    const struct cb_staging_source *source = &staging->sources[i];
    if ((uintptr_t)from - (uintptr_t)source->begin < source->bytes) return source;
  }
  return NULL;
}

int cb_staging_wants(struct cb_staging *staging, const void *from, size_t bytes) {
  if (bytes >= cb_staging_least(staging)) return 1;
  if (!atomic_load(&staging->sources_count)) return 0;
  pthread_mutex_lock(&staging->lock);
  const int wanted = find_source(staging, from) != NULL;
  pthread_mutex_unlock(&staging->lock);
  return wanted;
}

/* ---- copying */

struct transfer {
  struct cb_staging *staging;
  cb_device_ptr to;
  const unsigned char *from;
  size_t bytes;
  const char *what;
  const struct cb_staging_source *source; /* NULL: they are in memory */
  size_t skipped;     /* of the source, before `from`; chunks end at its multiples of a chunk */
  atomic_size_t next; /* chunk that no worker has taken */
  atomic_int failed;
  enum cb_status status; /* of the first that failed, with its message */
  struct cb_diag *diag;
};

static size_t chunk_bytes(const struct transfer *transfer) {
  return transfer->staging->shape.chunk;
}

/* Where chunk `number` is in the transfer: `length` bytes from `at` on. 0: there is no such chunk. */
static int find_chunk(const struct transfer *transfer, size_t number, size_t *at, size_t *length) {
  const size_t chunk = chunk_bytes(transfer), before = transfer->skipped % chunk, begin = number * chunk,
               end = begin + chunk;
  if (begin >= before + transfer->bytes) return 0;
  *at = begin < before ? 0 : begin - before;
  *length = (end < before + transfer->bytes ? end - before : transfer->bytes) - *at;
  return 1;
}

/* Fetches window by window, each to its place in the chunk. */
static const void *fetch(const struct transfer *transfer, size_t at, size_t length, unsigned char *buffer) {
  const struct cb_staging_source *source = transfer->source;
  const size_t first = transfer->skipped + at, end = first + length, begin = first % chunk_bytes(transfer);
  for (size_t from = first, next; from < end; from = next) {
    next = from - from % WINDOW + WINDOW;
    if (next > end) next = end;
    unsigned char *const place = buffer + from % chunk_bytes(transfer);
    const void *bytes = source->fetch(source->user, from, next - from, place - from % WINDOW);
    if (!bytes) return NULL;
    if (bytes != place) memmove(place, bytes, next - from);
  }
  return buffer + begin;
}

/* Where the chunk's bytes are, in the buffer; NULL: the source failed. */
static const void *fill(const struct transfer *transfer, size_t at, size_t length, unsigned char *buffer) {
  if (transfer->source) return fetch(transfer, at, length, buffer);
  memcpy(buffer, transfer->from + at, length);
  return buffer;
}

static enum cb_status send_chunk(const struct transfer *transfer, int worker, int turn, size_t at, size_t length,
                                 struct cb_diag *diag) {
  const struct cb_staging *staging = transfer->staging;
  const struct cb_staging_shape *shape = &staging->shape;
  const struct cb_driver *driver = staging->device->driver;
  const int own = turn % shape->buffers;
  struct CUevent_st *event = staging->events[worker][own];
  struct CUstream_st *stream = staging->streams[worker % shape->streams];
  enum cb_status s = CB_OK;
  if (turn >= shape->buffers)
    s = cb_driver_check(driver, driver->call.event_synchronize(event), diag, "wait for a copy to GPU %d",
                        staging->device->ordinal);
  if (s) return s;
  unsigned char *buffer = staging->pinned + (size_t)(worker * shape->buffers + own) * shape->chunk;
  const void *bytes = fill(transfer, at, length, buffer);
  if (!bytes) return cb_fail(diag, CB_ERR_FORMAT, "'%s' cannot be read where they were kept", transfer->what);
  s = cb_driver_check(driver, driver->call.copy_to_device_async(transfer->to + at, bytes, length, stream), diag,
                      "copy '%s' to GPU %d", transfer->what, staging->device->ordinal);
  if (!s) s = cb_driver_check(driver, driver->call.event_record(event, stream), diag, "record an event");
  return s;
}

static void work(struct transfer *transfer, int worker) {
  struct cb_diag diag = {0};
  enum cb_status s = cb_device_enter(transfer->staging->device, &diag);
  const int entered = !s;
  for (int turn = 0; !s && !atomic_load(&transfer->failed); turn++) {
    size_t at, length;
    if (!find_chunk(transfer, atomic_fetch_add(&transfer->next, 1), &at, &length)) break;
    s = send_chunk(transfer, worker, turn, at, length, &diag);
  }
  if (entered) cb_device_leave(transfer->staging->device);
  if (!s || atomic_exchange(&transfer->failed, 1)) return;
  transfer->status = s;
  if (transfer->diag) *transfer->diag = diag;
}

/* Buffers must be free when the lock is given back, whatever failed. */
static enum cb_status send_all(struct transfer *transfer) {
  const struct cb_staging *staging = transfer->staging;
  const struct cb_driver *driver = staging->device->driver;
  const size_t chunk = chunk_bytes(transfer);
  const int64_t chunks = cb_divide_up((int64_t)(transfer->skipped % chunk + transfer->bytes), (int64_t)chunk);
  const int workers = (int)cb_smaller(chunks, staging->shape.workers);
  cb_cu_result waited = CB_CU_SUCCESS;
#pragma omp parallel num_threads(workers) if (workers > 1)
  work(transfer, omp_get_thread_num());
  for (int i = 0; i < staging->shape.streams; i++) {
    const cb_cu_result result = driver->call.stream_synchronize(staging->streams[i]);
    if (!waited) waited = result;
  }
  if (transfer->status) return transfer->status;
  return cb_driver_check(driver, waited, transfer->diag, "copy '%s' to GPU %d", transfer->what,
                         staging->device->ordinal);
}

enum cb_status cb_staging_upload(struct cb_staging *staging, cb_device_ptr to, const void *from, size_t bytes,
                                 const char *what, struct cb_diag *diag) {
  struct transfer transfer = {.staging = staging, .to = to, .from = from, .bytes = bytes, .what = what, .diag = diag};
  atomic_init(&transfer.next, 0);
  atomic_init(&transfer.failed, 0);
  enum cb_status s;
  pthread_mutex_lock(&staging->lock);
  prepare(staging);
  transfer.source = find_source(staging, from);
  if (transfer.source) transfer.skipped = (size_t)((const char *)from - (const char *)transfer.source->begin);
  if (atomic_load(&staging->state) == READY)
    s = send_all(&transfer);
  else
    s = cb_device_copy_in(staging->device, to, from, bytes, what, diag);
  pthread_mutex_unlock(&staging->lock);
  return s;
}
