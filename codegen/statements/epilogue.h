// SPDX-License-Identifier: Apache-2.0
/* The epilogue of a plan in a kernel's text: what the kernels get for it, `commit` that executes it, and the launch
 * that adds up its results. */
#ifndef CBGEN_CODEGEN_STATEMENTS_EPILOGUE_H
#define CBGEN_CODEGEN_STATEMENTS_EPILOGUE_H

#include "codegen/emitter.h"

/* Appends the epilogue's parameters of a kernel, and what of struct Vectors is filled with them; if there is one. */
void cb_epilogue_parameters(struct emitter *emitter, struct cb_text *parameters, struct cb_text *vectors);

/* The same as arguments of a call in the host section, from its own parameters. */
const char *cb_epilogue_arguments(struct emitter *emitter);

/* Fills the scope of templates/vectors.cu.in. */
enum cb_status cb_epilogue_scope(struct emitter *emitter, struct cb_scope *scope);

/* The body of the launch "reduce_terms" of templates/kernel.cu.in. */
const char *cb_epilogue_reduces(struct emitter *emitter, const struct cb_launch *launch);

#endif
