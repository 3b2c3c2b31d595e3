// SPDX-License-Identifier: Apache-2.0
/* The table of options: every row set to all it accepts and refused all around it, nearest names, the rules
 * between options, help; and the table of targets. */
#include "tests/recipes.h"
#include "tests/support.h"

#include "analysis/options.h"
#include "analysis/plan/recipe.h"
#include "analysis/target.h"

#include <ctype.h>

static int64_t value_of(const struct cb_options *options, const char *name) {
  const int number = cb_option_find(name);
  assert_true(number >= 0);
  return cb_option_value(options, number);
}

static void assert_number(const struct cb_option *option, int64_t number) {
  struct cb_options options;
  struct cb_diag diag = {0};
  char text[32];
  cb_options_default(&options);
  snprintf(text, sizeof text, "%lld", (long long)number);
  assert_ok(cb_options_set(&options, option->name, text, &diag));
  assert_int_equal(value_of(&options, option->name), number);
}

/* Refused with a message that names the option, the value and `accepted`, and nothing is changed. */
static void assert_refused(const char *name, const char *value, const char *accepted) {
  struct cb_options options, before;
  struct cb_diag diag = {0};
  cb_options_default(&options);
  before = options;
  assert_int_equal(cb_options_set(&options, name, value, &diag), CB_ERR_ARGUMENT);
  if (!strstr(diag.message, name) || !strstr(diag.message, value) || !strstr(diag.message, accepted))
    fail_msg("'%s=%s': '%s' does not say '%s'", name, value, diag.message, accepted);
  assert_memory_equal(&options, &before, sizeof options);
}

static void assert_number_refused(const struct cb_option *option, int64_t number, const char *accepted) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)number);
  assert_refused(option->name, text, accepted);
}

static void assert_nonsense_refused(const struct cb_option *option, const char *accepted) {
  static const char *const nonsense[] = {"", "x", "1x", "0x10", "1.5", "--1", "99999999999999999999", "-1"};
  for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) assert_refused(option->name, nonsense[i], accepted);
}

static void numbers_within_their_range(void **state) {
  (void)state;
  const struct cb_option *option;
  int ranges = 0, with_zero = 0;
  for (int i = 0; (option = cb_option_at(i)); i++) {
    if (option->is_text || option->words || option->numbers) continue;
    char range[64];
    ranges++;
    with_zero += option->or_zero;
    assert_true(option->least >= 0 && option->most > option->least); /* so that -1 is refused */
    assert_true(!option->or_zero || option->least > 1); /* else the range says it */
    snprintf(range, sizeof range, "takes %sa number from %lld to %lld", option->or_zero ? "0 or " : "",
             (long long)option->least, (long long)option->most);
    assert_number(option, option->least);
    assert_number(option, option->most);
    assert_number(option, option->standard);
    if (option->or_zero) assert_number(option, 0);
    assert_number_refused(option, option->most + 1, range);
    if (option->least != 1 || !option->or_zero) assert_number_refused(option, option->least - 1, range);
    assert_nonsense_refused(option, range);
  }
  assert_true(ranges >= 9 && with_zero >= 2);
}

/* Those between, before and behind the numbers of a list are refused. */
static void numbers_of_their_list(void **state) {
  (void)state;
  const struct cb_option *option;
  int lists = 0;
  for (int i = 0; (option = cb_option_at(i)); i++) {
    if (!option->numbers) continue;
    int64_t before = -1;
    char last[32];
    lists++;
    for (const int64_t *number = option->numbers; *number != CB_NO_NUMBER; before = *number++) {
      assert_true(*number > before);
      assert_number(option, *number);
      for (int64_t between = before + 1; between < *number; between++) assert_number_refused(option, between, "it takes 0, ");
    }
    snprintf(last, sizeof last, " or %lld", (long long)before);
    assert_number_refused(option, before + 1, last);
    assert_nonsense_refused(option, last);
  }
  assert_true(lists >= 4);
  assert_refused("sell-vector", "3", "option 'sell-vector' cannot be '3'; it takes 0, 1, 2 or 4");
  assert_refused("unit-budget", "15", "it takes 0 or a number from 16 to 2147483648");
}

static void words_are_those_of_the_table(void **state) {
  (void)state;
  const struct cb_option *option;
  int choices = 0;
  for (int number = 0; (option = cb_option_at(number)); number++) {
    if (!option->words || option->is_list) continue;
    int64_t value = option->least;
    choices++;
    for (int i = 0; option->words[i]; i++, value++) {
      struct cb_options options;
      struct cb_diag diag = {0};
      cb_options_default(&options);
      assert_ok(cb_options_set(&options, option->name, option->words[i], &diag));
      assert_int_equal(cb_option_value(&options, number), value);
      assert_refused(option->name, "nonsense", option->words[i]); /* every word is offered */
    }
    assert_false(cb_option_takes(option, value));
    assert_false(cb_option_takes(option, option->least - 1));
    assert_refused(option->name, "", "it takes");
  }
  assert_true(choices >= 6);
}

/* Each option that takes a list of words takes any of them in any order, and prints what it took. */
static void lists_are_of_words_of_the_table(void **state) {
  (void)state;
  const struct cb_option *option;
  int lists = 0;
  for (int number = 0; (option = cb_option_at(number)); number++) {
    if (!option->is_list) continue;
    char one[64], both[160], twice[256];
    int words = 0;
    while (option->words[words]) words++;
    assert_true(words >= 2 && words <= CB_MOST_WORDS);
    snprintf(one, sizeof one, "%s", option->words[words - 1]);
    snprintf(both, sizeof both, "%s,%s", option->words[1], option->words[0]);
    snprintf(twice, sizeof twice, "%s,%s", both, option->words[1]);
    const struct {
      const char *text;
      int64_t value;
    } taken[] = {{"auto", 0}, {one, words}, {both, 2 + (1 << CB_WORD_BITS)}};
    for (int i = 0; i < 3; i++) {
      struct cb_options options;
      struct cb_diag diag = {0};
      struct cb_text printed = {0};
      cb_options_default(&options);
      assert_ok(cb_options_set(&options, option->name, taken[i].text, &diag));
      assert_int_equal(cb_option_value(&options, number), taken[i].value);
      cb_option_print(&printed, option, taken[i].value);
      assert_string_equal(cb_text_string(&printed), taken[i].text);
      cb_text_release(&printed);
    }
    assert_int_equal(cb_option_word(taken[2].value, 0), 1);
    assert_int_equal(cb_option_word(taken[2].value, 1), 0);
    assert_int_equal(cb_option_word(taken[2].value, 2), -1);
    const char *const refused[] = {"", ",", "nonsense", twice, "auto,auto"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
      assert_refused(option->name, refused[i], "it takes 'auto', or some of '");
    snprintf(both, sizeof both, "%s,", option->words[0]);
    assert_refused(option->name, both, option->words[words - 1]);
    snprintf(both, sizeof both, ",%s", option->words[0]);
    assert_refused(option->name, both, option->words[words - 1]);
    const int64_t no_lists[] = {-1, words + 1, 1 + (1 << CB_WORD_BITS), 1 << CB_WORD_BITS, INT64_MAX,
                                INT64_C(1) << 60};
    for (size_t i = 0; i < sizeof no_lists / sizeof *no_lists; i++)
      assert_false(cb_option_takes(option, no_lists[i]));
    lists++;
  }
  assert_true(lists >= 1);
}

/* By name, so that a row that points to another field is noticed. */
static void names_reach_their_fields(void **state) {
  (void)state;
  struct cb_options options;
  set_options(&options, "type=f32 form=add values=fixed atomics=on recipe=auto tune=off search=all fuse=off long-row=77 "
                        "bake-limit=666 index-limit=88");
  assert_true(options.type == CB_F32 && options.form == CB_FORM_ADD && options.values == CB_VALUES_FIXED);
  assert_true(options.atomics == CB_ON && options.tune == CB_TUNE_OFF && options.search == CB_SEARCH_ALL);
  assert_string_equal(options.recipe, "auto");
  assert_true(options.fuse == CB_OFF && options.long_row == 77);
  assert_true(options.bake_limit == 666 && options.index_limit == 88);
}

/* A layout finds each of its settings in the place of its row, and no other layout's is touched. */
static void layouts_find_their_settings(void **state) {
  (void)state;
  for (int l = 0; cb_layout_table[l]; l++) {
    const struct cb_layout *layout = cb_layout_table[l];
    assert_true(layout->options_count <= CB_MAX_SETTINGS);
    for (int k = 0; k < layout->options_count; k++) {
      struct cb_options options, untouched;
      int64_t values[MOST_VALUES];
      cb_options_default(&options);
      cb_options_default(&untouched);
      if (!layout->options[k].name) fail_msg("row %d of layout %s is missing", k, layout->name);
      const int64_t value = values[values_of_option(&layout->options[k], values) - 1];
      assert_true(value != layout->options[k].standard);
      cb_option_set(&options, cb_option_find(layout->options[k].name), value);
      assert_int_equal(cb_settings(&options, layout)[k], value);
      ((int64_t *)cb_settings(&options, layout))[k] = layout->options[k].standard;
      assert_memory_equal(&options, &untouched, sizeof options);
    }
  }
}

static void defaults_are_the_standards(void **state) {
  (void)state;
  const struct cb_option *option;
  struct cb_options options;
  struct cb_diag diag = {0};
  memset(&options, 0x5a, sizeof options);
  cb_options_default(&options);
  assert_ok(cb_options_check(&options, &diag));
  assert_non_null(options.recipe);
  for (int i = 0; (option = cb_option_at(i)); i++) {
    if (option->is_text) continue;
    assert_int_equal(cb_option_value(&options, i), option->standard);
    assert_true(cb_option_takes(option, option->standard));
  }
  /* what the paper says, or the plan assumes */
  assert_true(options.type == CB_F64 && options.form == CB_FORM_AXPBY && options.atomics == CB_OFF);
  assert_true(value_of(&options, "th0") == 15 && value_of(&options, "super-sparse") == 32);
  assert_true(value_of(&options, "th1") == 128); /* more than the paper's 32, but only where it pays */
  assert_true(value_of(&options, "coo-gain") == 40);
}

/* Names, and, since tuning asks for them by these, facts. */
static void rows_differ(void **state) {
  (void)state;
  const struct cb_option *a, *b;
  int tuned = 0;
  for (int i = 0; (a = cb_option_at(i)); i++) {
    assert_true(a->help && *a->help && strlen(a->name) > 0);
    assert_true(!a->words + !a->numbers + !a->is_text >= 2); /* values of one kind */
    assert_true(!a->tuned_by || a->numbers);                 /* neighbours come from the list */
    tuned += a->tuned_by != NULL;
    for (int k = i + 1; (b = cb_option_at(k)); k++) assert_string_not_equal(a->name, b->name);
    assert_int_equal(cb_option_find(a->name), i);
  }
  assert_true(tuned >= 2);
  assert_int_equal(cb_option_find("none-such"), -1);
}

static void neighbours_are_those_of_the_list(void **state) {
  (void)state;
  static const int64_t numbers[] = {0, 3, 5, 9, CB_NO_NUMBER};
  static const int64_t cases[][3] = {
      {3, CB_NO_NUMBER, 5}, {5, 3, 9}, {9, 5, CB_NO_NUMBER}, {4, 3, 5}, {20, 9, CB_NO_NUMBER}}; /* number, less, more */
  const struct cb_option option = {.name = "any", .numbers = numbers};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(cb_option_neighbour(&option, cases[i][0], -1), cases[i][1]);
    assert_int_equal(cb_option_neighbour(&option, cases[i][0], 1), cases[i][2]);
  }
}

/* ---- recipes */

static void recipes_are_their_layouts(void **state) {
  (void)state;
  const struct cb_recipe *recipe, *other;
  int searched = 0;
  assert_string_equal(cb_recipe_at(0)->name, "auto");
  for (int i = 0; (recipe = cb_recipe_at(i)); i++) {
    struct cb_diag diag = {0};
    assert_true(*recipe->summary && !recipe->root == !i);
    assert_ok(cb_recipe_find(&other, recipe->name, &diag));
    assert_ptr_equal(recipe, other); /* no other has the name */
    if (recipe->is_searched) assert_ptr_equal(cb_recipe_searched(searched++, 0, 1), recipe);
  }
  assert_true(searched >= 5 && searched <= CB_MAX_CANDIDATES);
  assert_null(cb_recipe_searched(searched, 0, 1));
  assert_int_equal(cb_recipe_find(&recipe, cb_recipe_unsearched, NULL), CB_OK);
}

/* The settings that tests take from the tables do what is said of them. */
static int has_had(const struct cb_option *option, int64_t value, const struct cb_recipe *recipe) {
  enum { ROUNDS = 6 }; /* what contradicts another option in one round meets other values in the next */
  for (int number = 0; number < ROUNDS * crossings_of(recipe); number++) {
    char settings[SETTINGS];
    struct cb_options options;
    cross_settings(settings, recipe, number);
    set_options(&options, settings);
    assert_string_equal(options.recipe, recipe->name);
    if (value_of(&options, option->name) == value) return 1;
  }
  return 0;
}

static void crossings_reach_every_value(void **state) {
  (void)state;
  const struct cb_recipe *recipe;
  for (int i = 0; (recipe = cb_recipe_at(i)); i++) {
    const struct cb_layout *layout = layout_of_recipe(recipe);
    for (int k = 0; layout && k < layout->options_count; k++) {
      const struct cb_option *option = &layout->options[k];
      int64_t values[MOST_VALUES];
      const int count = values_of_option(option, values);
      if (recipe->lenient && strstr(recipe->lenient, option->name)) continue;
      for (int v = 0; v < count; v++)
        if (!has_had(option, values[v], recipe))
          fail_msg("%s: option %s is never %lld", recipe->name, option->name, (long long)values[v]);
    }
  }
}

static void misspelled_names_are_suggested(void **state) {
  (void)state;
  static const char *const wrong[][2] = {
      {"th3", "th"},          {"bake_limit", "'bake-limit'"}, {"recpie", "'recipe'"},
      {"Type", "'type'"},     {"aggregat", "'aggregate'"},    {"super-spars", "'super-sparse'"},
      {"atomic", "'atomics'"}};
  struct cb_options options;
  cb_options_default(&options);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct cb_diag diag = {0};
    assert_int_equal(cb_options_set(&options, wrong[i][0], "1", &diag), CB_ERR_ARGUMENT);
    const char *suggestion = strstr(diag.message, "did you mean");
    if (!suggestion || !strstr(suggestion, wrong[i][1])) fail_msg("'%s': %s", wrong[i][0], diag.message);
  }
}

static void unknown_names_are_not_guessed(void **state) {
  (void)state;
  static const char *const wrong[] = {"colour", "speed-of-light",
                                      "a-name-that-is-far-too-long-to-be-compared-with"};
  struct cb_options options;
  cb_options_default(&options);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct cb_diag diag = {0};
    assert_int_equal(cb_options_set(&options, wrong[i], "1", &diag), CB_ERR_ARGUMENT);
    assert_non_null(strstr(diag.message, "unknown option"));
    assert_null(strstr(diag.message, "did you mean"));
  }
}

/* What was removed is not merely unknown: the message names what to use instead. */
static void removed_names_say_their_substitute(void **state) {
  (void)state;
  struct cb_options options;
  struct cb_diag diag = {0};
  const struct cb_recipe *recipe;
  cb_options_default(&options);
  assert_int_equal(cb_options_set(&options, "panel-lanes", "4", &diag), CB_ERR_ARGUMENT);
  assert_non_null(strstr(diag.message, "'panel-lanes' was removed with recipe 'panel'; use recipe 'sell'"));
  assert_int_equal(cb_options_set(&options, "hot-warm", "4", &diag), CB_ERR_ARGUMENT);
  assert_string_equal(diag.message, "option 'hot-warm' was renamed; use 'hot-packed'");
  assert_true(cb_option_find("hot-packed") >= 0);
  assert_int_equal(cb_recipe_find(&recipe, "panel", &diag), CB_ERR_ARGUMENT);
  assert_non_null(strstr(diag.message, "'panel' was removed; use 'sell'"));
  assert_int_equal(cb_recipe_find(&recipe, "dia-panel", &diag), CB_ERR_ARGUMENT);
  assert_non_null(strstr(diag.message, "'dia-panel' was removed; use 'dia'"));
}

static void assert_check(const char *settings, const char *complaint) {
  struct cb_options options;
  struct cb_diag diag = {0};
  set_options(&options, settings);
  const enum cb_status s = cb_options_check(&options, &diag);
  if (!complaint) {
    if (s) fail_msg("'%s': %s", settings, diag.message);
    return;
  }
  assert_int_equal(s, CB_ERR_ARGUMENT);
  if (!strstr(diag.message, complaint)) fail_msg("'%s': %s", settings, diag.message);
}

static void thresholds_may_touch_but_not_overlap(void **state) {
  (void)state;
  assert_check("th1=32 th2=31", NULL); /* no CSR in between */
  assert_check("th1=33 th2=31", "'th1' is 33 but 'th2' is 31");
  assert_check("th1=257 th2=256", NULL); /* all COO */
  assert_check("th1=0 th2=0", NULL);     /* all Dense */
  assert_check("th1=0 th2=256", NULL);   /* all CSR */
  assert_check("th1=1 th2=0", NULL);
  assert_check("th1=2 th2=0", "at most th2 + 1");
}

/* Values that were not set from text are checked as well. */
static void values_are_checked_where_they_are_used(void **state) {
  (void)state;
  struct cb_options options;
  struct cb_diag diag = {0};
  cb_options_default(&options);
  cb_option_set(&options, cb_option_find("team"), 3);
  assert_int_equal(cb_options_check(&options, &diag), CB_ERR_ARGUMENT);
  assert_string_equal(diag.message, "option 'team' cannot be '3'; it takes 0, 1, 2, 4 or 8");
  cb_options_default(&options);
  options.form = 3;
  assert_int_equal(cb_options_check(&options, &diag), CB_ERR_ARGUMENT);
  assert_non_null(strstr(diag.message, "'form' cannot be '3'; it takes 'ax', 'add', 'axpby'"));
  cb_options_default(&options);
  options.recipe = NULL;
  assert_int_equal(cb_options_check(&options, &diag), CB_ERR_ARGUMENT);
  assert_non_null(strstr(diag.message, "'recipe'"));
}

static void packed_columns_need_the_launch_that_packs_them(void **state) {
  (void)state;
  assert_check("hot-packed=100 hot-gather=on", NULL);
  assert_check("hot-packed=0 hot-gather=off", NULL);
  assert_check("hot-packed=100 hot-gather=off", "'hot-packed' is 100 but 'hot-gather' is off");
}

static void assert_applied(const char *settings, const char *complaint) {
  struct cb_options options;
  struct cb_diag diag = {0};
  cb_options_default(&options);
  const enum cb_status s = cb_options_apply(&options, settings, &diag);
  assert_int_equal(s, complaint ? CB_ERR_ARGUMENT : CB_OK);
  if (complaint && !strstr(diag.message, complaint)) fail_msg("'%s': %s", settings, diag.message);
}

static void settings_are_applied(void **state) {
  (void)state;
  struct cb_options options;
  struct cb_diag diag = {0};
  cb_options_default(&options);
  assert_ok(cb_options_apply(&options, "  sell-lanes=4   fuse=on ", &diag));
  assert_true(value_of(&options, "sell-lanes") == 4 && options.fuse == CB_ON);
  assert_applied("", NULL);
  assert_applied("fuse", "'fuse' sets no option");
  assert_applied("fuse=on sell-lanes=3", "'sell-lanes' cannot be '3'");
  assert_applied("recipe=auto", "do not set 'recipe'");
  assert_applied("none-such=1", "unknown option 'none-such'");
  assert_applied("fuse=a-value-that-is-far-longer-than-any-that-an-option-takes-whatever-it-is", "sets no option");
}

/* A heading for each layout that has options, then its options. */
static void help_shows_every_option(void **state) {
  (void)state;
  const struct cb_option *option;
  struct cb_text text = {0};
  cb_options_help(&text);
  assert_false(text.failed);
  const char *line = cb_text_string(&text);
  for (int i = 0, layout = 0; (option = cb_option_at(i)); i++) {
    struct cb_text start = {0}, end_of_line = {0};
    if (*line == '\n') { /* a heading */
      while (!cb_layout_table[layout]->options_count) layout++;
      cb_text_add(&start, "\n%s: %s\n", cb_layout_table[layout]->name, cb_layout_table[layout]->summary);
      assert_memory_equal(line, start.bytes, start.length);
      assert_ptr_equal(option, cb_layout_table[layout++]->options);
      line += start.length;
      cb_text_release(&start);
    }
    const char *end = strchr(line, '\n');
    assert_non_null(end);
    cb_text_add(&start, "  --%s=", option->name);
    cb_text_add(&end_of_line, " %s (", option->help);
    if (option->is_text) cb_text_add_string(&end_of_line, "auto");
    else cb_option_print(&end_of_line, option, option->standard);
    cb_text_add_string(&end_of_line, ")");
    assert_memory_equal(line, start.bytes, start.length);
    assert_memory_equal(end - end_of_line.length, end_of_line.bytes, end_of_line.length);
    line = end + 1;
    cb_text_release(&start);
    cb_text_release(&end_of_line);
  }
  assert_int_equal(*line, 0);
  cb_text_release(&text);
}

static void targets_are_found_by_name(void **state) {
  (void)state;
  struct cb_diag diag = {0};
  struct cb_target target;
  int number = 0, last = 74;
  for (const struct cb_architecture *row = cb_architecture_table; *row->target.arch; row++, last = number) {
    assert_int_equal(sscanf(row->target.arch, "sm_%d", &number), 1);
    assert_true(number > last);
    if (row->refusal) continue;
    assert_ok(cb_target_find(&target, row->target.arch, &diag));
    assert_memory_equal(&target, &row->target, sizeof target);
    assert_true(target.multiprocessors > 0 && target.shared_per_block <= target.shared_per_sm &&
                target.l2_bytes > 0);
    assert_true(!strncmp(row->nvrtc, "12.", 3) || !strncmp(row->nvrtc, "13.", 3));
    assert_true(target.read_gb_per_s > 0 && target.sectors_g_per_s > 0 && target.launch_ns > 0);
    assert_true(target.l2_gb_per_s > 0 && target.latency_ns > 0);
    assert_true(!strncmp(target.arch, "sm_", 3) && isdigit((unsigned char)target.arch[3]) && *target.model);
  }
  assert_int_equal(last, 121);
}

/* What runs is taken, and what is not says why, and what there is instead. */
static void refused_targets_say_why(void **state) {
  (void)state;
  static const char *const taken[] = {"sm_75", "sm_86", "sm_87", "sm_89", "sm_103", "sm_110", "sm_120", "sm_121"};
  static const char *const refused[][2] = {
      {"sm_88", "no data sheet"}, {"sm_101", "CUDA 13 calls it sm_110"}, {"sm_70", "older than sm_75"},
      {"sm_130", "unknown"},      {"sm_90x", "unknown"},                 {"sm_70x", "unknown"},
      {"90", "unknown"},
  };
  struct cb_diag diag = {0};
  struct cb_target target;
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) assert_ok(cb_target_find(&target, taken[i], &diag));
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    assert_int_equal(cb_target_find(&target, refused[i][0], &diag), CB_ERR_ARGUMENT);
    assert_non_null(strstr(diag.message, refused[i][1]));
    assert_non_null(strstr(diag.message, "there are 'sm_75', 'sm_80', 'sm_86'"));
    assert_null(strstr(diag.message, "'sm_101',"));
  }
}

static void unknown_devices_have_the_figures_of_an_older_one(void **state) {
  (void)state;
  static const struct {
    int number;
    const char *arch;
  } cases[] = {{75, "sm_75"}, {70, "sm_75"}, {88, "sm_87"}, {91, "sm_90"}, {101, "sm_100"}, {106, "sm_103"},
               {123, "sm_121"}, {140, "sm_121"}, {120, "sm_120"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(cb_architecture_nearest(cases[i].number)->target.arch, cases[i].arch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_within_their_range),
      cmocka_unit_test(numbers_of_their_list),
      cmocka_unit_test(words_are_those_of_the_table),
      cmocka_unit_test(lists_are_of_words_of_the_table),
      cmocka_unit_test(names_reach_their_fields),
      cmocka_unit_test(layouts_find_their_settings),
      cmocka_unit_test(defaults_are_the_standards),
      cmocka_unit_test(rows_differ),
      cmocka_unit_test(neighbours_are_those_of_the_list),
      cmocka_unit_test(recipes_are_their_layouts),
      cmocka_unit_test(crossings_reach_every_value),
      cmocka_unit_test(misspelled_names_are_suggested),
      cmocka_unit_test(unknown_names_are_not_guessed),
      cmocka_unit_test(removed_names_say_their_substitute),
      cmocka_unit_test(thresholds_may_touch_but_not_overlap),
      cmocka_unit_test(values_are_checked_where_they_are_used),
      cmocka_unit_test(packed_columns_need_the_launch_that_packs_them),
      cmocka_unit_test(settings_are_applied),
      cmocka_unit_test(help_shows_every_option),
      cmocka_unit_test(targets_are_found_by_name),
      cmocka_unit_test(refused_targets_say_why),
      cmocka_unit_test(unknown_devices_have_the_figures_of_an_older_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
