// SPDX-License-Identifier: Apache-2.0
/* Hot columns in phases: where many columns are asked for often, more than shared memory holds entries of x at once, a
 * thread block goes through them set by set. It owns a panel of rows, whose sums stay in shared memory meanwhile, and
 * reads a set's entries of x once, however many of its rows ask for them (cache blocking: R. Nishtala, R. W. Vuduc,
 * J. W. Demmel, K. A. Yelick, "When cache blocking of sparse matrix vector multiply works and why", 2007).
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
#include "analysis/layout.h"

#include "analysis/frequent.h"
#include "analysis/hot_columns.h"
#include "analysis/ordering.h"
#include "analysis/plan/cost_figures.h"
#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

enum {
  LANES = 32,
  PLACE_BITS = 16,
  AIM = 16,               /* steps of a lane that lanes are chosen for */
  PIECE = AIM * LANES,    /* nonzeros of a segment */
  KEYS = 6 * (AIM + 1),   /* lanes and steps of a segment */
  COUNT_KEYS = 1 << 16,   /* nonzeros of a column, as far as they order columns */
  MOST_SET = 1 << PLACE_BITS,
  LEAST_SET = 32,
  MOST_SETS = 4096,
  MARGIN = 16,            /* of sums that are kept free for further ones of long rows: one in so many */
  BATCH = 4,              /* steps, where values take no more than two bytes; else: */
  BATCH_WIDE = 2,         /* registers for two batches are all taken; measured */
  ROW_WEIGHT = 4          /* of a row, in nonzeros, where rows are cut into panels */
};

#define NOWHERE UINT32_MAX

/* What one panel has in one set, as counted first and then as filled in: ends of its slices, places and steps. */
struct extent {
  int64_t slices, places, steps;
};

struct state {
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
  int64_t most_sums, piece;
  uint32_t *counts; /* nonzeros by row and set, while there is a plan to be made; NULL: too many, counted when needed */
  /* slices, panel by panel and set by set */
  struct extent *end; /* panels * sets */
  unsigned char *lanes_log2;
  uint32_t *first_place; /* by slice */
  int64_t *first_step;   /* by slice; slices + 1 */
  uint32_t *place_sum, *place_count;
};

static void state_release(void *memory) {
  struct state *state = memory;
  if (!state) return;
  cb_free(state->where);
  cb_free(state->row);
  cb_free(state->panel_row);
  cb_free(state->first_sum);
  cb_free(state->counts);
  cb_free(state->end);
  cb_free(state->lanes_log2);
  cb_free(state->first_place);
  cb_free(state->first_step);
  cb_free(state->place_sum);
  cb_free(state->place_count);
  cb_free(state);
}

/* ---- panels: adds row, panel_row, most_rows */

static int is_any(const void *csr, int64_t row) {
  (void)csr, (void)row;
  return 1;
}
static int has_nonzeros(const void *csr, int64_t row) { return cb_csr_row_length(csr, row) > 0; }

static int collect_rows(struct state *state, int all) {
  state->row = cb_rows_where(state->csr->rows, all ? is_any : has_nonzeros, state->csr, &state->rows);
  return state->row != NULL;
}

/* Successive rows of about equal weight, so that those of a panel lie close together in y. */
static int cut_panels(struct state *state) {
  const struct cb_csr *csr = state->csr;
  const int64_t weight = csr->nnz + ROW_WEIGHT * state->rows;
  state->panels = cb_larger(1, cb_smaller(state->shape.panels, cb_divide_up(weight, 4 * state->shape.threads)));
  state->panel_row = cb_alloc((size_t)state->panels + 1, sizeof *state->panel_row);
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
static int number_columns(struct state *state, const uint32_t *counts, const int32_t *occupied) {
  const int64_t cols = state->csr->cols;
  int64_t *start = cb_calloc(COUNT_KEYS + 1, sizeof *start);
  int64_t *next = cb_alloc((size_t)state->sets, sizeof *next);
  if (start && next) {
#pragma omp parallel for schedule(static)
    for (int64_t column = 0; column < cols; column++) state->where[column] = NOWHERE;
    for (int64_t i = 0; i < state->columns; i++) start[key_of(counts[occupied[i]]) + 1]++;
    for (int key = 1; key <= COUNT_KEYS; key++) start[key] += start[key - 1];
    for (int64_t set = 0; set < state->sets; set++) next[set] = set << PLACE_BITS;
    for (int64_t i = 0; i < state->columns; i++) {
      const int64_t rank = start[key_of(counts[occupied[i]])]++;
      state->where[occupied[i]] = (uint32_t)next[rank / state->set]++;
    }
  }
  const int good = start && next;
  cb_free(start);
  cb_free(next);
  return good;
}

static enum cb_status choose_sets(struct state *state, const struct cb_options *options, struct cb_diag *diag) {
  const struct cb_csr *csr = state->csr;
  const int64_t sums = state->most_rows + cb_larger(state->most_rows / MARGIN, LEAST_SET);
  int64_t most = cb_smaller(state->shape.room - sums, MOST_SET);
  if (options->phase_set) most = cb_smaller(most, options->phase_set);
  if (most < LEAST_SET)
    return cb_fail(diag, CB_ERR_LIMIT, "the sums of %lld rows leave no room for entries of x in shared memory; use another "
                                       "recipe", (long long)state->most_rows);
  uint32_t *counts = cb_count_columns(csr);
  int32_t *occupied = counts ? cb_rows_where(csr->cols, is_occupied, counts, &state->columns) : NULL;
  state->where = cb_alloc((size_t)csr->cols, sizeof *state->where);
  state->sets = cb_larger(1, cb_divide_up(state->columns, most));
  state->set = cb_larger(LEAST_SET, cb_round_up(cb_divide_up(state->columns, state->sets), LANES));
  state->set = cb_smaller(state->set, most);
  if (state->sets > MOST_SETS) {
    cb_free(counts);
    cb_free(occupied);
    return cb_fail(diag, CB_ERR_LIMIT, "%lld columns are more than %d sets of entries of x that shared memory holds; use "
                                       "another recipe", (long long)state->columns, MOST_SETS);
  }
  const int good = occupied && state->where && number_columns(state, counts, occupied);
  cb_free(counts);
  cb_free(occupied);
  return good ? CB_OK : cb_fail_memory(diag, "columns", (uint64_t)csr->cols * 8);
}

/* ---- sums: needs the columns; adds first_sum, most_sums, piece */

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

/* The most nonzeros that a row has in one set; first_sum[i + 1] holds them at first. */
static int count_longest(struct state *state) {
  const int keeps = state->rows * state->sets <= state->csr->nnz;
  int good = 1;
  state->first_sum = cb_calloc((size_t)state->rows + 1, sizeof *state->first_sum);
  if (keeps) state->counts = cb_alloc((size_t)(state->rows * state->sets), sizeof *state->counts);
  if (!state->first_sum || (keeps && !state->counts)) return 0;
#pragma omp parallel reduction(&& : good)
  {
    uint32_t *own = cb_alloc((size_t)state->sets, sizeof *own);
    good = own != NULL;
#pragma omp for schedule(dynamic, 1024)
    for (int64_t i = 0; i < state->rows; i++) {
      if (!good) continue;
      uint32_t *counts = keeps ? state->counts + i * state->sets : own;
      count_row(state, state->row[i], counts);
      for (int64_t set = 0; set < state->sets; set++)
        if (counts[set] > state->first_sum[i + 1]) state->first_sum[i + 1] = counts[set];
    }
    cb_free(own);
  }
  return good;
}

/* The sums of row i when longer segments are cut into pieces of so many nonzeros, before first_sum is that. */
static int64_t sums_with(const struct state *state, int64_t i, int64_t piece) {
  const int64_t longest = state->first_sum[i + 1];
  return longest <= piece ? 1 : cb_divide_up(longest, piece);
}

static int64_t panel_sums(const struct state *state, int64_t panel, int64_t piece) {
  int64_t sums = 0;
  for (int64_t i = state->panel_row[panel]; i < state->panel_row[panel + 1]; i++) sums += sums_with(state, i, piece);
  return sums;
}

/* Of the panel that has the most. */
static int64_t most_sums(const struct state *state, int64_t piece) {
  int64_t most = 0;
#pragma omp parallel for schedule(static) reduction(max : most)
  for (int64_t panel = 0; panel < state->panels; panel++) most = cb_larger(most, panel_sums(state, panel, piece));
  return most;
}

/* first_sum of the rows of a panel, whose sums begin at `sum`. */
static void number_sums(struct state *state, int64_t panel, uint32_t sum) {
  for (int64_t i = state->panel_row[panel]; i < state->panel_row[panel + 1]; i++) {
    sum += (uint32_t)sums_with(state, i, state->piece);
    state->first_sum[i + 1] = sum;
  }
}

static int place_sums(struct state *state) {
  uint32_t *begin = cb_alloc((size_t)state->panels + 1, sizeof *begin);
  const int good = begin && count_longest(state);
  if (good) {
    state->piece = PIECE;
    while (most_sums(state, state->piece) > state->shape.room - state->set) state->piece *= 2; /* most_rows fit */
    state->most_sums = most_sums(state, state->piece);
    begin[0] = 0;
    for (int64_t panel = 0; panel < state->panels; panel++)
      begin[panel + 1] = begin[panel] + (uint32_t)panel_sums(state, panel, state->piece);
#pragma omp parallel for schedule(static)
    for (int64_t panel = 0; panel < state->panels; panel++) number_sums(state, panel, begin[panel]);
  }
  cb_free(begin);
  return good;
}

/* ---- slices: needs the sums; adds the rest */

/* What each of a row's sums takes of `count` nonzeros in a set at most: whole steps of 32 lanes. */
static int64_t chunk_of(int64_t count, int64_t sums) {
  return sums == 1 ? count : cb_divide_up(count, sums * LANES) * LANES;
}

static int lanes_for(int64_t count) {
  int log2 = 0;
  while (log2 < 5 && cb_divide_up(count, INT64_C(1) << log2) > AIM) log2++;
  return log2;
}

static int64_t steps_of(int64_t count) { return cb_divide_up(count, INT64_C(1) << lanes_for(count)); }

/* Segments that fill slices without holes. The most lanes and the longest first. */
static int64_t segment_key(int64_t count) {
  return (5 - lanes_for(count)) * (AIM + 1) + AIM - cb_smaller(steps_of(count), AIM);
}

/* Of a panel, as one thread works on it. */
struct bench {
  const uint32_t *counts; /* by row of the panel and set */
  uint32_t *own_counts;   /* room for them, unless the state has them */
  uint32_t *sum, *count; /* segments of one set, sorted */
  int64_t *place; /* by sum and set: 32 * slice + place in the slice */
};

static void bench_release(struct bench *bench) {
  cb_free(bench->own_counts);
  cb_free(bench->sum);
  cb_free(bench->count);
  cb_free(bench->place);
}

static int bench_make(struct bench *bench, const struct state *state, int places) {
  const size_t sums = (size_t)state->most_sums, sets = (size_t)state->sets;
  *bench = (struct bench){0};
  bench->own_counts = cb_alloc(state->counts ? 0 : (size_t)state->most_rows * sets, sizeof *bench->own_counts);
  bench->sum = cb_alloc(sums, sizeof *bench->sum);
  bench->count = cb_alloc(sums, sizeof *bench->count);
  if (places) bench->place = cb_alloc(sums * sets, sizeof *bench->place);
  return bench->own_counts && bench->sum && bench->count && (!places || bench->place);
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
      for (int64_t piece = 0; piece * chunk < count; piece++) {
        const int64_t own = cb_smaller(chunk, count - piece * chunk), key = segment_key(own);
        if (!pass) {
          start[key + 1]++;
          segments++;
          continue;
        }
        bench->sum[start[key]] = (uint32_t)(state->first_sum[i] - state->first_sum[first] + piece);
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
      state->first_place[at->slices] = (uint32_t)at->places;
      state->first_step[at->slices] = at->steps;
    }
    at->slices++;
    at->steps += steps_of(bench->count[next]);
    for (int64_t i = 0; i < LANES >> log2; i++, at->places++) {
      const int taken = next < segments && lanes_for(bench->count[next]) == log2;
      if (fill) state->place_sum[at->places] = taken ? bench->sum[next] : 0;
      if (fill) state->place_count[at->places] = taken ? bench->count[next] : 0;
      next += taken;
    }
  }
}

static struct extent begin_of(const struct state *state, int64_t panel, int64_t set) {
  const int64_t number = panel * state->sets + set;
  return number ? state->end[number - 1] : (struct extent){0};
}

/* All panels: their extents first, and once these are known their slices. */
static int cut_panels_into_slices(struct state *state, int fill) {
  int good = 1;
#pragma omp parallel reduction(&& : good)
  {
    struct bench bench;
    good = bench_make(&bench, state, 0);
#pragma omp for schedule(dynamic, 1)
    for (int64_t panel = 0; panel < state->panels; panel++) {
      if (!good) continue;
      count_panel(state, panel, &bench);
      for (int64_t set = 0; set < state->sets; set++) {
        struct extent at = fill ? begin_of(state, panel, set) : (struct extent){0};
        cut_set(state, &bench, sort_segments(state, panel, set, &bench), fill, &at);
        if (!fill) state->end[panel * state->sets + set] = at;
      }
    }
    bench_release(&bench);
  }
  return good;
}

static int cut_slices(struct state *state) {
  const int64_t numbers = state->panels * state->sets;
  state->end = cb_calloc((size_t)numbers, sizeof *state->end);
  if (!state->end || !cut_panels_into_slices(state, 0)) return 0;
  for (int64_t i = 1; i < numbers; i++) {
    state->end[i].slices += state->end[i - 1].slices;
    state->end[i].places += state->end[i - 1].places;
    state->end[i].steps += state->end[i - 1].steps;
  }
  const struct extent all = state->end[numbers - 1];
  state->lanes_log2 = cb_alloc((size_t)all.slices, 1);
  state->first_place = cb_alloc((size_t)all.slices, sizeof *state->first_place);
  state->first_step = cb_alloc((size_t)all.slices + 1, sizeof *state->first_step);
  state->place_sum = cb_alloc((size_t)all.places, sizeof *state->place_sum);
  state->place_count = cb_alloc((size_t)all.places, sizeof *state->place_count);
  if (!state->lanes_log2 || !state->first_place || !state->first_step || !state->place_sum || !state->place_count)
    return 0;
  state->first_step[all.slices] = all.steps;
  return cut_panels_into_slices(state, 1);
}

static struct extent whole(const struct state *state) { return state->end[state->panels * state->sets - 1]; }

/* ---- nonzeros to slots: needs the slices */

static void find_places(const struct state *state, int64_t panel, struct bench *bench) {
  for (int64_t set = 0; set < state->sets; set++) {
    const int64_t end = state->end[panel * state->sets + set].slices;
    for (int64_t slice = begin_of(state, panel, set).slices; slice < end; slice++)
      for (int64_t i = 0; i < LANES >> state->lanes_log2[slice]; i++)
        if (state->place_count[state->first_place[slice] + i])
          bench->place[state->place_sum[state->first_place[slice] + i] * state->sets + set] = LANES * slice + i;
  }
}

/* The slot of the nonzero `met` of `count` that row i has in a set. */
static int64_t slot_of(const struct state *state, const struct bench *bench, int64_t panel, int64_t i, int64_t set,
                       int64_t met, int64_t count) {
  const int64_t sums = sums_of(state, i), chunk = chunk_of(count, sums);
  const int64_t piece = sums == 1 ? 0 : met / chunk, k = met - piece * chunk; /* nearly all rows have one sum */
  const int64_t sum = state->first_sum[i] - state->first_sum[state->panel_row[panel]] + piece;
  const uint64_t place = (uint64_t)bench->place[sum * state->sets + set], slice = place / LANES;
  const int log2 = state->lanes_log2[slice];
  return (state->first_step[slice] + (k >> log2)) * LANES + (int64_t)((place % LANES) << log2) +
         (k & ((INT64_C(1) << log2) - 1));
}

/* What to do with every nonzero: any may be NULL. */
struct targets {
  struct cb_late place; /* of its column in its set, by slot */
  const struct cb_slot_map *map;
  const struct cb_part *part;
};

/* Where columns are is looked up for several nonzeros at a time. */
static void visit_row(const struct state *state, const struct bench *bench, int64_t panel, int64_t i, uint32_t *met,
                      const struct targets *targets) {
  enum { TOGETHER = 64 };
  const int32_t *column = state->csr->col_idx;
  const int64_t begin = cb_csr_row(state->csr, state->row[i]), end = cb_csr_row(state->csr, state->row[i] + 1);
  const uint32_t *counts = bench->counts + (i - state->panel_row[panel]) * state->sets;
  uint32_t where[TOGETHER];
  memset(met, 0, (size_t)state->sets * sizeof *met);
  for (int64_t first = begin; first < end; first += TOGETHER) {
    const int64_t count = cb_smaller(end - first, TOGETHER);
    for (int64_t k = 0; k < count; k++) {
      ask_ahead(state, first + k);
      where[k] = state->where[column[first + k]];
    }
    for (int64_t k = 0; k < count; k++) {
      const int64_t set = set_of(where[k]);
      const int64_t slot = slot_of(state, bench, panel, i, set, met[set]++, counts[set]);
      if (targets->place.bytes) cb_late_set(&targets->place, slot, place_of(where[k]));
      if (targets->map) cb_slot_set(targets->map, slot, cb_part_origin(targets->part, first + k));
    }
  }
}

static int visit_nonzeros(const struct state *state, const struct targets *targets) {
  int good = 1;
#pragma omp parallel reduction(&& : good)
  {
    struct bench bench;
    uint32_t *met = cb_alloc((size_t)state->sets, sizeof *met);
    good = bench_make(&bench, state, 1) && met;
#pragma omp for schedule(dynamic, 1)
    for (int64_t panel = 0; panel < state->panels; panel++) {
      if (!good) continue;
      count_panel(state, panel, &bench);
      find_places(state, panel, &bench);
      for (int64_t i = state->panel_row[panel]; i < state->panel_row[panel + 1]; i++)
        visit_row(state, &bench, panel, i, met, targets);
    }
    bench_release(&bench);
    cb_free(met);
  }
  return good;
}

/* ---- the region: needs all of the above; adds arrays and pieces of text */

/* A set's columns have successive places from 0 on, and the first set is full if any is. */
static int64_t largest_place(const struct state *state) { return cb_smaller(state->set, state->columns) - 1; }

static void draft_slots(struct cb_draft *draft, const struct state *state) {
  static const char name[] = "entry_place", meaning[] = "place of a slot's entry of x in its set";
  const int64_t slots = whole(state).steps * LANES, largest = largest_place(state);
  if (cb_draft_may_be_late(draft, slots, 0, largest)) {
    cb_draft_late_streamed(draft, name, meaning, slots, largest);
  } else {
    uint32_t *places = cb_calloc((size_t)slots, sizeof *places);
    const struct targets targets = {.place = cb_late_at_once(places)};
    if (!places || !visit_nonzeros(state, &targets)) draft->failed = 1;
    cb_draft_streamed(draft, name, meaning, places, 0, slots);
  }
  cb_draft_values(draft, "values", "per slice, step and lane", slots);
}

static void draft_slices(struct cb_draft *draft, const struct state *state) {
  const size_t slices = (size_t)whole(state).slices, numbers = (size_t)(state->panels * state->sets);
  uint32_t *begin = cb_alloc(numbers + 1, sizeof *begin), *log2 = cb_alloc(slices, sizeof *log2);
  uint32_t *place = cb_alloc(slices, sizeof *place);
  uint64_t *step = cb_alloc(slices + 1, sizeof *step);
  if (begin && log2 && place && step) {
    begin[0] = 0;
    for (size_t i = 0; i < numbers; i++) begin[i + 1] = (uint32_t)state->end[i].slices;
    for (size_t slice = 0; slice < slices; slice++) log2[slice] = state->lanes_log2[slice];
    memcpy(place, state->first_place, slices * sizeof *place);
    memcpy(step, state->first_step, (slices + 1) * sizeof *step);
  } else {
    draft->failed = 1;
  }
  cb_draft_index(draft, "first_slice", "slices before those of a panel and a set", begin, 0, (int64_t)numbers + 1);
  cb_draft_index(draft, "lanes_log2", "logarithm of the lanes that share a segment", log2, 0, (int64_t)slices);
  cb_draft_index(draft, "first_place", "a slice's first place", place, 0, (int64_t)slices);
  cb_draft_index(draft, "first_step", "steps before a slice, 32 slots each", step, 1, (int64_t)slices + 1);
}

static void draft_places(struct cb_draft *draft, const struct state *state) {
  const size_t places = (size_t)whole(state).places;
  uint32_t *sum = cb_alloc(places, sizeof *sum), *count = cb_alloc(places, sizeof *count);
  if (sum && count) {
#pragma omp parallel for schedule(static)
    for (size_t place = 0; place < places; place++) {
      sum[place] = state->place_sum[place];
      count[place] = state->place_count[place];
    }
  } else {
    draft->failed = 1;
  }
  cb_draft_streamed(draft, "place_sum", "the panel's sum that the segment at a place belongs to", sum, 0, (int64_t)places);
  cb_draft_streamed(draft, "place_count", "nonzeros of the segment; 0: none", count, 0, (int64_t)places);
}

static void draft_sums(struct cb_draft *draft, const struct state *state) {
  const int64_t sums = state->first_sum[state->rows];
  uint32_t *first = cb_alloc((size_t)state->panels + 1, sizeof *first);
  uint32_t *rows = cb_alloc((size_t)sums, sizeof *rows);
  for (int64_t panel = 0; first && panel <= state->panels; panel++)
    first[panel] = state->first_sum[state->panel_row[panel]];
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < (rows ? state->rows : 0); i++)
    for (uint32_t sum = state->first_sum[i]; sum < state->first_sum[i + 1]; sum++)
      rows[sum] = (uint32_t)(sum == state->first_sum[i] ? state->row[i] : state->csr->rows);
  cb_draft_index(draft, "first_sum", "sums before a panel's", first, 0, state->panels + 1);
  cb_draft_index(draft, "sum_row", "the row of a sum; kRows: the same as before", rows, 0, sums);
}

static void draft_columns(struct cb_draft *draft, const struct state *state) {
  const int64_t most = state->sets * state->set;
  uint32_t *columns = cb_calloc((size_t)most, sizeof *columns);
#pragma omp parallel for schedule(static)
  for (int64_t column = 0; column < state->csr->cols; column++) {
    const uint32_t where = state->where[column];
    if (columns && where != NOWHERE) columns[set_of(where) * state->set + place_of(where)] = (uint32_t)column;
  }
  cb_draft_index(draft, "hot_column", "columns, set by set", columns, 0, state->columns);
}

static void draft_region(struct cb_draft *draft, const struct state *state) {
  const struct extent all = whole(state);
  const int split = state->first_sum[state->rows] > state->rows;
  cb_draft_fact(draft, "columns", "%lld", (long long)state->columns);
  cb_draft_fact(draft, "sets", "%lld %lld", (long long)state->sets, (long long)state->set);
  cb_draft_fact(draft, "rows", "%lld", (long long)state->rows);
  cb_draft_fact(draft, "segments", "%lld", (long long)all.places);
  cb_draft_fact(draft, "steps", "%lld", (long long)all.steps);
  draft_slots(draft, state);
  draft_slices(draft, state);
  draft_places(draft, state);
  draft_sums(draft, state);
  draft_columns(draft, state);
  cb_hot_draft_gather(draft, 0, state->columns);
  if (split) cb_draft_section(draft, "segments");
  if (!draft->value_bytes) cb_draft_section(draft, "constant");
  cb_draft_constant(draft, "kSums", state->most_sums, "plan: sums of a panel at most");
  cb_draft_constant(draft, "kSlices", all.slices, "plan: slices of 32 lanes");
  cb_draft_constant(draft, "kSet", state->set, "plan: entries of x in a set");
  cb_draft_constant(draft, "kSets", state->sets, "plan: phases");
  cb_draft_constant(draft, "kBatch", state->batch, "plan: steps whose loads are under way together");
  cb_draft_constant(draft, "kThreads", state->shape.threads, "plan: threads of a thread block");
  cb_draft_constant(draft, "kWarps", state->shape.threads / LANES, "their warps");
  draft->region.blocks = state->panels;
  draft->region.threads = state->shape.threads;
  draft->region.blocks_per_sm = (int)state->shape.per_sm;
  draft->region.dynamic_shared = (state->most_sums + state->set) * state->shape.element;
  draft->region.commit = draft->commit;
}

static void predict(struct cb_draft *draft, const struct state *state) {
  struct cb_cost *cost = &draft->region.cost;
  cost->sectors = state->panels * cb_divide_up(state->columns * state->shape.element, 32);
  cost->stream_percent = CB_COST_PHASES_PERCENT;
  cost->work_ns = whole(state).steps * LANES * CB_COST_PHASES_SLOT_PS / 1000 / draft->target->multiprocessors;
  cost->tail_ns = CB_COST_PHASES_COMMIT_NS + state->sets * CB_COST_PHASE_NS / state->shape.per_sm;
}

/* ---- the layout */

/* Two batches are in registers at a time, a place and a value for each step; more than there are would spill. */
static int choose_batch(const struct state *state, const struct cb_draft *draft) {
  enum { REGISTERS = 1 << 16, OTHERS = 34 };
  const int64_t words = 1 + (draft->value_bytes ? (int64_t)cb_type_size(draft->sum_type) / 4 : 0);
  const int64_t own = REGISTERS / (state->shape.threads * state->shape.per_sm) - OTHERS;
  const int64_t asked = draft->options->phase_batch, best = draft->value_bytes > 2 ? BATCH_WIDE : BATCH;
  return (int)cb_larger(1, cb_smaller(asked ? asked : best, own / (2 * words)));
}

static enum cb_status phases_plan(struct cb_draft *draft, struct cb_diag *diag) {
  const struct cb_csr *csr = draft->work.part.csr;
  const struct cb_options *options = draft->options;
  if (csr->rows > INT32_MAX / 2 || csr->cols > INT32_MAX / 2 || csr->nnz / 4 > INT32_MAX)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld rows, %lld columns, %lld nonzeros exceed the numbers of the layout phases",
                   (long long)csr->rows, (long long)csr->cols, (long long)csr->nnz);
  if (!csr->nnz) return cb_fail(diag, CB_ERR_UNSUPPORTED, "no column is hot: there are no nonzeros; use another recipe");
  struct state *state = cb_calloc(1, sizeof *state);
  if (!state) return cb_fail_memory(diag, "phases", sizeof *state);
  draft->work.state = state;
  state->csr = csr;
  state->shape = cb_phase_shape(draft->target, options);
  state->batch = choose_batch(state, draft);
  if (!collect_rows(state, draft->commit == CB_COMMIT_FINAL) || !cut_panels(state))
    return cb_fail_memory(diag, "panels", (uint64_t)csr->rows * 4);
  const enum cb_status s = choose_sets(state, options, diag);
  if (s) return s;
  if (!place_sums(state) || !cut_slices(state)) return cb_fail_memory(diag, "slices", (uint64_t)csr->nnz);
  if (whole(state).places > INT32_MAX - LANES || whole(state).slices > INT32_MAX / LANES - state->shape.panels * LANES)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld segments exceed the layout's int", (long long)whole(state).places);
  draft_region(draft, state);
  cb_free(state->counts);
  state->counts = NULL;
  predict(draft, state);
  return CB_OK;
}

static enum cb_status phases_pack(const struct cb_region *region, const struct cb_region_work *work,
                                  unsigned char *const *targets, const struct cb_slot_map *map, struct cb_diag *diag) {
  const struct state *state = work->state;
  const struct targets wanted = {
      .place = cb_late_find(region, targets, "entry_place"), .map = map, .part = &work->part};
  return visit_nonzeros(state, &wanted) ? CB_OK : cb_fail_memory(diag, "slots", (uint64_t)state->most_sums * 8);
}

/* Values and two bytes of place. */
static int64_t phases_least_ns(const struct cb_csr *csr, const struct cb_target *target, struct cb_types types) {
  const int64_t bytes = (int64_t)cb_type_size(types.matrix) + 2;
  return cb_plan_stream_ns(csr, target, types, bytes, CB_COST_PHASES_PERCENT) + CB_COST_PHASES_COMMIT_NS;
}

const struct cb_layout cb_layout_phases = {
    .name = "phases",
    .summary = "entries of x for frequent columns in shared memory, a set at a time",
    .source = "-",
    .plan = phases_plan,
    .pack = phases_pack,
    .release = state_release,
    .least_ns = phases_least_ns,
};
