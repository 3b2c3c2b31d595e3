// SPDX-License-Identifier: Apache-2.0
/* How a value map (values.h) finds its quads, piece by piece: value_quads.c finds those of one piece,
 * value_build.c joins them. */
#ifndef CBGEN_RUNTIME_VALUE_QUADS_H
#define CBGEN_RUNTIME_VALUE_QUADS_H

#include "runtime/values.h"

#define CB_NO_ENTRY UINT64_MAX /* of a slot that is absent */

/* Says the entries of group `group`. Called from several threads at once. */
typedef void cb_group_fill(const void *user, int64_t group, uint64_t entries[CB_GROUP_SLOTS]);

struct cb_group_source {
  cb_group_fill *fill;
  const void *user;
  int64_t values; /* entries from here on are lists */
};

/* A group that is left over, by its least entry. */
struct cb_keyed {
  uint64_t key;
  int64_t number;
};

/* What was found so far in a piece. Places of stems and leaves count from the piece's own beginnings. */
struct cb_growing {
  unsigned char *bytes;
  int64_t length, room;
};
struct cb_quad_piece {
  struct cb_growing quads, stems, leaves, left; /* of cb_value_quad, bytes, bytes, cb_keyed */
  int failed;                                   /* out of memory: nothing of it counts */
};
enum { CB_QUAD_PIECE = 2048 }; /* groups of a piece, at most */

void cb_quad_piece_release(struct cb_quad_piece *piece);

/* Groups first … first + count - 1, which lie side by side: finds runs of them that share a stem; `left` gets the
 * others, in order. */
void cb_quads_of_runs(struct cb_quad_piece *piece, const struct cb_group_source *source, int64_t first, int64_t count);

/* Groups that are left over, ascending by their keys: all of them get quads. */
void cb_quads_of_rest(struct cb_quad_piece *piece, const struct cb_group_source *source, const struct cb_keyed *groups,
                      int64_t count);

/* Makes the map's block of quads and body, from the entries of `groups[r]` groups of region r. `ranges[r]` gets where
 * its quads are. Fills groups_count, quads_count, body_bytes, quads, body and owned[0] of the map. */
enum cb_status cb_value_quads_build(struct cb_value_map *map, struct cb_value_range *ranges, int regions,
                                    const struct cb_group_source *source, struct cb_diag *diag);

#endif
