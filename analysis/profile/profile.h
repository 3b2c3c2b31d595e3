// SPDX-License-Identifier: Apache-2.0
/* What a matrix looks like: the figures from which a person (`cbgen analyze`) and the choice of a recipe can
 * tell how it should be stored. Everything counted is an exact integer, so the profile is the same for any
 * number of threads; shares and means are derived from these integers by the functions at the end.
 *
 *   struct cb_profile profile;                     owns nothing, about 8 KB
 *   s = cb_profile_compute(&profile, csr, diag);
 *   cb_profile_text(&profile, &text);              for a person
 *   json = cb_profile_json(&profile);              for a program
 *
 * How to read it: struct cb_profile at the bottom names the parts, the structs above it are these parts.
 * "Nonzero" means a stored entry, explicit zeros included. Offsets of diagonals are column − row.
 */
#ifndef CBGEN_ANALYSIS_PROFILE_H
#define CBGEN_ANALYSIS_PROFILE_H

#include "analysis/distinct.h"
#include "analysis/panels.h"
#include "base/status.h"
#include "base/text.h"
#include "frontend/csr.h"

#include <jansson.h>
#include <stdint.h>

enum {
  CB_PROFILE_LENGTH_BINS = 32,   /* row lengths are below 2^31 */
  CB_PROFILE_DIAGONALS = 64,     /* how many diagonals are listed */
  CB_PROFILE_DIAGONAL_FILL = 60, /* percent from which on a diagonal counts as filled */
  CB_PROFILE_SHAPES = 8,         /* dense block shapes that are tried */
  CB_PROFILE_CHUNK = 8,         /* rows of a chunk */
  CB_PROFILE_SUBBLOCK_BINS = 7,  /* 1-8, 9-16, 17-31, 32-63, 64-128, 129-255, 256 */
  CB_PROFILE_DISTINCT = CB_DISTINCT_MOST /* up to this many distinct values are counted exactly */
};

/* Lengths (nonzeros) of rows. All 0 for a matrix without rows. Quantile q is the least length L such that at
 * least q % of all rows have L nonzeros or fewer (nearest rank). */
struct cb_profile_rows {
  int64_t empty;
  int64_t shortest, longest;
  int64_t longest_row; /* the first row of that length; -1 without rows */
  int64_t median, p90, p99;
  double mean, deviation;               /* standard deviation of the whole population */
  int64_t bins[CB_PROFILE_LENGTH_BINS]; /* rows by length: bin 0 is length 0, bin k is 2^(k-1) … 2^k - 1 */
};

struct cb_profile_columns {
  int64_t empty;
  int64_t longest;        /* nonzeros of the fullest column; 0 without nonzeros */
  int64_t longest_column; /* the first column of that length; -1 without nonzeros */
};

struct cb_profile_diagonal {
  int64_t offset; /* column - row */
  int64_t nonzeros;
  int64_t length; /* positions on this diagonal within the matrix; fill = nonzeros / length */
};

/* Where nonzeros lie relative to the main diagonal (of rectangular matrices, too: positions with i = j). */
struct cb_profile_diagonals {
  int64_t lower, upper;    /* bandwidths: the largest i - j and j - i of any nonzero, at least 0 */
  double mean_distance;    /* mean |i - j| over the nonzeros; 0 without nonzeros */
  int64_t main_nonzeros;   /* nonzeros with i = j */
  int main_full;           /* there is a main diagonal and every position on it is a nonzero */
  int64_t populated;       /* diagonals with a nonzero */
  int64_t filled;          /* diagonals filled to CB_PROFILE_DIAGONAL_FILL percent or more */
  int64_t filled_nonzeros; /* nonzeros on those */
  int fullest_count;       /* entries of `fullest`: the smaller of `populated` and CB_PROFILE_DIAGONALS */
  struct cb_profile_diagonal fullest[CB_PROFILE_DIAGONALS]; /* most nonzeros first; ties: the nearer to the
                                                             * main diagonal first, then the lower one */
};

/* Counted for square matrices only. A nonzero (i, j) is mirrored when (j, i) is a nonzero, too; one on the
 * main diagonal is its own partner. */
struct cb_profile_symmetry {
  int square;       /* 0: the others are 0 and mean nothing */
  int64_t mirrored; /* nonzeros with a partner */
  int64_t
      mirrored_equal; /* nonzeros whose partner has the same value (compared as numbers: NaN never equals) */
  int64_t mirrored_same;    /* whose partner has the same bits */
  int64_t mirrored_negated; /* whose partner has the same bits but for the sign, or both are 0; all of the main
                             * diagonal */
  int64_t mirrored_conjugated; /* complex: whose partner has the same real part and an imaginary part of the other
                                * sign; all of the main diagonal */
};

/* Dense blocks of rows × cols entries, aligned: block (I, J) covers rows I·rows … and columns J·cols ….
 * Stored bytes are those of BSR in double precision: 8 bytes per entry of a touched block, 4 bytes for its
 * column and one row pointer per block row (4 bytes, 8 from 2^31 blocks on). */
struct cb_profile_shape {
  int rows, cols;
  int64_t touched; /* blocks with at least one nonzero */
  int64_t bytes;
};

/* Aligned 16-row panels cut into non-empty 16 × 16 sub-blocks: see panels.h. */
struct cb_profile_subblocks {
  int64_t total;
  int64_t columns; /* panel columns with a nonzero, summed over panels (entries of restore_cols) */
  int64_t with[CB_BLOCK_SIZE + 1]; /* with[k]: sub-blocks of exactly k nonzeros; with[0] = 0 */
};

/* The bins in which CB-SpMV's Fig. 3 counts sub-blocks by nonzeros; see cb_profile_between. */
struct cb_profile_bin {
  int least, most;
};
extern const struct cb_profile_bin cb_profile_subblock_bins[CB_PROFILE_SUBBLOCK_BINS];

/* Values. Types hold all values losslessly when converting there and back gives the same bits. */
struct cb_profile_values {
  int distinct; /* different bit patterns; CB_PROFILE_DISTINCT + 1 means more than CB_PROFILE_DISTINCT */
  int fits_f32, fits_f16, fits_bf16; /* 1: lossless. Without nonzeros: 1 */
  int integers;                      /* 1: every value is a finite whole number. Without nonzeros: 1 */
  int64_t nonfinite;                 /* NaN and infinite values */
  int64_t zeros;                     /* explicit zeros of either sign */
};

struct cb_profile {
  char name[64];
  int64_t rows, cols, nnz;
  int64_t csr_bytes;  /* of row pointers, column indices and double values */
  int pattern;        /* the source had no values: all are 1 */
  int symmetric_file; /* the source stored one triangle */
  struct cb_profile_rows row;
  struct cb_profile_columns column;
  struct cb_profile_diagonals diagonal;
  struct cb_profile_symmetry symmetry;
  struct cb_profile_shape shapes[CB_PROFILE_SHAPES]; /* 1×2 2×1 2×2 3×3 4×4 5×5 6×6 8×8 */
  int best_shape; /* index of the one with the fewest stored bytes; -1: none is smaller than CSR */
  int64_t chunk_columns; /* columns with a nonzero among 8 rows, summed over all chunks of 8 rows (MatXtract's) */
  struct cb_profile_subblocks plain, aggregated; /* before and after column aggregation of each panel */
  struct cb_profile_values values;
};

/* The symmetry alone. Of a matrix without values the counts of equal ones are 0. CB_ERR_MEMORY. */
enum cb_status cb_symmetry_count(struct cb_profile_symmetry *symmetry, const struct cb_csr *csr, struct cb_diag *diag);

/* Fills the whole profile. O(nnz log nnz) at worst, parallel (OpenMP); needs at most about a third of the
 * matrix's own memory beside it. Fails with CB_ERR_MEMORY only. */
enum cb_status cb_profile_compute(struct cb_profile *profile, const struct cb_csr *csr, struct cb_diag *diag);

/* At most 60 lines of at most 100 columns, aligned, with small histograms. Check text->failed. */
void cb_profile_text(const struct cb_profile *profile, struct cb_text *text);

/* An object with keys in a fixed order; shares are reals in 0 … 1, everything counted is an integer. The
 * caller owns it (json_decref). NULL when memory is short. */
json_t *cb_profile_json(const struct cb_profile *profile);

/* Nonzeros over positions; 0 without positions. */
double cb_profile_density(const struct cb_profile *profile);

/* part / whole, or 0 when the whole is 0. */
static inline double cb_profile_share(int64_t part, int64_t whole) {
  return whole ? (double)part / (double)whole : 0;
}

/* Nonzeros over entries of the touched blocks: 1 when all of them are full. */
static inline double cb_profile_fill(const struct cb_profile *profile, const struct cb_profile_shape *shape) {
  return cb_profile_share(profile->nnz, shape->touched * shape->rows * shape->cols);
}

/* Of chunks of 8 rows: the share of their columns without a nonzero, and how full the others are; 0 without any. */
static inline double cb_profile_chunk_empty(const struct cb_profile *profile) {
  const int64_t chunks = (profile->rows + CB_PROFILE_CHUNK - 1) / CB_PROFILE_CHUNK;
  return profile->cols ? 1 - cb_profile_share(profile->chunk_columns, chunks * profile->cols) : 0;
}
static inline double cb_profile_chunk_density(const struct cb_profile *profile) {
  return cb_profile_share(profile->nnz, CB_PROFILE_CHUNK * profile->chunk_columns);
}

/* Bytes of the matrix as BSR of 16 × 16 entries, and as COO, with values of so many bytes. */
static inline int64_t cb_profile_bsr16_bytes(const struct cb_profile *profile, int64_t value) {
  const int64_t blocks = profile->plain.total, wide = blocks > INT32_MAX;
  return blocks * (CB_BLOCK_SIZE * value + 4) + (cb_panel_count(profile->rows) + 1) * (wide ? 8 : 4);
}
static inline int64_t cb_profile_coo_bytes(const struct cb_profile *profile, int64_t value) {
  return profile->nnz * (8 + value);
}

/* Sub-blocks of least … most nonzeros. Super-sparse ones: 1 … 31 (the paper) or 1 … 8 (its released code). */
static inline int64_t cb_profile_between(const struct cb_profile_subblocks *blocks, int least, int most) {
  int64_t count = 0;
  for (int k = least; k <= most; k++) count += blocks->with[k];
  return count;
}

#endif
