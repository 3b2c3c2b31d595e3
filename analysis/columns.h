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

/* Nonzeros by column, for the caller to free. CB_ERR_MEMORY, and what cb_check_column_tables has. */
enum cb_status cb_columns_counted(uint32_t **counts, const struct cb_csr *csr, struct cb_diag *diag);

/* Nonzeros by column; and by key, how many columns have so many. */
enum { CB_COUNT_KEYS = 1 << 16 }; /* nonzeros of a column, as far as they order columns */
struct cb_column_counts {
  int64_t cols, occupied; /* occupied: those that have nonzeros */
  uint32_t *of;
  int64_t *with;
};
static inline int64_t cb_column_key(const struct cb_column_counts *counts, int64_t column) {
  return counts->of[column] < CB_COUNT_KEYS ? counts->of[column] : CB_COUNT_KEYS - 1;
}

/* In the arena. Of a matrix whose columns are remote they are counted there. 0: no memory. */
int cb_count_columns(struct cb_column_counts *counts, struct cb_arena *arena, const struct cb_csr *csr);

/* Of each row the nonzeros in columns whose bit is set, bit c % 64 of word c / 64. The columns are on the host. */
void cb_count_marked(uint32_t *by_row, const struct cb_csr *csr, const uint64_t *marked);

/* The `number` columns that have the most nonzeros, the first ones of those that have equally many: columns with more
 * than `least` nonzeros, and those with just as many that stand before `end`. What is needed meanwhile stays in the
 * arena. */
struct cb_column_cut {
  int64_t least, end;
};
struct cb_column_cut cb_cut_columns(const struct cb_column_counts *counts, int64_t number, struct cb_arena *arena);
static inline int cb_is_in_cut(struct cb_column_cut cut, const struct cb_column_counts *counts, int64_t column) {
  const int64_t key = cb_column_key(counts, column);
  return key > cut.least || (key == cut.least && column < cut.end);
}

#endif
