// SPDX-License-Identifier: Apache-2.0
/* The split crux, and layouts du and se: the hot part against a sort of all columns and rows; what arrays say against
 * the matrix; which encoding and which shares are taken, and what is refused; threads, failing allocations; products
 * by tensor cores and by lanes against the oracle, NaN and Inf among them. Tensor cores themselves are
 * test_emulation's. */
#include "tests/layouts.h"

#include "analysis/choose/shares.h"
#include "analysis/chunks.h"

/* ---- the hot part */

struct key {
  int64_t number, count;
};

static int by_count(const void *a, const void *b) {
  const struct key *one = a, *other = b;
  if (one->count != other->count) return one->count > other->count ? -1 : 1;
  return one->number < other->number ? -1 : 1;
}

/* How many of the sorted keys it takes to have `percent` of `nonzeros`. */
static int64_t fewest(const struct key *keys, int64_t nonzeros, int percent) {
  int64_t sum = 0, count = 0;
  while (100 * sum < percent * nonzeros) sum += keys[count++].count;
  return count;
}

/* Sorts all columns, then all rows by what they have in the first of these. */
static void check_crux(const struct cb_csr *csr, int cols_percent, int rows_percent) {
  struct cb_diag diag = {0};
  struct cb_crux crux;
  struct key *columns = calloc((size_t)csr->cols, sizeof *columns), *rows = calloc((size_t)csr->rows, sizeof *rows);
  unsigned char *hot = calloc((size_t)csr->cols, 1);
  assert_true(columns && rows && hot);
  for (int64_t c = 0; c < csr->cols; c++) columns[c].number = c;
  for (int64_t k = 0; k < csr->nnz; k++) columns[csr->col_idx[k]].count++;
  qsort(columns, (size_t)csr->cols, sizeof *columns, by_count);
  const int64_t col_count = fewest(columns, csr->nnz, cols_percent);
  for (int64_t c = 0; c < col_count; c++) hot[columns[c].number] = 1;
  for (int64_t r = 0; r < csr->rows; r++) {
    rows[r].number = r;
    for (int64_t k = cb_csr_row(csr, r); k < cb_csr_row(csr, r + 1); k++) rows[r].count += hot[csr->col_idx[k]];
  }
  qsort(rows, (size_t)csr->rows, sizeof *rows, by_count);
  const int64_t row_count = fewest(rows, csr->nnz, rows_percent);
  assert_ok(cb_crux_find(&crux, csr, cols_percent, rows_percent, &diag));
  assert_int_equal(crux.cols, col_count);
  assert_int_equal(crux.rows, row_count);
  assert_memory_equal(crux.hot_column, hot, (size_t)csr->cols);
  int64_t nonzeros = 0;
  struct cb_row_order *sorted = cb_crux_order(&crux, csr->rows, 1), *natural = cb_crux_order(&crux, csr->rows, 0);
  assert_true(sorted && natural && sorted->count == row_count && natural->count == row_count);
  for (int64_t r = 0; r < row_count; r++) {
    assert_int_equal(crux.hot_row[rows[r].number], 1);
    assert_int_equal(sorted->row[r], rows[r].number);
    assert_true(crux.hot_row[natural->row[r]] && (!r || natural->row[r - 1] < natural->row[r]));
    nonzeros += rows[r].count;
  }
  assert_int_equal(crux.nonzeros, nonzeros);
  cb_row_order_release(sorted);
  cb_row_order_release(natural);
  cb_crux_release(&crux);
  free(columns);
  free(rows);
  free(hot);
}

static void the_hot_part_is_that_of_a_sort(void **state) {
  static const int percents[][2] = {{1, 1}, {25, 25}, {50, 17}, {60, 60}, {99, 1}, {100, 100}, {100, 37}};
  static const char *const matrices[] = {
      "rmat,scale=8", "powerlaw,rows=300,cols=280", "one_row,cols=9",       "one_column,rows=9",
      "arrow,n=60",   "empty,rows=9,cols=7",        "dense,rows=17,cols=40"};
  (void)state;
  for (size_t p = 0; p < sizeof percents / sizeof *percents; p++)
    for (size_t m = 0; m < sizeof matrices / sizeof *matrices + 6; m++) {
      const size_t listed = sizeof matrices / sizeof *matrices;
      struct cb_csr csr = m < listed
                              ? matrix_of(matrices[m])
                              : random_matrix(5 + (int64_t)m * 7, 150 - (int64_t)m * 9, 10 + (unsigned)(m * 30), m);
      check_crux(&csr, percents[p][0], percents[p][1]);
      cb_csr_release(&csr);
    }
}

static void more_columns_than_memory_are_refused(void **state) {
  struct cb_diag diag = {0};
  (void)state;
  struct cb_csr csr = matrix_of("diagonal,n=3");
  csr.cols = INT32_MAX;
  assert_int_equal(plan_status(&csr, "recipe=hotcold crux-cols=50 crux-rows=50", "sm_90", &diag), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(diag.message, "2147483647 columns for 3 nonzeros are too many to look for hot ones"));
  cb_csr_release(&csr);
}

/* ---- what the arrays say, read as the kernel reads them */

static int64_t chunk_of(const struct product *product, int64_t unit) {
  const int64_t segments = constant(product, "kSegments", 0);
  return unit < segments ? element(product, "carry_group", unit) : unit - constant(product, "kBefore", 0);
}

static int64_t units_of(const struct product *product) {
  return constant(product, "kUnits", 8 * region_of(product)->blocks);
}

/* A block of du: returns how many values it has. */
static int64_t see_block(const struct product *product, struct picture *picture, int64_t unit, int64_t block,
                         int64_t first_slot) {
  const int64_t width = constant(product, "kWidth", 0), base = element(product, "first_column", unit);
  int64_t slot = first_slot;
  for (int64_t bit = 0; bit < 8 * width; bit++) {
    const int64_t word = element(product, "bits", block * (width / 4) + bit / 32), k = bit % width;
    if (!(word >> bit % 32 & 1)) continue;
    const int64_t row = element(product, "row_of", 8 * chunk_of(product, unit) + bit / width);
    see_value(picture, row, base + element(product, "column_offset", block * width + k), value_at(product, slot++));
  }
  assert_true(slot > first_slot);
  return slot - first_slot;
}

static void see_du(const struct product *product, struct picture *picture) {
  for (int64_t unit = 0; unit < units_of(product); unit++) {
    const int64_t end = element(product, "first_block", unit + 1);
    int64_t slot = 0;
    for (int64_t block = element(product, "first_block", unit); block < end; block++) {
      if (!slot) slot = element(product, "first_value", unit);
      slot += see_block(product, picture, unit, block, slot);
    }
  }
}

static void see_se(const struct product *product, struct picture *picture) {
  for (int64_t unit = 0; unit < units_of(product); unit++) {
    const int64_t chunk = chunk_of(product, unit), first = element(product, "first_step", unit);
    const int64_t segment =
        unit < constant(product, "kSegments", 0) ? unit - element(product, "carry_first", chunk) : 0;
    for (int64_t slot = 32 * first; slot < 32 * element(product, "first_step", unit + 1); slot++) {
      const int64_t local_row = 8 * chunk + slot % 32 / 4;
      const int64_t k = 4 * (slot / 32 - first + segment * constant(product, "kSegmentSteps", 0)) + slot % 4;
      if (k >= element(product, "row_length", local_row)) continue;
      see_value(picture, element(product, "row_of", local_row),
                element(product, "first_column", unit) + element(product, "column_offset", slot),
                value_at(product, slot));
    }
  }
}

/* Every row that the region writes is a local row once. */
static void see_rows(const struct product *product, struct picture *picture) {
  const int64_t chunks = strtol(fact(product, "chunks"), NULL, 10);
  int64_t rows = 0;
  for (int64_t i = 0; i < 8 * chunks; i++) {
    const int64_t row = element(product, "row_of", i);
    if (row >= product->csr->rows) continue;
    assert_int_equal(picture->commits[row]++, 0);
    rows++;
  }
  if (region_of(product)->commit == CB_COMMIT_FINAL) assert_int_equal(rows, product->csr->rows);
}

static void arrays_describe_the_matrix(void **state) {
  (void)state;
  uint64_t seed = 7;
  int cut = 0, sorted = 0;
  for (int round = 0; round < 96; round++) {
    char settings[160];
    const int64_t rows = 1 + (int64_t)(draw(&seed) % 90), cols = 1 + (int64_t)(draw(&seed) % 150);
    snprintf(settings, sizeof settings, "recipe=%s crux-sort=%s du-segment=%d bake-limit=%d", round % 2 ? "du" : "se",
             round % 3 ? "off" : "on", round % 4 ? 64 : 2, round % 5 ? 64 : 0);
    struct product product =
        product_of_matrix(random_matrix(rows, cols, 10 + (unsigned)(draw(&seed) % 600), seed), settings);
    struct picture picture = picture_for(product.csr);
    struct cb_diag diag = {0};
    assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
    if (round % 2)
      see_du(&product, &picture);
    else
      see_se(&product, &picture);
    see_rows(&product, &picture);
    cut += constant(&product, "kSegments", 0) > 0;
    sorted += array_of(&product, "row_of")->storage != CB_AFFINE;
    check_picture_and_release(&picture, product.csr);
    product_release(&product);
  }
  assert_true(cut > 10 && sorted > 20 && sorted < 90);
}

/* Half of the values have 16 bits: blocks are 8 wide. */
static void narrow_values_have_wide_blocks(void **state) {
  (void)state;
  struct product product = product_of("fe3,n=4", "recipe=du type=f16-f32");
  assert_int_equal(constant(&product, "kWidth", 0), 8);
  assert_true(has(&product, "arrays, 2 * block + 1"));
  product_release(&product);
  product = product_of("fe3,n=4", "recipe=du type=f32-f64");
  assert_int_equal(constant(&product, "kWidth", 0), 4);
  product_release(&product);
}

/* ---- which encoding, which shares */

/* Blocks of 8 x 4 that rows in this order have. */
static int64_t count_blocks(const struct cb_csr *csr, const struct cb_crux *crux, const struct cb_row_order *order) {
  unsigned char *seen = malloc((size_t)csr->cols);
  int64_t blocks = 0;
  assert_non_null(seen);
  for (int64_t first = 0; first < order->count; first += 8) {
    int64_t columns = 0;
    memset(seen, 0, (size_t)csr->cols);
    for (int64_t i = first; i < first + 8 && i < order->count; i++)
      for (int64_t k = cb_csr_row(csr, order->row[i]); k < cb_csr_row(csr, order->row[i] + 1); k++)
        if (crux->hot_column[csr->col_idx[k]] && !seen[csr->col_idx[k]]++) columns++;
    blocks += (columns + 3) / 4;
  }
  free(seen);
  return blocks;
}

struct bytes {
  int64_t du, se, all; /* all: of the smaller one, what is cold, and for each hot row its number and its y twice */
};

/* The formula, for doubles: bits and column numbers of blocks against a column number for each nonzero. */
static struct bytes bytes_at(const struct cb_csr *csr, int cols, int rows) {
  struct cb_diag diag = {0};
  struct cb_crux crux;
  assert_ok(cb_crux_find(&crux, csr, cols, rows, &diag));
  struct cb_row_order *order = cb_crux_order(&crux, csr->rows, 0);
  assert_non_null(order);
  const int64_t chunks = (order->count + 7) / 8 * 4, blocks = count_blocks(csr, &crux, order);
  struct bytes bytes = {.du = chunks + blocks * (8 * 4 / 8 + 4 * 2) + crux.nonzeros * 8,
                        .se = chunks + crux.nonzeros * (8 + 2)};
  bytes.all = (bytes.du < bytes.se ? bytes.du : bytes.se) + (csr->nnz - crux.nonzeros) * 10 + crux.rows * (4 + 16);
  cb_row_order_release(order);
  cb_crux_release(&crux);
  return bytes;
}

static void the_encoding_is_that_of_the_formula(void **state) {
  static const char *const matrices[] = {"fe3,n=4",
                                         "stencil7,n=7",
                                         "rmat,scale=9",
                                         "dense,rows=90,cols=70",
                                         "uniform,n=500,per_row=6",
                                         "block,blocks_r=40,per_row=3,scattered=4"};
  int taken[2] = {0};
  (void)state;
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++)
    for (int asked = 0; asked < 3; asked++) {
      static const char *const encodings[] = {"auto", "du", "se"};
      char settings[96];
      snprintf(settings, sizeof settings, "recipe=hotcold crux-cols=70 crux-rows=50 crux-encoding=%s",
               encodings[asked]);
      struct product product = product_of(matrices[m], settings);
      const struct bytes bytes = bytes_at(product.csr, 70, 50);
      const int du = asked ? asked == 1 : bytes.du < bytes.se;
      assert_string_equal(region_of(&product)->layout, du ? "du" : "se");
      assert_int_equal(product.plan->regions_count, 2);
      if (!asked) taken[du]++;
      product_release(&product);
    }
  assert_true(taken[0] >= 2 && taken[1] >= 2);
}

/* The plan's status, and its line. */
static enum cb_status plan_line(char line[512], const char *matrix, const char *settings, const char *arch,
                                struct cb_diag *why) {
  struct cb_csr csr = matrix_of(matrix);
  struct cb_diag diag = {0};
  struct cb_options options;
  struct cb_target target;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  set_options(&options, settings);
  fit_values(&csr, &options);
  assert_ok(cb_target_find(&target, arch, &diag));
  const enum cb_status s = cb_plan_build(&plan, &assignment, &csr, &target, &options, why);
  if (!s) snprintf(line, 512, "%s", plan->line);
  if (!s) cb_assignment_free(assignment);
  if (!s) cb_plan_free(plan);
  cb_csr_release(&csr);
  return s;
}

/* A GPU without a table: without shares, those of nine points that take least; where none saves anything, the recipe
 * says so. */
static void shares_are_chosen_where_they_save(void **state) {
  static const char *const matrices[] = {"block,blocks_r=120,r=8,c=8,per_row=3,scattered=6",
                                         "dense,rows=64,cols=64",
                                         "rmat,scale=9",
                                         "uniform,n=600,per_row=5",
                                         "stencil7,n=7",
                                         "fe3,n=6"};
  char line[512];
  int saved = 0;
  (void)state;
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) {
    struct cb_csr csr = matrix_of(matrices[m]);
    struct cb_diag diag = {0};
    int64_t least = csr.nnz * 10;
    char chosen[64] = "";
    for (int c = 25; c <= 75; c += 25)
      for (int r = 1; r <= 3; r++) {
        const int64_t bytes = bytes_at(&csr, c, c * r / 3).all;
        if (bytes < least) snprintf(chosen, sizeof chosen, "(split crux (cols %d) (rows %d)", c, c * r / 3);
        if (bytes < least) least = bytes;
      }
    cb_csr_release(&csr);
    const enum cb_status s = plan_line(line, matrices[m], "recipe=hotcold", "sm_80", &diag);
    assert_int_equal(s, *chosen ? CB_OK : CB_ERR_UNSUPPORTED);
    if (s)
      assert_non_null(strstr(diag.message, "no share of frequent columns and their rows is predicted to save"));
    else
      assert_non_null(strstr(line, chosen));
    saved += !s;
  }
  assert_in_range(saved, 2, 5);
  struct product product = product_of("dense,rows=64,cols=64", "recipe=hotcold crux-rows=10");
  assert_non_null(strstr(product.plan->line, "(rows 10)"));
  product_release(&product);
}

/* This test's own table stands in the place of the library's: up to 512 rows something is gained, and up to 8192
 * nonzeros hot columns have 60 % of the nonzeros, else 30 %; of floats it has none. */
static const struct cb_tree_node shares_nodes[] = {
    {2, 13 * 1024, 1}, {-1, 60 * 64, 0}, {-1, 30 * 64, 0}, {-1, 40 * 64, 0}, {0, 9 * 1024, 1}, {-1, 20, 0}, {-1, 9, 0},
};
static const struct cb_tree shares_trees[] = {{SHARES_COLS, 3, 0}, {SHARES_ROWS, 1, 3}, {SHARES_GAIN, 3, 4}};
const struct cb_shares_table cb_shares_tables[] = {{"NVIDIA H200", 8, 10, {shares_trees, shares_nodes, 3, 7}}, {0}};

static void shares_are_those_of_the_table(void **state) {
  static const struct {
    const char *matrix, *settings, *arch, *line; /* NULL: refused */
  } cases[] = {
      {"rmat,scale=9,edge_factor=8", "recipe=hotcold", "sm_90", "(split crux (cols 60) (rows 40)"},
      {"rmat,scale=9,edge_factor=32", "recipe=hotcold", "sm_90", "(split crux (cols 30) (rows 30)"},
      {"rmat,scale=10,edge_factor=8", "recipe=hotcold", "sm_90", NULL},
      {"rmat,scale=10,edge_factor=8", "recipe=hotcold crux-cols=50 crux-rows=20", "sm_90", "(cols 50) (rows 20)"},
      {"dense,rows=64,cols=64", "recipe=hotcold crux-cols=50", "sm_90", "(split crux (cols 50)"}, /* by the model */
      {"dense,rows=64,cols=64", "recipe=hotcold type=f32", "sm_90", "(split crux (cols 75)"},     /* likewise */
      {"dense,rows=64,cols=64", "recipe=hotcold", "sm_80", "(split crux (cols 75)"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char line[512] = "";
    struct cb_diag diag = {0};
    const enum cb_status s = plan_line(line, cases[i].matrix, cases[i].settings, cases[i].arch, &diag);
    assert_int_equal(s, cases[i].line ? CB_OK : CB_ERR_UNSUPPORTED);
    if (s)
      assert_non_null(strstr(diag.message, "on NVIDIA H200 nothing is predicted to be gained from frequent"));
    else if (!strstr(line, cases[i].line))
      fail_msg("case %zu: '%s' in '%s'", i, cases[i].line, line);
  }
}

/* All of the matrix is hot: no second part, and the hot one writes all rows. */
static void all_of_it_may_be_hot(void **state) {
  (void)state;
  struct product product = product_of("rmat,scale=8", "recipe=hotcold crux-cols=100 crux-rows=100");
  assert_int_equal(product.plan->regions_count, 1);
  assert_int_equal(region_of(&product)->commit, CB_COMMIT_FINAL);
  struct picture picture = picture_for(product.csr);
  see_rows(&product, &picture);
  memset(picture.commits, 0, (size_t)picture.rows * sizeof *picture.commits);
  if (strcmp(region_of(&product)->layout, "du"))
    see_se(&product, &picture);
  else
    see_du(&product, &picture);
  assert_int_equal(picture.slots, product.csr->nnz);
  check_picture_and_release(&picture, product.csr);
  product_release(&product);
}

/* ---- tensor cores */

static void tensor_cores_are_for_what_they_multiply_exactly(void **state) {
  static const struct words cases[] = {
      {"fe3,n=3", "recipe=du du-form=mma", {"mma_f64_884"}, {"mma_tf32_1688", "load_x(vectors, columns[i][j]));"}},
      {"fe3,n=3", "recipe=du du-form=mma type=f32-f64", {"mma_f64_884"}, {"mma_tf32_1688"}},
      {"fe3,n=3", "recipe=du du-form=mma type=f16-f32", {"mma_tf32_1688", "tf32_parts"}, {"mma_f64_884"}},
      {"fe3,n=3", "recipe=se du-form=mma type=bf16-f32", {"mma_tf32_1688", "tf32_parts"}, {"mma_f64_884"}},
      {"fe3,n=3", "recipe=se du-form=mma", {"mma_f64_884"}, {"__all_sync"}},
      {"fe3,n=3", "recipe=du", {"add_product"}, {"mma_"}},
      {"fe3,n=3", "recipe=se du-form=fma", {"add_product"}, {"mma_"}},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct product product = product_of(cases[i].matrix, cases[i].settings);
    check_words(&product, &cases[i]);
    product_release(&product);
  }
}

static void what_has_no_tensor_cores_is_refused(void **state) {
  struct cb_diag diag = {0};
  (void)state;
  assert_int_equal(plan_status_of("fe3,n=3", "recipe=du du-form=mma type=f32", &diag), CB_ERR_UNSUPPORTED);
  assert_string_equal(diag.message, "tensor cores of sm_90 have no exact products for type 'f32'; use du-form=fma");
  assert_int_equal(plan_status_of("fe3,n=3", "recipe=se du-form=mma semiring=min-plus", &diag), CB_ERR_UNSUPPORTED);
  assert_string_equal(diag.message, "tensor cores add products, which semiring 'min-plus' does not; use du-form=fma");
  struct cb_csr csr = matrix_of("fe3,n=3");
  assert_int_equal(plan_status(&csr, "recipe=se du-form=mma", "sm_75", &diag), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(diag.message, "tensor cores of sm_75"));
  assert_int_equal(plan_status(&csr, "recipe=se du-form=auto", "sm_75", &diag), CB_OK);
  assert_int_equal(plan_status(&csr, "recipe=du du-form=mma", "sm_80", &diag), CB_OK);
  cb_csr_release(&csr);
  assert_int_equal(plan_status_of("fe3,n=3", "recipe=du crux-cols=20 crux-rows=21", &diag), CB_ERR_ARGUMENT);
  assert_non_null(strstr(diag.message, "'crux-rows' 21 exceeds 'crux-cols' 20"));
}

/* ---- threads and memory */

static const char *const planned[][2] = {{"rmat,scale=10", "recipe=hotcold crux-cols=60 crux-rows=40"},
                                         {"rmat,scale=10", "recipe=du crux-sort=on du-segment=20"},
                                         {"rmat,scale=10", "recipe=se du-segment=20"}};

static void threads_change_nothing(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof planned / sizeof *planned; i++) check_threads(planned[i][0], planned[i][1]);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof planned / sizeof *planned; i++)
    assert_true(check_allocations(matrix_of("rmat,scale=5"), planned[i][1]) > 10);
  assert_true(check_allocations(matrix_of("dense,rows=20,cols=20"), "recipe=hotcold") > 10);
}

/* ---- products against the oracle */

static const char *const executed[][2] = {
    {"empty,rows=300,cols=9", ""},
    {"empty,rows=7,cols=0", ""},
    {"one_row,cols=3", ""},
    {"one_row,cols=700", ""},
    {"one_column,rows=21", ""},
    {"diagonal,n=77", ""},
    {"dense,rows=37,cols=41", ""},
    {"dense_row,n=300,row=7", ""},
    {"rmat,scale=8", "du-segment=5"},
    {"fe3,n=3", "bake-limit=0"},
    {"random,rows=90,cols=40,density=0.15", "crux-sort=on"},
    {"explicit_zeros,rows=90,cols=90,density=0.3,zeros=0.4", ""},
    {"stencil7,n=5,values=ones", "values=fixed"},
};
enum { EXECUTED = sizeof executed / sizeof *executed };

static void products_by_lanes_match_the_oracle(void **state) {
  (void)state;
  verify_kinds(executed, EXECUTED, "du");
  verify_kinds(executed, EXECUTED, "se");
}

/* The same matrices within the same bound, where there are tensor cores. */
static void products_by_tensor_cores_match_the_oracle(void **state) {
  static const char *const types[] = {"f64", "f32-f64", "f16-f32", "bf16-f32"};
  struct gathered gathered = {0};
  (void)state;
  for (int i = 0; i < EXECUTED; i++)
    for (int t = 0; t < 4; t++)
      for (int se = 0; se < 2; se++) {
        char settings[160];
        if (strstr(executed[i][1], "values=fixed") && t) continue;
        snprintf(settings, sizeof settings, "recipe=%s du-form=mma type=%s form=%s %s", se ? "se" : "du", types[t],
                 (i + t) % 2 ? "ax" : "axpby", executed[i][1]);
        gather(&gathered, executed[i][0], settings);
      }
  verify_gathered(&gathered);
}

static void hot_and_cold_parts_add_up(void **state) {
  static const char *const cases[][2] = {
      {"rmat,scale=8", "crux-cols=60 crux-rows=40"},
      {"rmat,scale=8", "crux-cols=60 crux-rows=40 crux-encoding=se du-segment=2"},
      {"rmat,scale=8", "crux-cols=90 crux-rows=80 crux-sort=on commit=once"},
      {"stencil7,n=6", "crux-cols=50 crux-rows=20"},
      {"one_row,cols=50", "crux-cols=50 crux-rows=20"},
      {"one_column,rows=90", "crux-cols=50 crux-rows=20"},
      {"arrow,n=70", "crux-cols=50 crux-rows=50"},
  };
  (void)state;
  verify_kinds(cases, sizeof cases / sizeof *cases, "hotcold");
}

/* What the kernels cannot do without: verify sees each of these changes. */
static void verify_sees_what_is_left_out(void **state) {
  static const struct change du[] = {
      {"rmat,scale=7", "du-form=mma form=ax", "is_finite(x[i][0])", "(x[i][0] == x[i][0] || true)"},
      {"rmat,scale=7", "du-form=mma form=ax type=f16-f32", "is_ordinary(x[i][j]) && ", ""},
      {"rmat,scale=7", "form=ax", "slot += __popc(word)", "slot += 1"},
      {"rmat,scale=7", "form=ax type=f16-f32", "lane < 16 ? 0 : __popc(low)", "0"},
      {"rmat,scale=7", "form=ax", "step = 2; step > 0", "step = 1; step > 0"},
      {"rmat,scale=7", "du-form=mma form=ax", "sum = add(sum, sums.tile[0])", "sum = sums.tile[0]"},
      {"rmat,scale=7", "du-form=mma form=ax type=f16-f32", "lane < 8 ? split.at[1]", "lane < 8 ? 0"},
      {"rmat,scale=7", "form=ax du-segment=3", "other += 4", "other += 8"},
      {"random,rows=90,cols=40,density=0.15", "form=ax", "unit >= kUnits", "unit > kUnits"},
  };
  static const struct change se[] = {
      {"rmat,scale=7", "form=ax", "- lane % 4 + 3) / 4", "- lane % 4 + 4) / 4"},
      {"rmat,scale=7", "form=ax du-segment=3", "kSegmentSteps * (unit -", "2 * kSegmentSteps * (unit -"},
      {"rmat,scale=7", "form=ax du-form=mma", "lane / 4 % 2 ? odd : even", "lane / 4 % 4 ? odd : even"},
      {"rmat,scale=7", "form=ax du-form=mma type=bf16-f32", "p < 3", "p < 1"},
  };
  (void)state;
  check_changes_are_seen(du, sizeof du / sizeof *du, "du");
  check_changes_are_seen(se, sizeof se / sizeof *se, "se");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_hot_part_is_that_of_a_sort),
      cmocka_unit_test(more_columns_than_memory_are_refused),
      cmocka_unit_test(arrays_describe_the_matrix),
      cmocka_unit_test(narrow_values_have_wide_blocks),
      cmocka_unit_test(the_encoding_is_that_of_the_formula),
      cmocka_unit_test(shares_are_chosen_where_they_save),
      cmocka_unit_test(shares_are_those_of_the_table),
      cmocka_unit_test(all_of_it_may_be_hot),
      cmocka_unit_test(tensor_cores_are_for_what_they_multiply_exactly),
      cmocka_unit_test(what_has_no_tensor_cores_is_refused),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(products_by_lanes_match_the_oracle),
      cmocka_unit_test(products_by_tensor_cores_match_the_oracle),
      cmocka_unit_test(hot_and_cold_parts_add_up),
      cmocka_unit_test(verify_sees_what_is_left_out),
  };
  return cmocka_run_group_tests_name("du", tests, NULL, NULL);
}
