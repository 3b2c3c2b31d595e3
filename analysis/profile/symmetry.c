// SPDX-License-Identifier: Apache-2.0
/* Symmetry: each nonzero (i, j) above the diagonal is looked up in row j. Rows i are taken in ascending
 * order, so the place in row j only moves right; a cursor per row remembers it, and in a symmetric matrix the
 * next one wanted is the one at the cursor. The look-ups jump all over the matrix, so what comes up soon is
 * fetched ahead. Each thread has cursors of its own, as many threads as a third of the matrix's memory has
 * room for; without room for one set, every search starts at the row's beginning. */
#include "analysis/profile/parts.h"

#include "base/memory.h"
#include "base/real.h"

#include <omp.h>

enum { FAR = 96, NEAR = 48 }; /* nonzeros ahead: about the latency of memory over the time of one look-up */

/* Cursors are relative to their row and fit 32 bits: a row is no longer than the matrix is wide. */
struct search {
  const struct cb_csr *csr;
  uint32_t *cursors; /* NULL: none */
  struct cb_profile_symmetry found;
};

/* The first place from `from` on where `columns` reaches `column`, or count. Steps double, then a binary
 * search. */
static int64_t advance(const int32_t *columns, int64_t from, int64_t count, int64_t column) {
  int64_t step = 1;
  if (from >= count || columns[from] >= column) return from;
  while (from + step < count && columns[from + step] < column) {
    from += step;
    step *= 2;
  }
  int64_t end = from + step < count ? from + step : count; /* columns[from] < column <= columns[end] */
  while (end - from > 1) {
    const int64_t middle = from + (end - from) / 2;
    if (columns[middle] < column)
      from = middle;
    else
      end = middle;
  }
  return end;
}

static void fetch_ahead(const struct search *search, int64_t i, int64_t row) {
  const struct cb_csr *csr = search->csr;
  if (i + FAR >= csr->nnz) return;
  const int64_t far = csr->col_idx[i + FAR], near = csr->col_idx[i + NEAR];
  if (far > row) {
    __builtin_prefetch((const char *)csr->row_ptr + far * (csr->wide ? 8 : 4));
    if (search->cursors) __builtin_prefetch(search->cursors + far);
  }
  if (near > row)
    __builtin_prefetch(csr->col_idx + cb_csr_row(csr, near) + (search->cursors ? search->cursors[near] : 0));
}

/* Complex values count where both parts do. */
static void compare_pairs(struct search *search, const double *one, const double *other, int64_t entries) {
  int equal = 1, same = 1, negated = 1;
  for (int part = 0; part < 2; part++) {
    equal &= one[part] == other[part];
    same &= cb_real_bits(one[part]) == cb_real_bits(other[part]);
    negated &= one == other || one[part] == -other[part];
  }
  search->found.mirrored_equal += equal ? entries : 0;
  search->found.mirrored_same += same ? entries : 0;
  search->found.mirrored_negated += negated ? entries : 0;
  const int conjugated = one == other || (cb_real_bits(one[0]) == cb_real_bits(other[0]) && one[1] == -other[1]);
  search->found.mirrored_conjugated += conjugated ? entries : 0;
}

/* Entries i and j are each other's partners, or the same. */
static void compare_values(struct search *search, int64_t i, int64_t j) {
  const double *values = search->csr->values;
  const int64_t entries = i == j ? 1 : 2;
  if (!values) return;
  if (search->csr->is_complex) {
    compare_pairs(search, values + 2 * i, values + 2 * j, entries);
    return;
  }
  const uint64_t difference = cb_real_bits(values[i]) ^ cb_real_bits(values[j]);
  if (values[i] == values[j]) search->found.mirrored_equal += entries;
  if (!difference) search->found.mirrored_same += entries;
  if (i == j || difference == UINT64_C(1) << 63 || (values[i] == 0 && values[j] == 0))
    search->found.mirrored_negated += entries;
}

static void look_up(struct search *search, int64_t i, int64_t row, int64_t column) {
  const struct cb_csr *csr = search->csr;
  const int64_t begin = cb_csr_row(csr, column), count = cb_csr_row(csr, column + 1) - begin;
  const int64_t at = advance(csr->col_idx + begin, search->cursors ? search->cursors[column] : 0, count, row);
  const int found = at < count && csr->col_idx[begin + at] == row;
  if (search->cursors) search->cursors[column] = (uint32_t)(at + found);
  if (!found) return;
  search->found.mirrored += 2;
  compare_values(search, i, begin + at);
}

static void match_row(struct search *search, int64_t row) {
  const struct cb_csr *csr = search->csr;
  for (int64_t i = cb_csr_row(csr, row); i < cb_csr_row(csr, row + 1); i++) {
    const int64_t column = csr->col_idx[i];
    fetch_ahead(search, i, row);
    if (column > row) look_up(search, i, row, column);
    if (column != row) continue;
    search->found.mirrored++;
    compare_values(search, i, i);
  }
}

enum cb_status cb_symmetry_count(struct cb_profile_symmetry *symmetry, const struct cb_csr *csr, struct cb_diag *diag) {
  int64_t mirrored = 0, equal = 0, same = 0, negated = 0, conjugated = 0;
  *symmetry = (struct cb_profile_symmetry){.square = csr->rows == csr->cols};
  if (!symmetry->square) return CB_OK;
  const int sets = cb_profile_sets(csr, csr->rows);
  uint32_t *cursors = cb_calloc((size_t)sets * (size_t)csr->rows, sizeof *cursors);
  if (!cursors)
    return cb_fail_memory(diag, "symmetry", (unsigned long long)sets * (unsigned long long)csr->rows * 4);
#pragma omp parallel num_threads(sets ? sets : omp_get_max_threads()) \
    reduction(+ : mirrored, equal, same, negated, conjugated)
  {
    const int64_t me = omp_get_thread_num();
    struct search search = {.csr = csr, .cursors = sets ? cursors + me * csr->rows : NULL};
    const struct cb_profile_range rows = cb_profile_rows_of(csr, me, omp_get_num_threads());
    for (int64_t row = rows.first; row < rows.end; row++) match_row(&search, row);
    mirrored += search.found.mirrored;
    equal += search.found.mirrored_equal;
    same += search.found.mirrored_same;
    negated += search.found.mirrored_negated;
    conjugated += search.found.mirrored_conjugated;
  }
  cb_free(cursors);
  *symmetry = (struct cb_profile_symmetry){1, mirrored, equal, same, negated, conjugated};
  return CB_OK;
}

enum cb_status cb_profile_symmetry(struct cb_profile *profile, const struct cb_csr *csr, struct cb_diag *diag) {
  return cb_symmetry_count(&profile->symmetry, csr, diag);
}
