// SPDX-License-Identifier: Apache-2.0
/* The merge layout: row ends, rows and slots that its arrays describe against the matrix, what it decides and
 * what its text lacks, threads, failing allocations; and products of many shapes against the oracle. */
#include "tests/layouts.h"

enum { LANES = 32, WARPS = 8 };

static struct product merge_of(const char *matrix, const char *settings) {
  char text[200];
  snprintf(text, sizeof text, "recipe=merge %s", settings);
  return product_of(matrix, text);
}

/* ---- what the arrays say, read as the kernel reads them */

static void see_tile(const struct product *product, int64_t tile, struct picture *picture) {
  const int64_t items = constant(product, "kItems", 0), chunk = LANES * items;
  const int64_t first = element(product, "first_step", tile) * LANES,
                base = element(product, "first_column", tile);
  const int guarded = has(product, "i < steps");
  const int64_t slots = guarded ? element(product, "first_step", tile + 1) * LANES - first : WARPS * chunk;
  int64_t open[8192], opened = 0; /* slots whose row has not ended yet */
  int64_t last = -1;              /* of those whose row has */
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
          see_value(picture, row, base + element(product, "column_offset", open[k]), value_at(product, open[k]));
        picture->commits[row]++;
        if (opened) last = open[opened - 1];
        opened = 0;
        ended++;
      }
    }
    assert_int_equal(ended, element(product, "row_count", number));
  }
  for (int64_t k = 0; k < opened; k++) /* what pads the tile repeats its last column */
    assert_int_equal(element(product, "column_offset", open[k]), element(product, "column_offset", last));
}

static void see_long(const struct product *product, int64_t block, struct picture *picture) {
  const int64_t row = element(product, "long_row", block), base = element(product, "long_column", block);
  for (int64_t slot = element(product, "long_slot", block); slot < element(product, "long_slot", block + 1);
       slot++)
    see_value(picture, row, base + element(product, "column_offset", slot), value_at(product, slot));
  if (block >= constant(product, "kSegments", 0) ||
      element(product, "carry_first", element(product, "carry_group", block)) == block)
    picture->commits[row]++;
}

/* Every nonzero once, in its place; every row committed once. */
static void check_picture(const struct product *product) {
  const struct cb_csr *csr = product->csr;
  const int64_t tiles = strtol(fact(product, "tiles"), NULL, 10),
                segments = strtol(fact(product, "long"), NULL, 10);
  struct picture picture = picture_for(csr);
  for (int64_t t = 0; t < tiles; t++) see_tile(product, t, &picture);
  for (int64_t p = 0; p < segments; p++) see_long(product, p, &picture);
  for (int64_t i = 0; i < constant(product, "kEmptyRows", 0); i++)
    picture.commits[element(product, "empty_row", i)]++;
  for (int64_t row = 0; row < csr->rows; row++) assert_int_equal(picture.commits[row], 1);
  check_picture_and_release(&picture, csr);
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
  /* 768 nonzeros are a tile; 6144 still one thread block's; one more are segments of at most 2048. */
  static const struct long_rows cases[] = {
      {"one_row,cols=768", "none", "none"},
      {"one_row,cols=769", "1", "none"},
      {"one_row,cols=6144", "1", "none"},
      {"one_row,cols=6145", "4", "1 4"},
      {"dense,rows=100,cols=768", "none", "none"},
      {"long_row,rows=3000,long_rows=2,cols=9000,long_length=7000", "8", "2 8"},
  };
  check_long_rows(cases, sizeof cases / sizeof *cases, "recipe=merge merge-items=3");
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
  static const struct words cases[] = {
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
       {"multiply_long", "carry_first"},
       {"multiply_tile", "kLongBlocks", "kEmptyRows"}},
      {"dense_row,n=5000",
       "",
       {"multiply_tile", "multiply_long", "kLongBlocks"},
       {"carry", "kEmptyRows", "row_offset"}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = merge_of(cases[c].matrix, cases[c].settings);
    check_words(&product, &cases[c]);
    product_release(&product);
  }
}

static void threads_change_nothing(void **state) {
  static const char *const matrices[] = {"powerlaw,rows=900,cols=9000,max=8000,min=0", "rmat,scale=11",
                                         "long_row,rows=9000,per_row=5,long_length=8000",
                                         "band,n=80000,half=300,per_row=5"};
  (void)state;
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) check_threads(matrices[m], "recipe=merge");
}

static void every_allocation_may_fail(void **state) {
  static const char matrix[] = "powerlaw,rows=90,cols=2000,max=1500,min=0";
  (void)state;
  assert_true(check_allocations(matrix_of(matrix), "recipe=merge") > 20);
  assert_true(check_allocations(matrix_of(matrix),
                                "recipe=merge merge-piece=256 merge-pad=off bake-limit=0") > 20);
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

static void products_match_the_oracle(void **state) {
  (void)state;
  verify_kinds(executed, sizeof executed / sizeof *executed, "merge");
}

/* As the second region, which writes the rows that it holds, or adds to what the first has written: short rows are
 * sell's. */
static void a_second_region_leaves_other_rows_alone(void **state) {
  static const char *const matrices[] = {
      "powerlaw,rows=200,cols=2000,max=1900,min=0", "staircase,n=90",
      "long_row,rows=90,cols=9000,per_row=30,long_rows=2,long_length=8000"};
  struct gathered gathered = {0};
  (void)state;
  for (int c = 0; c < 6; c++) {
    const int first = gathered.count, fused = c % 2;
    gather_kinds(&gathered, matrices[c / 2],
                 fused ? "recipe=sell-long long-row=20 fuse=on" : "recipe=sell-long long-row=20 fuse=off");
    for (int i = first; i < gathered.count; i++) {
      assert_int_equal(gathered.products[i].plan->regions_count, 2);
      assert_int_equal(gathered.products[i].plan->regions[1].commit, fused ? CB_COMMIT_OWN : CB_COMMIT_ADD);
    }
  }
  verify_gathered(&gathered);
}

/* What the kernel cannot do without: verify sees each of these changes. */
static void verify_sees_what_is_left_out(void **state) {
  static const struct change changes[] = {
      {"uniform,n=200,per_row=16", "form=ax", "if (lane - step >= reach) ", "if (lane - step >= 0 * reach) "},
      {"uniform,n=200,per_row=16", "form=ax", "if (ends && lane > 0) ", "if (ends && lane > 32) "},
      {"uniform,n=200,per_row=17", "form=ax", "k == 0 && other >= 0", "k < 0 && other >= 0"},
      {"dense,rows=3,cols=300", "form=ax", "if (rows_of[other] > 0) break", ""},
      {"hypersparse,rows=3000", "form=ax", "empty_row(arrays, i)", "0 * empty_row(arrays, i)"},
      {"one_row,cols=9000", "form=ax", "if (group >= 0)", "if (group > 0)"},
      {"one_row,cols=9000", "form=ax", "  wait_behind(row | base", "  (void)(row | base"},
      {"uniform,n=200,per_row=16", "form=ax", "  wait_behind(rows | first", "  (void)(rows | first"},
      {"uniform,n=200,per_row=16", "form=ax bake-limit=0", "  wait_behind(rows |",
       "  if (value(arrays, tile) == 3) return;\n  wait_behind(rows |"},
  };
  (void)state;
  check_changes_are_seen(changes, sizeof changes / sizeof *changes, "merge");
}

/* A family's registers: beside five items all loads of a batch of long rows are in them, but where thread blocks of the
 * kernel behind start early and would find no room. */
static void families_have_registers_for_long_rows(void **state) {
  (void)state;
#define LONG_ROWS "long_row,rows=27000,cols=%d,per_row=%d,long_length=20000"
  static const struct {
    const char *matrix;
    int cols, per_row, items, type, blocks, guarded;
  } cases[] = {
      {LONG_ROWS, 30000, 16, 5, CB_F64, 4, 0}, /* 370 thread blocks; next 324, 186 */
      {LONG_ROWS, 30000, 14, 5, CB_F64, 5, 0}, {LONG_ROWS, 30000, 8, 5, CB_F64, 4, 0},
      {LONG_ROWS, 90000, 14, 5, CB_F64, 4, 0}, {LONG_ROWS, 30000, 14, 5, CB_F32, 0, 1},
      {LONG_ROWS, 30000, 8, 3, CB_F64, 6, 1},  {LONG_ROWS, 30000, 4, 3, CB_F64, 4, 0},
      {LONG_ROWS, 30000, 8, 3, CB_F32, 0, 1},  {"uniform,n=200,cols=%d,per_row=%d", 9000, 16, 5, CB_F64, 0, 0},
  };
#undef LONG_ROWS
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char matrix[96], settings[64];
    snprintf(matrix, sizeof matrix, cases[c].matrix, cases[c].cols, cases[c].per_row);
    snprintf(settings, sizeof settings, "merge-items=%d%s", cases[c].items, cases[c].type == CB_F32 ? " type=f32" : "");
    struct product product = merge_of(matrix, settings);
    const struct cb_family_parts *family = &region_of(&product)->family;
    int guarded = 0;
    for (int i = 0; i < family->with_count; i++) guarded |= !strcmp(family->with[i], "guarded");
    assert_int_equal(family->blocks_per_sm, cases[c].blocks);
    assert_int_equal(guarded, cases[c].guarded);
    product_release(&product);
  }
}

/* Beside three items few thread blocks have 64 registers for long rows, others 48. */
static void few_thread_blocks_have_more_registers(void **state) {
  static const struct {
    const char *matrix, *settings;
    int blocks; /* of a multiprocessor */
  } cases[] = {
      {"long_row,rows=27000,per_row=4,long_length=20000", "merge-items=3", 4},
      {"long_row,rows=27000,per_row=8,long_length=20000", "merge-items=3", 5},
      {"long_row,rows=27000,per_row=4,long_length=20000", "merge-items=3 type=f32", 6},
      {"uniform,n=27000,per_row=4", "merge-items=3", 6},
  };
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = merge_of(cases[c].matrix, cases[c].settings);
    assert_int_equal(region_of(&product)->blocks_per_sm, cases[c].blocks);
    product_release(&product);
  }
}

/* Few tiles let the kernel behind start at once, beside no long rows; up to 360 thread blocks behind the wait. */
static void the_kernel_behind_starts_early(void **state) {
  static const struct {
    const char *matrix;
    enum cb_next next;
  } cases[] = {
      {"uniform,n=17280,per_row=4", CB_NEXT_AT_ONCE}, /* 90 tiles of 768 nonzeros */
      {"uniform,n=17281,per_row=4", CB_NEXT_BEHIND},
      {"uniform,n=69120,per_row=4", CB_NEXT_BEHIND}, /* 360 */
      {"uniform,n=69121,per_row=4", CB_NEXT_AT_END},
      {"long_row,rows=9000,per_row=4,long_length=8000", CB_NEXT_BEHIND},
  };
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = merge_of(cases[c].matrix, "merge-items=3");
    assert_int_equal(region_of(&product)->next, cases[c].next);
    product_release(&product);
  }
}

static void columns_are_made_by_packing(void **state) {
  (void)state;
  static const struct late_array cases[] = {
      {"rmat,scale=11,edge_factor=8", "recipe=merge", "column_offset", 0, CB_STORED},
      {"long_row,rows=30000,cols=70000,long_length=9000", "recipe=merge", "column_offset", 0, CB_STORED},
      {"one_column,rows=3000", "recipe=merge", "column_offset", 0, CB_AFFINE},
      {"one_row,cols=3008", "recipe=merge", "column_offset", 0, CB_AFFINE},
      {"rmat,scale=5,edge_factor=4", "recipe=merge bake-limit=16384", "column_offset", 0, CB_BAKED},
  };
  check_late_arrays(cases, sizeof cases / sizeof *cases);
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
      cmocka_unit_test(families_have_registers_for_long_rows),
      cmocka_unit_test(few_thread_blocks_have_more_registers),
      cmocka_unit_test(the_kernel_behind_starts_early),
      cmocka_unit_test(columns_are_made_by_packing),
      cmocka_unit_test(verify_sees_what_is_left_out),
  };
  return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
