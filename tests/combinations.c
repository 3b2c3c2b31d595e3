// SPDX-License-Identifier: Apache-2.0
/* See combinations.h. Covering rows are found one after the other: each begins with a pair that has not occurred, and
 * takes for every other factor the level with which most pairs are new. */
#include "tests/combinations.h"

#include "analysis/options.h"

#include <stdio.h>

/* ---- factors */

static void add_option(struct factors *factors, const char *name) {
  const int number = cb_option_find(name);
  int words = 0;
  if (number < 0) return;
  while (cb_option_at(number)->words[words]) words++;
  factors->option[factors->count] = number;
  factors->levels[factors->count++] = words;
}

void factors_of_kernels(struct factors *factors) {
  *factors = (struct factors){.count = 1};
  while (cb_recipe_at(factors->levels[0])) factors->levels[0]++;
  static const char *const options[] = {"type", "form", "values", "semiring"};
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    if (!strcmp(options[i], "type")) factors->type = factors->count;
    if (!strcmp(options[i], "semiring")) factors->semiring = factors->count;
    add_option(factors, options[i]);
  }
}

int combination_is_possible(const struct factors *factors, const combination levels) {
  const int precision = factors->type ? levels[factors->type] : -1;
  if (precision < 0 || !cb_precision_is_complex(precision)) return 1;
  return !factors->semiring || levels[factors->semiring] <= 0; /* plus-times is the first */
}

void combination_settings(char settings[SETTINGS], const struct factors *factors, const combination levels) {
  int length = snprintf(settings, SETTINGS, "%s", settings_of_recipe(cb_recipe_at(levels[0])));
  for (int f = 1; f < factors->count; f++) {
    const struct cb_option *option = cb_option_at(factors->option[f]);
    length += snprintf(settings + length, (size_t)(SETTINGS - length), " %s=%s", option->name, option->words[levels[f]]);
    assert_true(length < SETTINGS);
  }
}

int next_combination(const struct factors *factors, int fixed, combination levels) {
  for (int f = factors->count - 1; f >= fixed; f--) {
    if (++levels[f] < factors->levels[f]) return 1;
    levels[f] = 0;
  }
  return 0;
}

int tests_all_combinations(void) {
  const char *all = getenv("CBGEN_TEST_ALL");
  return all && !strcmp(all, "1");
}

/* ---- pairs */

/* Number of the pair (a of factor f, b of factor g), f < g. */
static size_t pair_number(const struct factors *factors, int f, int a, int g, int b) {
  size_t before = 0;
  for (int i = 0; i <= f; i++)
    for (int k = i + 1; k < (i < f ? factors->count : g); k++)
      before += (size_t)factors->levels[i] * (size_t)factors->levels[k];
  return before + (size_t)a * (size_t)factors->levels[g] + (size_t)b;
}

static void pairs_see_pair(struct pairs *pairs, const combination levels, int f, int g) {
  unsigned char *seen = &pairs->seen[pair_number(&pairs->factors, f, levels[f], g, levels[g])];
  pairs->left -= !*seen;
  *seen = 1;
}

/* Pairs of these factors that are not possible count as seen. */
static void leave_out(struct pairs *pairs, int f, int g) {
  combination row;
  for (int i = 0; i < MOST_FACTORS; i++) row[i] = -1;
  for (row[f] = 0; row[f] < pairs->factors.levels[f]; row[f]++)
    for (row[g] = 0; row[g] < pairs->factors.levels[g]; row[g]++)
      if (!combination_is_possible(&pairs->factors, row)) pairs_see_pair(pairs, row, f, g);
}

void pairs_init(struct pairs *pairs, const struct factors *factors) {
  *pairs = (struct pairs){.factors = *factors};
  for (int f = 0; f < factors->count; f++)
    for (int g = f + 1; g < factors->count; g++) pairs->left += factors->levels[f] * factors->levels[g];
  pairs->seen = calloc((size_t)pairs->left + 1, 1);
  assert_non_null(pairs->seen);
  for (int f = 0; f < factors->count; f++)
    for (int g = f + 1; g < factors->count; g++) leave_out(pairs, f, g);
}

void pairs_release(struct pairs *pairs) { free(pairs->seen); }

void pairs_see(struct pairs *pairs, const combination levels) {
  for (int f = 0; f < pairs->factors.count; f++)
    for (int g = f + 1; g < pairs->factors.count; g++) pairs_see_pair(pairs, levels, f, g);
}

int pairs_count_new(const struct pairs *pairs, const combination levels) {
  int count = 0;
  for (int f = 0; f < pairs->factors.count; f++)
    for (int g = f + 1; g < pairs->factors.count; g++)
      if (levels[f] >= 0 && levels[g] >= 0)
        count += !pairs->seen[pair_number(&pairs->factors, f, levels[f], g, levels[g])];
  return count;
}

/* ---- covering rows */

/* Sets both levels of the first pair that has not occurred; there is one. */
static void begin_row(const struct pairs *pairs, combination row) {
  const struct factors *factors = &pairs->factors;
  for (int f = 0; f < MOST_FACTORS; f++) row[f] = -1;
  for (int f = 0; f < factors->count; f++) {
    for (row[f] = 0; row[f] < factors->levels[f]; row[f]++)
      for (int g = f + 1; g < factors->count; g++) {
        for (row[g] = 0; row[g] < factors->levels[g]; row[g]++)
          if (pairs_count_new(pairs, row)) return;
        row[g] = -1;
      }
    row[f] = -1;
  }
}

static void fill_row(const struct pairs *pairs, combination row) {
  for (int f = 0; f < pairs->factors.count; f++) {
    int best = 0, most = -1;
    if (row[f] >= 0) continue;
    for (row[f] = 0; row[f] < pairs->factors.levels[f]; row[f]++) {
      const int count = combination_is_possible(&pairs->factors, row) ? pairs_count_new(pairs, row) : -1;
      if (count > most) best = row[f];
      if (count > most) most = count;
    }
    row[f] = best;
  }
}

int covering_combinations(const struct factors *factors, combination **rows) {
  struct pairs pairs;
  int count = 0;
  pairs_init(&pairs, factors);
  *rows = malloc(((size_t)pairs.left + 1) * sizeof **rows); /* each has a new pair at least */
  assert_non_null(*rows);
  for (; pairs.left; pairs_see(&pairs, (*rows)[count++])) {
    begin_row(&pairs, (*rows)[count]);
    fill_row(&pairs, (*rows)[count]);
  }
  pairs_release(&pairs);
  return count;
}
