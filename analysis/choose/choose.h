// SPDX-License-Identifier: Apache-2.0
/* The choice of a recipe without plans: profile, model, and the trees that were trained for the GPU, if any. */
#ifndef CBGEN_ANALYSIS_CHOOSE_CHOOSE_H
#define CBGEN_ANALYSIS_CHOOSE_CHOOSE_H

#include "analysis/choose/model.h"
#include "analysis/choose/predictor.h"
#include "base/status.h"

/* Recipes by predicted time, the fastest first. Behind the `count` that the profile speaks for come the others, each
 * with what speaks against it. */
struct cb_choice {
  int count;
  int is_trained; /* the GPU has a table; else the model alone predicts */
  int has_long_order; /* rows are many and differ: putting them in order takes the host long */
  struct cb_choice_rank {
    const char *recipe;
    int64_t ns;          /* 0 behind the first `count` */
    const char *against; /* NULL before */
  } ranks[CB_CHOICE_RECIPES];
};

/* Puts the recipes in order: those with a time in the model by their scores, but first, if it is as good as the best,
 * one whose rows are written once each. */
void cb_choice_rank(struct cb_choice *choice, const struct cb_choice_scores *scores,
                    const struct cb_choice_times *model);

/* CB_ERR_MEMORY. The same for any number of threads. */
enum cb_status cb_choose(struct cb_choice *choice, const struct cb_csr *csr, const struct cb_target *target,
                         struct cb_types types, struct cb_diag *diag);

#endif
