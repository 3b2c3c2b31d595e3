// SPDX-License-Identifier: Apache-2.0
/* Template expansion: see expand.h. */
#include "codegen/expand.h"

#include "base/embedded.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 8, MAX_NESTING = 8, MAX_INDENT = 32 };

static void add_entry(struct cb_scope *scope, struct cb_scope_entry entry) {
  entry.length = strlen(entry.name);
  if (scope->count < CB_SCOPE_MAX) scope->entries[scope->count] = entry;
  scope->count++; /* too many: cb_scope_check reports it */
}

void cb_scope_placeholder(struct cb_scope *scope, const char *name, const char *text) {
  add_entry(scope, (struct cb_scope_entry){.name = name, .text = text});
}

void cb_scope_optional(struct cb_scope *scope, const char *name, const char *text) {
  add_entry(scope, (struct cb_scope_entry){.name = name, .text = text, .optional = 1});
}

void cb_scope_section(struct cb_scope *scope, const char *name) {
  add_entry(scope, (struct cb_scope_entry){.name = name, .kind = CB_SCOPE_SECTION});
}

void cb_scope_optional_section(struct cb_scope *scope, const char *name) {
  add_entry(scope, (struct cb_scope_entry){.name = name, .kind = CB_SCOPE_SECTION, .optional = 1});
}

enum cb_status cb_scope_check(const struct cb_scope *scope, const char *where, struct cb_diag *diag) {
  if (scope->count > CB_SCOPE_MAX)
    return cb_fail(diag, CB_ERR_INTERNAL, "%s has %d template values, more than %d", where, scope->count,
                   CB_SCOPE_MAX);
  for (int i = 0; i < scope->count; i++) {
    const struct cb_scope_entry *entry = &scope->entries[i];
    if (entry->used || entry->optional) continue;
    if (entry->kind == CB_SCOPE_SECTION)
      return cb_fail(diag, CB_ERR_INTERNAL, "%s wants a section '%s' that its template does not have", where,
                     entry->name);
    return cb_fail(diag, CB_ERR_INTERNAL, "%s gives '%s' a value that no placeholder uses", where, entry->name);
  }
  return CB_OK;
}

static struct cb_scope_entry *find_entry(struct cb_scope *scope, enum cb_scope_kind kind, const char *name,
                                         size_t length) {
  for (int i = 0; i < scope->count && i < CB_SCOPE_MAX; i++) {
    struct cb_scope_entry *entry = &scope->entries[i];
    if (entry->kind == kind && entry->length == length && !memcmp(entry->name, name, length)) return entry;
  }
  return NULL;
}

/* "NAME" or "!NAME": whether the section is wanted. */
static int holds(struct cb_scope *scope, const char *condition, size_t length) {
  const int negated = length && *condition == '!';
  struct cb_scope_entry *entry =
      find_entry(scope, CB_SCOPE_SECTION, condition + negated, length - (size_t)negated);
  if (entry) entry->used = 1;
  return negated != (entry != NULL);
}

/* Whether a "//" stands before `at` on its line. */
static int in_comment(const char *text, const char *at) {
  for (; at > text && at[-1] != '\n'; at--)
    if (at[0] == '/' && at[-1] == '/') return 1;
  return 0;
}

int cb_has_word(const char *text, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
    if ((at == text || !cb_is_name(at[-1])) && !cb_is_name(at[length]) && !in_comment(text, at)) return 1;
  return 0;
}

/* ---- many words at once: each of the text's is looked up among them */

enum { PLACES = 4 * CB_MOST_SOUGHT };
_Static_assert((PLACES & (PLACES - 1)) == 0 && PLACES <= 1 << 16, "places are found by a mask");

struct wanted {
  const char *const *words;
  size_t lengths[CB_MOST_SOUGHT];
  int16_t at[PLACES]; /* the word's number and 1 */
  uint32_t begins[256]; /* by first character: a bit for each length of words that begin so, modulo 32 */
  uint8_t is_name[256];
};

static uint32_t mix(uint32_t hash, char c) { return hash * 31 + (unsigned char)c; }
static uint32_t place_of(uint32_t hash) { return (hash * 0x9e3779b1u >> 16) & (PLACES - 1); }

static void want(struct wanted *wanted, const char *const *words, int count) {
  *wanted = (struct wanted){.words = words};
  for (int c = 0; c < 256; c++) wanted->is_name[c] = (uint8_t)cb_is_name((char)c);
  for (int i = 0; i < count; i++) {
    uint32_t hash = 0;
    for (const char *at = words[i]; *at; at++) hash = mix(hash, *at);
    wanted->lengths[i] = strlen(words[i]);
    wanted->begins[(unsigned char)words[i][0]] |= UINT32_C(1) << wanted->lengths[i] % 32;
    uint32_t place = place_of(hash);
    while (wanted->at[place]) place = (place + 1) & (PLACES - 1);
    wanted->at[place] = (int16_t)(i + 1);
  }
}

/* Equal words have places one behind the other. Most words of a text are told by length and first character. */
static void mark_word(const struct wanted *wanted, const char *word, size_t length, int has[]) {
  uint32_t hash = 0;
  if (!(wanted->begins[(unsigned char)*word] >> length % 32 & 1)) return;
  for (size_t i = 0; i < length; i++) hash = mix(hash, word[i]);
  for (uint32_t place = place_of(hash); wanted->at[place]; place = (place + 1) & (PLACES - 1)) {
    const int i = wanted->at[place] - 1;
    if (wanted->lengths[i] == length && !memcmp(wanted->words[i], word, length)) has[i] = 1;
  }
}

void cb_has_words_within(const char *text, const char *end, const char *const *words, int count, int has[]) {
  struct wanted wanted;
  want(&wanted, words, count);
  memset(has, 0, (size_t)count * sizeof *has);
  while (text < end) {
    const char *const begin = text;
    while (text < end && wanted.is_name[(unsigned char)*text]) text++;
    if (text > begin) mark_word(&wanted, begin, (size_t)(text - begin), has);
    else if (text[0] != '/' || text + 1 == end || text[1] != '/') text++;
    else if (!(text = memchr(text, '\n', (size_t)(end - text)))) return;
  }
}

void cb_has_words(const char *text, const char *const *words, int count, int has[]) {
  cb_has_words_within(text, text + strlen(text), words, count, has);
}

/* One template file in expansion. */
struct expansion {
  struct cb_text *text;
  struct cb_scope *scope;
  struct cb_diag *diag;
  const struct cb_embedded_file *file;
  const char *indent; /* of every line */
  int depth;          /* of files and definitions that include each other */
  enum cb_status status;
};

static void fail_at(struct expansion *e, const char *at, const char *problem, const char *name, size_t length) {
  int line = 1;
  for (const char *before = e->file->text; before < at; before++) line += *before == '\n';
  if (!e->status)
    e->status = cb_fail(e->diag, CB_ERR_INTERNAL, "%s:%d: %s%.*s%s", e->file->name, line, problem, (int)length, name,
                        length ? "'" : "");
}

static const char *end_of_line(const char *line) { return strchrnul(line, '\n'); }

static const char *next_line(const char *line) {
  line = end_of_line(line);
  return line + (*line == '\n');
}

static int begins_with_mark(const char *line) {
  while (*line == ' ') line++;
  return *line == '@';
}

/* What a line is. *name is then what follows the directive's word. */
enum directive { NONE, SECTION, ELSE, END, DEFINE, INCLUDE };

static enum directive directive_of(const char *line, const char **name, size_t *length) {
  static const char *const words[] = {[SECTION] = "section", [ELSE] = "else", [END] = "end", [DEFINE] = "define",
                                      [INCLUDE] = "include"};
  while (*line == ' ') line++;
  if (*line++ != '@') return NONE;
  for (enum directive i = SECTION; i <= INCLUDE; i++) {
    const char *rest = line, *word = words[i];
    while (*word && *word == *rest) word++, rest++;
    if (*word || (*rest && *rest != '\n' && *rest != ' ')) continue;
    while (*rest == ' ') rest++;
    const char *end = rest;
    while (*end && *end != '\n' && *end != '@') end++;
    *name = rest;
    *length = (size_t)(end - rest);
    return i;
  }
  return NONE;
}

/* Conditions within a line: skipping[k] says whether what stands in the k-th of those that are open is left out. */
struct choices {
  int open, skipping[MAX_NESTING];
};

static int is_skipped(const struct choices *choices) {
  int skipped = 0;
  for (int i = 0; i < choices->open; i++) skipped |= choices->skipping[i];
  return skipped;
}

/* "if NAME", "else" or "end" between two @; 0 when it is none of them. */
static int choose(struct expansion *e, struct choices *choices, const char *word, size_t length) {
  if (length > 3 && !memcmp(word, "if ", 3)) {
    if (choices->open == MAX_NESTING) fail_at(e, word, "conditions are nested too deeply", "", 0);
    else choices->skipping[choices->open++] = !holds(e->scope, word + 3, length - 3);
    return 1;
  }
  const int other = length == 4 && !memcmp(word, "else", 4);
  if (!other && !(length == 3 && !memcmp(word, "end", 3))) return 0;
  if (!choices->open) fail_at(e, word, "no condition is open", "", 0);
  else if (other) choices->skipping[choices->open - 1] ^= 1;
  else choices->open--;
  return 1;
}

static void expand_placeholder(struct expansion *e, const char *name, size_t length) {
  struct cb_scope_entry *value = find_entry(e->scope, CB_SCOPE_VALUE, name, length);
  if (!value) {
    fail_at(e, name, "no value for placeholder '", name, length);
    return;
  }
  value->used = 1;
  cb_text_add_string(e->text, value->text);
}

/* One line with its placeholders filled; `active` 0: its conditions are looked at, but nothing is written. */
static void expand_line(struct expansion *e, const char *line, size_t length, int active) {
  const char *const end = line + length;
  struct choices choices = {0};
  if (active && length) cb_text_add_string(e->text, e->indent);
  while (!e->status) {
    const char *open = memchr(line, '@', (size_t)(end - line));
    const char *close = open ? memchr(open + 1, '@', (size_t)(end - open - 1)) : NULL;
    const int written = active && !is_skipped(&choices);
    if (open && !close) fail_at(e, line, "a placeholder is not closed", "", 0);
    if (written) cb_text_add_bytes(e->text, line, (size_t)((open ? open : end) - line));
    if (!open || !close) break;
    const size_t size = (size_t)(close - open - 1);
    if (!choose(e, &choices, open + 1, size) && written) expand_placeholder(e, open + 1, size);
    line = close + 1;
  }
  if (choices.open && !e->status) fail_at(e, line, "a condition is not closed", "", 0);
  if (active) cb_text_add_string(e->text, "\n");
}

static void expand_file(struct expansion *e, const struct cb_embedded_file *file, const char *from,
                        const char *indent);
static const char *expand_block(struct expansion *e, const char *line, int active);

/* The next line from `line` on that has a mark, or the end of the file. */
static const char *find_mark(const char *line) {
  const char *at = strchrnul(line, '@');
  while (*at && at > line && at[-1] != '\n') at--;
  return at;
}

/* The lines between "@define NAME" and its "@end" in a file; NULL when there is no such definition. */
static const char *find_definition(const struct cb_embedded_file *file, const char *wanted, size_t length) {
  for (const char *line = find_mark(file->text); *line; line = find_mark(next_line(line))) {
    const char *name;
    size_t size;
    if (directive_of(line, &name, &size) == DEFINE && size == length && !memcmp(name, wanted, length))
      return name + size + 1;
  }
  return NULL;
}

/* "@include NAME": a definition of this file or of shared.cu.in. */
static void expand_include(struct expansion *e, const char *line, const char *name, size_t length) {
  const struct cb_embedded_file *shared = cb_embedded_find("templates/shared.cu.in");
  const char *here = find_definition(e->file, name, length);
  const char *there = !here && shared ? find_definition(shared, name, length) : NULL;
  char indent[MAX_INDENT + 1];
  snprintf(indent, sizeof indent, "%s%.*s", e->indent, (int)strspn(line, " "), line);
  if (here || there) expand_file(e, here ? e->file : shared, here ? here : there, indent);
  else fail_at(e, line, "nothing to include as '", name, length);
}

/* "@section NAME" at `line`: the lines up to "@else" or "@end", or those up to "@end". Returns what follows. */
static const char *expand_section(struct expansion *e, const char *line, int active, int wanted) {
  const char *name, *begin = line;
  size_t length;
  line = expand_block(e, next_line(line), active && wanted);
  if (!e->status && directive_of(line, &name, &length) == ELSE)
    line = expand_block(e, next_line(line), active && !wanted);
  if (!e->status && directive_of(line, &name, &length) != END) fail_at(e, begin, "'@section' without '@end'", "", 0);
  return line;
}

/* Lines without a mark, which nearly all are. */
static void add_plain(struct expansion *e, const char *line, const char *end) {
  if (!*e->indent && end[-1] == '\n') {
    cb_text_add_bytes(e->text, line, (size_t)(end - line));
    return;
  }
  for (const char *next; line < end && !e->status; line = next) {
    next = next_line(line);
    expand_line(e, line, (size_t)(next - line) - (next[-1] == '\n'), 1);
  }
}

/* The lines from `line` on, up to the "@else" or "@end" that closes them, or the end of the file. Returns that line. */
static const char *expand_block(struct expansion *e, const char *line, int active) {
  while (*line && !e->status) {
    const char *name, *end = find_mark(line);
    size_t length;
    if (active && end > line) add_plain(e, line, end);
    line = end;
    if (!*line || e->status) break;
    if (!begins_with_mark(line)) {
      end = end_of_line(line);
      expand_line(e, line, (size_t)(end - line), active);
      line = end + (*end == '\n');
      continue;
    }
    if (!strncmp(line, "@#", 2)) { /* for the template's reader */
      line = next_line(line);
      continue;
    }
    const enum directive directive = directive_of(line, &name, &length);
    if (directive == ELSE || directive == END) break;
    if (directive == SECTION) line = expand_section(e, line, active, holds(e->scope, name, length));
    else if (directive == DEFINE) line = expand_section(e, line, 0, 0);
    else if (directive == NONE) expand_line(e, line, (size_t)(end_of_line(line) - line), active);
    else if (active) expand_include(e, line, name, length);
    line = next_line(line);
  }
  return line;
}

/* A template, or the definition of it that starts at `from`. */
static void expand_file(struct expansion *e, const struct cb_embedded_file *file, const char *from,
                        const char *indent) {
  struct expansion inner = *e;
  inner.file = file;
  inner.indent = indent;
  inner.depth++;
  if (inner.depth > MAX_DEPTH) inner.status = cb_fail(e->diag, CB_ERR_INTERNAL, "%s includes itself", file->name);
  if (!inner.status) {
    const char *rest = expand_block(&inner, from ? from : file->text, 1);
    if (!from && *rest) fail_at(&inner, rest, "no section is open", "", 0);
  }
  e->status = inner.status;
}

static enum cb_status expand(struct cb_text *text, const struct cb_embedded_file *file, const char *from,
                             struct cb_scope *scope, struct cb_diag *diag) {
  struct expansion e = {.text = text, .scope = scope, .diag = diag};
  expand_file(&e, file, from, "");
  if (!e.status && text->failed) return cb_fail_memory(diag, "generated text", text->length);
  return e.status;
}

enum cb_status cb_expand_file(struct cb_text *text, const struct cb_embedded_file *file, struct cb_scope *scope,
                              struct cb_diag *diag) {
  return expand(text, file, NULL, scope, diag);
}

static enum cb_status find_template(const struct cb_embedded_file **file, const char *name, struct cb_diag *diag) {
  char path[256];
  snprintf(path, sizeof path, "templates/%s.cu.in", name);
  *file = cb_embedded_find(path);
  return *file ? CB_OK : cb_fail(diag, CB_ERR_INTERNAL, "no template '%s'", path);
}

enum cb_status cb_expand(struct cb_text *text, const char *name, struct cb_scope *scope, struct cb_diag *diag) {
  const struct cb_embedded_file *file;
  const enum cb_status s = find_template(&file, name, diag);
  return s ? s : expand(text, file, NULL, scope, diag);
}

enum cb_status cb_expand_definition(struct cb_text *text, const char *name, const char *definition,
                                    struct cb_scope *scope, struct cb_diag *diag) {
  const struct cb_embedded_file *file;
  const enum cb_status s = find_template(&file, name, diag);
  return s ? s : cb_expand_file_definition(text, file, definition, scope, diag);
}

enum cb_status cb_expand_file_definition(struct cb_text *text, const struct cb_embedded_file *file,
                                         const char *definition, struct cb_scope *scope, struct cb_diag *diag) {
  const char *from = find_definition(file, definition, strlen(definition));
  if (!from) return cb_fail(diag, CB_ERR_INTERNAL, "%s does not define '%s'", file->name, definition);
  return expand(text, file, from, scope, diag);
}
