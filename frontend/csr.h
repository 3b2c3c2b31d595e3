// SPDX-License-Identifier: Apache-2.0
/* The canonical sparse matrix: what every reader produces and all that analysis ever sees.
 *
 * Canonical means: rows in order, columns strictly ascending within a row (duplicates summed), 0-based, explicit
 * zeros kept. Row and column counts fit 31 bits; row pointers are 32 bits wide when nnz < 2^31, else 64.
 */
#ifndef CBGEN_FRONTEND_CSR_H
#define CBGEN_FRONTEND_CSR_H

#include "base/hash.h"
#include "base/status.h"
#include "base/types.h"

#include <stdint.h>

enum { CB_MAX_DIMENSION = INT32_MAX }; /* rows or columns; more is refused with CB_ERR_LIMIT */

/* Nonzeros that follow one another. */
struct cb_stretch {
  int64_t begin, length;
};

struct cb_diagonal;
struct cb_tile_size;
struct cb_tile_census;
struct cb_choice_lengths;
struct cb_ends;
struct cb_remote_list;
struct cb_row_ends;
struct cb_unit;

/* Columns that are not on the host, which a matrix has instead of col_idx. Analysis can do with less: what it asks for
 * is brought to the host, or counted where the columns are. One call at a time. */
struct cb_remote_columns {
  const struct cb_csr *near; /* the same matrix where few columns have been brought to the host, all at once; else NULL:
                              * what would only copy from it reads it */
  const int32_t *first, *last; /* columns of each row, anything where it is empty; NULL before `ends` */
  /* Brings the matrix's row pointers, which are NULL before; and the ends of rows. */
  enum cb_status (*rows)(void *user, struct cb_diag *diag);
  enum cb_status (*ends)(void *user, struct cb_diag *diag);
  /* Columns of `count` stretches, one after the other. */
  enum cb_status (*fetch)(void *user, const struct cb_stretch *stretches, int64_t count, int32_t *columns,
                          struct cb_diag *diag);
  /* All diagonals of at least `least` nonzeros, ascending, as analysis/diagonals.h has them; the caller frees them.
   * CB_ERR_LIMIT: they are too many. */
  enum cb_status (*diagonals)(void *user, int64_t least, struct cb_diagonal **list, int64_t *count,
                              struct cb_diag *diag);
  /* The census of tiles that analysis/tiles.h describes. */
  enum cb_status (*tiles)(void *user, const struct cb_tile_size *size, int64_t fill, int64_t stride, uint32_t *by_row,
                          struct cb_tile_census *census, struct cb_diag *diag);
  /* For a profile (analysis/choose/profile.h): lengths of all rows; row pointers of `count` stretches of them; and of
   * stretches of nonzeros those columns that are chosen by that share, in any order, which the caller frees. */
  enum cb_status (*lengths)(void *user, struct cb_choice_lengths *lengths, struct cb_diag *diag);
  enum cb_status (*starts)(void *user, const struct cb_stretch *stretches, int64_t count, int64_t *starts,
                           struct cb_diag *diag);
  enum cb_status (*chosen)(void *user, const struct cb_stretch *stretches, int64_t count, int64_t column_share,
                           int32_t **columns, int64_t *chosen, struct cb_diag *diag);
  /* Likewise what is counted by groups of rows, which have `most` nonzeros at most: begins, beside what the host does
   * meanwhile, and says it. NULL, and CB_ERR_UNSUPPORTED: the host counts. */
  enum cb_status (*begin_groups)(void *user, int64_t groups, int64_t most, struct cb_diag *diag);
  enum cb_status (*end_groups)(void *user, int64_t *sums, struct cb_diag *diag);
  /* All NULL where the host finds out as fast. For equal shares of nonzeros (analysis/row_ends.h): row ends of units;
   * rows without nonzeros; the first and the last columns of units of whole rows; and a list's elements. Lists live as
   * long as the matrix. */
  enum cb_status (*row_ends)(void *user, struct cb_row_ends *ends, struct cb_diag *diag);
  enum cb_status (*empty_rows)(void *user, struct cb_remote_list *list, struct cb_diag *diag);
  enum cb_status (*spans)(void *user, const struct cb_unit *units, int64_t count, struct cb_ends *spans,
                          struct cb_diag *diag);
  /* Likewise of `count` units of `each` rows, one after the other: first > last where they have no nonzeros. */
  enum cb_status (*row_spans)(void *user, int64_t each, int64_t count, struct cb_ends *spans, struct cb_diag *diag);
  enum cb_status (*elements)(void *user, const struct cb_remote_list *list, uint32_t *elements, struct cb_diag *diag);
  /* For columns by frequency (analysis/columns.h): nonzeros by column; and by row those whose column's bit is set in
   * `marked` (bit c % 64 of word c / 64). */
  enum cb_status (*count_columns)(void *user, uint32_t *counts, struct cb_diag *diag);
  enum cb_status (*count_marked)(void *user, const uint64_t *marked, uint32_t *by_row, struct cb_diag *diag);
  void *user;
};

struct cb_csr {
  int64_t rows, cols, nnz;
  int wide;           /* 1: row pointers are int64_t, 0: int32_t */
  void *row_ptr;      /* rows + 1 entries, ascending, first 0, last nnz */
  int32_t *col_idx;   /* nnz entries; NULL: see `remote` */
  double *values;     /* nnz entries, or where they are complex nnz pairs, the real part first; NULL where columns are
                       * remote */
  int is_complex;
  const struct cb_remote_columns *remote; /* not owned; NULL: columns are here */
  int pattern;        /* the source had no values: all are 1 */
  int symmetric_file; /* the source stored one triangle (for reports only: the matrix here is whole) */
  char name[64];      /* for labels: the file's base name without extensions, letters, digits, '_', '-', '.' */
};

static inline int64_t cb_csr_row(const struct cb_csr *csr, int64_t row) {
  return csr->wide ? ((const int64_t *)csr->row_ptr)[row] : (int64_t)((const int32_t *)csr->row_ptr)[row];
}

static inline int64_t cb_csr_row_length(const struct cb_csr *csr, int64_t row) {
  return cb_csr_row(csr, row + 1) - cb_csr_row(csr, row);
}

/* Real numbers in `values`. */
static inline int64_t cb_csr_numbers(const struct cb_csr *csr) { return csr->is_complex ? 2 * csr->nnz : csr->nnz; }

/* Makes a real matrix a complex one, whose imaginary parts are 0; one that is complex stays. */
enum cb_status cb_csr_make_complex(struct cb_csr *csr, struct cb_diag *diag);

/* Bytes of row pointers, column indices and values. */
int64_t cb_csr_bytes(const struct cb_csr *csr);

/* Allocates the three arrays for this shape (contents undefined, row_ptr[0] = 0). */
enum cb_status cb_csr_alloc(struct cb_csr *csr, int64_t rows, int64_t cols, int64_t nnz, struct cb_diag *diag);
void cb_csr_release(struct cb_csr *csr);

/* Checks everything that "canonical" promises; CB_ERR_INTERNAL names the first violation. O(nnz), parallel. */
enum cb_status cb_csr_check(const struct cb_csr *csr, struct cb_diag *diag);

/* Hash of shape, row pointers and columns; of the values. Independent of the row pointers' width: the pattern's is
 * that of rows, cols, nnz, of digests of CB_HASH_ROWS row lengths (int32_t), folded CB_HASH_BATCH at a time, and of
 * the columns as cb_hash_array has them. */
enum { CB_HASH_ROWS = 8192, CB_HASH_BATCH = 256 };
struct cb_hash cb_csr_pattern_hash(const struct cb_csr *csr);
struct cb_hash cb_csr_values_hash(const struct cb_csr *csr);

/* Coordinates to a canonical matrix. `row_idx`, `col_idx` (0-based, within rows × cols) and `values` (NULL:
 * all 1, pattern) hold `count` entries in any order; duplicates are summed in the order given. The inputs are
 * consumed: the arrays are blocks of cb_alloc and are freed here, as early as memory allows, also on failure. */
struct cb_coo {
  int64_t rows, cols, count;
  int32_t *row_idx, *col_idx;
  double *values;
  double *imaginary; /* of the values' imaginary parts, where they are complex; else NULL */
  const char *path; /* of the file that they are from, for messages; NULL: of none */
};
void cb_coo_release(struct cb_coo *coo);
enum cb_status cb_csr_from_coo(struct cb_csr *csr, struct cb_coo *coo, struct cb_diag *diag);

#endif
