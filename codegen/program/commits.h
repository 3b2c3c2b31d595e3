// SPDX-License-Identifier: Apache-2.0
/* What of a section's steps a product can do where it commits rows (fused.h): statements of its own rows that leave
 * alone what it multiplies. */
#ifndef CBGEN_CODEGEN_PROGRAM_COMMITS_H
#define CBGEN_CODEGEN_PROGRAM_COMMITS_H

#include "codegen/program/writer.h"

/* How many of the section's first steps are such, without sums. */
int cb_committed_steps(struct cb_writer *writer, const struct cb_section *section);

/* How many sums the statements make that begin its steps; 0: none, or they are not such. */
int cb_committed_sums(struct cb_writer *writer, const struct cb_section *section);

/* Whether steps from that on are of scalars alone. */
int cb_section_ends_in_scalars(const struct cb_section *section, int first);

/* Whether there are sums for the commit; or steps, and all behind them are of scalars. */
int cb_section_is_fusable(struct cb_writer *writer, const struct cb_section *section);

#endif
