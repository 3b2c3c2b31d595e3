// SPDX-License-Identifier: Apache-2.0
/* Baselines from shared libraries: include/cbgen_baseline.h says what such a plug-in is.
 *
 *   cb_plugins_open       all that were named; one that does not open stays in the list with the reason
 *   cb_plugged_open       uploads a matrix as CSR, and lets each of them prepare it
 *   cb_plugged_multiply   y = α A x + β y by one of them
 */
#ifndef CBGEN_RUNTIME_MEASURE_PLUGIN_H
#define CBGEN_RUNTIME_MEASURE_PLUGIN_H

#include "base/types.h"
#include "cbgen_baseline.h"
#include "frontend/csr.h"
#include "runtime/cuda/library.h"
#include "runtime/measure/cusparse.h"

struct cb_plugin_calls {
  const char *(*name)(int *version);
  int (*prepare)(void **state, const cbgen_baseline_matrix *matrix, char *message, size_t size);
  int (*multiply)(void *state, double alpha, const void *x, double beta, void *y, struct CUstream_st *stream);
  void (*destroy)(void *state);
};

struct cb_plugin {
  struct cb_library library;
  struct cb_plugin_calls call;
  int opened;
  char name[24]; /* its own, or the file's when it is not opened */
  char reason[160];
};

/* *plugins has `count` elements. CB_ERR_MEMORY alone. */
enum cb_status cb_plugins_open(struct cb_plugin **plugins, const char *const *paths, int count, struct cb_diag *diag);
void cb_plugins_close(struct cb_plugin *plugins, int count); /* NULL is accepted */

/* One matrix, as all plug-ins have it. */
struct cb_plugged;

/* What its work is done with; lives as long as the plugged matrix. */
struct cb_plugged_request {
  const struct cb_plugin *plugins;
  int count;
  const struct cb_device *device;
  struct CUstream_st *stream;
  const struct cb_csr *csr;
  struct cb_types types;
};
/* Never fails for what one of them does: CB_ERR_MEMORY, and CB_ERR_DEVICE when the matrix finds no room. */
enum cb_status cb_plugged_open(struct cb_plugged **plugged, const struct cb_plugged_request *request,
                               struct cb_diag *diag);
void cb_plugged_close(struct cb_plugged *plugged); /* NULL is accepted */

int cb_plugged_count(const struct cb_plugged *plugged); /* 0 of NULL */
const struct cb_baseline *cb_plugged_get(const struct cb_plugged *plugged, int number);
enum cb_status cb_plugged_multiply(struct cb_plugged *plugged, int number, double alpha, cb_device_ptr x, double beta,
                                   cb_device_ptr y, struct CUstream_st *stream, struct cb_diag *diag);

#endif
