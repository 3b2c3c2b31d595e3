// SPDX-License-Identifier: Apache-2.0
/* What layouts with hot columns ask of a matrix on the device (analysis/columns.h), answered by kernels
 * (templates/columns.cu.in): calls of struct cb_remote_columns whose user is a survey. */
#ifndef CBGEN_RUNTIME_OPERATOR_DEVICE_COLUMNS_H
#define CBGEN_RUNTIME_OPERATOR_DEVICE_COLUMNS_H

#include "runtime/operator/device_survey.h"

enum cb_status cb_columns_count(void *user, uint32_t *counts, struct cb_diag *diag);
enum cb_status cb_columns_count_marked(void *user, const uint64_t *marked, uint32_t *by_row, struct cb_diag *diag);

#endif
