// SPDX-License-Identifier: Apache-2.0
/* Value specialisation: what a part's values have in common, and how that is stored without loss. It is the
 * one place that decides; layouts ask for value slots, and are told how many bytes one has (layout.h).
 *
 *   equal     all the same: no array, a constant of the text
 *   i8        small integers
 *   coded     at most 256 different ones: a byte each, and a table
 *   f16, bf16, i16, f32   where every value is one of these
 *
 * in this order: fewest bytes first, and no table where the bytes are the same. Values count as different
 * when their bits are (0 and -0, NaNs with other payloads), after rounding to the matrix's type.
 */
#ifndef CBGEN_ANALYSIS_VALUES_H
#define CBGEN_ANALYSIS_VALUES_H

#include "analysis/distinct.h"
#include "analysis/layout.h"

enum { CB_TABLE_MOST = CB_DISTINCT_MOST };

struct cb_value_summary {
  int distinct; /* CB_TABLE_MOST + 1: more than that; 0: no values, or one that does not fit its type */
  double table[CB_TABLE_MOST]; /* the different ones, ascending by bit pattern */
  enum cb_type narrowest;      /* type of fewest bytes that holds all of them */
  enum cb_type narrowest_float; /* the same of types that have a NaN */
};

/* `values` are those of the whole matrix. In parallel; the result does not depend on the number of threads.
 */
void cb_values_summarise(struct cb_value_summary *summary, const struct cb_part *part, const double *values,
                         enum cb_type matrix_type);

struct cb_value_choice {
  enum cb_value_storage storage;
  enum cb_type type; /* of a slot */
  int add_zero;      /* the table needs a zero() that is none of the values */
};

/* What slots without a nonzero must read as: anything, 0, or a NaN (semiring.h) where they are multiplied, too. */
enum cb_padding { CB_PADDING_ANY, CB_PADDING_ZERO, CB_PADDING_NAN };

struct cb_value_choice cb_values_choose(const struct cb_value_summary *summary, enum cb_type matrix_type,
                                        enum cb_padding padding);

#endif
