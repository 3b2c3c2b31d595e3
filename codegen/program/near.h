// SPDX-License-Identifier: Apache-2.0
/* What of the matrix lies in shared memory for the whole solution, in the form "grid" with "+matrix".
 *
 * A thread block has neighbouring virtual ones, and of most arrays they read neighbouring elements. Which, it finds out
 * by itself: the product is executed once by functions that read lengths and places as the others do, note what they
 * read, and leave vectors alone. Then each array's range is copied, while there is room, and the array's pointer is
 * moved so that its elements are found there. So no layout has to say where its elements lie, and the ranges of an
 * array that is read here and there, which find no room, are read from where they are. */
#ifndef CBGEN_CODEGEN_PROGRAM_NEAR_H
#define CBGEN_CODEGEN_PROGRAM_NEAR_H

#include "base/text.h"
#include "codegen/program/product.h"
#include "codegen/program/program.h"

/* Bytes of shared memory for a thread block's part of the matrix and what is noted of it, out of `room`. CB_ERR_LIMIT:
 * an equal part has no room; CB_ERR_UNSUPPORTED: the product has shared memory of its own, several launches, or rows
 * that are committed more than once. */
enum cb_status cb_near_plan(int64_t *bytes, const struct cb_product_text *product,
                            const struct cb_program_request *request, int64_t room, struct cb_diag *diag);

/* Lines of the kernel, for each region that reads arrays: what is to be noted of them; and where they are from then on,
 * as "near_" and the argument's name. */
void cb_near_lines(struct cb_text *notes, struct cb_text *copies, const struct cb_product_text *product);

/* Arguments of the product with those arrays, or (`watched`) of the one that notes what it reads. */
void cb_near_arguments(struct cb_text *text, const struct cb_product_text *product, int watched);

/* How many arrays there are. */
int cb_near_count(const struct cb_product_text *product);

#endif
