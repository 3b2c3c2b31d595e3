// SPDX-License-Identifier: Apache-2.0
/* Systems of equations on the fake CUDA, and what long doubles say of their solutions. */
#ifndef CBGEN_TESTS_SOLVER_SUPPORT_H
#define CBGEN_TESTS_SOLVER_SUPPORT_H

#include "tests/api_support.h"

#include <complex.h>

/* ---- systems */

enum kind { SYMMETRIC, UNSYMMETRIC };

/* The square part of a matrix with |values|, made symmetric if asked for, and dominated by its diagonal. */
static inline struct cb_csr system_of(const char *specification, enum kind kind) {
  struct cb_diag diag = {0};
  struct cb_csr given = matrix_of(specification), result = {0};
  const int64_t n = given.rows < given.cols ? given.rows : given.cols;
  const size_t most = 2 * (size_t)given.nnz + (size_t)n;
  struct cb_coo coo = {.rows = n, .cols = n};
  double *sums = calloc((size_t)n + 1, sizeof *sums);
  coo.row_idx = cb_alloc(most, 4);
  coo.col_idx = cb_alloc(most, 4);
  coo.values = cb_alloc(most, 8);
  for (int64_t row = 0; row < n; row++)
    for (int64_t k = cb_csr_row(&given, row); k < cb_csr_row(&given, row + 1); k++) {
      const int64_t column = given.col_idx[k];
      if (column >= n || column == row) continue;
      const double value = kind == SYMMETRIC ? -0.5 : -0.25 - fabs(given.values[k]);
      for (int turned = 0; turned <= (kind == SYMMETRIC); turned++) {
        coo.row_idx[coo.count] = (int32_t)(turned ? column : row);
        coo.col_idx[coo.count] = (int32_t)(turned ? row : column);
        coo.values[coo.count++] = value;
        sums[turned ? column : row] += fabs(value);
      }
    }
  for (int64_t row = 0; row < n; row++) {
    coo.row_idx[coo.count] = coo.col_idx[coo.count] = (int32_t)row;
    coo.values[coo.count++] = 1.05 * sums[row] + 0.5 + (double)(row % 7);
  }
  assert_ok(cb_csr_from_coo(&result, &coo, &diag));
  cb_csr_release(&given);
  free(sums);
  return result;
}

/* The same with complex values: sizes stay, off-diagonal entries are turned, of the symmetric kind so that it becomes
 * Hermitian; of the other the diagonal is turned as well. */
static inline struct cb_csr complex_system_of(const char *specification, enum kind kind) {
  struct cb_diag diag = {0};
  struct cb_csr csr = system_of(specification, kind);
  assert_ok(cb_csr_make_complex(&csr, &diag));
  for (int64_t row = 0; row < csr.rows; row++)
    for (int64_t k = cb_csr_row(&csr, row); k < cb_csr_row(&csr, row + 1); k++) {
      const int64_t column = csr.col_idx[k], low = row < column ? row : column, high = row < column ? column : row;
      const int is_hermitian = kind == SYMMETRIC, sign = column < row ? -1 : 1;
      const double angle = is_hermitian ? column == row ? 0 : sign * (double)(1 + (7 * low + 3 * high) % 5)
                                        : 0.25 * (double)((3 * row + 5 * column) % 7);
      const double size = csr.values[2 * k];
      csr.values[2 * k] = size * cos(angle);
      csr.values[2 * k + 1] = size * sin(angle);
    }
  return csr;
}

/* A system with everything that a solution needs, on GPU 0. */
struct bed {
  cbgen_context *context;
  struct cb_csr csr;
  cbgen_operator *op;
  enum cb_type type;
  double *b, *x;
  uint64_t b_there, x_there, diagonal;
};

static inline cbgen_csr view_of(const struct cb_csr *csr, int32_t **pointers) {
  *pointers = calloc((size_t)csr->rows + 1, sizeof **pointers);
  for (int64_t row = 0; row <= csr->rows; row++) (*pointers)[row] = (int32_t)cb_csr_row(csr, row);
  return (cbgen_csr){.struct_size = sizeof(cbgen_csr),
                     .rows = csr->rows,
                     .cols = csr->cols,
                     .nnz = csr->nnz,
                     .row_ptr = *pointers,
                     .col_idx = csr->col_idx,
                     .values = csr->values,
                     .value_type = csr->is_complex ? CBGEN_C128 : CBGEN_F64};
}

static inline struct bed bed_of(struct cb_csr csr, const char *settings) {
  struct bed bed = {.context = new_context(settings), .csr = csr};
  int32_t *pointers;
  const cbgen_csr view = view_of(&bed.csr, &pointers);
  cbgen_info info = {.struct_size = sizeof info};
  must(bed.context, cbgen_compile(bed.context, &view, NULL, &bed.op));
  assert_int_equal(cbgen_operator_info(bed.op, &info), CBGEN_OK);
  const size_t n = (size_t)csr.rows;
  bed.type = (enum cb_type)info.vector_type;
  const size_t parts = (size_t)cb_type_parts(bed.type);
  bed.b = calloc(parts * n, sizeof *bed.b);
  bed.x = calloc(parts * n, sizeof *bed.x);
  bed.b_there = app_alloc(0, parts * n * 8);
  bed.x_there = app_alloc(0, parts * n * 8);
  bed.diagonal = app_alloc(0, parts * n * 8);
  fill_vector(bed.b_there, bed.b, csr.rows, bed.type, 3);
  must(bed.context, cbgen_diagonal(bed.context, &view, (void *)(uintptr_t)bed.diagonal));
  free(pointers);
  return bed;
}

static inline void start_from(struct bed *bed, double value) {
  const size_t n = (size_t)bed->csr.rows;
  char *bytes = calloc(n, 16);
  for (size_t i = 0; i < n; i++) cb_real_set(bytes, bed->type, (int64_t)i, value);
  assert_true(app_put(bed->x_there, bytes, n * cb_type_size(bed->type)));
  free(bytes);
}

static inline void release(struct bed *bed) {
  app_free(bed->b_there);
  app_free(bed->x_there);
  app_free(bed->diagonal);
  free(bed->b);
  free(bed->x);
  cbgen_operator_free(bed->op);
  cbgen_context_destroy(bed->context);
  cb_csr_release(&bed->csr);
}

static inline void take_x(struct bed *bed) {
  const enum cb_type part = cb_type_of_part(bed->type);
  const size_t n = (size_t)(cb_type_parts(bed->type) * bed->csr.rows), size = cb_type_size(part);
  char *bytes = calloc(n, size);
  assert_true(app_take(bytes, bed->x_there, n * size));
  for (size_t i = 0; i < n; i++) bed->x[i] = cb_real_get(bytes, part, (int64_t)i);
  free(bytes);
}

/* Number i, with its imaginary part. */
static inline long double complex number_of(const double *numbers, int64_t i, enum cb_type type) {
  return cb_type_is_complex(type) ? numbers[2 * i] + (long double complex)I * numbers[2 * i + 1] : numbers[i];
}

static inline long double square_of(long double complex number) {
  return creall(number) * creall(number) + cimagl(number) * cimagl(number);
}

/* ‖b − A x‖, and ‖b‖, in long doubles. */
static inline double host_residual(struct bed *bed, double *norm_of_b) {
  const enum cb_type part = cb_type_of_part(bed->type);
  long double square = 0, of_b = 0;
  take_x(bed);
  for (int64_t row = 0; row < bed->csr.rows; row++) {
    const long double complex b = number_of(bed->b, row, bed->type);
    long double complex r = b;
    for (int64_t k = cb_csr_row(&bed->csr, row); k < cb_csr_row(&bed->csr, row + 1); k++) {
      double value[2] = {0};
      for (int i = 0; i < cb_type_parts(bed->type); i++)
        value[i] = cb_real_round(bed->csr.values[cb_type_parts(bed->type) * k + i], part);
      r -= number_of(value, 0, bed->type) * number_of(bed->x, bed->csr.col_idx[k], bed->type);
    }
    square += square_of(r);
    of_b += square_of(b);
  }
  *norm_of_b = (double)sqrtl(of_b);
  return (double)sqrtl(square);
}

static inline cbgen_outcome solved(struct bed *bed, const char *method, const cbgen_solver_options *options) {
  cbgen_solver *solver;
  cbgen_outcome outcome;
  must_operator(bed->op, cbgen_solver_create(bed->op, method, options, &solver));
  if (cbgen_solve(solver, (void *)(uintptr_t)bed->b_there, (void *)(uintptr_t)bed->x_there, NULL))
    fail_msg("%s", cbgen_solver_message(solver));
  assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
  cbgen_solver_free(solver);
  return outcome;
}

static inline cbgen_solver_options with_diagonal(const struct bed *bed, int wanted) {
  return (cbgen_solver_options){.struct_size = sizeof(cbgen_solver_options),
                                .diagonal = wanted ? (void *)(uintptr_t)bed->diagonal : NULL};
}

/* ---- solutions */

static inline cbgen_csr diagonal_view(int64_t n, int32_t *pointers, int32_t *columns, const double *values) {
  for (int32_t i = 0; i <= n; i++) pointers[i] = columns[i < n ? i : 0] = i;
  columns[0] = 0;
  return (cbgen_csr){.struct_size = sizeof(cbgen_csr), .rows = n, .cols = n, .nnz = n, .row_ptr = pointers,
                     .col_idx = columns, .values = values};
}

static inline void check_solution(const char *matrix, enum kind kind, const char *settings, const char *method,
                                  int diagonal) {
  struct bed bed = bed_of(system_of(matrix, kind), settings);
  const cbgen_solver_options options = with_diagonal(&bed, diagonal);
  const double limit = bed.type == CB_F64 ? 1e-8 : 1e-5, slack = bed.type == CB_F64 ? 1e-13 : 1e-5;
  double norm;
  start_from(&bed, 0.25);
  const cbgen_outcome outcome = solved(&bed, method, &options);
  const double residual = host_residual(&bed, &norm);
  if (outcome.reason != CBGEN_REASON_CONVERGED)
    fail_msg("%s, %s, %s: reason %d after %d iterations, residual %g", matrix, settings, method, outcome.reason,
             outcome.iterations, outcome.residual);
  assert_true(outcome.iterations > 1 && outcome.iterations < 500);
  assert_true(outcome.residual <= limit * norm);
  assert_true(residual <= (2 * limit + slack) * norm);
  assert_true(fabs(outcome.true_residual - residual) <= slack * norm);
  release(&bed);
}

/* Of a diagonal matrix of 40 rows with these values, four in turn, for b of ones but for row `at`, and the first guess
 * 0. */
static inline cbgen_outcome of_diagonal(const double *values, const char *method, int at, double b,
                                        cbgen_solver_options options) {
  enum { N = 40 };
  int32_t pointers[N + 1], columns[N];
  double all[N], right[N], zeros[N] = {0};
  cbgen_context *context = new_context("recipe=sell");
  cbgen_operator *op;
  cbgen_solver *solver;
  cbgen_outcome outcome;
  for (int i = 0; i < N; i++) {
    all[i] = values[i % 4];
    right[i] = i == at ? b : 1;
  }
  const cbgen_csr view = diagonal_view(N, pointers, columns, all);
  const uint64_t b_there = app_alloc(0, sizeof right), x_there = app_alloc(0, sizeof zeros);
  assert_true(app_put(b_there, right, sizeof right) && app_put(x_there, zeros, sizeof zeros));
  must(context, cbgen_compile(context, &view, NULL, &op));
  options.struct_size = sizeof options;
  must_operator(op, cbgen_solver_create(op, method, &options, &solver));
  assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
  assert_int_equal(outcome.reason, CBGEN_REASON_NONE);
  assert_int_equal(cbgen_solve(solver, (void *)(uintptr_t)b_there, (void *)(uintptr_t)x_there, NULL), CBGEN_OK);
  assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
  cbgen_solver_free(solver);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  app_free(b_there);
  app_free(x_there);
  return outcome;
}

/* Three iterations; the solution is in x. */
static inline void iterate(struct bed *bed, const char *method, const char *form, int blocks, int has_diagonal) {
  cbgen_solver_options options = with_diagonal(bed, has_diagonal);
  options.program_form = form;
  options.thread_blocks = blocks;
  options.max_iterations = 3;
  start_from(bed, 0.125);
  assert_int_equal(solved(bed, method, &options).reason, CBGEN_REASON_ITERATIONS);
  take_x(bed);
}

#endif
