// SPDX-License-Identifier: Apache-2.0
/* From the spread of nonzeros to the part that is worth an extraction: see shares.h. */
#include "analysis/choose/shares.h"

#include "analysis/choose/predictor.h"
#include "analysis/columns.h"
#include "analysis/histogram.h"
#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

const int cb_shares_tops[CB_SHARES_TOPS] = {1, 2, 3, 4, 5, 10, 50, 100, 200, 300};

/* ---- one spread */

__extension__ typedef unsigned __int128 wide;

static int64_t variance_of(const struct cb_histogram *histogram, int64_t count, int64_t nnz) {
  enum { PARTS = 4096 };
  wide squares = 0;
  for (int64_t size = 1; size <= histogram->largest; size++)
    squares += (wide)size * (wide)size * (wide)histogram->of_size[size];
  const wide variance = (squares * (wide)count - (wide)nnz * (wide)nnz) * PARTS / (wide)count / (wide)count;
  return variance > INT64_MAX ? INT64_MAX : (int64_t)variance;
}

static int64_t least_of(const struct cb_histogram *histogram) {
  int64_t size = 0;
  while (size < histogram->largest && !histogram->of_size[size]) size++;
  return size;
}

/* Nonzeros of the k fullest. */
static int64_t in_fullest(const struct cb_histogram *histogram, int64_t k) {
  int64_t sum = 0;
  for (int64_t size = histogram->largest; size > 0 && k > 0; size--) {
    const int64_t taken = cb_smaller(k, histogram->of_size[size]);
    sum += taken * size;
    k -= taken;
  }
  return sum;
}

/* The least k whose fullest have count - k of `count` parts of the nonzeros: of one size, both are straight lines in
 * k. */
static int64_t even_of(const struct cb_histogram *histogram, int64_t count, int64_t nnz) {
  int64_t before = 0, sum = 0;
  for (int64_t size = histogram->largest; size > 0; size--) {
    const int64_t of_size = histogram->of_size[size];
    const wide has = (wide)sum * (wide)count + (wide)nnz * (wide)before, wanted = (wide)nnz * (wide)count;
    const wide each = (wide)size * (wide)count + (wide)nnz;
    const wide more = has >= wanted ? 0 : (wanted - has + each - 1) / each;
    if (more <= (wide)of_size) return before + (int64_t)more;
    before += of_size;
    sum += of_size * size;
  }
  return before;
}

static int spread(struct cb_spread *found, const uint32_t *counts, int64_t count, int64_t nnz) {
  struct cb_histogram histogram;
  *found = (struct cb_spread){.count = count};
  if (!nnz) return 1;
  const int done = cb_histogram_open(&histogram, counts, count);
  if (done) {
    found->least = least_of(&histogram);
    found->most = histogram.largest;
    found->variance = variance_of(&histogram, count, nnz);
    found->even = even_of(&histogram, count, nnz);
    for (int i = 0; i < CB_SHARES_TOPS; i++) found->top[i] = in_fullest(&histogram, cb_shares_tops[i]);
    for (int i = 0; i < CB_SHARES_PARTS; i++)
      found->within[i] = cb_histogram_fewest(&histogram, cb_percent_of(nnz, 10 * (i + 1))).all;
  }
  cb_histogram_close(&histogram);
  return done;
}

/* ---- the profile */

static int spread_rows(struct cb_spread *found, const struct cb_csr *csr) {
  uint32_t *counts = cb_alloc((size_t)csr->rows, sizeof *counts);
  for (int64_t row = 0; counts && row < csr->rows; row++) counts[row] = (uint32_t)cb_csr_row_length(csr, row);
  const int done = counts && spread(found, counts, csr->rows, csr->nnz);
  cb_free(counts);
  return done;
}

enum cb_status cb_shares_profile(struct cb_shares_profile *profile, const struct cb_csr *csr, struct cb_diag *diag) {
  uint32_t *counts;
  const enum cb_status s = cb_columns_counted(&counts, csr, diag);
  if (s) return s;
  profile->nnz = csr->nnz;
  const int done = spread(&profile->cols, counts, csr->cols, csr->nnz) && spread_rows(&profile->rows, csr);
  cb_free(counts);
  return done ? CB_OK : cb_fail_memory(diag, "counts of rows", (uint64_t)csr->rows * sizeof *counts);
}

/* ---- features */

/* A list that is filled in order. */
struct list {
  int32_t *of;
  int count;
};

static void add(struct list *list, int64_t value) {
  list->of[list->count++] = (int32_t)cb_smaller(value, INT16_MAX); /* what thresholds compare with */
}

static void add_share(struct list *list, int64_t part, int64_t whole) {
  add(list, cb_proportion(part, CB_SHARES_WHOLE, whole));
}

static void add_spread(struct list *list, const struct cb_spread *spread, int64_t nnz) {
  enum { PARTS = 64 };
  add(list, cb_choice_log2(cb_proportion(nnz, PARTS, spread->count)));
  add(list, cb_choice_log2(spread->variance) / 2); /* the root of 1/4096 is 1/64 */
  add(list, cb_choice_log2(spread->least));
  add(list, cb_choice_log2(spread->most));
  add_share(list, spread->even, spread->count);
  for (int i = 0; i < CB_SHARES_TOPS; i++) add_share(list, spread->top[i], nnz);
  for (int i = 0; i < CB_SHARES_PARTS; i++) add_share(list, spread->within[i], spread->count);
}

void cb_shares_describe(struct cb_shares_features *features, const struct cb_shares_profile *profile) {
  struct list list = {.of = features->of};
  add(&list, cb_choice_log2(profile->rows.count));
  add(&list, cb_choice_log2(profile->cols.count));
  add(&list, cb_choice_log2(profile->nnz));
  add_spread(&list, &profile->rows, profile->nnz);
  add_spread(&list, &profile->cols, profile->nnz);
}

/* ---- tables */

int cb_shares_table_check(const struct cb_shares_table *table) {
  return cb_forest_check(&table->forest, CB_SHARES_FEATURES, SHARES_OUTPUTS);
}

const struct cb_shares_table *cb_shares_table_find(const char *model, int64_t value_bytes) {
  for (const struct cb_shares_table *table = cb_shares_tables; table->model; table++)
    if (!strcmp(table->model, model) && table->value_bytes == value_bytes)
      return cb_shares_table_check(table) ? table : NULL;
  return NULL;
}

struct cb_shares_sums cb_shares_sum(const struct cb_shares_table *table, const struct cb_shares_features *features) {
  const struct cb_forest *forest = &table->forest;
  struct cb_shares_sums sums = {{0}};
  for (int i = 0; i < forest->trees_count; i++)
    if (forest->trees[i].output >= 0)
      sums.of[forest->trees[i].output] += cb_forest_leaf(forest, &forest->trees[i], features->of);
  return sums;
}

static int percent(int64_t sum) {
  return (int)((cb_larger(0, cb_smaller(sum, 100 * CB_SHARES_ONE)) + CB_SHARES_ONE / 2) / CB_SHARES_ONE);
}

struct cb_shares cb_shares_predict(const struct cb_shares_table *table, const struct cb_shares_features *features) {
  const struct cb_shares_sums sums = cb_shares_sum(table, features);
  const int cols = percent(sums.of[SHARES_COLS]), rows = (int)cb_smaller(percent(sums.of[SHARES_ROWS]), cols);
  return rows && sums.of[SHARES_GAIN] >= table->least_gain ? (struct cb_shares){cols, rows} : (struct cb_shares){0, 0};
}
