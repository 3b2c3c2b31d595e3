// SPDX-License-Identifier: Apache-2.0
/* Slices of blocks: all nonzeros of the part lie in blocks of one shape (analysis/fill.h), 32 rows high, so that one
 * number says the columns of all of a block's places:
 *
 *   column(lane, k) = base + stride * lane + k        k < width
 *
 * A warp takes a slice, a lane a row, and works off the slice's blocks. A block's values lie together:
 *
 *   slot(block, k, lane) = (block * width + k) * 32 + lane
 *
 * so that loads of values are whole lines, and so are those of x: 32 neighbours, or for blocks of 32 columns one load
 * whose elements go round by shuffles.
 *
 * Where slices have about as many blocks each, what a warp must know before it can load values and x is one record of
 * so many words, which its lanes load at once and shuffle:
 *
 *   number of the slice's first block, or 0 if it has none
 *   BIAS + base of each block, 0 instead of blocks that other slices have
 *
 * Else it is two loads, of which the second waits for the first: the slice's first block, then its bases. A warp has
 * several slices where records are, whose loads do not wait for each other.
 *
 * Aligned, slices are rows in their natural order, and a thread block has 256 of them: then the region may share its
 * launch with others. Scattered, each slice says its first row; a region that must write all rows has slices without
 * blocks for those between.
 *
 * A place that holds no nonzero is absent, and stored as 0. Where there are such places there are presence bits, one
 * per slot: a row's sum that is not finite is summed again over the present ones alone. A finite sum needs no second
 * look: NaN or Inf times 0 is NaN, and NaN stays. Where all values are fixed and equal, the presence bits are all that
 * is stored of them, and say for each place whether x is added.
 */
#include "analysis/layout.h"

#include "analysis/layouts/slices/options.h"
#include "analysis/cost_figures.h"
#include "analysis/sectors.h"
#include "base/integers.h"

enum { LANES = CB_FILL_ROWS, WARPS = 8, BLOCK_ROWS = LANES * WARPS, BIAS = 32, MOST_BATCH = 8, LEAST_BATCH = 4 };
/* Rows, those of a whole thread block included, and columns: the text has them in an int. */
enum { MOST = INT32_MAX - 8192 };

struct state {
  struct cb_arena arena;
  const struct cb_csr *csr;
  const struct cb_fill *fill; /* the split's, or `own` */
  struct cb_fill own;         /* in the arena */
  int scattered;
  int64_t slices;        /* all: those without blocks, too */
  uint64_t *first_block; /* of each slice, and one more */
  uint32_t *first_row;   /* likewise, when scattered */
  int64_t longest;       /* blocks of a slice at most */
  int64_t batch;         /* blocks whose loads are in flight together */
  int64_t steps;         /* places for blocks in all batches */
  int64_t record;        /* words of a slice's record; 0: there are none */
  int repeats;           /* slices of a warp */
  int bits;              /* presence bits instead of values */
  int over_edges;        /* some blocks have places in columns that the matrix does not have */
};

static int64_t places(const struct state *state) {
  return cb_fill_count(state->fill);
}

static int64_t absent(const struct state *state) {
  return places(state) - state->fill->nonzeros;
}

/* ---- slices: need the blocks */

/* Natural slices, all of them. */
static int list_aligned(struct state *state) {
  const struct cb_fill *fill = state->fill;
  state->slices = cb_divide_up(state->csr->rows, LANES);
  state->first_block = cb_arena_alloc(&state->arena, (size_t)state->slices + 1, sizeof *state->first_block);
  if (!state->first_block) return 0;
  for (int64_t s = 0; s < fill->slices; s++)
    state->first_block[fill->first_row[s] / LANES + 1] = (uint64_t)(fill->first_block[s + 1] - fill->first_block[s]);
  for (int64_t s = 0; s < state->slices; s++) state->first_block[s + 1] += state->first_block[s];
  return 1;
}

static void add_slice(struct state *state, int64_t row, int64_t first_block) {
  state->first_row[state->slices] = (uint32_t)row;
  state->first_block[state->slices++] = (uint64_t)first_block;
}

/* Slices with blocks, in the order of their rows; with `all`, those without for the rows between, too. */
static int list_scattered(struct state *state, int all) {
  const struct cb_fill *fill = state->fill;
  const int64_t most = fill->slices + (all ? fill->slices + cb_divide_up(state->csr->rows, LANES) : 0) + 1;
  state->first_block = cb_arena_alloc(&state->arena, (size_t)most, sizeof *state->first_block);
  state->first_row = cb_arena_alloc(&state->arena, (size_t)most, sizeof *state->first_row);
  if (!state->first_block || !state->first_row) return 0;
  int64_t row = 0;
  for (int64_t s = 0; s < fill->slices; s++, row += LANES) {
    for (; all && row < fill->first_row[s]; row += LANES) add_slice(state, row, fill->first_block[s]);
    row = fill->first_row[s];
    add_slice(state, row, fill->first_block[s]);
  }
  for (; all && row < state->csr->rows; row += LANES) add_slice(state, row, fill->blocks);
  add_slice(state, all ? state->csr->rows : row, fill->blocks);
  state->slices--; /* the last one is the end */
  return 1;
}

static void find_edges(struct state *state) {
  const struct cb_fill *fill = state->fill;
  const int64_t span = (int64_t)fill->shape->stride * (LANES - 1);
  for (int64_t b = 0; b < fill->blocks; b++) {
    const int64_t first = cb_smaller(fill->column[b], fill->column[b] + span);
    const int64_t last = cb_larger(fill->column[b], fill->column[b] + span) + fill->shape->width - 1;
    state->over_edges |= first < 0 || last >= state->csr->cols;
  }
}

static void find_longest(struct state *state) {
  for (int64_t s = 0; s < state->fill->slices; s++)
    state->longest = cb_larger(state->longest, state->fill->first_block[s + 1] - state->fill->first_block[s]);
}

/* Without a split: all nonzeros must be in blocks of the shape that the settings name. */
static enum cb_status find_own(struct state *state, const struct cb_region_builder *builder, struct cb_diag *diag) {
  const struct cb_csr *csr = state->csr;
  const struct cb_fill_shape *shape = cb_slices_shape(builder->settings);
  struct cb_fill fill;
  if (!shape) return cb_fail(diag, CB_ERR_UNSUPPORTED, "option 'fill-shapes' names no shape for the step");
  enum cb_status s = cb_fill_find(&fill, csr, shape, 1, state->scattered ? CB_FILL_ANYWHERE : CB_FILL_OVER_EDGES, diag);
  if (!s && fill.nonzeros != csr->nnz)
    s = cb_fail(diag, CB_ERR_UNSUPPORTED, "%lld nonzeros are in no block of shape '%s'; use another recipe",
                (long long)(csr->nnz - fill.nonzeros), shape->name);
  if (!s && !cb_fill_keep(&state->own, &fill, &state->arena)) s = cb_fail_memory(diag, "blocks", (uint64_t)fill.blocks * 4);
  cb_fill_release(&fill);
  state->fill = &state->own;
  return s;
}

static enum cb_status find_slices(struct state *state, const struct cb_region_builder *builder, struct cb_diag *diag) {
  state->csr = builder->work.part.csr;
  state->scattered = builder->settings[FILL_ALIGN] == CB_OFF;
  state->fill = cb_part_found(&builder->work.part, CB_FOUND_FILL);
  const enum cb_status s = state->fill ? CB_OK : find_own(state, builder, diag);
  if (s) return s;
  if (state->fill->shape->height != LANES)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "blocks of shape '%s' are no %d rows high; use recipe 'fill'",
                   state->fill->shape->name, LANES);
  find_longest(state);
  find_edges(state);
  const int all = builder->commit == CB_COMMIT_FINAL;
  if (state->scattered ? list_scattered(state, all) : list_aligned(state)) return CB_OK;
  return cb_fail_memory(diag, "slices", (uint64_t)state->csr->rows / LANES * sizeof *state->first_block);
}

/* ---- batches and records: need the slices */

/* Places for blocks in the batches of all slices, which take time whether they hold a block or not. */
static int64_t count_steps(const struct state *state, int64_t batch) {
  const struct cb_fill *fill = state->fill;
  int64_t steps = 0;
  for (int64_t s = 0; s < fill->slices; s++)
    steps += cb_round_up(fill->first_block[s + 1] - fill->first_block[s], batch);
  return steps + (state->slices - fill->slices) * batch;
}

/* The batch with the fewest such places; of as many, the largest, since it has the most loads in flight. */
static void choose_batch(struct state *state) {
  const int64_t most = cb_smaller(cb_larger(state->longest, 1), MOST_BATCH);
  for (int64_t batch = most; batch >= cb_smaller(most, LEAST_BATCH); batch--) {
    const int64_t steps = count_steps(state, batch);
    if (state->batch && steps >= state->steps) continue;
    state->batch = batch;
    state->steps = steps;
  }
}

/* Words that a warp's lanes load at once, unless most of them would say nothing. */
static int64_t choose_record(const struct state *state, const struct cb_region_builder *builder) {
  enum { SHARE = 8 /* of the values' bytes */ };
  const int64_t words = 1 + state->longest, bytes = words * state->slices * (int64_t)sizeof(uint32_t);
  if (state->fill->shape->width > 1 || words > LANES || state->fill->blocks > INT32_MAX / LANES) return 0;
  return SHARE * bytes <= places(state) * (int64_t)cb_type_size(builder->matrix_type) ? words : 0;
}

/* Two where that leaves several waves of thread blocks, measured 2 to 10 % faster; not where registers for both would
 * cost warps: f32 in several batches is then 10 % slower. */
static int choose_repeats(const struct state *state, const struct cb_region_builder *builder) {
  enum { RESIDENT = 6, WAVES = 2, REPEATS = 2 };
  const int64_t fill = (int64_t)WARPS * REPEATS * RESIDENT * WAVES * builder->target->multiprocessors;
  if (!state->record) return 1;
  if (builder->settings[FILL_REPEATS]) return (int)builder->settings[FILL_REPEATS];
  return state->slices < fill || (builder->sum_type == CB_F32 && state->longest > state->batch) ? 1 : REPEATS;
}

/* ---- the region */

/* A block that reaches over the left edge has a negative base. */
static uint64_t base_at(const void *user, int64_t block) {
  const struct state *state = user;
  return (uint64_t)(BIAS + state->fill->column[block]);
}

static uint64_t word_at(const void *user, int64_t i) {
  const struct state *state = user;
  const uint64_t first = state->first_block[i / state->record], end = state->first_block[i / state->record + 1];
  const uint64_t place = (uint64_t)(i % state->record), block = first + place - 1;
  if (!place) return first < end ? first : 0; /* a block that there is */
  return block < end ? base_at(state, (int64_t)block) : 0;
}

static void build_blocks(struct cb_region_builder *builder, const struct state *state) {
  if (state->record) {
    cb_region_computed(builder, "record",
                       "per slice: its first block, then by block 32 and its column in the first row; 0: none",
                       state->slices * state->record, word_at);
    return;
  }
  cb_region_list(builder, "first_block", "blocks before a slice", state->slices + 1, state->first_block);
  cb_region_computed(builder, "base", "32 and a block's column in its first row", state->fill->blocks, base_at);
}

/* Where padding changes nothing (other semirings than plus-times) only what has no values needs the bits. */
static int has_presence(const struct cb_region_builder *builder, const struct state *state) {
  return absent(state) && (state->bits || cb_region_needs_presence(builder));
}

static void build_arrays(struct cb_region_builder *builder, const struct state *state) {
  build_blocks(builder, state);
  if (state->scattered)
    cb_region_list(builder, "first_row", "first row of a slice", state->slices + 1, state->first_row);
  if (absent(state) && !state->bits) cb_region_zero_slots(builder);
  cb_region_values(builder, "values", "per block, column and row", places(state));
  if (has_presence(builder, state))
    cb_region_bytes(builder, "presence", "a bit per slot: it holds a nonzero", places(state) / 8);
}

static void build_facts(struct cb_region_builder *builder, const struct state *state) {
  cb_region_fact(builder, "shape", "%s", state->fill->shape->name);
  cb_region_fact(builder, "slices", "%lld", (long long)state->slices);
  cb_region_fact(builder, "blocks", "%lld", (long long)state->fill->blocks);
  cb_region_fact(builder, "absent", "%lld", (long long)absent(state));
  if (state->record) cb_region_fact(builder, "repeats", "%d", state->repeats);
  if (state->scattered) cb_region_fact(builder, "scattered", "yes");
}

/* What the last thread block lacks, and which rows of slices are written. */
static void build_guards(struct cb_region_builder *builder, const struct state *state) {
  if (state->scattered) cb_region_section(builder, "scattered");
  if (state->scattered && builder->commit == CB_COMMIT_FINAL) cb_region_section(builder, "all_rows");
  if (!state->scattered && state->csr->rows % LANES) cb_region_section(builder, "short_slice");
  if (state->slices % (WARPS * state->repeats)) {
    cb_region_section(builder, "guard");
    cb_region_size(builder, "kSlices", state->slices, "plan: slices of 32 rows");
  }
}

static void build_sections(struct cb_region_builder *builder, const struct state *state) {
  const struct cb_fill_shape *shape = state->fill->shape;
  if (state->record) {
    cb_region_section(builder, "records");
    cb_region_structure(builder, "kRecord", state->record, "plan: words that say what blocks a slice has");
    if (state->repeats > 1) cb_region_structure(builder, "kRepeats", state->repeats, "plan: slices of a warp");
    if (state->repeats > 1) cb_region_section(builder, "repeats");
  }
  if (shape->width > 1) {
    cb_region_section(builder, "wide");
  } else {
    cb_region_size(builder, "kStride", shape->stride, "plan: from a block's column in one row to that in the next");
    cb_region_structure(builder, "kBatch", state->batch, "plan: blocks whose loads are in flight together");
    if (state->longest > state->batch) cb_region_section(builder, "more");
  }
  if (has_presence(builder, state)) cb_region_section(builder, state->bits ? "bits" : "absent");
  if (state->over_edges) cb_region_section(builder, "edges");
  build_guards(builder, state);
}

static void build_region(struct cb_region_builder *builder, const struct state *state) {
  build_facts(builder, state);
  build_arrays(builder, state);
  build_sections(builder, state);
  const int once = state->longest <= state->batch && state->repeats == 1;
  const int few = once && state->fill->shape->width == 1;
  const int narrow = few && (state->batch <= LEAST_BATCH || builder->sum_type == CB_F32);
  builder->region.blocks = cb_divide_up(state->slices, WARPS * state->repeats);
  builder->region.block_rows = state->scattered ? 0 : BLOCK_ROWS * state->repeats;
  builder->region.row_threads = state->scattered ? 0 : 1;
  /* 32 or 40 registers: enough for a batch's loads; full multiprocessors where 32 are */
  builder->region.blocks_per_sm =
      cb_region_blocks_for(builder, narrow ? 8 : state->repeats > 1 && builder->sum_type == CB_F64 ? 5 : 6);
}

/* ---- prediction */

/* A warp's loads of x are neighbours, and so whole lines. */
static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const struct state *state = user;
  const int64_t first = thread_block * WARPS * state->repeats;
  const int64_t end = cb_smaller(first + WARPS * state->repeats, state->slices);
  for (int64_t block = (int64_t)state->first_block[first]; block < (int64_t)state->first_block[end];
       block++) {
    cb_sector_load(sink);
    for (int lane = 0; lane < LANES; lane++) {
      const int64_t step = state->fill->shape->width > 1 ? 1 : state->fill->shape->stride;
      const int64_t column = state->fill->column[block] + step * lane;
      if (column >= 0 && column < state->csr->cols) cb_sector_ask(sink, column);
    }
  }
}

/* A slice's batches follow one another, behind the loads that say where its blocks are. Of whole lines L2 gives about
 * twice as many sectors a second as of scattered ones, whose rate the prediction knows. */
static enum cb_status predict(struct cb_region_builder *builder, const struct state *state, struct cb_diag *diag) {
  enum { WHOLE_LINES = 2, INSTRUCTIONS = 15 /* for a place in a batch, and for a slice */ };
  const int64_t width = state->fill->shape->width, wait = state->record ? 1 : 2;
  const int64_t batches = width > 1 ? state->longest * width / MOST_BATCH : cb_divide_up(state->longest, state->batch);
  const int64_t instructions = INSTRUCTIONS * (state->steps * width + state->slices);
  builder->region.cost.chain_ns = (wait + state->repeats * batches) * CB_COST_BATCH_NS;
  builder->region.cost.tail_ns = CB_COST_SLICES_NS;
  builder->region.cost.work_ns = instructions * CB_COST_INSTRUCTION_PS / builder->target->multiprocessors / 1000;
  builder->region.cost.stream_percent = CB_COST_SLICES_PERCENT;
  const enum cb_status s = cb_sectors_predict(builder, state, visit_sectors, diag);
  builder->region.cost.sectors = cb_divide_up(builder->region.cost.sectors, WHOLE_LINES);
  return s;
}

static enum cb_status slices_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  enum cb_status s = cb_region_state(builder, sizeof(struct state), diag);
  struct state *state = builder->work.state;
  if (s) return s;
  if (builder->work.part.csr->cols > MOST) /* bases are biased */
    return cb_fail(diag, CB_ERR_LIMIT, "%lld columns exceed the slices layout's %d",
                   (long long)builder->work.part.csr->cols, MOST);
  s = find_slices(state, builder, diag);
  if (s) return s;
  state->bits = absent(state) && !builder->value_bytes;
  choose_batch(state);
  state->record = choose_record(state, builder);
  state->repeats = choose_repeats(state, builder);
  builder->work.units = state->fill->slices;
  build_region(builder, state);
  return predict(builder, state, diag);
}

/* ---- packing */

static void visit_row(const struct state *state, int64_t slice, int64_t lane, unsigned char *presence,
                      const struct cb_walk *walk) {
  const struct cb_fill *fill = state->fill;
  const struct cb_csr *csr = state->csr;
  const int64_t row = fill->first_row[slice] + lane;
  int64_t cursor = fill->first_block[slice];
  for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
    const int64_t block = cb_fill_block(fill, slice, lane, csr->col_idx[k], &cursor);
    const int64_t place = csr->col_idx[k] - fill->shape->stride * lane - fill->column[block];
    const int64_t slot = (block * fill->shape->width + place) * LANES + lane;
    if (presence) presence[slot / 8] |= (unsigned char)(1 << slot % 8);
    cb_emit_nonzero(walk, slot, k);
  }
}

/* No byte of presence bits belongs to two blocks. */
static int slices_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *walk) {
  const struct state *state = user;
  unsigned char *presence = cb_walk_bytes(walk, "presence");
  for (int64_t slice = first; slice < end; slice++)
    for (int64_t lane = 0; lane < cb_fill_rows(state->fill, state->csr, slice); lane++)
      visit_row(state, slice, lane, presence, walk);
  return 1;
}

/* For reports. */
static int64_t block_of(const void *user, struct cb_met met) {
  return met.unit / (WARPS * ((const struct state *)user)->repeats);
}

const struct cb_layout cb_layout_slices = {
    .name = "slices",
    .summary = "blocks of 32 rows with a column number each",
    .source = "FBCSR",
    .options = cb_slices_options,
    .options_count = SLICES_OPTIONS,
    .recipes = cb_slices_recipes,
    .least = {.percent = CB_COST_SLICES_PERCENT},
    .plan = slices_plan,
    .visit = slices_visit,
    .unit = "slice",
    .block_of = block_of,
    .most_rows = MOST,
};
