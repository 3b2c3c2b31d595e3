// SPDX-License-Identifier: Apache-2.0
/* Rows in order of length, and sums: see slices.h. */
#include "analysis/slices.h"

#include <stdio.h>
#include <string.h>

/* A counting sort by what a row lacks of the longest, or of `most`. */
static void sort_window(int32_t *sorted, int64_t first, int64_t end, int64_t most, cb_row_length *length_of,
                        const void *state) {
  int32_t start[CB_MOST_LENGTH + 2];
  uint16_t counted[CB_WINDOW]; /* length of each row: `most` at most */
  int64_t longest = 0;
  for (int64_t row = first; row < end; row++) {
    const int64_t length = cb_smaller(length_of(state, row), most);
    counted[row - first] = (uint16_t)length;
    longest = cb_larger(longest, length);
  }
  memset(start, 0, ((size_t)longest + 2) * sizeof *start);
  for (int64_t i = 0; i < end - first; i++) start[longest - counted[i] + 1]++;
  for (int64_t i = 1; i <= longest; i++) start[i] += start[i - 1];
  for (int64_t i = 0; i < end - first; i++) sorted[start[longest - counted[i]]++] = (int32_t)(first + i);
}

int32_t *cb_sorted_rows(struct cb_arena *arena, int64_t rows, int64_t local_rows, int64_t window, int64_t most,
                        cb_row_length *length_of, const void *state) {
  int32_t *sorted = cb_arena_alloc(arena, (size_t)local_rows, sizeof *sorted);
  if (!sorted) return NULL;
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < rows; first += window)
    sort_window(sorted + first, first, cb_smaller(first + window, rows), most, length_of, state);
  for (int64_t i = rows; i < local_rows; i++) sorted[i] = (int32_t)rows;
  return sorted;
}

int64_t cb_sum_up(int64_t *first, int64_t count) {
  first[0] = 0;
  for (int64_t i = 0; i < count; i++) first[i + 1] += first[i];
  return first[count];
}

/* Whether one of the rows first … end - 1 has another length. */
static int has_other(int64_t first, int64_t end, int64_t length, cb_row_length *length_of, const void *state) {
  int other = 0;
#pragma omp parallel for schedule(static) reduction(| : other) if (end - first >= CB_PARALLEL_LEAST)
  for (int64_t row = first; row < end; row++) other |= length_of(state, row) != length;
  return other;
}

/* Where there are two lengths, they nearly always are among the first rows. */
int64_t cb_equal_length(int64_t rows, cb_row_length *length_of, const void *state) {
  enum { FEW = 64 };
  const int64_t length = length_of(state, 0), few = cb_smaller(rows, FEW);
  return has_other(0, few, length, length_of, state) || has_other(few, rows, length, length_of, state) ? -1 : length;
}

int64_t *cb_first_steps(struct cb_arena *arena, int64_t slices, cb_row_length *steps_of, const void *state,
                        int64_t *longest) {
  int64_t *first = cb_arena_alloc(arena, (size_t)slices + 1, sizeof *first), most = 0;
#pragma omp parallel for schedule(static) reduction(max : most) if (slices >= CB_PARALLEL_LEAST / CB_LANES)
  for (int64_t slice = 0; slice < (first ? slices : 0); slice++) {
    first[slice + 1] = steps_of(state, slice);
    most = cb_larger(most, first[slice + 1]);
  }
  if (first) cb_sum_up(first, slices);
  if (longest) *longest = most;
  return first;
}

int cb_slices_alloc(struct cb_slices *slices, struct cb_arena *arena, int64_t count) {
  slices->lanes_log2 = cb_arena_alloc(arena, (size_t)count, 1);
  slices->first_local_row = cb_arena_alloc(arena, (size_t)count, sizeof *slices->first_local_row);
  return !arena->failed;
}

void cb_region_slices(struct cb_region_builder *builder, const struct cb_slices *slices, int64_t count,
                      const char *what) {
  char meaning[80];
  snprintf(meaning, sizeof meaning, "logarithm of the lanes that share %s", what);
  cb_region_list(builder, "lanes_log2", meaning, count, slices->lanes_log2);
  cb_region_list(builder, "first_local_row", "a slice's first local row", count, slices->first_local_row);
}

void cb_region_column_offsets(struct cb_region_builder *builder, const char *what, int64_t slices,
                              const uint32_t *first_column, struct cb_slot_elements offsets) {
  char meaning[80];
  snprintf(meaning, sizeof meaning, "least %s of a slice", what);
  cb_region_list(builder, "first_column", meaning, slices, first_column);
  snprintf(meaning, sizeof meaning, "%s of a slot, from its slice's first", what);
  cb_region_by_slot(builder, "column_offset", meaning, offsets);
}
