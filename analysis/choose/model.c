// SPDX-License-Identifier: Apache-2.0
/* A time for each recipe from a profile: see model.h. Each function below is what its layout's prediction comes to when
 * counts of the sample stand for those of the whole matrix. */
#include "analysis/choose/model.h"

#include "analysis/cost_figures.h"
#include "analysis/plan.h"
#include "analysis/row_lanes.h"
#include "base/integers.h"

enum {
  SELL_ASK_PS = 4,
  MERGE_ASK_PS = 3
}; /* for a sector that a warp asks for, wherever it lies: measured on the H200 */
enum { LANES = 32, SECTOR = 32, BATCH = 8, VALUES_IN_FLIGHT = 36, LONG_BIN = 10 /* of CB_CHOICE_LONG */ };
enum { THREADS = 1536 /* of a multiprocessor */ };

/* What a recipe takes; 0: the matrix is not for it. */
struct time {
  int64_t ns, gpu_ns; /* gpu_ns: without what a launch takes at least */
};
static const struct time REFUSED = {0, 0};

struct view {
  const struct cb_choice_profile *profile;
  const struct cb_target *target;
  int64_t value, vector;               /* bytes */
  int64_t short_nonzeros;              /* those in rows that groups look at */
  int64_t slice_sectors, wide_sectors; /* of x: what 32 rows and 256 rows each read once */
  int64_t row_sectors, step_sectors;   /* what warps ask for along rows, and down rows */
  int64_t row_lines, step_lines;       /* the same in lines of L1 */
  int64_t column;                      /* bytes of a column, from the first of 32 rows */
};

/* What a sampled count is for all rows that are not long. */
static int64_t all_of(const struct view *view, int64_t count) {
  return cb_proportion(count, view->short_nonzeros, view->profile->sampled);
}

static struct time time_of(const struct view *view, struct cb_cost cost, int launches) {
  const struct cb_choice_profile *profile = view->profile;
  cost.bytes += (profile->rows + profile->cols) * view->vector;
  cb_cost_estimate(&cost, view->target);
  const int64_t tie = cost.gpu_ns / CB_COST_TIE;
  return (struct time){cb_larger(launches * view->target->launch_ns, cost.gpu_ns - tie) + tie, cost.gpu_ns};
}

/* Sectors of x that thread blocks of `rows` rows read, where `asked` times warps ask for one: each once, and of the
 * repeated requests those that L1 no longer holds (sectors.h). */
static int64_t sectors_of(const struct view *view, int64_t rows, int64_t asked) {
  enum { L1_SECTORS = 1100 };                    /* of a thread block */
  const int64_t log2 = cb_choice_bin(rows / 32); /* 0: fewer than 32; 4: 256 and more */
  const int64_t step = (view->slice_sectors - view->wide_sectors) * (cb_smaller(log2, 4) - 1) / 3;
  const int64_t different = log2 ? view->slice_sectors - step : view->slice_sectors;
  const int64_t of_block = cb_proportion(different, rows, cb_larger(1, view->profile->rows));
  if (of_block <= L1_SECTORS || asked <= different) return different;
  return different + cb_proportion(asked - different, of_block - L1_SECTORS, of_block);
}

/* Where x is about as large as L1, thread blocks find there what others have read. */
static int64_t kept_in_l1(const struct view *view, int64_t sectors) {
  enum { L1_BYTES = 160 << 10 };
  const int64_t bytes = cb_larger(1, view->profile->cols * view->vector);
  const int64_t least = cb_smaller(sectors, bytes / SECTOR * view->target->multiprocessors);
  return sectors - cb_proportion(sectors - least, cb_smaller(L1_BYTES, bytes), bytes);
}

/* ---- sell: natural, or sorted and varied */

static int log2_of(int lanes) {
  int log2 = 0;
  while (1 << log2 < lanes) log2++;
  return log2;
}

static int is_even(const struct cb_choice_profile *profile, const struct cb_target *target) {
  return cb_rows_are_many(profile->rows, profile->nnz, target) &&
         cb_rows_are_even(profile->rows, profile->nnz, profile->lengths.longest);
}

/* Slots of rows in order with so many lanes each. */
static int64_t natural_slots(const struct view *view, int log2) {
  const struct cb_choice_profile *profile = view->profile;
  return (profile->lengths.in_step[log2] << (5 - log2)) + profile->rows * ((1 << log2) - 1) / 2;
}

/* The layout's lanes for even rows: those of the least time. */
static int even_lanes_log2(const struct view *view) {
  enum { ROOM = 6, BLOCK = 256 /* threads */ };
  const struct cb_choice_profile *profile = view->profile;
  const int most = cb_even_rows_most_lanes(profile->rows, profile->nnz, view->value + 3, view->target);
  int64_t best = INT64_MAX;
  int best_log2 = 0;
  for (int log2 = 0; 1 << log2 <= most; log2++) {
    const int64_t steps = cb_divide_up(profile->lengths.longest, INT64_C(1) << log2);
    const int64_t ns = cb_even_rows_ns(natural_slots(view, log2) * (view->value + 2), (profile->rows << log2) / BLOCK,
                                       ROOM, cb_divide_up(steps, BATCH), INT64_C(1) << log2, view->target);
    if (ns < best) best_log2 = log2;
    best = cb_smaller(best, ns);
  }
  return best_log2;
}

/* Whether rows by slices of their own take less than rows in order with so many lanes each. */
static int is_sorted_faster(const struct view *view, int log2) {
  enum { BLOCK = 256 /* threads */, VARIED_STEPS = 8, ORDER_BYTES = 4, COLUMN_BYTES = 3 };
  const struct cb_choice_profile *profile = view->profile;
  const int64_t slot = view->value + COLUMN_BYTES, slots = natural_slots(view, log2);
  const int64_t varied = profile->nnz + profile->nnz / 8, lanes = profile->rows << log2;
  const int64_t steps = cb_divide_up(slots, cb_larger(1, lanes)),
                longest = cb_divide_up(profile->lengths.longest, INT64_C(1) << log2),
                batch = cb_larger(2, cb_smaller(steps, BATCH));
  const struct cb_slices_work natural_work = {.blocks = lanes / BLOCK,
                                              .mean = cb_divide_up(steps, batch),
                                              .longest = cb_divide_up(longest, batch),
                                              .bytes = slots * slot,
                                              .nonzeros = profile->nnz};
  const int64_t varied_lanes = cb_larger(profile->rows, cb_divide_up(varied, VARIED_STEPS));
  const struct cb_slices_work varied_work = {.blocks = varied_lanes / BLOCK,
                                             .mean = 1,
                                             .longest = 2,
                                             .bytes = varied * slot + profile->rows * ORDER_BYTES,
                                             .nonzeros = profile->nnz,
                                             .sorted = 1,
                                             .varied = 1,
                                             .split = profile->lengths.longest > CB_CHOICE_LONG};
  return cb_slices_ns(&varied_work, view->target) < cb_slices_ns(&natural_work, view->target);
}

/* The cost of `nonzeros` of all, in rows as long as all rows are, and whether rows have an order of their own then. */
static struct cb_cost sell_cost(const struct view *view, int64_t nonzeros, int *is_sorted) {
  const struct cb_choice_profile *profile = view->profile;
  const int even = is_even(profile, view->target);
  const int log2 = even ? even_lanes_log2(view) : log2_of(cb_row_lanes(profile->rows, profile->nnz, view->target));
  const int64_t slot = view->value + view->column;
  const int64_t natural = natural_slots(view, log2), varied = profile->nnz + profile->nnz / 16;
  const int64_t longest = cb_divide_up(profile->lengths.longest, INT64_C(1) << log2);
  const int sorted = *is_sorted = !even && is_sorted_faster(view, log2);
  const int64_t asked = log2 < 3 ? view->step_sectors : view->row_sectors,
                lines = log2 < 3 ? view->step_lines : view->row_lines,
                sectors = sectors_of(view, 256 >> log2, asked);
  const int64_t waves = (profile->rows << log2) / (THREADS * (int64_t)view->target->multiprocessors);
  const int64_t slots = cb_proportion(sorted ? varied : natural, nonzeros, profile->nnz);
  return (struct cb_cost){
      .bytes = slots * slot + profile->rows * (sorted ? 6 : 1),
      .sectors = cb_proportion(kept_in_l1(view, sectors), nonzeros, profile->nnz),
      .work_ns =
          cb_larger(waves * CB_COST_SELL_WAVE_NS, cb_proportion(lines * SELL_ASK_PS / 1000, nonzeros, profile->nnz)),
      .chain_ns = (sorted ? 2 : cb_divide_up(longest, BATCH)) * CB_COST_BATCH_NS,
      .tail_ns = sorted && profile->lengths.longest > 512 ? CB_COST_CARRY_NS : 0,
      .stream_percent = CB_COST_SELL_PERCENT};
}

static struct time sell_time(const struct view *view) {
  int is_sorted;
  return time_of(view, sell_cost(view, view->profile->nnz, &is_sorted), 1);
}

/* `taken` has `in` nonzeros; the others are left to sell, in turn, where each keeps so many slots: one, or those of its
 * slice, where whole rows are left here and there. */
static struct time with_rest(const struct view *view, struct cb_cost taken, int64_t in, int slots) {
  const int64_t left = view->profile->nnz - in;
  int apart = 0; /* sorted rows and segments have no turn, and a launch of their own */
  if (left > 0) {
    const struct cb_cost rest = sell_cost(view, cb_smaller(left * slots, view->profile->nnz), &apart);
    taken.bytes += rest.bytes;
    taken.sectors += rest.sectors;
    taken.chain_ns += apart ? rest.chain_ns : CB_COST_BATCH_NS;
    taken.tail_ns += apart ? 2 * CB_COST_START_NS + rest.tail_ns : 0;
  }
  return time_of(view, taken, 1 + apart);
}

/* ---- the others */

/* Steps whose loads are in flight together, where each loads so many values. */
static int64_t batch_of(int64_t values) {
  return cb_larger(1, cb_smaller(BATCH, VALUES_IN_FLIGHT / values));
}

static struct time dia_time(const struct view *view) {
  enum { WHOLE_LINES = 2 };
  const struct cb_choice_profile *profile = view->profile;
  const int64_t count = profile->diagonals;
  if (!count) return REFUSED;
  const int64_t places = cb_proportion(profile->diagonal_places, profile->rows, profile->sampled_rows);
  const int64_t inside = cb_smaller(view->short_nonzeros, all_of(view, profile->in_diagonals));
  const struct cb_cost cost = {.bytes = places * view->value + places / 16,
                               .sectors = profile->rows * (1 + count / 4) * view->vector / SECTOR / WHOLE_LINES,
                               .chain_ns = cb_divide_up(count, BATCH) * CB_COST_BATCH_NS,
                               .work_ns =
                                   profile->rows * count * CB_COST_DIA_LOAD_PS / view->target->multiprocessors / 1000,
                               .stream_percent = CB_COST_DIA_PERCENT};
  return with_rest(view, cost, inside, 1);
}

/* Of the size of tiles that takes least time, among those that are full enough. */
struct tiling {
  struct cb_tile_size size;
  int64_t tiles, bytes; /* 0: none is */
};
static struct tiling best_tiling(const struct view *view) {
  enum { FULL_PERCENT = 84 };
  const struct cb_choice_profile *profile = view->profile;
  const int64_t mean = profile->nnz / cb_larger(1, profile->rows);
  const int is_dense = mean * 100 >= profile->cols * FULL_PERCENT; /* of rows that are too long for the sample, too */
  struct tiling best = {{1, 1, {0}}, 0, 0};
  int64_t least = INT64_MAX;
  for (int i = 0; i < CB_TILE_SIZES; i++) {
    const struct cb_tile_size size = cb_tile_sizes[i];
    const int64_t area = cb_tile_area(size),
                  tiles = is_dense ? cb_divide_up(profile->rows * profile->cols, area)
                                   : cb_proportion(profile->tiles[i], profile->nnz, profile->in_tiles[i]);
    if (!tiles || profile->nnz * 100 < tiles * area * FULL_PERCENT) continue;
    const int64_t bytes = tiles * (area * view->value + 2 + (tiles * area > profile->nnz));
    const int64_t ns =
        cb_tiles_ns(size, cb_divide_up(profile->rows, size.rows), tiles, view->value, bytes, view->target);
    if (ns >= least) continue;
    least = ns;
    best = (struct tiling){size, tiles, bytes};
  }
  return best;
}

static struct time blocks_time(const struct view *view) {
  const struct cb_choice_profile *profile = view->profile;
  const struct tiling best = best_tiling(view);
  if (!best.bytes) return REFUSED;
  const int64_t tile_rows = cb_divide_up(profile->rows, best.size.rows);
  const int64_t threads = CB_TILE_THREADS * (int64_t)view->target->multiprocessors;
  const int64_t lanes = cb_tile_row_lanes(tile_rows, best.tiles, threads);
  const int64_t steps = cb_divide_up(profile->lengths.longest, best.size.cols * lanes);
  return time_of(view,
                 (struct cb_cost){.bytes = best.bytes + profile->rows / 2,
                                  .sectors = sectors_of(view, 256 * best.size.rows / lanes, view->row_sectors),
                                  .chain_ns =
                                      cb_divide_up(steps, batch_of(cb_tile_area(best.size))) * CB_COST_BATCH_NS,
                                  .stream_percent = CB_COST_BLOCKS_PERCENT},
                 1);
}

static struct time patterns_time(const struct view *view) {
  enum { MOST_PATTERNS = 255, MOST_OFFSETS = 64, IN_RUNS_PERCENT = 87 };
  const struct cb_choice_profile *profile = view->profile;
  const int64_t known = profile->pattern_few + profile->pattern_many;
  if (known * 2 < profile->sampled || !known) return REFUSED;
  const int single = profile->unknowns == 1;
  const int64_t area = profile->unknowns * profile->unknowns;
  /* of more patterns or offsets than there is room for, about that part; what is left then are rows here and there */
  const int64_t patterns = cb_larger(profile->patterns, MOST_PATTERNS);
  const int64_t offsets = cb_larger(profile->pattern_offsets, MOST_OFFSETS);
  const int has_room = patterns == MOST_PATTERNS && offsets == MOST_OFFSETS;
  const int64_t of_patterns = cb_proportion(all_of(view, known), MOST_PATTERNS, patterns);
  const int64_t inside = cb_smaller(view->short_nonzeros, cb_proportion(of_patterns, MOST_OFFSETS, offsets));
  /* where neighbouring rows have different offsets, nonzeros alone are stored, and 32 rows look at each offset */
  const int packed = single && profile->in_runs * 100 < profile->sampled * IN_RUNS_PERCENT;
  const int64_t looks = packed ? profile->rows / LANES * cb_smaller(profile->pattern_offsets, MOST_OFFSETS) : 0;
  const struct cb_cost cost = {.bytes = inside * view->value + profile->rows / profile->unknowns * 2,
                               .sectors = view->wide_sectors,
                               .work_ns = looks * CB_COST_PATTERNS_OFFSET_PS / view->target->multiprocessors / 1000,
                               .chain_ns =
                                   (1 + cb_divide_up(profile->pattern_offsets, batch_of(area))) * CB_COST_BATCH_NS,
                               .stream_percent = single ? CB_COST_PATTERNS_ROWS_PERCENT : CB_COST_PATTERNS_PERCENT};
  return with_rest(view, cost, inside, has_room ? 1 : LANES);
}

static struct time merge_time(const struct view *view) {
  enum { ROW_BYTES = 2, BLOCK = 256 /* threads */, SEGMENT = 2048, WHOLE = 3 * SEGMENT };
  const struct cb_choice_profile *profile = view->profile;
  const int64_t share = profile->nnz / (BLOCK * (int64_t)view->target->multiprocessors);
  const int64_t tile = BLOCK * (share <= 12 ? 3 : share <= 28 ? 5 : 7);
  const int64_t longest = profile->lengths.longest;
  const int64_t batches = longest <= tile ? 1 : cb_divide_up(cb_smaller(longest, WHOLE), SEGMENT);
  const int64_t work = (profile->rows - profile->lengths.with_length[0]) * 9 + profile->nnz * 3 / 2;
  return time_of(
      view,
      (struct cb_cost){
          .bytes = profile->nnz * (view->value + view->column) + profile->nnz / 5 +
                   (profile->rows - profile->lengths.with_length[0]) * ROW_BYTES,
          .sectors = sectors_of(view, cb_proportion(tile, profile->rows, profile->nnz), view->row_sectors),
          .chain_ns = batches * CB_COST_BATCH_NS,
          .work_ns = cb_larger(work * 132 / view->target->multiprocessors, view->row_lines * MERGE_ASK_PS) / 1000,
          .tail_ns = longest > WHOLE ? CB_COST_CARRY_MERGE_NS : CB_COST_MERGE_ROWS_NS,
          .stream_percent = CB_COST_MERGE_PERCENT},
      1);
}

/* The most frequent columns: `most` of them at most, each of 2^least_bin nonzeros or more. */
struct frequent {
  int64_t columns, nonzeros;
};
static struct frequent frequent_columns(const struct view *view, int least_bin, int64_t most) {
  const struct cb_choice_profile *profile = view->profile;
  struct frequent found = {0};
  for (int bin = CB_CHOICE_BINS - 1; bin > least_bin && found.columns < most; bin--) {
    const int64_t columns = profile->with_count[bin] << profile->column_share;
    const int64_t nonzeros = cb_proportion(profile->in_count[bin], profile->nnz, profile->in_columns);
    const int64_t taken = cb_smaller(columns, most - found.columns);
    found.columns += taken;
    found.nonzeros += cb_proportion(nonzeros, taken, columns);
  }
  return found;
}

static struct time hot_time(const struct view *view) {
  /* Bins are those of a sample's counts. With 7 there is no time for 36 of 415 matrices that have hot columns, of which
   * 11 lose up to 33 % without them (R-MAT 16 x 38 14.7 us for 19.5 by sell); with 6, for 11 that lose nothing. */
  enum { HOT_BIN = 6, SHARED = 128 << 10, INDEX_BYTES = 3 };
  const struct cb_choice_profile *profile = view->profile;
  const int64_t blocks = view->target->multiprocessors;
  const int64_t sector_of_block = blocks * view->vector / SECTOR;
  struct frequent hot = frequent_columns(view, HOT_BIN, SHARED / view->vector);
  /* all of x, where shared memory has room and the sample says that all of it is read */
  const int is_whole = profile->cols * view->vector <= view->target->shared_per_block &&
                       (profile->columns << profile->column_share) * 8 >= profile->cols * 7;
  if (is_whole) hot = (struct frequent){profile->cols, profile->nnz};
  const int64_t saved = cb_plan_gather_ns(hot.nonzeros - hot.columns * sector_of_block, view->target);
  if (hot.nonzeros * 4 < profile->nnz || saved < CB_COST_HOT_WORTH_NS) return REFUSED;
  const int64_t sectors = profile->nnz - hot.nonzeros + hot.columns * sector_of_block;
  const int64_t bytes = profile->nnz * (view->value + INDEX_BYTES) + profile->rows * 2;
  return time_of(view,
                 (struct cb_cost){.bytes = bytes,
                                  .sectors = sectors,
                                  .work_ns = cb_plan_gather_ns(sectors, view->target) +
                                             bytes * 6 / 10 / view->target->read_gb_per_s,
                                  .tail_ns = CB_COST_HOT_WORTH_NS + (is_whole ? 0 : CB_COST_HOT_PREPARE_NS)},
                 is_whole ? 1 : 2);
}

static struct time phases_time(const struct view *view) {
  enum { FREQUENT_BIN = 5, MOST_COLUMNS = 1 << 20, PLACE_BYTES = 2 };
  const struct cb_choice_profile *profile = view->profile;
  const int64_t room = view->target->shared_per_block / view->vector, blocks = view->target->multiprocessors;
  const struct frequent found = frequent_columns(view, FREQUENT_BIN, MOST_COLUMNS);
  if (found.columns * 2 < room || found.nonzeros * 3 < profile->nnz) return REFUSED;
  const int64_t left = profile->nnz - found.nonzeros;
  const int64_t slots = found.nonzeros * 5 / 4;
  return time_of(view,
                 (struct cb_cost){.bytes = slots * (view->value + PLACE_BYTES) + left * (view->value + 4),
                                  .sectors = left + blocks * found.columns * view->vector / SECTOR,
                                  .work_ns = slots * CB_COST_PHASES_SLOT_PS / 1000 / blocks,
                                  .tail_ns = CB_COST_PHASES_COMMIT_NS + found.columns / room * CB_COST_PHASE_NS,
                                  .stream_percent = CB_COST_PHASES_PERCENT},
                 3);
}

static struct time slices_time(const struct view *view) {
  enum { INSTRUCTIONS = 15 };
  const struct cb_choice_profile *profile = view->profile;
  const int64_t inside = cb_smaller(view->short_nonzeros, all_of(view, profile->in_runs)),
                blocks = all_of(view, profile->runs);
  if (inside * 4 < profile->nnz || !blocks) return REFUSED;
  const int64_t slices = cb_divide_up(profile->rows, LANES);
  const struct cb_cost cost = {.bytes = blocks * (LANES * view->value + 4) + slices * 4,
                               .sectors = blocks * LANES * view->vector / SECTOR / 2,
                               .chain_ns = (1 + cb_divide_up(blocks / cb_larger(slices, 1), BATCH)) * CB_COST_BATCH_NS,
                               .work_ns = INSTRUCTIONS * blocks * CB_COST_INSTRUCTION_PS /
                                          view->target->multiprocessors / 1000,
                               .tail_ns = CB_COST_SLICES_NS,
                               .stream_percent = CB_COST_SLICES_PERCENT};
  return with_rest(view, cost, inside, 1);
}

/* Sub-blocks of 16 of a panel's columns, of which nothing is stored but columns and places. */
static struct time cb_time(const struct view *view) {
  enum { BLOCK = 16, BLOCK_INSTRUCTIONS = 40, STEP_INSTRUCTIONS = 19, LANES_OF_RUN = 16 };
  const struct cb_choice_profile *profile = view->profile;
  const int64_t full = profile->rows - profile->lengths.with_length[0];
  const int64_t panels = cb_smaller(cb_divide_up(profile->rows, BLOCK), full);
  const int64_t columns = all_of(view, profile->panel_columns), blocks = cb_divide_up(columns, BLOCK) + panels / 2;
  const int64_t instructions = blocks * BLOCK_INSTRUCTIONS + profile->nnz / LANES_OF_RUN * STEP_INSTRUCTIONS;
  const int is_long = profile->lengths.longest > CB_CHOICE_LONG; /* rows that several runs share */
  const int64_t batches = is_long ? BATCH : 2;
  return time_of(
      view,
      (struct cb_cost){.bytes = profile->nnz * (view->value + 1) + columns * 3 + profile->rows * 2,
                       .sectors = view->slice_sectors,
                       .chain_ns = CB_COST_CB_FIRST_NS + batches * CB_COST_CB_BATCH_NS,
                       .work_ns = instructions / view->target->multiprocessors * CB_COST_INSTRUCTION_PS / 1000 +
                                  cb_plan_gather_ns(view->slice_sectors, view->target) * 3 / 2,
                       .tail_ns = CB_COST_CB_STAGED_NS + (is_long ? CB_COST_CARRY_NS : 0),
                       .stream_percent = CB_COST_CB_PERCENT},
      1);
}

/* ---- all of them */

const char *const cb_choice_recipes[CB_CHOICE_RECIPES] = {"dia", "blocks", "patterns", "sell",  "merge",
                                                          "hot", "phases", "cb",       "slices"};
static struct time (*const predictions[CB_CHOICE_RECIPES])(const struct view *) = {
    dia_time, blocks_time, patterns_time, sell_time, merge_time, hot_time, phases_time, cb_time, slices_time};

/* Bytes that tell a column from the first one of 32 rows, in most groups. */
static int64_t column_bytes(const struct cb_choice_profile *profile) {
  int64_t met = 0;
  for (int bin = 0; bin < CB_CHOICE_BINS; bin++) {
    met += profile->spans[bin];
    if (met * 16 >= profile->groups * 15) return bin <= 8 ? 1 : bin <= 16 ? 2 : 4;
  }
  return 4;
}

/* What sampled sectors are for all nonzeros. Long rows, all that is left without a sample, read x in order. */
static int64_t of_all(const struct view *view, int64_t sectors, int64_t sampled) {
  const int64_t all = view->profile->nnz;
  return sampled ? cb_proportion(sectors, all, sampled) : all * view->vector / SECTOR;
}

void cb_choice_model(struct cb_choice_times *times, const struct cb_choice_profile *profile,
                     const struct cb_target *target, struct cb_types types) {
  const int wide = cb_type_size(types.vector) == 8;
  struct view view = {.profile = profile,
                      .target = target,
                      .value = (int64_t)cb_type_size(types.matrix),
                      .vector = (int64_t)cb_type_size(types.vector),
                      .column = column_bytes(profile)};
  view.short_nonzeros = profile->nnz;
  for (int bin = LONG_BIN; bin < CB_CHOICE_BINS; bin++) view.short_nonzeros -= profile->lengths.in_length[bin];
  view.slice_sectors = of_all(&view, profile->slice_sectors[!wide], profile->sampled);
  view.wide_sectors = of_all(&view, profile->wide_sectors[!wide], profile->in_wide);
  view.row_sectors = of_all(&view, profile->row_sectors[!wide], profile->sampled);
  view.step_sectors = of_all(&view, profile->step_sectors[!wide], profile->sampled);
  view.row_lines = of_all(&view, profile->row_lines[!wide], profile->sampled);
  view.step_lines = of_all(&view, profile->step_lines[!wide], profile->sampled);
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) {
    const struct time time = predictions[i](&view);
    times->ns[i] = time.ns;
    times->gpu_ns[i] = time.gpu_ns;
  }
}
