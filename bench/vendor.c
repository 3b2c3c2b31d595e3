// SPDX-License-Identifier: Apache-2.0
/* See vendor.h. */
#include "bench/vendor.h"

#include "base/clock.h"
#include "base/file.h"
#include "codegen/source.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/measure/timer.h"

enum { TRIED = 20 }; /* products of each algorithm */

enum cb_status vendor_kernels(struct CUmod_st **module, struct CUfunc_st **functions, const char *const *names,
                              const struct cb_device *device, const char *path, struct cb_diag *diag) {
  const struct cb_driver *driver = device->driver;
  const struct cb_nvrtc_options options = {.arch = device->target.arch};
  struct cb_nvrtc *nvrtc = NULL;
  struct cb_compiled compiled = {0};
  struct cb_mapping file = {0};
  struct cb_text text = {0};
  enum cb_status s = cb_file_map(&file, path, diag);
  if (!s) cb_text_add_bytes(&text, file.bytes, file.length);
  if (!s) s = cb_nvrtc_open(&nvrtc, NULL, diag);
  if (!s) s = cb_nvrtc_compile(&compiled, nvrtc, cb_text_string(&text), path, &options, diag);
  if (!s) s = cb_driver_check(driver, driver->call.module_load(module, compiled.cubin), diag, "load '%s'", path);
  for (int i = 0; names[i] && !s; i++)
    s = cb_driver_check(driver, driver->call.module_function(&functions[i], *module, names[i]), diag, "find kernel '%s'",
                        names[i]);
  cb_compiled_release(&compiled);
  cb_nvrtc_close(nvrtc);
  cb_text_release(&text);
  cb_file_unmap(&file);
  return s;
}

/* ---- products */

/* Seconds of TRIED products, behind a few others. */
static enum cb_status time_product(const struct vendor_product *product, int algorithm, const struct cb_driver *driver,
                                   struct CUstream_st *stream, double *seconds, struct cb_diag *diag) {
  double start = 0;
  enum cb_status s = CB_OK;
  for (int k = -3; k <= TRIED && !s; k++) {
    if (!k || k == TRIED) s = cb_driver_check(driver, driver->call.stream_synchronize(stream), diag, "wait for products");
    if (!k) start = cb_seconds();
    if (!s && k < TRIED) s = cb_baseline_multiply(product->baselines, algorithm, 1, 0, stream, diag);
  }
  *seconds = cb_seconds() - start;
  return s;
}

enum cb_status vendor_product_open(struct vendor_product *product, struct cb_cusparse *cusparse, const struct cb_csr *csr,
                                   cb_device_ptr x, cb_device_ptr y, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct cb_types types = {CB_F64, CB_F64, CB_F64};
  double least = 0, seconds;
  product->fastest = -1;
  enum cb_status s =
      cb_baselines_open(&product->baselines, cusparse, csr, cb_baseline_types(types), x, y, diag);
  for (int i = 0; i < cb_baselines_count(product->baselines) && !s; i++) {
    if (!cb_baselines_get(product->baselines, i)->applies) continue;
    s = time_product(product, i, cb_cusparse_device(cusparse)->driver, stream, &seconds, diag);
    if (product->fastest >= 0 && seconds >= least) continue;
    product->fastest = i;
    least = seconds;
  }
  if (s) return s;
  return product->fastest < 0 ? cb_fail(diag, CB_ERR_UNSUPPORTED, "cuSPARSE multiplies this matrix in no way") : CB_OK;
}

void vendor_product_release(struct vendor_product *product) {
  cb_baselines_close(product->baselines);
  *product = (struct vendor_product){0};
}

const char *vendor_product_name(const struct vendor_product *product) {
  return cb_baselines_get(product->baselines, product->fastest)->name;
}

enum cb_status vendor_multiply(const struct vendor_product *product, struct CUstream_st *stream, struct cb_diag *diag) {
  return cb_baseline_multiply(product->baselines, product->fastest, 1, 0, stream, diag);
}

/* ---- iterations */

enum cb_status vendor_capture(struct CUgraphExec_st **exec, const struct cb_driver *driver, struct CUstream_st *stream,
                              int times, enum cb_status (*work)(void *user, struct cb_diag *diag), void *user,
                              struct cb_diag *diag) {
  struct CUgraph_st *graph = NULL, *captured = NULL;
  if (!cb_driver_has_conditions(driver)) return cb_fail(diag, CB_ERR_MISSING, "the driver has no graphs");
  enum cb_status s = cb_driver_check(driver, driver->call.graph_create(&graph, 0), diag, "make a graph");
  if (s) return s;
  s = cb_driver_check(driver, driver->call.capture_begin(stream, graph, NULL, NULL, 0, CB_CU_CAPTURE_OF_THREAD), diag,
                      "begin a capture");
  if (!s) {
    for (int i = 0; i < times && !s; i++) s = work(user, diag);
    const enum cb_status ended =
        cb_driver_check(driver, driver->call.capture_end(stream, &captured), s ? NULL : diag, "end a capture");
    if (!s) s = ended;
  }
  if (!s) s = cb_driver_check(driver, driver->call.graph_instantiate(exec, graph, 0), diag, "instantiate a graph");
  driver->call.graph_destroy(graph);
  return s;
}

enum cb_status vendor_time(enum cb_status (*run)(void *user, int iterations), void *user, int few, int many,
                           double *microseconds) {
  double of_few[VENDOR_SOLUTIONS], of_many[VENDOR_SOLUTIONS];
  enum cb_status s = run(user, few);
  for (int i = 0; i < VENDOR_SOLUTIONS && !s; i++) {
    double start = cb_seconds();
    s = run(user, few);
    of_few[i] = cb_seconds() - start;
    start = cb_seconds();
    if (!s) s = run(user, many);
    of_many[i] = cb_seconds() - start;
  }
  if (!s) *microseconds = 1e6 * (cb_median(of_many, VENDOR_SOLUTIONS) - cb_median(of_few, VENDOR_SOLUTIONS)) / (many - few);
  return s;
}
