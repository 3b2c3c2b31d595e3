// SPDX-License-Identifier: Apache-2.0
/* Random matrices: see campaign_matrix.h. */
#include "bench/campaign_matrix.h"

#include <stdio.h>
#include <string.h>

/* ---- tables */

const struct campaign_precision campaign_precisions[] = {
    {"f64", CBGEN_F64, CBGEN_F64, CBGEN_F64, CBGEN_F64, 110},
    {"f32", CBGEN_F32, CBGEN_F32, CBGEN_F32, CBGEN_F32, 68},
    {"f32", CBGEN_F64, CBGEN_F32, CBGEN_F32, CBGEN_F32, 8},
    {"f32-f64", CBGEN_F32, CBGEN_F32, CBGEN_F64, CBGEN_F64, 4},
    {"f16-f32", CBGEN_F16, CBGEN_F16, CBGEN_F32, CBGEN_F32, 3},
    {"bf16-f32", CBGEN_BF16, CBGEN_BF16, CBGEN_F32, CBGEN_F32, 3},
    {"f16", CBGEN_F16, CBGEN_F16, CBGEN_F16, CBGEN_F32, 2},
    {"bf16", CBGEN_BF16, CBGEN_BF16, CBGEN_BF16, CBGEN_F32, 2},
};
enum { PRECISIONS = sizeof campaign_precisions / sizeof *campaign_precisions };
int campaign_precisions_count(void) {
  return PRECISIONS;
}

enum pattern {
  UNIFORM,
  SAME_LENGTH,
  POWER_LAW,
  DIAGONALS,
  BAND,
  GRID,
  BLOCKS,
  LONG_ROWS,
  DENSE_ROW,
  DENSE_COLUMN,
  DENSE,
  EMPTY_ROWS,
  EMPTY,
  REPEATED,
  HOT_COLUMNS,
  PATTERNS
};
const char *const campaign_patterns[] = {
    "uniform",   "same length",  "power law", "diagonals",  "band",  "grid",     "blocks",      "long rows",
    "dense row", "dense column", "dense",     "empty rows", "empty", "repeated", "hot columns", NULL};

enum size { TINY, SMALL, MIDDLE, LARGE, SIZES };
const char *const campaign_sizes[] = {"up to 8 rows", "up to 128", "up to 2048", "up to 6000", NULL};
static const int64_t size_limits[SIZES] = {8, 128, 2048, 6000};
enum { MOST_ENTRIES = 50000, MOST_COLUMNS = 140000 };

const char *const campaign_numbers_names[] = {"integers", "reals", "wide", "specials", "NaNs", NULL};
const char *const campaign_steps[] = {"first",       "second",           "repeated",   "by a clone",
                                      "specialised", "saved and loaded", "new values", NULL};

size_t campaign_size_of(cbgen_type type) {
  return type == CBGEN_F64 ? 8 : type == CBGEN_F32 ? 4 : 2;
}

struct campaign_shares campaign_usual_shares(void) {
  return (struct campaign_shares){.specialise = 2000, .others = 4000, .types = PRECISIONS};
}

void campaign_describe_shares(const struct campaign_shares *shares, char text[200]) {
  const struct campaign_shares usual = campaign_usual_shares();
  int used = 0;
  *text = 0;
  if (shares->specialise != usual.specialise) used += snprintf(text + used, 40, " --specialise %d", shares->specialise);
  if (shares->others != usual.others) used += snprintf(text + used, 40, " --others %d", shares->others);
  if (shares->types != usual.types) used += snprintf(text + used, 40, " --types %d", shares->types);
  if (shares->recipe) used += snprintf(text + used, 40, " --recipe %.20s", shares->recipe);
  if (shares->pack) snprintf(text + used, 40, " --pack %.20s", shares->pack);
}

/* ---- what is drawn */

struct dice {
  uint64_t seed, rolls;
};
static uint64_t roll(struct dice *dice) {
  return campaign_bits(dice->seed, dice->rolls++);
}
static int64_t below(struct dice *dice, int64_t bound) {
  return (int64_t)(roll(dice) % (uint64_t)bound);
}
static int one_in(struct dice *dice, int many) {
  return many && below(dice, many) == 0;
}

static int weighted(struct dice *dice, const int *weights, int count) {
  int64_t all = 0, at;
  int i = 0;
  for (int k = 0; k < count; k++) all += weights[k];
  for (at = below(dice, all); at >= weights[i]; at -= weights[i++]) continue;
  return i;
}

static void draw_shape(struct campaign_spec *spec, struct dice *dice) {
  static const int sizes[SIZES] = {12, 36, 42, 10};
  static const int patterns[PATTERNS] = {20, 8, 10, 12, 8, 6, 12, 5, 4, 4, 5, 8, 1, 6, 5};
  spec->size = weighted(dice, sizes, SIZES);
  spec->pattern = weighted(dice, patterns, PATTERNS);
  const int64_t limit = size_limits[spec->size], least = spec->size ? size_limits[spec->size - 1] + 1 : 1;
  spec->rows = least + below(dice, limit - least + 1);
  const int kind = (int)below(dice, 100);
  spec->cols = spec->rows;
  if (kind >= 60) spec->cols = 1 + below(dice, limit);
  if (kind >= 97) spec->cols = 1 + below(dice, MOST_COLUMNS);
  spec->per_row = 1 + (int)(one_in(dice, 4) ? below(dice, 120) : below(dice, 24));
  if (spec->pattern == DENSE && spec->rows * spec->cols > MOST_ENTRIES)
    spec->rows = 1 + below(dice, 1 + MOST_ENTRIES / spec->cols);
  while (spec->per_row > 1 && spec->rows * spec->per_row > MOST_ENTRIES / 2) spec->per_row /= 2;
}

static int draw_precision(struct dice *dice, int types) {
  int weights[PRECISIONS];
  for (int i = 0; i < types; i++) weights[i] = campaign_precisions[i].weight;
  return weighted(dice, weights, types);
}

/* Sums of duplicates are rounded to the stored type before they are multiplied, for which the bound has room only where
 * sums are of that type. */
static void draw_numbers(struct campaign_spec *spec, struct dice *dice) {
  const struct campaign_precision *precision = &campaign_precisions[spec->precision];
  const int rounds = precision->given != precision->sum;
  const int kind = (int)below(dice, 10);
  spec->values = kind < 4 ? CAMPAIGN_INTEGERS : kind < 8 ? CAMPAIGN_REALS : CAMPAIGN_WIDE;
  if (spec->duplicates && rounds) spec->values = CAMPAIGN_INTEGERS;
  spec->x = spec->values;
  spec->y = spec->values;
  if (one_in(dice, 8) && !spec->duplicates) spec->x = CAMPAIGN_SPECIALS; /* two infinite terms are not their sum */
  if (one_in(dice, 16)) spec->y = CAMPAIGN_SPECIALS;
  spec->zeros = one_in(dice, 6);
}

static void draw_form(struct campaign_spec *spec, struct dice *dice) {
  spec->row_bits = one_in(dice, 8) ? 64 : 32;
  spec->col_bits = one_in(dice, 8) ? 64 : 32;
  spec->base = one_in(dice, 8);
  spec->memory = below(dice, 2) ? CBGEN_DEVICE : CBGEN_HOST;
  spec->duplicates = one_in(dice, 8);
  spec->unsorted = one_in(dice, 8);
  spec->transposed = one_in(dice, 12);
}

/* Recipes whose layouts have families. With pack=device, auto chooses among these alone. */
static void draw_recipe(struct campaign_spec *spec, struct dice *dice, const struct campaign_shares *shares) {
  static const char *const others[] = {"auto", "hot",  "phases", "cb",         "cb-long", "slices", "patterns", "fill",
                                       "runs", "tile", "tiles",  "tile-defer", "hotcold", "du",     "se"};
  static const char *const with[] = {"sell", "merge", "sell-long"}, *const packs[] = {"auto", "host", "device"};
  const int kind = (int)below(dice, 20);
  const int dia = spec->pattern == DIAGONALS || spec->pattern == BAND || spec->pattern == GRID;
  spec->pack = packs[below(dice, 3)];
  if (one_in(dice, shares->others)) {
    spec->recipe = others[below(dice, sizeof others / sizeof *others)];
    return;
  }
  spec->recipe = with[kind % 3];
  if (kind % 3 == 0 && dia) spec->recipe = "dia";
  if (kind % 3 == 0 && (spec->pattern == BLOCKS || spec->pattern == DENSE)) spec->recipe = "blocks";
  if (kind < 10 && !spec->transposed && !spec->unsorted && !spec->duplicates) {
    spec->recipe = "auto";
    spec->pack = "device";
  }
  if (shares->recipe) spec->recipe = shares->recipe;
  if (shares->pack) spec->pack = shares->pack;
}

static void draw_products(struct campaign_spec *spec, struct dice *dice, const struct campaign_shares *shares) {
  static const double factors[][2] = {{1, 0},       {1, 1},     {-1, 0},          {2, -3},
                                      {0.75, -0.5}, {-1.25, 0}, {0.001953125, 1}, {0, 2}};
  static const double plain[][2] = {{1, 0}, {1, 1}};
  static const char *const forms[] = {"axpby", "ax", "add"};
  const int form = one_in(dice, 3) ? 1 + (int)below(dice, 2) : 0;
  spec->form = forms[form];
  for (int i = 0; i < 2; i++) {
    const double *const drawn = form ? plain[form - 1] : factors[below(dice, sizeof factors / sizeof *factors)];
    spec->alpha[i] = drawn[0];
    spec->beta[i] = drawn[1];
  }
  spec->steps = 1 << CAMPAIGN_FIRST;
  if (below(dice, 2)) spec->steps |= 1 << CAMPAIGN_SECOND;
  if (one_in(dice, 16)) spec->steps |= 1 << CAMPAIGN_REPEAT;
  if (one_in(dice, 64)) spec->steps |= 1 << CAMPAIGN_CLONE;
  if (one_in(dice, shares->specialise)) spec->steps |= 1 << CAMPAIGN_SPECIALISE;
  if (one_in(dice, 64)) spec->steps |= 1 << CAMPAIGN_SAVED;
  if (one_in(dice, 8)) spec->steps |= 1 << CAMPAIGN_UPDATE;
  spec->update_from_host = (int)below(dice, 2);
}

struct campaign_spec campaign_spec_of(uint64_t seed, uint64_t number, const struct campaign_shares *shares) {
  struct dice dice = {campaign_bits(seed, number), 0};
  struct campaign_spec spec = {.number = number, .seed = roll(&dice)};
  spec.precision = draw_precision(&dice, shares->types);
  draw_shape(&spec, &dice);
  draw_form(&spec, &dice);
  draw_numbers(&spec, &dice);
  draw_recipe(&spec, &dice, shares);
  draw_products(&spec, &dice, shares);
  return spec;
}

void campaign_describe(const struct campaign_spec *spec, char text[400]) {
  snprintf(text, 400,
           "%lld x %lld, %s, %d a row; %s (given in %d bytes) of %s, x %s, y %s%s%s%s%s; %d/%d bits from %d on the %s; "
           "recipe=%s pack=%s form=%s, "
           "%g A x + %g y, %g A x + %g y",
           (long long)spec->rows, (long long)spec->cols, campaign_patterns[spec->pattern], spec->per_row,
           campaign_precisions[spec->precision].type, (int)campaign_size_of(campaign_precisions[spec->precision].given),
           campaign_numbers_names[spec->values], campaign_numbers_names[spec->x], campaign_numbers_names[spec->y],
           spec->zeros ? ", zeros" : "", spec->duplicates ? ", duplicates" : "", spec->unsorted ? ", unsorted" : "",
           spec->transposed ? ", transposed" : "", spec->row_bits, spec->col_bits, spec->base,
           spec->memory == CBGEN_DEVICE ? "device" : "host", spec->recipe, spec->pack, spec->form, spec->alpha[0],
           spec->beta[0], spec->alpha[1], spec->beta[1]);
}

/* ---- room */

ptrdiff_t campaign_take(struct campaign_room *room, size_t bytes) {
  enum { ALIGN = 256 };
  const size_t at = (room->used + ALIGN - 1) / ALIGN * ALIGN;
  if (at > room->size || bytes > room->size - at) return CAMPAIGN_NO_ROOM;
  room->used = at + bytes;
  return (ptrdiff_t)at;
}

/* ---- columns: of one row, ascending, each once; how many, at most `most` */

struct rows {
  const struct campaign_spec *spec;
  struct dice dice;
  int64_t row;
  int32_t *columns;
  int64_t most;
};

/* About `wanted` columns of first … first + width - 1. */
static int64_t spread_columns(struct rows *rows, int64_t wanted, int64_t first, int64_t width) {
  int64_t count = 0;
  if (wanted > width) wanted = width;
  if (wanted <= 0) return 0;
  const int64_t step = 2 * (width / wanted) - 1; /* as long as it is drawn from, columns are so far apart in the mean */
  for (int64_t c = first + below(&rows->dice, step); c < first + width && count < rows->most;
       c += 1 + below(&rows->dice, step))
    rows->columns[count++] = (int32_t)c;
  return count;
}

static int64_t all_columns(struct rows *rows) {
  for (int64_t c = 0; c < rows->spec->cols; c++) rows->columns[c] = (int32_t)c;
  return rows->spec->cols;
}

static int64_t band_columns(struct rows *rows) {
  const struct campaign_spec *spec = rows->spec;
  const int64_t first = rows->row < spec->cols ? rows->row : 0, left = spec->cols - first;
  return spread_columns(rows, spec->per_row, first, left < 3 * spec->per_row ? left : 3 * spec->per_row);
}

/* Half of all, or fewer where rows like this one would have too many entries together. */
static int64_t long_columns(struct rows *rows) {
  const struct campaign_spec *spec = rows->spec;
  const int64_t most = 1 + 60 * (int64_t)MOST_ENTRIES / (spec->rows + 60);
  return spread_columns(rows, spec->cols / 2 < most ? spec->cols / 2 : most, 0, spec->cols);
}

/* The first, and some of the others. */
static int64_t one_and_more(struct rows *rows, int64_t wanted) {
  rows->columns[0] = 0;
  rows->columns++;
  const int64_t count = 1 + spread_columns(rows, wanted, 1, rows->spec->cols - 1);
  rows->columns--;
  return count;
}

static int64_t repeated_columns(struct rows *rows, uint64_t which) {
  const struct dice kept = rows->dice;
  rows->dice = (struct dice){rows->spec->seed + which, 0};
  const int64_t count = spread_columns(rows, rows->spec->per_row, 0, rows->spec->cols);
  rows->dice = kept;
  return count;
}

static int64_t diagonal_columns(struct rows *rows) {
  const struct campaign_spec *spec = rows->spec;
  const int64_t diagonals = 1 + spec->per_row % 9, apart = 1 + spec->per_row % 37;
  const int full = spec->seed & 1;
  int64_t count = 0;
  for (int64_t d = 0; d < diagonals; d++) {
    const int64_t column = rows->row + (d - diagonals / 2) * apart;
    if (column >= 0 && column < spec->cols && (full || roll(&rows->dice) % 8)) rows->columns[count++] = (int32_t)column;
  }
  return count;
}

static int64_t grid_columns(struct rows *rows) { /* five points */
  const struct campaign_spec *spec = rows->spec;
  int64_t side = 1, count = 0;
  while ((side + 1) * (side + 1) <= spec->rows) side++;
  const int64_t offsets[] = {-side, -1, 0, 1, side};
  for (int i = 0; i < 5; i++) {
    const int64_t column = rows->row + offsets[i], at = rows->row % side;
    if ((i == 1 && !at) || (i == 3 && at == side - 1) || column < 0 || column >= spec->cols) continue;
    if (!count || rows->columns[count - 1] < column) rows->columns[count++] = (int32_t)column;
  }
  return count;
}

/* The same for all rows of a row of blocks, or nearly. Most blocks are of usual sizes: each size has families of its own,
 * and those of others are compiled. */
static int64_t block_columns(struct rows *rows) {
  static const int sizes[8][2] = {{2, 2}, {3, 3}, {4, 4}, {6, 6}, {1, 4}, {2, 1}, {2, 4}, {5, 5}};
  const struct campaign_spec *spec = rows->spec;
  const int *const usual = sizes[(spec->seed >> 8) % 8], is_usual = (spec->seed >> 32) % 16 != 0;
  const int64_t height = is_usual ? usual[0] : 1 + (int64_t)((spec->seed >> 8) % 6);
  const int64_t width = is_usual ? usual[1] : 1 + (int64_t)((spec->seed >> 16) % 6);
  const int holes = spec->seed >> 24 & 1;
  struct dice dice = {spec->seed + 77 * (uint64_t)(rows->row / height), 0};
  const int64_t all = spec->cols / width, blocks = 1 + spec->per_row / width;
  int64_t count = 0;
  if (!all) return 0;
  for (int64_t b = below(&dice, 1 + all / blocks); b < all; b += 1 + below(&dice, 2 * all / blocks + 1))
    for (int64_t c = b * width; c < (b + 1) * width && count < rows->most; c++)
      if (!holes || roll(&rows->dice) % 16) rows->columns[count++] = (int32_t)c;
  return count;
}

static int64_t draw_columns(struct rows *rows) {
  const struct campaign_spec *spec = rows->spec;
  const int64_t per_row = spec->per_row, cols = spec->cols;
  const uint64_t h = roll(&rows->dice);
  switch (spec->pattern) {
  case SAME_LENGTH:
    return spread_columns(rows, per_row, 0, cols);
  case POWER_LAW:
    return spread_columns(rows, 1 + per_row * 64 / (1 + (int64_t)(h % 256)), 0, cols);
  case DIAGONALS:
    return diagonal_columns(rows);
  case BAND:
    return band_columns(rows);
  case GRID:
    return grid_columns(rows);
  case BLOCKS:
    return block_columns(rows);
  case LONG_ROWS:
    return h % 61 ? spread_columns(rows, 1 + per_row / 4, 0, cols) : long_columns(rows);
  case DENSE_ROW:
    return rows->row == (int64_t)(spec->seed % (uint64_t)spec->rows) ? all_columns(rows)
                                                                     : spread_columns(rows, 1 + per_row / 8, 0, cols);
  case DENSE_COLUMN:
    return one_and_more(rows, per_row / 4);
  case DENSE:
    return all_columns(rows);
  case EMPTY_ROWS:
    return h % 7 ? 0 : spread_columns(rows, per_row, 0, cols);
  case EMPTY:
    return 0;
  case REPEATED:
    return repeated_columns(rows, h % 5);
  case HOT_COLUMNS:
    return spread_columns(rows, per_row, 0, h % 4 ? 1 + cols / 16 : cols);
  default:
    return spread_columns(rows, (int64_t)(h % (uint64_t)(2 * per_row + 1)), 0, cols);
  }
}

/* ---- a row's entries as they are handed over: some columns several times, in any order */

static int64_t repeat_columns(int32_t *columns, int64_t count, int64_t most, struct dice *dice) {
  int64_t more = 0;
  for (int64_t i = 0; i < count && count + more < most; i++)
    if (roll(dice) % 4 == 0) columns[count + more++] = columns[i];
  return count + more;
}

static void shuffle(int32_t *columns, int64_t count, struct dice *dice) {
  for (int64_t i = count - 1; i > 0; i--) {
    const int64_t other = below(dice, i + 1);
    const int32_t kept = columns[i];
    columns[i] = columns[other];
    columns[other] = kept;
  }
}

static void sort(int32_t *columns, int64_t count) { /* nearly sorted already */
  for (int64_t i = 1; i < count; i++) {
    const int32_t column = columns[i];
    int64_t at = i;
    for (; at > 0 && columns[at - 1] > column; at--) columns[at] = columns[at - 1];
    columns[at] = column;
  }
}

static int64_t make_row(struct rows *rows) {
  const struct campaign_spec *spec = rows->spec;
  int64_t count = spec->cols ? draw_columns(rows) : 0;
  if (spec->duplicates && count <= 4096) {
    count = repeat_columns(rows->columns, count, rows->most, &rows->dice);
    if (!spec->unsorted) sort(rows->columns, count);
  }
  if (spec->unsorted) shuffle(rows->columns, count, &rows->dice);
  return count;
}

/* ---- the matrix */

/* Row pointers and columns. The columns are written behind what the room holds, then taken. */
static int make_pattern(struct campaign_matrix *matrix, struct campaign_room *room) {
  const struct campaign_spec *spec = &matrix->spec;
  matrix->starts = campaign_take(room, (size_t)(spec->rows + 1) * 4);
  matrix->columns = campaign_take(room, 0);
  if (matrix->starts < 0 || matrix->columns < 0) return 0;
  int32_t *const starts = (int32_t *)(void *)(room->host + matrix->starts);
  int32_t *const columns = (int32_t *)(void *)(room->host + matrix->columns);
  const int64_t most = (int64_t)(room->size - room->used) / 4;
  struct rows rows = {.spec = spec, .dice = {spec->seed, 1000}};
  starts[0] = 0;
  for (int64_t row = 0; row < spec->rows; row++) {
    rows.row = row;
    rows.columns = columns + starts[row];
    rows.most = most - starts[row];
    if (rows.most < 2 * spec->cols + 64) return 0;
    starts[row + 1] = starts[row] + (int32_t)make_row(&rows);
  }
  matrix->entries = starts[spec->rows];
  room->used += (size_t)matrix->entries * 4;
  return 1;
}

static void put_number(unsigned char *to, cbgen_type type, int64_t k, uint64_t bits) {
  if (type == CBGEN_F64)
    ((uint64_t *)(void *)to)[k] = bits;
  else if (type == CBGEN_F32)
    ((uint32_t *)(void *)to)[k] = (uint32_t)bits;
  else
    ((uint16_t *)(void *)to)[k] = (uint16_t)bits;
}

static int make_values(struct campaign_matrix *matrix, struct campaign_room *room, ptrdiff_t *place, uint64_t seed) {
  const struct campaign_spec *spec = &matrix->spec;
  const cbgen_type type = campaign_precisions[spec->precision].given;
  *place = campaign_take(room, (size_t)matrix->entries * campaign_size_of(type));
  if (*place < 0) return 0;
  for (int64_t k = 0; k < matrix->entries; k++) {
    const uint64_t h = campaign_bits(seed, (uint64_t)k);
    put_number(room->host + *place, type, k,
               spec->zeros && (h >> 4) % 8 == 0 ? 0 : campaign_number((int)type, spec->values, h));
  }
  return 1;
}

/* ---- as it is handed over */

static void put_integer(unsigned char *to, int bits, int64_t i, int64_t value) {
  if (bits == 64)
    ((int64_t *)(void *)to)[i] = value;
  else
    ((int32_t *)(void *)to)[i] = (int32_t)value;
}

/* Another width, another base: arrays of their own. */
static int copy_integers(const struct campaign_room *from_room, ptrdiff_t from, int64_t count, int bits, int base,
                         struct campaign_room *room, ptrdiff_t *place) {
  const int32_t *const numbers = (const int32_t *)(const void *)(from_room->host + from);
  *place = from;
  if (bits == 32 && !base) return 1;
  *place = campaign_take(room, (size_t)count * (size_t)bits / 8);
  if (*place < 0) return 0;
  for (int64_t i = 0; i < count; i++) put_integer(room->host + *place, bits, i, numbers[i] + base);
  return 1;
}

static void move_number(unsigned char *to, const unsigned char *from, size_t size, int64_t at, int64_t k) {
  memcpy(to + (size_t)at * size, from + (size_t)k * size, size);
}

/* Where each column's entries begin in the matrix turned round. */
static void count_columns(const struct campaign_matrix *matrix, const int32_t *columns, int32_t *starts) {
  const int64_t cols = matrix->spec.cols;
  memset(starts, 0, (size_t)(cols + 1) * 4);
  for (int64_t k = 0; k < matrix->entries; k++) starts[columns[k] + 1]++;
  for (int64_t c = 0; c < cols; c++) starts[c + 1] += starts[c];
}

/* The matrix turned round, in plain arrays; `next`: room for cols + 1 numbers. Duplicates keep their order. */
static int turn(struct campaign_matrix *matrix, struct campaign_room *room) {
  const struct campaign_spec *spec = &matrix->spec;
  const size_t size = campaign_size_of(campaign_precisions[spec->precision].given),
               columns_bytes = (size_t)(spec->cols + 1) * 4;
  const int renews = matrix->new_values >= 0;
  matrix->given_starts = campaign_take(room, columns_bytes);
  matrix->given_columns = campaign_take(room, (size_t)matrix->entries * 4);
  matrix->given_values = campaign_take(room, (size_t)matrix->entries * size);
  if (renews) matrix->given_new_values = campaign_take(room, (size_t)matrix->entries * size);
  const ptrdiff_t next_at = campaign_take(room, columns_bytes);
  if (matrix->given_starts < 0 || matrix->given_columns < 0 || matrix->given_values < 0 || next_at < 0 ||
      (renews && matrix->given_new_values < 0))
    return 0;
  unsigned char *const host = room->host;
  const int32_t *const starts = (const int32_t *)(const void *)(host + matrix->starts);
  const int32_t *const columns = (const int32_t *)(const void *)(host + matrix->columns);
  int32_t *const next = (int32_t *)(void *)(host + next_at), *const rows =
                                                                 (int32_t *)(void *)(host + matrix->given_columns);
  count_columns(matrix, columns, next);
  memcpy(host + matrix->given_starts, next, columns_bytes);
  for (int64_t row = 0; row < spec->rows; row++)
    for (int64_t k = starts[row]; k < starts[row + 1]; k++) {
      const int64_t at = next[columns[k]]++;
      rows[at] = (int32_t)row;
      move_number(host + matrix->given_values, host + matrix->values, size, at, k);
      if (renews) move_number(host + matrix->given_new_values, host + matrix->new_values, size, at, k);
    }
  return 1;
}

static int hand_over(struct campaign_matrix *matrix, struct campaign_room *room) {
  const struct campaign_spec *spec = &matrix->spec;
  const int64_t rows = spec->transposed ? spec->cols : spec->rows;
  matrix->given_starts = matrix->starts;
  matrix->given_columns = matrix->columns;
  matrix->given_values = matrix->values;
  matrix->given_new_values = matrix->new_values;
  if (spec->transposed && !turn(matrix, room)) return 0;
  return copy_integers(room, matrix->given_starts, rows + 1, spec->row_bits, spec->base, room, &matrix->given_starts) &&
         copy_integers(room, matrix->given_columns, matrix->entries, spec->col_bits, spec->base, room,
                       &matrix->given_columns);
}

int campaign_make(struct campaign_matrix *matrix, const struct campaign_spec *spec, struct campaign_room *room) {
  const size_t used = room->used;
  *matrix = (struct campaign_matrix){.spec = *spec, .new_values = CAMPAIGN_NO_ROOM};
  const int renews = spec->steps >> CAMPAIGN_UPDATE & 1;
  if (make_pattern(matrix, room) && make_values(matrix, room, &matrix->values, spec->seed + 1) &&
      (!renews || make_values(matrix, room, &matrix->new_values, spec->seed + 2)) && hand_over(matrix, room))
    return 1;
  room->used = used;
  return 0;
}

cbgen_csr campaign_view(const struct campaign_matrix *matrix, const struct campaign_room *room, void *stream) {
  const struct campaign_spec *spec = &matrix->spec;
  const uintptr_t base = spec->memory == CBGEN_HOST ? (uintptr_t)room->host : (uintptr_t)room->device;
  return (cbgen_csr){.struct_size = sizeof(cbgen_csr),
                     .rows = spec->transposed ? spec->cols : spec->rows,
                     .cols = spec->transposed ? spec->rows : spec->cols,
                     .nnz = matrix->entries,
                     .row_ptr = (const void *)(base + (uintptr_t)matrix->given_starts),
                     .col_idx = (const void *)(base + (uintptr_t)matrix->given_columns),
                     .values = (const void *)(base + (uintptr_t)matrix->given_values),
                     .row_ptr_bits = spec->row_bits,
                     .col_idx_bits = spec->col_bits,
                     .index_base = spec->base,
                     .value_type = campaign_precisions[spec->precision].given,
                     .memory = spec->memory,
                     .stream = stream};
}
