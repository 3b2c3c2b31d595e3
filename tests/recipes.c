// SPDX-License-Identifier: Apache-2.0
/* See recipes.h. */
#include "tests/recipes.h"

#include "analysis/options.h"

#include <stdio.h>
#include <string.h>

const struct cb_layout *layout_of_recipe(const struct cb_recipe *recipe) {
  for (int i = 0; cb_layout_table[i]; i++)
    for (const struct cb_recipe *own = cb_layout_table[i]->recipes; own->name; own++)
      if (own == recipe) return cb_layout_table[i];
  return NULL;
}

const char *lenient_settings(void) {
  static char settings[SETTINGS];
  const struct cb_recipe *recipe;
  size_t length = 0;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++)
    if (recipe->lenient)
      length += (size_t)snprintf(settings + length, sizeof settings - length, "%s%s", length ? " " : "", recipe->lenient);
  return settings;
}

const char *settings_of_recipe(const struct cb_recipe *recipe) {
  static char settings[SETTINGS];
  const char *lenient = recipe->lenient ? recipe->lenient : "";
  snprintf(settings, sizeof settings, "recipe=%s%s%s", recipe->name, *lenient ? " " : "", lenient);
  return settings;
}

const char *example_of(const struct cb_recipe *recipe) {
  return recipe->example ? recipe->example : "random,rows=300,cols=200,density=0.05";
}

/* ---- values */

static int add_value(int64_t *values, int count, const struct cb_option *option, int64_t value) {
  int known = !cb_option_takes(option, value) || count == MOST_VALUES;
  for (int i = 0; i < count && !known; i++) known = values[i] == value;
  if (!known) values[count] = value;
  return count + !known;
}

/* Words from number `first` on, behind the last one the first again, one fewer each time. */
static int64_t list_from(const struct cb_option *option, int first) {
  int64_t list = 0;
  int words = 0;
  while (option->words[words]) words++;
  for (int i = 0; i < words - first; i++) list |= (int64_t)((2 * first + i) % words + 1) << CB_WORD_BITS * i;
  return list;
}

int values_of_option(const struct cb_option *option, int64_t values[MOST_VALUES]) {
  int count = add_value(values, 0, option, option->standard);
  for (int i = 0; option->words && option->words[i]; i++)
    count = add_value(values, count, option, option->is_list ? list_from(option, i) : option->least + i);
  for (const int64_t *number = option->numbers; number && *number != CB_NO_NUMBER; number++)
    count = add_value(values, count, option, *number);
  if (option->words || option->numbers) return count;
  const int64_t span = option->most - option->least;
  const int64_t ends[] = {option->least, option->least + 1, option->least + span / 3, option->most};
  const int64_t small[] = {option->least, option->least + 1, option->least + 20, option->least + 300};
  for (int i = 0; i < 4; i++) count = add_value(values, count, option, (span > 1024 ? small : ends)[i]);
  return count;
}

static int64_t between(uint64_t *state, int64_t least, int64_t most) {
  return least + (int64_t)(draw(state) % (uint64_t)(most - least + 1));
}

int64_t draw_option(uint64_t *state, const struct cb_option *option) {
  int64_t values[MOST_VALUES];
  const int64_t range = option->most - option->least;
  if (option->words || option->numbers) return values[between(state, 0, values_of_option(option, values) - 1)];
  if (option->or_zero && draw(state) % 2) return 0;
  return option->least + (range > 300 ? between(state, 0, between(state, 0, 300)) : between(state, 0, range));
}

/* ---- crossing */

static int is_lenient(const struct cb_recipe *recipe, const struct cb_option *option) {
  const size_t length = strlen(option->name);
  const char *at = recipe->lenient ? strstr(recipe->lenient, option->name) : NULL;
  return at && at[length] == '=' && (at == recipe->lenient || at[-1] == ' ');
}

/* Option `place` of the layout, in crossing `number`. Later rounds meet other neighbours. */
static int64_t value_in_turn(const struct cb_option *option, int place, int number) {
  int64_t values[MOST_VALUES];
  const int count = values_of_option(option, values);
  const int turn = number - 1;
  return values[number ? (turn + place * (1 + turn / count)) % count : 0];
}

static void try_crossing(char settings[SETTINGS], const struct cb_recipe *recipe, int number) {
  const struct cb_layout *layout = layout_of_recipe(recipe);
  struct cb_text text = {0};
  cb_text_add(&text, "recipe=%s", recipe->name);
  if (recipe->lenient) cb_text_add(&text, " %s", recipe->lenient);
  for (int i = 0; layout && i < layout->options_count; i++) {
    const struct cb_option *option = &layout->options[i];
    const int64_t value = value_in_turn(option, i, number);
    if (value == option->standard || is_lenient(recipe, option)) continue;
    cb_text_add(&text, " %s=", option->name);
    cb_option_print(&text, option, value);
  }
  snprintf(settings, SETTINGS, "%s", cb_text_string(&text));
  cb_text_release(&text);
}

static int contradicts(const char *settings) {
  struct cb_options options;
  cb_options_default(&options);
  const char *own = strchr(settings, ' ');
  return own && (cb_options_apply(&options, own, NULL) || cb_options_check(&options, NULL));
}

void cross_settings(char settings[SETTINGS], const struct cb_recipe *recipe, int number) {
  do try_crossing(settings, recipe, number++);
  while (contradicts(settings));
}

int crossings_of(const struct cb_recipe *recipe) {
  const struct cb_layout *layout = layout_of_recipe(recipe);
  int64_t values[MOST_VALUES];
  int most = 1;
  for (int i = 0; layout && i < layout->options_count; i++) {
    const int count = values_of_option(&layout->options[i], values);
    if (count + 1 > most) most = count + 1;
  }
  return most;
}

/* ---- lists */

enum { MOST_LISTS = 32, MOST_LINES = 24 };

/* The lines of a layout's file, read when they are first asked for. */
struct list {
  const struct cb_layout *layout;
  int count;
  char lines[MOST_LINES][SETTINGS - 32];
};

static void read_list(struct list *list, const struct cb_layout *layout) {
  char path[96];
  list->layout = layout;
  snprintf(path, sizeof path, "tests/data/settings/%s.txt", layout->name);
  FILE *file = fopen(path, "r");
  while (file && list->count < MOST_LINES && fgets(list->lines[list->count], sizeof *list->lines, file)) {
    list->lines[list->count][strcspn(list->lines[list->count], "\n")] = 0;
    list->count++;
  }
  if (file && fgetc(file) != EOF) fail_msg("%s has more than %d lines", path, MOST_LINES);
  if (file) fclose(file);
}

static const struct list *list_of(const struct cb_layout *layout) {
  static struct list lists[MOST_LISTS];
  int i = 0;
  while (lists[i].layout && lists[i].layout != layout) assert_true(++i < MOST_LISTS);
  if (!lists[i].layout) read_list(&lists[i], layout);
  return &lists[i];
}

int listed_settings(char settings[SETTINGS], const struct cb_layout *layout, int number) {
  const struct list *list = list_of(layout);
  const char *line = number < list->count ? list->lines[number] : "";
  const int own = strncmp(line, "recipe=", 7) != 0;
  snprintf(settings, SETTINGS, "%s%.24s%s%s", own ? "recipe=" : "", own ? layout->recipes[0].name : "", own ? " " : "",
           line);
  return number < list->count;
}

int next_settings(char settings[SETTINGS], int number, int crossings) {
  for (int l = 0; cb_layout_table[l]; l++) {
    int lines = 0;
    while (listed_settings(settings, cb_layout_table[l], lines)) {
      if (lines++ == number) return 1;
    }
    number -= lines;
  }
  const struct cb_recipe *recipe = cb_recipe_at(number / (crossings + 1));
  if (recipe) cross_settings(settings, recipe, number % (crossings + 1));
  return recipe != NULL;
}
