// SPDX-License-Identifier: Apache-2.0
/* Which column patterns of rows are found (analysis/layouts/patterns/census.h), against a census that compares every
 * block row with every other one in a dense picture; and what is refused. */
#include "analysis/layouts/patterns/census.h"
#include "base/integers.h"
#include "tests/support.h"

#include <omp.h>

enum { MOST_ROWS = 400, MOST_COLS = 400 };

/* ---- a census by brute force */

struct census {
  const struct cb_csr *csr;
  int size;
  int64_t block_rows;
  unsigned char present[MOST_ROWS][MOST_COLS];
  int count, pattern_of[MOST_ROWS]; /* -1: none */
  int64_t first[MOST_ROWS], uses[MOST_ROWS], nonzeros[MOST_ROWS];
  int taken[MOST_ROWS];             /* by pattern: its number among those to be found, or -1 */
};

static void draw_picture(struct census *census, const struct cb_csr *csr) {
  memset(census->present, 0, sizeof census->present);
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      census->present[row][csr->col_idx[k]] = 1;
}

static int is_block_full(const struct census *census, int64_t block_row, int64_t block, int wanted) {
  for (int i = 0; i < census->size; i++)
    for (int j = 0; j < census->size; j++) {
      const int64_t row = block_row * census->size + i, column = block * census->size + j;
      const int there = row < census->csr->rows && column < census->csr->cols && census->present[row][column];
      if (there != wanted) return 0;
    }
  return 1;
}

static int64_t blocks_across(const struct census *census) { return cb_divide_up(census->csr->cols, census->size); }

/* Full blocks of the block row; 0: none, or one that is neither full nor empty. */
static int64_t count_blocks(const struct census *census, int64_t block_row) {
  int64_t full = 0;
  if ((block_row + 1) * census->size > census->csr->rows) return 0;
  for (int64_t block = 0; block < blocks_across(census); block++) {
    if (is_block_full(census, block_row, block, 1)) full++;
    else if (!is_block_full(census, block_row, block, 0)) return 0;
  }
  return full;
}

static int block_at(const struct census *census, int64_t block_row, int64_t offset) {
  const int64_t block = block_row + offset;
  return block >= 0 && block < blocks_across(census) && is_block_full(census, block_row, block, 1);
}

static int are_alike(const struct census *census, int64_t block_row, int64_t other) {
  const int64_t most = blocks_across(census) + census->block_rows;
  for (int64_t offset = -most; offset <= most; offset++)
    if (block_at(census, block_row, offset) != block_at(census, other, offset)) return 0;
  return 1;
}

static void number_block_rows(struct census *census) {
  census->count = 0;
  for (int64_t block_row = 0; block_row < census->block_rows; block_row++) {
    const int64_t blocks = count_blocks(census, block_row);
    int pattern = blocks ? 0 : -1;
    while (blocks && pattern < census->count && !are_alike(census, block_row, census->first[pattern])) pattern++;
    if (blocks && pattern == census->count) {
      census->first[census->count] = block_row;
      census->uses[census->count] = census->nonzeros[census->count] = 0;
      census->count++;
    }
    census->pattern_of[block_row] = pattern;
    if (pattern < 0) continue;
    census->uses[pattern]++;
    census->nonzeros[pattern] += blocks * census->size * census->size;
  }
}

static int next_pattern(const struct census *census, int64_t uses, const unsigned char *seen) {
  int best = -1;
  for (int i = 0; i < census->count; i++)
    if (!seen[i] && census->uses[i] >= uses && (best < 0 || census->nonzeros[i] > census->nonzeros[best])) best = i;
  return best;
}

/* Takes patterns as the header says; returns the number of different offsets. */
static int take_patterns(struct census *census, int64_t uses) {
  unsigned char seen[MOST_ROWS] = {0}, offsets[2 * (MOST_ROWS + MOST_COLS)] = {0};
  const int64_t most = MOST_ROWS + MOST_COLS;
  int taken = 0, all = 0, pattern;
  for (int i = 0; i < census->count; i++) census->taken[i] = -1;
  while (taken < CB_PATTERNS_MOST && (pattern = next_pattern(census, uses, seen)) >= 0) {
    int more = 0;
    for (int64_t o = -most; o < most; o++) more += block_at(census, census->first[pattern], o) && !offsets[o + most];
    seen[pattern] = 1;
    if (all + more > CB_PATTERN_OFFSETS) continue;
    for (int64_t o = -most; o < most; o++)
      if (block_at(census, census->first[pattern], o)) offsets[o + most] = 1;
    census->taken[pattern] = taken++;
    all += more;
  }
  return all;
}

static struct census *census_of(const struct cb_csr *csr, int size) {
  struct census *census = malloc(sizeof *census);
  assert_non_null(census);
  assert_true(csr->rows <= MOST_ROWS && csr->cols <= MOST_COLS);
  census->csr = csr;
  census->size = size;
  census->block_rows = cb_divide_up(csr->rows, size);
  draw_picture(census, csr);
  number_block_rows(census);
  return census;
}

/* ---- comparing */

/* The pattern's bits say what the picture shows. */
static void check_mask(const struct cb_patterns *found, const struct census *census, int pattern, int64_t block_row) {
  int64_t blocks = 0;
  for (int d = 0; d < found->offsets; d++) {
    const int has = found->mask[pattern] >> d & 1;
    assert_int_equal(has, block_at(census, block_row, found->offset[d]));
    blocks += has;
  }
  assert_int_equal(blocks, count_blocks(census, block_row));
}

/* All patterns are found, however rare, if they leave no other rows. */
static int take_all_or(struct census *census, int64_t uses) {
  int64_t nonzeros = 0;
  const int offsets = take_patterns(census, 1);
  for (int i = 0; i < census->count; i++) nonzeros += census->taken[i] < 0 ? 0 : census->nonzeros[i];
  return nonzeros == census->csr->nnz ? offsets : take_patterns(census, uses);
}

static void compare(const struct cb_patterns *found, struct census *census, int64_t uses) {
  int64_t nonzeros = 0, taken = 0;
  assert_int_equal(found->offsets, take_all_or(census, uses));
  assert_int_equal(found->block_rows, census->block_rows);
  for (int d = 1; d < found->offsets; d++) assert_true(found->offset[d - 1] < found->offset[d]);
  for (int i = 0; i < census->count; i++) {
    if (census->taken[i] < 0) continue;
    taken++;
    nonzeros += census->nonzeros[i];
    assert_int_equal(found->uses[census->taken[i]], census->uses[i]);
  }
  assert_int_equal(found->count, taken);
  assert_int_equal(found->nonzeros, nonzeros);
  for (int64_t block_row = 0; block_row < census->block_rows; block_row++) {
    const int pattern = census->pattern_of[block_row] < 0 ? -1 : census->taken[census->pattern_of[block_row]];
    assert_int_equal(found->pattern_of[block_row], pattern < 0 ? CB_PATTERN_NONE : pattern);
    if (pattern >= 0) check_mask(found, census, pattern, block_row);
  }
}

/* Whether anything was found. */
static int check(const struct cb_csr *csr, int size, int64_t uses) {
  struct cb_diag diag = {0};
  struct cb_patterns found;
  const struct cb_pattern_wish wish = {.size = size, .uses = uses};
  struct census *census = census_of(csr, size);
  const enum cb_status s = cb_patterns_find(&found, csr, &wish, &diag);
  if (s == CB_OK) {
    compare(&found, census, uses);
    cb_patterns_release(&found);
  } else {
    assert_int_equal(s, CB_ERR_UNSUPPORTED);
    take_all_or(census, uses);
    for (int i = 0; i < census->count; i++) assert_int_equal(census->taken[i], -1);
  }
  free(census);
  return s == CB_OK;
}

static void matches_brute_force(void **state) {
  (void)state;
  static const char *const matrices[] = {
      "fe3,n=5",          "fe3,n=4,dof=2",         "fe3,n=4,dof=5", "road,n=19",         "stencil7,n=7",
      "stencil27,n=6",    "block,blocks_r=90,r=3,c=3,per_row=2",    "tridiagonal,n=50",  "dense,rows=60,cols=70",
      "checker,rows=80,cols=90", "uniform,n=300,per_row=2",         "powerlaw,rows=200,cols=150,max=40"};
  int some = 0, all = 0;
  for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) {
    struct cb_diag diag = {0};
    struct cb_csr csr = {0};
    assert_ok(cb_matrix_generate(&csr, matrices[m], &diag));
    for (int size = 1; size <= CB_PATTERN_SIZE_MOST; size++)
      for (int64_t uses = 1; uses <= 16; uses *= 4, all++) some += check(&csr, size, uses);
    cb_csr_release(&csr);
  }
  assert_true(some > 20); /* some size of each mesh */
  assert_true(some < all);
}

/* Random matrices from few kinds of rows, some of them damaged. */
static struct cb_csr from_kinds(int64_t rows, int64_t cols, int kinds, unsigned damaged, uint64_t seed) {
  struct cb_diag diag = {0};
  struct cb_csr csr = {0};
  struct cb_coo coo = {.rows = rows, .cols = cols};
  coo.row_idx = cb_alloc((size_t)(rows * 16), 4);
  coo.col_idx = cb_alloc((size_t)(rows * 16), 4);
  coo.values = cb_alloc((size_t)(rows * 16), 8);
  for (int64_t row = 0; row < rows; row++) {
    uint64_t kind = draw(&seed) % (unsigned)kinds;
    const int64_t length = (int64_t)(kind % 7) + (draw(&seed) % 100 < damaged);
    for (int64_t i = 0; i < length; i++) {
      const int64_t column = row + (int64_t)(draw(&kind) % 41) - 20;
      if (column < 0 || column >= cols) continue;
      coo.row_idx[coo.count] = (int32_t)row;
      coo.col_idx[coo.count] = (int32_t)column;
      coo.values[coo.count++] = 1;
    }
  }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  return csr;
}

static void matches_brute_force_of_random_rows(void **state) {
  (void)state;
  int some = 0;
  for (uint64_t seed = 0; seed < 60; seed++) {
    const int64_t rows = 120 + 3 * (int64_t)seed, cols = 200 + (int64_t)seed;
    struct cb_csr csr = from_kinds(rows, cols, 2 + (int)(seed % 40), (unsigned)seed, seed);
    for (int size = 1; size <= 2; size++)
      for (int64_t uses = 1; uses <= 9; uses += 4) some += check(&csr, size, uses);
    cb_csr_release(&csr);
  }
  assert_true(some > 100);
}

/* ---- what it says of whole matrices */

static enum cb_status find(struct cb_patterns *found, const char *matrix, int size, int64_t share,
                           struct cb_diag *diag) {
  struct cb_csr csr = matrix_of(matrix);
  const struct cb_pattern_wish wish = {.size = size, .uses = 64, .share = share};
  const enum cb_status s = cb_patterns_find(found, &csr, &wish, diag);
  cb_csr_release(&csr);
  return s;
}

static void expect_patterns(const char *matrix, int size, int count, int offsets) {
  struct cb_diag diag = {0};
  struct cb_patterns found;
  assert_ok(find(&found, matrix, 0, 50, &diag));
  if (found.size != size || found.count != count || found.offsets != offsets)
    fail_msg("%s: size %d, %d patterns, %d offsets", matrix, found.size, found.count, found.offsets);
  cb_patterns_release(&found);
}

/* A cube has 27 kinds of nodes. Of 24 × 24 × 24 nodes each corner is one, each edge has 22, each face 484: those of
 * faces and inside occur 64 times. */
static void knows_what_meshes_are_made_of(void **state) {
  (void)state;
  expect_patterns("fe3,n=24", 3, 27, 27);
  expect_patterns("fe3,n=24,dof=4", 4, 27, 27);
  expect_patterns("fe3,n=24,dof=6", 6, 27, 27);
  expect_patterns("fe3,n=24,dof=8", 4, 54, 63); /* two block rows to a node */
  expect_patterns("stencil7,n=24", 1, 27, 7);
  expect_patterns("tridiagonal,n=5000", 1, 3, 3);
}

static void refuses_what_does_not_repeat(void **state) {
  (void)state;
  struct cb_patterns found;
  struct cb_diag diag = {0};
  assert_int_equal(find(&found, "uniform,n=20000,per_row=6", 0, 50, &diag), CB_ERR_UNSUPPORTED);
  assert_non_null(strstr(diag.message, "'pattern-share'"));
  assert_int_equal(find(&found, "stencil7,n=24", 2, 50, &diag), CB_ERR_UNSUPPORTED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matches_brute_force),
      cmocka_unit_test(matches_brute_force_of_random_rows),
      cmocka_unit_test(knows_what_meshes_are_made_of),
      cmocka_unit_test(refuses_what_does_not_repeat),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
