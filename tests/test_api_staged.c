// SPDX-License-Identifier: Apache-2.0
/* Solvers of several kernels around the operator's products: in a CUDA graph that repeats them, in one that the caller
 * captures, and from the host; with preconditioners of the caller's. Whole solutions on the emulation. */
#include "tests/solver_support.h"

typedef void *graph_t;
static unsigned (*copy)(uint64_t to, uint64_t from, size_t bytes, void *stream);
static unsigned (*begin_capture)(void *stream, unsigned mode);
static unsigned (*end_capture)(void *stream, graph_t *graph);
static unsigned (*instantiate)(graph_t *exec, graph_t graph, unsigned long long flags);
static unsigned (*launch_graph)(graph_t exec, void *stream);
static unsigned (*free_graph)(graph_t graph), (*free_exec)(graph_t exec), (*synchronize)(void *stream);

static int open_graphs(void **state) {
  const int failed = open_fake(state);
  if (failed) return failed;
  bind_fake(&copy, "cuMemcpyDtoDAsync_v2");
  bind_fake(&begin_capture, "cuStreamBeginCapture_v2");
  bind_fake(&end_capture, "cuStreamEndCapture");
  bind_fake(&instantiate, "cuGraphInstantiateWithFlags");
  bind_fake(&launch_graph, "cuGraphLaunch");
  bind_fake(&free_graph, "cuGraphDestroy");
  bind_fake(&free_exec, "cuGraphExecDestroy");
  bind_fake(&synchronize, "cuStreamSynchronize");
  return 0;
}

static cbgen_solver *solver_of(struct bed *bed, const char *method, const cbgen_solver_options *options,
                               const char *form) {
  cbgen_solver *solver;
  must_operator(bed->op, cbgen_solver_create(bed->op, method, options, &solver));
  assert_string_equal(cbgen_solver_form(solver), form);
  return solver;
}

static cbgen_outcome solve_with(struct bed *bed, cbgen_solver *solver) {
  cbgen_outcome outcome;
  start_from(bed, 0.25);
  if (cbgen_solve(solver, (void *)(uintptr_t)bed->b_there, (void *)(uintptr_t)bed->x_there, NULL))
    fail_msg("%s", cbgen_solver_message(solver));
  assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
  return outcome;
}

/* As many iterations as one kernel takes, about, and as small a residual. */
static void check_method(struct bed *bed, const char *method, cbgen_solver_options options) {
  const double limit = bed->type == CB_F64 ? 1e-8 : 1e-5, slack = bed->type == CB_F64 ? 1e-13 : 1e-5;
  double norm;
  cbgen_solver *solver = solver_of(bed, method, &options, "block");
  const cbgen_outcome expected = solve_with(bed, solver);
  cbgen_solver_free(solver);
  options.program_form = "graph";
  solver = solver_of(bed, method, &options, "graph");
  const long turns = fake->turns;
  const cbgen_outcome outcome = solve_with(bed, solver);
  const double residual = host_residual(bed, &norm);
  cbgen_solver_free(solver);
  if (outcome.reason != CBGEN_REASON_CONVERGED || abs(outcome.iterations - expected.iterations) > 1)
    fail_msg("%s: reason %d, %d iterations instead of %d, residual %g", method, outcome.reason, outcome.iterations,
             expected.iterations, outcome.residual);
  const int bodies = strcmp(method, "gmres") != 0 ? 8 : 1; /* to a turn; chebyshev's 20 steps are first */
  assert_in_range(fake->turns - turns, outcome.iterations / bodies, (outcome.iterations + 40) / bodies + 1);
  assert_true(residual <= (2 * limit + slack) * norm);
  assert_true(fabs(outcome.true_residual - residual) <= slack * norm);
}

static void methods_solve_in_graphs(void **state) {
  static const char *const methods[] = {"cg", "bicgstab", "minres", "chebyshev", "jacobi", "gmres"};
  struct bed bed = bed_of(system_of("random,rows=700,cols=700,density=0.01", SYMMETRIC), "recipe=merge");
  (void)state;
  for (int m = 0; m < 6; m++)
    for (int diagonal = 0; diagonal < 2; diagonal++) {
      cbgen_solver_options options = with_diagonal(&bed, diagonal);
      options.program_form = "block";
      if (!strcmp(methods[m], "jacobi") && !diagonal) options.weight = 0.05;
      check_method(&bed, methods[m], options);
    }
  release(&bed);
  bed = bed_of(system_of("fe3,n=5", SYMMETRIC), "recipe=blocks type=f32");
  cbgen_solver_options options = with_diagonal(&bed, 1);
  options.program_form = "block";
  check_method(&bed, "cg", options);
  release(&bed);
}

/* Kernels that so many iterations take, of a solution that needs more. */
static long kernels_of(struct bed *bed, int iterations) {
  cbgen_solver_options options = with_diagonal(bed, 1);
  options.program_form = "graph";
  options.relative_tolerance = 1e-30;
  options.max_iterations = iterations;
  cbgen_solver *solver = solver_of(bed, "cg", &options, "graph");
  const long before = fake->executed;
  const cbgen_outcome outcome = solve_with(bed, solver);
  assert_int_equal(outcome.reason, CBGEN_REASON_ITERATIONS);
  assert_int_equal(outcome.iterations, iterations);
  cbgen_solver_free(solver);
  return fake->executed - before;
}

/* Where few iterations are allowed, turns of the loop are equal, and none of them executes a body in vain. */
static void turns_are_equal(void **state) {
  struct bed bed = bed_of(system_of("random,rows=300,cols=300,density=0.03", SYMMETRIC), "recipe=sell");
  const long three = kernels_of(&bed, 3), each = kernels_of(&bed, 4) - three;
  (void)state;
  assert_true(each >= 3);
  assert_int_equal(kernels_of(&bed, 8) - three, 5 * each);
  const long turn = kernels_of(&bed, 10) - three - 7 * each; /* two of five, and what a turn ends with */
  assert_in_range(turn, 0, 1);
  assert_int_equal(kernels_of(&bed, 16) - three, 13 * each + turn);
  assert_int_equal(kernels_of(&bed, 15) - three, 13 * each + turn); /* one in vain */
  assert_int_equal(kernels_of(&bed, 18) - three, 15 * each + 2 * turn);
  release(&bed);
}

/* GMRES keeps what one kernel does: the same residuals, however long its rounds are, and the same end. */
static void gmres_has_the_same_residuals(void **state) {
  static const int restarts[] = {64, 7, 1};
  struct bed bed = bed_of(system_of("random,rows=250,cols=250,density=0.03", UNSYMMETRIC), "recipe=sell");
  const uint64_t there = app_alloc(0, 301 * sizeof(double));
  double history[2][301], norm;
  (void)state;
  for (int i = 0; i < 6; i++) {
    cbgen_outcome outcomes[2];
    for (int form = 0; form < 2; form++) {
      cbgen_solver_options options = with_diagonal(&bed, i % 2);
      options.restart = restarts[i / 2];
      options.max_iterations = 300;
      options.history = (double *)(uintptr_t)there;
      options.program_form = form ? "graph" : "block";
      cbgen_solver *solver = solver_of(&bed, "gmres", &options, options.program_form);
      outcomes[form] = solve_with(&bed, solver);
      assert_true(host_residual(&bed, &norm) <= 1.01e-8 * norm);
      assert_true(app_take(history[form], there, sizeof history[form]));
      cbgen_solver_free(solver);
    }
    assert_int_equal(outcomes[1].reason, CBGEN_REASON_CONVERGED);
    assert_int_equal(outcomes[0].iterations, outcomes[1].iterations);
    for (int k = 0; k <= outcomes[0].iterations; k++)
      assert_true(fabs(history[0][k] - history[1][k]) <= 1e-6 * history[0][k]);
  }
  app_free(there);
  release(&bed);
}

/* The eigenvalue and the ranks are those that one kernel finds. */
static void other_methods_find_the_same(void **state) {
  static const char *const methods[] = {"power", "pagerank"};
  struct bed bed = bed_of(system_of("random,rows=200,cols=200,density=0.03", SYMMETRIC), "recipe=sell");
  double numbers[200], found[200];
  (void)state;
  for (int i = 0; i < 200; i++) numbers[i] = 1;
  assert_true(app_put(bed.b_there, numbers, sizeof numbers));
  for (int m = 0; m < 2; m++) {
    cbgen_outcome outcomes[2];
    for (int form = 0; form < 2; form++) {
      const cbgen_solver_options options = {.struct_size = sizeof options,
                                            .program_form = form ? "graph" : "block",
                                            .max_iterations = 40,
                                            .relative_tolerance = m ? 1e-9 : 1e-6};
      cbgen_solver *solver = solver_of(&bed, methods[m], &options, options.program_form);
      outcomes[form] = solve_with(&bed, solver);
      take_x(&bed);
      for (int i = 0; i < 200 && form; i++) assert_true(fabs(bed.x[i] - found[i]) <= 1e-12 * (1 + fabs(found[i])));
      memcpy(found, bed.x, sizeof found);
      cbgen_solver_free(solver);
    }
    assert_int_equal(outcomes[0].reason, outcomes[1].reason);
    assert_int_equal(outcomes[0].iterations, outcomes[1].iterations);
    assert_true(fabs(outcomes[0].value - outcomes[1].value) <= 1e-13 * fabs(outcomes[0].value));
  }
  release(&bed);
}

/* Two launches, nothing that takes time, and the same bits each time; the history has every iteration. */
static void solutions_repeat_and_wait_for_nothing(void **state) {
  struct bed bed = bed_of(system_of("random,rows=600,cols=600,density=0.01", SYMMETRIC), "recipe=sell");
  cbgen_solver_options options = with_diagonal(&bed, 1);
  const uint64_t history = app_alloc(0, 300 * sizeof(double));
  double squares[300], first[600];
  (void)state;
  options.program_form = "graph";
  options.max_iterations = 299;
  options.history = (double *)(uintptr_t)history;
  cbgen_solver *solver = solver_of(&bed, "cg", &options, "graph");
  for (int i = 0; i < 3; i++) {
    start_from(&bed, 0);
    app_set_current(0);
    const struct fake_control before = *fake;
    assert_int_equal(cbgen_solve(solver, (void *)(uintptr_t)bed.b_there, (void *)(uintptr_t)bed.x_there, NULL),
                     CBGEN_OK);
    assert_int_equal(fake->graph_launches, before.graph_launches + 1);
    assert_int_equal(fake->allocations, before.allocations);
    assert_int_equal(fake->waits, before.waits);
    assert_int_equal(fake->copies_to_host, before.copies_to_host);
    app_set_current(-1);
    take_x(&bed);
    if (i) assert_memory_equal(first, bed.x, sizeof first);
    memcpy(first, bed.x, sizeof first);
  }
  cbgen_outcome outcome;
  assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
  assert_true(app_take(squares, history, ((size_t)outcome.iterations + 1) * sizeof *squares));
  assert_true(sqrt(squares[outcome.iterations]) == outcome.residual && squares[0] > squares[outcome.iterations]);
  cbgen_solver_free(solver);
  app_free(history);
  release(&bed);
}

/* ---- how solutions end */

static cbgen_outcome end_of(const double *values, const char *method, double last_of_b, int most) {
  return of_diagonal(values, method, 39, last_of_b,
                     (cbgen_solver_options){.program_form = "graph", .max_iterations = most});
}

static void every_end_has_its_reason(void **state) {
  static const double plain[4] = {1, 2, 3, 4}, indefinite[4] = {1, -1, 1, -1}, singular[4] = {0, 0, 0, 0},
                      infinite[4] = {1, INFINITY, 1, 1}, same[4] = {2, 2, 2, 2};
  (void)state;
  assert_int_equal(end_of(plain, "cg", 1, 0).reason, CBGEN_REASON_CONVERGED);
  assert_int_equal(end_of(plain, "cg", 1, 2).reason, CBGEN_REASON_ITERATIONS);
  assert_int_equal(end_of(plain, "cg", 1, 2).iterations, 2);
  assert_int_equal(end_of(same, "cg", 1, 0).iterations, 1);
  assert_int_equal(end_of(indefinite, "cg", 1, 0).reason, CBGEN_REASON_BREAKDOWN);
  assert_int_equal(end_of(singular, "cg", 1, 0).reason, CBGEN_REASON_BREAKDOWN);
  assert_int_equal(end_of(singular, "bicgstab", 1, 0).reason, CBGEN_REASON_BREAKDOWN);
  assert_int_equal(end_of(infinite, "cg", 1, 0).reason, CBGEN_REASON_NOT_A_NUMBER);
  assert_int_equal(end_of(plain, "bicgstab", NAN, 0).reason, CBGEN_REASON_NOT_A_NUMBER);
  assert_int_equal(end_of(plain, "gmres", 1, 2).reason, CBGEN_REASON_ITERATIONS);
  assert_int_equal(end_of(plain, "gmres", 1, 2).iterations, 2);
  assert_int_equal(end_of(plain, "gmres", 1, 0).iterations, 4); /* as many as there are eigenvalues */
  assert_int_equal(end_of(singular, "gmres", 1, 0).reason, CBGEN_REASON_BREAKDOWN);
  assert_int_equal(end_of(infinite, "gmres", 1, 0).reason, CBGEN_REASON_NOT_A_NUMBER);
  assert_int_equal(end_of(plain, "gmres", NAN, 0).reason, CBGEN_REASON_NOT_A_NUMBER);
  assert_int_equal(end_of(plain, "cg", INFINITY, 0).reason, CBGEN_REASON_NOT_A_NUMBER);
}

/* ---- streams, clones, captures */

/* A graph that captured a solution solves for what its vectors hold when it is launched. */
static void solutions_can_be_captured(void **state) {
  struct bed bed = bed_of(system_of("random,rows=120,cols=120,density=0.05", SYMMETRIC), "recipe=sell");
  cbgen_solver_options options = with_diagonal(&bed, 1);
  void *stream = app_stream(0, 1);
  graph_t graph, exec;
  double norm;
  cbgen_outcome outcome;
  (void)state;
  options.program_form = "graph";
  cbgen_solver *solver = solver_of(&bed, "cg", &options, "graph");
  app_set_current(0);
  assert_int_equal(begin_capture(stream, 0), 0);
  const long launches = fake->launches;
  if (cbgen_solve(solver, (void *)(uintptr_t)bed.b_there, (void *)(uintptr_t)bed.x_there, stream))
    fail_msg("%s", cbgen_solver_message(solver));
  assert_int_equal(end_capture(stream, &graph), 0);
  assert_int_equal(fake->launches, launches);
  assert_int_equal(instantiate(&exec, graph, 0), 0);
  for (int i = 0; i < 2; i++) {
    fill_vector(bed.b_there, bed.b, 120, bed.type, 5 + (uint64_t)i);
    start_from(&bed, 0);
    assert_int_equal(launch_graph(exec, stream), 0);
    assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
    assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
    assert_true(host_residual(&bed, &norm) <= 2e-8 * norm);
  }
  free_graph(graph);
  free_exec(exec);
  app_set_current(-1);
  cbgen_solver_free(solver);
  app_stream_free(stream);
  release(&bed);
}

static void clones_share_kernels(void **state) {
  struct bed bed = bed_of(system_of("random,rows=150,cols=150,density=0.04", SYMMETRIC), "recipe=sell");
  cbgen_solver_options options = with_diagonal(&bed, 1);
  cbgen_solver *clone;
  (void)state;
  options.program_form = "graph";
  cbgen_solver *solver = solver_of(&bed, "bicgstab", &options, "graph");
  const long compilations = fake->compilations, modules = fake->modules;
  assert_int_equal(cbgen_solver_clone(solver, NULL, &clone), CBGEN_OK);
  assert_true(fake->compilations == compilations && fake->modules == modules);
  assert_string_equal(cbgen_solver_form(clone), "graph");
  const cbgen_outcome first = solve_with(&bed, solver);
  cbgen_solver_free(solver);
  const cbgen_outcome second = solve_with(&bed, clone);
  assert_memory_equal(&first, &second, sizeof first);
  cbgen_solver_free(clone);
  release(&bed);
}

/* A driver without conditional nodes: the host repeats the same kernels, and the bits are the same. */
static void old_drivers_take_the_host(void **state) {
  cbgen_outcome outcomes[2];
  for (int old = 0; old < 2; old++) {
    fake->version = old ? 12030 : 13000;
    struct bed bed = bed_of(system_of("random,rows=150,cols=150,density=0.04", SYMMETRIC), "recipe=sell");
    const cbgen_solver_options options = {.struct_size = sizeof options, .program_form = "graph"};
    cbgen_solver *solver = solver_of(&bed, "cg", &options, old ? "host" : "graph");
    outcomes[old] = solve_with(&bed, solver);
    if (old) {
      void *stream = app_stream(0, 1);
      graph_t graph;
      app_set_current(0);
      assert_int_equal(begin_capture(stream, 0), 0);
      assert_int_equal(cbgen_solve(solver, (void *)(uintptr_t)bed.b_there, (void *)(uintptr_t)bed.x_there, stream),
                       CBGEN_ERROR_ARGUMENT);
      assert_non_null(strstr(cbgen_solver_message(solver), "the host drives this solver"));
      assert_int_equal(end_capture(stream, &graph), 0);
      free_graph(graph);
      app_set_current(-1);
      app_stream_free(stream);
    }
    cbgen_solver_free(solver);
    release(&bed);
  }
  (void)state;
  assert_memory_equal(&outcomes[0], &outcomes[1], sizeof outcomes[0]);
}

/* ---- progress */

struct told {
  struct bed *bed;
  int calls, last, stop_at;
  double residuals[301], worst; /* worst: how far a residual is from that of x, as a part of b's norm */
};

static int is_told(void *user, int iterations, double residual, const void *x) {
  struct told *told = user;
  const uint64_t own = told->bed->x_there;
  double norm;
  told->calls++;
  assert_true(iterations > told->last && iterations <= 300);
  told->last = iterations;
  told->residuals[iterations] = residual;
  told->bed->x_there = (uint64_t)(uintptr_t)x;
  app_set_current(-1); /* the library has made its context current */
  const double found = host_residual(told->bed, &norm);
  app_set_current(0);
  told->bed->x_there = own;
  told->worst = fmax(told->worst, fabs(found - residual) / norm);
  return iterations == told->stop_at;
}

/* The caller sees every iteration, with its residual and its x, and the bits are those of the graph. */
static void progress_is_told(void **state) {
  static const char *const methods[] = {"cg", "bicgstab", "minres", "gmres", "chebyshev", "jacobi"};
  struct bed bed = bed_of(system_of("random,rows=150,cols=150,density=0.04", SYMMETRIC), "recipe=sell");
  const uint64_t there = app_alloc(0, 301 * sizeof(double));
  double history[301], first[150];
  (void)state;
  for (int m = 0; m < 6; m++) {
    struct told told = {.bed = &bed};
    cbgen_solver_options options = with_diagonal(&bed, 1);
    options.program_form = "graph";
    options.max_iterations = 300;
    options.history = (double *)(uintptr_t)there;
    cbgen_solver *solver = solver_of(&bed, methods[m], &options, "graph");
    const cbgen_outcome expected = solve_with(&bed, solver);
    take_x(&bed);
    memcpy(first, bed.x, sizeof first);
    assert_true(app_take(history, there, sizeof history));
    cbgen_solver_free(solver);
    options.program_form = NULL;
    options.progress = is_told;
    options.progress_user = &told;
    solver = solver_of(&bed, methods[m], &options, "host");
    const cbgen_outcome outcome = solve_with(&bed, solver);
    take_x(&bed);
    assert_memory_equal(&outcome, &expected, sizeof outcome);
    assert_memory_equal(first, bed.x, sizeof first);
    assert_int_equal(told.last, outcome.iterations);
    assert_int_equal(told.calls, outcome.iterations);
    for (int k = 1; k <= told.last; k++) { /* behind a round of gmres the history has the true residual */
      const double slack = strcmp(methods[m], "gmres") ? 0 : 1e-6;
      const double wanted = sqrt(history[strcmp(methods[m], "jacobi") ? k : k - 1]);
      if (!(fabs(told.residuals[k] - wanted) <= slack * wanted))
        fail_msg("%s, %d: %g instead of %g", methods[m], k, told.residuals[k], wanted);
    }
    if (m < 3 && told.worst > 1e-10) fail_msg("%s: %g", methods[m], told.worst);
    cbgen_solver_free(solver);
  }
  app_free(there);
  release(&bed);
}

/* From the caller: where he says so, with x as it was then. */
static void progress_ends_a_solution(void **state) {
  static const char *const settings[] = {"recipe=sell", "recipe=sell type=f32"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    struct bed bed = bed_of(system_of("random,rows=150,cols=150,density=0.04", SYMMETRIC), settings[i]);
    struct told told = {.bed = &bed, .stop_at = 3};
    const cbgen_solver_options options = {.struct_size = sizeof options, .progress = is_told, .progress_user = &told};
    double norm;
    cbgen_solver *solver = solver_of(&bed, "cg", &options, "host"), *clone;
    const cbgen_outcome outcome = solve_with(&bed, solver);
    assert_int_equal(outcome.reason, CBGEN_REASON_STOPPED);
    assert_true(outcome.iterations == 3 && told.last == 3 && told.calls == 3);
    assert_true(outcome.residual == told.residuals[3]);
    assert_true(fabs(host_residual(&bed, &norm) - outcome.true_residual) <= 1e-6 * norm);
    assert_true(told.worst <= (i ? 1e-5 : 1e-10));
    /* A clone has a function of its own. */
    struct told other = {.bed = &bed, .stop_at = 2};
    const cbgen_solver_options of_clone = {
        .struct_size = sizeof of_clone, .progress = is_told, .progress_user = &other};
    assert_int_equal(cbgen_solver_clone(solver, &of_clone, &clone), CBGEN_OK);
    assert_int_equal(solve_with(&bed, clone).iterations, 2);
    cbgen_solver_free(clone);
    assert_int_equal(cbgen_solver_clone(solver, &(cbgen_solver_options){.struct_size = sizeof options}, &clone),
                     CBGEN_ERROR_ARGUMENT);
    cbgen_solver_free(solver);
    const cbgen_solver_options of_grid = {.struct_size = sizeof of_grid, .progress = is_told, .program_form = "grid"};
    assert_int_equal(cbgen_solver_create(bed.op, "cg", &of_grid, &solver), CBGEN_ERROR_ARGUMENT);
    assert_non_null(strstr(cbgen_operator_message(bed.op), "'progress' needs program form 'graph', not 'grid'"));
    release(&bed);
  }
}

/* ---- preconditioners of the caller's */

struct caller {
  size_t bytes;
  int calls, waits, fails;
};

/* z = r. */
static int copies(void *user, const void *r, void *z, void *stream) {
  struct caller *caller = user;
  caller->calls++;
  if (caller->fails) return 1;
  if (copy((uint64_t)(uintptr_t)z, (uint64_t)(uintptr_t)r, caller->bytes, stream)) return 1;
  return caller->waits && synchronize(stream); /* which no capture allows */
}

static void the_callers_preconditioner_is_called(void **state) {
  static const char *const methods[] = {"cg", "bicgstab"};
  struct bed bed = bed_of(system_of("random,rows=300,cols=300,density=0.02", SYMMETRIC), "recipe=sell");
  (void)state;
  for (int m = 0; m < 2; m++)
    for (int waits = 0; waits < 2; waits++) {
      struct caller caller = {.bytes = 300 * sizeof(double), .waits = waits};
      cbgen_solver_options options = {
          .struct_size = sizeof options, .precondition = copies, .precondition_user = &caller,
          .max_iterations = 200};
      double norm;
      cbgen_solver *solver = solver_of(&bed, methods[m], &options, waits ? "host" : "graph");
      const int made = caller.calls;
      const cbgen_outcome outcome = solve_with(&bed, solver);
      if (outcome.reason != CBGEN_REASON_CONVERGED)
        fail_msg("%s: reason %d, residual %g", methods[m], outcome.reason, outcome.residual);
      assert_true(host_residual(&bed, &norm) <= 2e-8 * norm);
      assert_in_range(made, 1, m ? 4 : 2);
      if (waits) assert_true(caller.calls - made >= outcome.iterations);
      else assert_int_equal(caller.calls, made); /* the graph replays what it captured */
      options.precondition = NULL;
      cbgen_solver *plain = solver_of(&bed, methods[m], &(cbgen_solver_options){.struct_size = sizeof options,
                                                                              .program_form = "graph"}, "graph");
      assert_in_range(solve_with(&bed, plain).iterations, outcome.iterations - 1, outcome.iterations + 1);
      cbgen_solver_free(plain);
      cbgen_solver_free(solver);
    }
  release(&bed);
}

static void what_the_caller_does_wrong_is_told(void **state) {
  struct bed bed = bed_of(system_of("random,rows=60,cols=60,density=0.1", SYMMETRIC), "recipe=sell");
  struct caller caller = {.bytes = 60 * sizeof(double), .fails = 1};
  cbgen_solver_options options = {.struct_size = sizeof options, .precondition = copies, .precondition_user = &caller};
  (void)state;
  cbgen_solver *solver = solver_of(&bed, "cg", &options, "host"), *none;
  start_from(&bed, 0);
  assert_int_equal(cbgen_solve(solver, (void *)(uintptr_t)bed.b_there, (void *)(uintptr_t)bed.x_there, NULL),
                   CBGEN_ERROR_DEVICE);
  assert_non_null(strstr(cbgen_solver_message(solver), "the preconditioner failed"));
  cbgen_solver_free(solver);
  static const struct {
    const char *method, *form;
    int diagonal, blocks;
    const char *words;
  } cases[] = {{"minres", NULL, 0, 0, "takes no 'precondition'"},
               {"cg", NULL, 1, 0, "takes one of them"},
               {"cg", "grid", 0, 0, "needs program form 'graph', not 'grid'"},
               {"cg", "circle", 0, 0, "no program form 'circle'"},
               {"cg", "graph", 0, 2, "takes no 'thread_blocks'"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    options.program_form = cases[i].form;
    options.diagonal = cases[i].diagonal ? (void *)(uintptr_t)bed.diagonal : NULL;
    options.thread_blocks = cases[i].blocks;
    assert_int_equal(cbgen_solver_create(bed.op, cases[i].method, &options, &none), CBGEN_ERROR_ARGUMENT);
    if (!strstr(cbgen_operator_message(bed.op), cases[i].words)) fail_msg("%s", cbgen_operator_message(bed.op));
  }
  assert_string_equal(cbgen_solver_form(NULL), "");
  release(&bed);
}

/* Whatever fails, on the host or in the driver: a message, nothing left behind. */
static void failures_leave_nothing_behind(void **state) {
  struct bed bed = bed_of(system_of("random,rows=50,cols=50,density=0.1", SYMMETRIC), "recipe=sell");
  const cbgen_solver_options options = {.struct_size = sizeof options, .program_form = "graph"};
  cbgen_solver *solver;
  int failed = 0;
  (void)state;
  for (uint64_t nth = 1; nth < 4000; nth++) {
    cb_memory_fail_at(nth, 0);
    const cbgen_status s = cbgen_solver_create(bed.op, "cg", &options, &solver);
    cb_memory_fail_at(0, 0);
    cbgen_solver_free(solver);
    if (!s) break;
    if (s != CBGEN_ERROR_MEMORY) fail_msg("allocation %d: %s", (int)nth, cbgen_operator_message(bed.op));
    failed++;
  }
  assert_true(failed > 10);
  failed = 0;
  for (int nth = 1; nth < 400; nth++) {
    const long graphs = fake->graphs, streams = fake->streams, modules = fake->modules, blocks = fake->blocks;
    fake->calls = 0;
    fake->fail_at = nth;
    fake->failure = 999;
    const cbgen_status s = cbgen_solver_create(bed.op, "cg", &options, &solver);
    const int happened = fake->calls >= nth;
    fake->fail_at = 0;
    cbgen_solver_free(solver);
    if (s) assert_null(solver);
    assert_true(fake->graphs == graphs && fake->streams == streams);
    assert_true(fake->modules == modules && fake->blocks == blocks);
    if (!happened) break;
    failed += s != CBGEN_OK;
  }
  assert_true(failed > 10); /* the others leave a solver that the host drives */
  release(&bed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(turns_are_equal, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(methods_solve_in_graphs, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(gmres_has_the_same_residuals, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(other_methods_find_the_same, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(solutions_repeat_and_wait_for_nothing, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(every_end_has_its_reason, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(solutions_can_be_captured, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(clones_share_kernels, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(old_drivers_take_the_host, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(progress_is_told, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(progress_ends_a_solution, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(the_callers_preconditioner_is_called, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(what_the_caller_does_wrong_is_told, open_graphs, check_fake),
      cmocka_unit_test_setup_teardown(failures_leave_nothing_behind, open_graphs, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
