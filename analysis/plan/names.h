// SPDX-License-Identifier: Apache-2.0
/* What the plan's JSON calls forms, roles and ways to store an array: for its writer and its reader. */
#ifndef CBGEN_ANALYSIS_PLAN_NAMES_H
#define CBGEN_ANALYSIS_PLAN_NAMES_H

static const char *const form_names[] = {"ax", "add", "axpby"};
static const char *const role_names[] = {"index", "bytes", "values", "table", "mixed"};
static const char *const storage_names[] = {"stored", "affine", "baked"};

#endif
