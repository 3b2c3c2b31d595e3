// SPDX-License-Identifier: Apache-2.0
/* Columns by frequency: how many are worth a place in shared memory, and how many one among the packed entries.
 * Both weigh what a column's copies cost against what its nonzeros gain, from a histogram of the columns'
 * nonzeros. */
#include "analysis/layouts/hot/hot_columns.h"

#include "analysis/columns.h"
#include "analysis/cost_figures.h"
#include "analysis/layouts/hot/options.h"
#include "analysis/ordering.h"
#include "base/integers.h"

enum {
  CLASSES = 16,    /* of packed columns: those of one have as many nonzeros up to a factor of two */
  INDEX_BYTES = 3, /* of a cold nonzero */
  SECTOR_BYTES = 32,
  MISS_BYTES = 64,    /* memory is read so many at a time */
  COPY_BYTES = 32,    /* of memory traffic for a packed entry: its column, its share of x, the copy */
  L1_EXTRA = 28 << 10 /* L1 and shared memory of a multiprocessor together, less shared memory's most */
};

/* ---- hot columns */

struct choice {
  int gather;
  int64_t columns, nonzeros;
  int64_t saved_ns;
};

static struct choice weigh(const struct cb_column_counts *counts, const struct cb_hot_shape *shape, int64_t most,
                           int gather) {
  struct choice choice = {.gather = gather};
  const int64_t copies =
      gather ? cb_divide_up(shape->blocks * shape->vector_bytes, SECTOR_BYTES) : shape->blocks;
  for (int64_t count = CB_COUNT_KEYS - 1; count > copies && choice.columns < most; count--) {
    const int64_t taken = cb_smaller(counts->with[count], most - choice.columns);
    choice.columns += taken;
    choice.nonzeros += taken * count;
  }
  choice.saved_ns = cb_plan_gather_ns(choice.nonzeros - choice.columns * copies, shape->target) -
                    (gather ? CB_COST_HOT_PREPARE_NS : 0);
  return choice;
}

/* All columns, copied by a stream as gathered ones are, but without the launch. */
static struct choice all_of(const struct cb_column_counts *counts, const struct cb_hot_shape *shape) {
  const int64_t copies = cb_divide_up(shape->blocks * shape->vector_bytes, SECTOR_BYTES), cols = counts->cols;
  return (struct choice){.columns = cols,
                         .nonzeros = shape->csr->nnz,
                         .saved_ns = cb_plan_gather_ns(shape->csr->nnz - cols * copies, shape->target)};
}

/* Why the best choice is none. */
static enum cb_status refuse(const struct choice *best, const struct cb_hot_shape *shape, struct cb_diag *diag) {
  const long long hot = best->columns, held = best->nonzeros, all = shape->csr->nnz;
  if (!hot)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "no column has more than the %lld nonzeros that repay copying its entry of x to %lld thread blocks; "
                   "use another recipe, or say --hot-columns",
                   (long long)shape->blocks, (long long)shape->blocks);
  if (held * 100 < all * shape->settings[HOT_SHARE])
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "%lld hot columns hold %lld of %lld nonzeros, less than the %lld %% of --hot-share; use another recipe, "
                   "or say --hot-columns",
                   hot, held, all, (long long)shape->settings[HOT_SHARE]);
  return cb_fail(diag, CB_ERR_UNSUPPORTED,
                 "%lld hot columns, with %lld of %lld nonzeros, would save %.2f us of reading x, less than %.2f; use another "
                 "recipe, or say --hot-columns",
                 hot, held, all, 1e-3 * (double)cb_larger(best->saved_ns, 0), 1e-3 * CB_COST_HOT_WORTH_NS);
}

static enum cb_status choose_hot(struct cb_hot_columns *columns, const struct cb_column_counts *counts,
                                 const struct cb_hot_shape *shape, struct cb_diag *diag) {
  const int64_t *settings = shape->settings, asked = settings[HOT_COLUMNS];
  const int64_t room = (shape->target->shared_per_block - shape->met_bytes) / shape->hot_bytes;
  const int64_t half = (shape->target->shared_per_sm + L1_EXTRA) / 2 / shape->hot_bytes;
  if (asked > room)
    return cb_fail(diag, CB_ERR_LIMIT,
                   "%lld hot columns do not fit into shared memory; '%s' has room for %lld",
                   (long long)asked, shape->target->model, (long long)room);
  struct choice best = weigh(counts, shape, cb_smaller(half, room), 0);
  const struct choice gathered = weigh(counts, shape, cb_smaller(half, room), 1);
  const int gather =
      shape->gather == CB_AUTO ? gathered.saved_ns > best.saved_ns : shape->gather == CB_ON;
  if (gather) best = gathered;
  columns->gather = gather;
  columns->hot = cb_smaller(asked ? asked : best.columns, counts->occupied);
  const int64_t cols = shape->csr->cols;
  const struct choice whole = all_of(counts, shape);
  const int fits = cols <= room && counts->occupied == cols && shape->gather != CB_ON && !settings[HOT_PACKED];
  columns->whole = fits && (asked ? asked >= cols : whole.saved_ns > best.saved_ns);
  if (columns->whole) {
    if (!asked) best = whole;
    columns->gather = 0;
    columns->hot = cols;
  }
  if (!asked &&
      (best.nonzeros * 100 < shape->csr->nnz * settings[HOT_SHARE] || best.saved_ns < CB_COST_HOT_WORTH_NS))
    return refuse(&best, shape, diag);
  return CB_OK;
}

/* ---- packed columns: need hot */

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

struct packing {
  int64_t columns;
  double prepare_ns, miss_ns;
};

static double cost_of(const struct packing *packing) {
  return packing->prepare_ns + packing->miss_ns;
}

/* `columns` packed ones of whose requests `packed_missed` miss, and `requests` of x's entries. */
static struct packing packing_of(const struct cb_hot_shape *shape, int64_t columns, double packed_missed,
                               double requests) {
  const struct cb_target *target = shape->target;
  const double read = (double)target->read_gb_per_s, in_sector = SECTOR_BYTES / (double)shape->vector_bytes;
  const double x_missed =
      requests * missing(requests * in_sector / (double)shape->csr->cols, residence_of(shape));
  return (struct packing){columns, (double)columns * (COPY_BYTES / read + 1 / (double)target->sectors_g_per_s),
                         (packed_missed + x_missed) * MISS_BYTES / read};
}

/* How many columns of so many nonzeros are behind the hot ones, of which *hot are still to come. */
static int64_t behind_hot(const struct cb_column_counts *counts, int64_t nonzeros, int64_t *hot) {
  const int64_t skipped = cb_smaller(counts->with[nonzeros], *hot);
  *hot -= skipped;
  return counts->with[nonzeros] - skipped;
}

/* Of the columns behind the hot ones, as many as cost least; between `least` and `most`. */
static struct packing weigh_packed(const struct cb_column_counts *counts, const struct cb_hot_shape *shape, int64_t hot,
                                  int64_t least, int64_t most) {
  const double in_sector = SECTOR_BYTES / (double)shape->vector_bytes, residence = residence_of(shape);
  double requests = 0, missed = 0;
  int64_t columns = 0, ahead = hot;
  for (int64_t count = CB_COUNT_KEYS - 1; count > 0; count--)
    requests += (double)(behind_hot(counts, count, &ahead) * count);
  struct packing best = packing_of(shape, 0, 0, requests);
  ahead = hot;
  for (int64_t count = CB_COUNT_KEYS - 1; count > 0 && columns < most; count--) {
    const int64_t taken = cb_smaller(behind_hot(counts, count, &ahead), most - columns);
    if (!taken) continue;
    columns += taken;
    requests -= (double)(taken * count);
    missed += (double)(taken * count) * missing((double)count * in_sector, residence);
    const struct packing packing = packing_of(shape, columns, missed, requests);
    if (columns <= least || cost_of(&packing) < cost_of(&best)) best = packing;
  }
  return best;
}

static void choose_packed(struct cb_hot_columns *columns, const struct cb_column_counts *counts,
                          const struct cb_hot_shape *shape) {
  const int64_t asked = shape->settings[HOT_PACKED], wide = INT32_MAX - shape->csr->cols; /* indices are int */
  const int64_t most = cb_smaller(counts->occupied - columns->hot, wide);
  const struct packing none = weigh_packed(counts, shape, columns->hot, 0, 0);
  struct packing packed = none;
  if (asked)
    packed = weigh_packed(counts, shape, columns->hot, cb_smaller(asked, most), cb_smaller(asked, most));
  else if (shape->gather != CB_OFF)
    packed = weigh_packed(counts, shape, columns->hot, 0, most);
  const double launch = columns->gather ? 0 : CB_COST_HOT_PREPARE_NS;
  if (!asked && cost_of(&none) - cost_of(&packed) < CB_COST_HOT_WORTH_NS + launch) packed = none;
  columns->packed = packed.columns;
  columns->gather |= packed.columns > 0;
  columns->rest = counts->occupied - columns->hot - columns->packed;
  columns->prepare_ns = (int64_t)packed.prepare_ns;
  columns->miss_ns = (int64_t)packed.miss_ns;
}

/* ---- numbers: need hot and packed */

static int class_of(int64_t key) {
  int log2 = 0;
  while (key >> (log2 + 1)) log2++;
  return CLASSES - 1 - log2;
}

/* Hot ones in the order of columns; then packed ones by class, those of a class in the order of columns. */
static int number_columns(struct cb_hot_columns *columns, struct cb_arena *arena, struct cb_arena *scratch,
                          const struct cb_column_counts *counts) {
  const int64_t cols = counts->cols;
  const struct cb_column_cut hot = cb_cut_columns(counts, columns->hot, scratch);
  const struct cb_column_cut both = cb_cut_columns(counts, columns->hot + columns->packed, scratch);
  uint32_t *key = cb_arena_alloc(scratch, (size_t)cols, sizeof *key);
  int32_t *sorted = cb_arena_alloc(scratch, (size_t)cols, sizeof *sorted);
  if (!key || !sorted) return 0;
#pragma omp parallel for schedule(static)
  for (int64_t column = 0; column < cols; column++) {
    key[column] = cb_is_in_cut(hot, counts, column) ? 0 : 1 + CLASSES;
    if (key[column] && cb_is_in_cut(both, counts, column))
      key[column] = 1 + (uint32_t)class_of(cb_column_key(counts, column));
    columns->place_of[column] = CB_COLD;
  }
  const int64_t numbered = cb_sort_by_key(sorted, key, cols, 1 + CLASSES);
  for (int64_t i = 0; i < numbered; i++) columns->place_of[sorted[i]] = (int32_t)i;
  columns->column = numbered < 0 ? NULL : cb_arena_copy(arena, sorted, (size_t)numbered, sizeof *sorted);
  return columns->column != NULL;
}

/* ---- indices of the others: need the numbers */

static void measure_indices(struct cb_hot_columns *columns, const struct cb_column_counts *counts) {
  int64_t least = INT64_MAX, most = -1, least_low = INT64_MAX, most_low = -1;
#pragma omp parallel for schedule(static) reduction(min : least, least_low) reduction(max : most, most_low)
  for (int64_t column = 0; column < counts->cols; column++) {
    const int32_t place = columns->place_of[column];
    if (!counts->of[column] || (uint32_t)place < (uint32_t)columns->hot) continue;
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

static enum cb_status choose(struct cb_hot_columns *columns, struct cb_arena *arena, struct cb_arena *scratch,
                             const struct cb_hot_shape *shape, struct cb_diag *diag) {
  const int64_t cols = shape->csr->cols;
  struct cb_column_counts counts = {0};
  columns->place_of = cb_arena_alloc(arena, (size_t)cols, sizeof *columns->place_of);
  if (!columns->place_of || !cb_count_columns(&counts, scratch, shape->csr))
    return cb_fail_memory(diag, "hot columns", (uint64_t)cols * 8);
  const enum cb_status s = choose_hot(columns, &counts, shape, diag);
  if (s) return s;
  choose_packed(columns, &counts, shape);
  if (!number_columns(columns, arena, scratch, &counts))
    return cb_fail_memory(diag, "hot columns", (uint64_t)cols * 8);
  measure_indices(columns, &counts);
  return CB_OK;
}

enum cb_status cb_hot_columns_choose(struct cb_hot_columns *columns, struct cb_arena *arena,
                                     const struct cb_hot_shape *shape, struct cb_diag *diag) {
  struct cb_arena scratch = {0};
  *columns = (struct cb_hot_columns){0};
  enum cb_status s = cb_check_column_tables(shape->csr, diag);
  if (!s) s = choose(columns, arena, &scratch, shape, diag);
  cb_arena_release(&scratch);
  return s;
}
