// SPDX-License-Identifier: Apache-2.0
/* Kernels whose registers suffice. A kernel's text asks for so many thread blocks on a multiprocessor, which bounds the
 * registers of a thread; whether they suffice only the compiler knows, and its answer differs between versions and
 * architectures. Where they do not, a thread's variables go to memory and back ("spills"), which costs more than the
 * thread blocks bring. So such a text is compiled again, for fewer thread blocks.
 */
#ifndef CBGEN_RUNTIME_SPILLS_H
#define CBGEN_RUNTIME_SPILLS_H

#include "analysis/plan/plan.h"
#include "codegen/source.h"
#include "runtime/nvrtc.h"

/* Like cb_nvrtc_compile. While a kernel spills, the text is compiled again with room for one, two, three and at last
 * seven thread blocks fewer (the shims' CBGEN_FEWER_BLOCKS); what spills least is kept, and `compiled` says with how
 * many fewer that was, and what it spills still. */
enum cb_status cb_compile_fitting(struct cb_compiled *compiled, const struct cb_nvrtc *nvrtc, const char *text,
                                  const char *name, const struct cb_nvrtc_options *options, struct cb_diag *diag);

/* Bytes per thread of the kernel that spills most; 0 for what is no cubin. */
int cb_spilled_bytes(const struct cb_compiled *compiled);

/* A kernel and the decisions it came from. */
struct cb_made {
  struct cb_plan *plan;
  struct cb_assignment *assignment;
  struct cb_source source; /* without data */
  struct cb_compiled compiled;
  char symbol[64];
};

struct cb_make_request {
  const struct cb_csr *csr;
  const struct cb_options *options;
  const struct cb_nvrtc *nvrtc;
  struct cb_hash pattern; /* cb_csr_pattern_hash */
  const char *name;       /* of the matrix, for the text; NULL: the symbol */
  const char *symbol;     /* prefix of the kernels' names; NULL: "cbgen_" and the plan's id */
  int line_info;
};

/* `made` is a kernel that spills, and the choice of a search: the next recipes by prediction are tried, and the first
 * one that can be made and does not spill takes its place. Where there is none, `made` stays as it is. */
void cb_replace_spilling(struct cb_made *made, const struct cb_make_request *request);

/* Releases all of it. */
void cb_made_release(struct cb_made *made);

#endif
