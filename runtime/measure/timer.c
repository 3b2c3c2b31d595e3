// SPDX-License-Identifier: Apache-2.0
/* Timing on the device: see timer.h. First events and batches, then the ceilings. */
#include "runtime/measure/timer.h"

#include "base/embedded.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- batches */

enum cb_status cb_timer_open(struct cb_timer *timer, const struct cb_device *device,
                             struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_driver *driver = device->driver;
  *timer = (struct cb_timer){.device = device, .stream = stream};
  enum cb_status s =
      cb_driver_check(driver, driver->call.event_create(&timer->start, 0), diag, "make an event");
  if (s) timer->start = NULL;
  if (!s) s = cb_driver_check(driver, driver->call.event_create(&timer->end, 0), diag, "make an event");
  if (s) timer->end = NULL;
  if (s) cb_timer_close(timer);
  return s;
}

void cb_timer_close(struct cb_timer *timer) {
  if (timer->start) timer->device->driver->call.event_destroy(timer->start);
  if (timer->end) timer->device->driver->call.event_destroy(timer->end);
  *timer = (struct cb_timer){0};
}

/* Products of one batch; `exec`: captured, unless it is NULL. */
struct batch {
  cb_enqueue *enqueue;
  void *user;
  int launches;
  struct CUgraphExec_st *exec;
};

static enum cb_status put_products(const struct batch *batch, struct CUstream_st *stream, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  for (int i = 0; i < batch->launches && !s; i++) s = batch->enqueue(batch->user, stream, diag);
  return s;
}

static enum cb_status capture_batch(struct batch *batch, const struct cb_timer *timer, struct cb_diag *diag) {
  const struct cb_driver *driver = timer->device->driver;
  struct CUgraph_st *graph = NULL, *captured = NULL;
  if (!cb_driver_has_conditions(driver))
    return cb_fail(diag, CB_ERR_MISSING, "this driver is too old to capture products in a graph (CUDA 12.4)");
  enum cb_status s = cb_driver_check(driver, driver->call.graph_create(&graph, 0), diag, "make a graph");
  if (s) return s;
  s = cb_driver_check(driver, driver->call.capture_begin(timer->stream, graph, NULL, NULL, 0, CB_CU_CAPTURE_OF_THREAD),
                      diag, "capture products");
  if (!s) {
    s = put_products(batch, timer->stream, diag);
    const enum cb_status end =
        cb_driver_check(driver, driver->call.capture_end(timer->stream, &captured), s ? NULL : diag, "capture products");
    if (!s) s = end;
  }
  if (!s)
    s = cb_driver_check(driver, driver->call.graph_instantiate(&batch->exec, graph, 0), diag, "instantiate a graph");
  driver->call.graph_destroy(graph);
  return s;
}

static enum cb_status put_batch(const struct batch *batch, const struct cb_timer *timer, struct cb_diag *diag) {
  const struct cb_driver *driver = timer->device->driver;
  if (!batch->exec) return put_products(batch, timer->stream, diag);
  return cb_driver_check(driver, driver->call.graph_launch(batch->exec, timer->stream), diag, "launch captured products");
}

/* Microseconds of one product in one batch. */
static enum cb_status time_batch(double *us, const struct cb_timer *timer, const struct batch *batch,
                                 struct cb_diag *diag) {
  const struct cb_driver *driver = timer->device->driver;
  float milliseconds = 0;
  enum cb_status s = cb_driver_check(driver, driver->call.event_record(timer->start, timer->stream), diag,
                                     "record an event");
  if (!s) s = put_batch(batch, timer, diag);
  if (!s)
    s = cb_driver_check(driver, driver->call.event_record(timer->end, timer->stream), diag,
                        "record an event");
  if (!s)
    s = cb_driver_check(driver, driver->call.event_synchronize(timer->end), diag,
                        "finish a batch of products");
  if (!s)
    s = cb_driver_check(driver, driver->call.event_elapsed(&milliseconds, timer->start, timer->end), diag,
                        "read the time between events");
  *us = 1e3 * (double)milliseconds / batch->launches;
  return s;
}

/* The times of `count` batches that are alike, captured once. */
static enum cb_status time_batches(double *us, int count, const struct cb_timer *timer, struct batch batch,
                                   struct cb_diag *diag) {
  enum cb_status s = timer->in_graphs ? capture_batch(&batch, timer, diag) : CB_OK;
  for (int i = 0; i < count && !s; i++) s = time_batch(&us[i], timer, &batch, diag);
  if (batch.exec) timer->device->driver->call.graph_exec_destroy(batch.exec);
  return s;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double cb_median(double *numbers, int count) {
  if (count < 1) return 0;
  qsort(numbers, (size_t)count, sizeof *numbers, ascending);
  return count % 2 ? numbers[count / 2] : (numbers[count / 2 - 1] + numbers[count / 2]) / 2;
}

enum cb_status cb_timer_launches(int *launches, struct cb_timer *timer, cb_enqueue *enqueue, void *user,
                                 struct cb_diag *diag) {
  enum { SHORT = 3, MANY = 100, FEW = 20, LEAST = 2 };
  const double long_us = 100, batch_us = 50e3;
  const struct batch few = {enqueue, user, SHORT, NULL};
  double us = 0;
  enum cb_status s = time_batch(&us, timer, &few, diag);
  if (!s) s = time_batch(&us, timer, &few, diag);
  *launches = us > long_us ? FEW : MANY;
  if (us * *launches > batch_us) *launches = (int)(batch_us / us);
  if (*launches < LEAST) *launches = LEAST;
  return s;
}

enum cb_status cb_timer_measure(double *us, struct cb_timer *timer, cb_enqueue *enqueue, void *user,
                                int launches, int batches, struct cb_diag *diag) {
  enum { MOST = 64 };
  const struct batch batch = {enqueue, user, launches, NULL};
  double times[1 + MOST] = {0}; /* the first is not counted */
  if (batches < 1 || batches > MOST)
    return cb_fail(diag, CB_ERR_ARGUMENT, "batches are 1 to %d, not '%d'", MOST, batches);
  const enum cb_status s = time_batches(times, 1 + batches, timer, batch, diag);
  *us = cb_median(times + 1, batches);
  return s;
}

enum cb_status cb_timer_once(const struct cb_timer *timer, cb_enqueue *enqueue, void *user, struct cb_diag *diag) {
  const struct batch batch = {enqueue, user, 1, NULL};
  double us;
  return time_batches(&us, 1, timer, batch, diag);
}

/* ---- ceilings */

enum { THREADS = 512, TILE_BYTES = THREADS * 4 * 16 }; /* as in templates/ceilings.cu.in */

/* One launch of a ceiling's kernel, or (without a function) the driver's copy. */
struct ceiling {
  const struct cb_driver *driver;
  struct CUfunc_st *function;
  unsigned blocks;
  cb_device_ptr from, to;
  long long tiles;
};

static enum cb_status enqueue_two(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  struct ceiling *ceiling = user;
  void *parameters[] = {&ceiling->from, &ceiling->to, &ceiling->tiles};
  return cb_driver_check(ceiling->driver,
                         ceiling->driver->call.launch(ceiling->function, ceiling->blocks, 1, 1, THREADS, 1, 1,
                                                      0, stream, parameters, NULL),
                         diag, "launch a ceiling's kernel");
}

static enum cb_status enqueue_one(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  struct ceiling *ceiling = user;
  void *parameters[] = {&ceiling->to, &ceiling->tiles};
  return cb_driver_check(ceiling->driver,
                         ceiling->driver->call.launch(ceiling->function, ceiling->blocks, 1, 1, THREADS, 1, 1,
                                                      0, stream, parameters, NULL),
                         diag, "launch a filling kernel");
}

static enum cb_status enqueue_empty(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  struct ceiling *ceiling = user;
  return cb_driver_check(
      ceiling->driver,
      ceiling->driver->call.launch(ceiling->function, 1, 1, 1, THREADS, 1, 1, 0, stream, NULL, NULL), diag,
      "launch an empty kernel");
}

static enum cb_status enqueue_driver_copy(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  struct ceiling *ceiling = user;
  return cb_driver_check(ceiling->driver,
                         ceiling->driver->call.copy_on_device(ceiling->to, ceiling->from,
                                                              (size_t)ceiling->tiles * TILE_BYTES, stream),
                         diag, "copy on the device");
}

enum { BATCHES = 7, COPIES = 20, EMPTY_LAUNCHES = 100 };

/* The best rate over grids from two thread blocks per multiprocessor to one tile each. */
static enum cb_status best_rate(double *gb_per_s, struct cb_timer *timer, struct ceiling *ceiling,
                                double bytes, struct cb_diag *diag) {
  const long long processors = timer->device->target.multiprocessors;
  const long long grids[] = {2 * processors, 4 * processors, 8 * processors, 32 * processors, ceiling->tiles};
  enum cb_status s = CB_OK;
  for (size_t i = 0; i < sizeof grids / sizeof *grids && !s; i++) {
    double us = 0;
    ceiling->blocks = (unsigned)(grids[i] < ceiling->tiles ? grids[i] : ceiling->tiles);
    s = cb_timer_measure(&us, timer, enqueue_two, ceiling, COPIES, BATCHES, diag);
    if (!s && us > 0 && bytes / us / 1e3 > *gb_per_s) *gb_per_s = bytes / us / 1e3;
  }
  return s;
}

static enum cb_status find(struct ceiling *ceiling, struct CUmod_st *module, const char *kernel,
                           struct cb_diag *diag) {
  return cb_driver_check(ceiling->driver,
                         ceiling->driver->call.module_function(&ceiling->function, module, kernel), diag,
                         "find kernel '%s'", kernel);
}

static enum cb_status measure_all(struct cb_ceilings *ceilings, struct cb_timer *timer,
                                  struct CUmod_st *module, struct ceiling *ceiling, struct cb_diag *diag) {
  const double bytes = (double)ceilings->bytes;
  double us = 0;
  enum cb_status s = find(ceiling, module, "cbgen_empty", diag);
  if (!s)
    s = cb_timer_measure(&ceilings->launch_us, timer, enqueue_empty, ceiling, EMPTY_LAUNCHES, BATCHES, diag);
  if (!s) s = find(ceiling, module, "cbgen_fill", diag);
  ceiling->blocks = (unsigned)(8 * timer->device->target.multiprocessors);
  if (!s) s = enqueue_one(ceiling, timer->stream, diag);
  const cb_device_ptr filled = ceiling->to;
  ceiling->to = ceiling->from;
  ceiling->from = filled;
  if (!s) s = find(ceiling, module, "cbgen_copy", diag);
  if (!s) s = best_rate(&ceilings->copy_gb_per_s, timer, ceiling, 2 * bytes, diag);
  if (!s) s = cb_timer_measure(&us, timer, enqueue_driver_copy, ceiling, COPIES, BATCHES, diag);
  if (!s && us > 0 && 2 * bytes / us / 1e3 > ceilings->copy_gb_per_s)
    ceilings->copy_gb_per_s = 2 * bytes / us / 1e3;
  if (!s) s = find(ceiling, module, "cbgen_read", diag);
  if (!s) s = best_rate(&ceilings->read_gb_per_s, timer, ceiling, bytes, diag);
  return s;
}

static enum cb_status compile(struct cb_compiled *compiled, const struct cb_nvrtc *nvrtc, const char *arch,
                              struct cb_diag *diag) {
  static const char name[] = "templates/ceilings.cu.in";
  const struct cb_nvrtc_options options = {.arch = arch};
  const struct cb_embedded_file *file = cb_embedded_find(name);
  *compiled = (struct cb_compiled){0};
  if (!file) return cb_fail(diag, CB_ERR_INTERNAL, "the library lacks '%s'", name);
  return cb_nvrtc_compile(compiled, nvrtc, file->text, "ceilings.cu", &options, diag);
}

enum cb_status cb_ceilings_measure(struct cb_ceilings *ceilings, struct cb_timer *timer,
                                   const struct cb_nvrtc *nvrtc, struct cb_diag *diag) {
  enum { SHARE = 8 }; /* of the device's memory, for both buffers together half of that */
  const int64_t wanted = (int64_t)2 << 30, allowed = timer->device->memory_bytes / (2 * SHARE);
  const struct cb_driver *driver = timer->device->driver;
  struct ceiling ceiling = {.driver = driver};
  struct cb_compiled compiled;
  struct CUmod_st *module = NULL;
  *ceilings = (struct cb_ceilings){0};
  ceiling.tiles = (wanted < allowed ? wanted : allowed) / TILE_BYTES;
  ceilings->bytes = ceiling.tiles * TILE_BYTES;
  enum cb_status s = compile(&compiled, nvrtc, timer->device->target.arch, diag);
  if (!s)
    s = cb_driver_check(driver, driver->call.module_load(&module, compiled.cubin), diag, "load the ceilings");
  if (s) module = NULL;
  const size_t bytes = (size_t)ceilings->bytes;
  if (!s) s = cb_device_alloc(timer->device, &ceiling.from, bytes, "ceilings", diag);
  if (!s) s = cb_device_alloc(timer->device, &ceiling.to, bytes, "ceilings", diag);
  if (!s) s = measure_all(ceilings, timer, module, &ceiling, diag);
  if (s) *ceilings = (struct cb_ceilings){0};
  cb_device_free(timer->device, ceiling.from);
  cb_device_free(timer->device, ceiling.to);
  if (module) driver->call.module_unload(module);
  cb_compiled_release(&compiled);
  return s;
}
