// SPDX-License-Identifier: Apache-2.0
/* The layout of natural blocks: which size it finds and what it refuses, that every nonzero has a slot, what
 * the text leaves out, the same bytes for any number of threads, every allocation failing once, and products
 * of many shapes against the oracle through the host execution. */
#include "tests/layouts.h"

#include "analysis/layout.h"
#include "analysis/tiles.h"

#include <omp.h>

static const char *const all_sizes[] = {"1x2", "2x1", "2x2", "3x3", "4x4", "5x5", "6x6", "8x8"};
enum { ALL_SIZES = sizeof all_sizes / sizeof *all_sizes };

static struct product blocks_of(const char *matrix, const char *settings) {
  char text[256];
  snprintf(text, sizeof text, "recipe=blocks %s", settings);
  return product_of(matrix, text);
}

static void expect_size(const char *matrix, const char *settings, const char *size) {
  struct product product = blocks_of(matrix, settings);
  if (strcmp(fact(&product, "size"), size))
    fail_msg("%s: %s instead of %s", matrix, product.plan->line, size);
  product_release(&product);
}

static void finds_the_size(void **state) {
  (void)state;
  expect_size("fe3,n=30", "", "3 3");
  expect_size("fe3,n=32,dof=2", "", "2 2");
  expect_size("fe3,n=20,dof=4", "", "4 4");
  expect_size("fe3,n=20,dof=4", "type=f32", "4 4");
  expect_size("block,blocks_r=40,r=1,c=2,per_row=5", "", "1 2");
  expect_size("block,blocks_r=40,r=2,c=1,per_row=5", "", "2 1");
  expect_size("block,blocks_r=40,r=3,c=3,per_row=5,fill=0.95", "", "3 3");
  /* 2 x 2 is 80 % full; 2 x 1 is 83 %. */
  expect_size("block,blocks_r=3000,r=2,c=2,per_row=4,fill=0.8", "type=bf16-f32 block-fill=82", "2 1");
  /* Few threads wait long for the values of a large block: parts of it take less time, though more bytes. */
  expect_size("fe3,n=6", "", "2 1");
  expect_size("fe3,n=5,dof=6", "", "2 1");
  expect_size("block,blocks_r=9000,r=6,c=6,per_row=8", "", "3 3");
  expect_size("fe3,n=5,dof=6", "vectors=8", "3 3"); /* several vectors: fewest bytes */
  expect_size("fe3,n=5,dof=6", "block-size=6x6", "6 6");
}

static enum cb_status status_of(const char *matrix, const char *settings, struct cb_diag *message) {
  char text[256];
  snprintf(text, sizeof text, "recipe=blocks %s", settings);
  return plan_status_of(matrix, text, message);
}

static void refuses_what_has_no_blocks(void **state) {
  (void)state;
  struct cb_diag message = {0};
  assert_int_equal(status_of("stencil7,n=12", "", &message), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(message.message, "block-fill"));
  assert_int_equal(status_of("random,rows=300,cols=300,density=0.02", "", &message), CB_ERR_UNSUPPORTED);
  assert_int_equal(status_of("checker,rows=50,cols=60", "", &message), CB_ERR_UNSUPPORTED);
  /* Fill decides: blocks are 80 % full. */
  const char *sparse = "block,blocks_r=300,r=3,c=3,per_row=5,fill=0.8";
  assert_int_equal(status_of(sparse, "block-size=3x3", &message), CB_ERR_UNSUPPORTED);
  assert_int_equal(status_of(sparse, "block-size=3x3 block-fill=70", &message), CB_OK);
  /* Lengths decide: a few block rows hold nearly everything, or one chain is endless. */
  assert_int_equal(
      status_of("powerlaw,rows=4000,cols=60000,max=50000", "block-size=1x2 block-fill=1", &message),
      CB_ERR_UNSUPPORTED);
  assert_int_equal(status_of("dense,rows=64,cols=4000", "block-size=2x2 block-lanes=1", &message),
                   CB_ERR_UNSUPPORTED);
  assert_int_equal(status_of("dense,rows=64,cols=4000", "block-size=2x2", &message), CB_OK);
}

/* Of a large matrix a sample of block rows chooses the size: here it meets full blocks alone, and the others are half
 * empty. The whole decides. */
static void a_sample_that_errs_is_noticed(void **state) {
  (void)state;
  enum { TILE_ROWS = 1 << 14, CHUNK = 64, STRIDE = 16 };
  struct cb_csr csr;
  struct cb_diag diag = {0};
  struct cb_options options;
  struct cb_target target;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  int64_t at = 0;
  assert_ok(cb_csr_alloc(&csr, 2 * TILE_ROWS, 2 * TILE_ROWS, 2 * TILE_ROWS + 2 * TILE_ROWS / STRIDE, &diag));
  int32_t *starts = csr.row_ptr;
  for (int32_t row = 0; row < 2 * TILE_ROWS; row++) {
    const int full = row / 2 / CHUNK % STRIDE == 0;
    for (int32_t i = 0; i < 2; i++)
      if (full || i == row % 2) csr.col_idx[at++] = row - row % 2 + i;
    starts[row + 1] = (int32_t)at;
  }
  assert_int_equal(at, csr.nnz);
  for (int64_t k = 0; k < csr.nnz; k++) csr.values[k] = 1;
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  set_options(&options, "recipe=blocks block-size=2x2");
  assert_int_equal(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(diag.message, "of that size are"));
  assert_null(plan);
  cb_csr_release(&csr);
}

/* A search goes on when the layout refuses, and takes it where it is made for. */
static void auto_takes_blocks(void **state) {
  (void)state;
  struct product none = product_of("stencil7,n=12", "recipe=auto");
  assert_string_not_equal(none.plan->recipe, "blocks");
  struct product elements = product_of("fe3,n=20", "recipe=auto");
  assert_string_equal(elements.plan->recipe, "blocks");
  product_release(&none);
  product_release(&elements);
}

static void every_nonzero_has_one_slot(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  for (int size = 0; size < ALL_SIZES; size++)
    for (unsigned per_mille = 0; per_mille <= 1000; per_mille += 125)
      for (int lanes = 1; lanes <= 32; lanes *= 4) {
        char settings[128];
        snprintf(settings, sizeof settings, "recipe=blocks block-fill=1 block-size=%s block-lanes=%d",
                 all_sizes[size], lanes);
        struct product product = product_of_matrix(random_matrix(83, 70, per_mille, per_mille), settings);
        assert_ok(cb_plan_check(product.plan, &diag));
        assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
        product_release(&product);
      }
  for (unsigned per_mille = 0; per_mille <= 1000; per_mille += 125) {
    struct product product =
        product_of_matrix(random_matrix(83, 70, per_mille, per_mille), "recipe=blocks block-fill=1 block-size=8x8 vectors=8");
    assert_int_equal(product.plan->regions[0].value_slots, 64 * strtol(fact(&product, "steps"), NULL, 10));
    assert_ok(cb_plan_check(product.plan, &diag));
    assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
    product_release(&product);
  }
}

/* The number of blocks, against a dense picture. */
static void blocks_match_a_count(void **state) {
  (void)state;
  static const int shapes[][2] = {{1, 2}, {2, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}, {8, 8}};
  for (int size = 0; size < ALL_SIZES; size++)
    for (uint64_t seed = 0; seed < 12; seed++) {
      const int64_t rows = 40 + (int64_t)seed, cols = 61 - 2 * (int64_t)seed, r = shapes[size][0],
                    c = shapes[size][1];
      unsigned char touched[64][64] = {{0}};
      char settings[96];
      long blocks = 0;
      snprintf(settings, sizeof settings, "recipe=blocks block-fill=1 block-size=%s", all_sizes[size]);
      struct product product =
          product_of_matrix(random_matrix(rows, cols, 30 + 90 * (unsigned)seed, seed), settings);
      for (int64_t i = 0; i < rows; i++)
        for (int64_t k = cb_csr_row(product.csr, i); k < cb_csr_row(product.csr, i + 1); k++)
          touched[i / r][product.csr->col_idx[k] / c] = 1;
      for (int i = 0; i < 64 * 64; i++) blocks += touched[i / 64][i % 64];
      assert_int_equal(strtol(fact(&product, "blocks"), NULL, 10), blocks);
      product_release(&product);
    }
}

static void stores_little(void **state) {
  (void)state;
  struct product product = blocks_of("fe3,n=40", "block-lanes=1");
  /* 8 of the value, 2 / 9 of the offset, padding of slices at the grid's edges. */
  assert_true(cb_plan_bytes(product.plan) * 10 < product.csr->nnz * 87);
  assert_int_equal(array_of(&product, "column_offset")->type, CB_U16);
  product_release(&product);
}

static void text_has_what_it_needs(void **state) {
  (void)state;
  struct product full = blocks_of("fe3,n=6", "block-size=3x3");
  assert_null(array_of(&full, "present"));
  assert_false(has(&full, "is_finite"));
  assert_false(has(&full, "< kCols"));
  assert_true(has(&full, "< kRows")); /* 216 block rows fill no thread blocks */
  struct product holes = blocks_of("block,blocks_r=300,r=3,c=3,per_row=5,fill=0.9", "");
  assert_non_null(array_of(&holes, "present"));
  assert_true(has(&holes, "is_finite(sums[i])"));
  /* 512 block rows of two rows: whole thread blocks; all of the same length: no array of lengths. */
  struct product whole = blocks_of("block,blocks_r=512,r=2,c=2,per_row=5", "block-lanes=1");
  assert_false(has(&whole, "< kRows"));
  assert_false(has(&whole, "shuffle_xor("));
  assert_int_equal(array_of(&whole, "local_row_length")->storage, CB_AFFINE);
  assert_true(has(&whole, "value_vector<kVector>"));
  /* The right edge cuts blocks: x is guarded, and what lies beyond it is no absent entry. */
  struct product cut = blocks_of("dense,rows=40,cols=301", "block-size=2x2");
  assert_true(has(&cut, "column < kCols"));
  assert_null(array_of(&cut, "present"));
  struct product *const all[] = {&full, &holes, &whole, &cut};
  for (int i = 0; i < 4; i++) product_release(all[i]);
}

/* Seven unknowns: rows of blocks differ so much that slices need an order by one lane and by two, and none by four. Two
 * are what 7 multiprocessors want. */
static void an_order_lets_lanes_share_block_rows(void **state) {
  static const struct {
    int multiprocessors;
    const char *lanes, *sorted;
  } cases[] = {{7, "2", "yes"}, {14, "4", "none"}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_target target;
    struct cb_diag diag = {0};
    assert_ok(cb_target_find(&target, "sm_90", &diag));
    target.multiprocessors = cases[i].multiprocessors;
    struct product product = product_on_target(matrix_of("fe3,n=8,dof=7"), "recipe=blocks", &target);
    assert_string_equal(fact(&product, "lanes"), cases[i].lanes);
    assert_string_equal(fact(&product, "sorted"), cases[i].sorted);
    product_release(&product);
  }
}

/* Three tenths of the L2 of an H200 are 18.9 MB. */
static void what_streams_far_starts_nothing_early(void **state) {
  static const struct {
    const char *matrix;
    int is_late;
  } cases[] = {{"block,blocks_r=2700,r=8,c=8,per_row=13", 1},  /* 18.0 MB */
               {"block,blocks_r=2700,r=8,c=8,per_row=14", 0}}; /* 19.4 MB */
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct product product = blocks_of(cases[i].matrix, "block-size=8x8");
    assert_true(product.plan->launches[0].blocks <= CB_LATE_BLOCKS);
    assert_int_equal(has(&product, "  start_next();"), cases[i].is_late);
    assert_int_equal(has(&product, "  wait_behind("), cases[i].is_late);
    product_release(&product);
  }
}

static void threads_change_nothing(void **state) {
  static const char *const matrices[] = {"fe3,n=9", "block,blocks_r=700,r=2,c=2,per_row=5,fill=0.9",
                                         "block,blocks_r=300,blocks_c=90,r=4,c=4,per_row=7", "fe3,n=3,dof=5"};
  (void)state;
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) check_threads(matrices[m], "recipe=blocks");
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  assert_true(check_allocations(random_matrix(61, 60, 250, 9), "recipe=blocks block-fill=1") > 15);
  assert_true(check_allocations(random_matrix(61, 60, 250, 9), "recipe=blocks block-fill=1 block-size=3x3") > 15);
  assert_true(check_allocations(random_matrix(61, 60, 250, 9), "recipe=blocks block-fill=1 block-size=8x8 vectors=8") > 15);
  assert_true(check_allocations(matrix_of("staircase,n=600"), "recipe=blocks block-fill=1 block-lanes=1") > 15);
}

/* ---- products against the oracle */

static void gather_next(struct gathered *gathered, const char *matrix, const char *settings) {
  static const char *const forms[] = {"ax", "add", "axpby"}, *const types[] = {"f64", "f32"};
  const int number = gathered->count; /* 8 sizes, 3 variants: both see all types and forms */
  char text[200];
  snprintf(text, sizeof text, "recipe=blocks type=%s form=%s block-fill=1 %s", types[number % 2],
           forms[number / 2 % 3], settings);
  gather(gathered, matrix, text);
}

/* Edges that cut blocks, absent entries, empty rows, single rows and columns; every size, every form, both
 * types. */
static void products_of_all_sizes(void **state) {
  (void)state;
  static const char *const matrices[] = {
      "dense,rows=37,cols=41",
      "dense,rows=1,cols=19",
      "dense,rows=19,cols=1",
      "empty,rows=20,cols=9",
      "random,rows=70,cols=45,density=0.2",
      "hypersparse,rows=150,cols=150,keep=0.2,per_row=3",
      "staircase,n=70",
      "block,blocks_r=30,blocks_c=20,r=6,c=6,per_row=3,fill=0.9",
      "explicit_zeros,rows=50,cols=61,density=0.3,zeros=0.4",
  };
  struct gathered gathered = {0};
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++)
    for (int size = 0; size < ALL_SIZES; size++) {
      char settings[96];
      snprintf(settings, sizeof settings, "block-size=%s block-lanes=%d block-batch=%d", all_sizes[size],
               (int)(m + (size_t)size) % 3 ? 1 << (m + (size_t)size) % 6 : 0,
               (int)(m * 3 + (size_t)size) % 6);
      gather_next(&gathered, matrices[m], settings);
    }
  verify_gathered(&gathered);
}

/* What the layout is for, as it decides itself. */
static void products_of_natural_blocks(void **state) {
  (void)state;
  static const char *const matrices[] = {
      "fe3,n=2",
      "fe3,n=4",
      "fe3,n=5,dof=2",
      "fe3,n=3,dof=4",
      "fe3,n=3,dof=5",
      "fe3,n=3,dof=6",
      "fe3,n=2,dof=8",
      "block,blocks_r=70,r=1,c=2,per_row=4",
      "block,blocks_r=70,r=2,c=1,per_row=4,fill=0.9",
      "block,blocks_r=256,r=2,c=2,per_row=4",
      "block,blocks_r=50,blocks_c=90,r=3,c=3,per_row=4,fill=0.9",
      "block,blocks_r=40,r=4,c=4,per_row=3,fill=0.9",
      "block,blocks_r=30,r=5,c=5,per_row=3",
      "block,blocks_r=20,r=8,c=8,per_row=3,fill=0.95",
      "dense,rows=64,cols=64",
  };
  struct gathered gathered = {0};
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++)
    for (int variant = 0; variant < 6; variant++)
      gather_next(&gathered, matrices[m], variant < 3 ? "" : "block-lanes=1");
  verify_gathered(&gathered);
}

/* Tensor cores: edges that cut blocks, absent entries, empty block rows, one to eight warps for a block row. */
static void products_of_whole_blocks(void **state) {
  (void)state;
  static const char *const matrices[] = {
      "dense,rows=37,cols=41",
      "dense,rows=9,cols=300",
      "dense,rows=19,cols=1",
      "random,rows=70,cols=45,density=0.2",
      "hypersparse,rows=150,cols=150,keep=0.2,per_row=3",
      "block,blocks_r=11,r=8,c=8,per_row=5,fill=0.95",
  };
  static const char *const variants[] = {"vectors=8", "vectors=16 form=add", "vectors=8 copy-x=on form=axpby block-batch=3",
                                         "vectors=8 values=fixed type=f32-f64"};
  struct gathered gathered = {0};
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) {
    char settings[160];
    snprintf(settings, sizeof settings, "recipe=blocks block-fill=1 block-size=8x8 %s", variants[m % 4]);
    gather(&gathered, matrices[m], settings);
    assert_int_equal(gathered.products[m].plan->regions[0].sharing, CB_SHARING_TILES);
  }
  verify_gathered(&gathered);
}

/* Thread blocks for several vectors in rounds of four for each multiprocessor, and a rest; as many vectors as threads
 * share. */
static void products_of_dealt_blocks(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct gathered gathered = {0};
  struct product *product = gather(&gathered, "block,blocks_r=1250,r=1,c=2,per_row=2",
                                   "recipe=blocks block-size=1x2 block-lanes=1 vectors=4 vector-threads=2");
  assert_false(has(product, "dealt_block")); /* too few for the GPU */
  const struct cb_label label = {"test", "test", cb_csr_pattern_hash(product->csr)};
  product->plan->target.multiprocessors = 2;
  cb_source_release(&product->source);
  assert_ok(cb_source_emit(&product->source, product->plan, &label, &product->blob, CB_EMBED_NEVER, &diag));
  assert_true(has(product, "blockIdx.x >= 8")); /* of ten, two of which fill no round */
  verify_gathered(&gathered);
  struct product large = blocks_of("block,blocks_r=70000,r=1,c=2,per_row=1",
                                   "block-size=1x2 block-lanes=1 vectors=4 vector-threads=2");
  assert_true(has(&large, "kDealt = 4, kMultiprocessors = 132"));
  assert_true(has(&large, "blockIdx.x >= 528"));
  product_release(&large);
}

/* Block rows of varied length are sorted. */
static void products_of_sorted_rows(void **state) {
  (void)state;
  struct gathered gathered = {0};
  for (int variant = 0; variant < 6; variant++)
    gather_next(&gathered, "powerlaw,rows=6000,cols=700,max=600", "block-size=1x2 block-lanes=1");
  for (int i = 0; i < gathered.count; i++) {
    assert_string_not_equal(fact(&gathered.products[i], "sorted"), "none");
    assert_non_null(array_of(&gathered.products[i], "row_of"));
  }
  verify_gathered(&gathered);
}

/* ---- tiles, counted one by one */

static struct cb_tile_census census_by_hand(const struct cb_csr *csr, struct cb_tile_size size, int64_t fill) {
  const int64_t across = csr->cols / size.cols + 1, tiles = cb_tile_rows(csr, size) * across;
  unsigned char *entries = calloc((size_t)tiles, 1);
  struct cb_tile_census census = {.nonzeros = csr->nnz};
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      entries[row / size.rows * across + csr->col_idx[k] / size.cols]++;
  for (int64_t i = 0; i < tiles; i++) {
    const int full = entries[i] && entries[i] * 100 >= fill * cb_tile_area(size);
    census.tiles += entries[i] > 0;
    census.full += full;
    census.inside += full ? entries[i] : 0;
  }
  free(entries);
  return census;
}

/* Where columns are near each other, and where they are too far apart for places. */
static void tiles_match_a_count(void **state) {
  (void)state;
  static const char *const matrices[] = {
      "fe3,n=5", "random,rows=90,cols=70,density=0.4", "random,rows=61,cols=70003,density=0.002",
      "block,blocks_r=40,r=4,c=4,per_row=5,fill=0.8", "random,rows=5,cols=9,density=0",
      "powerlaw,rows=700,cols=40000,max=300"};
  static const int64_t fills[] = {0, 1, 50, 75, 99, 100};
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) {
    struct cb_csr csr;
    struct cb_diag diag = {0};
    assert_ok(cb_matrix_generate(&csr, matrices[m], &diag));
    for (size_t i = 0; i < CB_TILE_SIZES * sizeof fills / sizeof *fills; i++) {
      const struct cb_tile_size size = cb_tile_sizes[i % CB_TILE_SIZES];
      const int64_t fill = fills[i / CB_TILE_SIZES];
      const struct cb_tile_census counted = cb_tiles_count(&csr, size, fill, 1, NULL);
      const struct cb_tile_census expected = census_by_hand(&csr, size, fill);
      if (memcmp(&counted, &expected, sizeof expected))
        fail_msg("%s, %d x %d, %d %%: %lld tiles, %lld full", matrices[m], size.rows, size.cols, (int)fill,
                 (long long)counted.tiles, (long long)counted.full);
    }
    cb_csr_release(&csr);
  }
}

/* What it looks up comes before the wait for the kernel before, values and x behind it. */
static void verify_sees_what_is_not_waited_for(void **state) {
  static const struct change changes[] = {
      {"fe3,n=3", "block-size=3x3 form=ax", "  wait_behind(columns[0]", "  (void)(columns[0]"},
      {"fe3,n=3", "block-size=3x3 form=ax bake-limit=0", "  wait_behind(columns[0]",
       "  if (value(arrays, first) == 3) return;\n  wait_behind(columns[0]"},
  };
  (void)state;
  check_changes_are_seen(changes, sizeof changes / sizeof *changes, "blocks");
}

int main(void) {
  omp_set_num_threads(1); /* small matrices: threads that wait for each other only cost time */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_the_size),
      cmocka_unit_test(tiles_match_a_count),
      cmocka_unit_test(refuses_what_has_no_blocks),
      cmocka_unit_test(a_sample_that_errs_is_noticed),
      cmocka_unit_test(auto_takes_blocks),
      cmocka_unit_test(every_nonzero_has_one_slot),
      cmocka_unit_test(blocks_match_a_count),
      cmocka_unit_test(stores_little),
      cmocka_unit_test(text_has_what_it_needs),
      cmocka_unit_test(an_order_lets_lanes_share_block_rows),
      cmocka_unit_test(what_streams_far_starts_nothing_early),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(products_of_all_sizes),
      cmocka_unit_test(products_of_natural_blocks),
      cmocka_unit_test(products_of_whole_blocks),
      cmocka_unit_test(products_of_dealt_blocks),
      cmocka_unit_test(products_of_sorted_rows),
      cmocka_unit_test(verify_sees_what_is_not_waited_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
