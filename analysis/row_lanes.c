// SPDX-License-Identifier: Apache-2.0
/* Rules for lanes and orders: see row_lanes.h. */
#include "analysis/row_lanes.h"

#include "base/integers.h"

enum { LANES = 32, BLOCK = 256 /* threads of a thread block */, THREADS = 1536 /* of a multiprocessor */ };
enum { BATCH = 8 /* steps */ };

int cb_row_lanes(int64_t rows, int64_t nonzeros, const struct cb_target *target) {
  const int64_t mean = nonzeros / cb_larger(1, rows);
  int lanes = 1;
  while (lanes < LANES && rows * lanes < 1024 * (int64_t)target->multiprocessors && mean >= 4 * lanes) lanes *= 2;
  while (lanes < LANES && mean >= 128 * lanes) lanes *= 2;
  return lanes;
}

/* So much of `bytes` as what is stored lies beyond the first half of L2: none up to there, all where L2 is full. */
static int64_t beyond_half(int64_t bytes, int64_t stored, const struct cb_target *target) {
  const int64_t half = target->l2_bytes / 2;
  return cb_proportion(bytes, cb_larger(0, cb_smaller(stored, 2 * half) - half), half);
}

/* L2 brings the first half of what it has room for at one and a half times the rate of memory. */
static int64_t bytes_ns(int64_t bytes, const struct cb_target *target) {
  return (bytes * 2 + beyond_half(bytes, bytes, target)) / target->read_gb_per_s / 3;
}

/* Of thread blocks, of which the GPU has room for so many: an overhang of a sixth finds room among the others. */
static int64_t rounds_of(int64_t blocks, int64_t room) {
  enum { OVERHANG_PERCENT = 16 };
  return cb_larger(1, cb_divide_up(blocks * 100 - room * OVERHANG_PERCENT, room * 100));
}

/* Of waits and bytes, which overlap, so much of the shorter. */
static int64_t together_ns(int64_t waits, int64_t bytes, int64_t shorter_percent) {
  return cb_larger(waits, bytes) + cb_smaller(waits, bytes) * shorter_percent / 100;
}

int64_t cb_slices_ns(const struct cb_slices_work *work, const struct cb_target *target) {
  enum { BLOCKS = 6, START_NS = 1300, BATCH_NS = 500, SHORTER_PERCENT = 45 };
  enum { ORDER_NS = 330, NONZEROS_OF_NS = 2000, RECORD_NS = 120, SPLIT_NS = 1500 };
  const int64_t room = BLOCKS * (int64_t)target->multiprocessors;
  const int64_t round_ns = START_NS + BATCH_NS * work->mean;
  const int64_t waits =
      cb_larger(cb_proportion(round_ns, cb_larger(work->blocks, room), room), START_NS + BATCH_NS * work->longest);
  return together_ns(waits, bytes_ns(work->bytes, target), SHORTER_PERCENT) +
         (work->sorted ? ORDER_NS + work->nonzeros / NONZEROS_OF_NS : 0) + (work->varied ? RECORD_NS : 0) +
         (work->split ? SPLIT_NS : 0);
}

/* ---- even rows */

int cb_rows_are_many(int64_t rows, int64_t nonzeros, const struct cb_target *target) {
  enum { LEAST_MEAN = 16, LONG_MEAN = 512, BUSY_PERCENT = 45, LONG_BUSY_PERCENT = 25 };
  const int64_t mean = nonzeros / cb_larger(1, rows), busy = THREADS * (int64_t)target->multiprocessors;
  if (mean < LEAST_MEAN) return 0;
  return mean < LONG_MEAN ? rows * cb_row_lanes(rows, nonzeros, target) * 100 >= busy * BUSY_PERCENT
                          : rows * LANES * 100 >= busy * LONG_BUSY_PERCENT;
}

int cb_even_rows_most_lanes(int64_t rows, int64_t nonzeros, int64_t slot_bytes, const struct cb_target *target) {
  enum { FEW = 4, LONG_MEAN = 56, QUARTERS = 9 /* of all threads */ };
  const int is_long = nonzeros >= LONG_MEAN * rows;
  if (!is_long && rows * 4 > QUARTERS * THREADS * (int64_t)target->multiprocessors) return 1;
  return nonzeros * slot_bytes > 2 * target->l2_bytes ? FEW : LANES;
}

int64_t cb_even_rows_ns(int64_t bytes, int64_t blocks, int64_t room, int64_t batches, int64_t lanes,
                        const struct cb_target *target) {
  enum { ROUND_NS = 600, BATCH_NS = 900, FEW_LANES_PERCENT = 64, SHORTER_PERCENT = 20 };
  const int64_t rounds = rounds_of(blocks, room * target->multiprocessors);
  const int64_t waits = rounds * (ROUND_NS + BATCH_NS * batches);
  const int64_t more = beyond_half(bytes * FEW_LANES_PERCENT / 100, bytes, target) / lanes;
  return together_ns(waits, (bytes + more) / target->read_gb_per_s, SHORTER_PERCENT);
}

/* ---- tiles */

int cb_tile_row_lanes(int64_t tile_rows, int64_t tiles, int64_t threads) {
  enum { LEAST = 4, LONG = 64 };
  const int64_t mean = tiles / cb_larger(1, tile_rows);
  int lanes = 1;
  while (lanes < LANES && (tile_rows * lanes < threads || mean >= LONG * lanes) && mean >= LEAST * lanes) lanes *= 2;
  return lanes;
}

int64_t cb_tile_batch(struct cb_tile_size size, int64_t values, int64_t steps) {
  enum { MOST_VALUES = 64 /* more have no registers */ };
  const int64_t area = cb_tile_area(size), most = cb_smaller(cb_smaller(BATCH, MOST_VALUES / area), steps);
  return cb_larger(1, cb_smaller(values / area, most));
}

int cb_tile_blocks_held(int64_t registers, int some_absent) {
  if (registers <= 18) return some_absent ? 4 : 5;
  if (registers <= 36) return some_absent ? 2 : 3;
  return registers <= 72 ? 2 : 1;
}

int64_t cb_tiles_ns(struct cb_tile_size size, int64_t tile_rows, int64_t tiles, int64_t value_bytes, int64_t bytes,
                    const struct cb_target *target) {
  enum { LOAD_BYTES = 16 };
  enum { START_NS = 400, ROUND_NS = 250, BATCH_NS = 190, LOAD_NS = 7, COLUMN_NS = 5, SHORTER_PERCENT = 80 };
  enum { SUMS_PS = 940 /* of a byte of a tile's values */ };
  const int64_t few = CB_TILE_THREADS * (int64_t)target->multiprocessors;
  const int64_t area = cb_tile_area(size), threads = tile_rows * cb_tile_row_lanes(tile_rows, tiles, few);
  const int64_t steps = cb_larger(1, cb_divide_up(tiles, threads));
  const int64_t batch = cb_tile_batch(size, threads <= few ? CB_TILE_VALUES_OF_FEW : CB_TILE_VALUES, steps);
  const int64_t room = cb_tile_blocks_held(batch * area * value_bytes / 4, 0) * (int64_t)target->multiprocessors;
  const int64_t rounds = rounds_of(cb_divide_up(threads, BLOCK), room);
  const int64_t vector = value_bytes ? cb_smaller(LOAD_BYTES / value_bytes, area) : area;
  const int64_t step_ns = LOAD_NS * (area / vector + area % vector) + COLUMN_NS * size.cols;
  const int64_t round_ns =
      ROUND_NS + SUMS_PS * area * value_bytes / 1000 + BATCH_NS * cb_divide_up(steps, batch) + steps * step_ns;
  return together_ns(START_NS + rounds * round_ns, bytes_ns(bytes, target), SHORTER_PERCENT);
}
