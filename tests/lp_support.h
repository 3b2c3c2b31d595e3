// SPDX-License-Identifier: Apache-2.0
/* Linear programs of a known solution on the fake CUDA, and what long doubles say of what is found. */
#ifndef CBGEN_TESTS_LP_SUPPORT_H
#define CBGEN_TESTS_LP_SUPPORT_H

#include "tests/solver_support.h"

enum { COST, LOWER, UPPER, ROW_LOWER, ROW_UPPER, PRIMAL, DUAL, ROW_SCALES, COLUMN_SCALES, LP_VECTORS };

/* Host arrays of all vectors, and where they lie on GPU 0. */
struct lp_bed {
  cbgen_context *context;
  struct cb_csr csr;
  cbgen_operator *a, *transposed;
  enum cb_type type;
  double *host[LP_VECTORS];
  uint64_t there[LP_VECTORS];
  double best; /* the value of the solution that it was made from */
};

static inline int64_t entries_of(const struct lp_bed *bed, int vector) {
  return vector == ROW_LOWER || vector == ROW_UPPER || vector == DUAL || vector == ROW_SCALES ? bed->csr.rows
                                                                                             : bed->csr.cols;
}

static inline void put_lp(struct lp_bed *bed, int vector) {
  const int64_t count = entries_of(bed, vector);
  char *bytes = calloc((size_t)count, 8);
  for (int64_t i = 0; i < count; i++) {
    bed->host[vector][i] = cb_real_round(bed->host[vector][i], bed->type);
    cb_real_set(bytes, bed->type, i, bed->host[vector][i]);
  }
  assert_true(app_put(bed->there[vector], bytes, (size_t)count * cb_type_size(bed->type)));
  free(bytes);
}

static inline void take_lp(struct lp_bed *bed, int vector) {
  const size_t count = (size_t)entries_of(bed, vector), size = cb_type_size(bed->type);
  char *bytes = calloc(count, size);
  assert_true(app_take(bytes, bed->there[vector], count * size));
  for (size_t i = 0; i < count; i++) bed->host[vector][i] = cb_real_get(bytes, bed->type, (int64_t)i);
  free(bytes);
}

/* sums = A x; or, transposed, A^T x. */
static inline void multiply_lp(const struct lp_bed *bed, int transposed, const double *x, long double *sums) {
  const struct cb_csr *csr = &bed->csr;
  for (int64_t i = 0; i < (transposed ? csr->cols : csr->rows); i++) sums[i] = 0;
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      const long double value = cb_real_round(csr->values[k], bed->type);
      if (transposed) sums[csr->col_idx[k]] += value * x[row];
      else sums[row] += value * x[csr->col_idx[k]];
    }
}

static inline double part(uint64_t *seed) { return (double)(draw(seed) >> 12) * 0x1p-52; }

/* Bounds and costs for which x and y, drawn at random, are optimal: each entry of x is free, at one of its bounds or
 * between both, and its reduced cost has the sign that this permits; rows likewise, which are equations, too. */
static inline void draw_lp(struct lp_bed *bed, uint64_t seed) {
  const int64_t rows = bed->csr.rows, cols = bed->csr.cols;
  double *const *host = bed->host;
  long double *products = calloc((size_t)(rows > cols ? rows : cols), sizeof *products);
  for (int64_t i = 0; i < cols; i++) {
    const int kind = (int)(draw(&seed) >> 30) & 3;
    const double x = kind ? part(&seed) : 0;
    host[PRIMAL][i] = x;
    host[LOWER][i] = kind == 1 ? x - 1 : kind == 2 ? -INFINITY : 0;
    host[UPPER][i] = kind == 1 ? x : kind == 3 ? 2 : INFINITY;
    host[COST][i] = kind == 0 ? part(&seed) : kind == 1 ? -part(&seed) : 0; /* the reduced one */
  }
  multiply_lp(bed, 0, host[PRIMAL], products);
  for (int64_t i = 0; i < rows; i++) {
    const int kind = (int)(draw(&seed) >> 30) & 3;
    const double ax = cb_real_round((double)products[i], bed->type);
    host[ROW_LOWER][i] = kind == 2 ? -INFINITY : kind == 3 ? ax - 1 : ax;
    host[ROW_UPPER][i] = kind == 1 || kind == 3 ? INFINITY : ax;
    host[DUAL][i] = kind == 0 ? 2 * part(&seed) - 1 : kind == 1 ? part(&seed) : kind == 2 ? -part(&seed) : 0;
  }
  multiply_lp(bed, 1, host[DUAL], products);
  long double best = 0;
  for (int64_t i = 0; i < cols; i++) {
    host[COST][i] = cb_real_round((double)(host[COST][i] + products[i]), bed->type);
    best += (long double)host[COST][i] * host[PRIMAL][i];
  }
  bed->best = (double)best;
  free(products);
}

/* `settings` are the context's, `other` those of the transpose's recipe; "": the same. */
static inline struct lp_bed lp_bed_with(struct cb_csr csr, const char *settings, const char *other, uint64_t seed,
                                        cbgen_specialise specialise, cbgen_specialise of_transposed) {
  struct lp_bed bed = {.context = new_context(settings), .csr = csr};
  const cbgen_request request = {.struct_size = sizeof request, .specialise = specialise};
  const cbgen_request turned = {.struct_size = sizeof turned, .specialise = of_transposed, .transpose = 1};
  int32_t *pointers;
  const cbgen_csr view = view_of(&bed.csr, &pointers);
  must(bed.context, cbgen_compile(bed.context, &view, &request, &bed.a));
  set_all(bed.context, other);
  must(bed.context, cbgen_compile(bed.context, &view, &turned, &bed.transposed));
  bed.type = (enum cb_type)info_of(bed.a).vector_type;
  for (int i = 0; i < LP_VECTORS; i++) {
    bed.host[i] = calloc((size_t)entries_of(&bed, i), sizeof **bed.host);
    bed.there[i] = app_alloc(0, (size_t)entries_of(&bed, i) * 8);
  }
  draw_lp(&bed, seed);
  for (int i = 0; i < PRIMAL; i++) put_lp(&bed, i);
  must(bed.context, cbgen_lp_scales(bed.context, &view, (void *)(uintptr_t)bed.there[ROW_SCALES],
                                    (void *)(uintptr_t)bed.there[COLUMN_SCALES]));
  free(pointers);
  return bed;
}

static inline struct lp_bed lp_bed_of(struct cb_csr csr, const char *settings, const char *other, uint64_t seed) {
  return lp_bed_with(csr, settings, other, seed, CBGEN_SPECIALISE_AUTO, CBGEN_SPECIALISE_AUTO);
}

static inline void release_lp(struct lp_bed *bed) {
  for (int i = 0; i < LP_VECTORS; i++) {
    free(bed->host[i]);
    app_free(bed->there[i]);
  }
  cbgen_operator_free(bed->a);
  cbgen_operator_free(bed->transposed);
  cbgen_context_destroy(bed->context);
  cb_csr_release(&bed->csr);
}

static inline void *lp_at(const struct lp_bed *bed, int vector) { return (void *)(uintptr_t)bed->there[vector]; }

static inline cbgen_lp_problem problem_of(const struct lp_bed *bed) {
  return (cbgen_lp_problem){.struct_size = sizeof(cbgen_lp_problem),
                            .cost = lp_at(bed, COST),
                            .lower = lp_at(bed, LOWER),
                            .upper = lp_at(bed, UPPER),
                            .row_lower = lp_at(bed, ROW_LOWER),
                            .row_upper = lp_at(bed, ROW_UPPER)};
}

static inline cbgen_lp_options lp_options_of(const struct lp_bed *bed, int scaled, double tolerance) {
  return (cbgen_lp_options){.struct_size = sizeof(cbgen_lp_options),
                            .relative_tolerance = tolerance,
                            .absolute_tolerance = tolerance,
                            .row_scales = scaled ? lp_at(bed, ROW_SCALES) : NULL,
                            .column_scales = scaled ? lp_at(bed, COLUMN_SCALES) : NULL};
}

static inline cbgen_lp *lp_solver_of(const struct lp_bed *bed, const cbgen_lp_options *options) {
  cbgen_lp *lp;
  must_operator(bed->a, cbgen_lp_create(bed->a, bed->transposed, options, &lp));
  return lp;
}

/* From zeros. */
static inline cbgen_lp_result lp_solved(struct lp_bed *bed, cbgen_lp *lp) {
  const cbgen_lp_problem problem = problem_of(bed);
  cbgen_lp_result result;
  for (int i = PRIMAL; i <= DUAL; i++) {
    memset(bed->host[i], 0, (size_t)entries_of(bed, i) * sizeof **bed->host);
    put_lp(bed, i);
  }
  if (cbgen_lp_solve(lp, &problem, lp_at(bed, PRIMAL), lp_at(bed, DUAL), NULL)) fail_msg("%s", cbgen_lp_message(lp));
  assert_int_equal(cbgen_lp_outcome(lp, &result), CBGEN_OK);
  take_lp(bed, PRIMAL);
  take_lp(bed, DUAL);
  return result;
}

/* What long doubles say of the host's x and y; `reason` and `iterations` stay 0. x is within its bounds. */
static inline cbgen_lp_result judged(const struct lp_bed *bed) {
  const int64_t rows = bed->csr.rows, cols = bed->csr.cols;
  double *const *host = bed->host;
  long double *products = calloc((size_t)(rows > cols ? rows : cols), sizeof *products);
  long double primal = 0, dual = 0, value = 0, dual_value = 0;
  multiply_lp(bed, 0, host[PRIMAL], products);
  for (int64_t i = 0; i < rows; i++) {
    const long double lack = host[ROW_LOWER][i] - products[i], excess = products[i] - host[ROW_UPPER][i];
    const long double miss = lack > 0 ? lack : excess > 0 ? excess : 0;
    const double y = host[DUAL][i];
    primal += miss * miss;
    if (y != 0) dual_value += (long double)y * (y > 0 ? host[ROW_LOWER][i] : host[ROW_UPPER][i]);
  }
  multiply_lp(bed, 1, host[DUAL], products);
  for (int64_t i = 0; i < cols; i++) {
    const long double r = host[COST][i] - products[i];
    const double bound = r > 0 ? host[LOWER][i] : host[UPPER][i], x = host[PRIMAL][i];
    assert_true(x >= host[LOWER][i] && x <= host[UPPER][i]);
    value += (long double)host[COST][i] * x;
    if (r != 0 && isinf(bound)) dual += r * r;
    else if (r != 0) dual_value += r * bound;
  }
  free(products);
  return (cbgen_lp_result){.primal_residual = (double)sqrtl(primal),
                           .dual_residual = (double)sqrtl(dual),
                           .primal_value = (double)value,
                           .dual_value = (double)dual_value};
}

/* The norm of a vector's finite entries, the larger of two bounds each. */
static inline double finite_norm(const struct lp_bed *bed, int first, int second) {
  long double square = 0;
  for (int64_t i = 0; i < entries_of(bed, first); i++) {
    const double a = fabs(bed->host[first][i]), b = fabs(bed->host[second][i]);
    const double larger = isinf(a) ? (isinf(b) ? 0 : b) : isinf(b) || a > b ? a : b;
    square += (long double)larger * larger;
  }
  return (double)sqrtl(square);
}

/* It says that it is solved, and is; and says rightly how well. */
static inline void must_be_solved(struct lp_bed *bed, const cbgen_lp_result *result, double tolerance,
                                  const char *what) {
  const cbgen_lp_result truth = judged(bed);
  const double size = 1 + fabs(bed->best), slack = bed->type == CB_F64 ? 1e-10 : 2e-4;
  const double rows = finite_norm(bed, ROW_LOWER, ROW_UPPER), columns = finite_norm(bed, COST, COST);
  if (result->reason != CBGEN_REASON_CONVERGED)
    fail_msg("%s: reason %d after %d iterations, residuals %g and %g, values %g and %g", what, result->reason,
             result->iterations, result->primal_residual, result->dual_residual, result->primal_value,
             result->dual_value);
  assert_true(fabs(truth.primal_residual - result->primal_residual) <= slack * (1 + rows));
  assert_true(fabs(truth.dual_residual - result->dual_residual) <= slack * (1 + columns));
  assert_true(fabs(truth.primal_value - result->primal_value) <= slack * size);
  assert_true(fabs(truth.dual_value - result->dual_value) <= slack * size);
  assert_true(truth.primal_residual <= (tolerance + slack) * (1 + rows));
  assert_true(truth.dual_residual <= (tolerance + slack) * (1 + columns));
  assert_true(fabs(truth.primal_value - truth.dual_value) <= (3 * tolerance + 4 * slack) * size);
  if (fabs(truth.primal_value - bed->best) > 100 * tolerance * size + slack * size)
    fail_msg("%s: the value is %g, the best %g", what, truth.primal_value, bed->best);
}

static inline void check_lp(struct cb_csr csr, const char *settings, const char *other, int scaled, double tolerance) {
  struct lp_bed bed = lp_bed_of(csr, settings, other, 5);
  const cbgen_lp_options options = lp_options_of(&bed, scaled, tolerance);
  cbgen_lp *lp = lp_solver_of(&bed, &options);
  const cbgen_lp_result result = lp_solved(&bed, lp);
  must_be_solved(&bed, &result, tolerance, settings);
  cbgen_lp_free(lp);
  release_lp(&bed);
}

#endif
