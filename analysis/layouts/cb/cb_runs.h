// SPDX-License-Identifier: Apache-2.0
/* How the cb layout cuts a matrix: sub-blocks, their formats, and the runs of them that warps multiply. What
 * the words mean, and why it is cut that way, says cb.c.
 */
#ifndef CBGEN_ANALYSIS_LAYOUTS_CB_RUNS_H
#define CBGEN_ANALYSIS_LAYOUTS_CB_RUNS_H

#include "analysis/layouts/cb/cb_lists.h"
#include "analysis/layouts/cb/options.h"
#include "analysis/panels.h"

enum cb_block_format { CB_COO, CB_CSR, CB_DENSE, CB_FORMATS };
enum {
  CB_RUN_WARPS = 8, /* of a thread block */
  CB_RUN_LANES = 32,
  CB_RUN_MOST_BLOCKS = 16, /* 256 columns, which a byte names */
  CB_MOST_RANGES = 12,     /* of thread blocks: a warp compares with each */
  CB_RUN_STEPS = 256,      /* of a CSR run at most: a row's nonzeros */
  CB_DENSE_PRESENCE = 32,  /* bytes of a Dense block's presence bits */
  CB_RUN_END = 1           /* slots behind the last run's: lanes without a nonzero may look one place beyond a run */
};

struct cb_run {
  uint32_t panel;
  uint32_t first, count;    /* positions */
  uint16_t nonzeros, slots; /* slots: of COO and CSR, padding included */
  unsigned char format;
};

/* From thread block `first` on: warps 0 … coo - 1 have COO runs, those up to csr - 1 CSR, and the others Dense. */
struct cb_format_range {
  int64_t first;
  int coo, csr;
};

struct cb_run_list {
  struct cb_arena *arena;
  struct cb_run *at;
  int64_t count;
};

struct cb_runs {
  struct cb_arena arena;
  int64_t panels, blocks;
  int aggregated, intra, th1, th2;
  int run_blocks; /* sub-blocks of a run at most; 0: by the matrix */
  int equal;      /* values: there is no array, but slots of one "byte" for the slot map */
  int64_t value_bytes;
  /* by panel */
  int64_t *panel_block; /* panels + 1: natural number of its first block */
  unsigned char *plain; /* aggregated, by panel: this one is not. NULL: all are */
  /* by natural number */
  uint16_t *nonzeros;
  uint32_t *first_column; /* of the matrix */
  unsigned char *format;
  uint32_t *place; /* position */
  uint32_t *run_of;
  /* by position */
  uint32_t *order; /* natural number */
  /* by run */
  struct cb_run_list runs;
  uint64_t *coordinates, *values; /* where they start, in bytes and in values (intra: of mtx_data) */
  uint16_t *row_lengths;          /* nonzeros of the panel's rows: 16 each */
  int64_t coordinates_end, values_end;
  int row_lanes;  /* lanes that share a row: 2 when a warp takes a run, 1 when it takes two */
  int code_after; /* values are codes: behind a run's stands one more, for what lanes without a nonzero meet
                     is looked up */
  int64_t fixed_steps, fixed_blocks; /* all runs are CSR and padded to this shape; 0: each as it is */
  int run_bases;                     /* columns are stored as offsets from a run's first, not from a block's */
  struct cb_lists lists;             /* count > 0: of columns, in the text */
  int few;                           /* runs: multiprocessors have warps to spare */
  int together;                      /* some thread block has several runs of a panel: the first of them adds up */
  int64_t format_blocks[CB_FORMATS], format_runs[CB_FORMATS];
  int formats;                                   /* that occur */
  int strided;                                   /* the runs of a thread block are not neighbours (see cb_balance.c) */
  struct cb_format_range ranges[CB_MOST_RANGES]; /* with several formats, unless strided */
  int ranges_count;
  int full_dense; /* every Dense block has all 256 nonzeros: no presence bits */
};

/* Cuts the builder's part, as its options say: all but what depends on the values' size. `state` comes with
 * panels, intra, th1, th2 and full_dense = 1. */
enum cb_status cb_runs_cut(struct cb_runs *state, const struct cb_region_builder *builder, struct cb_diag *diag);

/* Decides where everything is. Needs equal, value_bytes and code_after. */
enum cb_status cb_runs_place(struct cb_runs *state, const struct cb_csr *csr, const struct cb_target *target,
                             struct cb_diag *diag);

int cb_runs_aggregates(const struct cb_runs *state, int64_t panel);
/* All sub-blocks with their natural numbers, panels in parallel, each panel's in order by one thread. Needs
 * panel_block. */
typedef void cb_runs_visit(void *user, int64_t number, const struct cb_subblock *block);
void cb_runs_visit_blocks(const struct cb_runs *state, const struct cb_csr *csr, cb_runs_visit *visit, void *user);

/* Without memory the list stays as it is, and its arena has failed. */
void cb_runs_add(struct cb_run_list *runs, struct cb_run run);
/* Nothing to multiply. Of a format that occurs. */
struct cb_run cb_runs_empty(const struct cb_runs *state, int64_t panel);

/* Needs runs panel by panel; distributes them to thread blocks; adds row_lanes, together, strided, ranges, few. */
void cb_runs_balance(struct cb_runs *state, const struct cb_region_builder *builder);

int64_t cb_runs_per_block(const struct cb_runs *state); /* of threads */
/* The number of a thread block's run. */
int64_t cb_runs_at(const struct cb_runs *state, int64_t thread_block, int64_t warp);
/* How many runs from number `first` on belong to its panel, `most` at most. */
int64_t cb_runs_of_panel(const struct cb_run_list *runs, int64_t first, int64_t most);
/* Every run but padding and those of empty panels is one sub-block, in the order of positions; the others are last. */
int cb_runs_single(const struct cb_runs *state);
/* A run's first position, and how many there are. */
int64_t cb_runs_position(const struct cb_runs *state, int64_t number);
int64_t cb_runs_positions(const struct cb_runs *state);
/* Steps of a CSR run: the most nonzeros that a lane has. */
int64_t cb_runs_steps(const struct cb_runs *state, int64_t number);
int64_t cb_runs_first_slot(const struct cb_runs *state, int64_t number);
int64_t cb_runs_coordinate_bytes(const struct cb_runs *state, const struct cb_run *run);

#endif
