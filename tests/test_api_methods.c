// SPDX-License-Identifier: Apache-2.0
/* Methods beside cg and bicgstab, and their parameters, whole solutions on the emulation: what is known of each is
 * compared with long doubles, or with another method. */
#include "tests/solver_support.h"

/* ---- systems */

/* Those that need no more than a product and Jacobi's preconditioner. */
static void other_methods_solve(void **state) {
  static const char *const symmetric[] = {"minres", "chebyshev", "jacobi"};
  const char *small = "random,rows=300,cols=300,density=0.02";
  (void)state;
  for (int diagonal = 0; diagonal < 2; diagonal++) {
    for (int m = 0; m < 3 - !diagonal; m++) /* Richardson's iteration needs a small weight */
      check_solution(small, SYMMETRIC, "recipe=sell", symmetric[m], diagonal);
    check_solution(small, UNSYMMETRIC, "recipe=sell", "gmres", diagonal);
    check_solution(small, SYMMETRIC, "recipe=merge type=f32", "gmres", diagonal);
  }
  check_solution(small, SYMMETRIC, "recipe=merge", "minres", 1);
  check_solution(small, SYMMETRIC, "recipe=sell type=f32", "chebyshev", 1);
  check_solution("stencil7,n=9", SYMMETRIC, "recipe=dia", "chebyshev", 1);
}

/* A grid, a cluster and one thread block come to the same x, but for rounding. */
static void methods_have_every_form(void **state) {
  static const char *const names[] = {"minres", "gmres", "chebyshev", "jacobi"};
  static const char *const forms[] = {"grid", "cluster", "block"};
  struct bed bed = bed_of(system_of("random,rows=700,cols=700,density=0.006", SYMMETRIC), "recipe=sell");
  double norm;
  (void)state;
  for (int m = 0; m < 4; m++)
    for (int i = 0; i < 3; i++) {
      cbgen_solver_options options = with_diagonal(&bed, 1);
      options.program_form = forms[i];
      options.restart = 10;
      start_from(&bed, 0);
      const cbgen_outcome outcome = solved(&bed, names[m], &options);
      if (outcome.reason != CBGEN_REASON_CONVERGED || host_residual(&bed, &norm) > 2e-8 * norm)
        fail_msg("%s, %s: reason %d after %d iterations", names[m], forms[i], outcome.reason, outcome.iterations);
    }
  release(&bed);
}

/* The residual never grows, and no round leaves less of it than one that is as long as all of them. */
static void gmres_begins_anew(void **state) {
  struct bed bed = bed_of(system_of("random,rows=250,cols=250,density=0.03", UNSYMMETRIC), "recipe=sell");
  const uint64_t history_there = app_alloc(0, 301 * sizeof(double));
  double history[301], best[301] = {0}, norm;
  int most = 0;
  (void)state;
  for (int i = 0; i < 3; i++) {
    static const int restarts[] = {64, 4, 1};
    const cbgen_solver_options options = {.struct_size = sizeof options, .restart = restarts[i], .max_iterations = 300,
                                          .history = (double *)(uintptr_t)history_there};
    start_from(&bed, 0);
    const cbgen_outcome outcome = solved(&bed, "gmres", &options);
    assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
    assert_true(host_residual(&bed, &norm) <= 1.01e-8 * norm); /* the residual is computed anew at each round's end */
    assert_true(app_take(history, history_there, sizeof history));
    for (int k = 1; k <= outcome.iterations; k++) assert_true(history[k] <= history[k - 1] * (1 + 1e-10));
    if (!i) memcpy(best, history, sizeof best);
    if (!i) most = outcome.iterations;
    assert_true(outcome.iterations > 8 && outcome.iterations >= most && most < 64);
    for (int k = 0; k <= most; k++) assert_true(best[k] <= history[k] * (1 + 1e-10));
  }
  app_free(history_there);
  release(&bed);
}

/* Eigenvalues of both signs: MINRES solves, and its residual never grows. */
static void minres_solves_indefinite_systems(void **state) {
  struct cb_csr csr = system_of("random,rows=200,cols=200,density=0.03", SYMMETRIC);
  const uint64_t history_there = app_alloc(0, 401 * sizeof(double));
  double history[401], norm;
  (void)state;
  for (int64_t row = 0; row < csr.rows; row += 3)
    for (int64_t k = cb_csr_row(&csr, row); k < cb_csr_row(&csr, row + 1); k++)
      if (csr.col_idx[k] == row) csr.values[k] = -csr.values[k];
  struct bed bed = bed_of(csr, "recipe=sell");
  for (int diagonal = 0; diagonal < 2; diagonal++) {
    cbgen_solver_options options = with_diagonal(&bed, diagonal);
    options.history = (double *)(uintptr_t)history_there;
    options.max_iterations = 400;
    start_from(&bed, 0);
    assert_int_equal(solved(&bed, "cg", &options).reason, CBGEN_REASON_BREAKDOWN);
    start_from(&bed, 0);
    const cbgen_outcome outcome = solved(&bed, "minres", &options);
    assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
    const double left = host_residual(&bed, &norm);
    assert_true(left <= 2e-8 * norm);
    assert_true(fabs(outcome.residual - left) <= 0.01 * left); /* what its recurrence says is what is left */
    assert_true(app_take(history, history_there, sizeof history));
    for (int k = 1; k <= outcome.iterations && !diagonal; k++) assert_true(history[k] <= history[k - 1] * (1 + 1e-10));
  }
  app_free(history_there);
  release(&bed);
}

/* Bounds that are given take fewer iterations than those found; one that is far too low is noticed. */
static void chebyshev_takes_bounds(void **state) {
  struct bed bed = bed_of(system_of("stencil7,n=8", SYMMETRIC), "recipe=dia");
  int iterations[3];
  (void)state;
  for (int i = 0; i < 3; i++) {
    static const double highest[] = {0, 2, 0.7};
    cbgen_solver_options options = with_diagonal(&bed, 1);
    double norm;
    options.highest = highest[i]; /* by Gershgorin it is below 2 */
    options.lowest = i == 1 ? 0.05 : 0;
    start_from(&bed, 0);
    const cbgen_outcome outcome = solved(&bed, "chebyshev", &options);
    assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
    assert_true(host_residual(&bed, &norm) <= 2e-8 * norm);
    iterations[i] = outcome.iterations;
  }
  assert_true(iterations[0] < 200 && iterations[1] < 200 && iterations[2] > iterations[1]);
  release(&bed);
}

/* An eigenvalue far below `highest` / 30 is found on the way: as fast as if it had been given, within a factor. */
static void chebyshev_finds_the_lowest(void **state) {
  enum { N = 60 };
  int32_t pointers[N + 1], columns[N];
  double all[N], guess[N] = {0}, ones[N];
  cbgen_context *context = new_context("recipe=sell");
  int iterations[2];
  (void)state;
  for (int i = 0; i < N; i++) {
    all[i] = i ? (double)i / N : 1e-3;
    ones[i] = 1;
  }
  const cbgen_csr view = diagonal_view(N, pointers, columns, all);
  const uint64_t x = app_alloc(0, sizeof guess), b = app_alloc(0, sizeof ones);
  cbgen_operator *op;
  must(context, cbgen_compile(context, &view, NULL, &op));
  for (int given = 0; given < 2; given++) {
    const cbgen_solver_options options = {.struct_size = sizeof options, .lowest = given ? 1e-3 : 0, .highest = 1,
                                          .max_iterations = 5000};
    cbgen_solver *solver;
    cbgen_outcome outcome;
    assert_true(app_put(x, guess, sizeof guess) && app_put(b, ones, sizeof ones));
    must_operator(op, cbgen_solver_create(op, "chebyshev", &options, &solver));
    assert_int_equal(cbgen_solve(solver, (void *)(uintptr_t)b, (void *)(uintptr_t)x, NULL), CBGEN_OK);
    assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
    assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
    iterations[given] = outcome.iterations;
    cbgen_solver_free(solver);
  }
  assert_true(iterations[0] > iterations[1] && iterations[0] < 3 * iterations[1]); /* else thousands */
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  app_free(x);
  app_free(b);
}

/* The eigenvalue of the largest size, of either sign, and what it leaves of A x - value x. */
static void power_finds_an_eigenvalue(void **state) {
  enum { N = 30 };
  int32_t pointers[N + 1], columns[N];
  double all[N], guess[N];
  (void)state;
  for (int sign = -1; sign <= 1; sign += 2) {
    cbgen_context *context = new_context("recipe=sell");
    cbgen_operator *op;
    cbgen_solver *solver;
    cbgen_outcome outcome;
    for (int i = 0; i < N; i++) {
      all[i] = i == 7 ? 5 * sign : 0.1 * i;
      guess[i] = 1 + i % 3;
    }
    const cbgen_csr view = diagonal_view(N, pointers, columns, all);
    const uint64_t x = app_alloc(0, sizeof guess);
    assert_true(app_put(x, guess, sizeof guess));
    must(context, cbgen_compile(context, &view, NULL, &op));
    must_operator(op, cbgen_solver_create(op, "power", NULL, &solver));
    assert_int_equal(cbgen_solve(solver, NULL, (void *)(uintptr_t)x, NULL), CBGEN_OK);
    assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
    assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
    assert_true(fabs(outcome.value - 5 * sign) < 1e-8 && outcome.true_residual <= 5e-8);
    assert_true(app_take(guess, x, sizeof guess));
    assert_true(fabs(fabs(guess[7]) - 1) < 1e-8 && fabs(guess[6]) < 1e-7);
    memset(guess, 0, sizeof guess);
    assert_true(app_put(x, guess, sizeof guess));
    assert_int_equal(cbgen_solve(solver, NULL, (void *)(uintptr_t)x, NULL), CBGEN_OK);
    assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
    assert_int_equal(outcome.reason, CBGEN_REASON_BREAKDOWN);
    cbgen_solver_free(solver);
    cbgen_operator_free(op);
    cbgen_context_destroy(context);
    app_free(x);
  }
}

/* ---- blocks */

/* A block times what is told to be its inverse, for every block of a matrix, the smaller one at the end as well. */
static void check_inverses(const struct cb_csr *csr, const double *inverses, int size) {
  const int64_t n = csr->rows;
  for (int64_t first = 0; first < n; first += size) {
    const int rows = n - first < size ? (int)(n - first) : size;
    double block[16][16] = {{0}};
    for (int i = 0; i < rows; i++)
      for (int64_t k = cb_csr_row(csr, first + i); k < cb_csr_row(csr, first + i + 1); k++)
        if (csr->col_idx[k] >= first && csr->col_idx[k] < first + rows)
          block[i][csr->col_idx[k] - first] = csr->values[k];
    for (int i = 0; i < rows; i++)
      for (int j = 0; j < size; j++) {
        double sum = 0;
        for (int k = 0; k < rows; k++) sum += block[i][k] * inverses[j * n + first + k];
        assert_true(fabs(sum - (i == j)) <= (j < rows ? 1e-12 : 0));
      }
  }
}

static void blocks_precondition(void **state) {
  static const int sizes[] = {2, 3, 5, 16};
  (void)state;
  for (int m = 0; m < 2; m++) {
    struct bed bed = bed_of(system_of("fe3,n=5", m ? UNSYMMETRIC : SYMMETRIC), m ? "recipe=sell" : "recipe=blocks");
    const int64_t n = bed.csr.rows;
    int32_t *pointers;
    const cbgen_csr view = view_of(&bed.csr, &pointers);
    double *inverses = calloc(16 * (size_t)n, sizeof *inverses), norm;
    const uint64_t there = app_alloc(0, 16 * (size_t)n * sizeof(double));
    assert_true(n % 2 && n % 16); /* smaller blocks at the end */
    for (int i = 0; i < 4; i++) {
      must(bed.context, cbgen_block_diagonal(bed.context, &view, sizes[i], (void *)(uintptr_t)there));
      assert_true(app_take(inverses, there, (size_t)(sizes[i] * n) * sizeof *inverses));
      check_inverses(&bed.csr, inverses, sizes[i]);
      const cbgen_solver_options options = {.struct_size = sizeof options, .blocks = (void *)(uintptr_t)there,
                                            .block_size = sizes[i], .program_form = i % 2 ? "block" : "grid"};
      start_from(&bed, 0);
      const cbgen_outcome outcome = solved(&bed, m ? "bicgstab" : "cg", &options);
      assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
      assert_true(host_residual(&bed, &norm) <= 2e-8 * norm);
    }
    app_free(there);
    free(inverses);
    free(pointers);
    release(&bed);
  }
}

/* A matrix of nothing but blocks is inverted as a whole. */
static void all_blocks_are_solved_at_once(void **state) {
  struct cb_csr whole = system_of("random,rows=63,cols=63,density=0.9", SYMMETRIC), blocks = {0};
  struct cb_coo coo = {.rows = 63, .cols = 63};
  struct cb_diag diag = {0};
  (void)state;
  coo.row_idx = cb_alloc((size_t)whole.nnz, 4);
  coo.col_idx = cb_alloc((size_t)whole.nnz, 4);
  coo.values = cb_alloc((size_t)whole.nnz, 8);
  for (int32_t row = 0; row < 63; row++)
    for (int64_t k = cb_csr_row(&whole, row); k < cb_csr_row(&whole, row + 1); k++) {
      if (whole.col_idx[k] / 5 != row / 5) continue;
      coo.row_idx[coo.count] = row;
      coo.col_idx[coo.count] = whole.col_idx[k];
      coo.values[coo.count++] = whole.values[k];
    }
  assert_ok(cb_csr_from_coo(&blocks, &coo, &diag));
  cb_csr_release(&whole);
  struct bed bed = bed_of(blocks, "recipe=sell");
  int32_t *pointers;
  const cbgen_csr view = view_of(&bed.csr, &pointers);
  const uint64_t there = app_alloc(0, 5 * 63 * sizeof(double));
  must(bed.context, cbgen_block_diagonal(bed.context, &view, 5, (void *)(uintptr_t)there));
  const cbgen_solver_options options = {.struct_size = sizeof options, .blocks = (void *)(uintptr_t)there,
                                        .block_size = 5};
  for (int m = 0; m < 2; m++) {
    start_from(&bed, 0.5);
    const cbgen_outcome outcome = solved(&bed, m ? "bicgstab" : "cg", &options);
    assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
    assert_int_equal(outcome.iterations, 1);
  }
  app_free(there);
  free(pointers);
  release(&bed);
}

/* A singular block counts as its diagonal, in which 0 counts as 1. */
static void singular_blocks_are_diagonals(void **state) {
  static const int32_t pointers[] = {0, 2, 4, 5, 5}, columns[] = {0, 1, 0, 1, 2};
  static const double values[] = {2, 4, 1, 2, 5}, wanted[] = {0.5, 0, 0.2, 0, 0, 0.5, 0, 1};
  const cbgen_csr view = {.struct_size = sizeof view, .rows = 4, .cols = 4, .nnz = 5, .row_ptr = pointers,
                          .col_idx = columns, .values = values};
  cbgen_context *context = new_context("recipe=sell");
  const uint64_t there = app_alloc(0, sizeof wanted);
  double found[8];
  (void)state;
  must(context, cbgen_block_diagonal(context, &view, 2, (void *)(uintptr_t)there));
  assert_true(app_take(found, there, sizeof found));
  assert_memory_equal(found, wanted, sizeof wanted);
  assert_int_equal(cbgen_block_diagonal(context, &view, 17, (void *)(uintptr_t)there), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(context), "2 to 16"));
  assert_int_equal(cbgen_block_diagonal(context, &view, 2, NULL), CBGEN_ERROR_ARGUMENT);
  app_free(there);
  cbgen_context_destroy(context);
}

/* ---- PageRank */

/* As many iterations of the same fixed point in long doubles, from `ranks`, whose sum is 1. What each of them changes
 * goes to `changes`. */
static void host_ranks(long double *ranks, const struct cb_csr *csr, const double *jumps, const double *degree,
                       int iterations, double *changes) {
  const int64_t n = csr->rows;
  long double *next = calloc((size_t)n, sizeof *next), all = 0;
  for (int64_t i = 0; i < n; i++) all += jumps[i];
  for (int turn = 0; turn < iterations; turn++) {
    long double handed = 0, change = 0;
    for (int64_t row = 0; row < n; row++) {
      next[row] = 0;
      for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
        next[row] += 0.85L * (long double)csr->values[k] * ranks[csr->col_idx[k]] / degree[csr->col_idx[k]];
      handed += next[row];
    }
    for (int64_t row = 0; row < n; row++) {
      const long double rank = next[row] + (1 - handed) * jumps[row] / all;
      change += fabsl(rank - ranks[row]);
      ranks[row] = rank;
    }
    changes[turn] = (double)change;
  }
  free(next);
}

enum { PAGES = 400, MOST = 200 };

/* Links between pages, of which some have none; `degree`: what each column's entries sum to, by which they are divided
 * unless the solver does it. */
static struct cb_csr links_of(double degree[PAGES], int scaled) {
  struct cb_csr links = matrix_of("random,rows=400,cols=400,density=0.008");
  int dangling = 0;
  memset(degree, 0, PAGES * sizeof *degree);
  for (int64_t k = 0; k < links.nnz; k++) degree[links.col_idx[k]] += links.values[k] = 1 + (double)(k % 3);
  for (int64_t k = 0; k < links.nnz && !scaled; k++) links.values[k] /= degree[links.col_idx[k]];
  for (int i = 0; i < PAGES; i++) dangling += degree[i] == 0;
  assert_true(dangling > 3);
  return links;
}

/* From `start` times what jumps go to, or from the same everywhere. `history`: room for MOST numbers. */
static cbgen_outcome ranked(struct bed *bed, const cbgen_solver_options *options, double start, double *history) {
  const uint64_t there = app_alloc(0, MOST * sizeof *history);
  cbgen_solver_options own = *options;
  double first[PAGES];
  own.history = (double *)(uintptr_t)there;
  if (!own.max_iterations) own.max_iterations = MOST - 1;
  for (int i = 0; i < PAGES; i++) first[i] = start * bed->b[i];
  if (start > 0) assert_true(app_put(bed->x_there, first, sizeof first));
  else start_from(bed, 3);
  const cbgen_outcome outcome = solved(bed, "pagerank", &own);
  assert_true(app_take(history, there, MOST * sizeof *history));
  app_free(there);
  take_x(bed);
  return outcome;
}

static void check_ranks(const struct bed *bed, const cbgen_outcome *outcome, const long double ranks[PAGES]) {
  double total = 0;
  assert_int_equal(outcome->reason, CBGEN_REASON_CONVERGED);
  assert_true(outcome->residual <= 1e-12 && outcome->true_residual <= 1e-12 && outcome->iterations > 20);
  for (int i = 0; i < PAGES; i++) {
    total += bed->x[i];
    assert_true(fabsl(bed->x[i] - ranks[i]) <= 1e-11L);
  }
  assert_true(fabs(total - 1) <= 1e-12);
}

/* Where `start` times what jumps go to, or the same everywhere, begins. */
static void first_ranks(long double ranks[PAGES], const double jumps[PAGES], int start) {
  long double all = 0;
  for (int i = 0; i < PAGES; i++) all += start ? jumps[i] : 1;
  for (int i = 0; i < PAGES; i++) ranks[i] = (start ? jumps[i] : 1) / all;
}

/* Pages whose columns have sum 1, or the solver divides by their sums, and what jumps go to. */
static struct bed pages_bed(double degree[PAGES], int scaled) {
  struct bed bed = bed_of(links_of(degree, scaled), scaled ? "recipe=sell" : "recipe=merge");
  assert_true(app_put(bed.diagonal, degree, PAGES * sizeof *degree));
  for (int i = 0; i < PAGES; i++) bed.b[i] = 1 + i % 5;
  assert_true(app_put(bed.b_there, bed.b, PAGES * sizeof *bed.b));
  for (int i = 0; i < PAGES; i++)
    if (!scaled || degree[i] == 0) degree[i] = 1;
  return bed;
}

/* In every form. What changes are told to be are bounds, at most twice as large, and the first is the change itself. */
static void pagerank_ranks(void **state) {
  static const char *const forms[] = {NULL, "graph", "grid", "block"};
  enum { FORMS = sizeof forms / sizeof *forms };
  (void)state;
  for (int scaled = 0; scaled < 2; scaled++) {
    double degree[PAGES], told[MOST], changes[MOST];
    long double ranks[PAGES];
    struct bed bed = pages_bed(degree, scaled);
    for (int start = 0; start < 2; start++) {
      first_ranks(ranks, bed.b, start);
      host_ranks(ranks, &bed.csr, bed.b, degree, MOST, changes);
      for (int i = 0; i < FORMS; i++) {
        cbgen_solver_options options = with_diagonal(&bed, scaled);
        options.relative_tolerance = 1e-12;
        options.program_form = forms[i];
        const cbgen_outcome outcome = ranked(&bed, &options, start, told);
        check_ranks(&bed, &outcome, ranks);
        for (int k = 0; changes[k] > 1e-11; k++) {
          const double ratio = sqrt(told[k]) / changes[k];
          assert_true(ratio >= 1 - 1e-4 && ratio <= (k ? 2 : 1) + 1e-4);
        }
      }
    }
    release(&bed);
  }
}

/* Solutions of a few iterations, of one from the first on, have what these make: in several kernels, too, where the
 * second half of a body passes by if the first one ends the solution. */
static void few_iterations_rank(void **state) {
  (void)state;
  for (int scaled = 0; scaled < 2; scaled++) {
    double degree[PAGES], told[MOST], changes[MOST];
    struct bed bed = pages_bed(degree, scaled);
    for (int turn = 0; turn < 20; turn++) {
      const int most = 1 + turn / 4, start = turn % 2;
      cbgen_solver_options options = with_diagonal(&bed, scaled);
      long double ranks[PAGES];
      first_ranks(ranks, bed.b, start);
      host_ranks(ranks, &bed.csr, bed.b, degree, most + 1, changes); /* the one that tells its change is made, too */
      options.program_form = turn / 2 % 2 ? "graph" : "grid";
      options.relative_tolerance = 1e-15;
      options.max_iterations = most;
      const cbgen_outcome outcome = ranked(&bed, &options, start, told);
      assert_int_equal(outcome.reason, CBGEN_REASON_ITERATIONS);
      assert_int_equal(outcome.iterations, most);
      for (int i = 0; i < PAGES; i++) assert_true(fabsl(bed.x[i] - ranks[i]) <= 1e-14L);
    }
    release(&bed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(other_methods_solve, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(methods_have_every_form, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(gmres_begins_anew, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(minres_solves_indefinite_systems, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(chebyshev_takes_bounds, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(chebyshev_finds_the_lowest, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(power_finds_an_eigenvalue, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(blocks_precondition, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(all_blocks_are_solved_at_once, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(singular_blocks_are_diagonals, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(pagerank_ranks, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(few_iterations_rank, open_fake, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
