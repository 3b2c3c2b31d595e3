// SPDX-License-Identifier: Apache-2.0
/* The plan: everything that code generation will know about a matrix, and nothing else.
 *
 * A plan is a list of regions and a list of launches. A region is one layout applied to some of the nonzeros: the
 * constants and index arrays of its text, the sections of its template, and the thread blocks that work on it. A
 * launch runs one region, or several that stand next to each other: in turn, when each of its thread blocks takes the
 * same rows through one after the other, and only the last writes y; or beside each other, on thread blocks of their
 * own, when each writes rows of its own. Launches run in order: first those that write rows of y, then those that add
 * to what stands there.
 *
 * The plan's companion, the assignment, holds what only packing needs: the contents of the index arrays and the
 * slot map (slot → nonzero). Codegen never sees it, so the text depends on (plan, label) alone.
 *
 * A plan is immutable once cb_plan_build has returned it. It prints as one line:
 *
 *   plan   = "(spmv " [ "(semiring " word ") " ] [ "(conjugate on) " ] [ "(vectors " count ") " ] node ")"
 *                                                 the semiring, unless it is plus-times; vectors, unless it is one
 *   node   = "(" layout { " " fact } ")"                         a region
 *          | "(split " splitter { " " fact } { " " node } ")"    parts, in the order of their regions
 *          | "(choose " fact { " " fact } " " node ")"           the cheapest of several nodes
 *   fact   = "(" key " " atom { " " atom } ")"
 *   atom   = an integer, a word, a decimal fraction or NAME=VALUE; no spaces, no parentheses
 *
 * Some facts say what the builder decided, not a layout or a split:
 *
 *   (with dia-fill=75 dia-most=8)   a node's own settings, which hold for all below it
 *   (fused in-turn)                 of a split: what its second part begins with shares the launch of what the first
 *                                   one ends with; a word for each neighbouring pair of parts: in-turn, beside
 *                                   or separate
 *   (from sell merge)               of a choice: what there was, by layout or split
 *
 * A split that takes nothing leaves no trace; a part without nonzeros has no node, unless it writes y all the same.
 * Checked on paper against recipes that stand and those that are to come:
 *
 *   (dia (offsets -1 0 1))
 *   (split hot-columns (share 61) (merge …) (phases …))
 *   (split long-rows (longer 1024) (split diagonals (fill 50) (fused in-turn) (dia …) (sell …)) (merge …))
 *   (split fill (with fill-step=1) (shape square) (rate 75) (fused in-turn) (choose (from slices runs) (slices …))
 *     (split fill (with fill-step=2) (shape diag) (rate 75) (fused in-turn) (choose (from slices runs) (slices …))
 *       (split long-rows (longer 1024) (sell …) (choose (from merge cb) (merge …)))))
 *   (split defer (tiles 812) (fused in-turn) (tile …) (choose (from merge sell hot) (sell …)))
 *   (split crux (cols 66) (rows 41) (du …) (choose (from merge hot sell) (merge …)))
 *   (split patterns (kept 81) (fused in-turn) (patterns …) (sell …))
 */
#ifndef CBGEN_ANALYSIS_PLAN_H
#define CBGEN_ANALYSIS_PLAN_H

#include "analysis/options.h"
#include "analysis/statements/statements.h"
#include "analysis/target.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/text.h"
#include "frontend/csr.h"

#include <stdint.h>

/* Printed in the plan line. */
struct cb_fact {
  const char *key, *value;
};

enum cb_constant_kind { /* see cb_region_structure in layout.h */
  CB_CONSTANT_STRUCTURE = 1,
  CB_CONSTANT_SIZE
};

/* `constexpr int NAME = VALUE;  // ORIGIN` in the region's namespace. Every constant is used by the sections. */
struct cb_constant {
  const char *name, *origin;
  int64_t value;
  enum cb_constant_kind kind;
};

/* Where the elements of an index array come from at run time. The generated text reads every array through an
 * accessor of the array's name, so a layout's template does not change with the storage. */
enum cb_storage {
  CB_STORED, /* an array in device memory */
  CB_AFFINE, /* element i is base + step * i: arithmetic, no memory (step 0: all equal) */
  CB_BAKED   /* a small table in the text */
};

/* How a value slot gives its number. All but CB_VALUES_PLAIN of the matrix's type need fixed values. */
enum cb_value_storage {
  CB_VALUES_PLAIN, /* it holds the number, as value_type: the matrix's or a narrower one that loses nothing */
  CB_VALUES_CODED, /* it holds the number's place in value_table */
  CB_VALUES_EQUAL  /* every number is value_table[0], a constant of the text; there is no array */
};

enum cb_role {
  CB_ROLE_INDEX,  /* unsigned integers; their contents lie in the assignment, their storage is chosen */
  CB_ROLE_BYTES,  /* bytes that the layout's visit writes (coordinates) */
  CB_ROLE_VALUES, /* value slots only */
  CB_ROLE_TABLE,  /* the region's value_table, when it is not baked */
  CB_ROLE_MIXED   /* bytes in which value slots and coordinates alternate (cb's mtx_data) */
};

struct cb_array {
  const char *name, *meaning; /* accessor's name in the text, and its comment */
  enum cb_role role;
  enum cb_type type;    /* of an element: narrowed for INDEX, the value type for VALUES, else CB_U8 */
  enum cb_storage storage;
  int64_t count;        /* elements */
  int64_t largest;      /* INDEX: no element exceeds it */
  int streamed;         /* INDEX, stored: read once, so its accessor leaves x its place in L1 */
  int by_slot;          /* INDEX: an element for each slot, so that its width is part of a kernel's structure */
  int64_t base, step;   /* CB_AFFINE */
  const uint64_t *baked; /* CB_BAKED: count elements */
};

/* What a placeholder of the layout's template receives. */
struct cb_placeholder {
  const char *name, *text;
};

/* A table of integers that stands in the text by that name; as data of a family's kernel it has room for so many. */
enum { CB_FAMILY_TABLE = 64 };
struct cb_table {
  const char *name, *placeholder; /* the latter: of what has its elements in the text of a specialised kernel */
  const int64_t *elements;
  int count;
};

/* How a region's text differs in a family's kernel (codegen/family.h), which serves all matrices of one structure and
 * gets all sizes as data: sections that it has whatever the matrix, or leaves out; sizes and sequences that these ask
 * for and the matrix lacks; and structure that is coarser, so that fewer kernels serve more matrices. */
struct cb_family_parts {
  int with_count, without_count, structures_count, sizes_count, sequences_count, tables_count;
  const char **with, **without; /* sections */
  struct cb_constant *structures, *sizes;
  struct cb_array *sequences; /* CB_AFFINE */
  struct cb_table *tables;    /* that are data there */
  int blocks_per_sm;          /* 0: as the region's */
};

/* How a region's row sums reach y. The first four are what a layout plans for; of regions in turn the first one keeps
 * sums, the last one has what was kept, and those between do both. */
enum cb_commit {
  CB_COMMIT_FINAL, /* the region writes every row of y: α, β and empty rows are its duty (other regions' own rows are
                    * not) */
  CB_COMMIT_OWN,   /* the same for the rows that have nonzeros here; it writes no others */
  CB_COMMIT_ADD,   /* y was written by an earlier launch; the region adds α·sum to the rows it touches */
  CB_COMMIT_ATOMIC, /* the same, but several thread blocks may add to one row at a time */
  CB_COMMIT_KEEP,  /* row sums stay in shared memory, for the next region of the launch */
  CB_COMMIT_KEPT,  /* as CB_COMMIT_FINAL or CB_COMMIT_OWN, beginning with the sums that the regions before kept */
  CB_COMMIT_KEPT_KEEP, /* row sums are added to those that the regions before kept */
  CB_COMMIT_KEPT_ADD   /* as CB_COMMIT_ADD, beginning with the sums that the regions before kept */
};

/* What warps ask of L1 for several vectors, step by step; none: steps 0. */
struct cb_steps {
  int64_t steps;   /* of all warps, as one vector has them */
  int loads;       /* of the matrix in a step, each of which is a line of L1 */
  int columns;     /* of X that a lane multiplies in a step */
  int neighbours;  /* neighbouring lanes have neighbouring rows of X */
  int values;      /* that a thread holds while it waits for X; 0: its registers are as many as the launch leaves it */
  int entries;     /* of X, for each vector, that are in flight with these */
  int registers;   /* beside these and sums */
};

/* How a region shares the launch of the region before it. */
enum cb_joining {
  CB_SEPARATE, /* it does not */
  CB_IN_TURN,  /* the same rows: its `blocks` and block_rows may be others */
  CB_BESIDE    /* other rows; it has the first thread blocks, since what is split off takes longer */
};

/* Predicted cost, in integers so that plans compare equal everywhere. */
struct cb_cost {
  int64_t bytes;   /* read from and written to device memory by one product, x and y once each */
  int64_t sectors; /* 32-byte sectors of x asked of L2 */
  int64_t work_ns;  /* the layout's own bound on throughput (instructions) */
  int64_t chain_ns; /* the longest chain of dependent loads of one warp: goes on beside what others stream */
  int64_t tail_ns;  /* what follows the last load: adding up, waiting for the last segment of a row */
  int64_t stream_percent; /* of the device's read rate that the layout reaches; 0: 100 */
  /* what the prediction makes of that */
  int64_t stream_ns, gather_ns; /* for the bytes, for the sectors */
  int64_t gpu_ns;  /* on the GPU; of a plan: of all launches, the host's pace left aside */
  int64_t ns;      /* predicted time */
};

/* How threads share the vectors of a row's work, in kernels for several. */
enum cb_sharing {
  CB_SHARING_LANES, /* `parts` warps have the work of one, which is possible where few of its lanes share a row */
  CB_SHARING_WARPS, /* likewise, and where more of its lanes do, these warps meet in shared memory */
  CB_SHARING_TURNS, /* a warp has the work of a warp, a share of its lanes at a time */
  CB_SHARING_TILES, /* a warp has the work of a warp; lane t of four has vectors 2 t and 2 t + 1 of eight, which is what
                     * tensor cores leave in a lane; or vector t of four */
  CB_SHARINGS
};

/* What becomes in L2 of what a product reads once: the upper half of a cache policy, as PTX's createpolicy makes it for
 * sm_80 and later. */
enum {
  CB_STREAM_LEAVES = 0x12F00000, /* it makes room first, for x, y and what others have there */
  CB_STREAM_STAYS = 0x16F00000,  /* it is as all else, so that the next product finds it */
  CB_STREAM_KEPT = 0x14F00000,   /* it stays before all else */
  CB_STREAM_SHARES = 0x15000000, /* n sixteenths of it stay, and the rest leaves: + n * CB_STREAM_SIXTEENTH */
  CB_STREAM_SIXTEENTH = 1 << 20
};

/* Whether a region's text itself waits for the kernel before, behind what it looks up of the matrix, and lets the one
 * behind start. */
enum cb_late {
  CB_LATE_NEVER,
  CB_LATE_ALONE, /* for one vector, where it has its launch for itself, as `next` says */
  CB_LATE_ALWAYS /* it has launches of its own, and says itself when the one behind may start */
};
/* When the kernel behind may start. */
enum cb_next {
  CB_NEXT_AT_END,  /* as this one ends, which waits at its beginning */
  CB_NEXT_BEHIND,  /* when this one has waited, behind what it looks up */
  CB_NEXT_AT_ONCE, /* when all thread blocks of this one are there */
};
/* Not three on each multiprocessor of an H200: those of the launch behind have room beside them. Without it they wait
 * in places that others would have: 20000 rows of 16 nonzeros, 625 thread blocks, took 4.9 us for 3.6; R-MAT 15 by
 * merge, 393, 4.74 for 4.62; mip_nw04, 354, 4.06 for 4.41. */
enum { CB_LATE_BLOCKS = 360 };

struct cb_region {
  char name[24];      /* namespace in the text: layout name and number, "cb0" */
  const char *layout; /* name in the layout table */
  int64_t nonzeros;   /* of the matrix, in this region */
  int64_t mirrored;   /* of these, those that are read from the slot of their mirror image (plan/symmetry.h) */
  int64_t value_slots; /* slots that the slot map covers: those of the VALUES or MIXED array, in units of the value
                        * type, then the constant ones */
  int64_t constant_slots; /* slots whose numbers are constants of the text: in no array */
  enum cb_value_storage value_storage;
  enum cb_type value_type;   /* of a value slot */
  int table_count;           /* CB_VALUES_CODED and CB_VALUES_EQUAL: numbers in value_table */
  int table_baked;           /* the table stands in the text, else in an array */
  const double *value_table; /* ascending by bit pattern, so that code 0 is +0 where that occurs */
  int64_t bytes;      /* stored arrays, all of them */
  int32_t stream;     /* CB_STREAM_…, of what is read once: the same in all regions */
  int keeps_indices;    /* gathers wait for what it reads once beside values: where a part stays, that does first */
  int32_t value_stream; /* of values alone, where all else that is read once is kept; 0: all as `stream` says */
  enum cb_commit commit;
  int owns_rows; /* the rows that it writes are not all: other regions write the others */
  int64_t first_block, blocks; /* thread blocks within its launch */
  int64_t block_rows; /* thread block b commits exactly the rows from block_rows · b on, those without a nonzero, too,
                       * whatever the commit; 0: it is not that simple */
  int loads_together; /* for several vectors: threads load without branches, and the fewer thread blocks there are, the
                       * more registers they have for it */
  int scatters_rows;  /* rows that are written side by side are not neighbours */
  int takes_vectors;  /* its text takes sums of several vectors (plan/vectors.c) */
  int most_lanes;     /* then: lanes that work on a row at most, while all else of a thread is its own; 0: threads
                       * cannot share vectors, since more of a thread block works together */
  int carries_parts;  /* then: carry slots have a place for each thread that shares vectors, and a second launch adds
                       * them up */
  int thread_rows;    /* then: rows whose sums a thread has at a time; 0: one */
  int dealt;          /* then: of so many thread blocks, neighbours by their rows, each multiprocessor has all, one
                       * after the other as far as GPUs deal them out in order; 0: they go to as many multiprocessors */
  enum cb_sharing sharing; /* likewise: how its text shares vectors where lanes that share rows leave no others to */
  enum cb_late late;
  enum cb_next next; /* of CB_LATE_ALONE */
  int next_is_structure; /* then: a family's text has it; 0: there it is the size `next_start` */
  int may_start_next; /* where it is that size: it may be CB_NEXT_AT_ONCE */
  int loads_early;    /* of CB_LATE_ALONE: loads of slots that stand before the wait shall stay there: they are no
                       * read-only ones, from places of 64 bits */
  int staged_parts;   /* then, where what threads bring is added up in shared memory: so many can share vectors at most,
                       * and one has no more than a piece; 0: sums stay with their threads */
  int64_t several_ns; /* what a product by all of them takes on the GPU; 0: it follows from what one takes */
  struct cb_steps steps; /* likewise, where lanes that share rows leave others to vectors */
  int64_t wait_ns;    /* for several vectors: all warps' waits, where each has so few loads that nothing else goes on:
                       * once more for each further thread that shares a row's vectors */
  int64_t further_ns; /* likewise: instructions of each further one, for what threads bring to shared memory */
  int64_t turn_ns;    /* likewise, where threads that share vectors take turns: what ends one before the next */
  int row_threads;    /* then: neighbouring threads that share a row, of which the first commits it */
  int64_t row_sectors; /* for several vectors: 32-byte sectors of X asked of L2 where the vectors' entries of a row lie
                        * side by side; 0: not known, since rows ask for neighbours */
  enum cb_joining joining;
  int64_t carry_slots;         /* carry slots (of carry_width sums each) and counters that it needs */
  int64_t carry_width;
  int64_t carry_counters;
  int64_t first_carry_sum, first_carry_counter; /* where they start in the operator's scratch */
  int64_t prepare_blocks;      /* of 256 threads, in a launch before that runs the region's `prepare`; 0: none */
  int64_t finish_blocks;       /* likewise, in a launch behind that runs its `finish` */
  int64_t static_shared, dynamic_shared; /* bytes */
  int threads;       /* of a thread block; 0: 256 */
  int blocks_per_sm; /* thread blocks that a multiprocessor should hold: bounds the registers; 0: not asked for */
  int several_blocks; /* the same for several vectors by rows, of which a thread has few; 0: by a thread's sums */
  int facts_count, constants_count, arrays_count, placeholders_count, sections_count;
  struct cb_fact *facts;
  struct cb_constant *constants;
  struct cb_array *arrays;
  struct cb_placeholder *placeholders;
  const char **sections; /* of the layout's template (templates/LAYOUT.cu.in) that the text has */
  struct cb_family_parts family;
  struct cb_cost cost;
};

enum { CB_REDUCE_ROWS = 1024 }; /* that a thread block of body reduce_terms takes */

struct cb_launch {
  const char *body; /* NULL: runs regions; else the body that kernel.cu.in defines by that name:
                      *   scale_y      β y, before regions add to it with atomics
                      *   clear_sums   sums of all rows, before regions add to them
                      *   commit_sums  writes every row from its sum, behind all others
                      *   reduce_terms  makes one number of what each row gave an epilogue's reductions */
  int prepares;             /* runs the regions' `prepare` instead of their `multiply`, or, behind it, their `finish` */
  int finishes;             /* then: the latter */
  int first_region, regions;
  int64_t blocks;
  int64_t block_rows; /* of several regions in turn: rows of a thread block, a multiple of each region's; else 0 */
  int threads;
  int blocks_per_sm;      /* 0: not asked for */
  int64_t dynamic_shared; /* bytes */
};

/* What a search looked at: for reports, and for the text's comment that says why. No part of the JSON or the hash, so
 * that a kernel takes the data of the same plan, whether its recipe was searched or named. */
enum { CB_MAX_CANDIDATES = 16 };
struct cb_candidate {
  const char *recipe;
  char line[480];       /* the plan's, cut when it is longer */
  int launches;
  int64_t bytes;        /* stored */
  struct cb_cost cost;
  char refusal[240];    /* why the recipe does not fit this matrix; empty when it does */
};

/* How a kernel for several vectors deals them out: each thread has `each` of them, and `parts` neighbouring threads
 * share the work that one has in the kernel for one vector. A launch takes up to each · parts vectors. */
struct cb_vector_share {
  int each, parts; /* powers of 2; 0: there is no such kernel */
  enum cb_sharing sharing;
  int y_too; /* of CB_VECTORS_COPIED: kernels write Y by rows into the scratch, too, and a launch behind stores it */
};
enum cb_vector_kernel {
  CB_VECTORS_PACKED, /* entries of a row of X, and of Y, are neighbours and aligned for loads of `each` at once */
  CB_VECTORS_STRIDED, /* they are anywhere */
  CB_VECTORS_COPIED, /* they are anywhere, but a launch before lays X out by rows in the scratch: where gathers of
                      * single entries take longer than that */
  CB_VECTOR_KERNELS
};

struct cb_plan {
  struct cb_arena arena; /* owns everything below */
  int64_t rows, cols, nnz;
  enum cb_type matrix_type, vector_type, sum_type; /* values as stored, x and y, accumulation and α, β */
  enum cb_form form;
  enum cb_semiring semiring;
  int atomics;
  int commits_once; /* each row of y is written once, where its sum is complete: asked for, or y is narrower */
  int row_sums;     /* several launches add to a row: to its sum in the scratch, which a last launch commits */
  int64_t first_row_sum; /* then: where they start there; as many as rows */
  int vectors; /* that the text is for, beside one; 1: no more. A power of 2 */
  struct cb_vector_share shares[CB_VECTOR_KERNELS]; /* then */
  int vector_blocks; /* then: thread blocks that a multiprocessor should hold; 0: what suits a thread's sums */
  const char *epilogue;  /* the text that all epilogues of its meaning have; NULL: none, rows are stored in y */
  const struct cb_statements *statements; /* its; NULL: none */
  int64_t first_term;    /* with reductions: where each row's terms start in the scratch, those of one reduction after
                          * those of another, and then as many sums of thread blocks (CB_REDUCE_ROWS) for each */
  int64_t reduce_counter; /* likewise: the counter by which the last thread block is known */
  int symmetry; /* enum cb_symmetry_option, but for auto: whether half of the matrix may be stored */
  int conjugated;   /* the values of a complex matrix are, as the kernel reads them */
  int values_fixed; /* they may be part of the plan, and cannot be renewed */
  int64_t index_limit; /* larger indices and numbers in index arrays have 64 bits in the text */
  struct cb_target target;
  const char *recipe;  /* that was followed: after a search, the winner's name */
  const char *line;  /* the one line of the grammar above */
  struct cb_hash hash; /* of everything that shapes the kernel: all of the text but its comment on the search */
  int64_t carry_sums, carry_counters; /* scratch: elements of sum_type, and uint32 counters (zero at load) */
  struct cb_cost cost;
  int candidates_count; /* of a search, in the order tried; 0 without one */
  int is_chosen_by_profile; /* then candidates but the winner have no plan, and times are the profile's */
  struct cb_candidate candidates[CB_MAX_CANDIDATES];
  int regions_count, launches_count;
  struct cb_region *regions;
  struct cb_launch *launches;
};

/* What packing needs beside the plan. Opaque: see analysis/plan/assignment.h. */
struct cb_assignment;

/* Whether recipe auto is chosen by a profile: values are data, and no option but the search's and those of texts shapes
 * the plan. */
int cb_search_is_by_profile(const struct cb_options *options);

/* Analyses `csr` and decides. On success *plan and *assignment are the caller's (cb_plan_free,
 * cb_assignment_free); on failure both are NULL. The matrix must stay alive until packing is done. Deterministic
 * for any number of OpenMP threads. */
enum cb_status cb_plan_build(struct cb_plan **plan, struct cb_assignment **assignment, const struct cb_csr *csr,
                             const struct cb_target *target, const struct cb_options *options,
                             struct cb_diag *diag);
void cb_plan_free(struct cb_plan *plan);
void cb_assignment_free(struct cb_assignment *assignment);

/* The vectors that one launch of such a kernel takes; 0: there is none. How many thread blocks it has for one of the
 * kernel for one vector. The numbers of a carry slot, for all kernels. */
static inline int cb_share_vectors_of(const struct cb_vector_share *share) { return share->each * share->parts; }
enum { CB_PIECE_BYTES = 16 }; /* of neighbouring vectors, which one load brings */
enum { CB_STATIC_SHARED = 48 << 10 }; /* bytes of static shared memory that a thread block can have */
static inline int cb_share_piece(const struct cb_vector_share *share, enum cb_type vector) {
  const int most = CB_PIECE_BYTES / (int)cb_type_size(vector);
  return share->each < most ? share->each : most;
}
/* X, or Y, in the scratch of such a kernel: bytes of a row, whatever the number of vectors; and rows that a thread
 * block of CB_COPY_THREADS lays out, by a tile in shared memory. */
enum { CB_COPY_THREADS = 256, CB_COPY_TILE = 16 << 10 };
static inline int64_t cb_copy_row_bytes(const struct cb_vector_share *share, enum cb_type vector) {
  return (int64_t)cb_share_vectors_of(share) * (int64_t)cb_type_size(vector);
}
static inline int64_t cb_copy_rows(const struct cb_vector_share *share, enum cb_type vector) {
  return CB_COPY_TILE / cb_copy_row_bytes(share, vector);
}
static inline int cb_share_blocks(const struct cb_vector_share *share) {
  return share->sharing == CB_SHARING_TURNS || share->sharing == CB_SHARING_TILES ? 1 : share->parts;
}
static inline int cb_share_numbers(const struct cb_vector_share shares[CB_VECTOR_KERNELS]) {
  int most = 1;
  for (int i = 0; i < CB_VECTOR_KERNELS; i++) {
    const int numbers = cb_share_vectors_of(&shares[i]);
    if (numbers > most) most = numbers;
  }
  return most;
}
static inline int cb_plan_vectors(const struct cb_plan *plan, enum cb_vector_kernel kernel) {
  return cb_share_vectors_of(&plan->shares[kernel]);
}

/* Whether the text has kernels that read heads alone: those of a product, with "_heads" behind their names. */
static inline int cb_plan_has_heads(const struct cb_plan *plan) { return plan->matrix_type == CB_SPLIT; }

/* Whether values, vectors and sums are complex. */
static inline int cb_plan_is_complex(const struct cb_plan *plan) { return cb_type_is_complex(plan->sum_type); }

/* The plan as JSON (indented, stable order of keys): all of it but array contents. */
enum cb_status cb_plan_json(const struct cb_plan *plan, struct cb_text *text, struct cb_diag *diag);

/* The numbers of a plan back from its JSON, which may come from anywhere: shape, types, target, costs, arrays, launches
 * and the hash; not what only the text needs. CB_ERR_FORMAT. Free with cb_plan_free. */
enum cb_status cb_plan_parse(struct cb_plan **plan, const char *json, struct cb_diag *diag);

/* Whether the plan was made for fixed values: then cb_pack_values and every later renewal must refuse. */
int cb_plan_values_fixed(const struct cb_plan *plan);

/* The plan's types as one word, the value of option `type` ("f16-f32"). */
const char *cb_plan_types_name(const struct cb_plan *plan);

static inline int cb_plan_rounds_y(const struct cb_plan *plan) {
  return cb_rounds_y(plan->vector_type, plan->sum_type);
}

/* Checks a plan against itself: ranges of blocks, names, sizes, totals. CB_ERR_INTERNAL names what is broken. */
enum cb_status cb_plan_check(const struct cb_plan *plan, struct cb_diag *diag);

/* Whether each row of y is written exactly once, by `commit`: what shall happen to a finished row can happen there. */
int cb_plan_single_commit(const struct cb_plan *plan);

/* What the reports of a search say of a plan. */
struct cb_candidate cb_plan_candidate(const struct cb_plan *plan);

/* Of the recipes that a search looked at, the next dearer one than recipe `than` by prediction: for a kernel that turns
 * out to be of no use. NULL: there is none. */
const char *cb_plan_next_recipe(const struct cb_candidate *candidates, int count, const char *than);

/* Whether the recipe would take `limit_ns` at least, as a bound from a sample says before it is
 * planned; `refusal` (of `size` bytes) says so then. Never with the option search=all. */
int cb_plan_is_pruned(const char *recipe, const struct cb_csr *csr, const struct cb_target *target,
                      const struct cb_options *options, int64_t limit_ns, char *refusal, size_t size);

/* Predicted nanoseconds of a kernel that stores `bytes_per_nonzero` of csr, and reads x and writes y once, at
 * `percent` of the full rate: for cb_layout_least_ns. */
int64_t cb_plan_stream_ns(const struct cb_csr *csr, const struct cb_target *target, struct cb_types types,
                          int64_t bytes_per_nonzero, int64_t percent);

/* Nanoseconds that fetching so many 32-byte sectors of x from L2 takes a kernel. */
int64_t cb_plan_gather_ns(int64_t sectors, const struct cb_target *target);

/* Nanoseconds for bytes that are read once: from L2 while they fit there, from memory when they are well beyond it. */
int64_t cb_cost_stream_ns(int64_t bytes, const struct cb_target *target);
/* Fills in what the device makes, as one launch, of the bytes, sectors and waits that are there. */
void cb_cost_estimate(struct cb_cost *cost, const struct cb_target *target);

/* Stored bytes of all regions (index and value arrays, without x, y and scratch). */
int64_t cb_plan_bytes(const struct cb_plan *plan);

#endif
