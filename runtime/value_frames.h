// SPDX-License-Identifier: Apache-2.0
/* Groups and frames of a value map from the entries of its slots: see values.h. */
#ifndef CBGEN_RUNTIME_VALUE_FRAMES_H
#define CBGEN_RUNTIME_VALUE_FRAMES_H

#include "runtime/values.h"

#define CB_NO_ENTRY UINT64_MAX /* of a slot that is absent */

/* Says the entries of group `group`. Called from several threads at once. */
typedef void cb_group_fill(const void *user, int64_t group, uint64_t entries[CB_GROUP_SLOTS]);

/* Fills groups_count, frame_bytes, groups, frames and owned[0] of the map. */
enum cb_status cb_value_frames_build(struct cb_value_map *map, int64_t groups, cb_group_fill *fill,
                                     const void *user, struct cb_diag *diag);

#endif
