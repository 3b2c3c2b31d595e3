// SPDX-License-Identifier: Apache-2.0
/* What repeats from group to group: diagonals, and rows' patterns. See profile.h. */
#include "analysis/choose/counting.h"

#include "base/integers.h"

#include <stdlib.h>

enum { RANGES = 1 << 15, MOST_OFFSETS = 1024, NONE = -1 };

/* ---- diagonals: each one; of many first whole ranges of them, then each one of ranges that are full enough */

struct diagonal {
  int64_t key, count, places; /* key: offset + rows - 1 */
};

struct diagonals {
  const struct cb_choice_profile *profile;
  const struct cb_choice_sample *sample;
  int64_t keys, least;
  int log2;       /* of the keys of a range */
  int64_t ranges; /* RANGES at most */
  int32_t *range; /* sums, then numbers of ranges that are full enough, or NONE */
  int64_t numbers;
  int32_t *counts;   /* by key within numbered ranges; NULL while ranges are counted */
  int64_t *row_sums; /* rows in groups before each; groups + 1 */
};

/* Of what the counters might lie over, nothing is read in the loops. */
static void count_offsets(const struct diagonals *diagonals, int64_t part, int64_t row) {
  const struct cb_choice_row found = cb_choice_row(diagonals->sample, part, row);
  const int32_t *at = diagonals->sample->columns + found.begin, *const end = diagonals->sample->columns + found.end;
  const int64_t shift = diagonals->profile->rows - 1 - row, within = (INT64_C(1) << diagonals->log2) - 1;
  const int log2 = diagonals->log2;
  int32_t *const ranges = diagonals->range;
  int32_t *const counts = diagonals->counts;
  if (!counts)
    for (; at < end; at++) ranges[(*at + shift) >> log2]++;
  for (; at < end; at++) {
    const int64_t key = *at + shift, range = ranges[key >> log2];
    if (range != NONE) counts[(range << log2) + (key & within)]++;
  }
}

static void count_all_offsets(const struct diagonals *diagonals) {
  for (int64_t i = 0; i < diagonals->profile->groups; i++) {
    const struct cb_choice_rows rows = cb_choice_group(diagonals->profile, i);
    for (int64_t row = rows.first; row < rows.end; row++) count_offsets(diagonals, i, row);
  }
}

/* Sampled rows below `row`. Groups ascend. */
static int64_t sampled_below(const struct diagonals *diagonals, int64_t row) {
  int64_t low = 0, high = diagonals->profile->groups;
  while (low < high) { /* the first group that begins at `row` or behind */
    const int64_t middle = (low + high) / 2;
    if (cb_choice_group(diagonals->profile, middle).first < row)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low) return 0;
  const struct cb_choice_rows last = cb_choice_group(diagonals->profile, low - 1);
  return diagonals->row_sums[low - 1] + cb_smaller(row, last.end) - last.first;
}

/* Sampled rows that the diagonal crosses. */
static int64_t places_of(const struct diagonals *diagonals, int64_t key) {
  const struct cb_choice_profile *profile = diagonals->profile;
  const int64_t offset = key - (profile->rows - 1);
  const int64_t first = cb_larger(0, -offset), end = cb_smaller(profile->rows, profile->cols - offset);
  return first < end ? sampled_below(diagonals, end) - sampled_below(diagonals, first) : 0;
}

static int compare(const void *a, const void *b) {
  const struct diagonal *one = a, *other = b;
  if (one->count != other->count) return one->count > other->count ? -1 : 1;
  return one->key < other->key ? -1 : one->key > other->key;
}

enum { AT_ONCE = 16 }; /* counts that are compared together */
static int any_of(const int32_t *counts, int32_t least) {
  int any = 0;
  for (int i = 0; i < AT_ONCE; i++) any |= counts[i] >= least;
  return any;
}

/* Populated diagonals of `width` keys from `first` on, of which `counts` are the nonzeros, go behind the `count` that
 * are listed; returns how many are then. */
static int64_t list_keys(const struct diagonals *diagonals, int64_t first, int64_t width, const int32_t *counts,
                         struct diagonal *list, int64_t count) {
  const int32_t least = (int32_t)diagonals->least;
  for (int64_t i = 0; i < width; i++) {
    if (i % AT_ONCE == 0 && i + AT_ONCE <= width && !any_of(counts + i, least)) i += AT_ONCE;
    if (i >= width || counts[i] < least) continue;
    const struct diagonal one = {first + i, counts[i], places_of(diagonals, first + i)};
    if (one.count * 2 >= one.places && one.places * 2 >= diagonals->profile->sampled_rows) list[count++] = one;
  }
  return count;
}

static int64_t list_ranges(const struct diagonals *diagonals, struct diagonal *list) {
  const int64_t width = INT64_C(1) << diagonals->log2;
  int64_t count = 0;
  for (int64_t range = 0; range < diagonals->ranges; range++) {
    const int64_t first = range << diagonals->log2;
    if (diagonals->range[range] == NONE) continue;
    count = list_keys(diagonals, first, cb_smaller(width, diagonals->keys - first),
                      diagonals->counts + ((int64_t)diagonals->range[range] << diagonals->log2), list, count);
  }
  return count;
}

static void sum_diagonals(struct cb_choice_profile *profile, struct diagonal *list, int64_t count) {
  qsort(list, (size_t)count, sizeof *list, compare);
  profile->diagonals = cb_smaller(count, CB_CHOICE_DIAGONALS);
  for (int64_t i = 0; i < profile->diagonals; i++) {
    profile->in_diagonals += list[i].count;
    profile->diagonal_places += list[i].places;
  }
}

/* A range that has a quarter of the sampled rows' number of nonzeros may have a populated diagonal. 0: no memory. */
static int number_ranges(struct diagonals *diagonals) {
  int32_t number = 0;
  for (int64_t range = 0; range < diagonals->ranges; range++)
    diagonals->range[range] = diagonals->range[range] >= diagonals->least ? number++ : NONE;
  diagonals->numbers = number;
  diagonals->counts = cb_calloc((size_t)number << diagonals->log2, sizeof *diagonals->counts);
  return diagonals->counts != NULL;
}

/* Lists populated diagonals. -1: no memory. */
static int64_t find_diagonals(struct diagonals *diagonals, struct diagonal *list) {
  count_all_offsets(diagonals);
  if (!diagonals->log2) return list_keys(diagonals, 0, diagonals->keys, diagonals->range, list, 0);
  if (!number_ranges(diagonals)) return -1;
  if (diagonals->numbers) count_all_offsets(diagonals);
  return list_ranges(diagonals, list);
}

int cb_choice_count_diagonals(struct cb_choice_profile *profile, const struct cb_choice_sample *sample) {
  struct diagonals diagonals = {.profile = profile, .sample = sample, .keys = profile->rows + profile->cols - 1};
  if (!profile->sampled) return 1;
  diagonals.least = cb_divide_up(profile->sampled_rows, 4);
  while ((diagonals.keys - 1) >> diagonals.log2 >= RANGES) diagonals.log2++;
  diagonals.ranges = ((diagonals.keys - 1) >> diagonals.log2) + 1;
  diagonals.range = cb_calloc((size_t)diagonals.ranges, sizeof *diagonals.range);
  diagonals.row_sums = cb_calloc((size_t)profile->groups + 1, sizeof *diagonals.row_sums);
  struct diagonal *list = cb_alloc((size_t)(profile->sampled / diagonals.least) + 1, sizeof *list);
  int good = diagonals.range && diagonals.row_sums && list;
  if (good) {
    for (int64_t i = 0; i < profile->groups; i++) {
      const struct cb_choice_rows rows = cb_choice_group(profile, i);
      diagonals.row_sums[i + 1] = diagonals.row_sums[i] + rows.end - rows.first;
    }
    const int64_t count = find_diagonals(&diagonals, list);
    good = count >= 0;
    if (good) sum_diagonals(profile, list, count);
  }
  cb_free(diagonals.range);
  cb_free(diagonals.row_sums);
  cb_free(diagonals.counts);
  cb_free(list);
  return good;
}

/* ---- patterns */

/* A block row that has a pattern. */
struct block_row {
  struct cb_choice_row row; /* its first */
  int64_t number;
  uint32_t pattern; /* its place in `uses` */
  int is_first;     /* that has this one */
};

struct patterns {
  struct cb_choice_profile *profile;
  const struct cb_choice_sample *sample;
  struct cb_tally uses, offsets;
  struct block_row *list; /* of all that lie in groups */
  int64_t count;
};

static int rows_are_alike(const int32_t *columns, struct cb_choice_row row, struct cb_choice_row other) {
  if (row.end - row.begin != other.end - other.begin) return 0;
  for (int64_t k = 0; k < row.end - row.begin; k++)
    if (columns[row.begin + k] != columns[other.begin + k]) return 0;
  return 1;
}

/* What groups are asked as well, whose counts may still be on their way. */
struct alike {
  int64_t alike[CB_CHOICE_ALIKE + 1], aligned[CB_CHOICE_ALIKE + 1];
};

static void count_alike(struct alike *sums, const struct patterns *patterns, int64_t part) {
  const struct cb_choice_rows rows = cb_choice_group(patterns->profile, part);
  const struct cb_choice_sample *sample = patterns->sample;
  struct cb_choice_row before = cb_choice_row(sample, part, rows.first);
  cb_choice_add_aligned(sums->aligned, rows.first, rows.end - rows.first);
  for (int64_t row = rows.first + 1; row < rows.end; row++) {
    const struct cb_choice_row own = cb_choice_row(sample, part, row);
    const int is_alike = rows_are_alike(sample->columns, before, own);
    for (int64_t size = 2; is_alike && size <= CB_CHOICE_ALIKE; size++) sums->alike[size] += row % size != 0;
    before = own;
  }
}

static int64_t choose_unknowns(const struct patterns *patterns) {
  struct alike sums = {{0}, {0}};
  for (int64_t i = 0; i < patterns->profile->groups; i++) count_alike(&sums, patterns, i);
  for (int64_t size = CB_CHOICE_ALIKE; size > 1; size--)
    if (sums.aligned[size] && sums.alike[size] * 100 >= sums.aligned[size] * 95) return size;
  return 1;
}

static int is_made_of_blocks(const int32_t *columns, struct cb_choice_row row, int64_t size) {
  if ((row.end - row.begin) % size) return 0;
  for (int64_t k = row.begin; k < row.end; k += size)
    if ((uint32_t)columns[k] % (uint32_t)size || columns[k + size - 1] - columns[k] != size - 1) return 0;
  return 1;
}

static uint32_t offset_of(const int32_t *columns, int64_t k, int64_t size, int64_t number) {
  const uint32_t column = (uint32_t)columns[k];
  return (uint32_t)((size == 1 ? column : column / (uint32_t)size) - number) & 0x7fffffffu;
}

/* Of the pattern: 31 bits, so that different ones hardly ever meet in a sample. Offsets are the coefficients of a
 * polynomial, whose powers alone wait for one another. */
static uint32_t hash_of(const int32_t *columns, struct cb_choice_row row, int64_t size, int64_t number) {
  const uint64_t factor = 0x9e3779b97f4a7c15u;
  uint64_t hash = (uint64_t)(row.end - row.begin), power = factor;
  for (int64_t k = row.begin; k < row.end; k += size, power *= factor)
    hash += (uint64_t)(offset_of(columns, k, size, number) + 1) * power;
  hash = (hash ^ hash >> 32) * factor;
  return (uint32_t)(hash >> 33);
}

static void list_group(struct patterns *patterns, int64_t part) {
  const struct cb_choice_rows rows = cb_choice_group(patterns->profile, part);
  const struct cb_choice_sample *sample = patterns->sample;
  const int32_t *columns = sample->columns;
  const int64_t size = patterns->profile->unknowns;
  for (int64_t row = cb_round_up(rows.first, size); row + size <= rows.end; row += size) {
    const struct cb_choice_row first = cb_choice_row(sample, part, row);
    int known = first.begin < first.end && (size == 1 || is_made_of_blocks(columns, first, size));
    for (int64_t i = 1; i < size && known; i++)
      known = rows_are_alike(columns, first, cb_choice_row(sample, part, row + i));
    if (!known) continue;
    struct cb_tallied *of = cb_tally_find(&patterns->uses, hash_of(columns, first, size, row / size));
    const int is_first = ++of->count == 1;
    patterns->list[patterns->count++] =
        (struct block_row){first, row / size, (uint32_t)(of - patterns->uses.at), is_first};
    patterns->profile->patterns += is_first;
  }
}

static void sort_by_uses(struct patterns *patterns, const struct block_row *listed) {
  struct cb_choice_profile *profile = patterns->profile;
  const struct cb_choice_row row = listed->row;
  const uint32_t uses = patterns->uses.at[listed->pattern].count;
  const int64_t nonzeros = (row.end - row.begin) * profile->unknowns;
  *(uses == 1 ? &profile->pattern_once : uses < 8 ? &profile->pattern_few : &profile->pattern_many) += nonzeros;
  if (uses == 1 || !listed->is_first) return; /* others of the pattern have the same */
  for (int64_t k = row.begin; k < row.end && patterns->offsets.used < MOST_OFFSETS; k += profile->unknowns)
    cb_tally_add(&patterns->offsets, offset_of(patterns->sample->columns, k, profile->unknowns, listed->number));
}

int cb_choice_count_patterns(struct cb_choice_profile *profile, const struct cb_choice_sample *sample) {
  struct patterns patterns = {.profile = profile, .sample = sample};
  profile->unknowns = choose_unknowns(&patterns);
  patterns.list = cb_alloc((size_t)profile->sampled_rows + 1, sizeof *patterns.list);
  const int good = cb_tally_open(&patterns.uses, profile->sampled_rows) &&
                   cb_tally_open(&patterns.offsets, MOST_OFFSETS) && patterns.list;
  if (good) {
    for (int64_t i = 0; i < profile->groups; i++) list_group(&patterns, i);
    for (int64_t i = 0; i < patterns.count; i++) sort_by_uses(&patterns, &patterns.list[i]);
    profile->pattern_offsets = patterns.offsets.used;
  }
  cb_tally_close(&patterns.uses);
  cb_tally_close(&patterns.offsets);
  cb_free(patterns.list);
  return good;
}
