// SPDX-License-Identifier: Apache-2.0
/* Symmetric storage: an entry above the main diagonal has the value of its mirror image below it, in a
 * skew-symmetric matrix that with the other sign, and in a Hermitian one its conjugate, so that layouts may store the
 * lower triangle and the main diagonal alone.
 *
 * The caller promises it (option symmetric), and then the lower triangle counts, whatever the upper one holds; or
 * values are fixed, and show it bit by bit. The pattern is symmetric in any case: an entry without a mirror image is
 * refused. A skew-symmetric or Hermitian matrix may have anything on its main diagonal, which is stored as it is; its
 * upper triangle counts where a layout stores it, since packing changes no signs.
 *
 * What that means for a layout: builder->options->symmetric is CB_SYMMETRIC_ON, _SKEW, _HERMITIAN or _OFF. A
 * part that a split made has not always all mirror images of its entries; the layout looks. Its visit emits entries
 * that are read from others' slots by cb_emit_mirrored (walk.h). */
#ifndef CBGEN_ANALYSIS_PLAN_SYMMETRY_H
#define CBGEN_ANALYSIS_PLAN_SYMMETRY_H

#include "analysis/walk.h"

/* Whether option symmetric-storage lets so many nonzeros be stored by half. Values that stay in L2 gain nothing: the
 * second read is from there, as the first one would be. */
int cb_symmetry_pays(const struct cb_options *options, const struct cb_target *target, int64_t nonzeros);

/* What the options and the matrix come to: any but CB_SYMMETRIC_AUTO. CB_ERR_ARGUMENT: the matrix is not what was
 * promised (the message names an entry, and values only count where they are fixed or check-symmetry asks for it);
 * CB_ERR_UNSUPPORTED: its columns are not on the host; CB_ERR_MEMORY. `target` is not looked at of a promise. */
enum cb_status cb_symmetry_resolve(enum cb_symmetry_option *symmetry, const struct cb_csr *csr,
                                   const struct cb_target *target, const struct cb_options *options,
                                   struct cb_diag *diag);

/* Whether a layout shall read entries of the part above the main diagonal from their mirror images: the matrix is such
 * a one, that pays, and the part has the mirror image of each of its entries. CB_ERR_MEMORY. */
enum cb_status cb_symmetry_of_part(int *mirrored, const struct cb_options *options, const struct cb_target *target,
                                   const struct cb_part *part, struct cb_diag *diag);

/* Of a promise: gives entries above the main diagonal the values that count for them, so that the oracle multiplies
 * with the same matrix. Else nothing. Errors as above. */
enum cb_status cb_symmetry_mirror(struct cb_csr *csr, const struct cb_options *options, struct cb_diag *diag);

/* Of a symmetric matrix: slots of entries above the main diagonal get the values of their mirror images. */
void cb_symmetry_take_lower(const struct cb_slot_map *map, const struct cb_csr *csr);

/* The same of other values of such a matrix, once it is known to be one (struct cb_plan's symmetry). */
void cb_symmetry_mirror_values(double *values, const struct cb_csr *csr, enum cb_symmetry_option symmetry);

/* The number of entry (column, row) of a matrix with a symmetric pattern that has (row, column). */
int64_t cb_symmetry_partner(const struct cb_csr *csr, int64_t row, int64_t column);

/* "symmetric", "skew-symmetric" or "Hermitian". */
const char *cb_symmetry_word(enum cb_symmetry_option symmetry);

/* The section of a layout's template, and the key of its fact, that says how values above the main diagonal come from
 * their mirror images: as they are ("mirrored"), negated or conjugated. */
const char *cb_symmetry_section(enum cb_symmetry_option symmetry);

#endif
