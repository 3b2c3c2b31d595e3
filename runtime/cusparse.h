// SPDX-License-Identifier: Apache-2.0
/* cuSPARSE, opened at run time: every SpMV that it offers for one matrix, as rivals of a generated kernel.
 *
 *   cb_cusparse_open        libcusparse and a handle, in the device's context
 *   cb_rivals_open          converts and uploads the matrix in each format, preprocesses, and says which
 * apply cb_rival_multiply       y = α A x + β y by one of them: no conversion, no allocation
 *
 *   csr-alg1, csr-alg2      CSR, after cusparseSpMV_preprocess
 *   coo-alg1, coo-alg2      COO with sorted rows (alg1 is faster, alg2 repeatable)
 *   sell-16, -32, -64, -128 sliced ELL with that many rows to a slice
 *   bsr-2 … bsr-8           block CSR through the generic interface, where padding stays below half of the
 * nonzeros bsrmv-2 … bsrmv-8       the same through the older cusparse?bsrmv
 *
 * A rival that does not apply, or that this cuSPARSE refuses, stays in the list with the reason.
 */
#ifndef CBGEN_RUNTIME_CUSPARSE_H
#define CBGEN_RUNTIME_CUSPARSE_H

#include "base/status.h"
#include "base/types.h"
#include "frontend/csr.h"
#include "runtime/driver.h"

#include <stddef.h>
#include <stdint.h>

struct cb_cusparse;

/* `path` NULL: $CBGEN_CUSPARSE, else libcusparse.so.12 where the loader, a CUDA toolkit or the PyPI wheel
 * nvidia-cusparse has it. The device's context must be current here and in all that follows. */
enum cb_status cb_cusparse_open(struct cb_cusparse **cusparse, const struct cb_device *device,
                                const char *path, struct cb_diag *diag);
void cb_cusparse_close(struct cb_cusparse *cusparse); /* NULL is accepted */
void cb_cusparse_version(const struct cb_cusparse *cusparse, int *major, int *minor, int *patch);

struct cb_rival {
  char name[24];
  int applies; /* 0: `reason` says why not, and it must not be multiplied */
  char reason[160];
  int64_t stored_bytes;      /* its arrays on the device, padding included */
  int64_t buffer_bytes;      /* its work buffer */
  double convert_seconds;    /* on the host, from CSR; 0 for CSR itself */
  double preprocess_seconds; /* cusparseSpMV_preprocess */
};

struct cb_rivals;

/* `type`: CB_F64 or CB_F32, of values, vectors and sums. x and y must be allocated with CB_RIVAL_PADDING
 * elements more than the matrix has columns and rows: block formats read and write past them. x's must be
 * zero. They are named here because cuSPARSE binds them when it preprocesses. Uses OpenMP. */
enum { CB_RIVAL_PADDING = 128 };
enum cb_status cb_rivals_open(struct cb_rivals **rivals, struct cb_cusparse *cusparse,
                              const struct cb_csr *csr, enum cb_type type, cb_device_ptr x, cb_device_ptr y,
                              struct cb_diag *diag);
void cb_rivals_close(struct cb_rivals *rivals); /* NULL is accepted */

int cb_rivals_count(const struct cb_rivals *rivals);
const struct cb_rival *cb_rivals_get(const struct cb_rivals *rivals, int rival);

/* With the vectors of cb_rivals_open. */
enum cb_status cb_rival_multiply(struct cb_rivals *rivals, int rival, double alpha, double beta,
                                 struct CUstream_st *stream, struct cb_diag *diag);

#endif
