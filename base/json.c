// SPDX-License-Identifier: Apache-2.0
/* Checked JSON: see json.h. */
#include "base/json.h"

#include "base/memory.h"

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
