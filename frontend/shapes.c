// SPDX-License-Identifier: Apache-2.0
/* The shapes: see shapes.h. First the tools that random shapes share, then each shape's functions, then the
 * table. */
#include "frontend/shapes.h"

#include "frontend/coo.h"

#include <stdlib.h>
#include <string.h>

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
  *rows = *cols = whole(args, 0);
}

static void rectangle(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  *rows = whole(args, 0);
  *cols = whole(args, 1);
}

static void square_grid(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  *rows = *cols = whole(args, 0) * whole(args, 0);
}

static void cube_grid(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  *rows = *cols = whole(args, 0) * whole(args, 0) * whole(args, 0);
}

/* ---- simple shapes */

static int64_t empty_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  (void)args, (void)row, (void)cols;
  return 0;
}

static int64_t diagonal_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  return row < whole(args, 1) ? range_row(row, row + 1, cols) : 0;
}

static void one_row_size(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  *rows = 1;
  *cols = whole(args, 0);
}

static void one_column_size(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  *rows = whole(args, 0);
  *cols = 1;
}

static int64_t full_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  (void)row;
  return range_row(0, whole(args, 1), cols);
}

static int64_t one_row_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  (void)row;
  return range_row(0, whole(args, 0), cols);
}

static int64_t one_column_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  (void)args, (void)row;
  return range_row(0, 1, cols);
}

static int64_t dense_row_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  return row == whole(args, 1) ? range_row(0, whole(args, 0), cols) : range_row(row, row + 1, cols);
}

static int64_t dense_column_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t dense = whole(args, 1), low = row < dense ? row : dense, high = row < dense ? dense : row;
  if (dense >= whole(args, 0) || dense == row) return range_row(row, row + 1, cols);
  if (cols) {
    cols[0] = (int32_t)low;
    cols[1] = (int32_t)high;
  }
  return 2;
}

static int64_t arrow_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t n = whole(args, 0), width = whole(args, 1) < n ? whole(args, 1) : n;
  if (row < width) return range_row(0, n, cols);
  return put_range(cols, put_range(cols, 0, 0, width), row, row + 1);
}

static int64_t tridiagonal_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t n = whole(args, 0);
  return range_row(row ? row - 1 : 0, row + 2 < n ? row + 2 : n, cols);
}

static int64_t upper_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  return range_row(row, whole(args, 0), cols);
}

static int64_t staircase_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  (void)args;
  return range_row(0, row, cols);
}

static int64_t checker_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  int64_t count = 0;
  for (int64_t col = row & 1; col < whole(args, 1); col += 2, count++)
    if (cols) cols[count] = (int32_t)col;
  return count;
}

/* ---- random rows */

/* Lengths spread evenly around the mean, as far as both ends allow. */
static int64_t random_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const double width = args->value[1];
  double mean = args->value[3] >= 0 ? args->value[3] : args->value[2] * width;
  if (mean > width) mean = width;
  const double spread = mean < width - mean ? mean : width - mean;
  const double centred = 2 * cb_unit(cb_random(args->seed ^ 1, (uint64_t)row, 0)) - 1;
  double length =
      spread * centred; /* a statement for each rounding: no fused operation may change the result */
  length += mean;
  length += cb_unit(cb_random(args->seed ^ 1, (uint64_t)row, 1));
  return sample(args->seed, (uint64_t)row, (int64_t)length, 0, whole(args, 1), cols);
}

static int64_t uniform_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  return sample(args->seed, (uint64_t)row, whole(args, 2), 0, whole(args, 1), cols);
}

static int64_t band_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t n = whole(args, 0), half = whole(args, 1);
  const int64_t first = row > half ? row - half : 0, end = row + half + 1 < n ? row + half + 1 : n;
  return sample(args->seed, (uint64_t)row, whole(args, 2), first, end - first, cols);
}

static int64_t powerlaw_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t longest = whole(args, 2), least = whole(args, 3);
  const int64_t length = longest / (scramble(row, whole(args, 0)) + 1);
  return sample(args->seed, (uint64_t)row, length > least ? length : least, 0, whole(args, 1), cols);
}

static int64_t hypersparse_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  if (cb_unit(cb_random(args->seed ^ 1, (uint64_t)row, 0)) >= args->value[2]) return 0;
  return sample(args->seed, (uint64_t)row, whole(args, 3), 0, whole(args, 1), cols);
}

/* The long rows lie in the middle of equal runs of rows. */
static int64_t long_row_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t rows = whole(args, 0), many = whole(args, 3) < rows ? whole(args, 3) : rows;
  const int64_t run = many ? row * many / rows : 0;
  const int is_long = many && row == (2 * run + 1) * rows / (2 * many);
  return sample(args->seed, (uint64_t)row, whole(args, is_long ? 4 : 2), 0, whole(args, 1), cols);
}

static int64_t diagonals_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  enum { MOST = 256 };
  const int64_t n = whole(args, 0), spread = whole(args, 2);
  int32_t places[MOST];
  int64_t count = 0;
  const int64_t many = sample(args->seed, 0, whole(args, 1), 0, 2 * spread + 1, places);
  for (int64_t i = 0; i < many; i++) {
    const int64_t col = row + places[i] - spread;
    if (col < 0 || col >= n) continue;
    if (cb_unit(cb_random(args->seed ^ 2, (uint64_t)row, (uint64_t)places[i])) >= args->value[3]) continue;
    if (cols) cols[count] = (int32_t)col;
    count++;
  }
  return count;
}

/* ---- sub-blocks */

enum { SIDE = 16 };

static void exact_size(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  const int64_t full_rows = whole(args, 0) * SIDE, full_cols = whole(args, 1) * SIDE;
  *rows = full_rows > whole(args, 3) ? full_rows - whole(args, 3) : 0;
  *cols = full_cols > whole(args, 4) ? full_cols - whole(args, 4) : 0;
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
    const uint64_t block = (uint64_t)(row / SIDE * whole(args, 1) + first / SIDE);
    const int64_t here = exact_block_row(args->seed, block, whole(args, 2), row % SIDE, columns);
    for (int64_t i = 0; i < here; i++) {
      if (first + columns[i] >= width) continue;
      if (cols) cols[count] = (int32_t)(first + columns[i]);
      count++;
    }
  }
  return count;
}

static void block_size(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  *rows = whole(args, 0) * whole(args, 2);
  *cols = whole(args, 1) * whole(args, 3);
}

/* The entries of blocks, and `scattered` others. */
static int64_t block_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  enum { MOST = 256, MOST_WIDE = 64 };
  int32_t blocks[MOST], all[MOST * MOST_WIDE + MOST];
  const int64_t width = whole(args, 3);
  const uint64_t block_row = (uint64_t)(row / whole(args, 2));
  const int64_t many = sample(args->seed, block_row, whole(args, 4), 0, whole(args, 1), blocks);
  int64_t count = 0;
  for (int64_t i = 0; i < many * width; i++) {
    const int64_t col = blocks[i / width] * width + i % width;
    if (cb_unit(cb_random(args->seed ^ 1, (uint64_t)row, (uint64_t)col)) >= args->value[5]) continue;
    all[count++] = (int32_t)col;
  }
  if (whole(args, 6)) {
    count += sample(args->seed ^ 2, (uint64_t)row, whole(args, 6), 0, whole(args, 1) * width, all + count);
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
  const int64_t n = whole(args, 0), points = deep ? n * n * n : n * n;
  int32_t all[MOST];
  if (!whole(args, 1) && args->value[2] == 0) return grid_row(n, row, deep, star, 1, cols);
  int64_t count = whole(args, 1) ? torus_row(n, row, deep, star, all) : grid_row(n, row, deep, star, 1, all);
  if (cb_unit(cb_random(args->seed ^ 1, (uint64_t)row, 0)) < args->value[2])
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
  *rows *= whole(args, 1);
  *cols = *rows;
}

static int64_t fe3_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t unknowns = whole(args, 1);
  return grid_row(whole(args, 0), row / unknowns, 1, 0, unknowns, cols);
}

/* An edge belongs to its smaller end; direction 0 leads to the right, 1 down. */
static int road_kept(const struct cb_shape_args *args, int64_t node, int direction) {
  return cb_unit(cb_random(args->seed ^ 1, (uint64_t)node, (uint64_t)direction)) < args->value[1];
}

static int64_t road_row(const struct cb_shape_args *args, int64_t row, int32_t *cols) {
  const int64_t n = whole(args, 0);
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

/* ---- R-MAT (D. Chakrabarti, Y. Zhan, C. Faloutsos, "R-MAT: a recursive model for graph mining", 2004) */

static void rmat_size(const struct cb_shape_args *args, int64_t *rows, int64_t *cols) {
  *rows = *cols = (int64_t)1 << whole(args, 0);
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
  const int scale = (int)whole(args, 0);
  const int64_t edges = whole(args, 1) << scale;
  const double a = args->value[2], b = args->value[3], c = args->value[4];
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
#define STENCIL(standard, most) SIDE_OF_GRID(standard, most), {"periodic", 0, 0, 1, 0}, SHARE("extra", 0)

const struct cb_shape cb_shapes[] = {
    {.name = "empty", .help = "no nonzeros at all", .size = rectangle, .row = empty_row,
     .keys = {COUNT("rows", 100), COUNT("cols", CB_AS_FIRST)}},
    {.name = "diagonal", .help = "the main diagonal", .size = rectangle, .row = diagonal_row,
     .keys = {COUNT("n", 1000), COUNT("cols", CB_AS_FIRST)}},
    {.name = "one_row", .help = "a single full row", .size = one_row_size, .row = one_row_row,
     .keys = {COUNT("cols", 1000)}},
    {.name = "one_column", .help = "a single full column", .size = one_column_size, .row = one_column_row,
     .keys = {COUNT("rows", 1000)}},
    {.name = "dense", .help = "every entry", .size = rectangle, .row = full_row,
     .keys = {COUNT("rows", 100), COUNT("cols", CB_AS_FIRST)}},
    {.name = "dense_row", .help = "the diagonal and one full row", .size = square, .row = dense_row_row,
     .keys = {COUNT("n", 1000), COUNT("row", 0)}},
    {.name = "dense_column", .help = "the diagonal and one full column", .size = square, .row = dense_column_row,
     .keys = {COUNT("n", 1000), COUNT("col", 0)}},
    {.name = "random", .help = "rows of random length around a mean, given as density or per row",
     .size = rectangle, .row = random_row,
     .keys = {COUNT("rows", 1000), COUNT("cols", CB_AS_FIRST), SHARE("density", 0.01),
              {"per_row", CB_NOT_GIVEN, 0, INT32_MAX, 1}}},
    {.name = "random_exact", .help = "every 16 x 16 block has block_nnz nonzeros; cut drops last rows and columns",
     .size = exact_size, .row = exact_row,
     .keys = {{"blocks_r", 4, 0, INT32_MAX / SIDE, 0}, {"blocks_c", CB_AS_FIRST, 0, INT32_MAX / SIDE, 0},
              {"block_nnz", 32, 0, SIDE * SIDE, 0}, {"cut_rows", 0, 0, SIDE - 1, 0},
              {"cut_cols", 0, 0, SIDE - 1, 0}}},
    {.name = "uniform", .help = "per_row distinct random columns in every row", .size = rectangle,
     .row = uniform_row, .keys = {COUNT("n", 1000), COUNT("cols", CB_AS_FIRST), COUNT("per_row", 16)}},
    {.name = "band", .help = "per_row distinct random columns within half of the diagonal", .size = square,
     .row = band_row, .keys = {COUNT("n", 10000), COUNT("half", 2000), COUNT("per_row", 32)}},
    {.name = "diagonals", .help = "count random diagonals within spread of the main one, filled to a share",
     .size = square, .row = diagonals_row,
     .keys = {COUNT("n", 1000), {"count", 5, 0, 256, 0}, {"spread", 100, 0, INT32_MAX / 2 - 1, 0},
              SHARE("fill", 1)}},
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
     .row = fe3_row, .keys = {SIDE_OF_GRID(8, 600), {"dof", 3, 1, 9, 0}}},
    {.name = "road", .help = "n x n grid, each edge kept with a probability, both directions", .size = square_grid,
     .row = road_row, .keys = {SIDE_OF_GRID(64, 46340), SHARE("keep", 0.6)}},
    {.name = "rmat", .help = "R-MAT graph of 2^scale nodes, labels scrambled", .size = rmat_size,
     .entries = rmat_entries,
     .keys = {{"scale", 10, 0, 30, 0}, {"edge_factor", 16, 0, 1024, 0}, SHARE("a", 0.57), SHARE("b", 0.19),
              SHARE("c", 0.19)}},
    {.name = "arrow", .help = "diagonal, first rows and first columns", .size = square, .row = arrow_row,
     .keys = {COUNT("n", 1000), COUNT("width", 1)}},
    {.name = "tridiagonal", .help = "three diagonals", .size = square, .row = tridiagonal_row, .centre = 2,
     .keys = {COUNT("n", 1000)}},
    {.name = "powerlaw", .help = "row lengths max, max/2, max/3, ... in scrambled order, min at least",
     .size = rectangle, .row = powerlaw_row,
     .keys = {COUNT("rows", 1000), COUNT("cols", CB_AS_FIRST), COUNT("max", 500), COUNT("min", 1)}},
    {.name = "block", .help = "per_row random blocks of r x c in each block row, filled to a share, and scattered entries in each row",
     .size = block_size, .row = block_row,
     .keys = {{"blocks_r", 100, 0, INT32_MAX / 64, 0}, {"blocks_c", CB_AS_FIRST, 0, INT32_MAX / 64, 0},
              {"r", 3, 1, 64, 0}, {"c", 3, 1, 64, 0}, {"per_row", 8, 0, 256, 0}, SHARE("fill", 1),
              {"scattered", 0, 0, 256, 0}}},
    {.name = "hypersparse", .help = "a row is empty unless kept, then has per_row random columns",
     .size = rectangle, .row = hypersparse_row,
     .keys = {COUNT("rows", 100000), COUNT("cols", CB_AS_FIRST), SHARE("keep", 0.001), COUNT("per_row", 4)}},
    {.name = "checker", .help = "every second entry, as on a chess board", .size = rectangle, .row = checker_row,
     .keys = {COUNT("rows", 64), COUNT("cols", CB_AS_FIRST)}},
    {.name = "upper", .help = "upper triangle with the diagonal", .size = square, .row = upper_row,
     .keys = {COUNT("n", 100)}},
    {.name = "explicit_zeros", .help = "random rows, of whose values a share is zero", .size = rectangle,
     .row = random_row, .zero_share_at = 4,
     .keys = {COUNT("rows", 1000), COUNT("cols", CB_AS_FIRST), SHARE("density", 0.01),
              {"per_row", CB_NOT_GIVEN, 0, INT32_MAX, 1}, SHARE("zeros", 0.3)}},
    {.name = "staircase", .help = "row i has i nonzeros, from the left", .size = square, .row = staircase_row,
     .keys = {COUNT("n", 200)}},
    {.name = "long_row", .help = "short random rows and a few long ones among them", .size = rectangle,
     .row = long_row_row,
     .keys = {COUNT("rows", 10000), COUNT("cols", CB_AS_FIRST), COUNT("per_row", 4), COUNT("long_rows", 3),
              COUNT("long_length", 5000)}},
    {.name = NULL}};
/* clang-format on */
