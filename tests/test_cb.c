// SPDX-License-Identifier: Apache-2.0
/* Plans of CB-SpMV: formats against a brute-force count, aggregation, both balances, carries and atomics; what the text
 * has as constants; products against the oracle. */
#include "tests/layouts.h"

#include "analysis/layouts/cb/cb_lists.h"
#include "analysis/plan/assignment.h"
#include "frontend/read.h"

static long count_fact(const struct product *product, const char *key) {
  return strtol(fact(product, key), NULL, 10); /* "none" is 0 */
}

/* 1 for each nonzero, by row and column. */
static unsigned char *picture_of(const struct cb_csr *csr) {
  unsigned char *picture = calloc((size_t)(csr->rows * csr->cols + 1), 1);
  for (int64_t i = 0; i < csr->rows; i++)
    for (int64_t k = cb_csr_row(csr, i); k < cb_csr_row(csr, i + 1); k++) picture[i * csr->cols + csr->col_idx[k]] = 1;
  return picture;
}

static int in_column(const struct cb_csr *csr, const unsigned char *picture, int64_t top, int64_t column) {
  int nonzeros = 0;
  for (int64_t i = top; column < csr->cols && i < top + 16 && i < csr->rows; i++)
    nonzeros += picture[i * csr->cols + column];
  return nonzeros;
}

/* Formats of a panel's sub-blocks. */
static void count_panel(const struct cb_csr *csr, const unsigned char *picture, int64_t top, int aggregated, int th1,
                        int th2, long formats[3]) {
  int64_t kept = 0;
  int nonzeros = 0;
  for (int64_t j = 0; j <= csr->cols; j++) {
    const int column = in_column(csr, picture, top, j);
    const int64_t place = aggregated ? kept : j;
    const int boundary = j == csr->cols || (place % 16 == 0 && (!aggregated || column));
    if (boundary && nonzeros) {
      formats[nonzeros < th1 ? 0 : nonzeros > th2 ? 2 : 1]++;
      nonzeros = 0;
    }
    nonzeros += column;
    kept += column > 0;
  }
}

/* Formats of all sub-blocks, counted from a dense picture. */
static void brute_force(const struct cb_csr *csr, int aggregated, int th1, int th2, long formats[3]) {
  unsigned char *picture = picture_of(csr);
  for (int64_t top = 0; top < csr->rows; top += 16) count_panel(csr, picture, top, aggregated, th1, th2, formats);
  free(picture);
}

static void formats_match_a_count(void **state) {
  (void)state;
  static const int thresholds[][2] = {{32, 128}, {0, 0}, {0, 256}, {257, 256}, {9, 40}, {1, 1}};
  for (uint64_t seed = 0; seed < 60; seed++)
    for (int aggregated = 0; aggregated < 2; aggregated++) {
      uint64_t random = seed;
      const int64_t rows = 1 + (int64_t)(draw(&random) % 70), cols = 1 + (int64_t)(draw(&random) % 90);
      const int *threshold = thresholds[seed % 6];
      char settings[96];
      long formats[3] = {0};
      snprintf(settings, sizeof settings, "aggregate=%s th1=%d th2=%d coo-gain=0", aggregated ? "on" : "off",
               threshold[0], threshold[1]);
      struct product product =
          product_of_matrix(random_matrix(rows, cols, (unsigned)(draw(&random) % 700), seed), settings);
      brute_force(product.csr, aggregated, threshold[0], threshold[1], formats);
      assert_int_equal(count_fact(&product, "coo"), formats[0]);
      assert_int_equal(count_fact(&product, "csr"), formats[1]);
      assert_int_equal(count_fact(&product, "dense"), formats[2]);
      product_release(&product);
    }
}

static void coo_is_for_uneven_rows(void **state) {
  (void)state;
  /* One row of 320 nonzeros and 15 of 1: as CSR, 16 lanes take 320 steps, 5120 slots for 335 nonzeros. COO saves these,
   * but for what adding up its partial sums costs (160): 4625, or 90.3 %. */
  for (int percent = 0; percent <= 100; percent++) {
    struct cb_diag diag = {0};
    struct cb_coo coo = {.rows = 16, .cols = 320};
    struct cb_csr csr = {0};
    char settings[64];
    coo.row_idx = cb_alloc(400, 4);
    coo.col_idx = cb_alloc(400, 4);
    for (int k = 0; k < 335; k++) {
      coo.row_idx[coo.count] = k < 320 ? 0 : k - 319;
      coo.col_idx[coo.count++] = k < 320 ? k : k - 320;
    }
    assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
    snprintf(settings, sizeof settings, "th1=31 coo-gain=%d", percent);
    struct product product = product_of_matrix(csr, settings);
    assert_int_equal(count_fact(&product, "coo"), percent <= 90 ? 19 : 0); /* the first has 31 */
    assert_int_equal(count_fact(&product, "csr"), percent <= 90 ? 1 : 20);
    product_release(&product);
  }
}

/* Runs of one shape need no array that says where they are. */
static void equal_runs_have_no_pointers(void **state) {
  static const char *const names[] = {"first_block", "nnz_per_run", "vp_per_run", "row_length", "run_panel"};
  (void)state;
  struct cb_diag diag = {0};
  enum { ROWS = 1024, PER_ROW = 5 };
  struct cb_coo coo = {.rows = ROWS, .cols = ROWS};
  struct cb_csr csr = {0};
  coo.row_idx = cb_alloc(ROWS * PER_ROW, 4);
  coo.col_idx = cb_alloc(ROWS * PER_ROW, 4);
  for (int k = 0; k < ROWS * PER_ROW; k++) {
    coo.row_idx[coo.count] = k / PER_ROW;
    coo.col_idx[coo.count++] = (k / PER_ROW + 37 * (k % PER_ROW)) % ROWS;
  }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  struct product product = product_of_matrix(csr, "bake-limit=0");
  const struct cb_region *region = &product.plan->regions[0];
  assert_string_not_equal(fact(&product, "shape"), "none");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    int found = 0;
    for (int a = 0; a < region->arrays_count; a++) {
      if (strcmp(region->arrays[a].name, names[i])) continue;
      assert_int_equal(region->arrays[a].storage, CB_AFFINE);
      found++;
    }
    assert_true(found <= 1);
  }
  product_release(&product);
}

static void aggregation_asks_th0(void **state) {
  (void)state;
  /* Eight aligned sub-blocks, k of them with one nonzero, the others full: a share of k / 8. */
  for (int sparse = 0; sparse <= 8; sparse++) {
    struct cb_diag diag = {0};
    struct cb_coo coo = {.rows = 16, .cols = 128};
    struct cb_csr csr = {0};
    coo.row_idx = cb_alloc(2048, 4);
    coo.col_idx = cb_alloc(2048, 4);
    for (int block = 0; block < 8; block++)
      for (int k = 0; k < (block < sparse ? 1 : 256); k++) {
        coo.row_idx[coo.count] = k / 16;
        coo.col_idx[coo.count++] = 16 * block + k % 16;
      }
    assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
    for (int th0 = 0; th0 <= 100; th0 += 25) {
      char settings[32];
      snprintf(settings, sizeof settings, "th0=%d", th0);
      struct product product = {0};
      set_options(&product.options, settings);
      assert_ok(cb_target_find(&product.target, "sm_90", &diag));
      assert_ok(cb_plan_build(&product.plan, &product.assignment, &csr, &product.target, &product.options, &diag));
      assert_string_equal(fact(&product, "aggregated"), sparse * 100 > th0 * 8 ? "yes" : "no");
      cb_assignment_free(product.assignment);
      cb_plan_free(product.plan);
    }
    cb_csr_release(&csr);
  }
}

/* A block of 16 x 16 without its first entries, 255 or 254 left of 256: what is absent has no part in the product. */
static void a_dense_block_with_a_hole_is_not_full(void **state) {
  (void)state;
  for (int missing = 0; missing < 3; missing++) {
    struct cb_diag diag = {0};
    struct cb_coo coo = {.rows = 16, .cols = 16};
    struct cb_csr csr = {0};
    coo.row_idx = cb_alloc(256, 4);
    coo.col_idx = cb_alloc(256, 4);
    for (int k = missing; k < 256; k++) {
      coo.row_idx[coo.count] = k / 16;
      coo.col_idx[coo.count++] = k % 16;
    }
    assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
    struct product product = product_of_matrix(csr, "");
    assert_int_equal(count_fact(&product, "dense"), 1);
    assert_int_equal(has(&product, "every Dense sub-block of this matrix is full"), !missing);
    assert_int_equal(has(&product, "the presence bits decide"), missing > 0);
    product_release(&product);
  }
}

/* Alg. 2 gives no thread block more than 8 runs, and no two loads differ by more than the largest run. */
static void heap_balances(void **state) {
  (void)state;
  struct product product =
      product_of_matrix(random_matrix(640, 640, 120, 3), "balance=heap aggregate=off unit-budget=200");
  const struct cb_plan *plan = product.plan;
  const struct cb_region *region = &plan->regions[0];
  const unsigned char *nonzeros = NULL;
  for (int a = 0; a < region->arrays_count; a++) {
    if (strcmp(region->arrays[a].name, "nnz_per_run")) continue;
    assert_int_equal(region->arrays[a].type, CB_U8);
    nonzeros = product.blob.bytes + cb_blob_offset(plan, 0, a);
  }
  assert_non_null(nonzeros);
  int64_t least = INT64_MAX, most = 0, largest = 0, sum = 0;
  for (int64_t block = 0; block < region->blocks; block++) {
    int64_t load = 0;
    for (int64_t warp = 0; warp < 8; warp++) { /* run w · T + t is warp w's of thread block t */
      const unsigned char of_run = nonzeros[warp * region->blocks + block];
      load += of_run;
      if (of_run > largest) largest = of_run;
    }
    if (load < least) least = load;
    if (load > most) most = load;
    sum += load;
  }
  assert_int_equal(sum, product.csr->nnz);
  assert_true(most - least <= largest);
  product_release(&product);
}

static void panels_are_shared_only_when_planned(void **state) {
  (void)state;
  /* 2048 columns of a panel fit one thread block: 8 runs of 256. */
  struct product whole = product_of_matrix(random_matrix(64, 2048, 300, 5), "team=1 unit-budget=1000000");
  assert_int_equal(whole.plan->carry_sums, 0);
  assert_null(strstr(whole.source.text + whole.source.body, "carry"));
  struct product split = product_of_matrix(random_matrix(64, 4000, 300, 5), "team=1 unit-budget=1000");
  assert_true(split.plan->carry_counters == 4);
  assert_true(split.plan->carry_sums >= 16 * 8);
  assert_null(strstr(split.source.text + split.source.body, "atomicAdd(vectors.y"));
  struct product atomic = product_of_matrix(random_matrix(64, 4000, 300, 5), "team=1 unit-budget=1000 atomics=on");
  assert_int_equal(atomic.plan->carry_sums, 0);
  assert_int_equal(atomic.plan->launches_count, 2); /* y is scaled first */
  assert_non_null(strstr(atomic.source.text + atomic.source.body, "atomicAdd(vectors.y"));
  struct product unshared = product_of_matrix(random_matrix(64, 64, 300, 5), "atomics=on");
  assert_int_equal(unshared.plan->launches_count, 1); /* permitted, not needed */
  product_release(&whole);
  product_release(&split);
  product_release(&atomic);
  product_release(&unshared);
}

/* ---- what stands in the text: counts, ranges of formats, column lists */

/* Number `i` of a list that the text has. */
static long listed(const struct product *product, const char *placeholder, int64_t i) {
  const struct cb_region *region = region_of(product);
  const char *at = NULL;
  for (int p = 0; p < region->placeholders_count; p++)
    if (!strcmp(region->placeholders[p].name, placeholder)) at = region->placeholders[p].text;
  for (; at && i > 0; i--) at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
  return at ? strtol(at, NULL, 10) : 0;
}

/* The format that the text gives a run, by constants alone: 0, 1, 2. */
static int format_by_constants(const struct product *product, int64_t run) {
  const int64_t coo = constant(product, "kCooRuns", 0), csr = constant(product, "kCsrRuns", 0);
  const int has_dense = constant(product, "kDenseRuns", 0) > 0, last = has_dense ? 2 : csr ? 1 : 0;
  if (constant(product, "kStride", 0)) return run < coo ? 0 : run < coo + csr ? 1 : last;
  int64_t range = 0;
  while (range + 1 < constant(product, "kRanges", 1) && run / 8 >= listed(product, "range_first", range + 1)) range++;
  if (coo && run % 8 < listed(product, "range_coo", range)) return 0;
  if (csr && has_dense && run % 8 < listed(product, "range_csr", range)) return 1;
  return last;
}

static int64_t name_of(const struct product *product, const char *of_run, const char *of_block, int64_t i) {
  return element(product, array_number(product, of_run) >= 0 ? of_run : of_block, i);
}

/* The matrix's column that column `c` of a run's sub-block is, as the kernel finds it. */
static int64_t column_of(const struct product *product, int64_t run, int64_t block, int c) {
  const int64_t lists = constant(product, "kLists", 0), list = lists ? element(product, "blk_list", block) : 0;
  const int64_t stored = !lists ? block : list >= lists ? element(product, "first_stored", run) + list - lists : -1;
  const int64_t offset =
      stored < 0 ? listed(product, "column_lists", 16 * list + c) : element(product, "restore_cols", 16 * stored + c);
  return offset + (array_number(product, "blk_col_idx") >= 0 ? element(product, "blk_col_idx", block)
                                                             : element(product, "run_col_idx", run));
}

static int nonzeros_in(const struct cb_csr *csr, int64_t row, int64_t column) {
  for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
    if (csr->col_idx[k] == column) return 1;
  return 0;
}

/* Nonzeros of the panel in the sub-block's columns. What fills a short one repeats its last column. */
static int nonzeros_of(const struct product *product, int64_t panel, int64_t run, int64_t block) {
  const struct cb_csr *csr = product->csr;
  int64_t before = -1;
  int nonzeros = 0;
  for (int c = 0; c < 16; c++) {
    const int64_t column = column_of(product, run, block, c);
    assert_true(column >= before && column < csr->cols);
    for (int64_t row = 16 * panel; row < 16 * panel + 16 && row < csr->rows && column > before; row++)
      nonzeros += nonzeros_in(csr, row, column);
    before = column;
  }
  return nonzeros;
}

/* Reads all runs as the kernel does: each sub-block's number of nonzeros must ask for the format that constants give
 * its run, and all of them together are the matrix. */
static void check_formats(const struct product *product, int th1, int th2) {
  const int single = constant(product, "kBlocks", 0) > 0;
  const int64_t runs = 8 * region_of(product)->blocks;
  long blocks[3] = {0}, with_blocks[3] = {0};
  int64_t sum = 0;
  for (int64_t run = 0; run < runs; run++) {
    const int64_t all = constant(product, "kBlocks", 0), panel = name_of(product, "run_panel", "blk_row_idx", run);
    const int64_t begin = single ? (run < all ? run : all) : element(product, "first_block", run);
    const int64_t end = single ? (run < all ? run + 1 : all) : element(product, "first_block", run + 1);
    const int format = format_by_constants(product, run);
    for (int64_t block = begin; block < end; block++) {
      const int nonzeros = nonzeros_of(product, panel, run, block);
      assert_int_equal(format, nonzeros < th1 ? 0 : nonzeros > th2 ? 2 : 1);
      sum += nonzeros;
    }
    blocks[format] += end - begin;
    with_blocks[format] += end > begin;
  }
  assert_int_equal(sum, product->csr->nnz);
  assert_int_equal(constant(product, "kPanels", -1), (product->csr->rows + 15) / 16);
  static const char *const of_blocks[] = {"kCooBlocks", "kCsrBlocks", "kDenseBlocks"};
  static const char *const of_runs[] = {"kCooRuns", "kCsrRuns", "kDenseRuns"};
  for (int format = 0; format < 3; format++) {
    assert_int_equal(constant(product, of_blocks[format], 0), blocks[format]);
    assert_int_equal(constant(product, of_runs[format], 0), with_blocks[format]);
  }
}

/* A finite element matrix whose sub-blocks repeat: 16 lists are 2212 of 2230 sub-blocks. */
static struct cb_csr s2rmq4m1(void) {
  struct cb_diag diag = {0};
  struct cb_csr csr = {0};
  assert_ok(cb_matrix_read(&csr, "tests/data/corpus/s2rmq4m1_pat.mtx.zst", NULL, &diag));
  return csr;
}

static void counts_ranges_and_lists_are_constants(void **state) {
  static const struct {
    const char *settings, *kind;
    int th1, th2;
  } cases[] = {
      {"recipe=cb", "", 0, 208},
      {"recipe=cb th1=32 th2=128 coo-gain=0", "kRanges", 32, 128},
      {"recipe=cb th1=0 th2=128 bake-lists=off", "kRanges", 0, 128},
      {"recipe=cb th1=200 th2=200 coo-gain=0 unit-budget=64", "kRanges", 200, 200},
      {"recipe=cb th1=120 th2=256 coo-gain=0 balance=heap", "kStride", 120, 256},
      {"recipe=cb-paper", "kStride", 32, 128},
      {"recipe=cb-ii", "kRanges", 32, 128},
  };
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = product_of_matrix(s2rmq4m1(), cases[c].settings);
    assert_null(strstr(product.source.text, "run_format"));
    assert_null(strstr(product.source.text, "type_per_blk"));
    assert_true(!*cases[c].kind || constant(&product, cases[c].kind, 0) > 1);
    check_formats(&product, cases[c].th1, cases[c].th2);
    if (!c) {
      assert_int_equal(constant(&product, "kLists", 0), 16);
      assert_true(has(&product, "__device__ const uint8_t column_lists[16 * kLists] = {"));
      assert_int_equal(array_of(&product, "restore_cols")->count, 16 * (constant(&product, "kCsrBlocks", 0) - 2212));
      assert_true(has(&product, "constexpr int kPanels = 344;") && has(&product, "constexpr int kCsrBlocks = 2230;"));
    }
    product_release(&product);
  }
}

/* More mixtures of formats than ranges: each format has thread blocks of its own, and panels leave carries. */
static void too_many_ranges_are_one_for_each_format(void **state) {
  (void)state;
  struct product product = product_of_matrix(random_matrix(6000, 64, 330, 8),
                                             "recipe=cb aggregate=on run-blocks=1 th1=81 th2=87 coo-gain=0");
  assert_int_equal(constant(&product, "kRanges", 0), 3);
  assert_true(product.plan->carry_sums > 0);
  check_formats(&product, 81, 87);
  product_release(&product);
}

/* ---- column lists, against a count */

enum { LISTS = 300, BLOCKS = 4000 };

/* List `number` of 300 that all differ. */
static void make_list(uint32_t *list, unsigned number) {
  for (unsigned c = 0; c < 16; c++) list[c] = c * (1 + number % 7) + (c == 15 ? number : 0);
}

static void the_most_frequent_lists_are_chosen(void **state) {
  uint32_t *all = calloc(BLOCKS * 16, sizeof *all), uses[LISTS] = {0};
  unsigned char *starts = calloc(BLOCKS, 1);
  struct cb_diag diag = {0};
  unsigned of[BLOCKS];
  struct cb_arena arena = {0};
  struct cb_lists lists;
  uint64_t random = 5;
  (void)state;
  for (int b = 0; b < BLOCKS; b++) {
    const unsigned x = (unsigned)(draw(&random) % LISTS), y = (unsigned)(draw(&random) % LISTS);
    of[b] = x < y ? x : y; /* the first ones more often */
    starts[b] = b % 16 == 0;
    uses[of[b]]++;
    make_list(all + 16 * b, of[b]);
  }
  assert_ok(cb_lists_find(&lists, &arena, all, BLOCKS, starts, &diag));
  assert_int_equal(lists.count, CB_MOST_LISTS);
  int64_t stored = 0, first = 0;
  unsigned least = UINT32_MAX, most = 0;
  for (int b = 0; b < BLOCKS; b++) {
    if (starts[b]) first = stored;
    const int in_table = lists.number[b] < lists.count;
    const uint32_t *list =
        in_table ? lists.table + 16 * lists.number[b] : lists.stored + 16 * (first + lists.number[b] - lists.count);
    assert_memory_equal(list, all + 16 * b, 16 * sizeof *list);
    stored += !in_table;
    if (in_table && uses[of[b]] < least) least = uses[of[b]];
    if (!in_table && uses[of[b]] > most) most = uses[of[b]];
  }
  assert_int_equal(stored, lists.stored_count);
  assert_true(stored > 0 && least >= most);
  cb_arena_release(&arena);
  free(all);
  free(starts);
}

static void lists_that_occur_once_are_stored(void **state) {
  (void)state;
  struct product product = product_of_matrix(random_matrix(64, 3000, 20, 3), "recipe=cb bake-lists=on aggregate=on");
  assert_int_equal(constant(&product, "kLists", 0), 0);
  assert_non_null(array_of(&product, "restore_cols"));
  product_release(&product);
}

/* ---- a warp for each sub-block, and aggregation by panel */

static void the_paper_has_its_arrays(void **state) {
  static const char *const names[] = {"blk_row_idx", "blk_col_idx", "nnz_per_blk",
                                      "vp_per_blk",  "mtx_data",    "restore_cols"};
  static const char *const others[] = {"run_panel",   "nnz_per_run", "vp_per_run",
                                       "run_col_idx", "first_block", "blk_list"};
  (void)state;
  struct product product = product_of_matrix(s2rmq4m1(), "recipe=cb-paper");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) assert_non_null(array_of(&product, names[i]));
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_null(array_of(&product, others[i]));
  assert_int_equal(constant(&product, "kBlocks", 0), 2230);
  for (int64_t run = 0; run < 2230; run++) {
    const int nonzeros = nonzeros_of(&product, element(&product, "blk_row_idx", run), run, run);
    assert_int_equal(element(&product, "nnz_per_blk", run), nonzeros);
  }
  assert_null(strstr(product.source.text + product.source.body, "atomicAdd(vectors.y"));
  product_release(&product);
  struct product atomic = product_of_matrix(s2rmq4m1(), "recipe=cb-paper atomics=on");
  assert_non_null(strstr(atomic.source.text + atomic.source.body, "atomicAdd(vectors.y"));
  product_release(&atomic);
}

/* Step I: one format, nothing aggregated; step II: aggregation and formats, thread blocks in order. */
static void steps_of_the_ablation(void **state) {
  (void)state;
  struct product one = product_of_matrix(s2rmq4m1(), "recipe=cb-i"),
                 two = product_of_matrix(s2rmq4m1(), "recipe=cb-ii");
  assert_string_equal(fact(&one, "aggregated"), "no");
  assert_int_equal(count_fact(&one, "coo"), 2992);
  assert_string_equal(fact(&one, "csr"), "none");
  assert_string_equal(fact(&two, "aggregated"), "yes");
  assert_int_equal(count_fact(&two, "coo") + count_fact(&two, "csr") + count_fact(&two, "dense"), 2230);
  assert_string_equal(fact(&two, "balance"), "none");
  product_release(&one);
  product_release(&two);
}

static void panels_are_aggregated_one_by_one(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 12; seed++) {
    const int th0 = (int)(seed * 9);
    struct product product = {0};
    char settings[80];
    long formats[3] = {0};
    snprintf(settings, sizeof settings, "aggregate=panel th0=%d th1=20 th2=40 coo-gain=0", th0);
    product = product_of_matrix(random_matrix(150 + (int64_t)seed, 83, 120, seed), settings);
    unsigned char *picture = picture_of(product.csr);
    int aggregated = 0;
    for (int64_t top = 0; top < product.csr->rows; top += 16) {
      long sparse[3] = {0}; /* below 32, and others */
      count_panel(product.csr, picture, top, 0, 32, 256, sparse);
      const int yes = sparse[0] * 100 > th0 * (sparse[0] + sparse[1]);
      count_panel(product.csr, picture, top, yes, 20, 40, formats);
      aggregated += yes;
    }
    assert_string_equal(fact(&product, "aggregated"), aggregated ? "yes" : "no");
    assert_int_equal(count_fact(&product, "coo"), formats[0]);
    assert_int_equal(count_fact(&product, "csr"), formats[1]);
    assert_int_equal(count_fact(&product, "dense"), formats[2]);
    free(picture);
    product_release(&product);
  }
}

/* ---- products */

static const char *const executed[][2] = {
    {"random,rows=300,cols=507,density=0.2", "th1=32 th2=60 coo-gain=0"},
    {"random,rows=300,cols=507,density=0.2", "th1=52 th2=56 coo-gain=0 run-blocks=1"},
    {"random,rows=300,cols=507,density=0.2", "th1=52 th2=56 coo-gain=0 balance=heap"},
    {"random,rows=300,cols=507,density=0.2", "th1=52 th2=56 coo-gain=0 aggregate=panel th0=3"},
    {"fe3,n=4", "bake-lists=on aggregate=on"},
    {"stencil27,n=7", "bake-lists=on aggregate=on"},
    {"fe3,n=4", "bake-lists=on aggregate=on run-blocks=1 balance=heap th1=60 th2=140 coo-gain=0"},
    {"fe3,n=5", "bake-lists=on aggregate=panel th0=40"},
    {"block,blocks_r=30,blocks_c=30,r=8,c=8,per_row=4,fill=0.9",
     "th1=40 th2=150 coo-gain=0 bake-lists=on aggregate=on"},
    {"hypersparse,rows=900,cols=900,keep=0.02,per_row=3", "bake-lists=on run-blocks=1 th1=2 th2=2 coo-gain=0"},
    {"uniform,n=700,per_row=7", "bake-lists=on aggregate=on"},
};

static void products_match_the_oracle(void **state) {
  (void)state;
  verify_kinds(executed, sizeof executed / sizeof *executed, "cb");
}

/* What the kernel cannot do without: verify sees each of these changes. */
static void verify_sees_what_is_left_out(void **state) {
  static const struct change changes[] = {
      {"random,rows=300,cols=507,density=0.2", "th1=52 th2=56 coo-gain=0 balance=heap", "run < kCooRuns)",
       "run < kCooRuns + 1)"},
      {"random,rows=300,cols=507,density=0.2", "th1=52 th2=56 coo-gain=0 balance=heap", "run < kCooRuns + kCsrRuns",
       "run < kCsrRuns"},
      {"random,rows=300,cols=507,density=0.2", "th1=32 th2=60 coo-gain=0", "thread_block >= kRangeFirst[i]",
       "thread_block > kRangeFirst[i]"},
      {"random,rows=300,cols=507,density=0.2", "th1=32 th2=60 coo-gain=0", "if (runs >> other & 1) sum", "sum"},
      {"fe3,n=4", "bake-lists=on aggregate=on", "column_lists[16 * list + column]",
       "column_lists[16 * list + column / 2]"},
      {"stencil27,n=7", "bake-lists=on aggregate=on", "first_stored(arrays, run) + list",
       "first_stored(arrays, run) / 2 + list"},
      {"random,rows=200,cols=400,density=0.2", "run-blocks=1 th1=257 th2=256 coo-gain=0", "both >> 4", "both >> 5"},
  };
  (void)state;
  check_changes_are_seen(changes, sizeof changes / sizeof *changes, "cb");
}

/* Every allocation from analysis to text fails once, where these settings take another way. */
static void every_allocation_may_fail(void **state) {
  static const char *const sets[] = {"unit-budget=16",
                                     "balance=heap",
                                     "recipe=cb-long long-row=4 bake-limit=0",
                                     "th1=4 th2=20 coo-gain=0 aggregate=panel",
                                     "recipe=cb-paper",
                                     "aggregate=on bake-lists=on"};
  (void)state;
  for (size_t set = 0; set < sizeof sets / sizeof *sets; set++)
    assert_true(check_allocations(random_matrix(60, 60, 250, 9), sets[set]) > 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(formats_match_a_count),
      cmocka_unit_test(coo_is_for_uneven_rows),
      cmocka_unit_test(equal_runs_have_no_pointers),
      cmocka_unit_test(aggregation_asks_th0),
      cmocka_unit_test(a_dense_block_with_a_hole_is_not_full),
      cmocka_unit_test(heap_balances),
      cmocka_unit_test(panels_are_shared_only_when_planned),
      cmocka_unit_test(counts_ranges_and_lists_are_constants),
      cmocka_unit_test(too_many_ranges_are_one_for_each_format),
      cmocka_unit_test(the_most_frequent_lists_are_chosen),
      cmocka_unit_test(lists_that_occur_once_are_stored),
      cmocka_unit_test(the_paper_has_its_arrays),
      cmocka_unit_test(steps_of_the_ablation),
      cmocka_unit_test(panels_are_aggregated_one_by_one),
      cmocka_unit_test(products_match_the_oracle),
      cmocka_unit_test(verify_sees_what_is_left_out),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
