// SPDX-License-Identifier: Apache-2.0
/* What repeats from group to group: diagonals, and rows' patterns. See profile.h. */
#include "analysis/choose/counting.h"

#include "base/integers.h"

#include <stdlib.h>

enum { RANGES = 1 << 13, MOST_OFFSETS = 1024, NONE = -1 };

/* ---- diagonals: first whole ranges of them, then each one of ranges that are full enough */

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
  uint32_t *counts;  /* by key within numbered ranges; NULL while ranges are counted */
  int64_t *row_sums; /* rows in groups before each; groups + 1 */
};

static void count_offsets(const struct diagonals *diagonals, int64_t part, int64_t row) {
  const struct cb_choice_row found = cb_choice_row(diagonals->sample, part, row);
  const int64_t shift = diagonals->profile->rows - 1 - row, within = (INT64_C(1) << diagonals->log2) - 1;
  for (int64_t k = found.begin; k < found.end; k++) {
    const int64_t key = diagonals->sample->columns[k] + shift;
    int32_t *range = &diagonals->range[key >> diagonals->log2];
    if (!diagonals->counts)
      ++*range;
    else if (*range != NONE)
      diagonals->counts[((int64_t)*range << diagonals->log2) + (key & within)]++;
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

/* Populated diagonals of a numbered range go behind the `count` that are listed; returns how many are then. */
static int64_t list_range(const struct diagonals *diagonals, int64_t range, struct diagonal *list, int64_t count) {
  const int64_t first = range << diagonals->log2, width = INT64_C(1) << diagonals->log2;
  const uint32_t *counts = diagonals->counts + ((int64_t)diagonals->range[range] << diagonals->log2);
  for (int64_t i = 0; i < width && first + i < diagonals->keys; i++) {
    if (counts[i] < diagonals->least) continue;
    const struct diagonal one = {first + i, counts[i], places_of(diagonals, first + i)};
    if (one.count * 2 >= one.places && one.places * 2 >= diagonals->profile->sampled_rows) list[count++] = one;
  }
  return count;
}

static void sum_diagonals(struct cb_choice_profile *profile, const struct diagonals *diagonals, struct diagonal *list) {
  int64_t count = 0;
  for (int64_t range = 0; range < diagonals->ranges; range++)
    if (diagonals->range[range] != NONE) count = list_range(diagonals, range, list, count);
  qsort(list, (size_t)count, sizeof *list, compare);
  profile->diagonals = cb_smaller(count, CB_CHOICE_DIAGONALS);
  for (int64_t i = 0; i < profile->diagonals; i++) {
    profile->in_diagonals += list[i].count;
    profile->diagonal_places += list[i].places;
  }
}

/* A range that has a quarter of the sampled rows' number of nonzeros may have a populated diagonal. Where a range is
 * one diagonal, that is counted with this. 0: no memory. */
static int number_ranges(struct diagonals *diagonals) {
  int32_t number = 0;
  for (int64_t range = 0; range < diagonals->ranges; range++)
    diagonals->numbers += diagonals->range[range] >= diagonals->least;
  uint32_t *counts = cb_calloc((size_t)diagonals->numbers << diagonals->log2, sizeof *counts);
  for (int64_t range = 0; range < diagonals->ranges && counts; range++) {
    const int32_t nonzeros = diagonals->range[range];
    const int numbered = nonzeros >= diagonals->least;
    if (numbered && !diagonals->log2) counts[number] = (uint32_t)nonzeros;
    diagonals->range[range] = numbered ? number++ : NONE;
  }
  diagonals->counts = counts;
  return counts != NULL;
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
    count_all_offsets(&diagonals);
    good = number_ranges(&diagonals);
  }
  if (good && diagonals.numbers) {
    if (diagonals.log2) count_all_offsets(&diagonals);
    sum_diagonals(profile, &diagonals, list);
  }
  cb_free(diagonals.range);
  cb_free(diagonals.row_sums);
  cb_free(diagonals.counts);
  cb_free(list);
  return good;
}

/* ---- patterns */

static int64_t choose_unknowns(const struct cb_choice_profile *profile) {
  for (int64_t size = CB_CHOICE_ALIKE; size > 1; size--)
    if (profile->aligned[size] && profile->alike[size] * 100 >= profile->aligned[size] * 95) return size;
  return 1;
}

/* A block row that has a pattern. */
struct block_row {
  struct cb_choice_row row; /* its first */
  int64_t number;
  uint32_t hash;
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

/* Of the pattern: 31 bits, so that different ones hardly ever meet in a sample. */
static uint32_t hash_of(const int32_t *columns, struct cb_choice_row row, int64_t size, int64_t number) {
  uint64_t hash = (uint64_t)(row.end - row.begin) << 32;
  for (int64_t k = row.begin; k < row.end; k += size) {
    hash = (hash ^ offset_of(columns, k, size, number)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
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
    const uint32_t hash = hash_of(columns, first, size, row / size);
    patterns->list[patterns->count++] = (struct block_row){first, row / size, hash};
    patterns->profile->patterns += cb_tally_add(&patterns->uses, hash) == 1;
  }
}

static void sort_by_uses(struct patterns *patterns, const struct block_row *listed) {
  struct cb_choice_profile *profile = patterns->profile;
  const struct cb_choice_row row = listed->row;
  const uint32_t uses = cb_tally_find(&patterns->uses, listed->hash)->count;
  const int64_t nonzeros = (row.end - row.begin) * profile->unknowns;
  *(uses == 1 ? &profile->pattern_once : uses < 8 ? &profile->pattern_few : &profile->pattern_many) += nonzeros;
  if (uses == 1) return;
  for (int64_t k = row.begin; k < row.end && patterns->offsets.used < MOST_OFFSETS; k += profile->unknowns)
    cb_tally_add(&patterns->offsets, offset_of(patterns->sample->columns, k, profile->unknowns, listed->number));
}

int cb_choice_count_patterns(struct cb_choice_profile *profile, const struct cb_choice_sample *sample) {
  struct patterns patterns = {.profile = profile, .sample = sample};
  profile->unknowns = choose_unknowns(profile);
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
