// SPDX-License-Identifier: Apache-2.0
/* Batches of the public interface: see cbgen_batch_create. */
#include "runtime/api/compile.h"

#include "base/integers.h"
#include "base/memory.h"
#include "codegen/program/form.h"
#include "runtime/cuda/ranges.h"
#include "runtime/operator/matrix_parts.h"
#include "runtime/solver/batch.h"

#include <string.h>

struct cbgen_batch {
  struct cb_session *session;
  struct cb_batch *batch;
  const struct cb_program *program;
  cbgen_batch_options options;
  int resident; /* vectors lie in shared memory; */
  int is_free;  /* or whether they shall is the library's choice */
  enum cb_type type;
  void *stream; /* of the last solutions */
  int has_solved;
  struct cb_diag diag;
};

/* ---- what is asked for */

static enum cb_status check_options(const cbgen_batch_options *options, enum cb_type type, struct cb_diag *diag) {
  if (options->systems < 1 || options->systems > INT32_MAX)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'systems' is %lld; it is 1 to 2^31 - 1", (long long)options->systems);
  const enum cb_status s = cb_check_tolerances(options->relative_tolerance, options->absolute_tolerance, diag);
  if (s) return s;
  if (options->max_iterations < 0)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'max_iterations' is %d; it is 0 (10 times the rows) or more",
                   options->max_iterations);
  if ((uintptr_t)options->diagonals % cb_type_size(type) || (uintptr_t)options->outcomes % 8)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'diagonals' or 'outcomes' is not aligned to its elements");
  return CB_OK;
}

static enum cb_status take_form(struct cbgen_batch *batch, struct cb_diag *diag) {
  const char *name = batch->options.program_form;
  struct cb_program_form form = {.kind = CB_PROGRAM_BLOCK};
  if (name && (!cb_program_form_find(&form, name) || form.kind != CB_PROGRAM_BLOCK || form.in_steps))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'program_form' is '%.60s'; batches have block and block+resident", name);
  batch->resident = form.resident;
  batch->is_free = !name;
  batch->options.program_form = NULL; /* the caller's text need not live on */
  return CB_OK;
}

static void set_usual(struct cbgen_batch *batch, int64_t rows) {
  cbgen_batch_options *options = &batch->options;
  if (options->relative_tolerance == 0 && options->absolute_tolerance == 0)
    options->relative_tolerance = batch->type == CB_F32 ? 1e-5 : 1e-8;
  if (!options->max_iterations) options->max_iterations = rows < INT32_MAX / 10 ? (int)(10 * rows) : INT32_MAX;
}

static enum cb_status take_options(struct cbgen_batch *batch, const struct cb_request *request, const char *method,
                                   const cbgen_batch_options *asked, struct cb_diag *diag) {
  const struct cb_types types = cb_precision_types((enum cb_precision)request->options.type);
  batch->type = types.vector;
  if ((types.vector != CB_F64 && types.vector != CB_F32) || types.sum != types.vector)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "batches take type f64 or f32");
  const size_t least = offsetof(cbgen_batch_options, program_form);
  enum cb_status s = cb_take_struct(&batch->options, sizeof batch->options, least, asked, "cbgen_batch_options", diag);
  if (!s) s = check_options(&batch->options, batch->type, diag);
  if (!s) s = take_form(batch, diag);
  if (s) return s;
  batch->program = strcmp(method, "cg") && strcmp(method, "bicgstab")
                       ? NULL
                       : cb_program_find(method, batch->options.diagonals ? CB_DIAGONAL : CB_PLAIN);
  if (!batch->program)
    return cb_fail(diag, CB_ERR_ARGUMENT, "there is no method '%.60s' for batches; there are cg and bicgstab", method);
  set_usual(batch, request->view.rows);
  return CB_OK;
}

/* ---- the pattern and the kernel */

/* As ints from 0. */
static int32_t *narrowed(const struct cb_view *view, int64_t count,
                         int64_t (*number)(const struct cb_view *, int64_t)) {
  int32_t *result = cb_alloc((size_t)count + 1, sizeof *result);
  for (int64_t i = 0; i < count && result; i++) result[i] = (int32_t)number(view, i);
  return result;
}

static enum cb_status load(struct cbgen_batch *batch, const struct cb_view *view, const struct cb_compiled *compiled,
                           const struct cb_program_shape *shape, struct cb_diag *diag) {
  int32_t *row_ptr = narrowed(view, view->rows + 1, cb_view_row);
  int32_t *col_idx = narrowed(view, view->nnz, cb_view_col);
  const struct cb_batch_parts parts = {.device = batch->session->device,
                                       .program = batch->program,
                                       .cubin = compiled->cubin,
                                       .shape = *shape,
                                       .systems = batch->options.systems,
                                       .rows = view->rows,
                                       .nnz = view->nnz,
                                       .type = batch->type,
                                       .row_ptr = row_ptr,
                                       .col_idx = col_idx};
  enum cb_status s = row_ptr && col_idx ? cb_device_enter(batch->session->device, diag)
                                        : cb_fail_memory(diag, "a pattern", (uint64_t)view->nnz * sizeof *col_idx);
  if (!s) {
    s = cb_batch_load(&batch->batch, &parts, diag);
    cb_device_leave(batch->session->device);
  }
  cb_free(row_ptr);
  cb_free(col_idx);
  return s;
}

static int64_t longest_row(const struct cb_view *view) {
  int64_t longest = 0;
  for (int64_t row = 0; row < view->rows; row++)
    longest = cb_larger(longest, cb_view_row(view, row + 1) - cb_view_row(view, row));
  return longest;
}

/* Of the library's choice vectors lie in shared memory where that has room for all thread blocks that share a
 * multiprocessor and keep the matrix; else for SHARES of them: 1000 systems of a thousand rows took 2.4 ms so on an
 * H200, else 3.6. */
static enum cb_status make_text(const struct cbgen_batch *batch, const struct cb_view *view, struct cb_text *text,
                                struct cb_program_shape *shape, struct cb_diag *diag) {
  enum { SHARES = 4 };
  const struct cb_target *target = &batch->session->device->target;
  struct cb_batch_request asked = {.program = batch->program,
                                   .rows = view->rows,
                                   .nnz = view->nnz,
                                   .longest = longest_row(view),
                                   .type = batch->type,
                                   .resident = batch->resident,
                                   .room = target->shared_per_block};
  if (!batch->is_free) return cb_batch_text(text, &asked, shape, diag);
  const int shares = cb_batch_shares(&asked);
  asked.resident = 1;
  asked.room = target->shared_per_sm / (shares ? shares : SHARES);
  const enum cb_status s = cb_batch_text(text, &asked, shape, diag);
  if (s != CB_ERR_LIMIT && s != CB_ERR_UNSUPPORTED) return s;
  diag->message[0] = 0;
  cb_text_release(text);
  asked.resident = 0;
  return cb_batch_text(text, &asked, shape, diag);
}

static enum cb_status build(struct cbgen_batch *batch, struct cb_request *request, struct cb_diag *diag) {
  const struct cb_view *view = &request->host;
  struct cb_compiled compiled = {0};
  struct cb_text text = {0};
  struct cb_program_shape shape = {0};
  int canonical;
  enum cb_status s = cb_request_host(request, diag);
  if (!s) s = cb_view_check(view, &canonical, diag);
  if (!s && (view->rows != view->cols || !view->rows))
    s = cb_fail(diag, CB_ERR_ARGUMENT, "batches take square matrices with rows; this one has %lld rows and %lld columns",
                (long long)view->rows, (long long)view->cols);
  if (!s) s = make_text(batch, view, &text, &shape, diag);
  if (!s) s = cb_solver_binary(batch->session, cb_context_cache(request->context), &text, 0, &compiled, diag);
  if (!s) s = load(batch, view, &compiled, &shape, diag);
  cb_compiled_release(&compiled);
  cb_text_release(&text);
  return s;
}

/* ---- life */

static enum cb_status create(struct cbgen_batch *batch, cbgen_context *context, const cbgen_csr *pattern,
                             const char *method, const cbgen_batch_options *options, struct cb_diag *diag) {
  const cbgen_request mutable = {.struct_size = sizeof mutable, .values = CBGEN_VALUES_MUTABLE};
  struct cb_request *request = cb_calloc(1, sizeof *request);
  if (!request) return cb_fail_memory(diag, "a batch", sizeof *request);
  request->context = context;
  enum cb_status s = cb_view_take_csr(&request->view, pattern, diag);
  if (!s) s = cb_request_take(request, &mutable, diag);
  if (!s) s = take_options(batch, request, method, options, diag);
  if (!s) batch->session = cb_session_hold(request->session);
  if (!s) s = build(batch, request, diag);
  cb_request_release(request);
  cb_free(request);
  return s;
}

cbgen_status cbgen_batch_create(cbgen_context *context, const cbgen_csr *pattern, const char *method,
                                const cbgen_batch_options *options, cbgen_batch **out) {
  CB_STANDARD_NUMERICS;
  CB_RANGE("cbgen: make a batch");
  if (out) *out = NULL;
  if (!context) return CBGEN_ERROR_ARGUMENT;
  struct cb_diag *diag = &context->diag;
  if (!out || !method || !options || !pattern)
    return (cbgen_status)cb_fail(diag, CB_ERR_ARGUMENT, "no pattern, method or options, or no place for the batch, was given");
  struct cbgen_batch *batch = cb_calloc(1, sizeof *batch);
  if (!batch) return (cbgen_status)cb_fail_memory(diag, "a batch", sizeof *batch);
  const enum cb_status s = create(batch, context, pattern, method, options, diag);
  if (s) cbgen_batch_free(batch);
  else *out = batch;
  return (cbgen_status)s;
}

void cbgen_batch_free(cbgen_batch *batch) {
  if (!batch) return;
  cb_batch_free(batch->batch);
  cb_session_release(batch->session);
  cb_free(batch);
}

const char *cbgen_batch_message(const cbgen_batch *batch) { return batch ? batch->diag.message : ""; }

/* ---- solving */

static enum cb_status check_arrays(const struct cbgen_batch *batch, const void *values, const void *b, const void *x,
                                   struct cb_diag *diag) {
  if (!values || !b || !x) return cb_fail(diag, CB_ERR_ARGUMENT, "'values', 'b' or 'x' of the batch is NULL");
  if (b == x) return cb_fail(diag, CB_ERR_ARGUMENT, "'b' and 'x' of the batch are the same");
  if (((uintptr_t)values | (uintptr_t)b | (uintptr_t)x) % cb_type_size(batch->type))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'values', 'b' or 'x' of the batch is not aligned to its elements");
  return CB_OK;
}

/* With the context current, if it is not already. */
static enum cb_status run(struct cbgen_batch *batch, const struct cb_batch_solve *solve, struct cb_diag *diag) {
  const struct cb_device *device = batch->session->device;
  int entered;
  enum cb_status s = cb_device_enter_once(device, &entered, diag);
  if (s) return s;
  s = cb_batch_run(batch->batch, solve, diag);
  if (entered) cb_device_leave(device);
  return s;
}

cbgen_status cbgen_solve_batch(cbgen_batch *batch, const void *values, const void *b, void *x, void *stream) {
  CB_RANGE("cbgen: solve a batch");
  if (!batch) return CBGEN_ERROR_ARGUMENT;
  const cbgen_batch_options *options = &batch->options;
  const struct cb_batch_solve solve = {
      .values = (cb_device_ptr)(uintptr_t)values,
      .given = {(cb_device_ptr)(uintptr_t)b, (cb_device_ptr)(uintptr_t)x, (cb_device_ptr)(uintptr_t)options->diagonals},
      .parameters = {options->relative_tolerance, options->absolute_tolerance},
      .most = options->max_iterations,
      .outcomes = (cb_device_ptr)(uintptr_t)options->outcomes,
      .stream = stream};
  enum cb_status s = check_arrays(batch, values, b, x, &batch->diag);
  if (!s) s = run(batch, &solve, &batch->diag);
  if (s) return (cbgen_status)s;
  batch->stream = stream;
  batch->has_solved = 1;
  return CBGEN_OK;
}

static enum cb_status fetch(const struct cbgen_batch *batch, cbgen_outcome *outcomes, struct cb_diag *diag) {
  const struct cb_device *device = batch->session->device;
  const struct cb_driver *driver = device->driver;
  const cb_device_ptr there = batch->options.outcomes ? (cb_device_ptr)(uintptr_t)batch->options.outcomes
                                                      : cb_batch_outcomes(batch->batch);
  enum cb_status s = cb_device_enter(device, diag);
  if (s) return s;
  s = cb_driver_check(driver, driver->call.stream_synchronize(batch->stream), diag, "wait for solutions");
  if (!s)
    s = cb_device_download(device, outcomes, there, (size_t)batch->options.systems * sizeof *outcomes, "outcomes", diag);
  cb_device_leave(device);
  return s;
}

cbgen_status cbgen_batch_outcomes(cbgen_batch *batch, cbgen_outcome *outcomes) {
  if (!batch) return CBGEN_ERROR_ARGUMENT;
  if (!outcomes)
    return (cbgen_status)cb_fail(&batch->diag, CB_ERR_ARGUMENT, "no place for the outcomes was given");
  memset(outcomes, 0, (size_t)batch->options.systems * sizeof *outcomes);
  return batch->has_solved ? (cbgen_status)fetch(batch, outcomes, &batch->diag) : CBGEN_OK;
}
