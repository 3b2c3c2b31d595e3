// SPDX-License-Identifier: Apache-2.0
/* The predictor as the library has it, for test_choose_table.py. Of each line of standard input
 *
 *   score MODEL-OF-GPU'\t'FEATURE … TIME …     prints the scores of all recipes; "none" when the GPU has no table
 *   profile TYPE MATRIX                        prints features and the model's times, as for sm_90
 */
#include "analysis/choose/predictor.h"
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

static void profile(const char *type, const char *matrix) {
  struct cb_csr csr = {0};
  struct cb_diag diag = {0};
  struct cb_choice_profile profile;
  struct cb_choice_features features;
  struct cb_choice_times model;
  struct cb_target target;
  const struct cb_types types = cb_precision_types(strcmp(type, "f64") ? CB_PRECISION_F32 : CB_PRECISION_F64);
  enum cb_status s = cb_target_find(&target, "sm_90", &diag);
  if (!s) s = cb_matrix_read(&csr, matrix, NULL, &diag);
  if (!s) s = cb_choice_profile(&profile, &csr, &diag);
  cb_csr_release(&csr);
  if (s) {
    printf("%s\n", diag.message);
    return;
  }
  cb_choice_model(&model, &profile, &target, types);
  cb_choice_describe(&features, &profile, &model, types);
  for (int i = 0; i < CB_CHOICE_FEATURES; i++) printf("%d ", (int)features.of[i]);
  for (int i = 0; i < CB_CHOICE_RECIPES; i++) printf("%lld ", (long long)model.ns[i]);
  printf("\n");
}

int main(void) {
  static char line[1 << 16];
  while (fgets(line, sizeof line, stdin)) {
    char type[8], matrix[1024];
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "score ", 6))
      score(line + 6);
    else if (sscanf(line, "profile %7s %1023[^\n]", type, matrix) == 2)
      profile(type, matrix);
    else
      return 2;
  }
  return 0;
}
