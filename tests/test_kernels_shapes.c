// SPDX-License-Identifier: Apache-2.0
/* Every shape with every recipe and with half of the extremes of the options, each of which meets half of the shapes,
 * through analysis, generation and the host execution under the sanitizers. Recipe, type, form and values as data or
 * fixed take turns so that every two of their levels meet in a kernel that was executed, which is checked
 * (combinations.h); with the extremes of the options, types, values and forms take turns, and so does what the values
 * are.
 *
 * CBGEN_TEST_ALL=1 runs every recipe with every type, form and kind of values, and every extreme, on every shape:
 * hours, once.
 *
 * clang compiles most, in half the time of g++, which takes every eighth shape.
 *
 * CBGEN_SHAPES_ONLY=TEXT runs the kernels whose name holds TEXT. */
#include "combinations.h"
#include "kernels.h"

static const char *const shapes[] = {
    /* nothing, or nearly */
    "empty,rows=0,cols=0",
    "empty,rows=0,cols=7",
    "empty,rows=7,cols=0",
    "empty,rows=1,cols=1",
    "empty,rows=100,cols=70",
    "diagonal,n=1",
    "one_row,cols=1",
    "one_row,cols=17",
    "one_row,cols=1000",
    "one_column,rows=17",
    "one_column,rows=1000",
    "dense_row,n=300,row=150",
    "dense_row,n=129,row=128",
    "dense_column,n=300,col=299",
    "arrow,n=200,width=3",
    /* one below, at and above the sizes of panels and thread blocks */
    "diagonal,n=15",
    "diagonal,n=16",
    "diagonal,n=17",
    "random,rows=127,cols=129,density=0.06",
    "random,rows=128,cols=128,density=0.06",
    "random,rows=129,cols=127,density=0.06",
    "random,rows=255,cols=31,density=0.1",
    "random,rows=257,cols=33,density=0.1",
    /* sub-blocks with exactly so many nonzeros */
    "random_exact,block_nnz=1",
    "random_exact,block_nnz=7",
    "random_exact,block_nnz=8",
    "random_exact,block_nnz=9",
    "random_exact,block_nnz=31",
    "random_exact,block_nnz=32",
    "random_exact,block_nnz=33",
    "random_exact,block_nnz=127,blocks_r=3",
    "random_exact,block_nnz=128,blocks_r=3",
    "random_exact,block_nnz=129,blocks_r=3",
    "random_exact,block_nnz=255,blocks_r=3",
    "random_exact,block_nnz=256,blocks_r=3",
    "random_exact,block_nnz=255,blocks_r=3,cut_rows=5,cut_cols=3",
    "random_exact,block_nnz=40,blocks_r=9,blocks_c=2,cut_rows=1,cut_cols=15",
    /* every density */
    "random,rows=150,cols=170,density=0.001",
    "random,rows=150,cols=170,density=0.01",
    "random,rows=150,cols=170,density=0.1",
    "random,rows=70,cols=90,density=0.3",
    "random,rows=70,cols=90,density=0.6",
    "random,rows=70,cols=90,density=0.95",
    "dense,rows=50,cols=40",
    /* structures */
    "tridiagonal,n=130",
    "stencil5,n=12",
    "stencil9,n=9",
    "stencil7,n=5",
    "stencil27,n=4",
    "fe3,n=3",
    "road,n=16",
    "rmat,scale=8,edge_factor=6",
    "diagonals,n=140,count=7,spread=60,fill=0.7",
    "band,n=200,half=30,per_row=9",
    "band,n=256,half=20,per_row=9", /* whole thread blocks of equal runs */
    "uniform,n=180,per_row=5",
    "powerlaw,rows=150,cols=400,max=350,min=0",
    "block,blocks_r=20,blocks_c=20,r=3,c=3,per_row=4,fill=0.9",
    "hypersparse,rows=900,cols=900,keep=0.02,per_row=3",
    "checker,rows=50,cols=60",
    "upper,n=60",
    "explicit_zeros,rows=90,cols=90,density=0.1,zeros=0.4",
    "staircase,n=70",
    "long_row,rows=120,cols=3000,per_row=3,long_rows=2,long_length=2500",
};

/* Extremes of the thresholds, and every stage switched off or forced. */
enum { SHAPES = sizeof shapes / sizeof *shapes, RECIPES = 64 };

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
           cb_precision_names[number % CB_PRECISION_COUNT], number % 2 ? "fixed" : "data", forms[round % 3]);
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
    combination_settings(settings, &cover.factors, row);
    const int good = add_settings(batch, shape, settings, v);
    if (good) pairs_see(&cover.pairs, row);
    taken += good;
  } while (next_combination(&cover.factors, 1, row));
  return !taken;
}

/* As it is, and, for every other shape, with its layout's options crossed, each time in another way. Returns whether it
 * was refused as it is. */
static int add_recipe(struct kernel_batch *batch, int shape, int number, int v) {
  char settings[SETTINGS];
  const struct cb_recipe *recipe = cb_recipe_at(number);
  const int refused = tests_all_combinations() ? add_all(batch, shape, number, v) : add_row(batch, shape, number, v);
  if ((shape + number) % 2 || !layout_of_recipe(recipe)) return refused;
  cross_settings(settings, recipe, 1 + shape / 2);
  add_variant(batch, shape, settings, v);
  return refused;
}

/* Listed settings meet every second shape, types and kinds of values in turn on these, too. */
static int is_met(int shape, int v) {
  return tests_all_combinations() || (shape + v) / 2 % 2;
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

/* Every eighth shape, or all others. */
static int run_shapes(const char *compiler, int eighth, int refused[RECIPES]) {
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
    if ((shape % 8 == 7) == eighth) add_shape(&batch, shape, refused);
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
  assert_int_equal(failures + run_shapes(getenv("CXX") ? NULL : "g++", 1, refused), 0);
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
