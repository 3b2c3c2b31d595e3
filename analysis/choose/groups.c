// SPDX-License-Identifier: Apache-2.0
/* What is counted group by group: see profile.h. */
#include "analysis/choose/counting.h"

#include "analysis/stretches.h"
#include "base/integers.h"

#include <string.h>

enum { HALF = CB_CHOICE_GROUP / 2, RUN = CB_CHOICE_RUN, PARALLEL_NONZEROS = 1 << 15 };
enum { ALIGNED = 960 }; /* a multiple of 64, and of the columns of tiles of every size */

/* Room for numbers between the least and the greatest column of a group, where these are not far apart: places are
 * found without a search. */
struct dense {
  uint64_t *bits[2];  /* of each half: the columns that it has; between groups all zero, as the counts */
  uint8_t *counts;    /* by offset, of which a group's rows have one each at most */
  uint16_t *rounds;   /* by column or tile: the row, or the row of tiles, that had it last */
  uint16_t round;
  int32_t *column;    /* of tiles: as many as a group may have, and one */
  size_t most;        /* of columns */
};

/* A group while it is counted. */
struct group {
  struct cb_choice_profile *sums;
  const struct cb_choice_sample *sample;
  int64_t first, rows, nonzeros;
  int64_t across, down; /* of this group */
  int64_t twos; /* different tiles of 1 row and 2 columns */
  int64_t same[CB_CHOICE_GROUP]; /* columns of row i that the row below has, too */
  int64_t least, end;   /* its columns, from a multiple of ALIGNED on */
  int is_dense;
  struct cb_choice_row row[CB_CHOICE_GROUP];
  struct cb_tally *seen; /* SETS of them, for `most` nonzeros; of no use before a group that is not dense */
  int64_t most;
  struct dense *dense;
};

enum { SQUARES = 2 }; /* the first of cb_tile_sizes that are as wide as high */
enum { COLUMNS, BLOCKS, SECTORS_8, SECTORS_4, OFFSETS, TILES, SETS };

static int64_t length_of(const struct group *group, int64_t i) {
  return group->row[i].end - group->row[i].begin;
}

static void open_group(struct group *group, int64_t part) {
  const struct cb_choice_rows rows = cb_choice_group(group->sums, part);
  group->first = rows.first;
  group->rows = rows.end - rows.first;
  group->nonzeros = group->across = group->down = group->twos = 0;
  for (int64_t i = 0; i < group->rows; i++) {
    group->row[i] = cb_choice_row(group->sample, part, rows.first + i);
    group->nonzeros += length_of(group, i);
    group->sums->left_out += group->row[i].length - length_of(group, i);
  }
  group->sums->sampled_rows += group->rows;
  group->sums->sampled += group->nonzeros;
}

/* ---- neighbours */

static void count_along_row(struct group *group, int64_t i) {
  const int32_t *columns = group->sample->columns;
  const struct cb_choice_row row = group->row[i];
  struct cb_choice_profile *sums = group->sums;
  if (row.begin == row.end) return;
  int32_t across = 0, twos = 1, sectors[2] = {1, 1}, lines[2] = {1, 1}; /* a row that is not long has few */
  for (int64_t k = row.begin + 1; k < row.end; k++) {
    const uint32_t apart = (uint32_t)columns[k] ^ (uint32_t)columns[k - 1]; /* above the bits of a place within */
    across += columns[k] == columns[k - 1] + 1;
    twos += apart >> 1 != 0;
    sectors[0] += apart >> 2 != 0;
    sectors[1] += apart >> 3 != 0;
    lines[0] += apart >> 4 != 0;
    lines[1] += apart >> 5 != 0;
  }
  group->across += across;
  group->twos += twos;
  for (int narrow = 0; narrow < 2; narrow++) {
    sums->row_sectors[narrow] += sectors[narrow];
    sums->row_lines[narrow] += lines[narrow];
  }
}

/* Numbers for `count` rows, or rows of tiles: marks of the first stay until the last has its own. Returns the first. */
static uint16_t take_rounds(struct dense *dense, int count) {
  if (dense->round > UINT16_MAX - count) {
    memset(dense->rounds, 0, (dense->most + 1) * sizeof *dense->rounds);
    dense->round = 0;
  }
  dense->round = (uint16_t)(dense->round + count);
  return (uint16_t)(dense->round - count + 1);
}

/* Row i and the one below it: nonzeros whose column that has, too, and those whose next column it has. */
struct below {
  int64_t down, diagonal;
};

static struct below compare_below(const struct group *group, int64_t i) {
  const int32_t *columns = group->sample->columns;
  const struct cb_choice_row row = group->row[i], below = group->row[i + 1];
  int64_t down = 0, diagonal = 0, at = below.begin;
  for (int64_t k = row.begin; k < row.end && at < below.end; k++) {
    while (at < below.end && columns[at] < columns[k]) at++;
    const int same = at < below.end && columns[at] == columns[k];
    const int64_t next = at + same;
    down += same;
    diagonal += next < below.end && columns[next] == columns[k] + 1;
  }
  return (struct below){down, diagonal};
}

/* The same by marks of the row below, whose round is the one before; leaves those of row i. */
static struct below compare_below_densely(const struct group *group, int64_t i, uint16_t round) {
  uint16_t *rounds = group->dense->rounds;
  const int32_t least = (int32_t)group->least;
  const int32_t *at = group->sample->columns + group->row[i].begin;
  const int32_t *const end = group->sample->columns + group->row[i].end;
  int32_t down = 0, diagonal = 0;
  for (; at < end; at++) {
    down += rounds[*at - least] == round - 1;
    diagonal += rounds[*at - least + 1] == round - 1;
    rounds[*at - least] = round;
  }
  return (struct below){down, diagonal};
}

static void add_below(struct group *group, int64_t i, struct below found) {
  group->same[i] = found.down;
  group->down += found.down;
  group->sums->diagonal += found.diagonal;
  if (length_of(group, i) != length_of(group, i + 1) || found.down != length_of(group, i)) return;
  for (int size = 2; size <= CB_CHOICE_ALIKE; size++) group->sums->alike[size] += (group->first + i + 1) % size != 0;
}

/* Columns that are so few for each nonzero are as quickly gone over as nonzeros. */
enum { DENSE = 64, LEAST_DENSE = 1 << 14 };
static int64_t most_dense(int64_t nonzeros) { return DENSE * nonzeros + LEAST_DENSE; }

static void count_span(struct group *group) {
  const int32_t *columns = group->sample->columns;
  int64_t least = INT32_MAX, most = 0;
  for (int64_t i = 0; i < group->rows; i++) {
    if (!length_of(group, i)) continue;
    least = cb_smaller(least, columns[group->row[i].begin]);
    most = cb_larger(most, columns[group->row[i].end - 1]);
  }
  group->sums->spans[cb_choice_bin(cb_larger(0, most - least))]++;
  group->least = cb_smaller(least, most) / ALIGNED * ALIGNED;
  group->end = most + 1;
  group->is_dense = group->end - group->least <= most_dense(group->nonzeros);
}

/* Rows upwards, so that each finds the marks of the one below it. */
static void count_below(struct group *group) {
  const uint16_t first = (uint16_t)(take_rounds(group->dense, CB_CHOICE_GROUP + 1) + 1);
  for (int64_t i = group->rows - 1; i >= 0; i--) {
    const struct below found = compare_below_densely(group, i, (uint16_t)(first + group->rows - 1 - i));
    if (i + 1 < group->rows) add_below(group, i, found);
  }
}

static void count_neighbours(struct group *group) {
  for (int64_t i = 0; i < group->rows; i++) count_along_row(group, i);
  if (group->is_dense) count_below(group);
  for (int64_t i = 0; i + 1 < group->rows && !group->is_dense; i++) add_below(group, i, compare_below(group, i));
  cb_choice_add_aligned(group->sums->aligned, group->first, group->rows);
  group->sums->across += group->across;
  group->sums->down += group->down;
}

/* Ones by byte. A compiler that may not use the instruction would call a function. */
static uint64_t ones_by_byte(uint64_t bits) {
  bits -= bits >> 1 & 0x5555555555555555;
  bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
  return (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f;
}

static int64_t ones_in(uint64_t bits) { return (int64_t)(ones_by_byte(bits) * 0x0101010101010101 >> 56); }

/* ---- sectors and lines: nonzero k of all rows, for each k */

/* Lines that were met, by the last 8 bits of their numbers. */
struct lines {
  uint64_t met[4];
};

static void meet_line(struct lines *lines, int32_t line) {
  lines->met[line >> 6 & 3] |= UINT64_C(1) << (line & 63);
}

/* Of a group's rows: no more than a byte can count. */
static int64_t lines_met(const struct lines *lines) {
  uint64_t by_byte = 0;
  for (int i = 0; i < 4; i++) by_byte += ones_by_byte(lines->met[i]);
  return (int64_t)(by_byte * 0x0101010101010101 >> 56);
}
_Static_assert(CB_CHOICE_GROUP < 256, "the sum of all bytes is one");

static void count_steps(struct group *group) {
  const int32_t *columns = group->sample->columns;
  const int32_t *row[CB_CHOICE_GROUP]; /* those that are long enough */
  int64_t length[CB_CHOICE_GROUP], eights = 0, fours = 0, step = 0;
  int rows = 0;
  for (int64_t i = 0; i < group->rows; i++) {
    if (!length_of(group, i)) continue;
    row[rows] = columns + group->row[i].begin;
    length[rows++] = length_of(group, i);
  }
  while (rows) {
    int64_t shortest = INT64_MAX;
    for (int i = 0; i < rows; i++) shortest = cb_smaller(shortest, length[i]);
    for (; step < shortest; step++) {
      int32_t last = -1; /* in no sector */
      struct lines of_eights = {{0}}, of_fours = {{0}};
      for (int i = 0; i < rows; i++) {
        const int32_t column = row[i][step];
        eights += column >> 2 != last >> 2;
        fours += column >> 3 != last >> 3;
        meet_line(&of_eights, column >> 4);
        meet_line(&of_fours, column >> 5);
        last = column;
      }
      group->sums->step_lines[0] += lines_met(&of_eights);
      group->sums->step_lines[1] += lines_met(&of_fours);
    }
    int still = 0;
    for (int i = 0; i < rows; i++) {
      row[still] = row[i];
      length[still] = length[i];
      still += length[i] > step;
    }
    rows = still;
  }
  group->sums->step_sectors[0] += eights;
  group->sums->step_sectors[1] += fours;
}

/* ---- different columns, blocks, sectors and offsets */

static void see_column(struct group *group, int32_t column) {
  struct cb_choice_profile *sums = group->sums;
  if (cb_tally_add(&group->seen[COLUMNS], (uint32_t)column) > 1) return;
  sums->panel_columns++;
  sums->panel_blocks += cb_tally_add(&group->seen[BLOCKS], (uint32_t)column >> 4) == 1;
  sums->slice_sectors[0] += cb_tally_add(&group->seen[SECTORS_8], (uint32_t)column >> 2) == 1;
  sums->slice_sectors[1] += cb_tally_add(&group->seen[SECTORS_4], (uint32_t)column >> 3) == 1;
}

static void see_offset(struct group *group, int64_t i, int32_t column) {
  /* of one group offsets that are 2^31 apart cannot both occur 24 times, and counting less is enough to tell */
  const uint32_t offset = (uint32_t)(column - (group->first + i)) & 0x7fffffffu;
  const uint32_t count = cb_tally_add(&group->seen[OFFSETS], offset);
  if (count < RUN) return;
  group->sums->runs += count == RUN;
  group->sums->in_runs += count == RUN ? RUN : 1;
}

/* How many fields of `width` bits, a power of two up to 16, are not all zero. */
static int64_t fields_with(uint64_t bits, int width) {
  static const uint64_t lowest[] = {[2] = 0x5555555555555555, [4] = 0x1111111111111111, [8] = 0x0101010101010101,
                                    [16] = 0x0001000100010001};
  for (int apart = width / 2; apart > 0; apart /= 2) bits |= bits >> apart;
  return ones_in(bits & lowest[width]);
}

/* Leaves all bits zero, as it found them before the group's were set. */
static void sum_bits(struct group *group) {
  struct cb_choice_profile *sums = group->sums;
  const int64_t words = cb_divide_up(group->end - group->least, 64);
  for (int64_t w = 0; w < words; w++) {
    const uint64_t upper = group->dense->bits[0][w], lower = group->dense->bits[1][w], both = upper | lower;
    if (!both) continue;
    group->dense->bits[0][w] = group->dense->bits[1][w] = 0;
    sums->panel_columns += ones_in(upper) + ones_in(lower);
    sums->panel_blocks += fields_with(upper, 16) + fields_with(lower, 16);
    sums->slice_sectors[0] += fields_with(both, 4);
    sums->slice_sectors[1] += fields_with(both, 8);
  }
}

static void count_different_densely(struct group *group) {
  struct dense *dense = group->dense;
  const int32_t *columns = group->sample->columns;
  for (int64_t i = 0; i < group->rows; i++) {
    uint64_t *bits = dense->bits[i >= HALF];
    uint8_t *counts = dense->counts + CB_CHOICE_GROUP - 1 - i;
    for (int64_t k = group->row[i].begin; k < group->row[i].end; k++) {
      const int64_t column = columns[k] - group->least;
      bits[column >> 6] |= UINT64_C(1) << (column & 63);
      const int count = ++counts[column];
      if (count < RUN) continue;
      group->sums->runs += count == RUN;
      group->sums->in_runs += count == RUN ? RUN : 1;
    }
  }
  for (int64_t i = 0; i < group->rows; i++)
    for (int64_t k = group->row[i].begin; k < group->row[i].end; k++)
      dense->counts[columns[k] - group->least + CB_CHOICE_GROUP - 1 - i] = 0;
  sum_bits(group);
}

static void count_different(struct group *group) {
  if (group->is_dense) {
    count_different_densely(group);
    return;
  }
  for (int set = 0; set < SETS; set++) cb_tally_clear(&group->seen[set], group->nonzeros);
  for (int64_t i = 0; i < group->rows; i++) {
    if (i == HALF) {
      cb_tally_clear(&group->seen[COLUMNS], group->nonzeros);
      cb_tally_clear(&group->seen[BLOCKS], group->nonzeros);
    }
    for (int64_t k = group->row[i].begin; k < group->row[i].end; k++) {
      see_column(group, group->sample->columns[k]);
      see_offset(group, i, group->sample->columns[k]);
    }
  }
}

/* ---- tiles */

/* Those of one row of tiles: different numbers of tiles in its rows, each of which ascends. */
static int64_t count_tile_row(struct group *group, struct cb_tile_size size, int64_t first, int64_t nonzeros) {
  const int32_t *columns = group->sample->columns;
  const uint64_t factor = cb_tile_factor(size.cols);
  int64_t tiles = 0;
  cb_tally_clear(&group->seen[TILES], nonzeros);
  for (int i = 0; i < size.rows; i++) {
    uint32_t last = UINT32_MAX;
    for (int64_t k = group->row[first + i].begin; k < group->row[first + i].end; k++) {
      const uint32_t tile = cb_tile_column(columns[k], factor);
      if (tile == last) continue;
      last = tile;
      tiles += size.rows == 1 || cb_tally_add(&group->seen[TILES], tile) == 1;
    }
  }
  return tiles;
}

/* Different tiles of rows of tiles, one row after the other: their columns. */
struct tiles {
  int64_t first, rows; /* of the group; rows of tiles */
  int32_t begin[CB_CHOICE_GROUP + 1];
  int32_t *column; /* as many as the group has nonzeros have room */
};

/* Appends those of `cols` columns each that have not been seen in this round. */
static int32_t *add_tiles(const struct group *group, uint16_t round, const int32_t *at, const int32_t *end,
                          int32_t least, int cols, int32_t *to) {
  uint16_t *rounds = group->dense->rounds;
  const uint64_t factor = cb_tile_factor(cols);
  for (; at < end; at++) {
    const uint32_t tile = cb_tile_column(*at - least, factor);
    *to = (int32_t)tile;
    to += rounds[tile] != round;
    rounds[tile] = round;
  }
  return to;
}

/* Square tiles from nonzeros. Numbers count from the first column's, which a tile begins with. */
static void find_tiles(const struct group *group, int size, struct tiles *tiles) {
  const int32_t least = (int32_t)group->least, *columns = group->sample->columns;
  int32_t *to = tiles->column;
  tiles->first = cb_round_up(group->first, size) - group->first;
  tiles->rows = 0;
  for (int64_t row = tiles->first; row + size <= group->rows; row += size) {
    const uint16_t round = take_rounds(group->dense, 1);
    tiles->begin[tiles->rows++] = (int32_t)(to - tiles->column);
    for (int i = 0; i < size; i++)
      to = add_tiles(group, round, columns + group->row[row + i].begin, columns + group->row[row + i].end, least, size,
                     to);
  }
  tiles->begin[tiles->rows] = (int32_t)(to - tiles->column);
}

/* Tiles of `size` rows and columns from those of half of that. These are written over: there are never more. */
static void double_tiles(const struct group *group, int size, struct tiles *tiles) {
  const int64_t first = cb_round_up(group->first, size) - group->first;
  int64_t half = (first - tiles->first) / (size / 2), rows = 0;
  int32_t *to = tiles->column;
  for (int64_t row = first; row + size <= group->rows; row += size, half += 2) {
    const int32_t *const begin = tiles->column + tiles->begin[half];
    const int32_t *const end = tiles->column + tiles->begin[half + 2];
    tiles->begin[rows++] = (int32_t)(to - tiles->column);
    to = add_tiles(group, take_rounds(group->dense, 1), begin, end, 0, 2, to);
  }
  tiles->first = first;
  tiles->rows = rows;
  tiles->begin[rows] = (int32_t)(to - tiles->column);
}

/* Each size is found from those of half of it, if there are such. */
static void count_squares(struct group *group) {
  int64_t *sums = group->sums->tiles;
  struct tiles tiles = {.column = group->dense->column};
  enum { TWO = 2, THREE, FOUR, FIVE, SIX, EIGHT }; /* numbers in cb_tile_sizes */
  find_tiles(group, 2, &tiles);
  sums[TWO] += tiles.begin[tiles.rows];
  double_tiles(group, 4, &tiles);
  sums[FOUR] += tiles.begin[tiles.rows];
  double_tiles(group, 8, &tiles);
  sums[EIGHT] += tiles.begin[tiles.rows];
  find_tiles(group, 3, &tiles);
  sums[THREE] += tiles.begin[tiles.rows];
  double_tiles(group, 6, &tiles);
  sums[SIX] += tiles.begin[tiles.rows];
  find_tiles(group, 5, &tiles);
  sums[FIVE] += tiles.begin[tiles.rows];
}

/* Of pairs of rows: each column that both have is one tile instead of two. */
static int64_t count_pairs(const struct group *group) {
  int64_t tiles = 0;
  for (int64_t i = 0; i + 1 < group->rows; i += 2)
    tiles += length_of(group, i) + length_of(group, i + 1) - group->same[i];
  return tiles;
}

static int64_t count_squares_by_sets(struct group *group, struct cb_tile_size size, int64_t first, int64_t end) {
  int64_t tiles = 0;
  for (int64_t row = first; row < end; row += size.rows) {
    int64_t nonzeros = 0;
    for (int i = 0; i < size.rows; i++) nonzeros += length_of(group, row + i);
    tiles += count_tile_row(group, size, row, nonzeros);
  }
  return tiles;
}

/* A group begins with a multiple of 2. */
static void count_tiles(struct group *group, int number) {
  const struct cb_tile_size size = cb_tile_sizes[number];
  const int may = cb_choice_may_tile(size, group->across, group->down, group->nonzeros);
  const int64_t first = cb_smaller(cb_round_up(group->first, size.rows) - group->first, group->rows);
  const int64_t end = first + (group->rows - first) / size.rows * size.rows;
  int64_t nonzeros = 0;
  for (int64_t i = first; i < end; i++) nonzeros += length_of(group, i);
  group->sums->in_tiles[number] += nonzeros;
  if (!may) group->sums->tiles[number] += nonzeros;
  else if (size.rows == 1) group->sums->tiles[number] += group->twos;
  else if (size.cols == 1) group->sums->tiles[number] += count_pairs(group);
  else if (!group->is_dense) group->sums->tiles[number] += count_squares_by_sets(group, size, first, end);
  else if (number == SQUARES) count_squares(group); /* all of them */
}

/* Nonzeros of a part that are looked at. */
static int64_t nonzeros_of(const struct cb_choice_sample *sample, int64_t part, struct cb_choice_rows rows) {
  int64_t nonzeros = 0;
  for (int64_t row = rows.first; row < rows.end; row++) {
    const struct cb_choice_row found = cb_choice_row(sample, part, row);
    nonzeros += found.end - found.begin;
  }
  return nonzeros;
}

/* What is already open stays. 0: no memory. */
static int open_sets(const struct group *group) {
  for (int set = 0; set < SETS; set++)
    if (!group->seen[set].at && !cb_tally_open(&group->seen[set], group->most)) return 0;
  return 1;
}

static int count_group(struct group *group, int64_t part) {
  open_group(group, part);
  count_span(group);
  count_neighbours(group);
  if (!group->is_dense && !open_sets(group)) return 0;
  count_steps(group);
  count_different(group);
  for (int size = 0; size < CB_TILE_SIZES; size++) count_tiles(group, size);
  return 1;
}

/* For groups of up to `nonzeros`. 0: no memory. */
static int open_dense(struct dense *dense, int64_t nonzeros, int64_t cols) {
  const size_t most = (size_t)cb_smaller(most_dense(nonzeros), cols + ALIGNED), words = most / 64 + 1;
  dense->bits[0] = cb_calloc(words, sizeof *dense->bits[0]);
  dense->bits[1] = cb_calloc(words, sizeof *dense->bits[1]);
  dense->counts = cb_calloc(most + CB_CHOICE_GROUP, 1);
  dense->rounds = cb_calloc(most + 1, sizeof *dense->rounds); /* and of the column behind the last one */
  dense->column = cb_alloc((size_t)nonzeros + 1, sizeof *dense->column);
  dense->most = most;
  return dense->bits[0] && dense->bits[1] && dense->counts && dense->rounds && dense->column;
}

static void close_dense(struct dense *dense) {
  for (int half = 0; half < 2; half++) cb_free(dense->bits[half]);
  cb_free(dense->counts);
  cb_free(dense->rounds);
  cb_free(dense->column);
}

/* All that groups add are sums. */
static void add_sums(struct cb_choice_profile *sums, const struct cb_choice_profile *more) {
  int64_t *to = (int64_t *)sums;
  const int64_t *from = (const int64_t *)more;
  for (size_t i = 0; i < sizeof *sums / sizeof *to; i++) to[i] += from[i];
}
_Static_assert(sizeof(struct cb_choice_profile) % sizeof(int64_t) == 0, "a profile has 64-bit integers alone");

/* A thread's groups; their number and the matrix's shape are what `sums` has of its own until all are counted. */
static int count_share(struct cb_choice_profile *sums, const struct cb_choice_profile *profile,
                       const struct cb_choice_sample *sample, int64_t most) {
  struct cb_tally seen[SETS] = {{0}};
  struct dense dense = {.round = 0};
  struct group group = {.sums = sums, .sample = sample, .seen = seen, .most = most, .dense = &dense};
  int good = open_dense(&dense, most, profile->cols);
  *sums = (struct cb_choice_profile){.rows = profile->rows, .cols = profile->cols, .groups = profile->groups};
#pragma omp for schedule(dynamic, 4)
  for (int64_t i = 0; i < profile->groups; i++)
    if (good) good = count_group(&group, i);
  for (int set = 0; set < SETS; set++) cb_tally_close(&seen[set]);
  close_dense(&dense);
  sums->rows = sums->cols = sums->groups = 0;
  return good;
}

int cb_choice_count_groups(struct cb_choice_profile *profile, const struct cb_choice_sample *sample) {
  struct cb_choice_profile all = {0};
  int64_t most = 0, nonzeros = 0;
  int good = 1;
  for (int64_t i = 0; i < profile->groups; i++) {
    const int64_t own = nonzeros_of(sample, i, cb_choice_group(profile, i));
    most = cb_larger(most, own);
    nonzeros += own;
  }
#pragma omp parallel if (nonzeros >= PARALLEL_NONZEROS)
  {
    struct cb_choice_profile own;
    const int counted = count_share(&own, profile, sample, most);
#pragma omp critical(cb_choice_groups)
    {
      add_sums(&all, &own);
      good &= counted;
    }
  }
  add_sums(profile, &all);
  return good;
}

/* ---- wide groups */

static void count_wide_row(struct cb_choice_profile *profile, const int32_t *columns, struct cb_choice_row row,
                           struct cb_tally *eights, struct cb_tally *fours) {
  profile->in_wide += row.end - row.begin;
  for (int64_t k = row.begin; k < row.end; k++) {
    if (cb_tally_add(eights, (uint32_t)columns[k] >> 2) > 1) continue;
    profile->wide_sectors[0]++;
    profile->wide_sectors[1] += cb_tally_add(fours, (uint32_t)columns[k] >> 3) == 1;
  }
}

/* Of eight bytes that are 0 or 1: how many are 1, and how many pairs have one. */
static void add_marks(struct cb_choice_profile *profile, uint64_t marks) {
  const uint64_t pairs = (marks | marks >> 8) & 0x00ff00ff00ff00ff;
  profile->wide_sectors[0] += (int64_t)(marks * 0x0101010101010101 >> 56);
  profile->wide_sectors[1] += (int64_t)(pairs * 0x0001000100010001 >> 48);
}

/* The same by a byte for each sector of eights, of a wide group whose columns are not far apart: nothing is read of
 * what was just written. */
static void count_wide_densely(struct cb_choice_profile *profile, const struct cb_choice_sample *sample, int64_t part,
                               struct cb_choice_rows rows, struct cb_ends ends, unsigned char *marks) {
  const int64_t least = ends.first >> 5 << 3, eights = ((ends.last >> 2) - least) / 8 + 1;
  memset(marks, 0, (size_t)eights * 8);
  for (int64_t i = rows.first; i < rows.end; i++) {
    const struct cb_choice_row row = cb_choice_row(sample, part, i);
    const int32_t *const columns = sample->columns;
    profile->in_wide += row.end - row.begin;
    for (int64_t k = row.begin; k < row.end; k++) marks[(columns[k] >> 2) - least] = 1;
  }
  for (int64_t i = 0; i < eights; i++) {
    uint64_t of_eight;
    memcpy(&of_eight, marks + 8 * i, sizeof of_eight);
    if (of_eight) add_marks(profile, of_eight);
  }
}

/* The least and the greatest column. */
static struct cb_ends ends_of(const struct cb_choice_sample *sample, int64_t part, struct cb_choice_rows rows) {
  struct cb_ends ends = {INT32_MAX, 0};
  for (int64_t i = rows.first; i < rows.end; i++) {
    const struct cb_choice_row row = cb_choice_row(sample, part, i);
    if (row.begin == row.end) continue;
    ends.first = cb_smaller(ends.first, sample->columns[row.begin]);
    ends.last = cb_larger(ends.last, sample->columns[row.end - 1]);
  }
  return ends;
}

int cb_choice_count_wide(struct cb_choice_profile *profile, const struct cb_choice_sample *sample) {
  struct cb_tally eights = {0}, fours = {0};
  int64_t most = 0;
  for (int64_t i = 0; i < profile->wide_groups; i++)
    most = cb_larger(most, nonzeros_of(sample, profile->groups + i, cb_choice_wide(profile, i)));
  unsigned char *marks = cb_alloc((size_t)most_dense(most) / 4 + 16, 1);
  int good = marks != NULL;
  for (int64_t i = 0; i < profile->wide_groups && good; i++) {
    const struct cb_choice_rows rows = cb_choice_wide(profile, i);
    const int64_t part = profile->groups + i, nonzeros = nonzeros_of(sample, part, rows);
    const struct cb_ends ends = ends_of(sample, part, rows);
    if (ends.last >= ends.first && ends.last - ends.first < most_dense(nonzeros)) {
      count_wide_densely(profile, sample, part, rows, ends, marks);
      continue;
    }
    if (!eights.at) good = cb_tally_open(&eights, most) && cb_tally_open(&fours, most);
    if (!good) break;
    cb_tally_clear(&eights, nonzeros);
    cb_tally_clear(&fours, nonzeros);
    for (int64_t row = rows.first; row < rows.end; row++)
      count_wide_row(profile, sample->columns, cb_choice_row(sample, part, row), &eights, &fours);
  }
  cb_tally_close(&eights);
  cb_tally_close(&fours);
  cb_free(marks);
  return good;
}
