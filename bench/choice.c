// SPDX-License-Identifier: Apache-2.0
/* The choice of a recipe as the library has it, for those who train and test it. Of each line of standard input
 *
 *   profile MATRIX                             prints the profile: its numbers in their order
 *   features TYPE NUMBER …                     of a profile: prints features and the model's times, as for sm_90
 *   score MODEL-OF-GPU'\t'FEATURE … TIME …     prints the scores of all recipes; "none" when the GPU has no table
 *   order SCORE … TIME …                       of all recipes; a time of 0: none. Prints their numbers, the best first
 *
 * and of the shares of an extraction (analysis/choose/shares.h)
 *
 *   spread MATRIX                              prints the profile: its numbers in their order
 *   describe NUMBER …                          of a profile: prints features
 *   shares MODEL-OF-GPU'\t'BYTES FEATURE …     what is predicted for values of so many bytes, and the outputs; or "none"
 */
#include "analysis/choose/choose.h"
#include "analysis/choose/shares.h"
#include "base/types.h"
#include "frontend/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void score(char *line) {
  struct cb_choice_features features;
  struct cb_choice_times model;
  struct cb_choice_scores scores;
  char *at = strchr(line, '\t');
  if (!at) return;
  *at++ = 0;
  const struct cb_choice_table *table = cb_choice_table_find(line);
  if (!table) {
    printf("none\n");
    return;
  }
  for (int i = 0; i < CB_CHOICE_FEATURES; i++) features.of[i] = (int32_t)strtol(at, &at, 10);
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) model.ns[i] = strtoll(at, &at, 10);
  cb_choice_score(&scores, table, &features, &model);
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) printf("%lld ", (long long)scores.of[i]);
  printf("\n");
}

static void order(char *at) {
  struct cb_choice choice = {0};
  struct cb_choice_scores scores;
  struct cb_choice_times model;
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) scores.of[i] = strtoll(at, &at, 10);
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) model.ns[i] = strtoll(at, &at, 10);
  cb_choice_rank(&choice, &scores, &model);
  for (int rank = 0; rank < choice.count; rank++)
    for (int i = 0; i < CB_CHOICE_RECIPES; i++)
      if (!strcmp(cb_choice_recipes[i], choice.ranks[rank].recipe)) printf("%d ", i);
  printf("\n");
}

static void print_counts(const void *profile, size_t bytes) {
  const int64_t *counts = profile;
  for (size_t i = 0; i < bytes / sizeof *counts; i++) printf("%lld ", (long long)counts[i]);
  printf("\n");
}

static void profile(const char *matrix, int of_shares) {
  struct cb_csr csr = {0};
  struct cb_diag diag = {0};
  struct cb_choice_profile profile;
  struct cb_shares_profile shares;
  enum cb_status s = cb_matrix_read(&csr, matrix, NULL, &diag);
  if (!s) s = of_shares ? cb_shares_profile(&shares, &csr, &diag) : cb_choice_profile(&profile, &csr, &diag);
  cb_csr_release(&csr);
  if (s)
    printf("%s\n", diag.message);
  else if (of_shares)
    print_counts(&shares, sizeof shares);
  else
    print_counts(&profile, sizeof profile);
}

static void describe_shares(char *at) {
  struct cb_shares_profile profile;
  struct cb_shares_features features;
  int64_t *counts = (int64_t *)&profile;
  for (size_t i = 0; i < sizeof profile / sizeof *counts; i++) counts[i] = strtoll(at, &at, 10);
  cb_shares_describe(&features, &profile);
  for (int i = 0; i < CB_SHARES_FEATURES; i++) printf("%d ", (int)features.of[i]);
  printf("\n");
}

static void predict_shares(char *line) {
  struct cb_shares_features features;
  char *at = strchr(line, '\t');
  if (!at) return;
  *at++ = 0;
  const struct cb_shares_table *table = cb_shares_table_find(line, strtoll(at, &at, 10));
  if (!table) {
    printf("none\n");
    return;
  }
  for (int i = 0; i < CB_SHARES_FEATURES; i++) features.of[i] = (int32_t)strtol(at, &at, 10);
  const struct cb_shares shares = cb_shares_predict(table, &features);
  const struct cb_shares_sums sums = cb_shares_sum(table, &features);
  printf("%d %d", shares.cols, shares.rows);
  for (int i = 0; i < SHARES_OUTPUTS; i++) printf(" %lld", (long long)sums.of[i]);
  printf("\n");
}

static void describe(char *at) {
  struct cb_diag diag = {0};
  struct cb_choice_profile profile;
  struct cb_choice_features features;
  struct cb_choice_times model;
  struct cb_target target;
  const struct cb_types types = cb_precision_types(strncmp(at, "f64 ", 4) ? CB_PRECISION_F32 : CB_PRECISION_F64);
  int64_t *counts = (int64_t *)&profile;
  if (cb_target_find(&target, "sm_90", &diag)) return;
  at += 4;
  for (size_t i = 0; i < sizeof profile / sizeof *counts; i++) counts[i] = strtoll(at, &at, 10);
  cb_choice_model(&model, &profile, &target, types);
  cb_choice_describe(&features, &profile, &model, types);
  for (int i = 0; i < CB_CHOICE_FEATURES; i++) printf("%d ", (int)features.of[i]);
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) printf("%lld ", (long long)model.ns[i]);
  printf("\n");
}

int main(void) {
  static char line[1 << 16];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "score ", 6))
      score(line + 6);
    else if (!strncmp(line, "order ", 6))
      order(line + 6);
    else if (!strncmp(line, "profile ", 8))
      profile(line + 8, 0);
    else if (!strncmp(line, "features ", 9))
      describe(line + 9);
    else if (!strncmp(line, "spread ", 7))
      profile(line + 7, 1);
    else if (!strncmp(line, "describe ", 9))
      describe_shares(line + 9);
    else if (!strncmp(line, "shares ", 7))
      predict_shares(line + 7);
    else
      return 2;
  }
  return 0;
}
