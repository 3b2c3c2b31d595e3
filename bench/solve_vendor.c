// SPDX-License-Identifier: Apache-2.0
/* See solve_vendor.h. */
#include "bench/solve_vendor.h"

#include "base/memory.h"
#include "runtime/cuda/library.h"

#include <stddef.h>
#include <string.h>

/* cublasSideMode_t, cublasPointerMode_t, cublasOperation_t */
enum { SIDE_LEFT = 0, POINTERS_ON_HOST = 0, POINTERS_ON_DEVICE = 1, AS_IT_IS = 0, TRANSPOSED = 1 };
enum { THREADS = 256, RESTART = VENDOR_RESTART };
static const double damping = 0.85;

struct cublasContext;
struct calls {
  int (*create)(struct cublasContext **handle);
  int (*destroy)(struct cublasContext *handle);
  int (*set_stream)(struct cublasContext *handle, struct CUstream_st *stream);
  int (*set_pointers)(struct cublasContext *handle, int mode);
  int (*asum)(struct cublasContext *handle, int n, const void *x, int x_step, void *result);
  int (*dot)(struct cublasContext *handle, int n, const void *x, int x_step, const void *y, int y_step, void *result);
  int (*axpy)(struct cublasContext *handle, int n, const void *alpha, const void *x, int x_step, void *y, int y_step);
  int (*scal)(struct cublasContext *handle, int n, const void *alpha, void *x, int x_step);
  int (*gemv)(struct cublasContext *handle, int operation, int rows, int cols, const void *alpha, const void *a, int a_step,
              const void *x, int x_step, const void *beta, void *y, int y_step);
  int (*dgmm)(struct cublasContext *handle, int side, int rows, int cols, const void *a, int a_step, const void *x,
              int x_step, void *c, int c_step);
};
#define CALL(member, name) {name, offsetof(struct calls, member), 0}
static const struct cb_library_symbol symbols[] = {CALL(create, "cublasCreate_v2"),
                                                   CALL(destroy, "cublasDestroy_v2"),
                                                   CALL(set_stream, "cublasSetStream_v2"),
                                                   CALL(set_pointers, "cublasSetPointerMode_v2"),
                                                   CALL(asum, "cublasDasum_v2"),
                                                   CALL(dot, "cublasDdot_v2"),
                                                   CALL(axpy, "cublasDaxpy_v2"),
                                                   CALL(scal, "cublasDscal_v2"),
                                                   CALL(gemv, "cublasDgemv_v2"),
                                                   CALL(dgmm, "cublasDdgmm"),
                                                   {NULL, 0, 0}};
static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so", NULL};
static const char *const wheels[] = {"cu13", "cublas", NULL};
static const struct cb_library_search search = {.what = "cuBLAS",
                                                .remedy = "install the CUDA toolkit (12 or 13), or set CBGEN_CUBLAS",
                                                .variable = "CBGEN_CUBLAS",
                                                .names = names,
                                                .wheels = wheels};

/* Vectors: x, the residual, the direction; z = r / diagonal, and q = A p; of bicgstab also y = p / diagonal, q = A y, and
 * t = A z, the shadow of r; of pagerank t, the change; of gmres t = A x. */
enum { X, R, P, Z, Q, Y, T, SHADOW, VECTORS };
enum { PQ, RZ, ALPHA, MINUS_ALPHA, BETA, NEW_RZ, ONE, TS, TT, OMEGA, MINUS_OMEGA, FACTOR, RR, ZERO, MINUS_ONE, INVERSE, SCALARS };
enum { NO_SCALAR = -1 };

struct method;
struct vendor {
  const struct cb_device *device;
  const struct cb_driver *driver;
  const struct method *method;
  struct cb_library library;
  struct calls call;
  struct cublasContext *blas;
  struct cb_cusparse *cusparse;
  struct vendor_product products[2];
  int rows;
  int on_host;             /* scalars are: `numbers`; else `scalars` */
  double numbers[SCALARS];
  cb_device_ptr b, inverses, vectors[VECTORS], scalars;
  struct CUmod_st *module;
  struct CUfunc_st *kernels[5];
  cb_device_ptr basis, small; /* gmres: RESTART + 1 vectors; what solve_vendor.cu has of them */
  int column;                 /* of the basis that is next; 0: a round begins */
  int waits;                  /* the host looks at each residual */
  struct CUstream_st *stream;
  struct CUgraphExec_st *iterations;
};
enum { RATIO, RANKS, FIRST, GROW, COMBINE };

struct method {
  const char *name;
  int captured; /* iterations of a graph */
  struct {
    int from, to;
  } products[2]; /* from == to: there is none */
  enum cb_status (*begin)(struct vendor *vendor, struct cb_diag *diag); /* with scalars on the host */
  enum cb_status (*iterate)(struct vendor *vendor, struct cb_diag *diag);
};

static void *at(cb_device_ptr pointer) { return (void *)(uintptr_t)pointer; }

static cb_device_ptr on_device(const struct vendor *vendor, int scalar) {
  return scalar == NO_SCALAR ? 0 : vendor->scalars + (cb_device_ptr)scalar * sizeof(double);
}

static void *place(struct vendor *vendor, int scalar) {
  return vendor->on_host ? &vendor->numbers[scalar] : at(on_device(vendor, scalar));
}

static enum cb_status blas(int result, const char *what, struct cb_diag *diag) {
  return result ? cb_fail(diag, CB_ERR_DEVICE, "cuBLAS cannot %s: status %d", what, result) : CB_OK;
}

static enum cb_status check(const struct vendor *vendor, cb_cu_result result, const char *what, struct cb_diag *diag) {
  return cb_driver_check(vendor->driver, result, diag, "%s", what);
}

/* ---- what iterations are made of */

static enum cb_status scalars_on(struct vendor *vendor, int host, struct cb_diag *diag) {
  vendor->on_host = host;
  return blas(vendor->call.set_pointers(vendor->blas, host ? POINTERS_ON_HOST : POINTERS_ON_DEVICE), "take scalars", diag);
}

static enum cb_status multiply(struct vendor *vendor, int product, struct cb_diag *diag) {
  return vendor_multiply(&vendor->products[product], vendor->stream, diag);
}

static enum cb_status dot(struct vendor *vendor, int x, int y, int result, struct cb_diag *diag) {
  const cb_device_ptr *v = vendor->vectors;
  return blas(vendor->call.dot(vendor->blas, vendor->rows, at(v[x]), 1, at(v[y]), 1, place(vendor, result)),
              "multiply vectors", diag);
}

static enum cb_status sizes(struct vendor *vendor, int x, int result, struct cb_diag *diag) {
  return blas(vendor->call.asum(vendor->blas, vendor->rows, at(vendor->vectors[x]), 1, place(vendor, result)),
              "add sizes", diag);
}

static enum cb_status axpy(struct vendor *vendor, int alpha, int x, int y, struct cb_diag *diag) {
  const cb_device_ptr *v = vendor->vectors;
  return blas(vendor->call.axpy(vendor->blas, vendor->rows, place(vendor, alpha), at(v[x]), 1, at(v[y]), 1), "add vectors",
              diag);
}

static enum cb_status scale(struct vendor *vendor, int alpha, int x, struct cb_diag *diag) {
  return blas(vendor->call.scal(vendor->blas, vendor->rows, place(vendor, alpha), at(vendor->vectors[x]), 1),
              "scale a vector", diag);
}

/* to = from, each entry times that of `inverses`. */
static enum cb_status precondition(struct vendor *vendor, int from, int to, struct cb_diag *diag) {
  const int n = vendor->rows;
  return blas(vendor->call.dgmm(vendor->blas, SIDE_LEFT, n, 1, at(vendor->vectors[from]), n, at(vendor->inverses), 1,
                                at(vendor->vectors[to]), n),
              "scale rows", diag);
}

static enum cb_status copy(struct vendor *vendor, cb_device_ptr from, int to, struct cb_diag *diag) {
  const size_t bytes = (size_t)vendor->rows * sizeof(double);
  return check(vendor, vendor->driver->call.copy_on_device(vendor->vectors[to], from, bytes, vendor->stream),
               "copy a vector", diag);
}

/* quotient = a / b, `times` a number; minus that; keep = what a was. Each of the last three may be NO_SCALAR. */
static enum cb_status divide(struct vendor *vendor, int a, int b, int times, int quotient, int minus, int keep,
                             struct cb_diag *diag) {
  double *n = vendor->numbers;
  cb_device_ptr places[] = {on_device(vendor, a),        on_device(vendor, b),     on_device(vendor, times),
                            on_device(vendor, quotient), on_device(vendor, minus), on_device(vendor, keep)};
  void *parameters[] = {&places[0], &places[1], &places[2], &places[3], &places[4], &places[5]};
  if (!vendor->on_host)
    return check(vendor,
                 vendor->driver->call.launch(vendor->kernels[RATIO], 1, 1, 1, 1, 1, 1, 0, vendor->stream, parameters, NULL),
                 "launch a division", diag);
  const double given = n[a];
  n[quotient] = given / n[b] * (times == NO_SCALAR ? 1 : n[times]);
  if (minus != NO_SCALAR) n[minus] = -n[quotient];
  if (keep != NO_SCALAR) n[keep] = given;
  return CB_OK;
}

/* ---- cg */

static enum cb_status begin_cg(struct vendor *vendor, struct cb_diag *diag) {
  enum cb_status s = copy(vendor, vendor->b, R, diag);
  if (!s) s = precondition(vendor, R, Z, diag);
  if (!s) s = copy(vendor, vendor->vectors[Z], P, diag);
  return s ? s : dot(vendor, R, Z, RZ, diag);
}

static enum cb_status iterate_cg(struct vendor *vendor, struct cb_diag *diag) {
  enum cb_status s = multiply(vendor, 0, diag);
  if (!s) s = dot(vendor, P, Q, PQ, diag);
  if (!s) s = divide(vendor, RZ, PQ, NO_SCALAR, ALPHA, MINUS_ALPHA, NO_SCALAR, diag);
  if (!s) s = axpy(vendor, ALPHA, P, X, diag);
  if (!s) s = axpy(vendor, MINUS_ALPHA, Q, R, diag);
  if (!s) s = precondition(vendor, R, Z, diag);
  if (!s) s = dot(vendor, R, Z, NEW_RZ, diag);
  if (!s) s = divide(vendor, NEW_RZ, RZ, NO_SCALAR, BETA, NO_SCALAR, RZ, diag);
  if (!s) s = scale(vendor, BETA, P, diag);
  return s ? s : axpy(vendor, ONE, Z, P, diag);
}

/* ---- bicgstab: RZ is the product of the shadow and r, PQ that with q; s stands where r was */

static enum cb_status begin_bicgstab(struct vendor *vendor, struct cb_diag *diag) {
  enum cb_status s = copy(vendor, vendor->b, R, diag);
  if (!s) s = copy(vendor, vendor->b, SHADOW, diag);
  if (!s) s = copy(vendor, vendor->b, P, diag);
  return s ? s : dot(vendor, SHADOW, R, RZ, diag);
}

static enum cb_status iterate_bicgstab(struct vendor *vendor, struct cb_diag *diag) {
  enum cb_status s = precondition(vendor, P, Y, diag);
  if (!s) s = multiply(vendor, 0, diag);
  if (!s) s = dot(vendor, SHADOW, Q, PQ, diag);
  if (!s) s = divide(vendor, RZ, PQ, NO_SCALAR, ALPHA, MINUS_ALPHA, NO_SCALAR, diag);
  if (!s) s = axpy(vendor, MINUS_ALPHA, Q, R, diag);
  if (!s) s = precondition(vendor, R, Z, diag);
  if (!s) s = multiply(vendor, 1, diag);
  if (!s) s = dot(vendor, T, R, TS, diag);
  if (!s) s = dot(vendor, T, T, TT, diag);
  if (!s) s = divide(vendor, TS, TT, NO_SCALAR, OMEGA, MINUS_OMEGA, NO_SCALAR, diag);
  if (!s) s = axpy(vendor, ALPHA, Y, X, diag);
  if (!s) s = axpy(vendor, OMEGA, Z, X, diag);
  if (!s) s = axpy(vendor, MINUS_OMEGA, T, R, diag);
  if (!s) s = dot(vendor, R, R, RR, diag);
  if (!s) s = dot(vendor, SHADOW, R, NEW_RZ, diag);
  if (!s) s = divide(vendor, ALPHA, OMEGA, NO_SCALAR, FACTOR, NO_SCALAR, NO_SCALAR, diag);
  if (!s) s = divide(vendor, NEW_RZ, RZ, FACTOR, BETA, NO_SCALAR, RZ, diag);
  if (!s) s = axpy(vendor, MINUS_OMEGA, Q, P, diag);
  if (!s) s = scale(vendor, BETA, P, diag);
  return s ? s : axpy(vendor, ONE, R, P, diag);
}

/* ---- pagerank: b is ones */

static enum cb_status begin_pagerank(struct vendor *vendor, struct cb_diag *diag) {
  vendor->numbers[FACTOR] = 1.0 / vendor->rows;
  const enum cb_status s = copy(vendor, vendor->b, X, diag);
  return s ? s : scale(vendor, FACTOR, X, diag);
}

static enum cb_status iterate_pagerank(struct vendor *vendor, struct cb_diag *diag) {
  const int on_host = vendor->on_host;
  const unsigned blocks = (unsigned)(vendor->rows + THREADS - 1) / THREADS;
  cb_device_ptr *v = vendor->vectors, handed = on_device(vendor, PQ);
  double share = damping;
  enum cb_status s = multiply(vendor, 0, diag);
  if (!s) s = scalars_on(vendor, 0, diag); /* the host need not know it */
  if (!s) s = sizes(vendor, Q, PQ, diag);
  if (!s)
    s = check(vendor,
              vendor->driver->call.launch(vendor->kernels[RANKS], blocks, 1, 1, THREADS, 1, 1, 0, vendor->stream,
                                          (void *[]){&v[Q], &handed, &share, &v[X], &v[T], &vendor->rows}, NULL),
              "launch new ranks", diag);
  if (!s) s = scalars_on(vendor, on_host, diag);
  return s ? s : sizes(vendor, T, RR, diag);
}

/* ---- gmres: with the preconditioner on the right; one classical Gram-Schmidt, which is two products with the basis */

static enum cb_status begin_gmres(struct vendor *vendor, struct cb_diag *diag) {
  vendor->numbers[ZERO] = 0;
  vendor->numbers[MINUS_ONE] = -1;
  vendor->column = 0;
  const enum cb_status s = scalars_on(vendor, 0, diag);
  return s ? s : cb_device_upload(vendor->device, vendor->scalars, vendor->numbers, sizeof vendor->numbers, "numbers", diag);
}

/* y = alpha V x + beta y, or Vᵀ x, of the first vectors of the basis. */
static enum cb_status times_basis(struct vendor *vendor, int operation, int vectors, int alpha, cb_device_ptr x, int beta,
                                  cb_device_ptr y, struct cb_diag *diag) {
  return blas(vendor->call.gemv(vendor->blas, operation, vendor->rows, vectors, place(vendor, alpha), at(vendor->basis),
                                vendor->rows, at(x), 1, place(vendor, beta), at(y), 1),
              "multiply with a basis", diag);
}

/* A kernel of one thread. */
static enum cb_status think(struct vendor *vendor, int kernel, int column, struct cb_diag *diag) {
  cb_device_ptr square = on_device(vendor, RR), inverse = on_device(vendor, INVERSE);
  int restart = RESTART;
  void *parameters[] = {&vendor->small, &square, &inverse, &column, &restart};
  return check(vendor,
               vendor->driver->call.launch(vendor->kernels[kernel], 1, 1, 1, 1, 1, 1, 0, vendor->stream, parameters, NULL),
               "launch a kernel of one thread", diag);
}

static cb_device_ptr basis_vector(const struct vendor *vendor, int column) {
  return vendor->basis + (cb_device_ptr)column * (cb_device_ptr)vendor->rows * sizeof(double);
}

/* The vector becomes the basis' next, at length 1. */
static enum cb_status keep_vector(struct vendor *vendor, int from, int column, struct cb_diag *diag) {
  const size_t bytes = (size_t)vendor->rows * sizeof(double);
  const cb_device_ptr to = basis_vector(vendor, column);
  enum cb_status s = scale(vendor, INVERSE, from, diag);
  return s ? s
           : check(vendor, vendor->driver->call.copy_on_device(to, vendor->vectors[from], bytes, vendor->stream),
                   "copy a vector", diag);
}

static enum cb_status begin_round(struct vendor *vendor, struct cb_diag *diag) {
  enum cb_status s = multiply(vendor, 1, diag);
  if (!s) s = copy(vendor, vendor->b, R, diag);
  if (!s) s = axpy(vendor, MINUS_ONE, T, R, diag);
  if (!s) s = dot(vendor, R, R, RR, diag);
  if (!s) s = think(vendor, FIRST, 0, diag);
  return s ? s : keep_vector(vendor, R, 0, diag);
}

static enum cb_status end_round(struct vendor *vendor, struct cb_diag *diag) {
  enum cb_status s = think(vendor, COMBINE, RESTART, diag);
  if (!s) s = times_basis(vendor, AS_IT_IS, RESTART, ONE, vendor->small, ZERO, vendor->vectors[R], diag);
  if (!s) s = precondition(vendor, R, Z, diag);
  return s ? s : axpy(vendor, ONE, Z, X, diag);
}

static enum cb_status iterate_gmres(struct vendor *vendor, struct cb_diag *diag) {
  const int column = vendor->column;
  const cb_device_ptr of_column = vendor->small + (RESTART + (cb_device_ptr)column * (RESTART + 1)) * sizeof(double);
  double seen;
  enum cb_status s = column ? CB_OK : begin_round(vendor, diag);
  if (!s) s = copy(vendor, basis_vector(vendor, column), R, diag);
  if (!s) s = precondition(vendor, R, Z, diag);
  if (!s) s = multiply(vendor, 0, diag);
  if (!s) s = times_basis(vendor, TRANSPOSED, column + 1, ONE, vendor->vectors[Q], ZERO, of_column, diag);
  if (!s) s = times_basis(vendor, AS_IT_IS, column + 1, MINUS_ONE, of_column, ONE, vendor->vectors[Q], diag);
  if (!s) s = dot(vendor, Q, Q, RR, diag);
  if (!s) s = think(vendor, GROW, column, diag);
  if (!s) s = keep_vector(vendor, Q, column + 1, diag);
  vendor->column = (column + 1) % RESTART;
  if (!s && !vendor->column) s = end_round(vendor, diag);
  if (s || !vendor->waits) return s;
  s = check(vendor, vendor->driver->call.stream_synchronize(vendor->stream), "wait for a residual", diag);
  return s ? s : cb_device_download(vendor->device, &seen, on_device(vendor, RR), sizeof seen, "a residual", diag);
}

static const struct method methods[] = {
    {"cg", VENDOR_CAPTURED, {{P, Q}, {X, X}}, begin_cg, iterate_cg},
    {"bicgstab", VENDOR_CAPTURED, {{Y, Q}, {Z, T}}, begin_bicgstab, iterate_bicgstab},
    {"pagerank", VENDOR_CAPTURED, {{X, Q}, {X, X}}, begin_pagerank, iterate_pagerank},
    {"gmres", RESTART, {{Z, Q}, {X, T}}, begin_gmres, iterate_gmres}};
enum { METHODS = sizeof methods / sizeof *methods };

static const struct method *find_method(const char *name) {
  int m = 0;
  while (m < METHODS && strcmp(methods[m].name, name) != 0) m++;
  return m < METHODS ? &methods[m] : NULL;
}

int vendor_captured(const struct vendor *vendor) { return vendor->method->captured; }

int vendor_has(const char *method) { return find_method(method) != NULL; }

/* ---- a solution */

static enum cb_status iterate(void *user, struct cb_diag *diag) {
  struct vendor *vendor = user;
  return vendor->method->iterate(vendor, diag);
}

/* Scalars begin on the host, and go where the way wants them. */
static enum cb_status begin(struct vendor *vendor, enum vendor_way way, struct cb_diag *diag) {
  const size_t bytes = (size_t)vendor->rows * sizeof(double);
  enum cb_status s = scalars_on(vendor, 1, diag);
  vendor->waits = way == VENDOR_FROM_HOST;
  vendor->numbers[ONE] = 1;
  if (!s)
    s = check(vendor, vendor->driver->call.fill_bytes_async(vendor->vectors[X], 0, bytes, vendor->stream), "clear x", diag);
  if (!s) s = vendor->method->begin(vendor, diag);
  if (!s && way == VENDOR_GRAPH)
    s = cb_device_upload(vendor->device, vendor->scalars, vendor->numbers, sizeof vendor->numbers, "numbers", diag);
  return s;
}

enum cb_status vendor_run(struct vendor *vendor, enum vendor_way way, int iterations, struct cb_diag *diag) {
  const int at_once = way == VENDOR_GRAPH ? vendor->method->captured : 1;
  enum cb_status s = begin(vendor, way, diag);
  for (int i = 0; i < iterations && !s; i += at_once)
    s = way == VENDOR_GRAPH ? check(vendor, vendor->driver->call.graph_launch(vendor->iterations, vendor->stream),
                                    "launch iterations", diag)
                            : iterate(vendor, diag);
  return s ? s : check(vendor, vendor->driver->call.stream_synchronize(vendor->stream), "wait for a solution", diag);
}

/* ---- life */

static enum cb_status make(struct vendor *vendor, const struct cb_csr *csr, struct cb_diag *diag) {
  static const char *const kernels[] = {"ratio", "ranks", "first", "grow", "combine", NULL};
  const struct cb_device *device = vendor->device;
  const size_t bytes = ((size_t)csr->rows + CB_BASELINE_PADDING) * sizeof(double);
  enum cb_status s = vendor_kernels(&vendor->module, vendor->kernels, kernels, device, "bench/solve_vendor.cu", diag);
  if (!s) s = cb_library_open(&vendor->library, &search, NULL, symbols, &vendor->call, diag);
  if (!s) s = blas(vendor->call.create(&vendor->blas), "start", diag);
  if (!s) s = check(vendor, vendor->driver->call.stream_create(&vendor->stream, 0), "make a stream", diag);
  if (!s) s = blas(vendor->call.set_stream(vendor->blas, vendor->stream), "take a stream", diag);
  for (int i = 0; i < VECTORS && !s; i++) {
    s = cb_device_alloc(device, &vendor->vectors[i], bytes, "a vector", diag);
    if (!s) s = cb_device_fill(device, vendor->vectors[i], 0, bytes, diag);
  }
  const size_t more = vendor->method->iterate == iterate_gmres ? RESTART + 1 : 0;
  if (!s && more) s = cb_device_alloc(device, &vendor->basis, more * (size_t)csr->rows * sizeof(double), "a basis", diag);
  if (!s && more) s = cb_device_alloc(device, &vendor->small, 3 * more * more * sizeof(double), "numbers", diag);
  if (!s) s = cb_device_alloc(device, &vendor->scalars, SCALARS * sizeof(double), "numbers", diag);
  if (!s) s = cb_cusparse_open(&vendor->cusparse, device, NULL, diag);
  for (int i = 0; i < 2 && !s; i++) {
    const int from = vendor->method->products[i].from, to = vendor->method->products[i].to;
    if (from != to)
      s = vendor_product_open(&vendor->products[i], vendor->cusparse, csr, vendor->vectors[from], vendor->vectors[to],
                              vendor->stream, diag);
  }
  if (!s) s = scalars_on(vendor, 0, diag);
  return s ? s
           : vendor_capture(&vendor->iterations, vendor->driver, vendor->stream, vendor->method->captured, iterate,
                            vendor, diag);
}

enum cb_status vendor_open(struct vendor **out, const struct cb_device *device, const char *method,
                           const struct cb_csr *csr, cb_device_ptr b, cb_device_ptr inverses, struct cb_diag *diag) {
  struct vendor *vendor = *out = cb_calloc(1, sizeof *vendor);
  if (!vendor) return cb_fail_memory(diag, "a solver", sizeof *vendor);
  vendor->device = device;
  vendor->driver = device->driver;
  vendor->method = find_method(method);
  vendor->rows = (int)csr->rows;
  vendor->b = b;
  vendor->inverses = inverses;
  const enum cb_status s =
      vendor->method ? make(vendor, csr, diag) : cb_fail(diag, CB_ERR_UNSUPPORTED, "'%s' is not here", method);
  if (!s) return CB_OK;
  vendor_close(vendor);
  *out = NULL;
  return s;
}

void vendor_close(struct vendor *vendor) {
  if (!vendor) return;
  if (vendor->iterations) vendor->driver->call.graph_exec_destroy(vendor->iterations);
  for (int i = 0; i < 2; i++) vendor_product_release(&vendor->products[i]);
  cb_cusparse_close(vendor->cusparse);
  if (vendor->blas) vendor->call.destroy(vendor->blas);
  if (vendor->stream) vendor->driver->call.stream_destroy(vendor->stream);
  if (vendor->module) vendor->driver->call.module_unload(vendor->module);
  for (int i = 0; i < VECTORS; i++) cb_device_free(vendor->device, vendor->vectors[i]);
  cb_device_free(vendor->device, vendor->scalars);
  cb_device_free(vendor->device, vendor->basis);
  cb_device_free(vendor->device, vendor->small);
  if (vendor->library.handle) cb_library_close(&vendor->library);
  cb_free(vendor);
}

const char *vendor_spmv(const struct vendor *vendor) { return vendor_product_name(&vendor->products[0]); }

cb_device_ptr vendor_solution(const struct vendor *vendor) { return vendor->vectors[X]; }
