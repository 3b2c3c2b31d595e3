// SPDX-License-Identifier: Apache-2.0
/* Linear programs that have no solution, by construction: which certificate is found, and whether long doubles believe
 * it; and that programs which have one are not said to have none. */
#include "tests/lp_support.h"

static const char small[] = "random,rows=40,cols=60,density=0.08";

/* Multipliers of some rows, and bounds of all columns that they touch, which together are worth `gap` though they cost
 * nothing: no x is within all of them. Columns that they do not touch keep their bounds, or have none. */
static void make_infeasible(struct lp_bed *bed, uint64_t seed, double gap) {
  const int64_t rows = bed->csr.rows, cols = bed->csr.cols;
  double *const *host = bed->host;
  double *w = calloc((size_t)rows, sizeof *w);
  long double *products = calloc((size_t)cols, sizeof *products), worth = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < rows; i++) {
    const int above = (draw(&seed) >> 30) & 1;
    if (((draw(&seed) >> 30) & 3) && i != rows / 2) continue;
    w[i] = (above ? 1 : -1) * (0.5 + part(&seed));
    if (isinf(host[ROW_LOWER][i]) && above) host[ROW_LOWER][i] = host[ROW_UPPER][i];
    if (isinf(host[ROW_UPPER][i]) && !above) host[ROW_UPPER][i] = host[ROW_LOWER][i];
    worth += w[i] * (above ? host[ROW_LOWER][i] : host[ROW_UPPER][i]);
    last = i;
  }
  multiply_lp(bed, 1, w, products);
  for (int64_t j = 0; j < cols; j++) {
    if (products[j] == 0 && j % 2) host[LOWER][j] = -INFINITY, host[UPPER][j] = INFINITY, host[COST][j] = 0;
    if (products[j] == 0) continue;
    const int below = products[j] < 0; /* r = -A^T w is above 0 */
    host[LOWER][j] = below ? -part(&seed) : -INFINITY;
    host[UPPER][j] = below ? INFINITY : part(&seed);
    worth += -products[j] * (below ? host[LOWER][j] : host[UPPER][j]);
  }
  const double shift = (double)(gap - worth) / w[last];
  host[ROW_LOWER][last] = w[last] > 0 ? host[ROW_LOWER][last] + shift : -INFINITY;
  host[ROW_UPPER][last] = w[last] > 0 ? INFINITY : host[ROW_UPPER][last] + shift;
  for (int i = 0; i < PRIMAL; i++) put_lp(bed, i);
  free(w);
  free(products);
}

/* A direction along which no bound stops x, and of a cost that falls by `gain` on its way. */
static void make_unbounded(struct lp_bed *bed, uint64_t seed, double gain) {
  const int64_t rows = bed->csr.rows, cols = bed->csr.cols;
  double *const *host = bed->host;
  double *d = calloc((size_t)cols, sizeof *d);
  long double *products = calloc((size_t)rows, sizeof *products), cost = 0;
  int64_t last = 0;
  for (int64_t j = 0; j < cols; j++) {
    if ((draw(&seed) >> 30) & 3 && j != cols / 2) continue;
    d[j] = (draw(&seed) >> 30) & 1 ? 0.5 + part(&seed) : -0.5 - part(&seed);
    if (d[j] > 0) host[UPPER][j] = INFINITY;
    else host[LOWER][j] = -INFINITY;
    cost += host[COST][j] * d[j];
    last = j;
  }
  host[COST][last] -= (double)(cost + gain) / d[last];
  multiply_lp(bed, 0, d, products);
  for (int64_t i = 0; i < rows; i++) {
    if (products[i] > 0) host[ROW_UPPER][i] = INFINITY;
    if (products[i] < 0) host[ROW_LOWER][i] = -INFINITY;
  }
  for (int i = 0; i < PRIMAL; i++) put_lp(bed, i);
  free(d);
  free(products);
}

/* What long doubles say of y as multipliers without cost: worth 1, but for what they lack. */
static void must_prove_infeasible(const struct lp_bed *bed, double tolerance, double slack) {
  long double *products = calloc((size_t)bed->csr.cols, sizeof *products), worth = 0, miss = 0;
  double *const *host = bed->host;
  multiply_lp(bed, 1, host[DUAL], products);
  for (int64_t i = 0; i < bed->csr.rows; i++) {
    const double y = host[DUAL][i], bound = y > 0 ? host[ROW_LOWER][i] : host[ROW_UPPER][i];
    if (y != 0 && isinf(bound)) miss += (long double)y * y;
    else if (y != 0) worth += (long double)y * bound;
  }
  for (int64_t j = 0; j < bed->csr.cols; j++) {
    const long double r = -products[j];
    const double bound = r > 0 ? host[LOWER][j] : host[UPPER][j];
    if (r != 0 && isinf(bound)) miss += r * r;
    else if (r != 0) worth += r * bound;
  }
  if (!(fabsl(worth - 1) <= slack && sqrtl(miss) <= tolerance + slack))
    fail_msg("multipliers worth %Lg lack %Lg", worth, sqrtl(miss));
  free(products);
}

/* Likewise of x as a direction of cost -1. */
static void must_prove_unbounded(const struct lp_bed *bed, double tolerance, double slack) {
  long double *products = calloc((size_t)bed->csr.rows, sizeof *products), cost = 0, off = 0;
  double *const *host = bed->host;
  multiply_lp(bed, 0, host[PRIMAL], products);
  for (int64_t i = 0; i < bed->csr.rows; i++)
    if (!isinf(products[i] < 0 ? host[ROW_LOWER][i] : host[ROW_UPPER][i])) off += products[i] * products[i];
  for (int64_t j = 0; j < bed->csr.cols; j++) {
    const double d = host[PRIMAL][j];
    cost += (long double)host[COST][j] * d;
    if (d != 0 && !isinf(d < 0 ? host[LOWER][j] : host[UPPER][j])) off += (long double)d * d;
  }
  if (!(fabsl(cost + 1) <= slack && sqrtl(off) <= tolerance + slack))
    fail_msg("a direction of cost %Lg leaves bounds by %Lg", cost, sqrtl(off));
  free(products);
}

typedef void maker(struct lp_bed *bed, uint64_t seed, double size);

struct variety {
  const char *matrix, *settings;
  int scaled;
  double tolerance; /* of certificates; 0: the usual one */
};

/* A program that the maker has spoilt. */
static cbgen_lp_result spoilt(const struct variety *kind, maker *make, uint64_t seed, double size, struct lp_bed *bed) {
  *bed = lp_bed_of(matrix_of(kind->matrix), kind->settings, "", seed);
  make(bed, seed, size);
  cbgen_lp_options options = lp_options_of(bed, kind->scaled, bed->type == CB_F64 ? 1e-7 : 1e-4);
  options.certificate_tolerance = kind->tolerance;
  options.max_iterations = 30000;
  cbgen_lp *lp = lp_solver_of(bed, &options);
  const cbgen_lp_result result = lp_solved(bed, lp);
  cbgen_lp_free(lp);
  return result;
}

static const struct variety kinds[] = {{small, "recipe=sell", 0, 0},
                                    {small, "recipe=sell", 1, 0},
                                    {"random,rows=60,cols=30,density=0.1", "recipe=merge", 1, 0},
                                    {"random,rows=1,cols=20,density=0.5", "recipe=sell", 1, 0},
                                    {"random,rows=20,cols=1,density=0.5", "recipe=sell", 0, 0},
                                    {small, "recipe=sell", 1, 1e-5},
                                    {small, "recipe=sell type=f32", 1, 0}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void must_have_reason(const cbgen_lp_result *result, cbgen_reason reason, int kind, uint64_t seed) {
  if (result->reason != (int)reason)
    fail_msg("kind %d, seed %d: reason %d after %d iterations, residuals %g and %g", kind, (int)seed, result->reason,
             result->iterations, result->primal_residual, result->dual_residual);
}

typedef void prover(const struct lp_bed *bed, double tolerance, double slack);

static void must_be_proven(maker *make, cbgen_reason reason, prover *prove) {
  for (int k = 0; k < KINDS; k++)
    for (uint64_t seed = 1; seed <= 2; seed++) {
      struct lp_bed bed;
      const cbgen_lp_result result = spoilt(&kinds[k], make, seed, 1, &bed);
      const int wide = bed.type == CB_F64;
      must_have_reason(&result, reason, k, seed);
      prove(&bed, kinds[k].tolerance > 0 ? kinds[k].tolerance : wide ? 1e-8 : 1e-3, wide ? 1e-4 : 0.1);
      release_lp(&bed);
    }
}

static void infeasible_programs_are_proven(void **state) {
  (void)state;
  must_be_proven(make_infeasible, CBGEN_REASON_PRIMAL_INFEASIBLE, must_prove_infeasible);
}

static void unbounded_programs_are_proven(void **state) {
  (void)state;
  must_be_proven(make_unbounded, CBGEN_REASON_DUAL_INFEASIBLE, must_prove_unbounded);
}

/* By little, and by much. */
static void the_size_of_the_gap_does_not_matter(void **state) {
  static const double sizes[] = {1e-2, 1e3};
  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    struct lp_bed bed;
    cbgen_lp_result result = spoilt(&kinds[1], make_infeasible, 3, sizes[i], &bed);
    must_have_reason(&result, CBGEN_REASON_PRIMAL_INFEASIBLE, 1, 3);
    must_prove_infeasible(&bed, 1e-8, 1e-3);
    release_lp(&bed);
    result = spoilt(&kinds[1], make_unbounded, 3, sizes[i], &bed);
    must_have_reason(&result, CBGEN_REASON_DUAL_INFEASIBLE, 1, 3);
    must_prove_unbounded(&bed, 1e-8, 1e-3);
    release_lp(&bed);
  }
}

/* x0 is at least 5 and at most 2; x1, which no row knows, may grow, and shall. */
static void make_both(struct lp_bed *bed) {
  for (int i = 0; i < 2; i++) {
    bed->host[COST][i] = -1;
    bed->host[LOWER][i] = 0;
    bed->host[UPPER][i] = i ? INFINITY : 2;
    bed->host[ROW_LOWER][i] = i ? -INFINITY : 5;
    bed->host[ROW_UPPER][i] = INFINITY;
  }
  for (int i = 0; i < PRIMAL; i++) put_lp(bed, i);
}

static void one_of_two_is_told(void **state) {
  struct cb_csr csr = matrix_of("random,rows=2,cols=2,density=1");
  (void)state;
  for (int k = 0; k < 4; k++) csr.values[k] = !k;
  struct lp_bed bed = lp_bed_of(csr, "recipe=sell", "", 1);
  const cbgen_lp_options options = lp_options_of(&bed, 0, 1e-6);
  make_both(&bed);
  cbgen_lp *lp = lp_solver_of(&bed, &options);
  const cbgen_lp_result result = lp_solved(&bed, lp);
  if (result.reason == CBGEN_REASON_DUAL_INFEASIBLE) must_prove_unbounded(&bed, 1e-8, 1e-4);
  else must_have_reason(&result, CBGEN_REASON_PRIMAL_INFEASIBLE, 0, 0);
  cbgen_lp_free(lp);
  release_lp(&bed);
}

static void who_wants_no_certificate_gets_none(void **state) {
  struct variety kind = kinds[0];
  struct lp_bed bed;
  (void)state;
  kind.tolerance = -1;
  const cbgen_lp_result result = spoilt(&kind, make_infeasible, 1, 1, &bed);
  must_have_reason(&result, CBGEN_REASON_ITERATIONS, 0, 1);
  cbgen_lp_options options = lp_options_of(&bed, 0, 1e-7);
  cbgen_lp *lp;
  options.certificate_tolerance = NAN;
  assert_int_equal(cbgen_lp_create(bed.a, bed.transposed, &options, &lp), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_operator_message(bed.a), "'certificate_tolerance' is"));
  /* A program of before that member. */
  options.struct_size = offsetof(cbgen_lp_options, certificate_tolerance);
  lp = lp_solver_of(&bed, &options);
  const cbgen_lp_result found = lp_solved(&bed, lp);
  must_have_reason(&found, CBGEN_REASON_PRIMAL_INFEASIBLE, 0, 1);
  must_prove_infeasible(&bed, 1e-8, 1e-4);
  /* The next solution, of another program, knows nothing of it. */
  draw_lp(&bed, 9);
  for (int i = 0; i < PRIMAL; i++) put_lp(&bed, i);
  const cbgen_lp_result next = lp_solved(&bed, lp);
  must_be_solved(&bed, &next, 1e-7, "after a certificate");
  cbgen_lp_free(lp);
  release_lp(&bed);
}

/* ---- programs that have solutions */

static void stay_feasible(struct lp_bed *bed, uint64_t seed, double size) {
  (void)bed, (void)seed, (void)size;
}

/* All bounds are there, far away: no multiplier can lack anything, and rounding alone would be worth something. */
static void have_far_bounds(struct lp_bed *bed, uint64_t seed, double size) {
  (void)seed;
  for (int64_t j = 0; j < bed->csr.cols; j++) {
    if (isinf(bed->host[LOWER][j])) bed->host[LOWER][j] = -size;
    if (isinf(bed->host[UPPER][j])) bed->host[UPPER][j] = size;
  }
  for (int64_t i = 0; i < bed->csr.rows; i++) {
    if (isinf(bed->host[ROW_LOWER][i])) bed->host[ROW_LOWER][i] = -size;
    if (isinf(bed->host[ROW_UPPER][i])) bed->host[ROW_UPPER][i] = size;
  }
  for (int i = 0; i < PRIMAL; i++) put_lp(bed, i);
}

/* The x that it was made from is the only one: each of its entries is fixed. */
static void have_one_point(struct lp_bed *bed, uint64_t seed, double size) {
  (void)size;
  draw_lp(bed, seed);
  for (int64_t j = 0; j < bed->csr.cols; j++)
    bed->host[LOWER][j] = bed->host[UPPER][j] = cb_real_round(bed->host[PRIMAL][j], bed->type);
  for (int i = 0; i < PRIMAL; i++) put_lp(bed, i);
}

static void have_no_cost(struct lp_bed *bed, uint64_t seed, double size) {
  (void)seed, (void)size;
  memset(bed->host[COST], 0, (size_t)bed->csr.cols * sizeof **bed->host);
  put_lp(bed, COST);
}

/* Not even with a tolerance that believes nearly everything. */
static void solvable_programs_are_not_condemned(void **state) {
  static const struct {
    maker *make;
    double size;
  } cases[] = {
      {stay_feasible, 0}, {have_far_bounds, 10}, {have_far_bounds, 1e6}, {have_one_point, 0}, {have_no_cost, 0}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int k = 0; k < KINDS; k++) {
      struct variety kind = kinds[k];
      struct lp_bed bed;
      kind.tolerance = 1e-3;
      const cbgen_lp_result result = spoilt(&kind, cases[i].make, 10 + i, cases[i].size, &bed);
      if (cases[i].size < 100 || result.reason != CBGEN_REASON_ITERATIONS)
        must_have_reason(&result, CBGEN_REASON_CONVERGED, k, 10 + i);
      release_lp(&bed);
    }
}

/* x is far beyond 0 on its open side, where a row wants it: until it is there, multipliers of the row are worth
 * something for which alone the bound that is not there would have to stand. */
static void open_sides_prove_nothing(void **state) {
  (void)state;
  for (int side = 0; side < 4; side++) {
    const int falls = side % 2, is_above = side / 2;
    struct cb_csr csr = matrix_of("random,rows=1,cols=1,density=1");
    csr.values[0] = falls != is_above ? -1 : 1;
    struct lp_bed bed = lp_bed_of(csr, "recipe=sell", "", 1);
    cbgen_lp_options options = lp_options_of(&bed, 0, 1e-8);
    bed.host[COST][0] = falls ? -1 : 1; /* x shall not go there, so that multipliers grow */
    bed.host[LOWER][0] = falls ? -INFINITY : -2;
    bed.host[UPPER][0] = falls ? 2 : INFINITY;
    bed.host[ROW_LOWER][0] = is_above ? -INFINITY : 5;
    bed.host[ROW_UPPER][0] = is_above ? -5 : INFINITY;
    for (int i = 0; i < PRIMAL; i++) put_lp(&bed, i);
    for (int is_short = 0; is_short < 2; is_short++) { /* steps: multipliers still grow when it is looked */
      options.norm = is_short ? 3000 : 30;
      options.max_iterations = is_short ? 320 : 30000;
      cbgen_lp *lp = lp_solver_of(&bed, &options);
      const cbgen_lp_result result = lp_solved(&bed, lp);
      must_have_reason(&result, is_short ? CBGEN_REASON_ITERATIONS : CBGEN_REASON_CONVERGED, side, 0);
      assert_true(result.iterations > 64);
      cbgen_lp_free(lp);
    }
    release_lp(&bed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(infeasible_programs_are_proven, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(unbounded_programs_are_proven, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(the_size_of_the_gap_does_not_matter, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(one_of_two_is_told, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(who_wants_no_certificate_gets_none, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(open_sides_prove_nothing, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(solvable_programs_are_not_condemned, open_fake, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
