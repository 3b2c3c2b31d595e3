// SPDX-License-Identifier: Apache-2.0
/* Column blocking. Often more columns are frequent than shared memory holds entries of x at once. A thread block then
 * goes through them set by set: each set is a phase. It owns a block of successive rows, whose sums stay in shared
 * memory meanwhile. It reads a set's entries of x once, however many of its rows ask for them (cache blocking:
 * R. Nishtala, R. W. Vuduc, J. W. Demmel, K. A. Yelick, "When cache blocking of sparse matrix vector multiply works and
 * why", 2007).
 *
 * Columns are numbered set by set, the most frequent in the first; a first launch lays their entries side by side in
 * that order. What a row has in a set is a segment. Segments of a row block and a set are stored as sliced ELL (see
 * sell.c): a warp takes a slice of 32 lanes, 1 to 32 lanes share a segment, and segments are sorted by length, so that
 * slots stay empty only where segments end; lanes never go there. A lane finds its entry of x and its sum by places of
 * 16 bits. No two warps add to one sum in one phase, and phases are apart: sums are the same in every run.
 *
 * A row with long segments has several sums, which take its nonzeros in turns and come together at the end.
 *
 * How to read it: phases_plan near the end calls the passes in order.
 */
#include "analysis/layouts/phases/options.h"

#include "analysis/cost_figures.h"
#include "analysis/gathered.h"
#include "analysis/layouts/phases/frequent.h"
#include "analysis/ordering.h"
#include "analysis/slices.h"
#include "base/memory.h"

#include <string.h>

enum {
  LANES = CB_LANES,
  PLACE_BITS = 16,
  AIM = 16,              /* steps of a lane that lanes are chosen for */
  SEGMENT = AIM * LANES, /* nonzeros of a segment */
  KEYS = 6 * (AIM + 1),  /* lanes and steps of a segment */
  MOST_SET = 1 << PLACE_BITS,
  LEAST_SET = 32,
  MOST_SETS = 4096,
  MARGIN = 16,    /* of sums that are kept free for further ones of long rows: one in so many */
  BATCH = 4,      /* steps, where values take no more than two bytes; else: */
  BATCH_WIDE = 2, /* registers for two batches are all taken; measured */
  ROW_WEIGHT = 4  /* of a row, in nonzeros, where rows are cut into row blocks */
};

#define NOWHERE UINT32_MAX

/* What row blocks have in sets. */
struct extent {
  int64_t slices, local_rows, steps;
};

struct state {
  struct cb_arena arena;
  const struct cb_csr *csr;
  struct cb_phase_shape shape;
  int batch;
  /* columns */
  uint32_t *where; /* by column: its set, and in PLACE_BITS below that its place there; NOWHERE: no nonzeros */
  int64_t columns, set, sets;
  int32_t *row; /* those with nonzeros, or all when the region writes every row */
  int all_rows;
  int64_t rows, row_blocks, most_rows;
  int64_t *block_row;  /* row blocks + 1 */
  uint32_t *first_sum; /* rows + 1; a row's own sums are successive */
  int64_t most_sums, segment;
  struct cb_arena counted; /* owns the next; released when the region is planned */
  uint32_t *counts;        /* nonzeros by row and set; NULL: too many, counted when needed */
  /* slices: those of a row block together, set by set */
  struct extent *first; /* before each row block and set; row blocks * sets + 1 */
  struct extent all;
  struct cb_slices by_slice;
  int64_t *first_step;   /* by slice; slices + 1 */
  uint32_t *local_row_sum, *local_row_count;
};

/* ---- row blocks: adds row, block_row, most_rows */

static int is_written(const void *user, int64_t row) {
  const struct state *state = user;
  return state->all_rows || cb_csr_row_length(state->csr, row) > 0;
}

/* Successive rows of about equal weight, so that those of a row block lie close together in y. */
static int cut_row_blocks(struct state *state) {
  const struct cb_csr *csr = state->csr;
  const int64_t weight = csr->nnz + ROW_WEIGHT * state->rows;
  state->row_blocks = cb_larger(1, cb_smaller(state->shape.blocks, cb_divide_up(weight, 4 * state->shape.threads)));
  state->block_row = cb_arena_alloc(&state->arena, (size_t)state->row_blocks + 1, sizeof *state->block_row);
  if (!state->block_row) return 0;
  int64_t i = 0, met = 0;
  for (int64_t block = 0; block < state->row_blocks; block++) {
    const int64_t end = cb_divide_up(weight * (block + 1), state->row_blocks);
    state->block_row[block] = i;
    while (i < state->rows && met < end)
      met += cb_csr_row_length(csr, state->row[i++]) + ROW_WEIGHT;
    state->most_rows = cb_larger(state->most_rows, i - state->block_row[block]);
  }
  state->block_row[state->row_blocks] = i;
  return 1;
}

/* ---- columns: needs the row blocks; adds where, columns, set, sets */

static int64_t set_of(uint32_t where) { return where >> PLACE_BITS; }
static uint32_t place_of(uint32_t where) { return where & ((1u << PLACE_BITS) - 1); }

/* Ranks by nonzeros say which set; within a set columns keep their order. Uses counts->with up. */
static int number_columns(struct state *state, struct cb_arena *scratch, struct cb_column_counts *counts) {
  int64_t *next = cb_arena_alloc(scratch, (size_t)state->sets, sizeof *next), *rank = counts->with, columns = 0;
  state->where = cb_arena_alloc(&state->arena, (size_t)counts->cols, sizeof *state->where);
  if (!next || !state->where) return 0;
  for (int64_t set = 0; set < state->sets; set++) next[set] = set << PLACE_BITS;
  for (int64_t key = CB_COUNT_KEYS - 1; key > 0; key--) { /* counts become the ranks of their first columns */
    columns += rank[key];
    rank[key] = columns - rank[key];
  }
  for (int64_t column = 0; column < counts->cols; column++) {
    const int64_t key = cb_column_key(counts, column);
    state->where[column] = key ? (uint32_t)next[rank[key]++ / state->set]++ : NOWHERE;
  }
  return 1;
}

/* Entries of x that fit beside the sums, in sets of equal size. */
static enum cb_status size_sets(struct state *state, int64_t most, struct cb_diag *diag) {
  state->sets = cb_larger(1, cb_divide_up(state->columns, most));
  state->set = cb_larger(LEAST_SET, cb_round_up(cb_divide_up(state->columns, state->sets), LANES));
  state->set = cb_smaller(state->set, most);
  if (state->sets <= MOST_SETS) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT, "%lld columns are more than %d sets of entries of x that shared memory holds; use "
                                     "another recipe", (long long)state->columns, MOST_SETS);
}

static enum cb_status choose_sets(struct state *state, const int64_t *settings, struct cb_diag *diag) {
  const struct cb_csr *csr = state->csr;
  const int64_t sums = state->most_rows + cb_larger(state->most_rows / MARGIN, LEAST_SET);
  int64_t most = cb_smaller(state->shape.room - sums, MOST_SET);
  if (settings[PHASES_SET]) most = cb_smaller(most, settings[PHASES_SET]);
  if (most < LEAST_SET)
    return cb_fail(diag, CB_ERR_LIMIT, "the sums of %lld rows leave no room for entries of x in shared memory; use another "
                                       "recipe", (long long)state->most_rows);
  struct cb_arena scratch = {0};
  struct cb_column_counts counts = {0};
  const int counted = cb_count_columns(&counts, &scratch, csr);
  state->columns = counts.occupied;
  enum cb_status s = size_sets(state, most, diag);
  if (!s && !(counted && number_columns(state, &scratch, &counts)))
    s = cb_fail_memory(diag, "columns", (uint64_t)csr->cols * 8);
  cb_arena_release(&scratch);
  return s;
}

/* ---- sums: needs the columns; adds first_sum, most_sums, segment */

/* Where the column of a nonzero further on is, is asked for early: rows are short, and the table is larger than a
 * cache. */
static void ask_ahead(const struct state *state, int64_t k) {
  enum { AHEAD = 64 };
  if (k + AHEAD < state->csr->nnz) __builtin_prefetch(&state->where[state->csr->col_idx[k + AHEAD]]);
}

/* A row's nonzeros by set. */
static void count_row(const struct state *state, int64_t row, uint32_t *counts) {
  const struct cb_csr *csr = state->csr;
  const int64_t end = cb_csr_row(csr, row + 1);
  memset(counts, 0, (size_t)state->sets * sizeof *counts);
  for (int64_t k = cb_csr_row(csr, row); k < end; k++) {
    ask_ahead(state, k);
    counts[set_of(state->where[csr->col_idx[k]])]++;
  }
}

/* The most nonzeros that a row has in one set. */
static uint32_t longest_segment(const struct state *state, int64_t i, uint32_t *counts) {
  uint32_t most = 0;
  count_row(state, state->row[i], counts);
  for (int64_t set = 0; set < state->sets; set++) most = counts[set] > most ? counts[set] : most;
  return most;
}

/* first_sum[i + 1] holds the longest at first. Counts are kept unless they would take more than the matrix. */
static int count_longest(struct state *state) {
  const int64_t sets = state->sets;
  const int keeps = state->rows * sets <= state->csr->nnz;
  int good = 1;
  state->first_sum = cb_arena_alloc(&state->arena, (size_t)state->rows + 1, sizeof *state->first_sum);
  if (keeps) state->counts = cb_arena_alloc(&state->counted, (size_t)(state->rows * sets), sizeof *state->counts);
  if (!state->first_sum || (keeps && !state->counts)) return 0;
#pragma omp parallel reduction(&& : good)
  {
    uint32_t *own = cb_alloc((size_t)sets, sizeof *own);
    good = own != NULL;
#pragma omp for schedule(dynamic, 1024)
    for (int64_t i = 0; i < state->rows; i++)
      if (good) state->first_sum[i + 1] = longest_segment(state, i, keeps ? state->counts + i * sets : own);
    cb_free(own);
  }
  return good;
}

/* The sums of row i, before first_sum is that. */
static int64_t sums_with(const struct state *state, int64_t i) {
  return cb_larger(1, cb_divide_up(state->first_sum[i + 1], state->segment));
}

/* Of the row block that has the most. */
static int64_t count_sums(const struct state *state) {
  int64_t most = 0;
#pragma omp parallel for schedule(static) reduction(max : most)
  for (int64_t block = 0; block < state->row_blocks; block++) {
    int64_t sums = 0;
    for (int64_t i = state->block_row[block]; i < state->block_row[block + 1]; i++) sums += sums_with(state, i);
    most = cb_larger(most, sums);
  }
  return most;
}

static int choose_sums(struct state *state) {
  if (!count_longest(state)) return 0;
  state->segment = SEGMENT;
  while ((state->most_sums = count_sums(state)) > state->shape.room - state->set) state->segment *= 2; /* rows fit */
  for (int64_t i = 0; i < state->rows; i++)
    state->first_sum[i + 1] = state->first_sum[i] + (uint32_t)sums_with(state, i);
  return 1;
}

/* ---- slices: needs the sums; adds the rest */

static int64_t sums_of(const struct state *state, int64_t i) { return state->first_sum[i + 1] - state->first_sum[i]; }

/* What each of a row's sums takes of `count` nonzeros in a set at most: whole steps of 32 lanes. */
static int64_t chunk_of(int64_t count, int64_t sums) {
  return sums == 1 ? count : cb_divide_up(count, sums * LANES) * LANES;
}

static int lanes_for(int64_t count) { return cb_lanes_log2(count, AIM); }

static int64_t steps_of(int64_t count) { return cb_divide_up(count, INT64_C(1) << lanes_for(count)); }

/* Segments that fill slices without padding. The most lanes and the longest first. */
static int64_t segment_key(int64_t count) {
  return (5 - lanes_for(count)) * (AIM + 1) + AIM - cb_smaller(steps_of(count), AIM);
}

/* What one thread keeps of the row block that it works on. */
struct bench {
  struct cb_arena arena;
  const uint32_t *counts; /* by row of the row block and set */
  uint32_t *own_counts;   /* room for them, unless the state has them */
  uint32_t *sum, *count; /* segments of one set, sorted */
  int64_t *local_row; /* by sum and set: 32 * slice + its number in the slice */
  uint32_t *met;  /* by set */
};

/* 0: no memory. The arena is to be released in any case. */
static int bench_make(struct bench *bench, const struct state *state, int visits) {
  const size_t sums = (size_t)state->most_sums, sets = (size_t)state->sets;
  struct cb_arena *arena = &bench->arena;
  *bench = (struct bench){.arena = {0}};
  if (!state->counts) bench->own_counts = cb_arena_alloc(arena, (size_t)state->most_rows * sets, sizeof(uint32_t));
  if (visits) {
    bench->local_row = cb_arena_alloc(arena, sums * sets, sizeof *bench->local_row);
    bench->met = cb_arena_alloc(arena, sets, sizeof *bench->met);
  } else {
    bench->sum = cb_arena_alloc(arena, sums, sizeof *bench->sum);
    bench->count = cb_arena_alloc(arena, sums, sizeof *bench->count);
  }
  return !arena->failed;
}

static void count_block(const struct state *state, int64_t block, struct bench *bench) {
  const int64_t first = state->block_row[block];
  bench->counts = state->counts ? state->counts + first * state->sets : bench->own_counts;
  for (int64_t i = first; i < state->block_row[block + 1] && !state->counts; i++)
    count_row(state, state->row[i], bench->own_counts + (i - first) * state->sets);
}

/* The segments of a row block in a set, sorted; returns how many. */
static int64_t sort_segments(const struct state *state, int64_t block, int64_t set, struct bench *bench) {
  const int64_t first = state->block_row[block], end = state->block_row[block + 1];
  int64_t start[KEYS + 1] = {0};
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t i = first; i < end; i++) {
      const int64_t count = bench->counts[(i - first) * state->sets + set];
      if (!count) continue;
      const int64_t chunk = chunk_of(count, sums_of(state, i));
      for (int64_t number = 0; number * chunk < count; number++) {
        const int64_t own = cb_smaller(chunk, count - number * chunk), key = segment_key(own);
        const int64_t at = start[pass ? key : key + 1]++; /* counts, then ends */
        if (pass) bench->sum[at] = (uint32_t)(state->first_sum[i] - state->first_sum[first] + number);
        if (pass) bench->count[at] = (uint32_t)own;
      }
    }
    for (int key = 1; key <= KEYS && !pass; key++) start[key] += start[key - 1];
  }
  return start[KEYS - 1]; /* where the last key ends by now */
}

/* Cuts sorted segments into slices behind *at; only counts while there is no room for them. */
static void cut_set(struct state *state, const struct bench *bench, int64_t segments, struct extent *at) {
  const int fill = state->first_step != NULL;
  for (int64_t next = 0; next < segments;) {
    const int log2 = lanes_for(bench->count[next]);
    if (fill) {
      cb_slices_set(&state->by_slice, at->slices, log2, at->local_rows);
      state->first_step[at->slices] = at->steps;
    }
    at->slices++;
    at->steps += steps_of(bench->count[next]);
    for (int64_t i = 0; i < LANES >> log2; i++, at->local_rows++) {
      const int taken = next < segments && lanes_for(bench->count[next]) == log2;
      if (fill) state->local_row_sum[at->local_rows] = taken ? bench->sum[next] : 0;
      if (fill) state->local_row_count[at->local_rows] = taken ? bench->count[next] : 0;
      next += taken;
    }
  }
}

static void cut_block(struct state *state, int64_t block, struct bench *bench) {
  count_block(state, block, bench);
  for (int64_t set = 0; set < state->sets; set++) {
    const int64_t number = block * state->sets + set;
    struct extent at = state->first_step ? state->first[number] : (struct extent){0};
    cut_set(state, bench, sort_segments(state, block, set, bench), &at);
    if (!state->first_step) state->first[number + 1] = at;
  }
}

/* All row blocks: their extents first, and once these are known their slices. */
static int cut_blocks_into_slices(struct state *state) {
  int good = 1;
#pragma omp parallel reduction(&& : good)
  {
    struct bench bench;
    good = bench_make(&bench, state, 0);
#pragma omp for schedule(dynamic, 1)
    for (int64_t block = 0; block < state->row_blocks; block++)
      if (good) cut_block(state, block, &bench);
    cb_arena_release(&bench.arena);
  }
  return good;
}

static int cut_slices(struct state *state) {
  const int64_t numbers = state->row_blocks * state->sets;
  struct cb_arena *arena = &state->arena;
  state->first = cb_arena_alloc(arena, (size_t)numbers + 1, sizeof *state->first);
  if (!state->first || !cut_blocks_into_slices(state)) return 0;
  for (int64_t i = 0; i < numbers; i++) {
    state->first[i + 1].slices += state->first[i].slices;
    state->first[i + 1].local_rows += state->first[i].local_rows;
    state->first[i + 1].steps += state->first[i].steps;
  }
  const struct extent all = state->all = state->first[numbers];
  state->first_step = cb_arena_alloc(arena, (size_t)all.slices + 1, sizeof *state->first_step);
  state->local_row_sum = cb_arena_alloc(arena, (size_t)all.local_rows, sizeof *state->local_row_sum);
  state->local_row_count = cb_arena_alloc(arena, (size_t)all.local_rows, sizeof *state->local_row_count);
  if (!cb_slices_alloc(&state->by_slice, arena, all.slices)) return 0;
  state->first_step[all.slices] = all.steps;
  return cut_blocks_into_slices(state);
}

/* ---- nonzeros to slots: needs the slices */

static void find_local_rows(const struct state *state, int64_t block, struct bench *bench) {
  for (int64_t set = 0; set < state->sets; set++) {
    const struct extent *extent = &state->first[block * state->sets + set];
    for (int64_t slice = extent[0].slices; slice < extent[1].slices; slice++)
      for (int64_t i = 0; i < LANES >> state->by_slice.lanes_log2[slice]; i++) {
        const int64_t local = state->by_slice.first_local_row[slice] + i;
        if (state->local_row_count[local])
          bench->local_row[state->local_row_sum[local] * state->sets + set] = LANES * slice + i;
      }
  }
}

/* The slot of the nonzero `met` of `count` that row i has in a set. */
static int64_t slot_of(const struct state *state, const struct bench *bench, int64_t block, int64_t i, int64_t set,
                       int64_t met, int64_t count) {
  const int64_t sums = sums_of(state, i), chunk = chunk_of(count, sums);
  const int64_t number = sums == 1 ? 0 : met / chunk, k = met - number * chunk; /* nearly all rows have one sum */
  const int64_t sum = state->first_sum[i] - state->first_sum[state->block_row[block]] + number;
  const uint64_t local = (uint64_t)bench->local_row[sum * state->sets + set], slice = local / LANES;
  return cb_slice_slot(state->first_step[slice], state->by_slice.lanes_log2[slice], (int64_t)(local % LANES), k);
}

/* Where columns are is looked up for several nonzeros at a time. */
static void visit_row(const struct state *state, const struct bench *bench, int64_t block, int64_t i,
                      const struct cb_walk *walk) {
  enum { TOGETHER = 64 };
  const int32_t *column = state->csr->col_idx;
  const int64_t begin = cb_csr_row(state->csr, state->row[i]), end = cb_csr_row(state->csr, state->row[i] + 1);
  const uint32_t *counts = bench->counts + (i - state->block_row[block]) * state->sets;
  uint32_t where[TOGETHER];
  memset(bench->met, 0, (size_t)state->sets * sizeof *bench->met);
  for (int64_t first = begin; first < end; first += TOGETHER) {
    const int64_t count = cb_smaller(end - first, TOGETHER);
    for (int64_t k = 0; k < count; k++) {
      ask_ahead(state, first + k);
      where[k] = state->where[column[first + k]];
    }
    for (int64_t k = 0; k < count; k++) {
      const int64_t set = set_of(where[k]);
      const int64_t slot = slot_of(state, bench, block, i, set, bench->met[set]++, counts[set]);
      cb_emit(walk, slot, first + k, place_of(where[k]));
    }
  }
}

static int phases_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *walk) {
  const struct state *state = user;
  struct bench bench;
  const int good = bench_make(&bench, state, 1);
  for (int64_t block = first; block < end && good; block++) {
    count_block(state, block, &bench);
    find_local_rows(state, block, &bench);
    for (int64_t i = state->block_row[block]; i < state->block_row[block + 1]; i++)
      visit_row(state, &bench, block, i, walk);
  }
  cb_arena_release(&bench.arena);
  return good;
}

/* ---- the region: needs all of the above; adds arrays and sections */

/* A set's columns have successive places from 0 on, and the first set is full if any is. */
static void build_slots(struct cb_region_builder *builder, const struct state *state) {
  const int64_t slots = state->all.steps * LANES, largest = cb_smaller(state->set, state->columns) - 1;
  cb_region_by_slot(builder, "entry_place", "place of a slot's entry of x in its set",
                    (struct cb_slot_elements){.count = slots, .largest = largest});
  cb_region_streamed(builder);
  cb_region_values(builder, "values", "per slice, step and lane", slots);
}

static uint64_t first_slice(const void *state, int64_t number) {
  return (uint64_t)((const struct state *)state)->first[number].slices;
}

static void build_slices(struct cb_region_builder *builder, const struct state *state) {
  const int64_t slices = state->all.slices, local_rows = state->all.local_rows;
  cb_region_computed(builder, "first_slice", "slices before those of a row block and a set",
                     state->row_blocks * state->sets + 1, first_slice);
  cb_region_slices(builder, &state->by_slice, slices, "a segment");
  cb_region_list(builder, "first_step", "steps before a slice, 32 slots each", slices + 1, state->first_step);
  cb_region_list(builder, "local_row_sum", "the row block's sum that a local row belongs to", local_rows,
                 state->local_row_sum);
  cb_region_streamed(builder);
  cb_region_list(builder, "local_row_count", "nonzeros of the segment; 0: none", local_rows, state->local_row_count);
  cb_region_streamed(builder);
}

static uint64_t first_sum(const void *user, int64_t block) {
  const struct state *state = user;
  return state->first_sum[state->block_row[block]];
}

static void build_sums(struct cb_region_builder *builder, struct state *state) {
  const int64_t sums = state->first_sum[state->rows];
  uint32_t *rows = cb_arena_alloc(&state->arena, (size_t)sums, sizeof *rows);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < (rows ? state->rows : 0); i++)
    for (uint32_t sum = state->first_sum[i]; sum < state->first_sum[i + 1]; sum++)
      rows[sum] = (uint32_t)(sum == state->first_sum[i] ? state->row[i] : state->csr->rows);
  cb_region_computed(builder, "first_sum", "sums before a row block's", state->row_blocks + 1, first_sum);
  cb_region_list(builder, "sum_row", "the row of a sum; kRows: the same as before", sums, rows);
}

static void build_columns(struct cb_region_builder *builder, struct state *state) {
  const int64_t most = state->sets * state->set;
  uint32_t *columns = cb_arena_alloc(&state->arena, (size_t)most, sizeof *columns);
#pragma omp parallel for schedule(static)
  for (int64_t column = 0; column < state->csr->cols; column++) {
    const uint32_t where = state->where[column];
    if (columns && where != NOWHERE) columns[set_of(where) * state->set + place_of(where)] = (uint32_t)column;
  }
  cb_region_list(builder, "hot_column", "columns, set by set", state->columns, columns);
}

static void build_facts(struct cb_region_builder *builder, const struct state *state) {
  cb_region_fact(builder, "columns", "%lld", (long long)state->columns);
  cb_region_fact(builder, "sets", "%lld %lld", (long long)state->sets, (long long)state->set);
  cb_region_fact(builder, "rows", "%lld", (long long)state->rows);
  cb_region_fact(builder, "segments", "%lld", (long long)state->all.local_rows);
  cb_region_fact(builder, "steps", "%lld", (long long)state->all.steps);
}

static void build_region(struct cb_region_builder *builder, struct state *state) {
  build_facts(builder, state);
  build_slots(builder, state);
  build_slices(builder, state);
  build_sums(builder, state);
  build_columns(builder, state);
  cb_region_gather(builder, 0, state->columns);
  if (state->first_sum[state->rows] > state->rows) cb_region_section(builder, "segments");
  if (!builder->value_bytes) cb_region_section(builder, "constant");
  cb_region_size(builder, "kSums", state->most_sums, "plan: sums of a row block at most");
  cb_region_size(builder, "kSlices", state->all.slices, "plan: slices of 32 lanes");
  cb_region_size(builder, "kSet", state->set, "plan: entries of x in a set");
  cb_region_size(builder, "kSets", state->sets, "plan: phases");
  cb_region_structure(builder, "kBatch", state->batch, "plan: steps whose loads are in flight together");
  cb_region_structure(builder, "kThreads", state->shape.threads, "plan: threads of a thread block");
  cb_region_structure(builder, "kWarps", state->shape.threads / LANES, "their warps");
  cb_region_family_with(builder, "segments");
  builder->region.blocks = state->row_blocks;
  builder->region.threads = state->shape.threads;
  builder->region.blocks_per_sm = (int)state->shape.per_sm;
  builder->region.dynamic_shared = (state->most_sums + state->set) * state->shape.element;
}

static void predict(struct cb_region_builder *builder, const struct state *state) {
  struct cb_cost *cost = &builder->region.cost;
  cost->sectors = state->row_blocks * cb_divide_up(state->columns * state->shape.element, 32);
  cost->stream_percent = CB_COST_PHASES_PERCENT;
  cost->work_ns = state->all.steps * LANES * CB_COST_PHASES_SLOT_PS / 1000 / builder->target->multiprocessors;
  cost->tail_ns = CB_COST_PHASES_COMMIT_NS + state->sets * CB_COST_PHASE_NS / state->shape.per_sm;
}

/* ---- the layout */

/* Two batches are in registers at a time, a place and a value for each step; more than there are would spill. */
static int choose_batch(const struct state *state, const struct cb_region_builder *builder) {
  enum { REGISTERS = 1 << 16, OTHERS = 34 };
  const int64_t words = 1 + (builder->value_bytes ? (int64_t)cb_type_size(builder->sum_type) / 4 : 0);
  const int64_t own = REGISTERS / (state->shape.threads * state->shape.per_sm) - OTHERS;
  const int64_t asked = builder->settings[PHASES_BATCH], best = builder->value_bytes > 2 ? BATCH_WIDE : BATCH;
  return (int)cb_larger(1, cb_smaller(asked ? asked : best, own / (2 * words)));
}

static enum cb_status make_region(struct cb_region_builder *builder, struct state *state, struct cb_diag *diag) {
  const struct cb_csr *csr = state->csr;
  state->shape = cb_phase_shape(builder->target, builder->options);
  state->batch = choose_batch(state, builder);
  state->all_rows = builder->commit == CB_COMMIT_FINAL;
  state->row = cb_rows_where(&state->arena, csr->rows, is_written, state, &state->rows);
  if (!state->row || !cut_row_blocks(state))
    return cb_fail_memory(diag, "row blocks", (uint64_t)csr->rows * 4);
  const enum cb_status s = choose_sets(state, builder->settings, diag);
  if (s) return s;
  if (!choose_sums(state) || !cut_slices(state)) return cb_fail_memory(diag, "slices", (uint64_t)csr->nnz);
  if (state->all.local_rows > INT32_MAX - LANES || state->all.slices > INT32_MAX / LANES - state->shape.blocks * LANES)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld segments exceed the layout's int", (long long)state->all.local_rows);
  builder->work.units = state->row_blocks;
  build_region(builder, state);
  predict(builder, state);
  return CB_OK;
}

static enum cb_status phases_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  const struct cb_csr *csr = builder->work.part.csr;
  if (csr->rows > INT32_MAX / 2 || csr->cols > INT32_MAX / 2 || csr->nnz / 4 > INT32_MAX)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld rows, %lld columns, %lld nonzeros exceed the numbers of the layout phases",
                   (long long)csr->rows, (long long)csr->cols, (long long)csr->nnz);
  if (!csr->nnz) return cb_fail(diag, CB_ERR_UNSUPPORTED, "no column is hot: there are no nonzeros; use another recipe");
  enum cb_status s = cb_region_state(builder, sizeof(struct state), diag);
  struct state *state = builder->work.state;
  if (s) return s;
  state->csr = csr;
  s = make_region(builder, state, diag);
  cb_arena_release(&state->counted);
  state->counts = NULL;
  return s;
}

/* For reports. */
static void count_loads(const void *user, int64_t *nonzeros) {
  const struct state *state = user;
  for (int64_t block = 0; block < state->row_blocks; block++)
    for (int64_t i = state->block_row[block]; i < state->block_row[block + 1]; i++)
      nonzeros[block] += cb_csr_row_length(state->csr, state->row[i]);
}

/* For reports. */
static int64_t block_of(const void *user, struct cb_met met) {
  (void)user;
  return met.unit;
}

const struct cb_layout cb_layout_phases = {
    .name = "phases",
    .summary = "column blocking: entries of x for frequent columns in shared memory, a set at a time",
    .source = "-",
    .options = cb_phases_options,
    .options_count = PHASES_OPTIONS,
    .recipes = cb_phases_recipes,
    .plan = phases_plan,
    .has_family = 1,
    .visit = phases_visit,
    .unit = "row block",
    .block_of = block_of,
    .count_loads = count_loads,
    .least = {.bytes = 2, .percent = CB_COST_PHASES_PERCENT, .ns = CB_COST_PHASES_COMMIT_NS},
};
