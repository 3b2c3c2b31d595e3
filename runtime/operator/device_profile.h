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

/* device_survey.c: a block of memory for kernels that visit stretches: where the `count` of them begin, then the place
 * of each in a list of all, and the list's length. The context must be current; release the block in any case. */
enum cb_status cb_stretches_put(const struct cb_device *device, cb_device_ptr *to, const struct cb_stretch *stretches,
                                int64_t count, int64_t *total, struct cb_diag *diag);

#endif
