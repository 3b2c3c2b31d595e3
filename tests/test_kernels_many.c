// SPDX-License-Identifier: Apache-2.0
/* Kernels for several vectors: every recipe with types, forms, kinds of values and numbers of vectors, of which every
 * two levels meet in a kernel that was executed, over the shapes in turn. Each is checked with X and Y by rows and by
 * columns (verify.c): whole launches and rests, gaps and odd addresses, NaN and infinity in every other vector.
 *
 * CBGEN_TEST_ALL=1 runs all combinations, each on three shapes, with 32 vectors in place of 16. */
#include "combinations.h"
#include "kernels.h"
#include "shapes.h"

enum { SHAPES = sizeof shapes / sizeof *shapes, MOST_TRIES = 24 };

/* How many, and how they are dealt out. */
static const char *const numbers[] = {"vectors=2 copy-x=on", "vectors=8", "vectors=16 vector-threads=4 copy-x=on",
                                      "vectors=5 vector-threads=2", "vectors=8 vector-threads=1 vector-blocks=1 copy-x=on"};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* Those of kernels without the semirings, which take one vector, and how many vectors behind them. */
static void factors_of_many(struct factors *factors) {
  factors_of_kernels(factors);
  assert_string_equal(cb_option_at(factors->option[factors->count - 1])->name, "semiring");
  factors->levels[factors->count - 1] = NUMBERS;
  factors->levels[factors->type] = CB_PRECISION_C128; /* complex ones, the last, have no such kernels */
}

static void settings_of(char settings[SETTINGS], const struct factors *factors, const combination row) {
  struct factors words = *factors;
  words.count--;
  combination_settings(settings, &words, row);
  const size_t length = strlen(settings);
  snprintf(settings + length, SETTINGS - length, " %s", numbers[row[words.count]]);
  char *const most = tests_all_combinations() ? strstr(settings, "vectors=16") : NULL;
  if (most) memcpy(most, "vectors=32", strlen("vectors=32")); /* they take twice as long to execute */
}

/* Returns whether the recipe took the shape. */
static int add(struct kernel_batch *batch, int shape, const char *settings) {
  struct cb_diag diag = {0};
  struct cb_options options;
  char matrix[160];
  struct kernel *kernel = next_kernel(batch);
  const int refused = batch->refused;
  snprintf(matrix, sizeof matrix, "%s,values=%s,seed=%d", shapes[shape], shape % 3 ? "signed" : "integers", shape);
  snprintf(kernel->name, sizeof kernel->name, "%.120s %.130s", matrix, settings);
  cb_options_default(&options);
  set_options(&options, settings);
  if (cb_matrix_generate(&kernel->csr, matrix, &diag)) fail_msg("%s: %s", matrix, diag.message);
  add_kernel(batch, &options);
  return batch->refused == refused;
}

/* On the next shape that the recipe takes. */
static int add_row(struct kernel_batch *batch, const struct factors *factors, const combination row, int *shape) {
  char settings[SETTINGS];
  settings_of(settings, factors, row);
  for (int tries = 0; tries < MOST_TRIES; tries++) {
    *shape = (*shape + 7) % SHAPES;
    if (add(batch, *shape, settings)) return 1;
  }
  return 0;
}

static void test_many(void **state) {
  struct cb_verify_options options;
  struct kernel_batch batch;
  struct factors factors;
  struct pairs pairs;
  combination *rows, all = {0};
  int shape = 0;
  (void)state;
  cb_verify_options_default(&options);
  options.host.compiler = fast_compiler();
  options.host.optimize = 0;
  options.host.debug = 0;
  options.host.batch = 128;
  options.orders = 2;
  factors_of_many(&factors);
  pairs_init(&pairs, &factors);
  open_batch(&batch, &options);
  const int count = covering_combinations(&factors, &rows);
  for (int i = 0; i < count; i++)
    if (add_row(&batch, &factors, rows[i], &shape)) pairs_see(&pairs, rows[i]);
  if (tests_all_combinations())
    do
      for (int i = 0; i < 3; i++) add_row(&batch, &factors, all, &shape);
    while (next_combination(&factors, 0, all));
  close_batch(&batch);
  assert_int_equal(batch.failures, 0);
  assert_int_equal(pairs.left, 0);
  pairs_release(&pairs);
  free(rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_many)};
  return cmocka_run_group_tests_name("kernels_many", tests, NULL, NULL);
}
