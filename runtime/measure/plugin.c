// SPDX-License-Identifier: Apache-2.0
/* Baselines from shared libraries: see plugin.h. */
#include "runtime/measure/plugin.h"

#include "base/clock.h"
#include "base/memory.h"
#include "runtime/measure/convert.h"

#include <stdio.h>
#include <string.h>

/* ---- the libraries */

#define CALL(member)                                                                                                   \
  { "cbgen_baseline_" #member, offsetof(struct cb_plugin_calls, member), 0 }
static const struct cb_library_symbol symbols[] = {
    CALL(name), CALL(prepare), CALL(multiply), CALL(destroy), {NULL, 0, 0}};

static const char *const no_names[] = {NULL};
static const struct cb_library_search search = {
    .what = "the baseline",
    .remedy = "name a shared library with the four functions of cbgen_baseline.h",
    .names = no_names,
};

static void set_name(struct cb_plugin *plugin, const char *name) {
  snprintf(plugin->name, sizeof plugin->name, "%.*s", (int)sizeof plugin->name - 1, name);
}

static enum cb_status check_version(struct cb_plugin *plugin, struct cb_diag *diag) {
  int version = 0;
  const char *name = plugin->call.name(&version);
  if (version != CBGEN_BASELINE_VERSION)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "was built for version %d of cbgen_baseline.h, and this is version %d",
                   version, CBGEN_BASELINE_VERSION);
  if (!name || !*name) return cb_fail(diag, CB_ERR_UNSUPPORTED, "the baseline has no name");
  set_name(plugin, name);
  return CB_OK;
}

static void open_plugin(struct cb_plugin *plugin, const char *path) {
  struct cb_diag diag = {0};
  const char *slash = strrchr(path, '/');
  set_name(plugin, slash ? slash + 1 : path);
  enum cb_status s = cb_library_open(&plugin->library, &search, path, symbols, &plugin->call, &diag);
  if (!s) s = check_version(plugin, &diag);
  plugin->opened = !s;
  if (s) snprintf(plugin->reason, sizeof plugin->reason, "%.*s", (int)sizeof plugin->reason - 1, diag.message);
}

enum cb_status cb_plugins_open(struct cb_plugin **plugins, const char *const *paths, int count, struct cb_diag *diag) {
  *plugins = cb_calloc((size_t)count + 1, sizeof **plugins);
  if (!*plugins) return cb_fail_memory(diag, "the list of baselines", (size_t)count * sizeof **plugins);
  for (int i = 0; i < count; i++) open_plugin(&(*plugins)[i], paths[i]);
  return CB_OK;
}

void cb_plugins_close(struct cb_plugin *plugins, int count) {
  for (int i = 0; plugins && i < count; i++) cb_library_close(&plugins[i].library);
  cb_free(plugins);
}

/* ---- one matrix */

struct entry {
  const struct cb_plugin *plugin;
  struct cb_baseline info;
  void *state;
};

struct cb_plugged {
  const struct cb_device *device;
  cb_device_ptr row_ptr, col_idx, values;
  int64_t bytes;
  int count;
  struct entry entries[];
};

static enum cb_status put(struct cb_plugged *plugged, cb_device_ptr *address, const void *bytes, int64_t length,
                          const char *what, struct cb_diag *diag) {
  const enum cb_status s = cb_device_alloc(plugged->device, address, (size_t)length, what, diag);
  plugged->bytes += length;
  return s ? s : cb_device_upload(plugged->device, *address, bytes, (size_t)length, what, diag);
}

static enum cb_status upload(struct cb_plugged *plugged, const struct cb_csr *csr, enum cb_type type,
                             struct cb_diag *diag) {
  void *values = NULL;
  enum cb_status s = cb_convert_values(&values, csr, type, diag);
  if (!s) s = put(plugged, &plugged->row_ptr, csr->row_ptr, 4 * (csr->rows + 1), "row pointers", diag);
  if (!s) s = put(plugged, &plugged->col_idx, csr->col_idx, 4 * csr->nnz, "column indices", diag);
  if (!s) s = put(plugged, &plugged->values, values, (int64_t)cb_type_size(type) * csr->nnz, "values", diag);
  cb_free(values);
  return s ? s : cb_device_wait(plugged->device, "uploading", diag);
}

/* Why no plug-in can have this matrix; CB_OK: they can. */
static enum cb_status check_matrix(const struct cb_csr *csr, struct cb_types types, struct cb_diag *diag) {
  if (!csr->nnz) return cb_fail(diag, CB_ERR_UNSUPPORTED, "the matrix has no nonzeros");
  if (csr->wide) return cb_fail(diag, CB_ERR_UNSUPPORTED, "2^31 nonzeros or more would need 64-bit indices");
  if (types.matrix != types.vector || types.vector != types.sum || cb_type_size(types.sum) < 4)
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "plug-ins take f64 or f32 throughout");
  return CB_OK;
}

static const void *address(cb_device_ptr device) {
  return (const void *)(uintptr_t)device;
}

static enum cb_status prepare(struct entry *entry, const struct cb_plugged *plugged,
                              const struct cb_plugged_request *request, struct cb_diag *diag) {
  const struct cb_csr *csr = request->csr;
  const cbgen_baseline_matrix matrix = {.struct_size = sizeof matrix,
                                        .rows = csr->rows,
                                        .cols = csr->cols,
                                        .nnz = csr->nnz,
                                        .row_ptr = address(plugged->row_ptr),
                                        .col_idx = address(plugged->col_idx),
                                        .values = address(plugged->values),
                                        .value_bytes = (int32_t)cb_type_size(request->types.matrix),
                                        .stream = request->stream};
  char message[120] = "";
  const double start = cb_seconds();
  const int failed = entry->plugin->call.prepare(&entry->state, &matrix, message, sizeof message);
  message[sizeof message - 1] = 0;
  if (failed) {
    entry->state = NULL;
    return cb_fail(diag, CB_ERR_UNSUPPORTED, "%s (%d)", *message ? message : "it cannot prepare the matrix", failed);
  }
  entry->info.applies = 1; /* from here on its state is destroyed */
  const enum cb_status s = cb_device_wait(plugged->device, "preparing a baseline", diag);
  entry->info.prepare_seconds = cb_seconds() - start;
  entry->info.stored_bytes = plugged->bytes;
  return s;
}

/* `refusal`: of all of them, if any. */
static void enter(struct entry *entry, const struct cb_plugged *plugged, const struct cb_plugged_request *request,
                  const struct cb_diag *refusal) {
  struct cb_diag diag = *refusal;
  snprintf(entry->info.name, sizeof entry->info.name, "%s", entry->plugin->name);
  if (!entry->plugin->opened) {
    snprintf(entry->info.reason, sizeof entry->info.reason, "%s", entry->plugin->reason);
    return;
  }
  if (!diag.status && !prepare(entry, plugged, request, &diag)) return;
  if (entry->info.applies) entry->plugin->call.destroy(entry->state);
  entry->info.applies = 0;
  entry->state = NULL;
  snprintf(entry->info.reason, sizeof entry->info.reason, "%.*s", (int)sizeof entry->info.reason - 1, diag.message);
}

static int any_opened(const struct cb_plugged_request *request) {
  for (int i = 0; i < request->count; i++)
    if (request->plugins[i].opened) return 1;
  return 0;
}

enum cb_status cb_plugged_open(struct cb_plugged **out, const struct cb_plugged_request *request,
                               struct cb_diag *diag) {
  const size_t bytes = sizeof **out + (size_t)request->count * sizeof(struct entry);
  struct cb_plugged *plugged = cb_calloc(1, bytes);
  struct cb_diag refusal = {0};
  *out = NULL;
  if (!plugged) return cb_fail_memory(diag, "baselines of a matrix", bytes);
  plugged->device = request->device;
  plugged->count = request->count;
  enum cb_status s = check_matrix(request->csr, request->types, &refusal);
  s = !s && any_opened(request) ? upload(plugged, request->csr, request->types.matrix, diag) : CB_OK;
  for (int i = 0; i < request->count; i++) {
    plugged->entries[i].plugin = &request->plugins[i];
    if (!s) enter(&plugged->entries[i], plugged, request, &refusal);
  }
  if (s)
    cb_plugged_close(plugged);
  else
    *out = plugged;
  return s;
}

void cb_plugged_close(struct cb_plugged *plugged) {
  if (!plugged) return;
  for (int i = 0; i < plugged->count; i++) {
    struct entry *entry = &plugged->entries[i];
    if (entry->info.applies) entry->plugin->call.destroy(entry->state);
  }
  cb_device_free(plugged->device, plugged->row_ptr);
  cb_device_free(plugged->device, plugged->col_idx);
  cb_device_free(plugged->device, plugged->values);
  cb_free(plugged);
}

int cb_plugged_count(const struct cb_plugged *plugged) {
  return plugged ? plugged->count : 0;
}

const struct cb_baseline *cb_plugged_get(const struct cb_plugged *plugged, int number) {
  return &plugged->entries[number].info;
}

enum cb_status cb_plugged_multiply(struct cb_plugged *plugged, int number, double alpha, cb_device_ptr x, double beta,
                                   cb_device_ptr y, struct CUstream_st *stream, struct cb_diag *diag) {
  const struct entry *entry = &plugged->entries[number];
  const int result = entry->plugin->call.multiply(entry->state, alpha, address(x), beta, (void *)(uintptr_t)y, stream);
  return result ? cb_fail(diag, CB_ERR_DEVICE, "baseline '%s' cannot multiply (%d)", entry->info.name, result) : CB_OK;
}
