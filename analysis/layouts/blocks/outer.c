// SPDX-License-Identifier: Apache-2.0
/* Outer block rows, turns, and where parts of sums are: see outer.h. cb_outer_find calls the passes in order. */
#include "analysis/layouts/blocks/outer.h"

#include "analysis/cost_figures.h"
#include "analysis/ordering.h"
#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

enum { MOST_TURNS = 64, NO_TURN = MOST_TURNS };

static int64_t tile_begin(const struct cb_lower_blocks *lower, int64_t tile) { return tile * lower->tile_rows; }

static int64_t tile_end(const struct cb_lower_blocks *lower, int64_t tile) {
  return cb_smaller((tile + 1) * lower->tile_rows, lower->block_rows);
}

/* ---- outer block rows */

/* What a thread needs for one thread block after the other: marks of block rows. */
static int64_t collect(const struct cb_lower_blocks *lower, int64_t tile, unsigned char *marks, uint32_t *rows) {
  const int64_t begin = tile_begin(lower, tile), end = tile_end(lower, tile);
  int64_t least = begin, count = 0;
  for (int64_t k = lower->start[begin]; k < lower->start[end]; k++) {
    const int64_t column = lower->column[k];
    least = cb_smaller(least, column);
    if (column < begin) marks[column] = 1;
  }
  for (int64_t row = least; row < begin; row++) {
    if (!marks[row]) continue;
    if (rows) rows[count] = (uint32_t)row;
    count++;
    marks[row] = 0;
  }
  return count;
}

static int find_rows(struct cb_outer *outer, struct cb_arena *arena, const struct cb_lower_blocks *lower) {
  int failed = 0;
  outer->first = cb_arena_alloc(arena, (size_t)outer->tiles + 1, sizeof *outer->first);
  for (int fill = 0; fill < 2 && outer->first; fill++) {
#pragma omp parallel reduction(| : failed)
    {
      unsigned char *marks = cb_calloc((size_t)lower->block_rows + 1, 1);
      failed |= !marks;
#pragma omp for schedule(static)
      for (int64_t tile = 0; tile < outer->tiles; tile++) {
        if (!marks) continue;
        const int64_t count = collect(lower, tile, marks, fill ? outer->row + outer->first[tile] : NULL);
        if (!fill) outer->first[tile + 1] = count;
      }
      cb_free(marks);
    }
    if (failed) return 0;
    if (fill) continue;
    outer->first[0] = 0;
    for (int64_t tile = 0; tile < outer->tiles; tile++) {
      outer->most = cb_larger(outer->most, outer->first[tile + 1]);
      outer->first[tile + 1] += outer->first[tile];
    }
    outer->row = cb_arena_alloc(arena, (size_t)outer->first[outer->tiles] + 1, sizeof *outer->row);
    if (!outer->row) return 0;
  }
  return outer->first != NULL;
}

int64_t cb_outer_place(const struct cb_outer *outer, const struct cb_lower_blocks *lower, int64_t tile,
                       int64_t block_row) {
  const int64_t begin = tile_begin(lower, tile);
  if (block_row >= begin) return block_row - begin;
  const int64_t first = outer->first[tile];
  return lower->tile_rows + cb_place_among(outer->row + first, outer->first[tile + 1] - first, block_row);
}

/* ---- turns */

/* Of one thread block after the other; all of it but `of_distance`, whose elements are NO_TURN, is 0 between them. */
struct turns {
  uint64_t *taken;        /* by block row: steps in which somebody adds to it */
  uint8_t *of_distance;   /* by distance from the main diagonal */
  uint32_t distances[MOST_TURNS];
  int count;              /* distances that have a step of their own */
};

static int first_free(uint64_t taken) {
  int turn = 0;
  while (turn < MOST_TURNS && taken >> turn & 1) turn++;
  return turn;
}

/* The step of a block below the main diagonal, whose block row has those of `busy` already. */
static int turn_of(struct turns *turns, uint32_t distance, uint64_t busy, int most) {
  if (turns->of_distance[distance] == NO_TURN && turns->count < most) {
    turns->distances[turns->count] = distance;
    turns->of_distance[distance] = (uint8_t)turns->count++;
  }
  const int turn = turns->of_distance[distance];
  return turn != NO_TURN && !(busy >> turn & 1) ? turn : first_free(busy);
}

/* Steps of a thread block; more than there are: NO_TURN. */
static int64_t take_turns(struct cb_outer *outer, const struct cb_lower_blocks *lower, int64_t tile,
                          struct turns *turns) {
  const int64_t begin = tile_begin(lower, tile), end = tile_end(lower, tile);
  int64_t steps = 0, most = 0;
  for (int64_t row = begin; row < end; row++) most = cb_larger(most, lower->start[row + 1] - lower->start[row] - 1);
  most = cb_smaller(most, MOST_TURNS - 1);
  for (int64_t row = begin; row < end; row++) {
    uint64_t busy = 0;
    for (int64_t k = lower->start[row]; k < lower->start[row + 1]; k++) {
      const uint32_t column = lower->column[k];
      const int is_diagonal = column == row;
      const int turn = is_diagonal ? first_free(busy)
                                   : turn_of(turns, (uint32_t)row - column, busy | turns->taken[column], (int)most);
      if (turn == NO_TURN) steps = NO_TURN;
      if (turn == NO_TURN) break;
      outer->turn[k] = (uint8_t)turn;
      busy |= UINT64_C(1) << turn;
      if (!is_diagonal) turns->taken[column] |= UINT64_C(1) << turn;
      steps = cb_larger(steps, turn + 1);
    }
  }
  for (int i = 0; i < turns->count; i++) turns->of_distance[turns->distances[i]] = NO_TURN;
  turns->count = 0;
  for (int64_t k = lower->start[begin]; k < lower->start[end]; k++) turns->taken[lower->column[k]] = 0;
  return steps;
}

static int find_turns(struct cb_outer *outer, struct cb_arena *arena, const struct cb_lower_blocks *lower) {
  int failed = 0;
  outer->turn = cb_arena_alloc(arena, (size_t)lower->start[lower->block_rows] + 1, 1);
  outer->steps = cb_arena_alloc(arena, (size_t)outer->tiles + 1, sizeof *outer->steps);
  if (!outer->turn || !outer->steps) return 0;
#pragma omp parallel reduction(| : failed)
  {
    struct turns turns = {.taken = cb_calloc((size_t)lower->block_rows + 1, sizeof *turns.taken),
                          .of_distance = cb_alloc((size_t)lower->block_rows + 1, 1)};
    if (turns.of_distance) memset(turns.of_distance, NO_TURN, (size_t)lower->block_rows + 1);
    failed |= !turns.taken || !turns.of_distance;
#pragma omp for schedule(static)
    for (int64_t tile = 0; tile < outer->tiles; tile++) {
      if (!turns.taken || !turns.of_distance) continue;
      outer->steps[tile] = take_turns(outer, lower, tile, &turns);
      failed |= outer->steps[tile] == NO_TURN;
    }
    cb_free(turns.taken);
    cb_free(turns.of_distance);
  }
  for (int64_t tile = 0; tile < outer->tiles; tile++) outer->all_steps += outer->steps[tile];
  return !failed;
}

/* ---- parts: need outer block rows */

static int find_parts(struct cb_outer *outer, struct cb_arena *arena, const struct cb_lower_blocks *lower) {
  const int64_t rows = lower->block_rows, all = outer->first[outer->tiles];
  outer->part_first = cb_arena_alloc(arena, (size_t)rows + 2, sizeof *outer->part_first);
  outer->part = cb_arena_alloc(arena, (size_t)all + 1, sizeof *outer->part);
  if (!outer->part_first || !outer->part) return 0;
  int64_t *next = outer->part_first + 1; /* where the next part of a block row goes */
  for (int64_t k = 0; k < all; k++) next[outer->row[k] + 1]++;
  for (int64_t row = 1; row <= rows; row++) next[row] += next[row - 1];
  for (int64_t tile = 0; tile < outer->tiles; tile++)
    for (int64_t k = outer->first[tile]; k < outer->first[tile + 1]; k++)
      outer->part[next[outer->row[k]]++] = (uint32_t)((tile + 1) * lower->tile_rows + k);
  return 1;
}

int cb_outer_find(struct cb_outer *outer, struct cb_arena *arena, const struct cb_lower_blocks *lower) {
  *outer = (struct cb_outer){.tiles = cb_divide_up(lower->block_rows, lower->tile_rows)};
  return find_rows(outer, arena, lower) && find_turns(outer, arena, lower) && find_parts(outer, arena, lower);
}

/* ---- the region */

/* Bytes of a thread block's sums in shared memory, and of their entries of x. */
static int64_t shared_bytes(const struct cb_outer *outer, const struct cb_lower_blocks *lower,
                            const struct cb_region_builder *builder) {
  return 2 * (lower->tile_rows + outer->most) * lower->height * (int64_t)cb_type_size(builder->sum_type);
}

int cb_outer_fits(const struct cb_outer *outer, const struct cb_lower_blocks *lower,
                  const struct cb_region_builder *builder) {
  enum { PER_SM = 2, RESERVED = 2048 }; /* thread blocks of a multiprocessor; bytes of each beside these */
  const int64_t bytes = shared_bytes(outer, lower, builder) + RESERVED;
  const int64_t slots = outer->first[outer->tiles] + outer->tiles * lower->tile_rows;
  return PER_SM * bytes <= builder->target->shared_per_sm && bytes <= builder->target->shared_per_block &&
         slots <= INT32_MAX / lower->height;
}

void cb_outer_build(struct cb_region_builder *builder, const struct cb_outer *outer,
                    const struct cb_lower_blocks *lower) {
  enum { PLAIN_THREADS = 256 };
  const int64_t tiles = outer->tiles, all = outer->first[tiles];
  cb_region_list(builder, "outer_first", "outer block rows of thread blocks before", tiles + 1, outer->first);
  cb_region_list(builder, "outer_row", "they: of other thread blocks, ascending", all, outer->row);
  cb_region_list(builder, "part_first", "parts of a block row's sum that others leave, before it",
                 lower->block_rows + 1, outer->part_first);
  cb_region_list(builder, "part", "they: places among all sums that thread blocks leave", all, outer->part);
  cb_region_size(builder, "kPlaces", lower->tile_rows + outer->most,
                 "plan: block rows that a thread block adds to at most");
  builder->region.carry_slots = tiles * lower->tile_rows + all;
  builder->region.carry_width = lower->height;
  builder->region.finish_blocks = cb_divide_up(lower->block_rows * lower->height, PLAIN_THREADS);
  builder->region.dynamic_shared = shared_bytes(outer, lower, builder);
}

/* Each thread block reads its entries of x once, in whole lines, and sums are written to L2 and read there. */
void cb_outer_predict(struct cb_region_builder *builder) {
  enum { WHOLE_LINES = 2, SECTOR = 32 };
  const int64_t sums = builder->region.carry_slots * builder->region.carry_width;
  const int64_t bytes = sums * (int64_t)(cb_type_size(builder->vector_type) + 2 * cb_type_size(builder->sum_type));
  builder->region.cost.sectors = bytes / (SECTOR * WHOLE_LINES);
  builder->region.cost.bytes = sums * (int64_t)cb_type_size(builder->sum_type);
  builder->region.cost.tail_ns = sums * CB_COST_PART_FS / 1000000;
}
