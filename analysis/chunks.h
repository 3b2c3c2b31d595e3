// SPDX-License-Identifier: Apache-2.0
/* Chunks of 8 rows, the height of a tensor core's tile: what layouts du and se store, and the hot part of a matrix that
 * the split `crux` takes. After MatXtract.
 *
 *   hot columns   as few as have a share of all nonzeros
 *   hot rows      as few as have a share of all nonzeros in hot columns
 *   hot part      the nonzeros of hot rows in hot columns
 *
 * A local row is a place in a chunk: a row, or none. A chunk's columns are those that its rows have nonzeros in; a
 * block is `width` columns of a chunk that follow one another among these, the last one perhaps fewer.
 */
#ifndef CBGEN_ANALYSIS_CHUNKS_H
#define CBGEN_ANALYSIS_CHUNKS_H

#include "analysis/sectors.h"

enum { CB_CHUNK_ROWS = 8, CB_CHUNK_VECTORS = 4 /* at least, for which warps share chunks */ };

/* ---- the hot part */

#define CB_FOUND_CRUX "crux"
struct cb_crux {
  int64_t cols, rows;                  /* how many are hot */
  unsigned char *hot_column, *hot_row; /* by number: 0, 1 */
  uint32_t *row_count;                 /* nonzeros of a row in hot columns */
  int64_t nonzeros;                    /* of the hot part */
};

/* The hot part for shares in percent, of which that of rows is no more than that of columns; of columns or rows with as
 * many nonzeros the first ones. CB_ERR_UNSUPPORTED: the matrix has so many columns that counters would take more memory
 * than it does. Deterministic for any number of threads. */
enum cb_status cb_crux_find(struct cb_crux *crux, const struct cb_csr *csr, int cols_percent, int rows_percent,
                            struct cb_diag *diag);
void cb_crux_release(struct cb_crux *crux);

static inline int cb_crux_has(const struct cb_crux *crux, int64_t row, int32_t column) {
  return crux->hot_row[row] && crux->hot_column[column];
}

/* ---- an order of rows, which a split hands to a layout */

struct cb_row_order {
  int64_t count;
  int32_t *row;
};

/* The hot rows: ascending, or those with most nonzeros in hot columns first (ties ascending). NULL: no memory. Freed
 * with cb_row_order_release. */
struct cb_row_order *cb_crux_order(const struct cb_crux *crux, int64_t rows, int sorted);
void cb_row_order_release(void *order);

/* Leaves the long ones of rows that are ordered by length, the longest first, and puts them in an order in which chunks
 * have fewer columns, as the rows of each share some. Deterministic. 0: no memory. */
int cb_chunks_gather(struct cb_row_order *order, const struct cb_csr *csr);

/* ---- chunks */

struct cb_chunks {
  const struct cb_csr *csr;
  const int32_t *row; /* of a local row; csr->rows: none. NULL: local rows are rows in order */
  int64_t count;      /* of chunks */
};

static inline int64_t cb_chunks_row(const struct cb_chunks *chunks, int64_t local_row) {
  if (chunks->row) return chunks->row[local_row];
  return local_row < chunks->csr->rows ? local_row : chunks->csr->rows;
}

/* Nonzeros of a local row: 0 of one that is none. */
static inline int64_t cb_chunks_length(const struct cb_chunks *chunks, int64_t local_row) {
  const int64_t row = cb_chunks_row(chunks, local_row);
  return row < chunks->csr->rows ? cb_csr_row_length(chunks->csr, row) : 0;
}

/* The walk over a chunk's columns. The rows are those of a part, or with `crux` the nonzeros of its hot part alone. */
struct cb_chunk_walk {
  const struct cb_csr *csr;
  const struct cb_crux *crux; /* NULL: all nonzeros */
  int64_t next[CB_CHUNK_ROWS], end[CB_CHUNK_ROWS];
};
struct cb_chunk_column {
  int32_t column;
  unsigned rows;                  /* bit i: local row i of the chunk has a nonzero there */
  int64_t nonzero[CB_CHUNK_ROWS]; /* then: which */
};
void cb_chunk_walk_open(struct cb_chunk_walk *walk, const struct cb_csr *csr, const struct cb_crux *crux);
void cb_chunk_walk_add(struct cb_chunk_walk *walk, int local_row, int64_t row);
struct cb_chunk_walk cb_chunk_walk_of(const struct cb_chunks *chunks, int64_t chunk);
int cb_chunk_walk_next(struct cb_chunk_walk *walk, struct cb_chunk_column *column); /* 0 behind the last one */

/* ---- what multiplies them */

/* Fused products lane by lane, or tensor cores: doubles, 4 columns at a time, or tf32, 8 at a time, for values of 16
 * bits, with each float of x in three parts. */
enum cb_mma { CB_MMA_NONE, CB_MMA_F64, CB_MMA_TF32 };

/* Whether there are tensor cores for these types and this target that round no more than fused products do: the one
 * place that decides. They know plus and times only. */
enum cb_mma cb_mma_for(struct cb_types types, const struct cb_target *target);

/* Whether tensor cores may multiply by several vectors at a time (CB_SHARING_TILES): there are `least` of them, of
 * doubles, and the region is the whole matrix, since its threads share vectors as no other's do. */
int cb_mma_takes_vectors(const struct cb_region_builder *builder, int least);

/* Columns of a block: 8 where values have 16 bits and sums 32, else 4. */
static inline int cb_chunk_width(struct cb_types types) {
  return cb_type_size(types.matrix) == 2 && types.sum == CB_F32 ? 8 : 4;
}

/* ---- options of both layouts: rows of du's table, and places in its settings */

enum {
  DU_FORM,       /* enum cb_mma_form */
  DU_SEGMENT,    /* steps of a chunk's segment; 0: by the matrix */
  DU_WARPS,      /* that share a unit, where they do; 0: by the matrix */
  CRUX_COLS,     /* percent; 0: as predicted */
  CRUX_ROWS,     /* likewise */
  CRUX_SORT,     /* enum cb_switch */
  CRUX_ENCODING, /* enum cb_crux_encoding */
  DU_OPTIONS
};
enum cb_mma_form { CB_MMA_BY_MODEL, CB_MMA_ASKED, CB_MMA_REFUSED };
enum cb_crux_encoding { CB_CRUX_BY_BYTES, CB_CRUX_DU, CB_CRUX_SE };
extern const struct cb_layout cb_layout_du;

/* ---- regions of chunks
 *
 * A chunk is worked off in steps: blocks, or a few nonzeros of each row. A warp takes a unit: a chunk, or a segment
 * of one that has more steps than a segment may have. Chunks in segments come first, and their sums go through carry
 * slots; units are in the order of their chunks. For CB_CHUNK_VECTORS and more all warps of a thread block may
 * share a unit. */

enum {
  CB_CHUNK_WARPS = 8, /* of a thread block */
  CB_CHUNK_BATCH = 4, /* steps that a warp loads together where warps share units: these have multiples of it */
  CB_CHUNK_MOST = INT32_MAX - 8192 /* rows */
};

/* What a layout's state begins with. */
struct cb_chunk_state {
  struct cb_arena arena;
  struct cb_chunks chunks;
  enum cb_mma mma;
  int width;            /* columns of a block */
  int warps;            /* of a thread block, which share a unit; 0: there are CB_CHUNK_WARPS, and each has its own */
  uint64_t *first_step; /* of each chunk, and one more */
  int64_t longest;      /* steps of a unit at most */
  int64_t units;
  uint64_t *unit_step; /* first step of each unit, and one more */
  uint32_t *unit_chunk;
  int64_t cut, segments; /* chunks in segments, and units of these: the first ones */
  int64_t segment;       /* steps of a segment */
  int64_t several_ns;    /* where warps share units: what a product is predicted to take on the GPU */
};

/* Makes the state, of `size` bytes: rows of the region's part in the order that a split found (then the others, if the
 * region writes all rows), else in their own, or by option the longest first; a region that does not write all rows has
 * those with nonzeros. Then what steps_of says of each chunk, and units. CB_ERR_UNSUPPORTED: tensor cores are asked for
 * where there are none. `shared`: where tensor cores may multiply by several vectors at a time, warps share units. */
typedef int64_t cb_steps_of_chunk(const struct cb_chunk_state *state, int64_t chunk);
enum cb_status cb_chunks_plan(struct cb_region_builder *builder, size_t size, cb_steps_of_chunk *steps_of, int shared,
                              struct cb_diag *diag);

/* Arrays row_of and `first` (of units), carries, thread blocks, the sections that both templates have, and facts. */
void cb_chunks_build(struct cb_region_builder *builder, const char *first, const char *meaning);

/* Batches of the longest unit, or of a warp's share of it, follow one another, of `batch` steps each; and sums of
 * segments are carried. What steps take beside their loads (work_ns) is the layout's to say. */
enum cb_status cb_chunks_predict(struct cb_region_builder *builder, int64_t batch, cb_sectors_visit *visit,
                                 struct cb_diag *diag);

/* The unit that has the chunk's step. */
static inline int64_t cb_chunk_unit(const struct cb_chunk_state *state, int64_t chunk, int64_t step) {
  if (chunk >= state->cut) return state->segments + chunk - state->cut;
  int64_t unit = 0, end = state->segments;
  while (end - unit > 1) {
    const int64_t middle = (unit + end) / 2;
    if (state->unit_step[middle] <= state->first_step[chunk] + (uint64_t)step)
      unit = middle;
    else
      end = middle;
  }
  return unit;
}

#endif
