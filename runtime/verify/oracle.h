// SPDX-License-Identifier: Apache-2.0
/* What a product must give, and how far a right kernel may be from it.
 *
 * The oracle multiplies in long double. Row i of ŷ = α A x + β y₀ is accepted when
 *
 *   |ŷᵢ − yᵢ| ≤ bᵢ = γ(nᵢ + c) · (|α||A||x| + |β||y₀|)ᵢ + (nᵢ|α| + 2) η        γ(k) = k u / (1 − k u)
 *
 * and where y's type is narrower than the sums', bᵢ + u_y (|yᵢ| + bᵢ) + η_y, for y is then rounded once more.
 * u: unit roundoff of the sums' type, η: its smallest positive number, nᵢ: the row's nonzeros, c: the
 * roundings outside the sum (product with α, with β, their addition, the type's conversion), u_y and η_y: of y's type.
 * It is the classical bound of a sum of products in any order (Higham, Accuracy and Stability of Numerical
 * Algorithms, §3.1 and §4.2), so every summation tree satisfies it. The oracle's own rounding, the same bound with long
 * double's u, is added.
 *
 * Exact rows: when all of a row's numbers are integers and no partial sum can exceed what the sums' type holds exactly,
 * the tolerance is 0, and y is their sum, rounded to its type. Non-finite rows: NaN must be NaN, and an infinity the
 * same infinity.
 * Where a partial sum might overflow although the operands are finite, the order of the additions decides,
 * and any result is accepted (counted as unbounded). A finite sum that y's narrower type rounds to infinity (from 65520
 * on in f16) must be that infinity; where the bound reaches to both sides of that limit, any result is accepted.
 *
 * Complex numbers. Each part of a row of y is a sum of real products, two for each nonzero:
 *
 *   Re y = Σ (Re a · Re x − Im a · Im x)       Im y = Σ (Re a · Im x + Im a · Re x)
 *
 * and the kernels add each of them by one fma, so each part is accepted within the bound above for 2 nᵢ products, with
 * c + 2 for α and β, whose products are such sums, too: |α||A||x| is there |Re α| m₁ + |Im α| m₂ with the magnitudes
 * m₁ of the part's own sum and m₂ of the other part's. (Higham, §3.6, bounds the number as a whole; this is for each
 * part, and stronger.) What is not finite follows the same four products: an infinite part of x spoils both parts of
 * y where the value has a part that is 0. α and β whose imaginary parts are 0 are real numbers, which multiply each
 * part alone.
 *
 * Other semirings than plus-times (analysis/semiring.h) need no bound: a row's result is one of its products, or y's
 * element, or tells whether there is one. A product is rounded once, as the sums' type does it, and rounding keeps the
 * order, so every order of the operations gives the same number: y is that number, rounded to its type. Tolerance 0.
 */
#ifndef CBGEN_RUNTIME_VERIFY_ORACLE_H
#define CBGEN_RUNTIME_VERIFY_ORACLE_H

#include "analysis/plan.h"
#include "base/status.h"
#include "frontend/csr.h"

#include <stdint.h>

enum { CB_ORACLE_EXTRA = 4 }; /* c */

/* The types that a product rounds to. The oracle's matrix is the rounded one: storing a value in a narrower type
 * is no error of the product. */
struct cb_oracle_types {
  enum cb_type matrix; /* values as stored: any float */
  enum cb_type vector; /* x and y: any float */
  enum cb_type sum;    /* sums with α and β: CB_F64 or CB_F32, or all three are complex */
  enum cb_semiring semiring; /* what it adds and multiplies with */
};
struct cb_oracle_types cb_oracle_types_of(const struct cb_plan *plan);

/* x and y₀ as numbers of the vectors' type (already rounded to it), held in doubles. Of complex types values, x and y
 * are pairs, the real part first. */
struct cb_product {
  struct cb_oracle_types types;
  const double *values; /* instead of the matrix's own; NULL: those */
  const double *x;      /* NULL: cb_selftest_x, computed where it is needed: columns may be far more than nonzeros */
  const double *y; /* NULL when beta is 0 */
  double alpha, beta;
  double alpha_imag, beta_imag;
  int conjugated; /* the values are */
};

struct cb_expected {
  int64_t rows; /* real numbers: of complex types two for each row, here and in comparisons */
  long double *y;    /* as exact as long double; infinite where y's type makes it so */
  double *tolerance; /* infinite: unbounded */
};

/* Parallel over the rows; the same result for any number of threads. */
enum cb_status cb_oracle_multiply(struct cb_expected *expected, const struct cb_csr *csr,
                                  const struct cb_product *product, struct cb_diag *diag);
void cb_expected_release(struct cb_expected *expected);

struct cb_comparison {
  int64_t rows;      /* compared */
  int64_t exact;     /* of them finite with tolerance 0 */
  int64_t unbounded; /* of them with no bound */
  int64_t wrong;
  int64_t first_wrong; /* −1: none */
  double worst_ratio;  /* largest error / tolerance of the bounded rows; infinite when an exact one differs */
  int64_t worst_row;   /* −1: no bounded row with an error */
  double got;          /* of first_wrong, and the next two */
  long double expected;
  double tolerance;
};

/* `y`: as many elements of type `of_y` as the product has rows. */
void cb_oracle_compare(struct cb_comparison *comparison, const struct cb_expected *expected, const void *y,
                       enum cb_type of_y);

/* For the self-test of a kernel (analysis/plan/blob.h): y = Ax, or what else the plan's form computes with the
 * text's α = 1, β = 0 and a y₀ that changes nothing, for x of cb_selftest_x (rounded to the vectors' type; for or-and
 * negative elements are 0). `tolerance` allows for rounding `expected` to a double. Both have an element
 * for each real number of y, and are the caller's. */
void cb_oracle_selftest(const struct cb_csr *csr, const struct cb_plan *plan, double *expected, double *tolerance);

#endif
