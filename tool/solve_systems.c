// SPDX-License-Identifier: Apache-2.0
/* cbgen solve --systems: many systems of one pattern at once on the GPU, each by a thread block. */
#include "tool/solve.h"

#include "tool/job.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "frontend/systems.h"
#include "runtime/api/api.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SYSTEMS = 10000000 };
enum { VALUES, B, X, DIAGONALS, ARRAYS };

struct many {
  struct cb_job job;
  const char *method;
  struct cb_systems systems;
  double *norms, *x; /* of each right side; of all systems */
  int32_t *row_ptr;
  cbgen_context *context;
  cbgen_batch *batch;
  const struct cb_device *device;
  enum cb_type type;
  cb_device_ptr there[ARRAYS];
  cbgen_outcome *outcomes;
  double seconds;
};

static void *at(const struct many *many, int array) { return (void *)(uintptr_t)many->there[array]; }

enum cb_status cb_check_systems_call(const struct cb_call *call, struct cb_diag *diag) {
  static const char *const without[] = {"program-form", "parameter", "history"};
  if (!call->systems) return CB_OK;
  for (size_t i = 0; i < sizeof without / sizeof *without; i++)
    if (cb_call_has(call, without[i]))
      return cb_fail(diag, CB_ERR_ARGUMENT, "'--%s' has no effect on many systems; leave it or --systems out", without[i]);
  if (call->preconditioner == CB_BLOCK_JACOBI)
    return cb_fail(diag, CB_ERR_ARGUMENT, "many systems take '--preconditioner=jacobi' or none, not blocks");
  if (call->method && strcmp(call->method, "cg") != 0 && strcmp(call->method, "bicgstab") != 0)
    return cb_fail(diag, CB_ERR_ARGUMENT, "many systems take '--method=cg' or bicgstab, not '%s'", call->method);
  return CB_OK;
}

/* ---- the systems */

/* System s: the matrix's values, times 1 + s / 8192, and its diagonal by as much again. */
static enum cb_status make_values(struct many *many, int64_t count, struct cb_diag *diag) {
  const struct cb_csr *csr = &many->job.csr;
  many->systems.count = count;
  many->systems.values = cb_alloc((size_t)count * (size_t)csr->nnz + 1, sizeof(double));
  if (!many->systems.values) return cb_fail_memory(diag, "values of systems", (uint64_t)(count * csr->nnz));
  for (int64_t s = 0; s < count; s++) {
    const double factor = 1 + (double)s / 8192;
    for (int64_t row = 0; row < csr->rows; row++)
      for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
        many->systems.values[s * csr->nnz + k] = csr->values[k] * (csr->col_idx[k] == row ? factor * factor : factor);
  }
  return CB_OK;
}

/* A number of them, or a file. */
static enum cb_status take_systems(struct many *many, const struct cb_call *call, struct cb_diag *diag) {
  const struct cb_csr *csr = &many->job.csr;
  char *end;
  const long long count = strtoll(call->systems, &end, 10);
  if (*end) return cb_systems_read(&many->systems, call->systems, csr->nnz, csr->rows, diag);
  if (count < 1 || count > MOST_SYSTEMS)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'--systems=%s': it takes 1 to %d, or a .npz file", call->systems, MOST_SYSTEMS);
  return make_values(many, count, diag);
}

static enum cb_status take_right_sides(struct many *many, const struct cb_call *call, struct cb_diag *diag) {
  const int64_t rows = many->job.csr.rows, count = many->systems.count;
  const int has_own = many->systems.b != NULL;
  double unused;
  if (has_own && call->rhs)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' has right sides: leave '--rhs' out", call->systems);
  if (!has_own) many->systems.b = cb_alloc((size_t)(count * rows) + 1, sizeof(double));
  many->norms = cb_calloc((size_t)count, sizeof *many->norms);
  if (!many->systems.b || !many->norms) return cb_fail_memory(diag, "right sides", (uint64_t)(count * rows));
  double *const b = many->systems.b;
  enum cb_status s = has_own ? CB_OK : cb_right_side(b, &unused, &many->job.csr, call->rhs, diag);
  for (int64_t i = rows; i < count * rows && !has_own; i++) b[i] = b[i - rows];
  for (int64_t i = 0; i < count && !s; i++) {
    for (int64_t row = 0; row < rows; row++) many->norms[i] += b[i * rows + row] * b[i * rows + row];
    many->norms[i] = sqrt(many->norms[i]);
  }
  return s;
}

static enum cb_status read_systems(struct many *many, const struct cb_call *call, struct cb_diag *diag) {
  enum cb_status s = cb_job_read(&many->job, call, diag);
  if (!s && many->job.csr.is_complex)
    s = cb_fail(diag, CB_ERR_UNSUPPORTED, "'--systems' takes real systems; '%s' is complex", call->file);
  if (s) return s;
  s = take_systems(many, call, diag);
  if (!s) s = take_right_sides(many, call, diag);
  if (s) return s;
  const size_t numbers = (size_t)(many->systems.count * many->job.csr.rows);
  many->x = cb_alloc(numbers + 1, sizeof *many->x);
  many->outcomes = cb_calloc((size_t)many->systems.count, sizeof *many->outcomes);
  return many->x && many->outcomes ? CB_OK : cb_fail_memory(diag, "solutions", numbers);
}

/* ---- the batch */

/* To a new place, or the one that it has. With the context current. */
static enum cb_status upload(struct many *many, int array, const double *numbers, int64_t count, struct cb_diag *diag) {
  const size_t bytes = ((size_t)count + 1) * cb_type_size(many->type);
  enum cb_status s = CB_OK;
  if (!many->there[array])
    s = cb_device_alloc(many->device, &many->there[array], bytes, "numbers of systems", diag);
  return s ? s : cb_put_numbers(many->device, many->there[array], many->type, numbers, count, diag);
}

static enum cb_status put_diagonals(struct many *many, struct cb_diag *diag) {
  const struct cb_csr *csr = &many->job.csr;
  const int64_t rows = csr->rows, count = many->systems.count;
  double *diagonals = cb_calloc((size_t)(count * rows) + 1, sizeof *diagonals);
  if (!diagonals) return cb_fail_memory(diag, "diagonals", (uint64_t)(count * rows));
  for (int64_t s = 0; s < count; s++)
    for (int64_t row = 0; row < rows; row++)
      for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
        if (csr->col_idx[k] == row) diagonals[s * rows + row] = many->systems.values[s * csr->nnz + k];
  const enum cb_status s = upload(many, DIAGONALS, diagonals, count * rows, diag);
  cb_free(diagonals);
  return s;
}

static enum cb_status put_arrays(struct many *many, const struct cb_call *call, struct cb_diag *diag) {
  const int64_t numbers = many->systems.count * many->job.csr.rows;
  enum cb_status s = cb_device_enter(many->device, diag);
  if (s) return s;
  s = upload(many, VALUES, many->systems.values, many->systems.count * many->job.csr.nnz, diag);
  if (!s) s = upload(many, B, many->systems.b, numbers, diag);
  if (!s) s = upload(many, X, NULL, numbers, diag);
  if (!s && call->preconditioner == CB_JACOBI) s = put_diagonals(many, diag);
  cb_device_leave(many->device);
  return s;
}

static enum cb_status make_batch(struct many *many, const struct cb_call *call, struct cb_diag *diag) {
  const struct cb_types types = cb_precision_types((enum cb_precision)call->options.type);
  struct cb_session *session;
  cbgen_csr view;
  many->type = types.vector == CB_F32 ? CB_F32 : CB_F64;
  enum cb_status s = cb_make_view(&view, &many->row_ptr, &many->job.csr, diag);
  if (!s) s = cb_open_context(&many->context, call, diag);
  if (s) return s;
  cbgen_context *context = many->context;
  s = cb_check_call((cbgen_status)cb_context_session(context, &session), cbgen_message(context), diag);
  if (s) return s;
  many->device = session->device;
  s = put_arrays(many, call, diag);
  const cbgen_batch_options options = {.struct_size = sizeof options,
                                       .systems = many->systems.count,
                                       .relative_tolerance = call->tolerance,
                                       .max_iterations = (int)call->iterations,
                                       .diagonals = at(many, DIAGONALS)};
  if (s) return s;
  return cb_check_call(cbgen_batch_create(context, &view, many->method, &options, &many->batch), cbgen_message(context),
                       diag);
}

/* ---- solving */

static enum cb_status run_once(void *user, double *seconds, struct cb_diag *diag) {
  struct many *many = user;
  enum cb_status s = upload(many, X, NULL, many->systems.count * many->job.csr.rows, diag);
  if (!s) s = cb_device_wait(many->device, "x", diag);
  const double start = cb_seconds();
  if (!s)
    s = cb_check_call(cbgen_solve_batch(many->batch, at(many, VALUES), at(many, B), at(many, X), NULL),
                      cbgen_batch_message(many->batch), diag);
  if (!s) s = cb_device_wait(many->device, "solutions", diag);
  *seconds = cb_seconds() - start;
  return s;
}

static enum cb_status solve(struct many *many, const struct cb_call *call, struct cb_diag *diag) {
  enum cb_status s = cb_device_enter(many->device, diag);
  if (s) return s;
  s = cb_time_runs(call, run_once, many, &many->seconds, diag);
  if (!s)
    s = cb_take_numbers(many->device, many->x, many->type, many->there[X],
                        many->systems.count * many->job.csr.rows, diag);
  cb_device_leave(many->device);
  return s ? s
           : cb_check_call(cbgen_batch_outcomes(many->batch, many->outcomes), cbgen_batch_message(many->batch), diag);
}

/* ---- the report */

static double relative(const struct many *many, int64_t system, double norm) {
  return many->norms[system] > 0 ? norm / many->norms[system] : norm;
}

struct summary {
  int64_t converged, first_failed, worst; /* -1: none failed */
  int least, most;                        /* iterations */
  double sum;
};

static struct summary summary_of(const struct many *many) {
  struct summary summary = {.first_failed = -1, .least = many->outcomes[0].iterations};
  for (int64_t i = 0; i < many->systems.count; i++) {
    const cbgen_outcome *outcome = &many->outcomes[i];
    const double residual = relative(many, i, outcome->true_residual);
    const double worst = relative(many, summary.worst, many->outcomes[summary.worst].true_residual);
    if (outcome->reason == CBGEN_REASON_CONVERGED) summary.converged++;
    else if (summary.first_failed < 0) summary.first_failed = i;
    if (!(residual <= worst)) summary.worst = i;
    if (outcome->iterations < summary.least) summary.least = outcome->iterations;
    if (outcome->iterations > summary.most) summary.most = outcome->iterations;
    summary.sum += outcome->iterations;
  }
  return summary;
}

static void add_text(struct cb_text *text, const struct many *many) {
  const struct summary summary = summary_of(many);
  const double count = (double)many->systems.count;
  cb_text_add(text, "%lld systems, %lld converged, %.3f ms (%.2f us each)\n", (long long)many->systems.count,
              (long long)summary.converged, 1e3 * many->seconds, 1e6 * many->seconds / count);
  cb_text_add(text, "iterations %d to %d, %.1f in the mean\n", summary.least, summary.most, summary.sum / count);
  cb_text_add(text, "residual  %.3e of the right side's norm at most, computed from x (system %lld)\n",
              relative(many, summary.worst, many->outcomes[summary.worst].true_residual), (long long)summary.worst);
}

static enum cb_status add_json(struct cb_text *text, const struct many *many, struct cb_diag *diag) {
  const struct summary summary = summary_of(many);
  int failed = 0;
  struct cb_json root = cb_json_object(&failed);
  const struct cb_json outcomes = cb_json_array(&failed);
  cb_json_set_text(root, "matrix", many->job.name);
  cb_json_set_text(root, "method", many->method);
  cb_json_set_integer(root, "systems", many->systems.count);
  cb_json_set_integer(root, "converged", summary.converged);
  cb_json_set_real(root, "seconds", many->seconds);
  for (int64_t i = 0; i < many->systems.count; i++) {
    const cbgen_outcome *outcome = &many->outcomes[i];
    struct cb_json each = cb_json_object(&failed);
    cb_json_set_text(each, "reason", cb_reason_words(outcome->reason));
    cb_json_set_integer(each, "iterations", outcome->iterations);
    cb_json_set_real(each, "residual", relative(many, i, outcome->residual));
    cb_json_set_real(each, "true_residual", relative(many, i, outcome->true_residual));
    cb_json_append(outcomes, each.json);
  }
  cb_json_set(root, "outcomes", outcomes.json);
  const enum cb_status s = cb_json_write(text, root, JSON_INDENT(2), "solutions", diag);
  cb_text_add_string(text, "\n");
  return s;
}

static enum cb_status report(const struct many *many, const struct cb_call *call, struct cb_diag *diag) {
  const struct summary summary = summary_of(many);
  struct cb_text text = {0};
  enum cb_status s = CB_OK;
  if (call->json) s = add_json(&text, many, diag);
  else add_text(&text, many);
  if (!s && call->output)
    s = cb_write_numbers(call, NULL, many->x, many->systems.count * many->job.csr.rows, 1, many->type, diag);
  if (!s && !(call->quiet && !call->json)) s = cb_print(&text, diag);
  cb_text_release(&text);
  if (s || summary.first_failed < 0) return s;
  const cbgen_outcome *first = &many->outcomes[summary.first_failed];
  return cb_fail(diag, CB_ERR_WRONG, "'%s': %lld of %lld systems were not solved, first number %lld: %s after %d iterations",
                 call->file, (long long)(many->systems.count - summary.converged), (long long)many->systems.count,
                 (long long)summary.first_failed, cb_reason_words(first->reason), first->iterations);
}

/* ---- all of it */

static void release(struct many *many) {
  cbgen_batch_free(many->batch);
  cb_free_numbers(many->device, many->there, ARRAYS);
  cbgen_context_destroy(many->context);
  cb_free(many->row_ptr);
  cb_free(many->norms);
  cb_free(many->x);
  cb_free(many->outcomes);
  cb_systems_release(&many->systems);
  cb_job_release(&many->job);
}

enum cb_status cb_solve_systems(const struct cb_call *call, struct cb_diag *diag) {
  struct many many = {.method = call->method ? call->method : "cg"};
  enum cb_status s = read_systems(&many, call, diag);
  cb_progress_stage("compiling a solver of systems of '%s'", call->file);
  if (!s) s = make_batch(&many, call, diag);
  cb_progress_stage("solving systems of '%s'", call->file);
  if (!s) s = solve(&many, call, diag);
  if (!s) s = report(&many, call, diag);
  release(&many);
  return s;
}
