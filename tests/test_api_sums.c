// SPDX-License-Identifier: Apache-2.0
/* Form "graph+sums": sums behind a product are added up where its rows are committed. Whole solutions on the emulation,
 * beside those of the form "graph": fewer kernels, as good a solution, and the same bits from run to run. */
#include "tests/solver_support.h"

enum { MOST = 400 };

struct answer {
  cbgen_outcome outcome;
  double residual, norm; /* by the host; of b */
  long kernels;
};

/* Twice, with the same bits: warps and thread blocks arrive in another order each time. */
static struct answer answer_of(struct bed *bed, const char *method, const char *form, int diagonal) {
  cbgen_solver_options options = with_diagonal(bed, diagonal);
  const size_t bytes = (size_t)bed->csr.rows * sizeof *bed->x;
  struct answer answer = {.kernels = 0};
  double *first = malloc(bytes);
  options.program_form = form;
  options.max_iterations = MOST;
  options.relative_tolerance = 1e-9;
  for (int again = 0; again < 2; again++) {
    const long before = fake->executed;
    start_from(bed, 0.25);
    const cbgen_outcome outcome = solved(bed, method, &options);
    answer.kernels = fake->executed - before;
    answer.residual = host_residual(bed, &answer.norm);
    if (again) assert_memory_equal(&outcome, &answer.outcome, sizeof outcome);
    if (again) assert_memory_equal(bed->x, first, bytes);
    answer.outcome = outcome;
    memcpy(first, bed->x, bytes);
  }
  free(first);
  return answer;
}

/* How many kernels less an iteration has. */
static long kernels_spared(struct bed *bed, const char *method, int diagonal) {
  const struct answer apart = answer_of(bed, method, "graph", diagonal),
                      fused = answer_of(bed, method, "graph+sums", diagonal);
  const int iterations = apart.outcome.iterations;
  if (fused.outcome.reason != CBGEN_REASON_CONVERGED ||
      abs(fused.outcome.iterations - iterations) > 1 + iterations / 20)
    fail_msg("%s: reason %d, %d iterations instead of %d", method, fused.outcome.reason, fused.outcome.iterations,
             iterations);
  assert_true(fused.residual <= 1.1e-9 * fused.norm + 1e-13 * fused.norm);
  assert_true(fabs(fused.outcome.true_residual - fused.residual) <= 1e-13 * fused.norm);
  return (apart.kernels - fused.kernels) / iterations;
}

static struct bed special_bed_of(const char *matrix, enum kind kind, const char *settings) {
  struct bed bed = bed_of(system_of(matrix, kind), settings);
  must_operator(bed.op, cbgen_operator_specialise(bed.op));
  return bed;
}

/* Of each method those kernels go that do nothing but sum: one a product, and two where nothing but scalars follows. */
static void methods_have_fewer_kernels(void **state) {
  static const struct {
    const char *method;
    enum kind kind;
    int diagonal, least;
  } cases[] = {{"cg", SYMMETRIC, 1, 1},
               {"bicgstab", UNSYMMETRIC, 0, 2},
               {"minres", SYMMETRIC, 0, 1},
               {"jacobi", UNSYMMETRIC, 1, 1}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct bed bed = special_bed_of("random,rows=300,cols=300,density=0.02", cases[i].kind,
                                    i % 2 ? "recipe=sell" : "recipe=merge");
    assert_true(kernels_spared(&bed, cases[i].method, cases[i].diagonal) >= cases[i].least);
    release(&bed);
  }
}

/* Rows of one thread, of lanes, of several segments, of which the last to arrive commits the row, and of two launches;
 * but not those that a panel's threads commit, whichever come last, and those that are added to. */
static int is_summed(const char *matrix, const char *settings) {
  struct bed bed = special_bed_of(matrix, SYMMETRIC, settings);
  const int is = kernels_spared(&bed, "cg", 1) >= 1;
  release(&bed);
  return is;
}

static void layouts_are_summed_in_products(void **state) {
  (void)state;
  assert_true(is_summed("stencil7,n=7", "recipe=dia"));
  assert_true(is_summed("fe3,n=4", "recipe=blocks"));
  assert_true(is_summed("dense_row,n=2500,row=7", "recipe=sell"));
  assert_true(is_summed("dense_row,n=2500,row=7", "recipe=merge merge-piece=512"));
  assert_true(is_summed("dense_row,n=1500,row=7", "recipe=hot hot-columns=40"));
  assert_true(is_summed("dense_row,n=1500,row=7", "recipe=sell-long long-row=64"));
  assert_false(is_summed("dense_row,n=1500,row=7", "recipe=cb unit-budget=256"));
}

/* Why a solution ends is told, as in other forms. */
static void breakdowns_end_solutions(void **state) {
  (void)state;
  struct bed bed = special_bed_of("random,rows=200,cols=200,density=0.03", SYMMETRIC, "recipe=sell");
  cbgen_solver_options options = {.struct_size = sizeof options, .program_form = "graph+sums", .max_iterations = 3};
  start_from(&bed, 0.25);
  assert_int_equal(solved(&bed, "cg", &options).reason, CBGEN_REASON_ITERATIONS);
  assert_int_equal(solved(&bed, "bicgstab", &options).iterations, 3);
  start_from(&bed, NAN);
  assert_int_equal(solved(&bed, "cg", &options).reason, CBGEN_REASON_NOT_A_NUMBER);
  for (int64_t k = 0; k < bed.csr.nnz; k++) bed.csr.values[k] *= -1; /* p·A p is below 0 */
  struct bed other = bed_of(bed.csr, "recipe=sell");
  must_operator(other.op, cbgen_operator_specialise(other.op));
  start_from(&other, 0.25);
  assert_int_equal(solved(&other, "cg", &options).reason, CBGEN_REASON_BREAKDOWN);
  bed.csr = (struct cb_csr){0};
  release(&other);
  release(&bed);
}

/* The second half of a body passes by where the first one ends the solution. */
static void solutions_end_within_a_body(void **state) {
  struct bed bed = special_bed_of("random,rows=200,cols=200,density=0.03", SYMMETRIC, "recipe=sell");
  (void)state;
  for (int most = 2; most < 6; most++) {
    const cbgen_solver_options options = {
        .struct_size = sizeof options, .program_form = "graph+pipelined+sums", .max_iterations = most, .damping = 0.5};
    double b[200];
    for (int i = 0; i < 200; i++) b[i] = 1;
    assert_true(app_put(bed.b_there, b, sizeof b));
    start_from(&bed, 0.25);
    const cbgen_outcome outcome = solved(&bed, "pagerank", &options);
    assert_int_equal(outcome.reason, CBGEN_REASON_ITERATIONS);
    assert_int_equal(outcome.iterations, most);
  }
  release(&bed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(methods_have_fewer_kernels, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(layouts_are_summed_in_products, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(solutions_end_within_a_body, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(breakdowns_end_solutions, open_fake, check_fake),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
