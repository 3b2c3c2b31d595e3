// SPDX-License-Identifier: Apache-2.0
/* HTML from templates: see html.h. */
#include "tool/html.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- escaping */

/* Bytes of the UTF-8 character at `at`; 0: there is none. */
static size_t character_length(const unsigned char *at, size_t length) {
  static const struct {
    unsigned char mask, lead;
    size_t bytes;
    uint32_t least;
  } forms[] = {{0x80, 0x00, 1, 0}, {0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if ((*at & forms[i].mask) != forms[i].lead) continue;
    uint32_t code = *at & (unsigned char)~forms[i].mask;
    if (forms[i].bytes > length) return 0;
    for (size_t k = 1; k < forms[i].bytes; k++) {
      if ((at[k] & 0xc0) != 0x80) return 0;
      code = code << 6 | (at[k] & 0x3f);
    }
    return code < forms[i].least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : forms[i].bytes;
  }
  return 0;
}

/* What a character of ASCII becomes; NULL: itself. */
static const char *replacement(unsigned char c) {
  static const char unknown[] = "\xef\xbf\xbd"; /* U+FFFD */
  switch (c) {
  case '&':
    return "&amp;";
  case '<':
    return "&lt;";
  case '>':
    return "&gt;";
  case '"':
    return "&quot;";
  case '\'':
    return "&#39;";
  default:
    return (c < ' ' && c != '\n' && c != '\t') || c == 127 ? unknown : NULL;
  }
}

void cb_html_escape(struct cb_text *text, const char *bytes, size_t length) {
  size_t plain = 0; /* bytes that stand for themselves, not yet appended */
  for (size_t i = 0; i < length;) {
    const size_t size = character_length((const unsigned char *)bytes + i, length - i);
    const char *instead = size == 0 ? replacement(127) : size == 1 ? replacement((unsigned char)bytes[i]) : NULL;
    if (!instead) {
      plain += size;
      i += size;
      continue;
    }
    cb_text_add_bytes(text, bytes + i - plain, plain);
    cb_text_add_string(text, instead);
    plain = 0;
    i += size ? size : 1;
  }
  cb_text_add_bytes(text, bytes + length - plain, plain);
}

/* ---- pieces */

void cb_html_set(struct cb_html *html, const char *name, const char *format, ...) {
  struct cb_text escaped = {0};
  char words[4096], *all = words;
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(words, sizeof words, format, arguments);
  va_end(arguments);
  if (length >= (int)sizeof words) {
    all = cb_arena_alloc(&html->values, (size_t)length + 1, 1);
    va_start(arguments, format);
    if (all) vsnprintf(all, (size_t)length + 1, format, arguments);
    va_end(arguments);
  }
  if (all && length >= 0) cb_html_escape(&escaped, all, (size_t)length);
  html->values.failed |= escaped.failed;
  const char *kept = cb_arena_string(&html->values, cb_text_string(&escaped));
  cb_scope_placeholder(&html->scope, name, kept ? kept : "");
  cb_text_release(&escaped);
}

void cb_html_markup(struct cb_html *html, const char *name, const char *markup) {
  cb_scope_placeholder(&html->scope, name, markup);
}

void cb_html_has(struct cb_html *html, const char *section) {
  cb_scope_section(&html->scope, section);
}

void cb_html_add(struct cb_html *html, const char *definition) {
  if (!html->status)
    html->status = cb_expand_file_definition(&html->text, html->file, definition, &html->scope, html->diag);
  if (!html->status) html->status = cb_scope_check(&html->scope, definition, html->diag);
  if (!html->status && html->values.failed) html->status = cb_fail_memory(html->diag, "a page", html->text.length);
  html->scope.count = 0;
  cb_arena_release(&html->values);
}

void cb_html_add_inline(struct cb_html *html, const char *definition) {
  cb_html_add(html, definition);
  if (html->status || !html->text.length) return;
  html->text.bytes[--html->text.length] = 0;
}

const char *cb_html_take(const struct cb_html *from, struct cb_html *to) {
  if (from->status && !to->status) to->status = from->status;
  return cb_text_string(&from->text);
}

void cb_html_release(struct cb_html *html) {
  cb_text_release(&html->text);
  cb_arena_release(&html->values);
  html->scope.count = 0;
}
