// SPDX-License-Identifier: Apache-2.0
/* Conjugate gradients in mixed precision: as few iterations as the ordinary ones, about, to residuals that heads alone
 * never reach; whole products only now and then; the same bits where the host repeats the kernels; what is refused. As
 * one kernel in all its forms, and as several. */
#include "tests/recipes.h"
#include "tests/solver_support.h"

enum { N = 11 };

/* Conduction on a grid of N^3 points, scaled from both sides by numbers that no float holds: symmetric and positive
 * definite. */
static struct cb_csr conduction(void) {
  struct cb_csr csr = matrix_of("stencil7,n=11");
  double scale[N * N * N];
  uint64_t seed = 9;
  for (int64_t i = 0; i < csr.rows; i++) scale[i] = 1 + (double)(draw(&seed) >> 12) * 0x1p-52;
  for (int64_t row = 0; row < csr.rows; row++)
    for (int64_t k = cb_csr_row(&csr, row); k < cb_csr_row(&csr, row + 1); k++)
      csr.values[k] = (csr.col_idx[k] == row ? 6.001 : -1) * (scale[row] * scale[csr.col_idx[k]]);
  return csr;
}

static cbgen_outcome solved_in(struct bed *bed, const char *method, const cbgen_solver_options *options,
                               const char *form) {
  cbgen_solver *solver;
  cbgen_outcome outcome;
  start_from(bed, 0.25);
  must_operator(bed->op, cbgen_solver_create(bed->op, method, options, &solver));
  assert_string_equal(cbgen_solver_form(solver), form);
  if (cbgen_solve(solver, (void *)(uintptr_t)bed->b_there, (void *)(uintptr_t)bed->x_there, NULL))
    fail_msg("%s", cbgen_solver_message(solver));
  assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
  cbgen_solver_free(solver);
  return outcome;
}

/* Without a preconditioner, with the diagonal, with blocks. */
static cbgen_solver_options options_of(const struct bed *bed, int kind, uint64_t blocks) {
  cbgen_solver_options options = with_diagonal(bed, kind == 1);
  options.relative_tolerance = 1e-10;
  options.program_form = "graph";
  if (kind == 2) options.blocks = (void *)(uintptr_t)blocks, options.block_size = 3;
  return options;
}

static void it_needs_about_as_many_iterations(void **state) {
  (void)state;
  struct bed bed = bed_of(conduction(), "recipe=sell type=split-f64");
  const uint64_t blocks = app_alloc(0, 3 * sizeof(double) * (size_t)bed.csr.rows);
  int32_t *pointers;
  const cbgen_csr view = view_of(&bed.csr, &pointers);
  must(bed.context, cbgen_block_diagonal(bed.context, &view, 3, (void *)(uintptr_t)blocks));
  for (int kind = 0; kind < 3; kind++) {
    const cbgen_solver_options options = options_of(&bed, kind, blocks);
    double norm;
    const cbgen_outcome plain = solved_in(&bed, "cg", &options, "graph");
    const long turns = fake->turns;
    const cbgen_outcome mixed = solved_in(&bed, "cg-mixed", &options, "graph");
    const long whole = fake->turns - turns - mixed.iterations; /* turns of the outer loop: products of whole values */
    const double residual = host_residual(&bed, &norm);
    assert_int_equal(plain.reason, CBGEN_REASON_CONVERGED);
    if (mixed.reason != CBGEN_REASON_CONVERGED)
      fail_msg("reason %d after %d iterations, residual %g", mixed.reason, mixed.iterations, mixed.residual);
    print_message("%d iterations, and %d with %ld products of whole values\n", plain.iterations, mixed.iterations, whole);
    assert_true(plain.iterations > 40);
    assert_true(mixed.iterations <= plain.iterations + plain.iterations / 5);
    assert_in_range(whole, 4, 24);
    assert_true(residual <= 1.001e-10 * norm);
    assert_true(fabs(mixed.true_residual - residual) <= 1e-14 * norm);
    assert_true(fabs(mixed.residual - residual) <= 1e-14 * norm); /* it is that of the whole matrix which ends it */
  }
  free(pointers);
  app_free(blocks);
  release(&bed);
}

/* Conductors of odd strengths, held at one end: rows have the sum 0 but there. Where the diagonal is left as heads have
 * it, it takes an eighth more iterations. */
static struct cb_csr conductors(void) {
  struct cb_csr csr = matrix_of("stencil7,n=11");
  for (int64_t row = 0; row < csr.rows; row++) {
    double sum = row < N * N ? 1 : 0;
    int64_t own = -1;
    for (int64_t k = cb_csr_row(&csr, row); k < cb_csr_row(&csr, row + 1); k++) {
      const int64_t column = csr.col_idx[k], low = row < column ? row : column, high = row < column ? column : row;
      uint64_t seed = (uint64_t)(low * 1000003 + high);
      const double strength = 0.5 + (double)(draw(&seed) >> 12) * 0x1p-52;
      if (column == row) own = k;
      else csr.values[k] = -strength, sum += strength;
    }
    csr.values[own] = sum;
  }
  return csr;
}

static void sums_of_rows_are_kept(void **state) {
  static const char *const forms[] = {"grid", "graph", "grid+resident", "grid+steps+resident"};
  (void)state;
  struct bed bed = bed_of(conductors(), "recipe=dia type=split-f64");
  for (int i = 0; i < 4; i++) {
    cbgen_solver_options options = options_of(&bed, 1, 0);
    double norm;
    options.program_form = forms[i];
    const cbgen_outcome plain = solved_in(&bed, "cg", &options, forms[i]);
    const cbgen_outcome mixed = solved_in(&bed, "cg-mixed", &options, forms[i]);
    const double residual = host_residual(&bed, &norm);
    print_message("%s: %d iterations and %d\n", forms[i], plain.iterations, mixed.iterations);
    assert_int_equal(mixed.reason, CBGEN_REASON_CONVERGED);
    assert_true(plain.iterations > 80);
    assert_true(mixed.iterations <= plain.iterations + plain.iterations / 50);
    assert_true(residual <= 1.001e-10 * norm);
    assert_true(fabs(mixed.true_residual - residual) <= 1e-13 * norm);
  }
  release(&bed);
}

static cbgen_outcome run(struct bed *bed, cbgen_solver *solver) {
  cbgen_outcome outcome;
  start_from(bed, 0.25);
  if (cbgen_solve(solver, (void *)(uintptr_t)bed->b_there, (void *)(uintptr_t)bed->x_there, NULL))
    fail_msg("%s", cbgen_solver_message(solver));
  assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
  take_x(bed);
  return outcome;
}

/* About so many iterations, the residual that is asked for, and the same bits again. */
static void check_runs(struct bed *bed, cbgen_solver *solver, const char *settings, int iterations) {
  double norm, *first = calloc((size_t)bed->csr.rows, sizeof *first);
  const cbgen_outcome outcome = run(bed, solver);
  const double residual = host_residual(bed, &norm);
  if (outcome.reason != CBGEN_REASON_CONVERGED || abs(outcome.iterations - iterations) > 2)
    fail_msg("%s, %s: reason %d after %d iterations, not %d", settings, cbgen_solver_form(solver), outcome.reason,
             outcome.iterations, iterations);
  assert_true(residual <= 1.001e-10 * norm);
  assert_true(fabs(outcome.true_residual - residual) <= 1e-14 * norm);
  assert_true(fabs(outcome.residual - residual) <= 1e-14 * norm);
  memcpy(first, bed->x, (size_t)bed->csr.rows * sizeof *first);
  const cbgen_outcome again = run(bed, solver);
  assert_memory_equal(&again, &outcome, sizeof again);
  assert_memory_equal(bed->x, first, (size_t)bed->csr.rows * sizeof *first);
  free(first);
}

/* All recipes' products in one kernel, in a form each: those whose sums are added up in them and others, of several
 * launches, with vectors that are made before products. What cannot be is refused with words that say what to do. */
static void every_recipe_has_it_in_a_form(void **state) {
  static const struct {
    const char *form;
    int kind, blocks;
  } forms[] = {{"grid", 1, 0},  {"cluster", 2, 4},       {"grid+steps", 0, 3}, {"grid", 2, 0},
               {"block", 1, 0}, {"cluster+steps", 1, 2}, {"grid", 1, 5}, {"grid+resident", 1, 0}};
  static const int iterations[] = {76, 52, 50}; /* of the graph: it_needs_about_as_many_iterations */
  const struct cb_recipe *recipe;
  int solved = 0;
  (void)state;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++) {
    char settings[256];
    snprintf(settings, sizeof settings, "%s type=split-f64", settings_of_recipe(recipe));
    struct bed bed = bed_of(conduction(), settings);
    const uint64_t blocks = app_alloc(0, 3 * sizeof(double) * (size_t)bed.csr.rows);
    int32_t *pointers;
    const cbgen_csr view = view_of(&bed.csr, &pointers);
    must(bed.context, cbgen_block_diagonal(bed.context, &view, 3, (void *)(uintptr_t)blocks));
    cbgen_solver_options options = options_of(&bed, forms[i % 8].kind, blocks);
    cbgen_solver *solver;
    options.program_form = forms[i % 8].form;
    options.thread_blocks = forms[i % 8].blocks;
    const cbgen_status s = cbgen_solver_create(bed.op, "cg-mixed", &options, &solver);
    if (s) {
      assert_int_equal(s, CBGEN_ERROR_UNSUPPORTED);
      assert_non_null(strstr(cbgen_operator_message(bed.op), "choose another recipe"));
    } else {
      check_runs(&bed, solver, settings, iterations[forms[i % 8].kind]);
      solved++;
    }
    cbgen_solver_free(solver);
    free(pointers);
    app_free(blocks);
    release(&bed);
  }
  assert_true(solved > 15);
}

/* The residual after so many iterations, by a method and a form. */
static double residual_after(struct bed *bed, int iterations, const char *method, const char *form) {
  cbgen_solver_options options = options_of(bed, 0, 0);
  options.max_iterations = iterations;
  options.program_form = form;
  const cbgen_outcome outcome = solved_in(bed, method, &options, form);
  assert_int_equal(outcome.iterations, iterations);
  return outcome.residual;
}

/* Until the residual is computed anew, iterations are those of the matrix of floats whose diagonal makes up for the
 * sums of rows; and where all values are floats, those of the method that knows of no heads, bit for bit. */
static void iterations_read_heads(void **state) {
  static const char *const forms[] = {"graph", "grid", "block"};
  struct cb_csr summed = conduction(), rounded = conduction();
  (void)state;
  for (int64_t row = 0; row < summed.rows; row++) {
    double lacks = 0;
    int64_t own = -1;
    for (int64_t k = cb_csr_row(&summed, row); k < cb_csr_row(&summed, row + 1); k++) {
      const double head = (float)summed.values[k];
      lacks += summed.values[k] - head;
      summed.values[k] = rounded.values[k] = head;
      if (summed.col_idx[k] == row) own = k;
    }
    summed.values[own] += lacks;
  }
  struct bed beds[3] = {bed_of(conduction(), "recipe=sell type=split-f64"), bed_of(summed, "recipe=sell"),
                        bed_of(rounded, "recipe=sell type=split-f64")};
  for (int i = 0; i < 3; i++) {
    const double mixed = residual_after(&beds[0], 4, "cg-mixed", forms[i]),
                 whole = residual_after(&beds[0], 4, "cg", forms[i]),
                 expected = residual_after(&beds[1], 4, "cg", forms[i]);
    assert_true(fabs(mixed - expected) <= 1e-14 * expected);
    assert_true(fabs(mixed - whole) > 1e-12 * whole);
    assert_true(residual_after(&beds[2], 4, "cg-mixed", forms[i]) == residual_after(&beds[2], 4, "cg", forms[i]));
  }
  for (int i = 0; i < 3; i++) release(&beds[i]);
}

/* The solution of the matrix of floats is another one: what heads alone leave is far above 1e-10. */
static void heads_alone_do_not_do(void **state) {
  (void)state;
  struct bed bed = bed_of(conduction(), "recipe=dia"), rounded = bed_of(conduction(), "recipe=dia type=f32-f64");
  cbgen_solver_options options = options_of(&rounded, 0, 0);
  double norm;
  assert_int_equal(solved_in(&rounded, "cg", &options, "graph").reason, CBGEN_REASON_CONVERGED);
  take_x(&rounded);
  assert_true(app_put(bed.x_there, rounded.x, sizeof(double) * (size_t)bed.csr.rows));
  assert_true(host_residual(&bed, &norm) > 1e-9 * norm);
  release(&rounded);
  release(&bed);
}

/* A driver without conditional nodes: the host repeats the same kernels, and the bits are the same; and so they are
 * from one solution to the next. */
static void the_host_repeats_it_alike(void **state) {
  cbgen_outcome outcomes[2];
  double *first = NULL;
  (void)state;
  for (int old = 0; old < 2; old++) {
    fake->version = old ? 12030 : 13000;
    struct bed bed = bed_of(conduction(), "recipe=dia type=split-f64");
    const cbgen_solver_options options = options_of(&bed, 1, 0);
    outcomes[old] = solved_in(&bed, "cg-mixed", &options, old ? "host" : "graph");
    take_x(&bed);
    if (!old) {
      first = calloc((size_t)bed.csr.rows, sizeof *first);
      memcpy(first, bed.x, (size_t)bed.csr.rows * sizeof *first);
      const cbgen_outcome again = solved_in(&bed, "cg-mixed", &options, "graph");
      assert_memory_equal(&again, &outcomes[0], sizeof again);
    }
    assert_memory_equal(bed.x, first, (size_t)bed.csr.rows * sizeof *first);
    release(&bed);
  }
  fake->version = 13000;
  free(first);
  assert_memory_equal(&outcomes[0], &outcomes[1], sizeof outcomes[0]);
}

/* Where nothing is said of a form, it is one kernel where that can be; a solution may end at once, with the most
 * iterations, or where the matrix is not positive definite. */
static void it_ends_as_it_should(void **state) {
  static const struct {
    const char *settings, *form, *expected;
  } cases[] = {{"recipe=sell type=split-f64", NULL, "cluster"}, {"recipe=sell type=split-f64", "grid", "grid"},
               {"recipe=sell type=split-f64", "graph", "graph"},
               {"recipe=phases phase-columns=50 phase-row=1 type=split-f64", NULL, "graph"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct bed bed = bed_of(conduction(), cases[i].settings);
    cbgen_solver_options options = options_of(&bed, 0, 0);
    options.program_form = cases[i].form;
    options.max_iterations = 7;
    cbgen_outcome outcome = solved_in(&bed, "cg-mixed", &options, cases[i].expected);
    assert_int_equal(outcome.reason, CBGEN_REASON_ITERATIONS);
    assert_int_equal(outcome.iterations, 7);
    options.relative_tolerance = 1e9;
    outcome = solved_in(&bed, "cg-mixed", &options, cases[i].expected);
    assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
    assert_int_equal(outcome.iterations, 0);
    take_x(&bed);
    for (int64_t row = 0; row < bed.csr.rows; row++) assert_true(bed.x[row] == 0.25); /* the first guess */
    for (int64_t k = 0; k < bed.csr.nnz; k++) bed.csr.values[k] = -bed.csr.values[k];
    struct cb_csr negative = bed.csr;
    bed.csr = (struct cb_csr){0};
    release(&bed);
    bed = bed_of(negative, cases[i].settings);
    options.relative_tolerance = 1e-10;
    outcome = solved_in(&bed, "cg-mixed", &options, cases[i].expected);
    assert_int_equal(outcome.reason, CBGEN_REASON_BREAKDOWN);
    release(&bed);
  }
}

/* After a solution of what is no number, another one is as it would have been. */
static void what_is_no_number_ends_it(void **state) {
  (void)state;
  struct bed bed = bed_of(conduction(), "recipe=sell type=split-f64");
  cbgen_solver_options options = options_of(&bed, 1, 0);
  cbgen_solver *solver;
  cbgen_outcome outcome, again;
  options.program_form = "grid";
  const cbgen_outcome expected = solved_in(&bed, "cg-mixed", &options, "grid");
  must_operator(bed.op, cbgen_solver_create(bed.op, "cg-mixed", &options, &solver));
  start_from(&bed, NAN);
  assert_int_equal(cbgen_solve(solver, (void *)(uintptr_t)bed.b_there, (void *)(uintptr_t)bed.x_there, NULL), CBGEN_OK);
  assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
  assert_int_equal(outcome.reason, CBGEN_REASON_NOT_A_NUMBER);
  start_from(&bed, 0.25);
  assert_int_equal(cbgen_solve(solver, (void *)(uintptr_t)bed.b_there, (void *)(uintptr_t)bed.x_there, NULL), CBGEN_OK);
  assert_int_equal(cbgen_solver_outcome(solver, &again), CBGEN_OK);
  assert_memory_equal(&again, &expected, sizeof again);
  cbgen_solver_free(solver);
  release(&bed);
}

static void refusals(void **state) {
  static const struct {
    const char *settings, *form, *message;
  } cases[] = {{"recipe=sell type=split-f64", "block+resident", "method 'cg-mixed' has no"},
               {"recipe=sell type=split-f64", "cluster+resident", "method 'cg-mixed' has no"},
               {"recipe=phases phase-columns=50 phase-row=1 type=split-f64", "grid", "choose another recipe"}};
  (void)state;
  struct bed whole = bed_of(conduction(), "recipe=sell");
  cbgen_solver_options options = {.struct_size = sizeof options};
  cbgen_solver *solver;
  assert_int_equal(cbgen_solver_create(whole.op, "cg-mixed", &options, &solver), CBGEN_ERROR_ARGUMENT);
  assert_null(solver);
  assert_non_null(strstr(cbgen_operator_message(whole.op), "compile it with 'split'"));
  release(&whole);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct bed split = bed_of(conduction(), cases[i].settings);
    options.program_form = cases[i].form;
    assert_int_equal(cbgen_solver_create(split.op, "cg-mixed", &options, &solver), CBGEN_ERROR_UNSUPPORTED);
    if (!strstr(cbgen_operator_message(split.op), cases[i].message)) fail_msg("%s", cbgen_operator_message(split.op));
    release(&split);
  }
}

/* Whatever allocation fails while the kernel of both products is made: a message, and nothing left behind; or, of what
 * can be done without, such as a cache, the same solver. */
static void failures_leave_nothing_behind(void **state) {
  enum { MANY = 8 };
  (void)state;
  struct bed bed = bed_of(conduction(), "recipe=sell type=split-f64");
  cbgen_solver_options options = options_of(&bed, 1, 0);
  options.program_form = "grid";
  options.max_iterations = 2;
  const cbgen_outcome expected = solved_in(&bed, "cg-mixed", &options, "grid");
  int failed = 0, made = 0;
  for (uint64_t nth = 1; made < MANY; nth++) {
    cbgen_solver *solver;
    cb_memory_fail_at(nth, 0);
    const cbgen_status s = cbgen_solver_create(bed.op, "cg-mixed", &options, &solver);
    cb_memory_fail_at(0, 0);
    if (s) {
      if (s != CBGEN_ERROR_MEMORY) fail_msg("allocation %d: %s", (int)nth, cbgen_operator_message(bed.op));
      assert_null(solver);
      failed++;
      made = 0;
    } else {
      const cbgen_outcome outcome = run(&bed, solver);
      assert_memory_equal(&outcome, &expected, sizeof outcome);
      cbgen_solver_free(solver);
      made++;
    }
  }
  assert_in_range(failed, 100, 2000);
  release(&bed);
}

/* One kernel multiplies with whole values. */
static void other_methods_take_split_values(void **state) {
  (void)state;
  struct bed bed = bed_of(conduction(), "recipe=sell type=split-f64"), whole = bed_of(conduction(), "recipe=sell");
  cbgen_solver_options options = options_of(&bed, 0, 0);
  options.program_form = "block";
  const cbgen_outcome outcome = solved_in(&bed, "cg", &options, "block"),
                      expected = solved_in(&whole, "cg", &options, "block");
  assert_memory_equal(&outcome, &expected, sizeof outcome);
  release(&bed);
  release(&whole);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(it_needs_about_as_many_iterations), TEST(sums_of_rows_are_kept), TEST(every_recipe_has_it_in_a_form),
      TEST(iterations_read_heads),             TEST(heads_alone_do_not_do), TEST(the_host_repeats_it_alike),
      TEST(it_ends_as_it_should),              TEST(what_is_no_number_ends_it), TEST(refusals),
      TEST(failures_leave_nothing_behind),     TEST(other_methods_take_split_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
