// SPDX-License-Identifier: Apache-2.0
/* Kernels whose registers suffice. A kernel's text asks for so many thread blocks on a multiprocessor, which bounds the
 * registers of a thread; whether they suffice only the compiler knows, and its answer differs between versions and
 * architectures. Where they do not, a thread's variables go to memory and back ("spills"), which costs more than the
 * thread blocks bring. So such a text is compiled again, for fewer thread blocks.
 */
#ifndef CBGEN_RUNTIME_CUDA_SPILLS_H
#define CBGEN_RUNTIME_CUDA_SPILLS_H

#include "runtime/cuda/make.h"
#include "runtime/cuda/nvrtc.h"

/* Like cb_nvrtc_compile. While a kernel spills, the text is compiled again with room for one, two, three and at last
 * seven thread blocks fewer (CBGEN_FEWER_BLOCKS of the device prelude); what spills least is kept, and `compiled` says
 * with how many fewer that was, and what it spills still. */
enum cb_status cb_compile_fitting(struct cb_compiled *compiled, const struct cb_nvrtc *nvrtc, const char *text,
                                  const char *name, const struct cb_nvrtc_options *options, struct cb_diag *diag);

/* Bytes per thread of the kernel that spills most; 0 for what is no cubin. */
int cb_spilled_bytes(const struct cb_compiled *compiled);

/* `made` is a kernel that spills, and the choice of a search: the next recipes by prediction are tried, and the first
 * one that can be made and does not spill takes its place. Where there is none, `made` stays as it is. */
void cb_replace_spilling(struct cb_made *made, const struct cb_make_request *request);

#endif
