// SPDX-License-Identifier: Apache-2.0
/* Records of checks: see checks.h. */
#include "runtime/operator/checks.h"

#include <string.h>

_Static_assert(sizeof(struct cb_bounds_record) == 96, "as in templates/checks.cu.in");
_Static_assert(sizeof(struct cb_wrong_record) == 56, "as in templates/compare.cu.in");

enum cb_status cb_records_create(struct cb_records **out, const struct cb_device *device, struct cb_diag *diag) {
  enum { PORTABLE = 1, MAPPED = 2 };
  void *pinned = NULL;
  const enum cb_status s =
      cb_driver_check(device->driver, device->driver->call.host_alloc(&pinned, sizeof **out, PORTABLE | MAPPED), diag,
                      "make room for what checks find");
  *out = s ? NULL : pinned;
  if (*out) memset(*out, 0, sizeof **out);
  return s;
}

void cb_records_free(struct cb_records *records, const struct cb_device *device) {
  if (records) device->driver->call.host_free(records);
}

int cb_record_is_there(const uint32_t *state) {
  return __atomic_load_n(state, __ATOMIC_ACQUIRE) == CB_RECORD_THERE;
}

enum cb_status cb_bounds_outcome(const struct cb_records *records, struct cb_diag *diag) {
  const struct cb_bounds_record *record = &records->bounds;
  if (!cb_record_is_there(&record->state)) return CB_OK;
  return cb_fail(diag, CB_ERR_WRONG,
                 "CBGEN_CHECK: line %d of the kernel: index %lld of '%.60s', which has %lld (thread block %u, thread "
                 "%u): its y is incomplete; CBGEN_DUMP writes the kernel down",
                 (int)record->line, (long long)record->index, record->what, (long long)record->count, record->block,
                 record->thread);
}

enum cb_status cb_wrong_outcome(struct cb_records *records, struct cb_diag *diag) {
  if (!cb_record_is_there(&records->wrong.state)) return CB_OK;
  const struct cb_wrong_record found = records->wrong;
  __atomic_store_n(&records->wrong.state, CB_RECORD_EMPTY, __ATOMIC_RELEASE);
  return cb_fail(diag, CB_ERR_WRONG,
                 "CBGEN_CHECK: product %lld: row %lld is %.17g; %.17g was expected, give or take %.3g (wrong "
                 "rows: %lld); 'cbgen trace' shows what the row is made of",
                 (long long)found.product, (long long)found.row, found.got, found.expected, found.tolerance,
                 (long long)found.rows);
}
