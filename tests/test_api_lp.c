// SPDX-License-Identifier: Apache-2.0
/* Linear programs: whole solutions on the emulation, compared with long doubles and with the solution that each was
 * made from. */
#include "tests/lp_support.h"

#include <pthread.h>

typedef void *graph_t;
static unsigned (*begin_capture)(void *stream, unsigned mode);
static unsigned (*end_capture)(void *stream, graph_t *graph);
static unsigned (*instantiate)(graph_t *exec, graph_t graph, unsigned long long flags);
static unsigned (*launch_graph)(graph_t exec, void *stream);
static unsigned (*free_graph)(graph_t graph), (*free_exec)(graph_t exec);

static int open_graphs(void **state) {
  const int failed = open_fake(state);
  if (failed) return failed;
  bind_fake(&begin_capture, "cuStreamBeginCapture_v2");
  bind_fake(&end_capture, "cuStreamEndCapture");
  bind_fake(&instantiate, "cuGraphInstantiateWithFlags");
  bind_fake(&launch_graph, "cuGraphLaunch");
  bind_fake(&free_graph, "cuGraphDestroy");
  bind_fake(&free_exec, "cuGraphExecDestroy");
  return 0;
}

static const char small[] = "random,rows=60,cols=100,density=0.1";

/* ---- solutions */

static void programs_are_solved(void **state) {
  (void)state;
  for (int scaled = 0; scaled < 2; scaled++) {
    check_lp(matrix_of(small), "recipe=sell", "", scaled, 1e-7);
    check_lp(matrix_of("random,rows=90,cols=50,density=0.2"), "recipe=merge", "recipe=sell", scaled, 1e-7);
    check_lp(matrix_of(small), "recipe=sell type=f32", "", scaled, 1e-3);
  }
  check_lp(matrix_of("random,rows=1,cols=40,density=0.5"), "recipe=sell", "", 1, 1e-6);
  check_lp(matrix_of("random,rows=40,cols=1,density=0.5"), "recipe=sell", "", 1, 1e-6);
}

/* Vectors that the caller leaves out are what the header says. */
static void vectors_have_defaults(void **state) {
  struct lp_bed bed = lp_bed_of(matrix_of(small), "recipe=sell", "", 7);
  const cbgen_lp_options options = lp_options_of(&bed, 1, 1e-6);
  cbgen_lp *lp = lp_solver_of(&bed, &options);
  cbgen_lp_result results[2];
  (void)state;
  for (int64_t i = 0; i < bed.csr.cols; i++) { /* minimise the sum of x above 0 where A x >= its row's number */
    bed.host[COST][i] = 1;
    bed.host[LOWER][i] = 0;
    bed.host[UPPER][i] = INFINITY;
  }
  for (int64_t i = 0; i < bed.csr.rows; i++) {
    bed.host[ROW_LOWER][i] = (double)(i % 5) - 2;
    bed.host[ROW_UPPER][i] = INFINITY;
  }
  for (int i = 0; i < PRIMAL; i++) put_lp(&bed, i);
  for (int left_out = 0; left_out < 2; left_out++) {
    cbgen_lp_problem problem = problem_of(&bed);
    if (left_out) problem.lower = problem.upper = problem.row_upper = NULL;
    memset(bed.host[PRIMAL], 0, (size_t)bed.csr.cols * 8);
    memset(bed.host[DUAL], 0, (size_t)bed.csr.rows * 8);
    put_lp(&bed, PRIMAL);
    put_lp(&bed, DUAL);
    assert_int_equal(cbgen_lp_solve(lp, &problem, lp_at(&bed, PRIMAL), lp_at(&bed, DUAL), NULL), CBGEN_OK);
    assert_int_equal(cbgen_lp_outcome(lp, &results[left_out]), CBGEN_OK);
  }
  assert_int_equal(results[0].reason, CBGEN_REASON_CONVERGED);
  assert_true(results[0].primal_value > 0.1);
  assert_memory_equal(&results[0], &results[1], sizeof results[0]);
  /* Without cost any x within the bounds will do; without rows' bounds x = 0 is the best. */
  cbgen_lp_problem problem = problem_of(&bed);
  problem.cost = NULL;
  assert_int_equal(cbgen_lp_solve(lp, &problem, lp_at(&bed, PRIMAL), lp_at(&bed, DUAL), NULL), CBGEN_OK);
  assert_int_equal(cbgen_lp_outcome(lp, &results[0]), CBGEN_OK);
  assert_true(results[0].reason == CBGEN_REASON_CONVERGED && results[0].primal_value == 0);
  problem = problem_of(&bed);
  problem.row_lower = NULL;
  assert_int_equal(cbgen_lp_solve(lp, &problem, lp_at(&bed, PRIMAL), lp_at(&bed, DUAL), NULL), CBGEN_OK);
  assert_int_equal(cbgen_lp_outcome(lp, &results[0]), CBGEN_OK);
  take_lp(&bed, PRIMAL);
  assert_int_equal(results[0].reason, CBGEN_REASON_CONVERGED);
  for (int64_t i = 0; i < bed.csr.cols; i++) assert_true(bed.host[PRIMAL][i] == 0);
  cbgen_lp_free(lp);
  release_lp(&bed);
}

/* ---- options */

/* A norm that is too small is noticed, one that is too large only costs iterations, and so does a weight. */
static void options_count(void **state) {
  static const struct {
    double norm, weight;
  } cases[] = {{0, 0}, {0.6, 0}, {3, 0}, {0, 1}, {1, 10}};
  struct lp_bed bed = lp_bed_of(matrix_of(small), "recipe=sell", "", 5);
  int iterations[5];
  (void)state;
  for (int i = 0; i < 5; i++) {
    cbgen_lp_options options = lp_options_of(&bed, 1, 1e-6);
    options.norm = cases[i].norm;
    options.weight = cases[i].weight;
    cbgen_lp *lp = lp_solver_of(&bed, &options);
    const cbgen_lp_result result = lp_solved(&bed, lp);
    must_be_solved(&bed, &result, 1e-6, "options");
    iterations[i] = result.iterations;
    cbgen_lp_free(lp);
  }
  assert_true(iterations[0] < iterations[2]);
  assert_true(iterations[0] != iterations[3] && iterations[3] != iterations[4]);
  release_lp(&bed);
}

/* No more than are allowed, be they fewer than one check needs; none is taken back. From a solution it takes one
 * check. */
static void iterations_end(void **state) {
  static const int most[] = {1, 2, 63, 64, 65, 100};
  struct lp_bed bed = lp_bed_of(matrix_of(small), "recipe=sell", "", 5);
  cbgen_lp_options options = lp_options_of(&bed, 0, 1e-9);
  (void)state;
  for (int i = 0; i < 6; i++) {
    options.max_iterations = most[i];
    cbgen_lp *lp = lp_solver_of(&bed, &options);
    const cbgen_lp_result result = lp_solved(&bed, lp);
    const cbgen_lp_result truth = judged(&bed);
    assert_int_equal(result.reason, CBGEN_REASON_ITERATIONS);
    assert_int_equal(result.iterations, most[i]);
    assert_true(fabs(truth.primal_residual - result.primal_residual) <= 1e-10 * (1 + truth.primal_residual));
    cbgen_lp_free(lp);
  }
  options = lp_options_of(&bed, 0, 1e-6);
  cbgen_lp *lp = lp_solver_of(&bed, &options);
  cbgen_lp_result result = lp_solved(&bed, lp);
  const cbgen_lp_problem problem = problem_of(&bed);
  assert_true(result.reason == CBGEN_REASON_CONVERGED && result.iterations > 64);
  assert_int_equal(cbgen_lp_solve(lp, &problem, lp_at(&bed, PRIMAL), lp_at(&bed, DUAL), NULL), CBGEN_OK);
  assert_int_equal(cbgen_lp_outcome(lp, &result), CBGEN_OK);
  assert_true(result.reason == CBGEN_REASON_CONVERGED && result.iterations == 64);
  cbgen_lp_free(lp);
  release_lp(&bed);
}

/* The matrix with these scales has no larger norm than 1, and each row and column of entries a scale of its own. */
static void scales_bound_the_norm(void **state) {
  struct cb_csr csr = matrix_of(small);
  for (int64_t row = 0; row < csr.rows; row++)
    for (int64_t k = cb_csr_row(&csr, row); k < cb_csr_row(&csr, row + 1); k++)
      csr.values[k] *= pow(10, (double)(row % 7));
  struct lp_bed bed = lp_bed_of(csr, "recipe=sell", "", 5);
  const int64_t rows = bed.csr.rows, cols = bed.csr.cols;
  long double *products = calloc(100, sizeof *products);
  double x[100], y[100], size = 0, lightest = 0, heaviest = INFINITY;
  (void)state;
  take_lp(&bed, ROW_SCALES);
  take_lp(&bed, COLUMN_SCALES);
  for (int64_t i = 0; i < cols; i++) x[i] = 1 + (double)(i % 3);
  for (int turn = 0; turn < 200; turn++) {
    double square = 0;
    for (int64_t i = 0; i < cols; i++) square += x[i] * x[i];
    for (int64_t i = 0; i < cols; i++) x[i] *= bed.host[COLUMN_SCALES][i] / sqrt(square);
    multiply_lp(&bed, 0, x, products);
    size = 0;
    for (int64_t i = 0; i < rows; i++) y[i] = (double)products[i] * bed.host[ROW_SCALES][i];
    for (int64_t i = 0; i < rows; i++) size += y[i] * y[i];
    for (int64_t i = 0; i < rows; i++) y[i] *= bed.host[ROW_SCALES][i];
    multiply_lp(&bed, 1, y, products);
    for (int64_t i = 0; i < cols; i++) x[i] = (double)products[i] * bed.host[COLUMN_SCALES][i];
  }
  assert_true(sqrt(size) <= 1 + 1e-9 && sqrt(size) > 0.7);
  for (int64_t row = 0; row < rows; row++) /* the larger a row's entries, the smaller its scale */
    for (int64_t k = cb_csr_row(&bed.csr, row); k < cb_csr_row(&bed.csr, row + 1); k++) {
      const double scale = bed.host[ROW_SCALES][row] * bed.host[COLUMN_SCALES][bed.csr.col_idx[k]];
      assert_true(fabs(bed.csr.values[k]) * scale <= 1.0001);
      lightest = fmax(lightest, bed.host[ROW_SCALES][row]);
      heaviest = fmin(heaviest, bed.host[ROW_SCALES][row]);
    }
  assert_true(lightest > 300 * heaviest);
  free(products);
  release_lp(&bed);
}

/* ---- how solutions end */

/* Minimise cost x0 where x0 + x1 >= least and x0 - x1 = 0, and both are between 0 and `most`. */
static cbgen_lp_result of_two(double cost, double least, double most, double entry, int scaled, double certificate) {
  struct cb_csr csr = matrix_of("random,rows=2,cols=2,density=1");
  struct lp_bed bed;
  for (int k = 0; k < 4; k++) csr.values[k] = k == 3 ? -1 : 1;
  csr.values[0] = entry;
  bed = lp_bed_of(csr, "recipe=sell", "", 1);
  for (int i = 0; i < 2; i++) {
    bed.host[COST][i] = i ? 0 : cost;
    bed.host[LOWER][i] = 0;
    bed.host[UPPER][i] = most;
    bed.host[ROW_LOWER][i] = i ? 0 : least;
    bed.host[ROW_UPPER][i] = i ? 0 : INFINITY;
  }
  for (int i = 0; i < PRIMAL; i++) put_lp(&bed, i);
  cbgen_lp_options options = lp_options_of(&bed, scaled, 1e-6);
  options.max_iterations = 3000;
  options.certificate_tolerance = certificate;
  cbgen_lp *lp = lp_solver_of(&bed, &options);
  cbgen_lp_result result;
  assert_int_equal(cbgen_lp_outcome(lp, &result), CBGEN_OK);
  assert_int_equal(result.reason, CBGEN_REASON_NONE);
  result = lp_solved(&bed, lp);
  cbgen_lp_free(lp);
  release_lp(&bed);
  return result;
}

static void every_end_has_its_reason(void **state) {
  (void)state;
  for (int scaled = 0; scaled < 2; scaled++) {
    cbgen_lp_result result = of_two(1, 1, 2, 1, scaled, 0);
    assert_int_equal(result.reason, CBGEN_REASON_CONVERGED);
    assert_true(fabs(result.primal_value - 0.5) < 1e-5);
    result = of_two(1, 5, 2, 1, scaled, 0); /* there is no such x */
    assert_int_equal(result.reason, CBGEN_REASON_PRIMAL_INFEASIBLE);
    result = of_two(-1, 1, INFINITY, 1, scaled, 0); /* there is no best one */
    assert_int_equal(result.reason, CBGEN_REASON_DUAL_INFEASIBLE);
    result = of_two(1, 5, 2, 1, scaled, -1); /* the same, and nobody looks */
    assert_int_equal(result.reason, CBGEN_REASON_ITERATIONS);
    assert_int_equal(result.iterations, 3000);
    assert_true(result.primal_residual > 0.4);
    result = of_two(-1, 1, INFINITY, 1, scaled, -1);
    assert_int_equal(result.reason, CBGEN_REASON_ITERATIONS);
    assert_true(result.dual_residual > 0.2);
    result = of_two(1, 5, INFINITY, 1, scaled, 0);
    assert_int_equal(result.reason, CBGEN_REASON_CONVERGED);
    assert_true(fabs(result.primal_value - 2.5) < 1e-5);
    assert_int_equal(of_two(1, 1, -1, 1, scaled, 0).reason, CBGEN_REASON_BREAKDOWN);
    assert_int_equal(of_two(1, INFINITY, 2, 1, scaled, 0).reason, CBGEN_REASON_BREAKDOWN);
    assert_int_equal(of_two(NAN, 1, 2, 1, scaled, 0).reason, CBGEN_REASON_NOT_A_NUMBER);
    assert_int_equal(of_two(INFINITY, 1, 2, 1, scaled, 0).reason, CBGEN_REASON_NOT_A_NUMBER);
    assert_int_equal(of_two(1, NAN, 2, 1, scaled, 0).reason, CBGEN_REASON_NOT_A_NUMBER);
    assert_int_equal(of_two(1, 1, NAN, 1, scaled, 0).reason, CBGEN_REASON_NOT_A_NUMBER);
    assert_int_equal(of_two(1, 1, 2, NAN, scaled, 0).reason, CBGEN_REASON_NOT_A_NUMBER);
    assert_int_equal(of_two(1, 1, 2, INFINITY, scaled, 0).reason, CBGEN_REASON_NOT_A_NUMBER);
  }
}

/* ---- streams */

/* Launches of two kinds, nothing that takes time, and the same bits each time. */
static void solutions_repeat_and_wait_for_nothing(void **state) {
  struct lp_bed bed = lp_bed_of(matrix_of(small), "recipe=sell", "recipe=merge", 5);
  const cbgen_lp_options options = lp_options_of(&bed, 1, 1e-6);
  const cbgen_lp_problem problem = problem_of(&bed);
  cbgen_lp *lp = lp_solver_of(&bed, &options);
  double first[100];
  (void)state;
  assert_string_equal(cbgen_lp_form(lp), "graph");
  for (int i = 0; i < 3; i++) {
    lp_solved(&bed, lp);
    if (i) assert_memory_equal(first, bed.host[PRIMAL], sizeof first);
    memcpy(first, bed.host[PRIMAL], sizeof first);
  }
  app_set_current(0);
  const struct fake_control before = *fake;
  assert_int_equal(cbgen_lp_solve(lp, &problem, lp_at(&bed, PRIMAL), lp_at(&bed, DUAL), NULL), CBGEN_OK);
  assert_int_equal(fake->graph_launches, before.graph_launches + 1);
  assert_int_equal(fake->turns, before.turns + 1); /* from the solution it is one check, of 64 iterations in a turn */
  assert_int_equal(fake->allocations, before.allocations);
  assert_int_equal(fake->waits, before.waits);
  assert_int_equal(fake->copies_to_host, before.copies_to_host);
  app_set_current(-1);
  cbgen_lp_free(lp);
  release_lp(&bed);
}

static void solutions_can_be_captured(void **state) {
  struct lp_bed bed = lp_bed_of(matrix_of(small), "recipe=sell", "", 5);
  const cbgen_lp_options options = lp_options_of(&bed, 1, 1e-6);
  const cbgen_lp_problem problem = problem_of(&bed);
  cbgen_lp *lp = lp_solver_of(&bed, &options);
  void *stream = app_stream(0, 1);
  cbgen_lp_result result;
  graph_t graph, exec;
  (void)state;
  app_set_current(0);
  assert_int_equal(begin_capture(stream, 0), 0);
  if (cbgen_lp_solve(lp, &problem, lp_at(&bed, PRIMAL), lp_at(&bed, DUAL), stream)) fail_msg("%s", cbgen_lp_message(lp));
  assert_int_equal(end_capture(stream, &graph), 0);
  assert_int_equal(instantiate(&exec, graph, 0), 0);
  for (int i = 0; i < 2; i++) {
    memset(bed.host[PRIMAL], 0, (size_t)bed.csr.cols * 8);
    memset(bed.host[DUAL], 0, (size_t)bed.csr.rows * 8);
    draw_lp(&bed, 20 + (uint64_t)i);
    for (int k = 0; k <= DUAL; k++) put_lp(&bed, k);
    assert_int_equal(launch_graph(exec, stream), 0);
    assert_int_equal(cbgen_lp_outcome(lp, &result), CBGEN_OK);
    take_lp(&bed, PRIMAL);
    take_lp(&bed, DUAL);
    must_be_solved(&bed, &result, 1e-6, "captured");
  }
  free_graph(graph);
  free_exec(exec);
  app_set_current(-1);
  cbgen_lp_free(lp);
  app_stream_free(stream);
  release_lp(&bed);
}

/* A driver without conditional nodes, and where none are wanted: the host repeats the same kernels, and the bits are
 * the same. */
static void the_host_repeats_what_no_graph_does(void **state) {
  enum { GRAPH, OLD, DEBUGGED, CASES };
  cbgen_lp_result results[CASES];
  (void)state;
  for (int i = 0; i < CASES; i++) {
    fake->version = i == OLD ? 12030 : 13000;
    if (i == DEBUGGED) setenv("CBGEN_DEBUG", "1", 1);
    struct lp_bed bed = lp_bed_of(matrix_of(small), "recipe=sell", "", 5);
    const cbgen_lp_options options = lp_options_of(&bed, 0, 1e-6);
    cbgen_lp *lp = lp_solver_of(&bed, &options);
    unsetenv("CBGEN_DEBUG");
    assert_string_equal(cbgen_lp_form(lp), i == GRAPH ? "graph" : "host");
    results[i] = lp_solved(&bed, lp);
    cbgen_lp_free(lp);
    release_lp(&bed);
    assert_memory_equal(&results[i], &results[GRAPH], sizeof results[GRAPH]);
  }
}

/* ---- clones */

/* Solves from zeros, with vectors of its own and the program of the bed. x: the bed's columns. */
struct solving {
  const struct lp_bed *bed;
  cbgen_lp *lp;
  void *stream;
  uint64_t x, y;
  double *found;
  cbgen_lp_result result;
};

static struct solving solving_of(const struct lp_bed *bed, cbgen_lp *lp) {
  const size_t cols = (size_t)bed->csr.cols, rows = (size_t)bed->csr.rows;
  return (struct solving){.bed = bed, .lp = lp, .stream = app_stream(0, 1), .x = app_alloc(0, cols * 8),
                          .y = app_alloc(0, rows * 8), .found = calloc(cols + rows, 8)};
}

static void begin_solving(struct solving *solving) {
  const struct lp_bed *bed = solving->bed;
  const cbgen_lp_problem problem = problem_of(bed);
  memset(solving->found, 0, (size_t)(bed->csr.cols + bed->csr.rows) * 8);
  assert_true(app_put(solving->x, solving->found, (size_t)bed->csr.cols * 8));
  assert_true(app_put(solving->y, solving->found, (size_t)bed->csr.rows * 8));
  void *const x = (void *)(uintptr_t)solving->x, *const y = (void *)(uintptr_t)solving->y;
  if (cbgen_lp_solve(solving->lp, &problem, x, y, solving->stream))
    fail_msg("%s", cbgen_lp_message(solving->lp));
}

static void end_solving(struct solving *solving) {
  assert_int_equal(cbgen_lp_outcome(solving->lp, &solving->result), CBGEN_OK);
  assert_true(app_take(solving->found, solving->x, (size_t)solving->bed->csr.cols * 8));
}

static void release_solving(struct solving *solving) {
  cbgen_lp_free(solving->lp);
  app_stream_free(solving->stream);
  app_free(solving->x);
  app_free(solving->y);
  free(solving->found);
}

/* Solutions of a solver and its clones at the same time: streams do nothing before somebody waits, so that what one has
 * begun is not over when the next begins. */
static void clones_have_vectors_of_their_own(void **state) {
  struct lp_bed bed = lp_bed_of(matrix_of(small), "recipe=sell", "recipe=merge", 5);
  const size_t bytes = (size_t)bed.csr.cols * 8;
  const uint64_t result_there = app_alloc(0, sizeof(cbgen_lp_result));
  const cbgen_lp_options options = lp_options_of(&bed, 1, 1e-6);
  cbgen_lp_options rough = lp_options_of(&bed, 1, 1e-2), wrong = options;
  cbgen_lp *lp = lp_solver_of(&bed, &options), *clone;
  struct solving all[3] = {solving_of(&bed, lp)};
  (void)state;
  const long compilations = fake->compilations, modules = fake->modules;
  rough.result = (cbgen_lp_result *)(uintptr_t)result_there;
  assert_int_equal(cbgen_lp_clone(lp, NULL, &clone), CBGEN_OK);
  all[1] = solving_of(&bed, clone);
  assert_int_equal(cbgen_lp_clone(lp, &rough, &clone), CBGEN_OK);
  all[2] = solving_of(&bed, clone);
  assert_int_equal(fake->compilations, compilations);
  assert_int_equal(fake->modules, modules);
  assert_string_equal(cbgen_lp_form(clone), "graph");
  fake->lazy = 1;
  for (int i = 0; i < 3; i++) begin_solving(&all[i]);
  for (int i = 2; i >= 0; i--) end_solving(&all[i]);
  fake->lazy = 0;
  assert_memory_equal(&all[0].result, &all[1].result, sizeof all[0].result);
  assert_memory_equal(all[0].found, all[1].found, bytes);
  assert_int_equal(all[0].result.reason, CBGEN_REASON_CONVERGED);
  assert_int_equal(all[2].result.reason, CBGEN_REASON_CONVERGED);
  assert_true(all[2].result.iterations < all[0].result.iterations);
  wrong.row_scales = wrong.column_scales = NULL;
  assert_int_equal(cbgen_lp_clone(lp, &wrong, &clone), CBGEN_ERROR_ARGUMENT);
  assert_null(clone);
  assert_non_null(strstr(cbgen_lp_message(lp), "has the solver's kernels"));
  wrong = options;
  wrong.max_iterations = -1;
  assert_int_equal(cbgen_lp_clone(lp, &wrong, &clone), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_lp_clone(lp, NULL, NULL), CBGEN_ERROR_ARGUMENT);
  /* A clone of a clone, when what it is from is gone. It has no result's place of another's. */
  const cbgen_lp_result before = all[2].result;
  assert_int_equal(cbgen_lp_clone(all[2].lp, NULL, &clone), CBGEN_OK);
  release_solving(&all[0]);
  release_solving(&all[2]);
  all[0] = solving_of(&bed, clone);
  assert_true(app_put(result_there, &(cbgen_lp_result){0}, sizeof before));
  begin_solving(&all[0]);
  end_solving(&all[0]);
  assert_memory_equal(&all[0].result, &before, sizeof before);
  cbgen_lp_result untouched;
  assert_true(app_take(&untouched, result_there, sizeof untouched));
  assert_int_equal(untouched.reason, CBGEN_REASON_NONE);
  release_solving(&all[0]);
  release_solving(&all[1]);
  app_free(result_there);
  release_lp(&bed);
}

enum { SIDE_BY_SIDE = 3, TURNS = 3 };

static void *solve_in_turns(void *user) {
  struct solving *solving = user;
  app_set_current(0);
  for (int turn = 0; turn < TURNS; turn++) {
    double *const first = turn ? malloc((size_t)solving->bed->csr.cols * 8) : NULL;
    if (first) memcpy(first, solving->found, (size_t)solving->bed->csr.cols * 8);
    begin_solving(solving);
    end_solving(solving);
    if (first) assert_memory_equal(first, solving->found, (size_t)solving->bed->csr.cols * 8);
    free(first);
  }
  app_set_current(-1);
  return NULL;
}

static void clones_work_in_threads(void **state) {
  struct lp_bed bed = lp_bed_of(matrix_of(small), "recipe=sell", "", 5);
  const cbgen_lp_options options = lp_options_of(&bed, 1, 1e-6);
  struct solving all[SIDE_BY_SIDE] = {solving_of(&bed, lp_solver_of(&bed, &options))};
  pthread_t threads[SIDE_BY_SIDE];
  (void)state;
  for (int i = 1; i < SIDE_BY_SIDE; i++) {
    cbgen_lp *clone;
    assert_int_equal(cbgen_lp_clone(all[0].lp, NULL, &clone), CBGEN_OK);
    all[i] = solving_of(&bed, clone);
  }
  for (int i = 0; i < SIDE_BY_SIDE; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, solve_in_turns, &all[i]), 0);
  for (int i = 0; i < SIDE_BY_SIDE; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < SIDE_BY_SIDE; i++) {
    assert_int_equal(all[i].result.reason, CBGEN_REASON_CONVERGED);
    assert_memory_equal(all[i].found, all[0].found, (size_t)bed.csr.cols * 8);
  }
  for (int i = 0; i < SIDE_BY_SIDE; i++) release_solving(&all[i]);
  release_lp(&bed);
}

/* ---- what the caller does wrong */

static void wrong_arguments_are_told(void **state) {
  struct lp_bed bed = lp_bed_of(matrix_of(small), "recipe=sell", "", 5);
  const cbgen_lp_options good = lp_options_of(&bed, 1, 1e-6);
  cbgen_lp *lp;
  (void)state;
  for (int i = 0; i < 9; i++) {
    static const char *const words[] = {"tolerance is negative", "tolerance is negative", "'max_iterations' is -1",
                                        "'norm' is -1",          "'weight' inf",          "one is missing",
                                        "not aligned",           "not aligned",           "struct_size"};
    cbgen_lp_options options = good;
    if (i == 0) options.relative_tolerance = -1;
    if (i == 1) options.absolute_tolerance = NAN;
    if (i == 2) options.max_iterations = -1;
    if (i == 3) options.norm = -1;
    if (i == 4) options.weight = INFINITY;
    if (i == 5) options.row_scales = NULL;
    if (i == 6) options.row_scales = (const char *)options.row_scales + 4;
    if (i == 7) options.result = (cbgen_lp_result *)(uintptr_t)(bed.there[COST] + 4);
    if (i == 8) options.struct_size = 3;
    assert_int_equal(cbgen_lp_create(bed.a, bed.transposed, &options, &lp), CBGEN_ERROR_ARGUMENT);
    assert_null(lp);
    if (!strstr(cbgen_operator_message(bed.a), words[i])) fail_msg("%s", cbgen_operator_message(bed.a));
  }
  assert_int_equal(cbgen_lp_create(bed.a, bed.a, &good, &lp), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_operator_message(bed.a), "the transpose of 60 x 100 is not 60 x 100"));
  assert_int_equal(cbgen_lp_create(bed.a, NULL, &good, &lp), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_lp_create(NULL, bed.a, &good, &lp), CBGEN_ERROR_ARGUMENT);
  lp = lp_solver_of(&bed, &good);
  cbgen_lp_problem problem = problem_of(&bed);
  void *x = lp_at(&bed, PRIMAL), *y = lp_at(&bed, DUAL);
  assert_int_equal(cbgen_lp_solve(lp, NULL, x, y, NULL), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_lp_solve(lp, &problem, NULL, y, NULL), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_lp_solve(lp, &problem, x, x, NULL), CBGEN_ERROR_ARGUMENT);
  problem.upper = (const char *)problem.upper + 1;
  assert_int_equal(cbgen_lp_solve(lp, &problem, x, y, NULL), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_lp_message(lp), "not aligned"));
  assert_int_equal(cbgen_lp_outcome(lp, NULL), CBGEN_ERROR_ARGUMENT);
  cbgen_lp_free(lp);
  release_lp(&bed);
}

static void operators_that_do_not_fit_are_told(void **state) {
  static const struct {
    const char *set, *words;
  } cases[] = {{"semiring=min-plus", "take semiring plus-times"},
               {"form=add", "of form ax or axpby"},
               {"type=f32", "different types of vectors"},
               {"type=f16", "vectors of f64 or f32"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct lp_bed bed = lp_bed_of(matrix_of("random,rows=30,cols=30,density=0.2"), "recipe=sell", "", 5);
    int32_t *pointers;
    const cbgen_csr view = view_of(&bed.csr, &pointers);
    cbgen_operator *other;
    cbgen_lp *lp;
    set_all(bed.context, cases[i].set);
    must(bed.context, cbgen_compile(bed.context, &view, NULL, &other));
    assert_true(cbgen_lp_create(bed.a, other, NULL, &lp) != CBGEN_OK);
    if (!strstr(cbgen_operator_message(bed.a), cases[i].words)) fail_msg("%s", cbgen_operator_message(bed.a));
    cbgen_operator_free(other);
    free(pointers);
    release_lp(&bed);
  }
}

/* Whatever fails, on the host or in the driver: a message, nothing left behind. */
static void failures_leave_nothing_behind(void **state) {
  struct lp_bed bed = lp_bed_of(matrix_of("random,rows=20,cols=30,density=0.2"), "recipe=sell", "", 5);
  const cbgen_lp_options options = lp_options_of(&bed, 1, 1e-6);
  cbgen_lp *lp;
  int failed = 0;
  (void)state;
  for (uint64_t nth = 1; nth < 6000; nth += nth < 200 ? 1 : 13) {
    cb_memory_fail_at(nth, 0);
    const cbgen_status s = cbgen_lp_create(bed.a, bed.transposed, &options, &lp);
    cb_memory_fail_at(0, 0);
    cbgen_lp_free(lp);
    if (!s) break;
    if (s != CBGEN_ERROR_MEMORY) fail_msg("allocation %d: %s", (int)nth, cbgen_operator_message(bed.a));
    failed++;
  }
  assert_true(failed > 10);
  failed = 0;
  lp = lp_solver_of(&bed, &options);
  for (uint64_t nth = 1; nth < 400; nth++) {
    cbgen_lp *clone;
    cb_memory_fail_at(nth, 0);
    const cbgen_status s = cbgen_lp_clone(lp, NULL, &clone);
    cb_memory_fail_at(0, 0);
    cbgen_lp_free(clone);
    if (!s) break;
    if (s != CBGEN_ERROR_MEMORY) fail_msg("allocation %d: %s", (int)nth, cbgen_lp_message(lp));
    assert_null(clone);
    failed++;
  }
  assert_in_range(failed, 3, 100);
  cbgen_lp_free(lp);
  failed = 0;
  for (int nth = 1; nth < 900; nth += nth < 60 ? 1 : 17) {
    const long graphs = fake->graphs, streams = fake->streams, modules = fake->modules, blocks = fake->blocks;
    fake->calls = 0;
    fake->fail_at = nth;
    fake->failure = 999;
    const cbgen_status s = cbgen_lp_create(bed.a, bed.transposed, &options, &lp);
    const int happened = fake->calls >= nth;
    fake->fail_at = 0;
    cbgen_lp_free(lp);
    if (s) assert_null(lp);
    assert_true(fake->graphs == graphs && fake->streams == streams);
    assert_true(fake->modules == modules && fake->blocks == blocks);
    if (!happened) break;
    failed += s != CBGEN_OK;
  }
  assert_true(failed > 10); /* the others leave a solver that the host drives */
  release_lp(&bed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(programs_are_solved, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(vectors_have_defaults, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(options_count, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(iterations_end, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(scales_bound_the_norm, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(every_end_has_its_reason, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(solutions_repeat_and_wait_for_nothing, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(solutions_can_be_captured, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(the_host_repeats_what_no_graph_does, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(clones_have_vectors_of_their_own, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(clones_work_in_threads, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(wrong_arguments_are_told, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(operators_that_do_not_fit_are_told, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(failures_leave_nothing_behind, open_graphs, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
