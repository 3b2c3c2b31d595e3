// SPDX-License-Identifier: Apache-2.0
/* Which of the caller's values goes into which slot. The map is made once for a pattern and serves every
 * renewal of the values: it composes the layouts' slot maps (slot → canonical nonzero) with the order in
 * which the caller gave the entries, transposition and duplicates included.
 *
 * Slots of a region are taken by groups of 32, side by side (a warp's). Within a group what counts are the
 * differences, its frame, and layouts repeat themselves: a stencil of ten million rows has a handful of frames, and
 * its map takes half a byte per slot instead of four. See value_frames.c for how frames are found.
 *
 * Who moves values by it: cb_values_gather on the host, templates/device/pack.cu.in on the device (packer.h).
 * Both give the same bits.
 */
#ifndef CBGEN_RUNTIME_VALUES_H
#define CBGEN_RUNTIME_VALUES_H

#include "analysis/layout.h"
#include "base/status.h"
#include "base/types.h"
#include "runtime/matrix.h"

#include <stdint.h>

enum { CB_GROUP_SLOTS = 32, CB_FRAME_UNIT = 32, CB_FRAME_WIDTHS = 4 };

/* Slot i of a group takes entry base + number i of its frame, modulo 2^64, when bit i of `present` is set; else its
 * bytes stay as they are. An entry is the number of one of the caller's values, or, from `values` on, values + the
 * number of a list of them, whose sum in that order belongs there. */
struct cb_value_group {
  uint64_t base;
  uint32_t frame; /* where it begins among the frames, in CB_FRAME_UNITs, times 4; plus log2 of its numbers' bytes;
                   * groups without slots have one, too */
  uint32_t present;
};

struct cb_value_map {
  int64_t groups_count; /* region by region; 0: there is none */
  int64_t frame_bytes;
  int64_t values; /* that the caller brings */
  int64_t lists;  /* how many */
  const struct cb_value_group *groups;
  const unsigned char *frames;  /* behind the groups in the same block: cb_value_map_frames_at */
  const uint64_t *list_starts;  /* lists + 1 places in list_entries; NULL without lists */
  const uint64_t *list_entries; /* numbers of values */
  void *owned[3];               /* blocks of cb_alloc behind them, or NULL */
};

static inline int64_t cb_groups_of(int64_t slots) {
  return (slots + CB_GROUP_SLOTS - 1) / CB_GROUP_SLOTS;
}

/* Composes the slot maps of all regions with the order. `values`: that the caller brings. Parallel; the result does
 * not depend on the number of threads. Release the map in any case. */
enum cb_status cb_value_map_build(struct cb_value_map *map, const struct cb_slot_map *maps, int regions,
                                  const struct cb_order *order, int64_t nonzeros, int64_t values,
                                  struct cb_diag *diag);
void cb_value_map_release(struct cb_value_map *map);

/* Bytes of the block of groups and frames, and where in it the frames begin; bytes of the list starts and the list
 * entries. */
int64_t cb_value_map_bytes(const struct cb_value_map *map);
int64_t cb_value_map_frames_at(const struct cb_value_map *map);
int64_t cb_value_map_list_bytes(const struct cb_value_map *map);

/* The entries of one group; those of absent slots mean nothing. */
void cb_value_map_entries(const struct cb_value_map *map, const struct cb_value_group *group,
                          uint64_t entries[CB_GROUP_SLOTS]);

/* Whether every frame is one, every entry names a value or a list, and every list names values, in order: for maps
 * that come from outside. */
int cb_value_map_is_sound(const struct cb_value_map *map);

/* From the view's values to `count` slots, the first of which is the first of group `first`, rounded to `stored`.
 * Parallel. CB_ERR_LIMIT: a finite value is beyond the type's range. */
enum cb_status cb_values_gather(const struct cb_value_map *map, int64_t first, int64_t count,
                                const struct cb_view *view, enum cb_type stored, void *slots,
                                struct cb_diag *diag);

/* What is said then. */
enum cb_status cb_fail_range(enum cb_type stored, struct cb_diag *diag);

#endif
