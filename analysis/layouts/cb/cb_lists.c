// SPDX-License-Identifier: Apache-2.0
/* Counting column lists: see cb_lists.h. */
#include "analysis/layouts/cb/cb_lists.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum { LIST_BYTES = CB_LIST_COLUMNS * sizeof(uint32_t) };

/* A different list: where it occurs first, and how often it does. */
struct distinct {
  uint32_t first, uses;
};

/* Open addressing: numbers of different lists, from 1 on; 0: free. */
struct census {
  const uint32_t *all;
  uint32_t *table;
  uint64_t mask;
  struct distinct *lists;
  int64_t count;
  uint32_t *list_of; /* by sub-block */
};

static const uint32_t *list_at(const struct census *census, int64_t block) {
  return census->all + block * CB_LIST_COLUMNS;
}

static void count_list(struct census *census, int64_t block) {
  const uint32_t *list = list_at(census, block);
  uint64_t at = cb_hash_bytes(list, LIST_BYTES).low & census->mask;
  while (census->table[at] && memcmp(list_at(census, census->lists[census->table[at] - 1].first), list, LIST_BYTES))
    at = (at + 1) & census->mask;
  if (!census->table[at]) {
    census->lists[census->count] = (struct distinct){(uint32_t)block, 0};
    census->table[at] = (uint32_t)++census->count;
  }
  census->list_of[block] = census->table[at] - 1;
  census->lists[census->table[at] - 1].uses++;
}

static int more_frequent(const struct distinct *one, const struct distinct *other) {
  return one->uses != other->uses ? one->uses > other->uses : one->first < other->first;
}

/* Numbers of the most frequent lists that occur twice at least, in `chosen`; returns how many. */
static int choose_lists(const struct census *census, uint32_t chosen[CB_MOST_LISTS]) {
  int count = 0;
  for (int64_t i = 0; i < census->count; i++) {
    const struct distinct *list = &census->lists[i];
    const int full = count == CB_MOST_LISTS;
    if (list->uses < 2 || (full && !more_frequent(list, &census->lists[chosen[count - 1]]))) continue;
    int at = full ? count - 1 : count++;
    for (; at > 0 && more_frequent(list, &census->lists[chosen[at - 1]]); at--) chosen[at] = chosen[at - 1];
    chosen[at] = (uint32_t)i;
  }
  return count;
}

/* Numbers the sub-blocks, and copies the lists of those that are not in the table. */
static void number_blocks(struct cb_lists *lists, const struct census *census, const uint32_t *place, int64_t blocks,
                          const unsigned char *run_starts) {
  int of_run = 0;
  for (int64_t block = 0; block < blocks; block++) {
    const uint32_t number = place[census->list_of[block]]; /* from 1; 0: not in the table */
    if (run_starts[block]) of_run = 0;
    lists->number[block] = (unsigned char)(number ? number - 1 : (uint32_t)(lists->count + of_run++));
    if (!number) memcpy(lists->stored + lists->stored_count++ * CB_LIST_COLUMNS, list_at(census, block), LIST_BYTES);
  }
}

static int make_table(struct cb_lists *lists, struct cb_arena *arena, const struct census *census, uint32_t *place,
                      int64_t blocks) {
  uint32_t chosen[CB_MOST_LISTS];
  int64_t left = blocks;
  lists->count = choose_lists(census, chosen);
  uint32_t *table = cb_arena_alloc(arena, (size_t)lists->count * CB_LIST_COLUMNS, sizeof *table);
  for (int i = 0; table && i < lists->count; i++) {
    memcpy(table + i * CB_LIST_COLUMNS, list_at(census, census->lists[chosen[i]].first), LIST_BYTES);
    place[chosen[i]] = (uint32_t)i + 1;
    left -= census->lists[chosen[i]].uses;
  }
  lists->table = table;
  lists->number = cb_arena_alloc(arena, (size_t)blocks, sizeof *lists->number);
  lists->stored = cb_arena_alloc(arena, (size_t)left * CB_LIST_COLUMNS, sizeof *lists->stored);
  return !arena->failed;
}

enum cb_status cb_lists_find(struct cb_lists *lists, struct cb_arena *arena, const uint32_t *all, int64_t blocks,
                             const unsigned char *run_starts, struct cb_diag *diag) {
  struct cb_arena scratch = {0};
  uint64_t slots = 16;
  while (slots < 2 * (uint64_t)blocks) slots *= 2;
  struct census census = {.all = all,
                          .mask = slots - 1,
                          .table = cb_arena_alloc(&scratch, slots, sizeof *census.table),
                          .lists = cb_arena_alloc(&scratch, (size_t)blocks, sizeof *census.lists),
                          .list_of = cb_arena_alloc(&scratch, (size_t)blocks, sizeof *census.list_of)};
  uint32_t *place = cb_arena_alloc(&scratch, (size_t)blocks, sizeof *place);
  int good = !scratch.failed;
  *lists = (struct cb_lists){0};
  for (int64_t block = 0; good && block < blocks; block++) count_list(&census, block);
  good = good && make_table(lists, arena, &census, place, blocks);
  if (good) number_blocks(lists, &census, place, blocks, run_starts);
  cb_arena_release(&scratch);
  return good ? CB_OK : cb_fail_memory(diag, "column lists", (uint64_t)blocks * LIST_BYTES);
}
