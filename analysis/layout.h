// SPDX-License-Identifier: Apache-2.0
/* A layout stores and multiplies a submatrix in one way. This header is what a layout's C file needs; adding a
 * layout means that file in a folder of its own, its template (templates/NAME.cu.in), a row in layout.c and a test.
 *
 * A layout works in two steps:
 *   plan  looks at the part and fills a draft: facts, constants, index arrays with their contents, and which sections
 *         of the template its text has
 *   pack  fills the byte arrays and late index arrays that plan announced, and says which nonzero goes into which
 *         value slot
 * plan may be called for candidates that are never packed, so it avoids O(nnz) state; pack walks the part again.
 */
#ifndef CBGEN_ANALYSIS_LAYOUT_H
#define CBGEN_ANALYSIS_LAYOUT_H

#include "analysis/plan/plan.h"
#include "base/real.h"

/* Some of the matrix's nonzeros: a canonical pattern of the matrix's shape. */
struct cb_part {
  const struct cb_csr *csr;  /* values are not looked at (NULL in a part made by a split) */
  const uint32_t *origin;    /* nonzero of the part → nonzero of the matrix; NULL: the same. Wide: see below */
  const uint64_t *origin64;  /* instead of `origin` when the matrix's nonzeros have numbers of 64 bits */
};

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

/* Contents of an index array: what the plan only describes. */
struct cb_contents {
  int wide; /* elements are uint64_t, else uint32_t */
  void *elements; /* owned; NULL when the array needs no packing (affine, baked), or is late */
};

/* A region's companion in the assignment. */
struct cb_region_work {
  struct cb_part part;
  struct cb_csr *part_csr;       /* owned when the part was made by a split, else NULL */
  uint32_t *part_origin;         /* likewise */
  uint64_t *part_origin64;
  struct cb_contents *contents;  /* one per array of the region */
  int contents_count;
  void *state;                   /* the layout's own, freed by layout->release */
};

struct cb_value_summary; /* analysis/values.h */

/* A region under construction. Every call below fails stickily into draft->failed (memory). */
struct cb_draft {
  const struct cb_options *options;
  const struct cb_target *target;
  enum cb_type matrix_type, vector_type, sum_type; /* values before specialisation, x and y, sums */
  const double *matrix_values;           /* of the whole matrix when they are fixed, else NULL */
  struct cb_value_summary *values;       /* of the part, likewise; owned by whoever plans */
  enum cb_value_storage value_storage;
  enum cb_type value_type;               /* of a value slot */
  int64_t value_bytes;                   /* of a value slot; 0: all values are equal and there are none */
  enum cb_commit commit;         /* asked for by the recipe; a layout may turn ADD into ATOMIC */
  const uint32_t *own_rows; /* bit r % 32 of word r / 32: row r is this region's, and it must write no other, whatever
                             * its nonzeros; NULL: all rows are. Lives while the layout plans */
  int may_be_joined;  /* the next region may join this one's launch, if it has block_rows */
  int64_t joins_rows; /* block_rows of the region before, whose launch this one may join in turn if its own block_rows
                       * are as many, a multiple or a divisor; 0: it may not */
  int64_t apart_ns;   /* what not joining costs: a launch, and another pass over x and y */
  struct cb_arena *arena;        /* the plan's: lives as long as the plan */
  struct cb_region region;
  struct cb_region_work work;
  int capacity[5];
  int failed;
};

void cb_draft_fact(struct cb_draft *draft, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void cb_draft_constant(struct cb_draft *draft, const char *name, int64_t value, const char *origin);
void cb_draft_hole(struct cb_draft *draft, const char *name, const char *text);
/* The text has that section of the layout's template. */
void cb_draft_section(struct cb_draft *draft, const char *name);

/* A finite number of the sums' type as the text spells it ("0.1f"), for constants: see cb_real_text. */
enum { CB_LITERAL = CB_REAL_TEXT + 1 };
void cb_literal(char literal[CB_LITERAL], double value, enum cb_type sum_type);

/* An index array of `count` elements (uint64_t when `wide`, else uint32_t). Takes ownership of the block, also on
 * failure. Chooses the storage: affine sequences become arithmetic, tables up to options->bake_limit entries are
 * baked, others are stored in the narrowest type. Count 0 is an affine array. */
void cb_draft_index(struct cb_draft *draft, const char *name, const char *meaning, void *elements, int wide,
                    int64_t count);
/* The same for an array whose elements one product reads once: stored, it is read past L1. */
void cb_draft_streamed(struct cb_draft *draft, const char *name, const char *meaning, void *elements, int wide,
                       int64_t count);
/* A stored index array of `count` elements that pack writes (cb_late_find): what a search gives up is then never made.
 * Only when cb_draft_may_be_late. `largest` occurs. */
void cb_draft_late(struct cb_draft *draft, const char *name, const char *meaning, int64_t count, int64_t largest);
void cb_draft_late_streamed(struct cb_draft *draft, const char *name, const char *meaning, int64_t count,
                            int64_t largest);
/* Whether such an array may be late: when it is too long to be baked, and no affine sequence. The step of one would be
 * 0 where there are more elements than numbers from 0 to the largest. `least` and `largest` both occur. */
int cb_draft_may_be_late(const struct cb_draft *draft, int64_t count, int64_t least, int64_t largest);
/* A byte array that pack fills, the array of value slots, or an array that mixes both. One array of a region at
 * most holds value slots; `value_slots` of the region follows from it. */
void cb_draft_bytes(struct cb_draft *draft, const char *name, const char *meaning, int64_t bytes);
/* To be called before value_bytes is used when slots without a nonzero are multiplied like others, and so must read
 * as 0 (what is stored there is 0 in any case): the storage may then be another. */
void cb_draft_zero_slots(struct cb_draft *draft);
/* Templates read value slots through `value(arrays, slot)` (streamed), `value_cached(arrays, slot)` and
 * `value_vector<n>(arrays, slot)` (n neighbours, aligned), which give numbers of sum_t; `stored_t` is a slot's type. */
void cb_draft_values(struct cb_draft *draft, const char *name, const char *meaning, int64_t slots);
void cb_draft_mixed(struct cb_draft *draft, const char *name, const char *meaning, int64_t bytes); /* value_bytes > 0 */
/* `slots` more of the slot map's, behind all others, whose numbers the layout itself makes constants of its text. */
void cb_draft_constant_slots(struct cb_draft *draft, int64_t slots);

/* Carry slots of rows in pieces: one for each of `pieces` (more than none), and a group of them for each row, which
 * begins with the piece that `is_first`. Arrays carry_group and carry_first, and kPieces, whose `origin` is told. */
void cb_draft_carries(struct cb_draft *draft, int64_t pieces, int (*is_first)(const void *user, int64_t piece),
                      const void *user, const char *origin);

/* Whether the region may write `row`. */
static inline int cb_owns(const uint32_t *own_rows, int64_t row) {
  return !own_rows || (own_rows[row / 32] >> row % 32 & 1);
}
/* Makes draft->own_rows an array of the region, which templates ask through `owns(arrays, row)`. */
void cb_draft_own_rows(struct cb_draft *draft);

/* Whether thread blocks of so many rows can join those that draft->joins_rows says. */
static inline int cb_draft_may_join(const struct cb_draft *draft, int64_t block_rows) {
  return draft->joins_rows && (draft->joins_rows % block_rows == 0 || block_rows % draft->joins_rows == 0);
}

/* What cb_draft_zero_slots does, without zeros; the draft's maker calls it first. */
void cb_draft_choose_values(struct cb_draft *draft, int zeros);

/* Where elements of an index array are written: those of a late one, by pack, in its type; or those that plan hands to
 * cb_draft_index. bytes NULL: nowhere, for the array is not late or only the map is wanted. */
struct cb_late {
  unsigned char *bytes;
  enum cb_type type;
};
static inline struct cb_late cb_late_at_once(uint32_t *elements) {
  return (struct cb_late){(unsigned char *)elements, CB_U32};
}
struct cb_late cb_late_find(const struct cb_region *region, unsigned char *const *targets, const char *name);
static inline void cb_late_set(const struct cb_late *late, int64_t i, uint32_t element) {
  if (late->type == CB_U16) ((uint16_t *)late->bytes)[i] = (uint16_t)element;
  else if (late->type == CB_U8) late->bytes[i] = (unsigned char)element;
  else ((uint32_t *)late->bytes)[i] = element;
}

struct cb_layout {
  const char *name, *summary, *source; /* source: the publication, or "-" */
  /* Fills the draft for the draft's part (draft->work.part). */
  enum cb_status (*plan)(struct cb_draft *draft, struct cb_diag *diag);
  /* Fills the byte arrays, the late index arrays and the slot map. targets[i] is where array i of the region lies in
   * the blob (zeroed; NULL unless it is STORED and BYTES, MIXED or late); all entries of `map` are CB_NO_NONZERO at
   * first. `targets` is NULL when only the map is wanted. */
  enum cb_status (*pack)(const struct cb_region *region, const struct cb_region_work *work,
                         unsigned char *const *targets, const struct cb_slot_map *map, struct cb_diag *diag);
  void (*release)(void *state); /* NULL: cb_free */
  int minds_own_rows; /* it heeds draft->own_rows, and CB_COMMIT_OWN */
  /* Nanoseconds that a plan of this layout for the whole matrix will at least be predicted to take, found much faster
   * than by planning (a sample will do): a search leaves out what cannot win. NULL: unknown. */
  int64_t (*least_ns)(const struct cb_csr *csr, const struct cb_target *target, struct cb_types types);
};

extern const struct cb_layout *const cb_layout_table[]; /* ends with NULL */
const struct cb_layout *cb_layout_find(const char *name);

#endif
