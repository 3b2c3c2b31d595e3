// SPDX-License-Identifier: Apache-2.0
#include "analysis/layouts/hot/hot_deal.h"

#include "analysis/loads.h"
#include "analysis/ordering.h"
#include "base/integers.h"

static void make_heap(struct cb_load *heap, int64_t count) {
  for (int64_t i = 0; i < count; i++) heap[i] = (struct cb_load){0, i};
}

static void add_to_least(struct cb_load *heap, int64_t count, int64_t cost) {
  heap[0].load += cost;
  cb_loads_settle(heap, count, 0);
}

/* ---- passes, in their order */

struct dealing {
  const struct cb_hot_slices *slices;
  struct cb_hot_deal *deal;
  struct cb_arena scratch;
  struct cb_load *heap; /* of thread blocks */
  uint32_t *block;      /* by slice; that of a segment that does not meet comes with the whole ones */
  unsigned char *meets; /* by segment */
  int32_t *order;       /* slices as they are dealt */
  int32_t *by_block;    /* where in `order` those are of one thread block after another */
  int64_t *begin;       /* by thread block: its first of these; + 1 */
};

static int alloc(struct dealing *to, struct cb_arena *arena) {
  const struct cb_hot_slices *slices = to->slices;
  const size_t count = (size_t)slices->count, segments = (size_t)slices->segments, blocks = (size_t)slices->blocks;
  to->heap = cb_arena_alloc(&to->scratch, blocks, sizeof *to->heap);
  to->block = cb_arena_alloc(&to->scratch, count, sizeof *to->block);
  to->meets = cb_arena_alloc(&to->scratch, segments, 1);
  to->order = cb_arena_alloc(&to->scratch, count, sizeof *to->order);
  to->by_block = cb_arena_alloc(&to->scratch, count, sizeof *to->by_block);
  to->begin = cb_arena_alloc(&to->scratch, blocks + 1, sizeof *to->begin);
  struct cb_hot_deal *deal = to->deal;
  deal->slice = cb_arena_alloc(arena, count, sizeof *deal->slice);
  deal->order = cb_arena_alloc(arena, count, sizeof *deal->order);
  deal->first_place = cb_arena_alloc(arena, blocks * (size_t)slices->warps + 1, sizeof *deal->first_place);
  deal->segment = cb_arena_alloc(arena, segments, sizeof *deal->segment);
  deal->first_group = cb_arena_alloc(arena, blocks + 1, sizeof *deal->first_group);
  deal->group_first = cb_arena_alloc(arena, segments + 1, sizeof *deal->group_first);
  return !to->scratch.failed && !arena->failed;
}

static int64_t cost_of(const struct cb_hot_slices *slices) {
  int64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (int64_t slice = 0; slice < slices->count; slice++) sum += slices->cost[slice];
  return sum;
}

/* A row in segments, from its first one on. */
struct cut_row {
  int64_t end; /* behind its last */
  int64_t cost;
};

static struct cut_row cut_row_at(const struct cb_hot_slices *slices, int64_t first) {
  struct cut_row row = {first + 1, slices->cost[first]};
  for (; row.end < slices->segments && slices->segment_number[row.end]; row.end++) row.cost += slices->cost[row.end];
  return row;
}

/* Rows in segments, each told by its first one: those of the most segments first that may meet. Returns how many may;
 * -1: no memory. */
static int64_t rank_rows(struct dealing *to, int32_t *first, int32_t *sorted, uint32_t *key) {
  const struct cb_hot_slices *slices = to->slices;
  const int64_t share = cost_of(slices) / slices->blocks;
  int64_t rows = 0;
  for (int64_t segment = 0, end; segment < slices->segments; segment = end) {
    const struct cut_row row = cut_row_at(slices, segment);
    end = row.end;
    const int may = row.cost <= share && end - segment <= slices->most_met;
    key[rows] = (uint32_t)(may ? slices->most_met - (end - segment) : slices->most_met);
    first[rows++] = (int32_t)segment;
  }
  return rows ? cb_sort_by_key(sorted, key, rows, slices->most_met) : 0;
}

/* One row to the thread block that has least, if there is room. */
static void deal_row(struct dealing *to, int64_t first, int64_t *room) {
  const struct cb_hot_slices *slices = to->slices;
  const int64_t block = to->heap[0].number;
  const struct cut_row row = cut_row_at(slices, first);
  if (row.end - first > room[block]) return;
  room[block] -= row.end - first;
  add_to_least(to->heap, slices->blocks, row.cost);
  for (int64_t segment = first; segment < row.end; segment++) {
    to->meets[segment] = 1;
    to->block[segment] = (uint32_t)block;
    to->order[to->deal->met++] = (int32_t)segment;
  }
}

static int deal_rows(struct dealing *to) {
  const struct cb_hot_slices *slices = to->slices;
  const size_t segments = (size_t)slices->segments;
  int32_t *first = cb_arena_alloc(&to->scratch, segments, sizeof *first);
  int32_t *sorted = cb_arena_alloc(&to->scratch, segments, sizeof *sorted);
  uint32_t *key = cb_arena_alloc(&to->scratch, segments, sizeof *key);
  int64_t *room = cb_arena_alloc(&to->scratch, (size_t)slices->blocks, sizeof *room);
  if (to->scratch.failed) return 0;
  for (int64_t block = 0; block < slices->blocks; block++) room[block] = slices->most_met;
  const int64_t rows = rank_rows(to, first, sorted, key);
  for (int64_t i = 0; i < rows; i++) deal_row(to, first[sorted[i]], room);
  to->deal->carried = slices->segments - to->deal->met;
  return rows >= 0;
}

/* All other slices, the costliest first. */
static int deal_slices(struct dealing *to) {
  const struct cb_hot_slices *slices = to->slices;
  uint32_t *key = cb_arena_alloc(&to->scratch, (size_t)slices->count, sizeof *key);
  if (!key) return 0;
#pragma omp parallel for schedule(static)
  for (int64_t slice = 0; slice < slices->count; slice++)
    key[slice] = slice < slices->segments && to->meets[slice] ? CB_HOT_COSTS
                                                              : (uint32_t)(CB_HOT_COSTS - 1 - slices->cost[slice]);
  const int64_t met = to->deal->met;
  if (cb_sort_by_key(to->order + met, key, slices->count, CB_HOT_COSTS) < 0) return 0;
  for (int64_t i = met; i < slices->count; i++) {
    to->block[to->order[i]] = (uint32_t)to->heap[0].number;
    add_to_least(to->heap, slices->blocks, slices->cost[to->order[i]]);
  }
  return 1;
}

static int sort_by_block(struct dealing *to) {
  const int64_t count = to->slices->count, blocks = to->slices->blocks;
  uint32_t *key = cb_arena_alloc(&to->scratch, (size_t)count, sizeof *key);
  if (!key) return 0;
  for (int64_t i = 0; i < count; i++) {
    key[i] = to->block[to->order[i]];
    to->begin[key[i] + 1]++;
  }
  for (int64_t block = 0; block < blocks; block++) to->begin[block + 1] += to->begin[block];
  return cb_sort_by_key(to->by_block, key, count, blocks) >= 0;
}

/* What a thread block has, to its warps. */
static void deal_to_warps(const struct dealing *to, int64_t block, uint32_t *warp) {
  enum { MOST_WARPS = 32 };
  const int64_t warps = to->slices->warps;
  struct cb_load heap[MOST_WARPS];
  make_heap(heap, warps);
  for (int64_t i = to->begin[block]; i < to->begin[block + 1]; i++) {
    warp[i] = (uint32_t)(block * warps + heap[0].number);
    add_to_least(heap, warps, to->slices->cost[to->order[to->by_block[i]]]);
  }
}

static int place_slices(struct dealing *to) {
  const struct cb_hot_slices *slices = to->slices;
  const int64_t count = slices->count, warps = slices->blocks * slices->warps;
  uint32_t *warp = cb_arena_alloc(&to->scratch, (size_t)count, sizeof *warp);
  uint32_t *first = to->deal->first_place;
  if (!warp) return 0;
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < slices->blocks; block++) deal_to_warps(to, block, warp);
  if (cb_sort_by_key(to->deal->slice, warp, count, warps) < 0) return 0;
  for (int64_t i = 0; i < count; i++) first[warp[i] + 1]++;
  for (int64_t i = 0; i < warps; i++) first[i + 1] += first[i];
  for (int64_t place = 0; place < count; place++) {
    const int32_t dealt = to->by_block[to->deal->slice[place]];
    to->deal->slice[place] = to->order[dealt];
    to->deal->order[dealt] = (int32_t)place;
  }
  return 1;
}

static void number_segments(struct dealing *to) {
  const struct cb_hot_slices *slices = to->slices;
  struct cb_hot_deal *deal = to->deal;
  int64_t number = 0;
  for (int64_t segment = 0; segment < slices->segments; segment++)
    if (!to->meets[segment]) deal->segment[number++] = (int32_t)segment;
  for (int64_t block = 0; block < slices->blocks; block++) {
    for (int64_t i = to->begin[block]; i < to->begin[block + 1]; i++) {
      const int64_t slice = to->order[to->by_block[i]];
      if (slice >= slices->segments || !to->meets[slice]) break; /* they come first */
      if (!slices->segment_number[slice]) deal->group_first[deal->groups++] = (uint32_t)number;
      deal->segment[number++] = (int32_t)slice;
    }
    deal->first_group[block + 1] = (uint32_t)deal->groups;
  }
  deal->group_first[deal->groups] = (uint32_t)number;
}

int cb_hot_deal(struct cb_hot_deal *deal, struct cb_arena *arena, const struct cb_hot_slices *slices) {
  struct dealing to = {.slices = slices, .deal = deal};
  *deal = (struct cb_hot_deal){0};
  int good = alloc(&to, arena);
  if (good) make_heap(to.heap, slices->blocks);
  good = good && deal_rows(&to) && deal_slices(&to) && sort_by_block(&to) && place_slices(&to);
  if (good) number_segments(&to);
  cb_arena_release(&to.scratch);
  return good;
}
