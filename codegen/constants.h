// SPDX-License-Identifier: Apache-2.0
/* Calls that always give the same number become that number's name. */
#ifndef CBGEN_CODEGEN_CONSTANTS_H
#define CBGEN_CODEGEN_CONSTANTS_H

#include "base/text.h"

/* Writes `constant` in place of every call of `function` in `text`, C++ functions with their bodies. Nothing is
 * changed, and 0 returned, when a variable, a parameter, a constant or a function would be used no more for that; nor
 * without memory, which text->failed then says. */
int cb_constant_instead(struct cb_text *text, const char *function, const char *constant);

#endif
