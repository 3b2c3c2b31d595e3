// SPDX-License-Identifier: Apache-2.0
/* Template expansion. A template (templates/NAME.cu.in) is CUDA text that reads from top to bottom, with named sections
 * that the plan wants or leaves out, and named placeholders:
 *
 *   @section NAME … @end             lines that are in the text when the scope has the section; they may nest
 *   @section NAME … @else … @end     these lines, or else those
 *   @NAME@                           within a line: the scope's text of that name
 *   @if NAME@…@end@, @if NAME@…@else@…@end@   parts of a line, likewise
 *   @define NAME … @end              lines that are in the text wherever "@include NAME" stands, with its indentation;
 *                                    those of shared.cu.in serve all templates
 *   @# …                             a line for the template's reader; not in the text
 *
 * NAME of a section may begin with "!": when the scope does not have it. A placeholder without a value is an error with
 * file and line. Once cb_scope_check is asked, so is a value that no placeholder used, or a section that no template
 * has.
 */
#ifndef CBGEN_CODEGEN_EXPAND_H
#define CBGEN_CODEGEN_EXPAND_H

#include "base/embedded.h"
#include "base/status.h"
#include "base/text.h"

enum { CB_SCOPE_MAX = 160 };

enum cb_scope_kind { CB_SCOPE_VALUE, CB_SCOPE_SECTION };

struct cb_scope_entry {
  const char *name, *text; /* text: of a placeholder; not owned */
  size_t length;           /* of the name */
  enum cb_scope_kind kind;
  int optional;            /* need not be used */
  int used;
};

struct cb_scope {
  int count;
  struct cb_scope_entry entries[CB_SCOPE_MAX];
};

void cb_scope_placeholder(struct cb_scope *scope, const char *name, const char *text);
void cb_scope_optional(struct cb_scope *scope, const char *name, const char *text);
void cb_scope_section(struct cb_scope *scope, const char *name); /* wanted */
void cb_scope_optional_section(struct cb_scope *scope, const char *name); /* wanted where there is one */

/* Appends templates/NAME.cu.in with its sections chosen and its placeholders filled. */
enum cb_status cb_expand(struct cb_text *text, const char *name, struct cb_scope *scope, struct cb_diag *diag);

/* The same for one definition of that template, which may be at hand. */
enum cb_status cb_expand_definition(struct cb_text *text, const char *name, const char *definition,
                                    struct cb_scope *scope, struct cb_diag *diag);
enum cb_status cb_expand_file_definition(struct cb_text *text, const struct cb_embedded_file *file,
                                         const char *definition, struct cb_scope *scope, struct cb_diag *diag);

/* The same for a template that is at hand. */
enum cb_status cb_expand_file(struct cb_text *text, const struct cb_embedded_file *file, struct cb_scope *scope,
                              struct cb_diag *diag);

/* The same with the sections that `users` use: those whose names occur there as words, and in the sections that are in
 * the text for that. The template is one of used.c's, where sections do not nest and no placeholders are. */
enum cb_status cb_expand_used(struct cb_text *text, const char *name, const char *users, struct cb_diag *diag);

/* Whether every entry that is not optional was used. `where` names the scope in the message. */
enum cb_status cb_scope_check(const struct cb_scope *scope, const char *where, struct cb_diag *diag);

/* Whether `word` occurs in `text` as a whole identifier, comments apart. */
int cb_has_word(const char *text, const char *word);

/* The same for up to CB_MOST_SOUGHT words in one walk over the text: has[i] is 1 for those that occur, else 0. */
enum { CB_MOST_SOUGHT = 128 };
void cb_has_words(const char *text, const char *const *words, int count, int has[]);
void cb_has_words_within(const char *text, const char *end, const char *const *words, int count, int has[]);

#endif
