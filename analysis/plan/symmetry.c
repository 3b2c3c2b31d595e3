// SPDX-License-Identifier: Apache-2.0
/* Whether half of the matrix is stored: see symmetry.h. */
#include "analysis/plan/symmetry.h"

#include "analysis/profile/profile.h"
#include "base/real.h"

#include <stdio.h>

/* The entry (row, column) of the matrix, by bisection; -1: there is none. */
static int64_t find_entry(const struct cb_csr *csr, int64_t row, int64_t column) {
  int64_t low = cb_csr_row(csr, row), high = cb_csr_row(csr, row + 1);
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (csr->col_idx[middle] < column) low = middle + 1;
    else high = middle;
  }
  return low < cb_csr_row(csr, row + 1) && csr->col_idx[low] == column ? low : -1;
}

int64_t cb_symmetry_partner(const struct cb_csr *csr, int64_t row, int64_t column) {
  return find_entry(csr, column, row);
}

const char *cb_symmetry_word(enum cb_symmetry_option symmetry) {
  return symmetry == CB_SYMMETRIC_HERMITIAN ? "Hermitian" : symmetry == CB_SYMMETRIC_SKEW ? "skew-symmetric" : "symmetric";
}

const char *cb_symmetry_section(enum cb_symmetry_option symmetry) {
  return symmetry == CB_SYMMETRIC_HERMITIAN ? "conjugated" : symmetry == CB_SYMMETRIC_SKEW ? "negated" : "mirrored";
}

/* What part 0 (real) or 1 (imaginary) of an entry above the main diagonal is when its mirror image has `value`. */
static double mirrored_part(enum cb_symmetry_option symmetry, double value, int part) {
  return symmetry == CB_SYMMETRIC_SKEW || (symmetry == CB_SYMMETRIC_HERMITIAN && part) ? -value : value;
}

/* Whether entry `k` is what entry `other`, on or below the main diagonal, makes it. Zeros that change their sign may
 * have any. */
static int is_mirrored(const struct cb_csr *csr, enum cb_symmetry_option symmetry, int64_t k, int64_t other) {
  const int parts = csr->is_complex ? 2 : 1;
  for (int part = 0; part < parts; part++) {
    const double value = csr->values[parts * k + part], image = csr->values[parts * other + part];
    const double expected = mirrored_part(symmetry, image, part);
    const int are_zeros = value == 0 && image == 0 && symmetry != CB_SYMMETRIC_ON;
    if (cb_real_bits(expected) != cb_real_bits(value) && !are_zeros) return 0;
  }
  return 1;
}

/* An entry's value, for messages. */
static const char *written(char (*text)[64], const struct cb_csr *csr, int64_t k) {
  if (csr->is_complex) snprintf(*text, sizeof *text, "(%.17g, %.17g)", csr->values[2 * k], csr->values[2 * k + 1]);
  else snprintf(*text, sizeof *text, "%.17g", csr->values[k]);
  return *text;
}

/* Names the first entry that has no partner, or none of that value. It is looked for only when counts say so. */
static enum cb_status name_odd_one(const struct cb_csr *csr, enum cb_symmetry_option symmetry, int with_values,
                                   struct cb_diag *diag) {
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      const int64_t column = csr->col_idx[k], other = find_entry(csr, column, row);
      if (other < 0)
        return cb_fail(diag, CB_ERR_ARGUMENT,
                       "option 'symmetric' needs a symmetric pattern: there is an entry (%lld, %lld), counted from 0, "
                       "and no entry (%lld, %lld)",
                       (long long)row, (long long)column, (long long)column, (long long)row);
      if (!with_values || row >= column || is_mirrored(csr, symmetry, k, other)) continue;
      char one[64], image[64];
      return cb_fail(diag, CB_ERR_ARGUMENT,
                     "the matrix is not %s, as option 'symmetric' says: entry (%lld, %lld), counted from 0, is %s, and "
                     "entry (%lld, %lld) %s",
                     cb_symmetry_word(symmetry), (long long)row, (long long)column, written(&one, csr, k),
                     (long long)column, (long long)row, written(&image, csr, other));
    }
  return cb_fail(diag, CB_ERR_INTERNAL, "symmetry was not found where it is");
}

/* What fixed values show. Neither of a matrix without a pair of entries is of use. */
static enum cb_symmetry_option seen(const struct cb_profile_symmetry *found, const struct cb_csr *csr,
                                    const struct cb_options *options) {
  if (found->mirrored_same == csr->nnz) return CB_SYMMETRIC_ON;
  if (found->mirrored_negated == csr->nnz && options->semiring == CB_PLUS_TIMES) return CB_SYMMETRIC_SKEW;
  if (csr->is_complex && found->mirrored_conjugated == csr->nnz) return CB_SYMMETRIC_HERMITIAN;
  return CB_SYMMETRIC_OFF;
}

static int64_t row_of(const struct cb_csr *csr, int64_t nonzero) {
  int64_t least = 0, most = csr->rows;
  while (most - least > 1) {
    const int64_t middle = least + (most - least) / 2;
    if (cb_csr_row(csr, middle) <= nonzero) least = middle;
    else most = middle;
  }
  return least;
}

void cb_symmetry_take_lower(const struct cb_slot_map *map, const struct cb_csr *csr) {
#pragma omp parallel for schedule(static)
  for (int64_t slot = 0; slot < map->count; slot++) {
    const uint64_t k = cb_slot_get(map, slot);
    if (k == CB_NO_NONZERO) continue;
    const int64_t row = row_of(csr, (int64_t)k), column = csr->col_idx[k];
    if (column > row) cb_slot_set(map, slot, (uint64_t)find_entry(csr, column, row));
  }
}

int cb_symmetry_pays(const struct cb_options *options, const struct cb_target *target, int64_t nonzeros) {
  const struct cb_types types = cb_precision_types((enum cb_precision)options->type);
  if (options->symmetric_storage != CB_AUTO) return options->symmetric_storage == CB_ON;
  return nonzeros > target->l2_bytes / (int64_t)cb_type_size(types.matrix);
}

enum cb_status cb_symmetry_resolve(enum cb_symmetry_option *symmetry, const struct cb_csr *csr,
                                   const struct cb_target *target, const struct cb_options *options,
                                   struct cb_diag *diag) {
  struct cb_profile_symmetry found;
  const int promised = cb_promises_symmetry(options);
  const int fixed = options->values == CB_VALUES_FIXED;
  *symmetry = CB_SYMMETRIC_OFF;
  if (!promised && (options->symmetric == CB_SYMMETRIC_OFF || !fixed ||
                    csr->rows != csr->cols || !csr->values ||
                    !cb_symmetry_pays(options, target, csr->nnz)))
    return CB_OK;
  if (csr->rows != csr->cols)
    return cb_fail(diag, CB_ERR_ARGUMENT, "option 'symmetric' needs a square matrix, not %lld x %lld",
                   (long long)csr->rows, (long long)csr->cols);
  if (csr->remote)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "the symmetry of a matrix is checked where its columns are on the host");
  enum cb_status s = cb_symmetry_count(&found, csr, diag);
  if (s) return s;
  if (!promised) {
    *symmetry = seen(&found, csr, options);
    return CB_OK;
  }
  const int with_values = csr->values && (fixed || options->check_symmetry == CB_ON);
  *symmetry = (enum cb_symmetry_option)options->symmetric;
  const int64_t paired = *symmetry == CB_SYMMETRIC_SKEW                           ? found.mirrored_negated
                         : *symmetry == CB_SYMMETRIC_HERMITIAN && csr->is_complex ? found.mirrored_conjugated
                                                                                  : found.mirrored_same;
  if (found.mirrored == csr->nnz && (!with_values || paired == csr->nnz)) return CB_OK;
  return name_odd_one(csr, *symmetry, with_values, diag);
}

enum cb_status cb_symmetry_of_part(int *mirrored, const struct cb_options *options, const struct cb_target *target,
                                   const struct cb_part *part, struct cb_diag *diag) {
  struct cb_profile_symmetry found;
  *mirrored = cb_promises_symmetry(options) && cb_symmetry_pays(options, target, part->csr->nnz);
  if (!*mirrored || (!part->origin && !part->origin64)) return CB_OK; /* no, or the whole matrix */
  const enum cb_status s = cb_symmetry_count(&found, part->csr, diag);
  *mirrored = !s && found.mirrored == part->csr->nnz;
  return s;
}

void cb_symmetry_mirror_values(double *values, const struct cb_csr *csr, enum cb_symmetry_option symmetry) {
  const int parts = csr->is_complex ? 2 : 1;
  if (symmetry == CB_SYMMETRIC_AUTO || symmetry == CB_SYMMETRIC_OFF) return;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < csr->rows; row++)
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      const int64_t image = csr->col_idx[k] > row ? find_entry(csr, csr->col_idx[k], row) : k;
      for (int part = 0; part < parts && image != k; part++)
        values[parts * k + part] = mirrored_part(symmetry, values[parts * image + part], part);
    }
}

enum cb_status cb_symmetry_mirror(struct cb_csr *csr, const struct cb_options *options, struct cb_diag *diag) {
  enum cb_symmetry_option symmetry;
  if (!cb_promises_symmetry(options)) return CB_OK;
  const enum cb_status s = cb_symmetry_resolve(&symmetry, csr, NULL, options, diag);
  if (!s && csr->values) cb_symmetry_mirror_values(csr->values, csr, symmetry);
  return s;
}
