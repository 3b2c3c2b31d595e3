// SPDX-License-Identifier: Apache-2.0
/* Cutting a matrix into panels, long rows and slices: see panel_cut.h. cb_panel_cut at the end calls the
 * passes in order.
 */
#include "analysis/layouts/panel_cut.h"

#include "analysis/ordering.h"
#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

enum {
  LANES = CB_PANEL_LANES,
  NO_ROW = CB_PANEL_NO_ROW,
  MOST_UNIT_LOG2 = 5,
  MOST_ROUNDS = 8,
  MOST_NONZEROS = 32 << 10, /* aimed at in a panel: more leaves too few panels to balance */
  CHUNK = 1 << 20,          /* nonzeros: panels end where a chunk does, so that chunks are cut side by side */
  LENGTH_KEYS = 2048,
  SAMPLES = 24 /* panels that the unit is chosen from */
};

/* Units of one row, whose columns ascend. */
static int64_t row_units(const struct cb_panel_cut *cut, int64_t row) {
  int64_t units = 0, previous = -1;
  for (int64_t k = cb_csr_row(cut->csr, row); k < cb_csr_row(cut->csr, row + 1); k++) {
    units += cb_panel_unit(cut, k) != previous;
    previous = cb_panel_unit(cut, k);
  }
  return units;
}

static int is_long(const struct cb_panel_cut *cut, int64_t row) {
  const int64_t length = cb_csr_row_length(cut->csr, row);
  return length > cut->long_row || (length > cut->most_units && row_units(cut, row) > cut->most_units);
}

int cb_panel_has_place(const struct cb_panel_cut *cut, int64_t row) {
  return (cut->writes_empty || cb_csr_row_length(cut->csr, row) > 0) && !is_long(cut, row);
}

/* ---- shape: needs the part and the options; adds what bounds a panel */

/* As many lanes per row as give each multiprocessor 1024 threads, with four nonzeros for each at least; more
 * for long rows, whose lanes would walk far apart otherwise. */
static int choose_lanes(const struct cb_csr *csr, const struct cb_options *options,
                        const struct cb_target *target) {
  const int64_t mean = csr->nnz / csr->rows;
  int log2 = 0;
  if (options->panel_lanes) return __builtin_ctz((unsigned)options->panel_lanes);
  while (log2 < 5 && csr->rows << log2 < 1024 * (int64_t)target->multiprocessors && mean >= 4 << log2) log2++;
  while (log2 < 5 && mean >= 128 << log2) log2++;
  return log2;
}

/* Large matrices give each warp several slices: panels share more, the more rows they have. But at least 24
 * thread blocks to a multiprocessor stay, so that they balance. */
static void choose_shape(struct cb_panel_cut *cut, const struct cb_options *options,
                         const struct cb_target *target) {
  const struct cb_csr *csr = cut->csr;
  const int64_t mean = cb_larger(cb_divide_up(csr->nnz, csr->rows), 1);
  cut->threads = options->panel_threads ? (int)options->panel_threads : 256;
  cut->warps = cut->threads / LANES;
  cut->lanes_log2 = choose_lanes(csr, options, target);
  const int64_t at_once = cut->threads >> cut->lanes_log2, slots = CB_PANEL_THREADS / cut->threads;
  const int64_t wanted = 4 * cb_larger(slots, 1) * target->multiprocessors;
  int64_t rounds = cb_smaller(csr->rows / at_once / wanted, MOST_NONZEROS / (at_once * mean));
  rounds = cb_larger(1, cb_smaller(rounds, MOST_ROUNDS));
  cut->most_rows = options->panel_rows ? options->panel_rows : rounds * at_once;
  cut->most_nonzeros = cb_larger(2 * mean * cut->most_rows, 1024);
  cut->aim = cb_larger(2 * cb_divide_up(mean, INT64_C(1) << cut->lanes_log2), 8);
  cut->long_row = 2 * LANES * cut->aim;
}

/* Entries of x that a panel may stage: an even share of the multiprocessor's memory among the thread blocks
 * that its registers have room for. */
static enum cb_status choose_entries(int64_t *entries, const struct cb_panel_cut *cut,
                                     const struct cb_options *options, const struct cb_target *target,
                                     struct cb_diag *diag) {
  const int64_t room = (target->shared_per_block - CB_PANEL_OWN) / cut->x_bytes;
  const int64_t share = target->shared_per_sm / cb_larger(CB_PANEL_THREADS / cut->threads, 1) - CB_PANEL_OWN;
  if (options->panel_columns > room)
    return cb_fail(diag, CB_ERR_LIMIT,
                   "%lld entries of x do not fit into shared memory; '%s' has room for %lld",
                   (long long)options->panel_columns, target->model, (long long)room);
  *entries = options->panel_columns ? options->panel_columns : cb_smaller(share / cut->x_bytes, room);
  return CB_OK;
}

/* ---- what a thread works on a panel with */

void cb_panel_work_release(struct cb_panel_work *work) {
  cb_unit_set_release(&work->set);
  cb_free(work->rows);
  cb_free(work->sorted);
}

/* Room for a panel and one row too many. */
int cb_panel_work_init(struct cb_panel_work *work, const struct cb_panel_cut *cut) {
  const int good = cb_unit_set_init(&work->set, 2 * cut->most_units);
  work->rows = cb_alloc((size_t)cut->most_rows, sizeof *work->rows);
  work->sorted = cb_alloc((size_t)cut->most_rows, sizeof *work->sorted);
  return good && work->rows && work->sorted;
}

void cb_panel_add_row(struct cb_unit_set *set, const struct cb_panel_cut *cut, int64_t row) {
  for (int64_t k = cb_csr_row(cut->csr, row); k < cb_csr_row(cut->csr, row + 1); k++)
    cb_unit_set_add(set, cb_panel_unit(cut, k));
}

/* ---- units: needs the shape; adds unit_log2, most_units */

/* Distinct ones among the ascending `columns`, in units of 2^log2 columns. */
static int64_t count_units(const uint32_t *columns, int64_t count, int log2) {
  int64_t units = count > 0;
  for (int64_t i = 1; i < count; i++) units += columns[i] >> log2 != columns[i - 1] >> log2;
  return units;
}

/* Bytes that a sample's columns cost in each unit: sectors of x, list, and a quarter of what lies in shared
 * memory. */
static void weigh_units(const struct cb_panel_cut *cut, const uint32_t *columns, int64_t count,
                        int64_t *cost) {
  enum { SECTOR_BYTES = 32, LIST_BYTES = 2 };
  int sector_log2 = 0;
  while (cut->x_bytes << sector_log2 < SECTOR_BYTES) sector_log2++;
  for (int log2 = 0; log2 <= MOST_UNIT_LOG2; log2++) {
    const int64_t units = count_units(columns, count, log2);
    const int moved = log2 > sector_log2 ? log2 : sector_log2;
    cost[log2] += count_units(columns, count, moved) * (cut->x_bytes << moved) + units * LIST_BYTES +
                  units * (cut->x_bytes << log2) / 4;
  }
}

/* Columns of up to a panel's rows from `row` on, ascending. */
static int64_t sample_columns(const struct cb_panel_cut *cut, int64_t row, uint32_t **columns,
                              uint32_t **spare) {
  const struct cb_csr *csr = cut->csr;
  int64_t count = 0;
  for (int64_t i = 0; i < cut->most_rows && row < csr->rows; i++, row++) {
    const int64_t length = cb_csr_row_length(csr, row);
    if (length > cut->long_row || count + length > cut->most_nonzeros) continue;
    memcpy(*columns + count, csr->col_idx + cb_csr_row(csr, row), (size_t)length * sizeof **columns);
    count += length;
  }
  cb_units_sort(columns, spare, count);
  return count;
}

static int choose_unit(struct cb_panel_cut *cut, const struct cb_options *options, int64_t entries) {
  int64_t cost[MOST_UNIT_LOG2 + 1] = {0};
  uint32_t *columns = cb_alloc((size_t)cut->most_nonzeros, sizeof *columns);
  uint32_t *spare = cb_alloc((size_t)cut->most_nonzeros, sizeof *spare);
  const int good = columns && spare;
  for (int64_t i = 0; good && i < SAMPLES; i++) {
    const int64_t count = sample_columns(cut, i * cut->csr->rows / SAMPLES, &columns, &spare);
    weigh_units(cut, columns, count, cost);
  }
  cb_free(columns);
  cb_free(spare);
  int best = 0;
  for (int log2 = 1; log2 <= MOST_UNIT_LOG2; log2++)
    if (cost[log2] < cost[best]) best = log2;
  cut->unit_log2 = options->panel_unit ? __builtin_ctz((unsigned)options->panel_unit) : best;
  while (cut->unit_log2 && entries >> cut->unit_log2 < 8) cut->unit_log2--;
  cut->most_units = entries >> cut->unit_log2;
  return good;
}

/* ---- panels: needs all that bounds one; adds panels, first_row, units, panel_nonzeros */

/* Marks the panel that begins at `row` with its units + 1; returns where the next one begins. A panel that
 * columns or nonzeros end keeps whole slices only, if it has one. */
static int64_t cut_panel(const struct cb_panel_cut *cut, struct cb_panel_work *work, int64_t row, int64_t end,
                         uint32_t *marks) {
  const int64_t per_slice = LANES >> cut->lanes_log2;
  int64_t places = 0, nonzeros = 0, units = 0, whole_end = 0, whole_units = 0, at = row;
  cb_unit_set_reset(&work->set);
  for (; at < end && places < cut->most_rows; at++) {
    if (!cb_panel_has_place(cut, at)) continue;
    const int64_t length = cb_csr_row_length(cut->csr, at);
    if (places && nonzeros + length > cut->most_nonzeros) break;
    cb_panel_add_row(&work->set, cut, at);
    if (work->set.count > cut->most_units) break;
    units = work->set.count;
    nonzeros += length;
    if (++places % per_slice) continue;
    whole_end = at + 1;
    whole_units = units;
  }
  if (!places) return end;
  const int cut_short = at < end && places < cut->most_rows && whole_end;
  marks[row] = (uint32_t)(cut_short ? whole_units : units) + 1;
  return cut_short ? whole_end : at;
}

/* The first row at or behind the nonzero. */
static int64_t row_at(const struct cb_csr *csr, int64_t nonzero) {
  int64_t low = 0, high = csr->rows;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (cb_csr_row(csr, middle) < nonzero)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static int cut_chunks(const struct cb_panel_cut *cut, uint32_t *marks) {
  const struct cb_csr *csr = cut->csr;
  const int64_t chunks = csr->nnz / CHUNK + 1;
  int failed = 0;
#pragma omp parallel reduction(| : failed)
  {
    struct cb_panel_work work;
    failed = !cb_panel_work_init(&work, cut);
#pragma omp for schedule(dynamic)
    for (int64_t c = 0; c < chunks; c++) {
      const int64_t end = c + 1 < chunks ? row_at(csr, (c + 1) * CHUNK) : csr->rows;
      for (int64_t row = row_at(csr, c * CHUNK); !failed && row < end;)
        row = cut_panel(cut, &work, row, end, marks);
    }
    cb_panel_work_release(&work);
  }
  return !failed;
}

static int list_panels(struct cb_panel_cut *cut, const uint32_t *marks) {
  const struct cb_csr *csr = cut->csr;
  for (int64_t row = 0; row < csr->rows; row++) cut->panels += marks[row] > 0;
  cut->first_row = cb_alloc((size_t)cut->panels + 1, sizeof *cut->first_row);
  cut->units = cb_alloc((size_t)cut->panels, sizeof *cut->units);
  if (!cut->first_row || !cut->units) return 0;
  int64_t at = 0;
  for (int64_t row = 0; row < csr->rows; row++) {
    if (!marks[row]) continue;
    cut->first_row[at] = (int32_t)row;
    cut->units[at] = marks[row] - 1;
    cut->units_sum += cut->units[at++];
  }
  cut->first_row[at] = (int32_t)csr->rows;
  return 1;
}

static int cut_panels(struct cb_panel_cut *cut) {
  uint32_t *marks = cb_calloc((size_t)cut->csr->rows, sizeof *marks);
  const int good = marks && cut_chunks(cut, marks) && list_panels(cut, marks);
  cb_free(marks);
  return good;
}

/* ---- long rows: needs long_row, most_units; adds pieces, long_slots, panel_nonzeros */

static int64_t pieces_of(const struct cb_panel_cut *cut, int64_t length) {
  const int64_t most =
      (int64_t)cut->threads * CB_PANEL_LONG_BATCH; /* one batch for each thread; two more beat a carry */
  return length > 3 * most ? cb_divide_up(length, most) : 1;
}

/* Pieces of the long rows that are cut, or those that are not; only counts them while there is no list. */
static int64_t add_pieces(struct cb_panel_cut *cut, const int32_t *rows, int64_t rows_count, int in_pieces,
                          int64_t at) {
  for (int64_t i = 0; i < rows_count; i++) {
    const int64_t count = pieces_of(cut, cb_csr_row_length(cut->csr, rows[i]));
    if ((count > 1) != in_pieces) continue;
    if (cut->pieces) cb_pieces_cut(cut->pieces + at, cut->csr, rows[i], count);
    at += count;
  }
  return at;
}

static int is_long_row(const void *cut, int64_t row) { return is_long(cut, row); }

static int cut_long_rows(struct cb_panel_cut *cut) {
  int64_t count = 0;
  int32_t *rows = cb_rows_where(cut->csr->rows, is_long_row, cut, &count);
  if (!rows) return 0;
  cut->cut_pieces = add_pieces(cut, rows, count, 1, 0);
  cut->pieces_count = add_pieces(cut, rows, count, 0, cut->cut_pieces);
  cut->pieces = cb_alloc((size_t)cut->pieces_count, sizeof *cut->pieces);
  if (cut->pieces) {
    add_pieces(cut, rows, count, 1, 0);
    add_pieces(cut, rows, count, 0, cut->cut_pieces);
    cut->long_slots = cb_pieces_number(cut->pieces, cut->pieces_count);
    cut->panel_nonzeros = cut->csr->nnz - cut->long_slots;
  }
  cb_free(rows);
  return cut->pieces != NULL;
}

/* ---- slices: needs panels; adds all about slices and places */

static int64_t steps_for(int64_t length, int log2) {
  return cb_divide_up(length, INT64_C(1) << log2);
}

static int64_t length_key(const struct cb_panel_cut *cut, int64_t row) {
  return LENGTH_KEYS - 1 -
         cb_smaller(steps_for(cb_csr_row_length(cut->csr, row), cut->lanes_log2), LENGTH_KEYS - 1);
}

/* The rows of a panel that have places into work->sorted: most steps first, ties in their order. Returns how
 * many. */
static int64_t sort_rows(const struct cb_panel_cut *cut, int64_t panel, struct cb_panel_work *work) {
  int32_t start[LENGTH_KEYS + 1] = {0};
  int64_t count = 0;
  for (int64_t row = cut->first_row[panel]; row < cut->first_row[panel + 1]; row++) {
    if (!cb_panel_has_place(cut, row)) continue;
    work->rows[count++] = (int32_t)row;
    start[length_key(cut, row) + 1]++;
  }
  for (int key = 1; key <= LENGTH_KEYS; key++) start[key] += start[key - 1];
  for (int64_t i = 0; i < count; i++) work->sorted[start[length_key(cut, work->rows[i])]++] = work->rows[i];
  return count;
}

static int lanes_for(const struct cb_panel_cut *cut, int64_t length) {
  int log2 = cut->lanes_log2;
  while (log2 < 5 && steps_for(length, log2) > cut->aim) log2++;
  return log2;
}

/* Cuts a panel's rows into slices. Into the cut from *slice and *place on, if `fill`; both end behind. */
static void cut_slices(struct cb_panel_cut *cut, int64_t panel, struct cb_panel_work *work, int fill,
                       int64_t *slice, int64_t *place) {
  const int64_t count = sort_rows(cut, panel, work);
  for (int64_t next = 0; next < count;) {
    const int log2 = lanes_for(cut, cb_csr_row_length(cut->csr, work->sorted[next]));
    int64_t steps = 0;
    for (int64_t i = 0; i < LANES >> log2; i++, next++) {
      const int32_t row = next < count ? work->sorted[next] : NO_ROW;
      if (fill) cut->row[*place + i] = row;
      if (row != NO_ROW) steps = cb_larger(steps, steps_for(cb_csr_row_length(cut->csr, row), log2));
    }
    if (fill) {
      cut->slice_lanes[*slice] = (unsigned char)log2;
      cut->first_place[*slice] = *place;
      cut->first_step[*slice + 1] = steps;
    }
    *slice += 1;
    *place += LANES >> log2;
  }
}

/* Slices without rows, so that the panel has as many as the others. */
static void fill_up(struct cb_panel_cut *cut, int64_t end, int64_t *slice, int64_t *place) {
  for (; *slice < end; *slice += 1) {
    cut->slice_lanes[*slice] = (unsigned char)cut->lanes_log2;
    cut->first_place[*slice] = *place;
    cut->first_step[*slice + 1] = 0;
    for (int64_t i = 0; i < LANES >> cut->lanes_log2; i++) cut->row[(*place)++] = NO_ROW;
  }
}

/* Slices of each panel into first_slice, places into `places`, both one further: sums are formed later. */
static int count_slices(struct cb_panel_cut *cut, int64_t *places) {
  int failed = 0;
#pragma omp parallel reduction(| : failed)
  {
    struct cb_panel_work work;
    failed = !cb_panel_work_init(&work, cut);
#pragma omp for schedule(static)
    for (int64_t p = 0; p < cut->panels; p++) {
      cut->first_slice[p + 1] = places[p + 1] = 0;
      if (!failed) cut_slices(cut, p, &work, 0, &cut->first_slice[p + 1], &places[p + 1]);
    }
    cb_panel_work_release(&work);
  }
  return !failed;
}

/* Equal numbers of slices for all panels, whole rounds of its warps: where that adds a quarter at most. */
static void even_out(struct cb_panel_cut *cut, int64_t *places) {
  int64_t all = 0, most = 1;
  for (int64_t p = 1; p <= cut->panels; p++) {
    all += cut->first_slice[p];
    most = cb_larger(most, cut->first_slice[p]);
  }
  most = cb_divide_up(most, cut->warps) * cut->warps;
  if (most * cut->panels > all + all / 4 + cut->warps) return;
  for (int64_t p = 1; p <= cut->panels; p++) {
    places[p] += (most - cut->first_slice[p]) * (LANES >> cut->lanes_log2);
    cut->first_slice[p] = most;
  }
}

static int fill_slices(struct cb_panel_cut *cut, const int64_t *places) {
  int failed = 0;
#pragma omp parallel reduction(| : failed)
  {
    struct cb_panel_work work;
    failed = !cb_panel_work_init(&work, cut);
#pragma omp for schedule(static)
    for (int64_t p = 0; p < cut->panels; p++) {
      int64_t slice = cut->first_slice[p], place = places[p];
      if (failed) continue;
      cut_slices(cut, p, &work, 1, &slice, &place);
      fill_up(cut, cut->first_slice[p + 1], &slice, &place);
    }
    cb_panel_work_release(&work);
  }
  return !failed;
}

static int alloc_slices(struct cb_panel_cut *cut) {
  const size_t slices = (size_t)cut->slices;
  cut->first_step = cb_calloc(slices + 1, sizeof *cut->first_step);
  cut->first_place = cb_calloc(slices + 1, sizeof *cut->first_place);
  cut->slice_lanes = cb_alloc(slices, 1);
  cut->row = cb_alloc((size_t)cut->places, sizeof *cut->row);
  return cut->first_step && cut->first_place && cut->slice_lanes && cut->row;
}

static int place_slices(struct cb_panel_cut *cut, int64_t *places) {
  places[0] = cut->first_slice[0] = 0;
  if (!count_slices(cut, places)) return 0;
  even_out(cut, places);
  for (int64_t p = 0; p < cut->panels; p++) {
    places[p + 1] += places[p];
    cut->first_slice[p + 1] += cut->first_slice[p];
  }
  cut->slices = cut->first_slice[cut->panels];
  cut->places = places[cut->panels];
  if (!alloc_slices(cut) || !fill_slices(cut, places)) return 0;
  cut->first_place[cut->slices] = cut->places;
  for (int64_t slice = 0; slice < cut->slices; slice++) cut->first_step[slice + 1] += cut->first_step[slice];
  return 1;
}

static int make_slices(struct cb_panel_cut *cut) {
  int64_t *places = cb_alloc((size_t)cut->panels + 1, sizeof *places);
  cut->first_slice = cb_alloc((size_t)cut->panels + 1, sizeof *cut->first_slice);
  const int good = places && cut->first_slice && place_slices(cut, places);
  cb_free(places);
  return good;
}

/* ---- the whole */

/* Panels whose columns are hardly met twice would only take a way round. */
static enum cb_status refuse_strangers(const struct cb_panel_cut *cut, const struct cb_options *options,
                                       struct cb_diag *diag) {
  if (!cut->panel_nonzeros)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "no panel: all rows with nonzeros are long");
  if (cut->panel_nonzeros * 10 >= cut->units_sum * options->panel_uses) return CB_OK;
  return cb_fail(
      diag, CB_ERR_UNSUPPORTED,
      "rows of a panel share too little: %lld nonzeros for %lld units of %d columns; --panel-uses=0 "
      "accepts that",
      (long long)cut->panel_nonzeros, (long long)cut->units_sum, 1 << cut->unit_log2);
}

enum cb_status cb_panel_cut(struct cb_panel_cut *cut, const struct cb_draft *draft, struct cb_diag *diag) {
  int64_t entries = 0;
  choose_shape(cut, draft->options, draft->target);
  enum cb_status s = choose_entries(&entries, cut, draft->options, draft->target, diag);
  if (s) return s;
  if (!choose_unit(cut, draft->options, entries) || !cut_panels(cut) || !cut_long_rows(cut))
    return cb_fail_memory(diag, "panels", (uint64_t)cut->csr->rows * 4);
  s = refuse_strangers(cut, draft->options, diag);
  if (s) return s;
  if (!make_slices(cut)) return cb_fail_memory(diag, "slices", (uint64_t)cut->csr->rows * 4);
  if (cut->places > INT32_MAX - LANES || cut->slices > INT32_MAX / LANES)
    return cb_fail(diag, CB_ERR_LIMIT, "%lld slices of %lld places exceed the panel layout's int",
                   (long long)cut->slices, (long long)cut->places);
  return CB_OK;
}

void cb_panel_cut_release(struct cb_panel_cut *cut) {
  cb_free(cut->first_row);
  cb_free(cut->units);
  cb_free(cut->first_slice);
  cb_free(cut->first_step);
  cb_free(cut->first_place);
  cb_free(cut->slice_lanes);
  cb_free(cut->row);
  cb_free(cut->pieces);
}
