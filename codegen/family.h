// SPDX-License-Identifier: Apache-2.0
/* Families: kernels that serve all matrices of one structure.
 *
 * A constant of a plan is either structure or a size (layout.h). The specialised kernel of a matrix has both in its
 * text. A family's kernel has the structure: layouts, types, lanes, vectors, batches, threads, widths of what is stored
 * for each slot. All else are parameters of it: sizes, places, grids, and for every other index array whether it is
 * stored and how wide its elements are, or with which rule they follow each other. Both texts come from the same
 * templates and add up in the same order, so they give the same bits; both read the same arrays.
 *
 * What a family's text is hangs on no matrix: the same structure gives the same bytes, whose hash names the family.
 * Each region REGION of the text has, beside its arrays:
 *
 *   struct Sizes     what cb_family_sizes gives: an Index for each index array that is no array by slot, an int for
 *                    each size, CB_FAMILY_TABLE ints for each table
 *   struct Pointers  a pointer for each array, NULL for those that follow a rule
 *
 * Each kind of members is in the order of their names: that in which a plan has them says nothing of its structure.
 *
 * A kernel's parameters are, for each of its regions, Sizes and then Pointers (if it has arrays); then Shape, x, y,
 * alpha, beta, carry_sums, carry_counters, whatever the form of the product: y = A·x is alpha 1, beta 0. */
#ifndef CBGEN_CODEGEN_FAMILY_H
#define CBGEN_CODEGEN_FAMILY_H

#include "analysis/plan.h"
#include "base/text.h"

/* The most ints that a region's Sizes take, and the most arrays of its Pointers. */
enum { CB_FAMILY_SIZES = 512, CB_FAMILY_ARRAYS = 64 };

/* Whether there is a family for the plan: its layouts have one, its values are data, and all numbers fit an int. The
 * reason, if there is none: CB_ERR_UNSUPPORTED. */
enum cb_status cb_family_check(const struct cb_plan *plan, struct cb_diag *diag);

/* A region's Sizes as ints; returns how many. */
int cb_family_sizes(const struct cb_region *region, int32_t sizes[CB_FAMILY_SIZES]);

/* The arrays of a region's Pointers: its own, and those that only the family has. Returns how many. */
int cb_family_arrays(const struct cb_region *region, const struct cb_array *arrays[CB_FAMILY_ARRAYS]);

/* What every kernel gets of the whole plan. */
struct cb_family_shape {
  int32_t rows, cols;
  int64_t first_row_sum;
};
struct cb_family_shape cb_family_shape(const struct cb_plan *plan);

/* ---- for the text: codegen/source.c */

/* Whether a family's kernel gets the array as an Index, and not with its elements' width. */
int cb_family_is_index(const struct cb_array *array);

/* Whether the region's text has the section, which its plan asks for or not. */
int cb_family_has_section(const struct cb_region *region, const char *name);

/* A structure constant's value there. */
int64_t cb_family_value(const struct cb_region *region, const struct cb_constant *constant);

/* The members of struct Sizes, and of struct Pointers. */
void cb_family_add_sizes(struct cb_text *text, const struct cb_region *region);
void cb_family_add_pointers(struct cb_text *text, const struct cb_region *region);
int cb_family_pointers(const struct cb_region *region); /* how many */

/* Reads every size and table in `text` from the region's Sizes. */
void cb_family_read_sizes(struct cb_text *text, const struct cb_region *region);

/* Makes numbers of a text enumerators: NVRTC gives each constant of a namespace a place in global memory, which nothing
 * reads and loading a module waits for; enumerators have none. */
void cb_family_leave_out_objects(struct cb_text *text);

#endif
