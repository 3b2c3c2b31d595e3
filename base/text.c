// SPDX-License-Identifier: Apache-2.0
/* The growing text buffer: see text.h. */
#include "base/text.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Room for `more` bytes and a NUL; 0 when the buffer has failed. */
static int reserve(struct cb_text *text, size_t more) {
  if (text->failed) return 0;
  if (text->capacity - text->length > more) return 1;
  size_t capacity = text->capacity ? text->capacity * 2 : 256;
  while (capacity - text->length <= more) capacity *= 2;
  char *bytes = cb_realloc(text->bytes, capacity, 1);
  if (!bytes) {
    text->failed = 1;
    return 0;
  }
  text->bytes = bytes;
  text->capacity = capacity;
  return 1;
}

void cb_text_add_bytes(struct cb_text *text, const char *bytes, size_t length) {
  if (!reserve(text, length)) return;
  memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
  text->bytes[text->length] = 0;
}

void cb_text_add_string(struct cb_text *text, const char *string) {
  cb_text_add_bytes(text, string, strlen(string));
}

/* Once more where there was not room enough. */
void cb_text_add(struct cb_text *text, const char *format, ...) {
  enum { USUAL = 128 };
  va_list args, again;
  if (!reserve(text, USUAL)) return;
  const size_t room = text->capacity - text->length;
  va_start(args, format);
  va_copy(again, args);
  const int length = vsnprintf(text->bytes + text->length, room, format, args);
  va_end(args);
  if (length >= 0 && (size_t)length >= room && reserve(text, (size_t)length))
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
  va_end(again);
  if (length < 0) text->failed = 1;
  if (text->failed) text->bytes[text->length] = 0;
  else text->length += (size_t)length;
}

const char *cb_text_string(const struct cb_text *text) { return text->bytes ? text->bytes : ""; }

char *cb_text_detach(struct cb_text *text) {
  char *bytes = NULL;
  if (reserve(text, 0)) {
    text->bytes[text->length] = 0;
    bytes = text->bytes;
    text->bytes = NULL;
  }
  cb_text_release(text);
  return bytes;
}

void cb_text_release(struct cb_text *text) {
  cb_free(text->bytes);
  *text = (struct cb_text){0};
}
