// SPDX-License-Identifier: Apache-2.0
/* A growing text buffer that fails stickily: after the first failed growth every append is a no-op, and one
 * check of `failed` at the end suffices.
 *
 *   struct cb_text text = {0};
 *   cb_text_add(&text, "(%s", name);
 *   if (text.failed) …
 *   cb_text_release(&text);
 */
#ifndef CBGEN_BASE_TEXT_H
#define CBGEN_BASE_TEXT_H

#include <stddef.h>

struct cb_text {
  char *bytes;   /* NUL-terminated once anything was appended; NULL before */
  size_t length; /* without the NUL */
  size_t capacity;
  int failed;
};

void cb_text_add(struct cb_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cb_text_add_bytes(struct cb_text *text, const char *bytes, size_t length);
void cb_text_add_string(struct cb_text *text, const char *string);

/* The contents as a C string, "" when empty. Stays owned by `text`. */
const char *cb_text_string(const struct cb_text *text);

/* Hands the block to the caller (cb_free) and empties `text`; NULL if anything failed. */
char *cb_text_detach(struct cb_text *text);

void cb_text_release(struct cb_text *text);

/* Whether names have the character: of C, and of CUDA; in every locale. */
static inline int cb_is_name(char c) {
  return ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

#endif
