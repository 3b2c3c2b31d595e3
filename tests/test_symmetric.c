// SPDX-License-Identifier: Apache-2.0
/* Symmetric storage: what is promised and what is seen, slots and bytes, the same bits as without it, and products of
 * symmetric and skew-symmetric matrices of all shapes against the oracle, of which the lower triangle counts. */
#include "tests/combinations.h"
#include "tests/kernels.h"
#include "tests/layouts.h"
#include "tests/shapes.h"
#include "tests/symmetric.h"

#include "runtime/verify/trace.h"

#include <math.h>

/* Half is stored, however small the matrix is. */
#define STORED "symmetric-storage=on "
#define HALF STORED "symmetric=on"
#define SKEW STORED "symmetric=skew"

static struct product symmetric_product(const char *matrix, const char *settings, enum cb_symmetry_option symmetry) {
  return product_of_matrix(symmetrised(matrix_of(matrix), symmetry), settings);
}

/* ---- promises */

static void fixed_values_show_what_they_are(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *settings;
    enum cb_symmetry_option made, seen;
  } cases[] = {
      {"stencil7,n=9", "recipe=dia " STORED "values=fixed", CB_SYMMETRIC_ON, CB_SYMMETRIC_ON},
      {"stencil7,n=9,values=signed", "recipe=dia " STORED "values=fixed", CB_SYMMETRIC_OFF, CB_SYMMETRIC_OFF},
      {"stencil7,n=9", "recipe=dia " STORED "values=fixed symmetric=off", CB_SYMMETRIC_ON, CB_SYMMETRIC_OFF},
      {"stencil7,n=9", "recipe=dia " STORED, CB_SYMMETRIC_ON, CB_SYMMETRIC_OFF}, /* they may change */
      {"stencil7,n=9", "recipe=dia " HALF, CB_SYMMETRIC_OFF, CB_SYMMETRIC_ON},
      {"stencil7,n=9", "recipe=dia " SKEW, CB_SYMMETRIC_OFF, CB_SYMMETRIC_SKEW},
      {"random,rows=40,cols=40,density=0.2", "recipe=sell " STORED "values=fixed", CB_SYMMETRIC_SKEW,
       CB_SYMMETRIC_SKEW},
      {"dense,rows=40,cols=40", "recipe=dia dia-fill=0 " STORED "values=fixed semiring=min-plus", CB_SYMMETRIC_ON,
       CB_SYMMETRIC_ON},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = symmetric_product(cases[c].matrix, cases[c].settings, cases[c].made);
    if (product.plan->symmetry != (int)cases[c].seen)
      fail_msg("%s %s: symmetry %d", cases[c].matrix, cases[c].settings, product.plan->symmetry);
    product_release(&product);
  }
}

/* A skew-symmetric matrix has nothing but zeros on its main diagonal; what fixed values show is told by their bits, and
 * zeros of either sign are each other's negative. */
static void skew_values_are_seen(void **state) {
  (void)state;
  struct cb_csr csr = symmetrised(matrix_of("stencil5,n=12,values=signed"), CB_SYMMETRIC_SKEW);
  for (int64_t row = 0; row < csr.rows; row++)
    for (int64_t k = cb_csr_row(&csr, row); k < cb_csr_row(&csr, row + 1); k++)
      if (csr.col_idx[k] == row || (csr.col_idx[k] == row + 1 && row % 5 == 0))
        csr.values[k] = csr.values[cb_symmetry_partner(&csr, row, csr.col_idx[k])] = 0;
  struct product product = product_of_matrix(csr, "recipe=dia " STORED "values=fixed");
  assert_int_equal(product.plan->symmetry, CB_SYMMETRIC_SKEW);
  assert_string_equal(fact(&product, "negated"), "2");
  product_release(&product);
}

static void broken_promises_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *settings, *message;
    enum cb_symmetry_option made;
  } cases[] = {
      {"random,rows=30,cols=40,density=0.1", "symmetric=on", "option 'symmetric' needs a square matrix, not 30 x 40",
       CB_SYMMETRIC_AUTO},
      {"dense_row,n=20,row=3", "symmetric=skew", "there is an entry (3, 0), counted from 0, and no entry (0, 3)",
       CB_SYMMETRIC_AUTO},
      {"tridiagonal,n=20", "symmetric=on check-symmetry=on", "the matrix is not symmetric, as option 'symmetric' says",
       CB_SYMMETRIC_OFF},
      {"tridiagonal,n=20", "symmetric=skew values=fixed", "the matrix is not skew-symmetric", CB_SYMMETRIC_ON},
      {"tridiagonal,n=20", "symmetric=on values=fixed", "entry (0, 1), counted from 0, is", CB_SYMMETRIC_SKEW},
      {"tridiagonal,n=20", "check-symmetry=on", "option 'symmetric' must be on, skew or hermitian", CB_SYMMETRIC_ON},
      {"tridiagonal,n=20", "symmetric=hermitian", "hermitian with types of complex numbers only", CB_SYMMETRIC_ON},
      {"tridiagonal,n=20", "symmetric=skew semiring=max-times", "skew with semiring plus-times only", CB_SYMMETRIC_ON},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct cb_diag diag = {0};
    struct cb_csr csr = matrix_of(cases[c].matrix);
    if (cases[c].made != CB_SYMMETRIC_AUTO) csr = symmetrised(csr, cases[c].made);
    assert_int_equal(plan_status(&csr, cases[c].settings, "sm_90", &diag), CB_ERR_ARGUMENT);
    if (!strstr(diag.message, cases[c].message)) fail_msg("'%s' is not '%s'", diag.message, cases[c].message);
    cb_csr_release(&csr);
  }
}

static void kept_promises_are_taken(void **state) {
  (void)state;
  static const char *const settings[] = {"symmetric=on check-symmetry=on", "symmetric=on values=fixed",
                                         "symmetric=skew check-symmetry=on", "symmetric=skew values=fixed"};
  for (int i = 0; i < 4; i++) {
    struct cb_diag diag = {0};
    struct cb_csr csr = symmetrised(matrix_of("stencil9,n=9"), i < 2 ? CB_SYMMETRIC_ON : CB_SYMMETRIC_SKEW);
    assert_ok(plan_status(&csr, settings[i], "sm_90", &diag));
    cb_csr_release(&csr);
  }
}

/* ---- dia */

static void dia_stores_half(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *mirrored;
    int percent; /* of the bytes without */
  } cases[] = {
      {"stencil7,n=30", "3", 58}, {"stencil27,n=16", "13", 53}, {"tridiagonal,n=5000", "1", 67},
      {"stencil5,n=60", "2", 61}, {"stencil9,n=60", "4", 57},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (int skew = 0; skew < 2; skew++) {
      const enum cb_symmetry_option symmetry = skew ? CB_SYMMETRIC_SKEW : CB_SYMMETRIC_ON;
      struct product half =
          symmetric_product(cases[c].matrix, skew ? "recipe=dia " SKEW : "recipe=dia " HALF, symmetry);
      struct product whole = symmetric_product(cases[c].matrix, "recipe=dia", symmetry);
      struct cb_diag diag = {0};
      assert_string_equal(fact(&half, skew ? "negated" : "mirrored"), cases[c].mirrored);
      assert_string_equal(fact(&half, skew ? "mirrored" : "negated"), "none");
      assert_ok(cb_assignment_check(half.plan, half.assignment, &diag));
      assert_true(100 * cb_plan_bytes(half.plan) <= cases[c].percent * cb_plan_bytes(whole.plan));
      assert_true(10 * cb_plan_bytes(half.plan) <= 6 * cb_csr_bytes(half.csr)); /* of CSR's device memory */
      assert_true(half.plan->cost.bytes < whole.plan->cost.bytes);
      product_release(&half);
      product_release(&whole);
    }
}

/* A place of 4 bytes for each block, and an eighth of the values is on the diagonal's blocks at most. */
static void blocks_store_half(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *settings;
    int percent; /* of the bytes without */
  } cases[] = {
      {"fe3,n=10", "recipe=blocks block-lanes=1", 62},
      {"fe3,n=10", "recipe=blocks block-lanes=1 type=f32", 66},
      {"stencil27,n=12", "recipe=blocks block-fill=20 block-size=2x2 block-lanes=1", 72},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char settings[128];
    struct cb_diag diag = {0};
    snprintf(settings, sizeof settings, "%s " HALF, cases[c].settings);
    struct product half = symmetric_product(cases[c].matrix, settings, CB_SYMMETRIC_ON);
    struct product whole = symmetric_product(cases[c].matrix, cases[c].settings, CB_SYMMETRIC_ON);
    assert_ok(cb_assignment_check(half.plan, half.assignment, &diag));
    assert_true(half.plan->regions[0].mirrored * 2 < half.csr->nnz);
    assert_true(half.plan->regions[0].mirrored * 5 > half.csr->nnz * 2);
    if (100 * cb_plan_bytes(half.plan) > cases[c].percent * cb_plan_bytes(whole.plan))
      fail_msg("%s %s: %lld bytes, and %lld of the whole", cases[c].matrix, settings,
               (long long)cb_plan_bytes(half.plan), (long long)cb_plan_bytes(whole.plan));
    product_release(&half);
    product_release(&whole);
  }
}

/* Values that stay in L2 gain nothing: half is stored of larger matrices, unless it is asked for. */
static void half_is_stored_where_that_pays(void **state) {
  (void)state;
  static const struct {
    const char *arch, *settings;
    int is_half;
  } cases[] = {
      {"sm_90", "recipe=dia symmetric=on", 0},
      {"sm_75", "recipe=dia symmetric=on", 1},
      {"sm_75", "recipe=dia values=fixed", 1},
      {"sm_90", "recipe=dia values=fixed", 0},
      {"sm_90", "recipe=dia symmetric=on symmetric-storage=on", 1},
      {"sm_75", "recipe=dia symmetric=on symmetric-storage=off", 0},
      {"sm_75", "recipe=dia values=fixed symmetric=off", 0},
      {"sm_75", "recipe=blocks block-fill=1 block-size=2x2 symmetric=on", 1},
      {"sm_75", "recipe=blocks block-fill=1 block-size=2x2 symmetric=on symmetric-storage=on", 1},
  };
  struct cb_csr csr = symmetrised(matrix_of("stencil7,n=50"), CB_SYMMETRIC_ON);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct cb_options options;
    struct cb_target target;
    struct cb_plan *plan;
    struct cb_assignment *assignment;
    struct cb_diag diag = {0};
    cb_options_default(&options);
    set_options(&options, cases[c].settings);
    assert_ok(cb_target_find(&target, cases[c].arch, &diag));
    assert_ok(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag));
    if ((plan->regions[0].mirrored > 0) != cases[c].is_half) fail_msg("%s %s", cases[c].arch, cases[c].settings);
    cb_assignment_free(assignment);
    cb_plan_free(plan);
  }
  cb_csr_release(&csr);
}

/* The slot of (row, column) on or below the main diagonal is read for (column, row), too. */
static void mirrored_entries_have_the_slots_of_their_images(void **state) {
  (void)state;
  struct product product =
      symmetric_product("diagonals,n=300,count=9,spread=70,fill=0.8", "recipe=dia dia-fill=0 " HALF, CB_SYMMETRIC_ON);
  struct cb_slot_map own, mirrored;
  struct cb_diag diag = {0};
  int64_t pairs = 0;
  assert_ok(cb_slot_map_build(&own, product.plan, product.assignment, 0, NULL, &diag));
  assert_ok(cb_mirror_map_build(&mirrored, product.plan, product.assignment, 0, &diag));
  assert_int_equal(own.count, mirrored.count);
  for (int64_t slot = 0; slot < own.count; slot++) {
    const uint64_t k = cb_slot_get(&own, slot), other = cb_slot_get(&mirrored, slot);
    if (other == CB_NO_NONZERO) continue;
    assert_true(k != CB_NO_NONZERO);
    int64_t row = 0;
    while (cb_csr_row(product.csr, row + 1) <= (int64_t)k) row++;
    assert_true(product.csr->col_idx[k] < row);
    assert_int_equal(cb_symmetry_partner(product.csr, row, product.csr->col_idx[k]), other);
    pairs++;
  }
  assert_int_equal(pairs, product.plan->regions[0].mirrored);
  assert_true(pairs > 500);
  cb_slot_map_release(&own);
  cb_slot_map_release(&mirrored);
  product_release(&product);
}

/* Where only one of two diagonals is chosen, or a part of a matrix lacks images, nothing is mirrored. */
static void what_has_no_image_is_stored(void **state) {
  (void)state;
  struct product product = symmetric_product("stencil5,n=20", "recipe=dia dia-most=4 " HALF, CB_SYMMETRIC_ON);
  assert_string_equal(fact(&product, "mirrored"), "none");
  assert_int_equal(product.plan->regions[0].mirrored, 0);
  product_release(&product);
}

/* More rows of a thread block bring more of the second reads from L1, where there are rows enough. */
static void thread_blocks_are_wide_where_there_are_many(void **state) {
  (void)state;
  static const struct words cases[] = {
      {"stencil7,n=20", "recipe=dia " HALF, {"kStored = 4", "value_cached"}, {"kThreads = 512", "negative(stored_value)"}},
      {"stencil7,n=20", "recipe=dia " SKEW " dia-threads=1024", {"kThreads = 1024", "negative(stored_value)"}, {0}},
      {"stencil7,n=52", "recipe=dia dia-stride=1 " HALF, {"kThreads = 512"}, {"kStride"}},
      {"stencil7,n=52",
       "recipe=dia dia-threads=1024",
       {"256 * thread_block"},
       {"kStored", "slot_on", "kThreads = 1024"}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    struct product product = symmetric_product(cases[c].matrix, cases[c].settings, CB_SYMMETRIC_OFF);
    check_words(&product, &cases[c]);
    product_release(&product);
  }
}

/* Where there are rows enough, a thread has some a stride apart, which is a multiple of 32 near most of the diagonals
 * that a thread block does not span, so many that the GPU holds all thread blocks at once. */
static void rows_are_a_stride_apart(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *settings, *stride;
    int rows, tiles, threads;
  } cases[] = {
      {"stencil27,n=56", "", "3136", 2, 4, 896},
      {"stencil27,n=56", "dia-threads=256", "3136", 2, 13, 256},
      {"stencil27,n=20", "", "none", 0, 0, 256}, /* few rows */
      {"stencil27,n=20", "dia-stride=400", "none", 0, 0, 0}, /* of which each thread has one */
      {"stencil27,n=20", "dia-stride=400 dia-rows=3 dia-threads=256", "416", 3, 2, 256},
      {"stencil27,n=56", "dia-stride=1", "none", 0, 0, 1024},
      {"stencil27,n=56,extra=0.1", "", "none", 0, 0, 256}, /* the rest could join */
      {"stencil7,n=56", "", "3136", 2, 5, 768},
      {"stencil7,n=56", "dia-stride=3136", "3136", 2, 5, 768},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char settings[128];
    snprintf(settings, sizeof settings, "recipe=dia %s " HALF, cases[c].settings);
    struct product product = symmetric_product(cases[c].matrix, settings, CB_SYMMETRIC_ON);
    if (strcmp(fact(&product, "stride"), cases[c].stride) ||
        (cases[c].rows && constant(&product, "kRepeats", 0) != cases[c].rows) ||
        (cases[c].tiles && constant(&product, "kTiles", 0) != cases[c].tiles) ||
        (cases[c].threads && constant(&product, "kThreads", 256) != cases[c].threads))
      fail_msg("%s %s: stride %s, %lld rows, %lld tiles, %lld threads", cases[c].matrix, settings,
               fact(&product, "stride"), (long long)constant(&product, "kRepeats", 0),
               (long long)constant(&product, "kTiles", 0), (long long)constant(&product, "kThreads", 256));
    product_release(&product);
  }
}

/* Images that lie anywhere are read a sector for each value: more than the whole matrix. */
static void blocks_are_halved_where_images_lie_together(void **state) {
  (void)state;
  static const struct {
    const char *matrix;
    int is_half;
  } cases[] = {{"fe3,n=24", 1}, {"block,blocks_r=3000,r=3,c=3,per_row=12", 0}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (int forced = 0; forced < 2; forced++) {
      struct cb_options options;
      struct cb_target target;
      struct cb_plan *plan;
      struct cb_assignment *assignment;
      struct cb_diag diag = {0};
      struct cb_csr csr = symmetrised(matrix_of(cases[c].matrix), CB_SYMMETRIC_ON);
      cb_options_default(&options);
      set_options(&options, forced ? "recipe=blocks block-lanes=1 block-fill=30 symmetric-storage=on symmetric=on"
                                   : "recipe=blocks block-lanes=1 block-fill=30 symmetric=on");
      assert_ok(cb_target_find(&target, "sm_75", &diag)); /* L2 holds less */
      target.l2_bytes /= 8;
      assert_ok(cb_plan_build(&plan, &assignment, &csr, &target, &options, &diag));
      if ((plan->regions[0].mirrored > 0) != (cases[c].is_half || forced))
        fail_msg("%s: %lld nonzeros are mirrored", cases[c].matrix, (long long)plan->regions[0].mirrored);
      cb_assignment_free(assignment);
      cb_plan_free(plan);
      cb_csr_release(&csr);
    }
}

/* ---- products */

/* y of one product on the host, of the matrix's own values and whole numbers. */
static double *product_on_host(const struct product *product) {
  struct cb_host_options options;
  struct cb_diag diag = {0};
  const int64_t rows = product->csr->rows;
  double *x = malloc((size_t)rows * sizeof *x), *y = calloc((size_t)rows, sizeof *y);
  for (int64_t i = 0; i < rows; i++) x[i] = (double)(i * 7 % 31 - 15);
  const struct cb_verify_case one = {product->csr,     product->plan,  product->assignment,
                                     &product->source, &product->blob, "test"};
  const struct cb_trace_product traced = {.x = x, .y = y, .alpha = 1, .blob = &product->blob, .seed = 1};
  struct cb_trace *trace;
  cb_host_options_default(&options);
  assert_ok(cb_trace_run(&trace, NULL, &one, &traced, &diag));
  memcpy(y, cb_trace_y(trace), (size_t)rows * sizeof *y);
  cb_trace_free(trace);
  free(x);
  return y;
}

/* Where half is stored, rows take their terms in another order: sums are the same where they are exact. */
static void sums_are_those_of_the_whole_matrix(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *settings;
  } cases[] = {
      {"stencil7,n=7,values=integers", "recipe=dia"},
      {"stencil27,n=5,values=integers", "recipe=dia"},
      {"stencil27,n=9,values=integers", "recipe=dia dia-stride=81 dia-rows=4 dia-threads=256"},
      {"diagonals,n=300,count=9,spread=70,fill=0.8,values=integers", "recipe=dia dia-fill=0"},
      {"fe3,n=4,values=integers", "recipe=blocks"},
      {"fe3,n=4,values=integers", "recipe=blocks block-lanes=4 block-fill=20 block-size=4x4"},
      {"dense,rows=41,cols=41,values=integers", "recipe=blocks"},
      {"fe3,n=9,values=integers", "recipe=blocks block-lanes=1"},
      {"fe3,n=9,values=integers", "recipe=blocks block-lanes=1 block-once=off"},
      {"block,blocks_r=400,r=2,c=2,per_row=5,values=integers", "recipe=blocks block-lanes=1"},
  };
  for (size_t m = 0; m < sizeof cases / sizeof *cases; m++) {
    char settings[128];
    snprintf(settings, sizeof settings, "%s " HALF, cases[m].settings);
    struct product whole = symmetric_product(cases[m].matrix, cases[m].settings, CB_SYMMETRIC_ON);
    struct product half = symmetric_product(cases[m].matrix, settings, CB_SYMMETRIC_ON);
    double *expected = product_on_host(&whole), *got = product_on_host(&half);
    assert_true(half.plan->regions[0].mirrored > 0);
    assert_memory_equal(got, expected, (size_t)whole.csr->rows * sizeof *got);
    free(expected);
    free(got);
    product_release(&whole);
    product_release(&half);
  }
}

/* A node within a grid of six in each direction: the farthest below comes first, then the farthest above, and the
 * main diagonal last. At the grid's corner there is nothing below. */
static void mirrored_blocks_take_turns(void **state) {
  (void)state;
  static const int apart[] = {43, 42, 41, 37, 36, 35, 31, 30, 29, 7, 6, 5, 1}, corner[] = {43, 42, 37, 36, 7, 6, 1, 0};
  enum { N = 6, NODE = 2 * (N * N + N + 1), SLICE = NODE / 32, PAIRS = sizeof apart / sizeof *apart };
  struct product product = symmetric_product("fe3,n=6", "recipe=blocks block-lanes=1 block-once=off " HALF, CB_SYMMETRIC_ON);
  const int64_t first = 32 * element(&product, "first_step", SLICE) + NODE % 32;
  const int64_t base = element(&product, "first_column", SLICE);
  for (int turn = 0; turn <= 2 * PAIRS; turn++) {
    const int64_t expected = turn == 2 * PAIRS ? NODE : turn % 2 ? NODE + apart[turn / 2] : NODE - apart[turn / 2];
    assert_int_equal(base + element(&product, "column_offset", first + 32 * turn), expected);
    assert_int_equal(element(&product, "value_place", first + 32 * turn) % 2, expected > NODE);
  }
  for (int turn = 0; turn < 8; turn++)
    assert_int_equal(element(&product, "column_offset", 32 * turn), corner[turn]);
  product_release(&product);
}

/* Where blocks are read once, no two block rows of a thread block add to one place in a step, and each block below the
 * main diagonal has one. */
static void places_of_a_step_differ(void **state) {
  (void)state;
  static const char *const matrices[] = {"fe3,n=9", "fe3,n=9,dof=2", "block,blocks_r=400,r=2,c=2,per_row=5"};
  enum { TILE = 256, MOST = 4096 };
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) {
    struct product product = symmetric_product(matrices[m], "recipe=blocks block-lanes=1 " HALF, CB_SYMMETRIC_ON);
    const int64_t tiles = product.plan->regions[0].blocks;
    const int64_t rows = product.csr->rows / constant(&product, "kBlockRows", 0);
    int64_t below = 0;
    for (int64_t tile = 0; tile < tiles; tile++) {
      const int64_t slice = tile * TILE / 32, first = element(&product, "first_step", slice);
      for (int64_t step = 0; step < element(&product, "first_step", slice + 1) - first; step++) {
        unsigned char taken[MOST] = {0};
        for (int64_t i = 0; i < TILE && tile * TILE + i < rows; i++) {
          const int64_t of_slice = element(&product, "first_step", slice + i / 32);
          const int64_t place = element(&product, "target", 32 * (of_slice + step) + i % 32) - 1;
          if (place < 0 || place == i) continue;
          assert_true(place < MOST && !taken[place]);
          taken[place] = 1;
          below++;
        }
      }
    }
    char expected[24];
    snprintf(expected, sizeof expected, "%lld", (long long)below);
    assert_string_equal(fact(&product, "mirrored"), expected);
    product_release(&product);
  }
}

/* Several vectors, holes in blocks and rows in another order are read twice. */
static void some_blocks_are_read_twice(void **state) {
  (void)state;
  static const struct {
    const char *matrix, *settings;
    int is_once;
  } cases[] = {
      {"fe3,n=9", "block-lanes=1", 1},
      {"fe3,n=9", "block-lanes=2", 0},
      {"fe3,n=9", "block-lanes=1 vectors=2", 0},
      {"fe3,n=9", "block-lanes=1 block-size=2x2 block-fill=20", 0},
      {"fe3,n=9", "block-lanes=1 type=c128", 0},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char settings[128];
    snprintf(settings, sizeof settings, "recipe=blocks %s " HALF, cases[c].settings);
    struct product product = symmetric_product(cases[c].matrix, settings, CB_SYMMETRIC_ON);
    assert_true(product.plan->regions[0].mirrored > 0);
    if ((product.plan->regions[0].carry_slots > 0) != cases[c].is_once) fail_msg("%s", settings);
    product_release(&product);
  }
}

/* Of new values only those on and below the main diagonal count, also in what is not mirrored. */
static void new_values_of_the_lower_triangle_count(void **state) {
  (void)state;
  static const char *const settings[] = {"recipe=dia " HALF, "recipe=dia dia-most=4 " HALF, "recipe=sell " HALF};
  for (int i = 0; i < 3; i++) {
    struct cb_diag diag = {0};
    struct product product = symmetric_product("stencil5,n=20", settings[i], CB_SYMMETRIC_OFF);
    double *values = malloc((size_t)product.csr->nnz * sizeof *values);
    for (int64_t row = 0; row < product.csr->rows; row++)
      for (int64_t k = cb_csr_row(product.csr, row); k < cb_csr_row(product.csr, row + 1); k++)
        values[k] = product.csr->col_idx[k] > row ? NAN : (double)k;
    assert_ok(cb_pack_values(&product.blob, product.plan, product.assignment, values, &diag));
    for (int region = 0; region < product.plan->regions_count; region++) {
      const double *slots = (const double *)(product.blob.bytes + cb_blob_offset(product.plan, region, 0));
      product.region = region;
      if (strcmp(product.plan->regions[region].arrays[0].name, "values")) slots = NULL;
      for (int64_t slot = 0; slots && slot < product.plan->regions[region].value_slots; slot++)
        assert_false(isnan(slots[slot]));
    }
    free(values);
    product_release(&product);
  }
}

static const enum cb_symmetry_option kinds[] = {CB_SYMMETRIC_ON, CB_SYMMETRIC_SKEW};
static const char *const kind_names[] = {"on", "skew"};

enum { REAL_TYPES = CB_PRECISION_C128 }; /* those before it; complex ones have cases of their own */

/* Values of a promise are anything above the main diagonal while they may change. */
static void add(struct kernel_batch *batch, int shape, const char *settings, int number) {
  static const char *const values[] = {"uniform", "signed", "integers", "tenths", "single"};
  static const char *const promises[] = {"data", "fixed"};
  static const char *const forms[] = {"ax", "add", "axpby"};
  struct kernel *kernel = next_kernel(batch);
  struct cb_options options;
  struct cb_diag diag = {0};
  char matrix[160], text[SETTINGS + 128];
  const int kind = number % 2, fixed = number / 2 % 2;
  snprintf(matrix, sizeof matrix, "%s,values=%s,seed=%d", shapes[shape], values[(shape + number) % 5], shape);
  snprintf(text, sizeof text, "%s symmetric-storage=on symmetric=%s values=%s type=%s form=%s", settings,
           kind_names[kind], promises[fixed], cb_precision_names[(shape + number / 4) % REAL_TYPES],
           forms[(shape + number) % 3]);
  snprintf(kernel->name, sizeof kernel->name, "%.100s %.150s", matrix, text);
  cb_options_default(&options);
  set_options(&options, text);
  if (cb_matrix_generate(&kernel->csr, matrix, &diag)) fail_msg("%s: %s", matrix, diag.message);
  kernel->csr = symmetrised(kernel->csr, kinds[kind]);
  add_kernel(batch, &options);
}

/* Every shape with every second way to store half, the next shape with the others; every seventh with every recipe. */
static void products_of_all_shapes(void **state) {
  (void)state;
  static const char *const halving[] = {
      "recipe=dia dia-fill=0",
      "recipe=dia dia-fill=0 dia-most=1000 dia-threads=512",
      "recipe=dia dia-fill=30 dia-most=7 dia-stride=64 dia-rows=3",
      "recipe=blocks block-fill=1 block-size=3x3",
      "recipe=blocks block-fill=1 block-size=2x2 block-lanes=4",
      "recipe=tiles block-fill=20 block-size=4x4",
  };
  enum { HALVING = sizeof halving / sizeof *halving };
  struct cb_verify_options options;
  struct kernel_batch batch;
  fast_options(&options);
  options.host.batch = 128;
  open_batch(&batch, &options);
  for (int shape = 0, number = 0; shape < (int)(sizeof shapes / sizeof *shapes); shape++) {
    for (int i = 0; i < HALVING; i++)
      if ((shape + i) % 2) add(&batch, shape, halving[i], number++ / 2 + i);
    for (int r = 0; cb_recipe_at(r) && shape % 7 == 3; r++)
      add(&batch, shape, settings_of_recipe(cb_recipe_at(r)), number++);
  }
  close_batch(&batch);
  assert_int_equal(batch.failures, 0);
  assert_true(batch.done > 250);
}

/* Several thread blocks, each of which has something for others, by all types and forms. */
static void products_that_read_blocks_once(void **state) {
  (void)state;
  static const char *const matrices[] = {"fe3,n=9", "fe3,n=8,dof=2", "block,blocks_r=400,r=2,c=2,per_row=5"};
  static const char *const forms[] = {"ax", "add", "axpby"};
  struct cb_verify_options options;
  struct kernel_batch batch;
  fast_options(&options);
  open_batch(&batch, &options);
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++)
    for (int i = 0; i < REAL_TYPES; i++) {
      struct kernel *kernel = next_kernel(&batch);
      struct cb_options chosen;
      snprintf(kernel->name, sizeof kernel->name,
               "recipe=blocks block-lanes=1 symmetric-storage=on symmetric=%s type=%s form=%s", kind_names[i % 2],
               cb_precision_names[i], forms[i % 3]);
      set_options(&chosen, kernel->name);
      kernel->csr = symmetrised(matrix_of(matrices[m]), kinds[i % 2]);
      add_kernel(&batch, &chosen);
    }
  close_batch(&batch);
  assert_int_equal(batch.failures, 0);
}

/* A complex matrix of which the promise holds, as far as anybody looks at it. */
static struct cb_csr complex_matrix(const char *shape, enum cb_symmetry_option symmetry) {
  struct cb_csr csr = symmetrised(matrix_of(shape), CB_SYMMETRIC_OFF);
  struct cb_diag diag = {0};
  uint64_t seed = 5;
  assert_ok(cb_csr_make_complex(&csr, &diag));
  for (int64_t k = 0; k < csr.nnz; k++) csr.values[2 * k + 1] = (double)(draw(&seed) >> 12) * 0x1p-51 - 1;
  cb_symmetry_mirror_values(csr.values, &csr, symmetry);
  return csr;
}

static const enum cb_symmetry_option complex_kinds[] = {CB_SYMMETRIC_ON, CB_SYMMETRIC_SKEW, CB_SYMMETRIC_HERMITIAN};

static void complex_products(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"stencil7,n=7", "recipe=dia"},
      {"diagonals,n=300,count=9,spread=70,fill=0.8", "recipe=dia dia-fill=0"},
      {"fe3,n=4", "recipe=blocks"},
      {"block,blocks_r=30,r=2,c=2,per_row=3", "recipe=blocks block-fill=20 block-size=2x2"},
      {"random,rows=60,cols=60,density=0.1", "recipe=sell"}, /* stores both triangles */
  };
  static const char *const words[] = {"on", "skew", "hermitian"};
  struct cb_verify_options options;
  struct kernel_batch batch;
  fast_options(&options);
  open_batch(&batch, &options);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (int i = 0; i < 12; i++) {
      struct kernel *kernel = next_kernel(&batch);
      struct cb_options chosen;
      snprintf(kernel->name, sizeof kernel->name, "%s symmetric-storage=on symmetric=%s type=%s conjugate=%s", cases[c][1],
               words[i % 3], i / 3 % 2 ? "c64" : "c128", i / 6 ? "on" : "off");
      set_options(&chosen, kernel->name);
      kernel->csr = complex_matrix(cases[c][0], complex_kinds[i % 3]);
      add_kernel(&batch, &chosen);
    }
  close_batch(&batch);
  assert_int_equal(batch.failures, 0);
}

/* What is seen of fixed complex values, and where in a Hermitian matrix one is another than was promised. */
static void complex_values_show_what_they_are(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    struct cb_csr csr = complex_matrix("stencil5,n=12", complex_kinds[i]);
    struct product product = product_of_matrix(csr, "recipe=dia type=c128 " STORED "values=fixed");
    assert_int_equal(product.plan->symmetry, complex_kinds[i]);
    assert_string_equal(fact(&product, cb_symmetry_section(complex_kinds[i])), "2");
    product_release(&product);
  }
  struct cb_diag diag = {0};
  struct cb_csr csr = complex_matrix("tridiagonal,n=20", CB_SYMMETRIC_HERMITIAN);
  assert_ok(plan_status(&csr, "recipe=dia type=c128 symmetric=hermitian check-symmetry=on", "sm_90", &diag));
  csr.values[2 * 1 + 1] = 7; /* entry (0, 1) */
  assert_int_equal(plan_status(&csr, "recipe=dia type=c128 symmetric=hermitian check-symmetry=on", "sm_90", &diag),
                   CB_ERR_ARGUMENT);
  if (!strstr(diag.message, "not Hermitian, as option 'symmetric' says: entry (0, 1), counted from 0, is (") ||
      !strstr(diag.message, ", 7), and entry (1, 0) ("))
    fail_msg("'%s'", diag.message);
  cb_csr_release(&csr);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fixed_values_show_what_they_are),
      cmocka_unit_test(skew_values_are_seen),
      cmocka_unit_test(broken_promises_are_refused),
      cmocka_unit_test(kept_promises_are_taken),
      cmocka_unit_test(dia_stores_half),
      cmocka_unit_test(blocks_store_half),
      cmocka_unit_test(half_is_stored_where_that_pays),
      cmocka_unit_test(mirrored_entries_have_the_slots_of_their_images),
      cmocka_unit_test(what_has_no_image_is_stored),
      cmocka_unit_test(thread_blocks_are_wide_where_there_are_many),
      cmocka_unit_test(rows_are_a_stride_apart),
      cmocka_unit_test(blocks_are_halved_where_images_lie_together),
      cmocka_unit_test(sums_are_those_of_the_whole_matrix),
      cmocka_unit_test(mirrored_blocks_take_turns),
      cmocka_unit_test(places_of_a_step_differ),
      cmocka_unit_test(some_blocks_are_read_twice),
      cmocka_unit_test(new_values_of_the_lower_triangle_count),
      cmocka_unit_test(products_of_all_shapes),
      cmocka_unit_test(products_that_read_blocks_once),
      cmocka_unit_test(complex_products),
      cmocka_unit_test(complex_values_show_what_they_are),
  };
  return cmocka_run_group_tests_name("symmetric", tests, NULL, NULL);
}
