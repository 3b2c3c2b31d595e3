// SPDX-License-Identifier: Apache-2.0
/* See option.h. */
#include "analysis/option.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const cb_auto_on_off[] = {"auto", "on", "off", NULL};
const int64_t cb_lanes_of_a_row[] = {0, 1, 2, 4, 8, 16, 32, CB_NO_NUMBER};
const int64_t cb_threads_of_a_block[] = {0, 256, 512, 1024, CB_NO_NUMBER};

static int count_words(const struct cb_option *option) {
  int count = 0;
  while (option->words[count]) count++;
  return count;
}

/* Whether `number` is a list of the option's words, none of them twice. */
static int is_list_of_words(const struct cb_option *option, int64_t number) {
  const int words = count_words(option);
  int i = 0, seen = 0;
  if (number < 0) return 0;
  for (int word; (word = cb_option_word(number, i)) >= 0; seen |= 1 << word, i++)
    if (word >= words || seen >> word & 1) return 0;
  return number >> CB_WORD_BITS * i == 0;
}

int cb_option_takes(const struct cb_option *option, int64_t number) {
  if (option->is_list) return is_list_of_words(option, number);
  if (option->words) return number >= option->least && number - option->least < count_words(option);
  if (!option->numbers)
    return (number >= option->least && number <= option->most) || (option->or_zero && number == 0);
  for (const int64_t *one = option->numbers; *one != CB_NO_NUMBER; one++)
    if (*one == number) return 1;
  return 0;
}

/* ---- what it takes, as a message says it */

static void add_words(struct cb_text *text, const struct cb_option *option) {
  if (option->is_list) cb_text_add_string(text, "'auto', or some of ");
  for (int i = 0; option->words[i]; i++) cb_text_add(text, "%s'%s'", i ? ", " : "", option->words[i]);
}

static void add_numbers(struct cb_text *text, const int64_t *numbers) {
  for (int i = 0; numbers[i] != CB_NO_NUMBER; i++) {
    const char *before = !i ? "" : numbers[i + 1] == CB_NO_NUMBER ? " or " : ", ";
    cb_text_add(text, "%s%lld", before, (long long)numbers[i]);
  }
}

static void add_accepted(struct cb_text *text, const struct cb_option *option) {
  if (option->words) add_words(text, option);
  else if (option->numbers) add_numbers(text, option->numbers);
  else
    cb_text_add(text, "%sa number from %lld to %lld", option->or_zero ? "0 or " : "", (long long)option->least,
                (long long)option->most);
}

static enum cb_status refuse(const struct cb_option *option, const char *value, struct cb_diag *diag) {
  struct cb_text accepted = {0};
  add_accepted(&accepted, option);
  cb_fail(diag, CB_ERR_ARGUMENT, "option '%s' cannot be '%s'; it takes %s", option->name, value,
          cb_text_string(&accepted));
  cb_text_release(&accepted);
  return CB_ERR_ARGUMENT;
}

/* ---- values */

static int read_word(int64_t *number, const struct cb_option *option, const char *text) {
  for (int i = 0; option->words[i]; i++) {
    if (strcmp(option->words[i], text)) continue;
    *number = option->least + i;
    return 1;
  }
  return 0;
}

/* Words with commas between them; a list that is too long takes a word twice. */
static int read_list(int64_t *number, const struct cb_option *option, const char *text) {
  *number = 0;
  if (!strcmp(text, "auto")) return 1;
  for (int i = 0; i < CB_MOST_WORDS; i++) {
    int word = 0;
    const size_t length = strcspn(text, ",");
    while (option->words[word] && (strlen(option->words[word]) != length || strncmp(option->words[word], text, length)))
      word++;
    if (!option->words[word]) return 0;
    *number |= (int64_t)(word + 1) << CB_WORD_BITS * i;
    if (!text[length]) return 1;
    text += length + 1;
  }
  return 0;
}

static int read_number(int64_t *number, const char *text) {
  char *end;
  errno = 0;
  *number = strtoll(text, &end, 10);
  return !errno && end != text && !*end;
}

enum cb_status cb_option_parse(int64_t *number, const struct cb_option *option, const char *text,
                               struct cb_diag *diag) {
  int64_t read;
  const int known = option->is_list ? read_list(&read, option, text)
                    : option->words ? read_word(&read, option, text)
                                    : read_number(&read, text);
  if (!known || !cb_option_takes(option, read)) return refuse(option, text, diag);
  *number = read;
  return CB_OK;
}

enum cb_status cb_option_check(const struct cb_option *option, int64_t number, struct cb_diag *diag) {
  char value[24];
  if (cb_option_takes(option, number)) return CB_OK;
  snprintf(value, sizeof value, "%lld", (long long)number);
  return refuse(option, value, diag);
}

static void print_list(struct cb_text *text, const struct cb_option *option, int64_t number) {
  if (!number) cb_text_add_string(text, "auto");
  for (int i = 0, word; (word = cb_option_word(number, i)) >= 0; i++)
    cb_text_add(text, "%s%s", i ? "," : "", option->words[word]);
}

void cb_option_print(struct cb_text *text, const struct cb_option *option, int64_t number) {
  if (!option->words || !cb_option_takes(option, number)) cb_text_add(text, "%lld", (long long)number);
  else if (option->is_list) print_list(text, option, number);
  else cb_text_add_string(text, option->words[number - option->least]);
}

int64_t cb_option_neighbour(const struct cb_option *option, int64_t number, int direction) {
  int64_t below = CB_NO_NUMBER;
  for (const int64_t *one = option->numbers; one && *one != CB_NO_NUMBER; one++) {
    if (direction > 0 && *one > number) return *one;
    if (*one > 0 && *one < number) below = *one;
  }
  return direction > 0 ? CB_NO_NUMBER : below;
}

/* ---- help */

static void add_values(struct cb_text *text, const struct cb_option *option) {
  if (option->is_text) cb_text_add_string(text, "NAME");
  else if (!option->words) cb_text_add_string(text, "N");
  else
    for (int i = 0; option->words[i]; i++)
      cb_text_add(text, "%s%s", i ? (option->is_list ? "," : "|") : "", option->words[i]);
}

void cb_option_help(struct cb_text *text, const struct cb_option *option) {
  struct cb_text left = {0};
  cb_text_add(&left, "--%s=", option->name);
  add_values(&left, option);
  cb_text_add(text, "  %-30s %s (", cb_text_string(&left), option->help);
  cb_text_release(&left);
  if (option->is_text) cb_text_add_string(text, "auto");
  else cb_option_print(text, option, option->standard);
  cb_text_add_string(text, ")\n");
}
