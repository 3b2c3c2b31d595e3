// SPDX-License-Identifier: Apache-2.0
/* The dia layout and its split: chosen diagonals and slots against brute force, what the text has and lacks,
 * threads, failing allocations; and products against the oracle, NaN and Inf among them. */
#include "tests/layouts.h"

#include "analysis/layouts/dia/dia_chains.h"
#include "analysis/plan/builder.h"
#include "tests/hosts.h"

#include <math.h>

static const char *body_of(const struct product *product) {
  return product->source.text + product->source.body;
}

/* The offsets that stand in the text; returns how many. */
static int offsets_of(const struct product *product, int64_t *offsets, int room) {
  const char *at = strstr(body_of(product), "offset[] = {");
  int count = 0;
  assert_non_null(at);
  for (at += 12; *at != '}' && count < room;) {
    char *end;
    offsets[count++] = strtol(at, &end, 10);
    at = *end == ',' ? end + 1 : end;
  }
  return count;
}

/* ---- decisions */

struct diagonal {
  int64_t offset, count, length;
};

/* Populated diagonals from a dense picture; the `most` fullest, by offset. Returns how many. */
static int brute_force(const struct cb_csr *csr, int64_t fill, int most, struct diagonal *chosen) {
  struct diagonal all[256];
  int found = 0, kept = 0;
  for (int64_t offset = 1 - csr->rows; offset < csr->cols; offset++) {
    struct diagonal one = {.offset = offset};
    for (int64_t row = 0; row < csr->rows; row++) {
      if (row + offset < 0 || row + offset >= csr->cols) continue;
      one.length++;
      for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
        one.count += csr->col_idx[k] == row + offset;
    }
    if (one.count && 2 * one.length >= csr->rows && 100 * one.count >= fill * one.length) all[found++] = one;
  }
  for (int i = 0; i < found; i++) {
    int fuller = 0;
    for (int j = 0; j < found; j++)
      fuller += all[j].count > all[i].count || (all[j].count == all[i].count && j < i);
    if (fuller < most) chosen[kept++] = all[i];
  }
  return kept;
}

/* Values are 1, 2, 3, …: they say which nonzero a slot holds. */
static void check_slots(const struct product *product, const int64_t *offsets, int diagonals,
                        int64_t absent) {
  const struct cb_region *region = &product->plan->regions[0];
  const struct cb_csr *csr = product->csr;
  const double *values = (const double *)(product->blob.bytes + cb_blob_offset(product->plan, 0, 0));
  const unsigned char *presence = absent ? product->blob.bytes + cb_blob_offset(product->plan, 0, 1) : NULL;
  const int64_t slots = (csr->rows + 31) / 32 * 32 * diagonals;
  int64_t held = 0;
  assert_int_equal(region->value_slots, slots);
  assert_int_equal(region->arrays_count, absent ? 2 : 1);
  for (int64_t slot = 0; slot < slots; slot++) {
    const int64_t row = slot / (32 * diagonals) * 32 + slot % 32,
                  column = row + offsets[slot / 32 % diagonals];
    double value = 0;
    if (row < csr->rows)
      for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
        if (csr->col_idx[k] == column) value = csr->values[k];
    assert_true(values[slot] == value);
    if (presence) assert_int_equal(presence[slot / 8] >> slot % 8 & 1, value != 0);
    held += value != 0;
  }
  assert_int_equal(held, region->nonzeros);
}

/* A slice is inside when none of its rows meets a diagonal outside the matrix. */
static void check_inside(const struct product *product, const int64_t *offsets, int diagonals) {
  const struct cb_csr *csr = product->csr;
  const int64_t slices = (csr->rows + 31) / 32;
  const int some = strstr(body_of(product), "sum_inside(") != NULL;
  const int64_t first = some ? constant(product, "kFirstInside", 0) : 0;
  const int64_t end = some ? constant(product, "kEndInside", slices) : 0;
  for (int64_t slice = 0; slice < slices; slice++) {
    int inside = 1;
    for (int64_t row = 32 * slice; row < 32 * slice + 32 && row < csr->rows; row++)
      for (int d = 0; d < diagonals; d++) inside &= row + offsets[d] >= 0 && row + offsets[d] < csr->cols;
    assert_int_equal(inside, slice >= first && slice < end);
  }
  assert_int_equal(strstr(body_of(product), "sum_border(") != NULL, end - first < slices);
}

static void decisions_match_brute_force(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  int refused = 0, planned = 0;
  for (uint64_t seed = 0; seed < 300; seed++) {
    uint64_t random = seed;
    const int64_t rows = 1 + (int64_t)(draw(&random) % 90), cols = 1 + (int64_t)(draw(&random) % 90);
    const unsigned per_mille = 300 + (unsigned)(draw(&random) % 701);
    const int fill = (int)(draw(&random) % 101), most = 1 + (int)(draw(&random) % 70);
    struct diagonal chosen[256];
    struct cb_csr csr = random_matrix(rows, cols, per_mille, seed);
    char settings[64];
    snprintf(settings, sizeof settings, "recipe=dia dia-fill=%d dia-most=%d", fill, most);
    const int count = brute_force(&csr, fill, most, chosen);
    if (!count) {
      assert_int_equal(plan_status(&csr, settings, "sm_90", &diag), CB_ERR_UNSUPPORTED);
      assert_non_null(strstr(diag.message, "no diagonal crosses half of the rows"));
      cb_csr_release(&csr);
      refused++;
      continue;
    }
    struct product product = product_of_matrix(csr, settings);
    int64_t offsets[256], absent = 0, nonzeros = 0;
    assert_int_equal(offsets_of(&product, offsets, 256), count);
    for (int d = 0; d < count; d++) {
      assert_int_equal(offsets[d], chosen[d].offset);
      absent += chosen[d].length - chosen[d].count;
      nonzeros += chosen[d].count;
    }
    assert_int_equal(product.plan->regions[0].nonzeros, nonzeros);
    assert_int_equal(strtol(fact(&product, "absent"), NULL, 10), absent);
    assert_int_equal(product.plan->regions_count, nonzeros < product.csr->nnz ? 2 : 1);
    assert_ok(cb_assignment_check(product.plan, product.assignment, &diag));
    check_slots(&product, offsets, count, absent);
    check_inside(&product, offsets, count);
    product_release(&product);
    planned++;
  }
  assert_true(refused > 20 && planned > 100);
}

static void stencils_store_little_more_than_values(void **state) {
  (void)state;
  static const char *const stencils[] = {"stencil7,n=60", "stencil5,n=300", "stencil9,n=400",
                                         "tridiagonal,n=100000"};
  for (size_t m = 0; m < sizeof stencils / sizeof *stencils; m++) {
    struct product product = product_of(stencils[m], "recipe=dia");
    assert_int_equal(product.plan->regions_count, 1);
    assert_true(10 * cb_plan_bytes(product.plan) <= 83 * product.plan->nnz);
    product_release(&product);
  }
}

/* Fuller than a matrix with more rows than nonzeros can be, and no counters are needed to know. */
static void a_matrix_without_diagonals_is_refused(void **state) {
  (void)state;
  static const char *const without[] = {"empty,rows=20,cols=20", "one_column,rows=50", "rmat,scale=10",
                                        "hypersparse,rows=100000"};
  struct cb_diag diag = {0};
  for (size_t m = 0; m < sizeof without / sizeof *without; m++) {
    assert_int_equal(plan_status_of(without[m], "recipe=dia", &diag), CB_ERR_UNSUPPORTED);
    assert_ok(plan_status_of(without[m], "recipe=auto", &diag));
  }
}

/* ---- text */

static void text_has_what_the_plan_needs(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *settings, *has[3], *lacks[8];
  } cases[] = {
      {"stencil7,n=20",
       "recipe=dia",
       {"{-400, -20, -1, 0, 1, 20, 400}", "arrays.presence", "is_finite(sum)"},
       {"column_offset", "index_t = int64_t", "#pragma unroll 1\n  for (int first"}},
      /* 1024 rows: whole slices and thread blocks; all places are present */
      {"tridiagonal,n=1024",
       "recipe=dia",
       {"{-1, 0, 1}", "kFirstInside", "sum_border"},
       {"presence", "is_finite", "kRows", "column_offset"}},
      {"tridiagonal,n=1000", "recipe=dia", {"row >= kRows"}, {"presence", "is_finite"}},
      {"diagonal,n=100",
       "recipe=dia",
       {"{0}", "sum_inside"},
       {"sum_border", "kCols", "kFirstInside", "kEndInside", "presence", "bool inside"}},
      {"dense,rows=30,cols=30", "recipe=dia", {"sum_border"}, {"sum_inside", "kFirstInside", "presence"}},
      {"band,n=900,half=60,per_row=100",
       "recipe=dia dia-most=200",
       {"#pragma unroll 1\n  for (int first"},
       {"column_offset"}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = product_of(cases[c].matrix, cases[c].settings);
    const char *body = body_of(&product);
    for (int i = 0; i < 3 && cases[c].has[i]; i++)
      if (!strstr(body, cases[c].has[i])) fail_msg("%s lacks '%s'", cases[c].matrix, cases[c].has[i]);
    char *device = strdup(body);
    *strstr(device, "// ---- host:") = 0;
    for (int i = 0; i < 8 && cases[c].lacks[i]; i++)
      if (strstr(device, cases[c].lacks[i])) fail_msg("%s has '%s'", cases[c].matrix, cases[c].lacks[i]);
    free(device);
    for (int a = 0; a < product.plan->regions[0].arrays_count; a++)
      assert_int_not_equal(product.plan->regions[0].arrays[a].role, CB_ROLE_INDEX);
    product_release(&product);
  }
}

/* The guardless sum names neither bounds nor presence. */
static void interior_has_no_guards(void **state) {
  (void)state;
  struct product product = product_of("stencil27,n=12", "recipe=dia dia-fill=50");
  char *inside = strdup(strstr(body_of(&product), "sum_t sum_inside("));
  *strstr(inside, "\n}\n") = 0;
  assert_null(strstr(inside, "kCols"));
  assert_null(strstr(inside, "presence"));
  assert_null(strstr(inside, "?"));
  assert_null(strstr(inside, "if ("));
  free(inside);
  product_release(&product);
}

/* 2.2 million rows and 1024 diagonals: more slots than an int counts. */
static void many_slots_have_wide_indices(void **state) {
  (void)state;
  enum { N = 2200000, DIAGONALS = 1024 };
  struct cb_diag diag = {0};
  struct cb_csr csr = {0};
  struct cb_options options;
  struct cb_target target;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  struct cb_source source = {0};
  const struct cb_label label = {"test", "test", {1, 2}};
  assert_ok(cb_csr_alloc(&csr, N, N, DIAGONALS, &diag));
  for (int64_t row = 0; row <= N; row++) ((int32_t *)csr.row_ptr)[row] = row > N / 2 ? DIAGONALS : 0;
  for (int k = 0; k < DIAGONALS; k++) csr.col_idx[k] = N / 2 - DIAGONALS / 2 + k;
  set_options(&options, "recipe=dia dia-fill=0 dia-most=1024");
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  assert_ok(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag));
  assert_int_equal(plan->regions[0].value_slots, (int64_t)N * DIAGONALS);
  assert_ok(cb_source_emit(&source, plan, &label, NULL, CB_EMBED_NEVER, &diag));
  assert_non_null(strstr(source.text + source.body, "using index_t = int64_t"));
  cb_source_release(&source);
  cb_assignment_free(assignment);
  cb_plan_free(plan);
  cb_csr_release(&csr);
}

/* ---- limits */

/* The split asks for no more than its option allows, which ends where the room does: a leaf that has them all does. */
static void more_diagonals_than_there_is_room_for_are_refused(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_csr csr = matrix_of("dense,rows=4,cols=1100");
  struct cb_options options;
  struct cb_target target;
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  const struct cb_node leaf = {.layout = "dia"};
  const struct cb_recipe whole = {.name = "whole", .root = &leaf};
  cb_options_default(&options);
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  assert_int_equal(cb_build_recipe(&plan, &assignment, &whole, &csr, &target, &options, &diag), CB_ERR_LIMIT);
  assert_string_equal(diag.message, "1103 diagonals exceed the dia layout's 1024; use another recipe");
  cb_csr_release(&csr);
}

/* Text has no literal for such a coefficient. */
static void a_diagonal_of_equal_values_that_are_not_finite_is_stored(void **state) {
  (void)state;
  static const double special[] = {INFINITY, -INFINITY, NAN};
  for (size_t s = 0; s < sizeof special / sizeof *special; s++) {
    struct cb_csr csr = matrix_of("tridiagonal,n=64,values=ones");
    for (int64_t row = 0; row < csr.rows; row++)
      for (int64_t k = cb_csr_row(&csr, row); k < cb_csr_row(&csr, row + 1); k++)
        if (csr.col_idx[k] > row) csr.values[k] = special[s];
    struct product product = product_of_matrix(csr, "recipe=dia values=fixed");
    int64_t offsets[4];
    assert_int_equal(offsets_of(&product, offsets, 4), 1);
    assert_int_equal(offsets[0], 1);
    assert_int_equal(product.plan->regions[0].value_slots - product.plan->regions[0].constant_slots, 64);
    product_release(&product);
  }
}

/* ---- repeatability and failures */

static const char *const mixed = "diagonals,n=3000,count=40,spread=200,fill=0.8,seed=3";

static void threads_change_nothing(void **state) {
  static const char settings[] = "recipe=dia dia-fill=79 dia-most=30";
  struct product product = product_of(mixed, settings);
  (void)state;
  assert_int_equal(product.plan->regions_count, 2);
  product_release(&product);
  check_threads(mixed, settings);
}

static void new_values_equal_a_fresh_pack(void **state) {
  struct product product = product_of(mixed, "recipe=dia");
  (void)state;
  check_new_values(&product);
  product_release(&product);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  assert_true(check_allocations(matrix_of("diagonals,n=200,count=9,spread=90,fill=0.8"),
                                "recipe=dia dia-fill=70") > 40);
}

/* ---- products */

static const char *const executed[][2] = {
    {"stencil7,n=5", ""},
    {"stencil7,n=9", ""},
    {"stencil27,n=4", "dia-fill=20"},
    {"stencil27,n=8", ""},
    {"stencil5,n=24", ""},
    {"stencil9,n=17", ""},
    {"tridiagonal,n=130", ""},
    {"tridiagonal,n=512", ""},
    {"diagonal,n=1", ""},
    {"diagonal,n=100", ""},
    {"diagonal,n=70,cols=200", ""},
    {"band,n=400,half=20,per_row=25", "dia-fill=50"},
    {"band,n=300,half=60,per_row=90", "dia-fill=30 dia-most=200"}, /* a loop over the diagonals */
    {"arrow,n=200,width=3", ""},
    {"dense,rows=70,cols=40", ""},
    {"dense,rows=40,cols=70", "dia-fill=0 dia-most=1000"},
    {"one_row,cols=50", ""},
    {"one_row,cols=500", "dia-most=7"},
    {"one_column,rows=2", ""},
    {"explicit_zeros,rows=90,cols=90,density=0.3,zeros=0.4", "dia-fill=10 dia-most=40"},
    {"random,rows=90,cols=60,density=0.3", "dia-fill=20 dia-most=11"},
    {"diagonals,n=300,count=20,spread=90,fill=0.7", ""},
    {"upper,n=90", ""},
};

static void products_match_the_oracle(void **state) {
  (void)state;
  verify_kinds(executed, sizeof executed / sizeof *executed, "dia");
}

/* Without the second look at sums that are not finite, NaN and Inf spread through absent places: verify sees
 * it. */
static void absent_places_matter(void **state) {
  (void)state;
  struct product product = product_of("stencil7,n=9", "recipe=dia form=ax");
  struct cb_verify_report report;
  struct cb_verify_options options;
  struct cb_diag diag = {0};
  char *look = strstr(product.source.text + product.source.body, "!is_finite(sum)");
  assert_non_null(look);
  memcpy(look, "false          ", strlen("!is_finite(sum)"));
  const struct cb_verify_case one = {product.csr,     product.plan,  product.assignment,
                                     &product.source, &product.blob, "test"};
  cb_verify_options_default(&options);
  assert_int_equal(verify_kernel(&one, &options, &report, &diag), CB_ERR_WRONG);
  assert_string_equal(report.product, "non-finite");
  product_release(&product);
}

/* ---- rows a stride apart */

/* Diagonals of equal values. A row has an entry where its number modulo a period lies within [from, to), and
 * row % third has none where `third` is not 0: that is no regular grid's. */
struct lattice {
  const char *name;
  int64_t rows, cols;
  int64_t diagonals[10][5]; /* offset, period, from, to, third; ends with a period of 0 */
};

static struct cb_csr matrix_of_lattice(const struct lattice *lattice) {
  struct cb_diag diag = {0};
  struct cb_csr csr = {0};
  struct cb_coo coo = {.rows = lattice->rows, .cols = lattice->cols};
  coo.row_idx = cb_alloc((size_t)coo.rows * 10, 4);
  coo.col_idx = cb_alloc((size_t)coo.rows * 10, 4);
  coo.values = cb_alloc((size_t)coo.rows * 10, 8);
  for (int64_t row = 0; row < coo.rows; row++)
    for (int d = 0; lattice->diagonals[d][1]; d++) {
      const int64_t *diagonal = lattice->diagonals[d], column = row + diagonal[0], place = row % diagonal[1];
      const int third = diagonal[4] && row % diagonal[4] == 0;
      if (column < 0 || column >= coo.cols || place < diagonal[2] || place >= diagonal[3] || third) continue;
      coo.row_idx[coo.count] = (int32_t)row;
      coo.col_idx[coo.count] = (int32_t)column;
      coo.values[coo.count++] = 0.25 * (d + 1);
    }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  return csr;
}

static const struct lattice lattices[] = {
    {"wide, a chain of five",
     500,
     900,
     {{-80, 1, 0, 1}, {0, 1, 0, 1}, {80, 1, 0, 1}, {160, 1, 0, 1}, {240, 1, 0, 1}}},
    {"tall, chains of four and two",
     1100,
     700,
     {{-120, 1, 0, 1}, {-60, 1, 0, 1}, {0, 1, 0, 1}, {60, 1, 0, 1}, {-31, 60, 7, 60}, {29, 60, 7, 60}}},
    {"two periods",
     800,
     800,
     {{-100, 1, 0, 1},
      {0, 1, 0, 1},
      {100, 1, 0, 1},
      {-1, 20, 1, 20},
      {20, 100, 0, 80},
      {1, 50, 0, 33},
      {-50, 100, 50, 100},
      {3, 20, 0, 17}}},
    {"an even diagonal in a chain with holes",
     640,
     640,
     {{-64, 64, 5, 64}, {0, 64, 5, 64}, {64, 64, 5, 64}, {-1, 1, 0, 1}}},
    {"fewer rows than a group", 90, 90, {{-40, 1, 0, 1}, {0, 1, 0, 1}, {40, 1, 0, 1}}},
    {"one row more than whole groups", 201, 201, {{-50, 1, 0, 1}, {0, 1, 0, 1}, {50, 1, 0, 1}}},
};
enum { LATTICES = sizeof lattices / sizeof *lattices };
static const char *const lattice_strides[LATTICES] = {"80", "60", "100", "64", "40", "50"};

static const char *const chained[][2] = {
    {"stencil5,n=24,values=ones", "dia-stride=24"},
    {"stencil5,n=37,values=ones", "dia-stride=37 dia-rows=3 dia-threads=256"},
    {"stencil9,n=17,values=ones", "dia-stride=17 dia-rows=2"},
    {"stencil9,n=40,values=ones",
     "dia-stride=39 dia-fill=90"}, /* half of the entries do not fit into chains */
    {"stencil7,n=5,values=ones", "dia-stride=25 dia-rows=8"},
    {"stencil7,n=12,values=ones", "dia-stride=144 dia-threads=1024"},
    {"stencil27,n=6,values=ones", "dia-stride=36 dia-rows=2"},
    {"stencil27,n=9,values=ones", "dia-stride=81 dia-fill=20"},
    {"stencil5,n=24,periodic=1,values=ones", "dia-stride=24 fuse=on"},
    {"stencil7,n=8,periodic=1,values=ones", "dia-stride=64"},
    {"stencil7,n=12,extra=0.5,values=ones", "dia-stride=144 fuse=on"}, /* the rest cannot join */
    {"tridiagonal,n=130", "dia-stride=1 dia-rows=4"},
    {"diagonal,n=1000,values=ones", "dia-stride=100"},                /* a chain of one */
    {"upper,n=60,values=ones", "dia-stride=2 dia-rows=8 dia-fill=0"}, /* long ones are cut */
};
enum { CHAINED = sizeof chained / sizeof *chained };

static void rows_a_stride_apart_match_the_oracle(void **state) {
  (void)state;
  struct gathered gathered = {0};
  int strides = 0;
  for (size_t c = 0; c < CHAINED; c++) {
    char settings[200];
    snprintf(settings, sizeof settings, "recipe=dia values=fixed %s", chained[c][1]);
    gather_kinds(&gathered, chained[c][0], settings);
    strides += has(&gathered.products[gathered.count - 1], "kStride = ");
  }
  assert_int_equal(strides, CHAINED - 2); /* not stencil9's and tridiagonal's */
  for (size_t m = 0; m < LATTICES; m++)
    for (int rows = 2; rows <= CB_CHAIN_ROWS; rows *= 2) {
      char settings[200];
      snprintf(settings, sizeof settings,
               "recipe=dia values=fixed dia-fill=0 dia-rows=%d dia-stride=%s form=%s", rows,
               lattice_strides[m], rows == 2 ? "ax" : "axpby");
      const struct product *product =
          gather_matrix(&gathered, matrix_of_lattice(&lattices[m]), lattices[m].name, settings);
      assert_string_equal(fact(product, "stride"), lattice_strides[m]);
      assert_false(has(product, "holes"));
    }
  verify_gathered(&gathered);
}

/* Absent places that do not repeat leave no stride, whatever is asked for; nor do stored values. */
static void irregular_holes_leave_no_stride(void **state) {
  (void)state;
  static const struct lattice irregular[] = {
      {"a third missing", 800, 800, {{-100, 1, 0, 1}, {0, 1, 0, 1}, {100, 1, 0, 1}, {1, 100, 0, 99, 3}}},
      {"one missing", 800, 800, {{-100, 1, 0, 1}, {0, 1, 0, 1}, {100, 1, 0, 1}, {1, 800, 1, 800}}},
      {"another period", 800, 800, {{-100, 1, 0, 1}, {0, 1, 0, 1}, {100, 1, 0, 1}, {1, 30, 0, 29}}},
      {"a chain of two minds", 800, 800, {{-100, 100, 1, 100}, {0, 1, 0, 1}, {100, 1, 0, 1}}},
  };
  struct gathered gathered = {0};
  for (size_t m = 0; m < sizeof irregular / sizeof *irregular; m++) {
    const struct product *product =
        gather_matrix(&gathered, matrix_of_lattice(&irregular[m]), irregular[m].name,
                      "recipe=dia values=fixed dia-fill=0 dia-stride=100");
    assert_string_equal(fact(product, "stride"), "none");
    assert_true(has(product, "holes"));
  }
  verify_gathered(&gathered);
  struct product product = product_of("stencil7,n=12", "recipe=dia values=fixed dia-stride=144");
  assert_string_equal(fact(&product, "stride"), "none");
  product_release(&product);
}

/* What a matrix gets when nothing is asked for, on a quarter of a GPU: rows for each multiprocessor count. */
static void strides_are_chosen_by_structure(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *settings, *stride;
    int64_t rows;
  } cases[] = {
      {"stencil5,n=1000,values=ones", "", "1000", 4},
      {"stencil5,n=650,values=ones", "", "650", 2}, /* fewer rows: more threads */
      {"stencil9,n=1000,values=ones", "", "1000", 4},
      {"stencil7,n=95,values=ones", "", "9025", 4},
      {"stencil7,n=95,values=ones", "dia-stride=1", "none", 4},
      {"stencil7,n=95,values=ones", "dia-rows=2", "9025", 2},
      {"stencil5,n=250,values=ones", "", "none", 0}, /* too few rows to have several for a thread */
      {"stencil5,n=950,extra=0.01,values=ones", "", "none", 4}, /* the rest may join */
      {"tridiagonal,n=1000000,values=ones", "", "none", 4},
      {"diagonal,n=1000000,values=ones", "", "none", 4},
  };
  struct cb_target target;
  struct cb_diag diag = {0};
  assert_ok(cb_target_find(&target, "sm_90", &diag));
  target.multiprocessors /= 4;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char settings[100];
    snprintf(settings, sizeof settings, "recipe=dia values=fixed %s", cases[c].settings);
    struct product product = product_on_target(matrix_of(cases[c].matrix), settings, &target);
    if (strcmp(fact(&product, "stride"), cases[c].stride)) fail_msg("%s: %s", cases[c].matrix, fact(&product, "stride"));
    assert_int_equal(constant(&product, "kRepeats", 0), cases[c].rows);
    if (strcmp(cases[c].stride, "none")) assert_int_equal(cb_plan_bytes(product.plan), 0);
    product_release(&product);
  }
}

/* 27 points: neighbours in one direction are a chain, and what is absent in the others are conditions. */
static void cubes_have_nine_chains(void **state) {
  (void)state;
  struct product product =
      product_of("stencil27,n=9,values=ones", "recipe=dia values=fixed dia-fill=0 dia-stride=81");
  assert_int_equal(constant(&product, "kChains", 0), 9);
  assert_int_equal(constant(&product, "kLongest", 0), 3);
  assert_int_equal(constant(&product, "kConditions", 0), 4); /* two sides of a line, and two of a plane */
  assert_true(has(&product, "chain_conditions[] = {"));
  assert_int_equal(product.plan->launches[0].threads, 512);
  assert_int_equal(product.plan->launches[0].blocks, 1); /* 729 rows: 3 groups of 81 threads */
  product_release(&product);
}

/* What keeps NaN and Inf of x out of rows that have no such entry, x and y from being overrun, and rows
 * apart. */
static void guards_of_a_stride_matter(void **state) {
  static const struct change changes[] = {
      {"stencil7,n=9,values=ones", "values=fixed dia-stride=81 form=ax", " && has_entries",
       " && (has_entries || true)"},
      {"stencil7,n=9,values=ones", "values=fixed dia-stride=81 form=ax", "column < unsigned(kCols)",
       "column < 2 * unsigned(kCols)"},
      {"stencil7,n=9,values=ones", "values=fixed dia-stride=81 form=ax", "row + i * kStride < kRows",
       "row + i < kRows"},
      {"stencil5,n=24,values=ones", "values=fixed dia-stride=24 dia-rows=4 form=ax", "row >= kRows",
       "row >= 2 * kRows"},
      {"stencil5,n=24,values=ones", "values=fixed dia-stride=24 form=ax", "xs[c][l + i]", "xs[c][l]"},
      {"stencil9,n=24,values=ones", "values=fixed dia-stride=24 form=ax", "place < least[i]",
       "place < least[i] - 1"},
      {"stencil9,n=24,values=ones", "values=fixed dia-stride=24 form=ax", "place >= limit[i]",
       "place > limit[i]"},
  };
  (void)state;
  check_changes_are_seen(changes, sizeof changes / sizeof *changes, "dia");
}

/* Of several vectors: lines of a grid, as diagonals tell them, and planes where they are. */
static void grids_are_cut_into_rectangles(void **state) {
  static const struct {
    const char *matrix, *settings, *lines, *planes;
    int64_t width, of_lines, repeats;
  } cases[] = {
      {"stencil7,n=96", "vectors=32", "96", "9216", 16, 16, 2},
      {"stencil7,n=100", "vectors=32 dia-rows=8", "100", "10000", 12, 21, 8}, /* 45 rectangles, and not 49 */
      {"road,n=720", "vectors=32 dia-threads=512", "720", "none", 16, 32, 1},
      {"stencil7,n=96", "vectors=8", "none", "none", 0, 0, 0},                 /* L2 has all of X */
      {"stencil7,n=40", "vectors=8 dia-stride=40", "40", "1600", 12, 21, 1},   /* asked for */
      {"stencil7,n=96", "vectors=32 dia-stride=1", "none", "none", 0, 0, 0},
      {"stencil7,n=95", "vectors=32", "none", "none", 0, 0, 0}, /* lines begin within sectors of values */
      {"tridiagonal,n=500000", "vectors=32", "none", "none", 0, 0, 0},
  };
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char settings[100];
    snprintf(settings, sizeof settings, "recipe=dia %s", cases[c].settings);
    struct product product = product_of(cases[c].matrix, settings);
    assert_string_equal(fact(&product, "lines"), cases[c].lines);
    assert_string_equal(fact(&product, "planes"), cases[c].planes);
    assert_int_equal(constant(&product, "kWidth", 0), cases[c].width);
    assert_int_equal(constant(&product, "kLines", 0), cases[c].of_lines);
    assert_int_equal(constant(&product, "kRepeats", cases[c].width ? 1 : 0), cases[c].repeats);
    product_release(&product);
  }
}

static void strides_survive_threads_and_failures(void **state) {
  static const char settings[] = "recipe=dia values=fixed dia-stride=100";
  (void)state;
  check_threads("stencil7,n=10,values=ones", settings);
  assert_true(check_allocations(matrix_of("stencil7,n=10,values=ones"), settings) > 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(decisions_match_brute_force),
      cmocka_unit_test(stencils_store_little_more_than_values),
      cmocka_unit_test(a_matrix_without_diagonals_is_refused),
      cmocka_unit_test(text_has_what_the_plan_needs),
      cmocka_unit_test(interior_has_no_guards),
      cmocka_unit_test(many_slots_have_wide_indices),
      cmocka_unit_test(more_diagonals_than_there_is_room_for_are_refused),
      cmocka_unit_test(a_diagonal_of_equal_values_that_are_not_finite_is_stored),
      cmocka_unit_test(threads_change_nothing),
      cmocka_unit_test(new_values_equal_a_fresh_pack),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(products_match_the_oracle),
      cmocka_unit_test(absent_places_matter),
      cmocka_unit_test(rows_a_stride_apart_match_the_oracle),
      cmocka_unit_test(irregular_holes_leave_no_stride),
      cmocka_unit_test(strides_are_chosen_by_structure),
      cmocka_unit_test(cubes_have_nine_chains),
      cmocka_unit_test(guards_of_a_stride_matter),
      cmocka_unit_test(grids_are_cut_into_rectangles),
      cmocka_unit_test(strides_survive_threads_and_failures),
  };
  return cmocka_run_group_tests_name("dia", tests, NULL, NULL);
}
