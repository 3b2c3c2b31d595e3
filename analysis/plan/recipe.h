// SPDX-License-Identifier: Apache-2.0
/* Recipes: small trees of splits with layouts as leaves. A split sends each nonzero of a part to one of several
 * parts; a leaf stores its part with one layout. A new recipe is one row in recipe.c, a new split one function.
 */
#ifndef CBGEN_ANALYSIS_RECIPE_H
#define CBGEN_ANALYSIS_RECIPE_H

#include "analysis/layout.h"

enum { CB_MAX_PARTS = 4 };

struct cb_split {
  const char *name;
  int parts;
  int by_rows; /* all nonzeros of a row go to one part; rows without any, to part 0 */
  /* Sets part_of[k] (< parts) for every nonzero k of the part, and appends its facts, " (KEY VALUE)" each. */
  enum cb_status (*divide)(const struct cb_part *part, const struct cb_options *options,
                           const struct cb_target *target, unsigned char *part_of, struct cb_text *facts,
                           struct cb_diag *diag);
};

struct cb_node {
  const char *layout; /* a leaf, or NULL */
  const struct cb_split *split;
  const struct cb_node *parts[CB_MAX_PARTS];
};

struct cb_recipe {
  const char *name, *summary;
  const struct cb_node *root;            /* NULL: a search over others */
  const char *const *candidates;         /* their names, NULL-terminated; a tie goes to the earlier one */
};

extern const struct cb_recipe cb_recipe_table[]; /* ends with a NULL name */
extern const char cb_recipe_unsearched[];        /* what "auto" is where no search is wanted */

/* The recipe of that name; CB_ERR_ARGUMENT lists what there is. */
enum cb_status cb_recipe_find(const struct cb_recipe **recipe, const char *name, struct cb_diag *diag);

/* The nonzeros with part_of[k] == number as a matrix of their own in `work` (part, part_csr, part_origin). When these
 * are all of the matrix's, nothing is copied: the part is the matrix, which the caller of the plan keeps. `wide`: the
 * matrix's nonzeros have numbers of 64 bits. */
enum cb_status cb_part_select(struct cb_region_work *work, const struct cb_part *part,
                              const unsigned char *part_of, int number, int wide, struct cb_diag *diag);

#endif
