// SPDX-License-Identifier: Apache-2.0
/* The shapes: see shapes.h. First the tools that random shapes share, then each shape's functions, then the
 * table. */
#include "frontend/shapes.h"

#include "frontend/coo.h"

#include <stdlib.h>
#include <string.h>

/* The keys of the shapes, by their places in the table below. All begin with a size; N where it is the only one. */
enum { N = 0, ROWS = 0, COLS = 1 };
enum { DENSE = 1 }; /* the row, or the column */
enum { ARROW_WIDTH = 1 };
enum { RANDOM_DENSITY = 2, RANDOM_PER_ROW, RANDOM_ZEROS };
enum { UNIFORM_PER_ROW = 2 };
enum { BAND_HALF = 1, BAND_PER_ROW };
enum { DIAGONALS_COUNT = 1, DIAGONALS_SPREAD, DIAGONALS_FILL };
enum { POWERLAW_MAX = 2, POWERLAW_MIN };
enum { HYPERSPARSE_KEEP = 2, HYPERSPARSE_PER_ROW };
enum { LONG_PER_ROW = 2, LONG_ROWS, LONG_LENGTH };
enum { BLOCKS_R, BLOCKS_C };
enum { EXACT_NONZEROS = 2, EXACT_CUT_ROWS, EXACT_CUT_COLS };
enum { BLOCK_R = 2, BLOCK_C, BLOCK_PER_ROW, BLOCK_FILL, BLOCK_SCATTERED };
enum { STENCIL_PERIODIC = 1, STENCIL_EXTRA };
enum { FE3_DOF = 1 };
enum { MULTI_BLOCKS, MULTI_N, MULTI_DOF };
enum { KKT_N, KKT_STAGES };
enum { ROAD_KEEP = 1 };
enum { RMAT_SCALE, RMAT_EDGE_FACTOR, RMAT_A, RMAT_B, RMAT_C };

static int64_t whole(const struct cb_shape_args *args, int key) {
  return (int64_t)args->value[key];
}

/* ---- random numbers and sets */

static uint64_t below(uint64_t random, uint64_t limit) {
  __extension__ typedef unsigned __int128 uint128;
  return (uint64_t)((uint128)random * limit >> 64);
}

static int compare_columns(const void *a, const void *b) {
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

static void sort_columns(int32_t *cols, int64_t count) {
  if (count > 64) {
    qsort(cols, (size_t)count, sizeof *cols, compare_columns);
    return;
  }
  for (int64_t i = 1; i < count; i++) {
    const int32_t col = cols[i];
    int64_t hole = i;
    for (; hole > 0 && cols[hole - 1] > col; hole--) cols[hole] = cols[hole - 1];
    cols[hole] = col;
  }
}

static int64_t drop_equal(int32_t *cols, int64_t count) {
  int64_t kept = count > 0;
  for (int64_t i = 1; i < count; i++)
    if (cols[i] != cols[kept - 1]) cols[kept++] = cols[i];
  return kept;
}

/* `count` distinct columns of [first, first + width), ascending (all of them when there are fewer). Returns
 * how many; `stream` tells the draws of one row apart. */
static int64_t sample(uint64_t seed, uint64_t stream, int64_t count, int64_t first, int64_t width,
                      int32_t *cols) {
  if (count > width) count = width;
  if (!cols || count <= 0) return count > 0 ? count : 0;
  if (count * 3 >= width) { /* Knuth's algorithm S: each column is taken with probability wanted / left */
    int64_t taken = 0;
    for (int64_t i = 0; taken < count; i++)
      if ((int64_t)below(cb_random(seed, stream, (uint64_t)i), (uint64_t)(width - i)) < count - taken)
        cols[taken++] = (int32_t)(first + i);
    return count;
  }
  int64_t have = 0;
  for (uint64_t draw = 0; have < count;) {
    while (have < count)
      cols[have++] = (int32_t)(first + (int64_t)below(cb_random(seed, stream, draw++), (uint64_t)width));
    sort_columns(cols, have);
    have = drop_equal(cols, have);
  }
  return count;
}

/* A permutation of [0, 2^bits): an odd factor and a shift are both invertible. */
static uint64_t scramble_bits(uint64_t x, int bits) {
  const uint64_t mask = bits ? ~(uint64_t)0 >> (64 - bits) : 0;
  x = (x * 0x9e3779b97f4a7c15) & mask;
  x ^= x >> (bits / 2 + 1);
  return (x * 0xbf58476d1ce4e5b9) & mask;
}

/* A permutation of [0, count): walks on in the next power of two until it is back inside. */
static int64_t scramble(int64_t x, int64_t count) {
  int bits = 1;
  while ((int64_t)1 << bits < count) bits++;
  uint64_t y = (uint64_t)x;
  do y = scramble_bits(y, bits);
  while ((int64_t)y >= count);
  return (int64_t)y;
}

static int64_t put_range(int32_t *cols, int64_t at, int64_t begin, int64_t end) {
  for (int64_t col = begin; col < end; col++, at++)
    if (cols) cols[at] = (int32_t)col;
  return at;
}

static int64_t range_row(int64_t begin, int64_t end, int32_t *cols) {
  if (end <= begin) return 0;
  return cols ? put_range(cols, 0, begin, end) : end - begin;
}

/* ---- sizes that several shapes share: the first key, or the first two */

static void square(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  *rows = *cols = whole(args, N);
}

static void rectangle(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  *rows = whole(args, ROWS);
  *cols = whole(args, COLS);
}

static void square_grid(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  *rows = *cols = whole(args, N) * whole(args, N);
}

static void cube_grid(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  *rows = *cols = whole(args, N) * whole(args, N) * whole(args, N);
}

/* ---- simple shapes */

static int64_t empty_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  (void)args, (void)row, (void)cols;
  return 0;
}

static int64_t diagonal_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  return row < whole(args, COLS) ? range_row(row, row + 1, cols) : 0;
}

static void one_row_size(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  *rows = 1;
  *cols = whole(args, N);
}

static void one_column_size(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  *rows = whole(args, N);
  *cols = 1;
}

static int64_t full_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  (void)row;
  return range_row(0, whole(args, COLS), cols);
}

static int64_t one_row_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  (void)row;
  return range_row(0, whole(args, N), cols);
}

static int64_t one_column_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  (void)args, (void)row;
  return range_row(0, 1, cols);
}

static int64_t dense_row_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  return row == whole(args, DENSE) ? range_row(0, whole(args, N), cols) : range_row(row, row + 1, cols);
}

static int64_t dense_column_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t dense = whole(args, DENSE), low = row < dense ? row : dense, high = row < dense ? dense : row;
  if (dense >= whole(args, N) || dense == row) return range_row(row, row + 1, cols);
  if (cols) {
    cols[0] = (int32_t)low;
    cols[1] = (int32_t)high;
  }
  return 2;
}

static int64_t arrow_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t n = whole(args, N), width = whole(args, ARROW_WIDTH) < n ? whole(args, ARROW_WIDTH) : n;
  if (row < width) return range_row(0, n, cols);
  return put_range(cols, put_range(cols, 0, 0, width), row, row + 1);
}

static int64_t tridiagonal_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t n = whole(args, N);
  return range_row(row ? row - 1 : 0, row + 2 < n ? row + 2 : n, cols);
}

static int64_t upper_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  return range_row(row, whole(args, N), cols);
}

static int64_t staircase_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  (void)args;
  return range_row(0, row, cols);
}

static int64_t checker_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  int64_t count = 0;
  for (int64_t col = row & 1; col < whole(args, COLS); col += 2, count++)
    if (cols) cols[count] = (int32_t)col;
  return count;
}

/* ---- random rows */

/* Lengths spread evenly around the mean, as far as both ends allow. */
static int64_t random_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const double width = args->value[COLS];
  double mean = args->value[RANDOM_PER_ROW] >= 0 ? args->value[RANDOM_PER_ROW] : args->value[RANDOM_DENSITY] * width;
  if (mean > width) mean = width;
  const double spread = mean < width - mean ? mean : width - mean;
  const double centred = 2 * cb_unit(cb_random(args->seed ^ 1, (uint64_t)row, 0)) - 1;
  double length =
      spread * centred; /* a statement for each rounding: no fused operation may change the result */
  length += mean;
  length += cb_unit(cb_random(args->seed ^ 1, (uint64_t)row, 1));
  return sample(args->seed, (uint64_t)row, (int64_t)length, 0, whole(args, COLS), cols);
}

static int64_t uniform_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  return sample(args->seed, (uint64_t)row, whole(args, UNIFORM_PER_ROW), 0, whole(args, COLS), cols);
}

static int64_t band_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t n = whole(args, N), half = whole(args, BAND_HALF);
  const int64_t first = row > half ? row - half : 0, end = row + half + 1 < n ? row + half + 1 : n;
  return sample(args->seed, (uint64_t)row, whole(args, BAND_PER_ROW), first, end - first, cols);
}

static int64_t powerlaw_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t longest = whole(args, POWERLAW_MAX), least = whole(args, POWERLAW_MIN);
  const int64_t length = longest / (scramble(row, whole(args, ROWS)) + 1);
  return sample(args->seed, (uint64_t)row, length > least ? length : least, 0, whole(args, COLS), cols);
}

static int64_t hypersparse_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  if (cb_unit(cb_random(args->seed ^ 1, (uint64_t)row, 0)) >= args->value[HYPERSPARSE_KEEP]) return 0;
  return sample(args->seed, (uint64_t)row, whole(args, HYPERSPARSE_PER_ROW), 0, whole(args, COLS), cols);
}

/* The long rows lie in the middle of equal runs of rows. */
static int64_t long_row_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t rows = whole(args, ROWS), many = whole(args, LONG_ROWS) < rows ? whole(args, LONG_ROWS) : rows;
  const int64_t run = many ? row * many / rows : 0;
  const int is_long = many && row == (2 * run + 1) * rows / (2 * many);
  const int64_t length = whole(args, is_long ? LONG_LENGTH : LONG_PER_ROW);
  return sample(args->seed, (uint64_t)row, length, 0, whole(args, COLS), cols);
}

static int64_t diagonals_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  enum { MOST = 256 };
  const int64_t n = whole(args, N), spread = whole(args, DIAGONALS_SPREAD);
  int32_t places[MOST];
  int64_t count = 0;
  const int64_t many = sample(args->seed, 0, whole(args, DIAGONALS_COUNT), 0, 2 * spread + 1, places);
  for (int64_t i = 0; i < many; i++) {
    const int64_t col = row + places[i] - spread;
    if (col < 0 || col >= n) continue;
    if (cb_unit(cb_random(args->seed ^ 2, (uint64_t)row, (uint64_t)places[i])) >= args->value[DIAGONALS_FILL]) continue;
    if (cols) cols[count] = (int32_t)col;
    count++;
  }
  return count;
}

/* ---- sub-blocks */

enum { SIDE = 16 };

static void exact_size(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  const int64_t full_rows = whole(args, BLOCKS_R) * SIDE, full_cols = whole(args, BLOCKS_C) * SIDE;
  *rows = full_rows > whole(args, EXACT_CUT_ROWS) ? full_rows - whole(args, EXACT_CUT_ROWS) : 0;
  *cols = full_cols > whole(args, EXACT_CUT_COLS) ? full_cols - whole(args, EXACT_CUT_COLS) : 0;
}

/* A permutation of the 256 cells of a block: affine steps with odd factors, and shifts, are all invertible.
 */
static unsigned shuffle_cell(uint64_t random, unsigned cell) {
  for (int step = 0; step < 3; step++, random >>= 16) {
    cell = (cell * ((unsigned)random | 1) + ((unsigned)random >> 8)) & 255;
    cell ^= cell >> 4;
  }
  return cell;
}

/* The columns of one row of a 16 × 16 block in which the cells that are shuffled to the first `wanted` are
 * kept. */
static int64_t exact_block_row(uint64_t seed, uint64_t block, int64_t wanted, int64_t row,
                               int32_t columns[SIDE + 1]) {
  const uint64_t random = cb_random(seed, block, 0);
  int64_t here = 0;
  for (int col = 0; col < SIDE; col++) {
    columns[here] = col; /* written always, kept or not: there is nothing to predict */
    here += (int64_t)shuffle_cell(random, (unsigned)(row * SIDE + col)) < wanted;
  }
  return here;
}

static int64_t exact_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  int64_t rows, width, count = 0;
  exact_size(args, &rows, &width);
  for (int64_t first = 0; first < width; first += SIDE) {
    int32_t columns[SIDE + 1];
    const uint64_t block = (uint64_t)(row / SIDE * whole(args, BLOCKS_C) + first / SIDE);
    const int64_t here = exact_block_row(args->seed, block, whole(args, EXACT_NONZEROS), row % SIDE, columns);
    for (int64_t i = 0; i < here; i++) {
      if (first + columns[i] >= width) continue;
      if (cols) cols[count] = (int32_t)(first + columns[i]);
      count++;
    }
  }
  return count;
}

static void block_size(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  *rows = whole(args, BLOCKS_R) * whole(args, BLOCK_R);
  *cols = whole(args, BLOCKS_C) * whole(args, BLOCK_C);
}

/* The entries of blocks, and `scattered` others. */
static int64_t block_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  enum { MOST = 256, MOST_WIDE = 64 };
  int32_t blocks[MOST], all[MOST * MOST_WIDE + MOST];
  const int64_t width = whole(args, BLOCK_C);
  const uint64_t block_row = (uint64_t)(row / whole(args, BLOCK_R));
  const int64_t many = sample(args->seed, block_row, whole(args, BLOCK_PER_ROW), 0, whole(args, BLOCKS_C), blocks);
  int64_t count = 0;
  for (int64_t i = 0; i < many * width; i++) {
    const int64_t col = blocks[i / width] * width + i % width;
    if (cb_unit(cb_random(args->seed ^ 1, (uint64_t)row, (uint64_t)col)) >= args->value[BLOCK_FILL]) continue;
    all[count++] = (int32_t)col;
  }
  if (whole(args, BLOCK_SCATTERED)) {
    count += sample(args->seed ^ 2, (uint64_t)row, whole(args, BLOCK_SCATTERED), 0, whole(args, BLOCKS_C) * width,
                    all + count);
    sort_columns(all, count);
    count = drop_equal(all, count);
  }
  if (cols) memcpy(cols, all, (size_t)count * sizeof *cols);
  return count;
}

/* ---- grids, points in row-major order */

/* Neighbours at distance at most 1 in each direction; in a star, in one direction only. */
static int64_t grid_row(int64_t n, int64_t point, int deep, int star, int64_t unknowns, int32_t *cols) {
  const int64_t z = deep ? point / (n * n) : 0, y = point / n % n, x = point % n;
  int64_t count = 0;
  for (int64_t dz = deep && z ? -1 : 0; dz <= (deep && z + 1 < n); dz++)
    for (int64_t dy = y ? -1 : 0; dy <= (y + 1 < n); dy++)
      for (int64_t dx = x ? -1 : 0; dx <= (x + 1 < n); dx++) {
        if (star && dz * dz + dy * dy + dx * dx > 1) continue;
        const int64_t first = (point + (dz * n + dy) * n + dx) * unknowns;
        count = put_range(cols, count, first, first + unknowns);
      }
  return count;
}

/* The same on a torus; neighbours that coincide are there several times, and in no order. */
static int64_t torus_row(int64_t n, int64_t point, int deep, int star, int32_t *cols) {
  const int64_t z = deep ? point / (n * n) : 0, y = point / n % n, x = point % n;
  int64_t count = 0;
  for (int64_t dz = -deep; dz <= deep; dz++)
    for (int64_t dy = -1; dy <= 1; dy++)
      for (int64_t dx = -1; dx <= 1; dx++)
        if (!star || dz * dz + dy * dy + dx * dx <= 1)
          cols[count++] = (int32_t)(((deep ? (z + dz + n) % n : 0) * n + (y + dy + n) % n) * n + (x + dx + n) % n);
  return count;
}

/* A stencil, perhaps periodic, to which a share of the points adds a random one. */
static int64_t stencil_row(const struct cb_shape_args *args, int64_t row, int deep, int star, int32_t *cols) {
  enum { MOST = 28 };
  const int64_t n = whole(args, N), points = deep ? n * n * n : n * n;
  const int periodic = whole(args, STENCIL_PERIODIC) != 0;
  int32_t all[MOST];
  if (!periodic && args->value[STENCIL_EXTRA] == 0) return grid_row(n, row, deep, star, 1, cols);
  int64_t count = periodic ? torus_row(n, row, deep, star, all) : grid_row(n, row, deep, star, 1, all);
  if (cb_unit(cb_random(args->seed ^ 1, (uint64_t)row, 0)) < args->value[STENCIL_EXTRA])
    all[count++] = (int32_t)below(cb_random(args->seed, (uint64_t)row, 0), (uint64_t)points);
  sort_columns(all, count);
  count = drop_equal(all, count);
  for (int64_t i = 0; cols && i < count; i++) cols[i] = all[i];
  return count;
}

static int64_t stencil5_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  return stencil_row(args, row, 0, 1, cols);
}

static int64_t stencil9_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  return stencil_row(args, row, 0, 0, cols);
}

static int64_t stencil7_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  return stencil_row(args, row, 1, 1, cols);
}

static int64_t stencil27_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  return stencil_row(args, row, 1, 0, cols);
}

static void fe3_size(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  cube_grid(args, rows, cols);
  *rows *= whole(args, FE3_DOF);
  *cols = *rows;
}

static int64_t fe3_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t unknowns = whole(args, FE3_DOF);
  return grid_row(whole(args, N), row / unknowns, 1, 0, unknowns, cols);
}

/* An edge belongs to its smaller end; direction 0 leads to the right, 1 down. */
static int road_kept(const struct cb_shape_args *args, int64_t node, int direction) {
  return cb_unit(cb_random(args->seed ^ 1, (uint64_t)node, (uint64_t)direction)) < args->value[ROAD_KEEP];
}

static int64_t road_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t n = whole(args, N);
  const struct {
    int there;
    int64_t col;
  } neighbours[] = {
      {row >= n && road_kept(args, row - n, 1), row - n},
      {row % n > 0 && road_kept(args, row - 1, 0), row - 1},
      {row % n < n - 1 && road_kept(args, row, 0), row + 1},
      {row < n * (n - 1) && road_kept(args, row, 1), row + n},
  };
  int64_t count = 0;
  for (int i = 0; i < 4; i++) {
    if (!neighbours[i].there) continue;
    if (cols) cols[count] = (int32_t)neighbours[i].col;
    count++;
  }
  return count;
}

/* ---- grids with structure on a smaller scale than the matrix's diagonals */

/* Columns of a grid's point, shifted by `first`. */
static int64_t put_shifted(int32_t *cols, int64_t at, int64_t first, const int32_t *points, int64_t count) {
  for (int64_t i = 0; cols && i < count; i++) cols[at + i] = (int32_t)(first + points[i]);
  return at + count;
}

/* A block of `points` points, row after row, in layers of width * height; the last layer may be short. */
struct grid_block {
  int64_t points, width, layer;
};

static struct grid_block grid_block(const struct cb_shape_args *args, int64_t block) {
  const int64_t n = whole(args, MULTI_N), least = (n + 1) / 2;
  const int64_t width = least + (int64_t)below(cb_random(args->seed, (uint64_t)block, 0), (uint64_t)n);
  const int64_t height = least + (int64_t)below(cb_random(args->seed, (uint64_t)block, 1), (uint64_t)n);
  const int64_t points = n * n * n, layer = width * height;
  return (struct grid_block){points, width, layer < points ? layer : points};
}

/* The point and its six neighbours within the block. */
static int64_t grid_block_row(const struct grid_block *block, int64_t point, int32_t cols[7]) {
  const int64_t x = point % block->width, y = point % block->layer / block->width;
  int64_t count = 0;
  if (point >= block->layer) cols[count++] = (int32_t)(point - block->layer);
  if (y) cols[count++] = (int32_t)(point - block->width);
  if (x) cols[count++] = (int32_t)(point - 1);
  cols[count++] = (int32_t)point;
  if (x + 1 < block->width && point + 1 < block->points) cols[count++] = (int32_t)(point + 1);
  if (point % block->layer + block->width < block->layer && point + block->width < block->points)
    cols[count++] = (int32_t)(point + block->width);
  if (point + block->layer < block->points) cols[count++] = (int32_t)(point + block->layer);
  return count;
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Blocks form a ring, in which the next one is so many places on. */
static int64_t ring_step(const struct cb_shape_args *args) {
  const int64_t blocks = whole(args, MULTI_BLOCKS);
  int64_t step = 1 + (int64_t)below(cb_random(args->seed, 0, 2), (uint64_t)blocks);
  while (common_divisor(step, blocks) != 1) step++;
  return step % blocks;
}

/* A block's last points meet the first ones of the next block; the point of that other block, or -1. */
static int64_t glued_point(const struct cb_shape_args *args, int64_t block, int64_t next, int64_t point, int to_next) {
  const int64_t points = grid_block(args, block).points;
  const int64_t a = grid_block(args, block).layer, b = grid_block(args, next).layer, face = a < b ? a : b;
  if (to_next) return point >= points - face ? point - (points - face) : -1;
  return point < face ? points - face + point : -1;
}

static void multiblock_size(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  cube_grid(&(const struct cb_shape_args){.value = {args->value[MULTI_N]}}, rows, cols);
  *rows *= whole(args, MULTI_BLOCKS) * whole(args, MULTI_DOF);
  *cols = *rows;
}

/* Unknown u of all points of a block comes before unknown u + 1 of the first. A row has the neighbours of its own
 * unknown, the point's other unknowns, and its own unknown in glued blocks. */
static int64_t multiblock_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  enum { MOST = 7 + 9 + 2 };
  const int64_t blocks = whole(args, MULTI_BLOCKS), unknowns = whole(args, MULTI_DOF);
  const int64_t points = whole(args, MULTI_N) * whole(args, MULTI_N) * whole(args, MULTI_N), size = points * unknowns;
  const int64_t number = row / size, unknown = row % size / points, point = row % points;
  const struct grid_block block = grid_block(args, number);
  int32_t near[7], all[MOST];
  int64_t count = put_shifted(all, 0, row - point, near, grid_block_row(&block, point, near));
  for (int64_t other = 0; other < unknowns; other++)
    if (other != unknown) all[count++] = (int32_t)(number * size + other * points + point);
  for (int to_next = 0; to_next < 2 && blocks > 1; to_next++) {
    const int64_t step = ring_step(args), other = (number + (to_next ? step : blocks - step)) % blocks;
    const int64_t glued = glued_point(args, number, other, point, to_next);
    if (glued >= 0) all[count++] = (int32_t)(other * size + unknown * points + glued);
  }
  sort_columns(all, count);
  count = drop_equal(all, count);
  for (int64_t i = 0; cols && i < count; i++) cols[i] = all[i];
  return count;
}

static void kkt_size(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  square_grid(args, rows, cols);
  *rows *= 3 * whole(args, KKT_STAGES);
  *cols = *rows;
}

/* States y, controls u and multipliers of equations "5-point stencil of y(t), less y(t - 1), less u(t)", in this
 * order; of each, stage by stage, an n x n grid:
 *
 *   D 0 S'        D is diagonal, S lower triangular by stages
 *   0 D I
 *   S I 0 */
static int64_t kkt_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t n = whole(args, KKT_N), points = n * n, stages = whole(args, KKT_STAGES), field = points * stages;
  const int64_t stage = row % field / points, at = row % field, point = row % points;
  int32_t near[5];
  const int64_t neighbours = grid_row(n, point, 0, 1, 1, near);
  const int64_t controls = field, multipliers = 2 * field;
  int64_t count = 0;
  if (row < controls) {
    count = put_range(cols, count, row, row + 1);
    count = put_shifted(cols, count, multipliers + stage * points, near, neighbours);
    if (stage + 1 < stages) count = put_range(cols, count, multipliers + at + points, multipliers + at + points + 1);
  } else if (row < multipliers) {
    count = put_range(cols, count, row, row + 1);
    count = put_range(cols, count, multipliers + at, multipliers + at + 1);
  } else {
    if (stage) count = put_range(cols, count, at - points, at - points + 1);
    count = put_shifted(cols, count, stage * points, near, neighbours);
    count = put_range(cols, count, controls + at, controls + at + 1);
  }
  return count;
}

/* ---- R-MAT (D. Chakrabarti, Y. Zhan, C. Faloutsos, "R-MAT: a recursive model for graph mining", 2004) */

static void rmat_size(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  *rows = *cols = (int64_t)1 << whole(args, RMAT_SCALE);
}

/* Descends `scale` levels; 16 random bits choose the quadrant at each. `ends` are the upper ends of the
 * ranges of quadrants a, b and c. Without branches: there is nothing to predict. */
static void rmat_edge(uint64_t seed, uint64_t edge, int scale, const uint64_t ends[3], uint64_t *row,
                      uint64_t *col) {
  enum { BITS = 16, LEVELS_PER_DRAW = 4 };
  uint64_t r = 0, c = 0;
  for (int level = 0; level < scale; level += LEVELS_PER_DRAW) {
    uint64_t random = cb_random(seed, edge, (uint64_t)level);
    const int steps = scale - level < LEVELS_PER_DRAW ? scale - level : LEVELS_PER_DRAW;
    for (int step = 0; step < steps; step++, random >>= BITS) {
      const uint64_t draw = random & ((1 << BITS) - 1);
      const unsigned past_a = draw >= ends[0], past_b = draw >= ends[1], past_c = draw >= ends[2];
      r = r << 1 | past_b;
      c = c << 1 | ((past_a ^ past_b) | past_c);
    }
  }
  *row = scramble_bits(r, scale);
  *col = scramble_bits(c, scale);
}

static enum cb_status rmat_entries(const struct cb_shape_args *args, struct cb_coo *coo,
                                   struct cb_diag *diag) {
  const int scale = (int)whole(args, RMAT_SCALE);
  const int64_t edges = whole(args, RMAT_EDGE_FACTOR) << scale;
  const double a = args->value[RMAT_A], b = args->value[RMAT_B], c = args->value[RMAT_C];
  if (a + b + c > 1)
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "'a', 'b' and 'c' of shape 'rmat' add up to more than 1; make them smaller");
  const uint64_t ends[3] = {(uint64_t)(a * 0x1p16), (uint64_t)((a + b) * 0x1p16),
                            (uint64_t)((a + b + c) * 0x1p16)};
  const enum cb_status s = cb_coo_alloc(coo, edges, 1, diag);
  if (s) return s;
#pragma omp parallel for schedule(static)
  for (int64_t edge = 0; edge < edges; edge++) {
    uint64_t row, col;
    rmat_edge(args->seed, (uint64_t)edge, scale, ends, &row, &col);
    coo->row_idx[edge] = (int32_t)row;
    coo->col_idx[edge] = (int32_t)col;
  }
  return CB_OK;
}

/* ---- the table */

/* clang-format off */
#define COUNT(name, standard) {name, standard, 0, INT32_MAX, 0}
#define SHARE(name, standard) {name, standard, 0, 1, 1}
#define SIDE_OF_GRID(standard, most) {"n", standard, 0, most, 0}
#define STENCIL(standard, most)                                                                                  \
  SIDE_OF_GRID(standard, most), [STENCIL_PERIODIC] = {"periodic", 0, 0, 1, 0}, [STENCIL_EXTRA] = SHARE("extra", 0)

const struct cb_shape cb_shapes[] = {
    {.name = "empty", .help = "no nonzeros at all", .size = rectangle, .row = empty_row,
     .keys = {COUNT("rows", 100), [COLS] = COUNT("cols", CB_AS_FIRST)}},
    {.name = "diagonal", .help = "the main diagonal", .size = rectangle, .row = diagonal_row,
     .keys = {COUNT("n", 1000), [COLS] = COUNT("cols", CB_AS_FIRST)}},
    {.name = "one_row", .help = "a single full row", .size = one_row_size, .row = one_row_row,
     .keys = {COUNT("cols", 1000)}},
    {.name = "one_column", .help = "a single full column", .size = one_column_size, .row = one_column_row,
     .keys = {COUNT("rows", 1000)}},
    {.name = "dense", .help = "every entry", .size = rectangle, .row = full_row,
     .keys = {COUNT("rows", 100), [COLS] = COUNT("cols", CB_AS_FIRST)}},
    {.name = "dense_row", .help = "the diagonal and one full row", .size = square, .row = dense_row_row,
     .keys = {COUNT("n", 1000), [DENSE] = COUNT("row", 0)}},
    {.name = "dense_column", .help = "the diagonal and one full column", .size = square, .row = dense_column_row,
     .keys = {COUNT("n", 1000), [DENSE] = COUNT("col", 0)}},
    {.name = "random", .help = "rows of random length around a mean, given as density or per row",
     .size = rectangle, .row = random_row,
     .keys = {COUNT("rows", 1000), [COLS] = COUNT("cols", CB_AS_FIRST), [RANDOM_DENSITY] = SHARE("density", 0.01),
              [RANDOM_PER_ROW] = {"per_row", CB_NOT_GIVEN, 0, INT32_MAX, 1}}},
    {.name = "random_exact", .help = "every 16 x 16 block has block_nnz nonzeros; cut drops last rows and columns",
     .size = exact_size, .row = exact_row,
     .keys = {[BLOCKS_R] = {"blocks_r", 4, 0, INT32_MAX / SIDE, 0},
              [BLOCKS_C] = {"blocks_c", CB_AS_FIRST, 0, INT32_MAX / SIDE, 0},
              [EXACT_NONZEROS] = {"block_nnz", 32, 0, SIDE * SIDE, 0},
              [EXACT_CUT_ROWS] = {"cut_rows", 0, 0, SIDE - 1, 0},
              [EXACT_CUT_COLS] = {"cut_cols", 0, 0, SIDE - 1, 0}}},
    {.name = "uniform", .help = "per_row distinct random columns in every row", .size = rectangle,
     .row = uniform_row,
     .keys = {COUNT("n", 1000), [COLS] = COUNT("cols", CB_AS_FIRST), [UNIFORM_PER_ROW] = COUNT("per_row", 16)}},
    {.name = "band", .help = "per_row distinct random columns within half of the diagonal", .size = square,
     .row = band_row, .keys = {COUNT("n", 10000), [BAND_HALF] = COUNT("half", 2000),
                              [BAND_PER_ROW] = COUNT("per_row", 32)}},
    {.name = "diagonals", .help = "count random diagonals within spread of the main one, filled to a share",
     .size = square, .row = diagonals_row,
     .keys = {COUNT("n", 1000), [DIAGONALS_COUNT] = {"count", 5, 0, 256, 0},
              [DIAGONALS_SPREAD] = {"spread", 100, 0, INT32_MAX / 2 - 1, 0},
              [DIAGONALS_FILL] = SHARE("fill", 1)}},
    {.name = "stencil5", .help = "5 points on an n x n grid; periodic=1: on a torus; extra: share with a random further one",
     .size = square_grid, .row = stencil5_row, .centre = 4,
     .keys = {STENCIL(32, 46340)}},
    {.name = "stencil9", .help = "9 points on an n x n grid; periodic=1: on a torus; extra: share with a random further one",
     .size = square_grid, .row = stencil9_row, .centre = 8,
     .keys = {STENCIL(32, 46340)}},
    {.name = "stencil7", .help = "7 points on an n x n x n grid; periodic=1: on a torus; extra: share with a random further one",
     .size = cube_grid, .row = stencil7_row, .centre = 6,
     .keys = {STENCIL(12, 1290)}},
    {.name = "stencil27", .help = "27 points on an n x n x n grid; periodic=1: on a torus; extra: share with a random further one",
     .size = cube_grid, .row = stencil27_row, .centre = 26,
     .keys = {STENCIL(12, 1290)}},
    {.name = "fe3", .help = "finite elements: n x n x n nodes, 27 neighbours, dof unknowns each", .size = fe3_size,
     .row = fe3_row, .keys = {SIDE_OF_GRID(8, 600), [FE3_DOF] = {"dof", 3, 1, 9, 0}}},
    {.name = "multiblock", .help = "grids of n^3 points, each of its own width, glued in random order; dof unknowns",
     .size = multiblock_size, .row = multiblock_row,
     .keys = {[MULTI_BLOCKS] = {"blocks", 8, 0, 1000000, 0}, [MULTI_N] = SIDE_OF_GRID(8, 600),
              [MULTI_DOF] = {"dof", 1, 1, 9, 0}}},
    {.name = "kkt", .help = "saddle point: states, controls and multipliers on n x n grids, in stages",
     .size = kkt_size, .row = kkt_row,
     .keys = {[KKT_N] = SIDE_OF_GRID(16, 26000), [KKT_STAGES] = {"stages", 2, 0, 10000, 0}}},
    {.name = "road", .help = "n x n grid, each edge kept with a probability, both directions", .size = square_grid,
     .row = road_row, .keys = {SIDE_OF_GRID(64, 46340), [ROAD_KEEP] = SHARE("keep", 0.6)}},
    {.name = "rmat", .help = "R-MAT graph of 2^scale nodes, labels scrambled", .size = rmat_size,
     .entries = rmat_entries,
     .keys = {[RMAT_SCALE] = {"scale", 10, 0, 30, 0}, [RMAT_EDGE_FACTOR] = {"edge_factor", 16, 0, 1024, 0},
              [RMAT_A] = SHARE("a", 0.57), [RMAT_B] = SHARE("b", 0.19), [RMAT_C] = SHARE("c", 0.19)}},
    {.name = "arrow", .help = "diagonal, first rows and first columns", .size = square, .row = arrow_row,
     .keys = {COUNT("n", 1000), [ARROW_WIDTH] = COUNT("width", 1)}},
    {.name = "tridiagonal", .help = "three diagonals", .size = square, .row = tridiagonal_row, .centre = 2,
     .keys = {COUNT("n", 1000)}},
    {.name = "powerlaw", .help = "row lengths max, max/2, max/3, ... in scrambled order, min at least",
     .size = rectangle, .row = powerlaw_row,
     .keys = {COUNT("rows", 1000), [COLS] = COUNT("cols", CB_AS_FIRST), [POWERLAW_MAX] = COUNT("max", 500),
              [POWERLAW_MIN] = COUNT("min", 1)}},
    {.name = "block", .help = "per_row random blocks of r x c in each block row, filled to a share, and scattered entries in each row",
     .size = block_size, .row = block_row,
     .keys = {[BLOCKS_R] = {"blocks_r", 100, 0, INT32_MAX / 64, 0},
              [BLOCKS_C] = {"blocks_c", CB_AS_FIRST, 0, INT32_MAX / 64, 0},
              [BLOCK_R] = {"r", 3, 1, 64, 0}, [BLOCK_C] = {"c", 3, 1, 64, 0}, [BLOCK_PER_ROW] = {"per_row", 8, 0, 256, 0},
              [BLOCK_FILL] = SHARE("fill", 1), [BLOCK_SCATTERED] = {"scattered", 0, 0, 256, 0}}},
    {.name = "hypersparse", .help = "a row is empty unless kept, then has per_row random columns",
     .size = rectangle, .row = hypersparse_row,
     .keys = {COUNT("rows", 100000), [COLS] = COUNT("cols", CB_AS_FIRST), [HYPERSPARSE_KEEP] = SHARE("keep", 0.001),
              [HYPERSPARSE_PER_ROW] = COUNT("per_row", 4)}},
    {.name = "checker", .help = "every second entry, as on a chess board", .size = rectangle, .row = checker_row,
     .keys = {COUNT("rows", 64), [COLS] = COUNT("cols", CB_AS_FIRST)}},
    {.name = "upper", .help = "upper triangle with the diagonal", .size = square, .row = upper_row,
     .keys = {COUNT("n", 100)}},
    {.name = "explicit_zeros", .help = "random rows, of whose values a share is zero", .size = rectangle,
     .row = random_row, .zero_share_at = RANDOM_ZEROS,
     .keys = {COUNT("rows", 1000), [COLS] = COUNT("cols", CB_AS_FIRST), [RANDOM_DENSITY] = SHARE("density", 0.01),
              [RANDOM_PER_ROW] = {"per_row", CB_NOT_GIVEN, 0, INT32_MAX, 1}, [RANDOM_ZEROS] = SHARE("zeros", 0.3)}},
    {.name = "staircase", .help = "row i has i nonzeros, from the left", .size = square, .row = staircase_row,
     .keys = {COUNT("n", 200)}},
    {.name = "long_row", .help = "short random rows and a few long ones among them", .size = rectangle,
     .row = long_row_row,
     .keys = {COUNT("rows", 10000), [COLS] = COUNT("cols", CB_AS_FIRST), [LONG_PER_ROW] = COUNT("per_row", 4),
              [LONG_ROWS] = COUNT("long_rows", 3), [LONG_LENGTH] = COUNT("long_length", 5000)}},
    {.name = NULL}};
/* clang-format on */
