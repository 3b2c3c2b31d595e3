// SPDX-License-Identifier: Apache-2.0
/* Long rows in an order in which those of a chunk share columns: see chunks.h. Rows are bitmaps over a sample of the
 * columns. Chunks are filled one after the other, each from the longest row left, by what shares most with those that
 * it has; then two rows of different chunks change places as long as that leaves fewer columns. */
#include "analysis/chunks.h"

#include "base/integers.h"

#include <string.h>

enum {
  MOST_ROWS = 512,
  LEAST_LENGTH = 64, /* of a row: others are soon read */
  WORK = 1 << 25,    /* words that filling chunks looks at, at most */
  SWAPS = 1 << 25    /* that changing places looks at: some hundredths of a second */
};

struct alike {
  const struct cb_csr *csr;
  int64_t rows, words;  /* of a bitmap */
  int64_t every;        /* of so many columns one is in the sample */
  int32_t *number;      /* by place: the order so far, and what is left behind it */
  uint64_t *columns;    /* bitmaps, by a row's number: its place at first */
  uint64_t *any, *once; /* by chunk: columns in which some row has a nonzero, and exactly one */
};

static const uint64_t *columns_of(const struct alike *alike, int64_t place) {
  return alike->columns + alike->number[place] * alike->words;
}

static int64_t chunk_end(const struct alike *alike, int64_t chunk) {
  return cb_smaller((chunk + 1) * CB_CHUNK_ROWS, alike->rows);
}

/* ---- bitmaps */

/* One of every so many columns, not always the same one of them. */
static int is_sampled(const struct alike *alike, int64_t column) {
  const uint32_t group = (uint32_t)(column / alike->every);
  return column % alike->every == (group * 0x9e3779b1u >> 16) % alike->every;
}

static void mark_columns(struct alike *alike, int64_t number, int64_t row) {
  uint64_t *columns = alike->columns + number * alike->words;
  for (int64_t k = cb_csr_row(alike->csr, row); k < cb_csr_row(alike->csr, row + 1); k++) {
    const int64_t column = alike->csr->col_idx[k], bit = column / alike->every;
    if (is_sampled(alike, column)) columns[bit / 64] |= UINT64_C(1) << bit % 64;
  }
}

static int64_t shared(const uint64_t *one, const uint64_t *other, int64_t words) {
  int64_t count = 0;
  for (int64_t w = 0; w < words; w++) count += __builtin_popcountll(one[w] & other[w]);
  return count;
}

/* ---- chunk by chunk */

/* The row that shares most with `columns` comes to that place; of those that share as much the first. */
static void bring_most_alike(struct alike *alike, const uint64_t *columns, int64_t place) {
  int64_t most = -1, best = place;
  for (int64_t i = place; i < alike->rows; i++) {
    const int64_t count = shared(columns, columns_of(alike, i), alike->words);
    if (count <= most) continue;
    most = count;
    best = i;
  }
  const int32_t number = alike->number[best];
  memmove(alike->number + place + 1, alike->number + place, (size_t)(best - place) * sizeof number);
  alike->number[place] = number;
}

static void fill_chunk(struct alike *alike, int64_t chunk) {
  uint64_t *any = alike->any + chunk * alike->words;
  for (int64_t place = chunk * CB_CHUNK_ROWS; place < chunk_end(alike, chunk); place++) {
    if (place % CB_CHUNK_ROWS) bring_most_alike(alike, any, place);
    const uint64_t *columns = columns_of(alike, place);
    for (int64_t w = 0; w < alike->words; w++) any[w] |= columns[w];
  }
}

/* ---- changing places */

static void count_columns(struct alike *alike, int64_t chunk) {
  uint64_t *any = alike->any + chunk * alike->words, *once = alike->once + chunk * alike->words;
  memset(any, 0, (size_t)alike->words * sizeof *any);
  memset(once, 0, (size_t)alike->words * sizeof *once);
  for (int64_t place = chunk * CB_CHUNK_ROWS; place < chunk_end(alike, chunk); place++) {
    const uint64_t *columns = columns_of(alike, place);
    for (int64_t w = 0; w < alike->words; w++) {
      once[w] = (once[w] & ~columns[w]) | (columns[w] & ~any[w]);
      any[w] |= columns[w];
    }
  }
}

static void swap(struct alike *alike, int64_t one, int64_t other) {
  const int32_t number = alike->number[one];
  alike->number[one] = alike->number[other];
  alike->number[other] = number;
  count_columns(alike, one / CB_CHUNK_ROWS);
  count_columns(alike, other / CB_CHUNK_ROWS);
}

/* How many columns the chunk of `out` loses when that row goes and `in` comes. */
static int64_t gain(const struct alike *alike, int64_t out, int64_t in) {
  const uint64_t *any = alike->any + out / CB_CHUNK_ROWS * alike->words;
  const uint64_t *once = alike->once + out / CB_CHUNK_ROWS * alike->words;
  const uint64_t *goes = columns_of(alike, out), *comes = columns_of(alike, in);
  int64_t count = 0;
  for (int64_t w = 0; w < alike->words; w++) {
    const uint64_t lost = once[w] & goes[w] & ~comes[w], won = comes[w] & ~any[w];
    count += __builtin_popcountll(lost) - __builtin_popcountll(won);
  }
  return count;
}

/* Whether some have changed places. `left`: words that may still be looked at. */
static int change_places(struct alike *alike, int64_t *left) {
  int changed = 0;
  for (int64_t one = 0; one < alike->rows; one++)
    for (int64_t other = (one / CB_CHUNK_ROWS + 1) * CB_CHUNK_ROWS; other < alike->rows; other++) {
      if ((*left -= 2 * alike->words) < 0) return 0;
      if (gain(alike, one, other) + gain(alike, other, one) <= 0) continue;
      swap(alike, one, other);
      changed = 1;
    }
  return changed;
}

/* ---- all of it */

static void find_order(struct alike *alike, const int32_t *row) {
  const int64_t chunks = cb_divide_up(alike->rows, CB_CHUNK_ROWS);
  int64_t left = SWAPS;
  for (int64_t i = 0; i < alike->rows; i++) {
    alike->number[i] = (int32_t)i;
    mark_columns(alike, i, row[i]);
  }
  for (int64_t chunk = 0; chunk < chunks; chunk++) fill_chunk(alike, chunk);
  for (int64_t chunk = 0; chunk < chunks; chunk++) count_columns(alike, chunk);
  while (change_places(alike, &left)) continue;
}

/* Only the longest ones are left of rows that are ordered by length: whole chunks, unless there are no others. */
static void leave_long_ones(struct cb_row_order *order, const struct cb_csr *csr) {
  const int64_t all = order->count;
  order->count = cb_smaller(order->count, MOST_ROWS);
  while (order->count && cb_csr_row_length(csr, order->row[order->count - 1]) < LEAST_LENGTH) order->count--;
  if (order->count < all) order->count -= order->count % CB_CHUNK_ROWS;
}

int cb_chunks_gather(struct cb_row_order *order, const struct cb_csr *csr) {
  struct cb_arena scratch = {0};
  leave_long_ones(order, csr);
  if (order->count <= CB_CHUNK_ROWS) return 1;
  struct alike alike = {.csr = csr, .rows = order->count};
  const size_t rows = (size_t)alike.rows, chunks = (size_t)cb_divide_up(alike.rows, CB_CHUNK_ROWS);
  alike.every = cb_divide_up(csr->cols, 64 * (WORK / (alike.rows * alike.rows)));
  alike.words = cb_divide_up(cb_divide_up(csr->cols, alike.every), 64);
  alike.number = cb_arena_alloc(&scratch, rows, sizeof *alike.number);
  alike.columns = cb_arena_alloc(&scratch, rows * (size_t)alike.words, sizeof *alike.columns);
  alike.any = cb_arena_alloc(&scratch, chunks * (size_t)alike.words, sizeof *alike.any);
  alike.once = cb_arena_alloc(&scratch, chunks * (size_t)alike.words, sizeof *alike.once);
  int32_t *row = cb_arena_copy(&scratch, order->row, rows, sizeof *row);
  const int good = !scratch.failed;
  if (good) find_order(&alike, row);
  for (int64_t i = 0; good && i < alike.rows; i++) order->row[i] = row[alike.number[i]];
  cb_arena_release(&scratch);
  return good;
}
