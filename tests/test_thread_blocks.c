// SPDX-License-Identifier: Apache-2.0
/* What each thread block has to do: against what traced kernels did, nonzero by nonzero, for every layout that tells
 * it; by hand where it is plain; and the table of options for what binds. CBGEN_TEST_ALL=1: more settings. */
#include "kernels.h"
#include "layouts.h"
#include "recipes.h"

#include "analysis/cost_figures.h"
#include "analysis/plan/advice.h"
#include "analysis/plan/loads.h"
#include "analysis/plan/thread_blocks.h"
#include "base/real.h"
#include "runtime/verify/trace.h"
#include "tests/combinations.h"

static struct cb_host *host;

static int open_hosts(void **state) {
  struct cb_host_options options;
  (void)state;
  cb_host_options_default(&options);
  options.compiler = fast_compiler();
  options.sanitize = options.debug = options.optimize = 0;
  host = kernel_host(&options);
  return 0;
}

static struct cb_thread_blocks blocks_of(const struct product *product) {
  struct cb_thread_blocks blocks;
  struct cb_diag diag = {0};
  assert_ok(cb_thread_blocks_count(&blocks, product->plan, product->assignment, product->csr, &diag));
  return blocks;
}

/* ---- against a trace */

/* One nonzero as the trace saw it. */
struct taken {
  int64_t block, row, column;
};

struct traced {
  struct product product;
  struct cb_verify_case one;
  struct cb_trace_product given;
  void *x, *y;
  struct cb_trace *trace;
  struct cb_thread_blocks blocks;
  struct taken *taken;
  int64_t count;
};

static struct traced trace_of(const char *matrix, const char *settings) {
  struct traced traced = {.product = product_of(matrix, settings)};
  struct product *product = &traced.product;
  traced.x = calloc((size_t)product->csr->cols + 1, sizeof(double));
  traced.y = calloc((size_t)product->csr->rows + 1, sizeof(double));
  for (int64_t i = 0; i < product->csr->cols; i++) cb_real_set(traced.x, CB_F64, i, cb_selftest_x((uint64_t)i));
  traced.blocks = blocks_of(product);
  return traced;
}

static void run_trace(struct traced *traced) {
  struct product *product = &traced->product;
  struct cb_diag diag = {0};
  traced->one = (struct cb_verify_case){product->csr,     product->plan,  product->assignment,
                                        &product->source, &product->blob, "test"};
  traced->given = (struct cb_trace_product){.x = traced->x, .y = traced->y, .alpha = 1, .blob = &product->blob};
  assert_ok(cb_trace_run(&traced->trace, host, &traced->one, &traced->given, &diag));
  traced->taken = malloc(((size_t)product->csr->nnz + 1) * sizeof *traced->taken);
  for (int64_t i = 0; i < product->csr->rows; i++) {
    struct cb_trace_row row;
    assert_ok(cb_trace_row(&row, traced->trace, i, &diag));
    for (int64_t k = 0; k < row.steps_count; k++) {
      const struct cb_trace_step *step = &row.steps[k];
      if (!step->is_term || step->nonzero < 0) continue;
      assert_true(traced->count < product->csr->nnz);
      traced->taken[traced->count++] =
          (struct taken){traced->blocks.first[step->launch - 1] + step->block, i, step->column};
    }
    cb_trace_row_release(&row);
  }
  assert_int_equal(traced->count, product->csr->nnz);
}

static void release(struct traced *traced) {
  cb_trace_free(traced->trace);
  cb_thread_blocks_release(&traced->blocks);
  free(traced->taken);
  free(traced->x);
  free(traced->y);
  product_release(&traced->product);
}

static void check_nonzeros(const struct traced *traced, const char *settings) {
  int64_t *nonzeros = calloc((size_t)traced->blocks.count + 1, sizeof *nonzeros);
  for (int64_t i = 0; i < traced->count; i++) nonzeros[traced->taken[i].block]++;
  for (int64_t b = 0; b < traced->blocks.count; b++)
    if (nonzeros[b] != traced->blocks.blocks[b].nonzeros)
      fail_msg("%s: thread block %d has %d nonzeros, not %d", settings, (int)b, (int)nonzeros[b],
               (int)traced->blocks.blocks[b].nonzeros);
  free(nonzeros);
}

/* The thread blocks of a row are those that took its nonzeros. */
static void check_row(const struct traced *traced, int64_t row, const char *settings) {
  enum { MOST = 64 };
  const struct product *product = &traced->product;
  int64_t numbers[MOST], seen = 0;
  const int64_t count =
      cb_thread_blocks_of_row(numbers, MOST, row, &traced->blocks, product->plan, product->assignment, product->csr);
  assert_in_range(count, cb_csr_row_length(product->csr, row) > 0, MOST);
  for (int64_t n = 0; n < count; n++) {
    int64_t own = 0;
    for (int64_t i = 0; i < traced->count; i++)
      own += traced->taken[i].row == row && traced->taken[i].block == numbers[n];
    if (!own && cb_csr_row_length(product->csr, row))
      fail_msg("%s: thread block %d takes nothing of row %d", settings, (int)numbers[n], (int)row);
    seen += own;
  }
  if (seen != cb_csr_row_length(product->csr, row)) fail_msg("%s: row %d has other thread blocks", settings, (int)row);
}

static int has_sector(const struct taken *before, int64_t count, int64_t block, int64_t sector) {
  for (int64_t i = 0; i < count; i++)
    if (before[i].block == block && before[i].column / 4 == sector) return 1;
  return 0;
}

/* What is said of one thread block, counted anew from the trace. */
static void check_facts(const struct traced *traced, const struct cb_thread_block_facts *facts, const char *settings) {
  struct cb_thread_block_facts own = {.first_row = -1, .last_row = -1};
  int64_t of_row = 0;
  for (int64_t i = 0; i < traced->count; i++) { /* row by row */
    const struct taken *taken = &traced->taken[i];
    if (taken->block != facts->number) continue;
    if (taken->row != own.last_row) {
      own.rows++;
      of_row = 0;
    }
    if (own.first_row < 0) own.first_row = taken->row;
    own.last_row = taken->row;
    own.longest_row_nonzeros = ++of_row > own.longest_row_nonzeros ? of_row : own.longest_row_nonzeros;
    own.sectors += !has_sector(traced->taken, i, facts->number, taken->column / 4);
  }
  if (facts->rows != own.rows || facts->first_row != own.first_row || facts->last_row != own.last_row ||
      facts->longest_row_nonzeros != own.longest_row_nonzeros || facts->sectors != own.sectors)
    fail_msg("%s, thread block %d: %d rows (%d to %d), the longest %d, %d sectors; not %d (%d to %d), %d, %d", settings,
             (int)facts->number, (int)own.rows, (int)own.first_row, (int)own.last_row, (int)own.longest_row_nonzeros,
             (int)own.sectors, (int)facts->rows, (int)facts->first_row, (int)facts->last_row,
             (int)facts->longest_row_nonzeros, (int)facts->sectors);
}

static void check_all_facts(struct traced *traced, const char *settings) {
  enum { MOST = 12 };
  struct cb_thread_block_facts facts[MOST];
  struct cb_diag diag = {0};
  const struct product *product = &traced->product;
  const int64_t all = traced->blocks.count, count = all < MOST ? all : MOST;
  for (int64_t f = 0; f < count; f++) facts[f].number = f * all / count;
  assert_ok(cb_thread_blocks_look(facts, (int)count, -1, &traced->blocks, product->plan, product->assignment,
                                  product->csr, &diag));
  for (int64_t f = 0; f < count; f++) check_facts(traced, &facts[f], settings);
}

static void check_case(const char *matrix, const char *more) {
  char settings[SETTINGS];
  snprintf(settings, sizeof settings, "form=ax %s", more);
  struct traced traced = trace_of(matrix, settings);
  if (!traced.blocks.is_known || traced.blocks.count < 2)
    fail_msg("%s: %d thread blocks, without %s", settings, (int)traced.blocks.count, traced.blocks.without);
  run_trace(&traced);
  check_nonzeros(&traced, settings);
  check_all_facts(&traced, settings);
  for (int64_t row = 0; row < traced.product.csr->rows; row += 1 + row / 16) check_row(&traced, row, settings);
  release(&traced);
}

/* Of several thread blocks, with all that moves nonzeros between them: tests/data/thread_blocks.txt has the cases. */
static void traced_kernels_take_what_is_told(void **state) {
  FILE *const file = fopen("tests/data/thread_blocks.txt", "r");
  char line[256];
  int cases = 0;
  (void)state;
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    char *at = line, *settings;
    const int is_always = strncmp(line, "all ", 4) != 0;
    if (*line == '#' || (!is_always && !tests_all_combinations())) continue;
    if (!is_always) at += 4;
    line[strcspn(line, "\n")] = 0;
    settings = strchr(at, ' ');
    assert_non_null(settings);
    *settings++ = 0;
    check_case(at, settings);
    cases++;
  }
  fclose(file);
  assert_true(cases > 10);
}

/* The text with a clock for each warp is a kernel of the host's as well; nobody reads its clocks there, and y has the
 * plain one's bits. */
static void clocked_kernels_run_on_the_host(void **state) {
  static const char *const settings[] = {"recipe=sell form=ax", "recipe=merge merge-piece=512 form=axpby"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    struct product product =
        product_of("long_row,rows=300,cols=2000,per_row=4,long_rows=1,long_length=1500", settings[i]);
    const struct cb_label label = {"test", "test", cb_csr_pattern_hash(product.csr)};
    const int64_t x_bytes = product.csr->cols * 8, y_bytes = product.csr->rows * 8;
    double *const x = malloc((size_t)x_bytes), *const y = calloc(1, (size_t)y_bytes);
    double *const results[] = {malloc((size_t)y_bytes), malloc((size_t)y_bytes)};
    struct cb_host_program *program;
    struct cb_source clocked;
    struct cb_diag diag = {0};
    assert_ok(cb_source_emit_clocked(&clocked, product.plan, &label, &diag));
    for (int64_t c = 0; c < product.csr->cols; c++) x[c] = cb_selftest_x((uint64_t)c);
    const struct cb_host_kernel kernels[] = {
        {.text = product.source.text + product.source.body, .symbol = "test", .form = product.plan->form},
        {.text = clocked.text + clocked.body, .symbol = "test", .form = product.plan->form}};
    struct cb_host_job jobs[2];
    for (int k = 0; k < 2; k++)
      jobs[k] = (struct cb_host_job){.kernel = k,
                                     .data = product.blob.bytes,
                                     .data_bytes = product.blob.length,
                                     .x = x,
                                     .x_bytes = x_bytes,
                                     .y = y,
                                     .y_bytes = y_bytes,
                                     .alpha = 1,
                                     .products = 2,
                                     .repeatable = 1,
                                     .result = results[k]};
    assert_ok(cb_host_build(&program, host, kernels, 2, &diag));
    assert_int_equal(cb_host_build_texts(program), 2);
    assert_ok(cb_host_run(program, jobs, 2, &diag));
    for (int k = 0; k < 2; k++)
      if (jobs[k].outcome) fail_msg("%s: %s", settings[i], jobs[k].message);
    assert_memory_equal(results[0], results[1], y_bytes);
    cb_host_program_free(program);
    cb_source_release(&clocked);
    for (int k = 0; k < 2; k++) free(results[k]);
    free(x);
    free(y);
    product_release(&product);
  }
}

/* Every recipe: where the reports of balance know the nonzeros of thread blocks, they are these. Layouts that do not
 * tell say so. */
static void all_recipes_are_counted(void **state) {
  static const char *const silent[] = {"du", "se", "tile"};
  const struct cb_recipe *recipe;
  (void)state;
  for (int r = 0; (recipe = cb_recipe_at(r)); r++) {
    struct product product = product_of(example_of(recipe), settings_of_recipe(recipe));
    struct cb_thread_blocks blocks = blocks_of(&product);
    struct cb_diag diag = {0};
    struct cb_loads loads;
    int64_t nonzeros = 0, most = 0, is_silent = 0;
    for (int64_t b = 0; b < blocks.count; b++) {
      nonzeros += blocks.blocks[b].nonzeros;
      most = blocks.blocks[b].nonzeros > most ? blocks.blocks[b].nonzeros : most;
    }
    for (size_t i = 0; i < sizeof silent / sizeof *silent && !blocks.is_known; i++)
      is_silent |= !strcmp(blocks.without, silent[i]);
    assert_ok(cb_loads_count(&loads, product.plan, product.assignment, &diag));
    if (blocks.is_known ? nonzeros != product.csr->nnz : !is_silent)
      fail_msg("recipe '%s': %d of %d nonzeros", recipe->name, (int)nonzeros, (int)product.csr->nnz);
    if (blocks.is_known && loads.blocks && (loads.blocks != blocks.count || loads.most != most))
      fail_msg("recipe '%s': at most %d nonzeros, %d in another report", recipe->name, (int)most, (int)loads.most);
    cb_thread_blocks_release(&blocks);
    product_release(&product);
  }
}

/* ---- by hand */

static const char plain_sell[] = "recipe=sell sell-lanes=1 sell-vector=1 sell-sort=off sell-vary=off";

/* 256 rows to a thread block; the slice of the long row has as many steps as that has nonzeros, 32 slots each. */
static void a_long_row_is_told(void **state) {
  struct cb_diag diag = {0};
  struct cb_thread_block_facts facts[2] = {{.number = 0}, {.number = 1}};
  (void)state;
  struct product product =
      product_of("long_row,rows=1000,cols=9000,per_row=6,long_rows=1,long_length=5000", plain_sell);
  struct cb_thread_blocks blocks = blocks_of(&product);
  assert_int_equal(blocks.count, 4);
  assert_int_equal(blocks.at_once[0], 4);
  assert_ok(cb_thread_blocks_look(facts, 2, 500, &blocks, product.plan, product.assignment, product.csr, &diag));
  const struct cb_thread_block *slow = &blocks.blocks[1], *fast = &blocks.blocks[0];
  assert_int_equal(cb_csr_row_length(product.csr, 500), 5000);
  assert_int_equal(facts[1].longest_row, 500);
  assert_int_equal(facts[1].longest_row_nonzeros, 5000);
  assert_int_equal(facts[1].row_nonzeros, 5000);
  assert_int_equal(facts[0].row_nonzeros, 0);
  assert_int_equal(facts[1].first_row, 256);
  assert_int_equal(facts[1].rows, 256);
  assert_true(slow->slots > 32 * 4990 && slow->slots < 32 * 5000 + 8 * 6 * 32);
  assert_int_equal(slow->cost.chain_ns, product.plan->regions[0].cost.chain_ns);
  assert_int_equal(slow->rounds, slow->cost.chain_ns / CB_COST_BATCH_NS);
  assert_int_equal(cb_cost_binding(&slow->cost), CB_TERM_CHAIN);
  assert_true(fast->cost.ns * 100 < slow->cost.ns);
  assert_true(facts[1].bytes > 10 * facts[0].bytes);
  cb_thread_blocks_release(&blocks);
  product_release(&product);
}

/* When all thread blocks are alike and run at once, each takes what the kernel does, its start aside: also where each
 * multiprocessor has three of them. */
static void equal_thread_blocks_take_what_the_kernel_does(void **state) {
  static const struct {
    const char *matrix;
    int64_t blocks;
  } cases[] = {{"band,n=4096,half=60,per_row=16", 16}, {"band,n=101376,half=60,per_row=16", 396}};
  (void)state;
  for (int c = 0; c < 2; c++) {
    struct product product = product_of(cases[c].matrix, plain_sell);
    struct cb_thread_blocks blocks = blocks_of(&product);
    const struct cb_cost *whole = &product.plan->regions[0].cost;
    assert_int_equal(blocks.count, cases[c].blocks);
    assert_int_equal(blocks.at_once[0], cases[c].blocks);
    for (int64_t b = 0; b < blocks.count; b++) {
      const struct cb_cost *cost = &blocks.blocks[b].cost;
      assert_int_equal(blocks.blocks[b].nonzeros, 4096);
      assert_in_range(cost->stream_ns, whole->stream_ns - 1, whole->stream_ns + 1);
      assert_int_equal(cost->chain_ns, whole->chain_ns);
      assert_in_range(cost->ns, whole->ns - CB_COST_START_NS - 2, whole->ns - CB_COST_START_NS + 2);
    }
    cb_thread_blocks_release(&blocks);
    product_release(&product);
  }
}

/* A row without nonzeros is its thread block's all the same; a thread block without nonzeros has no rows to tell. */
static void empty_rows_have_a_thread_block(void **state) {
  int64_t number = -1;
  struct cb_diag diag = {0};
  struct cb_thread_block_facts facts = {.number = 1};
  (void)state;
  struct product product = product_of("empty,rows=600,cols=5", plain_sell);
  struct cb_thread_blocks blocks = blocks_of(&product);
  assert_int_equal(cb_thread_blocks_of_row(&number, 1, 300, &blocks, product.plan, product.assignment, product.csr), 1);
  assert_int_equal(number, 1);
  assert_ok(cb_thread_blocks_look(&facts, 1, 300, &blocks, product.plan, product.assignment, product.csr, &diag));
  assert_int_equal(facts.region, -1);
  assert_int_equal(facts.rows, 0);
  assert_int_equal(facts.first_row, -1);
  assert_int_equal(facts.sectors, 0);
  cb_thread_blocks_release(&blocks);
  product_release(&product);
}

static void the_greatest_part_binds(void **state) {
  (void)state;
  assert_int_equal(cb_cost_binding(&(struct cb_cost){.stream_ns = 5, .gather_ns = 4}), CB_TERM_STREAM);
  assert_int_equal(cb_cost_binding(&(struct cb_cost){.stream_ns = 5, .gather_ns = 6}), CB_TERM_GATHER);
  assert_int_equal(cb_cost_binding(&(struct cb_cost){.stream_ns = 5, .work_ns = 6}), CB_TERM_WORK);
  assert_int_equal(cb_cost_binding(&(struct cb_cost){.work_ns = 5, .chain_ns = 6}), CB_TERM_CHAIN);
  assert_int_equal(cb_cost_binding(&(struct cb_cost){.chain_ns = 5, .tail_ns = 6}), CB_TERM_TAIL);
}

/* ---- options for what binds */

static void advice_names_options_that_there_are(void **state) {
  int rows = 0;
  (void)state;
  for (const struct cb_advice *advice = cb_advice_table; advice->option; advice++, rows++) {
    struct cb_options options;
    struct cb_diag diag = {0};
    const struct cb_recipe *recipe;
    cb_options_default(&options);
    if (cb_options_set(&options, advice->option, advice->value, &diag) || cb_options_check(&options, &diag))
      fail_msg("--%s=%s: %s", advice->option, advice->value, diag.message);
    if (!strcmp(advice->option, "recipe")) assert_ok(cb_recipe_find(&recipe, advice->value, &diag));
    if (advice->layout && !cb_layout_find(advice->layout)) fail_msg("no layout '%s'", advice->layout);
    assert_true(strlen(advice->why) > 10 && strlen(advice->why) < 80);
  }
  assert_true(rows > 30);
}

/* Its own options first, then those for all; every layout has some for every term. */
static void every_layout_has_advice_for_every_term(void **state) {
  (void)state;
  for (int l = 0; cb_layout_table[l]; l++)
    for (int t = 0; t < CB_TERMS; t++) {
      int general = 0, count = 0;
      const char *const layout = cb_layout_table[l]->name;
      for (const struct cb_advice *advice = NULL; (advice = cb_advice_next(advice, layout, (enum cb_term)t)); count++) {
        assert_int_equal(advice->term, t);
        assert_true(!advice->layout || (!general && !strcmp(advice->layout, layout)));
        general |= !advice->layout;
      }
      if (!count) fail_msg("layout '%s' bound by %s has no option", cb_layout_table[l]->name, cb_term_names[t]);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(traced_kernels_take_what_is_told),
      cmocka_unit_test(clocked_kernels_run_on_the_host),
      cmocka_unit_test(all_recipes_are_counted),
      cmocka_unit_test(a_long_row_is_told),
      cmocka_unit_test(equal_thread_blocks_take_what_the_kernel_does),
      cmocka_unit_test(empty_rows_have_a_thread_block),
      cmocka_unit_test(the_greatest_part_binds),
      cmocka_unit_test(advice_names_options_that_there_are),
      cmocka_unit_test(every_layout_has_advice_for_every_term),
  };
  return cmocka_run_group_tests_name("thread_blocks", tests, open_hosts, NULL);
}
