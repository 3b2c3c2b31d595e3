// SPDX-License-Identifier: Apache-2.0
/* Measuring a GPU: see calibrate.h. One kernel after the other, all through `struct probe`. */
#include "runtime/measure/calibrate.h"

#include "base/integers.h"
#include "base/memory.h"
#include "base/text.h"
#include "codegen/expand.h"
#include "codegen/source.h"
#include "runtime/measure/timer.h"


enum {
  THREADS = 256,
  UNROLL = 4,
  TILE_BYTES = THREADS * UNROLL * 16
}; /* as in templates/calibrate.cu.in */

/* What one launch needs, and what all share. */
struct probe {
  struct cb_timer timer;
  struct CUmod_st *module;
  struct CUfunc_st *function;
  int batches;
  unsigned blocks, threads;
  cb_device_ptr data, sink; /* sink: for results that no kernel ever stores */
  int64_t bytes;            /* of data */
  void *parameters[8];      /* the last in use is &steps */
  int64_t tiles, elements, grid, steps;
};

/* As products are launched: runtime/operator/operator.c. */
static enum cb_status enqueue(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  struct probe *probe = user;
  const struct cb_driver *driver = probe->timer.device->driver;
  const struct cb_cu_launch config = {
      .grid = {probe->blocks, 1, 1}, .block = {probe->threads, 1, 1}, .stream = stream};
  const int overlaps = cb_device_overlaps(probe->timer.device);
  return cb_driver_check(driver, cb_driver_launch(driver, probe->function, config, overlaps, probe->parameters), diag,
                         "launch a kernel of the calibration");
}

static enum cb_status find(struct probe *probe, const char *kernel, struct cb_diag *diag) {
  const struct cb_driver *driver = probe->timer.device->driver;
  return cb_driver_check(driver, driver->call.module_function(&probe->function, probe->module, kernel), diag,
                         "find kernel '%s'", kernel);
}

static enum cb_status measure(double *us, struct probe *probe, int launches, struct cb_diag *diag) {
  return cb_timer_measure(us, &probe->timer, enqueue, probe, launches, probe->batches, diag);
}

/* Microseconds of one step, from launches of `few` and of three times as many. */
static enum cb_status measure_step(double *us, struct probe *probe, int64_t few, struct cb_diag *diag) {
  enum { LAUNCHES = 4 };
  double fewer = 0, more = 0;
  probe->steps = few;
  enum cb_status s = measure(&fewer, probe, LAUNCHES, diag);
  probe->steps = 3 * few;
  if (!s) s = measure(&more, probe, LAUNCHES, diag);
  *us = (more - fewer) / (double)(2 * few);
  return s;
}

/* A rate in 10^9 per second; 0 when time stood still, which is not plausible and is said so later. */
static int64_t rate(double count, double us) {
  return us > 0 ? (int64_t)(count / us / 1e3 + 0.5) : 0;
}

/* ---- the figures */

static enum cb_status measure_launch(struct cb_target *measured, struct probe *probe, struct cb_diag *diag) {
  enum { LAUNCHES = 100 };
  double us = 0;
  probe->blocks = (unsigned)measured->multiprocessors;
  probe->threads = THREADS;
  probe->parameters[0] = &probe->steps;
  probe->steps = 0;
  enum cb_status s = find(probe, "cbgen_calibrate_empty", diag);
  if (!s) s = measure(&us, probe, LAUNCHES, diag);
  measured->launch_ns = (int64_t)(1e3 * us + 0.5);
  return s;
}

/* The tiles are the first parameters of the kernels that fill and read. */
static void walk_tiles(struct probe *probe, int64_t bytes, int64_t blocks) {
  probe->tiles = bytes / TILE_BYTES;
  probe->grid = blocks < probe->tiles ? blocks : probe->tiles;
  probe->blocks = (unsigned)probe->grid;
  probe->threads = THREADS;
  probe->steps = cb_divide_up(probe->tiles, probe->grid);
}

static enum cb_status fill(struct probe *probe, struct cb_diag *diag) {
  void *const parameters[] = {&probe->data, &probe->tiles, &probe->grid, &probe->steps};
  for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) probe->parameters[i] = parameters[i];
  walk_tiles(probe, probe->bytes, 8 * probe->timer.device->target.multiprocessors);
  enum cb_status s = find(probe, "cbgen_calibrate_fill", diag);
  if (!s) s = enqueue(probe, probe->timer.stream, diag);
  return s ? s : cb_device_wait(probe->timer.device, "filling memory", diag);
}

static void read_parameters(struct probe *probe) {
  void *const parameters[] = {&probe->data, &probe->sink, &probe->tiles, &probe->grid, &probe->steps};
  for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) probe->parameters[i] = parameters[i];
}

static enum cb_status measure_read(struct cb_target *measured, struct probe *probe, struct cb_diag *diag) {
  enum { LAUNCHES = 4 };
  const int64_t processors = measured->multiprocessors, all = probe->bytes / TILE_BYTES;
  const int64_t grids[] = {4 * processors, 8 * processors, 16 * processors, 64 * processors, all};
  enum cb_status s = find(probe, "cbgen_calibrate_read", diag);
  measured->read_gb_per_s = 0;
  read_parameters(probe);
  for (size_t i = 0; i < sizeof grids / sizeof *grids && !s; i++) {
    double us = 0;
    walk_tiles(probe, probe->bytes, grids[i]);
    s = measure(&us, probe, LAUNCHES, diag);
    const int64_t reached = rate((double)(probe->grid * probe->steps) * TILE_BYTES, us);
    if (reached > measured->read_gb_per_s) measured->read_gb_per_s = reached;
  }
  return s;
}

static enum cb_status measure_l2(struct cb_target *measured, struct probe *probe, int64_t bytes,
                                 struct cb_diag *diag) {
  enum { STEPS = 32, BLOCKS_PER_PROCESSOR = 8 };
  double us = 0;
  enum cb_status s = find(probe, "cbgen_calibrate_read", diag);
  read_parameters(probe);
  walk_tiles(probe, bytes, bytes); /* as many tiles as fit, and a grid that is not bound to them: */
  probe->grid = (int64_t)BLOCKS_PER_PROCESSOR * measured->multiprocessors;
  probe->blocks = (unsigned)probe->grid;
  if (!s) s = measure_step(&us, probe, STEPS, diag);
  measured->l2_gb_per_s = rate((double)probe->grid * TILE_BYTES, us);
  return s;
}

static enum cb_status measure_gather(struct cb_target *measured, struct probe *probe, int64_t bytes,
                                     struct cb_diag *diag) {
  enum { STEPS = 64, BLOCKS_PER_PROCESSOR = 8 };
  double us = 0;
  enum cb_status s = find(probe, "cbgen_calibrate_gather", diag);
  probe->elements = bytes / (int64_t)sizeof(double);
  probe->blocks = (unsigned)(BLOCKS_PER_PROCESSOR * measured->multiprocessors);
  probe->threads = THREADS;
  probe->parameters[2] = &probe->elements;
  probe->parameters[3] = &probe->steps;
  if (!s) s = measure_step(&us, probe, STEPS, diag);
  measured->sectors_g_per_s = rate((double)probe->blocks * THREADS * UNROLL, us);
  return s;
}

/* One cycle through all lines, in a random order that is always the same (Sattolo's shuffle): entry `line *
 * LINE` says which entry is next. */
static enum cb_status make_chain(struct probe *probe, int64_t lines, struct cb_diag *diag) {
  enum { LINE = 128 / sizeof(uint32_t) };
  uint32_t *order = cb_alloc((size_t)lines, sizeof *order),
           *chain = cb_calloc((size_t)lines * LINE, sizeof *chain);
  enum cb_status s = order && chain ? CB_OK : cb_fail_memory(diag, "a chain", (uint64_t)lines * 132);
  uint64_t state = 1;
  for (int64_t i = 0; i < lines && !s; i++) order[i] = (uint32_t)i;
  for (int64_t i = lines - 1; i > 0 && !s; i--) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const int64_t j = (int64_t)((state >> 33) % (uint64_t)i);
    const uint32_t line = order[i];
    order[i] = order[j];
    order[j] = line;
  }
  for (int64_t i = 0; i < lines && !s; i++) chain[(int64_t)LINE * i] = LINE * order[i];
  if (!s) s = cb_device_upload(probe->timer.device, probe->data, chain, (size_t)lines * 128, "a chain", diag);
  cb_free(order);
  cb_free(chain);
  return s;
}

static enum cb_status measure_latency(struct cb_target *measured, struct probe *probe, int64_t bytes,
                                      struct cb_diag *diag) {
  enum { STEPS = 2048 };
  double us = 0;
  enum cb_status s = make_chain(probe, bytes / 128, diag);
  if (!s) s = find(probe, "cbgen_calibrate_chase", diag);
  probe->blocks = probe->threads = 1;
  probe->parameters[2] = &probe->steps;
  if (!s) s = measure_step(&us, probe, STEPS, diag);
  measured->latency_ns = (int64_t)(1e3 * us + 0.5);
  return s;
}

/* ---- the whole */

static enum cb_status compile(struct cb_compiled *compiled, const struct cb_nvrtc *nvrtc, const char *arch,
                              struct cb_diag *diag) {
  const struct cb_nvrtc_options options = {.arch = arch};
  struct cb_scope none = {0};
  struct cb_text body = {0}, text = {0};
  enum cb_status s = cb_expand(&body, "calibrate", &none, diag);
  if (!s) s = cb_source_with_prelude(&text, &body, diag);
  cb_text_release(&body);
  if (!s) s = cb_nvrtc_compile(compiled, nvrtc, text.bytes, "calibrate.cu", &options, diag);
  cb_text_release(&text);
  return s;
}

static enum cb_status measure_all(struct cb_target *measured, struct probe *probe, struct cb_diag *diag) {
  const int64_t l2 = measured->l2_bytes < probe->bytes ? measured->l2_bytes : probe->bytes;
  enum cb_status s = fill(probe, diag);
  if (!s) s = measure_read(measured, probe, diag); /* first, and long: clocks are up for what is short */
  if (!s) s = measure_l2(measured, probe, l2 / 4, diag);
  if (!s) s = measure_gather(measured, probe, l2 / 4, diag);
  if (!s) s = measure_latency(measured, probe, l2 / 8, diag);
  return s ? s : measure_launch(measured, probe, diag);
}

/* On `stream`, which is open. */
static enum cb_status probe_device(struct cb_target *measured, struct probe *probe, const struct cb_device *device,
                                   struct CUstream_st *stream, const void *cubin, struct cb_diag *diag) {
  const struct cb_driver *driver = device->driver;
  enum cb_status s = cb_timer_open(&probe->timer, device, stream, diag);
  if (!s)
    s = cb_driver_check(driver, driver->call.module_load(&probe->module, cubin), diag,
                        "load the kernels of the calibration");
  if (s) probe->module = NULL;
  if (!s) s = cb_device_alloc(device, &probe->data, (size_t)probe->bytes, "the calibration", diag);
  if (!s) s = cb_device_alloc(device, &probe->sink, THREADS * sizeof(double), "the calibration", diag);
  if (!s) s = measure_all(measured, probe, diag);
  cb_device_free(device, probe->data);
  cb_device_free(device, probe->sink);
  if (probe->module) driver->call.module_unload(probe->module);
  cb_timer_close(&probe->timer);
  return s;
}

/* With the device's context current. */
static enum cb_status calibrate(struct cb_target *measured, struct probe *probe,
                                const struct cb_device *device, const struct cb_compiled *compiled,
                                struct cb_diag *diag) {
  enum { SHARE = 16 }; /* of the device's memory: not more is taken */
  const int64_t wanted = (int64_t)2 << 30, allowed = device->memory_bytes / SHARE;
  const struct cb_driver *driver = device->driver;
  struct CUstream_st *stream = NULL;
  probe->bytes = (wanted < allowed ? wanted : allowed) / TILE_BYTES * TILE_BYTES;
  if (measured->l2_bytes < 8 * TILE_BYTES || probe->bytes < 8 * TILE_BYTES)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "GPU %d has %lld bytes of L2 and %lld of memory: too few to measure", device->ordinal,
                   (long long)measured->l2_bytes, (long long)device->memory_bytes);
  enum cb_status s = cb_driver_check(driver, driver->call.stream_create(&stream, CB_CU_STREAM_NON_BLOCKING),
                                     diag, "make a stream");
  if (s) return s;
  s = probe_device(measured, probe, device, stream, compiled->cubin, diag);
  driver->call.stream_destroy(stream);
  return s;
}

enum cb_status cb_calibrate(struct cb_target *measured, const struct cb_device *device,
                            const struct cb_nvrtc *nvrtc, int batches, struct cb_diag *diag) {
  struct probe probe = {.batches = batches};
  struct cb_compiled compiled = {0};
  *measured = device->target;
  enum cb_status s = compile(&compiled, nvrtc, device->target.arch, diag);
  if (!s) s = cb_device_enter(device, diag);
  if (!s) {
    s = calibrate(measured, &probe, device, &compiled, diag);
    cb_device_leave(device);
  }
  cb_compiled_release(&compiled);
  return s;
}
