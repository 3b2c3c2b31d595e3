// SPDX-License-Identifier: Apache-2.0
/* The rules of clang.h on a tree; each notes what breaks it, and counts what it looked at. */
#ifndef CBGEN_RUNTIME_VERIFY_CLANG_RULES_H
#define CBGEN_RUNTIME_VERIFY_CLANG_RULES_H

#include "runtime/verify/clang/tree.h"

/* atomics, y and arrays: of the device's view. `plan` may be NULL. */
void cb_clang_check_accesses(struct cb_clang_report *report, const struct cb_syntax *device,
                             const struct cb_plan *plan);

/* constants: of both views, because some are used in one alone. */
void cb_clang_check_constants(struct cb_clang_report *report, const struct cb_syntax *device,
                              const struct cb_syntax *host, const struct cb_plan *plan);

/* barriers and bounds (uniform.c): of the device's view. */
enum cb_status cb_clang_check_threads(struct cb_clang_report *report, const struct cb_syntax *device,
                                      struct cb_diag *diag);

#endif
