// SPDX-License-Identifier: Apache-2.0
/* The patterns layout: slots, offsets and patterns that its text and arrays describe against the matrix; what it
 * decides and refuses; what its text has and lacks; threads, failing allocations, new values; and products of many
 * shapes against the oracle, alone and beside the rest that the split leaves. */
#include "tests/layouts.h"

#include "analysis/layouts/patterns/census.h"
#include "base/integers.h"

#include <omp.h>

enum { LANES = 32, WARPS = 8 };

/* Whatever repeats at least once; then whatever there is. */
#define ANY "pattern-uses=1 pattern-share=0 "

static struct product patterns_of(const char *matrix, const char *settings) {
  char text[256];
  snprintf(text, sizeof text, "recipe=patterns %s", settings);
  return product_of(matrix, text);
}

/* ---- what text and arrays say, read as the kernel reads them */

/* Number `i` of a table in the text. */
static int64_t in_table(const struct product *product, const char *name, int64_t i) {
  const struct cb_region *region = region_of(product);
  for (int h = 0; h < region->placeholders_count; h++) {
    if (strcmp(region->placeholders[h].name, name)) continue;
    const char *at = region->placeholders[h].text;
    for (; i > 0; i--) {
      at = strchr(at, ',');
      assert_non_null(at++);
    }
    return (int64_t)strtoull(at, NULL, 0);
  }
  fail_msg("no table '%s'", name);
  return 0;
}

struct reading {
  const struct product *product;
  struct picture picture;
  int64_t size, slot;
  int packed;
};

static uint64_t bits_of(const struct product *product, int64_t block_row) {
  const int64_t number = element(product, "row_pattern", block_row);
  return has(product, "patterns[number]") ? (uint64_t)in_table(product, "patterns", number) : (uint64_t)number;
}

/* The slot of value j of a block; lanes' loads of kVector values lie side by side. */
static int64_t slot_of(const struct reading *reading, int count, int place, int64_t j) {
  const int64_t area = reading->size * reading->size, wide = constant(reading->product, "kVector", 1);
  const int64_t lanes = reading->packed ? count : LANES, vector = j < area / wide * wide ? wide : 1;
  return reading->slot + j / vector * vector * lanes + place * vector + j % vector;
}

/* Blocks at offset number `d` of the slice's block rows. */
static void read_offset(struct reading *reading, int64_t slice, int d, const uint64_t *bits) {
  const int64_t size = reading->size, area = size * size;
  int count = 0, place = 0;
  for (int lane = 0; lane < LANES; lane++) count += bits[lane] >> d & 1;
  for (int lane = 0; lane < LANES; lane++) {
    if (!(bits[lane] >> d & 1)) continue;
    const int64_t block_row = slice * LANES + lane, block = block_row + in_table(reading->product, "offsets", d);
    for (int64_t j = 0; j < area; j++)
      see_value(&reading->picture, block_row * size + j / size, block * size + j % size,
                value_at(reading->product, slot_of(reading, count, reading->packed ? place : lane, j)));
    place++;
  }
  if (count) reading->slot += area * (reading->packed ? count : LANES);
}

static void read_slice(struct reading *reading, int64_t slice) {
  const struct product *product = reading->product;
  uint64_t bits[LANES];
  for (int lane = 0; lane < LANES; lane++) bits[lane] = bits_of(product, slice * LANES + lane);
  const int64_t area = reading->size * reading->size;
  assert_int_equal(element(product, "first_slot", slice) * area * (reading->packed ? 1 : LANES), reading->slot);
  for (int d = 0; d < constant(product, "kOffsets", 0); d++) read_offset(reading, slice, d, bits);
}

/* The picture of a single region; where slots are packed, every slot has a nonzero. */
static void check_arrays(const struct product *product) {
  struct reading reading = {.product = product, .picture = picture_for(product->csr)};
  const int64_t repeats = constant(product, "kRepeats", 1);
  reading.size = constant(product, "kSize", 0);
  reading.packed = has(product, "__popc");
  assert_int_equal(product->plan->regions_count, 1);
  for (int64_t slice = 0; slice < region_of(product)->blocks * WARPS * repeats; slice++) read_slice(&reading, slice);
  assert_int_equal(reading.slot, region_of(product)->value_slots);
  assert_int_equal(reading.picture.slots, product->csr->nnz);
  if (reading.packed) assert_int_equal(reading.slot, product->csr->nnz);
  check_picture_and_release(&reading.picture, product->csr);
}

static const char *const settings_of_slots[] = {"", "pattern-pad=on", "pattern-pad=off", "pattern-slices=3",
                                                "pattern-stride=2 pattern-slices=2", "pattern-batch=2 bake-limit=0"};
enum { SETTINGS = sizeof settings_of_slots / sizeof *settings_of_slots };

static void arrays_describe_the_matrix(void **state) {
  (void)state;
  static const char *const matrices[] = {"fe3,n=5", "fe3,n=4,dof=2", "fe3,n=3,dof=5", "fe3,n=3,dof=6", "road,n=19",
                                         "stencil7,n=7", "stencil27,n=6", "tridiagonal,n=513", "one_row,cols=40",
                                         "block,blocks_r=90,r=3,c=3,per_row=2"};
  struct cb_diag diag = {0};
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++)
    for (int s = 0; s < SETTINGS; s++) {
      char settings[160];
      snprintf(settings, sizeof settings, "pattern-uses=1 %s", settings_of_slots[s]);
      struct product product = patterns_of(matrices[m], settings);
      assert_ok(cb_plan_check(product.plan, &diag));
      assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
      if (product.plan->regions_count == 1) check_arrays(&product);
      product_release(&product);
    }
}

/* Together with the rest, whatever is left. */
static void every_nonzero_has_one_slot(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  int alone = 0, with_rest = 0;
  for (uint64_t seed = 0; seed < 60; seed++) {
    char settings[200];
    snprintf(settings, sizeof settings, "recipe=patterns " ANY "pattern-size=%d %s", (int)(seed % 2),
             settings_of_slots[seed % SETTINGS]);
    const int64_t rows = 20 + (int64_t)seed, cols = 5 + (int64_t)(seed * 7 % 90);
    struct product product = product_of_matrix(random_matrix(rows, cols, 450 - (unsigned)seed * 7, seed), settings);
    assert_ok(cb_plan_check(product.plan, &diag));
    assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
    alone += product.plan->regions_count == 1;
    with_rest += product.plan->regions_count > 1;
    product_release(&product);
  }
  assert_true(with_rest > 10 && alone > 0);
}

/* ---- decisions */

static void expect_fact(const char *matrix, const char *settings, const char *key, const char *value) {
  struct product product = patterns_of(matrix, settings);
  if (strcmp(fact(&product, key), value)) fail_msg("%s %s: %s", matrix, settings, product.plan->line);
  product_release(&product);
}

static void stores_hardly_more_than_values(void **state) {
  (void)state;
  struct product elements = patterns_of("fe3,n=40", ""), roads = patterns_of("road,n=300", "");
  assert_string_equal(fact(&elements, "packed"), "none");
  assert_true(cb_plan_bytes(elements.plan) * 100 < elements.csr->nnz * 825);
  assert_string_equal(fact(&roads, "packed"), "yes");
  assert_int_equal(region_of(&roads)->value_slots, roads.csr->nnz);
  /* 8 of the value; a byte for each row of 2.4, four for each 32 rows */
  assert_true(cb_plan_bytes(roads.plan) * 100 < roads.csr->nnz * 850);
  assert_int_equal(array_of(&roads, "row_pattern")->type, CB_U8);
  product_release(&elements);
  product_release(&roads);
}

static void pads_where_little_is_padding(void **state) {
  (void)state;
  /* of 3 n slots two are no nonzeros; and those that n lacks to a multiple of 32: 8 and 18 percent */
  expect_fact("tridiagonal,n=320", "pattern-uses=1", "packed", "none");
  expect_fact("tridiagonal,n=355", "pattern-uses=1", "packed", "none");
  expect_fact("tridiagonal,n=195", "pattern-uses=1", "packed", "yes");
  expect_fact("tridiagonal,n=195", "pattern-uses=1 pattern-pad=on", "packed", "none");
  /* of finite elements 15^3 a tenth of the slots is empty */
  expect_fact("fe3,n=15", "", "packed", "none");
  expect_fact("fe3,n=15,dof=2", "", "packed", "yes");
  expect_fact("fe3,n=15,dof=2", "type=f32", "packed", "none");
  expect_fact("tridiagonal,n=320", "pattern-uses=1 pattern-pad=off", "packed", "yes");
}

/* Thread blocks take slices of several lines of the grid where that spares loads of x. */
static void slices_lie_a_stride_apart_where_that_pays(void **state) {
  (void)state;
  expect_fact("road,n=2048", "pattern-slices=4", "stride", "64");
  expect_fact("road,n=2048", "pattern-slices=4 pattern-stride=1", "stride", "none");
  expect_fact("road,n=500", "pattern-slices=4", "stride", "none"); /* a band would be half of the grid */
  expect_fact("fe3,n=40", "", "stride", "none");                  /* there are nine times as many values */
  expect_fact("stencil7,n=66", "pattern-slices=1", "stride", "none"); /* 136 would spare less than a tenth */
  struct product strided = patterns_of("road,n=2048", "pattern-slices=4");
  assert_int_equal(region_of(&strided)->block_rows, 0);
  product_release(&strided);
}

/* A grid of 60 lines is 113 slices. Of the last band, thread blocks whose first slice does not exist are left out. */
static void thread_blocks_have_slices(void **state) {
  static const struct {
    const char *options;
    int blocks;
  } cases[] = {{"pattern-slices=2 pattern-stride=300", 113}, {"pattern-slices=2 pattern-stride=3", 9},
               {"pattern-slices=2 pattern-stride=112", 112}, {"pattern-slices=2 pattern-stride=1", 8},
               {"pattern-slices=1 pattern-stride=14", 15}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct product product = patterns_of("road,n=60", cases[i].options);
    assert_int_equal(region_of(&product)->blocks, cases[i].blocks);
    product_release(&product);
  }
}

static void batches_fill_registers(void **state) {
  (void)state;
  expect_fact("fe3,n=16", "", "batch", "4");        /* 36 of 27 · 9 values */
  expect_fact("fe3,n=16,dof=2", "", "batch", "7");  /* four batches of 8 would leave the last one half empty */
  expect_fact("fe3,n=12,dof=6", "", "batch", "1");
  expect_fact("stencil7,n=12", "", "batch", "7");
  expect_fact("stencil27,n=12", "pattern-batch=6", "batch", "6");
}

static enum cb_status status_of(const char *matrix, const char *settings, struct cb_diag *message) {
  char text[256];
  snprintf(text, sizeof text, "recipe=patterns %s", settings);
  return plan_status_of(matrix, text, message);
}

static void refuses_what_does_not_repeat(void **state) {
  (void)state;
  struct cb_diag message = {0};
  assert_int_equal(status_of("uniform,n=9000,per_row=6", "", &message), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(message.message, "columns repeat"));
  assert_int_equal(status_of("fe3,n=6", "pattern-size=2", &message), CB_ERR_UNSUPPORTED);
  assert_int_equal(status_of("uniform,n=9000,per_row=6", ANY, &message), CB_OK);
}

/* A search takes the layout for large finite elements, and not where nothing repeats. */
static void auto_takes_patterns(void **state) {
  (void)state;
  struct product elements = product_of("fe3,n=48", "recipe=auto");
  struct product none = product_of("uniform,n=20000,per_row=8", "recipe=auto");
  assert_string_equal(elements.plan->recipe, "patterns");
  assert_string_not_equal(none.plan->recipe, "patterns");
  product_release(&elements);
  product_release(&none);
}

/* ---- text */

static void text_has_what_the_plan_needs(void **state) {
  (void)state;
  static const struct words cases[] = {
      {"road,n=64",
       "pattern-pad=off",
       {"__popc", "value_cached"},
       {"patterns[number]", "kStride", "kRepeats", "unroll 1"}},
      {"road,n=64", "pattern-pad=on", {"if (lanes) slot"}, {"__popc"}},
      {"stencil27,n=16", "", {"patterns[number]", "unroll 1"}, {"owns", "row < kRows"}},
      {"stencil27,n=15", "", {"row < kRows"}, {"owns"}},
      {"road,n=64", "pattern-slices=2", {"kRepeats"}, {"kStride"}},
      {"road,n=64", "pattern-slices=2 pattern-stride=2", {"kRepeats", "kStride"}, {"owns"}},
      {"fe3,n=5,dof=7", ANY, {"owns(arrays, row)"}, {NULL}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = patterns_of(cases[c].matrix, cases[c].settings);
    check_words(&product, &cases[c]);
    product_release(&product);
  }
}

/* ---- robustness */

static void threads_change_nothing(void **state) {
  (void)state;
  check_threads("fe3,n=9", "recipe=patterns");
  check_threads("road,n=70", "recipe=patterns pattern-slices=2");
  check_threads("powerlaw,rows=900,cols=900,max=40", "recipe=patterns " ANY);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  assert_true(check_allocations(matrix_of("fe3,n=4"), "recipe=patterns pattern-uses=1") > 15);
  assert_true(check_allocations(random_matrix(61, 60, 250, 9), "recipe=patterns " ANY) > 15);
}

static void takes_new_values(void **state) {
  (void)state;
  static const char *const matrices[] = {"fe3,n=4", "road,n=20", "random,rows=70,cols=45,density=0.2"};
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) {
    struct product product = patterns_of(matrices[m], ANY);
    check_new_values(&product);
    product_release(&product);
  }
}

/* ---- products */

static const char *const executed[][2] = {
    {"one_row,cols=1", ANY},
    {"one_row,cols=60", ANY},
    {"one_column,rows=300", ANY},
    {"diagonal,n=1", ANY},
    {"diagonal,n=768", ""},
    {"tridiagonal,n=1024", ""},
    {"tridiagonal,n=300", "pattern-uses=1 pattern-pad=off pattern-slices=2"},
    {"dense,rows=33,cols=31", ANY},
    {"dense,rows=6,cols=60", ANY "pattern-size=6"},
    {"road,n=20", ""},
    {"road,n=20", "pattern-pad=on pattern-batch=1"},
    {"road,n=60", "pattern-slices=3 pattern-stride=2"},
    {"road,n=20", "pattern-slices=2 pattern-stride=5"},
    {"road,n=40", "pattern-slices=2 fuse=off"},
    {"stencil7,n=9", "pattern-uses=1"},
    {"stencil27,n=8", "pattern-uses=1"},
    {"stencil27,n=8", "pattern-uses=60 pattern-share=0"},
    {"fe3,n=2", ANY},
    {"fe3,n=4", ANY},
    {"fe3,n=4,dof=7", ANY},
    {"fe3,n=4,dof=7", ANY "pattern-pad=off fuse=off"},
    {"fe3,n=4,dof=2", ANY "pattern-pad=off"},
    {"fe3,n=3,dof=4", ANY "pattern-batch=3"},
    {"fe3,n=3,dof=5", ANY},
    {"fe3,n=3,dof=6", ANY},
    {"fe3,n=3,dof=8", ANY},
    {"fe3,n=3,dof=7", ANY "pattern-slices=2"},
    {"block,blocks_r=70,r=3,c=3,per_row=4,fill=0.97", ANY "pattern-size=3"},
    {"block,blocks_r=50,blocks_c=90,r=2,c=2,per_row=4", ANY "pattern-size=2"},
    {"random,rows=70,cols=45,density=0.2", ANY},
    {"hypersparse,rows=900,keep=0.2,per_row=3", ANY},
    {"staircase,n=120", ANY},
    {"powerlaw,rows=400,cols=400,max=40", ANY "pattern-stride=3"},
    {"explicit_zeros,rows=90,cols=90,density=0.3,zeros=0.4", ANY},
};

static void products_match_the_oracle(void **state) {
  (void)state;
  verify_kinds(executed, sizeof executed / sizeof *executed, "patterns");
}

static void products_with_fixed_values(void **state) {
  (void)state;
  static const char *const matrices[] = {"fe3,n=4", "road,n=20", "stencil7,n=9", "checker,rows=60,cols=60"};
  struct gathered gathered = {0};
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++)
    gather_kinds(&gathered, matrices[m], "recipe=patterns values=fixed " ANY);
  verify_gathered(&gathered);
}

/* What a kernel cannot do without. */
static const struct change changes[] = {
    {"road,n=20", "pattern-pad=off", "if (has_block)", "if (true)"},
    {"road,n=20", "pattern-pad=off", "slot += kSize * kSize * count", "slot += kSize * kSize * 32"},
    {"road,n=20", "pattern-pad=off", "lanes & before", "lanes & before & 1"},
    {"road,n=20", "pattern-pad=on", "if (lanes) slot", "if (!lanes) slot"},
    {"stencil27,n=7", ANY, "pattern >>= kBatch", "pattern >>= 1"},
    {"fe3,n=5,dof=7", ANY, "&& owns(arrays, row)", "|| owns(arrays, row)"},
    {"road,n=60", "pattern-slices=3 pattern-stride=2", "slice = next", "slice = next + 1"},
    {"road,n=60", "pattern-slices=3", "first = next_first", "first = next_first + 1"},
};

static void changes_are_seen(void **state) {
  (void)state;
  check_changes_are_seen(changes, sizeof changes / sizeof *changes, "patterns");
}

int main(void) {
  omp_set_num_threads(1); /* small matrices: threads that wait for each other only cost time */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arrays_describe_the_matrix),
      cmocka_unit_test(every_nonzero_has_one_slot),
      cmocka_unit_test(stores_hardly_more_than_values),
      cmocka_unit_test(pads_where_little_is_padding),
      cmocka_unit_test(slices_lie_a_stride_apart_where_that_pays),
      cmocka_unit_test(thread_blocks_have_slices),
      cmocka_unit_test(batches_fill_registers),
      cmocka_unit_test(refuses_what_does_not_repeat),
      cmocka_unit_test(auto_takes_patterns),
      cmocka_unit_test(text_has_what_the_plan_needs),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(takes_new_values),
      cmocka_unit_test(products_match_the_oracle),
      cmocka_unit_test(products_with_fixed_values),
      cmocka_unit_test(changes_are_seen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
