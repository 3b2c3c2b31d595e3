// SPDX-License-Identifier: Apache-2.0
/* Batches through the public interface, on the emulation: each system's solution against the residual in long doubles,
 * whatever happens in the systems beside it. */
#include "tests/api_support.h"
#include "tests/recipes.h"

#include "base/memory.h"

enum { MOST = 40 };

/* Systems of one pattern with everything that their solutions need, on GPU 0. */
struct bed {
  cbgen_context *context;
  struct cb_csr csr; /* the pattern */
  int32_t *pointers;
  int systems, is_float;
  double *values, *b, *x; /* of all systems */
  uint64_t values_there, b_there, x_there, diagonals_there;
};

static size_t size_of(const struct bed *bed) { return bed->is_float ? sizeof(float) : sizeof(double); }

static uint64_t put(const struct bed *bed, const double *numbers, int64_t count) {
  const uint64_t there = app_alloc(0, (size_t)count * size_of(bed));
  char *bytes = calloc((size_t)count, 8);
  for (int64_t i = 0; i < count; i++) cb_real_set(bytes, bed->is_float ? CB_F32 : CB_F64, i, numbers[i]);
  assert_true(app_put(there, bytes, (size_t)count * size_of(bed)));
  free(bytes);
  return there;
}

/* Symmetric where the pattern is, and dominated by the diagonal; each system by other numbers. */
static double entry(const struct bed *bed, int system, int64_t row, int64_t k) {
  const int64_t column = bed->csr.col_idx[k], low = row < column ? row : column, high = row < column ? column : row;
  if (row != column) return -0.1 - 0.05 * (double)((low * 7 + high * 3 + system) % 11);
  const int64_t length = cb_csr_row(&bed->csr, row + 1) - cb_csr_row(&bed->csr, row);
  return 0.65 * (double)length + 0.01 * (double)(system + row % 5);
}

static struct bed bed_of(const char *pattern, int systems, const char *settings) {
  struct bed bed = {.csr = matrix_of(pattern), .systems = systems, .is_float = strstr(settings, "f32") != NULL};
  const int64_t n = bed.csr.rows, nnz = bed.csr.nnz;
  double *diagonals = calloc((size_t)(systems * n), sizeof *diagonals);
  assert_int_equal(cbgen_context_create(&bed.context), CBGEN_OK);
  set_all(bed.context, settings);
  bed.pointers = calloc((size_t)n + 1, sizeof *bed.pointers);
  for (int64_t row = 0; row <= n; row++) bed.pointers[row] = (int32_t)cb_csr_row(&bed.csr, row);
  bed.values = calloc((size_t)(systems * nnz), sizeof *bed.values);
  bed.b = calloc((size_t)(systems * n), sizeof *bed.b);
  bed.x = calloc((size_t)(systems * n), sizeof *bed.x);
  for (int s = 0; s < systems; s++)
    for (int64_t row = 0; row < n; row++) {
      bed.b[s * n + row] = 1 + 0.25 * (double)((row + s) % 9);
      for (int64_t k = bed.pointers[row]; k < bed.pointers[row + 1]; k++) {
        bed.values[s * nnz + k] = entry(&bed, s, row, k);
        if (bed.csr.col_idx[k] == row) diagonals[s * n + row] = bed.values[s * nnz + k];
      }
    }
  bed.values_there = put(&bed, bed.values, systems * nnz);
  bed.b_there = put(&bed, bed.b, systems * n);
  bed.x_there = put(&bed, bed.x, systems * n); /* zeros */
  bed.diagonals_there = put(&bed, diagonals, systems * n);
  free(diagonals);
  return bed;
}

static cbgen_csr view_of(const struct bed *bed) {
  const struct cb_csr *csr = &bed->csr;
  return (cbgen_csr){.struct_size = sizeof(cbgen_csr), .rows = csr->rows, .cols = csr->cols, .nnz = csr->nnz,
                     .row_ptr = bed->pointers, .col_idx = bed->csr.col_idx, .values = bed->csr.values};
}

static void release(struct bed *bed) {
  app_free(bed->values_there);
  app_free(bed->b_there);
  app_free(bed->x_there);
  app_free(bed->diagonals_there);
  free(bed->values);
  free(bed->b);
  free(bed->x);
  free(bed->pointers);
  cb_csr_release(&bed->csr);
  cbgen_context_destroy(bed->context);
}

/* The residual of a system relative to its b. */
static double residual_of(struct bed *bed, int system, double *norm) {
  const int64_t n = bed->csr.rows;
  const enum cb_type type = bed->is_float ? CB_F32 : CB_F64;
  char *bytes = calloc((size_t)(bed->systems * n), 8);
  long double square = 0, of_b = 0;
  assert_true(app_take(bytes, bed->x_there, (size_t)(bed->systems * n) * size_of(bed)));
  for (int64_t i = 0; i < n; i++) bed->x[system * n + i] = cb_real_get(bytes, type, system * n + i);
  for (int64_t row = 0; row < n; row++) {
    long double r = bed->b[system * n + row];
    for (int64_t k = bed->pointers[row]; k < bed->pointers[row + 1]; k++) {
      const double value = cb_real_round(bed->values[system * bed->csr.nnz + k], type);
      r -= (long double)value * bed->x[system * n + bed->csr.col_idx[k]];
    }
    square += r * r;
    of_b += (long double)bed->b[system * n + row] * bed->b[system * n + row];
  }
  free(bytes);
  *norm = (double)sqrtl(of_b);
  return (double)sqrtl(square);
}

/* In every second solution with vectors in shared memory. */
static void solve(struct bed *bed, const char *method, int with_diagonals, cbgen_outcome *outcomes) {
  static int turn;
  const cbgen_csr view = view_of(bed);
  const cbgen_batch_options options = {.struct_size = sizeof options,
                                       .program_form = turn++ % 2 ? "block+resident" : NULL,
                                       .systems = bed->systems,
                                       .diagonals = with_diagonals ? (void *)(uintptr_t)bed->diagonals_there : NULL};
  cbgen_batch *batch;
  must(bed->context, cbgen_batch_create(bed->context, &view, method, &options, &batch));
  assert_int_equal(cbgen_batch_outcomes(batch, outcomes), CBGEN_OK);
  assert_int_equal(outcomes[bed->systems - 1].reason, CBGEN_REASON_NONE);
  app_set_current(0);
  const struct fake_control before = *fake;
  if (cbgen_solve_batch(batch, (void *)(uintptr_t)bed->values_there, (void *)(uintptr_t)bed->b_there,
                        (void *)(uintptr_t)bed->x_there, NULL))
    fail_msg("%s", cbgen_batch_message(batch));
  assert_int_equal(fake->launches, before.launches + 1);
  assert_int_equal(fake->allocations, before.allocations);
  assert_int_equal(fake->waits, before.waits);
  app_set_current(-1);
  assert_int_equal(cbgen_batch_outcomes(batch, outcomes), CBGEN_OK);
  cbgen_batch_free(batch);
}

/* ---- solutions */

/* More systems than thread blocks that the GPU has room for, and fewer. */
static void every_system_is_solved(void **state) {
  static const struct {
    const char *pattern, *settings, *method;
    int systems;
  } cases[] = {{"stencil7,n=5", "type=f64", "cg", MOST},
               {"stencil7,n=5", "type=f64", "bicgstab", 3},
               {"fe3,n=3", "type=f32", "cg", 17},
               {"stencil27,n=4", "type=f64", "bicgstab", 1}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int diagonals = 0; diagonals < 2; diagonals++) {
      struct bed bed = bed_of(cases[i].pattern, cases[i].systems, cases[i].settings);
      const double limit = bed.is_float ? 1e-5 : 1e-8, slack = bed.is_float ? 1e-5 : 1e-13;
      cbgen_outcome outcomes[MOST];
      solve(&bed, cases[i].method, diagonals, outcomes);
      for (int s = 0; s < bed.systems; s++) {
        double norm;
        const double residual = residual_of(&bed, s, &norm);
        if (outcomes[s].reason != CBGEN_REASON_CONVERGED || !(residual <= (2 * limit + slack) * norm))
          fail_msg("%s, %s, system %d: reason %d, residual %g", cases[i].pattern, cases[i].method, s, outcomes[s].reason,
                   residual);
        assert_true(outcomes[s].iterations > 1);
        assert_true(fabs(outcomes[s].true_residual - residual) <= slack * norm);
      }
      release(&bed);
    }
}

/* A system that ends in another way changes nothing of the others, not even of those that its thread block takes. */
static void systems_do_not_touch_each_other(void **state) {
  struct bed bed = bed_of("stencil7,n=5", MOST, "type=f64");
  const int64_t n = bed.csr.rows;
  double *alone = calloc((size_t)(MOST * n), sizeof *alone), bad = NAN, norm;
  cbgen_outcome outcomes[MOST], others[MOST];
  (void)state;
  solve(&bed, "cg", 1, outcomes);
  for (int s = 0; s < MOST; s++) residual_of(&bed, s, &norm);
  memcpy(alone, bed.x, (size_t)(MOST * n) * sizeof *alone);
  memset(bed.x, 0, (size_t)(MOST * n) * sizeof *bed.x);
  assert_true(app_put(bed.x_there, bed.x, (size_t)(MOST * n) * sizeof *bed.x));
  for (int s = 0; s < MOST; s += 7) assert_true(app_put(bed.b_there + (uint64_t)(s * n + 3) * 8, &bad, 8));
  solve(&bed, "cg", 1, others);
  for (int s = 0; s < MOST; s++) {
    residual_of(&bed, s, &norm);
    if (s % 7 == 0) {
      assert_int_equal(others[s].reason, CBGEN_REASON_NOT_A_NUMBER);
      continue;
    }
    assert_memory_equal(&others[s], &outcomes[s], sizeof *others);
    assert_memory_equal(bed.x + s * n, alone + s * n, (size_t)n * sizeof *alone);
  }
  free(alone);
  release(&bed);
}

/* The same bits wherever vectors lie; and too many rows for shared memory. */
static void resident_vectors_give_the_same_bits(void **state) {
  struct bed bed = bed_of("stencil27,n=5", 7, "type=f64");
  const size_t bytes = (size_t)(bed.systems * bed.csr.rows) * sizeof(double);
  double *found[2] = {malloc(bytes), malloc(bytes)};
  cbgen_outcome outcomes[7];
  (void)state;
  for (int turn = 0; turn < 2; turn++) {
    memset(found[turn], 0, bytes);
    assert_true(app_put(bed.x_there, found[turn], bytes));
    solve(&bed, "bicgstab", 1, outcomes);
    assert_true(app_take(found[turn], bed.x_there, bytes));
    assert_int_equal(outcomes[6].reason, CBGEN_REASON_CONVERGED);
  }
  assert_memory_equal(found[0], found[1], bytes);
  free(found[0]);
  free(found[1]);
  release(&bed);
  bed = bed_of("stencil7,n=18", 1, "type=f64");
  const cbgen_csr view = view_of(&bed);
  cbgen_batch_options options = {.struct_size = sizeof options, .systems = 1, .program_form = "block+resident"};
  cbgen_batch *batch;
  assert_int_equal(cbgen_batch_create(bed.context, &view, "bicgstab", &options, &batch), CBGEN_ERROR_LIMIT);
  assert_non_null(strstr(cbgen_message(bed.context), "without '+resident'"));
  options.program_form = NULL;
  must(bed.context, cbgen_batch_create(bed.context, &view, "bicgstab", &options, &batch));
  cbgen_batch_free(batch);
  release(&bed);
}

/* ---- what is refused */

static void nonsense_is_refused(void **state) {
  struct bed bed = bed_of("stencil7,n=3", 2, "type=f64");
  cbgen_csr view = view_of(&bed), wide = view;
  cbgen_batch_options options = {.struct_size = sizeof options, .systems = 2};
  cbgen_batch *batch = (cbgen_batch *)&options;
  (void)state;
  assert_int_equal(cbgen_batch_create(bed.context, &view, "minres", &options, &batch), CBGEN_ERROR_ARGUMENT);
  assert_null(batch);
  assert_non_null(strstr(cbgen_message(bed.context), "cg and bicgstab"));
  options.systems = 0;
  assert_int_equal(cbgen_batch_create(bed.context, &view, "cg", &options, &batch), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(bed.context), "'systems'"));
  options.systems = 2;
  options.relative_tolerance = NAN;
  assert_int_equal(cbgen_batch_create(bed.context, &view, "cg", &options, &batch), CBGEN_ERROR_ARGUMENT);
  options.relative_tolerance = 0;
  options.max_iterations = -1;
  assert_int_equal(cbgen_batch_create(bed.context, &view, "cg", &options, &batch), CBGEN_ERROR_ARGUMENT);
  options.max_iterations = 0;
  wide.cols++;
  assert_int_equal(cbgen_batch_create(bed.context, &wide, "cg", &options, &batch), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_message(bed.context), "square"));
  options.outcomes = (cbgen_outcome *)(uintptr_t)4;
  assert_int_equal(cbgen_batch_create(bed.context, &view, "cg", &options, &batch), CBGEN_ERROR_ARGUMENT);
  options.outcomes = NULL;
  for (int i = 0; i < 4; i++) {
    static const char *const forms[] = {"cluster", "block+steps", "", "grid+resident"};
    options.program_form = forms[i];
    assert_int_equal(cbgen_batch_create(bed.context, &view, "cg", &options, &batch), CBGEN_ERROR_ARGUMENT);
    assert_non_null(strstr(cbgen_message(bed.context), "batches have block and block+resident"));
  }
  options.program_form = "block";
  must(bed.context, cbgen_batch_create(bed.context, &view, "cg", &options, &batch));
  assert_int_equal(cbgen_solve_batch(batch, NULL, batch, batch, NULL), CBGEN_ERROR_ARGUMENT);
  assert_int_equal(cbgen_solve_batch(batch, batch, batch, batch, NULL), CBGEN_ERROR_ARGUMENT);
  assert_non_null(strstr(cbgen_batch_message(batch), "the same"));
  assert_int_equal(cbgen_solve_batch(batch, (char *)batch + 4, batch, &options, NULL), CBGEN_ERROR_ARGUMENT);
  cbgen_batch_free(batch);
  set_all(bed.context, "type=f16");
  assert_int_equal(cbgen_batch_create(bed.context, &view, "cg", &options, &batch), CBGEN_ERROR_UNSUPPORTED);
  release(&bed);
}

/* Whatever allocation fails, on the host or on the GPU: a message, nothing left behind. */
static void failures_leave_nothing_behind(void **state) {
  struct bed bed = bed_of("stencil7,n=3", 2, "type=f64");
  const cbgen_csr view = view_of(&bed);
  const cbgen_batch_options options = {.struct_size = sizeof options, .systems = 2};
  cbgen_batch *batch;
  int failed = 0;
  (void)state;
  for (uint64_t nth = 1; nth < 4000; nth++) {
    cb_memory_fail_at(nth, 0);
    const cbgen_status s = cbgen_batch_create(bed.context, &view, "cg", &options, &batch);
    cb_memory_fail_at(0, 0);
    if (!s) {
      cbgen_batch_free(batch);
      break;
    }
    if (s != CBGEN_ERROR_MEMORY) fail_msg("allocation %d: %s", (int)nth, cbgen_message(bed.context));
    assert_null(batch);
    failed++;
  }
  assert_true(failed > 10);
  release(&bed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(every_system_is_solved, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(resident_vectors_give_the_same_bits, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(systems_do_not_touch_each_other, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(nonsense_is_refused, open_fake, check_fake),
      cmocka_unit_test_setup_teardown(failures_leave_nothing_behind, open_fake, check_fake)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
