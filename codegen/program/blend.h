// SPDX-License-Identifier: Apache-2.0
/* Vectors that a product makes where it reads them: factor * itself + addend. */
#ifndef CBGEN_CODEGEN_PROGRAM_BLEND_H
#define CBGEN_CODEGEN_PROGRAM_BLEND_H

#include "analysis/statements/statements.h"

struct cb_blend {
  const char *factor, *addend; /* in the statements */
};

/* Whether one of the statements makes `vector` in that way. */
int cb_blend_find(struct cb_blend *blend, const struct cb_statements *statements, const char *vector);

#endif
