// SPDX-License-Identifier: Apache-2.0
/* Recipes, options and settings to test with, from the layouts' own tables, so that a new layout is tested without a
 * line here. Nothing but tests of one layout names recipes in lists of its own. */
#ifndef CBGEN_TESTS_RECIPES_H
#define CBGEN_TESTS_RECIPES_H

#include "analysis/layout.h"
#include "analysis/plan/recipe.h"
#include "tests/random.h"

/* The layout whose table has the recipe; NULL: that of the search. */
const struct cb_layout *layout_of_recipe(const struct cb_recipe *recipe);

/* Settings with which all recipes take what some of them would refuse. Static. */
const char *lenient_settings(void);

/* "recipe=NAME" with settings with which it takes its example. Static. */
const char *settings_of_recipe(const struct cb_recipe *recipe);
const char *example_of(const struct cb_recipe *recipe); /* any matrix where it suits all */

/* Values of an option that are worth a test, the standard first; at most MOST_VALUES. Returns how many. */
enum { MOST_VALUES = 12 };
int values_of_option(const struct cb_option *option, int64_t values[MOST_VALUES]);

/* A value that the option takes, at random; small numbers are frequent in long ranges. */
int64_t draw_option(uint64_t *state, const struct cb_option *option);

/* "recipe=NAME …" in which the options of its layout have their values in turn: each of them has each of its values for
 * some `number` from 0 on. Those that `lenient` sets stay. Number 0: all are standard. Settings that contradict each
 * other are not made; the next number's are. */
enum { SETTINGS = 256 };
void cross_settings(char settings[SETTINGS], const struct cb_recipe *recipe, int number);

/* How many numbers it takes until every option of the recipe's layout has had every value. */
int crossings_of(const struct cb_recipe *recipe);

/* What no crossing says and is worth a test: line `number` of tests/data/settings/LAYOUT.txt, a file that a layout may
 * have, as settings with a recipe. 0: there are no more. */
int listed_settings(char settings[SETTINGS], const struct cb_layout *layout, int number);

/* Both, one after the other: all lists, and of every recipe crossing 0 and `crossings` more. 0: there are no more. */
int next_settings(char settings[SETTINGS], int number, int crossings);

#endif
