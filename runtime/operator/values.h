// SPDX-License-Identifier: Apache-2.0
/* Which of the caller's values goes into which slot. The map is made once for a pattern and serves every
 * renewal of the values. It composes the layouts' slot maps (slot → canonical nonzero) with the order in
 * which the caller gave the entries, transposition and duplicates included.
 *
 * What a slot takes is called its entry: the number of one of the caller's values or, from `values` on, `values` + the
 * number of a list of them, whose sum in the list's order belongs there. Bytes of absent slots stay as they are, or
 * become zero.
 *
 * Entries are compressed by frame of reference. 32 slots side by side are a group. A block is up to four groups of
 * one region, from anywhere in it, whose entries resemble each other; a group has a number m within its block. The
 * entry of slot i of group m is
 *
 *   reference + (offset[m] + delta[i] + residual[m][i] + count[m][i])     the sum in parentheses modulo 2^32
 *
 * - The reference is the block's frame of reference; the offset is what a group adds to it.
 * - Deltas are what all groups of the block have in common. Several blocks may share them.
 * - Residuals are what deltas leave over of a group's entries.
 * - count[m][i] is how many of the groups before m have slot i, in blocks that are "counted"; else it is 0.
 * - Deltas of 64 bits are added outside of the parentheses. They are for entries that are too far apart.
 * - Deltas that are prefix counts are not stored: delta[i] is then how many slots before i the groups have, all
 *   together.
 *
 * The bytes, in the machine's order:
 *
 *   map       = { block } zeros body  the body begins at a multiple of 128
 *   block     = reference control deltas residuals group{4} present{4} offset{4}        64 bytes
 *   reference = u32                   bits 0 to 31 of the reference
 *   control   = u32                   bits 0 to 15: bits 32 to 47 of the reference, the last of which is its sign
 *                                     bits 16 to 18: the deltas' code; bits 20 and 21: the residuals' code
 *                                     bit 24: counted; bit 25: some entry is a list; the others are 0
 *   deltas    = u32                   where they begin in the body, in units of 32 bytes
 *   residuals = u32                   likewise; neither is read when the code is one without numbers
 *   group     = u32                   its number; groups of all regions are counted through. 2^32 - 1: the block has
 *                                     no such group, and nothing of it is present
 *   present   = u32                   bit i: slot i of the group has an entry
 *   offset    = u32
 *   body      = { number{32} | number{128} } or 32 zeros    deltas | residuals; each begins at a multiple of 32 bytes
 *                                     delta[i] is number i % 8 * 4 + i / 8 of the deltas
 *                                     residual[m][i] is number (i % 8 * 4 + m) * 4 + i / 8 of the residuals
 *   number    = "" | u8 | u16 | u32 | u64                   by the code: 0, 1, 2, 3, 4. Numbers that are not there are
 *                                     zeros; residuals have no u64. Deltas' code 5, "": they are prefix counts
 *   lists     = u64{lists + 1} { u64 }                      where each list begins among the numbers behind, and where
 *                                     the last one ends; then the numbers of the values in all lists
 *
 * The order of numbers is that of a warp's threads: four threads that share i % 8 take a group each, and four numbers
 * of it by one load.
 *
 * What maps of different layouts come to, each with 16 bytes of the block for a group:
 *
 *   rows of equal lengths, whatever the layout           the same deltas for all blocks
 *   lanes that walk along rows, 1, 2, … entries a step   the same deltas for each slice of rows
 *   diagonals with absent entries: slot i of four        deltas of 8 bits, which are where rows begin; counted
 *   the same where there are four diagonals at most      prefix counts; counted
 *   some of a row here, some there (hot columns)         deltas for all of it, residuals of 8 bits
 *   no order at all                                      residuals of 32 bits, no deltas
 *
 * See value_encode.c for how blocks are found. A region's blocks ascend by their references, so that values that are
 * read at the same time lie together, wherever they go.
 *
 * Who moves values by it: cb_values_gather on the host, templates/pack.cu.in on the device (packer.h).
 * Both give the same bits.
 */
#ifndef CBGEN_RUNTIME_OPERATOR_VALUES_H
#define CBGEN_RUNTIME_OPERATOR_VALUES_H

#include "analysis/layout.h"
#include "base/status.h"
#include "base/types.h"
#include "runtime/operator/matrix.h"

#include <stdint.h>

enum { CB_GROUP_SLOTS = 32, CB_BLOCK_GROUPS = 4, CB_MAP_UNIT = 32 };
#define CB_NO_GROUP UINT32_MAX

/* A block: see the grammar above. */
struct cb_map_block {
  uint32_t reference; /* its low half: cb_map_reference has all of it */
  uint32_t control;
  uint32_t deltas, residuals;
  uint32_t group[CB_BLOCK_GROUPS];
  uint32_t present[CB_BLOCK_GROUPS];
  uint32_t offset[CB_BLOCK_GROUPS];
};
_Static_assert(sizeof(struct cb_map_block) == 64, "as in the grammar");

/* Codes of deltas beside the widths 0 to 3, and how many codes there are. */
enum { CB_WIDE_DELTAS = 4, CB_PREFIX_COUNTS = 5, CB_DELTA_CODES };

/* Where in `control` the fields begin. */
enum { CB_DELTA_SHIFT = 16, CB_RESIDUAL_SHIFT = 20, CB_COUNTED_SHIFT = 24, CB_SUMS_SHIFT = 25 };

/* A region's part of the map. */
struct cb_value_range {
  int64_t slots;
  int64_t first_group;
  int64_t first_block, blocks;
};

struct cb_value_map {
  int64_t groups_count; /* of all regions; 0: there is no map */
  int64_t blocks_count; /* groups without slots need none */
  int64_t body_bytes;
  int64_t values; /* that the caller brings */
  int64_t lists;  /* how many */
  const struct cb_map_block *blocks;
  const unsigned char *body;    /* deltas and residuals: in the same memory, at cb_value_map_body_at */
  const uint64_t *list_starts;  /* lists + 1 places in list_entries; NULL without lists */
  const uint64_t *list_entries; /* numbers of values */
  void *owned[3];               /* memory of cb_alloc behind them, or NULL */
};

/* A block's whole reference, its sign extended to 64 bits. */
static inline uint64_t cb_map_reference(const struct cb_map_block *block) {
  return (uint64_t)((int64_t)((uint64_t)block->control << 48 | (uint64_t)block->reference << 16) >> 16);
}

static inline int64_t cb_groups_of(int64_t slots) {
  return (slots + CB_GROUP_SLOTS - 1) / CB_GROUP_SLOTS;
}

/* Composes the slot maps of all regions with the order. `values`: that the caller brings. `ranges` has a place for each
 * region. Parallel; the result does not depend on the number of threads. Release the map in any case. */
enum cb_status cb_value_map_build(struct cb_value_map *map, struct cb_value_range *ranges,
                                  const struct cb_slot_map *maps, int regions, const struct cb_order *order,
                                  int64_t nonzeros, int64_t values, struct cb_diag *diag);
void cb_value_map_release(struct cb_value_map *map);

/* Bytes of blocks and body together, and where the body begins; bytes of the list starts and the list entries. */
int64_t cb_value_map_bytes(const struct cb_value_map *map);
int64_t cb_value_map_body_at(const struct cb_value_map *map);
int64_t cb_value_map_list_bytes(const struct cb_value_map *map);

/* The entries of group `member` of a block; those of absent slots mean nothing. */
void cb_value_map_entries(const struct cb_value_map *map, const struct cb_map_block *block, int member,
                          uint64_t entries[CB_GROUP_SLOTS]);

/* For maps that come from outside, whose ranges are one behind the other. The first: whether every block's groups are
 * the range's, its numbers are in the body, and every entry names a value or a list. The second: whether lists lie one
 * behind the other and name values. */
int cb_value_map_is_sound(const struct cb_value_map *map, const struct cb_value_range *range);
int cb_value_lists_are_sound(const struct cb_value_map *map);

/* From the view's values to the range's slots, rounded to `stored`; absent ones stay as they are. Parallel.
 * CB_ERR_LIMIT: a finite value is beyond the type's range. */
enum cb_status cb_values_gather(const struct cb_value_map *map, const struct cb_value_range *range,
                                const struct cb_view *view, enum cb_type stored, void *slots,
                                struct cb_diag *diag);

/* What is said then. */
enum cb_status cb_fail_range(enum cb_type stored, struct cb_diag *diag);

#endif
