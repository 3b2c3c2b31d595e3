// SPDX-License-Identifier: Apache-2.0
/* How far nonzeros lie from the main diagonal, as a histogram with a side for each triangle: for reports. */
#ifndef CBGEN_ANALYSIS_PROFILE_OFFSETS_H
#define CBGEN_ANALYSIS_PROFILE_OFFSETS_H

#include "frontend/csr.h"

#include <stdint.h>

enum { CB_OFFSETS_SIDE = 31, CB_OFFSETS_BINS = 2 * CB_OFFSETS_SIDE + 1 }; /* offsets are below 2^31 */

/* Nonzeros by offset, column - row: bin CB_OFFSETS_SIDE is 0; bin CB_OFFSETS_SIDE + k is 2^(k-1) … 2^k - 1, and bin
 * CB_OFFSETS_SIDE - k the same below the diagonal. Parallel, and the same for any number of threads. */
void cb_offsets_count(int64_t bins[CB_OFFSETS_BINS], const struct cb_csr *csr);

/* The offsets of a bin, from the lower one on. */
void cb_offsets_of_bin(int bin, int64_t *least, int64_t *most);

#endif
