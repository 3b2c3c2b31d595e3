// SPDX-License-Identifier: Apache-2.0
/* The split `fill`: part 0 are nonzeros in blocks of a shape, part 1 the others. */
#include "analysis/layouts/slices/options.h"

#include "base/integers.h"
#include "base/memory.h"

/* In tenths of a byte: what a block takes beside its values; a nonzero in sliced ELL, which has two bytes for a column
 * and pads a little; and a row, when a part of it is stored so. */
enum { BLOCK = 80, COLUMN = 22, ROW = 40 };

static int64_t value_tenths(const struct cb_options *options) {
  return 10 * (int64_t)cb_type_size(cb_precision_types((enum cb_precision)options->type).matrix);
}

/* Percentage of a block's places from where on it takes fewer bytes than sliced ELL, unless the settings say one. */
static int rate_of(const struct cb_options *options, const struct cb_fill_shape *shape) {
  const int64_t value = value_tenths(options), places = (int64_t)shape->height * shape->width;
  const int64_t rate = cb_settings(options, &cb_layout_slices)[FILL_RATE];
  if (rate) return (int)rate;
  return (int)cb_divide_up(100 * (places * value + BLOCK), places * (value + COLUMN));
}

static void release_fill(void *fill) {
  cb_fill_release(fill);
  cb_free(fill);
}

/* Tenths of bytes that a product reads: of blocks, and of what is left as sliced ELL, if anything is. A region of its
 * own for that takes a few bytes for each row, and time to wait for them. */
static int64_t stored_tenths(const struct cb_fill *fill, const struct cb_csr *csr, int64_t value) {
  const int64_t left = csr->nnz - fill->nonzeros;
  return cb_fill_count(fill) * value + fill->blocks * BLOCK + left * (value + COLUMN) + (left ? csr->rows * ROW : 0);
}

/* When little is left, blocks that are not full, or reach over edges, may hold that, too. */
static enum cb_status take_all(struct cb_fill *fill, const struct cb_csr *csr, const struct cb_options *options,
                               struct cb_diag *diag) {
  enum { LITTLE = 10 /* percent */ };
  const int64_t value = value_tenths(options), left = csr->nnz - fill->nonzeros;
  const int aligned = cb_settings(options, &cb_layout_slices)[FILL_ALIGN] == CB_ON;
  struct cb_fill all;
  if (!aligned || fill->shape->width > 1 || !left || 100 * left > LITTLE * csr->nnz) return CB_OK;
  const enum cb_status s = cb_fill_find(&all, csr, fill->shape, 1, CB_FILL_OVER_EDGES, diag);
  if (s) return s;
  if (stored_tenths(&all, csr, value) <= stored_tenths(fill, csr, value)) {
    const struct cb_fill given_up = *fill;
    *fill = all;
    all = given_up;
  }
  cb_fill_release(&all);
  return CB_OK;
}

static enum cb_status fail_step(const int64_t *settings, struct cb_diag *diag) {
  return cb_fail(diag, CB_ERR_UNSUPPORTED, "option 'fill-shapes' names fewer than %lld shapes",
                 (long long)settings[FILL_STEP]);
}

static enum cb_status divide_fill(const struct cb_part *part, const struct cb_options *options,
                                  const struct cb_target *target, struct cb_division *division, struct cb_text *facts,
                                  struct cb_diag *diag) {
  const int64_t *settings = cb_settings(options, &cb_layout_slices);
  const struct cb_fill_shape *shape = cb_slices_shape(settings);
  if (!shape) return fail_step(settings, diag);
  const int percent = rate_of(options, shape);
  struct cb_fill *fill = cb_calloc(1, sizeof *fill);
  (void)target;
  if (!fill) return cb_fail_memory(diag, "blocks", sizeof *fill);
  division->found[0] = (struct cb_found){CB_FOUND_FILL, fill, release_fill};
  const enum cb_fill_places places = settings[FILL_ALIGN] == CB_OFF ? CB_FILL_ANYWHERE : CB_FILL_ALIGNED;
  enum cb_status s = cb_fill_find(fill, part->csr, shape, percent, places, diag);
  if (s) return s;
  if (!fill->slices)
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "no block of shape '%s' has %d %% of its places filled; lower 'fill-rate' or use another recipe",
                   shape->name, percent);
  if (!settings[FILL_RATE]) s = take_all(fill, part->csr, options, diag);
  if (s) return s;
  cb_fill_divide(fill, part->csr, division->part_of);
  cb_text_add(facts, " (shape %s) (rate %d)", shape->name, percent);
  return CB_OK;
}

const struct cb_split cb_split_fill = {"fill", 2, 0, divide_fill};
