// SPDX-License-Identifier: Apache-2.0
/* Iterations of primal-dual hybrid gradient as an application writes them around cuSPARSE: the fastest SpMV for A and that
 * for its transpose, which is stored, too, and a kernel for x and one for y (lp_parts.cu) that do all else in one pass.
 *
 * The iteration is that of codegen/program/methods/pdhg.c, with Halpern's anchor and reflection; but plain: the anchor is
 * never renewed, steps keep their lengths, nothing is checked. The matrix is scaled beforehand, so that kernels read no
 * scales. The counter behind the anchor's weight lies on the device, so that a graph holds several iterations. */
#ifndef CBGEN_BENCH_LP_VENDOR_H
#define CBGEN_BENCH_LP_VENDOR_H

#include "bench/vendor.h"

/* On the host; `rows` or `cols` numbers each. */
struct lp_vendor_problem {
  const struct cb_csr *csr;
  const double *cost, *lower, *upper, *row_lower, *row_upper, *row_scales, *column_scales;
};

struct lp_vendor;

/* lp_parts.cu is read from bench/ in the current folder. The problem is not used afterwards but by lp_vendor_difference.
 * CB_ERR_MISSING: there is no cuSPARSE, no NVRTC, or no graphs. */
enum cb_status lp_vendor_open(struct lp_vendor **vendor, const struct cb_device *device,
                              const struct lp_vendor_problem *problem, struct cb_diag *diag);
void lp_vendor_close(struct lp_vendor *vendor); /* NULL is accepted */

/* The two SpMV, "A + transpose", as cusparse.h names them. */
const char *lp_vendor_products(const struct lp_vendor *vendor);

/* So many iterations from zeros, until the device is done. A graph has LP_VENDOR_CAPTURED of them, which divides
 * `iterations` then. */
enum { LP_VENDOR_CAPTURED = 16 };
enum cb_status lp_vendor_run(struct lp_vendor *vendor, enum vendor_way way, int iterations, struct cb_diag *diag);

/* How far x of the last run is from that of as many iterations on the host, as a share of its largest entry. */
enum cb_status lp_vendor_difference(const struct lp_vendor *vendor, int iterations, double *difference,
                                    struct cb_diag *diag);

#endif
