// SPDX-License-Identifier: Apache-2.0
/* Checked JSON: see json.h. */
#include "base/json.h"

#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static struct cb_json noted(json_t *json, int *failed) {
  if (!json) *failed = 1;
  return (struct cb_json){json, failed};
}

struct cb_json cb_json_object(int *failed) { return noted(json_object(), failed); }
struct cb_json cb_json_array(int *failed) { return noted(json_array(), failed); }

void cb_json_set(struct cb_json object, const char *key, json_t *value) {
  if (json_object_set_new(object.json, key, value)) *object.failed = 1;
}

void cb_json_append(struct cb_json array, json_t *value) {
  if (json_array_append_new(array.json, value)) *array.failed = 1;
}

void cb_json_set_integer(struct cb_json object, const char *key, int64_t value) {
  cb_json_set(object, key, json_integer(value));
}

void cb_json_set_real(struct cb_json object, const char *key, double value) {
  cb_json_set(object, key, isfinite(value) ? json_real(value) : json_null());
}

void cb_json_set_flag(struct cb_json object, const char *key, int value) {
  cb_json_set(object, key, json_boolean(value));
}

void cb_json_set_text(struct cb_json object, const char *key, const char *value) {
  cb_json_set(object, key, cb_json_text(value));
}

json_t *cb_json_text(const char *value) {
  json_t *json = json_string(value);
  if (json) return json;
  const size_t length = strlen(value);
  char *ascii = cb_alloc(length + 1, 1);
  if (!ascii) return NULL;
  for (size_t i = 0; i <= length; i++) ascii[i] = (char)((unsigned char)value[i] < 128 ? value[i] : '?');
  json = json_string(ascii);
  cb_free(ascii);
  return json;
}

static int append(const char *bytes, size_t length, void *text) {
  cb_text_add_bytes(text, bytes, length);
  return ((const struct cb_text *)text)->failed ? -1 : 0;
}

/* Not through json_dumps: jansson does not look whether its buffer had room for a key. This text remembers. */
enum cb_status cb_json_write(struct cb_text *text, struct cb_json root, size_t flags, const char *what,
                             struct cb_diag *diag) {
  const int written = !*root.failed && !json_dump_callback(root.json, append, text, flags) && !text->failed;
  json_decref(root.json);
  if (written) return CB_OK;
  cb_text_release(text);
  text->failed = 1;
  return cb_fail_memory(diag, what, 0);
}

/* ---- line by line */

enum { INDENT = 2, DEEPEST = 16 };
static const char comma_and_indent[] = ",\n                                ";
_Static_assert(sizeof comma_and_indent == 1 + 2 + INDENT * DEEPEST, "indents of all depths");

/* By one copy, as a rule: every plan is written, to be hashed. */
static void new_line(struct cb_json_lines *lines, int has_comma) {
  const int depth = lines->depth < DEEPEST ? lines->depth : DEEPEST;
  cb_text_add_bytes(lines->text, comma_and_indent + !has_comma, (size_t)(has_comma + 1 + INDENT * depth));
  for (int i = DEEPEST; i < lines->depth; i++) cb_text_add_bytes(lines->text, "  ", INDENT);
}

static void begin_line(struct cb_json_lines *lines, const char *key) {
  if (lines->depth) new_line(lines, lines->has_member);
  lines->has_member = 1;
  if (!key) return;
  cb_text_add_bytes(lines->text, "\"", 1);
  cb_text_add_string(lines->text, key);
  cb_text_add_bytes(lines->text, "\": ", 3);
}

void cb_json_begin(struct cb_json_lines *lines, const char *key, char bracket) {
  begin_line(lines, key);
  cb_text_add_bytes(lines->text, &bracket, 1);
  lines->depth++;
  lines->has_member = 0;
}

void cb_json_end(struct cb_json_lines *lines, char bracket) {
  const int is_empty = !lines->has_member;
  lines->depth--;
  lines->has_member = 0;
  if (!is_empty) new_line(lines, 0);
  cb_text_add_bytes(lines->text, &bracket, 1);
  lines->has_member = 1;
}

void cb_json_line_integer(struct cb_json_lines *lines, const char *key, int64_t value) {
  char digits[24], *at = digits + sizeof digits;
  uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
  do *--at = (char)('0' + left % 10);
  while (left /= 10);
  if (value < 0) *--at = '-';
  begin_line(lines, key);
  cb_text_add_bytes(lines->text, at, (size_t)(digits + sizeof digits - at));
}

void cb_json_line_flag(struct cb_json_lines *lines, const char *key, int value) {
  begin_line(lines, key);
  cb_text_add_string(lines->text, value ? "true" : "false");
}

/* Whether the string stands in JSON as it is. */
static int is_plain(const char *value) {
  for (; *value; value++)
    if ((unsigned char)*value < ' ' || (unsigned char)*value > '~' || *value == '"' || *value == '\\') return 0;
  return 1;
}

static int add_strange(struct cb_text *text, const char *value) {
  json_t *json = cb_json_text(value);
  const int good = json && !json_dump_callback(json, append, text, JSON_ENCODE_ANY);
  json_decref(json);
  return good;
}

void cb_json_line_text(struct cb_json_lines *lines, const char *key, const char *value) {
  begin_line(lines, key);
  if (!is_plain(value)) {
    if (!add_strange(lines->text, value)) lines->text->failed = 1;
    return;
  }
  cb_text_add_bytes(lines->text, "\"", 1);
  cb_text_add_string(lines->text, value);
  cb_text_add_bytes(lines->text, "\"", 1);
}

/* ---- reading */

/* No token of the document is longer: none goes from one quote that no backslash precedes to behind the next. */
static size_t longest_token(const char *bytes, size_t length) {
  size_t longest = 0, begin = 0;
  for (size_t i = 0; i <= length; i++) {
    if (i < length && (bytes[i] != '"' || (i && bytes[i - 1] == '\\'))) continue;
    if (i + 1 - begin > longest) longest = i + 1 - begin;
    begin = i;
  }
  return longest;
}

/* jansson does not look whether the buffer of the token that it reads had room for one more byte: it goes on without
 * that, or beyond the buffer's end. So the document becomes the second element of an array, whose first is a string as
 * long as makes the buffer large enough for all tokens; whether that one is whole can be seen. The buffer grows to 32,
 * 64, … bytes; no length here has it grow for the closing quote. */
static enum cb_status read_padded(json_t **array, size_t padding, const char *bytes, size_t length,
                                  struct cb_diag *diag) {
  json_error_t error = {0};
  char *text = cb_alloc(padding + length + 5, 1), *end = text;
  if (!text) return cb_fail_memory(diag, "JSON", length);
  *end++ = '[';
  *end++ = '"';
  end = (char *)memset(end, '-', padding) + padding;
  *end++ = '"';
  *end++ = ',';
  end = (char *)memcpy(end, bytes, length) + length;
  *end++ = ']';
  errno = 0;
  *array = json_loadb(text, (size_t)(end - text), JSON_REJECT_DUPLICATES, &error);
  const int no_memory =
      *array ? json_string_length(json_array_get(*array, 0)) != padding : errno == ENOMEM; /* the reason is another */
  cb_free(text);
  if (no_memory) return cb_fail_memory(diag, "JSON", length);
  const json_t *document = json_array_get(*array, 1);
  if (json_array_size(*array) == 2 && (json_is_object(document) || json_is_array(document))) return CB_OK;
  return cb_fail(diag, CB_ERR_FORMAT, "line %d: %.160s", *array ? 1 : error.line,
                 *array ? "neither an object nor an array" : error.text);
}

enum cb_status cb_json_read(json_t **root, const char *bytes, size_t length, struct cb_diag *diag) {
  const int before = errno;
  const size_t longest = longest_token(bytes, length);
  size_t room = 32;
  json_t *array = NULL;
  while (room < longest + 2) room *= 2;
  const enum cb_status s = read_padded(&array, room - 3, bytes, length, diag);
  *root = s ? NULL : json_incref(json_array_get(array, 1));
  json_decref(array);
  errno = before;
  return s;
}
