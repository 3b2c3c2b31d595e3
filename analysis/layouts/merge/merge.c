// SPDX-License-Identifier: Apache-2.0
/* Equal shares of nonzeros, wherever rows end: for matrices whose row lengths differ much. After MERBIT and merge-based
 * SpMV (Merrill, Garland): a lane takes `items` consecutive nonzeros, and a descriptor of its own says with one bit for
 * each of them whether a row ends there.
 *
 *   tile   what a thread block multiplies: consecutive whole rows, together no more than 256 · items nonzeros. So no
 *          row is shared by thread blocks, and none waits for another
 *   chunk  a warp's share of its tile: 32 · items nonzeros. Rows may cross its borders: warps meet in shared memory
 *   long   rows of more than a tile: a thread block each adds up such a row, without descriptors. Rows much longer
 *          than that are cut into pieces, and the last piece to arrive adds up (carry slots)
 *
 * Empty rows are in no tile: all thread blocks write them first, in equal shares, so there is no pass over y.
 *
 * A tile's nonzeros lie in the order of rows. It either fills all its slots (padded: nothing has to be looked up before
 * the first load) or as many steps of 32 slots as it needs. What pads a tile lies behind its last row's end, where
 * sums are dropped; so neither NaN nor Inf in x reaches a row through it.
 *
 * How to read it: merge_plan near the end calls the passes in order.
 */
#include "analysis/layout.h"
#include "analysis/ordering.h"
#include "analysis/layouts/merge/pieces.h"
#include "analysis/plan/cost_figures.h"
#include "analysis/sectors.h"

#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

enum {
  WARPS = 8,
  LANES = 32,
  THREADS = WARPS * LANES,
  LONG_BATCH = 8,               /* nonzeros of a long row that a thread loads together, as in the text */
  PIECE = THREADS * LONG_BATCH, /* a piece is one batch for each thread */
  WHOLE = 3 * PIECE,            /* two batches more take less time than a carry */
  ZEROS = 8 * THREADS,          /* empty rows of a thread block */
  NARROW = 1 << 16              /* columns that two bytes tell apart */
};

/* Nonzeros begin … end - 1 of the part. */
struct tile {
  int64_t begin, end;
  int32_t row; /* the first */
};

struct state {
  const struct cb_csr *csr;
  int items; /* nonzeros of a lane; odd */
  int padded;
  struct tile *tiles;
  int64_t tiles_count, tiles_capacity;
  struct cb_piece *pieces; /* cut rows first */
  int64_t pieces_count, cut_pieces;
  int64_t *first_step; /* by tile: steps of 32 slots before it; tiles + 1 */
  int64_t long_slots;  /* slots of long rows: in front of all tiles */
  uint32_t *tile_column, *piece_column; /* first columns, from which those of slots are told; or all 0 */
  int64_t least_offset, largest_offset; /* of a nonzero's column, from there */
  const uint32_t *own_rows; /* the draft's, while it plans */
  int64_t empty_rows; /* of its own */
  int64_t blocks; /* thread blocks, those that write empty rows alone included */
};

static void state_release(void *memory) {
  struct state *state = memory;
  if (!state) return;
  cb_free(state->tiles);
  cb_free(state->pieces);
  cb_free(state->first_step);
  cb_free(state->tile_column);
  cb_free(state->piece_column);
  cb_free(state);
}

static int64_t tile_size(const struct state *state) {
  return (int64_t)THREADS * state->items;
}

static int64_t chunk_size(const struct state *state) {
  return (int64_t)LANES * state->items;
}

static int64_t chunks(const struct state *state) {
  return WARPS * state->tiles_count;
}

/* Nonzeros per lane: few while that keeps all multiprocessors busy with several thread blocks each. */
static int choose_items(const struct cb_csr *csr, const struct cb_options *options,
                        const struct cb_target *target) {
  if (options->merge_items) return (int)options->merge_items;
  const int64_t share = csr->nnz / (THREADS * (int64_t)target->multiprocessors);
  return share <= 12 ? 3 : share <= 28 ? 5 : 7;
}

/* ---- tiles: needs items; adds tiles */

static int push_tile(struct state *state, struct tile tile) {
  if (state->tiles_count == state->tiles_capacity) {
    const int64_t capacity = state->tiles_capacity ? 2 * state->tiles_capacity : 1024;
    struct tile *tiles = cb_realloc(state->tiles, (size_t)capacity, sizeof *tiles);
    if (!tiles) return 0;
    state->tiles = tiles;
    state->tiles_capacity = capacity;
  }
  state->tiles[state->tiles_count++] = tile;
  return 1;
}

/* The row from `row` on that holds nonzero `k`: steps that double, then halves. */
static int64_t row_of(const struct cb_csr *csr, int64_t row, int64_t k) {
  int64_t step = 1;
  while (row + step < csr->rows && cb_csr_row(csr, row + step) <= k) {
    row += step;
    step *= 2;
  }
  int64_t end = cb_smaller(row + step, csr->rows); /* the row is before it */
  while (end - row > 1) {
    const int64_t middle = (row + end) / 2;
    if (cb_csr_row(csr, middle) <= k) row = middle;
    else end = middle;
  }
  return row;
}

/* Rows in order, as many as fit; a long row ends a tile, so that the nonzeros of one lie side by side. */
static int cut_tiles(struct state *state) {
  const struct cb_csr *csr = state->csr;
  const int64_t most = tile_size(state);
  for (int64_t row = 0, begin = 0; begin < csr->nnz;) {
    row = row_of(csr, row, begin); /* begins there, too */
    if (cb_csr_row_length(csr, row) > most) { /* is no tile's */
      begin = cb_csr_row(csr, row + 1);
      continue;
    }
    const int64_t next = begin + most < csr->nnz ? row_of(csr, row, begin + most) : csr->rows;
    const struct tile tile = {begin, cb_csr_row(csr, next), (int32_t)row};
    if (!push_tile(state, tile)) return 0;
    begin = tile.end;
  }
  return 1;
}

/* Of those that are this region's to write. */
static int is_empty(const void *user, int64_t row) {
  const struct state *state = user;
  return !cb_csr_row_length(state->csr, row) && cb_owns(state->own_rows, row);
}

/* ---- long rows: needs items; adds pieces, long_slots */

/* Pieces of equal length, up to 31 nonzeros, of one row. Returns how many. */
static int64_t pieces_of(int64_t length, int64_t piece) {
  return length > piece ? cb_divide_up(length, piece) : 1;
}

/* Pieces of the long rows that are cut, or those that are not; only counts them while there is no list. */
static int64_t add_pieces(struct state *state, const struct cb_options *options, const int32_t *rows, int64_t count,
                          int cut, int64_t at) {
  const struct cb_csr *csr = state->csr;
  const int64_t whole = options->merge_piece ? options->merge_piece : WHOLE;
  const int64_t most = options->merge_piece ? options->merge_piece : PIECE;
  for (int64_t i = 0; i < count; i++) {
    const int64_t length = cb_csr_row_length(csr, rows[i]);
    if ((length > whole) != cut) continue;
    const int64_t pieces = cut ? pieces_of(length, most) : 1;
    if (state->pieces) cb_pieces_cut(state->pieces + at, csr, rows[i], pieces);
    at += pieces;
  }
  return at;
}

static int is_long(const void *state, int64_t row) {
  return cb_csr_row_length(((const struct state *)state)->csr, row) > tile_size(state);
}

static int cut_long_rows(struct state *state, const struct cb_options *options) {
  int64_t count = 0;
  int32_t *rows = cb_rows_where(state->csr->rows, is_long, state, &count);
  if (!rows) return 0;
  state->cut_pieces = add_pieces(state, options, rows, count, 1, 0);
  state->pieces_count = add_pieces(state, options, rows, count, 0, state->cut_pieces);
  state->pieces = cb_alloc((size_t)state->pieces_count, sizeof *state->pieces);
  if (state->pieces) {
    add_pieces(state, options, rows, count, 1, 0);
    add_pieces(state, options, rows, count, 0, state->cut_pieces);
    state->long_slots = cb_pieces_number(state->pieces, state->pieces_count);
  }
  cb_free(rows);
  return state->pieces != NULL;
}

/* ---- slots: needs tiles and pieces; adds padded, first_step */

/* Padded: when it costs next to nothing, or when the matrix is small and latency counts more than bytes. */
static int choose_padded(const struct state *state, const struct cb_options *options) {
  enum { SMALL = 1 << 20 };
  if (options->merge_pad != CB_AUTO) return options->merge_pad == CB_ON;
  const int64_t nonzeros = state->csr->nnz - state->long_slots;
  const int64_t waste = state->tiles_count * tile_size(state) - nonzeros;
  return waste * 32 <= nonzeros || (nonzeros < SMALL && waste * 2 <= nonzeros);
}

static int place_tiles(struct state *state, const struct cb_options *options) {
  state->padded = choose_padded(state, options);
  state->first_step = cb_alloc((size_t)state->tiles_count + 1, sizeof *state->first_step);
  if (!state->first_step) return 0;
  int64_t step = cb_divide_up(state->long_slots, LANES);
  for (int64_t t = 0; t < state->tiles_count; t++) {
    state->first_step[t] = step;
    const int64_t slots = state->padded ? tile_size(state) : state->tiles[t].end - state->tiles[t].begin;
    step += cb_divide_up(slots, LANES);
  }
  if (step > INT32_MAX / LANES - tile_size(state))
    step += tile_size(state); /* no index of a guarded load overflows */
  state->first_step[state->tiles_count] = step;
  return 1;
}

static int64_t slots(const struct state *state) {
  return state->first_step[state->tiles_count] * LANES;
}

/* Nonzero in a slot of a tile; behind the last: that one again. */
static int64_t nonzero_at(const struct tile *tile, int64_t position) {
  const int64_t k = tile->begin + position;
  return k < tile->end ? k : tile->end - 1;
}

/* ---- columns: needs slots; adds tile_column, piece_column and the range of offsets */

static int64_t tile_end_row(const struct state *state, int64_t t) {
  int64_t row = state->tiles[t].row;
  while (row < state->csr->rows && cb_csr_row(state->csr, row) < state->tiles[t].end) row++;
  return row;
}

struct columns {
  int64_t least, most;
};

static const struct columns no_columns = {INT64_MAX, -1};

/* Of a tile: rows are sorted. */
static struct columns tile_columns(const struct state *state, int64_t t) {
  const struct cb_csr *csr = state->csr;
  const int64_t end_row = tile_end_row(state, t);
  struct columns range = no_columns;
  for (int64_t row = state->tiles[t].row; row < end_row; row++) {
    if (!cb_csr_row_length(csr, row)) continue;
    range.least = cb_smaller(range.least, csr->col_idx[cb_csr_row(csr, row)]);
    range.most = cb_larger(range.most, csr->col_idx[cb_csr_row(csr, row + 1) - 1]);
  }
  return range;
}

static struct columns piece_columns(const struct state *state, int64_t p) {
  const struct cb_piece *piece = &state->pieces[p];
  return (struct columns){state->csr->col_idx[piece->begin], state->csr->col_idx[piece->end - 1]};
}

/* Of all of them; their first columns in `first`. Returns the largest distance of a column from its first. */
static int64_t measure(const struct state *state, struct columns (*columns_of)(const struct state *, int64_t),
                       int64_t count, uint32_t *first, struct columns *all) {
  int64_t least = all->least, most = all->most, widest = 0;
#pragma omp parallel for schedule(static) reduction(min : least) reduction(max : most, widest)
  for (int64_t i = 0; i < count; i++) {
    const struct columns range = columns_of(state, i);
    first[i] = (uint32_t)range.least;
    least = cb_smaller(least, range.least);
    most = cb_larger(most, range.most);
    widest = cb_larger(widest, range.most - range.least);
  }
  *all = (struct columns){least, most};
  return widest;
}

/* First columns of tiles and of pieces, if they make all offsets fit two bytes, and all columns do not anyway. */
static int choose_bases(struct state *state) {
  struct columns all = no_columns;
  state->tile_column = cb_alloc((size_t)state->tiles_count, sizeof *state->tile_column);
  state->piece_column = cb_alloc((size_t)state->pieces_count, sizeof *state->piece_column);
  if (!state->tile_column || !state->piece_column) return 0;
  const int64_t in_tile = measure(state, tile_columns, state->tiles_count, state->tile_column, &all);
  const int64_t in_piece = measure(state, piece_columns, state->pieces_count, state->piece_column, &all);
  const int64_t widest = cb_larger(in_tile, in_piece);
  state->least_offset = 0;
  state->largest_offset = widest;
  if (state->csr->cols > NARROW && widest < NARROW) return 1;
  state->least_offset = all.least;
  state->largest_offset = all.most;
  memset(state->tile_column, 0, (size_t)state->tiles_count * sizeof *state->tile_column);
  memset(state->piece_column, 0, (size_t)state->pieces_count * sizeof *state->piece_column);
  return 1;
}

/* Columns of slots, from the first of their tile or piece. */
static void fill_offsets(const struct state *state, const struct cb_late *offsets) {
  const struct cb_csr *csr = state->csr;
#pragma omp parallel for schedule(dynamic)
  for (int64_t p = 0; p < state->pieces_count; p++) {
    const struct cb_piece *piece = &state->pieces[p];
    for (int64_t k = piece->begin; k < piece->end; k++)
      cb_late_set(offsets, piece->slot + k - piece->begin, (uint32_t)csr->col_idx[k] - state->piece_column[p]);
  }
  for (int64_t slot = state->long_slots; slot < state->first_step[0] * LANES; slot++) cb_late_set(offsets, slot, 0);
#pragma omp parallel for schedule(static)
  for (int64_t t = 0; t < state->tiles_count; t++) {
    const int64_t first = state->first_step[t] * LANES, end = state->first_step[t + 1] * LANES;
    for (int64_t slot = first; slot < end; slot++)
      cb_late_set(offsets, slot,
                 (uint32_t)csr->col_idx[nonzero_at(&state->tiles[t], slot - first)] - state->tile_column[t]);
  }
}

static const char offset_name[] = "column_offset";

static void draft_offsets(struct cb_draft *draft, const struct state *state) {
  static const char meaning[] = "column of a slot, from the first of its tile or long row";
  if (cb_draft_may_be_late(draft, slots(state), state->least_offset, state->largest_offset)) {
    cb_draft_late(draft, offset_name, meaning, slots(state), state->largest_offset);
    return;
  }
  uint32_t *elements = cb_alloc((size_t)slots(state), sizeof *elements);
  const struct cb_late offsets = cb_late_at_once(elements);
  if (elements) fill_offsets(state, &offsets);
  cb_draft_index(draft, offset_name, meaning, elements, 0, slots(state));
}

static void draft_firsts(struct cb_draft *draft, const char *name, const char *meaning, const uint32_t *first,
                         int64_t count) {
  if (!count) return;
  uint32_t *elements = cb_alloc((size_t)count, sizeof *elements);
  if (elements) memcpy(elements, first, (size_t)count * sizeof *elements);
  cb_draft_index(draft, name, meaning, elements, 0, count);
}

static void draft_columns(struct cb_draft *draft, struct state *state) {
  if (!choose_bases(state)) {
    draft->failed = 1;
    return;
  }
  draft_firsts(draft, "first_column", "a tile's first column", state->tile_column, state->tiles_count);
  draft_firsts(draft, "long_column", "a long row's (or piece's) first column", state->piece_column,
               state->pieces_count);
  draft_offsets(draft, state);
  cb_draft_values(draft, "values", "in the order of slots", slots(state));
}

/* ---- rows of tiles: needs tiles */

/* What the rows of all tiles come to. `row_offset` is by row end, in the order of tiles. */
struct rows {
  uint32_t *descriptor;            /* by lane of a chunk */
  uint32_t *first_row, *row_count; /* by chunk */
  uint32_t *first_end;             /* by chunk: row ends before it; chunks + 1 */
  uint32_t *row_offset;            /* by row end: its row, from its chunk's first row */
};

static void rows_release(struct rows *rows) {
  cb_free(rows->descriptor);
  cb_free(rows->first_row);
  cb_free(rows->row_count);
  cb_free(rows->first_end);
  cb_free(rows->row_offset);
}

/* Flags of a tile's lanes, row ends per chunk and each chunk's first row. */
static void describe_ends(const struct state *state, int64_t t, struct rows *rows) {
  const struct tile *tile = &state->tiles[t];
  const int64_t end_row = tile_end_row(state, t);
  uint32_t *flags = rows->descriptor + t * THREADS;
  for (int64_t row = tile->row; row < end_row; row++) {
    if (!cb_csr_row_length(state->csr, row)) continue;
    const int64_t last = cb_csr_row(state->csr, row + 1) - 1 - tile->begin;
    const int64_t chunk = t * WARPS + last / chunk_size(state);
    flags[last / state->items] |= 1u << last % state->items;
    if (!rows->row_count[chunk]++) rows->first_row[chunk] = (uint32_t)row;
  }
  for (int warp = 0; warp < WARPS; warp++)
    for (uint32_t lane = 0, before = 0; lane < LANES; lane++) {
      const uint32_t ends = flags[warp * LANES + (int)lane];
      flags[warp * LANES + (int)lane] = before << state->items | ends;
      before += (uint32_t)__builtin_popcount(ends);
    }
}

/* Rows of the tile's row ends; whether some chunk's are not consecutive. */
static int list_rows(const struct state *state, int64_t t, struct rows *rows) {
  const int64_t end_row = tile_end_row(state, t);
  int64_t chunk = t * WARPS, at = rows->first_end[chunk];
  int gaps = 0;
  for (int64_t row = state->tiles[t].row; row < end_row; row++) {
    if (!cb_csr_row_length(state->csr, row)) continue;
    while (at == rows->first_end[chunk + 1]) chunk++;
    rows->row_offset[at] = (uint32_t)row - rows->first_row[chunk];
    gaps |= rows->row_offset[at] != at - rows->first_end[chunk];
    at++;
  }
  return gaps;
}

static int fill_rows(const struct state *state, struct rows *rows, int *gaps) {
  const int64_t count = chunks(state);
  int found = 0;
  rows->descriptor = cb_calloc((size_t)(state->tiles_count * THREADS), sizeof *rows->descriptor);
  rows->first_row = cb_calloc((size_t)count, sizeof *rows->first_row);
  rows->row_count = cb_calloc((size_t)count, sizeof *rows->row_count);
  rows->first_end = cb_alloc((size_t)count + 1, sizeof *rows->first_end);
  if (!rows->descriptor || !rows->first_row || !rows->row_count || !rows->first_end) return 0;
#pragma omp parallel for schedule(static)
  for (int64_t t = 0; t < state->tiles_count; t++) describe_ends(state, t, rows);
  rows->first_end[0] = 0;
  for (int64_t c = 0; c < count; c++) rows->first_end[c + 1] = rows->first_end[c] + rows->row_count[c];
  rows->row_offset = cb_alloc(rows->first_end[count], sizeof *rows->row_offset);
  if (!rows->row_offset) return 0;
#pragma omp parallel for schedule(static) reduction(| : found)
  for (int64_t t = 0; t < state->tiles_count; t++) found |= list_rows(state, t, rows);
  *gaps = found;
  return 1;
}

/* An index array that the draft takes from *elements. */
static void give(struct cb_draft *draft, const char *name, const char *meaning, uint32_t **elements,
                 int64_t count) {
  cb_draft_index(draft, name, meaning, *elements, 0, count);
  *elements = NULL;
}

static void draft_rows(struct cb_draft *draft, const struct state *state) {
  struct rows rows = {0};
  int gaps = 0;
  if (!fill_rows(state, &rows, &gaps)) {
    draft->failed = 1;
    rows_release(&rows);
    return;
  }
  const int64_t ends = rows.first_end[chunks(state)];
  give(draft, "descriptor",
       "of a lane: kItems bits, set where rows end; above them, rows that end in earlier lanes",
       &rows.descriptor, state->tiles_count * THREADS);
  give(draft, "row_count", "rows that end in a chunk", &rows.row_count, chunks(state));
  give(draft, "first_row", "the first row that ends in a chunk", &rows.first_row, chunks(state));
  if (gaps) {
    give(draft, "first_end", "row ends before a chunk", &rows.first_end, chunks(state));
    give(draft, "row_offset", "row of a row end, from its chunk's first row", &rows.row_offset, ends);
  }
  if (gaps) cb_draft_section(draft, "gaps");
  rows_release(&rows);
}

/* ---- the region: needs all of the above; adds arrays and pieces of text */

static void draft_tiles(struct cb_draft *draft, const struct state *state) {
  uint64_t *first_step = cb_alloc((size_t)state->tiles_count + 1, sizeof *first_step);
  const int64_t count = state->tiles_count + !state->padded;
  if (first_step) memcpy(first_step, state->first_step, (size_t)count * sizeof *first_step);
  cb_draft_constant(draft, "kItems", state->items, "plan: nonzeros of a lane");
  cb_draft_index(draft, "first_step", "steps of 32 slots before a tile", first_step, 1, count);
  draft_rows(draft, state);
  cb_draft_section(draft, "tiles");
  if (state->padded) cb_draft_section(draft, "padded");
  draft->region.static_shared +=
      WARPS * (chunk_size(state) + 1) * (int64_t)cb_type_size(draft->vector_type) + WARPS * 4;
}

static void draft_long(struct cb_draft *draft, const struct state *state) {
  cb_pieces_draft(draft, state->pieces, state->pieces_count);
  cb_pieces_draft_carries(draft, state->pieces, state->cut_pieces);
  cb_draft_section(draft, "long");
  draft->region.static_shared += WARPS * (int64_t)cb_type_size(draft->vector_type);
}

/* Rows without nonzeros are written when the region owes them to y. Adding nothing needs no writing; but a region needs
 * some text. */
static int writes_empty_rows(const struct cb_draft *draft, const struct state *state) {
  if (draft->commit != CB_COMMIT_FINAL) return 0;
  return draft->options->form != CB_FORM_ADD || !state->csr->nnz;
}

static void draft_empty(struct cb_draft *draft, struct state *state) {
  int32_t *rows = NULL;
  if (writes_empty_rows(draft, state)) {
    rows = cb_rows_where(state->csr->rows, is_empty, state, &state->empty_rows);
    draft->failed |= !rows;
  }
  if (!state->empty_rows) {
    cb_free(rows);
    return;
  }
  cb_draft_section(draft, "empty");
  const int64_t least = cb_divide_up(state->empty_rows, ZEROS);
  if (state->blocks < least) state->blocks = least;
  cb_draft_index(draft, "empty_row", "rows without nonzeros", (uint32_t *)rows, 0, state->empty_rows);
  cb_draft_constant(draft, "kEmptyRows", state->empty_rows, "matrix: rows without nonzeros");
  cb_draft_constant(draft, "kBlocks", state->blocks, "plan: thread blocks of this region");
  cb_draft_fact(draft, "empty", "%lld", (long long)state->empty_rows);
}

/* Who does what: thread blocks of long rows first, then tiles, then those that write empty rows alone. */
static void draft_dispatch(struct cb_draft *draft, const struct state *state) {
  const int64_t work = state->pieces_count + state->tiles_count;
  const int both = state->pieces_count && state->tiles_count, idle = work && state->blocks > work;
  if (both) cb_draft_constant(draft, "kLongBlocks", state->pieces_count, "plan: thread blocks of long rows");
  if (idle) cb_draft_constant(draft, "kBusyBlocks", work, "plan: thread blocks that have nonzeros");
  if (both) cb_draft_section(draft, "both");
  if (idle) cb_draft_section(draft, "idle");
}

/* Registers for a lane's loads: 40, 48 or 64. A padded tile's begin before anything is known of the chunk, so what is
 * looked up meanwhile is in registers, too; beside the text of long rows, compilers find none left for it in 40. */
static int choose_blocks_per_sm(const struct cb_draft *draft, const struct state *state) {
  enum { LOOK_UP = 3 };
  const int meanwhile = state->padded && state->pieces_count ? LOOK_UP : 0;
  const int64_t words = state->items * (1 + (int64_t)cb_type_size(draft->vector_type) / 4) + meanwhile;
  return words <= 21 ? 6 : words <= 27 ? 5 : 4;
}

static void draft_region(struct cb_draft *draft, struct state *state) {
  state->blocks = state->pieces_count + state->tiles_count;
  cb_draft_fact(draft, "tiles", "%lld", (long long)state->tiles_count);
  if (state->tiles_count) cb_draft_fact(draft, "items", "%d", state->items);
  if (state->tiles_count && state->padded) cb_draft_fact(draft, "padded", "yes");
  if (state->pieces_count) cb_draft_fact(draft, "long", "%lld", (long long)(state->pieces_count));
  if (state->csr->nnz) draft_columns(draft, state);
  if (state->tiles_count) draft_tiles(draft, state);
  if (state->pieces_count) draft_long(draft, state);
  draft_empty(draft, state);
  draft_dispatch(draft, state);
  draft->region.blocks = state->blocks;
  draft->region.blocks_per_sm = choose_blocks_per_sm(draft, state);
  draft->region.commit = draft->commit;
}

/* ---- cost */

/* Thread blocks take pieces first, then tiles; lanes of a load take neighbours. */
static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const struct state *state = user;
  const int64_t tile = thread_block - state->pieces_count;
  int64_t begin = 0, end = 0;
  if (tile < 0) {
    begin = state->pieces[thread_block].begin;
    end = state->pieces[thread_block].end;
  } else if (tile < state->tiles_count) {
    begin = state->tiles[tile].begin;
    end = state->tiles[tile].end;
  }
  for (int64_t k = begin; k < end; k++) {
    if ((k - begin) % LANES == 0) cb_sector_load(sink);
    cb_sector_ask(sink, state->csr->col_idx[k]);
  }
}

/* Batches of the longest piece or uncut row, one after the other. */
static int64_t longest_chain(const struct state *state, int64_t begin, int64_t end, int64_t batch_ns) {
  int64_t longest = 0;
  for (int64_t p = begin; p < end; p++) {
    const int64_t length = state->pieces[p].end - state->pieces[p].begin;
    longest = length > longest ? length : longest;
  }
  return cb_divide_up(longest, PIECE) * batch_ns;
}

/* A tile is one batch of loads, and adding up takes longer than that; long rows are batches one after the other, and
 * their pieces wait for the last. Measured on the H200. */
static enum cb_status predict(struct cb_draft *draft, const struct state *state, struct cb_diag *diag) {
  struct cb_cost *cost = &draft->region.cost;
  const int64_t all = state->pieces_count;
  const int64_t long_ns = all ? longest_chain(state, 0, all, CB_COST_BATCH_NS) + CB_COST_MERGE_LOOK_UP_NS : 0;
  const int64_t tile_ns = state->tiles_count ? CB_COST_BATCH_NS + (state->padded ? 0 : CB_COST_MERGE_LOOK_UP_NS) : 0;
  cost->chain_ns = long_ns > tile_ns ? long_ns : tile_ns;
  cost->tail_ns = state->cut_pieces ? CB_COST_CARRY_MERGE_NS : state->tiles_count ? CB_COST_MERGE_ROWS_NS : 0;
  cost->stream_percent = CB_COST_MERGE_PERCENT;
  /* finding the ends of rows and storing them, in picoseconds on 132 multiprocessors */
  cost->work_ns = (state->csr->rows * 9 + state->csr->nnz * 3 / 2) * 132 / draft->target->multiprocessors / 1000;
  return cb_sectors_predict(draft, state, visit_sectors, diag);
}

static enum cb_status merge_plan(struct cb_draft *draft, struct cb_diag *diag) {
  const struct cb_csr *csr = draft->work.part.csr;
  struct state *state = cb_calloc(1, sizeof *state);
  if (!state) return cb_fail_memory(diag, "merge layout", sizeof *state);
  draft->work.state = state;
  state->csr = csr;
  state->own_rows = draft->own_rows;
  state->items = choose_items(csr, draft->options, draft->target);
  if (!cut_tiles(state) || !cut_long_rows(state, draft->options) || !place_tiles(state, draft->options))
    return cb_fail_memory(diag, "tiles",
                          (uint64_t)csr->nnz / (uint64_t)tile_size(state) * sizeof *state->tiles);
  draft_region(draft, state);
  state->own_rows = NULL;
  return predict(draft, state, diag);
}

static enum cb_status merge_pack(const struct cb_region *region, const struct cb_region_work *work,
                                 unsigned char *const *targets, const struct cb_slot_map *map,
                                 struct cb_diag *diag) {
  const struct state *state = work->state;
  const struct cb_late offsets = cb_late_find(region, targets, offset_name);
  (void)diag;
  if (offsets.bytes) fill_offsets(state, &offsets);
  cb_pieces_pack(map, &work->part, state->pieces, state->pieces_count);
#pragma omp parallel for schedule(static)
  for (int64_t t = 0; t < state->tiles_count; t++)
    for (int64_t k = state->tiles[t].begin; k < state->tiles[t].end; k++)
      cb_slot_set(map, state->first_step[t] * LANES + k - state->tiles[t].begin,
                  cb_part_origin(&work->part, k));
  return CB_OK;
}

/* Values, two bytes of column and a bit that may end a row. */
static int64_t merge_least_ns(const struct cb_csr *csr, const struct cb_target *target, struct cb_types types) {
  return cb_plan_stream_ns(csr, target, types, (int64_t)cb_type_size(types.matrix) + 2, CB_COST_MERGE_PERCENT);
}

const struct cb_layout cb_layout_merge = {
    .name = "merge",
    .summary = "equal shares of nonzeros for all lanes; a bit for each says where rows end",
    .source = "MERBIT; merge-based SpMV: Merrill, Garland, SC 2016",
    .plan = merge_plan,
    .pack = merge_pack,
    .release = state_release,
    .least_ns = merge_least_ns,
    .minds_own_rows = 1,
};
