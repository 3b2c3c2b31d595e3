// SPDX-License-Identifier: Apache-2.0
/* Recipes: trees with layouts as leaves. A node is one of three:
 *
 *   a leaf    stores its part with one layout
 *   a split   sends each nonzero of its part to one of several parts, which are nodes again
 *   a choice  among nodes: each is planned for the part, and the cheapest is kept
 *
 * An extraction in several steps is a chain of splits, each with what it takes first and the remainder behind:
 *
 *   fill(square) { slices, fill(diag) { slices, long-rows { choose(sell, merge), merge } } }
 *
 * A split that takes nothing, or refuses, is as if it were not there: its last part is planned in its place. The
 * recipe refuses a matrix when a split of it does and no split takes anything.
 *
 * A recipe is a row of its layout's table (cb_layout.recipes), and stands with its splits in the layout's folder.
 */
#ifndef CBGEN_ANALYSIS_RECIPE_H
#define CBGEN_ANALYSIS_RECIPE_H

#include "analysis/layout.h"

enum { CB_MAX_PARTS = 4 };

/* What a split decides. found[i] goes to part i's layout, which then need not search again and cannot decide
 * otherwise (cb_part_found); all of it is the caller's to release, also after a failure. */
struct cb_division {
  int whole; /* 1 + the part that has all nonzeros: all that a split can say whose part has no columns on the host
              * (csr->remote); there is no part_of then. 0 with a part_of. */
  unsigned char *part_of; /* part (< parts) of each nonzero; there before */
  struct cb_found found[CB_MAX_PARTS];
};

struct cb_split {
  const char *name;
  int parts;
  int by_rows; /* all nonzeros of a row go to one part; rows without any, to part 0 */
  /* Divides every nonzero of the part, and appends its facts, " (KEY VALUE)" each. CB_ERR_UNSUPPORTED: there is nothing
   * for it to take. */
  enum cb_status (*divide)(const struct cb_part *part, const struct cb_options *options,
                           const struct cb_target *target, struct cb_division *division, struct cb_text *facts,
                           struct cb_diag *diag);
};

/* Of layout, split and choices one is set. */
struct cb_node {
  const char *layout;
  const struct cb_split *split;
  const struct cb_node *parts[CB_MAX_PARTS]; /* of the split */
  int final; /* which of them writes y, while the others add to it: 1 for the first, and so on, even if that has no
              * nonzeros; 0: the last one that has any, the remainder */
  const struct cb_node *const *choices; /* ends with NULL; a tie goes to the earlier one */
  const char *settings; /* "NAME=VALUE NAME=VALUE": options for the node and all below it; or NULL */
};

struct cb_recipe {
  const char *name, *summary;
  const struct cb_node *root; /* NULL: the search, recipe auto */
  const char *example;        /* a small matrix that it suits, as cb_matrix_generate takes it; NULL: any */
  const char *lenient;        /* settings with which it takes what it refuses otherwise; NULL: none */
  int is_searched;            /* it is one of those that the search looks at */
  int searched_from;         /* likewise where there are so many vectors at least; 0: it is not */
  int64_t searched_to;       /* and so many nonzeros at most: beyond, it was not measured */
  const char *(*against)(const struct cb_csr *csr); /* why a search that leaves out what cannot win need not plan it for
                               * that matrix, whose columns are on the host; NULL: it may win. NULL: ask nothing */
  int is_always_planned;      /* a search plans it whatever bounds say, so that its time is told beside the winner's */
  int is_packed;              /* its layouts plan without columns on the host, are packed on the device, and have
                               * families of kernels: set-up waits for no compiler, and values stay where they are */
  int is_ready;               /* it is, and nothing of set-up takes long: no pass over all rows and columns on the
                               * host */
  int orders_rows;            /* rows that differ are put in order on the host: of many that takes long, and the recipe
                               * is not ready */
  int takes_vectors;          /* several vectors at once take one pass over what its layouts store, and were measured: a
                               * choice by profile goes by that, which has no plan to ask */
  int suits_programs;         /* one launch in which each row is committed once, by a thread that is known: vectors of a
                               * solver may lie in shared memory (codegen/program) */
  int commits_in_order;       /* likewise, neighbouring rows by neighbouring threads: the vectors of a linear program,
                               * which are read and written there, are so in whole sectors */
  int may_refuse;             /* it is made for some matrices only, and refuses others with CB_ERR_UNSUPPORTED */
};

extern const struct cb_split cb_split_long_rows;
extern const char cb_recipe_unsearched[]; /* what "auto" is where no search is wanted */

/* All recipes by number: auto, then each layout's in the order of the layouts' table. NULL: there are no more. */
const struct cb_recipe *cb_recipe_at(int number);
/* Those that a search looks at for a matrix of so many nonzeros and so many vectors, in its order; of two that are
 * predicted to be equal it takes the earlier one. */
const struct cb_recipe *cb_recipe_searched(int number, int64_t nonzeros, int vectors);

/* The recipe of that name; CB_ERR_ARGUMENT lists what there is. */
enum cb_status cb_recipe_find(const struct cb_recipe **recipe, const char *name, struct cb_diag *diag);

/* The nonzeros with part_of[k] == number as a matrix of their own in `work` (part, part_csr, part_origin). When these
 * are all of the matrix's, nothing is copied: the part is the matrix, which the caller of the plan keeps. `wide`: the
 * matrix's nonzeros have numbers of 64 bits. */
enum cb_status cb_part_select(struct cb_region_work *work, const struct cb_part *part,
                              const unsigned char *part_of, int number, int wide, struct cb_diag *diag);

#endif
