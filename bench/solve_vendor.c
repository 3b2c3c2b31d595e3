// SPDX-License-Identifier: Apache-2.0
/* See solve_vendor.h. */
#include "bench/solve_vendor.h"

#include "base/memory.h"
#include "runtime/cuda/library.h"

#include <stddef.h>

enum { SIDE_LEFT = 0, POINTERS_ON_HOST = 0, POINTERS_ON_DEVICE = 1 }; /* cublasSideMode_t, cublasPointerMode_t */

struct cublasContext;
struct calls {
  int (*create)(struct cublasContext **handle);
  int (*destroy)(struct cublasContext *handle);
  int (*set_stream)(struct cublasContext *handle, struct CUstream_st *stream);
  int (*set_pointers)(struct cublasContext *handle, int mode);
  int (*dot)(struct cublasContext *handle, int n, const void *x, int x_step, const void *y, int y_step, void *result);
  int (*axpy)(struct cublasContext *handle, int n, const void *alpha, const void *x, int x_step, void *y, int y_step);
  int (*scal)(struct cublasContext *handle, int n, const void *alpha, void *x, int x_step);
  int (*dgmm)(struct cublasContext *handle, int side, int rows, int cols, const void *a, int a_step, const void *x,
              int x_step, void *c, int c_step);
};
#define CALL(member, name) {name, offsetof(struct calls, member), 0}
static const struct cb_library_symbol symbols[] = {CALL(create, "cublasCreate_v2"),
                                                   CALL(destroy, "cublasDestroy_v2"),
                                                   CALL(set_stream, "cublasSetStream_v2"),
                                                   CALL(set_pointers, "cublasSetPointerMode_v2"),
                                                   CALL(dot, "cublasDdot_v2"),
                                                   CALL(axpy, "cublasDaxpy_v2"),
                                                   CALL(scal, "cublasDscal_v2"),
                                                   CALL(dgmm, "cublasDdgmm"),
                                                   {NULL, 0, 0}};
static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so", NULL};
static const char *const wheels[] = {"cu13", "cublas", NULL};
static const struct cb_library_search search = {.what = "cuBLAS",
                                                .remedy = "install the CUDA toolkit (12 or 13), or set CBGEN_CUBLAS",
                                                .variable = "CBGEN_CUBLAS",
                                                .names = names,
                                                .wheels = wheels};

enum { P, Q, X, R, Z, VECTORS };
enum { PQ, RZ, ALPHA, MINUS_ALPHA, BETA, NEW_RZ, ONE, SCALARS }; /* on the device */

struct vendor {
  const struct cb_device *device;
  const struct cb_driver *driver;
  struct cb_library library;
  struct calls call;
  struct cublasContext *blas;
  struct cb_cusparse *cusparse;
  struct vendor_product product;
  int rows;
  cb_device_ptr b, inverses, vectors[VECTORS], scalars;
  struct CUfunc_st *ratio;
  struct CUstream_st *stream;
  struct CUgraphExec_st *iteration;
};

static void *at(cb_device_ptr pointer) { return (void *)(uintptr_t)pointer; }
static cb_device_ptr scalar(const struct vendor *vendor, int which) {
  return vendor->scalars + (cb_device_ptr)which * sizeof(double);
}

static enum cb_status blas(int result, const char *what, struct cb_diag *diag) {
  return result ? cb_fail(diag, CB_ERR_DEVICE, "cuBLAS cannot %s: status %d", what, result) : CB_OK;
}

/* ---- an iteration */

static enum cb_status multiply(struct vendor *vendor, struct cb_diag *diag) {
  return vendor_multiply(&vendor->product, vendor->stream, diag);
}

static enum cb_status dot(struct vendor *vendor, int x, int y, void *result, struct cb_diag *diag) {
  const cb_device_ptr *v = vendor->vectors;
  return blas(vendor->call.dot(vendor->blas, vendor->rows, at(v[x]), 1, at(v[y]), 1, result), "multiply vectors", diag);
}

static enum cb_status axpy(struct vendor *vendor, const void *alpha, int x, int y, struct cb_diag *diag) {
  const cb_device_ptr *v = vendor->vectors;
  return blas(vendor->call.axpy(vendor->blas, vendor->rows, alpha, at(v[x]), 1, at(v[y]), 1), "add vectors", diag);
}

/* z = r, each entry times that of `inverses`. */
static enum cb_status precondition(struct vendor *vendor, struct cb_diag *diag) {
  const int n = vendor->rows;
  return blas(vendor->call.dgmm(vendor->blas, SIDE_LEFT, n, 1, at(vendor->vectors[R]), n, at(vendor->inverses), 1,
                                at(vendor->vectors[Z]), n),
              "scale rows", diag);
}

/* p = z + beta p */
static enum cb_status turn(struct vendor *vendor, const void *beta, const void *one, struct cb_diag *diag) {
  const enum cb_status s =
      blas(vendor->call.scal(vendor->blas, vendor->rows, beta, at(vendor->vectors[P]), 1), "scale a vector", diag);
  return s ? s : axpy(vendor, one, Z, P, diag);
}

static enum cb_status iterate_on_host(struct vendor *vendor, double *rz, struct cb_diag *diag) {
  const double one = 1;
  double pq = 0, next = 0;
  enum cb_status s = multiply(vendor, diag);
  if (!s) s = dot(vendor, P, Q, &pq, diag);
  const double alpha = *rz / pq, minus = -alpha;
  if (!s) s = axpy(vendor, &alpha, P, X, diag);
  if (!s) s = axpy(vendor, &minus, Q, R, diag);
  if (!s) s = precondition(vendor, diag);
  if (!s) s = dot(vendor, R, Z, &next, diag);
  const double beta = next / *rz;
  if (!s) s = turn(vendor, &beta, &one, diag);
  *rz = next;
  return s;
}

/* quotient = a / b, minus = -a / b; keep = a unless it is 0. */
static enum cb_status divide(struct vendor *vendor, int a, int b, int quotient, int minus, int keep,
                             struct cb_diag *diag) {
  cb_device_ptr from = scalar(vendor, a), by = scalar(vendor, b), to = scalar(vendor, quotient),
                negative = minus < 0 ? 0 : scalar(vendor, minus), kept = keep < 0 ? 0 : scalar(vendor, keep);
  void *parameters[] = {&from, &by, &to, &negative, &kept};
  return cb_driver_check(vendor->driver,
                         vendor->driver->call.launch(vendor->ratio, 1, 1, 1, 1, 1, 1, 0, vendor->stream, parameters, NULL),
                         diag, "launch a division");
}

static enum cb_status iterate_on_device(void *user, struct cb_diag *diag) {
  struct vendor *vendor = user;
  enum cb_status s = multiply(vendor, diag);
  if (!s) s = dot(vendor, P, Q, at(scalar(vendor, PQ)), diag);
  if (!s) s = divide(vendor, RZ, PQ, ALPHA, MINUS_ALPHA, -1, diag);
  if (!s) s = axpy(vendor, at(scalar(vendor, ALPHA)), P, X, diag);
  if (!s) s = axpy(vendor, at(scalar(vendor, MINUS_ALPHA)), Q, R, diag);
  if (!s) s = precondition(vendor, diag);
  if (!s) s = dot(vendor, R, Z, at(scalar(vendor, NEW_RZ)), diag);
  if (!s) s = divide(vendor, NEW_RZ, RZ, BETA, -1, RZ, diag);
  return s ? s : turn(vendor, at(scalar(vendor, BETA)), at(scalar(vendor, ONE)), diag);
}

/* ---- a solution */

/* x = 0, r = b, z = r / diagonal, p = z; *rz and its place on the device: r z. */
static enum cb_status begin(struct vendor *vendor, double *rz, struct cb_diag *diag) {
  const size_t bytes = (size_t)vendor->rows * sizeof(double);
  const struct cb_driver_calls *call = &vendor->driver->call;
  const cb_device_ptr *v = vendor->vectors;
  const double one = 1;
  enum cb_status s = blas(vendor->call.set_pointers(vendor->blas, POINTERS_ON_HOST), "take scalars", diag);
  if (!s) s = cb_driver_check(vendor->driver, call->fill_bytes_async(v[X], 0, bytes, vendor->stream), diag, "clear x");
  if (!s) s = cb_driver_check(vendor->driver, call->copy_on_device(v[R], vendor->b, bytes, vendor->stream), diag, "copy b");
  if (!s) s = precondition(vendor, diag);
  if (!s) s = cb_driver_check(vendor->driver, call->copy_on_device(v[P], v[Z], bytes, vendor->stream), diag, "copy z");
  if (!s) s = dot(vendor, R, Z, rz, diag);
  if (!s) s = cb_device_upload(vendor->device, scalar(vendor, RZ), rz, sizeof *rz, "a number", diag);
  return s ? s : cb_device_upload(vendor->device, scalar(vendor, ONE), &one, sizeof one, "a number", diag);
}

static enum cb_status wait(const struct vendor *vendor, struct cb_diag *diag) {
  return cb_driver_check(vendor->driver, vendor->driver->call.stream_synchronize(vendor->stream), diag, "wait for a solution");
}

enum cb_status vendor_run(struct vendor *vendor, enum vendor_way way, int iterations, struct cb_diag *diag) {
  double rz = 0;
  enum cb_status s = begin(vendor, &rz, diag);
  for (int i = 0; i < iterations && !s; i++)
    s = way == VENDOR_GRAPH ? cb_driver_check(vendor->driver,
                                              vendor->driver->call.graph_launch(vendor->iteration, vendor->stream), diag,
                                              "launch an iteration")
                            : iterate_on_host(vendor, &rz, diag);
  return s ? s : wait(vendor, diag);
}

/* ---- life */

static enum cb_status capture(struct vendor *vendor, struct cb_diag *diag) {
  const enum cb_status s = blas(vendor->call.set_pointers(vendor->blas, POINTERS_ON_DEVICE), "take scalars", diag);
  return s ? s : vendor_capture(&vendor->iteration, vendor->driver, vendor->stream, 1, iterate_on_device, vendor, diag);
}

static enum cb_status make(struct vendor *vendor, const struct cb_csr *csr, struct cb_diag *diag) {
  const struct cb_device *device = vendor->device;
  const size_t bytes = ((size_t)csr->rows + CB_BASELINE_PADDING) * sizeof(double);
  enum cb_status s = cb_library_open(&vendor->library, &search, NULL, symbols, &vendor->call, diag);
  if (!s) s = blas(vendor->call.create(&vendor->blas), "start", diag);
  if (!s) s = cb_driver_check(vendor->driver, vendor->driver->call.stream_create(&vendor->stream, 0), diag, "make a stream");
  if (!s) s = blas(vendor->call.set_stream(vendor->blas, vendor->stream), "take a stream", diag);
  for (int i = 0; i < VECTORS && !s; i++) {
    s = cb_device_alloc(device, &vendor->vectors[i], bytes, "a vector", diag);
    if (!s) s = cb_device_fill(device, vendor->vectors[i], 0, bytes, diag);
  }
  if (!s) s = cb_device_alloc(device, &vendor->scalars, SCALARS * sizeof(double), "numbers", diag);
  if (!s) s = cb_cusparse_open(&vendor->cusparse, device, NULL, diag);
  if (!s)
    s = vendor_product_open(&vendor->product, vendor->cusparse, csr, vendor->vectors[P], vendor->vectors[Q], vendor->stream,
                            diag);
  return s ? s : capture(vendor, diag);
}

enum cb_status vendor_open(struct vendor **out, const struct cb_device *device, const struct cb_csr *csr,
                           cb_device_ptr b, cb_device_ptr inverses, struct CUfunc_st *ratio, struct cb_diag *diag) {
  struct vendor *vendor = *out = cb_calloc(1, sizeof *vendor);
  if (!vendor) return cb_fail_memory(diag, "a solver", sizeof *vendor);
  vendor->device = device;
  vendor->driver = device->driver;
  vendor->rows = (int)csr->rows;
  vendor->b = b;
  vendor->inverses = inverses;
  vendor->ratio = ratio;
  const enum cb_status s = make(vendor, csr, diag);
  if (!s) return CB_OK;
  vendor_close(vendor);
  *out = NULL;
  return s;
}

void vendor_close(struct vendor *vendor) {
  if (!vendor) return;
  if (vendor->iteration) vendor->driver->call.graph_exec_destroy(vendor->iteration);
  vendor_product_release(&vendor->product);
  cb_cusparse_close(vendor->cusparse);
  if (vendor->blas) vendor->call.destroy(vendor->blas);
  if (vendor->stream) vendor->driver->call.stream_destroy(vendor->stream);
  for (int i = 0; i < VECTORS; i++) cb_device_free(vendor->device, vendor->vectors[i]);
  cb_device_free(vendor->device, vendor->scalars);
  if (vendor->library.handle) cb_library_close(&vendor->library);
  cb_free(vendor);
}

const char *vendor_spmv(const struct vendor *vendor) { return vendor_product_name(&vendor->product); }

cb_device_ptr vendor_solution(const struct vendor *vendor) { return vendor->vectors[X]; }
