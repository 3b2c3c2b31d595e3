// SPDX-License-Identifier: Apache-2.0
/* Conjugate gradients in mixed precision: as few iterations as the ordinary ones, about, to residuals that heads alone
 * never reach; whole products only now and then; the same bits where the host repeats the kernels; what is refused. */
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
    assert_in_range(whole, 8, 24);
    assert_true(residual <= 1.001e-10 * norm);
    assert_true(fabs(mixed.true_residual - residual) <= 1e-14 * norm);
    assert_true(fabs(mixed.residual - residual) <= 1e-14 * norm); /* it is that of the whole matrix which ends it */
  }
  free(pointers);
  app_free(blocks);
  release(&bed);
}

/* Until the residual is computed anew, iterations are those of the matrix of floats, bit for bit. */
static void iterations_read_heads(void **state) {
  (void)state;
  struct bed beds[2] = {bed_of(conduction(), "recipe=sell type=split-f64"),
                        bed_of(conduction(), "recipe=sell type=f32-f64")};
  double residuals[2];
  for (int i = 0; i < 2; i++) {
    cbgen_solver_options options = options_of(&beds[i], 0, 0);
    cbgen_solver *solver;
    cbgen_outcome outcome;
    options.max_iterations = 4;
    start_from(&beds[i], 0);
    must_operator(beds[i].op, cbgen_solver_create(beds[i].op, i ? "cg" : "cg-mixed", &options, &solver));
    must_operator(beds[i].op, cbgen_solve(solver, (void *)(uintptr_t)beds[i].b_there,
                                          (void *)(uintptr_t)beds[i].x_there, NULL));
    assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
    assert_int_equal(outcome.iterations, 4);
    residuals[i] = outcome.residual;
    cbgen_solver_free(solver);
    release(&beds[i]);
  }
  assert_true(residuals[0] == residuals[1]);
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

/* Where nothing is said of a form, it is a graph; a solution may end at once, or with the most iterations. */
static void it_ends_as_it_should(void **state) {
  (void)state;
  struct bed bed = bed_of(conduction(), "recipe=merge type=split-f64");
  cbgen_solver_options options = options_of(&bed, 0, 0);
  options.program_form = NULL;
  options.max_iterations = 7;
  cbgen_outcome outcome = solved_in(&bed, "cg-mixed", &options, "graph");
  assert_int_equal(outcome.reason, CBGEN_REASON_ITERATIONS);
  assert_int_equal(outcome.iterations, 7);
  options.relative_tolerance = 1e9;
  outcome = solved_in(&bed, "cg-mixed", &options, "graph");
  assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
  assert_int_equal(outcome.iterations, 0);
  for (int64_t k = 0; k < bed.csr.nnz; k++) bed.csr.values[k] = -bed.csr.values[k];
  struct cb_csr negative = bed.csr;
  bed.csr = (struct cb_csr){0};
  release(&bed);
  bed = bed_of(negative, "recipe=sell type=split-f64");
  options.relative_tolerance = 1e-10;
  outcome = solved_in(&bed, "cg-mixed", &options, "graph");
  assert_int_equal(outcome.reason, CBGEN_REASON_BREAKDOWN);
  release(&bed);
}

static void refusals(void **state) {
  (void)state;
  struct bed whole = bed_of(conduction(), "recipe=sell"), split = bed_of(conduction(), "recipe=sell type=split-f64");
  cbgen_solver_options options = {.struct_size = sizeof options};
  cbgen_solver *solver;
  assert_int_equal(cbgen_solver_create(whole.op, "cg-mixed", &options, &solver), CBGEN_ERROR_ARGUMENT);
  assert_null(solver);
  assert_non_null(strstr(cbgen_operator_message(whole.op), "compile it with 'split'"));
  options.program_form = "block";
  assert_int_equal(cbgen_solver_create(split.op, "cg-mixed", &options, &solver), CBGEN_ERROR_UNSUPPORTED);
  assert_non_null(strstr(cbgen_operator_message(split.op), "program form 'graph'"));
  release(&whole);
  release(&split);
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
      TEST(it_needs_about_as_many_iterations), TEST(iterations_read_heads), TEST(heads_alone_do_not_do),
      TEST(the_host_repeats_it_alike),         TEST(it_ends_as_it_should),  TEST(refusals),
      TEST(other_methods_take_split_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
