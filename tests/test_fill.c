// SPDX-License-Identifier: Apache-2.0
/* Blocks of each shape: no choice of blocks has more nonzeros, by trying all of them on small matrices; on larger ones
 * each block is full enough, none shares a place or its slice a row with another, and all threads find the same. */
#include "tests/support.h"

#include "analysis/fill.h"
#include "frontend/coo.h"

#include <omp.h>

enum { MOST = 64 }; /* rows and columns of a picture: two blocks of 32 fit beside or below each other, three do not */

struct picture {
  int rows, cols, filled[MOST][MOST];
};

static struct picture picture_of(const struct cb_csr *csr) {
  struct picture picture = {.rows = (int)csr->rows, .cols = (int)csr->cols};
  for (int row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) picture.filled[row][csr->col_idx[k]] = 1;
  return picture;
}

/* Nonzeros of the block at (row, col); 0 when it reaches over an edge or is not full enough. */
static int weight(const struct picture *picture, const struct cb_fill_shape *shape, int percent, int row, int col) {
  int filled = 0;
  for (int i = 0; i < shape->height; i++)
    for (int k = 0; k < shape->width; k++) {
      const int at = col + shape->stride * i + k;
      if (row + i >= picture->rows || at < 0 || at >= picture->cols) return 0;
      filled += picture->filled[row + i][at];
    }
  return 100 * filled >= percent * shape->height * shape->width ? filled : 0;
}

static int larger(int a, int b) {
  return a > b ? a : b;
}

/* Most nonzeros of blocks at `row`: of one or two that are 32 wide, or of all that are 1 wide. */
static int most_of_row(const struct picture *picture, const struct cb_fill_shape *shape, int percent, int row) {
  int weights[MOST], sum = 0, most = 0;
  for (int a = 0; a < picture->cols; a++) sum += weights[a] = weight(picture, shape, percent, row, a);
  for (int a = 0; a < picture->cols; a++) {
    most = larger(most, weights[a]);
    for (int b = a + shape->width; weights[a] && b < picture->cols; b++) most = larger(most, weights[a] + weights[b]);
  }
  return shape->width == 1 ? sum : most;
}

/* Most nonzeros of all choices: of one or two slices that are 32 high, or of all rows. */
static int most_of_all(const struct picture *picture, const struct cb_fill_shape *shape, int percent, int aligned) {
  const int step = aligned ? shape->height : 1;
  int of_row[MOST], sum = 0, most = 0;
  for (int row = 0; row < picture->rows; row++)
    sum += of_row[row] = row % step ? 0 : most_of_row(picture, shape, percent, row);
  for (int a = 0; a < picture->rows; a++) {
    most = larger(most, of_row[a]);
    for (int b = a + shape->height; b < picture->rows; b++) most = larger(most, of_row[a] + of_row[b]);
  }
  return shape->height == 1 ? sum : most;
}

/* Whether slices and blocks are what fill.h promises, and cb_fill_divide agrees with them. */
static void assert_sound(const struct cb_fill *fill, const struct cb_csr *csr, int percent, int aligned) {
  const struct cb_fill_shape *shape = fill->shape;
  unsigned char *part_of = malloc((size_t)csr->nnz + 1), *again = malloc((size_t)csr->nnz + 1);
  int *filled = calloc((size_t)fill->blocks + 1, sizeof *filled);
  int64_t in_blocks = 0;
  assert_true(part_of && again && filled);
  memset(again, 1, (size_t)csr->nnz + 1);
  for (int64_t s = 0; s < fill->slices; s++) {
    const int64_t first = fill->first_row[s], next = s + 1 < fill->slices ? fill->first_row[s + 1] : csr->rows;
    assert_true(first >= 0 && first + shape->height <= next && (!aligned || first % shape->height == 0));
    assert_true(fill->first_block[s] < fill->first_block[s + 1]);
    for (int64_t b = fill->first_block[s]; b < fill->first_block[s + 1]; b++) {
      const int64_t col = fill->column[b], last = col + shape->stride * (shape->height - 1);
      assert_true(col >= 0 && last >= 0 && col + shape->width <= csr->cols && last + shape->width <= csr->cols);
      if (b > fill->first_block[s]) assert_true(fill->column[b - 1] + shape->width <= col);
      for (int64_t i = 0; i < shape->height; i++)
        for (int64_t k = cb_csr_row(csr, first + i); k < cb_csr_row(csr, first + i + 1); k++) {
          const int64_t place = csr->col_idx[k] - col - shape->stride * i;
          if (place < 0 || place >= shape->width) continue;
          assert_int_equal(again[k], 1);
          again[k] = 0;
          filled[b]++;
        }
      assert_true(100 * filled[b] >= percent * shape->height * shape->width);
      in_blocks += filled[b];
    }
  }
  assert_int_equal(fill->first_block[fill->slices], fill->blocks);
  assert_int_equal(fill->nonzeros, in_blocks);
  cb_fill_divide(fill, csr, part_of);
  assert_memory_equal(part_of, again, (size_t)csr->nnz);
  free(part_of);
  free(again);
  free(filled);
}

static struct cb_fill fill_of(const struct cb_csr *csr, const struct cb_fill_shape *shape, int percent, int aligned) {
  struct cb_diag diag = {0};
  struct cb_fill fill;
  assert_ok(cb_fill_find(&fill, csr, shape, percent, aligned ? CB_FILL_ALIGNED : CB_FILL_ANYWHERE, &diag));
  return fill;
}

/* Returns how many slices there are. */
static int64_t check_picture(const struct cb_csr *csr, const struct cb_fill_shape *shape, int percent, int aligned) {
  const struct picture picture = picture_of(csr);
  struct cb_fill fill = fill_of(csr, shape, percent, aligned);
  const int64_t slices = fill.slices;
  if (slices) assert_sound(&fill, csr, percent, aligned);
  const int most = most_of_all(&picture, shape, percent, aligned);
  if (fill.nonzeros != most)
    fail_msg("%s, %d %%, aligned %d: %d nonzeros of %d x %d, where %d are possible", shape->name, percent, aligned,
             (int)fill.nonzeros, picture.rows, picture.cols, most);
  cb_fill_release(&fill);
  return slices;
}

/* Random pictures, as full as the threshold or nearly, so that windows just reach it or just do not. */
static void no_choice_has_more(void **unused) {
  (void)unused;
  static const int percents[] = {1, 50, 60, 75, 90, 100};
  uint64_t seed = 5;
  int64_t slices[5][2] = {{0}};
  for (int round = 0; round < 60; round++) {
    const int rows = round % 4 ? 33 + (int)(draw(&seed) % 32) : 31 + round / 4 % 3;
    const int cols = round % 5 ? 33 + (int)(draw(&seed) % 32) : 31 + round / 5 % 3;
    const int percent = percents[round % 6];
    const int per_mille = percent * 10 - 40 + (int)(draw(&seed) % 60);
    struct cb_csr csr = random_matrix(rows, cols, (unsigned)(per_mille < 5 ? 5 : per_mille), seed + 1);
    for (int shape = 0; cb_fill_shapes[shape].name; shape++)
      for (int aligned = 0; aligned < 2; aligned++)
        slices[shape][aligned] += check_picture(&csr, &cb_fill_shapes[shape], percent, aligned);
    cb_csr_release(&csr);
  }
  for (int shape = 0; shape < 5; shape++) assert_true(slices[shape][0] > 20 && slices[shape][1] > 10);
}

/* One block where it is wanted, in a matrix with nothing else, one place of which is empty. */
static struct cb_csr with_block(int64_t rows, int64_t cols, const struct cb_fill_shape *shape, int64_t row,
                                int64_t col) {
  struct cb_diag diag = {0};
  struct cb_csr csr = {0};
  struct cb_coo coo = {0};
  assert_ok(cb_coo_alloc(&coo, (int64_t)shape->height * shape->width - 1, 1, &diag));
  coo.rows = rows;
  coo.cols = cols;
  coo.count = 0;
  for (int i = 0; i < shape->height; i++)
    for (int k = 0; k < shape->width; k++) {
      if (i == shape->height / 2 && k == shape->width / 2) continue;
      coo.row_idx[coo.count] = (int32_t)(row + i);
      coo.col_idx[coo.count++] = (int32_t)(col + shape->stride * i + k);
    }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  return csr;
}

/* A block is found in each corner and in the middle, whole; aligned only where it begins at such a row. */
static void blocks_at_edges_are_found(void **unused) {
  (void)unused;
  enum { ROWS = 4500, COLS = 700 }; /* more rows than a range of the search has */
  for (const struct cb_fill_shape *shape = cb_fill_shapes; shape->name; shape++) {
    const int64_t span = (shape->height - 1) * (int64_t)shape->stride, before = span < 0 ? -span : 0;
    const int64_t cols[] = {before, COLS / 2, COLS - shape->width - (span > 0 ? span : 0)};
    const int64_t rows[] = {0, 4096 - shape->height / 2, 4096, ROWS - shape->height};
    for (int place = 0; place < 12; place++) {
      const int64_t row = rows[place / 3], col = cols[place % 3];
      struct cb_csr csr = with_block(ROWS, COLS, shape, row, col);
      for (int aligned = 0; aligned < 2; aligned++) {
        const int reachable = !aligned || row % shape->height == 0;
        struct cb_fill fill = fill_of(&csr, shape, 90, aligned);
        assert_int_equal(fill.slices, reachable);
        if (reachable) assert_int_equal(fill.first_row[0], row);
        if (reachable) assert_int_equal(fill.column[0], col);
        if (reachable) assert_sound(&fill, &csr, 90, aligned);
        cb_fill_release(&fill);
        fill = fill_of(&csr, shape, 100, aligned);
        assert_int_equal(fill.slices, 0);
        cb_fill_release(&fill);
      }
      cb_csr_release(&csr);
    }
  }
}

static const char *const larger_ones[] = {"multiblock,blocks=3,n=15",  "kkt,n=40,stages=2", "stencil9,n=80",
                                          "dense,rows=150,cols=200",   "rmat,scale=9",      "upper,n=300",
                                          "band,n=9000,half=12,per_row=20", "one_row,cols=500",  "hypersparse,rows=9000"};

static int same_fill(const struct cb_fill *a, const struct cb_fill *b) {
  return a->slices == b->slices && a->blocks == b->blocks && a->nonzeros == b->nonzeros &&
         !memcmp(a->first_row, b->first_row, (size_t)a->slices * sizeof *a->first_row) &&
         !memcmp(a->first_block, b->first_block, (size_t)a->slices * sizeof *a->first_block) &&
         !memcmp(a->column, b->column, (size_t)a->blocks * sizeof *a->column);
}

static void larger_matrices_are_sound_with_any_threads(void **unused) {
  (void)unused;
  for (size_t m = 0; m < sizeof larger_ones / sizeof *larger_ones; m++) {
    struct cb_csr csr = matrix_of(larger_ones[m]);
    for (const struct cb_fill_shape *shape = cb_fill_shapes; shape->name; shape++)
      for (int aligned = 0; aligned < 2; aligned++) {
        omp_set_num_threads(1);
        struct cb_fill fill = fill_of(&csr, shape, 70, aligned);
        omp_set_num_threads(5);
        struct cb_fill again = fill_of(&csr, shape, 70, aligned);
        if (fill.slices) assert_sound(&fill, &csr, 70, aligned);
        assert_int_equal(fill.slices, again.slices);
        if (fill.slices) assert_true(same_fill(&fill, &again));
        cb_fill_release(&fill);
        cb_fill_release(&again);
      }
    cb_csr_release(&csr);
  }
}

/* The shapes that were made for it have most of their nonzeros in diagonal blocks. */
static void grids_have_diagonal_blocks(void **unused) {
  (void)unused;
  static const char *const specifications[] = {"multiblock,blocks=6,n=20", "kkt,n=64,stages=2"};
  for (int i = 0; i < 2; i++) {
    struct cb_csr csr = matrix_of(specifications[i]);
    struct cb_fill fill = fill_of(&csr, cb_fill_shape_find("diag"), 75, 1);
    assert_true(fill.nonzeros * 10 > csr.nnz * 7);
    cb_fill_release(&fill);
    cb_csr_release(&csr);
  }
}

/* Over edges, blocks that need not hold more than a nonzero hold all of them, aligned and disjoint. */
static void all_nonzeros_are_in_blocks_over_edges(void **unused) {
  (void)unused;
  for (size_t m = 0; m < sizeof larger_ones / sizeof *larger_ones; m++) {
    struct cb_csr csr = matrix_of(larger_ones[m]);
    for (int shape = 1; shape < 4; shape++) {
      struct cb_diag diag = {0};
      struct cb_fill fill;
      unsigned char *part_of = malloc((size_t)csr.nnz + 1);
      assert_non_null(part_of);
      assert_ok(cb_fill_find(&fill, &csr, &cb_fill_shapes[shape], 1, CB_FILL_OVER_EDGES, &diag));
      assert_int_equal(fill.nonzeros, csr.nnz);
      cb_fill_divide(&fill, &csr, part_of);
      for (int64_t k = 0; k < csr.nnz; k++) assert_int_equal(part_of[k], 0);
      for (int64_t s = 0; s < fill.slices; s++) assert_int_equal(fill.first_row[s] % 32, 0);
      for (int64_t s = 0; s < fill.slices; s++)
        for (int64_t b = fill.first_block[s] + 1; b < fill.first_block[s + 1]; b++)
          assert_true(fill.column[b - 1] < fill.column[b]);
      free(part_of);
      cb_fill_release(&fill);
    }
    cb_csr_release(&csr);
  }
}

static void failing_allocations_are_told(void **unused) {
  (void)unused;
  struct cb_csr csr = matrix_of("kkt,n=16,stages=2");
  omp_set_num_threads(2);
  for (const struct cb_fill_shape *shape = cb_fill_shapes; shape->name; shape++)
    for (int aligned = 0; aligned < 2; aligned++)
      for (int nth = 1, failed = 1; failed; nth++) {
        struct cb_diag diag = {0};
        struct cb_fill fill;
        cb_memory_fail_at((uint64_t)nth, nth % 2);
        const enum cb_status s = cb_fill_find(&fill, &csr, shape, 50, (enum cb_fill_places)aligned, &diag);
        failed = cb_memory_fail_at(0, 0) >= (uint64_t)nth;
        assert_int_equal(s, failed ? CB_ERR_MEMORY : CB_OK);
        assert_true(nth > 1 || failed);
        cb_fill_release(&fill);
      }
  cb_csr_release(&csr);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_choice_has_more),
      cmocka_unit_test(blocks_at_edges_are_found),
      cmocka_unit_test(larger_matrices_are_sound_with_any_threads),
      cmocka_unit_test(grids_have_diagonal_blocks),
      cmocka_unit_test(all_nonzeros_are_in_blocks_over_edges),
      cmocka_unit_test(failing_allocations_are_told),
  };
  return cmocka_run_group_tests_name("blocks of a shape", tests, NULL, NULL);
}
