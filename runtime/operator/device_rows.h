// SPDX-License-Identifier: Apache-2.0
/* What equal shares of nonzeros ask of a matrix on the device (analysis/row_ends.h), answered by kernels
 * (templates/rows.cu.in): calls of struct cb_remote_columns whose user is a survey. Lists lie in the survey's memory,
 * where packing reads them. */
#ifndef CBGEN_RUNTIME_OPERATOR_DEVICE_ROWS_H
#define CBGEN_RUNTIME_OPERATOR_DEVICE_ROWS_H

#include "analysis/row_ends.h"
#include "runtime/operator/device_survey.h"

enum cb_status cb_rows_ends(void *user, struct cb_row_ends *ends, struct cb_diag *diag);
enum cb_status cb_rows_empty(void *user, struct cb_remote_list *list, struct cb_diag *diag);
enum cb_status cb_rows_spans(void *user, const struct cb_unit *units, int64_t count, struct cb_ends *spans,
                             struct cb_diag *diag);
enum cb_status cb_rows_row_spans(void *user, int64_t each, int64_t count, struct cb_ends *spans,
                                 struct cb_diag *diag);
enum cb_status cb_rows_elements(void *user, const struct cb_remote_list *list, uint32_t *elements,
                                struct cb_diag *diag);

/* Writes `count` elements of a list to an array of elements of that many bytes. The context must be current. Waits for
 * nothing. */
enum cb_status cb_rows_store(const struct cb_survey *survey, uint64_t list, int64_t count, cb_device_ptr to,
                             int64_t bytes, struct cb_diag *diag);

#endif
