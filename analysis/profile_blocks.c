// SPDX-License-Identifier: Apache-2.0
/* Touched blocks of every shape, and the sub-blocks of CB-SpMV. Groups of neighbouring rows are merged into
 * one ascending list of columns, each with the set of rows that have a nonzero there, as bits; all block
 * shapes that divide the group's height are then counted in one walk over that list. Two heights serve all
 * shapes: 16 for sub-blocks and powers of two, 30 for 3, 5 and 6.
 *
 * A group is merged window by window, so that the list fits a fixed small buffer however long the rows are. A
 * window ends at a multiple of all block widths: no block reaches over its end. */
#include "analysis/profile_parts.h"

#include <string.h>

enum { MOST_ROWS = 30, ROOM = 4096, PANEL = 16, THIRTY = 30, GROUPS_AT_A_TIME = 32 };

/* ---- merging */

struct window {
  const struct cb_csr *csr;
  int height; /* rows of the group; also the unit at which windows end, a multiple of all block widths */
  int64_t next[MOST_ROWS], end[MOST_ROWS]; /* nonzeros of each row that are still to come */
  uint64_t buffer[2][ROOM + 1];
  const uint64_t *items; /* column << 32 | rows, ascending; behind the last one UINT64_MAX */
  int count;
};

static void open_group(struct window *window, const struct cb_csr *csr, int height, int64_t group) {
  window->csr = csr;
  window->height = height;
  for (int r = 0; r < height; r++) {
    const int64_t row = group * height + r;
    window->next[r] = row < csr->rows ? cb_csr_row(csr, row) : 0;
    window->end[r] = row < csr->rows ? cb_csr_row(csr, row + 1) : 0;
  }
}

/* The column at which the window ends, so that no row has more than its share of the room before it. Every
 * window takes something: a row's share spans more columns than the rounding takes away. */
static int64_t window_end(const struct window *window) {
  const int share = ROOM / window->height;
  int64_t end = INT64_MAX;
  for (int r = 0; r < window->height; r++) {
    if (window->end[r] - window->next[r] <= share) continue;
    const int64_t col = window->csr->col_idx[window->next[r] + share];
    if (col < end) end = col;
  }
  return end == INT64_MAX ? end : end - end % window->height;
}

/* Number of the row's coming nonzeros before column `end`. */
static int take_before(const struct window *window, int r, int64_t end) {
  const int32_t *cols = window->csr->col_idx + window->next[r];
  const int share = ROOM / window->height;
  const int64_t left = window->end[r] - window->next[r];
  if (end == INT64_MAX) return (int)left;
  int low = 0, high = left < share ? (int)left : share;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (cols[middle] < end)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Merges two ascending lists; equal columns become one item. Returns the length. The choice between the lists
 * is arithmetic, not a branch: for scattered columns no processor could foresee it. */
static int merge(uint64_t *out, const uint64_t *a, int a_count, const uint64_t *b, int b_count) {
  const uint64_t *const a_end = a + a_count, *const b_end = b + b_count, *const first = out;
  while (a < a_end && b < b_end) {
    const uint64_t x = *a, y = *b, x_col = x >> 32, y_col = y >> 32;
    const uint64_t take_x = x_col <= y_col, take_y = y_col <= x_col;
    *out++ = (x & -take_x) | (y & -take_y);
    a += take_x;
    b += take_y;
  }
  memcpy(out, a, (size_t)(a_end - a) * sizeof *a);
  out += a_end - a;
  memcpy(out, b, (size_t)(b_end - b) * sizeof *b);
  return (int)(out + (b_end - b) - first);
}

/* Merges neighbouring lists until one is left, between the two buffers. */
static void merge_all(struct window *window, int counts[MOST_ROWS + 1], int lists) {
  int from = 0;
  for (; lists > 1; lists = (lists + 1) / 2, from = !from) {
    const uint64_t *in = window->buffer[from];
    uint64_t *out = window->buffer[!from];
    counts[lists] = 0; /* the partner of a last list without one */
    for (int k = 0; k < lists; k += 2) {
      const int both = counts[k] + counts[k + 1];
      counts[k / 2] = merge(out, in, counts[k], in + counts[k], counts[k + 1]);
      out += counts[k / 2];
      in += both;
    }
  }
  window->count = counts[0];
  window->buffer[from][counts[0]] = UINT64_MAX;
  window->items = window->buffer[from];
}

/* Merges the group's next window; returns 0 at the group's end. */
static int next_window(struct window *window) {
  int counts[MOST_ROWS + 1], total = 0;
  const int64_t end = window_end(window);
  for (int r = 0; r < window->height; r++) {
    const int32_t *cols = window->csr->col_idx + window->next[r];
    counts[r] = take_before(window, r, end);
    for (int k = 0; k < counts[r]; k++)
      window->buffer[0][total + k] = (uint64_t)cols[k] << 32 | UINT64_C(1) << r;
    total += counts[r];
    window->next[r] += counts[r];
  }
  if (total) merge_all(window, counts, window->height);
  return total > 0;
}

/* ---- counting */

enum { BITS, PAIRS, QUADS, OCTETS, FIELDS }; /* of rows: those set, aligned groups of 2, 4, 8 with any set */

struct block_counts {
  int64_t blocks[CB_PROFILE_SHAPES];
  int64_t subblocks[CB_PROFILE_SUBBLOCK + 1], aggregated[CB_PROFILE_SUBBLOCK + 1];
  int columns, nonzeros; /* of the aggregated sub-block under construction */
  uint64_t of_byte[256]; /* the four numbers of eight rows, 16 bits each; a window has at most ROOM of each */
};

static void tabulate(uint64_t of_byte[256]) {
  for (int byte = 0; byte < 256; byte++) {
    uint64_t number[FIELDS] = {0};
    for (int bit = 0; bit < 8; bit++) number[BITS] += (unsigned)byte >> bit & 1;
    for (int bit = 0; bit < 8; bit += 2) number[PAIRS] += (byte >> bit & 3) != 0;
    for (int bit = 0; bit < 8; bit += 4) number[QUADS] += (byte >> bit & 15) != 0;
    number[OCTETS] = byte != 0;
    of_byte[byte] = 0;
    for (int field = 0; field < FIELDS; field++) of_byte[byte] |= number[field] << 16 * field;
  }
}

static inline uint64_t numbers_of(const uint64_t of_byte[256], unsigned rows) {
  return of_byte[rows & 255] + of_byte[rows >> 8];
}

static inline int64_t field_of(uint64_t numbers, int field) {
  return numbers >> 16 * field & 0xffff;
}

static void end_aggregated(struct block_counts *counts) {
  counts->aggregated[counts->nonzeros]++;
  counts->columns = counts->nonzeros = 0;
}

static void add_aggregated(struct block_counts *counts, int nonzeros) {
  counts->nonzeros += nonzeros;
  if (++counts->columns == PANEL) end_aggregated(counts);
}

/* One walk over a panel's columns: the rows of 2, 4 and 8 aligned columns are joined on the way. */
static void count_panel_window(struct block_counts *counts, const struct window *window) {
  const uint64_t *const of_byte = counts->of_byte;
  uint64_t ones = 0, twos = 0, fours = 0, eights = 0;
  unsigned two = 0, four = 0, eight = 0;
  int nonzeros = 0;
  for (int i = 0; i < window->count; i++) {
    const uint64_t item = window->items[i], change = (item ^ window->items[i + 1]) >> 32;
    const uint64_t numbers = numbers_of(of_byte, (unsigned)item & 0xffff);
    ones += numbers;
    two |= (unsigned)item & 0xffff;
    nonzeros += (int)field_of(numbers, BITS);
    add_aggregated(counts, (int)field_of(numbers, BITS));
    if (change < 2) continue;
    twos += numbers_of(of_byte, two);
    four |= two;
    two = 0;
    if (change < 4) continue;
    fours += numbers_of(of_byte, four);
    eight |= four;
    four = 0;
    if (change < 8) continue;
    eights += numbers_of(of_byte, eight);
    eight = 0;
    if (change < 16) continue;
    counts->subblocks[nonzeros]++;
    nonzeros = 0;
  }
  counts->blocks[0] += field_of(twos, BITS);
  counts->blocks[1] += field_of(ones, PAIRS);
  counts->blocks[2] += field_of(twos, PAIRS);
  counts->blocks[4] += field_of(fours, QUADS);
  counts->blocks[7] += field_of(eights, OCTETS);
}

static int count_bits(uint32_t bits) {
  bits = (bits & 0x55555555) + (bits >> 1 & 0x55555555);
  bits = (bits & 0x33333333) + (bits >> 2 & 0x33333333);
  bits = (bits + (bits >> 4)) & 0x0f0f0f0f;
  return (int)(bits * 0x01010101 >> 24);
}

/* Aligned groups of 3, 5, 6 among 30 rows with any set. */
static int threes_of(uint32_t rows) {
  return count_bits((rows | rows >> 1 | rows >> 2) & 0x09249249);
}
static int fives_of(uint32_t rows) {
  rows |= rows >> 1;
  return count_bits((rows | rows >> 2 | rows >> 3) & 0x02108421);
}
static int sixes_of(uint32_t rows) {
  rows |= rows >> 1;
  return count_bits((rows | rows >> 2 | rows >> 4) & 0x01041041);
}

static void count_thirty_window(struct block_counts *counts, const struct window *window) {
  uint32_t three = 0, five = 0, six = 0;
  int64_t threes = 0, fives = 0, sixes = 0;
  uint32_t col = (uint32_t)(window->items[0] >> 32);
  for (int i = 0; i < window->count; i++) {
    const uint32_t rows = (uint32_t)window->items[i], next = (uint32_t)(window->items[i + 1] >> 32);
    three |= rows;
    five |= rows;
    if (col / 5 != next / 5) {
      fives += fives_of(five);
      five = 0;
    }
    if (col / 3 != next / 3) {
      threes += threes_of(three);
      six |= three;
      three = 0;
      if (col / 6 != next / 6) {
        sixes += sixes_of(six);
        six = 0;
      }
    }
    col = next;
  }
  counts->blocks[3] += threes;
  counts->blocks[5] += fives;
  counts->blocks[6] += sixes;
}

static void count_panel(struct block_counts *counts, struct window *window, int64_t panel) {
  open_group(window, window->csr, PANEL, panel);
  while (next_window(window)) count_panel_window(counts, window);
  if (counts->columns) end_aggregated(counts);
}

static void count_thirty(struct block_counts *counts, struct window *window, int64_t group) {
  open_group(window, window->csr, THIRTY, group);
  while (next_window(window)) count_thirty_window(counts, window);
}

void cb_profile_blocks(struct cb_profile *profile, const struct cb_csr *csr) {
  const int64_t panels = (csr->rows + PANEL - 1) / PANEL, thirties = (csr->rows + THIRTY - 1) / THIRTY;
#pragma omp parallel
  {
    struct block_counts own = {.columns = 0};
    struct window window = {.csr = csr};
    tabulate(own.of_byte);
#pragma omp for schedule(dynamic, GROUPS_AT_A_TIME) nowait
    for (int64_t panel = 0; panel < panels; panel++) count_panel(&own, &window, panel);
#pragma omp for schedule(dynamic, GROUPS_AT_A_TIME) nowait
    for (int64_t group = 0; group < thirties; group++) count_thirty(&own, &window, group);
#pragma omp critical(cb_profile_blocks)
    {
      for (int k = 0; k < CB_PROFILE_SHAPES; k++) profile->blocks[k] += own.blocks[k];
      for (int k = 0; k <= CB_PROFILE_SUBBLOCK; k++) profile->subblocks[k] += own.subblocks[k];
      for (int k = 0; k <= CB_PROFILE_SUBBLOCK; k++) profile->aggregated[k] += own.aggregated[k];
    }
  }
}
