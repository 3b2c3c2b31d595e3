// SPDX-License-Identifier: Apache-2.0
/* The profile as JSON. Objects keep the order in which keys are set here. */
#include "analysis/profile.h"

#include <stdio.h>

/* jansson's setters fail on a NULL value, so one flag collects every shortage of memory. */
struct object {
  json_t *json;
  int *failed;
};

static void set(struct object object, const char *key, json_t *value) {
  if (json_object_set_new(object.json, key, value)) *object.failed = 1;
}
static void set_integer(struct object object, const char *key, int64_t value) {
  set(object, key, json_integer(value));
}
static void set_real(struct object object, const char *key, double value) {
  set(object, key, json_real(value));
}
static void set_flag(struct object object, const char *key, int value) {
  set(object, key, json_boolean(value));
}
static void set_share(struct object object, const char *key, int64_t part, int64_t whole) {
  set_real(object, key, cb_profile_share(part, whole));
}
static struct object new_object(struct object parent) {
  return (struct object){json_object(), parent.failed};
}
static void append(json_t *list, struct object item) {
  if (json_array_append_new(list, item.json)) *item.failed = 1;
}

static void set_rows(struct object parent, const struct cb_profile *profile) {
  const struct cb_profile_rows *row = &profile->row;
  const struct object object = new_object(parent);
  set_integer(object, "empty", row->empty);
  set_integer(object, "shortest", row->shortest);
  set_integer(object, "longest", row->longest);
  set_integer(object, "longest_row", row->longest_row);
  set_integer(object, "median", row->median);
  set_integer(object, "p90", row->p90);
  set_integer(object, "p99", row->p99);
  set_real(object, "mean", row->mean);
  set_real(object, "deviation", row->deviation);
  json_t *list = json_array();
  for (int i = 0; i < CB_PROFILE_LENGTH_BINS; i++) {
    const struct object item = new_object(parent);
    set_integer(item, "least", i ? INT64_C(1) << (i - 1) : 0);
    set_integer(item, "most", i ? (INT64_C(1) << i) - 1 : 0);
    set_integer(item, "rows", row->bins[i]);
    append(list, item);
  }
  set(object, "histogram", list);
  set(parent, "row_lengths", object.json);
}

static void set_columns(struct object parent, const struct cb_profile *profile) {
  const struct object object = new_object(parent);
  set_integer(object, "empty", profile->column.empty);
  set_integer(object, "longest", profile->column.longest);
  set_integer(object, "longest_column", profile->column.longest_column);
  set(parent, "columns", object.json);
}

static void set_diagonals(struct object parent, const struct cb_profile *profile) {
  const struct cb_profile_diagonals *diagonal = &profile->diagonal;
  const struct object bandwidth = new_object(parent), object = new_object(parent);
  set_integer(bandwidth, "lower", diagonal->lower);
  set_integer(bandwidth, "upper", diagonal->upper);
  set_real(bandwidth, "mean_distance", diagonal->mean_distance);
  set(parent, "bandwidth", bandwidth.json);
  set_integer(object, "main_nonzeros", diagonal->main_nonzeros);
  set_flag(object, "main_full", diagonal->main_full);
  set_integer(object, "populated", diagonal->populated);
  set_integer(object, "filled_from_percent", CB_PROFILE_DIAGONAL_FILL);
  set_integer(object, "filled", diagonal->filled);
  set_integer(object, "filled_nonzeros", diagonal->filled_nonzeros);
  set_share(object, "filled_share", diagonal->filled_nonzeros, profile->nnz);
  json_t *list = json_array();
  for (int i = 0; i < diagonal->fullest_count; i++) {
    const struct cb_profile_diagonal *one = &diagonal->fullest[i];
    const struct object item = new_object(parent);
    set_integer(item, "offset", one->offset);
    set_integer(item, "nonzeros", one->nonzeros);
    set_integer(item, "length", one->length);
    set_share(item, "fill", one->nonzeros, one->length);
    append(list, item);
  }
  set(object, "fullest", list);
  set(parent, "diagonals", object.json);
}

static void set_symmetry(struct object parent, const struct cb_profile *profile) {
  const struct cb_profile_symmetry *symmetry = &profile->symmetry;
  const struct object object = new_object(parent);
  set_flag(object, "square", symmetry->square);
  set_integer(object, "mirrored", symmetry->mirrored);
  set_share(object, "mirrored_share", symmetry->mirrored, profile->nnz);
  set_integer(object, "equal", symmetry->mirrored_equal);
  set_share(object, "equal_share", symmetry->mirrored_equal, profile->nnz);
  set(parent, "symmetry", object.json);
}

static void set_shapes(struct object parent, const struct cb_profile *profile) {
  const struct object object = new_object(parent);
  json_t *list = json_array(), *best = json_null();
  for (int i = 0; i < CB_PROFILE_SHAPES; i++) {
    const struct cb_profile_shape *shape = &profile->shapes[i];
    const struct object item = new_object(parent);
    char name[32];
    snprintf(name, sizeof name, "%dx%d", shape->rows, shape->cols);
    set(item, "shape", json_string(name));
    set_integer(item, "touched", shape->touched);
    set_real(item, "fill", cb_profile_fill(profile, shape));
    set_integer(item, "bytes", shape->bytes);
    append(list, item);
    if (i == profile->best_shape) best = json_string(name);
  }
  set(object, "shapes", list);
  set(object, "best", best);
  set(parent, "dense_blocks", object.json);
}

static void set_subblocks(struct object parent, const char *key, const struct cb_profile_subblocks *blocks) {
  const struct object object = new_object(parent);
  set_integer(object, "total", blocks->total);
  set_share(object, "below_8_share", cb_profile_between(blocks, 1, 7), blocks->total);
  set_share(object, "below_32_share", cb_profile_between(blocks, 1, 31), blocks->total);
  json_t *bins = json_array(), *counts = json_array();
  for (int i = 0; i < CB_PROFILE_SUBBLOCK_BINS; i++) {
    const struct object item = new_object(parent);
    const int least = cb_profile_subblock_bins[i].least, most = cb_profile_subblock_bins[i].most;
    set_integer(item, "least", least);
    set_integer(item, "most", most);
    set_integer(item, "sub_blocks", cb_profile_between(blocks, least, most));
    append(bins, item);
  }
  for (int k = 0; k <= CB_BLOCK_SIZE; k++)
    if (json_array_append_new(counts, json_integer(blocks->with[k]))) *parent.failed = 1;
  set(object, "bins", bins);
  set(object, "by_nonzeros", counts);
  set(parent, key, object.json);
}

static void set_values(struct object parent, const struct cb_profile *profile) {
  const struct cb_profile_values *values = &profile->values;
  const struct object object = new_object(parent);
  set(object, "distinct",
      values->distinct > CB_PROFILE_DISTINCT ? json_null() : json_integer(values->distinct));
  set_integer(object, "distinct_limit", CB_PROFILE_DISTINCT);
  set_flag(object, "all_equal", values->distinct == 1);
  set_flag(object, "integers", values->integers);
  set_flag(object, "fits_f32", values->fits_f32);
  set_flag(object, "fits_f16", values->fits_f16);
  set_flag(object, "fits_bf16", values->fits_bf16);
  set_integer(object, "nonfinite", values->nonfinite);
  set_integer(object, "zeros", values->zeros);
  set(parent, "values", object.json);
}

json_t *cb_profile_json(const struct cb_profile *profile) {
  int failed = 0;
  const struct object object = {json_object(), &failed};
  set(object, "name", json_string(profile->name));
  set_integer(object, "rows", profile->rows);
  set_integer(object, "cols", profile->cols);
  set_integer(object, "nonzeros", profile->nnz);
  set_real(object, "density", cb_profile_density(profile));
  set_integer(object, "csr_bytes", profile->csr_bytes);
  set_flag(object, "pattern", profile->pattern);
  set_flag(object, "symmetric_file", profile->symmetric_file);
  set_rows(object, profile);
  set_columns(object, profile);
  set_diagonals(object, profile);
  set_symmetry(object, profile);
  set_shapes(object, profile);
  const struct object subblocks = new_object(object);
  set_integer(subblocks, "panel_columns", profile->plain.columns);
  set_subblocks(subblocks, "plain", &profile->plain);
  set_subblocks(subblocks, "aggregated", &profile->aggregated);
  set(object, "sub_blocks", subblocks.json);
  set_values(object, profile);
  if (!failed) return object.json;
  json_decref(object.json);
  return NULL;
}
