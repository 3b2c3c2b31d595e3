// SPDX-License-Identifier: Apache-2.0
/* cbgen lp: a linear program from an MPS file, solved on the GPU; how it ended, and how good x is. */
#include "tool/solve.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "frontend/mps.h"
#include "runtime/api/api.h"

#include <stdio.h>
#include <string.h>

enum { COST, LOWER, UPPER, ROW_LOWER, ROW_UPPER, X, Y, ROW_SCALES, COLUMN_SCALES, VECTORS };

struct program {
  struct cb_linear linear;
  char name[64];
  int32_t *row_ptr;
  cbgen_context *context;
  cbgen_operator *a, *transposed;
  cbgen_lp *lp;
  const struct cb_device *device;
  enum cb_type type;
  cb_device_ptr there[VECTORS];
  double *x;
  cbgen_lp_result result;
  double seconds;
};

static void *at(const struct program *program, int vector) { return (void *)(uintptr_t)program->there[vector]; }

static int64_t entries_of(const struct program *program, int vector) {
  const int is_of_rows = vector == ROW_LOWER || vector == ROW_UPPER || vector == Y || vector == ROW_SCALES;
  return is_of_rows ? program->linear.csr.rows : program->linear.csr.cols;
}

/* ---- what is solved */

static enum cb_status read_program(struct program *program, const struct cb_call *call, struct cb_diag *diag) {
  const struct cb_progress progress = {.report = cb_progress_report};
  struct cb_linear *linear = &program->linear;
  cb_progress_stage("reading '%s'", call->file);
  const enum cb_status s = cb_linear_read(linear, call->file, &progress, diag);
  if (s) return s;
  const char *slash = strrchr(call->file, '/');
  snprintf(program->name, sizeof program->name, "%.*s", (int)sizeof program->name - 1, slash ? slash + 1 : call->file);
  if (!linear->csr.rows || !linear->csr.cols)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "'%s' has no rows or no columns: there is nothing to solve", call->file);
  for (int64_t j = 0; j < linear->csr.cols && linear->maximise; j++) linear->cost[j] = -linear->cost[j];
  program->x = cb_alloc((size_t)linear->csr.cols, sizeof *program->x);
  return program->x ? CB_OK : cb_fail_memory(diag, "x", (uint64_t)linear->csr.cols);
}

static enum cb_status make_operators(struct program *program, cbgen_csr *view, const struct cb_call *call,
                                     struct cb_diag *diag) {
  enum { PROGRAM_LOSS = 600 }; /* nanoseconds of a product */
  cbgen_request request = {.struct_size = sizeof request, .specialise = CBGEN_SPECIALISE_NOW};
  enum cb_status s = cb_make_view(view, &program->row_ptr, &program->linear.csr, diag);
  if (!s) s = cb_open_context(&program->context, call, diag);
  if (s) return s;
  cbgen_context *context = program->context;
  if (!context->options.program_loss) context->options.program_loss = PROGRAM_LOSS;
  s = cb_check_call(cbgen_compile(context, view, &request, &program->a), cbgen_message(context), diag);
  request.transpose = 1;
  if (!s) s = cb_check_call(cbgen_compile(context, view, &request, &program->transposed), cbgen_message(context), diag);
  if (s) return s;
  program->device = program->a->shared->session->device;
  program->type = program->a->shared->image.vector_type;
  return CB_OK;
}

/* In the type of vectors; `numbers` NULL: zeros. With the context current. */
static enum cb_status upload(const struct program *program, int vector, const double *numbers, struct cb_diag *diag) {
  return cb_put_numbers(program->device, program->there[vector], program->type, numbers, entries_of(program, vector),
                        diag);
}

static enum cb_status make_vectors(struct program *program, struct cb_diag *diag) {
  const struct cb_linear *linear = &program->linear;
  const double *const given[] = {linear->cost, linear->lower, linear->upper, linear->row_lower, linear->row_upper};
  enum cb_status s = cb_device_enter(program->device, diag);
  if (s) return s;
  for (int i = 0; i < VECTORS && !s; i++) {
    s = cb_device_alloc(program->device, &program->there[i], (size_t)entries_of(program, i) * sizeof(double), "a vector",
                        diag);
    if (!s && i < X) s = upload(program, i, given[i], diag);
  }
  cb_device_leave(program->device);
  return s;
}

static enum cb_status make_solver(struct program *program, const struct cb_call *call, struct cb_diag *diag) {
  cbgen_csr view;
  enum cb_status s = make_operators(program, &view, call, diag);
  if (!s) s = make_vectors(program, diag);
  if (!s)
    s = cb_check_call(cbgen_lp_scales(program->context, &view, at(program, ROW_SCALES), at(program, COLUMN_SCALES)),
                      cbgen_message(program->context), diag);
  const cbgen_lp_options options = {.struct_size = sizeof options,
                                    .relative_tolerance = call->tolerance,
                                    .absolute_tolerance = call->tolerance,
                                    .max_iterations = (int)call->iterations,
                                    .row_scales = at(program, ROW_SCALES),
                                    .column_scales = at(program, COLUMN_SCALES),
                                    .matrix = &view};
  return s ? s
           : cb_check_call(cbgen_lp_create(program->a, program->transposed, &options, &program->lp),
                           cbgen_operator_message(program->a), diag);
}

/* ---- solving */

static enum cb_status run_once(void *user, double *seconds, struct cb_diag *diag) {
  struct program *program = user;
  const cbgen_lp_problem problem = {.struct_size = sizeof problem,
                                    .cost = at(program, COST),
                                    .lower = at(program, LOWER),
                                    .upper = at(program, UPPER),
                                    .row_lower = at(program, ROW_LOWER),
                                    .row_upper = at(program, ROW_UPPER)};
  enum cb_status s = upload(program, X, NULL, diag);
  if (!s) s = upload(program, Y, NULL, diag);
  if (!s) s = cb_device_wait(program->device, "x", diag);
  const double start = cb_seconds();
  if (!s)
    s = cb_check_call(cbgen_lp_solve(program->lp, &problem, at(program, X), at(program, Y), NULL),
                      cbgen_lp_message(program->lp), diag);
  if (!s) s = cb_check_call(cbgen_lp_outcome(program->lp, &program->result), cbgen_lp_message(program->lp), diag);
  *seconds = cb_seconds() - start;
  return s;
}

static enum cb_status solve(struct program *program, const struct cb_call *call, struct cb_diag *diag) {
  enum cb_status s = cb_device_enter(program->device, diag);
  if (s) return s;
  s = cb_time_runs(call, run_once, program, &program->seconds, diag);
  if (!s)
    s = cb_take_numbers(program->device, program->x, program->type, program->there[X], entries_of(program, X), diag);
  cb_device_leave(program->device);
  return s;
}

/* ---- the report */

static const char *reason_of(const struct program *program) {
  static const char *const words[] = {[CBGEN_REASON_NONE] = "nothing was solved",
                                      [CBGEN_REASON_CONVERGED] = "solved",
                                      [CBGEN_REASON_ITERATIONS] = "no convergence",
                                      [CBGEN_REASON_BREAKDOWN] = "a lower bound is above its upper one",
                                      [CBGEN_REASON_NOT_A_NUMBER] = "not a number",
                                      [CBGEN_REASON_STOPPED] = "stopped",
                                      [CBGEN_REASON_PRIMAL_INFEASIBLE] = "infeasible",
                                      [CBGEN_REASON_DUAL_INFEASIBLE] = "unbounded or infeasible"};
  return words[program->result.reason];
}

/* As the file means it. */
static double value_of(const struct program *program, double value) {
  return (program->linear.maximise ? -value : value) + program->linear.constant;
}

static void add_text(struct cb_text *text, const struct program *program) {
  const cbgen_lp_result *result = &program->result;
  const struct cb_linear *linear = &program->linear;
  cb_text_add(text, "%s after %d iterations, %.3f ms", reason_of(program), result->iterations, 1e3 * program->seconds);
  if (result->iterations) cb_text_add(text, " (%.2f us each)", 1e6 * program->seconds / result->iterations);
  cb_text_add(text, "\nprogram   %lld rows, %lld columns, %lld nonzeros", (long long)linear->csr.rows,
              (long long)linear->csr.cols, (long long)linear->csr.nnz);
  if (linear->integers)
    cb_text_add(text, "; %lld columns shall be integers, which is left out", (long long)linear->integers);
  cb_text_add(text, "\nvalue     %.10g, to be %s; of the dual %.10g\n", value_of(program, result->primal_value),
              linear->maximise ? "maximised" : "minimised", value_of(program, result->dual_value));
  cb_text_add(text, "residuals %.3e of rows, %.3e of reduced costs\n", result->primal_residual, result->dual_residual);
  cb_text_add(text, "form      %s\nplan      %s\ntranspose %s\n", cbgen_lp_form(program->lp),
              cbgen_operator_plan(program->a), cbgen_operator_plan(program->transposed));
}

static enum cb_status add_json(struct cb_text *text, const struct program *program, struct cb_diag *diag) {
  const cbgen_lp_result *result = &program->result;
  const struct cb_linear *linear = &program->linear;
  int failed = 0;
  struct cb_json root = cb_json_object(&failed);
  cb_json_set_text(root, "program", program->name);
  cb_json_set_integer(root, "rows", linear->csr.rows);
  cb_json_set_integer(root, "columns", linear->csr.cols);
  cb_json_set_integer(root, "nonzeros", linear->csr.nnz);
  cb_json_set_integer(root, "integers_left_out", linear->integers);
  cb_json_set_text(root, "sense", linear->maximise ? "maximise" : "minimise");
  cb_json_set_text(root, "reason", reason_of(program));
  cb_json_set_integer(root, "iterations", result->iterations);
  cb_json_set_real(root, "seconds", program->seconds);
  cb_json_set_real(root, "value", value_of(program, result->primal_value));
  cb_json_set_real(root, "dual_value", value_of(program, result->dual_value));
  cb_json_set_real(root, "primal_residual", result->primal_residual);
  cb_json_set_real(root, "dual_residual", result->dual_residual);
  cb_json_set_text(root, "form", cbgen_lp_form(program->lp));
  cb_json_set_text(root, "plan", cbgen_operator_plan(program->a));
  cb_json_set_text(root, "transpose", cbgen_operator_plan(program->transposed));
  const enum cb_status s = cb_json_write(text, root, JSON_INDENT(2), "a solution", diag);
  cb_text_add_string(text, "\n");
  return s;
}

static enum cb_status report(const struct program *program, const struct cb_call *call, struct cb_diag *diag) {
  struct cb_text text = {0};
  enum cb_status s = CB_OK;
  if (call->json) s = add_json(&text, program, diag);
  else add_text(&text, program);
  if (!s && call->output)
    s = cb_write_numbers(call, program->linear.column_names, program->x, program->linear.csr.cols, 1, program->type,
                         diag);
  if (!s && !(call->quiet && !call->json)) s = cb_print(&text, diag);
  cb_text_release(&text);
  if (s || program->result.reason == CBGEN_REASON_CONVERGED) return s;
  return cb_fail(diag, CB_ERR_WRONG, "'%s' was not solved: %s after %d iterations", call->file, reason_of(program),
                 program->result.iterations);
}

/* ---- the verb */

static void release(struct program *program) {
  cbgen_lp_free(program->lp);
  cb_free_numbers(program->device, program->there, VECTORS);
  cbgen_operator_free(program->a);
  cbgen_operator_free(program->transposed);
  cbgen_context_destroy(program->context);
  cb_free(program->row_ptr);
  cb_free(program->x);
  cb_linear_release(&program->linear);
}

static enum cb_status run_lp(const struct cb_call *call, struct cb_diag *diag) {
  struct program program = {0};
  enum cb_status s = read_program(&program, call, diag);
  cb_progress_stage("compiling a solver of '%s'", call->file);
  if (!s) s = make_solver(&program, call, diag);
  cb_progress_stage("solving '%s'", call->file);
  if (!s) s = solve(&program, call, diag);
  if (!s) s = report(&program, call, diag);
  release(&program);
  return s;
}

const struct cb_verb cb_verb_lp = {
    .name = "lp",
    .arguments = "FILE [OPTION…]",
    .summary = "solve a linear program from an MPS file on the GPU",
    .details = "Reads MPS in free or fixed form, also packed, compiles products with the matrix and its transpose,\n"
               "and solves by restarted primal-dual hybrid gradient from zeros. Prints how it ended (solved,\n"
               "infeasible, unbounded), iterations, time, values and residuals. Integers are read as numbers.\n",
    .example = "cbgen lp model.mps.gz --tolerance=1e-4 -o x.txt",
    .takes = CB_TAKES_JSON | CB_TAKES_GPU | CB_TAKES_OUTPUT | CB_TAKES_LP,
    .run = run_lp,
};
