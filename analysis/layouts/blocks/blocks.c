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
 * Symmetric storage (plan/symmetry.h): square blocks above the main diagonal are not stored. Every block of a local row
 * has its column offset as ever, and the place of its values: a slot among those of the blocks that are stored, slice
 * by slice, with those of each local row in the order of columns, and a bit that says that the block there is the
 * mirror image, to be turned. So all but the second reads are whole lines; on a mesh neighbours' images are neighbours,
 * and the second read is from L2, as long as it comes soon: so a row takes its blocks in turns (turn_of), not by
 * columns.
 *
 * Where no block has an absent entry and shared memory has room, each stored block is read once (outer.h): a thread
 * block keeps the sums of its block rows and of those that its blocks' columns name in shared memory, with their
 * entries of x, and goes from step to step together. A slot has the place of its column's sum there, and no column.
 * Sums go to carry slots, and a launch behind adds up what all have left for a row, in order.
 *
 * For eight vectors and more, blocks of 8 × 8 are whole: they follow one another as CSR would have them, the 64 values
 * of each row by row. A warp takes one block at a time, of which lane 4 i + t has two neighbours of row i: what tensor
 * cores take as a factor, while the other one are entries of X as they lie. One to eight warps share a block row and
 * meet in shared memory.
 *
 * How to read it: blocks_plan near the end calls the passes in order. All of them walk along block rows as tiles.h
 * does.
 */
#include "analysis/layouts/blocks/options.h"
#include "analysis/cost_figures.h"
#include "analysis/layouts/blocks/outer.h"
#include "analysis/layouts/blocks/size.h"
#include "analysis/ordering.h"
#include "analysis/plan/symmetry.h"
#include "analysis/row_lanes.h"
#include "analysis/sectors.h"
#include "analysis/slices.h"
#include "analysis/stretches.h"
#include "analysis/tiles.h"
#include "base/memory.h"

#include <string.h>

enum {
  WARPS = 8,
  LANES = CB_LANES,
  DEALT = 4,       /* thread blocks of a multiprocessor: FE 56^3, k = 8: 137 us in order, 130 by 2 to 8 */
  LONGEST = 512    /* steps of a lane; more take too long one after the other */
};

struct state {
  struct cb_arena arena;
  const struct cb_csr *csr;
  struct cb_tile_size size;
  int64_t block_rows, blocks; /* blocks: those with a nonzero */
  uint32_t *count;            /* by block row: its blocks */
  int64_t equal;              /* blocks of every block row, or 0 */
  int64_t padding;            /* blocks of a local row without a block row: `equal` or 0 */
  int lanes;                  /* that share a block row */
  int shares;                 /* of blocks that are whole: warps that share a block row; else 0 */
  int64_t slices, local_rows;
  int32_t *order;      /* by local row: block row, or that behind the last; NULL: in order */
  int64_t *first_step; /* by slice: steps before it; slices + 1 */
  int64_t *first_slot; /* by slice: slots before it, for kernels that pack */
  int64_t steps;       /* of all slices */
  int64_t longest;     /* steps of a lane */
  uint32_t *first_column; /* by slice: of blocks */
  int64_t vector;      /* values of a lane that one load reads; 1 until they are chosen */
  struct own {         /* of a symmetric matrix, the blocks that have values; else all NULL and 0 */
    int64_t *start;    /* by block row: where its own begin in `column`; block_rows + 1 */
    uint32_t *column;  /* block columns, ascending */
    int64_t *first_step; /* by slice: steps of own blocks before it; slices + 1 */
    uint32_t *local_row; /* by block row */
    int64_t steps;
    int64_t runs;        /* of lanes that read neighbouring images */
  } own;
  struct cb_outer outer; /* where each of these is read once; else tiles 0 */
  int absent;          /* some block has an entry that the matrix lacks */
  int cut;             /* some block reaches over the right edge */
};

/* ---- size: needs the part; adds the size and the number of blocks */

static enum cb_status choose_size(struct state *state, const struct cb_region_builder *builder, struct cb_diag *diag) {
  const int best = cb_blocks_best_size(state->csr, builder);
  if (best < 0) return cb_blocks_refuse(builder->settings, diag);
  state->size = cb_tile_sizes[best];
  state->block_rows = cb_tile_rows(state->csr, state->size);
  return CB_OK;
}

/* ---- slices: need the size; add counts, lanes, the order of block rows and the steps of slices */

static int64_t blocks_of(const void *state, int64_t block_row) {
  return ((const struct state *)state)->count[block_row];
}

static int is_whole(const struct state *state) { return state->shares > 0; }

/* Slots of a step, slices and local rows of a thread block. */
static int64_t step_slots(const struct state *state) { return is_whole(state) ? 1 : LANES; }
static int64_t block_slices(const struct state *state) { return is_whole(state) ? WARPS / state->shares : WARPS; }
static int64_t slice_rows(const struct state *state) { return LANES / state->lanes; }

/* Local rows that fill no thread block take the others' length, so that lengths are a constant, unless there are
 * many. */
static void set_lanes(struct state *state, int lanes) {
  state->lanes = lanes;
  state->slices = cb_divide_up(state->block_rows, block_slices(state) * slice_rows(state)) * block_slices(state);
  state->local_rows = state->slices * slice_rows(state);
  state->padding = (state->local_rows - state->block_rows) * 8 <= state->block_rows ? state->equal : 0;
}

static int64_t block_row_at(const struct state *state, int64_t local_row) {
  return state->order ? state->order[local_row] : cb_smaller(local_row, state->block_rows);
}

static int64_t length_at(const struct state *state, int64_t local_row) {
  const int64_t block_row = block_row_at(state, local_row);
  return block_row == state->block_rows ? state->padding : (int64_t)state->count[block_row];
}

static int64_t steps_of_slice(const void *user, int64_t slice) {
  const struct state *state = user;
  const int64_t local_rows = slice_rows(state);
  int64_t length = 0;
  for (int64_t i = 0; i < local_rows; i++) length = cb_larger(length, length_at(state, slice * local_rows + i));
  return is_whole(state) ? length : cb_divide_up(length, state->lanes);
}

static int64_t count_steps(struct state *state) {
  int64_t steps = 0;
#pragma omp parallel for schedule(static) reduction(+ : steps)
  for (int64_t slice = 0; slice < state->slices; slice++) steps += steps_of_slice(state, slice);
  return steps;
}

/* Stored bytes of a block: its values, or what is left without. */
static int64_t block_bytes(const struct state *state, const struct cb_region_builder *builder) {
  return builder->value_bytes ? cb_tile_area(state->size) * builder->value_bytes : CB_BLOCKS_INDEX_BYTES;
}

static int fits_l2(const struct state *state, const struct cb_region_builder *builder) {
  return state->blocks * block_bytes(state, builder) * 2 < builder->target->l2_bytes;
}

/* Padding is bytes: 15 % of them where they come from memory, more in L2, some in any case. */
static int pads_too_much(const struct state *state, const struct cb_region_builder *builder, int64_t steps) {
  enum { PERCENT = 15, PERCENT_IN_L2 = 30, SLACK = 1 << 18 };
  const int64_t percent = fits_l2(state, builder) ? PERCENT_IN_L2 : PERCENT;
  const int64_t slack = SLACK / block_bytes(state, builder);
  return (steps * step_slots(state) - slack) * 100 > state->blocks * (100 + percent);
}

/* Threads that share the vectors of a row, where each has as many as one load brings. */
static int64_t threads_of_row(const struct cb_region_builder *builder) {
  const int vectors = cb_options_vectors(builder->options);
  const int64_t bytes = vectors * (int64_t)cb_type_size(builder->vector_type);
  return vectors > 1 ? cb_larger(1, cb_smaller(bytes / CB_PIECE_BYTES, LANES)) : 1;
}

/* Threads that the GPU's multiprocessors want. By several vectors no more than are there at once: finite elements
 * 20^3 x 8 take 10.4 us by 8 lanes, four rounds of thread blocks, and 7.0 by 2, one round. */
static int64_t wanted_threads(const struct state *state, const struct cb_region_builder *builder) {
  const int64_t all = CB_TILE_THREADS * (int64_t)builder->target->multiprocessors, sharing = threads_of_row(builder);
  return sharing == 1 || state->block_rows * sharing > all ? all : all / (2 * sharing) + 1;
}

/* Whether few slots stay empty where the block rows of all slices are sorted. */
static int fits_sorted(struct state *state, const struct cb_region_builder *builder) {
  struct cb_arena trial = {0};
  if (state->equal) return 0;
  state->order = cb_sorted_rows(&trial, state->block_rows, state->local_rows, CB_WINDOW, LONGEST, blocks_of, state);
  const int fits = state->order && !pads_too_much(state, builder, count_steps(state));
  state->order = NULL;
  cb_arena_release(&trial);
  return fits;
}

/* Half as many until few slots stay empty. An order permits more where half as many would need one, too: seven unknowns
 * 15^3, 8 lanes, take 9.2 us, and 21.3 by one; bcsstk32 by four 7.2 and 21.8. Returns the steps, of block rows in
 * order. */
static int64_t halve_lanes(struct state *state, const struct cb_region_builder *builder) {
  int64_t steps = count_steps(state);
  while (state->lanes > 1 && pads_too_much(state, builder, steps)) {
    const int lanes = state->lanes;
    set_lanes(state, lanes / 2);
    const int64_t of_half = count_steps(state);
    if (!pads_too_much(state, builder, of_half)) return of_half;
    set_lanes(state, lanes);
    if (fits_sorted(state, builder)) return steps;
    set_lanes(state, lanes / 2);
    steps = of_half;
  }
  return steps;
}

/* Lanes per block row: as many as it takes to give work to all threads, but two to four blocks for each lane, and more
 * when a lane's chain is long; fewer when too many slots of the last step would stay empty. Returns the steps. */
static int64_t choose_lanes(struct state *state, const struct cb_region_builder *builder) {
  const int asked = (int)builder->settings[BLOCKS_LANES];
  set_lanes(state, asked ? asked : cb_tile_row_lanes(state->block_rows, state->blocks, wanted_threads(state, builder)));
  return asked ? count_steps(state) : halve_lanes(state, builder);
}

/* Warps that share a block row of whole blocks: as many as give each multiprocessor 32, but four blocks to each.
 * Returns the steps. */
static int64_t choose_shares(struct state *state, const struct cb_region_builder *builder) {
  enum { WARPS_THERE = 32, LEAST = 4 };
  const int64_t mean = state->blocks / state->block_rows;
  const int64_t warps = WARPS_THERE * (int64_t)builder->target->multiprocessors;
  state->shares = 1;
  while (state->shares < WARPS && state->block_rows * state->shares < warps && mean >= 2 * LEAST * state->shares)
    state->shares *= 2;
  set_lanes(state, LANES); /* of a step that one block fills */
  return count_steps(state);
}

/* Whether an order could save a tenth of the slots: however it is, they are no fewer than the blocks. */
static int may_save_a_tenth(const struct state *state, int64_t steps) {
  return state->blocks * 10 <= steps * step_slots(state) * 9;
}

/* Most blocks first within a window, if that must be; all over LONGEST alike. Sorting must save a tenth of the slots,
 * or be what makes them few enough; in L2 the order's load weighs more, and so does a launch that another region could
 * share. `steps` are those of block rows in order. */
static void choose_order(struct state *state, const struct cb_region_builder *builder, int64_t steps) {
  const int too_much = pads_too_much(state, builder, steps);
  const int may_gain = !builder->may_be_joined && !fits_l2(state, builder) && may_save_a_tenth(state, steps);
  if (state->equal || is_whole(state) || !(too_much || may_gain)) return;
  struct cb_arena trial = {0};
  state->order = cb_sorted_rows(&trial, state->block_rows, state->local_rows, CB_WINDOW, LONGEST, blocks_of, state);
  if (!too_much && state->order && count_steps(state) * 10 > steps * 9) {
    state->order = NULL;
    cb_arena_release(&trial);
  }
  cb_arena_join(&state->arena, &trial);
}

static enum cb_status check_slices(const struct state *state, const struct cb_region_builder *builder,
                                   struct cb_diag *diag) {
  if (pads_too_much(state, builder, state->steps))
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "block rows differ so much that %lld blocks take %lld slots; use "
                   "another recipe",
                   (long long)state->blocks, (long long)(state->steps * step_slots(state)));
  if (!is_whole(state) && state->longest > LONGEST)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "a lane would take %lld steps, more than %d; use another recipe",
                   (long long)state->longest, LONGEST);
  return CB_OK;
}

static int set_first_slots(struct state *state) {
  state->first_slot = state->first_step;
  if (step_slots(state) == 1) return 1;
  state->first_slot = cb_arena_alloc(&state->arena, (size_t)state->slices + 1, sizeof *state->first_slot);
  for (int64_t i = 0; state->first_slot && i <= state->slices; i++)
    state->first_slot[i] = state->first_step[i] * step_slots(state);
  return state->first_slot != NULL;
}

static enum cb_status make_slices(struct state *state, const struct cb_region_builder *builder, struct cb_diag *diag) {
  state->count = cb_arena_alloc(&state->arena, (size_t)state->block_rows, sizeof *state->count);
  if (!state->count) return cb_fail_memory(diag, "block counts", (uint64_t)state->block_rows * 4);
  const struct cb_tile_census census = cb_tiles_count(state->csr, state->size, 0, 1, state->count);
  state->blocks = census.tiles;
  if (state->blocks == CB_TILES_UNKNOWN)
    return cb_fail(diag, CB_ERR_DEVICE, "blocks could not be counted on the GPU");
  if (!cb_blocks_are_full(&census, state->size, builder->settings[BLOCKS_FILL]))
    return cb_blocks_refuse(builder->settings, diag);
  state->equal = cb_larger(cb_equal_length(state->block_rows, blocks_of, state), 0);
  const int may_be_whole = cb_blocks_may_be_whole(state->size, builder);
  const int64_t steps = (may_be_whole ? choose_shares : choose_lanes)(state, builder);
  choose_order(state, builder, steps);
  state->first_step = cb_first_steps(&state->arena, state->slices, steps_of_slice, state, &state->longest);
  if (!state->first_step || !set_first_slots(state))
    return cb_fail_memory(diag, "slices", (uint64_t)state->slices * 8);
  state->steps = state->first_step[state->slices];
  return check_slices(state, builder, diag);
}

/* ---- symmetric storage: needs the slices; adds the blocks that have values of their own */

static int is_mirrored(const struct state *state) { return state->own.start != NULL; }

/* Blocks with values: of a block row. */
static int64_t own_blocks(const struct state *state, int64_t block_row) {
  return block_row == state->block_rows ? 0 : state->own.start[block_row + 1] - state->own.start[block_row];
}

static int64_t own_steps_of_slice(const void *user, int64_t slice) {
  const struct state *state = user;
  const int64_t local_rows = slice_rows(state);
  int64_t most = 0;
  for (int64_t i = 0; i < local_rows; i++)
    most = cb_larger(most, own_blocks(state, block_row_at(state, slice * local_rows + i)));
  return cb_divide_up(most, state->lanes);
}

/* Blocks of a block row on and below the main diagonal: counts them, and lists them where there is room. */
static int64_t list_own(const struct state *state, int64_t block_row, uint32_t *columns) {
  struct cb_tile_walk walk = cb_tile_walk_open(state->csr, state->size, block_row);
  struct cb_tile block;
  int64_t count = 0;
  while (cb_tile_walk_next(&walk, &block) && block.column <= block_row) {
    if (columns) columns[count] = (uint32_t)block.column;
    count++;
  }
  return count;
}

static int find_own_blocks(struct state *state, struct own *own) {
  const int64_t rows = state->block_rows;
  own->start = cb_arena_alloc(&state->arena, (size_t)rows + 1, sizeof *own->start);
  own->local_row = cb_arena_alloc(&state->arena, (size_t)rows, sizeof *own->local_row);
  if (!own->start || !own->local_row) return 0;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; row++) own->start[row + 1] = list_own(state, row, NULL);
  own->start[0] = 0;
  own->column = cb_arena_alloc(&state->arena, (size_t)cb_sum_up(own->start, rows), sizeof *own->column);
  if (!own->column) return 0;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; row++) list_own(state, row, own->column + own->start[row]);
  for (int64_t local = 0; local < state->local_rows; local++)
    if (block_row_at(state, local) < rows) own->local_row[block_row_at(state, local)] = (uint32_t)local;
  return 1;
}

static int is_read_once(const struct state *state) { return state->outer.tiles > 0; }

/* The slot of values of block `k` of a block row's own. */
static int64_t own_slot(const struct state *state, int64_t block_row, int64_t k) {
  if (is_read_once(state))
    return (state->own.first_step[block_row / LANES] + state->outer.turn[state->own.start[block_row] + k]) * LANES +
           block_row % LANES;
  const int64_t local_rows = slice_rows(state), local = state->own.local_row[block_row];
  return (state->own.first_step[local / local_rows] + k / state->lanes) * LANES +
         local % local_rows * state->lanes + k % state->lanes;
}

/* The same of the block in `column` of a block row, which is one of its own. */
static int64_t own_slot_in(const struct state *state, int64_t block_row, int64_t column) {
  const uint32_t *columns = state->own.column + state->own.start[block_row];
  return own_slot(state, block_row, cb_place_among(columns, own_blocks(state, block_row), column));
}

/* The turn of block `k` of a local row. Where blocks are mirrored, the farthest below the main diagonal is followed by
 * the farthest above, and so on: a block and its mirror image are read by rows that are at about the same turn then, so
 * that the second read still finds in L2 what the first brought. Read by columns, most of it would be gone. */
static int64_t turn_of(const struct state *state, int64_t block_row, int64_t column, int64_t k) {
  if (!is_mirrored(state)) return k;
  const int64_t all = state->count[block_row], own = own_blocks(state, block_row);
  const int has_diagonal = own > 0 && state->own.column[state->own.start[block_row + 1] - 1] == block_row;
  const int64_t below = own - has_diagonal, above = all - own;
  if (column == block_row) return all - 1;
  if (column < block_row) return k + cb_smaller(k, above);
  return all - 1 - k + cb_smaller(all - k, below);
}

/* Runs of lanes of a slice that read neighbouring images at one turn. */
static int64_t runs_of_slice(const struct state *state, int64_t slice) {
  const int64_t local_rows = LANES / state->lanes;
  int64_t last[LONGEST * LANES], runs = 0; /* by turn: behind the last lane's image */
  for (int64_t turn = 0; turn < state->longest * state->lanes; turn++) last[turn] = -1;
  for (int64_t i = 0; i < local_rows; i++) {
    const int64_t row = block_row_at(state, slice * local_rows + i);
    if (row == state->block_rows) continue;
    struct cb_tile_walk walk = cb_tile_walk_open(state->csr, state->size, row);
    struct cb_tile block;
    for (int64_t k = 0; cb_tile_walk_next(&walk, &block); k++) {
      if (block.column <= row) continue;
      const int64_t image = own_slot_in(state, block.column, row), turn = turn_of(state, row, block.column, k);
      runs += image != last[turn];
      last[turn] = image + 1;
    }
  }
  return runs;
}

/* The same of all slices, from some of them. */
static int64_t count_runs(const struct state *state) {
  enum { STRIDE = 61 };
  const int64_t some = cb_divide_up(state->slices, STRIDE);
  int64_t runs = 0;
#pragma omp parallel for schedule(static) reduction(+ : runs)
  for (int64_t i = 0; i < some; i++) runs += runs_of_slice(state, i * STRIDE);
  return cb_proportion(runs, state->slices, some);
}

/* A run's images reach over a sector more. Half storage gains while these are not much more than a third of the sectors
 * of all blocks: finite elements of 80^3 nodes, where they are a tenth, take 193 us, and 243 as a whole. */
static int runs_are_long(const struct state *state, int64_t value_bytes) {
  enum { SECTOR = 32, PART = 3 };
  return state->own.runs * SECTOR * PART <= state->blocks * value_bytes;
}

/* ---- each block read once: needs the blocks that have values of their own */

static struct cb_lower_blocks lower_blocks(const struct state *state) {
  const struct own *own = &state->own;
  return (struct cb_lower_blocks){state->block_rows, WARPS * LANES, state->size.rows, own->start, own->column};
}

static int64_t once_steps_of_slice(const void *user, int64_t slice) {
  return ((const struct state *)user)->outer.steps[slice / WARPS];
}

/* One vector, numbers of one real, whole blocks, block rows in order. */
static int may_be_read_once(const struct state *state, const struct cb_region_builder *builder) {
  return state->lanes == 1 && !state->order && state->blocks * cb_tile_area(state->size) == state->csr->nnz &&
         builder->options->vectors == 1 && builder->options->semiring == CB_PLUS_TIMES &&
         !cb_type_is_complex(builder->sum_type) && builder->commit == CB_COMMIT_FINAL && !builder->own_rows &&
         !builder->joins_rows && builder->settings[BLOCKS_ONCE] != CB_OFF;
}

/* Where that is so, there is room, and few slots are empty; else they are read twice. */
static enum cb_status find_once(struct state *state, const struct cb_region_builder *builder, struct cb_diag *diag) {
  const struct cb_lower_blocks lower = lower_blocks(state);
  const struct state own = {.size = state->size, .blocks = state->own.start[state->block_rows]};
  if (!may_be_read_once(state, builder)) return CB_OK;
  const int fits = cb_outer_find(&state->outer, &state->arena, &lower) && cb_outer_fits(&state->outer, &lower, builder);
  const int64_t steps = fits ? state->outer.all_steps * WARPS : 0;
  if (!fits || steps * LANES > INT32_MAX / 2 / cb_tile_area(state->size) || pads_too_much(&own, builder, steps)) {
    state->outer = (struct cb_outer){0};
    return CB_OK;
  }
  state->first_step = state->own.first_step =
      cb_first_steps(&state->arena, state->slices, once_steps_of_slice, state, &state->longest);
  if (!state->first_step) return cb_fail_memory(diag, "slices", (uint64_t)state->slices * 8);
  state->steps = state->own.steps = steps;
  return CB_OK;
}

/* Where there are values, blocks are square, and places fit 32 bits; and where images that are read together lie
 * together, as on meshes, unless half is asked for. */
static enum cb_status find_mirrored(struct state *state, const struct cb_region_builder *builder,
                                    struct cb_diag *diag) {
  int mirrored;
  int64_t longest;
  enum cb_status s = cb_symmetry_of_part(&mirrored, builder->options, builder->target, &builder->work.part, diag);
  if (s || !mirrored || is_whole(state) || state->size.rows != state->size.cols || !builder->value_bytes ||
      state->steps * LANES > INT32_MAX)
    return s;
  if (!find_own_blocks(state, &state->own))
    return cb_fail_memory(diag, "symmetric blocks", (uint64_t)state->blocks * 4);
  s = find_once(state, builder, diag);
  if (s || is_read_once(state)) return s;
  state->own.first_step = cb_first_steps(&state->arena, state->slices, own_steps_of_slice, state, &longest);
  if (!state->own.first_step) return cb_fail_memory(diag, "slices", (uint64_t)state->slices * 8);
  state->own.steps = state->own.first_step[state->slices];
  state->own.runs = count_runs(state);
  if (builder->options->symmetric_storage != CB_ON && !runs_are_long(state, builder->value_bytes))
    state->own = (struct own){0};
  return CB_OK;
}

/* Steps whose blocks have values of their own. */
static int64_t value_steps(const struct state *state) { return is_mirrored(state) ? state->own.steps : state->steps; }

static int64_t column_slots(const struct state *state) { return state->steps * step_slots(state); }
static int64_t value_blocks(const struct state *state) { return value_steps(state) * step_slots(state); }

/* ---- the region: needs the slices; adds arrays and sections */

/* Slot of block k of the local row number `in_slice` of a slice. */
static int64_t slot_of(const struct state *state, int64_t slice, int64_t in_slice, int64_t k) {
  if (is_whole(state)) return state->first_step[slice] + k;
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
static int64_t value_slot(const struct state *state, int64_t slot, int64_t j) {
  const int64_t area = cb_tile_area(state->size), vector = state->vector;
  const int64_t step = slot / LANES * LANES * area, lane = slot % LANES;
  if (is_whole(state)) return slot * area + j;
  if (j >= area / vector * vector) return step + j * LANES + lane;
  return step + j / vector * vector * LANES + lane * vector + j % vector;
}

/* Along the blocks of a local row, of which padding has none. */
static struct cb_tile_walk blocks_at(const struct state *state, int64_t slice, int64_t in_slice) {
  const int64_t block_row = block_row_at(state, slice * slice_rows(state) + in_slice);
  if (block_row == state->block_rows) return (struct cb_tile_walk){.csr = state->csr};
  return cb_tile_walk_open(state->csr, state->size, block_row);
}

/* What a slice's blocks come to: entries within the matrix, blocks over its right edge, the range of columns. */
struct extent {
  int64_t inner, cut, least, most;
};

/* Adds those of a block row, which the ends of its rows tell. A block over the edge is its last one. */
static void measure_block_row(const struct state *state, int64_t block_row, struct extent *extent) {
  const struct cb_csr *csr = state->csr;
  const int64_t first = block_row * state->size.rows, end = cb_smaller(first + state->size.rows, csr->rows);
  int64_t least = INT64_MAX, most = -1;
  for (int64_t row = first; row < end; row++) {
    if (!cb_csr_row_length(csr, row)) continue;
    const struct cb_ends ends = cb_row_ends(csr, row);
    least = cb_smaller(least, ends.first / state->size.cols);
    most = cb_larger(most, ends.last / state->size.cols);
  }
  if (most < 0) return;
  const int64_t over = cb_larger((most + 1) * state->size.cols - csr->cols, 0); /* columns behind the edge */
  extent->inner += (end - first) * (state->count[block_row] * (int64_t)state->size.cols - over);
  extent->cut += over > 0;
  extent->least = cb_smaller(extent->least, least);
  extent->most = cb_larger(extent->most, most);
}

/* The same where columns span those ends and whole blocks fill the matrix's columns: none is cut. */
static struct extent measure_within(const struct state *state, int64_t slice, struct cb_ends ends) {
  const int64_t local_rows = slice_rows(state), height = state->size.rows;
  struct extent extent = {.least = ends.first / state->size.cols, .most = cb_larger(ends.last, 0) / state->size.cols};
  for (int64_t i = 0; i < local_rows; i++) {
    const int64_t block_row = slice * local_rows + i, first = block_row * height;
    if (block_row >= state->block_rows) break;
    extent.inner += (cb_smaller(first + height, state->csr->rows) - first) * state->count[block_row] * state->size.cols;
  }
  return extent;
}

static struct extent measure_slice(const struct state *state, int64_t slice) {
  const int64_t local_rows = slice_rows(state);
  struct extent extent = {.least = INT64_MAX};
  for (int64_t i = 0; i < local_rows; i++) {
    const int64_t block_row = block_row_at(state, slice * local_rows + i);
    if (block_row < state->block_rows) measure_block_row(state, block_row, &extent);
  }
  return extent;
}

/* Fills in first columns; returns the largest offset from one. On the way absent entries and blocks over the right edge
 * are found. */
static int64_t measure_columns(struct state *state, const struct cb_ends *of_slices) {
  int64_t inner = 0, cut = 0, largest = 0;
#pragma omp parallel for schedule(static) reduction(+ : inner, cut) reduction(max : largest)
  for (int64_t slice = 0; slice < state->slices; slice++) {
    const struct extent extent =
        of_slices ? measure_within(state, slice, of_slices[slice]) : measure_slice(state, slice);
    const int64_t first = cb_smaller(extent.least, extent.most); /* 0 when there are none */
    state->first_column[slice] = (uint32_t)first;
    inner += extent.inner;
    cut += extent.cut;
    largest = cb_larger(largest, extent.most - first);
  }
  state->absent = inner > state->csr->nnz;
  state->cut = cut > 0;
  return largest;
}

static void build_columns(struct cb_region_builder *builder, struct state *state) {
  state->first_column = cb_arena_alloc(&state->arena, (size_t)state->slices, sizeof *state->first_column);
  const int in_order = !state->order && state->csr->cols % state->size.cols == 0;
  const int64_t each = slice_rows(state) * state->size.rows;
  struct cb_ends *of_slices = in_order ? cb_row_spans(state->csr, each, state->slices) : NULL;
  const int ready = state->first_column && (of_slices || cb_need_row_ends(state->csr));
  const int64_t largest = ready ? measure_columns(state, of_slices) : 0;
  cb_free(of_slices);
  builder->failed |= !ready;
  cb_region_column_offsets(builder, "block column", state->slices, state->first_column,
                           (struct cb_slot_elements){.count = column_slots(state), .largest = largest});
}

/* Elements by slot, behind those of the column offsets. */
static void build_places(struct cb_region_builder *builder, const struct state *state) {
  const char *section = cb_symmetry_section((enum cb_symmetry_option)builder->options->symmetric);
  if (!is_mirrored(state)) return;
  cb_region_by_slot(builder, "value_place", "twice where a slot's block has its values; odd: its mirror image has",
                    (struct cb_slot_elements){.first = state->steps * LANES,
                                              .count = state->steps * LANES,
                                              .largest = 2 * state->own.steps * LANES - 1});
  cb_region_section(builder, "mirrored");
  cb_region_section(builder, section);
  cb_region_fact(builder, section, "%lld", (long long)(state->blocks - state->own.start[state->block_rows]));
}

/* Nonzeros in blocks above the main diagonal. */
static int64_t mirrored_nonzeros(const struct state *state) {
  const struct cb_csr *csr = state->csr;
  int64_t mirrored = 0;
  if (!is_mirrored(state)) return 0;
#pragma omp parallel for schedule(static) reduction(+ : mirrored)
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      mirrored += csr->col_idx[k] / state->size.cols > row / state->size.rows;
  return mirrored;
}

static uint64_t local_row_length(const void *state, int64_t local_row) { return (uint64_t)length_at(state, local_row); }

static void build_local_rows(struct cb_region_builder *builder, const struct state *state) {
  if (is_whole(state)) return; /* a slice has one, with as many blocks as steps */
  cb_region_computed(builder, "local_row_length", "blocks of a local row", state->local_rows, local_row_length);
  if (!state->order) return;
  cb_region_section(builder, "sorted");
  cb_region_list(builder, "row_of", "block row of a local row; behind the last one: none", state->local_rows, state->order);
}

/* What some lanes must not do: add to others' sums, read past x, write past y. */
static void build_guards(struct cb_region_builder *builder, const struct state *state) {
  const int shared = state->lanes > 1 && !is_whole(state);
  const int guarded = state->local_rows * state->size.rows > state->csr->rows;
  if (shared) cb_region_structure(builder, "kLanes", state->lanes, "plan: lanes that share a block row");
  if (shared) cb_region_section(builder, "shared");
  if (shared && state->lanes >= state->size.rows) cb_region_section(builder, "one_row");
  if (guarded) cb_region_section(builder, "guarded");
  if (state->cut) cb_region_section(builder, "cut");
}

static void build_presence(struct cb_region_builder *builder, const struct state *state) {
  static const char *const types[] = {[1] = "uint8_t", [2] = "uint16_t", [4] = "uint32_t", [8] = "uint64_t"};
  const int64_t bytes = cb_blocks_presence_bytes(state->size);
  const int again = cb_region_needs_presence(builder); /* sums that are not finite are added up again */
  if (!state->absent || (!again && builder->value_bytes)) return;
  if (again) cb_region_section(builder, "absent");
  cb_region_bytes(builder, "present", "bit j of a slot: the matrix has value j of the block",
                  value_blocks(state) * bytes);
  cb_region_placeholder(builder, "present_type", types[bytes]);
}

/* Blocks whose loads are in flight together. 18 values of two doubles, and where half is stored (two blocks of three
 * thread blocks take 193 µs, three of two take 205); 36 where each is read once, by two thread blocks (27: 157.8 us,
 * 36: 157.3, by hand). */
static int64_t choose_batch(const struct state *state, const struct cb_region_builder *builder) {
  enum { WHOLE = 4, FEWER_VALUES = 18 };
  const int64_t threads = state->slices * LANES / builder->target->multiprocessors;
  const int few = is_read_once(state) || threads <= CB_TILE_THREADS;
  const int fewer = cb_region_is_wide(builder) || (!few && is_mirrored(state));
  const int64_t asked = builder->settings[BLOCKS_BATCH];
  const int64_t values = fewer ? FEWER_VALUES : few ? CB_TILE_VALUES_OF_FEW : CB_TILE_VALUES;
  if (is_whole(state)) return asked ? asked : WHOLE;
  return cb_tile_batch(state->size, asked ? asked * cb_tile_area(state->size) : values, state->longest);
}

static void build_whole(struct cb_region_builder *builder, const struct state *state) {
  cb_region_section(builder, "whole");
  cb_region_structure(builder, "kShares", state->shares, "plan: warps that share a block row");
  cb_region_structure(builder, "kBatch", choose_batch(state, builder),
                      "plan: blocks whose loads are in flight together");
  build_guards(builder, state);
  build_presence(builder, state);
}

static void build_text(struct cb_region_builder *builder, const struct state *state) {
  const int64_t vector = state->vector;
  const int64_t rest = cb_tile_area(state->size) % vector; /* values that the vectors leave */
  cb_region_structure(builder, "kBlockRows", state->size.rows, "plan: the size of a block");
  cb_region_structure(builder, "kBlockCols", state->size.cols, "plan");
  cb_region_structure(builder, "kBatch", choose_batch(state, builder),
                      "plan: blocks whose loads are in flight together");
  if (vector > 1) cb_region_structure(builder, "kVector", vector, "plan: values that one load reads");
  const int from_presence = state->absent && !builder->value_bytes; /* there are no zeros where entries are absent */
  if (from_presence) cb_region_section(builder, "from_presence");
  if (vector > 1) cb_region_section(builder, "vectors");
  if (rest) cb_region_section(builder, "rest");
  build_guards(builder, state);
  build_presence(builder, state);
}

/* What leaves registers for a batch of values; asked for nothing, the compiler aims lower and spills. */
static int blocks_per_sm(const struct cb_region_builder *builder, const struct state *state) {
  const int64_t values = choose_batch(state, builder) * cb_tile_area(state->size);
  const int64_t registers = values * (int64_t)cb_type_size(builder->sum_type) / 4;
  if (is_whole(state)) return cb_region_blocks_for(builder, 4);
  const int held = cb_tile_blocks_held(registers, state->absent != 0);
  if (is_read_once(state)) return 2;
  return held > 3 ? cb_region_blocks_for(builder, held) : held;
}

static void build_family(struct cb_region_builder *builder) {
  cb_region_family_with(builder, "guarded");
  cb_region_family_with(builder, "sorted");
  cb_region_family_sequence(builder, "row_of", 0, 1);
}

static void build_facts(struct cb_region_builder *builder, const struct state *state) {
  cb_region_fact(builder, "size", "%d %d", state->size.rows, state->size.cols);
  cb_region_fact(builder, "blocks", "%lld", (long long)state->blocks);
  cb_region_fact(builder, "slices", "%lld", (long long)state->slices);
  cb_region_fact(builder, "steps", "%lld", (long long)state->steps);
  if (is_whole(state)) cb_region_fact(builder, "whole", "%d", state->shares);
  else cb_region_fact(builder, "lanes", "%d", state->lanes);
  if (state->order) cb_region_fact(builder, "sorted", "yes");
}

static void build_values(struct cb_region_builder *builder, struct state *state) {
  const int64_t area = cb_tile_area(state->size);
  if (state->absent) cb_region_fact(builder, "absent", "%lld", (long long)(state->blocks * area - state->csr->nnz));
  if ((state->absent || state->cut) && builder->value_bytes) cb_region_zero_slots(builder);
  state->vector = vector_of(state->size, builder->value_bytes);
  cb_region_values(
      builder, "values",
      is_whole(state) ? "block by block, row by row" : "per step, in groups of one load, a group of each lane",
      value_blocks(state) * area);
  builder->region.mirrored = mirrored_nonzeros(state);
}

static void build_once(struct cb_region_builder *builder, struct state *state) {
  const char *section = cb_symmetry_section((enum cb_symmetry_option)builder->options->symmetric);
  const struct cb_lower_blocks lower = lower_blocks(state);
  build_facts(builder, state);
  cb_region_list(builder, "first_step", "steps before a slice, 32 slots each; as many for each of a thread block",
                 state->slices + 1, state->own.first_step);
  cb_region_by_slot(builder, "target", "place of the block's column among the thread block's sums, from 1; 0: no block",
                    (struct cb_slot_elements){.count = state->own.steps * LANES,
                                              .largest = WARPS * LANES + state->outer.most});
  cb_region_streamed(builder);
  cb_outer_build(builder, &state->outer, &lower);
  build_values(builder, state);
  cb_region_section(builder, "once");
  if (strcmp(section, "mirrored")) cb_region_section(builder, section);
  cb_region_fact(builder, section, "%lld", (long long)(state->blocks - state->own.start[state->block_rows]));
  cb_region_fact(builder, "outer", "%lld", (long long)state->outer.first[state->outer.tiles]);
  build_text(builder, state);
  builder->region.blocks = state->outer.tiles;
  builder->region.blocks_per_sm = blocks_per_sm(builder, state);
}

/* Where a product streams more than three tenths of L2, the next one's thread blocks gather on few multiprocessors: of
 * finite elements in single precision 34^3 took 14.6 us for 7.1, 26^3 of four unknowns in double 17.1 for 10.5. */
static enum cb_next choose_next(const struct cb_region_builder *builder, const struct state *state) {
  const int fits = state->blocks * block_bytes(state, builder) * 10 <= builder->target->l2_bytes * 3;
  return fits && builder->region.blocks <= CB_LATE_BLOCKS ? CB_NEXT_BEHIND : CB_NEXT_AT_END;
}

/* Kernels for several vectors that are a launch of their own. */
static int starts_early(const struct cb_region_builder *builder) {
  return builder->options->vectors > 1 && !builder->may_be_joined && !builder->joins_rows && !builder->own_rows;
}

static void build_region(struct cb_region_builder *builder, struct state *state) {
  enum { REGISTERS = 28 }; /* beside values, entries of X and sums: as compiled */
  build_facts(builder, state);
  cb_region_list(builder, "first_step",
                 is_whole(state) ? "blocks before a block row" : "steps before a slice, 32 slots each",
                 state->slices + 1, state->first_step);
  build_columns(builder, state);
  build_places(builder, state);
  build_values(builder, state);
  build_local_rows(builder, state);
  (is_whole(state) ? build_whole : build_text)(builder, state);
  build_family(builder);
  builder->region.blocks = state->slices / block_slices(state);
  builder->region.block_rows = state->order ? 0 : block_slices(state) * slice_rows(state) * state->size.rows;
  builder->region.blocks_per_sm = blocks_per_sm(builder, state);
  builder->region.takes_vectors = 1;
  if (starts_early(builder)) {
    cb_region_section(builder, "behind");
    builder->region.late = CB_LATE_ALWAYS;
  } else if (!is_whole(state)) {
    builder->region.late = CB_LATE_ALONE;
    builder->region.next = choose_next(builder, state);
    cb_region_family_size(builder, "next_start", builder->region.next);
  }
  if (is_whole(state)) {
    builder->region.sharing = CB_SHARING_TILES;
    builder->region.static_shared = state->shares > 1 ? WARPS * LANES * (int64_t)cb_type_size(builder->sum_type) : 0;
    return;
  }
  builder->region.steps = (struct cb_steps){.steps = state->steps,
                                            .loads = 1 + (int)(cb_tile_area(state->size) / state->vector),
                                            .columns = state->size.cols,
                                            .values = (int)(choose_batch(state, builder) * cb_tile_area(state->size)),
                                            .entries = state->size.cols,
                                            .registers = REGISTERS};
  builder->region.most_lanes = state->lanes;
  builder->region.dealt = DEALT;
  builder->region.thread_rows = state->size.rows;
}

/* A stretch for each row of a thread block's block rows, whether there is one or not. */
static int64_t sector_stretches(const void *user, int64_t thread_block, struct cb_stretch *stretches) {
  const struct state *state = user;
  const int64_t local_rows = block_slices(state) * slice_rows(state), rows = state->size.rows;
  for (int64_t i = 0; stretches && i < local_rows * rows; i++) {
    const int64_t row = block_row_at(state, thread_block * local_rows + i / rows) * rows + i % rows;
    stretches[i] = (struct cb_stretch){0, 0};
    if (row < state->csr->rows)
      stretches[i] = (struct cb_stretch){cb_csr_row(state->csr, row), cb_csr_row_length(state->csr, row)};
  }
  return local_rows * rows;
}

static void ask_slice(const struct state *state, int64_t slice, struct cb_sector_sink *sink) {
  const int64_t local_rows = slice_rows(state);
  struct cb_tile_walk walks[LANES];
  for (int64_t i = 0; i < local_rows; i++) {
    walks[i] = blocks_at(state, slice, i);
    for (int row = 0; row < walks[i].rows; row++) {
      const int64_t number = (slice % block_slices(state) * local_rows + i) * state->size.rows + row;
      walks[i].columns[row] = cb_sector_columns(sink, number, walks[i].begin[row]);
    }
  }
  for (int64_t step = state->first_step[slice]; step < state->first_step[slice + 1]; step++) {
    cb_sector_load(sink);
    for (int64_t lane = 0; lane < step_slots(state); lane++) {
      struct cb_tile block;
      if (!cb_tile_walk_next(&walks[lane / state->lanes], &block)) continue;
      for (int64_t j = 0; j < state->size.cols; j++) cb_sector_ask(sink, block.column * state->size.cols + j);
    }
  }
}

static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const int64_t slices = block_slices(user);
  for (int64_t slice = thread_block * slices; slice < (thread_block + 1) * slices; slice++)
    ask_slice(user, slice, sink);
}

/* Where blocks are mirrored, L2 gives the values of all blocks, in whole lines: twice as many sectors a second as of
 * scattered ones, as in dia. Each run of images reaches over a sector more for each of a block's values. */
static int64_t value_sectors(const struct cb_region_builder *builder, const struct state *state) {
  enum { WHOLE_LINES = 2, SECTOR = 32 };
  if (!is_mirrored(state)) return 0;
  return cb_tile_area(state->size) * (state->blocks * builder->value_bytes / SECTOR + state->own.runs) / WHOLE_LINES;
}

/* A slice's batches follow one another. */
static enum cb_status predict(struct cb_region_builder *builder, const struct state *state, struct cb_diag *diag) {
  const int64_t batch = choose_batch(state, builder);
  const int64_t chain = is_whole(state) ? cb_divide_up(state->longest, state->shares) : state->longest; /* blocks */
  builder->region.cost.chain_ns = cb_divide_up(chain, batch) * CB_COST_BATCH_NS;
  builder->region.cost.tail_ns = CB_COST_BLOCKS_SUMS_NS;
  builder->region.cost.stream_percent = CB_COST_BLOCKS_PERCENT;
  if (is_read_once(state)) {
    cb_outer_predict(builder);
    return CB_OK;
  }
  const enum cb_status s = cb_sectors_predict_by_stretch(builder, state, visit_sectors, sector_stretches, diag);
  builder->region.cost.sectors += value_sectors(builder, state);
  return s;
}

static enum cb_status blocks_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  enum { MARGIN = 8192 }; /* the text counts rows and columns, padding included, in an int */
  const struct cb_csr *csr = builder->work.part.csr;
  if (csr->rows > INT32_MAX - MARGIN || csr->cols > INT32_MAX - MARGIN)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld rows and %lld columns exceed the blocks layout's %d",
                   (long long)csr->rows, (long long)csr->cols, INT32_MAX - MARGIN);
  enum cb_status s = cb_region_state(builder, sizeof(struct state), diag);
  struct state *state = builder->work.state;
  if (s) return s;
  state->csr = csr;
  state->vector = 1;
  s = choose_size(state, builder, diag);
  if (!s) s = make_slices(state, builder, diag);
  if (!s) s = find_mirrored(state, builder, diag);
  if (s) return s;
  builder->work.units = state->slices;
  (is_read_once(state) ? build_once : build_region)(builder, state);
  return predict(builder, state, diag);
}

/* ---- the visit */

/* A block's nonzeros are in its slot; returns its presence bits. */
static uint64_t visit_block(const struct state *state, const struct cb_tile *block, int rows, int64_t slot,
                            const struct cb_walk *walk) {
  uint64_t present = 0;
  for (int i = 0; i < rows; i++)
    for (int64_t k = block->first[i]; k < block->end[i]; k++) {
      const int64_t j = i * state->size.cols + state->csr->col_idx[k] - block->column * state->size.cols;
      cb_emit_nonzero(walk, value_slot(state, slot, j), k);
      present |= UINT64_C(1) << j;
    }
  return present;
}

/* Nonzeros of a block above the main diagonal are read from the slots of their mirror images. */
static void visit_mirrored(const struct state *state, const struct cb_tile *block, int rows, int64_t slot,
                           const struct cb_walk *walk) {
  for (int i = 0; i < rows; i++)
    for (int64_t k = block->first[i]; k < block->end[i]; k++) {
      const int64_t j = state->csr->col_idx[k] - block->column * state->size.cols;
      cb_emit_mirrored(walk, value_slot(state, slot, j * state->size.cols + i), k);
    }
}

/* Tells the place of a block's values. Returns the slot, which is the block's own, or that of its mirror image. */
static int64_t visit_place(const struct state *state, int64_t block_row, int64_t slot, int64_t k, int64_t column,
                           const struct cb_walk *to) {
  const int turned = column > block_row;
  const int64_t there = turned ? own_slot_in(state, column, block_row) : own_slot(state, block_row, k);
  cb_emit_element(to, state->steps * LANES + slot, (uint32_t)(2 * there + turned));
  return there;
}

/* Blocks on and below the main diagonal are stored, with their columns' places; the others are their images. */
static void visit_once(const struct state *state, int64_t block_row, struct cb_tile_walk *walk,
                       const struct cb_walk *to) {
  const struct cb_lower_blocks lower = lower_blocks(state);
  struct cb_tile block;
  for (int64_t k = 0; cb_tile_walk_next(walk, &block); k++) {
    if (block.column > block_row) {
      visit_mirrored(state, &block, walk->rows, own_slot_in(state, block.column, block_row), to);
      continue;
    }
    const int64_t slot = own_slot(state, block_row, k);
    const int64_t place = cb_outer_place(&state->outer, &lower, block_row / (WARPS * LANES), block.column);
    cb_emit_element(to, slot, (uint32_t)place + 1);
    visit_block(state, &block, walk->rows, slot, to);
  }
}

/* Column offsets belong to blocks, so their slots are those of blocks. */
static void visit_local_row(const struct state *state, int64_t slice, int64_t in_slice, unsigned char *presence,
                        const struct cb_walk *to) {
  const int64_t bytes = cb_blocks_presence_bytes(state->size);
  const int64_t block_row = block_row_at(state, slice * slice_rows(state) + in_slice);
  struct cb_tile_walk walk = blocks_at(state, slice, in_slice);
  struct cb_tile block;
  if (is_read_once(state)) {
    visit_once(state, block_row, &walk, to);
    return;
  }
  for (int64_t k = 0; cb_tile_walk_next(&walk, &block); k++) {
    int64_t slot = slot_of(state, slice, in_slice, turn_of(state, block_row, block.column, k));
    cb_emit_element(to, slot, (uint32_t)(block.column - state->first_column[slice]));
    if (is_mirrored(state)) slot = visit_place(state, block_row, slot, k, block.column, to);
    if (is_mirrored(state) && block.column > block_row) {
      visit_mirrored(state, &block, walk.rows, slot, to);
      continue;
    }
    const uint64_t present = visit_block(state, &block, walk.rows, slot, to);
    for (int64_t b = 0; presence && b < bytes; b++) presence[slot * bytes + b] = (unsigned char)(present >> 8 * b);
  }
}

static int blocks_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *walk) {
  const struct state *state = user;
  unsigned char *presence = cb_walk_bytes(walk, "present");
  for (int64_t slice = first; slice < end; slice++)
    for (int64_t i = 0; i < slice_rows(state); i++) visit_local_row(state, slice, i, presence, walk);
  return 1;
}

/* For reports. */
static int64_t block_of(const void *user, struct cb_met met) {
  return met.unit / block_slices(user);
}

/* ---- packing on the device: templates/pack_blocks.cu.in has the same numbers and lists */

static void describe(const void *user, struct cb_pack_lists *lists) {
  enum { SLICES, LANES_LOG2, BLOCK_ROWS, NUMBER_OF_ROWS, TILE_ROWS, TILE_COLS, VECTOR, PRESENCE_BYTES };
  const struct state *state = user;
  const int64_t slices = state->slices;
  int log2 = 0;
  while (1 << log2 < state->lanes) log2++;
  *lists = (struct cb_pack_lists){
      .numbers = {[SLICES] = slices, [LANES_LOG2] = log2, [BLOCK_ROWS] = state->block_rows,
                  [NUMBER_OF_ROWS] = state->csr->rows, [TILE_ROWS] = state->size.rows, [TILE_COLS] = state->size.cols,
                  [VECTOR] = is_whole(state) ? 0 : state->vector,
                  [PRESENCE_BYTES] = cb_blocks_presence_bytes(state->size)},
      .lists = {{state->first_slot, (slices + 1) * (int64_t)sizeof *state->first_slot},
                {state->first_column, slices * (int64_t)sizeof *state->first_column},
                {state->order, state->order ? state->local_rows * (int64_t)sizeof *state->order : 0}},
      .warps = slices,
      .shape_bytes = column_slots(state) * (int64_t)sizeof(uint64_t), /* presence bits of each block */
      .bytes_array = "present",
  };
}

const struct cb_layout cb_layout_blocks = {
    .name = "blocks",
    .summary = "natural dense blocks in sliced ELL, one column offset per block",
    .source = "-",
    .options = cb_blocks_options,
    .options_count = BLOCKS_OPTIONS,
    .recipes = cb_blocks_recipes,
    .plan = blocks_plan,
    .has_family = 1,
    .visit = blocks_visit,
    .describe = describe,
    .unit = "slice",
    .block_of = block_of,
};
