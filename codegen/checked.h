// SPDX-License-Identifier: Apache-2.0
/* The text of a kernel with checks: the same, line for line, but that it looks at every index before it uses it.
 *
 *   accessors      that the index, or all of a vector's, is within the array
 *   load_x         that the column is one of the matrix
 *   commit, …      that the row is one
 *   carry slots    that the slot is one of the plan's
 *   arrays.NAME + INDEX, wherever else it stands: that the index is within the array, whatever it is read as
 *
 * What is read through a pointer that a function keeps, as the units of `cb` and `tile` are, is checked where the
 * pointer is made. Shared memory is not looked at (the emulation does that by itself), nor are tables of the text that
 * no accessor reads. What templates assume at run time ("no guard: the rows fill the thread blocks") is that indices of
 * x and y are within them; the rest they say by static_assert, which every compiler checks.
 *
 * A check that fails tells what and where: the array, the index, the count, and the line of the plain text that asks
 * (of an accessor: the line that calls it), which the checked text's lines have for a compiler, too.
 *
 * On the GPU it leaves this in a record of runtime/operator/checks.h and ends the thread; in the emulation it stops the
 * kernel. */
#ifndef CBGEN_CODEGEN_CHECKED_H
#define CBGEN_CODEGEN_CHECKED_H

#include "analysis/plan.h"
#include "base/status.h"
#include "codegen/source.h"

#include <stdint.h>

/* `record`: the address, for the device, of what a failed check leaves; 0: none. The text holds it, so it serves this
 * process alone. CB_ERR_UNSUPPORTED: the text has no device prelude, or nothing in it that can be checked. */
enum cb_status cb_checked_text(struct cb_source *checked, const struct cb_source *source, const struct cb_plan *plan,
                               uint64_t record, struct cb_diag *diag);

#endif
