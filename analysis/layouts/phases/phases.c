// SPDX-License-Identifier: Apache-2.0
/* Column blocking. Often more columns are frequent than shared memory holds entries of x at once. A thread block then
 * goes through them set by set: each set is a phase. It owns a panel of rows, whose sums stay in shared memory
 * meanwhile. It reads a set's entries of x once, however many of its rows ask for them (cache blocking: R. Nishtala,
 * R. W. Vuduc, J. W. Demmel, K. A. Yelick, "When cache blocking of sparse matrix vector multiply works and why", 2007).
 *
 * Columns are numbered set by set, the most frequent in the first; a first launch lays their entries side by side in
 * that order. What a row has in a set is a segment. Segments of a panel and a set are stored as sliced ELL (see
 * sell.c): a warp takes a slice of 32 lanes, 1 to 32 lanes share a segment, and segments are sorted by length, so that
 * slots stay empty only where segments end; lanes never go there. A lane finds its entry of x and its sum by places of
 * 16 bits. No two warps add to one sum in one phase, and phases are apart: sums are the same in every run.
 *
 * A row with long segments has several sums, which take its nonzeros in turns and come together at the end.
 *
 * How to read it: phases_plan near the end calls the passes in order.
 */
#include "analysis/layouts/phases/options.h"

#include "analysis/layouts/phases/frequent.h"
#include "analysis/gathered.h"
#include "analysis/ordering.h"
#include "analysis/plan/cost_figures.h"
#include "analysis/slices.h"
#include "base/memory.h"

#include <string.h>

enum {
  LANES = CB_LANES,
  PLACE_BITS = 16,
  AIM = 16,              /* steps of a lane that lanes are chosen for */
  SEGMENT = AIM * LANES, /* nonzeros of a segment */
  KEYS = 6 * (AIM + 1),  /* lanes and steps of a segment */
  COUNT_KEYS = 1 << 16,  /* nonzeros of a column, as far as they order columns */
  MOST_SET = 1 << PLACE_BITS,
  LEAST_SET = 32,
  MOST_SETS = 4096,
  MARGIN = 16,    /* of sums that are kept free for further ones of long rows: one in so many */
  BATCH = 4,      /* steps, where values take no more than two bytes; else: */
  BATCH_WIDE = 2, /* registers for two batches are all taken; measured */
  ROW_WEIGHT = 4  /* of a row, in nonzeros, where rows are cut into panels */
};

#define NOWHERE UINT32_MAX

/* What one panel has in one set, as counted first and then as filled in: ends of its slices, places and steps. */
struct extent {
  int64_t slices, places, steps;
};

struct state {
  struct cb_arena arena;
  const struct cb_csr *csr;
  struct cb_phase_shape shape;
  int batch;
  /* columns */
  uint32_t *where; /* by column: its set, and in PLACE_BITS below that its place there; NOWHERE: no nonzeros */
  int64_t columns, set, sets;
  /* rows: those with nonzeros, or all when the region writes every row */
  int32_t *row;
  int64_t rows, panels, most_rows;
  int64_t *panel_row;  /* panels + 1 */
  uint32_t *first_sum; /* rows + 1; a row's own sums are successive */
  int64_t most_sums, segment;
  struct cb_arena counted; /* while there is a plan to be made, owns: */
  uint32_t *counts; /* nonzeros by row and set; NULL: too many, counted when needed */
  /* slices, panel by panel and set by set */
  struct extent *end; /* panels * sets */
  struct extent all;
  unsigned char *lanes_log2;
  uint32_t *first_local_row; /* by slice */
  int64_t *first_step;   /* by slice; slices + 1 */
  uint32_t *local_row_sum, *local_row_count;
};

/* ---- panels: adds row, panel_row, most_rows */

static int is_any(const void *csr, int64_t row) {
  (void)csr, (void)row;
  return 1;
}
static int has_nonzeros(const void *csr, int64_t row) { return cb_csr_row_length(csr, row) > 0; }

static int collect_rows(struct state *state, int all) {
  state->row = cb_rows_where(&state->arena, state->csr->rows, all ? is_any : has_nonzeros, state->csr, &state->rows);
  return state->row != NULL;
}

/* Successive rows of about equal weight, so that those of a panel lie close together in y. */
static int cut_panels(struct state *state) {
  const struct cb_csr *csr = state->csr;
  const int64_t weight = csr->nnz + ROW_WEIGHT * state->rows;
  state->panels = cb_larger(1, cb_smaller(state->shape.panels, cb_divide_up(weight, 4 * state->shape.threads)));
  state->panel_row = cb_arena_alloc(&state->arena, (size_t)state->panels + 1, sizeof *state->panel_row);
  if (!state->panel_row) return 0;
  int64_t i = 0, met = 0;
  for (int64_t panel = 0; panel < state->panels; panel++) {
    const int64_t end = cb_divide_up(weight * (panel + 1), state->panels);
    state->panel_row[panel] = i;
    while (i < state->rows && met < end)
      met += cb_csr_row_length(csr, state->row[i++]) + ROW_WEIGHT;
    state->most_rows = cb_larger(state->most_rows, i - state->panel_row[panel]);
  }
  state->panel_row[state->panels] = i;
  return 1;
}

/* ---- columns: needs the panels; adds where, columns, set, sets */

static int64_t set_of(uint32_t where) { return where >> PLACE_BITS; }
static uint32_t place_of(uint32_t where) { return where & ((1u << PLACE_BITS) - 1); }

static int64_t key_of(uint32_t count) { return count < COUNT_KEYS ? COUNT_KEYS - 1 - (int64_t)count : 0; }

static int is_occupied(const void *counts, int64_t column) { return ((const uint32_t *)counts)[column] > 0; }

/* Ranks by nonzeros say which set; within a set columns keep their order. `occupied` lists those that have nonzeros. */
static int number_columns(struct state *state, struct cb_arena *scratch, const uint32_t *counts,
                          const int32_t *occupied) {
  const int64_t cols = state->csr->cols;
  int64_t *start = cb_arena_alloc(scratch, COUNT_KEYS + 1, sizeof *start);
  int64_t *next = cb_arena_alloc(scratch, (size_t)state->sets, sizeof *next);
  if (!start || !next) return 0;
#pragma omp parallel for schedule(static)
  for (int64_t column = 0; column < cols; column++) state->where[column] = NOWHERE;
  for (int64_t i = 0; i < state->columns; i++) start[key_of(counts[occupied[i]]) + 1]++;
  cb_sum_up(start, COUNT_KEYS);
  for (int64_t set = 0; set < state->sets; set++) next[set] = set << PLACE_BITS;
  for (int64_t i = 0; i < state->columns; i++) {
    const int64_t rank = start[key_of(counts[occupied[i]])]++;
    state->where[occupied[i]] = (uint32_t)next[rank / state->set]++;
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
  const uint32_t *counts = cb_count_columns(&scratch, csr);
  const int32_t *occupied = counts ? cb_rows_where(&scratch, csr->cols, is_occupied, counts, &state->columns) : NULL;
  state->where = cb_arena_alloc(&state->arena, (size_t)csr->cols, sizeof *state->where);
  enum cb_status s = size_sets(state, most, diag);
  if (!s && !(occupied && state->where && number_columns(state, &scratch, counts, occupied)))
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

static int64_t sums_of(const struct state *state, int64_t i) { return state->first_sum[i + 1] - state->first_sum[i]; }

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

/* The sums of row i when a row's nonzeros in a set are cut into segments of so many, before first_sum is that. */
static int64_t sums_with(const struct state *state, int64_t i, int64_t segment) {
  const int64_t longest = state->first_sum[i + 1];
  return longest <= segment ? 1 : cb_divide_up(longest, segment);
}

static int64_t panel_sums(const struct state *state, int64_t panel, int64_t segment) {
  int64_t sums = 0;
  for (int64_t i = state->panel_row[panel]; i < state->panel_row[panel + 1]; i++) sums += sums_with(state, i, segment);
  return sums;
}

/* Of the panel that has the most. */
static int64_t most_sums(const struct state *state, int64_t segment) {
  int64_t most = 0;
#pragma omp parallel for schedule(static) reduction(max : most)
  for (int64_t panel = 0; panel < state->panels; panel++) most = cb_larger(most, panel_sums(state, panel, segment));
  return most;
}

/* first_sum of the rows of a panel, whose sums begin at `sum`. */
static void number_sums(struct state *state, int64_t panel, uint32_t sum) {
  for (int64_t i = state->panel_row[panel]; i < state->panel_row[panel + 1]; i++) {
    sum += (uint32_t)sums_with(state, i, state->segment);
    state->first_sum[i + 1] = sum;
  }
}

static int place_sums(struct state *state) {
  struct cb_arena scratch = {0};
  uint32_t *begin = cb_arena_alloc(&scratch, (size_t)state->panels + 1, sizeof *begin);
  const int good = begin && count_longest(state);
  if (good) {
    state->segment = SEGMENT;
    while (most_sums(state, state->segment) > state->shape.room - state->set) state->segment *= 2; /* most_rows fit */
    state->most_sums = most_sums(state, state->segment);
    for (int64_t panel = 0; panel < state->panels; panel++)
      begin[panel + 1] = begin[panel] + (uint32_t)panel_sums(state, panel, state->segment);
#pragma omp parallel for schedule(static)
    for (int64_t panel = 0; panel < state->panels; panel++) number_sums(state, panel, begin[panel]);
  }
  cb_arena_release(&scratch);
  return good;
}

/* ---- slices: needs the sums; adds the rest */

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

/* Of a panel, as one thread works on it. */
struct bench {
  struct cb_arena arena;
  const uint32_t *counts; /* by row of the panel and set */
  uint32_t *own_counts;   /* room for them, unless the state has them */
  uint32_t *sum, *count; /* segments of one set, sorted */
  int64_t *place; /* by sum and set: 32 * slice + place in the slice */
  uint32_t *met;  /* by set */
};

/* 0: no memory. The arena is to be released in any case. */
static int bench_make(struct bench *bench, const struct state *state, int visits) {
  const size_t sums = (size_t)state->most_sums, sets = (size_t)state->sets;
  struct cb_arena *arena = &bench->arena;
  *bench = (struct bench){.arena = {0}};
  if (!state->counts) bench->own_counts = cb_arena_alloc(arena, (size_t)state->most_rows * sets, sizeof(uint32_t));
  if (visits) {
    bench->place = cb_arena_alloc(arena, sums * sets, sizeof *bench->place);
    bench->met = cb_arena_alloc(arena, sets, sizeof *bench->met);
  } else {
    bench->sum = cb_arena_alloc(arena, sums, sizeof *bench->sum);
    bench->count = cb_arena_alloc(arena, sums, sizeof *bench->count);
  }
  return !arena->failed;
}

static void count_panel(const struct state *state, int64_t panel, struct bench *bench) {
  const int64_t first = state->panel_row[panel];
  bench->counts = state->counts ? state->counts + first * state->sets : bench->own_counts;
  for (int64_t i = first; i < state->panel_row[panel + 1] && !state->counts; i++)
    count_row(state, state->row[i], bench->own_counts + (i - first) * state->sets);
}

/* The segments of a panel in a set, sorted; returns how many. */
static int64_t sort_segments(const struct state *state, int64_t panel, int64_t set, struct bench *bench) {
  const int64_t first = state->panel_row[panel], end = state->panel_row[panel + 1];
  int64_t start[KEYS + 1] = {0}, segments = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t i = first; i < end; i++) {
      const int64_t count = bench->counts[(i - first) * state->sets + set];
      if (!count) continue;
      const int64_t chunk = chunk_of(count, sums_of(state, i));
      for (int64_t number = 0; number * chunk < count; number++) {
        const int64_t own = cb_smaller(chunk, count - number * chunk), key = segment_key(own);
        if (!pass) {
          start[key + 1]++;
          segments++;
          continue;
        }
        bench->sum[start[key]] = (uint32_t)(state->first_sum[i] - state->first_sum[first] + number);
        bench->count[start[key]++] = (uint32_t)own;
      }
    }
    for (int key = 1; key <= KEYS && !pass; key++) start[key] += start[key - 1];
  }
  return segments;
}

/* Cuts sorted segments into slices behind *at; fills them in when `fill`. */
static void cut_set(const struct state *state, const struct bench *bench, int64_t segments, int fill,
                    struct extent *at) {
  for (int64_t next = 0; next < segments;) {
    const int log2 = lanes_for(bench->count[next]);
    if (fill) {
      state->lanes_log2[at->slices] = (unsigned char)log2;
      state->first_local_row[at->slices] = (uint32_t)at->places;
      state->first_step[at->slices] = at->steps;
    }
    at->slices++;
    at->steps += steps_of(bench->count[next]);
    for (int64_t i = 0; i < LANES >> log2; i++, at->places++) {
      const int taken = next < segments && lanes_for(bench->count[next]) == log2;
      if (fill) state->local_row_sum[at->places] = taken ? bench->sum[next] : 0;
      if (fill) state->local_row_count[at->places] = taken ? bench->count[next] : 0;
      next += taken;
    }
  }
}

static struct extent begin_of(const struct state *state, int64_t panel, int64_t set) {
  const int64_t number = panel * state->sets + set;
  return number ? state->end[number - 1] : (struct extent){0};
}

static void cut_panel(struct state *state, int64_t panel, int fill, struct bench *bench) {
  count_panel(state, panel, bench);
  for (int64_t set = 0; set < state->sets; set++) {
    struct extent at = fill ? begin_of(state, panel, set) : (struct extent){0};
    cut_set(state, bench, sort_segments(state, panel, set, bench), fill, &at);
    if (!fill) state->end[panel * state->sets + set] = at;
  }
}

/* All panels: their extents first, and once these are known their slices. */
static int cut_panels_into_slices(struct state *state, int fill) {
  int good = 1;
#pragma omp parallel reduction(&& : good)
  {
    struct bench bench;
    good = bench_make(&bench, state, 0);
#pragma omp for schedule(dynamic, 1)
    for (int64_t panel = 0; panel < state->panels; panel++)
      if (good) cut_panel(state, panel, fill, &bench);
    cb_arena_release(&bench.arena);
  }
  return good;
}

static int cut_slices(struct state *state) {
  const int64_t numbers = state->panels * state->sets;
  struct cb_arena *arena = &state->arena;
  state->end = cb_arena_alloc(arena, (size_t)numbers, sizeof *state->end);
  if (!state->end || !cut_panels_into_slices(state, 0)) return 0;
  for (int64_t i = 1; i < numbers; i++) {
    state->end[i].slices += state->end[i - 1].slices;
    state->end[i].places += state->end[i - 1].places;
    state->end[i].steps += state->end[i - 1].steps;
  }
  const struct extent all = state->all = state->end[numbers - 1];
  state->lanes_log2 = cb_arena_alloc(arena, (size_t)all.slices, 1);
  state->first_local_row = cb_arena_alloc(arena, (size_t)all.slices, sizeof *state->first_local_row);
  state->first_step = cb_arena_alloc(arena, (size_t)all.slices + 1, sizeof *state->first_step);
  state->local_row_sum = cb_arena_alloc(arena, (size_t)all.places, sizeof *state->local_row_sum);
  state->local_row_count = cb_arena_alloc(arena, (size_t)all.places, sizeof *state->local_row_count);
  if (arena->failed) return 0;
  state->first_step[all.slices] = all.steps;
  return cut_panels_into_slices(state, 1);
}

/* ---- nonzeros to slots: needs the slices */

static void find_places(const struct state *state, int64_t panel, struct bench *bench) {
  for (int64_t set = 0; set < state->sets; set++) {
    const int64_t end = state->end[panel * state->sets + set].slices;
    for (int64_t slice = begin_of(state, panel, set).slices; slice < end; slice++)
      for (int64_t i = 0; i < LANES >> state->lanes_log2[slice]; i++)
        if (state->local_row_count[state->first_local_row[slice] + i])
          bench->place[state->local_row_sum[state->first_local_row[slice] + i] * state->sets + set] = LANES * slice + i;
  }
}

/* The slot of the nonzero `met` of `count` that row i has in a set. */
static int64_t slot_of(const struct state *state, const struct bench *bench, int64_t panel, int64_t i, int64_t set,
                       int64_t met, int64_t count) {
  const int64_t sums = sums_of(state, i), chunk = chunk_of(count, sums);
  const int64_t number = sums == 1 ? 0 : met / chunk, k = met - number * chunk; /* nearly all rows have one sum */
  const int64_t sum = state->first_sum[i] - state->first_sum[state->panel_row[panel]] + number;
  const uint64_t place = (uint64_t)bench->place[sum * state->sets + set], slice = place / LANES;
  return cb_slice_slot(state->first_step[slice], state->lanes_log2[slice], (int64_t)(place % LANES), k);
}

/* Where columns are is looked up for several nonzeros at a time. */
static void visit_row(const struct state *state, const struct bench *bench, int64_t panel, int64_t i,
                      const struct cb_walk *walk) {
  enum { TOGETHER = 64 };
  const int32_t *column = state->csr->col_idx;
  const int64_t begin = cb_csr_row(state->csr, state->row[i]), end = cb_csr_row(state->csr, state->row[i] + 1);
  const uint32_t *counts = bench->counts + (i - state->panel_row[panel]) * state->sets;
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
      const int64_t slot = slot_of(state, bench, panel, i, set, bench->met[set]++, counts[set]);
      cb_emit(walk, slot, first + k, place_of(where[k]));
    }
  }
}

static int phases_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *walk) {
  const struct state *state = user;
  struct bench bench;
  const int good = bench_make(&bench, state, 1);
  for (int64_t panel = first; panel < end && good; panel++) {
    count_panel(state, panel, &bench);
    find_places(state, panel, &bench);
    for (int64_t i = state->panel_row[panel]; i < state->panel_row[panel + 1]; i++)
      visit_row(state, &bench, panel, i, walk);
  }
  cb_arena_release(&bench.arena);
  return good;
}

/* ---- the region: needs all of the above; adds arrays and sections */

/* A set's columns have successive places from 0 on, and the first set is full if any is. */
static int64_t largest_place(const struct state *state) { return cb_smaller(state->set, state->columns) - 1; }

static void build_slots(struct cb_region_builder *builder, const struct state *state) {
  const int64_t slots = state->all.steps * LANES;
  cb_region_by_slot(builder, "entry_place", "place of a slot's entry of x in its set",
                    (struct cb_slot_elements){.count = slots, .largest = largest_place(state)});
  cb_region_streamed(builder);
  cb_region_values(builder, "values", "per slice, step and lane", slots);
}

static uint64_t first_slice(const void *user, int64_t number) {
  const struct state *state = user;
  return number ? (uint64_t)state->end[number - 1].slices : 0;
}

static void build_slices(struct cb_region_builder *builder, const struct state *state) {
  const int64_t slices = state->all.slices, places = state->all.places;
  cb_region_computed(builder, "first_slice", "slices before those of a panel and a set",
                     state->panels * state->sets + 1, first_slice);
  cb_region_list(builder, "lanes_log2", "logarithm of the lanes that share a segment", slices, state->lanes_log2);
  cb_region_list(builder, "first_local_row", "a slice's first local row", slices, state->first_local_row);
  cb_region_list(builder, "first_step", "steps before a slice, 32 slots each", slices + 1, state->first_step);
  cb_region_list(builder, "local_row_sum", "the panel's sum that a local row belongs to", places,
                 state->local_row_sum);
  cb_region_streamed(builder);
  cb_region_list(builder, "local_row_count", "nonzeros of the segment; 0: none", places, state->local_row_count);
  cb_region_streamed(builder);
}

static uint64_t first_sum(const void *user, int64_t panel) {
  const struct state *state = user;
  return state->first_sum[state->panel_row[panel]];
}

static void build_sums(struct cb_region_builder *builder, struct state *state) {
  const int64_t sums = state->first_sum[state->rows];
  uint32_t *rows = cb_arena_alloc(&state->arena, (size_t)sums, sizeof *rows);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < (rows ? state->rows : 0); i++)
    for (uint32_t sum = state->first_sum[i]; sum < state->first_sum[i + 1]; sum++)
      rows[sum] = (uint32_t)(sum == state->first_sum[i] ? state->row[i] : state->csr->rows);
  cb_region_computed(builder, "first_sum", "sums before a panel's", state->panels + 1, first_sum);
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
  cb_region_fact(builder, "segments", "%lld", (long long)state->all.places);
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
  cb_region_size(builder, "kSums", state->most_sums, "plan: sums of a panel at most");
  cb_region_size(builder, "kSlices", state->all.slices, "plan: slices of 32 lanes");
  cb_region_size(builder, "kSet", state->set, "plan: entries of x in a set");
  cb_region_size(builder, "kSets", state->sets, "plan: phases");
  cb_region_structure(builder, "kBatch", state->batch, "plan: steps whose loads are in flight together");
  cb_region_structure(builder, "kThreads", state->shape.threads, "plan: threads of a thread block");
  cb_region_structure(builder, "kWarps", state->shape.threads / LANES, "their warps");
  builder->region.blocks = state->panels;
  builder->region.threads = state->shape.threads;
  builder->region.blocks_per_sm = (int)state->shape.per_sm;
  builder->region.dynamic_shared = (state->most_sums + state->set) * state->shape.element;
}

static void predict(struct cb_region_builder *builder, const struct state *state) {
  struct cb_cost *cost = &builder->region.cost;
  cost->sectors = state->panels * cb_divide_up(state->columns * state->shape.element, 32);
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
  if (!collect_rows(state, builder->commit == CB_COMMIT_FINAL) || !cut_panels(state))
    return cb_fail_memory(diag, "panels", (uint64_t)csr->rows * 4);
  const enum cb_status s = choose_sets(state, builder->settings, diag);
  if (s) return s;
  if (!place_sums(state) || !cut_slices(state)) return cb_fail_memory(diag, "slices", (uint64_t)csr->nnz);
  if (state->all.places > INT32_MAX - LANES || state->all.slices > INT32_MAX / LANES - state->shape.panels * LANES)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld segments exceed the layout's int", (long long)state->all.places);
  builder->work.units = state->panels;
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
  for (int64_t panel = 0; panel < state->panels; panel++)
    for (int64_t i = state->panel_row[panel]; i < state->panel_row[panel + 1]; i++)
      nonzeros[panel] += cb_csr_row_length(state->csr, state->row[i]);
}

const struct cb_layout cb_layout_phases = {
    .name = "phases",
    .summary = "column blocking: entries of x for frequent columns in shared memory, a set at a time",
    .source = "-",
    .options = cb_phases_options,
    .options_count = PHASES_OPTIONS,
    .recipes = cb_phases_recipes,
    .plan = phases_plan,
    .visit = phases_visit,
    .unit = "row block",
    .count_loads = count_loads,
    .least = {.bytes = 2, .percent = CB_COST_PHASES_PERCENT, .ns = CB_COST_PHASES_COMMIT_NS},
};
