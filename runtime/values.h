// SPDX-License-Identifier: Apache-2.0
/* Which of the caller's values goes into which slot. The map is made once for a pattern and serves every
 * renewal of the values: it composes the layouts' slot maps (slot → canonical nonzero) with the order in
 * which the caller gave the entries, transposition and duplicates included.
 *
 * Slots of a region are taken by groups of 32, side by side, and groups by quads: up to four groups, of anywhere in
 * the region, whose entries resemble each other. Slot i of member m of a quad takes the entry
 *
 *   base + offset of m + stem[i] + leaf[m][i] + (counted: how many of the members before m have slot i)
 *
 * if it is present; what comes to the base is taken modulo 2^32. Stem and leaves are numbers of 8, 16 or 32 bits, or
 * not there, which counts as zeros; quads share stems. (A stem of 64 bits is possible, too, and taken as it is.) A
 * stem of ranks takes no bytes: stem[i] is how many slots before i all members have. What that comes to, with 16 bytes
 * of the quad itself for each group:
 *
 *   rows of equal lengths, whatever the layout           one stem for all quads
 *   lanes that walk along rows, 1, 2, … entries a step   one stem for each slice of rows
 *   diagonals with holes: slot i of four diagonals       a stem of bytes, which is where rows begin; `counted`
 *   the same where there are four diagonals at most      ranks; `counted`
 *   some of a row here, some there (hot columns)         a stem for all of it, leaves of bytes
 *   no order at all                                      leaves of 32 bits, no stem
 *
 * See value_quads.c for how they are found. A region's quads ascend by base, so that what is read at a time lies
 * together, wherever it goes.
 *
 * Who moves values by it: cb_values_gather on the host, templates/pack.cu.in on the device (packer.h).
 * Both give the same bits.
 */
#ifndef CBGEN_RUNTIME_VALUES_H
#define CBGEN_RUNTIME_VALUES_H

#include "analysis/layout.h"
#include "base/status.h"
#include "base/types.h"
#include "runtime/matrix.h"

#include <stdint.h>

enum { CB_GROUP_SLOTS = 32, CB_QUAD = 4, CB_MAP_UNIT = 32 };
#define CB_NO_GROUP UINT32_MAX

/* An entry is the number of one of the caller's values, or, from `values` on, values + the number of a list of them,
 * whose sum in that order belongs there. Bytes of absent slots stay as they are, or become zero. */
struct cb_value_quad {
  uint32_t base;             /* its low half */
  uint32_t kinds;            /* its next 16 bits, the last of which is the sign; from bit 16 on, kinds of numbers */
  uint32_t stem, leaf;       /* where they are in the body, in CB_MAP_UNITs */
  uint32_t group[CB_QUAD];   /* groups of all regions are counted through; CB_NO_GROUP: none, nothing is present */
  uint32_t present[CB_QUAD]; /* a bit per slot */
  uint32_t offset[CB_QUAD];
};

/* Kinds of stems that have no numbers of 32 bits; and how many kinds there are. */
enum { CB_WIDE_STEM = 4, CB_RANKS = 5, CB_STEM_KINDS };

/* Kinds: numbers take no bytes, or 1 << (kind - 1), but for ranks, which take none. A stem's are ordered by i % 8,
 * then by i / 8; leaves by i % 8, by member, and by i / 8: four threads that share i % 8 take a member each, and four
 * numbers of it by one load. Bits of `kinds`: 3 for the stem, 2 for leaves, then whether members are counted and
 * whether some entry is a list. */
enum { CB_STEM_SHIFT = 16, CB_LEAF_SHIFT = 20, CB_COUNTED_SHIFT = 24, CB_SUMS_SHIFT = 25 };

/* A region's part of the map. */
struct cb_value_range {
  int64_t slots;
  int64_t first_group;
  int64_t first_quad, quads;
};

struct cb_value_map {
  int64_t groups_count; /* of all regions; 0: there is no map */
  int64_t quads_count;  /* groups without slots need none */
  int64_t body_bytes;
  int64_t values; /* that the caller brings */
  int64_t lists;  /* how many */
  const struct cb_value_quad *quads;
  const unsigned char *body;    /* stems and leaves: behind the quads in the same block, at cb_value_map_body_at */
  const uint64_t *list_starts;  /* lists + 1 places in list_entries; NULL without lists */
  const uint64_t *list_entries; /* numbers of values */
  void *owned[3];               /* blocks of cb_alloc behind them, or NULL */
};

static inline uint64_t cb_quad_base(const struct cb_value_quad *quad) {
  return (uint64_t)((int64_t)((uint64_t)quad->kinds << 48 | (uint64_t)quad->base << 16) >> 16);
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

/* Bytes of the block of quads and body, and where in it the body begins; bytes of the list starts and the list
 * entries. */
int64_t cb_value_map_bytes(const struct cb_value_map *map);
int64_t cb_value_map_body_at(const struct cb_value_map *map);
int64_t cb_value_map_list_bytes(const struct cb_value_map *map);

/* The entries of one member of a quad; those of absent slots mean nothing. */
void cb_value_map_entries(const struct cb_value_map *map, const struct cb_value_quad *quad, int member,
                          uint64_t entries[CB_GROUP_SLOTS]);

/* Whether every quad's groups are the range's, its numbers are in the body, every entry names a value or a list, and
 * every list names values, in order: for maps that come from outside, whose ranges are one behind the other. */
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
