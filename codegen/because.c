// SPDX-License-Identifier: Apache-2.0
/* Why a kernel is the one it is: see because.h. */
#include "codegen/because.h"

#include <string.h>

enum { WIDTH = 120 };

static int is_other(const struct cb_candidate *candidate, const struct cb_plan *plan) {
  return !*candidate->refusal && strcmp(candidate->recipe, plan->recipe) != 0;
}

/* Cheaper, or as cheap and earlier. */
static int comes_before(const struct cb_candidate *one, const struct cb_candidate *other) {
  return one->cost.ns != other->cost.ns ? one->cost.ns < other->cost.ns : one < other;
}

/* The cheapest of the others that comes behind `last`; NULL: none. */
static const struct cb_candidate *next_other(const struct cb_plan *plan, const struct cb_candidate *last) {
  const struct cb_candidate *next = NULL;
  for (int i = 0; i < plan->candidates_count; i++) {
    const struct cb_candidate *one = &plan->candidates[i];
    if (!is_other(one, plan) || (last && !comes_before(last, one))) continue;
    if (!next || comes_before(one, next)) next = one;
  }
  return next;
}

static void add_others(struct cb_text *text, const struct cb_plan *plan) {
  const char *separator = "; ";
  for (const struct cb_candidate *one = next_other(plan, NULL); one; one = next_other(plan, one), separator = ", ") {
    cb_text_add(text, "%s%s %.2f", separator, one->recipe, 1e-3 * (double)one->cost.ns);
  }
}

/* The others were not planned: the profile's time for the plan's recipe is what theirs compare with. */
static void add_profile(struct cb_text *text, const struct cb_plan *plan) {
  for (int i = 0; i < plan->candidates_count && plan->is_chosen_by_profile; i++)
    if (!strcmp(plan->candidates[i].recipe, plan->recipe))
      cb_text_add(text, ", %.2f by the profile that it was chosen by", 1e-3 * (double)plan->candidates[i].cost.ns);
}

/* A refusal's first part: what follows says what else the user may do. */
static void add_refusals(struct cb_text *text, const struct cb_plan *plan) {
  static const char not_tried[] = "not tried: ";
  for (int i = 0; i < plan->candidates_count; i++) {
    const struct cb_candidate *one = &plan->candidates[i];
    const char *why = one->refusal;
    if (!*why) continue;
    if (!strncmp(why, not_tried, sizeof not_tried - 1)) why += sizeof not_tried - 1;
    cb_text_add(text, "; %s: %.*s", one->recipe, (int)strcspn(why, ";,\n"), why);
  }
}

static int columns_of(const char *words, size_t length) {
  int columns = 0;
  for (size_t i = 0; i < length; i++) columns += ((unsigned char)words[i] & 0xc0) != 0x80; /* of UTF-8 */
  return columns;
}

/* Adds the words in lines of WIDTH columns. */
static void add_lines(struct cb_text *text, const char *words, const char *indent, int used) {
  for (const char *word = words; *word;) {
    const size_t length = strcspn(word, " ");
    const int columns = columns_of(word, length) + (word > words);
    if (word > words && used + columns > WIDTH) {
      cb_text_add(text, "\n%s", indent);
      used = (int)strlen(indent) - 1;
    } else if (word > words) {
      cb_text_add_string(text, " ");
    }
    cb_text_add_bytes(text, word, length);
    used += columns;
    word += length + (word[length] == ' ');
  }
}

void cb_because(struct cb_text *text, const struct cb_plan *plan, const char *indent, int used) {
  struct cb_text words = {0};
  const char *format = plan->candidates_count ? "%s %.2f us predicted" : "recipe %s was named; %.2f us predicted";
  cb_text_add(&words, format, plan->recipe, 1e-3 * (double)plan->cost.ns);
  add_profile(&words, plan);
  add_others(&words, plan);
  add_refusals(&words, plan);
  add_lines(text, cb_text_string(&words), indent, used);
  text->failed |= words.failed;
  cb_text_release(&words);
}
