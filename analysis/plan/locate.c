// SPDX-License-Identifier: Apache-2.0
/* Finding a row in a plan: see locate.h. The slot maps tell, so that no layout has to. */
#include "analysis/plan/locate.h"

#include "analysis/plan/assignment.h"
#include "base/integers.h"

/* The slots of one region that hold nonzeros of a row, and the units of its layout that the outer ones are in. */
struct holding {
  int64_t count, first, last;
  int64_t mirrored; /* more nonzeros of the row, in slots of their mirror images */
  int64_t first_unit, last_unit; /* −1: unknown */
};

static struct holding find_slots(const struct cb_slot_map *map, uint64_t begin, uint64_t end) {
  struct holding holding = {0};
  for (int64_t slot = 0; slot < map->count; slot++) {
    const uint64_t nonzero = cb_slot_get(map, slot);
    if (nonzero < begin || nonzero >= end) continue;
    if (!holding.count++) holding.first = slot;
    holding.last = slot;
  }
  return holding;
}

/* Which of the layout's units has the slot: the visit of that one names it again. −1: unknown. */
static int64_t find_unit(const struct cb_slot_map *map, const struct cb_layout *layout,
                         const struct cb_region_work *work, int64_t slot) {
  const struct cb_walk walk = {.part = &work->part, .map = map};
  const uint64_t nonzero = cb_slot_get(map, slot);
  int64_t found = -1;
  cb_slot_set(map, slot, CB_NO_NONZERO);
  for (int64_t unit = 0; unit < work->units && found < 0; unit++) {
    if (!layout->visit(work->state, unit, unit + 1, &walk)) break;
    if (cb_slot_get(map, slot) == nonzero) found = unit;
  }
  cb_slot_set(map, slot, nonzero);
  return found;
}

/* "slots 3 to 7", or "slot 3". */
static void add_range(struct cb_text *text, const char *what, int64_t a, int64_t b) {
  const int64_t first = cb_smaller(a, b), last = cb_larger(a, b);
  if (first < last) cb_text_add(text, "%ss %lld to %lld", what, (long long)first, (long long)last);
  else cb_text_add(text, "%s %lld", what, (long long)first);
}

static void describe(struct cb_text *text, const struct cb_region *region, struct holding holding, int64_t row) {
  cb_text_add(text, "%lld in %s (layout %s", (long long)holding.count, region->name, region->layout);
  if (holding.mirrored) cb_text_add(text, ", and %lld in slots of their mirror images", (long long)holding.mirrored);
  if (!holding.count) {
    cb_text_add_string(text, ")");
    return;
  }
  if (holding.first_unit >= 0 && holding.last_unit >= 0) {
    cb_text_add_string(text, ", its ");
    add_range(text, cb_layout_find(region->layout)->unit, holding.first_unit, holding.last_unit);
  }
  cb_text_add_string(text, ", ");
  add_range(text, "slot", holding.first, holding.last);
  if (region->block_rows)
    cb_text_add(text, ", thread block %lld of the launch", (long long)(region->first_block + row / region->block_rows));
  cb_text_add_string(text, ")");
}

/* What one region holds of a row with the nonzeros begin … end - 1. */
static struct holding find_in_region(const struct cb_plan *plan, const struct cb_assignment *assignment, int number,
                                     uint64_t begin, uint64_t end) {
  const struct cb_region_work *work = &assignment->regions[number];
  const struct cb_layout *layout = assignment->layouts[number];
  struct cb_slot_map map;
  struct cb_diag unused = {0};
  if (cb_slot_map_build(&map, plan, assignment, number, NULL, &unused)) return (struct holding){0};
  struct holding holding = find_slots(&map, begin, end);
  if (holding.count) {
    holding.first_unit = find_unit(&map, layout, work, holding.first);
    holding.last_unit = find_unit(&map, layout, work, holding.last);
  }
  cb_slot_map_release(&map);
  if (!cb_mirror_map_build(&map, plan, assignment, number, &unused)) {
    holding.mirrored = find_slots(&map, begin, end).count;
    cb_slot_map_release(&map);
  }
  return holding;
}

void cb_locate_row(struct cb_text *text, const struct cb_plan *plan, const struct cb_assignment *assignment,
                   const struct cb_csr *csr, int64_t row) {
  const uint64_t begin = (uint64_t)cb_csr_row(csr, row), end = (uint64_t)cb_csr_row(csr, row + 1);
  int found = 0;
  for (int number = 0; number < plan->regions_count && begin < end; number++) {
    const struct holding holding = find_in_region(plan, assignment, number, begin, end);
    if (!holding.count && !holding.mirrored) continue;
    if (found++) cb_text_add_string(text, ", ");
    describe(text, &plan->regions[number], holding, row);
  }
}
