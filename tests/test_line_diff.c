// SPDX-License-Identifier: Apache-2.0
/* Unified diffs: applied to the one text they give the other, they are as short as any, and what is bounded is. */
#include "tests/support.h"

#include "base/line_diff.h"
#include "tests/random.h"

enum { MOST = 24 };

/* Lines of one letter each. */
struct letters {
  int count;
  char at[MOST];
  char text[2 * MOST + 1];
};

static struct letters letters_of(uint64_t *seed) {
  struct letters letters = {.count = (int)(draw(seed) >> 33) % MOST};
  const int alphabet = 1 + (int)(draw(seed) >> 33) % 4;
  for (int i = 0; i < letters.count; i++) {
    letters.at[i] = (char)('a' + (int)(draw(seed) >> 33) % alphabet);
    letters.text[2 * i] = letters.at[i];
    letters.text[2 * i + 1] = '\n';
  }
  return letters;
}

/* The length of the longest common subsequence, by the textbook's table. */
static int longest_common(const struct letters *a, const struct letters *b) {
  int table[MOST + 1][MOST + 1] = {{0}};
  for (int i = a->count; i-- > 0;)
    for (int j = b->count; j-- > 0;) {
      const int below = table[i + 1][j], right = table[i][j + 1];
      table[i][j] = a->at[i] == b->at[j] ? 1 + table[i + 1][j + 1] : below > right ? below : right;
    }
  return table[0][0];
}

/* Applies the hunks to `a`. */
static void patch(char result[2 * MOST + 1], const struct letters *a, const char *hunks) {
  int from = 0, length = 0;
  const char *line = hunks;
  while (*line) {
    int first, lines, used = 0, other, others;
    assert_int_equal(sscanf(line, "@@ -%d,%d +%d,%d @@", &first, &lines, &other, &others), 4);
    const int start = lines ? first - 1 : first;
    while (from < start) length += sprintf(result + length, "%c\n", a->at[from++]);
    assert_int_equal(length / 2, others ? other - 1 : other);
    for (line = strchr(line, '\n') + 1; *line && *line != '@'; line = strchr(line, '\n') + 1) {
      if (*line != '+') assert_int_equal(line[1], a->at[from++]);
      if (*line != '-') length += sprintf(result + length, "%c\n", line[1]);
      used += *line != '+';
      others -= *line != '-';
    }
    assert_int_equal(used, lines);
    assert_int_equal(others, 0);
  }
  while (from < a->count) length += sprintf(result + length, "%c\n", a->at[from++]);
  result[length] = 0;
}

static void hunks_give_the_other_text_and_are_short(void **state) {
  (void)state;
  uint64_t seed = 5;
  for (int round = 0; round < 3000; round++) {
    const struct letters a = letters_of(&seed), b = letters_of(&seed);
    struct cb_text text = {0};
    struct cb_line_diff found;
    struct cb_diag diag = {0};
    char patched[2 * MOST + 1];
    assert_ok(cb_line_diff(&text, &found, a.text, strlen(a.text), b.text, strlen(b.text), &diag));
    patch(patched, &a, cb_text_string(&text));
    assert_string_equal(patched, b.text);
    const int common = longest_common(&a, &b);
    assert_int_equal(found.removed, a.count - common);
    assert_int_equal(found.added, b.count - common);
    assert_false(found.is_cut);
    assert_int_equal(!text.length, !found.removed && !found.added);
    cb_text_release(&text);
  }
}

static char *numbers(int from, int count) {
  char *text = calloc((size_t)count + 1, 12);
  for (int i = 0, length = 0; i < count; i++) length += sprintf(text + length, "%d\n", from + i);
  return text;
}

static void too_many_differences_are_cut(void **state) {
  (void)state;
  for (int more = 0; more < 2; more++) {
    char *a = numbers(0, CB_LINE_DIFF_MOST / 2 + more), *b = numbers(1 << 20, CB_LINE_DIFF_MOST / 2);
    struct cb_text text = {0};
    struct cb_line_diff found;
    struct cb_diag diag = {0};
    assert_ok(cb_line_diff(&text, &found, a, strlen(a), b, strlen(b), &diag));
    assert_int_equal(found.is_cut, more);
    assert_int_equal(found.removed + found.added, CB_LINE_DIFF_MOST);
    assert_int_equal(strstr(cb_text_string(&text), "@@ more than 2000 lines differ: compared up to lines ") != NULL,
                     more);
    cb_text_release(&text);
    free(a);
    free(b);
  }
}

static void lines_are_made_fit_to_print(void **state) {
  (void)state;
  char line[1000];
  struct cb_text text = {0};
  struct cb_line_diff found;
  struct cb_diag diag = {0};
  memset(line, 'x', sizeof line);
  assert_ok(cb_line_diff(&text, &found, line, sizeof line, "\033[2J\0\n", 6, &diag));
  assert_int_equal(found.removed, 1);
  assert_int_equal(found.added, 1);
  const char *cut = strchr(cb_text_string(&text), 'x');
  assert_non_null(cut);
  assert_int_equal(strspn(cut, "x"), CB_LINE_DIFF_COLUMNS);
  assert_non_null(strstr(cut, "x…\n+\\x1b[2J\\x01\n"));
  cb_text_release(&text);
}

static void memory_that_fails_is_an_error(void **state) {
  (void)state;
  char *a = numbers(0, 40), *b = numbers(20, 40);
  enum cb_status s = CB_ERR_MEMORY;
  struct cb_diag diag = {0};
  int nth = 1;
  for (; s && nth < 100; nth++) {
    struct cb_text text = {0};
    struct cb_line_diff found;
    cb_memory_fail_at((uint64_t)nth, 0);
    s = cb_line_diff(&text, &found, a, strlen(a), b, strlen(b), &diag);
    cb_memory_fail_at(0, 0);
    if (s) assert_int_equal(s, CB_ERR_MEMORY);
    cb_text_release(&text);
  }
  assert_ok(s);
  assert_true(nth > 4);
  free(a);
  free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hunks_give_the_other_text_and_are_short),
      cmocka_unit_test(too_many_differences_are_cut),
      cmocka_unit_test(lines_are_made_fit_to_print),
      cmocka_unit_test(memory_that_fails_is_an_error),
  };
  return cmocka_run_group_tests_name("line diff", tests, NULL, NULL);
}
