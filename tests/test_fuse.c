// SPDX-License-Identifier: Apache-2.0
/* Parts of a split in one launch: when that happens, what the text says then, and products against the
 * oracle. */
#include "kernels.h"

#include "analysis/plan.h"
#include "analysis/tiles.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static struct kernel kernel_of(const char *matrix, const char *settings) {
  struct cb_diag diag = {0};
  struct cb_options options;
  struct kernel kernel = {0};
  cb_options_default(&options);
  set_options(&options, settings);
  if (cb_matrix_generate(&kernel.csr, matrix, &diag) || make_kernel(&kernel, &options, &diag))
    fail_msg("%s %s: %s", matrix, settings, diag.message);
  return kernel;
}

/* The kernels' text alone: what stands behind the regions. */
static const char *kernels_text(const struct kernel *kernel) {
  const char *text = strstr(kernel->source.text, "// ---- kernels");
  assert_non_null(text);
  return text;
}

static void parts_with_the_same_rows_share_a_launch(void **state) {
  (void)state;
  struct kernel fused = kernel_of("stencil7,n=12,extra=0.3", "recipe=dia");
  struct kernel apart = kernel_of("stencil7,n=12,extra=0.3", "recipe=dia fuse=off");
  assert_int_equal(fused.plan->regions_count, 2);
  assert_int_equal(fused.plan->launches_count, 1);
  assert_int_equal(fused.plan->regions[0].commit, CB_COMMIT_KEEP);
  assert_int_equal(fused.plan->regions[1].commit, CB_COMMIT_KEPT);
  assert_int_equal(fused.plan->launches[0].block_rows, 256);
  assert_int_equal(fused.plan->launches[0].blocks, 7);
  assert_non_null(strstr(fused.plan->line, "(split diagonals (fill 50) (fused in-turn) (dia "));
  assert_int_equal(apart.plan->launches_count, 2);
  assert_int_equal(apart.plan->regions[1].commit, CB_COMMIT_ADD);
  assert_null(strstr(apart.plan->line, "fused"));
  assert_true(fused.plan->cost.ns < apart.plan->cost.ns);
  assert_true(fused.plan->cost.bytes < apart.plan->cost.bytes); /* x and y are read and written once */
  release_kernel(&fused);
  release_kernel(&apart);
}

/* A remainder whose rows differ wildly is better off in an order of its own. */
static void auto_fuses_what_is_predicted_to_gain(void **state) {
  (void)state;
  static const char matrix[] = "dense_row,n=60000,row=7";
  struct kernel chosen = kernel_of(matrix, "recipe=dia"), forced = kernel_of(matrix, "recipe=dia fuse=on");
  assert_int_equal(chosen.plan->launches_count, 2);
  assert_int_equal(forced.plan->launches_count, 1);
  assert_true(chosen.plan->cost.ns < forced.plan->cost.ns);
  release_kernel(&chosen);
  release_kernel(&forced);
}

/* Orders that were asked for leave nothing to join. */
static void an_order_of_its_own_stays_apart(void **state) {
  (void)state;
  static const char *const settings[] = {"recipe=dia fuse=on sell-sort=on",
                                         "recipe=dia fuse=on sell-vary=on"};
  for (size_t i = 0; i < LENGTH(settings); i++) {
    struct kernel kernel = kernel_of("stencil7,n=12,extra=0.3", settings[i]);
    assert_int_equal(kernel.plan->launches_count, 2);
    release_kernel(&kernel);
  }
}

static enum cb_status verify_text(struct kernel *kernel, struct cb_verify_report *report) {
  const struct cb_verify_case one = {&kernel->csr,    kernel->plan,  kernel->assignment,
                                     &kernel->source, &kernel->blob, "m"};
  struct cb_verify_options options;
  struct cb_diag diag = {0};
  cb_verify_options_default(&options);
  return verify_kernel(&one, &options, report, &diag);
}

/* A row that one thread takes through both regions needs no barrier; without a barrier that is needed, the
 * emulator sees it. */
static void sums_wait_for_a_barrier_where_threads_differ(void **state) {
  (void)state;
  static const char barrier[] = "__syncthreads();";
  struct cb_verify_report report;
  struct kernel alike = kernel_of("stencil7,n=12,extra=0.3", "recipe=dia form=ax fuse=on sell-lanes=1");
  struct kernel others = kernel_of("stencil7,n=12,extra=0.3", "recipe=dia form=ax fuse=on sell-lanes=4");
  assert_null(strstr(kernels_text(&alike), barrier));
  char *found = strstr(kernels_text(&others), barrier);
  assert_non_null(found);
  assert_int_equal(others.plan->regions[1].block_rows, 64);
  assert_int_equal(verify_text(&others, &report), CB_OK);
  memset(found, ' ', strlen(barrier));
  assert_int_not_equal(verify_text(&others, &report), CB_OK);
  assert_non_null(strstr(report.message, "of a shared array before it is written"));
  release_kernel(&alike);
  release_kernel(&others);
}

/* Nonzeros of full tiles go to the blocks, all others to the rest; a matrix with few full tiles is refused.
 */
static void tiles_are_split_off(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_options options;
  struct kernel mixed = kernel_of("block,blocks_r=100,per_row=3,scattered=4", "recipe=tiles fuse=on");
  struct kernel none = {0};
  const struct cb_plan *plan = mixed.plan;
  assert_int_equal(plan->regions_count, 2);
  assert_string_equal(plan->regions[0].layout, "blocks");
  assert_int_equal(plan->regions[0].value_slots % 9, 0);
  assert_in_range(plan->regions[0].nonzeros, 2500, 2700); /* 300 blocks, and what lies beside by chance */
  assert_int_equal(plan->regions[0].nonzeros + plan->regions[1].nonzeros, mixed.csr.nnz);
  assert_int_equal(plan->launches_count, 1);
  assert_int_equal(plan->launches[0].block_rows, 768);
  assert_int_equal(plan->regions[1].block_rows, 256);
  assert_non_null(strstr(plan->line, "(split tiles (size 3 3) (fill 85) (fused in-turn) (blocks "));
  cb_options_default(&options);
  set_options(&options, "recipe=tiles");
  assert_int_equal(cb_matrix_generate(&none.csr, "random,rows=300,cols=300,density=0.05", &diag), CB_OK);
  assert_int_equal(make_kernel(&none, &options, &diag), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(diag.message, "too few nonzeros are in aligned tiles that are 85 % full"));
  release_kernel(&mixed);
  release_kernel(&none);
}

/* Nonzeros in aligned 3×3 tiles of 300 × 300 that are as full as this. */
static int64_t nonzeros_of_full_tiles(const struct cb_csr *csr, int percent) {
  static int count[100][100];
  int64_t inside = 0;
  memset(count, 0, sizeof count);
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) count[row / 3][csr->col_idx[k] / 3]++;
  for (int i = 0; i < 100; i++)
    for (int j = 0; j < 100; j++) inside += 100 * count[i][j] >= percent * 9 ? count[i][j] : 0;
  return inside;
}

static void tiles_are_full_from_the_percentage_on(void **state) {
  (void)state;
  static const int percents[] = {66, 67, 78, 85, 89};
  for (size_t i = 0; i < LENGTH(percents); i++) {
    char settings[80];
    snprintf(settings, sizeof settings, "recipe=tiles block-size=3x3 block-fill=%d", percents[i]);
    struct kernel kernel = kernel_of("block,blocks_r=100,per_row=3,fill=0.85", settings);
    assert_string_equal(kernel.plan->regions[0].layout, "blocks");
    assert_int_equal(kernel.plan->regions[0].nonzeros, nonzeros_of_full_tiles(&kernel.csr, percents[i]));
    release_kernel(&kernel);
  }
}

/* Of many rows a sample is counted, which stands for all: tiles of 5×5 are taken where there are enough of them. */
static void large_tiles_are_counted_by_a_sample(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  enum { FILL = 85 };
  struct cb_target target;
  struct cb_csr csr;
  if (cb_target_find(&target, "sm_90", &diag)) fail_msg("%s", diag.message);
  if (cb_matrix_generate(&csr, "block,r=5,c=5,blocks_r=26400,per_row=1", &diag)) fail_msg("%s", diag.message);
  target.multiprocessors = 20; /* 10240 tiles are enough, 26400 are there, 1650 of them in the sample */
  const int chosen = cb_tiles_choose(&csr, &target, CB_F64, 0, FILL);
  assert_true(chosen >= 0);
  assert_int_equal(cb_tile_sizes[chosen].rows, 5);
  target.multiprocessors = 60; /* 30720 would be enough */
  const int fewer = cb_tiles_choose(&csr, &target, CB_F64, 0, FILL);
  assert_true(fewer < 0 || cb_tile_area(cb_tile_sizes[fewer]) <= 16);
  cb_csr_release(&csr);
}

static const struct cb_array *array_of(const struct cb_region *region, const char *name) {
  for (int i = 0; i < region->arrays_count; i++)
    if (!strcmp(region->arrays[i].name, name)) return &region->arrays[i];
  return NULL;
}

static void parts_with_rows_of_their_own_share_a_launch(void **state) {
  (void)state;
  static const char matrix[] = "long_row,rows=1000,cols=9000,per_row=6,long_rows=2,long_length=5000";
  struct kernel fused = kernel_of(matrix, "recipe=sell-long long-row=400");
  struct kernel apart = kernel_of(matrix, "recipe=sell-long long-row=400 fuse=off");
  struct kernel whole = kernel_of("stencil7,n=9", "recipe=sell-long");
  const struct cb_region *regions = fused.plan->regions;
  assert_int_equal(fused.plan->launches_count, 1);
  assert_int_equal(fused.plan->launches[0].blocks, regions[0].blocks + regions[1].blocks);
  assert_int_equal(regions[1].first_block, 0); /* long rows start first */
  assert_int_equal(regions[0].first_block, regions[1].blocks);
  assert_int_equal(regions[0].commit, CB_COMMIT_FINAL);
  assert_int_equal(regions[1].commit, CB_COMMIT_OWN);
  assert_non_null(array_of(&regions[0], "own_rows"));
  assert_null(array_of(&regions[1], "own_rows")); /* merge touches no other rows */
  assert_non_null(strstr(fused.plan->line, "(split long-rows (longer 400) (fused beside) (sell "));
  assert_int_equal(apart.plan->launches_count, 2);
  assert_int_equal(apart.plan->regions[1].commit, CB_COMMIT_ADD);
  assert_null(array_of(&apart.plan->regions[0], "own_rows"));
  assert_true(fused.plan->cost.ns < apart.plan->cost.ns);
  assert_int_equal(whole.plan->regions_count, 1); /* no row is long */
  assert_null(array_of(&whole.plan->regions[0], "own_rows"));
  release_kernel(&fused);
  release_kernel(&apart);
  release_kernel(&whole);
}

/* Static shared memory of both would exceed what a kernel may have. */
static void regions_that_do_not_fit_stay_apart(void **state) {
  (void)state;
  struct kernel kernel = kernel_of("long_row,rows=300,cols=9000,per_row=6,long_rows=2,long_length=5000",
                                   "recipe=cb-long long-row=400 fuse=on coo-gain=0");
  assert_int_equal(kernel.plan->launches_count, 2);
  assert_int_equal(kernel.plan->regions[1].commit, CB_COMMIT_OWN);
  assert_true(kernel.plan->regions[0].static_shared + kernel.plan->regions[1].static_shared > 48 << 10);
  release_kernel(&kernel);
}

/* Asked of one row for all of them, a region writes rows that are another's, or not all of its own: verify
 * sees it. */
static void rows_have_one_owner(void **state) {
  (void)state;
  static const char question[] = "owns(arrays, row)";
  static const char *const settings[] = {"recipe=sell-long long-row=90 form=ax fuse=on",
                                         "recipe=cb-long long-row=90 form=ax fuse=on team=1 coo-gain=100"};
  for (size_t i = 0; i < LENGTH(settings); i++) {
    struct cb_verify_report report;
    struct kernel kernel = kernel_of("arrow,n=300,width=2", settings[i]);
    char *last = NULL;
    for (char *at = kernel.source.text; (at = strstr(at, question)); at++) last = at;
    assert_non_null(last);
    assert_int_equal(kernel.plan->launches_count, 1);
    assert_int_equal(verify_text(&kernel, &report), CB_OK);
    memcpy(last, "owns(arrays, 299)", strlen(question));
    assert_int_equal(verify_text(&kernel, &report), CB_ERR_WRONG);
    release_kernel(&kernel);
  }
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"long_row,rows=100,cols=900,per_row=4,long_rows=2,long_length=300",
       "recipe=sell-long long-row=99 fuse=on"},
      {"block,blocks_r=40,per_row=3,scattered=4", "recipe=tiles fuse=on"},
  };
  int failures = 0;
  for (size_t c = 0; c < LENGTH(cases); c++) {
    for (uint64_t nth = 1, last = 0; !last; nth++) {
      struct cb_diag diag = {0};
      struct cb_options options;
      struct kernel kernel = {0};
      cb_options_default(&options);
      set_options(&options, cases[c][1]);
      assert_int_equal(cb_matrix_generate(&kernel.csr, cases[c][0], &diag), CB_OK);
      cb_memory_fail_at(nth, nth % 2 == 0);
      const enum cb_status s = make_kernel(&kernel, &options, &diag);
      last = cb_memory_fail_at(0, 0) < nth;
      assert_true(s == CB_ERR_MEMORY || s == CB_OK);
      if (last) assert_int_equal(s, CB_OK);
      failures += s != CB_OK;
      release_kernel(&kernel);
    }
  }
  assert_true(failures > 100);
}

static const char *const executed[][2] = {
    {"stencil7,n=5,periodic=1,extra=0.4", ""},
    {"stencil7,n=9,periodic=1,extra=0.4", "sell-lanes=2"},
    {"stencil5,n=24,extra=0.5", "sell-lanes=32"},
    {"stencil5,n=24,extra=0.5", "sell-vector=2"},
    {"stencil27,n=8,extra=1", ""},
    {"tridiagonal,n=512", ""}, /* nothing is left over */
    {"diagonals,n=300,count=20,spread=90,fill=0.7", "dia-fill=75"},
    {"band,n=400,half=20,per_row=25", "dia-fill=60"},
    {"explicit_zeros,rows=90,cols=90,density=0.3,zeros=0.4", "dia-fill=10 dia-most=40"},
    {"random,rows=600,cols=300,density=0.1", "dia-fill=0 dia-most=11"},
    {"random,rows=300,cols=700,density=0.1", "dia-fill=0 dia-most=11 bake-limit=0"},
    {"one_row,cols=500", "dia-most=7"},
    {"dense_row,n=700,row=600", ""},
    /* several rows of a thread */
    {"stencil5,n=40,periodic=1,extra=0.5,values=ones", "values=fixed dia-rows=4"},
    {"stencil7,n=12,extra=0.5,values=ones", "values=fixed dia-rows=8 sell-lanes=4"},
    {"stencil5,n=24,extra=0.5,values=integers", "values=fixed"},
    /* tiles */
    {"block,blocks_r=100,per_row=3,scattered=4", "recipe=tiles"},
    {"block,blocks_r=100,per_row=3,scattered=4",
     "recipe=tiles block-lanes=8"}, /* 96 rows of a thread block */
    {"block,blocks_r=90,r=4,c=4,per_row=3,scattered=7,values=ones", "recipe=tiles values=fixed"},
    {"block,blocks_r=200,r=1,c=2,per_row=5,scattered=3", "recipe=tiles block-lanes=32 sell-lanes=1"},
    {"block,blocks_r=200,r=2,c=2,per_row=9,scattered=3,fill=0.95",
     "recipe=tiles block-fill=75 sell-lanes=2"},
    {"block,blocks_r=40,r=5,c=5,per_row=3,scattered=9", "recipe=tiles block-size=5x5"},
    /* rows of their own */
    {"long_row,rows=900,cols=9000,per_row=5,long_rows=3,long_length=8000", "recipe=sell-long long-row=99"},
    {"long_row,rows=900,cols=9000,per_row=5,long_rows=3,long_length=8000",
     "recipe=sell-long long-row=99 sell-sort=on"},
    {"long_row,rows=900,cols=9000,per_row=5,long_rows=3,long_length=8000",
     "recipe=sell-long long-row=99 sell-vary=on"},
    {"long_row,rows=900,cols=5000,per_row=5,long_rows=3,long_length=4000",
     "recipe=cb-long long-row=99 th1=0 unit-budget=512"},
    {"powerlaw,rows=300,cols=900,max=700,min=0", "recipe=sell-long long-row=20 sell-lanes=4"},
    {"powerlaw,rows=300,cols=900,max=700,min=0", "recipe=cb-long long-row=20 team=1"},
    {"arrow,n=200,width=3", "recipe=sell-long long-row=5 values=fixed"},
    {"dense,rows=40,cols=70", "recipe=sell-long long-row=5"}, /* no row is short */
    {"one_row,cols=500", "recipe=cb-long long-row=5"},
    {"hypersparse,rows=5000,cols=300,keep=0.02,per_row=30", "recipe=sell-long long-row=5"},
};

static void products_match_the_oracle(void **state) {
  (void)state;
  static const char *const kinds[] = {"form=ax",
                                      "form=add",
                                      "form=axpby",
                                      "form=ax type=f32",
                                      "form=axpby type=f32-f64",
                                      "form=add type=f16-f32"};
  enum { KINDS_OF_CASE = 2 }; /* they take turns */
  struct cb_verify_options options;
  struct kernel_batch batch;
  int fused = 0;
  fast_options(&options);
  open_batch(&batch, &options);
  for (size_t k = 0; k < LENGTH(executed) * KINDS_OF_CASE; k++) {
    const char *const *of = executed[k / KINDS_OF_CASE];
    struct kernel *kernel = next_kernel(&batch);
    struct cb_options drawn;
    char settings[160];
    snprintf(settings, sizeof settings, "recipe=dia fuse=on %s %s", of[1], kinds[k % LENGTH(kinds)]);
    snprintf(kernel->name, sizeof kernel->name, "%s %s", of[0], settings);
    cb_options_default(&drawn);
    set_options(&drawn, settings);
    assert_int_equal(cb_matrix_generate(&kernel->csr, of[0], NULL), CB_OK);
    add_kernel(&batch, &drawn);
    fused += kernel->plan && kernel->plan->launches_count < kernel->plan->regions_count;
  }
  close_batch(&batch);
  assert_int_equal(batch.failures, 0);
  assert_true(fused > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_with_the_same_rows_share_a_launch),
      cmocka_unit_test(auto_fuses_what_is_predicted_to_gain),
      cmocka_unit_test(an_order_of_its_own_stays_apart),
      cmocka_unit_test(sums_wait_for_a_barrier_where_threads_differ),
      cmocka_unit_test(tiles_are_split_off),
      cmocka_unit_test(tiles_are_full_from_the_percentage_on),
      cmocka_unit_test(large_tiles_are_counted_by_a_sample),
      cmocka_unit_test(parts_with_rows_of_their_own_share_a_launch),
      cmocka_unit_test(regions_that_do_not_fit_stay_apart),
      cmocka_unit_test(rows_have_one_owner),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(products_match_the_oracle),
  };
  return cmocka_run_group_tests_name("fuse", tests, NULL, NULL);
}
