// SPDX-License-Identifier: Apache-2.0
/* Solvers as one kernel beside the same method as a sequence of kernels around the operator's product.
 *
 *   bench_solve [--forms auto,grid,grid:66,cluster:8,block,…] [--recipe NAME] [--set NAME=VALUE]… [--check 1] [--alone 1]
 *               [--repeats N] [--json FILE]
 *               [METHOD:MATRIX…]
 *
 * --set: a setting of the context (cbgen_set), as symmetric=on.
 * MATRIX: a file, or generate:SHAPE. A form may say how many thread blocks it has; one that a system does not have is
 * passed over, and the line says why; "host" is what "graph" becomes with CBGEN_DEBUG. With --check 1 each system is
 * solved once and nothing is timed: for compute-sanitizer. With --alone 1 solvers alone are timed. METHOD batch: a thousand systems of the matrix's pattern by
 * cbgen_solve_batch (cg), and one after the other.
 *
 * Matrices are made symmetric, |a| with the sign turned, and dominated by their diagonal by a little; for bicgstab and gmres
 * the transposed half is weaker; for pagerank the matrix' own square part are links from columns to rows, each with its
 * share, and the right side is ones. Jacobi's preconditioner, but for pagerank. An iteration's time is the difference of two solutions of
 * different numbers of iterations, no more than it takes to solve the system, medians of SOLUTIONS: what begins and ends a
 * solution is in neither. "parts" is a
 * product and three vector kernels (bench/solve_parts.cu, read from the current folder), for cg; "vendor" and "graph"
 * are cg, bicgstab, gmres and pagerank by cuSPARSE's fastest SpMV and cuBLAS (solve_vendor.h), whose solutions are compared, and
 * "share" is "solver" of "graph"; "product" the operator's product alone, back to back. "floor" is what an iteration must move (arrays, vectors) at 4.4 TB/s, or from L2 at
 * 8 TB/s, and 0.95 us for each barrier. Then a solution to 1e-8: iterations, and the true residual as the solver tells
 * it and as the host finds it. Solutions are repeated (--repeats, 5) and must have the same bits. The exit status is 1 when anything is
 * wrong. */
#include "bench/common.h"
#include "bench/solve_vendor.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cbgen.h"
#include "codegen/source.h"
#include "frontend/coo.h"
#include "frontend/read.h"
#include "runtime/cuda/driver.h"
#include "runtime/measure/timer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOLUTIONS = 7, FEW = 20, MANY = 120, THREADS = 256, PART_BLOCKS = 264, VECTORS = 8, REPEATS = 5, MOST_SETTINGS = 8 };

static const char *settings[MOST_SETTINGS]; /* of contexts, "NAME=VALUE" each */
static int settings_count;

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
  int ranks; /* for pagerank */
  int only_checks;
  int alone; /* nothing else is measured */
  int repeats; /* solutions whose bits are compared */
  struct cb_diag diag;
};

/* ---- systems */

/* A's own square part, each column's entries a share of 1. */
static enum cb_status make_links(struct bed *bed, const char *name) {
  enum cb_status s = cb_matrix_read(&bed->csr, name, NULL, &bed->diag);
  struct cb_csr *csr = &bed->csr;
  if (!s && csr->rows != csr->cols) s = cb_fail(&bed->diag, CB_ERR_ARGUMENT, "'%s' is not square", name);
  int32_t *degrees = s ? NULL : cb_calloc((size_t)csr->cols + 1, sizeof *degrees);
  if (!s && !degrees) s = cb_fail_memory(&bed->diag, "degrees", (uint64_t)csr->cols);
  for (int64_t k = 0; k < csr->nnz && !s; k++) degrees[csr->col_idx[k]]++;
  for (int64_t k = 0; k < csr->nnz && !s; k++) csr->values[k] = 1.0 / degrees[csr->col_idx[k]];
  cb_free(degrees);
  return s;
}

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
  for (size_t i = 0; i < n; i++) bed->b[i] = bed->ranks ? 1 : cb_selftest_x(i);
  enum cb_status s = CB_OK;
  for (int i = 0; i < PARTIALS && !s; i++) s = put(bed, i, i == B ? bed->b : NULL, bytes);
  if (!s) s = put(bed, PARTIALS, NULL, 2 * PART_BLOCKS * sizeof(double));
  return s ? s : put(bed, SCALARS, NULL, 2 * sizeof(double));
}

/* For solutions by the method; batches have a product of their own. */
static enum cb_status make_operator(struct bed *bed, const char *recipe, const char *method) {
  const cbgen_request request = {.struct_size = sizeof request,
                                 .specialise = CBGEN_SPECIALISE_NOW,
                                 .solver = strcmp(method, "batch") != 0 ? method : "cg"};
  enum cb_status s = bench_view(&bed->view, &bed->row_ptr, &bed->csr, &bed->diag);
  if (!s) s = check(bed, cbgen_context_create(&bed->context), "no context");
  if (!s) s = check(bed, cbgen_set(bed->context, "recipe", recipe), cbgen_message(bed->context));
  if (!s) s = bench_set_all(bed->context, settings, settings_count, &bed->diag);
  if (!s) s = check(bed, cbgen_compile(bed->context, &bed->view, &request, &bed->op), cbgen_message(bed->context));
  if (!s && !bed->ranks)
    s = check(bed, cbgen_diagonal(bed->context, &bed->view, at(bed, D)), cbgen_message(bed->context));
  bed->info.struct_size = sizeof bed->info;
  return s ? s : check(bed, cbgen_operator_info(bed->op, &bed->info), "no info");
}

/* ---- a method of several kernels */

static enum cb_status make_parts(struct bed *bed) {
  static const char *const names[] = {"begin", "first", "dot", "step", "direction", NULL};
  struct CUfunc_st *functions[sizeof names / sizeof *names] = {0};
  const enum cb_status s =
      vendor_kernels(&bed->parts.module, functions, names, bed->device, "bench/solve_parts.cu", &bed->diag);
  bed->parts = (struct parts){bed->parts.module, functions[0], functions[1], functions[2], functions[3], functions[4]};
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
static enum cb_status run_parts(void *user, int iterations) {
  struct bed *bed = user;
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
  double vendor[VENDOR_WAYS];    /* likewise */
  char vendor_product[24];       /* the SpMV there */
  double first;                  /* milliseconds until the solver is there */
};

/* "cluster:8": a form and its thread blocks. */
static enum cb_status solver_for(struct bed *bed, const char *method, int iterations, double tolerance, const char *form,
                                 cbgen_solver **solver) {
  char name[40];
  const char *colon = strchr(form, ':');
  snprintf(name, sizeof name, "%.*s", (int)strcspn(form, ":"), form);
  const int is_host = !strcmp(name, "host");
  const cbgen_solver_options options = {.struct_size = sizeof options,
                                        .relative_tolerance = tolerance,
                                        .max_iterations = iterations,
                                        .restart = VENDOR_RESTART,
                                        .diagonal = bed->ranks ? NULL : at(bed, D),
                                        .thread_blocks = colon ? atoi(colon + 1) : 0,
                                        .program_form = is_host ? "graph" : !strcmp(name, "auto") ? NULL : name};
  enum cb_status s =
      check(bed, cbgen_solver_create(bed->op, method, &options, solver), cbgen_operator_message(bed->op));
  if (!s && (is_host || !strcmp(name, "graph")) && strcmp(cbgen_solver_form(*solver), name) != 0)
    s = cb_fail(&bed->diag, CB_ERR_UNSUPPORTED, "the solver's form is '%s'", cbgen_solver_form(*solver));
  return s;
}

static enum cb_status solve(struct bed *bed, cbgen_solver *solver, cbgen_outcome *outcome) {
  const size_t bytes = (size_t)bed->csr.rows * sizeof(double);
  enum cb_status s = bed->ranks ? cb_device_upload(bed->device, bed->vectors[X], bed->b, bytes, "x", &bed->diag)
                                : cb_device_fill(bed->device, bed->vectors[X], 0, bytes, &bed->diag);
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
  /* Until the clocks are up. */
  for (const double begin = cb_seconds(); !s && cb_seconds() - begin < 0.03;) s = solve(bed, solver, &outcome);
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

/* `enough`: iterations that solve the system. Behind these a method may do other things. */
static enum cb_status time_iteration(struct bed *bed, const char *method, const char *form, int enough,
                                     double *microseconds) {
  const int most = enough < MANY && enough > FEW ? enough : MANY;
  double few = 0, many = 0;
  int of_few = 0, of_many = 0;
  enum cb_status s = time_solver(bed, method, most * FEW / MANY, form, &few, &of_few);
  if (!s) s = time_solver(bed, method, most, form, &many, &of_many);
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
  enum cb_status s = invert_diagonal(bed);
  if (!s) s = vendor_time(run_parts, bed, FEW, MANY, microseconds);
  return s ? s : invert_diagonal(bed);
}

/* ---- whether it is right */

/* The sum of what one more iteration changes of ranks; *norm is 1. */
static double host_change(const struct bed *bed, double *norm) {
  const double n = (double)bed->csr.rows;
  double handed = 0, change = 0;
#pragma omp parallel for reduction(+ : handed)
  for (int64_t k = 0; k < bed->csr.nnz; k++) handed += 0.85 * bed->csr.values[k] * bed->x[bed->csr.col_idx[k]];
#pragma omp parallel for reduction(+ : change)
  for (int64_t row = 0; row < bed->csr.rows; row++) {
    long double rank = (1 - handed) / n;
    for (int64_t k = cb_csr_row(&bed->csr, row); k < cb_csr_row(&bed->csr, row + 1); k++)
      rank += 0.85L * (long double)bed->csr.values[k] * bed->x[bed->csr.col_idx[k]];
    change += fabs((double)rank - bed->x[row]);
  }
  *norm = 1;
  return change;
}

/* Solves to 1e-8 several times: the same bits, and the host's residual beside the solver's. */
static enum cb_status check_solution(struct bed *bed, const char *method, const char *form, char *line, size_t size,
                                     int *iterations) {
  const size_t bytes = (size_t)bed->csr.rows * sizeof(double);
  double *first = cb_alloc((size_t)bed->csr.rows, sizeof *first);
  cbgen_solver *solver = NULL;
  cbgen_outcome outcome = {0};
  int differ = 0;
  enum cb_status s = first ? solver_for(bed, method, 5000, 1e-8, form, &solver) : cb_fail_memory(&bed->diag, "x", bytes);
  for (int i = 0; i < (bed->only_checks ? 1 : bed->repeats) && !s; i++) {
    s = solve(bed, solver, &outcome);
    if (!s) s = cb_device_download(bed->device, bed->x, bed->vectors[X], bytes, "x", &bed->diag);
    if (!i && !s) memcpy(first, bed->x, bytes);
    differ |= !s && memcmp(first, bed->x, bytes) != 0;
  }
  cbgen_solver_free(solver);
  cb_free(first);
  *iterations = outcome.iterations;
  if (s) return s;
  double norm;
  const double found = bed->ranks ? host_change(bed, &norm) : bench_residual(&bed->csr, bed->b, bed->x, &norm);
  snprintf(line, size, "%d iterations, reason %d, true residual %.2e, host %.2e%s", outcome.iterations, outcome.reason,
           outcome.true_residual / norm, found, differ ? ", BITS DIFFER" : "");
  if (differ || found > 1e-6 || outcome.reason != CBGEN_REASON_CONVERGED)
    return cb_fail(&bed->diag, CB_ERR_WRONG, "%s", line);
  return CB_OK;
}

/* ---- cuSPARSE and cuBLAS */

struct vendor_runs {
  struct bed *bed;
  struct vendor *vendor;
  enum vendor_way way;
};

static enum cb_status run_vendor(void *user, int iterations) {
  const struct vendor_runs *runs = user;
  return vendor_run(runs->vendor, runs->way, iterations, &runs->bed->diag);
}

/* What is left of b after some iterations, as a share; of ranks, what the next iteration would change. */
static enum cb_status vendor_residual(const struct vendor_runs *runs, double *residual) {
  struct bed *bed = runs->bed;
  double norm;
  enum cb_status s = vendor_run(runs->vendor, runs->way, vendor_captured(runs->vendor), &bed->diag);
  if (!s)
    s = cb_device_download(bed->device, bed->x, vendor_solution(runs->vendor), (size_t)bed->csr.rows * sizeof(double),
                           "x", &bed->diag);
  *residual = s           ? 0
              : bed->ranks ? host_change(bed, &norm)
                           : bench_residual(&bed->csr, bed->b, bed->x, &norm);
  return s;
}

/* Both ways; after as many iterations they have come as far as each other. */
static enum cb_status time_ways(struct bed *bed, const char *method, struct timing *timing) {
  struct vendor_runs runs = {.bed = bed};
  double left[VENDOR_WAYS] = {0};
  enum cb_status s =
      vendor_open(&runs.vendor, bed->device, method, &bed->csr, bed->vectors[B], bed->vectors[D], &bed->diag);
  for (runs.way = 0; runs.way < VENDOR_WAYS && !s; runs.way++) {
    s = vendor_residual(&runs, &left[runs.way]);
    if (!s) s = vendor_time(run_vendor, &runs, FEW, MANY, &timing->vendor[runs.way]);
  }
  if (!s) snprintf(timing->vendor_product, sizeof timing->vendor_product, "%s", vendor_spmv(runs.vendor));
  if (!s && !(left[0] < 1 && fabs(left[1] - left[0]) <= 1e-6 * left[0] + 1e-12))
    s = cb_fail(&bed->diag, CB_ERR_WRONG, "residuals of %g and, by a graph, %g", left[0], left[1]);
  vendor_close(runs.vendor);
  return s;
}

/* D holds the diagonal's inverse meanwhile. */
static enum cb_status time_vendor(struct bed *bed, const char *method, struct timing *timing) {
  enum cb_status s = bed->ranks ? CB_OK : invert_diagonal(bed);
  if (!s) s = time_ways(bed, method, timing);
  return s || bed->ranks ? s : invert_diagonal(bed);
}

/* ---- one matrix */

/* What an iteration must take, in microseconds. */
static double floor_of(const struct bed *bed, const char *method) {
  /* Vectors read and written, the product's two among them. cg: z and the old p, p and q of the product, x read and
   * written; q d, r read and written, z. */
  static const struct {
    const char *name;
    int products, barriers, vectors;
  } methods[] = {{"cg", 1, 2, 4 + 2 + 2 + 2 + 1},      {"bicgstab", 2, 5, 4 + 2 * 2 + 3 + 2 + 5 + 3 + 3 + 3},
                 {"minres", 1, 3, 4 + 6 + 13},         {"chebyshev", 1, 2, 2 + 2 + 6},
                 {"jacobi", 1, 2, 3 + 5},              {"pagerank", 1, 1, 2 + 2},
                 {"gmres", 1, 6, 2 + 4 * 10 + 4 + 3}}; /* 20 to a round: 10 in the mean, four times */
  int m = 0;
  while (m + 1 < (int)(sizeof methods / sizeof *methods) && strcmp(methods[m].name, method) != 0) m++;
  const int products = methods[m].products, barriers = methods[m].barriers;
  const double vectors = methods[m].vectors;
  const double n = (double)bed->csr.rows * sizeof(double);
  const double bytes = products * (double)bed->info.stored_bytes + vectors * n;
  const double resident = (double)bed->info.stored_bytes + 8 * n;
  return bytes / (resident < 45e6 ? 8e6 : 4.4e6) + 0.95 * barriers;
}

static void print(struct bed *bed, const char *method, const char *name, const char *form, const struct timing *timing,
                  const char *solution) {
  const double floor = floor_of(bed, method), graph = timing->vendor[VENDOR_GRAPH];
  printf("%-9s %-30.30s %9lld %10lld %-24s %9.2f %9.2f %9.2f %9.2f %6.2f %9.2f %9.2f  %s\n", method, name,
         (long long)bed->csr.rows, (long long)bed->csr.nnz, form, timing->solver, timing->parts,
         timing->vendor[VENDOR_FROM_HOST], graph, graph > 0 ? timing->solver / graph : 0, timing->product, floor, solution);
  fflush(stdout);
  if (!bed->json) return;
  fprintf(bed->json,
          "{\"method\": \"%s\", \"matrix\": \"%s\", \"rows\": %lld, \"nonzeros\": %lld, \"form\": \"%s\", "
          "\"solver_us\": %.3f, \"parts_us\": %.3f, \"vendor_us\": %.3f, \"vendor_graph_us\": %.3f, "
          "\"vendor_product\": \"%s\", \"product_us\": %.3f, \"floor_us\": %.3f, \"make_ms\": %.2f, "
          "\"plan\": \"%s\", \"solution\": \"%s\"}\n",
          method, name, (long long)bed->csr.rows, (long long)bed->csr.nnz, form, timing->solver, timing->parts,
          timing->vendor[VENDOR_FROM_HOST], timing->vendor[VENDOR_GRAPH], timing->vendor_product, timing->product, floor,
          timing->first, cbgen_operator_plan(bed->op), solution);
  fflush(bed->json);
}

static enum cb_status measure(struct bed *bed, const char *method, const char *name, const char *form, struct timing *timing) {
  char solution[200] = "";
  int iterations = 0;
  cbgen_solver *solver = NULL;
  const double start = cb_seconds();
  enum cb_status s = solver_for(bed, method, 1, 1e-8, form, &solver);
  timing->first = 1e3 * (cb_seconds() - start);
  cbgen_solver_free(solver);
  if ((s == CB_ERR_UNSUPPORTED || s == CB_ERR_LIMIT) && strcmp(form, "auto") != 0) { /* the others are measured */
    printf("%-9s %-30.30s without %s: %s\n", method, name, form, bed->diag.message);
    bed->diag = (struct cb_diag){0};
    return CB_OK;
  }
  if (!s) s = check_solution(bed, method, form, solution, sizeof solution, &iterations);
  if (!s && !bed->only_checks) s = time_iteration(bed, method, form, iterations, &timing->solver);
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

/* ---- many systems */

struct many {
  cb_device_ptr values, b, x, diagonals; /* of all */
  double *numbers;                       /* room for one of these arrays */
  cbgen_outcome *outcomes;
  cbgen_batch *batch;
};

/* System s: what is given, times 1 + s / 8192, and its diagonal by as much again; the same b. */
static enum cb_status fill_many(struct bed *bed, struct many *many, int systems) {
  const int64_t n = bed->csr.rows, nnz = bed->csr.nnz;
  double *diagonals = cb_calloc((size_t)(systems * n), sizeof *diagonals);
  many->numbers = cb_alloc((size_t)(systems * (nnz > n ? nnz : n)), sizeof *many->numbers);
  many->outcomes = cb_calloc((size_t)systems, sizeof *many->outcomes);
  if (!diagonals || !many->numbers || !many->outcomes) {
    cb_free(diagonals);
    return cb_fail_memory(&bed->diag, "systems", (uint64_t)systems);
  }
  for (int64_t s = 0; s < systems; s++)
    for (int64_t row = 0; row < n; row++)
      for (int64_t k = bed->row_ptr[row]; k < bed->row_ptr[row + 1]; k++) {
        const int own = bed->csr.col_idx[k] == row;
        const double value = bed->csr.values[k] * (1 + (double)s / 8192) * (own ? 1 + (double)s / 8192 : 1);
        many->numbers[s * nnz + k] = value;
        if (own) diagonals[s * n + row] = value;
      }
  const size_t bytes = (size_t)(systems * n) * sizeof(double), of_values = (size_t)(systems * nnz) * sizeof(double);
  enum cb_status status = cb_device_alloc(bed->device, &many->values, of_values, "values", &bed->diag);
  if (!status) status = cb_device_upload(bed->device, many->values, many->numbers, of_values, "values", &bed->diag);
  for (int64_t i = 0; i < systems * n; i++) many->numbers[i] = bed->b[i % n];
  if (!status) status = cb_device_alloc(bed->device, &many->b, bytes, "b", &bed->diag);
  if (!status) status = cb_device_upload(bed->device, many->b, many->numbers, bytes, "b", &bed->diag);
  if (!status) status = cb_device_alloc(bed->device, &many->diagonals, bytes, "diagonals", &bed->diag);
  if (!status) status = cb_device_upload(bed->device, many->diagonals, diagonals, bytes, "diagonals", &bed->diag);
  if (!status) status = cb_device_alloc(bed->device, &many->x, bytes, "x", &bed->diag);
  cb_free(diagonals);
  return status;
}

static enum cb_status solve_many(struct bed *bed, struct many *many, int systems, double *seconds) {
  enum cb_status s =
      cb_device_fill(bed->device, many->x, 0, (size_t)(systems * bed->csr.rows) * sizeof(double), &bed->diag);
  if (!s) s = cb_device_wait(bed->device, "x", &bed->diag);
  const double start = cb_seconds();
#define AT(pointer) ((void *)(uintptr_t)(pointer))
  if (!s)
    s = check(bed, cbgen_solve_batch(many->batch, AT(many->values), AT(many->b), AT(many->x), NULL),
              cbgen_batch_message(many->batch));
#undef AT
  if (!s) s = cb_device_wait(bed->device, "a batch", &bed->diag);
  *seconds = cb_seconds() - start;
  return s;
}

/* One solution after the other, which waits for nothing but its turn. */
static enum cb_status time_loop(struct bed *bed, int systems, double *seconds) {
  cbgen_solver *solver = NULL;
  cbgen_outcome outcome;
  enum cb_status s = solver_for(bed, "cg", 5000, 1e-8, "auto", &solver);
  if (!s) s = solve(bed, solver, &outcome);
  const double start = cb_seconds();
  for (int i = 0; i < systems && !s; i++) {
    s = cb_device_fill(bed->device, bed->vectors[X], 0, (size_t)bed->csr.rows * sizeof(double), &bed->diag);
    if (!s) s = check(bed, cbgen_solve(solver, at(bed, B), at(bed, X), NULL), cbgen_solver_message(solver));
  }
  if (!s) s = cb_device_wait(bed->device, "solutions", &bed->diag);
  *seconds = cb_seconds() - start;
  cbgen_solver_free(solver);
  return s;
}

/* The systems' worst residual, relative to b. */
static double worst_residual(const struct bed *bed, const struct many *many, int systems) {
  const int64_t n = bed->csr.rows;
  double worst = 0;
  for (int64_t s = 0; s < systems; s++) {
    double square = 0, of_b = 0;
    for (int64_t row = 0; row < n; row++) {
      double r = bed->b[row];
      for (int64_t k = bed->row_ptr[row]; k < bed->row_ptr[row + 1]; k++)
        r -= bed->csr.values[k] * (1 + (double)s / 8192) * (bed->csr.col_idx[k] == row ? 1 + (double)s / 8192 : 1) *
             many->numbers[s * n + bed->csr.col_idx[k]];
      square += r * r;
      of_b += bed->b[row] * bed->b[row];
    }
    worst = fmax(worst, sqrt(square / of_b));
  }
  return worst;
}

/* *loop: of solutions one after the other, measured if it is 0. */
static enum cb_status time_many(struct bed *bed, struct many *many, const char *name, int systems, const char *form,
                                double *loop) {
  const cbgen_batch_options options = {.struct_size = sizeof options,
                                       .systems = systems,
                                       .diagonals = (void *)(uintptr_t)many->diagonals,
                                       .program_form = form};
  double times[SOLUTIONS];
  int iterations = 0;
  enum cb_status s = check(bed, cbgen_batch_create(bed->context, &bed->view, "cg", &options, &many->batch),
                           cbgen_message(bed->context));
  for (int i = -1; i < SOLUTIONS && !s; i++) s = solve_many(bed, many, systems, &times[i < 0 ? 0 : i]);
  if (!s) s = check(bed, cbgen_batch_outcomes(many->batch, many->outcomes), cbgen_batch_message(many->batch));
  for (int i = 0; i < systems && !s; i++) {
    iterations += many->outcomes[i].iterations;
    if (many->outcomes[i].reason != CBGEN_REASON_CONVERGED)
      s = cb_fail(&bed->diag, CB_ERR_WRONG, "system %d: reason %d", i, many->outcomes[i].reason);
  }
  if (!s)
    s = cb_device_download(bed->device, many->numbers, many->x, (size_t)(systems * bed->csr.rows) * sizeof(double), "x",
                           &bed->diag);
  if (!s && !bed->only_checks && *loop == 0) s = time_loop(bed, systems, loop);
  if (s) return s;
  const double worst = worst_residual(bed, many, systems), batch = cb_median(times, SOLUTIONS);
  printf("batch     %-30.30s %9lld %10lld %s: %d systems in %.3f ms, one after the other in %.3f ms (%.1f times as long), "
         "%.1f iterations each, residuals at most %.2e\n",
         name, (long long)bed->csr.rows, (long long)bed->csr.nnz, form, systems, 1e3 * batch, 1e3 * *loop, *loop / batch,
         (double)iterations / systems, worst);
  return worst < 1e-7 ? CB_OK : cb_fail(&bed->diag, CB_ERR_WRONG, "a residual of %g", worst);
}

static enum cb_status run_many(struct bed *bed, const char *name) {
  const int systems = bed->only_checks ? 20 : 1000;
  static const char *const forms[] = {"block", "block+resident"};
  struct many many = {0};
  double loop = 0;
  enum cb_status s = fill_many(bed, &many, systems);
  for (int i = 0; i < 2 && !s; i++) {
    s = time_many(bed, &many, name, systems, forms[i], &loop);
    cbgen_batch_free(many.batch);
    many.batch = NULL;
  }
  cb_device_free(bed->device, many.values);
  cb_device_free(bed->device, many.b);
  cb_device_free(bed->device, many.x);
  cb_device_free(bed->device, many.diagonals);
  cb_free(many.numbers);
  cb_free(many.outcomes);
  return s;
}

static enum cb_status run(struct bed *bed, const char *method, const char *name, const char *recipe, const char *list) {
  const int is_cg = !strcmp(method, "cg");
  struct timing timing = {0};
  double seconds = 0;
  int failed = 0;
  const int unsymmetric = !strcmp(method, "bicgstab") || !strcmp(method, "gmres");
  bed->ranks = !strcmp(method, "pagerank");
  enum cb_status s = bed->ranks ? make_links(bed, name) : make_system(bed, name, !unsymmetric);
  if (!s) s = make_vectors(bed);
  if (!s) s = make_operator(bed, recipe, method);
  if (!s && !strcmp(method, "batch")) return run_many(bed, name);
  if (!s && !bed->only_checks) s = check(bed, cbgen_operator_measure(bed->op, &seconds), cbgen_operator_message(bed->op));
  timing.product = 1e6 * seconds;
  if (!s && is_cg && !bed->only_checks && !bed->alone && (make_parts(bed) || time_parts(bed, &timing.parts))) {
    fprintf(stderr, "%s: without parts: %s\n", name, bed->diag.message);
    s = check(bed, cbgen_diagonal(bed->context, &bed->view, at(bed, D)), cbgen_message(bed->context));
  }
  if (!s && vendor_has(method) && !bed->only_checks && !bed->alone) {
    s = time_vendor(bed, method, &timing);
    if (s) fprintf(stderr, "%s: without cuSPARSE and cuBLAS: %s\n", name, bed->diag.message);
    failed = s && s != CB_ERR_MISSING;
    s = bed->ranks ? CB_OK : check(bed, cbgen_diagonal(bed->context, &bed->view, at(bed, D)), cbgen_message(bed->context));
  }
  for (const char *at_list = list; at_list && !s; at_list = strchr(at_list, ',') ? strchr(at_list, ',') + 1 : NULL) {
    char form[48];
    snprintf(form, sizeof form, "%.*s", (int)strcspn(at_list, ","), at_list);
    if (measure(bed, method, name, form, &timing)) fprintf(stderr, "%s, %s: %s\n", name, form, bed->diag.message), failed = 1;
  }
  return s ? s : failed ? CB_ERR_WRONG : CB_OK;
}

static int run_one(const struct bed *made, const char *what, const char *recipe, const char *forms) {
  struct bed bed = *made;
  char method[16] = "cg";
  const char *name = what, *colon = strchr(what, ':');
  if (colon && strncmp(what, "generate:", 9) != 0) {
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
      "bicgstab:generate:stencil7,n=128", "pagerank:generate:rmat,scale=20", "chebyshev:generate:stencil7,n=160",
      "minres:generate:fe3,n=48", "gmres:generate:stencil7,n=64", "batch:generate:stencil7,n=10", NULL};
  const char *recipe = "auto", *forms = "auto", *json_path = NULL;
  struct cb_driver *driver = NULL;
  struct cb_device *device = NULL;
  struct bed bed = {.repeats = REPEATS};
  int word = 1, good = 1;
  for (; word + 1 < count && !strncmp(words[word], "--", 2); word += 2) {
    if (!strcmp(words[word], "--recipe")) recipe = words[word + 1];
    if (!strcmp(words[word], "--check")) bed.only_checks = atoi(words[word + 1]);
    if (!strcmp(words[word], "--alone")) bed.alone = atoi(words[word + 1]);
    if (!strcmp(words[word], "--repeats")) bed.repeats = atoi(words[word + 1]);
    if (!strcmp(words[word], "--forms")) forms = words[word + 1];
    if (!strcmp(words[word], "--json")) json_path = words[word + 1];
    if (!strcmp(words[word], "--set") && settings_count < MOST_SETTINGS) settings[settings_count++] = words[word + 1];
  }
  bed.json = json_path ? fopen(json_path, "w") : NULL;
  if (!bench_open(&driver, &device)) return 1;
  bed.driver = driver;
  bed.device = device;
  printf("%-9s %-30s %9s %10s %-24s %9s %9s %9s %9s %6s %9s %9s  (us per iteration)\n", "method", "matrix", "rows", "nonzeros",
         "form", "solver", "parts", "vendor", "graph", "share", "product", "floor");
  for (int i = 0; word == count && standard[i]; i++) good &= run_one(&bed, standard[i], recipe, forms);
  for (; word < count; word++) good &= run_one(&bed, words[word], recipe, forms);
  if (bed.json) fclose(bed.json);
  bench_close(driver, device);
  return !good;
}
