// SPDX-License-Identifier: Apache-2.0
/* The merge layout: row ends, rows and slots that its arrays describe against the matrix, what it decides and
 * what its text lacks, threads, failing allocations; and products of many shapes against the oracle. */
#include "tests/support.h"

#include "runtime/verify.h"

#include <omp.h>

enum { LANES = 32, WARPS = 8 };

static const struct cb_region *region_of(const struct product *product) {
  return &product->plan->regions[0];
}

static int64_t constant(const struct product *product, const char *name, int64_t otherwise) {
  const struct cb_region *region = region_of(product);
  for (int i = 0; i < region->constants_count; i++)
    if (!strcmp(region->constants[i].name, name)) return region->constants[i].value;
  return otherwise;
}

static const char *fact(const struct product *product, const char *key) {
  const struct cb_region *region = region_of(product);
  for (int i = 0; i < region->facts_count; i++)
    if (!strcmp(region->facts[i].key, key)) return region->facts[i].value;
  return "none";
}

/* Number of the array in the region, or -1. */
static int array_number(const struct product *product, const char *name) {
  const struct cb_region *region = region_of(product);
  for (int i = 0; i < region->arrays_count; i++)
    if (!strcmp(region->arrays[i].name, name)) return i;
  return -1;
}

/* Element of an index array as the kernel would get it, wherever it is stored. */
static int64_t element(const struct product *product, const char *name, int64_t i) {
  const int number = array_number(product, name);
  assert_true(number >= 0);
  const struct cb_array *array = &region_of(product)->arrays[number];
  const unsigned char *bytes = product->blob.bytes + cb_blob_offset(product->plan, 0, number);
  uint64_t stored = 0;
  assert_in_range(i, 0, array->count - 1);
  if (array->storage == CB_AFFINE) return array->base + array->step * i;
  if (array->storage == CB_BAKED) return (int64_t)array->baked[i];
  const size_t size = cb_type_size(array->type);
  memcpy(&stored, bytes + (size_t)i * size, size);
  return (int64_t)stored;
}

static double value_at(const struct product *product, int64_t slot) {
  double value;
  memcpy(&value,
         product->blob.bytes + cb_blob_offset(product->plan, 0, array_number(product, "values")) +
             8 * (size_t)slot,
         8);
  return value;
}

static struct product merge_of(const char *matrix, const char *settings) {
  char text[200];
  snprintf(text, sizeof text, "recipe=merge %s", settings);
  return product_of(matrix, text);
}

/* Whether the generated text, shims and host section apart, has `words`. */
static int has(const struct product *product, const char *words) {
  const char *at = strstr(product->source.text + product->source.body, words);
  const char *host = strstr(product->source.text, "// ---- host:");
  return at && at < host;
}

/* ---- what the arrays say, read as the kernel reads them */

/* A picture of the matrix that the arrays describe: value by (row, column), and how often a row is committed.
 */
struct picture {
  int64_t rows, cols;
  double *values;
  int *commits;
};

static void see_tile(const struct product *product, int64_t tile, struct picture *picture) {
  const int64_t items = constant(product, "kItems", 0), chunk = LANES * items;
  const int64_t first = element(product, "first_step", tile) * LANES,
                base = element(product, "first_column", tile);
  const int guarded = has(product, "i < steps");
  const int64_t slots = guarded ? element(product, "first_step", tile + 1) * LANES - first : WARPS * chunk;
  int64_t open[8192], opened = 0; /* slots whose row has not ended yet */
  for (int64_t warp = 0; warp < WARPS; warp++) {
    int64_t ended = 0, number = tile * WARPS + warp;
    for (int64_t lane = 0; lane < LANES; lane++) {
      const int64_t bits = element(product, "descriptor", number * LANES + lane);
      assert_int_equal(bits >> items, ended);
      for (int64_t i = 0; i < items; i++) {
        const int64_t position = warp * chunk + lane * items + i;
        if (position < slots) open[opened++] = first + position;
        if (!(bits >> i & 1)) continue;
        int64_t row = element(product, "first_row", number) + ended;
        if (array_number(product, "row_offset") >= 0)
          row = element(product, "first_row", number) +
                element(product, "row_offset", element(product, "first_end", number) + ended);
        for (int64_t k = 0; k < opened; k++)
          picture->values[row * picture->cols + base + element(product, "column_offset", open[k])] +=
              value_at(product, open[k]);
        picture->commits[row]++;
        opened = 0;
        ended++;
      }
    }
    assert_int_equal(ended, element(product, "row_count", number));
  }
}

static void see_long(const struct product *product, int64_t block, struct picture *picture) {
  const int64_t row = element(product, "long_row", block), base = element(product, "long_column", block);
  for (int64_t slot = element(product, "long_slot", block); slot < element(product, "long_slot", block + 1);
       slot++)
    picture->values[row * picture->cols + base + element(product, "column_offset", slot)] +=
        value_at(product, slot);
  if (block >= constant(product, "kPieces", 0) ||
      element(product, "carry_first", element(product, "carry_group", block)) == block)
    picture->commits[row]++;
}

/* Every nonzero once, in its place; every row committed once. */
static void check_picture(const struct product *product) {
  const struct cb_csr *csr = product->csr;
  const int64_t tiles = strtol(fact(product, "tiles"), NULL, 10),
                pieces = strtol(fact(product, "long"), NULL, 10);
  struct picture picture = {csr->rows, csr->cols, calloc((size_t)(csr->rows * csr->cols), sizeof(double)),
                            calloc((size_t)csr->rows, sizeof(int))};
  assert_true(picture.values && picture.commits);
  for (int64_t t = 0; t < tiles; t++) see_tile(product, t, &picture);
  for (int64_t p = 0; p < pieces; p++) see_long(product, p, &picture);
  for (int64_t i = 0; i < constant(product, "kEmptyRows", 0); i++)
    picture.commits[element(product, "empty_row", i)]++;
  for (int64_t row = 0; row < csr->rows; row++) {
    assert_int_equal(picture.commits[row], 1);
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      assert_true(picture.values[row * csr->cols + csr->col_idx[k]] == csr->values[k]);
      picture.values[row * csr->cols + csr->col_idx[k]] = 0;
    }
  }
  for (int64_t i = 0; i < csr->rows * csr->cols; i++) assert_true(picture.values[i] == 0);
  free(picture.values);
  free(picture.commits);
}

/* rows × cols with rows of the lengths given, over and over, from the left with steps of `stride`. */
static struct cb_csr rows_of_lengths(int64_t rows, int64_t cols, int64_t stride, const int *lengths,
                                     int count) {
  struct cb_diag diag = {0};
  struct cb_csr csr = {0};
  int64_t nonzeros = 0;
  for (int64_t row = 0; row < rows; row++) nonzeros += lengths[row % count];
  struct cb_coo coo = {.rows = rows, .cols = cols};
  coo.row_idx = cb_alloc((size_t)nonzeros, 4);
  coo.col_idx = cb_alloc((size_t)nonzeros, 4);
  coo.values = cb_alloc((size_t)nonzeros, 8);
  for (int64_t row = 0; row < rows; row++)
    for (int64_t k = 0; k < lengths[row % count]; k++, coo.count++) {
      coo.row_idx[coo.count] = (int32_t)row;
      coo.col_idx[coo.count] = (int32_t)((row + k * stride) % cols);
      coo.values[coo.count] = (double)(coo.count + 1);
    }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  return csr;
}

static void arrays_describe_the_matrix(void **state) {
  (void)state;
  static const int lengths[][6] = {
      {3, 3, 3, 3, 3, 3},             /* lanes end with rows */
      {96, 96, 96, 96, 96, 96},       /* chunks do */
      {768, 768, 768, 768, 768, 768}, /* tiles do */
      {769, 1, 768, 0, 767, 2},       /* one more, one fewer */
      {0, 0, 1, 0, 0, 900},
      {1, 900, 0, 2, 300, 450},
      {97, 95, 0, 1, 31, 33},
  };
  struct cb_diag diag = {0};
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
    for (int items = 3; items <= 7; items += 2)
      for (int variant = 0; variant < 4; variant++) {
        char settings[128];
        snprintf(settings, sizeof settings, "recipe=merge merge-items=%d merge-pad=%s %s", items,
                 variant % 2 ? "on" : "off", variant / 2 ? "merge-piece=256 bake-limit=0" : "");
        struct product product =
            product_of_matrix(rows_of_lengths(40, 901, 1 + 2 * (int64_t)l, lengths[l], 6), settings);
        assert_ok(cb_plan_check(product.plan, &diag));
        assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
        check_picture(&product);
        product_release(&product);
      }
  for (uint64_t seed = 0; seed < 60; seed++) {
    char settings[96];
    snprintf(settings, sizeof settings, "recipe=merge merge-items=%d merge-pad=%s", 3 + 2 * (int)(seed % 7),
             seed % 2 ? "auto" : "off");
    struct product product = product_of_matrix(
        random_matrix(70 + (int64_t)seed, 90, (unsigned)(seed * seed) % 1000, seed), settings);
    check_picture(&product);
    product_release(&product);
  }
}

/* ---- decisions */

static void only_very_long_rows_need_carries(void **state) {
  (void)state;
  /* 768 nonzeros are a tile; 6144 still one thread block's; one more are pieces of at most 2048. */
  static const struct {
    const char *matrix, *long_rows, *pieces;
  } cases[] = {
      {"one_row,cols=768", "none", "none"},
      {"one_row,cols=769", "1", "none"},
      {"one_row,cols=6144", "1", "none"},
      {"one_row,cols=6145", "4", "1 4"},
      {"dense,rows=100,cols=768", "none", "none"},
      {"long_row,rows=3000,long_rows=2,cols=9000,long_length=7000", "8", "2 8"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = merge_of(cases[c].matrix, "merge-items=3");
    assert_string_equal(fact(&product, "long"), cases[c].long_rows);
    assert_string_equal(fact(&product, "pieces"), cases[c].pieces);
    assert_int_equal(has(&product, "last_to_arrive"), strcmp(cases[c].pieces, "none") != 0);
    assert_int_equal(product.plan->launches_count, 1);
    product_release(&product);
  }
}

static void lanes_take_more_of_larger_matrices(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *items;
  } cases[] = {{"uniform,n=2000,per_row=16", "3"},
               {"uniform,n=40000,per_row=16", "5"},
               {"uniform,n=90000,per_row=16", "7"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = merge_of(cases[c].matrix, "");
    assert_string_equal(fact(&product, "items"), cases[c].items);
    product_release(&product);
  }
}

/* Skewed matrices are what the layout is for; the search takes it for them. */
static void auto_takes_merge_where_lengths_differ(void **state) {
  (void)state;
  struct product skewed = product_of("powerlaw,rows=3000,cols=9000,max=4000,min=1", "recipe=auto");
  assert_string_equal(skewed.plan->recipe, "merge");
  struct product even = product_of("uniform,n=300000,per_row=8", "recipe=auto");
  assert_string_not_equal(even.plan->recipe, "merge");
  product_release(&skewed);
  product_release(&even);
}

static void columns_are_narrow_where_they_can_be(void **state) {
  (void)state;
  static const struct {
    const char *matrix;
    enum cb_type type;
    enum cb_storage bases;
  } cases[] = {
      {"uniform,n=65536,per_row=4", CB_U16, CB_AFFINE},
      {"uniform,n=100000,per_row=4", CB_U32, CB_AFFINE},
      {"band,n=90000,half=300,per_row=4", CB_U16, CB_STORED},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = merge_of(cases[c].matrix, "");
    const struct cb_array *arrays = region_of(&product)->arrays;
    assert_int_equal(arrays[array_number(&product, "column_offset")].type, cases[c].type);
    assert_int_equal(arrays[array_number(&product, "first_column")].storage, cases[c].bases);
    assert_true(cb_type_size(arrays[array_number(&product, "descriptor")].type) <= 2);
    product_release(&product);
  }
}

/* ---- text */

static void text_has_what_the_plan_needs(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *settings, *has[5], *lacks[6];
  } cases[] = {
      {"uniform,n=3000,per_row=16",
       "",
       {"No guard", "commit(vectors, first + k, sum)"},
       {"multiply_long", "kEmptyRows", "row_offset", "i < steps", "carry"}},
      {"uniform,n=3000,per_row=16", "merge-pad=off", {"i < steps"}, {"No guard", "multiply_long"}},
      {"hypersparse,rows=5000,keep=0.1",
       "",
       {"kEmptyRows", "row_of_lane", "empty_row"},
       {"multiply_long", "kBusyBlocks"}},
      {"hypersparse,rows=5000,keep=0.1", "form=add", {"row_of_lane"}, {"kEmptyRows", "multiply_long"}},
      {"hypersparse,rows=100000,keep=0.0001", "", {"kEmptyRows", "kBusyBlocks"}, {"multiply_long"}},
      {"empty,rows=5000", "", {"kEmptyRows"}, {"multiply_tile", "multiply_long", "kBusyBlocks", "column"}},
      {"one_row,cols=5000", "", {"multiply_long"}, {"multiply_tile", "kLongBlocks", "carry", "kEmptyRows"}},
      {"one_row,cols=9000",
       "",
       {"multiply_long", "carry_group"},
       {"multiply_tile", "kLongBlocks", "kEmptyRows"}},
      {"dense_row,n=5000",
       "",
       {"multiply_tile", "multiply_long", "kLongBlocks"},
       {"carry", "kEmptyRows", "row_offset"}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = merge_of(cases[c].matrix, cases[c].settings);
    for (int i = 0; i < 5 && cases[c].has[i]; i++)
      if (!has(&product, cases[c].has[i])) fail_msg("%s lacks '%s'", cases[c].matrix, cases[c].has[i]);
    for (int i = 0; i < 6 && cases[c].lacks[i]; i++)
      if (has(&product, cases[c].lacks[i])) fail_msg("%s has '%s'", cases[c].matrix, cases[c].lacks[i]);
    product_release(&product);
  }
}

static const char *const sets[] = {"powerlaw,rows=900,cols=9000,max=8000,min=0", "rmat,scale=11",
                                   "long_row,rows=9000,per_row=5,long_length=8000",
                                   "band,n=80000,half=300,per_row=5"};
enum { SETS = sizeof sets / sizeof *sets };

static void threads_change_nothing(void **state) {
  (void)state;
  for (int set = 0; set < SETS; set++) {
    omp_set_num_threads(1);
    struct product first = merge_of(sets[set], "");
    for (int threads = 2; threads <= 5; threads += 3) {
      omp_set_num_threads(threads);
      struct product product = merge_of(sets[set], "");
      assert_string_equal(product.source.text, first.source.text);
      assert_int_equal(product.plan->cost.ns, first.plan->cost.ns);
      assert_int_equal(product.blob.length, first.blob.length);
      assert_memory_equal(product.blob.bytes, first.blob.bytes, (size_t)product.blob.length);
      product_release(&product);
    }
    product_release(&first);
  }
  omp_set_num_threads(1);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  static const char *const settings[] = {"recipe=merge",
                                         "recipe=merge merge-piece=256 merge-pad=off bake-limit=0"};
  omp_set_num_threads(1);
  for (int set = 0; set < 2; set++) {
    struct cb_csr csr = matrix_of("powerlaw,rows=90,cols=2000,max=1500,min=0");
    struct cb_options options;
    struct cb_target target;
    struct cb_diag diag = {0};
    int failures = 0;
    set_options(&options, settings[set]);
    assert_ok(cb_target_find(&target, "sm_90", &diag));
    for (uint64_t nth = 1;; nth++) {
      struct cb_plan *plan = NULL;
      struct cb_assignment *assignment = NULL;
      struct cb_blob blob = {0};
      cb_memory_fail_at(nth, nth % 2 == 0);
      enum cb_status s = cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag);
      if (!s) s = cb_pack(&blob, plan, assignment, &csr, (struct cb_hash){1, 2}, &diag);
      const uint64_t made = cb_memory_fail_at(0, 0);
      assert_true(s == CB_OK || s == CB_ERR_MEMORY);
      failures += s == CB_ERR_MEMORY;
      cb_blob_release(&blob);
      cb_assignment_free(assignment);
      cb_plan_free(plan);
      if (made < nth) {
        assert_int_equal(s, CB_OK);
        break;
      }
    }
    assert_true(failures > 20);
    cb_csr_release(&csr);
  }
  omp_set_num_threads(1);
}

/* ---- products */

static const char *const executed[][2] = {
    {"empty,rows=300,cols=9", ""},
    {"empty,rows=7,cols=0", ""},
    {"one_row,cols=1", ""},
    {"one_row,cols=769", "merge-items=3"},
    {"one_row,cols=9000", ""},
    {"one_column,rows=1000", ""},
    {"diagonal,n=1", ""},
    {"diagonal,n=768", ""},
    {"dense_row,n=3000,row=1500", ""},
    {"dense_row,n=900,row=899", "merge-piece=256"},
    {"dense_column,n=300,col=299", "merge-items=15"},
    {"dense,rows=9,cols=768", ""},
    {"dense,rows=70,cols=96", "merge-items=3"},
    {"dense,rows=31,cols=33", "merge-items=13 merge-pad=off"},
    {"uniform,n=512,per_row=3", "merge-pad=off"},
    {"uniform,n=700,per_row=7", "merge-items=7"},
    {"staircase,n=120", "merge-items=9"},
    {"arrow,n=900,width=2", ""},
    {"hypersparse,rows=9000,keep=0.02,per_row=3", ""},
    {"hypersparse,rows=30000,keep=0.0001,per_row=3", ""}, /* thread blocks without nonzeros */
    {"rmat,scale=9", "merge-items=11 merge-pad=off"},
    {"powerlaw,rows=150,cols=3000,max=2900,min=0", ""},
    {"powerlaw,rows=150,cols=3000,max=2900,min=0", "merge-piece=512 bake-limit=0"},
    {"long_row,rows=300,cols=8000,per_row=3,long_rows=2,long_length=7000", ""},
    {"explicit_zeros,rows=90,cols=90,density=0.3,zeros=0.4", ""},
};
enum { EXECUTED = sizeof executed / sizeof *executed, KINDS = 6 };

static struct cb_verify_case case_of(const struct product *product) {
  return (struct cb_verify_case){product->csr,     product->plan,  product->assignment,
                                 &product->source, &product->blob, "test"};
}

static const char *const kinds[KINDS] = {"type=f64 form=ax",  "type=f32 form=ax",    "type=f64 form=add",
                                         "type=f32 form=add", "type=f64 form=axpby", "type=f32 form=axpby"};

static void verify_all(struct product *products, int count) {
  struct cb_verify_case *cases = calloc((size_t)count, sizeof *cases);
  struct cb_verify_report *reports = calloc((size_t)count, sizeof *reports);
  struct cb_verify_options options;
  struct cb_host *host;
  struct cb_diag diag = {0};
  int failures = 0;
  cb_verify_options_default(&options);
  options.host.optimize = options.host.debug = 0;
  options.orders = 2;
  for (int c = 0; c < count; c++) cases[c] = case_of(&products[c]);
  assert_ok(cb_host_open(&host, &options.host, &diag));
  assert_ok(cb_verify_batch(host, cases, count, &options, reports, &diag));
  for (int c = 0; c < count; c++) {
    if (reports[c].status && ++failures < 10)
      print_error("%s: %s\n", products[c].plan->line, reports[c].message);
    product_release(&products[c]);
  }
  cb_host_close(host);
  free(cases);
  free(reports);
  assert_int_equal(failures, 0);
}

static void products_match_the_oracle(void **state) {
  (void)state;
  struct product *products = calloc(EXECUTED * KINDS, sizeof *products);
  for (int c = 0; c < EXECUTED * KINDS; c++) {
    char settings[96];
    snprintf(settings, sizeof settings, "%s %s", executed[c / KINDS][1], kinds[c % KINDS]);
    products[c] = merge_of(executed[c / KINDS][0], settings);
  }
  verify_all(products, EXECUTED * KINDS);
  free(products);
}

/* As the second region, which writes the rows that it holds, or adds to what the first has written: short rows are
 * sell's. */
static void a_second_region_leaves_other_rows_alone(void **state) {
  (void)state;
  static const char *const matrices[] = {
      "powerlaw,rows=200,cols=2000,max=1900,min=0", "staircase,n=90",
      "long_row,rows=90,cols=9000,per_row=30,long_rows=2,long_length=8000"};
  enum { CASES = 3 * 2 * KINDS };
  struct product *products = calloc(CASES, sizeof *products);
  for (int c = 0; c < CASES; c++) {
    char settings[96];
    const int fused = c / KINDS % 2;
    snprintf(settings, sizeof settings, "recipe=sell-long long-row=20 fuse=%s %s", fused ? "on" : "off", kinds[c % KINDS]);
    products[c] = product_of(matrices[c / KINDS / 2], settings);
    assert_int_equal(products[c].plan->regions_count, 2);
    assert_int_equal(products[c].plan->regions[1].commit, fused ? CB_COMMIT_OWN : CB_COMMIT_ADD);
  }
  verify_all(products, CASES);
  free(products);
}

/* What the kernel cannot do without: verify sees each of these changes. */
static void verify_sees_what_is_left_out(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *words, *instead;
  } changes[] = {
      {"uniform,n=200,per_row=16", "if (lane - step >= reach) ", "if (lane - step >= 0) "},
      {"uniform,n=200,per_row=16", "if (ends && lane > 0) ", "if (lane < 0) "},
      {"uniform,n=200,per_row=17", "k == 0 && other >= 0", "k < 0"},
      {"dense,rows=3,cols=300", "if (rows_of[other] > 0) break", ""},
      {"hypersparse,rows=3000", "empty_row(arrays, i)", "0"},
      {"one_row,cols=9000", "if (group >= 0)", "if (group > 0)"},
  };
  for (size_t c = 0; c < sizeof changes / sizeof *changes; c++) {
    struct product product = merge_of(changes[c].matrix, "form=ax");
    struct cb_verify_report report;
    struct cb_verify_options options;
    struct cb_diag diag = {0};
    char *at = strstr(product.source.text + product.source.body, changes[c].words);
    assert_non_null(at);
    memset(at, ' ', strlen(changes[c].words));
    memcpy(at, changes[c].instead, strlen(changes[c].instead));
    const struct cb_verify_case one = case_of(&product);
    cb_verify_options_default(&options);
    if (cb_verify(&one, &options, &report, &diag) == CB_OK) fail_msg("'%s' is not missed", changes[c].words);
    product_release(&product);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arrays_describe_the_matrix),
      cmocka_unit_test(only_very_long_rows_need_carries),
      cmocka_unit_test(lanes_take_more_of_larger_matrices),
      cmocka_unit_test(auto_takes_merge_where_lengths_differ),
      cmocka_unit_test(columns_are_narrow_where_they_can_be),
      cmocka_unit_test(text_has_what_the_plan_needs),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(products_match_the_oracle),
      cmocka_unit_test(a_second_region_leaves_other_rows_alone),
      cmocka_unit_test(verify_sees_what_is_left_out),
  };
  return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
