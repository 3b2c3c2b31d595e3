// SPDX-License-Identifier: Apache-2.0
/* What set-up costs through libcbgen: cold, and when the cache knows the matrix; from host and from device memory;
 * and what new values cost.
 *
 *   bench_warm_start [--json FILE] [--repeats N] [--sweep 1] [--pack auto|host|device] [MATRIX…]
 *
 * MATRIX is a file, or generate:SHAPE; --pack is the context's option where the cache knows the pattern.
 *
 * One process, GPU 0. Each matrix has caches of its own, which are removed at the end. "cold" is the first compile,
 * with an empty cache (the kernels that hash and pack are compiled in it, too). On the same cache, "first" is the first
 * one of a process, as it were: nothing is kept of contexts before; "context" the first one of a new context after
 * others, "again" the next ones of that context. Of those the median of N is shown (5), part by part.
 * "copy" is a copy of an operator with mutable values, which gets values of its own (cbgen_operator_copy).
 * "rest" is what no part claims: opening driver and NVRTC, above all. A product is timed by cbgen_operator_measure;
 * "products" is a total in products. New values are timed on a stream, by events, beside a plain copy of them.
 *
 * Before that it says what the machine takes for allocations, uploads and pinned memory; with --sweep 1 for uploads by
 * pinned buffers of all shapes (staging.h), too.
 *
 * Products of all operators must agree bit by bit with those of the first. The exit status is 1 when they do not, or
 * anything failed. */
#include "bench/common.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cbgen.h"
#include "frontend/generate.h"
#include "frontend/read.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/staging.h"
#include "runtime/measure/timer.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_REPEATS = 25, BATCHES = 7 };

/* ---- parts of a compilation */

static const struct {
  const char *name;
  size_t offset; /* of seconds, in a cbgen_info */
} parts[] = {
    {"hash", offsetof(cbgen_info, hash_seconds)},         {"lookup", offsetof(cbgen_info, lookup_seconds)},
    {"analysis", offsetof(cbgen_info, analysis_seconds)}, {"pack", offsetof(cbgen_info, pack_seconds)},
    {"generate", offsetof(cbgen_info, generate_seconds)}, {"compile", offsetof(cbgen_info, compile_seconds)},
    {"tune", offsetof(cbgen_info, tune_seconds)},         {"store", offsetof(cbgen_info, store_seconds)},
    {"load", offsetof(cbgen_info, load_seconds)},         {"upload", offsetof(cbgen_info, upload_seconds)},
};
enum { PARTS = sizeof parts / sizeof *parts, REST = PARTS, TOTAL, COLUMNS };

struct times {
  double ms[COLUMNS];
};

static struct times times_of(const cbgen_info *info) {
  struct times times;
  double rest = times.ms[TOTAL] = 1e3 * info->total_seconds;
  for (int i = 0; i < PARTS; i++) {
    double seconds;
    memcpy(&seconds, (const char *)info + parts[i].offset, sizeof seconds);
    times.ms[i] = 1e3 * seconds;
    rest -= times.ms[i];
  }
  times.ms[REST] = rest;
  return times;
}

static struct times median_of(const struct times *all, int count) {
  struct times median;
  for (int column = 0; column < COLUMNS; column++) {
    double numbers[MOST_REPEATS];
    for (int i = 0; i < count; i++) numbers[i] = all[i].ms[column];
    median.ms[column] = cb_median(numbers, count);
  }
  return median;
}

/* ---- one matrix under measurement */

struct work {
  const struct cb_device *device;
  struct cb_timer *timer;
  FILE *json;
  int repeats;
  const char *pack;
  const char *name;
  struct cb_csr csr;
  cbgen_csr views[2];           /* by cbgen_memory */
  cb_device_ptr arrays[3];      /* row pointers, columns, values on the device */
  cb_device_ptr x, y, copy;     /* copy: as long as the values */
  unsigned char *first, *again; /* y's bytes after the first operator's product, and after another's */
  char caches[2][64];
  double product_us;
  struct cb_diag diag;
};

static size_t value_bytes(const struct work *work) {
  return (size_t)work->csr.nnz * sizeof(double);
}

static enum cb_status make_vectors(struct work *work) {
  const size_t rows = (size_t)work->csr.rows, cols = (size_t)work->csr.cols;
  double *x = cb_alloc(cols, sizeof *x);
  work->first = cb_calloc(rows, sizeof(double));
  work->again = cb_calloc(rows, sizeof(double));
  if (!x || !work->first || !work->again) return cb_fail_memory(&work->diag, "vectors", rows * sizeof(double));
  for (size_t i = 0; i < cols; i++) x[i] = 1.0 + (double)(i % 1021) / 1021;
  enum cb_status s = bench_put(work->device, &work->x, x, cols * sizeof *x, &work->diag);
  if (!s) s = bench_put(work->device, &work->y, NULL, rows * sizeof(double), &work->diag);
  cb_free(x);
  return s;
}

static enum cb_status make_matrix(struct work *work, const char *name) {
  const struct cb_csr *csr = &work->csr;
  cbgen_csr *here = &work->views[CBGEN_HOST], *there = &work->views[CBGEN_DEVICE];
  enum cb_status s = cb_matrix_read(&work->csr, name, NULL, &work->diag);
  if (!s) s = bench_put_matrix(there, work->arrays, work->device, csr, &work->diag);
  if (!s) s = bench_put(work->device, &work->copy, NULL, value_bytes(work), &work->diag);
  *here = *there;
  here->row_ptr = csr->row_ptr;
  here->col_idx = csr->col_idx;
  here->values = csr->values;
  here->memory = CBGEN_HOST;
  return s ? s : make_vectors(work);
}

static void release(struct work *work) {
  char command[128];
  for (int i = 0; i < 3; i++) cb_device_free(work->device, work->arrays[i]);
  cb_device_free(work->device, work->x);
  cb_device_free(work->device, work->y);
  cb_device_free(work->device, work->copy);
  cb_free(work->first);
  cb_free(work->again);
  cb_csr_release(&work->csr);
  for (int i = 0; i < 2; i++) {
    snprintf(command, sizeof command, "rm -rf '%s'", work->caches[i]);
    if (*work->caches[i] && system(command)) fprintf(stderr, "'%s' is left\n", work->caches[i]);
  }
}

/* ---- operators */

static enum cb_status failed(struct work *work, cbgen_status status, const char *message) {
  return cb_fail(&work->diag, (enum cb_status)status, "%s", message);
}

static enum cb_status open_context(struct work *work, cbgen_context **context, cbgen_memory memory) {
  cbgen_status status = cbgen_context_create(context);
  if (status) return failed(work, status, "no context");
  status = cbgen_set(*context, "cache", work->caches[memory]);
  if (!status) status = cbgen_set(*context, "cache-data", "always");
  return status ? failed(work, status, cbgen_message(*context)) : CB_OK;
}

/* Whether a product is the first operator's, whose result is kept. */
static enum cb_status check(struct work *work, cbgen_operator *op, int is_first) {
  const size_t bytes = (size_t)work->csr.rows * sizeof(double);
  const cbgen_product product = {.struct_size = sizeof product, .alpha = 1, .x = (void *)(uintptr_t)work->x,
                                 .y = (void *)(uintptr_t)work->y};
  const cbgen_status status = cbgen_multiply(op, &product);
  if (status) return failed(work, status, cbgen_operator_message(op));
  enum cb_status s = cb_device_wait(work->device, "a product", &work->diag);
  if (!s)
    s = cb_device_download(work->device, is_first ? work->first : work->again, work->y, bytes, "y", &work->diag);
  if (s || is_first || !memcmp(work->first, work->again, bytes)) return s;
  return cb_fail(&work->diag, CB_ERR_WRONG, "a product differs from the first");
}

/* Compiles and checks; the operator is freed unless `keep`. */
static enum cb_status compile(struct work *work, cbgen_context *context, cbgen_memory memory, cbgen_values values,
                              struct times *times, cbgen_operator **keep) {
  const cbgen_request request = {.struct_size = sizeof request, .values = values};
  cbgen_info info = {.struct_size = sizeof info};
  cbgen_operator *op;
  cbgen_status status = cbgen_compile(context, &work->views[memory], &request, &op);
  if (status) return failed(work, status, cbgen_message(context));
  cbgen_operator_info(op, &info);
  if (times) *times = times_of(&info);
  enum cb_status s = check(work, op, work->product_us == 0);
  if (!s && work->product_us == 0) {
    double seconds = 0;
    status = cbgen_operator_measure(op, &seconds);
    if (status) s = failed(work, status, cbgen_operator_message(op));
    work->product_us = 1e6 * seconds;
    if (!s && !(seconds > 0)) s = cb_fail(&work->diag, CB_ERR_WRONG, "a product took no time");
  }
  if (keep && !s)
    *keep = op;
  else
    cbgen_operator_free(op);
  return s;
}

/* ---- reports */

static void print_header(void) {
  printf("%-28s", "");
  for (int i = 0; i < PARTS; i++) printf("%9s", parts[i].name);
  printf("%9s%9s%10s   (ms)\n", "rest", "total", "products");
}

static void report(struct work *work, const char *what, cbgen_memory memory, const struct times *times) {
  const char *place = memory == CBGEN_HOST ? "host" : "device";
  char title[64];
  snprintf(title, sizeof title, "  %s, %s memory", what, place);
  printf("%-28s", title);
  for (int i = 0; i < COLUMNS; i++) printf("%9.3f", times->ms[i]);
  printf("%10.1f\n", 1e3 * times->ms[TOTAL] / work->product_us);
  if (!work->json) return;
  fprintf(work->json, "{\"matrix\": \"%s\", \"nnz\": %lld, \"product_us\": %.3f, \"start\": \"%s\", \"memory\": \"%s\"",
          work->name, (long long)work->csr.nnz, work->product_us, what, place);
  for (int i = 0; i < PARTS; i++) fprintf(work->json, ", \"%s_ms\": %.4f", parts[i].name, times->ms[i]);
  fprintf(work->json, ", \"rest_ms\": %.4f, \"total_ms\": %.4f, \"products\": %.2f}\n", times->ms[REST],
          times->ms[TOTAL], 1e3 * times->ms[TOTAL] / work->product_us);
}

static void report_update(struct work *work, const char *from, double update_us, double copy_us) {
  printf("  new values, %-16s update %10.1f us, copy %10.1f us, ratio %.2f\n", from, update_us, copy_us,
         update_us / copy_us);
  if (!work->json) return;
  fprintf(work->json,
          "{\"matrix\": \"%s\", \"nnz\": %lld, \"update_from\": \"%s\", \"update_us\": %.3f, \"copy_us\": %.3f, "
          "\"ratio\": %.4f}\n",
          work->name, (long long)work->csr.nnz, from, update_us, copy_us, update_us / copy_us);
}

/* ---- starts */

static enum cb_status cold_start(struct work *work, cbgen_memory memory) {
  cbgen_context *context;
  cbgen_operator *op = NULL;
  struct times times;
  cbgen_trim();
  enum cb_status s = open_context(work, &context, memory);
  if (!s) s = compile(work, context, memory, CBGEN_VALUES_STORED, &times, &op);
  if (!s && memory == CBGEN_HOST) {
    const char *plan = cbgen_operator_plan(op);
    printf("%s: %lld x %lld, %lld nonzeros, product %.1f us\n  %.140s\n", work->name, (long long)work->csr.rows,
           (long long)work->csr.cols, (long long)work->csr.nnz, work->product_us, plan);
    print_header();
  }
  if (!s) report(work, "cold", memory, &times);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  return s;
}

/* The first compile of a new context; and, unless `next` is NULL, the one after it. */
static enum cb_status start(struct work *work, cbgen_memory memory, struct times *first, struct times *next) {
  cbgen_context *context;
  enum cb_status s = open_context(work, &context, memory);
  if (!s && cbgen_set(context, "pack", work->pack)) s = failed(work, CBGEN_ERROR_ARGUMENT, cbgen_message(context));
  if (!s) s = compile(work, context, memory, CBGEN_VALUES_STORED, first, NULL);
  if (!s && next) s = compile(work, context, memory, CBGEN_VALUES_STORED, next, NULL);
  cbgen_context_destroy(context);
  return s;
}

static enum cb_status warm_starts(struct work *work, cbgen_memory memory) {
  static const char *const titles[] = {"first", "context", "again"};
  struct times times[3][MOST_REPEATS];
  enum cb_status s = CB_OK;
  for (int i = 0; i < work->repeats && !s; i++) {
    cbgen_trim();
    s = start(work, memory, &times[0][i], NULL);
    if (!s) s = start(work, memory, &times[1][i], &times[2][i]);
  }
  for (int i = 0; i < 3 && !s; i++) {
    const struct times median = median_of(times[i], work->repeats);
    report(work, titles[i], memory, &median);
  }
  return s;
}

/* ---- new values */

struct renewal {
  struct work *work;
  cbgen_operator *op; /* NULL: a plain copy */
  cbgen_memory memory;
  const void *values;
};

static enum cb_status renew(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct renewal *renewal = user;
  const struct work *work = renewal->work;
  const struct cb_driver *driver = work->device->driver;
  const size_t bytes = value_bytes(work);
  const cbgen_update update = {sizeof update, renewal->values, CBGEN_F64, renewal->memory, stream};
  if (renewal->op) {
    const cbgen_status status = cbgen_update_values(renewal->op, &update);
    return status ? cb_fail(diag, (enum cb_status)status, "%s", cbgen_operator_message(renewal->op)) : CB_OK;
  }
  return cb_driver_check(
      driver,
      renewal->memory == CBGEN_DEVICE
          ? driver->call.copy_on_device(work->copy, (cb_device_ptr)(uintptr_t)renewal->values, bytes, stream)
          : driver->call.copy_to_device_async(work->copy, renewal->values, bytes, stream),
      diag, "copy values");
}

static enum cb_status time_renewal(double *us, const struct renewal *renewal) {
  struct work *work = renewal->work;
  struct renewal taken = *renewal;
  int launches = 0;
  enum cb_status s = cb_timer_launches(&launches, work->timer, renew, &taken, &work->diag);
  return s ? s : cb_timer_measure(us, work->timer, renew, &taken, launches, BATCHES, &work->diag);
}

static enum cb_status compare(struct work *work, cbgen_operator *op, const char *from, cbgen_memory memory,
                              const void *values) {
  const struct renewal update = {work, op, memory, values}, copy = {work, NULL, memory, values};
  double update_us = 0, copy_us = 0;
  enum cb_status s = time_renewal(&copy_us, &copy);
  if (!s) s = time_renewal(&update_us, &update);
  if (!s) report_update(work, from, update_us, copy_us);
  return s;
}

static enum cb_status compare_pinned(struct work *work, cbgen_operator *op) {
  const struct cb_driver *driver = work->device->driver;
  void *pinned = NULL;
  if (driver->call.host_alloc(&pinned, value_bytes(work), 0)) {
    printf("  no pinned memory\n");
    return CB_OK;
  }
  memcpy(pinned, work->csr.values, value_bytes(work));
  const enum cb_status s = compare(work, op, "pinned memory", CBGEN_HOST, pinned);
  driver->call.host_free(pinned);
  return s;
}

/* Another operator of the same pattern with values from there: the median of the repeats. */
static enum cb_status copies(struct work *work, cbgen_operator *op, cbgen_memory memory, const void *values) {
  const cbgen_update update = {sizeof update, values, CBGEN_F64, memory, NULL};
  struct times times[MOST_REPEATS];
  enum cb_status s = CB_OK;
  for (int i = 0; i < work->repeats && !s; i++) {
    cbgen_info info = {.struct_size = sizeof info};
    cbgen_operator *copy;
    const cbgen_status status = cbgen_operator_copy(op, &update, &copy);
    if (status) return failed(work, status, cbgen_operator_message(op));
    cbgen_operator_info(copy, &info);
    times[i] = times_of(&info);
    s = check(work, copy, 0);
    cbgen_operator_free(copy);
  }
  if (s) return s;
  const struct times median = median_of(times, work->repeats);
  report(work, "copy", memory, &median);
  return CB_OK;
}

static enum cb_status new_values(struct work *work) {
  cbgen_context *context;
  cbgen_operator *op = NULL;
  struct times times;
  enum cb_status s = open_context(work, &context, CBGEN_DEVICE);
  if (!s) s = compile(work, context, CBGEN_DEVICE, CBGEN_VALUES_MUTABLE, &times, &op);
  if (!s) report(work, "mutable", CBGEN_DEVICE, &times);
  if (!s) s = copies(work, op, CBGEN_DEVICE, (void *)(uintptr_t)work->arrays[2]);
  if (!s) s = copies(work, op, CBGEN_HOST, work->csr.values);
  if (!s) s = compare(work, op, "device memory", CBGEN_DEVICE, (void *)(uintptr_t)work->arrays[2]);
  if (!s) s = compare(work, op, "host memory", CBGEN_HOST, work->csr.values);
  if (!s) s = compare_pinned(work, op);
  if (!s) s = check(work, op, 0);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  return s;
}

/* ---- what the machine takes for the steps that set-up consists of */

enum { PROBE = 64 << 20 };

static void tell(FILE *json, const char *what, double value, const char *unit) {
  printf("%-44s %9.3f %s\n", what, value, unit);
  if (json) fprintf(json, "{\"step\": \"%s\", \"value\": %.4f, \"unit\": \"%s\"}\n", what, value, unit);
}

/* The best of three. */
static enum cb_status time_upload(double *seconds, const struct cb_device *device, cb_device_ptr to, const void *from,
                                  struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  *seconds = 1e9;
  for (int i = 0; i < 3 && !s; i++) {
    const double start = cb_seconds();
    s = cb_device_upload(device, to, from, PROBE, "bytes", diag);
    if (!s) s = cb_device_wait(device, "a copy", diag);
    if (cb_seconds() - start < *seconds) *seconds = cb_seconds() - start;
  }
  return s;
}

static enum cb_status probe_uploads(struct cb_device *device, FILE *json, const void *bytes, struct cb_diag *diag) {
  cb_device_ptr there = 0;
  double seconds = 0, start = cb_seconds();
  enum cb_status s = cb_device_alloc(device, &there, PROBE, "bytes", diag);
  tell(json, "allocation of 64 MiB on the device", 1e3 * (cb_seconds() - start), "ms");
  if (!s) s = time_upload(&seconds, device, there, bytes, diag);
  if (!s) tell(json, "upload by the driver, pageable memory", 1e-9 * PROBE / seconds, "GB/s");
  start = cb_seconds();
  if (!s) s = cb_staging_create(&device->staging, device, NULL, diag);
  if (!s) s = cb_device_upload(device, there, bytes, 8 << 20, "bytes", diag);
  if (!s) tell(json, "first 8 MiB by pinned buffers", 1e3 * (cb_seconds() - start), "ms");
  if (!s) s = time_upload(&seconds, device, there, bytes, diag);
  if (!s) tell(json, "upload by pinned buffers", 1e-9 * PROBE / seconds, "GB/s");
  start = cb_seconds();
  cb_staging_free(device->staging);
  device->staging = NULL;
  tell(json, "pinned buffers given back", 1e3 * (cb_seconds() - start), "ms");
  start = cb_seconds();
  cb_device_free(device, there);
  tell(json, "64 MiB on the device given back", 1e3 * (cb_seconds() - start), "ms");
  return s;
}

/* A cache's section, as it were: bytes are copied and hashed. */
static const void *copy_and_hash(const void *user, size_t at, size_t length, void *room) {
  memcpy(room, (const char *)user + at, length);
  return cb_hash_bytes(room, length).low == 1 ? NULL : room; /* never; or it would not be computed */
}

/* Uploads by one shape of staging, from memory and from a source. */
static enum cb_status probe_shape(struct cb_device *device, FILE *json, const struct cb_staging_shape *shape,
                                  cb_device_ptr there, const void *bytes, struct cb_diag *diag) {
  const struct cb_staging_source source = {bytes, PROBE, copy_and_hash, bytes};
  double memory = 0, kept = 0;
  char what[64];
  enum cb_status s = cb_staging_create(&device->staging, device, shape, diag);
  if (s) return s;
  const double start = cb_seconds();
  const int ready = cb_staging_prepare(device->staging);
  const double prepared = 1e3 * (cb_seconds() - start);
  if (ready) s = time_upload(&memory, device, there, bytes, diag);
  if (ready && !s) cb_staging_set_sources(device->staging, &source, 1);
  if (ready && !s) s = time_upload(&kept, device, there, bytes, diag);
  cb_staging_free(device->staging);
  device->staging = NULL;
  if (!ready || s) return s;
  snprintf(what, sizeof what, "%d threads x %d x %zu KiB, %d streams (%.1f ms)", shape->workers, shape->buffers,
           shape->chunk >> 10, shape->streams, prepared);
  printf("%-44s %9.3f GB/s, kept %.3f GB/s\n", what, 1e-9 * PROBE / memory, 1e-9 * PROBE / kept);
  if (json)
    fprintf(json,
            "{\"staging\": [%d, %d, %zu, %d], \"prepare_ms\": %.3f, \"gb_per_s\": %.3f, "
            "\"kept_gb_per_s\": %.3f}\n",
            shape->workers, shape->buffers, shape->chunk, shape->streams, prepared, 1e-9 * PROBE / memory,
            1e-9 * PROBE / kept);
  return s;
}

static enum cb_status sweep(struct cb_device *device, FILE *json, const void *bytes, struct cb_diag *diag) {
  cb_device_ptr there = 0;
  enum cb_status s = cb_device_alloc(device, &there, PROBE, "bytes", diag);
  for (int workers = 4; workers <= CB_STAGING_WORKERS; workers *= 2)
    for (int buffers = 1; buffers <= 2; buffers++)
      for (size_t chunk = CB_STAGING_BUFFER; chunk <= 4 * CB_STAGING_BUFFER; chunk *= 2)
        for (int streams = 1; streams <= CB_STAGING_STREAMS && !s; streams *= 2) {
          const struct cb_staging_shape shape = {workers, buffers, streams, chunk};
          s = probe_shape(device, json, &shape, there, bytes, diag);
        }
  cb_device_free(device, there);
  return s;
}

static enum cb_status probe(struct cb_device *device, FILE *json, int sweeps, struct cb_diag *diag) {
  char *bytes = cb_alloc(PROBE, 1);
  if (!bytes) return cb_fail_memory(diag, "bytes", PROBE);
  memset(bytes, 1, PROBE);
  struct cb_nvrtc *nvrtc = NULL;
  double start = cb_seconds();
  enum cb_status s = cb_nvrtc_open(&nvrtc, NULL, diag);
  if (!s) tell(json, "NVRTC opened, the first time in a process", 1e3 * (cb_seconds() - start), "ms");
  cb_nvrtc_close(nvrtc);
  start = cb_seconds();
  volatile uint64_t kept = cb_hash_array(bytes, PROBE, 1).low; /* or it would not be computed */
  (void)kept;
  tell(json, "hash of 64 MiB on the host", 1e3 * (cb_seconds() - start), "ms");
  if (!s) s = probe_uploads(device, json, bytes, diag);
  if (!s && sweeps) s = sweep(device, json, bytes, diag);
  cb_free(bytes);
  return s;
}

/* ---- all of it */

static enum cb_status make_caches(struct work *work) {
  const char *folder = getenv("TMPDIR");
  for (int i = 0; i < 2; i++) {
    snprintf(work->caches[i], sizeof work->caches[i], "%.40s/cbgen-warm-XXXXXX", folder ? folder : "/tmp");
    if (mkdtemp(work->caches[i])) continue;
    *work->caches[i] = 0;
    return cb_fail(&work->diag, CB_ERR_IO, "no directory for a cache in '%s'", folder ? folder : "/tmp");
  }
  return CB_OK;
}

static enum cb_status measure(struct work *work, const char *name) {
  work->name = name;
  enum cb_status s = make_caches(work);
  if (!s) s = make_matrix(work, name);
  for (int memory = CBGEN_HOST; memory <= CBGEN_DEVICE && !s; memory++) {
    s = cold_start(work, (cbgen_memory)memory);
    if (!s) s = warm_starts(work, (cbgen_memory)memory);
  }
  if (!s) s = new_values(work);
  if (s) fprintf(stderr, "%s: %s (%s)\n", name, work->diag.message, cb_status_name(s));
  release(work);
  fflush(stdout);
  return s;
}

static int measure_all(const struct cb_device *device, FILE *json, int repeats, const char *pack, char **names,
                       int count) {
  static char *const standard[] = {"generate:stencil7,n=160", "generate:fe3,n=50",
                                   "generate:rmat,scale=20,edge_factor=16", "generate:road,n=3000,keep=0.6"};
  struct cb_timer timer;
  struct cb_diag diag = {0};
  int bad = 0;
  if (cb_timer_open(&timer, device, NULL, &diag)) {
    fprintf(stderr, "%s\n", diag.message);
    return 1;
  }
  if (!names) count = sizeof standard / sizeof *standard;
  for (int i = 0; i < count; i++) {
    struct work *work = calloc(1, sizeof *work);
    if (!work) return 1;
    work->device = device;
    work->timer = &timer;
    work->json = json;
    work->repeats = repeats;
    work->pack = pack;
    bad |= measure(work, names ? names[i] : standard[i]) != CB_OK;
    free(work);
  }
  cb_timer_close(&timer);
  return bad;
}

int main(int argc, char **argv) {
  struct cb_driver *driver = NULL;
  struct cb_device *device = NULL;
  struct cb_diag diag = {0};
  FILE *json = NULL;
  const char *pack = "auto";
  int repeats = 5, sweeps = 0, next = 1, bad = 1;
  for (; next + 1 < argc && !strncmp(argv[next], "--", 2); next += 2) {
    if (!strcmp(argv[next], "--repeats")) repeats = atoi(argv[next + 1]);
    if (!strcmp(argv[next], "--sweep")) sweeps = atoi(argv[next + 1]);
    if (!strcmp(argv[next], "--pack")) pack = argv[next + 1];
    if (strcmp(argv[next], "--json")) continue;
    json = fopen(argv[next + 1], "w");
    if (!json) repeats = 0;
  }
  if ((next < argc && !strncmp(argv[next], "--", 2)) || repeats < 1 || repeats > MOST_REPEATS) {
    fprintf(stderr,
            "usage: bench_warm_start [--json FILE] [--repeats 1..%d] [--sweep 1] [--pack auto|host|device] [MATRIX...]\n",
            MOST_REPEATS);
    return 2;
  }
  if (!cb_driver_open(&driver, NULL, &diag) && !cb_device_open(&device, driver, 0, &diag) &&
      !cb_device_enter(device, &diag)) {
    bad = probe(device, json, sweeps, &diag) != CB_OK;
    bad |= measure_all(device, json, repeats, pack, next < argc ? argv + next : NULL, argc - next);
    cbgen_trim();
    cb_device_leave(device);
  }
  if (*diag.message) fprintf(stderr, "%s\n", diag.message);
  cb_device_close(device);
  cb_driver_close(driver);
  if (json && fclose(json)) bad = 1;
  return bad;
}
