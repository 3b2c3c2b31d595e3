// SPDX-License-Identifier: Apache-2.0
/* Patterns: rows whose columns repeat name them by one number, and the columns are constants of the text. A block row
 * is one row, or the rows of a node (census.h); a warp takes a slice of 32 block rows, a lane one of them. All
 * patterns together have at most 64 different offsets. The lanes of a slice meet them one after the other, each those
 * that its block row has, so that a warp's loads of x are neighbours, and so are those of values:
 *
 *   padded  each lane has its place at each offset that some lane of the slice has
 *             slot = (first_slot(slice) + offsets before) * 32 * area + 32 * j + lane
 *           or, with values j to j + vector - 1 of a lane side by side for one load, … + 32 * j + vector * lane
 *   packed  only lanes with a block have one, and nothing but nonzeros is stored
 *             slot = first_slot(slice) * area + (blocks before) * area + j * (lanes with a block) + (those before)
 *
 * where j is the value's number in its block of `area` entries, row by row. A lane loads and multiplies what its block
 * row has, so padding needs no zeros and meets no x.
 *
 * A thread block takes neighbouring slices, or such as lie a stride apart: if the farther offsets are about that far,
 * what one warp reads of x is what another one has read, and L1 has it.
 *
 * How to read it: patterns_plan near the end calls the passes in order.
 */
#include "analysis/layout.h"

#include "analysis/layouts/patterns/options.h"
#include "analysis/layouts/patterns/census.h"
#include "analysis/cost_figures.h"
#include "analysis/sectors.h"
#include "analysis/slices.h"

#include "base/memory.h"

#include <stdlib.h>

enum { WARPS = 8, BITS_OF_BYTE = 8, UNROLLED = 8, MOST_SLICES = 8 };

struct state {
  struct cb_arena arena;
  const struct cb_csr *csr;
  const struct cb_patterns *patterns;
  struct cb_patterns own; /* what it points to unless the split found it; its lists are in the arena */
  int64_t area;           /* entries of a block */
  int packed;
  int direct;             /* a block row stores its pattern's bits, not its number */
  int64_t batch, repeats, stride;
  int64_t vector;         /* values of a block that a lane loads at once */
  int64_t slices;         /* whole thread blocks of them */
  int64_t *first_slot;    /* by slice: blocks before it (packed), or offsets of the slices before it */
};

/* ---- patterns of block rows: need nothing; add the patterns */

static enum cb_status refuse(struct cb_diag *diag) {
  return cb_fail(diag, CB_ERR_UNSUPPORTED, "not all rows have columns that repeat; use recipe 'patterns', which splits "
                                           "off the others");
}

/* Those that the split found, else all of the part must have some. */
static enum cb_status find_patterns(struct state *state, const struct cb_region_builder *builder,
                                    struct cb_diag *diag) {
  state->patterns = cb_part_found(&builder->work.part, CB_FOUND_PATTERNS);
  if (state->patterns) return CB_OK;
  const int64_t *settings = builder->settings;
  const struct cb_pattern_wish wish = {(int)settings[PATTERNS_SIZE], settings[PATTERNS_USES], 100};
  enum cb_status s = cb_patterns_find(&state->own, state->csr, &wish, diag);
  if (s == CB_ERR_UNSUPPORTED) return refuse(diag);
  if (s) return s;
  unsigned char *pattern_of = cb_arena_copy(&state->arena, state->own.pattern_of, (size_t)state->own.block_rows, 1);
  cb_free(state->own.pattern_of);
  state->own.pattern_of = pattern_of;
  state->patterns = &state->own;
  return CB_OK;
}

static uint64_t mask_at(const struct state *state, int64_t block_row) {
  const struct cb_patterns *patterns = state->patterns;
  const int pattern = block_row < patterns->block_rows ? patterns->pattern_of[block_row] : CB_PATTERN_NONE;
  return pattern == CB_PATTERN_NONE ? 0 : patterns->mask[pattern];
}

/* ---- slices: need the patterns; add the shape of thread blocks, and where slots begin */

/* What a thread block's warps read of x at offsets, in block rows: intervals of 32 from each of these on. */
static int compare(const void *one, const void *other) {
  const int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
  return (a > b) - (a < b);
}

static int64_t block_rows_read(const struct state *state, int64_t slices, int64_t stride) {
  int64_t first[WARPS * MOST_SLICES * CB_PATTERN_OFFSETS], count = 0, block_rows = 0, end = INT64_MIN;
  for (int64_t slice = 0; slice < slices; slice++)
    for (int d = 0; d < state->patterns->offsets; d++)
      first[count++] = slice * stride * CB_LANES + state->patterns->offset[d];
  qsort(first, (size_t)count, sizeof *first, compare);
  for (int64_t i = 0; i < count; i++) {
    block_rows += first[i] + CB_LANES - cb_larger(first[i], end);
    end = first[i] + CB_LANES;
  }
  return block_rows;
}

/* A stride of about one of the offsets, if it spares a tenth of what multiprocessors fetch from L2. */
static int64_t choose_stride(const struct state *state, const struct cb_region_builder *builder) {
  enum { PART = 10, LEAST_BANDS = 8 };
  const struct cb_patterns *patterns = state->patterns;
  const int64_t slices = WARPS * state->repeats, of_x = patterns->size * (int64_t)cb_type_size(builder->vector_type);
  const int64_t blocks = cb_divide_up(patterns->block_rows, slices * CB_LANES);
  const int64_t values = state->csr->nnz * builder->value_bytes / blocks;
  const int64_t near = block_rows_read(state, slices, 1);
  int64_t best = 1, least = near - (values / of_x + near) / PART;
  for (int d = 0; d < patterns->offsets; d++) {
    const int64_t stride = (patterns->offset[d] + CB_LANES / 2) / CB_LANES;
    if (stride <= slices || patterns->block_rows < stride * CB_LANES * slices * LEAST_BANDS) continue;
    const int64_t block_rows = block_rows_read(state, slices, stride);
    if (block_rows >= least) continue;
    least = block_rows;
    best = stride;
  }
  return best;
}

/* Values in registers of a batch: what was fastest for finite elements of three unknowns (4 blocks of 9 values, 3 of
 * half types, 1 of two doubles: 57.8 us, where 4 take 65.1); for rows 8 offsets. */
static int64_t choose_batch(const struct state *state, const struct cb_region_builder *builder) {
  enum { VALUES = 36, NARROW_VALUES = 27, WIDE_VALUES = 9, MOST = 8 };
  const int64_t offsets = state->patterns->offsets, wanted = builder->settings[PATTERNS_BATCH];
  const int64_t values = cb_region_is_wide(builder) ? WIDE_VALUES : builder->value_bytes > 2 ? VALUES : NARROW_VALUES;
  const int64_t most = wanted ? wanted : cb_larger(1, cb_smaller(MOST, values / state->area));
  return cb_divide_up(offsets, cb_divide_up(offsets, most));
}

/* Slices of a warp: several where there are few loads for each, and slices enough for a while. */
static int64_t choose_repeats(const struct state *state, const struct cb_region_builder *builder) {
  enum { SEVERAL = 4, SEVERAL_NARROW = 2, WARPS_AT_ONCE = 64, WAVES = 2 };
  const int64_t slices = state->patterns->block_rows / CB_LANES, wanted = builder->settings[PATTERNS_SLICES];
  const int64_t enough = (int64_t)builder->target->multiprocessors * WARPS_AT_ONCE * WAVES * SEVERAL;
  if (wanted) return wanted;
  if (state->patterns->offsets > UNROLLED || state->area > 1 || slices < enough) return 1;
  return builder->value_bytes > 4 ? SEVERAL : SEVERAL_NARROW;
}

static void choose_shape(struct state *state, const struct cb_region_builder *builder) {
  const int64_t *settings = builder->settings;
  state->area = (int64_t)state->patterns->size * state->patterns->size;
  state->direct = state->patterns->offsets <= BITS_OF_BYTE;
  state->batch = choose_batch(state, builder);
  state->repeats = choose_repeats(state, builder);
  state->stride = settings[PATTERNS_STRIDE] ? settings[PATTERNS_STRIDE] : choose_stride(state, builder);
  const int64_t of_band = WARPS * state->repeats * state->stride;
  state->slices = cb_divide_up(cb_divide_up(state->patterns->block_rows, CB_LANES), of_band) * of_band;
}

/* Blocks of a slice, or offsets that some lane has. */
static int64_t slots_of(const struct state *state, int64_t slice, int packed) {
  int64_t blocks = 0;
  uint64_t some = 0;
  for (int64_t lane = 0; lane < CB_LANES; lane++) {
    const uint64_t mask = mask_at(state, slice * CB_LANES + lane);
    blocks += __builtin_popcountll(mask);
    some |= mask;
  }
  return packed ? blocks : __builtin_popcountll(some);
}

/* Padding costs bytes, packing an address and a vote of the warp for each load: finite elements of three unknowns 30^3
 * 11.8 us packed and 9.5 padded, of six unknowns 25^3 33.5 and 27.4. But in double precision those of two and four
 * unknowns take 1.1 to 1.24 times as long padded. */
static int choose_packed(const struct state *state, const struct cb_region_builder *builder) {
  enum { PERCENT = 15, PERCENT_OF_PAIRS = 3 };
  const int64_t wanted = builder->settings[PATTERNS_PAD];
  const int pairs = builder->value_bytes > 4 && (state->area == 4 || state->area == 16);
  int64_t steps = 0;
  if (wanted) return wanted == CB_OFF;
#pragma omp parallel for schedule(static) reduction(+ : steps)
  for (int64_t slice = 0; slice < state->slices; slice++) steps += slots_of(state, slice, 0);
  return steps * CB_LANES * state->area * 100 > state->csr->nnz * (100 + (pairs ? PERCENT_OF_PAIRS : PERCENT));
}

static void make_slices(struct state *state, const struct cb_region_builder *builder) {
  choose_shape(state, builder);
  state->packed = choose_packed(state, builder);
  state->first_slot = cb_arena_alloc(&state->arena, (size_t)state->slices + 1, sizeof *state->first_slot);
  if (!state->first_slot) return;
#pragma omp parallel for schedule(static)
  for (int64_t slice = 0; slice < state->slices; slice++)
    state->first_slot[slice + 1] = slots_of(state, slice, state->packed);
  cb_sum_up(state->first_slot, state->slices);
}

/* ---- the region: needs the slices; adds arrays and text */

static uint64_t row_pattern(const void *user, int64_t block_row) {
  const struct state *state = user;
  if (state->direct) return mask_at(state, block_row);
  const struct cb_patterns *patterns = state->patterns;
  const int pattern = block_row < patterns->block_rows ? patterns->pattern_of[block_row] : CB_PATTERN_NONE;
  return (uint64_t)(pattern == CB_PATTERN_NONE ? patterns->count : pattern);
}

/* Lines of a table; the last element is 0. */
static void build_table(struct cb_region_builder *builder, const char *placeholder, int64_t count,
                        const struct state *state,
                        void (*add)(struct cb_text *text, const struct state *state, int64_t i)) {
  enum { PER_LINE = 12 };
  struct cb_text text = {0};
  for (int64_t i = 0; i < count; i++) {
    cb_text_add_string(&text, count > PER_LINE && i % PER_LINE == 0 ? "\n    " : i ? " " : "");
    add(&text, state, i);
    if (i + 1 < count) cb_text_add_string(&text, ",");
  }
  if (text.failed) builder->failed = 1;
  else cb_region_placeholder(builder, placeholder, cb_text_string(&text));
  cb_text_release(&text);
}

static void add_offset(struct cb_text *text, const struct state *state, int64_t i) {
  cb_text_add(text, "%d", i < state->patterns->offsets ? state->patterns->offset[i] : 0);
}

static void add_pattern(struct cb_text *text, const struct state *state, int64_t i) {
  cb_text_add(text, "0x%llx", (unsigned long long)(i < state->patterns->count ? state->patterns->mask[i] : 0));
}

static void build_patterns(struct cb_region_builder *builder, const struct state *state) {
  const struct cb_patterns *patterns = state->patterns;
  cb_region_structure(builder, "kSize", patterns->size, "plan: rows of a block row, and the size of its blocks");
  cb_region_size(builder, "kOffsets", patterns->offsets, "plan: different offsets of blocks");
  cb_region_structure(builder, "kBatch", state->batch, "plan: of them, loads in flight together");
  build_table(builder, "offsets", cb_round_up(patterns->offsets, state->batch), state, add_offset);
  cb_region_placeholder(builder, "pattern_type", patterns->offsets <= 32 ? "uint32_t" : "uint64_t");
  if (!state->direct) build_table(builder, "patterns", patterns->count + 1, state, add_pattern);
  if (!state->direct) cb_region_section(builder, "table");
  if (patterns->offsets > UNROLLED) cb_region_section(builder, "loop");
}

/* Up to 16 bytes: of wide values what divides a block; of narrow ones, which would make many small loads, what fits,
 * and a rest one by one. Packed ones lie where they lie. */
static int64_t vector_of(const struct state *state, int64_t value_bytes) {
  int64_t vector = value_bytes && !state->packed ? 16 / value_bytes : 1;
  while (state->area < vector || (value_bytes > 2 && state->area % vector)) vector /= 2;
  return vector;
}

static void build_facts(struct cb_region_builder *builder, const struct state *state) {
  cb_region_fact(builder, "size", "%d", state->patterns->size);
  cb_region_fact(builder, "patterns", "%d", state->patterns->count);
  cb_region_fact(builder, "offsets", "%d", state->patterns->offsets);
  cb_region_fact(builder, "batch", "%lld", (long long)state->batch);
  if (state->packed) cb_region_fact(builder, "packed", "yes");
  if (state->repeats > 1) cb_region_fact(builder, "slices", "%lld", (long long)state->repeats);
  if (state->stride > 1) cb_region_fact(builder, "stride", "%lld", (long long)state->stride);
}

static void build_arrays(struct cb_region_builder *builder, struct state *state) {
  const int64_t slots = state->first_slot[state->slices] * state->area * (state->packed ? 1 : CB_LANES);
  cb_region_computed(builder, "row_pattern",
                     state->direct ? "bits of a block row's pattern" : "number of a block row's pattern",
                     state->slices * CB_LANES, row_pattern);
  cb_region_streamed(builder);
  cb_region_list(builder, "first_slot",
                 state->packed ? "blocks before a slice" : "offsets of the slices before a slice", state->slices,
                 state->first_slot);
  cb_region_values(builder, "values", "per slice, offset, place in a block and lane", slots);
  state->vector = vector_of(state, builder->value_bytes);
}

static void build_shape(struct cb_region_builder *builder, const struct state *state) {
  const int64_t rows = state->slices * CB_LANES * state->patterns->size;
  if (state->repeats > 1) cb_region_structure(builder, "kRepeats", state->repeats, "plan: slices of a warp");
  if (state->repeats > 1) cb_region_section(builder, "repeats");
  if (state->stride > 1)
    cb_region_size(builder, "kStride", state->stride, "plan: slices from one of a thread block's to the next");
  if (state->stride > 1) cb_region_section(builder, "strided");
  if (state->packed) cb_region_section(builder, "packed");
  if (state->vector > 1) cb_region_structure(builder, "kVector", state->vector, "plan: values that one load reads");
  if (state->vector > 1) cb_region_section(builder, "vectors");
  if (state->area % state->vector) cb_region_section(builder, "rest");
  if (builder->own_rows) cb_region_own_rows(builder);
  if (builder->own_rows || rows > state->csr->rows) cb_region_section(builder, "guarded");
}

/* Thread blocks of a multiprocessor: what leaves registers for a batch's values. */
static int blocks_per_sm(const struct state *state, const struct cb_region_builder *builder) {
  const int64_t values = state->batch * state->area;
  const int64_t registers = values * (int64_t)cb_type_size(builder->sum_type) / 4;
  if (cb_region_is_wide(builder)) return registers <= 4 ? 4 : registers <= 36 ? 3 : registers <= 72 ? 2 : 1;
  if (registers <= 4) return 8;
  if (registers <= 8) return 6;
  if (registers <= 16) return 5;
  return registers <= 32 ? 3 : registers <= 72 ? 2 : 1;
}

/* Those of the last band that have a slice, and all before them. */
static int64_t thread_blocks_of(const struct state *state) {
  const int64_t of_band = WARPS * state->repeats * state->stride, before = state->slices / of_band - 1;
  const int64_t slices = cb_divide_up(state->patterns->block_rows, CB_LANES) - before * of_band;
  return before * state->stride + cb_smaller(slices, state->stride);
}

static void build_region(struct cb_region_builder *builder, struct state *state) {
  enum { REGISTERS = 28 }; /* beside values, entries of X and sums: as compiled */
  const int64_t slices = WARPS * state->repeats;
  build_facts(builder, state);
  build_arrays(builder, state);
  build_patterns(builder, state);
  build_shape(builder, state);
  builder->region.blocks = thread_blocks_of(state);
  builder->region.block_rows = state->stride > 1 ? 0 : slices * CB_LANES * state->patterns->size;
  builder->region.row_threads = state->stride > 1 || state->patterns->size > 1 || state->repeats > 1 ? 0 : 1;
  builder->region.blocks_per_sm = blocks_per_sm(state, builder);
  builder->region.takes_vectors = builder->region.most_lanes = 1;
  builder->region.thread_rows = state->patterns->size;
  builder->region.steps = (struct cb_steps){.steps = state->slices * state->patterns->offsets,
                                            .loads = state->patterns->size * (state->patterns->size + 1),
                                            .columns = state->patterns->size,
                                            .neighbours = state->patterns->size == 1,
                                            .values = (int)(state->batch * state->area),
                                            .entries = state->patterns->size,
                                            .registers = REGISTERS};
}

/* ---- the prediction */

static int64_t slice_at(const struct state *state, int64_t thread_block, int64_t i) {
  const int64_t stride = state->stride, slices = WARPS * state->repeats;
  return (thread_block / stride * slices + i) * stride + thread_block % stride;
}

static void ask_slice(const struct state *state, int64_t slice, struct cb_sector_sink *sink) {
  const struct cb_patterns *patterns = state->patterns;
  for (int d = 0; d < patterns->offsets; d++)
    for (int c = 0; c < patterns->size; c++) {
      cb_sector_load(sink);
      for (int64_t block_row = slice * CB_LANES; block_row < (slice + 1) * CB_LANES; block_row++)
        if (mask_at(state, block_row) >> d & 1)
          cb_sector_ask(sink, (block_row + patterns->offset[d]) * patterns->size + c);
    }
}

static void ask_thread_block(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const struct state *state = user;
  for (int64_t i = 0; i < WARPS * state->repeats; i++) ask_slice(state, slice_at(state, thread_block, i), sink);
}

/* A pattern is loaded before the first batch, and batches follow one another. */
static enum cb_status predict(struct cb_region_builder *builder, const struct state *state, struct cb_diag *diag) {
  const int64_t batches = 1 + cb_divide_up(state->patterns->offsets, state->batch) * state->repeats;
  struct cb_cost *cost = &builder->region.cost;
  cost->chain_ns = batches * CB_COST_BATCH_NS;
  if (state->packed) /* an address for each slot */
    cost->work_ns = state->slices * state->patterns->offsets * CB_COST_PATTERNS_OFFSET_PS /
                    builder->target->multiprocessors / 1000;
  cost->stream_percent = state->packed       ? CB_COST_PATTERNS_PACKED_PERCENT
                         : state->area == 1 ? CB_COST_PATTERNS_ROWS_PERCENT
                                            : CB_COST_PATTERNS_PERCENT;
  /* What the model does not see: eight vectors of FE 56^3 take 163 us, by blocks 138; of a road 186, by dia 170. */
  if (builder->options->vectors > 1) cost->stream_percent = cost->stream_percent * 3 / 4;
  return cb_sectors_predict(builder, state, ask_thread_block, diag);
}

static enum cb_status patterns_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  enum cb_status s = cb_region_state(builder, sizeof(struct state), diag);
  struct state *state = builder->work.state;
  if (s) return s;
  state->csr = builder->work.part.csr;
  s = find_patterns(state, builder, diag);
  if (s) return s;
  if (!state->arena.failed) make_slices(state, builder);
  if (state->arena.failed) return cb_fail_memory(diag, "slices", (uint64_t)state->csr->rows);
  builder->work.units = state->slices;
  build_region(builder, state);
  return predict(builder, state, diag);
}

/* ---- packing */

/* Where the blocks at one offset of a slice lie. */
struct step {
  int64_t first; /* slot */
  int lanes;     /* that have a slot for each value */
};

/* Slot of value j of a block that is number `place` of the step. */
static int64_t slot_of(const struct state *state, struct step step, int place, int64_t j) {
  const int64_t vector = j < state->area / state->vector * state->vector ? state->vector : 1;
  return step.first + j / vector * vector * step.lanes + place * vector + j % vector;
}

/* Nonzeros of a block of the block row, value by value. */
static void emit_block(const struct state *state, int64_t block_row, int64_t block, struct step step, int place,
                       const struct cb_walk *walk) {
  const int64_t size = state->patterns->size;
  for (int64_t j = 0; j < state->area; j++)
    cb_emit_nonzero(walk, slot_of(state, step, place, j),
                    cb_csr_row(state->csr, block_row * size + j / size) + block * size + j % size);
}

/* Blocks at offset number d; `block` counts each block row's. Returns how many lanes have one. */
static int visit_step(const struct state *state, int64_t slice, int d, int64_t first, int64_t block[CB_LANES],
                      const struct cb_walk *walk) {
  int has[CB_LANES], count = 0, place = 0;
  for (int lane = 0; lane < CB_LANES; lane++)
    count += has[lane] = mask_at(state, slice * CB_LANES + lane) >> d & 1;
  const struct step step = {first, state->packed ? count : CB_LANES};
  for (int lane = 0; lane < CB_LANES; lane++)
    if (has[lane])
      emit_block(state, slice * CB_LANES + lane, block[lane]++, step, state->packed ? place++ : lane, walk);
  return count;
}

static void visit_slice(const struct state *state, int64_t slice, const struct cb_walk *walk) {
  int64_t slot = state->first_slot[slice] * state->area * (state->packed ? 1 : CB_LANES);
  int64_t block[CB_LANES] = {0};
  for (int d = 0; d < state->patterns->offsets; d++) {
    const int count = visit_step(state, slice, d, slot, block, walk);
    if (count) slot += state->area * (state->packed ? count : CB_LANES);
  }
}

static int patterns_visit(const void *state, int64_t first, int64_t end, const struct cb_walk *walk) {
  for (int64_t slice = first; slice < end; slice++) visit_slice(state, slice, walk);
  return 1;
}

/* For reports. */
static int64_t block_of(const void *user, struct cb_met met) {
  const struct state *state = user;
  return met.unit / state->stride / (WARPS * state->repeats) * state->stride + met.unit % state->stride;
}

const struct cb_layout cb_layout_patterns = {
    .name = "patterns",
    .summary = "rows whose columns repeat, which are constants of the text",
    .source = "-",
    .options = cb_patterns_options,
    .options_count = PATTERNS_OPTIONS,
    .recipes = cb_patterns_recipes,
    .most_rows = INT32_MAX - (1 << 24), /* those of whole thread blocks are counted, too */
    .plan = patterns_plan,
    .visit = patterns_visit,
    .unit = "slice",
    .block_of = block_of,
    .minds_own_rows = 1,
    .least = {0, CB_COST_PATTERNS_PERCENT, 0, NULL},
};
