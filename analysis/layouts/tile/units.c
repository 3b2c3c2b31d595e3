// SPDX-License-Identifier: Apache-2.0
/* Units, and the place of each tile: see units.h. */
#include "analysis/layouts/tile/units.h"

static const enum cb_tile_store store_of[CB_TILE_FORMATS] = {
    [CB_TILE_DNS] = CB_STORE_DNS, [CB_TILE_DNSROW] = CB_STORE_DNSROW, [CB_TILE_DNSCOL] = CB_STORE_DNSCOL,
    [CB_TILE_ELL] = CB_STORE_ELL, [CB_TILE_HYB] = CB_STORE_ELL,       [CB_TILE_CSR] = CB_STORE_CSR,
    [CB_TILE_COO] = CB_STORE_COO};

enum cb_tile_store cb_tile_store_of(enum cb_tile_format format) { return store_of[format]; }

int64_t cb_tile_slots(const struct cb_tile_info *tile) {
  const int64_t by_format[CB_TILE_FORMATS] = {
      [CB_TILE_DNS] = CB_TILE_PLACES,
      [CB_TILE_DNSROW] = CB_TILE_SIDE * tile->width,
      [CB_TILE_DNSCOL] = CB_TILE_SIDE * tile->width,
      [CB_TILE_ELL] = CB_TILE_SIDE * tile->width,
      [CB_TILE_HYB] = CB_TILE_SIDE * tile->width,
      [CB_TILE_CSR] = cb_tile_nonzeros(tile),
      [CB_TILE_COO] = cb_tile_nonzeros(tile),
  };
  return by_format[tile->format];
}

/* ---- how many units each panel has, and which thread blocks */

/* A panel without tiles has a unit: somebody must write its rows. */
static int64_t units_of(const struct cb_tile_units *units, int64_t panel) {
  const int64_t tiles = units->census->first_tile[panel + 1] - units->census->first_tile[panel];
  return cb_larger(1, cb_divide_up(tiles, units->balance));
}

/* Even when that adds few units that have nothing to do. */
static void choose_even(struct cb_tile_units *units) {
  enum { MORE_PERCENT = 25 };
  int64_t most = 1, all = 0;
  for (int64_t panel = 0; panel < units->census->panels; panel++) {
    most = cb_larger(most, units_of(units, panel));
    all += units_of(units, panel);
  }
  int64_t each = 1;
  while (each < most) each *= 2;
  if (each <= CB_TILE_WARPS && 100 * units->census->panels * each <= (100 + MORE_PERCENT) * all)
    units->per_panel = each;
}

/* Thread blocks of its own that a panel has, when the units are not even. */
static int64_t pieces_of(const struct cb_tile_units *units, int64_t panel) {
  const int64_t count = units_of(units, panel);
  return count > CB_TILE_WARPS ? cb_divide_up(count, CB_TILE_WARPS) : 0;
}

/* Where the next panel's units begin, behind `at` of them. */
static int64_t next_fit(int64_t at, int64_t count) {
  return at % CB_TILE_WARPS + count > CB_TILE_WARPS ? cb_round_up(at, CB_TILE_WARPS) : at;
}

static void count_units(struct cb_tile_units *units) {
  const int64_t panels = units->census->panels;
  choose_even(units);
  if (units->per_panel) {
    units->units = cb_round_up(panels * units->per_panel, CB_TILE_WARPS);
    return;
  }
  for (int64_t panel = 0; panel < panels; panel++) units->pieces += pieces_of(units, panel);
  int64_t at = units->pieces * CB_TILE_WARPS;
  for (int64_t panel = 0; panel < panels; panel++)
    if (!pieces_of(units, panel)) at = next_fit(at, units_of(units, panel)) + units_of(units, panel);
  units->units = cb_round_up(at, CB_TILE_WARPS);
}

static void give_panel(struct cb_tile_units *units, int64_t panel, int64_t first, int64_t count) {
  for (int64_t u = first; u < first + count; u++) units->panel[u] = (uint32_t)panel;
  for (int64_t u = first; u < first + count; u += CB_TILE_WARPS)
    units->together[u] = (unsigned char)cb_smaller(CB_TILE_WARPS, count);
  units->most_together = (int)cb_larger(units->most_together, cb_smaller(CB_TILE_WARPS, count));
}

/* Padding has the number of a panel below the last one. */
static void give_panels(struct cb_tile_units *units) {
  const int64_t panels = units->census->panels;
  int64_t at = 0, piece = 0;
  for (int64_t u = 0; u < units->units; u++) units->panel[u] = (uint32_t)panels;
  for (int64_t panel = 0; panel < panels; panel++) {
    const int64_t pieces = pieces_of(units, panel);
    for (int64_t p = 0; p < pieces; p++) units->piece_number[piece++] = (uint32_t)p;
    if (pieces) give_panel(units, panel, at, pieces * CB_TILE_WARPS);
    at += pieces * CB_TILE_WARPS;
  }
  for (int64_t panel = 0; panel < panels; panel++) {
    const int64_t count = units_of(units, panel);
    if (pieces_of(units, panel)) continue;
    at = next_fit(at, count);
    give_panel(units, panel, at, count);
    at += count;
  }
}

/* ---- where tiles are */

/* The next tile's place and first slot of each format, while units are met in their order. */
struct cursor {
  uint32_t place[CB_TILE_FORMATS];
  uint64_t slot[CB_TILE_STORES], hyb, over;
};

static uint64_t *slot_of(struct cursor *at, enum cb_tile_format format) {
  return format == CB_TILE_HYB ? &at->hyb : &at->slot[store_of[format]];
}

/* A unit's columns of CSR begin at whole bytes: threads that pack panels side by side write none together. */
static void open_unit(struct cb_tile_units *units, struct cursor *at, int64_t unit) {
  at->slot[CB_STORE_CSR] += at->slot[CB_STORE_CSR] % 2;
  for (int format = 0; format < CB_TILE_FORMATS; format++) {
    if (!units->first_tile[format]) continue;
    units->first_tile[format][unit] = at->place[format];
    units->first_slot[format][unit] = *slot_of(at, (enum cb_tile_format)format);
  }
  if (units->first_over) units->first_over[unit] = at->over;
}

static void put_tile(struct cb_tile_units *units, struct cursor *at, int64_t t) {
  const struct cb_tile_info *tile = &units->census->tile[t];
  const enum cb_tile_format format = (enum cb_tile_format)tile->format;
  units->order[format][at->place[format]] = (uint32_t)t;
  units->place[t] = at->place[format]++;
  units->slot[t] = *slot_of(at, format);
  *slot_of(at, format) += (uint64_t)cb_tile_slots(tile);
  if (format != CB_TILE_HYB) return;
  units->over[t] = at->over;
  at->over += tile->over;
}

/* A panel's tiles by format, a unit after every `balance` of them; units that are left are empty. */
static void put_panel(struct cb_tile_units *units, struct cursor *at, int64_t panel, int64_t unit, int64_t end) {
  const struct cb_tile_census *census = units->census;
  int64_t put = 0;
  for (int format = 0; format < CB_TILE_FORMATS; format++)
    for (int64_t t = census->first_tile[panel]; t < census->first_tile[panel + 1]; t++) {
      if (census->tile[t].format != format) continue;
      if (put++ % units->balance == 0) open_unit(units, at, unit++);
      put_tile(units, at, t);
    }
  for (; unit < end; unit++) open_unit(units, at, unit);
}

static int64_t panel_of(const struct cb_tile_units *units, int64_t unit) {
  return units->per_panel ? unit / units->per_panel : (int64_t)units->panel[unit];
}

/* Slots of HYB's parts lie behind those of ELL and COO. */
static void put_tiles(struct cb_tile_units *units) {
  const struct cb_tile_census *census = units->census;
  struct cursor at = {{0}, {0}, 0, 0};
  for (int64_t t = 0; t < census->tiles; t++) {
    const struct cb_tile_info *tile = &census->tile[t];
    if (tile->format == CB_TILE_ELL) at.hyb += (uint64_t)cb_tile_slots(tile);
    if (tile->format == CB_TILE_COO) at.over += (uint64_t)cb_tile_slots(tile);
  }
  for (int64_t unit = 0, end; unit < units->units; unit = end) {
    const int64_t panel = panel_of(units, unit);
    for (end = unit + 1; end < units->units && panel_of(units, end) == panel;) end++;
    if (panel < census->panels) put_panel(units, &at, panel, unit, end);
    else for (int64_t u = unit; u < end; u++) open_unit(units, &at, u);
  }
  open_unit(units, &at, units->units);
  for (int store = 0; store < CB_TILE_STORES; store++) units->slots[store] = (int64_t)at.slot[store];
  if (census->tiles_of[CB_TILE_HYB]) {
    units->slots[CB_STORE_ELL] = (int64_t)at.hyb;
    units->slots[CB_STORE_COO] = (int64_t)at.over;
  }
  for (int store = 0; store < CB_TILE_STORES; store++) {
    units->first[store] = units->all_slots;
    units->all_slots += units->slots[store];
  }
}

/* ---- all of it */

static void make_lists(struct cb_tile_units *units) {
  const struct cb_tile_census *census = units->census;
  const size_t all = (size_t)units->units + 1, tiles = (size_t)census->tiles + 1;
  for (int format = 0; format < CB_TILE_FORMATS; format++) {
    const size_t count = (size_t)census->tiles_of[format];
    if (!count) continue;
    units->first_tile[format] = cb_arena_alloc(units->arena, all, sizeof *units->first_tile[format]);
    units->first_slot[format] = cb_arena_alloc(units->arena, all, sizeof *units->first_slot[format]);
    units->order[format] = cb_arena_alloc(units->arena, count, sizeof *units->order[format]);
  }
  units->place = cb_arena_alloc(units->arena, tiles, sizeof *units->place);
  units->slot = cb_arena_alloc(units->arena, tiles, sizeof *units->slot);
  if (census->tiles_of[CB_TILE_HYB]) {
    units->first_over = cb_arena_alloc(units->arena, all, sizeof *units->first_over);
    units->over = cb_arena_alloc(units->arena, tiles, sizeof *units->over);
  }
  if (units->per_panel) return;
  units->panel = cb_arena_alloc(units->arena, all, sizeof *units->panel);
  units->together = cb_arena_alloc(units->arena, all, sizeof *units->together);
  units->piece_number = cb_arena_alloc(units->arena, (size_t)units->pieces + 1, sizeof *units->piece_number);
}

int cb_tile_units_make(struct cb_tile_units *units) {
  count_units(units);
  make_lists(units);
  if (units->arena->failed) return 0;
  if (!units->per_panel) give_panels(units);
  else units->most_together = (int)units->per_panel;
  put_tiles(units);
  return 1;
}
