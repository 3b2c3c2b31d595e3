// SPDX-License-Identifier: Apache-2.0
/* cbgen report: where the nonzeros are, and how rows and diagonals are filled. */
#include "tool/report.h"

#include "analysis/layout.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COLORS = 8, STRENGTHS = 4, DIAGONALS_SHOWN = 10, LENGTHS_SHOWN = 24 };

static int color_of(int region) {
  return region % COLORS;
}

/* ---- the drawing: a path for each region and strength, which goes from run to run of equal cells */

/* A path under construction: the pen stands behind the last run. */
struct pen {
  struct cb_text path;
  int row, col;
};

static void draw_run(struct pen *pen, int row, int col, int length) {
  if (pen->path.length && pen->row == row) cb_text_add(&pen->path, "m%d 0h%d", col - pen->col, length);
  else cb_text_add(&pen->path, "M%d %dh%d", col, row, length);
  pen->row = row;
  pen->col = col + length;
}

/* What a cell shows: 0: nothing; else 1 + STRENGTHS · region + strength, which rises with the cell's nonzeros. */
static int shown(const struct cb_spy *spy, int only, int row, int col) {
  int64_t all, count;
  int owner = cb_spy_owner(spy, row, col, &all);
  if (only >= 0) owner = cb_spy_at(spy, only, row, col) ? only : -1;
  if (owner < 0) return 0;
  count = only >= 0 ? cb_spy_at(spy, only, row, col) : all;
  const double share = (double)count / (double)spy->largest;
  return 1 + STRENGTHS * owner + (share >= 1.0 / 64) + (share >= 1.0 / 8) + (share >= 1.0 / 2);
}

static void draw_row(struct pen *pens, const struct cb_spy *spy, int only, int row) {
  for (int col = 0, end; col < spy->width; col = end) {
    const int what = shown(spy, only, row, col);
    for (end = col + 1; end < spy->width && shown(spy, only, row, end) == what;) end++;
    if (what) draw_run(&pens[what - 1], row, col, end - col);
  }
}

static void add_region(struct cb_html *groups, const struct cb_report_page *page, struct pen *pens, int region) {
  struct cb_html cells = cb_report_own(page);
  int drawn = 0;
  for (int strength = 0; strength < STRENGTHS; strength++) {
    struct pen *pen = &pens[STRENGTHS * region + strength];
    if (pen->path.failed && !cells.status) cells.status = cb_fail_memory(cells.diag, "a drawing", pen->path.length);
    if (!pen->path.length) continue;
    drawn = 1;
    cb_html_set(&cells, "color", "%d", color_of(region));
    cb_html_set(&cells, "strength", "%d", strength);
    cb_html_markup(&cells, "PATH", cb_text_string(&pen->path));
    cb_html_add(&cells, "cells");
  }
  cb_html_set(groups, "number", "%d", region);
  cb_html_markup(groups, "PATHS", cb_html_take(&cells, groups));
  if (drawn) cb_html_add_inline(groups, "region_cells");
  groups->scope.count = 0;
  cb_html_release(&cells);
}

/* Width by height of the drawing, between 1 : 4 and 4 : 1. */
static double aspect_of(const struct cb_spy *spy) {
  const double aspect = spy->rows && spy->cols ? (double)spy->cols / (double)spy->rows : 1;
  return fmin(fmax(aspect, 0.25), 4);
}

/* All regions, or one of them. */
static void add_spy(struct cb_html *drawing, const struct cb_report_page *page, const struct cb_spy *spy, int only,
                    const char *label) {
  struct cb_html groups = cb_report_own(page);
  struct pen *pens = cb_calloc((size_t)(spy->regions ? spy->regions : 1) * STRENGTHS, sizeof *pens);
  if (!pens) groups.status = cb_fail_memory(groups.diag, "a drawing", 0);
  for (int row = 0; pens && row < spy->height; row++) draw_row(pens, spy, only, row);
  for (int region = 0; pens && region < spy->regions; region++) add_region(&groups, page, pens, region);
  cb_html_set(drawing, "width", "%d", spy->width ? spy->width : 1);
  cb_html_set(drawing, "height", "%d", spy->height ? spy->height : 1);
  cb_html_set(drawing, "aspect", "%.4g", aspect_of(spy));
  cb_html_set(drawing, "label", "%s", label);
  cb_html_markup(drawing, "PATHS", cb_html_take(&groups, drawing));
  cb_html_add_inline(drawing, "spy");
  for (int i = 0; pens && i < spy->regions * STRENGTHS; i++) cb_text_release(&pens[i].path);
  cb_free(pens);
  cb_html_release(&groups);
}

/* ---- what is said of it */

static void say_cells(struct cb_html *html, const struct cb_report *report) {
  const struct cb_spy *spy = &report->spy;
  const char *mixed = spy->regions > 1 ? " A cell has the colour of the region that holds most of its nonzeros." : "";
  if (!report->job.csr.nnz)
    cb_html_set(html, "spy_words", "The matrix has no nonzeros.");
  else if (spy->height == spy->rows && spy->width == spy->cols)
    cb_html_set(html, "spy_words", "Each cell of the drawing is one entry of the matrix.");
  else
    cb_html_set(html, "spy_words",
                "Drawn in %d × %d cells: the matrix is larger, so each cell stands for about %s × %s entries. All nonzeros "
                "are counted; the colour is stronger where there are more.%s",
                spy->height, spy->width, cb_report_short((char[48]){0}, (double)spy->rows / spy->height),
                cb_report_short((char[48]){0}, (double)spy->cols / spy->width), mixed);
}

static void add_region_rows(struct cb_html *rows, const struct cb_report *report) {
  const struct cb_plan *plan = report->job.plan;
  for (int i = 0; i < plan->regions_count; i++) {
    const struct cb_region *region = &plan->regions[i];
    const struct cb_layout *layout = cb_layout_find(region->layout);
    char number[48], bytes[24];
    cb_human_bytes(bytes, region->bytes);
    cb_html_set(rows, "color", "%d", color_of(i));
    cb_html_set(rows, "number", "%d", i);
    cb_html_set(rows, "name", "%s", region->name);
    cb_html_set(rows, "layout", "%s", region->layout);
    cb_html_set(rows, "summary", "%s", layout ? layout->summary : "");
    cb_html_set(rows, "nonzeros", "%s", cb_report_count(number, region->nonzeros));
    cb_html_set(rows, "share", "%s", cb_report_share(number, region->nonzeros, plan->nnz));
    cb_html_set(rows, "bytes", "%s", bytes);
    cb_html_set(rows, "each", "%.2f", region->nonzeros ? (double)region->bytes / (double)region->nonzeros : 0);
    cb_html_set(rows, "time", "%.2f", 1e-3 * (double)region->cost.ns);
    cb_html_add(rows, "region_row");
  }
}

/* With several regions: a choice of what the drawing shows, and a drawing of each. */
static void add_single_regions(struct cb_html *choices, struct cb_html *small, const struct cb_report_page *page,
                               const struct cb_report *report) {
  const struct cb_plan *plan = report->job.plan;
  for (int i = 0; i < plan->regions_count; i++) {
    struct cb_html drawing = cb_report_own(page);
    char label[96], number[48];
    snprintf(label, sizeof label, "Nonzeros of region %d, %s", i, plan->regions[i].name);
    add_spy(&drawing, page, &report->small, i, label);
    cb_html_set(choices, "number", "%d", i);
    cb_html_set(choices, "name", "%s", plan->regions[i].name);
    cb_html_add(choices, "region_choice");
    cb_html_set(small, "color", "%d", color_of(i));
    cb_html_set(small, "number", "%d", i);
    cb_html_set(small, "name", "%s", plan->regions[i].name);
    cb_html_set(small, "share", "%s", cb_report_share(number, plan->regions[i].nonzeros, plan->nnz));
    cb_html_markup(small, "SPY", cb_html_take(&drawing, small));
    cb_html_add(small, "small_spy");
    cb_html_release(&drawing);
  }
}

/* ---- histograms */

static int64_t largest_of(const int64_t *counts, int count) {
  int64_t largest = 0;
  for (int i = 0; i < count; i++) largest = counts[i] > largest ? counts[i] : largest;
  return largest;
}

static void range_text(char text[112], int64_t least, int64_t most) {
  char one[48], other[48];
  cb_report_count(one, least);
  cb_report_count(other, most);
  if (least == most) snprintf(text, 112, "%s", one);
  else snprintf(text, 112, "%s to %s", one, other);
}

static void add_bin(struct cb_html *rows, int64_t least, int64_t most, int64_t count, int64_t largest, int64_t all) {
  char label[112], number[48], share[48];
  range_text(label, least, most);
  const struct cb_report_bar bar = {.label = label,
                                    .count = cb_report_count(number, count),
                                    .share = cb_report_share(share, count, all),
                                    .class = "r0",
                                    .width = largest ? 100.0 * (double)count / (double)largest : 0};
  cb_report_bar(rows, &bar);
}

/* The bins from the first to the last that is not empty. */
static void populated(const int64_t *counts, int count, int *first, int *end) {
  for (*first = 0; *first < count && !counts[*first];) ++*first;
  for (*end = count; *end > *first && !counts[*end - 1];) --*end;
}

/* Every length for itself where there are few; else those between powers of two together. */
static void add_row_lengths(struct cb_html *rows, const struct cb_report *report) {
  const struct cb_profile *profile = &report->profile;
  const struct cb_csr *csr = &report->job.csr;
  int64_t lengths[LENGTHS_SHOWN] = {0};
  const int64_t *bins = profile->row.bins, least = profile->row.shortest, kinds = profile->row.longest - least + 1;
  int first, end;
  if (kinds > LENGTHS_SHOWN) {
    populated(bins, CB_PROFILE_LENGTH_BINS, &first, &end);
    for (int i = first; i < end; i++)
      add_bin(rows, i ? INT64_C(1) << (i - 1) : 0, i ? (INT64_C(1) << i) - 1 : 0, bins[i],
              largest_of(bins, CB_PROFILE_LENGTH_BINS), csr->rows);
    return;
  }
  for (int64_t row = 0; row < csr->rows; row++) lengths[cb_csr_row_length(csr, row) - least]++;
  for (int i = 0; i < kinds && csr->rows; i++)
    add_bin(rows, least + i, least + i, lengths[i], largest_of(lengths, LENGTHS_SHOWN), csr->rows);
}

static void add_offsets(struct cb_html *rows, const struct cb_report *report) {
  const int64_t largest = largest_of(report->offsets, CB_OFFSETS_BINS);
  int first, end;
  populated(report->offsets, CB_OFFSETS_BINS, &first, &end);
  for (int i = first; i < end; i++) {
    int64_t least, most;
    cb_offsets_of_bin(i, &least, &most);
    add_bin(rows, least, most, report->offsets[i], largest, report->job.csr.nnz);
  }
}

static void add_diagonals(struct cb_html *rows, const struct cb_profile_diagonals *diagonal) {
  for (int i = 0; i < diagonal->fullest_count && i < DIAGONALS_SHOWN; i++) {
    const struct cb_profile_diagonal *one = &diagonal->fullest[i];
    char label[48], number[48], share[48];
    const struct cb_report_bar bar = {.label = cb_report_count(label, one->offset),
                                      .count = cb_report_count(number, one->nonzeros),
                                      .share = cb_report_share(share, one->nonzeros, one->length),
                                      .class = "r0",
                                      .width = 100 * cb_profile_share(one->nonzeros, one->length)};
    cb_report_bar(rows, &bar);
  }
}

static void say_rows(struct cb_html *html, const struct cb_profile *profile) {
  const struct cb_profile_rows *row = &profile->row;
  char empty[48];
  cb_html_set(html, "rows_words",
              "%lld to %lld nonzeros, mean %.1f. Half of the rows have %lld or fewer, 99 %% have %lld or fewer. %s rows are "
              "empty.",
              (long long)row->shortest, (long long)row->longest, row->mean, (long long)row->median, (long long)row->p99,
              row->empty ? cb_report_count(empty, row->empty) : "No");
}

static void say_offsets(struct cb_html *html, const struct cb_profile *profile) {
  char populated_text[48], lower[48], upper[48];
  cb_html_set(html, "offsets_words",
              "%s diagonals have a nonzero. The band reaches %s below the main diagonal and %s above it.",
              cb_report_count(populated_text, profile->diagonal.populated),
              cb_report_count(lower, profile->diagonal.lower), cb_report_count(upper, profile->diagonal.upper));
}

void cb_report_matrix(struct cb_report_page *page, const struct cb_report *report) {
  const struct cb_plan *plan = report->job.plan;
  struct cb_html *html = &page->html;
  char label[256];
  snprintf(label, sizeof label, "Nonzeros of %s by region", report->job.name);
  say_cells(html, report);
  add_spy(cb_report_pieces(page, "SPY"), page, &report->spy, -1, label);
  add_region_rows(cb_report_pieces(page, "REGIONS"), report);
  if (plan->regions_count > 1) {
    struct cb_html *choices = cb_report_pieces(page, "CHOICES");
    add_single_regions(choices, cb_report_pieces(page, "SMALL"), page, report);
    cb_html_has(html, "choices");
    cb_html_has(html, "small");
  }
  say_rows(html, &report->profile);
  say_offsets(html, &report->profile);
  add_row_lengths(cb_report_pieces(page, "ROWS"), report);
  add_offsets(cb_report_pieces(page, "OFFSETS"), report);
  add_diagonals(cb_report_pieces(page, "DIAGONALS"), &report->profile.diagonal);
}
