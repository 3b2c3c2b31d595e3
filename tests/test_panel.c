// SPDX-License-Identifier: Apache-2.0
/* The panel layout: columns, rows and slots that its arrays describe against the matrix, what it decides,
 * refuses and what its text lacks, threads, failing allocations, new values; and products of many shapes
 * against the oracle. */
#include "tests/layouts.h"

enum { LANES = 32 };

static struct product panel_of(const char *matrix, const char *settings) {
  char text[200];
  snprintf(text, sizeof text, "recipe=panel panel-uses=0 %s", settings);
  return product_of(matrix, text);
}

/* ---- what the arrays say, read as the kernel reads them */

/* Column of the panel's entry `address`. */
static int64_t column_of(const struct product *product, int64_t panel, int64_t address) {
  const int64_t unit = constant(product, "kUnit", 0), first = element(product, "first_unit", panel);
  const int64_t number = address / unit;
  assert_in_range(address, 0, (element(product, "first_unit", panel + 1) - first) * unit - 1);
  const int64_t offset =
      array_number(product, "unit_offset") < 0 ? number : element(product, "unit_offset", first + number);
  return unit * (element(product, "base_unit", panel) + offset) + address % unit;
}

static void see_place(const struct product *product, int64_t panel, int64_t slice, int64_t place,
                      int64_t lanes, int64_t in_slice, struct picture *picture) {
  const int64_t length = element(product, "place_length", place);
  const int64_t first = element(product, "first_step", slice),
                end = element(product, "first_step", slice + 1);
  const int64_t row = element(product, "place_row", place), none = constant(product, "kNoRow", -1);
  if (row == none) {
    assert_int_equal(length, 0);
    return;
  }
  const int64_t of_matrix = row + element(product, "panel_row", panel);
  assert_in_range(of_matrix, 0, picture->rows - 1);
  picture->commits[of_matrix]++;
  for (int64_t k = 0; k < length; k++) {
    const int64_t slot = (first + k / lanes) * LANES + in_slice * lanes + k % lanes;
    assert_true(first + k / lanes < end);
    const int64_t address = element(product, "address", slot - constant(product, "kLongSlots", 0));
    see_value(picture, of_matrix, column_of(product, panel, address), value_at(product, slot));
  }
}

static void see_slice(const struct product *product, int64_t panel, int64_t slice, struct picture *picture) {
  const int varied = array_number(product, "lanes_log2") >= 0;
  const int64_t lanes =
      varied ? INT64_C(1) << element(product, "lanes_log2", slice) : constant(product, "kLanes", 0);
  const int64_t first = varied ? element(product, "first_place", slice) : slice * (LANES / lanes);
  for (int64_t i = 0; i < LANES / lanes; i++) see_place(product, panel, slice, first + i, lanes, i, picture);
}

static void see_panel(const struct product *product, int64_t panel, struct picture *picture) {
  const int64_t warps = constant(product, "kThreads", 0) / 32, equal = constant(product, "kSlices", warps);
  const int varied = array_number(product, "first_slice") >= 0;
  const int64_t first = varied ? element(product, "first_slice", panel) : panel * equal;
  const int64_t end = varied ? element(product, "first_slice", panel + 1) : first + equal;
  assert_true((element(product, "first_unit", panel + 1) - element(product, "first_unit", panel)) *
                  constant(product, "kUnit", 0) <=
              constant(product, "kEntries", 0));
  for (int64_t slice = first; slice < end; slice++) see_slice(product, panel, slice, picture);
}

static void see_long(const struct product *product, int64_t block, struct picture *picture) {
  const int64_t row = element(product, "long_row", block);
  for (int64_t slot = element(product, "long_slot", block); slot < element(product, "long_slot", block + 1);
       slot++)
    see_value(picture, row, element(product, "long_column", slot), value_at(product, slot));
  if (block >= constant(product, "kPieces", 0) ||
      element(product, "carry_first", element(product, "carry_group", block)) == block)
    picture->commits[row]++;
}

/* Every nonzero once, in its place; every row committed once, or, where there is nothing to add, at most
 * once. */
static void check_picture(const struct product *product) {
  const struct cb_csr *csr = product->csr;
  const int64_t panels = strtol(fact(product, "panels"), NULL, 10),
                pieces = strtol(fact(product, "long"), NULL, 10);
  struct picture picture = picture_for(csr);
  assert_int_equal(region_of(product)->blocks, panels + pieces);
  for (int64_t p = 0; p < panels; p++) see_panel(product, p, &picture);
  for (int64_t p = 0; p < pieces; p++) see_long(product, p, &picture);
  assert_int_equal(picture.slots, csr->nnz);
  for (int64_t row = 0; row < csr->rows; row++) {
    if (product->options.form == CB_FORM_ADD && !cb_csr_row_length(csr, row))
      assert_int_equal(picture.commits[row], 0);
    else
      assert_int_equal(picture.commits[row], 1);
  }
  check_picture_and_release(&picture, csr);
}

static const char *const variants[] = {
    "",
    "form=add bake-limit=0",
    "panel-unit=1 panel-columns=128",
    "panel-unit=32 panel-columns=256 bake-limit=0",
    "panel-threads=128 panel-lanes=1 panel-unit=4",
    "panel-lanes=32 panel-rows=3 bake-limit=0",
    "panel-threads=1024 panel-rows=1 panel-unit=2",
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static void check_matrix(struct cb_csr csr, const char *settings) {
  struct cb_diag diag = {0};
  char text[160];
  snprintf(text, sizeof text, "recipe=panel panel-uses=0 %s", settings);
  struct product product = product_of_matrix(csr, text);
  assert_ok(cb_plan_check(product.plan, &diag));
  assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
  check_picture(&product);
  product_release(&product);
}

static void arrays_describe_the_matrix(void **state) {
  (void)state;
  static const int lengths[][6] = {
      {3, 3, 3, 3, 3, 3},      {32, 32, 32, 32, 32, 32}, {9, 1, 8, 0, 7, 2},      {0, 0, 1, 0, 0, 900},
      {1, 900, 0, 2, 300, 45}, {97, 95, 0, 1, 31, 33},   {64, 65, 63, 129, 1, 0},
  };
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
    for (int variant = 0; variant < VARIANTS; variant++)
      check_matrix(rows_of_lengths(70, 901, 1 + 2 * (int64_t)l, lengths[l], 6), variants[variant]);
  for (uint64_t seed = 0; seed < 70; seed++)
    check_matrix(random_matrix(70 + (int64_t)seed, 90, 1 + (unsigned)(seed * seed) % 999, seed),
                 variants[seed % VARIANTS]);
}

/* More nonzeros than one chunk: panels are cut side by side, and end where a chunk does. */
static void chunks_are_joined(void **state) {
  (void)state;
  struct product product = panel_of("band,n=300000,half=40,per_row=8", "");
  const int64_t panels = strtol(fact(&product, "panels"), NULL, 10);
  int64_t next = 0;
  for (int64_t p = 0; p < panels; p++) {
    assert_int_equal(element(&product, "panel_row", p) >= next, 1);
    next = element(&product, "panel_row", p) + 1;
  }
  struct cb_diag diag = {0};
  assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
  product_release(&product);
}

/* ---- decisions */

static void units_follow_the_columns(void **state) {
  (void)state;
  struct product runs = panel_of("stencil27,n=30", "panel-rows=256");
  assert_true(constant(&runs, "kUnit", 0) >= 4);
  struct product scattered = panel_of("uniform,n=100000,per_row=8", "");
  assert_int_equal(constant(&scattered, "kUnit", 0), 1);
  struct product lone = panel_of("band,n=20000,half=3,per_row=5", "");
  assert_int_equal(array_number(&lone, "unit_offset"), -1); /* one run of neighbours: no list */
  product_release(&runs);
  product_release(&scattered);
  product_release(&lone);
}

static void addresses_are_as_narrow_as_they_can_be(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *settings;
    enum cb_type type;
  } cases[] = {
      {"band,n=20000,half=400,per_row=9", "panel-columns=256", CB_U8},
      {"band,n=20000,half=400,per_row=9", "panel-columns=400 panel-unit=1", CB_U16},
      {"band,n=90000,half=40000,per_row=9", "panel-threads=1024 panel-rows=2048 panel-columns=28000", CB_U16},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = panel_of(cases[c].matrix, cases[c].settings);
    assert_int_equal(region_of(&product)->arrays[array_number(&product, "address")].type, cases[c].type);
    product_release(&product);
  }
}

/* What static shared memory cannot hold is asked of the launch. */
static void many_entries_are_dynamic(void **state) {
  (void)state;
  struct product many =
      panel_of("band,n=90000,half=40000,per_row=9", "panel-threads=1024 panel-rows=2048 panel-columns=20000");
  const int64_t bytes = 8 * constant(&many, "kEntries", 0);
  assert_true(bytes > 48 << 10);
  assert_int_equal(region_of(&many)->dynamic_shared, bytes);
  assert_int_equal(many.plan->launches[0].dynamic_shared, bytes);
  assert_true(has(&many, "DynamicShared<vector_t, kEntries>"));
  struct product few = panel_of("band,n=90000,half=40000,per_row=9", "");
  assert_int_equal(region_of(&few)->dynamic_shared, 0);
  assert_true(region_of(&few)->static_shared <= 48 << 10);
  product_release(&many);
  product_release(&few);
}

static void what_shares_nothing_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *settings, *words;
    enum cb_status status;
  } cases[] = {
      {"uniform,n=100000,per_row=8", "recipe=panel", "share too little", CB_ERR_UNSUPPORTED},
      {"uniform,n=100000,per_row=8", "recipe=panel panel-uses=0", "", CB_OK},
      {"diagonal,n=1000", "recipe=panel panel-unit=1", "share too little", CB_ERR_UNSUPPORTED},
      {"empty,rows=30,cols=9", "recipe=panel", "no nonzeros", CB_ERR_UNSUPPORTED},
      {"one_row,cols=90000", "recipe=panel panel-columns=64 panel-unit=1", "all rows with nonzeros are long",
       CB_ERR_UNSUPPORTED},
      {"stencil5,n=30", "recipe=panel panel-columns=40000", "has room for", CB_ERR_LIMIT},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct cb_diag diag = {0};
    assert_int_equal(plan_status_of(cases[c].matrix, cases[c].settings, &diag), cases[c].status);
    if (!strstr(diag.message, cases[c].words)) fail_msg("'%s' lacks '%s'", diag.message, cases[c].words);
  }
}

static void options_are_checked(void **state) {
  (void)state;
  static const char *const wrong[][2] = {{"panel-unit", "3"},
                                         {"panel-lanes", "12"},
                                         {"panel-threads", "64"},
                                         {"panel-threads", "384"},
                                         {"panel-columns", "31"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct cb_options options;
    struct cb_diag diag = {0};
    cb_options_default(&options);
    assert_ok(cb_options_set(&options, wrong[i][0], wrong[i][1], &diag));
    assert_int_equal(cb_options_check(&options, &diag), CB_ERR_ARGUMENT);
    assert_non_null(strstr(diag.message, wrong[i][0]));
  }
}

/* Rows that would hold up their panel have thread blocks of their own, very long ones several. */
static void long_rows_leave_panels(void **state) {
  (void)state;
  static const struct long_rows cases[] = {
      {"stencil5,n=30", "none", "none"},
      {"long_row,rows=3000,long_rows=2,cols=9000,long_length=500", "none", "none"},
      {"long_row,rows=3000,long_rows=2,cols=9000,long_length=6144", "2", "none"},
      {"long_row,rows=3000,long_rows=2,cols=9000,long_length=6145", "8", "2 8"},
  };
  check_long_rows(cases, sizeof cases / sizeof *cases, "recipe=panel panel-uses=0");
}

/* Each distinct column is gathered once per panel: sectors are counted exactly. */
static void sectors_are_counted(void **state) {
  (void)state;
  struct product product = panel_of("dense,rows=256,cols=1000", "panel-lanes=1 panel-unit=1 panel-rows=64");
  assert_int_equal(product.plan->cost.sectors, 4 * 250);
  product_release(&product);
  product = panel_of("dense,rows=256,cols=1000", "panel-lanes=1 panel-unit=8 panel-rows=64 type=f32");
  assert_int_equal(product.plan->cost.sectors, 4 * 125);
  product_release(&product);
}

/* ---- text */

static void text_has_what_the_plan_needs(void **state) {
  (void)state;
  static const struct words cases[] = {
      {"stencil27,n=20",
       "",
       {"no guard", "unit_offset", "__shared__ Entries"},
       {"multiply_long", "kNoRow", "while (", "lanes_log2", "DynamicShared", "kCols - 1"}},
      {"stencil27,n=20", "panel-batch=2", {"step += kBatch"}, {"multiply_long"}},
      {"stencil27,n=20", "panel-batch=8", {"kBatch"}, {"step += kBatch"}},
      {"stencil5,n=21",
       "panel-rows=512 panel-unit=32",
       {"while (slice < end)", "kNoRow", "kCols - 1"},
       {"multiply_long"}},
      {"band,n=20000,half=3,per_row=5", "", {"base + k / kUnit"}, {"unit_offset"}},
      {"band,n=20000,half=3,per_row=5",
       "panel-lanes=1",
       {"commit(vectors, first_row + at.row, sum)"},
       {"__shfl"}},
      {"powerlaw,rows=900,cols=2000,max=900,min=0", "", {"lanes_log2", "at.lanes"}, {"kLanes"}},
      {"long_row,rows=900,cols=9000,per_row=3,long_length=8000",
       "",
       {"multiply_long", "carry_group", "kLongSlots"},
       {"DynamicShared"}},
      {"long_row,rows=900,cols=9000,per_row=3,long_length=3000",
       "",
       {"multiply_long"},
       {"carry_group", "last_to_arrive"}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = panel_of(cases[c].matrix, cases[c].settings);
    check_words(&product, &cases[c]);
    product_release(&product);
  }
}

static void threads_change_nothing(void **state) {
  static const char *const matrices[] = {"powerlaw,rows=900,cols=9000,max=8000,min=0", "rmat,scale=11",
                                         "long_row,rows=9000,per_row=5,long_length=8000",
                                         "band,n=300000,half=300,per_row=5"};
  (void)state;
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++)
    check_threads(matrices[m], "recipe=panel panel-uses=0");
}

static void every_allocation_may_fail(void **state) {
  static const char matrix[] = "long_row,rows=90,cols=9000,per_row=3,long_rows=2,long_length=8000";
  (void)state;
  assert_true(check_allocations(matrix_of(matrix), "recipe=panel panel-uses=0") > 20);
  assert_true(check_allocations(matrix_of(matrix),
                                "recipe=panel panel-uses=0 panel-columns=64 bake-limit=0") > 20);
}

static void new_values_equal_a_fresh_pack(void **state) {
  struct product product = panel_of("powerlaw,rows=90,cols=9000,max=7000,min=0", "");
  (void)state;
  check_new_values(&product);
  product_release(&product);
}

/* ---- products */

static const char *const executed[][2] = {
    {"one_row,cols=1", ""},
    {"one_row,cols=900", ""},
    {"one_row,cols=2000", "panel-threads=128"},
    {"one_column,rows=1000", ""},
    {"diagonal,n=1", ""},
    {"diagonal,n=769", "panel-unit=4"},
    {"dense_row,n=3000,row=1500", ""},
    {"dense_column,n=300,col=299", "panel-unit=32"},
    {"dense,rows=9,cols=768", ""},
    {"dense,rows=70,cols=96", "panel-threads=512"},
    {"dense,rows=31,cols=33", "panel-columns=64 panel-unit=8"},
    {"stencil27,n=6", ""},
    {"stencil27,n=7", "panel-lanes=1 panel-unit=32 panel-rows=100"},
    {"fe3,n=4", "panel-batch=8 panel-threads=128"},
    {"band,n=3000,half=100,per_row=9", "panel-lanes=2 panel-rows=300"},
    {"band,n=900,half=3,per_row=5", ""},
    {"band,n=9000,half=4000,per_row=9", "panel-threads=1024 panel-columns=8000 panel-lanes=1"}, /* dynamic */
    {"uniform,n=512,per_row=3", "panel-unit=1"},
    {"staircase,n=120", "panel-batch=2"},
    {"arrow,n=900,width=2", ""},
    {"hypersparse,rows=9000,keep=0.02,per_row=3", ""},
    {"rmat,scale=9", "bake-limit=0"},
    {"powerlaw,rows=150,cols=3000,max=2900,min=0", ""},
    {"powerlaw,rows=150,cols=3000,max=2900,min=0", "panel-columns=64 bake-limit=0"},
    {"long_row,rows=300,cols=8000,per_row=3,long_rows=2,long_length=7000", ""},
    {"explicit_zeros,rows=90,cols=90,density=0.3,zeros=0.4", ""},
};

static void products_match_the_oracle(void **state) {
  (void)state;
  verify_kinds(executed, sizeof executed / sizeof *executed, "panel panel-uses=0");
}

/* As the second region, which adds to what the first has written: populated diagonals are dia's. */
static void a_second_region_adds(void **state) {
  static const char *const matrices[] = {"arrow,n=900,width=2", "stencil5,n=20",
                                         "diagonals,n=140,count=7,spread=60,fill=0.7"};
  struct gathered gathered = {0};
  (void)state;
  for (int m = 0; m < 3; m++)
    gather_kinds(&gathered, matrices[m], "recipe=dia-panel panel-uses=0 dia-most=1 dia-fill=20");
  for (int i = 0; i < gathered.count; i++) {
    assert_int_equal(gathered.products[i].plan->regions_count, 2);
    assert_int_equal(gathered.products[i].plan->regions[1].commit, CB_COMMIT_ADD);
  }
  verify_gathered(&gathered);
}

/* What the kernel cannot do without: verify sees each of these changes. */
static void verify_sees_what_is_left_out(void **state) {
  static const struct change changes[] = {
      {"stencil27,n=8", "", "__syncthreads();", ""},
      {"stencil27,n=8", "", "if (step + i < at.own_steps) ", "if (step + i < at.own_steps + 9) "},
      {"stencil5,n=21", "panel-lanes=2", " && at.row < kNoRow", " && at.row <= kNoRow"},
      {"stencil5,n=21", "panel-lanes=1", "at.row < kNoRow", "at.row <= kNoRow"},
      {"stencil5,n=21", "panel-unit=32", "min(kUnit * unit + k % kUnit, kCols - 1)",
       "min(kUnit * unit + k % kUnit, 2 * kCols)"},
      {"band,n=9000,half=4000,per_row=9", "panel-threads=128 panel-columns=4000 panel-rows=500", "kThreads * kStage",
       "kThreads * kStage * 9"},
      {"stencil27,n=8", "panel-batch=2 panel-lanes=1", "step += kBatch", "step += 9"},
      {"long_row,rows=900,cols=9000,per_row=3,long_length=8000", "", "if (group >= 0)", "if (group > 0)"},
  };
  (void)state;
  check_changes_are_seen(changes, sizeof changes / sizeof *changes, "panel panel-uses=0");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arrays_describe_the_matrix),
      cmocka_unit_test(chunks_are_joined),
      cmocka_unit_test(units_follow_the_columns),
      cmocka_unit_test(addresses_are_as_narrow_as_they_can_be),
      cmocka_unit_test(many_entries_are_dynamic),
      cmocka_unit_test(what_shares_nothing_is_refused),
      cmocka_unit_test(options_are_checked),
      cmocka_unit_test(long_rows_leave_panels),
      cmocka_unit_test(sectors_are_counted),
      cmocka_unit_test(text_has_what_the_plan_needs),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(new_values_equal_a_fresh_pack),
      cmocka_unit_test(products_match_the_oracle),
      cmocka_unit_test(a_second_region_adds),
      cmocka_unit_test(verify_sees_what_is_left_out),
  };
  return cmocka_run_group_tests_name("panel", tests, NULL, NULL);
}
