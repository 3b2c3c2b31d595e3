// SPDX-License-Identifier: Apache-2.0
/* Sections that a text uses: see cb_expand_used in expand.h. Every family's text asks for the prelude, so a template is
 * taken apart once in a process: into pieces, each with the sections that it uses. */
#include "codegen/expand.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { MOST_PIECES = 256, NONE = -1, WORDS = CB_MOST_SOUGHT / 64 };

/* A bit for each section of a template, by number. */
struct set {
  uint64_t bits[WORDS];
};

/* Lines that are in the text together: those of a section, or such as are in every text. */
struct piece {
  const char *begin, *end;
  int section; /* NONE: in every text */
  struct set uses;
};

/* A name may be that of several sections. */
struct taken_apart {
  const struct cb_embedded_file *file;
  int names_count, count;
  char room[CB_MOST_SOUGHT][32];
  const char *names[CB_MOST_SOUGHT];
  struct piece pieces[MOST_PIECES];
};

static const char *const templates[] = {"templates/prelude.cu.in", "templates/complex.cu.in",
                                        "templates/statements.cu.in"};
enum { TEMPLATES = sizeof templates / sizeof *templates };
static struct taken_apart taken[TEMPLATES];
static const char *failed_line; /* the first that is none of such a template; NULL: all is well */

/* ---- taking apart */

static void fail_at(const char *line) {
  if (!failed_line) failed_line = line;
}

/* The number of a section's name. */
static int number_of(struct taken_apart *apart, const char *name, size_t length) {
  for (int i = 0; i < apart->names_count; i++)
    if (strlen(apart->names[i]) == length && !memcmp(apart->names[i], name, length)) return i;
  if (!length || length >= sizeof apart->room[0] || apart->names_count == CB_MOST_SOUGHT) return NONE;
  char *own = memcpy(apart->room[apart->names_count], name, length);
  own[length] = 0;
  apart->names[apart->names_count] = own;
  return apart->names_count++;
}

/* A line without a mark: to the piece before, if that ends here and is of the same section, else to one of its own. */
static void add_line(struct taken_apart *apart, int section, const char *line, const char *end) {
  struct piece *last = apart->count ? &apart->pieces[apart->count - 1] : NULL;
  if (last && last->end == line && last->section == section) {
    last->end = end;
    return;
  }
  if (apart->count == MOST_PIECES) fail_at(line);
  else apart->pieces[apart->count++] = (struct piece){.begin = line, .end = end, .section = section};
}

static int begins_with(const char *line, const char *mark) { return !strncmp(line, mark, strlen(mark)); }

/* Sections do not nest, and there is nothing else that begins with a mark but what is for the template's reader. */
static void split(struct taken_apart *apart) {
  static const char begin[] = "@section ", end[] = "@end";
  int section = NONE;
  for (const char *line = apart->file->text, *next; *line; line = next) {
    const char *const last = strchrnul(line, '\n');
    next = last + (*last == '\n');
    if (begins_with(line, "@#")) continue;
    if (section == NONE && begins_with(line, begin)) {
      section = number_of(apart, line + sizeof begin - 1, (size_t)(last - line) - (sizeof begin - 1));
      if (section == NONE) fail_at(line);
    } else if (section != NONE && begins_with(line, end) && last == line + sizeof end - 1) {
      section = NONE;
    } else if (memchr(line, '@', (size_t)(last - line))) {
      fail_at(line);
    } else {
      add_line(apart, section, line, next);
    }
  }
  if (section != NONE) fail_at(apart->file->text);
}

/* The sections whose names occur in a text. */
static struct set find_uses(const struct taken_apart *apart, const char *text, const char *end) {
  struct set uses = {{0}};
  int has[CB_MOST_SOUGHT];
  cb_has_words_within(text, end, apart->names, apart->names_count, has);
  for (int i = 0; i < apart->names_count; i++) uses.bits[i / 64] |= (uint64_t)has[i] << i % 64;
  return uses;
}

static void take_apart(void) {
  for (int i = 0; i < TEMPLATES; i++) {
    struct taken_apart *apart = &taken[i];
    apart->file = cb_embedded_find(templates[i]);
    split(apart);
    for (int p = 0; p < apart->count; p++)
      apart->pieces[p].uses = find_uses(apart, apart->pieces[p].begin, apart->pieces[p].end);
  }
}

static enum cb_status find(const struct taken_apart **apart, const char *name, struct cb_diag *diag) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, take_apart);
  *apart = NULL;
  for (int i = 0; i < TEMPLATES; i++) {
    const char *own = templates[i] + strlen("templates/");
    if (begins_with(own, name) && own[strlen(name)] == '.') *apart = &taken[i];
  }
  if (!*apart) return cb_fail(diag, CB_ERR_INTERNAL, "'%s' is not taken apart", name);
  if (!failed_line) return CB_OK;
  return cb_fail(diag, CB_ERR_INTERNAL, "a template of sections has a line that is none of theirs: '%.*s'",
                 (int)strcspn(failed_line, "\n"), failed_line);
}

/* ---- choosing */

static int is_in(const struct piece *piece, const struct set *chosen) {
  return piece->section == NONE || chosen->bits[piece->section / 64] >> piece->section % 64 & 1;
}

/* Adds what chosen pieces use. Returns whether that makes more. */
static int choose_more(struct set *chosen, const struct taken_apart *apart) {
  const struct set before = *chosen;
  for (int p = 0; p < apart->count; p++)
    for (int w = 0; w < WORDS && is_in(&apart->pieces[p], chosen); w++)
      chosen->bits[w] |= apart->pieces[p].uses.bits[w];
  return memcmp(&before, chosen, sizeof before) != 0;
}

enum cb_status cb_expand_used(struct cb_text *text, const char *name, const char *users, struct cb_diag *diag) {
  const struct taken_apart *apart;
  const enum cb_status s = find(&apart, name, diag);
  if (s) return s;
  struct set chosen = find_uses(apart, users, users + strlen(users));
  while (choose_more(&chosen, apart)) {}
  for (int p = 0; p < apart->count; p++) {
    const struct piece *piece = &apart->pieces[p];
    if (is_in(piece, &chosen)) cb_text_add_bytes(text, piece->begin, (size_t)(piece->end - piece->begin));
  }
  return text->failed ? cb_fail_memory(diag, "generated text", text->length) : CB_OK;
}
