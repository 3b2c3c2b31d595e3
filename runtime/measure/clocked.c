// SPDX-License-Identifier: Apache-2.0
/* Thread blocks by the clock: see clocked.h. First two operators, plain and clocked; then runs; then what they come
 * to. */
#include "runtime/measure/clocked.h"

#include "analysis/plan/assignment.h"
#include "base/available.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/real.h"
#include "runtime/cuda/spills.h"
#include "runtime/measure/timeline.h"

#include <stdio.h>
#include <string.h>

struct clocking {
  const struct cb_clocked_request *request;
  struct cb_clocked *clocked;
  struct cb_timer timer;
  struct cb_operator *plain, *with_clocks, *timed; /* timed: one of both */
  cb_device_ptr x, y, clocks;
  int64_t warps;
  void *y_plain, *y_clocked;
  struct cb_warp_clock *read; /* of one run */
  struct cb_span *spans;
  struct cb_pace pace;
  float *starts, *lengths;         /* us; of thread block b in run r: [b * runs + r] */
  struct cb_launch_time *launches; /* of launch l in run r: [l * runs + r] */
  double *numbers;                 /* of one of them, to sort */
};

/* ---- operators */

static enum cb_status load(struct cb_operator **op, int *registers, const struct clocking *clocking,
                           const struct cb_source *source, const struct cb_blob *blob, struct cb_diag *diag) {
  const struct cb_clocked_request *request = clocking->request;
  const struct cb_nvrtc_options options = {.arch = request->plan->target.arch};
  struct cb_compiled compiled = {0};
  struct cb_image image = {0};
  int spilled = 0;
  enum cb_status s =
      cb_compile_fitting(&compiled, request->bench->nvrtc, source->text, request->label->symbol, &options, diag);
  const struct cb_image_parts parts = {.plan = request->plan,
                                       .label = request->label,
                                       .blob = blob,
                                       .source = source,
                                       .cubin = compiled.cubin,
                                       .cubin_bytes = compiled.cubin_bytes};
  if (!s) s = cb_image_from_plan(&image, &parts, diag);
  if (!s) s = cb_operator_load(op, request->bench->device, &image, 0, diag);
  if (!s) cb_operator_registers(*op, registers, &spilled);
  cb_image_release(&image);
  cb_compiled_release(&compiled);
  return s;
}

static enum cb_status load_both(struct clocking *clocking, struct cb_diag *diag) {
  const struct cb_clocked_request *request = clocking->request;
  struct cb_clocked *clocked = clocking->clocked;
  struct cb_source plain = {0}, with_clocks = {0};
  struct cb_blob blob = {0};
  enum cb_status s = cb_pack_mapped(&blob, NULL, request->plan, request->assignment, request->csr->values,
                                    request->label->pattern, diag);
  if (!s) s = cb_source_emit(&plain, request->plan, request->label, NULL, CB_EMBED_NEVER, diag);
  if (!s) s = cb_source_emit_clocked(&with_clocks, request->plan, request->label, diag);
  if (!s) s = load(&clocking->plain, &clocked->plain_registers, clocking, &plain, &blob, diag);
  if (!s) s = load(&clocking->with_clocks, &clocked->clocked_registers, clocking, &with_clocks, &blob, diag);
  cb_source_release(&plain);
  cb_source_release(&with_clocks);
  cb_blob_release(&blob);
  return s;
}

/* ---- memory */

static size_t y_bytes(const struct clocking *clocking) {
  return cb_type_size(clocking->request->plan->vector_type) * (size_t)clocking->request->plan->rows;
}

static enum cb_status make_tables(struct clocking *clocking, struct cb_diag *diag) {
  const size_t warps = (size_t)clocking->warps, runs = (size_t)clocking->request->runs;
  const size_t blocks = (size_t)clocking->clocked->count;
  const uint64_t bytes = (sizeof *clocking->read + sizeof *clocking->spans) * warps + 2 * sizeof(float) * blocks * runs;
  const enum cb_status s = cb_available_check(bytes + 2 * y_bytes(clocking), "the clocks of all warps", diag);
  if (s) return s;
  clocking->read = cb_calloc(warps + 1, sizeof *clocking->read);
  clocking->spans = cb_calloc(warps + 1, sizeof *clocking->spans);
  clocking->starts = cb_calloc(blocks * runs + 1, sizeof *clocking->starts);
  clocking->lengths = cb_calloc(blocks * runs + 1, sizeof *clocking->lengths);
  clocking->launches =
      cb_calloc(runs * (size_t)clocking->request->plan->launches_count + 1, sizeof *clocking->launches);
  clocking->numbers = cb_calloc(cb_larger((int64_t)runs, 2 * (int64_t)blocks) + 1, sizeof *clocking->numbers);
  clocking->y_plain = cb_alloc(y_bytes(clocking) + 1, 1);
  clocking->y_clocked = cb_alloc(y_bytes(clocking) + 1, 1);
  clocking->clocked->blocks = cb_calloc(blocks + 1, sizeof *clocking->clocked->blocks);
  if (clocking->read && clocking->spans && clocking->starts && clocking->lengths && clocking->launches &&
      clocking->numbers && clocking->y_plain && clocking->y_clocked && clocking->clocked->blocks)
    return CB_OK;
  return cb_fail_memory(diag, "the clocks of all warps", bytes);
}

static enum cb_status make_vectors(struct clocking *clocking, struct cb_diag *diag) {
  const struct cb_device *device = clocking->request->bench->device;
  const struct cb_plan *plan = clocking->request->plan;
  const size_t x_bytes = cb_type_size(plan->vector_type) * (size_t)plan->cols;
  const size_t bytes = sizeof *clocking->read * (size_t)clocking->warps;
  void *x = cb_alloc(x_bytes + 1, 1);
  if (!x) return cb_fail_memory(diag, "x", x_bytes);
  for (int64_t i = 0; i < plan->cols; i++) cb_real_set(x, plan->vector_type, i, cb_selftest_x((uint64_t)i));
  enum cb_status s = cb_device_check_room(device, bytes + x_bytes + y_bytes(clocking), "the clocks of all warps", diag);
  if (!s) s = cb_device_alloc(device, &clocking->x, x_bytes, "x", diag);
  if (!s) s = cb_device_alloc(device, &clocking->y, y_bytes(clocking), "y", diag);
  if (!s) s = cb_device_alloc(device, &clocking->clocks, bytes, "clocks", diag);
  if (!s) s = cb_device_upload(device, clocking->x, x, x_bytes, "x", diag);
  if (!s) s = cb_device_fill(device, clocking->y, 0, y_bytes(clocking), diag);
  if (!s) s = cb_device_fill(device, clocking->clocks, 0xff, bytes, diag);
  cb_free(x);
  return s;
}

/* ---- runs */

static enum cb_status enqueue(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct clocking *clocking = user;
  const double beta = clocking->request->plan->form == CB_FORM_ADD;
  return cb_operator_multiply(clocking->timed, 1, clocking->x, beta, clocking->y, stream, diag);
}

static enum cb_status time_products(double *us, struct clocking *clocking, struct cb_operator *op,
                                    struct cb_diag *diag) {
  enum { BATCHES = 7 };
  int launches = 0;
  clocking->timed = op;
  enum cb_status s = cb_timer_launches(&launches, &clocking->timer, enqueue, clocking, diag);
  if (!s) s = cb_timer_measure(us, &clocking->timer, enqueue, clocking, launches, 1, diag); /* the GPU wakes up */
  return s ? s : cb_timer_measure(us, &clocking->timer, enqueue, clocking, launches, BATCHES, diag);
}

/* One product, alone. */
static enum cb_status multiply_once(struct clocking *clocking, struct cb_operator *op, struct cb_diag *diag) {
  const struct cb_bench *bench = clocking->request->bench;
  clocking->timed = op;
  const enum cb_status s = enqueue(clocking, bench->stream, diag);
  return s ? s : cb_device_wait(bench->device, "a product", diag);
}

/* With the readings of its clocks. */
static enum cb_status run_once(struct clocking *clocking, struct cb_diag *diag) {
  const size_t bytes = sizeof *clocking->read * (size_t)clocking->warps;
  enum cb_status s = multiply_once(clocking, clocking->with_clocks, diag);
  if (!s)
    s = cb_device_download(clocking->request->bench->device, clocking->read, clocking->clocks, bytes, "clocks", diag);
  if (!s) cb_pace_note(&clocking->pace, clocking->read, clocking->warps);
  return s;
}

static enum cb_status product_of(void *y, struct clocking *clocking, struct cb_operator *op, struct cb_diag *diag) {
  const struct cb_device *device = clocking->request->bench->device;
  enum cb_status s = cb_device_fill(device, clocking->y, 0, y_bytes(clocking), diag);
  if (!s) s = multiply_once(clocking, op, diag);
  return s ? s : cb_device_download(device, y, clocking->y, y_bytes(clocking), "y", diag);
}

static enum cb_status compare_bits(struct clocking *clocking, struct cb_diag *diag) {
  enum cb_status s = product_of(clocking->y_plain, clocking, clocking->plain, diag);
  if (!s) s = product_of(clocking->y_clocked, clocking, clocking->with_clocks, diag);
  if (s || clocking->request->plan->atomics) return s;
  if (!memcmp(clocking->y_plain, clocking->y_clocked, y_bytes(clocking))) return CB_OK;
  return cb_fail(diag, CB_ERR_WRONG, "with a clock for each warp the kernel gives other bits: its times mean nothing");
}

static int runs_regions(const struct cb_launch *launch) {
  return launch->regions && !launch->body && !launch->prepares;
}

/* A thread block's warps, as one span. */
static struct cb_span span_of(const struct cb_span *warps, int count) {
  struct cb_span span = warps[0];
  for (int w = 1; w < count; w++) {
    if (warps[w].begin < span.begin) span.begin = warps[w].begin;
    if (warps[w].end > span.end) span.end = warps[w].end;
  }
  return span;
}

/* Thread blocks from number `first` on, whose warps begin at `warps`. */
static void note_launch(struct clocking *clocking, int l, const struct cb_span *warps, int64_t first, int run) {
  const struct cb_launch *launch = &clocking->request->plan->launches[l];
  const int each = launch->threads / 32, runs = clocking->request->runs;
  double *const starts = clocking->numbers, *const ends = starts + launch->blocks;
  for (int64_t b = 0; b < launch->blocks; b++) {
    const struct cb_span span = span_of(warps + b * each, each);
    starts[b] = 1e-3 * span.begin;
    ends[b] = 1e-3 * span.end;
    clocking->starts[(first + b) * runs + run] = (float)starts[b];
    clocking->lengths[(first + b) * runs + run] = (float)(ends[b] - starts[b]);
  }
  clocking->launches[l * runs + run] = cb_launch_time_of(starts, ends, launch->blocks);
  for (int64_t b = 0; b < launch->blocks; b++) clocking->starts[(first + b) * runs + run] -= (float)starts[0];
}

static enum cb_status note_run(struct clocking *clocking, int run, struct cb_diag *diag) {
  const struct cb_plan *plan = clocking->request->plan;
  const struct cb_span *warps = clocking->spans;
  int64_t first = 0;
  const enum cb_status s =
      cb_timeline_place(clocking->spans, clocking->read, clocking->warps, cb_pace_ns(&clocking->pace), diag);
  for (int l = 0; l < plan->launches_count && !s; l++) {
    const struct cb_launch *launch = &plan->launches[l];
    if (runs_regions(launch)) note_launch(clocking, l, warps, first, run);
    if (runs_regions(launch)) first += launch->blocks;
    warps += launch->blocks * (launch->threads / 32);
  }
  return s;
}

/* Between the first two runs, whose readings tell how long a cycle is, lie those products that are timed. */
static enum cb_status run_all(struct clocking *clocking, struct cb_diag *diag) {
  struct cb_clocked *clocked = clocking->clocked;
  enum cb_status s = compare_bits(clocking, diag);
  if (!s) s = time_products(&clocked->plain_us, clocking, clocking->plain, diag);
  if (!s) s = run_once(clocking, diag);
  if (!s) s = time_products(&clocked->clocked_us, clocking, clocking->with_clocks, diag);
  if (!s) s = run_once(clocking, diag);
  for (int run = 0; run < clocking->request->runs && !s; run++) {
    s = run_once(clocking, diag);
    if (!s) s = note_run(clocking, run, diag);
  }
  return s;
}

/* ---- what they come to */

static double median_of(struct clocking *clocking, const float *numbers) {
  for (int r = 0; r < clocking->request->runs; r++) clocking->numbers[r] = (double)numbers[r];
  return cb_median(clocking->numbers, clocking->request->runs);
}

/* Each figure by itself: that of one run need not be that of another. */
static struct cb_launch_time median_launch(struct clocking *clocking, const struct cb_launch_time *times) {
  struct cb_launch_time median;
  const int runs = clocking->request->runs;
  for (int r = 0; r < runs; r++) clocking->numbers[r] = times[r].us;
  median.us = cb_median(clocking->numbers, runs);
  for (int r = 0; r < runs; r++) clocking->numbers[r] = times[r].tail_us;
  median.tail_us = cb_median(clocking->numbers, runs);
  for (int r = 0; r < runs; r++) clocking->numbers[r] = (double)times[r].at_once;
  median.at_once = (int64_t)cb_median(clocking->numbers, runs);
  return median;
}

static void sum_up(struct clocking *clocking) {
  struct cb_clocked *clocked = clocking->clocked;
  const int runs = clocking->request->runs;
  clocked->cycle_ns = cb_pace_ns(&clocking->pace);
  for (int64_t b = 0; b < clocked->count; b++)
    clocked->blocks[b] = (struct cb_block_time){median_of(clocking, clocking->starts + b * runs),
                                                median_of(clocking, clocking->lengths + b * runs)};
  for (int l = 0; l < clocked->launches_count; l++)
    clocked->launches[l] = median_launch(clocking, clocking->launches + l * runs);
}

/* ---- the whole */

static enum cb_status count_blocks(struct clocking *clocking, struct cb_diag *diag) {
  const struct cb_plan *plan = clocking->request->plan;
  struct cb_clocked *clocked = clocking->clocked;
  clocking->warps = cb_source_clocks(plan, plan->launches_count);
  clocked->runs = clocking->request->runs;
  clocked->launches_count = plan->launches_count;
  clocked->launches = cb_calloc((size_t)plan->launches_count + 1, sizeof *clocked->launches);
  for (int l = 0; l < plan->launches_count; l++)
    if (runs_regions(&plan->launches[l])) clocked->count += plan->launches[l].blocks;
  return clocked->launches ? CB_OK : cb_fail_memory(diag, "launches", (uint64_t)plan->launches_count);
}

static void release(struct clocking *clocking) {
  const struct cb_device *device = clocking->request->bench->device;
  cb_operator_free(clocking->plain);
  cb_operator_free(clocking->with_clocks);
  cb_device_free(device, clocking->x);
  cb_device_free(device, clocking->y);
  cb_device_free(device, clocking->clocks);
  cb_free(clocking->y_plain);
  cb_free(clocking->y_clocked);
  cb_free(clocking->read);
  cb_free(clocking->spans);
  cb_free(clocking->starts);
  cb_free(clocking->lengths);
  cb_free(clocking->launches);
  cb_free(clocking->numbers);
}

enum cb_status cb_clocked_measure(struct cb_clocked *clocked, const struct cb_clocked_request *request,
                                  struct cb_diag *diag) {
  struct clocking clocking = {.request = request, .clocked = clocked, .timer = request->bench->timer};
  *clocked = (struct cb_clocked){0};
  enum cb_status s = count_blocks(&clocking, diag);
  if (!s) s = make_tables(&clocking, diag);
  if (!s) s = load_both(&clocking, diag);
  if (!s) s = make_vectors(&clocking, diag);
  if (!s) cb_operator_set_clocks(clocking.with_clocks, clocking.clocks);
  if (!s) s = run_all(&clocking, diag);
  if (!s) sum_up(&clocking);
  release(&clocking);
  return s;
}

void cb_clocked_release(struct cb_clocked *clocked) {
  cb_free(clocked->launches);
  cb_free(clocked->blocks);
  *clocked = (struct cb_clocked){0};
}
