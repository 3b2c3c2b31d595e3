// SPDX-License-Identifier: Apache-2.0
/* Whether the values of an operator whose caller promises symmetry (analysis/plan/symmetry.h) keep that promise: the
 * caller's entries (i, j) below the main diagonal and (j, i), pair by pair, lie on the device, and a kernel compares
 * new values there (templates/symmetry.cu.in). What it finds stays until it is asked for. The device's context must be
 * current here, unless it says otherwise. */
#ifndef CBGEN_RUNTIME_OPERATOR_PAIRS_H
#define CBGEN_RUNTIME_OPERATOR_PAIRS_H

#include "analysis/options.h"
#include "runtime/operator/kernel_sets.h"
#include "runtime/operator/matrix.h"

struct cb_pairs;

/* Of a matrix whose pattern is symmetric. `symmetry` is CB_SYMMETRIC_ON or _SKEW; the kernels are those of the set
 * "symmetry", and outlive the pairs. CB_ERR_UNSUPPORTED: an entry has duplicates, whose sum nobody compares. */
enum cb_status cb_pairs_create(struct cb_pairs **pairs, const struct cb_kernels *kernels, const struct cb_csr *csr,
                               const struct cb_order *order, enum cb_symmetry_option symmetry, struct cb_diag *diag);
void cb_pairs_free(struct cb_pairs *pairs);   /* NULL is accepted here and below */
void cb_pairs_forget(struct cb_pairs *pairs); /* instead, when the context is gone; any thread, no context */

int64_t cb_pairs_bytes(const struct cb_pairs *pairs); /* on the device */

/* Puts the comparison on the stream; `values` lie on the device. No allocation, no synchronisation. */
enum cb_status cb_pairs_compare(const struct cb_pairs *pairs, enum cb_type given, cb_device_ptr values,
                                struct CUstream_st *stream, struct cb_diag *diag);

/* Waits for the stream. CB_ERR_WRONG: values that were compared since the last call are not symmetric. */
enum cb_status cb_pairs_outcome(const struct cb_pairs *pairs, struct CUstream_st *stream, struct cb_diag *diag);

#endif
