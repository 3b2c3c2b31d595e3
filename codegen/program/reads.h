// SPDX-License-Identifier: Apache-2.0
/* Who reads what a program's products give: what need not be stored, and where all must have met. */
#ifndef CBGEN_CODEGEN_PROGRAM_READS_H
#define CBGEN_CODEGEN_PROGRAM_READS_H

#include "codegen/program/writer.h"

/* Whether products commit to different vectors, one after the other. */
int cb_products_vary(const struct cb_program *program);

/* Whether nobody reads what the section's product gives but the statements behind it, which have it at hand: no step
 * does, and all products give it anew. */
int cb_product_is_unread(struct cb_writer *writer, const struct cb_section *section);

/* Whether what is behind the section's product makes its result anew. */
int cb_product_is_remade(const struct cb_section *section, const struct cb_statements *sums);

/* Whether the section leads to a product of what has been written up to its own product's end. Not if its steps have
 * sums, behind which all see everything, and if the last section, which may come before them, has a meeting of its
 * own. */
int cb_section_reads_others(struct cb_writer *writer, const struct cb_section *section);

#endif
