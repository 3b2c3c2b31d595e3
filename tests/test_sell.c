// SPDX-License-Identifier: Apache-2.0
/* The sell layout: slots, lengths, lanes and rows that its arrays describe against the matrix; what it decides, on
 * both sides of each threshold; what its text has and lacks; padding, whatever it holds; threads, failing allocations,
 * new values; and products of many shapes against the oracle, alone and behind other regions. */
#include "tests/layouts.h"

#include "analysis/cost_figures.h"
#include "analysis/row_lanes.h"
#include "base/hash.h"
#include "base/integers.h"

#include <math.h>

enum { LANES = 32, WARPS = 8, WINDOW = 4096 };

/* Rows in order, the same number of lanes for each. */
#define NATURAL "sell-sort=off sell-vary=off "

static struct product sell_of(const char *matrix, const char *settings) {
  char text[200];
  snprintf(text, sizeof text, "recipe=sell %s", settings);
  return product_of(matrix, text);
}

/* ---- what the arrays say, read as the kernel reads them */

struct reading {
  const struct product *product;
  struct picture picture;
  unsigned char *meets_nonzero; /* by slot */
  int64_t slots;
};

static int is_varied(const struct product *product) { return array_number(product, "lanes_log2") >= 0; }
static int64_t vector_of(const struct product *product) { return constant(product, "kVector", 1); }

static int64_t lanes_of(const struct product *product, int64_t slice) {
  if (is_varied(product)) return INT64_C(1) << element(product, "lanes_log2", slice);
  return constant(product, "kLanes", 0);
}

static int64_t first_local_row(const struct product *product, int64_t slice) {
  if (is_varied(product)) return element(product, "first_local_row", slice);
  return slice * LANES / lanes_of(product, slice);
}

/* Which of the rows that are cut a place has a segment of; -1: none. */
static int64_t cut_at(const struct product *product, int64_t place) {
  const int64_t row = array_number(product, "row_of") >= 0 ? element(product, "row_of", place) : 0;
  const int64_t segment = row - product->csr->rows - 1;
  int64_t cut = 0;
  if (segment < 0) return -1;
  while (element(product, "first_segment", cut + 1) <= segment) cut++;
  return cut;
}

static int is_first_segment(const struct product *product, int64_t place) {
  const int64_t segment = element(product, "row_of", place) - product->csr->rows - 1;
  return segment == element(product, "first_segment", cut_at(product, place));
}

/* The row of a place; the matrix's number of rows where there is none. */
static int64_t row_at(const struct product *product, int64_t place) {
  const int64_t cut = cut_at(product, place);
  if (cut >= 0) return element(product, "cut_row", cut);
  if (array_number(product, "row_of") >= 0) return element(product, "row_of", place);
  return place < product->csr->rows ? place : product->csr->rows;
}

/* Lane `lane` of a place's `lanes` takes kVector neighbours, then lets the others have their turn. */
static void read_place(struct reading *reading, int64_t slice, int64_t in_slice, int64_t place) {
  const struct product *product = reading->product;
  const int64_t lanes = lanes_of(product, slice), vector = vector_of(product), row = row_at(product, place),
                length = element(product, "local_row_length", place), first = element(product, "first_step", slice),
                steps = element(product, "first_step", slice + 1) - first;
  if (row == product->csr->rows) return;
  for (int64_t k = 0; k < length; k++) {
    const int64_t round = k / (lanes * vector), lane = in_slice * lanes + k / vector % lanes;
    assert_true(round * vector < steps);
    const int64_t slot = LANES * (first + round * vector) + vector * lane + k % vector;
    assert_false(reading->meets_nonzero[slot]);
    reading->meets_nonzero[slot] = 1;
    see_value(&reading->picture, row, element(product, "first_column", slice) + element(product, "column_offset", slot),
              value_at(product, slot));
  }
}

/* Segments of a row follow one another, as long as they may be but for the last. */
static void check_segment(const struct product *product, int64_t slice) {
  const int64_t group = element(product, "carry_group", slice), first = element(product, "carry_first", group),
                end = element(product, "carry_first", group + 1),
                row = row_at(product, first_local_row(product, slice));
  assert_true(first <= slice && slice < end && end - first > 1);
  assert_int_equal(row, row_at(product, first_local_row(product, first)));
  assert_int_equal(lanes_of(product, slice), LANES);
  if (slice > first)
    assert_true(element(product, "local_row_length", first_local_row(product, slice)) <=
                element(product, "local_row_length", first_local_row(product, first)));
}

static void read_slice(struct reading *reading, int64_t slice) {
  const struct product *product = reading->product;
  const int64_t places = LANES / lanes_of(product, slice), first = first_local_row(product, slice);
  const int is_segment = slice < constant(product, "kSegments", 0);
  if (is_segment) check_segment(product, slice);
  for (int64_t i = 0; i < places; i++) {
    const int64_t row = row_at(product, first + i);
    read_place(reading, slice, i, first + i);
    if (row == product->csr->rows) assert_true(has(product, "row < kRows"));
    else if (cut_at(product, first + i) >= 0) reading->picture.commits[row] += is_first_segment(product, first + i);
    else if (!is_segment || element(product, "carry_first", element(product, "carry_group", slice)) == slice)
      reading->picture.commits[row]++;
  }
}

static struct reading read_arrays(const struct product *product) {
  struct reading reading = {.product = product, .picture = picture_for(product->csr)};
  const int64_t slices = strtol(fact(product, "slices"), NULL, 10);
  reading.slots = LANES * element(product, "first_step", slices);
  reading.meets_nonzero = calloc((size_t)reading.slots + 1, 1);
  assert_non_null(reading.meets_nonzero);
  assert_int_equal(slices, WARPS * region_of(product)->blocks);
  assert_int_equal(reading.slots, region_of(product)->value_slots);
  for (int64_t slice = 0; slice < slices; slice++) read_slice(&reading, slice);
  return reading;
}

/* Every nonzero once, in its place; every row committed once; zeros everywhere else. */
static void check_arrays(const struct product *product) {
  struct reading reading = read_arrays(product);
  for (int64_t row = 0; row < product->csr->rows; row++) assert_int_equal(reading.picture.commits[row], 1);
  assert_int_equal(reading.picture.slots, product->csr->nnz);
  for (int64_t slot = 0; slot < reading.slots; slot++)
    if (!reading.meets_nonzero[slot]) {
      assert_true(value_at(product, slot) == 0);
      assert_int_equal(element(product, "column_offset", slot), 0);
    }
  check_picture_and_release(&reading.picture, product->csr);
  free(reading.meets_nonzero);
}

static const int lengths[][6] = {
    {3, 3, 3, 3, 3, 3},       /* equal */
    {8, 16, 32, 64, 128, 256}, /* whole rounds of lanes and vectors */
    {9, 17, 33, 65, 129, 257}, /* one more */
    {7, 15, 31, 63, 127, 255}, /* one fewer */
    {0, 0, 1, 0, 0, 400},
    {512, 513, 0, 1, 1024, 1025}, /* segments where lanes are varied */
};

static void arrays_describe_the_matrix(void **state) {
  (void)state;
  static const char *const orders[] = {"sell-sort=off sell-vary=off", "sell-sort=on sell-vary=off", "sell-vary=on", "",
                                       "sell-cut=on"};
  struct cb_diag diag = {0};
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
    for (int lanes = 0; lanes <= 32; lanes = lanes ? 2 * lanes : 1)
      for (int variant = 0; variant < 15; variant++) {
        char settings[128];
        snprintf(settings, sizeof settings, "recipe=sell sell-lanes=%d sell-vector=%d %s %s", lanes,
                 1 << variant % 3, orders[variant % 5], variant / 5 == 1 ? "bake-limit=0" : "");
        struct product product =
            product_of_matrix(rows_of_lengths(41, 1031, 1 + 2 * (int64_t)l, lengths[l], 6), settings);
        assert_ok(cb_plan_check(product.plan, &diag));
        assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
        check_arrays(&product);
        product_release(&product);
      }
}

static void arrays_describe_random_matrices(void **state) {
  (void)state;
  static const char *const settings[] = {"recipe=sell", "recipe=sell sell-sort=on", "recipe=sell sell-vary=on",
                                         "recipe=sell sell-lanes=4 sell-vector=4", "recipe=sell bake-limit=0"};
  for (uint64_t seed = 0; seed < 60; seed++) {
    struct product product =
        product_of_matrix(random_matrix(1 + (int64_t)(seed * 37 % 300), 90, (unsigned)(seed * seed) % 1000, seed),
                          settings[seed % (sizeof settings / sizeof *settings)]);
    check_arrays(&product);
    product_release(&product);
  }
}

/* A row's nonzeros lie in its own slice's slots, and slices before it take what they take: places of equal length need
 * no array, and neither does an order that is the rows' own. */
static void what_follows_from_the_place_is_not_stored(void **state) {
  (void)state;
  struct product equal = sell_of("uniform,n=2048,per_row=5", "bake-limit=0");
  assert_int_equal(array_of(&equal, "local_row_length")->storage, CB_AFFINE);
  assert_int_equal(array_of(&equal, "first_step")->storage, CB_AFFINE);
  assert_null(array_of(&equal, "row_of"));
  struct product others = sell_of("staircase,n=300", NATURAL "bake-limit=0");
  assert_int_equal(array_of(&others, "local_row_length")->storage, CB_STORED);
  assert_null(array_of(&others, "row_of"));
  struct product sorted = sell_of("staircase,n=300", "sell-sort=on sell-vary=off bake-limit=0");
  assert_non_null(array_of(&sorted, "row_of"));
  product_release(&equal);
  product_release(&others);
  product_release(&sorted);
}

/* ---- decisions, for a GPU of so many multiprocessors */

static struct product plan_for(struct cb_csr csr, const char *settings, int multiprocessors) {
  struct cb_diag diag = {0};
  struct product product = {.csr = malloc(sizeof csr)};
  assert_non_null(product.csr);
  *product.csr = csr;
  set_options(&product.options, settings);
  assert_ok(cb_target_find(&product.target, "sm_90", &diag));
  product.target.multiprocessors = multiprocessors;
  assert_ok(cb_plan_build(&product.plan, &product.assignment, product.csr, &product.target, &product.options, &diag));
  return product;
}

static void expect_fact(const char *matrix, const char *settings, int multiprocessors, const char *key,
                        const char *value) {
  char text[200];
  snprintf(text, sizeof text, "recipe=sell %s", settings);
  struct product product = plan_for(matrix_of(matrix), text, multiprocessors);
  if (strcmp(fact(&product, key), value))
    fail_msg("%s %s: %s is %s, not %s", matrix, settings, key, fact(&product, key), value);
  product_release(&product);
}

/* 1024 threads for each multiprocessor, as long as each has two nonzeros; never more than 128 times as many nonzeros
 * as lanes. Of rows that are short, few or of many lengths. */
static void lanes_occupy_the_gpu(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *lanes;
  } cases[] = {{"uniform,n=1024,per_row=15", "1"}, {"uniform,n=1023,per_row=15", "2"},
               {"uniform,n=512,per_row=15", "2"},  {"uniform,n=511,per_row=15", "4"},
               {"uniform,n=500,per_row=3", "1"},   {"uniform,n=500,per_row=4", "2"},
               {"uniform,n=200,per_row=7", "2"},   {"uniform,n=200,per_row=8", "4"},
               {"uniform,n=30,cols=90,per_row=40", "16"},  {"dense,rows=20,cols=64", "32"},
               {"staircase,n=1020", "4"},          {"staircase,n=1100", "8"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    expect_fact(cases[c].matrix, NATURAL, 1, "lanes", cases[c].lanes);
  expect_fact("uniform,n=1024,per_row=64", NATURAL "sell-lanes=16", 1, "lanes", "16");
}

/* Rows of about one length: rounds of 6 thread blocks of a multiprocessor (8, where batches are of four steps at most),
 * 600 ns and 900 for each batch; or bytes, of which fewer lanes take more from half of L2 on. Four lanes from twice L2
 * on. Such rows are never sorted. */
static void lanes_of_even_rows_fill_a_round(void **state) {
  (void)state;
  static const struct {
    const char *matrix;
    int multiprocessors;
    const char *lanes;
  } cases[] = {{"uniform,n=192,per_row=81", 1, "8"},      /* 6 thread blocks; 2400 ns, 3300 by four, 3000 by 16 */
               {"uniform,n=256,per_row=81", 1, "4"},      /* 3300 ns; 8 thread blocks by eight: two rounds, 4800 */
               {"uniform,n=48,cols=200,per_row=81", 1, "16"}, /* one round: 1500 ns, as by 32 */
               {"uniform,n=40000,per_row=80", 132, "4"},  /* 35 MB */
               {"uniform,n=75000,per_row=80", 132, "16"}, /* 66 MB */
               {"uniform,n=150000,per_row=80", 132, "4"}, /* 132 MB */
               {"uniform,n=5000,per_row=50", 1, "1"},     /* rows that are not long, more than twice the threads */
               {"uniform,n=3000,per_row=50", 1, "1"},     /* likewise, but that takes the least time, too */
               {"uniform,n=48,cols=5000,per_row=1000", 1, "32"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    expect_fact(cases[c].matrix, "", cases[c].multiprocessors, "lanes", cases[c].lanes);
    expect_fact(cases[c].matrix, "", cases[c].multiprocessors, "sorted", "none");
  }
  expect_fact("uniform,n=192,per_row=81", "sell-lanes=2", 1, "lanes", "2");
  expect_fact("uniform,n=192,per_row=15", "", 1, "lanes", "4"); /* short */
  expect_fact("uniform,n=21,cols=200,per_row=81", "", 1, "lanes", "32"); /* few: as for others */
  expect_fact("uniform,n=192,per_row=81", "vectors=8", 1, "lanes", "8");
}

/* Of several vectors: large, scattered, of rows of many lengths. */
static void scattered_rows_are_cut(void **state) {
  (void)state;
  expect_fact("rmat,scale=12,edge_factor=16", "vectors=8", 1, "cut", "218 592");
  expect_fact("rmat,scale=12,edge_factor=16", "vectors=16 type=f32", 1, "cut", "218 592");
  expect_fact("rmat,scale=12,edge_factor=16", "vectors=4", 1, "cut", "none");
  expect_fact("rmat,scale=12,edge_factor=16", "", 1, "cut", "none");
  expect_fact("rmat,scale=12,edge_factor=16", "vectors=8", 3, "cut", "none"); /* a third as large for it */
  expect_fact("rmat,scale=12,edge_factor=4", "vectors=8", 1, "cut", "none");  /* short rows */
  expect_fact("rmat,scale=12,edge_factor=16", "vectors=8 sell-cut=off", 1, "cut", "none");
  expect_fact("rmat,scale=12,edge_factor=16", "vectors=8 copy-x=off", 1, "cut", "none"); /* Y is not laid out */
  expect_fact("rmat,scale=12,edge_factor=16", "vectors=8 form=add", 1, "cut", "none");
  expect_fact("uniform,n=4096,per_row=20", "vectors=8", 1, "cut", "none"); /* equal lengths */
  expect_fact("powerlaw,rows=4096,max=64,min=8", "vectors=8", 1, "lanes", "varied");
  expect_fact("powerlaw,rows=4096,max=64,min=8", "vectors=8", 1, "cut", "none"); /* no row is longer than a segment */
}

/* What takes long begins at once. */
static void long_ones_come_first(void **state) {
  (void)state;
  struct product product = sell_of("rmat,scale=13,edge_factor=16", "sell-cut=on");
  for (int64_t place = 1; place < product.csr->rows; place++)
    assert_true(element(&product, "local_row_length", place) <= element(&product, "local_row_length", place - 1));
  check_arrays(&product);
  product_release(&product);
}

static void long_rows_are_loaded_in_vectors(void **state) {
  (void)state;
  expect_fact("uniform,n=600,per_row=11", NATURAL "sell-lanes=1", 1, "vector", "none");
  expect_fact("uniform,n=600,per_row=12", NATURAL "sell-lanes=1", 1, "vector", "2");
  expect_fact("uniform,n=600,per_row=47", NATURAL "sell-lanes=4", 1, "vector", "none");
  expect_fact("uniform,n=600,per_row=48", NATURAL "sell-lanes=4", 1, "vector", "2");
  expect_fact("uniform,n=600,per_row=3", NATURAL "sell-vector=4", 1, "vector", "4");
  expect_fact("uniform,n=600,per_row=99", NATURAL "sell-vector=1", 1, "vector", "none");
}

/* Loads in flight together: a whole slice's while these are few, then the mean, within 2 … 8 and in whole vectors;
 * equal ones of five or six where these are as few as of eight. */
static void a_batch_is_what_slices_have(void **state) {
  (void)state;
  static const struct {
    int rows, length, vector, batch, loops;
  } cases[] = {
      {512, 1, 1, 1, 0},  {512, 5, 1, 5, 0},  {512, 8, 1, 8, 0},  {512, 9, 1, 5, 1},  {512, 10, 1, 5, 1},
      {512, 11, 1, 6, 1}, {512, 12, 1, 6, 1}, {512, 13, 1, 8, 1}, {512, 17, 1, 6, 1}, {512, 19, 1, 8, 1},
      {512, 3, 4, 4, 0},  {512, 9, 4, 8, 1},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char settings[96];
    snprintf(settings, sizeof settings, "recipe=sell " NATURAL "sell-lanes=1 sell-vector=%d", cases[c].vector);
    struct product product =
        product_of_matrix(rows_of_lengths(cases[c].rows, 1000, 3, &cases[c].length, 1), settings);
    assert_int_equal(constant(&product, "kBatch", 0), cases[c].batch);
    assert_int_equal(has(&product, "step += kBatch"), cases[c].loops);
    assert_int_equal(region_of(&product)->blocks_per_sm, cases[c].batch <= 4 ? 8 : 6);
    product_release(&product);
  }
}

/* One slice of `longest` steps, 127 of one. */
static void expect_batch(int longest, int64_t batch) {
  static int row_lengths[WINDOW];
  for (int i = 0; i < WINDOW; i++) row_lengths[i] = i ? 1 : longest;
  struct product product =
      product_of_matrix(rows_of_lengths(WINDOW, 2000, 1, row_lengths, WINDOW), "recipe=sell " NATURAL "sell-lanes=1");
  assert_int_equal(constant(&product, "kBatch", 0), batch);
  assert_int_equal(has(&product, "step += kBatch"), longest > batch);
  product_release(&product);
}

static void a_batch_of_uneven_slices_is_their_mean(void **state) {
  (void)state;
  expect_batch(8, 8); /* not the mean: no loop */
  expect_batch(9, 2);
  expect_batch(129, 2); /* 256 steps in 128 slices */
  expect_batch(130, 3);
  expect_batch(1500, 8);
}

/* What slices of a lane for each row take, by the rule that plans go by. Slices of more than eight steps take as many
 * at once as they have in the mean, two to eight. */
static int64_t predicted_ns(const struct product *product, int64_t steps, int64_t longest, int sorted) {
  enum { SLOT_BYTES = 8 + 3, ORDER_BYTES = 4, MOST = 8 };
  const int64_t rows = product->csr->rows, mean = cb_divide_up(steps, rows / LANES);
  const int64_t batch = longest <= MOST ? longest : cb_larger(2, cb_smaller(mean, MOST));
  const struct cb_slices_work work = {.blocks = rows / (WARPS * LANES),
                                      .mean = cb_divide_up(mean, batch),
                                      .longest = cb_divide_up(longest, batch),
                                      .bytes = steps * LANES * SLOT_BYTES + (sorted ? rows * ORDER_BYTES : 0),
                                      .nonzeros = product->csr->nnz,
                                      .sorted = sorted};
  return cb_slices_ns(&work, &product->target);
}

/* Every 32nd row has `length` nonzeros, all others one. Of 256 rows the first slice has the eight long ones, and of
 * 1024 rows 32 of them, which fill it: that window is taken where the smaller one leaves too many slots empty. */
static void rows_are_sorted_where_that_pays(void **state) {
  (void)state;
  enum { ROWS = 64 * WINDOW, SMALL = 256, MIDDLE = 1024 };
  int sorted = 0, natural = 0, one[LANES];
  for (int length = 1; length <= 120; length += 1 + length / 8) {
    for (int i = 0; i < LANES; i++) one[i] = i ? 1 : length;
    struct product product = product_of_matrix(rows_of_lengths(ROWS, 1000, 1, one, LANES),
                                               "recipe=sell sell-lanes=1 sell-vector=1");
    const int64_t by_small = ROWS / SMALL * (length + 7), by_middle = ROWS / MIDDLE * (length + 31);
    const int64_t steps = by_small * LANES * 100 <= product.csr->nnz * 130 ? by_small : by_middle;
    const int64_t in_order = predicted_ns(&product, ROWS / LANES * length, length, 0);
    const int pays = length > 1 && predicted_ns(&product, steps, length, 1) < in_order;
    assert_string_equal(fact(&product, "sorted"), pays ? "yes" : "none");
    assert_int_equal(region_of(&product)->block_rows, pays ? 0 : WARPS * LANES);
    if (pays) assert_int_equal(strtol(fact(&product, "steps"), NULL, 10), steps);
    sorted += pays;
    natural += !pays;
    product_release(&product);
  }
  assert_true(sorted > 5 && natural > 2);
}

static void expect_windows(int64_t window, const char *options) {
  static const int mixed[] = {1, 4, 0, 9, 2};
  struct product product = product_of_matrix(rows_of_lengths(2 * WINDOW + 100, 1031, 1, mixed, 5), options);
  const struct cb_csr *csr = product.csr;
  for (int64_t place = 1; place < csr->rows; place++) {
    const int64_t before = row_at(&product, place - 1), row = row_at(&product, place);
    assert_int_equal(row / window, place / window);
    if (place % window == 0) continue;
    const int64_t longer = cb_csr_row_length(csr, before) - cb_csr_row_length(csr, row);
    assert_true(longer > 0 || (longer == 0 && before < row));
  }
  product_release(&product);
}

/* Windows are sorted each for itself: longest first, equal ones in the order of rows. */
static void order_is_by_length_within_windows(void **state) {
  (void)state;
  expect_windows(4096, "recipe=sell sell-lanes=1 sell-sort=on sell-vary=off sell-window=4096 bake-limit=0");
  expect_windows(1024, "recipe=sell sell-lanes=1 sell-sort=on sell-vary=off sell-window=1024 bake-limit=0");
  expect_windows(256, "recipe=sell sell-lanes=1 sell-sort=on sell-vary=off bake-limit=0"); /* of 26,000 nonzeros */
}

/* Where rows of a window of 256 leave most slots empty, it is a larger one. */
static void windows_grow_until_slots_are_full(void **state) {
  (void)state;
  int lengths[512] = {1200};
  struct product product = product_of_matrix(rows_of_lengths(5 * WINDOW, 1231, 1, lengths, 512),
                                             "recipe=sell sell-lanes=1 sell-sort=on sell-vary=off bake-limit=0");
  for (int64_t place = 0; place < 8; place++) assert_int_equal(row_at(&product, place), place * 512);
  product_release(&product);
}

/* As few lanes as bring a row to the steps aimed at: 8, or 16 of large matrices. */
static void varied_lanes_follow_the_longest_row(void **state) {
  (void)state;
  static const int cases[][2] = {{1, 1}, {8, 1}, {9, 2}, {16, 2}, {17, 4}, {32, 4}, {33, 8}, {64, 8}, {65, 16},
                                 {128, 16}, {129, 32}, {300, 32}, {512, 32}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = product_of_matrix(rows_of_lengths(40, 1031, 1, &cases[c][0], 1),
                                               "recipe=sell sell-vary=on sell-vector=1");
    assert_string_equal(fact(&product, "lanes"), "varied");
    assert_int_equal(lanes_of(&product, 0), cases[c][1]);
    product_release(&product);
  }
}

static void rows_longer_than_a_segment_are_cut(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *segments;
  } cases[] = {
      {"one_row,cols=512", "none"},
      {"one_row,cols=513", "1 2"},
      {"one_row,cols=1024", "1 2"},
      {"one_row,cols=1025", "1 3"},
      {"dense,rows=593,cols=1024", "593 1186"}, /* 607232 nonzeros: 8 steps a lane */
      {"dense,rows=594,cols=1024", "none"},     /* 608256: 9 times 67584, so 16 steps a lane */
      {"dense,rows=594,cols=1025", "594 1188"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = sell_of(cases[c].matrix, "sell-vary=on");
    assert_string_equal(fact(&product, "segments"), cases[c].segments);
    assert_int_equal(has(&product, "last_to_arrive"), strcmp(cases[c].segments, "none") != 0);
    assert_int_equal(region_of(&product)->carry_slots, constant(&product, "kSegments", 0));
    product_release(&product);
  }
}

/* A longer chain of batches costs several vectors less. */
static void rows_little_longer_are_whole_for_several_vectors(void **state) {
  (void)state;
  expect_fact("one_row,cols=768", "sell-vary=on", 1, "segments", "1 2");
  expect_fact("one_row,cols=768", "sell-vary=on vectors=8", 1, "segments", "none");
  expect_fact("one_row,cols=769", "sell-vary=on vectors=8", 1, "segments", "1 2");
}

/* Where rows have two batches and more, and the GPU has room for all. Then threads may have many registers. */
static void several_vectors_are_loaded_together_where_chains_are_long(void **state) {
  static const struct {
    const char *matrix, *settings;
    int multiprocessors, together;
  } cases[] = {
      {"uniform,n=600,per_row=512", "recipe=sell vectors=8 ", 132, 1},
      {"uniform,n=600,per_row=512", "recipe=sell ", 132, 0},
      {"uniform,n=600,per_row=512", "recipe=sell vectors=8 ", 99, 0},
      {"uniform,n=600,per_row=512", "recipe=sell vectors=8 ", 100, 1}, /* three thread blocks each */
      {"uniform,n=600,per_row=448", "recipe=sell vectors=8 ", 132, 0}, /* 14 steps */
      {"uniform,n=600,per_row=512", "recipe=sell vectors=16 ", 149, 0},
      {"uniform,n=600,per_row=512", "recipe=sell vectors=16 ", 150, 1}, /* two, which have more registers */
      {"rmat,scale=12,edge_factor=16", "recipe=sell vectors=8 sell-cut=on ", 1, 1},
  };
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = plan_for(matrix_of(cases[c].matrix), cases[c].settings, cases[c].multiprocessors);
    if (region_of(&product)->loads_together != cases[c].together)
      fail_msg("%s %son %d: %d", cases[c].matrix, cases[c].settings, cases[c].multiprocessors, !cases[c].together);
    product_release(&product);
  }
}

static void auto_varies_lanes_only_where_nothing_else_is_asked_for(void **state) {
  (void)state;
  static const char skewed[] = "powerlaw,rows=3000,cols=9000,max=4000,min=1";
  expect_fact(skewed, "", 132, "lanes", "varied");
  expect_fact(skewed, "sell-lanes=4", 132, "lanes", "4");
  expect_fact(skewed, "sell-lanes=4 sell-vary=on", 132, "lanes", "varied");
  expect_fact("uniform,n=3000,per_row=3", "", 132, "lanes", "1");
}

static void a_search_takes_sell_where_rows_are_alike(void **state) {
  (void)state;
  struct product even = product_of("uniform,n=300000,per_row=8", "recipe=auto");
  struct product skewed = product_of("powerlaw,rows=3000,cols=9000,max=4000,min=1", "recipe=auto");
  assert_string_equal(even.plan->recipe, "sell");
  assert_string_not_equal(skewed.plan->recipe, "sell");
  product_release(&even);
  product_release(&skewed);
}

/* From the slice's first column: 255 away takes a byte. */
static void columns_are_narrow_where_they_can_be(void **state) {
  (void)state;
  static const struct {
    int64_t cols;
    enum cb_type type;
  } cases[] = {{256, CB_U8}, {257, CB_U16}, {65536, CB_U16}, {65537, CB_U32}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    /* two nonzeros, in the first and the last column */
    struct product product = product_of_matrix(
        rows_of_lengths(1, cases[c].cols, cases[c].cols - 1, (const int[]){2}, 1), "recipe=sell bake-limit=0");
    assert_int_equal(array_of(&product, "column_offset")->type, cases[c].type);
    product_release(&product);
  }
  struct product band = sell_of("band,n=90000,half=40,per_row=5", NATURAL);
  assert_int_equal(array_of(&band, "column_offset")->type, CB_U8);
  product_release(&band);
}

/* ---- text */

static void text_has_what_the_plan_needs(void **state) {
  (void)state;
  static const struct words cases[] = {
      {"uniform,n=2048,per_row=5",
       NATURAL "sell-lanes=1",
       {"no guard", "commit(vectors, row, sum)"},
       {"row < kRows", "shuffle_xor(sum", "step += kBatch", "_vector<", "row_of", "carry", "owns", "lanes_log2"}},
      {"uniform,n=2047,per_row=5", NATURAL "sell-lanes=1", {"row < kRows"}, {"no guard", "shuffle_xor(sum"}},
      {"uniform,n=2048,per_row=5", NATURAL "sell-lanes=4", {"kLanes", "shuffle_xor(sum", "no guard"}, {"row < kRows"}},
      {"uniform,n=2048,per_row=9", NATURAL "sell-lanes=1", {"step += kBatch"}, {"shuffle_xor(sum", "_vector<"}},
      {"uniform,n=2048,per_row=9", NATURAL "sell-vector=2", {"value_vector<kVector>"}, {"row_of"}},
      {"staircase,n=300", "sell-sort=on sell-vary=off", {"row_of", "kLanes"}, {"carry", "lanes_log2"}},
      {"staircase,n=300", "sell-vary=on", {"row_of", "lanes_log2", "first_local_row"}, {"carry", "kLanes ="}},
      {"one_row,cols=5000", "sell-vary=on", {"last_to_arrive", "carry_sums"}, {"kLanes =", "owns"}},
      {"long_row,rows=300,cols=8000,per_row=3,long_rows=2,long_length=7000",
       "recipe=sell-long long-row=20",
       {"owns(arrays, row)"},
       {"no guard"}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = sell_of(cases[c].matrix, cases[c].settings);
    check_words(&product, &cases[c]);
    product_release(&product);
  }
}

#define NATURAL_RECIPE "recipe=sell " NATURAL
static const char *const orders_of_rows[] = {NATURAL_RECIPE, "recipe=sell sell-sort=on sell-vary=off",
                                             "recipe=sell sell-vary=on", "recipe=sell"};
enum { ORDERS = sizeof orders_of_rows / sizeof *orders_of_rows };

/* Several windows, so that threads share them. */
static void threads_change_nothing(void **state) {
  static const char *const matrices[] = {"powerlaw,rows=9000,cols=9000,max=2000,min=0", "rmat,scale=14",
                                         "long_row,rows=9000,per_row=5,long_length=8000",
                                         "band,n=80000,half=300,per_row=5"};
  (void)state;
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++)
    for (int order = 0; order < ORDERS; order++) check_threads(matrices[m], orders_of_rows[order]);
}

static void every_allocation_may_fail(void **state) {
  static const char matrix[] = "powerlaw,rows=90,cols=2000,max=1500,min=0";
  char settings[96];
  (void)state;
  for (int order = 0; order < ORDERS; order++) {
    assert_true(check_allocations(matrix_of(matrix), orders_of_rows[order]) > 15);
    snprintf(settings, sizeof settings, "%s bake-limit=0 sell-vector=2", orders_of_rows[order]);
    assert_true(check_allocations(matrix_of(matrix), settings) > 15);
  }
  assert_true(check_allocations(matrix_of("stencil7,n=6,extra=0.3"), "recipe=dia fuse=on") > 40);
}

static void new_values_equal_a_fresh_pack(void **state) {
  (void)state;
  for (int order = 0; order < ORDERS; order++) {
    struct product product = product_of("powerlaw,rows=300,cols=2000,max=1500,min=0", orders_of_rows[order]);
    check_new_values(&product);
    product_release(&product);
  }
}

/* ---- products */

static const char *const executed[][2] = {
    {"empty,rows=300,cols=9", ""},
    {"empty,rows=7,cols=0", ""},
    {"empty,rows=300,cols=9", "sell-sort=on"},
    {"empty,rows=300,cols=9", "sell-vary=on"},
    {"one_row,cols=1", ""},
    {"one_row,cols=1", "sell-lanes=32 sell-vector=4"},
    {"one_row,cols=513", "sell-vary=on"},
    {"one_row,cols=9000", "sell-vary=on"},
    {"one_row,cols=9000", NATURAL},
    {"one_column,rows=1000", ""},
    {"diagonal,n=1", ""},
    {"diagonal,n=768", "sell-lanes=2"},
    {"dense_row,n=3000,row=1500", ""},
    {"dense_row,n=900,row=899", "sell-vary=on"},
    {"dense_row,n=900,row=0", NATURAL},
    {"dense_column,n=300,col=299", ""},
    {"dense,rows=9,cols=768", "sell-vary=on"},
    {"dense,rows=31,cols=33", "sell-lanes=8 sell-vector=4"},
    {"dense,rows=20,cols=600", "sell-vary=on sell-vector=2"},
    {"uniform,n=512,per_row=3", ""},
    {"uniform,n=512,per_row=9", NATURAL "sell-lanes=1 sell-vector=2"},
    {"uniform,n=700,per_row=7", "sell-lanes=4"},
    {"uniform,n=700,per_row=40", "sell-lanes=16 sell-vector=1"},
    {"staircase,n=120", ""},
    {"staircase,n=120", "sell-sort=on sell-lanes=2"},
    {"staircase,n=120", "sell-vary=on sell-vector=4 bake-limit=0"},
    {"arrow,n=900,width=2", ""},
    {"hypersparse,rows=9000,keep=0.02,per_row=3", ""},
    {"hypersparse,rows=9000,keep=0.02,per_row=3", "sell-vary=on"},
    {"rmat,scale=9", "sell-sort=on sell-lanes=1"},
    {"powerlaw,rows=150,cols=3000,max=2900,min=0", ""},
    {"powerlaw,rows=150,cols=3000,max=2900,min=0", "sell-vary=on sell-vector=2 bake-limit=0"},
    {"explicit_zeros,rows=90,cols=90,density=0.3,zeros=0.4", ""},
};

static void products_match_the_oracle(void **state) {
  (void)state;
  verify_kinds(executed, sizeof executed / sizeof *executed, "sell");
}

/* NaN and the largest offset in every slot without a nonzero; returns how many there are. */
static int64_t poison_padding(struct product *product) {
  enum { CHECKSUM_AT = 40 }; /* analysis/plan/blob.h */
  const double nan_value = NAN;
  struct reading reading = read_arrays(product);
  unsigned char *values = product->blob.bytes + cb_blob_offset(product->plan, 0, array_number(product, "values"));
  unsigned char *offsets =
      product->blob.bytes + cb_blob_offset(product->plan, 0, array_number(product, "column_offset"));
  const size_t size = cb_type_size(array_of(product, "column_offset")->type);
  int64_t padding = 0;
  for (int64_t slot = 0; slot < reading.slots; slot++)
    if (!reading.meets_nonzero[slot]) {
      memcpy(values + 8 * slot, &nan_value, 8);
      memset(offsets + (size_t)slot * size, 0xff, size);
      padding++;
    }
  const uint64_t checksum = cb_hash_sealed(product->blob.bytes, (size_t)product->blob.length, CHECKSUM_AT);
  memcpy(product->blob.bytes + CHECKSUM_AT, &checksum, sizeof checksum);
  check_picture_and_release(&reading.picture, product->csr);
  free(reading.meets_nonzero);
  return padding;
}

/* Slots without a nonzero may hold anything: no lane goes past its place's end. */
static void padding_is_never_multiplied(void **state) {
  static const char *const matrices[] = {"staircase,n=90", "powerlaw,rows=150,cols=3000,max=1900,min=0"};
  static const char *const settings[] = {NATURAL, NATURAL "sell-lanes=4 sell-vector=4", "sell-sort=on sell-vary=off",
                                         "sell-vary=on", "sell-vary=on sell-vector=2"};
  struct gathered gathered = {0};
  (void)state;
  for (int c = 0; c < 10; c++) {
    char text[160];
    snprintf(text, sizeof text, "recipe=sell form=ax bake-limit=0 %s", settings[c / 2]);
    assert_true(poison_padding(gather(&gathered, matrices[c % 2], text)) > 0);
  }
  verify_gathered(&gathered);
}

/* ---- behind another region */

/* In turn with diagonals or blocks: rows in order, and as many lanes as make its thread blocks fit the others'. */
static void joins_with_rows_in_order(void **state) {
  static const char mesh[] = "stencil7,n=12,extra=0.3";
  static const struct {
    const char *matrix, *settings;
    int launches;
    const char *lanes;
  } cases[] = {
      {mesh, "recipe=dia fuse=on", 1, "1"},
      {mesh, "recipe=dia fuse=on sell-lanes=8", 1, "8"},
      {mesh, "recipe=dia fuse=on sell-sort=on", 2, NULL},
      {mesh, "recipe=dia fuse=on sell-vary=on", 2, NULL},
      {mesh, "recipe=dia fuse=off", 2, NULL},
      {"block,blocks_r=60,r=5,c=5,per_row=30,scattered=4",
       "recipe=tiles block-size=5x5 block-lanes=1 fuse=on", 1, "1"},
      {"block,blocks_r=60,r=5,c=5,per_row=30,scattered=4",
       "recipe=tiles block-size=5x5 block-lanes=32 fuse=on", 1, "32"}, /* 40 rows, so 8 of them */
      {"block,blocks_r=60,r=5,c=5,per_row=30,scattered=4",
       "recipe=tiles block-size=5x5 block-lanes=32 fuse=on sell-lanes=4", 2, "4"}, /* 64 rows do not fit 40 */
  };
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = product_of(cases[c].matrix, cases[c].settings);
    product.region = 1;
    assert_string_equal(region_of(&product)->layout, "sell");
    assert_int_equal(product.plan->launches_count, cases[c].launches);
    assert_int_equal(region_of(&product)->joining, cases[c].launches == 1 ? CB_IN_TURN : CB_SEPARATE);
    if (cases[c].lanes) assert_string_equal(fact(&product, "lanes"), cases[c].lanes);
    if (cases[c].launches == 1) {
      assert_null(array_of(&product, "row_of"));
      assert_int_equal(region_of(&product)->row_threads, strtol(fact(&product, "lanes"), NULL, 10));
    }
    product_release(&product);
  }
}

static void products_behind_other_regions(void **state) {
  static const char *const cases[][2] = {
      {"stencil7,n=7,extra=0.3", "recipe=dia fuse=on"},
      {"stencil7,n=7,extra=0.3", "recipe=dia fuse=on sell-lanes=8"},
      {"stencil7,n=7,extra=0.3", "recipe=dia fuse=off sell-sort=on"},
      {"stencil7,n=7,extra=0.3", "recipe=dia fuse=on sell-vary=on"},
      {"dense_row,n=900,row=7", "recipe=dia fuse=on"},
      {"dense_row,n=900,row=7", "recipe=dia fuse=off sell-vary=on"},
      {"block,blocks_r=40,r=5,c=5,per_row=30,scattered=4", "recipe=tiles block-size=5x5 block-lanes=32 fuse=on"},
      {"block,blocks_r=90,per_row=3,scattered=4", "recipe=tiles fuse=on sell-vector=2"},
      /* rows of its own, in order and not: merge takes the long ones */
      {"powerlaw,rows=200,cols=2000,max=1900,min=0", "recipe=sell-long long-row=20 fuse=on " NATURAL},
      {"powerlaw,rows=200,cols=2000,max=1900,min=0", "recipe=sell-long long-row=20 fuse=on sell-sort=on"},
      {"powerlaw,rows=200,cols=2000,max=1900,min=0", "recipe=sell-long long-row=20 fuse=on sell-vary=on"},
      {"staircase,n=90", "recipe=sell-long long-row=20 fuse=on sell-lanes=4"},
  };
  struct gathered gathered = {0};
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const int first = gathered.count;
    gather_kinds(&gathered, cases[c][0], cases[c][1]);
    for (int i = first; i < gathered.count; i++) assert_int_equal(gathered.products[i].plan->regions_count, 2);
  }
  verify_gathered(&gathered);
}

/* What the kernel cannot do without: verify sees each of these changes. */
static void verify_sees_what_is_left_out(void **state) {
  static const struct change changes[] = {
      {"staircase,n=90", NATURAL "form=ax", "    if (step + i < steps) sum", "    if (step + i < steps + 1) sum"},
      {"uniform,n=200,per_row=20", NATURAL "form=ax sell-lanes=1", "step += kBatch", "step += 2 * kBatch"},
      {"uniform,n=200,per_row=20", NATURAL "form=ax sell-lanes=1", "base + offsets.at[j]", "base + offsets.at[0]"},
      {"uniform,n=200,per_row=21", NATURAL "form=ax sell-lanes=4 sell-vector=1", " - lane % kLanes + ", " + "},
      {"uniform,n=200,per_row=20", NATURAL "form=ax sell-lanes=4 sell-vector=2", " - lane % kLanes * kVector", ""},
      {"uniform,n=200,per_row=20", NATURAL "form=ax sell-lanes=4", "step = kLanes / 2", "step = kLanes / 4"},
      {"uniform,n=200,per_row=20", NATURAL "form=add sell-lanes=4", "lane % kLanes == 0", "lane % kLanes < 2"},
      {"uniform,n=200,per_row=20", NATURAL "form=ax sell-lanes=1", "if (row < kRows)", "if (row <= kRows)"},
      {"band,n=900,half=20,per_row=5", NATURAL "form=ax", "= first_column(arrays, slice)",
       "= 0 * first_column(arrays, slice)"},
      {"staircase,n=90", "form=ax sell-sort=on sell-vary=off", "= row_of(arrays, local_row)",
       "= 0 * row_of(arrays, local_row) + local_row"},
      {"staircase,n=90", "form=ax sell-vary=on", "step = lanes / 2", "step = lanes / 4"},
      {"one_row,cols=9000", "form=ax sell-vary=on", "store_l2(sums + slice, sum)", "store_l2(sums + first, sum)"},
      {"one_row,cols=9000", "form=ax sell-vary=on", "int segment = begin + lane", "int segment = begin + lane + 1"},
      {"one_row,cols=9000", "form=ax sell-vary=on", ", end - begin)) return", ", end - begin - 1)) return"},
      {"one_row,cols=9000", "form=ax sell-vary=on", ", end - begin)) return", ", end - begin + 1)) return"},
      {"one_row,cols=9000", "form=ax sell-vary=on", "if (slice < kSegments)", "if (slice < kSegments - 1)"},
      {"one_row,cols=9000", "form=ax sell-cut=on", "segment += 8", "segment += 9"},
      {"one_row,cols=9000", "form=ax sell-cut=on", "begin + thread % 8", "begin + thread % 4"},
      {"one_row,cols=9000", "form=ax sell-cut=on", "  wait_behind(begin", "  (void)(begin"},
      {"uniform,n=200,per_row=20", NATURAL "form=ax sell-lanes=4", "  wait_behind(row", "  (void)(row"},
      {"uniform,n=200,per_row=20", NATURAL "form=ax bake-limit=0", "  wait_behind(row",
       "  if (load_x(vectors, 0) == 3) return;\n  wait_behind(row"},
      {"uniform,n=7700,per_row=4", NATURAL "form=ax sell-lanes=4", "  wait_behind(row",
       "  if (value(arrays, slots) == 3) return;\n  wait_behind(row"}, /* 121 thread blocks */
      {"staircase,n=90", "form=ax sell-vary=on", "  wait_behind(row", "  (void)(row"},
      {"one_row,cols=9000", "form=ax sell-cut=on", "step = 4; step", "step = 2; step"},
      {"one_row,cols=9000", "form=ax sell-cut=on", "row - kRows - 1), sum", "row - kRows), sum"},
      {"one_row,cols=9000", "form=ax sell-cut=on", "if (row > kRows)", "if (row > kRows + 1)"},
  };
  (void)state;
  check_changes_are_seen(changes, sizeof changes / sizeof *changes, "sell");
}

static int occurrences(const char *text, const char *words) {
  int count = 0;
  for (const char *at = text; (at = strstr(at, words)); at++) count++;
  return count;
}

/* Whether values are loaded before the wait. */
static int loads_ahead(const char *text) {
  const char *wait = strstr(text, "  wait_behind(row"), *load = strstr(text, "  load_values(arrays, slots, 0,");
  return wait && load && load < wait;
}

/* A launch for itself, of not too many thread blocks: it waits behind what it looks up, and lets the kernel behind
 * start once, at its beginning where thread blocks are few, or leave none a place. */
static void the_kernel_behind_starts_once(void **state) {
  static const struct {
    const char *matrix, *settings;
    int waits, at_once, starts; /* starts: calls of start_next, in its last launch alone */
  } cases[] = {
      {"uniform,n=8448,per_row=4", "recipe=sell sell-lanes=4 form=ax", 1, 1, 1}, /* 132 thread blocks */
      {"uniform,n=8449,per_row=4", "recipe=sell sell-lanes=4 form=ax", 1, 0, 1},
      {"uniform,n=23040,per_row=4", "recipe=sell sell-lanes=4 form=ax", 1, 0, 1}, /* 360 */
      {"uniform,n=23041,per_row=4", "recipe=sell sell-lanes=4 form=ax", 0, 0, 0},
      {"uniform,n=64192,per_row=8", "recipe=sell sell-lanes=4 form=ax", 0, 0, 0}, /* 1003, of 1056 places */
      {"uniform,n=64193,per_row=8", "recipe=sell sell-lanes=4 form=ax", 1, 1, 1},
      {"uniform,n=64193,per_row=4", "recipe=sell sell-lanes=4 form=ax", 0, 0, 0}, /* one step */
      {"staircase,n=400", "recipe=sell sell-vary=on form=ax", 1, 1, 1},
      {"random,rows=24000,per_row=12", "recipe=sell sell-vary=on form=ax", 1, 0, 1}, /* more than 68 */
      {"one_row,cols=9000", "recipe=sell sell-cut=on form=ax", 2, 1, 2},
      {"stencil7,n=7,extra=0.3", "recipe=dia fuse=on form=ax", 0, 0, 0},
  };
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = product_of(cases[c].matrix, cases[c].settings);
    const char *text = product.source.text + product.source.body;
    const char *kernels = strstr(text, "// ---- kernels");
    assert_non_null(kernels);
    assert_int_equal(occurrences(text, "  wait_behind("), cases[c].waits);
    assert_int_equal(occurrences(text, "  start_next();"), cases[c].starts);
    assert_int_equal(strstr(kernels, "  start_next();") != NULL, cases[c].at_once);
    assert_int_equal(strstr(kernels, "  wait_for_previous();") != NULL, !cases[c].waits);
    if (!strstr(cases[c].settings, "cut")) assert_int_equal(loads_ahead(text), cases[c].at_once);
    product_release(&product);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arrays_describe_the_matrix),
      cmocka_unit_test(arrays_describe_random_matrices),
      cmocka_unit_test(what_follows_from_the_place_is_not_stored),
      cmocka_unit_test(lanes_occupy_the_gpu), cmocka_unit_test(lanes_of_even_rows_fill_a_round),
      cmocka_unit_test(scattered_rows_are_cut),
      cmocka_unit_test(long_ones_come_first),
      cmocka_unit_test(long_rows_are_loaded_in_vectors),
      cmocka_unit_test(a_batch_is_what_slices_have),
      cmocka_unit_test(a_batch_of_uneven_slices_is_their_mean),
      cmocka_unit_test(rows_are_sorted_where_that_pays),
      cmocka_unit_test(order_is_by_length_within_windows),
      cmocka_unit_test(windows_grow_until_slots_are_full),
      cmocka_unit_test(varied_lanes_follow_the_longest_row),
      cmocka_unit_test(rows_longer_than_a_segment_are_cut),
      cmocka_unit_test(rows_little_longer_are_whole_for_several_vectors),
      cmocka_unit_test(several_vectors_are_loaded_together_where_chains_are_long),
      cmocka_unit_test(auto_varies_lanes_only_where_nothing_else_is_asked_for),
      cmocka_unit_test(a_search_takes_sell_where_rows_are_alike),
      cmocka_unit_test(columns_are_narrow_where_they_can_be),
      cmocka_unit_test(text_has_what_the_plan_needs),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(new_values_equal_a_fresh_pack),
      cmocka_unit_test(products_match_the_oracle),
      cmocka_unit_test(padding_is_never_multiplied),
      cmocka_unit_test(joins_with_rows_in_order),
      cmocka_unit_test(products_behind_other_regions),
      cmocka_unit_test(the_kernel_behind_starts_once),
      cmocka_unit_test(verify_sees_what_is_left_out),
  };
  return cmocka_run_group_tests_name("sell", tests, NULL, NULL);
}
