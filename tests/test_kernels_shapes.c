// SPDX-License-Identifier: Apache-2.0
/* Every shape with every extreme of the options and with every recipe, through analysis, generation and the host
 * execution under the sanitizers. The types, values as data and fixed ones, and the forms y = Ax, y += Ax and
 * y = αAx + βy take turns, so that every extreme and every recipe meets each combination of them, and so does every
 * shape; what the values are takes turns, too.
 *
 * clang compiles most, in half the time of g++, which takes every eighth shape.
 *
 * CBGEN_SHAPES_ONLY=TEXT runs the kernels whose name holds TEXT; CBGEN_SHAPES_SEMIRING=NAME runs all in a semiring. */
#include "kernels.h"
#include "recipes.h"

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

/* The variant has the number v. Ten shapes or variants in a row meet each type with each kind of values; the next
 * ten meet them with another form. */
static void add_one(struct kernel_batch *batch, int shape, const char *variant, int v) {
  static const char *const forms[] = {"ax", "add", "axpby"}, *const values[] = {"uniform",  "signed",
                                                                                "integers", "ones",
                                                                                "tenths",   "single"};
  const char *only = getenv("CBGEN_SHAPES_ONLY"), *semiring = getenv("CBGEN_SHAPES_SEMIRING");
  struct cb_diag diag = {0};
  struct cb_options options;
  char text[SETTINGS + 96], matrix[160];
  struct kernel *kernel = next_kernel(batch);
  const int number = shape + v, round = shape / (2 * CB_PRECISION_COUNT) + v / (2 * CB_PRECISION_COUNT);
  snprintf(text, sizeof text, "%s type=%s values=%s form=%s%s%s", variant,
           cb_precision_names[number % CB_PRECISION_COUNT], number % 2 ? "fixed" : "data", forms[round % 3],
           semiring ? " atomics=off semiring=" : "", semiring ? semiring : "");
  snprintf(matrix, sizeof matrix, "%s,values=%s,seed=%d", shapes[shape], values[(shape + 5 * v) / 2 % 6], number);
  snprintf(kernel->name, sizeof kernel->name, "%.120s %.130s", matrix, text);
  if (only && !strstr(kernel->name, only)) return;
  cb_options_default(&options);
  set_options(&options, text);
  if (cb_matrix_generate(&kernel->csr, matrix, &diag)) fail_msg("%s: %s", matrix, diag.message);
  add_kernel(batch, &options);
}

/* As it is, and, for every other shape, with its layout's options crossed, each time in another way. Returns whether it
 * was refused as it is. */
static int add_recipe(struct kernel_batch *batch, int shape, int number, int v) {
  const struct cb_recipe *recipe = cb_recipe_at(number);
  const int before = batch->refused;
  char settings[SETTINGS];
  cross_settings(settings, recipe, 0);
  add_one(batch, shape, settings, v);
  const int refused = batch->refused - before;
  if ((shape + number) % 2 || !layout_of_recipe(recipe)) return refused;
  cross_settings(settings, recipe, 1 + shape / 2);
  add_one(batch, shape, settings, v);
  return refused;
}

/* All listed settings, and every recipe; `refused` counts for each recipe the shapes that it refused. */
static void add_shape(struct kernel_batch *batch, int shape, int refused[RECIPES]) {
  char settings[SETTINGS];
  int v = 0;
  for (int l = 0; cb_layout_table[l]; l++)
    for (int i = 0; listed_settings(settings, cb_layout_table[l], i); i++) add_one(batch, shape, settings, v++);
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
  const int failures = run_shapes(fast_compiler(), 0, refused);
  assert_int_equal(failures + run_shapes(getenv("CXX") ? NULL : "g++", 1, refused), 0);
  if (getenv("CBGEN_SHAPES_ONLY")) return;
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
