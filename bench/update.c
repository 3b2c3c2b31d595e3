// SPDX-License-Identifier: Apache-2.0
/* What new values cost on the device, by kernels of several shapes (runtime/operator/packer.h), beside a plain copy.
 *
 *   bench_update [MATRIX…]      MATRIX: a file, or generate:SHAPE
 *
 * One process, GPU 0, double precision. For each matrix it says what an update moves: values read, slots written in
 * groups that have any, the value map read; and what a copy of the values moves. Then, for each shape, the time, the
 * rate, and the ratio to the copy's time, all by events on a stream (runtime/measure/timer.h). What each shape has
 * written must be what the host makes of it; the exit status is 1 when it is not, or anything failed. */
#include "analysis/options.h"
#include "analysis/plan/assignment.h"
#include "analysis/plan/blob.h"
#include "analysis/plan.h"
#include "base/memory.h"
#include "frontend/read.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/measure/timer.h"
#include "runtime/operator/packer.h"
#include "runtime/operator/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 15 };

/* The first one is the library's own. */
static const struct cb_packer_shape shapes[] = {
    {0, 0}, {256, 4}, {256, 5}, {256, 6}, {128, 16}, {512, 4},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

struct bench {
  struct cb_device *device;
  struct cb_nvrtc *nvrtc;
  struct cb_timer timer;
  struct cb_diag diag;
};

/* One matrix: its plan, the map by which its values move, and both on the device. */
struct work {
  struct bench *bench;
  struct cb_csr csr;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  struct cb_blob blob;
  struct cb_slot_map *maps;
  struct cb_value_range *ranges;
  struct cb_value_map map;
  void **expected; /* by region */
  cb_device_ptr values, copy, blocks, lost, *slots;
  const struct cb_packer *packer; /* NULL: a plain copy */
};

static size_t value_bytes(const struct work *work) {
  return (size_t)work->csr.nnz * sizeof(double);
}

static size_t slot_bytes(const struct work *work, int region) {
  return (size_t)work->ranges[region].slots * sizeof(double);
}

/* ---- making the map */

static enum cb_status plan_matrix(struct work *work, struct cb_diag *diag) {
  struct cb_options options;
  cb_options_default(&options);
  const struct cb_hash none = {0, 0};
  enum cb_status s = cb_plan_build(&work->plan, &work->assignment, &work->csr, &work->bench->device->target, &options, diag);
  if (s) return s;
  const size_t regions = (size_t)work->plan->regions_count + 1;
  work->maps = cb_calloc(regions, sizeof *work->maps);
  work->ranges = cb_calloc(regions, sizeof *work->ranges);
  work->expected = cb_calloc(regions, sizeof *work->expected);
  work->slots = cb_calloc(regions, sizeof *work->slots);
  if (!work->maps || !work->ranges || !work->expected || !work->slots) return cb_fail_memory(diag, "maps", regions);
  s = cb_pack_mapped(&work->blob, work->maps, work->plan, work->assignment, NULL, none, diag);
  if (s) return s;
  const struct cb_order order = {0};
  s = cb_value_map_build(&work->map, work->ranges, work->maps, work->plan->regions_count, &order, work->csr.nnz,
                         work->csr.nnz, diag);
  for (int r = 0; r < work->plan->regions_count; r++) cb_slot_map_release(&work->maps[r]);
  return s;
}

static enum cb_status put(const struct work *work, cb_device_ptr *there, const void *bytes, size_t length) {
  struct cb_diag *diag = &work->bench->diag;
  const struct cb_device *device = work->bench->device;
  enum cb_status s = cb_device_alloc(device, there, length, "an array", diag);
  if (!s && bytes) s = cb_device_upload(device, *there, bytes, length, "an array", diag);
  return !s && !bytes ? cb_device_fill(device, *there, 0, length, diag) : s;
}

static enum cb_status put_all(struct work *work, struct cb_diag *diag) {
  const struct cb_view view = {.nnz = work->csr.nnz, .values = work->csr.values, .value_type = CB_F64};
  enum cb_status s = put(work, &work->values, work->csr.values, value_bytes(work));
  if (!s) s = put(work, &work->copy, NULL, value_bytes(work));
  if (!s) s = put(work, &work->blocks, work->map.blocks, (size_t)cb_value_map_bytes(&work->map));
  if (!s) s = put(work, &work->lost, NULL, sizeof(uint32_t));
  for (int r = 0; r < work->plan->regions_count && !s; r++) {
    work->expected[r] = cb_calloc((size_t)work->ranges[r].slots + 1, sizeof(double));
    if (!work->expected[r]) return cb_fail_memory(diag, "slots", slot_bytes(work, r));
    s = cb_values_gather(&work->map, &work->ranges[r], &view, CB_F64, work->expected[r], diag);
    if (!s) s = put(work, &work->slots[r], NULL, slot_bytes(work, r));
  }
  return s;
}

static void release(struct work *work) {
  const struct cb_device *device = work->bench->device;
  const cb_device_ptr all[] = {work->values, work->copy, work->blocks, work->lost};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) cb_device_free(device, all[i]);
  for (int r = 0; work->plan && r < work->plan->regions_count; r++) {
    if (work->slots) cb_device_free(device, work->slots[r]);
    if (work->expected) cb_free(work->expected[r]);
  }
  cb_free(work->slots);
  cb_free(work->expected);
  cb_free(work->ranges);
  cb_free(work->maps);
  cb_value_map_release(&work->map);
  cb_blob_release(&work->blob);
  cb_assignment_free(work->assignment);
  cb_plan_free(work->plan);
  cb_csr_release(&work->csr);
}

/* ---- an update, as runtime/operator/update.c makes it; slots of absent entries become zero where arrays are of
 * values alone, which is taken for granted here: no array but these is there */

static enum cb_status renew(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct work *work = user;
  const struct cb_driver *driver = work->bench->device->driver;
  enum cb_status s = CB_OK;
  if (!work->packer)
    return cb_driver_check(driver, driver->call.copy_on_device(work->copy, work->values, value_bytes(work), stream), diag,
                           "copy values");
  for (int r = 0; r < work->plan->regions_count && !s; r++) {
    const struct cb_value_range *range = &work->ranges[r];
    const struct cb_packing packing = {
        .slots_count = range->slots,
        .given = CB_F64,
        .values = work->values,
        .blocks = work->blocks + (cb_device_ptr)range->first_block * sizeof *work->map.blocks,
        .body = work->blocks + (cb_device_ptr)cb_value_map_body_at(&work->map),
        .slots = work->slots[r],
        .values_count = work->map.values,
        .blocks_count = range->blocks,
        .first_group = range->first_group,
        .zeroed = range->slots,
        .lost = work->lost,
    };
    s = cb_packer_launch(work->packer, &packing, stream, diag);
  }
  return s;
}

static enum cb_status time_renewal(double *us, struct work *work, struct cb_diag *diag) {
  struct cb_timer *timer = &work->bench->timer;
  int launches = 0;
  const enum cb_status s = cb_timer_launches(&launches, timer, renew, work, diag);
  return s ? s : cb_timer_measure(us, timer, renew, work, launches, BATCHES, diag);
}

/* ---- the shapes */

static enum cb_status check(const struct work *work, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  for (int r = 0; r < work->plan->regions_count && !s; r++) {
    const size_t bytes = slot_bytes(work, r);
    unsigned char *slots = cb_alloc(bytes + 1, 1);
    if (!slots) return cb_fail_memory(diag, "slots", bytes);
    s = cb_device_download(work->bench->device, slots, work->slots[r], bytes, "slots", diag);
    if (!s && memcmp(slots, work->expected[r], bytes))
      s = cb_fail(diag, CB_ERR_INTERNAL, "region %d: slots are not what the host makes of them", r);
    cb_free(slots);
    if (!s) s = cb_device_fill(work->bench->device, work->slots[r], 0, bytes, diag);
  }
  return s;
}

static enum cb_status load(struct cb_packer *packer, const struct bench *bench, const struct cb_packer_shape *shape,
                           struct cb_diag *diag) {
  const struct cb_nvrtc_options options = {.arch = bench->device->target.arch};
  struct cb_text text = {0};
  struct cb_compiled compiled = {0};
  enum cb_status s = cb_packer_shaped_text(&text, CB_F64, shape, diag);
  if (!s) s = cb_nvrtc_compile(&compiled, bench->nvrtc, text.bytes, "pack.cu", &options, diag);
  if (!s) s = cb_packer_load(packer, bench->device, CB_F64, compiled.cubin, compiled.cubin_bytes, diag);
  packer->shape = *shape;
  cb_compiled_release(&compiled);
  cb_text_release(&text);
  return s;
}

static enum cb_status measure_shape(struct work *work, const struct cb_packer_shape *shape, double bytes, double copy_us,
                                    struct cb_diag *diag) {
  struct cb_packer packer = {0};
  double us = 0;
  enum cb_status s = load(&packer, work->bench, shape, diag);
  work->packer = &packer;
  if (!s) s = time_renewal(&us, work, diag);
  if (!s) s = check(work, diag);
  if (!s)
    printf("  %4d threads, %2d blocks %9.1f us %9.1f GB/s   ratio %.2f\n", shape->threads,
           shape->blocks, us, 1e-3 * bytes / us, us / copy_us);
  work->packer = NULL;
  cb_packer_release(&packer);
  return s;
}

/* Bytes that an update moves. */
static double tell_bytes(const struct work *work, const char *name) {
  const struct cb_value_map *map = &work->map;
  int64_t groups = 0, prefix_counts = 0, residuals = 0;
  for (int64_t q = 0; q < map->blocks_count; q++) {
    for (int m = 0; m < CB_BLOCK_GROUPS; m++) groups += map->blocks[q].group[m] != CB_NO_GROUP;
    prefix_counts += (map->blocks[q].control >> CB_DELTA_SHIFT & 7) == CB_PREFIX_COUNTS;
    residuals += (map->blocks[q].control >> CB_RESIDUAL_SHIFT & 3) != 0;
  }
  const double values = (double)value_bytes(work), slots = (double)(groups * CB_GROUP_SLOTS) * sizeof(double),
               blocks = (double)map->blocks_count * (double)sizeof *map->blocks,
               all = values + slots + blocks + (double)map->body_bytes;
  printf("%s: %lld x %lld, %lld nonzeros, %lld blocks (%lld with prefix counts, %lld with residuals)\n", name,
         (long long)work->csr.rows, (long long)work->csr.cols, (long long)work->csr.nnz, (long long)map->blocks_count,
         (long long)prefix_counts, (long long)residuals);
  printf("  MB: values %.1f, slots %.1f, blocks %.1f, deltas and residuals %.1f; in all %.2f times a copy's\n",
         1e-6 * values, 1e-6 * slots, 1e-6 * blocks, 1e-6 * (double)map->body_bytes, all / (2 * values));
  return all;
}

static enum cb_status measure_all(struct work *work, const char *name, struct cb_diag *diag) {
  const double bytes = tell_bytes(work, name);
  double us = 0;
  enum cb_status s = time_renewal(&us, work, diag);
  if (!s) printf("  %-46s %9.1f us %9.1f GB/s\n", "copy", us, 2e-3 * (double)value_bytes(work) / us);
  for (int i = 0; i < SHAPES && !s; i++)
    s = measure_shape(work, i ? &shapes[i] : &cb_packer_shape, bytes, us, diag);
  fflush(stdout);
  return s;
}

static enum cb_status measure(struct bench *bench, const char *name) {
  struct cb_diag *diag = &bench->diag;
  struct work work = {.bench = bench};
  enum cb_status s = cb_matrix_read(&work.csr, name, NULL, diag);
  if (!s) s = plan_matrix(&work, diag);
  if (!s) s = put_all(&work, diag);
  if (!s) s = measure_all(&work, name, diag);
  if (s) fprintf(stderr, "%s: %s\n", name, diag->message);
  *diag = (struct cb_diag){0};
  release(&work);
  return s;
}

int main(int argc, char **argv) {
  static char *standard[] = {"generate:road,n=3000,keep=0.6", "generate:stencil7,n=160", "generate:fe3,n=50",
                             "generate:rmat,scale=20,edge_factor=16"};
  struct bench bench = {0};
  struct cb_driver *driver = NULL;
  char **names = argc > 1 ? argv + 1 : standard;
  const int count = argc > 1 ? argc - 1 : (int)(sizeof standard / sizeof *standard);
  int bad = 1;
  if (!cb_driver_open(&driver, NULL, &bench.diag) && !cb_device_open(&bench.device, driver, 0, &bench.diag) &&
      !cb_nvrtc_open(&bench.nvrtc, NULL, &bench.diag) && !cb_device_enter(bench.device, &bench.diag)) {
    bad = cb_timer_open(&bench.timer, bench.device, NULL, &bench.diag) != CB_OK;
    for (int i = 0; i < count && !*bench.diag.message; i++) bad |= measure(&bench, names[i]) != CB_OK;
    cb_timer_close(&bench.timer);
    cb_device_leave(bench.device);
  }
  if (*bench.diag.message) fprintf(stderr, "%s\n", bench.diag.message);
  cb_nvrtc_close(bench.nvrtc);
  cb_device_close(bench.device);
  cb_driver_close(driver);
  return bad;
}
