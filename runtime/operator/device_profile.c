// SPDX-License-Identifier: Apache-2.0
/* A profile's counts by kernels: see device_profile.h. */
#include "runtime/operator/device_profile.h"

#include "analysis/choose/profile.h"
#include "base/integers.h"
#include "base/memory.h"

enum { LENGTHS = 0, STARTS = 1, CHOOSE = 2 }; /* kernels of the set: the first of each kind */
enum { WARP = 32, MOST_WARPS = 1 << 13 };

struct starts { /* as the templates have it */
  cb_device_ptr narrow, wide;
};

static struct starts starts_of(const struct cb_survey *survey) {
  return (struct starts){survey->wide ? 0 : survey->starts, survey->wide ? survey->starts : 0};
}

static enum cb_status open_set(const struct cb_survey *survey, const struct cb_kernels **kernels,
                               struct cb_diag *diag) {
  const enum cb_status s = cb_device_enter(survey->kernels->device, diag);
  if (s) return s;
  const enum cb_status found = survey->finder.find(survey->finder.user, "profile", kernels, diag);
  if (found) cb_device_leave(survey->kernels->device);
  return found;
}

/* As the kernel writes them, too: 64-bit integers in this order. */
_Static_assert(sizeof(struct cb_choice_lengths) == (2 * CB_CHOICE_BINS + CB_CHOICE_STEPS + 1) * sizeof(int64_t),
               "nothing lies between");

enum cb_status cb_profile_lengths(void *user, struct cb_choice_lengths *lengths, struct cb_diag *diag) {
  const struct cb_survey *survey = user;
  const struct cb_device *device = survey->kernels->device;
  const struct cb_kernels *kernels;
  cb_device_ptr counts = 0;
  enum cb_status s = open_set(survey, &kernels, diag);
  if (s) return s;
  struct starts starts = starts_of(survey);
  int64_t rows = survey->view.rows, warps = cb_smaller(MOST_WARPS, cb_divide_up(rows, WARP));
  void *parameters[] = {&starts, &rows, &warps, &counts};
  s = cb_device_alloc(device, &counts, sizeof *lengths, "counts of rows", diag);
  if (!s) s = cb_device_fill(device, counts, 0, sizeof *lengths, diag);
  if (!s) s = cb_kernels_launch(kernels, LENGTHS, warps * WARP, NULL, parameters, diag);
  if (!s) s = cb_device_download(device, lengths, counts, sizeof *lengths, "counts of rows", diag);
  cb_device_free(device, counts);
  cb_device_leave(device);
  return s;
}

enum cb_status cb_profile_starts(void *user, const struct cb_stretch *stretches, int64_t count, int64_t *starts,
                                 struct cb_diag *diag) {
  const struct cb_survey *survey = user;
  const struct cb_device *device = survey->kernels->device;
  const struct cb_kernels *kernels;
  cb_device_ptr lists = 0, to = 0;
  int64_t total = 0;
  enum cb_status s = open_set(survey, &kernels, diag);
  if (s) return s;
  s = cb_stretches_put(device, &lists, stretches, count, &total, diag);
  if (!s) s = cb_device_alloc(device, &to, (size_t)total * sizeof *starts, "row pointers", diag);
  struct starts from = starts_of(survey);
  cb_device_ptr places = lists + (cb_device_ptr)count * sizeof(int64_t);
  void *parameters[] = {&from, &lists, &places, &count, &to};
  if (!s) s = cb_kernels_launch(kernels, STARTS, count * WARP, NULL, parameters, diag);
  if (!s) s = cb_device_download(device, starts, to, (size_t)total * sizeof *starts, "row pointers", diag);
  cb_device_free(device, lists);
  cb_device_free(device, to);
  cb_device_leave(device);
  return s;
}

/* What was found: how many, and 256 bytes further on the columns. */
enum { HEAD = 256 };
static enum cb_status bring_chosen(const struct cb_device *device, cb_device_ptr block, int32_t **columns,
                                   int64_t *chosen, struct cb_diag *diag) {
  uint32_t found = 0;
  enum cb_status s = cb_device_download(device, &found, block, sizeof found, "columns", diag);
  if (s || !found) return s;
  int32_t *all = cb_alloc(found, sizeof *all);
  if (!all) return cb_fail_memory(diag, "columns", found * sizeof *all);
  s = cb_device_download(device, all, block + HEAD, found * sizeof *all, "columns", diag);
  if (s) {
    cb_free(all);
    return s;
  }
  *columns = all;
  *chosen = found;
  return CB_OK;
}

enum cb_status cb_profile_chosen(void *user, const struct cb_stretch *stretches, int64_t count, int64_t column_share,
                                 int32_t **columns, int64_t *chosen, struct cb_diag *diag) {
  const struct cb_survey *survey = user;
  const struct cb_device *device = survey->kernels->device;
  const struct cb_kernels *kernels;
  cb_device_ptr lists = 0, block = 0;
  int64_t total = 0, base = survey->view.base, share = column_share;
  *columns = NULL;
  *chosen = 0;
  enum cb_status s = open_set(survey, &kernels, diag);
  if (s) return s;
  s = cb_stretches_put(device, &lists, stretches, count, &total, diag);
  if (!s) s = cb_device_alloc(device, &block, HEAD + (size_t)total * sizeof **columns, "columns", diag);
  if (!s) s = cb_device_fill(device, block, 0, HEAD, diag);
  cb_device_ptr from = (cb_device_ptr)(uintptr_t)survey->view.col_idx, list = block + HEAD,
                places = lists + (cb_device_ptr)count * sizeof(int64_t);
  void *parameters[] = {&from, &base, &lists, &places, &count, &share, &block, &list};
  if (!s) s = cb_kernels_launch(kernels, CHOOSE + survey->view.col_wide, count * WARP, NULL, parameters, diag);
  if (!s) s = bring_chosen(device, block, columns, chosen, diag);
  cb_device_free(device, lists);
  cb_device_free(device, block);
  cb_device_leave(device);
  return s;
}
