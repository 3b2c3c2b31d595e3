// SPDX-License-Identifier: Apache-2.0
/* A layout stores and multiplies a submatrix in one way. This header is what a layout's C file needs; adding a
 * layout means that file in a folder of its own, its template (templates/NAME.cu.in), a row in layout.c and a test.
 * Its options and recipes stand in tables that its struct cb_layout names; whoever needs them walks these tables.
 *
 * A layout works in two steps:
 *   plan   looks at the part and fills a region builder: facts, constants, arrays, and which sections of the template
 *          the text has
 *   visit  meets every nonzero of the part and says in which slot it is (walk.h): slot map and data follow from it
 * plan may be called for candidates that are never packed, so it avoids O(nnz) state; visit walks the part again.
 *
 * Memory. All that a layout keeps between the two lies in one state, which begins with the arena that owns its blocks:
 *
 *   struct state {
 *     struct cb_arena arena;
 *     …
 *
 * The core frees both. A layout hands no block to the core: index arrays are functions of the state, or lists in its
 * arena, and the core reads them once to choose their storage and again when it packs.
 */
#ifndef CBGEN_ANALYSIS_LAYOUT_H
#define CBGEN_ANALYSIS_LAYOUT_H

#include "analysis/walk.h"
#include "base/real.h"

/* Element i of an index array. */
typedef uint64_t cb_element_of(const void *state, int64_t i);

/* Where the elements of an index array come from, when they are packed: one of the four. */
struct cb_contents {
  cb_element_of *of;
  const void *elements;  /* in the state's arena, unsigned integers of `size` bytes */
  int size;
  uint64_t there;        /* a list that is where the matrix is (struct cb_remote_list) */
  struct cb_field slots; /* the visit; `elements` and `type` are filled in then */
};

/* A region's companion in the assignment. */
struct cb_region_work {
  struct cb_part part;
  struct cb_csr *part_csr;       /* owned when the part was made by a split, else NULL */
  uint32_t *part_origin;         /* likewise */
  uint64_t *part_origin64;
  struct cb_found part_found;    /* likewise */
  struct cb_contents *contents;  /* one per array of the region; in the plan's arena */
  int contents_count;
  void *state;                   /* the layout's own; begins with the arena that owns what it points to */
  int64_t units;                 /* what visit walks over: slices, tiles, panels */
};

struct cb_value_summary; /* analysis/values.h */

/* A region under construction. Every call below fails stickily into builder->failed (memory). */
struct cb_region_builder {
  const struct cb_options *options;
  const int64_t *settings; /* the layout's part of them, by the enum that numbers its options */
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
  int64_t separate_launch_ns;    /* what not joining costs: a launch, and another pass over x and y */
  struct cb_arena *arena;        /* the plan's: lives as long as the plan */
  struct cb_region region;
  struct cb_region_work work;
  int failed;
  int needs_columns; /* what was asked for takes all columns, which are not on the host */
};

/* Makes the layout's state, builder->work.state: `size` bytes, zeroed, that begin with a struct cb_arena. The region
 * commits as the recipe says, unless the layout says otherwise. CB_ERR_MEMORY; CB_ERR_LIMIT: more than most_rows. */
enum cb_status cb_region_state(struct cb_region_builder *builder, size_t size, struct cb_diag *diag);

void cb_region_fact(struct cb_region_builder *builder, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* `constexpr int NAME = VALUE;  // ORIGIN` in the region's namespace. Structure is what a kernel's shape hangs on:
 * lanes, items, vectors, batches, the size of a thread block, extents of arrays in registers and static shared memory.
 * A size is a count, stride, offset or grid, which a kernel could as well read from memory. */
void cb_region_structure(struct cb_region_builder *builder, const char *name, int64_t value, const char *origin);
void cb_region_size(struct cb_region_builder *builder, const char *name, int64_t value, const char *origin);
void cb_region_placeholder(struct cb_region_builder *builder, const char *name, const char *text);
/* The same with a finished text, which it releases. */
void cb_region_placeholder_text(struct cb_region_builder *builder, const char *name, struct cb_text *text);
/* The text has that section of the layout's template. */
void cb_region_section(struct cb_region_builder *builder, const char *name);

/* The kernel of a family gets sizes, and arrays that are not by slot, as data (codegen/family.h), whatever their
 * storage. A layout whose text then has fewer forms serves more matrices with one kernel. These say what the region's
 * text is there: sections that it has in any case, or does not have; sizes, and affine arrays base + step * i, that
 * such sections ask for where the matrix does not (one that the region has already is taken); and structure that is
 * coarser. */
void cb_region_family_with(struct cb_region_builder *builder, const char *section);
void cb_region_family_without(struct cb_region_builder *builder, const char *section);
void cb_region_family_size(struct cb_region_builder *builder, const char *name, int64_t value);
void cb_region_family_sequence(struct cb_region_builder *builder, const char *name, int64_t base, int64_t step);
void cb_region_family_structure(struct cb_region_builder *builder, const char *name, int64_t value,
                                const char *origin);
/* A table of the text, `count` integers: a placeholder's contents, and data of a family's kernel, under the name that
 * the text reads it by. */
void cb_region_table(struct cb_region_builder *builder, const char *placeholder, const char *name,
                     const int64_t *elements, int count);

/* A finite number of the sums' type as the text spells it ("0.1f"), for constants: see cb_real_text. */
enum { CB_LITERAL = CB_REAL_TEXT + 1 };
void cb_literal(char literal[CB_LITERAL], double value, enum cb_type sum_type);

/* Index arrays. Their storage is chosen: affine sequences become arithmetic, tables up to options->bake_limit entries
 * are baked, others are stored in the narrowest type. Count 0 is an affine array.
 *
 * Of `count` elements that a function gives, or that are listed in the state's arena (unsigned, of 1, 2, 4 or 8 bytes;
 * a list that is NULL has failed). */
void cb_region_computed(struct cb_region_builder *builder, const char *name, const char *meaning, int64_t count,
                        cb_element_of *of);
void cb_region_elements(struct cb_region_builder *builder, const char *name, const char *meaning, int64_t count,
                        const void *elements, size_t size);
#define cb_region_list(builder, name, meaning, count, list) \
  cb_region_elements((builder), (name), (meaning), (count), (list), sizeof *(list))

/* Of the elements of a list that the matrix's columns are remote with. */
void cb_region_remote(struct cb_region_builder *builder, const char *name, const char *meaning,
                      const struct cb_remote_list *list);

/* Of `count` slots from `first` on, the elements that the visit emits with them: `bits` bits of each (0: all) from bit
 * `shift` on. `least` and `largest` are those of the elements that occur; slots without a nonzero have 0. If these show
 * that the array is neither affine nor baked, the region need not be ready to be visited yet; if not, columns that are
 * not on the host are brought for the visit (cb_walk_columns), unless it needs more of the matrix than these. */
struct cb_slot_elements {
  int64_t first, count;
  int64_t least, largest;
  int shift, bits;
  int of_columns; /* the visit reads cb_walk_columns, and nothing else of single nonzeros */
};
void cb_region_by_slot(struct cb_region_builder *builder, const char *name, const char *meaning,
                       struct cb_slot_elements elements);

/* The index array that came last is read once by a product: stored, it is read past L1. */
void cb_region_streamed(struct cb_region_builder *builder);

/* A byte array that the visit fills, the array of value slots, or an array that mixes both. One array of a region at
 * most holds value slots; `value_slots` of the region follows from it. */
void cb_region_bytes(struct cb_region_builder *builder, const char *name, const char *meaning, int64_t bytes);
/* To be called before value_bytes is used when slots without a nonzero are multiplied like others, and so must read
 * as zero() (what is stored there is that in any case): the storage may then be another. */
void cb_region_zero_slots(struct cb_region_builder *builder);
/* Whether such a slot may still harm: 0 times an x that is not finite. Then the region stores presence bits, and looks
 * at sums that are not finite again. */
static inline int cb_region_needs_presence(const struct cb_region_builder *builder) {
  return cb_semiring_minds_infinity((enum cb_semiring)builder->options->semiring);
}
/* Templates read value slots through `value(arrays, slot)` (streamed), `value_cached(arrays, slot)` and
 * `value_vector<n>(arrays, slot)` (n neighbours, aligned), which give numbers of sum_t; `stored_t` is a slot's type. */
void cb_region_values(struct cb_region_builder *builder, const char *name, const char *meaning, int64_t slots);
/* An array of bytes and value slots: builder->value_bytes > 0, and values are not split. */
void cb_region_mixed(struct cb_region_builder *builder, const char *name, const char *meaning, int64_t bytes);
/* Whether numbers have 16 bytes, two doubles: what suits 8 (doubles, two floats) asks for too many registers then. */
static inline int cb_region_is_wide(const struct cb_region_builder *builder) {
  return cb_type_size(builder->sum_type) > 8;
}
/* Thread blocks of a multiprocessor where `blocks` suit numbers of 8 bytes. */
static inline int cb_region_blocks_for(const struct cb_region_builder *builder, int blocks) {
  return cb_region_is_wide(builder) && blocks > 2 ? (blocks + 1) / 2 : blocks;
}
/* `slots` more of the slot map's, behind all others, whose numbers the layout itself makes constants of its text. */
void cb_region_constant_slots(struct cb_region_builder *builder, int64_t slots);

/* Carry slots of rows in segments, unless there are none: one for each of `segments`, and a group of them for each row.
 * A group begins with the segment whose number within its row is 0. Adds arrays carry_group and carry_first, and the
 * constant kSegments, whose `origin` is told; the text has section `section`. */
void cb_region_carries(struct cb_region_builder *builder, const char *section, int64_t segments, const uint32_t *number,
                       const char *origin);
/* The same where a function of the state says whose each segment is: the row's, or that of what has several rows. Those
 * of one follow one another. */
void cb_region_carries_by(struct cb_region_builder *builder, const char *section, int64_t segments,
                          cb_element_of *owner, const char *origin);

/* Whether the region may write `row`. */
static inline int cb_owns(const uint32_t *own_rows, int64_t row) {
  return !own_rows || (own_rows[row / 32] >> row % 32 & 1);
}
/* Makes builder->own_rows an array of the region, which templates ask through `owns(arrays, row)`. */
void cb_region_own_rows(struct cb_region_builder *builder);

/* Whether thread blocks of so many rows can join those that builder->joins_rows says. */
static inline int cb_region_may_join(const struct cb_region_builder *builder, int64_t block_rows) {
  return builder->joins_rows && (builder->joins_rows % block_rows == 0 || block_rows % builder->joins_rows == 0);
}

/* What cb_region_zero_slots does, without zeros; whoever makes the builder calls it first. */
void cb_region_choose_values(struct cb_region_builder *builder, int zeros);

/* A nonzero as a visit met it: in the layout's unit, row of the matrix, slot. */
struct cb_met {
  int64_t unit, row, slot;
};

/* What the kernels that pack a region on the device (templates/pack_NAME.cu.in) read beside the matrix: numbers, and
 * lists of the region's state. A list that is not there has no bytes. */
enum { CB_PACK_NUMBERS = 8, CB_PACK_LISTS = 8 };
struct cb_pack_lists {
  int64_t numbers[CB_PACK_NUMBERS];
  struct cb_pack_list {
    const void *elements;
    int64_t bytes;
  } lists[CB_PACK_LISTS];
  int64_t warps; /* that share out the work */
  /* What a first kernel finds out from columns, so that those which pack values need none: its bytes. 0: nothing. And
   * the name of the byte array that it fills on the way, if the region has that. */
  int64_t shape_bytes;
  const char *bytes_array;
};

struct cb_recipe; /* analysis/plan/recipe.h */

/* All that concerns a layout. Its place in the table of layout.c is its place in help and in searches. */
struct cb_layout {
  const char *name, *summary, *source; /* source: the publication, or "-" */
  const struct cb_option *options;     /* what a caller may choose; an enum of the layout's numbers the rows */
  int options_count;
  /* Whether the settings contradict each other: CB_ERR_ARGUMENT. NULL: they cannot. */
  enum cb_status (*check)(const int64_t *settings, struct cb_diag *diag);
  const struct cb_recipe *recipes; /* those that are named after it; ends with a NULL name */
  int64_t most_rows; /* the text counts them in an int, padding included; 0: plan looks itself */
  /* Fills the builder for its part (builder->work.part). */
  enum cb_status (*plan)(struct cb_region_builder *builder, struct cb_diag *diag);
  cb_visit *visit;
  const char *unit; /* what the visit goes over, as reports call it: "slice" */
  /* For reports (plan/thread_blocks.h), of a region without block_rows: which of its thread blocks multiplies a
   * nonzero. NULL: it is not told. */
  int64_t (*block_of)(const void *state, struct cb_met met);
  /* For reports (plan/loads.h). Adds the nonzeros that each of the region's thread blocks multiplies. NULL: they are
   * those of block_rows rows each, where there are any. */
  void (*count_loads)(const void *state, int64_t *nonzeros);
  /* The same without the layout's balancing; gives the number of thread blocks, and only that when `nonzeros` is NULL.
   * NULL: it balances nothing. */
  int64_t (*count_unbalanced)(const void *state, int64_t *nonzeros);
  int has_family;     /* its text reads all sizes where it has `arrays`, so that they can be data (codegen/family.h) */
  /* Says by what kernels pack a region of the whole matrix. A layout that has it can also plan for a matrix whose
   * columns are not on the host (csr->remote). NULL: it is packed on the host. */
  void (*describe)(const void *state, struct cb_pack_lists *lists);
  int ignores_rows; /* it plans without row pointers, too, where columns are not on the host */
  int minds_own_rows; /* it heeds builder->own_rows, and CB_COMMIT_OWN */
  /* What a product takes at least: so many bytes beside the value of each nonzero at a share of the read rate, and some
   * nanoseconds; 0 %: unknown. sampled_ns (NULL: none) finds another bound, much faster than by planning. */
  struct cb_least {
    int64_t bytes, percent, ns;
    int64_t (*sampled_ns)(const struct cb_csr *csr, const struct cb_target *target, struct cb_types types);
  } least;
};

/* Nanoseconds that a plan of this layout for the whole matrix will at least be predicted to take: a search leaves out
 * what cannot win. 0: unknown. */
int64_t cb_layout_least_ns(const struct cb_layout *layout, const struct cb_csr *csr, const struct cb_target *target,
                           struct cb_types types);

extern const struct cb_layout *const cb_layout_table[]; /* ends with NULL */
const struct cb_layout *cb_layout_find(const char *name);

#endif
