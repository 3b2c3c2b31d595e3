// SPDX-License-Identifier: Apache-2.0
/* A CSR matrix in the formats of other libraries, on the host. Values are rounded to the type asked for. */
#ifndef CBGEN_RUNTIME_MEASURE_CONVERT_H
#define CBGEN_RUNTIME_MEASURE_CONVERT_H

#include "base/status.h"
#include "base/types.h"
#include "frontend/csr.h"

#include <stdint.h>

/* The values as `type` (a float), and the row of each nonzero. Blocks of cb_alloc. */
enum cb_status cb_convert_values(void **values, const struct cb_csr *csr, enum cb_type type,
                                 struct cb_diag *diag);
enum cb_status cb_convert_row_indices(int32_t **rows, const struct cb_csr *csr, struct cb_diag *diag);

/* Sliced ELL: `slice` rows side by side, as wide as the longest of them, column by column. Padding slots have
 * column -1 and value 0. The last slice has `slice` rows, too. */
struct cb_sell {
  int64_t slice, slices, slots;
  int32_t *offsets; /* slices + 1 */
  int32_t *columns; /* slots */
  void *values;     /* slots */
};

/* Slots that the format would have. */
int64_t cb_sell_slots(const struct cb_csr *csr, int64_t slice);
enum cb_status cb_sell_build(struct cb_sell *sell, const struct cb_csr *csr, int64_t slice, enum cb_type type,
                             struct cb_diag *diag); /* CB_ERR_LIMIT beyond 2^31 - 1 slots */
void cb_sell_release(struct cb_sell *sell);

/* Block CSR: dense blocks of `block` × `block` values, row by row, aligned to multiples of `block`. */
struct cb_bsr {
  int64_t block, block_rows, block_cols, blocks;
  int32_t *row_ptr; /* block_rows + 1 */
  int32_t *columns; /* blocks; ascending in a block row */
  void *values;     /* blocks * block * block */
};

/* How many blocks the format would have. */
enum cb_status cb_bsr_count(int64_t *blocks, const struct cb_csr *csr, int64_t block, struct cb_diag *diag);
enum cb_status cb_bsr_build(struct cb_bsr *bsr, const struct cb_csr *csr, int64_t block, enum cb_type type,
                            struct cb_diag *diag); /* CB_ERR_LIMIT beyond 2^31 - 1 blocks */
void cb_bsr_release(struct cb_bsr *bsr);

#endif
