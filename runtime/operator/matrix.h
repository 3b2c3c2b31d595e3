// SPDX-License-Identifier: Apache-2.0
/* The caller's matrix (cbgen_csr, cbgen_matrix): checked, hashed, made canonical.
 *
 *   cb_view_take        the struct and the shape: cheap
 *   cb_view_expand      COO and BSR, as rows of entries
 *   cb_view_reorder     in an order of the operator's own, if that is asked for
 *   cb_view_hash        of the pattern as given, for the cache's key
 *   cb_view_check       every row pointer and column; needed before anything is made from them
 *   cb_view_canonical   the matrix, or its transpose, as analysis takes it, and where each nonzero's value comes from
 */
#ifndef CBGEN_RUNTIME_OPERATOR_MATRIX_H
#define CBGEN_RUNTIME_OPERATOR_MATRIX_H

#include "analysis/reorder.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/types.h"
#include "cbgen.h"
#include "frontend/csr.h"

#include <stdint.h>

/* What the caller calls the arrays, for messages: "row_ptr", "col_idx", and their bits; "row", "columns". */
struct cb_view_words {
  const char *pointers, *indices, *pointer_bits, *index_bits, *line, *across;
};

/* The caller's struct with its defaults resolved. The arrays stay the caller's. CSC is the transposed matrix's CSR:
 * rows and cols are that one's. */
struct cb_view {
  enum cbgen_format format; /* CBGEN_COO, CBGEN_BSR: to be expanded before the pattern is read; else CBGEN_CSR */
  int turned;               /* it was CSC: the view is of the transposed matrix */
  const struct cb_view_words *words;
  int block_rows, block_cols, blocks_by_column; /* CBGEN_BSR */
  int64_t blocks;
  int64_t rows, cols, nnz; /* nnz: entries of values, duplicates included */
  const void *row_ptr, *col_idx;
  const void *values;     /* NULL: all are 1 */
  int row_wide, col_wide; /* 1: int64_t, 0: int32_t */
  int base;
  const void *entries; /* which of the caller's values entry k of the rows has; NULL: k */
  int entries_wide;    /* they are uint64_t, else uint32_t */
  enum cb_type value_type;
  int is_complex; /* the canonical matrix is: its values are, or shall be */
  int on_device;
  struct CUstream_st *stream;
  char name[64]; /* printable */
};

/* Copies a caller's struct, which begins with its size. Members that it does not have become 0; members that this
 * version does not know must be 0. CB_ERR_ARGUMENT: no size, or one below `least`; CB_ERR_UNSUPPORTED: an unknown
 * member is set. */
enum cb_status cb_take_struct(void *to, size_t size, size_t least, const void *from, const char *what,
                              struct cb_diag *diag);

/* From a caller's struct: a cbgen_matrix, or a cbgen_csr. */
typedef enum cb_status cb_view_taker(struct cb_view *view, const void *given, struct cb_diag *diag);
cb_view_taker cb_view_take, cb_view_take_csr;

/* Elements of the caller's two index arrays. */
int64_t cb_view_pointers(const struct cb_view *view);
int64_t cb_view_indices(const struct cb_view *view);

/* Arrays that a view has beside the caller's. */
struct cb_expansion {
  int64_t *row_ptr;
  int32_t *col_idx;
  void *entries;
};

/* Makes rows of entries of COO and BSR in host memory, which is checked for that: CB_ERR_ARGUMENT says what is wrong.
 * Others stay as they are. Entries of a row keep their order. Release the expansion, in any case, after the last use of
 * the view. */
enum cb_status cb_view_expand(struct cb_expansion *expansion, struct cb_view *view, struct cb_diag *diag);
void cb_expansion_release(struct cb_expansion *expansion);

/* Finds an order (analysis/reorder.h) and makes the view one of the matrix in it, unless the given one is as good. The
 * view is expanded and in host memory; it is checked here. The expansion may be that of the view. Release both in any
 * case. */
enum cb_status cb_view_reorder(struct cb_expansion *expansion, struct cb_reordering *reordering, struct cb_view *view,
                               enum cb_reorder kind, struct cb_diag *diag);

/* The rest reads the arrays, which must lie in host memory, of a view that is expanded. */

/* Says what is wrong, and where: CB_ERR_ARGUMENT. *canonical: every row is strictly ascending. Parallel. */
enum cb_status cb_view_check(const struct cb_view *view, int *canonical, struct cb_diag *diag);

/* Hash of shape, row lengths and columns, in the order given, and of which values belong to them where a view has
 * `entries`; for a canonical matrix without these it is its pattern hash (frontend/csr.h). Does not depend on widths
 * and base. Reads no memory outside the arrays, whatever they hold. A pattern that cb_view_check would refuse never has
 * the hash of one that it accepts, but for a collision. Parallel. */
struct cb_hash cb_view_hash(const struct cb_view *view);

/* The same from digests that were made elsewhere: of CB_HASH_ROWS row lengths each, and of CB_HASH_CHUNK columns each,
 * the last of either may be short. `consistent`: the row pointers go from 0 to nnz, and all numbers fit 31 bits. */
struct cb_hash cb_view_hash_from(const struct cb_view *view, const struct cb_hash *rows,
                                 const struct cb_hash *columns, int consistent);

/* Where values come from: canonical nonzero → the caller's entries. */
struct cb_order {
  int wide;      /* numbers are uint64_t, else uint32_t */
  void *entries; /* the caller's entries in canonical order, those of one nonzero in the order given; NULL: 0,
                  * 1, 2, … */
  void *starts;  /* canonical nonzeros + 1 places in `entries`; NULL: each nonzero is one entry */
};
void cb_order_release(struct cb_order *order);
static inline uint64_t cb_order_get(const struct cb_order *order, const void *numbers, int64_t i) {
  return order->wide ? ((const uint64_t *)numbers)[i] : ((const uint32_t *)numbers)[i];
}

/* Rows and columns change places when `transpose`. Duplicates are summed in the order given. Needs a view
 * that cb_view_check accepts, and what it said of `canonical`. Release both in any case. */
enum cb_status cb_view_canonical(struct cb_csr *csr, struct cb_order *order, const struct cb_view *view,
                                 int canonical, int transpose, struct cb_diag *diag);

/* The same of a complex view: its real part (0), or its imaginary part (1), which is 0 of a real value. */
double cb_view_part(const struct cb_view *view, int64_t k, int part);

/* The caller's value number k, as a double. Those of the view are real. */
double cb_view_value(const struct cb_view *view, int64_t k);

#endif
