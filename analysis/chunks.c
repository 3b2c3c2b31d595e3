// SPDX-License-Identifier: Apache-2.0
/* Chunks of 8 rows: see chunks.h. */
#include "analysis/chunks.h"

#include "analysis/cost_figures.h"
#include "analysis/ordering.h"
#include "analysis/semiring.h"
#include "base/integers.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- columns */

void cb_chunk_walk_open(struct cb_chunk_walk *walk, const struct cb_csr *csr, const struct cb_crux *crux) {
  *walk = (struct cb_chunk_walk){.csr = csr, .crux = crux};
}

static void skip_cold(struct cb_chunk_walk *walk, int i) {
  if (!walk->crux) return;
  while (walk->next[i] < walk->end[i] && !walk->crux->hot_column[walk->csr->col_idx[walk->next[i]]]) walk->next[i]++;
}

void cb_chunk_walk_add(struct cb_chunk_walk *walk, int local_row, int64_t row) {
  walk->next[local_row] = cb_csr_row(walk->csr, row);
  walk->end[local_row] = cb_csr_row(walk->csr, row + 1);
  skip_cold(walk, local_row);
}

struct cb_chunk_walk cb_chunk_walk_of(const struct cb_chunks *chunks, int64_t chunk) {
  struct cb_chunk_walk walk;
  cb_chunk_walk_open(&walk, chunks->csr, NULL);
  for (int i = 0; i < CB_CHUNK_ROWS; i++) {
    const int64_t row = cb_chunks_row(chunks, chunk * CB_CHUNK_ROWS + i);
    if (row < chunks->csr->rows) cb_chunk_walk_add(&walk, i, row);
  }
  return walk;
}

int cb_chunk_walk_next(struct cb_chunk_walk *walk, struct cb_chunk_column *column) {
  const int32_t *columns = walk->csr->col_idx;
  column->column = INT32_MAX;
  column->rows = 0;
  for (int i = 0; i < CB_CHUNK_ROWS; i++)
    if (walk->next[i] < walk->end[i] && columns[walk->next[i]] < column->column)
      column->column = columns[walk->next[i]];
  for (int i = 0; i < CB_CHUNK_ROWS; i++)
    if (walk->next[i] < walk->end[i] && columns[walk->next[i]] == column->column) {
      column->rows |= 1u << i;
      column->nonzero[i] = walk->next[i]++;
      skip_cold(walk, i);
    }
  return column->rows != 0;
}

/* ---- tensor cores */

static int architecture(const struct cb_target *target) {
  return !strncmp(target->arch, "sm_", 3) ? (int)strtol(target->arch + 3, NULL, 10) : 0;
}

enum cb_mma cb_mma_for(struct cb_types types, const struct cb_target *target) {
  enum { LEAST = 80 };
  if (architecture(target) < LEAST) return CB_MMA_NONE;
  if (types.sum == CB_F64) return CB_MMA_F64;
  /* 11 bits of a value: those of f16, and the 8 of bf16. Floats would take three parts, too, and nine products. */
  return types.matrix == CB_F16 || types.matrix == CB_BF16 ? CB_MMA_TF32 : CB_MMA_NONE;
}

int cb_mma_takes_vectors(const struct cb_region_builder *builder, int least) {
  const struct cb_types types = {builder->matrix_type, builder->vector_type, builder->sum_type};
  const struct cb_options *options = builder->options;
  return cb_options_vectors(options) >= least && cb_mma_for(types, builder->target) == CB_MMA_F64 &&
         builder->vector_type == CB_F64 && !cb_type_is_complex(builder->matrix_type) &&
         cb_semiring_has_tensor_cores((enum cb_semiring)options->semiring) && options->symmetric_storage != CB_ON &&
         !builder->work.part_csr && builder->commit == CB_COMMIT_FINAL;
}

/* None, unless the caller asks for it, or warps share units. */
static enum cb_status choose_mma(enum cb_mma *mma, const struct cb_region_builder *builder, struct cb_types types,
                                 int64_t form, int shared, struct cb_diag *diag) {
  const struct cb_target *target = builder->target;
  *mma = form == CB_MMA_ASKED || shared ? cb_mma_for(types, target) : CB_MMA_NONE;
  if (form == CB_MMA_ASKED && !cb_semiring_has_tensor_cores(builder->options->semiring))
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "tensor cores add products, which semiring '%s' does not; use du-form=fma",
                   cb_semiring_names[builder->options->semiring]);
  if (form != CB_MMA_ASKED || *mma != CB_MMA_NONE) return CB_OK;
  return cb_fail(diag, CB_ERR_UNSUPPORTED, "tensor cores of %s have no exact products for type '%s'; use du-form=fma",
                 target->arch, cb_types_name(types));
}

/* ---- which rows */

struct listing {
  const struct cb_csr *csr;
  const unsigned char *listed; /* NULL: none is yet */
  int empty;                   /* those without nonzeros, too */
};

static int is_wanted(const void *user, int64_t row) {
  const struct listing *listing = user;
  if (listing->listed && listing->listed[row]) return 0;
  return listing->empty || cb_csr_row_length(listing->csr, row) > 0;
}

/* The `first` rows, then the others that are wanted; places behind these are none. */
static int list_rows(struct cb_chunks *chunks, struct cb_arena *arena, const struct cb_row_order *first, int all) {
  const struct cb_csr *csr = chunks->csr;
  const int64_t before = first ? first->count : 0;
  struct listing listing = {.csr = csr, .empty = all};
  struct cb_arena scratch = {0};
  int64_t others = 0;
  unsigned char *listed = cb_arena_alloc(&scratch, (size_t)csr->rows, 1);
  for (int64_t i = 0; listed && i < before; i++) listed[first->row[i]] = 1;
  listing.listed = listed;
  const int32_t *rest = listed ? cb_rows_where(&scratch, csr->rows, is_wanted, &listing, &others) : NULL;
  chunks->count = cb_divide_up(before + others, CB_CHUNK_ROWS);
  int32_t *row = rest ? cb_arena_alloc(arena, (size_t)(chunks->count * CB_CHUNK_ROWS), sizeof *row) : NULL;
  if (row) {
    for (int64_t i = 0; i < before; i++) row[i] = first->row[i];
    for (int64_t i = 0; i < others; i++) row[before + i] = rest[i];
    for (int64_t i = before + others; i < chunks->count * CB_CHUNK_ROWS; i++) row[i] = (int32_t)csr->rows;
  }
  chunks->row = row;
  cb_arena_release(&scratch);
  return row != NULL;
}

/* All rows with nonzeros, the longest first. */
static struct cb_row_order *order_by_length(const struct cb_csr *csr) {
  struct cb_crux all = {.hot_row = cb_calloc((size_t)csr->rows, 1),
                        .row_count = cb_alloc((size_t)csr->rows, sizeof *all.row_count)};
  struct cb_row_order *order = NULL;
  for (int64_t row = 0; all.hot_row && all.row_count && row < csr->rows; row++) {
    all.row_count[row] = (uint32_t)cb_csr_row_length(csr, row);
    all.rows += all.hot_row[row] = all.row_count[row] > 0;
  }
  if (all.hot_row && all.row_count) order = cb_crux_order(&all, csr->rows, 1);
  cb_crux_release(&all);
  return order;
}

/* 0: no memory. */
static int make_chunks(struct cb_chunks *chunks, struct cb_arena *arena, const struct cb_region_builder *builder,
                       int sorted) {
  const struct cb_csr *csr = builder->work.part.csr;
  const struct cb_row_order *found = cb_part_found(&builder->work.part, CB_FOUND_CRUX);
  const int all = builder->commit == CB_COMMIT_FINAL;
  *chunks = (struct cb_chunks){.csr = csr, .count = cb_divide_up(csr->rows, CB_CHUNK_ROWS)};
  if (found) return list_rows(chunks, arena, found, all);
  if (!sorted) return all || list_rows(chunks, arena, NULL, 0);
  struct cb_row_order *order = order_by_length(csr);
  const int good = order && list_rows(chunks, arena, order, all);
  cb_row_order_release(order);
  return good;
}

/* ---- steps and units: need the chunks */

enum { FULL_WARPS = 32 }; /* of a multiprocessor, with 64 registers a thread */

static int count_steps(struct cb_chunk_state *state, cb_steps_of_chunk *steps_of) {
  const int64_t chunks = state->chunks.count;
  state->first_step = cb_arena_alloc(&state->arena, (size_t)chunks + 1, sizeof *state->first_step);
  if (!state->first_step) return 0;
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t chunk = 0; chunk < chunks; chunk++) state->first_step[chunk + 1] = (uint64_t)steps_of(state, chunk);
  return 1;
}

static int64_t steps_of_all(const struct cb_chunk_state *state) {
  int64_t steps = 0;
  for (int64_t chunk = 0; chunk < state->chunks.count; chunk++) steps += (int64_t)state->first_step[chunk + 1];
  return steps;
}

/* Long rows in another order, if that leaves fewer steps. */
static int gather_rows(struct cb_chunk_state *state, cb_steps_of_chunk *steps_of) {
  const struct cb_chunk_state before = *state;
  struct cb_row_order *order = order_by_length(state->chunks.csr);
  int good = order && cb_chunks_gather(order, state->chunks.csr);
  if (good && order->count) {
    good = list_rows(&state->chunks, &state->arena, order, 1) && count_steps(state, steps_of);
    if (good && steps_of_all(state) >= steps_of_all(&before)) {
      state->chunks = before.chunks;
      state->first_step = before.first_step;
    }
  }
  cb_row_order_release(order);
  return good;
}

static int64_t chunks_beyond(const struct cb_chunk_state *state, int64_t segment) {
  int64_t chunks = 0;
  for (int64_t chunk = 0; chunk < state->chunks.count; chunk++)
    chunks += (int64_t)state->first_step[chunk + 1] > segment;
  return chunks;
}

static int64_t units_of(const struct cb_chunk_state *state, int64_t segment) {
  int64_t units = 0;
  for (int64_t chunk = 0; chunk < state->chunks.count; chunk++)
    units += cb_larger(1, cb_divide_up((int64_t)state->first_step[chunk + 1], segment));
  return units;
}

/* How warps share units: what is chosen by what it is predicted to take. */
struct sharing {
  int warps;
  int64_t segment, ns;
};

/* Thread blocks of so many warps that are in flight together. */
static int64_t units_room(const struct cb_region_builder *builder, int warps) {
  const int has_more_sums = cb_options_vectors(builder->options) > CB_CHUNK_ROWS; /* and so more registers */
  return builder->target->multiprocessors * (has_more_sums ? FULL_WARPS / 2 : FULL_WARPS) / warps;
}

static int64_t longest_chunk(const struct cb_chunk_state *state) {
  int64_t most = CB_CHUNK_BATCH;
  for (int64_t chunk = 0; chunk < state->chunks.count; chunk++)
    most = cb_larger(most, (int64_t)state->first_step[chunk + 1]);
  return most;
}

/* Thread blocks of that many warps that there is room for while those that add up sums are there, too. */
static int64_t room_beside(const struct cb_chunk_state *state, const struct cb_region_builder *builder, int warps,
                           int64_t segment) {
  enum { FINISH = 2 * 8 /* warps, for a chunk that is cut */ };
  return units_room(builder, warps) - cb_divide_up(FINISH * chunks_beyond(state, segment), warps);
}

/* What the product takes: its batches, and its warps' waits, as a warp's batches follow one another, and thread blocks
 * that find no room beside the others; of these the longer, and a quarter of the shorter, as they go on beside each
 * other. Behind that the sums of segments are added up. Four vectors take less of X; eight more take three fifths of
 * the time of the first eight. */
static int64_t sharing_ns(const struct cb_chunk_state *state, const struct cb_region_builder *builder,
                          const struct sharing *sharing) {
  enum { SHARES = 16, FIFTHS = 3, BESIDE = 4 };
  const int64_t longest = longest_chunk(state), units = units_of(state, sharing->segment);
  const int64_t vectors = cb_options_vectors(builder->options);
  const int64_t of_unit = cb_divide_up(cb_smaller(longest, sharing->segment), CB_CHUNK_BATCH);
  const int64_t batches = steps_of_all(state) / CB_CHUNK_BATCH, processors = builder->target->multiprocessors;
  const int64_t rounds = cb_larger(1, cb_divide_up(units, units_room(builder, sharing->warps)));
  const int64_t work =
      cb_larger((vectors < CB_CHUNK_ROWS ? CB_COST_TILES_FOUR_NS : CB_COST_TILES_BATCH_NS) * batches,
                CB_COST_TILES_UNIT_NS * units) / processors;
  const int64_t waits =
      CB_COST_TILES_CHAIN_NS * (cb_divide_up(of_unit, sharing->warps) - 1) + CB_COST_TILES_ROUND_NS * (rounds - 1);
  int64_t ns = CB_COST_TILES_START_NS + cb_larger(work, waits) + cb_smaller(work, waits) / BESIDE;
  if (sharing->segment < longest)
    ns += CB_COST_TILES_CARRY_NS + CB_COST_TILES_CHUNK_NS * chunks_beyond(state, sharing->segment) +
          CB_COST_TILES_SUMS_NS * cb_divide_up(cb_divide_up(longest, sharing->segment), SHARES);
  return ns + ns * FIFTHS / 5 * (cb_larger(1, vectors / CB_CHUNK_ROWS) - 1);
}

/* The shortest segments of which all units are in flight together, and of which each warp has a batch. Where there are
 * more chunks than that, those that have more than others are cut. */
static int64_t shortest_segment(const struct cb_chunk_state *state, const struct cb_region_builder *builder,
                                int warps) {
  enum { MORE = 4 };
  const int64_t room = units_room(builder, warps);
  const int64_t mean = cb_divide_up(steps_of_all(state), cb_larger(1, state->chunks.count));
  int64_t least = cb_larger(CB_CHUNK_BATCH * warps, cb_divide_up(steps_of_all(state), room)), most = MORE * mean;
  if (state->chunks.count > room || most < least) return cb_larger(least, most);
  while (chunks_beyond(state, most) && units_of(state, most) > room_beside(state, builder, warps, most)) most *= 2;
  while (least < most) {
    const int64_t middle = least + (most - least) / 2;
    if (units_of(state, middle) <= room_beside(state, builder, warps, middle)) most = middle;
    else least = middle + 1;
  }
  return most;
}

static void try_sharing(const struct cb_chunk_state *state, const struct cb_region_builder *builder, int warps,
                        int64_t segment, struct sharing *best) {
  struct sharing sharing = {.warps = warps, .segment = cb_round_up(segment, CB_CHUNK_BATCH)};
  sharing.ns = sharing_ns(state, builder, &sharing);
  if (!best->warps || sharing.ns < best->ns) *best = sharing;
}

/* Where a thread has more sums, a thread block has fewer threads. */
static struct sharing choose_sharing(const struct cb_chunk_state *state, const struct cb_region_builder *builder,
                                     const int64_t *settings) {
  enum { SUMS = 256, MOST = 32 /* warps of a thread block */ };
  const int asked = (int)settings[DU_WARPS];
  struct sharing best = {.warps = 0};
  for (int warps = cb_smaller(MOST, SUMS / cb_options_vectors(builder->options)); warps; warps /= 2) {
    if (asked && warps > 1 && asked < warps) continue;
    if (settings[DU_SEGMENT]) try_sharing(state, builder, warps, settings[DU_SEGMENT], &best);
    else {
      try_sharing(state, builder, warps, longest_chunk(state), &best);
      try_sharing(state, builder, warps, shortest_segment(state, builder, warps), &best);
    }
    if (asked) break;
  }
  return best;
}

static void choose_segment(struct cb_chunk_state *state, const struct cb_region_builder *builder, int shared,
                           const int64_t *settings) {
  enum { STEPS = 64 };
  if (shared) {
    const struct sharing sharing = choose_sharing(state, builder, settings);
    state->warps = sharing.warps;
    state->segment = sharing.segment;
    state->several_ns = sharing.ns;
  } else state->segment = settings[DU_SEGMENT] ? settings[DU_SEGMENT] : STEPS;
}

static void count_units(struct cb_chunk_state *state) {
  state->units = units_of(state, state->segment);
  state->cut = chunks_beyond(state, state->segment);
  state->segments = state->units - (state->chunks.count - state->cut);
}

/* Chunks in segments come first, with their rows and steps; steps are not summed up yet. */
static int reorder_chunks(struct cb_chunk_state *state) {
  struct cb_chunks *chunks = &state->chunks;
  const size_t count = (size_t)chunks->count;
  int64_t long_one = 0, other = state->cut;
  if (!state->cut) return 1;
  int32_t *row = cb_arena_alloc(&state->arena, count * CB_CHUNK_ROWS, sizeof *row);
  uint64_t *steps = cb_arena_alloc(&state->arena, count + 1, sizeof *steps);
  if (!row || !steps) return 0;
  for (int64_t chunk = 0; chunk < chunks->count; chunk++) {
    const uint64_t of_chunk = state->first_step[chunk + 1];
    const int64_t to = of_chunk > (uint64_t)state->segment ? long_one++ : other++;
    steps[to + 1] = of_chunk;
    for (int64_t i = 0; i < CB_CHUNK_ROWS; i++)
      row[to * CB_CHUNK_ROWS + i] = (int32_t)cb_chunks_row(chunks, chunk * CB_CHUNK_ROWS + i);
  }
  chunks->row = row;
  state->first_step = steps;
  return 1;
}

static int list_units(struct cb_chunk_state *state) {
  const int64_t chunks = state->chunks.count;
  int64_t unit = 0;
  state->unit_step = cb_arena_alloc(&state->arena, (size_t)state->units + 1, sizeof *state->unit_step);
  state->unit_chunk = cb_arena_alloc(&state->arena, (size_t)state->units, sizeof *state->unit_chunk);
  if (state->arena.failed) return 0;
  for (int64_t chunk = 0; chunk < chunks; chunk++) {
    const uint64_t steps = state->first_step[chunk + 1];
    uint64_t step = 0;
    state->first_step[chunk + 1] += state->first_step[chunk];
    do {
      state->unit_chunk[unit] = (uint32_t)chunk;
      state->unit_step[unit++] = state->first_step[chunk] + step;
      state->longest = cb_larger(state->longest, cb_smaller((int64_t)(steps - step), state->segment));
      step += (uint64_t)state->segment;
    } while (step < steps);
  }
  state->unit_step[unit] = state->first_step[chunks];
  return 1;
}

enum cb_status cb_chunks_plan(struct cb_region_builder *builder, size_t size, cb_steps_of_chunk *steps_of, int shared,
                              struct cb_diag *diag) {
  const int64_t *settings = cb_settings(builder->options, &cb_layout_du);
  const struct cb_types types = {builder->matrix_type, builder->vector_type, builder->sum_type};
  enum cb_status s = cb_region_state(builder, size, diag);
  struct cb_chunk_state *state = builder->work.state;
  shared = shared && settings[DU_FORM] != CB_MMA_REFUSED && cb_mma_takes_vectors(builder, CB_CHUNK_VECTORS);
  if (!s) s = choose_mma(&state->mma, builder, types, settings[DU_FORM], shared, diag);
  if (s) return s;
  state->width = cb_chunk_width(types);
  state->warps = shared; /* at least */
  const int sorted = settings[CRUX_SORT] == CB_ON;
  int good = make_chunks(&state->chunks, &state->arena, builder, sorted) && count_steps(state, steps_of);
  if (good && shared && !sorted) good = gather_rows(state, steps_of);
  if (good) {
    choose_segment(state, builder, shared, settings);
    count_units(state);
    good = reorder_chunks(state) && list_units(state);
  }
  if (!good)
    return cb_fail_memory(diag, "chunks", (uint64_t)builder->work.part.csr->rows * sizeof *state->chunks.row);
  builder->work.units = state->chunks.count;
  return CB_OK;
}

/* ---- the region: needs units */

static uint64_t row_at(const void *user, int64_t local_row) {
  const struct cb_chunk_state *state = user;
  return (uint64_t)(state->chunks.row ? state->chunks.row[local_row] : local_row);
}

static uint64_t chunk_at(const void *user, int64_t unit) {
  return ((const struct cb_chunk_state *)user)->unit_chunk[unit];
}

/* Sums of segments are added up by a second launch, two thread blocks for a chunk. */
static void build_finish(struct cb_region_builder *builder, struct cb_chunk_state *state) {
  uint32_t *first = cb_arena_alloc(&state->arena, (size_t)state->cut + 1, sizeof *first);
  for (int64_t unit = state->segments; first && unit--;) first[state->unit_chunk[unit]] = (uint32_t)unit;
  if (first) first[state->cut] = (uint32_t)state->segments;
  cb_region_section(builder, "carry");
  cb_region_list(builder, "first_segment", "of a chunk that is cut; these come first, and chunks + 1", state->cut + 1,
                 first);
  cb_region_size(builder, "kSegments", state->segments, "plan: segments of chunks, which come first");
  cb_region_fact(builder, "segments", "%lld %lld", (long long)state->cut, (long long)state->segments);
  builder->region.carry_slots = state->segments;
  builder->region.carries_parts = 1;
  builder->region.finish_blocks = 2 * state->cut;
}

static void build_carries(struct cb_region_builder *builder, struct cb_chunk_state *state) {
  if (!state->segments) return;
  if (state->warps) build_finish(builder, state);
  else cb_region_carries_by(builder, "carry", state->segments, chunk_at, "plan: segments of chunks, which come first");
  cb_region_size(builder, "kBefore", state->segments - state->cut, "plan: units that chunks in segments have more");
  builder->region.carry_width = CB_CHUNK_ROWS;
}

/* What is known of a unit's blocks comes by shared memory where some warp has more than one batch, and all of them find
 * room there: a power of 2. Returns its bytes. */
static int64_t build_stage(struct cb_region_builder *builder, const struct cb_chunk_state *state) {
  enum { COLUMNS = 4 /* of a block */, BATCHES = 32 / COLUMNS /* of a warp, at most: a thread for each column */ };
  enum { BATCH = CB_CHUNK_BATCH * (COLUMNS * sizeof(uint32_t) + sizeof(uint32_t) + sizeof(int64_t)) };
  const int64_t longest = state->longest / CB_CHUNK_BATCH;
  int64_t room = state->warps;
  if (longest <= room || longest > BATCHES * room) return 0;
  while (room < longest) room *= 2;
  cb_region_section(builder, "staged");
  cb_region_structure(builder, "kStage", room, "plan: batches of a unit that shared memory has room for");
  return room * BATCH;
}

/* A thread block for each unit. */
static void build_shared(struct cb_region_builder *builder, const struct cb_chunk_state *state) {
  const int64_t sums = state->warps > 1 ? 32 * state->warps : 0;
  cb_region_section(builder, "tiles");
  if (cb_options_vectors(builder->options) < CB_CHUNK_ROWS) cb_region_section(builder, "halves");
  /* Where several thread blocks fit on a multiprocessor, those of the second launch would take the room of some of the
   * first one, of which other multiprocessors then have more. */
  if (state->cut && state->warps < FULL_WARPS) cb_region_section(builder, "behind");
  cb_region_structure(builder, "kWarps", state->warps, "plan: warps of a thread block, which share a unit");
  cb_region_fact(builder, "warps", "%d", state->warps);
  builder->region.blocks = state->units;
  builder->region.threads = 32 * state->warps;
  builder->region.blocks_per_sm = (int)cb_smaller(FULL_WARPS / state->warps, 16); /* some GPUs hold 16 or 24 */
  builder->region.static_shared = sums * (int64_t)cb_type_size(builder->sum_type) + build_stage(builder, state);
  builder->region.takes_vectors = 1;
  builder->region.sharing = CB_SHARING_TILES;
  builder->region.late = CB_LATE_ALWAYS;
  builder->region.several_ns = state->several_ns;
}

static void build_blocks(struct cb_region_builder *builder, const struct cb_chunk_state *state) {
  const struct cb_chunks *chunks = &state->chunks;
  if (chunks->row || chunks->csr->rows % CB_CHUNK_ROWS || builder->own_rows) cb_region_section(builder, "guarded");
  if (builder->own_rows) cb_region_section(builder, "owned");
  if (builder->own_rows) cb_region_own_rows(builder);
  if (state->warps) {
    build_shared(builder, state);
    return;
  }
  if (state->units % CB_CHUNK_WARPS) {
    cb_region_section(builder, "partial");
    cb_region_size(builder, "kUnits", state->units, "plan: chunks, or segments of them: a warp each");
  }
  builder->region.blocks = cb_divide_up(state->units, CB_CHUNK_WARPS);
  /* 48 or 64 registers */
  builder->region.blocks_per_sm = cb_region_blocks_for(builder, state->mma == CB_MMA_NONE ? 5 : 4);
  if (chunks->row) return;
  builder->region.block_rows = CB_CHUNK_WARPS * CB_CHUNK_ROWS;
  builder->region.row_threads = 32 / CB_CHUNK_ROWS;
}

void cb_chunks_build(struct cb_region_builder *builder, const char *first, const char *meaning) {
  static const char *const forms[] = {[CB_MMA_NONE] = "fma", [CB_MMA_F64] = "mma-f64", [CB_MMA_TF32] = "mma-tf32"};
  struct cb_chunk_state *state = builder->work.state;
  const int64_t chunks = state->chunks.count;
  cb_region_fact(builder, "chunks", "%lld", (long long)chunks);
  cb_region_fact(builder, "steps", "%lld", (long long)state->first_step[chunks]);
  cb_region_fact(builder, "form", "%s", forms[state->mma]);
  cb_region_computed(builder, "row_of", "row of a local row", chunks * CB_CHUNK_ROWS, row_at);
  cb_region_list(builder, first, meaning, state->units + 1, state->unit_step);
  if (state->mma != CB_MMA_NONE && !state->warps) cb_region_section(builder, "mma");
  if (state->mma == CB_MMA_TF32) cb_region_section(builder, "tf32");
  build_carries(builder, state);
  build_blocks(builder, state);
}

/* ---- prediction: needs the region */

enum cb_status cb_chunks_predict(struct cb_region_builder *builder, int64_t batch, cb_sectors_visit *visit,
                                 struct cb_diag *diag) {
  const struct cb_chunk_state *state = builder->work.state;
  struct cb_cost *cost = &builder->region.cost;
  const int64_t longest = cb_divide_up(state->longest, cb_larger(1, state->warps));
  cost->chain_ns = (1 + cb_divide_up(longest, batch)) * CB_COST_BATCH_NS;
  cost->tail_ns = state->segments ? CB_COST_CARRY_NS : 0;
  cost->stream_percent = CB_COST_SELL_PERCENT;
  return cb_sectors_predict(builder, state, visit, diag);
}
