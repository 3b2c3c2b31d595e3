// SPDX-License-Identifier: Apache-2.0
/* How the panel layout cuts a matrix: which rows are a panel's, which are long, which slices a panel has.
 * What the words mean, and why it is cut that way, says panel.c.
 */
#ifndef CBGEN_ANALYSIS_LAYOUTS_PANEL_CUT_H
#define CBGEN_ANALYSIS_LAYOUTS_PANEL_CUT_H

#include "analysis/layout.h"
#include "analysis/pieces.h"
#include "analysis/unit_set.h"

enum {
  CB_PANEL_LANES = 32, /* of a slice */
  CB_PANEL_NO_ROW = -1,
  CB_PANEL_THREADS = 1536, /* of a multiprocessor: what registers and shared memory are divided by */
  CB_PANEL_OWN = 1024,     /* bytes of shared memory that each thread block takes beside its arrays */
  CB_PANEL_LONG_BATCH = 8  /* nonzeros of a long row that a thread loads together, as in the text */
};

struct cb_panel_cut {
  const struct cb_csr *csr;
  int64_t x_bytes;  /* of an element of x */
  int writes_empty; /* rows without nonzeros have places */
  /* shape */
  int threads, warps, lanes_log2;               /* lanes of a row, unless it is long */
  int64_t most_rows, most_nonzeros, most_units; /* of a panel */
  int64_t aim;                                  /* steps of a slice: rows with more take more lanes */
  int64_t long_row;                             /* longer rows are no panel's */
  int unit_log2;
  /* panels */
  int64_t panels;
  int32_t *first_row; /* panels + 1 */
  uint32_t *units;    /* by panel */
  int64_t units_sum, panel_nonzeros, sectors;
  /* slices: a panel's lie together, longest first */
  int64_t *first_slice; /* panels + 1 */
  int64_t slices, places;
  int64_t *first_step;        /* slices + 1 */
  int64_t *first_place;       /* slices + 1 */
  unsigned char *slice_lanes; /* logarithms */
  int32_t *row;               /* by place; CB_PANEL_NO_ROW: none */
  /* long rows, those in pieces first */
  struct cb_piece *pieces;
  int64_t pieces_count, cut_pieces, long_slots;
};

/* What a thread works on a panel with. */
struct cb_panel_work {
  struct cb_unit_set set;
  int32_t *rows, *sorted;
};

/* Cuts the draft's part, as its options say. `cut` comes with csr, x_bytes and writes_empty.
 * CB_ERR_UNSUPPORTED when rows of a panel would share too little. The caller releases the cut, also after a
 * failure. */
enum cb_status cb_panel_cut(struct cb_panel_cut *cut, const struct cb_draft *draft, struct cb_diag *diag);
void cb_panel_cut_release(struct cb_panel_cut *cut);

/* Whether a row is one of its panel's places. */
int cb_panel_has_place(const struct cb_panel_cut *cut, int64_t row);

/* 0: no memory. Release also then. */
int cb_panel_work_init(struct cb_panel_work *work, const struct cb_panel_cut *cut);
void cb_panel_work_release(struct cb_panel_work *work);

/* Adds the units of a row's columns. */
void cb_panel_add_row(struct cb_unit_set *set, const struct cb_panel_cut *cut, int64_t row);

static inline uint32_t cb_panel_unit(const struct cb_panel_cut *cut, int64_t nonzero) {
  return (uint32_t)cut->csr->col_idx[nonzero] >> cut->unit_log2;
}

#endif
