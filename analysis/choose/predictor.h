// SPDX-License-Identifier: Apache-2.0
/* What corrects the model, whose times are features, too: decision trees, trained offline on measured times
 * (bench/train), one table for each model of GPU. Features, thresholds and leaves are integers, so that every machine
 * computes the same.
 *
 *   score of a recipe = log2 of the model's least time     (of the recipe's own time, if it has no trees of its own,
 *                                                           or if that is far behind, where its trees do not count)
 *                     + leaves of the trees of all recipes   (what the fastest takes, against that)
 *                     + leaves of its own trees              (what it takes, against the fastest)
 *
 * Logarithms are in steps of 1/1024 and linear between powers of two: (x / 2^k - 1) + k for 2^k <= x < 2^(k+1).
 */
#ifndef CBGEN_ANALYSIS_CHOOSE_PREDICTOR_H
#define CBGEN_ANALYSIS_CHOOSE_PREDICTOR_H

#include "analysis/choose/forest.h"
#include "analysis/choose/model.h"

enum {
  CB_CHOICE_FEATURES = 77,
  CB_CHOICE_ONE = 1024,         /* of a logarithm or a share */
  CB_CHOICE_REFUSED = 16 * 1024 /* as a feature: the model has no time */
};
extern const char *const cb_choice_feature_names[CB_CHOICE_FEATURES];

struct cb_choice_features {
  int32_t of[CB_CHOICE_FEATURES];
};
void cb_choice_describe(struct cb_choice_features *features, const struct cb_choice_profile *profile,
                        const struct cb_choice_times *model, struct cb_types types);

int64_t cb_choice_log2(int64_t number);    /* of 0, as of 1: 0 */
int64_t cb_choice_exp2(int64_t logarithm); /* its inverse, to the nearest below; at least 1 */

struct cb_choice_table {
  const char *model; /* of the GPU, as the driver names it */
  struct cb_forest forest; /* an output is a recipe; -1: all */
};
extern const struct cb_choice_table cb_choice_tables[]; /* ends with a NULL model */

/* The table of that GPU; NULL: there is none. A test has checked the committed ones (cb_forest_check). */
const struct cb_choice_table *cb_choice_table_find(const char *model);

/* The scores of all recipes; those without a time in the model have none (0). `table` NULL: the model's. */
struct cb_choice_scores {
  int64_t of[CB_CHOICE_RECIPES];
};
void cb_choice_score(struct cb_choice_scores *scores, const struct cb_choice_table *table,
                     const struct cb_choice_features *features, const struct cb_choice_times *model);

#endif
