// SPDX-License-Identifier: Apache-2.0
/* Layouts slices and runs, and their recipes: what the arrays say against the matrix, for each shape, aligned and not;
 * what the text has and lacks; threads, failing allocations; and products against the oracle, NaN and Inf among them.
 * Which blocks are chosen is test_fill's. */
#include "tests/layouts.h"

#include "analysis/fill.h"

static const char *const shapes[] = {"square", "diag", "anti", "col"};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* ---- what the arrays say, read as the kernel reads them */

struct census {
  int64_t held, commits;
};

static double entry(const struct cb_csr *csr, int64_t row, int64_t column) {
  for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
    if (csr->col_idx[k] == column) return csr->values[k];
  return 0;
}

static const unsigned char *presence_of(const struct product *product) {
  const int bits = array_number(product, "presence");
  return bits < 0 ? NULL : product->blob.bytes + cb_blob_offset(product->plan, product->region, bits);
}

/* Values are 1, 2, 3, …: one that is not 0 is a nonzero's. `first` is the block's column in the slice's first row. */
static void see_block(const struct product *product, int64_t row, int lane, int64_t block, int64_t first,
                      struct census *census) {
  const struct cb_fill_shape *shape = cb_fill_shape_find(fact(product, "shape"));
  const unsigned char *presence = presence_of(product);
  for (int k = 0; k < shape->width; k++) {
    const int64_t column = first + shape->stride * lane + k, slot = (block * shape->width + k) * 32 + lane;
    const double value = value_at(product, slot);
    if (value != 0) assert_true(value == entry(product->csr, row, column));
    if (presence) assert_int_equal(presence[slot / 8] >> slot % 8 & 1, value != 0);
    else assert_true(value != 0);
    if (column < 0 || column >= product->csr->cols) assert_true(value == 0 && has(product, "min(max(column, 0)"));
    census->held += value != 0;
  }
}

/* The blocks of a slice: the first one's number, and their bases. Returns how many. */
static int64_t blocks_of(const struct product *product, int64_t slice, int64_t *first, int64_t *bases) {
  const int64_t words = constant(product, "kRecord", 0);
  int64_t count = 0;
  if (words) {
    *first = element(product, "record", slice * words);
    for (; count < words - 1 && element(product, "record", slice * words + 1 + count); count++)
      bases[count] = element(product, "record", slice * words + 1 + count) - 32;
    for (int64_t i = count; i < words - 1; i++) assert_int_equal(element(product, "record", slice * words + 1 + i), 0);
    return count;
  }
  *first = element(product, "first_block", slice);
  for (; *first + count < element(product, "first_block", slice + 1); count++)
    bases[count] = element(product, "base", *first + count) - 32;
  return count;
}

static void see_slice(const struct product *product, int64_t slice, unsigned char *committed, struct census *census) {
  const int scattered = strcmp(fact(product, "scattered"), "none") != 0;
  const int64_t first_row = scattered ? element(product, "first_row", slice) : 32 * slice;
  const int64_t end = has(product, "first_row(arrays, slice + 1)") ? element(product, "first_row", slice + 1)
                                                                   : product->csr->rows;
  int64_t first, bases[512];
  const int64_t count = blocks_of(product, slice, &first, bases);
  for (int lane = 0; lane < 32 && first_row + lane < end; lane++) {
    assert_false(committed[first_row + lane]);
    committed[first_row + lane] = 1;
    census->commits++;
    for (int64_t b = 0; b < count; b++) see_block(product, first_row + lane, lane, first + b, bases[b], census);
  }
}

/* Every nonzero of the region once, in its place; no row committed twice, and all of them where it must. */
static void check_region(struct product *product, int number) {
  product->region = number;
  const struct cb_region *region = region_of(product);
  const int64_t slices = strtol(fact(product, "slices"), NULL, 10);
  struct census census = {0};
  unsigned char *committed = calloc((size_t)product->csr->rows, 1);
  assert_non_null(committed);
  for (int64_t slice = 0; slice < slices; slice++) see_slice(product, slice, committed, &census);
  assert_int_equal(census.held, region->nonzeros);
  assert_int_equal(region->value_slots - census.held, strtol(fact(product, "absent"), NULL, 10));
  if (region->commit != CB_COMMIT_ADD) assert_int_equal(census.commits, product->csr->rows);
  free(committed);
}

/* Returns how many regions are slices. */
static int check_product(struct product *product) {
  struct cb_diag diag = {0};
  int64_t nonzeros = 0;
  int slices = 0;
  assert_ok(cb_plan_check(product->plan, &diag));
  assert_ok(cb_assignment_check(product->plan, product->assignment, &diag));
  for (int r = 0; r < product->plan->regions_count; r++) {
    nonzeros += product->plan->regions[r].nonzeros;
    if (strcmp(product->plan->regions[r].layout, "slices")) continue;
    check_region(product, r);
    slices++;
  }
  assert_int_equal(nonzeros, product->csr->nnz);
  product->region = 0;
  return slices;
}

static void arrays_describe_the_matrix(void **state) {
  (void)state;
  int64_t regions[SHAPES][2] = {{0}};
  uint64_t seed = 3;
  for (int round = 0; round < 120; round++) {
    const int shape = round % SHAPES, aligned = round / SHAPES % 2, rate = 50 + (int)(draw(&seed) % 40);
    const int64_t rows = 32 + (int64_t)(draw(&seed) % 300), cols = 32 + (int64_t)(draw(&seed) % 90);
    char settings[160];
    snprintf(settings, sizeof settings,
             "recipe=slices fill-shapes=%s fill-rate=%d fill-align=%s fuse=%s bake-limit=%d fill-repeats=%d", shapes[shape],
             round % 7 ? rate : 0, aligned ? "on" : "off", round % 3 ? "auto" : "off", round % 5 ? 64 : 0, 1 << round % 4);
    struct cb_csr csr = random_matrix(rows, cols, round % 7 ? (unsigned)(rate * 10 + 20) : 970, seed);
    struct product product = product_of_matrix(csr, settings);
    regions[shape][aligned] += check_product(&product);
    product_release(&product);
  }
  for (int shape = 0; shape < SHAPES; shape++) assert_true(regions[shape][0] > 10 && regions[shape][1] > 10);
}

/* Few blocks in each slice: records; nearly all nonzeros on blocks: all of them, over edges, too. */
static void grids_have_records_and_no_remainder(void **state) {
  (void)state;
  static const char *const matrices[] = {"multiblock,blocks=5,n=9", "kkt,n=23,stages=2", "stencil5,n=41", "tridiagonal,n=2000"};
  for (int round = 0; round < 16; round++) {
    char settings[96];
    snprintf(settings, sizeof settings, "recipe=slices fill-repeats=%d type=f64", 1 << round / 4);
    struct cb_csr csr = matrix_of(matrices[round % 4]);
    for (int64_t k = 0; k < csr.nnz; k++) csr.values[k] = (double)(k + 1);
    struct product product = product_of_matrix(csr, settings);
    assert_int_equal(product.plan->regions_count, 1);
    assert_true(constant(&product, "kRecord", 0) > 1);
    assert_true(has(&product, "min(max(column, 0)"));
    assert_int_equal(constant(&product, "kRepeats", 1), 1 << round / 4);
    assert_int_equal(check_product(&product), 1);
    product_release(&product);
  }
}

/* The main diagonal, and the next one above if that is asked for: its last block reaches one column too far. */
static struct cb_csr diagonals_from_the_main(int64_t n, int count) {
  struct cb_diag diag = {0};
  struct cb_csr csr = {0};
  struct cb_coo coo = {.rows = n, .cols = n};
  coo.row_idx = cb_alloc((size_t)n * 2, 4);
  coo.col_idx = cb_alloc((size_t)n * 2, 4);
  coo.values = cb_alloc((size_t)n * 2, 8);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i; j < n && j < i + count; j++) {
      coo.row_idx[coo.count] = (int32_t)i;
      coo.col_idx[coo.count] = (int32_t)j;
      coo.values[coo.count++] = 1 + (double)i;
    }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  return csr;
}

static void one_column_too_far_is_over_the_edge(void **state) {
  (void)state;
  for (int count = 1; count <= 2; count++) {
    struct product product = product_of_matrix(diagonals_from_the_main(2048, count), "recipe=slices");
    assert_int_equal(has(&product, "min(max(column, 0)"), count == 2);
    product_release(&product);
  }
}

static void recipe_fill_takes_one_shape_after_the_other(void **state) {
  (void)state;
  static const char *const fronts[] = {"recipe=fill fill-rate=70", "recipe=fill fill-rate=70 fill-align=off"};
  for (int i = 0; i < 2; i++) {
    struct product product = product_of("block,blocks_r=12,r=48,c=50,per_row=3,fill=0.8", fronts[i]);
    assert_true(check_product(&product) >= 3);
    product_release(&product);
  }
}

/* The shapes of the plan's slices and runs, one after the other: what fill-shapes says, in its order. */
static void recipe_fill_follows_the_list(void **state) {
  (void)state;
  static const struct {
    const char *settings, *shapes;
  } cases[] = {
      {"recipe=fill", "square col row "},
      {"recipe=fill fill-shapes=diag,col", "diag col "},
      {"recipe=fill fill-shapes=col,diag", "col "},
      {"recipe=fill fill-shapes=row", "row "},
      {"recipe=fill fill-shapes=anti,row,square", "anti row "},
      {"recipe=slices", "diag "},
      {"recipe=slices fill-shapes=col,diag", "col "},
      {"recipe=slices fill-shapes=col,diag fill-step=2", "diag "},
      {"recipe=slices fill-step=3", "anti "},
      {"recipe=runs fill-shapes=diag", "row "},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = product_of("dense,rows=70,cols=97", cases[c].settings);
    struct cb_text shapes_taken = {0};
    for (; product.region < product.plan->regions_count; product.region++) {
      const char *layout = region_of(&product)->layout;
      if (!strcmp(layout, "slices")) cb_text_add(&shapes_taken, "%s ", fact(&product, "shape"));
      if (!strcmp(layout, "runs")) cb_text_add_string(&shapes_taken, "row ");
    }
    product.region = 0;
    if (strcmp(cb_text_string(&shapes_taken), cases[c].shapes))
      fail_msg("%s: %s", cases[c].settings, product.plan->line);
    cb_text_release(&shapes_taken);
    product_release(&product);
  }
}

static void a_step_without_a_shape_is_refused(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  assert_int_equal(plan_status_of("dense,rows=40,cols=40", "recipe=slices fill-shapes=diag,col fill-step=3", &diag),
                   CB_ERR_UNSUPPORTED);
  assert_string_equal(diag.message, "option 'fill-shapes' names fewer than 3 shapes");
  assert_int_equal(plan_status_of("rmat,scale=8", "recipe=fill fill-shapes=col", &diag), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(diag.message, "no block of shape 'col'"));
}

/* ---- runs, likewise */

static int64_t see_run_row(const struct product *product, int64_t row) {
  const int64_t group = element(product, "first_group", row / 4), runs = element(product, "run_count", row);
  const unsigned char *presence = presence_of(product);
  int64_t held = 0;
  for (int64_t i = 0; i < 32 * runs; i++) {
    const int64_t slot = (group + i / 32) * 128 + i % 32 / 8 * 32 + row % 4 * 8 + i % 8;
    const int64_t column = element(product, "run_start", (group + i / 32) * 4 + row % 4) + i % 32;
    const double value = value_at(product, slot);
    if (value != 0) assert_true(value == entry(product->csr, row, column));
    if (presence) assert_int_equal(presence[slot / 8] >> slot % 8 & 1, value != 0);
    else assert_true(value != 0);
    held += value != 0;
  }
  return held;
}

static void runs_describe_the_matrix(void **state) {
  (void)state;
  uint64_t seed = 11;
  for (int round = 0; round < 40; round++) {
    char matrix[160], settings[96];
    snprintf(matrix, sizeof matrix, "block,blocks_r=%d,r=1,c=%d,blocks_c=9,per_row=%d,fill=%s,seed=%d",
             1 + (int)(draw(&seed) % 200), 32 + (int)(draw(&seed) % 32), (int)(draw(&seed) % 5) + 1,
             round % 4 ? "0.8" : "1", round + 1);
    snprintf(settings, sizeof settings, "recipe=fill fill-rate=70 fuse=%s", round % 2 ? "on" : "off");
    struct product product = product_of(matrix, settings);
    struct cb_diag diag = {0};
    int64_t held = 0;
    assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
    while (strcmp(region_of(&product)->layout, "runs")) assert_true(++product.region < product.plan->regions_count);
    for (int64_t row = 0; row < product.csr->rows; row++) held += see_run_row(&product, row);
    assert_int_equal(held, region_of(&product)->nonzeros);
    product_release(&product);
  }
}

static void a_shape_of_one_row_is_not_for_slices(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  assert_int_equal(plan_status_of("dense,rows=40,cols=40", "recipe=slices fill-shapes=row", &diag), CB_ERR_UNSUPPORTED);
  assert_string_equal(diag.message, "blocks of shape 'row' are no 32 rows high; use recipe 'fill'");
}

/* ---- decisions */

/* Nonzeros on blocks of a column number each: the bytes of values, and little more. */
static void grids_store_little_more_than_values(void **state) {
  (void)state;
  static const char *const matrices[] = {"multiblock,blocks=8,n=20", "kkt,n=100,stages=1", "stencil7,n=32"};
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) {
    struct product product = product_of(matrices[m], "recipe=slices");
    struct product sell = product_of(matrices[m], "recipe=sell");
    assert_true(100 * cb_plan_bytes(product.plan) <= 890 * product.plan->nnz);
    assert_true(10 * cb_plan_bytes(product.plan) < 9 * cb_plan_bytes(sell.plan));
    assert_int_equal(product.plan->launches_count, 1);
    product_release(&product);
    product_release(&sell);
  }
}

/* Which places hold one is all that is stored of nonzeros that are equal and stay so. */
static void equal_values_that_stay_are_bits(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"multiblock,blocks=8,n=20,values=ones", "recipe=slices values=fixed"},
      {"multiblock,blocks=8,n=20,values=ones", "recipe=slices values=fixed bake-limit=0 fill-rate=40 type=f32"},
      {"random,rows=300,cols=90,density=0.7,values=ones", "recipe=slices values=fixed fill-shapes=square fill-rate=60"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = product_of(cases[c][0], cases[c][1]);
    const struct cb_region *region = region_of(&product);
    const unsigned char *presence = presence_of(&product);
    const int64_t bytes = region->arrays[array_number(&product, "presence")].count;
    int64_t held = 0;
    for (int64_t i = 0; i < 8 * bytes; i++) held += presence[i / 8] >> i % 8 & 1;
    assert_int_equal(held, region->nonzeros);
    assert_int_equal(8 * bytes - held, strtol(fact(&product, "absent"), NULL, 10));
    assert_true(array_number(&product, "values") < 0);
    assert_true(has(&product, "is_present(") && !has(&product, "sum_present") && !has(&product, "is_finite(sum)"));
    if (c == 0) assert_true(2 * cb_plan_bytes(product.plan) < product.plan->nnz);
    product_release(&product);
  }
}

/* From so much on, a block takes fewer bytes than sliced ELL with two bytes for a column. */
static void the_rate_is_where_bytes_are_saved(void **state) {
  (void)state;
  static const struct {
    const char *settings, *rate;
  } cases[] = {{"recipe=slices type=f64", "(rate 81)"},
               {"recipe=slices type=f32", "(rate 69)"},
               {"recipe=slices type=f16-f32", "(rate 54)"},
               {"recipe=slices fill-shapes=square", "(rate 79)"},
               {"recipe=slices fill-rate=30", "(rate 30)"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = product_of("dense,rows=70,cols=80", cases[c].settings);
    assert_non_null(strstr(product.plan->line, cases[c].rate));
    product_release(&product);
  }
}

static void a_matrix_without_blocks_is_refused(void **state) {
  (void)state;
  static const char *const without[] = {"empty,rows=90,cols=90", "rmat,scale=8", "hypersparse,rows=2000",
                                        "dense,rows=31,cols=31", "one_column,rows=20"};
  struct cb_diag diag = {0};
  for (size_t m = 0; m < sizeof without / sizeof *without; m++) {
    assert_int_equal(plan_status_of(without[m], "recipe=slices", &diag), CB_ERR_UNSUPPORTED);
    assert_string_equal(diag.message, "no block of shape 'diag' has 81 % of its places filled; lower 'fill-rate' or use "
                                      "another recipe");
    assert_int_equal(plan_status_of(without[m], "recipe=fill", &diag), CB_ERR_UNSUPPORTED);
    assert_ok(plan_status_of(without[m], "recipe=auto", &diag));
  }
}

/* ---- text */

static void text_has_what_the_plan_needs(void **state) {
  (void)state;
  static const struct words cases[] = {
      {"stencil7,n=16", "recipe=slices", {"kStride = 1", "arrays.presence", "is_finite(sum)", "min(max(column, 0)"},
       {"first_row(", "words["}},
      /* 1024 rows, whole thread blocks, and no place is absent */
      {"diagonal,n=1024", "recipe=slices", {"kBatch = 1", "kRecord = 2"}, {"presence", "is_finite", "kSlices", "first_row(", "kCols"}},
      {"diagonal,n=1000", "recipe=slices fill-rate=90", {"if (row < kRows)"}, {"presence", "kSlices"}},
      {"diagonal,n=1088", "recipe=slices", {"slice >= kSlices"}, {"presence", "if (row < kRows)"}},
      {"diagonal,n=1088", "recipe=slices fill-repeats=4", {"words[kRepeats]", "slice >= kSlices"}, {"presence"}},
      {"dense,rows=64,cols=64", "recipe=slices fill-shapes=square", {"shuffle(own, k)"}, {"kStride", "presence", "record("}},
      {"dense,rows=64,cols=64", "recipe=slices fill-shapes=col", {"kStride = 0", "first += kBatch"}, {"presence", "record("}},
      {"dense,rows=64,cols=20", "recipe=slices fill-shapes=col", {"kStride = 0", "first += kBatch", "record("}, {"presence", "base("}},
      {"dense,rows=64,cols=64", "recipe=slices fill-shapes=anti fuse=off", {"kStride = -1"}, {"presence"}},
      {"diagonal,n=1000", "recipe=slices fill-align=off", {"first_row(arrays, slice)"}, {"row = 32 * slice"}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = product_of(cases[c].matrix, cases[c].settings);
    check_words(&product, &cases[c]);
    product_release(&product);
  }
}

/* ---- repeatability and failures */

static const char mixed[] = "multiblock,blocks=5,n=9,dof=2", mixed_settings[] = "recipe=fill fill-rate=60";

static void threads_change_nothing(void **state) {
  (void)state;
  check_threads(mixed, mixed_settings);
  check_threads(mixed, "recipe=slices fill-align=off");
}

static void new_values_equal_a_fresh_pack(void **state) {
  (void)state;
  struct product product = product_of(mixed, mixed_settings);
  assert_true(product.plan->regions_count > 1);
  check_new_values(&product);
  product_release(&product);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  assert_true(check_allocations(matrix_of("kkt,n=8,stages=2"), "recipe=slices") > 40);
  assert_true(check_allocations(matrix_of("kkt,n=8,stages=2"), "recipe=slices fill-align=off") > 40);
  assert_true(check_allocations(matrix_of("block,blocks_r=20,r=1,c=40,per_row=2,fill=0.9"), "recipe=fill") > 60);
  assert_true(check_allocations(matrix_of("block,blocks_r=3,r=40,c=40,per_row=2,fill=0.8"), "recipe=fill") > 60);
}

/* ---- products */

static const char *const executed[][2] = {
    {"multiblock,blocks=3,n=7", ""},
    {"multiblock,blocks=3,n=7", "fill-repeats=4"},
    {"kkt,n=12,stages=2", "fill-repeats=2 fill-rate=90"},
    {"stencil5,n=17", ""},
    {"stencil5,n=17", "fill-repeats=8 bake-limit=0"},
    {"diagonal,n=70,cols=60", "fill-shapes=anti fill-rate=1"},
    {"diagonal,n=60,cols=75", ""},
    {"multiblock,blocks=3,n=7,dof=2", "fill-align=off"},
    {"kkt,n=12,stages=2", ""},
    {"kkt,n=12,stages=2", "fill-align=off fill-rate=90"},
    {"stencil27,n=6", "fill-rate=40"},
    {"stencil7,n=9", "fill-rate=100"},
    {"diagonal,n=32", ""},
    {"diagonal,n=256", "fill-align=off"},
    {"diagonal,n=300", "fuse=off"},
    {"diagonal,n=70,cols=200", "fill-align=off fuse=off"},
    {"tridiagonal,n=130", "fuse=on"},
    {"dense,rows=70,cols=80", "fill-shapes=square"},
    {"dense,rows=70,cols=80", "fill-shapes=square fill-align=off"},
    {"dense,rows=96,cols=70", "fill-shapes=anti"},
    {"dense,rows=70,cols=40", "fill-shapes=anti fill-align=off"},
    {"dense,rows=70,cols=40", "fill-shapes=col"},
    {"dense,rows=40,cols=70", "fill-shapes=col fill-align=off bake-limit=0"},
    {"random,rows=300,cols=90,density=0.7", "fill-shapes=square fill-rate=60"},
    {"random,rows=300,cols=90,density=0.7", "fill-shapes=anti fill-rate=70"},
    {"random,rows=300,cols=90,density=0.7", "fill-shapes=col fill-rate=70 fill-align=off"},
    {"one_column,rows=100", "fill-shapes=col"},
    {"explicit_zeros,rows=90,cols=90,density=0.8,zeros=0.4", "fill-rate=70"},
    {"arrow,n=200,width=40", "fill-shapes=square"},
    {"upper,n=90", "fill-shapes=col fill-rate=60"},
};

static void products_match_the_oracle(void **state) {
  (void)state;
  verify_kinds(executed, sizeof executed / sizeof *executed, "slices");
}

static void products_of_several_shapes_match_the_oracle(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"block,blocks_r=12,r=48,c=50,per_row=3,fill=0.8", "fill-rate=70"},
      {"block,blocks_r=12,r=48,c=50,per_row=3,fill=0.8", "fill-rate=70 fill-align=off"},
      {"upper,n=150", "fill-rate=60 fuse=on"},
      {"kkt,n=12,stages=2", "fuse=off"},
      {"dense,rows=64,cols=64", ""},
      {"dense,rows=64,cols=64", "fill-align=off"},
      {"arrow,n=200,width=40", "fill-rate=50"},
      {"block,blocks_r=90,r=1,c=45,blocks_c=7,per_row=2,fill=0.8", "fill-rate=60"},
      {"block,blocks_r=300,r=1,c=32,blocks_c=9,per_row=3", "fuse=off"},
      {"one_row,cols=100", ""},
      {"dense,rows=20,cols=70", "fill-align=off bake-limit=0"},
  };
  verify_kinds(cases, sizeof cases / sizeof *cases, "fill");
}

static void fixed_values_match_the_oracle(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"kkt,n=12,stages=2,values=ones", "values=fixed"},
      {"multiblock,blocks=3,n=7,values=tenths", "values=fixed"},
      {"stencil27,n=6,values=ones", "values=fixed fill-rate=40"},
      {"dense,rows=70,cols=80,values=ones", "values=fixed fill-shapes=square"},
      {"random,rows=300,cols=90,density=0.7,values=ones", "values=fixed fill-shapes=square fill-rate=60"},
      {"random,rows=300,cols=90,density=0.7,values=ones", "values=fixed fill-shapes=anti fill-rate=60"},
      {"random,rows=300,cols=90,density=0.7,values=ones", "values=fixed fill-shapes=col fill-rate=60 fill-align=off"},
      {"stencil5,n=17,values=tenths", "values=fixed"},
      {"multiblock,blocks=9,n=8,values=ones", "values=fixed fill-repeats=4"},
      {"diagonals,n=140,count=7,spread=60,fill=0.8,values=ones", "values=fixed fill-rate=50 form=ax"},
      {"diagonals,n=140,count=12,spread=60,fill=0.8,values=ones", "values=fixed fill-rate=50 type=f32"},
  };
  verify_kinds(cases, sizeof cases / sizeof *cases, "slices");
}

static void guards_matter(void **state) {
  (void)state;
  static const struct change changes[] = {
      {"stencil7,n=9", "form=ax", "!is_finite(sum)", "false"},
      {"stencil7,n=9", "form=ax", "slot % 8 & 1", "0 & 1"},
      {"stencil7,n=9", "form=ax", "if (base == 0) break", "if (base != 0) break"},
      {"kkt,n=12", "form=ax fill-rate=90", "+ kStride * lane;", "- kStride * lane;"},
      {"kkt,n=12", "form=ax fill-rate=90", "sum = bases[i] != 0 ?", "sum = true ?"},
      {"dense,rows=64,cols=71", "form=ax fill-shapes=col", "sum = first + i < end ?", "sum = true ?"},
      {"stencil5,n=17", "form=ax", "max(column, 0)", "max(column, 1)"},
      {"stencil5,n=17", "form=ax", "kCols - 1)", "kCols - 2)"},
      {"stencil5,n=17", "form=ax", "if (row < kRows)", "if (row < 2 * kRows)"},
      {"diagonal,n=1088", "form=ax", "slice >= kSlices", "slice > kSlices + 2"},
      {"diagonal,n=2048", "form=ax fill-repeats=4", "words[i], lane", "words[0], lane"},
      {"dense,rows=70,cols=80", "form=ax fill-shapes=square", "own, k)", "own, k ^ 1)"},
      {"dense,rows=64,cols=80", "form=ax fill-shapes=col", "first += kBatch", "first += 2 * kBatch"},
      {"dense,rows=64,cols=20", "form=ax fill-shapes=col", "first += kBatch", "first += 2 * kBatch"},
      {"dense,rows=70,cols=80", "form=ax fill-align=off fill-rate=100", "first_row(arrays, slice) + lane",
       "first_row(arrays, slice) + (lane ^ 1)"},
  };
  static const struct change of_bits[] = {
      {"multiblock,blocks=3,n=7,values=ones", "form=ax values=fixed", "present ? add", "present || x == x ? add"},
      {"multiblock,blocks=3,n=7,values=ones", "form=ax values=fixed", "slot % 8 & 1", "(slot ^ 1) % 8 & 1"},
      {"multiblock,blocks=3,n=7,values=ones", "form=ax values=fixed", "is_present(arrays, place)", "is_present(arrays, place - 32 * i)"},
      {"random,rows=300,cols=90,density=0.7,values=ones", "form=ax values=fixed fill-rate=60",
       "is_present(arrays, 32 * block + lane)", "is_present(arrays, 32 * first + lane)"},
      {"random,rows=300,cols=90,density=0.7,values=ones", "form=ax values=fixed fill-shapes=square fill-rate=60",
       "(32 * block + k) * 32", "32 * block * 32"},
  };
  static const struct change of_runs[] = {
      {"block,blocks_r=90,r=1,c=32,blocks_c=9,per_row=3", "form=ax", "first < runs; ", "first < runs - 1; "},
      {"block,blocks_r=90,r=1,c=32,blocks_c=7,per_row=2", "form=ax", "bool some = first + i < runs", "bool some = i < kBatch - 1"},
      {"block,blocks_r=90,r=1,c=32,blocks_c=7,per_row=2", "form=ax", "apart = 4", "apart = 2"},
      {"block,blocks_r=90,r=1,c=45,blocks_c=7,per_row=2,fill=0.8", "form=ax fill-rate=60", "!is_finite(sum)", "false"},
      {"block,blocks_r=90,r=1,c=45,blocks_c=7,per_row=2,fill=0.8", "form=ax fill-rate=60", "i < 4 * runs", "i < 2 * runs"},
      {"block,blocks_r=90,r=1,c=32,blocks_c=7,per_row=2", "form=ax fuse=off", "row < kRows", "row < 2 * kRows"},
      {"block,blocks_r=90,r=1,c=32,blocks_c=7,per_row=2", "form=ax", "columns[i] + 8 * step", "columns[i] + step"},
  };
  check_changes_are_seen(changes, sizeof changes / sizeof *changes, "slices");
  check_changes_are_seen(of_bits, sizeof of_bits / sizeof *of_bits, "slices");
  check_changes_are_seen(of_runs, sizeof of_runs / sizeof *of_runs, "fill");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arrays_describe_the_matrix),
      cmocka_unit_test(grids_have_records_and_no_remainder),
      cmocka_unit_test(one_column_too_far_is_over_the_edge),
      cmocka_unit_test(recipe_fill_takes_one_shape_after_the_other),
      cmocka_unit_test(recipe_fill_follows_the_list),
      cmocka_unit_test(a_step_without_a_shape_is_refused),
      cmocka_unit_test(runs_describe_the_matrix),
      cmocka_unit_test(a_shape_of_one_row_is_not_for_slices),
      cmocka_unit_test(grids_store_little_more_than_values),
      cmocka_unit_test(equal_values_that_stay_are_bits),
      cmocka_unit_test(the_rate_is_where_bytes_are_saved),
      cmocka_unit_test(a_matrix_without_blocks_is_refused),
      cmocka_unit_test(text_has_what_the_plan_needs),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(new_values_equal_a_fresh_pack),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(products_match_the_oracle),
      cmocka_unit_test(products_of_several_shapes_match_the_oracle),
      cmocka_unit_test(fixed_values_match_the_oracle),
      cmocka_unit_test(guards_matter),
  };
  return cmocka_run_group_tests_name("slices", tests, NULL, NULL);
}
