// SPDX-License-Identifier: Apache-2.0
/* TileSpMV: tiles of 16 × 16 entries, each in one of seven formats by what it holds (census.h), and warps that take
 * several tiles of a panel (units.h). What is stored beside the values, n being a tile's nonzeros, and for every tile
 * the number of its column of tiles:
 *
 *   CSR      n - 1, 16 places of rows' first nonzeros, n columns
 *   COO      n - 1, n times 16 · row + column
 *   ELL      width w, the rows that are not empty as 16 bits, 16 w columns; values by column of ELL, then row. Short
 *            rows repeat their last column, and the repeat tells what is padding
 *   HYB      both: ELL of width w, and what is over as COO
 *   Dns      256 values by column, then row; 32 bytes of presence bits if any tile has holes
 *   DnsRow   which rows are full, as 16 bits, and 16 values for each
 *   DnsCol   likewise columns
 *
 * Columns within a tile have 4 bits, the lower half of a byte first. Numbers that are alike for all tiles of a format
 * become constants, and formats that do not occur leave no text.
 *
 * Deviations from the paper: a unit says where its tiles' slots begin, and counts (one byte each) say the rest, instead
 * of a pointer for each tile; full rows and columns are bits, never more bytes than a count and numbers of 4 bits; Dns
 * tiles over the matrix's edges have places for whole ones; a tile that would be HYB is COO or ELL where that is all
 * that its width leaves; sums that several warps have of a row meet in shared memory or in carry slots, not by atomics.
 */
#include "analysis/layouts/tile/options.h"
#include "analysis/layouts/tile/units.h"

#include "analysis/cost_figures.h"
#include "analysis/sectors.h"

enum {
  MOST_ROWS = INT32_MAX - 256,
  ROW_BYTES = 2,    /* of 16 bits */
  BLOCKS_PER_SM = 4 /* as many as leave registers for any of the formats */
};

struct state {
  struct cb_arena arena;
  const struct cb_csr *csr;
  const struct cb_tile_census *census; /* the split's, or `own` */
  struct cb_tile_census own;           /* in the arena */
  struct cb_tile_units units;
  uint16_t *full;      /* DnsRow and DnsCol: which, by tile of the census */
  uint16_t *occupied;  /* ELL and HYB: rows that are not empty; those below the matrix count as such */
  int dns_short;       /* some Dns tile has fewer than 256 nonzeros */
  int dns_holes;       /* some of these within the matrix */
};

static int64_t tiles_of(const struct state *state, enum cb_tile_format format) {
  return state->census->tiles_of[format];
}

/* ---- the census, and what only the layout asks of tiles */

/* The split's, or its own, which the arena then has. */
static enum cb_status find_census(struct state *state, const struct cb_region_builder *builder, struct cb_diag *diag) {
  const struct cb_tile_wish wish = cb_tile_wish_of(builder->settings, builder->matrix_type);
  struct cb_tile_census found;
  state->census = cb_part_found(&builder->work.part, CB_FOUND_TILES);
  if (state->census) return CB_OK;
  const enum cb_status s = cb_tile_census_find(&found, state->csr, &wish, diag);
  if (s) return s;
  state->own = found;
  state->own.first_tile =
      cb_arena_copy(&state->arena, found.first_tile, (size_t)found.panels + 1, sizeof *found.first_tile);
  state->own.tile = cb_arena_copy(&state->arena, found.tile, (size_t)found.tiles + 1, sizeof *found.tile);
  state->census = &state->own;
  cb_tile_census_release(&found);
  return state->arena.failed ? cb_fail_memory(diag, "tiles", (uint64_t)state->own.tiles * sizeof *found.tile) : CB_OK;
}

static uint16_t occupied_rows(const struct cb_subblock *block, int rows) {
  unsigned bits = 0xffffu << rows & 0xffff;
  for (int column = 0; column < CB_TILE_SIDE; column++) bits |= block->column_rows[column];
  return (uint16_t)bits;
}

/* Returns 2 when a Dns tile has holes, 1 when it only reaches over an edge, else 0. */
static int describe_tile(struct state *state, int64_t t, const struct cb_subblock *block, int rows) {
  const struct cb_tile_info *tile = &state->census->tile[t];
  const int64_t columns = cb_smaller(CB_TILE_SIDE, state->csr->cols - (int64_t)tile->column * CB_TILE_SIDE);
  const enum cb_tile_format format = (enum cb_tile_format)tile->format;
  if (format == CB_TILE_DNSROW) state->full[t] = (uint16_t)cb_tile_full_rows(block);
  if (format == CB_TILE_DNSCOL) state->full[t] = (uint16_t)cb_tile_full_columns(block);
  if (format == CB_TILE_ELL || format == CB_TILE_HYB) state->occupied[t] = occupied_rows(block, rows);
  if (format != CB_TILE_DNS || block->nonzeros == CB_TILE_PLACES) return 0;
  return block->nonzeros < rows * columns ? 2 : 1;
}

static int describe_panel(struct state *state, int64_t panel) {
  struct cb_panel_walk walk;
  struct cb_subblock block;
  int64_t t = state->census->first_tile[panel];
  const int rows = (int)cb_smaller(CB_TILE_SIDE, state->csr->rows - panel * CB_TILE_SIDE);
  int most = 0;
  cb_panel_open(&walk, state->csr, panel);
  for (; cb_panel_next(&walk, 0, &block); t++) {
    const int holes = describe_tile(state, t, &block, rows);
    most = holes > most ? holes : most;
  }
  return most;
}

static int describe_tiles(struct state *state) {
  const size_t tiles = (size_t)state->census->tiles + 1;
  int most = 0;
  state->full = cb_arena_alloc(&state->arena, tiles, sizeof *state->full);
  state->occupied = cb_arena_alloc(&state->arena, tiles, sizeof *state->occupied);
  if (state->arena.failed) return 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(max : most)
  for (int64_t panel = 0; panel < state->census->panels; panel++) {
    const int holes = describe_panel(state, panel);
    most = holes > most ? holes : most;
  }
  state->dns_short = most > 0;
  state->dns_holes = most > 1;
  return 1;
}

/* ---- arrays by tile: what the element functions are told */

static const struct cb_tile_info *tile_at(const struct state *state, enum cb_tile_format format, int64_t place) {
  return &state->census->tile[state->units.order[format][place]];
}

/* Of all formats, in their order. */
static uint64_t column_at(const void *user, int64_t i) {
  const struct state *state = user;
  int format = 0;
  for (; i >= state->census->tiles_of[format]; format++) i -= state->census->tiles_of[format];
  return (uint64_t)tile_at(state, (enum cb_tile_format)format, i)->column;
}

static uint64_t full_at(const struct state *state, enum cb_tile_format format, int64_t place) {
  return state->full[state->units.order[format][place]];
}
static uint64_t full_rows_at(const void *user, int64_t i) { return full_at(user, CB_TILE_DNSROW, i); }
static uint64_t full_columns_at(const void *user, int64_t i) { return full_at(user, CB_TILE_DNSCOL, i); }
static uint64_t ell_width_at(const void *user, int64_t i) { return tile_at(user, CB_TILE_ELL, i)->width; }
static uint64_t hyb_width_at(const void *user, int64_t i) { return tile_at(user, CB_TILE_HYB, i)->width; }
static uint64_t hyb_over_at(const void *user, int64_t i) { return tile_at(user, CB_TILE_HYB, i)->over; }
static uint64_t csr_last_at(const void *user, int64_t i) { return tile_at(user, CB_TILE_CSR, i)->last; }
static uint64_t coo_last_at(const void *user, int64_t i) { return tile_at(user, CB_TILE_COO, i)->last; }

static uint64_t ell_rows_at(const void *user, int64_t i) {
  const struct state *state = user;
  return state->occupied[state->units.order[CB_TILE_ELL][i]];
}
static uint64_t hyb_rows_at(const void *user, int64_t i) {
  const struct state *state = user;
  return state->occupied[state->units.order[CB_TILE_HYB][i]];
}

/* ---- arrays by unit */

/* Slots of whole columns or rows are counted in these. */
static uint64_t in_columns(const struct state *state, enum cb_tile_format format, int64_t unit) {
  return state->units.first_slot[format][unit] / CB_TILE_SIDE;
}
static uint64_t dnsrow_first_at(const void *user, int64_t u) { return in_columns(user, CB_TILE_DNSROW, u); }
static uint64_t dnscol_first_at(const void *user, int64_t u) { return in_columns(user, CB_TILE_DNSCOL, u); }
static uint64_t ell_first_at(const void *user, int64_t u) { return in_columns(user, CB_TILE_ELL, u); }
static uint64_t hyb_first_at(const void *user, int64_t u) { return in_columns(user, CB_TILE_HYB, u); }

/* Whether all tiles of a format have as many slots: then a unit need not say where they begin. */
static int is_even(const struct state *state, enum cb_tile_format format) {
  for (int64_t i = 1; i < tiles_of(state, format); i++)
    if (tile_at(state, format, i)->width != tile_at(state, format, 0)->width) return 0;
  return 1;
}

static void build_first_tile(struct cb_region_builder *builder, const struct state *state, enum cb_tile_format format,
                             const char *name) {
  cb_region_list(builder, name, "a unit's first tile of this format; units + 1", state->units.units + 1,
                 state->units.first_tile[format]);
}

/* ---- formats: each adds its arrays, constants and section */

/* Where the tiles of a format begin in tile_column, and its slots among all. */
static void build_ranges(struct cb_region_builder *builder, const struct state *state, enum cb_tile_format format,
                         const char *tiles) {
  int64_t before = 0;
  for (int f = 0; f < (int)format; f++) before += state->census->tiles_of[f];
  cb_region_size(builder, tiles, before, "plan: tiles of the formats before");
  cb_region_section(builder, cb_tile_format_names[format]);
}

static void build_dns(struct cb_region_builder *builder, const struct state *state) {
  const int equal = !builder->value_bytes, presence = equal ? state->dns_short : state->dns_holes;
  build_ranges(builder, state, CB_TILE_DNS, "kDnsTiles");
  build_first_tile(builder, state, CB_TILE_DNS, "dns_tile");
  if (equal && presence) cb_region_section(builder, "equal");
  if (!presence) return;
  cb_region_section(builder, "holes");
  cb_region_bytes(builder, "dns_present", "Dns: which columns of a row are present, 16 bits for each",
                  tiles_of(state, CB_TILE_DNS) * CB_TILE_SIDE * ROW_BYTES);
}

/* What the arrays and constants of formats that hold whole rows or columns of a tile are called. */
struct lines {
  enum cb_tile_format format;
  const char *tiles, *slots, *first_tile, *even;
  const char *first, *first_meaning;
  cb_element_of *first_at;
  const char *full, *full_meaning;
  cb_element_of *full_at;
};

static const struct lines full_rows = {CB_TILE_DNSROW, "kDnsRowTiles", "kDnsRowSlots", "dnsrow_tile", "dnsrow_even",
                                       "dnsrow_first", "a unit's first 16 slots of DnsRow", dnsrow_first_at,
                                       "dnsrow_rows", "DnsRow: which rows are full, as bits", full_rows_at};
static const struct lines full_columns = {CB_TILE_DNSCOL, "kDnsColTiles", "kDnsColSlots", "dnscol_tile", "dnscol_even",
                                          "dnscol_first", "a unit's first 16 slots of DnsCol", dnscol_first_at,
                                          "dnscol_columns", "DnsCol: which columns are full, as bits",
                                          full_columns_at};

static void build_lines(struct cb_region_builder *builder, const struct state *state, const struct lines *lines) {
  build_ranges(builder, state, lines->format, lines->tiles);
  cb_region_size(builder, lines->slots, state->units.first[cb_tile_store_of(lines->format)],
                 "plan: slots of the formats before");
  build_first_tile(builder, state, lines->format, lines->first_tile);
  if (is_even(state, lines->format)) cb_region_section(builder, lines->even);
  else cb_region_computed(builder, lines->first, lines->first_meaning, state->units.units, lines->first_at);
  cb_region_computed(builder, lines->full, lines->full_meaning, tiles_of(state, lines->format), lines->full_at);
}

static void build_dnsrow(struct cb_region_builder *builder, const struct state *state) {
  build_lines(builder, state, &full_rows);
}

static void build_dnscol(struct cb_region_builder *builder, const struct state *state) {
  build_lines(builder, state, &full_columns);
}

static void build_ell(struct cb_region_builder *builder, const struct state *state) {
  build_ranges(builder, state, CB_TILE_ELL, "kEllTiles");
  build_first_tile(builder, state, CB_TILE_ELL, "ell_tile");
  if (is_even(state, CB_TILE_ELL)) cb_region_section(builder, "ell_even");
  else
    cb_region_computed(builder, "ell_first", "a unit's first 16 slots of ELL", state->units.units, ell_first_at);
  cb_region_computed(builder, "ell_width", "ELL: nonzeros of a tile's longest row", tiles_of(state, CB_TILE_ELL),
                     ell_width_at);
  cb_region_computed(builder, "ell_rows", "ELL: rows that are not empty, as bits", tiles_of(state, CB_TILE_ELL),
                     ell_rows_at);
}

static void build_hyb(struct cb_region_builder *builder, const struct state *state) {
  const int64_t tiles = tiles_of(state, CB_TILE_HYB);
  build_ranges(builder, state, CB_TILE_HYB, "kHybTiles");
  build_first_tile(builder, state, CB_TILE_HYB, "hyb_tile");
  cb_region_computed(builder, "hyb_first", "a unit's first 16 slots of HYB, behind those of ELL", state->units.units,
                     hyb_first_at);
  cb_region_list(builder, "hyb_first_over", "a unit's first slot of what is over, behind those of COO",
                 state->units.units, state->units.first_over);
  cb_region_computed(builder, "hyb_width", "HYB: columns of ELL", tiles, hyb_width_at);
  cb_region_computed(builder, "hyb_rows", "HYB: rows that are not empty, as bits", tiles, hyb_rows_at);
  cb_region_computed(builder, "hyb_over", "HYB: nonzeros behind the width", tiles, hyb_over_at);
}

static void build_csr(struct cb_region_builder *builder, const struct state *state) {
  const int64_t tiles = tiles_of(state, CB_TILE_CSR);
  build_ranges(builder, state, CB_TILE_CSR, "kCsrTiles");
  cb_region_size(builder, "kCsrSlots", state->units.first[CB_STORE_CSR], "plan: slots of the formats before");
  build_first_tile(builder, state, CB_TILE_CSR, "csr_tile");
  cb_region_list(builder, "csr_first", "a unit's first slot of CSR", state->units.units,
                 state->units.first_slot[CB_TILE_CSR]);
  cb_region_computed(builder, "csr_last", "CSR: nonzeros of a tile, less one", tiles, csr_last_at);
  cb_region_bytes(builder, "csr_offsets", "CSR: nonzeros before each of 16 rows", tiles * CB_TILE_SIDE);
  cb_region_bytes(builder, "csr_columns", "CSR: column of a slot, 4 bits",
                  cb_divide_up(state->units.slots[CB_STORE_CSR], 2));
}

static void build_coo(struct cb_region_builder *builder, const struct state *state) {
  build_ranges(builder, state, CB_TILE_COO, "kCooTiles");
  build_first_tile(builder, state, CB_TILE_COO, "coo_tile");
  cb_region_list(builder, "coo_first", "a unit's first slot of COO", state->units.units,
                 state->units.first_slot[CB_TILE_COO]);
  cb_region_computed(builder, "coo_last", "COO: nonzeros of a tile, less one", tiles_of(state, CB_TILE_COO), coo_last_at);
}

/* What ELL has in common with HYB, and COO too. */
static void build_common(struct cb_region_builder *builder, const struct state *state) {
  const struct cb_tile_units *units = &state->units;
  if (tiles_of(state, CB_TILE_ELL) || tiles_of(state, CB_TILE_HYB)) {
    cb_region_section(builder, "columns_of_ell");
    cb_region_size(builder, "kEllSlots", units->first[CB_STORE_ELL], "plan: slots of the formats before");
    cb_region_bytes(builder, "ell_columns", "ELL and HYB: column of a slot, 4 bits", units->slots[CB_STORE_ELL] / 2);
  }
  if (tiles_of(state, CB_TILE_COO) || tiles_of(state, CB_TILE_HYB)) {
    cb_region_section(builder, "places_of_coo");
    cb_region_size(builder, "kCooSlots", units->first[CB_STORE_COO], "plan: slots of the formats before");
    cb_region_bytes(builder, "coo_places", "COO and HYB: 16 · row + column of a slot", units->slots[CB_STORE_COO]);
  }
}

static void build_formats(struct cb_region_builder *builder, const struct state *state) {
  static void (*const build[CB_TILE_FORMATS])(struct cb_region_builder *, const struct state *) = {
      build_dns, build_dnsrow, build_dnscol, build_ell, build_hyb, build_csr, build_coo};
  if (!state->census->tiles) return;
  cb_region_section(builder, "tiles");
  if (state->csr->cols % CB_TILE_SIDE == 0) cb_region_section(builder, "whole");
  cb_region_computed(builder, "tile_column", "a tile's column of tiles", state->census->tiles, column_at);
  build_common(builder, state);
  for (int format = 0; format < CB_TILE_FORMATS; format++)
    if (state->census->tiles_of[format]) build[format](builder, state);
}

/* ---- the region: units and how their sums meet */

static void build_even(struct cb_region_builder *builder, const struct state *state) {
  const int64_t each = state->units.per_panel;
  cb_region_section(builder, "even");
  builder->region.block_rows = CB_TILE_WARPS / each * CB_TILE_SIDE;
  if (each == 1) return;
  cb_region_structure(builder, "kUnits", each, "plan: units of a panel");
}

static void build_uneven(struct cb_region_builder *builder, const struct state *state) {
  const struct cb_tile_units *units = &state->units;
  cb_region_list(builder, "unit_panel", "panel of a unit", units->units, units->panel);
  if (units->most_together > 1)
    cb_region_list(builder, "units_together", "units of a panel in a thread block, at the first of them; else 0",
                   units->units, units->together);
  cb_region_carries(builder, "carry", units->pieces, units->piece_number,
                    "plan: thread blocks that share a panel with others; the first ones");
  if (units->pieces) builder->region.carry_width = CB_TILE_SIDE;
}

static void build_units(struct cb_region_builder *builder, const struct state *state) {
  const struct cb_tile_units *units = &state->units;
  if (units->per_panel) build_even(builder, state);
  else build_uneven(builder, state);
  if (units->most_together > 1) {
    cb_region_section(builder, "add_units");
    builder->region.static_shared += CB_TILE_WARPS * CB_TILE_SIDE * (int64_t)cb_type_size(builder->sum_type);
  }
  int guarded = state->csr->rows % CB_TILE_SIDE != 0;
  for (int64_t u = 0; u < units->units && !guarded; u++)
    guarded = units->per_panel ? units->units > units->per_panel * state->census->panels
                               : units->panel[u] >= state->census->panels;
  if (guarded) cb_region_section(builder, "guarded");
  builder->region.blocks = units->units / CB_TILE_WARPS;
  builder->region.blocks_per_sm = cb_region_blocks_for(builder, BLOCKS_PER_SM);
}

static void build_facts(struct cb_region_builder *builder, const struct state *state) {
  cb_region_fact(builder, "panels", "%lld", (long long)state->census->panels);
  for (int format = 0; format < CB_TILE_FORMATS; format++)
    if (state->census->tiles_of[format])
      cb_region_fact(builder, cb_tile_format_names[format], "%lld %lld", (long long)state->census->tiles_of[format],
                     (long long)state->census->nonzeros_of[format]);
  cb_region_fact(builder, "units", "%lld", (long long)state->units.units);
}

static void build_region(struct cb_region_builder *builder, const struct state *state) {
  if (state->dns_short && builder->value_bytes) cb_region_zero_slots(builder);
  build_formats(builder, state);
  if (state->census->tiles)
    cb_region_values(builder, "values", "slots of Dns, DnsRow, DnsCol, ELL, CSR and COO, in this order",
                     state->units.all_slots);
  build_units(builder, state);
  build_facts(builder, state);
}

/* ---- what it costs */

static void visit_unit(const struct state *state, int64_t unit, struct cb_sector_sink *sink) {
  for (int format = 0; format < CB_TILE_FORMATS; format++) {
    const uint32_t *first = state->units.first_tile[format];
    for (int64_t i = first ? first[unit] : 0; first && i < first[unit + 1]; i++) {
      const int64_t column = (int64_t)tile_at(state, (enum cb_tile_format)format, i)->column * CB_TILE_SIDE;
      cb_sector_load(sink);
      for (int64_t c = column; c < cb_smaller(column + CB_TILE_SIDE, state->csr->cols); c++) cb_sector_ask(sink, c);
    }
  }
}

static void visit_sectors(const void *user, int64_t thread_block, struct cb_sector_sink *sink) {
  const struct state *state = user;
  for (int64_t u = thread_block * CB_TILE_WARPS; u < (thread_block + 1) * CB_TILE_WARPS; u++)
    visit_unit(state, u, sink);
}

/* Instructions of a warp for a unit, for a tile, and for each two of a row's or a column's nonzeros: estimates. */
enum { UNIT_INSTRUCTIONS = 60, TILE_INSTRUCTIONS = 30, STEP_INSTRUCTIONS = 14 };

static int64_t steps_of(const struct cb_tile_info *tile) {
  enum { ROWS_AT_ONCE = 2 };
  if (tile->format == CB_TILE_DNS) return CB_TILE_SIDE / ROWS_AT_ONCE;
  if (tile->format == CB_TILE_COO) return cb_divide_up(cb_tile_nonzeros(tile), ROWS_AT_ONCE);
  if (tile->format == CB_TILE_CSR) return cb_divide_up(cb_tile_nonzeros(tile), CB_TILE_SIDE);
  return cb_divide_up(tile->width, ROWS_AT_ONCE) + cb_divide_up(tile->over, ROWS_AT_ONCE);
}

/* Of a unit: their loads wait for each other. */
static int64_t most_tiles(const struct state *state) {
  int64_t most = 0;
  for (int64_t panel = 0; panel < state->census->panels; panel++)
    most = cb_larger(most, state->census->first_tile[panel + 1] - state->census->first_tile[panel]);
  return cb_smaller(most, state->units.balance);
}

static enum cb_status predict(struct cb_region_builder *builder, const struct state *state, struct cb_diag *diag) {
  const struct cb_tile_census *census = state->census;
  struct cb_cost *cost = &builder->region.cost;
  int64_t instructions = state->units.units * UNIT_INSTRUCTIONS + census->tiles * TILE_INSTRUCTIONS;
  for (int64_t t = 0; t < census->tiles; t++) instructions += steps_of(&census->tile[t]) * STEP_INSTRUCTIONS;
  cost->work_ns = instructions * CB_COST_INSTRUCTION_PS / builder->target->multiprocessors / 1000;
  cost->chain_ns = CB_COST_CB_FIRST_NS + most_tiles(state) * CB_COST_CB_BATCH_NS;
  cost->tail_ns = (state->units.most_together > 1 ? CB_COST_CB_TOGETHER_NS : 0) +
                  (builder->region.carry_slots ? CB_COST_CARRY_NS : 0);
  cost->stream_percent = CB_COST_CB_PERCENT;
  return cb_sectors_predict(builder, state, visit_sectors, diag);
}

static enum cb_status tile_plan(struct cb_region_builder *builder, struct cb_diag *diag) {
  enum cb_status s = cb_region_state(builder, sizeof(struct state), diag);
  struct state *state = builder->work.state;
  if (s) return s;
  state->csr = builder->work.part.csr;
  s = find_census(state, builder, diag);
  if (s) return s;
  state->units.arena = &state->arena;
  state->units.census = state->census;
  state->units.balance = builder->settings[TILE_BALANCE];
  if (!describe_tiles(state) || !cb_tile_units_make(&state->units))
    return cb_fail_memory(diag, "tiles", (uint64_t)state->census->tiles * sizeof *state->units.slot);
  builder->work.units = state->census->panels;
  build_region(builder, state);
  return predict(builder, state, diag);
}

/* ---- the visit */

/* Byte arrays that are wanted, else NULL. */
struct targets {
  unsigned char *dns_present, *ell_columns, *csr_offsets, *csr_columns, *coo_places;
};

static void set_half(unsigned char *bytes, int64_t slot, int number) {
  if (bytes) bytes[slot / 2] |= (unsigned char)(number << 4 * (slot % 2));
}

/* A tile that is met, and a nonzero of it: number `k` of the row, number `n` of the tile by rows. */
struct met {
  const struct state *state;
  const struct targets *to;
  const struct cb_tile_info *tile;
  int64_t t;
  unsigned char lengths[CB_TILE_SIDE];
  int over; /* HYB: nonzeros so far behind the width */
};

static int64_t bits_below(unsigned bits, int bit) { return __builtin_popcount(bits & ((1u << bit) - 1)); }

/* Slots of a nonzero within its store; each also writes what stands beside it. */
static int64_t place_dns(struct met *at, int row, int column, int k, int n) {
  const int64_t place = at->state->units.place[at->t];
  unsigned char *present = at->to->dns_present;
  (void)k, (void)n;
  if (present) present[(place * CB_TILE_SIDE + row) * ROW_BYTES + column / 8] |= (unsigned char)(1 << column % 8);
  return place * CB_TILE_PLACES + column * CB_TILE_SIDE + row;
}

static int64_t place_dnsrow(struct met *at, int row, int column, int k, int n) {
  (void)k, (void)n;
  return (int64_t)at->state->units.slot[at->t] + bits_below(at->state->full[at->t], row) * CB_TILE_SIDE + column;
}

static int64_t place_dnscol(struct met *at, int row, int column, int k, int n) {
  (void)k, (void)n;
  return (int64_t)at->state->units.slot[at->t] + bits_below(at->state->full[at->t], column) * CB_TILE_SIDE + row;
}

/* The last nonzero of a row repeats its column up to the width. */
static int64_t place_ell(struct met *at, int row, int column, int k, int n) {
  const int64_t first = (int64_t)at->state->units.slot[at->t] + row;
  const int last = k + 1 == at->lengths[row] ? at->tile->width : k + 1;
  (void)n;
  for (int i = k; i < last; i++) set_half(at->to->ell_columns, first + i * CB_TILE_SIDE, column);
  return first + k * CB_TILE_SIDE;
}

static int64_t place_csr(struct met *at, int row, int column, int k, int n) {
  const int64_t slot = (int64_t)at->state->units.slot[at->t] + n;
  (void)row, (void)k;
  set_half(at->to->csr_columns, slot, column);
  return slot;
}

static int64_t place_coo(struct met *at, int row, int column, int k, int n) {
  const int64_t slot = (int64_t)at->state->units.slot[at->t] + n;
  (void)k;
  if (at->to->coo_places) at->to->coo_places[slot] = (unsigned char)(16 * row + column);
  return slot;
}

static int64_t place_over(struct met *at, int row, int column) {
  const int64_t slot = (int64_t)at->state->units.over[at->t] + at->over++;
  if (at->to->coo_places) at->to->coo_places[slot] = (unsigned char)(16 * row + column);
  return slot;
}

/* The slot among all of the region's. */
static int64_t place_nonzero(struct met *at, int row, int column, int k, int n) {
  static int64_t (*const place[CB_TILE_FORMATS])(struct met *, int row, int column, int k, int n) = {
      place_dns, place_dnsrow, place_dnscol, place_ell, place_ell, place_csr, place_coo};
  const enum cb_tile_format format = (enum cb_tile_format)at->tile->format;
  const int64_t *first = at->state->units.first;
  if (format == CB_TILE_HYB && k >= at->tile->width) return first[CB_STORE_COO] + place_over(at, row, column);
  return first[cb_tile_store_of(format)] + place[format](at, row, column, k, n);
}

static void write_offsets(const struct met *at) {
  int before = 0;
  if (at->tile->format != CB_TILE_CSR || !at->to->csr_offsets) return;
  for (int row = 0; row < CB_TILE_SIDE; row++) {
    at->to->csr_offsets[(int64_t)at->state->units.place[at->t] * CB_TILE_SIDE + row] = (unsigned char)before;
    before += at->lengths[row];
  }
}

static void visit_tile(const struct cb_subblock *block, struct met *at, const struct cb_walk *walk) {
  int n = 0;
  at->tile = &at->state->census->tile[at->t];
  at->over = 0;
  cb_tile_lengths(block, at->lengths);
  write_offsets(at);
  for (int row = 0; row < CB_TILE_SIDE; row++) {
    int k = 0;
    for (unsigned left = cb_subblock_row(block, row); left; left &= left - 1, k++)
      cb_emit_nonzero(walk, place_nonzero(at, row, __builtin_ctz(left), k, n++), block->first[row] + k);
  }
}

static int tile_visit(const void *user, int64_t first, int64_t end, const struct cb_walk *to) {
  const struct targets targets = {cb_walk_bytes(to, "dns_present"), cb_walk_bytes(to, "ell_columns"),
                                  cb_walk_bytes(to, "csr_offsets"), cb_walk_bytes(to, "csr_columns"),
                                  cb_walk_bytes(to, "coo_places")};
  struct met at = {.state = user, .to = &targets};
  for (int64_t panel = first; panel < end; panel++) {
    struct cb_panel_walk walk;
    struct cb_subblock block;
    cb_panel_open(&walk, at.state->csr, panel);
    at.t = at.state->census->first_tile[panel];
    for (; cb_panel_next(&walk, 0, &block); at.t++) visit_tile(&block, &at, to);
  }
  return 1;
}

const struct cb_layout cb_layout_tile = {
    .name = "tile",
    .summary = "16x16 tiles, each in one of seven formats",
    .source = "TileSpMV: a tiled algorithm for sparse matrix-vector multiplication on GPUs",
    .options = cb_tile_options,
    .options_count = TILE_OPTIONS,
    .recipes = cb_tile_recipes,
    .plan = tile_plan,
    .visit = tile_visit,
    .unit = "panel",
    .most_rows = MOST_ROWS,
};
