// SPDX-License-Identifier: Apache-2.0
/* Linear programs by cbgen_lp_solve, beside the two products that each iteration has.
 *
 *   bench_lp [--products 1] [--check 1] [--set NAME=VALUE]… [MATRIX…]
 *
 * MATRIX: a file, or generate:SHAPE. --set: a setting of the context (cbgen_set), as recipe=merge.
 * --products 1: solvers do not get the matrix, so that iterations are products of the operators. With --check 1 each
 * program is solved once and nothing is timed: for compute-sanitizer. Bounds and costs are drawn so that a known x and y are optimal; rows and columns are
 * scaled (cbgen_lp_scales). An iteration's time is the difference of two solutions of different numbers of iterations,
 * medians of SOLUTIONS: what begins and ends a solution is in neither. "products": that with A and that with its
 * transpose, each alone, back to back (cbgen_operator_measure). "floor": what an iteration must move, the arrays of both
 * operators and 20 vectors, at 4.4 TB/s, or from L2 at 8 TB/s. "vendor": the same iteration, but without checks and
 * restarts, by cuSPARSE's fastest SpMV for A and for its transpose and two kernels (lp_vendor.h), each call by itself;
 * "graph": captured as a CUDA graph; "share": "iteration" of "graph". The vendor's x after some iterations is compared
 * with the host's. Then a solution to 1e-4: iterations, and its value beside the best. Solutions are repeated and must
 * have the same bits. The exit status is 1 when anything is wrong; without cuSPARSE its columns are 0. It reads
 * bench/lp_parts.cu in the current folder. */
#include "bench/common.h"
#include "bench/lp_vendor.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cbgen.h"
#include "frontend/read.h"
#include "runtime/cuda/driver.h"
#include "runtime/measure/timer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOLUTIONS = 5, FEW = 256, MANY = 1280, REPEATS = 3, CHECKED = 2 * LP_VENDOR_CAPTURED, MOST_SETTINGS = 8 };

static const char *settings[MOST_SETTINGS]; /* of contexts, "NAME=VALUE" each */
static int settings_count;
static int only_products, only_checks;

enum { COST, LOWER, UPPER, ROW_LOWER, ROW_UPPER, X, Y, ROW_SCALES, COLUMN_SCALES, VECTORS };

struct bed {
  const struct cb_device *device;
  struct cb_csr csr;
  int32_t *row_ptr;
  cbgen_csr view;
  cbgen_context *context;
  cbgen_operator *a, *transposed;
  double *host[VECTORS], best;
  cb_device_ptr there[VECTORS];
  struct cb_diag diag;
};

static enum cb_status check(struct bed *bed, cbgen_status status, const char *message) {
  return status ? cb_fail(&bed->diag, (enum cb_status)status, "%s", message) : CB_OK;
}

static void *at(const struct bed *bed, int vector) { return (void *)(uintptr_t)bed->there[vector]; }

static int64_t entries_of(const struct bed *bed, int vector) {
  return vector == ROW_LOWER || vector == ROW_UPPER || vector == Y || vector == ROW_SCALES ? bed->csr.rows
                                                                                          : bed->csr.cols;
}

/* ---- programs */

static double part(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(*state >> 11) * 0x1p-53;
}

/* to = A from; or, transposed, of the transpose. */
static void multiply(const struct cb_csr *csr, int transposed, const double *from, double *to) {
  memset(to, 0, (size_t)(transposed ? csr->cols : csr->rows) * sizeof *to);
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      if (transposed) to[csr->col_idx[k]] += csr->values[k] * from[row];
      else to[row] += csr->values[k] * from[csr->col_idx[k]];
}

/* Equations, and rows that a lower bound holds, or none; x at its lower bound 0, or above it. */
static void draw(struct bed *bed) {
  double **host = bed->host;
  uint64_t state = 7;
  for (int64_t i = 0; i < bed->csr.cols; i++) {
    host[X][i] = part(&state) < 0.5 ? 0 : part(&state);
    host[LOWER][i] = 0;
    host[UPPER][i] = part(&state) < 0.5 ? INFINITY : 2;
  }
  multiply(&bed->csr, 0, host[X], host[ROW_LOWER]);
  for (int64_t i = 0; i < bed->csr.rows; i++) {
    const double kind = part(&state);
    host[ROW_UPPER][i] = kind < 0.5 ? host[ROW_LOWER][i] : INFINITY;
    host[Y][i] = kind < 0.5 ? 2 * part(&state) - 1 : kind < 0.8 ? part(&state) : 0;
    if (kind >= 0.8) host[ROW_LOWER][i] -= 1;
  }
  multiply(&bed->csr, 1, host[Y], host[COST]);
  bed->best = 0;
  for (int64_t i = 0; i < bed->csr.cols; i++) {
    if (host[X][i] == 0) host[COST][i] += part(&state);
    bed->best += host[COST][i] * host[X][i];
  }
}

static enum cb_status make_vectors(struct bed *bed) {
  enum cb_status s = CB_OK;
  for (int i = 0; i < VECTORS && !s; i++) {
    const size_t count = (size_t)entries_of(bed, i);
    bed->host[i] = cb_calloc(count, sizeof *bed->host[i]);
    if (!bed->host[i]) return cb_fail_memory(&bed->diag, "a vector", count);
    s = cb_device_alloc(bed->device, &bed->there[i], count * sizeof(double), "a vector", &bed->diag);
  }
  if (s) return s;
  draw(bed);
  for (int i = 0; i < X && !s; i++)
    s = cb_device_upload(bed->device, bed->there[i], bed->host[i], (size_t)entries_of(bed, i) * sizeof(double), "a vector",
                         &bed->diag);
  return s;
}

static enum cb_status make_operators(struct bed *bed) {
  cbgen_request request = {.struct_size = sizeof request, .specialise = CBGEN_SPECIALISE_NOW};
  enum cb_status s = bench_view(&bed->view, &bed->row_ptr, &bed->csr, &bed->diag);
  if (!s) s = check(bed, cbgen_context_create(&bed->context), "no context");
  if (!s) s = check(bed, cbgen_set(bed->context, "program-loss", "600"), cbgen_message(bed->context));
  if (!s) s = bench_set_all(bed->context, settings, settings_count, &bed->diag);
  if (!s) s = check(bed, cbgen_compile(bed->context, &bed->view, &request, &bed->a), cbgen_message(bed->context));
  request.transpose = 1;
  if (!s) s = check(bed, cbgen_compile(bed->context, &bed->view, &request, &bed->transposed), cbgen_message(bed->context));
  return s ? s
           : check(bed, cbgen_lp_scales(bed->context, &bed->view, at(bed, ROW_SCALES), at(bed, COLUMN_SCALES)),
                   cbgen_message(bed->context));
}

/* ---- solutions */

static enum cb_status solver_for(struct bed *bed, int iterations, double tolerance, cbgen_lp **lp) {
  const cbgen_lp_options options = {.struct_size = sizeof options,
                                    .relative_tolerance = tolerance,
                                    .absolute_tolerance = tolerance,
                                    .max_iterations = iterations,
                                    .row_scales = at(bed, ROW_SCALES),
                                    .column_scales = at(bed, COLUMN_SCALES),
                                    .matrix = only_products ? NULL : &bed->view};
  return check(bed, cbgen_lp_create(bed->a, bed->transposed, &options, lp), cbgen_operator_message(bed->a));
}

/* From zeros. *seconds: until it is there. */
static enum cb_status solve(struct bed *bed, cbgen_lp *lp, cbgen_lp_result *result, double *seconds) {
  const cbgen_lp_problem problem = {.struct_size = sizeof problem,
                                    .cost = at(bed, COST),
                                    .lower = at(bed, LOWER),
                                    .upper = at(bed, UPPER),
                                    .row_lower = at(bed, ROW_LOWER),
                                    .row_upper = at(bed, ROW_UPPER)};
  enum cb_status s = CB_OK;
  for (int i = X; i <= Y && !s; i++)
    s = cb_device_fill(bed->device, bed->there[i], 0, (size_t)entries_of(bed, i) * sizeof(double), &bed->diag);
  if (!s) s = cb_device_wait(bed->device, "x", &bed->diag);
  const double start = cb_seconds();
  if (!s) s = check(bed, cbgen_lp_solve(lp, &problem, at(bed, X), at(bed, Y), NULL), cbgen_lp_message(lp));
  if (!s) s = check(bed, cbgen_lp_outcome(lp, result), cbgen_lp_message(lp));
  *seconds = cb_seconds() - start;
  return s;
}

static enum cb_status time_solutions(struct bed *bed, int iterations, double *median) {
  double times[SOLUTIONS];
  cbgen_lp_result result;
  cbgen_lp *lp = NULL;
  enum cb_status s = solver_for(bed, iterations, 1e-300, &lp);
  for (int i = -1; i < SOLUTIONS && !s; i++) s = solve(bed, lp, &result, &times[i < 0 ? 0 : i]);
  if (!s && result.iterations != iterations)
    s = cb_fail(&bed->diag, CB_ERR_WRONG, "%d iterations instead of %d", result.iterations, iterations);
  cbgen_lp_free(lp);
  *median = s ? 0 : cb_median(times, SOLUTIONS);
  return s;
}

/* Several times to 1e-4: the same bits, and a value near the best. */
static enum cb_status check_solutions(struct bed *bed, cbgen_lp_result *result, double *seconds) {
  const size_t bytes = (size_t)bed->csr.cols * sizeof(double);
  double *first = bed->host[COLUMN_SCALES]; /* which is on the device */
  cbgen_lp *lp = NULL;
  int differ = 0;
  enum cb_status s = solver_for(bed, 50000, 1e-4, &lp);
  for (int i = 0; i < (only_checks ? 1 : REPEATS) && !s; i++) {
    s = solve(bed, lp, result, seconds);
    if (!s) s = cb_device_download(bed->device, bed->host[X], bed->there[X], bytes, "x", &bed->diag);
    if (!i && !s) memcpy(first, bed->host[X], bytes);
    differ |= !s && memcmp(first, bed->host[X], bytes) != 0;
  }
  cbgen_lp_free(lp);
  if (s) return s;
  if (differ) return cb_fail(&bed->diag, CB_ERR_WRONG, "bits differ from solution to solution");
  if (result->reason != CBGEN_REASON_CONVERGED || fabs(result->primal_value - bed->best) > 0.01 * (1 + fabs(bed->best)))
    return cb_fail(&bed->diag, CB_ERR_WRONG, "reason %d after %d iterations, value %g, best %g", result->reason,
                   result->iterations, result->primal_value, bed->best);
  return CB_OK;
}

/* ---- cuSPARSE */

struct vendor_runs {
  struct bed *bed;
  struct lp_vendor *vendor;
  enum vendor_way way;
};

struct vendor_times {
  double microseconds[VENDOR_WAYS]; /* 0: not measured */
  char products[64];
};

static enum cb_status run_vendor(void *user, int iterations) {
  const struct vendor_runs *runs = user;
  return lp_vendor_run(runs->vendor, runs->way, iterations, &runs->bed->diag);
}

static enum cb_status time_way(const struct vendor_runs *runs, double *microseconds) {
  double difference = 0;
  enum cb_status s = lp_vendor_run(runs->vendor, runs->way, CHECKED, &runs->bed->diag);
  if (!s) s = lp_vendor_difference(runs->vendor, CHECKED, &difference, &runs->bed->diag);
  if (!s && !(difference < 1e-9))
    s = cb_fail(&runs->bed->diag, CB_ERR_WRONG, "with cuSPARSE x is %g from the host's", difference);
  return s ? s : vendor_time(run_vendor, (void *)runs, FEW, MANY, microseconds);
}

/* Both ways. CB_ERR_MISSING: there is no cuSPARSE. */
static enum cb_status time_vendor(struct bed *bed, struct vendor_times *times) {
  struct vendor_runs runs = {.bed = bed};
  double *const *host = bed->host;
  enum cb_status s = CB_OK;
  for (int i = ROW_SCALES; i <= COLUMN_SCALES && !s; i++)
    s = cb_device_download(bed->device, host[i], bed->there[i], (size_t)entries_of(bed, i) * sizeof(double), "scales",
                           &bed->diag);
  const struct lp_vendor_problem problem = {.csr = &bed->csr, .cost = host[COST], .lower = host[LOWER],
                                            .upper = host[UPPER], .row_lower = host[ROW_LOWER],
                                            .row_upper = host[ROW_UPPER], .row_scales = host[ROW_SCALES],
                                            .column_scales = host[COLUMN_SCALES]};
  if (!s) s = lp_vendor_open(&runs.vendor, bed->device, &problem, &bed->diag);
  for (runs.way = 0; runs.way < VENDOR_WAYS && !s; runs.way++) s = time_way(&runs, &times->microseconds[runs.way]);
  if (!s) snprintf(times->products, sizeof times->products, ", cuSPARSE: %s", lp_vendor_products(runs.vendor));
  lp_vendor_close(runs.vendor);
  return s;
}

/* ---- one matrix */

static double floor_of(const struct bed *bed) {
  cbgen_info a = {.struct_size = sizeof a}, transposed = {.struct_size = sizeof transposed};
  if (cbgen_operator_info(bed->a, &a) || cbgen_operator_info(bed->transposed, &transposed)) return 0;
  /* Of columns: the product's two, cost, both bounds, x read and written, anchor, scale; ahead written. Of rows likewise
   * without a cost and ahead. */
  const double bytes = (double)(a.stored_bytes + transposed.stored_bytes) +
                       sizeof(double) * (11.0 * (double)bed->csr.cols + 9.0 * (double)bed->csr.rows);
  return 1e6 * bytes / (bytes < 45e6 ? 8e12 : 4.4e12);
}

static enum cb_status check_only(struct bed *bed, const char *name) {
  cbgen_lp_result result = {0};
  double seconds = 0;
  const enum cb_status s = check_solutions(bed, &result, &seconds);
  if (!s) printf("%-36.36s %d iterations, value %.6g, best %.6g\n", name, result.iterations, result.primal_value, bed->best);
  return s;
}

static enum cb_status run(struct bed *bed, const char *name) {
  double few = 0, many = 0, of_a = 0, of_transposed = 0, seconds = 0;
  cbgen_lp_result result = {0};
  struct vendor_times vendor = {0};
  enum cb_status s = cb_matrix_read(&bed->csr, name, NULL, &bed->diag);
  if (!s) s = make_vectors(bed);
  if (!s) s = make_operators(bed);
  if (!s && only_checks) return check_only(bed, name);
  if (!s) s = check(bed, cbgen_operator_measure(bed->a, &of_a), cbgen_operator_message(bed->a));
  if (!s) s = check(bed, cbgen_operator_measure(bed->transposed, &of_transposed), cbgen_operator_message(bed->transposed));
  if (!s) s = time_solutions(bed, FEW, &few);
  if (!s) s = time_solutions(bed, MANY, &many);
  if (!s) s = time_vendor(bed, &vendor);
  if (s == CB_ERR_MISSING) {
    fprintf(stderr, "%s: without cuSPARSE: %s\n", name, bed->diag.message);
    s = CB_OK;
  }
  if (!s) s = check_solutions(bed, &result, &seconds);
  if (s) return s;
  const double iteration = 1e6 * (many - few) / (MANY - FEW), graph = vendor.microseconds[VENDOR_GRAPH];
  printf("%-36.36s %8lld %8lld %9lld %9.2f %9.2f %9.2f %9.2f %9.2f %6.2f  %d iterations in %.2f ms, value %.6g, best "
         "%.6g%s, %s %s\n",
         name, (long long)bed->csr.rows, (long long)bed->csr.cols, (long long)bed->csr.nnz, iteration,
         1e6 * (of_a + of_transposed), floor_of(bed), vendor.microseconds[VENDOR_FROM_HOST], graph,
         graph > 0 ? iteration / graph : 0, result.iterations, 1e3 * seconds, result.primal_value, bed->best,
         vendor.products, cbgen_operator_plan(bed->a), cbgen_operator_plan(bed->transposed));
  fflush(stdout);
  return CB_OK;
}

static int run_one(const struct cb_device *device, const char *name) {
  struct bed bed = {.device = device};
  const enum cb_status s = run(&bed, name);
  if (s) fprintf(stderr, "%s: %s\n", name, bed.diag.message);
  cbgen_operator_free(bed.a);
  cbgen_operator_free(bed.transposed);
  cbgen_context_destroy(bed.context);
  for (int i = 0; i < VECTORS; i++) {
    cb_device_free(device, bed.there[i]);
    cb_free(bed.host[i]);
  }
  cb_free(bed.row_ptr);
  cb_csr_release(&bed.csr);
  return !s;
}

/* How many words are taken. */
static int take_settings(int count, char **words) {
  int at = 1;
  for (; at + 1 < count; at += 2)
    if (!strcmp(words[at], "--products")) only_products = atoi(words[at + 1]);
    else if (!strcmp(words[at], "--check")) only_checks = atoi(words[at + 1]);
    else break;
  for (; at + 1 < count && !strcmp(words[at], "--set") && settings_count < MOST_SETTINGS; at += 2)
    settings[settings_count++] = words[at + 1];
  return at;
}

int main(int count, char **words) {
  static const char *const standard[] = {"generate:random,rows=2400,cols=55000,density=0.0024",
                                         "generate:random,rows=20000,cols=80000,density=0.0005",
                                         "generate:random,rows=100000,cols=400000,density=0.0001", NULL};
  struct cb_driver *driver = NULL;
  struct cb_device *device = NULL;
  const int first = take_settings(count, words);
  int good = 1;
  if (!bench_open(&driver, &device)) return 1;
  if (!only_checks)
    printf("%-36s %8s %8s %9s %9s %9s %9s %9s %9s %6s  (us per iteration)\n", "matrix", "rows", "columns", "nonzeros",
         "iteration", "products", "floor", "vendor", "graph", "share");
  for (int i = 0; count == first && standard[i]; i++) good &= run_one(device, standard[i]);
  for (int i = first; i < count; i++) good &= run_one(device, words[i]);
  bench_close(driver, device);
  return !good;
}
