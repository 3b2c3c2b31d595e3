// SPDX-License-Identifier: Apache-2.0
/* A profile's counts by kernels: see device_profile.h. */
#include "runtime/operator/device_profile.h"

#include "analysis/choose/profile.h"
#include "base/integers.h"
#include "base/memory.h"

#include <string.h>

enum { LENGTHS = 0, STARTS = 1, CHOOSE = 2 }; /* kernels of the set: the first of each kind */
enum { WARP = 32, MOST_WARPS = 1 << 11 };

/* As the kernel writes them, too: 64-bit integers in this order. */
_Static_assert(sizeof(struct cb_choice_lengths) == (2 * CB_CHOICE_BINS + CB_CHOICE_STEPS + 1) * sizeof(int64_t),
               "nothing lies between");

enum cb_status cb_profile_lengths(void *user, struct cb_choice_lengths *lengths, struct cb_diag *diag) {
  struct cb_survey *survey = user;
  const struct cb_device *device = survey->kernels->device;
  const struct cb_kernels *kernels;
  cb_device_ptr counts = 0;
  if (survey->near.col_idx) {
    cb_choice_count_lengths(lengths, &survey->near);
    return CB_OK;
  }
  enum cb_status s = cb_survey_open(survey, "profile", &kernels, diag);
  if (s) return s;
  struct cb_row_starts starts = cb_survey_starts(survey);
  int64_t rows = survey->view.rows, warps = cb_smaller(MOST_WARPS, cb_divide_up(rows, WARP));
  void *parameters[] = {&starts, &rows, &warps, &counts};
  s = cb_survey_take_work(survey, &counts, sizeof *lengths, diag);
  if (!s) s = cb_survey_clear(survey, counts, sizeof *lengths, diag);
  if (!s) s = cb_kernels_launch(kernels, LENGTHS, warps * WARP, NULL, parameters, diag);
  if (!s) s = cb_device_download(device, lengths, counts, sizeof *lengths, "counts of rows", diag);
  cb_device_leave(device);
  return s;
}

static enum cb_status fetch_starts(struct cb_survey *survey, const struct cb_kernels *kernels,
                                   const struct cb_stretch *stretches, int64_t count, int64_t *starts,
                                   struct cb_diag *diag) {
  struct cb_stretches there;
  struct cb_row_starts from = cb_survey_starts(survey);
  void *parameters[] = {&from, &there.begins, &there.places, &count, &there.list};
  enum cb_status s = cb_stretches_put(survey, &there, stretches, count, 0, sizeof *starts, diag);
  if (!s) s = cb_kernels_launch(kernels, STARTS, count * CB_SET_THREADS, NULL, parameters, diag);
  if (s) return s;
  return cb_device_download(survey->kernels->device, starts, there.list, (size_t)there.total * sizeof *starts,
                            "row pointers", diag);
}

enum cb_status cb_profile_starts(void *user, const struct cb_stretch *stretches, int64_t count, int64_t *starts,
                                 struct cb_diag *diag) {
  struct cb_survey *survey = user;
  const struct cb_kernels *kernels;
  enum cb_status s = cb_survey_open(survey, "profile", &kernels, diag);
  if (s) return s;
  s = fetch_starts(survey, kernels, stretches, count, starts, diag);
  cb_device_leave(survey->kernels->device);
  return s;
}

/* What was found: how many, and 256 bytes further on the columns. */
enum { HEAD = 256 };
static enum cb_status bring_chosen(const struct cb_device *device, const struct cb_stretches *from, int32_t **columns,
                                   int64_t *chosen, struct cb_diag *diag) {
  uint32_t found = 0;
  enum cb_status s = cb_device_download(device, &found, from->head, sizeof found, "columns", diag);
  if (s || !found) return s;
  int32_t *all = cb_alloc(found, sizeof *all);
  if (!all) return cb_fail_memory(diag, "columns", found * sizeof *all);
  s = cb_device_download(device, all, from->list, found * sizeof *all, "columns", diag);
  if (s) {
    cb_free(all);
    return s;
  }
  *columns = all;
  *chosen = found;
  return CB_OK;
}

static enum cb_status choose(struct cb_survey *survey, const struct cb_kernels *kernels,
                             const struct cb_stretch *stretches, int64_t count, int64_t share, int32_t **columns,
                             int64_t *chosen, struct cb_diag *diag) {
  struct cb_stretches there;
  cb_device_ptr from = (cb_device_ptr)(uintptr_t)survey->view.col_idx;
  int64_t base = survey->view.base;
  void *parameters[] = {&from, &base, &there.begins, &there.places, &count, &share, &there.head, &there.list};
  enum cb_status s = cb_stretches_put(survey, &there, stretches, count, HEAD, sizeof **columns, diag);
  if (!s) s = cb_kernels_launch(kernels, CHOOSE + survey->view.col_wide, count * WARP, NULL, parameters, diag);
  return s ? s : bring_chosen(survey->kernels->device, &there, columns, chosen, diag);
}

enum cb_status cb_profile_chosen(void *user, const struct cb_stretch *stretches, int64_t count, int64_t column_share,
                                 int32_t **columns, int64_t *chosen, struct cb_diag *diag) {
  struct cb_survey *survey = user;
  const struct cb_kernels *kernels;
  *columns = NULL;
  *chosen = 0;
  enum cb_status s = cb_survey_open(survey, "profile", &kernels, diag);
  if (s) return s;
  s = choose(survey, kernels, stretches, count, column_share, columns, chosen, diag);
  cb_device_leave(survey->kernels->device);
  return s;
}

/* ---- groups of rows, while the host counts what else there is */

enum { SUMS = CB_CHOICE_GROUP_SUMS };
_Static_assert(SUMS * sizeof(int64_t) <= CB_SURVEY_SUMS, "there is room for them");

/* Thread blocks of a group, by its nonzeros: so many that a warp has few, unless they are many in all. By 128 of a
 * thread block the host waited 104 us for 8 groups of 1024 nonzeros, by 32 19 to 44. */
static int64_t parts_of(int64_t groups, int64_t most) {
  enum { FEW = 32, MANY = 128, BLOCKS = 4096 };
  const int64_t parts = cb_larger(1, cb_divide_up(most, FEW));
  return groups * parts <= BLOCKS ? parts : cb_larger(1, cb_divide_up(most, MANY));
}

static enum cb_status launch_groups(struct cb_survey *survey, const struct cb_kernels *kernels, int64_t groups,
                                    int64_t most, struct cb_diag *diag) {
  struct cb_row_starts starts = cb_survey_starts(survey);
  cb_device_ptr columns = (cb_device_ptr)(uintptr_t)survey->view.col_idx, sums = cb_survey_sums(survey);
  int64_t base = survey->view.base, rows = survey->view.rows, parts = parts_of(groups, most);
  void *parameters[] = {&starts, &columns, &base, &rows, &groups, &parts, &sums};
  const enum cb_status s = cb_survey_clear(survey, sums, SUMS * sizeof(int64_t), diag);
  const int64_t threads = groups * parts * CB_SET_THREADS;
  return s ? s : cb_kernels_launch(kernels, survey->view.col_wide, threads, NULL, parameters, diag);
}

/* Where there is room, the sums go to pinned bytes: so the host waits for kernels alone. */
static enum cb_status bring_sums(struct cb_survey *survey, struct cb_diag *diag) {
  const struct cb_device *device = survey->kernels->device;
  cb_cu_result result = CB_CU_SUCCESS;
  survey->sums = cb_survey_bring_later(survey, cb_survey_sums(survey), SUMS * sizeof(int64_t), &result);
  return cb_driver_check(device->driver, result, diag, "copy 'counts of groups' from GPU %d", device->ordinal);
}

enum cb_status cb_profile_begin_groups(void *user, int64_t groups, int64_t most, struct cb_diag *diag) {
  struct cb_survey *survey = user;
  const struct cb_kernels *kernels;
  if (!groups || most > CB_CHOICE_DEVICE_MOST) return CB_ERR_UNSUPPORTED;
  enum cb_status s = cb_survey_open(survey, "groups", &kernels, diag);
  if (s) return s;
  s = launch_groups(survey, kernels, groups, most, diag);
  if (!s) s = bring_sums(survey, diag);
  cb_device_leave(survey->kernels->device);
  return s;
}

static enum cb_status wait_for_sums(const struct cb_survey *survey, int64_t *sums, struct cb_diag *diag) {
  const struct cb_device *device = survey->kernels->device;
  const cb_cu_result result = device->driver->call.stream_synchronize(NULL);
  if (!result) memcpy(sums, survey->sums, SUMS * sizeof *sums);
  return cb_driver_check(device->driver, result, diag, "count groups on GPU %d", device->ordinal);
}

enum cb_status cb_profile_end_groups(void *user, int64_t *sums, struct cb_diag *diag) {
  const struct cb_survey *survey = user;
  const struct cb_device *device = survey->kernels->device;
  enum cb_status s = cb_device_enter(device, diag);
  if (s) return s;
  if (survey->sums) s = wait_for_sums(survey, sums, diag);
  else s = cb_device_download(device, sums, cb_survey_sums(survey), SUMS * sizeof *sums, "counts of groups", diag);
  cb_device_leave(device);
  return s;
}
