// SPDX-License-Identifier: Apache-2.0
/* From a plan to a compiled kernel.
 *
 *   cb_make          all of it: the plan by one recipe, its text, its binary
 *   cb_make_symbol   the names of a plan's kernels
 *   cb_make_text     the same, and the text of a plan that is there
 *   cb_make_binary   the binary of a text that is there
 */
#ifndef CBGEN_RUNTIME_CUDA_MAKE_H
#define CBGEN_RUNTIME_CUDA_MAKE_H

#include "analysis/plan.h"
#include "codegen/source.h"
#include "runtime/cuda/nvrtc.h"

/* A kernel and the decisions it came from. Whoever takes it over assigns the struct and empties the other. */
struct cb_made {
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  struct cb_source source; /* without data */
  struct cb_compiled compiled;
  char symbol[64]; /* prefix of the kernels' names */
};

struct cb_make_request {
  const struct cb_csr *csr;         /* for cb_make alone, as are the options */
  const struct cb_options *options;
  const struct cb_nvrtc *nvrtc;
  struct cb_hash pattern; /* cb_csr_pattern_hash */
  const char *name;       /* of the matrix, for the text; NULL: the symbol */
  const char *symbol;     /* NULL: "cbgen_" and the plan's id */
  int line_info;
  const char *file; /* that has the text, for line information and messages; NULL: the symbol */
};

/* On failure `made` holds what there was until then. */
enum cb_status cb_make(struct cb_made *made, const struct cb_make_request *request, const char *recipe,
                       const struct cb_target *target, struct cb_diag *diag);
void cb_make_symbol(struct cb_made *made, const struct cb_make_request *request);
enum cb_status cb_make_text(struct cb_made *made, const struct cb_make_request *request, struct cb_diag *diag);
/* For the plan's architecture, until registers suffice: cb_compile_fitting. */
enum cb_status cb_make_binary(struct cb_made *made, const struct cb_make_request *request, struct cb_diag *diag);

/* Releases all of it. */
void cb_made_release(struct cb_made *made);

#endif
