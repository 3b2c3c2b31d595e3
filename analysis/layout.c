// SPDX-License-Identifier: Apache-2.0
/* The table of layouts: a new one is one row. */
#include "analysis/layout.h"

#include <string.h>

extern const struct cb_layout cb_layout_cb, cb_layout_sell, cb_layout_blocks, cb_layout_dia, cb_layout_merge,
    cb_layout_hot, cb_layout_phases;

const struct cb_layout *const cb_layout_table[] = {
    &cb_layout_cb,
    &cb_layout_sell,
    &cb_layout_blocks,
    &cb_layout_dia,
    &cb_layout_merge,
    &cb_layout_hot,
    &cb_layout_phases,
    NULL,
};

const struct cb_layout *cb_layout_find(const char *name) {
  for (const struct cb_layout *const *layout = cb_layout_table; *layout; layout++)
    if (!strcmp((*layout)->name, name)) return *layout;
  return NULL;
}
