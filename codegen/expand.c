// SPDX-License-Identifier: Apache-2.0
/* Template expansion: see expand.h. */
#include "codegen/expand.h"

#include "base/embedded.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 8, MAX_INDENT = 32 };

static void add_entry(struct cb_scope *scope, struct cb_scope_entry entry) {
  if (scope->count < CB_SCOPE_MAX) scope->entries[scope->count] = entry;
  scope->count++; /* too many: cb_scope_check reports it */
}

void cb_scope_hole(struct cb_scope *scope, const char *name, const char *text) {
  add_entry(scope, (struct cb_scope_entry){.name = name, .text = text});
}

void cb_scope_optional(struct cb_scope *scope, const char *name, const char *text) {
  add_entry(scope, (struct cb_scope_entry){.name = name, .text = text, .optional = 1});
}

void cb_scope_include(struct cb_scope *scope, const char *name, const char *piece) {
  add_entry(scope, (struct cb_scope_entry){.name = name, .text = piece, .include = 1});
}

enum cb_status cb_scope_check(const struct cb_scope *scope, const char *where, struct cb_diag *diag) {
  if (scope->count > CB_SCOPE_MAX)
    return cb_fail(diag, CB_ERR_INTERNAL, "%s has %d template values, more than %d", where, scope->count,
                   CB_SCOPE_MAX);
  for (int i = 0; i < scope->count; i++)
    if (!scope->entries[i].used && !scope->entries[i].optional)
      return cb_fail(diag, CB_ERR_INTERNAL, "%s gives '%s' a value that no hole uses", where,
                     scope->entries[i].name);
  return CB_OK;
}

static int is_name(const struct cb_scope_entry *entry, const char *name, size_t length) {
  return strlen(entry->name) == length && !memcmp(entry->name, name, length);
}

static int is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Whether a "//" stands before `at` on its line. */
static int in_comment(const char *text, const char *at) {
  for (; at > text && at[-1] != '\n'; at--)
    if (at[0] == '/' && at[-1] == '/') return 1;
  return 0;
}

int cb_has_word(const char *text, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
    if ((at == text || !is_word(at[-1])) && !is_word(at[length]) && !in_comment(text, at)) return 1;
  return 0;
}

/* One expansion in progress: where we are, for messages. */
struct place {
  const char *piece;
  int line, depth;
  char indent[MAX_INDENT + 1];
};

static enum cb_status expand_piece(struct cb_text *text, const char *piece, struct cb_scope *scope,
                                   const char *indent, int depth, struct cb_diag *diag);

static enum cb_status expand_include(struct cb_text *text, const char *name, size_t length,
                                     struct cb_scope *scope, const struct place *place, struct cb_diag *diag) {
  int found = 0;
  for (int i = 0; i < scope->count && i < CB_SCOPE_MAX; i++) {
    struct cb_scope_entry *entry = &scope->entries[i];
    if (!entry->include || !is_name(entry, name, length)) continue;
    entry->used = found = 1;
    if (!*entry->text) continue;
    const enum cb_status s = expand_piece(text, entry->text, scope, place->indent, place->depth + 1, diag);
    if (s) return s;
  }
  if (found) return CB_OK;
  return cb_fail(diag, CB_ERR_INTERNAL, "templates/%s:%d: nothing to include as '%.*s'", place->piece,
                 place->line, (int)length, name);
}

/* Text of one line with its holes filled. */
static enum cb_status expand_line(struct cb_text *text, const char *line, size_t length, struct cb_scope *scope,
                                  const struct place *place, struct cb_diag *diag) {
  const char *const end = line + length;
  while (line < end) {
    const char *open = memchr(line, '@', (size_t)(end - line));
    if (!open) break;
    const char *close = memchr(open + 1, '@', (size_t)(end - open - 1));
    if (!close)
      return cb_fail(diag, CB_ERR_INTERNAL, "templates/%s:%d: a hole is not closed", place->piece, place->line);
    cb_text_add_bytes(text, line, (size_t)(open - line));
    struct cb_scope_entry *value = NULL;
    for (int i = 0; i < scope->count && i < CB_SCOPE_MAX && !value; i++)
      if (!scope->entries[i].include && is_name(&scope->entries[i], open + 1, (size_t)(close - open - 1)))
        value = &scope->entries[i];
    if (!value)
      return cb_fail(diag, CB_ERR_INTERNAL, "templates/%s:%d: hole '%.*s' has no value", place->piece,
                     place->line, (int)(close - open - 1), open + 1);
    value->used = 1;
    cb_text_add_string(text, value->text);
    line = close + 1;
  }
  cb_text_add_bytes(text, line, (size_t)(end - line));
  return CB_OK;
}

static enum cb_status expand_piece(struct cb_text *text, const char *piece, struct cb_scope *scope,
                                   const char *indent, int depth, struct cb_diag *diag) {
  static const char directive[] = "@include ";
  char path[256];
  snprintf(path, sizeof path, "templates/%s", piece);
  const struct cb_embedded_file *file = cb_embedded_find(path);
  if (!file) return cb_fail(diag, CB_ERR_INTERNAL, "no template '%s'", path);
  if (depth > MAX_DEPTH) return cb_fail(diag, CB_ERR_INTERNAL, "%s includes itself", path);
  struct place place = {.piece = piece, .depth = depth};
  enum cb_status s = CB_OK;
  for (const char *line = file->text; *line && !s;) {
    const size_t length = strcspn(line, "\n");
    const size_t blanks = strspn(line, " ");
    place.line++;
    if (length >= 2 && !memcmp(line, "@#", 2)) {
      /* for the template's reader */
    } else if (!strncmp(line + blanks, directive, sizeof directive - 1)) {
      snprintf(place.indent, sizeof place.indent, "%s%.*s", indent, (int)blanks, line);
      const char *name = line + blanks + sizeof directive - 1;
      s = expand_include(text, name, strcspn(name, "@\n"), scope, &place, diag);
    } else {
      if (length) cb_text_add_string(text, indent);
      s = expand_line(text, line, length, scope, &place, diag);
      cb_text_add_string(text, "\n");
    }
    line += length + (line[length] == '\n');
  }
  return s;
}

enum cb_status cb_expand(struct cb_text *text, const char *piece, struct cb_scope *scope, struct cb_diag *diag) {
  const enum cb_status s = expand_piece(text, piece, scope, "", 0, diag);
  if (!s && text->failed) return cb_fail_memory(diag, "generated text", text->length);
  return s;
}
