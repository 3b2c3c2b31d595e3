// SPDX-License-Identifier: Apache-2.0
/* Rows in order of length, and sums: see slices.h. */
#include "analysis/slices.h"

/* A counting sort by what a row lacks of `most`. */
static void sort_window(int32_t *sorted, int64_t first, int64_t end, int64_t most, cb_row_length *length_of,
                        const void *state) {
  int32_t start[CB_MOST_LENGTH + 2] = {0};
  for (int64_t row = first; row < end; row++) start[most - cb_smaller(length_of(state, row), most) + 1]++;
  for (int64_t key = 1; key <= most; key++) start[key] += start[key - 1];
  for (int64_t row = first; row < end; row++)
    sorted[start[most - cb_smaller(length_of(state, row), most)]++] = (int32_t)row;
}

int32_t *cb_sorted_rows(struct cb_arena *arena, int64_t rows, int64_t places, int64_t most, cb_row_length *length_of,
                        const void *state) {
  int32_t *sorted = cb_arena_alloc(arena, (size_t)places, sizeof *sorted);
  if (!sorted) return NULL;
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < rows; first += CB_WINDOW)
    sort_window(sorted + first, first, cb_smaller(first + CB_WINDOW, rows), most, length_of, state);
  for (int64_t place = rows; place < places; place++) sorted[place] = (int32_t)rows;
  return sorted;
}

int64_t cb_sum_up(int64_t *first, int64_t count) {
  first[0] = 0;
  for (int64_t i = 0; i < count; i++) first[i + 1] += first[i];
  return first[count];
}
