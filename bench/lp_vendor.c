// SPDX-License-Identifier: Apache-2.0
/* See lp_vendor.h. */
#include "bench/lp_vendor.h"

#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 256, POWER = 30 };

enum { COST, LOWER, UPPER, ROW_LOWER, ROW_UPPER, GIVEN, X = GIVEN, ANCHOR_X, AHEAD, G, Y, ANCHOR_Y, Q, VECTORS };
enum { FOR_COLUMNS, FOR_ROWS, COUNTERS }; /* of iterations: what each kernel reads, and the other writes */

struct lp_vendor {
  const struct cb_device *device;
  const struct cb_driver *driver;
  struct cb_csr matrix, transposed; /* scaled */
  double *host[GIVEN];              /* likewise */
  double tau, sigma;
  cb_device_ptr vectors[VECTORS], counters;
  struct cb_cusparse *cusparse;
  struct vendor_product by_a, by_transposed;
  struct CUmod_st *module;
  struct CUfunc_st *kernels[2];
  struct CUstream_st *stream;
  struct CUgraphExec_st *graph;
  char products[64];
};

static int64_t length_of(const struct lp_vendor *vendor, int vector) {
  return vector == ROW_LOWER || vector == ROW_UPPER || vector >= Y ? vendor->matrix.rows : vendor->matrix.cols;
}

/* ---- the program on the host */

/* Scaled, with its rows and columns in their own places, or turned. */
static enum cb_status scale(struct cb_csr *csr, const struct lp_vendor_problem *problem, int turned, struct cb_diag *diag) {
  const struct cb_csr *given = problem->csr;
  struct cb_coo coo = {.rows = turned ? given->cols : given->rows, .cols = turned ? given->rows : given->cols};
  enum cb_status s = CB_OK;
  coo.row_idx = cb_alloc((size_t)given->nnz, sizeof *coo.row_idx);
  coo.col_idx = cb_alloc((size_t)given->nnz, sizeof *coo.col_idx);
  coo.values = cb_alloc((size_t)given->nnz, sizeof *coo.values);
  if (!coo.row_idx || !coo.col_idx || !coo.values) s = cb_fail_memory(diag, "a scaled matrix", (uint64_t)given->nnz);
  for (int64_t row = 0; row < given->rows && !s; row++)
    for (int64_t k = cb_csr_row(given, row); k < cb_csr_row(given, row + 1); k++, coo.count++) {
      const int32_t column = given->col_idx[k];
      coo.row_idx[k] = turned ? column : (int32_t)row;
      coo.col_idx[k] = turned ? (int32_t)row : column;
      coo.values[k] = given->values[k] * problem->row_scales[row] * problem->column_scales[column];
    }
  if (!s) return cb_csr_from_coo(csr, &coo, diag);
  cb_coo_release(&coo);
  return s;
}

/* to = A from. */
static void multiply_on_host(const struct cb_csr *csr, const double *from, double *to) {
  for (int64_t row = 0; row < csr->rows; row++) {
    to[row] = 0;
    for (int64_t k = cb_csr_row(csr, row); k < cb_csr_row(csr, row + 1); k++)
      to[row] += csr->values[k] * from[csr->col_idx[k]];
  }
}

/* The largest singular value, from below. */
static enum cb_status find_norm(const struct lp_vendor *vendor, double *norm, struct cb_diag *diag) {
  double *v = cb_alloc((size_t)vendor->matrix.cols, sizeof *v), *p = cb_alloc((size_t)vendor->matrix.rows, sizeof *p);
  const enum cb_status s = v && p ? CB_OK : cb_fail_memory(diag, "vectors", (uint64_t)vendor->matrix.cols);
  double size = 1;
  for (int64_t i = 0; i < vendor->matrix.cols && !s; i++) v[i] = 0.5 + 1.0 / (1 + (double)i);
  for (int step = 0; step < POWER && !s; step++) {
    double square = 0;
    multiply_on_host(&vendor->matrix, v, p);
    multiply_on_host(&vendor->transposed, p, v);
    for (int64_t i = 0; i < vendor->matrix.cols; i++) square += v[i] * v[i];
    size = sqrt(square);
    for (int64_t i = 0; i < vendor->matrix.cols; i++) v[i] /= size;
  }
  cb_free(v);
  cb_free(p);
  *norm = sqrt(size);
  return s;
}

static enum cb_status take_problem(struct lp_vendor *vendor, const struct lp_vendor_problem *problem,
                                   struct cb_diag *diag) {
  const double *const given[] = {problem->cost, problem->lower, problem->upper, problem->row_lower, problem->row_upper};
  double norm = 1;
  enum cb_status s = scale(&vendor->matrix, problem, 0, diag);
  if (!s) s = scale(&vendor->transposed, problem, 1, diag);
  for (int v = 0; v < GIVEN && !s; v++) {
    const int64_t length = length_of(vendor, v);
    vendor->host[v] = cb_alloc((size_t)length, sizeof *vendor->host[v]);
    if (!vendor->host[v]) return cb_fail_memory(diag, "a scaled vector", (uint64_t)length);
    for (int64_t i = 0; i < length; i++)
      vendor->host[v][i] = v == COST                   ? given[v][i] * problem->column_scales[i]
                           : v == LOWER || v == UPPER ? given[v][i] / problem->column_scales[i]
                                                      : given[v][i] * problem->row_scales[i];
  }
  if (!s) s = find_norm(vendor, &norm, diag);
  vendor->tau = vendor->sigma = 0.9 / norm;
  return s;
}

/* ---- iterations */

static enum cb_status launch(const struct lp_vendor *vendor, int kernel, int64_t n, void **parameters,
                             struct cb_diag *diag) {
  const unsigned blocks = (unsigned)((n + THREADS - 1) / THREADS);
  return cb_driver_check(vendor->driver,
                         vendor->driver->call.launch(vendor->kernels[kernel], blocks, 1, 1, THREADS, 1, 1, 0, vendor->stream,
                                                     parameters, NULL),
                         diag, "launch a kernel of vectors");
}

static enum cb_status iterate(void *user, struct cb_diag *diag) {
  struct lp_vendor *vendor = user;
  cb_device_ptr *v = vendor->vectors, columns = vendor->counters, rows = vendor->counters + sizeof(int);
  int of_columns = (int)vendor->matrix.cols, of_rows = (int)vendor->matrix.rows;
  enum cb_status s = vendor_multiply(&vendor->by_transposed, vendor->stream, diag);
  if (!s)
    s = launch(vendor, FOR_COLUMNS, of_columns,
               (void *[]){&v[G], &v[COST], &v[LOWER], &v[UPPER], &v[ANCHOR_X], &v[X], &v[AHEAD], &columns, &rows,
                          &vendor->tau, &of_columns},
               diag);
  if (!s) s = vendor_multiply(&vendor->by_a, vendor->stream, diag);
  if (!s)
    s = launch(vendor, FOR_ROWS, of_rows,
               (void *[]){&v[Q], &v[ROW_LOWER], &v[ROW_UPPER], &v[ANCHOR_Y], &v[Y], &rows, &columns, &vendor->sigma,
                          &of_rows},
               diag);
  return s;
}

static enum cb_status clear(const struct lp_vendor *vendor, cb_device_ptr where, size_t bytes, struct cb_diag *diag) {
  return cb_driver_check(vendor->driver, vendor->driver->call.fill_bytes_async(where, 0, bytes, vendor->stream), diag,
                         "clear a vector");
}

enum cb_status lp_vendor_run(struct lp_vendor *vendor, enum vendor_way way, int iterations, struct cb_diag *diag) {
  const int at_once = way == VENDOR_GRAPH ? LP_VENDOR_CAPTURED : 1;
  enum cb_status s = clear(vendor, vendor->counters, COUNTERS * sizeof(int), diag);
  if (!s) s = clear(vendor, vendor->vectors[X], (size_t)vendor->matrix.cols * sizeof(double), diag);
  if (!s) s = clear(vendor, vendor->vectors[Y], (size_t)vendor->matrix.rows * sizeof(double), diag);
  for (int i = 0; i < iterations && !s; i += at_once)
    s = way == VENDOR_GRAPH ? cb_driver_check(vendor->driver, vendor->driver->call.graph_launch(vendor->graph, vendor->stream),
                                              diag, "launch iterations")
                            : iterate(vendor, diag);
  return s ? s
           : cb_driver_check(vendor->driver, vendor->driver->call.stream_synchronize(vendor->stream), diag,
                             "wait for iterations");
}

/* ---- the same on the host */

static void step_on_host(const struct lp_vendor *vendor, double far, double *x, double *y, double *ahead, double *q,
                         double *g) {
  double *const *host = vendor->host;
  multiply_on_host(&vendor->transposed, y, g);
  for (int64_t i = 0; i < vendor->matrix.cols; i++) {
    const double hat = fmin(fmax(x[i] - vendor->tau * (host[COST][i] - g[i]), host[LOWER][i]), host[UPPER][i]);
    ahead[i] = 2 * hat - x[i];
    x[i] = far * ahead[i];
  }
  multiply_on_host(&vendor->matrix, ahead, q);
  for (int64_t i = 0; i < vendor->matrix.rows; i++) {
    const double free = y[i] - vendor->sigma * q[i];
    const double hat = fmax(free + vendor->sigma * host[ROW_LOWER][i], 0) + fmin(free + vendor->sigma * host[ROW_UPPER][i], 0);
    y[i] = far * (2 * hat - y[i]);
  }
}

enum cb_status lp_vendor_difference(const struct lp_vendor *vendor, int iterations, double *difference,
                                    struct cb_diag *diag) {
  const size_t cols = (size_t)vendor->matrix.cols, rows = (size_t)vendor->matrix.rows;
  double *all = cb_calloc(4 * cols + 2 * rows, sizeof *all), largest = 0, away = 0;
  if (!all) return cb_fail_memory(diag, "vectors", cols);
  double *x = all, *ahead = x + cols, *g = ahead + cols, *found = g + cols, *y = found + cols, *q = y + rows;
  for (int k = 0; k < iterations; k++) step_on_host(vendor, (k + 1.0) / (k + 2.0), x, y, ahead, q, g);
  const enum cb_status s =
      cb_device_download(vendor->device, found, vendor->vectors[X], cols * sizeof *found, "x", diag);
  for (size_t i = 0; i < cols; i++) {
    largest = fmax(largest, fabs(x[i]));
    away = fabs(found[i] - x[i]) <= away ? away : fabs(found[i] - x[i]);
  }
  *difference = largest > 0 ? away / largest : away;
  cb_free(all);
  return s;
}

/* ---- life */

static enum cb_status make_vectors(struct lp_vendor *vendor, struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  for (int i = 0; i < VECTORS && !s; i++) {
    const size_t length = (size_t)length_of(vendor, i), bytes = (length + CB_BASELINE_PADDING) * sizeof(double);
    s = cb_device_alloc(vendor->device, &vendor->vectors[i], bytes, "a vector", diag);
    if (!s) s = cb_device_fill(vendor->device, vendor->vectors[i], 0, bytes, diag);
    if (!s && i < GIVEN)
      s = cb_device_upload(vendor->device, vendor->vectors[i], vendor->host[i], length * sizeof(double), "a vector", diag);
  }
  return s ? s : cb_device_alloc(vendor->device, &vendor->counters, COUNTERS * sizeof(int), "counters", diag);
}

static enum cb_status make(struct lp_vendor *vendor, const struct lp_vendor_problem *problem, struct cb_diag *diag) {
  static const char *const names[] = {"columns", "rows", NULL};
  const cb_device_ptr *v = vendor->vectors;
  enum cb_status s = vendor_kernels(&vendor->module, vendor->kernels, names, vendor->device, "bench/lp_parts.cu", diag);
  if (!s) s = cb_cusparse_open(&vendor->cusparse, vendor->device, NULL, diag);
  if (!s) s = take_problem(vendor, problem, diag);
  if (!s) s = make_vectors(vendor, diag);
  if (!s) s = cb_driver_check(vendor->driver, vendor->driver->call.stream_create(&vendor->stream, 0), diag, "make a stream");
  if (!s)
    s = vendor_product_open(&vendor->by_a, vendor->cusparse, &vendor->matrix, v[AHEAD], v[Q], vendor->stream, diag);
  if (!s)
    s = vendor_product_open(&vendor->by_transposed, vendor->cusparse, &vendor->transposed, v[Y], v[G], vendor->stream, diag);
  if (s) return s;
  snprintf(vendor->products, sizeof vendor->products, "%s + %s", vendor_product_name(&vendor->by_a),
           vendor_product_name(&vendor->by_transposed));
  return vendor_capture(&vendor->graph, vendor->driver, vendor->stream, LP_VENDOR_CAPTURED, iterate, vendor, diag);
}

enum cb_status lp_vendor_open(struct lp_vendor **out, const struct cb_device *device,
                              const struct lp_vendor_problem *problem, struct cb_diag *diag) {
  struct lp_vendor *vendor = *out = cb_calloc(1, sizeof *vendor);
  if (!vendor) return cb_fail_memory(diag, "a solver", sizeof *vendor);
  vendor->device = device;
  vendor->driver = device->driver;
  const enum cb_status s = make(vendor, problem, diag);
  if (!s) return CB_OK;
  lp_vendor_close(vendor);
  *out = NULL;
  return s;
}

void lp_vendor_close(struct lp_vendor *vendor) {
  if (!vendor) return;
  if (vendor->graph) vendor->driver->call.graph_exec_destroy(vendor->graph);
  vendor_product_release(&vendor->by_a);
  vendor_product_release(&vendor->by_transposed);
  cb_cusparse_close(vendor->cusparse);
  if (vendor->module) vendor->driver->call.module_unload(vendor->module);
  if (vendor->stream) vendor->driver->call.stream_destroy(vendor->stream);
  for (int i = 0; i < VECTORS; i++) cb_device_free(vendor->device, vendor->vectors[i]);
  cb_device_free(vendor->device, vendor->counters);
  for (int i = 0; i < GIVEN; i++) cb_free(vendor->host[i]);
  cb_csr_release(&vendor->matrix);
  cb_csr_release(&vendor->transposed);
  cb_free(vendor);
}

const char *lp_vendor_products(const struct lp_vendor *vendor) { return vendor->products; }
