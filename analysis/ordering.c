// SPDX-License-Identifier: Apache-2.0
/* Lists in parallel: see ordering.h. Both count first, range by range, so that each range knows where its own go. */
#include "analysis/ordering.h"

#include "base/integers.h"
#include "base/memory.h"

enum { RANGE = 1 << 14, MOST_RANGES = 64 };

/* ---- chosen ones */

/* The wanted rows of a range; only counts them while there is no list. */
static int64_t list_range(int64_t range, int64_t rows, cb_row_test *wanted, const void *user, int32_t *list) {
  const int64_t end = cb_smaller((range + 1) * RANGE, rows);
  int64_t listed = 0;
  for (int64_t row = range * RANGE; row < end; row++) {
    if (!wanted(user, row)) continue;
    if (list) list[listed] = (int32_t)row;
    listed++;
  }
  return listed;
}

int32_t *cb_rows_where(struct cb_arena *arena, int64_t rows, cb_row_test *wanted, const void *user, int64_t *count) {
  const int64_t ranges = cb_divide_up(rows, RANGE);
  int64_t *first = cb_calloc((size_t)ranges + 1, sizeof *first);
  if (!first) return NULL;
#pragma omp parallel for schedule(dynamic) if (ranges > 1)
  for (int64_t range = 0; range < ranges; range++) first[range + 1] = list_range(range, rows, wanted, user, NULL);
  for (int64_t range = 0; range < ranges; range++) first[range + 1] += first[range];
  *count = first[ranges];
  int32_t *list = cb_arena_alloc(arena, (size_t)*count, sizeof *list);
  if (list && *count) {
#pragma omp parallel for schedule(dynamic) if (ranges > 1)
    for (int64_t range = 0; range < ranges; range++)
      if (first[range + 1] > first[range]) list_range(range, rows, wanted, user, list + first[range]);
  }
  cb_free(first);
  return list;
}

/* ---- in the order of a key */

/* From counters by range and key to where a range's first of a key goes. */
static int64_t sum_up(int32_t *start, int64_t ranges, int64_t keys) {
  int32_t sum = 0;
  for (int64_t key = 0; key < keys; key++)
    for (int64_t range = 0; range < ranges; range++) {
      const int32_t here = start[range * keys + key];
      start[range * keys + key] = sum;
      sum += here;
    }
  return sum;
}

int64_t cb_sort_by_key(int32_t *sorted, const uint32_t *key, int64_t count, int64_t keys) {
  const int64_t length = cb_larger(RANGE, cb_divide_up(count, MOST_RANGES)), ranges = cb_divide_up(count, length);
  int32_t *start = cb_calloc((size_t)(ranges * keys), sizeof *start);
  if (!start) return -1;
#pragma omp parallel for schedule(static)
  for (int64_t range = 0; range < ranges; range++) {
    const int64_t end = cb_smaller((range + 1) * length, count);
    for (int64_t i = range * length; i < end; i++)
      if (key[i] < keys) start[range * keys + key[i]]++;
  }
  const int64_t kept = sum_up(start, ranges, keys);
#pragma omp parallel for schedule(static)
  for (int64_t range = 0; range < ranges; range++) {
    const int64_t end = cb_smaller((range + 1) * length, count);
    for (int64_t i = range * length; i < end; i++)
      if (key[i] < keys) sorted[start[range * keys + key[i]]++] = (int32_t)i;
  }
  cb_free(start);
  return kept;
}
