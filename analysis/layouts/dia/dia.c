// SPDX-License-Identifier: Apache-2.0
/* Diagonals: the offsets of all diagonals that occur in the part are constants of the text, and there is no
 * index array. A warp takes a slice of 32 rows, a thread a row:
 *
 *   slot(row, d) = (row / 32 * diagonals + d) * 32 + row % 32
 *
 * so that a warp's loads of values are whole lines, a slice lies in one region of memory, and its loads of x
 * are 32 neighbours. Slices in which every row meets every diagonal within the matrix (inside) need no bounds
 * checks; those near the first and the last row or column (border) have them.
 *
 * A place of a diagonal that holds no nonzero is absent, and stored as 0. Where the matrix has absent places,
 * there are presence bits, one per slot: a row's sum that is not finite is summed again over the present ones
 * alone. A finite sum needs no second look: NaN or Inf times 0 is NaN, and NaN stays.
 *
 * Symmetric storage (plan/symmetry.h): where the stored diagonals are each other's mirror images, those above the main
 * diagonal have no slots. Row i reads its value on diagonal d > 0 where row i + d has it on diagonal -d: a second read,
 * from L1 where d is less than a thread block's rows, else from L2, which keeps what the nearer diagonals span. Where
 * there are rows enough, a thread has rows a stride apart, the last one first: as the farthest diagonals lie about a
 * stride away, what a row reads of them from its mirror images is what the thread block has read for its last rows, and
 * comes from L1, too. A row takes a diagonal below the main one and then its image above: rows read a value and its
 * second use at about the same time then, and from memory once.
 *
 * Several vectors: what counts is how often L2 is asked for X. So on grids a thread block has a rectangle of rows, and
 * of several planes one after the other (dia_lines.h).
 *
 * Fixed values: a diagonal whose values are all equal (even) has neither slots nor presence bits; its
 * coefficient is a constant of the text. Where such a diagonal has absent places (holed), a word of 32 bits
 * for each slice says which rows have an entry, and nothing is multiplied for the others. Without stored
 * diagonals a thread multiplies several rows: those a stride apart at which diagonals share what they read
 * of x, if the matrix has such a stride (dia_chains.h; then words are not needed either), else a thread
 * block's width apart, so that they find in L1 what their neighbours read.
 */
#include "analysis/layouts/dia/options.h"

#include "analysis/cost_figures.h"
#include "analysis/diagonals.h"
#include "analysis/layouts/dia/dia_chains.h"
#include "analysis/layouts/dia/dia_lines.h"
#include "analysis/plan/symmetry.h"
#include "analysis/values.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/real.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  ROWS = 32,
  WORD = 4,
  BLOCK_ROWS = 256,
  MOST_DIAGONALS = 1024,
  UNROLLED = 64,
  MOST_REPEATS = 4,
  FEW = 8
};

/* What a diagonal is; the text has them in this order. */
enum kind { EVEN, HOLED, STORED, KINDS };

struct state {
  struct cb_arena arena;
  const struct cb_csr *csr;
  int diagonals;
  int32_t offset[MOST_DIAGONALS]; /* ascending */
  int64_t holes[MOST_DIAGONALS];  /* absent places within the matrix */
  int64_t slices;
  int64_t absent, absent_stored;    /* places within the matrix; of stored diagonals */
  int64_t first_inside, end_inside; /* slices; none: both 0 */
  int count[KINDS];
  unsigned char kind[MOST_DIAGONALS];
  int order[MOST_DIAGONALS];          /* kind by kind, ascending: as the text has them */
  int place[MOST_DIAGONALS];          /* of each there */
  double coefficient[MOST_DIAGONALS]; /* unless STORED */
  int own;                            /* stored diagonals that have slots: all, or without those that are mirrored */
  int threads;                        /* of a thread block: rows that it has at a time */
  int repeats;                        /* rows of a thread */
  int words;                          /* of a slice, for its holed diagonals */
  struct cb_chains chains;            /* stride 0: not used */
  struct strides {                    /* rows of a thread that lie a stride apart, where values are mirrored */
    int64_t stride;                   /* a multiple of ROWS; 0: not used */
    int64_t tiles;                    /* thread blocks side by side along a stride */
    int64_t rows;                     /* of a thread */
    int64_t groups;                   /* of so many strides one after the other, each of `tiles` thread blocks */
  } strides;
  struct cb_lines lines;              /* for several vectors, of a grid: rectangles of rows */
};

static enum cb_status take_diagonals(struct state *state, const struct cb_diagonal *list, int64_t count,
                                     struct cb_diag *diag) {
  const struct cb_csr *csr = state->csr;
  if (!count)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "there are no nonzeros, so the dia layout has no diagonals; use another recipe");
  if (count > MOST_DIAGONALS)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld diagonals exceed the dia layout's %d; use another recipe",
                   (long long)count, MOST_DIAGONALS);
  for (int64_t d = 0; d < count; d++) {
    const int64_t offset = list[d].key - (csr->rows - 1);
    state->offset[d] = (int32_t)offset;
    state->holes[d] = cb_diagonal_length(csr, offset) - list[d].nonzeros;
    state->absent += state->holes[d];
  }
  state->diagonals = (int)count;
  return CB_OK;
}

/* Those that the split found, else all that occur. */
static enum cb_status find_diagonals(struct state *state, const struct cb_part *part, struct cb_diag *diag) {
  const struct cb_diagonal_set *found = cb_part_found(part, CB_FOUND_DIAGONALS);
  if (found) return take_diagonals(state, found->list, found->count, diag);
  int64_t count = 0;
  struct cb_diagonal *list;
  enum cb_status s = cb_diagonals_list(&list, &count, state->csr, 1, diag);
  if (!s) s = take_diagonals(state, list, count, diag);
  cb_free(list);
  return s;
}

/* ---- values: needs the diagonals; adds kinds and coefficients */

/* The bits of a row's values, by diagonal. Columns and offsets both ascend. */
static void widen_row(const struct state *state, const struct cb_region_builder *builder, int64_t row, uint64_t *least,
                      uint64_t *greatest) {
  const struct cb_csr *csr = state->csr;
  int d = 0;
  for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
    while (row + state->offset[d] != csr->col_idx[k]) d++;
    const double value =
        cb_real_round(builder->matrix_values[cb_part_origin(&builder->work.part, k)], builder->matrix_type);
    const uint64_t bits = cb_real_bits(value);
    if (bits < least[d]) least[d] = bits;
    if (bits > greatest[d]) greatest[d] = bits;
  }
}

/* Values of a diagonal are equal if the least and the greatest of their bits are. A coefficient must be a literal, and
 * no value may be refused when it is packed. */
static void find_even(struct state *state, const struct cb_region_builder *builder, unsigned char *even) {
  uint64_t least[MOST_DIAGONALS], greatest[MOST_DIAGONALS] = {0};
  const int count = state->diagonals;
  for (int d = 0; d < count; d++) least[d] = UINT64_MAX;
#pragma omp parallel for schedule(static) reduction(min : least[ : count]) reduction(max : greatest[ : count])
  for (int64_t row = 0; row < state->csr->rows; row++) widen_row(state, builder, row, least, greatest);
  for (int d = 0; d < count; d++) {
    memcpy(&state->coefficient[d], &least[d], sizeof state->coefficient[d]);
    even[d] = least[d] == greatest[d] && isfinite(state->coefficient[d]);
  }
}

static void sort_diagonals(struct state *state, const struct cb_region_builder *builder) {
  unsigned char even[MOST_DIAGONALS] = {0};
  if (builder->values && builder->values->distinct) /* fixed, and each value fits its type */
    find_even(state, builder, even);
  int next[KINDS] = {0};
  for (int d = 0; d < state->diagonals; d++) {
    state->kind[d] = !even[d] ? STORED : state->holes[d] ? HOLED : EVEN;
    state->count[state->kind[d]]++;
    if (!even[d] && cb_region_needs_presence(builder)) state->absent_stored += state->holes[d];
  }
  for (int kind = 1; kind < KINDS; kind++) next[kind] = next[kind - 1] + state->count[kind - 1];
  for (int d = 0; d < state->diagonals; d++) {
    state->place[d] = next[state->kind[d]]++;
    state->order[state->place[d]] = d;
  }
}

/* Those that have no slots stored: the first in the text's order. */
static int constants(const struct state *state) { return state->count[EVEN] + state->count[HOLED]; }

/* The offset of the stored diagonal `i`, which ascends. */
static int32_t stored_offset(const struct state *state, int i) {
  return state->offset[state->order[constants(state) + i]];
}

/* The stored diagonal at the place `i` of the text. Where they are mirrored, each is followed by its image: a row and
 * the one where the image lies read it at about the same time then, and the second of them finds it in L2. */
static int stored_at(const struct state *state, int i) {
  if (state->own == state->count[STORED]) return i;
  return i % 2 ? state->count[STORED] - 1 - i / 2 : i / 2;
}

static int is_mirrored(const struct state *state) { return state->own < state->count[STORED]; }

/* Those above the main diagonal are mirrored where all have their mirror images, in all of their places. */
static enum cb_status find_mirrored(struct state *state, const struct cb_region_builder *builder,
                                    struct cb_diag *diag) {
  const int stored = state->count[STORED];
  int mirrored;
  state->own = stored;
  for (int i = 0; i < stored; i++)
    if (stored_offset(state, i) != -stored_offset(state, stored - 1 - i)) return CB_OK;
  const enum cb_status s = cb_symmetry_of_part(&mirrored, builder->options, builder->target, &builder->work.part, diag);
  if (!s && mirrored) state->own = (int)cb_divide_up(stored, 2);
  return s;
}

/* Nonzeros of mirrored diagonals. */
static int64_t mirrored_nonzeros(const struct state *state) {
  int64_t nonzeros = 0;
  for (int i = state->own; i < state->count[STORED]; i++) {
    const int d = state->order[constants(state) + i];
    nonzeros += cb_diagonal_length(state->csr, state->offset[d]) - state->holes[d];
  }
  return nonzeros;
}

/* A last slice with fewer than 32 rows may be inside: the rows that it lacks are not computed. */
static void find_inside(struct state *state) {
  const struct cb_csr *csr = state->csr;
  const int64_t least = state->offset[0], most = state->offset[state->diagonals - 1];
  const int64_t end_row = cb_smaller(csr->rows, csr->cols - most);
  const int64_t first = cb_divide_up(cb_larger(-least, 0), ROWS);
  const int64_t end = end_row == csr->rows ? state->slices : end_row / ROWS;
  if (first >= end) return;
  state->first_inside = first;
  state->end_inside = end;
}

/* ---- the text */

/* Thread blocks that each multiprocessor gets at a time. When the whole matrix is one wave of few, its time
 * is the time of one thread, and registers are there to have more loads in flight: the launch says so, since
 * the compiler spares them otherwise. Streaming wants threads instead. */
static int64_t blocks_in_a_wave(const struct state *state, const struct cb_target *target) {
  enum { MANY = 9 };
  if (state->lines.line) return MANY; /* whatever the matrix's size: rectangles are for what streams */
  const int64_t blocks = cb_divide_up(state->csr->rows, BLOCK_ROWS);
  return cb_divide_up(blocks, target->multiprocessors);
}

/* Diagonals of `count` whose loads are in flight together: what a thread has registers for. */
static int choose_batch(int count, int64_t wave) {
  const int limit = wave <= 2 ? 32 : wave <= 4 ? 12 : 9;
  return (int)cb_divide_up(count, cb_divide_up(count, limit));
}

/* Adds an element of a table, in lines of twelve. */
static void add_element(struct cb_text *text, int number, int count, const char *element) {
  enum { PER_LINE = 12 };
  const int breaks = count > PER_LINE && number % PER_LINE == 0;
  cb_text_add(text, "%s%s%s", number ? "," : "", breaks ? "\n    " : number ? " " : "", element);
}

static void build_table(struct cb_region_builder *builder, const char *placeholder, const int64_t *elements,
                        int count) {
  struct cb_text text = {0};
  for (int i = 0; i < count; i++) {
    char element[24];
    snprintf(element, sizeof element, "%lld", (long long)elements[i]);
    add_element(&text, i, count, element);
  }
  cb_region_placeholder_text(builder, placeholder, &text);
}

/* Of `count` diagonals from `first` on, in the text's order. */
static void build_offsets(struct cb_region_builder *builder, const struct state *state, const char *placeholder,
                          int first, int count) {
  int64_t offsets[MOST_DIAGONALS];
  for (int i = 0; i < count; i++) offsets[i] = state->offset[state->order[first + i]];
  build_table(builder, placeholder, offsets, count);
}

/* Few enough are data of a family's kernel. */
static void build_stored_offsets(struct cb_region_builder *builder, const struct state *state) {
  const int stored = state->count[STORED];
  int64_t offsets[MOST_DIAGONALS];
  for (int i = 0; i < stored; i++) offsets[i] = stored_offset(state, stored_at(state, i));
  if (stored > CB_FAMILY_TABLE) {
    build_table(builder, "offsets", offsets, stored);
    return;
  }
  cb_region_table(builder, "offsets", "offset", offsets, stored);
  cb_region_family_with(builder, "offset_data");
}

static void build_coefficients(struct cb_region_builder *builder, const struct state *state) {
  struct cb_text text = {0};
  for (int i = 0; i < constants(state); i++) {
    char literal[CB_LITERAL];
    cb_literal(literal, state->coefficient[state->order[i]], builder->sum_type);
    add_element(&text, i, constants(state), literal);
  }
  cb_region_placeholder_text(builder, "coefficients", &text);
}

/* Words that one load reads; a slice has whole loads of them. */
static int words_vector(int holed) {
  return holed < 3 ? holed : 4;
}

/* Even and holed diagonals. */
static void build_even(struct cb_region_builder *builder, const struct state *state, int64_t wave, int inside,
                       int border) {
  const int even = state->count[EVEN], holed = state->count[HOLED];
  if (!even && !holed) return;
  cb_region_section(builder, "coefficients");
  build_offsets(builder, state, "even_offsets", 0, even + holed);
  build_coefficients(builder, state);
  if (even) {
    cb_region_size(builder, "kEven", even, "plan: diagonals of equal values, without holes");
    cb_region_structure(builder, "kEvenBatch", choose_batch(even, wave), "plan: of them, loads in flight together");
    cb_region_section(builder, "even");
    if (even % choose_batch(even, wave)) cb_region_section(builder, "even_rest");
    if (even > UNROLLED) cb_region_section(builder, "even_loop");
  }
  if (holed) {
    cb_region_size(builder, "kHoled", holed, "plan: diagonals of equal values, with holes");
    cb_region_section(builder, "holed");
    cb_region_size(builder, "kHoledWords", state->words, "plan: words of a slice in holes");
    cb_region_bytes(builder, "holes", "a word per slice and holed diagonal: bit i is set where row i has an entry",
                    state->slices * state->words * WORD);
  }
  if (inside && holed) {
    cb_region_structure(builder, "kHoledVector", words_vector(holed), "plan: words that one load reads");
    if (holed < state->words) cb_region_section(builder, "holed_rest");
    if (holed > UNROLLED) cb_region_section(builder, "holed_loop");
  }
  if (border) cb_region_section(builder, "even_border");
}

static void build_sums(struct cb_region_builder *builder, const struct state *state, int64_t wave) {
  const int some = state->first_inside < state->end_inside;
  const int from_first = state->first_inside == 0, to_last = state->end_inside == state->slices;
  const int all = some && from_first && to_last;
  if (some && !from_first)
    cb_region_size(builder, "kFirstInside", state->first_inside, "plan: slices before it need bounds checks");
  if (some && !to_last)
    cb_region_size(builder, "kEndInside", state->end_inside, "plan: slices from it on need bounds checks");
  build_even(builder, state, wave, some, !all || state->absent_stored);
  if (some) cb_region_section(builder, "inside");
  if (!all) cb_region_section(builder, "border");
  if (some && from_first) cb_region_section(builder, "from_first");
  if (some && to_last) cb_region_section(builder, "to_last");
  if (state->count[STORED] && state->absent_stored) cb_region_section(builder, "absent");
}

static void build_facts(struct cb_region_builder *builder, const struct state *state) {
  enum { LISTED = 16 };
  struct cb_text text = {0};
  cb_region_fact(builder, "diagonals", "%d", state->diagonals);
  for (int d = 0; d < state->diagonals && state->diagonals <= LISTED; d++)
    cb_text_add(&text, "%s%d", d ? " " : "", state->offset[d]);
  builder->failed |= text.failed;
  if (state->diagonals <= LISTED && !text.failed)
    cb_region_fact(builder, "offsets", "%s", cb_text_string(&text));
  else
    cb_region_fact(builder, "between", "%d %d", state->offset[0], state->offset[state->diagonals - 1]);
  cb_text_release(&text);
  cb_region_fact(builder, "inside", "%lld %lld", (long long)(state->end_inside - state->first_inside),
                 (long long)state->slices);
  cb_region_fact(builder, "absent", "%lld", (long long)state->absent);
  if (state->count[EVEN]) cb_region_fact(builder, "even", "%d", state->count[EVEN]);
  if (state->count[HOLED]) cb_region_fact(builder, "holed", "%d", state->count[HOLED]);
  if (is_mirrored(state))
    cb_region_fact(builder, cb_symmetry_section((enum cb_symmetry_option)builder->options->symmetric), "%d",
                   state->count[STORED] - state->own);
}

/* Arrays and constants of the stored diagonals. Places outside the matrix are multiplied by 0, absent ones by
 * x. */
static void build_slots(struct cb_region_builder *builder, const struct state *state, int64_t wave) {
  const int stored = state->count[STORED], batch = choose_batch(stored, wave);
  const int64_t slots = state->slices * state->own * ROWS;
  cb_region_size(builder, "kDiagonals", stored,
                 is_mirrored(state)           ? "plan: diagonals that values are read for"
                 : stored < state->diagonals ? "plan: the other diagonals, and stored values of a row"
                                             : "plan: diagonals, and values of a row");
  if (is_mirrored(state))
    cb_region_size(builder, "kStored", state->own, "plan: of them, not above the main diagonal: stored values of a row");
  cb_region_structure(builder, "kBatch", batch, "plan: diagonals whose loads are in flight together");
  cb_region_zero_slots(builder);
  cb_region_values(builder, "values", "per slice, diagonal and row", slots);
  if (state->absent_stored)
    cb_region_bytes(builder, "presence", "a bit per slot: it holds a nonzero", slots / 8);
  cb_region_section(builder, "stored");
  if (is_mirrored(state)) cb_region_section(builder, "mirrored");
  if (is_mirrored(state))
    cb_region_section(builder, cb_symmetry_section((enum cb_symmetry_option)builder->options->symmetric));
  builder->region.mirrored = mirrored_nonzeros(state);
  build_stored_offsets(builder, state);
  if (stored > UNROLLED) cb_region_section(builder, "stored_loop");
  if (stored % batch) cb_region_section(builder, "rest");
}

/* Rows of a thread: as many as leave `blocks` thread blocks of `threads` for each multiprocessor. */
static int rows_that_fill(const struct state *state, const struct cb_target *target, int threads, int blocks) {
  int rows = MOST_REPEATS;
  while (rows > 1 && state->csr->rows < (int64_t)threads * rows * blocks * target->multiprocessors) rows /= 2;
  return rows;
}

/* Several, unless values are streamed. */
static int choose_repeats(const struct state *state, const int64_t *settings,
                          const struct cb_target *target) {
  enum { RESIDENT = 6, WAVES = 4 };
  if (state->count[STORED]) return 1;
  return settings[DIA_ROWS] ? (int)settings[DIA_ROWS] : rows_that_fill(state, target, BLOCK_ROWS, RESIDENT * WAVES);
}

/* Of a thread block. Where values are mirrored, the more rows it has, the more of the second reads are from L1, as long
 * as there are thread blocks enough for several waves, and no other region could join, which has 256. Many diagonals
 * gain more by that than they lose by fewer thread blocks: 27 points take 112 us with 1024 threads, 120 with 512, but 7
 * points 145 and 132. */
static int choose_threads(const struct state *state, const struct cb_region_builder *builder) {
  enum { THREADS = 512, MANY_THREADS = 1024, MANY = 16, WAVE = 4 };
  const int64_t asked = builder->settings[DIA_THREADS];
  if (!is_mirrored(state) || builder->may_be_joined || builder->joins_rows) return BLOCK_ROWS;
  if (asked) return (int)asked;
  if (blocks_in_a_wave(state, builder->target) <= WAVE) return BLOCK_ROWS;
  return state->diagonals > MANY ? MANY_THREADS : THREADS;
}

/* ---- rows a stride apart, where values are mirrored: needs what is mirrored */

/* The farthest that a diagonal beyond `threads` may be from the stride for most of a thread block's rows to find their
 * mirror images' values among those of its last rows. */
static int is_near_stride(const struct state *state, int i, int64_t stride) {
  const int64_t apart = -stored_offset(state, i) - stride;
  return apart * 3 <= state->threads && apart * 3 >= -state->threads;
}

/* What speaks for a stride: the diagonals near it, and of as many how far they are away. */
struct merit {
  int64_t stride, apart;
  int near;
};

static struct merit merit_of(const struct state *state, int64_t stride) {
  struct merit merit = {.stride = stride};
  for (int i = 0; i < state->own && stride >= 2 * state->threads; i++) {
    if (!is_near_stride(state, i, stride)) continue;
    merit.near++;
    merit.apart += llabs((long long)-stored_offset(state, i) - stride);
  }
  return merit;
}

/* The multiple of a slice's rows that has the most diagonals near it, and these the nearest. 0: there is none. */
static int64_t best_stride(const struct state *state) {
  struct merit best = {0};
  for (int i = 0; i < state->own; i++)
    for (int up = 0; up < 2; up++) {
      const struct merit merit = merit_of(state, (-stored_offset(state, i) / ROWS + up) * ROWS);
      if (merit.near > best.near || (merit.near && merit.near == best.near && merit.apart < best.apart)) best = merit;
    }
  return best.stride;
}

/* Of threads so many, thread blocks that a multiprocessor holds: the more diagonals, the more registers. */
static int blocks_held(const struct state *state) {
  enum { RESIDENT = 1536, RESIDENT_MANY = 1024, MANY = 16 };
  return (state->diagonals > MANY ? RESIDENT_MANY : RESIDENT) / state->threads;
}

/* A thread's rows: as many as leave all thread blocks that the GPU holds at once something to do, and one wave of them;
 * or where one stride has more of them, several. */
static int64_t rows_at_strides(const struct state *state, const struct cb_region_builder *builder, int64_t strides) {
  enum { SEVERAL = 8 };
  const int64_t held = (int64_t)blocks_held(state) * builder->target->multiprocessors;
  const int64_t groups = held / state->strides.tiles;
  if (builder->settings[DIA_ROWS]) return builder->settings[DIA_ROWS];
  return groups ? cb_divide_up(strides, groups) : cb_smaller(strides, SEVERAL);
}

/* 27 points on 140^3 points take 85.2 us, where a row for each thread takes 102; 7 points on 220^3 points 124.7 and
 * 131.7. */
static void find_strides(struct state *state, const struct cb_region_builder *builder) {
  enum { THREADS = 768, MANY_THREADS = 896, MANY = 16, WAVE = 4, NONE = 1 };
  const int64_t asked = builder->settings[DIA_STRIDE], rows = state->csr->rows;
  if (!is_mirrored(state) || builder->may_be_joined || builder->joins_rows || asked == NONE) return;
  if (!asked && blocks_in_a_wave(state, builder->target) <= WAVE) return;
  struct state trial = *state;
  struct strides *strides = &trial.strides;
  if (!builder->settings[DIA_THREADS]) trial.threads = state->diagonals > MANY ? MANY_THREADS : THREADS;
  strides->stride = asked ? cb_round_up(asked, ROWS) : best_stride(&trial);
  if (!strides->stride) return;
  const int64_t count = cb_divide_up(rows, strides->stride);
  strides->tiles = cb_divide_up(strides->stride, trial.threads);
  strides->rows = rows_at_strides(&trial, builder, count);
  strides->groups = cb_divide_up(count, strides->rows);
  if (strides->rows > 1 && strides->groups * strides->rows * strides->stride <= INT32_MAX) *state = trial;
}

/* ---- lines of a grid, for several vectors: need what is mirrored */

/* Eight vectors in double precision: road-like 2000^2 170 to 161 us, 7 points on 160^3 points 210 to 197. What is small
 * lies in L2 in any order (100^3 points 52 and 53), and many diagonals take more time for their values. */
static void find_lines(struct state *state, const struct cb_region_builder *builder) {
  enum { NONE = 1, MANY = 16 };
  const int64_t asked = builder->settings[DIA_STRIDE], asked_rows = builder->settings[DIA_ROWS];
  const int64_t asked_threads = builder->settings[DIA_THREADS];
  const struct cb_lines_shape shape = {state->csr->rows, state->offset, state->diagonals};
  const struct cb_lines_wish wish = {.line = asked,
                                     .planes = asked_rows,
                                     .multiprocessors = builder->target->multiprocessors,
                                     .threads = asked_threads ? (int)asked_threads : BLOCK_ROWS};
  if (builder->options->vectors == 1 || !state->count[STORED] || is_mirrored(state) || asked == NONE) return;
  if (builder->may_be_joined || builder->joins_rows) return;
  const int64_t x_bytes = state->csr->cols * builder->options->vectors * (int64_t)cb_type_size(builder->vector_type);
  if (!asked && (state->diagonals > MANY || x_bytes < 2 * builder->target->l2_bytes)) return;
  cb_lines_find(&state->lines, &shape, &wish);
  if (state->lines.line) state->threads = wish.threads;
}

/* ---- chains of diagonals: need kinds and coefficients */

static struct cb_chain_shape chain_shape(const struct state *state) {
  return (struct cb_chain_shape){state->csr, state->offset, state->holes, state->diagonals};
}

/* Elements of x that a thread block reads of so many neighbouring rows: diagonals less than that apart share
 * L1's lines. */
static int64_t block_elements(const struct state *state, int64_t block_rows) {
  int64_t elements = 0, end = INT64_MIN;
  for (int d = 0; d < state->diagonals; d++) {
    const int64_t from = cb_larger(state->offset[d], end);
    end = state->offset[d] + block_rows;
    elements += end - from;
  }
  return elements;
}

/* Rows of a thread: the more, the less is read twice, but thread blocks enough for several waves. Measured on 2.7 M
 * rows: 27 points take 24 us with two rows, 18 us with four. */
static int choose_chain_rows(const struct state *state, const int64_t *settings,
                             const struct cb_target *target, int threads) {
  enum { BLOCKS = 8 }; /* for each multiprocessor */
  if (settings[DIA_ROWS]) return (int)cb_smaller(settings[DIA_ROWS], CB_CHAIN_ROWS);
  return settings[DIA_STRIDE] ? MOST_REPEATS : rows_that_fill(state, target, threads, BLOCKS);
}

/* Where nothing else is said: if it saves a good part of what neighbouring rows read, which costs no more
 * time on small matrices, and if no other region could join, which wants neighbouring rows. */
static void find_chains(struct state *state, const struct cb_region_builder *builder) {
  enum { PERCENT = 85, THREADS = 512, NONE = 1 };
  const int64_t *settings = builder->settings;
  const struct cb_chain_shape shape = chain_shape(state);
  const int64_t block_rows = BLOCK_ROWS * state->repeats;
  const int threads = settings[DIA_THREADS] ? (int)settings[DIA_THREADS] : THREADS;
  const struct cb_chain_wish wish = {
      .stride = settings[DIA_STRIDE],
      .elements = block_elements(state, block_rows) * PERCENT / 100,
      .of_rows = block_rows,
      .rows = choose_chain_rows(state, settings, builder->target, threads),
      .threads = threads,
  };
  if (state->count[STORED] || wish.rows < 2 || wish.stride == NONE || (!wish.stride && builder->may_be_joined)) return;
  cb_chains_find(&state->chains, &shape, &wish);
}

/* Which rows have entries on a chain's diagonals. */
static void build_conditions(struct cb_region_builder *builder, const struct cb_chains *chains) {
  int64_t period[CB_CONDITIONS], from[CB_CONDITIONS], to[CB_CONDITIONS], needs[CB_CHAINED];
  const int count = chains->conditions;
  if (!count) return;
  cb_region_section(builder, "conditions");
  for (int i = 0; i < count; i++) {
    period[i] = chains->condition[i].period;
    from[i] = chains->condition[i].from;
    to[i] = chains->condition[i].to;
  }
  for (int c = 0; c < chains->count; c++) needs[c] = chains->needs[c];
  cb_region_size(builder, "kConditions", count, "plan: conditions under which rows have entries");
  build_table(builder, "condition_periods", period, count);
  build_table(builder, "condition_from", from, count);
  build_table(builder, "condition_to", to, count);
  build_table(builder, "chain_conditions", needs, chains->count);
}

/* The most loads of a batch: so many chains that follow one another. */
static int most_loads(const struct cb_chains *chains, int batch) {
  int most = 0;
  for (int first = 0; first < chains->count; first += batch) {
    int loads = 0;
    for (int c = first; c < first + batch && c < chains->count; c++) loads += cb_chain_loads(chains, c);
    if (loads > most) most = loads;
  }
  return most;
}

/* Chains whose loads are in flight together, in as few batches as 64 registers have room for. */
static int chain_batch(const struct cb_chains *chains) {
  enum { LOADS_AND_SUMS = 28 }; /* of 8 bytes; the rest is for places */
  int batches = 1, batch = chains->count;
  while (batch > 1 && most_loads(chains, batch) + chains->rows > LOADS_AND_SUMS)
    batch = (int)cb_divide_up(chains->count, ++batches);
  return batch;
}

/* A line for each chain, as long as the longest. */
static void build_chain_coefficients(struct cb_region_builder *builder, const struct state *state) {
  const struct cb_chains *chains = &state->chains;
  struct cb_text text = {0};
  for (int c = 0; c < chains->count; c++) {
    cb_text_add_string(&text, c ? ",\n    {" : "{");
    for (int i = 0; i < chains->longest; i++) {
      char literal[CB_LITERAL] = "0";
      const int at = chains->begin[c] + i;
      if (at < chains->begin[c + 1])
        cb_literal(literal, state->coefficient[chains->diagonal[at]], builder->sum_type);
      cb_text_add(&text, "%s%s", i ? ", " : "", literal);
    }
    cb_text_add_string(&text, "}");
  }
  cb_region_placeholder_text(builder, "coefficients", &text);
}

static void build_chain_tables(struct cb_region_builder *builder, const struct state *state) {
  const struct cb_chains *chains = &state->chains;
  int64_t offset[CB_CHAINED], length[CB_CHAINED];
  for (int c = 0; c < chains->count; c++) {
    offset[c] = state->offset[chains->diagonal[chains->begin[c]]];
    length[c] = chains->begin[c + 1] - chains->begin[c];
  }
  cb_region_section(builder, "chains");
  build_table(builder, "chain_offsets", offset, chains->count);
  build_table(builder, "chain_lengths", length, chains->count);
  build_chain_coefficients(builder, state);
}

static void take_blocks(struct cb_region_builder *builder, int64_t blocks, int threads, int blocks_per_sm) {
  builder->region.blocks = blocks;
  builder->region.threads = threads;
  builder->region.blocks_per_sm = blocks_per_sm;
}

/* Threads that have a row or would have one: all of whole groups. */
static void build_chains(struct cb_region_builder *builder, const struct state *state) {
  enum { RESIDENT = 1024 }; /* threads of a multiprocessor, each with 64 registers */
  const struct cb_chains *chains = &state->chains;
  const int batch = chain_batch(chains);
  const int64_t rows = state->csr->rows, group = chains->rows * chains->stride;
  const int64_t threads = cb_divide_up(rows, group) * chains->stride;
  const int whole = rows % group == 0; /* groups */
  cb_region_fact(builder, "stride", "%lld", (long long)chains->stride);
  cb_region_structure(builder, "kThreads", chains->threads, "plan: threads of a thread block");
  cb_region_structure(builder, "kRepeats", chains->rows, "plan: rows of a thread");
  cb_region_size(builder, "kStride", chains->stride, "plan: from one of them to the next");
  cb_region_size(builder, "kChains", chains->count, "plan: chains of diagonals so far apart");
  cb_region_structure(builder, "kLongest", chains->longest, "plan: diagonals of a chain at most");
  cb_region_structure(builder, "kChainBatch", batch, "plan: chains whose loads are in flight together");
  build_chain_tables(builder, state);
  build_conditions(builder, chains);
  if (chains->count % batch) cb_region_section(builder, "rest");
  if (whole) cb_region_section(builder, "whole_groups");
  if (whole && threads % chains->threads) cb_region_section(builder, "guard");
  take_blocks(builder, cb_divide_up(threads, chains->threads), chains->threads, RESIDENT / chains->threads);
  builder->region.thread_rows = chains->rows;
}

/* ---- the region */

/* Thread blocks of rows a stride apart. Where another one works meanwhile, a thread block's warps wait for each other
 * at each row: 7 points on 220^3 points take 119.3 us, 124.0 without, 5 points on 3000^2 88.6 and 90.0; but 27 points
 * on 100^3, of one thread block on a multiprocessor, 36.4 and 32.8. */
static void build_strides(struct cb_region_builder *builder, const struct state *state) {
  const struct strides *strides = &state->strides;
  cb_region_fact(builder, "stride", "%lld", (long long)strides->stride);
  cb_region_structure(builder, "kThreads", state->threads, "plan: threads of a thread block");
  cb_region_size(builder, "kStride", strides->stride, "plan: from one row of a thread to the next");
  cb_region_size(builder, "kRepeats", strides->rows, "plan: rows of a thread");
  cb_region_size(builder, "kTiles", strides->tiles, "plan: thread blocks along a stride");
  cb_region_section(builder, "wide");
  cb_region_section(builder, "strided");
  if (blocks_held(state) > 1) cb_region_section(builder, "in_step");
  build_sums(builder, state, blocks_in_a_wave(state, builder->target));
  take_blocks(builder, strides->groups * strides->tiles, state->threads, blocks_held(state));
}

/* Rectangles of rows, of which few diagonals leave room for more. */
static void build_lines(struct cb_region_builder *builder, const struct state *state) {
  enum { RESIDENT = 1536, FEW_DIAGONALS = 4 };
  cb_lines_build(builder, &state->lines, state->threads);
  build_sums(builder, state, blocks_in_a_wave(state, builder->target));
  take_blocks(builder, state->lines.tiles * state->lines.groups, state->threads, RESIDENT / state->threads);
  if (state->diagonals <= FEW_DIAGONALS) builder->region.several_blocks = builder->region.blocks_per_sm;
}

static void build_rows(struct cb_region_builder *builder, const struct state *state) {
  enum { RESIDENT = 1536 }; /* threads of a multiprocessor that streams: each has 40 registers, as in sell */
  const int64_t rows = state->csr->rows, block_rows = state->threads * state->repeats;
  const int64_t wave = blocks_in_a_wave(state, builder->target);
  const int stored = state->count[STORED];
  build_sums(builder, state, wave);
  if (rows % block_rows) cb_region_section(builder, "guard");
  if (state->repeats > 1) cb_region_structure(builder, "kRepeats", state->repeats, "plan: rows of a thread");
  if (state->repeats > 1) cb_region_section(builder, "repeats");
  builder->region.blocks = cb_divide_up(rows, block_rows);
  builder->region.block_rows = block_rows;
  if (state->threads != BLOCK_ROWS) {
    cb_region_structure(builder, "kThreads", state->threads, "plan: threads of a thread block");
    cb_region_section(builder, "wide");
    builder->region.threads = state->threads;
    builder->region.blocks_per_sm = cb_region_blocks_for(builder, RESIDENT / state->threads);
    return;
  }
  /* 32 registers are enough where few diagonals are loaded, and none of values */
  builder->region.blocks_per_sm =
      cb_region_blocks_for(builder, wave <= 4 ? (int)wave : stored || state->diagonals > FEW ? 6 : 8);
}

/* Diagonals whose loads are in flight together: few steps of it. */
static int family_batch(int batch) {
  static const int steps[] = {3, 5, 7, 9, 12, 16, 24};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
    if (batch <= steps[i]) return steps[i];
  return 32;
}

/* One text for all numbers of stored diagonals, and wherever they leave the matrix. */
static void build_family(struct cb_region_builder *builder, const struct state *state) {
  static const char *const with[] = {"sized", "stored_loop", "rest", "inside", "border", "guard"};
  const int64_t wave = blocks_in_a_wave(state, builder->target);
  const int stored = state->count[STORED];
  if (constants(state)) return;
  for (size_t i = 0; i < sizeof with / sizeof *with; i++) cb_region_family_with(builder, with[i]);
  cb_region_family_without(builder, "from_first");
  cb_region_family_without(builder, "to_last");
  cb_region_family_size(builder, "kFirstInside", state->first_inside);
  cb_region_family_size(builder, "kEndInside", state->end_inside);
  cb_region_family_structure(builder, "kBatch", family_batch(choose_batch(stored, wave)),
                             "family: diagonals whose loads are in flight together");
  if (state->threads == BLOCK_ROWS) builder->region.family.blocks_per_sm = wave <= 2 ? 2 : wave <= 4 ? 4 : 6;
}

static void build_region(struct cb_region_builder *builder, const struct state *state) {
  enum { REGISTERS = 10 }; /* beside values, entries of X and sums: as compiled */
  const int stored = state->count[STORED];
  const int batch = stored ? choose_batch(stored, blocks_in_a_wave(state, builder->target)) : 0;
  build_facts(builder, state);
  if (stored) build_slots(builder, state, blocks_in_a_wave(state, builder->target));
  cb_region_constant_slots(builder, state->slices * constants(state) * ROWS);
  if (state->chains.stride)
    build_chains(builder, state);
  else if (state->strides.stride)
    build_strides(builder, state);
  else if (state->lines.line)
    build_lines(builder, state);
  else
    build_rows(builder, state);
  builder->region.row_threads = !state->chains.stride;
  builder->region.takes_vectors = builder->region.most_lanes = 1;
  builder->region.steps = (struct cb_steps){.steps = cb_divide_up(state->csr->rows, 32) * state->diagonals,
                                            .loads = 1,
                                            .columns = 1,
                                            .neighbours = 1,
                                            .values = batch,
                                            .entries = batch,
                                            .registers = REGISTERS};
  build_family(builder, state);
}

/* Batches of loads that a thread waits for, one after the other, in each of its rows. */
static int64_t rounds(const struct state *state, const struct cb_target *target) {
  const int64_t wave = blocks_in_a_wave(state, target);
  const int even = state->count[EVEN], stored = state->count[STORED];
  int64_t batches = state->words ? state->words / words_vector(state->count[HOLED]) : 0;
  if (even) batches += (even - 1) / choose_batch(even, wave) + 1;
  if (stored) batches += (stored - 1) / choose_batch(stored, wave) + 1;
  return batches;
}

/* Loads of x for all rows. */
static int64_t loads_of_x(const struct state *state) {
  const struct cb_chains *chains = &state->chains;
  if (!chains->stride) return state->csr->rows * state->diagonals;
  return state->csr->rows * most_loads(chains, chains->count) / chains->rows;
}

/* Values that a thread block reads for each of its threads' rows where others are mirrored: each of its own, and those
 * of rows of others. */
static int64_t block_values(const struct state *state) {
  int64_t values = (int64_t)state->own * state->threads;
  for (int i = 0; i < state->own; i++) {
    const int64_t apart = -stored_offset(state, i), from_stride = llabs((long long)(apart - state->strides.stride));
    values += cb_smaller(cb_smaller(apart, state->strides.stride ? from_stride : apart), state->threads);
  }
  return values;
}

/* Sectors of x: what a thread block reads of it once. Those of neighbouring threads come in whole lines, of which L2
 * gives about twice as many sectors a second as of scattered ones, whose rate the prediction knows. Without stored
 * values half of the traffic is writing, as in a copy. Mirrored values are read twice, once from memory and once from
 * L2, whose rate then bounds the product as memory's does: all that comes from it counts. (A kernel for 7 and 27 points
 * whose thread blocks had 256 rows took 136 and 103 us, which is 8.0 and 7.3 TB/s of such traffic.) */
static void predict(struct cb_region_builder *builder, const struct state *state) {
  enum { WHOLE_LINES = 2 };
  const struct cb_chains *chains = &state->chains;
  const struct cb_chain_shape shape = chain_shape(state);
  const int64_t elements = chains->stride      ? cb_chains_elements(chains, &shape)
                           : state->lines.line ? cb_lines_elements(&state->lines)
                                               : block_elements(state, state->threads * state->repeats);
  const int64_t values = is_mirrored(state) ? block_values(state) * builder->value_bytes : 0;
  const int64_t bytes = elements * (int64_t)cb_type_size(builder->vector_type) + values;
  const int64_t rows = state->strides.stride ? state->strides.rows : 1; /* of a thread, one after the other */
  const int64_t planes = state->lines.line ? state->lines.repeats : 1;  /* whose elements are counted at once */
  const int64_t batches = chains->stride ? cb_divide_up(chains->count, chain_batch(chains))
                                         : rows * planes * state->repeats * rounds(state, builder->target);
  builder->region.cost.sectors = builder->region.blocks * rows * cb_divide_up(bytes, 32 * WHOLE_LINES);
  builder->region.cost.chain_ns = batches * CB_COST_BATCH_NS;
  builder->region.cost.work_ns = loads_of_x(state) * CB_COST_DIA_LOAD_PS / builder->target->multiprocessors / 1000;
  builder->region.cost.stream_percent = state->count[STORED] ? CB_COST_DIA_PERCENT : CB_COST_DIA_COPYING_PERCENT;
}

static enum cb_status dia_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  const struct cb_csr *csr = builder->work.part.csr;
  enum cb_status s = cb_region_state(builder, sizeof(struct state), diag);
  struct state *state = builder->work.state;
  if (s) return s;
  state->csr = csr;
  state->slices = cb_divide_up(csr->rows, ROWS);
  s = find_diagonals(state, &builder->work.part, diag);
  if (s) return s;
  sort_diagonals(state, builder);
  s = find_mirrored(state, builder, diag);
  if (s) return s;
  find_inside(state);
  const int holed = state->count[HOLED];
  state->words = holed ? cb_round_up(holed, words_vector(holed)) : 0;
  state->repeats = choose_repeats(state, builder->settings, builder->target);
  state->threads = choose_threads(state, builder);
  find_strides(state, builder);
  find_lines(state, builder);
  find_chains(state, builder);
  builder->work.units = state->slices;
  build_region(builder, state);
  predict(builder, state);
  return CB_OK;
}

/* ---- the visit */

/* Bits of slots: of the stored diagonals, and of the holed ones. NULL: there are none, or they are not
 * wanted. */
struct bits {
  unsigned char *presence, *holes;
};

static void set_bit(unsigned char *bits, int64_t slot) {
  if (bits) bits[slot / 8] |= (unsigned char)(1 << slot % 8);
}

/* Slot of a row among `count` diagonals of each slice. */
static int64_t slot_of(int64_t row, int count, int place) {
  return (row / ROWS * count + place) * ROWS + row % ROWS;
}

/* Columns and offsets both ascend. */
static void visit_row(const struct state *state, int64_t row, const struct bits *bits, const struct cb_walk *walk) {
  const struct cb_csr *csr = state->csr;
  const int own = state->own, constant = constants(state);
  int d = 0;
  for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
    while (row + state->offset[d] != csr->col_idx[k]) d++;
    const int place = state->place[d];
    int64_t slot;
    if (state->kind[d] == STORED && place - constant >= own) {
      slot = slot_of(csr->col_idx[k], own, state->count[STORED] - 1 - (place - constant));
      cb_emit_mirrored(walk, slot, k);
      continue;
    }
    if (state->kind[d] == STORED) {
      slot = slot_of(row, own, place - constant);
      set_bit(bits->presence, slot);
    } else {
      slot = state->slices * own * ROWS + slot_of(row, constant, place);
      if (state->kind[d] == HOLED) set_bit(bits->holes, slot_of(row, state->words, place - state->count[EVEN]));
    }
    cb_emit_nonzero(walk, slot, k);
  }
}

/* No byte of presence bits belongs to two slices. */
static int dia_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *walk) {
  const struct state *state = user;
  const struct bits bits = {cb_walk_bytes(walk, "presence"), cb_walk_bytes(walk, "holes")};
  for (int64_t row = first * ROWS; row < cb_smaller(end * ROWS, state->csr->rows); row++)
    visit_row(state, row, &bits, walk);
  return 1;
}

/* For reports: of a stride, where a thread block has no rows of its own in a row. */
static int64_t block_of(const void *user, struct cb_met met) {
  const struct state *state = user;
  const struct cb_chains *chains = &state->chains;
  const struct strides *strides = &state->strides;
  if (strides->stride)
    return met.row / (strides->rows * strides->stride) * strides->tiles + met.row % strides->stride / state->threads;
  if (state->lines.line) return cb_lines_block(&state->lines, met.row);
  const int64_t group = chains->rows * chains->stride;
  return (met.row / group * chains->stride + met.row % chains->stride) / chains->threads;
}

/* ---- packing on the device: templates/pack_dia.cu.in has the same numbers and lists. Values are not fixed there, so
 * all diagonals are stored. */

static void describe(const void *user, struct cb_pack_lists *lists) {
  enum { SLICES, DIAGONALS, NUMBER_OF_ROWS };
  const struct state *state = user;
  const int64_t diagonals = state->diagonals;
  *lists = (struct cb_pack_lists){
      .numbers = {[SLICES] = state->slices, [DIAGONALS] = diagonals, [NUMBER_OF_ROWS] = state->csr->rows},
      .lists = {{state->offset, diagonals * (int64_t)sizeof *state->offset}},
      .warps = state->slices,
      .shape_bytes = state->slices * diagonals * WORD,
      .bytes_array = "presence",
  };
}

const struct cb_layout cb_layout_dia = {
    .name = "dia",
    .summary = "diagonals with offsets in the text, no indices",
    .source = "-",
    .options = cb_dia_options,
    .options_count = DIA_OPTIONS,
    .recipes = cb_dia_recipes,
    .plan = dia_plan,
    .has_family = 1,
    .visit = dia_visit,
    .describe = describe,
    .ignores_rows = 1,
    .unit = "slice",
    .block_of = block_of,
    .most_rows = INT32_MAX - 8192, /* those of a whole thread block included */
};
