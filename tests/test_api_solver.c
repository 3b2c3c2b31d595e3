// SPDX-License-Identifier: Apache-2.0
/* Solvers through the public interface, whole solutions on the emulation: every thread block in flight, barriers that
 * diverge and vectors that are read and written at once are errors. What they say of the residual is compared with long
 * doubles on the host. */
#include "tests/api_support.h"
#include "tests/recipes.h"

static cbgen_context *new_context(const char *settings) {
  cbgen_context *context;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  set_all(context, settings);
  return context;
}

/* ---- systems */

enum kind { SYMMETRIC, UNSYMMETRIC };

/* The square part of a matrix with |values|, made symmetric if asked for, and dominated by its diagonal. */
static struct cb_csr system_of(const char *specification, enum kind kind) {
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

/* A system with everything that a solution needs, on GPU 0. */
struct bed {
  cbgen_context *context;
  struct cb_csr csr;
  cbgen_operator *op;
  enum cb_type type;
  double *b, *x;
  uint64_t b_there, x_there, diagonal;
};

static cbgen_csr view_of(const struct cb_csr *csr, int32_t **pointers) {
  *pointers = calloc((size_t)csr->rows + 1, sizeof **pointers);
  for (int64_t row = 0; row <= csr->rows; row++) (*pointers)[row] = (int32_t)cb_csr_row(csr, row);
  return (cbgen_csr){.struct_size = sizeof(cbgen_csr),
                     .rows = csr->rows,
                     .cols = csr->cols,
                     .nnz = csr->nnz,
                     .row_ptr = *pointers,
                     .col_idx = csr->col_idx,
                     .values = csr->values};
}

static struct bed bed_of(struct cb_csr csr, const char *settings) {
  struct bed bed = {.context = new_context(settings), .csr = csr};
  int32_t *pointers;
  const cbgen_csr view = view_of(&bed.csr, &pointers);
  cbgen_info info = {.struct_size = sizeof info};
  must(bed.context, cbgen_compile(bed.context, &view, NULL, &bed.op));
  assert_int_equal(cbgen_operator_info(bed.op, &info), CBGEN_OK);
  const size_t n = (size_t)csr.rows;
  bed.type = (enum cb_type)info.vector_type;
  bed.b = calloc(n, sizeof *bed.b);
  bed.x = calloc(n, sizeof *bed.x);
  bed.b_there = app_alloc(0, n * 8);
  bed.x_there = app_alloc(0, n * 8);
  bed.diagonal = app_alloc(0, n * 8);
  fill_vector(bed.b_there, bed.b, csr.rows, bed.type, 3);
  must(bed.context, cbgen_diagonal(bed.context, &view, (void *)(uintptr_t)bed.diagonal));
  free(pointers);
  return bed;
}

static void start_from(struct bed *bed, double value) {
  const size_t n = (size_t)bed->csr.rows;
  char *bytes = calloc(n, 8);
  for (size_t i = 0; i < n; i++) cb_real_set(bytes, bed->type, (int64_t)i, value);
  assert_true(app_put(bed->x_there, bytes, n * cb_type_size(bed->type)));
  free(bytes);
}

static void release(struct bed *bed) {
  app_free(bed->b_there);
  app_free(bed->x_there);
  app_free(bed->diagonal);
  free(bed->b);
  free(bed->x);
  cbgen_operator_free(bed->op);
  cbgen_context_destroy(bed->context);
  cb_csr_release(&bed->csr);
}

static void take_x(struct bed *bed) {
  const size_t n = (size_t)bed->csr.rows, size = cb_type_size(bed->type);
  char *bytes = calloc(n, size);
  assert_true(app_take(bytes, bed->x_there, n * size));
  for (size_t i = 0; i < n; i++) bed->x[i] = cb_real_get(bytes, bed->type, (int64_t)i);
  free(bytes);
}

/* ‖b − A x‖ / ‖b‖ in long doubles. */
static double host_residual(struct bed *bed, double *norm_of_b) {
  long double square = 0, of_b = 0;
  take_x(bed);
  for (int64_t row = 0; row < bed->csr.rows; row++) {
    long double r = bed->b[row];
    for (int64_t k = cb_csr_row(&bed->csr, row); k < cb_csr_row(&bed->csr, row + 1); k++)
      r -= (long double)cb_real_round(bed->csr.values[k], bed->type) * bed->x[bed->csr.col_idx[k]];
    square += r * r;
    of_b += (long double)bed->b[row] * bed->b[row];
  }
  *norm_of_b = (double)sqrtl(of_b);
  return (double)sqrtl(square);
}

static cbgen_outcome solved(struct bed *bed, const char *method, const cbgen_solver_options *options) {
  cbgen_solver *solver;
  cbgen_outcome outcome;
  must_operator(bed->op, cbgen_solver_create(bed->op, method, options, &solver));
  if (cbgen_solve(solver, (void *)(uintptr_t)bed->b_there, (void *)(uintptr_t)bed->x_there, NULL))
    fail_msg("%s", cbgen_solver_message(solver));
  assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
  cbgen_solver_free(solver);
  return outcome;
}

static cbgen_solver_options with_diagonal(const struct bed *bed, int wanted) {
  return (cbgen_solver_options){.struct_size = sizeof(cbgen_solver_options),
                                .diagonal = wanted ? (void *)(uintptr_t)bed->diagonal : NULL};
}

/* ---- solutions */

static void check_solution(const char *matrix, enum kind kind, const char *settings, const char *method, int diagonal) {
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

/* Every form solves; thread blocks of a cluster, and virtual ones side by side, more and fewer than there is work for. */
static void every_form_solves(void **state) {
  static const struct {
    const char *form;
    int blocks;
  } forms[] = {{"grid", 0}, {"grid", 3}, {"cluster", 0}, {"cluster", 1}, {"cluster", 5}, {"cluster", 16}, {"block", 0}, {"grid+steps", 2}};
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

static cbgen_csr diagonal_view(int64_t n, int32_t *pointers, int32_t *columns, const double *values) {
  for (int32_t i = 0; i <= n; i++) pointers[i] = columns[i < n ? i : 0] = i;
  columns[0] = 0;
  return (cbgen_csr){.struct_size = sizeof(cbgen_csr), .rows = n, .cols = n, .nnz = n, .row_ptr = pointers,
                     .col_idx = columns, .values = values};
}

/* Of a diagonal matrix with these values, for b of ones and the first guess 0. */
static cbgen_outcome of_diagonal(const double *values, const char *method, double b, cbgen_solver_options options) {
  enum { N = 40 };
  int32_t pointers[N + 1], columns[N];
  double all[N], right[N], zeros[N] = {0};
  cbgen_context *context = new_context("recipe=sell");
  cbgen_operator *op;
  cbgen_solver *solver;
  cbgen_outcome outcome;
  for (int i = 0; i < N; i++) {
    all[i] = values[i % 4];
    right[i] = i == 3 ? b : 1;
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

static void every_end_has_its_reason(void **state) {
  static const double plain[4] = {1, 2, 3, 4}, indefinite[4] = {1, -1, 1, -1}, singular[4] = {0, 0, 0, 0},
                      infinite[4] = {1, INFINITY, 1, 1};
  const cbgen_solver_options standard = {0};
  (void)state;
  for (int m = 0; m < 2; m++) {
    const char *method = m ? "bicgstab" : "cg";
    cbgen_outcome outcome = of_diagonal(plain, method, 1, standard);
    assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
    assert_true(outcome.iterations >= 2 && outcome.iterations <= 5); /* four different eigenvalues */
    assert_true(outcome.true_residual <= 1e-7);
    outcome = of_diagonal(plain, method, 1, (cbgen_solver_options){.max_iterations = 1});
    assert_int_equal(outcome.reason, CBGEN_REASON_ITERATIONS);
    assert_int_equal(outcome.iterations, 1);
    assert_true(outcome.residual > 0.01);
    outcome = of_diagonal(plain, method, 1, (cbgen_solver_options){.absolute_tolerance = 100});
    assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
    assert_int_equal(outcome.iterations, 0);
    assert_true(outcome.residual == sqrt(40) && outcome.true_residual == sqrt(40));
    outcome = of_diagonal(singular, method, 1, standard);
    assert_int_equal(outcome.reason, CBGEN_REASON_BREAKDOWN);
    outcome = of_diagonal(plain, method, NAN, standard);
    assert_int_equal(outcome.reason, CBGEN_REASON_NOT_A_NUMBER);
    assert_int_equal(outcome.iterations, 0);
    outcome = of_diagonal(infinite, method, 1, standard);
    assert_int_equal(outcome.reason, CBGEN_REASON_NOT_A_NUMBER);
  }
  assert_int_equal(of_diagonal(indefinite, "cg", 1, standard).reason, CBGEN_REASON_BREAKDOWN);
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

/* One launch, and nothing else of what takes time. */
static void a_solution_is_one_launch(void **state) {
  struct bed bed = bed_of(system_of("random,rows=100,cols=100,density=0.05", SYMMETRIC), "recipe=sell");
  cbgen_solver *solver;
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
  check_refused(bed.op, "gmres", (cbgen_solver_options){0}, wrong, "no method 'gmres'");
  check_refused(bed.op, "cg", (cbgen_solver_options){.relative_tolerance = -1}, wrong, "tolerance");
  check_refused(bed.op, "cg", (cbgen_solver_options){.absolute_tolerance = NAN}, wrong, "tolerance");
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
  release(&bed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(each_method_solves, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(every_form_solves, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(forms_that_cannot_be_are_refused, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(solutions_of_several_layouts, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(every_recipe_solves_or_says_why, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(every_end_has_its_reason, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(nothing_to_do_is_done_at_once, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(outcome_and_history_go_where_they_shall, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(solutions_repeat_bit_for_bit, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(any_number_of_thread_blocks_solves, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(solvers_work_on_the_operators_arrays, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(a_solution_is_one_launch, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(the_cache_keeps_solvers, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(what_cannot_be_solved_is_refused, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(failures_leave_nothing_behind, open_fake, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
