// SPDX-License-Identifier: Apache-2.0
/* From a matrix to an order of recipes: see choose.h. */
#include "analysis/choose/choose.h"

#include "base/integers.h"

/* What it means that the model has no time for a recipe, in its order. */
static const char *const against[CB_CHOICE_RECIPES] = {"no diagonal is half full",
                                                       "no natural blocks are full enough",
                                                       "too few rows have columns that repeat",
                                                       "nothing",
                                                       "nothing",
                                                       "frequent columns would save too little",
                                                       "too few columns are frequent",
                                                       "nothing",
                                                       "too few nonzeros are in runs of 32 along diagonals"};

/* Puts it before all that are dearer. */
static void insert(struct cb_choice *choice, const char *recipe, int64_t ns) {
  int at = choice->count++;
  for (; at && choice->ranks[at - 1].ns > ns; at--) choice->ranks[at] = choice->ranks[at - 1];
  choice->ranks[at] = (struct cb_choice_rank){.recipe = recipe, .ns = ns};
}

/* Small matrices take the same time by several recipes, and which is predicted to be the fastest by less than TIE says
 * nothing. Of these the first of `plain` is taken, whose rows are written once each: programs can keep its vectors in
 * shared memory. On matrices left out of training that loses no more (1.87 % for 1.89; 1 % would lose 1.91 and 2 %
 * 2.02); whoever asks for a solver permits more (program-loss). */
enum { TIE = 8 /* half a percent, in steps of a logarithm */, DIA = 0, BLOCKS = 1, SELL = 3, NONE = -1 };

static int plain_one(const struct cb_choice_scores *scores, const struct cb_choice_times *model, int64_t best) {
  static const int plain[] = {DIA, BLOCKS, SELL};
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    if (model->ns[plain[i]] && scores->of[plain[i]] <= best + TIE) return plain[i];
  return NONE;
}

void cb_choice_rank(struct cb_choice *choice, const struct cb_choice_scores *scores,
                    const struct cb_choice_times *model) {
  int64_t best = INT64_MAX;
  choice->count = 0;
  for (int i = 0; i < CB_CHOICE_RECIPES; i++)
    if (model->ns[i]) best = cb_smaller(best, scores->of[i]);
  const int first = plain_one(scores, model, best);
  if (first != NONE) insert(choice, cb_choice_recipes[first], cb_choice_exp2(best));
  for (int i = 0; i < CB_CHOICE_RECIPES; i++)
    if (model->ns[i] && i != first) insert(choice, cb_choice_recipes[i], cb_choice_exp2(scores->of[i]));
  for (int i = 0, at = choice->count; i < CB_CHOICE_RECIPES; i++)
    if (!model->ns[i])
      choice->ranks[at++] = (struct cb_choice_rank){.recipe = cb_choice_recipes[i], .against = against[i]};
}

enum cb_status cb_choose(struct cb_choice *choice, const struct cb_csr *csr, const struct cb_target *target,
                         struct cb_types types, struct cb_diag *diag) {
  enum { MANY_ROWS = 1 << 21 }; /* R-MAT 22: 30 ms, of 4.2 M rows */
  const struct cb_choice_table *table = cb_choice_table_find(target->model);
  struct cb_choice_profile profile;
  struct cb_choice_times model;
  struct cb_choice_features features;
  struct cb_choice_scores scores;
  *choice = (struct cb_choice){.is_trained = table != NULL};
  const enum cb_status s = cb_choice_profile(&profile, csr, diag);
  if (s) return s;
  choice->has_long_order = profile.rows >= MANY_ROWS && profile.lengths.longest > CB_CHOICE_LONG;
  cb_choice_model(&model, &profile, target, types);
  cb_choice_describe(&features, &profile, &model, types);
  cb_choice_score(&scores, table, &features, &model);
  cb_choice_rank(choice, &scores, &model);
  return CB_OK;
}
