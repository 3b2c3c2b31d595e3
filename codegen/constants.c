// SPDX-License-Identifier: Apache-2.0
/* Calls that always give the same number: see constants.h. What a call's arguments name is dropped with it, so for each
 * name the text must show another use. Names of types do not matter; constants (kName) and functions are looked for in
 * the whole text, all others where they are visible: in the block that holds their first mention. */
#include "codegen/constants.h"

#include <ctype.h>
#include <string.h>

/* Whether the identifier of `length` characters at `at` is a whole one, no member of something and in no comment. */
static int stands_alone(const char *text, const char *at, size_t length) {
  if (at > text && (cb_is_name(at[-1]) || at[-1] == '.')) return 0;
  if (cb_is_name(at[length])) return 0;
  for (const char *before = at; before > text && before[-1] != '\n'; before--)
    if (before[0] == '/' && before[-1] == '/') return 0;
  return 1;
}

/* The next mention in [from, end); NULL: none. */
static const char *next_mention(const char *text, const char *from, const char *end, const char *name, size_t length) {
  for (const char *at = from; (at = memmem(at, (size_t)(end - at), name, length)); at++)
    if (stands_alone(text, at, length)) return at;
  return NULL;
}

/* The next call of a function in [from, …); NULL: none. */
static const char *next_call(const char *text, const char *from, const char *function) {
  const size_t length = strlen(function);
  const char *const end = text + strlen(text);
  do from = next_mention(text, from, end, function, length);
  while (from && from[length] != '(' && from++);
  return from;
}

/* The start of the function that holds `at`, as the line of its head begins. */
static const char *function_around(const char *text, const char *at) {
  static const char plain[] = "\nCBGEN_DEVICE ", generic[] = "\ntemplate ";
  for (; at > text; at--)
    if (*at == '\n' && (!strncmp(at, plain, sizeof plain - 1) || !strncmp(at, generic, sizeof generic - 1))) break;
  return at;
}

static const char *end_of_block(const char *at) {
  for (int depth = 0; *at && depth >= 0; at++) depth += (*at == '{') - (*at == '}');
  return at;
}

/* Whether the block that holds `mention` is still open at `at`, behind it. */
static int is_visible(const char *mention, const char *at) {
  int depth = 0;
  for (; mention < at && depth >= 0; mention++) depth += (*mention == '{') - (*mention == '}');
  return depth >= 0;
}

/* Whether what is called `name` at `at` has a use beside its declaration, the first mention that is visible there. */
static int is_used_near(const char *text, const char *at, const char *name, size_t length) {
  const char *from = function_around(text, at);
  const char *first = next_mention(text, from, at, name, length);
  while (first && !is_visible(first, at)) first = next_mention(text, first + 1, at, name, length);
  const char *end = first ? strchr(from, '{') : NULL;
  if (!end) return 0;
  end = first < end ? end_of_block(end + 1) : end_of_block(first); /* a parameter's block is the body */
  return next_mention(text, first + length, end, name, length) != NULL;
}

static int is_type(const char *name, size_t length) {
  static const char *const types[] = {"int", "unsigned", "size_t", "index_t", "int64_t", "sum_t"};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strlen(types[i]) == length && !memcmp(types[i], name, length)) return 1;
  return 0;
}

/* Whether all names of the dropped arguments [from, end) are used elsewhere, seen from `at` in the new text. */
static int are_used(const char *text, const char *at, const char *from, const char *end) {
  for (const char *name = from; name < end; name++) {
    const int inside = name > from && (cb_is_name(name[-1]) || name[-1] == '.');
    if (!cb_is_name(*name) || inside || isdigit((unsigned char)*name)) continue;
    size_t length = 1;
    while (cb_is_name(name[length])) length++;
    const int is_global = (*name == 'k' && isupper((unsigned char)name[1])) || name[length] == '(';
    const char *const whole = text + strlen(text);
    if (is_type(name, length)) continue;
    if (is_global ? !next_mention(text, text, whole, name, length) : !is_used_near(text, at, name, length)) return 0;
  }
  return 1;
}

/* Behind the parenthesis that closes the one at `open`. */
static const char *behind_arguments(const char *open) {
  int depth = 0;
  do depth += (*open == '(') - (*open == ')');
  while (*open++ && depth);
  return open;
}

/* The text with the constant in place of the calls. */
static void replace(struct cb_text *new, const char *text, const char *function, const char *constant) {
  const char *from = text, *call = text;
  while ((call = next_call(text, call, function))) {
    cb_text_add_bytes(new, from, (size_t)(call - from));
    cb_text_add_string(new, constant);
    from = call = behind_arguments(call + strlen(function));
  }
  cb_text_add_string(new, from);
}

/* Whether every call in `old` has arguments whose names are used in `new` without it. */
static int leaves_all_used(const char *old, const char *new, const char *function, const char *constant) {
  const char *const new_end = new + strlen(new), *at = new;
  for (const char *call = old; (call = next_call(old, call, function));) {
    const char *const arguments = call + strlen(function);
    at = next_mention(new, at, new_end, constant, strlen(constant));
    call = behind_arguments(arguments);
    if (!at || !are_used(new, at, arguments, call)) return 0;
    at += strlen(constant);
  }
  return 1;
}

int cb_constant_instead(struct cb_text *text, const char *function, const char *constant) {
  struct cb_text new = {0};
  replace(&new, cb_text_string(text), function, constant);
  const int good = !new.failed && leaves_all_used(cb_text_string(text), cb_text_string(&new), function, constant);
  if (good) {
    cb_text_release(text);
    *text = new;
  } else {
    text->failed |= new.failed; /* a text that only lacks a constant for want of memory would be another kernel */
    cb_text_release(&new);
  }
  return good;
}

void cb_word_instead(struct cb_text *text, const char *word, const char *other) {
  const char *const old = cb_text_string(text), *const end = old + strlen(old), *from = old;
  const size_t length = strlen(word);
  struct cb_text new = {0};
  for (const char *at; (at = next_mention(old, from, end, word, length)); from = at + length) {
    cb_text_add_bytes(&new, from, (size_t)(at - from));
    cb_text_add_string(&new, other);
  }
  cb_text_add_string(&new, from);
  new.failed |= text->failed;
  cb_text_release(text);
  *text = new;
}
