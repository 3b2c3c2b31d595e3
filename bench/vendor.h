// SPDX-License-Identifier: Apache-2.0
/* What a method is made of that an application writes around NVIDIA's libraries: kernels that NVRTC compiles from a
 * file, the fastest SpMV that cuSPARSE has for a matrix, and iterations captured as a CUDA graph. solve_vendor.h and
 * lp_vendor.h are such methods. All calls need the device's context to be current. */
#ifndef CBGEN_BENCH_VENDOR_H
#define CBGEN_BENCH_VENDOR_H

#include "base/status.h"
#include "frontend/csr.h"
#include "runtime/cuda/driver.h"
#include "runtime/measure/cusparse.h"

/* How iterations reach the GPU: each call by itself, or as a graph of some iterations that is launched again and again. */
enum vendor_way { VENDOR_FROM_HOST, VENDOR_GRAPH, VENDOR_WAYS };

/* functions[i] is the kernel names[i] of the CUDA text at `path`; NULL ends the names. *module is the caller's, and to be
 * unloaded. CB_ERR_MISSING: there is no NVRTC; CB_ERR_IO: no such file. */
enum cb_status vendor_kernels(struct CUmod_st **module, struct CUfunc_st **functions, const char *const *names,
                              const struct cb_device *device, const char *path, struct cb_diag *diag);

/* y = A x between fixed vectors by one of cuSPARSE's algorithms. */
struct vendor_product {
  struct cb_baselines *baselines;
  int fastest;
};

/* Prepares all algorithms, and takes the one of whose products so many take the least time. x and y: as
 * cb_baselines_open wants them. Release it whatever this returns. CB_ERR_UNSUPPORTED: cuSPARSE has none. */
enum cb_status vendor_product_open(struct vendor_product *product, struct cb_cusparse *cusparse, const struct cb_csr *csr,
                                   cb_device_ptr x, cb_device_ptr y, struct CUstream_st *stream, struct cb_diag *diag);
void vendor_product_release(struct vendor_product *product);
const char *vendor_product_name(const struct vendor_product *product); /* as cusparse.h has it */
enum cb_status vendor_multiply(const struct vendor_product *product, struct CUstream_st *stream, struct cb_diag *diag);

/* Makes a graph of what `work` puts on the stream when it is called so many times. CB_ERR_MISSING: the driver has no such
 * graphs. */
enum cb_status vendor_capture(struct CUgraphExec_st **graph, const struct cb_driver *driver, struct CUstream_st *stream,
                              int times, enum cb_status (*work)(void *user, struct cb_diag *diag), void *user,
                              struct cb_diag *diag);

/* Microseconds of an iteration of what `run` does: the difference between `few` and `many`, of each the median of
 * VENDOR_SOLUTIONS. */
enum { VENDOR_SOLUTIONS = 7 };
enum cb_status vendor_time(enum cb_status (*run)(void *user, int iterations), void *user, int few, int many,
                           double *microseconds);

#endif
