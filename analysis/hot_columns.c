// SPDX-License-Identifier: Apache-2.0
/* Columns by frequency: how many are worth a place in shared memory, and how many one among the warm entries.
 * Both weigh what a column's copies cost against what its nonzeros gain, from a histogram of the columns'
 * nonzeros. */
#include "analysis/hot_columns.h"

#include "analysis/plan/cost_figures.h"
#include "analysis/frequent.h"
#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

enum {
  COUNT_KEYS = CB_COUNT_KEYS,
  CLASSES = 16,         /* of warm columns: those of one have as many nonzeros up to a factor of two */
  INDEX_BYTES = 3,      /* of a cold nonzero */
  SECTOR_BYTES = 32,
  PREPARE_THREADS = 256,
  PREPARE_EACH = 4, /* entries of a thread when there are many */
  MISS_BYTES = 64,    /* memory is read so many at a time */
  COPY_BYTES = 32,    /* of memory traffic for a warm entry: its column, its share of x, the copy */
  L1_EXTRA = 28 << 10 /* L1 and shared memory of a multiprocessor together, less shared memory's most */
};

/* columns_with[key]: how many columns have so many nonzeros. */
struct histogram {
  uint32_t *counts; /* by column */
  int64_t *columns_with;
  int64_t occupied;
};

static int count_columns(struct histogram *histogram, const struct cb_csr *csr) {
  histogram->counts = cb_count_columns(csr);
  histogram->columns_with = histogram->counts ? cb_columns_with(histogram->counts, csr->cols) : NULL;
  if (!histogram->columns_with) return 0;
  histogram->occupied = csr->cols - histogram->columns_with[0];
  return 1;
}

/* ---- hot columns */

struct choice {
  int gather;
  int64_t columns, nonzeros;
  int64_t saved_ns;
};

static struct choice weigh(const struct histogram *histogram, const struct cb_hot_shape *shape, int64_t most,
                           int gather) {
  struct choice choice = {.gather = gather};
  const int64_t copies =
      gather ? cb_divide_up(shape->blocks * shape->vector_bytes, SECTOR_BYTES) : shape->blocks;
  for (int64_t count = COUNT_KEYS - 1; count > copies && choice.columns < most; count--) {
    const int64_t taken = cb_smaller(histogram->columns_with[count], most - choice.columns);
    choice.columns += taken;
    choice.nonzeros += taken * count;
  }
  choice.saved_ns = cb_plan_gather_ns(choice.nonzeros - choice.columns * copies, shape->target) -
                    (gather ? CB_COST_HOT_PREPARE_NS : 0);
  return choice;
}

/* Why the best choice is none. */
static enum cb_status refuse(const struct choice *best, const struct cb_hot_shape *shape, struct cb_diag *diag) {
  const long long hot = best->columns, held = best->nonzeros, all = shape->csr->nnz;
  if (!hot)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "no column has more than the %lld nonzeros that repay copying its entry of x to %lld thread blocks; "
                   "use another recipe, or say --hot-columns",
                   (long long)shape->blocks, (long long)shape->blocks);
  if (held * 100 < all * shape->options->hot_share)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "%lld hot columns hold %lld of %lld nonzeros, less than the %lld %% of --hot-share; use another recipe, "
                   "or say --hot-columns",
                   hot, held, all, (long long)shape->options->hot_share);
  return cb_fail(diag, CB_ERR_UNSUPPORTED,
                 "%lld hot columns, with %lld of %lld nonzeros, would save %.2f us of reading x, less than %.2f; use another "
                 "recipe, or say --hot-columns",
                 hot, held, all, 1e-3 * (double)cb_larger(best->saved_ns, 0), 1e-3 * CB_COST_HOT_WORTH_NS);
}

static enum cb_status choose_hot(struct cb_hot_columns *columns, const struct histogram *histogram,
                                 const struct cb_hot_shape *shape, struct cb_diag *diag) {
  const struct cb_options *options = shape->options;
  const int64_t room = shape->target->shared_per_block / shape->vector_bytes;
  const int64_t half = (shape->target->shared_per_sm + L1_EXTRA) / 2 / shape->vector_bytes;
  if (options->hot_columns > room)
    return cb_fail(diag, CB_ERR_LIMIT,
                   "%lld hot columns do not fit into shared memory; '%s' has room for %lld",
                   (long long)options->hot_columns, shape->target->model, (long long)room);
  struct choice best = weigh(histogram, shape, cb_smaller(half, room), 0);
  const struct choice gathered = weigh(histogram, shape, cb_smaller(half, room), 1);
  const int gather =
      options->hot_gather == CB_AUTO ? gathered.saved_ns > best.saved_ns : options->hot_gather == CB_ON;
  if (gather) best = gathered;
  columns->gather = gather;
  columns->hot = cb_smaller(options->hot_columns ? options->hot_columns : best.columns, histogram->occupied);
  if (!options->hot_columns &&
      (best.nonzeros * 100 < shape->csr->nnz * options->hot_share || best.saved_ns < CB_COST_HOT_WORTH_NS))
    return refuse(&best, shape, diag);
  return CB_OK;
}

/* ---- warm columns: need hot */

/* L2 has two halves, each of which keeps what its multiprocessors ask for. What a sector that is asked for so
 * often by a product misses there, as a part of the requests: between what a least-recently-used cache (an
 * exponential) and one that forgets at random would miss. Only exact operations: the same on every machine.
 */
static double missing(double requests, double residence) {
  const double seen = requests * residence;
  return 1 / (1 + seen + seen * seen / 2);
}

/* The part of a product's duration that what was read once stays in L2: it streams all nonzeros. */
static double residence_of(const struct cb_hot_shape *shape) {
  const double streamed = (double)shape->csr->nnz * (double)(shape->value_bytes + INDEX_BYTES);
  return (double)(shape->target->l2_bytes / 2) / streamed;
}

struct warmth {
  int64_t columns;
  double prepare_ns, miss_ns;
};

static double cost_of(const struct warmth *warmth) {
  return warmth->prepare_ns + warmth->miss_ns;
}

/* `columns` warm ones of whose requests `warm_missed` miss, and `requests` of x's entries. */
static struct warmth warmth_of(const struct cb_hot_shape *shape, int64_t columns, double warm_missed,
                               double requests) {
  const struct cb_target *target = shape->target;
  const double read = (double)target->read_gb_per_s, in_sector = SECTOR_BYTES / (double)shape->vector_bytes;
  const double x_missed =
      requests * missing(requests * in_sector / (double)shape->csr->cols, residence_of(shape));
  return (struct warmth){columns, (double)columns * (COPY_BYTES / read + 1 / (double)target->sectors_g_per_s),
                         (warm_missed + x_missed) * MISS_BYTES / read};
}

/* Of the columns behind the hot ones, as many as cost least; between `least` and `most`. */
static struct warmth weigh_warm(const struct histogram *histogram, const struct cb_hot_shape *shape,
                                int64_t hot, int64_t least, int64_t most) {
  const double in_sector = SECTOR_BYTES / (double)shape->vector_bytes, residence = residence_of(shape);
  double requests = 0, missed = 0;
  int64_t columns = 0, skipped = 0;
  for (int64_t count = COUNT_KEYS - 1; count > 0; count--) {
    const int64_t with = histogram->columns_with[count], skip = cb_smaller(with, hot - skipped);
    skipped += skip;
    requests += (double)((with - skip) * count);
  }
  struct warmth best = warmth_of(shape, 0, 0, requests);
  skipped = 0;
  for (int64_t count = COUNT_KEYS - 1; count > 0 && columns < most; count--) {
    const int64_t with = histogram->columns_with[count], skip = cb_smaller(with, hot - skipped);
    const int64_t taken = cb_smaller(with - skip, most - columns);
    skipped += skip;
    if (!taken) continue;
    columns += taken;
    requests -= (double)(taken * count);
    missed += (double)(taken * count) * missing((double)count * in_sector, residence);
    const struct warmth warmth = warmth_of(shape, columns, missed, requests);
    if (columns <= least || cost_of(&warmth) < cost_of(&best)) best = warmth;
  }
  return best;
}

static void choose_warm(struct cb_hot_columns *columns, const struct histogram *histogram,
                        const struct cb_hot_shape *shape) {
  const int64_t asked = shape->options->hot_warm, wide = INT32_MAX - shape->csr->cols; /* indices are int */
  const int64_t most = cb_smaller(histogram->occupied - columns->hot, wide);
  const struct warmth none = weigh_warm(histogram, shape, columns->hot, 0, 0);
  struct warmth warm = none;
  if (asked)
    warm = weigh_warm(histogram, shape, columns->hot, cb_smaller(asked, most), cb_smaller(asked, most));
  else if (shape->options->hot_gather != CB_OFF)
    warm = weigh_warm(histogram, shape, columns->hot, 0, most);
  const double launch = columns->gather ? 0 : CB_COST_HOT_PREPARE_NS;
  if (!asked && cost_of(&none) - cost_of(&warm) < CB_COST_HOT_WORTH_NS + launch) warm = none;
  columns->warm = warm.columns;
  columns->gather |= warm.columns > 0;
  columns->rest = histogram->occupied - columns->hot - columns->warm;
  columns->prepare_ns = (int64_t)warm.prepare_ns;
  columns->miss_ns = (int64_t)warm.miss_ns;
}

/* ---- numbers: need hot and warm */

/* The `number` columns of the most nonzeros: those of more than `least`, and the first `ties` of exactly so
 * many. */
struct cut {
  int64_t least, ties;
};

static struct cut cut_at(const struct histogram *histogram, int64_t number) {
  int64_t least = COUNT_KEYS - 1, above = 0;
  while (least > 1 && above + histogram->columns_with[least] < number)
    above += histogram->columns_with[least--];
  return (struct cut){least, number - above};
}

static int takes(struct cut *cut, int64_t key) {
  return key > cut->least || (key == cut->least && cut->ties-- > 0);
}

static int class_of(int64_t key) {
  int log2 = 0;
  while (key >> (log2 + 1)) log2++;
  return CLASSES - 1 - log2;
}

/* Columns in ranges of equal length, which threads number side by side. What a range has of each, and then, summed up,
 * where its own begin. */
enum { RANGES = 64 };
struct range {
  struct cut hot, both; /* ties: what the ranges before it leave */
  int64_t number;       /* of hot columns */
  int64_t start[CLASSES];
};
struct numbering {
  const struct histogram *histogram;
  int64_t cols, length;
  struct range ranges[RANGES];
};

static int64_t range_end(const struct numbering *numbering, int64_t range) {
  return cb_smaller((range + 1) * numbering->length, numbering->cols);
}

/* Ties of a range: those before it take theirs first. */
static void count_ties(struct numbering *numbering, int64_t range) {
  struct range *here = &numbering->ranges[range];
  for (int64_t column = range * numbering->length; column < range_end(numbering, range); column++) {
    const int64_t key = cb_count_key(numbering->histogram->counts[column]);
    here->hot.ties += key == here->hot.least;
    here->both.ties += key == here->both.least;
  }
}

static void share_ties(struct numbering *numbering, struct cut hot, struct cut both) {
#pragma omp parallel for schedule(static)
  for (int range = 0; range < RANGES; range++) {
    numbering->ranges[range] = (struct range){.hot = {hot.least, 0}, .both = {both.least, 0}};
    count_ties(numbering, range);
  }
  for (int range = 0; range < RANGES; range++) {
    struct range *here = &numbering->ranges[range];
    const int64_t hot_ties = here->hot.ties, both_ties = here->both.ties;
    here->hot.ties = cb_larger(hot.ties, 0);
    here->both.ties = cb_larger(both.ties, 0);
    hot.ties -= hot_ties;
    both.ties -= both_ties;
  }
}

/* Hot ones get the number that `at` says and raise it, and so do warm ones of each class; others are cold. */
static void number_range(const struct numbering *numbering, int64_t range, struct range *at, int32_t *place_of) {
  for (int64_t column = range * numbering->length; column < range_end(numbering, range); column++) {
    const int64_t key = cb_count_key(numbering->histogram->counts[column]);
    const int taken = takes(&at->both, key), is_hot = takes(&at->hot, key);
    int64_t place = CB_COLD;
    if (is_hot) place = at->number++;
    else if (taken) place = at->start[class_of(key)]++;
    if (place_of) place_of[column] = (int32_t)place;
  }
}

/* From how many there are of a kind to where they begin: behind those before, `sum`. Returns where they end. */
static int64_t move_up(int64_t *count, int64_t sum) {
  const int64_t here = *count;
  *count = sum;
  return sum + here;
}

/* Hot ones in the order of columns; warm ones by class, those of a class in the order of columns. */
static void number_columns(struct cb_hot_columns *columns, const struct histogram *histogram, int64_t cols) {
  struct numbering numbering = {.histogram = histogram, .cols = cols, .length = cb_divide_up(cols, RANGES)};
  share_ties(&numbering, cut_at(histogram, columns->hot), cut_at(histogram, columns->hot + columns->warm));
#pragma omp parallel for schedule(static)
  for (int range = 0; range < RANGES; range++) {
    struct range counted = numbering.ranges[range];
    number_range(&numbering, range, &counted, NULL);
    numbering.ranges[range].number = counted.number;
    memcpy(numbering.ranges[range].start, counted.start, sizeof counted.start);
  }
  int64_t number = 0;
  for (int range = 0; range < RANGES; range++) number = move_up(&numbering.ranges[range].number, number);
  number = columns->hot;
  for (int class = 0; class < CLASSES; class ++)
    for (int range = 0; range < RANGES; range++) number = move_up(&numbering.ranges[range].start[class], number);
#pragma omp parallel for schedule(static)
  for (int range = 0; range < RANGES; range++)
    number_range(&numbering, range, &numbering.ranges[range], columns->place_of);
}

/* ---- indices of the others: need the numbers */

static void measure_indices(struct cb_hot_columns *columns, const struct histogram *histogram, int64_t cols) {
  int64_t least = INT64_MAX, most = -1, least_low = INT64_MAX, most_low = -1;
#pragma omp parallel for schedule(static) reduction(min : least, least_low) reduction(max : most, most_low)
  for (int64_t column = 0; column < cols; column++) {
    const int32_t place = columns->place_of[column];
    if (!histogram->counts[column] || (uint32_t)place < (uint32_t)columns->hot) continue;
    const int64_t index = cb_hot_index(columns, column, place), low = index & 0xffff;
    least = cb_smaller(least, index);
    most = cb_larger(most, index);
    least_low = cb_smaller(least_low, low);
    most_low = cb_larger(most_low, low);
  }
  columns->index = (struct cb_hot_range){least, most};
  columns->low = (struct cb_hot_range){least_low, most_low};
  columns->high = (struct cb_hot_range){least >> 16, most >> 16};
}

static enum cb_status choose(struct cb_hot_columns *columns, const struct histogram *histogram,
                             const struct cb_hot_shape *shape, struct cb_diag *diag) {
  const enum cb_status s = choose_hot(columns, histogram, shape, diag);
  if (s) return s;
  choose_warm(columns, histogram, shape);
  number_columns(columns, histogram, shape->csr->cols);
  measure_indices(columns, histogram, shape->csr->cols);
  return CB_OK;
}

enum cb_status cb_hot_columns_choose(struct cb_hot_columns *columns, const struct cb_hot_shape *shape,
                                     struct cb_diag *diag) {
  struct histogram histogram = {0};
  *columns = (struct cb_hot_columns){0};
  enum cb_status s = cb_check_column_tables(shape->csr, diag);
  if (s) return s;
  columns->place_of = cb_alloc((size_t)shape->csr->cols, sizeof *columns->place_of);
  s = columns->place_of && count_columns(&histogram, shape->csr)
          ? choose(columns, &histogram, shape, diag)
          : cb_fail_memory(diag, "hot columns", (uint64_t)shape->csr->cols * 8);
  cb_free(histogram.counts);
  cb_free(histogram.columns_with);
  return s;
}

void cb_hot_columns_release(struct cb_hot_columns *columns) {
  cb_free(columns->place_of);
  *columns = (struct cb_hot_columns){0};
}

/* ---- the launch before */

void cb_hot_draft_gather(struct cb_draft *draft, int64_t before, int64_t entries) {
  const int64_t each = entries > draft->target->multiprocessors * INT64_C(2048) ? PREPARE_EACH : 1;
  cb_draft_constant(draft, "kBefore", before, "plan: sums before the gathered entries");
  cb_draft_constant(draft, "kGathered", entries, "plan: entries of x that a first launch lays side by side");
  cb_draft_constant(draft, "kEach", each, "plan: entries of one of its threads");
  draft->region.carry_slots = before + entries;
  draft->region.carry_width = 1;
  if (!draft->region.carry_counters) draft->region.carry_counters = 1; /* scratch has both kinds, or none */
  draft->region.prepare_blocks = cb_divide_up(entries, PREPARE_THREADS * each);
}
