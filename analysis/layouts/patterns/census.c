// SPDX-License-Identifier: Apache-2.0
/* Column patterns that many rows share: see census.h. The passes, in the order of cb_patterns_find:
 *
 *   a sample of block rows      which sizes can have patterns at all
 *   hash every block row        0 stands for a block row without a known pattern
 *   count equal hashes     in a table of bounded size
 *   choose patterns        by the nonzeros that they hold
 *   assign block rows           by comparing offsets, so that equal hashes of different patterns do no harm
 */
#include "analysis/layouts/patterns/census.h"

#include "base/integers.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- one block row */

struct block_row {
  int64_t first;  /* nonzero with which its first row begins */
  int64_t length; /* nonzeros of each of its rows */
};

/* Whether both rows have the same columns. */
static int rows_are_alike(const struct cb_csr *csr, int64_t row, int64_t other) {
  const int64_t length = cb_csr_row_length(csr, row);
  return cb_csr_row_length(csr, other) == length &&
         !memcmp(csr->col_idx + cb_csr_row(csr, row), csr->col_idx + cb_csr_row(csr, other),
                 (size_t)length * sizeof *csr->col_idx);
}

static int is_made_of_blocks(const struct cb_csr *csr, struct block_row block_row, int size) {
  const int32_t *columns = csr->col_idx + block_row.first;
  if (block_row.length % size) return 0;
  for (int64_t k = 0; k < block_row.length; k += size)
    if (columns[k] % size || columns[k + size - 1] - columns[k] != size - 1) return 0;
  return 1;
}

/* Returns 0 when the block row has no nonzero, or no known pattern. */
static int block_row_at(struct block_row *block_row, const struct cb_csr *csr, int size, int64_t number) {
  const int64_t row = number * size;
  if (row + size > csr->rows) return 0;
  *block_row = (struct block_row){cb_csr_row(csr, row), cb_csr_row_length(csr, row)};
  for (int i = 1; i < size; i++)
    if (!rows_are_alike(csr, row, row + i)) return 0;
  return block_row->length && (size == 1 || is_made_of_blocks(csr, *block_row, size));
}

/* Offset of block k of the block row. */
static int32_t offset_at(const struct cb_csr *csr, struct block_row block_row, int size, int64_t number, int64_t k) {
  return (int32_t)(csr->col_idx[block_row.first + k * size] / size - number);
}

static uint64_t hash_of(const struct cb_csr *csr, int size, int64_t number) {
  struct block_row block_row;
  if (!block_row_at(&block_row, csr, size, number)) return 0;
  uint64_t hash = (uint64_t)block_row.length << 32; /* no offset takes it to 0 */
  for (int64_t k = 0; k < block_row.length / size; k++) {
    hash = (hash ^ (uint32_t)offset_at(csr, block_row, size, number, k)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash ? hash : 1;
}

/* ---- sizes */

/* Whether block rows of this size with a known pattern hold `share` percent of a sample's nonzeros. */
static int size_may_do(const struct cb_csr *csr, int size, int64_t share) {
  enum { SAMPLE = 1024 };
  const int64_t block_rows = cb_pattern_block_rows(csr, size), stride = cb_divide_up(block_rows, SAMPLE);
  int64_t inside = 0, all = 0;
  for (int64_t number = 0; number < block_rows; number += stride) {
    struct block_row block_row;
    const int64_t end = cb_smaller((number + 1) * size, csr->rows);
    const int64_t nonzeros = cb_csr_row(csr, end) - cb_csr_row(csr, number * size);
    all += nonzeros;
    if (block_row_at(&block_row, csr, size, number)) inside += nonzeros;
  }
  return inside * 100 >= share * all;
}

/* ---- frequent hashes */

enum { REMEMBERED = 1 << 16 };

struct entry {
  uint64_t hash; /* 0: a free place */
  int64_t uses, block_row; /* the first block row that has it */
};

/* As much room as a matrix can need: tables for the largest take longer to clear than most matrices to look at. */
struct counts {
  int64_t entries;
  uint64_t places; /* a power of two */
  struct entry place[];
};

static uint64_t places_for(int64_t block_rows) {
  uint64_t places = 2;
  while (places < 2 * (uint64_t)cb_smaller(block_rows, REMEMBERED)) places *= 2;
  return places;
}

static size_t size_of(uint64_t places) { return sizeof(struct counts) + (size_t)places * sizeof(struct entry); }

static void forget_all(struct counts *counts) {
  memset(counts->place, 0, (size_t)counts->places * sizeof *counts->place);
  counts->entries = 0;
}

static struct entry *place_of(struct counts *counts, uint64_t hash) {
  const uint64_t mask = counts->places - 1;
  uint64_t at = hash * 0x9e3779b97f4a7c15u >> 40;
  while (counts->place[at & mask].hash && counts->place[at & mask].hash != hash) at++;
  return &counts->place[at & mask];
}

/* Forgets patterns of fewest uses until half of the room is free. `spare` is overwritten. */
static void forget_rare(struct counts *counts, struct counts *spare) {
  for (int64_t uses = 1; counts->entries > REMEMBERED / 2; uses *= 2) {
    memcpy(spare, counts, size_of(counts->places));
    forget_all(counts);
    for (uint64_t i = 0; i < spare->places; i++) {
      if (spare->place[i].uses <= uses) continue;
      *place_of(counts, spare->place[i].hash) = spare->place[i];
      counts->entries++;
    }
  }
}

static void count_hashes(struct counts *counts, struct counts *spare, const uint64_t *hashes, int64_t block_rows) {
  struct entry *entry = NULL;
  for (int64_t number = 0; number < block_rows; number++) {
    if (!hashes[number]) continue;
    if (!entry || entry->hash != hashes[number]) {
      if (counts->entries == REMEMBERED) forget_rare(counts, spare);
      entry = place_of(counts, hashes[number]);
    }
    if (!entry->hash) {
      *entry = (struct entry){hashes[number], 0, number};
      counts->entries++;
    }
    entry->uses++;
  }
}

/* Whether patterns can hold `share` percent of the nonzeros, as far as a sample tells: where 255 patterns do, each has
 * one in 510 block rows on average, and occurs several times among 4096 of them. */
static int sample_repeats(struct counts *counts, const struct cb_csr *csr, int size, int64_t share) {
  enum { SAMPLE = 4096, LARGE = 16 };
  const int64_t block_rows = cb_pattern_block_rows(csr, size), stride = block_rows / SAMPLE;
  int64_t repeated = 0, all = 0;
  if (block_rows < LARGE * SAMPLE) return 1;
  for (int64_t number = 0; number < block_rows; number += stride) {
    const uint64_t hash = hash_of(csr, size, number);
    const int64_t nonzeros = cb_csr_row_length(csr, number * size);
    struct entry *entry = hash ? place_of(counts, hash) : NULL;
    all += nonzeros;
    if (!entry) continue;
    entry->hash = hash;
    if (entry->uses++) repeated += nonzeros;
  }
  forget_all(counts);
  return repeated * 200 >= share * all;
}

/* ---- the choice */

struct candidate {
  struct entry entry;
  int64_t nonzeros;
};

/* The most nonzeros first, then the first block row. */
static int compare(const void *one, const void *other) {
  const struct candidate *a = one, *b = other;
  if (a->nonzeros != b->nonzeros) return a->nonzeros > b->nonzeros ? -1 : 1;
  return a->entry.block_row < b->entry.block_row ? -1 : a->entry.block_row > b->entry.block_row;
}

/* Puts the entries with enough uses at the front of `candidates`, sorted; returns how many there are. */
static int64_t list_candidates(struct candidate *candidates, const struct counts *counts, const struct cb_csr *csr,
                               int size, int64_t uses) {
  int64_t count = 0;
  for (uint64_t i = 0; i < counts->places; i++) {
    const struct entry *entry = &counts->place[i];
    if (!entry->hash || entry->uses < uses) continue;
    candidates[count++] =
        (struct candidate){*entry, entry->uses * size * cb_csr_row_length(csr, entry->block_row * size)};
  }
  qsort(candidates, (size_t)count, sizeof *candidates, compare);
  return count;
}

static int has_offset(const struct cb_patterns *found, int32_t offset) {
  for (int d = 0; d < found->offsets; d++)
    if (found->offset[d] == offset) return 1;
  return 0;
}

/* Adds the pattern's offsets to those found, in any order; if there are too many, adds none and returns 0. */
static int add_offsets(struct cb_patterns *found, const struct cb_csr *csr, int64_t number) {
  const int before = found->offsets;
  struct block_row block_row = {0};
  block_row_at(&block_row, csr, found->size, number);
  for (int64_t k = 0; k < block_row.length / found->size; k++) {
    const int32_t offset = offset_at(csr, block_row, found->size, number, k);
    if (has_offset(found, offset)) continue;
    if (found->offsets == CB_PATTERN_OFFSETS) {
      found->offsets = before;
      return 0;
    }
    found->offset[found->offsets++] = offset;
  }
  return 1;
}

static int compare_offsets(const void *one, const void *other) {
  const int32_t a = *(const int32_t *)one, b = *(const int32_t *)other;
  return (a > b) - (a < b);
}

static uint64_t mask_of(const struct cb_patterns *found, const struct cb_csr *csr, int64_t number) {
  struct block_row block_row = {0};
  uint64_t mask = 0;
  int d = 0;
  block_row_at(&block_row, csr, found->size, number);
  for (int64_t k = 0; k < block_row.length / found->size; k++) { /* both ascend */
    const int32_t offset = offset_at(csr, block_row, found->size, number, k);
    while (found->offset[d] != offset) d++;
    mask |= UINT64_C(1) << d;
  }
  return mask;
}

/* Takes candidates while they have room; the hash of each pattern found goes to `hash`. */
static void choose(struct cb_patterns *found, uint64_t *hash, const struct candidate *candidates, int64_t count,
                   const struct cb_csr *csr) {
  int64_t first_block_row[CB_PATTERNS_MOST];
  for (int64_t i = 0; i < count && found->count < CB_PATTERNS_MOST; i++) {
    if (!add_offsets(found, csr, candidates[i].entry.block_row)) continue;
    hash[found->count] = candidates[i].entry.hash;
    first_block_row[found->count++] = candidates[i].entry.block_row;
  }
  qsort(found->offset, (size_t)found->offsets, sizeof *found->offset, compare_offsets);
  for (int i = 0; i < found->count; i++) found->mask[i] = mask_of(found, csr, first_block_row[i]);
}

/* ---- block rows */

/* Whether the block row's offsets are those of the pattern. */
static int has_pattern(const struct cb_patterns *found, const struct cb_csr *csr, int64_t number, int pattern) {
  struct block_row block_row;
  if (!block_row_at(&block_row, csr, found->size, number)) return 0;
  uint64_t rest = found->mask[pattern];
  int64_t k = 0;
  for (; rest && k < block_row.length / found->size; k++, rest &= rest - 1) {
    const int d = __builtin_ctzll(rest);
    if (offset_at(csr, block_row, found->size, number, k) != found->offset[d]) return 0;
  }
  return !rest && k == block_row.length / found->size;
}

/* Patterns by their hashes. */
enum { LOOKUP = 1024 };
struct lookup {
  uint64_t hash[LOOKUP]; /* 0: a free place */
  unsigned char pattern[LOOKUP];
};

static unsigned place_in(const struct lookup *lookup, uint64_t hash) {
  unsigned at = (unsigned)(hash >> 50) % LOOKUP;
  while (lookup->hash[at] && lookup->hash[at] != hash) at = (at + 1) % LOOKUP;
  return at;
}

static void fill_lookup(struct lookup *lookup, const uint64_t *hash, int count) {
  *lookup = (struct lookup){0};
  for (int i = 0; i < count; i++) {
    const unsigned at = place_in(lookup, hash[i]);
    lookup->hash[at] = hash[i];
    lookup->pattern[at] = (unsigned char)i;
  }
}

static int pattern_at(const struct cb_patterns *found, const struct cb_csr *csr, const struct lookup *lookup,
                      uint64_t hash, int64_t number) {
  if (!hash) return CB_PATTERN_NONE;
  const unsigned at = place_in(lookup, hash);
  if (!lookup->hash[at] || !has_pattern(found, csr, number, lookup->pattern[at])) return CB_PATTERN_NONE;
  return lookup->pattern[at];
}

/* The block rows' patterns; counts uses and nonzeros. */
static void assign(struct cb_patterns *found, const struct lookup *lookup, const struct cb_csr *csr,
                   const uint64_t *hashes) {
  int64_t uses[CB_PATTERNS_MOST + 1] = {0};
#pragma omp parallel for schedule(static) reduction(+ : uses[:CB_PATTERNS_MOST + 1])
  for (int64_t number = 0; number < found->block_rows; number++) {
    const int pattern = pattern_at(found, csr, lookup, hashes[number], number);
    found->pattern_of[number] = (unsigned char)pattern;
    uses[pattern]++;
  }
  for (int i = 0; i < found->count; i++) {
    found->uses[i] = uses[i];
    found->nonzeros += uses[i] * __builtin_popcountll(found->mask[i]) * found->size * found->size;
  }
}

/* ---- the whole */

/* What one size needs while it is looked at; one block each, NULL: no memory. */
struct scratch {
  uint64_t *hashes; /* by block row */
  struct counts *counts, *spare;
  struct candidate *candidates;
};

static int scratch_open(struct scratch *scratch, int64_t block_rows) {
  scratch->hashes = cb_alloc((size_t)block_rows, sizeof *scratch->hashes);
  const uint64_t places = places_for(block_rows);
  scratch->counts = cb_calloc(1, size_of(places));
  if (scratch->counts) scratch->counts->places = places;
  scratch->spare = cb_alloc(1, size_of(places));
  scratch->candidates = cb_alloc((size_t)places / 2, sizeof *scratch->candidates);
  return scratch->hashes && scratch->counts && scratch->spare && scratch->candidates;
}

static void scratch_release(struct scratch *scratch) {
  cb_free(scratch->hashes);
  cb_free(scratch->counts);
  cb_free(scratch->spare);
  cb_free(scratch->candidates);
}

/* Of the patterns with enough uses those that fit, or all that there are if they fit and leave no other rows. */
static void choose_patterns(struct cb_patterns *found, uint64_t *hash, struct scratch *scratch,
                            const struct cb_csr *csr, int64_t uses) {
  const struct cb_patterns none = *found;
  int64_t nonzeros = 0, count = list_candidates(scratch->candidates, scratch->counts, csr, found->size, 1);
  for (int64_t i = 0; i < count; i++) nonzeros += scratch->candidates[i].nonzeros;
  choose(found, hash, scratch->candidates, count, csr);
  if (nonzeros == csr->nnz && found->count == count) return;
  *found = none;
  count = list_candidates(scratch->candidates, scratch->counts, csr, found->size, uses);
  choose(found, hash, scratch->candidates, count, csr);
}

static void find_patterns(struct cb_patterns *found, struct scratch *scratch, const struct cb_csr *csr, int64_t uses) {
  uint64_t hash[CB_PATTERNS_MOST];
  struct lookup lookup;
#pragma omp parallel for schedule(static)
  for (int64_t number = 0; number < found->block_rows; number++)
    scratch->hashes[number] = hash_of(csr, found->size, number);
  count_hashes(scratch->counts, scratch->spare, scratch->hashes, found->block_rows);
  choose_patterns(found, hash, scratch, csr, uses);
  fill_lookup(&lookup, hash, found->count);
  assign(found, &lookup, csr, scratch->hashes);
}

/* The patterns of one size; CB_ERR_MEMORY. */
static enum cb_status find_with_size(struct cb_patterns *found, const struct cb_csr *csr, int size,
                                     const struct cb_pattern_wish *wish, struct cb_diag *diag) {
  struct scratch scratch = {0};
  *found = (struct cb_patterns){.size = size, .block_rows = cb_pattern_block_rows(csr, size)};
  found->pattern_of = cb_alloc((size_t)found->block_rows, 1);
  const int good = scratch_open(&scratch, found->block_rows) && found->pattern_of;
  if (good && sample_repeats(scratch.counts, csr, size, wish->share))
    find_patterns(found, &scratch, csr, wish->uses);
  if (!good) cb_patterns_release(found);
  scratch_release(&scratch);
  return good ? CB_OK : cb_fail_memory(diag, "patterns of rows", (uint64_t)csr->rows * sizeof *scratch.hashes);
}

enum cb_status cb_patterns_find(struct cb_patterns *found, const struct cb_csr *csr, const struct cb_pattern_wish *wish,
                                struct cb_diag *diag) {
  for (int size = CB_PATTERN_SIZE_MOST; size > 0; size--) {
    if (wish->size ? size != wish->size : !size_may_do(csr, size, wish->share)) continue;
    const enum cb_status s = find_with_size(found, csr, size, wish, diag);
    if (s) return s;
    if (found->nonzeros && found->nonzeros * 100 >= wish->share * csr->nnz) return CB_OK;
    cb_patterns_release(found);
  }
  return cb_fail(diag, CB_ERR_UNSUPPORTED,
                 "less than %lld %% of the nonzeros are in rows whose columns repeat; use another recipe, or lower "
                 "'pattern-share' or 'pattern-uses'",
                 (long long)wish->share);
}

void cb_patterns_release(struct cb_patterns *found) {
  cb_free(found->pattern_of);
  *found = (struct cb_patterns){0};
}
