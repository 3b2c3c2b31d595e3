// SPDX-License-Identifier: Apache-2.0
/* cuSPARSE's products with several vectors: cusparseSpMM on CSR, algorithms 1 to 3, for dense matrices by rows and by
 * columns. What fails for one of them becomes its reason, and the others go on. */
#ifndef CBGEN_RUNTIME_MEASURE_SPMM_H
#define CBGEN_RUNTIME_MEASURE_SPMM_H

#include "runtime/measure/cusparse.h"

/* A dense matrix X or Y: of `vectors` vectors, entry i of vector v at i · vectors + v, or at v · length + i. */
enum cb_dense_order { CB_BY_ROW, CB_BY_COLUMN, CB_DENSE_ORDERS };
extern const char *const cb_dense_order_names[];

enum { CB_SPMM_KINDS = 3 * CB_DENSE_ORDERS };

struct cb_spmm;

/* X and Y of each order must be there as long; `types` as in cb_baselines_open. CB_ERR_MEMORY, CB_ERR_DEVICE: the
 * matrix does not get to the device. */
enum cb_status cb_spmm_open(struct cb_spmm **spmm, struct cb_cusparse *cusparse, const struct cb_csr *csr,
                            struct cb_baseline_types types, int vectors, const cb_device_ptr x[CB_DENSE_ORDERS],
                            const cb_device_ptr y[CB_DENSE_ORDERS], struct cb_diag *diag);
void cb_spmm_close(struct cb_spmm *spmm); /* NULL is accepted */

const struct cb_baseline *cb_spmm_get(const struct cb_spmm *spmm, int kind);
enum cb_dense_order cb_spmm_order(int kind);

/* Y = α A X + β Y. */
enum cb_status cb_spmm_multiply(struct cb_spmm *spmm, int kind, double alpha, double beta, struct CUstream_st *stream,
                                struct cb_diag *diag);

#endif
