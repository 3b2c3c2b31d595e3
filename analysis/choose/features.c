// SPDX-License-Identifier: Apache-2.0
/* What trees ask about: a profile's counts as shares and logarithms. See predictor.h. */
#include "analysis/choose/predictor.h"

#include "base/integers.h"

enum { MOST = 30000 /* that thresholds compare with */ };

int64_t cb_choice_log2(int64_t number) {
  int power = 0;
  if (number < 2) return 0;
  while (number >> power > 1) power++;
  const int64_t rest = number - (INT64_C(1) << power);
  return power * CB_CHOICE_ONE + (power >= 10 ? rest >> (power - 10) : rest << (10 - power));
}

int64_t cb_choice_exp2(int64_t logarithm) {
  if (logarithm < 0) return 1;
  const int64_t power = logarithm / CB_CHOICE_ONE, rest = logarithm % CB_CHOICE_ONE;
  if (power > 61) return INT64_MAX;
  return (INT64_C(1) << power) + (power >= 10 ? rest << (power - 10) : rest >> (10 - power));
}

/* A list that is filled in order: that of the names below. */
struct list {
  int32_t *of;
  int count;
};

static void add(struct list *list, int64_t value) {
  list->of[list->count++] = (int32_t)cb_larger(-MOST, cb_smaller(value, MOST));
}

static int64_t share(int64_t part, int64_t whole) {
  return cb_proportion(part, CB_CHOICE_ONE, whole);
}

static int64_t ratio(int64_t part, int64_t whole) {
  enum { PARTS = 64 };
  return cb_choice_log2(cb_proportion(part, PARTS, whole));
}

static int64_t sum_of(const int64_t *bins, int first, int end) {
  int64_t sum = 0;
  for (int i = first; i < end; i++) sum += bins[i];
  return sum;
}

/* The bin below which fifteen sixteenths of all lie. */
static int64_t most_bin(const int64_t *bins, int64_t all) {
  int64_t met = 0;
  for (int bin = 0; bin < CB_CHOICE_BINS; bin++) {
    met += bins[bin];
    if (met * 16 >= all * 15) return bin;
  }
  return CB_CHOICE_BINS;
}

static void add_sizes(struct list *list, const struct cb_choice_profile *profile, struct cb_types types) {
  add(list, (int64_t)cb_type_size(types.matrix));
  add(list, (int64_t)cb_type_size(types.vector));
  add(list, cb_choice_log2(profile->nnz));
  add(list, cb_choice_log2(profile->rows));
  add(list, cb_choice_log2(profile->cols));
  add(list, cb_choice_log2(profile->nnz * (int64_t)cb_type_size(types.matrix) +
                           (profile->rows + profile->cols) * (int64_t)cb_type_size(types.vector)));
}

static void add_rows(struct list *list, const struct cb_choice_profile *profile) {
  enum { LONG_BIN = 10, SHORT_BIN = 3 };
  add(list, ratio(profile->nnz, profile->rows));
  add(list, cb_choice_log2(profile->lengths.longest));
  add(list, ratio(profile->lengths.longest, cb_larger(1, profile->nnz / cb_larger(1, profile->rows))));
  add(list, share(profile->lengths.with_length[0], profile->rows));
  add(list, share(sum_of(profile->lengths.with_length, 1, SHORT_BIN), profile->rows));
  add(list, share(sum_of(profile->lengths.in_length, LONG_BIN, CB_CHOICE_BINS), profile->nnz));
  add(list, most_bin(profile->lengths.with_length, profile->rows));
  for (int step = 0; step < CB_CHOICE_STEPS; step++)
    add(list, ratio(profile->lengths.in_step[step] << (CB_CHOICE_STEPS - 1 - step), profile->nnz));
}

static void add_neighbours(struct list *list, const struct cb_choice_profile *profile, int narrow) {
  const int64_t all = profile->sampled;
  add(list, share(profile->left_out, profile->left_out + all));
  add(list, share(profile->across, all));
  add(list, share(profile->down, all));
  add(list, share(profile->diagonal, all));
  add(list, share(profile->row_sectors[narrow], all));
  add(list, share(profile->step_sectors[narrow], all));
  add(list, share(profile->slice_sectors[narrow], all));
  add(list, share(profile->row_lines[narrow], all));
  add(list, share(profile->step_lines[narrow], all));
  add(list, share(profile->wide_sectors[narrow], profile->in_wide));
  add(list, share(profile->panel_columns, all));
  add(list, share(profile->panel_blocks, all));
  add(list, most_bin(profile->spans, profile->groups));
  add(list, share(profile->in_runs, all));
  add(list, share(profile->in_runs, profile->runs * CB_CHOICE_GROUP));
}

static void add_repeats(struct list *list, const struct cb_choice_profile *profile) {
  const int64_t all = profile->sampled;
  for (int i = 0; i < CB_TILE_SIZES; i++)
    add(list, share(profile->in_tiles[i], profile->tiles[i] * cb_tile_area(cb_tile_sizes[i])));
  add(list, profile->diagonals);
  add(list, share(profile->in_diagonals, all));
  add(list, share(profile->in_diagonals, profile->diagonal_places));
  add(list, profile->unknowns);
  add(list, cb_choice_log2(profile->patterns));
  add(list, share(profile->pattern_few, all));
  add(list, share(profile->pattern_many, all));
  add(list, cb_choice_log2(profile->pattern_offsets));
}

static void add_columns(struct list *list, const struct cb_choice_profile *profile) {
  static const int least[] = {6, 8, 10};
  add(list, cb_choice_log2(profile->columns << profile->column_share));
  for (int i = 0; i < 3; i++) {
    add(list, share(sum_of(profile->in_count, least[i], CB_CHOICE_BINS), profile->in_columns));
    add(list, cb_choice_log2(sum_of(profile->with_count, least[i], CB_CHOICE_BINS) << profile->column_share));
  }
}

/* The least time of all recipes, and each against it. */
static void add_times(struct list *list, const int64_t *ns) {
  int64_t best = INT64_MAX;
  for (int i = 0; i < CB_CHOICE_RECIPES; i++)
    if (ns[i]) best = cb_smaller(best, ns[i]);
  add(list, cb_choice_log2(best));
  for (int i = 0; i < CB_CHOICE_RECIPES; i++)
    add(list, ns[i] ? cb_choice_log2(ns[i]) - cb_choice_log2(best) : CB_CHOICE_REFUSED);
}

static void add_model(struct list *list, const struct cb_choice_times *model) {
  add_times(list, model->ns);
  add_times(list, model->gpu_ns);
}

const char *const cb_choice_feature_names[CB_CHOICE_FEATURES] = {
    "value bytes",    "vector bytes",    "nonzeros",         "rows",
    "columns",        "bytes",           "mean",             "longest",
    "longest / mean", "empty rows",      "short rows",       "in long rows",
    "length of most", "padding 1",       "padding 2",        "padding 4",
    "padding 8",      "padding 16",      "padding 32",       "left out",
    "across",         "down",            "diagonal",         "row sectors",
    "step sectors",   "slice sectors",   "row lines",        "step lines",
    "wide sectors",   "panel columns",   "panel blocks",     "span",
    "in runs",        "run fill",        "tiles 1x2",        "tiles 2x1",
    "tiles 2x2",      "tiles 3x3",       "tiles 4x4",        "tiles 5x5",
    "tiles 6x6",      "tiles 8x8",       "diagonals",        "in diagonals",
    "diagonal fill",  "unknowns",        "patterns",         "pattern few",
    "pattern many",   "pattern offsets", "occupied columns", "in 32",
    "with 32",        "in 128",          "with 128",         "in 512",
    "with 512",       "model",           "model dia",        "model blocks",
    "model patterns", "model sell",      "model merge",      "model hot",
    "model phases",   "model cb",        "model slices",     "kernel",
    "kernel dia",     "kernel blocks",   "kernel patterns",  "kernel sell",
    "kernel merge",   "kernel hot",      "kernel phases",    "kernel cb",
    "kernel slices"};

void cb_choice_describe(struct cb_choice_features *features, const struct cb_choice_profile *profile,
                        const struct cb_choice_times *model, struct cb_types types) {
  struct list list = {.of = features->of};
  add_sizes(&list, profile, types);
  add_rows(&list, profile);
  add_neighbours(&list, profile, cb_type_size(types.vector) < 8);
  add_repeats(&list, profile);
  add_columns(&list, profile);
  add_model(&list, model);
}
