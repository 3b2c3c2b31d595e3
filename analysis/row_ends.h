// SPDX-License-Identifier: Apache-2.0
/* What equal shares of nonzeros need to know of rows, found out where the matrix is (csr->remote): no list that is as
 * long as the matrix's rows comes to the host. */
#ifndef CBGEN_ANALYSIS_ROW_ENDS_H
#define CBGEN_ANALYSIS_ROW_ENDS_H

#include "frontend/csr.h"

enum { CB_UNIT_WARPS = 8 }; /* chunks of a unit that has row ends */

/* Nonzeros begin … end - 1 of a matrix. */
struct cb_unit {
  int64_t begin, end;
  int64_t slot; /* of the first nonzero; the others follow */
  int32_t row;  /* of the first nonzero */
};

/* The elements of an index array, which stay where the matrix is. */
struct cb_remote_list {
  int64_t count;
  uint64_t at; /* an address there */
  uint64_t base, step; /* element 0, and what element 1 has more; of one element, and of none, the step is 0 */
  uint32_t largest;
  int follows; /* element i is base + step * i, whatever i */
};

/* Row ends of `units`, each of which holds whole rows and is cut into CB_UNIT_WARPS chunks of 32 * items nonzeros. A
 * row belongs to the chunk of its last nonzero. */
struct cb_row_ends {
  const struct cb_unit *units;
  int64_t units_count;
  int items;
  /* by chunk, room for which is the caller's: the first row and how many; and how many before, one more */
  uint32_t *first_row, *row_count, *first_end;
  /* by lane of a chunk: a bit for each of its `items` nonzeros that ends a row, above these the row ends before it */
  struct cb_remote_list descriptor;
  /* by row end: its row, from its chunk's first one; if `gaps`: some are not those that follow one another */
  struct cb_remote_list row_offset;
  int gaps;
};

#endif
