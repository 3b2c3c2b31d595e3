// SPDX-License-Identifier: Apache-2.0
/* What `verify --clang` adds to a verification: the text as libclang reads it (runtime/verify/clang/clang.h). */
#ifndef CBGEN_TOOL_VERIFY_CLANG_H
#define CBGEN_TOOL_VERIFY_CLANG_H

#include "base/json.h"
#include "base/text.h"
#include "runtime/verify/clang/clang.h"
#include "tool/tool.h"

struct cb_clang_step {
  int asked;
  enum cb_status status; /* CB_ERR_MISSING: there is no libclang; CB_ERR_WRONG: there are findings */
  char message[1024];
  struct cb_clang_report report;
};

/* Checks the text where the call asks for it. `plan` may be NULL. */
void cb_clang_step(struct cb_clang_step *step, const struct cb_call *call, const char *text,
                   const struct cb_plan *plan);
void cb_clang_print(struct cb_text *text, const struct cb_clang_step *step);
json_t *cb_clang_json(const struct cb_clang_step *step, int *failed);

#endif
