// SPDX-License-Identifier: Apache-2.0
/* Solvers through the public interface, whole solutions on the emulation: every thread block in flight, barriers that
 * diverge and vectors that are read and written at once are errors. What they say of the residual is compared with long
 * doubles on the host. */
#include "tests/recipes.h"
#include "tests/solver_support.h"

static void each_method_solves(void **state) {
  (void)state;
  for (int diagonal = 0; diagonal < 2; diagonal++) {
    check_solution("random,rows=300,cols=300,density=0.02", SYMMETRIC, "recipe=sell", "cg", diagonal);
    check_solution("random,rows=300,cols=300,density=0.02", SYMMETRIC, "recipe=sell", "bicgstab", diagonal);
    check_solution("random,rows=300,cols=300,density=0.02", UNSYMMETRIC, "recipe=sell", "bicgstab", diagonal);
  }
}

static void solutions_of_several_layouts(void **state) {
  (void)state;
  check_solution("random,rows=2000,cols=2000,density=0.004", SYMMETRIC, "recipe=merge", "cg", 1);
  check_solution("stencil7,n=9", SYMMETRIC, "recipe=dia", "cg", 1);
  check_solution("fe3,n=5", SYMMETRIC, "recipe=blocks", "cg", 0);
  check_solution("random,rows=500,cols=500,density=0.02", SYMMETRIC, "recipe=sell type=f32", "cg", 1);
  check_solution("random,rows=500,cols=500,density=0.02", UNSYMMETRIC, "recipe=sell form=ax", "bicgstab", 1);
}

/* Every form solves; thread blocks of a cluster, and virtual ones side by side, more and fewer than have work. */
static void every_form_solves(void **state) {
  static const struct {
    const char *form;
    int blocks;
  } forms[] = {{"grid", 0}, {"grid", 3}, {"cluster", 0}, {"cluster", 1},
               {"cluster", 5}, {"cluster", 16}, {"block", 0}, {"grid+steps", 2},
               {"cluster+resident", 0}, {"cluster+resident", 1}, {"cluster+resident", 5}, {"cluster+steps+resident", 16},
               {"block+resident", 0}, {"block+resident+steps", 1},
               {"grid+resident", 0}, {"grid+steps+resident", 3}};
  static const struct {
    const char *matrix, *settings;
    enum kind kind;
  } systems[] = {{"stencil7,n=11", "recipe=dia", SYMMETRIC},
                 {"random,rows=900,cols=900,density=0.006", "recipe=merge", UNSYMMETRIC},
                 {"fe3,n=5", "recipe=blocks type=f32", SYMMETRIC}};
  (void)state;
  for (int i = 0; i < 3; i++) {
    struct bed bed = bed_of(system_of(systems[i].matrix, systems[i].kind), systems[i].settings);
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
      for (int m = systems[i].kind == UNSYMMETRIC; m < 2; m++) {
        cbgen_solver_options options = with_diagonal(&bed, (k + (size_t)m) % 2);
        double norm;
        if (strstr(systems[i].settings, "merge") && strstr(forms[k].form, "resident")) continue; /* it has carry slots */
        options.program_form = forms[k].form;
        options.thread_blocks = forms[k].blocks;
        start_from(&bed, 0.125);
        const cbgen_outcome outcome = solved(&bed, m ? "bicgstab" : "cg", &options);
        const double residual = host_residual(&bed, &norm), limit = bed.type == CB_F64 ? 2e-8 : 4e-5;
        if (outcome.reason != CBGEN_REASON_CONVERGED || !(residual <= limit * norm))
          fail_msg("%s, %s of %d: reason %d, residual %g", systems[i].matrix, forms[k].form, forms[k].blocks,
                   outcome.reason, residual);
        assert_true(fabs(outcome.true_residual - residual) <= (bed.type == CB_F64 ? 1e-13 : 1e-5) * norm);
      }
    release(&bed);
  }
}

/* Rows that a thread block commits lie apart, so that those of its own find no room; and few, of which some thread
 * blocks of the cluster have none. The same bits each time. */
static void resident_rows_may_lie_apart(void **state) {
  static const struct {
    const char *matrix, *settings, *method;
    enum kind kind;
    int blocks;
  } cases[] = {{"rmat,scale=9", "recipe=sell", "cg", SYMMETRIC, 8},
               {"rmat,scale=9", "recipe=sell type=f32", "bicgstab", UNSYMMETRIC, 3},
               {"stencil7,n=4", "recipe=dia", "minres", SYMMETRIC, 16},
               {"fe3,n=5", "recipe=blocks", "minres", SYMMETRIC, 2}};
  (void)state;
  for (int i = 0; i < 4; i++) {
    struct bed bed = bed_of(system_of(cases[i].matrix, cases[i].kind), cases[i].settings);
    cbgen_solver_options options = with_diagonal(&bed, i % 2);
    double norm, first = 0;
    options.program_form = "cluster+resident";
    options.thread_blocks = cases[i].blocks;
    for (int turn = 0; turn < 2; turn++) {
      start_from(&bed, 0.125);
      const cbgen_outcome outcome = solved(&bed, cases[i].method, &options);
      const double residual = host_residual(&bed, &norm);
      if (outcome.reason != CBGEN_REASON_CONVERGED || !(residual <= (bed.type == CB_F64 ? 2e-8 : 4e-5) * norm))
        fail_msg("%s: reason %d, residual %g", cases[i].matrix, outcome.reason, residual);
      assert_true(fabs(outcome.true_residual - residual) <= (bed.type == CB_F64 ? 1e-13 : 1e-5) * norm);
      if (turn) assert_true(outcome.residual == first);
      first = outcome.residual;
    }
    release(&bed);
  }
}

/* One meeting in an iteration: as many iterations as with two, but for rounding, and the same bits each time. */
static void fewer_meetings_take_as_many_iterations(void **state) {
  static const struct {
    const char *matrix, *settings, *form;
    int blocks;
  } cases[] = {{"stencil7,n=11", "recipe=dia", "grid", 0},
               {"stencil7,n=13", "recipe=dia", "grid+resident", 3},
               {"stencil7,n=11", "recipe=dia", "cluster", 3},
               {"stencil7,n=11", "recipe=dia", "cluster+resident", 5},
               {"random,rows=900,cols=900,density=0.006", "recipe=sell", "block", 1},
               {"rmat,scale=9", "recipe=sell", "cluster+resident", 8},
               {"fe3,n=5", "recipe=blocks", "block+resident", 1},
               {"fe3,n=5", "recipe=blocks type=f32", "grid", 4}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct bed bed = bed_of(system_of(cases[i].matrix, SYMMETRIC), cases[i].settings);
    cbgen_solver_options options = with_diagonal(&bed, i % 3 != 2);
    cbgen_outcome outcomes[3];
    double norm;
    for (int turn = 0; turn < 3; turn++) {
      char form[40];
      snprintf(form, sizeof form, "%s%s", cases[i].form, turn ? "+pipelined" : "");
      options.program_form = form;
      options.thread_blocks = cases[i].blocks;
      start_from(&bed, 0.125);
      outcomes[turn] = solved(&bed, "cg", &options);
      const double residual = host_residual(&bed, &norm);
      if (outcomes[turn].reason != CBGEN_REASON_CONVERGED || !(residual <= (bed.type == CB_F64 ? 2e-8 : 4e-5) * norm))
        fail_msg("%s, %s: reason %d, residual %g", cases[i].matrix, form, outcomes[turn].reason, residual);
      assert_true(fabs(outcomes[turn].true_residual - residual) <= (bed.type == CB_F64 ? 1e-13 : 1e-5) * norm);
    }
    if (abs(outcomes[1].iterations - outcomes[0].iterations) > 1 + outcomes[0].iterations / 25)
      fail_msg("%s, %s: %d iterations, not %d", cases[i].matrix, cases[i].form, outcomes[1].iterations,
               outcomes[0].iterations);
    assert_memory_equal(&outcomes[1], &outcomes[2], sizeof outcomes[1]);
    release(&bed);
  }
}

/* Virtual thread blocks use the same shared memory, entries of x and sums of segments, one after another. */
static void segments_meet_in_each_product(void **state) {
  (void)state;
  struct bed bed = bed_of(system_of("rmat,scale=10,edge_factor=16", SYMMETRIC),
                          "recipe=hot hot-columns=60 hot-threads=256");
  cbgen_solver_options options = with_diagonal(&bed, 1);
  double norm;
  options.program_form = "grid";
  options.thread_blocks = 3;
  start_from(&bed, 0.125);
  assert_int_equal(solved(&bed, "cg", &options).reason, CBGEN_REASON_CONVERGED);
  assert_true(host_residual(&bed, &norm) <= 2e-8 * norm);
  release(&bed);
}

/* Of a system whose solution is hard to come near to: as near as with two, near enough where it says so, and after less
 * than twice as many iterations: recurrences that have drifted are left for those with two. */
static void fewer_meetings_come_as_near(void **state) {
  struct cb_csr csr = system_of("fe3,n=6", SYMMETRIC);
  static const double tolerances[] = {6e-8, 1e-8, 1e-13};
  enum { NEAREST = 2 };
  double sums[1000] = {0}, norm, reached[3] = {0};
  int iterations[3] = {0};
  (void)state;
  assert_in_range(csr.rows, 1, 1000);
  for (int64_t row = 0; row < csr.rows; row++)
    for (int64_t k = cb_csr_row(&csr, row); k < cb_csr_row(&csr, row + 1); k++)
      if (csr.col_idx[k] != row) sums[row] += fabs(csr.values[k]);
  for (int64_t row = 0; row < csr.rows; row++)
    for (int64_t k = cb_csr_row(&csr, row); k < cb_csr_row(&csr, row + 1); k++) {
      const int64_t column = csr.col_idx[k];
      if (column == row) csr.values[k] = (1 + 1e-7) * sums[row];
      csr.values[k] *= pow(10, (double)(row % 13 - 6) / 4) * pow(10, (double)(column % 13 - 6) / 4);
    }
  struct bed bed = bed_of(csr, "recipe=blocks");
  for (int turn = 0; turn < 6; turn++) { /* near, and as near as can be; each with two meetings and with one */
    const int pipelined = turn % 2, goal = turn / 2;
    cbgen_solver_options options = with_diagonal(&bed, 1);
    options.program_form = pipelined ? "block+pipelined" : "block";
    options.relative_tolerance = tolerances[goal];
    start_from(&bed, 0);
    const cbgen_outcome outcome = solved(&bed, "cg", &options);
    const double residual = host_residual(&bed, &norm);
    assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
    if (!pipelined) reached[goal] = residual, iterations[goal] = outcome.iterations;
    const double limit = goal == NEAREST ? 2 * reached[NEAREST] : 2 * tolerances[goal] * norm;
    if (!(residual <= limit)) fail_msg("turn %d: %g of %g", turn, residual, norm);
    if (outcome.iterations < 20 || outcome.iterations > 7 * iterations[goal] / 4)
      fail_msg("%d iterations in turn %d, and %d with two meetings", outcome.iterations, turn, iterations[goal]);
  }
  release(&bed);
}

static void compare(const struct bed *bed, const double *plain, const char *matrix, const char *form) {
  for (int64_t row = 0; row < bed->csr.rows; row++)
    if (!(fabs(plain[row] - bed->x[row]) <= (bed->type == CB_F64 ? 1e-11 : 1e-4) * (fabs(plain[row]) + 0.01)))
      fail_msg("%s, %s", matrix, form);
}

/* Where the matrix is read from changes nothing but the order of sums: thread blocks have other rows. */
static void matrices_may_lie_in_shared_memory(void **state) {
  static const struct {
    const char *matrix, *settings, *method, *form;
    int blocks;
  } cases[] = {{"stencil7,n=13", "recipe=dia", "cg", "grid+resident", 3},
               {"stencil7,n=11", "recipe=dia type=f32", "bicgstab", "grid", 2},
               {"fe3,n=5", "recipe=blocks", "cg", "grid", 4},
               {"fe3,n=5", "recipe=blocks type=f32", "minres", "grid+resident", 2},
               {"random,rows=900,cols=900,density=0.006", "recipe=sell", "cg", "grid", 0},
               {"random,rows=900,cols=900,density=0.006", "recipe=sell type=f16-f32", "cg", "grid+steps", 2},
               {"rmat,scale=9", "recipe=sell", "cg", "grid+pipelined", 3}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct bed bed = bed_of(system_of(cases[i].matrix, SYMMETRIC), cases[i].settings);
    double *plain = malloc((size_t)bed.csr.rows * sizeof *plain);
    for (int near = 0; near < 2; near++) {
      char form[40];
      snprintf(form, sizeof form, "%s%s", cases[i].form, near ? "+matrix" : "");
      iterate(&bed, cases[i].method, form, cases[i].blocks, (int)i % 2);
      if (!near) memcpy(plain, bed.x, (size_t)bed.csr.rows * sizeof *plain);
    }
    compare(&bed, plain, cases[i].matrix, cases[i].form);
    free(plain);
    release(&bed);
  }
}

/* Rows whose sums are not finite are read again, by what tells which entries are absent: it is not where others are. */
static void absent_entries_stay_where_they_are(void **state) {
  (void)state;
  for (int dia = 0; dia < 2; dia++) {
    struct cb_csr csr = system_of(dia ? "stencil7,n=9" : "fe3,n=5", SYMMETRIC);
    int32_t *const row_ptr = csr.row_ptr;
    int64_t kept = 0, from = 0;
    assert_false(csr.wide);
    for (int64_t row = 0; row < csr.rows; row++) { /* some entries go, in both places */
      const int64_t end = row_ptr[row + 1];
      for (int64_t k = from; k < end; k++) {
        const int64_t low = row < csr.col_idx[k] ? row : csr.col_idx[k];
        if (csr.col_idx[k] != row && low % 11 == 3) continue;
        csr.col_idx[kept] = csr.col_idx[k];
        csr.values[kept++] = row == 40 && csr.col_idx[k] == row ? INFINITY : csr.values[k];
      }
      from = end;
      row_ptr[row + 1] = (int32_t)kept;
    }
    csr.nnz = kept;
    struct bed bed = bed_of(csr, dia ? "recipe=dia" : "recipe=blocks");
    cbgen_solver_options options = with_diagonal(&bed, 0);
    options.program_form = "grid+matrix";
    options.thread_blocks = 2;
    start_from(&bed, 0.125);
    assert_int_equal(solved(&bed, "cg", &options).reason, CBGEN_REASON_NOT_A_NUMBER);
    release(&bed);
  }
}

/* A grid's vectors that have slots, for all rows or for some, are as without, bit by bit (but for `blocks`, where
 * steps' sums are of other threads' rows); and when called again. */
static void slots_hold_what_memory_would(void **state) {
  static const struct {
    const char *matrix, *settings, *method, *form;
    int blocks;
  } cases[] = {{"stencil7,n=30", "recipe=dia", "cg", "grid", 1}, /* some rows of one vector */
               {"stencil7,n=19", "recipe=dia", "cg", "grid", 1}, /* some rows of one, all of another */
               {"stencil7,n=19", "recipe=dia type=f32", "cg", "grid+steps", 2},
               {"stencil7,n=12", "recipe=dia", "bicgstab", "grid", 3},
               {"stencil7,n=12", "recipe=dia", "chebyshev", "grid", 2},
               {"stencil7,n=12", "recipe=dia", "jacobi", "grid", 2},
               {"fe3,n=6", "recipe=blocks type=f32", "minres", "grid", 3},
               {"fe3,n=6", "recipe=blocks", "cg", "grid", 1}, /* several slots of each */
               {"fe3,n=5", "recipe=blocks", "cg", "grid+pipelined", 2},
               {"random,rows=900,cols=900,density=0.006", "recipe=sell", "cg", "grid+steps", 3}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int turn = 0; turn < 2; turn++) { /* stopped on the way, and at the end of a second call */
      struct bed bed = bed_of(system_of(cases[i].matrix, SYMMETRIC), cases[i].settings);
      const size_t bytes = (size_t)bed.csr.rows * sizeof *bed.x;
      double *plain = malloc(bytes);
      char form[40];
      for (int resident = 0; resident < 2; resident++) {
        cbgen_solver_options options = with_diagonal(&bed, (int)i % 2);
        cbgen_outcome outcome = {0};
        snprintf(form, sizeof form, "%s%s", cases[i].form, resident ? "+resident" : "");
        options.program_form = form;
        options.thread_blocks = cases[i].blocks;
        options.max_iterations = 3;
        start_from(&bed, 0.125);
        for (int calls = 0; calls <= turn; calls++) outcome = solved(&bed, cases[i].method, &options);
        assert_int_equal(outcome.reason, CBGEN_REASON_ITERATIONS);
        take_x(&bed);
        if (!resident) memcpy(plain, bed.x, bytes);
      }
      if (strstr(cases[i].settings, "blocks")) compare(&bed, plain, cases[i].matrix, cases[i].form);
      else if (memcmp(plain, bed.x, bytes)) fail_msg("%s, %s, %s", cases[i].matrix, cases[i].method, cases[i].form);
      free(plain);
      release(&bed);
    }
}

/* Appends the kernel's text in a form, NULL: of the library's choice. */
static void add_source(struct bed *bed, const char *form, struct cb_text *text) {
  cbgen_solver_options options = with_diagonal(bed, 1);
  cbgen_solver *solver;
  size_t length;
  options.program_form = form;
  must(bed->context, cbgen_solver_create(bed->op, "cg", &options, &solver));
  const char *source = cbgen_solver_source(solver, &length);
  cb_text_add_bytes(text, source, length);
  cbgen_solver_free(solver);
}

/* Of the library's choice vectors of a small system lie in shared memory; those of one with carry slots cannot. */
static void small_systems_have_their_vectors_in_shared_memory(void **state) {
  static const struct {
    const char *matrix, *settings, *form;
  } cases[] = {{"stencil7,n=9", "recipe=dia", "cluster+resident+pipelined"},
               {"stencil7,n=21", "recipe=dia", "cluster+resident+pipelined"},
               {"random,rows=900,cols=900,density=0.006", "recipe=merge", "cluster+pipelined"}};
  (void)state;
  for (int i = 0; i < 3; i++) {
    struct bed bed = bed_of(system_of(cases[i].matrix, SYMMETRIC), cases[i].settings);
    struct cb_text chosen = {0}, named = {0};
    add_source(&bed, NULL, &chosen);
    add_source(&bed, cases[i].form, &named);
    if (strcmp(cb_text_string(&chosen), cb_text_string(&named))) fail_msg("%s is not in form %s", cases[i].matrix, cases[i].form);
    cb_text_release(&chosen);
    cb_text_release(&named);
    release(&bed);
  }
}

static void forms_that_cannot_be_are_refused(void **state) {
  static const struct {
    const char *form;
    int blocks;
    cbgen_status status;
    const char *message;
  } cases[] = {{"circle", 0, CBGEN_ERROR_ARGUMENT, "no program form 'circle'"},
               {"", 0, CBGEN_ERROR_ARGUMENT, "no program form"},
               {"grid+stairs", 0, CBGEN_ERROR_ARGUMENT, "no program form 'grid+stairs'"},
               {"gri", 0, CBGEN_ERROR_ARGUMENT, "no program form"},
               {"graph+resident", 0, CBGEN_ERROR_ARGUMENT, "all but graph with '+resident'"},
               {"cluster+matrix", 0, CBGEN_ERROR_ARGUMENT, "grid with '+matrix'"},
               {"cluster", 17, CBGEN_ERROR_LIMIT, "at most 16"},
               {"block", 2, CBGEN_ERROR_LIMIT, "1 thread block"}};
  struct bed bed = bed_of(system_of("random,rows=64,cols=64,density=0.1", SYMMETRIC), "recipe=sell");
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cbgen_solver_options options = with_diagonal(&bed, 0);
    cbgen_solver *solver;
    options.program_form = cases[i].form;
    options.thread_blocks = cases[i].blocks;
    assert_int_equal(cbgen_solver_create(bed.op, "cg", &options, &solver), cases[i].status);
    assert_null(solver);
    assert_non_null(strstr(cbgen_operator_message(bed.op), cases[i].message));
  }
  release(&bed);
}

/* Carry slots, several launches and layouts of all kinds: a solution, or words that say what to do instead. */
static void every_recipe_solves_or_says_why(void **state) {
  const struct cb_recipe *recipe;
  int solutions = 0;
  (void)state;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++) {
    struct bed bed = bed_of(system_of("arrow,n=260", SYMMETRIC), settings_of_recipe(recipe));
    const cbgen_solver_options options = with_diagonal(&bed, 1);
    cbgen_solver *solver = NULL;
    const cbgen_status s = cbgen_solver_create(bed.op, "cg", &options, &solver);
    if (s) {
      assert_null(solver);
      assert_int_equal(s, CBGEN_ERROR_UNSUPPORTED);
      assert_true(strstr(cbgen_operator_message(bed.op), "choose another recipe") ||
                  strstr(cbgen_operator_message(bed.op), "vectors of f64 or f32"));
    } else {
      double norm;
      start_from(&bed, 0);
      const cbgen_outcome outcome = solved(&bed, "cg", &options);
      assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
      assert_true(host_residual(&bed, &norm) <= (bed.type == CB_F64 ? 2e-8 : 4e-5) * norm);
      solutions++;
    }
    cbgen_solver_free(solver);
    release(&bed);
  }
  assert_true(solutions > 12);
}

/* ---- how solutions end */

static void every_end_has_its_reason(void **state) {
  static const double plain[4] = {1, 2, 3, 4}, indefinite[4] = {1, -1, 1, -1}, singular[4] = {0, 0, 0, 0},
                      infinite[4] = {1, INFINITY, 1, 1};
  const cbgen_solver_options standard = {0};
  (void)state;
  for (int m = 0; m < 4; m++) {
    static const char *const names[] = {"cg", "bicgstab", "minres", "gmres"};
    const char *method = names[m];
    cbgen_outcome outcome = of_diagonal(plain, method, 3, 1, standard);
    assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
    assert_true(outcome.iterations >= 2 && outcome.iterations <= 5); /* four different eigenvalues */
    assert_true(outcome.true_residual <= 1e-7);
    outcome = of_diagonal(plain, method, 3, 1, (cbgen_solver_options){.max_iterations = 1});
    assert_int_equal(outcome.reason, CBGEN_REASON_ITERATIONS);
    assert_int_equal(outcome.iterations, 1);
    assert_true(outcome.residual > 0.01);
    outcome = of_diagonal(plain, method, 3, 1, (cbgen_solver_options){.absolute_tolerance = 100});
    assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
    assert_int_equal(outcome.iterations, 0);
    assert_true(outcome.residual == sqrt(40) && outcome.true_residual == sqrt(40));
    outcome = of_diagonal(singular, method, 3, 1, standard);
    assert_int_equal(outcome.reason, CBGEN_REASON_BREAKDOWN);
    outcome = of_diagonal(plain, method, 3, NAN, standard);
    assert_int_equal(outcome.reason, CBGEN_REASON_NOT_A_NUMBER);
    assert_int_equal(outcome.iterations, 0);
    outcome = of_diagonal(infinite, method, 3, 1, standard);
    assert_int_equal(outcome.reason, CBGEN_REASON_NOT_A_NUMBER);
  }
  assert_int_equal(of_diagonal(indefinite, "cg", 3, 1, standard).reason, CBGEN_REASON_BREAKDOWN);
}

static void nothing_to_do_is_done_at_once(void **state) {
  struct bed bed = bed_of(system_of("random,rows=64,cols=64,density=0.1", SYMMETRIC), "recipe=sell");
  double zeros[64] = {0};
  (void)state;
  assert_true(app_put(bed.b_there, zeros, sizeof zeros));
  start_from(&bed, 0);
  const cbgen_outcome outcome = solved(&bed, "cg", NULL);
  assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
  assert_int_equal(outcome.iterations, 0);
  release(&bed);
}

/* ---- what a caller gives and gets */

static void outcome_and_history_go_where_they_shall(void **state) {
  struct bed bed = bed_of(system_of("random,rows=200,cols=200,density=0.03", SYMMETRIC), "recipe=sell");
  const uint64_t outcome_there = app_alloc(0, sizeof(cbgen_outcome));
  const uint64_t history_there = app_alloc(0, 101 * sizeof(double));
  cbgen_solver_options options = with_diagonal(&bed, 1);
  cbgen_outcome there;
  double history[101], norm;
  (void)state;
  options.outcome = (void *)(uintptr_t)outcome_there;
  options.history = (void *)(uintptr_t)history_there;
  options.max_iterations = 100;
  options.relative_tolerance = 1e-6;
  start_from(&bed, 0);
  const cbgen_outcome outcome = solved(&bed, "cg", &options);
  assert_true(app_take(&there, outcome_there, sizeof there) && app_take(history, history_there, sizeof history));
  assert_memory_equal(&there, &outcome, sizeof there);
  host_residual(&bed, &norm);
  assert_true(fabs(history[0] - norm * norm) <= 1e-12 * norm * norm); /* from 0 the residual is b */
  assert_true(sqrt(history[outcome.iterations]) == outcome.residual);
  for (int i = 0; i < outcome.iterations; i++) assert_true(history[i] > 1e-12 * norm * norm);
  assert_true(history[outcome.iterations + 1] != history[outcome.iterations + 1]); /* NaN, as memory comes */
  app_free(outcome_there);
  app_free(history_there);
  release(&bed);
}

/* The same bits whatever the order of warps, and from a second solver. */
static void solutions_repeat_bit_for_bit(void **state) {
  struct bed bed = bed_of(system_of("random,rows=700,cols=700,density=0.01", UNSYMMETRIC), "recipe=merge");
  const cbgen_solver_options options = with_diagonal(&bed, 1);
  double *first = calloc(700, sizeof *first);
  (void)state;
  for (int i = 0; i < 4; i++) {
    start_from(&bed, 0.5);
    solved(&bed, "bicgstab", &options);
    take_x(&bed);
    if (i) assert_memory_equal(bed.x, first, 700 * sizeof *first);
    else memcpy(first, bed.x, 700 * sizeof *first);
  }
  free(first);
  release(&bed);
}

static void any_number_of_thread_blocks_solves(void **state) {
  struct bed bed = bed_of(system_of("random,rows=900,cols=900,density=0.01", SYMMETRIC), "recipe=sell");
  (void)state;
  for (int blocks = 1; blocks <= 14; blocks += 4) {
    cbgen_solver_options options = with_diagonal(&bed, 0);
    double norm;
    options.thread_blocks = blocks;
    start_from(&bed, 0);
    assert_int_equal(solved(&bed, "cg", &options).reason, CBGEN_REASON_CONVERGED);
    assert_true(host_residual(&bed, &norm) <= 2e-8 * norm);
  }
  cbgen_solver_options options = {.struct_size = sizeof options, .thread_blocks = 15}; /* there is room for 14 */
  cbgen_solver *solver;
  assert_int_equal(cbgen_solver_create(bed.op, "cg", &options, &solver), CBGEN_ERROR_LIMIT);
  assert_null(solver);
  release(&bed);
}

/* New values of the operator count, and it may go before its solver. */
static void solvers_work_on_the_operators_arrays(void **state) {
  const char *settings = "recipe=sell";
  struct cb_csr csr = system_of("random,rows=120,cols=120,density=0.05", SYMMETRIC);
  cbgen_context *context = new_context(settings);
  int32_t *pointers;
  const cbgen_csr view = view_of(&csr, &pointers);
  const cbgen_request request = {.struct_size = sizeof request, .values = CBGEN_VALUES_MUTABLE};
  struct bed bed = {.context = context, .csr = csr, .type = CB_F64};
  cbgen_solver *solver;
  cbgen_outcome outcome;
  double norm;
  (void)state;
  must(context, cbgen_compile(context, &view, &request, &bed.op));
  bed.b = calloc(120, sizeof *bed.b);
  bed.x = calloc(120, sizeof *bed.x);
  bed.b_there = app_alloc(0, 960);
  bed.x_there = app_alloc(0, 960);
  bed.diagonal = app_alloc(0, 960);
  fill_vector(bed.b_there, bed.b, 120, CB_F64, 3);
  must_operator(bed.op, cbgen_solver_create(bed.op, "cg", NULL, &solver));
  for (int64_t k = 0; k < csr.nnz; k++) csr.values[k] *= 2;
  const cbgen_update update = {sizeof update, csr.values, CBGEN_F64, CBGEN_HOST, NULL};
  must_operator(bed.op, cbgen_update_values(bed.op, &update));
  cbgen_operator_free(bed.op);
  bed.op = NULL;
  start_from(&bed, 0);
  assert_int_equal(cbgen_solve(solver, (void *)(uintptr_t)bed.b_there, (void *)(uintptr_t)bed.x_there, NULL), CBGEN_OK);
  assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
  assert_true(host_residual(&bed, &norm) <= 2e-8 * norm);
  assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
  size_t length;
  assert_non_null(strstr(cbgen_solver_source(solver, &length), "cbgen_program"));
  assert_int_equal(length, strlen(cbgen_solver_source(solver, NULL)));
  cbgen_solver_free(solver);
  free(pointers);
  release(&bed);
}

/* The same kernel on vectors of its own: neither solver disturbs the other, and each may go first. */
static void clones_have_the_same_kernel(void **state) {
  struct bed bed = bed_of(system_of("random,rows=150,cols=150,density=0.04", SYMMETRIC), "recipe=merge");
  const cbgen_solver_options options = with_diagonal(&bed, 1);
  cbgen_solver_options other = options, wrong = options;
  cbgen_solver *solver, *clone, *third;
  cbgen_outcome first, second;
  const uint64_t outcome_there = app_alloc(0, sizeof(cbgen_outcome)), x = app_alloc(0, 150 * sizeof(double));
  void *const b = (void *)(uintptr_t)bed.b_there;
  double norm, zeros[150] = {0};
  (void)state;
  must_operator(bed.op, cbgen_solver_create(bed.op, "cg", &options, &solver));
  const long compilations = fake->compilations;
  other.relative_tolerance = 1e-4;
  other.outcome = (void *)(uintptr_t)outcome_there;
  assert_int_equal(cbgen_solver_clone(solver, &other, &clone), CBGEN_OK);
  assert_int_equal(cbgen_solver_clone(solver, NULL, &third), CBGEN_OK);
  assert_int_equal(fake->compilations, compilations);
  assert_string_equal(cbgen_solver_source(clone, NULL), cbgen_solver_source(solver, NULL));
  start_from(&bed, 0);
  assert_true(app_put(x, zeros, sizeof zeros));
  assert_int_equal(cbgen_solve(solver, b, (void *)(uintptr_t)bed.x_there, NULL), CBGEN_OK);
  assert_int_equal(cbgen_solve(clone, b, (void *)(uintptr_t)x, NULL), CBGEN_OK);
  assert_int_equal(cbgen_solver_outcome(solver, &first), CBGEN_OK);
  assert_int_equal(cbgen_solver_outcome(clone, &second), CBGEN_OK);
  assert_true(first.reason == CBGEN_REASON_CONVERGED && second.reason == CBGEN_REASON_CONVERGED);
  assert_true(second.iterations < first.iterations && second.residual > first.residual);
  assert_true(host_residual(&bed, &norm) <= 2e-8 * norm);
  cbgen_solver_free(solver);
  start_from(&bed, 0);
  assert_int_equal(cbgen_solve(third, b, (void *)(uintptr_t)bed.x_there, NULL), CBGEN_OK);
  assert_int_equal(cbgen_solver_outcome(third, &second), CBGEN_OK);
  assert_memory_equal(&first, &second, sizeof first);
  wrong.diagonal = NULL;
  assert_int_equal(cbgen_solver_clone(third, &wrong, &solver), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_solver_message(third), "has the solver's kernel"));
  assert_null(solver);
  assert_int_equal(cbgen_solver_clone(third, NULL, NULL), CBGEN_ERROR_ARGUMENT);
  cbgen_solver_free(third);
  cbgen_solver_free(clone);
  app_free(outcome_there);
  app_free(x);
  release(&bed);
}

/* One launch, and nothing else of what takes time. */
static void a_solution_is_one_launch(void **state) {
  struct bed bed = bed_of(system_of("random,rows=100,cols=100,density=0.05", SYMMETRIC), "recipe=sell");
  cbgen_solver *solver;
  cbgen_outcome outcome;
  (void)state;
  must_operator(bed.op, cbgen_solver_create(bed.op, "cg", NULL, &solver));
  start_from(&bed, 0);
  app_set_current(0);
  const struct fake_control before = *fake;
  assert_int_equal(cbgen_solve(solver, (void *)(uintptr_t)bed.b_there, (void *)(uintptr_t)bed.x_there, NULL), CBGEN_OK);
  assert_int_equal(fake->launches, before.launches + 1);
  assert_int_equal(fake->allocations, before.allocations);
  assert_int_equal(fake->waits, before.waits);
  assert_int_equal(fake->copies_to_device, before.copies_to_device);
  assert_int_equal(fake->copies_to_host, before.copies_to_host);
  app_set_current(-1);
  assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
  assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
  assert_int_equal(fake->copies_to_host, before.copies_to_host); /* the kernel has written it where the host reads it */
  cbgen_solver_free(solver);
  release(&bed);
}

/* With each call of the driver's in turn. */
static void clones_without_memory_are_none(void **state) {
  struct bed bed = bed_of(system_of("random,rows=50,cols=50,density=0.1", SYMMETRIC), "recipe=sell");
  cbgen_solver *solver, *clone;
  int failed = 0;
  (void)state;
  must_operator(bed.op, cbgen_solver_create(bed.op, "cg", NULL, &solver));
  assert_int_equal(fake->pinned, 1);
  for (long nth = 1; nth < 40; nth++) {
    fake->fail_at = fake->calls + nth;
    fake->failure = 2; /* CUDA_ERROR_OUT_OF_MEMORY */
    fake->failed[0] = 0;
    const cbgen_status s = cbgen_solver_clone(solver, NULL, &clone);
    fake->fail_at = 0;
    assert_int_equal(fake->pinned, s ? 1 : 2);
    assert_true(!s == (clone != NULL));
    if (!strcmp(fake->failed, "cuMemHostAlloc")) {
      assert_non_null(strstr(cbgen_solver_message(solver), "pinned memory"));
      failed++;
    }
    cbgen_solver_free(clone);
  }
  assert_int_equal(failed, 1);
  cbgen_solver_free(solver);
  release(&bed);
}

static void the_cache_keeps_solvers(void **state) {
  char directory[512], settings[600];
  struct cb_csr csr = system_of("random,rows=100,cols=100,density=0.05", SYMMETRIC);
  (void)state;
  snprintf(directory, sizeof directory, "%s/solvers.XXXXXX", getenv("CBGEN_TEST_TMP"));
  assert_non_null(mkdtemp(directory));
  snprintf(settings, sizeof settings, "recipe=sell cache=%s", directory);
  struct bed bed = bed_of(csr, settings);
  cbgen_solver *solver;
  must_operator(bed.op, cbgen_solver_create(bed.op, "cg", NULL, &solver));
  cbgen_solver_free(solver);
  const long compilations = fake->compilations;
  must_operator(bed.op, cbgen_solver_create(bed.op, "cg", NULL, &solver));
  cbgen_solver_free(solver);
  assert_int_equal(fake->compilations, compilations);
  must_operator(bed.op, cbgen_solver_create(bed.op, "bicgstab", NULL, &solver));
  cbgen_solver_free(solver);
  assert_int_equal(fake->compilations, compilations + 1);
  release(&bed);
}

/* ---- what is refused */

static void check_refused(cbgen_operator *op, const char *method, cbgen_solver_options options, cbgen_status status,
                          const char *words) {
  cbgen_solver *solver;
  options.struct_size = sizeof options;
  assert_int_equal(cbgen_solver_create(op, method, &options, &solver), status);
  assert_null(solver);
  if (!strstr(cbgen_operator_message(op), words)) fail_msg("%s", cbgen_operator_message(op));
}

static void check_operator_refused(const char *matrix, const char *settings, const char *epilogue, cbgen_status status,
                                   const char *words) {
  struct sample sample = sample_of(matrix, (struct form){0});
  cbgen_context *context = new_context(settings);
  cbgen_operator *op;
  const cbgen_request request = {.struct_size = sizeof request, .epilogue = epilogue};
  must(context, cbgen_compile(context, &sample.view, &request, &op));
  check_refused(op, "cg", (cbgen_solver_options){0}, status, words);
  cbgen_operator_free(op);
  cbgen_context_destroy(context);
  sample_release(&sample);
}

static void what_cannot_be_solved_is_refused(void **state) {
  struct bed bed = bed_of(system_of("random,rows=50,cols=50,density=0.1", SYMMETRIC), "recipe=sell");
  const cbgen_status wrong = CBGEN_ERROR_ARGUMENT;
  (void)state;
  check_refused(bed.op, "sor", (cbgen_solver_options){0}, wrong, "no method 'sor'; there are cg, bicgstab, minres");
  check_refused(bed.op, "cg", (cbgen_solver_options){.relative_tolerance = -1}, wrong, "tolerance");
  check_refused(bed.op, "cg", (cbgen_solver_options){.absolute_tolerance = NAN}, wrong, "tolerance");
  const void *numbers = (void *)(uintptr_t)bed.diagonal;
  check_refused(bed.op, "cg", (cbgen_solver_options){.blocks = numbers, .block_size = 1}, wrong, "'block_size' is 1");
  check_refused(bed.op, "cg", (cbgen_solver_options){.blocks = numbers, .block_size = 2, .diagonal = numbers}, wrong, "one of");
  check_refused(bed.op, "gmres", (cbgen_solver_options){.blocks = numbers, .block_size = 2}, wrong, "takes no 'blocks'");
  check_refused(bed.op, "power", (cbgen_solver_options){.diagonal = numbers}, wrong, "takes no 'diagonal'");
  check_refused(bed.op, "gmres", (cbgen_solver_options){.restart = 65}, wrong, "'restart' is 65");
  check_refused(bed.op, "jacobi", (cbgen_solver_options){.weight = NAN}, wrong, "'weight' is nan");
  check_refused(bed.op, "pagerank", (cbgen_solver_options){.damping = 1}, wrong, "'damping' is 1");
  check_refused(bed.op, "chebyshev", (cbgen_solver_options){.lowest = 2, .highest = 1}, wrong, "'lowest' is 2");
  check_refused(bed.op, "cg", (cbgen_solver_options){.max_iterations = -1}, wrong, "'max_iterations' is -1");
  check_refused(bed.op, "cg", (cbgen_solver_options){.thread_blocks = -2}, wrong, "'thread_blocks' is -2");
  check_refused(bed.op, "cg", (cbgen_solver_options){.history = (double *)(uintptr_t)(bed.b_there + 4)}, wrong, "aligned");
  cbgen_solver *solver;
  assert_int_equal(cbgen_solver_create(bed.op, NULL, NULL, &solver), wrong);
  assert_int_equal(cbgen_solver_create(bed.op, "cg", NULL, NULL), wrong);
  must_operator(bed.op, cbgen_solver_create(bed.op, "cg", NULL, &solver));
  void *b = (void *)(uintptr_t)bed.b_there, *x = (void *)(uintptr_t)bed.x_there;
  assert_int_equal(cbgen_solve(solver, NULL, x, NULL), wrong);
  assert_int_equal(cbgen_solve(solver, b, b, NULL), wrong);
  assert_int_equal(cbgen_solve(solver, b, (char *)x + 4, NULL), wrong);
  assert_non_null(strstr(cbgen_solver_message(solver), "not aligned"));
  assert_int_equal(cbgen_solver_outcome(solver, NULL), wrong);
  cbgen_solver_free(solver);
  release(&bed);
  check_operator_refused("random,rows=30,cols=20,density=0.2", "recipe=sell", NULL, wrong, "30 rows and 20 columns");
  check_operator_refused("random,rows=20,cols=20,density=0.2", "recipe=sell", "out r; r = ax;", wrong, "epilogue");
  check_operator_refused("random,rows=20,cols=20,density=0.2", "recipe=sell semiring=min-plus", NULL, wrong, "min-plus");
  check_operator_refused("random,rows=20,cols=20,density=0.2", "recipe=sell form=add", NULL, wrong, "not add");
  check_operator_refused("random,rows=20,cols=20,density=0.2", "recipe=sell type=f16", NULL, CBGEN_ERROR_UNSUPPORTED,
                         "f64 or f32");
}

/* Whatever allocation fails, on the host or on the GPU: a message, nothing left behind. */
static void failures_leave_nothing_behind(void **state) {
  struct bed bed = bed_of(system_of("random,rows=50,cols=50,density=0.1", SYMMETRIC), "recipe=sell");
  cbgen_solver *solver;
  int failed = 0;
  (void)state;
  for (uint64_t nth = 1; nth < 4000; nth++) {
    cb_memory_fail_at(nth, 0);
    const cbgen_status s = cbgen_solver_create(bed.op, "cg", NULL, &solver);
    cb_memory_fail_at(0, 0);
    if (!s) {
      cbgen_solver_free(solver);
      break;
    }
    if (s != CBGEN_ERROR_MEMORY) fail_msg("allocation %d: %s", (int)nth, cbgen_operator_message(bed.op));
    assert_null(solver);
    failed++;
  }
  assert_true(failed > 10);
  must_operator(bed.op, cbgen_solver_create(bed.op, "gmres", NULL, &solver));
  failed = 0;
  for (uint64_t nth = 1; nth < 4000; nth++) {
    cbgen_solver *clone;
    cb_memory_fail_at(nth, 0);
    const cbgen_status s = cbgen_solver_clone(solver, NULL, &clone);
    cb_memory_fail_at(0, 0);
    cbgen_solver_free(clone);
    if (!s) break;
    assert_int_equal(s, CBGEN_ERROR_MEMORY);
    assert_null(clone);
    failed++;
  }
  assert_in_range(failed, 3, 100);
  cbgen_solver_free(solver);
  release(&bed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(each_method_solves, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(every_form_solves, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(resident_rows_may_lie_apart, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(fewer_meetings_take_as_many_iterations, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(segments_meet_in_each_product, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(fewer_meetings_come_as_near, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(absent_entries_stay_where_they_are, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(matrices_may_lie_in_shared_memory, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(slots_hold_what_memory_would, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(small_systems_have_their_vectors_in_shared_memory, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(forms_that_cannot_be_are_refused, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(solutions_of_several_layouts, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(every_recipe_solves_or_says_why, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(every_end_has_its_reason, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(nothing_to_do_is_done_at_once, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(outcome_and_history_go_where_they_shall, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(solutions_repeat_bit_for_bit, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(any_number_of_thread_blocks_solves, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(solvers_work_on_the_operators_arrays, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(clones_have_the_same_kernel, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(a_solution_is_one_launch, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(clones_without_memory_are_none, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(the_cache_keeps_solvers, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(what_cannot_be_solved_is_refused, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(failures_leave_nothing_behind, open_fake, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
