// SPDX-License-Identifier: Apache-2.0
/* Natural dense blocks in blocked sliced ELL. The matrix is cut into aligned blocks of r × c entries; a block
 * row is r consecutive rows. A warp takes a slice of 32 lanes, 1 to 32 lanes share a block row, and each of
 * them multiplies one block per step: r·c values, c entries of x, one column offset. After BSR and the
 * SELL-C-σ of Kreutzer et al.
 *
 * Value j of a block (row by row) lies beside value j of the other lanes' blocks, in groups of up to 16 bytes
 * per lane, so a warp's load reads whole 128-byte lines. An entry of a block that the matrix lacks is stored
 * as 0; when there is one, presence bits are stored, too, for the rare product in which a sum is not finite.
 *
 * How to read it: blocks_plan near the end calls the passes in order. All of them walk along block rows as tiles.h
 * does.
 */
#include "analysis/layout.h"
#include "analysis/plan/cost_figures.h"
#include "analysis/sectors.h"
#include "analysis/tiles.h"

#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

enum {
  WARPS = 8,
  LANES = 32,
  WINDOW = 4096,   /* block rows that are sorted together */
  LONGEST = 512,   /* steps of a lane; more take too long one after the other */
  CHUNK = 64,      /* block rows that are counted together */
  INDEX_BYTES = 2, /* of a column offset, as a rule */
  NO_ROW = -1
};

struct state {
  const struct cb_csr *csr;
  struct cb_tile_size size;
  int64_t block_rows, blocks; /* blocks: those with a nonzero */
  uint32_t *count;            /* by block row: its blocks */
  int64_t equal;              /* blocks of every block row, or 0 */
  int64_t padding;            /* blocks of a place without a block row: `equal` or 0 */
  int lanes;                  /* that share a block row */
  int64_t slices, places;
  int32_t *order;      /* by place: block row or NO_ROW; NULL: block rows in order */
  int64_t *first_step; /* by slice: steps before it; slices + 1 */
  int64_t longest;     /* steps of a lane */
  int absent;          /* some block has an entry that the matrix lacks */
  int cut;             /* some block reaches over the right edge */
};

static void state_release(void *memory) {
  struct state *state = memory;
  if (!state) return;
  cb_free(state->count);
  cb_free(state->order);
  cb_free(state->first_step);
  cb_free(state);
}

/* ---- size: needs the part; adds the size and the number of blocks */

/* Blocks and nonzeros of every `stride`-th chunk of block rows; counts of block rows go to `count` unless
 * NULL. */
static int64_t count_blocks(const struct cb_csr *csr, struct cb_tile_size size, int64_t stride, uint32_t *count,
                            int64_t *nonzeros) {
  const int64_t block_rows = cb_tile_rows(csr, size);
  int64_t blocks = 0, seen = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : blocks, seen)
  for (int64_t chunk = 0; chunk < block_rows; chunk += CHUNK * stride) {
    const int64_t end = chunk + CHUNK < block_rows ? chunk + CHUNK : block_rows;
    for (int64_t block_row = chunk; block_row < end; block_row++) {
      struct cb_tile_walk walk = cb_tile_walk_open(csr, size, block_row);
      struct cb_tile block;
      uint32_t here = 0;
      for (int i = 0; i < walk.rows; i++) seen += walk.end[i] - walk.next[i];
      while (cb_tile_walk_next(&walk, &block)) here++;
      if (count) count[block_row] = here;
      blocks += here;
    }
  }
  *nonzeros = seen;
  return blocks;
}

static int is_full(int64_t nonzeros, int64_t blocks, struct cb_tile_size size, int64_t percent) {
  return (double)nonzeros * 100 >= (double)percent * (double)blocks * (double)cb_tile_area(size);
}

/* Blocks of this size, or -1 when they are too empty. A sample rejects most without a look at the whole. */
static int64_t blocks_if_full(const struct cb_csr *csr, struct cb_tile_size size, int64_t percent) {
  enum { STRIDE = 16, ENOUGH = 8, MARGIN = 10 };
  int64_t nonzeros;
  if (cb_tile_rows(csr, size) >= CHUNK * STRIDE * ENOUGH) {
    const int64_t blocks = count_blocks(csr, size, STRIDE, NULL, &nonzeros);
    if (!is_full(nonzeros, blocks, size, percent > MARGIN ? percent - MARGIN : 0)) return -1;
  }
  const int64_t blocks = count_blocks(csr, size, 1, NULL, &nonzeros);
  return is_full(nonzeros, blocks, size, percent) ? blocks : -1;
}

static int64_t presence_bytes(struct cb_tile_size size) {
  const int64_t bits = cb_tile_area(size);
  return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

static int64_t stored_bytes(const struct cb_csr *csr, struct cb_tile_size size, int64_t blocks, int64_t value_bytes) {
  const int64_t presence = blocks * cb_tile_area(size) > csr->nnz ? presence_bytes(size) : 0;
  return blocks * (cb_tile_area(size) * value_bytes + INDEX_BYTES + presence);
}

/* The size of fewest bytes among those that are full enough. */
static int auto_size(const struct cb_csr *csr, const struct cb_options *options,
                     const struct cb_target *target, int64_t value_bytes) {
  int64_t blocks[CB_TILE_SIZES], least = INT64_MAX;
  int best = -1;
  for (int i = 0; i < CB_TILE_SIZES; i++) {
    blocks[i] = -1;
    if ((cb_tile_sizes[i].within[0] >= 0 && blocks[cb_tile_sizes[i].within[0]] < 0) ||
        (cb_tile_sizes[i].within[1] >= 0 && blocks[cb_tile_sizes[i].within[1]] < 0))
      continue;
    blocks[i] = blocks_if_full(csr, cb_tile_sizes[i], options->block_fill);
    if (blocks[i] < 0 || !cb_tiles_are_enough(cb_tile_sizes[i], blocks[i], target)) continue;
    const int64_t bytes = stored_bytes(csr, cb_tile_sizes[i], blocks[i], value_bytes);
    if (bytes >= least) continue;
    least = bytes;
    best = i;
  }
  return best;
}

static enum cb_status choose_size(struct state *state, const struct cb_draft *draft, struct cb_diag *diag) {
  const struct cb_options *options = draft->options;
  const int64_t value_bytes = draft->value_bytes;
  int best = (int)options->block_size - 1;
  if (best < 0)
    best = auto_size(state->csr, options, draft->target, value_bytes);
  else if (blocks_if_full(state->csr, cb_tile_sizes[best], options->block_fill) < 0)
    best = -1;
  if (best < 0)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "no natural blocks%s are %lld %% full; use another recipe, or lower 'block-fill'",
                   options->block_size ? " of that size" : "", (long long)options->block_fill);
  state->size = cb_tile_sizes[best];
  state->block_rows = cb_tile_rows(state->csr, state->size);
  return CB_OK;
}

/* ---- slices: need the size; add counts, lanes, the order of block rows and the steps of slices */

static int64_t equal_count(const struct state *state) {
  for (int64_t block_row = 1; block_row < state->block_rows; block_row++)
    if (state->count[block_row] != state->count[0]) return 0;
  return state->count[0];
}

/* Places that fill no thread block take the others' length, so that lengths are a constant, unless there are
 * many. */
static void set_lanes(struct state *state, int lanes) {
  const int64_t per_block = WARPS * LANES / lanes;
  state->lanes = lanes;
  state->slices = cb_divide_up(state->block_rows, per_block) * WARPS;
  state->places = state->slices * (LANES / lanes);
  state->padding = (state->places - state->block_rows) * 8 <= state->block_rows ? state->equal : 0;
}

static int64_t block_row_at(const struct state *state, int64_t place) {
  if (state->order) return state->order[place];
  return place < state->block_rows ? place : NO_ROW;
}

static int64_t length_at(const struct state *state, int64_t place) {
  const int64_t block_row = block_row_at(state, place);
  return block_row == NO_ROW ? state->padding : (int64_t)state->count[block_row];
}

static int64_t steps_of_slice(const struct state *state, int64_t slice) {
  const int64_t places = LANES / state->lanes;
  int64_t length = 0;
  for (int64_t i = 0; i < places; i++) {
    const int64_t here = length_at(state, slice * places + i);
    length = here > length ? here : length;
  }
  return cb_divide_up(length, state->lanes);
}

static int64_t count_steps(struct state *state) {
  int64_t steps = 0, longest = 0;
#pragma omp parallel for schedule(static) reduction(+ : steps) reduction(max : longest)
  for (int64_t slice = 0; slice < state->slices; slice++) {
    const int64_t here = steps_of_slice(state, slice);
    steps += here;
    longest = here > longest ? here : longest;
  }
  state->longest = longest;
  return steps;
}

/* Stored bytes of a block: its values, or what is left without. */
static int64_t block_bytes(const struct state *state, const struct cb_draft *draft) {
  return draft->value_bytes ? cb_tile_area(state->size) * draft->value_bytes : INDEX_BYTES;
}

static int fits_l2(const struct state *state, const struct cb_draft *draft) {
  return state->blocks * block_bytes(state, draft) * 2 < draft->target->l2_bytes;
}

/* Padding is bytes: 15 % of them where they come from memory, more in L2, some in any case. */
static int pads_too_much(const struct state *state, const struct cb_draft *draft, int64_t steps) {
  enum { PERCENT = 15, PERCENT_IN_L2 = 30, SLACK = 1 << 18 };
  const int64_t percent = fits_l2(state, draft) ? PERCENT_IN_L2 : PERCENT;
  const int64_t slack = SLACK / block_bytes(state, draft);
  return (steps * LANES - slack) * 100 > state->blocks * (100 + percent);
}

/* Lanes per block row: as many as it takes to give each multiprocessor 512 threads, but two to four blocks
 * for each lane, and more when a lane's chain is long; fewer when too many places of the last step would stay
 * empty. */
static void choose_lanes(struct state *state, const struct cb_draft *draft) {
  const int64_t mean = state->blocks / state->block_rows;
  const int64_t threads = 512 * (int64_t)draft->target->multiprocessors;
  int lanes = (int)draft->options->block_lanes;
  set_lanes(state, lanes ? lanes : 1);
  if (lanes) return;
  lanes = 1;
  while (lanes < LANES && (state->block_rows * lanes < threads || mean >= 64 * lanes) && mean >= 4 * lanes)
    lanes *= 2;
  set_lanes(state, lanes);
  while (state->lanes > 1 && pads_too_much(state, draft, count_steps(state)))
    set_lanes(state, state->lanes / 2);
}

/* Most blocks first within a window, ties in the order of block rows: counting sort, all over LONGEST alike.
 */
static void sort_window(const struct state *state, int64_t first, int64_t end, int32_t *sorted) {
  int32_t start[LONGEST + 2] = {0};
  for (int64_t row = first; row < end; row++)
    start[LONGEST - (state->count[row] < LONGEST ? state->count[row] : LONGEST) + 1]++;
  for (int key = 1; key <= LONGEST; key++) start[key] += start[key - 1];
  for (int64_t row = first; row < end; row++)
    sorted[start[LONGEST - (state->count[row] < LONGEST ? state->count[row] : LONGEST)]++] = (int32_t)row;
}

static int32_t *sorted_rows(const struct state *state) {
  int32_t *rows = cb_alloc((size_t)state->places, sizeof *rows);
  if (!rows) return NULL;
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < state->block_rows; first += WINDOW)
    sort_window(state, first, first + WINDOW < state->block_rows ? first + WINDOW : state->block_rows,
                rows + first);
  for (int64_t place = state->block_rows; place < state->places; place++) rows[place] = NO_ROW;
  return rows;
}

/* Sorting must save a tenth of the slots, or be what makes them few enough; in L2 the order's load weighs
 * more, and so does a launch that another region could share. */
static enum cb_status choose_order(struct state *state, const struct cb_draft *draft, struct cb_diag *diag) {
  int64_t steps = count_steps(state);
  const int too_much = pads_too_much(state, draft, steps);
  if (!state->equal && (too_much || (!draft->may_be_joined && !fits_l2(state, draft)))) {
    state->order = sorted_rows(state);
    if (!state->order) return cb_fail_memory(diag, "sorted block rows", (uint64_t)state->places * 4);
    const int64_t sorted = count_steps(state);
    if (!too_much && sorted * 10 > steps * 9) {
      cb_free(state->order);
      state->order = NULL;
    }
    steps = count_steps(state);
  }
  if (pads_too_much(state, draft, steps))
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "block rows differ so much that %lld blocks take %lld slots; use "
                   "another recipe",
                   (long long)state->blocks, (long long)steps * LANES);
  if (state->longest > LONGEST)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "a lane would take %lld steps, more than %d; use another recipe",
                   (long long)state->longest, LONGEST);
  return CB_OK;
}

static enum cb_status make_slices(struct state *state, const struct cb_draft *draft, struct cb_diag *diag) {
  int64_t nonzeros;
  state->count = cb_alloc((size_t)state->block_rows, sizeof *state->count);
  if (!state->count) return cb_fail_memory(diag, "block counts", (uint64_t)state->block_rows * 4);
  state->blocks = count_blocks(state->csr, state->size, 1, state->count, &nonzeros);
  state->equal = equal_count(state);
  choose_lanes(state, draft);
  const enum cb_status s = choose_order(state, draft, diag);
  if (s) return s;
  state->first_step = cb_alloc((size_t)state->slices + 1, sizeof *state->first_step);
  if (!state->first_step) return cb_fail_memory(diag, "slices", (uint64_t)state->slices * 8);
  state->first_step[0] = 0;
  for (int64_t slice = 0; slice < state->slices; slice++)
    state->first_step[slice + 1] = state->first_step[slice] + steps_of_slice(state, slice);
  return CB_OK;
}

/* ---- the region: needs the slices; adds arrays and pieces of text */

/* Slot of block k of the place number `in_slice` of a slice. */
static int64_t slot_of(const struct state *state, int64_t slice, int64_t in_slice, int64_t k) {
  return (state->first_step[slice] + k / state->lanes) * LANES + in_slice * state->lanes + k % state->lanes;
}

/* Values of a lane that one load reads: up to 16 bytes. Wide values: what divides the block's area, or one by
 * one. Values of one or two bytes would make many small loads: what fits the area, and a rest one by one. */
static int64_t vector_of(struct cb_tile_size size, int64_t value_bytes) {
  int64_t vector = value_bytes ? 16 / value_bytes : 1;
  if (value_bytes > 2)
    while (cb_tile_area(size) % vector) vector /= 2;
  while (cb_tile_area(size) < vector) vector /= 2;
  return vector;
}

/* Value slot of value j of the block in `slot`. */
static int64_t value_slot(struct cb_tile_size size, int64_t vector, int64_t slot, int64_t j) {
  const int64_t step = slot / LANES * LANES * cb_tile_area(size), lane = slot % LANES;
  if (j >= cb_tile_area(size) / vector * vector) return step + j * LANES + lane;
  return step + j / vector * vector * LANES + lane * vector + j % vector;
}

static int64_t first_column(const struct state *state, int64_t slice) {
  const int64_t places = LANES / state->lanes;
  int64_t least = INT64_MAX;
  for (int64_t i = 0; i < places; i++) {
    const int64_t block_row = block_row_at(state, slice * places + i);
    if (block_row == NO_ROW) continue;
    struct cb_tile_walk walk = cb_tile_walk_open(state->csr, state->size, block_row);
    struct cb_tile block;
    if (cb_tile_walk_next(&walk, &block) && block.column < least) least = block.column;
  }
  return least == INT64_MAX ? 0 : least;
}

/* Entries of a block that lie within the matrix. */
static int64_t inner_area(const struct state *state, int rows, int64_t column) {
  const int64_t left = state->csr->cols - column * state->size.cols;
  return rows * (left < state->size.cols ? left : state->size.cols);
}

/* Column offsets; on the way absent entries and blocks over the right edge are found. */
static void draft_columns(struct cb_draft *draft, struct state *state) {
  const int64_t slots = state->first_step[state->slices] * LANES, places = LANES / state->lanes;
  uint32_t *first = cb_alloc((size_t)state->slices, sizeof *first);
  uint32_t *offsets = cb_calloc((size_t)slots, sizeof *offsets);
  int64_t inner = 0, cut = 0;
  if (first && offsets) {
#pragma omp parallel for schedule(static) reduction(+ : inner, cut)
    for (int64_t slice = 0; slice < state->slices; slice++) {
      first[slice] = (uint32_t)first_column(state, slice);
      for (int64_t i = 0; i < places; i++) {
        const int64_t block_row = block_row_at(state, slice * places + i);
        if (block_row == NO_ROW) continue;
        struct cb_tile_walk walk = cb_tile_walk_open(state->csr, state->size, block_row);
        struct cb_tile block;
        for (int64_t k = 0; cb_tile_walk_next(&walk, &block); k++) {
          offsets[slot_of(state, slice, i, k)] = (uint32_t)(block.column - first[slice]);
          inner += inner_area(state, walk.rows, block.column);
          cut += (block.column + 1) * state->size.cols > state->csr->cols;
        }
      }
    }
  }
  state->absent = inner > state->csr->nnz;
  state->cut = cut > 0;
  cb_draft_index(draft, "first_column", "least block column of a slice", first, 0, state->slices);
  cb_draft_index(draft, "column_offset", "block column of a slot, from its slice's first", offsets, 0, slots);
}

static void draft_places(struct cb_draft *draft, const struct state *state) {
  uint32_t *lengths = cb_alloc((size_t)state->places, sizeof *lengths);
  uint32_t *rows = state->order ? cb_alloc((size_t)state->places, sizeof *rows) : NULL;
  for (int64_t place = 0; lengths && place < state->places; place++)
    lengths[place] = (uint32_t)length_at(state, place);
  cb_draft_index(draft, "place_length", "blocks of the block row at a place", lengths, 0, state->places);
  if (!state->order) return;
  cb_draft_section(draft, "sorted");
  for (int64_t place = 0; rows && place < state->places; place++)
    rows[place] = (uint32_t)(state->order[place] == NO_ROW ? state->block_rows : state->order[place]);
  cb_draft_index(draft, "place_row", "block row at a place; behind the last one: none", rows, 0,
                 state->places);
}

/* What some lanes must not do: add to others' sums, read past x, write past y. */
static void draft_guards(struct cb_draft *draft, const struct state *state) {
  const int shared = state->lanes > 1, guarded = state->places * state->size.rows > state->csr->rows;
  if (shared) cb_draft_constant(draft, "kLanes", state->lanes, "plan: lanes that share a block row");
  if (shared) cb_draft_section(draft, "shared");
  if (guarded) cb_draft_section(draft, "guarded");
  if (state->cut) cb_draft_section(draft, "cut");
}

static void draft_presence(struct cb_draft *draft, const struct state *state) {
  static const char *const types[] = {[1] = "uint8_t", [2] = "uint16_t", [4] = "uint32_t", [8] = "uint64_t"};
  const int64_t bytes = presence_bytes(state->size);
  if (!state->absent) return;
  cb_draft_section(draft, "absent");
  cb_draft_bytes(draft, "present", "bit j of a slot: the matrix has value j of the block",
                 state->first_step[state->slices] * LANES * bytes);
  cb_draft_hole(draft, "present_type", types[bytes]);
}

/* Blocks whose loads are under way together: 27 values (finite elements of three unknowns per node: three blocks
 * take 243 µs where one takes 250), or more when there are so few threads on a multiprocessor that each may have the
 * registers. */
static int64_t choose_batch(const struct state *state, const struct cb_draft *draft) {
  const int64_t threads = state->slices * LANES / draft->target->multiprocessors;
  const int64_t values = threads <= 512 ? 36 : 27;
  int64_t batch = values / cb_tile_area(state->size);
  if (draft->options->block_batch) batch = draft->options->block_batch;
  if (batch > 8) batch = 8;
  if (batch * cb_tile_area(state->size) > 64) batch = 64 / cb_tile_area(state->size); /* more have no registers */
  if (batch > state->longest) batch = state->longest;
  return batch > 1 ? batch : 1;
}

static void draft_text(struct cb_draft *draft, const struct state *state) {
  const int64_t vector = vector_of(state->size, draft->value_bytes);
  const int64_t rest = cb_tile_area(state->size) % vector; /* values that the vectors leave */
  cb_draft_constant(draft, "kBlockRows", state->size.rows, "plan: the size of a block");
  cb_draft_constant(draft, "kBlockCols", state->size.cols, "plan");
  cb_draft_constant(draft, "kBatch", choose_batch(state, draft),
                    "plan: blocks whose loads are under way together");
  if (vector > 1) cb_draft_constant(draft, "kVector", vector, "plan: values that one load reads");
  const int from_presence =
      state->absent && !draft->value_bytes; /* there are no zeros where entries are absent */
  if (from_presence) cb_draft_section(draft, "from_presence");
  if (vector > 1) cb_draft_section(draft, "vectors");
  if (rest) cb_draft_section(draft, "rest");
  draft_guards(draft, state);
  draft_presence(draft, state);
}

/* What leaves registers for a batch of values; asked for nothing, the compiler aims lower and spills. */
static int blocks_per_sm(const struct cb_draft *draft, const struct state *state) {
  const int64_t values = choose_batch(state, draft) * cb_tile_area(state->size);
  const int64_t registers = values * (int64_t)cb_type_size(draft->vector_type) / 4;
  if (registers <= 18) return state->absent ? 4 : 5;
  if (registers <= 36) return state->absent ? 2 : 3;
  return registers <= 72 ? 2 : 1;
}

static void draft_region(struct cb_draft *draft, struct state *state) {
  const int64_t steps = state->first_step[state->slices];
  uint64_t *first_step = cb_alloc((size_t)state->slices + 1, sizeof *first_step);
  if (first_step) memcpy(first_step, state->first_step, (size_t)(state->slices + 1) * sizeof *first_step);
  cb_draft_fact(draft, "size", "%d %d", state->size.rows, state->size.cols);
  cb_draft_fact(draft, "blocks", "%lld", (long long)state->blocks);
  cb_draft_fact(draft, "slices", "%lld", (long long)state->slices);
  cb_draft_fact(draft, "steps", "%lld", (long long)steps);
  cb_draft_fact(draft, "lanes", "%d", state->lanes);
  if (state->order) cb_draft_fact(draft, "sorted", "yes");
  cb_draft_index(draft, "first_step", "steps before a slice, 32 slots each", first_step, 1,
                 state->slices + 1);
  draft_columns(draft, state);
  if (state->absent)
    cb_draft_fact(draft, "absent", "%lld", (long long)(state->blocks * cb_tile_area(state->size) - state->csr->nnz));
  if ((state->absent || state->cut) && draft->value_bytes) cb_draft_zero_slots(draft);
  cb_draft_values(draft, "values", "per step, in groups of one load, a group of each lane",
                  steps * LANES * cb_tile_area(state->size));
  draft_places(draft, state);
  draft_text(draft, state);
  draft->region.blocks = state->slices / WARPS;
  draft->region.block_rows = state->order ? 0 : WARPS * LANES / state->lanes * state->size.rows;
  draft->region.blocks_per_sm = blocks_per_sm(draft, state);
  draft->region.commit = draft->commit;
}

static void visit_slice(const struct state *state, int64_t slice, struct cb_sector_sink *sink) {
  const int64_t places = LANES / state->lanes;
  struct cb_tile_walk walks[LANES];
  for (int64_t i = 0; i < places; i++) {
    const int64_t block_row = block_row_at(state, slice * places + i);
    walks[i] = block_row == NO_ROW ? (struct cb_tile_walk){.csr = state->csr}
                                   : cb_tile_walk_open(state->csr, state->size, block_row);
  }
  for (int64_t step = state->first_step[slice]; step < state->first_step[slice + 1]; step++) {
    cb_sector_load(sink);
    for (int64_t lane = 0; lane < LANES; lane++) {
      struct cb_tile block;
      if (!cb_tile_walk_next(&walks[lane / state->lanes], &block)) continue;
      for (int64_t j = 0; j < state->size.cols; j++) cb_sector_ask(sink, block.column * state->size.cols + j);
    }
  }
}

static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  for (int64_t slice = thread_block * WARPS; slice < (thread_block + 1) * WARPS; slice++)
    visit_slice(user, slice, sink);
}

/* A slice's batches follow one another. */
static enum cb_status predict(struct cb_draft *draft, const struct state *state, struct cb_diag *diag) {
  const int64_t batch = choose_batch(state, draft);
  draft->region.cost.chain_ns = cb_divide_up(state->longest, batch) * CB_COST_BATCH_NS;
  draft->region.cost.stream_percent = CB_COST_BLOCKS_PERCENT;
  return cb_sectors_predict(draft, state, visit_sectors, diag);
}

static enum cb_status blocks_plan(struct cb_draft *draft, struct cb_diag *diag) {
  enum { MARGIN = 8192 }; /* the text counts rows and columns, padding included, in an int */
  const struct cb_csr *csr = draft->work.part.csr;
  if (csr->rows > INT32_MAX - MARGIN || csr->cols > INT32_MAX - MARGIN)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld rows and %lld columns exceed the blocks layout's %d",
                   (long long)csr->rows, (long long)csr->cols, INT32_MAX - MARGIN);
  struct state *state = cb_calloc(1, sizeof *state);
  if (!state) return cb_fail_memory(diag, "blocks layout", sizeof *state);
  draft->work.state = state;
  state->csr = csr;
  enum cb_status s = choose_size(state, draft, diag);
  if (!s) s = make_slices(state, draft, diag);
  if (s) return s;
  draft_region(draft, state);
  return predict(draft, state, diag);
}

/* ---- packing */

static unsigned char *target_of(const struct cb_region *region, unsigned char *const *targets,
                                const char *name) {
  for (int i = 0; targets && i < region->arrays_count; i++)
    if (!strcmp(region->arrays[i].name, name)) return targets[i];
  return NULL;
}

/* Puts a block's nonzeros into its slot; returns its presence bits. */
static uint64_t pack_block(const struct state *state, const struct cb_region_work *work,
                           const struct cb_tile *block, int rows, int64_t vector, int64_t slot,
                           const struct cb_slot_map *map) {
  uint64_t present = 0;
  for (int i = 0; i < rows; i++)
    for (int64_t k = block->first[i]; k < block->end[i]; k++) {
      const int64_t j = i * state->size.cols + state->csr->col_idx[k] - block->column * state->size.cols;
      cb_slot_set(map, value_slot(state->size, vector, slot, j), cb_part_origin(&work->part, k));
      present |= UINT64_C(1) << j;
    }
  return present;
}

static enum cb_status blocks_pack(const struct cb_region *region, const struct cb_region_work *work,
                                  unsigned char *const *targets, const struct cb_slot_map *map,
                                  struct cb_diag *diag) {
  const struct state *state = work->state;
  unsigned char *presence = target_of(region, targets, "present");
  const int64_t bytes = presence_bytes(state->size), places = LANES / state->lanes;
  int64_t vector = 1;
  (void)diag;
  for (int i = 0; i < region->arrays_count; i++)
    if (region->arrays[i].role == CB_ROLE_VALUES)
      vector = vector_of(state->size, (int64_t)cb_type_size(region->arrays[i].type));
#pragma omp parallel for schedule(static)
  for (int64_t slice = 0; slice < state->slices; slice++)
    for (int64_t i = 0; i < places; i++) {
      const int64_t block_row = block_row_at(state, slice * places + i);
      if (block_row == NO_ROW) continue;
      struct cb_tile_walk walk = cb_tile_walk_open(state->csr, state->size, block_row);
      struct cb_tile block;
      for (int64_t k = 0; cb_tile_walk_next(&walk, &block); k++) {
        const int64_t slot = slot_of(state, slice, i, k);
        const uint64_t present = pack_block(state, work, &block, walk.rows, vector, slot, map);
        for (int64_t b = 0; presence && b < bytes; b++)
          presence[slot * bytes + b] = (unsigned char)(present >> 8 * b);
      }
    }
  return CB_OK;
}

const struct cb_layout cb_layout_blocks = {
    .name = "blocks",
    .summary = "natural dense blocks in sliced ELL, one column offset per block",
    .source = "-",
    .plan = blocks_plan,
    .pack = blocks_pack,
    .release = state_release,
};
