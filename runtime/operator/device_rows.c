// SPDX-License-Identifier: Apache-2.0
/* Rows by kernels: see device_rows.h. */
#include "runtime/operator/device_rows.h"

#include "analysis/stretches.h"
#include "base/integers.h"
#include "base/memory.h"
#include "runtime/operator/device_profile.h"

#include <string.h>

enum { DESCRIBE, OFFSETS, COUNT_EMPTY, LIST_EMPTY, SPANS, MEASURE, STORE, ROW_SPANS }; /* kernels of the set */
enum { WARP = 32, CHUNKS = CB_UNIT_WARPS, ROWS_OF_WARP = 1024, MOST_WARPS = 1 << 13, ALIGN = 256 };
_Static_assert(CB_SET_THREADS == CHUNKS * WARP, "a thread block takes a unit");

/* ---- lists */

static enum cb_status alloc_list(struct cb_survey *survey, struct cb_remote_list *list, int64_t count,
                                 struct cb_diag *diag) {
  cb_device_ptr *lists = cb_realloc(survey->lists, (size_t)survey->lists_count + 1, sizeof *lists);
  *list = (struct cb_remote_list){.count = count, .follows = 1};
  if (!lists) return cb_fail_memory(diag, "lists", (uint64_t)(survey->lists_count + 1) * sizeof *lists);
  survey->lists = lists;
  cb_device_ptr at = 0;
  const enum cb_status s =
      cb_device_alloc(survey->kernels->device, &at, (size_t)count * sizeof(uint32_t), "a list of the survey", diag);
  if (s) return s;
  survey->lists[survey->lists_count++] = at;
  list->at = at;
  return CB_OK;
}

struct measured { /* as the template has it */
  uint64_t base, step;
  uint32_t largest, breaks;
};

/* What the host must know of a list that is there. The work is free to be used. */
static enum cb_status measure(struct cb_survey *survey, const struct cb_kernels *kernels, struct cb_remote_list *list,
                              struct cb_diag *diag) {
  struct measured measured = {0};
  cb_device_ptr to = 0, from = list->at;
  int64_t count = list->count, warps = cb_smaller(MOST_WARPS, cb_divide_up(count, WARP));
  void *parameters[] = {&from, &count, &warps, &to};
  if (!count) return CB_OK;
  enum cb_status s = cb_survey_take_work(survey, &to, sizeof measured, diag);
  if (!s) s = cb_survey_clear(survey, to, sizeof measured, diag);
  if (!s) s = cb_kernels_launch(kernels, MEASURE, warps * WARP, NULL, parameters, diag);
  if (!s) s = cb_device_download(kernels->device, &measured, to, sizeof measured, "a list's measures", diag);
  list->base = measured.base;
  list->step = measured.step;
  list->largest = measured.largest;
  list->follows = !measured.breaks;
  return s;
}

enum cb_status cb_rows_elements(void *user, const struct cb_remote_list *list, uint32_t *elements,
                                struct cb_diag *diag) {
  const struct cb_survey *survey = user;
  const struct cb_device *device = survey->kernels->device;
  enum cb_status s = cb_device_enter(device, diag);
  if (s) return s;
  s = cb_device_download(device, elements, list->at, (size_t)list->count * sizeof *elements, "a list", diag);
  cb_device_leave(device);
  return s;
}

enum cb_status cb_rows_store(const struct cb_survey *survey, uint64_t list, int64_t count, cb_device_ptr to,
                             int64_t bytes, struct cb_diag *diag) {
  enum { OF_THREAD = 4 };
  const struct cb_kernels *kernels;
  cb_device_ptr from = list;
  void *parameters[] = {&from, &count, &bytes, &to};
  const enum cb_status s = survey->finder.find(survey->finder.user, "rows", &kernels, diag);
  return s ? s : cb_kernels_launch(kernels, STORE, cb_divide_up(count, OF_THREAD), NULL, parameters, diag);
}

/* ---- row ends */

/* Where they lie in the survey's work: units, then what chunks have, then whether there are gaps. */
struct places {
  cb_device_ptr units, first_row, row_count, first_end, gaps;
};

static enum cb_status take_places(struct cb_survey *survey, struct places *at, const struct cb_row_ends *ends,
                                  struct cb_diag *diag) {
  const int64_t units = cb_round_up(ends->units_count * (int64_t)sizeof *ends->units, ALIGN),
                chunks = cb_round_up((ends->units_count * CHUNKS + 1) * (int64_t)sizeof(uint32_t), ALIGN);
  const enum cb_status s = cb_survey_take_work(survey, &at->units, (size_t)(units + 3 * chunks + ALIGN), diag);
  at->first_row = at->units + (cb_device_ptr)units;
  at->row_count = at->first_row + (cb_device_ptr)chunks;
  at->first_end = at->row_count + (cb_device_ptr)chunks;
  at->gaps = at->first_end + (cb_device_ptr)chunks;
  return s;
}

static enum cb_status describe(struct cb_survey *survey, const struct cb_kernels *kernels, const struct places *at,
                               struct cb_row_ends *ends, struct cb_diag *diag) {
  const struct cb_device *device = kernels->device;
  struct cb_row_starts starts = cb_survey_starts(survey);
  struct places to = *at;
  int64_t rows = survey->view.rows, count = ends->units_count, items = ends->items;
  const size_t bytes = (size_t)(count * CHUNKS) * sizeof(uint32_t);
  cb_device_ptr descriptor = ends->descriptor.at;
  void *parameters[] = {&starts, &rows, &to.units, &count, &items, &descriptor, &to.first_row, &to.row_count};
  enum cb_status s =
      cb_device_upload(device, at->units, ends->units, (size_t)count * sizeof *ends->units, "units", diag);
  if (!s) s = cb_kernels_launch(kernels, DESCRIBE, count * CB_SET_THREADS, NULL, parameters, diag);
  if (!s) s = cb_device_download(device, ends->row_count, at->row_count, bytes, "row ends", diag);
  return s ? s : cb_device_download(device, ends->first_row, at->first_row, bytes, "row ends", diag);
}

static enum cb_status list_offsets(struct cb_survey *survey, const struct cb_kernels *kernels, const struct places *at,
                                   struct cb_row_ends *ends, struct cb_diag *diag) {
  const struct cb_device *device = kernels->device;
  struct cb_row_starts starts = cb_survey_starts(survey);
  struct places from = *at;
  int64_t rows = survey->view.rows, count = ends->units_count, items = ends->items;
  const size_t bytes = (size_t)(count * CHUNKS + 1) * sizeof(uint32_t);
  uint32_t gaps = 0;
  cb_device_ptr descriptor = ends->descriptor.at, offsets = ends->row_offset.at;
  void *parameters[] = {&starts,          &rows,           &from.units, &count,    &items, &descriptor,
                        &from.first_row, &from.first_end, &offsets,    &from.gaps};
  enum cb_status s = cb_device_upload(device, at->first_end, ends->first_end, bytes, "row ends", diag);
  if (!s) s = cb_survey_clear(survey, at->gaps, sizeof gaps, diag);
  if (!s) s = cb_kernels_launch(kernels, OFFSETS, count * CB_SET_THREADS, NULL, parameters, diag);
  if (!s) s = cb_device_download(device, &gaps, at->gaps, sizeof gaps, "row ends", diag);
  ends->gaps = gaps != 0;
  return s;
}

static enum cb_status find_ends(struct cb_survey *survey, const struct cb_kernels *kernels, struct cb_row_ends *ends,
                                struct cb_diag *diag) {
  const int64_t chunks = ends->units_count * CHUNKS;
  struct places at;
  enum cb_status s = alloc_list(survey, &ends->descriptor, chunks * WARP, diag);
  if (!s) s = take_places(survey, &at, ends, diag);
  if (!s) s = describe(survey, kernels, &at, ends, diag);
  if (s) return s;
  ends->first_end[0] = 0;
  for (int64_t c = 0; c < chunks; c++) ends->first_end[c + 1] = ends->first_end[c] + ends->row_count[c];
  s = alloc_list(survey, &ends->row_offset, ends->first_end[chunks], diag);
  if (!s) s = list_offsets(survey, kernels, &at, ends, diag);
  if (!s) s = measure(survey, kernels, &ends->descriptor, diag);
  return s || !ends->gaps ? s : measure(survey, kernels, &ends->row_offset, diag);
}

enum cb_status cb_rows_ends(void *user, struct cb_row_ends *ends, struct cb_diag *diag) {
  struct cb_survey *survey = user;
  const struct cb_kernels *kernels;
  enum cb_status s = cb_survey_open(survey, "rows", &kernels, diag);
  if (s) return s;
  s = find_ends(survey, kernels, ends, diag);
  cb_device_leave(survey->kernels->device);
  return s;
}

/* ---- rows without nonzeros */

/* Counts of warps become how many there are before each; returns how many there are. */
static int64_t sum_up(uint32_t *counts, int64_t warps) {
  uint32_t sum = 0;
  for (int64_t w = 0; w < warps; w++) {
    const uint32_t count = counts[w];
    counts[w] = sum;
    sum += count;
  }
  return sum;
}

static enum cb_status list_empty(struct cb_survey *survey, const struct cb_kernels *kernels, uint32_t *counts,
                                 struct cb_remote_list *list, struct cb_diag *diag) {
  const struct cb_device *device = kernels->device;
  struct cb_row_starts starts = cb_survey_starts(survey);
  int64_t rows = survey->view.rows, warps = cb_divide_up(rows, ROWS_OF_WARP);
  const size_t bytes = (size_t)warps * sizeof *counts;
  cb_device_ptr work = 0, to = 0;
  void *counting[] = {&starts, &rows, &work}, *listing[] = {&starts, &rows, &work, &to};
  enum cb_status s = cb_survey_take_work(survey, &work, bytes, diag);
  if (!s) s = cb_kernels_launch(kernels, COUNT_EMPTY, warps * WARP, NULL, counting, diag);
  if (!s) s = cb_device_download(device, counts, work, bytes, "counts of rows", diag);
  if (!s) s = alloc_list(survey, list, sum_up(counts, warps), diag);
  if (s || !list->count) return s;
  to = list->at;
  s = cb_device_upload(device, work, counts, bytes, "counts of rows", diag);
  if (!s) s = cb_kernels_launch(kernels, LIST_EMPTY, warps * WARP, NULL, listing, diag);
  return s ? s : measure(survey, kernels, list, diag);
}

enum cb_status cb_rows_empty(void *user, struct cb_remote_list *list, struct cb_diag *diag) {
  struct cb_survey *survey = user;
  const struct cb_kernels *kernels;
  uint32_t *counts = cb_alloc((size_t)cb_divide_up(survey->view.rows, ROWS_OF_WARP) + 1, sizeof *counts);
  enum cb_status s = counts ? cb_survey_open(survey, "rows", &kernels, diag) : cb_fail_memory(diag, "counts of rows", 0);
  if (!s) {
    s = list_empty(survey, kernels, counts, list, diag);
    cb_device_leave(survey->kernels->device);
  }
  cb_free(counts);
  return s;
}

/* ---- spans */

_Static_assert(sizeof(struct cb_ends) == 2 * sizeof(int64_t), "as the kernel writes it");

static enum cb_status find_spans(struct cb_survey *survey, const struct cb_kernels *kernels,
                                 const struct cb_unit *units, int64_t count, struct cb_ends *spans,
                                 struct cb_diag *diag) {
  const struct cb_device *device = kernels->device;
  struct cb_row_starts starts = cb_survey_starts(survey);
  const size_t taken = (size_t)cb_round_up(count * (int64_t)sizeof *units, ALIGN),
               bytes = (size_t)count * sizeof *spans;
  int64_t rows = survey->view.rows;
  cb_device_ptr work = 0, to = 0, first = cb_survey_ends(survey), last = first + (cb_device_ptr)rows * sizeof(int32_t);
  void *parameters[] = {&starts, &rows, &work, &count, &first, &last, &to};
  enum cb_status s = cb_survey_take_work(survey, &work, taken + bytes, diag);
  to = work + taken;
  if (!s) s = cb_device_upload(device, work, units, (size_t)count * sizeof *units, "units", diag);
  if (!s) s = cb_kernels_launch(kernels, SPANS, count * WARP, NULL, parameters, diag);
  return s ? s : cb_device_download(device, spans, to, bytes, "spans of columns", diag);
}

enum cb_status cb_rows_spans(void *user, const struct cb_unit *units, int64_t count, struct cb_ends *spans,
                             struct cb_diag *diag) {
  struct cb_survey *survey = user;
  const struct cb_kernels *kernels;
  enum cb_status s = cb_survey_open(survey, "rows", &kernels, diag);
  if (s) return s;
  s = find_spans(survey, kernels, units, count, spans, diag);
  cb_device_leave(survey->kernels->device);
  return s;
}

static enum cb_status find_row_spans(struct cb_survey *survey, const struct cb_kernels *kernels, int64_t each,
                                     int64_t count, struct cb_ends *spans, struct cb_diag *diag) {
  struct cb_row_starts starts = cb_survey_starts(survey);
  const size_t bytes = (size_t)count * sizeof *spans;
  int64_t rows = survey->view.rows;
  cb_device_ptr to = 0, first = cb_survey_ends(survey), last = first + (cb_device_ptr)rows * sizeof(int32_t);
  void *parameters[] = {&starts, &rows, &each, &count, &first, &last, &to};
  enum cb_status s = cb_survey_take_work(survey, &to, bytes, diag);
  if (!s) s = cb_kernels_launch(kernels, ROW_SPANS, count * WARP, NULL, parameters, diag);
  return s ? s : cb_device_download(kernels->device, spans, to, bytes, "spans of columns", diag);
}

enum cb_status cb_rows_row_spans(void *user, int64_t each, int64_t count, struct cb_ends *spans,
                                 struct cb_diag *diag) {
  struct cb_survey *survey = user;
  const struct cb_kernels *kernels;
  enum cb_status s = cb_survey_open(survey, "rows", &kernels, diag);
  if (s) return s;
  s = find_row_spans(survey, kernels, each, count, spans, diag);
  cb_device_leave(survey->kernels->device);
  return s;
}
