// SPDX-License-Identifier: Apache-2.0
/* The cost model without plans: what each recipe that a search looks at takes, from a profile alone. Much coarser than
 * what plans say, and made to be corrected by a predictor (predictor.h). Integers only. */
#ifndef CBGEN_ANALYSIS_CHOOSE_MODEL_H
#define CBGEN_ANALYSIS_CHOOSE_MODEL_H

#include "analysis/choose/profile.h"
#include "analysis/target.h"
#include "base/types.h"

enum { CB_CHOICE_RECIPES = 9 };
extern const char *const cb_choice_recipes[CB_CHOICE_RECIPES]; /* in the search's order */

/* Nanoseconds of a product by each recipe; 0: the matrix is not for it. gpu_ns is without what a launch takes at least:
 * below that, ns says little. */
struct cb_choice_times {
  int64_t ns[CB_CHOICE_RECIPES], gpu_ns[CB_CHOICE_RECIPES];
};
void cb_choice_model(struct cb_choice_times *times, const struct cb_choice_profile *profile,
                     const struct cb_target *target, struct cb_types types);

#endif
