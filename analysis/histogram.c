// SPDX-License-Identifier: Apache-2.0
/* Counts by their size: see histogram.h. */
#include "analysis/histogram.h"

#include "base/integers.h"
#include "base/memory.h"

static uint32_t largest_of(const uint32_t *counts, int64_t count) {
  uint32_t largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest)
  for (int64_t i = 0; i < count; i++)
    if (counts[i] > largest) largest = counts[i];
  return largest;
}

int cb_histogram_open(struct cb_histogram *histogram, const uint32_t *counts, int64_t count) {
  *histogram = (struct cb_histogram){.largest = largest_of(counts, count)};
  histogram->of_size = cb_calloc((size_t)histogram->largest + 1, sizeof *histogram->of_size);
  for (int64_t i = 0; histogram->of_size && i < count; i++) histogram->of_size[counts[i]]++;
  return histogram->of_size != NULL;
}

void cb_histogram_close(struct cb_histogram *histogram) {
  cb_free(histogram->of_size);
  *histogram = (struct cb_histogram){0};
}

struct cb_fewest cb_histogram_fewest(const struct cb_histogram *histogram, int64_t wanted) {
  const int64_t *of_size = histogram->of_size;
  int64_t size = histogram->largest, all = 0;
  while (size > 0 && of_size[size] * size < wanted) {
    wanted -= of_size[size] * size;
    all += of_size[size--];
  }
  const int64_t in_last = size > 0 ? cb_divide_up(wanted, size) : 0;
  return (struct cb_fewest){.all = all + in_last, .size = size, .in_last = in_last};
}
