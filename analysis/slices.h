// SPDX-License-Identifier: Apache-2.0
/* What layouts share that store rows as sliced ELL: slices of 32 lanes, the order of rows, steps before slices, and
 * slots. A group of a slice's lanes works on a local row; where that has no row, its row is the one behind the last. */
#ifndef CBGEN_ANALYSIS_SLICES_H
#define CBGEN_ANALYSIS_SLICES_H

#include "analysis/layout.h"
#include "base/arena.h"
#include "base/integers.h"

enum { CB_LANES = 32, CB_LANES_LOG2 = 5 };

/* What a row has of nonzeros, or blocks; or a slice of steps. */
typedef int64_t cb_row_length(const void *state, int64_t row);

/* The rows 0 … rows - 1, the longest first within windows of so many of them (at most 4096), ties in the order of rows;
 * then `rows` up to `local_rows`. Rows of `most` and more (at most 2048) count alike. In the arena; NULL: no memory. */
int32_t *cb_sorted_rows(struct cb_arena *arena, int64_t rows, int64_t local_rows, int64_t window, int64_t most,
                        cb_row_length *length_of, const void *state);
enum { CB_WINDOW = 4096, CB_MOST_LENGTH = 2048 };

/* The length of all rows if it is the same, else -1. There is a row. */
int64_t cb_equal_length(int64_t rows, cb_row_length *length_of, const void *state);

/* How many steps stand before each slice, and in the end how many there are: slices + 1 elements in the arena. The most
 * steps that a slice has go to `longest`, unless it is NULL. Returns NULL when there is no memory. */
int64_t *cb_first_steps(struct cb_arena *arena, int64_t slices, cb_row_length *steps_of, const void *state,
                        int64_t *longest);

/* Counts first[1 … count] become sums: first[i] is that of the first i of them. Returns the sum of all. */
int64_t cb_sum_up(int64_t *first, int64_t count);

/* The logarithm of how many lanes share a row of that length, so that none takes more than `aim`; 32 lanes at most. */
static inline int cb_lanes_log2(int64_t length, int64_t aim) {
  int log2 = 0;
  while (log2 < CB_LANES_LOG2 && cb_divide_up(length, INT64_C(1) << log2) > aim) log2++;
  return log2;
}

/* By slice, where slices differ in how many lanes share a local row. */
struct cb_slices {
  unsigned char *lanes_log2;
  uint32_t *first_local_row;
};
int cb_slices_alloc(struct cb_slices *slices, struct cb_arena *arena, int64_t count); /* 0: no memory */
static inline void cb_slices_set(struct cb_slices *slices, int64_t slice, int lanes_log2, int64_t first_local_row) {
  slices->lanes_log2[slice] = (unsigned char)lanes_log2;
  slices->first_local_row[slice] = (uint32_t)first_local_row;
}
/* Adds both as arrays; lanes share `what`. */
void cb_region_slices(struct cb_region_builder *builder, const struct cb_slices *slices, int64_t count,
                      const char *what);

/* Adds first_column, by slice (in the state's arena; NULL has failed), and by slot the offset from there, of `what`. */
void cb_region_column_offsets(struct cb_region_builder *builder, const char *what, int64_t slices,
                              const uint32_t *first_column, struct cb_slot_elements offsets);

/* The slot of element k of a local row, the one with number `in_slice` in a slice that begins with `first_step`. */
static inline int64_t cb_slice_slot(int64_t first_step, int log2, int64_t in_slice, int64_t k) {
  return (first_step + (k >> log2)) * CB_LANES + (in_slice << log2) + (k & ((INT64_C(1) << log2) - 1));
}

#endif
