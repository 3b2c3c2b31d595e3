// SPDX-License-Identifier: Apache-2.0
/* Compiling until registers suffice: see spills.h. */
#include "runtime/spills.h"

#include "analysis/plan/assignment.h"
#include "analysis/plan/blob.h"
#include "runtime/cubin.h"

#include <stdio.h>
#include <string.h>

int cb_spilled_bytes(const struct cb_compiled *compiled) {
  struct cb_cubin_stats stats;
  if (!compiled->cubin || cb_cubin_stats(&stats, compiled->cubin, compiled->cubin_bytes, NULL)) return 0;
  const int bytes = cb_cubin_stats_worst(&stats).stack_bytes;
  cb_cubin_stats_release(&stats);
  return bytes;
}

enum cb_status cb_compile_fitting(struct cb_compiled *compiled, const struct cb_nvrtc *nvrtc, const char *text,
                                  const char *name, const struct cb_nvrtc_options *options, struct cb_diag *diag) {
  static const int fewer[] = {1, 2, 3, 7};
  struct cb_nvrtc_options own = *options;
  enum cb_status s = cb_nvrtc_compile(compiled, nvrtc, text, name, options, diag);
  if (!s) compiled->spilled_bytes = cb_spilled_bytes(compiled);
  for (size_t i = 0; i < sizeof fewer / sizeof *fewer && !s && compiled->spilled_bytes; i++) {
    struct cb_compiled again;
    own.fewer_blocks = fewer[i];
    s = cb_nvrtc_compile(&again, nvrtc, text, name, &own, diag);
    if (!s) again.spilled_bytes = cb_spilled_bytes(&again);
    again.seconds += compiled->seconds;
    compiled->seconds = again.seconds;
    if (s || again.spilled_bytes >= compiled->spilled_bytes) {
      cb_compiled_release(&again);
      continue;
    }
    cb_compiled_release(compiled);
    *compiled = again;
  }
  return s;
}

/* ---- another recipe */

void cb_made_release(struct cb_made *made) {
  cb_compiled_release(&made->compiled);
  cb_source_release(&made->source);
  cb_assignment_free(made->assignment);
  cb_plan_free(made->plan);
  *made = (struct cb_made){0};
}

static enum cb_status make(struct cb_made *made, const struct cb_make_request *request, const char *recipe,
                           const struct cb_target *target, struct cb_diag *diag) {
  const struct cb_nvrtc_options compiling = {.arch = target->arch, .line_info = request->line_info};
  struct cb_options options = *request->options;
  options.recipe = recipe;
  enum cb_status s = cb_plan_build(&made->plan, &made->assignment, request->csr, target, &options, diag);
  if (s) return s;
  if (request->symbol) snprintf(made->symbol, sizeof made->symbol, "%s", request->symbol);
  else
    snprintf(made->symbol, sizeof made->symbol, "cbgen_%016llx",
             (unsigned long long)cb_blob_id(made->plan, request->pattern).high);
  const struct cb_label label = {request->name ? request->name : made->symbol, made->symbol, request->pattern};
  s = cb_source_emit(&made->source, made->plan, &label, NULL, CB_EMBED_NEVER, diag);
  if (!s)
    s = cb_compile_fitting(&made->compiled, request->nvrtc, made->source.text, made->symbol, &compiling, diag);
  return s;
}

void cb_replace_spilling(struct cb_made *made, const struct cb_make_request *request) {
  const struct cb_plan *first = made->plan;
  const char *recipe = first->recipe;
  while ((recipe = cb_plan_next_recipe(first->candidates, first->candidates_count, recipe))) {
    struct cb_made other = {0};
    if (make(&other, request, recipe, &first->target, NULL) || other.compiled.spilled_bytes) {
      cb_made_release(&other);
      continue;
    }
    other.plan->candidates_count = first->candidates_count;
    memcpy(other.plan->candidates, first->candidates, sizeof other.plan->candidates);
    cb_made_release(made);
    *made = other;
    return;
  }
}
