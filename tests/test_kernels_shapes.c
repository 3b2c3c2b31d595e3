// SPDX-License-Identifier: Apache-2.0
/* Every shape with every recipe and with a sixth of the extremes of the options, each of which meets a sixth of the
 * shapes, through analysis, generation and the host execution under the sanitizers. Recipe, type, form and values as
 * data or fixed take turns so that every two of their levels meet in a kernel that was executed, which is checked
 * (combinations.h); with the extremes of the options, types, values and forms take turns, and so does what the values
 * are.
 *
 * CBGEN_TEST_ALL=1 runs every recipe with every type, form and kind of values, and every extreme, on every shape:
 * hours, once.
 *
 * clang compiles most, in half the time of g++, which takes every sixteenth shape.
 *
 * CBGEN_SHAPES_ONLY=TEXT runs the kernels whose name holds TEXT. */
#include "combinations.h"
#include "kernels.h"
#include "shapes.h"

/* Extremes of the thresholds, and every stage switched off or forced. */
enum { SHAPES = sizeof shapes / sizeof *shapes, RECIPES = 64, CROSSED = 4 };

/* With these settings; `v` says what the values are. Returns whether it was taken. */
static int add_settings(struct kernel_batch *batch, int shape, const char *settings, int v) {
  static const char *const values[] = {"uniform", "signed", "integers", "ones", "tenths", "single"};
  const char *only = getenv("CBGEN_SHAPES_ONLY");
  struct cb_diag diag = {0};
  struct cb_options options;
  char matrix[160];
  struct kernel *kernel = next_kernel(batch);
  const int refused = batch->refused;
  snprintf(matrix, sizeof matrix, "%s,values=%s,seed=%d", shapes[shape], values[(shape + 5 * v) / 2 % 6], shape + v);
  snprintf(kernel->name, sizeof kernel->name, "%.120s %.130s", matrix, settings);
  if (only && !strstr(kernel->name, only)) return 0;
  cb_options_default(&options);
  set_options(&options, settings);
  if (cb_matrix_generate(&kernel->csr, matrix, &diag)) fail_msg("%s: %s", matrix, diag.message);
  add_kernel(batch, &options);
  return batch->refused == refused;
}

/* The variant has the number v. Shapes or variants in a row meet each type with each kind of values; the next
 * as many meet them with another form. */
static void add_variant(struct kernel_batch *batch, int shape, const char *variant, int v) {
  static const char *const forms[] = {"ax", "add", "axpby"};
  char text[SETTINGS + 64];
  const int number = shape + v, round = shape / (2 * CB_PRECISION_COUNT) + v / (2 * CB_PRECISION_COUNT);
  snprintf(text, sizeof text, "%s type=%s values=%s form=%s", variant,
           cb_precision_names[number % CB_PRECISION_COUNT],
           (number + number / CB_PRECISION_COUNT) % 2 ? "fixed" : "data", forms[round % 3]);
  add_settings(batch, shape, text, v);
}

/* Rows in which all pairs occur, where each recipe is among its own, and what has occurred of them. */
static struct {
  struct factors factors;
  combination *rows;
  int count, next[RECIPES];
  struct pairs pairs;
} cover;

/* The next of the recipe's rows that no shape has taken; after the last one, the first. */
static const int *row_of_recipe(int number) {
  do cover.next[number] = (cover.next[number] + 1) % cover.count;
  while (cover.rows[cover.next[number]][0] != number);
  return cover.rows[cover.next[number]];
}

/* With one row of its own; one that is refused stays for the next shape. Returns whether it was. */
static int add_row(struct kernel_batch *batch, int shape, int number, int v) {
  char settings[SETTINGS];
  const int before = cover.next[number], *row = row_of_recipe(number);
  combination_settings(settings, &cover.factors, row);
  if (add_settings(batch, shape, settings, v)) {
    pairs_see(&cover.pairs, row);
    return 0;
  }
  cover.next[number] = before;
  return 1;
}

/* With all combinations. Returns whether all were refused. */
static int add_all(struct kernel_batch *batch, int shape, int number, int v) {
  combination row = {number};
  char settings[SETTINGS];
  int taken = 0;
  do {
    if (!combination_is_possible(&cover.factors, row)) continue;
    combination_settings(settings, &cover.factors, row);
    const int good = add_settings(batch, shape, settings, v);
    if (good) pairs_see(&cover.pairs, row);
    taken += good;
  } while (next_combination(&cover.factors, 1, row));
  return !taken;
}

/* As it is, and, for every fourth shape, with its layout's options crossed, each time in another way, so that every
 * value of every option occurs. Returns whether it was refused as it is. */
static int add_recipe(struct kernel_batch *batch, int shape, int number, int v) {
  char settings[SETTINGS];
  const struct cb_recipe *recipe = cb_recipe_at(number);
  const int refused = tests_all_combinations() ? add_all(batch, shape, number, v) : add_row(batch, shape, number, v);
  if (!layout_of_recipe(recipe)) return refused;
  const int every = tests_all_combinations() ? 2 : CROSSED;
  if ((shape + number) % every) return refused;
  assert_true(crossings_of(recipe) <= SHAPES / CROSSED);
  cross_settings(settings, recipe, 1 + shape / every);
  add_variant(batch, shape, settings, v + (every - 1) * (shape / every)); /* meets all types */
  return refused;
}

/* Listed settings meet two shapes of twelve, types and kinds of values in turn on these, too. */
static int is_met(int shape, int v) {
  return tests_all_combinations() || (shape + v) / 2 % 6 == 1;
}

/* The listed settings whose turn it is, and every recipe; `refused` counts for each recipe the shapes that it
 * refused. */
static void add_shape(struct kernel_batch *batch, int shape, int refused[RECIPES]) {
  char settings[SETTINGS];
  int v = 0;
  for (int l = 0; cb_layout_table[l]; l++)
    for (int i = 0; listed_settings(settings, cb_layout_table[l], i); i++, v++)
      if (is_met(shape, v)) add_variant(batch, shape, settings, v);
  for (int number = 0; cb_recipe_at(number); number++) {
    assert_true(number < RECIPES);
    refused[number] += add_recipe(batch, shape, number, v + number);
  }
}

/* Every sixteenth shape, or all others. */
static int run_shapes(const char *compiler, int sixteenth, int refused[RECIPES]) {
  struct cb_verify_options options;
  struct kernel_batch batch;
  cb_verify_options_default(&options);
  options.host.compiler = compiler;
  options.host.optimize = 0;
  options.host.debug = 0;
  options.host.batch = 128;
  options.orders = 2;
  open_batch(&batch, &options);
  for (int shape = 0; shape < SHAPES; shape++)
    if ((shape % 16 == 7) == sixteenth) add_shape(&batch, shape, refused);
  close_batch(&batch);
  return batch.failures;
}

static void test_shapes(void **state) {
  int refused[RECIPES] = {0}, all = 0;
  (void)state;
  factors_of_kernels(&cover.factors);
  cover.count = covering_combinations(&cover.factors, &cover.rows);
  pairs_init(&cover.pairs, &cover.factors);
  const int failures = run_shapes(fast_compiler(), 0, refused);
  assert_int_equal(failures + run_shapes(usual_compiler(), 1, refused), 0);
  const int left = cover.pairs.left;
  pairs_release(&cover.pairs);
  free(cover.rows);
  if (getenv("CBGEN_SHAPES_ONLY")) return;
  assert_int_equal(left, 0); /* every two levels have met */
  for (int number = 0; number < RECIPES; number++) {
    all += refused[number];
    if (refused[number])
      print_message("%s refuses %d of %d shapes\n", cb_recipe_at(number)->name, refused[number], SHAPES);
    assert_true(3 * refused[number] < 2 * SHAPES);
  }
  assert_true(all > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes)};
  return cmocka_run_group_tests_name("shapes", tests, NULL, NULL);
}
