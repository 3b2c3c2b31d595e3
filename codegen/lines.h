// SPDX-License-Identifier: Apache-2.0
/* Lines of a kernel's text, for passes that make another text of it line by line (checked.h, trace_text.h). */
#ifndef CBGEN_CODEGEN_LINES_H
#define CBGEN_CODEGEN_LINES_H

#include "base/text.h"

#include <string.h>

struct cb_line {
  const char *bytes;
  size_t length; /* with its end */
};

/* The first line of what is left of a text, which is not empty. */
static inline struct cb_line cb_line_at(const char *text) {
  const size_t length = strcspn(text, "\n");
  return (struct cb_line){text, length + (text[length] == '\n')};
}

/* NULL: the line does not have it. */
static inline const char *cb_line_find(struct cb_line line, const char *word) {
  return memmem(line.bytes, line.length, word, strlen(word));
}

static inline int cb_line_begins(struct cb_line line, const char *word) {
  return line.length >= strlen(word) && !memcmp(line.bytes, word, strlen(word));
}

/* Copies the line up to `to`, and takes that off it. */
static inline void cb_line_copy_until(struct cb_text *out, struct cb_line *line, const char *to) {
  const size_t length = (size_t)(to - line->bytes);
  cb_text_add_bytes(out, line->bytes, length);
  line->bytes = to;
  line->length -= length;
}

#endif
