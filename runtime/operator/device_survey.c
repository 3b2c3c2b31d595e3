// SPDX-License-Identifier: Apache-2.0
/* A matrix on the device, looked at by kernels: see device_survey.h. */
#include "runtime/operator/device_survey.h"
#include "runtime/operator/device_columns.h"
#include "runtime/operator/device_profile.h"
#include "runtime/operator/device_rows.h"

#include "analysis/diagonals.h"
#include "analysis/tiles.h"
#include "base/integers.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 0, ROWS = 2, FETCH = 6 }; /* kernels of the set: the first of each kind */
enum { CHUNK = 4096, WARP = 32 };          /* nonzeros of a warp, as the template has it */
enum { SEGMENTS = 64, SEGMENT_LOG2 = 31 };
enum { PINNED_ALIGN = 64 };

struct findings { /* as the template has it */
  uint32_t unfit, pad, falls[SEGMENTS], begins[SEGMENTS];
};

static cb_device_ptr address(const void *pointer) { return (cb_device_ptr)(uintptr_t)pointer; }

/* ---- a matrix on the host */

static enum cb_status copy_array(struct cb_survey *survey, int number, const void **array, int64_t count, size_t size,
                                 const char *what, struct cb_diag *diag) {
  const struct cb_device *device = survey->kernels->device;
  const size_t bytes = (size_t)count * size;
  if (!*array) return CB_OK;
  enum cb_status s = cb_device_alloc(device, &survey->copies[number], bytes, what, diag);
  if (!s) s = cb_device_upload(device, survey->copies[number], *array, bytes, what, diag);
  *array = (const void *)(uintptr_t)survey->copies[number];
  return s;
}

static enum cb_status copy_view(struct cb_survey *survey, struct cb_diag *diag) {
  struct cb_view *view = &survey->view;
  if (view->on_device) return CB_OK;
  enum cb_status s =
      copy_array(survey, 0, &view->row_ptr, view->rows + 1, view->row_wide ? 8 : 4, "row pointers", diag);
  if (!s) s = copy_array(survey, 1, &view->col_idx, view->nnz, view->col_wide ? 8 : 4, "column indices", diag);
  if (!s) s = copy_array(survey, 2, &view->values, view->nnz, cb_type_size(view->value_type), "values", diag);
  view->on_device = 1;
  view->stream = NULL;
  return s;
}

/* ---- kernels */

static enum cb_status survey_columns(const struct cb_survey *survey, cb_device_ptr findings, struct cb_diag *diag) {
  const struct cb_view *view = &survey->view;
  cb_device_ptr columns = address(view->col_idx);
  int64_t base = view->base, nnz = view->nnz, cols = view->cols;
  void *parameters[] = {&columns, &base, &nnz, &cols, &findings};
  return cb_kernels_launch(survey->kernels, COLUMNS + view->col_wide, cb_divide_up(nnz, CHUNK) * WARP, view->stream,
                           parameters, diag);
}

static enum cb_status survey_rows(const struct cb_survey *survey, cb_device_ptr ends, cb_device_ptr findings,
                                  struct cb_diag *diag) {
  const struct cb_view *view = &survey->view;
  cb_device_ptr row_ptr = address(view->row_ptr), columns = address(view->col_idx);
  int64_t base = view->base, rows = view->rows, nnz = view->nnz, wide = survey->wide;
  struct {
    cb_device_ptr starts, first, last;
  } to = {survey->starts, ends, ends + (cb_device_ptr)rows * sizeof(int32_t)};
  void *parameters[] = {&row_ptr, &columns, &base, &rows, &nnz, &wide, &to, &findings};
  return cb_kernels_launch(survey->kernels, ROWS + 2 * view->row_wide + view->col_wide, rows + 1, view->stream,
                           parameters, diag);
}

/* Of `scratch`: findings, sums of groups, ends of rows. */
static size_t sums_place(void) { return (size_t)cb_round_up(sizeof(struct findings), PINNED_ALIGN); }
static size_t ends_place(void) { return sums_place() + (size_t)cb_round_up(CB_SURVEY_SUMS, PINNED_ALIGN); }

cb_device_ptr cb_survey_sums(const struct cb_survey *survey) { return survey->scratch + sums_place(); }
cb_device_ptr cb_survey_ends(const struct cb_survey *survey) { return survey->scratch + ends_place(); }

enum cb_status cb_survey_open(const struct cb_survey *survey, const char *set, const struct cb_kernels **kernels,
                              struct cb_diag *diag) {
  enum cb_status s = cb_device_enter(survey->kernels->device, diag);
  if (s) return s;
  s = survey->finder.find(survey->finder.user, set, kernels, diag);
  if (s) cb_device_leave(survey->kernels->device);
  return s;
}

/* Whether the matrix is what analysis takes. */
static enum cb_status judge(int is_fit, int ascends, struct cb_diag *diag) {
  if (!is_fit) return cb_fail(diag, CB_ERR_UNSUPPORTED, "its row pointers or columns are not those of a matrix");
  if (!ascends) return cb_fail(diag, CB_ERR_UNSUPPORTED, "its rows do not ascend strictly");
  return CB_OK;
}

static enum cb_status judge_findings(const struct findings *findings, struct cb_diag *diag) {
  int ascends = 1;
  for (int i = 0; i < SEGMENTS; i++) ascends &= findings->falls[i] == findings->begins[i];
  return judge(!findings->unfit, ascends, diag);
}

void *cb_survey_bring_later(struct cb_survey *survey, cb_device_ptr from, size_t bytes, cb_cu_result *result) {
  const size_t place = (size_t)cb_round_up((int64_t)survey->pinned_taken, PINNED_ALIGN);
  unsigned char *pinned = survey->finder.pinned;
  if (!pinned || *result || place + bytes > survey->finder.pinned_bytes) return NULL;
  *result = survey->kernels->device->driver->call.copy_to_host_async(pinned + place, from, bytes, NULL);
  survey->pinned_taken = place + bytes;
  return *result ? NULL : pinned + place;
}

static size_t row_pointer_bytes(const struct cb_survey *survey) {
  return (size_t)(survey->view.rows + 1) * (survey->wide ? 8 : 4);
}

/* The findings; and if the matrix is to come to the host, with the same wait row pointers and columns, which are of no
 * use where it is unfit. */
static enum cb_status bring(struct cb_survey *survey, struct findings *findings, int is_near, struct cb_diag *diag) {
  const struct cb_view *view = &survey->view;
  const struct cb_device *device = survey->kernels->device;
  cb_cu_result result = CB_CU_SUCCESS;
  const void *pinned =
      is_near ? cb_survey_bring_later(survey, survey->scratch, sizeof *findings, &result) : NULL;
  if (!pinned) return cb_device_download(device, findings, survey->scratch, sizeof *findings, "the survey", diag);
  survey->pinned_rows = cb_survey_bring_later(survey, survey->starts, row_pointer_bytes(survey), &result);
  if (survey->pinned_rows && !view->col_wide)
    survey->pinned_columns = cb_survey_bring_later(survey, address(view->col_idx), (size_t)view->nnz * 4, &result);
  if (!result) result = device->driver->call.stream_synchronize(NULL);
  memcpy(findings, pinned, sizeof *findings);
  return cb_driver_check(device->driver, result, diag, "copy 'the survey' from GPU %d", device->ordinal);
}

/* Whether the host has the matrix already, and looks at it itself. */
static int is_brought(const struct cb_survey *survey) { return survey->finder.brought.columns != NULL; }

/* Whether row pointers are the caller's own: what a kernel would write is what stands there. */
static int is_in_place(const struct cb_survey *survey) {
  return is_brought(survey) && !survey->view.row_wide && !survey->view.base && !survey->keeps;
}

/* Runs the kernels; what they write is in `scratch`: findings, then ends of rows. */
static enum cb_status look(const struct cb_survey *survey, struct cb_diag *diag) {
  const cb_device_ptr scratch = survey->scratch;
  const struct cb_device *device = survey->kernels->device;
  const struct cb_driver *driver = device->driver;
  struct CUstream_st *stream = survey->view.stream;
  const cb_cu_result result = driver->call.fill_bytes_async(scratch, 0, sizeof(struct findings), stream);
  enum cb_status s = cb_driver_check(driver, result, diag, "clear the survey on GPU %d", device->ordinal);
  if (!s && !is_brought(survey)) s = survey_columns(survey, scratch, diag);
  if (!s) s = survey_rows(survey, cb_survey_ends(survey), scratch, diag);
  if (!s && stream) s = cb_driver_check(driver, driver->call.stream_synchronize(stream), diag, "survey the matrix");
  return s;
}

/* ---- columns that analysis asks for */

/* What was taken before is no longer needed: calls of `remote` follow one another. */
enum cb_status cb_survey_take_work(struct cb_survey *survey, cb_device_ptr *work, size_t bytes, struct cb_diag *diag) {
  enum { LEAST = 1 << 17 }; /* from 1 MiB on the driver maps memory of its own, which takes 0.1 to 0.2 ms */
  const struct cb_device *device = survey->kernels->device;
  if (bytes > survey->work_bytes) {
    const size_t room = bytes > LEAST ? bytes : LEAST;
    cb_device_give_back(device, survey->work); /* what was there has been downloaded */
    survey->work = 0;
    survey->work_bytes = 0;
    const enum cb_status s = cb_device_borrow(device, &survey->work, room, "the survey", diag);
    if (s) return s;
    survey->work_bytes = room;
  }
  *work = survey->work;
  return CB_OK;
}

enum cb_status cb_survey_clear(const struct cb_survey *survey, cb_device_ptr at, size_t bytes, struct cb_diag *diag) {
  const struct cb_device *device = survey->kernels->device;
  return cb_driver_check(device->driver, device->driver->call.fill_bytes_async(at, 0, bytes, NULL), diag,
                         "clear the survey on GPU %d", device->ordinal);
}

static enum cb_status upload_stretches(const struct cb_survey *survey, const struct cb_stretches *to,
                                       const struct cb_stretch *stretches, int64_t count, struct cb_diag *diag) {
  const size_t bytes = (size_t)(2 * count + 1) * sizeof(int64_t);
  int64_t *numbers = cb_alloc(bytes, 1); /* begins, then places */
  if (!numbers) return cb_fail_memory(diag, "a list of columns", bytes);
  int64_t place = 0;
  for (int64_t i = 0; i < count; i++) {
    numbers[i] = stretches[i].begin;
    numbers[count + i] = place;
    place += stretches[i].length;
  }
  numbers[2 * count] = place;
  const enum cb_status s =
      cb_device_upload(survey->kernels->device, to->begins, numbers, bytes, "a list of columns", diag);
  cb_free(numbers);
  return s;
}

enum cb_status cb_stretches_put(struct cb_survey *survey, struct cb_stretches *to, const struct cb_stretch *stretches,
                                int64_t count, size_t head, size_t size, struct cb_diag *diag) {
  enum { ALIGN = 256 };
  const size_t lists = (size_t)cb_round_up((2 * count + 1) * (int64_t)sizeof(int64_t), ALIGN);
  cb_device_ptr work = 0;
  int64_t total = 0;
  for (int64_t i = 0; i < count; i++) total += stretches[i].length;
  enum cb_status s = cb_survey_take_work(survey, &work, lists + head + (size_t)total * size, diag);
  if (s) return s;
  *to = (struct cb_stretches){work, work + (cb_device_ptr)count * sizeof(int64_t), work + lists, work + lists + head,
                              total};
  if (head) s = cb_survey_clear(survey, to->head, head, diag);
  return s ? s : upload_stretches(survey, to, stretches, count, diag);
}

static enum cb_status fetch_there(struct cb_survey *survey, const struct cb_stretch *stretches, int64_t count,
                                  int32_t *columns, struct cb_diag *diag) {
  const struct cb_view *view = &survey->view;
  struct cb_stretches there;
  cb_device_ptr from = address(view->col_idx);
  int64_t base = view->base;
  void *parameters[] = {&from, &base, &there.begins, &there.places, &count, &there.list};
  enum cb_status s = cb_stretches_put(survey, &there, stretches, count, 0, sizeof *columns, diag);
  if (!s)
    s = cb_kernels_launch(survey->kernels, FETCH + view->col_wide, count * CB_SET_THREADS, NULL, parameters, diag);
  if (s) return s;
  return cb_device_download(survey->kernels->device, columns, there.list, (size_t)there.total * sizeof *columns,
                            "columns", diag);
}

static enum cb_status fetch(void *user, const struct cb_stretch *stretches, int64_t count, int32_t *columns,
                            struct cb_diag *diag) {
  struct cb_survey *survey = user;
  const int32_t *near = survey->near.col_idx;
  for (int64_t i = 0; i < count && near; columns += stretches[i++].length)
    memcpy(columns, near + stretches[i].begin, (size_t)stretches[i].length * sizeof *columns);
  if (near) return CB_OK;
  enum cb_status s = cb_device_enter(survey->kernels->device, diag);
  if (s) return s;
  s = fetch_there(survey, stretches, count, columns, diag);
  cb_device_leave(survey->kernels->device);
  return s;
}

/* ---- diagonals */

enum { COUNT = 0, LIST = 2, MOST_LISTED = 1 << 16 }; /* kernels of the set; diagonals that a list has room for */

/* What the kernels write: how many diagonals they found, the list, and nonzeros by key. */
struct listed {
  cb_device_ptr count, list, counters;
};

static enum cb_status run_diagonals(const struct cb_survey *survey, const struct cb_kernels *kernels,
                                    const struct listed *to, int64_t keys, int64_t least, struct cb_diag *diag) {
  const struct cb_view *view = &survey->view;
  cb_device_ptr columns = address(view->col_idx), counters = to->counters, list = to->list, found = to->count;
  struct {
    cb_device_ptr narrow, wide;
  } starts = {survey->wide ? 0 : survey->starts, survey->wide ? survey->starts : 0};
  int64_t base = view->base, rows = view->rows, most = MOST_LISTED;
  void *counting[] = {&starts, &columns, &base, &rows, &counters},
       *listing[] = {&counters, &keys, &least, &most, &list, &found};
  const enum cb_status s = cb_kernels_launch(kernels, COUNT + view->col_wide, rows, NULL, counting, diag);
  return s ? s : cb_kernels_launch(kernels, LIST, keys, NULL, listing, diag);
}

static int by_key(const void *left, const void *right) {
  const int64_t a = ((const struct cb_diagonal *)left)->key, b = ((const struct cb_diagonal *)right)->key;
  return (a > b) - (a < b);
}

/* The list, in order. */
static enum cb_status bring_diagonals(const struct cb_device *device, const struct listed *from,
                                      struct cb_diagonal **list, int64_t *count, struct cb_diag *diag) {
  uint32_t found = 0;
  enum cb_status s = cb_device_download(device, &found, from->count, sizeof found, "diagonals", diag);
  if (!s && found > MOST_LISTED)
    s = cb_fail(diag, CB_ERR_LIMIT, "%u diagonals are more than %d", found, MOST_LISTED);
  if (s) return s;
  struct cb_diagonal *all = cb_alloc((size_t)found, sizeof *all);
  if (!all) return cb_fail_memory(diag, "diagonals", found * sizeof *all);
  s = cb_device_download(device, all, from->list, found * sizeof *all, "diagonals", diag);
  if (s) {
    cb_free(all);
    return s;
  }
  qsort(all, found, sizeof *all, by_key);
  *list = all;
  *count = found;
  return CB_OK;
}

static enum cb_status find_diagonals(struct cb_survey *survey, int64_t least, struct cb_diagonal **list,
                                     int64_t *count, struct cb_diag *diag) {
  const struct cb_device *device = survey->kernels->device;
  const int64_t keys = survey->view.rows + survey->view.cols;
  const size_t head = 256 + MOST_LISTED * sizeof(struct cb_diagonal), bytes = head + (size_t)keys * sizeof(uint32_t);
  const struct cb_kernels *kernels;
  cb_device_ptr block = 0;
  enum cb_status s = survey->finder.find(survey->finder.user, "diagonals", &kernels, diag);
  if (!s) s = cb_survey_take_work(survey, &block, bytes, diag);
  if (!s) s = cb_survey_clear(survey, block, bytes, diag);
  const struct listed to = {block, block + 256, block + head};
  if (!s) s = run_diagonals(survey, kernels, &to, keys, least, diag);
  return s ? s : bring_diagonals(device, &to, list, count, diag);
}

static enum cb_status list_diagonals(void *user, int64_t least, struct cb_diagonal **list, int64_t *count,
                                     struct cb_diag *diag) {
  struct cb_survey *survey = user;
  if (survey->near.col_idx) return cb_diagonals_list(list, count, &survey->near, least, diag);
  enum cb_status s = cb_device_enter(survey->kernels->device, diag);
  if (s) return s;
  s = find_diagonals(survey, least, list, count, diag);
  cb_device_leave(survey->kernels->device);
  return s;
}

/* ---- tiles */

/* As the kernel writes it, and analysis has it: four counts of 64 bits. */
_Static_assert(sizeof(struct cb_tile_census) == 32, "four counts");

static enum cb_status run_tiles(const struct cb_survey *survey, const struct cb_tile_size *size, int64_t fill,
                                int64_t stride, cb_device_ptr by_row, cb_device_ptr census, struct cb_diag *diag) {
  const struct cb_view *view = &survey->view;
  const struct cb_kernels *kernels;
  struct {
    cb_device_ptr narrow, wide;
  } starts = {survey->wide ? 0 : survey->starts, survey->wide ? survey->starts : 0};
  cb_device_ptr columns = address(view->col_idx);
  const int64_t tile_rows = cb_divide_up(view->rows, size->rows), chunks = cb_divide_up(tile_rows, CB_TILE_CHUNK);
  int64_t base = view->base, rows = view->rows, height = size->rows, width = size->cols;
  void *parameters[] = {&starts, &columns, &base, &rows, &height, &width, &fill, &stride, &by_row, &census};
  const enum cb_status s = survey->finder.find(survey->finder.user, "tiles", &kernels, diag);
  return s ? s : cb_kernels_launch(kernels, view->col_wide, cb_divide_up(chunks, stride) * CB_TILE_CHUNK, NULL,
                                   parameters, diag);
}

static enum cb_status find_tiles(struct cb_survey *survey, const struct cb_tile_size *size, int64_t fill,
                                 int64_t stride, uint32_t *by_row, struct cb_tile_census *census,
                                 struct cb_diag *diag) {
  const struct cb_device *device = survey->kernels->device;
  const size_t head = 256, rows = by_row ? (size_t)cb_divide_up(survey->view.rows, size->rows) * sizeof *by_row : 0;
  cb_device_ptr block = 0;
  enum cb_status s = cb_survey_take_work(survey, &block, head + rows, diag);
  if (!s) s = cb_survey_clear(survey, block, head, diag);
  if (!s) s = run_tiles(survey, size, fill, stride, by_row ? block + head : 0, block, diag);
  if (!s) s = cb_device_download(device, census, block, sizeof *census, "counts of tiles", diag);
  if (!s && by_row) s = cb_device_download(device, by_row, block + head, rows, "counts of tiles", diag);
  return s;
}

static enum cb_status count_tiles(void *user, const struct cb_tile_size *size, int64_t fill, int64_t stride,
                                  uint32_t *by_row, struct cb_tile_census *census, struct cb_diag *diag) {
  struct cb_survey *survey = user;
  if (survey->near.col_idx) {
    *census = cb_tiles_count(&survey->near, *size, fill, stride, by_row);
    return CB_OK;
  }
  enum cb_status s = cb_device_enter(survey->kernels->device, diag);
  if (s) return s;
  s = find_tiles(survey, size, fill, stride, by_row, census, diag);
  cb_device_leave(survey->kernels->device);
  return s;
}

/* ---- rows, and the whole */

static enum cb_status bring_rows(struct cb_survey *survey, struct cb_diag *diag) {
  struct cb_csr *csr = survey->csr;
  const size_t bytes = row_pointer_bytes(survey);
  void *rows = cb_alloc(bytes, 1);
  if (!rows) return cb_fail_memory(diag, "row pointers", bytes);
  enum cb_status s = CB_OK;
  if (survey->pinned_rows) memcpy(rows, survey->pinned_rows, bytes);
  else s = cb_device_download(survey->kernels->device, rows, survey->starts, bytes, "row pointers", diag);
  if (s) cb_free(rows);
  else csr->row_ptr = rows;
  return s;
}

static void find_ends(const struct cb_csr *csr, int32_t *ends) {
  for (int64_t row = 0; row < csr->rows; row++) {
    const int64_t begin = cb_csr_row(csr, row), end = cb_csr_row(csr, row + 1);
    ends[row] = begin < end ? csr->col_idx[begin] : 0;
    ends[csr->rows + row] = begin < end ? csr->col_idx[end - 1] : 0;
  }
}

static enum cb_status bring_ends(struct cb_survey *survey, struct cb_diag *diag) {
  const struct cb_device *device = survey->kernels->device;
  const int64_t rows = survey->view.rows;
  const size_t bytes = 2 * (size_t)rows * sizeof *survey->ends;
  int32_t *ends = cb_alloc(bytes, 1);
  enum cb_status s = ends ? CB_OK : cb_fail_memory(diag, "ends of rows", bytes);
  if (!s && survey->near.col_idx) find_ends(&survey->near, ends);
  else if (!s)
    s = cb_device_download(device, ends, cb_survey_ends(survey), bytes, "ends of rows", diag);
  if (s) {
    cb_free(ends);
    return s;
  }
  survey->remote.first = survey->ends = ends;
  survey->remote.last = survey->ends + rows;
  return CB_OK;
}

/* ---- a matrix of few nonzeros: all that may be asked for, at once */

static void count_from_zero(int32_t *columns, const void *given, const struct cb_view *view) {
  for (int64_t k = 0; k < view->nnz; k++)
    columns[k] =
        (int32_t)((view->col_wide ? ((const int64_t *)given)[k] : (int64_t)((const int32_t *)given)[k]) - view->base);
}

/* They stay where they came to, if they are as analysis has them. */
static enum cb_status bring_columns(struct cb_survey *survey, struct cb_diag *diag) {
  const struct cb_view *view = &survey->view;
  const size_t count = (size_t)view->nnz, bytes = count * (view->col_wide ? 8 : 4);
  const int as_given = !view->base && !view->col_wide;
  if (as_given && survey->pinned_columns) {
    survey->near.col_idx = survey->pinned_columns;
    return CB_OK;
  }
  int32_t *columns = survey->near.col_idx = survey->columns = cb_alloc(count + 1, sizeof *columns);
  void *given = view->col_wide ? cb_alloc(bytes + 1, 1) : columns;
  enum cb_status s = columns && given ? CB_OK : cb_fail_memory(diag, "columns", bytes);
  if (!s && survey->pinned_columns) memcpy(given, survey->pinned_columns, bytes);
  else if (!s)
    s = cb_device_download(survey->kernels->device, given, address(view->col_idx), bytes, "columns", diag);
  if (!s && !as_given) count_from_zero(columns, given, view);
  if (given != columns) cb_free(given);
  return s;
}

static enum cb_status bring_all(struct cb_survey *survey, struct cb_diag *diag) {
  enum cb_status s = bring_rows(survey, diag);
  if (s) return s;
  survey->near = *survey->csr;
  survey->near.remote = NULL;
  s = bring_columns(survey, diag);
  if (!s) survey->remote.near = &survey->near;
  return s;
}

/* ---- a matrix of very few nonzeros: hashing has brought it */

static void take_rows(int32_t *row_ptr, const uint32_t *lengths, int64_t rows) {
  int32_t begin = 0;
  for (int64_t row = 0; row < rows; row++) {
    row_ptr[row] = begin;
    begin += (int32_t)lengths[row];
  }
  row_ptr[rows] = begin;
}

/* What a matrix's rows are found to be, of which the columns ascend: these are its own if the first and the last of all
 * rows are. Columns fall where a row begins, and nowhere else. */
static enum cb_status judge_brought(const struct cb_csr *csr, struct cb_diag *diag) {
  const int32_t *row_ptr = csr->row_ptr, *columns = csr->col_idx;
  int32_t falls = 0, begins = 0, unfit = 0;
  for (int64_t k = 1; k < csr->nnz; k++) falls += columns[k] <= columns[k - 1];
  for (int64_t row = 0; row < csr->rows; row++) {
    const int32_t begin = row_ptr[row], end = row_ptr[row + 1];
    if (begin == end) continue;
    begins += begin && columns[begin] <= columns[begin - 1];
    unfit |= columns[begin] < 0 || columns[end - 1] >= csr->cols;
  }
  return judge(!unfit, falls == begins, diag);
}

/* The columns stay where hashing has brought them. */
static enum cb_status take_brought(struct cb_survey *survey, struct cb_diag *diag) {
  const struct cb_view *view = &survey->view;
  const struct cb_brought *brought = &survey->finder.brought;
  int32_t *rows = cb_alloc((size_t)view->rows + 1, sizeof *rows);
  survey->csr->row_ptr = rows;
  if (!rows) return cb_fail_memory(diag, "row pointers", ((uint64_t)view->rows + 1) * sizeof *rows);
  take_rows(rows, brought->lengths, view->rows);
  survey->near = *survey->csr;
  survey->near.remote = NULL;
  survey->near.col_idx = (int32_t *)brought->columns;
  survey->remote.near = &survey->near;
  return judge_brought(&survey->near, diag);
}

static enum cb_status within(struct cb_survey *survey,
                             enum cb_status (*bring)(struct cb_survey *survey, struct cb_diag *diag),
                             struct cb_diag *diag) {
  enum cb_status s = cb_device_enter(survey->kernels->device, diag);
  if (s) return s;
  s = bring(survey, diag);
  cb_device_leave(survey->kernels->device);
  return s;
}

static enum cb_status rows(void *user, struct cb_diag *diag) { return within(user, bring_rows, diag); }
static enum cb_status ends(void *user, struct cb_diag *diag) { return within(user, bring_ends, diag); }

static void make_csr(struct cb_survey *survey, struct cb_csr *csr) {
  const struct cb_view *view = &survey->view;
  survey->csr = csr;
  survey->remote = (struct cb_remote_columns){.rows = rows,
                                              .ends = ends,
                                              .fetch = fetch,
                                              .diagonals = list_diagonals,
                                              .tiles = count_tiles,
                                              .lengths = cb_profile_lengths,
                                              .starts = cb_profile_starts,
                                              .chosen = cb_profile_chosen,
                                              .begin_groups = cb_profile_begin_groups,
                                              .end_groups = cb_profile_end_groups,
                                              .count_columns = cb_columns_count,
                                              .count_marked = cb_columns_count_marked,
                                              .user = survey};
  *csr = (struct cb_csr){.rows = view->rows,
                         .cols = view->cols,
                         .nnz = view->nnz,
                         .wide = survey->wide,
                         .remote = &survey->remote,
                         .pattern = !view->values};
  memcpy(csr->name, view->name, sizeof csr->name);
}

/* Of few rows the host finds out as fast. */
static void answer_of_rows(struct cb_survey *survey) {
  survey->remote.row_ends = cb_rows_ends;
  survey->remote.empty_rows = cb_rows_empty;
  survey->remote.spans = cb_rows_spans;
  survey->remote.row_spans = cb_rows_row_spans;
  survey->remote.elements = cb_rows_elements;
}

/* Row pointers, and room for what kernels find. */
static enum cb_status take_places(struct cb_survey *survey, struct cb_diag *diag) {
  const struct cb_device *device = survey->kernels->device;
  const size_t ends = is_in_place(survey) ? 0 : 2 * (size_t)survey->view.rows * sizeof(int32_t);
  enum cb_status s = cb_device_borrow(device, &survey->scratch, ends_place() + ends, "the survey", diag);
  if (!s && is_in_place(survey)) survey->starts = address(survey->view.row_ptr);
  else if (!s)
    s = (survey->keeps ? cb_device_alloc : cb_device_borrow)(device, &survey->starts, row_pointer_bytes(survey),
                                                             "row pointers", diag);
  return s;
}

enum cb_status cb_survey_run(struct cb_survey *survey, struct cb_csr *csr, const struct cb_kernel_finder *finder,
                             const struct cb_view *view, int64_t near, int keeps, struct cb_diag *diag) {
  const int is_near = view->nnz <= near && view->rows <= near;
  struct findings findings;
  *survey = (struct cb_survey){.finder = *finder, .view = *view, .wide = view->nnz > INT32_MAX, .keeps = keeps};
  if (!is_near) survey->finder.brought = (struct cb_brought){0};
  if (is_brought(survey)) survey->pinned_taken = survey->finder.brought.bytes;
  *csr = (struct cb_csr){0};
  if (view->nnz >> SEGMENT_LOG2 >= SEGMENTS)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "it has %lld nonzeros", (long long)view->nnz);
  enum cb_status s = finder->find(finder->user, "survey", &survey->kernels, diag);
  if (s) return s;
  s = copy_view(survey, diag);
  if (!s) s = take_places(survey, diag);
  survey->shares_starts = is_in_place(survey);
  if (!s && !survey->shares_starts) s = look(survey, diag);
  if (!s && !is_brought(survey)) s = bring(survey, &findings, is_near, diag);
  if (!s && !is_brought(survey)) s = judge_findings(&findings, diag);
  if (s) return s;
  make_csr(survey, csr);
  if (is_brought(survey)) return take_brought(survey, diag);
  if (is_near) return bring_all(survey, diag);
  answer_of_rows(survey);
  return CB_OK;
}

/* `give`: cb_device_give_back, or cb_device_free, which waits for what may still use the memory. */
static void empty(struct cb_survey *survey, void (*give)(const struct cb_device *device, cb_device_ptr address)) {
  const struct cb_device *device = survey->kernels->device;
  if (survey->shares_starts) survey->starts = 0;
  cb_device_ptr *const blocks[] = {&survey->copies[0], &survey->copies[1], &survey->copies[2],
                                   &survey->starts,    &survey->scratch,   &survey->work};
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
    give(device, *blocks[i]);
    *blocks[i] = 0;
  }
  survey->work_bytes = 0;
  while (survey->lists_count) cb_device_free(device, survey->lists[--survey->lists_count]);
}

void cb_survey_empty(struct cb_survey *survey) { empty(survey, cb_device_give_back); }

void cb_survey_release(struct cb_survey *survey) {
  if (!survey->kernels) return;
  empty(survey, cb_device_free);
  cb_survey_forget(survey);
}

void cb_survey_forget(struct cb_survey *survey) {
  cb_free(survey->ends);
  cb_free(survey->columns);
  cb_free(survey->lists);
  *survey = (struct cb_survey){0};
}
