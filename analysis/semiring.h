// SPDX-License-Identifier: Apache-2.0
/* What a product adds and multiplies with. A row of y is the ⊕ of its nonzeros ⊗ their elements of x:
 *
 *   name         sum                     product          a row without nonzeros
 *   plus-times   a + b                   a · b            0            the ordinary product
 *   min-plus     the smaller (fmin)      a + b            infinity     lengths of shortest paths
 *   max-times    the larger (fmax)       a · b            -infinity    most reliable paths
 *   or-and       1 if one is not zero,   1 if both are    0            who is reached
 *                else 0                  not zero, else 0
 *
 * fmin and fmax pass a NaN over, so a product that is NaN counts as absent; to or-and NaN is not zero. Explicit zeros
 * of the matrix are entries like others. Only plus-times has α and β: the others take 1 for α, and for β 0 (y = A·x) or
 * 1 (y = y + A·x, with their sum and product).
 *
 * Padding. Every semiring has a number that changes nothing, whether it is a value, an element of x or a sum. Templates
 * call it zero(); it is 0, or a NaN for min-plus and max-times, which `commit` turns into the infinity of a row without
 * nonzeros. Value slots without a nonzero that are multiplied hold it, too: NaNs with all bits set there.
 */
#ifndef CBGEN_ANALYSIS_SEMIRING_H
#define CBGEN_ANALYSIS_SEMIRING_H

enum cb_semiring { CB_PLUS_TIMES, CB_MIN_PLUS, CB_MAX_TIMES, CB_OR_AND };
enum { CB_SEMIRINGS = CB_OR_AND + 1 };

extern const char *const cb_semiring_names[CB_SEMIRINGS + 1]; /* by semiring; NULL at the end */

/* As templates call their sections for it: "plus_times". */
const char *cb_semiring_section(enum cb_semiring semiring);

/* "y = A·x", "y = A·x over (min, +)", … for enum cb_form `form`. */
const char *cb_semiring_equation(enum cb_semiring semiring, int form);

/* Whether NaN is what changes nothing: then a slot without a nonzero has all bits set, else none. */
static inline int cb_semiring_pads_with_nan(enum cb_semiring semiring) {
  return semiring == CB_MIN_PLUS || semiring == CB_MAX_TIMES;
}

/* Whether padding may harm: 0 times an x that is NaN or infinite. Then layouts store presence bits, and look at sums
 * that are not finite again. */
static inline int cb_semiring_minds_infinity(enum cb_semiring semiring) {
  return semiring == CB_PLUS_TIMES;
}

/* Whether the GPU's matrix instructions multiply and add like that. */
static inline int cb_semiring_has_tensor_cores(enum cb_semiring semiring) {
  return semiring == CB_PLUS_TIMES;
}

#endif
