// SPDX-License-Identifier: Apache-2.0
/* How many nonzeros columns have: for layouts that keep entries of x for the frequent ones. */
#ifndef CBGEN_ANALYSIS_COLUMNS_H
#define CBGEN_ANALYSIS_COLUMNS_H

#include "base/arena.h"
#include "base/status.h"
#include "frontend/csr.h"

#include <stdint.h>

/* Whether tables over all columns are in proportion to the matrix. Where columns are far more than nonzeros and rows,
 * such tables would take many times its memory: then CB_ERR_UNSUPPORTED. */
enum cb_status cb_check_column_tables(const struct cb_csr *csr, struct cb_diag *diag);

/* Nonzeros by column, in the arena; NULL: no memory. */
uint32_t *cb_count_columns(struct cb_arena *arena, const struct cb_csr *csr);

/* How many columns have so many nonzeros, by key: CB_COUNT_KEYS elements in the arena; NULL: no memory. */
enum { CB_COUNT_KEYS = 1 << 16 }; /* nonzeros of a column, as far as they order columns */
static inline int64_t cb_count_key(uint32_t count) { return count < CB_COUNT_KEYS ? count : CB_COUNT_KEYS - 1; }
int64_t *cb_columns_with(struct cb_arena *arena, const uint32_t *counts, int64_t cols);

#endif
