// SPDX-License-Identifier: Apache-2.0
#include "codegen/program/blend.h"

#include <string.h>

static int is_blend(struct cb_blend *blend, const struct cb_statements *statements,
                    const struct cb_statement *statement, const char *vector) {
  const struct cb_name *names = statements->names;
  const struct cb_expression *of = statements->expressions, *whole = &of[statement->expression];
  if (strcmp(names[statement->name].name, vector) != 0 || whole->operation != CB_OP_FMA) return 0;
  const struct cb_name *parts[3];
  for (int i = 0; i < 3; i++) {
    if (of[whole->operands[i]].operation != CB_OP_NAME) return 0;
    parts[i] = &names[of[whole->operands[i]].name];
  }
  *blend = (struct cb_blend){parts[0]->name, parts[2]->name};
  return parts[0]->kind == CB_NAME_SCALAR && !strcmp(parts[1]->name, vector) && parts[2]->kind == CB_NAME_IN;
}

int cb_blend_find(struct cb_blend *blend, const struct cb_statements *statements, const char *vector) {
  for (int i = 0; i < statements->statements_count; i++)
    if (is_blend(blend, statements, &statements->statements[i], vector)) return 1;
  return 0;
}
