// SPDX-License-Identifier: Apache-2.0
/* The table of layouts: a new one is one row. */
#include "analysis/layout.h"

#include "base/integers.h"

#include <string.h>

extern const struct cb_layout cb_layout_dia, cb_layout_blocks, cb_layout_patterns, cb_layout_sell, cb_layout_merge,
    cb_layout_hot, cb_layout_phases, cb_layout_cb, cb_layout_slices, cb_layout_runs, cb_layout_tile, cb_layout_du,
    cb_layout_se;

/* In the order of the search: of two recipes that are predicted to be equally fast, it takes the earlier one. */
const struct cb_layout *const cb_layout_table[] = {
    &cb_layout_dia,
    &cb_layout_blocks,
    &cb_layout_patterns,
    &cb_layout_sell,
    &cb_layout_merge,
    &cb_layout_hot,
    &cb_layout_phases,
    &cb_layout_cb,
    &cb_layout_slices,
    &cb_layout_runs,
    &cb_layout_tile,
    &cb_layout_du,
    &cb_layout_se,
    NULL,
};
_Static_assert(sizeof cb_layout_table / sizeof *cb_layout_table <= CB_MAX_LAYOUTS + 1, "a row of settings for each");

const struct cb_layout *cb_layout_find(const char *name) {
  for (const struct cb_layout *const *layout = cb_layout_table; *layout; layout++)
    if (!strcmp((*layout)->name, name)) return *layout;
  return NULL;
}

int64_t cb_layout_least_ns(const struct cb_layout *layout, const struct cb_csr *csr, const struct cb_target *target,
                           struct cb_types types) {
  const struct cb_least *least = &layout->least;
  const int64_t bytes = (int64_t)cb_type_size(types.matrix) + least->bytes;
  if (!least->percent) return 0;
  const int64_t stream = cb_plan_stream_ns(csr, target, types, bytes, least->percent) + least->ns;
  return least->sampled_ns ? cb_larger(stream, least->sampled_ns(csr, target, types)) : stream;
}
