// SPDX-License-Identifier: Apache-2.0
/* CG with Jacobi's preconditioner as an application writes it around NVIDIA's libraries: the fastest SpMV that cuSPARSE
 * has for the matrix, and cuBLAS for the vectors. Once with scalars on the host, which waits twice in an iteration, once
 * with scalars on the device and an iteration captured as a CUDA graph, which is launched again and again. */
#ifndef CBGEN_BENCH_SOLVE_VENDOR_H
#define CBGEN_BENCH_SOLVE_VENDOR_H

#include "bench/vendor.h"

struct vendor;

/* `b` and `inverses` (of the diagonal): `rows` doubles on the device each, which stay the caller's, as `csr` does;
 * `ratio`: the kernel of that name of solve_parts.cu. With the device's context current, here and below. CB_ERR_MISSING:
 * a library is not there. */
enum cb_status vendor_open(struct vendor **vendor, const struct cb_device *device, const struct cb_csr *csr,
                           cb_device_ptr b, cb_device_ptr inverses, struct CUfunc_st *ratio, struct cb_diag *diag);
void vendor_close(struct vendor *vendor); /* NULL is accepted */

const char *vendor_spmv(const struct vendor *vendor); /* the fastest one, as cusparse.h names it */

/* So many iterations from x = 0, until the device is done. */
enum cb_status vendor_run(struct vendor *vendor, enum vendor_way way, int iterations, struct cb_diag *diag);

/* x, on the device. */
cb_device_ptr vendor_solution(const struct vendor *vendor);

#endif
