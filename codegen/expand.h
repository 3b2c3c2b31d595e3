// SPDX-License-Identifier: Apache-2.0
/* Template expansion. A template (templates/…in) is CUDA text with named holes:
 *
 *   @name@             replaced by the scope's text of that name
 *   @include name@     alone on a line: each of the scope's pieces of that name, at this line's indentation
 *   @# …               a line for the template's reader; not in the output
 *
 * A hole without a value is an error with file and line; so is, once cb_scope_check is asked, a value that no
 * hole used.
 */
#ifndef CBGEN_CODEGEN_EXPAND_H
#define CBGEN_CODEGEN_EXPAND_H

#include "base/status.h"
#include "base/text.h"

enum { CB_SCOPE_MAX = 160 };

struct cb_scope_entry {
  const char *name, *text; /* text: of a hole, or an include's template below templates/; not owned */
  int include;
  int optional;            /* need not be used */
  int used;
};

struct cb_scope {
  int count;
  struct cb_scope_entry entries[CB_SCOPE_MAX];
};

void cb_scope_hole(struct cb_scope *scope, const char *name, const char *text);
void cb_scope_optional(struct cb_scope *scope, const char *name, const char *text);
void cb_scope_include(struct cb_scope *scope, const char *name, const char *piece);

enum cb_status cb_expand(struct cb_text *text, const char *piece, struct cb_scope *scope, struct cb_diag *diag);

/* Whether every entry that is not optional was used. `where` names the scope in the message. */
enum cb_status cb_scope_check(const struct cb_scope *scope, const char *where, struct cb_diag *diag);

/* Whether `word` occurs in `text` as a whole identifier, comments apart. */
int cb_has_word(const char *text, const char *word);

#endif
