// SPDX-License-Identifier: Apache-2.0
/* A product of the form "graph" whose kernels do what the stage behind it would do (stages.h): where a row's final
 * value is known, they execute the section's statements for it, and the last of them computes the scalars. So a vector
 * that nothing else reads is neither written nor read, and there is one kernel where there were two. Bits are the same.
 *
 * The text is an operator's specialised one, taken apart (product.h): regions call the program's commit. Its kernels
 * have the launches' thread blocks, the last one's a thread block more, the first, which computes the scalars beside
 * the product: so the product's threads need no registers for them. Threads may load what they need of the matrix
 * before they wait for the kernel before, which lets this one start once it has waited itself: all that was before that
 * one is over then, new values of the matrix, too. */
#ifndef CBGEN_CODEGEN_PROGRAM_FUSED_H
#define CBGEN_CODEGEN_PROGRAM_FUSED_H

#include "codegen/program/stages.h"

#define CB_FUSED_KERNEL "cbgen_fused_" /* and the launch's number */

/* The text for the plan's fusion `number` of the request's program, source and launches; its form does not count.
 * Parameters of each kernel: for each launch, for each region of it that reads arrays, the region's struct of
 * pointers; the stages' struct of pointers; what is given; the state's structs to read and to write; where there are
 * carry slots, their sums and counters.
 * CB_ERR_UNSUPPORTED: the operator's rows are not each committed once, or no program can be made of its text. */
enum cb_status cb_fused_text(struct cb_text *text, const struct cb_program_request *request, int number,
                             struct cb_diag *diag);

#endif
