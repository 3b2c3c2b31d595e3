// SPDX-License-Identifier: Apache-2.0
/* cbgen solve: A x = b on the GPU, by a method in one kernel or a few; what it took, and how good x is. */
#include "tool/solve.h"

#include "tool/job.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/real.h"
#include "frontend/number.h"
#include "runtime/api/api.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { USUAL_BLOCK = 4 };

struct solution {
  struct cb_job job;
  int32_t *row_ptr;
  cbgen_context *context;
  cbgen_operator *op;
  cbgen_solver *solver;
  const struct cb_device *device;
  enum cb_type part; /* of a vector's real numbers */
  double *b, *x, *history;
  cb_device_ptr b_there, x_there, diagonal, history_there;
  const char *method;
  int has_diagonal, block_size; /* 0: the diagonal alone */
  double norm; /* of b */
  int most;    /* iterations */
  double seconds;
  cbgen_outcome outcome;
};

/* ---- the right side */

/* A number for each row, of a complex one its parts; all separated by blanks or lines. */
static enum cb_status read_numbers(double *numbers, int64_t rows, int parts, const char *path, struct cb_diag *diag) {
  struct cb_mapping file;
  struct cb_text text = {0};
  const int64_t count = parts * rows;
  int64_t found = 0;
  enum cb_status s = cb_file_map(&file, path, diag);
  if (s) return s;
  cb_text_add_bytes(&text, file.bytes, file.length);
  cb_text_add_string(&text, "\n");
  cb_file_unmap(&file);
  const char *at = cb_text_string(&text), *end = at + text.length;
  if (text.failed) s = cb_fail_memory(diag, path, file.length);
  while (!s && (at += strspn(at, " \t\r\n,"), *at)) {
    double number;
    const char *next = cb_parse_double(at, end, &number);
    if (!next) s = cb_fail(diag, CB_ERR_FORMAT, "'%s': number %lld is none", path, (long long)found + 1);
    else if (found < count) numbers[found] = number;
    found++;
    at = next;
  }
  if (!s && found != count)
    s = cb_fail(diag, CB_ERR_FORMAT, "'%s' has %lld numbers, and the matrix %lld rows%s", path, (long long)found,
                (long long)rows, count > rows ? ", each of two numbers: it is complex" : "");
  cb_text_release(&text);
  return s;
}

int cb_solution_parts(const struct cb_csr *csr) { return csr->is_complex ? 2 : 1; }

enum cb_status cb_right_side(double *b, double *norm, const struct cb_csr *csr, const char *rhs, struct cb_diag *diag) {
  const char *kind = rhs ? rhs : "ones";
  const int is_product = !strcmp(kind, "product"), parts = cb_solution_parts(csr);
  enum cb_status s = CB_OK;
  double square = 0;
  for (int64_t row = 0; row < csr->rows; row++)
    for (int part = 0; part < parts; part++) {
      double *const at = &b[parts * row + part];
      *at = is_product || part ? 0 : 1;
      for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1) && is_product; k++)
        *at += csr->values[parts * k + part];
    }
  if (!is_product && strcmp(kind, "ones") != 0) s = read_numbers(b, csr->rows, parts, kind, diag);
  for (int64_t i = 0; i < parts * csr->rows; i++) square += b[i] * b[i];
  *norm = sqrt(square);
  return s;
}

/* ---- operator and solver */

static int ranks(const struct solution *solution) { return !strcmp(solution->method, "pagerank"); }
static int finds_eigenvalue(const struct solution *solution) { return !strcmp(solution->method, "power"); }

/* Real numbers of a vector. */
static int64_t count_numbers(const struct solution *solution) {
  return cb_solution_parts(&solution->job.csr) * solution->job.csr.rows;
}

/* Of a vector; NULL: zeros. With the context current. */
static enum cb_status upload(const struct solution *solution, cb_device_ptr to, const double *numbers,
                             struct cb_diag *diag) {
  return cb_put_numbers(solution->device, to, solution->part, numbers, count_numbers(solution), diag);
}

/* What the links of each page weigh together: the sums of columns. */
static enum cb_status put_sums(struct solution *solution, struct cb_diag *diag) {
  const struct cb_csr *csr = &solution->job.csr;
  const int parts = cb_solution_parts(csr);
  double *sums = cb_calloc((size_t)(parts * csr->cols) + 1, sizeof *sums);
  if (!sums) return cb_fail_memory(diag, "sums of columns", (uint64_t)csr->cols * sizeof *sums);
  for (int64_t i = 0; i < parts * csr->nnz; i++) sums[parts * csr->col_idx[i / parts] + i % parts] += csr->values[i];
  enum cb_status s = cb_device_enter(solution->device, diag);
  if (!s) {
    s = upload(solution, solution->diagonal, sums, diag);
    cb_device_leave(solution->device);
  }
  cb_free(sums);
  return s;
}

static enum cb_status make_operator(struct solution *solution, const struct cb_call *call, struct cb_diag *diag) {
  const struct cb_csr *csr = &solution->job.csr;
  const cbgen_request request = {
      .struct_size = sizeof request, .specialise = CBGEN_SPECIALISE_NOW, .solver = solution->method};
  cbgen_csr view;
  enum cb_status s = cb_make_view(&view, &solution->row_ptr, csr, diag);
  if (!s) s = cb_open_context(&solution->context, call, diag);
  if (s) return s;
  cbgen_context *context = solution->context;
  view.name = solution->job.name;
  s = cb_check_call(cbgen_compile(context, &view, &request, &solution->op), cbgen_message(context), diag);
  if (s) return s;
  solution->device = solution->op->shared->session->device;
  solution->part = cb_type_of_part(solution->op->shared->image.vector_type);
  const int has_blocks = call->preconditioner == CB_BLOCK_JACOBI && !ranks(solution) && !finds_eigenvalue(solution);
  if (has_blocks) solution->block_size = call->block_size ? (int)call->block_size : USUAL_BLOCK;
  const size_t columns = (size_t)(has_blocks ? solution->block_size : 1);
  const size_t bytes = ((size_t)count_numbers(solution) * columns + 1) * sizeof(double);
  s = cb_device_enter(solution->device, diag);
  if (s) return s;
  s = cb_device_alloc(solution->device, &solution->diagonal, bytes, "the diagonal", diag);
  cb_device_leave(solution->device);
  void *const diagonal = (void *)(uintptr_t)solution->diagonal;
  solution->has_diagonal = ranks(solution) || (call->preconditioner == CB_JACOBI && !finds_eigenvalue(solution));
  if (!s && ranks(solution)) return put_sums(solution, diag);
  if (!s && has_blocks)
    return cb_check_call(cbgen_block_diagonal(context, &view, solution->block_size, diagonal), cbgen_message(context),
                         diag);
  if (!s)
    s = cb_check_call(cbgen_diagonal(context, &view, diagonal), cbgen_message(context), diag);
  return s;
}

static enum cb_status make_solver(struct solution *solution, const struct cb_call *call, struct cb_diag *diag) {
  const int64_t rows = solution->job.csr.rows;
  solution->most = call->iterations ? (int)call->iterations : rows < 1000000 ? (int)(10 * rows) : 10000000;
  const size_t vector = (size_t)count_numbers(solution) * sizeof(double);
  const size_t history = ((size_t)solution->most + 1) * sizeof(double);
  const struct cb_device *device = solution->device;
  solution->history = cb_alloc((size_t)solution->most + 1, sizeof *solution->history);
  if (!solution->history) return cb_fail_memory(diag, "the history", history);
  enum cb_status s = cb_device_enter(device, diag);
  if (s) return s;
  s = cb_device_alloc(device, &solution->b_there, vector, "b", diag);
  if (!s) s = cb_device_alloc(device, &solution->x_there, vector, "x", diag);
  if (!s) s = cb_device_alloc(device, &solution->history_there, history, "the history", diag);
  cb_device_leave(device);
  const cbgen_solver_options options = {
      .struct_size = sizeof options,
      .relative_tolerance = call->tolerance,
      .max_iterations = solution->most,
      .diagonal = solution->has_diagonal ? (void *)(uintptr_t)solution->diagonal : NULL,
      .blocks = solution->block_size ? (void *)(uintptr_t)solution->diagonal : NULL,
      .block_size = solution->block_size,
      .program_form = call->program_form,
      .restart = (int)call->restart,
      .weight = call->weight,
      .damping = call->damping,
      .lowest = call->lowest,
      .highest = call->highest,
      .history = (double *)(uintptr_t)solution->history_there};
  if (s) return s;
  return cb_check_call(cbgen_solver_create(solution->op, solution->method, &options, &solution->solver),
                       cbgen_operator_message(solution->op), diag);
}

/* ---- solving */

static enum cb_status run_once(void *user, double *seconds, struct cb_diag *diag) {
  struct solution *solution = user;
  const int from_b = ranks(solution) || finds_eigenvalue(solution); /* 0 would lead nowhere */
  enum cb_status s = upload(solution, solution->x_there, from_b ? solution->b : NULL, diag);
  if (!s) s = cb_device_wait(solution->device, "x", diag);
  if (s) return s;
  void *const b = (void *)(uintptr_t)solution->b_there, *const x = (void *)(uintptr_t)solution->x_there;
  const double start = cb_seconds();
  s = cb_check_call(cbgen_solve(solution->solver, b, x, NULL), cbgen_solver_message(solution->solver), diag);
  if (!s)
    s = cb_check_call(cbgen_solver_outcome(solution->solver, &solution->outcome),
                      cbgen_solver_message(solution->solver), diag);
  *seconds = cb_seconds() - start;
  return s;
}

static enum cb_status solve(struct solution *solution, const struct cb_call *call, struct cb_diag *diag) {
  enum cb_status s = cb_device_enter(solution->device, diag);
  if (s) return s;
  s = upload(solution, solution->b_there, solution->b, diag);
  if (!s) s = cb_time_runs(call, run_once, solution, &solution->seconds, diag);
  if (!s)
    s = cb_take_numbers(solution->device, solution->x, solution->part, solution->x_there, count_numbers(solution),
                        diag);
  if (!s)
    s = cb_device_download(solution->device, solution->history, solution->history_there,
                           ((size_t)solution->outcome.iterations + 1) * sizeof(double), "the history", diag);
  cb_device_leave(solution->device);
  return s;
}

/* ---- the report */

const char *cb_reason_words(int reason) {
  static const char *const words[] = {[CBGEN_REASON_NONE] = "nothing was solved",
                                      [CBGEN_REASON_CONVERGED] = "converged",
                                      [CBGEN_REASON_ITERATIONS] = "no convergence",
                                      [CBGEN_REASON_BREAKDOWN] = "breakdown",
                                      [CBGEN_REASON_NOT_A_NUMBER] = "not a number",
                                      [CBGEN_REASON_STOPPED] = "stopped"};
  return words[reason];
}

static const char *reason_of(const struct solution *solution) { return cb_reason_words(solution->outcome.reason); }

static double relative(const struct solution *solution, double norm) {
  const double value = fabs(solution->outcome.value);
  const double whole = ranks(solution) ? 1 : finds_eigenvalue(solution) ? value : solution->norm;
  return whole > 0 ? norm / whole : norm;
}

static void add_text(struct cb_text *text, const struct solution *solution, const struct cb_call *call) {
  const cbgen_outcome *outcome = &solution->outcome;
  for (int i = 0; i <= outcome->iterations && cb_call_has(call, "history"); i++)
    cb_text_add(text, "%6d  %.6e\n", i, relative(solution, sqrt(solution->history[i])));
  cb_text_add(text, "%s after %d iterations, %.3f ms", reason_of(solution), outcome->iterations, 1e3 * solution->seconds);
  if (outcome->iterations) cb_text_add(text, " (%.2f us each)", 1e6 * solution->seconds / outcome->iterations);
  const char *of = ranks(solution)              ? "changed by an iteration"
                   : finds_eigenvalue(solution) ? "of the eigenvalue"
                                                : "of the right side's norm";
  cb_text_add(text, "\nresidual  %.3e %s, by the recurrence; %.3e computed from x\n",
              relative(solution, outcome->residual), of, relative(solution, outcome->true_residual));
  if (finds_eigenvalue(solution)) cb_text_add(text, "value     %.16g\n", outcome->value);
  cb_text_add(text, "form      %s\nplan      %s\n", cbgen_solver_form(solution->solver), cbgen_operator_plan(solution->op));
}

static enum cb_status add_json(struct cb_text *text, const struct solution *solution, struct cb_diag *diag) {
  const cbgen_outcome *outcome = &solution->outcome;
  int failed = 0;
  struct cb_json root = cb_json_object(&failed);
  const struct cb_json history = cb_json_array(&failed);
  cb_json_set_text(root, "matrix", solution->job.name);
  cb_json_set_text(root, "method", solution->method);
  cb_json_set_text(root, "reason", reason_of(solution));
  cb_json_set_integer(root, "iterations", outcome->iterations);
  cb_json_set_real(root, "seconds", solution->seconds);
  cb_json_set_real(root, "residual", relative(solution, outcome->residual));
  cb_json_set_real(root, "true_residual", relative(solution, outcome->true_residual));
  if (finds_eigenvalue(solution)) cb_json_set_real(root, "value", outcome->value);
  cb_json_set_text(root, "form", cbgen_solver_form(solution->solver));
  cb_json_set_text(root, "plan", cbgen_operator_plan(solution->op));
  for (int i = 0; i <= outcome->iterations; i++) {
    const double residual = relative(solution, sqrt(solution->history[i]));
    cb_json_append(history, cb_real_is_finite(residual) ? json_real(residual) : json_null());
  }
  cb_json_set(root, "history", history.json);
  const enum cb_status s = cb_json_write(text, root, JSON_INDENT(2), "a solution", diag);
  cb_text_add_string(text, "\n");
  return s;
}

static enum cb_status report(const struct solution *solution, const struct cb_call *call, struct cb_diag *diag) {
  struct cb_text text = {0};
  enum cb_status s = CB_OK;
  if (call->json) s = add_json(&text, solution, diag);
  else add_text(&text, solution, call);
  if (!s && call->output)
    s = cb_write_numbers(call, NULL, solution->x, solution->job.csr.rows, cb_solution_parts(&solution->job.csr),
                         solution->part, diag);
  if (!s && !(call->quiet && !call->json)) s = cb_print(&text, diag);
  cb_text_release(&text);
  if (s || solution->outcome.reason == CBGEN_REASON_CONVERGED) return s;
  return cb_fail(diag, CB_ERR_WRONG, "'%s' was not solved: %s after %d iterations, residual %.3e", call->file,
                 reason_of(solution), solution->outcome.iterations,
                 relative(solution, solution->outcome.true_residual));
}

/* ---- the verb */

static void release(struct solution *solution) {
  cbgen_solver_free(solution->solver);
  const cb_device_ptr there[] = {solution->b_there, solution->x_there, solution->diagonal, solution->history_there};
  cb_free_numbers(solution->device, there, (int)(sizeof there / sizeof *there));
  cbgen_operator_free(solution->op);
  cbgen_context_destroy(solution->context);
  cb_free(solution->row_ptr);
  cb_free(solution->b);
  cb_free(solution->x);
  cb_free(solution->history);
  cb_job_release(&solution->job);
}

static enum cb_status read_system(struct solution *solution, const struct cb_call *call, struct cb_diag *diag) {
  enum cb_status s = cb_job_read(&solution->job, call, diag);
  if (s) return s;
  const size_t numbers = (size_t)count_numbers(solution);
  solution->b = cb_alloc(numbers + 1, sizeof *solution->b);
  solution->x = cb_alloc(numbers + 1, sizeof *solution->x);
  if (!solution->b || !solution->x) return cb_fail_memory(diag, "vectors", numbers);
  return cb_right_side(solution->b, &solution->norm, &solution->job.csr, call->rhs, diag);
}

static enum cb_status run_solve(const struct cb_call *call, struct cb_diag *diag) {
  if (call->systems) return cb_solve_systems(call, diag);
  struct solution solution = {.method = call->method ? call->method : "cg"};
  enum cb_status s = read_system(&solution, call, diag);
  cb_progress_stage("compiling a solver of '%s'", call->file);
  if (!s) s = make_operator(&solution, call, diag);
  if (!s) s = make_solver(&solution, call, diag);
  cb_progress_stage("solving '%s'", call->file);
  if (!s) s = solve(&solution, call, diag);
  if (!s) s = report(&solution, call, diag);
  release(&solution);
  return s;
}

const struct cb_verb cb_verb_solve = {
    .name = "solve",
    .arguments = "FILE [OPTION…]",
    .summary = "solve A x = b on the GPU, in one kernel",
    .details = "Compiles the matrix's product and a method as one kernel, and solves from x = 0. Prints why it\n"
               "stopped, iterations, time, and the residual as the method and as x has it. cbgen(1) has methods.\n",
    .example = "cbgen solve matrix.mtx --method=bicgstab --rhs=product",
    .takes = CB_TAKES_JSON | CB_TAKES_GPU | CB_TAKES_OUTPUT | CB_TAKES_SOLVE,
    .check = cb_check_systems_call,
    .run = run_solve,
};
