// SPDX-License-Identifier: Apache-2.0
/* Layout du by four vectors and more: what arrays say against the matrix; how many warps share a chunk, and what is
 * cut; the order of long rows; when it is chosen; failing allocations; products against the oracle. */
#include "tests/layouts.h"

#include "analysis/plan/recipe.h"

/* ---- what the arrays say, read as the kernel reads them */

enum { BATCH = 4 };

static int64_t chunk_of(const struct product *product, int64_t unit) {
  const int64_t segments = constant(product, "kSegments", 0);
  if (unit >= segments) return unit - constant(product, "kBefore", 0);
  int64_t chunk = 0;
  while (element(product, "first_segment", chunk + 1) <= unit) chunk++;
  return chunk;
}

/* Returns how many values the block has. */
static int64_t see_block(const struct product *product, struct picture *picture, int64_t unit, int64_t block) {
  const int64_t word = element(product, "tile", 2 * block), base = element(product, "first_column", unit);
  const int64_t first = element(product, "first_value", unit) + element(product, "tile", 2 * block + 1);
  int64_t count = 0;
  for (int64_t bit = 0; bit < 32; bit++) {
    if (!(word >> bit & 1)) continue;
    const int64_t place = block / BATCH * 4 * BATCH + BATCH * (bit % 4) + block % BATCH;
    see_value(picture, element(product, "row_of", 8 * chunk_of(product, unit) + bit / 4),
              base + element(product, "column_offset", place), value_at(product, first + count++));
  }
  return count;
}

static void see_rows(const struct product *product, struct picture *picture) {
  const int64_t chunks = strtol(fact(product, "chunks"), NULL, 10);
  for (int64_t i = 0; i < 8 * chunks; i++) {
    const int64_t row = element(product, "row_of", i);
    if (row < product->csr->rows) assert_int_equal(picture->commits[row]++, 0);
  }
}

static void arrays_describe_the_matrix(void **state) {
  (void)state;
  uint64_t seed = 11;
  int cut = 0;
  for (int round = 0; round < 60; round++) {
    char settings[160];
    const int64_t rows = 1 + (int64_t)(draw(&seed) % 90), cols = 1 + (int64_t)(draw(&seed) % 350);
    snprintf(settings, sizeof settings, "recipe=du vectors=8 crux-sort=%s du-segment=%d du-warps=%d bake-limit=%d",
             round % 3 ? "off" : "on", round % 4 ? 0 : 5, round % 5 ? 0 : 1 << round % 6, round % 7 ? 64 : 0);
    struct product product =
        product_of_matrix(random_matrix(rows, cols, 10 + (unsigned)(draw(&seed) % 600), seed), settings);
    struct picture picture = picture_for(product.csr);
    struct cb_diag diag = {0};
    int64_t values = 0;
    assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
    for (int64_t unit = 0; unit < region_of(&product)->blocks; unit++) {
      const int64_t begin = element(&product, "first_block", unit), end = element(&product, "first_block", unit + 1);
      assert_int_equal((end - begin) % BATCH, 0);
      for (int64_t block = begin; block < end; block++) values += see_block(&product, &picture, unit, block);
    }
    assert_int_equal(values, product.csr->nnz);
    see_rows(&product, &picture);
    cut += constant(&product, "kSegments", 0) > 0;
    check_picture_and_release(&picture, product.csr);
    product_release(&product);
  }
  assert_true(cut > 10 && cut < 50);
}

/* ---- what is chosen */

static void warps_and_segments_follow_the_chunks(void **state) {
  static const struct {
    const char *matrix, *settings, *warps;
    int cut;
  } cases[] = {{"random,rows=40,cols=30000,per_row=12000", "", "32", 1},
               {"random,rows=40,cols=30000,per_row=12000", "vectors=32", "8", 1}, /* more sums, fewer threads */
               {"random,rows=40,cols=30000,per_row=12000", "vectors=11", "16", 1},
               {"random,rows=40,cols=30000,per_row=12000", "du-warps=4", "4", 1},
               {"random,rows=40,cols=30000,per_row=12000", "du-segment=60000", "32", 0},
               {"dense,rows=300,cols=300", "", "32", 0},
               {"dense,rows=40,cols=2000", "", "32", 0}, /* four batches for a warp, which no second launch is worth */
               {"band,n=9000,half=20,per_row=6", "", "2", 0}}; /* all 1125 chunks at once */
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char settings[160];
    snprintf(settings, sizeof settings, "recipe=du vectors=8 %s", cases[i].settings);
    struct product product = product_of(cases[i].matrix, settings);
    const struct cb_region *region = region_of(&product);
    if (strcmp(fact(&product, "warps"), cases[i].warps) || (region->finish_blocks > 0) != cases[i].cut)
      fail_msg("%s, %s: %s", cases[i].matrix, settings, product.plan->line);
    assert_int_equal(region->sharing, CB_SHARING_TILES);
    assert_int_equal(region->threads, 32 * strtol(cases[i].warps, NULL, 10));
    if (!cases[i].cut) assert_int_equal(product.plan->launches_count, 1);
    product_release(&product);
  }
}

/* Sums of segments and what adds them up are there at once, on 132 multiprocessors with 1024 threads each. */
static void all_thread_blocks_are_there_at_once(void **state) {
  (void)state;
  struct product product = product_of("random,rows=40,cols=30000,per_row=12000", "recipe=du vectors=8");
  const struct cb_region *region = region_of(&product);
  assert_int_equal(region->threads, 1024);
  assert_true(region->blocks > 110 && 4 * region->blocks + region->finish_blocks <= 4 * 132);
  product_release(&product);
}

/* What is known of a unit's blocks is in shared memory if some warp has two batches and none more than eight. The
 * second launch starts behind the first one's loop where several thread blocks fit on a multiprocessor. */
static void what_is_known_of_blocks_is_brought(void **state) {
  static const struct {
    const char *matrix, *settings;
    int64_t stage; /* batches that there is room for; 0: none */
    int behind;
  } cases[] = {{"dense,rows=8,cols=1000", "du-warps=1 du-segment=999", 0, 0},        /* 63 batches */
               {"dense,rows=8,cols=1000", "du-warps=8 du-segment=999", 64, 0},       /* of 64, eight a warp */
               {"dense,rows=8,cols=1000", "du-warps=4 du-segment=999", 0, 0},        /* 16 a warp */
               {"dense,rows=8,cols=1000", "du-warps=32 du-segment=999", 64, 0},      /* two */
               {"dense,rows=8,cols=500", "du-warps=32 du-segment=999", 0, 0},        /* one */
               {"dense,rows=8,cols=560", "du-warps=32 du-segment=999", 64, 0},       /* 35 batches */
               {"dense,rows=8,cols=100", "du-warps=1 du-segment=999", 8, 0},         /* 7 */
               {"dense,rows=8,cols=10000", "du-segment=16 du-warps=1", 4, 1},
               {"dense,rows=8,cols=10000", "du-segment=64 du-warps=16", 0, 1},
               {"dense,rows=8,cols=10000", "du-segment=512 du-warps=32", 128, 0}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char settings[160];
    snprintf(settings, sizeof settings, "recipe=du vectors=8 %s", cases[i].settings);
    struct product product = product_of(cases[i].matrix, settings);
    const int64_t stage = constant(&product, "kStage", 0);
    if (stage != cases[i].stage || has(&product, "void bring(") != (stage > 0) ||
        has(&product, "  start_next();\n  if (kWarps > 1") != cases[i].behind)
      fail_msg("%s, %s: %lld batches: %s", cases[i].matrix, settings, (long long)stage, product.plan->line);
    /* its words, places of values and columns, and the sums of warps */
    const int64_t warps = region_of(&product)->threads / 32;
    assert_int_equal(region_of(&product)->static_shared, stage * 4 * (4 + 8 + 16) + (warps > 1 ? 8 * 32 * warps : 0));
    product_release(&product);
  }
}

/* Where tensor cores do not multiply by several vectors, a warp has a chunk, and vectors follow one another. */
static void others_are_as_for_one_vector(void **state) {
  static const char *const settings[] = {"vectors=2", "vectors=8 type=f32", "vectors=4 type=f32", "vectors=8 type=c128",
                                         "vectors=8 du-form=fma", "vectors=4 du-form=fma"};
  (void)state;
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    char all[160];
    snprintf(all, sizeof all, "recipe=du %s", settings[i]);
    struct product product = product_of("rmat,scale=8", all);
    assert_int_equal(region_of(&product)->takes_vectors, 0);
    assert_false(has(&product, "mma_f64_884"));
    product_release(&product);
  }
}

static int is_searched(int64_t nonzeros, int vectors) {
  const struct cb_recipe *recipe;
  for (int i = 0; (recipe = cb_recipe_searched(i, nonzeros, vectors)); i++)
    if (!strcmp(recipe->name, "du")) return 1;
  return 0;
}

static void the_search_looks_at_it_for_several_vectors(void **state) {
  static const struct {
    const char *matrix, *settings;
    int is_du;
  } cases[] = {{"random,rows=100,cols=20000,density=0.2", "recipe=auto vectors=8", 1},
               {"random,rows=100,cols=20000,density=0.2", "recipe=auto vectors=16", 1},
               {"random,rows=100,cols=20000,density=0.2", "recipe=auto vectors=4", 1},
               {"random,rows=100,cols=20000,density=0.2", "recipe=auto vectors=3", 1}, /* as 4 */
               {"random,rows=100,cols=20000,density=0.2", "recipe=auto vectors=2", 0},
               {"random,rows=100,cols=20000,density=0.2", "recipe=auto", 0},
               {"random,rows=200,cols=40000,density=0.2", "recipe=auto vectors=8", 0}, /* of large ones fuller ones */
               {"random,rows=160,cols=16000,density=0.5", "recipe=auto vectors=8", 1},
               {"tridiagonal,n=30000", "recipe=auto vectors=8", 0}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct product product = product_of(cases[i].matrix, cases[i].settings);
    const int is_du = !strcmp(product.plan->recipe, "du");
    if (is_du != cases[i].is_du) fail_msg("%s: %s", cases[i].matrix, product.plan->line);
    product_release(&product);
  }
  assert_true(is_searched(1 << 23, 4));
  assert_false(is_searched(1 << 23, 2));
  assert_false(is_searched((1 << 23) + 1, 8)); /* more than it was measured with */
}

/* Of large matrices those whose blocks are full enough are planned, and fewer of larger ones. */
static void what_is_too_empty_is_not_planned(void **state) {
  static const struct {
    const char *matrix, *settings;
    int is_planned;
  } cases[] = {{"random,rows=20000,cols=20000,per_row=12", "vectors=4", 1},            /* small */
               {"random,rows=20000,cols=20000,per_row=14", "vectors=4", 0},            /* 280000 nonzeros, 4 in a block */
               {"random,rows=20000,cols=20000,per_row=14", "vectors=4 search=all", 1},
               {"random,rows=2000,cols=20000,per_row=160", "vectors=4", 1},            /* of long rows */
               {"random,rows=12000,cols=150,per_row=30", "vectors=8", 1},              /* 6 in a block */
               {"random,rows=36000,cols=150,per_row=30", "vectors=8", 0}};             /* a million */
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char settings[160];
    snprintf(settings, sizeof settings, "recipe=auto %s", cases[i].settings);
    struct product product = product_of(cases[i].matrix, settings);
    const struct cb_candidate *candidate = NULL;
    for (int k = 0; k < product.plan->candidates_count; k++)
      if (!strcmp(product.plan->candidates[k].recipe, "du")) candidate = &product.plan->candidates[k];
    assert_non_null(candidate);
    if ((*candidate->refusal == 0) != cases[i].is_planned) fail_msg("%s: %s", cases[i].matrix, candidate->refusal);
    if (*candidate->refusal)
      assert_string_equal(candidate->refusal, "not tried: 8 neighbouring rows share too few columns");
    product_release(&product);
  }
}

/* ---- the order of long rows */

/* Row r has the columns that are r modulo 8 blocks of 400: chunks in order have all of them. */
static struct cb_csr dealt_rows(int64_t rows) {
  enum { LENGTH = 400 };
  struct cb_coo coo = {.rows = rows, .cols = 8 * LENGTH, .count = rows * LENGTH};
  struct cb_csr csr;
  struct cb_diag diag = {0};
  coo.row_idx = cb_alloc((size_t)coo.count, 4);
  coo.col_idx = cb_alloc((size_t)coo.count, 4);
  coo.values = cb_alloc((size_t)coo.count, 8);
  for (int64_t k = 0; k < coo.count; k++) {
    coo.row_idx[k] = (int32_t)(k / LENGTH);
    coo.col_idx[k] = (int32_t)(k / LENGTH % 8 * LENGTH + k % LENGTH);
    coo.values[k] = 1 + (double)(k % 7);
  }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  return csr;
}

static void rows_that_share_columns_share_chunks(void **state) {
  (void)state;
  struct product gathered = product_of_matrix(dealt_rows(64), "recipe=du vectors=8");
  struct product sorted = product_of_matrix(dealt_rows(64), "recipe=du vectors=8 crux-sort=on");
  assert_string_equal(fact(&gathered, "steps"), "800"); /* of 4 columns each */
  assert_string_equal(fact(&sorted, "steps"), "6400");
  product_release(&gathered);
  product_release(&sorted);
  struct product mesh = product_of("fe3,n=8,dof=8", "recipe=du vectors=8"); /* neighbours share most already */
  assert_int_equal(array_of(&mesh, "row_of")->storage, CB_AFFINE);
  product_release(&mesh);
}

/* ---- threads, allocations, products */

static const char *const planned[][2] = {{"random,rows=40,cols=3000,density=0.3", "recipe=du vectors=8 du-segment=40"},
                                         {"rmat,scale=9", "recipe=du vectors=16"}};

static void threads_change_nothing(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof planned / sizeof *planned; i++) check_threads(planned[i][0], planned[i][1]);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  assert_true(check_allocations(random_matrix(20, 400, 300, 5), "recipe=du vectors=8 du-segment=8") > 20);
}

static void products_match_the_oracle(void **state) {
  static const char *const matrices[] = {
      "empty,rows=70,cols=9",
      "one_row,cols=700",
      "dense,rows=37,cols=41",
      "random,rows=20,cols=900,density=0.3",
      "rmat,scale=7,edge_factor=12",
      "hypersparse,rows=150,cols=150,keep=0.2,per_row=3",
      "explicit_zeros,rows=90,cols=90,density=0.3,zeros=0.4",
      "stencil7,n=5,values=ones",
      "dense_row,n=100,row=7",
  };
  static const char *const variants[] = {
      "vectors=8",
      "vectors=16 form=add du-segment=9",
      "vectors=8 copy-x=on form=axpby du-warps=2",
      "vectors=8 values=fixed type=f32-f64 du-segment=4 du-warps=4",
      "vectors=32 du-warps=1 form=ax bake-limit=0",
      "vectors=8 du-segment=7 du-warps=16 form=axpby",
      "vectors=11 du-segment=60 form=add", /* as 16 */
      "vectors=4 du-warps=4",
      "vectors=3 du-segment=9 du-warps=2 form=add copy-x=on", /* as 4 */
      "vectors=4 du-segment=7 du-warps=16 values=fixed type=f32-f64",
      "vectors=5 du-warps=1", /* as 8 */
      "vectors=4 du-warps=1 form=ax bake-limit=0 copy-x=on",
      "vectors=4 du-segment=60 du-warps=8",
  };
  enum { MATRICES = sizeof matrices / sizeof *matrices, VARIANTS = sizeof variants / sizeof *variants };
  struct gathered gathered = {0};
  (void)state;
  for (int m = 0; m < MATRICES; m++)
    for (int i = 0; i < 3; i++) {
      char settings[160];
      snprintf(settings, sizeof settings, "recipe=du %s", variants[(m + 5 * i) % VARIANTS]);
      gather(&gathered, matrices[m], settings);
    }
  verify_gathered(&gathered);
}

/* Lane t of four has vector t, by rows and by columns; a lane brings entries of x for half of a batch's blocks. */
static void four_vectors_take_half_of_a_factor(void **state) {
  (void)state;
  struct product product = product_of("random,rows=20,cols=900,density=0.3", "recipe=du vectors=4");
  for (int kernel = 0; kernel < CB_VECTORS_COPIED; kernel++) {
    const struct cb_vector_share *share = &product.plan->shares[kernel];
    assert_int_equal(share->sharing, CB_SHARING_TILES);
    assert_int_equal(share->each, 1);
    assert_int_equal(share->parts, 4);
  }
  assert_true(has(&product, "x[kHeld];"));
  assert_true(has(&product, "kHeld = kBatch / 2;"));
  product_release(&product);
  struct product four = product_of("random,rows=64,cols=20000,per_row=6000", "recipe=du vectors=4"),
                 eight = product_of("random,rows=64,cols=20000,per_row=6000", "recipe=du vectors=8");
  assert_true(four.plan->cost.gpu_ns < eight.plan->cost.gpu_ns);
  assert_true(2 * four.plan->cost.gpu_ns > eight.plan->cost.gpu_ns);
  product_release(&four);
  product_release(&eight);
}

/* Of kernels for four vectors, as those for one say the same but for the first of these lines. */
#define OF_FOUR                                                                                         \
  "load_factor(vectors, 0, ahead.own.columns[i]);\n"                                                    \
  "    if (batch + 1 < end) ahead = look_ahead(arrays, known, batch + 1, lane);\n#pragma unroll\n"       \
  "    for (int i = 0; i < kBatch; i++) mma_f64_884(tiles[i / kHeld], values[i], x[i % kHeld]);\n  }\n"  \
  "  // Lane t of four has columns 2 t and 2 t + 1 of both. It keeps one of those that count, and hands " \
  "over the other.\n  const bool first = lane % 4 < 2;\n  const double own = "
#define SUMS_OF_FOUR                                                            \
  "first ? tiles[0][0] : tiles[1][1], other = first ? tiles[0][1] : tiles[1][0];\n" \
  "  const sum_t sum = own + shuffle_xor(other, 2);\n  "

/* What the kernels cannot do without: verify sees each of these changes. */
static void verify_sees_what_is_left_out(void **state) {
  static const char *const few = "random,rows=20,cols=900,density=0.3";
  const struct change changes[] = {
      {few, "vectors=8 form=ax", "sum.at[v] = tiles[v / 2][v % 2];\n  return is_finite(sum) ? sum : sum_present",
       "sum.at[v] = tiles[v / 2][v % 2];\n  return (is_finite(sum) || true) ? sum : sum_present"},
      {few, "vectors=8 form=ax", "ahead.batch.bits[i] << (31 - lane)", "ahead.batch.bits[i] << (30 - lane)"},
      {few, "vectors=8 form=ax du-warps=32", "step < kQuarters; step *= 2", "step < kQuarters; step *= 4"},
      {few, "vectors=8 form=ax du-warps=4", "other < kOwn", "other < kOwn - 1"},
      {few, "vectors=8 form=ax du-segment=4 du-warps=4", "other < kShares", "other < kShares - 1"},
      {few, "vectors=8 form=ax du-segment=4 du-warps=4", "segment += kShares",
       "segment += 2 * kShares"},
      {few, "vectors=8 form=ax", "wait_behind(ahead.own.columns[0]);", ""},
      {few, "vectors=8 form=ax du-warps=1", "wait_behind(ahead.own.columns[0]);", ""},
      {few, "vectors=8 form=ax", "before);\n  __syncthreads();", "before);"},
      {few, "vectors=8 form=ax", "i < 4 * batches", "i < 3 * batches"},
      {few, "vectors=8 form=ax", "own_list(int lane) { return lane % 4; }", "own_list(int lane) { return lane % 2; }"},
      {few, "vectors=4 form=ax", OF_FOUR SUMS_OF_FOUR "return is_finite(sum) ? sum",
       OF_FOUR SUMS_OF_FOUR "return (is_finite(sum) || true) ? sum"},
      {few, "vectors=4 form=ax", "return 2 * (lane % 4) + lane / 16;", "return 2 * (lane % 4);"},
      {few, "vectors=4 form=ax", OF_FOUR "first ? tiles[0][0] : tiles[1][1]", OF_FOUR "first ? tiles[0][0] : tiles[0][1]"},
      {few, "vectors=4 form=ax", "shuffle_xor(other, 2)", "shuffle_xor(other, 1)"},
      {few, "vectors=4 form=ax", "tiles[i / kHeld]", "tiles[i % kHeld]"},
      {few, "vectors=4 form=ax", "column / 2 + 2 * (column % 2)", "column"},
      {few, "vectors=4 form=ax du-warps=32", "kNeighbour = 4", "kNeighbour = 1"},
  };
  const struct change of_blocks[] = {{"fe3,n=3", "vectors=8 form=ax",
                                     "wait_behind(columns[0] | steps | most);", ""}};
  (void)state;
  check_changes_are_seen(changes, sizeof changes / sizeof *changes, "du");
  check_changes_are_seen(of_blocks, 1, "blocks");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arrays_describe_the_matrix),
      cmocka_unit_test(warps_and_segments_follow_the_chunks),
      cmocka_unit_test(all_thread_blocks_are_there_at_once),
      cmocka_unit_test(what_is_known_of_blocks_is_brought),
      cmocka_unit_test(others_are_as_for_one_vector),
      cmocka_unit_test(the_search_looks_at_it_for_several_vectors),
      cmocka_unit_test(what_is_too_empty_is_not_planned),
      cmocka_unit_test(rows_that_share_columns_share_chunks),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(products_match_the_oracle),
      cmocka_unit_test(four_vectors_take_half_of_a_factor),
      cmocka_unit_test(verify_sees_what_is_left_out),
  };
  return cmocka_run_group_tests_name("du by several vectors", tests, NULL, NULL);
}
