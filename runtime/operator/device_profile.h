// SPDX-License-Identifier: Apache-2.0
/* What the choice of a recipe (analysis/choose) asks of a matrix on the device, answered by kernels
 * (templates/profile.cu.in): calls of struct cb_remote_columns whose user is a survey. */
#ifndef CBGEN_RUNTIME_OPERATOR_DEVICE_PROFILE_H
#define CBGEN_RUNTIME_OPERATOR_DEVICE_PROFILE_H

#include "runtime/operator/device_survey.h"

enum cb_status cb_profile_lengths(void *user, struct cb_choice_lengths *lengths, struct cb_diag *diag);
enum cb_status cb_profile_starts(void *user, const struct cb_stretch *stretches, int64_t count, int64_t *starts,
                                 struct cb_diag *diag);
enum cb_status cb_profile_chosen(void *user, const struct cb_stretch *stretches, int64_t count, int64_t column_share,
                                 int32_t **columns, int64_t *chosen, struct cb_diag *diag);
enum cb_status cb_profile_begin_groups(void *user, int64_t groups, int64_t most, struct cb_diag *diag);
enum cb_status cb_profile_end_groups(void *user, int64_t *sums, struct cb_diag *diag);

/* device_survey.c: what kernels that visit stretches get, in memory of the survey that the next call takes again: where
 * the `count` of them begin, then the place of each in a list of all, and the list's length, `total`; and `head` bytes,
 * all zero, before room for a list of elements of that size. */
struct cb_stretches {
  cb_device_ptr begins, places, head, list;
  int64_t total;
};
/* The context must be current. */
enum cb_status cb_stretches_put(struct cb_survey *survey, struct cb_stretches *to, const struct cb_stretch *stretches,
                                int64_t count, size_t head, size_t size, struct cb_diag *diag);

/* device_survey.c: so many bytes of that memory. */
enum cb_status cb_survey_take_work(struct cb_survey *survey, cb_device_ptr *work, size_t bytes, struct cb_diag *diag);
/* Clears some of it, for what follows in the default stream. */
enum cb_status cb_survey_clear(const struct cb_survey *survey, cb_device_ptr at, size_t bytes, struct cb_diag *diag);

#endif
