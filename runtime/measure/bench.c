// SPDX-License-Identifier: Apache-2.0
/* Running and timing: see bench.h. First a session (open, close), then how a matrix becomes a checked operator
 * (struct work, prepare_work), then the competitors in turn (cb_bench_matrix). bench_report.c prints results. */
#include "runtime/measure/bench.h"

#include "analysis/plan/blob.h"
#include "analysis/plan.h"
#include "base/available.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/real.h"
#include "codegen/source.h"
#include "runtime/measure/emulated.h"
#include "runtime/cuda/spills.h"

#include <stdio.h>
#include <string.h>

/* ---- session */

void cb_bench_settings_default(struct cb_bench_settings *settings) {
  *settings = (struct cb_bench_settings){.repetitions = 5, .batches = 7, .baselines = 1, .ceilings = 1};
}

static enum cb_status check_settings(const struct cb_bench_settings *settings, struct cb_diag *diag) {
  if (settings->repetitions < 1 || settings->repetitions > CB_BENCH_MOST)
    return cb_fail(diag, CB_ERR_ARGUMENT, "repetitions are 1 to %d, not '%d'", CB_BENCH_MOST,
                   settings->repetitions);
  if (settings->batches < 1 || settings->batches > CB_BENCH_MOST)
    return cb_fail(diag, CB_ERR_ARGUMENT, "batches are 1 to %d, not '%d'", CB_BENCH_MOST, settings->batches);
  return CB_OK;
}

static void open_cusparse(struct cb_bench *bench) {
  struct cb_diag diag = {0};
  if (!bench->settings.baselines) return;
  if (!cb_cusparse_open(&bench->cusparse, bench->device, bench->settings.cusparse_path, &diag)) return;
  snprintf(bench->missing, sizeof bench->missing, "%.*s", (int)sizeof bench->missing - 1, diag.message);
}

static enum cb_status open_stream(struct cb_bench *bench, struct cb_diag *diag) {
  enum cb_status s = cb_device_enter(bench->device, diag);
  bench->entered = !s;
  if (!s)
    s = cb_driver_check(bench->driver,
                        bench->driver->call.stream_create(&bench->stream, CB_CU_STREAM_NON_BLOCKING), diag,
                        "make a stream");
  if (s) bench->stream = NULL;
  return s ? s : cb_timer_open(&bench->timer, bench->device, bench->stream, diag);
}

enum cb_status cb_bench_open(struct cb_bench **out, const struct cb_bench_settings *settings,
                             struct cb_diag *diag) {
  struct cb_bench *bench = cb_calloc(1, sizeof *bench);
  *out = NULL;
  if (!bench) return cb_fail_memory(diag, "a bench", sizeof *bench);
  bench->settings = *settings;
  enum cb_status s = check_settings(settings, diag);
  if (!s) s = cb_driver_open(&bench->driver, settings->driver_path, diag);
  if (!s) s = cb_nvrtc_open(&bench->nvrtc, settings->nvrtc_path, diag);
  if (!s) s = cb_device_open(&bench->device, bench->driver, settings->device, diag);
  if (!s) s = open_stream(bench, diag);
  if (!s) open_cusparse(bench);
  if (!s) s = cb_plugins_open(&bench->plugins, settings->plugins, settings->plugins_count, diag);
  if (!s && settings->ceilings) s = cb_ceilings_measure(&bench->ceilings, &bench->timer, bench->nvrtc, diag);
  bench->timer.in_graphs = settings->graphs;
  if (s)
    cb_bench_close(bench);
  else
    *out = bench;
  return s;
}

void cb_bench_close(struct cb_bench *bench) {
  if (!bench) return;
  cb_cusparse_close(bench->cusparse);
  cb_plugins_close(bench->plugins, bench->settings.plugins_count);
  cb_timer_close(&bench->timer);
  if (bench->stream) bench->driver->call.stream_destroy(bench->stream);
  if (bench->entered) cb_device_leave(bench->device);
  cb_device_close(bench->device);
  cb_nvrtc_close(bench->nvrtc);
  cb_driver_close(bench->driver);
  cb_free(bench);
}

/* ---- one matrix: from CSR to a checked operator */

struct work {
  struct cb_bench *bench;
  const struct cb_csr *csr;
  struct cb_operator *op;
  struct cb_types types;
  enum cb_type type;  /* of the vectors */
  int scalars;        /* the form takes α and β */
  double alpha, beta; /* 1.5 and 0.5 (1 and 1) for the check, if the form has them; 1 and 0 while time is measured */
  int reads_y;
  int conjugated; /* the values are */
  cb_device_ptr x, y;
  void *x_host, *y_host, *y_again; /* as on the device; y_host: what y holds before a product, later results */
  void *y_before, *y_emulated;
  struct cb_expected expected;
  cb_device_ptr baseline_x;             /* x as narrow as the baselines want it; 0: x */
  struct cb_expected baseline_expected; /* what comes of that x; without rows: `expected` holds */
};

/* Seconds since *mark, which moves on to now. */
static double lap(double *mark) {
  const double time = cb_seconds(), passed = time - *mark;
  *mark = time;
  return passed;
}

static enum cb_status note_plan(struct cb_run_result *result, const struct cb_csr *csr,
                                const struct cb_plan *plan, struct cb_hash pattern, struct cb_diag *diag) {
  const int64_t width = (int64_t)cb_type_size(plan->vector_type);
  const int reads_y = plan->form == CB_FORM_ADD; /* otherwise y = Ax is timed */
  const size_t length = strlen(plan->line);
  snprintf(result->name, sizeof result->name, "%s", csr->name);
  result->rows = plan->rows;
  result->cols = plan->cols;
  result->nnz = plan->nnz;
  result->type = cb_plan_types_name(plan);
  result->form = plan->form;
  result->semiring = plan->semiring;
  cb_hash_hex(pattern, result->pattern);
  result->stored_bytes = cb_plan_bytes(plan);
  result->moved_bytes = result->stored_bytes + width * plan->cols + width * plan->rows * (1 + reads_y);
  result->predicted_us = 1e-3 * (double)plan->cost.ns;
  result->cost = plan->cost;
  result->recipe = plan->recipe;
  result->candidates_count = plan->candidates_count;
  memcpy(result->candidates, plan->candidates, sizeof result->candidates);
  result->launches = plan->launches_count;
  result->plan = cb_alloc(length + 1, 1);
  if (!result->plan) return cb_fail_memory(diag, "the plan's line", length + 1);
  memcpy(result->plan, plan->line, length + 1);
  return CB_OK;
}

/* The text through NVRTC. A search's choice that spills gives way to the next recipe, as in the library. */
static enum cb_status compile(struct work *work, struct cb_run_result *result, struct cb_made *made,
                              const struct cb_options *options, const struct cb_label *label, struct cb_diag *diag) {
  const struct cb_bench *bench = work->bench;
  const struct cb_make_request request = {.csr = work->csr,
                                          .options = options,
                                          .nvrtc = bench->nvrtc,
                                          .pattern = label->pattern,
                                          .name = label->matrix,
                                          .symbol = label->symbol,
                                          .line_info = bench->settings.debug};
  double mark = cb_seconds();
  enum cb_status s = cb_make_text(made, &request, diag);
  result->stages.emit = lap(&mark);
  if (!s) s = cb_make_binary(made, &request, diag);
  if (!s && made->compiled.spilled_bytes && options->tune != CB_TUNE_MEASURE)
    cb_replace_spilling(made, &request);
  result->stages.compile = made->compiled.seconds;
  return s ? s : cb_cubin_stats(&result->cubin, made->compiled.cubin, made->compiled.cubin_bytes, diag);
}

/* With the blob, to the device. */
static enum cb_status load(struct work *work, struct cb_run_result *result, const struct cb_made *made,
                           const struct cb_label *label, const struct cb_blob *blob, struct cb_diag *diag) {
  struct cb_bench *bench = work->bench;
  struct cb_image image = {0};
  const struct cb_image_parts parts = {.plan = made->plan,
                                       .label = label,
                                       .blob = blob,
                                       .source = &made->source,
                                       .cubin = made->compiled.cubin,
                                       .cubin_bytes = made->compiled.cubin_bytes};
  enum cb_status s = cb_image_from_plan(&image, &parts, diag);
  if (!s) s = cb_operator_load(&work->op, bench->device, &image, bench->settings.debug, diag);
  if (!s) {
    const struct cb_operator_info *info = cb_operator_info(work->op);
    result->stages.load = info->load_seconds;
    result->stages.upload = info->upload_seconds;
    result->device_bytes = info->device_bytes;
  }
  cb_image_release(&image);
  return s;
}

/* A vector of the seeded sequence from `first` on; complex entries take two numbers of it. y's is behind x's. */
static void seed_entries(void *vector, enum cb_type of_entry, int64_t first, int64_t entries) {
  const int parts = cb_type_parts(of_entry);
  for (int64_t i = 0; i < parts * entries; i++)
    cb_real_set(vector, cb_type_of_part(of_entry), i, cb_selftest_x((uint64_t)(parts * first + i)));
}

static void seed_vector(double *vector, int64_t first, int64_t count, enum cb_type type) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; i++) vector[i] = cb_real_round(cb_selftest_x((uint64_t)(first + i)), type);
}

/* `x_type`: what x is rounded to. */
static enum cb_status expect(struct cb_expected *expected, const struct cb_csr *csr,
                             struct cb_product *product, enum cb_type x_type, struct cb_diag *diag) {
  const int parts = cb_type_parts(product->types.vector);
  const int64_t cols = parts * csr->cols, rows = parts * csr->rows;
  double *x = cb_alloc((size_t)cols, sizeof *x), *y = cb_alloc((size_t)rows, sizeof *y);
  enum cb_status s = CB_OK;
  *expected = (struct cb_expected){0};
  if (x && y) {
    seed_vector(x, 0, cols, x_type);
    seed_vector(y, cols, rows, product->types.vector);
    product->x = x;
    product->y = product->beta != 0 ? y : NULL;
    s = cb_oracle_multiply(expected, csr, product, diag);
  } else {
    s = cb_fail_memory(diag, "the oracle's vectors", (uint64_t)(rows + cols) * sizeof *x);
  }
  product->x = product->y = NULL;
  cb_free(x);
  cb_free(y);
  return s;
}

/* The plan by the cost model, or by measurement. */
static enum cb_status choose(struct cb_made *made, struct work *work, struct cb_run_result *result,
                             const struct cb_options *options, struct cb_hash pattern, struct cb_diag *diag) {
  const struct cb_device *device = work->bench->device;
  struct cb_tuned tuned;
  if (options->tune != CB_TUNE_MEASURE)
    return cb_plan_build(&made->plan, &made->assignment, work->csr, &device->target, options, diag);
  const struct cb_tune_request request = {.csr = work->csr,
                                          .options = options,
                                          .device = device,
                                          .nvrtc = work->bench->nvrtc,
                                          .pattern = pattern};
  const enum cb_status s = cb_tune(&tuned, &request, diag);
  result->tuning = tuned.tuning;
  made->plan = tuned.made.plan;
  made->assignment = tuned.made.assignment;
  tuned.made.plan = NULL;
  tuned.made.assignment = NULL;
  cb_tuned_release(&tuned);
  return s;
}

/* How its products are asked for, and what they give. */
static enum cb_status expect_product(struct work *work, const struct cb_plan *plan, struct cb_diag *diag) {
  work->types = (struct cb_types){plan->matrix_type, plan->vector_type, plan->sum_type};
  work->type = plan->vector_type;
  work->reads_y = plan->form != CB_FORM_AX;
  work->scalars = plan->form == CB_FORM_AXPBY;
  work->conjugated = plan->conjugated;
  const int plus_times = plan->semiring == CB_PLUS_TIMES;
  work->alpha = work->scalars && plus_times ? 1.5 : 1;
  work->beta = !work->scalars ? plan->form == CB_FORM_ADD : plus_times ? 0.5 : 1;
  struct cb_product product = {
      .types = cb_oracle_types_of(plan), .alpha = work->alpha, .beta = work->beta, .conjugated = plan->conjugated};
  return expect(&work->expected, work->csr, &product, plan->vector_type, diag);
}

/* What y holds before a product: seeded where it is read, else all bits set, a NaN, so that a row that is
 * never written shows. */
static enum cb_status make_host_vectors(struct work *work, struct cb_diag *diag) {
  const struct cb_csr *csr = work->csr;
  const size_t width = cb_type_size(work->type);
  const size_t x_bytes = width * (size_t)csr->cols, y_bytes = width * (size_t)csr->rows;
  work->x_host = cb_alloc(x_bytes, 1);
  work->y_host = cb_alloc(y_bytes, 1);
  work->y_again = cb_alloc(y_bytes, 1);
  work->y_before = cb_alloc(y_bytes, 1);
  if (!work->x_host || !work->y_host || !work->y_again || !work->y_before)
    return cb_fail_memory(diag, "vectors", x_bytes + 3 * y_bytes);
  seed_entries(work->x_host, work->type, 0, csr->cols);
  if (work->reads_y)
    seed_entries(work->y_before, work->type, csr->cols, csr->rows);
  else
    memset(work->y_before, 0xff, y_bytes);
  return CB_OK;
}

/* Packs the data again, as a file: the text's host section reads one. */
static enum cb_status emulate(struct work *work, const struct cb_made *made, const struct cb_label *label,
                              struct cb_diag *diag) {
  struct cb_blob blob = {0};
  const struct cb_emulated product = {.plan = made->plan,
                                      .source = &made->source,
                                      .blob = &blob,
                                      .symbol = label->symbol,
                                      .x = work->x_host,
                                      .y = work->y_before,
                                      .alpha = work->alpha,
                                      .beta = work->beta};
  const size_t bytes = cb_type_size(work->type) * (size_t)work->csr->rows;
  work->y_emulated = cb_alloc(bytes, 1);
  if (!work->y_emulated) return cb_fail_memory(diag, "the emulation's y", bytes);
  enum cb_status s = cb_pack(&blob, made->plan, made->assignment, work->csr, label->pattern, diag);
  if (!s) s = cb_emulated_multiply(work->y_emulated, &product, diag);
  cb_blob_release(&blob);
  return s;
}

/* Plan, pack, emit, compile, load. */
static enum cb_status make_operator(struct work *work, struct cb_run_result *result,
                                    const struct cb_options *options, struct cb_diag *diag) {
  const struct cb_csr *csr = work->csr;
  struct cb_made made = {0};
  struct cb_blob blob = {0};
  char symbol[49];
  cb_symbol_from(csr->name, symbol);
  const struct cb_label label = {.matrix = csr->name, .symbol = symbol, .pattern = cb_csr_pattern_hash(csr)};
  double mark = cb_seconds();
  enum cb_status s = choose(&made, work, result, options, label.pattern, diag);
  *(options->tune == CB_TUNE_MEASURE ? &result->stages.tune : &result->stages.plan) = lap(&mark);
  if (!s) s = compile(work, result, &made, options, &label, diag);
  lap(&mark);
  if (!s) {
    s = cb_pack_mapped(&blob, NULL, made.plan, made.assignment, csr->values, label.pattern, diag);
    result->stages.pack = lap(&mark);
  }
  if (!s) s = note_plan(result, csr, made.plan, label.pattern, diag);
  if (!s) s = load(work, result, &made, &label, &blob, diag);
  if (!s) s = expect_product(work, made.plan, diag);
  if (!s) s = make_host_vectors(work, diag);
  if (!s && work->bench->settings.emulate) s = emulate(work, &made, &label, diag);
  cb_blob_release(&blob);
  cb_made_release(&made);
  return s;
}

static enum cb_status make_vectors(struct work *work, struct cb_diag *diag) {
  const struct cb_csr *csr = work->csr;
  const struct cb_device *device = work->bench->device;
  const size_t width = cb_type_size(work->type);
  const size_t x_bytes = width * (size_t)csr->cols, y_bytes = width * (size_t)csr->rows;
  const size_t padding = width * CB_BASELINE_PADDING;
  enum cb_status s = cb_device_alloc(device, &work->x, x_bytes + padding, "x", diag);
  if (!s) s = cb_device_alloc(device, &work->y, y_bytes + padding, "y", diag);
  if (!s) s = cb_device_fill(device, work->x, 0, x_bytes + padding, diag);
  if (!s) s = cb_device_fill(device, work->y, 0, y_bytes + padding, diag);
  if (!s) s = cb_device_upload(device, work->x, work->x_host, x_bytes, "x", diag);
  return s;
}

/* y = Ax is timed: that is what solvers ask for, and what is published. */
static void time_plain_products(struct work *work) {
  if (!work->scalars) return;
  work->alpha = 1;
  work->beta = 0;
}

static enum cb_status enqueue_own(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  struct work *work = user;
  return cb_operator_multiply(work->op, work->alpha, work->x, work->beta, work->y, stream, diag);
}

/* One product from the prepared y, back on the host. */
static enum cb_status product_once(struct work *work, cb_enqueue *enqueue, void *user, void *y,
                                   struct cb_diag *diag) {
  const struct cb_device *device = work->bench->device;
  const size_t bytes = cb_type_size(work->type) * (size_t)work->csr->rows;
  enum cb_status s = cb_device_upload(device, work->y, work->y_before, bytes, "y", diag);
  if (!s) s = cb_device_wait(device, "preparing y", diag);
  if (!s) s = enqueue(user, work->bench->stream, diag);
  if (!s) s = cb_device_wait(device, "a product", diag);
  if (!s) s = cb_device_download(device, y, work->y, bytes, "y", diag);
  return s;
}

static enum cb_status check_own(struct work *work, struct cb_run_result *result, struct cb_diag *diag) {
  const size_t bytes = cb_type_size(work->type) * (size_t)work->csr->rows;
  enum cb_status s = product_once(work, enqueue_own, work, work->y_host, diag);
  if (!s) s = product_once(work, enqueue_own, work, work->y_again, diag);
  if (s) return s;
  cb_oracle_compare(&result->check, &work->expected, work->y_host, work->type);
  result->repeatable = !bytes || !memcmp(work->y_host, work->y_again, bytes);
  result->emulated = work->y_emulated != NULL;
  if (result->emulated)
    result->first_other = cb_first_difference(work->y_host, work->y_emulated, work->type, work->csr->rows);
  return CB_OK;
}

/* Asked before anything is planned or compiled: whether there is memory for x and y, on the GPU and here. What is here
 * at one time is the oracle's, or what is copied to and from the GPU. */
static enum cb_status check_memory(const struct work *work, const struct cb_options *options, struct cb_diag *diag) {
  static const char what[] = "a product with vectors of as many numbers as there are columns and rows";
  const uint64_t rows = (uint64_t)work->csr->rows, cols = (uint64_t)work->csr->cols;
  const uint64_t size = cb_type_size(cb_precision_types((enum cb_precision)options->type).vector);
  const uint64_t oracle = 2 * sizeof(double) * (cols + rows), copies = size * (cols + 3 * rows);
  const enum cb_status s = cb_device_check_room(work->bench->device, size * (cols + rows), what, diag);
  return s ? s : cb_available_check((oracle > copies ? oracle : copies) + 24 * rows, what, diag);
}

static enum cb_status prepare_work(struct work *work, struct cb_run_result *result, struct cb_bench *bench,
                                   const struct cb_csr *csr, const struct cb_options *options,
                                   struct cb_diag *diag) {
  *work = (struct work){.bench = bench, .csr = csr};
  *result = (struct cb_run_result){0};
  enum cb_status s = check_memory(work, options, diag);
  if (!s) s = make_operator(work, result, options, diag);
  if (!s) s = make_vectors(work, diag);
  return s ? s : check_own(work, result, diag);
}

static void release_work(struct work *work) {
  cb_operator_free(work->op);
  cb_device_free(work->bench->device, work->x);
  cb_device_free(work->bench->device, work->y);
  cb_device_free(work->bench->device, work->baseline_x);
  cb_free(work->x_host);
  cb_free(work->y_host);
  cb_free(work->y_again);
  cb_free(work->y_before);
  cb_free(work->y_emulated);
  cb_expected_release(&work->expected);
  cb_expected_release(&work->baseline_expected);
}

/* ---- timing */

static enum cb_status set_launches(struct cb_bench *bench, struct cb_competitor *competitor,
                                   struct cb_diag *diag) {
  competitor->timing->launches = bench->settings.launches;
  if (bench->settings.launches) return CB_OK;
  return cb_timer_launches(&competitor->timing->launches, &bench->timer, competitor->enqueue,
                           competitor->user, diag);
}

static void summarise(struct cb_competitor *competitor, int repetitions) {
  struct cb_timing *timing = competitor->timing;
  timing->us = cb_median(competitor->us, repetitions); /* sorts */
  timing->least_us = competitor->us[0];
  timing->most_us = competitor->us[repetitions - 1];
}

enum cb_status cb_bench_time(struct cb_bench *bench, struct cb_competitor *competitors, int count,
                             struct cb_diag *diag) {
  const int repetitions = bench->settings.repetitions;
  enum cb_status s = CB_OK;
  for (int i = 0; i < count && !s; i++) s = set_launches(bench, &competitors[i], diag);
  for (int r = 0; r < repetitions && !s; r++)
    for (int i = 0; i < count && !s; i++)
      s = cb_timer_measure(&competitors[i].us[r], &bench->timer, competitors[i].enqueue, competitors[i].user,
                           competitors[i].timing->launches, bench->settings.batches, diag);
  for (int i = 0; i < count && !s; i++) summarise(&competitors[i], repetitions);
  return s;
}

/* A matrix without rows has no product to time. */
static int has_product(const struct cb_run_result *result) {
  return result->launches > 0;
}

enum cb_status cb_run_matrix(struct cb_run_result *result, struct cb_bench *bench, const struct cb_csr *csr,
                             const struct cb_options *options, struct cb_diag *diag) {
  struct work work;
  enum cb_status s = prepare_work(&work, result, bench, csr, options, diag);
  struct cb_competitor own = {.enqueue = enqueue_own, .user = &work, .timing = &result->timing};
  time_plain_products(&work);
  if (!s && has_product(result)) s = cb_bench_time(bench, &own, 1, diag);
  release_work(&work);
  return s;
}

void cb_run_result_release(struct cb_run_result *result) {
  cb_free(result->plan);
  cb_cubin_stats_release(&result->cubin);
  *result = (struct cb_run_result){0};
}

/* ---- baselines */

/* Whom the kernel is compared with: cuSPARSE's algorithms first, then the plug-ins. */
struct opponents {
  struct cb_baselines *baselines; /* NULL: none */
  struct cb_plugged *plugged;     /* NULL: none */
};

static int opponents_count(const struct opponents *opponents) {
  return cb_baselines_count(opponents->baselines) + cb_plugged_count(opponents->plugged);
}

struct baseline_call {
  const struct opponents *opponents;
  const struct work *work;
  int number;
};

/* The number of a plug-in; negative: it is cuSPARSE's. */
static int plugin_of(const struct baseline_call *call) {
  return call->number - cb_baselines_count(call->opponents->baselines);
}

static const struct cb_baseline *baseline_of(const struct baseline_call *call) {
  const int plugin = plugin_of(call);
  return plugin < 0 ? cb_baselines_get(call->opponents->baselines, call->number)
                    : cb_plugged_get(call->opponents->plugged, plugin);
}

static enum cb_status enqueue_baseline(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct baseline_call *call = user;
  const struct opponents *opponents = call->opponents;
  const struct work *work = call->work;
  const int plugin = plugin_of(call);
  if (plugin >= 0)
    return cb_plugged_multiply(opponents->plugged, plugin, work->alpha, work->x, work->beta, work->y, stream, diag);
  return cb_baseline_multiply(opponents->baselines, call->number, work->alpha, work->beta, stream, diag);
}

/* A baseline that fails does not apply; the error is its reason. */
static void check_baseline(struct work *work, struct baseline_call *call, struct cb_baseline_result *result) {
  struct cb_comparison comparison = {0};
  struct cb_diag diag = {0};
  result->baseline = *baseline_of(call);
  if (!result->baseline.applies) return;
  if (product_once(work, enqueue_baseline, call, work->y_again, &diag)) {
    result->baseline.applies = 0;
    snprintf(result->baseline.reason, sizeof result->baseline.reason, "%.*s", (int)sizeof result->baseline.reason - 1,
             diag.message);
    return;
  }
  const int other_x = work->baseline_expected.rows && plugin_of(call) < 0;
  cb_oracle_compare(&comparison, other_x ? &work->baseline_expected : &work->expected, work->y_again, work->type);
  result->wrong = comparison.wrong;
}

/* The fastest baseline with a right result whose name starts with `prefix`; -1: none. */
static int fastest(const struct cb_bench_result *result, const char *prefix) {
  int best = -1;
  for (int i = 0; i < result->baselines_count; i++) {
    const struct cb_baseline_result *baseline = &result->baselines[i];
    if (!baseline->baseline.applies || baseline->wrong || !(baseline->timing.us > 0)) continue;
    if (strncmp(baseline->baseline.name, prefix, strlen(prefix))) continue;
    if (best < 0 || baseline->timing.us < result->baselines[best].timing.us) best = i;
  }
  return best;
}

static double bound_us(const struct cb_bench_result *result, const struct cb_bench *bench) {
  const struct cb_ceilings *ceilings = &bench->ceilings;
  const double stream =
      ceilings->read_gb_per_s > 0 ? 1e-3 * (double)result->run.moved_bytes / ceilings->read_gb_per_s : 0;
  const double gather =
      1e-3 * (double)result->run.cost.sectors / (double)bench->device->target.sectors_g_per_s;
  const double most = stream > gather ? stream : gather;
  return most > ceilings->launch_us ? most : ceilings->launch_us;
}

void cb_bench_derive(struct cb_bench_result *result, const struct cb_bench *bench) {
  const struct cb_run_result *run = &result->run;
  const double us = run->timing.us;
  const int csr = fastest(result, "csr-");
  result->best = fastest(result, "");
  result->bytes_per_nonzero = run->nnz ? (double)run->stored_bytes / (double)run->nnz : 0;
  if (!(us > 0)) return;
  result->gflops = 2e-3 * (double)run->nnz / us;
  result->moved_gb_per_s = 1e-3 * (double)run->moved_bytes / us;
  if (bench->ceilings.read_gb_per_s > 0)
    result->share_of_read = result->moved_gb_per_s / bench->ceilings.read_gb_per_s;
  result->bound_us = bound_us(result, bench);
  if (result->best >= 0) result->speed_up = result->baselines[result->best].timing.us / us;
  if (csr >= 0) result->csr_speed_up = result->baselines[csr].timing.us / us;
}

/* x as `type`, with what the oracle expects of it. */
static enum cb_status narrow_x(struct work *work, enum cb_type type, struct cb_diag *diag) {
  const struct cb_csr *csr = work->csr;
  const struct cb_device *device = work->bench->device;
  const size_t count = (size_t)csr->cols + CB_BASELINE_PADDING, bytes = count * cb_type_size(type);
  const struct cb_oracle_types types = {
      .matrix = work->types.matrix, .vector = work->types.vector, .sum = work->types.sum};
  struct cb_product product = {.types = types, .alpha = work->alpha, .beta = work->beta};
  void *x = cb_calloc(count, cb_type_size(type));
  if (!x) return cb_fail_memory(diag, "the baselines' x", bytes);
  for (int64_t i = 0; i < csr->cols; i++) cb_real_set(x, type, i, cb_selftest_x((uint64_t)i));
  enum cb_status s = cb_device_alloc(device, &work->baseline_x, bytes, "the baselines' x", diag);
  if (!s) s = cb_device_upload(device, work->baseline_x, x, bytes, "the baselines' x", diag);
  if (!s) s = expect(&work->baseline_expected, csr, &product, type, diag);
  cb_free(x);
  return s;
}

static int any_applies(const struct cb_baselines *baselines) {
  for (int i = 0; i < cb_baselines_count(baselines); i++)
    if (cb_baselines_get(baselines, i)->applies) return 1;
  return 0;
}

/* The same matrix, its values rounded as the kernel stores them but in f64 throughout. */
static enum cb_status open_wide_baselines(struct cb_baselines **baselines, const struct work *work,
                                          struct cb_diag *diag) {
  const struct cb_baseline_types doubles = {CB_F64, CB_F64, CB_F64, CB_F64};
  struct cb_csr rounded = *work->csr;
  rounded.values = cb_alloc((size_t)rounded.nnz, sizeof *rounded.values);
  if (!rounded.values) return cb_fail_memory(diag, "rounded values", (uint64_t)rounded.nnz * sizeof(double));
  for (int64_t k = 0; k < rounded.nnz; k++)
    rounded.values[k] = cb_real_round(work->csr->values[k], work->types.matrix);
  const enum cb_status s =
      cb_baselines_open(baselines, work->bench->cusparse, &rounded, doubles, work->x, work->y, diag);
  cb_free(rounded.values);
  return s;
}

/* The baselines with the kernel's types, or what cuSPARSE has instead. */
static enum cb_status open_baselines(struct cb_baselines **baselines, struct work *work, struct cb_bench_result *result,
                                     struct cb_diag *diag) {
  const struct cb_baseline_types types = cb_baseline_types(work->types);
  const int narrow = types.x != work->types.vector;
  enum cb_status s = narrow ? narrow_x(work, types.x, diag) : CB_OK;
  if (!s)
    s = cb_baselines_open(baselines, work->bench->cusparse, work->csr, types, narrow ? work->baseline_x : work->x,
                          work->y, diag);
  if (!s && narrow) result->baseline_types = types.x == CB_F16 ? "x in f16" : "x in bf16";
  if (s || work->types.sum != CB_F64 || types.matrix == CB_F64 || any_applies(*baselines)) return s;
  cb_baselines_close(*baselines);
  *baselines = NULL;
  result->baseline_types = "all in f64: this cuSPARSE does not mix them";
  return open_wide_baselines(baselines, work, diag);
}

/* Who is timed: the kernel, then the baselines that apply. `calls` are their arguments. */
struct field {
  struct cb_competitor *competitors;
  struct baseline_call *calls;
  int count;
};

/* Checks the baselines; those that fail are not timed. */
static enum cb_status enter_all(struct field *field, struct cb_bench_result *result, struct work *work,
                                const struct opponents *opponents, struct cb_diag *diag) {
  const int count = opponents_count(opponents);
  field->competitors = cb_calloc((size_t)count + 1, sizeof *field->competitors);
  field->calls = cb_calloc((size_t)count + 1, sizeof *field->calls);
  result->baselines = cb_calloc((size_t)count + 1, sizeof *result->baselines);
  if (!field->competitors || !field->calls || !result->baselines)
    return cb_fail_memory(diag, "the list of competitors", 0);
  result->baselines_count = count;
  field->competitors[field->count++] =
      (struct cb_competitor){.enqueue = enqueue_own, .user = work, .timing = &result->run.timing};
  for (int i = 0; i < count; i++) {
    struct baseline_call *call = &field->calls[i];
    *call = (struct baseline_call){opponents, work, i};
    check_baseline(work, call, &result->baselines[i]);
    if (result->baselines[i].baseline.applies)
      field->competitors[field->count++] =
          (struct cb_competitor){.enqueue = enqueue_baseline, .user = call, .timing = &result->baselines[i].timing};
  }
  return CB_OK;
}

static enum cb_status open_opponents(struct opponents *opponents, struct work *work, struct cb_bench_result *result,
                                  struct cb_diag *diag) {
  const struct cb_bench *bench = work->bench;
  const struct cb_plugged_request request = {.plugins = bench->plugins,
                                             .count = bench->settings.plugins_count,
                                             .device = bench->device,
                                             .stream = bench->stream,
                                             .csr = work->csr,
                                             .types = work->types};
  enum cb_status s = CB_OK;
  if (!has_product(&result->run) || result->run.semiring != CB_PLUS_TIMES) return s; /* none has another semiring */
  if (work->conjugated) return s; /* nor conjugates without transposing */
  if (request.count && cb_type_is_complex(work->types.sum))
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "plug-ins multiply real numbers only");
  if (bench->cusparse) s = open_baselines(&opponents->baselines, work, result, diag);
  if (!s && request.count) s = cb_plugged_open(&opponents->plugged, &request, diag);
  return s;
}

/* Opens and checks the baselines, then times all that are left. */
static enum cb_status race(struct work *work, struct cb_bench_result *result, struct cb_diag *diag) {
  struct cb_bench *bench = work->bench;
  const size_t y_bytes = cb_type_size(work->type) * (size_t)work->csr->rows;
  struct opponents opponents = {0};
  struct field field = {0};
  enum cb_status s = open_opponents(&opponents, work, result, diag);
  if (!s) s = enter_all(&field, result, work, &opponents, diag);
  /* y as before a first product: products that add to it all start with the same */
  if (!s) s = cb_device_upload(bench->device, work->y, work->y_before, y_bytes, "y", diag);
  time_plain_products(work);
  if (!s && has_product(&result->run)) s = cb_bench_time(bench, field.competitors, field.count, diag);
  cb_baselines_close(opponents.baselines);
  cb_plugged_close(opponents.plugged);
  cb_free(field.competitors);
  cb_free(field.calls);
  return s;
}

/* Times the chosen recipe once more, as the others are timed: without cuSPARSE in between. That makes a
 * difference where the matrix fits L2: finite elements of 1.8 M nonzeros take 3.7 us alone and 5.6 us in turn. */
static enum cb_status time_alone(struct work *work, struct cb_bench_result *result, struct cb_diag *diag) {
  struct cb_competitor own = {.enqueue = enqueue_own, .user = work, .timing = &result->alone};
  return has_product(&result->run) ? cb_bench_time(work->bench, &own, 1, diag) : CB_OK;
}

/* Times the other recipes of the search, one after the other. The time of one that fails stays 0; why it fails is told
 * when it is asked for by name. */
static void time_candidates(struct cb_bench_result *result, struct cb_bench *bench, const struct cb_csr *csr,
                            const struct cb_options *options) {
  for (int i = 0; i < result->run.candidates_count; i++) {
    const struct cb_candidate *candidate = &result->run.candidates[i];
    struct cb_options one = *options;
    struct cb_run_result run;
    struct cb_diag ignored = {0};
    if (*candidate->refusal) continue;
    if (!strcmp(candidate->recipe, result->run.recipe)) {
      result->candidate_us[i] = result->alone.us;
      continue;
    }
    one.recipe = candidate->recipe;
    one.tune = CB_TUNE_MODEL;
    if (!cb_run_matrix(&run, bench, csr, &one, &ignored) && !run.check.wrong)
      result->candidate_us[i] = run.timing.us;
    cb_run_result_release(&run);
  }
}

enum cb_status cb_bench_matrix(struct cb_bench_result *result, struct cb_bench *bench,
                               const struct cb_csr *csr, const struct cb_options *options,
                               struct cb_diag *diag) {
  struct work work;
  struct cb_options wanted = *options;
  *result = (struct cb_bench_result){.best = -1};
  if (bench->settings.candidates) wanted.search = CB_SEARCH_ALL;
  enum cb_status s = prepare_work(&work, &result->run, bench, csr, &wanted, diag);
  if (!s) s = race(&work, result, diag);
  if (!s) cb_bench_derive(result, bench);
  if (!s && bench->settings.candidates) s = time_alone(&work, result, diag);
  release_work(&work);
  if (!s && bench->settings.candidates) time_candidates(result, bench, csr, options);
  return s;
}

void cb_bench_result_release(struct cb_bench_result *result) {
  cb_run_result_release(&result->run);
  cb_free(result->baselines);
  *result = (struct cb_bench_result){.best = -1};
}
