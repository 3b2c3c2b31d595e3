// SPDX-License-Identifier: Apache-2.0
/* From a plan to a compiled kernel: see make.h. */
#include "runtime/cuda/make.h"

#include "analysis/plan/assignment.h"
#include "analysis/plan/blob.h"
#include "runtime/cuda/spills.h"

#include <stdio.h>

void cb_make_symbol(struct cb_made *made, const struct cb_make_request *request) {
  if (request->symbol) snprintf(made->symbol, sizeof made->symbol, "%s", request->symbol);
  else
    snprintf(made->symbol, sizeof made->symbol, "cbgen_%016llx",
             (unsigned long long)cb_blob_id(made->plan, request->pattern).high);
}

enum cb_status cb_make_text(struct cb_made *made, const struct cb_make_request *request, struct cb_diag *diag) {
  cb_make_symbol(made, request);
  const struct cb_label label = {request->name ? request->name : made->symbol, made->symbol, request->pattern};
  return cb_source_emit(&made->source, made->plan, &label, NULL, CB_EMBED_NEVER, diag);
}

enum cb_status cb_make_binary(struct cb_made *made, const struct cb_make_request *request, struct cb_diag *diag) {
  const struct cb_nvrtc_options options = {.arch = made->plan->target.arch, .line_info = request->line_info};
  return cb_compile_fitting(&made->compiled, request->nvrtc, made->source.text,
                            request->file ? request->file : made->symbol, &options, diag);
}

enum cb_status cb_make(struct cb_made *made, const struct cb_make_request *request, const char *recipe,
                       const struct cb_target *target, struct cb_diag *diag) {
  struct cb_options options = *request->options;
  options.recipe = recipe;
  enum cb_status s = cb_plan_build(&made->plan, &made->assignment, request->csr, target, &options, diag);
  if (!s) s = cb_make_text(made, request, diag);
  return s ? s : cb_make_binary(made, request, diag);
}

void cb_made_release(struct cb_made *made) {
  cb_compiled_release(&made->compiled);
  cb_source_release(&made->source);
  cb_assignment_free(made->assignment);
  cb_plan_free(made->plan);
  *made = (struct cb_made){0};
}
