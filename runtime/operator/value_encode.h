// SPDX-License-Identifier: Apache-2.0
/* How a value map (values.h) is compressed, chunk by chunk: value_encode.c makes the blocks of one chunk,
 * value_build.c joins those of all chunks. */
#ifndef CBGEN_RUNTIME_OPERATOR_VALUE_ENCODE_H
#define CBGEN_RUNTIME_OPERATOR_VALUE_ENCODE_H

#include "runtime/operator/values.h"

#define CB_NO_ENTRY UINT64_MAX /* of a slot that is absent */

/* Gives the entries of group `group`. Called from several threads at once. */
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

/* What was made of a chunk so far. Places of deltas and residuals count from the chunk's own beginnings. */
struct cb_growing {
  unsigned char *bytes;
  int64_t length, room;
};
struct cb_map_chunk {
  struct cb_growing blocks, deltas, residuals, left; /* of cb_map_block, bytes, bytes, cb_keyed */
  int failed;                                        /* out of memory: nothing of it counts */
};
enum { CB_MAP_CHUNK = 2048 }; /* groups of a chunk, at most */

void cb_map_chunk_release(struct cb_map_chunk *chunk);

/* Finds runs that share their deltas among the groups first … first + count - 1, which lie side by side. `left` gets
 * the groups that are in no run, in order. */
void cb_encode_runs(struct cb_map_chunk *chunk, const struct cb_group_source *source, int64_t first, int64_t count);

/* Makes blocks of groups that are left over, which ascend by their keys: of all of them. */
void cb_encode_rest(struct cb_map_chunk *chunk, const struct cb_group_source *source, const struct cb_keyed *groups,
                    int64_t count);

/* Makes the map's blocks and body from the groups of all regions. `ranges[r]` says how many slots region r has, and
 * gets where its groups and blocks are. Fills groups_count, blocks_count, body_bytes, blocks, body and owned[0] of the
 * map. */
enum cb_status cb_map_blocks_build(struct cb_value_map *map, struct cb_value_range *ranges, int regions,
                                   const struct cb_group_source *source, struct cb_diag *diag);

#endif
