// SPDX-License-Identifier: Apache-2.0
/* The profile as JSON. Objects keep the order in which keys are set here. */
#include "analysis/profile/profile.h"

#include "base/json.h"

#include <stdio.h>

static void set_share(struct cb_json object, const char *key, int64_t part, int64_t whole) {
  cb_json_set_real(object, key, cb_profile_share(part, whole));
}
static struct cb_json new_object(struct cb_json parent) {
  return cb_json_object(parent.failed);
}
static void append(struct cb_json list, struct cb_json item) {
  cb_json_append(list, item.json);
}

static void set_rows(struct cb_json parent, const struct cb_profile *profile) {
  const struct cb_profile_rows *row = &profile->row;
  const struct cb_json object = new_object(parent);
  cb_json_set_integer(object, "empty", row->empty);
  cb_json_set_integer(object, "shortest", row->shortest);
  cb_json_set_integer(object, "longest", row->longest);
  cb_json_set_integer(object, "longest_row", row->longest_row);
  cb_json_set_integer(object, "median", row->median);
  cb_json_set_integer(object, "p90", row->p90);
  cb_json_set_integer(object, "p99", row->p99);
  cb_json_set_real(object, "mean", row->mean);
  cb_json_set_real(object, "deviation", row->deviation);
  const struct cb_json list = cb_json_array(parent.failed);
  for (int i = 0; i < CB_PROFILE_LENGTH_BINS; i++) {
    const struct cb_json item = new_object(parent);
    cb_json_set_integer(item, "least", i ? INT64_C(1) << (i - 1) : 0);
    cb_json_set_integer(item, "most", i ? (INT64_C(1) << i) - 1 : 0);
    cb_json_set_integer(item, "rows", row->bins[i]);
    append(list, item);
  }
  cb_json_set(object, "histogram", list.json);
  cb_json_set(parent, "row_lengths", object.json);
}

static void set_columns(struct cb_json parent, const struct cb_profile *profile) {
  const struct cb_json object = new_object(parent);
  cb_json_set_integer(object, "empty", profile->column.empty);
  cb_json_set_integer(object, "longest", profile->column.longest);
  cb_json_set_integer(object, "longest_column", profile->column.longest_column);
  cb_json_set(parent, "columns", object.json);
}

static void set_diagonals(struct cb_json parent, const struct cb_profile *profile) {
  const struct cb_profile_diagonals *diagonal = &profile->diagonal;
  const struct cb_json bandwidth = new_object(parent), object = new_object(parent);
  cb_json_set_integer(bandwidth, "lower", diagonal->lower);
  cb_json_set_integer(bandwidth, "upper", diagonal->upper);
  cb_json_set_real(bandwidth, "mean_distance", diagonal->mean_distance);
  cb_json_set(parent, "bandwidth", bandwidth.json);
  cb_json_set_integer(object, "main_nonzeros", diagonal->main_nonzeros);
  cb_json_set_flag(object, "main_full", diagonal->main_full);
  cb_json_set_integer(object, "populated", diagonal->populated);
  cb_json_set_integer(object, "filled_from_percent", CB_PROFILE_DIAGONAL_FILL);
  cb_json_set_integer(object, "filled", diagonal->filled);
  cb_json_set_integer(object, "filled_nonzeros", diagonal->filled_nonzeros);
  set_share(object, "filled_share", diagonal->filled_nonzeros, profile->nnz);
  const struct cb_json list = cb_json_array(parent.failed);
  for (int i = 0; i < diagonal->fullest_count; i++) {
    const struct cb_profile_diagonal *one = &diagonal->fullest[i];
    const struct cb_json item = new_object(parent);
    cb_json_set_integer(item, "offset", one->offset);
    cb_json_set_integer(item, "nonzeros", one->nonzeros);
    cb_json_set_integer(item, "length", one->length);
    set_share(item, "fill", one->nonzeros, one->length);
    append(list, item);
  }
  cb_json_set(object, "fullest", list.json);
  cb_json_set(parent, "diagonals", object.json);
}

static void set_symmetry(struct cb_json parent, const struct cb_profile *profile) {
  const struct cb_profile_symmetry *symmetry = &profile->symmetry;
  const struct cb_json object = new_object(parent);
  cb_json_set_flag(object, "square", symmetry->square);
  cb_json_set_integer(object, "mirrored", symmetry->mirrored);
  set_share(object, "mirrored_share", symmetry->mirrored, profile->nnz);
  cb_json_set_integer(object, "equal", symmetry->mirrored_equal);
  set_share(object, "equal_share", symmetry->mirrored_equal, profile->nnz);
  cb_json_set(parent, "symmetry", object.json);
}

static void set_shapes(struct cb_json parent, const struct cb_profile *profile) {
  const struct cb_json object = new_object(parent);
  const struct cb_json list = cb_json_array(parent.failed);
  json_t *best = json_null();
  for (int i = 0; i < CB_PROFILE_SHAPES; i++) {
    const struct cb_profile_shape *shape = &profile->shapes[i];
    const struct cb_json item = new_object(parent);
    char name[32];
    snprintf(name, sizeof name, "%dx%d", shape->rows, shape->cols);
    cb_json_set(item, "shape", json_string(name));
    cb_json_set_integer(item, "touched", shape->touched);
    cb_json_set_real(item, "fill", cb_profile_fill(profile, shape));
    cb_json_set_integer(item, "bytes", shape->bytes);
    append(list, item);
    if (i == profile->best_shape) best = json_string(name);
  }
  cb_json_set(object, "shapes", list.json);
  cb_json_set(object, "best", best);
  cb_json_set(parent, "dense_blocks", object.json);
}

static void set_subblocks(struct cb_json parent, const char *key, const struct cb_profile_subblocks *blocks) {
  const struct cb_json object = new_object(parent);
  cb_json_set_integer(object, "total", blocks->total);
  set_share(object, "below_8_share", cb_profile_between(blocks, 1, 7), blocks->total);
  set_share(object, "below_32_share", cb_profile_between(blocks, 1, 31), blocks->total);
  const struct cb_json bins = cb_json_array(parent.failed), counts = cb_json_array(parent.failed);
  for (int i = 0; i < CB_PROFILE_SUBBLOCK_BINS; i++) {
    const struct cb_json item = new_object(parent);
    const int least = cb_profile_subblock_bins[i].least, most = cb_profile_subblock_bins[i].most;
    cb_json_set_integer(item, "least", least);
    cb_json_set_integer(item, "most", most);
    cb_json_set_integer(item, "sub_blocks", cb_profile_between(blocks, least, most));
    append(bins, item);
  }
  for (int k = 0; k <= CB_BLOCK_SIZE; k++)
    cb_json_append(counts, json_integer(blocks->with[k]));
  cb_json_set(object, "bins", bins.json);
  cb_json_set(object, "by_nonzeros", counts.json);
  cb_json_set(parent, key, object.json);
}

static void set_values(struct cb_json parent, const struct cb_profile *profile) {
  const struct cb_profile_values *values = &profile->values;
  const struct cb_json object = new_object(parent);
  cb_json_set(object, "distinct",
      values->distinct > CB_PROFILE_DISTINCT ? json_null() : json_integer(values->distinct));
  cb_json_set_integer(object, "distinct_limit", CB_PROFILE_DISTINCT);
  cb_json_set_flag(object, "all_equal", values->distinct == 1);
  cb_json_set_flag(object, "integers", values->integers);
  cb_json_set_flag(object, "fits_f32", values->fits_f32);
  cb_json_set_flag(object, "fits_f16", values->fits_f16);
  cb_json_set_flag(object, "fits_bf16", values->fits_bf16);
  cb_json_set_integer(object, "nonfinite", values->nonfinite);
  cb_json_set_integer(object, "zeros", values->zeros);
  cb_json_set(parent, "values", object.json);
}

json_t *cb_profile_json(const struct cb_profile *profile) {
  int failed = 0;
  const struct cb_json object = cb_json_object(&failed);
  cb_json_set_text(object, "name", profile->name);
  cb_json_set_integer(object, "rows", profile->rows);
  cb_json_set_integer(object, "cols", profile->cols);
  cb_json_set_integer(object, "nonzeros", profile->nnz);
  cb_json_set_real(object, "density", cb_profile_density(profile));
  cb_json_set_integer(object, "csr_bytes", profile->csr_bytes);
  cb_json_set_flag(object, "pattern", profile->pattern);
  cb_json_set_flag(object, "symmetric_file", profile->symmetric_file);
  set_rows(object, profile);
  set_columns(object, profile);
  set_diagonals(object, profile);
  set_symmetry(object, profile);
  set_shapes(object, profile);
  const struct cb_json subblocks = new_object(object);
  cb_json_set_integer(subblocks, "panel_columns", profile->plain.columns);
  set_subblocks(subblocks, "plain", &profile->plain);
  set_subblocks(subblocks, "aggregated", &profile->aggregated);
  cb_json_set(object, "sub_blocks", subblocks.json);
  const struct cb_json chunks = new_object(object);
  cb_json_set_integer(chunks, "rows", CB_PROFILE_CHUNK);
  cb_json_set_integer(chunks, "columns", profile->chunk_columns);
  cb_json_set_real(chunks, "empty_share", cb_profile_chunk_empty(profile));
  cb_json_set_real(chunks, "density", cb_profile_chunk_density(profile));
  cb_json_set(object, "row_chunks", chunks.json);
  set_values(object, profile);
  if (!failed) return object.json;
  json_decref(object.json);
  return NULL;
}
