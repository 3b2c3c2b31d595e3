// SPDX-License-Identifier: Apache-2.0
/* Slot maps as layouts make them, for tests of value maps: groups of each shape resemble each other in another way. */
#ifndef CBGEN_TESTS_VALUE_MAPS_H
#define CBGEN_TESTS_VALUE_MAPS_H

#include "tests/support.h"

#include "runtime/operator/values.h"

enum { MOST_REGIONS = 16 };

struct slots {
  struct cb_slot_map maps[MOST_REGIONS];
  int regions;
};

static inline void add_region(struct slots *slots, int64_t count) {
  struct cb_slot_map *map = &slots->maps[slots->regions++];
  *map = (struct cb_slot_map){.count = count, .wide = 1, .entries = calloc((size_t)count + 1, 8)};
  assert_non_null(map->entries);
}

static inline void slots_release(struct slots *slots) {
  for (int i = 0; i < slots->regions; i++) free(slots->maps[i].entries);
}

enum { SLICES = 40, STEPS = 8, MOST_ENTRIES = 4000000 };

struct shape {
  const char *name;
  int delta_code, residual_code, counted; /* of most blocks */
  int64_t (*entry)(int slice, int step, int row, uint64_t *seed);
  int blocks; /* at most */
};

/* Rows of 12 entries, side by side. */
static inline int64_t even(int slice, int step, int row, uint64_t *seed) {
  (void)seed;
  return (slice * CB_GROUP_SLOTS + row) * 12 + step;
}
/* Rows anywhere, of which a step takes the next entry. */
static inline int64_t row_begin(int slice, int row) {
  uint64_t seed = (uint64_t)(slice * CB_GROUP_SLOTS + row);
  return (int64_t)(draw(&seed) % 30000) * 100;
}
static inline int64_t scattered(int slice, int step, int row, uint64_t *seed) {
  (void)seed;
  return row_begin(slice, row) + step;
}
/* The same with gaps. */
static inline int64_t with_gaps(int slice, int step, int row, uint64_t *seed) {
  return row_begin(slice, row) + 5 * step + (int64_t)(draw(seed) % 5);
}
/* Diagonals: a row has some of them, and its entries follow each other. */
static inline int has_diagonal(int slice, int step, int row) {
  uint64_t seed = (uint64_t)((slice * CB_GROUP_SLOTS + row) * STEPS + step);
  return draw(&seed) % 8 < 5;
}
static inline int64_t with_holes(int slice, int step, int row, uint64_t *seed) {
  int64_t entry = (int64_t)(slice * CB_GROUP_SLOTS) * STEPS;
  (void)seed;
  for (int r = 0; r < row; r++)
    for (int d = 0; d < STEPS; d++) entry += has_diagonal(slice, d, r);
  for (int d = 0; d < step; d++) entry += has_diagonal(slice, d, row);
  return has_diagonal(slice, step, row) ? entry : -1;
}
/* The same of half as many diagonals: the steps of a slice are those of two. */
static inline int64_t with_few(int slice, int step, int row, uint64_t *seed) {
  const int half = 2 * slice + step / (STEPS / 2), diagonal = step % (STEPS / 2);
  int64_t entry = (int64_t)(half * CB_GROUP_SLOTS) * STEPS / 2;
  (void)seed;
  for (int i = 0; i < row * STEPS / 2 + diagonal; i++)
    entry += has_diagonal(half, i % (STEPS / 2), i / (STEPS / 2));
  return has_diagonal(half, diagonal, row) ? entry : -1;
}
static inline int64_t anywhere(int slice, int step, int row, uint64_t *seed) {
  (void)slice;
  (void)step;
  (void)row;
  return (int64_t)(draw(seed) % MOST_ENTRIES);
}
static inline int64_t nearby(int slice, int step, int row, uint64_t *seed) {
  (void)row;
  return (slice * STEPS + step) * 100 + (int64_t)(draw(seed) % 200);
}

static const struct shape shapes[] = {
    {"even", 2, 0, 0, even, SLICES *STEPS / 4},
    {"scattered", 3, 0, 0, scattered, SLICES * 2},
    {"gaps", 3, 1, 0, with_gaps, SLICES * 2},
    {"holes", 1, 0, 1, with_holes, SLICES * 2},
    {"few diagonals", CB_PREFIX_COUNTS, 0, 1, with_few, SLICES * 2},
    {"anywhere", 0, 3, 0, anywhere, SLICES *STEPS * 3 / 10},
    {"nearby", 0, 1, 0, nearby, SLICES *STEPS * 3 / 10},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Adds a region of this shape. */
static inline void put_shape(struct slots *slots, const struct shape *shape, uint64_t seed) {
  const int region = slots->regions;
  add_region(slots, SLICES * STEPS * CB_GROUP_SLOTS);
  for (int slice = 0; slice < SLICES; slice++)
    for (int step = 0; step < STEPS; step++)
      for (int row = 0; row < CB_GROUP_SLOTS; row++) {
        const int64_t entry = shape->entry(slice, step, row, &seed);
        cb_slot_set(&slots->maps[region], (slice * STEPS + step) * CB_GROUP_SLOTS + row,
                    entry < 0 ? CB_NO_NONZERO : (uint64_t)entry);
      }
}

#endif
