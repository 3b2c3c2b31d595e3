// SPDX-License-Identifier: Apache-2.0
/* Solvers as one kernel beside the same method as a sequence of kernels around the operator's product.
 *
 *   bench_solve [--forms auto,grid,grid:66,cluster:8,block,…] [--recipe NAME] [--check 1] [--json FILE]
 *               [METHOD:MATRIX…]
 *
 * MATRIX: a file, or generate:SHAPE. A form may say how many thread blocks it has. With --check 1 each system is
 * solved once and nothing is timed: for compute-sanitizer.
 *
 * Matrices are made symmetric for cg, |a| with the sign turned, and dominated by their diagonal by a little; for bicgstab
 * the transposed half is weaker. Jacobi's preconditioner. An iteration's time is the difference of two solutions of
 * different numbers of iterations, medians of SOLUTIONS: what begins and ends a solution is in neither. "parts" is a
 * product and three vector kernels (bench/solve_parts.cu, read from the current folder), for cg; "product" the operator's
 * product alone, back to back. "floor" is what an iteration must move (arrays, vectors) at 4.4 TB/s, or from L2 at
 * 8 TB/s, and 0.95 us for each barrier. Then a solution to 1e-8: iterations, and the true residual as the solver tells
 * it and as the host finds it. Solutions are repeated and must have the same bits. The exit status is 1 when anything is
 * wrong. */
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "cbgen.h"
#include "codegen/source.h"
#include "frontend/coo.h"
#include "frontend/read.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/measure/timer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOLUTIONS = 7, FEW = 20, MANY = 120, THREADS = 256, PART_BLOCKS = 264, VECTORS = 8, REPEATS = 5 };

enum { B, X, D, R, P, Q, PARTIALS, SCALARS };

struct parts {
  struct CUmod_st *module;
  struct CUfunc_st *begin, *first, *dot, *step, *direction;
};

struct bed {
  const struct cb_driver *driver;
  const struct cb_device *device;
  struct cb_csr csr;
  int32_t *row_ptr;
  cbgen_csr view;
  cbgen_context *context;
  cbgen_operator *op;
  cbgen_info info;
  cb_device_ptr vectors[VECTORS];
  double *b, *x;
  struct parts parts;
  FILE *json;
  int only_checks;
  struct cb_diag diag;
};

/* ---- systems */

/* A's own square part as (row, column, value) in both directions, and a diagonal that dominates it. */
static enum cb_status make_system(struct bed *bed, const char *name, int symmetric) {
  struct cb_csr given = {0};
  enum cb_status s = cb_matrix_read(&given, name, NULL, &bed->diag);
  if (s) return s;
  const size_t most = 2 * (size_t)given.nnz + (size_t)given.rows;
  struct cb_coo coo = {.rows = given.rows, .cols = given.rows};
  double *sums = cb_calloc((size_t)given.rows + 1, sizeof *sums);
  coo.row_idx = cb_alloc(most, sizeof *coo.row_idx);
  coo.col_idx = cb_alloc(most, sizeof *coo.col_idx);
  coo.values = cb_alloc(most, sizeof *coo.values);
  if (!sums || !coo.row_idx || !coo.col_idx || !coo.values) s = cb_fail_memory(&bed->diag, "a system", most);
  for (int64_t row = 0; row < given.rows && !s; row++)
    for (int64_t k = cb_csr_row(&given, row); k < cb_csr_row(&given, row + 1); k++)
      for (int turned = 0; turned < 2; turned++) {
        const int32_t column = given.col_idx[k], i = turned ? column : (int32_t)row, j = turned ? (int32_t)row : column;
        const double value = -(turned && !symmetric ? 0.3 : 0.5) * fabs(given.values[k]);
        if (column >= given.rows || column == row) continue;
        coo.row_idx[coo.count] = i;
        coo.col_idx[coo.count] = j;
        coo.values[coo.count++] = value;
        sums[i] -= value;
      }
  for (int64_t row = 0; row < given.rows && !s; row++) {
    coo.row_idx[coo.count] = coo.col_idx[coo.count] = (int32_t)row;
    coo.values[coo.count++] = 1.001 * sums[row] + 1e-3;
  }
  cb_csr_release(&given);
  cb_free(sums);
  return s ? s : cb_csr_from_coo(&bed->csr, &coo, &bed->diag);
}

static enum cb_status put(struct bed *bed, int vector, const void *bytes, size_t length) {
  enum cb_status s = cb_device_alloc(bed->device, &bed->vectors[vector], length, "a vector", &bed->diag);
  if (!s && bytes) s = cb_device_upload(bed->device, bed->vectors[vector], bytes, length, "a vector", &bed->diag);
  if (!s && !bytes) s = cb_device_fill(bed->device, bed->vectors[vector], 0, length, &bed->diag);
  return s;
}

static void *at(const struct bed *bed, int vector) { return (void *)(uintptr_t)bed->vectors[vector]; }

static enum cb_status check(struct bed *bed, cbgen_status status, const char *message) {
  return status ? cb_fail(&bed->diag, (enum cb_status)status, "%s", message) : CB_OK;
}

static enum cb_status make_vectors(struct bed *bed) {
  const size_t n = (size_t)bed->csr.rows, bytes = n * sizeof(double);
  bed->b = cb_alloc(n, sizeof *bed->b);
  bed->x = cb_alloc(n, sizeof *bed->x);
  if (!bed->b || !bed->x) return cb_fail_memory(&bed->diag, "vectors", bytes);
  for (size_t i = 0; i < n; i++) bed->b[i] = cb_selftest_x(i);
  enum cb_status s = CB_OK;
  for (int i = 0; i < PARTIALS && !s; i++) s = put(bed, i, i == B ? bed->b : NULL, bytes);
  if (!s) s = put(bed, PARTIALS, NULL, 2 * PART_BLOCKS * sizeof(double));
  return s ? s : put(bed, SCALARS, NULL, 2 * sizeof(double));
}

static enum cb_status make_operator(struct bed *bed, const char *recipe) {
  const struct cb_csr *csr = &bed->csr;
  bed->row_ptr = cb_alloc((size_t)csr->rows + 1, sizeof *bed->row_ptr);
  if (!bed->row_ptr) return cb_fail_memory(&bed->diag, "row pointers", (uint64_t)csr->rows);
  for (int64_t i = 0; i <= csr->rows; i++) bed->row_ptr[i] = (int32_t)cb_csr_row(csr, i);
  bed->view = (cbgen_csr){.struct_size = sizeof(cbgen_csr), .rows = csr->rows, .cols = csr->cols, .nnz = csr->nnz,
                          .row_ptr = bed->row_ptr, .col_idx = csr->col_idx, .values = csr->values};
  const cbgen_request request = {.struct_size = sizeof request, .specialise = CBGEN_SPECIALISE_NOW};
  enum cb_status s = check(bed, cbgen_context_create(&bed->context), "no context");
  if (!s) s = check(bed, cbgen_set(bed->context, "recipe", recipe), cbgen_message(bed->context));
  if (!s) s = check(bed, cbgen_compile(bed->context, &bed->view, &request, &bed->op), cbgen_message(bed->context));
  if (!s) s = check(bed, cbgen_diagonal(bed->context, &bed->view, at(bed, D)), cbgen_message(bed->context));
  bed->info.struct_size = sizeof bed->info;
  return s ? s : check(bed, cbgen_operator_info(bed->op, &bed->info), "no info");
}

/* ---- a method of several kernels */

static enum cb_status find(struct bed *bed, struct CUfunc_st **function, const char *name) {
  return cb_driver_check(bed->driver, bed->driver->call.module_function(function, bed->parts.module, name), &bed->diag,
                         "find kernel '%s'", name);
}

static enum cb_status make_parts(struct bed *bed) {
  const struct cb_nvrtc_options options = {.arch = bed->device->target.arch};
  struct cb_nvrtc *nvrtc = NULL;
  struct cb_compiled compiled = {0};
  struct cb_mapping file = {0};
  struct cb_text text = {0};
  enum cb_status s = cb_file_map(&file, "bench/solve_parts.cu", &bed->diag);
  if (!s) cb_text_add_bytes(&text, file.bytes, file.length);
  if (!s) s = cb_nvrtc_open(&nvrtc, NULL, &bed->diag);
  if (!s) s = cb_nvrtc_compile(&compiled, nvrtc, cb_text_string(&text), "solve_parts.cu", &options, &bed->diag);
  if (!s)
    s = cb_driver_check(bed->driver, bed->driver->call.module_load(&bed->parts.module, compiled.cubin), &bed->diag,
                        "load the parts");
  if (!s) s = find(bed, &bed->parts.begin, "begin");
  if (!s) s = find(bed, &bed->parts.first, "first");
  if (!s) s = find(bed, &bed->parts.dot, "dot");
  if (!s) s = find(bed, &bed->parts.step, "step");
  if (!s) s = find(bed, &bed->parts.direction, "direction");
  cb_compiled_release(&compiled);
  cb_nvrtc_close(nvrtc);
  cb_text_release(&text);
  cb_file_unmap(&file);
  return s;
}

static enum cb_status launch(struct bed *bed, struct CUfunc_st *function, unsigned blocks, void **parameters) {
  return cb_driver_check(bed->driver,
                         bed->driver->call.launch(function, blocks, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL),
                         &bed->diag, "launch a part");
}

static enum cb_status multiply(struct bed *bed, int from, int to) {
  const cbgen_product product = {.struct_size = sizeof product, .alpha = 1, .x = at(bed, from), .y = at(bed, to)};
  return check(bed, cbgen_multiply(bed->op, &product), cbgen_operator_message(bed->op));
}

/* D holds the diagonal's inverse here. */
static enum cb_status run_parts(struct bed *bed, int iterations) {
  cb_device_ptr *v = bed->vectors, second = v[PARTIALS] + PART_BLOCKS * sizeof(double);
  int n = (int)bed->csr.rows, blocks = PART_BLOCKS;
  enum cb_status s = cb_device_fill(bed->device, v[X], 0, (size_t)n * sizeof(double), &bed->diag);
  if (!s) s = multiply(bed, X, Q);
  if (!s)
    s = launch(bed, bed->parts.begin, PART_BLOCKS,
               (void *[]){&v[B], &v[Q], &v[D], &v[R], &v[P], &v[PARTIALS], &v[SCALARS], &n});
  if (!s) s = launch(bed, bed->parts.first, 1, (void *[]){&v[PARTIALS], &v[SCALARS], &blocks});
  for (int i = 0, parity = 0; i < iterations && !s; i++, parity = 1 - parity) {
    s = multiply(bed, P, Q);
    if (!s) s = launch(bed, bed->parts.dot, PART_BLOCKS, (void *[]){&v[P], &v[Q], &v[PARTIALS], &n});
    if (!s)
      s = launch(bed, bed->parts.step, PART_BLOCKS,
                 (void *[]){&v[X], &v[R], &v[P], &v[Q], &v[D], &v[PARTIALS], &second, &v[SCALARS], &parity, &n});
    if (!s)
      s = launch(bed, bed->parts.direction, PART_BLOCKS,
                 (void *[]){&v[P], &v[R], &v[D], &second, &v[SCALARS], &parity, &n});
  }
  return s ? s : cb_device_wait(bed->device, "the parts", &bed->diag);
}

/* ---- times */

struct timing {
  double solver, parts, product; /* microseconds; 0: not measured */
  double first;                  /* milliseconds until the solver is there */
};

/* "cluster:8": a form and its thread blocks. */
static enum cb_status solver_for(struct bed *bed, const char *method, int iterations, double tolerance, const char *form,
                                 cbgen_solver **solver) {
  char name[16];
  const char *colon = strchr(form, ':');
  snprintf(name, sizeof name, "%.*s", (int)strcspn(form, ":"), form);
  const cbgen_solver_options options = {.struct_size = sizeof options,
                                        .relative_tolerance = tolerance,
                                        .max_iterations = iterations,
                                        .diagonal = at(bed, D),
                                        .thread_blocks = colon ? atoi(colon + 1) : 0,
                                        .program_form = !strcmp(name, "auto") ? NULL : name};
  return check(bed, cbgen_solver_create(bed->op, method, &options, solver), cbgen_operator_message(bed->op));
}

static enum cb_status solve(struct bed *bed, cbgen_solver *solver, cbgen_outcome *outcome) {
  enum cb_status s =
      cb_device_fill(bed->device, bed->vectors[X], 0, (size_t)bed->csr.rows * sizeof(double), &bed->diag);
  if (!s) s = cb_device_wait(bed->device, "x", &bed->diag);
  if (!s) s = check(bed, cbgen_solve(solver, at(bed, B), at(bed, X), NULL), cbgen_solver_message(solver));
  return s ? s : check(bed, cbgen_solver_outcome(solver, outcome), cbgen_solver_message(solver));
}

/* Seconds of a solution, the median; *iterations: what it took. */
static enum cb_status time_solver(struct bed *bed, const char *method, int most, const char *form, double *seconds,
                                  int *iterations) {
  double times[SOLUTIONS];
  cbgen_solver *solver = NULL;
  cbgen_outcome outcome = {0};
  enum cb_status s = solver_for(bed, method, most, 1e-100, form, &solver);
  if (!s) s = solve(bed, solver, &outcome);
  for (int i = 0; i < SOLUTIONS && !s; i++) {
    const double start = cb_seconds();
    s = solve(bed, solver, &outcome);
    times[i] = cb_seconds() - start;
  }
  cbgen_solver_free(solver);
  *seconds = s ? 0 : cb_median(times, SOLUTIONS);
  *iterations = outcome.iterations;
  return s;
}

static enum cb_status time_iteration(struct bed *bed, const char *method, const char *form, double *microseconds) {
  double few = 0, many = 0;
  int of_few = 0, of_many = 0;
  enum cb_status s = time_solver(bed, method, FEW, form, &few, &of_few);
  if (!s) s = time_solver(bed, method, MANY, form, &many, &of_many);
  *microseconds = of_many > of_few ? 1e6 * (many - few) / (of_many - of_few) : 0;
  return s;
}

static enum cb_status invert_diagonal(struct bed *bed) {
  const size_t n = (size_t)bed->csr.rows, bytes = n * sizeof(double);
  enum cb_status s = cb_device_download(bed->device, bed->x, bed->vectors[D], bytes, "the diagonal", &bed->diag);
  for (size_t i = 0; i < n && !s; i++) bed->x[i] = 1 / bed->x[i];
  return s ? s : cb_device_upload(bed->device, bed->vectors[D], bed->x, bytes, "the diagonal", &bed->diag);
}

static enum cb_status time_parts(struct bed *bed, double *microseconds) {
  double few[SOLUTIONS], many[SOLUTIONS];
  enum cb_status s = invert_diagonal(bed);
  if (!s) s = run_parts(bed, FEW);
  for (int i = 0; i < SOLUTIONS && !s; i++) {
    double start = cb_seconds();
    s = run_parts(bed, FEW);
    few[i] = cb_seconds() - start;
    start = cb_seconds();
    if (!s) s = run_parts(bed, MANY);
    many[i] = cb_seconds() - start;
  }
  if (!s) *microseconds = 1e6 * (cb_median(many, SOLUTIONS) - cb_median(few, SOLUTIONS)) / (MANY - FEW);
  return s ? s : invert_diagonal(bed);
}

/* ---- whether it is right */

/* ‖b − A x‖ / ‖b‖, and ‖b‖. */
static double host_residual(const struct bed *bed, double *norm) {
  double square = 0, of_b = 0;
#pragma omp parallel for reduction(+ : square, of_b)
  for (int64_t row = 0; row < bed->csr.rows; row++) {
    long double r = bed->b[row];
    for (int64_t k = cb_csr_row(&bed->csr, row); k < cb_csr_row(&bed->csr, row + 1); k++)
      r -= (long double)bed->csr.values[k] * bed->x[bed->csr.col_idx[k]];
    square += (double)(r * r);
    of_b += bed->b[row] * bed->b[row];
  }
  *norm = sqrt(of_b);
  return sqrt(square / of_b);
}

/* Solves to 1e-8 several times: the same bits, and the host's residual beside the solver's. */
static enum cb_status check_solution(struct bed *bed, const char *method, const char *form, char *line, size_t size) {
  const size_t bytes = (size_t)bed->csr.rows * sizeof(double);
  double *first = cb_alloc((size_t)bed->csr.rows, sizeof *first);
  cbgen_solver *solver = NULL;
  cbgen_outcome outcome = {0};
  int differ = 0;
  enum cb_status s = first ? solver_for(bed, method, 5000, 1e-8, form, &solver) : cb_fail_memory(&bed->diag, "x", bytes);
  for (int i = 0; i < (bed->only_checks ? 1 : REPEATS) && !s; i++) {
    s = solve(bed, solver, &outcome);
    if (!s) s = cb_device_download(bed->device, bed->x, bed->vectors[X], bytes, "x", &bed->diag);
    if (!i && !s) memcpy(first, bed->x, bytes);
    differ |= !s && memcmp(first, bed->x, bytes) != 0;
  }
  cbgen_solver_free(solver);
  cb_free(first);
  if (s) return s;
  double norm;
  const double found = host_residual(bed, &norm);
  snprintf(line, size, "%d iterations, reason %d, true residual %.2e, host %.2e%s", outcome.iterations, outcome.reason,
           outcome.true_residual / norm, found, differ ? ", BITS DIFFER" : "");
  if (differ || found > 1e-6 || outcome.reason != CBGEN_REASON_CONVERGED)
    return cb_fail(&bed->diag, CB_ERR_WRONG, "%s", line);
  return CB_OK;
}

/* ---- one matrix */

/* What an iteration must take, in microseconds. */
static double floor_of(const struct bed *bed, const char *method) {
  const int is_cg = !strcmp(method, "cg"), products = is_cg ? 1 : 2, barriers = is_cg ? 2 : 5;
  /* cg: z and the old p, p and q of the product, x read and written; q d, r read and written, z. */
  const double vectors = is_cg ? 4 + 2 + 2 + 2 + 1 : 4 + 2 * 2 + 3 + 2 + 5 + 3 + 3 + 3;
  const double n = (double)bed->csr.rows * sizeof(double);
  const double bytes = products * (double)bed->info.stored_bytes + vectors * n;
  const double resident = (double)bed->info.stored_bytes + 8 * n;
  return bytes / (resident < 45e6 ? 8e6 : 4.4e6) + 0.95 * barriers;
}

static void print(struct bed *bed, const char *method, const char *name, const char *form, const struct timing *timing,
                  const char *solution) {
  const double floor = floor_of(bed, method);
  printf("%-9s %-30.30s %9lld %10lld %-10s %9.2f %9.2f %9.2f %9.2f  %s\n", method, name, (long long)bed->csr.rows,
         (long long)bed->csr.nnz, form, timing->solver, timing->parts, timing->product, floor, solution);
  fflush(stdout);
  if (!bed->json) return;
  fprintf(bed->json,
          "{\"method\": \"%s\", \"matrix\": \"%s\", \"rows\": %lld, \"nonzeros\": %lld, \"form\": \"%s\", "
          "\"solver_us\": %.3f, \"parts_us\": %.3f, \"product_us\": %.3f, \"floor_us\": %.3f, \"make_ms\": %.2f, "
          "\"plan\": \"%s\", \"solution\": \"%s\"}\n",
          method, name, (long long)bed->csr.rows, (long long)bed->csr.nnz, form, timing->solver, timing->parts,
          timing->product, floor, timing->first, cbgen_operator_plan(bed->op), solution);
  fflush(bed->json);
}

static enum cb_status measure(struct bed *bed, const char *method, const char *name, const char *form, struct timing *timing) {
  char solution[200] = "";
  cbgen_solver *solver = NULL;
  const double start = cb_seconds();
  enum cb_status s = solver_for(bed, method, 1, 1e-8, form, &solver);
  timing->first = 1e3 * (cb_seconds() - start);
  cbgen_solver_free(solver);
  if (!s && !bed->only_checks) s = time_iteration(bed, method, form, &timing->solver);
  if (!s) s = check_solution(bed, method, form, solution, sizeof solution);
  if (!s) print(bed, method, name, form, timing, solution);
  return s;
}

static void release(struct bed *bed) {
  if (bed->parts.module) bed->driver->call.module_unload(bed->parts.module);
  cbgen_operator_free(bed->op);
  cbgen_context_destroy(bed->context);
  for (int i = 0; i < VECTORS; i++) cb_device_free(bed->device, bed->vectors[i]);
  cb_free(bed->b);
  cb_free(bed->x);
  cb_free(bed->row_ptr);
  cb_csr_release(&bed->csr);
}

static enum cb_status run(struct bed *bed, const char *method, const char *name, const char *recipe, const char *list) {
  const int is_cg = !strcmp(method, "cg");
  struct timing timing = {0};
  double seconds = 0;
  int failed = 0;
  enum cb_status s = make_system(bed, name, is_cg);
  if (!s) s = make_vectors(bed);
  if (!s) s = make_operator(bed, recipe);
  if (!s && !bed->only_checks) s = check(bed, cbgen_operator_measure(bed->op, &seconds), cbgen_operator_message(bed->op));
  timing.product = 1e6 * seconds;
  if (!s && is_cg && !bed->only_checks && (make_parts(bed) || time_parts(bed, &timing.parts))) {
    fprintf(stderr, "%s: without parts: %s\n", name, bed->diag.message);
    s = check(bed, cbgen_diagonal(bed->context, &bed->view, at(bed, D)), cbgen_message(bed->context));
  }
  for (const char *at_list = list; at_list && !s; at_list = strchr(at_list, ',') ? strchr(at_list, ',') + 1 : NULL) {
    char form[24];
    snprintf(form, sizeof form, "%.*s", (int)strcspn(at_list, ","), at_list);
    if (measure(bed, method, name, form, &timing)) fprintf(stderr, "%s, %s: %s\n", name, form, bed->diag.message), failed = 1;
  }
  return s ? s : failed ? CB_ERR_WRONG : CB_OK;
}

static int run_one(const struct cb_device *device, const char *what, const char *recipe, const char *forms, int only_checks,
                   FILE *json) {
  struct bed bed = {.driver = device->driver, .device = device, .only_checks = only_checks, .json = json};
  char method[16] = "cg";
  const char *name = what, *colon = strchr(what, ':');
  if (!strncmp(what, "cg:", 3) || !strncmp(what, "bicgstab:", 9)) {
    snprintf(method, sizeof method, "%.*s", (int)(colon - what), what);
    name = colon + 1;
  }
  const enum cb_status s = run(&bed, method, name, recipe, forms);
  if (s) fprintf(stderr, "%s: %s\n", what, bed.diag.message);
  release(&bed);
  return !s;
}

int main(int count, char **words) {
  static const char *const standard[] = {
      "cg:generate:stencil7,n=12",  "cg:generate:stencil7,n=32",   "cg:generate:fe3,n=20",      "cg:generate:fe3,n=48",
      "cg:generate:fe3,n=56",       "cg:generate:stencil7,n=160",  "cg:generate:stencil27,n=100",
      "bicgstab:generate:stencil7,n=128", NULL};
  const char *recipe = "auto", *forms = "auto", *json_path = NULL;
  struct cb_driver *driver = NULL;
  struct cb_device *device = NULL;
  struct cb_diag diag = {0};
  int word = 1, good = 1, only_checks = 0;
  for (; word + 1 < count && !strncmp(words[word], "--", 2); word += 2) {
    if (!strcmp(words[word], "--recipe")) recipe = words[word + 1];
    if (!strcmp(words[word], "--check")) only_checks = atoi(words[word + 1]);
    if (!strcmp(words[word], "--forms")) forms = words[word + 1];
    if (!strcmp(words[word], "--json")) json_path = words[word + 1];
  }
  FILE *json = json_path ? fopen(json_path, "w") : NULL;
  enum cb_status s = cb_driver_open(&driver, NULL, &diag);
  if (!s) s = cb_device_open(&device, driver, 0, &diag);
  if (!s) s = cb_device_enter(device, &diag);
  if (s) {
    fprintf(stderr, "%s\n", diag.message);
    return 1;
  }
  printf("%-9s %-30s %9s %10s %-10s %9s %9s %9s %9s  (us per iteration)\n", "method", "matrix", "rows", "nonzeros", "form",
         "solver", "parts", "product", "floor");
  for (int i = 0; word == count && standard[i]; i++) good &= run_one(device, standard[i], recipe, forms, only_checks, json);
  for (; word < count; word++) good &= run_one(device, words[word], recipe, forms, only_checks, json);
  if (json) fclose(json);
  cbgen_trim();
  cb_device_leave(device);
  cb_device_close(device);
  cb_driver_close(driver);
  return !good;
}
