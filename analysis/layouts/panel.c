// SPDX-License-Identifier: Apache-2.0
/* Panels that stage x: a thread block multiplies consecutive rows, a panel, whose columns it reads once into
 * shared memory; entries address what lies there with 8 or 16 bits. CB-SpMV's aggregated column list, carried
 * to a whole thread block: what rows of a panel share is gathered from L2 once, however little of it L1 would
 * keep.
 *
 *   unit   1 to 32 neighbouring columns, aligned: what the panel's column list has an entry for. Wide units
 * make a short list where columns come in runs, single columns waste no shared memory where they do not panel
 * as many rows as keep the entries of x within shared memory's share, the nonzeros within a budget slice  32
 * lanes of a warp, 1 to 32 of them to a row; the slots of one step lie side by side (see sell.c). Rows are
 *          ordered by length within their panel
 *   long   rows that would keep a panel's other warps waiting: they share too little with others, and thread
 * blocks of their own add them up; very long ones in pieces, of which the last to arrive adds up (carry
 * slots)
 *
 * A place is what a group of lanes multiplies: a row, or nothing (padding). No lane goes past its row's end,
 * so neither NaN nor Inf in x reaches a row through padding, nor through columns that a unit has but the
 * panel does not.
 *
 * How to read it: panel_cut.c cuts the matrix; panel_plan near the end of this file calls the passes in
 * order.
 */
#include "analysis/layouts/panel_cut.h"

#include "analysis/panels.h"
#include "analysis/pieces.h"
#include "base/integers.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum {
  LANES = CB_PANEL_LANES,
  NO_ROW = CB_PANEL_NO_ROW,
  PLAIN_SHARED = 48 << 10,
  STREAM_PERCENT = 92, /* of the rate at which data can be read */
  MOST_BATCH = 6,
  MOST_STAGE = 4 /* entries of x that a thread loads together */
};

static void release(void *memory) {
  if (memory) cb_panel_cut_release(memory);
  cb_free(memory);
}

/* ---- contents of the arrays: needs slices */

static int64_t panel_slots(const struct cb_panel_cut *cut) {
  return cut->first_step[cut->slices] * LANES;
}

/* Steps of 32 slots that long rows take: in front of all panels. */
static int64_t long_steps(const struct cb_panel_cut *cut) {
  return cb_divide_up(cut->long_slots, LANES);
}

/* Slot of nonzero k of the row at place `in_slice` of a slice, among the panels' slots. */
static int64_t slot_of(const struct cb_panel_cut *cut, int64_t slice, int64_t in_slice, int64_t k) {
  const int log2 = cut->slice_lanes[slice];
  return (cut->first_step[slice] + (k >> log2)) * LANES + (in_slice << log2) + (k & ((1 << log2) - 1));
}

/* What the draft takes over. */
struct contents {
  uint64_t *first_unit;  /* by panel; one more */
  uint32_t *unit, *base; /* by unit, from its panel's first; that one */
  uint32_t *address;     /* by slot */
  int runs;              /* the units of each panel are neighbours: no list is needed */
};

static void contents_release(struct contents *contents) {
  cb_free(contents->first_unit);
  cb_free(contents->unit);
  cb_free(contents->base);
  cb_free(contents->address);
}

static int contents_init(struct contents *contents, const struct cb_panel_cut *cut) {
  const size_t panels = (size_t)cut->panels;
  contents->first_unit = cb_alloc(panels + 1, sizeof *contents->first_unit);
  contents->unit = cb_alloc((size_t)cut->units_sum, sizeof *contents->unit);
  contents->base = cb_alloc(panels, sizeof *contents->base);
  contents->address = cb_calloc((size_t)panel_slots(cut), sizeof *contents->address);
  contents->runs = 1;
  if (!contents->first_unit || !contents->unit || !contents->base || !contents->address) return 0;
  contents->first_unit[0] = 0;
  for (size_t p = 0; p < panels; p++) contents->first_unit[p + 1] = contents->first_unit[p] + cut->units[p];
  return 1;
}

static void fill_addresses(const struct cb_panel_cut *cut, int64_t slice, const struct cb_panel_work *work,
                           uint32_t *address) {
  const struct cb_csr *csr = cut->csr;
  const uint32_t within = (1u << cut->unit_log2) - 1;
  for (int64_t place = cut->first_place[slice]; place < cut->first_place[slice + 1]; place++) {
    const int32_t row = cut->row[place];
    for (int64_t k = row == NO_ROW ? 0 : cb_csr_row(csr, row); row != NO_ROW && k < cb_csr_row(csr, row + 1);
         k++) {
      const uint32_t entry = cb_unit_set_place(&work->set, cb_panel_unit(cut, k)) << cut->unit_log2;
      address[slot_of(cut, slice, place - cut->first_place[slice], k - cb_csr_row(csr, row))] =
          entry | ((uint32_t)csr->col_idx[k] & within);
    }
  }
}

/* 32-byte sectors of x that the units of the workspace lie in. */
static int64_t sectors_of(const struct cb_panel_cut *cut, const struct cb_panel_work *work) {
  int64_t sectors = 0, previous = -1;
  const int64_t bytes = cut->x_bytes << cut->unit_log2;
  if (bytes >= 32) return work->set.count * (bytes / 32);
  for (int64_t i = 0; i < work->set.count; i++) {
    const int64_t sector = work->set.units[i] * bytes / 32;
    sectors += sector != previous;
    previous = sector;
  }
  return sectors;
}

/* Returns the panel's sectors; *runs is cleared where units are not neighbours. */
static int64_t fill_panel(const struct cb_panel_cut *cut, int64_t panel, struct cb_panel_work *work,
                          struct contents *contents, int *runs) {
  uint32_t *unit = contents->unit + contents->first_unit[panel];
  cb_unit_set_reset(&work->set);
  for (int64_t row = cut->first_row[panel]; row < cut->first_row[panel + 1]; row++)
    if (cb_panel_has_place(cut, row)) cb_panel_add_row(&work->set, cut, row);
  cb_unit_set_number(&work->set);
  contents->base[panel] = work->set.count ? work->set.units[0] : 0;
  for (int64_t i = 0; i < work->set.count; i++) {
    unit[i] = work->set.units[i] - contents->base[panel];
    if (unit[i] != i) *runs = 0;
  }
  for (int64_t slice = cut->first_slice[panel]; slice < cut->first_slice[panel + 1]; slice++)
    fill_addresses(cut, slice, work, contents->address);
  return sectors_of(cut, work);
}

static int fill_contents(struct cb_panel_cut *cut, struct contents *contents) {
  int failed = 0, runs = 1;
  int64_t sectors = 0;
#pragma omp parallel reduction(| : failed) reduction(& : runs) reduction(+ : sectors)
  {
    struct cb_panel_work work;
    failed = !cb_panel_work_init(&work, cut);
#pragma omp for schedule(dynamic, 16)
    for (int64_t p = 0; p < cut->panels; p++)
      if (!failed) sectors += fill_panel(cut, p, &work, contents, &runs);
    cb_panel_work_release(&work);
  }
  contents->runs = runs;
  cut->sectors = sectors;
  return !failed;
}

/* ---- the region: needs all of the above; adds arrays and pieces of text */

static void draft_columns(struct cb_draft *draft, struct cb_panel_cut *cut) {
  struct contents contents = {0};
  if (!contents_init(&contents, cut) || !fill_contents(cut, &contents)) {
    draft->failed = 1;
    contents_release(&contents);
    return;
  }
  const int whole = cut->csr->cols % (1 << cut->unit_log2) == 0;
  cb_draft_index(draft, "first_unit", "units before a panel", contents.first_unit, 1, cut->panels + 1);
  cb_draft_index(draft, "base_unit", "a panel's first unit", contents.base, 0, cut->panels);
  if (contents.runs)
    cb_free(contents.unit);
  else
    cb_draft_index(draft, "unit_offset", "a unit, from its panel's first", contents.unit, 0, cut->units_sum);
  cb_draft_streamed(draft, "address", "of a slot's entry of x among those that its panel holds",
                    contents.address, 0, panel_slots(cut));
  cb_draft_constant(draft, "kUnit", INT64_C(1) << cut->unit_log2, "plan: columns of a unit, neighbours");
  cb_draft_hole(draft, "unit", contents.runs ? "k / kUnit" : "unit_offset(arrays, first + k / kUnit)");
  cb_draft_hole(draft, "column",
                whole ? "kUnit * unit + k % kUnit" : "min(kUnit * unit + k % kUnit, kCols - 1)");
}

static uint32_t no_row(const struct cb_panel_cut *cut) {
  int64_t most = 0;
  for (int64_t p = 0; p < cut->panels; p++) most = cb_larger(most, cut->first_row[p + 1] - cut->first_row[p]);
  return (uint32_t)most;
}

/* Returns whether some places hold no row. */
static int draft_places(struct cb_draft *draft, const struct cb_panel_cut *cut) {
  const uint32_t none = no_row(cut);
  uint32_t *lengths = cb_alloc((size_t)cut->places, sizeof *lengths);
  uint32_t *rows = cb_alloc((size_t)cut->places, sizeof *rows);
  uint32_t *first = cb_alloc((size_t)cut->panels, sizeof *first);
  int padded = 0;
  for (int64_t p = 0; lengths && rows && first && p < cut->panels; p++) {
    first[p] = (uint32_t)cut->first_row[p];
    for (int64_t place = cut->first_place[cut->first_slice[p]];
         place < cut->first_place[cut->first_slice[p + 1]]; place++) {
      const int32_t row = cut->row[place];
      padded |= row == NO_ROW;
      lengths[place] = row == NO_ROW ? 0 : (uint32_t)cb_csr_row_length(cut->csr, row);
      rows[place] = row == NO_ROW ? none : (uint32_t)row - first[p];
    }
  }
  cb_draft_index(draft, "place_length", "nonzeros of the row at a place", lengths, 0, cut->places);
  cb_draft_index(draft, "place_row",
                 padded ? "row at a place, from its panel's first; kNoRow: none"
                        : "row at a place, from its panel's first",
                 rows, 0, cut->places);
  cb_draft_index(draft, "panel_row", "a panel's first row", first, 0, cut->panels);
  if (padded) cb_draft_constant(draft, "kNoRow", none, "plan: the row of a place that has none");
  return padded;
}

/* Lanes of a row: a constant, or by slice. */
static void draft_lanes(struct cb_draft *draft, const struct cb_panel_cut *cut, int equal) {
  cb_draft_include(draft, "slice", equal ? "panel/slice_equal.cu.in" : "panel/slice_varied.cu.in");
  cb_draft_include(draft, "slice_members", equal ? "" : "panel/members_varied.cu.in");
  cb_draft_include(draft, "reduce", equal && !cut->lanes_log2 ? "" : "panel/reduce.cu.in");
  if (!equal || cut->lanes_log2) cb_draft_hole(draft, "lanes", equal ? "kLanes" : "at.lanes");
  if (equal) {
    cb_draft_constant(draft, "kLanes", INT64_C(1) << cut->lanes_log2, "plan: lanes that share a row");
    return;
  }
  uint32_t *log2 = cb_alloc((size_t)cut->slices, sizeof *log2);
  uint32_t *first = cb_alloc((size_t)cut->slices, sizeof *first);
  for (int64_t slice = 0; log2 && first && slice < cut->slices; slice++) {
    log2[slice] = cut->slice_lanes[slice];
    first[slice] = (uint32_t)cut->first_place[slice];
  }
  cb_draft_index(draft, "lanes_log2", "logarithm of the lanes that share a row of a slice", log2, 0,
                 cut->slices);
  cb_draft_index(draft, "first_place", "a slice's first place", first, 0, cut->slices);
}

static int lanes_are_equal(const struct cb_panel_cut *cut) {
  for (int64_t slice = 0; slice < cut->slices; slice++)
    if (cut->slice_lanes[slice] != cut->lanes_log2) return 0;
  return 1;
}

static int64_t longest_slice(const struct cb_panel_cut *cut) {
  int64_t longest = 0;
  for (int64_t slice = 0; slice < cut->slices; slice++)
    longest = cb_larger(longest, cut->first_step[slice + 1] - cut->first_step[slice]);
  return longest;
}

/* Steps whose loads are under way together: all of a slice's if they are few, else what a slice has on
 * average. */
static int64_t choose_batch(const struct cb_panel_cut *cut, const struct cb_options *options,
                            int64_t longest) {
  const int64_t mean = cb_divide_up(cut->first_step[cut->slices], cb_larger(cut->slices, 1));
  if (options->panel_batch) return options->panel_batch;
  if (longest <= MOST_BATCH) return cb_larger(longest, 1);
  return cb_larger(2, cb_smaller(mean, MOST_BATCH));
}

static int64_t slices_of_panels(const struct cb_panel_cut *cut) {
  const int64_t slices = cut->first_slice[1];
  for (int64_t p = 0; p < cut->panels; p++)
    if (cut->first_slice[p + 1] - cut->first_slice[p] != slices) return 0;
  return slices % cut->warps ? 0 : slices;
}

/* Which slices a warp takes: one, as many for each, or what its panel has. */
static void draft_rounds(struct cb_draft *draft, const struct cb_panel_cut *cut) {
  const int64_t equal = slices_of_panels(cut);
  cb_draft_constant(draft, "kThreads", cut->threads, "plan: threads of a thread block");
  if (equal == cut->warps) {
    cb_draft_include(draft, "first", "panel/first_only.cu.in");
    cb_draft_include(draft, "rounds", "panel/rounds_one.cu.in");
    return;
  }
  cb_draft_include(draft, "first", equal ? "panel/first_equal.cu.in" : "panel/first_varied.cu.in");
  cb_draft_include(draft, "rounds", "panel/rounds.cu.in");
  if (equal) {
    cb_draft_constant(draft, "kSlices", equal, "plan: slices of a panel");
    return;
  }
  uint32_t *first = cb_alloc((size_t)cut->panels + 1, sizeof *first);
  for (int64_t p = 0; first && p <= cut->panels; p++) first[p] = (uint32_t)cut->first_slice[p];
  cb_draft_index(draft, "first_slice", "slices before a panel", first, 0, cut->panels + 1);
}

/* Entries of x in static shared memory, or in the launch's when they are more than that may have. */
static void draft_entries(struct cb_draft *draft, const struct cb_panel_cut *cut) {
  int64_t units = 1;
  for (int64_t p = 0; p < cut->panels; p++) units = cb_larger(units, cut->units[p]);
  const int64_t entries = units << cut->unit_log2, bytes = entries * cut->x_bytes;
  const int dynamic = bytes > PLAIN_SHARED - CB_PANEL_OWN;
  cb_draft_constant(draft, "kEntries", entries, "plan: entries of x that a panel holds at most");
  cb_draft_constant(draft, "kStage", cb_smaller(cb_divide_up(entries, cut->threads), MOST_STAGE),
                    "plan: entries of x that a thread loads together");
  cb_draft_include(draft, "entries", dynamic ? "panel/entries_dynamic.cu.in" : "panel/entries_static.cu.in");
  cb_draft_hole(draft, "shared", dynamic ? "" : "__shared__ ");
  *(dynamic ? &draft->region.dynamic_shared : &draft->region.static_shared) += bytes;
  cb_draft_fact(draft, "entries", "%lld", (long long)entries);
}

/* Who commits: the first lane of a row, if the place has one. */
static void draft_commit(struct cb_draft *draft, const char *first_lane, int padded) {
  char condition[64];
  snprintf(condition, sizeof condition, "if (%s%s%s) ", first_lane, *first_lane && padded ? " && " : "",
           padded ? "at.row < kNoRow" : "");
  cb_draft_hole(draft, "if_first_lane", *first_lane || padded ? condition : "");
  cb_draft_hole(draft, "unguarded", padded ? "" : "  // no guard: each place has a row");
}

static void draft_slices(struct cb_draft *draft, const struct cb_panel_cut *cut) {
  uint64_t *first = cb_alloc((size_t)cut->slices + 1, sizeof *first);
  for (int64_t slice = 0; first && slice <= cut->slices; slice++)
    first[slice] = (uint64_t)(cut->first_step[slice] + long_steps(cut));
  const int64_t longest = longest_slice(cut), batch = choose_batch(cut, draft->options, longest);
  const int equal = lanes_are_equal(cut), padded = draft_places(draft, cut);
  cb_draft_index(draft, "first_step", "steps of 32 slots before a slice", first, 1, cut->slices + 1);
  draft_lanes(draft, cut, equal);
  cb_draft_constant(draft, "kBatch", batch, "plan: steps whose loads are under way together");
  cb_draft_include(draft, "more", longest > batch ? "panel/more.cu.in" : "");
  draft_commit(draft, equal ? (cut->lanes_log2 ? "lane % kLanes == 0" : "") : "lane % at.lanes == 0", padded);
  cb_draft_hole(draft, "long_slots", cut->pieces_count ? " - kLongSlots" : "");
  if (cut->pieces_count)
    cb_draft_constant(draft, "kLongSlots", long_steps(cut) * LANES, "plan: slots of long rows, whole steps");
  cb_draft_fact(draft, "slices", "%lld", (long long)cut->slices);
  cb_draft_fact(draft, "steps", "%lld", (long long)cut->first_step[cut->slices]);
  if (equal)
    cb_draft_fact(draft, "lanes", "%d", 1 << cut->lanes_log2);
  else
    cb_draft_fact(draft, "lanes", "varied");
}

static void draft_long(struct cb_draft *draft, const struct cb_panel_cut *cut) {
  const int64_t count = cut->pieces_count;
  uint32_t *column = cb_alloc((size_t)cut->long_slots, sizeof *column);
#pragma omp parallel for schedule(dynamic)
  for (int64_t p = 0; p < count; p++)
    for (int64_t k = cut->pieces[p].begin; column && k < cut->pieces[p].end; k++)
      column[cut->pieces[p].slot + k - cut->pieces[p].begin] = (uint32_t)cut->csr->col_idx[k];
  cb_draft_fact(draft, "long", "%lld", (long long)count);
  cb_pieces_draft(draft, cut->pieces, count);
  cb_draft_streamed(draft, "long_column", "column of a long row's slot", column, 0, cut->long_slots);
  cb_draft_constant(draft, "kLongBlocks", count, "plan: thread blocks of long rows");
  cb_pieces_draft_carries(draft, cut->pieces, cut->cut_pieces);
  cb_draft_include(draft, "region", "panel/long.cu.in");
  draft->region.static_shared += cut->warps * cut->x_bytes;
}

/* Registers for a batch's loads, a little more where lanes vary or rows are long: 40, 48 or 64. */
static int blocks_per_sm(const struct cb_draft *draft, const struct cb_panel_cut *cut) {
  const int64_t batch = choose_batch(cut, draft->options, longest_slice(cut));
  const int64_t words = batch * (1 + cut->x_bytes / 4) + (lanes_are_equal(cut) ? 0 : 2);
  const int threads = words <= 12 && !cut->pieces_count ? CB_PANEL_THREADS : words <= 18 ? 1280 : 1024;
  return threads / cut->threads;
}

static void draft_region(struct cb_draft *draft, struct cb_panel_cut *cut) {
  const int any_long = cut->pieces_count > 0;
  cb_draft_fact(draft, "panels", "%lld", (long long)cut->panels);
  cb_draft_fact(draft, "unit", "%d", 1 << cut->unit_log2);
  draft_columns(draft, cut);
  draft_entries(draft, cut);
  draft_slices(draft, cut);
  draft_rounds(draft, cut);
  cb_draft_values(draft, "values", "long rows', then per slice, step and lane",
                  (long_steps(cut) + cut->first_step[cut->slices]) * LANES);
  cb_draft_include(draft, "region", "panel/slice.cu.in");
  cb_draft_include(draft, "region", "panel/panel.cu.in");
  if (any_long) draft_long(draft, cut);
  cb_draft_include(draft, "region", any_long ? "panel/multiply_either.cu.in" : "panel/multiply.cu.in");
  draft->region.blocks = cut->pieces_count + cut->panels;
  draft->region.threads = cut->threads;
  draft->region.blocks_per_sm = blocks_per_sm(draft, cut);
  draft->region.commit = draft->commit;
}

/* ---- cost */

/* Batches of the warp that has most of them, one after the other. */
static int64_t longest_chain(const struct cb_panel_cut *cut, int64_t batch) {
  int64_t longest = 0;
  for (int64_t p = 0; p < cut->panels; p++)
    for (int64_t warp = 0; warp < cut->warps; warp++) {
      int64_t batches = 0;
      for (int64_t slice = cut->first_slice[p] + warp; slice < cut->first_slice[p + 1]; slice += cut->warps)
        batches += cb_larger(1, cb_divide_up(cut->first_step[slice + 1] - cut->first_step[slice], batch));
      longest = cb_larger(longest, batches);
    }
  return longest;
}

/* Sectors of x that a long row's lanes ask for: neighbours of a step share them. */
static int64_t long_sectors(const struct cb_panel_cut *cut) {
  int64_t sectors = 0;
  for (int64_t p = 0; p < cut->pieces_count; p++)
    for (int64_t k = cut->pieces[p].begin, previous = -1; k < cut->pieces[p].end; k++) {
      const int64_t sector = cut->csr->col_idx[k] * cut->x_bytes / 32;
      sectors += sector != previous || (k - cut->pieces[p].begin) % LANES == 0;
      previous = sector;
    }
  return sectors;
}

/* Staging x is a chain of loads; the first batch's are under way beside it. Assumed, not measured, in the
 * units of the other layouts. */
static void predict(struct cb_draft *draft, const struct cb_panel_cut *cut) {
  enum { NS_STAGE = 1100, NS_PER_BATCH = 500, NS_LONG_BATCH = 800, NS_BARRIER = 200, NS_CARRY = 1500 };
  struct cb_cost *cost = &draft->region.cost;
  const int64_t batch = choose_batch(cut, draft->options, longest_slice(cut));
  int64_t longest = 0;
  for (int64_t p = 0; p < cut->pieces_count; p++)
    longest = cb_larger(longest, cut->pieces[p].end - cut->pieces[p].begin);
  const int64_t long_ns = cb_divide_up(longest, (int64_t)cut->threads * CB_PANEL_LONG_BATCH) * NS_LONG_BATCH;
  cost->sectors = cut->sectors + long_sectors(cut);
  cost->chain_ns = cb_larger(NS_STAGE + (longest_chain(cut, batch) - 1) * NS_PER_BATCH, long_ns);
  cost->tail_ns = NS_BARRIER + (cut->cut_pieces ? NS_CARRY : 0);
  cost->stream_percent = STREAM_PERCENT;
}

/* ---- the layout */

static enum cb_status panel_plan(struct cb_draft *draft, struct cb_diag *diag) {
  const struct cb_csr *csr = draft->work.part.csr;
  if (!csr->nnz) return cb_fail(diag, CB_ERR_UNSUPPORTED, "no columns to share: there are no nonzeros");
  enum cb_status s = cb_check_panels(csr, diag);
  if (s) return s;
  struct cb_panel_cut *cut = cb_calloc(1, sizeof *cut);
  if (!cut) return cb_fail_memory(diag, "panel layout", sizeof *cut);
  draft->work.state = cut;
  cut->csr = csr;
  cut->x_bytes = (int64_t)cb_type_size(draft->vector_type);
  cut->writes_empty = draft->commit == CB_COMMIT_FINAL && draft->options->form != CB_FORM_ADD;
  s = cb_panel_cut(cut, draft, diag);
  if (s) return s;
  draft_region(draft, cut);
  predict(draft, cut);
  return CB_OK;
}

static enum cb_status panel_pack(const struct cb_region *region, const struct cb_region_work *work,
                                 unsigned char *const *targets, const struct cb_slot_map *map,
                                 struct cb_diag *diag) {
  const struct cb_panel_cut *cut = work->state;
  const struct cb_csr *csr = cut->csr;
  const int64_t first = long_steps(cut) * LANES;
  (void)region;
  (void)targets;
  (void)diag;
  cb_pieces_pack(map, &work->part, cut->pieces, cut->pieces_count);
#pragma omp parallel for schedule(static)
  for (int64_t slice = 0; slice < cut->slices; slice++)
    for (int64_t i = 0; i < LANES >> cut->slice_lanes[slice]; i++) {
      const int32_t row = cut->row[cut->first_place[slice] + i];
      for (int64_t k = 0; row != NO_ROW && k < cb_csr_row_length(csr, row); k++)
        cb_slot_set(map, first + slot_of(cut, slice, i, k),
                    cb_part_origin(&work->part, cb_csr_row(csr, row) + k));
    }
  return CB_OK;
}

/* Values, and a byte of address. */
static int64_t panel_least_ns(const struct cb_csr *csr, const struct cb_target *target,
                              struct cb_types types) {
  return cb_plan_stream_ns(csr, target, types, (int64_t)cb_type_size(types.matrix) + 1, STREAM_PERCENT);
}

const struct cb_layout cb_layout_panel = {
    .name = "panel",
    .summary = "rows of a thread block share a list of columns, whose entries of x lie in shared memory",
    .source = "column aggregation of CB-SpMV, for a thread block's rows",
    .plan = panel_plan,
    .pack = panel_pack,
    .release = release,
    .least_ns = panel_least_ns,
};
