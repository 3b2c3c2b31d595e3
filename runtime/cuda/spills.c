// SPDX-License-Identifier: Apache-2.0
/* Compiling until registers suffice: see spills.h. */
#include "runtime/cuda/spills.h"

#include "runtime/cuda/cubin.h"

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

void cb_replace_spilling(struct cb_made *made, const struct cb_make_request *request) {
  const struct cb_plan *first = made->plan;
  const char *recipe = first->recipe;
  while ((recipe = cb_plan_next_recipe(first->candidates, first->candidates_count, recipe))) {
    struct cb_made other = {0};
    if (cb_make(&other, request, recipe, &first->target, NULL) || other.compiled.spilled_bytes) {
      cb_made_release(&other);
      continue;
    }
    other.plan->candidates_count = first->candidates_count;
    other.plan->is_chosen_by_profile = first->is_chosen_by_profile;
    memcpy(other.plan->candidates, first->candidates, sizeof other.plan->candidates);
    cb_made_release(made);
    *made = other;
    return;
  }
}
