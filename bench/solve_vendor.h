// SPDX-License-Identifier: Apache-2.0
/* Methods of bench/solve.c as an application writes them around NVIDIA's libraries: the fastest SpMV that cuSPARSE has for
 * the matrix, and cuBLAS for the vectors. Once with scalars on the host, which waits for each of them, once with scalars on
 * the device and iterations captured as a CUDA graph, which is launched again and again.
 *
 *   cg         with Jacobi's preconditioner
 *   bicgstab   likewise, on the right; the residual's norm is computed in each iteration, as who stops by it does
 *   gmres      of VENDOR_RESTART vectors, with Jacobi's preconditioner on the right, and one classical Gram-Schmidt by gemv
 *   pagerank   the change of all ranks is computed in each iteration
 */
#ifndef CBGEN_BENCH_SOLVE_VENDOR_H
#define CBGEN_BENCH_SOLVE_VENDOR_H

#include "bench/vendor.h"

struct vendor;

int vendor_has(const char *method);

/* `b` and `inverses` (of the diagonal; pagerank does not read them): `rows` doubles on the device each, which stay the
 * caller's, as `csr` does. solve_vendor.cu is read from bench/ in the current folder. CB_ERR_MISSING: a library is not
 * there. */
enum cb_status vendor_open(struct vendor **vendor, const struct cb_device *device, const char *method,
                           const struct cb_csr *csr, cb_device_ptr b, cb_device_ptr inverses, struct cb_diag *diag);
void vendor_close(struct vendor *vendor); /* NULL is accepted */

const char *vendor_spmv(const struct vendor *vendor); /* the fastest one, as cusparse.h names it */

/* So many iterations from x = 0 (pagerank: from b, as shares of 1), until the device is done. A graph has
 * vendor_captured of them, which divides `iterations` then: VENDOR_CAPTURED, of gmres a round. */
enum { VENDOR_CAPTURED = 10, VENDOR_RESTART = 20 };
int vendor_captured(const struct vendor *vendor);
enum cb_status vendor_run(struct vendor *vendor, enum vendor_way way, int iterations, struct cb_diag *diag);

/* x, on the device. */
cb_device_ptr vendor_solution(const struct vendor *vendor);

#endif
