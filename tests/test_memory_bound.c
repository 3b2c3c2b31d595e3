// SPDX-License-Identifier: Apache-2.0
/* How much memory a matrix takes: at any time no more than three times its canonical form and 64 MiB, in reading,
 * profile, search, every recipe, packing, text and the C interface. Matrices whose columns are far more than their
 * nonzeros, whose rows are mostly empty, and ordinary ones. Time follows: what is not allocated is not looped over. */
#include "tests/failing_malloc.h"
#include "tests/support.h"

#include "analysis/plan/recipe.h"
#include "analysis/profile/profile.h"
#include "base/integers.h"
#include "cbgen.h"
#include "runtime/verify/oracle.h"

#include <omp.h>
#include <time.h>

enum { MANY = 2000000000 };

struct shape {
  const char *name;
  int64_t rows, cols, nonzeros;
  int64_t stride; /* columns are multiples of it */
};

static const struct shape wide_shapes[] = {
    {"one nonzero", 1, MANY, 1, 1},
    {"few nonzeros", 5, MANY, 40, 1},
    {"many columns", 2000, MANY, 60000, 1},
    {"columns that come often, far apart", 3000, MANY, 60000, 10000000},
};
static const struct shape other_shapes[] = {
    {"ordinary", 20000, 20000, 100000, 1},
    {"frequent columns", 20000, 20000, 100000, 100},
    {"one row", 1, 100000, 50000, 1},
    {"one column", 100000, 1, 50000, 1},
};
static const struct shape tall = {"rows that are mostly empty", 8000000, MANY, 20000, 1};

static struct cb_csr matrix_of_shape(const struct shape *shape) {
  struct cb_csr csr;
  struct cb_diag diag = {0};
  struct cb_coo coo = {.rows = shape->rows, .cols = shape->cols, .count = shape->nonzeros};
  uint64_t seed = 3;
  coo.row_idx = cb_alloc((size_t)coo.count, 4);
  coo.col_idx = cb_alloc((size_t)coo.count, 4);
  coo.values = cb_alloc((size_t)coo.count, 8);
  for (int64_t i = 0; i < coo.count; i++) {
    coo.row_idx[i] = (int32_t)(draw(&seed) % (uint64_t)shape->rows);
    const uint64_t choices = (uint64_t)cb_divide_up(shape->cols, shape->stride);
    coo.col_idx[i] = (int32_t)(draw(&seed) % choices * (uint64_t)shape->stride);
    coo.values[i] = (double)(i % 1000) + 0.25;
  }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  return csr;
}

/* What may be allocated beside the canonical form itself. */
static long allowed(const struct cb_csr *csr) {
  return 2 * (long)cb_csr_bytes(csr) + (64L << 20);
}

static void check_peak(const struct cb_csr *csr, const char *name, const char *what) {
  const long peak = peak_of_malloc();
  if (peak > allowed(csr))
    fail_msg("%s, %s: %ld kB beside the matrix's %ld kB", name, what, peak >> 10, (long)cb_csr_bytes(csr) >> 10);
}

static void profile(const struct cb_csr *csr, const char *name) {
  struct cb_profile profile;
  struct cb_diag diag = {0};
  peak_of_malloc();
  assert_ok(cb_profile_compute(&profile, csr, &diag));
  check_peak(csr, name, "profile");
}

/* Plan, data and text by one recipe, which may refuse. */
static void build(const struct cb_csr *csr, const char *name, const char *recipe) {
  struct cb_diag diag = {0};
  struct cb_options options;
  struct cb_target target;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  struct cb_blob blob = {0};
  struct cb_source source = {0};
  const struct cb_hash pattern = cb_csr_pattern_hash(csr);
  const struct cb_label label = {"m", "m", pattern};
  cb_options_default(&options);
  options.recipe = recipe;
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  peak_of_malloc();
  enum cb_status s = cb_plan_build(&plan, &assignment, csr, &target, &options, &diag);
  if (s && s != CB_ERR_UNSUPPORTED && s != CB_ERR_LIMIT) fail_msg("%s, %s: %s", name, recipe, diag.message);
  if (s && !strcmp(recipe, "auto")) fail_msg("%s: %s", name, diag.message);
  if (!s) {
    assert_ok(cb_pack(&blob, plan, assignment, csr, pattern, &diag));
    assert_ok(cb_source_emit(&source, plan, &label, &blob, CB_EMBED_NEVER, &diag));
  }
  check_peak(csr, name, recipe);
  cb_source_release(&source);
  cb_blob_release(&blob);
  if (!s) cb_assignment_free(assignment);
  if (!s) cb_plan_free(plan);
}

static void expect_selftest(const struct cb_csr *csr, const char *name) {
  const struct cb_plan plan = {.matrix_type = CB_F64, .vector_type = CB_F64, .sum_type = CB_F64};
  double *expected = cb_alloc((size_t)csr->rows, sizeof *expected), *bound = cb_alloc((size_t)csr->rows, sizeof *bound);
  peak_of_malloc();
  cb_oracle_selftest(csr, &plan, expected, bound);
  check_peak(csr, name, "self-test");
  cb_free(expected);
  cb_free(bound);
}

static void generate_by_library(const struct cb_csr *csr, const char *name) {
  const cbgen_csr view = {.struct_size = sizeof view,
                          .rows = csr->rows,
                          .cols = csr->cols,
                          .nnz = csr->nnz,
                          .row_ptr_bits = csr->wide ? 64 : 32,
                          .row_ptr = csr->row_ptr,
                          .col_idx = csr->col_idx,
                          .values = csr->values,
                          .name = "m"};
  cbgen_context *context;
  cbgen_kernel *kernel;
  assert_int_equal(cbgen_context_create(&context), CBGEN_OK);
  peak_of_malloc();
  if (cbgen_generate(context, &view, &kernel)) fail_msg("%s: %s", name, cbgen_message(context));
  check_peak(csr, name, "cbgen_generate");
  cbgen_kernel_free(kernel);
  cbgen_context_destroy(context);
}

static void check_shape(const struct shape *shape) {
  struct cb_csr csr = matrix_of_shape(shape);
  const clock_t begun = clock();
  profile(&csr, shape->name);
  const struct cb_recipe *recipe;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++) build(&csr, shape->name, recipe->name);
  expect_selftest(&csr, shape->name);
  generate_by_library(&csr, shape->name);
  const double seconds = (double)(clock() - begun) / CLOCKS_PER_SEC;
  if (seconds > 60) fail_msg("%s: %.0f s", shape->name, seconds); /* a loop over all columns alone would take longer */
  cb_csr_release(&csr);
}

static void columns_far_more_than_nonzeros_take_no_memory(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof wide_shapes / sizeof *wide_shapes; i++) check_shape(&wide_shapes[i]);
}

static void ordinary_and_narrow_matrices_stay_in_proportion(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof other_shapes / sizeof *other_shapes; i++) check_shape(&other_shapes[i]);
}

static void empty_rows_take_what_their_pointers_do(void **state) {
  (void)state;
  struct cb_csr csr = matrix_of_shape(&tall);
  const struct cb_recipe *recipe;
  profile(&csr, tall.name);
  for (int i = 0; (recipe = cb_recipe_at(i)); i++) build(&csr, tall.name, recipe->name);
  cb_csr_release(&csr);
}

static void reading_a_wide_matrix_takes_no_more_than_its_text(void **state) {
  (void)state;
  static const char text[] = "%%MatrixMarket matrix coordinate real general\n1 2000000000 1\n1 2000000000 1\n";
  struct cb_csr csr;
  struct cb_diag diag = {0};
  peak_of_malloc();
  assert_ok(cb_matrix_read_bytes(&csr, "wide.mtx", text, strlen(text), &diag));
  check_peak(&csr, "wide", "reading");
  cb_csr_release(&csr);
}

/* Diagonals that lie too far apart for a table of flags are found all the same. */
static void diagonals_far_apart_are_found(void **state) {
  (void)state;
  enum { ROWS = 3000 };
  struct cb_csr csr;
  struct cb_diag diag = {0};
  struct cb_coo coo = {.rows = ROWS, .cols = MANY, .count = 2 * ROWS};
  coo.row_idx = cb_alloc(2 * ROWS, 4);
  coo.col_idx = cb_alloc(2 * ROWS, 4);
  coo.values = cb_alloc(2 * ROWS, 8);
  for (int i = 0; i < 2 * ROWS; i++) {
    coo.row_idx[i] = i / 2;
    coo.col_idx[i] = i / 2 + i % 2 * 1900000000;
    coo.values[i] = i;
  }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  struct cb_options options;
  struct cb_target target;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  cb_options_default(&options);
  options.recipe = "dia";
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  peak_of_malloc();
  assert_ok(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag));
  check_peak(&csr, "diagonals far apart", "dia");
  assert_int_equal(plan->regions_count, 1);
  assert_string_equal(plan->regions[0].layout, "dia");
  assert_int_equal(plan->regions[0].nonzeros, 2 * ROWS);
  cb_assignment_free(assignment);
  cb_plan_free(plan);
  cb_csr_release(&csr);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(columns_far_more_than_nonzeros_take_no_memory),
      cmocka_unit_test(ordinary_and_narrow_matrices_stay_in_proportion),
      cmocka_unit_test(empty_rows_take_what_their_pointers_do),
      cmocka_unit_test(reading_a_wide_matrix_takes_no_more_than_its_text),
      cmocka_unit_test(diagonals_far_apart_are_found),
  };
  omp_set_num_threads(2);
  return cmocka_run_group_tests_name("memory in proportion to the matrix", tests, NULL, NULL);
}
