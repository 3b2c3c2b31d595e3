// SPDX-License-Identifier: Apache-2.0
/* Solvers of complex systems through the public interface: every method in every form, residuals that long doubles
 * confirm, and known solutions. Whole solutions on the emulation. */
#include "tests/solver_support.h"

static const char *const forms[] = {"grid",  "grid+steps",       "grid+resident",  "cluster", "cluster+resident",
                                    "block", "block+resident", "graph", "grid+matrix", NULL /* the library's choice */};
enum { FORMS = sizeof forms / sizeof *forms };

static void check(struct bed *bed, const char *method, const cbgen_solver_options *options, const char *words) {
  const int is_wide = cb_type_of_part(bed->type) == CB_F64;
  const double limit = is_wide ? 1e-8 : 1e-5, slack = is_wide ? 1e-13 : 1e-5;
  double norm;
  start_from(bed, 0.25);
  const cbgen_outcome outcome = solved(bed, method, options);
  const double residual = host_residual(bed, &norm);
  if (outcome.reason != CBGEN_REASON_CONVERGED || outcome.residual > limit * norm ||
      !(residual <= (2 * limit + slack) * norm) ||
      fabs(outcome.true_residual - residual) > slack * norm)
    fail_msg("%s, %s in %s: reason %d after %d iterations, residual %g and %g of %g, in truth %g", words, method,
             options->program_form ? options->program_form : "any form", outcome.reason, outcome.iterations,
             outcome.residual, outcome.true_residual, norm, residual);
  assert_true(outcome.iterations > 1 && outcome.iterations < 500);
}

/* Some methods and products leave no room for vectors in shared memory, as with real numbers. */
static int is_refused(struct bed *bed, const char *method, const cbgen_solver_options *options) {
  cbgen_solver *solver;
  const cbgen_status s = cbgen_solver_create(bed->op, method, options, &solver);
  cbgen_solver_free(solver);
  const char *const word = strstr(options->program_form, "+matrix") ? "'+matrix'" : "'+resident'";
  if (s) assert_non_null(strstr(cbgen_operator_message(bed->op), word));
  return s != CBGEN_OK;
}

/* Methods for any matrix solve Hermitian ones and others. */
static void every_method_in_every_form(void **state) {
  static const struct {
    const char *matrix, *settings;
    enum kind kind;
  } systems[] = {{"stencil7,n=7", "recipe=dia type=c128", SYMMETRIC},
                 {"random,rows=400,cols=400,density=0.012", "recipe=merge type=c64", UNSYMMETRIC},
                 {"fe3,n=4", "recipe=blocks type=c128", UNSYMMETRIC},
                 {"random,rows=300,cols=300,density=0.02", "type=c64", SYMMETRIC}};
  static const char *const methods[] = {"bicgstab", "gmres", "jacobi", "cg", "minres", "chebyshev"};
  int solved_in[FORMS] = {0};
  (void)state;
  for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
    struct bed bed = bed_of(complex_system_of(systems[i].matrix, systems[i].kind), systems[i].settings);
    for (size_t m = 0; m < (systems[i].kind == SYMMETRIC ? 6 : 3); m++)
      for (size_t f = (i + m) % 3; f < FORMS; f += 3) {
        cbgen_solver_options options = with_diagonal(&bed, m == 2 || (i + m + f / 3) % 2);
        options.program_form = forms[f];
        options.restart = 12;
        if (forms[f] && (strstr(forms[f], "resident") || strstr(forms[f], "matrix")) && is_refused(&bed, methods[m], &options)) continue;
        check(&bed, methods[m], &options, systems[i].matrix);
        solved_in[f]++;
      }
    release(&bed);
  }
  for (int f = 0; f < FORMS; f++) assert_true(solved_in[f]);
}

/* Blocks of a preconditioner are complex, too: of a matrix of such blocks alone one product with them solves it. */
static void blocks_are_inverted(void **state) {
  static const char *const types[] = {"c128", "c64"};
  (void)state;
  for (int i = 0; i < 4; i++) {
    char settings[60];
    snprintf(settings, sizeof settings, "recipe=sell type=%s", types[i % 2]);
    struct cb_csr csr = complex_system_of("fe3,n=3", i < 2 ? SYMMETRIC : UNSYMMETRIC);
    for (int64_t row = 0; row < csr.rows; row++) /* nothing but blocks; one of them has no inverse */
      for (int64_t k = cb_csr_row(&csr, row); k < cb_csr_row(&csr, row + 1); k++)
        if (csr.col_idx[k] / 3 != row / 3 || (row < 3 && csr.col_idx[k] != row))
          csr.values[2 * k] = csr.values[2 * k + 1] = 0;
    struct bed bed = bed_of(csr, settings);
    int32_t *pointers;
    const cbgen_csr view = view_of(&bed.csr, &pointers);
    const uint64_t inverses = app_alloc(0, 3 * (size_t)csr.rows * 16);
    must(bed.context, cbgen_block_diagonal(bed.context, &view, 3, (void *)(uintptr_t)inverses));
    cbgen_solver_options options = with_diagonal(&bed, 0);
    options.blocks = (void *)(uintptr_t)inverses;
    options.block_size = 3;
    double norm;
    start_from(&bed, 0);
    const cbgen_outcome outcome = solved(&bed, i < 2 ? "cg" : "bicgstab", &options);
    assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
    assert_int_equal(outcome.iterations, 1);
    assert_true(host_residual(&bed, &norm) <= (i % 2 ? 1e-5 : 1e-13) * norm);
    app_free(inverses);
    free(pointers);
    release(&bed);
  }
}

/* A block without an inverse counts as its diagonal, which complex numbers divide; where that is 0 it is left out. */
static void singular_blocks_are_their_diagonals(void **state) {
  int32_t pointers[] = {0, 2, 4, 6, 8}, columns[] = {0, 1, 0, 1, 2, 3, 2, 3};
  double values[] = {1, 1, 1, 1, 0, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 4}, found[16];
  /* the first column of each block, then the second */
  const double expected[] = {0.5, -0.5, 0, 0, 1, 0, 0, 0, 0, 0, 0, -0.5, 0, 0, 0, -0.25};
  const cbgen_csr view = {.struct_size = sizeof view, .rows = 4, .cols = 4, .nnz = 8, .row_ptr = pointers,
                          .col_idx = columns, .values = values, .value_type = CBGEN_C128};
  const uint64_t inverses = app_alloc(0, sizeof found);
  cbgen_context *context = new_context("recipe=sell");
  (void)state;
  must(context, cbgen_block_diagonal(context, &view, 2, (void *)(uintptr_t)inverses));
  assert_true(app_take(found, inverses, sizeof found));
  for (int i = 0; i < 16; i++) assert_true(found[i] == expected[i]);
  app_free(inverses);
  cbgen_context_destroy(context);
}

/* A 2 x 2 system, D x = b with diagonal (2 i, 1 - i), in one iteration of Jacobi's; and the largest eigenvalue of a
 * Hermitian matrix, (2, 2 i; -2 i, -1): 3, of which the vector is (2, -i). */
static void known_solutions(void **state) {
  int32_t pointers[] = {0, 2, 4}, columns[] = {0, 1, 0, 1};
  double turned[] = {0, 2, 0, 0, 0, 0, 1, -1}, hermitian[] = {2, 0, 0, 2, 0, -2, -1, 0};
  const double right[] = {4, 2, 3, -1}, starts[] = {1, 0, 0, 1};
  const uint64_t b = app_alloc(0, sizeof right), x = app_alloc(0, sizeof right), diagonal = app_alloc(0, sizeof right);
  cbgen_context *context = new_context("recipe=sell");
  (void)state;
  for (int i = 0; i < 2; i++) {
    const cbgen_csr view = {.struct_size = sizeof view, .rows = 2, .cols = 2, .nnz = 4, .row_ptr = pointers,
                            .col_idx = columns, .values = i ? hermitian : turned, .value_type = CBGEN_C128};
    cbgen_solver_options options = {.struct_size = sizeof options, .weight = 1, .max_iterations = 300};
    cbgen_operator *op;
    cbgen_solver *solver;
    cbgen_outcome outcome;
    double found[4];
    must(context, cbgen_compile(context, &view, NULL, &op));
    must(context, cbgen_diagonal(context, &view, (void *)(uintptr_t)diagonal));
    if (!i) options.diagonal = (void *)(uintptr_t)diagonal;
    must_operator(op, cbgen_solver_create(op, i ? "power" : "jacobi", &options, &solver));
    assert_true(app_put(b, right, sizeof right) && app_put(x, starts, sizeof starts));
    assert_int_equal(cbgen_solve(solver, (void *)(uintptr_t)b, (void *)(uintptr_t)x, NULL), CBGEN_OK);
    assert_int_equal(cbgen_solver_outcome(solver, &outcome), CBGEN_OK);
    assert_true(app_take(found, x, sizeof found));
    assert_int_equal(outcome.reason, CBGEN_REASON_CONVERGED);
    if (i) { /* up to a turn */
      assert_true(fabs(outcome.value - 3) < 1e-12);
      assert_true(fabs(found[0] * found[0] + found[1] * found[1] - 0.8) < 1e-6);
      assert_true(fabs(found[0] + 2 * found[3]) < 1e-6 && fabs(found[1] - 2 * found[2]) < 1e-6);
    } else {
      assert_int_equal(outcome.iterations, 1);
      const double expected[] = {1, -2, 2, 1};
      for (int k = 0; k < 4; k++) assert_true(found[k] == expected[k]);
    }
    cbgen_solver_free(solver);
    cbgen_operator_free(op);
  }
  app_free(b);
  app_free(x);
  app_free(diagonal);
  cbgen_context_destroy(context);
}

/* Ends as real systems have them: `cg` of a matrix that is not positive definite, and a NaN in either part. */
static void ends_have_reasons(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    struct cb_csr csr = complex_system_of("stencil5,n=5", SYMMETRIC);
    for (int64_t k = 0; k < 2 * csr.nnz && !i; k++) csr.values[k] = -csr.values[k];
    if (i) csr.values[2 * 17 + (i - 1)] = NAN;
    struct bed bed = bed_of(csr, "recipe=sell");
    const cbgen_solver_options options = with_diagonal(&bed, 0);
    start_from(&bed, 0.5);
    const cbgen_outcome outcome = solved(&bed, "cg", &options);
    assert_int_equal(outcome.reason, i ? CBGEN_REASON_NOT_A_NUMBER : CBGEN_REASON_BREAKDOWN);
    release(&bed);
  }
}

static int count_calls(void *user, int32_t iterations, double residual, const void *x) {
  (void)x;
  assert_true(residual >= 0 && residual < 1e6);
  *(int *)user = iterations;
  return iterations == 3;
}

static void progress_knows_residuals(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    struct bed bed = bed_of(complex_system_of("stencil5,n=9", SYMMETRIC), i ? "recipe=dia type=c64" : "recipe=dia");
    cbgen_solver_options options = with_diagonal(&bed, 0);
    int last = 0;
    options.progress = count_calls;
    options.progress_user = &last;
    start_from(&bed, 0.5);
    assert_int_equal(solved(&bed, "cg", &options).reason, CBGEN_REASON_STOPPED);
    assert_int_equal(last, 3);
    release(&bed);
  }
}

static void what_has_no_meaning_is_refused(void **state) {
  struct bed bed = bed_of(complex_system_of("stencil5,n=4", SYMMETRIC), "recipe=sell");
  cbgen_solver *solver;
  (void)state;
  const cbgen_solver_options pipelined = {.struct_size = sizeof pipelined, .program_form = "grid+pipelined"};
  assert_int_equal(cbgen_solver_create(bed.op, "cg", &pipelined, &solver), CBGEN_ERROR_UNSUPPORTED);
  assert_non_null(strstr(cbgen_operator_message(bed.op), "real numbers"));
  assert_int_equal(cbgen_solver_create(bed.op, "pagerank", NULL, &solver), CBGEN_ERROR_UNSUPPORTED);
  assert_non_null(strstr(cbgen_operator_message(bed.op), "'pagerank' has no meaning for complex numbers"));
  release(&bed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(known_solutions, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(every_method_in_every_form, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(blocks_are_inverted, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(singular_blocks_are_their_diagonals, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(ends_have_reasons, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(progress_knows_residuals, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(what_has_no_meaning_is_refused, open_fake, check_fake),
  };
  return cmocka_run_group_tests_name("api-complex-solver", tests, NULL, NULL);
}
