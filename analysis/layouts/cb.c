// SPDX-License-Identifier: Apache-2.0
/* CB-SpMV: panels of 16 rows cut into 16×16 sub-blocks, with column aggregation, a format per sub-block (COO, CSR,
 * Dense), intra-block data aggregation and load balance. After the CB-SpMV paper, with what a generator adds:
 * formats that do not occur leave no text, sub-blocks are grouped by format so that no type is stored, and a
 * panel that one team of warps owns needs neither atomics nor carries.
 *
 * How to read it: cb_layout_plan at the end calls the passes in order. Each states what it needs and adds.
 *
 * Terms. A block is a sub-block here. Blocks have a natural number (panel by panel, left to right) and a position
 * (the order in which they are stored: unit by unit, within a unit COO first, then CSR, then Dense). A unit is
 * what one team of warps multiplies: a panel, a run of a panel's blocks, or nothing (padding).
 *
 * Deviations from the paper, in favour of fewer bytes and loads: restore_cols is stored in the order of positions
 * and padded to 16 columns per sub-block, so that cols_offset is arithmetic; its entries are offsets from the
 * sub-block's first column (blk_col_idx), so that they mostly fit 8 or 16 bits.
 */
#include "analysis/layout.h"
#include "analysis/panels.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum format { COO, CSR, DENSE, FORMATS };
enum {
  WARPS = 8,
  DENSE_PRESENCE = 32,
  CSR_STARTS = 16,
  DENSE_ALIGN = 16,
  BLOCK_WEIGHT = 8, /* finding a block costs about as much as 8 products */
  MOST_PARTS = 64   /* units of one panel: its last unit adds up their sums alone */
};

static const char *const format_names[FORMATS] = {"coo", "csr", "dense"};

struct unit {
  uint32_t panel;
  uint32_t first, count;    /* of `order` (or natural numbers, when there is no order) */
  uint32_t formats[FORMATS]; /* blocks per format */
};

struct state {
  int64_t panels, blocks;
  int aggregated, intra, th1, th2;
  int equal; /* values: there is no array, but slots of one "byte" for the slot map */
  int64_t value_bytes, vector_bytes;
  /* by panel */
  int64_t *panel_block; /* panels + 1: natural number of its first block */
  /* by natural number */
  uint16_t *nonzeros;
  uint32_t *first_column; /* of the matrix */
  uint32_t *place;        /* position */
  /* by position: where coordinates and values start, in bytes and in values (intra: of mtx_data) */
  uint64_t *coordinates, *values;
  int64_t coordinates_end, values_end;
  /* units */
  struct unit *units;
  int64_t units_count, units_capacity;
  uint32_t *order; /* heap balance: natural numbers in the order dealt; else NULL */
  int team;
  int64_t format_blocks[FORMATS], largest_coo, sectors;
  int full_dense;  /* every Dense block has all 256 nonzeros: no presence bits */
};

static enum format format_of(const struct state *state, int nonzeros) {
  if (nonzeros < state->th1) return COO;
  return nonzeros > state->th2 ? DENSE : CSR;
}

static int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

static void state_release(void *memory) {
  struct state *state = memory;
  if (!state) return;
  void *const blocks[] = {state->panel_block, state->nonzeros, state->first_column, state->place,
                          state->coordinates, state->values,   state->units,        state->order};
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) cb_free(blocks[i]);
  cb_free(state);
}

/* ---- counting: needs the part; adds aggregated, panel_block, blocks */

/* Blocks per panel into panel_block[panel + 1]; returns how many blocks have fewer than `super_sparse` nonzeros. */
static int64_t count_blocks(struct state *state, const struct cb_csr *csr, int aggregated, int super_sparse) {
  int64_t sparse = 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : sparse)
  for (int64_t panel = 0; panel < state->panels; panel++) {
    struct cb_panel_walk walk;
    struct cb_subblock block;
    int64_t blocks = 0;
    cb_panel_open(&walk, csr, panel);
    for (; cb_panel_next(&walk, aggregated, &block); blocks++) sparse += block.nonzeros < super_sparse;
    state->panel_block[panel + 1] = blocks;
  }
  for (int64_t panel = 0; panel < state->panels; panel++)
    state->panel_block[panel + 1] += state->panel_block[panel];
  state->blocks = state->panel_block[state->panels];
  return sparse;
}

static enum cb_status decide_aggregation(struct state *state, const struct cb_csr *csr,
                                         const struct cb_options *options, struct cb_diag *diag) {
  state->panel_block = cb_calloc((size_t)state->panels + 1, sizeof *state->panel_block);
  if (!state->panel_block) return cb_fail_memory(diag, "panels", (uint64_t)state->panels * 8);
  state->aggregated = options->aggregate == CB_ON;
  const int64_t sparse = count_blocks(state, csr, state->aggregated, (int)options->super_sparse);
  if (options->aggregate == CB_AUTO && sparse * 100 > options->th0_percent * state->blocks) {
    state->aggregated = 1;
    count_blocks(state, csr, 1, (int)options->super_sparse);
  }
  if (state->blocks > INT32_MAX)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld sub-blocks exceed the cb layout's 2147483647",
                   (long long)state->blocks);
  return CB_OK;
}

/* ---- describing: needs panel_block; adds nonzeros and first_column of each block, sectors of x */

static int sectors_of(const struct cb_subblock *block, int64_t vector_bytes, int64_t cols) {
  const int64_t per_sector = 32 / vector_bytes;
  int64_t previous = -1;
  int sectors = 0;
  for (int c = 0; c < block->width && block->columns[c] < cols; c++) {
    sectors += block->columns[c] / per_sector != previous;
    previous = block->columns[c] / per_sector;
  }
  return sectors;
}

/* A few COO blocks cost every thread block the shared memory and registers of their text: below a share of the
 * nonzeros they become CSR. */
static void drop_sparse_format(struct state *state, int64_t nnz, int64_t percent) {
  int64_t sparse = 0;
  for (int64_t b = 0; b < state->blocks; b++) sparse += state->nonzeros[b] < state->th1 ? state->nonzeros[b] : 0;
  if (sparse * 100 < percent * nnz) state->th1 = 0;
}

static enum cb_status describe_blocks(struct state *state, const struct cb_csr *csr, int64_t coo_percent,
                                      struct cb_diag *diag) {
  state->nonzeros = cb_alloc((size_t)state->blocks, sizeof *state->nonzeros);
  state->first_column = cb_alloc((size_t)state->blocks, sizeof *state->first_column);
  if (!state->nonzeros || !state->first_column)
    return cb_fail_memory(diag, "sub-blocks", (uint64_t)state->blocks * 6);
  int64_t sectors = 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : sectors)
  for (int64_t panel = 0; panel < state->panels; panel++) {
    struct cb_panel_walk walk;
    struct cb_subblock block;
    int64_t b = state->panel_block[panel];
    cb_panel_open(&walk, csr, panel);
    for (; cb_panel_next(&walk, state->aggregated, &block); b++) {
      state->nonzeros[b] = (uint16_t)block.nonzeros;
      state->first_column[b] = (uint32_t)block.columns[0];
      sectors += sectors_of(&block, state->vector_bytes, csr->cols);
    }
  }
  state->sectors = sectors;
  drop_sparse_format(state, csr->nnz, coo_percent);
  for (int64_t b = 0; b < state->blocks; b++) {
    const int nonzeros = state->nonzeros[b];
    const enum format format = format_of(state, nonzeros);
    state->format_blocks[format]++;
    if (format == COO && nonzeros > state->largest_coo) state->largest_coo = nonzeros;
    if (format == DENSE && nonzeros < CB_BLOCK_SIZE) state->full_dense = 0;
  }
  return CB_OK;
}

/* ---- balancing: needs nonzeros per block; adds units (and order) */

static int add_unit(struct state *state, int64_t panel, int64_t first, int64_t count) {
  if (state->units_count == state->units_capacity) {
    const int64_t capacity = state->units_capacity ? state->units_capacity * 2 : 1024;
    struct unit *units = cb_realloc(state->units, (size_t)capacity, sizeof *units);
    if (!units) return 0;
    state->units = units;
    state->units_capacity = capacity;
  }
  state->units[state->units_count++] =
      (struct unit){.panel = (uint32_t)panel, .first = (uint32_t)first, .count = (uint32_t)count};
  return 1;
}

/* Work of a block, in nonzeros. */
static int64_t weight_of(const struct state *state, int64_t block) {
  return state->nonzeros[block] + BLOCK_WEIGHT;
}

/* Contiguous: a unit is a panel; a panel over the budget is cut into runs of about equal weight. */
static int balance_contiguous(struct state *state, int64_t budget, int every_panel) {
  for (int64_t panel = 0; panel < state->panels; panel++) {
    const int64_t begin = state->panel_block[panel], end = state->panel_block[panel + 1];
    int64_t weight = 0;
    for (int64_t b = begin; b < end; b++) weight += weight_of(state, b);
    int64_t parts = weight > budget ? (weight + budget - 1) / budget : 1;
    if (parts > MOST_PARTS) parts = MOST_PARTS;
    int64_t first = begin, done = 0, part = 1;
    for (int64_t b = begin; b < end && part < parts; b++) {
      done += weight_of(state, b);
      if (done * parts < weight * part) continue;
      if (!add_unit(state, panel, first, b + 1 - first)) return 0;
      first = b + 1;
      part++;
    }
    if ((first < end || (begin == end && every_panel)) && !add_unit(state, panel, first, end - first)) return 0;
  }
  return 1;
}

/* A binary min-heap of thread blocks by (load, number). */
struct load {
  int64_t load;
  uint32_t block, slots;
};

static int lighter(const struct load *a, const struct load *b) {
  return a->load != b->load ? a->load < b->load : a->block < b->block;
}

static void sift_down(struct load *heap, int64_t count, int64_t at) {
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) return;
    if (child + 1 < count && lighter(&heap[child + 1], &heap[child])) child++;
    if (!lighter(&heap[child], &heap[at])) return;
    const struct load swap = heap[at];
    heap[at] = heap[child];
    heap[child] = swap;
    at = child;
  }
}

/* Natural numbers by descending nonzeros, stable: counting sort over 256 keys. */
static void sort_by_nonzeros(const struct state *state, uint32_t *sorted) {
  int64_t start[CB_BLOCK_SIZE + 2] = {0};
  for (int64_t b = 0; b < state->blocks; b++) start[CB_BLOCK_SIZE - state->nonzeros[b] + 1]++;
  for (int key = 0; key <= CB_BLOCK_SIZE; key++) start[key + 1] += start[key];
  for (int64_t b = 0; b < state->blocks; b++)
    sorted[start[CB_BLOCK_SIZE - state->nonzeros[b]]++] = (uint32_t)b;
}

/* Deals the sorted blocks to thread blocks: each to the lightest that has one of its 8 slots free (Alg. 2 of the
 * paper). Thread block t's blocks end up at order[8 t …]; unused places hold UINT32_MAX. */
static void deal(const struct state *state, const uint32_t *sorted, struct load *heap, int64_t thread_blocks,
                 uint32_t *order) {
  for (int64_t t = 0; t < thread_blocks; t++) heap[t] = (struct load){0, (uint32_t)t, 0};
  for (int64_t i = 0; i < thread_blocks * WARPS; i++) order[i] = UINT32_MAX;
  int64_t open = thread_blocks;
  for (int64_t i = 0; i < state->blocks; i++) {
    struct load *least = &heap[0];
    order[(int64_t)least->block * WARPS + least->slots++] = sorted[i];
    least->load += state->nonzeros[sorted[i]];
    if (least->slots == WARPS) *least = heap[--open];
    sift_down(heap, open, 0);
  }
}

/* Panel of a block: the last one that does not start behind it. */
static int64_t panel_of(const struct state *state, int64_t block) {
  int64_t low = 0, high = state->panels - 1;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (state->panel_block[middle] <= block) low = middle;
    else high = middle - 1;
  }
  return low;
}

static int heap_units(struct state *state, int64_t thread_blocks, int every_panel) {
  for (int64_t i = 0; i < thread_blocks * WARPS; i++) {
    const int used = state->order[i] != UINT32_MAX;
    const int64_t panel = used ? panel_of(state, state->order[i]) : state->panels;
    if (!add_unit(state, panel, i, used)) return 0;
  }
  for (int64_t panel = 0; every_panel && panel < state->panels; panel++) /* rows without nonzeros, too */
    if (state->panel_block[panel] == state->panel_block[panel + 1] && !add_unit(state, panel, 0, 0)) return 0;
  return 1;
}

static int balance_heap(struct state *state, int every_panel) {
  const int64_t thread_blocks = (state->blocks + WARPS - 1) / WARPS;
  uint32_t *sorted = cb_alloc((size_t)state->blocks, sizeof *sorted);
  struct load *heap = cb_alloc((size_t)thread_blocks, sizeof *heap);
  state->order = cb_alloc((size_t)(thread_blocks * WARPS), sizeof *state->order);
  int good = sorted && heap && state->order;
  if (good) {
    sort_by_nonzeros(state, sorted);
    deal(state, sorted, heap, thread_blocks, state->order);
    good = heap_units(state, thread_blocks, every_panel);
  }
  cb_free(sorted);
  cb_free(heap);
  return good;
}

/* Warps per unit: enough that every multiprocessor has 16 warps, no more than a panel has blocks. */
static int choose_team(const struct state *state, const struct cb_options *options,
                       const struct cb_target *target) {
  if (options->balance == CB_BALANCE_HEAP) return 1;
  if (options->team) return (int)options->team;
  int team = 1;
  while (team < WARPS && state->panels * team < 16 * (int64_t)target->multiprocessors &&
         state->blocks >= 2 * team * state->panels)
    team *= 2;
  return team;
}

/* A panel heavier than this is shared by several units: twice the mean panel, or an even share for a machine with
 * 8 teams per multiprocessor if that is less, but never less than what makes the carry worth its cost. */
static int64_t choose_budget(const struct state *state, const struct cb_csr *csr,
                             const struct cb_options *options, const struct cb_target *target) {
  if (options->unit_budget) return options->unit_budget;
  const int64_t weight = csr->nnz + BLOCK_WEIGHT * state->blocks;
  const int64_t mean = weight / (state->panels ? state->panels : 1);
  const int64_t share = weight * state->team / (8 * (int64_t)target->multiprocessors);
  const int64_t wanted = 2 * mean < share ? 2 * mean : share;
  const int64_t least = 512 * (int64_t)state->team;
  return wanted > least ? wanted : least;
}

static enum cb_status balance(struct state *state, const struct cb_draft *draft, struct cb_diag *diag) {
  const struct cb_options *options = draft->options;
  const struct cb_csr *csr = draft->work.part.csr;
  const int every_panel = draft->commit == CB_COMMIT_FINAL; /* empty panels, too: their rows are written */
  state->team = choose_team(state, options, draft->target);
  const int good = options->balance == CB_BALANCE_HEAP
                       ? balance_heap(state, every_panel)
                       : balance_contiguous(state, choose_budget(state, csr, options, draft->target), every_panel);
  /* Whole thread blocks: padding units lie behind the last panel, where no row is. */
  const int64_t units_per_block = WARPS / state->team;
  const int64_t padded = round_up(state->units_count, units_per_block);
  const int64_t padding = padded - state->units_count;
  int added = good;
  for (int64_t i = 0; added && i < padding; i++) added = add_unit(state, state->panels + i, 0, 0);
  if (!added) return cb_fail_memory(diag, "work units", (uint64_t)state->blocks * sizeof(struct unit));
  if (padded > INT32_MAX)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld work units exceed the cb layout's 2147483647", (long long)padded);
  return CB_OK;
}

/* ---- placing: needs units; adds place, and where each position's coordinates and values start */

static int64_t natural(const struct state *state, const struct unit *unit, int64_t i) {
  return state->order ? state->order[unit->first + i] : unit->first + i;
}

static int64_t coordinate_bytes(const struct state *state, enum format format, int nonzeros) {
  if (format == COO) return nonzeros;
  if (format == CSR) return CSR_STARTS + (nonzeros + 1) / 2;
  return state->full_dense ? 0 : DENSE_PRESENCE;
}

/* Appends one block's data at `position`; the ends move on. */
static void place_data(struct state *state, int64_t position, enum format format, int nonzeros) {
  const int64_t value_bytes = state->value_bytes;
  const int64_t coordinates = coordinate_bytes(state, format, nonzeros);
  const int64_t slots = format == DENSE ? CB_BLOCK_SIZE : nonzeros;
  const int64_t align = format == DENSE ? DENSE_ALIGN : value_bytes;
  if (state->intra) { /* one running end, in bytes */
    const int64_t start = round_up(state->coordinates_end, align);
    state->coordinates[position] = (uint64_t)(start / value_bytes);
    state->coordinates_end = start + round_up(coordinates, value_bytes) + slots * value_bytes;
  } else {
    const int64_t first = round_up(state->values_end * value_bytes, align) / value_bytes;
    state->coordinates[position] = (uint64_t)state->coordinates_end;
    state->values[position] = (uint64_t)first;
    state->coordinates_end += coordinates;
    state->values_end = first + slots;
  }
}

static enum cb_status place_blocks(struct state *state, struct cb_diag *diag) {
  const size_t blocks = (size_t)state->blocks;
  state->place = cb_alloc(blocks, sizeof *state->place);
  state->coordinates = cb_alloc(blocks, sizeof *state->coordinates);
  state->values = state->intra ? NULL : cb_alloc(blocks, sizeof *state->values);
  if (!state->place || !state->coordinates || (!state->intra && !state->values))
    return cb_fail_memory(diag, "sub-blocks", blocks * 20);
  int64_t position = 0;
  for (int64_t u = 0; u < state->units_count; u++) {
    struct unit *unit = &state->units[u];
    for (enum format format = COO; format < FORMATS; format++) {
      const int64_t before = position;
      for (int64_t i = 0; i < unit->count; i++) {
        const int64_t b = natural(state, unit, i);
        const int nonzeros = state->nonzeros[b];
        if (format_of(state, nonzeros) != format) continue;
        state->place[b] = (uint32_t)position;
        place_data(state, position++, format, nonzeros);
      }
      unit->formats[format] = (uint32_t)(position - before);
    }
  }
  return CB_OK;
}

/* ---- describing the region: needs all of the above; adds arrays, constants, facts, pieces */

/* A new index array for cb_draft_index. NULL when memory is short: the draft notices. */
static uint32_t *new_index(int64_t count) { return cb_alloc((size_t)count, sizeof(uint32_t)); }

/* first_block (a unit's first position), and where its CSR and Dense blocks start if other formats precede. The
 * begin and end of each format's range become holes of the text. */
static void draft_ranges(struct cb_draft *draft, const struct state *state) {
  char begin[64] = "first_block(arrays, unit)";
  uint32_t *first_block = new_index(state->units_count + 1);
  if (first_block) {
    uint32_t at = first_block[0] = 0;
    for (int64_t u = 0; u < state->units_count; u++) first_block[u + 1] = at += state->units[u].count;
  }
  cb_draft_index(draft, "first_block", "a unit's first sub-block; units + 1", first_block, 0,
                 state->units_count + 1);
  enum format last = DENSE;
  while (!state->format_blocks[last]) last--;
  for (enum format format = COO; format <= last; format++) {
    char end[64], hole[32];
    if (!state->format_blocks[format]) continue;
    enum format next = format + 1;
    while (next <= last && !state->format_blocks[next]) next++;
    if (format == last) {
      snprintf(end, sizeof end, "first_block(arrays, unit + 1)");
    } else { /* the next format's start is this one's end */
      char name[32], meaning[64];
      snprintf(name, sizeof name, "first_%s", format_names[next]);
      snprintf(meaning, sizeof meaning, "a unit's first %s sub-block", format_names[next]);
      snprintf(end, sizeof end, "%s(arrays, unit)", name);
      uint32_t *first = new_index(state->units_count);
      uint32_t start = 0;
      for (int64_t u = 0; first && u < state->units_count; u++) {
        const struct unit *unit = &state->units[u];
        first[u] = start;
        for (enum format f = COO; f < next; f++) first[u] += unit->formats[f];
        start += unit->count;
      }
      cb_draft_index(draft, name, meaning, first, 0, state->units_count);
    }
    snprintf(hole, sizeof hole, "%s_begin", format_names[format]);
    cb_draft_hole(draft, hole, begin);
    snprintf(hole, sizeof hole, "%s_end", format_names[format]);
    cb_draft_hole(draft, hole, end);
    snprintf(begin, sizeof begin, "%s", end);
  }
}

/* Elements by position from elements by natural number. */
static void draft_placed(struct cb_draft *draft, const struct state *state, const char *name, const char *meaning,
                         uint32_t (*of)(const struct state *, int64_t)) {
  uint32_t *elements = new_index(state->blocks);
  if (elements) {
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < state->blocks; b++) elements[state->place[b]] = of(state, b);
  }
  cb_draft_index(draft, name, meaning, elements, 0, state->blocks);
}

static uint32_t count_of(const struct state *state, int64_t b) { return state->nonzeros[b] - 1u; }
static uint32_t column_of(const struct state *state, int64_t b) { return state->first_column[b]; }
static uint32_t block_column_of(const struct state *state, int64_t b) {
  return state->first_column[b] / CB_BLOCK_COLS;
}

/* Offsets from each block's first column, 16 per position. */
static void draft_restore_columns(struct cb_draft *draft, const struct state *state) {
  const struct cb_csr *csr = draft->work.part.csr;
  uint32_t *restore = new_index(state->blocks * CB_BLOCK_COLS);
  if (restore) {
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t panel = 0; panel < state->panels; panel++) {
      struct cb_panel_walk walk;
      struct cb_subblock block;
      int64_t b = state->panel_block[panel];
      cb_panel_open(&walk, csr, panel);
      for (; cb_panel_next(&walk, 1, &block); b++)
        for (int c = 0; c < CB_BLOCK_COLS; c++)
          restore[(int64_t)state->place[b] * CB_BLOCK_COLS + c] =
              (uint32_t)(block.columns[c] - block.columns[0]);
    }
  }
  cb_draft_index(draft, "restore_cols", "original columns of a sub-block, from its first; 16 each", restore, 0,
                 state->blocks * CB_BLOCK_COLS);
}

static void draft_columns(struct cb_draft *draft, const struct state *state) {
  const struct cb_csr *csr = draft->work.part.csr;
  if (state->aggregated) {
    draft_placed(draft, state, "blk_col_idx", "first column of a sub-block", column_of);
    draft_restore_columns(draft, state);
    cb_draft_include(draft, "region", "cb/columns_aggregated.cu.in");
    return;
  }
  draft_placed(draft, state, "blk_col_idx", "column of a sub-block, in units of 16", block_column_of);
  cb_draft_include(draft, "region",
                   csr->cols % CB_BLOCK_COLS ? "cb/columns_cut.cu.in" : "cb/columns_whole.cu.in");
}

/* Takes the state's 64-bit offsets and hands them over, narrowed if they fit. */
static void draft_offsets(struct cb_draft *draft, const char *name, const char *meaning, const uint64_t *offsets,
                          int64_t count) {
  const int wide = count && offsets[count - 1] > UINT32_MAX;
  void *elements = cb_alloc((size_t)count, wide ? 8 : 4);
  for (int64_t i = 0; elements && i < count; i++) {
    if (wide) ((uint64_t *)elements)[i] = offsets[i];
    else ((uint32_t *)elements)[i] = (uint32_t)offsets[i];
  }
  cb_draft_index(draft, name, meaning, elements, wide, count);
}

static void draft_data(struct cb_draft *draft, const struct state *state) {
  if (state->intra) {
    draft_offsets(draft, "vp_per_blk", "virtual pointer: a sub-block's place in mtx_data, in values",
                  state->coordinates, state->blocks);
    cb_draft_mixed(draft, "mtx_data", "per sub-block: coordinates, padding, values",
                   round_up(state->coordinates_end, state->value_bytes));
    cb_draft_include(draft, "region", "cb/data_together.cu.in");
    return;
  }
  const int any_data = !state->equal || state->coordinates_end > 0;
  if (any_data)
    draft_offsets(draft, "first_coordinate", "a sub-block's place in coordinates, in bytes", state->coordinates,
                  state->blocks);
  if (!state->equal)
    draft_offsets(draft, "first_value", "a sub-block's place in values", state->values, state->blocks);
  if (any_data) cb_draft_bytes(draft, "coordinates", "per sub-block: places of its nonzeros", state->coordinates_end);
  cb_draft_values(draft, "values", "per sub-block: values", state->values_end);
  if (any_data) cb_draft_include(draft, "region", state->equal ? "cb/data_equal.cu.in" : "cb/data_apart.cu.in");
}

/* Values of a Dense block that a lane loads together: 16 bytes, or all of its eight. */
static int64_t dense_vector(const struct state *state) {
  const int64_t vector = 16 / state->value_bytes;
  return vector < CB_BLOCK_SIZE / 32 ? vector : CB_BLOCK_SIZE / 32;
}

static void draft_formats(struct cb_draft *draft, const struct state *state) {
  static const char *const region_pieces[FORMATS] = {"cb/coo.cu.in", "cb/csr.cu.in", "cb/dense.cu.in"};
  static const char *const sum_pieces[FORMATS] = {"cb/sum_coo.cu.in", "cb/sum_csr.cu.in", "cb/sum_dense.cu.in"};
  static const char *const team_pieces[FORMATS] = {"cb/sum_coo_team.cu.in", "cb/sum_csr_team.cu.in",
                                                   "cb/sum_dense_team.cu.in"};
  if (state->format_blocks[COO] || state->format_blocks[CSR])
    draft_placed(draft, state, "nnz_per_blk", "nonzeros of a sub-block, less one", count_of);
  for (enum format format = COO; format < FORMATS; format++) {
    if (!state->format_blocks[format]) continue;
    cb_draft_include(draft, "region", region_pieces[format]);
    cb_draft_include(draft, "sums", state->team > 1 ? team_pieces[format] : sum_pieces[format]);
  }
  if (state->format_blocks[COO])
    cb_draft_constant(draft, "kCooSteps", (state->largest_coo + 15) / 16,
                      "plan: the fullest COO sub-block, in steps of 16 nonzeros");
  if (state->format_blocks[DENSE]) {
    if (!state->equal)
      cb_draft_constant(draft, "kVector", dense_vector(state), "plan: values that one load reads");
    cb_draft_include(draft, "dense_products",
                     state->equal        ? (state->full_dense ? "cb/dense_full_equal.cu.in" : "cb/dense_holes_equal.cu.in")
                     : state->full_dense ? "cb/dense_full.cu.in"
                                         : "cb/dense_holes.cu.in");
  }
}

/* Where units share panels, each leaves its sums in a carry slot: slot numbers per unit (0: none), and the groups
 * of slots that make a panel. With atomics nothing of this is needed. Returns whether any panel is shared. */
static int draft_carries(struct cb_draft *draft, const struct state *state) {
  int64_t slots = 0, groups = 0;
  const size_t panels = (size_t)state->panels;
  uint32_t *units_of = cb_calloc(panels, sizeof *units_of);
  uint32_t *group_first = cb_alloc(panels + 1, sizeof *group_first);
  uint32_t *group_of = cb_alloc(panels, sizeof *group_of);
  uint32_t *slot_of = new_index(state->units_count);
  uint32_t *slot_group = NULL;
  if (!units_of || !group_first || !group_of || !slot_of) goto fail;
  for (int64_t u = 0; u < state->units_count; u++)
    if (state->units[u].panel < state->panels) units_of[state->units[u].panel]++;
  for (int64_t panel = 0; panel < state->panels; panel++) {
    if (units_of[panel] < 2) continue;
    group_of[panel] = (uint32_t)groups;
    group_first[groups++] = (uint32_t)slots;
    slots += units_of[panel];
  }
  group_first[groups] = (uint32_t)slots;
  if (!slots || draft->options->atomics == CB_ON) goto done;
  slot_group = new_index(slots);
  uint32_t *next = units_of; /* reused: the next free slot of a panel */
  if (!slot_group) goto fail;
  for (int64_t panel = 0; panel < state->panels; panel++)
    next[panel] = next[panel] < 2 ? UINT32_MAX : group_first[group_of[panel]];
  for (int64_t u = 0; u < state->units_count; u++) {
    const uint32_t panel = state->units[u].panel;
    slot_of[u] = 0;
    if (panel >= state->panels || next[panel] == UINT32_MAX) continue;
    slot_group[next[panel]] = group_of[panel];
    slot_of[u] = ++next[panel];
  }
  cb_draft_index(draft, "carry_slot", "a unit's carry slot, from 1; 0: it has its panel alone", slot_of, 0,
                 state->units_count);
  cb_draft_index(draft, "carry_group", "a slot's group: the slots of one panel", slot_group, 0, slots);
  cb_draft_index(draft, "carry_first", "a group's first slot; groups + 1", group_first, 0, groups + 1);
  draft->region.carry_slots = slots;
  draft->region.carry_width = CB_PANEL_ROWS;
  draft->region.carry_counters = groups;
  cb_free(units_of);
  cb_free(group_of);
  return 1;
done:
  cb_free(units_of);
  cb_free(group_first);
  cb_free(group_of);
  cb_free(slot_of);
  return slots > 0;
fail:
  draft->failed = 1;
  goto done;
}

static void draft_units(struct cb_draft *draft, const struct state *state) {
  if (!state->blocks) cb_draft_include(draft, "sums", "");
  const struct cb_csr *csr = draft->work.part.csr;
  uint32_t *panels = new_index(state->units_count);
  for (int64_t u = 0; panels && u < state->units_count; u++) panels[u] = state->units[u].panel;
  cb_draft_index(draft, "unit_panel", "panel of a unit", panels, 0, state->units_count);
  const int shared = draft_carries(draft, state);
  draft->region.commit = shared && draft->options->atomics == CB_ON ? CB_COMMIT_ATOMIC : draft->commit;
  int padded = 0; /* the heap's thread blocks have their padding anywhere */
  for (int64_t u = 0; u < state->units_count; u++) padded |= state->units[u].panel >= state->panels;
  const int guarded = padded || csr->rows % CB_PANEL_ROWS;
  cb_draft_constant(draft, "kUnitsPerBlock", WARPS / state->team, "plan: units of work in a thread block");
  if (state->team > 1) {
    cb_draft_constant(draft, "kTeamWarps", state->team, "plan: warps that share a unit");
    cb_draft_include(draft, "unit", "cb/unit_team.cu.in");
    cb_draft_include(draft, "team", "cb/team.cu.in");
  } else {
    cb_draft_include(draft, "unit", "cb/unit_warp.cu.in");
    cb_draft_include(draft, "team", "");
  }
  if (state->format_blocks[CSR] || state->format_blocks[DENSE])
    cb_draft_hole(draft, "advance", state->team > 1 ? "block += kTeamWarps" : "block++");
  if (state->format_blocks[COO])
    cb_draft_hole(draft, "advance_pair", state->team > 1 ? "pair += 2 * kTeamWarps" : "pair += 2");
  if (draft->own_rows) cb_draft_own_rows(draft);
  cb_draft_hole(draft, "row_exists",
                draft->own_rows ? "lane < 16 && row < kRows && owns(arrays, row)"
                : guarded       ? "lane < 16 && row < kRows"
                                : "lane < 16");
  cb_draft_hole(draft, "row_comment",
                draft->own_rows ? "other rows are another region's"
                : guarded       ? "the last rows do not fill their panel or thread block"
                                : "no guard: every panel has 16 rows");
  cb_draft_include(draft, "finish",
                   draft->region.carry_slots ? "cb/finish_carry.cu.in" : "cb/finish.cu.in");
  draft->region.blocks = state->units_count * state->team / WARPS;
  /* Fewer registers than these make COO and Dense wait for their loads one by one (measured), or spill. */
  draft->region.blocks_per_sm = state->format_blocks[COO] || state->format_blocks[DENSE] ? 4 : 6;
}

static void draft_facts(struct cb_draft *draft, const struct state *state) {
  cb_draft_fact(draft, "panels", "%lld", (long long)state->panels);
  for (enum format format = COO; format < FORMATS; format++)
    if (state->format_blocks[format])
      cb_draft_fact(draft, format_names[format], "%lld", (long long)state->format_blocks[format]);
  cb_draft_fact(draft, "aggregated", "%s", state->aggregated ? "yes" : "no");
  if (!state->intra && !state->equal) cb_draft_fact(draft, "intra", "no");
  if (draft->options->balance == CB_BALANCE_HEAP) cb_draft_fact(draft, "balance", "heap");
  if (state->team > 1) cb_draft_fact(draft, "team", "%d", state->team);
  if (draft->region.carry_slots)
    cb_draft_fact(draft, "carry", "%lld %lld", (long long)draft->region.carry_counters,
                  (long long)draft->region.carry_slots);
}

/* Blocks of the unit that one warp meets, one after the other. */
static int64_t unit_chain_ns(const struct state *state, const struct unit *unit) {
  static const int64_t nanoseconds[FORMATS] = {[COO] = 400, [CSR] = 900, [DENSE] = 500};
  int64_t chain = 0;
  for (enum format format = COO; format < FORMATS; format++)
    chain += round_up(unit->formats[format], state->team) / state->team * nanoseconds[format];
  return chain;
}

/* Finding and decoding sub-blocks, in picoseconds each on 132 multiprocessors; measured on the H200. */
static const int64_t block_picoseconds[FORMATS] = {[COO] = 170, [CSR] = 250, [DENSE] = 100};

static void predict(struct cb_draft *draft, const struct state *state) {
  enum { NS_TEAM = 500, NS_CARRY = 2000 };
  int64_t work = 0, chain = 0;
  for (enum format format = COO; format < FORMATS; format++)
    work += state->format_blocks[format] * block_picoseconds[format];
  for (int64_t u = 0; u < state->units_count; u++) {
    const int64_t of_unit = unit_chain_ns(state, &state->units[u]);
    chain = of_unit > chain ? of_unit : chain;
  }
  draft->region.cost.work_ns = work * 132 / draft->target->multiprocessors / 1000;
  draft->region.cost.chain_ns = chain;
  draft->region.cost.tail_ns = (state->team > 1 ? NS_TEAM : 0) + (draft->region.carry_slots ? NS_CARRY : 0);
  draft->region.cost.sectors = state->sectors;
  draft->region.cost.stream_percent = 92;
}

static void draft_region(struct cb_draft *draft, const struct state *state) {
  if (state->blocks) {
    draft_columns(draft, state);
    draft_data(draft, state);
    draft_ranges(draft, state);
    draft_formats(draft, state);
  }
  draft_units(draft, state);
  cb_draft_include(draft, "region", "cb/multiply.cu.in");
  draft_facts(draft, state);
  const int64_t sum_bytes = (int64_t)cb_type_size(draft->sum_type);
  draft->region.static_shared = (state->format_blocks[COO] ? WARPS * 512 * sum_bytes : 0) +
                                (state->team > 1 ? WARPS * CB_PANEL_ROWS * sum_bytes : 0);
  predict(draft, state);
}

/* Dense blocks with holes multiply the zeros that are stored there, unless all values are equal: then nothing is
 * stored, and the presence bits tell. */
static void size_values(struct state *state, struct cb_draft *draft) {
  if (state->format_blocks[DENSE] && !state->full_dense && draft->value_bytes) cb_draft_zero_slots(draft);
  state->equal = !draft->value_bytes;
  state->value_bytes = state->equal ? 1 : draft->value_bytes;
  if (state->equal) state->intra = 0;
}

static enum cb_status cb_layout_plan(struct cb_draft *draft, struct cb_diag *diag) {
  const struct cb_csr *csr = draft->work.part.csr;
  const struct cb_options *options = draft->options;
  if (csr->rows > INT32_MAX - 256) /* the text counts rows of padded thread blocks in an int */
    return cb_fail(diag, CB_ERR_LIMIT, "%lld rows exceed the cb layout's %d", (long long)csr->rows, INT32_MAX - 256);
  struct state *state = cb_calloc(1, sizeof *state);
  if (!state) return cb_fail_memory(diag, "cb layout", sizeof *state);
  draft->work.state = state;
  *state = (struct state){.panels = cb_panel_count(csr->rows),
                          .intra = options->intra != CB_OFF,
                          .th1 = (int)options->th1,
                          .th2 = (int)options->th2,
                          .vector_bytes = (int64_t)cb_type_size(draft->vector_type),
                          .full_dense = 1};
  enum cb_status s = decide_aggregation(state, csr, options, diag);
  if (!s) s = describe_blocks(state, csr, options->coo_percent, diag);
  if (!s) s = balance(state, draft, diag);
  if (!s) size_values(state, draft);
  if (!s) s = place_blocks(state, diag);
  if (!s) draft_region(draft, state);
  return s;
}

/* ---- packing */

struct destination {
  const struct cb_slot_map *map;
  const struct cb_part *part;
  unsigned char *coordinates; /* of this sub-block; NULL: only the map is wanted */
  int64_t slot;               /* of this sub-block's first value */
};

static void pack_coo(const struct cb_subblock *block, const struct destination *to) {
  int64_t k = 0;
  for (int r = 0; r < CB_PANEL_ROWS; r++) {
    int64_t nonzero = block->first[r];
    for (unsigned left = cb_subblock_row(block, r); left; left &= left - 1, k++) {
      if (to->coordinates) to->coordinates[k] = (unsigned char)(r << 4 | __builtin_ctz(left));
      cb_slot_set(to->map, to->slot + k, cb_part_origin(to->part, nonzero++));
    }
  }
}

static void pack_csr(const struct cb_subblock *block, const struct destination *to) {
  int64_t k = 0;
  for (int r = 0; r < CB_PANEL_ROWS; r++) {
    int64_t nonzero = block->first[r];
    if (to->coordinates) to->coordinates[r] = (unsigned char)k; /* at most 240: a row has 16 at most */
    for (unsigned left = cb_subblock_row(block, r); left; left &= left - 1, k++) {
      if (to->coordinates)
        to->coordinates[CSR_STARTS + k / 2] |= (unsigned char)(__builtin_ctz(left) << 4 * (k % 2));
      cb_slot_set(to->map, to->slot + k, cb_part_origin(to->part, nonzero++));
    }
  }
}

/* Slot of (row, column) in a Dense block: lane l holds column l % 16 of rows 8 (l / 16) + 0 … 7, and loads its
 * eight values as vectors of 16 bytes. */
static void pack_dense(const struct cb_subblock *block, const struct destination *to, int full, int64_t vector) {
  for (int r = 0; r < CB_PANEL_ROWS; r++) {
    int64_t nonzero = block->first[r];
    for (unsigned left = cb_subblock_row(block, r); left; left &= left - 1) {
      const int lane = r / 8 * 16 + __builtin_ctz(left), own = r % 8;
      const int64_t slot = (own / vector * 32 + lane) * vector + own % vector;
      if (to->coordinates && !full) to->coordinates[lane] |= (unsigned char)(1 << own);
      cb_slot_set(to->map, to->slot + slot, cb_part_origin(to->part, nonzero++));
    }
  }
}

static void pack_block(const struct state *state, const struct cb_subblock *block, int64_t position,
                       unsigned char *bytes, struct destination *to) {
  const int64_t value_bytes = state->value_bytes;
  const enum format format = format_of(state, block->nonzeros);
  const int64_t coordinates = coordinate_bytes(state, format, block->nonzeros);
  const int64_t start = (int64_t)state->coordinates[position] * (state->intra ? value_bytes : 1);
  to->coordinates = bytes ? bytes + start : NULL;
  to->slot = state->intra ? (start + round_up(coordinates, value_bytes)) / value_bytes
                          : (int64_t)state->values[position];
  if (format == COO) pack_coo(block, to);
  else if (format == CSR) pack_csr(block, to);
  else pack_dense(block, to, state->full_dense, dense_vector(state));
}

static enum cb_status cb_layout_pack(const struct cb_region *region, const struct cb_region_work *work,
                                     unsigned char *const *targets, const struct cb_slot_map *map,
                                     struct cb_diag *diag) {
  (void)diag;
  const struct state *state = work->state;
  unsigned char *bytes = NULL; /* mtx_data or coordinates */
  for (int i = 0; targets && i < region->arrays_count; i++)
    if (region->arrays[i].role == CB_ROLE_MIXED || region->arrays[i].role == CB_ROLE_BYTES) bytes = targets[i];
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t panel = 0; panel < state->panels; panel++) {
    struct cb_panel_walk walk;
    struct cb_subblock block;
    struct destination to = {.map = map, .part = &work->part};
    int64_t b = state->panel_block[panel];
    cb_panel_open(&walk, work->part.csr, panel);
    for (; cb_panel_next(&walk, state->aggregated, &block); b++)
      pack_block(state, &block, state->place[b], bytes, &to);
  }
  return CB_OK;
}

/* Sub-blocks, counted in a sample of the panels, at the pace of their cheapest format. */
static int64_t cb_least_ns(const struct cb_csr *csr, const struct cb_target *target, struct cb_types types) {
  enum { SAMPLES = 256, MOST_COO = 31, MOST_CSR = 176 }; /* as the standard thresholds have it */
  const int64_t panels = cb_panel_count(csr->rows), samples = panels < SAMPLES ? panels : SAMPLES;
  int64_t picoseconds = 0;
#pragma omp parallel for schedule(dynamic, 8) reduction(+ : picoseconds)
  for (int64_t i = 0; i < samples; i++) {
    struct cb_panel_walk walk;
    struct cb_subblock block;
    cb_panel_open(&walk, csr, i * panels / samples);
    while (cb_panel_next(&walk, 1, &block))
      picoseconds += block_picoseconds[block.nonzeros <= MOST_COO ? COO : block.nonzeros <= MOST_CSR ? CSR : DENSE];
  }
  const int64_t stream = cb_plan_stream_ns(csr, target, types, (int64_t)cb_type_size(types.matrix), 100);
  const int64_t all = (int64_t)((double)picoseconds * (double)panels / (double)samples);
  const int64_t work = all * 132 / target->multiprocessors / 1000;
  return stream > work ? stream : work;
}

const struct cb_layout cb_layout_cb = {
    .name = "cb",
    .summary = "16x16 sub-blocks in COO, CSR or Dense, columns aggregated per panel",
    .source = "CB-SpMV: a cache-friendly blocked SpMV with data aggregation and load balance",
    .plan = cb_layout_plan,
    .pack = cb_layout_pack,
    .release = state_release,
    .least_ns = cb_least_ns,
    .minds_own_rows = 1,
};
