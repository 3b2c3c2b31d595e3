// SPDX-License-Identifier: Apache-2.0
/* The table of options: every row set to all it accepts and refused all around it, nearest names, the rules
 * between options, help; and the table of targets. */
#include "tests/support.h"

#include "analysis/options.h"
#include "analysis/plan/recipe.h"
#include "analysis/target.h"

#include <ctype.h>

static int64_t field_of(const struct cb_options *options, const struct cb_option *option) {
  int64_t value;
  memcpy(&value, (const char *)options + option->offset, sizeof value);
  return value;
}

static void assert_number(const struct cb_option *option, int64_t number) {
  struct cb_options options;
  struct cb_diag diag = {0};
  char text[32];
  cb_options_default(&options);
  snprintf(text, sizeof text, "%lld", (long long)number);
  assert_ok(cb_options_set(&options, option->name, text, &diag));
  assert_int_equal(field_of(&options, option), number);
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

static void numbers_within_their_range(void **state) {
  (void)state;
  static const char *const nonsense[] = {"", "x", "1x", "0x10", "1.5", "--1", "99999999999999999999", "-1"};
  int numbers = 0;
  for (const struct cb_option *option = cb_option_table; option->name; option++) {
    if (option->text || option->words) continue;
    char text[32], range[64];
    numbers++;
    assert_true(option->least >= 0); /* so that -1 is refused */
    snprintf(range, sizeof range, "from %lld to %lld", (long long)option->least, (long long)option->most);
    assert_number(option, option->least);
    assert_number(option, option->most);
    assert_number(option, option->standard);
    snprintf(text, sizeof text, "%lld", (long long)option->most + 1);
    assert_refused(option->name, text, range);
    snprintf(text, sizeof text, "%lld", (long long)option->least - 1);
    assert_refused(option->name, text, range);
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++)
      assert_refused(option->name, nonsense[i], range);
  }
  assert_true(numbers >= 9);
}

static void words_are_those_of_the_table(void **state) {
  (void)state;
  int choices = 0;
  for (const struct cb_option *option = cb_option_table; option->name; option++) {
    if (!option->words) continue;
    int64_t value = option->least;
    choices++;
    for (int i = 0; option->words[i]; i++, value++) {
      struct cb_options options;
      struct cb_diag diag = {0};
      cb_options_default(&options);
      assert_ok(cb_options_set(&options, option->name, option->words[i], &diag));
      assert_int_equal(field_of(&options, option), value);
      assert_refused(option->name, "nonsense", option->words[i]); /* every word is offered */
    }
    assert_int_equal(value - 1, option->most);
    assert_refused(option->name, "", "it takes");
  }
  assert_true(choices >= 6);
}

/* By name, so that a row that points to another field is noticed. */
static void names_reach_their_fields(void **state) {
  (void)state;
  struct cb_options options;
  set_options(&options,
              "type=f32 form=add atomics=on recipe=cb-long long-row=77 aggregate=off th0=99 super-sparse=9 "
              "th1=11 th2=222 coo-gain=44 intra=on balance=heap team=4 unit-budget=555 bake-limit=666");
  assert_true(options.type == CB_F32 && options.form == CB_FORM_ADD && options.atomics == CB_ON);
  assert_string_equal(options.recipe, "cb-long");
  assert_true(options.long_row == 77 && options.aggregate == CB_OFF && options.th0_percent == 99);
  assert_true(options.super_sparse == 9 && options.th1 == 11 && options.th2 == 222 &&
              options.coo_gain == 44);
  assert_true(options.intra == CB_ON && options.balance == CB_BALANCE_HEAP && options.team == 4);
  assert_true(options.unit_budget == 555 && options.bake_limit == 666);
}

static void defaults_are_the_standards(void **state) {
  (void)state;
  struct cb_options options;
  struct cb_diag diag = {0};
  memset(&options, 0x5a, sizeof options);
  cb_options_default(&options);
  assert_ok(cb_options_check(&options, &diag));
  assert_non_null(options.recipe);
  for (const struct cb_option *option = cb_option_table; option->name; option++) {
    if (option->text) continue;
    assert_int_equal(field_of(&options, option), option->standard);
    assert_true(option->least <= option->standard && option->standard <= option->most);
  }
  /* what the paper says, or the plan assumes */
  assert_true(options.type == CB_F64 && options.form == CB_FORM_AXPBY && options.atomics == CB_OFF);
  assert_true(options.th0_percent == 15 && options.super_sparse == 32);
  assert_true(options.th1 == 128 && options.coo_gain == 40); /* more than the paper's 32, but only where it pays */
}

static void rows_differ(void **state) {
  (void)state;
  for (const struct cb_option *a = cb_option_table; a->name; a++) {
    assert_true(*a->help && strlen(a->name) > 0 && a->offset < sizeof(struct cb_options));
    for (const struct cb_option *b = a + 1; b->name; b++)
      assert_true(strcmp(a->name, b->name) && a->offset != b->offset);
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

static void counts_that_a_range_cannot_say(void **state) {
  (void)state;
  static const int teams[] = {0, 1, 2, 4, 8};
  for (int team = 0, i = 0; team <= 8; team++) {
    char settings[24];
    const int fine = team == teams[i];
    snprintf(settings, sizeof settings, "team=%d", team);
    assert_check(settings, fine ? NULL : "'team' cannot be");
    i += fine;
  }
  assert_check("unit-budget=0", NULL);
  assert_check("unit-budget=15", "'unit-budget' cannot be 15");
  assert_check("unit-budget=16", NULL);
  struct cb_options options;
  struct cb_diag diag = {0};
  cb_options_default(&options);
  options.recipe = NULL;
  assert_int_equal(cb_options_check(&options, &diag), CB_ERR_ARGUMENT);
  assert_non_null(strstr(diag.message, "'recipe'"));
}

static void help_shows_every_option(void **state) {
  (void)state;
  struct cb_text text = {0};
  struct cb_options options;
  cb_options_default(&options);
  cb_options_help(&text);
  assert_false(text.failed);
  const char *line = cb_text_string(&text);
  for (const struct cb_option *option = cb_option_table; option->name; option++) {
    char start[64], standard[64];
    const char *end = strchr(line, '\n');
    assert_non_null(end);
    snprintf(start, sizeof start, "  --%s=", option->name);
    if (option->text)
      snprintf(standard, sizeof standard, "(%s)", options.recipe);
    else if (option->words)
      snprintf(standard, sizeof standard, "(%s)", option->words[option->standard - option->least]);
    else
      snprintf(standard, sizeof standard, "(%lld)", (long long)option->standard);
    assert_memory_equal(line, start, strlen(start));
    assert_memory_equal(end - strlen(standard), standard, strlen(standard));
    const char *help = strstr(line, option->help);
    assert_true(help && help < end);
    line = end + 1;
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
      cmocka_unit_test(words_are_those_of_the_table),
      cmocka_unit_test(names_reach_their_fields),
      cmocka_unit_test(defaults_are_the_standards),
      cmocka_unit_test(rows_differ),
      cmocka_unit_test(misspelled_names_are_suggested),
      cmocka_unit_test(unknown_names_are_not_guessed),
      cmocka_unit_test(removed_names_say_their_substitute),
      cmocka_unit_test(thresholds_may_touch_but_not_overlap),
      cmocka_unit_test(counts_that_a_range_cannot_say),
      cmocka_unit_test(help_shows_every_option),
      cmocka_unit_test(targets_are_found_by_name),
      cmocka_unit_test(refused_targets_say_why),
      cmocka_unit_test(unknown_devices_have_the_figures_of_an_older_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
