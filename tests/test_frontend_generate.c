// SPDX-License-Identifier: Apache-2.0
/* The named shapes: all of them canonical and repeatable, and each one what its name says. */
#include "test_frontend.h"

#include "frontend/shapes.h"

#include <omp.h>

#define LENGTH(array) (int64_t)(sizeof(array) / sizeof *(array))

static void check_same_with_threads(const char *specification) {
  struct cb_csr first, csr;
  struct cb_diag diag = {0};
  omp_set_num_threads(1);
  generate(&first, specification);
  if (cb_csr_check(&first, &diag)) fail_msg("%s: %s", specification, diag.message);
  for (int threads = 2; threads <= 5; threads += 3) {
    omp_set_num_threads(threads);
    generate(&csr, specification);
    if (!same_matrix(&first, &csr)) fail_msg("%s differs with %d threads", specification, threads);
    cb_csr_release(&csr);
  }
  cb_csr_release(&first);
}

static void every_shape_is_canonical_and_repeatable(void **unused) {
  (void)unused;
  static const char *const modes[] = {"uniform", "ones",       "integers", "signed",
                                      "tenths",  "hundredths", "single"};
  int shapes = 0;
  for (const struct cb_shape *shape = cb_shapes; shape->name; shape++, shapes++) {
    char specification[128];
    check_same_with_threads(shape->name);
    for (int i = 0; i < LENGTH(modes); i++) {
      snprintf(specification, sizeof specification, "%s,seed=%d,values=%s", shape->name, 7 + i, modes[i]);
      check_same_with_threads(specification);
    }
  }
  assert_true(shapes >= 27);
}

/* Every key at its least (and at 1, 2, 17 where that is allowed), one at a time. */
static void every_key_at_its_ends(void **unused) {
  (void)unused;
  static const double tried[] = {0, 1, 2, 17};
  for (const struct cb_shape *shape = cb_shapes; shape->name; shape++)
    for (const struct cb_shape_key *key = shape->keys; key->name; key++)
      for (int i = 0; i < LENGTH(tried); i++) {
        char specification[128];
        struct cb_csr csr;
        struct cb_diag diag = {0};
        if (tried[i] < key->least || tried[i] > key->most) continue;
        snprintf(specification, sizeof specification, "%s,%s=%.0f", shape->name, key->name, tried[i]);
        const enum cb_status s = cb_matrix_generate(&csr, specification, &diag);
        if (!strcmp(shape->name, "rmat") && s == CB_ERR_ARGUMENT) continue; /* a + b + c beyond 1 */
        if (s || cb_csr_check(&csr, &diag)) fail_msg("%s: %s", specification, diag.message);
        assert_string_equal(csr.name, shape->name);
        cb_csr_release(&csr);
      }
}

static const struct {
  const char *specification;
  int64_t rows, cols, nnz;
} generated[] = {
    {"empty,rows=0,cols=0", 0, 0, 0},
    {"empty,rows=0,cols=7", 0, 7, 0},
    {"empty,rows=7,cols=0", 7, 0, 0},
    {"empty,rows=5", 5, 5, 0},
    {"diagonal,n=10", 10, 10, 10},
    {"diagonal,n=10,cols=4", 10, 4, 4},
    {"diagonal,n=4,cols=10", 4, 10, 4},
    {"one_row,cols=33", 1, 33, 33},
    {"one_column,rows=33", 33, 1, 33},
    {"dense,rows=7,cols=9", 7, 9, 63},
    {"dense_row,n=20,row=19", 20, 20, 39},
    {"dense_row,n=20,row=20", 20, 20, 20},
    {"dense_column,n=20,col=3", 20, 20, 39},
    {"random,rows=40,cols=30,density=1", 40, 30, 1200},
    {"random,rows=40,cols=30,density=0", 40, 30, 0},
    {"random,rows=40,cols=30,per_row=30", 40, 30, 1200},
    {"random_exact,blocks_r=3,blocks_c=5,block_nnz=31", 48, 80, 465},
    {"random_exact,blocks_r=3,blocks_c=5,block_nnz=256", 48, 80, 3840},
    {"random_exact,blocks_r=3,blocks_c=5,block_nnz=256,cut_rows=1,cut_cols=15", 47, 65, 47 * 65},
    {"uniform,n=100,per_row=16", 100, 100, 1600},
    {"uniform,n=100,cols=8,per_row=16", 100, 8, 800},
    {"band,n=1000,half=40,per_row=12", 1000, 1000, 12000},
    {"band,n=10,half=0,per_row=3", 10, 10, 10},
    {"diagonals,n=100,count=3,spread=1", 100, 100, 298},
    {"stencil5,n=10", 100, 100, 460},
    {"stencil9,n=10", 100, 100, 28 * 28},
    {"stencil7,n=5", 125, 125, 725},
    {"stencil27,n=5", 125, 125, 13 * 13 * 13},
    {"stencil5,n=10,periodic=1", 100, 100, 500},
    {"stencil7,n=5,periodic=1", 125, 125, 875},
    {"stencil27,n=5,periodic=1", 125, 125, 27 * 125},
    {"stencil7,n=2,periodic=1", 8, 8, 32},
    {"stencil9,n=1,periodic=1,extra=1", 1, 1, 1},
    {"fe3,n=4", 192, 192, 9000},
    {"fe3,n=4,dof=1", 64, 64, 1000},
    {"road,n=10,keep=1", 100, 100, 360},
    {"road,n=10,keep=0", 100, 100, 0},
    {"arrow,n=10", 10, 10, 28},
    {"arrow,n=10,width=3", 10, 10, 58},
    {"tridiagonal,n=10", 10, 10, 28},
    {"tridiagonal,n=1", 1, 1, 1},
    {"powerlaw,rows=4,cols=100,max=60", 4, 100, 60 + 30 + 20 + 15},
    {"block,blocks_r=10,blocks_c=6,r=3,c=2,per_row=4", 30, 12, 240},
    {"block,blocks_r=10,blocks_c=6,r=3,c=2,per_row=0,scattered=5", 30, 12, 150},
    {"block,blocks_r=10,blocks_c=6,r=3,c=2,per_row=6,scattered=5", 30, 12, 360},
    {"hypersparse,rows=1000,keep=1,per_row=2", 1000, 1000, 2000},
    {"checker,rows=5,cols=4", 5, 4, 10},
    {"upper,n=10", 10, 10, 55},
    {"staircase,n=10", 10, 10, 45},
    {"long_row,rows=100,cols=90,per_row=2,long_rows=3,long_length=80", 100, 90, 97 * 2 + 240},
    {"rmat,scale=0,edge_factor=4", 1, 1, 1},
    {"multiblock,blocks=1,n=1,dof=3", 3, 3, 9},
    {"multiblock,blocks=5,n=1", 5, 5, 15}, /* a ring */
    {"multiblock,blocks=5,n=1,dof=2", 10, 10, 40},
    {"multiblock,blocks=0", 0, 0, 0},
    {"kkt,n=4,stages=2", 96, 96, 32 + 144 + 64 + 144 + 32},
    {"kkt,n=10,stages=3", 900, 900, 300 + 1580 + 600 + 1580 + 300},
    {"kkt,n=3,stages=0", 0, 0, 0},
};

static void sizes_and_counts(void **unused) {
  (void)unused;
  for (int i = 0; i < LENGTH(generated); i++) {
    struct cb_csr csr;
    generate(&csr, generated[i].specification);
    if (csr.rows != generated[i].rows || csr.cols != generated[i].cols || csr.nnz != generated[i].nnz)
      fail_msg("%s: %d x %d, %d nonzeros", generated[i].specification, (int)csr.rows, (int)csr.cols,
               (int)csr.nnz);
    assert_int_equal(cb_csr_check(&csr, NULL), CB_OK);
    cb_csr_release(&csr);
  }
}

static void every_sub_block_has_its_count(void **unused) {
  (void)unused;
  static const int counts[] = {0, 1, 31, 32, 33, 127, 128, 129, 255, 256};
  for (int i = 0; i < LENGTH(counts); i++) {
    char specification[96];
    int seen[6 * 4] = {0};
    struct cb_csr csr;
    snprintf(specification, sizeof specification, "random_exact,blocks_r=6,blocks_c=4,block_nnz=%d",
             counts[i]);
    generate(&csr, specification);
    for (int64_t row = 0; row < csr.rows; row++)
      for (int64_t at = cb_csr_row(&csr, row); at < cb_csr_row(&csr, row + 1); at++)
        seen[row / 16 * 4 + csr.col_idx[at] / 16]++;
    for (int block = 0; block < 24; block++) assert_int_equal(seen[block], counts[i]);
    cb_csr_release(&csr);
  }
}

static int has_entry(const struct cb_csr *csr, int64_t row, int64_t col) {
  for (int64_t i = cb_csr_row(csr, row); i < cb_csr_row(csr, row + 1); i++)
    if (csr->col_idx[i] == col) return 1;
  return 0;
}

static void assert_symmetric(const struct cb_csr *csr) {
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t i = cb_csr_row(csr, row); i < cb_csr_row(csr, row + 1); i++)
      assert_true(has_entry(csr, csr->col_idx[i], row));
}

static void roads_lead_both_ways(void **unused) {
  (void)unused;
  struct cb_csr csr;
  generate(&csr, "road,n=40");
  assert_symmetric(&csr);
  const double share = (double)csr.nnz / (4 * 40 * 39); /* 3120 edges: 5 standard deviations are 0.044 */
  assert_true(share > 0.55 && share < 0.65);
  cb_csr_release(&csr);
}

static void stencils_with_constant_coefficients(void **unused) {
  (void)unused;
  struct cb_csr csr;
  generate(&csr, "stencil7,n=4,values=ones");
  for (int64_t row = 0; row < csr.rows; row++)
    for (int64_t i = cb_csr_row(&csr, row); i < cb_csr_row(&csr, row + 1); i++)
      assert_true(csr.values[i] == (csr.col_idx[i] == row ? 6 : -1));
  cb_csr_release(&csr);
  generate(&csr, "tridiagonal,n=3,values=ones");
  assert_entries(
      &csr, 3, 3,
      (const struct entry[]){{0, 0, 2}, {0, 1, -1}, {1, 0, -1}, {1, 1, 2}, {1, 2, -1}, {2, 1, -1}, {2, 2, 2}},
      7);
  cb_csr_release(&csr);
}

/* A finite element matrix couples whole nodes, so its 3 x 3 blocks are full; a block matrix has aligned
 * blocks. */
static void blocks_are_full(void **unused) {
  (void)unused;
  static const char *const specifications[] = {"fe3,n=3", "block,blocks_r=20"};
  for (int i = 0; i < 2; i++) {
    struct cb_csr csr;
    generate(&csr, specifications[i]);
    for (int64_t row = 0; row < csr.rows; row++) {
      assert_int_equal(cb_csr_row_length(&csr, row), cb_csr_row_length(&csr, row / 3 * 3));
      for (int64_t at = cb_csr_row(&csr, row); at < cb_csr_row(&csr, row + 1); at++)
        assert_int_equal(csr.col_idx[at], csr.col_idx[at - at % 3] + at % 3);
    }
    cb_csr_release(&csr);
  }
}

enum { BLOCKS = 6, POINTS = 6 * 6 * 6, UNKNOWNS = 2, BLOCK = POINTS * UNKNOWNS };

/* Bit b of glued: the block has entries in block b. The offsets of one unknown to itself, ascending. */
struct block_census {
  unsigned glued;
  int offsets_count;
  int64_t offsets[16];
};

static void count_offset(struct block_census *census, int64_t offset) {
  for (int i = 0; i < census->offsets_count; i++)
    if (census->offsets[i] == offset) return;
  assert_true(census->offsets_count < 16);
  census->offsets[census->offsets_count++] = offset;
}

static void count_block_row(struct block_census *census, const struct cb_csr *csr, int64_t row) {
  int own = 0;
  for (int64_t i = cb_csr_row(csr, row); i < cb_csr_row(csr, row + 1); i++) {
    const int64_t col = csr->col_idx[i], block = col / BLOCK;
    own += col % BLOCK / POINTS == row % BLOCK / POINTS;
    if (block != row / BLOCK) census->glued |= 1u << block;
    else if (col / POINTS == row / POINTS) count_offset(census, col - row);
  }
  assert_int_equal(cb_csr_row_length(csr, row) - own, UNKNOWNS - 1);
}

/* Each block is one grid, whose width is its own, and touches two others. */
static void blocks_of_grids_have_their_own_widths(void **unused) {
  (void)unused;
  struct block_census census[BLOCKS] = {0};
  struct cb_csr csr;
  int different = 0;
  generate(&csr, "multiblock,blocks=6,n=6,dof=2");
  assert_int_equal(csr.rows, BLOCKS * BLOCK);
  assert_symmetric(&csr);
  for (int64_t row = 0; row < csr.rows; row++) count_block_row(&census[row / BLOCK], &csr, row);
  for (int b = 0; b < BLOCKS; b++) {
    assert_int_equal(__builtin_popcount(census[b].glued), 2);
    assert_int_equal(census[b].offsets_count, 7);
    different += memcmp(census[b].offsets, census[0].offsets, sizeof census[b].offsets) != 0;
  }
  assert_true(different >= 3);
  cb_csr_release(&csr);
}

/* No multiplier meets another one, and no state meets a control. */
static void saddle_points_have_an_empty_block(void **unused) {
  (void)unused;
  struct cb_csr csr;
  generate(&csr, "kkt,n=5,stages=4");
  const int64_t field = 5 * 5 * 4;
  assert_symmetric(&csr);
  for (int64_t row = 0; row < csr.rows; row++)
    for (int64_t i = cb_csr_row(&csr, row); i < cb_csr_row(&csr, row + 1); i++) {
      const int64_t col = csr.col_idx[i], fields = row / field * 3 + col / field;
      assert_true(fields == 0 * 3 + 2 || fields == 1 * 3 + 2 || fields == 2 * 3 + 0 || fields == 2 * 3 + 1 ||
                  (row == col && row < 2 * field));
    }
  cb_csr_release(&csr);
}

static void bands_stay_within_their_half(void **unused) {
  (void)unused;
  struct cb_csr csr;
  generate(&csr, "band,n=500,half=30,per_row=20");
  for (int64_t row = 0; row < csr.rows; row++)
    for (int64_t i = cb_csr_row(&csr, row); i < cb_csr_row(&csr, row + 1); i++)
      assert_in_range(csr.col_idx[i] - row + 30, 0, 60);
  cb_csr_release(&csr);
}

static void values_lie_where_they_should(void **unused) {
  (void)unused;
  struct cb_csr csr;
  generate(&csr, "dense,rows=100");
  for (int64_t i = 0; i < csr.nnz; i++) assert_true(csr.values[i] >= 0.5 && csr.values[i] < 1.5);
  cb_csr_release(&csr);
  generate(&csr, "dense,rows=100,values=signed");
  int negative = 0;
  for (int64_t i = 0; i < csr.nnz; i++) {
    const double size = csr.values[i] < 0 ? -csr.values[i] : csr.values[i];
    assert_true(size >= 0.5 && size < 1.5);
    negative += csr.values[i] < 0;
  }
  assert_in_range(negative, 4500, 5500);
  cb_csr_release(&csr);
  generate(&csr, "dense,rows=100,values=integers");
  for (int64_t i = 0; i < csr.nnz; i++)
    assert_true(csr.values[i] != 0 && csr.values[i] == (int)csr.values[i] &&
                csr.values[i] * csr.values[i] <= 64);
  cb_csr_release(&csr);
  static const struct {
    const char *specification;
    double unit, most;
  } parts[] = {{"dense,rows=100,values=tenths", 10, 16}, {"dense,rows=100,values=hundredths", 100, 250}};
  for (int p = 0; p < LENGTH(parts); p++) {
    int met[251] = {0}, different = 0;
    generate(&csr, parts[p].specification);
    for (int64_t i = 0; i < csr.nnz; i++) {
      const int number = (int)(csr.values[i] * parts[p].unit + 0.5);
      assert_true(number >= 1 && number <= parts[p].most && csr.values[i] == number / parts[p].unit);
      different += !met[number]++;
    }
    assert_true(different == parts[p].most);
    cb_csr_release(&csr);
  }
  generate(&csr, "dense,rows=100,values=single");
  for (int64_t i = 0; i < csr.nnz; i++)
    assert_true((double)(float)csr.values[i] == csr.values[i] && csr.values[i] >= 0.5 &&
                csr.values[i] <= 1.5);
  cb_csr_release(&csr);
  int zeros = 0;
  generate(&csr, "explicit_zeros,rows=100,density=1,zeros=0.3");
  for (int64_t i = 0; i < csr.nnz; i++) zeros += csr.values[i] == 0;
  assert_int_equal(csr.nnz, 10000);
  assert_in_range(zeros, 2700, 3300);
  cb_csr_release(&csr);
}

static void seeds_make_different_matrices(void **unused) {
  (void)unused;
  struct cb_csr a, b;
  generate(&a, "uniform,n=200,seed=1");
  generate(&b, "uniform,n=200,seed=2");
  assert_false(same_matrix(&a, &b));
  cb_csr_release(&a);
  cb_csr_release(&b);
}

/* The same specification gives the same matrix everywhere: these hashes were computed once. */
static void matrices_do_not_change_between_versions(void **unused) {
  (void)unused;
  static const struct {
    const char *specification, *pattern, *values;
  } cases[] = {
#include "data/frontend/generated.inc"
  };
  for (int i = 0; i < LENGTH(cases); i++) {
    struct cb_csr csr;
    char pattern[CB_HASH_HEX], values[CB_HASH_HEX];
    generate(&csr, cases[i].specification);
    cb_hash_hex(cb_csr_pattern_hash(&csr), pattern);
    cb_hash_hex(cb_csr_values_hash(&csr), values);
    if (strcmp(pattern, cases[i].pattern) || strcmp(values, cases[i].values))
      fail_msg("{\"%s\", \"%s\", \"%s\"},", cases[i].specification, pattern, values);
    cb_csr_release(&csr);
  }
}

static void rmat_is_skewed_and_free_of_duplicates(void **unused) {
  (void)unused;
  struct cb_csr csr;
  int64_t longest = 0;
  generate(&csr, "rmat,scale=12");
  assert_true(csr.nnz > 40000 && csr.nnz < 65536);
  for (int64_t row = 0; row < csr.rows; row++)
    if (cb_csr_row_length(&csr, row) > longest) longest = cb_csr_row_length(&csr, row);
  assert_true(longest > 300); /* the mean is below 16 */
  cb_csr_release(&csr);
}

static void the_help_names_every_shape(void **unused) {
  (void)unused;
  struct cb_text text = {0};
  cb_matrix_shapes(&text);
  for (const struct cb_shape *shape = cb_shapes; shape->name; shape++) {
    char line[64];
    snprintf(line, sizeof line, "%s ", shape->name);
    const char *at = strstr(cb_text_string(&text), line);
    assert_non_null(at);
    assert_non_null(strstr(at, shape->help));
  }
  assert_non_null(strstr(cb_text_string(&text), "rows=1000,cols=rows,density=0.01,per_row"));
  cb_text_release(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_shape_is_canonical_and_repeatable),
      cmocka_unit_test(every_key_at_its_ends),
      cmocka_unit_test(sizes_and_counts),
      cmocka_unit_test(every_sub_block_has_its_count),
      cmocka_unit_test(roads_lead_both_ways),
      cmocka_unit_test(stencils_with_constant_coefficients),
      cmocka_unit_test(blocks_are_full),
      cmocka_unit_test(blocks_of_grids_have_their_own_widths),
      cmocka_unit_test(saddle_points_have_an_empty_block),
      cmocka_unit_test(bands_stay_within_their_half),
      cmocka_unit_test(values_lie_where_they_should),
      cmocka_unit_test(seeds_make_different_matrices),
      cmocka_unit_test(matrices_do_not_change_between_versions),
      cmocka_unit_test(rmat_is_skewed_and_free_of_duplicates),
      cmocka_unit_test(the_help_names_every_shape),
  };
  return cmocka_run_group_tests_name("matrices by name", tests, NULL, NULL);
}
