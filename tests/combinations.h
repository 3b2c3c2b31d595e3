// SPDX-License-Identifier: Apache-2.0
/* Which combinations of recipe, type, form and other choices tests run: few in which every pair of levels of any two
 * factors occurs (pairwise coverage), or all of them, when CBGEN_TEST_ALL=1 is set. Factors come from the tables of
 * recipes and options, so that a new recipe or type is covered without a line here. */
#ifndef CBGEN_TESTS_COMBINATIONS_H
#define CBGEN_TESTS_COMBINATIONS_H

#include "tests/recipes.h"

enum { MOST_FACTORS = 6 };

/* A row of levels, one for each factor. */
typedef int combination[MOST_FACTORS];

struct factors {
  int count;
  int levels[MOST_FACTORS];
  int option[MOST_FACTORS]; /* its number; unused by the first factor of kernels, the recipe */
  int type, semiring;       /* which factors these are; 0: none is. Pairs that a type excludes need not occur */
};

/* Recipe, type, form, whether values are fixed, and the semiring where there is such an option. */
void factors_of_kernels(struct factors *factors);

/* "recipe=NAME … type=f64 form=ax values=data": the recipe with settings in which it takes its example. */
void combination_settings(char settings[SETTINGS], const struct factors *factors, const combination levels);

/* The next row, of which factors before `fixed` stay; 0: that was the last one, and the first follows. */
int next_combination(const struct factors *factors, int fixed, combination levels);

/* Whether none of its types takes a recipe or a semiring that it has not. A level that is -1 excludes nothing. */
int combination_is_possible(const struct factors *factors, const combination levels);

/* Pairs of levels that have occurred. */
struct pairs {
  struct factors factors;
  int left; /* that have not */
  unsigned char *seen;
};
void pairs_init(struct pairs *pairs, const struct factors *factors);
void pairs_see(struct pairs *pairs, const combination levels);
int pairs_count_new(const struct pairs *pairs, const combination levels); /* of it; a level that is -1 has no pairs */
void pairs_release(struct pairs *pairs);

/* Rows in which every pair occurs, on the heap; returns how many. */
int covering_combinations(const struct factors *factors, combination **rows);

/* Whether CBGEN_TEST_ALL asks for all combinations. */
int tests_all_combinations(void);

#endif
