// SPDX-License-Identifier: Apache-2.0
/* What checks on the GPU leave for the host: records in pinned memory, which the GPU writes and the host reads at the
 * next call, without waiting for anything. A record is written once, and then stays until the host clears it.
 *
 *   bounds   of a kernel with checks (codegen/checked.h): an index that is out of bounds
 *   wrong    of a comparison (comparer.h): a row that is wrong
 */
#ifndef CBGEN_RUNTIME_OPERATOR_CHECKS_H
#define CBGEN_RUNTIME_OPERATOR_CHECKS_H

#include "base/status.h"
#include "runtime/cuda/driver.h"

#include <stdint.h>

enum { CB_RECORD_EMPTY = 0, CB_RECORD_THERE = 2 }; /* between them it is being written */

/* As in templates/checks.cu.in and the emulation. */
struct cb_bounds_record {
  uint32_t state;
  int32_t line;
  int64_t index, count;
  uint32_t block, thread;
  char what[64];
};

/* As in templates/compare.cu.in. */
struct cb_wrong_record {
  uint32_t state, pad;
  int64_t product, row, rows; /* rows: how many are wrong */
  double got, expected, tolerance;
};

struct cb_records {
  struct cb_bounds_record bounds;
  struct cb_wrong_record wrong;
};

/* Empty ones. The device's context must be current here and below. */
enum cb_status cb_records_create(struct cb_records **records, const struct cb_device *device, struct cb_diag *diag);
void cb_records_free(struct cb_records *records, const struct cb_device *device); /* NULL is accepted */

/* Whether the record at `state` is there. */
int cb_record_is_there(const uint32_t *state);

/* CB_ERR_WRONG with what the record says; CB_OK when it is empty. Any thread, no context. That of bounds stays: what
 * the kernel left undone is not made up for. That of a comparison is cleared. */
enum cb_status cb_bounds_outcome(const struct cb_records *records, struct cb_diag *diag);
enum cb_status cb_wrong_outcome(struct cb_records *records, struct cb_diag *diag);

#endif
