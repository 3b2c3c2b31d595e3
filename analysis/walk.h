// SPDX-License-Identifier: Apache-2.0
/* Which nonzero is in which slot, and what stands beside it: said once by each layout, in its visit.
 *
 *   int visit(const void *state, int64_t first, int64_t end, const struct cb_walk *walk)
 *
 * meets the nonzeros of the layout's units first … end - 1 (slices, tiles, panels: work.units of them) and says of each
 * where it lies and what its slot stores beside the value:
 *
 *   cb_emit(walk, slot, nonzero, element)
 *
 * From that come the slot map, all index arrays whose elements belong to slots (cb_region_by_slot; CB_MOST_FIELDS of a
 * region at most), and byte arrays, which the visit writes itself (cb_walk_bytes). The core runs ranges of units in
 * parallel, in any order, several times, and not always with everything wanted; no two units may write one element, one
 * slot or one byte. A visit returns 0 when it has no memory. What is not emitted stays 0, and a slot without a nonzero.
 */
#ifndef CBGEN_ANALYSIS_WALK_H
#define CBGEN_ANALYSIS_WALK_H

#include "analysis/plan.h"

#include <string.h>

/* What the split that made a part found out about it. */
struct cb_found {
  const char *kind; /* says what type `data` has; NULL: nothing was found */
  void *data;       /* lives as long as the part's region */
  void (*release)(void *data);
};

/* Some of the matrix's nonzeros: a canonical pattern of the matrix's shape. */
struct cb_part {
  const struct cb_csr *csr;  /* values are not looked at (NULL in a part made by a split) */
  const uint32_t *origin;    /* nonzero of the part → nonzero of the matrix; NULL: the same. Wide: see below */
  const uint64_t *origin64;  /* instead of `origin` when the matrix's nonzeros have numbers of 64 bits */
  struct cb_found found;
};

/* What was found, if it is of that kind; NULL: the layout has to search. */
static inline const void *cb_part_found(const struct cb_part *part, const char *kind) {
  return part->found.kind && !strcmp(part->found.kind, kind) ? part->found.data : NULL;
}

/* Slot → nonzero of the matrix. One entry per value slot of a region; CB_NO_NONZERO for padding, and for the
 * places of a MIXED array that hold coordinates. */
#define CB_NO_NONZERO UINT64_MAX
struct cb_slot_map {
  int64_t count;
  int wide;      /* entries are uint64_t, else uint32_t (the matrix has fewer than 2^32 - 1 nonzeros) */
  void *entries;
};
static inline void cb_slot_set(const struct cb_slot_map *map, int64_t slot, uint64_t nonzero) {
  if (map->wide) ((uint64_t *)map->entries)[slot] = nonzero;
  else ((uint32_t *)map->entries)[slot] = (uint32_t)nonzero;
}
static inline uint64_t cb_slot_get(const struct cb_slot_map *map, int64_t slot) {
  if (map->wide) return ((const uint64_t *)map->entries)[slot];
  const uint32_t entry = ((const uint32_t *)map->entries)[slot];
  return entry == UINT32_MAX ? CB_NO_NONZERO : entry;
}

/* Nonzero `k` of the part, as a nonzero of the matrix. */
static inline uint64_t cb_part_origin(const struct cb_part *part, int64_t k) {
  if (part->origin) return part->origin[k];
  return part->origin64 ? part->origin64[k] : (uint64_t)k;
}

/* An index array that is wanted: elements of the slots from `first` on, some bits of each. */
struct cb_field {
  int64_t first, count;
  int shift;
  uint32_t mask;
  enum cb_type type;        /* up to CB_U32 */
  unsigned char *elements;
};

enum { CB_MOST_FIELDS = 4 }; /* of a region */
struct cb_walk {
  const struct cb_part *part;
  const struct cb_slot_map *map; /* NULL: not wanted */
  int of_mirrored; /* the map has, by slot, the entry that is read from it beside its own (cb_emit_mirrored) */
  int fields;                    /* 0: no elements are wanted */
  struct cb_field field[CB_MOST_FIELDS];
  const struct cb_region *region;
  const int32_t *columns;        /* of the matrix's nonzeros, where they were brought for this walk: cb_walk_columns */
  unsigned char *const *targets; /* where each array of the region is written; NULL: none is */
  /* Without a map: is told every nonzero of the matrix and its slot, for reports. NULL: not wanted. */
  void (*met)(void *user, int64_t slot, uint64_t nonzero);
  void *user;
};

/* Where a visit finds the matrix's columns, if its elements are made of columns (struct cb_slot_elements). */
static inline const int32_t *cb_walk_columns(const struct cb_walk *walk, const struct cb_csr *csr) {
  return walk->columns ? walk->columns : csr->col_idx;
}

static inline void cb_field_set(const struct cb_field *field, int64_t slot, uint32_t element) {
  const int64_t at = slot - field->first;
  const uint32_t bits = element >> field->shift & field->mask;
  if ((uint64_t)at >= (uint64_t)field->count) return;
  if (field->type == CB_U16) ((uint16_t *)field->elements)[at] = (uint16_t)bits;
  else if (field->type == CB_U8) field->elements[at] = (unsigned char)bits;
  else ((uint32_t *)field->elements)[at] = bits;
}

static inline void cb_emit_element(const struct cb_walk *walk, int64_t slot, uint32_t element) {
  if (walk->fields) cb_field_set(&walk->field[0], slot, element);
  for (int i = 1; i < walk->fields; i++) cb_field_set(&walk->field[i], slot, element);
}

static inline void cb_emit_nonzero(const struct cb_walk *walk, int64_t slot, int64_t nonzero) {
  if (walk->map && !walk->of_mirrored) cb_slot_set(walk->map, slot, cb_part_origin(walk->part, nonzero));
  else if (walk->met) walk->met(walk->user, slot, cb_part_origin(walk->part, nonzero));
}

/* Nonzero `nonzero` of the part is read from this slot, which holds its mirror image (plan/symmetry.h). */
static inline void cb_emit_mirrored(const struct cb_walk *walk, int64_t slot, int64_t nonzero) {
  if (walk->map && walk->of_mirrored) cb_slot_set(walk->map, slot, cb_part_origin(walk->part, nonzero));
  else if (walk->met) walk->met(walk->user, slot, cb_part_origin(walk->part, nonzero));
}

/* Nonzero `nonzero` of the part is in this slot, and `element` belongs to it. */
static inline void cb_emit(const struct cb_walk *walk, int64_t slot, int64_t nonzero, uint32_t element) {
  cb_emit_element(walk, slot, element);
  cb_emit_nonzero(walk, slot, nonzero);
}

/* The byte array `name` of the region (zeroed at first). NULL: there is none, or it is not wanted. */
unsigned char *cb_walk_bytes(const struct cb_walk *walk, const char *name);

/* Visits all units, in parallel. 0: no memory. */
typedef int cb_visit(const void *state, int64_t first, int64_t end, const struct cb_walk *walk);
int cb_walk_run(const struct cb_walk *walk, cb_visit *visit, const void *state, int64_t units);

#endif
