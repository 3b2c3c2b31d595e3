// SPDX-License-Identifier: Apache-2.0
/* The picture of a matrix: see spy.h. */
#include "analysis/plan/spy.h"

#include "analysis/plan/assignment.h"
#include "base/memory.h"

/* Cells of a side of `length` entries, whose other side has `other`. */
static int cells(int64_t length, int64_t other, int most) {
  const int64_t longest = length > other ? length : other;
  int64_t count = longest ? (length * most + longest - 1) / longest : 0;
  if (count < most / 4) count = most / 4;
  return (int)(count < length ? count : length);
}

static enum cb_status make(struct cb_spy *spy, int64_t rows, int64_t cols, int regions, struct cb_diag *diag) {
  const size_t count = (size_t)spy->height * (size_t)spy->width * (size_t)regions;
  spy->rows = rows;
  spy->cols = cols;
  spy->regions = regions;
  spy->counts = count ? cb_calloc(count, sizeof *spy->counts) : NULL;
  return !count || spy->counts ? CB_OK : cb_fail_memory(diag, "a picture of the matrix", count * sizeof *spy->counts);
}

/* The nonzeros of rows first … end - 1 of the part, which all are in one row of cells. */
static void count_rows(const struct cb_spy *spy, const struct cb_csr *part, int64_t first, int64_t end,
                       int64_t *counts) {
  for (int64_t k = cb_csr_row(part, first); k < cb_csr_row(part, end); k++)
    counts[(int64_t)part->col_idx[k] * spy->width / spy->cols]++;
}

static int64_t first_row_of(const struct cb_spy *spy, int64_t row) {
  return (row * spy->rows + spy->height - 1) / spy->height;
}

static void find_largest(struct cb_spy *spy) {
  for (int row = 0; row < spy->height; row++) {
    for (int col = 0; col < spy->width; col++) {
      int64_t all;
      cb_spy_owner(spy, row, col, &all);
      if (all > spy->largest) spy->largest = all;
    }
  }
}

enum cb_status cb_spy_count(struct cb_spy *spy, const struct cb_plan *plan, const struct cb_assignment *assignment,
                            int most, struct cb_diag *diag) {
  *spy = (struct cb_spy){.height = cells(plan->rows, plan->cols, most), .width = cells(plan->cols, plan->rows, most)};
  const enum cb_status s = make(spy, plan->rows, plan->cols, plan->regions_count, diag);
  if (s || !spy->counts) return s;
  for (int region = 0; region < spy->regions; region++) {
    const struct cb_csr *part = assignment->regions[region].part.csr;
    int64_t *counts = spy->counts + (int64_t)region * spy->height * spy->width;
#pragma omp parallel for schedule(dynamic, 1)
    for (int row = 0; row < spy->height; row++)
      count_rows(spy, part, first_row_of(spy, row), first_row_of(spy, row + 1), counts + (int64_t)row * spy->width);
  }
  find_largest(spy);
  return CB_OK;
}

enum cb_status cb_spy_reduce(struct cb_spy *reduced, const struct cb_spy *spy, int factor, struct cb_diag *diag) {
  *reduced = (struct cb_spy){.height = (spy->height + factor - 1) / factor,
                             .width = (spy->width + factor - 1) / factor};
  const enum cb_status s = make(reduced, spy->rows, spy->cols, spy->regions, diag);
  if (s || !reduced->counts) return s;
  for (int region = 0; region < spy->regions; region++)
    for (int row = 0; row < spy->height; row++)
      for (int col = 0; col < spy->width; col++)
        reduced->counts[((int64_t)region * reduced->height + row / factor) * reduced->width + col / factor] +=
            cb_spy_at(spy, region, row, col);
  find_largest(reduced);
  return CB_OK;
}

int cb_spy_owner(const struct cb_spy *spy, int row, int col, int64_t *all) {
  int owner = -1;
  int64_t most = 0;
  *all = 0;
  for (int region = 0; region < spy->regions; region++) {
    const int64_t count = cb_spy_at(spy, region, row, col);
    *all += count;
    if (count <= most) continue;
    most = count;
    owner = region;
  }
  return owner;
}

void cb_spy_release(struct cb_spy *spy) {
  cb_free(spy->counts);
  *spy = (struct cb_spy){0};
}
