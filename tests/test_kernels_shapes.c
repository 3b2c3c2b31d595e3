// SPDX-License-Identifier: Apache-2.0
/* Every shape with every extreme of the options and with every recipe, through analysis, generation and the host
 * execution under the sanitizers. The types, values as data and fixed ones, and the forms y = Ax, y += Ax and
 * y = αAx + βy take turns, so that every extreme and every recipe meets each combination of them, and so does every
 * shape; what the values are takes turns, too.
 *
 * clang compiles most, in half the time of g++, which takes every eighth shape.
 *
 * CBGEN_SHAPES_ONLY=TEXT runs the kernels whose name holds TEXT. */
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
static const char *const variants[] = {
    "th1=32",                    /* the defaults */
    "th1=257 th2=256",           /* all COO */
    "th1=0 th2=256",             /* all CSR */
    "th1=0 th2=0 aggregate=off", /* all Dense */
    "th1=0 th2=0 aggregate=on",
    "th1=9 th2=20 aggregate=on intra=off",
    "th1=2 th2=250 aggregate=off team=1 unit-budget=16",
    "th0=100 super-sparse=1 team=8",
    "th0=0 super-sparse=257 team=2 unit-budget=40 bake-limit=0",
    "bake-limit=16384 intra=on team=1",
    "balance=heap",
    "balance=heap atomics=on th1=20 th2=40",
    "atomics=on unit-budget=20 team=4",
    "recipe=cb-long long-row=20 bake-limit=0",
    "recipe=cb-long long-row=1 th1=5 th2=30 balance=heap",
    "recipe=blocks block-size=3x3 block-fill=1 bake-limit=0",
    "recipe=merge merge-items=9 merge-piece=256 merge-pad=off bake-limit=0",
    "recipe=phases phase-columns=40 phase-set=32 phase-row=1",
    "recipe=phases phase-columns=9000 phase-row=2 phase-threads=256 phase-blocks=2 phase-batch=3 bake-limit=0",
};

enum { SHAPES = sizeof shapes / sizeof *shapes, VARIANTS = sizeof variants / sizeof *variants, RECIPES = 64 };

/* The variant has the number v. Ten shapes or variants in a row meet each type with each kind of values; the next
 * ten meet them with another form. */
static void add_one(struct kernel_batch *batch, int shape, const char *variant, int v) {
  static const char *const forms[] = {"ax", "add", "axpby"}, *const values[] = {"uniform",  "signed",
                                                                                "integers", "ones",
                                                                                "tenths",   "single"};
  const char *only = getenv("CBGEN_SHAPES_ONLY");
  struct cb_diag diag = {0};
  struct cb_options options;
  char text[160], matrix[160];
  struct kernel *kernel = next_kernel(batch);
  const int number = shape + v, round = shape / (2 * CB_PRECISION_COUNT) + v / (2 * CB_PRECISION_COUNT);
  snprintf(text, sizeof text, "%s type=%s values=%s form=%s", variant,
           cb_precision_names[number % CB_PRECISION_COUNT], number % 2 ? "fixed" : "data", forms[round % 3]);
  snprintf(matrix, sizeof matrix, "%s,values=%s,seed=%d", shapes[shape], values[(shape + 5 * v) / 2 % 6], number);
  snprintf(kernel->name, sizeof kernel->name, "%.120s %.130s", matrix, text);
  if (only && !strstr(kernel->name, only)) return;
  cb_options_default(&options);
  set_options(&options, text);
  if (cb_matrix_generate(&kernel->csr, matrix, &diag)) fail_msg("%s: %s", matrix, diag.message);
  add_kernel(batch, &options);
}

/* Every variant and every recipe; `refused` counts for each recipe the shapes that it refused. */
static void add_shape(struct kernel_batch *batch, int shape, int refused[RECIPES]) {
  for (int v = 0; v < VARIANTS; v++) add_one(batch, shape, variants[v], v);
  for (int recipe = 0; cb_recipe_table[recipe].name; recipe++) {
    const int before = batch->refused;
    char variant[96];
    assert_true(recipe < RECIPES);
    snprintf(variant, sizeof variant, "recipe=%s block-fill=1 hot-columns=20 phase-columns=50",
             cb_recipe_table[recipe].name);
    add_one(batch, shape, variant, VARIANTS + recipe);
    refused[recipe] += batch->refused - before;
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
  for (int recipe = 0; cb_recipe_table[recipe].name; recipe++) {
    all += refused[recipe];
    if (refused[recipe])
      print_message("%s refuses %d of %d shapes\n", cb_recipe_table[recipe].name, refused[recipe], SHAPES);
  }
  for (int recipe = 0; cb_recipe_table[recipe].name; recipe++) assert_true(3 * refused[recipe] < 2 * SHAPES);
  assert_true(all > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes)};
  return cmocka_run_group_tests_name("shapes", tests, NULL, NULL);
}
