// SPDX-License-Identifier: Apache-2.0
/* Pages of HTML out of the pieces that a template defines (codegen/expand.h has the grammar):
 *
 *   struct cb_html rows = {.file = file, .diag = diag};
 *   cb_html_set(&rows, "name", "%s", name);             a value: it is escaped
 *   cb_html_markup(&rows, "CELLS", cells);              a placeholder in capitals: markup made before, as it is
 *   cb_html_has(&rows, "chosen");                       a section, or a part of a line
 *   cb_html_add(&rows, "row");                          the definition with these values, which are forgotten then
 *   …
 *   cb_html_release(&rows);
 *
 * It fails stickily: one check of `status` at the end suffices. A value that the definition does not use is an error.
 */
#ifndef CBGEN_TOOL_HTML_H
#define CBGEN_TOOL_HTML_H

#include "base/arena.h"
#include "base/embedded.h"
#include "base/status.h"
#include "base/text.h"
#include "codegen/expand.h"

struct cb_html {
  const struct cb_embedded_file *file; /* the template */
  struct cb_diag *diag;
  enum cb_status status;
  struct cb_text text; /* what was added so far */
  struct cb_scope scope;
  struct cb_arena values;
};

void cb_html_set(struct cb_html *html, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* `markup` lives until the next add. */
void cb_html_markup(struct cb_html *html, const char *name, const char *markup);
void cb_html_has(struct cb_html *html, const char *section);
void cb_html_add(struct cb_html *html, const char *definition);
/* The same without the end of its last line. */
void cb_html_add_inline(struct cb_html *html, const char *definition);
/* The text, "" when empty, as markup for another one, which fails if this one has failed. */
const char *cb_html_take(const struct cb_html *from, struct cb_html *to);
void cb_html_release(struct cb_html *html);

/* Appends text so that it means itself in HTML, in attributes, too: markup is escaped; bytes that are no UTF-8, and
 * control characters but for tabs and line ends, become U+FFFD. */
void cb_html_escape(struct cb_text *text, const char *bytes, size_t length);

#endif
