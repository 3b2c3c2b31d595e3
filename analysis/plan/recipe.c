// SPDX-License-Identifier: Apache-2.0
/* Finding recipes, the split that belongs to no layout, and cutting a part out of a matrix: see recipe.h. */
#include "analysis/plan/recipe.h"

#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

/* ---- splits */

/* Part 0: rows of at most options->long_row nonzeros; part 1: longer ones. */
static enum cb_status divide_long_rows(const struct cb_part *part, const struct cb_options *options,
                                       const struct cb_target *target, struct cb_division *division,
                                       struct cb_text *facts, struct cb_diag *diag) {
  const struct cb_csr *csr = part->csr;
  (void)target;
  (void)diag;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < csr->rows; row++) {
    const int64_t begin = cb_csr_row(csr, row), end = cb_csr_row(csr, row + 1);
    memset(division->part_of + begin, end - begin > options->long_row, (size_t)(end - begin));
  }
  cb_text_add(facts, " (longer %lld)", (long long)options->long_row);
  return CB_OK;
}

const struct cb_split cb_split_long_rows = {"long-rows", 2, 1, divide_long_rows};

/* ---- recipes */

const char cb_recipe_unsearched[] = "sell";

static const struct cb_recipe search = {.name = "auto",
                                        .summary = "the cheapest of the others, as the cost model predicts"};

const struct cb_recipe *cb_recipe_at(int number) {
  if (!number--) return &search;
  for (int i = 0; cb_layout_table[i]; i++)
    for (const struct cb_recipe *recipe = cb_layout_table[i]->recipes; recipe && recipe->name; recipe++)
      if (!number--) return recipe;
  return NULL;
}

static int is_searched(const struct cb_recipe *recipe, int64_t nonzeros, int vectors) {
  return recipe->is_searched ||
         (recipe->searched_from && vectors >= recipe->searched_from && nonzeros <= recipe->searched_to);
}

const struct cb_recipe *cb_recipe_searched(int number, int64_t nonzeros, int vectors) {
  const struct cb_recipe *recipe;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++)
    if (is_searched(recipe, nonzeros, vectors) && !number--) return recipe;
  return NULL;
}

/* Recipes that were removed because another one was at least as fast wherever they were measured. */
static const struct {
  const char *name, *substitute;
} removed_recipes[] = {{"panel", "sell"}, {"dia-panel", "dia"}};

enum cb_status cb_recipe_find(const struct cb_recipe **found, const char *name, struct cb_diag *diag) {
  for (size_t i = 0; i < sizeof removed_recipes / sizeof *removed_recipes; i++)
    if (!strcmp(removed_recipes[i].name, name))
      return cb_fail(diag, CB_ERR_ARGUMENT, "recipe '%s' was removed; use '%s'", name, removed_recipes[i].substitute);
  struct cb_text names = {0};
  const struct cb_recipe *recipe;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++) {
    if (!strcmp(recipe->name, name)) {
      cb_text_release(&names);
      *found = recipe;
      return CB_OK;
    }
    cb_text_add(&names, "%s'%s'", i ? ", " : "", recipe->name);
  }
  cb_fail(diag, CB_ERR_ARGUMENT, "unknown recipe '%s'; there are %s", name, cb_text_string(&names));
  cb_text_release(&names);
  return CB_ERR_ARGUMENT;
}

/* ---- parts */

static enum cb_status alloc_part(struct cb_region_work *work, const struct cb_csr *csr, int64_t nonzeros,
                                 int wide_origin, struct cb_diag *diag) {
  work->part_csr = cb_calloc(1, sizeof *work->part_csr);
  if (!work->part_csr) return cb_fail_memory(diag, "part", sizeof *work->part_csr);
  struct cb_csr *part = work->part_csr;
  *part = (struct cb_csr){.rows = csr->rows, .cols = csr->cols, .nnz = nonzeros, .wide = csr->wide};
  const size_t count = (size_t)nonzeros;
  part->row_ptr = cb_alloc((size_t)csr->rows + 1, csr->wide ? 8 : 4);
  part->col_idx = cb_alloc(count, sizeof *part->col_idx);
  if (wide_origin) work->part_origin64 = cb_alloc(count, sizeof *work->part_origin64);
  else work->part_origin = cb_alloc(count, sizeof *work->part_origin);
  if (!part->row_ptr || !part->col_idx || (!work->part_origin && !work->part_origin64))
    return cb_fail_memory(diag, "part", count * 12);
  work->part = (struct cb_part){.csr = part, .origin = work->part_origin, .origin64 = work->part_origin64};
  return CB_OK;
}

static void set_row(struct cb_csr *csr, int64_t row, int64_t value) {
  if (csr->wide) ((int64_t *)csr->row_ptr)[row] = value;
  else ((int32_t *)csr->row_ptr)[row] = (int32_t)value;
}

/* Rows are counted and copied in ranges, each by one thread. */
enum { RANGE = 4096 };

/* kept[i + 1]: what the part keeps of range i's nonzeros. Returns their sum. */
static int64_t count_kept(const struct cb_csr *csr, const unsigned char *part_of, int number, int64_t *kept,
                          int64_t ranges) {
  int64_t sum = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : sum)
  for (int64_t range = 0; range < ranges; range++) {
    const int64_t end = cb_csr_row(csr, cb_smaller((range + 1) * RANGE, csr->rows));
    int64_t count = 0;
    for (int64_t k = cb_csr_row(csr, range * RANGE); k < end; k++) count += part_of[k] == number;
    kept[range + 1] = count;
    sum += count;
  }
  return sum;
}

/* The rows of a range, whose nonzeros begin at `kept` in the part. */
static void copy_range(struct cb_region_work *work, const struct cb_part *part, const unsigned char *part_of,
                       int number, int64_t range, int64_t kept) {
  const struct cb_csr *csr = part->csr;
  const int64_t end = cb_smaller((range + 1) * RANGE, csr->rows);
  for (int64_t row = range * RANGE; row < end; row++) {
    set_row(work->part_csr, row, kept);
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++) {
      if (part_of[k] != number) continue;
      work->part_csr->col_idx[kept] = csr->col_idx[k];
      if (work->part_origin64) work->part_origin64[kept] = cb_part_origin(part, k);
      else work->part_origin[kept] = (uint32_t)cb_part_origin(part, k);
      kept++;
    }
  }
}

enum cb_status cb_part_select(struct cb_region_work *work, const struct cb_part *part,
                              const unsigned char *part_of, int number, int wide, struct cb_diag *diag) {
  const struct cb_csr *csr = part->csr;
  const int64_t ranges = cb_divide_up(csr->rows, RANGE);
  int64_t *kept = cb_calloc((size_t)ranges + 1, sizeof *kept);
  if (!kept) return cb_fail_memory(diag, "part", (uint64_t)ranges * sizeof *kept);
  const int64_t nonzeros = count_kept(csr, part_of, number, kept, ranges);
  const int whole = nonzeros == csr->nnz && !part->origin && !part->origin64;
  enum cb_status s = CB_OK;
  if (whole) work->part = (struct cb_part){.csr = csr};
  else s = alloc_part(work, csr, nonzeros, wide, diag);
  if (!s && !whole) {
    for (int64_t range = 0; range < ranges; range++) kept[range + 1] += kept[range];
#pragma omp parallel for schedule(dynamic, 16)
    for (int64_t range = 0; range < ranges; range++) copy_range(work, part, part_of, number, range, kept[range]);
    set_row(work->part_csr, csr->rows, nonzeros);
  }
  cb_free(kept);
  return s;
}
