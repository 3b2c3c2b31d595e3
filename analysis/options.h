// SPDX-License-Identifier: Apache-2.0
/* What a caller may choose about analysis and generation, in one table (options.c): name, kind, range, default
 * and help. The tool's --NAME=VALUE, the API's options and the plan's JSON all read that table; a new option is
 * one field here and one row there.
 */
#ifndef CBGEN_ANALYSIS_OPTIONS_H
#define CBGEN_ANALYSIS_OPTIONS_H

#include "base/status.h"
#include "base/text.h"
#include "base/types.h"

#include <stdint.h>

enum cb_switch { CB_AUTO, CB_ON, CB_OFF };
enum cb_form { CB_FORM_AX, CB_FORM_ADD, CB_FORM_AXPBY }; /* y = Ax, y += Ax, y = αAx + βy */
enum cb_tune { CB_TUNE_OFF, CB_TUNE_MODEL, CB_TUNE_MEASURE };
enum cb_value_promise { CB_VALUES_DATA, CB_VALUES_FIXED };
enum cb_search { CB_SEARCH_HOPEFUL, CB_SEARCH_ALL };
enum cb_balance { CB_BALANCE_CONTIGUOUS, CB_BALANCE_HEAP };

struct cb_options {
  /* what the product computes */
  int64_t type;     /* enum cb_precision: types of matrix values, vectors and sums */
  int64_t form;     /* enum cb_form */
  int64_t values;   /* enum cb_value_promise: CB_VALUES_FIXED says that they will never change */
  int64_t atomics;  /* CB_ON permits floating-point atomics: not repeatable bit for bit */
  /* which recipe */
  const char *recipe; /* name in the table of recipe.h; not owned, outlives the options */
  int64_t tune;     /* enum cb_tune: how a search ends: with its first recipe, or the cheapest as the cost model
                     * predicts, or the fastest of those that were timed (runtime/tune.h; the model's in analysis) */
  int64_t search;   /* enum cb_search: whether recipes that cannot win are planned all the same */
  int64_t fuse;     /* enum cb_switch: parts of a split share a launch; auto: when that is predicted to be faster */
  int64_t long_row; /* recipes with a long-rows split: rows of more nonzeros than this are split off */
  /* CB-SpMV; th0, th1 and th2 are the paper's names */
  int64_t aggregate;      /* enum cb_switch: column aggregation; auto asks th0 */
  int64_t th0_percent;    /* aggregate when more than this share of sub-blocks is super-sparse */
  int64_t super_sparse;   /* a sub-block with fewer nonzeros is super-sparse */
  int64_t th1;            /* fewer nonzeros: COO, if coo_gain agrees */
  int64_t th2;            /* more nonzeros: Dense; between: CSR */
  int64_t coo_gain;       /* COO only in panels where it takes this percentage fewer steps than CSR; 0: always */
  int64_t intra;          /* enum cb_switch: coordinates and values of a sub-block lie together */
  int64_t balance;        /* enum cb_balance */
  int64_t team;           /* warps that share a panel at least: 0 (auto), 1, 2, 4 or 8 */
  int64_t unit_budget;    /* nonzeros of a panel above which it is split among thread blocks; 0: auto */
  /* sliced ELL */
  int64_t sell_lanes; /* lanes that share a row: 0 (auto), 1, 2, 4, …, 32 */
  int64_t sell_vector; /* neighbouring nonzeros of a row that a lane loads at once: 0 (auto), 1, 2 or 4 */
  int64_t sell_sort;  /* enum cb_switch: order rows by length within windows; auto: when it saves a tenth */
  int64_t sell_vary;  /* enum cb_switch: lanes per row by slice, long rows in pieces; auto: for skewed matrices */
  /* natural blocks */
  int64_t block_size;  /* 0: the matrix's best, else 1 + index in the table of sizes (analysis/tiles.h) */
  int64_t block_fill;  /* percent of the stored entries that the matrix must have */
  int64_t block_lanes; /* lanes that share a block row: 0 (auto), 1, 2, 4, …, 32 */
  int64_t block_batch; /* blocks whose loads are under way together: 0 (auto), 1 to 8 */
  /* diagonals */
  int64_t dia_fill; /* percent of a diagonal's places that are occupied: from this on it is stored as one */
  int64_t dia_most; /* such diagonals at most, the fullest */
  int64_t dia_rows; /* rows of a thread where no value is stored; 0: auto */
  int64_t dia_stride;  /* what they are apart, if the matrix suits it; 0: auto, 1: a thread block's width */
  int64_t dia_threads; /* of a thread block whose threads' rows are a stride apart: 0 (auto), 256, 512 or 1024 */
  /* equal shares of nonzeros */
  int64_t merge_items; /* nonzeros of a lane: 0 (auto) or odd, 3 to 15 */
  int64_t merge_piece; /* longer rows, if longer than a tile, are cut into pieces of so many nonzeros; 0: auto */
  int64_t merge_pad;   /* enum cb_switch: tiles fill all their slots; auto: when that costs little */
  /* hot columns */
  int64_t hot_columns; /* 0 (auto), else how many columns are hot, whatever it gains */
  int64_t hot_share;   /* percent of the nonzeros that hot columns must hold */
  int64_t hot_threads; /* of a thread block: 0 (auto), 256, 512 or 1024 */
  int64_t hot_batch;   /* hot and cold steps each whose loads are under way together: 0 (auto), 1 to 8 */
  int64_t hot_gather;  /* enum cb_switch: a first launch lays the hot entries of x side by side */
  int64_t hot_warm;    /* columns whose entries that launch lays side by side for L2: 0 (auto) or their number */
  int64_t hot_three_bytes; /* enum cb_switch: columns of cold nonzeros in three bytes where they fit */
  /* frequent columns, a set at a time */
  int64_t phase_columns; /* 0 (auto), else how many columns are split off, whatever it gains */
  int64_t phase_row;     /* nonzeros in them that a row must have; 0: auto */
  int64_t phase_set;     /* entries of x in a set at most; 0: as many as fit */
  int64_t phase_blocks;  /* thread blocks of a multiprocessor: 0 (auto), 1 or 2 */
  int64_t phase_threads; /* of a thread block: 0 (auto), 256, 512 or 1024 */
  int64_t phase_batch;   /* steps whose loads are under way together: 0 (auto), 1 to 8 */
  /* text */
  int64_t bake_limit; /* index tables up to this many entries become part of the text */
  int64_t index_limit; /* larger indices, and numbers in index arrays, have 64 bits in the text; for tests of that */
};

struct cb_option {
  const char *name;
  size_t offset;              /* of the int64_t field (or const char * when `words` is NULL and text is 1) */
  int text;
  int64_t least, most, standard;
  const char *const *words;   /* NULL: a number; else the names of least, least + 1, …, NULL-terminated */
  const char *help;           /* one line */
};
extern const struct cb_option cb_option_table[]; /* ends with a NULL name */

void cb_options_default(struct cb_options *options);

/* Sets the option `name` from text; CB_ERR_ARGUMENT names the option and what it accepts. */
enum cb_status cb_options_set(struct cb_options *options, const char *name, const char *value,
                              struct cb_diag *diag);

/* CB_ERR_ARGUMENT, with the recipe to use instead, when `name` is an option that was removed with its recipe. */
enum cb_status cb_options_check_removed(const char *name, struct cb_diag *diag);

/* Checks what single ranges cannot (th1 <= th2 + 1). Every entry point of analysis calls it. */
enum cb_status cb_options_check(const struct cb_options *options, struct cb_diag *diag);

/* "  --NAME=VALUES  help (default)" lines for help texts. */
void cb_options_help(struct cb_text *text);

#endif
