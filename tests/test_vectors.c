// SPDX-License-Identifier: Apache-2.0
/* How kernels for several vectors deal them out, on both sides of what decides it: threads that share a row's vectors,
 * by warps that meet where lanes share rows; X by columns laid out by rows, where gathers of single entries take
 * longer; and the choice of a recipe, which heeds that some take one vector at a time. Kernels are executed in
 * test_kernels_many. */
#include "analysis/plan/room.h"
#include "tests/layouts.h"

static struct product several(const char *matrix, const char *settings) {
  char text[240];
  snprintf(text, sizeof text, "vectors=8 %s", settings);
  return product_of(matrix, text);
}

static void assert_share(const struct product *product, enum cb_vector_kernel kernel, int each, int parts,
                         enum cb_sharing sharing) {
  const struct cb_vector_share *share = &product->plan->shares[kernel];
  if (share->each != each || share->parts != parts || share->sharing != sharing)
    fail_msg("%s: %d vectors to each of %d threads (sharing %d), not %d, %d (%d)", product->plan->line, share->each,
             share->parts, (int)share->sharing, each, parts, (int)sharing);
}

/* Many nonzeros in scattered columns: L1 is asked for a line by each lane, unless threads share a row of X, also where
 * it holds what neighbouring rows ask for: warps that meet share it. But where rows are short, each of them waits as
 * often as it would alone. */
static void test_meeting(void **state) {
  (void)state;
  struct product large = several("random,rows=200000,cols=200000,per_row=24", "recipe=sell sell-vary=on");
  struct product near = several("band,n=30000,half=300,per_row=16", "recipe=sell sell-vary=on");
  struct product small = several("random,rows=3000,cols=3000,per_row=24", "recipe=sell sell-vary=on");
  struct product short_rows = several("powerlaw,rows=900000,max=700", "recipe=sell sell-vary=on");
  assert_share(&large, CB_VECTORS_PACKED, 2, 4, CB_SHARING_WARPS);
  assert_share(&near, CB_VECTORS_PACKED, 2, 4, CB_SHARING_WARPS);
  assert_share(&small, CB_VECTORS_PACKED, 2, 4, CB_SHARING_WARPS);
  assert_share(&short_rows, CB_VECTORS_PACKED, 4, 2, CB_SHARING_WARPS);
  product_release(&large);
  product_release(&near);
  product_release(&small);
  product_release(&short_rows);
}

/* As many threads as the option says, as far as sums and lanes leave room. */
static void test_threads(void **state) {
  static const struct {
    const char *settings;
    int each, parts;
    enum cb_sharing sharing;
  } cases[] = {
      {"recipe=sell sell-vary=on vector-threads=1", 8, 1, CB_SHARING_LANES},
      {"recipe=sell sell-vary=on vector-threads=2", 4, 2, CB_SHARING_WARPS},
      {"recipe=sell sell-vary=on vector-threads=4", 2, 4, CB_SHARING_WARPS},
      {"recipe=sell sell-vary=on vector-threads=32", 2, 4, CB_SHARING_WARPS}, /* no more than 4 */
      {"recipe=sell sell-vary=off sell-lanes=2 vector-threads=32", 2, 4, CB_SHARING_LANES}, /* a thread has two vectors at least */
      {"recipe=sell sell-vary=off sell-lanes=16 vector-threads=2", 4, 2, CB_SHARING_LANES},
      {"recipe=sell sell-vary=off sell-lanes=16 vector-threads=4", 2, 4, CB_SHARING_WARPS},
      {"recipe=merge", 2, 4, CB_SHARING_TURNS},
      {"recipe=merge vector-threads=2", 2, 2, CB_SHARING_TURNS}, /* no more than a piece: two passes */
      {"recipe=merge vector-threads=1", 2, 1, CB_SHARING_LANES},
      {"recipe=merge type=f32", 4, 2, CB_SHARING_TURNS},
      {"recipe=merge type=bf16", 4, 2, CB_SHARING_TURNS},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct product product = several("random,rows=3000,cols=3000,per_row=24", cases[i].settings);
    assert_share(&product, CB_VECTORS_PACKED, cases[i].each, cases[i].parts, cases[i].sharing);
    product_release(&product);
  }
}

/* Tensor cores multiply whole blocks of 8 x 8 by eight vectors at a time, four lanes two of them each. Else blocks of
 * eight rows leave no registers for sums of several vectors in double precision. */
static void test_tiles(void **state) {
  static const char *const matrix = "dense,rows=2200,cols=2200";
  static const struct {
    const char *settings;
    int whole, each, parts;
    const char *size;
  } cases[] = {
      {"recipe=blocks", 1, 2, 4, "8 8"},
      {"recipe=blocks vectors=32", 1, 8, 4, "8 8"},
      {"recipe=blocks vectors=4", 0, 2, 2, "4 4"},
      {"recipe=blocks block-lanes=8", 0, 2, 4, "4 4"},
      {"recipe=blocks block-size=4x4", 0, 2, 4, "4 4"},
      {"recipe=blocks type=f32", 0, 8, 1, "8 8"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct product product = several(matrix, cases[i].settings);
    assert_string_equal(fact(&product, "size"), cases[i].size);
    assert_int_equal(product.plan->regions[0].sharing == CB_SHARING_TILES, cases[i].whole);
    assert_int_equal(has(&product, "mma_f64_884"), cases[i].whole);
    if (cases[i].whole) assert_share(&product, CB_VECTORS_PACKED, cases[i].each, cases[i].parts, CB_SHARING_TILES);
    if (cases[i].whole) assert_share(&product, CB_VECTORS_STRIDED, cases[i].each, cases[i].parts, CB_SHARING_TILES);
    product_release(&product);
  }
  struct product one = product_of(matrix, "recipe=blocks block-size=8x8"),
                 part = several("block,blocks_r=40,r=8,c=8,per_row=3,scattered=4", "recipe=tiles");
  assert_non_null(strstr(one.plan->line, "(size 8 8)"));
  assert_true(part.plan->regions_count > 1);
  assert_false(has(&part, "mma_f64_884")); /* other regions' threads share vectors otherwise */
  product_release(&one);
  product_release(&part);
}

/* Warps that share a block row: until each multiprocessor has 32, with four blocks each. */
static void test_tile_warps(void **state) {
  static const struct {
    const char *matrix, *warps;
  } cases[] = {{"dense,rows=2200,cols=2200", "8"},
               {"block,blocks_r=600,r=8,c=8,per_row=7", "1"},
               {"block,blocks_r=600,r=8,c=8,per_row=12", "2"},
               {"block,blocks_r=4300,r=8,c=8,per_row=8", "1"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct product product = several(cases[i].matrix, "recipe=blocks");
    if (strcmp(fact(&product, "whole"), cases[i].warps))
      fail_msg("%s: %s, not %s warps", cases[i].matrix, product.plan->line, cases[i].warps);
    product_release(&product);
  }
}

/* Lanes that share a block row of finite elements: the fewer, the more threads share its vectors and the more block
 * rows there are, so that all threads are there at once; where even one lane leaves no room for that, as for one. */
static void test_block_lanes(void **state) {
  static const struct {
    const char *matrix, *settings, *lanes;
  } cases[] = {{"fe3,n=12", "recipe=blocks", "8"},
               {"fe3,n=16", "recipe=blocks vectors=4", "8"},
               {"fe3,n=16", "recipe=blocks", "4"},
               {"fe3,n=16", "recipe=blocks vectors=16", "2"},
               {"fe3,n=16", "recipe=blocks vectors=1", "8"},
               {"fe3,n=16", "recipe=blocks vectors=32", "1"},
               {"fe3,n=28", "recipe=blocks", "4"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct product product = several(cases[i].matrix, cases[i].settings);
    if (strcmp(fact(&product, "lanes"), cases[i].lanes))
      fail_msg("%s, %s: %s, not %s lanes", cases[i].matrix, cases[i].settings, product.plan->line, cases[i].lanes);
    product_release(&product);
  }
}

/* Blocks look up the structure before they wait, and by several vectors let the next kernel start behind their
 * products; not beside other regions. */
static void test_early_blocks(void **state) {
  static const char *const wait = "wait_behind(columns[0]", *const next = "start_next();  // not before";
  (void)state;
  struct product early = several("fe3,n=6", "recipe=blocks"),
                 whole = several("dense,rows=600,cols=600", "recipe=blocks"),
                 one = product_of("fe3,n=6", "recipe=blocks"),
                 part = several("block,blocks_r=40,per_row=3,scattered=4", "recipe=tiles");
  assert_true(has(&early, wait) && has(&early, next));
  assert_true(has(&whole, wait) && has(&whole, "start_next();"));
  assert_true(has(&one, wait) && !has(&one, next));
  assert_false(has(&part, wait) || has(&part, "start_next"));
  product_release(&early);
  product_release(&whole);
  product_release(&one);
  product_release(&part);
}

/* Registers: thread blocks of a multiprocessor as the option says, for the kernels of several vectors alone. */
static void test_blocks(void **state) {
  (void)state;
  struct product usual = several("random,rows=300,cols=300,per_row=24", "recipe=sell sell-vary=on");
  struct product three = several("random,rows=300,cols=300,per_row=24", "recipe=sell sell-vary=on vector-blocks=3");
  assert_false(has(&usual, "blocks_that_fit(3, kThreads)"));
  assert_true(has(&three, "blocks_that_fit(3, kThreads)"));
  assert_true(has(&three, "blocks_that_fit(5, kThreads)")); /* the kernel for one */
  assert_memory_not_equal(&usual.plan->hash, &three.plan->hash, sizeof usual.plan->hash);
  product_release(&usual);
  product_release(&three);
}

static int copies(const struct product *product) { return product->plan->shares[CB_VECTORS_COPIED].each > 0; }

/* Gathers of single entries are 8 sectors for a nonzero, a row of X is 2; but laying out X takes time as well, and rows
 * of neighbouring columns share sectors anyway. */
static void test_copied(void **state) {
  (void)state;
  struct product random = several("random,rows=200000,cols=200000,per_row=24", "recipe=sell");
  struct product few = several("random,rows=200000,cols=1000000,per_row=4", "recipe=sell");
  struct product stencil = several("stencil7,n=60", "recipe=sell");
  struct product diagonals = several("stencil7,n=60", "recipe=dia");
  assert_true(copies(&random));
  assert_memory_equal(&random.plan->shares[CB_VECTORS_COPIED], &random.plan->shares[CB_VECTORS_PACKED],
                      sizeof(struct cb_vector_share));
  assert_false(copies(&few));
  assert_false(copies(&stencil));
  assert_false(copies(&diagonals));
  product_release(&random);
  product_release(&few);
  product_release(&stencil);
  product_release(&diagonals);
}

/* As the option says; but kernels that read no arrays have no place for scratch, nor those that take one vector. */
static void test_copied_by_option(void **state) {
  static const struct {
    const char *matrix, *settings;
    int copies;
  } cases[] = {
      {"random,rows=200000,cols=200000,per_row=24", "recipe=sell copy-x=off", 0},
      {"stencil7,n=6", "recipe=sell copy-x=on", 1},
      {"stencil7,n=6", "recipe=dia copy-x=on", 1},
      {"tridiagonal,n=200,values=ones", "recipe=dia values=fixed copy-x=on", 0},
      {"stencil7,n=6", "recipe=tile copy-x=on", 0},
      {"empty,rows=0,cols=9", "recipe=sell copy-x=on", 0},
      {"empty,rows=9,cols=0", "recipe=sell copy-x=on", 0},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct product product = several(cases[i].matrix, cases[i].settings);
    if (copies(&product) != cases[i].copies) fail_msg("%s, %s", cases[i].matrix, cases[i].settings);
    product_release(&product);
  }
}

/* A recipe that takes several vectors in one pass wins where it would lose by one, whether plans are compared or a
 * profile says which. */
static void test_auto(void **state) {
  static const char *const matrix = "multiblock,blocks=6,n=40", *const searches[] = {"search=hopeful", "search=profile"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    char settings[80];
    snprintf(settings, sizeof settings, "recipe=auto %s", searches[i]);
    struct product one = product_of(matrix, settings), eight = several(matrix, settings);
    assert_int_equal(one.plan->is_chosen_by_profile, i);
    assert_int_equal(eight.plan->is_chosen_by_profile, i);
    assert_ptr_not_equal(one.plan->recipe, eight.plan->recipe);
    assert_true(eight.plan->shares[CB_VECTORS_PACKED].each > 0);
    product_release(&one);
    product_release(&eight);
  }
}

/* Of two plans that take about as long the one that stores less is taken, which of 16 vectors is a small part of what
 * they read: there the faster one. */
static void test_near_ties(void **state) {
  (void)state;
  struct product product = several("stencil7,n=40", "vectors=16 recipe=auto dia-fill=100");
  struct product sell = several("stencil7,n=40", "vectors=16 recipe=sell");
  struct product patterns = several("stencil7,n=40", "vectors=16 recipe=patterns");
  const int64_t least = sell.plan->cost.ns;
  assert_in_range(patterns.plan->cost.ns - least, 1, least / 32 - 1);
  assert_true(cb_plan_bytes(patterns.plan) * 9 < cb_plan_bytes(sell.plan) * 8);
  assert_string_equal(product.plan->recipe, "sell");
  product_release(&product);
  product_release(&sell);
  product_release(&patterns);
}

/* Block rows of several rows, in threads that share their vectors; entries of hot columns take as much shared memory as
 * all vectors of a pass ask for, and one product's scratch leaves the other vectors out. */
static void test_layouts(void **state) {
  static const struct {
    const char *matrix, *settings;
    int each, parts;
    enum cb_sharing sharing;
  } cases[] = {
      {"stencil7,n=12", "recipe=patterns", 2, 4, CB_SHARING_LANES},
      {"fe3,n=6", "recipe=patterns", 2, 4, CB_SHARING_LANES},
      {"rmat,scale=9,edge_factor=12", "recipe=hot hot-columns=20", 2, 4, CB_SHARING_TURNS},
      {"rmat,scale=9,edge_factor=12", "recipe=hot hot-columns=20 type=f32", 4, 2, CB_SHARING_TURNS},
      {"rmat,scale=9,edge_factor=12", "recipe=hot hot-columns=20 hot-gather=on", 0, 0, CB_SHARING_LANES},
      {"random_exact,blocks_r=9,block_nnz=33", "recipe=cb", 4, 1, CB_SHARING_LANES},
      {"random,rows=300,cols=500,density=0.2", "recipe=cb", 0, 0, CB_SHARING_LANES}, /* COO sub-blocks */
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct product product = several(cases[i].matrix, cases[i].settings);
    assert_share(&product, CB_VECTORS_PACKED, cases[i].each, cases[i].parts, cases[i].sharing);
    product_release(&product);
  }
  struct product hot = several("rmat,scale=9,edge_factor=12", "recipe=hot hot-columns=20");
  assert_int_equal(hot.plan->regions[0].dynamic_shared, 20 * 8 * 8);
  product_release(&hot);
}

/* Sums that regions in turn keep in shared memory are as many times larger: so many vectors have no room. */
static void test_kept(void **state) {
  (void)state;
  struct product small = several("stencil5,n=60,extra=0.2,values=ones", "recipe=dia values=fixed fuse=on"),
                 large = several("stencil5,n=60,extra=0.2,values=ones", "recipe=dia values=fixed fuse=on dia-rows=4");
  assert_non_null(strstr(small.plan->line, "in-turn"));
  assert_non_null(strstr(large.plan->line, "in-turn"));
  assert_share(&small, CB_VECTORS_PACKED, 8, 1, CB_SHARING_LANES);
  assert_share(&large, CB_VECTORS_PACKED, 4, 1, CB_SHARING_LANES);
  assert_true(large.plan->regions[0].static_shared * 4 <= CB_STATIC_SHARED);
  product_release(&small);
  product_release(&large);
}

/* What all vectors take decides: where rows are short, sell's warps wait once more for each thread that shares a row's
 * vectors, so that two threads do, and merge wins, however many rows end in a tile. Long rows are for sell. */
static void test_choice(void **state) {
  (void)state;
  struct product short_rows = several("powerlaw,rows=1500000,max=700", "recipe=auto");
  struct product long_rows = several("uniform,n=200000,per_row=16", "recipe=auto");
  struct product few = several("random,rows=300000,cols=300000,per_row=3", "recipe=sell sell-vary=off sell-lanes=1");
  struct product more = several("random,rows=300000,cols=300000,per_row=16", "recipe=sell sell-vary=off sell-lanes=1");
  assert_string_equal(short_rows.plan->recipe, "merge");
  assert_string_equal(long_rows.plan->recipe, "sell");
  assert_share(&few, CB_VECTORS_PACKED, 4, 2, CB_SHARING_LANES);
  assert_share(&more, CB_VECTORS_PACKED, 2, 4, CB_SHARING_LANES);
  product_release(&short_rows);
  product_release(&long_rows);
  product_release(&few);
  product_release(&more);
}

struct measured {
  const char *matrix, *settings;
  double us;
};

static void assert_predicted(const struct measured *measured) {
  struct product product = several(measured->matrix, measured->settings);
  const double us = 1e-3 * (double)product.plan->cost.gpu_ns / 1.1 / measured->us;
  if (us < 0.85 || us > 1.15)
    fail_msg("%s: %g times what was measured, %g us, is predicted", product.plan->line, us, measured->us);
  product_release(&product);
}

/* Of finite elements and grids, by layouts whose warps go step by step: a tenth more than measured on an H200
 * (bench/results), give or take a seventh. Lines of L1, as many as a load's rows of X are apart and as its bytes fill,
 * tell diagonals beside sell (128 lines for each nonzero of 32 rows) from blocks; rounds of thread blocks, of which two
 * of patterns with two vectors of a thread find room, but one with four, tell these from du. */
static void test_predicted(void **state) {
  static const struct measured cases[] = {
      {"fe3,n=16", "vectors=8 recipe=blocks", 4.2}, {"fe3,n=16", "vectors=8 recipe=dia", 25.8},
      {"fe3,n=16", "vectors=8 recipe=patterns", 9.6}, {"fe3,n=12", "vectors=4 recipe=dia", 9.2},
      {"fe3,n=12", "vectors=4 recipe=blocks", 2.5}, {"fe3,n=20", "vectors=16 recipe=blocks", 10.8},
      {"fe3,n=20", "vectors=16 recipe=patterns", 12.2}, {"fe3,n=20", "vectors=16 recipe=dia", 89.0},
      {"fe3,n=24", "vectors=16 recipe=patterns", 23.3}, {"fe3,n=28", "vectors=32 recipe=patterns", 69.9},
      {"fe3,n=28", "vectors=32 recipe=blocks", 62.6}, {"stencil27,n=28", "vectors=16 recipe=dia", 7.8},
      {"stencil7,n=32", "vectors=32 recipe=dia", 5.4}, {"stencil27,n=28", "vectors=32 recipe=patterns", 15.4},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_predicted(&cases[i]);
}

/* Warps that share vectors ask for fewer lines, as a row's columns are neighbours; of scattered ones L2 gives several
 * sectors of a line faster than as many lines. */
static void test_predicted_sell(void **state) {
  static const struct measured cases[] = {{"fe3,n=16", "vectors=8 recipe=sell", 9.1},
                                          {"fe3,n=16", "vectors=16 recipe=sell", 19.5},
                                          {"stencil27,n=28", "vectors=16 recipe=sell", 11.8},
                                          {"rmat,scale=16", "vectors=16 recipe=sell", 20.6}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_predicted(&cases[i]);
}

/* Thread blocks of 256 threads that a multiprocessor holds, as compiled: 122 registers; 144, as four vectors of a
 * thread do not fit 128; 56, where one thread block is all that is asked for. */
static void test_room(void **state) {
  static const struct {
    const char *matrix, *settings;
    int64_t held;
  } cases[] = {{"fe3,n=28", "vectors=16 recipe=patterns", 2},
               {"fe3,n=28", "vectors=32 recipe=patterns", 1},
               {"stencil7,n=32", "vectors=16 recipe=dia", 4}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct product product = several(cases[i].matrix, cases[i].settings);
    const struct cb_plan *plan = product.plan;
    assert_int_equal(cb_room_held(plan, &plan->shares[CB_VECTORS_PACKED], &plan->launches[0]), cases[i].held);
    product_release(&product);
  }
}

/* Of small finite elements du's launches overlap the most; of 16 vectors most of its time is products, which threads of
 * other layouts wait for. */
static void test_finite_elements(void **state) {
  static const struct {
    const char *matrix, *settings, *recipe;
  } cases[] = {{"fe3,n=8", "recipe=auto", "du"},
               {"fe3,n=16", "recipe=auto", "blocks"},
               {"fe3,n=16", "vectors=16 recipe=auto", "blocks"},
               {"fe3,n=24", "vectors=16 recipe=auto", "du"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct product product = several(cases[i].matrix, cases[i].settings);
    assert_string_equal(product.plan->recipe, cases[i].recipe);
    product_release(&product);
  }
}

/* Of pieces of products in shared memory there are no more than fit. */
static void test_items(void **state) {
  (void)state;
  struct product most = several("random,rows=300,cols=300,per_row=24", "recipe=merge merge-items=11");
  product_release(&most);
  struct cb_diag message = {0};
  assert_int_equal(plan_status_of("random,rows=300,cols=300,per_row=24", "recipe=merge vectors=2 merge-items=13", &message),
                   CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(message.message, "shared memory has room for 11"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_meeting),  cmocka_unit_test(test_threads), cmocka_unit_test(test_tiles),
      cmocka_unit_test(test_tile_warps), cmocka_unit_test(test_copied),
      cmocka_unit_test(test_auto),   cmocka_unit_test(test_copied_by_option), cmocka_unit_test(test_blocks),
      cmocka_unit_test(test_layouts),  cmocka_unit_test(test_kept),             cmocka_unit_test(test_items),
      cmocka_unit_test(test_choice),   cmocka_unit_test(test_near_ties),        cmocka_unit_test(test_block_lanes),
      cmocka_unit_test(test_early_blocks), cmocka_unit_test(test_finite_elements), cmocka_unit_test(test_predicted),
      cmocka_unit_test(test_predicted_sell), cmocka_unit_test(test_room),
  };
  return cmocka_run_group_tests_name("vectors", tests, NULL, NULL);
}
