// SPDX-License-Identifier: Apache-2.0
/* Products with several vectors: see many.h. First the operator and its vectors, then checks, then the race. */
#include "runtime/measure/many.h"

#include "analysis/plan/assignment.h"
#include "analysis/plan/blob.h"
#include "base/available.h"
#include "base/memory.h"
#include "base/real.h"
#include "codegen/source.h"
#include "runtime/cuda/make.h"
#include "runtime/operator/image.h"

#include <stdio.h>
#include <string.h>

struct work {
  struct cb_bench *bench;
  const struct cb_csr *csr;
  struct cb_operator *op;
  struct cb_oracle_types types;
  int vectors, conjugated;
  double beta; /* alpha is 1; beta is 1 where the form adds to Y, whose zeros change nothing when it is checked */
  cb_device_ptr x[CB_DENSE_ORDERS], y[CB_DENSE_ORDERS];
  struct cb_expected *expected; /* of the vectors that are checked */
  struct cb_spmm *spmm;         /* NULL: there is no cuSPARSE */
};

/* Who multiplies: the kernel, by the order; one vector after the other; or cuSPARSE. */
struct call {
  struct work *work;
  int number; /* of the entry */
};

/* ---- vectors */

static struct cb_dense dense(const struct work *work, cb_device_ptr at, int64_t length, enum cb_dense_order order) {
  if (order == CB_BY_ROW) return (struct cb_dense){at, work->vectors, 1};
  return (struct cb_dense){at, 1, length};
}

/* Number i of vector v, of complex entries a part: the seeded sequence, one vector behind the other. */
static double x_number(const struct work *work, int64_t i, int v) {
  return cb_selftest_x((uint64_t)(v * cb_type_parts(work->types.vector) * work->csr->cols + i));
}

static int64_t place(const struct work *work, int64_t length, enum cb_dense_order order, int64_t i, int v) {
  return order == CB_BY_ROW ? i * work->vectors + v : v * length + i;
}

static enum cb_status make_vectors(struct work *work, struct cb_diag *diag) {
  const struct cb_device *device = work->bench->device;
  const enum cb_type type = work->types.vector, part = cb_type_of_part(type);
  const int parts = cb_type_parts(type);
  const int64_t cols = work->csr->cols, rows = work->csr->rows;
  const size_t size = cb_type_size(type) * (size_t)work->vectors;
  void *host = cb_alloc((size_t)cols + 1, size);
  enum cb_status s = host ? CB_OK : cb_fail_memory(diag, "vectors", (uint64_t)cols * size);
  for (int order = 0; order < CB_DENSE_ORDERS && !s; order++) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < cols; i++)
      for (int v = 0; v < work->vectors; v++)
        for (int p = 0; p < parts; p++)
          cb_real_set(host, part, parts * place(work, cols, (enum cb_dense_order)order, i, v) + p,
                      x_number(work, parts * i + p, v));
    s = cb_device_alloc(device, &work->x[order], ((size_t)cols + 1) * size, "X", diag);
    if (!s) s = cb_device_upload(device, work->x[order], host, (size_t)cols * size, "X", diag);
    if (!s) s = cb_device_alloc(device, &work->y[order], ((size_t)rows + 1) * size, "Y", diag);
  }
  cb_free(host);
  return s;
}

/* ---- the operator */

static enum cb_status load(struct work *work, const struct cb_made *made, const struct cb_label *label,
                           struct cb_diag *diag) {
  struct cb_blob blob = {0};
  struct cb_image image = {0};
  enum cb_status s = cb_pack_mapped(&blob, NULL, made->plan, made->assignment, work->csr->values, label->pattern, diag);
  const struct cb_image_parts parts = {.plan = made->plan,
                                       .label = label,
                                       .blob = &blob,
                                       .source = &made->source,
                                       .cubin = made->compiled.cubin,
                                       .cubin_bytes = made->compiled.cubin_bytes};
  if (!s) s = cb_image_from_plan(&image, &parts, diag);
  if (!s) s = cb_operator_load(&work->op, work->bench->device, &image, 0, diag);
  cb_image_release(&image);
  cb_blob_release(&blob);
  return s;
}

static enum cb_status note_plan(struct cb_many_result *result, const struct work *work, const struct cb_made *made,
                                struct cb_diag *diag) {
  const struct cb_plan *plan = made->plan;
  const size_t length = strlen(plan->line);
  const int64_t size = (int64_t)cb_type_size(plan->vector_type);
  snprintf(result->name, sizeof result->name, "%s", work->csr->name);
  result->type = cb_plan_types_name(plan);
  result->rows = plan->rows;
  result->cols = plan->cols;
  result->nnz = plan->nnz;
  result->vectors = work->vectors;
  result->stored_bytes = cb_plan_bytes(plan);
  result->moved_bytes = result->stored_bytes + work->vectors * size * (plan->rows + plan->cols);
  result->predicted_us = 1e-3 * (double)plan->cost.ns;
  result->compile_seconds = made->compiled.seconds;
  memcpy(result->shares, plan->shares, sizeof result->shares);
  cb_operator_registers(work->op, &result->registers, &result->spilled_bytes);
  result->plan = cb_alloc(length + 1, 1);
  if (!result->plan) return cb_fail_memory(diag, "the plan's line", length + 1);
  memcpy(result->plan, plan->line, length + 1);
  return CB_OK;
}

static enum cb_status make_operator(struct work *work, struct cb_many_result *result, const struct cb_options *options,
                                    struct cb_diag *diag) {
  struct cb_made made = {0};
  const struct cb_make_request request = {.csr = work->csr,
                                          .options = options,
                                          .nvrtc = work->bench->nvrtc,
                                          .pattern = cb_csr_pattern_hash(work->csr),
                                          .name = work->csr->name};
  enum cb_status s = cb_make(&made, &request, options->recipe, &work->bench->device->target, diag);
  const struct cb_label label = {work->csr->name, made.symbol, request.pattern};
  if (!s) s = load(work, &made, &label, diag);
  if (!s) {
    work->types = cb_oracle_types_of(made.plan);
    work->beta = made.plan->form == CB_FORM_ADD;
    work->conjugated = made.plan->conjugated;
    s = note_plan(result, work, &made, diag);
  }
  cb_made_release(&made);
  return s;
}

/* ---- checking */

enum { ALL_CHECKED = 2000000 }; /* nonzeros; of larger matrices the first vector and the last are compared */

static int is_checked(const struct work *work, int v) {
  return work->csr->nnz <= ALL_CHECKED || v == 0 || v == work->vectors - 1;
}

static enum cb_status expect(struct work *work, struct cb_many_result *result, struct cb_diag *diag) {
  const int64_t numbers = cb_type_parts(work->types.vector) * work->csr->cols;
  const enum cb_type part = cb_type_of_part(work->types.vector);
  double *x = cb_alloc((size_t)numbers + 1, sizeof *x);
  work->expected = cb_calloc((size_t)work->vectors, sizeof *work->expected);
  enum cb_status s = x && work->expected ? CB_OK : cb_fail_memory(diag, "the oracle's vectors", (uint64_t)numbers * 8);
  for (int v = 0; v < work->vectors && !s; v++) {
    if (!is_checked(work, v)) continue;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < numbers; i++) x[i] = cb_real_round(x_number(work, i, v), part);
    const struct cb_product product = {.types = work->types, .x = x, .alpha = 1, .conjugated = work->conjugated};
    s = cb_oracle_multiply(&work->expected[v], work->csr, &product, diag);
    result->checked++;
  }
  cb_free(x);
  return s;
}

static enum cb_status enqueue(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct call *call = user;
  struct work *work = call->work;
  const int64_t rows = work->csr->rows, cols = work->csr->cols, size = (int64_t)cb_type_size(work->types.vector);
  enum cb_status s = CB_OK;
  if (call->number >= CB_MANY_BASELINES)
    return cb_spmm_multiply(work->spmm, call->number - CB_MANY_BASELINES, 1, work->beta, stream, diag);
  if (call->number < CB_DENSE_ORDERS) {
    const enum cb_dense_order order = (enum cb_dense_order)call->number;
    const struct cb_scalars by = {.alpha = 1, .beta = work->beta};
    return cb_operator_multiply_many(work->op, work->vectors, &by, dense(work, work->x[order], cols, order),
                                     dense(work, work->y[order], rows, order), stream, diag);
  }
  for (int v = 0; v < work->vectors && !s; v++)
    s = cb_operator_multiply(work->op, 1, work->x[CB_BY_COLUMN] + (cb_device_ptr)(v * cols * size), work->beta,
                             work->y[CB_BY_COLUMN] + (cb_device_ptr)(v * rows * size), stream, diag);
  return s;
}

/* Column v of Y. */
static void take_vector(const struct work *work, const void *all, enum cb_dense_order order, int v, void *y) {
  const size_t size = cb_type_size(work->types.vector);
  for (int64_t i = 0; i < work->csr->rows; i++)
    memcpy((char *)y + (size_t)i * size,
           (const char *)all + (size_t)place(work, work->csr->rows, order, i, v) * size, size);
}

/* All bits of Y are set before, a NaN, so that what is never written shows; zeros where the product adds to it. What
 * is timed as graphs is checked as one, behind a product that is not captured, which libraries may need. */
static enum cb_status check(struct work *work, struct call *call, struct cb_many_entry *entry, struct cb_diag *diag) {
  const struct cb_device *device = work->bench->device;
  const size_t size = cb_type_size(work->types.vector), rows = (size_t)work->csr->rows;
  const size_t bytes = rows * size * (size_t)work->vectors;
  void *all = cb_alloc(bytes + 1, 1), *y = cb_alloc(rows + 1, size);
  enum cb_status s = all && y ? CB_OK : cb_fail_memory(diag, "vectors", bytes);
  if (!s && work->bench->timer.in_graphs) s = enqueue(call, work->bench->stream, diag);
  if (!s) s = cb_device_fill(device, work->y[entry->order], work->beta != 0 ? 0 : 0xff, bytes, diag);
  if (!s) s = cb_device_wait(device, "preparing Y", diag);
  if (!s) s = cb_timer_once(&work->bench->timer, enqueue, call, diag);
  if (!s) s = cb_device_wait(device, "a product", diag);
  if (!s) s = cb_device_download(device, all, work->y[entry->order], bytes, "Y", diag);
  for (int v = 0; v < work->vectors && !s; v++) {
    struct cb_comparison comparison;
    if (!is_checked(work, v)) continue;
    take_vector(work, all, entry->order, v, y);
    cb_oracle_compare(&comparison, &work->expected[v], y, work->types.vector);
    entry->wrong += comparison.wrong;
  }
  cb_free(all);
  cb_free(y);
  return s;
}

/* ---- the race */

static void list_own(struct cb_many_result *result) {
  static const char *const names[] = {"cbgen", "cbgen", "one by one"};
  static const enum cb_dense_order orders[] = {CB_BY_ROW, CB_BY_COLUMN, CB_BY_COLUMN};
  for (int i = 0; i < CB_MANY_BASELINES; i++) {
    struct cb_many_entry *entry = &result->entries[i];
    snprintf(entry->baseline.name, sizeof entry->baseline.name, "%s", names[i]);
    entry->baseline.applies = 1;
    entry->order = orders[i];
  }
}

/* Without cuSPARSE the reason stands where its times would. */
static void list_baselines(struct cb_many_result *result, struct work *work) {
  struct cb_diag diag = {0};
  const struct cb_types types = {work->types.matrix, work->types.vector, work->types.sum};
  enum cb_status s = CB_ERR_MISSING;
  if (work->conjugated)
    snprintf(diag.message, sizeof diag.message, "cuSPARSE conjugates nothing that it does not transpose");
  else if (work->bench->cusparse)
    s = cb_spmm_open(&work->spmm, work->bench->cusparse, work->csr, cb_baseline_types(types), work->vectors, work->x,
                     work->y, &diag);
  else snprintf(diag.message, sizeof diag.message, "%s", work->bench->missing);
  for (int i = 0; i < CB_SPMM_KINDS; i++) {
    struct cb_many_entry *entry = &result->entries[CB_MANY_BASELINES + i];
    entry->order = cb_spmm_order(i);
    if (!s) {
      entry->baseline = *cb_spmm_get(work->spmm, i);
      continue;
    }
    snprintf(entry->baseline.name, sizeof entry->baseline.name, "spmm-alg%d", 1 + i % 3);
    snprintf(entry->baseline.reason, sizeof entry->baseline.reason, "%.*s", (int)sizeof entry->baseline.reason - 1,
             diag.message);
  }
}

static enum cb_status race(struct work *work, struct cb_many_result *result, struct cb_diag *diag) {
  struct cb_competitor competitors[CB_MANY_ENTRIES];
  struct call calls[CB_MANY_ENTRIES];
  int count = 0;
  enum cb_status s = CB_OK;
  list_own(result);
  list_baselines(result, work);
  for (int i = 0; i < CB_MANY_ENTRIES && !s; i++) {
    struct cb_many_entry *entry = &result->entries[i];
    struct cb_diag refusal = {0};
    if (!entry->baseline.applies) continue;
    calls[i] = (struct call){work, i};
    s = check(work, &calls[i], entry, &refusal);
    if (s && i < CB_MANY_BASELINES) return cb_fail(diag, s, "%s", refusal.message);
    entry->baseline.applies = !s;
    if (s)
      snprintf(entry->baseline.reason, sizeof entry->baseline.reason, "%.*s", (int)sizeof entry->baseline.reason - 1,
               refusal.message);
    else competitors[count++] = (struct cb_competitor){.enqueue = enqueue, .user = &calls[i], .timing = &entry->timing};
    s = CB_OK;
  }
  if (!result->rows) return CB_OK;
  return cb_bench_time(work->bench, competitors, count, diag);
}

static void derive(struct cb_many_result *result, const struct cb_bench *bench) {
  double best = 0;
  for (int i = CB_MANY_BASELINES; i < CB_MANY_ENTRIES; i++) {
    const struct cb_many_entry *entry = &result->entries[i];
    if (!entry->baseline.applies || entry->wrong || !(entry->timing.us > 0)) continue;
    if (best == 0 || entry->timing.us < best) best = entry->timing.us;
  }
  if (bench->ceilings.read_gb_per_s > 0)
    result->bound_us = 1e-3 * (double)result->moved_bytes / bench->ceilings.read_gb_per_s;
  for (int order = 0; order < CB_DENSE_ORDERS; order++)
    if (result->entries[order].timing.us > 0) result->speed_up[order] = best / result->entries[order].timing.us;
}

static enum cb_status check_memory(const struct work *work, const struct cb_options *options, struct cb_diag *diag) {
  const uint64_t length = (uint64_t)(work->csr->rows + work->csr->cols) * (uint64_t)work->vectors;
  const uint64_t size = cb_type_size(cb_precision_types((enum cb_precision)options->type).vector);
  const enum cb_status s = cb_device_check_room(work->bench->device, 2 * size * length, "X and Y in both orders", diag);
  return s ? s : cb_available_check(2 * size * length + 24 * (uint64_t)work->csr->rows, "X and Y", diag);
}

enum cb_status cb_bench_many(struct cb_many_result *result, struct cb_bench *bench, const struct cb_csr *csr,
                             const struct cb_options *options, struct cb_diag *diag) {
  struct work work = {.bench = bench, .csr = csr, .vectors = (int)options->vectors};
  *result = (struct cb_many_result){0};
  enum cb_status s = check_memory(&work, options, diag);
  if (!s) s = make_operator(&work, result, options, diag);
  if (!s) s = make_vectors(&work, diag);
  if (!s) s = expect(&work, result, diag);
  if (!s) s = race(&work, result, diag);
  if (!s) derive(result, bench);
  cb_spmm_close(work.spmm);
  cb_operator_free(work.op);
  for (int order = 0; order < CB_DENSE_ORDERS; order++) {
    cb_device_free(bench->device, work.x[order]);
    cb_device_free(bench->device, work.y[order]);
  }
  for (int v = 0; v < work.vectors && work.expected; v++) cb_expected_release(&work.expected[v]);
  cb_free(work.expected);
  return s;
}

void cb_many_result_release(struct cb_many_result *result) {
  cb_free(result->plan);
  *result = (struct cb_many_result){0};
}
