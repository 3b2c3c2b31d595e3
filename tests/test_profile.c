// SPDX-License-Identifier: Apache-2.0
/* The profile: one matrix checked by hand, many against a count on a dense picture, shapes whose answers are
 * known, values of every class, sparse shapes that take other paths through memory, any number of threads,
 * and every allocation failing once. */
#include "tests/support.h"

#include "analysis/profile/profile.h"

#include <math.h>
#include <omp.h>

static struct cb_profile profile_of(const struct cb_csr *csr) {
  struct cb_profile profile;
  struct cb_diag diag = {0};
  assert_ok(cb_profile_compute(&profile, csr, &diag));
  return profile;
}

static struct cb_profile profile_of_shape(const char *specification) {
  struct cb_csr csr = matrix_of(specification);
  const struct cb_profile profile = profile_of(&csr);
  cb_csr_release(&csr);
  return profile;
}

/* Every field, as one string. */
static char *dump(const struct cb_profile *profile) {
  json_t *json = cb_profile_json(profile);
  assert_non_null(json);
  char *text = json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
  json_decref(json);
  assert_non_null(text);
  return text;
}

static void assert_same(const struct cb_profile *got, const struct cb_profile *wanted) {
  char *a = dump(got), *b = dump(wanted);
  assert_string_equal(a, b);
  free(a);
  free(b);
}

static struct cb_csr matrix_from(int64_t rows, int64_t cols, int count, const int places[][2],
                                 const double *values) {
  struct cb_coo coo = {.rows = rows, .cols = cols, .count = count};
  struct cb_csr csr;
  struct cb_diag diag = {0};
  coo.row_idx = cb_alloc((size_t)count, 4);
  coo.col_idx = cb_alloc((size_t)count, 4);
  coo.values = cb_alloc((size_t)count, 8);
  for (int i = 0; i < count; i++) {
    coo.row_idx[i] = places[i][0];
    coo.col_idx[i] = places[i][1];
    coo.values[i] = values ? values[i] : i + 1;
  }
  assert_ok(cb_csr_from_coo(&csr, &coo, &diag));
  return csr;
}

/* ---- by hand
 *
 *   2 . 3 . .
 *   . 2 . . .
 *   3 . . 0 .     with an explicit zero
 *   . . h . -1    h = 1/2
 *   . . . . . */
static const int hand_places[][2] = {{0, 0}, {0, 2}, {1, 1}, {2, 0}, {2, 3}, {3, 2}, {3, 4}};
static const double hand_values[] = {2, 3, 2, 3, 0, 0.5, -1};

static void rows_and_columns_by_hand(void **state) {
  (void)state;
  struct cb_csr csr = matrix_from(5, 5, 7, hand_places, hand_values);
  const struct cb_profile p = profile_of(&csr);
  assert_true(p.rows == 5 && p.cols == 5 && p.nnz == 7 && p.csr_bytes == 6 * 4 + 7 * 12);
  assert_true(cb_profile_density(&p) == 7 / 25.0);
  assert_true(p.row.empty == 1 && p.row.shortest == 0 && p.row.longest == 2 && p.row.longest_row == 0);
  assert_true(p.row.median == 2 && p.row.p90 == 2 && p.row.p99 == 2 && p.row.mean == 1.4);
  assert_true(fabs(p.row.deviation - 0.8) < 1e-15);
  assert_true(p.row.bins[0] == 1 && p.row.bins[1] == 1 && p.row.bins[2] == 3 && p.row.bins[3] == 0);
  assert_true(p.column.empty == 0 && p.column.longest == 2 && p.column.longest_column == 0);
  cb_csr_release(&csr);
}

static void diagonals_and_symmetry_by_hand(void **state) {
  (void)state;
  static const struct cb_profile_diagonal fullest[] = {
      {0, 2, 5}, {1, 2, 4}, {-1, 1, 4}, {-2, 1, 3}, {2, 1, 3}};
  struct cb_csr csr = matrix_from(5, 5, 7, hand_places, hand_values);
  const struct cb_profile p = profile_of(&csr);
  assert_true(p.diagonal.lower == 2 && p.diagonal.upper == 2 && p.diagonal.mean_distance == 1);
  assert_true(p.diagonal.main_nonzeros == 2 && !p.diagonal.main_full);
  assert_true(p.diagonal.populated == 5 && p.diagonal.filled == 0 && p.diagonal.filled_nonzeros == 0);
  assert_int_equal(p.diagonal.fullest_count, 5);
  assert_memory_equal(p.diagonal.fullest, fullest, sizeof fullest);
  assert_true(p.symmetry.square && p.symmetry.mirrored == 6 && p.symmetry.mirrored_equal == 4);
  cb_csr_release(&csr);
}

static void blocks_and_values_by_hand(void **state) {
  (void)state;
  static const struct cb_profile_shape shapes[] = {{1, 2, 7, 164}, {2, 1, 7, 156}, {2, 2, 5, 196},
                                                   {3, 3, 4, 316}, {4, 4, 2, 276}, {5, 5, 1, 212},
                                                   {6, 6, 1, 300}, {8, 8, 1, 524}};
  struct cb_csr csr = matrix_from(5, 5, 7, hand_places, hand_values);
  const struct cb_profile p = profile_of(&csr);
  assert_memory_equal(p.shapes, shapes, sizeof shapes);
  assert_int_equal(p.best_shape, -1);
  assert_true(cb_profile_fill(&p, &p.shapes[2]) == 7 / 20.0);
  assert_true(p.plain.total == 1 && p.plain.with[7] == 1 && p.plain.columns == 5);
  assert_true(p.aggregated.total == 1 && p.aggregated.with[7] == 1 && p.aggregated.columns == 5);
  assert_true(cb_profile_between(&p.plain, 1, 6) == 0 && cb_profile_between(&p.plain, 7, 7) == 1);
  assert_true(p.values.distinct == 5 && p.values.zeros == 1 && p.values.nonfinite == 0 && !p.values.integers);
  assert_true(p.values.fits_f32 && p.values.fits_f16 && p.values.fits_bf16);
  cb_csr_release(&csr);
}

/* 3 of 5 positions are 60 %, 2 of 4 are not; in a matrix of 4 × 10 the main diagonal is 4 long, and 2 are
 * not. */
static void diagonals_are_filled_from_sixty_percent(void **state) {
  (void)state;
  static const int places[][2] = {{0, 0}, {1, 1}, {0, 1}, {1, 2}, {4, 4}};
  struct cb_csr csr = matrix_from(5, 5, 5, places, NULL);
  struct cb_profile p = profile_of(&csr);
  assert_true(p.diagonal.populated == 2 && p.diagonal.filled == 1 && p.diagonal.filled_nonzeros == 3);
  cb_csr_release(&csr);
  csr = matrix_from(4, 10, 4, places, NULL);
  p = profile_of(&csr);
  assert_true(p.diagonal.filled == 0 && p.diagonal.fullest[0].length == 4 &&
              p.diagonal.fullest[1].length == 4);
  cb_csr_release(&csr);
}

/* ---- against a dense picture */

struct picture {
  int64_t rows, cols;
  unsigned char *set; /* rows × cols */
};

static int at(const struct picture *picture, int64_t row, int64_t col) {
  return row < picture->rows && col < picture->cols && picture->set[row * picture->cols + col];
}

static struct picture draw_picture(const struct cb_csr *csr) {
  struct picture picture = {csr->rows, csr->cols, calloc((size_t)(csr->rows * csr->cols + 1), 1)};
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t i = cb_csr_row(csr, row); i < cb_csr_row(csr, row + 1); i++)
      picture.set[row * csr->cols + csr->col_idx[i]] = 1;
  return picture;
}

static int count_window(const struct picture *picture, int64_t row, int64_t col, int rows, int cols) {
  int count = 0;
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < cols; c++) count += at(picture, row + r, col + c);
  return count;
}

static int ascending(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int64_t quantile(const int64_t *sorted, int64_t count, int percent) {
  int64_t at_most = 0;
  for (int64_t i = 0; i < count; i++) { /* the definition, tried from the least length on */
    at_most = 0;
    for (int64_t k = 0; k < count; k++) at_most += sorted[k] <= sorted[i];
    if (at_most * 100 >= percent * count) return sorted[i];
  }
  return 0;
}

static void picture_rows(struct cb_profile *p, const struct picture *picture) {
  int64_t *lengths = calloc((size_t)picture->rows + 1, sizeof *lengths);
  double squares = 0;
  p->row.longest_row = -1;
  for (int64_t row = 0; row < picture->rows; row++) {
    for (int64_t col = 0; col < picture->cols; col++) lengths[row] += at(picture, row, col);
    p->row.empty += lengths[row] == 0;
    if (p->row.longest_row < 0 || lengths[row] > p->row.longest) p->row.longest_row = row;
    if (lengths[row] > p->row.longest) p->row.longest = lengths[row];
    int bin = 0;
    while (lengths[row] >> bin) bin++;
    p->row.bins[bin]++;
    p->nnz += lengths[row];
  }
  p->row.mean = picture->rows ? (double)p->nnz / (double)picture->rows : 0;
  for (int64_t row = 0; row < picture->rows; row++) squares += pow((double)lengths[row] - p->row.mean, 2);
  p->row.deviation = picture->rows ? sqrt(squares / (double)picture->rows) : 0;
  qsort(lengths, (size_t)picture->rows, sizeof *lengths, ascending);
  p->row.shortest = lengths[0];
  p->row.median = quantile(lengths, picture->rows, 50);
  p->row.p90 = quantile(lengths, picture->rows, 90);
  p->row.p99 = quantile(lengths, picture->rows, 99);
  free(lengths);
}

static void picture_columns(struct cb_profile *p, const struct picture *picture) {
  p->column.longest_column = -1;
  for (int64_t col = 0; col < picture->cols; col++) {
    int64_t length = 0;
    for (int64_t row = 0; row < picture->rows; row++) length += at(picture, row, col);
    p->column.empty += !length;
    if (length > p->column.longest) p->column.longest_column = col;
    if (length > p->column.longest) p->column.longest = length;
  }
}

static int by_fullness(const void *a, const void *b) {
  const struct cb_profile_diagonal *x = a, *y = b;
  if (x->nonzeros != y->nonzeros) return x->nonzeros < y->nonzeros ? 1 : -1;
  if (llabs(x->offset) != llabs(y->offset)) return llabs(x->offset) < llabs(y->offset) ? -1 : 1;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

static void picture_diagonals(struct cb_profile *p, const struct picture *picture) {
  struct cb_profile_diagonals *out = &p->diagonal;
  struct cb_profile_diagonal *all = calloc((size_t)(picture->rows + picture->cols + 1), sizeof *all);
  int64_t distances = 0;
  for (int64_t offset = -picture->rows; offset <= picture->cols; offset++) {
    struct cb_profile_diagonal one = {offset, 0, 0};
    for (int64_t row = 0; row < picture->rows; row++) {
      if (row + offset < 0 || row + offset >= picture->cols) continue;
      one.length++;
      one.nonzeros += at(picture, row, row + offset);
    }
    if (!offset) out->main_full = one.length && one.nonzeros == one.length;
    if (!one.nonzeros) continue;
    all[out->populated++] = one;
    distances += one.nonzeros * llabs(offset);
    if (-offset > out->lower) out->lower = -offset;
    if (offset > out->upper) out->upper = offset;
    if (!offset) out->main_nonzeros = one.nonzeros;
    if (one.nonzeros * 10 < one.length * 6) continue;
    out->filled++;
    out->filled_nonzeros += one.nonzeros;
  }
  out->mean_distance = p->nnz ? (double)distances / (double)p->nnz : 0;
  qsort(all, (size_t)out->populated, sizeof *all, by_fullness);
  out->fullest_count = out->populated < CB_PROFILE_DIAGONALS ? (int)out->populated : CB_PROFILE_DIAGONALS;
  memcpy(out->fullest, all, (size_t)out->fullest_count * sizeof *all);
  free(all);
}

static void picture_blocks(struct cb_profile *p, const struct picture *picture) {
  static const int sizes[CB_PROFILE_SHAPES][2] = {{1, 2}, {2, 1}, {2, 2}, {3, 3},
                                                  {4, 4}, {5, 5}, {6, 6}, {8, 8}};
  p->best_shape = -1;
  int64_t least = p->csr_bytes;
  for (int s = 0; s < CB_PROFILE_SHAPES; s++) {
    const int rows = sizes[s][0], cols = sizes[s][1];
    int64_t touched = 0, block_rows = 0;
    for (int64_t row = 0; row < picture->rows; row += rows, block_rows++)
      for (int64_t col = 0; col < picture->cols; col += cols)
        touched += count_window(picture, row, col, rows, cols) > 0;
    p->shapes[s] = (struct cb_profile_shape){rows, cols, touched,
                                             touched * (rows * cols * 8 + 4) + (block_rows + 1) * 4};
    if (p->shapes[s].bytes < least) p->best_shape = s;
    if (p->shapes[s].bytes < least) least = p->shapes[s].bytes;
  }
}

static void picture_subblocks(struct cb_profile *p, const struct picture *picture) {
  for (int64_t row = 0; row < picture->rows; row += 16) {
    int kept = 0, nonzeros = 0;
    for (int64_t col = 0; col < picture->cols; col += 16)
      p->plain.with[count_window(picture, row, col, 16, 16)]++;
    for (int64_t col = 0; col < picture->cols; col++) {
      const int column = count_window(picture, row, col, 16, 1);
      if (!column) continue;
      p->chunk_columns += (count_window(picture, row, col, 8, 1) > 0) + (count_window(picture, row + 8, col, 8, 1) > 0);
      nonzeros += column;
      p->plain.columns++;
      if (++kept % 16) continue;
      p->aggregated.with[nonzeros]++;
      nonzeros = 0;
    }
    if (nonzeros) p->aggregated.with[nonzeros]++;
  }
  p->plain.with[0] = 0;
  p->aggregated.columns = p->plain.columns;
  for (int k = 1; k <= 256; k++) {
    p->plain.total += p->plain.with[k];
    p->aggregated.total += p->aggregated.with[k];
  }
}

static double value_at(const struct cb_csr *csr, int64_t row, int64_t col) {
  for (int64_t i = cb_csr_row(csr, row); i < cb_csr_row(csr, row + 1); i++)
    if (csr->col_idx[i] == col) return csr->values[i];
  return NAN;
}

static void picture_symmetry(struct cb_profile *p, const struct picture *picture, const struct cb_csr *csr) {
  p->symmetry.square = picture->rows == picture->cols;
  for (int64_t row = 0; p->symmetry.square && row < picture->rows; row++)
    for (int64_t col = 0; col < picture->cols; col++) {
      if (!at(picture, row, col) || !at(picture, col, row)) continue;
      p->symmetry.mirrored++;
      p->symmetry.mirrored_equal += value_at(csr, row, col) == value_at(csr, col, row);
    }
}

/* Values are taken from `got`: they have tests of their own. */
static void assert_matches_picture(const struct cb_csr *csr) {
  const struct cb_profile got = profile_of(csr);
  struct cb_profile wanted = {.rows = csr->rows, .cols = csr->cols, .csr_bytes = cb_csr_bytes(csr)};
  const struct picture picture = draw_picture(csr);
  memcpy(wanted.name, csr->name, sizeof wanted.name);
  wanted.pattern = csr->pattern;
  picture_rows(&wanted, &picture);
  picture_columns(&wanted, &picture);
  picture_diagonals(&wanted, &picture);
  picture_symmetry(&wanted, &picture, csr);
  picture_blocks(&wanted, &picture);
  picture_subblocks(&wanted, &picture);
  wanted.values = got.values;
  assert_true(fabs(got.row.deviation - wanted.row.deviation) <= 1e-12 * (1 + wanted.row.deviation));
  wanted.row.deviation = got.row.deviation;
  assert_same(&got, &wanted);
  free(picture.set);
}

static void small_random_matrices(void **state) {
  (void)state;
  static const unsigned densities[] = {0, 5, 30, 150, 500, 900, 1000};
  uint64_t random = 20;
  for (int i = 0; i < 150; i++) {
    const int64_t rows = (int64_t)(draw(&random) % 70), cols = i % 3 ? (int64_t)(draw(&random) % 90) : rows;
    struct cb_csr csr = random_matrix(rows, cols, densities[i % 7], draw(&random));
    assert_matches_picture(&csr);
    cb_csr_release(&csr);
  }
}

/* Rows of more nonzeros than a window of the block count holds, among short and empty ones. */
static void wide_random_matrices(void **state) {
  (void)state;
  static const unsigned densities[] = {1, 200, 600, 1000};
  for (int i = 0; i < 4; i++) {
    struct cb_csr csr = random_matrix(37, 2311 + i, densities[i], (uint64_t)i);
    assert_matches_picture(&csr);
    cb_csr_release(&csr);
  }
  static const char *const shapes[] = {"dense_row,n=1500,row=20", "arrow,n=1300,width=2",
                                       "long_row,rows=300,cols=1700,long_length=1600",
                                       "powerlaw,rows=700,max=650"};
  for (int i = 0; i < 4; i++) {
    struct cb_csr csr = matrix_of(shapes[i]);
    assert_matches_picture(&csr);
    cb_csr_release(&csr);
  }
}

static void generated_shapes(void **state) {
  (void)state;
  static const char *const shapes[] = {"diagonal,n=50,cols=70",
                                       "diagonal,n=70,cols=50",
                                       "tridiagonal,n=49",
                                       "checker,rows=33,cols=40",
                                       "upper,n=60",
                                       "staircase,n=90",
                                       "block,blocks_r=9,r=5,c=3,per_row=2",
                                       "rmat,scale=8,edge_factor=4",
                                       "road,n=17",
                                       "stencil27,n=6",
                                       "fe3,n=5,dof=2",
                                       "one_row,cols=700",
                                       "one_column,rows=700",
                                       "hypersparse,rows=600",
                                       "explicit_zeros,rows=90,per_row=7"};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    struct cb_csr csr = matrix_of(shapes[i]);
    assert_matches_picture(&csr);
    cb_csr_release(&csr);
  }
}

static void empty_shapes(void **state) {
  (void)state;
  static const char *const shapes[] = {"empty,rows=0,cols=0", "empty,rows=0,cols=37", "empty,rows=37,cols=0",
                                       "empty,rows=21,cols=40"};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    struct cb_csr csr = matrix_of(shapes[i]);
    assert_matches_picture(&csr);
    const struct cb_profile p = profile_of(&csr);
    assert_true(p.values.distinct == 0 && p.values.fits_f16 && p.values.integers && !p.values.zeros);
    assert_true(cb_profile_density(&p) == 0 && p.best_shape >= -1);
    cb_csr_release(&csr);
  }
}

/* ---- shapes whose answers are known */

static void stencils_have_their_diagonals(void **state) {
  (void)state;
  const struct cb_profile p = profile_of_shape("stencil7,n=20,values=ones");
  static const int64_t offsets[] = {0, -1, 1, -20, 20, -400, 400};
  assert_true(p.diagonal.populated == 7 && p.diagonal.filled == 7 && p.diagonal.filled_nonzeros == p.nnz);
  for (int i = 0; i < 7; i++) assert_int_equal(p.diagonal.fullest[i].offset, offsets[i]);
  assert_true(p.diagonal.main_full && p.diagonal.lower == 400 && p.diagonal.upper == 400);
  assert_true(p.nnz == 7 * 8000 - 6 * 400 && p.row.longest == 7 && p.row.shortest == 4);
  assert_true(p.symmetry.mirrored == p.nnz && p.symmetry.mirrored_equal == p.nnz);
  assert_true(p.values.distinct == 2 && p.values.integers);
}

static void finite_elements_have_full_blocks(void **state) {
  (void)state;
  const struct cb_profile p = profile_of_shape("fe3,n=9");
  assert_true(p.shapes[3].rows == 3 && cb_profile_fill(&p, &p.shapes[3]) == 1);
  assert_int_equal(p.best_shape, 3);
  assert_int_equal(p.row.longest, 81);
  assert_true(p.symmetry.mirrored == p.nnz && p.symmetry.mirrored_equal < p.nnz);
}

static void dense_matrices_are_full(void **state) {
  (void)state;
  const struct cb_profile p = profile_of_shape("dense,rows=480,cols=480");
  for (int s = 0; s < CB_PROFILE_SHAPES; s++) assert_true(cb_profile_fill(&p, &p.shapes[s]) == 1);
  assert_int_equal(p.best_shape, 7);
  assert_true(p.plain.total == 900 && p.plain.with[256] == 900 && p.aggregated.with[256] == 900);
  assert_true(p.diagonal.filled == 959 && p.diagonal.filled_nonzeros == p.nnz && cb_profile_density(&p) == 1);
}

static void bands_stay_within(void **state) {
  (void)state;
  const struct cb_profile p = profile_of_shape("band,n=5000,half=300,per_row=20");
  assert_true(p.diagonal.lower <= 300 && p.diagonal.upper <= 300 && p.diagonal.lower > 290);
  assert_true(p.row.longest == 20 && p.row.median == 20 && p.row.bins[5] >= 4000);
  assert_true(p.diagonal.mean_distance > 100 && p.diagonal.mean_distance < 200);
}

static void sub_blocks_are_counted_exactly(void **state) {
  (void)state;
  static const int counts[] = {1, 8, 9, 31, 32, 33, 127, 128, 129, 255, 256};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    char specification[96];
    snprintf(specification, sizeof specification, "random_exact,blocks_r=7,blocks_c=5,block_nnz=%d",
             counts[i]);
    const struct cb_profile p = profile_of_shape(specification);
    assert_true(p.plain.total == 35 && p.plain.with[counts[i]] == 35);
    assert_true(cb_profile_between(&p.plain, 1, counts[i] - 1) == 0);
    assert_true(cb_profile_between(&p.aggregated, 1, 256) == p.aggregated.total && p.aggregated.total <= 35);
  }
}

/* ---- values */

static void values_by_class(void **state) {
  (void)state;
  static const struct {
    double value;
    int f32, f16, bf16, integer;
  } cases[] = {
      {1, 1, 1, 1, 1},
      {0.0, 1, 1, 1, 1},
      {-0.0, 1, 1, 1, 1},
      {0.1, 0, 0, 0, 0},
      {65504, 1, 1, 0, 1}, /* the largest half */
      {65505, 1, 0, 0, 1}, /* 16 bits */
      {65536, 1, 0, 1, 1}, /* beyond half */
      {-65536, 1, 0, 1, 1},
      {0x1p-24, 1, 1, 1, 0},   /* the least half */
      {0x1.8p-24, 1, 0, 1, 0}, /* between two subnormal halves */
      {0x1p-25, 1, 0, 1, 0},
      {0x1.004p0, 1, 1, 0, 0},   /* 11 bits */
      {0x1.002p0, 1, 0, 0, 0},   /* 12 bits */
      {0x1.004p-14, 1, 1, 0, 0}, /* the least normal half but one */
      {0x1.004p-15, 1, 0, 0, 0},
      {0x1.02p0, 1, 1, 1, 0},       /* 8 bits */
      {0x1.01p0, 1, 1, 0, 0},       /* 9 bits */
      {0x1.fffffep127, 1, 0, 0, 1}, /* the largest float */
      {0x1p128, 0, 0, 0, 1},
      {1e300, 0, 0, 0, 1},
      {0x1p-149, 1, 0, 0, 0}, /* the least float */
      {0x1p-150, 0, 0, 0, 0},
      {0x1p-133, 1, 0, 1, 0},     /* the least bfloat16 */
      {0x1.000001p0, 0, 0, 0, 0}, /* 25 bits */
      {0x1p52 - 0.5, 0, 0, 0, 0},
      {0x1p53, 1, 0, 1, 1},
      {-3, 1, 1, 1, 1},
      {INFINITY, 1, 1, 1, 0},
      {-INFINITY, 1, 1, 1, 0},
      {NAN, 1, 1, 1, 0},
  };
  static const int place[][2] = {{0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct cb_csr csr = matrix_from(1, 1, 1, place, &cases[i].value);
    const struct cb_profile_values v = profile_of(&csr).values;
    if (v.fits_f32 != cases[i].f32 || v.fits_f16 != cases[i].f16 || v.fits_bf16 != cases[i].bf16 ||
        v.integers != cases[i].integer)
      fail_msg("%a: f32 %d, f16 %d, bf16 %d, integer %d", cases[i].value, v.fits_f32, v.fits_f16, v.fits_bf16,
               v.integers);
    assert_true(v.distinct == 1 && v.nonfinite == !isfinite(cases[i].value) &&
                v.zeros == (cases[i].value == 0));
    cb_csr_release(&csr);
  }
}

static void a_payload_does_not_fit(void **state) {
  (void)state;
  static const int place[][2] = {{0, 0}};
  const uint64_t bits = UINT64_C(0x7ff8000000000001);
  double value;
  memcpy(&value, &bits, sizeof value);
  struct cb_csr csr = matrix_from(1, 1, 1, place, &value);
  const struct cb_profile p = profile_of(&csr);
  assert_true(!p.values.fits_f32 && !p.values.fits_f16 && !p.values.fits_bf16 && p.values.nonfinite == 1);
  assert_true(p.symmetry.mirrored == 1 && p.symmetry.mirrored_equal == 0); /* NaN equals nothing */
  cb_csr_release(&csr);
}

static void distinct_values_up_to_the_limit(void **state) {
  (void)state;
  struct cb_csr csr = matrix_of("one_row,cols=20000");
  for (int count = 255; count <= 259; count++) {
    for (int64_t i = 0; i < csr.nnz; i++) csr.values[i] = (double)(i * 7919 % count);
    assert_int_equal(profile_of(&csr).values.distinct, count <= 256 ? count : 257);
  }
  for (int64_t i = 0; i < csr.nnz; i++) csr.values[i] = i % 2 ? 0.0 : -0.0;
  assert_int_equal(profile_of(&csr).values.distinct, 2);
  assert_int_equal(profile_of(&csr).values.zeros, 20000);
  csr.values[19999] = 0.1; /* one value at the very end decides */
  assert_true(!profile_of(&csr).values.fits_f32 && !profile_of(&csr).values.integers);
  cb_csr_release(&csr);
}

/* ---- few nonzeros in large matrices: keys are sorted, searches have no cursors */

static void far_apart_columns(void **state) {
  (void)state;
  enum { N = INT32_MAX, STEP = 30000000 };
  struct cb_csr small = random_matrix(60, 70, 150, 5);
  const struct cb_profile p = profile_of(&small);
  small.cols = N;
  for (int64_t i = 0; i < small.nnz; i++)
    small.col_idx[i] = small.col_idx[i] == 69 ? N - 1 : small.col_idx[i] * STEP;
  const struct cb_profile far = profile_of(&small);
  assert_true(far.column.empty == N - (70 - p.column.empty) && far.column.longest == p.column.longest);
  assert_int_equal(far.column.longest_column,
                   p.column.longest_column == 69 ? N - 1 : p.column.longest_column * STEP);
  assert_true(far.diagonal.upper > N - 61 && far.aggregated.total == p.aggregated.total);
  assert_int_equal(far.diagonal.populated, small.nnz); /* no two in one diagonal */
  for (int k = 1; k <= 256; k++) assert_int_equal(far.aggregated.with[k], p.aggregated.with[k]);
  cb_csr_release(&small);
}

static void large_and_nearly_empty(void **state) {
  (void)state;
  enum { N = 1500000 };
  static const int places[][2] = {{0, N - 1},     {N - 1, 0},  {5, 5},      {7, 900000},
                                  {900000, 7},    {900000, 9}, {8, 10},     {700001, 3},
                                  {N - 1, N - 1}, {3, 700001}, {3, 700002}, {11, 1400000}};
  static const double values[] = {1, 1, 1, 2, 3, 1, 1, 4, 1, 4, 1, 1};
  struct cb_csr csr = matrix_from(N, N, 12, places, values);
  const struct cb_profile p = profile_of(&csr);
  assert_true(p.symmetry.mirrored == 8 && p.symmetry.mirrored_equal == 6);
  assert_true(p.column.empty == N - 11 && p.row.empty == N - 9 && p.column.longest == 2);
  assert_int_equal(p.column.longest_column, N - 1);
  assert_true(p.diagonal.populated == 11 && p.diagonal.main_nonzeros == 2 && p.diagonal.filled == 2);
  assert_true(p.diagonal.lower == N - 1 && p.diagonal.upper == N - 1);
  cb_csr_release(&csr);
}

static void long_diagonal(void **state) {
  (void)state;
  const struct cb_profile p = profile_of_shape("diagonal,n=1000000");
  assert_true(p.diagonal.populated == 1 && p.diagonal.filled == 1 && p.diagonal.main_full);
  assert_true(p.column.empty == 0 && p.column.longest == 1 && p.column.longest_column == 0);
  assert_true(p.symmetry.mirrored_equal == 1000000 && p.row.deviation == 0);
}

/* Lengths from 4096 on are kept apart. */
static void long_rows_keep_their_quantiles(void **state) {
  (void)state;
  const struct cb_profile p = profile_of_shape("staircase,n=6000"); /* lengths 0 … 5999 or 1 … 6000 */
  const int64_t first = p.row.shortest;
  assert_true(p.row.longest - first == 5999 && p.row.longest_row == 5999);
  assert_true(p.row.median == first + 2999 && p.row.p90 == first + 5399 && p.row.p99 == first + 5939);
  assert_true(fabs(p.row.deviation - sqrt((6000.0 * 6000 - 1) / 12)) < 1e-6);
}

/* ---- threads, memory, output */

static const char *const varied[] = {"rmat,scale=12",
                                     "fe3,n=8",
                                     "uniform,n=9000",
                                     "hypersparse,rows=400000",
                                     "powerlaw,rows=3000",
                                     "explicit_zeros,rows=5000,per_row=9",
                                     "diagonal,n=1000000",
                                     "empty,rows=0,cols=9",
                                     "random_exact,block_nnz=40,blocks_r=40,blocks_c=30,values=integers"};
enum { VARIED = sizeof varied / sizeof *varied };

static void same_for_any_number_of_threads(void **state) {
  (void)state;
  const int before = omp_get_max_threads();
  for (int i = 0; i < VARIED; i++) {
    struct cb_csr csr = matrix_of(varied[i]);
    omp_set_num_threads(1);
    const struct cb_profile one = profile_of(&csr);
    for (int threads = 2; threads <= 5; threads += 3) {
      omp_set_num_threads(threads);
      const struct cb_profile many = profile_of(&csr);
      assert_same(&many, &one);
    }
    cb_csr_release(&csr);
  }
  omp_set_num_threads(before);
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  for (int i = 0; i < VARIED; i++) {
    struct cb_csr csr = matrix_of(varied[i]);
    struct cb_profile profile;
    struct cb_diag diag = {0};
    uint64_t nth = 1;
    for (;; nth++) {
      cb_memory_fail_at(nth, nth % 2);
      const enum cb_status s = cb_profile_compute(&profile, &csr, &diag);
      cb_memory_fail_at(0, 0);
      if (!s) break;
      assert_int_equal(s, CB_ERR_MEMORY);
      assert_non_null(strstr(diag.message, "out of memory for '"));
    }
    assert_true(nth >= 5); /* rows, lengths, columns, diagonals, blocks at least */
    cb_csr_release(&csr);
  }
}

static void text_fits_a_screen(void **state) {
  (void)state;
  static const char *const tall[] = {"powerlaw,rows=30000,cols=30000,max=30000,min=0", "dense,rows=300",
                                     "one_row,cols=100000"};
  for (int i = 0; i < VARIED + 3; i++) {
    struct cb_profile p = profile_of_shape(i < VARIED ? varied[i] : tall[i - VARIED]);
    memset(p.name, 'n', sizeof p.name - 1);
    for (int k = 0; i == 0 && k < CB_PROFILE_LENGTH_BINS; k++) { /* the most lines there are */
      p.row.bins[k] = 10000000;
      p.rows = (k + 1) * p.row.bins[k];
    }
    struct cb_text text = {0};
    cb_profile_text(&p, &text);
    assert_false(text.failed);
    int lines = 0;
    for (const char *line = cb_text_string(&text), *end; *line; line = end + 1, lines++) {
      end = strchr(line, '\n');
      assert_non_null(end);
      if (end - line > 100) fail_msg("%s: %.*s", i < VARIED ? varied[i] : "tall", (int)(end - line), line);
    }
    assert_true(lines > 30 && lines <= 60);
    cb_text_release(&text);
  }
}

static void text_says_what_was_found(void **state) {
  (void)state;
  static const char *const wanted[] = {"2187 x 2187, 140625 nonzeros",  "lower 275, upper 275",
                                       "3 x 3          15625  100.0 %", "  least\n",
                                       "more than 256 distinct",        "main diagonal: 2187 nonzeros, full"};
  const struct cb_profile p = profile_of_shape("fe3,n=9");
  struct cb_text text = {0};
  cb_profile_text(&p, &text);
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    if (!strstr(cb_text_string(&text), wanted[i]))
      fail_msg("'%s' is missing in\n%s", wanted[i], cb_text_string(&text));
  cb_text_release(&text);
}

static void text_runs_out_of_memory(void **state) {
  (void)state;
  const struct cb_profile p = profile_of_shape("fe3,n=3");
  struct cb_text text = {0};
  cb_memory_fail_at(2, 0);
  cb_profile_text(&p, &text);
  cb_memory_fail_at(0, 0);
  assert_true(text.failed);
  cb_text_release(&text);
}

static void json_has_its_keys_in_order(void **state) {
  (void)state;
  static const char *const keys[] = {"name",        "rows",         "cols",       "nonzeros",
                                     "density",     "csr_bytes",    "pattern",    "symmetric_file",
                                     "row_lengths", "columns",      "bandwidth",  "diagonals",
                                     "symmetry",    "dense_blocks", "sub_blocks", "row_chunks",
                                     "values"};
  const struct cb_profile p = profile_of_shape("stencil5,n=40");
  json_t *json = cb_profile_json(&p), *value;
  const char *key;
  size_t count = 0;
  json_object_foreach(json, key, value) {
    assert_true(count < sizeof keys / sizeof *keys);
    assert_string_equal(key, keys[count++]);
  }
  assert_int_equal(count, sizeof keys / sizeof *keys);
  json_t *bins = json_object_get(json_object_get(json_object_get(json, "sub_blocks"), "aggregated"), "bins");
  int64_t all = 0;
  for (size_t i = 0; i < json_array_size(bins); i++)
    all += json_integer_value(json_object_get(json_array_get(bins, i), "sub_blocks"));
  assert_true(json_array_size(bins) == 7 && all == p.aggregated.total);
  assert_true(json_is_null(json_object_get(json_object_get(json, "values"), "distinct")));
  assert_int_equal(json_array_size(json_object_get(json_object_get(json, "diagonals"), "fullest")), 5);
  json_decref(json);
}

static int64_t json_left; /* allocations until one fails */
static void *json_alloc(size_t size) {
  return json_left-- > 0 ? malloc(size) : NULL;
}

static void json_runs_out_of_memory(void **state) {
  (void)state;
  const struct cb_profile p = profile_of_shape("stencil5,n=9");
  json_malloc_t standard_alloc;
  json_free_t standard_free;
  json_t *json = NULL;
  json_get_alloc_funcs(&standard_alloc, &standard_free);
  json_set_alloc_funcs(json_alloc, free);
  for (int64_t allowed = 0; !json; allowed++) {
    json_left = allowed;
    json = cb_profile_json(&p);
    if (json) assert_true(json_left >= 0 && allowed > 500); /* NULL until every allocation succeeds */
  }
  json_set_alloc_funcs(standard_alloc, standard_free);
  json_decref(json);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_and_columns_by_hand),
      cmocka_unit_test(diagonals_and_symmetry_by_hand),
      cmocka_unit_test(blocks_and_values_by_hand),
      cmocka_unit_test(diagonals_are_filled_from_sixty_percent),
      cmocka_unit_test(small_random_matrices),
      cmocka_unit_test(wide_random_matrices),
      cmocka_unit_test(generated_shapes),
      cmocka_unit_test(empty_shapes),
      cmocka_unit_test(stencils_have_their_diagonals),
      cmocka_unit_test(finite_elements_have_full_blocks),
      cmocka_unit_test(dense_matrices_are_full),
      cmocka_unit_test(bands_stay_within),
      cmocka_unit_test(sub_blocks_are_counted_exactly),
      cmocka_unit_test(values_by_class),
      cmocka_unit_test(a_payload_does_not_fit),
      cmocka_unit_test(distinct_values_up_to_the_limit),
      cmocka_unit_test(far_apart_columns),
      cmocka_unit_test(large_and_nearly_empty),
      cmocka_unit_test(long_diagonal),
      cmocka_unit_test(long_rows_keep_their_quantiles),
      cmocka_unit_test(same_for_any_number_of_threads),
      cmocka_unit_test(every_allocation_fails_once),
      cmocka_unit_test(text_fits_a_screen),
      cmocka_unit_test(text_says_what_was_found),
      cmocka_unit_test(text_runs_out_of_memory),
      cmocka_unit_test(json_has_its_keys_in_order),
      cmocka_unit_test(json_runs_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
