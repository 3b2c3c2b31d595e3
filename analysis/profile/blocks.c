// SPDX-License-Identifier: Apache-2.0
/* Dense blocks and sub-blocks: how many of each shape have a nonzero.
 *
 * A strip of neighbouring rows climbs a ladder. It starts as one list of columns per row, ascending; on each
 * rung lists are united pair by pair, so they come to hold the columns of 2 rows, of 4, …. Blocks of that
 * many rows are the changes of column / width along these lists, and on the last rung of the first ladder a
 * list is a whole panel, from which sub-blocks are read off with and without column aggregation. Shapes of 3,
 * 5 and 6 columns have ladders of their own, which start from column / 3 or column / 5.
 *
 * A union makes two choices per column without a branch, and two unions run side by side. Where neighbouring
 * rows share few columns this is several times faster than meeting a panel's columns one by one (panels.h),
 * of which it is independent: tests compare the two.
 *
 * Lists have a fixed size. Strips of short rows climb together, one after the other in the same lists,
 * because short lists cost more to begin and end than to unite. A strip of long rows climbs window by window;
 * windows end at multiples of STRIDE columns, which no block straddles. */
#include "analysis/profile/parts.h"

#include "base/memory.h"

#include <omp.h>
#include <string.h>

enum {
  WINDOW = 512, /* most nonzeros of a row in one window; over 2 · STRIDE, so that each window takes some */
  STRIDE = 240, /* the least common multiple of all block widths, 16 included */
  BAND = 480,   /* rows that a thread takes at a time: a common multiple of all strips */
  STRIP_ROWS = 32, /* of the largest strip */
  TOGETHER = 2048, /* most nonzeros of strips that climb together: lists stay in the first-level cache */
  COLUMN_AT = 16,  /* where the column begins in a key */
  STRIP_AT = 48,   /* and where the strip does */
  PANELS = STRIP_ROWS / CB_PANEL_ROWS,
  MOST_RUNGS = 5,
  MOST_COUNTED = 2
};

static const int shape_sizes[CB_PROFILE_SHAPES][2] = {{1, 2}, {2, 1}, {2, 2}, {3, 3},
                                                      {4, 4}, {5, 5}, {6, 6}, {8, 8}};

/* Of each `group` neighbouring lists, the pairs are united and an odd one stays, which leaves half as many;
 * 1: all stay as they are. Then blocks are counted that are 2^shift columns wide: `shape` is 1 + the index in
 * shape_sizes, 0 means none. */
struct rung {
  int group;
  struct {
    int shape, shift;
  } counted[MOST_COUNTED];
};

/* Strips are twice the height of the blocks or more, so that there are always two unions to run side by side.
 */
static const struct ladder {
  int rows, divide, rungs, panels;
  struct rung rung[MOST_RUNGS];
} ladders[] = {
    {32, 1, 5, PANELS, {{1, {{1, 1}}}, {2, {{2, 0}, {3, 1}}}, {2, {{5, 2}}}, {2, {{8, 3}}}, {2, {{0, 0}}}}},
    {12, 3, 3, 0, {{3, {{0, 0}}}, {2, {{4, 0}}}, {2, {{7, 1}}}}},
    {10, 5, 3, 0, {{5, {{0, 0}}}, {3, {{0, 0}}}, {2, {{6, 0}}}}},
};
enum { LADDERS = sizeof ladders / sizeof *ladders };

/* A key is, from the highest bit down: which of the strips that climb together (16 bits), column / divide (32
 * bits), and 16 bits of which bit r is set when row r of the panel has a nonzero there (first ladder only).
 * List l is keys[start[l]] …, `length[l]` of them, ascending. */
struct lists {
  int count;
  int start[STRIP_ROWS], length[STRIP_ROWS];
  uint64_t keys[STRIP_ROWS * WINDOW];
};

/* All fields are int64_t: tallies are added as arrays. */
struct tally {
  int64_t touched[CB_PROFILE_SHAPES];
  int64_t columns, chunk_columns;
  int64_t plain[CB_BLOCK_SIZE + 1], aggregated[CB_BLOCK_SIZE + 1];
};

/* A panel's last aggregated sub-block so far, which the next window may continue. */
struct open_block {
  uint64_t strip;
  int columns, nonzeros;
};

struct worker {
  struct tally tally;
  struct open_block open[PANELS];
  struct lists lists[2];
};

/* What is left of some neighbouring rows; rows below the matrix are empty. */
struct strip {
  int rows;
  const int32_t *next[STRIP_ROWS], *end[STRIP_ROWS];
};

/* ---- from rows to lists */

static void open_strip(struct strip *strip, const struct cb_csr *csr, int64_t first, int rows) {
  strip->rows = rows;
  for (int r = 0; r < rows; r++) {
    const int64_t row = first + r < csr->rows ? first + r : csr->rows - 1;
    strip->end[r] = csr->col_idx + cb_csr_row(csr, row + 1);
    strip->next[r] = row == first + r ? csr->col_idx + cb_csr_row(csr, row) : strip->end[r];
  }
}

/* The column where the next window ends; 0 when nothing is left. */
static int64_t window_end(const struct strip *strip) {
  int64_t end = 0;
  for (int r = 0; r < strip->rows; r++)
    if (strip->next[r] < strip->end[r]) end = INT64_MAX;
  for (int r = 0; r < strip->rows; r++) {
    if (strip->end[r] - strip->next[r] <= WINDOW) continue;
    const int64_t here = strip->next[r][WINDOW] / STRIDE * STRIDE;
    if (here < end) end = here;
  }
  return end;
}

/* How many of a row's next WINDOW nonzeros lie before `column`. */
static int entries_below(const int32_t *next, const int32_t *end, int64_t column) {
  int low = 0, high = end - next < WINDOW ? (int)(end - next) : WINDOW;
  if (!high || next[high - 1] < column) return high;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (next[middle] < column)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Distinct column / divide; inlined with a constant, so that no division is left. */
static inline int load_divided(uint64_t *keys, const int32_t *columns, int count, uint64_t base,
                               uint32_t divide) {
  int filled = 0;
  uint32_t last = UINT32_MAX;
  for (int i = 0; i < count; i++) {
    const uint32_t quotient = (uint32_t)columns[i] / divide;
    filled += quotient != last; /* else the same key is written again */
    keys[filled - 1] = base | (uint64_t)quotient << COLUMN_AT;
    last = quotient;
  }
  return filled;
}

/* Row `row` of strip number `strip`. Returns how many keys it has. */
static int load(uint64_t *keys, const int32_t *columns, int count, int divide, int row, int strip) {
  const uint64_t base = (uint64_t)strip << STRIP_AT, bit = UINT64_C(1) << row % CB_PANEL_ROWS;
  if (divide == 3) return load_divided(keys, columns, count, base, 3);
  if (divide == 5) return load_divided(keys, columns, count, base, 5);
  for (int i = 0; i < count; i++) keys[i] = base | (uint64_t)columns[i] << COLUMN_AT | bit;
  return count;
}

/* Strips of `rows` rows from row `first` on, up to `end`, that have TOGETHER nonzeros at most; 0: not even
 * one. */
static int strips_together(const struct cb_csr *csr, int64_t first, int64_t end, int rows) {
  int strips = 0;
  for (int64_t next = first; next < end; next += rows, strips++) {
    const int64_t after = next + rows < csr->rows ? next + rows : csr->rows;
    if (cb_csr_row(csr, after) - cb_csr_row(csr, first) > TOGETHER) break;
  }
  return strips;
}

static void load_together(struct lists *lists, const struct cb_csr *csr, int64_t first, int strips,
                          const struct ladder *ladder) {
  int start = 0;
  lists->count = ladder->rows;
  for (int r = 0; r < ladder->rows; r++) {
    lists->start[r] = start;
    for (int strip = 0; strip < strips; strip++) {
      const int64_t row = first + (int64_t)strip * ladder->rows + r;
      if (row >= csr->rows) break;
      const int64_t begin = cb_csr_row(csr, row), count = cb_csr_row(csr, row + 1) - begin;
      start += load(lists->keys + start, csr->col_idx + begin, (int)count, ladder->divide, r, strip);
    }
    lists->length[r] = start - lists->start[r];
  }
}

/* Moves the next window's nonzeros from the strip into lists; 0 when none are left. */
static int load_window(struct lists *lists, struct strip *strip, int divide) {
  const int64_t end = window_end(strip);
  int start = 0;
  if (!end) return 0;
  lists->count = strip->rows;
  for (int r = 0; r < strip->rows; r++) {
    const int count = entries_below(strip->next[r], strip->end[r], end);
    lists->start[r] = start;
    lists->length[r] = load(lists->keys + start, strip->next[r], count, divide, r, 0);
    start += lists->length[r];
    strip->next[r] += count;
  }
  return 1;
}

/* ---- up the ladder */

/* What is left of two ascending lists, and where their union goes on. */
struct both {
  const uint64_t *a, *a_end, *b, *b_end;
  uint64_t *out;
};

static inline int both_left(const struct both *both) {
  return (both->a < both->a_end) & (both->b < both->b_end);
}

/* Moves the smaller of the two first keys to the union; of equal columns both, and their rows come together.
 */
static inline void move_smaller(struct both *both) {
  const uint64_t x = *both->a, y = *both->b;
  const uint64_t take_x = x >> COLUMN_AT <= y >> COLUMN_AT, take_y = y >> COLUMN_AT <= x >> COLUMN_AT;
  *both->out++ = (x & -take_x) | (y & -take_y);
  both->a += take_x;
  both->b += take_y;
}

/* Ends a union; returns its end. */
static uint64_t *finish(struct both both) {
  while (both_left(&both)) move_smaller(&both);
  const int64_t a_left = both.a_end - both.a, b_left = both.b_end - both.b;
  memcpy(both.out, both.a, (size_t)a_left * sizeof *both.a);
  memcpy(both.out + a_left, both.b, (size_t)b_left * sizeof *both.b);
  return both.out + a_left + b_left;
}

/* Two unions side by side: each step waits for the one before it, but not for the other union. Most of the
 * profile's time passes here. */
static __attribute__((noinline)) void unite_two(struct both first, struct both second, uint64_t *ends[2]) {
  while (both_left(&first) & both_left(&second)) {
    move_smaller(&first);
    move_smaller(&second);
  }
  ends[0] = finish(first);
  ends[1] = finish(second);
}

/* Lists l and l + 1 of `from`. Their union is no longer than both, so it fits where the first one begins. */
static struct both both_of(struct lists *to, const struct lists *from, int l) {
  const uint64_t *a = from->keys + from->start[l], *b = from->keys + from->start[l + 1];
  return (struct both){a, a + from->length[l], b, b + from->length[l + 1], to->keys + from->start[l]};
}

static void set_list(struct lists *to, int l, int start, const uint64_t *end) {
  to->start[l] = start;
  to->length[l] = (int)(end - (to->keys + start));
}

static uint64_t *copy_list(struct lists *to, const struct lists *from, int l) {
  const int start = from->start[l], length = from->length[l];
  memcpy(to->keys + start, from->keys + start, (size_t)length * sizeof *to->keys);
  return to->keys + start + length;
}

/* requires: an even number of groups, so that pairs can be united two by two */
static void unite_groups(struct lists *to, const struct lists *from, int group) {
  const int left = (group + 1) / 2, groups = from->count / group;
  to->count = groups * left;
  for (int g = 0; g < groups; g += 2) {
    for (int i = 0; i < left; i++) {
      const int l = g * group + 2 * i, other = l + group, at = g * left + i;
      uint64_t *ends[2];
      if (2 * i + 1 < group) {
        unite_two(both_of(to, from, l), both_of(to, from, other), ends);
      } else {
        ends[0] = copy_list(to, from, l);
        ends[1] = copy_list(to, from, other);
      }
      set_list(to, at, from->start[l], ends[0]);
      set_list(to, at + left, from->start[other], ends[1]);
    }
  }
}

/* Changes of column >> shift within each list; a list's first entry is one. */
static int64_t count_blocks(const struct lists *lists, int shift) {
  int64_t blocks = 0;
  for (int l = 0; l < lists->count; l++) {
    const uint64_t *keys = lists->keys + lists->start[l];
    blocks += shift ? lists->length[l] > 0 : lists->length[l];
    for (int i = 1; shift && i < lists->length[l]; i++)
      blocks += (keys[i] ^ keys[i - 1]) >> COLUMN_AT >> shift != 0;
  }
  return blocks;
}

/* ---- sub-blocks of a panel */

static int rows_of(uint64_t key) {
  unsigned bits = (uint16_t)key;
  bits = (bits & 0x5555) + (bits >> 1 & 0x5555);
  bits = (bits & 0x3333) + (bits >> 2 & 0x3333);
  bits = (bits & 0x0f0f) + (bits >> 4 & 0x0f0f);
  return (int)((bits & 31) + (bits >> 8));
}

static void close_block(struct tally *tally, struct open_block *open) {
  if (open->columns) tally->aggregated[open->nonzeros]++;
  open->columns = open->nonzeros = 0;
}

static void count_subblocks(struct tally *tally, struct open_block *open, const uint64_t *keys, int count) {
  int plain = 0;
  tally->columns += count;
  for (int i = 0; i < count; i++) {
    const int nonzeros = rows_of(keys[i]);
    tally->chunk_columns += ((keys[i] & 0x00ff) != 0) + ((keys[i] & 0xff00) != 0);
    if (open->columns == CB_BLOCK_COLS || keys[i] >> STRIP_AT != open->strip) close_block(tally, open);
    open->strip = keys[i] >> STRIP_AT;
    open->columns++;
    open->nonzeros += nonzeros;
    plain += nonzeros;
    if (i + 1 < count && keys[i] >> COLUMN_AT >> 4 == keys[i + 1] >> COLUMN_AT >> 4)
      continue; /* column / 16 */
    tally->plain[plain]++;
    plain = 0;
  }
}

/* With what was loaded into lists[0]. */
static void climb(struct worker *worker, const struct ladder *ladder) {
  struct lists *lists = &worker->lists[0], *next = &worker->lists[1];
  for (const struct rung *rung = ladder->rung; rung < ladder->rung + ladder->rungs; rung++) {
    if (rung->group > 1) {
      unite_groups(next, lists, rung->group);
      struct lists *const before = lists;
      lists = next;
      next = before;
    }
    for (int k = 0; k < MOST_COUNTED && rung->counted[k].shape; k++)
      worker->tally.touched[rung->counted[k].shape - 1] += count_blocks(lists, rung->counted[k].shift);
  }
  for (int p = 0; p < ladder->panels; p++)
    count_subblocks(&worker->tally, &worker->open[p], lists->keys + lists->start[p], lists->length[p]);
}

static void climb_by_windows(struct worker *worker, const struct ladder *ladder, const struct cb_csr *csr,
                             int64_t first) {
  struct strip strip;
  open_strip(&strip, csr, first, ladder->rows);
  while (load_window(&worker->lists[0], &strip, ladder->divide)) climb(worker, ladder);
}

static void climb_band(struct worker *worker, const struct cb_csr *csr, int64_t first) {
  const int64_t end = first + BAND < csr->rows ? first + BAND : csr->rows;
  for (const struct ladder *ladder = ladders; ladder < ladders + LADDERS; ladder++) {
    for (int64_t row = first; row < end;) {
      const int strips = strips_together(csr, row, end, ladder->rows);
      if (strips) {
        load_together(&worker->lists[0], csr, row, strips, ladder);
        climb(worker, ladder);
      } else {
        climb_by_windows(worker, ladder, csr, row);
      }
      for (int p = 0; p < ladder->panels; p++) close_block(&worker->tally, &worker->open[p]);
      row += (int64_t)ladder->rows * (strips ? strips : 1);
    }
  }
}

/* ---- results */

static void add_tally(struct tally *sum, const struct tally *one) {
  int64_t *to = (int64_t *)sum;
  const int64_t *from = (const int64_t *)one;
  for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) to[i] += from[i];
}

static void fill_shapes(struct cb_profile *profile, const struct tally *tally) {
  int64_t least = profile->csr_bytes;
  profile->best_shape = -1;
  for (int i = 0; i < CB_PROFILE_SHAPES; i++) {
    const int rows = shape_sizes[i][0], cols = shape_sizes[i][1];
    const int64_t touched = tally->touched[i], block_rows = (profile->rows + rows - 1) / rows;
    const int64_t bytes = touched * (rows * cols * 8 + 4) + (block_rows + 1) * (touched > INT32_MAX ? 8 : 4);
    profile->shapes[i] = (struct cb_profile_shape){rows, cols, touched, bytes};
    if (bytes >= least) continue;
    least = bytes;
    profile->best_shape = i;
  }
}

static void fill_subblocks(struct cb_profile_subblocks *out, const int64_t with[], int64_t columns) {
  out->columns = columns;
  for (int k = 0; k <= CB_BLOCK_SIZE; k++) {
    out->with[k] = with[k];
    out->total += with[k];
  }
}

enum cb_status cb_profile_blocks(struct cb_profile *profile, const struct cb_csr *csr, struct cb_diag *diag) {
  const int64_t bands = (csr->rows + BAND - 1) / BAND;
  const int most = omp_get_max_threads(), threads = bands < most ? (int)bands + !bands : most;
  struct worker *workers = cb_calloc((size_t)threads, sizeof *workers);
  struct tally tally = {0};
  if (!workers) return cb_fail_memory(diag, "profile", (unsigned long long)threads * sizeof *workers);
#pragma omp parallel for schedule(dynamic, 2) num_threads(threads)
  for (int64_t band = 0; band < bands; band++) climb_band(&workers[omp_get_thread_num()], csr, band * BAND);
  for (int t = 0; t < threads; t++) add_tally(&tally, &workers[t].tally);
  fill_shapes(profile, &tally);
  profile->chunk_columns = tally.chunk_columns;
  fill_subblocks(&profile->plain, tally.plain, tally.columns);
  fill_subblocks(&profile->aggregated, tally.aggregated, tally.columns);
  cb_free(workers);
  return CB_OK;
}
