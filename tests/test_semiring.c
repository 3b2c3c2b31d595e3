// SPDX-License-Identifier: Apache-2.0
/* Products over other semirings than plus-times: every recipe against the oracle, what the text and the data have and
 * lack, what is refused, and graphs that a product walks through, against plain C.
 *
 * CBGEN_SEMIRING_ALL=1 executes every recipe with every type, form, kind of values and semiring on all matrices. Else
 * these take turns, so that each pair of them meets. CBGEN_SHAPES_SEMIRING of test_kernels_shapes has more shapes. */
#include "kernels.h"
#include "layouts.h"
#include "recipes.h"

#include <math.h>

enum { FORMS = 3 };
static const char *const forms[FORMS] = {"ax", "add", "axpby"};
static const char *const others[] = {"min-plus", "max-times", "or-and"};
enum { OTHERS = sizeof others / sizeof *others };

/* ---- every recipe */

static const char *const matrices[] = {
    "random,rows=70,cols=90,density=0.3",
    "diagonals,n=140,count=7,spread=60,fill=0.7",
    "explicit_zeros,rows=90,cols=90,density=0.1,zeros=0.4",
    "block,blocks_r=20,blocks_c=20,r=3,c=3,per_row=4,fill=0.9",
    "random_exact,block_nnz=200,blocks_r=3,cut_rows=5,cut_cols=3",
    "long_row,rows=120,cols=3000,per_row=3,long_rows=2,long_length=2500",
    "rmat,scale=8,edge_factor=6",
    "stencil7,n=6",
    "hypersparse,rows=900,cols=900,keep=0.02,per_row=3",
    "empty,rows=100,cols=70",
    "one_row,cols=1000",
    "kkt,n=6",
};
enum { MATRICES = sizeof matrices / sizeof *matrices };

/* What one kernel is asked for beside its recipe, by numbers in turn. */
struct wish {
  int matrix, type, form, fixed, semiring, values;
};

enum { REAL_TYPES = CB_PRECISION_C128 }; /* behind them are complex ones, which have plus-times alone */

static void add_wish(struct kernel_batch *batch, const char *recipe, struct wish wish) {
  static const char *const values[] = {"uniform", "signed", "integers", "ones", "tenths", "single"};
  struct cb_diag diag = {0};
  struct cb_options options;
  char text[SETTINGS + 96], matrix[160];
  struct kernel *kernel = next_kernel(batch);
  snprintf(text, sizeof text, "%s type=%s values=%s form=%s atomics=off semiring=%s", recipe,
           cb_precision_names[wish.type], wish.fixed ? "fixed" : "data", forms[wish.form], others[wish.semiring]);
  snprintf(matrix, sizeof matrix, "%s,values=%s,seed=%d", matrices[wish.matrix], values[wish.values % 6], wish.values);
  snprintf(kernel->name, sizeof kernel->name, "%.100s %.150s", matrix, text);
  set_options(&options, text);
  if (cb_matrix_generate(&kernel->csr, matrix, &diag)) fail_msg("%s: %s", matrix, diag.message);
  add_kernel(batch, &options);
}

/* The numbers' periods have no common divisor with each other, or are met in a later round: so pairs meet. */
static void add_in_turn(struct kernel_batch *batch, const char *recipe, int number) {
  for (int i = 0; i < 3; i++) {
    const int turn = 3 * number + i, round = turn / OTHERS;
    add_wish(batch, recipe,
             (struct wish){.matrix = (turn * 5 + round) % MATRICES,
                           .type = (turn + round) % REAL_TYPES,
                           .form = (turn + round + round / FORMS) % FORMS,
                           .fixed = (turn + turn / REAL_TYPES + round / 2) % 2,
                           .semiring = turn % OTHERS,
                           .values = turn + round});
  }
}

static void add_all(struct kernel_batch *batch, const char *recipe) {
  const int all = MATRICES * REAL_TYPES * FORMS * 2 * OTHERS;
  for (int i = 0; i < all; i++) {
    int rest = i;
    struct wish wish = {.values = i};
    wish.matrix = rest % MATRICES, rest /= MATRICES;
    wish.type = rest % REAL_TYPES, rest /= REAL_TYPES;
    wish.form = rest % FORMS, rest /= FORMS;
    wish.fixed = rest % 2, rest /= 2;
    wish.semiring = rest;
    add_wish(batch, recipe, wish);
  }
}

static void open_fast(struct kernel_batch *batch) {
  struct cb_verify_options options;
  fast_options(&options);
  options.host.batch = 128;
  open_batch(batch, &options);
}

static void every_recipe_multiplies_right(void **state) {
  struct kernel_batch batch;
  char settings[SETTINGS];
  (void)state;
  open_fast(&batch);
  for (int number = 0; next_settings(settings, number, 1); number++)
    if (getenv("CBGEN_SEMIRING_ALL"))
      add_all(&batch, settings);
    else
      add_in_turn(&batch, settings, number);
  close_batch(&batch);
  assert_int_equal(batch.failures, 0);
  assert_true(batch.done > 100 && batch.refused < batch.done);
}

/* y = y or A x makes 1 of what y holds there, if it is not 0. */
static void rows_without_nonzeros_are_joined_with_y(void **state) {
  const struct wish wish = {.matrix = 8 /* hypersparse */, .form = 1 /* add */, .semiring = 2 /* or-and */};
  const struct cb_recipe *recipe;
  struct kernel_batch batch;
  (void)state;
  open_fast(&batch);
  for (int i = 0; (recipe = cb_recipe_at(i)); i++) add_wish(&batch, settings_of_recipe(recipe), wish);
  close_batch(&batch);
  assert_int_equal(batch.failures, 0);
  assert_true(batch.refused < batch.done);
}

/* Whether the ordinary product's kernel has a second look at sums that are not finite, for places without a nonzero. */
static int has_padding(const char *matrix, const char *settings) {
  struct product product = product_of(matrix, settings);
  const int padded = has(&product, "is_finite");
  product_release(&product);
  return padded;
}

/* A recipe for a matrix with values of a third of all kinds: data, equal, coded, narrower ones. Returns whether there
 * are places without a nonzero that are multiplied. */
static int gather_values(struct gathered *gathered, const char *recipe, const char *matrix, int turn) {
  static const char *const values[] = {"uniform", "ones", "integers", "tenths", "single"};
  struct cb_diag diag = {0};
  char with[160], settings[SETTINGS + 96];
  if (plan_status_of(matrix, recipe, &diag)) return 0;
  for (int v = turn % 3; v < 10; v += 3) {
    snprintf(with, sizeof with, "%s,values=%s", matrix, values[v % 5]);
    snprintf(settings, sizeof settings, "%s values=%s form=%s type=%s semiring=%s", recipe, v / 5 ? "fixed" : "data",
             forms[(v + turn) % FORMS], (v + turn) % 2 ? "f32" : "f64", others[(v + turn / 2) % OTHERS]);
    gather(gathered, with, settings);
  }
  return has_padding(matrix, recipe);
}

static void padding_changes_nothing(void **state) {
  static const char *const with_holes[] = {"diagonals,n=300,count=5,spread=40,fill=0.8",
                                           "block,blocks_r=30,blocks_c=30,r=3,c=3,per_row=4,fill=0.9",
                                           "random,rows=100,cols=128,density=0.8"};
  struct gathered gathered = {0};
  const struct cb_recipe *recipe;
  int padded = 0, turn = 0;
  (void)state;
  for (int number = 0; (recipe = cb_recipe_at(number)); number++) {
    char settings[SETTINGS];
    snprintf(settings, sizeof settings, "%s", settings_of_recipe(recipe));
    padded += gather_values(&gathered, settings, example_of(recipe), turn++);
    padded += gather_values(&gathered, settings, with_holes[number % 3], turn++);
    padded += gather_values(&gathered, settings, with_holes[(number + 1) % 3], turn++);
  }
  assert_true(padded > 6);
  verify_gathered(&gathered);
}

/* ---- texts and data */

static void texts_say_what_they_do(void **state) {
  static const struct words cases[] = {
      {"diagonals,n=300,count=5,spread=40,fill=0.8",
       "recipe=dia dia-fill=20 semiring=min-plus form=ax",
       {"fmin(sum, term)", "total(sum)", "value + x"},
       {"is_finite", "presence", "fma("}},
      {"diagonals,n=300,count=5,spread=40,fill=0.8",
       "recipe=dia dia-fill=20 form=ax",
       {"is_finite", "presence"},
       {"fmin", "total", "not_a_number"}},
      {"kkt,n=9", "recipe=slices semiring=or-and form=ax", {"!= 0 && x != 0"}, {"is_finite", "presence", "fmin"}},
      {"kkt,n=9",
       "recipe=slices semiring=max-times form=add",
       {"fmax(sum, term)", "-infinity<sum_t>()"},
       {"is_finite"}},
      {"stencil5,n=20",
       "recipe=sell semiring=min-plus",
       {"alpha is 1", "vectors.beta == 0 ? total(sum)"},
       {"vectors.alpha"}},
  };
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = product_of(cases[c].matrix, cases[c].settings);
    for (int i = 0; cases[c].has[i]; i++)
      if (!has_anywhere(&product, cases[c].has[i])) fail_msg("%s lacks '%s'", cases[c].settings, cases[c].has[i]);
    for (int i = 0; cases[c].lacks[i]; i++)
      if (has(&product, cases[c].lacks[i])) fail_msg("%s has '%s'", cases[c].settings, cases[c].lacks[i]);
    product_release(&product);
  }
}

static const char with_holes[] = "diagonals,n=300,count=5,spread=40,fill=0.8";

/* Slots hold the same but for padding: NaNs with all bits set. */
static void padding_is_nan(void **state) {
  struct product plain = product_of(with_holes, "recipe=dia dia-fill=20"),
                 other = product_of(with_holes, "recipe=dia dia-fill=20 semiring=min-plus");
  int64_t absent = 0;
  (void)state;
  const int64_t slots = array_of(&plain, "values")->count;
  assert_int_equal(array_of(&other, "values")->count, slots);
  assert_null(array_of(&other, "presence"));
  for (int64_t slot = 0; slot < slots; slot++) {
    const double value = value_at(&other, slot);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (!isnan(value))
      assert_true(value == value_at(&plain, slot));
    else
      assert_true(bits == UINT64_MAX && value_at(&plain, slot) == 0);
    absent += isnan(value);
  }
  assert_int_equal(slots - absent, plain.csr->nnz);
  check_new_values(&other);
  product_release(&plain);
  product_release(&other);
}

/* A zero of the matrix is a value like others: what pads has a code of its own. */
static void a_zero_is_no_padding(void **state) {
  static const char *const semirings[] = {"min-plus", "max-times"};
  (void)state;
  for (size_t s = 0; s < sizeof semirings / sizeof *semirings; s++) {
    char settings[96];
    snprintf(settings, sizeof settings, "recipe=blocks block-fill=1 values=fixed semiring=%s", semirings[s]);
    struct product product = product_of("explicit_zeros,rows=90,cols=90,density=0.3,zeros=0.4,values=ones", settings);
    assert_string_equal(fact(&product, "values"), "coded 3"); /* NaN, 0, 1 */
    product_release(&product);
  }
}

static void plans_say_their_semiring(void **state) {
  (void)state;
  for (int s = 0; s < CB_SEMIRINGS; s++) {
    struct cb_diag diag = {0};
    struct cb_text json = {0};
    struct cb_plan *read;
    char settings[64], words[64];
    snprintf(settings, sizeof settings, "recipe=sell semiring=%s", cb_semiring_names[s]);
    snprintf(words, sizeof words, "(semiring %s) ", cb_semiring_names[s]);
    struct product product = product_of("stencil5,n=9", settings);
    assert_int_equal(strstr(product.plan->line, words) != NULL, s != CB_PLUS_TIMES);
    assert_ok(cb_plan_json(product.plan, &json, &diag));
    assert_int_equal(strstr(cb_text_string(&json), "semiring") != NULL, s != CB_PLUS_TIMES);
    assert_ok(cb_plan_parse(&read, cb_text_string(&json), &diag));
    assert_int_equal(read->semiring, s);
    cb_plan_free(read);
    cb_text_release(&json);
    product_release(&product);
  }
}

static void atomics_are_refused(void **state) {
  struct cb_diag diag = {0};
  (void)state;
  assert_int_equal(plan_status_of("stencil5,n=9", "recipe=cb atomics=on semiring=min-plus", &diag), CB_ERR_ARGUMENT);
  assert_non_null(strstr(diag.message, "'atomics' must be off with semiring 'min-plus'"));
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  assert_true(check_allocations(matrix_of(with_holes), "recipe=dia dia-fill=20 values=fixed semiring=min-plus") > 10);
}

/* ---- what a kernel cannot do without */

static void verify_sees_what_is_left_out(void **state) {
  static const struct change changes[] = {
      {"uniform,n=300,per_row=5", "recipe=sell form=ax semiring=min-plus", "fmin(", "fmax("},
      {"uniform,n=300,per_row=5", "recipe=sell form=ax semiring=min-plus", "value + x", "value - x"},
      {"uniform,n=300,per_row=5", "recipe=sell form=ax semiring=max-times", "value * x", "value * 2 * x"},
      {"staircase,n=60", "recipe=sell form=ax semiring=min-plus", "infinity<sum_t>()", "sum_t(7)"},
      {"staircase,n=60", "recipe=sell form=ax semiring=max-times", "-infinity", "infinity"},
      {"uniform,n=300,per_row=5", "recipe=sell form=add semiring=min-plus", "add(sum_t(vectors.y[row]), total(sum))",
       "total(sum)"},
      {"uniform,n=300,per_row=5", "recipe=sell form=axpby semiring=or-and", "vectors.beta == 0", "vectors.beta == 1"},
      {"uniform,n=300,per_row=5", "recipe=sell form=ax semiring=or-and", "value != 0 && x != 0",
       "value != 0 || x != 0"},
      {"stencil7,n=6,values=ones", "recipe=dia values=fixed form=ax semiring=max-times", "return not_a_number<sum_t>()",
       "return 0"},
      {"block,blocks_r=30,blocks_c=30,r=3,c=3,per_row=4", "recipe=blocks form=ax semiring=min-plus", "sums[i] = zero()",
       "sums[i] = fmin(sum_t(0), zero())"},
  };
  struct gathered gathered = {0};
  (void)gathered;
  (void)state;
  for (size_t c = 0; c < sizeof changes / sizeof *changes; c++) {
    struct change change = changes[c];
    char recipe[32];
    sscanf(change.settings, "recipe=%31s", recipe);
    change.settings += strlen("recipe=") + strlen(recipe);
    check_changes_are_seen(&change, 1, recipe);
  }
}

/* ---- graphs */

/* One kernel that is multiplied with again and again, as double. */
struct walk {
  struct product product;
  struct cb_host *host;
  struct cb_host_program *program;
};

static struct walk start_walk(const char *matrix, const char *settings) {
  struct walk walk = {.product = product_of(matrix, settings)};
  struct cb_diag diag = {0};
  struct cb_host_options options;
  cb_host_options_default(&options);
  options.optimize = options.debug = 0;
  options.compiler = fast_compiler();
  walk.host = kernel_host(&options);
  const struct cb_host_kernel kernel = {.text = walk.product.source.text + walk.product.source.body,
                                        .symbol = "test",
                                        .vector_type = CB_F64,
                                        .form = walk.product.plan->form};
  assert_ok(cb_host_build(&walk.program, walk.host, &kernel, 1, &diag));
  return walk;
}

/* y = y ⊕ A ⊗ x */
static void step(struct walk *walk, const double *x, const double *y, double *result) {
  struct cb_diag diag = {0};
  const int64_t bytes = walk->product.csr->rows * (int64_t)sizeof(double);
  struct cb_host_job job = {.data = walk->product.blob.bytes,
                            .data_bytes = walk->product.blob.length,
                            .x = x,
                            .y = y,
                            .x_bytes = bytes,
                            .y_bytes = bytes,
                            .alpha = 1,
                            .beta = 1,
                            .products = 1,
                            .result = result};
  assert_ok(cb_host_run(walk->program, &job, 1, &diag));
  if (job.outcome != CB_HOST_DONE) fail_msg("%s", job.message);
}

static void end_walk(struct walk *walk) {
  cb_host_program_free(walk->program);
  product_release(&walk->product);
}

/* From `start` to the fixed point of y = y ⊕ A ⊗ y; returns the number of products. */
static int walk_until_still(struct walk *walk, double *y) {
  const size_t rows = (size_t)walk->product.csr->rows;
  double *next = malloc(rows * sizeof *next);
  int products = 0;
  assert_non_null(next);
  for (int still = 0; !still && products < (int)rows; products++) {
    step(walk, y, y, next);
    still = !memcmp(y, next, rows * sizeof *y);
    memcpy(y, next, rows * sizeof *y);
  }
  free(next);
  return products;
}

/* Bellman and Ford's way, edge by edge: a nonzero (i, j) is an edge from j to i. */
static void relax_all(const struct cb_csr *csr, double *length) {
  for (int changed = 1; changed;) {
    changed = 0;
    for (int64_t i = 0; i < csr->rows; i++)
      for (int64_t k = cb_csr_row(csr, i); k < cb_csr_row(csr, i + 1); k++) {
        const double through = csr->values[k] + length[csr->col_idx[k]];
        if (through < length[i]) length[i] = through, changed = 1;
      }
  }
}

static void min_plus_finds_shortest_paths(void **state) {
  static const char *const recipes[] = {"sell", "merge", "cb", "hot hot-columns=20", "auto"};
  (void)state;
  for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++) {
    char settings[96];
    snprintf(settings, sizeof settings, "recipe=%s form=axpby semiring=min-plus", recipes[r]);
    struct walk walk = start_walk("rmat,scale=7,edge_factor=4,values=uniform", settings);
    const int64_t rows = walk.product.csr->rows;
    double length[128], expected[128];
    int reached = 0;
    assert_int_equal(rows, 128);
    for (int64_t i = 0; i < rows; i++) length[i] = expected[i] = i == walk.product.csr->col_idx[0] ? 0 : INFINITY;
    assert_true(walk_until_still(&walk, length) > 3);
    relax_all(walk.product.csr, expected);
    for (int64_t i = 0; i < rows; i++) {
      assert_true(length[i] == expected[i]);
      reached += isfinite(length[i]) != 0;
    }
    assert_true(reached > 20 && reached < rows);
    end_walk(&walk);
  }
}

/* Level by level: who is reached after so many steps. */
static void or_and_reaches_what_a_search_does(void **state) {
  (void)state;
  struct walk walk = start_walk("road,n=11,values=signed", "recipe=sell form=add semiring=or-and");
  const struct cb_csr *csr = walk.product.csr;
  double reached[121] = {[60] = 1}, next[121];
  int level[121], most = 0;
  assert_int_equal(csr->rows, 121);
  for (int i = 0; i < 121; i++) level[i] = i == 60 ? 0 : 999;
  for (int depth = 0; depth < 121; depth++)
    for (int64_t i = 0; i < 121; i++)
      for (int64_t k = cb_csr_row(csr, i); k < cb_csr_row(csr, i + 1); k++)
        if (level[csr->col_idx[k]] == depth && level[i] == 999) level[i] = depth + 1, most = depth + 1;
  assert_true(most > 6);
  for (int depth = 1; depth <= most; depth++) {
    step(&walk, reached, reached, next);
    memcpy(reached, next, sizeof reached);
    for (int i = 0; i < 121; i++) assert_true(reached[i] == (level[i] <= depth));
  }
  end_walk(&walk);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_say_what_they_do),
      cmocka_unit_test(padding_is_nan),
      cmocka_unit_test(a_zero_is_no_padding),
      cmocka_unit_test(plans_say_their_semiring),
      cmocka_unit_test(atomics_are_refused),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(min_plus_finds_shortest_paths),
      cmocka_unit_test(or_and_reaches_what_a_search_does),
      cmocka_unit_test(verify_sees_what_is_left_out),
      cmocka_unit_test(padding_changes_nothing),
      cmocka_unit_test(every_recipe_multiplies_right),
      cmocka_unit_test(rows_without_nonzeros_are_joined_with_y),
  };
  return cmocka_run_group_tests_name("semirings", tests, NULL, NULL);
}
