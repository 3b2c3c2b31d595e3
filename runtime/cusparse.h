// SPDX-License-Identifier: Apache-2.0
/* cuSPARSE, opened at run time: every algorithm that multiplies a sparse matrix by a vector, as rivals to
 * compare with. The matrix comes as CSR in host memory; formats that cuSPARSE cannot make are converted here.
 */
#ifndef CBGEN_RUNTIME_CUSPARSE_H
#define CBGEN_RUNTIME_CUSPARSE_H

#include "base/status.h"
#include "base/types.h"
#include "frontend/csr.h"
#include "runtime/driver.h"

struct cb_cusparse;

/* `library`: NULL for $CBGEN_CUSPARSE, else where libraries are usually found. CB_ERR_MISSING says what to
 * install. The driver must outlive the handle. */
enum cb_status cb_cusparse_open(struct cb_cusparse **cusparse, const struct cb_driver *driver,
                                const char *library, struct cb_diag *diag);
void cb_cusparse_close(struct cb_cusparse *cusparse);        /* NULL is accepted */
int cb_cusparse_version(const struct cb_cusparse *cusparse); /* 12603 */

/* The algorithms, in a fixed order. */
extern const char *const cb_rival_names[]; /* "CSR ALG1", …; ends with NULL */
int cb_rival_is_csr(int rival);

struct cb_rival;

/* What to multiply: the same for all rivals of a matrix. x and y are on the device and stay the caller's. */
struct cb_rival_task {
  const struct cb_csr *csr;
  enum cb_type type; /* CB_F64 or CB_F32: values, vectors and sums */
  double alpha, beta;
  cb_device_ptr x, y;
  cb_cuda_stream stream;
};

/* Converts, uploads and prepares (cusparseSpMV_preprocess where it exists). CB_ERR_UNSUPPORTED: the algorithm
 * does not apply to this matrix or this version of cuSPARSE, and why. */
enum cb_status cb_rival_create(struct cb_rival **rival, struct cb_cusparse *cusparse, int which,
                               const struct cb_rival_task *task, struct cb_diag *diag);
enum cb_status cb_rival_multiply(const struct cb_rival *rival,
                                 struct cb_diag *diag); /* on the task's stream */
int64_t cb_rival_bytes(const struct cb_rival *rival);   /* of the matrix as stored */
void cb_rival_free(struct cb_rival *rival);

#endif
