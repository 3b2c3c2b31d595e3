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
#include "analysis/layouts/blocks/options.h"
#include "analysis/plan/cost_figures.h"
#include "analysis/sectors.h"
#include "analysis/slices.h"
#include "analysis/tiles.h"

enum {
  WARPS = 8,
  LANES = CB_LANES,
  LONGEST = 512,   /* steps of a lane; more take too long one after the other */
  CHUNK = 64,      /* block rows that are counted together */
  INDEX_BYTES = 2  /* of a column offset, as a rule */
};

struct state {
  struct cb_arena arena;
  const struct cb_csr *csr;
  struct cb_tile_size size;
  int64_t block_rows, blocks; /* blocks: those with a nonzero */
  uint32_t *count;            /* by block row: its blocks */
  int64_t equal;              /* blocks of every block row, or 0 */
  int64_t padding;            /* blocks of a place without a block row: `equal` or 0 */
  int lanes;                  /* that share a block row */
  int64_t slices, places;
  int32_t *order;      /* by place: block row, or that behind the last; NULL: in order */
  int64_t *first_step; /* by slice: steps before it; slices + 1 */
  int64_t steps;       /* of all slices */
  int64_t longest;     /* steps of a lane */
  uint32_t *first_column; /* by slice: of blocks */
  int64_t vector;      /* values of a lane that one load reads; 1 until they are chosen */
  int absent;          /* some block has an entry that the matrix lacks */
  int cut;             /* some block reaches over the right edge */
};

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
static int auto_size(const struct cb_csr *csr, const int64_t *settings,
                     const struct cb_target *target, int64_t value_bytes) {
  int64_t blocks[CB_TILE_SIZES], least = INT64_MAX;
  int best = -1;
  for (int i = 0; i < CB_TILE_SIZES; i++) {
    blocks[i] = -1;
    if ((cb_tile_sizes[i].within[0] >= 0 && blocks[cb_tile_sizes[i].within[0]] < 0) ||
        (cb_tile_sizes[i].within[1] >= 0 && blocks[cb_tile_sizes[i].within[1]] < 0))
      continue;
    blocks[i] = blocks_if_full(csr, cb_tile_sizes[i], settings[BLOCKS_FILL]);
    if (blocks[i] < 0 || !cb_tiles_are_enough(cb_tile_sizes[i], blocks[i], target)) continue;
    const int64_t bytes = stored_bytes(csr, cb_tile_sizes[i], blocks[i], value_bytes);
    if (bytes >= least) continue;
    least = bytes;
    best = i;
  }
  return best;
}

static enum cb_status choose_size(struct state *state, const struct cb_region_builder *builder, struct cb_diag *diag) {
  const int64_t *settings = builder->settings;
  const int64_t value_bytes = builder->value_bytes;
  int best = (int)settings[BLOCKS_SIZE] - 1;
  if (best < 0)
    best = auto_size(state->csr, settings, builder->target, value_bytes);
  else if (blocks_if_full(state->csr, cb_tile_sizes[best], settings[BLOCKS_FILL]) < 0)
    best = -1;
  if (best < 0)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "no natural blocks%s are %lld %% full; use another recipe, or lower 'block-fill'",
                   settings[BLOCKS_SIZE] ? " of that size" : "", (long long)settings[BLOCKS_FILL]);
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
  return state->order ? state->order[place] : cb_smaller(place, state->block_rows);
}

static int64_t length_at(const struct state *state, int64_t place) {
  const int64_t block_row = block_row_at(state, place);
  return block_row == state->block_rows ? state->padding : (int64_t)state->count[block_row];
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
static int64_t block_bytes(const struct state *state, const struct cb_region_builder *builder) {
  return builder->value_bytes ? cb_tile_area(state->size) * builder->value_bytes : INDEX_BYTES;
}

static int fits_l2(const struct state *state, const struct cb_region_builder *builder) {
  return state->blocks * block_bytes(state, builder) * 2 < builder->target->l2_bytes;
}

/* Padding is bytes: 15 % of them where they come from memory, more in L2, some in any case. */
static int pads_too_much(const struct state *state, const struct cb_region_builder *builder, int64_t steps) {
  enum { PERCENT = 15, PERCENT_IN_L2 = 30, SLACK = 1 << 18 };
  const int64_t percent = fits_l2(state, builder) ? PERCENT_IN_L2 : PERCENT;
  const int64_t slack = SLACK / block_bytes(state, builder);
  return (steps * LANES - slack) * 100 > state->blocks * (100 + percent);
}

/* Lanes per block row: as many as it takes to give each multiprocessor 512 threads, but two to four blocks
 * for each lane, and more when a lane's chain is long; fewer when too many places of the last step would stay
 * empty. */
static void choose_lanes(struct state *state, const struct cb_region_builder *builder) {
  const int64_t mean = state->blocks / state->block_rows;
  const int64_t threads = 512 * (int64_t)builder->target->multiprocessors;
  int lanes = (int)builder->settings[BLOCKS_LANES];
  set_lanes(state, lanes ? lanes : 1);
  if (lanes) return;
  lanes = 1;
  while (lanes < LANES && (state->block_rows * lanes < threads || mean >= 64 * lanes) && mean >= 4 * lanes)
    lanes *= 2;
  set_lanes(state, lanes);
  while (state->lanes > 1 && pads_too_much(state, builder, count_steps(state)))
    set_lanes(state, state->lanes / 2);
}

static int64_t blocks_of(const void *state, int64_t block_row) {
  return ((const struct state *)state)->count[block_row];
}

/* Most blocks first within a window, if that must be; all over LONGEST alike. Sorting must save a tenth of the slots,
 * or be what makes them few enough; in L2 the order's load weighs more, and so does a launch that another region could
 * share. Returns the steps. */
static int64_t choose_order(struct state *state, const struct cb_region_builder *builder) {
  const int64_t steps = count_steps(state);
  const int too_much = pads_too_much(state, builder, steps);
  if (state->equal || !(too_much || (!builder->may_be_joined && !fits_l2(state, builder)))) return steps;
  struct cb_arena trial = {0};
  state->order = cb_sorted_rows(&trial, state->block_rows, state->places, LONGEST, blocks_of, state);
  if (!too_much && state->order && count_steps(state) * 10 > steps * 9) {
    state->order = NULL;
    cb_arena_release(&trial);
  }
  cb_arena_join(&state->arena, &trial);
  return count_steps(state);
}

static enum cb_status check_slices(const struct state *state, const struct cb_region_builder *builder,
                                   struct cb_diag *diag) {
  if (pads_too_much(state, builder, state->steps))
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "block rows differ so much that %lld blocks take %lld slots; use "
                   "another recipe",
                   (long long)state->blocks, (long long)state->steps * LANES);
  if (state->longest > LONGEST)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "a lane would take %lld steps, more than %d; use another recipe",
                   (long long)state->longest, LONGEST);
  return CB_OK;
}

static enum cb_status make_slices(struct state *state, const struct cb_region_builder *builder, struct cb_diag *diag) {
  int64_t nonzeros;
  state->count = cb_arena_alloc(&state->arena, (size_t)state->block_rows, sizeof *state->count);
  if (!state->count) return cb_fail_memory(diag, "block counts", (uint64_t)state->block_rows * 4);
  state->blocks = count_blocks(state->csr, state->size, 1, state->count, &nonzeros);
  state->equal = equal_count(state);
  choose_lanes(state, builder);
  state->steps = choose_order(state, builder);
  const enum cb_status s = state->arena.failed ? CB_OK : check_slices(state, builder, diag);
  if (s) return s;
  state->first_step = cb_arena_alloc(&state->arena, (size_t)state->slices + 1, sizeof *state->first_step);
  if (!state->first_step) return cb_fail_memory(diag, "slices", (uint64_t)state->slices * 8);
  for (int64_t slice = 0; slice < state->slices; slice++) state->first_step[slice + 1] = steps_of_slice(state, slice);
  cb_sum_up(state->first_step, state->slices);
  return CB_OK;
}

/* ---- the region: needs the slices; adds arrays and sections */

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
    if (block_row == state->block_rows) continue;
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

/* What blocks come to: entries within the matrix, blocks over its right edge, the largest offset of a column. */
struct extent {
  int64_t inner, cut, largest;
};

static void measure_slice(const struct state *state, int64_t slice, struct extent *extent) {
  const int64_t places = LANES / state->lanes, first = first_column(state, slice);
  state->first_column[slice] = (uint32_t)first;
  for (int64_t i = 0; i < places; i++) {
    const int64_t block_row = block_row_at(state, slice * places + i);
    if (block_row == state->block_rows) continue;
    struct cb_tile_walk walk = cb_tile_walk_open(state->csr, state->size, block_row);
    struct cb_tile block;
    while (cb_tile_walk_next(&walk, &block)) {
      extent->inner += inner_area(state, walk.rows, block.column);
      extent->cut += (block.column + 1) * state->size.cols > state->csr->cols;
      extent->largest = cb_larger(extent->largest, block.column - first);
    }
  }
}

/* Fills in first columns; returns the largest offset from one. On the way absent entries and blocks over the right edge
 * are found. */
static int64_t measure_columns(struct state *state) {
  int64_t inner = 0, cut = 0, largest = 0;
#pragma omp parallel for schedule(static) reduction(+ : inner, cut) reduction(max : largest)
  for (int64_t slice = 0; slice < state->slices; slice++) {
    struct extent extent = {0};
    measure_slice(state, slice, &extent);
    inner += extent.inner;
    cut += extent.cut;
    largest = cb_larger(largest, extent.largest);
  }
  state->absent = inner > state->csr->nnz;
  state->cut = cut > 0;
  return largest;
}

static void build_columns(struct cb_region_builder *builder, struct state *state) {
  state->first_column = cb_arena_alloc(&state->arena, (size_t)state->slices, sizeof *state->first_column);
  builder->failed |= !state->first_column;
  if (builder->failed) return;
  const int64_t largest = measure_columns(state);
  cb_region_list(builder, "first_column", "least block column of a slice", state->slices, state->first_column);
  cb_region_by_slot(builder, "column_offset", "block column of a slot, from its slice's first",
                    (struct cb_slot_elements){.count = state->steps * LANES, .largest = largest});
}

static uint64_t local_row_length(const void *state, int64_t place) { return (uint64_t)length_at(state, place); }

static void build_places(struct cb_region_builder *builder, const struct state *state) {
  cb_region_computed(builder, "local_row_length", "blocks of a local row", state->places, local_row_length);
  if (!state->order) return;
  cb_region_section(builder, "sorted");
  cb_region_list(builder, "row_of", "block row of a local row; behind the last one: none", state->places, state->order);
}

/* What some lanes must not do: add to others' sums, read past x, write past y. */
static void build_guards(struct cb_region_builder *builder, const struct state *state) {
  const int shared = state->lanes > 1, guarded = state->places * state->size.rows > state->csr->rows;
  if (shared) cb_region_structure(builder, "kLanes", state->lanes, "plan: lanes that share a block row");
  if (shared) cb_region_section(builder, "shared");
  if (guarded) cb_region_section(builder, "guarded");
  if (state->cut) cb_region_section(builder, "cut");
}

static void build_presence(struct cb_region_builder *builder, const struct state *state) {
  static const char *const types[] = {[1] = "uint8_t", [2] = "uint16_t", [4] = "uint32_t", [8] = "uint64_t"};
  const int64_t bytes = presence_bytes(state->size);
  const int again = cb_region_needs_presence(builder); /* sums that are not finite are added up again */
  if (!state->absent || (!again && builder->value_bytes)) return;
  if (again) cb_region_section(builder, "absent");
  cb_region_bytes(builder, "present", "bit j of a slot: the matrix has value j of the block",
                  state->steps * LANES * bytes);
  cb_region_placeholder(builder, "present_type", types[bytes]);
}

/* Blocks whose loads are in flight together: 27 values (finite elements of three unknowns per node: three blocks
 * take 243 µs where one takes 250), or more when there are so few threads on a multiprocessor that each may have the
 * registers. */
static int64_t choose_batch(const struct state *state, const struct cb_region_builder *builder) {
  const int64_t threads = state->slices * LANES / builder->target->multiprocessors;
  const int64_t values = threads <= 512 ? 36 : 27;
  int64_t batch = values / cb_tile_area(state->size);
  if (builder->settings[BLOCKS_BATCH]) batch = builder->settings[BLOCKS_BATCH];
  if (batch > 8) batch = 8;
  if (batch * cb_tile_area(state->size) > 64) batch = 64 / cb_tile_area(state->size); /* more have no registers */
  if (batch > state->longest) batch = state->longest;
  return batch > 1 ? batch : 1;
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
  const int64_t registers = values * (int64_t)cb_type_size(builder->vector_type) / 4;
  if (registers <= 18) return state->absent ? 4 : 5;
  if (registers <= 36) return state->absent ? 2 : 3;
  return registers <= 72 ? 2 : 1;
}

static void build_facts(struct cb_region_builder *builder, const struct state *state) {
  cb_region_fact(builder, "size", "%d %d", state->size.rows, state->size.cols);
  cb_region_fact(builder, "blocks", "%lld", (long long)state->blocks);
  cb_region_fact(builder, "slices", "%lld", (long long)state->slices);
  cb_region_fact(builder, "steps", "%lld", (long long)state->steps);
  cb_region_fact(builder, "lanes", "%d", state->lanes);
  if (state->order) cb_region_fact(builder, "sorted", "yes");
}

static void build_values(struct cb_region_builder *builder, struct state *state) {
  const int64_t area = cb_tile_area(state->size);
  if (state->absent) cb_region_fact(builder, "absent", "%lld", (long long)(state->blocks * area - state->csr->nnz));
  if ((state->absent || state->cut) && builder->value_bytes) cb_region_zero_slots(builder);
  state->vector = vector_of(state->size, builder->value_bytes);
  cb_region_values(builder, "values", "per step, in groups of one load, a group of each lane",
                   state->steps * LANES * area);
}

static void build_region(struct cb_region_builder *builder, struct state *state) {
  build_facts(builder, state);
  cb_region_list(builder, "first_step", "steps before a slice, 32 slots each", state->slices + 1, state->first_step);
  build_columns(builder, state);
  build_values(builder, state);
  build_places(builder, state);
  build_text(builder, state);
  builder->region.blocks = state->slices / WARPS;
  builder->region.block_rows = state->order ? 0 : WARPS * LANES / state->lanes * state->size.rows;
  builder->region.blocks_per_sm = blocks_per_sm(builder, state);
}

static void ask_slice(const struct state *state, int64_t slice, struct cb_sector_sink *sink) {
  const int64_t places = LANES / state->lanes;
  struct cb_tile_walk walks[LANES];
  for (int64_t i = 0; i < places; i++) {
    const int64_t block_row = block_row_at(state, slice * places + i);
    walks[i] = block_row == state->block_rows ? (struct cb_tile_walk){.csr = state->csr}
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
    ask_slice(user, slice, sink);
}

/* A slice's batches follow one another. */
static enum cb_status predict(struct cb_region_builder *builder, const struct state *state, struct cb_diag *diag) {
  const int64_t batch = choose_batch(state, builder);
  builder->region.cost.chain_ns = cb_divide_up(state->longest, batch) * CB_COST_BATCH_NS;
  builder->region.cost.stream_percent = CB_COST_BLOCKS_PERCENT;
  return cb_sectors_predict(builder, state, visit_sectors, diag);
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
  if (s) return s;
  builder->work.units = state->slices;
  build_region(builder, state);
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
      cb_emit_nonzero(walk, value_slot(state->size, state->vector, slot, j), k);
      present |= UINT64_C(1) << j;
    }
  return present;
}

/* Column offsets belong to blocks, so their slots are those of blocks. */
static void visit_place(const struct state *state, int64_t slice, int64_t in_slice, unsigned char *presence,
                        const struct cb_walk *to) {
  const int64_t bytes = presence_bytes(state->size);
  const int64_t block_row = block_row_at(state, slice * (LANES / state->lanes) + in_slice);
  if (block_row == state->block_rows) return;
  struct cb_tile_walk walk = cb_tile_walk_open(state->csr, state->size, block_row);
  struct cb_tile block;
  for (int64_t k = 0; cb_tile_walk_next(&walk, &block); k++) {
    const int64_t slot = slot_of(state, slice, in_slice, k);
    cb_emit_element(to, slot, (uint32_t)(block.column - state->first_column[slice]));
    const uint64_t present = visit_block(state, &block, walk.rows, slot, to);
    for (int64_t b = 0; presence && b < bytes; b++) presence[slot * bytes + b] = (unsigned char)(present >> 8 * b);
  }
}

static int blocks_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *walk) {
  const struct state *state = user;
  unsigned char *presence = cb_walk_bytes(walk, "present");
  for (int64_t slice = first; slice < end; slice++)
    for (int64_t i = 0; i < LANES / state->lanes; i++) visit_place(state, slice, i, presence, walk);
  return 1;
}

const struct cb_layout cb_layout_blocks = {
    .name = "blocks",
    .summary = "natural dense blocks in sliced ELL, one column offset per block",
    .source = "-",
    .options = cb_blocks_options,
    .options_count = BLOCKS_OPTIONS,
    .recipes = cb_blocks_recipes,
    .plan = blocks_plan,
    .visit = blocks_visit,
    .unit = "slice",
};
