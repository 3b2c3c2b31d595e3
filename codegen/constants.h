// SPDX-License-Identifier: Apache-2.0
/* Calls that always give the same number become that number's name. */
#ifndef CBGEN_CODEGEN_CONSTANTS_H
#define CBGEN_CODEGEN_CONSTANTS_H

#include "base/text.h"

/* Writes `constant` in place of every call of `function` in `text`, C++ functions with their bodies. Returns 0, and
 * changes nothing, when a variable, a parameter, a constant or a function would lose its last use by that; also when
 * there is no memory: then text->failed is set. */
int cb_constant_instead(struct cb_text *text, const char *function, const char *constant);

/* Writes `other` in place of every `word` in `text` that stands alone, comments apart. Without memory text->failed is
 * set. */
void cb_word_instead(struct cb_text *text, const char *word, const char *other);

#endif
