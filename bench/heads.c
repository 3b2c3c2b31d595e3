// SPDX-License-Identifier: Apache-2.0
/* What split values cost and gain: products of whole values, of split ones, and with heads alone; and conjugate
 * gradients with each, in the form that is chosen and as a graph.
 *
 *   bench_heads [MATRIX…]        MATRIX: a file, or generate:SHAPE, of a symmetric pattern
 *
 * A matrix gets values of its own: a network of conductors of odd strengths on its pattern, which is held where the
 * first rows are, so that it is symmetric and positive definite, and takes some hundred iterations. Vectors are doubles.
 * "floats" is an operator of type f32-f64, which heads can be no faster than. Products are timed between events
 * (runtime/measure/timer.h), solutions to 1e-10 by the clock, with Jacobi's preconditioner: medians of SOLUTIONS.
 *
 * Products of split values must have the bits of those of whole ones, and with heads those of floats, where the plans
 * are the same; the host's residual must be what was asked for. The exit status is 1 when anything is wrong. */
#include "bench/common.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cbgen.h"
#include "codegen/source.h"
#include "frontend/read.h"
#include "runtime/cuda/driver.h"
#include "runtime/measure/timer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SOLUTIONS = 5, BATCHES = 7 };
enum { WHOLE, SPLIT, HEADS, FLOATS, PRODUCTS };
enum { B, X, D, Y, VECTORS };
static const char *const types[] = {[WHOLE] = "f64", [SPLIT] = "split-f64", [FLOATS] = "f32-f64"};

struct bed {
  const struct cb_device *device;
  struct cb_timer timer;
  struct cb_csr csr;
  int32_t *row_ptr;
  cbgen_csr view;
  cbgen_context *contexts[PRODUCTS];
  cbgen_operator *ops[PRODUCTS]; /* HEADS: the split one's */
  cb_device_ptr vectors[VECTORS];
  double *b, *x, *y[PRODUCTS];
  struct cb_diag diag;
};

/* What is timed. */
struct product {
  struct bed *bed;
  int kind;
};

static void *at(const struct bed *bed, int vector) { return (void *)(uintptr_t)bed->vectors[vector]; }

static enum cb_status check(struct bed *bed, cbgen_status status, const char *message) {
  return status ? cb_fail(&bed->diag, (enum cb_status)status, "%s", message) : CB_OK;
}

/* ---- a system */

/* Between 0.5 and 1.5, the same for (i, j) and (j, i). */
static double strength_of(int64_t i, int64_t j) {
  const uint64_t low = (uint64_t)(i < j ? i : j), high = (uint64_t)(i < j ? j : i);
  return 1 + 0.5 * cb_selftest_x(low * 1000003 + high);
}

static enum cb_status make_system(struct bed *bed, const char *name) {
  struct cb_csr *csr = &bed->csr;
  enum cb_status s = cb_matrix_read(csr, name, NULL, &bed->diag);
  if (s) return s;
  if (csr->rows != csr->cols) return cb_fail(&bed->diag, CB_ERR_ARGUMENT, "'%s' is not square", name);
  const int64_t held = (int64_t)cbrt((double)csr->rows * (double)csr->rows);
  for (int64_t row = 0; row < csr->rows; row++) {
    double sum = row < held ? 1 : 1e-12;
    int64_t own = -1;
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      if (csr->col_idx[k] == row) own = k;
      else sum += csr->values[k] = strength_of(row, csr->col_idx[k]);
      if (csr->col_idx[k] != row) csr->values[k] = -csr->values[k];
    }
    if (own < 0) return cb_fail(&bed->diag, CB_ERR_ARGUMENT, "'%s' has no diagonal", name);
    csr->values[own] = sum;
  }
  return bench_view(&bed->view, &bed->row_ptr, csr, &bed->diag);
}

static enum cb_status make_vectors(struct bed *bed) {
  const size_t n = (size_t)bed->csr.rows, bytes = n * sizeof(double);
  bed->b = cb_alloc(n, sizeof *bed->b);
  bed->x = cb_alloc(n, sizeof *bed->x);
  if (!bed->b || !bed->x) return cb_fail_memory(&bed->diag, "vectors", bytes);
  for (size_t i = 0; i < n; i++) bed->b[i] = cb_selftest_x(i);
  enum cb_status s = CB_OK;
  for (int i = 0; i < PRODUCTS && !s; i++)
    if (!(bed->y[i] = cb_alloc(n, sizeof(double)))) s = cb_fail_memory(&bed->diag, "vectors", bytes);
  for (int i = 0; i < VECTORS && !s; i++)
    s = cb_device_alloc(bed->device, &bed->vectors[i], bytes, "a vector", &bed->diag);
  return s ? s : cb_device_upload(bed->device, bed->vectors[B], bed->b, bytes, "a vector", &bed->diag);
}

/* All by the same search, so that plans differ where types make them. */
static enum cb_status make_operator(struct bed *bed, int kind) {
  cbgen_context **context = &bed->contexts[kind];
  const cbgen_request request = {.struct_size = sizeof request, .specialise = CBGEN_SPECIALISE_NOW};
  if (kind == HEADS) return CB_OK;
  enum cb_status s = check(bed, cbgen_context_create(context), "no context");
  if (!s) s = check(bed, cbgen_set(*context, "type", types[kind]), cbgen_message(*context));
  if (!s) s = check(bed, cbgen_set(*context, "search", "hopeful"), cbgen_message(*context));
  if (!s) s = check(bed, cbgen_compile(*context, &bed->view, &request, &bed->ops[kind]), cbgen_message(*context));
  if (s || kind != WHOLE) return s;
  return check(bed, cbgen_diagonal(*context, &bed->view, at(bed, D)), cbgen_message(*context));
}

/* ---- products */

static enum cb_status multiply(void *user, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct product *product = user;
  const struct bed *bed = product->bed;
  cbgen_operator *op = bed->ops[product->kind == HEADS ? SPLIT : product->kind];
  const cbgen_product wanted = {.struct_size = sizeof wanted, .alpha = 1, .x = at(bed, B), .y = at(bed, Y),
                                .stream = stream, .heads = product->kind == HEADS};
  const cbgen_status status = cbgen_multiply(op, &wanted);
  return status ? cb_fail(diag, (enum cb_status)status, "%s", cbgen_operator_message(op)) : CB_OK;
}

static enum cb_status time_product(struct bed *bed, int kind, double *us) {
  struct product product = {bed, kind};
  int launches;
  enum cb_status s = cb_timer_launches(&launches, &bed->timer, multiply, &product, &bed->diag);
  if (!s) s = cb_timer_measure(us, &bed->timer, multiply, &product, launches, BATCHES, &bed->diag);
  if (s) return s;
  return cb_device_download(bed->device, bed->y[kind], bed->vectors[Y], (size_t)bed->csr.rows * sizeof(double), "y",
                            &bed->diag);
}

static enum cb_status compare(struct bed *bed, int kind, int other, int op, int other_op) {
  const size_t bytes = (size_t)bed->csr.rows * sizeof(double);
  if (strcmp(cbgen_operator_plan(bed->ops[op]), cbgen_operator_plan(bed->ops[other_op])) != 0) return CB_OK;
  if (!memcmp(bed->y[kind], bed->y[other], bytes)) return CB_OK;
  return cb_fail(&bed->diag, CB_ERR_WRONG, "products of the plan '%s' have other bits", cbgen_operator_plan(bed->ops[op]));
}

static enum cb_status time_products(struct bed *bed, const char *name) {
  double us[PRODUCTS];
  enum cb_status s = CB_OK;
  for (int kind = 0; kind < PRODUCTS && !s; kind++) s = time_product(bed, kind, &us[kind]);
  if (!s) s = compare(bed, WHOLE, SPLIT, WHOLE, SPLIT);
  if (!s) s = compare(bed, HEADS, FLOATS, SPLIT, FLOATS);
  if (s) return s;
  printf("%s: %lld rows, %lld nonzeros, %s\n", name, (long long)bed->csr.rows, (long long)bed->csr.nnz,
         cbgen_operator_plan(bed->ops[SPLIT]));
  printf("  product, us   whole %8.2f   split %8.2f   heads %8.2f   floats %8.2f   split/heads %.2f   split/whole %.2f\n",
         us[WHOLE], us[SPLIT], us[HEADS], us[FLOATS], us[SPLIT] / us[HEADS], us[SPLIT] / us[WHOLE]);
  for (int kind = 0; kind < PRODUCTS; kind++) {
    cbgen_info info = {.struct_size = sizeof info};
    if (kind != HEADS && !cbgen_operator_info(bed->ops[kind], &info))
      printf("  %-9s %.2f bytes per nonzero, %d registers, %d bytes spilled, predicted %.2f us\n", types[kind],
             info.bytes_per_nonzero, info.registers, info.spilled_bytes, 1e6 * info.predicted_seconds);
  }
  return CB_OK;
}

/* ---- solutions */

static enum cb_status solve(struct bed *bed, cbgen_solver *solver, cbgen_outcome *outcome) {
  const size_t bytes = (size_t)bed->csr.rows * sizeof(double);
  enum cb_status s = cb_device_fill(bed->device, bed->vectors[X], 0, bytes, &bed->diag);
  if (!s) s = cb_device_wait(bed->device, "x", &bed->diag);
  if (!s) s = check(bed, cbgen_solve(solver, at(bed, B), at(bed, X), NULL), cbgen_solver_message(solver));
  return s ? s : check(bed, cbgen_solver_outcome(solver, outcome), cbgen_solver_message(solver));
}

/* *ms: of a solution. */
static enum cb_status time_solution(struct bed *bed, int kind, const char *method, const char *form, double *ms) {
  const cbgen_solver_options options = {.struct_size = sizeof options, .relative_tolerance = 1e-10,
                                        .max_iterations = 20000, .diagonal = at(bed, D), .program_form = form};
  const size_t bytes = (size_t)bed->csr.rows * sizeof(double);
  cbgen_solver *solver = NULL;
  cbgen_outcome outcome = {0};
  double times[SOLUTIONS], residual = 0, norm;
  enum cb_status s = check(bed, cbgen_solver_create(bed->ops[kind], method, &options, &solver),
                           cbgen_operator_message(bed->ops[kind]));
  for (int i = -1; i < SOLUTIONS && !s; i++) { /* the first one is not counted */
    const double start = cb_seconds();
    s = solve(bed, solver, &outcome);
    if (i >= 0) times[i] = 1e3 * (cb_seconds() - start);
  }
  if (!s) s = cb_device_download(bed->device, bed->x, bed->vectors[X], bytes, "x", &bed->diag);
  if (!s) residual = bench_residual(&bed->csr, bed->b, bed->x, &norm);
  if (!s) *ms = cb_median(times, SOLUTIONS);
  if (!s)
    printf("  %-9s %-6s values %-10s %9.2f ms, %d iterations, residual %.2e\n", method, cbgen_solver_form(solver),
           types[kind], *ms, outcome.iterations, residual);
  if (!s && (outcome.reason != CBGEN_REASON_CONVERGED || residual > 2e-10))
    s = cb_fail(&bed->diag, CB_ERR_WRONG, "%s: reason %d, residual %g", method, outcome.reason, residual);
  cbgen_solver_free(solver);
  return s;
}

static enum cb_status time_solutions(struct bed *bed) {
  double plain = 0, graph = 0, mixed = 0, mixed_graph = 0;
  enum cb_status s = time_solution(bed, WHOLE, "cg", NULL, &plain);
  if (!s) s = time_solution(bed, WHOLE, "cg", "graph", &graph);
  if (!s) s = time_solution(bed, SPLIT, "cg-mixed", NULL, &mixed);
  if (!s) s = time_solution(bed, SPLIT, "cg-mixed", "graph", &mixed_graph);
  if (!s) printf("  mixed/plain %.2f, both as graphs %.2f\n", mixed / plain, mixed_graph / graph);
  return s;
}

/* ---- all of it */

static void release(struct bed *bed) {
  for (int kind = 0; kind < PRODUCTS; kind++) {
    cbgen_operator_free(bed->ops[kind]);
    cbgen_context_destroy(bed->contexts[kind]);
    cb_free(bed->y[kind]);
  }
  for (int i = 0; i < VECTORS; i++) cb_device_free(bed->device, bed->vectors[i]);
  cb_timer_close(&bed->timer);
  cb_free(bed->b);
  cb_free(bed->x);
  cb_free(bed->row_ptr);
  cb_csr_release(&bed->csr);
}

static int run(const struct cb_device *device, const char *name) {
  struct bed bed = {.device = device};
  enum cb_status s = cb_timer_open(&bed.timer, device, NULL, &bed.diag);
  if (!s) s = make_system(&bed, name);
  if (!s) s = make_vectors(&bed);
  for (int kind = 0; kind < PRODUCTS && !s; kind++) s = make_operator(&bed, kind);
  if (!s) s = time_products(&bed, name);
  if (!s) s = time_solutions(&bed);
  if (s) fprintf(stderr, "%s: %s\n", name, bed.diag.message);
  fflush(stdout);
  release(&bed);
  return !s;
}

int main(int count, char **words) {
  static const char *const standard[] = {"generate:fe3,n=48", "generate:stencil7,n=160", "generate:stencil27,n=80"};
  struct cb_driver *driver = NULL;
  struct cb_device *device = NULL;
  int good = 1;
  if (!bench_open(&driver, &device)) return 1;
  for (int i = 0; i < 3 && count < 2; i++) good &= run(device, standard[i]);
  for (int word = 1; word < count; word++) good &= run(device, words[word]);
  bench_close(driver, device);
  return !good;
}
