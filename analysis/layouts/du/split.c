// SPDX-License-Identifier: Apache-2.0
/* The split `crux`: part 0 or 1 is the hot part (analysis/chunks.h), as dense unfolding or sparse encoding, and part 2
 * the rest. Which encoding is MatXtract's formula, with what this project stores: columns as offsets, and no place of
 * values for each block. Which shares are hot the caller says; or what was trained for the GPU
 * (analysis/choose/shares.h); or it is what takes the fewest bytes of nine points. */
#include "analysis/layouts/du/options.h"

#include "analysis/choose/shares.h"
#include "base/integers.h"

enum { DU_PART, SE_PART, COLD_PART, PARTS };
enum { NUMBER = 4 /* bytes of an index of a chunk or a row */, OFFSET = 2 /* of a column, as a rule */ };

struct point {
  int cols, rows; /* percent */
};

/* ---- bytes */

/* What the hot part takes in both encodings. */
struct sizes {
  int64_t du, se;
};

static int64_t columns_of(const struct cb_csr *csr, const struct cb_crux *crux, const struct cb_row_order *order,
                          int64_t chunk) {
  struct cb_chunk_walk walk;
  struct cb_chunk_column column;
  int64_t columns = 0;
  cb_chunk_walk_open(&walk, csr, crux);
  for (int64_t i = chunk * CB_CHUNK_ROWS; i < cb_smaller((chunk + 1) * CB_CHUNK_ROWS, order->count); i++)
    cb_chunk_walk_add(&walk, (int)(i % CB_CHUNK_ROWS), order->row[i]);
  while (cb_chunk_walk_next(&walk, &column)) columns++;
  return columns;
}

static struct sizes measure(const struct cb_csr *csr, const struct cb_crux *crux, const struct cb_row_order *order,
                            struct cb_types types) {
  const int64_t chunks = cb_divide_up(order->count, CB_CHUNK_ROWS), width = cb_chunk_width(types);
  const int64_t value = (int64_t)cb_type_size(types.matrix);
  int64_t blocks = 0;
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : blocks)
  for (int64_t chunk = 0; chunk < chunks; chunk++) blocks += cb_divide_up(columns_of(csr, crux, order, chunk), width);
  return (struct sizes){.du = chunks * NUMBER + blocks * (width * CB_CHUNK_ROWS / 8 + width * OFFSET) +
                              crux->nonzeros * value,
                        .se = chunks * NUMBER + crux->nonzeros * (value + OFFSET)};
}

/* The bytes of a split: what is cold as a row-wise layout has it, and for each hot row its number and its y again. */
static int64_t bytes_of(const struct cb_csr *csr, const struct cb_crux *crux, struct sizes sizes,
                        struct cb_types types) {
  const int64_t value = (int64_t)cb_type_size(types.matrix), y = (int64_t)cb_type_size(types.vector);
  return cb_smaller(sizes.du, sizes.se) + (csr->nnz - crux->nonzeros) * (value + OFFSET) +
         crux->rows * (NUMBER + 2 * y);
}

/* ---- a point */

struct extraction {
  struct cb_crux crux;
  struct cb_row_order *order;
  struct sizes sizes;
};

static void release_extraction(struct extraction *extraction) {
  cb_crux_release(&extraction->crux);
  cb_row_order_release(extraction->order);
  *extraction = (struct extraction){0};
}

static enum cb_status extract(struct extraction *extraction, const struct cb_csr *csr, struct point point,
                              const struct cb_options *options, struct cb_diag *diag) {
  const int sorted = cb_settings(options, &cb_layout_du)[CRUX_SORT] == CB_ON;
  *extraction = (struct extraction){0};
  const enum cb_status s = cb_crux_find(&extraction->crux, csr, point.cols, point.rows, diag);
  if (s) return s;
  extraction->order = cb_crux_order(&extraction->crux, csr->rows, sorted);
  if (!extraction->order) {
    release_extraction(extraction);
    return cb_fail_memory(diag, "hot rows", (uint64_t)csr->rows * sizeof(int32_t));
  }
  extraction->sizes =
      measure(csr, &extraction->crux, extraction->order, cb_precision_types((enum cb_precision)options->type));
  return CB_OK;
}

/* Shares of columns, and of rows as shares of these; or what the caller says. Returns how many. */
static int list_points(struct point points[9], const int64_t *settings) {
  static const int cols[] = {25, 50, 75};
  int count = 0;
  for (int c = 0; c < 3; c++)
    for (int r = 1; r <= 3; r++) {
      struct point point = {.cols = settings[CRUX_COLS] ? (int)settings[CRUX_COLS] : cols[c]};
      if (settings[CRUX_ROWS] > point.cols) point.cols = (int)settings[CRUX_ROWS];
      point.rows = settings[CRUX_ROWS] ? (int)settings[CRUX_ROWS] : (int)cb_larger(point.cols * r / 3, 1);
      if ((settings[CRUX_COLS] && c) || (settings[CRUX_ROWS] && r > 1)) continue;
      points[count++] = point;
    }
  return count;
}

/* The point with the fewest bytes. `all`: what the matrix takes without a hot part; -1: the hot part is wanted in any
 * case. With no better point the extraction is empty. */
static enum cb_status choose_point(struct extraction *best, struct point *chosen, const struct point *points, int count,
                                   const struct cb_csr *csr, const struct cb_options *options, int64_t all,
                                   struct cb_diag *diag) {
  const struct cb_types types = cb_precision_types((enum cb_precision)options->type);
  int64_t least = all;
  *best = (struct extraction){0};
  for (int i = 0; i < count; i++) {
    struct extraction extraction;
    const enum cb_status s = extract(&extraction, csr, points[i], options, diag);
    if (s) {
      release_extraction(best);
      return s;
    }
    const int64_t bytes = bytes_of(csr, &extraction.crux, extraction.sizes, types);
    if (extraction.crux.nonzeros && (least < 0 || bytes < least)) {
      const struct extraction given_up = *best;
      least = bytes;
      *chosen = points[i];
      *best = extraction;
      extraction = given_up;
    }
    release_extraction(&extraction);
  }
  return CB_OK;
}

/* What the GPU's table says, where neither share is the caller's. */
static enum cb_status predict_point(struct point *point, const struct cb_csr *csr, const struct cb_shares_table *table,
                                    struct cb_diag *diag) {
  struct cb_shares_profile profile;
  struct cb_shares_features features;
  const enum cb_status s = cb_shares_profile(&profile, csr, diag);
  if (s) return s;
  cb_shares_describe(&features, &profile);
  const struct cb_shares shares = cb_shares_predict(table, &features);
  *point = (struct point){shares.cols, shares.rows};
  if (shares.rows) return CB_OK;
  return cb_fail(diag, CB_ERR_UNSUPPORTED,
                 "on %s nothing is predicted to be gained from frequent columns and their rows; use another recipe, or "
                 "set 'crux-cols' and 'crux-rows'",
                 table->model);
}

static enum cb_status find_extraction(struct extraction *best, struct point *chosen, const struct cb_csr *csr,
                                      const struct cb_options *options, const struct cb_target *target,
                                      struct cb_diag *diag) {
  const int64_t *settings = cb_settings(options, &cb_layout_du);
  const int64_t value = (int64_t)cb_type_size(cb_precision_types((enum cb_precision)options->type).matrix);
  const struct cb_shares_table *table =
      settings[CRUX_COLS] || settings[CRUX_ROWS] ? NULL : cb_shares_table_find(target->model, value);
  const int is_sure = table || (settings[CRUX_COLS] && settings[CRUX_ROWS]);
  struct point points[9];
  int count = 1;
  const enum cb_status s = table ? predict_point(points, csr, table, diag) : CB_OK;
  *best = (struct extraction){0};
  if (s) return s;
  if (!table) count = list_points(points, settings);
  return choose_point(best, chosen, points, count, csr, options, is_sure ? -1 : csr->nnz * (value + OFFSET), diag);
}

/* ---- the split */

static void divide_rows(const struct cb_csr *csr, const struct cb_crux *crux, unsigned char hot,
                        unsigned char *part_of) {
#pragma omp parallel for schedule(static, 1024)
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      part_of[k] = cb_crux_has(crux, row, csr->col_idx[k]) ? hot : COLD_PART;
}

static enum cb_status divide_crux(const struct cb_part *part, const struct cb_options *options,
                                  const struct cb_target *target, struct cb_division *division, struct cb_text *facts,
                                  struct cb_diag *diag) {
  const int64_t *settings = cb_settings(options, &cb_layout_du);
  struct extraction best;
  struct point chosen = {0};
  const enum cb_status s = find_extraction(&best, &chosen, part->csr, options, target, diag);
  if (s) return s;
  if (!best.order)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "no share of frequent columns and their rows is predicted to save bytes; "
                   "use another recipe, or set 'crux-cols' and 'crux-rows'");
  const int by_bytes = best.sizes.du < best.sizes.se ? CB_CRUX_DU : CB_CRUX_SE;
  const int encoding = settings[CRUX_ENCODING] == CB_CRUX_BY_BYTES ? by_bytes : (int)settings[CRUX_ENCODING];
  const int hot = encoding == CB_CRUX_DU ? DU_PART : SE_PART;
  divide_rows(part->csr, &best.crux, (unsigned char)hot, division->part_of);
  cb_text_add(facts, " (cols %d) (rows %d) (hot %lld %lld)", chosen.cols, chosen.rows, (long long)best.crux.rows,
              (long long)best.crux.cols);
  division->found[hot] = (struct cb_found){CB_FOUND_CRUX, best.order, cb_row_order_release};
  best.order = NULL;
  release_extraction(&best);
  return CB_OK;
}

const struct cb_split cb_split_crux = {"crux", PARTS, 0, divide_crux};
